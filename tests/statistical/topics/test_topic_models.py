"""The samplers of the topic models are right, and the harness refuses them when they are broken."""

from dataclasses import replace

import numpy as np
import pytest
from same_draws import forget_a_block, repeat_the_first_block

from pgmult import DiagonalPotential, Dirichlet, MvNormal, NormalInverseWishart, StickBreaking
from pgmult.testing import (
    check_geweke,
    check_likelihood,
    check_model,
    check_sbc,
    conditional_ratio,
    mutant,
    rejects,
)
from pgmult.topics import CorrelatedTopics, as_corpus
from pgmult.topics.data.corpus import simulate_words
from pgmult.topics.models import topic_model as topics_module

pytestmark = pytest.mark.slow

FEW = 300  # replicates that find gross errors: rows or sizes that are taken for others

# Five short documents, one of them empty; only the first one has the last word.
CORPUS = as_corpus([[2, 1, 2, 1], [2, 1, 1, 0], [0, 0, 0, 0], [0, 2, 2, 0], [1, 0, 3, 0]])
NIW = NormalInverseWishart(
    mean=np.array([1.0, -0.5]), strength=2.0, dof=5.0, scale=np.array([[2.0, 0.8], [0.8, 1.5]])
)
MODEL = CorrelatedTopics(num_topics=3, word_concentration=0.8, gaussian=NIW, start_sweeps=2)


def fit(state, data):
    """How well the allocation of each document goes with its words and the topics."""
    return (data.to_csr() @ state.topics.T * state.topic_counts).sum()


def spread_of_theta(state, data):
    return (MODEL.link().probs(state.psi) ** 2).sum(axis=1)


def word_probs(state, data):
    return MODEL.link().probs(state.psi)[:2] @ state.topics


STATISTICS = {
    **{
        name: lambda state, data, name=name: getattr(state, name)
        for name in ("psi", "mu", "Sigma", "topics", "topic_counts")
    },
    "log_likelihood": MODEL.log_likelihood,
    "fit": fit,
}
IDENTIFIED = {
    "log_likelihood": MODEL.log_likelihood,
    "effective_topics": MODEL.effective_topics,
    "spread of theta": spread_of_theta,
    "word_probs": word_probs,
}


# ------------------------------------------------------------------ right samplers


@pytest.mark.parametrize(
    ("model", "replicates"),
    [
        (MODEL, 1000),
        (CorrelatedTopics(2, word_concentration=1.5, block_rows=2), FEW),
        (CorrelatedTopics(num_topics=5, word_concentration=0.5, start_sweeps=0), FEW),
    ],
    ids=["3 topics", "2 topics, blocks", "5 topics"],
)
def test_correlated_topics(model, replicates):
    own = {"log_likelihood": model.log_likelihood, "theta": model.theta}
    check_model(model, CORPUS, statistics=STATISTICS | own, replicates=replicates)


def test_correlated_topics_reach_the_posterior():
    check_sbc(MODEL, CORPUS, IDENTIFIED, tune=50, thin=10, replicates=60)


# ------------------------------------------------------------------ every block's conditional


@pytest.fixture
def state():
    return MODEL.prior(np.random.default_rng(3), CORPUS)


def log_normals(mu, Sigma, psi):
    return MvNormal(mu, Sigma).log_density(psi).sum()


def psi_block(state, *, augment=None, prior=None):
    """Log joint of psi and omega given z, and the log density that `step` draws psi from."""
    link, counts = StickBreaking(), state.topic_counts
    potential = (augment or link.augment)(np.random.default_rng(4), state.psi, counts)
    reaching = counts[:, ::-1].cumsum(axis=1)[:, ::-1][:, :-1]  # N_k

    def log_joint(psi):
        # PG(omega | N, psi) / PG(omega | N, 0) = cosh(psi / 2)**N exp(-omega psi**2 / 2)
        log_omega = reaching * np.log(np.cosh(psi / 2.0)) - potential.J * psi**2 / 2.0
        likelihood = link.log_likelihood(psi, counts).sum()
        return log_normals(state.mu, state.Sigma, psi) + likelihood + log_omega.sum()

    posterior = (prior or MvNormal(state.mu, state.Sigma)).condition(potential)
    return log_joint, lambda psi: posterior.log_density(psi).sum()


def psi_points(state):
    rng = np.random.default_rng(5)
    return [state.psi, *(2.0 * rng.standard_normal(state.psi.shape) for _ in range(5))]


def test_psi_given_omega(state):
    conditional_ratio(*psi_block(state), psi_points(state))


def mu_Sigma_block(state, niw):
    posterior = niw.condition(state.psi)
    return (
        lambda point: NIW.log_density(*point) + log_normals(*point, state.psi),
        lambda point: posterior.log_density(*point),
    )


def mu_Sigma_points():
    rng = np.random.default_rng(6)
    return [NIW.sample(rng) for _ in range(6)]


def test_mu_and_Sigma_given_psi(state):
    conditional_ratio(*mu_Sigma_block(state, NIW), mu_Sigma_points())


def topics_block(prior):
    word_counts = np.array([[3, 0, 1, 0], [0, 2, 5, 1], [0, 0, 0, 0]])
    posterior = prior.condition(word_counts)
    return (
        lambda topics: (
            Dirichlet(0.8).log_density(topics).sum() + (word_counts * np.log(topics)).sum()
        ),
        lambda topics: posterior.log_density(topics).sum(),
    )


def topics_points():
    return list(np.random.default_rng(7).dirichlet(np.full(4, 2.0), size=(6, 3)))


def test_topics_given_z():
    conditional_ratio(*topics_block(Dirichlet(0.8)), topics_points())


# ------------------------------------------------------------------ broken links and priors


def changed_augment(change):
    """A stick-breaking link whose potential is `change(potential, psi, counts, rng)`."""
    right = StickBreaking()

    def augment(self, rng, psi, counts):
        return change(right.augment(rng, psi, counts), psi, counts, rng)

    return mutant(right, augment=augment)


def total_for_reaching(potential, psi, counts, rng):
    """N instead of N_k: every observation reaches every stick."""
    totals = counts.sum(axis=1, keepdims=True)
    taken = counts[:, :-1]
    rest = StickBreaking().augment(
        rng, np.moveaxis(psi[None], -1, 0).reshape(-1, 1),
        np.stack([taken, totals - taken], axis=-1).swapaxes(0, 1).reshape(-1, 2),
    )  # fmt: skip
    shape = psi.shape[::-1]
    return DiagonalPotential(rest.J.reshape(shape).T.copy(), rest.h.reshape(shape).T.copy())


BROKEN_LINKS = {
    "kappa with the wrong sign": lambda potential, psi, counts, rng: DiagonalPotential(
        potential.J, -potential.h
    ),
    "kappa without its half": lambda potential, psi, counts, rng: DiagonalPotential(
        potential.J, counts[:, :-1].astype(float)
    ),
    "N instead of N_k": total_for_reaching,
}
BROKEN_LINKS = {name: changed_augment(change) for name, change in BROKEN_LINKS.items()}


def degree_lost(self, count, average, within):
    right = NIW.condition_average(count, average, within)
    return replace(right, dof=right.dof - 1.0)


def prior_mean_forgotten(self, count, average, within):
    return replace(NIW, mean=np.zeros(2)).condition_average(count, average, within)


def scatter_around_zero(self, count, average, within):
    right = NIW.condition_average(count, average, within)
    return replace(right, scale=NIW.scale + within + count * np.outer(average, average))


def strength_kept(self, count, average, within):
    return replace(NIW.condition_average(count, average, within), strength=NIW.strength)


BROKEN_PRIORS = {
    "a degree of freedom lost": degree_lost,
    "the prior mean forgotten": prior_mean_forgotten,
    "the scatter around zero": scatter_around_zero,
    "the strength not updated": strength_kept,
}


@pytest.mark.parametrize("kind", BROKEN_LINKS)
def test_conditional_ratio_refuses_broken_links(state, kind):
    block = psi_block(state, augment=BROKEN_LINKS[kind].augment)
    rejects(conditional_ratio, *block, psi_points(state))


@pytest.mark.parametrize("kind", ["mean forgotten", "covariance for precision"])
def test_conditional_ratio_refuses_broken_gaussians(state, kind):
    prior = {
        "mean forgotten": MvNormal(np.zeros(2), state.Sigma),
        "covariance for precision": MvNormal(state.mu, np.linalg.inv(state.Sigma)),
    }[kind]
    rejects(conditional_ratio, *psi_block(state, prior=prior), psi_points(state))


@pytest.mark.parametrize("kind", BROKEN_PRIORS)
def test_conditional_ratio_refuses_broken_priors(state, kind):
    broken = mutant(NIW, condition_average=BROKEN_PRIORS[kind])
    rejects(conditional_ratio, *mu_Sigma_block(state, broken), mu_Sigma_points())


def test_conditional_ratio_refuses_another_concentration():
    rejects(conditional_ratio, *topics_block(Dirichlet(0.05)), topics_points())


# ------------------------------------------------------------------ broken samplers


BROKEN_MODELS = {
    "a degree of freedom lost": replace(MODEL, gaussian=mutant(NIW, condition_average=degree_lost)),
    "the mean of psi forgotten": mutant(
        MODEL,
        step=lambda self, rng, state, data: MODEL.step(rng, replace(state, mu=np.zeros(2)), data),
    ),
    "another concentration of words": mutant(
        MODEL,
        step=lambda self, rng, state, data: replace(MODEL, word_concentration=0.5).step(
            rng, state, data
        ),
    ),
    "the allocation simulated anew": mutant(
        MODEL,
        simulate=lambda self, rng, state, data: simulate_words(
            rng,
            np.repeat(
                np.tile(np.arange(3), data.num_documents),
                MODEL.link().simulate(rng, state.psi, data.totals).ravel(),
            ),
            state.topics,
            data,
        ),
    ),
}


@pytest.mark.parametrize("kind", BROKEN_MODELS)
def test_geweke_refuses_broken_correlated_topics(kind):
    rejects(check_geweke, BROKEN_MODELS[kind], CORPUS, statistics=STATISTICS, replicates=1000)


@pytest.mark.parametrize("broken", [forget_a_block, repeat_the_first_block])
def test_geweke_refuses_broken_blocks(broken, monkeypatch):
    broken(monkeypatch)
    model = replace(MODEL, block_rows=2)
    rejects(check_geweke, model, CORPUS, statistics=STATISTICS, replicates=FEW)


def last_topic_forgotten(counts):
    return np.concatenate([counts[:, :-1], np.zeros_like(counts[:, -1:])], axis=1)


BROKEN_COUNTS = {
    "counts of other sticks": lambda counts: counts[:, ::-1],
    "the last topic forgotten": last_topic_forgotten,
}


@pytest.mark.parametrize("kind", BROKEN_COUNTS)
def test_geweke_refuses_sticks_that_see_other_counts(kind, monkeypatch):
    right = topics_module.swing_psi

    def broken(rng, link, psi, counts, mean, cov):
        return right(rng, link, psi, np.ascontiguousarray(BROKEN_COUNTS[kind](counts)), mean, cov)

    monkeypatch.setattr(topics_module, "swing_psi", broken)
    rejects(check_geweke, MODEL, CORPUS, statistics=STATISTICS, replicates=1000)


def test_check_model_refuses_topics_that_never_move():
    """Frozen topics leave the posterior invariant; nothing but the lack of motion betrays them."""
    frozen = mutant(
        MODEL,
        step=lambda self, rng, state, data: replace(
            MODEL.step(rng, state, data), topics=state.topics
        ),
    )
    assert "entries of topics are where the chain started" in rejects(check_model, frozen, CORPUS)


def test_calibration_refuses_a_forgotten_mean_of_psi():
    broken = BROKEN_MODELS["the mean of psi forgotten"]
    rejects(check_sbc, broken, CORPUS, IDENTIFIED, tune=20, thin=5, replicates=60)


def test_the_coin_refuses_the_likelihood_of_other_sticks():
    def reversed_sticks(self, state, data):
        return MODEL.log_likelihood(replace(state, psi=state.psi[:, ::-1].copy()), data)

    check_likelihood(MODEL, CORPUS, replicates=1000)
    rejects(check_likelihood, mutant(MODEL, log_likelihood=reversed_sticks), CORPUS)

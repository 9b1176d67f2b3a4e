"""Dynamic topics: timed corpora, every block's conditional, the whole model on small data.

The joint-distribution and calibration tests of the sampler stand in tests/statistical.
"""

from dataclasses import replace

import numpy as np
import pytest
from oracle.scalar_chains import log_density, log_normalizer

from pgmult import MvNormal, NormalInverseWishart, StickBreaking, sample
from pgmult.testing import conditional_ratio, rejects
from pgmult.topics import DynamicTopics, as_corpus, as_timed_corpus
from pgmult.topics.compiled.chains import Counts
from pgmult.topics.priors.chains import ScalarChains


@pytest.fixture
def counts(rng):
    """Forty documents, one of them empty, one word never used."""
    counts = rng.poisson(0.6, size=(40, 12))
    counts[3] = 0
    counts[:, 7] = 0
    return counts


@pytest.fixture
def data(counts):
    """Years 1990 to 1995; nothing in 1993."""
    years = np.array([1990, 1991, 1992, 1994, 1995])[np.arange(40) % 5]
    return as_timed_corpus(counts, years, [f"word{v}" for v in range(12)])


# ------------------------------------------------------------------ the data


def test_times_become_steps_and_gaps_stay(data, counts):
    assert data.num_times == 6
    np.testing.assert_array_equal(data.time_labels, np.arange(1990, 1996))
    np.testing.assert_array_equal(MODEL.coords(data)["time"], data.time_labels)
    assert MODEL.coords(data)["word"][2] == "word2"
    np.testing.assert_array_equal(data.times[:5], [0, 1, 2, 4, 5])
    np.testing.assert_array_equal(data.totals, counts.sum(axis=1))
    assert data.num_words == 12
    totals = counts.sum(axis=0)[data.order]
    assert (np.diff(totals) <= 0).all()
    assert totals[-1] == 0


def test_words_by_time_are_pairs(data, counts):
    pairs = data.by_version().to_csr().toarray().reshape(40, 6, 12)
    for d in range(40):
        np.testing.assert_array_equal(pairs[d, data.times[d]], counts[d])
    assert pairs.sum() == counts.sum()


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([0, 1], "one entry for each of the 3 documents"),
        ([0, 1, 1.5], r"whole numbers of steps, got 1.5 at position 2 \(round"),
        ([0, 1, np.nan], "times must be finite, got nan"),
        ([0, 1, 2**31], "are they time stamps"),
    ],
)
def test_bad_times_are_refused(times, message):
    with pytest.raises(ValueError, match=message):
        as_timed_corpus(np.ones((3, 2), dtype=int), times)


# ------------------------------------------------------------------ every block's conditional

NIW = NormalInverseWishart(np.array([0.8, -0.5]), 2.0, 5.0, np.array([[2.0, 0.8], [0.8, 1.5]]))
MODEL = DynamicTopics(
    3, gaussian=NIW, persistence=0.8, initial_scale=2.0, drift_scale=0.4, prevalence_scale=0.5,
    start_sweeps=2,
)  # fmt: skip
WORDS = MODEL.words(None)


@pytest.fixture
def state(data):
    return MODEL.prior(np.random.default_rng(3), data)


def others(data, count=5, seed=5):
    rng = np.random.default_rng(seed)
    return [MODEL.prior(rng, data) for _ in range(count)]


def log_inverse_gamma(var, shape, scale):
    return np.sum(-(shape + 1.0) * np.log(var) - scale / var)


def words_block(state, data, model=MODEL):
    """Log joint of variances, eta and surrogate data where their noise stays, and what slices see.

    With the volume of eta by that noise, from the dense precision of each chain.
    """
    rng = np.random.default_rng(4)
    allocation = np.random.default_rng(6).poisson(1.0, size=(3, 6, 12))
    allocation[:, 3] = 0
    link = StickBreaking(order=data.order)
    counts = Counts(allocation[..., data.order[:-1]] * 1.0, link.totals(allocation) * 1.0)
    chains = ScalarChains(state.base, state.initial_var, state.drift_var, 6, 0.8)
    seen = chains.surrogate(rng, state.eta, counts)
    noise = chains.condition(seen).noise_of(state.eta)

    def log_joint(point):
        chains = ScalarChains(state.base, point.initial_var, point.drift_var, 6, 0.8)
        eta = chains.condition(seen).place(noise)
        deviation = eta - state.base
        initial, drift = point.initial_var[:, None], point.drift_var[:, None, None]
        innovation = deviation[:, 1:] - 0.8 * deviation[:, :-1]
        log_eta = -0.5 * np.sum(deviation[:, 0] ** 2 / initial + np.log(initial))
        log_eta -= 0.5 * np.sum(innovation**2 / drift + np.log(drift))
        steps = np.eye(6) - 0.8 * np.eye(6, k=-1)
        for k in range(3):
            weights = np.repeat(1.0 / np.append(point.initial_var[k], point.drift_var[k]), [1, 5])
            precision = steps.T @ (weights[:, None] * steps)
            for v in range(11):
                log_eta -= 0.5 * np.linalg.slogdet(precision + np.diag(seen.J[k, :, v]))[1]
        log_surrogate = np.sum(eta * (seen.h - 0.5 * seen.J * eta))
        log_priors = log_inverse_gamma(point.initial_var, 2.0, 2.0)
        log_priors += log_inverse_gamma(point.drift_var, 2.0, 0.4)
        return log_priors + log_eta + log_surrogate + link.log_likelihood(eta, allocation).sum()

    def log_conditional(point):
        variances = point.initial_var, point.drift_var
        chains = ScalarChains(state.base, *variances, 6, model.persistence)
        everywhere = np.ones(3, dtype=bool)
        log_vars = log_inverse_gamma(point.initial_var, model.initial_shape, model.initial_scale)
        log_vars += log_inverse_gamma(point.drift_var, model.drift_shape, model.drift_scale)
        given = chains.condition(seen).log_place(noise, counts, everywhere)
        return log_vars + given.sum()

    return log_joint, log_conditional


def test_variances_given_surrogate_data(state, data):
    conditional_ratio(*words_block(state, data), [state, *others(data)])


@pytest.mark.parametrize("change", [{"persistence": 1.0}, {"drift_scale": 0.1}])
def test_conditional_ratio_refuses_other_chains(state, data, change):
    block = words_block(state, data, replace(MODEL, **change))
    rejects(conditional_ratio, *block, [state, *others(data)])


@pytest.mark.parametrize("forgotten", ["counts", "normaliser"])
def test_conditional_ratio_refuses_variances_that_forget(monkeypatch, state, data, forgotten):
    right = ScalarChains.log_place

    def log_place(self, noise, counts, rows):
        if forgotten == "counts" or not counts.reaching.any():
            return right(self, noise, Counts(*(0.0 * of for of in counts)), rows)
        return right(self, noise, counts, rows) - log_normalizer(self)

    monkeypatch.setattr(ScalarChains, "log_place", log_place)
    rejects(conditional_ratio, *words_block(state, data), [state, *others(data)])


def base_block(state, change=lambda mean, var: (mean, var)):
    mean, var = change(*WORDS.base_given(state.eta, state.initial_var, state.drift_var))

    def log_joint(base):
        centre = StickBreaking().inverse(np.full(12, 1.0 / 12))
        chains = ScalarChains(base, state.initial_var, state.drift_var, 6, 0.8)
        return log_density(chains, state.eta).sum() - np.sum((base - centre) ** 2) / 8.0

    return log_joint, lambda base: -0.5 * np.sum((base - mean) ** 2) / var


def test_base_given_eta(state, data):
    points = [state.base, *(other.base for other in others(data))]
    conditional_ratio(*base_block(state), points)
    for change in (lambda mean, var: (0.9 * mean, var), lambda mean, var: (mean, 1.1 * var)):
        rejects(conditional_ratio, *base_block(state, change), points)


def psi_block(state, data, times):
    potential = StickBreaking().augment(np.random.default_rng(4), state.psi, state.topic_counts)
    reaching = state.topic_counts[:, ::-1].cumsum(axis=1)[:, ::-1][:, :-1]

    def log_joint(psi):
        log_omega = reaching * np.log(np.cosh(psi / 2.0)) - potential.J * psi**2 / 2.0
        likelihood = StickBreaking().log_likelihood(psi, state.topic_counts).sum()
        prior = sum(
            MvNormal(state.mu[t], state.Sigma).log_density(row)
            for t, row in zip(data.times, psi, strict=True)
        )
        return prior + likelihood + log_omega.sum()

    posterior = MvNormal(state.mu[times], state.Sigma).condition(potential)
    return log_joint, lambda psi: posterior.log_density(psi).sum()


def test_psi_given_omega(state, data):
    points = [state.psi, *(other.psi for other in others(data))]
    conditional_ratio(*psi_block(state, data, data.times), points)
    rejects(conditional_ratio, *psi_block(state, data, 5 - data.times), points)


# ------------------------------------------------------------------ the model


def test_topics_hold_the_words_in_their_places(data, state):
    """Sticks break in the data's order of words, and probabilities come back in the corpus's."""
    topics = state.topics
    assert topics.shape == (3, 6, 12)
    np.testing.assert_allclose(topics.sum(axis=-1), 1.0)
    shares = 1.0 / (1.0 + np.exp(-state.eta))
    np.testing.assert_allclose(topics[:, :, data.order[0]], shares[:, :, 0])
    second = shares[:, :, 1] * (1.0 - shares[:, :, 0])
    np.testing.assert_allclose(topics[:, :, data.order[1]], second)


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
def test_a_run_with_empty_times_answers():
    rng = np.random.default_rng(0)
    data = as_timed_corpus(rng.poisson(0.7, (30, 12)), 2000 + 2 * (np.arange(30) // 10))
    run = sample(
        DynamicTopics(3), data, keep=("topics", "theta", "topic_shares", "prevalence"),
        draws=12, tune=5, chains=2, random_seed=0, progressbar=False,
    )  # fmt: skip
    by_time = run.shares("time")
    assert by_time.labels["time"] == [2000, 2002, 2004], "of times with documents"
    with pytest.raises(ValueError, match="must have topics that are the same at all times"):
        run.merge({"both": [1, 2]})
    words = run.topics(4)
    assert [len(topic) for topic in words] == [4, 4, 4]
    assert all(len(topic) == 4 for topic in run.topics(4, by="frex"))
    assert len(run.compare(run).pairs) == 3
    assert "topics" in str(run.report())
    shares = np.asarray(run["prevalence"])
    np.testing.assert_allclose(shares.sum(axis=3), 1.0)
    assert (shares[:, :, 1::2].std(axis=(0, 1)) > 0.0).all(), "of years without documents, too"


def test_prevalence_is_the_share_of_each_time(data, state):
    shares = MODEL.prevalence(state, data)
    assert shares.shape == (6, 3)
    expected = MODEL.link().probs(state.mu[3])  # no documents
    np.testing.assert_allclose(shares[3], expected)
    here = state.topic_counts[data.times == 4].sum(axis=0)
    np.testing.assert_allclose(shares[4], here / here.sum())


def test_a_corpus_without_times_is_refused(counts):
    with pytest.raises(TypeError, match="need the documents' times, got Corpus"):
        sample(MODEL, as_corpus(counts), draws=1, tune=0, chains=1, progressbar=False)

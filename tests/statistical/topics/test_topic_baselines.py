"""The samplers of the baseline topic models are right, and the harness refuses broken ones."""

from dataclasses import replace

import numpy as np
import pytest
from same_draws import forget_a_block

from pgmult import NormalInverseWishart
from pgmult.sampling.blocks import Sums
from pgmult.testing import check_geweke, check_likelihood, check_model, check_sbc, mutant, rejects
from pgmult.topics import DynamicTopics, LogisticNormalTopics, as_corpus, as_timed_corpus

pytestmark = pytest.mark.slow

FEW = 300  # replicates that find gross errors: rows or sizes that are taken for others

# Five short documents, one of them empty; only the first one has the last word.
CORPUS = as_corpus([[2, 1, 2, 1], [2, 1, 1, 0], [0, 0, 0, 0], [0, 2, 2, 0], [1, 0, 3, 0]])


# ------------------------------------------------------------------ the softmax model

NIW = NormalInverseWishart(
    mean=np.array([1.0, -0.5, 0.2]),
    strength=2.0,
    dof=6.0,
    scale=np.array([[2.0, 0.8, 0.1], [0.8, 1.5, -0.3], [0.1, -0.3, 1.8]]),
)
SOFTMAX = LogisticNormalTopics(num_topics=3, word_concentration=0.8, gaussian=NIW, start_sweeps=2)


def fit(state, data):
    """How well the allocation of each document goes with its words and the topics."""
    return (data.to_csr() @ state.topics.T * state.topic_counts).sum()


SOFTMAX_STATISTICS = {
    **{
        name: lambda state, data, name=name: getattr(state, name)
        for name in ("psi", "mu", "Sigma", "topics", "topic_counts")
    },
    "theta": SOFTMAX.theta,
    "log_likelihood": SOFTMAX.log_likelihood,
    "fit": fit,
}


@pytest.mark.parametrize(
    ("model", "replicates"),
    [
        (SOFTMAX, 1000),
        (LogisticNormalTopics(5, word_concentration=0.5, start_sweeps=0, block_rows=2), FEW),
    ],
    ids=["3 topics", "5 topics, blocks"],
)
def test_logistic_normal_topics(model, replicates):
    own = {**SOFTMAX_STATISTICS, "theta": model.theta}
    check_model(model, CORPUS, replicates=replicates, statistics=own)


def test_logistic_normal_topics_reach_the_posterior():
    identified = {
        "log_likelihood": SOFTMAX.log_likelihood,
        "effective_topics": SOFTMAX.effective_topics,
        "spread of theta": lambda state, data: (SOFTMAX.theta(state, data) ** 2).sum(axis=1),
        "word_probs": lambda state, data: SOFTMAX.theta(state, data)[:2] @ state.topics,
    }
    check_sbc(SOFTMAX, CORPUS, identified, tune=50, thin=10, replicates=60)


def psi_from(change):
    """`SOFTMAX` whose psi is drawn from `change(state, topic_counts)` instead."""
    return mutant(
        SOFTMAX,
        _sample_psi=lambda self, rng, state, counts, data: SOFTMAX._sample_psi(
            rng, *change(state, counts), data
        ),
    )


def centred_psi(self, rng, state, counts, data):
    psi = SOFTMAX._sample_psi(rng, state, counts, data)
    return psi - psi.mean(axis=1, keepdims=True)


BROKEN_SOFTMAX = {
    "counts of other topics": psi_from(lambda state, counts: (state, counts[:, ::-1].copy())),
    "covariance for precision": psi_from(
        lambda state, counts: (replace(state, Sigma=np.linalg.inv(state.Sigma)), counts)
    ),
    "psi centred in each document": mutant(SOFTMAX, _sample_psi=centred_psi),
}


@pytest.mark.parametrize("kind", BROKEN_SOFTMAX)
def test_geweke_refuses_broken_logistic_normal_topics(kind):
    rejects(
        check_geweke, BROKEN_SOFTMAX[kind], CORPUS, statistics=SOFTMAX_STATISTICS, replicates=1000
    )


def test_the_coin_refuses_the_likelihood_of_other_topics():
    def reversed_topics(self, state, data):
        return SOFTMAX.log_likelihood(replace(state, psi=state.psi[:, ::-1].copy()), data)

    check_likelihood(SOFTMAX, CORPUS, replicates=1000)
    rejects(check_likelihood, mutant(SOFTMAX, log_likelihood=reversed_topics), CORPUS)


# ------------------------------------------------------------------ the dynamic model

# Six documents at the first, second and fourth of four times; one is empty.
TIMED = as_timed_corpus(
    [[2, 1, 2, 1], [2, 1, 1, 0], [0, 0, 0, 0], [0, 2, 2, 0], [1, 0, 3, 0], [0, 3, 1, 1]],
    times=[0, 0, 1, 1, 3, 3],
)
DYNAMIC = DynamicTopics(
    3,
    gaussian=NormalInverseWishart(np.array([0.8, -0.5]), 2.0, 5.0, 2.0 * np.eye(2)),
    persistence=0.5,
    initial_scale=2.0,
    drift_scale=1.0,
    prevalence_scale=1.0,
    start_sweeps=2,
)
SHORT = as_timed_corpus([[2, 1, 0], [0, 3, 1]], times=[7, 7])


def standard_innovations(model, state):
    """Innovations of eta in units of their standard deviation, squared and summed by topic."""
    deviation = state.eta - state.base
    innovation = deviation[:, 1:] - model.persistence * deviation[:, :-1]
    return (innovation**2).sum(axis=(1, 2)) / state.drift_var


def standard_steps(state):
    """Steps of mu in units of their standard deviation, squared and summed."""
    steps = np.diff(state.mu, axis=0)
    return np.sum(steps @ np.linalg.inv(state.Sigma) * steps) / state.prevalence_drift


def fit_by_time(model, state, data):
    """How well the allocation of each document goes with its words and the topics of its time."""
    topics = state.topics.reshape(model.num_topics, -1)
    return (data.by_version().to_csr() @ topics.T * state.topic_counts).sum()


def dynamic_statistics(model):
    fields = (
        "psi", "mu", "Sigma", "prevalence_drift", "eta", "base", "initial_var", "drift_var",
        "topic_counts",
    )  # fmt: skip
    return {
        **{name: lambda state, data, name=name: getattr(state, name) for name in fields},
        "standard innovations": lambda state, data: standard_innovations(model, state),
        "standard steps": lambda state, data: standard_steps(state),
        "log_likelihood": model.log_likelihood,
        "fit": lambda state, data: fit_by_time(model, state, data),
    }


@pytest.mark.parametrize(
    ("model", "data", "replicates"),
    [
        (DYNAMIC, TIMED, 600),
        (
            DynamicTopics(2, drift_scale=0.5, prevalence_scale=0.5, start_sweeps=0, block_rows=2),
            TIMED,
            FEW,
        ),
        (DynamicTopics(2, start_sweeps=1), SHORT, FEW),
    ],
    ids=["3 topics that return", "2 topics that walk, blocks", "one time"],
)
def test_dynamic_topics(model, data, replicates):
    check_model(model, data, replicates=replicates, statistics=dynamic_statistics(model))


def test_dynamic_topics_reach_the_posterior():
    identified = {
        "log_likelihood": DYNAMIC.log_likelihood,
        "effective_topics": DYNAMIC.effective_topics,
        "prevalence_drift": lambda state, data: state.prevalence_drift,
        "base": lambda state, data: state.base,
        "sum of drift_var": lambda state, data: np.log(state.drift_var).sum(),
        "sum of initial_var": lambda state, data: np.log(state.initial_var).sum(),
        "word_probs": lambda state, data: np.einsum(
            "dk,kdv->dv", DYNAMIC.theta(state, data), state.topics[:, data.times]
        )[:2],
    }
    check_sbc(DYNAMIC, TIMED, identified, tune=40, thin=20, draws=3, replicates=60)


def words_at_reversed_times(self, rng, state, sums, data, ask):
    counts, words = sums.exact
    reversed_times = words.reshape(state.topics.shape)[:, ::-1].reshape(words.shape)
    sums = Sums((counts, reversed_times), sums.rounded)
    return DYNAMIC.shared_step(rng, state, sums, data, ask)


def eta_of_other_variances(self, rng, state, word_counts, data):
    initial_var, drift_var, _ = WORDS.sample_chains(rng, state, word_counts, data)
    return initial_var, drift_var, WORDS.sample_chains(rng, state, word_counts, data)[2]


def means_of_another_drift(self, rng, state, sums, data):
    def given():
        return DYNAMIC.psi_mean.given(rng, state, sums, data)

    return {**given(), "prevalence_drift": given()["prevalence_drift"]}


def means_of_the_first_time(self, rng, state, data):
    still = np.repeat(state.mu[:1], len(state.mu), axis=0)
    return DYNAMIC.step(rng, replace(state, mu=still), data)


def broken_step(**attributes):
    """`DYNAMIC` with other parts of its step; prior and data stay what they are."""
    return mutant(
        DYNAMIC,
        prior=lambda self, rng, data: DYNAMIC.prior(rng, data),
        simulate=lambda self, rng, state, data: DYNAMIC.simulate(rng, state, data),
        **attributes,
    )


def broken_words(**attributes):
    """`DYNAMIC` with other moves of its words."""
    words = mutant(WORDS, **attributes)
    return broken_step(words=lambda self, data: words)


WORDS = DYNAMIC.words(TIMED)
WALK = replace(WORDS, persistence=1.0)
BROKEN_DYNAMIC = {
    "words at reversed times": broken_step(shared_step=words_at_reversed_times),
    "eta of other variances": broken_words(sample_chains=eta_of_other_variances),
    "means of another drift": broken_step(
        psi_mean=mutant(DYNAMIC.psi_mean, given=means_of_another_drift)
    ),
    "means of the first time": broken_step(step=means_of_the_first_time),
    "base of walks": broken_words(base_given=WALK.base_given),
}


@pytest.mark.parametrize("kind", BROKEN_DYNAMIC)
def test_geweke_refuses_broken_dynamic_topics(kind):
    statistics = dynamic_statistics(DYNAMIC)
    rejects(check_geweke, BROKEN_DYNAMIC[kind], TIMED, statistics=statistics, replicates=600)


def test_geweke_refuses_dynamic_topics_that_forget_a_block(monkeypatch):
    forget_a_block(monkeypatch)
    statistics = dynamic_statistics(DYNAMIC)
    model = replace(DYNAMIC, block_rows=2)
    rejects(check_geweke, model, TIMED, statistics=statistics, replicates=FEW)


def test_the_coin_refuses_the_likelihood_of_other_times():
    def reversed_times(self, state, data):
        return DYNAMIC.log_likelihood(replace(state, topics=state.topics[:, ::-1].copy()), data)

    check_likelihood(DYNAMIC, TIMED, replicates=1000)
    rejects(check_likelihood, mutant(DYNAMIC, log_likelihood=reversed_times), TIMED)

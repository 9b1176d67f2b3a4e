"""The samplers of the baseline topic models are right, and the harness refuses broken ones."""

from dataclasses import replace

import numpy as np
import pytest

from pgmult import LogisticNormalTopics, NormalInverseWishart, as_corpus
from pgmult.testing import check_geweke, check_likelihood, check_model, check_sbc, mutant, rejects

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


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        SOFTMAX,
        LogisticNormalTopics(num_topics=2, word_concentration=1.5),
        LogisticNormalTopics(num_topics=5, word_concentration=0.5, start_sweeps=0),
    ],
    ids=["3 topics", "2 topics", "5 topics"],
)
def test_logistic_normal_topics(model):
    check_model(
        model, CORPUS, replicates=2000, statistics={**SOFTMAX_STATISTICS, "theta": model.theta}
    )


@pytest.mark.slow
def test_logistic_normal_topics_reach_the_posterior():
    identified = {
        "log_likelihood": SOFTMAX.log_likelihood,
        "effective_topics": SOFTMAX.effective_topics,
        "spread of theta": lambda state, data: (SOFTMAX.theta(state, data) ** 2).sum(axis=1),
        "word_probs": lambda state, data: SOFTMAX.theta(state, data)[:2] @ state.topics,
    }
    check_sbc(SOFTMAX, CORPUS, identified, tune=50, thin=10, replicates=300)


def psi_from(change):
    """`SOFTMAX` whose psi is drawn from `change(state, topic_counts)` instead."""
    return mutant(
        SOFTMAX,
        _sample_psi=lambda self, rng, state, counts: SOFTMAX._sample_psi(
            rng, *change(state, counts)
        ),
    )


def centred_psi(self, rng, state, counts):
    psi = SOFTMAX._sample_psi(rng, state, counts)
    return psi - psi.mean(axis=1, keepdims=True)


def degree_lost(self, rows):
    right = NIW.condition(rows)
    return replace(right, dof=right.dof - 1.0)


BROKEN_SOFTMAX = {
    "counts of other topics": psi_from(lambda state, counts: (state, counts[:, ::-1].copy())),
    "every token twice": psi_from(lambda state, counts: (state, 2 * counts)),
    "mean of psi forgotten": psi_from(
        lambda state, counts: (replace(state, mu=np.zeros(3)), counts)
    ),
    "covariance for precision": psi_from(
        lambda state, counts: (replace(state, Sigma=np.linalg.inv(state.Sigma)), counts)
    ),
    "psi centred in each document": mutant(SOFTMAX, _sample_psi=centred_psi),
    "a degree of freedom lost": replace(SOFTMAX, gaussian=mutant(NIW, condition=degree_lost)),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", BROKEN_SOFTMAX)
def test_geweke_refuses_broken_logistic_normal_topics(kind):
    rejects(check_geweke, BROKEN_SOFTMAX[kind], CORPUS, statistics=SOFTMAX_STATISTICS)


def test_the_coin_refuses_the_likelihood_of_other_topics():
    def reversed_topics(self, state, data):
        return SOFTMAX.log_likelihood(replace(state, psi=state.psi[:, ::-1].copy()), data)

    check_likelihood(SOFTMAX, CORPUS, replicates=1000)
    rejects(check_likelihood, mutant(SOFTMAX, log_likelihood=reversed_topics), CORPUS)

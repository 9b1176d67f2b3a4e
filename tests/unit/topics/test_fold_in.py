"""Documents folded into fixed topics: against quadrature, and independent of their neighbours."""

import numpy as np
import pytest

from pgmult import Posterior, StickBreaking, load
from pgmult.compiled.rows import row_threads
from pgmult.sampling import Origin
from pgmult.topics import LDA, CorrelatedTopics, LogisticNormalTopics, as_corpus, fold_in

TOPICS = np.array([[0.6, 0.3, 0.05, 0.05], [0.1, 0.1, 0.7, 0.1], [0.2, 0.2, 0.2, 0.4]])
MU, SIGMA = np.array([-0.4, 0.3]), np.array([[1.5, -0.8], [-0.8, 1.2]])
COUNTS = np.array([[4, 1, 0, 2], [0, 0, 9, 0], [0, 0, 0, 0], [2, 2, 2, 2], [0, 1, 0, 0]])


def repeated(draws, model=None, **others):
    """A posterior all of whose draws are the same."""
    globals_ = {"topics": TOPICS, "mu": MU, "Sigma": SIGMA} | others
    return Posterior(
        {
            name: np.broadcast_to(value, (1, draws, *value.shape))
            for name, value in globals_.items()
        },
        origin=Origin.of(model or CorrelatedTopics(3), None),
    )


def exact_moments(link):
    """Mean and standard deviation of theta given each document, by a grid over both sticks."""
    side = np.linspace(-9.0, 9.0, 400)
    psi = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
    theta = link.probs(psi)
    deviation = psi - MU
    log_prior = -0.5 * np.einsum("gi,ij,gj->g", deviation, np.linalg.inv(SIGMA), deviation)
    log_weights = log_prior[:, None] + np.log(theta @ TOPICS) @ COUNTS.T
    weights = np.exp(log_weights - log_weights.max(axis=0))
    weights /= weights.sum(axis=0)
    mean = weights.T @ theta
    return mean, np.sqrt(weights.T @ theta**2 - mean**2)


@pytest.mark.parametrize("order", [None, (2, 0, 1)])
def test_proportions_follow_their_posterior(order, tmp_path):
    link = StickBreaking(order)
    draws = 6000
    repeated(draws, CorrelatedTopics(3, order=order)).save(tmp_path / "run")
    folded = fold_in(load(tmp_path / "run"), as_corpus(COUNTS), max_draws=draws, sweeps=3)
    theta = np.array([draw.theta for draw in folded])
    mean, sd = exact_moments(link)
    batches = theta.reshape(30, -1, *mean.shape).mean(axis=1)
    error = batches.std(axis=0, ddof=1) / np.sqrt(len(batches))
    assert (np.abs(theta.mean(axis=0) - mean) < 5.0 * error).all()
    assert (error < 0.1 * sd).all()
    np.testing.assert_allclose(theta.std(axis=0), sd, rtol=0.1)


def test_a_document_depends_on_its_words_alone():
    corpus = as_corpus(COUNTS)

    def last(corpus, **kwargs):
        return list(fold_in(repeated(12), corpus, max_draws=5, **kwargs))[-1].theta

    theta = last(corpus)
    rows = [3, 0, 3, 1]
    np.testing.assert_array_equal(last(COUNTS[rows]), theta[rows])
    with row_threads(2, grain=1):
        np.testing.assert_array_equal(last(corpus), theta)
    assert (last(corpus, random_seed=1) != theta).any()
    assert len({tuple(row) for row in theta}) == len(theta)


def test_draws_are_spread_over_the_chain():
    folded = list(fold_in(repeated(11), as_corpus(COUNTS), max_draws=3))
    assert [draw.draw for draw in folded] == [0, 5, 10]
    np.testing.assert_array_equal(folded[0].topics, TOPICS)


def test_a_word_that_no_topic_holds_says_nothing():
    posterior = repeated(4000, topics=TOPICS * [1.0, 1.0, 1.0, 0.0])
    corpus = as_corpus([[0, 0, 0, 6], [0, 0, 0, 0]])
    theta = np.array([draw.theta for draw in fold_in(posterior, corpus, max_draws=4000)])
    error = theta.std(axis=0) / np.sqrt(400)
    assert (np.abs(theta[:, 0].mean(axis=0) - theta[:, 1].mean(axis=0)) < 5 * error[0]).all()


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="posterior's 4 words"):
        next(fold_in(repeated(3), as_corpus(np.ones((2, 5), int))))
    with pytest.raises(ValueError, match="max_draws"):
        next(fold_in(repeated(3), as_corpus(COUNTS), max_draws=0))
    broken = repeated(3, Sigma=np.array([[1.0, 3.0], [3.0, 1.0]]))
    with pytest.raises(ValueError, match="positive definite"):
        next(fold_in(broken, as_corpus(COUNTS)))


def test_other_models_and_none_are_refused():
    for model in (LDA(3), LogisticNormalTopics(3)):
        with pytest.raises(ValueError, match=f"of CorrelatedTopics or StructuralTopics, got .*{type(model).__name__}"):
            next(fold_in(repeated(3, model), as_corpus(COUNTS)))
    draws = dict(repeated(3))
    with pytest.raises(ValueError, match="must know its model, got a plain dict"):
        next(fold_in(draws, as_corpus(COUNTS)))
    with pytest.raises(ValueError, match="must know its model, and these draws came without"):
        next(fold_in(Posterior(draws), as_corpus(COUNTS)))

"""The correlated topic model by variational EM: against the generic core, quadrature and itself."""

import dataclasses

import numpy as np
import pytest
from oracle.correlated_topics import CorrelatedDocuments
from scipy.special import logsumexp, softmax

from examples.papers.wang2013.laplace import fit_laplace
from examples.papers.wang2013.variational_ctm import CTMFit, fit_ctm
from pgmult.compiled.rows import row_threads
from pgmult.topics import LogisticNormalTopics, as_corpus, split_tokens
from pgmult.topics.scores.completion import completion_score, unigram_log_predictive

pytestmark = pytest.mark.slow  # most need kernels that no other test does: nine seconds


def problem(seed=0, num_documents=11, num_topics=3, num_words=9, tokens=30):
    """Counts, one row of them empty and one long, and a fit that nobody fitted."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(num_words, 0.4), size=num_topics) + 1e-4
    topics /= topics.sum(axis=1, keepdims=True)
    mu = rng.normal(size=num_topics)
    root = rng.normal(size=(num_topics, num_topics))
    Sigma = root @ root.T + 0.5 * np.eye(num_topics)
    theta = softmax(rng.multivariate_normal(mu, Sigma, size=num_documents), axis=1)
    totals = np.full(num_documents, tokens)
    totals[1], totals[2] = 0, 40 * tokens
    counts = np.array([rng.multinomial(n, p) for n, p in zip(totals, theta @ topics, strict=True)])
    return counts, CTMFit(LogisticNormalTopics(num_topics), topics, mu, Sigma)


@pytest.fixture(scope="module")
def given():
    return problem()


# ------------------------------------------------------------------------- the E-step


def test_batch_agrees_with_the_generic_core(given):
    # given q(z), the core's q(eta); given q(eta), the oracle's q(z): a fixed point of their turns
    counts, fit = given
    found = fit.infer(counts, tolerance=1e-11, max_steps=5000)
    oracle = CorrelatedDocuments(counts, fit.topics, fit.mu, fit.Sigma)
    start, _ = oracle.start()
    f = oracle.objectives("eta", {}, found.topic_counts)
    q = fit_laplace(f, start["eta"], tolerance=1e-11, max_iterations=500)
    np.testing.assert_allclose(found.mean, q.mean, rtol=0, atol=1e-8)
    expected = oracle.update_rest({"eta": q}, None)
    np.testing.assert_allclose(found.topic_counts, expected, rtol=1e-8, atol=1e-8)
    for d in range(len(counts)):
        np.testing.assert_allclose(found.cov(d), q.cov[d], rtol=1e-7, atol=1e-8)
        np.testing.assert_allclose(found.var[d], np.diagonal(q.cov[d]), rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(found.level, oracle.levels(q), rtol=1e-9, atol=1e-9)


def test_levels_against_quadrature():
    # two topics: only eta_1 - eta_2 matters, so the evidence is one integral
    counts, fit = problem(seed=4, num_topics=2, num_documents=8)
    mean = fit.mu[0] - fit.mu[1]
    var = fit.Sigma[0, 0] + fit.Sigma[1, 1] - 2.0 * fit.Sigma[0, 1]
    grid = np.linspace(-12.0, 12.0, 20001) * np.sqrt(var) + mean
    theta = softmax(np.column_stack([grid, np.zeros_like(grid)]), axis=1)
    log_prior = -0.5 * ((grid - mean) ** 2 / var + np.log(2.0 * np.pi * var))
    joint = counts @ np.log(theta @ fit.topics).T + log_prior
    evidence = logsumexp(joint, axis=1) + np.log(grid[1] - grid[0])
    weights = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    found = fit.infer(counts, max_steps=5000)
    np.testing.assert_allclose(found.level[1], evidence[1], atol=1e-9)  # the empty document
    assert np.abs(found.level - evidence).max() < 0.6
    np.testing.assert_allclose(found.theta(), weights @ theta, atol=0.08)


def test_theta_is_the_average_over_q(given):
    counts, fit = given
    found = fit.infer(counts)
    rng = np.random.default_rng(0)
    theta = found.theta()
    np.testing.assert_allclose(theta.sum(axis=1), 1.0)
    for d in (0, 1, 2):
        draws = rng.multivariate_normal(found.mean[d], found.cov(d), size=20000)
        expected = softmax(draws, axis=1)
        np.testing.assert_allclose(
            theta[d], expected.mean(axis=0), atol=5 * expected.std(axis=0).max() / np.sqrt(64)
        )
    assert np.abs(theta[0] - softmax(found.mean[0])).max() > 1e-4  # not the plug-in


def test_empty_documents_have_the_prior(given):
    counts, fit = given
    found = fit.infer(counts)
    np.testing.assert_allclose(found.mean[1], fit.mu, atol=1e-10)
    np.testing.assert_allclose(found.cov(1), fit.Sigma, rtol=1e-9)
    assert found.topic_counts[1].sum() == 0.0
    np.testing.assert_allclose(found.topic_counts.sum(axis=1), counts.sum(axis=1))


def test_no_start_diverges(given):
    counts, fit = given
    fit = dataclasses.replace(fit, mu=np.array([40.0, 0.0, -40.0]))
    found = fit.infer(1000 * counts, max_steps=2000)
    assert np.isfinite(found.mean).all()
    assert (found.var > 0).all()
    assert np.isfinite(found.level).all()


def test_documents_do_not_depend_on_each_other_or_on_threads(given):
    counts, fit = given
    together = fit.infer(counts)
    with row_threads(3, grain=1):
        split = fit.infer(counts)
        theta = split.theta()
    np.testing.assert_array_equal(together.mean, split.mean)
    np.testing.assert_array_equal(together.level, split.level)
    np.testing.assert_array_equal(together.theta(), theta)
    alone = fit.infer(counts[4:5])
    np.testing.assert_array_equal(together.mean[4], alone.mean[0])
    np.testing.assert_array_equal(together.var[4], alone.var[0])


# ------------------------------------------------------------------------- EM


@pytest.fixture(scope="module")
def corpus():
    return as_corpus(problem(seed=2, num_documents=80, num_words=20, tokens=60)[0])


def test_the_m_step_is_a_maximum_of_the_objective(corpus):
    # expected log joint of the E-step as a function of topics, mu and Sigma: any move lowers it
    model = LogisticNormalTopics(3, word_concentration=0.3)
    fit = fit_ctm(model, corpus, random_seed=0, max_iterations=3)
    q = fit.infer(corpus)
    best = fit._maximized(q)

    def expected(fit):
        precision, gap = np.linalg.inv(fit.Sigma), q.mean - fit.mu
        scatter = gap.T @ gap + q._cov_sum
        log_det = np.linalg.slogdet(precision)[1]
        gaussian = 0.5 * (len(gap) * log_det - np.sum(precision * scatter))
        return gaussian + np.sum(q._word_counts * np.log(fit.topics)) + fit._log_prior()

    rng = np.random.default_rng(0)
    level = expected(best)
    for scale in (1e-1, 1e-2, 1e-3):
        tilted = best.topics * np.exp(scale * rng.normal(size=best.topics.shape))
        root = np.linalg.cholesky(best.Sigma) @ (np.eye(3) + scale * rng.normal(size=(3, 3)))
        moved = [
            {"topics": tilted / tilted.sum(axis=1, keepdims=True)},
            {"mu": best.mu + scale * rng.normal(size=3)},
            {"Sigma": root @ root.T},
        ]
        for change in moved:
            assert expected(dataclasses.replace(best, **change)) < level


def test_held_out_words_are_more_probable_than_under_one_distribution(corpus):
    training, held_out = split_tokens(corpus, documents=40)
    fit = fit_ctm(LogisticNormalTopics(3), training, random_seed=0)
    score = completion_score([(fit.theta(training), fit.topics)], held_out)
    base = unigram_log_predictive(training, held_out)
    assert score.log_predictive > base.log_predictive + 2 * base.standard_error


def test_recovers_topics_that_are_apart():
    rng = np.random.default_rng(3)
    topics = np.kron(np.eye(3), np.full(5, 0.2))
    theta = softmax(rng.multivariate_normal(np.zeros(3), 2.0 * np.eye(3), size=150), axis=1)
    counts = np.array([rng.multinomial(60, p) for p in theta @ topics])
    fit = fit_ctm(LogisticNormalTopics(3), counts, random_seed=0)
    match = np.argmax(fit.topics @ topics.T, axis=1)
    assert sorted(match) == [0, 1, 2]
    inverse = np.argsort(match)
    assert np.abs(fit.theta(counts)[:, inverse] - theta).mean() < 0.06


def test_bad_input(given, corpus):
    counts, fit = given
    model = LogisticNormalTopics(3)
    with pytest.raises(ValueError, match="at least one token"):
        fit_ctm(model, np.zeros((3, 4), dtype=int))
    with pytest.raises(ValueError, match="must have the fit's 9 words"):
        fit.infer(counts[:, :5])
    impossible = dataclasses.replace(fit, topics=np.eye(3, 9))
    with pytest.raises(FloatingPointError, match="a word of probability 0"):
        impossible.infer(counts)

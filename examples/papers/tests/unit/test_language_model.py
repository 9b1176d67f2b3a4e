"""Hierarchical unigram language models: derivatives, the generic core, quadrature, and scores."""

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

from examples.papers.wang2013.language_model import (
    GroupCounts,
    GroupObjective,
    _climb,
    fit_language_model,
)
from pgmult.topics import as_corpus, split_tokens
from pgmult.topics.scores.completion import completion_score, unigram_log_predictive


def simulate(seed=0, num_documents=30, log_a=(1.0, 0.3, -0.5, -1.5, -2.5), tokens=25):
    rng = np.random.default_rng(seed)
    z = rng.dirichlet(np.exp(log_a), size=num_documents)
    totals = rng.poisson(tokens, size=num_documents)
    totals[3] = 0
    return np.array([rng.multinomial(n, p) for n, p in zip(totals, z, strict=True)])


@pytest.fixture(scope="module")
def counts():
    return simulate()


@pytest.fixture(scope="module")
def objective(counts):
    data = GroupCounts.of(as_corpus(counts), np.arange(len(counts)))
    return GroupObjective(data, -0.3, 1.7)


def slopes(function, m, step=1e-5):
    return np.array(
        [(function(m + step * x) - function(m - step * x)) / (2 * step) for x in np.eye(len(m))]
    )


POINTS = [np.array([0.4, 1.0, -2.0, 0.3, -4.0]), np.array([2.0, -7.0, 0.1, 3.0, 1.0])]


# ------------------------------------------------------------------------- derivatives


@pytest.mark.parametrize("m", POINTS)
def test_evidence_is_that_of_dirichlet_multinomials(objective, counts, m):
    a = np.exp(m)
    totals = counts.sum(axis=1)
    by_document = gammaln(a + counts).sum(axis=1) - gammaln(a).sum()
    by_document += gammaln(a.sum()) - gammaln(a.sum() + totals)
    np.testing.assert_allclose(objective.data.evidence(a), by_document.sum(), rtol=1e-10)
    assert objective.data.num_documents == (totals > 0).sum()


@pytest.mark.parametrize("m", POINTS)
def test_derivatives_are_those_of_finite_differences(objective, m):
    np.testing.assert_allclose(
        objective.gradient(m), slopes(objective.level, m), rtol=1e-6, atol=1e-6
    )
    diagonal, weight = objective.curvature(m)
    hessian = np.diag(diagonal) - weight * np.outer(np.exp(m), np.exp(m))
    np.testing.assert_allclose(hessian, -slopes(objective.gradient, m), rtol=1e-5, atol=1e-5)


# ------------------------------------------------------------------------- the fit


@pytest.mark.parametrize("seed", range(5))
def test_climbs_from_anywhere_end_at_the_mode(objective, seed):
    start = np.random.default_rng(seed).normal(scale=6.0, size=5)
    m, converged = _climb(objective, start, 1e-9)
    assert converged
    reference, _ = _climb(objective, np.zeros(5), 1e-9)
    np.testing.assert_allclose(m, reference, atol=1e-6)


def grid_posterior(counts, mu, sigma_var):
    """Two words: moments of theta and the log evidence, by brute force."""
    axis = np.linspace(-9.0, 9.0, 601)
    theta = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    a = np.exp(theta)
    log_joint = -0.5 * ((theta - mu) ** 2).sum(axis=1) / sigma_var - np.log(2 * np.pi * sigma_var)
    for x in counts:
        log_joint += gammaln(a + x).sum(axis=1) - gammaln(a).sum(axis=1)
        log_joint += gammaln(a.sum(axis=1)) - gammaln(a.sum(axis=1) + x.sum())
    evidence = logsumexp(log_joint)
    weights = np.exp(log_joint - evidence)
    mean = weights @ theta
    sd = np.sqrt(weights @ (theta - mean) ** 2)
    return mean, sd, evidence + 2 * np.log(axis[1] - axis[0])


@pytest.mark.slow
def test_against_quadrature():
    counts = simulate(num_documents=40, log_a=(0.8, -0.4), tokens=20)
    mean, sd, evidence = grid_posterior(counts, 0.0, 1.0)
    fit = fit_language_model(counts, learn_prior=False)
    assert fit.is_proper.all()
    assert (np.abs(fit.mean[0] - mean) < 0.25 * sd).all()
    np.testing.assert_allclose(np.sqrt(fit.var[0]) / sd, 1.0, atol=0.02)
    assert abs(fit.objective - evidence) < 0.02


def test_groups_are_independent_given_the_prior(counts):
    labels = np.arange(len(counts)) % 2
    both = fit_language_model(counts, labels, learn_prior=False)
    for g in (0, 1):
        alone = fit_language_model(counts[labels == g], learn_prior=False)
        np.testing.assert_allclose(both.mean[g], alone.mean[0], rtol=1e-12)
        np.testing.assert_allclose(both.var[g], alone.var[0], rtol=1e-12)


def test_learned_prior_is_a_fixed_point(counts):
    labels = np.arange(len(counts)) % 2
    fit = fit_language_model(counts, labels, tolerance=1e-11)
    assert fit.converged
    np.testing.assert_allclose(fit.mu, fit.mean.mean(), atol=1e-3)
    expected = np.mean((fit.mean - fit.mu) ** 2 + fit.var)
    np.testing.assert_allclose(fit.sigma_var, expected, rtol=1e-3)


def test_recovers_concentrations():
    log_a = np.array([1.0, 0.3, -0.5, -1.5, -2.5])
    fit = fit_language_model(simulate(5, 3000, log_a), mu=0.0)
    assert (np.abs(fit.mean[0] - log_a) < 5 * np.sqrt(fit.var[0])).all()


def test_a_group_without_documents_has_the_prior(counts):
    fit = fit_language_model(
        counts, np.where(np.arange(len(counts)) < 15, 0, 2), learn_prior=False, mu=0.4
    )
    np.testing.assert_allclose(fit.mean[1], 0.4, atol=1e-9)
    np.testing.assert_allclose(fit.var[1], 1.0, rtol=1e-9)


def test_held_out_words():
    rng = np.random.default_rng(2)
    a = 8.0 * rng.dirichlet(np.full(40, 0.5))
    counts = np.array([rng.multinomial(60, p) for p in rng.dirichlet(a, size=60)])
    training, held_out = split_tokens(as_corpus(counts), documents=60)
    fit = fit_language_model(training)
    score = fit.log_predictive(training, held_out)
    # the same by the scorer of topic models, each document a mixture of itself and the group
    x, concentration = training.to_csr().toarray(), fit.concentration[0]
    probs = (x + concentration) / (x.sum(axis=1, keepdims=True) + concentration.sum())
    expected = completion_score([(np.eye(60), probs)], held_out)
    np.testing.assert_allclose(score.by_unit, expected.by_unit, rtol=1e-10)
    assert score.standard_error == pytest.approx(expected.standard_error)
    add_one = (x + 1.0) / (x.sum(axis=1, keepdims=True) + 40)
    worse = completion_score([(np.eye(60), add_one)], held_out).log_predictive
    worst = unigram_log_predictive(training, held_out).log_predictive
    assert score.log_predictive > max(worse, worst) + 0.05


def test_bad_input(counts):
    with pytest.raises(ValueError, match="at least one token"):
        fit_language_model(np.zeros((2, 3), dtype=int))
    with pytest.raises(ValueError, match="groups must have one entry"):
        fit_language_model(counts, [0, 1])
    with pytest.raises(ValueError, match="non-negative"):
        fit_language_model(counts, -np.ones(len(counts), dtype=int))
    fit = fit_language_model(counts)
    with pytest.raises(ValueError, match="held_out must be"):
        fit.log_predictive(counts, counts[:, :3])
    with pytest.raises(ValueError, match="no tokens"):
        fit.log_predictive(counts, 0 * counts)
    with pytest.raises(ValueError, match="groups must be below the fit's 1, got 2"):
        fit.log_predictive(counts, counts, np.full(len(counts), 2))

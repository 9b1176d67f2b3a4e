"""Coupled classes: exact where factors are conjugate, else a fixed point and a bound."""

import numpy as np
import pytest
from scipy.special import logsumexp

from examples.papers.regressions.bounds import LOG_SUM_EXP, SOFTPLUS
from examples.papers.regressions.classes import (
    ClassRows,
    SoftmaxRows,
    SoftmaxSite,
    SoftplusSite,
    logistic_site,
)
from examples.papers.regressions.data import as_counted_rows
from examples.papers.regressions.designs import Rows
from examples.papers.regressions.multinomial_fits import (
    fit_softmax_regression,
    fit_stick_breaking_regression,
    softmax_probs,
    stick_probs,
)
from examples.papers.regressions.solver import fit_sites
from pgmult.priors import MvNormal

RNG = np.random.default_rng(0)
X = np.column_stack([np.ones(30), RNG.normal(size=(30, 2))])
Y = np.array([RNG.multinomial(3, p) for p in RNG.dirichlet(np.ones(3), 30)])
PRIOR = MvNormal(np.array([0.2, -0.1, 0.0]), np.diag([2.0, 1.0, 0.5]))
SOFTMAX = [name for name in LOG_SUM_EXP if name != "quadrature"]


class Linear:
    """Gaussian observations of every class's predictor: conjugate."""

    method = "linear"
    is_bound = True
    at_mode = False

    def __init__(self, y):
        self.y = y

    def expect(self, mean, var):
        gap = self.y - mean
        value = -0.5 * (gap**2 + var + np.log(2.0 * np.pi)).sum(axis=1)
        return value, gap, np.full_like(gap, -0.5)


def test_a_conjugate_factor_is_exact_after_one_sweep():
    y = RNG.normal(size=(30, 2))
    fit = fit_sites(ClassRows(X, 2), Linear(y), PRIOR)
    P = PRIOR.precision() + X.T @ X
    cov = np.linalg.inv(P)
    mean = (PRIOR.precision() @ PRIOR.prior_mean + y.T @ X) @ cov
    np.testing.assert_allclose(fit.mean, mean, rtol=1e-10)
    np.testing.assert_allclose(fit.cov, np.tile(cov, (2, 1, 1)), rtol=1e-10)
    assert fit.converged
    assert fit.num_iterations == 2
    marginal = MvNormal(X @ PRIOR.prior_mean, X @ PRIOR.prior_cov @ X.T + np.eye(30))
    evidence = sum(float(marginal.log_density(column)) for column in y.T)
    np.testing.assert_allclose(fit.objective, evidence, rtol=1e-10)


class Rising(Linear):
    def expect(self, mean, var):
        value, d_mean, d_var = super().expect(mean, var)
        return value, d_mean, -d_var


class Narrow(Linear):
    def expect(self, mean, var):
        value, d_mean, d_var = super().expect(mean, var)
        return value, d_mean[:, :1], d_var


class Endless(Linear):
    def expect(self, mean, var):
        value, d_mean, d_var = super().expect(mean, var)
        return value + np.inf, d_mean, d_var


@pytest.mark.parametrize(
    ("site", "words"),
    [
        (Rising, "must not rise with a variance"),
        (Endless, "finite values at the start"),
        (Narrow, "derivatives of shapes"),
    ],
)
def test_sites_that_cannot_be_are_refused(site, words):
    with pytest.raises(ValueError, match=words):
        fit_sites(ClassRows(X, 2), site(np.zeros((30, 2))), PRIOR)


def bound_at(site, mean, cov):
    """L, by its definition."""
    psi = X @ mean.T
    var = np.stack([np.einsum("nd,de,ne->n", X, S, X) for S in cov], axis=1)
    total = site.expect(psi, var)[0].sum()
    P0 = PRIOR.precision()
    for m, S in zip(mean, cov, strict=True):
        gap = m - PRIOR.prior_mean
        log_dets = np.linalg.slogdet(PRIOR.prior_cov)[1] - np.linalg.slogdet(S)[1]
        total -= 0.5 * (np.trace(P0 @ S) + gap @ P0 @ gap - len(m) + log_dets)
    return float(total)


@pytest.mark.parametrize("name", sorted(LOG_SUM_EXP))
def test_a_fixed_point_is_stationary(name):
    site = SoftmaxSite(Y, LOG_SUM_EXP[name])
    fit = fit_sites(SoftmaxRows(X, 3), site, PRIOR, tolerance=1e-6)
    assert fit.converged
    assert fit.is_bound == (name != "taylor")
    here = bound_at(site, fit.mean, fit.cov)
    np.testing.assert_allclose(here, fit.objective, rtol=1e-10)
    rng = np.random.default_rng(1)
    for _ in range(4):
        along = rng.normal(size=fit.mean.shape)
        turn = rng.normal(size=fit.cov.shape)
        ends = [
            bound_at(site, fit.mean + step * along, bent(fit.cov, step * turn))
            for step in (1e-4, -1e-4)
        ]
        assert abs(ends[0] - ends[1]) / 2e-4 < 1e-3


def bent(cov, turn):
    """Covariances of (I + turn) w."""
    roots = np.eye(cov.shape[1]) + turn
    return roots @ cov @ np.swapaxes(roots, 1, 2)


@pytest.mark.parametrize("covariance", ["class", "full"])
def test_collinear_columns_and_rare_classes_take_tens_of_iterations(covariance):
    """Where taking every step as it is takes hundreds."""
    rng = np.random.default_rng(4)
    common = rng.normal(size=(400, 1))
    x = np.column_stack([np.ones(400), 3.0 * common, common + 0.1 * rng.normal(size=(400, 3))])
    utility = x @ [[0.0, 0.0, 5.0], [0.0, 2.0, 1.0], *np.zeros((3, 3))]
    labels = (utility + rng.gumbel(size=(400, 3))).argmax(axis=1)
    data = as_counted_rows(x, labels, num_categories=3)
    levels = {}
    for name in SOFTMAX:
        fit = fit_softmax_regression(data, method=name, covariance=covariance, max_iterations=60)
        assert fit.converged, name
        levels[name] = fit.objective
    assert max(levels, key=lambda name: levels[name]) in ("taylor", "tilted", "adaptive")


@pytest.mark.parametrize(
    ("name", "method"),
    [("quadratic", "jaakkola_jordan"), ("taylor", "delta"), ("quadrature", "quadrature")],
)
def test_bounds_of_binary_rows_agree_with_their_own_sites(name, method):
    successes, trials = Y[:, 0].astype(float), Y.sum(axis=1).astype(float)
    fit, other = (
        fit_sites(Rows(X), site, PRIOR, tolerance=1e-9)
        for site in (
            SoftplusSite(successes, trials, SOFTPLUS[name]),
            logistic_site(successes, trials, method),
        )
    )
    np.testing.assert_allclose(fit.mean, other.mean, atol=1e-6)
    np.testing.assert_allclose(fit.cov, other.cov, atol=1e-6)
    np.testing.assert_allclose(fit.objective, other.objective, rtol=1e-9)


def evidence_by_sums(x, counts, var):
    """log p(y) of softmax regression with one weight a class, on a grid of three weights."""
    grid = np.linspace(-6.0, 6.0, 61) * np.sqrt(var)
    w = np.stack(np.meshgrid(grid, grid, grid, indexing="ij"), axis=-1).reshape(-1, 3)
    log_joint = -0.5 * (w**2 / var + np.log(2.0 * np.pi * var)).sum(axis=1)
    for row, y in zip(x, counts, strict=True):
        psi = row * w
        log_joint += psi @ y - y.sum() * logsumexp(psi, axis=1)
    return logsumexp(log_joint) + 3.0 * np.log(grid[1] - grid[0])


@pytest.mark.parametrize("covariance", ["class", "full"])
@pytest.mark.parametrize("name", SOFTMAX)
def test_bounds_of_the_evidence(name, covariance):
    x, counts = np.array([[1.0], [-0.5], [2.0], [0.3]]), Y[:4]
    data = as_counted_rows(x, counts)
    fit = fit_softmax_regression(
        data, MvNormal(np.zeros(1), np.eye(1)), method=name, covariance=covariance
    )
    exact = evidence_by_sums(x, counts, 1.0)
    if fit.is_bound:
        assert fit.objective < exact
    assert abs(fit.objective - exact) < (12.0 if name == "quadratic" else 4.0)
    if covariance == "full":
        alone = fit_softmax_regression(data, MvNormal(np.zeros(1), np.eye(1)), method=name)
        assert fit.objective >= alone.objective - 1e-6 or not fit.is_bound


def test_predictions_average_over_the_posterior():
    data = as_counted_rows(X, Y)
    rng = np.random.default_rng(2)
    for covariance in ("class", "full"):
        fit = fit_softmax_regression(data, PRIOR, covariance=covariance)
        cov = fit.joint_cov
        if cov is None:
            cov = np.zeros((9, 9))
            for k in range(3):
                cov[3 * k : 3 * k + 3, 3 * k : 3 * k + 3] = fit.cov[k]
        draws = rng.multivariate_normal(fit.mean.ravel(), cov, size=20_000).reshape(-1, 3, 3)
        psi = np.einsum("nd,skd->snk", X[:5], draws)
        expected = np.exp(psi - logsumexp(psi, axis=2, keepdims=True)).mean(axis=0)
        np.testing.assert_allclose(softmax_probs(fit, X[:5]), expected, atol=0.006)
    sticks = fit_stick_breaking_regression(data, PRIOR)
    probs = stick_probs(sticks, X, data.order)
    np.testing.assert_allclose(probs.sum(axis=1), 1.0, atol=1e-10)
    draws = np.stack(
        [
            rng.multivariate_normal(m, S, size=20_000)
            for m, S in zip(sticks.mean, sticks.cov, strict=True)
        ],
        axis=1,
    )
    share = 1.0 / (1.0 + np.exp(-np.einsum("nd,skd->snk", X[:5], draws)))
    first = share[..., 0].mean(axis=0)
    np.testing.assert_allclose(probs[:5, data.order[0]], first, atol=0.006)
    second = ((1.0 - share[..., 0]) * share[..., 1]).mean(axis=0)
    np.testing.assert_allclose(probs[:5, data.order[1]], second, atol=0.006)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"method": "guess"}, "must be one of"),
        ({"method": "laplace"}, "must be one of log, tilted"),
        ({"covariance": "diagonal"}, "covariance must be one of class, full"),
        ({"prior": MvNormal(np.zeros(2), np.eye(2))}, "prior must be of"),
        ({"max_iterations": 0}, "max_iterations must be at least 1"),
    ],
)
def test_bad_arguments(change, words):
    with pytest.raises(ValueError, match=words):
        fit_softmax_regression(as_counted_rows(X, Y), **change)


def test_one_gaussian_too_large_is_refused():
    """Of 500 classes with 400 weights each: 8 TB."""
    data = as_counted_rows(np.ones((2, 400)), np.array([0, 1]), num_categories=500)
    with pytest.raises(MemoryError, match="covariance='class'"):
        fit_softmax_regression(data, covariance="full")


def test_separable_labels_and_constant_columns_have_a_posterior():
    x = np.column_stack([np.ones(12), np.ones(12), np.repeat([-1.0, 0.0, 1.0], 4)])
    data = as_counted_rows(x, np.repeat([0, 1, 2], 4))
    for name in SOFTMAX:
        fit = fit_softmax_regression(data, method=name)
        assert np.isfinite(fit.mean).all()
        assert fit.converged
        assert (softmax_probs(fit, x).argmax(axis=1)[[0, -1]] == [0, 2]).all()

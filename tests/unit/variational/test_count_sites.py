"""Sites of counts, and of your own likelihood."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from scipy.stats import nbinom, poisson

from pgmult import MvNormal
from pgmult.testing import rejects
from pgmult.variational import CountSite, LogisticSite, fit_sites

Y = np.array([0.0, 1.0, 4.0, 2.0, 30.0])
TIMES = np.array([1.0, 0.5, 2.0, 0.0, 1.0])


@dataclass(frozen=True)
class Own:
    """F = E f, dF/dm = E f' and dF/dv = E f'' / 2 by Gauss-Hermite quadrature."""

    value: object
    slope: object
    curvature: object

    def expect(self, mean, var):
        nodes, weights = hermegauss(32)
        psi = mean + nodes[:, None] * np.sqrt(var)
        functions = (self.value, self.slope, self.curvature)
        value, slope, curvature = (weights @ f(psi) / weights.sum() for f in functions)
        return value, slope, 0.5 * curvature


OWN = Own(lambda f: Y * f - np.exp(f), lambda f: Y - np.exp(f), lambda f: -np.exp(f))
SITES = {
    "poisson": CountSite(Y, weights=TIMES),
    "negative binomial": CountSite(Y, 1.7, TIMES),
    "own": OWN,
    "binomial": LogisticSite(np.minimum(Y, 3.0), np.full(5, 3.0)),
}


def assert_derivatives(site):
    """What a site says of the derivatives of F, against differences."""
    rng = np.random.default_rng(0)
    step = 1e-4

    def at(m, v, part=0):
        return site.expect(m, v)[part]

    for spread in (0.0, 1.0):
        mean, var = rng.standard_normal(Y.size), spread * rng.uniform(0.2, 1.0, size=Y.size)
        value, d_mean, d_var = site.expect(mean, var)
        for part in (value, d_mean, d_var):
            assert part.shape == Y.shape
            assert np.isfinite(part).all()
        assert (d_var <= 0.0).all()
        close = {"rtol": 1e-5, "atol": 1e-5}
        slope = (at(mean + step, var) - at(mean - step, var)) / (2.0 * step)
        np.testing.assert_allclose(d_mean, slope, **close)
        if spread > 0.0:
            slope = (at(mean, var + step) - at(mean, var - step)) / (2.0 * step)
            np.testing.assert_allclose(d_var, slope, **close)


@pytest.mark.parametrize("name", SITES)
def test_derivatives(name):
    assert_derivatives(SITES[name])


@pytest.mark.parametrize(
    "broken",
    [
        Own(OWN.value, lambda f: Y + np.exp(f), OWN.curvature),
        Own(OWN.value, OWN.slope, lambda f: np.exp(f)),
        Own(OWN.value, OWN.slope, lambda f: -0.9 * np.exp(f)),
        Own(OWN.value, lambda f: Y - 1.001 * np.exp(f), OWN.curvature),
    ],
    ids=["wrong sign", "not concave", "a tenth short", "a thousandth more"],
)
def test_broken_likelihoods_are_refused(broken):
    rejects(assert_derivatives, broken)


def test_values_are_log_probabilities():
    psi = np.array([0.3, -1.0, 1.2, 0.0, 2.5])
    zero = np.zeros(5)
    expected = poisson.logpmf(Y, np.exp(psi))
    np.testing.assert_allclose(CountSite(Y).expect(psi, zero)[0], expected)
    expected = nbinom.logpmf(Y, 1.7, 1.7 / (1.7 + np.exp(psi)))
    np.testing.assert_allclose(CountSite(Y, 1.7).expect(psi, zero)[0], expected)
    np.testing.assert_allclose(
        CountSite(Y, 1e8).expect(psi, zero)[0], CountSite(Y).expect(psi, zero)[0],
        rtol=1e-4,
    )  # fmt: skip


def test_expectations_are_averages_over_draws():
    rng = np.random.default_rng(0)
    mean, var = np.array([0.3, -1.0, 1.2, 0.0, 2.5]), np.full(5, 0.3)
    psi = mean + np.sqrt(var) * rng.standard_normal((2000, 5))
    for site in (CountSite(Y, weights=TIMES), CountSite(Y, 1.7, TIMES)):
        draws = np.array([site.expect(row, np.zeros(5))[0] for row in psi])
        error = draws.std(axis=0) / 2000.0**0.5 + 1e-12
        assert (np.abs(site.expect(mean, var)[0] - draws.mean(axis=0)) < 5.0 * error).all()


def test_your_own_likelihood_is_the_one_that_is_built_in():
    x = np.column_stack([np.ones(5), [-1.0, 0.0, 0.5, 0.2, 2.0]])
    prior = MvNormal(np.zeros(2), 4.0 * np.eye(2))
    own, built_in = (fit_sites(x, site, prior) for site in (OWN, CountSite(Y)))
    np.testing.assert_allclose(own.mean, built_in.mean, atol=1e-6)
    np.testing.assert_allclose(own.cov, built_in.cov, atol=1e-6)


@pytest.mark.parametrize("site", [CountSite(Y, 1.7, TIMES), LogisticSite(Y > 1.0, np.ones(5)), OWN])
def test_the_fit_has_the_largest_objective_of_all_gaussians(site):
    """L by hand at the fit, and lower in every direction of means and covariances."""
    x, offset = np.column_stack([np.ones(5), [-1.0, 0.0, 0.5, 0.2, 2.0]]), np.linspace(-1.0, 1.0, 5)
    prior = MvNormal(np.array([0.3, -0.2]), np.array([[4.0, 1.0], [1.0, 2.0]]))
    P = np.linalg.inv(prior.prior_cov)

    def objective(m, S):
        value = site.expect(x @ m + offset, np.einsum("nd,de,ne->n", x, S, x))[0].sum()
        gap = m - prior.prior_mean
        kl = np.trace(P @ S) - len(m) + gap @ P @ gap - np.linalg.slogdet(P @ S)[1]
        return value - 0.5 * kl

    fit = fit_sites(x, site, prior, offset=offset, tolerance=1e-9)
    far = fit_sites(x, site, prior, offset=offset, start=[4.0, -6.0])
    m, S = fit.mean[0], fit.cov[0]
    assert fit.converged
    assert fit.objective == pytest.approx(objective(m, S), abs=1e-9)
    np.testing.assert_allclose(far.mean, fit.mean, atol=1e-5)
    rng = np.random.default_rng(1)
    for _ in range(10):
        twist = np.eye(2) + 1e-3 * rng.standard_normal((2, 2))
        moved = objective(m + 1e-3 * rng.standard_normal(2), twist @ S @ twist.T)
        assert moved < fit.objective


def test_separable_labels_have_a_fit():
    x = np.linspace(-20.0, 20.0, 30)[:, None]
    fit = fit_sites(
        x, LogisticSite(x[:, 0] > 0.0, np.ones(30)), MvNormal(np.zeros(1), 4.0 * np.eye(1))
    )
    assert fit.converged
    assert fit.mean[0, 0] > 0.0
    assert 0.0 < fit.cov[0, 0, 0] <= 4.0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"x": np.ones(5)}, "prior must be of the weights of x"),
        ({"prior": MvNormal(np.zeros(3), np.eye(3))}, "prior must be of the weights of x"),
        ({"x": np.full((5, 2), np.nan)}, "x must be finite"),
        ({"site": CountSite(Y[:4])}, "site must be of the 5 rows of x"),
        ({"offset": np.ones(4)}, r"offset must have shape \(5,\)"),
        ({"start": [1.0]}, r"start must have shape \(2,\)"),
        ({"site": replace(OWN, curvature=lambda f: np.exp(f))}, "must not rise with a variance"),
        ({"site": replace(OWN, value=lambda f: f + np.inf)}, "finite values under the prior"),
    ],
)
def test_what_does_not_go_together(changes, words):
    given = {"x": np.ones((5, 2)), "site": OWN, "prior": MvNormal(np.zeros(2), np.eye(2))}
    with pytest.raises(ValueError, match=words):
        fit_sites(**given | changes)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([-1.0],), "counts must be non-negative"),
        (([1.0], 0.0), "size must be"),
        (([1.0], 2.0, [1.0, 2.0]), "counts must be a row, as weights"),
    ],
)
def test_bad_counts(arguments, words):
    with pytest.raises(ValueError, match=words):
        CountSite(*arguments)

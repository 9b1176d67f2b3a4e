"""Sites of counts, and of your own likelihood."""

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from scipy.stats import nbinom, poisson

from examples.papers.regressions.classes import LOGISTIC_METHODS, logistic_site
from pgmult import MvNormal
from pgmult.testing import rejects
from pgmult.variational import CountSite, Rows, fit_sites
from pgmult.variational.sites import AtMode

Y = np.array([0.0, 1.0, 4.0, 2.0, 30.0])
TIMES = np.array([1.0, 0.5, 2.0, 0.0, 1.0])


@dataclass(frozen=True)
class Own:
    """F = E f, dF/dm = E f' and dF/dv = E f'' / 2 by Gauss-Hermite quadrature."""

    value: object
    slope: object
    curvature: object
    method = "quadrature"
    is_bound = True
    at_mode = False

    def expect(self, mean, var):
        nodes, weights = hermegauss(32)
        psi = mean + nodes[:, None] * np.sqrt(var)
        functions = (self.value, self.slope, self.curvature)
        value, slope, curvature = (weights @ f(psi) / weights.sum() for f in functions)
        return value, slope, 0.5 * curvature


OWN = Own(lambda f: Y * f - np.exp(f), lambda f: Y - np.exp(f), lambda f: -np.exp(f))
SITES = {
    "poisson": CountSite(Y, weights=TIMES),
    "poisson at the mode": AtMode(CountSite(Y, weights=TIMES)),
    "negative binomial": CountSite(Y, 1.7, TIMES),
    "negative binomial at the mode": AtMode(CountSite(Y, 1.7, TIMES)),
    "own": OWN,
    **{name: logistic_site(np.minimum(Y, 3.0), np.full(5, 3.0), name) for name in LOGISTIC_METHODS},
}


def assert_derivatives(site):
    """What a site says of the derivatives of F, or of f at the mode, against differences."""
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
        if site.at_mode:
            bend = (at(mean + step, var, 1) - at(mean - step, var, 1)) / (4.0 * step)
            np.testing.assert_allclose(d_var, bend, **close)
        elif spread > 0.0:
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
    own, built_in = (fit_sites(Rows(x), site, prior) for site in (OWN, CountSite(Y)))
    np.testing.assert_allclose(own.mean, built_in.mean, atol=1e-6)
    np.testing.assert_allclose(own.cov, built_in.cov, atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([-1.0],), "counts must be non-negative"),
        (([1.0], 0.0), "size must be"),
        (([1.0], 2.0, [1.0, 2.0]), "counts must be a row of numbers with as many weights"),
    ],
)
def test_bad_counts(arguments, words):
    with pytest.raises(ValueError, match=words):
        CountSite(*arguments)

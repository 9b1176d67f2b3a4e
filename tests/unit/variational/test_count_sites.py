"""Sites of counts, and of your own likelihood."""

import numpy as np
import pytest
from scipy.stats import nbinom, poisson

from pgmult import MvNormal
from pgmult.testing import check_site, rejects
from pgmult.variational import CountSite, RowLikelihood, Rows, fit_sites
from pgmult.variational.sites import LOGISTIC_METHODS, AtMode, logistic_site

Y = np.array([0.0, 1.0, 4.0, 2.0, 30.0])
TIMES = np.array([1.0, 0.5, 2.0, 0.0, 1.0])
OWN = RowLikelihood(lambda f: Y * f - np.exp(f), lambda f: Y - np.exp(f), lambda f: -np.exp(f))
SITES = {
    "poisson": CountSite(Y, weights=TIMES),
    "poisson at the mode": AtMode(CountSite(Y, weights=TIMES)),
    "negative binomial": CountSite(Y, 1.7, TIMES),
    "negative binomial at the mode": AtMode(CountSite(Y, 1.7, TIMES)),
    "own": OWN,
    **{name: logistic_site(np.minimum(Y, 3.0), np.full(5, 3.0), name) for name in LOGISTIC_METHODS},
}


@pytest.mark.parametrize("name", SITES)
def test_derivatives(name):
    check_site(SITES[name], 5)


@pytest.mark.parametrize(
    "broken",
    [
        RowLikelihood(OWN.value, lambda f: Y + np.exp(f), OWN.curvature),
        RowLikelihood(OWN.value, OWN.slope, lambda f: np.exp(f)),
        RowLikelihood(OWN.value, OWN.slope, lambda f: -0.9 * np.exp(f)),
        RowLikelihood(OWN.value, lambda f: Y - 1.001 * np.exp(f), OWN.curvature),
    ],
    ids=["wrong sign", "not concave", "a tenth short", "a thousandth more"],
)
def test_broken_likelihoods_are_refused(broken):
    rejects(check_site, broken, 5)


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

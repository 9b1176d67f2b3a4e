"""Dirichlet rows: conjugacy, densities, and draws at every size of the concentration."""

import math

import numpy as np
import pytest
from scipy import stats

from pgmult import Dirichlet
from pgmult.compiled.dirichlet import sample_rows
from pgmult.compiled.rows import row_threads

ALPHA = np.array([0.4, 1.0, 2.5, 0.05])


def lowest_marginal_p_value(draws, alpha):
    """Kolmogorov-Smirnov of each coordinate against its beta law."""
    rest = alpha.sum() - alpha
    return min(
        stats.kstest(draws[:, k], stats.beta(alpha[k], rest[k]).cdf).pvalue
        for k in range(len(alpha))
    )


def test_posterior_density_is_prior_times_likelihood():
    rng = np.random.default_rng(1)
    counts = np.array([3, 0, 1, 7])
    pi = rng.dirichlet(np.ones(4), size=10)
    prior, posterior = Dirichlet(ALPHA), Dirichlet(ALPHA).condition(counts)
    ratio = posterior.log_density(pi) - prior.log_density(pi) - np.log(pi) @ counts
    np.testing.assert_allclose(ratio, ratio[0], atol=1e-10)
    np.testing.assert_allclose(posterior.mean(), (ALPHA + counts) / (ALPHA + counts).sum())


def test_conditioning_twice_is_conditioning_on_the_sum():
    rng = np.random.default_rng(2)
    one, two = rng.poisson(1.0, size=(2, 3, 4))
    twice = Dirichlet(0.3).condition(one).condition(two)
    np.testing.assert_allclose(
        twice.concentration, Dirichlet(0.3).condition(one + two).concentration
    )


def test_log_density_agrees_with_scipy():
    pi = np.random.default_rng(3).dirichlet(np.ones(4), size=5)
    expected = [stats.dirichlet.logpdf(row, ALPHA) for row in pi]
    np.testing.assert_allclose(Dirichlet(ALPHA).log_density(pi), expected)
    np.testing.assert_allclose(Dirichlet(1.0).log_density(pi), math.log(math.factorial(3)))


def test_log_density_at_the_edge():
    edge = [0.0, 0.3, 0.7]
    assert Dirichlet(0.5).log_density(edge) == math.inf
    assert Dirichlet(2.0).log_density(edge) == -math.inf
    assert Dirichlet([1.0, 2.0, 3.0]).log_density(edge) == pytest.approx(
        stats.dirichlet.logpdf([1e-300, 0.3, 0.7], [1.0, 2.0, 3.0])
    )


@pytest.mark.parametrize(
    "alpha", [ALPHA, np.array([0.999, 0.7]), np.array([300.0, 0.2, 5e4]), np.full(3, 0.3)]
)
def test_marginals_are_beta(alpha):
    draws = Dirichlet(alpha).sample(np.random.default_rng(4), (40_000, len(alpha)))
    assert lowest_marginal_p_value(draws, alpha) > 1e-4


def test_covariances_are_those_of_a_dirichlet():
    draws = Dirichlet(ALPHA).sample(np.random.default_rng(5), (50_000, 4))
    mean = ALPHA / ALPHA.sum()
    expected = (np.diag(mean) - np.outer(mean, mean)) / (ALPHA.sum() + 1.0)
    np.testing.assert_allclose(np.cov(draws.T), expected, atol=2e-3)


def test_a_slightly_wrong_concentration_is_noticed():
    draws = np.random.default_rng(6).dirichlet(ALPHA + 0.01, size=40_000)
    assert lowest_marginal_p_value(draws, ALPHA) < 1e-6


@pytest.mark.parametrize("scale", [1e-2, 1e-3, 1e-5])
def test_tiny_concentrations_do_not_underflow(scale):
    alpha = scale * np.array([1.0, 2.0, 5.0])
    draws = Dirichlet(alpha).sample(np.random.default_rng(7), (20_000, 3))
    np.testing.assert_allclose(draws.sum(axis=1), 1.0, rtol=1e-14)
    for bound in (1e-250, 1e-100, 1e-10, 0.5):
        law = stats.binom(20_000, stats.beta(alpha, alpha.sum() - alpha).cdf(bound))
        below = (draws < bound).sum(axis=0)
        assert np.minimum(law.cdf(below), law.sf(below - 1)).min() > 1e-5


@pytest.mark.parametrize("scale", [1e-8, 1e-299])
def test_vanishing_concentrations_choose_one_category(scale):
    alpha = scale * np.array([1.0, 2.0, 5.0])
    draws = Dirichlet(alpha).sample(np.random.default_rng(12), (20_000, 3))
    np.testing.assert_array_equal(draws.max(axis=1), 1.0)
    assert stats.chisquare(draws.sum(axis=0), 20_000 * alpha / alpha.sum()).pvalue > 1e-4


def test_many_categories_have_their_beta_laws():
    """Shapes of all kinds side by side, proposed eight at a time."""
    alpha = np.tile([0.05, 0.9, 3.0, 0.02, 0.3], 5)[:23]
    draws = Dirichlet(alpha).sample(np.random.default_rng(13), (20_000, 23))
    assert lowest_marginal_p_value(draws, alpha) > 1e-5


def test_rows_are_independent_and_threads_do_not_change_a_bit():
    counts = np.random.default_rng(8).poisson(0.3, size=(20, 50))
    posterior = Dirichlet(0.05).condition(counts)
    draws = []
    for threads in (1, 2):
        with row_threads(threads):
            draws.append(posterior.sample(np.random.default_rng(9)))
    np.testing.assert_array_equal(*draws)
    counts[3] += 1
    changed = Dirichlet(0.05).condition(counts).sample(np.random.default_rng(9))
    assert list(np.flatnonzero((changed != draws[0]).any(axis=1))) == [3]


def test_shapes():
    rng = np.random.default_rng(10)
    assert Dirichlet(0.1).sample(rng, (2, 3, 4)).shape == (2, 3, 4)
    assert Dirichlet(ALPHA).sample(rng).shape == (4,)
    assert Dirichlet(ALPHA).sample(rng, (0, 4)).shape == (0, 4)
    assert Dirichlet(ALPHA).condition(np.ones((5, 2, 4))).mean().shape == (5, 2, 4)


def test_one_compiled_version_serves_every_layout():
    alpha = np.full((3, 4), 0.7)
    frozen = alpha.copy()
    frozen.setflags(write=False)
    for array in (alpha, frozen, np.asfortranarray(alpha), alpha.astype(np.float32), 0.7):
        Dirichlet(array).sample(np.random.default_rng(11), (3, 4))
    assert len(getattr(sample_rows, "signatures", [None])) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Dirichlet(0.0), "concentration must be positive, got 0.0"),
        (lambda: Dirichlet([1.0, math.nan]), "must be finite, got nan at position 1"),
        (lambda: Dirichlet([1.0]), "at least 2 categories"),
        (lambda: Dirichlet([1.0, 1e-305]), "at least 1e-300, got 1e-305"),
        (lambda: Dirichlet(1.0).mean(), "does not say how many"),
        (lambda: Dirichlet(1.0).sample(np.random.default_rng(0)), "does not say how many"),
        (lambda: Dirichlet(1.0).sample(0, (2, 3)), "must be a numpy.random.Generator, got int"),
        (lambda: Dirichlet(ALPHA).condition([1, 2]), "counts must have 4 categories"),
        (lambda: Dirichlet(ALPHA).condition([1, 2, -1, 0]), "non-negative, got -1.0 at position 2"),
        (lambda: Dirichlet(ALPHA).condition([1, 2, math.inf, 0]), "must be finite, got inf"),
        (lambda: Dirichlet(np.ones((2, 3))).condition(np.ones((4, 3))), "must match or broadcast"),
        (lambda: Dirichlet(ALPHA).log_density([0.5, 0.5]), "pi must have 4 categories"),
        (lambda: Dirichlet(1.0).log_density([0.5, 0.6]), "pi must sum to 1"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()

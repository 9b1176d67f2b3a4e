"""Proposals from the prior leave the exact posterior of the sticks alone, and move what creeps."""

import numpy as np
import pytest
from scipy import integrate, stats

from pgmult import MvNormal, StickBreaking
from pgmult.compiled.rows import row_threads
from pgmult.topics.updates.prior_proposals import propose_from_prior


def exact_moments(log_density):
    """Mean and variance of a density on the line, by quadrature."""
    grid = np.linspace(-30.0, 30.0, 20_001)
    weights = np.exp(log_density(grid) - log_density(grid).max())
    total = integrate.simpson(weights, x=grid)
    mean = integrate.simpson(weights * grid, x=grid) / total
    return mean, integrate.simpson(weights * (grid - mean) ** 2, x=grid) / total


@pytest.mark.parametrize(
    ("counts", "order"),
    [([0, 40], None), ([3, 5], None), ([0, 0], None), ([40, 0], (1, 0)), ([5, 3], (1, 0))],
)
def test_one_stick_has_its_exact_posterior(counts, order):
    rows, mean, var = 20_000, -2.0, 3.0
    link = StickBreaking(order)
    prior = MvNormal(np.array([mean]), np.array([[var]]))
    rng = np.random.default_rng(1)
    psi = prior.sample(rng, rows)
    tiled = np.tile(counts, (rows, 1))
    for _ in range(100):
        psi = propose_from_prior(rng, link, psi, tiled, prior)
    expected_mean, expected_var = exact_moments(
        lambda x: (
            link.log_likelihood(x[:, None], np.tile(counts, (len(x), 1)))
            - 0.5 * (x - mean) ** 2 / var
        )
    )
    z = (psi.mean() - expected_mean) / np.sqrt(expected_var / rows)
    assert abs(z) < 4.0
    assert psi.var() == pytest.approx(expected_var, rel=0.06)
    if sum(counts):  # had the counts been ignored, this would be the prior
        assert abs(expected_mean - mean) / np.sqrt(expected_var / rows) > 20.0


def test_without_observations_rows_are_the_prior():
    """Correlated sticks and one mean a row: every proposal is accepted and the law is kept."""
    rows = 40_000
    rng = np.random.default_rng(2)
    cov = np.array([[2.0, 1.2, 0.1], [1.2, 1.5, -0.4], [0.1, -0.4, 1.0]])
    mean = np.tile([[0.0, 1.0, -1.0], [2.0, 0.0, 3.0]], (rows // 2, 1))
    prior = MvNormal(mean, cov)
    start = prior.sample(rng)
    moved = propose_from_prior(rng, StickBreaking(), start, np.zeros((rows, 4), dtype=int), prior)
    assert (moved != start).all()
    whitened = (moved - mean) @ np.linalg.inv(np.linalg.cholesky(cov)).T
    for column in whitened.T:
        assert stats.kstest(column, "norm").pvalue > 1e-4
    assert np.abs(np.corrcoef(whitened.T) - np.eye(3)).max() < 0.03


def test_rare_categories_move_faster_than_by_augmentation():
    """One use in many: steps given omega are short, proposals from the prior are not."""
    link, rng = StickBreaking(), np.random.default_rng(3)
    prior = MvNormal(np.array([-8.0]), np.array([[9.0]]))
    counts = np.tile([0, 100], (5000, 1))
    start = np.full((5000, 1), -8.0)
    augmented = prior.condition(link.augment(rng, start, counts)).sample(rng)
    proposed = propose_from_prior(rng, link, start, counts, prior)
    assert np.mean((proposed - start) ** 2) > 5.0 * np.mean((augmented - start) ** 2)


def test_arguments_are_not_changed_and_threads_do_not_matter():
    rng = np.random.default_rng(4)
    psi, counts = rng.normal(size=(300, 3)), rng.poisson(2.0, size=(300, 4))
    prior = MvNormal(np.zeros(3), np.eye(3))
    before = psi.copy()
    alone = propose_from_prior(np.random.default_rng(0), StickBreaking(), psi, counts, prior)
    np.testing.assert_array_equal(psi, before)
    with row_threads(3):
        together = propose_from_prior(np.random.default_rng(0), StickBreaking(), psi, counts, prior)
    np.testing.assert_array_equal(together, alone)

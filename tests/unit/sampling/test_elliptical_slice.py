"""Elliptical slice sampling leaves Gaussian posteriors as they are."""

import numpy as np
import pytest

from pgmult.sampling.moves import elliptical_slice
from pgmult.testing import rejects

BATCH = 40_000
MEAN = np.array([1.5, -1.0])
COV = np.array([[2.0, 0.9], [0.9, 1.0]])
OBSERVED, NOISE = np.array([0.2, 1.0]), np.array([[0.8, -0.3], [-0.3, 0.6]])
POSTERIOR_COV = np.linalg.inv(np.linalg.inv(COV) + np.linalg.inv(NOISE))
POSTERIOR_MEAN = POSTERIOR_COV @ (np.linalg.solve(COV, MEAN) + np.linalg.solve(NOISE, OBSERVED))


def log_likelihood(x, active):
    deviation = x - OBSERVED
    return -0.5 * np.einsum("bi,ij,bj->b", deviation, np.linalg.inv(NOISE), deviation)


def check_invariance(log_likelihood=log_likelihood, mean=MEAN, stretch=1.0, updates=2):
    """Independent draws from the posterior are still that after updates: first two moments."""
    rng = np.random.default_rng(0)
    x = rng.multivariate_normal(POSTERIOR_MEAN, POSTERIOR_COV, BATCH)
    start = x
    for _ in range(updates):
        draw = MEAN + stretch * (rng.multivariate_normal(MEAN, COV, BATCH) - MEAN)
        x = elliptical_slice(rng, log_likelihood, x, draw, mean)
    assert (x != start).all()
    z = np.linalg.solve(np.linalg.cholesky(POSTERIOR_COV), (x - POSTERIOR_MEAN).T)
    scores = [*z.mean(axis=1), *((z**2).mean(axis=1) - 1.0) / np.sqrt(2.0), (z[0] * z[1]).mean()]
    assert (np.abs(scores) < 4.0 / np.sqrt(BATCH)).all(), scores


def test_gaussian_posteriors_are_invariant():
    check_invariance()


@pytest.mark.parametrize(
    "broken",
    [
        {"mean": 0.0},
        {"stretch": 1.1},
        {"log_likelihood": lambda x, active: np.zeros(len(x))},
        {"log_likelihood": lambda x, active: 1.1 * log_likelihood(x, active)},
    ],
    ids=["mean forgotten", "prior too wide", "everything accepted", "likelihood too sharp"],
)
def test_broken_updates_are_refused(broken):
    rejects(check_invariance, **broken)


class AlwaysTheSameLevel:
    """A generator whose levels are all at the same depth below the likelihood."""

    def __init__(self, rng):
        self.random = rng.random

    def exponential(self, size):
        return np.ones(size)


def test_a_level_that_is_not_random_is_refused(monkeypatch):
    right = elliptical_slice
    broken = lambda rng, *rest: right(AlwaysTheSameLevel(rng), *rest)  # noqa: E731
    monkeypatch.setitem(globals(), "elliptical_slice", broken)
    rejects(check_invariance)


def test_each_vector_goes_its_own_way():
    """Another likelihood for one vector changes nothing for the others."""
    rng = np.random.default_rng(1)
    x, draw = rng.standard_normal((2, 6, 3))
    sharp = np.array([0.1, 1.0, 50.0, 1.0, 1e4, 0.0])
    other = np.where(np.arange(6) == 2, 0.3, sharp)

    def update(sharp):
        return elliptical_slice(
            np.random.default_rng(2), lambda x, active: -sharp * (x**2).sum(axis=1), x, draw
        )

    one, two = update(sharp), update(other)
    keep = np.arange(6) != 2
    np.testing.assert_array_equal(one[keep], two[keep])
    assert (one[2] != two[2]).any()


def test_inactive_vectors_are_held_at_their_new_values():
    rng = np.random.default_rng(3)
    x = rng.standard_normal((50, 2))
    held = {}

    def log_likelihood(points, active):
        for row in np.flatnonzero(~active):
            held.setdefault(row, points[row].copy())
            np.testing.assert_array_equal(points[row], held[row])
        return -200.0 * (points**2).sum(axis=1)

    new = elliptical_slice(rng, log_likelihood, x, rng.standard_normal(x.shape))
    for row, point in held.items():
        np.testing.assert_array_equal(new[row], point)


def test_a_peak_that_only_the_start_reaches_ends():
    """However narrow the likelihood, the bracket shrinks to the start and stops."""
    x = np.array([[0.3, -1.2]])
    rng = np.random.default_rng(4)

    def log_likelihood(points, active):
        return np.where((points == x).all(axis=1), 0.0, -np.inf)

    new = elliptical_slice(rng, log_likelihood, x, rng.standard_normal(x.shape))
    np.testing.assert_array_equal(new, x)


def test_bad_input():
    rng = np.random.default_rng(5)
    x = np.zeros((2, 1))
    with pytest.raises(FloatingPointError, match="got -inf of vector 1"):
        elliptical_slice(rng, lambda x, active: np.array([0.0, -np.inf]), x, x)
    with pytest.raises(ValueError, match=r"must have the shape of x, \(2, 1\), got \(2,\)"):
        elliptical_slice(rng, lambda x, active: np.zeros(2), x, np.zeros(2))

"""Levels of a table's fields around the Gaussian that stands in for their counts."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from pgmult.fields import MultinomialGP, as_field
from pgmult.fields.covariances import Matern
from pgmult.fields.updates import table_sticks
from pgmult.fields.updates.table_sticks import Potential

INPUTS = np.array([[t, s] for t in (0.0, 0.7, 2.0, 3.0) for s in (0.0, 1.0, 1.5)])
DATA = as_field(INPUTS, np.random.default_rng(0).multinomial(30, [0.6, 0.37, 0.03], len(INPUTS)))
LAW = 0.8 * Matern(1.5, 2.0, active=[0]) * Matern(0.5, 1.5, active=[1])
(STICKS,) = MultinomialGP(LAW, structure="separable", overdispersion=0.3).table_sticks(DATA)


@pytest.fixture
def potential():
    level = np.random.default_rng(1).standard_normal(STICKS.taken.shape)
    return Potential(STICKS, STICKS.start, level)


def test_density_is_that_of_the_assembled_gaussian(potential):
    """Prior times potential, but for one constant, at any hyperparameters and levels."""
    rng = np.random.default_rng(2)
    mean = np.full(STICKS.taken.shape, 0.4)
    found = []
    for _ in range(4):
        x = STICKS.start + 0.5 * rng.standard_normal(len(STICKS.start))
        level = mean + rng.standard_normal(mean.shape)
        prior, gaussian = STICKS.gaussian(x), potential.gaussian(x, mean)
        cov = prior.factors.variance * np.kron(prior.row_cov, prior.column_cov)
        away = (level - mean).reshape(len(mean), -1)
        expected = multivariate_normal(cov=cov).logpdf(away) + potential.log(level)
        noise = gaussian.white(rng, level)
        given = -0.5 * np.sum(noise**2) - 0.5 * np.log(gaussian.vars).sum()
        found.append(expected.sum() - gaussian.log_evidence - given)
    np.testing.assert_allclose(found, found[0], atol=1e-7)


def test_noise_makes_the_level_that_it_was_made_of(potential):
    rng = np.random.default_rng(3)
    level = rng.standard_normal(STICKS.taken.shape)
    gaussian = potential.gaussian(STICKS.start, np.zeros(level.shape))
    np.testing.assert_allclose(gaussian.colour(gaussian.white(rng, level)), level, atol=1e-9)


def test_slopes_are_those_of_the_potential(potential):
    level = np.random.default_rng(4).standard_normal(STICKS.taken.shape)
    step = np.zeros(level.shape)
    step[1, 2, 0] = 1e-4
    difference = (potential.log(level + step) - potential.log(level - step))[1] / 2e-4
    np.testing.assert_allclose(difference, potential.slope(level)[1, 2, 0], rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_pilot_stays_near_counts_that_hardly_scatter(monkeypatch, seed):
    """It starts at the scatter of shares, which hyperparameters found for a smooth level deny."""
    inputs = np.array([[t, s] for t in range(12) for s in range(6)], dtype=np.float64)
    counts = np.random.default_rng(seed).multinomial(30, [0.4, 0.3, 0.2, 0.1], len(inputs))
    counts[:: 7 + seed] = 0
    model = MultinomialGP(LAW, structure="separable", overdispersion=0.05)
    (sticks,) = model.table_sticks(as_field(inputs, counts))
    draw_cells = table_sticks.draw_cells

    def watched(rng, sticks, level, var):
        assert var < 5.0
        return draw_cells(rng, sticks, level, var)

    monkeypatch.setattr(table_sticks, "draw_cells", watched)
    assert sticks.effect(table_sticks.pilot(sticks).guess.mean) < 0.2

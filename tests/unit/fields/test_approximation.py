"""The Gaussian near a posterior: means with a trend, sites, spread, the warning of slow sites."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from pgmult import DiagonalPotential
from pgmult.fields import MultinomialGP, as_field
from pgmult.fields.covariances import Matern, SquaredExponential, White
from pgmult.fields.models.approximation import approximation, matching_sites
from pgmult.fields.priors.dense import IndependentFields
from pgmult.fields.priors.field import Trend
from pgmult.fields.priors.structures import make_field
from pgmult.sampling.diagnostics import ConvergenceWarning, augmentation_rate

RNG = np.random.default_rng(0)
INPUTS = np.unique(np.stack([RNG.integers(0, 6, 14), RNG.integers(0, 2, 14)], axis=1), axis=0) * 1.0
COVARIANCE = 1.3 * Matern(1.5, 4.0, active=[0]) * SquaredExponential(1.0, active=[1])
RARE = as_field(
    np.arange(5.0), [[0, 900, 90], [0, 950, 80], [0, 900, 70], [1, 900, 99], [400, 500, 90]],
    categories=["Jennifer", "Mary", "Ann"], names=[f"Ohio {year}" for year in range(1918, 1923)],
    order="given",
)  # fmt: skip
MODEL = MultinomialGP(4.0 * Matern(0.5, 3.0), hyperparameters="fixed")


@pytest.mark.parametrize("structure", ["dense", "state_space", "grid", "columns"])
def test_means_with_a_trend_are_those_of_the_assembled_gaussian(structure):
    J = RNG.gamma(1.0, size=(len(INPUTS), 3))
    J[2] = 0.0
    h = RNG.standard_normal(J.shape) * (J > 0.0)
    features = np.column_stack([np.ones(len(INPUTS)), INPUTS[:, 0] - 3.0])
    trend = Trend(features, RNG.standard_normal((2, 3)), 1.7)
    if structure == "columns":
        field = IndependentFields([make_field("dense", COVARIANCE, INPUTS, 0.3) for _ in range(3)])
    else:
        field = make_field(structure, COVARIANCE, INPUTS, 0.3)
    mean, beta = field.condition(DiagonalPotential(J, h)).mean_with_trend(trend)
    cov = COVARIANCE.cov(INPUTS) + trend.var * features @ features.T
    for k in range(3):
        centre = 0.3 + features @ trend.centre[:, k]
        left = np.linalg.solve(np.eye(len(cov)) + J[:, [k]] * cov, h[:, k] - J[:, k] * centre)
        np.testing.assert_allclose(mean[:, k], centre + cov @ left, atol=1e-8)
        shift = trend.var * features.T @ left
        np.testing.assert_allclose(beta[:, k], trend.centre[:, k] + shift, atol=1e-8)


def moments(log_density, mean, sd):
    """Of psi, by a sum over a fine grid."""
    psi = mean + sd * np.linspace(-12.0, 12.0, 4001)[:, None, None]
    weights = np.exp(log_density(psi) - log_density(psi).max(axis=0))
    weights /= weights.sum(axis=0)
    centre = (weights * psi).sum(axis=0)
    return centre, (weights * (psi - centre) ** 2).sum(axis=0)


def test_matching_sites_match_moments():
    """A Gaussian law of each psi, with the likelihood or with the site that stands for it."""
    taken, reaching = MODEL.binomials(RARE)
    cavity, mean = 0.7 + RNG.random(taken.shape), RNG.standard_normal(taken.shape) - 3.0
    site = DiagonalPotential(np.ones_like(taken), -np.ones_like(taken))
    for _ in range(60):
        precision = cavity + site.J
        at = (cavity * mean + site.h) / precision
        site = matching_sites(site, at, 1.0 / precision, taken, reaching)
    precision = cavity + site.J
    at = (cavity * mean + site.h) / precision

    def log_density(psi):
        fit = taken * psi - reaching * np.logaddexp(0.0, psi)
        return fit - 0.5 * cavity * (psi - mean) ** 2

    centre, var = moments(log_density, at, precision**-0.5)
    np.testing.assert_allclose(at, centre, atol=1e-4)
    np.testing.assert_allclose(1.0 / precision, var, rtol=1e-3)


def test_a_site_that_is_right_stays_whatever_the_variance():
    """Where the likelihood is nearly Gaussian."""
    taken, reaching = np.full((1, 1), 4e8), np.full((1, 1), 1e9)
    psi, J = np.log(taken / (reaching - taken)), taken * (1.0 - taken / reaching)
    for factor in (0.3, 1.0, 3.0):
        found = matching_sites(DiagonalPotential(J, J * psi), psi, factor / J, taken, reaching)
        np.testing.assert_allclose(found.J, J, rtol=1e-3)
        np.testing.assert_allclose(found.h / found.J, psi, rtol=1e-6)


def test_the_approximation_is_near():
    found = approximation(MODEL, RARE)
    taken, reaching = MODEL.binomials(RARE)
    J, h = found.potential.J, found.potential.h
    assert found.spread.max() < 1.0
    shifted = found.correction(found.mean + 1.0, taken, reaching)
    here = found.correction(found.mean, taken, reaching)
    by_hand = [
        (taken * p - reaching * np.logaddexp(0.0, p) - h * p + 0.5 * J * p * p).sum(axis=0)
        for p in (found.mean + 1.0, found.mean)
    ]
    np.testing.assert_allclose(shifted - here, by_hand[0] - by_hand[1], atol=1e-8)


def test_augmentation_rate():
    """By its definition; the ends of the scale."""
    assert augmentation_rate(0, 1.0, 0.0) == 1.0
    np.testing.assert_allclose(augmentation_rate(100, 0.0, 1.0), 1.0)
    p = 1e-4
    rate = augmentation_rate(10_000, np.log(p / (1.0 - p)), 0.0)
    np.testing.assert_allclose(rate, 2.0 * p * np.log(1.0 / p), rtol=0.01)
    assert augmentation_rate(10_000, -9.0, 1e9) > 0.99


def test_rates_tell_how_slowly_polya_gamma_sweeps_move():
    model = replace(MODEL, method="polya_gamma")
    with pytest.warns(ConvergenceWarning, match="Jennifer at Ohio 1918 to Ohio 19.*: 0 in [23],"):
        model.init(np.random.default_rng(0), RARE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MODEL.init(np.random.default_rng(0), RARE)
        model.init(np.random.default_rng(0), as_field(np.arange(2.0), [[5, 5], [4, 6]]))


def test_a_covariance_without_parameters_is_swept():
    model = MultinomialGP(MODEL.covariance.fix(), method="slice")
    rng = np.random.default_rng(0)
    assert model.step(rng, model.init(rng, RARE), RARE).hyperparameters.shape == (1, 0)


@pytest.mark.parametrize("shared", [True, False])
def test_a_sweep_of_slices_leaves_the_rest_of_the_shape(shared):
    model = MultinomialGP(COVARIANCE, shared=shared, hyperparameter_rate=1.0, method="slice")
    counts = RNG.multinomial(20, [0.5, 0.3, 0.2], size=len(INPUTS))
    data = as_field(INPUTS, counts, new_inputs=[[9.0, 0.0]])
    rng = np.random.default_rng(0)
    state = model.init(rng, data)
    shapes = state.psi.shape, state.beta.shape, state.hyperparameters.shape
    assert shapes == ((len(INPUTS) + 1, 2), (1, 2), (1 if shared else 2, 3))
    for _ in range(4):
        state = model.step(rng, state, data)
        assert (state.psi.shape, state.beta.shape, state.hyperparameters.shape) == shapes
        assert np.isfinite(model.log_likelihood(state, data))


def test_overdispersion_is_an_effect_of_every_site():
    over = replace(MODEL, overdispersion=0.3)
    theta, beta = over.start(RARE), np.zeros((1, 2))
    by_hand = replace(MODEL, covariance=MODEL.covariance + White(0.3))
    np.testing.assert_array_equal(
        over.field(theta, beta, RARE).sample(np.random.default_rng(0)),
        by_hand.field(theta, beta, RARE).sample(np.random.default_rng(0)),
    )
    assert over.coords(RARE)["hyperparameter"][-1] == "White.var"
    with pytest.raises(ValueError, match="overdispersion must be at least 0"):
        replace(MODEL, overdispersion=-1.0)

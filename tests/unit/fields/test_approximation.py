"""The Gaussian near a posterior, and sweeps around it."""

from dataclasses import replace

import numpy as np
import pytest

from pgmult.fields import MultinomialGP, as_field
from pgmult.fields.covariances import LogNormal, Matern, SquaredExponential, White
from pgmult.fields.updates.samplers import sampler

RNG = np.random.default_rng(0)
INPUTS = np.unique(np.stack([RNG.integers(0, 6, 14), RNG.integers(0, 2, 14)], axis=1), axis=0) * 1.0
COVARIANCE = 1.3 * Matern(1.5, 4.0, active=[0]) * SquaredExponential(1.0, active=[1])
RARE = as_field(
    np.arange(5.0), [[0, 900, 90], [0, 950, 80], [0, 900, 70], [1, 900, 99], [400, 500, 90]],
    categories=["Jennifer", "Mary", "Ann"], names=[f"Ohio {year}" for year in range(1918, 1923)],
    order="given",
)  # fmt: skip
MODEL = MultinomialGP(4.0 * Matern(0.5, 3.0), hyperparameters="fixed")


@pytest.mark.slow
def test_the_approximation_is_near():
    for structure in ("dense", "state_space"):
        ((_, _, found),) = sampler(replace(MODEL, structure=structure), RARE).targets
        assert found.spread < 1.0
        assert len(found.guess.mean) == 0
    each = [target.base for target in sampler(replace(MODEL, shared=False), RARE).targets]
    assert [found.J.shape for found in each] == [(5, 1), (5, 1)]
    assert max(found.spread for found in each) < 1.0


def test_a_covariance_without_parameters_is_swept():
    model = replace(MODEL, covariance=Matern(0.5, 3.0, fixed="length_scale"))
    rng = np.random.default_rng(0)
    assert model.step(rng, model.init(rng, RARE), RARE).hyperparameters.shape == (1, 0)


@pytest.mark.parametrize("shared", [True, False])
def test_a_sweep_leaves_the_rest_of_the_shape(shared):
    model = MultinomialGP(COVARIANCE, shared=shared, hyperparameter_rate=1.0)
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
    white = White(0.3, priors={"var": LogNormal(0.3, 1.5)})
    by_hand = replace(MODEL, covariance=MODEL.covariance + white)
    one, two = (model.prior(np.random.default_rng(0), RARE) for model in (over, by_hand))
    np.testing.assert_array_equal(one.psi, two.psi)
    assert over.coords(RARE)["hyperparameter"][-1] == "White.var"
    with pytest.raises(ValueError, match="overdispersion must be at least 0"):
        replace(MODEL, overdispersion=-1.0)
    with pytest.raises(ValueError, match='must be "auto" or a number'):
        replace(MODEL, overdispersion="none")


def test_overdispersion_is_learned_where_counts_tell_of_it():
    few = as_field(np.arange(5.0), np.full((5, 3), 30))
    series = MultinomialGP(4.0 * Matern(0.5, 3.0))
    assert series.full_covariance(RARE).param_names[-1] == "White.var"
    assert series.full_covariance(few) is series.covariance
    assert replace(series, hyperparameters="fixed").full_covariance(RARE) is series.covariance
    assert (
        replace(series, covariance=2.0 * Matern(1.5) + White(0.1)).full_covariance(RARE).num_params
        == 3
    )
    assert replace(series, overdispersion=0.0).full_covariance(RARE) is series.covariance
    cells = as_field(INPUTS, np.full((len(INPUTS), 3), 2))
    table = MultinomialGP(COVARIANCE, structure="separable")
    assert table.full_covariance(cells).param_names[-1] == "White.var"
    prior = table.full_covariance(cells).leaves()[-1].priors["var"]
    for var in (0.01, 1.0):
        assert abs(np.log(var / prior.median)) <= 2.0 * prior.sd

"""Fields that are Markov in one input against the assembled Gaussian."""

import numpy as np
import pytest
from numba.core import config
from oracle.gaussian_field import assert_drawn_from, dense_law

from pgmult.core.potentials import DiagonalPotential
from pgmult.fields.covariances import Constant, Matern, Periodic, SquaredExponential, White
from pgmult.fields.priors.field import Trend
from pgmult.fields.priors.state_space import StateSpaceProcess

FEWER = 100 if config.DISABLE_JIT else 1  # draws, where they are not compiled

TERMS = {
    "1/2": 1.3 * Matern(0.5, 2.0, active=[0]),
    "3/2": Matern(1.5, 2.0, active=[0]),
    "5/2": 0.7 * (Matern(2.5, 3.0, active=[0]) * Constant(0.9)),
    "sum": 0.5 * Matern(2.5, 2.0, active=[0])
    + 2.0 * (0.3 * Matern(0.5, active=[0]) + White(0.1, active=[0]))
    + Constant(0.4),
}


def problem(seed=0, num_inputs=40, columns=3):
    """Times in no order, some of them repeated, a column that is not looked at, no potential."""
    rng = np.random.default_rng(seed)
    times = rng.choice(np.cumsum(rng.exponential(size=30)), num_inputs)
    inputs = np.column_stack([times, rng.random(num_inputs)])
    new = np.concatenate([rng.uniform(-1.0, 40.0, (7, 2)), inputs[:3], inputs[3:6] + 20.0])
    J = rng.gamma(1.0, size=(num_inputs, columns)) * (rng.random((num_inputs, columns)) < 0.7)
    J[:, -1] = 0.0
    h = np.where(J > 0.0, rng.standard_normal(J.shape), 0.0)
    return inputs, new, DiagonalPotential(J, h)


@pytest.mark.parametrize("name", TERMS)
def test_agrees_with_the_dense_gaussian(name):
    inputs, new, potential = problem()
    prior_mean = np.linspace(-1.0, 1.0, potential.J.size).reshape(potential.J.shape)
    field, n = StateSpaceProcess(TERMS[name], inputs), len(inputs)
    both = np.concatenate([prior_mean, np.tile([0.1, 0.2, 0.3], (len(new), 1))])
    _, means, variances = field.draw(np.random.default_rng(7), potential, new, both)
    posterior = field.condition(potential, Trend.known(prior_mean))
    log_z = posterior.log_normalizers
    for c in range(3):
        mean, cov, expected = dense_law(
            TERMS[name], inputs, new, potential.J[:, c], potential.h[:, c],
            prior_mean[:, c], 0.1 * (c + 1),
        )  # fmt: skip
        np.testing.assert_allclose(posterior.mean[:, c], mean[:n], atol=5e-13)
        np.testing.assert_allclose(means[:, c], mean[n:], atol=5e-13)
        np.testing.assert_allclose(variances[:, c], np.diagonal(cov)[n:], atol=1e-12)
        np.testing.assert_allclose(log_z[c], expected, atol=1e-10)


@pytest.mark.parametrize("name", ["3/2", "sum"])
def test_draws_have_the_dense_law(name):
    inputs, new, potential = problem(1, num_inputs=9, columns=2)
    copies = 8000 // FEWER
    many = DiagonalPotential(
        *(np.repeat(a[:, :1], copies, axis=1) for a in (potential.J, potential.h))
    )
    field = StateSpaceProcess(TERMS[name], inputs)
    J, h = potential.J[:, 0], potential.h[:, 0]
    mean, cov, _ = dense_law(TERMS[name], inputs, new, J, h, 0.3, 0.3)
    n = len(inputs)
    level = np.full((n + len(new), copies), 0.3)
    drawn = field.draw(np.random.default_rng(0), many, new, level).values
    assert_drawn_from(drawn.T, mean[n:], cov[n:, n:])
    draws = field.condition(many, Trend.known(level[:n])).sample(np.random.default_rng(1)).T
    assert_drawn_from(draws, mean[:n], cov[:n, :n])
    if FEWER == 1:
        for wrong in (0.9 * J, np.zeros(9)):
            mean, cov, _ = dense_law(TERMS[name], inputs, new, wrong, h, 0.3, 0.3)
            with pytest.raises(AssertionError):
                assert_drawn_from(draws, mean[:n], cov[:n, :n])


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
@pytest.mark.parametrize("step", [1e-3, 1.0, 1e3])
def test_steps_of_any_size(nu, step):
    rng = np.random.default_rng(2)
    times = np.cumsum(step * rng.exponential(size=60))
    covariance = 2.0 * Matern(nu, 1.0)
    J, h = rng.gamma(1.0, size=60), rng.standard_normal(60)
    field, potential = (
        StateSpaceProcess(covariance, times),
        DiagonalPotential(J[:, None], h[:, None]),
    )
    posterior = field.condition(potential, Trend.known(np.zeros((60, 1))))
    new = np.concatenate([times[:5] + 1e-9 * step, times[-3:] + step])[:, None]
    mean, cov, log_z = dense_law(covariance, times[:, None], new, J, h)
    np.testing.assert_allclose(posterior.mean[:, 0], mean[:60], atol=5e-13)
    np.testing.assert_allclose(posterior.log_normalizers, log_z, atol=1e-10)
    _, predicted, variances = field.draw(rng, potential, new, np.zeros((60 + len(new), 1)))
    np.testing.assert_allclose(predicted[:, 0], mean[60:], atol=5e-13)
    np.testing.assert_allclose(variances[:, 0], np.diagonal(cov)[60:], atol=1e-12)


def test_steps_of_a_draw_have_the_right_small_variances():
    # increments of a once differentiable field over 1e-4 length scales have variance 3e-8
    steps = np.array([0.0, 1e-4, 2e-4, 1.0])
    columns = 4000 // FEWER
    draws = StateSpaceProcess(Matern(1.5, 1.0), steps).sample(np.random.default_rng(0), columns)
    increments = np.diff(draws, n=2, axis=0)[0]  # not the derivative, which hides it
    # the covariance is 1 - x^2 / 2 + x^3 / 3 - ..., x = sqrt(3) 1e-4; squares cancel
    expected = 2.0 * (8.0 - 4.0) / 3.0 * (np.sqrt(3.0) * 1e-4) ** 3
    assert np.mean(increments**2) == pytest.approx(expected, rel=5.0 * np.sqrt(2.0 / columns))


def test_precise_observations():
    rng = np.random.default_rng(3)
    inputs, new, _ = problem(3)
    J = np.exp(rng.uniform(-5.0, 10.0, (40, 2)))
    h = J * np.sin(inputs[:, :1]) + np.sqrt(J) * rng.standard_normal(J.shape)
    field = StateSpaceProcess(TERMS["3/2"], inputs)
    posterior = field.condition(DiagonalPotential(J, h), Trend.known(np.zeros(J.shape)))
    for c in range(2):
        mean, _, log_z = dense_law(TERMS["3/2"], inputs, new, J[:, c], h[:, c])
        np.testing.assert_allclose(posterior.mean[:, c], mean[:40], atol=1e-9)
        assert posterior.log_normalizers[c] == pytest.approx(log_z, abs=1e-6)


def test_without_potential_it_is_the_prior():
    inputs, new, _ = problem()
    field, nothing = (
        StateSpaceProcess(TERMS["sum"], inputs),
        DiagonalPotential(*np.zeros((2, 40, 1))),
    )
    level = np.full((40 + len(new), 1), 0.5)
    posterior = field.condition(nothing, Trend.known(level[:40]))
    np.testing.assert_array_equal(posterior.mean, level[:40])
    np.testing.assert_array_equal(posterior.log_normalizers, [0.0])
    _, mean, var = field.draw(np.random.default_rng(7), nothing, new, level)
    np.testing.assert_allclose(mean, 0.5)
    np.testing.assert_allclose(var[:, 0], TERMS["sum"].diagonal(new))


@pytest.mark.parametrize(
    ("covariance", "message"),
    [
        (SquaredExponential(), "one column of the inputs, got columns 0, 1"),
        (Constant(2.0), "one column of the inputs, got columns none"),
        (Periodic(active=[0]), "Matern and White of one input, got Periodic"),
        (Matern(0.5, active=[0]) * Matern(1.5, active=[0]), "got Matern times Matern"),
    ],
)
def test_refuses_covariances_that_are_not_markov(covariance, message):
    with pytest.raises(ValueError, match=message):
        StateSpaceProcess(covariance, np.zeros((2, 2)))

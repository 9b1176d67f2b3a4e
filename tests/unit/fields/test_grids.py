"""Fields on grids against the assembled Gaussian."""

import numpy as np
import pytest
from numba.core import config
from oracle.gaussian_field import assert_drawn_from, dense_law

from pgmult.core.potentials import DiagonalPotential
from pgmult.fields.covariances import Constant, Matern, Periodic, SquaredExponential, White
from pgmult.fields.priors.grids import GridProcess
from pgmult.fields.priors.space_time import SpaceTimeProcess

pytestmark = pytest.mark.slow  # they compile much that nothing else needs

FEWER = 100 if config.DISABLE_JIT else 1  # draws, where they are not compiled

COVARIANCES = {
    "two axes": 1.5 * Matern(0.5, 2.0, active=[0]) * SquaredExponential([1.0, 2.0], active=[1, 2]),
    "three axes": (Matern(1.5, 3.0, active=[0]) + 0.1 * White(active=[0]))
    * SquaredExponential(2.0, active=[1])
    * (Periodic(3.0, active=[2]) * Constant(0.7)),
}


def problem(seed=0, num_inputs=50, columns=3):
    """A grid with holes and repeated points; a column that nothing reached."""
    rng = np.random.default_rng(seed)

    def some(count, extent):
        return np.column_stack([0.5 * rng.integers(0, n, count) for n in extent])

    inputs = some(num_inputs, (9, 5, 2))
    new = np.concatenate([some(5, (12, 8, 3)), inputs[:2]])
    J = rng.gamma(1.0, size=(num_inputs, columns)) * (rng.random((num_inputs, columns)) < 0.7)
    J[:, -1] = 0.0
    h = np.where(J > 0.0, rng.standard_normal(J.shape), 0.0)
    return inputs, new, DiagonalPotential(J, h)


@pytest.mark.parametrize("name", COVARIANCES)
def test_agrees_with_the_dense_gaussian(name):
    inputs, new, potential = problem()
    prior_mean = np.linspace(-1.0, 1.0, potential.J.size).reshape(potential.J.shape)
    field = GridProcess(COVARIANCES[name], inputs, prior_mean, tolerance=1e-11)
    field = field.condition(potential)
    means, variances = field.predict(new, [0.1, 0.2, 0.3])
    log_z = field.log_normalizer()
    n = len(inputs)
    for c in range(3):
        mean, cov, expected = dense_law(
            COVARIANCES[name], inputs, new, potential.J[:, c], potential.h[:, c],
            prior_mean[:, c], 0.1 * (c + 1),
        )  # fmt: skip
        np.testing.assert_allclose(field.mean()[:, c], mean[:n], atol=1e-9)
        np.testing.assert_allclose(means[:, c], mean[n:], atol=1e-9)
        np.testing.assert_allclose(variances[:, c], np.diagonal(cov)[n:], atol=1e-9)
        np.testing.assert_allclose(log_z[c], expected, atol=1e-9)


@pytest.mark.parametrize("name", COVARIANCES)
def test_draws_have_the_dense_law(name):
    inputs, new, potential = problem(1, num_inputs=9, columns=2)
    copies = 8000 // FEWER
    J, h = (np.repeat(a[:, :1], copies, axis=1) for a in (potential.J, potential.h))
    field = GridProcess(COVARIANCES[name], inputs, 0.3, tolerance=1e-8)
    field = field.condition(DiagonalPotential(J, h))
    mean, cov, _ = dense_law(
        COVARIANCES[name], inputs, new, potential.J[:, 0], potential.h[:, 0], 0.3, 0.3
    )
    n = len(inputs)
    assert_drawn_from(field.sample(np.random.default_rng(1)).T, mean[:n], cov[:n, :n])
    assert_drawn_from(field.draw(np.random.default_rng(2), new).new_values.T, mean[n:], cov[n:, n:])


def test_draws_at_inputs_and_new_inputs_are_joint():
    inputs, new, potential = problem()
    field = GridProcess(COVARIANCES["two axes"], inputs).condition(potential)
    drawn = field.draw(np.random.default_rng(0), new)
    np.testing.assert_array_equal(drawn.new_values[-2:], drawn.values[:2])  # the same points
    for got, expected in zip(drawn[2:], field.predict(new), strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-9)


def full_counts(scale):
    """A full grid where some rows are observed a thousand times as precisely as others."""
    rng = np.random.default_rng(5)
    inputs = np.array([[t, s] for t in range(14) for s in range(11)], dtype=float)
    size = np.exp(rng.uniform(-3.5, 3.5, 11))
    J = scale * np.tile(size, 14)[:, None] * np.exp(0.3 * rng.standard_normal((154, 2)))
    h = J * np.sin(inputs[:, :1]) + np.sqrt(J) * rng.standard_normal(J.shape)
    return inputs, DiagonalPotential(J, h)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_agrees_with_the_state_space_at_any_precision(scale):
    inputs, potential = full_counts(scale)
    covariance = Matern(1.5, 5.0, active=[0]) * SquaredExponential(3.0, active=[1])
    grid = GridProcess(covariance, inputs).condition(potential)
    chain = SpaceTimeProcess(covariance, inputs).condition(potential)
    np.testing.assert_allclose(grid.mean(), chain.mean(), atol=1e-8)
    np.testing.assert_allclose(grid.log_normalizer(), chain.log_normalizer(), rtol=1e-9, atol=1e-7)


def test_says_what_is_left_where_iterations_do_not_do():
    inputs, potential = full_counts(1e3)
    covariance = Matern(0.5, 5.0, active=[0]) * SquaredExponential(3.0, active=[1])
    field = GridProcess(covariance, inputs, max_iterations=2).condition(potential)
    with pytest.raises(ValueError, match=r"left an error of .* in column 0 after max_iterations=2"):
        field.sample(np.random.default_rng(0))


def test_without_potential_it_is_the_prior():
    inputs, new, _ = problem()
    field = GridProcess(COVARIANCES["two axes"], inputs, 0.5)
    np.testing.assert_array_equal(field.mean(), np.full((50, 1), 0.5))
    np.testing.assert_array_equal(field.log_normalizer(), [0.0])
    np.testing.assert_allclose(field.predict(new)[1][:, 0], 1.5, atol=1e-11)
    assert np.isfinite(field.sample(np.random.default_rng(0))).all()


def test_axes_are_groups_of_columns_that_factors_share():
    inputs, _, _ = problem()
    assert GridProcess(COVARIANCES["two axes"], inputs).grid_shape == (9, 10)
    assert GridProcess(COVARIANCES["three axes"], inputs).grid_shape == (9, 5, 2)
    mixed = SquaredExponential(active=[1, 2]) * Matern(0.5, active=[1]) * Matern(0.5, active=[0])
    assert sorted(GridProcess(mixed, inputs).grid_shape) == [9, 10]


@pytest.mark.parametrize(
    "covariance",
    [SquaredExponential(), COVARIANCES["two axes"] + White(0.1), Matern(0.5, active=[1])],
)
def test_refuses_covariances_without_axes(covariance):
    with pytest.raises(ValueError, match="not a product over two groups of columns"):
        GridProcess(covariance, np.zeros((2, 3)))


def test_refuses_what_does_not_fit():
    inputs, _, _ = problem()
    with pytest.raises(ValueError, match="tolerance must be positive"):
        GridProcess(COVARIANCES["two axes"], inputs, tolerance=0.0)
    with pytest.raises(ValueError, match="max_iterations must be at least 1"):
        GridProcess(COVARIANCES["two axes"], inputs, max_iterations=0)
    rough = Matern(0.5, 0.1, active=[0]) * Matern(0.5, 0.1, active=[1])
    many = np.column_stack([np.repeat(np.arange(80.0), 80), np.tile(np.arange(80.0), 80)])
    some = DiagonalPotential(np.ones((6400, 1)), np.zeros((6400, 1)))
    with pytest.raises(ValueError, match="eigenvectors carry its variance, more than 6000"):
        GridProcess(rough, many).condition(some).log_normalizer()


def test_columns_whose_precisions_have_different_shapes():
    inputs, potential = full_counts(1e4)
    J = np.concatenate([potential.J, potential.J[::-1], np.ones((154, 1))], axis=1)
    J[:30, 4] = 0.0
    some = DiagonalPotential(J, J * np.cos(inputs[:, 1:]))
    covariance = Matern(0.5, 5.0, active=[0]) * SquaredExponential(3.0, active=[1])
    grid = GridProcess(covariance, inputs, max_iterations=100).condition(some)
    chain = SpaceTimeProcess(covariance, inputs).condition(some)
    np.testing.assert_allclose(grid.mean(), chain.mean(), atol=1e-8)

"""Fields that are Markov in time against the assembled Gaussian."""

import numpy as np
import pytest
from numba.core import config
from oracle.gaussian_field import assert_drawn_from, dense_law

from pgmult.core.potentials import DiagonalPotential
from pgmult.fields.compiled.elimination import eliminate, row_stride, semidefinite_root
from pgmult.fields.covariances import (
    Chordal,
    Constant,
    Matern,
    Periodic,
    SquaredExponential,
    White,
)
from pgmult.fields.priors.space_time import SpaceTimeProcess

pytestmark = pytest.mark.slow  # they compile much that nothing else needs

FEWER = 100 if config.DISABLE_JIT else 1  # draws, where they are not compiled

PLACES = SquaredExponential([1.0, 2.0], active=[1, 2])
TERMS = {
    "1/2": 1.3 * Matern(0.5, 2.0, active=[0]) * PLACES,
    "3/2": Matern(1.5, 2.0, active=[0]) * (PLACES + SquaredExponential(5.0, active=[1])),
    "5/2": 0.7 * (Matern(2.5, 3.0, active=[0]) * PLACES),
    "sum": 0.5 * Matern(2.5, 2.0, active=[0]) * PLACES
    + 0.3 * Matern(0.5, active=[0]) * White(active=[1, 2])
    + (Matern(1.5, 5.0, active=[0]) + White(0.1, active=[0])) * Matern(0.5, active=[2])
    + SquaredExponential(2.0, active=[1])
    + White(0.2)
    + Constant(0.4),
}


def problem(seed=0, num_inputs=40, columns=3):
    """Irregular times, repeated cells, missing places, unreached columns."""
    rng = np.random.default_rng(seed)

    def some(count, extent):
        return np.column_stack(
            [
                rng.choice(np.cumsum(rng.exponential(size=8)), count),
                rng.integers(0, extent, count),
                rng.integers(0, 2, count),
            ]
        ).astype(float)

    inputs = some(num_inputs, 3)
    later = inputs[3:6] + np.array([20.0, 0.0, 0.0])
    new = np.concatenate([some(7, 5), inputs[:3], later])
    J = rng.gamma(1.0, size=(num_inputs, columns)) * (rng.random((num_inputs, columns)) < 0.7)
    J[:, -1] = 0.0
    h = np.where(J > 0.0, rng.standard_normal(J.shape), 0.0)
    return inputs, new, DiagonalPotential(J, h)


@pytest.mark.parametrize("name", TERMS)
def test_agrees_with_the_dense_gaussian(name):
    inputs, new, potential = problem()
    prior_mean = np.linspace(-1.0, 1.0, potential.J.size).reshape(potential.J.shape)
    field = SpaceTimeProcess(TERMS[name], inputs, prior_mean).condition(potential)
    means, variances = field.predict(new, [0.1, 0.2, 0.3])
    log_z = field.log_normalizer()
    n = len(inputs)
    for c in range(3):
        mean, cov, expected = dense_law(
            TERMS[name], inputs, new, potential.J[:, c], potential.h[:, c],
            prior_mean[:, c], 0.1 * (c + 1),
        )  # fmt: skip
        np.testing.assert_allclose(field.mean()[:, c], mean[:n], atol=5e-13)
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
    field = SpaceTimeProcess(TERMS[name], inputs, 0.3).condition(many)
    mean, cov, _ = dense_law(
        TERMS[name], inputs, new, potential.J[:, 0], potential.h[:, 0], 0.3, 0.3
    )
    drawn = field.draw(np.random.default_rng(0), new)
    joint = np.concatenate([drawn.values, drawn.new_values]).T
    assert_drawn_from(joint, mean, cov)
    means, variances = field.predict(new)
    np.testing.assert_allclose(drawn.new_mean, means, atol=1e-13)
    np.testing.assert_allclose(drawn.new_var, variances, atol=1e-13)
    n = len(inputs)
    assert_drawn_from(field.sample(np.random.default_rng(1)).T, mean[:n], cov[:n, :n])
    assert_drawn_from(field.draw(np.random.default_rng(2), new).new_values.T, mean[n:], cov[n:, n:])


def test_the_check_of_draws_tells_laws_apart():
    inputs, new, potential = problem(1, num_inputs=9, columns=2)
    J, h = potential.J[:, 0], potential.h[:, 0]
    mean, cov, _ = dense_law(TERMS["sum"], inputs, new, J, h)
    draws = np.random.default_rng(0).multivariate_normal(mean, cov, 8000, method="eigh")
    assert_drawn_from(draws, mean, cov)
    for wrong in (0.9 * J, np.zeros(9)):
        with pytest.raises(AssertionError):
            assert_drawn_from(draws, *dense_law(TERMS["sum"], inputs, new, wrong, h)[:2])


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
@pytest.mark.parametrize("step", [1e-3, 1.0, 1e3])
def test_one_series_with_steps_of_any_size(nu, step):
    rng = np.random.default_rng(2)
    times = np.cumsum(step * rng.exponential(size=60))
    covariance = 2.0 * Matern(nu, 1.0)
    J, h = rng.gamma(1.0, size=60), rng.standard_normal(60)
    field = SpaceTimeProcess(covariance, times).condition(DiagonalPotential(J[:, None], h[:, None]))
    new = np.concatenate([times[:5] + 1e-9 * step, times[-3:] + step])[:, None]
    mean, cov, log_z = dense_law(covariance, times[:, None], new, J, h)
    np.testing.assert_allclose(field.mean()[:, 0], mean[:60], atol=5e-13)
    np.testing.assert_allclose(field.log_normalizer(), log_z, atol=1e-10)
    predicted, variances = field.predict(new)
    np.testing.assert_allclose(predicted[:, 0], mean[60:], atol=5e-13)
    np.testing.assert_allclose(variances[:, 0], np.diagonal(cov)[60:], atol=1e-12)


def test_steps_of_a_draw_have_the_right_small_variances():
    # increments of a once differentiable field over 1e-4 length scales have variance 3e-8
    steps = np.array([0.0, 1e-4, 2e-4, 1.0])
    covariance = Matern(1.5, 1.0)
    columns = 4000 // FEWER
    prior = SpaceTimeProcess(covariance, steps, np.zeros((4, columns)))
    draws = prior.sample(np.random.default_rng(0))
    increments = np.diff(draws, n=2, axis=0)[0]  # not the derivative, which hides it
    weights = np.array([1.0, -2.0, 1.0, 0.0])
    # the covariance is 1 - x^2 / 2 + x^3 / 3 - ..., x = sqrt(3) 1e-4; squares cancel
    x = np.sqrt(3.0) * 1e-4
    expected = 2.0 * (8.0 - 4.0) / 3.0 * x**3
    assert weights @ covariance.cov(steps) @ weights == pytest.approx(expected, rel=1e-2)
    assert np.mean(increments**2) == pytest.approx(expected, rel=5.0 * np.sqrt(2.0 / columns))


def test_precise_observations():
    rng = np.random.default_rng(3)
    inputs, new, _ = problem(3)
    J = np.exp(rng.uniform(-5.0, 10.0, (40, 2)))
    h = J * np.sin(inputs[:, :1]) + np.sqrt(J) * rng.standard_normal(J.shape)
    field = SpaceTimeProcess(TERMS["3/2"], inputs).condition(DiagonalPotential(J, h))
    for c in range(2):
        mean, _, log_z = dense_law(TERMS["3/2"], inputs, new, J[:, c], h[:, c])
        np.testing.assert_allclose(field.mean()[:, c], mean[:40], atol=1e-9)
        assert field.log_normalizer()[c] == pytest.approx(log_z, abs=1e-6)


def test_covariances_of_places_may_be_singular():
    inputs, new, potential = problem(4)
    inputs[:, 1] *= 1e-9  # the same place to rounding
    smooth = Matern(1.5, 2.0, active=[0]) * SquaredExponential(100.0, active=[1, 2])
    field = SpaceTimeProcess(smooth, inputs).condition(potential)
    mean, _, _ = dense_law(smooth, inputs, new, potential.J[:, 0], potential.h[:, 0])
    np.testing.assert_allclose(field.mean()[:, 0], mean[:40], atol=1e-12)
    assert np.isfinite(field.sample(np.random.default_rng(0))).all()


def test_without_potential_it_is_the_prior():
    inputs, new, _ = problem()
    field = SpaceTimeProcess(TERMS["sum"], inputs, 0.5)
    np.testing.assert_array_equal(field.mean(), np.full((40, 1), 0.5))
    np.testing.assert_array_equal(field.log_normalizer(), [0.0])
    mean, var = field.predict(new)
    np.testing.assert_allclose(mean, 0.5)
    np.testing.assert_allclose(var[:, 0], TERMS["sum"].diagonal(new))


def test_conditioning_twice_multiplies():
    inputs, _, potential = problem()
    half = DiagonalPotential(0.5 * potential.J, 0.5 * potential.h)
    field = SpaceTimeProcess(TERMS["1/2"], inputs)
    np.testing.assert_allclose(
        field.condition(half).condition(half).mean(), field.condition(potential).mean(), atol=1e-13
    )


def test_time_is_found_or_named():
    rng = np.random.default_rng(0)
    inputs = np.column_stack([rng.integers(0, 3, 20), rng.integers(0, 9, 20)]).astype(float)
    both = Matern(0.5, active=[0]) * Matern(1.5, active=[1])
    few = rng.gamma(1.0, size=(20, 1))
    fields = [
        SpaceTimeProcess(both, inputs, time=time).condition(DiagonalPotential(few, few))
        for time in (None, 0, 1)
    ]
    assert [len(field._known.times) for field in fields] == [7, 3, 7]
    for field in fields[1:]:
        np.testing.assert_allclose(field.mean(), fields[0].mean(), atol=1e-13)
    earth = Matern(1.5, 5.0, active=[0]) * Chordal(Matern(2.5, 1000.0), latitude=1, longitude=2)
    assert SpaceTimeProcess(earth, [[0.0, 40.0, -75.0]]).mean().shape == (1, 1)


@pytest.mark.parametrize(
    ("covariance", "message"),
    [
        (SquaredExponential(), "SquaredExponential looks, with others, at column 0"),
        (Periodic(active=[0]) * PLACES, "Periodic looks at column 0"),
        (Matern(1.5, active=[0, 1]), "Matern looks, with others, at column 0"),
        (Matern(0.5, active=[0]) * Matern(1.5, active=[0]), "two factors in one product"),
    ],
)
def test_refuses_covariances_that_are_not_markov(covariance, message):
    with pytest.raises(ValueError, match=message):
        SpaceTimeProcess(covariance, np.zeros((2, 3)), time=0)
    with pytest.raises(ValueError, match="not Markov in a column"):
        SpaceTimeProcess(covariance * Periodic(active=[1]) * Periodic(active=[2]), np.zeros((2, 3)))


def test_refuses_what_does_not_fit():
    inputs, _, potential = problem()
    field = SpaceTimeProcess(TERMS["1/2"], inputs)
    with pytest.raises(ValueError, match=r"shape \(40, columns\), got J \(39, 3\)"):
        field.condition(DiagonalPotential(potential.J[1:], potential.h[1:]))
    tilted = np.zeros((40, 1))
    tilted[2] = 1.0
    with pytest.raises(ValueError, match=r"h must be 0 where J is 0, got .* at row 2, column 0"):
        field.condition(DiagonalPotential(np.zeros((40, 1)), tilted))
    with pytest.raises(ValueError, match="J must be non-negative"):
        field.condition(DiagonalPotential(-potential.J, potential.h))
    with pytest.raises(ValueError, match="new_inputs must have 3 columns, got 2"):
        field.predict(inputs[:, :2])
    with pytest.raises(ValueError, match="prior_mean must be a number or have shape"):
        SpaceTimeProcess(TERMS["1/2"], inputs, np.zeros(3))
    with pytest.raises(ValueError, match="pass new_mean"):
        SpaceTimeProcess(TERMS["1/2"], inputs, np.arange(40.0)).predict(inputs)
    with pytest.raises(ValueError, match="new_mean must be a number or have shape"):
        field.predict(inputs, np.zeros(7))
    with pytest.raises(ValueError, match="inputs must be finite"):
        SpaceTimeProcess(TERMS["1/2"], np.where(inputs == inputs[0], np.nan, inputs))
    with pytest.raises(ValueError, match="time must be at most 2, got 3"):
        SpaceTimeProcess(TERMS["1/2"], inputs, time=3)
    with pytest.raises(TypeError, match="rng must be"):
        field.sample(0)


@pytest.mark.filterwarnings("ignore:.* encountered in:RuntimeWarning")  # where not compiled
def test_names_a_column_beyond_floating_point():
    inputs, _, _ = problem()
    field = SpaceTimeProcess(TERMS["1/2"], inputs)
    J = np.tile([1.0, 1e308], (40, 1))
    with pytest.raises(ValueError, match="column 1 has no Gaussian posterior"):
        field.condition(DiagonalPotential(J, np.zeros((40, 2)))).mean()


@pytest.mark.parametrize(
    ("pivots", "size"), [(1, 1), (3, 8), (5, 23), (16, 40), (17, 17), (51, 102)]
)
def test_elimination(pivots, size):
    rng = np.random.default_rng(size)
    width = size + 3
    half = rng.standard_normal((size, size + 2))
    whole = np.concatenate([half @ half.T, rng.standard_normal((size, 3))], axis=1)
    stride = int(row_stride(width))
    padded = np.full((size, stride), 7.0)
    padded[:, :width] = whole
    padded[np.tril_indices(size, -1)] = np.nan  # never read into the upper triangle
    flat = padded.ravel()
    assert eliminate(flat, stride, pivots, size, width) == 0
    out = flat.reshape(size, stride)[:, :width]
    root = np.linalg.cholesky(whole[:pivots, :pivots])
    above = np.linalg.solve(root, whole[:pivots])
    below = whole[pivots:] - above[:, pivots:size].T @ above
    upper = np.triu_indices(size, m=width)
    expected = np.concatenate([above, below])
    np.testing.assert_allclose(out[upper], expected[upper], rtol=1e-9, atol=1e-9)


def test_elimination_names_the_row_that_fails():
    flat = np.zeros(3 * 8)
    flat[[0, 9, 18]] = [1.0, -1.0, 1.0]
    assert eliminate(flat, 8, 3, 3, 3) == 2


def test_semidefinite_root():
    rng = np.random.default_rng(0)
    half = rng.standard_normal((7, 3))
    root = semidefinite_root(half @ half.T, 1e-14)
    assert root.shape == (3, 7)
    np.testing.assert_allclose(root.T @ root, half @ half.T, atol=1e-13)
    assert semidefinite_root(np.zeros((2, 2)), 1e-14).shape == (0, 2)

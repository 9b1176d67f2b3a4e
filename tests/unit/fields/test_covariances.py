"""Covariance functions: their values, derivatives, parameters and refusals."""

import numpy as np
import pytest
from scipy.integrate import quad

from pgmult.fields.covariances import (
    Constant,
    GreatCircle,
    LogNormal,
    Matern,
    Periodic,
    Product,
    SquaredExponential,
    Sum,
    White,
)
from pgmult.fields.covariances.base import columns_of

INPUTS = np.random.default_rng(0).uniform(-3.0, 3.0, size=(7, 3))
INPUTS[5] = INPUTS[2]  # a repeated input: the cusp of Matérn 1/2, and White's off-diagonal

COVARIANCES = {
    "squared exponential": SquaredExponential(1.3),
    "Matérn 1/2": Matern(0.5, 1.7),
    "Matérn 1/2 of columns": Matern(0.5, 1.7, active=[2, 0]),
    "Matérn 3/2": Matern(1.5, 0.8, active=[1]),
    "Matérn 5/2": Matern(2.5, 2.0),
    "periodic": Periodic(1.9, 0.8, active=[1]),
    "constant": Constant(2.5),
    "white": White(0.3),
    "white on a column": White(0.3, active=[0]),
    "great circle": GreatCircle(300.0, latitude=0, longitude=2),
    "scaled": 3.0 * SquaredExponential(1.3),
    "sum": 0.5 * Matern(1.5, 2.0) + White(0.1) + SquaredExponential(4.0),
    "product": 2.0 * Matern(1.5, 2.0, active=[0]) * SquaredExponential(1.5, active=[1, 2]),
    "nested": (Matern(0.5) + Constant(0.2)) * (Periodic(2.0, active=[0]) + White(0.4)),
    "partly fixed": Periodic(1.9, 1.2, active=[0], fixed="period") * Constant(2.0, fixed=("var",)),
}
everything = pytest.mark.parametrize("name", COVARIANCES)


def brute_force(covariance, x, y):
    """k(x, y) at one pair, from the formulas."""
    if isinstance(covariance, Sum):
        return sum(brute_force(part, x, y) for part in covariance.parts)
    if isinstance(covariance, Product):
        return np.prod([brute_force(part, x, y) for part in covariance.parts])
    if isinstance(covariance, GreatCircle):
        points = []
        for point in (x, y):
            lat, lon = np.radians(point[[covariance.latitude, covariance.longitude]])
            points.append([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)])
        angle = np.arctan2(np.linalg.norm(np.cross(*points)), np.dot(*points))
        return np.exp(-6371.0088 * angle / covariance.length_scale)
    if isinstance(covariance, Constant):
        return covariance.var
    if covariance.active is not None:
        x, y = x[list(covariance.active)], y[list(covariance.active)]
    if isinstance(covariance, White):
        return covariance.var if np.array_equal(x, y) else 0.0
    if isinstance(covariance, Periodic):
        sine = np.sin(np.pi * (x - y).item() / covariance.period)
        return np.exp(-2.0 * sine**2 / covariance.length_scale**2)
    r = np.linalg.norm((x - y) / covariance.length_scale)
    if isinstance(covariance, SquaredExponential):
        return np.exp(-0.5 * r**2)
    s = np.sqrt(2.0 * covariance.nu) * r
    return {0.5: 1.0, 1.5: 1.0 + s, 2.5: 1.0 + s + s**2 / 3.0}[covariance.nu] * np.exp(-s)


@everything
def test_values(name):
    covariance, others = COVARIANCES[name], INPUTS[[5, 1, 1]] + np.array([[0.0], [0.5], [0.0]])
    expected = [[brute_force(covariance, x, y) for y in others] for x in INPUTS]
    np.testing.assert_allclose(covariance.cov(INPUTS, others), expected, rtol=1e-7, atol=1e-12)


@everything
def test_positive_semi_definite_with_the_stated_diagonal(name):
    cov = COVARIANCES[name].cov(INPUTS)
    np.testing.assert_array_equal(cov, cov.T)
    np.testing.assert_allclose(np.diagonal(cov), COVARIANCES[name].diagonal(INPUTS), rtol=1e-12)
    assert np.linalg.eigvalsh(cov).min() > -1e-10


@everything
def test_parameters_round_trip(name):
    covariance = COVARIANCES[name]
    again = covariance.with_log_params(covariance.log_params)
    assert again.param_names == covariance.param_names
    assert len(covariance.log_params) == len(covariance.param_names) == covariance.num_params
    np.testing.assert_allclose(again.cov(INPUTS), covariance.cov(INPUTS), rtol=1e-13)
    drawn = covariance.sample_log_params(np.random.default_rng(1))
    np.testing.assert_allclose(covariance.with_log_params(drawn).log_params, drawn, rtol=1e-12)


def test_names_of_parameters():
    covariance = 2.0 * Matern(0.5, active=[0, 2]) + Matern(1.5) * White(fixed="var")
    names = ("Constant.var", "Matern.length_scale", "Matern_2.length_scale")
    assert covariance.param_names == names
    assert columns_of(covariance, 4) == {0, 1, 2, 3}
    assert columns_of(2.0 * Matern(0.5, active=[3]) * GreatCircle(), 5) == {0, 1, 3}


def test_the_prior_stays_where_it_was_put():
    covariance = Matern(1.5, 30.0)
    moved = covariance.with_log_params([np.log(30.0) + 1.0])
    expected = LogNormal(30.0).log_density(np.log(30.0) + 1.0)
    assert moved.log_prior() == pytest.approx(expected)
    own = Matern(1.5, 2.0, priors={"length_scale": LogNormal(3.0)})
    assert own.log_prior() == pytest.approx(LogNormal(3.0).log_density(np.log(2.0)))


def test_log_normal_priors():
    prior = LogNormal(3.0, 0.7)
    density = lambda z: np.exp(prior.log_density(np.float64(z)))  # noqa: E731
    assert quad(density, -30.0, 10.0, limit=200)[0] == pytest.approx(1.0)
    draws = prior.sample(np.random.default_rng(2), (20_000,))
    mean = quad(lambda z: z * density(z), -40.0, 10.0, limit=400)[0]
    sd = np.sqrt(quad(lambda z: (z - mean) ** 2 * density(z), -40.0, 10.0, limit=400)[0])
    assert abs(draws.mean() - mean) < 4.0 * sd / np.sqrt(draws.size)
    assert draws.std() == pytest.approx(sd, rel=0.05)


def test_distances_on_the_earth():
    paris, london, quito, far = [48.8566, 2.3522], [51.5074, -0.1278], [0.0, -78.5], [0.0, 101.5]
    covariance = GreatCircle(1000.0)
    apart = -1000.0 * np.log(covariance.cov([paris, quito], [london, far]))
    assert apart[0, 0] == pytest.approx(343.6, abs=0.1)
    assert apart[1, 1] == pytest.approx(np.pi * 6371.0088)  # antipodes
    with pytest.raises(ValueError, match=r"from -90 to 90 degrees, got -118.2 at row 0 .*swapped"):
        covariance.cov([[-118.2, 34.0]])


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Matern(1.0), "nu must be 0.5, 1.5 or 2.5, got 1.0"),
        (lambda: SquaredExponential(-1.0), "length_scale must be positive, got -1.0"),
        (lambda: SquaredExponential(np.nan), "length_scale must be finite, got nan"),
        (lambda: Matern(0.5, active=[0, 0]), "distinct columns"),
        (
            lambda: Matern(0.5, priors={"lengthscale": LogNormal(1.0)}),
            "priors must be of parameters that Matern has",
        ),
        (lambda: White(0.1, fixed="variance"), "fixed must be of parameters that White has, var"),
        (lambda: LogNormal(0.0), "median must be positive"),
        (lambda: GreatCircle(latitude=1, longitude=1), "must differ, got 1 for both"),
        (lambda: 0.0 * Matern(0.5), "var must be positive"),
        (lambda: Matern(0.5).with_log_params([1.0, 2.0]), r"for length_scale, got"),
        (lambda: Matern(0.5, active=[3]).cov(INPUTS), "acts on column 3, but the inputs have 3"),
        (lambda: Matern(0.5).cov([[1.0], [np.nan]]), "inputs must be finite, got nan at row 1"),
        (lambda: Matern(0.5).cov(np.zeros((2, 2, 2))), r"shape \(rows, columns\)"),
        (lambda: GreatCircle(longitude=5).cov(INPUTS), "acts on column 5"),
    ],
)
def test_bad_input(build, message):
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize("far", [800.0, -800.0])
def test_parameters_far_away_are_finite(far):
    covariance = 1.0 * Matern(1.5, 10.0)
    moved = covariance.with_log_params(np.array([far, -far]))
    assert np.isfinite(moved.cov(np.arange(3.0))).all()
    assert moved.log_prior() == -np.inf  # so that slices that step out end
    with pytest.raises(ValueError, match="length_scale must be from 5e-131 to "):
        Matern(1.5, 1e200)


def test_a_period_of_several_columns_is_a_product():
    both = Periodic(1.9, 0.8, active=[0, 2]).cov(INPUTS)
    each = Periodic(1.9, 0.8, active=[0]) * Periodic(1.9, 0.8, active=[2])
    np.testing.assert_allclose(both, each.cov(INPUTS), rtol=1e-13)

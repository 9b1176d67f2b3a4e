"""Fields on tables: distributions against the assembled Gaussian, cells against integrals."""

import logging
from dataclasses import replace

import numpy as np
import pytest
from oracle.gaussian_field import assert_drawn_from
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import kstest, multivariate_normal

from pgmult.fields import MultinomialGP, as_field
from pgmult.fields.compiled.cells import draw_rows, log_likelihood_rows, slope_rows
from pgmult.fields.covariances import (
    Constant,
    GreatCircle,
    Matern,
    Periodic,
    SquaredExponential,
    White,
)
from pgmult.fields.elsewhere import predict_at
from pgmult.fields.priors import structures as choices
from pgmult.fields.priors.separable import CellTable, Factors, TableGaussian
from pgmult.fields.priors.structures import find_table

PLACES = [(40.0, -100.0), (41.0, -95.0), (30.0, -80.0), (35.0, -120.0)]
GRID = np.array([[t, *place] for t in (0.0, 0.5, 2.0, 3.0, 7.0, 8.0) for place in PLACES])
INPUTS = GRID[np.random.default_rng(0).permutation(24)[:20]]  # four cells are missing
TIME, PLACE = Matern(1.5, 3.0, active=[0]), GreatCircle(1500.0, 1, 2)
COVARIANCES = {
    "product": 2.0 * TIME * PLACE + White(0.3),
    "two effects": PLACE * (TIME + Constant(0.2)) * Constant(0.5) + White(0.2) + 0.2 * White(0.5),
    "effects of columns": PLACE * TIME + White(0.7, active=[0]) * White(active=[1, 2]),
    "constant in time": 1.5 * PLACE + White(0.3),
}


def gaussian_and_matrix(name="product"):
    table = CellTable.of(COVARIANCES[name], INPUTS)
    return table, TableGaussian.of(table, COVARIANCES[name]), COVARIANCES[name].cov(table.sites)


@pytest.mark.parametrize("name", COVARIANCES)
def test_densities_are_those_of_the_assembled_gaussian(name):
    table, gaussian, cov = gaussian_and_matrix(name)
    psi = np.random.default_rng(1).standard_normal((24, 3))
    rotated = gaussian.rotate(table.arranged(psi))
    np.testing.assert_allclose(table.at_sites(gaussian.back(rotated)), psi, atol=1e-12)
    expected = multivariate_normal(np.zeros(24), cov).logpdf(psi.T)
    got = gaussian.log_density(rotated) - 12.0 * np.log(2.0 * np.pi)
    np.testing.assert_allclose(got, expected, atol=1e-9)
    precision = np.linalg.inv(cov)
    mean, var = gaussian.others(rotated)
    others = psi - precision @ psi / np.diagonal(precision)[:, None]
    np.testing.assert_allclose(table.at_sites(mean), others, atol=1e-9)
    np.testing.assert_allclose(
        table.at_sites(var[None])[:, 0], 1.0 / np.diagonal(precision), atol=1e-9
    )


@pytest.mark.parametrize("name", COVARIANCES)
def test_new_inputs_have_the_law_of_the_assembled_gaussian(name):
    table, gaussian, cov = gaussian_and_matrix(name)
    covariance = COVARIANCES[name]
    psi = np.random.default_rng(2).standard_normal((24, 2))
    rotated = gaussian.rotate(table.arranged(psi))
    new = np.array([[9.0, *PLACES[0]], [2.5, 33.0, -90.0], [9.0, 33.0, -90.0], INPUTS[3]])
    across = covariance.cov(new[:3], table.sites)
    gain = np.linalg.solve(cov, across.T).T
    mean, left = gain @ psi, covariance.cov(new[:3]) - gain @ across.T
    got, var = gaussian.elsewhere(new[:3], rotated)
    np.testing.assert_allclose(got, mean, atol=1e-10)
    np.testing.assert_allclose(var, np.diagonal(left), atol=1e-10)
    rng = np.random.default_rng(3)
    sticks = gaussian.rotate(table.arranged(np.tile(psi[:, :1], 6000)))
    draws = gaussian.draw_elsewhere(rng, new, sticks).T
    np.testing.assert_allclose(draws[:, 3], psi[3, 0], atol=1e-10)
    assert_drawn_from(draws[:, :3], mean[:, 0], left)
    with pytest.raises(AssertionError):
        assert_drawn_from(draws[:, :3], mean[:, 0], 0.8 * left)


def test_draws_have_the_law_of_the_assembled_gaussian():
    table, gaussian, cov = gaussian_and_matrix()
    noise = np.random.default_rng(4).standard_normal((8000, *table.shape))
    assert_drawn_from(
        table.at_sites(gaussian.back(np.sqrt(gaussian.vars) * noise)).T, np.zeros(24), cov
    )


def test_the_smaller_of_several_tables_is_taken():
    separate = TIME * Matern(0.5, active=[1]) * Matern(0.5, active=[2]) + White(0.1)
    by_time = CellTable.of(separate, INPUTS)
    assert sorted(by_time.shape) == [4, 6]
    assert {frozenset(by_time.row_inputs), frozenset({0, 1, 2}) - by_time.row_inputs} == {
        frozenset({0}),
        frozenset({1, 2}),
    }


@pytest.mark.parametrize(
    ("covariance", "message"),
    [
        (TIME * PLACE, "no independent effect of every input: add White"),
        (TIME * PLACE + White(active=[0]), "no independent effect"),
        (TIME * PLACE + PLACE + White(0.1), "one product and effects, got 2"),
        (White(0.1) + White(0.2), "one product and effects, got 0"),
        (SquaredExponential() + White(0.1), "no product of functions of different inputs"),
        (Periodic(active=[0, 1]) * GreatCircle(9.0, 1, 2) + White(), "no product of functions"),
    ],
)
def test_refuses_covariances_that_are_not_separable(covariance, message):
    with pytest.raises(ValueError, match=message):
        CellTable.of(covariance, INPUTS)
    with pytest.raises(ValueError, match=message):
        MultinomialGP(covariance, structure="separable", overdispersion=0.0).as_data(
            as_field(INPUTS, np.eye(20, 3, dtype=int))
        )


def test_refuses_inputs_that_are_few_cells_of_a_table():
    scattered = np.random.default_rng(0).random((200, 3))
    with pytest.raises(
        ValueError, match="200 inputs are too few of the cells of a table, 200 times"
    ):
        CellTable.of(COVARIANCES["product"], scattered)
    assert find_table("auto", COVARIANCES["product"], np.tile(scattered, (4, 1))) is None


def test_auto_takes_tables_where_inputs_are_many(caplog):
    choices._log_choice.cache_clear()
    many = np.array([[t, s] for t in range(30) for s in range(20)], dtype=float)
    covariance = Matern(1.5, active=[0]) * Matern(0.5, active=[1]) + White(0.1)
    with caplog.at_level(logging.INFO, logger="pgmult"):
        assert find_table("auto", covariance, many).shape in {(30, 20), (20, 30)}
    assert "structure='auto' took 'separable'" in caplog.text
    assert find_table("auto", covariance, many[:400]) is None
    assert find_table("auto", SquaredExponential(), many) is None
    assert find_table("dense", covariance, many) is None


def test_effects_of_all_inputs_add_up():
    factors = Factors.of(COVARIANCES["two effects"], 3)
    assert factors.effect == pytest.approx(0.3)
    assert factors.variance == pytest.approx(0.5)
    assert len(factors.parts) == 2


# ------------------------------------------------------------------ cells

TAKEN = np.array([[0.0, 3.0, 0.0, 50.0, 9000.0, 0.0]])
REACHING = np.array([[0.0, 5.0, 4000.0, 50.0, 30000.0, 1.0]])
LEVELS = np.array([[0.3, -2.0, -6.0, 3.0, -0.5, 9.0]])


def log_density(psi, c, level, var):
    """Of counts and psi in a cell."""
    fit = TAKEN[0, c] * psi - REACHING[0, c] * np.logaddexp(0.0, psi)
    return fit - 0.5 * (psi - level) ** 2 / var - 0.5 * np.log(2.0 * np.pi * var)


def integral(c, level, var):
    """Log of that over psi, and the mean and the spread of psi."""
    grid = level + np.sqrt(var) * np.linspace(-12.0, 12.0, 400001)
    values = log_density(grid, c, level, var)
    top = values.max()
    weights = np.exp(values - top)
    mean = np.average(grid, weights=weights)
    return top + np.log(weights.sum() * (grid[1] - grid[0])), mean


@pytest.mark.parametrize("var", [1e-3, 0.1, 1.0, 4.0])
def test_likelihoods_of_levels_are_integrals(var):
    for c in range(6):
        one = (a[:, [c]].copy() for a in (TAKEN, REACHING, LEVELS))
        out = np.empty(1)
        log_likelihood_rows(0, 0, 1, *one, var, out)
        expected, mean = integral(c, LEVELS[0, c], var)
        np.testing.assert_allclose(out[0], expected, atol=2e-5 if var <= 1.0 else 2e-4)
        one = (a[:, [c]].copy() for a in (TAKEN, REACHING, LEVELS))
        slopes, curvatures = np.empty((2, 1, 1))
        slope_rows(0, 0, 1, *one, var, slopes, curvatures)
        slope = (mean - LEVELS[0, c]) / var
        assert abs(slopes[0, 0] - slope) < 0.1 / np.sqrt(var)
        assert 0.0 <= curvatures[0, 0] <= 1.0 / var
    together = np.empty(1)
    log_likelihood_rows(0, 0, 1, TAKEN, REACHING, LEVELS, var, together)
    expected = sum(integral(c, LEVELS[0, c], var)[0] for c in range(6))
    np.testing.assert_allclose(together[0], expected, atol=1e-4)


@pytest.mark.parametrize("var", [1e-3, 1.0, 4.0])
def test_draws_of_cells_have_their_density(var):
    many = 4000
    rows = [np.repeat(a, many, axis=0) for a in (TAKEN, REACHING, LEVELS)]
    psi = np.empty((many, 6))
    draw_rows(0, 0, many, np.array([1, 2], dtype=np.uint64), *rows, var, psi)
    for c in range(6):
        grid = LEVELS[0, c] + np.sqrt(var) * np.linspace(-12.0, 12.0, 200001)
        values = log_density(grid, c, LEVELS[0, c], var)
        mass = np.cumsum(np.exp(values - values.max()))
        assert kstest(np.interp(psi[:, c], grid, mass / mass[-1]), "uniform").pvalue > 1e-4


def test_draws_stay_exact_where_newton_is_lost():
    """A level far above what a huge total allows: the mode is found by halving."""
    rows = (np.full((200, 1), value) for value in (0.0, 1e15, 30.0))
    psi = np.empty((200, 1))
    draw_rows(0, 0, 200, np.array([3, 4], dtype=np.uint64), *rows, 1.0, psi)
    slope = -1e15 * expit(np.median(psi)) - (np.median(psi) - 30.0)
    assert abs(slope) < 20.0
    total = quad(lambda z: np.exp(-1e15 * np.exp(z) - 0.5 * (z - 30.0) ** 2 + 2060.0), -50, -25)
    assert np.isfinite(total[0])


# ------------------------------------------------------------------ the model


def test_a_missing_cell_is_a_site_without_counts():
    counts = np.random.default_rng(0).multinomial(20, [0.5, 0.3, 0.2], size=20)
    data = as_field(INPUTS, counts, new_inputs=[[9.0, *PLACES[0]]])
    model = MultinomialGP(TIME * PLACE, overdispersion=0.1, structure="separable")
    rng = np.random.default_rng(1)
    state = model.init(rng, data)
    assert data.num_sites == 21
    assert state.psi.shape == (28, 2)  # a row more, and in it three cells, beside the four
    assert model.step(rng, state, data).psi.shape == (28, 2)
    drawn = predict_at(rng, model, state, data, [INPUTS[5], [1.0, 40.0, -90.0]])
    np.testing.assert_allclose(drawn.values[0], state.psi[5], atol=1e-10)
    assert (drawn.var[0] < drawn.var[1]).all()


def test_runs_are_the_same_for_any_number_of_threads():
    from pgmult.compiled.rows import row_threads

    counts = np.random.default_rng(0).multinomial(20, [0.5, 0.3, 0.2], size=20)
    data = as_field(INPUTS, counts)
    model = replace(
        MultinomialGP(TIME * PLACE, overdispersion=0.1, structure="separable"),
        hyperparameters="fixed",
    )
    draws = []
    for threads in (1, 2):
        with row_threads(threads, grain=1):
            rng = np.random.default_rng(1)
            state = model.init(rng, data)
            draws.append(model.step(rng, state, data).psi)
    np.testing.assert_array_equal(*draws)

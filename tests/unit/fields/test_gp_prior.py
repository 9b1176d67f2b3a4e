"""Dense Gaussian fields against the assembled Gaussian."""

from dataclasses import dataclass

import numpy as np
import pytest

from pgmult.core.potentials import DiagonalPotential
from pgmult.fields.compiled.dense_fields import lower_root
from pgmult.fields.covariances import Constant, Matern, SquaredExponential, White
from pgmult.fields.covariances.base import Covariance
from pgmult.fields.priors.dense import GaussianProcess
from pgmult.fields.priors.field import Trend

RNG = np.random.default_rng(0)
N, COLUMNS = 45, 11  # more than one block of rows, and a ragged last one
INPUTS = RNG.normal(size=(N, 2))
NEW = RNG.normal(size=(4, 2))
NEW[1] = INPUTS[3]
COVARIANCE = 1.7 * Matern(1.5, 1.4)
MEAN = RNG.normal(size=(N, COLUMNS))
NEW_MEAN = RNG.normal(size=(4, COLUMNS))
J = RNG.gamma(1.0, size=(N, COLUMNS)) * (RNG.random((N, COLUMNS)) < 0.7)
J[:, 4] = 0.0  # a column that nothing reached
J[0] = 1e-12
h = np.where(J > 0.0, RNG.normal(size=(N, COLUMNS)), 0.0)
POTENTIAL = DiagonalPotential(J, h)
FIELD = GaussianProcess(COVARIANCE, INPUTS)


def dense(column, covariance=COVARIANCE):
    """Mean, covariance and log Z of one column at the sites and the new inputs, by inverses."""
    wide = np.concatenate([INPUTS, NEW[[0, 2, 3]]])  # the other new input is a site
    cov, n = covariance.cov(wide), len(wide)
    mean = np.concatenate([MEAN[:, column], NEW_MEAN[[0, 2, 3], column]])
    precision, tilt = np.zeros(n), np.zeros(n)
    precision[:N], tilt[:N] = J[:, column], h[:, column]
    system = np.eye(n) + cov * precision  # K (K^-1 + J)
    posterior = np.linalg.solve(system, cov)
    pull = tilt - precision * mean
    log_z = mean @ (tilt - 0.5 * precision * mean) + 0.5 * pull @ posterior @ pull
    log_z -= 0.5 * np.linalg.slogdet(system)[1]
    return mean + posterior @ pull, posterior, log_z


@pytest.mark.parametrize("column", [0, 4, 10])
def test_moments_against_the_assembled_gaussian(column):
    mean, cov, log_z = dense(column)
    posterior = FIELD.condition(POTENTIAL, Trend.known(MEAN))
    np.testing.assert_allclose(posterior.mean[:, column], mean[:N], atol=1e-10)
    assert posterior.log_normalizers[column] == pytest.approx(log_z, abs=1e-10)
    both = np.concatenate([MEAN, NEW_MEAN])
    _, means, variances = FIELD.draw(np.random.default_rng(2), POTENTIAL, NEW, both)
    rest = [0, 2, 3]
    np.testing.assert_allclose(means[rest, column], mean[N:], atol=1e-10)
    np.testing.assert_allclose(variances[rest, column], np.diagonal(cov)[N:], atol=1e-10)
    assert variances[1, column] == pytest.approx(cov[3, 3], abs=1e-10)


def test_draws_have_the_dense_moments():
    draws = 6000
    means = np.tile(np.concatenate([MEAN, NEW_MEAN[[0, 2, 3]]])[:, :1], draws)
    potential = DiagonalPotential(np.tile(J[:, :1], draws), np.tile(h[:, :1], draws))
    posterior = FIELD.condition(potential, Trend.known(means[:N]))
    elsewhere = FIELD.draw(np.random.default_rng(2), potential, NEW[[0, 2, 3]], means)
    mean, cov, _ = dense(0)
    for sample, where in (
        (posterior.sample(np.random.default_rng(1)), np.arange(N)),
        (elsewhere.values, np.arange(N, N + 3)),
    ):
        expected, spread = mean[where], cov[np.ix_(where, where)]
        errors = (sample.mean(axis=1) - expected) / np.sqrt(np.diagonal(spread) / draws)
        assert np.abs(errors).max() < 4.5
        whitened = np.linalg.solve(np.linalg.cholesky(spread), sample - expected[:, None])
        second = whitened @ whitened.T / draws
        assert np.abs(second - np.eye(len(where))).max() < 6.0 * np.sqrt(2.0 / draws)


def test_a_trend_is_drawn_along_with_the_columns():
    """Against the assembled Gaussian of both."""
    draws, var = 6000, 0.6
    features = np.column_stack([np.ones(N), INPUTS[:, 0]])
    centre = np.array([[0.5], [-1.0]])
    potential = DiagonalPotential(np.tile(J[:, :1], draws), np.tile(h[:, :1], draws))
    trend = Trend(np.tile(MEAN[:, :1], draws), features, np.tile(centre, draws), var)
    drawn = FIELD.condition(potential, trend).sample(np.random.default_rng(10))
    both = np.concatenate([features, np.eye(2)])  # of the coefficients, as (psi, beta)
    cov = var * both @ both.T
    cov[:N, :N] += COVARIANCE.cov(INPUTS)
    mean = (both @ centre)[:, 0]
    mean[:N] += MEAN[:, 0]
    precision, tilt = np.zeros(N + 2), np.zeros(N + 2)
    precision[:N], tilt[:N] = J[:, 0], h[:, 0]
    posterior = np.linalg.solve(np.eye(N + 2) + cov * precision, cov)
    expected = mean + posterior @ (tilt - precision * mean)
    errors = (drawn.mean(axis=1) - expected) / np.sqrt(np.diagonal(posterior) / draws)
    assert np.abs(errors).max() < 4.5
    for k in range(N + 2):
        pair = np.cov(drawn[[k, N]])
        exact = posterior[np.ix_([k, N], [k, N])]
        scale = np.sqrt(np.outer(np.diagonal(exact), np.diagonal(exact)))
        assert np.abs((pair - exact) / scale).max() < 6.0 * np.sqrt(2.0 / draws)


def test_without_a_potential_it_is_the_prior():
    nothing = np.zeros((N, 4000))
    posterior = FIELD.condition(DiagonalPotential(nothing, nothing), Trend.known(nothing))
    np.testing.assert_array_equal(posterior.mean, nothing)
    np.testing.assert_array_equal(posterior.log_normalizers, np.zeros(4000))
    whitened = np.linalg.solve(
        np.linalg.cholesky(COVARIANCE.cov(INPUTS)), FIELD.sample(np.random.default_rng(3), 4000)
    )
    assert np.abs(whitened @ whitened.T / 4000 - np.eye(N)).max() < 6.0 * np.sqrt(2.0 / 4000)


def test_a_smooth_covariance_at_close_sites_needs_no_jitter():
    sites = np.linspace(0.0, 1.0, 60)
    field = GaussianProcess(SquaredExponential(1.0), sites)
    strong = np.full((60, 3), 1e6)
    truth = np.sin(sites)[:, None] * np.ones(3)
    told = DiagonalPotential(strong, strong * truth)
    seen = field.condition(told, Trend.known(np.zeros((60, 3))))
    assert np.abs(seen.sample(np.random.default_rng(4)) - truth).max() < 0.01
    assert np.linalg.matrix_rank(SquaredExponential(1.0).cov(sites)) < 20
    low = GaussianProcess(Constant(2.0), sites).sample(np.random.default_rng(5), 1)
    assert np.abs(np.diff(low[:, 0])).max() < 1e-6  # level


def test_coincident_sites_have_the_same_value():
    sites = np.array([0.0, 1.0, 0.0, 2.0])
    draw = GaussianProcess(Matern(0.5), sites).sample(np.random.default_rng(6), 5)
    np.testing.assert_allclose(draw[0], draw[2], atol=1e-7)
    both = GaussianProcess(Matern(0.5) + White(0.5), sites)
    apart = both.sample(np.random.default_rng(7), 2000)
    np.testing.assert_allclose(apart[0], apart[2], atol=1e-7)
    assert apart[1].var() == pytest.approx(1.5, rel=0.15)


@pytest.mark.parametrize("n", [1, 4, 31, 32, 33, 70])
def test_roots(n):
    factor = np.random.default_rng(n).normal(size=(n, n))
    matrix = factor @ factor.T + 0.1 * np.eye(n)
    root, failed = lower_root(matrix)
    assert failed == -1
    np.testing.assert_allclose(root, np.linalg.cholesky(matrix), atol=1e-9)
    low = factor[:, : n // 2 or 1]
    root, failed = lower_root(low @ low.T)
    assert failed == -1
    np.testing.assert_array_equal(root, np.tril(root))
    np.testing.assert_allclose(root @ root.T, low @ low.T, atol=1e-11 * n)


@dataclass(frozen=True, eq=False)
class Indefinite(Matern):
    """No covariance: a distance turned into one wrongly."""

    nu: float = 0.5

    def profile(self, r2):
        return 1.0 - r2


def test_an_indefinite_covariance_is_refused():
    assert isinstance(Indefinite(), Covariance)
    field = GaussianProcess(Indefinite(), np.arange(5.0))
    message = r"not positive semi-definite: it fails at input \d, \[\d\.\], .*no jitter is added"
    with pytest.raises(ValueError, match=message):
        field.sample(np.random.default_rng(0), 1)

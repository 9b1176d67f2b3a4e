"""Inducing points: near the field asked for, and exact for the field they define."""

import logging

import numpy as np
import pytest
from numba.core import config
from oracle.gaussian_field import assert_drawn_from, dense_law

from pgmult.core.potentials import DiagonalPotential
from pgmult.fields.covariances import Matern, SquaredExponential
from pgmult.fields.priors.inducing_points import InducingProcess

pytestmark = pytest.mark.slow  # they compile what nothing else that is quick needs
FEWER = 100 if config.DISABLE_JIT else 1  # draws, where they are not compiled

RNG = np.random.default_rng(0)
INPUTS, NEW = 3.0 * RNG.random((45, 2)), 3.0 * RNG.random((6, 2))
J = RNG.gamma(3.0, size=(45, 3)) * (RNG.random((45, 3)) < 0.7)
J[:, -1] = 0.0
H = np.where(J > 0.0, RNG.standard_normal(J.shape), 0.0)


class Approximate:
    """The covariance that inducing points define: all inputs distinct."""

    def __init__(self, covariance, points):
        self.covariance, self.points = covariance, points

    def cov(self, X):
        root = np.linalg.cholesky(self.covariance.cov(self.points))
        half = np.linalg.solve(root, self.covariance.cov(self.points, X))
        cov = half.T @ half
        cov[np.diag_indices_from(cov)] = self.covariance.diagonal(X)
        return cov


def check(field, covariance, tolerance):
    means, variances = field.predict(NEW, [0.1, 0.2, 0.3])
    log_z = field.log_normalizer()
    for c in range(3):
        mean, cov, expected = dense_law(
            covariance, INPUTS, NEW, J[:, c], H[:, c], 0.3, 0.1 * (c + 1)
        )
        np.testing.assert_allclose(field.mean()[:, c], mean[:45], atol=tolerance)
        np.testing.assert_allclose(means[:, c], mean[45:], atol=tolerance)
        np.testing.assert_allclose(variances[:, c], np.diagonal(cov)[45:], atol=tolerance)
        np.testing.assert_allclose(log_z[c], expected, atol=tolerance)


@pytest.mark.parametrize("num_points", [1, 12, 30])
def test_is_exact_for_the_field_it_defines(num_points):
    covariance = 1.4 * Matern(1.5, 1.5)
    field = InducingProcess(covariance, INPUTS, 0.3, num_points=num_points)
    assert field.points.shape == (num_points, 2)
    check(field.condition(DiagonalPotential(J, H)), Approximate(covariance, field.points), 1e-9)


def test_all_points_are_the_field_itself():
    covariance = 1.4 * Matern(0.5, 1.5)
    field = InducingProcess(covariance, INPUTS, 0.3).condition(DiagonalPotential(J, H))
    assert field.residual_vars.max() < 1e-12
    check(field, covariance, 1e-9)


def test_smooth_fields_need_few_points(caplog):
    covariance = SquaredExponential(3.0)
    with caplog.at_level(logging.INFO, logger="pgmult"):
        field = InducingProcess(covariance, INPUTS, 0.3, num_points=40)
    assert "inducing points approximate the covariance" in caplog.text
    assert "for 45 inputs leave residuals of standard deviation" in caplog.text
    check(field.condition(DiagonalPotential(J, H)), covariance, 1e-4)
    half = InducingProcess(covariance, INPUTS, num_points=5)
    assert half.residual_vars.max() > field.residual_vars.max()


def test_draws_have_the_law_of_the_field_it_defines():
    covariance = 1.4 * Matern(1.5, 1.5)
    copies = 8000 // FEWER
    many = DiagonalPotential(*(np.repeat(a[:8, :1], copies, axis=1) for a in (J, H)))
    field = InducingProcess(covariance, INPUTS[:8], 0.3, num_points=4).condition(many)
    mean, cov, _ = dense_law(
        Approximate(covariance, field.points), INPUTS[:8], NEW, J[:8, 0], H[:8, 0], 0.3, 0.3
    )
    drawn = field.draw(np.random.default_rng(0), NEW)
    assert_drawn_from(np.concatenate([drawn.values, drawn.new_values]).T, mean, cov)
    assert_drawn_from(field.sample(np.random.default_rng(1)).T, mean[:8], cov[:8, :8])
    assert_drawn_from(field.draw(np.random.default_rng(2), NEW).new_values.T, mean[8:], cov[8:, 8:])
    for got, expected in zip(drawn[2:], field.predict(NEW), strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-12)


def test_refuses_no_points():
    with pytest.raises(ValueError, match="num_points must be at least 1"):
        InducingProcess(Matern(0.5), INPUTS, num_points=0)

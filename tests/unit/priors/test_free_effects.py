"""Effects with a covariance of their own, against the dense Gaussian."""

import numpy as np
import pytest

from pgmult import MatrixNormalInverseWishart
from pgmult.priors.free_effects import (
    FreeEffects,
    OmegaPrior,
    given_scales,
    prior_covariances,
    sample_covariance,
)
from pgmult.priors.gaussian import inverse_wishart_log_density
from pgmult.priors.mixed_regression import MixedRegression

SIGMA = np.array([[2.0, 0.6], [0.6, 1.0]])
OMEGA = np.array([[0.5, -0.3], [-0.3, 0.9]])
RHO = np.array([0.7])
CODES = np.where(np.arange(12) == 7, -1, np.arange(12) % 5)


@pytest.fixture
def problem(rng):
    """A grouping of 5 levels beside a curve of 3, one row of no level; and all of it, dense."""
    x = np.column_stack([np.ones(12), rng.normal(size=12)])
    curve, rows = rng.normal(size=(12, 3)), rng.normal(size=(12, 2))
    precision = np.array([[2.0, 0.3], [0.3, 1.0]])
    prior = MatrixNormalInverseWishart(rng.normal(size=(2, 2)), precision, 6.0, np.eye(2))
    regression = MixedRegression.of(prior, rows, x, [curve, CODES])
    z = (CODES[:, None] == np.arange(5)).astype(float)
    blocks = [(x, np.linalg.inv(precision), SIGMA), (curve, RHO[0] * np.eye(3), SIGMA)]
    return regression, rows - x @ prior.mean, blocks, z


def dense(blocks, z, Omega):
    """Covariance of all coefficients and effects and what maps them to the rows, row by row."""
    parts = [*blocks, (z, np.eye(5), Omega)]
    covariance = [np.kron(by_row, by_column) for _, by_row, by_column in parts]
    columns = np.hstack([np.kron(design, np.eye(2)) for design, _, _ in parts])
    size = sum(map(len, covariance))
    whole, done = np.zeros((size, size)), 0
    for block in covariance:
        whole[done : done + len(block), done : done + len(block)] = block
        done += len(block)
    return whole, columns


def log_density(y, covariance):
    log_det = np.linalg.slogdet(covariance)[1]
    return -0.5 * (log_det + y @ np.linalg.solve(covariance, y))


def test_the_evidence_is_a_product_over_axes(problem):
    regression, y, blocks, z = problem
    along = FreeEffects.of(regression, RHO, SIGMA, OMEGA)
    np.testing.assert_allclose(along.covariance(along.variances), OMEGA)
    found, expected = [], []
    for variances in (along.variances, np.array([0.1, 0.2]), np.array([1e-4, 30.0])):
        found.append(sum(along.log_evidence(i, x) for i, x in enumerate(variances)))
        whole, columns = dense(blocks, z, along.covariance(variances))
        noise = np.kron(np.eye(12), SIGMA)
        expected.append(log_density(y.ravel(), columns @ whole @ columns.T + noise))
    np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=1e-8)


def test_one_variance_has_the_density_of_omega_times_the_volume(problem):
    """Along one axis: evidence, inverse Wishart and the distance to the other variance."""
    regression, y, blocks, z = problem
    along = FreeEffects.of(regression, RHO, SIGMA, OMEGA)
    prior = OmegaPrior(4.5, np.array([[1.5, 0.2], [0.2, 0.7]]))
    at, found, expected = along.variances, [], []
    for variance in (0.05, 0.4, 3.0):
        found.append(along.log_density(1, variance, at, prior))
        Omega = along.covariance(np.array([at[0], variance]))
        whole, columns = dense(blocks, z, Omega)
        rows = columns @ whole @ columns.T + np.kron(np.eye(12), SIGMA)
        expected.append(
            log_density(y.ravel(), rows)
            + inverse_wishart_log_density(Omega, prior.dof, prior.scale)
            + np.log(abs(variance - at[0]))
        )
    np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=1e-8)
    assert along.log_density(1, at[0], at, prior) == -np.inf


def test_draws_are_those_of_the_dense_gaussian(rng, problem):
    regression, y, blocks, z = problem
    along = FreeEffects.of(regression, RHO, SIGMA, OMEGA)
    whole, columns = dense(blocks, z, OMEGA)
    noise = np.kron(np.eye(12), SIGMA)
    gain = np.linalg.solve(columns @ whole @ columns.T + noise, columns @ whole).T
    mean, covariance = gain @ y.ravel(), whole - gain @ columns @ whole
    num_draws = 6_000
    draws = [along.sample(rng, along.variances) for _ in range(num_draws)]
    stacked = np.array(
        [np.concatenate([d.coefficients - regression.prior.mean, d.effects]).ravel() for d in draws]
    )
    deviation = stacked - mean
    error = np.sqrt(np.diagonal(covariance) / num_draws)
    assert (np.abs(deviation.mean(axis=0)) < 4.5 * error).all()
    products = np.einsum("di,dj->dij", deviation, deviation)
    error = products.std(axis=0) / np.sqrt(num_draws)
    assert (np.abs(products.mean(axis=0) - covariance) < 5.0 * error).all()


def test_standard_deviations_are_half_t(rng):
    """Of Omega from its prior, and as Gibbs over Omega and its scales leaves it."""
    drawn = prior_covariances(rng, 4_000, 3, 0.5)
    again = np.array([
        sample_covariance(rng, given_scales(rng, Omega, 0.5), np.empty((0, 3))) for Omega in drawn
    ])  # fmt: skip
    for Omegas in (drawn, again):
        sizes = np.sqrt(Omegas[:, range(3), range(3)]) / 0.5
        share = (sizes < 0.765).mean(axis=0)  # the median of |t| with 3 degrees of freedom
        np.testing.assert_allclose(share, 0.5, atol=4.5 * 0.5 / np.sqrt(4_000))

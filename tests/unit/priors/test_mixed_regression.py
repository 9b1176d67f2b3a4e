"""Coefficients, random effects and Sigma in one draw, against the dense regression."""

import numpy as np
import pytest
from scipy.special import multigammaln

from pgmult import MatrixNormalInverseWishart
from pgmult.priors.mixed_regression import MixedRegression

SPD = np.array([[2.0, 0.6], [0.6, 1.0]])
VARIANCES = np.array([0.3, 1.7, 0.05])


@pytest.fixture
def prior(rng):
    precision = np.array([[2.0, 0.3], [0.3, 1.0]])
    return MatrixNormalInverseWishart(rng.normal(size=(2, 2)), precision, 6.0, SPD)


@pytest.fixture
def problem(rng):
    """Crossed groupings of 5 and 3 levels, one row of no level, and a curve of 4."""
    x = np.column_stack([np.ones(12), rng.normal(size=12)])
    small, large = np.arange(12) % 3, np.arange(12) % 5
    large[7] = -1
    return rng.normal(size=(12, 2)), x, [small, large, rng.normal(size=(12, 4))]


def dense(prior, x, designs, variances):
    """Everything as one design matrix and its prior."""
    columns, precision = [x], [np.full(x.shape[1], np.nan)]
    for design, variance in zip(designs, variances, strict=True):
        z = (design[:, None] == np.arange(design.max() + 1)) if design.ndim == 1 else design
        columns.append(z.astype(float))
        precision.append(np.full(z.shape[1], 1.0 / variance))
    whole = np.diag(np.concatenate(precision))
    p = x.shape[1]
    whole[:p, :p] = prior.row_precision
    mean = np.zeros((len(whole), 2))
    mean[:p] = prior.mean
    return MatrixNormalInverseWishart(mean, whole, prior.dof, prior.scale), np.hstack(columns)


def student_evidence(prior, rows, columns):
    """The matrix-t density of the rows (Gupta and Nagar 1999, definition 4.2.1)."""
    row_cov = np.eye(len(rows)) + columns @ np.linalg.inv(prior.row_precision) @ columns.T
    (num_rows, n), dof = rows.shape, prior.dof - rows.shape[1] + 1.0
    away = rows - columns @ prior.mean
    inner = np.eye(num_rows) + np.linalg.solve(row_cov, away) @ np.linalg.solve(prior.scale, away.T)
    most = 0.5 * (dof + num_rows + n - 1.0)
    return (
        multigammaln(most, num_rows) - multigammaln(most - 0.5 * n, num_rows)
        - 0.5 * num_rows * n * np.log(np.pi)
        - 0.5 * n * np.linalg.slogdet(row_cov)[1]
        - 0.5 * num_rows * np.linalg.slogdet(prior.scale)[1]
        - most * np.linalg.slogdet(inner)[1]
    )  # fmt: skip


def regression_of(prior, rows, x, designs):
    sizes = [int(d.max()) + 1 if d.ndim == 1 else d.shape[1] for d in designs]
    return MixedRegression.of(prior, rows, x, [*zip(designs, sizes, strict=True)])


@pytest.mark.parametrize("chosen", [[0, 1, 2], [1, 2], [2], [0], []])
def test_the_evidence_is_a_matrix_t(prior, problem, chosen):
    rows, x, designs = problem
    designs = [designs[j] for j in chosen]
    regression = regression_of(prior, rows, x, designs)
    found, expected = [], []
    for factor in (1.0, 4.0, 0.01):
        variances = factor * VARIANCES[chosen]
        found.append(regression.log_evidence(variances))
        expected.append(student_evidence(*_arranged(dense(prior, x, designs, variances), rows)))
    np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("chosen", [[0, 1, 2], [0, 2], [2], [0]])
def test_the_evidence_along_a_term_is_that_of_all_variances(prior, problem, chosen):
    rows, x, designs = problem
    regression = regression_of(prior, rows, x, [designs[j] for j in chosen])
    for term in range(len(chosen)):
        along = regression.evidence_along(VARIANCES[chosen], term)
        for variance in (1e-9, 0.4, 3.0, 1e9):
            variances = VARIANCES[chosen]
            variances[term] = variance
            expected = regression.log_evidence(variances)
            np.testing.assert_allclose(along(variance), expected, rtol=1e-9, atol=1e-7)


def _arranged(whole, rows):
    prior, columns = whole
    return prior, rows, columns


def test_draws_are_those_of_the_dense_regression(rng, prior, problem):
    rows, x, designs = problem
    regression = regression_of(prior, rows, x, designs)
    whole, columns = dense(prior, x, designs, VARIANCES)
    posterior = whole.condition(rows, columns)
    num_draws = 6_000
    draws = [regression.sample(rng, VARIANCES) for _ in range(num_draws)]
    effects = np.array([np.concatenate([d.coefficients, d.effects]).ravel() for d in draws])
    Sigma = np.array([d.Sigma for d in draws])
    expected = posterior.scale / (posterior.dof - 3.0)
    error = Sigma.std(axis=0) / np.sqrt(num_draws)
    assert (np.abs(Sigma.mean(axis=0) - expected) < 4.5 * error).all()
    deviation = effects - posterior.mean.ravel()
    error = deviation.std(axis=0) / np.sqrt(num_draws)
    assert (np.abs(deviation.mean(axis=0)) < 4.5 * error).all()
    products = np.einsum("di,dj->dij", deviation, deviation)
    error = products.std(axis=0) / np.sqrt(num_draws)
    covariance = np.kron(np.linalg.inv(posterior.row_precision), expected)
    assert (np.abs(products.mean(axis=0) - covariance) < 5.0 * error).all()

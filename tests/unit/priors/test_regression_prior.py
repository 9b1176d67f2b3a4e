"""The matrix normal-inverse-Wishart prior of a regression, against closed forms."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from pgmult import MatrixNormalInverseWishart, NormalInverseWishart
from pgmult.testing import conditional_ratio, rejects

SPD = np.array([[2.0, 0.6], [0.6, 1.0]])


@pytest.fixture
def prior(rng):
    """Three covariates explain two coordinates."""
    row_precision = np.array([[2.0, 0.3, 0.0], [0.3, 1.0, -0.4], [0.0, -0.4, 0.7]])
    return MatrixNormalInverseWishart(rng.normal(size=(3, 2)), row_precision, 6.0, SPD)


@pytest.fixture
def regression(rng):
    """Nine rows and their covariates, an intercept among them."""
    covariates = np.column_stack([np.ones(9), rng.normal(size=(9, 2))])
    return 3.0 + rng.normal(size=(9, 2)), covariates


def test_density_is_scipys(rng, prior):
    coefficients, Sigma = prior.sample(rng)
    reference = stats.invwishart(6.0, prior.scale).logpdf(Sigma)
    reference += stats.matrix_normal(
        prior.mean, rowcov=np.linalg.inv(prior.row_precision), colcov=Sigma
    ).logpdf(coefficients)
    assert prior.log_density(coefficients, Sigma) == pytest.approx(reference, abs=1e-9)


def bayes_rule(prior, posterior, rows, covariates, points):
    def log_joint(point):
        coefficients, Sigma = point
        errors = stats.multivariate_normal(np.zeros(2), Sigma).logpdf
        return prior.log_density(*point) + errors(rows - covariates @ coefficients).sum()

    return log_joint, lambda point: posterior.log_density(*point), points


def test_posterior_satisfies_bayes_rule(rng, prior, regression):
    points = [prior.sample(rng) for _ in range(8)]
    conditional_ratio(*bayes_rule(prior, prior.condition(*regression), *regression, points))


@pytest.mark.parametrize(
    "broken",
    [
        lambda prior, y, x: prior.condition(y, np.roll(x, 1, axis=0)),
        lambda prior, y, x: replace(prior, row_precision=1e-9 * np.eye(3)).condition(y, x),
        lambda prior, y, x: replace(prior, mean=np.zeros((3, 2))).condition(y, x),
        lambda prior, y, x: replace(prior.condition(y, x), row_precision=prior.row_precision),
        lambda prior, y, x: replace(prior.condition(y, x), dof=prior.dof + len(y) - 3),
        lambda prior, y, x: replace(
            prior.condition(y, x), scale=prior.scale + (y - x @ prior.mean).T @ (y - x @ prior.mean)
        ),
    ],
    ids=[
        "covariates of the row before",
        "prior precision forgotten",
        "prior mean forgotten",
        "precision not updated",
        "degrees of freedom of a flat prior",
        "residuals from the prior mean",
    ],
)
def test_broken_posteriors_are_refused(rng, prior, regression, broken):
    points = [prior.sample(rng) for _ in range(8)]
    rejects(conditional_ratio, *bayes_rule(prior, broken(prior, *regression), *regression, points))


def test_rows_may_come_in_parts(rng, prior, regression):
    rows, covariates = regression
    at_once = prior.condition(rows, covariates)
    in_parts = prior.condition(rows[:4], covariates[:4]).condition(rows[4:], covariates[4:])
    for name in ("mean", "row_precision", "dof", "scale"):
        np.testing.assert_allclose(getattr(in_parts, name), getattr(at_once, name), rtol=1e-10)
    assert prior.condition(rows[:0], covariates[:0]) is prior


def test_one_constant_covariate_is_the_normal_inverse_wishart(rng):
    niw = NormalInverseWishart(np.array([0.5, -1.0]), 2.5, 5.0, SPD)
    same = MatrixNormalInverseWishart(niw.mean[None], np.array([[2.5]]), 5.0, SPD)
    rows = rng.normal(size=(7, 2)) + 3.0
    for one, other in ((niw, same), (niw.condition(rows), same.condition(rows, np.ones((7, 1))))):
        np.testing.assert_allclose(other.mean[0], one.mean, rtol=1e-12)
        np.testing.assert_allclose(other.row_precision, one.strength, rtol=1e-12)
        np.testing.assert_allclose(other.scale, one.scale, rtol=1e-12)
        assert other.dof == one.dof
        mu, Sigma = one.sample(np.random.default_rng(1))
        coefficients, cov = other.sample(np.random.default_rng(1))
        np.testing.assert_allclose(coefficients[0], mu, rtol=1e-12)
        np.testing.assert_allclose(cov, Sigma, rtol=1e-12)
        assert other.log_density(mu[None], Sigma) == pytest.approx(one.log_density(mu, Sigma))


def test_the_weak_prior_is_worth_one_average_row(rng, regression):
    """Over the rows' covariates, the prior variance of what is predicted averages p Sigma."""
    _, covariates = regression
    weak = MatrixNormalInverseWishart.weak(np.zeros((3, 2)), covariates, var=2.0)
    leverage = np.einsum("rp,pq,rq->r", covariates, np.linalg.inv(weak.row_precision), covariates)
    assert leverage.mean() == pytest.approx(3.0)
    np.testing.assert_array_equal(weak.scale, 2.0 * np.eye(2))
    again = weak.condition(np.zeros((9, 2)), covariates)
    np.testing.assert_allclose(again.row_precision, 10.0 * weak.row_precision)
    with pytest.raises(ValueError, match=r"got \(3, 2\) and \(9, 2\)"):
        MatrixNormalInverseWishart.weak(np.zeros((3, 2)), covariates[:, 1:])


def test_draws_have_the_moments_of_the_matrix_normal(rng, prior):
    """Cov(vec B) = row_precision^-1 (x) E[Sigma], and E[Sigma] = scale / (dof - n - 1)."""
    draws = 20_000
    samples = [prior.sample(rng) for _ in range(draws)]
    coefficients = np.array([b.ravel() for b, _ in samples])
    Sigma = np.array([cov for _, cov in samples])
    expected = prior.scale / 3.0
    np.testing.assert_allclose(
        Sigma.mean(axis=0), expected, atol=5 * Sigma.std(axis=0).max() / np.sqrt(draws)
    )
    error = coefficients.std(axis=0) / np.sqrt(draws)
    assert (np.abs(coefficients.mean(axis=0) - prior.mean.ravel()) < 4.5 * error).all()
    products = np.einsum("di,dj->dij", *2 * [coefficients - prior.mean.ravel()])
    error = products.std(axis=0) / np.sqrt(draws)
    covariance = np.kron(np.linalg.inv(prior.row_precision), expected)
    assert (np.abs(products.mean(axis=0) - covariance) < 4.5 * error).all()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"mean": np.zeros(3)}, r"mean must have the axes"),
        ({"mean": np.full((3, 2), np.nan)}, "mean must be finite, got nan at row 0, column 0"),
        ({"row_precision": np.eye(2)}, "row_precision must have shape"),
        ({"row_precision": -np.eye(3)}, "row_precision must be positive definite"),
        ({"scale": np.eye(3)}, "scale must have shape"),
        ({"dof": 1.0}, "dof must be above 1"),
    ],
)
def test_bad_priors_are_refused(prior, changed, message):
    with pytest.raises(ValueError, match=message):
        replace(prior, **changed)


def test_bad_regressions_are_refused(prior):
    with pytest.raises(ValueError, match=r"rows must have shape \(rows, 2\), got \(4, 3\)"):
        prior.condition(np.zeros((4, 3)), np.zeros((4, 3)))
    with pytest.raises(
        ValueError, match=r"covariates must have shape \(4, 3\) to go with the rows, got \(5, 3\)"
    ):
        prior.condition(np.zeros((4, 2)), np.zeros((5, 3)))
    with pytest.raises(ValueError, match="rows must be finite"):
        prior.condition(np.full((4, 2), np.inf), np.zeros((4, 3)))
    with pytest.raises(ValueError, match=r"coefficients must have shape \(3, 2\)"):
        prior.log_density(np.zeros((1, 2)), np.eye(2))

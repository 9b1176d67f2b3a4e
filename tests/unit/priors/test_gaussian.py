"""Gaussian rows in information form and the normal-inverse-Wishart, against dense algebra."""

import numpy as np
import pytest
from scipy import stats

from pgmult import DensePotential, DiagonalPotential, MvNormal, NormalInverseWishart
from pgmult.compiled.linalg import cholesky, invert_lower, invert_positive_definite, scatter
from pgmult.compiled.rows import row_threads
from pgmult.compiled.simd import WIDTH


def random_spd(rng, n):
    root = rng.normal(size=(n, n))
    return root @ root.T + 0.5 * np.eye(n)


def staircase_potential(rng, rows, n):
    """Row r reaches only its first r % (n + 1) coordinates, as sticks of short documents do."""
    reached = np.arange(n) < (np.arange(rows) % (n + 1))[:, None]
    return DiagonalPotential(
        np.where(reached, rng.gamma(1.0, size=(rows, n)), 0.0),
        np.where(reached, rng.normal(size=(rows, n)), 0.0),
    )


@pytest.mark.parametrize("n", [1, 2, 7, 60])
def test_compiled_algebra_agrees_with_lapack(rng, n):
    a = random_spd(rng, n)
    root = a.copy()
    assert cholesky(root) == 0
    np.testing.assert_allclose(root, np.linalg.cholesky(a), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(invert_lower(root) @ root, np.eye(n), atol=1e-9)
    inverse = invert_positive_definite(a)
    np.testing.assert_allclose(inverse @ a, np.eye(n), atol=1e-8)
    np.testing.assert_array_equal(inverse, inverse.T)
    x = rng.normal(size=(11, n))
    centred = x - x.mean(axis=0)
    np.testing.assert_allclose(scatter(x, x.mean(axis=0)), centred.T @ centred, atol=1e-12)


def test_cholesky_names_the_failing_row():
    a = np.diag([1.0, 1.0, -1.0])
    assert cholesky(a) == 3


def test_moments_and_evidence_agree_with_dense_algebra(rng):
    n = 4
    cov, mean = random_spd(rng, n), rng.normal(size=(6, n))
    potential = staircase_potential(rng, 6, n)
    posterior = MvNormal(mean, cov).condition(potential)
    for r in range(6):
        precision = np.linalg.inv(cov) + np.diag(potential.J[r])
        expected = np.linalg.solve(precision, np.linalg.solve(cov, mean[r]) + potential.h[r])
        np.testing.assert_allclose(posterior.mean()[r], expected, atol=1e-10)
        np.testing.assert_allclose(posterior.cov()[r], np.linalg.inv(precision), atol=1e-10)
    x = rng.normal(size=(6, n))
    log_prior = stats.multivariate_normal(np.zeros(n), cov).logpdf(x - mean)
    log_potential = np.sum(potential.h * x - 0.5 * potential.J * x**2, axis=1)
    np.testing.assert_allclose(
        log_prior + log_potential, posterior.log_density(x) + posterior.log_normalizer(), atol=1e-10
    )


def test_diagonal_and_dense_potentials_agree_and_add(rng):
    prior = MvNormal(rng.normal(size=3), random_spd(rng, 3))
    first, second = staircase_potential(rng, 5, 3), staircase_potential(rng, 5, 3)
    together = prior.condition(first + second)
    for posterior in (
        prior.condition(first).condition(second),
        prior.condition(first.dense()).condition(second),
        prior.condition(first.dense() + second.dense()),
    ):
        np.testing.assert_allclose(posterior.mean(), together.mean(), atol=1e-12)
        np.testing.assert_allclose(posterior.cov(), together.cov(), atol=1e-12)


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("row_means", [False, True])
def test_draws_have_the_posterior_moments(rng, dense, row_means):
    n, copies = 4, 20_000
    base = staircase_potential(rng, n + 1, n)
    mean = rng.normal(size=(n + 1, n)) if row_means else rng.normal(size=n)
    cov = random_spd(rng, n)
    exact = MvNormal(mean, cov).condition(base)
    tiled = DiagonalPotential(np.tile(base.J, (copies, 1)), np.tile(base.h, (copies, 1)))
    prior = MvNormal(np.tile(mean, (copies, 1)) if row_means else mean, cov)
    draws = prior.condition(tiled.dense() if dense else tiled).sample(rng)
    draws = draws.reshape(copies, n + 1, n)
    sd = np.sqrt(np.diagonal(exact.cov(), axis1=1, axis2=2))
    z = (draws.mean(axis=0) - exact.mean()) / sd * np.sqrt(copies)
    assert stats.chi2.sf(np.sum(z[:, 0] ** 2), n + 1) > 1e-4
    assert np.abs(z).max() < 4.5
    deviations = draws - exact.mean()
    outer = np.einsum("rki,rkj->rkij", deviations, deviations)
    error = (outer.mean(axis=0) - exact.cov()) / (outer.std(axis=0) / np.sqrt(copies))
    assert np.abs(error).max() < 5.0
    # a sampler that took precision for covariance would be far away
    wrong = (outer.mean(axis=0) - exact.precision()) / (outer.std(axis=0) / np.sqrt(copies))
    assert np.abs(wrong).max() > 50.0


def test_no_observation_is_the_prior(rng):
    cov = random_spd(rng, 3)
    zeros = np.zeros((50_000, 3))
    draws = MvNormal(np.ones(3), cov).condition(DiagonalPotential(zeros, zeros)).sample(rng)
    whitened = (draws - 1.0) @ np.linalg.inv(np.linalg.cholesky(cov)).T
    for column in whitened.T:
        assert stats.kstest(column, "norm").pvalue > 1e-4


def test_draws_do_not_depend_on_threads_or_on_other_rows(rng):
    rows, n = 7 * WIDTH + 5, 6
    potential = staircase_potential(rng, rows, n)
    prior = MvNormal(np.zeros(n), random_spd(rng, n)).condition(potential)
    alone = prior.sample(np.random.default_rng(3))
    for threads in (2, 3, 5):
        with row_threads(threads):
            np.testing.assert_array_equal(prior.sample(np.random.default_rng(3)), alone)


def test_single_vector_keeps_its_shape(rng):
    posterior = MvNormal(np.zeros(2), np.eye(2)).condition(
        DiagonalPotential(np.ones(2), np.ones(2))
    )
    assert posterior.sample(rng).shape == (2,)
    assert MvNormal(np.zeros(2), np.eye(2)).sample(rng).shape == (2,)
    assert MvNormal(np.zeros(2), np.eye(2)).sample(rng, 5).shape == (5, 2)


def test_inverse_wishart_moments_and_density(rng):
    n, dof = 3, 9.0
    niw = NormalInverseWishart(np.arange(3.0), 2.0, dof, random_spd(rng, n))
    draws = [niw.sample(rng) for _ in range(20_000)]
    mus, Sigmas = (np.array(values) for values in zip(*draws, strict=True))
    expected = niw.scale / (dof - n - 1)
    z = (Sigmas.mean(axis=0) - expected) / (Sigmas.std(axis=0) / np.sqrt(len(draws)))
    assert np.abs(z).max() < 4.5
    z = (mus.mean(axis=0) - niw.mean) / (mus.std(axis=0) / np.sqrt(len(draws)))
    assert np.abs(z).max() < 4.5
    # |scale| / |Sigma| is a product of independent chi-squares
    log_ratio = np.linalg.slogdet(niw.scale)[1] - np.linalg.slogdet(Sigmas)[1]
    chi2 = np.log(stats.chi2(dof - np.arange(n)).rvs((20_000, n), random_state=1)).sum(axis=1)
    assert stats.ks_2samp(log_ratio, chi2).pvalue > 1e-4
    mu, Sigma = draws[0]
    reference = stats.invwishart(dof, niw.scale).logpdf(Sigma)
    reference += stats.multivariate_normal(niw.mean, Sigma / 2.0).logpdf(mu)
    assert niw.log_density(mu, Sigma) == pytest.approx(reference, abs=1e-9)


def test_niw_posterior_satisfies_bayes_rule(rng):
    """log prior + log likelihood - log posterior is the same at every (mu, Sigma)."""
    niw = NormalInverseWishart.weak(np.array([0.5, -1.0]), var=2.0)
    x = rng.normal(size=(7, 2)) + 3.0
    posterior = niw.condition(x)
    evidence = []
    for _ in range(10):
        mu, Sigma = posterior.sample(rng)
        log_likelihood = stats.multivariate_normal(mu, Sigma).logpdf(x).sum()
        evidence.append(
            niw.log_density(mu, Sigma) + log_likelihood - posterior.log_density(mu, Sigma)
        )
    np.testing.assert_allclose(evidence, evidence[0], atol=1e-8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros(2), np.array([[1.0, 2.0], [2.0, 1.0]])), "positive definite"),
        ((np.zeros(2), np.array([[1.0, 0.5], [0.0, 1.0]])), "symmetric"),
        ((np.zeros(3), np.eye(2)), "3 x 3"),
        ((np.array([0.0, np.nan]), np.eye(2)), "prior_mean must be finite, got nan at position 1"),
        ((np.zeros((2, 2, 2)), np.eye(2)), "shape"),
    ],
)
def test_bad_gaussians_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        MvNormal(*arguments)


def test_bad_potentials_are_refused(rng):
    prior = MvNormal(np.zeros(2), np.eye(2))
    with pytest.raises(ValueError, match="the potential must have shape"):
        prior.condition(DiagonalPotential(np.ones((3, 4)), np.ones((3, 4))))
    improper = DiagonalPotential(np.array([[1.0, 1.0], [-5.0, 1.0]]), np.zeros((2, 2)))
    with pytest.raises(ValueError, match="row 1 has no Gaussian posterior"):
        prior.condition(improper).sample(rng)
    with pytest.raises(ValueError, match="leave it out"):
        prior.condition(DensePotential(np.eye(2), np.zeros(2))).sample(rng, 3)


def test_improper_niw_is_refused():
    with pytest.raises(ValueError, match="dof must be above"):
        NormalInverseWishart(np.zeros(5), 1.0, 4.0, np.eye(5))
    with pytest.raises(ValueError, match="strength"):
        NormalInverseWishart(np.zeros(2), 0.0, 4.0, np.eye(2))
    with pytest.raises(ValueError, match="rows must have shape"):
        NormalInverseWishart.weak(np.zeros(2)).condition(np.zeros((3, 5)))

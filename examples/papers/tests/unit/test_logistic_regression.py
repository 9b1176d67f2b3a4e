"""Data, sweeps and MAP-EM of logistic regressions, on small examples."""

import numpy as np
import pytest
from same_draws import check_threads_do_not_matter
from scipy.optimize import minimize
from scipy.special import expit

from examples.papers.regressions.classes import logistic_site
from examples.papers.regressions.compiled.weights import (
    OVERRELAXATION,
    GroupRows,
    Prior,
    sample_weights,
)
from examples.papers.regressions.data import as_labelled_rows
from examples.papers.regressions.designs import Rows
from examples.papers.regressions.logistic import GroupedLogisticRegression, LogisticRegression
from examples.papers.regressions.logistic_fits import (
    fit_grouped_logistic_regression,
    fit_logistic_regression,
)
from examples.papers.regressions.solver import fit_sites
from examples.papers.regressions.updates import sd_of_correction
from pgmult import MvNormal, sample


def make(num_rows=90, num_covariates=5, num_groups=4, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((num_rows, num_covariates))
    groups = rng.integers(num_groups, size=num_rows)
    weights = 0.5 + 0.6 * rng.standard_normal((num_groups, num_covariates))
    y = rng.random(num_rows) < expit(np.einsum("nd,nd->n", x, weights[groups]))
    return as_labelled_rows(x, y, groups)


# ------------------------------------------------------------------ data


def test_rows_are_sorted_by_group_and_know_where_they_were():
    x = np.arange(10.0).reshape(5, 2)
    data = as_labelled_rows(x, [0, 1, 1, 0, 1], list("badab"), group_names=list("abcd"))
    assert list(data.offsets) == [0, 2, 4, 4, 5]
    np.testing.assert_array_equal(data.covariates, x[data.given])
    assert list(data.given) == [1, 3, 0, 4, 2]
    assert list(data.successes) == [1, 0, 0, 1, 1]
    assert repr(data) == "LabelledRows(5 rows, 2 covariates, 4 groups, 3 of 5 trials successful)"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"covariates": [[1.0], [np.inf]]}, "covariates must be finite, got inf at row 1"),
        ({"covariates": [1.0, 2.0]}, r"covariates must have shape \(rows, covariates\), got"),
        ({"successes": [0, 2]}, "successes must be 0 or 1 .* got 2 at row 1"),
        ({"successes": [0, 3], "trials": [1, 2]}, "at most trials, 2, got 3 at row 1"),
        ({"successes": [0, -1]}, "non-negative integers, got -1"),
        ({"successes": [0]}, r"successes must have shape \(2,\), got \(1,\)"),
        ({"groups": [1]}, r"groups must have shape \(2,\), got \(1,\)"),
        ({"groups": ["a", "x"], "group_names": ["a", "b"]}, "among group_names, got 'x'"),
        ({"groups": ["a", "a"], "group_names": ["a", "a"]}, "a list of different names"),
        ({"group_names": ["a"]}, "group_names needs groups"),
    ],
)
def test_bad_data_is_refused_in_words(change, message):
    arguments = {"covariates": [[1.0], [2.0]], "successes": [0, 1]} | change
    with pytest.raises(ValueError, match=message):
        as_labelled_rows(**arguments)


# ------------------------------------------------------------------ the sweep


@pytest.mark.parametrize("size", [1, 7, 8, 9, 16, 17, 28])
def test_weights_move_as_their_gaussian_says(size):
    """Huge trials leave omega without noise: many moves from one point against the dense posterior.

    From 0, overrelaxation goes to mean (1 - a) m with covariance (1 - a**2) S.
    """
    rng = np.random.default_rng(size)
    num_rows = 140 if size == 17 else 40  # more than the 128 that are laid out at a time, once
    x = rng.standard_normal((num_rows, size))
    trials = np.full(num_rows, 1e7)
    successes = rng.binomial(10_000_000, 0.3, size=num_rows).astype(float)
    precision = np.diag(1e6 + 1e5 * np.arange(size))
    precision[0, -1] = precision[-1, 0] = 1e5 * (size > 1) + precision[0, -1] * (size == 1)
    mean = rng.standard_normal((1, size))
    weights = np.zeros((1, size))
    omega = 0.25 * trials  # PG(b, 0) has mean b / 4 and here a relative deviation of 2e-4
    P = precision + x.T @ (omega[:, None] * x)
    h = precision @ mean[0] + x.T @ (successes - 0.5 * trials)
    rows = GroupRows(x, np.array([0, num_rows]), successes, trials, np.zeros(num_rows))
    draws = np.empty((200, size))
    for draw in draws:
        key, out = rng.integers(0, 2**63, size=2, dtype=np.uint64), np.empty((1, size))
        status = sample_weights(
            0, 0, 1, rows, Prior(mean, precision), key, weights, np.array([True]), out
        )
        assert status == 0
        draw[:] = out[0]
    scale = np.linalg.cholesky(P)
    mean_of_move = (1.0 - OVERRELAXATION) * np.linalg.solve(P, h)
    white = (draws - mean_of_move) @ scale / np.sqrt(1.0 - OVERRELAXATION**2)
    centre = np.linalg.norm(np.linalg.solve(P, h))
    assert np.abs(white.mean(axis=0)).max() < 5.0 / 14.0 + 2e-4 * centre * np.abs(scale).max()
    assert np.abs(white.T @ white / 200 - np.eye(size)).max() < 0.7


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        GroupedLogisticRegression(MvNormal(np.zeros(5), np.eye(5)), 8.0, np.eye(5)),
    ],
    ids=["fixed prior", "learned prior"],
)
def test_threads_do_not_matter(model):
    check_threads_do_not_matter(model, make())


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
def test_sampling_takes_plain_arrays_and_names_groups():
    x = np.random.default_rng(0).standard_normal((30, 2))
    y, groups = x[:, 0] > 0.0, np.repeat(["b", "a"], 15)
    posterior = sample(
        LogisticRegression(), (x, y, groups), draws=20, tune=5, chains=1, random_seed=0,
        progressbar=False,
    )  # fmt: skip
    assert posterior["weights"].shape == (1, 20, 2, 2)
    assert list(posterior.coords["group"]) == ["a", "b"]
    with pytest.raises(TypeError, match="data must be LabelledRows or a tuple"):
        sample(LogisticRegression(), x, draws=1, tune=0, chains=1, progressbar=False)


def test_bad_hyperparameters():
    prior = MvNormal(np.zeros(2), np.eye(2))
    with pytest.raises(ValueError, match="dof must be above 1"):
        GroupedLogisticRegression(prior, 1.0, np.eye(2))
    with pytest.raises(ValueError, match="scale must be 2 x 2"):
        GroupedLogisticRegression(prior, 4.0, np.eye(3))
    with pytest.raises(ValueError, match="weights_prior must be of 5 weights, one a covariate"):
        LogisticRegression(prior).init(np.random.default_rng(0), make())
    with pytest.raises(ValueError, match="weights_prior must be one Gaussian"):
        LogisticRegression(MvNormal(np.zeros((3, 2)), np.eye(2)))


# ------------------------------------------------------------------ MAP-EM


MODEL = GroupedLogisticRegression(
    MvNormal(np.full(2, 0.1), 3.0 * np.eye(2)), 7.0, np.array([[2.0, 0.3], [0.3, 1.5]])
)


def penalised_evidence(data, method, mu, Sigma):
    site = logistic_site(data.successes, data.trials, method)
    fit = fit_sites(Rows(data.covariates, data.offsets), site, MvNormal(mu, Sigma), tolerance=1e-8)
    precision, gap = np.linalg.inv(Sigma), mu - 0.1
    strength = 7.0 - 2 - 1
    prior = -gap @ gap / 6.0 + 0.5 * strength * np.linalg.slogdet(precision)[1]
    return fit.objective + prior - 0.5 * np.trace(precision @ MODEL.scale)


@pytest.mark.parametrize(
    "method", ["jaakkola_jordan", pytest.param("quadrature", marks=pytest.mark.slow)]
)
def test_map_em_finds_the_maximum_of_the_bound(method):
    data = make(60, 2, 4)
    fit = fit_grouped_logistic_regression(MODEL, data, method=method, tolerance=1e-7)
    assert fit.converged
    best = penalised_evidence(data, method, fit.mu, fit.Sigma)
    assert fit.objective == pytest.approx(best, abs=1e-6)

    def minus_evidence(packed):
        root = np.array([[np.exp(packed[2]), 0.0], [packed[3], np.exp(packed[4])]])
        return -penalised_evidence(data, method, packed[:2], root @ root.T)

    root = np.linalg.cholesky(fit.Sigma)
    packed = np.array([*fit.mu, np.log(root[0, 0]), root[1, 0], np.log(root[1, 1])])
    other = minimize(minus_evidence, packed + 0.1, method="BFGS", options={"gtol": 1e-4})
    np.testing.assert_allclose(other.x, packed, atol=3e-3)


def test_without_the_covariances_the_groups_are_pooled_more():
    data = make(200, 3, 10, seed=3)
    model = GroupedLogisticRegression(MvNormal(np.zeros(3), 10.0 * np.eye(3)), 6.0, 0.5 * np.eye(3))
    right = fit_grouped_logistic_regression(model, data)
    printed = fit_grouped_logistic_regression(model, data, with_covariances=False)
    assert np.trace(printed.Sigma) < np.trace(right.Sigma)
    spread = [np.var(fit.weights.mean, axis=0).sum() for fit in (printed, right)]
    assert spread[0] < spread[1]
    residuals = printed.weights.mean - printed.mu
    expected = (model.scale + residuals.T @ residuals) / (10 + 6.0 - 3 - 1)
    np.testing.assert_allclose(printed.Sigma, expected, rtol=1e-3)


def test_collinear_covariates_converge_in_a_few_iterations():
    """Indicators of categories and an intercept: the groups' mean has directions unseen."""
    rng = np.random.default_rng(5)
    kind = rng.integers(3, size=400)
    x = np.column_stack([np.eye(3)[kind], np.ones(400)])
    data = as_labelled_rows(x, rng.random(400) < 0.5, rng.integers(20, size=400))
    fit = fit_grouped_logistic_regression(
        GroupedLogisticRegression.like_wang_blei(4), data, method="laplace"
    )
    assert fit.converged
    assert fit.num_iterations <= 20


def test_empty_groups_and_impossible_priors():
    data = make(40, 2, 3)
    wider = as_labelled_rows(
        data.covariates, data.successes, np.repeat([0, 1, 2], np.diff(data.offsets)),
        group_names=[0, 1, 2, 3],
    )  # fmt: skip
    fit = fit_grouped_logistic_regression(MODEL, wider)
    np.testing.assert_allclose(fit.weights.mean[3], fit.mu, atol=1e-6)
    np.testing.assert_allclose(fit.weights.cov[3], fit.Sigma, rtol=1e-8)
    loose = GroupedLogisticRegression(MvNormal(np.zeros(2), np.eye(2)), 1.5, np.eye(2))
    one = as_labelled_rows(data.covariates, data.successes)
    with pytest.raises(ValueError, match=r"Sigma has no mode: 1 groups and dof 1\.5 are too few"):
        fit_grouped_logistic_regression(loose, one)


def test_fits_and_draws_agree():
    data = make(120, 3, 1, seed=9)
    fit = fit_logistic_regression(LogisticRegression(), data, method="quadrature")
    draws = sample(
        LogisticRegression(), data, draws=4000, tune=50, chains=1, random_seed=1, progressbar=False
    )["weights"][0, :, 0]
    sd = draws.std(axis=0)
    assert (np.abs(draws.mean(axis=0) - fit.mean[0]) < 0.1 * sd).all()
    np.testing.assert_allclose(np.sqrt(np.diag(fit.cov[0])), sd, rtol=0.06)


@pytest.mark.parametrize("skew", [0.0, 0.5])
def test_correction_is_that_of_the_law(skew):
    """0 of a Gaussian likelihood, and of f = skew w^3 its standard deviation, sqrt(15) skew s^3."""
    pull = np.array([3.0, 1.0])

    def log_likelihood(weights):
        value = weights * pull - 0.5 * weights**2
        value[:, 0] += skew * (weights[:, 0] - 0.5 * pull[0]) ** 3
        return value.sum(axis=1)

    root = np.sqrt(0.5) * np.eye(2)[None]
    found = sd_of_correction(log_likelihood, 0.5 * pull[None], root, np.zeros(2), np.eye(2))
    assert found.shape == (1,)
    assert found[0] == pytest.approx(skew * np.sqrt(15.0 / 8.0), rel=0.5, abs=1e-12)

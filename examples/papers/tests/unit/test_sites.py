"""Sites and their derivatives, and the one solver that all Gaussian approximations share."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from examples.papers.regressions.classes import LOGISTIC_METHODS, logistic_site
from examples.papers.regressions.data import as_labelled_rows
from examples.papers.regressions.designs import Rows
from examples.papers.regressions.logistic import LogisticRegression
from examples.papers.regressions.logistic_fits import fit_logistic_regression
from examples.papers.regressions.solver import fit_sites
from pgmult import MvNormal, sample
from pgmult.links.logistic import logistic_expectations

NAMES = list(LOGISTIC_METHODS)
MEAN = np.array([-30.0, -4.0, -0.7, 0.0, 0.3, 2.0, 9.0, 60.0])
VAR = np.array([0.0, 0.2, 1.0, 2.2, 4.0, 30.0, 0.5, 900.0])
SITES = {
    name: logistic_site(
        np.array([0.0, 1.0, 2.0, 0.0, 1.0, 3.0, 0.5, 2.0]),
        np.array([1.0, 1, 2, 0, 3, 3, 1, 4]),
        name,
    )
    for name in NAMES
}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = np.column_stack([np.ones(80), rng.standard_normal((80, 3))])
    groups = np.repeat([0, 1, 3], [40, 35, 5])
    y = rng.random(80) < expit(x @ [0.5, 1.0, -1.0, 0.0])
    return as_labelled_rows(x, y, groups, group_names=[0, 1, 2, 3])


PRIOR = MvNormal(np.array([0.2, 0.0, -0.3, 0.1]), np.diag([4.0, 1.0, 2.0, 0.5]) + 0.3)


# ------------------------------------------------------------------ sites


@pytest.mark.parametrize("name", NAMES)
def test_derivatives(name):
    site, step = SITES[name], 1e-5
    _, d_mean, d_var = site.expect(MEAN, VAR)
    up, down = site.expect(MEAN + step, VAR)[0], site.expect(MEAN - step, VAR)[0]
    np.testing.assert_allclose(d_mean, (up - down) / (2 * step), rtol=1e-5, atol=1e-8)
    assert (d_var <= 0.0).all()
    if name == "laplace":  # its value looks at v = 0: dF/dv is half the curvature there
        slope = site.expect(MEAN + step, VAR)[1] - site.expect(MEAN - step, VAR)[1]
        np.testing.assert_allclose(d_var, slope / (4 * step), rtol=1e-5, atol=1e-8)
    else:
        up, down = site.expect(MEAN, VAR + 2 * step)[0], site.expect(MEAN, VAR + step)[0]
        here = site.expect(MEAN, VAR)[0]
        forward = (4.0 * down - up - 3.0 * here) / (2 * step)
        np.testing.assert_allclose(d_var, forward, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_bounds_are_bounds(name):
    """Where a site says it is a bound, it is; where it does not, it is not."""
    exact = SITES["quadrature"].expect(MEAN, VAR)[0]
    gap = exact - SITES[name].expect(MEAN, VAR)[0]
    assert (gap >= -1e-12 * (1.0 + np.abs(exact))).all() == SITES[name].is_bound


@pytest.mark.parametrize("scale", [0.3, 1.4, 1.6, 10.0, 300.0])
def test_expectations_against_a_brute_force_sum(scale):
    x = np.linspace(-12.0, 12.0, 200_001)
    weights = np.exp(-0.5 * x * x) / np.exp(-0.5 * x * x).sum()
    means = np.array([-25.0, -3.0, -0.2, 0.0, 1.0, 8.0, 30.0])
    found = np.array(logistic_expectations(means, np.full(7, scale**2)))
    psi = means[:, None] + scale * x
    share = expit(psi)
    exact = [np.logaddexp(0.0, psi) @ weights, share @ weights, (share * expit(-psi)) @ weights]
    np.testing.assert_allclose(found, exact, rtol=1e-9, atol=1e-12)


# ------------------------------------------------------------------ the solver


def log_evidence_gap(fit, design, site, prior, group_rows):
    """L at q, by hand, for the first group."""
    m, S = fit.mean[0], fit.cov[0]
    x = design.covariates[group_rows]
    mean, var = x @ m, np.einsum("nd,de,ne->n", x, S, x)
    full_mean, full_var = np.zeros(len(design.covariates)), np.zeros(len(design.covariates))
    full_mean[group_rows], full_var[group_rows] = mean, var
    value = site.expect(full_mean, full_var)[0][group_rows].sum()
    P, gap = np.linalg.inv(prior.prior_cov), m - prior.prior_mean
    kl = 0.5 * (np.trace(P @ S) - len(m) + gap @ P @ gap - np.linalg.slogdet(P @ S)[1])
    return value - kl


@pytest.mark.parametrize("name", NAMES)
def test_the_objective_is_stationary_and_what_it_says(data, name):
    site = logistic_site(data.successes, data.trials, name)
    design = Rows(data.covariates, data.offsets)
    fit = fit_sites(design, site, PRIOR, tolerance=1e-8)
    assert fit.converged
    assert fit.is_bound == site.is_bound
    rows = slice(0, 40)
    P = np.linalg.inv(PRIOR.prior_cov)
    x = data.covariates[rows]
    if name == "laplace":

        def minus_log_joint(w):
            psi, gap = x @ w, w - PRIOR.prior_mean
            y = data.successes[rows]
            return np.logaddexp(0.0, psi).sum() - y @ psi + 0.5 * gap @ P @ gap

        mode = minimize(minus_log_joint, np.zeros(4), method="BFGS", options={"gtol": 1e-9}).x
        np.testing.assert_allclose(fit.mean[0], mode, atol=1e-5)
        share = expit(x @ fit.mean[0])
        precision = P + x.T @ ((share * (1 - share))[:, None] * x)
        np.testing.assert_allclose(fit.cov[0] @ precision, np.eye(4), atol=1e-6)
        evidence = -minus_log_joint(fit.mean[0])
        evidence += 0.5 * (np.linalg.slogdet(P)[1] - np.linalg.slogdet(precision)[1])
        assert fit.level[0] == pytest.approx(evidence, abs=1e-6)
        return
    best = log_evidence_gap(fit, design, site, PRIOR, rows)
    assert fit.level[0] == pytest.approx(best, abs=1e-8)

    class Moved:
        mean, cov = fit.mean.copy(), fit.cov.copy()

    rng = np.random.default_rng(1)
    for _ in range(10):  # no direction in means or covariances leads up
        Moved.mean[0] = fit.mean[0] + 1e-3 * rng.standard_normal(4)
        twist = np.eye(4) + 1e-3 * rng.standard_normal((4, 4))
        Moved.cov[0] = twist @ fit.cov[0] @ twist.T
        assert log_evidence_gap(Moved, design, site, PRIOR, rows) < best


@pytest.mark.parametrize("name", NAMES)
def test_groups_are_fitted_as_if_alone_and_an_empty_one_keeps_the_prior(data, name):
    site = logistic_site(data.successes, data.trials, name)
    together = fit_sites(Rows(data.covariates, data.offsets), site, PRIOR)
    rows = slice(*data.offsets[1:3])
    alone = logistic_site(data.successes[rows], np.ones(35), name)
    one = fit_sites(Rows(data.covariates[rows]), alone, PRIOR)
    np.testing.assert_allclose(together.mean[1], one.mean[0], atol=2e-6)
    np.testing.assert_allclose(together.level[1], one.level[0], atol=1e-6)
    np.testing.assert_allclose(together.mean[2], PRIOR.prior_mean, atol=1e-12)
    np.testing.assert_allclose(together.cov[2], PRIOR.prior_cov, rtol=1e-10)
    assert together.level[2] == pytest.approx(0.0, abs=1e-10)


def test_accuracy_is_in_the_order_that_the_table_says(data):
    """Against long Gibbs sampling: the bound below the truth, quadrature nearest to it."""
    one = as_labelled_rows(data.covariates, data.successes)
    model = LogisticRegression(PRIOR)
    draws = sample(model, one, draws=3000, tune=100, chains=2, random_seed=0, progressbar=False)
    weights = draws["weights"].reshape(-1, 4)
    error, spread = {}, {}
    for name in NAMES:
        fit = fit_logistic_regression(model, one, method=name)
        error[name] = np.abs((fit.mean[0] - weights.mean(axis=0)) / weights.std(axis=0)).mean()
        spread[name] = (np.sqrt(np.diag(fit.cov[0])) / weights.std(axis=0)).mean()
    assert error["quadrature"] < 0.03
    assert error["delta"] < 0.5 * error["laplace"]
    assert spread["jaakkola_jordan"] < min(spread["delta"], spread["quadrature"]) < 1.02


def test_starts_far_away_and_separable_labels(data):
    site = logistic_site(data.successes, data.trials, "quadrature")
    near = fit_sites(Rows(data.covariates, data.offsets), site, PRIOR)
    far = fit_sites(Rows(data.covariates, data.offsets), site, PRIOR, start=np.full((4, 4), 20.0))
    np.testing.assert_allclose(near.mean, far.mean, atol=1e-5)
    x = np.linspace(-20.0, 20.0, 30)[:, None]
    for name in NAMES:
        sure = logistic_site((x[:, 0] > 0.0) * 1.0, np.ones(30), name)
        fit = fit_sites(Rows(x), sure, MvNormal(np.zeros(1), 4.0 * np.eye(1)))
        assert np.isfinite(fit.level).all()
        assert fit.mean[0, 0] > 0.0
        assert 0.0 < fit.cov[0, 0, 0] <= 4.0


def test_bad_input(data):
    site = logistic_site(data.successes, data.trials, "quadrature")
    with pytest.raises(
        ValueError, match=r"prior must be of 4 weights like the design, with one mean or 4"
    ):
        fit_sites(Rows(data.covariates, data.offsets), site, MvNormal(np.zeros(3), np.eye(3)))
    with pytest.raises(ValueError, match="covariates must be finite"):
        Rows(np.full((3, 2), np.nan))
    with pytest.raises(ValueError, match="successes must be rows of numbers not above trials"):
        logistic_site(np.array([2.0]), np.array([1.0]), "quadrature")
    with pytest.raises(ValueError, match="method must be one of laplace, delta"):
        fit_logistic_regression(LogisticRegression(), data, method="probit")

"""Variances of priors by evidence and by sampling; counts; quadrature of a softmax."""

import numpy as np
import pytest
from scipy.special import logsumexp, softmax
from sklearn.utils.estimator_checks import check_estimator

from pgmult import MvNormal
from pgmult.regression import (
    CountRegressor,
    HalfT,
    Horseshoe,
    LogisticClassifier,
    LogisticRegression,
    MultinomialClassifier,
    NegativeBinomialRegression,
    PoissonRegression,
    ScaledRegression,
    as_counted_rows,
    as_event_rows,
    fit_count_regression,
    fit_softmax_regression,
)
from pgmult.regression.fits.multinomial import _dense_average, _dense_quadrature
from pgmult.variational.bounds import LOG_SUM_EXP

pytestmark = pytest.mark.filterwarnings("ignore::pgmult.regression.ApproximationWarning")

RNG = np.random.default_rng(2)
X = RNG.standard_normal((250, 6))
Y = (X @ [2.0, -1.0, 0.0, 0.0, 0.0, 0.0] + RNG.logistic(size=250) > 0.0).astype(int)
THREE = (X[:, :2] @ [[0.0, 2.0, -1.0], [1.0, 0.0, -2.0]] + RNG.gumbel(size=(250, 3))).argmax(axis=1)
EVENTS = RNG.negative_binomial(2.0, 2.0 / (2.0 + np.exp(0.5 + 0.8 * X[:, 0])))
FEW = {"draws": 400, "tune": 200, "chains": 1, "random_state": 0}


@pytest.mark.parametrize("which", ["evidence", "ard"])
def test_learned_variances_make_the_data_most_probable(which):
    fitted = LogisticClassifier(weight_var=which).fit(X, Y)
    best, found = fitted.log_evidence_[0], fitted.weight_var_
    for factor in (0.5, 0.9, 1.1, 2.0):
        other = LogisticClassifier(weight_var=factor * found).fit(X, Y)
        assert other.log_evidence_[0] < best + 1e-6
    if which == "evidence":
        assert len(set(found)) == 1
    else:
        assert (found[:2] > 0.3).all()
        assert (found[2:] < 0.1).all()
        assert best > LogisticClassifier(weight_var="evidence").fit(X, Y).log_evidence_[0]


def test_learned_variances_of_several_classes_and_of_counts():
    three = MultinomialClassifier("tilted", weight_var="ard").fit(X, THREE)
    assert (three.weight_var_[:2] > 5.0 * three.weight_var_[2:].max()).all()
    counts = CountRegressor(weight_var="ard").fit(X, EVENTS)
    assert counts.weight_var_[0] > 5.0 * counts.weight_var_[1:].max()


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
def test_horseshoes_shrink_what_is_nothing_and_leave_the_rest():
    plain = LogisticClassifier("sampling", weight_var=4.0, **FEW).fit(X, Y)
    shrunk = LogisticClassifier("sampling", weight_var="horseshoe", **FEW).fit(X, Y)
    assert np.abs(shrunk.coef_[0, 2:]).mean() < 0.7 * np.abs(plain.coef_[0, 2:]).mean()
    assert shrunk.coef_[0, 0] > 0.8 * plain.coef_[0, 0]
    assert shrunk.weight_var_[0] > 3.0 * np.median(shrunk.weight_var_[2:])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
@pytest.mark.parametrize("method", ["sampling", "sticks_sampling"])
def test_half_t_scales_of_several_classes(method):
    fitted = MultinomialClassifier(method, weight_var="half_t", **FEW).fit(X[:, :2], THREE)
    by_evidence = MultinomialClassifier(
        "tilted" if method == "sampling" else "sticks", weight_var="evidence"
    ).fit(X[:, :2], THREE)
    np.testing.assert_allclose(fitted.coef_, by_evidence.coef_, atol=0.5)
    assert (
        np.abs(fitted.predict_proba(X[:, :2]) - by_evidence.predict_proba(X[:, :2])).mean() < 0.02
    )


@pytest.mark.parametrize("scales", [HalfT(), Horseshoe()])
def test_a_model_without_a_fixed_prior_is_refused(scales):
    with pytest.raises(TypeError, match="model must be a regression with a fixed prior"):
        ScaledRegression(NegativeBinomialRegression(), scales)
    tied = MvNormal(np.zeros(2), np.array([[1.0, 0.5], [0.5, 1.0]]))
    with pytest.raises(ValueError, match="model must have independent weights"):
        ScaledRegression(LogisticRegression(tied), scales)


# ------------------------------------------------------------------ counts


def test_a_poisson_fit_is_the_posterior_in_one_dimension():
    y = np.array([3.0, 0.0, 2.0, 5.0])
    data = as_event_rows(np.ones((4, 1)), y, weights=[1.0, 2.0, 0.5, 1.0])
    fit = fit_count_regression(data, MvNormal(np.zeros(1), np.array([[4.0]])))
    grid = np.linspace(-6.0, 6.0, 20_001)
    times = data.weights
    level = (times @ y) * grid - times.sum() * np.exp(grid) - grid**2 / 8.0
    weight = np.exp(level - level.max())
    weight /= weight.sum()
    mean = weight @ grid
    sd = np.sqrt(weight @ (grid - mean) ** 2)
    assert fit.mean[0, 0] == pytest.approx(mean, abs=0.01 * sd)
    assert np.sqrt(fit.cov[0, 0, 0]) == pytest.approx(sd, rel=0.04)


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
@pytest.mark.parametrize("distribution", ["poisson", "negative_binomial"])
def test_counts_are_sampled_and_fitted_alike(distribution):
    fitted = CountRegressor(distribution=distribution).fit(X, EVENTS)
    sampled = CountRegressor("sampling", distribution=distribution, **FEW).fit(X, EVENTS)
    sd = np.sqrt(np.diagonal(fitted.coef_cov_[0]))[:-1]
    assert (np.abs(fitted.coef_ - sampled.coef_) < 0.4 * sd).all()
    np.testing.assert_allclose(fitted.predict(X), sampled.predict(X), rtol=0.2)
    if distribution == "negative_binomial":
        assert 0.25 < fitted.dispersion_ < 1.0
        assert sampled.dispersion_ == pytest.approx(fitted.dispersion_, rel=0.25)
        assert fitted.log_evidence_ > CountRegressor().fit(X, EVENTS).log_evidence_ + 20.0


def test_counts_of_any_size_are_fitted():
    counts = RNG.poisson(np.exp(9.0 + X[:, 0]))
    fitted = CountRegressor().fit(X, counts)
    assert fitted.coef_[0, 0] == pytest.approx(1.0, abs=0.01)
    assert fitted.score(X, counts) > 0.99


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"distribution": "gamma"}, "distribution must be one of poisson, negative_binomial"),
        ({"method": "delta"}, "method must be one of quadrature, laplace, sampling"),
        ({"dispersion": 1.0}, "dispersion needs distribution='negative_binomial'"),
        (
            {"dispersion": 0.0, "distribution": "negative_binomial"},
            "dispersion must be at least 0.0001",
        ),
    ],
)
def test_bad_parameters_of_counts(change, words):
    with pytest.raises(ValueError, match=words):
        CountRegressor(**change).fit(X, EVENTS)
    with pytest.raises(ValueError, match="y must be non-negative"):
        CountRegressor().fit(X, EVENTS - 5)


def test_a_size_has_no_place_in_a_poisson():
    with pytest.raises(ValueError, match="size is of the negative binomial"):
        fit_count_regression(as_event_rows(X, EVENTS), size=2.0)
    with pytest.raises(ValueError, match="size_prior must be two numbers"):
        NegativeBinomialRegression(size_prior=(1.0, 2.0, 3.0))
    with pytest.raises(TypeError, match="data must be a EventRows"):
        PoissonRegression().as_data(X)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
@pytest.mark.parametrize(
    "estimator",
    [
        CountRegressor(),
        CountRegressor("sampling", draws=60, tune=20, chains=1),
        CountRegressor(distribution="negative_binomial", dispersion=0.5),
    ],
    ids=["poisson", "sampling", "negative binomial"],
)
def test_scikit_learns_own_checks_of_counts(estimator):
    results = check_estimator(estimator, on_fail=None, on_skip=None)
    assert [r["check_name"] for r in results if r["status"] == "failed"] == []


# ------------------------------------------------------------------ the softmax by quadrature


@pytest.mark.parametrize("size", [2, 3, 6])
def test_quadrature_of_independent_gaussians_is_one_integral(size):
    rng = np.random.default_rng(size)
    mean, var = rng.normal(size=(20, size)), rng.uniform(0.1, 2.0, size=(20, size))
    exact, probs, curvature = LOG_SUM_EXP["quadrature"].expect(mean, var)
    found = _dense_quadrature(mean, var[:, :, None] * np.eye(size))
    np.testing.assert_allclose(found[0], exact, atol=1e-2)
    np.testing.assert_allclose(found[1], probs, atol=4e-3)
    np.testing.assert_allclose(np.diagonal(found[2], axis1=1, axis2=2), curvature, atol=4e-3)
    fine = _dense_quadrature(mean, var[:, :, None] * np.eye(size), 13)
    np.testing.assert_allclose(fine[0], exact, atol=1e-3)


def test_quadrature_of_correlated_gaussians_is_an_average_over_draws():
    root = RNG.normal(size=(4, 4, 4))
    mean, cov = RNG.normal(size=(4, 4)), root @ root.swapaxes(1, 2)
    value, probs, curvature = _dense_quadrature(mean, cov)
    noise = RNG.standard_normal((100_000, 4))
    for n in range(4):
        x = mean[n] + noise @ root[n].T
        p = softmax(x, axis=1)
        assert value[n] == pytest.approx(logsumexp(x, axis=1).mean(), abs=0.03)
        np.testing.assert_allclose(probs[n], p.mean(axis=0), atol=0.006)
        expected = 0.5 * (np.diag(p.mean(axis=0)) - p.T @ p / len(p))
        np.testing.assert_allclose(curvature[n], expected, atol=0.004)
    np.testing.assert_allclose(probs, _dense_average(mean, cov), atol=4e-3)


def test_the_best_gaussian_has_the_best_bound():
    data = as_counted_rows(np.column_stack([X[:, :2], np.ones(250)]), THREE)
    fits = [
        fit_softmax_regression(data, method=method, covariance=covariance)
        for method, covariance in (
            ("quadrature", "full"),
            ("tilted", "full"),
            ("quadrature", "class"),
        )
    ]
    assert all(fit.converged for fit in fits)
    assert fits[0].objective > max(fits[1].objective, fits[2].objective)
    two = as_counted_rows(X, Y)
    exact = [
        fit_softmax_regression(two, method=m, covariance="full") for m in ("quadrature", "tilted")
    ]
    assert exact[0].objective > exact[1].objective

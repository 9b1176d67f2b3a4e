"""scikit-learn faces of logistic regression: conventions, averages, and awkward data."""

from collections import Counter

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression as SklearnLogisticRegression
from sklearn.model_selection import KFold, cross_val_score
from sklearn.utils.estimator_checks import check_estimator

from pgmult.regression import LogisticClassifier

pytestmark = [
    pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::pgmult.regression.ApproximationWarning"),
]

METHODS = ["laplace", "delta", "jaakkola_jordan", "quadrature", "sampling"]
QUICK = {"draws": 300, "tune": 50, "chains": 1, "random_state": 0}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((150, 3))
    y = X @ [2.0, 0.0, -1.0] + 0.5 + rng.logistic(size=150) > 0.0
    return X, y.astype(int)


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator",
    [
        LogisticClassifier(),
        LogisticClassifier("sampling", draws=60, tune=20, chains=1, random_state=0),
    ],
    ids=["quadrature", "sampling"],
)
def test_scikit_learns_own_checks(estimator):
    results = check_estimator(estimator, on_fail=None, on_skip=None)
    failed = [(r["check_name"], r["exception"]) for r in results if r["status"] == "failed"]
    assert failed == []
    assert Counter(r["status"] for r in results)["passed"] >= 45


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_near_the_penalised_maximum(data, method):
    X, y = data
    fitted = LogisticClassifier(method, intercept_var=1e6, scale_inputs=False, **QUICK).fit(X, y)
    maximum = SklearnLogisticRegression(C=1.0, tol=1e-10).fit(X, y)
    sd = np.sqrt(np.diagonal(fitted.coef_cov_[0]))
    if method == "laplace":
        np.testing.assert_allclose(fitted.coef_, maximum.coef_, atol=1e-4)
        np.testing.assert_allclose(fitted.intercept_, maximum.intercept_, atol=1e-4)
    assert (np.abs(fitted.coef_ - maximum.coef_) < 0.5 * sd[:3]).all()
    assert fitted.score(X, y) > 0.75
    assert fitted.coef_cov_.shape == (1, 4, 4)
    assert np.isnan(fitted.log_evidence_).all() == (method == "sampling")


def test_averages_over_the_posterior_are_milder_than_the_plug_in(data):
    X, y = data
    X_new = 5.0 * X[:40]
    probs = {
        average: LogisticClassifier("quadrature", average=average)
        .fit(X, y)
        .predict_proba(X_new)[:, 1]
        for average in ("quadrature", "probit", "plug_in")
    }
    fitted = LogisticClassifier("quadrature").fit(X, y)
    rng = np.random.default_rng(0)
    mean = np.append(fitted.coef_[0], fitted.intercept_)
    draws = rng.multivariate_normal(mean, fitted.coef_cov_[0], size=40_000)
    sampled = expit(np.column_stack([X_new, np.ones(40)]) @ draws.T).mean(axis=1)
    np.testing.assert_allclose(probs["quadrature"], sampled, atol=0.006)
    np.testing.assert_allclose(probs["probit"], probs["quadrature"], atol=0.02)
    assert (np.abs(probs["quadrature"] - 0.5) < np.abs(probs["plug_in"] - 0.5)).all()
    gibbs = LogisticClassifier("sampling", draws=2000, random_state=0).fit(X, y)
    np.testing.assert_allclose(gibbs.predict_proba(X_new)[:, 1], sampled, atol=0.03)


def test_an_intercept_is_a_column_of_ones_with_its_own_prior(data):
    X, y = data
    with_ones = np.column_stack([X, np.ones(len(X))])
    one = LogisticClassifier(intercept_var=1.0, scale_inputs=False).fit(X, y)
    other = LogisticClassifier(fit_intercept=False, scale_inputs=False).fit(with_ones, y)
    np.testing.assert_allclose(one.coef_[0], other.coef_[0, :3], rtol=1e-8)
    np.testing.assert_allclose(one.intercept_, other.coef_[:, 3], rtol=1e-8)
    np.testing.assert_allclose(one.log_evidence_, other.log_evidence_, rtol=1e-8)
    assert (other.intercept_ == 0.0).all()
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(with_ones), rtol=1e-8)


@pytest.mark.parametrize("method", ["delta", "sampling"])
def test_several_labels_are_fitted_each_by_itself(data, method):
    X, y = data
    Y = np.column_stack([y, X[:, 1] > 0.0, np.zeros(len(X), dtype=int)])
    fitted = LogisticClassifier(method, **QUICK).fit(X, Y)
    assert fitted.coef_.shape == (3, 3)
    assert fitted.predict(X).shape == fitted.predict_proba(X).shape == Y.shape
    assert list(fitted.classes_) == [0, 1, 2]
    assert (fitted.predict(X)[:, 2] == 0).all()  # one class only: the prior and the data agree
    assert np.isfinite(fitted.coef_).all()
    alone = LogisticClassifier(method, **QUICK).fit(X, Y[:, 0])
    np.testing.assert_allclose(fitted.coef_[0], alone.coef_[0], rtol=1e-12)
    with pytest.raises(ValueError, match="0 or 1 everywhere"):
        fitted.fit(X, 2 * Y)


@pytest.mark.parametrize("method", METHODS)
def test_separable_labels_and_constant_columns_have_a_posterior(method):
    x = np.linspace(-1.0, 1.0, 20)
    X = np.column_stack([x, np.full(20, 3.0), np.zeros(20)])
    fitted = LogisticClassifier(method, weight_var=1e4, **QUICK).fit(X, x > 0.05)
    assert np.isfinite(fitted.coef_).all()
    assert np.isfinite(fitted.coef_cov_).all()
    assert (np.linalg.eigvalsh(fitted.coef_cov_[0]) > 0.0).all()
    probs = fitted.predict_proba(X)
    assert np.isfinite(probs).all()
    np.testing.assert_allclose(probs.sum(axis=1), 1.0)
    assert fitted.score(X, x > 0.05) > 0.9
    if method != "sampling":  # a column of zeros says nothing: its weight keeps the prior
        assert fitted.coef_[0, 2] == pytest.approx(0.0, abs=1e-9)
        assert fitted.coef_cov_[0, 2, 2] == pytest.approx(1e4)


def test_one_class_only_is_refused_in_words(data):
    with pytest.raises(ValueError, match="y must have two classes, got one class only"):
        LogisticClassifier().fit(data[0], np.zeros(150))
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        LogisticClassifier().fit(data[0], np.arange(150) % 3)


def test_they_clone_and_cross_validate(data):
    X, y = data
    estimator = clone(LogisticClassifier("laplace"))
    folds = KFold(3, shuffle=True, random_state=0)
    assert cross_val_score(estimator, X, y, cv=folds).mean() > 0.65
    with pytest.raises(NotFittedError):
        estimator.predict(X)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"method": "newton"},
            "method must be one of laplace",
        ),
        ({"weight_var": 0.0}, "weight_var must be at least 1e-100"),
        ({"intercept_var": -1.0}, "intercept_var must be at least 1e-100"),
    ],
)
def test_bad_parameters(data, change, message):
    with pytest.raises(ValueError, match=message):
        LogisticClassifier(**change).fit(*data)
    with pytest.raises(ValueError, match="average must be one of quadrature"):
        LogisticClassifier(average="mean").fit(*data).predict(data[0])

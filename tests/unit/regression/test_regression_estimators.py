"""scikit-learn faces of logistic regression: conventions, averages, and awkward data."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression as SklearnLogisticRegression
from sklearn.model_selection import KFold, cross_val_score
from sklearn.utils.estimator_checks import check_estimator

from pgmult.regression import GroupedLogisticClassifier, LogisticClassifier

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


@pytest.fixture(scope="module")
def grouped():
    """Twelve groups in column 0, with weights around (1, -1) and intercepts of their own."""
    rng = np.random.default_rng(2)
    group = np.repeat(np.arange(12), 25)
    weights = np.array([1.0, -1.0, 0.0]) + 0.7 * rng.standard_normal((12, 3))
    x = rng.standard_normal((300, 2))
    psi = (np.column_stack([x, np.ones(300)]) * weights[group]).sum(axis=1)
    y = psi + rng.logistic(size=300) > 0.0
    return np.column_stack([group, x]), y


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator",
    [
        LogisticClassifier(),
        LogisticClassifier("sampling", draws=60, tune=20, chains=1, random_state=0),
        GroupedLogisticClassifier(method="laplace"),
    ],
    ids=["quadrature", "sampling", "hierarchical"],
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
    for estimator in (LogisticClassifier(), GroupedLogisticClassifier()):
        with pytest.raises(ValueError, match="y must have two classes, got one class only"):
            estimator.fit(data[0], np.zeros(150))
        with pytest.raises(ValueError, match="Only binary classification is supported"):
            estimator.fit(data[0], np.arange(150) % 3)


@pytest.mark.parametrize("method", METHODS)
def test_groups_learn_from_each_other(grouped, method):
    X, y = grouped
    fitted = GroupedLogisticClassifier(0, method=method, spread_strength=5.0, **QUICK).fit(X, y)
    assert fitted.coef_.shape == (12, 2)
    assert fitted.coef_cov_.shape == (12, 3, 3)
    assert np.abs(fitted.mean_ - [1.0, -1.0, 0.0]).max() < 0.7
    assert fitted.score(X, y) > 0.7
    spread = np.sqrt(np.diagonal(fitted.spread_))
    assert ((spread > 0.3) & (spread < 1.5)).all()


def test_a_group_without_rows_has_the_common_law(grouped):
    X, y = grouped
    fitted = GroupedLogisticClassifier(0).fit(X, y)
    new = np.array([[99.0, 0.5, -0.5], [0.0, 0.5, -0.5]])
    x = np.array([0.5, -0.5, 1.0])
    spread = fitted.spread_ + fitted.mean_cov_  # mu is uncertain, too
    expected = fitted._average(x @ fitted.mean_, np.array(x @ spread @ x))
    probs = fitted.predict_proba(new)[:, 1]
    assert probs[0] == pytest.approx(float(expected), rel=1e-10)
    assert probs[1] != pytest.approx(probs[0], rel=1e-3)
    assert expit(fitted.decision_function(new)) == pytest.approx(probs)


def test_groups_by_name_in_a_data_frame(grouped):
    X, y = grouped
    frame = pd.DataFrame(X, columns=["school", "a", "b"])
    by_number = GroupedLogisticClassifier(0).fit(X, y)
    frame["school"] = [f"school {int(g):02d}" for g in frame["school"]]
    by_name = GroupedLogisticClassifier("school").fit(frame, y)
    np.testing.assert_allclose(by_name.coef_, by_number.coef_, rtol=1e-10)
    assert list(by_name.feature_names_in_) == ["a", "b"]
    assert by_name.groups_[3] == "school 03"
    np.testing.assert_allclose(by_name.predict_proba(frame), by_number.predict_proba(X), rtol=1e-10)
    with pytest.raises(ValueError, match="groups must name a column of X, got 'class'"):
        GroupedLogisticClassifier("class").fit(frame, y)
    with pytest.raises(ValueError, match="groups must be a column of X, got 7"):
        GroupedLogisticClassifier(7).fit(X, y)
    with pytest.raises(ValueError, match="groups must be the number of a column"):
        GroupedLogisticClassifier("school").fit(X, y)


def test_they_clone_and_cross_validate(grouped):
    X, y = grouped
    estimator = clone(GroupedLogisticClassifier(0, method="laplace"))
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

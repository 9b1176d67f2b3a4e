"""What estimators of regressions say of awkward input, and raw columns as people have them."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax
from sklearn.base import clone

from pgmult import MvNormal
from pgmult.regression import (
    LogisticClassifier,
    MultinomialClassifier,
    as_counted_rows,
    as_labelled_rows,
    fit_softmax_regression,
)
from pgmult.regression.fits.multinomial import softmax_probs
from pgmult.variational import bounds

rng = np.random.default_rng(0)
X = rng.standard_normal((120, 2))
Y = (X @ [[0.0, 2.0, -1.0], [1.0, 0.0, -2.0]] + rng.gumbel(size=(120, 3))).argmax(axis=1)
ESTIMATORS = [MultinomialClassifier(), LogisticClassifier()]
SCALES = np.array([3e4, 2e5])
PLACES = np.array([5e4, 1e6])


def labels(estimator):
    return Y if isinstance(estimator, MultinomialClassifier) else Y == 1


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_misspelt_method_is_told_all_names(estimator):
    names = (
        "quadrature, .*sticks_sampling"
        if estimator is ESTIMATORS[0]
        else "jaakkola_jordan.*, sampling"
    )
    with pytest.raises(ValueError, match=f"method must be one of .*{names}, got 'gibs'"):
        type(estimator)(method="gibs").fit(X, labels(estimator))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_odd_labels_and_dates_are_told(estimator):
    of, few = type(estimator), X[:4]
    with pytest.raises(ValueError, match="y must have a class in every row, got None at row 2"):
        of().fit(few, np.array(["a", "b", None, "a"], dtype=object))
    with pytest.warns(UserWarning, match="y has 'A ' and 'a', which differ in capitals or blanks"):
        of().fit(few, np.array(["a", "A ", "a", "a"]))
    table = pd.DataFrame(few, columns=["size", "weight"]).assign(when=pd.Timestamp("2020-01-01"))
    with pytest.raises(ValueError, match="column 'when' of X has dates, got datetime64"):
        of().fit(table, ["a", "b", "a", "b"])


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_variances_that_do_not_fit_are_refused(estimator):
    of = type(estimator)
    with pytest.raises(ValueError, match=r"one for each of 2 columns of X, got shape \(3,\)"):
        of(weight_var=[1.0, 2.0, 3.0]).fit(X, labels(estimator))
    with pytest.raises(ValueError, match=r"weight_var must be at least 1e-100, got 0\.0"):
        of(weight_var=[1.0, 0.0]).fit(X, labels(estimator))
    with pytest.raises(TypeError, match=r"intercept_var must be a number, got .*list"):
        of(intercept_var=[1.0]).fit(X, labels(estimator))
    with pytest.raises(ValueError, match="weight_var must be one of evidence, ard, half_t, horse"):
        of(weight_var="lasso").fit(X, labels(estimator))
    with pytest.raises(ValueError, match="weight_var='horseshoe' is sampled along"):
        of(weight_var="horseshoe").fit(X, labels(estimator))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_huge_numbers_are_blamed_on_x(estimator):
    wrong = X.copy()
    wrong[7, 1] = 1e300
    message = "X must be at most 1e+30 in size, got 1e+300 at row 7, column 1"
    with pytest.raises(ValueError, match=re.escape(message)):
        type(estimator)().fit(wrong, labels(estimator))
    fitted = type(estimator)().fit(X, labels(estimator))
    with pytest.raises(ValueError, match=re.escape(message)):
        fitted.predict_proba(wrong)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT])
def test_a_missing_group_is_one_sentence(missing):
    groups = np.array(["a", "b", missing, "a"], dtype=object)
    with pytest.raises(ValueError, match=r"groups must have a label in every row, got .* at row 2"):
        as_labelled_rows(np.ones((4, 1)), [0, 1, 0, 1], groups)


def test_missing_numbers_of_groups_are_found_too():
    with pytest.raises(ValueError, match="got nan at row 1"):
        as_labelled_rows(np.ones((3, 1)), [0, 1, 0], [2.0, np.nan, 1.0])


# ------------------------------------------------------------------ raw columns


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_an_absurd_prior_is_named(estimator):
    with pytest.warns(UserWarning, match="expects all probabilities to be 0 or 1"):
        clone(estimator).set_params(scale_inputs=False).fit(PLACES + SCALES * X, labels(estimator))


@pytest.mark.filterwarnings("ignore:the prior gives")
@pytest.mark.filterwarnings("ignore::pgmult.regression.ApproximationWarning")
@pytest.mark.parametrize("covariance", ["full", "class"])
@pytest.mark.slow
def test_raw_columns_are_fitted_in_few_iterations(covariance):
    """And the posterior is that of standardised columns under the same prior, put in their terms.

    Weights w of raw columns p + s z are weights s w of z, and an intercept b + p'w.
    """
    raw = PLACES + SCALES * X
    fitted = MultinomialClassifier("tilted", covariance=covariance, scale_inputs=False).fit(raw, Y)
    assert fitted.n_iter_ < 100
    to_standard = np.diag([*SCALES, 1.0])
    to_standard[2, :2] = PLACES
    prior = MvNormal(np.zeros(3), to_standard @ np.diag([1.0, 1.0, 100.0]) @ to_standard.T)
    design = np.column_stack([X, np.ones(len(X))])
    same = fit_softmax_regression(as_counted_rows(design, Y), prior, covariance=covariance)
    assert fitted.log_evidence_ == pytest.approx(same.objective, abs=2e-3)
    probs = softmax_probs(same, design)
    np.testing.assert_allclose(fitted.predict_proba(raw), probs, atol=1e-4)
    weights = np.column_stack([fitted.coef_, fitted.intercept_]) @ to_standard.T
    differences, expected = np.diff(weights, axis=0), np.diff(same.mean, axis=0)
    np.testing.assert_allclose(differences, expected, atol=0.01)


def test_the_tilt_search_ends_where_variances_hide_what_a_step_gains(monkeypatch):
    trials = []
    moved = bounds._moved
    monkeypatch.setattr(bounds, "_moved", lambda a, step: trials.append(1) or moved(a, step))
    m, root = rng.standard_normal((200, 3)), rng.standard_normal((200, 3, 3))
    bounds.DENSE_LOG_SUM_EXP["tilted"].expect(m, root @ root.swapaxes(1, 2) + 1e12)
    assert len(trials) < 20


def test_the_dense_tilted_bound_sees_differences_only():
    """What all classes share may be huge: rounding must not drown the rest."""
    m, root = rng.standard_normal((20, 3)), rng.standard_normal((20, 3, 3))
    cov = root @ root.swapaxes(1, 2)
    value, p, d_cov = bounds.DENSE_LOG_SUM_EXP["tilted"].expect(m, cov)
    shared = bounds.DENSE_LOG_SUM_EXP["tilted"].expect(m + 7.0, cov + 1e8)
    np.testing.assert_allclose(shared[0], value + 7.0, atol=1e-6)
    np.testing.assert_allclose(shared[1], p, atol=1e-6)
    np.testing.assert_allclose(shared[2], d_cov, atol=1e-6)
    assert np.abs(p - softmax(m, axis=1)).max() > 0.01


def test_columns_of_usual_scales_are_no_news():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MultinomialClassifier(weight_var=100.0).fit(100.0 * X[:, :1], Y)

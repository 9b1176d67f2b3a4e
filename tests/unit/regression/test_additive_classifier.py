"""scikit-learn's face of additive regressions."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import check_estimator

from pgmult.regression import AdditiveClassifier

FEW = {"method": "approximate", "draws": 100, "tune": 0, "chains": 2, "random_state": 0}


def schools(spread, size=600, number=20):
    """Schools whose intercepts and slopes differ so much."""
    rng = np.random.default_rng(2)
    school = np.arange(size) % number
    x = rng.standard_normal((size, 2))
    weights = np.array([1.0, -1.0]) + spread * rng.standard_normal((number, 2))
    psi = np.sum(x * weights[school], axis=1) + spread * rng.standard_normal(number)[school]
    return np.column_stack([x, school]), psi + rng.logistic(size=size) > 0.0


@pytest.mark.slow
def test_scikit_learns_own_checks():
    expected = {
        "check_sample_weight_equivalence_on_dense_data": "more columns than rows are refused"
    }
    estimator = AdditiveClassifier(method="approximate", draws=20, tune=0, chains=2, random_state=0)
    results = check_estimator(
        estimator, on_fail=None, on_skip=None, expected_failed_checks=expected
    )
    failed = [(r["check_name"], r["exception"]) for r in results if r["status"] == "failed"]
    assert failed == []
    assert Counter(r["status"] for r in results)["passed"] >= 45


def test_groups_that_do_not_differ_are_found_not_to():
    settings = FEW | {"groups": 2}
    alike = AdditiveClassifier(**settings).fit(*schools(0.0)).posterior_.stack("sds")[:, 0]
    apart = AdditiveClassifier(**settings).fit(*schools(0.8)).posterior_.stack("sds")[:, 0]
    assert alike.shape[1] == 3
    assert (alike.mean(axis=0) < 0.45).all()
    assert (np.quantile(alike, 0.05, axis=0) < 0.15).all()
    assert (np.quantile(apart, 0.05, axis=0) > 0.25).all()
    assert ((apart.mean(axis=0) > 0.5) & (apart.mean(axis=0) < 1.3)).all()


def test_columns_of_frames_mappings_and_arrays_are_the_same():
    X, y = schools(0.5)
    frame = pd.DataFrame(X, columns=["a", "b", "school"])
    party = np.array(["left", "right"])[y.astype(int)]
    of_array = AdditiveClassifier("x0 + x1 + (1 | x2)", **FEW).fit(X, party)
    by_name = AdditiveClassifier("vote ~ a + b + (1 | school)", **FEW).fit(frame, party)
    of_mapping = clone(by_name).fit({name: frame[name] for name in frame}, party)
    probs = by_name.predict_proba(frame)
    np.testing.assert_allclose(of_array.predict_proba(X), probs)
    np.testing.assert_allclose(of_mapping.predict_proba(frame), probs)
    run = by_name.posterior_
    np.testing.assert_allclose(probs, run.predict(frame).mean)
    assert run.data.categories.tolist() == by_name.classes_.tolist() == ["left", "right"]
    assert by_name.predict(frame)[0] == by_name.classes_[probs[0].argmax()]
    assert list(by_name.feature_names_in_) == ["a", "b", "school"]


def test_classes_keep_their_order_and_their_type():
    X, y = schools(0.5)
    three = np.where(X[:, 0] > 1.0, 10, np.where(y, 9, -1))
    fitted = AdditiveClassifier(**FEW).fit(X, three)
    assert fitted.classes_.tolist() == [-1, 9, 10]
    assert np.corrcoef(fitted.predict_proba(X)[:, 2], three == 10)[0, 1] > 0.5
    assert set(fitted.predict(X)) <= {-1, 9, 10}


def test_a_group_without_rows_has_the_common_law():
    X, y = schools(1.0)
    fitted = AdditiveClassifier(groups=2, **FEW).fit(X, y)
    new = np.column_stack([np.tile([2.0, -2.0], (2, 1)), [99.0, 0.0]])
    probs = fitted.predict_proba(new)[:, 1]
    assert 0.7 < probs[0] < 0.999


def test_whole_weights_are_rows_repeated():
    X, y = schools(0.5, size=200)
    times = np.random.default_rng(0).integers(0, 3, size=200)
    weighted = AdditiveClassifier(groups=2, **FEW).fit(X, y, sample_weight=times)
    twice = AdditiveClassifier(groups=2, **FEW).fit(
        np.repeat(X, times, axis=0), np.repeat(y, times)
    )
    assert weighted.posterior_.data.counts.sum() == twice.posterior_.data.counts.sum()
    gap = np.abs(weighted.predict_proba(X) - twice.predict_proba(X))
    assert gap.max() < 0.03  # columns are standardised by rows
    assert (
        np.abs(
            AdditiveClassifier(groups=2, **FEW).fit(X, y).predict_proba(X) - twice.predict_proba(X)
        ).max()
        > 0.1
    )


def test_it_cross_validates():
    X, y = schools(0.5)
    assert cross_val_score(AdditiveClassifier(groups=2, **FEW), X, y, cv=3).mean() > 0.65


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"groups": 7}, "groups must be a column of X, x0, x1, x2, got 7"),
        ({"groups": "school"}, "groups must be a column of X"),
        ({"formula": "x0", "groups": 2}, "groups be left out then"),
        ({"formula": "age"}, "it names 'age'"),
        ({"effects": "all"}, "effects must be one of"),
    ],
)
def test_refusals(arguments, words):
    with pytest.raises(ValueError, match=words):
        AdditiveClassifier(**FEW | arguments).fit(*schools(0.0))

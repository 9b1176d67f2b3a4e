"""scikit-learn's faces of additive regressions."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression, PoissonRegressor
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import check_estimator

from pgmult.priors import HalfT, Horseshoe, Normal
from pgmult.regression import AdditiveClassifier, CountRegressor

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
@pytest.mark.parametrize("estimator", [AdditiveClassifier, CountRegressor])
def test_scikit_learns_own_checks(estimator):
    expected = {
        "check_sample_weight_equivalence_on_dense_data": "more columns than rows are refused"
    }
    few = FEW | {"draws": 20}
    results = check_estimator(
        estimator(**few), on_fail=None, on_skip=None, expected_failed_checks=expected
    )
    failed = [(r["check_name"], r["exception"]) for r in results if r["status"] == "failed"]
    assert failed == []
    assert Counter(r["status"] for r in results)["passed"] >= 45


@pytest.mark.slow
def test_coefficients_are_near_the_penalised_maximum():
    """Of two classes and of three; in the units of the columns, wherever they have their origin."""
    x, y = load_breast_cancer(return_X_y=True)
    x = (x - x.mean(axis=0))[:, 4:8] / x.std(axis=0)[4:8]
    settings = FEW | {"draws": 1000}
    fitted = AdditiveClassifier(**settings, priors={"fixed": Normal(0, 1)}).fit(x, y)
    maximum = LogisticRegression(C=1.0).fit(x, y)
    assert fitted.classes_.tolist() == [0, 1]
    np.testing.assert_allclose(fitted.coef_, maximum.coef_, atol=0.3)
    psi = x @ fitted.coef_[0] + fitted.intercept_[0]
    assert ((psi > 0.0) == (fitted.predict(x) == 1)).mean() > 0.99
    plain, moved = (AdditiveClassifier(**settings).fit(at, y) for at in (x, 1e3 * x - 50.0))
    np.testing.assert_allclose(moved.coef_, 1e-3 * plain.coef_, rtol=1e-6)
    np.testing.assert_allclose(
        moved.intercept_ - 50.0 * moved.coef_.sum(), plain.intercept_, atol=1e-6
    )
    named = AdditiveClassifier(**settings).fit(x, np.array(["z", "a"])[y])  # the other class first
    np.testing.assert_allclose(named.coef_, -plain.coef_, atol=0.03)


def test_a_softmax_has_coefficients_of_every_class():
    x, y = load_iris(return_X_y=True)
    fitted = AdditiveClassifier(**FEW | {"draws": 1000, "priors": {"fixed": Normal()}}).fit(x, y)
    assert fitted.coef_.shape == (3, 4)
    scores = x @ fitted.coef_.T + fitted.intercept_
    assert (scores.argmax(axis=1) == fitted.predict(x)).mean() > 0.97
    assert fitted.score(x, y) > 0.95
    sticks = AdditiveClassifier(link="stick_breaking", **FEW).fit(x, y)
    assert np.abs(sticks.predict_proba(x) - fitted.predict_proba(x)).max() < 0.35
    with pytest.raises(AttributeError, match="needs the softmax link"):
        sticks.coef_  # noqa: B018


def test_tables_of_counts_name_their_classes():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((60, 1))
    shares = np.exp(x @ [[0.0, 1.0, -1.0]])
    counts = rng.multinomial(8, shares / shares.sum(axis=1, keepdims=True))
    names = ["red", "deep green", "blue"]
    fitted = AdditiveClassifier(**FEW).fit(x, pd.DataFrame(counts, columns=names))
    assert fitted.classes_.tolist() == fitted.posterior_.data.categories.tolist() == names
    plain = AdditiveClassifier(**FEW).fit(x, counts)
    assert plain.classes_.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(plain.predict_proba(x), fitted.predict_proba(x))
    assert np.abs(fitted.predict_proba(x) - shares / shares.sum(axis=1, keepdims=True)).max() < 0.15


@pytest.mark.parametrize("distribution", ["poisson", "negative_binomial"])
def test_counts_of_events(distribution):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((300, 3)) * [1.0, 5.0, 1.0]
    hours = rng.uniform(0.5, 3.0, 300)
    y = rng.poisson(hours * np.exp(0.5 + x @ [0.7, 0.0, -0.4]))
    frame = pd.DataFrame(x, columns=["a", "b", "c"]).assign(log_hours=np.log(hours))
    fitted = CountRegressor("a + b + c + offset(log_hours)", distribution=distribution, **FEW)
    fitted.fit(frame, y)
    np.testing.assert_allclose(fitted.coef_, [[0.7, 0.0, -0.4]], atol=0.1)
    np.testing.assert_allclose(fitted.intercept_, 0.5, atol=0.15)
    mean = np.exp(frame["log_hours"] + fitted.intercept_[0] + x @ fitted.coef_[0])
    np.testing.assert_allclose(fitted.predict(frame), mean, rtol=0.08)
    assert fitted.score(frame, y) > 0.5
    plain = PoissonRegressor(alpha=0.0).fit(x, y, sample_weight=np.ones(300))
    mine = CountRegressor(distribution=distribution, **FEW).fit(x, y)
    np.testing.assert_allclose(mine.coef_[0], plain.coef_, atol=0.08)


def test_a_rate_has_the_posterior_of_its_count():
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((40, 1)), rng.poisson(3.0, 40)
    halves = CountRegressor(**FEW).fit(x, 0.5 * y, sample_weight=np.full(40, 2))
    both = CountRegressor("x0 + offset(more)", **FEW).fit(
        {"x0": x[:, 0], "more": np.full(40, np.log(2.0))}, y
    )
    np.testing.assert_allclose(halves.coef_, both.coef_, atol=1e-6)


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
@pytest.mark.parametrize("law", [HalfT(3, 1), Horseshoe()])
def test_learned_scales_shrink_what_is_nothing_and_leave_the_rest(law):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((300, 8))
    y = 2.0 * x[:, 0] + rng.logistic(size=300) > 0.0
    settings = {"draws": 400, "tune": 100, "chains": 1, "random_state": 0}
    wide = AdditiveClassifier(**settings).fit(x, y)
    fitted = AdditiveClassifier(priors={"fixed": law}, **settings).fit(x, y)
    small = np.abs(fitted.coef_[0, 1:]).mean() / np.abs(wide.coef_[0, 1:]).mean()
    assert small < (0.6 if isinstance(law, Horseshoe) else 1.0)
    assert fitted.coef_[0, 0] > 0.85 * wide.coef_[0, 0]
    own = 8 * isinstance(law, Horseshoe)
    assert fitted.posterior_["sds"].shape == (1, 400, 1, 1 + own)
    told = fitted.posterior_.model.prior_table(fitted.posterior_.data)
    assert [row[2] for row in told] == ["Normal(0, 2.5)", str(law)]


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
        ({"link": "all"}, "link must be one of"),
    ],
)
def test_refusals(arguments, words):
    with pytest.raises(ValueError, match=words):
        AdditiveClassifier(**FEW | arguments).fit(*schools(0.0))

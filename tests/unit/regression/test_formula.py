"""Regressions by formula, and new tables with the same columns."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from pgmult.regression import (
    CountRegressor,
    LogisticClassifier,
    MultinomialClassifier,
    from_formula,
)

RNG = np.random.default_rng(6)
TABLE = pd.DataFrame(
    {
        "age": RNG.normal(size=90),
        "region": np.array(["north", "south", "west"])[np.arange(90) % 3],
        "games": RNG.integers(1, 6, size=90),
        "hours": RNG.uniform(1.0, 3.0, size=90),
    }
)
TABLE["vote"] = np.where(TABLE["age"] + RNG.logistic(size=90) > 0.0, "yes", "no")
TABLE["colour"] = np.array(["red", "green", "blue"])[RNG.integers(0, 3, size=90)]
TABLE["wins"] = RNG.binomial(TABLE["games"], 0.4)
TABLE["log_hours"] = np.log(TABLE["hours"])
TABLE["calls"] = RNG.poisson(TABLE["hours"])
TABLE["red"], TABLE["green"] = RNG.poisson(3.0, size=90), RNG.poisson(2.0, size=90)


def test_a_formula_is_its_columns():
    fitted = from_formula("vote ~ age + C(region)", TABLE)
    south, west = (TABLE["region"] == place for place in ("south", "west"))
    x = np.column_stack([TABLE["age"], south, west])
    plain = LogisticClassifier().fit(x, TABLE["vote"])
    np.testing.assert_allclose(fitted.estimator.coef_, plain.coef_)
    np.testing.assert_allclose(fitted.predict_proba(TABLE), plain.predict_proba(x))
    assert fitted.predict(TABLE[:5]).tolist() == plain.predict(x[:5]).tolist()
    one = {"age": [0.3], "region": ["west"]}  # the same columns, and nothing else
    np.testing.assert_allclose(
        fitted.predict_proba(one), plain.predict_proba(np.array([[0.3, 0.0, 1.0]]))
    )
    weights = fitted.coefficients(0.95)
    assert weights.labels["weight"] == [
        "age", "C(region)[T.south]", "C(region)[T.west]", "Intercept",
    ]  # fmt: skip
    np.testing.assert_allclose(weights.mean[:3], plain.coef_[0])
    half = 1.959964 * np.sqrt(np.diagonal(plain.coef_cov_[0]))
    np.testing.assert_allclose((weights.upper - weights.mean)[:3], half[:3], rtol=1e-6)


def test_what_was_learnt_from_the_first_table_is_kept():
    fitted = from_formula("vote ~ center(age)", TABLE)
    shifted = TABLE.assign(age=TABLE["age"] + 5.0)
    assert np.abs(fitted.predict_proba(shifted) - fitted.predict_proba(TABLE)).max() > 0.3


def test_left_hand_sides():
    trials = from_formula("p(wins, games) ~ age", TABLE).estimator
    plain = LogisticClassifier().fit(TABLE[["age"]], TABLE["wins"], trials=TABLE["games"])
    np.testing.assert_allclose(trials.coef_, plain.coef_)
    counts = from_formula("c(red, green) ~ age", TABLE)
    assert counts.estimator.classes_.tolist() == ["red", "green"]
    assert list(counts.coefficients().labels["output"]) == ["green"]
    assert isinstance(from_formula("colour ~ age", TABLE).estimator, MultinomialClassifier)
    calls = from_formula("calls ~ age", TABLE, CountRegressor(), offset="log_hours")
    plain = CountRegressor().fit(TABLE[["age"]], TABLE["calls"], offset=TABLE["log_hours"])
    np.testing.assert_allclose(
        calls.predict(TABLE), plain.predict(TABLE[["age"]], TABLE["log_hours"])
    )
    weighted = from_formula("vote ~ age", TABLE, weights="games").estimator
    plain = LogisticClassifier().fit(TABLE[["age"]], TABLE["vote"], sample_weight=TABLE["games"])
    np.testing.assert_allclose(weighted.coef_, plain.coef_)


def test_the_formula_says_whether_there_is_an_intercept():
    estimator = LogisticClassifier("laplace")
    fitted = from_formula("vote ~ C(region) - 1", TABLE, estimator)
    assert fitted.estimator.coef_.shape == (1, 3)
    assert fitted.estimator.intercept_.tolist() == [0.0]
    assert estimator.fit_intercept
    assert not hasattr(estimator, "coef_")
    assert clone(fitted.estimator).method == "laplace"


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("vote", "formula must be 'y ~ columns', got 'vote'"),
        (
            "vote ~ height",
            "it names 'height'; columns of covariates, the table: age, region",
        ),
        ("party ~ age", "the left-hand side must name a column of the table, got 'party'"),
        ("vote ~ 1", "a column beside the intercept"),
        ("vote ~ age +* 2", "expected a column, a number or a function but found"),
        ("p(wins) ~ age", "takes two columns"),
        ("c(red) ~ age", "two columns of counts or more"),
        ("calls ~ age", "estimator must be given where the table has a y that is neither labels"),
    ],
)
def test_bad_formulas_are_refused_in_words(formula, words):
    with pytest.raises(ValueError, match=words):
        from_formula(formula, TABLE)


def test_bad_tables_are_refused_in_words():
    holes = TABLE.assign(age=TABLE["age"].where(TABLE.index != 4))
    with pytest.raises(ValueError, match="column 'age' has a missing value at row 4"):
        from_formula("vote ~ age", holes)
    fitted = from_formula("vote ~ age + C(region)", TABLE)
    with pytest.raises(ValueError, match="'region' must be one of north, south, west, got 'east'"):
        fitted.predict(TABLE.assign(region="east"))
    with pytest.raises(ValueError, match="must have a column 'region', got age"):
        fitted.predict(TABLE[["age"]])
    with pytest.raises(TypeError, match="estimator must be a LinearPredictor"):
        from_formula("vote ~ age", TABLE, "logistic")
    with pytest.raises(ValueError, match="is for logistic classifiers"):
        from_formula("p(wins, games) ~ age", TABLE, CountRegressor())
    with pytest.raises(TypeError, match="counts have no classes"):
        from_formula("calls ~ age", TABLE, CountRegressor()).predict_proba(TABLE)


def test_a_fit_shows_its_coefficients():
    table = {"age": np.arange(40.0) / 10.0, "vote": ["a", "b", "b", "a"] * 10}
    fitted = from_formula("vote ~ age", table)
    assert str(fitted).startswith("vote ~ age, by LogisticClassifier()")
    assert "Intercept" in str(fitted)
    assert "<th" in fitted._repr_html_()
    assert "Intercept" in fitted._repr_html_()

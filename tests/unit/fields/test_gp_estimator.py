"""The scikit-learn face of multinomial Gaussian processes: conventions, units, labels, draws."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from oracle.gaussian_field import dense_law
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.utils.estimator_checks import check_estimator

from pgmult import StickBreaking
from pgmult.fields import MultinomialGP, as_field
from pgmult.fields.covariances import GreatCircle, Matern, Periodic, SquaredExponential
from pgmult.fields.elsewhere import predict_at
from pgmult.fields.estimator import MultinomialGPClassifier

pytestmark = pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")

QUICK = {"draws": 12, "tune": 8, "chains": 1, "random_state": 0}
YEARS = np.arange(1990.0, 2008.0)
WAVE = np.column_stack([np.sin(YEARS / 4.0), np.cos(YEARS / 4.0), np.zeros(18)])
TRUTH = np.exp(WAVE) / np.exp(WAVE).sum(axis=1, keepdims=True)
COUNTS = np.random.default_rng(0).multinomial(40, TRUTH)
X = np.column_stack([YEARS, np.tile([0.0, 3.0, 1.0], 6)])


@pytest.fixture(scope="module")
def fitted():
    return MultinomialGPClassifier(**QUICK).fit(X, COUNTS)


@pytest.mark.slow
def test_scikit_learns_own_checks():
    estimator = MultinomialGPClassifier(
        draws=4, tune=1, chains=1, hyperparameters="fixed", random_state=0
    )
    results = check_estimator(estimator, on_fail=None, on_skip=None)
    failed = [(r["check_name"], r["exception"]) for r in results if r["status"] == "failed"]
    assert failed == []
    assert Counter(r["status"] for r in results)["passed"] >= 45


def test_finds_the_probabilities():
    seen = np.arange(18) % 6 != 3
    estimator = MultinomialGPClassifier(draws=150, tune=80, chains=1, random_state=1)
    estimator.fit(YEARS[seen, None], COUNTS[seen])
    found, truth = estimator.predictions(YEARS[~seen, None]), TRUTH[~seen]
    np.testing.assert_allclose(found.mean, truth, atol=0.1)
    lower, upper = found.interval(0.99)
    assert ((lower < truth) & (truth < upper)).all()
    shares = COUNTS[seen].sum(axis=0) / COUNTS[seen].sum()
    constant = (COUNTS[~seen] @ np.log(shares)).sum() / COUNTS[~seen].sum()
    best = (COUNTS[~seen] * np.log(truth)).sum() / COUNTS[~seen].sum()
    assert best - estimator.score(YEARS[~seen, None], COUNTS[~seen]) < 0.3 * (best - constant)


def test_units_of_inputs_do_not_matter_and_are_undone(fitted):
    units = np.array([1024.0, 2.0**-7])  # exact in floating point
    other = MultinomialGPClassifier(**QUICK).fit(X * units, COUNTS)
    np.testing.assert_array_equal(other.predict_proba(X * units), fitted.predict_proba(X))
    names = ["Constant.var", "Matern.length_scale[x0]", "Matern.length_scale[x1]"]
    assert list(fitted.hyperparameters_) == names
    for name, unit in zip(names, (1.0, *units), strict=True):
        ours, theirs = fitted.hyperparameters_[name], other.hyperparameters_[name]
        assert ours.shape == (12,)
        np.testing.assert_array_equal(theirs, unit * ours)
    scaled = fitted.posterior_.stack("hyperparameters")[:, 0, 1]
    np.testing.assert_allclose(fitted.hyperparameters_[names[1]], X[:, 0].std() * scaled)


def test_without_scaling_lengths_are_in_the_units_of_inputs():
    covariance = 0.7 * Matern(1.5, 5.0, active=[0], fixed=["length_scale"])
    mine = MultinomialGPClassifier(covariance, scale_inputs=False, **QUICK).fit(X, COUNTS)
    np.testing.assert_array_equal(mine.scale_, [1.0, 1.0])
    assert list(mine.hyperparameters_) == ["Constant.var"]


def test_parameters_have_the_units_of_their_columns():
    covariance = (
        Periodic(1.0, 0.5, active=[0]) * Matern(0.5, 2.0, active=[0, 1])
        + SquaredExponential(0.5, active=[1])
        + GreatCircle(500.0, latitude=2, longitude=3)
    )
    rng = np.random.default_rng(2)
    inputs = np.column_stack([X, rng.uniform(30.0, 60.0, 18), rng.uniform(-10.0, 10.0, 18)])
    mine = MultinomialGPClassifier(covariance, hyperparameters="fixed", **QUICK)
    mine.fit(inputs, COUNTS)
    first, second = inputs[:, :2].std(axis=0)
    np.testing.assert_allclose(mine.scale_, [first, second, 1.0, 1.0])
    values = {name: draws[0] for name, draws in mine.hyperparameters_.items()}
    assert values == pytest.approx(
        {
            "Periodic.period[x0]": first,
            "Periodic.length_scale": 0.5,
            "Matern.length_scale[x0]": 2.0 * first,
            "Matern.length_scale[x1]": 2.0 * second,
            "SquaredExponential.length_scale[x1]": 0.5 * second,
            "GreatCircle.length_scale": 500.0,
        }
    )


def test_a_covariance_a_stick_has_a_draw_a_stick():
    mine = MultinomialGPClassifier(shared=False, **QUICK).fit(X, COUNTS)
    assert mine.hyperparameters_["Matern.length_scale[x1]"].shape == (12, 2)


def test_labels_are_counts_of_one():
    labels = np.array(["b", "a", "c"])[np.random.default_rng(3).integers(0, 3, 18)]
    mine = MultinomialGPClassifier(**QUICK).fit(X, labels)
    np.testing.assert_array_equal(mine.classes_, ["a", "b", "c"])
    one_hot = (labels[:, None] == mine.classes_).astype(int)
    probs = mine.predict_proba(X)
    same = MultinomialGPClassifier(**QUICK).fit(X, one_hot)
    np.testing.assert_array_equal(probs, same.predict_proba(X))
    np.testing.assert_array_equal(mine.predict(X), mine.classes_[probs.argmax(axis=1)])
    assert mine.score(X, labels) == pytest.approx(-log_loss(labels, probs))
    weight = np.arange(18.0)
    weighted = -log_loss(labels, probs, sample_weight=weight)
    assert mine.score(X, labels, weight) == pytest.approx(weighted)
    drawn = mine.sample_y(X, 5, random_state=1)
    assert drawn.shape == (18, 5)
    assert set(drawn.ravel()) <= {"a", "b", "c"}
    with pytest.raises(ValueError, match="label that was not in the fit"):
        mine.score(X, np.full(18, "d"))


def test_predictive_counts(fitted):
    totals = np.arange(18) * 50
    drawn = fitted.sample_y(X, 300, totals=totals, random_state=2)
    assert drawn.shape == (18, 3, 300)
    np.testing.assert_array_equal(drawn.sum(axis=1), np.repeat(totals[:, None], 300, axis=1))
    np.testing.assert_array_equal(drawn, fitted.sample_y(X, 300, totals, random_state=2))
    share = drawn[1:].mean(axis=-1) / totals[1:, None]
    np.testing.assert_allclose(share, fitted.predict_proba(X[1:]), atol=0.08)


def test_data_frames_keep_their_labels():
    frame = pd.DataFrame(X, columns=["year", "place"], index=[f"row {i}" for i in range(18)])
    counts = pd.DataFrame(COUNTS, columns=["Ada", "Ben", "Cleo"], index=frame.index)
    mine = MultinomialGPClassifier(**QUICK).fit(frame, counts)
    np.testing.assert_array_equal(mine.classes_, ["Ada", "Ben", "Cleo"])
    assert "Matern.length_scale[year]" in mine.hyperparameters_
    found = mine.predictions(frame.iloc[[2, 7]])
    assert found.axes == ("row", "category")
    np.testing.assert_array_equal(found.labels["row"]["row"], ["row 2", "row 7"])
    np.testing.assert_array_equal(found.labels["row"]["year"], X[[2, 7], 0])
    np.testing.assert_array_equal(found.labels["category"], ["Ada", "Ben", "Cleo"])
    assert (found.lower < found.mean).all()
    assert (found.mean < found.upper).all()
    one = found.at(row="row 7", category="Ben").mean.item()
    assert one == pytest.approx(mine.predict_proba(frame)[7, 1], abs=0.05)


@pytest.mark.parametrize("structure", ["dense", "state_space"])
@pytest.mark.parametrize("mean", ["constant", "linear"])
def test_the_law_at_inputs_the_chain_did_not_know(structure, mean):
    """Against the assembled Gaussian; data with new inputs of their own, and a repeated input."""
    covariance = 0.8 * Matern(1.5, 2.0, active=[0])
    if structure == "dense":
        covariance = covariance * SquaredExponential(active=[1])
    data = as_field(np.append(X[:5], X[:1], axis=0), COUNTS[:6], new_inputs=[[2020.0, 0.0], X[0]])
    model = MultinomialGP(covariance, structure, mean)
    state = model.prior(np.random.default_rng(0), data)
    new = np.array([[1991.5, 0.0], X[2], [2020.0, 0.0], X[2]])
    drawn = predict_at(np.random.default_rng(1), model, state, data, new)
    assert drawn.values.shape == (4, 2)
    np.testing.assert_allclose(drawn.values[1], drawn.values[3], atol=1e-6)
    counts = COUNTS[:5].copy()
    counts[0] += COUNTS[5]
    link = StickBreaking(order=data.order)
    potential = link.augment(np.random.default_rng(1), state.psi[:5], counts)
    scaled = (np.concatenate([X[:5], new]) - data.inputs.mean(axis=0)) / data.inputs.std(axis=0)
    features = np.column_stack([np.ones(9), scaled])[:, : len(state.beta)]
    at_state = covariance.with_log_params(np.log(state.hyperparameters[0]))
    for k in range(2):
        level = features @ state.beta[:, k]
        expected, cov, _ = dense_law(
            at_state, X[:5], new, potential.J[:, k], potential.h[:, k], level[:5], level[5:]
        )
        np.testing.assert_allclose(drawn.mean[:, k], expected[5:], atol=1e-8)
        np.testing.assert_allclose(drawn.var[:, k], np.diagonal(cov)[5:], atol=1e-8)


def test_labels_of_data_frames_that_disagree_are_refused():
    frame = pd.DataFrame(X, columns=["year", "place"], index=[f"row {i}" for i in range(18)])
    counts = pd.DataFrame(COUNTS, columns=["Ada", "Ben", "Cleo"], index=frame.index)
    with pytest.raises(ValueError, match="rows of y must have the labels of rows of X in the same"):
        MultinomialGPClassifier(**QUICK).fit(frame, counts[::-1])
    with pytest.raises(ValueError, match="got '0' for 'row 0' at 0"):
        MultinomialGPClassifier(**QUICK).fit(frame, counts.reset_index(drop=True))
    mine = MultinomialGPClassifier(**QUICK).fit(frame, counts)
    for columns in (["place", "year"], ["year", "town"]):
        with pytest.raises(ValueError, match="columns of X must have the labels of columns in the"):
            mine.predict(frame.set_axis(columns, axis=1))
    with pytest.raises(ValueError, match="rows of y must have the labels of rows of X"):
        mine.score(frame, counts[::-1])
    with pytest.raises(ValueError, match="columns of y must have the labels of columns in the fit"):
        mine.score(frame, counts[["Cleo", "Ada", "Ben"]])


def test_same_numbers_for_any_number_of_threads_and_every_call(fitted):
    again = clone(fitted).set_params(n_jobs=2).fit(X, COUNTS)
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    np.testing.assert_array_equal(fitted.predict_proba(X), fitted.predict_proba(X))


def test_empty_rows_are_missing_rows():
    missing = COUNTS.copy()
    missing[3] = 0
    probs = MultinomialGPClassifier(**QUICK).fit(X, missing).predict_proba(X)
    np.testing.assert_allclose(probs.sum(axis=1), 1.0)


@pytest.mark.parametrize(
    ("do", "error", "message"),
    [
        (lambda e: e.fit(X, COUNTS[:5]), ValueError, "inconsistent numbers of samples"),
        (lambda e: e.fit(X, -COUNTS), ValueError, "non-negative"),
        (lambda e: e.fit(X, COUNTS / 40), ValueError, "integers"),
        (lambda e: e.fit(np.where(X == 0.0, np.nan, X), COUNTS), ValueError, "NaN"),
        (lambda e: e.fit(X, COUNTS * [1, 0, 0]), ValueError, "got 1 of 3"),
        (lambda e: e.fit(X, np.full(18, "a")), ValueError, "got 1 of 1"),
        (
            lambda e: e.set_params(covariance="matern").fit(X, COUNTS),
            TypeError,
            "Covariance, got 'matern'",
        ),
        (lambda e: e.set_params(structure="tree").fit(X, COUNTS), ValueError, "structure must"),
        (lambda e: e.predict(X), NotFittedError, "not fitted"),
    ],
)
def test_bad_input(do, error, message):
    with pytest.raises(error, match=message):
        do(MultinomialGPClassifier(**QUICK))


def test_bad_input_of_a_fitted_one(fitted):
    with pytest.raises(ValueError, match="column for each of 3"):
        fitted.score(X, COUNTS[:, :2])
    with pytest.raises(ValueError, match="an observation at least"):
        fitted.score(X, 0 * COUNTS)
    with pytest.raises(ValueError, match="one number or 18"):
        fitted.sample_y(X, totals=[1, 2])
    with pytest.raises(ValueError, match="2 features"):
        fitted.predict(X[:, :1])

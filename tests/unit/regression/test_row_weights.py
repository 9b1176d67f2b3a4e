"""Rows that count several times, counts, offsets, variances by column, sparse columns, groups."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.special import expit

from pgmult import MvNormal
from pgmult.regression import (
    CountRegressor,
    LogisticClassifier,
    LogisticRegression,
    MultinomialClassifier,
    as_counted_rows,
    as_event_rows,
    as_labelled_rows,
    fit_logistic_regression,
    updates,
)

pytestmark = pytest.mark.filterwarnings("ignore::pgmult.regression.ApproximationWarning")

RNG = np.random.default_rng(4)
X = RNG.standard_normal((60, 2))
Y = (X @ [1.5, -0.5] + RNG.logistic(size=60) > 0.0).astype(int)
THREE = (X @ [[0.0, 2.0, -1.0], [1.0, 0.0, -2.0]] + RNG.gumbel(size=(60, 3))).argmax(axis=1)
EVENTS = RNG.poisson(np.exp(0.5 + 0.7 * X[:, 0]))
TIMES = RNG.integers(0, 4, size=60)
GROUPED = np.column_stack([np.arange(60) % 4, X])

ESTIMATORS = {
    **{
        method: (LogisticClassifier(method, tol=1e-9), X, Y)
        for method in ("laplace", "delta", "jaakkola_jordan", "quadrature")
    },
    **{
        method: (MultinomialClassifier(method, tol=1e-8), X, THREE)
        for method in ("tilted", "laplace", "sticks", "mean_field")
    },
    "poisson": (CountRegressor(tol=1e-9), X, EVENTS),
    "negative binomial": (
        CountRegressor(distribution="negative_binomial", dispersion=0.5, tol=1e-9), X, EVENTS,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ESTIMATORS)
def test_whole_weights_are_rows_repeated(name):
    estimator, x, y = ESTIMATORS[name]
    weighted = estimator.fit(x, y, sample_weight=TIMES)
    mean, cov = weighted._weights, weighted.coef_cov_
    repeated = estimator.fit(np.repeat(x, TIMES, axis=0), np.repeat(y, TIMES))
    np.testing.assert_allclose(mean, repeated._weights, atol=1e-6)
    np.testing.assert_allclose(cov, repeated.coef_cov_, atol=1e-6)


def exact_posterior(x, y, times, prior_var=4.0):
    """Mean and sd of one weight of rows of any weights, by a sum over a grid."""
    grid = np.linspace(-12.0, 12.0, 20_001)
    psi = x[:, None] * grid
    level = times @ (y[:, None] * psi - np.logaddexp(0.0, psi)) - 0.5 * grid**2 / prior_var
    weight = np.exp(level - level.max())
    weight /= weight.sum()
    mean = weight @ grid
    return mean, np.sqrt(weight @ (grid - mean) ** 2)


@pytest.mark.parametrize("easy", [True, False], ids=["gibbs", "slices"])
def test_samplers_are_exact_for_weights_that_are_not_whole(easy, monkeypatch):
    monkeypatch.setattr(updates, "_easy", lambda data, base: np.full(len(base), easy))
    x, y = np.linspace(0.5, 1.5, 8), np.array([1, 0, 1, 0, 1, 0, 1, 0])
    times = np.array([0.3, 1.7, 0.0, 2.5, 0.45, 3.2, 0.1, 1.0])
    data = as_labelled_rows(x[:, None], y, weights=times)
    model = LogisticRegression(MvNormal(np.zeros(1), np.array([[4.0]])))
    rng = np.random.default_rng(0)
    state, draws = model.init(rng, data), np.empty(3000)
    for i in range(len(draws)):
        state = model.step(rng, state, data)
        draws[i] = state.weights[0, 0]
    mean, sd = exact_posterior(x, y, times)
    plain, _ = exact_posterior(x, y, np.ones(8))
    assert abs(draws.mean() - mean) < 0.1 * sd < 0.3 * abs(plain - mean)
    assert draws.std() == pytest.approx(sd, rel=0.08)


def test_counts_of_weighted_rows_are_not_simulated():
    rng, state = np.random.default_rng(0), None
    data = as_labelled_rows(X, Y, weights=np.full(60, 1.5))
    model = LogisticRegression()
    state = model.prior(rng, data)
    with pytest.raises(ValueError, match="trials must be whole to be simulated from, got 1"):
        model.simulate(rng, state, data)
    doubled = as_labelled_rows(X, Y, weights=np.full(60, 2.0))
    assert set(model.simulate(rng, state, doubled).successes) <= {0.0, 1.0, 2.0}


def test_successes_among_trials_are_labels_repeated():
    trials = RNG.integers(1, 6, size=60)
    successes = RNG.binomial(trials, expit(X[:, 0]))
    counted = LogisticClassifier(tol=1e-9).fit(X, successes, trials=trials)
    labels = np.concatenate(
        [[1] * s + [0] * (n - s) for s, n in zip(successes, trials, strict=True)]
    )
    repeated = LogisticClassifier(tol=1e-9).fit(np.repeat(X, trials, axis=0), labels)
    np.testing.assert_allclose(counted.coef_, repeated.coef_, atol=1e-7)
    np.testing.assert_allclose(counted.log_evidence_, repeated.log_evidence_, atol=1e-7)
    assert counted.classes_.tolist() == [0, 1]
    score = repeated.score(np.repeat(X, trials, axis=0), labels)
    assert counted.score(X, successes, trials=trials) == pytest.approx(score)
    with pytest.raises(ValueError, match="y must be at most trials"):
        counted.fit(X, trials + 1, trials=trials)
    with pytest.raises(ValueError, match="class_weight is of labels"):
        LogisticClassifier(class_weight="balanced").fit(X, successes, trials=trials)


def test_an_offset_is_a_column_whose_weight_is_known():
    known = 2.0 * X[:, 1]
    columns = X[:, :1]
    fitted = LogisticClassifier(tol=1e-8, scale_inputs=False).fit(columns, Y, offset=known)
    probs = fitted.predict_proba(columns, known)
    x = np.column_stack([columns, np.ones(60), X[:, 1]])
    prior = MvNormal(np.array([0.0, 0.0, 2.0]), np.diag([1.0, 100.0, 1e-12]))
    nailed = fit_logistic_regression(  # its prior nails the second weight to 2
        LogisticRegression(prior), as_labelled_rows(x, Y), method="quadrature", tolerance=1e-9
    )
    np.testing.assert_allclose(fitted.coef_[0, 0], nailed.mean[0, 0], atol=1e-6)
    np.testing.assert_allclose(fitted.log_evidence_[0], nailed.objective, atol=1e-5)
    without = fitted.predict_proba(columns)
    assert np.abs(probs - without).max() > 0.1
    np.testing.assert_allclose(fitted.predict_log_proba(columns, known), np.log(probs))
    with pytest.raises(ValueError, match=r"offset must have shape \(60,\), got \(3,\)"):
        fitted.predict_proba(columns, np.zeros(3))


def test_an_exposure_is_an_offset_or_a_weighted_rate():
    exposure = RNG.uniform(0.5, 3.0, size=60)
    counts = RNG.poisson(exposure * np.exp(0.3 * X[:, 0]))
    offset = CountRegressor(tol=1e-9, scale_inputs=False).fit(X, counts, offset=np.log(exposure))
    rate = CountRegressor(tol=1e-9, scale_inputs=False).fit(
        X, counts / exposure, sample_weight=exposure
    )
    np.testing.assert_allclose(offset.coef_, rate.coef_, atol=1e-7)
    np.testing.assert_allclose(offset.coef_cov_, rate.coef_cov_, atol=1e-7)
    np.testing.assert_allclose(
        offset.predict(X, np.log(exposure)), exposure * rate.predict(X), rtol=1e-6
    )


def test_class_weights_multiply_what_rows_count():
    each = {0: 0.5, 1: 3.0}
    weighted = LogisticClassifier(class_weight=each).fit(X, Y)
    by_row = LogisticClassifier().fit(X, Y, sample_weight=np.where(Y == 1, 3.0, 0.5))
    np.testing.assert_allclose(weighted.coef_, by_row.coef_, atol=1e-10)
    balanced = MultinomialClassifier(class_weight="balanced").fit(X, THREE)
    totals = np.bincount(THREE)
    by_row = MultinomialClassifier().fit(X, THREE, sample_weight=20.0 / totals[THREE])
    np.testing.assert_allclose(balanced.coef_, by_row.coef_, atol=1e-3)
    for wrong, words in (({2: 1.0}, "of classes of y, got 2"), ("even", "must be one of balanced")):
        with pytest.raises(ValueError, match=words):
            LogisticClassifier(class_weight=wrong).fit(X, Y)
    with pytest.raises(TypeError, match="class_weight must be 'balanced', or weights by class"):
        LogisticClassifier(class_weight=[1.0, 2.0]).fit(X, Y)


def test_the_columns_of_a_table_of_counts_name_its_classes():
    table = pd.DataFrame(np.eye(3, dtype=int)[THREE] * 2, columns=["left", "right", "none"])
    fitted = MultinomialClassifier().fit(X, table)
    assert fitted.classes_.tolist() == ["left", "right", "none"]
    assert set(fitted.predict(X)) <= {"left", "right", "none"}
    plain = MultinomialClassifier().fit(X, table.to_numpy())
    assert plain.classes_.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(plain.coef_, fitted.coef_)
    with pytest.raises(ValueError, match=r"unique column names|a different name"):
        fitted.fit(X, table.set_axis(["a", "b", "a"], axis=1))


@pytest.mark.parametrize("method", ["laplace", "quadrature"])
def test_a_variance_for_each_column(method):
    variances = np.array([0.2, 5.0])
    settings = {"tol": 1e-9, "scale_inputs": False}
    fitted = LogisticClassifier(method, weight_var=variances, **settings).fit(X, Y)
    scaled = LogisticClassifier(method, **settings).fit(X * np.sqrt(variances), Y)
    np.testing.assert_allclose(fitted.coef_, scaled.coef_ * np.sqrt(variances), atol=1e-7)
    np.testing.assert_allclose(fitted.log_evidence_, scaled.log_evidence_, atol=1e-8)
    np.testing.assert_array_equal(fitted.weight_var_, variances)


# ------------------------------------------------------------------ sparse columns


@pytest.mark.parametrize(
    ("estimator", "y"),
    [(LogisticClassifier(), Y), (MultinomialClassifier(), THREE), (CountRegressor(), EVENTS)],
    ids=["logistic", "multinomial", "counts"],
)
def test_sparse_columns_are_the_same_columns(estimator, y):
    x = X * (np.abs(X) > 0.5)
    dense = estimator.fit(x, y)
    coef, cov, predicted = dense.coef_, dense.coef_cov_, dense.predict(x)
    thin = estimator.fit(sparse.csr_matrix(x), y)
    np.testing.assert_allclose(thin.coef_, coef, atol=1e-8)
    np.testing.assert_allclose(thin.coef_cov_, cov, atol=1e-8)
    np.testing.assert_allclose(thin.predict(sparse.csc_array(x)), predicted, rtol=1e-7)


def test_sparse_rows_are_never_made_dense_as_a_whole():
    rng = np.random.default_rng(0)
    filled = rng.integers(0, 30, size=1_800)
    x = sparse.csr_array(
        (rng.random(1_800), (rng.permutation(60_000)[:1_800], filled)), shape=(60_000, 30)
    )
    y = rng.random(60_000) < 0.3
    fitted = LogisticClassifier().fit(x, y)
    assert fitted.intercept_[0] == pytest.approx(np.log(3.0 / 7.0), abs=0.05)


# ------------------------------------------------------------------ rows and their words


def test_rows_say_what_is_wrong():
    with pytest.raises(ValueError, match="weights must be at least 0, got -1 at position 2"):
        as_labelled_rows(X[:3], Y[:3], weights=[1.0, 0.0, -1.0])
    with pytest.raises(ValueError, match=r"predictor_offset must have shape \(3,\), got \(2,\)"):
        as_labelled_rows(X[:3], Y[:3], predictor_offset=[1.0, 0.0])
    with pytest.raises(ValueError, match=r"weights must have shape \(60,\)"):
        as_counted_rows(X, THREE, weights=[1.0])
    with pytest.raises(ValueError, match=r"counts must have shape \(60,\), got \(3,\)"):
        as_event_rows(X, [1, 2, 3])
    with pytest.raises(ValueError, match="counts must be non-negative"):
        as_event_rows(X[:2], [1, -2])
    with pytest.raises(ValueError, match="at least one non-zero"):
        LogisticClassifier().fit(X, Y, sample_weight=np.zeros(60))
    assert repr(as_event_rows(X, EVENTS)).startswith("EventRows(60 rows, 2 covariates")
    assert "31.5 trials" in repr(as_labelled_rows(X[:21], Y[:21], weights=np.full(21, 1.5)))

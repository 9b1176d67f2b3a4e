"""What must not change an answer: the order of rows, names of labels, split rows, units of columns.

And what approximations say of themselves where they are far from the posterior.
"""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from pgmult.regression import (
    ApproximationWarning,
    CountRegressor,
    LogisticClassifier,
    MultinomialClassifier,
    from_formula,
)

RNG = np.random.default_rng(8)
X = RNG.normal(size=(70, 2))
TOTALS = RNG.integers(1, 5, size=70)
WINS = RNG.binomial(TOTALS, 1.0 / (1.0 + np.exp(-X[:, 0])))
COUNTS = np.array([RNG.multinomial(n, [0.5, 0.3, 0.2]) for n in TOTALS])
EVENTS = RNG.poisson(np.exp(0.3 + 0.4 * X[:, 0]))
QUICK = {"draws": 40, "tune": 10, "chains": 1, "random_state": 0}

pytestmark = [
    pytest.mark.filterwarnings("ignore::pgmult.regression.ApproximationWarning"),
    pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning"),
]


class Case:
    """An estimator and rows for it."""

    def __init__(self, estimator, y, **more):
        self.estimator, self.y, self.more = estimator, y, more

    def predicted(self, x=X, rows=slice(None)):
        more = {name: value[rows] for name, value in self.more.items()}
        self.fitted = clone(self.estimator).fit(x[rows], self.y[rows], **more)
        return self.asked(x)

    def asked(self, table):
        is_regressor = isinstance(self.estimator, CountRegressor)
        return getattr(self.fitted, "predict" if is_regressor else "predict_proba")(table)


CASES = {
    **{
        f"logistic, {method}": Case(LogisticClassifier(method, tol=1e-9), WINS, trials=TOTALS)
        for method in ("laplace", "delta", "jaakkola_jordan", "quadrature")
    },
    "logistic, evidence": Case(LogisticClassifier(weight_var="evidence"), WINS, trials=TOTALS),
    **{
        f"multinomial, {method}": Case(MultinomialClassifier(method, tol=1e-9), COUNTS)
        for method in ("tilted", "laplace", "sticks", "mean_field")
    },
    "counts": Case(CountRegressor(tol=1e-9), EVENTS),
    "counts, negative binomial": Case(
        CountRegressor(distribution="negative_binomial", dispersion=0.5, tol=1e-9), EVENTS
    ),
}
SAMPLED = {
    "logistic, sampled": Case(LogisticClassifier("sampling", **QUICK), WINS, trials=TOTALS),
    "multinomial, sampled": Case(MultinomialClassifier("sampling", **QUICK), COUNTS),
    "sticks, sampled": Case(MultinomialClassifier("sticks_sampling", **QUICK), COUNTS),
    "counts, sampled": Case(CountRegressor("sampling", **QUICK), EVENTS),
}
ALL = CASES | SAMPLED


@pytest.mark.parametrize("name", CASES)
def test_the_order_of_rows_does_not_matter(name):
    case = CASES[name]
    shuffled = np.random.default_rng(0).permutation(70)
    np.testing.assert_allclose(case.predicted(rows=shuffled), case.predicted(), atol=1e-5)


@pytest.mark.parametrize("name", [name for name in CASES if "counts" not in name])
def test_a_row_split_in_two_is_the_same_row(name):
    case = CASES[name]
    half = case.y // 2
    more = {} if case.y.ndim == 2 else {"trials": np.concatenate([TOTALS - half, half])}
    table = X
    fitted = clone(case.estimator).fit(
        np.vstack([table, table]), np.concatenate([case.y - half, half]), **more
    )
    np.testing.assert_allclose(fitted.predict_proba(table), case.predicted(), atol=1e-5)


@pytest.mark.parametrize("name", [name for name in CASES if "counts" not in name])
def test_a_row_that_says_nothing_changes_nothing(name):
    """However far away it is."""
    case = CASES[name]
    table = np.vstack([X, [1e4, -3e5]])
    more = {} if case.y.ndim == 2 else {"trials": np.append(TOTALS, 0)}
    y = np.concatenate([case.y, 0 * case.y[:1]])
    fitted = clone(case.estimator).fit(table, y, **more)
    found = fitted.predict_proba(table[:-1])
    np.testing.assert_allclose(found, case.predicted(), atol=1e-6)


@pytest.mark.parametrize("name", ALL)
def test_units_and_origins_of_columns_do_not_matter(name):
    """Years, Unix seconds, populations: the same answers, in their units."""
    case, unit, origin = ALL[name], np.array([1e-3, 1e7]), np.array([3.0, 1.6e9])
    before, mine = case.predicted(), case.fitted
    after, other = case.predicted(origin + unit * X), case.fitted
    np.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(other.coef_ * unit, mine.coef_, rtol=1e-3, atol=1e-5)
    at_mean = mine.intercept_ + mine.coef_ @ X.mean(axis=0)
    there = other.intercept_ + other.coef_ @ (origin + unit * X.mean(axis=0))
    np.testing.assert_allclose(there, at_mean, rtol=1e-3, atol=1e-5)
    sd = np.sqrt(np.diagonal(mine.coef_cov_, axis1=1, axis2=2))[:, :2]
    other_sd = np.sqrt(np.diagonal(other.coef_cov_, axis1=1, axis2=2))[:, :2]
    np.testing.assert_allclose(other_sd * unit, sd, rtol=1e-3)


@pytest.mark.parametrize("method", ["tilted", "laplace", "quadrature"])
def test_names_and_order_of_classes_do_not_matter(method):
    """But for the points of quadrature, which are of differences from the first class."""
    estimator, near = MultinomialClassifier(method), {"atol": 1e-3}
    labels = COUNTS.argmax(axis=1)
    plain = estimator.fit(X, labels).predict_proba(X)
    renamed = np.array(["zebra", "ant", "cow"])[labels]
    fitted = clone(estimator).fit(X, renamed)
    assert fitted.classes_.tolist() == ["ant", "cow", "zebra"]
    np.testing.assert_allclose(fitted.predict_proba(X)[:, [2, 0, 1]], plain, **near)
    turned = clone(estimator).fit(X, COUNTS[:, ::-1]).predict_proba(X)
    np.testing.assert_allclose(
        turned[:, ::-1], clone(estimator).fit(X, COUNTS).predict_proba(X), **near
    )


@pytest.mark.parametrize("method", ["laplace", "delta", "jaakkola_jordan", "quadrature"])
def test_successes_and_failures_may_change_places(method):
    estimator = LogisticClassifier(method, tol=1e-9)
    one = estimator.fit(X, WINS, trials=TOTALS).predict_proba(X)
    other = estimator.fit(X, TOTALS - WINS, trials=TOTALS).predict_proba(X)
    np.testing.assert_allclose(one, other[:, ::-1], atol=1e-7)


@pytest.mark.parametrize("name", ALL)
def test_one_row_alone_is_answered_as_in_company(name):
    case = ALL[name]
    together = case.predicted()
    alone = case.asked(X[:1])
    np.testing.assert_allclose(alone[0], together[0], rtol=1e-12)


# ------------------------------------------------------------------ raw columns


def test_raw_years_are_years():
    year = np.repeat(np.arange(1990.0, 2020.0), 4)
    era = np.digitize(year, [2000.0, 2010.0])
    probs = MultinomialClassifier().fit(year[:, None], era).predict_proba([[1990.0]])
    assert probs[0, 0] > 0.95


@pytest.mark.parametrize("kind", [LogisticClassifier, MultinomialClassifier, CountRegressor])
def test_sparse_raw_columns_are_the_same_columns(kind):
    """Sparse ones are not centred; the prior is that of centred ones all the same."""
    raw = np.where(np.abs(X) > 0.5, 1e3 * (X + 2.0), 0.0)
    y = EVENTS if kind is CountRegressor else WINS > 0
    dense, thin = kind(tol=1e-9).fit(raw, y), kind(tol=1e-9).fit(sparse.csr_array(raw), y)
    for name in ("coef_", "intercept_", "coef_cov_", "log_evidence_"):
        np.testing.assert_allclose(getattr(thin, name), getattr(dense, name), rtol=1e-5, atol=1e-9)
    ask = "predict" if kind is CountRegressor else "predict_proba"
    np.testing.assert_allclose(
        getattr(thin, ask)(raw), getattr(dense, ask)(sparse.csr_array(raw)), rtol=1e-6
    )


def test_draws_are_of_weights_of_the_columns_as_they_are():
    raw = 1e3 + 50.0 * X
    fitted = LogisticClassifier("sampling", **QUICK).fit(raw, WINS, trials=TOTALS)
    weights = fitted.posterior_[0].stack("weights")[:, 0]
    np.testing.assert_allclose(weights[:, :2].mean(axis=0), fitted.coef_[0])
    np.testing.assert_allclose(weights[:, 2].mean(), fitted.intercept_[0])


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda huge: MultinomialClassifier().fit(X[:2], [[huge, huge], [huge, huge]]), "y must"),
        (
            lambda huge: LogisticClassifier().fit(X[:3], [huge] * 3, trials=[2 * huge - 1] * 3),
            "trials must",
        ),
        (
            lambda huge: MultinomialClassifier().fit(X, COUNTS).score(X[:2], [[huge] * 3] * 2),
            "y must",
        ),
    ],
)
def test_counts_whose_sum_is_no_integer_are_refused(call, match):
    with pytest.raises(ValueError, match=match + r" sum to less than 2\*\*63"):
        call(2**62)


# ------------------------------------------------------------------ far from a Gaussian


@pytest.mark.filterwarnings("default::pgmult.regression.ApproximationWarning")
@pytest.mark.parametrize("method", ["quadrature", "delta", "laplace", "jaakkola_jordan"])
def test_a_posterior_that_is_no_gaussian_is_told(method):
    x = np.linspace(-2.0, 2.0, 20)[:, None]
    estimator = LogisticClassifier(method, weight_var=1e4)
    with pytest.warns(ApproximationWarning, match=r"is much for 2 weights.*method='sampling'"):
        estimator.fit(x, x[:, 0] > 0.0)


@pytest.mark.filterwarnings("default::pgmult.regression.ApproximationWarning")
def test_few_rows_of_many_columns_are_told():
    x = np.random.default_rng(0).normal(size=(60, 25))
    y = x @ np.random.default_rng(1).normal(size=25) > 0.0
    with pytest.warns(ApproximationWarning, match="for 26 weights"):
        LogisticClassifier("delta", weight_var=25.0).fit(x, y)


def test_posteriors_near_a_gaussian_are_no_news():
    x = np.random.default_rng(0).normal(size=(300, 3))
    y = x[:, 0] + np.random.default_rng(1).logistic(size=300) > 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for method in ("quadrature", "delta"):
            LogisticClassifier(method).fit(x, y)
        MultinomialClassifier().fit(x, y)
        MultinomialClassifier("sticks").fit(x, y)
        CountRegressor().fit(x, y)


@pytest.mark.filterwarnings("default::pgmult.ConvergenceWarning")
@pytest.mark.parametrize(
    ("settings", "advice", "never"),
    [
        ({}, "raise max_iter$", "quadrature'$"),
        ({"method": "delta"}, "raise max_iter, or take method='quadrature'$", "scale"),
        ({"scale_inputs": False}, "raise max_iter, or leave scale_inputs=True$", "take method"),
    ],
)
def test_what_was_tried_is_not_advised(settings, advice, never):
    with pytest.warns(UserWarning, match=advice) as told:
        LogisticClassifier(max_iter=2, **settings).fit(X, WINS > 0)
    assert never not in str(told[0].message).split(": ")[1]


def test_intervals_after_sampling_are_quantiles_of_draws():
    x = np.linspace(-2.0, 2.0, 20)
    table = pd.DataFrame({"x": x, "vote": np.where(x > 0.0, "yes", "no")})
    estimator = LogisticClassifier("sampling", weight_var=1e4, draws=500, random_state=0)
    fitted = from_formula("vote ~ x", table, estimator)
    found = fitted.coefficients(0.8)
    draws = fitted.estimator.posterior_[0]["weights"][..., 0, :]
    np.testing.assert_allclose(
        [found.lower, found.upper], np.quantile(draws, [0.1, 0.9], axis=(0, 1))
    )


def test_contrasts_of_coefficients_know_their_correlations():
    one = LogisticClassifier().fit(X, WINS > 0).coefficients()
    gap, back = one.difference("weight", "0", "1"), one.difference("weight", "1", "0")
    np.testing.assert_array_equal(gap.mean, -back.mean)
    assert gap.mean == pytest.approx(one.mean[0] - one.mean[1], abs=5.0 * gap.sd / 2000**0.5)
    several = MultinomialClassifier().fit(X, COUNTS)
    against = several.coefficients(reference=2)
    joint = several.joint_cov_.reshape(3, 3, 3, 3)
    var = joint[0, 0, 0, 0] + joint[2, 0, 2, 0] - 2.0 * joint[0, 0, 2, 0]
    assert against.labels["output"].tolist() == [0, 1]
    assert against.sd[0, 0] == pytest.approx(np.sqrt(var))
    assert against.mean[1, 0] == pytest.approx(several.coef_[1, 0] - several.coef_[2, 0])
    assert against.draws[:, 0, 0].std() == pytest.approx(np.sqrt(var), rel=0.1)
    with pytest.raises(ValueError, match="reference must be one of the classes, got 7"):
        several.coefficients(reference=7)
    with pytest.raises(ValueError, match="method 'sticks' has weights of sticks"):
        MultinomialClassifier("sticks").fit(X, COUNTS).coefficients()

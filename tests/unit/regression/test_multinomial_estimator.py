"""The scikit-learn face of multinomial regressions."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from pgmult.regression import MultinomialClassifier

pytestmark = pytest.mark.filterwarnings("ignore::pgmult.regression.ApproximationWarning")

METHODS = ["tilted", "log", "quadratic", "bohning", "taylor", "adaptive", "laplace", "quadrature"]
METHODS += ["sampling", "sticks", "mean_field", "sticks_sampling"]


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
@pytest.mark.slow
@pytest.mark.parametrize("method", ["quadrature", "laplace", "sticks", "sticks_sampling"])
def test_scikit_learns_own_checks(method):
    model = MultinomialClassifier(method, tol=1e-6, draws=50, tune=20, chains=1)
    results = check_estimator(model, on_fail=None, on_skip=None)
    failed = [r["check_name"] for r in results if r["status"] == "failed"]
    if method == "sticks_sampling":  # other draws of the same law: see test_row_weights.py
        failed = [name for name in failed if "sample_weight_equivalence" not in name]
    assert failed == []


@pytest.fixture(scope="module")
def flowers():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 2))
    scores = x @ [[2.0, -1.0, 0.0], [0.0, 1.5, -2.0]] + rng.gumbel(size=(120, 3))
    return x, np.array(["iris", "lily", "rose"])[scores.argmax(axis=1)]


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
@pytest.mark.parametrize("method", METHODS)
def test_every_method_predicts(method, flowers):
    x, y = flowers
    fit = MultinomialClassifier(method, draws=200, tune=50, chains=1, random_state=0).fit(x, y)
    probs = fit.predict_proba(x)
    np.testing.assert_allclose(probs.sum(axis=1), 1.0, rtol=1e-8)
    assert fit.score(x, y) > 0.6
    assert set(fit.predict(x)) <= set(fit.classes_)
    outputs = 2 if method in ("sticks", "mean_field", "sticks_sampling") else 3
    assert fit.coef_.shape == (outputs, 2)
    assert fit.coef_cov_.shape == (outputs, 3, 3)
    assert (np.linalg.eigvalsh(fit.coef_cov_) > 0.0).all()
    assert np.isnan(fit.log_evidence_) == (method in ("sampling", "sticks_sampling"))


@pytest.mark.slow
def test_sticks_and_their_sampler_agree(flowers):
    x, y = flowers
    gibbs = MultinomialClassifier("sticks_sampling", draws=2000, chains=2, random_state=0).fit(x, y)
    errors = {}
    for method in ("sticks", "mean_field"):
        fit = MultinomialClassifier(method).fit(x, y)
        errors[method] = np.abs(fit.predict_proba(x) - gibbs.predict_proba(x)).mean()
    assert errors["sticks"] < 0.002
    assert errors["sticks"] < errors["mean_field"]


def test_counts_are_worth_as_many_labels(flowers):
    x, y = flowers
    one_hot = (y[:, None] == np.unique(y)).astype(int)
    labels = MultinomialClassifier("mean_field").fit(x, y)
    counts = clone(labels).fit(x, one_hot)
    twice = clone(labels).fit(np.vstack([x, x]), np.concatenate([y, y]))
    doubled = clone(labels).fit(x, 2 * one_hot)
    np.testing.assert_allclose(labels.coef_, counts.coef_, atol=1e-8)
    np.testing.assert_allclose(twice.coef_, doubled.coef_, atol=1e-3)
    assert doubled.score(x, 2 * one_hot) == pytest.approx(labels.score(x, y), abs=0.02)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"method": "guess"}, "method must be one of"),
        ({"covariance": "diagonal"}, "covariance must be one of full, class"),
        ({"weight_var": -1.0}, "weight_var must be at least 1e-100"),
    ],
)
def test_bad_arguments(arguments, words, flowers):
    with pytest.raises(ValueError, match=words):
        MultinomialClassifier(**arguments).fit(*flowers)


def test_one_class_only_is_refused(flowers):
    with pytest.raises(ValueError, match="one class only"):
        MultinomialClassifier().fit(flowers[0], np.zeros(120))

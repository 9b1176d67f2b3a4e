"""The scikit-learn face of choices: its conventions, and that it says what the run says."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GroupKFold, cross_val_score

from pgmult.choice import ChoiceClassifier

pytestmark = pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")

RNG = np.random.default_rng(0)
X = pd.DataFrame({"who": np.arange(180) // 12, "case": np.arange(180) // 3 % 4})
X["price"], X["time"] = RNG.normal(size=(2, 180))
UTILITY = (RNG.gumbel(size=180) - 2.0 * X["price"].to_numpy()).reshape(-1, 3)
Y = (np.arange(3) == UTILITY.argmax(axis=1)[:, None]).ravel()
MIXED = np.random.default_rng(1).permutation(180)


def make(**changes):
    sizes = {"draws": 40, "tune": 20, "chains": 1, "random_state": 0}
    return ChoiceClassifier("price + time + (price | who)", "case", **(sizes | changes))


@pytest.fixture(scope="module")
def fitted():
    return make().fit(X, Y)


def test_probabilities_are_those_of_the_run(fitted):
    probs = fitted.predict_proba(X)
    np.testing.assert_array_equal(probs[:, 1], fitted.posterior_.predict(X).mean)
    np.testing.assert_allclose(probs.sum(axis=1), 1.0)
    np.testing.assert_allclose(probs[:, 1].reshape(-1, 3).sum(axis=1), 1.0)
    np.testing.assert_allclose(fitted.score(X, Y), np.log(probs[Y, 1]).mean())
    assert fitted.score(X, Y) > np.log(1 / 3)


def test_the_order_of_rows_does_not_matter(fitted):
    mixed = X.iloc[MIXED]
    probs = fitted.predict_proba(X)
    np.testing.assert_allclose(fitted.predict_proba(mixed), probs[MIXED], rtol=1e-10)
    found = fitted.predict(mixed)
    np.testing.assert_array_equal(found, fitted.predict(X)[MIXED])
    best = probs[:, 1].reshape(-1, 3).argmax(axis=1)
    np.testing.assert_array_equal(fitted.predict(X).reshape(-1, 3).argmax(axis=1), best)
    again = make().fit(mixed, Y[MIXED])
    np.testing.assert_allclose(again.predict_proba(X), probs, rtol=1e-6)


def test_it_is_cloned_pickled_and_crossed(fitted):
    assert clone(fitted).get_params() == make().get_params()
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    scores = cross_val_score(make(), X, Y, cv=GroupKFold(2), groups=X["who"])
    assert np.isfinite(scores).all()


def test_a_column_called_as_the_outcome_is_an_attribute_like_others():
    named = X.rename(columns={"time": "taken"})
    found = ChoiceClassifier("price + taken", ["who", "case"], draws=20, tune=5, chains=1)
    assert found.fit(named, Y).posterior_.data.names.tolist() == ["price", "taken"]


def test_bad_input(fitted):
    with pytest.raises(NotFittedError):
        make().predict(X)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        make().fit(X, Y[:5])
    with pytest.raises(ValueError, match="occasion must name a column"):
        make().set_params(occasion="trip").fit(X, Y)
    with pytest.raises(ValueError, match="one alternative of each occasion must be taken"):
        make().fit(X, np.zeros(180))
    with pytest.raises(ValueError, match="price"):
        fitted.predict(X.drop(columns="price"))

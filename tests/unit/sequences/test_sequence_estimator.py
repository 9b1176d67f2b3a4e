"""The scikit-learn face of sequences: its conventions, and that it says what the models say."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

from pgmult import ConvergenceWarning
from pgmult.sequences import SequenceForecaster, as_sequences, forecast
from pgmult.sequences.scores.one_step import one_step_ahead

pytestmark = pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")

ROUND = ["sun", "sun", "rain"]
WEATHER = [ROUND * 20, ["sun", *ROUND * 15], ["rain", *ROUND * 20]]


def make(**changes):
    sizes = {"draws": 40, "tune": 60, "chains": 2, "random_state": 0}
    return SequenceForecaster(2, **(sizes | changes))


@pytest.fixture(scope="module")
def fitted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return make().fit(WEATHER)


@pytest.mark.slow
def test_the_next_symbol_of_a_cycle(fitted):
    after = [ROUND * 3 + ROUND[:k] for k in range(3)]
    np.testing.assert_array_equal(fitted.predict(after), ROUND)
    np.testing.assert_array_equal(fitted.predict(), ["sun", "sun", "sun"])
    probs = fitted.predict_proba(after)
    np.testing.assert_allclose(probs.sum(axis=1), 1.0)
    assert fitted.symbols_.tolist() == ["rain", "sun"]
    assert probs[2, 0] > 0.6 > 0.4 > probs[:2, 0].max()


@pytest.mark.slow
def test_scores_beat_shares(fitted):
    new = [ROUND * 8, ["rain", *ROUND * 8]]
    data = as_sequences(new)
    shares = np.bincount(fitted.sequences_.symbols) / fitted.sequences_.num_steps
    assert fitted.score(new) > np.log(shares[data.symbols]).mean() + 0.2
    expected = one_step_ahead(fitted.posterior_, data, max_draws=50)
    assert fitted.score(new) == expected.mean


@pytest.mark.slow
def test_forecasts_are_those_of_the_posterior(fitted):
    own = fitted.forecast(4, levels=(0.1, 0.9))
    expected = forecast(fitted.posterior_, 4, levels=(0.1, 0.9), max_draws=50)
    np.testing.assert_array_equal(own.mean, expected.mean)
    np.testing.assert_array_equal(own.quantiles, expected.quantiles)
    assert own.simulated.shape == (50, 3, 4)
    assert (own.quantiles[0] <= own.quantiles[1]).all()
    new = fitted.forecast(1, [ROUND])
    np.testing.assert_array_equal(new.mean[:, 0], fitted.predict_proba([ROUND]))


@pytest.mark.slow
def test_threads_change_nothing(fitted):
    again = make(n_jobs=2).fit(WEATHER)
    assert again.score([ROUND * 4]) == fitted.score([ROUND * 4])
    np.testing.assert_array_equal(again.predict_proba([ROUND]), fitted.predict_proba([ROUND]))
    other = make(random_state=1).fit(WEATHER)
    assert other.score([ROUND * 4]) != fitted.score([ROUND * 4])


@pytest.mark.slow
def test_scikit_learn_can_clone_search_and_pickle(fitted):
    assert clone(fitted).get_params() == fitted.get_params()
    assert not hasattr(clone(fitted), "posterior_")
    search = GridSearchCV(make(draws=15, tune=20, chains=1), {"n_components": [1, 2]}, cv=3)
    search.fit([part[:12] for part in WEATHER])
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    copied = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copied.predict_proba([ROUND]), fitted.predict_proba([ROUND]))


@pytest.mark.slow
def test_symbols_that_were_not_seen_have_a_probability():
    short = {"draws": 10, "tune": 10, "chains": 1}
    named = make(symbols=["fog", "rain", "sun"], **short).fit(WEATHER)
    assert named.symbols_.tolist() == ["fog", "rain", "sun"]
    probs = named.predict_proba([["sun", "fog"]])
    assert probs.shape == (1, 3)
    assert 0.0 < probs[0, 0] < 0.2
    counted = make(symbols=4, **short).fit([[0, 1, -1, 2]])
    assert counted.symbols_.tolist() == [0, 1, 2, 3]
    assert np.isfinite(counted.score([[3, 0]]))


@pytest.mark.slow
def test_counts():
    first = np.random.default_rng(0).binomial(20, 0.8, size=80)
    counts = np.column_stack([first, 20 - first])
    fitted = make(draws=40, tune=40, chains=1).fit([counts])
    assert (fitted.predict_proba([counts[:3]] * 2)[:, 0] > 0.7).all()


def test_warnings_are_of_what_the_data_tell():
    with pytest.warns(ConvergenceWarning) as caught:
        make(draws=20, tune=0).fit(WEATHER)
    (warning,) = caught
    text = str(warning.message)
    assert "last_probs[" in text
    assert "of 7 kept values" in text  # six probabilities and the log likelihood
    assert "transition" not in text


def test_bad_input(fitted):
    with pytest.raises(NotFittedError):
        make().score(WEATHER)
    with pytest.raises(ValueError, match="n_jobs must be an integer other than 0"):
        make(n_jobs=0).fit(WEATHER)
    with pytest.raises(ValueError, match="sequence 2 is empty"):
        make().fit([["a", "b"], []])
    with pytest.raises(ValueError, match="snow"):
        fitted.predict([["sun", "snow"]])
    with pytest.raises(ValueError, match="posterior's 2 symbols, rain, sun, got 2, 0, 1"):
        fitted.score(as_sequences([[0, 1]]))
    with pytest.raises(ValueError, match="steps must be"):
        fitted.forecast(0)

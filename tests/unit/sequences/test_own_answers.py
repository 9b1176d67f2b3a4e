"""One sequence's answer is its own: alone, in company, in another order, beside its copies."""

import numpy as np
import pytest

import pgmult
from pgmult.sequences import (
    MarkovChain,
    MixedHMM,
    MultinomialHMM,
    MultinomialLDS,
    SequenceForecaster,
    as_sequences,
)
from pgmult.sequences.posteriors import sequences_of
from pgmult.sequences.scores.one_step import by_draw

pytestmark = [
    pytest.mark.slow,  # the particle filter's code compiles for seconds
    pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning"),
]

TRAIN = ["ABABABBABAABAB", "BBABABABCACACA", "CACABABAAB"]
NEW = as_sequences(["ABABAB", "CACABB", "BABACACABA", "A"], alphabet=list("ABC"))
COMPANIES = [[2], [3, 2, 1, 0], [2, 2, 2, 0, 2], [0, 1, 2, 3]]

MODELS = {"lds": MultinomialLDS(2), "hmm": MultinomialHMM(2), "markov": MarkovChain(1)}


@pytest.fixture(scope="module", params=MODELS)
def posterior(request):
    return pgmult.sample(
        MODELS[request.param], as_sequences(TRAIN), draws=15, tune=15, chains=2, random_seed=0,
        progressbar=False,
    )  # fmt: skip


WITH_INPUTS = {
    "mixed": (MixedHMM(2, inputs="both", start_tries=1, start_sweeps=2), "~ x + (1 + x | who)"),
    "walk": (MixedHMM(2, start_tries=1, start_sweeps=2), "~ rw(t)"),
    "lds": (MultinomialLDS(1, inputs="both"), "~ x + (1 | who)"),
}
WHO, SYMBOLS = ["new", "b", "other", "newest"], ["ABBABA", "BBAB", "ABAAAB", "AB"]


def steps_of(values, data, s):
    return values[data.offsets[s] : data.offsets[s + 1]]


def same_in_all_companies(answer, take=NEW.take):
    """`answer(data)`: a list with the answer of each sequence."""
    alone = [answer(take([s]))[0] for s in range(len(WHO))]
    for chosen in COMPANIES:
        for s, found in zip(chosen, answer(take(chosen)), strict=True):
            np.testing.assert_allclose(found, alone[s], rtol=1e-9, atol=1e-12)


def draws_are_own(forecast):
    """`forecast(chosen)`: the first copy has the draws that it has alone, others their own."""
    alone = [forecast([s]) for s in range(len(WHO))]
    for chosen in COMPANIES:
        found = forecast(chosen)
        for place, s in enumerate(chosen):
            for draws in ("simulated", "counts"):
                own, expected = getattr(found, draws)[:, place], getattr(alone[s], draws)[:, 0]
                assert np.array_equal(own, expected) == (s not in chosen[:place])


def table_of(who, symbols, first=0):
    """A row a step of sequences that are numbered; x and t go on from some step."""
    lengths = [len(one) for one in symbols]
    t = np.concatenate([first + np.arange(n) for n in lengths])
    return {
        "number": np.repeat(np.arange(len(who)), lengths), "who": np.repeat(who, lengths), "t": t,
        "x": np.sin(t), "does": [symbol for one in symbols for symbol in one],
    }  # fmt: skip


@pytest.fixture(scope="module", params=WITH_INPUTS)
def of_inputs(request):
    model, formula = WITH_INPUTS[request.param]
    data = pgmult.read(table_of(["a", "b", "c", "a"], ["ABABBABA", "BBABAB", "AABA", "BABB"]))
    return pgmult.sample(
        model, data.sequences("does", sequence="number", inputs=formula), draws=8, tune=5,
        chains=2, random_seed=0, progressbar=False,
    )  # fmt: skip


def taken(run, chosen):
    """Sequences of groups with and without data, as the run's are coded."""
    who, symbols = ([each[s] for s in chosen] for each in (WHO, SYMBOLS))
    return pgmult.read(table_of(who, symbols)).sequences(
        "does", sequence="number", inputs=run.data.design
    )


def test_forecasts(posterior):
    def answer(data):
        found = posterior.forecast(3, data)
        return [*np.concatenate([found.mean[None], found.quantiles]).swapaxes(0, 1)]

    same_in_all_companies(answer)


def test_draws_of_futures(posterior):
    draws_are_own(lambda chosen: posterior.forecast(6, NEW.take(chosen), totals=5))


def test_smoothed_probabilities(posterior):
    def answer(data):
        found = posterior.predict(data)
        return [steps_of(found.mean, data, s) for s in range(data.num_sequences)]

    same_in_all_companies(answer)


def test_hidden_states(posterior):
    if not isinstance(posterior.model, MultinomialHMM):
        pytest.skip("it has no hidden states")

    def answer(data):
        found = posterior.states(data)
        told = np.column_stack([found.probs, found.path])
        return [steps_of(told, data, s) for s in range(data.num_sequences)]

    same_in_all_companies(answer)


def scores_of(run, data):
    log_p = by_draw(run, sequences_of(run, data), None, 100, 200, 0)
    return np.exp(log_p).mean(axis=(0, 1))


def test_scores(posterior):
    def answer(data):
        told = scores_of(posterior, data)
        return [steps_of(told, data, s) for s in range(data.num_sequences)]

    same_in_all_companies(answer)


@pytest.mark.filterwarnings("ignore:probabilities are simulated")
@pytest.mark.filterwarnings("ignore:.*labels of 'who' in inputs")
def test_groups_without_data(of_inputs):
    run = of_inputs

    def answer(chosen):
        data = taken(run, chosen)
        later = table_of([WHO[s] for s in chosen], ["AA"] * len(chosen), 6)
        ahead = run.forecast(2, data, inputs=later)
        told = [run.predict(data).mean, scores_of(run, data)]
        if isinstance(run.model, MixedHMM):
            told.append(run.states(data).probs)
        return [
            np.concatenate(
                [
                    *(steps_of(values, data, s).ravel() for values in told),
                    ahead.mean[s].ravel(), ahead.quantiles[:, s].ravel(),
                ]
            )
            for s in range(len(chosen))
        ]  # fmt: skip

    same_in_all_companies(answer, list)


@pytest.mark.filterwarnings("ignore:probabilities are simulated")
@pytest.mark.filterwarnings("ignore:.*labels of 'who' in inputs")
def test_draws_of_futures_of_groups_without_data(of_inputs):
    def forecast(chosen):
        later = table_of([WHO[s] for s in chosen], ["AAA"] * len(chosen), 6)
        return of_inputs.forecast(3, taken(of_inputs, chosen), inputs=later, totals=9)

    draws_are_own(forecast)


def test_next_symbols_of_the_estimator():
    forecaster = SequenceForecaster(2, symbols=list("ABC"), draws=15, tune=15, random_state=0)
    forecaster.fit(TRAIN)
    same_in_all_companies(lambda data: [*forecaster.predict_proba(data)])


def test_imputed_symbols():
    gappy = as_sequences([[0, -1, 1, 0, -1], [1, 1, -1, 2], [-1, 0, 2, 2, -1, 1]], num_symbols=3)
    posterior = pgmult.sample(
        MultinomialLDS(2), gappy, draws=15, tune=15, chains=2, random_seed=0, progressbar=False
    )
    alone = {s: posterior.impute(gappy.take([s])) for s in range(3)}
    for chosen in ([2, 0], [1, 1, 0]):
        found = posterior.impute(gappy.take(chosen))
        expected = np.concatenate([alone[s].mean for s in chosen])
        np.testing.assert_allclose(found.mean, expected, rtol=1e-9)
        expected = np.concatenate([alone[s].simulated for s in chosen], axis=1)
        own = (found.simulated == expected).all(axis=0)
        assert own[0]
        assert own.all() == (len(set(chosen)) == len(chosen))


def test_copies_have_futures_of_their_own():
    posterior = pgmult.sample(
        MultinomialLDS(1), as_sequences(["ABABBA"]), draws=200, tune=20, chains=1, random_seed=0,
        progressbar=False,
    )  # fmt: skip
    found = posterior.forecast(4, as_sequences(["ABAB"] * 2, alphabet=list("AB")))
    np.testing.assert_array_equal(found.mean[0], found.mean[1])
    assert 0.2 < (found.simulated[:, 0] == found.simulated[:, 1]).mean() < 0.95


def test_answers_hardly_depend_on_the_seed():
    posterior = pgmult.sample(
        MultinomialLDS(2), as_sequences(TRAIN), draws=50, tune=50, chains=2, random_seed=0,
        progressbar=False,
    )  # fmt: skip
    ahead = [posterior.forecast(2, NEW, max_draws=50, random_seed=s).mean for s in range(6)]
    smooth = [posterior.predict(NEW, max_draws=50, random_seed=s).mean for s in range(6)]
    assert np.std(ahead, axis=0).max() < 0.01
    assert np.std(smooth, axis=0).max() < 0.01


def test_what_chance_leaves_is_told():
    posterior = pgmult.sample(
        MultinomialLDS(1), as_sequences(TRAIN), draws=4, tune=4, chains=1, random_seed=0,
        progressbar=False,
    )  # fmt: skip
    long = as_sequences(["ABC" * 40])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pgmult.sequences.forecasts._MOST_STATES", 1)
        with pytest.warns(UserWarning, match=r"simulated to within a standard error of 0\.[0-9]+"):
            posterior.predict(long)

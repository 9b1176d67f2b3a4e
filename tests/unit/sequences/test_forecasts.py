"""Forecasts, smoothed and imputed probabilities, against laws known exactly."""

import numpy as np
import pytest

import pgmult
from pgmult.core.typing import coords_of
from pgmult.sampling.origin import Origin
from pgmult.sampling.posterior import Posterior
from pgmult.sequences import MultinomialHMM, MultinomialLDS
from pgmult.sequences.data.sequences import as_sequences
from pgmult.sequences.forecasts import forecast, impute, predict

TWO = as_sequences([[0, 0, 1, -1, 0, 0], [1, 1, -1]], num_symbols=2, order=[0, 1])
# Tests of the particle filter are slow: its code compiles for eleven seconds.
LEVELS = (0.1, 0.5, 0.9)


def posterior_of(data, draws=4, **changes):
    """One set of parameters, repeated: a state of one coordinate."""
    size = data.num_symbols - 1
    values = {
        "transition": [[0.8]],
        "noise_cov": [[0.5]],
        "initial_mean": [0.3],
        "initial_cov": [[1.0]],
        "loadings": 1.5 * np.ones((size, 1)),
        "offset": np.linspace(-0.5, 0.5, size) if size > 1 else np.array([0.2]),
        "input_weights": np.zeros((1, data.num_inputs)),
        "emission_weights": np.zeros((size, data.num_inputs)),
        "last_states": np.zeros((data.num_sequences, 1)),
        "noise_sd": np.zeros(0),
    } | changes
    model = MultinomialLDS(1, overdispersion=False)
    return Posterior(
        {name: np.tile(np.asarray(v, float), (2, draws // 2, *(1,) * np.ndim(v)))
         for name, v in values.items()},
        dims=model.dims, coords=coords_of(model, data), origin=Origin.of(model, data),
    )  # fmt: skip


def sigma(x):
    return 1.0 / (1.0 + np.exp(-x))


def exact(data, grid):
    """Filtered and smoothed E sigma(psi) of `posterior_of`'s model by quadrature on a grid."""

    def normal(x, mean, var):
        return np.exp(-0.5 * (x - mean) ** 2 / var) / np.sqrt(2.0 * np.pi * var)

    move = normal(grid[:, None], 0.8 * grid[None, :], 0.5)  # to, from
    share = sigma(0.2 + 1.5 * grid)
    filtered, smoothed = np.empty(data.num_steps), np.empty(data.num_steps)
    counts = data.to_csr().toarray()
    likelihood = share ** counts[:, :1] * (1.0 - share) ** counts[:, 1:]
    for s in range(data.num_sequences):
        steps = range(data.offsets[s], data.offsets[s + 1])
        forward, law = {}, normal(grid, 0.3, 1.0)
        for t in steps:
            law = law * likelihood[t]
            law /= law.sum()
            forward[t], filtered[t] = law, law @ share
            law = move @ law
        backward = np.ones(len(grid))
        for t in reversed(steps):
            both = forward[t] * backward
            smoothed[t] = both @ share / both.sum()
            backward = move.T @ (likelihood[t] * backward)
            backward /= backward.max()
    return filtered, smoothed


GRID = np.linspace(-7.0, 7.0, 281)


@pytest.mark.slow
def test_smoothed_probabilities_are_those_of_a_grid():
    _, expected = exact(TWO, GRID)
    for draws in (4, 600):
        found = predict(posterior_of(TWO, draws), TWO, max_draws=draws)
        np.testing.assert_allclose(found.mean[:, 0], expected, atol=0.03 if draws == 4 else 0.015)
    np.testing.assert_allclose(found.levels, [0.05, 0.5, 0.95])


@pytest.mark.slow
def test_smoothing_goes_where_many_observations_are():
    data = as_sequences([np.tile([990, 10], (6, 1))], order=[0, 1])
    found = predict(posterior_of(data, 20), data, max_draws=20)
    np.testing.assert_allclose(found.mean[:, 0], 0.99, atol=0.006)


@pytest.mark.slow
def test_imputed_symbols_have_the_smoothed_probabilities():
    _, expected = exact(TWO, GRID)
    found = impute(posterior_of(TWO, 600), TWO, max_draws=600)
    np.testing.assert_array_equal(found.steps, [3, 8])
    np.testing.assert_allclose(found.mean[:, 0], expected[[3, 8]], atol=0.015)
    assert found.simulated.shape == (600, 2)
    share = (found.simulated == 0).mean(axis=0)
    np.testing.assert_allclose(share, expected[[3, 8]], atol=4.5 * 0.5 / np.sqrt(600))


def test_forecasts_follow_the_dynamics():
    u = np.zeros((TWO.num_steps, 1))
    data = as_sequences(TWO, inputs=u)
    last = np.array([[1.0], [-2.0]])
    posterior = posterior_of(
        data, 4000, last_states=last, input_weights=[[0.7]], emission_weights=[[-0.4]]
    )
    ahead = np.array([[[1.0], [0.0]], [[0.0], [2.0]]])
    found = forecast(posterior, 2, inputs=ahead, levels=LEVELS, max_draws=4000)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    for s in range(2):
        mean, var = last[s, 0], 0.0
        for t in range(2):
            mean, var = 0.8 * mean + 0.7 * ahead[s, t, 0], 0.64 * var + 0.5
            psi = 0.2 + 1.5 * (mean + np.sqrt(var) * nodes) - 0.4 * ahead[s, t, 0]
            expected = sigma(psi) @ weights / weights.sum()
            assert abs(found.mean[s, t, 0] - expected) < 0.025
            assert abs((found.simulated[:, s, t] == 0).mean() - expected) < 0.04
            middle = sigma(0.2 + 1.5 * mean - 0.4 * ahead[s, t, 0])
            assert abs(found.quantiles[1, s, t, 0] - middle) < 0.03


@pytest.mark.slow
def test_new_sequences_are_filtered_first():
    new = as_sequences([[0] * 12], num_symbols=2, order=[0, 1])
    found = forecast(posterior_of(TWO, 1000), 1, new, max_draws=1000)
    longer, _ = exact(new.extended(1), GRID)
    assert abs(found.mean[0, 0, 0] - longer[-1]) < 0.01


def test_paths_go_on_further_than_probabilities_are_wanted():
    u = np.zeros((TWO.num_steps, 1))
    posterior = posterior_of(
        as_sequences(TWO, inputs=u), 4000, input_weights=[[0.7]], emission_weights=[[-0.4]]
    )
    ahead = np.random.default_rng(0).normal(size=(2, 4, 1))
    told = {"inputs": ahead, "totals": [5, 1, 1, 3], "max_draws": 4000}
    near, far = (forecast(posterior, steps, simulate_to=4, **told) for steps in (2, 4))
    assert near.mean.shape == (2, 2, 2)
    assert near.simulated.shape == (4000, 2, 4)
    assert near.counts.shape == (4000, 2, 4, 2)
    np.testing.assert_allclose(near.mean, far.mean[:, :2], atol=0.02)
    shares = np.stack([(near.simulated == k).mean(axis=0) for k in range(2)], axis=2)
    np.testing.assert_allclose(shares, far.mean, atol=0.04)
    np.testing.assert_allclose(
        near.counts.mean(axis=0), np.array([5, 1, 1, 3])[:, None] * far.mean, atol=0.2
    )
    with pytest.raises(ValueError, match="simulate_to must be at least 3"):
        forecast(posterior, 3, simulate_to=2, **told)


def test_one_seed_one_answer():
    posterior = posterior_of(TWO, 8)
    one, two = (forecast(posterior, 2, random_seed=5) for _ in range(2))
    np.testing.assert_array_equal(one.simulated, two.simulated)
    np.testing.assert_array_equal(one.mean, two.mean)


REFUSALS = {
    "no step": (lambda: forecast(posterior_of(TWO), 0), "steps must be at least 1"),
    "levels in percent": (
        lambda: forecast(posterior_of(TWO), 1, levels=[5, 95]), "levels must be numbers from 0 to 1"
    ),
    "no level": (lambda: forecast(posterior_of(TWO), 1, levels=[]), "levels must be numbers"),
    "no draws asked for": (
        lambda: predict(posterior_of(TWO), TWO, max_draws=0), "max_draws must be at least 1"
    ),
    "inputs of none": (
        lambda: forecast(posterior_of(TWO), 1, inputs=np.zeros((2, 1, 1))), "no inputs"
    ),
    "nothing missing": (
        lambda: impute(posterior_of(TWO), as_sequences([[0, 1]])), "nothing to impute"
    ),
    "variables not kept": (
        lambda: predict(only("offset"), TWO), "run lacks transition, noise_cov"
    ),
    "states not kept": (lambda: predict(posterior_of(TWO)), "run lacks states"),
}  # fmt: skip


def only(name):
    return Posterior({name: posterior_of(TWO)[name]}, origin=Origin.of(MultinomialLDS(1), TWO))


@pytest.mark.parametrize(("ask", "match"), REFUSALS.values(), ids=REFUSALS)
def test_bad_questions(ask, match):
    with pytest.raises(ValueError, match=match):
        ask()


QUESTIONS = {
    "forecast": lambda posterior, data: forecast(posterior, 1, data),
    "predict": predict,
    "impute": impute,
}


@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS)
def test_draws_that_do_not_know_their_model_are_refused(ask):
    posterior = posterior_of(TWO)
    with pytest.raises(TypeError, match=r"must be a Posterior.*dict.*origin="):
        ask(dict(posterior), TWO)
    with pytest.raises(ValueError, match="run must know its model"):
        ask(Posterior(dict(posterior)), TWO)
    other = Posterior(dict(posterior), origin=Origin.of(MultinomialHMM(2), TWO))
    with pytest.raises(ValueError, match=r"MultinomialHMM has none|lacks initial"):
        ask(other, TWO)


@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS)
def test_sequences_of_other_symbols_are_refused(ask):
    """Two symbols under two sticks, which are of three symbols, are no softmax of two."""
    three = as_sequences([[0, 1, 2, -1, 0]], num_symbols=3)
    with pytest.raises(ValueError, match="posterior's 3 symbols, 0, 1, 2, got 2, 0, 1"):
        ask(posterior_of(three), as_sequences([[0, 1, -1]], num_symbols=2))
    named = posterior_of(as_sequences([["a", "b", None]]))
    with pytest.raises(ValueError, match=r"symbols, a, b, got 2, a, c \(give as_sequences"):
        ask(named, [["a", "c", None]])
    with pytest.raises(ValueError, match="symbols, a, b, got 2, 0, 1"):
        ask(named, TWO)


@pytest.mark.slow
def test_other_sequences_are_never_forecast_from_the_end_of_the_training_ones():
    """A run of the second symbol, given to a posterior whose sequence ended in the first."""
    train, other = as_sequences([28 * "A" + "B"]), as_sequences([18 * "B" + "A"])
    posterior = posterior_of(train, 1000, last_states=[[2.0]])
    assert forecast(posterior, 1, max_draws=1000).mean[0, 0, 0] > 0.85
    found = forecast(posterior, 1, other.split(-1)[0], max_draws=1000)
    assert found.mean[0, 0, 0] < 0.3


@pytest.mark.slow
@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS)
def test_raw_sequences_are_read_as_the_model_reads_them(ask):
    raw = [["a", "b", "b", None], ["b", None]]
    posterior = posterior_of(as_sequences(raw))
    one, two = ask(posterior, raw), ask(posterior, as_sequences(raw))
    np.testing.assert_array_equal(one.mean, two.mean)


@pytest.mark.slow
@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS)
def test_sticks_break_in_the_posteriors_order_whatever_that_of_the_data(ask):
    data = as_sequences([[0, 0, 1, 2, -1, 0]], order=[0, 1, 2])
    posterior = posterior_of(data, offset=[2.0, -1.0])
    expected = ask(posterior, data).mean
    np.testing.assert_array_equal(
        ask(posterior, as_sequences(data, order=[2, 1, 0])).mean, expected
    )
    assert forecast(posterior, 1).mean[0, 0, 0] > 0.6


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
def test_groups_alone_act_on_the_steps_ahead():
    who, step = np.repeat(["a", "b", "c"], 12), np.tile(np.arange(12), 3)
    table = {"who": who, "t": step, "s": np.random.default_rng(0).choice(list("xyz"), 36)}
    data = pgmult.read(table).sequences(symbol="s", sequence="who", time="t", inputs="~ (1 | who)")
    run = pgmult.sample(
        MultinomialLDS(1), data, draws=4, tune=2, chains=1, random_seed=0, progressbar=False
    )
    ahead = {"who": ["a", "a", "b", "b", "c", "c"], "t": [12, 13] * 3}
    mean = run.forecast(2, inputs=ahead).mean
    np.testing.assert_allclose(mean.sum(axis=2), np.ones((3, 2)))
    data = run.data
    assert data.extended(2, data.design.take(np.arange(6))).num_inputs == data.num_inputs == 3

"""Missing steps are summed out: the answer is the sum over all symbols that they might have had."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp

from pgmult.sequences import MarkovChain, MixedHMM, MixedMarkovChain, MultinomialHMM, as_sequences
from pgmult.sequences.models.lds import MultinomialLDS
from pgmult.sequences.scores.particle_filter import particle_filter

X = np.random.default_rng(4).standard_normal((8, 1))
SYMBOLS = np.array([0, -1, -1, 2, 1, -1, -1, -1])  # in a row, and at the end
MODELS = {
    "MarkovChain": (MarkovChain(2), None),
    "MultinomialHMM": (MultinomialHMM(3), None),
    "left to right": (MultinomialHMM(3, allowed=np.triu(np.ones((3, 3), dtype=int))), None),
    "MixedHMM": (MixedHMM(2, inputs="both"), X),
    "MixedMarkovChain": (MixedMarkovChain(3), X),
}


def with_symbols(model, symbols, inputs):
    return model.as_data(as_sequences([symbols], num_symbols=3, inputs=inputs, order="given"))


def filled(symbols):
    """All completions of a sequence."""
    missing = np.flatnonzero(symbols < 0)
    for values in itertools.product(range(3), repeat=len(missing)):
        whole = symbols.copy()
        whole[missing] = values
        yield whole


@pytest.mark.parametrize("name", MODELS)
def test_the_likelihood_is_the_sum_over_completions(name):
    model, inputs = MODELS[name]
    data = with_symbols(model, SYMBOLS, inputs)
    state = model.prior(np.random.default_rng(1), data)
    each = [
        model.log_likelihood(state, with_symbols(model, whole, inputs)) for whole in filled(SYMBOLS)
    ]
    assert model.log_likelihood(state, data) == pytest.approx(logsumexp(each), rel=1e-9)


@pytest.mark.parametrize("name", ["MultinomialHMM", "left to right", "MixedHMM"])
def test_states_are_those_of_completions_by_their_probability(name):
    model, inputs = MODELS[name]
    data = with_symbols(model, SYMBOLS, inputs)
    state = model.prior(np.random.default_rng(1), data)
    mean, total = 0.0, 0.0
    for symbols in filled(SYMBOLS):
        whole = with_symbols(model, symbols, inputs)
        chance = np.exp(model.log_likelihood(state, whole))
        mean, total = mean + chance * model.state_probs(state, whole), total + chance
    np.testing.assert_allclose(model.state_probs(state, data), mean / total, atol=1e-9)


@pytest.mark.slow
def test_a_linear_dynamical_system_by_particles():
    model, symbols = MultinomialLDS(1, loading_scale=2.0), np.array([0, -1, -1, 1, 0, -1])
    data = as_sequences([symbols], num_symbols=2)
    state = model.prior(np.random.default_rng(3), data)
    names = (*model.predictive_variables,)
    point = model.state_space({name: getattr(state, name) for name in names}, model.link(data))

    def log_p(symbols):
        rng = np.random.default_rng(0)
        one = replace(as_sequences([symbols], num_symbols=2), order=data.order)
        return particle_filter(rng, [point], one, 20_000).log_predictive.sum()

    missing = np.flatnonzero(symbols < 0)
    each = []
    for values in itertools.product(range(2), repeat=len(missing)):
        whole = symbols.copy()
        whole[missing] = values
        each.append(log_p(whole))
    assert log_p(symbols) == pytest.approx(logsumexp(each), abs=0.02)

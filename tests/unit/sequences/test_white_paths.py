"""Paths by the likelihood itself: slopes, noise and states, and when they are taken."""

from dataclasses import replace

import numpy as np
import pytest

from pgmult.sequences.compiled import white_paths as compiled
from pgmult.sequences.data.sequences import as_sequences
from pgmult.sequences.models.lds import MultinomialLDS
from pgmult.sequences.updates import lds_moves

pytestmark = pytest.mark.slow

DATA = as_sequences(
    [
        np.array([[1, 2, 0, 0], [0, 0, 0, 0], [3, 0, 1, 1], [0, 6, 0, 0]]),
        np.array([[0, 1, 0, 2], [0, 0, 9, 0]]),
    ],
    inputs=np.random.default_rng(9).standard_normal((6, 2)),
)
MODEL = MultinomialLDS(2)


@pytest.fixture(scope="module")
def path():
    """What a path sees and holds, and where it starts."""
    state = MODEL.prior(np.random.default_rng(1), DATA)
    moves = lds_moves.ByLikelihood(MODEL, DATA)
    return moves.observations, moves.held(state), state


def density(seen, held, state, flat):
    """The log density at a vector, slopes and states."""
    by, x = np.empty_like(flat), np.empty_like(state.states)
    place, slopes = (lds_moves.laid_out(each, state) for each in (flat, by))
    return compiled.log_density(seen, held, place, x, np.empty_like(x), slopes, True), by, x


def vector(seen, held, state):
    white = np.empty_like(state.states)
    compiled.exchange(seen, held, state.dynamics, state.states, white, False)
    return np.concatenate([state.dynamics.ravel(), state.weights.ravel(), white.ravel()])


def test_slopes_are_those_of_differences(path):
    seen, held, state = path
    at = vector(seen, held, state)
    _, by, x = density(seen, held, state, at)
    np.testing.assert_allclose(x, state.states, rtol=1e-9)
    step = 1e-5 * np.eye(len(at))
    up, down = (
        np.array([density(seen, held, state, at + sign * e)[0] for e in step]) for sign in (1, -1)
    )
    np.testing.assert_allclose((up - down) / 2e-5, by, rtol=1e-5, atol=1e-5)


def test_the_density_is_that_of_the_model(path):
    """Its differences are those of likelihood, noise and priors, from the model's own functions."""
    seen, held, state = path

    def of_model(flat):
        _, _, x = density(seen, held, state, flat)
        place = lds_moves.laid_out(flat, state)
        moved = replace(state, states=x, weights=place.weights)
        away = place.dynamics.T - held.mean
        prior = np.trace(held.precision @ away.T @ held.row_precision @ away)
        weights = held.weight_precision * (place.weights - held.weight_mean) ** 2
        squares = prior + weights.sum() + (place.white**2).sum()
        return MODEL.log_likelihood(moved, DATA) - 0.5 * squares

    at = vector(seen, held, state)
    other = at + 0.3 * np.random.default_rng(2).standard_normal(len(at))
    differences = [f(other) - f(at) for f in (lambda u: density(seen, held, state, u)[0], of_model)]
    np.testing.assert_allclose(*differences, rtol=1e-9)


def test_short_steps_keep_the_energy(path):
    seen, held, state = path
    at, rng = vector(seen, held, state), np.random.default_rng(3)
    chances = []
    for size in (2e-3, 1e-3):
        momenta, x = np.random.default_rng(4).standard_normal(len(at)), state.states.copy()
        flat = np.array([at, at, momenta, np.ones_like(at)])
        place, slopes = (lds_moves.laid_out(each, state) for each in flat[:2])
        chances.append(compiled.walk(seen, held, place, slopes, flat, x, size, int(0.1 / size)))
    assert abs(chances[0]) < 1e-2
    np.testing.assert_allclose(chances[0] / chances[1], 4.0, rtol=0.1)
    moved = lds_moves.ByLikelihood(MODEL, DATA).walk(rng, state)
    assert moved.states.shape == state.states.shape


@pytest.mark.parametrize(
    ("model", "data", "walks"),
    [
        (MODEL, DATA, True),
        (replace(MODEL, block_rows=1), DATA, False),
        (MODEL, as_sequences([[0, 1] * 5001]), False),
        (MODEL, as_sequences([np.array([[90, 9, 1]] * 4)]), False),
    ],
)
def test_paths_are_for_one_block_of_few_observations_a_step(model, data, walks):
    assert isinstance(model.sampler(data), lds_moves.ByLikelihood) == walks

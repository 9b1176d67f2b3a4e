"""Paths by the likelihood itself: slopes, noise and states, and when they are taken."""

from dataclasses import replace

import numpy as np
import pytest

from pgmult.compiled.linalg import invert_positive_definite
from pgmult.priors.gaussian import lower_cholesky
from pgmult.sequences.compiled import white_paths as compiled
from pgmult.sequences.data.sequences import as_sequences
from pgmult.sequences.models.lds import MultinomialLDS
from pgmult.sequences.updates import white_paths

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
    known = MODEL.design(state.states, DATA)[:, 2:]
    seen = white_paths.seen_by(DATA, DATA.inputs, known)
    here = state.dynamics, state.weights, state.states
    mean, var = MODEL.weight_moments(state, DATA)
    prior, Q = MODEL.dynamics_prior(DATA), state.noise_cov
    held = compiled.PathParameters(
        lower_cholesky(Q), state.initial_mean, lower_cholesky(state.initial_cov),
        invert_positive_definite(Q), prior.mean, prior.row_precision, mean, 1.0 / var,
    )  # fmt: skip
    return seen, held, here, state


def density(seen, held, here, flat):
    """The log density at a vector, slopes and states."""
    by, x = np.empty_like(flat), np.empty_like(here[2])
    place, slopes = (white_paths.laid_out(each, here) for each in (flat, by))
    return compiled.log_density(seen, held, place, x, np.empty_like(x), slopes), by, x


def vector(seen, held, here):
    white = np.empty_like(here[2])
    compiled.whiten(seen, held, here[0], here[2], white)
    return np.concatenate([here[0].ravel(), here[1].ravel(), white.ravel()])


def test_slopes_are_those_of_differences(path):
    seen, held, here, _ = path
    at = vector(seen, held, here)
    _, by, x = density(seen, held, here, at)
    np.testing.assert_allclose(x, here[2], rtol=1e-9)
    step = 1e-5 * np.eye(len(at))
    up, down = (
        np.array([density(seen, held, here, at + sign * e)[0] for e in step]) for sign in (1, -1)
    )
    np.testing.assert_allclose((up - down) / 2e-5, by, rtol=1e-5, atol=1e-5)


def test_the_density_is_that_of_the_model(path):
    """Its differences are those of likelihood, noise and priors, from the model's own functions."""
    seen, held, here, state = path

    def of_model(flat):
        _, _, x = density(seen, held, here, flat)
        place = white_paths.laid_out(flat, here)
        moved = replace(state, states=x, weights=place.weights)
        away = place.dynamics.T - held.mean
        prior = np.trace(held.precision @ away.T @ held.row_precision @ away)
        weights = held.weight_precision * (place.weights - held.weight_mean) ** 2
        squares = prior + weights.sum() + (place.white**2).sum()
        return MODEL.log_likelihood(moved, DATA) - 0.5 * squares

    at = vector(seen, held, here)
    other = at + 0.3 * np.random.default_rng(2).standard_normal(len(at))
    differences = [f(other) - f(at) for f in (lambda u: density(seen, held, here, u)[0], of_model)]
    np.testing.assert_allclose(*differences, rtol=1e-9)


def test_short_steps_keep_the_energy(path):
    seen, held, here, _ = path
    at, rng = vector(seen, held, here), np.random.default_rng(3)
    chances = []
    for size in (2e-3, 1e-3):
        momenta, x = np.random.default_rng(4).standard_normal(len(at)), here[2].copy()
        flat = np.array([at, at, momenta, np.ones_like(at)])
        place, slopes = (white_paths.laid_out(each, here) for each in flat[:2])
        chances.append(compiled.walk(seen, held, place, slopes, flat, x, size, int(0.1 / size)))
    assert abs(chances[0]) < 1e-2
    np.testing.assert_allclose(chances[0] / chances[1], 4.0, rtol=0.1)
    assert white_paths.walk_white(rng, seen, held, here)[2].shape == here[2].shape


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
    assert model.has_paths(data) == walks

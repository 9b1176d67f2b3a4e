r"""Hamiltonian paths of dynamics, weights and states by the likelihood itself.

Where psi is far from 0, omega holds it there: what is drawn given omega moves slowly. Given Q, m, V
and the loadings' variances a path (Neal 2011, "MCMC using Hamiltonian dynamics") moves dynamics and
weights together with the white noise that the states are made of
(`pgmult.sequences.compiled.white_paths`).

Nobody knows beforehand how far the states spread, in units of Q, and what that makes of the steps
that are stable: both the `spread` that the metric takes for granted and the size of a step are
drawn anew, from laws that depend on nothing that moves, so the path is exact. Of some ten thousand
steps, whose states drift slowly, none would be taken: these do without (`few_states`).
"""

import math

import numpy as np

from pgmult.core.memory import once_a_data_set
from pgmult.core.typing import FloatArray, IntArray
from pgmult.sequences.active_sticks import Pairs
from pgmult.sequences.compiled import white_paths
from pgmult.sequences.compiled.white_paths import Observations, PathParameters, Place
from pgmult.sequences.data.sequences import Sequences

_SIZES = math.log(0.1), math.log(4.0)  # the least, and how many times it is the largest
_SPREADS = math.log(0.5), math.log(100.0)
_LENGTH, _LENGTH_OF_MANY = 5.0, 2.5  # at most, in units of the metric
_LEAST_LENGTH = 0.3  # of it
_CURVATURE = 0.1  # of the likelihood of a stick in psi, at a step
_SOME, _MANY = 1_000, 20_000  # numbers in all states: from some on, paths take the time


def few_states(num_steps: int, state_dim: int) -> bool:
    """Whether paths move all states at once."""
    return num_steps * state_dim <= _MANY


def seen_by(data: Sequences, inputs: FloatArray | None, known: FloatArray) -> Observations:
    """What a path sees of data: inputs of the dynamics, and what is known of psi."""
    inputs = np.empty((data.num_steps, 0)) if inputs is None else inputs
    return Observations(*_reached(data), data.offsets, np.ascontiguousarray(known), inputs)


@once_a_data_set
def _reached(data: Sequences) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    pairs = Pairs.of(data)
    some = pairs.reaching > 0
    return pairs.step[some], pairs.stick[some], pairs.taken[some], pairs.reaching[some]


def walk_white(
    rng: np.random.Generator,
    seen: Observations,
    held: PathParameters,
    here: tuple[FloatArray, FloatArray, FloatArray],
) -> tuple[FloatArray, ...]:
    """(A, B), W and states ``(num_steps, D)`` after one path from there."""
    u, v, length = rng.random(3)
    size, spread = math.exp(_SIZES[0] + u * _SIZES[1]), math.exp(_SPREADS[0] + v * _SPREADS[1])
    longest = _LENGTH if here[2].size < _SOME else _LENGTH_OF_MANY
    count = max(1, int(longest * (_LEAST_LENGTH + (1.0 - _LEAST_LENGTH) * length) / size))
    flat = np.empty((4, sum(part.size for part in here)))
    flat[2] = rng.standard_normal(flat.shape[1])
    x = here[2].copy()
    place, slopes, scales = (laid_out(flat[i], here) for i in (0, 1, 3))
    place.dynamics[:], place.weights[:] = here[:2]
    scales.dynamics[:], scales.weights[:] = _measured(held, len(x), spread)
    scales.white[:] = 1.0
    chance = white_paths.walk(seen, held, place, slopes, flat, x, size, count)
    return (*place[:2], x) if -rng.standard_exponential() < chance else here


def _measured(held: PathParameters, num_steps: int, spread: float) -> tuple[FloatArray, FloatArray]:
    """Rough standard deviations, were the states' variances `spread` times those of Q."""
    often, D = _CURVATURE * num_steps, len(held.root)
    wide = often * np.cumsum(spread * held.root * held.root, axis=1)[:, -1]
    rows, known = np.diag(held.row_precision).copy(), np.full(held.weight_mean.shape[1], often)
    rows[:D] += wide
    known[:D] = wide
    dynamics = 1.0 / np.sqrt(np.diag(held.precision)[:, None] * rows)
    return dynamics, 1.0 / np.sqrt(held.weight_precision + known)


def laid_out(flat: FloatArray, parts: tuple[FloatArray, ...]) -> Place:
    """A vector's parts in the shapes of others."""
    b, w, x = parts
    middle = b.size + w.size
    return Place(
        flat[: b.size].reshape(b.shape), flat[b.size : middle].reshape(w.shape),
        flat[middle:].reshape(x.shape),
    )  # fmt: skip

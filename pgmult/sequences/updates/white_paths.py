r"""Hamiltonian paths of dynamics, weights and states by the likelihood itself, for small data.

Where a few dozen symbols are all there is, psi may be far from 0, and then omega holds it there:
what is drawn given omega moves slowly, states summed out or not. Given Q, m, V and the loadings'
variances a path (Neal 2011, "MCMC using Hamiltonian dynamics") moves dynamics and weights together
with the white noise that the states are made of (`pgmult.sequences.compiled.white_paths`).

Nobody knows beforehand how far the states spread, in units of Q, and what that makes of the steps
that are stable: both the `spread` that the metric takes for granted and the size of a step are
drawn anew, from laws that depend on nothing that moves, so the path is exact.
"""

import math

import numpy as np

from pgmult.core.memory import once_a_data_set
from pgmult.core.typing import FloatArray, IntArray
from pgmult.sequences.active_sticks import Pairs
from pgmult.sequences.compiled import white_paths
from pgmult.sequences.compiled.white_paths import Held, Place, Seen
from pgmult.sequences.data.sequences import Sequences

_FEW = 125  # steps: with more, paths given omega are as fast
_SIZES = math.log(0.1), math.log(0.4)
_SPREADS = math.log(0.5), math.log(50.0)
_LENGTH = 2.5  # at most, in units of the metric
_LEAST_LENGTH = 0.3  # of it
_CURVATURE = 0.1  # of the likelihood of a stick in psi


def few_steps(num_steps: int) -> bool:
    """Whether data are as small as paths need."""
    return num_steps <= _FEW


def seen_by(data: Sequences, inputs: FloatArray | None, known: FloatArray) -> Seen:
    """What a path sees of data: inputs of the dynamics, and what is known of psi."""
    inputs = np.empty((data.num_steps, 0)) if inputs is None else inputs
    return Seen(*_reached(data), data.offsets, known, inputs)


@once_a_data_set
def _reached(data: Sequences) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    pairs = Pairs.of(data)
    some = pairs.reaching > 0
    return pairs.step[some], pairs.stick[some], pairs.taken[some], pairs.reaching[some]


def walk_white(
    rng: np.random.Generator,
    seen: Seen,
    held: Held,
    here: tuple[FloatArray, FloatArray, FloatArray],
) -> tuple[FloatArray, ...]:
    """(A, B), W and states ``(num_steps, D)`` after one path from there."""
    size, spread = np.exp([rng.uniform(*_SIZES), rng.uniform(*_SPREADS)])
    scale = _metric(held, len(here[2]), spread)
    at, by, x = np.empty_like(scale), np.empty_like(scale), here[2].copy()
    place, slopes = laid_out(at, here), laid_out(by, here)
    place.dynamics[:], place.weights[:] = here[:2]
    count = max(1, int(_LENGTH * rng.uniform(_LEAST_LENGTH, 1.0) / size))
    flat = at, by, rng.standard_normal(len(at)), scale
    chance = white_paths.walk(seen, held, place, slopes, flat, x, size, count)
    return (*place[:2], x) if -rng.standard_exponential() < chance else here


def _metric(held: Held, num_steps: int, spread: float) -> FloatArray:
    """Rough standard deviations, were the states' variances `spread` times those of Q."""
    D, information = len(held.root), np.full(held.weight_mean.shape[1], _CURVATURE * num_steps)
    information[:D] *= spread * np.einsum("ij,ij->i", held.root, held.root)
    rows = np.diag(held.row_precision).copy()
    rows[:D] += information[:D]
    precisions = np.outer(np.diag(held.precision), rows), held.weight_precision + information
    white = np.ones(num_steps * D)
    return np.concatenate([*(1.0 / np.sqrt(part).ravel() for part in precisions), white])


def laid_out(flat: FloatArray, parts: tuple[FloatArray, ...]) -> Place:
    """A vector's parts in the shapes of others."""
    b, w, x = parts
    middle = b.size + w.size
    return Place(
        flat[: b.size].reshape(b.shape), flat[b.size : middle].reshape(w.shape),
        flat[middle:].reshape(x.shape),
    )  # fmt: skip

"""Leapfrogs of all probabilities of hidden Markov chains, the states summed out.

See `pgmult.sequences.updates.summed_out`, whose paths these are.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgmult.compiled.jit import jit
from pgmult.latent.compiled.stacked import Stacked, solve
from pgmult.sequences.compiled.hmm import (
    SMALLEST,
    ByRows,
    add_up_counts,
    break_sticks,
    set_product,
    smooth_paths,
)

_Floats = NDArray[np.float64]


class Moved(NamedTuple):
    """Values of sticks, their velocities, and what moves them.

    Attributes
    ----------
    values, velocity : arrays, ``(num_sticks, num_values)``
    rows, columns : ByRows
        The design A and A'.
    constants : array, ``(num_cells, num_sticks)``
        psi = A values' + constants.
    information : array, ``(num_sticks, num_cells)``
        J: the log prior is v' A' J A v / 2 less half of v' P v, P the metric.
    metric : Stacked
    """

    values: _Floats
    velocity: _Floats
    rows: ByRows
    columns: ByRows
    constants: _Floats
    information: _Floats
    metric: Stacked


@jit(within=True)
def _predict(part, psi):
    """Predictors of a part."""
    set_product(0, 0, psi.shape[0], part.rows, part.values.T, psi)
    for c in range(psi.shape[0]):
        for s in range(psi.shape[1]):
            psi[c, s] += part.constants[c, s]


@jit(within=True)
def _kick(part, psi, slopes, length):
    """Change velocities by the metric's inverse times the slopes of the log density."""
    num_cells, num_sticks = psi.shape
    pulls = np.empty_like(slopes)
    for c in range(num_cells):
        for s in range(num_sticks):
            known = part.information[s, c] * (psi[c, s] - part.constants[c, s])
            pulls[c, s] = slopes[c, s] + known
    size = part.values.shape[1]
    pulled, solved = np.empty((size, num_sticks)), np.empty(size)
    set_product(0, 0, size, part.columns, pulls, pulled)
    for s in range(num_sticks):
        solve(part.metric, s, pulled[:, s].copy(), solved)
        for j in range(size):
            part.velocity[s, j] += length * (solved[j] - part.values[s, j])


@jit
def leap(chains, data, cells, orders, before, parts, psi, slopes, room, size, count):
    """So many leapfrogs, which change values and velocities; the log likelihoods at both ends.

    The last is -inf where a path comes to a probability that is next to 0, and ends there. `psi`
    and `slopes` are room for each part, as cells by rows by sticks and as cells by sticks.
    """
    log_predictive, smoothed, pairs = room
    num_cells = max(psi[0][0].shape[0], psi[0][1].shape[0], psi[0][2].shape[0])
    start = fit = 0.0
    for i in range(count + 1):
        for p in range(3):
            _predict(parts[p], psi[1][p])
        if break_sticks(0, 0, num_cells, psi[0], orders, chains) < SMALLEST:
            return start, -math.inf
        smooth_paths(0, 0, chains.offsets.size - 1, chains, log_predictive, smoothed, pairs)
        counts = before[0].copy(), before[1].copy(), before[2].copy()
        add_up_counts(data, cells, smoothed, pairs, psi[0], orders, counts, slopes[0])
        fit = log_predictive.sum()
        if i == 0:
            start = fit
        for p in range(3):
            _kick(parts[p], psi[1][p], slopes[1][p], size if 0 < i < count else 0.5 * size)
            if i < count:
                parts[p].values[:] += size * parts[p].velocity
    return start, fit

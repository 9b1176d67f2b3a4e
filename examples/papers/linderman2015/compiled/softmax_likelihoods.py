"""The log likelihood of one step's counts under the softmax: at many states, or expanded at one.

As `pgmult.sequences.compiled.likelihoods` under sticks; a position is a row of `loadings`.
"""

import math

import numpy as np

from examples.papers.linderman2015.compiled.softmax_loadings import weighted_dot
from pgmult.compiled.jit import jit
from pgmult.compiled.vectors import combine, copy, dot, exp_minus

_BLOCK = 32  # rows whose maximum is taken together
WORK_ROWS = _BLOCK + 3  # of scratch


@jit
def log_likelihoods(positions, counts, loadings, offset, z, work, out):
    """Log likelihood, without the multinomial coefficient, of one step for every particle.

    `z` is (state_dim, num_particles), `work` (`WORK_ROWS`, num_particles).
    """
    num_rows, size = offset.shape[0], z.shape[1]
    largest, total, top = work[_BLOCK], work[_BLOCK + 1], work[_BLOCK + 2]
    out[:] = 0.0
    trials = 0
    for e in range(positions.shape[0]):
        psi = work[0]
        combine(loadings[positions[e]], offset[positions[e]], z, psi)
        trials += counts[e]
        for i in range(size):
            out[i] += counts[e] * psi[i]
    largest[:] = -1e300
    total[:] = 0.0
    for first in range(0, num_rows, _BLOCK):
        rows = min(_BLOCK, num_rows - first)
        copy(largest, top)
        for r in range(rows):
            psi = work[r]
            combine(loadings[first + r], offset[first + r], z, psi)
            for i in range(size):
                top[i] = max(top[i], psi[i])
        for i in range(size):
            total[i] *= exp_minus(top[i] - largest[i])
            largest[i] = top[i]
        for r in range(rows):
            psi = work[r]
            for i in range(size):
                total[i] += exp_minus(top[i] - psi[i])
    for i in range(size):
        out[i] -= trials * (largest[i] + math.log(total[i]))


@jit(within=True)
def _slope_at_softmax(positions, counts, psi, weight):
    """Log likelihood; `psi` becomes its slope and `weight` the expected counts."""
    value, largest, total = 0.0, -math.inf, 0.0
    trials = 0
    for e in range(positions.shape[0]):
        value += counts[e] * psi[positions[e]]
        trials += counts[e]
    for k in range(psi.shape[0]):
        largest = max(largest, psi[k])
    for k in range(psi.shape[0]):
        weight[k] = exp_minus(largest - psi[k])
    for k in range(psi.shape[0]):
        total += weight[k]
    scale = trials / total
    for k in range(psi.shape[0]):
        weight[k] *= scale
        psi[k] = -weight[k]
    for e in range(positions.shape[0]):
        psi[positions[e]] += counts[e]
    return value - trials * (largest + math.log(total)), trials


@jit
def expand(positions, counts, columns, offset, x, gradient, curvature):
    """Log likelihood at the vector `x`; fills its gradient and minus its second derivative.

    `columns` are the transposed loadings, (state_dim, num_symbols).
    """
    depth, used = x.shape[0], offset.shape[0]
    psi, weight = np.empty(used), np.empty(used)
    combine(x, 0.0, columns, psi)
    for j in range(used):
        psi[j] += offset[j]
    value, trials = _slope_at_softmax(positions, counts, psi, weight)
    mean = np.zeros(depth)
    for a in range(depth):
        gradient[a] = dot(columns[a], psi)
        mean[a] = dot(columns[a], weight) / trials
    for a in range(depth):
        for b in range(a + 1):
            entry = weighted_dot(weight, columns[a], columns[b])
            curvature[a, b] = entry - trials * mean[a] * mean[b]
            curvature[b, a] = curvature[a, b]
    return value

"""The log likelihood of one step's counts given its state: at many particles, or expanded at one.

psi = offset + loadings z goes through sticks or a softmax. Particles stand side by side, coordinate
d of particle i at ``z[d, i]``, so that loops over them vectorise. A symbol at stick k takes k
products of `loadings` and z. Entries of a step are sorted by position: a stick, or with a softmax
the row of `loadings`. Multinomial coefficients are left out.
"""

import math

import numpy as np

from pgmult.compiled.jit import jit
from pgmult.compiled.vectors import FACTORS, combine, copy, dot, exp_minus, multiply_softplus

_BLOCK = 32  # rows of a softmax whose maximum is taken together
WORK_ROWS = _BLOCK + 3  # of scratch


@jit(within=True)
def _stick_log_likelihoods(positions, counts, loadings, offset, z, work, out):
    """Log likelihood of one step's counts for every particle, only the sticks they reach."""
    num_sticks, size = offset.shape[0], z.shape[1]
    psi, product, linear = work[0], work[1], work[2]
    out[:] = 0.0
    reaching = 0
    for e in range(positions.shape[0]):
        reaching += counts[e]
    first = 0
    for e in range(positions.shape[0]):
        position = positions[e]
        product[:] = 1.0
        linear[:] = 0.0
        for j in range(first, min(position + 1, num_sticks)):
            combine(loadings[j], offset[j], z, psi)
            multiply_softplus(psi, product, linear)
            if (j - first) % FACTORS == FACTORS - 1:
                for i in range(size):
                    linear[i] += math.log(product[i])
                    product[i] = 1.0
        for i in range(size):
            out[i] -= reaching * (linear[i] + math.log(product[i]))
        if position < num_sticks:
            for i in range(size):
                out[i] += counts[e] * psi[i]
        reaching -= counts[e]
        first = position + 1


@jit(within=True)
def _softmax_log_likelihoods(positions, counts, loadings, offset, z, work, out):
    """Log likelihood of one step's counts for every particle; sums of exponentials by blocks."""
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


@jit
def log_likelihoods(softmax, positions, counts, loadings, offset, z, work, out):
    """Log likelihood, without the multinomial coefficient, of one step for every particle.

    `z` is (state_dim, num_particles), `work` (`WORK_ROWS`, num_particles).
    """
    if softmax:
        _softmax_log_likelihoods(positions, counts, loadings, offset, z, work, out)
    else:
        _stick_log_likelihoods(positions, counts, loadings, offset, z, work, out)


@jit(reassociate=True)
def weighted_dot(weight, a, b):
    """Sum of the products of three vectors."""
    total = 0.0
    for j in range(weight.shape[0]):
        total += weight[j] * a[j] * b[j]
    return total


@jit(within=True)
def _slope_at_sticks(positions, counts, psi, weight):
    """Log likelihood; `psi` becomes its slope and `weight` minus its second derivative."""
    num_sticks = psi.shape[0]
    value = 0.0
    reaching = 0
    for e in range(positions.shape[0]):
        reaching += counts[e]
    first = 0
    for e in range(positions.shape[0]):
        for j in range(first, min(positions[e] + 1, num_sticks)):
            taken = counts[e] if j == positions[e] else 0
            x = psi[j]
            small = math.exp(-abs(x))
            share = (1.0 if x >= 0.0 else small) / (1.0 + small)
            value += taken * x - reaching * (max(x, 0.0) + math.log1p(small))
            psi[j] = taken - reaching * share
            weight[j] = reaching * share * (1.0 - share)
        reaching -= counts[e]
        first = positions[e] + 1
    return value


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
def expand(softmax, positions, counts, columns, offset, x, gradient, curvature):
    """Log likelihood at the vector `x`; fills its gradient and minus its second derivative.

    `columns` are the transposed loadings, (state_dim, num_rows).
    """
    depth = x.shape[0]
    used = offset.shape[0] if softmax else min(positions[-1] + 1, offset.shape[0])
    psi, weight = np.empty(used), np.empty(used)
    combine(x, 0.0, columns[:, :used], psi)
    for j in range(used):
        psi[j] += offset[j]
    trials = 0
    if softmax:
        value, trials = _slope_at_softmax(positions, counts, psi, weight)
    else:
        value = _slope_at_sticks(positions, counts, psi, weight)
    mean = np.zeros(depth)
    for a in range(depth):
        column = columns[a, :used]
        gradient[a] = dot(column, psi)
        if softmax:
            mean[a] = dot(column, weight) / trials
    for a in range(depth):
        for b in range(a + 1):
            entry = weighted_dot(weight, columns[a, :used], columns[b, :used])
            curvature[a, b] = entry - trials * mean[a] * mean[b]
            curvature[b, a] = curvature[a, b]
    return value

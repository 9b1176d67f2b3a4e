"""The log likelihood of one step's counts given its state: at many particles, or expanded at one.

psi = offset + loadings z goes through sticks. Particles stand side by side, coordinate d of
particle i at ``z[d, i]``, so that loops over them vectorise. A symbol at stick k takes k products
of `loadings` and z. Entries of a step are sorted by position, a stick. Multinomial coefficients are
left out.
"""

import math

import numpy as np

from pgmult.compiled.jit import jit
from pgmult.compiled.vectors import FACTORS, combine, dot, multiply_softplus

WORK_ROWS = 3  # of scratch


@jit
def log_likelihoods(positions, counts, loadings, offset, z, work, out):
    """Log likelihood, without the multinomial coefficient, of one step for every particle.

    `z` is (state_dim, num_particles), `work` (`WORK_ROWS`, num_particles).
    """
    num_sticks, size = offset.shape[0], z.shape[1]
    psi, product, linear = work[0], work[1], work[2]
    out[:] = 0.0
    reaching, first = counts.sum(), 0
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
def _slope_at_sticks(positions, counts, psi, weight):
    """Log likelihood; `psi` becomes its slope and `weight` minus its second derivative."""
    num_sticks, value = psi.shape[0], 0.0
    reaching, first = counts.sum(), 0
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


@jit
def expand(positions, counts, columns, offset, x, gradient, curvature):
    """Log likelihood at the vector `x`; fills its gradient and minus its second derivative.

    `columns` are the transposed loadings, (state_dim, num_sticks).
    """
    depth = x.shape[0]
    used = min(positions[-1] + 1, offset.shape[0])
    psi, weight, pulled = np.empty(used), np.empty(used), np.empty(used)
    combine(x, 0.0, columns, psi)
    for j in range(used):
        psi[j] += offset[j]
    value = _slope_at_sticks(positions, counts, psi, weight)
    for a in range(depth):
        gradient[a] = dot(columns[a, :used], psi)
        for j in range(used):
            pulled[j] = weight[j] * columns[a, j]
        for b in range(a + 1):
            curvature[a, b] = dot(pulled, columns[b, :used])
            curvature[b, a] = curvature[a, b]
    return value

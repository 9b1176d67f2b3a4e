"""Draws of Gaussian chains by block elimination, sequence after sequence.

The precision of a chain of states is block tridiagonal. With Q the noise covariance and V the
initial one its blocks are

    (t, t)      J_t + (V^-1 at a first step, else Q^-1) + (A' Q^-1 A unless t is a last step)
    (t, t - 1)  -Q^-1 A

A Cholesky factorisation goes forwards. Rows of a step are the upper triangle of its block, the
transposed block (t + 1, t) and the linear term; its elimination leaves L', reciprocals on the
diagonal, L^-1 times the others, and the products of these go from the next block. Draws come
backwards. A subtraction can cancel, so every pivot is compared with the diagonal entry that it
began as. The sum of these ratios comes back as the *growth*; relative errors are about growth *
1e-16, and nan says that a pivot was not positive.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgmult.compiled.jit import jit
from pgmult.compiled.streams import normal, open_stream

_Floats = NDArray[np.float64]


class GaussianChains(NamedTuple):
    """Chains of states, and potentials on them.

    Attributes
    ----------
    offsets : int array, ``(num_sequences + 1,)``
    J, h : arrays, ``(num_steps, D, D)`` and ``(num_steps, D)``
    start : array, ``(D,)``
        Mean of first states.
    drive : array, ``(num_steps, D)``, or ``(0, D)``
    initial, precision, coupling, push : arrays, ``(D, D)``
        V^-1, Q^-1, Q^-1 A and A' Q^-1 A.
    """

    offsets: NDArray[np.int64]
    J: _Floats
    h: _Floats
    start: _Floats
    drive: _Floats
    initial: _Floats
    precision: _Floats
    coupling: _Floats
    push: _Floats


@jit(within=True)
def _open_rows(chains, t, is_first, is_last, rows):
    """Write the rows of a step, given no other state."""
    n, is_driven = rows.shape[0], chains.drive.shape[0] > 0
    of_state = chains.initial if is_first else chains.precision
    for i in range(n):
        linear = chains.h[t, i]
        for j in range(i, n):
            rows[i, j] = chains.J[t, i, j] + of_state[i, j]
        for j in range(n):
            rows[i, n + j] = -chains.coupling[j, i]
        if not is_last:
            for j in range(i, n):
                rows[i, j] += chains.push[i, j]
        if is_first:
            for j in range(n):
                linear += chains.initial[i, j] * chains.start[j]
        if is_driven:
            for j in range(n):
                linear += of_state[i, j] * chains.drive[t, j]
                if not is_last:
                    linear -= chains.coupling[j, i] * chains.drive[t + 1, j]
        rows[i, 2 * n] = linear


@jit(within=True)
def _less_products(rows, before):
    """Take what the step before explains from the rows of a step."""
    n = rows.shape[0]
    for k in range(n):
        for i in range(n):
            factor = before[k, n + i]
            for j in range(i, n):
                rows[i, j] -= factor * before[k, n + j]
            rows[i, 2 * n] -= factor * before[k, 2 * n]


@jit(within=True)
def _eliminate(rows, diagonal):
    """Eliminate a step; the growth of errors."""
    n, width = rows.shape
    growth = 0.0
    for k in range(n):
        pivot = rows[k, k]
        if not pivot > 0.0:
            return math.nan
        growth += diagonal[k] / pivot
        inverse = 1.0 / math.sqrt(pivot)
        for c in range(k + 1, width):
            rows[k, c] *= inverse
        rows[k, k] = inverse
        for i in range(k + 1, n):
            factor = rows[k, i]
            for c in range(i, width):
                rows[i, c] -= factor * rows[k, c]
    return growth


@jit(reassociate=True)
def sample_chains(worker, start, stop, key, chains, draws, means, growths):
    """Draw the states of sequences; `means` gets their means, unless it has no rows.

    `growths` is of each sequence; where it is nan there is no draw.
    """
    n, longest = chains.start.size, 0
    for s in range(start, stop):
        longest = max(longest, chains.offsets[s + 1] - chains.offsets[s])
    rows, diagonal = np.empty((longest, n, 2 * n + 1)), np.empty(n)
    for s in range(start, stop):
        begin, end = chains.offsets[s], chains.offsets[s + 1]
        growths[s] = 0.0
        for t in range(begin, end):
            now = rows[t - begin]
            _open_rows(chains, t, t == begin, t + 1 == end, now)
            for i in range(n):
                diagonal[i] = now[i, i]
            if t > begin:
                _less_products(now, rows[t - begin - 1])
            growths[s] += _eliminate(now, diagonal)
        if not math.isfinite(growths[s]):
            continue
        state = open_stream(key, s)
        for out in (draws, means):
            for t in range(end - 1, begin - 1 if out.shape[0] > 0 else end - 1, -1):
                now = rows[t - begin]
                for i in range(n - 1, -1, -1):
                    total = now[i, 2 * n]
                    if out is draws:
                        e, state = normal(state)
                        total += e
                    if t + 1 < end:
                        for k in range(n):
                            total -= now[i, n + k] * out[t + 1, k]
                    for k in range(i + 1, n):
                        total -= now[i, k] * out[t, k]
                    out[t, i] = total * now[i, i]

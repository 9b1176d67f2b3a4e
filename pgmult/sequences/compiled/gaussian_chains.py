"""Draws of Gaussian chains by block elimination, sequence after sequence.

The precision of a chain of states is block tridiagonal. With Q the noise covariance and V the
initial one its blocks are

    (t, t)      J_t + (V^-1 at a first step, else Q^-1) + (A' Q^-1 A unless t is a last step)
    (t, t - 1)  -Q^-1 A

An elimination goes forwards. Rows of a step are its block and the transposed block (t + 1, t), each
in whole vectors of lanes; pivot by pivot, multiples of a row go from those below it. With U what is
left of a step's block, C of its coupling, l of its linear terms and P its pivots, C' P^-1 C and
C' P^-1 l go from the next step. Draws come backwards, U x_t = l - C x_t+1 + P^1/2 noise.

A subtraction can cancel, so every pivot is compared with the diagonal entry that it
began as. The sum of these ratios comes back as the *growth*; relative errors are about growth *
1e-16, and nan says that a pivot was not positive.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgmult.compiled.jit import jit
from pgmult.compiled.simd import WIDTH, load, multiply, splat, store, subtract_product
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


@jit(inline=True)
def _padded(n):
    """Room for n numbers in whole vectors of lanes."""
    return (n + WIDTH - 1) // WIDTH * WIDTH


@jit
def _eliminate(begin, length, chains, rows, terms, inverses):
    """Eliminate a sequence, step after step; the growth of errors.

    Leaves each step's rows, linear terms and reciprocals of pivots. This is one function because an
    array that goes to another in a loop has its references counted each time.
    """
    _, J, h, start, drive, initial, precision, coupling, push = chains
    n, is_driven, growth = start.size, drive.shape[0] > 0, 0.0
    width = _padded(n)
    diagonal, scaled = np.empty(n), np.empty(n * width)
    for step in range(length):
        t, is_last, place = begin + step, step + 1 == length, 2 * n * width * step
        for i in range(n):  # the rows of a step, given no other state
            row, linear = place + 2 * i * width, h[t, i]
            for j in range(n):
                rows[row + j] = J[t, i, j] + (precision[i, j] if step > 0 else initial[i, j])
                rows[row + width + j] = -coupling[j, i]
            for j in range(n, width):  # lanes that nothing reads
                rows[row + j], rows[row + width + j] = 0.0, 0.0
            for j in range(0 if is_last else n):
                rows[row + j] += push[i, j]
            for j in range(n if step == 0 else 0):
                linear += initial[i, j] * (start[j] + (drive[t, j] if is_driven else 0.0))
            for j in range(n if is_driven and step > 0 else 0):
                linear += precision[i, j] * drive[t, j]
            for j in range(n if is_driven and not is_last else 0):
                linear -= coupling[j, i] * drive[t + 1, j]
            terms[step, i], diagonal[i] = linear, rows[row + i]
        before = place - 2 * n * width
        for k in range(n if step > 0 else 0):  # less what the step before explains
            for j in range(0, n, WIDTH):
                x = load(rows, before + (2 * k + 1) * width + j)
                store(scaled, k * width + j, multiply(splat(inverses[step - 1, k]), x))
            for i in range(n):
                terms[step, i] -= terms[step - 1, k] * scaled[k * width + i]
        for i in range(n if step > 0 else 0):
            for j in range(i // WIDTH * WIDTH, n, WIDTH):
                x = load(rows, place + 2 * i * width + j)
                for k in range(n):
                    y = load(rows, before + (2 * k + 1) * width + j)
                    x = subtract_product(x, splat(scaled[k * width + i]), y)
                store(rows, place + 2 * i * width + j, x)
        for k in range(n):
            row = place + 2 * k * width
            if not rows[row + k] > 0.0:
                return math.nan
            inverse = 1.0 / rows[row + k]
            growth += diagonal[k] * inverse
            inverses[step, k] = inverse
            for i in range(k + 1, n):
                multiple = inverse * rows[row + i]
                terms[step, i] -= multiple * terms[step, k]
                for c in range(i // WIDTH * WIDTH, 2 * width, WIDTH):
                    at = place + 2 * i * width + c
                    x = subtract_product(load(rows, at), splat(multiple), load(rows, row + c))
                    store(rows, at, x)
    return growth


@jit(reassociate=True)
def _go_back(begin, length, state, is_mean, rows, terms, inverses, out):
    """Write a draw of the states of a sequence, or their mean, to `out`."""
    n = out.shape[1]
    width = _padded(n)
    for step in range(length - 1, -1, -1):
        t = begin + step
        for i in range(n - 1, -1, -1):
            row = 2 * (n * step + i) * width
            total = terms[step, i]
            if not is_mean:
                e, state = normal(state)
                total += math.sqrt(rows[row + i]) * e
            for k in range(n if step + 1 < length else 0):
                total -= rows[row + width + k] * out[t + 1, k]
            for k in range(i + 1, n):
                total -= rows[row + k] * out[t, k]
            out[t, i] = total * inverses[step, i]


@jit
def sample_chains(worker, start, stop, key, chains, draws, means, growths):
    """Draw the states of sequences; `means` gets their means, unless it has no rows.

    `growths` is of each sequence; where it is nan there is no draw.
    """
    n, longest, offsets = chains.start.size, 0, chains.offsets
    for s in range(start, stop):
        longest = max(longest, offsets[s + 1] - offsets[s])
    rows = np.empty(longest * n * 2 * _padded(n))
    terms, inverses = np.empty((longest, n)), np.empty((longest, n))
    for s in range(start, stop):
        begin, length = offsets[s], offsets[s + 1] - offsets[s]
        growths[s] = _eliminate(begin, length, chains, rows, terms, inverses)
        if not math.isfinite(growths[s]):
            continue
        state = open_stream(key, s)
        _go_back(begin, length, state, False, rows, terms, inverses, draws)
        if means.shape[0] > 0:
            _go_back(begin, length, state, True, rows, terms, inverses, means)

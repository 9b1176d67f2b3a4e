"""Conjugate draws of linear dynamics and first states, and slices of their scales, compiled whole.

A sweep of a short sequence is over before the interpreter has checked its arguments, so each piece
is one call, on arrays that a sweep has made. `pgmult.sequences.updates` has the mathematics. Sums
are spelt out: array expressions compile to ten times as much.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgmult.compiled.jit import jit
from pgmult.compiled.linalg import cholesky, invert_lower
from pgmult.compiled.streams import open_stream, uniform
from pgmult.sequences.compiled.brackets import FOUND, START, look_next

_Floats = NDArray[np.float64]
WIDTH = 1.0  # of a slice of the scales, in logarithms


@jit
def transition_sums(states, inputs, offsets, coefficients, zz, ze, ee):
    """Add up z z', z e' and e e' over the steps that have a predecessor.

    z_t = (x_t-1, u_t, 1) and e_t = x_t - coefficients (x_t-1, u_t), coefficients ``(D, D + U)``.
    """
    n, num_rows = coefficients.shape
    z, e = np.empty(num_rows + 1), np.empty(n)
    z[num_rows] = 1.0
    for s in range(offsets.size - 1):
        for t in range(offsets[s] + 1, offsets[s + 1]):
            for i in range(num_rows):
                z[i] = states[t - 1, i] if i < n else inputs[t, i - n]
            for j in range(n):
                x = states[t, j]
                for i in range(num_rows):
                    x -= coefficients[j, i] * z[i]
                e[j] = x
            for i in range(num_rows + 1):
                x = z[i]
                for j in range(i + 1):
                    zz[i, j] += x * z[j]
                for j in range(n):
                    ze[i, j] += x * e[j]
            for i in range(n):
                x = e[i]
                for j in range(i + 1):
                    ee[i, j] += x * e[j]
    for square in (zz, ee):
        for i in range(square.shape[0]):
            for j in range(i):
                square[j, i] = square[i, j]


@jit
def regression_posterior(
    mean, row_precision, coefficients, zz, ze, ee, centre, precision, scale
):  # fmt: skip
    """What `MatrixNormalInverseWishart.condition` makes of rows y whose sums are known.

    Of z z', z e' and e e', e = y - coefficients z, ``(n, num_rows)``. Writes the mean to `centre`,
    ``(num_rows, n)``, and the row precision to `precision`, and adds to `scale`. No digits are lost
    where the coefficients are near those that the rows call for.
    """
    num_rows, n = mean.shape
    pull, root = np.empty((num_rows, n)), np.empty((num_rows, num_rows))
    for i in range(num_rows):
        for j in range(num_rows):
            precision[i, j] = row_precision[i, j] + zz[i, j]
            root[i, j] = precision[i, j]
        for j in range(n):
            centre[i, j] = mean[i, j]
            pull[i, j] = ze[i, j]
            for k in range(num_rows):
                pull[i, j] += zz[i, k] * (coefficients[j, k] - mean[k, j])
    cholesky(root)
    half = invert_lower(root)
    for j in range(n):
        for q in range(num_rows):
            total = 0.0
            for i in range(q + 1):
                total += half[q, i] * pull[i, j]
            for i in range(q + 1):
                centre[i, j] += half[q, i] * total
    for p in range(num_rows):  # sums of squares about the mean, and its shift from the prior's
        for i in range(n):
            shift, away = centre[p, i] - coefficients[i, p], centre[p, i] - mean[p, i]
            for j in range(n):
                square = -shift * ze[p, j]
                for q in range(num_rows):
                    square += 0.5 * shift * zz[p, q] * (centre[q, j] - coefficients[j, q])
                    square += 0.5 * away * row_precision[p, q] * (centre[q, j] - mean[q, j])
                scale[i, j] += square
                scale[j, i] += square
    for i in range(n):
        for j in range(n):
            scale[i, j] += ee[i, j]


@jit
def matrix_normal(noise, row_root, column_root, centre):
    """Add a draw of rows' precision ``L L'`` and columns' covariance ``R R'`` to `centre`."""
    num_rows, n = centre.shape
    half = invert_lower(row_root)
    for q in range(num_rows):
        for j in range(n):
            total = 0.0
            for k in range(j + 1):
                total += column_root[j, k] * noise[q, k]
            for i in range(q + 1):
                centre[i, j] += half[q, i] * total


class ScaleParameters(NamedTuple):
    """Parameters of the density of the logarithms a of the states' scales: `scale_log_density`.

    P = Q^-1 and V^-1 here. `linear` is the sum of what multiplies each a.
    """

    coefficients: _Floats
    mean: _Floats
    row_precision: _Floats
    scale: _Floats
    precision: _Floats
    initial_mean: _Floats
    start_mean: _Floats
    strength: float
    start_scale: _Floats
    initial_precision: _Floats
    loading_scale: float
    loading_var: _Floats
    linear: float


@jit
def scale_log_density(a, terms):
    """Log density of a, ``(D,)``, up to a constant: O(D**2 (D + U)).

    With G = diag(exp a), Q moves to G Q G, so the inverse-Wishart's trace is that of Q^-1 with
    G^-1 S G^-1, and the coefficients' deviation from their mean M, seen in the old units, is
    E = diag(1 / g, 1) B - M G^-1.
    """
    n, num_rows = a.size, terms.mean.shape[0]
    inverse, deviation = np.empty(n), np.empty((num_rows, n))
    for i in range(n):
        inverse[i] = math.exp(-a[i])
    for i in range(num_rows):
        row = inverse[i] if i < n else 1.0
        for j in range(n):
            deviation[i, j] = row * terms.coefficients[i, j] - terms.mean[i, j] * inverse[j]
    total = 0.0
    for i in range(n):
        total += terms.linear * a[i]
        total -= terms.loading_scale / (terms.loading_var[i] * inverse[i] * inverse[i])
        for j in range(n):
            square = inverse[i] * inverse[j] * terms.scale[i, j]
            for p in range(num_rows):
                for q in range(num_rows):
                    square += deviation[p, i] * terms.row_precision[p, q] * deviation[q, j]
            total -= 0.5 * terms.precision[i, j] * square
            left = terms.initial_mean[i] - terms.start_mean[i] * inverse[i]
            right = terms.initial_mean[j] - terms.start_mean[j] * inverse[j]
            square = inverse[i] * inverse[j] * terms.start_scale[i, j]
            square += terms.strength * left * right
            total -= 0.5 * terms.initial_precision[i, j] * square
    return total


@jit
def slice_scales(key, direction, drop, terms, a):
    """Write to a the logarithms of factors after one slice update along a unit vector (Neal 2003).

    The level is `drop`, an exponential variate, below the density at 0.
    """
    u, state = uniform(open_stream(key, np.int64(0)))
    at, level = (START, 0.0, 0.0, -WIDTH * u, -WIDTH * u + WIDTH), 0.0
    while at[0] != FOUND:
        for i in range(a.size):
            a[i] = at[2] * direction[i]
        density = scale_log_density(a, terms)
        if at[0] == START:
            level = density - drop
        at, state = look_next(at, density > level, WIDTH, state)

"""Scales of weights moved along with the weights, where a Gaussian stands in for the rows.

Weights w of a column have standard deviations s l_j times their own. A *stretch* multiplies l_j, or
s, and the weights that it scales by e^t; a *trade* multiplies s and divides every l_j. t is found
by a slice (Neal 2003) of the priors of log s and log l_j times the Gaussian's density, which is
quadratic in e^t: O(weights) for a column, whatever the number of rows.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from pgmult.compiled.jit import jit
from pgmult.compiled.streams import exponential, open_stream, uniform

_MOST = 0.5 * math.log(1e12)  # of the logarithm of a standard deviation
_WIDTH = 2.0  # of the first interval of slices


class Law(NamedTuple):
    """Half-t law of the common scale; whether every column has a half-Cauchy one, too."""

    scale: float
    dof: float
    is_local: bool


class Surrogate(NamedTuple):
    """A potential of blocks of weights, ``(num_blocks, n)``, in the rows' place."""

    gram: Any
    pull: Any


@jit
def _log_half_t(x, scale, dof):
    """Log density of the logarithm of a half-t variable, up to a constant."""
    if abs(x) > _MOST:
        return -math.inf
    return x - 0.5 * (dof + 1.0) * math.log1p(math.exp(2.0 * x) / (dof * scale * scale))


@jit
def _log_density(t, at, scale, dof, linear, square, others):
    """Of a move by t: a scale at `at`, weights along with it, and `others` against it."""
    r = math.exp(t) - 1.0
    value = _log_half_t(at + t, scale, dof) + r * (linear - 0.5 * r * square)
    for j in range(len(others)):
        value += _log_half_t(others[j] - t, 1.0, 1.0)
    return value


@jit
def _sliced(at, scale, dof, linear, square, others, state):
    """A slice of t from 0."""
    depth, state = exponential(state)
    level = _log_density(0.0, at, scale, dof, linear, square, others) - depth
    u, state = uniform(state)
    left = -_WIDTH * u
    right = left + _WIDTH
    while _log_density(left, at, scale, dof, linear, square, others) > level:
        left -= _WIDTH
    while _log_density(right, at, scale, dof, linear, square, others) > level:
        right += _WIDTH
    while True:
        u, state = uniform(state)
        t = left + (right - left) * u
        if t == 0.0 or _log_density(t, at, scale, dof, linear, square, others) > level:
            return t, state
        if t < 0.0:
            left = t
        else:
            right = t


@jit
def _along(gram, weights, rest, columns, num_columns, moved):
    """The Gaussian's slope and curvature along the weights of columns; the gram times them."""
    linear, square = 0.0, 0.0
    moved[:] = 0.0
    for b in range(weights.shape[0]):
        for first in range(0, weights.shape[1], num_columns):
            for j in columns:
                w = weights[b, first + j]
                linear += w * rest[b, first + j]
                for i in range(weights.shape[1]):
                    moved[b, i] += w * gram[b, first + j, i]
        for first in range(0, weights.shape[1], num_columns):
            for j in columns:
                square += weights[b, first + j] * moved[b, first + j]
    return linear, square


@jit
def stretch(surrogate, weights, columns, num_columns, law, log_common, log_local, key):
    """Stretch columns in turn, all of them, trade, and the same backwards; in place.

    `weights` are less their prior means, `columns` those that take part. A palindrome of slices is
    reversible, so that what the rows say beyond the Gaussian may refuse all of it at once. Returns
    the new `log_common` and how much the log of the Gaussian's density grew.
    """
    gram, pull = surrogate
    state, rest, gain = open_stream(key, 0), pull.copy(), 0.0
    moved, nothing = np.empty(weights.shape), np.empty(0)
    for b in range(weights.shape[0]):
        for i in range(weights.shape[1]):
            for j in range(weights.shape[1]):
                rest[b, i] -= gram[b, i, j] * weights[b, j]
    num = len(columns) if law.is_local else 0
    for turn in range(2 * num + 2):
        one = turn < num or turn > num + 1
        place = turn if turn < num else 2 * num + 1 - turn
        taken = columns[place : place + 1] if one else columns
        linear, square = _along(gram, weights, rest, taken, num_columns, moved)
        if one:
            t, state = _sliced(log_local[place], 1.0, 1.0, linear, square, nothing, state)
            log_local[place] += t
        else:
            t, state = _sliced(log_common, law.scale, law.dof, linear, square, nothing, state)
            log_common += t
        r = math.exp(t) - 1.0
        gain += r * (linear - 0.5 * r * square)
        for b in range(weights.shape[0]):
            for i in range(weights.shape[1]):
                rest[b, i] -= r * moved[b, i]
            for first in range(0, weights.shape[1], num_columns):
                for j in taken:
                    weights[b, first + j] *= r + 1.0
        if turn == num and law.is_local:
            t, state = _sliced(log_common, law.scale, law.dof, 0.0, 0.0, log_local, state)
            log_common += t
            log_local -= t
    return log_common, gain

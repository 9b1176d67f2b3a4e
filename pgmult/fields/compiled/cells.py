r"""Binomial counts whose log odds scatter around a level: distributions of both.

A cell has x successes of n trials and log odds psi ~ N(u, var) around its level u::

    p(psi | u, x)  prop. to  exp(x psi - n log(1 + e^psi) - (psi - u)^2 / (2 var))
    L(u)  =  integral of exp(x psi - n log(1 + e^psi)) N(psi | u, var) dpsi

The first is log-concave with a curvature of 1 / var at least, so that tangents bound it: draws are
exact (Devroye 1986, section VII.2.6). log L is concave, too, with a curvature between 0, where the
counts say nothing, and 1 / var. It is found around the mode by Gauss and Hermite's rule: of five
nodes where psi is well known, as the integrand's curvature hardly changes over a standard deviation
s (its k-th log derivative is at most s^(k - 2) in units of s), and else of thirteen. What is left
is below 2e-5 where var is 1 or less, and 4e-4 where it is 4. Cells of a row that have as many nodes
stand side by side in memory, and loops over them vectorise.
"""

import math

import numpy as np

from pgmult.compiled.jit import jit
from pgmult.compiled.streams import exponential, open_stream, uniform
from pgmult.compiled.vectors import exp_minus, log1p

_NEWTON = 10  # steps to a mode, at most
_MOST_STEP = 4.0
_SETTLED = 1e-3  # square of a step, in standard deviations, after which a row of modes will do
_SLACK = 0.1  # twice the log of a bound over the density at a mode
_HALVINGS = 100  # of an interval around a mode
_SHARP = 0.03  # variance of psi, up to which few nodes do
_TANGENT = 1.15  # where tangents touch, in standard deviations at the mode


def _nodes(count):
    """In standard deviations at the mode, and weights over the normal density there."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    return nodes, weights * np.exp(0.5 * nodes**2)


_FEW, _MANY = _nodes(5), _nodes(13)


@jit
def _find_modes(x, n, u, var, mode, precision):
    """Modes of the psi of a row, and the negative curvatures there."""
    inverse = 1.0 / var
    for c in range(x.shape[0]):
        share = (x[c] + 0.5) / (n[c] + 1.0)
        gain = n[c] * share * (1.0 - share)
        mode[c] = (gain * math.log(share / (1.0 - share)) + inverse * u[c]) / (gain + inverse)
    for _ in range(_NEWTON):
        largest = 0.0
        for c in range(x.shape[0]):
            psi = mode[c]
            tail = exp_minus(abs(psi))
            small = tail / (1.0 + tail)
            share = small if psi < 0.0 else 1.0 - small
            curvature = n[c] * small * (1.0 - small) + inverse
            step = (x[c] - n[c] * share - inverse * (psi - u[c])) / curvature
            precision[c] = curvature
            mode[c] = psi + min(max(step, -_MOST_STEP), _MOST_STEP)
            largest = max(largest, step * step * curvature)
        if largest < _SETTLED:
            break


@jit
def slope_rows(worker, start, stop, x, n, u, var, slopes, curvatures):
    """Slopes of log L at levels u, and negative curvatures; arrays are ``(num_rows, num_cells)``.

    Both are those of psi's distribution expanded around its mode: near enough to steer by.
    """
    mode, precision = np.empty((2, x.shape[1]))
    for row in range(start, stop):
        _find_modes(x[row], n[row], u[row], var, mode, precision)
        for c in range(x.shape[1]):
            tail = exp_minus(abs(mode[c]))
            small = tail / (1.0 + tail)
            gain = n[row, c] * small * (1.0 - small)
            bend = gain * (1.0 - 2.0 * small) * (1.0 if mode[c] < 0.0 else -1.0)
            mean = mode[c] - 0.5 * bend / (precision[c] * precision[c])
            slopes[row, c] = (mean - u[row, c]) / var
            curvatures[row, c] = gain / (precision[c] * var)


@jit
def _log_integrals(rule, some, x, n, u, var, mode, precision):
    """The sum of log L over some cells of a row, whose modes and curvatures are known."""
    nodes, weights = rule
    size, half = len(some), 0.5 / var
    a, b, level, top_at, sd, top, total = np.zeros((7, size))
    for c in range(size):
        cell = some[c]
        a[c], b[c], level[c], top_at[c] = x[cell], n[cell], u[cell], mode[cell]
        sd[c] = 1.0 / math.sqrt(precision[cell])
    for c in range(size):
        softplus = max(top_at[c], 0.0) + log1p(exp_minus(abs(top_at[c])))
        away = top_at[c] - level[c]
        top[c] = a[c] * top_at[c] - b[c] * softplus - half * away * away
    for i in range(len(nodes)):
        for c in range(size):
            psi = top_at[c] + nodes[i] * sd[c]
            softplus = max(psi, 0.0) + log1p(exp_minus(abs(psi)))
            away = psi - level[c]
            value = a[c] * psi - b[c] * softplus - half * away * away
            total[c] += weights[i] * exp_minus(top[c] - value)
    out = 0.0
    for c in range(size):
        out += top[c] + math.log(total[c] * sd[c] / math.sqrt(2.0 * math.pi * var))
    return out


@jit
def log_likelihood_rows(worker, start, stop, x, n, u, var, out):
    """Sums of log L over the cells of each row, ``(num_rows,)``; it is 0 without trials."""
    mode, precision = np.empty((2, x.shape[1]))
    for row in range(start, stop):
        cells = x[row], n[row], u[row], var, mode, precision
        _find_modes(*cells)
        sharp = _SHARP * precision >= 1.0
        out[row] = _log_integrals(_FEW, np.flatnonzero(sharp & (n[row] > 0.0)), *cells)
        out[row] += _log_integrals(_MANY, np.flatnonzero(~sharp & (n[row] > 0.0)), *cells)


@jit
def _log_density(psi, x, n, u, half):
    softplus = max(psi, 0.0) + math.log1p(math.exp(-abs(psi)))
    return x * psi - n * softplus - half * (psi - u) * (psi - u)


@jit
def _slope(psi, x, n, u, half):
    tail = math.exp(-abs(psi))
    share = (1.0 if psi > 0.0 else tail) / (1.0 + tail)
    return x - n * share - 2.0 * half * (psi - u)


@jit
def _bisected(x, n, u, half):
    """A mode that Newton's steps did not find."""
    left, right = u + (x - n) / (2.0 * half), u + x / (2.0 * half)
    for _ in range(_HALVINGS):
        middle = 0.5 * (left + right)
        if _slope(middle, x, n, u, half) > 0.0:
            left = middle
        else:
            right = middle
    return 0.5 * (left + right)


@jit
def draw_rows(worker, start, stop, key, x, n, u, var, psi):
    """An exact draw of psi in each cell, by rejection from tangents and a bound at the mode."""
    size = x.shape[1]
    mode, precision = np.empty((2, size))
    half = 0.5 / var
    for row in range(start, stop):
        state = open_stream(key, row)
        _find_modes(x[row], n[row], u[row], var, mode, precision)
        for c in range(size):
            a, b, level, m = x[row, c], n[row, c], u[row, c], mode[c]
            slope = _slope(m, a, b, level, half)
            if var * slope * slope > _SLACK:
                m = _bisected(a, b, level, half)
                slope = _slope(m, a, b, level, half)
            # where the curvature is 1 / var or more, no value is above that at m by more than this
            top = _log_density(m, a, b, level, half) + 0.5 * var * slope * slope
            width = _TANGENT / math.sqrt(precision[c])
            left, right = m - width, m + width
            rise, fall = _slope(left, a, b, level, half), _slope(right, a, b, level, half)
            while rise <= 0.0:
                left -= width
                rise = _slope(left, a, b, level, half)
            while fall >= 0.0:
                right += width
                fall = _slope(right, a, b, level, half)
            left += (top - _log_density(left, a, b, level, half)) / rise
            right += (top - _log_density(right, a, b, level, half)) / fall
            middle, below, above = max(right - left, 0.0), 1.0 / rise, -1.0 / fall
            while True:
                choice, state = uniform(state)
                choice *= middle + below + above
                far, state = exponential(state)
                if choice < middle:
                    value, bound = left + choice, top
                elif choice < middle + below:
                    value, bound = left - below * far, top - far
                else:
                    value, bound = right + above * far, top - far
                spare, state = exponential(state)
                if not _log_density(value, a, b, level, half) < bound - spare:
                    break  # a nan, too, which the moves that follow refuse
            psi[row, c] = value

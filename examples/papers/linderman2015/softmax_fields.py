"""Functions under the softmax, one whole function at a time along an ellipse, in O(n) a try.

The likelihood of function k given the others needs of them only the logarithm of the sum of their
exponentials at each input. The sums of all functions are kept, so a new value of one function costs
one exponential and one logarithm an input, whatever the number of functions.
"""

import math

import numpy as np

from pgmult.compiled.ellipse import open_bracket, shrink_bracket
from pgmult.compiled.jit import jit
from pgmult.compiled.streams import exponential, open_stream

_TRUSTED = 1e100  # sums of exponentials beyond it, or below its inverse, are taken again
_CANCELLED = 1e-3  # what is left of a sum without one term, below which it is taken again


@jit
def _sum_row(deviation, mean, m, without, shift, total):
    """Set ``total[m]`` = sum over functions but `without` of exp(psi - shift), of largest term 1.

    `without` is -1 to leave none out.
    """
    largest = -math.inf
    for k in range(deviation.shape[0]):
        if k != without:
            largest = max(largest, mean[k] + deviation[k, m])
    total[m] = 0.0
    for k in range(deviation.shape[0]):
        if k != without:
            total[m] += math.exp(mean[k] + deviation[k, m] - largest)
    shift[m] = largest


@jit(within=True)
def log_softplus(x):
    """log(1 + exp(x))."""
    if x > 0.0:
        return x + math.log1p(math.exp(-x))
    return math.log1p(math.exp(x))


@jit
def _log_likelihood(x, across, cos, sin, offset, counts, totals):
    """Log likelihood of the function x cos + across sin, less its value where psi_k = -inf."""
    value = 0.0
    for m in range(totals.shape[0]):
        if totals[m] > 0.0:
            logit = offset[m] + x[m] * cos + across[m] * sin
            value += counts[m] * logit - totals[m] * log_softplus(logit)
    return value


@jit
def rotate_functions(key, counts, totals, mean, restarts, deviation, across):
    """Elliptical slice updates of every function in turn, given the others; in place.

    Function k is psi_k = mean_k + deviation_k, and deviation_k and across_j, all j and k, are
    independent draws of one Gaussian process before the counts are seen. Function k and a partner
    across_j are rotated *together*,

        deviation_k <- deviation_k cos + across_j sin
        across_j    <- across_j cos - deviation_k sin

    which leaves their joint law invariant; so the partners may be used again, another one for each
    function at each restart, j = k + restart.

    Parameters
    ----------
    counts : float64, ``(num_functions, n)``
    totals : float64, ``(n,)``
    mean : float64, ``(num_functions,)``
    restarts : int
        Updates of each function.
    deviation, across : float64, ``(num_functions, n or more)``, changed
        What comes after the first n is rotated along: linear functions of the deviation that the
        counts do not see.

    Returns
    -------
    int
        0, or 1 + the function whose likelihood is not finite.
    """
    num_functions, n = counts.shape
    shift, total, offset = np.empty(n), np.empty(n), np.empty(n)
    for m in range(n):
        _sum_row(deviation, mean, m, -1, shift, total)
    for update in range(restarts * num_functions):
        restart, k = update // num_functions, update % num_functions
        state = open_stream(key, update)
        x, partner = deviation[k], across[(k + restart) % num_functions]
        for m in range(n):
            others = total[m] - math.exp(mean[k] + x[m] - shift[m])
            if others < _CANCELLED * total[m] or not 1.0 / _TRUSTED < total[m] < _TRUSTED:
                _sum_row(deviation, mean, m, k, shift, total)
                others = total[m]
            total[m] = others
            offset[m] = mean[k] - shift[m] - math.log(others)
        level = _log_likelihood(x, partner, 1.0, 0.0, offset, counts[k], totals)
        if not math.isfinite(level):
            return 1 + k
        e, state = exponential(state)
        level -= e
        angle, left, right, state = open_bracket(state)
        cos, sin = math.cos(angle), math.sin(angle)
        # at angle 0 the level is met
        while not _log_likelihood(x, partner, cos, sin, offset, counts[k], totals) >= level:
            angle, left, right, state = shrink_bracket(angle, left, right, state)
            cos, sin = math.cos(angle), math.sin(angle)
        for m in range(n):
            before = x[m]
            x[m] = before * cos + partner[m] * sin
            partner[m] = partner[m] * cos - before * sin
            total[m] += math.exp(mean[k] + x[m] - shift[m])
        for m in range(n, x.shape[0]):
            before = x[m]
            x[m] = before * cos + partner[m] * sin
            partner[m] = partner[m] * cos - before * sin
    return 0


@jit(reassociate=True)
def smooth_columns(worker, start, stop, design, root, y, out):
    """Row kernel: row k of `out` is the ridge estimate design' (root root')^-1 y_k.

    Parameters
    ----------
    design : ``(num_rows, n)``
    root : ``(num_rows, num_rows)``
        Lower triangular root of design design' plus the noise.
    y : ``(num_functions, num_rows)``
    out : ``(num_functions, n)``
    """
    num_rows = root.shape[0]
    work = np.empty(num_rows)
    for k in range(start, stop):
        for i in range(num_rows):
            value = y[k, i]
            for j in range(i):
                value -= root[i, j] * work[j]
            work[i] = value / root[i, i]
        out[k] = 0.0
        for i in range(num_rows - 1, -1, -1):
            weight = work[i] / root[i, i]
            for j in range(i):
                work[j] -= root[i, j] * weight
            for j in range(out.shape[1]):
                out[k, j] += design[i, j] * weight

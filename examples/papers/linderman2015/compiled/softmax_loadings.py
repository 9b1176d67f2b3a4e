"""Rows of a softmax regression one after the other, each by a slice around its own mode.

Row k, given the others, sees a logistic regression in psi_tk - zeta_tk, zeta_tk the logarithm of
the sum of the exponentials of the other rows. Its log-concave posterior is close to Gaussian: the
Gaussian at its mode, a little widened, is the base of an elliptical slice update (Murray, Adams and
MacKay 2010; Nishihara, Murray and Adams 2014 for a base that is not the prior) of what remains,
posterior over base. Mode and base are functions of the other rows and of the counts, never of where
the row is, so the update is exact; and it is nearly a draw.

Sums of exponentials are never subtracted: those of rows not yet moved are summed from the far end
beforehand, by blocks, and those of rows that have moved are added up on the way. Points t stand
side by side: ``regressors[p, t]``.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgmult.compiled.ellipse import open_bracket, shrink_bracket
from pgmult.compiled.jit import jit
from pgmult.compiled.linalg import cholesky, solve_lower, solve_lower_transpose_by_rows
from pgmult.compiled.streams import exponential, normal, open_stream
from pgmult.compiled.vectors import FACTORS, combine, dot, exp_minus, multiply_softplus

_BLOCK = 32
_LANES = 64
_WIDEN = 1.05  # of the base's standard deviations: its tails should not be the lighter ones
_NEWTON_STEPS = 30
_SMALL_DECREMENT = 0.02  # in units of log density
_LEAST = 1e-290  # a share of all other rows together, below which it makes no difference
_Floats = NDArray[np.float64]


@jit(reassociate=True)
def weighted_dot(weight, a, b):
    """Sum of the products of three vectors."""
    total = 0.0
    for j in range(weight.shape[0]):
        total += weight[j] * a[j] * b[j]
    return total


class _Problem(NamedTuple):
    """The logistic regression of one row given the others, and room to work in.

    ``single`` says that all totals are 1.
    """

    pull: _Floats
    precision: _Floats
    regressors: _Floats
    zeta: _Floats
    totals: _Floats
    single: bool
    psi: _Floats
    weight: _Floats
    product: _Floats
    linear: _Floats


@jit(within=True)
def _sum_of_softplus(psi, totals, single, product, linear):
    """Sum over t of totals[t] log(1 + exp(psi[t])); `single` says that all totals are 1."""
    size = psi.shape[0]
    total = 0.0
    if not single:
        for t in range(size):
            total += totals[t] * (max(psi[t], 0.0) + math.log1p(exp_minus(abs(psi[t]))))
        return total
    product[:] = 1.0
    linear[:] = 0.0
    factors = 0
    for first in range(0, size, _LANES):
        width = min(_LANES, size - first)
        multiply_softplus(psi[first : first + width], product[:width], linear[:width])
        factors += 1
        if factors == FACTORS or first + width == size:
            for i in range(_LANES):
                total += linear[i] + math.log(product[i])
                linear[i] = 0.0
                product[i] = 1.0
            factors = 0
    return total


@jit
def _log_posterior(row, problem):
    """Log likelihood of a row's counts plus its log prior; leaves psi - zeta in `psi`."""
    psi, pull, precision = problem.psi, problem.pull, problem.precision
    combine(row, 0.0, problem.regressors, psi)
    for t in range(psi.shape[0]):
        psi[t] -= problem.zeta[t]
    value = -_sum_of_softplus(psi, problem.totals, problem.single, problem.product, problem.linear)
    for p in range(row.shape[0]):
        value += row[p] * (pull[p] - 0.5 * precision[p] * row[p])
    return value


@jit(within=True)
def _slope_and_curvature(row, problem, slope, curvature):
    """First derivatives of the log posterior, and minus the second ones; from psi - zeta."""
    pull, precision, regressors, _, totals, _, psi, weight, _, _ = problem
    for t in range(psi.shape[0]):
        small = exp_minus(abs(psi[t]))
        inverse = 1.0 / (1.0 + small)
        share = inverse if psi[t] >= 0.0 else small * inverse
        psi[t] = totals[t] * share
        weight[t] = totals[t] * small * inverse * inverse
    for p in range(row.shape[0]):
        slope[p] = pull[p] - precision[p] * row[p] - dot(regressors[p], psi)
        for q in range(p + 1):
            curvature[p, q] = weighted_dot(weight, regressors[p], regressors[q])
        curvature[p, p] += precision[p]


@jit(within=True)
def _find_mode(centre, start, problem, root):
    """Newton from `start`: fills `centre` and the Cholesky factor of the curvature there."""
    x, best, step = start.copy(), start.copy(), np.empty(start.size)
    highest = -math.inf
    for _ in range(_NEWTON_STEPS):
        value = _log_posterior(x, problem)
        if not value >= highest:
            for p in range(x.size):
                x[p] = 0.5 * (x[p] + best[p])
            continue
        highest = value
        _slope_and_curvature(x, problem, step, root)
        if cholesky(root):
            return False
        solve_lower(root, step)
        decrement = 0.0
        for p in range(x.size):
            decrement += step[p] * step[p]
        solve_lower_transpose_by_rows(root, step)
        for p in range(x.size):
            best[p] = x[p]
            x[p] += step[p]
            centre[p] = x[p]
        if decrement < _SMALL_DECREMENT:
            break
    return True


@jit
def _base_log_density(row, centre, root):
    """Of the widened Gaussian at the mode, up to a constant."""
    size = row.shape[0]
    total = 0.0
    for p in range(size):
        scaled = 0.0
        for q in range(p, size):
            scaled += root[q, p] * (row[q] - centre[q])
        total += scaled * scaled
    return -0.5 * total / (_WIDEN * _WIDEN)


@jit(within=True)
def _slice_row(row, problem, centre, root, state):
    """One slice update of a row in place; how many points were tried, 0 if it is not finite."""
    size = row.shape[0]
    across, here, point = np.empty(size), np.empty(size), np.empty(size)
    for p in range(size):
        across[p], state = normal(state)
    solve_lower_transpose_by_rows(root, across)
    for p in range(size):
        across[p] *= _WIDEN
        here[p] = row[p] - centre[p]
    level = _log_posterior(row, problem) - _base_log_density(row, centre, root)
    if not math.isfinite(level):
        return 0
    drop, state = exponential(state)
    level -= drop
    angle, left, right, state = open_bracket(state)
    tries = 0
    while True:
        tries += 1
        for p in range(size):
            point[p] = centre[p] + here[p] * math.cos(angle) + across[p] * math.sin(angle)
        if _log_posterior(point, problem) - _base_log_density(point, centre, root) >= level:
            row[:] = point
            return tries
        angle, left, right, state = shrink_bracket(angle, left, right, state)
        if angle == 0.0:  # the bracket has shrunk to where the row is
            return tries


@jit
def _add_exponentials(rows, regressors, reference, psi, out):
    """Add the exponentials of rows, over the reference, to `out`."""
    for k in range(rows.shape[0]):
        combine(rows[k], 0.0, regressors, psi)
        for t in range(psi.shape[0]):
            out[t] += exp_minus(reference[t] - psi[t])


@jit
def sample_rows(key, regressors, totals, pulls, hits, precision, rows):
    """Update every row of `rows`, (num_rows, P), in place, in turn.

    Points t = 0, ..., T - 1 have `totals` > 0 trials; row k has ``hits[k]`` of all of them, and
    ``pulls[k] = sum_t counts[t, k] regressors[:, t]``. The last regressor is the constant 1. The
    prior of coordinate p is N(0, 1 / precision[p]). O(T P^2) a row.

    Returns the number of points tried, or -1 - k if row k does not stay finite.
    """
    num_rows, width = rows.shape
    size = totals.shape[0]
    single = True
    trials = 0.0
    for t in range(size):
        single = single and totals[t] == 1.0
        trials += totals[t]
    num_blocks = (num_rows + _BLOCK - 1) // _BLOCK
    after_blocks = np.zeros((num_blocks + 1, size))
    after = np.empty((_BLOCK + 1, size))
    before, zeta = np.zeros(size), np.empty(size)
    psi, weight = np.empty(size), np.empty(size)
    reference = np.full(size, -math.inf)
    product, linear = np.ones(_LANES), np.zeros(_LANES)
    for k in range(num_rows):
        combine(rows[k], 0.0, regressors, psi)
        for t in range(size):
            reference[t] = max(reference[t], psi[t])
    for b in range(num_blocks - 1, -1, -1):
        after_blocks[b] = after_blocks[b + 1]
        block = rows[b * _BLOCK : (b + 1) * _BLOCK]
        _add_exponentials(block, regressors, reference, psi, after_blocks[b])
    root, start, centre = np.zeros((width, width)), np.zeros(width), np.empty(width)
    tries = 0
    for b in range(num_blocks):
        block = rows[b * _BLOCK : (b + 1) * _BLOCK]
        after[block.shape[0]] = after_blocks[b + 1]
        for r in range(block.shape[0] - 1, -1, -1):
            after[r] = after[r + 1]
            _add_exponentials(block[r : r + 1], regressors, reference, psi, after[r])
        for r in range(block.shape[0]):
            k = b * _BLOCK + r
            average = 0.0
            for t in range(size):
                zeta[t] = reference[t] + math.log(max(before[t] + after[r + 1, t], _LEAST))
                average += totals[t] * zeta[t]
            start[width - 1] = 0.0
            if size > 0:
                odds = (hits[k] + 0.5) / (trials - hits[k] + 0.5)
                start[width - 1] = average / trials + math.log(odds)
            problem = _Problem(
                pulls[k], precision, regressors, zeta, totals, single, psi, weight, product, linear
            )
            if not _find_mode(centre, start, problem, root):
                return -1 - k
            tried = _slice_row(rows[k], problem, centre, root, open_stream(key, k))
            if tried == 0:
                return -1 - k
            tries += tried
            _add_exponentials(rows[k : k + 1], regressors, reference, psi, before)
    return tries

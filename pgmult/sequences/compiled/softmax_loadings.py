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

import numpy as np

from pgmult.compiled.ellipse import open_bracket, shrink_bracket
from pgmult.compiled.jit import jit
from pgmult.compiled.linalg import cholesky
from pgmult.compiled.streams import exponential, normal, open_stream
from pgmult.compiled.vectors import FACTORS, combine, dot, exp_minus, multiply_softplus

_BLOCK = 32
_LANES = 64
_WIDEN = 1.05  # of the base's standard deviations: its tails should not be the lighter ones
_NEWTON_STEPS = 30
_SMALL_DECREMENT = 0.02  # in units of log density
_LEAST = 1e-290  # a share of all other rows together, below which it makes no difference


@jit
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
def _log_posterior(row, pull, precision, regressors, zeta, totals, single, psi, product, linear):
    """Log likelihood of a row's counts plus its log prior; leaves psi - zeta in `psi`."""
    combine(row, 0.0, regressors, psi)
    for t in range(psi.shape[0]):
        psi[t] -= zeta[t]
    value = -_sum_of_softplus(psi, totals, single, product, linear)
    for p in range(row.shape[0]):
        value += row[p] * (pull[p] - 0.5 * precision[p] * row[p])
    return value


@jit
def _slope_and_curvature(row, pull, precision, regressors, totals, psi, weight, slope, curvature):
    """First derivatives of the log posterior, and minus the second ones; from psi - zeta."""
    size = psi.shape[0]
    for t in range(size):
        small = exp_minus(abs(psi[t]))
        inverse = 1.0 / (1.0 + small)
        share = inverse if psi[t] >= 0.0 else small * inverse
        psi[t] = totals[t] * share
        weight[t] = totals[t] * small * inverse * inverse
    for p in range(row.shape[0]):
        slope[p] = pull[p] - precision[p] * row[p] - dot(regressors[p], psi)
        for q in range(p + 1):
            curvature[p, q] = _weighted(weight, regressors[p], regressors[q])
        curvature[p, p] += precision[p]


@jit(reassociate=True)
def _weighted(weight, a, b):
    total = 0.0
    for t in range(weight.shape[0]):
        total += weight[t] * a[t] * b[t]
    return total


@jit
def _find_mode(
    centre, start, pull, precision, regressors, zeta, totals, single, psi, weight, product, linear,
    root,
):  # fmt: skip
    """Newton from `start`: fills `centre` and the Cholesky factor of the curvature there."""
    size = start.shape[0]
    x, best, step = start.copy(), start.copy(), np.zeros(size)
    slope = np.empty(size)
    highest = -math.inf
    for _ in range(_NEWTON_STEPS):
        value = _log_posterior(
            x, pull, precision, regressors, zeta, totals, single, psi, product, linear
        )
        if not value >= highest:
            for p in range(size):
                x[p] = 0.5 * (x[p] + best[p])
            continue
        highest = value
        _slope_and_curvature(x, pull, precision, regressors, totals, psi, weight, slope, root)
        if cholesky(root):
            return False
        decrement = 0.0
        for p in range(size):  # forwards
            total = slope[p]
            for q in range(p):
                total -= root[p, q] * step[q]
            step[p] = total / root[p, p]
            decrement += step[p] * step[p]
        for p in range(size - 1, -1, -1):
            total = step[p]
            for q in range(p + 1, size):
                total -= root[q, p] * step[q]
            step[p] = total / root[p, p]
        for p in range(size):
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
        for k in range(b * _BLOCK, min((b + 1) * _BLOCK, num_rows)):
            combine(rows[k], 0.0, regressors, psi)
            for t in range(size):
                after_blocks[b, t] += exp_minus(reference[t] - psi[t])
    root, start, centre = np.zeros((width, width)), np.zeros(width), np.empty(width)
    across, here, point = np.empty(width), np.empty(width), np.empty(width)
    tries = 0
    for b in range(num_blocks):
        block = min(_BLOCK, num_rows - b * _BLOCK)
        after[block] = after_blocks[b + 1]
        for r in range(block - 1, -1, -1):
            combine(rows[b * _BLOCK + r], 0.0, regressors, psi)
            for t in range(size):
                after[r, t] = after[r + 1, t] + exp_minus(reference[t] - psi[t])
        for r in range(block):
            k = b * _BLOCK + r
            state = open_stream(key, k)
            average = 0.0
            for t in range(size):
                zeta[t] = reference[t] + math.log(max(before[t] + after[r + 1, t], _LEAST))
                average += totals[t] * zeta[t]
            start[width - 1] = 0.0
            if size > 0:
                odds = (hits[k] + 0.5) / (trials - hits[k] + 0.5)
                start[width - 1] = average / trials + math.log(odds)
            found = _find_mode(
                centre, start, pulls[k], precision, regressors, zeta, totals, single, psi, weight,
                product, linear, root,
            )  # fmt: skip
            if not found:
                return -1 - k
            for p in range(width):
                across[p], state = normal(state)
            for p in range(width - 1, -1, -1):
                for q in range(p + 1, width):
                    across[p] -= root[q, p] * across[q]
                across[p] /= root[p, p]
            for p in range(width):
                across[p] *= _WIDEN
                here[p] = rows[k, p] - centre[p]
            level = _log_posterior(
                rows[k], pulls[k], precision, regressors, zeta, totals, single, psi, product,
                linear,
            ) - _base_log_density(rows[k], centre, root)  # fmt: skip
            if not math.isfinite(level):
                return -1 - k
            e, state = exponential(state)
            level -= e
            angle, left, right, state = open_bracket(state)
            while True:
                tries += 1
                for p in range(width):
                    point[p] = centre[p] + here[p] * math.cos(angle) + across[p] * math.sin(angle)
                value = _log_posterior(
                    point, pulls[k], precision, regressors, zeta, totals, single, psi, product,
                    linear,
                ) - _base_log_density(point, centre, root)  # fmt: skip
                if value >= level:
                    rows[k] = point
                    break
                angle, left, right, state = shrink_bracket(angle, left, right, state)
                if angle == 0.0:  # the bracket has shrunk to where the row is
                    break
            combine(rows[k], 0.0, regressors, psi)
            for t in range(size):
                before[t] += exp_minus(reference[t] - psi[t])
    return tries

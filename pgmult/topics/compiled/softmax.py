"""Gaussian rows under the softmax, one coordinate at a time, a whole row in one pass."""

import math

import numpy as np

from pgmult.compiled.jit import jit
from pgmult.compiled.linalg import cholesky, invert_lower
from pgmult.compiled.polya_gamma import draw
from pgmult.compiled.streams import normal, open_stream

_TRUSTED = 1e250  # sums of exponentials beyond it, or below its inverse, are taken again in logs


@jit
def _log_sum_of_others(psi, k):
    """Logarithm of the sum of exp(psi_j) over j != k."""
    largest = -math.inf
    for j in range(psi.shape[0]):
        if j != k:
            largest = max(largest, psi[j])
    total = 0.0
    for j in range(psi.shape[0]):
        if j != k:
            total += math.exp(psi[j] - largest)
    return largest + math.log(total)


@jit
def _mean_of_one(c):
    """The mean of PG(1, c)."""
    if abs(c) < 1e-4:
        return 0.25 - c * c / 48.0
    return math.tanh(0.5 * c) / (2.0 * c)


@jit
def _draw_omega(total, tilt, most_trials, state):
    """PG(total, tilt), from at most `most_trials` trials and moved to its mean and variance."""
    if total <= most_trials:
        return draw(np.float64(total), tilt, state)
    trials = np.float64(most_trials)
    omega, state = draw(trials, tilt, state)
    one = _mean_of_one(tilt)
    return total * one + math.sqrt(total / trials) * (omega - trials * one), state


@jit
def sample_rows(worker, start, stop, key, counts, mean, cov, most_trials, psi, out):
    """One single-site sweep of rows psi ~ N(mean, cov) with counts ~ Multinomial(softmax).

    Coordinate k, given the others, has the prior precision P_kk, the prior mean
    psi_k - [P (psi - mean)]_k / P_kk and, given omega ~ PG(N, psi_k - zeta_k), the potential
    J = omega, h = x_k - N / 2 + omega zeta_k. The vector P (psi - mean) follows each coordinate by
    one row of P. zeta_k is the logarithm of the sum of the exponentials after k, summed from the
    far end beforehand, and of those before it, added up on the way: nothing is ever subtracted.
    At the end the whole row moves along 1, where the likelihood is constant, by an exact draw.

    `most_trials` is the largest N whose omega is drawn as it is: see `_draw_omega`. O(K^2) a row.
    Returns 0, or 1 + a row that did not stay finite, or -1 if cov is singular.
    """
    size = psi.shape[1]
    root = cov.copy()
    if cholesky(root):
        return -1
    inverse_root = invert_lower(root)
    precision = np.zeros((size, size))
    for k in range(size):
        for i in range(k + 1):
            for j in range(k + 1):
                precision[i, j] += inverse_root[k, i] * inverse_root[k, j]
    along_ones = 0.0
    for i in range(size):
        for j in range(size):
            along_ones += precision[i, j]
    pull = np.empty(size)
    after = np.zeros(size + 1)
    for row in range(start, stop):
        state = open_stream(key, row)
        x = out[row]
        total = 0
        largest = -math.inf
        for k in range(size):
            x[k] = psi[row, k]
            total += counts[row, k]
            largest = max(largest, x[k])
            pull[k] = 0.0
        for k in range(size - 1, -1, -1):
            after[k] = after[k + 1] + math.exp(x[k] - largest)
            deviation = x[k] - mean[k]
            for j in range(size):
                pull[j] += precision[k, j] * deviation
        before = 0.0
        for k in range(size):
            others = before + after[k + 1]
            if 1.0 / _TRUSTED < others < _TRUSTED:
                zeta = largest + math.log(others)
            else:
                zeta = _log_sum_of_others(x, k)
            omega, state = _draw_omega(total, x[k] - zeta, most_trials, state)
            linear = precision[k, k] * x[k] - pull[k] + counts[row, k] - 0.5 * total + omega * zeta
            posterior_precision = precision[k, k] + omega
            noise, state = normal(state)
            value = linear / posterior_precision + noise / math.sqrt(posterior_precision)
            change = value - x[k]
            x[k] = value
            for j in range(size):
                pull[j] += precision[k, j] * change
            before += math.exp(value - largest)
        total_pull = 0.0
        for k in range(size):
            total_pull += pull[k]
        noise, state = normal(state)
        shift = noise / math.sqrt(along_ones) - total_pull / along_ones
        for k in range(size):
            x[k] += shift
            if not math.isfinite(x[k]):
                return 1 + row
    return 0

"""Gaussian chains of vectors with a potential at every step: filter and normaliser.

Sequence s is the steps t = offsets[s], ..., offsets[s+1] - 1. Before its potential a step's law is

    N(mean, P),    P = initial_cov at the first step,  P = A F A' + Q after filtered covariance F,

and the potential exp(-x' J x / 2 + h' x) turns it into N(mean + F (h - J mean), F). With
P = L L' and I + L' J L = R R'

    F = (P^-1 + J)^-1 = S S',    S = L R^-T,    det(I + P J) = det(R)^2.

Only positive semi-definite terms are ever added, whatever the rank of J: nothing is subtracted, no
covariance can lose its symmetry or sign over any number of steps, and J = 0 needs no special case
(square roots: Bierman 1977, Factorization Methods for Discrete Sequential Estimation).
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgmult.compiled.jit import jit
from pgmult.compiled.linalg import cholesky, solve_lower, solve_lower_transpose
from pgmult.compiled.vectors import dot

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]


class Law(NamedTuple):
    """Linear dynamics and a potential, as `pgmult.sequences.priors.dynamics` describes them."""

    offsets: _Ints
    transition: _Floats
    noise_cov: _Floats
    initial_mean: _Floats
    initial_cov: _Floats
    drive: _Floats
    J: _Floats
    h: _Floats


class Filtered(NamedTuple):
    """Filtered means and the factors L and R of every step; log normaliser of every sequence."""

    means: _Floats
    prior_roots: _Floats
    gain_roots: _Floats
    log_z: _Floats


@jit
def _lower_times(root, x, out):
    """Write L x to `out`."""
    n = x.shape[0]
    for i in range(n):
        total = 0.0
        for j in range(i + 1):
            total += root[i, j] * x[j]
        out[i] = total


@jit
def _lower_transpose_times(root, x, out):
    """Write L' x to `out`, which must not be `x`."""
    n = x.shape[0]
    out[:] = 0.0
    for i in range(n):
        for j in range(i + 1):
            out[j] += root[i, j] * x[i]


@jit
def _spread(prior_root, gain_root, u, out):
    """Write S u to `out`, S = L R^-T; u is overwritten."""
    solve_lower_transpose(gain_root, u)
    _lower_times(prior_root, u, out)


@jit(inline=True)
def _predict(law, t, filtered, propagated, mean, cov):
    """Write the mean and, to its lower triangle, the covariance of step t given those before it."""
    means, prior_roots, gain_roots, _ = filtered
    n = mean.size
    for i in range(n):  # A S, S = L R^-T, row by row
        row = propagated[i]
        row[:] = 0.0
        mean[i] = law.drive[t, i]
        for k in range(n):
            scale = law.transition[i, k]
            mean[i] += scale * means[t - 1, k]
            for j in range(k + 1):
                row[j] += scale * prior_roots[t - 1, k, j]
        solve_lower(gain_roots[t - 1], row)
    for i in range(n):
        for j in range(i + 1):
            x = law.noise_cov[i, j]
            for k in range(n):
                x += propagated[i, k] * propagated[j, k]
            cov[i, j] = x


@jit(inline=True)
def _factor_gain(J, root, gain, JL):
    """Write R, R R' = I + L' J L, to `gain`; 0 unless it is not positive definite."""
    n = root.shape[0]
    for i in range(n):
        row = JL[i]
        row[:] = 0.0
        for k in range(n):
            scale = J[i, k]
            for j in range(k + 1):
                row[j] += scale * root[k, j]
    for i in range(n):
        for j in range(i + 1):
            x = 1.0 if i == j else 0.0
            for k in range(i, n):
                x += root[k, i] * JL[k, j]
            gain[i, j] = x
    return cholesky(gain)


@jit
def filter_chains(worker, start, stop, law, filtered):
    """Fill `filtered` for a piece's sequences. 0, or 1 + a step at which there is no Gaussian."""
    offsets, _, _, initial_mean, initial_cov, drive, J, h = law
    means, prior_roots, gain_roots, log_z = filtered
    n = h.shape[1]
    propagated, JL = np.empty((n, n)), np.empty((n, n))
    mean, linear, half = np.empty(n), np.empty(n), np.empty(n)
    for s in range(start, stop):
        total = 0.0
        first = offsets[s]
        for t in range(first, offsets[s + 1]):
            root, gain = prior_roots[t], gain_roots[t]
            if t == first:
                for i in range(n):
                    mean[i] = initial_mean[i] + drive[t, i]
                    for j in range(i + 1):
                        root[i, j] = initial_cov[i, j]
            else:
                _predict(law, t, filtered, propagated, mean, root)
            for i in range(n):
                if not (math.isfinite(mean[i]) and math.isfinite(root[i, i])):
                    return 1 + t
            if cholesky(root) > 0 or _factor_gain(J[t], root, gain, JL) > 0:
                return 1 + t
            for i in range(n):
                pull = 0.0
                for k in range(n):
                    pull += J[t, i, k] * mean[k]
                linear[i] = h[t, i] - pull
                total += mean[i] * (h[t, i] - 0.5 * pull)
                total -= math.log(gain[i, i])
            _lower_transpose_times(root, linear, half)
            solve_lower(gain, half)
            for i in range(n):
                total += 0.5 * half[i] * half[i]
            _spread(root, gain, half, linear)
            for i in range(n):
                means[t, i] = mean[i] + linear[i]
            if not math.isfinite(total):
                return 1 + t
        log_z[s] = total
    return 0


@jit
def filtered_covs(worker, start, stop, filtered, covs):
    """F = S S', S = L R^-T, of a piece's steps: each row s of S solves R s = row of L."""
    n = covs.shape[1]
    root = np.empty((n, n))
    for t in range(start, stop):
        for i in range(n):
            for j in range(n):
                root[i, j] = filtered.prior_roots[t, i, j] if j <= i else 0.0
            solve_lower(filtered.gain_roots[t], root[i])
        for i in range(n):
            for j in range(i + 1):
                covs[t, i, j] = dot(root[i], root[j])
                covs[t, j, i] = covs[t, i, j]

"""Pieces of Hamiltonian paths of dynamics and weights, the states integrated out.

Given omega everything that the states touch is Gaussian: their joint precision is block
tridiagonal, and with the weights W and the coefficients B = (A, W_u) as arguments its normaliser

    log Z(B, W)  =  log integral p(x | B) exp(-x_t' J_t x_t / 2 + h_t' x_t) dx

comes from one block elimination. Its gradient is that of the *complete* log density, expected under
the states' posterior (Fisher's identity): the moments E x_t, Cov x_t and Cov(x_t, x_t-1), which one
pass backwards gives. `pgmult.sequences.updates.collapsed` strings the pieces together: a kernel
that called them all would compile each again.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgmult.compiled.jit import jit
from pgmult.compiled.linalg import (
    cholesky,
    product,
    solve_lower,
    solve_lower_transpose,
    solve_with_root,
)

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]


class Chain(NamedTuple):
    """A block of sequences of states, but for the dynamics.

    ``inputs`` ``(num_steps, U)`` drive all but first steps, where they are zero; J and h are the
    steps' potentials. ``precision`` is Q^-1, and the law of first states has the precision and
    linear term that are called initial.
    """

    offsets: _Ints
    inputs: _Floats
    J: _Floats
    h: _Floats
    precision: _Floats
    initial_precision: _Floats
    initial_linear: _Floats


class Moments(NamedTuple):
    """What `smooth` writes.

    ``roots`` of the eliminated blocks, E x_t, Cov x_t, and sums of E x_t z_t' (``following``) and
    E z_t z_t' (``squares``), z_t = (x_t-1, u_t), over the steps with a predecessor.
    """

    roots: _Floats
    means: _Floats
    covs: _Floats
    following: _Floats
    squares: _Floats


class Prior(NamedTuple):
    """Of B, matrix normal given Q, and of W, Gaussian with a diagonal covariance."""

    mean: _Floats
    row_precision: _Floats
    weight_mean: _Floats
    weight_precision: _Floats


@jit(reassociate=True)
def _couplings(precision, dynamics):
    """A' Q^-1 A, A' Q^-1 and Q^-1 W_u."""
    D = precision.shape[0]
    U = dynamics.shape[1] - D
    coupling, push, pull = np.zeros((D, D)), np.zeros((D, D)), np.zeros((D, U))
    for i in range(D):
        for k in range(D):
            for j in range(D):
                coupling[i, j] += precision[i, k] * dynamics[k, j]
            for j in range(U):
                pull[i, j] += precision[i, k] * dynamics[k, D + j]
    for k in range(D):
        for i in range(D):
            for j in range(D):
                push[i, j] += dynamics[k, i] * coupling[k, j]
    pulled = np.empty((D, D))
    for i in range(D):
        for j in range(D):
            pulled[i, j] = coupling[j, i]
    return push, pulled, pull


@jit(reassociate=True)
def _forwards(chain, dynamics, roots, means, gains):
    """Eliminate states from the left; log normaliser and growth of rounding errors.

    `roots` gets the factor L of every block that was eliminated, `means` L^-1 times its linear
    term, and `gains` L^-1 A' Q^-1.
    """
    offsets, inputs, J, h, precision, initial_precision, initial_linear = chain
    D, U = h.shape[1], inputs.shape[1]
    push, pulled, pull = _couplings(precision, dynamics)
    drive, diagonal = np.zeros(D), np.empty(D)
    total, growth = 0.0, 0.0
    for s in range(offsets.size - 1):
        first, end = offsets[s], offsets[s + 1]
        for t in range(first, end):
            block, linear, later = roots[t], means[t], t + 1 < end
            for i in range(D):
                linear[i] = h[t, i]
                for j in range(i + 1):
                    own = initial_precision[i, j] if t == first else precision[i, j]
                    block[i, j] = J[t, i, j] + own + (push[i, j] if later else 0.0)
                diagonal[i] = block[i, i]
                if t == first:
                    linear[i] += initial_linear[i]
            if U > 0 and t > first:
                for i in range(D):
                    drive[i] = 0.0
                    for j in range(U):
                        drive[i] += dynamics[i, D + j] * inputs[t, j]
                for i in range(D):
                    for j in range(U):
                        x = pull[i, j] * inputs[t, j]
                        linear[i] += x
                        total -= 0.5 * drive[i] * x
            if U > 0 and later:
                for i in range(D):
                    for k in range(D):
                        for j in range(U):
                            linear[i] -= dynamics[k, i] * pull[k, j] * inputs[t + 1, j]
            if t > first:
                _eliminate(roots[t - 1], means[t - 1], pulled, gains[t - 1], block, linear)
            if cholesky(block) > 0:
                return math.nan, math.inf
            for i in range(D):
                x = linear[i]
                for k in range(i):
                    x -= block[i, k] * linear[k]
                linear[i] = x / block[i, i]
                total += 0.5 * linear[i] * linear[i] - math.log(block[i, i])
                growth = max(growth, diagonal[i] / (block[i, i] * block[i, i]))
    return total, growth


@jit(reassociate=True)
def _eliminate(root, known, pulled, gain, block, linear):
    """Take the state before from a block and its linear term; writes L^-1 A' Q^-1 to `gain`."""
    D = known.size
    for j in range(D):
        for i in range(D):
            gain[j, i] = pulled[j, i]
        for k in range(j):
            x = root[j, k]
            for i in range(D):
                gain[j, i] -= x * gain[k, i]
        x = 1.0 / root[j, j]
        for i in range(D):
            gain[j, i] *= x
            linear[i] += gain[j, i] * known[j]
    for j in range(D):
        for i in range(D):
            x = gain[j, i]
            for k in range(i + 1):
                block[i, k] -= x * gain[j, k]


@jit(reassociate=True)
def _invert(root, back, inverse):
    """Write L^-1 to `back` and (L L')^-1 to `inverse`."""
    D = root.shape[0]
    for i in range(D):
        for j in range(D):
            back[i, j] = inverse[i, j] = 0.0
    for i in range(D):
        scale = 1.0 / root[i, i]
        for k in range(i):
            x = root[i, k] * scale
            for j in range(k + 1):
                back[i, j] -= x * back[k, j]
        back[i, i] = scale
    for k in range(D):
        for i in range(k + 1):
            x = back[k, i]
            for j in range(k + 1):
                inverse[i, j] += x * back[k, j]


@jit(reassociate=True)
def _backwards(offsets, inputs, into):
    """Moments of the states from what `_forwards` left, last steps first."""
    roots, means, covs, following, squares = into
    D, U = means.shape[1], inputs.shape[1]
    back, inverse = np.empty((D, D)), np.empty((D, D))
    gain, carried = np.empty((D, D)), np.empty((D, D))
    whitened = np.empty(D)
    for i in range(D + U):
        for j in range(D + U):
            squares[i, j] = 0.0
            if i < D:
                following[i, j] = 0.0
    for s in range(offsets.size - 1):
        for t in range(offsets[s + 1] - 1, offsets[s] - 1, -1):
            cov = covs[t]
            _invert(roots[t], back, inverse)
            for i in range(D):
                whitened[i] = means[t, i]
                for j in range(D):
                    gain[i, j] = carried[i, j] = 0.0
            for i in range(D):
                x = 0.0
                for k in range(i, D):
                    x += back[k, i] * whitened[k]
                means[t, i] = x
            if t + 1 == offsets[s + 1]:
                for i in range(D):
                    for j in range(D):
                        cov[i, j] = inverse[i, j]
                continue
            ahead = covs[t + 1]
            for k in range(D):
                for i in range(k + 1):
                    x = back[k, i]
                    for j in range(D):
                        gain[i, j] += x * cov[k, j]
            for i in range(D):
                for k in range(D):
                    x = gain[i, k]
                    means[t, i] += x * means[t + 1, k]
                    for j in range(D):
                        carried[i, j] += x * ahead[k, j]
            for i in range(D):
                for j in range(i + 1):
                    x = inverse[i, j]
                    for k in range(D):
                        x += carried[i, k] * gain[j, k]
                    cov[i, j] = x
                    cov[j, i] = x
            for i in range(D):
                here = means[t, i]
                for j in range(D):
                    following[j, i] += carried[i, j] + means[t + 1, j] * here
                    squares[i, j] += cov[i, j] + here * means[t, j]
                for j in range(U):
                    squares[i, D + j] += here * inputs[t + 1, j]
            for j in range(U):
                for i in range(D):
                    following[i, D + j] += means[t + 1, i] * inputs[t + 1, j]
                for i in range(U):
                    squares[D + i, D + j] += inputs[t + 1, i] * inputs[t + 1, j]
    for i in range(U):
        for j in range(D):
            squares[D + i, j] = squares[j, D + i]


@jit
def smooth(chain, dynamics, into):
    """Log normaliser up to a constant of the path, and moments of the states: fills `into`.

    Returns it, nan where there is none, and the growth of rounding errors, as
    `pgmult.sequences.compiled.kalman_blocks` measures it. Only positive terms are added backwards,
    so covariances stay what they are.
    """
    total, growth = _forwards(chain, dynamics, into[0], into[1], into[2])
    if math.isfinite(growth):
        _backwards(chain[0], chain[1], into)
    return total, growth


@jit
def draw_states(offsets, dynamics, precision, roots, means, x):
    """Turn white noise x, ``(num_steps, D)``, into a draw of the states, backwards.

    x_t = m_t + L^-T (noise + L^-1 A' Q^-1 (x_t+1 - m_t+1)): O(D**2) a step.
    """
    D = x.shape[1]
    away, pull = np.empty(D), np.empty(D)
    for s in range(offsets.size - 1):
        for t in range(offsets[s + 1] - 1, offsets[s] - 1, -1):
            root, later = roots[t], t + 1 < offsets[s + 1]
            if later:
                for i in range(D):
                    away[i] = 0.0
                    for k in range(D):
                        away[i] += precision[i, k] * (x[t + 1, k] - means[t + 1, k])
                for i in range(D):
                    pull[i] = 0.0
                    for k in range(D):
                        pull[i] += dynamics[k, i] * away[k]
                solve_lower(root, pull)
                for i in range(D):
                    x[t, i] += pull[i]
            solve_lower_transpose(root, x[t])
            for i in range(D):
                x[t, i] += means[t, i]


@jit
def whiten_states(offsets, dynamics, precision, roots, means, x):
    """Turn states x, ``(num_steps, D)``, into the white noise that `draw_states` makes them of."""
    D = x.shape[1]
    away, pull = np.empty(D), np.empty(D)
    for s in range(offsets.size - 1):
        for t in range(offsets[s], offsets[s + 1]):
            root, later = roots[t], t + 1 < offsets[s + 1]
            for i in range(D):
                x[t, i] -= means[t, i]
            for i in range(D):
                pull[i] = 0.0
                x[t, i] *= root[i, i]
                for k in range(i + 1, D):
                    x[t, i] += root[k, i] * x[t, k]
            if not later:
                continue
            for i in range(D):
                away[i] = 0.0
                for k in range(D):
                    away[i] += precision[i, k] * (x[t + 1, k] - means[t + 1, k])
            for i in range(D):
                for k in range(D):
                    pull[i] += dynamics[k, i] * away[k]
            solve_lower(root, pull)
            for i in range(D):
                x[t, i] -= pull[i]


@jit
def log_spread(dynamics, noise_cov, precision, doublings):
    """Logarithm of tr(Q^-1 Cov x) / D after ``2**doublings`` steps of the dynamics from nothing."""
    D = noise_cov.shape[0]
    cov, power, moved = noise_cov.copy(), dynamics[:, :D].copy(), np.empty((D, D))
    for _ in range(doublings):
        product(power, cov, moved)
        for i in range(D):
            for j in range(D):
                for k in range(D):
                    cov[i, j] += moved[i, k] * power[j, k]
        product(power, power, moved)
        power, moved = moved, power
    total = 0.0
    for i in range(D):
        for j in range(D):
            total += precision[i, j] * cov[i, j]
    return math.log(total / D) if 0.0 < total < math.inf else math.inf


@jit
def _factor_metric(spread, num_later, zz, squares, prior, metric):
    """Write the metric's factors: Q, `row_root` and `roots`.

    The metric of B is Q^-1 times the square of `row_root`, that of row k of W the square of
    ``roots[k]``. Of `zz` only the sums of u_t u_t' are used.
    """
    noise_cov, row_root, roots = metric
    _, row_precision, weight_mean, weight_precision = prior
    D, num_rows = noise_cov.shape[0], row_root.shape[0]
    n, q = weight_mean.shape
    for i in range(num_rows):
        for j in range(num_rows):
            row_root[i, j] = row_precision[i, j]
            if i < D and j < D:
                row_root[i, j] += num_later * spread * noise_cov[i, j]
            elif i >= D and j >= D:
                row_root[i, j] += zz[i, j]
    cholesky(row_root)
    for k in range(n):
        often = squares[k, q * (q + 1) // 2 - 1]  # the last of what is known is 1
        for i in range(q):
            for j in range(i + 1):
                roots[k, i, j] = 0.0
                if i < D:
                    roots[k, i, j] = often * spread * noise_cov[i, j]
                elif j >= D:
                    roots[k, i, j] = squares[k, i * (i + 1) // 2 + j]
            roots[k, i, i] += weight_precision[k, i]
        cholesky(roots[k])


@jit
def begin(spread, num_later, zz, squares, precision, prior, metric, r, s):
    """Write factors of the metric, and momenta over the white noise in r, of B, and s, of W.

    Returns the kinetic energy.
    """
    _factor_metric(spread, num_later, zz, squares, prior, metric)
    (D, num_rows), (n, q) = r.shape, s.shape
    _, row_root, roots = metric
    half = precision.copy()
    cholesky(half)
    total = 0.0
    for i in range(D):
        for j in range(num_rows - 1, -1, -1):  # r L', then half r
            total += 0.5 * r[i, j] * r[i, j]
            r[i, j] *= row_root[j, j]
            for k in range(j):
                r[i, j] += row_root[j, k] * r[i, k]
    for i in range(D - 1, -1, -1):
        for j in range(num_rows):
            r[i, j] *= half[i, i]
            for k in range(i):
                r[i, j] += half[i, k] * r[k, j]
    for k in range(n):
        for i in range(q - 1, -1, -1):
            total += 0.5 * s[k, i] * s[k, i]
            s[k, i] *= roots[k, i, i]
            for j in range(i):
                s[k, i] += roots[k, i, j] * s[k, j]
    return total


@jit
def slopes(following, zz, squares, linear, precision, prior, dynamics, weights, by_b, by_w):
    """Gradients with respect to B and W; log prior of both, and what the offset adds to log Z.

    `linear`, ``(n, q)``, is the sum of kappa times design by stick.
    """
    mean, row_precision, weight_mean, weight_precision = prior
    n, q = weights.shape
    D, num_rows = dynamics.shape
    total = 0.0
    gap, pull = np.empty((D, num_rows)), np.empty((D, num_rows))
    for i in range(D):
        for j in range(num_rows):
            gap[i, j] = dynamics[i, j] - mean[j, i]
    for i in range(D):
        for j in range(num_rows):
            away = 0.0
            pull[i, j] = following[i, j]
            for k in range(num_rows):
                away += gap[i, k] * row_precision[k, j]
                pull[i, j] -= dynamics[i, k] * zz[k, j]
            pull[i, j] -= away
            for k in range(D):
                total -= 0.5 * precision[k, i] * away * gap[k, j]
    product(precision, pull, by_b)
    for k in range(n - 1, -1, -1):
        for i in range(q):
            own = linear[k, i]
            away = weights[k, i] - weight_mean[k, i]
            by_w[k, i] = own - weight_precision[k, i] * away
            total -= 0.5 * weight_precision[k, i] * away * away
            if i >= D:
                total += own * weights[k, i]
        column = 0
        for i in range(q):
            for j in range(i + 1):
                x = squares[k, column]
                column += 1
                by_w[k, i] -= x * weights[k, j]
                if j < i:
                    by_w[k, j] -= x * weights[k, i]
                if j >= D:
                    total -= x * weights[k, i] * weights[k, j] * (1.0 if j < i else 0.5)
    return total


@jit
def leap(kick, drift, metric, by_b, by_w, r, s, dynamics, weights):
    """Kick the momenta along the gradients, then let B and W drift; the kinetic energy between."""
    noise_cov, row_root, roots = metric
    (D, num_rows), (n, q) = r.shape, s.shape
    total = 0.0
    v, row = np.empty((D, num_rows)), np.empty(q)
    for i in range(D):
        for j in range(num_rows):
            r[i, j] += kick * by_b[i, j]
    product(noise_cov, r, v)
    for i in range(D):
        solve_with_root(row_root, v[i])
        for j in range(num_rows):
            total += 0.5 * v[i, j] * r[i, j]
            dynamics[i, j] += drift * v[i, j]
    for k in range(n):
        for i in range(q):
            s[k, i] += kick * by_w[k, i]
            row[i] = s[k, i]
        solve_with_root(roots[k], row)
        for i in range(q):
            total += 0.5 * row[i] * s[k, i]
            weights[k, i] += drift * row[i]
    return total

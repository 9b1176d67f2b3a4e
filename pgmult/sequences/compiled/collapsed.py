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

import numpy as np

from pgmult.compiled.jit import jit
from pgmult.compiled.linalg import cholesky
from pgmult.sequences.compiled.symbols import COLUMNS


@jit
def lay_out(weights, loadings, running, products):
    """Loadings, their sums over the sticks before, and the products of columns that J and h take.

    As `accumulate_potentials` wants them.
    """
    n, q = weights.shape
    D = loadings.shape[1]
    for k in range(n):
        for i in range(D):
            loadings[k, i] = weights[k, i]
            running[k + 1, i] = running[k, i] + weights[k, i]
        column = 0
        for i in range(D):
            for j in range(i + 1):
                tile, place = column // COLUMNS, column % COLUMNS
                products[tile, k, place] = weights[k, i] * weights[k, j]
                column += 1
        for i in range(D):
            for j in range(D, q):
                tile, place = column // COLUMNS, column % COLUMNS
                products[tile, k, place] = weights[k, i] * weights[k, j]
                column += 1


@jit(reassociate=True)
def smooth(
    offsets, J, h, inputs, precision, initial_precision, initial_linear, dynamics,
    roots, means, covs, following, squares,
):  # fmt: skip
    """Log normaliser up to what no path moves, and moments of the states.

    Returns it, nan where there is none, and the growth of rounding errors, as
    `pgmult.sequences.compiled.kalman_blocks` measures it.

    `inputs` ``(num_steps, U)`` drive all but first steps, where they are zero. Writes E x_t to
    `means`, Cov x_t to `covs`, and sums of E x_t z_t' and E z_t z_t', z_t = (x_t-1, u_t), over the
    steps with a predecessor to `following` and `squares`. Only positive terms are added backwards,
    so covariances stay what they are.
    """
    D = h.shape[1]
    U = inputs.shape[1]
    coupling, push, pull = np.zeros((D, D)), np.zeros((D, D)), np.zeros((D, U))
    pulled = np.empty((D, D))  # A' Q^-1
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
    for i in range(D):
        for j in range(D):
            pulled[i, j] = coupling[j, i]
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
                before, known = roots[t - 1], means[t - 1]
                gain = covs[t - 1]  # L^-1 A' Q^-1, until the pass backwards
                for j in range(D):
                    for i in range(D):
                        gain[j, i] = pulled[j, i]
                    for k in range(j):
                        x = before[j, k]
                        for i in range(D):
                            gain[j, i] -= x * gain[k, i]
                    x = 1.0 / before[j, j]
                    for i in range(D):
                        gain[j, i] *= x
                        linear[i] += gain[j, i] * known[j]
                for j in range(D):
                    for i in range(D):
                        x = gain[j, i]
                        for k in range(i + 1):
                            block[i, k] -= x * gain[j, k]
            if cholesky(block) > 0:
                return math.nan, math.inf
            for i in range(D):
                x = linear[i]
                for k in range(i):
                    x -= block[i, k] * linear[k]
                linear[i] = x / block[i, i]
                total += 0.5 * linear[i] * linear[i] - math.log(block[i, i])
                growth = max(growth, diagonal[i] / (block[i, i] * block[i, i]))
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
            root, cov = roots[t], covs[t]
            for i in range(D):
                whitened[i] = means[t, i]
                for j in range(D):
                    back[i, j] = inverse[i, j] = gain[i, j] = carried[i, j] = 0.0
            for i in range(D):  # back = root^-1
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
                    for k in range(i):
                        pull[i] -= root[i, k] * pull[k]
                    pull[i] /= root[i, i]
                    x[t, i] += pull[i]
            for i in range(D - 1, -1, -1):
                x[t, i] /= root[i, i]
                for k in range(i):
                    x[t, k] -= root[i, k] * x[t, i]
            for i in range(D):
                x[t, i] += means[t, i]


@jit
def log_spread(dynamics, noise_cov, precision, doublings):
    """Logarithm of tr(Q^-1 Cov x) / D after ``2**doublings`` steps of the dynamics from nothing."""
    D = noise_cov.shape[0]
    cov, power, moved = noise_cov.copy(), np.empty((D, D)), np.empty((D, D))
    for i in range(D):
        for j in range(D):
            power[i, j] = dynamics[i, j]
    for _ in range(doublings):
        for i in range(D):
            for j in range(D):
                moved[i, j] = 0.0
                for k in range(D):
                    moved[i, j] += power[i, k] * cov[k, j]
        for i in range(D):
            for j in range(D):
                for k in range(D):
                    cov[i, j] += moved[i, k] * power[j, k]
        for i in range(D):
            for j in range(D):
                moved[i, j] = 0.0
                for k in range(D):
                    moved[i, j] += power[i, k] * power[k, j]
        power, moved = moved, power
    total = 0.0
    for i in range(D):
        for j in range(D):
            total += precision[i, j] * cov[i, j]
    return math.log(total / D) if 0.0 < total < math.inf else math.inf


@jit
def _solve(root, x):
    """(L L')^-1 x in place."""
    n = x.size
    for i in range(n):
        for k in range(i):
            x[i] -= root[i, k] * x[k]
        x[i] /= root[i, i]
    for i in range(n - 1, -1, -1):
        x[i] /= root[i, i]
        for k in range(i):
            x[k] -= root[i, k] * x[i]


@jit
def begin(
    spread, num_later, zz, noise_cov, precision, row_precision, weight_precision, squares,
    row_root, roots, r, s,
):  # fmt: skip
    """Write factors of the metric, and momenta over the white noise in r, of B, and s, of W.

    Returns the kinetic energy. Of `zz` only the sums of u_t u_t' are looked at.

    The metric of B is Q^-1 times `row_root`'s square, that of row k of W the square of `roots[k]`.
    """
    D, num_rows = r.shape
    n, q = s.shape
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
def slopes(
    following, zz, squares, linear, precision, prior_mean, row_precision, weight_mean,
    weight_precision, dynamics, weights, by_dynamics, by_weights,
):  # fmt: skip
    """Gradients with respect to B and W; log prior of both, and what the offset adds to log Z.

    `linear`, ``(n + 1, q)``, is the sum of counts times design by symbol.
    """
    n, q = weights.shape
    D, num_rows = dynamics.shape
    total = 0.0
    gap, pull = np.empty((D, num_rows)), np.empty((D, num_rows))
    for i in range(D):
        for j in range(num_rows):
            gap[i, j] = dynamics[i, j] - prior_mean[j, i]
    for i in range(D):
        for j in range(num_rows):
            prior = 0.0
            pull[i, j] = following[i, j]
            for k in range(num_rows):
                prior += gap[i, k] * row_precision[k, j]
                pull[i, j] -= dynamics[i, k] * zz[k, j]
            pull[i, j] -= prior
            for k in range(D):
                total -= 0.5 * precision[k, i] * prior * gap[k, j]
    for i in range(D):
        for j in range(num_rows):
            by_dynamics[i, j] = 0.0
            for k in range(D):
                by_dynamics[i, j] += precision[i, k] * pull[k, j]
    reaching = np.empty(q)
    for i in range(q):
        reaching[i] = linear[n, i]
    for k in range(n - 1, -1, -1):
        for i in range(q):
            reaching[i] += linear[k, i]
            own = linear[k, i] - 0.5 * reaching[i]
            away = weights[k, i] - weight_mean[k, i]
            by_weights[k, i] = own - weight_precision[k, i] * away
            total -= 0.5 * weight_precision[k, i] * away * away
            if i >= D:
                total += own * weights[k, i]
        column = 0
        for i in range(q):
            for j in range(i + 1):
                x = squares[k, column]
                column += 1
                by_weights[k, i] -= x * weights[k, j]
                if j < i:
                    by_weights[k, j] -= x * weights[k, i]
                if j >= D:
                    total -= x * weights[k, i] * weights[k, j] * (1.0 if j < i else 0.5)
    return total


@jit
def leap(
    kick, drift, noise_cov, row_root, roots, by_dynamics, by_weights, r, s, dynamics, weights
):  # fmt: skip
    """Kick the momenta along the gradients, then let B and W drift; the kinetic energy between."""
    D, num_rows = r.shape
    n, q = s.shape
    total = 0.0
    v, row = np.empty((D, num_rows)), np.empty(q)
    for i in range(D):
        for j in range(num_rows):
            r[i, j] += kick * by_dynamics[i, j]
    for i in range(D):
        for j in range(num_rows):
            v[i, j] = 0.0
            for k in range(D):
                v[i, j] += noise_cov[i, k] * r[k, j]
        _solve(row_root, v[i])
        for j in range(num_rows):
            total += 0.5 * v[i, j] * r[i, j]
            dynamics[i, j] += drift * v[i, j]
    for k in range(n):
        for i in range(q):
            s[k, i] += kick * by_weights[k, i]
            row[i] = s[k, i]
        _solve(roots[k], row)
        for i in range(q):
            total += 0.5 * row[i] * s[k, i]
            weights[k, i] += drift * row[i]
    return total

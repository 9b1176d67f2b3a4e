"""Small dense linear algebra whose bits do not depend on BLAS, its threads or the batch's split.

Single matrices, a few hundred rows at most, are factored by plain loops. Many Gaussian systems that
share a prior and differ in their diagonal are factored side by side, one system a SIMD lane
(`sample_diagonal_posteriors`): the inner loop runs over `LANES` systems, so it vectorises whatever
the size of one system.
"""

import math

import numpy as np

from ._jit import jit
from .streams import gamma, normal, open_stream

LANES = 32  # systems factored side by side; shorter inner loops would run scalar


@jit
def cholesky(a):
    """Replace the lower triangle of `a` by its Cholesky factor and the rest by zeros.

    Returns 0, or 1 + the row at which `a` turns out not to be positive definite.
    """
    n = a.shape[0]
    for i in range(n):
        for j in range(i + 1):
            total = a[i, j]
            for k in range(j):
                total -= a[i, k] * a[j, k]
            if i > j:
                a[i, j] = total / a[j, j]
            elif total > 0.0:
                a[i, i] = math.sqrt(total)
            else:
                return 1 + i
        a[i, i + 1 :] = 0.0
    return 0


@jit
def invert_lower(a):
    """The inverse of a lower triangular matrix."""
    n = a.shape[0]
    inverse = np.zeros((n, n))
    for i in range(n):
        for k in range(i):
            for j in range(k + 1):
                inverse[i, j] -= a[i, k] * inverse[k, j]
        for j in range(i):
            inverse[i, j] /= a[i, i]
        inverse[i, i] = 1.0 / a[i, i]
    return inverse


@jit
def scatter(x, mean):
    """Sum over rows of the outer products (x - mean)(x - mean)', ``(n, n)``."""
    rows, n = x.shape
    total = np.zeros((n, n))
    deviation = np.empty(n)
    for r in range(rows):
        for i in range(n):
            deviation[i] = x[r, i] - mean[i]
        for i in range(n):
            scale = deviation[i]
            for j in range(n):  # the whole row: a rectangular inner loop vectorises
                total[i, j] += scale * deviation[j]
    return total


@jit
def sample_inverse_wishart(key, scale_factor, dof, cov):
    """Write a draw of IW(scale, dof) into `cov`; `scale_factor` is the Cholesky factor of scale.

    Bartlett (1933): with T lower triangular, T_ii^2 ~ chi2(dof - i) and standard normals below,
    (L T^-T)(L T^-T)' is inverse Wishart.
    """
    n = scale_factor.shape[0]
    state = open_stream(key, 0)
    bartlett = np.zeros((n, n))
    for i in range(n):
        x, state = gamma(0.5 * (dof - i), state)
        bartlett[i, i] = math.sqrt(2.0 * x)
        for j in range(i):
            bartlett[i, j], state = normal(state)
    inverse = invert_lower(bartlett)
    root = np.zeros((n, n))  # L T^-T, row by row
    for i in range(n):
        for k in range(i + 1):
            scale = scale_factor[i, k]
            for j in range(k, n):
                root[i, j] += scale * inverse[j, k]
    for i in range(n):
        for j in range(i + 1):
            total = 0.0
            for k in range(n):
                total += root[i, k] * root[j, k]
            cov[i, j] = total
            cov[j, i] = total


@jit
def _factor_lanes(a, n):
    """Packed Cholesky factors of all lanes of `a`, with *reciprocal* diagonals."""
    lanes = a.shape[1]
    for i in range(n):
        row = i * (i + 1) // 2
        for j in range(i + 1):
            other = j * (j + 1) // 2
            k = 0
            while k + 4 <= j:
                for lane in range(lanes):
                    a[row + j, lane] -= (
                        a[row + k, lane] * a[other + k, lane]
                        + a[row + k + 1, lane] * a[other + k + 1, lane]
                    ) + (
                        a[row + k + 2, lane] * a[other + k + 2, lane]
                        + a[row + k + 3, lane] * a[other + k + 3, lane]
                    )
                k += 4
            while k < j:
                for lane in range(lanes):
                    a[row + j, lane] -= a[row + k, lane] * a[other + k, lane]
                k += 1
            if i > j:
                for lane in range(lanes):
                    a[row + j, lane] *= a[other + j, lane]
            else:
                for lane in range(lanes):
                    a[row + i, lane] = 1.0 / math.sqrt(a[row + i, lane])


@jit
def _solve_lower_lanes(a, x, n):
    lanes = a.shape[1]
    for i in range(n):
        row = i * (i + 1) // 2
        for k in range(i):
            for lane in range(lanes):
                x[i, lane] -= a[row + k, lane] * x[k, lane]
        for lane in range(lanes):
            x[i, lane] *= a[row + i, lane]


@jit
def _solve_upper_lanes(a, x, n):
    lanes = a.shape[1]
    for i in range(n - 1, -1, -1):
        row = i * (i + 1) // 2
        for lane in range(lanes):
            x[i, lane] *= a[row + i, lane]
        for k in range(i):
            for lane in range(lanes):
                x[k, lane] -= a[row + k, lane] * x[i, lane]


@jit
def sample_diagonal_posteriors(
    worker, start, stop, pieces, order, depths, root, mean, J, h, key, out
):
    """Draw rows with density proportional to N(x | mean_r, cov) exp(-x' diag(J_r) x / 2 + h_r' x).

    Row r's observations reach only its first ``depths[r]`` coordinates, m for short: J and h are
    zero beyond. So only the m x m posterior of those is factored. Its prior precision is that of
    the *marginal* of the leading coordinates, L_m' L_m with L the inverse of the covariance's
    Cholesky factor `root`; the other coordinates follow from the prior's conditional by forward
    substitution. Cost: O(m^3) a row, in vector operations, and never less than O(n^2).

    Groups of `LANES` rows of neighbouring depth (`order` sorts rows by depth) are factored side by
    side; this piece does groups ``worker, worker + pieces, ...``, which balances the pieces, so
    `start` and `stop` go unused. Returns 0, or 1 + a row without a proper posterior.
    """
    num_rows, n = out.shape
    inverse_root = invert_lower(root)
    precision = np.zeros((n, n))
    reached = 0
    packed = np.empty((n * (n + 1) // 2, LANES))
    x = np.empty((n, LANES))
    whitened = np.empty((n, LANES))
    for group in range(worker, (num_rows + LANES - 1) // LANES, pieces):
        first = group * LANES
        width = min(LANES, num_rows - first)
        depth = depths[order[first + width - 1]]
        while reached < depth:  # the marginal's precision grows by one row of L at a time
            for i in range(reached + 1):
                scale = inverse_root[reached, i]
                for j in range(i + 1):
                    precision[i, j] += scale * inverse_root[reached, j]
            reached += 1
        for i in range(depth):
            row = i * (i + 1) // 2
            for j in range(i + 1):
                for lane in range(LANES):
                    packed[row + j, lane] = precision[i, j]
        for lane in range(LANES):
            r = order[first + min(lane, width - 1)]
            m = mean[r] if mean.shape[0] > 1 else mean[0]
            for i in range(depth):
                packed[i * (i + 1) // 2 + i, lane] += J[r, i]
                x[i, lane] = h[r, i] - J[r, i] * m[i]
        _factor_lanes(packed, depth)
        _solve_lower_lanes(packed, x, depth)
        for lane in range(width):
            state = open_stream(key, order[first + lane])
            for i in range(depth):
                noise, state = normal(state)
                x[i, lane] += noise
            for i in range(depth, n):
                whitened[i, lane], state = normal(state)
        _solve_upper_lanes(packed, x, depth)
        for i in range(depth):  # whitened coordinates of what was drawn: L (x - mean)
            for lane in range(LANES):
                whitened[i, lane] = 0.0
            for k in range(i + 1):
                scale = inverse_root[i, k]
                for lane in range(LANES):
                    whitened[i, lane] += scale * x[k, lane]
        for i in range(depth, n):
            for lane in range(LANES):
                x[i, lane] = 0.0
            for k in range(i + 1):
                scale = root[i, k]
                for lane in range(LANES):
                    x[i, lane] += scale * whitened[k, lane]
        for lane in range(width):
            r = order[first + lane]
            m = mean[r] if mean.shape[0] > 1 else mean[0]
            for i in range(n):
                value = m[i] + x[i, lane]
                if not math.isfinite(value):
                    return 1 + r
                out[r, i] = value
    return 0

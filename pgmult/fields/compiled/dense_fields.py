"""Many Gaussian vectors that share a covariance matrix and differ in their diagonal potentials.

Column c is N(mean_c, K) exp(-x' diag(J_c) x / 2 + h_c' x). With s = sqrt(J) everything goes through
the Cholesky factor of

    B = I + diag(s) K diag(s),

whose eigenvalues are 1 or more however singular K is and however small J. It is found once for a
covariance and a potential. Columns are rows of the arrays here.
"""

import math

import numpy as np

from pgmult.compiled.jit import jit
from pgmult.compiled.vectors import index_of_largest

_BLOCK = 32  # rows that use four earlier rows while those are in the nearest cache


@jit
def lower_root(cov):
    """A lower triangular L with L L' = cov, positive semi-definite; and -1, or where it is not.

    A covariance that is singular to working precision is factored with pivots, which finds its
    rank r, and brought to lower triangular form by reflections; columns r, ... are 0.
    """
    root = cov.copy()
    if _cholesky(root):
        return root, -1
    root, rank, failed = _pivoted_root(cov)
    if failed < 0:
        _make_lower(root, rank)
    return root, failed


@jit(reassociate=True)
def _cholesky(a):
    """Replace `a` by its Cholesky factor; False if it is not positive definite numerically.

    Rows go in blocks that share the rows they read while those are in the nearest cache; two rows
    by four columns are finished at a time, in registers.
    """
    n = a.shape[0]
    smallest = 0.0
    for i in range(n):
        smallest = max(smallest, 4.0 * n * 2.0**-52 * a[i, i])
    for first in range(0, n, _BLOCK):
        end = min(first + _BLOCK, n)
        for j in range(0, first, 4):
            for i in range(first, end - 1, 2):
                t0, t1, t2, t3 = a[i, j], a[i, j + 1], a[i, j + 2], a[i, j + 3]
                u0, u1, u2, u3 = a[i + 1, j], a[i + 1, j + 1], a[i + 1, j + 2], a[i + 1, j + 3]
                for k in range(j):
                    x, y = a[i, k], a[i + 1, k]
                    t0 -= x * a[j, k]
                    t1 -= x * a[j + 1, k]
                    t2 -= x * a[j + 2, k]
                    t3 -= x * a[j + 3, k]
                    u0 -= y * a[j, k]
                    u1 -= y * a[j + 1, k]
                    u2 -= y * a[j + 2, k]
                    u3 -= y * a[j + 3, k]
                _finish_tile(a, i, j, t0, t1, t2, t3)
                _finish_tile(a, i + 1, j, u0, u1, u2, u3)
            if (end - first) % 2:
                i = end - 1
                t0, t1, t2, t3 = a[i, j], a[i, j + 1], a[i, j + 2], a[i, j + 3]
                for k in range(j):
                    x = a[i, k]
                    t0 -= x * a[j, k]
                    t1 -= x * a[j + 1, k]
                    t2 -= x * a[j + 2, k]
                    t3 -= x * a[j + 3, k]
                _finish_tile(a, i, j, t0, t1, t2, t3)
        for i in range(first, end):
            for j in range(first, i):
                total = a[i, j]
                for k in range(j):
                    total -= a[i, k] * a[j, k]
                a[i, j] = total / a[j, j]
            total = a[i, i]
            for k in range(i):
                total -= a[i, k] * a[i, k]
            if not total > smallest:
                return False
            a[i, i] = math.sqrt(total)
            a[i, i + 1 :] = 0.0
    return True


@jit(inline=True)
def _finish_tile(a, i, j, t0, t1, t2, t3):
    """Entries j, ..., j + 3 of row i, from what the columns before j left of them."""
    t0 /= a[j, j]
    t1 = (t1 - t0 * a[j + 1, j]) / a[j + 1, j + 1]
    t2 = (t2 - t0 * a[j + 2, j] - t1 * a[j + 2, j + 1]) / a[j + 2, j + 2]
    t3 -= t0 * a[j + 3, j] + t1 * a[j + 3, j + 1] + t2 * a[j + 3, j + 2]
    a[i, j], a[i, j + 1], a[i, j + 2], a[i, j + 3] = t0, t1, t2, t3 / a[j + 3, j + 3]


@jit(within=True)
def _pivoted_root(cov):
    """(root, rank, row): cov = root root' with `rank` columns; row -1, or where it is indefinite.

    The next pivot is the largest variance left, and all that is left is rounding when it is.
    """
    n = len(cov)
    root, left = np.zeros((n, n)), np.diag(cov).copy()
    largest = left[index_of_largest(left)]
    for rank in range(n):
        pivot = index_of_largest(left)
        if left[pivot] <= 4.0 * n * 2.0**-52 * largest:
            for i in range(n):  # a semi-definite rest with no variance is 0
                rest = cov[pivot, i] - _dot(root[pivot], root[i], rank)
                if left[i] < -1e-8 * largest or abs(rest) > 1e-6 * largest:
                    return root, rank, i
            return root, rank, -1
        scale = math.sqrt(left[pivot])
        for i in range(n):
            x = (cov[i, pivot] - _dot(root[i], root[pivot], rank)) / scale
            root[i, rank] = x
            left[i] -= x * x
            if left[i] < -1e-8 * largest:
                return root, rank, i
        left[pivot] = 0.0
    return root, n, -1


@jit(within=True)
def _make_lower(root, rank):
    """Rotate the rows of `root` by Householder reflections until it is lower triangular."""
    n = len(root)
    for k in range(rank):
        norm = math.sqrt(_dot(root[k, k:], root[k, k:], rank - k))
        if norm == 0.0:
            continue
        mirror = root[k, k:rank].copy()
        mirror[0] += math.copysign(norm, mirror[0])
        scale = 2.0 / _dot(mirror, mirror, rank - k)
        for i in range(k, n):
            amount = scale * _dot(root[i, k:], mirror, rank - k)
            for j in range(rank - k):
                root[i, k + j] -= amount * mirror[j]
        root[k, k + 1 : rank] = 0.0


@jit(reassociate=True)
def _dot(x, y, size):
    total = 0.0
    for k in range(size):
        total += x[k] * y[k]
    return total


@jit
def _factor(cov, roots):
    """The Cholesky factor of B = I + diag(roots) cov diag(roots)."""
    size = len(roots)
    B = np.empty((size, size))
    for i in range(size):
        for j in range(i + 1):
            B[i, j] = roots[i] * cov[i, j] * roots[j]
        B[i, i] += 1.0
    _cholesky(B)
    return B


@jit
def _solve_lower(root, x):
    """Solve root y = x in place."""
    for i in range(len(x)):
        x[i] = (x[i] - _dot(root[i], x, i)) / root[i, i]


@jit(reassociate=True)
def _solve_upper(root, x):
    """Solve root' y = x in place."""
    for i in range(len(x) - 1, -1, -1):
        x[i] /= root[i, i]
        for k in range(i):
            x[k] -= root[i, k] * x[i]


@jit
def factor_columns(worker, start, stop, cov, roots, log_dets, factors):
    """Log |B| of each column, and its Cholesky factor where `factors` has room for it."""
    for column in range(start, stop):
        factor = _factor(cov, roots[column])
        log_dets[column] = 0.0
        for i in range(len(factor)):
            log_dets[column] += 2.0 * math.log(factor[i, i])
        if len(factors):
            factors[column] = factor


@jit
def solve_columns(worker, start, stop, cov, roots, factors, across, g, out):
    """The posterior covariance of all rows of `across` with the sites, times g of each column.

    `across` has the prior covariances with the sites, `cov` those of the sites. With B^-1 (g / s)
    nothing cancels: K - K s B^-1 s K = K s B^-1 / s. g is not looked at where s = 0.
    """
    size = cov.shape[0]
    weights = np.empty(size)
    for column in range(start, stop):
        factor = factors[column] if len(factors) else _factor(cov, roots[column])
        root = roots[column]
        for i in range(size):
            weights[i] = g[column, i] / root[i] if root[i] > 0.0 else 0.0
        _solve_lower(factor, weights)
        _solve_upper(factor, weights)
        for i in range(size):
            weights[i] *= root[i]
        for row in range(len(across)):
            out[column, row] = _dot(across[row], weights, size)


@jit
def explain_columns(worker, start, stop, cov, roots, factors, across, out):
    """What the potentials take off the prior variance of each row of `across`."""
    size = cov.shape[0]
    seen = np.empty(size)
    for column in range(start, stop):
        factor = factors[column] if len(factors) else _factor(cov, roots[column])
        for row in range(len(across)):
            for i in range(size):
                seen[i] = roots[column, i] * across[row, i]
            _solve_lower(factor, seen)
            out[column, row] = _dot(seen, seen, size)


@jit(within=True)
def _add_products(factor, row, j, x, out):
    """Four rows of `out`, from `row`, gain four columns of `factor`, from j, times rows of x."""
    x0, x1, x2, x3 = x[j], x[j + 1], x[j + 2], x[j + 3]
    for r in range(row, row + 4):
        a, b, c, d, y = factor[r, j], factor[r, j + 1], factor[r, j + 2], factor[r, j + 3], out[r]
        for i in range(y.shape[0]):
            y[i] += (a * x0[i] + b * x1[i]) + (c * x2[i] + d * x3[i])


@jit
def multiply_lower(worker, start, stop, factor, x, out):
    """Row kernel: out = factor @ x, `factor` lower triangular; unit u is four rows of `out`.

    Units take turns from the top and from the bottom, so that shares of them cost alike. As quick
    as a general product of matrices in BLAS, and the same bits on any number of threads.
    """
    n = x.shape[0]
    num_units = -(-n // 4)
    for unit in range(start, stop):
        row = 4 * (unit // 2 if unit % 2 == 0 else num_units - 1 - unit // 2)
        end, first = min(row + 4, n), 0
        out[row:end] = 0.0
        if end == row + 4:
            first = row
            for j in range(0, row, 4):
                _add_products(factor, row, j, x, out)
        for r in range(row, end):
            for j in range(first, r + 1):
                for i in range(out.shape[1]):
                    out[r, i] += factor[r, j] * x[j, i]

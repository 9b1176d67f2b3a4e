"""Many Gaussian vectors that share a covariance matrix and differ in their diagonal potentials.

Column c is N(mean_c, K) exp(-x' diag(J_c) x / 2 + h_c' x). With s = sqrt(J) at the sites where
J > 0 (the others are left out of the system), everything goes through the Cholesky factor of

    B = I + diag(s) K diag(s),

whose eigenvalues are 1 or more however singular K is and however small J. A draw is a draw from
the prior, corrected (Matheron's rule): with f ~ N(0, K) and e ~ N(0, I),

    x = mean + f + K s B^-1 [(h - J (mean + f)) / s - e],

in which no large numbers cancel. Columns are rows of the arrays here, and each has its stream.
"""

import math

import numpy as np

from pgmult.compiled.jit import jit
from pgmult.compiled.streams import normal, open_stream
from pgmult.compiled.vectors import index_of_largest

_BLOCK = 32  # rows that use four earlier rows while those are in the nearest cache


@jit
def lower_root(cov):
    """A lower triangular L with L L' = cov, positive semi-definite; and -1, or where it is not.

    A covariance that is singular to working precision is factored with pivots, which finds its
    rank r, and brought to lower triangular form by reflections; columns r, ... are 0.
    """
    n = len(cov)
    root = cov.copy()
    if _cholesky(root):
        return root, -1
    pivoted, rank, failed = _pivoted_root(cov)
    if failed >= 0:
        return pivoted, failed
    _make_lower(pivoted, rank)
    root = np.zeros((n, n))
    for i in range(n):
        for k in range(rank):
            root[i, k] = pivoted[i, k]
    return root, -1


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


@jit
def _pivoted_root(cov):
    """(root, rank, row): cov = root root' with `rank` columns; row -1, or where it is indefinite.

    The next pivot is the largest variance left, and all that is left is rounding when it is.
    """
    n = len(cov)
    root, left = np.zeros((n, n)), np.empty(n)
    for i in range(n):
        left[i] = cov[i, i]
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


@jit
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
def _factor(cov, J):
    """Where J > 0, sqrt(J) there, and the Cholesky factor of B."""
    sites = np.empty(J.size, dtype=np.int64)
    size = 0
    for i in range(J.size):
        if J[i] > 0.0:
            sites[size] = i
            size += 1
    sites = sites[:size]
    roots = np.empty(size)
    for i in range(size):
        roots[i] = math.sqrt(J[sites[i]])
    B = np.empty((size, size))
    for i in range(size):
        row = cov[sites[i]]
        for j in range(i + 1):
            B[i, j] = roots[i] * row[sites[j]] * roots[j]
        B[i, i] += 1.0
    _cholesky(B)
    return sites, roots, B


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
def _pull(sites, roots, factor, surprises, out):
    """Write s B^-1 surprises into `out`, by site; 0 at the other sites."""
    _solve_lower(factor, surprises)
    _solve_upper(factor, surprises)
    out[:] = 0.0
    for i in range(sites.size):
        out[sites[i]] = roots[i] * surprises[i]


@jit
def sample_columns(
    worker, start, stop, cov, root, mean, features, spread, J, h, key, trend_cov, beta, out
):
    """Draw each column into ``out[column]``, and the coefficients of its trend into ``beta``.

    A column is mean + features beta + g with g ~ N(0, root root') and coefficients beta that are
    N(their values on entry, spread**2); `cov` is the covariance of the column with both, and
    `trend_cov` that of the coefficients (rows) with it. `mean` has one row or all. h is looked at
    where J > 0 only, here and below.
    """
    n, num_features = features.shape
    noise, weights = np.empty(n), np.empty(n)
    for column in range(start, stop):
        state = open_stream(key, column)
        x = out[column]
        for i in range(n):
            noise[i], state = normal(state)
        for f in range(num_features):
            z, state = normal(state)
            beta[column, f] += spread * z
        centre = mean[min(column, len(mean) - 1)]
        for i in range(n):
            trend = _dot(features[i], beta[column], num_features)
            x[i] = centre[i] + trend + _dot(root[i], noise, i + 1)
        sites, roots, factor = _factor(cov, J[column])
        surprises = np.empty(len(sites))
        for i in range(len(sites)):
            e, state = normal(state)
            site = sites[i]
            surprises[i] = (h[column, site] - J[column, site] * x[site]) / roots[i] - e
        _pull(sites, roots, factor, surprises, weights)
        for i in range(n):
            x[i] += _dot(cov[i], weights, n)
        for f in range(num_features):
            beta[column, f] += _dot(trend_cov[f], weights, n)


@jit
def _whiten(sites, roots, mean, J, h):
    """(h - J mean) / s at the sites."""
    surprises = np.empty(len(sites))
    for i in range(len(sites)):
        site = sites[i]
        surprises[i] = (h[site] - J[site] * mean[site]) / roots[i]
    return surprises


@jit
def mean_columns(worker, start, stop, cov, cross, mean, J, h, new_mean, out):
    """Posterior means at new sites into ``out[column]``.

    `cross` has the covariances of the new sites (rows) with the old, `new_mean` the new sites'
    prior means.
    """
    weights = np.empty(len(cov))
    for column in range(start, stop):
        sites, roots, factor = _factor(cov, J[column])
        centre = mean[min(column, len(mean) - 1)]
        surprises = _whiten(sites, roots, centre, J[column], h[column])
        _pull(sites, roots, factor, surprises, weights)
        for new in range(len(cross)):
            shift = _dot(cross[new], weights, len(weights))
            out[column, new] = new_mean[min(column, len(new_mean) - 1), new] + shift


@jit
def predict_columns(
    worker, start, stop, cov, cross, prior_vars, mean, J, h, new_mean, means, variances
):
    """As `mean_columns`, and variances too; `prior_vars` has those before anything was seen."""
    weights = np.empty(len(cov))
    for column in range(start, stop):
        sites, roots, factor = _factor(cov, J[column])
        centre = mean[min(column, len(mean) - 1)]
        surprises = _whiten(sites, roots, centre, J[column], h[column])
        _pull(sites, roots, factor, surprises, weights)
        for new in range(len(cross)):
            shift = _dot(cross[new], weights, len(weights))
            means[column, new] = new_mean[min(column, len(new_mean) - 1), new] + shift
            seen = roots * cross[new][sites]
            _solve_lower(factor, seen)
            left = prior_vars[new] - _dot(seen, seen, len(seen))
            variances[column, new] = max(left, 0.0)


@jit
def column_log_normalizers(worker, start, stop, cov, mean, J, h, out):
    """Log of the integral of each column's density into ``out[column]``.

    With r = h - J mean it is h'mean - mean'J mean / 2 + r'K s B^-1 (r / s) / 2 - log|B| / 2.
    """
    weights = np.empty(len(cov))
    for column in range(start, stop):
        sites, roots, factor = _factor(cov, J[column])
        centre = mean[min(column, len(mean) - 1)]
        _pull(sites, roots, factor, _whiten(sites, roots, centre, J[column], h[column]), weights)
        total = 0.0
        for i in range(len(sites)):
            site = sites[i]
            precision, m = J[column, site], centre[site]
            shift = _dot(cov[site], weights, len(weights))
            total += m * (h[column, site] - 0.5 * precision * m)
            total += 0.5 * (h[column, site] - precision * m) * shift
            total -= math.log(factor[i, i])
        out[column] = total

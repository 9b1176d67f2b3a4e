"""Many Gaussian vectors that share a covariance matrix and differ in their diagonal potentials.

Column c is N(mean_c, K) exp(-x' diag(J_c) x / 2 + h_c' x). With s = sqrt(J) at the sites where
J > 0 (the others are left out of the system), everything goes through the Cholesky factor of

    B = I + diag(s) K diag(s),

whose eigenvalues are 1 or more however singular K is and however small J. Columns are factored
eight at a time, one a SIMD lane, neighbours in the number of their sites side by side. A draw is a
draw from the prior, corrected (Matheron's rule): with f ~ N(0, K) and e ~ N(0, I),

    x = mean + f + K s B^-1 [(h - J (mean + f)) / s - e],

in which no large numbers cancel.
"""

import math

import numpy as np

from ._jit import jit
from .linalg import _factor_lanes, _row, _solve_upper_lanes
from .simd import WIDTH, add_product, load, multiply, splat, store, subtract_product
from .streams import normal, open_stream

_BLOCK = 16  # rows that share the rows they are multiplied with


@jit(reassociate=True)
def semidefinite_root(a):
    """Replace the lower triangle of `a` by a lower triangular root of it, the rest by zeros.

    A pivot within rounding of 0 ends a column there: what follows depends on what came before, as
    coincident sites do. Returns -1, or the row at which `a` turns out to be indefinite.
    """
    n = a.shape[0]
    tolerance, largest = 4.0 * n * 2.0**-52, 0.0
    for i in range(n):
        largest = max(largest, a[i, i])
    for first in range(0, n, _BLOCK):
        end = min(first + _BLOCK, n)
        for j in range(0, first, 4):
            r0, r1, r2, r3 = a[j], a[j + 1], a[j + 2], a[j + 3]
            for i in range(first, end):
                row = a[i]
                t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
                for k in range(j):
                    x = row[k]
                    t0 += x * r0[k]
                    t1 += x * r1[k]
                    t2 += x * r2[k]
                    t3 += x * r3[k]
                x0 = _over(row[j] - t0, r0[j])
                x1 = _over(row[j + 1] - t1 - x0 * r1[j], r1[j + 1])
                x2 = _over(row[j + 2] - t2 - x0 * r2[j] - x1 * r2[j + 1], r2[j + 2])
                rest = x0 * r3[j] + x1 * r3[j + 1] + x2 * r3[j + 2]
                if not (
                    _bounded(row[j] - t0, x0, largest)
                    and _bounded(row[j + 1] - t1 - x0 * r1[j], x1, largest)
                    and _bounded(row[j + 2] - t2 - x0 * r2[j] - x1 * r2[j + 1], x2, largest)
                ):
                    return i
                x3 = _over(row[j + 3] - t3 - rest, r3[j + 3])
                if not _bounded(row[j + 3] - t3 - rest, x3, largest):
                    return i
                row[j], row[j + 1], row[j + 2], row[j + 3] = x0, x1, x2, x3
        for i in range(first, end):
            row = a[i]
            for j in range(first, i):
                total = row[j]
                for k in range(j):
                    total -= row[k] * a[j, k]
                x = _over(total, a[j, j])
                if not _bounded(total, x, largest):
                    return i
                row[j] = x
            total = row[i]
            for k in range(i):
                total -= row[k] * row[k]
            if not total >= -1e-8 * largest:
                return i
            row[i] = math.sqrt(total) if total > tolerance * largest else 0.0
            row[i + 1 :] = 0.0
    return -1


@jit(inline=True)
def _over(x, pivot):
    return x / pivot if pivot > 0.0 else 0.0


@jit(inline=True)
def _bounded(x, quotient, largest):
    """False where a column that ended is not 0 below, as in no semi-definite matrix."""
    return quotient != 0.0 or abs(x) <= 1e-5 * largest


@jit
def _pack(packed, lane, cov, sites, size, J, depth):
    """B of one column into a lane; identity beyond its own `size`. Right-hand sides start at 0."""
    for i in range(depth):
        row = _row(i) + lane
        if i < size:
            left = math.sqrt(J[sites[i]])
            for j in range(i):
                packed[row + j * WIDTH] = left * cov[sites[i], sites[j]] * math.sqrt(J[sites[j]])
            packed[row + i * WIDTH] = 1.0 + J[sites[i]] * cov[sites[i], sites[i]]
        else:
            for j in range(i):
                packed[row + j * WIDTH] = 0.0
            packed[row + i * WIDTH] = 1.0
    row = _row(depth) + lane
    for i in range(depth):
        packed[row + i * WIDTH] = 0.0
    packed[row + depth * WIDTH] = 1.0


@jit
def _sites(J):
    """Where J > 0, and how many such places there are."""
    sites = np.empty(len(J), np.int64)
    size = 0
    for i in range(len(J)):
        if J[i] > 0.0:
            sites[size] = i
            size += 1
    return sites, size


@jit
def _depth(J, columns):
    """The largest number of sites among some columns."""
    depth = 0
    for column in columns:
        depth = max(depth, _sites(J[column])[1])
    return depth


@jit
def _lower_product(root, x, out):
    """Write root x, in lanes, root lower triangular."""
    for i in range(len(root)):
        total = splat(0.0)
        for j in range(i + 1):
            total = add_product(total, splat(root[i, j]), load(x, j * WIDTH))
        store(out, i * WIDTH, total)


@jit
def _add_product(matrix, x, out):
    """Add matrix x, in lanes, to `out`."""
    for i in range(matrix.shape[0]):
        total = load(out, i * WIDTH)
        for j in range(matrix.shape[1]):
            total = add_product(total, splat(matrix[i, j]), load(x, j * WIDTH))
        store(out, i * WIDTH, total)


@jit
def _pull(packed, columns, cov, mean, J, h, f, noise, depth, weights):
    """Factor a group; write s B^-1 [(h - J (mean + f)) / s - noise] into `weights`, by site."""
    weights[:] = 0.0
    for lane in range(len(columns)):
        column = columns[lane]
        sites, size = _sites(J[column])
        _pack(packed, lane, cov, sites, size, J[column], depth)
        centre = mean[min(column, len(mean) - 1)]
        for i in range(size):
            site = sites[i]
            precision = J[column, site]
            surprise = h[column, site] - precision * (centre[site] + f[site * WIDTH + lane])
            packed[_row(depth) + i * WIDTH + lane] = (
                surprise / math.sqrt(precision) - noise[i * WIDTH + lane]
            )
    for lane in range(len(columns), WIDTH):
        _pack(packed, lane, cov, np.empty(0, np.int64), 0, J[0], depth)
    _factor_lanes(packed, depth + 1)
    x = packed[_row(depth) : _row(depth) + depth * WIDTH].copy()
    _solve_upper_lanes(packed, x, depth)
    for lane in range(len(columns)):
        column = columns[lane]
        sites, size = _sites(J[column])
        for i in range(size):
            site = sites[i]
            weights[site * WIDTH + lane] = math.sqrt(J[column, site]) * x[i * WIDTH + lane]


@jit
def sample_columns(worker, start, stop, pieces, order, cov, root, mean, J, h, key, out):
    """Draw every column into ``out[column]``; `root` is a root of `cov`.

    `mean` has one row, or one a column. This piece does the groups ``worker, worker + pieces, ...``
    of eight columns in `order`; `start` and `stop` go unused. Column c's stream is its own.
    """
    num_columns, n = out.shape
    f, x, weights = np.empty(n * WIDTH), np.empty(n * WIDTH), np.empty(n * WIDTH)
    noise = np.empty(n * WIDTH)
    for group in range(worker, (num_columns + WIDTH - 1) // WIDTH, pieces):
        columns = order[group * WIDTH : min((group + 1) * WIDTH, num_columns)]
        depth = _depth(J, columns)
        x[:] = 0.0
        for lane in range(len(columns)):
            state = open_stream(key, columns[lane])
            for i in range(n):
                x[i * WIDTH + lane], state = normal(state)
            for i in range(n):
                noise[i * WIDTH + lane], state = normal(state)
        _lower_product(root, x, f)
        packed = np.empty(_row(depth + 1))
        _pull(packed, columns, cov, mean, J, h, f, noise, depth, weights)
        _add_product(cov, weights, f)
        for lane in range(len(columns)):
            column = columns[lane]
            m = min(column, len(mean) - 1)
            for i in range(n):
                out[column, i] = mean[m, i] + f[i * WIDTH + lane]


@jit
def predict_columns(
    worker,
    start,
    stop,
    pieces,
    order,
    cov,
    cross,
    prior_vars,
    mean,
    J,
    h,
    new_mean,
    means,
    variances,
):
    """Posterior means at new sites into ``means[column]``, variances into ``variances[column]``.

    `cross` has the covariances of the new sites (rows) with the old, `prior_vars` the new sites'
    prior variances, `new_mean` their prior means; without rows in `variances` means alone are
    worked out. Groups as in `sample_columns`.
    """
    num_columns, n = J.shape
    num_new = len(cross)
    zeros, weights = np.zeros(n * WIDTH), np.empty(n * WIDTH)
    result = np.empty(num_new * WIDTH)
    for group in range(worker, (num_columns + WIDTH - 1) // WIDTH, pieces):
        columns = order[group * WIDTH : min((group + 1) * WIDTH, num_columns)]
        depth = _depth(J, columns)
        packed = np.empty(_row(depth + 1))
        _pull(packed, columns, cov, mean, J, h, zeros, zeros, depth, weights)
        result[:] = 0.0
        _add_product(cross, weights, result)
        for lane in range(len(columns)):
            column = columns[lane]
            m = min(column, len(new_mean) - 1)
            for i in range(num_new):
                means[column, i] = new_mean[m, i] + result[i * WIDTH + lane]
        if len(variances) == 0:
            continue
        white = np.zeros(depth * WIDTH)
        for new in range(num_new):
            white[:] = 0.0
            for lane in range(len(columns)):
                sites, size = _sites(J[columns[lane]])
                for i in range(size):
                    white[i * WIDTH + lane] = (
                        math.sqrt(J[columns[lane], sites[i]]) * cross[new, sites[i]]
                    )
            explained = splat(0.0)
            for i in range(depth):
                row = _row(i)
                total = load(white, i * WIDTH)
                for j in range(i):
                    total = subtract_product(
                        total, load(packed, row + j * WIDTH), load(white, j * WIDTH)
                    )
                total = multiply(total, load(packed, row + i * WIDTH))
                store(white, i * WIDTH, total)
                explained = add_product(explained, total, total)
            store(result, 0, explained)
            for lane in range(len(columns)):
                variances[columns[lane], new] = max(prior_vars[new] - result[lane], 0.0)


@jit
def column_log_normalizers(worker, start, stop, pieces, order, cov, mean, J, h, out):
    """Log of the integral of each column's density into ``out[column]``.

    It is h'mean - mean'J mean / 2 + (u'u - u'B^-1 u) / 2 - log|B| / 2, u = (h - J mean) / s.
    """
    num_columns = len(J)
    for group in range(worker, (num_columns + WIDTH - 1) // WIDTH, pieces):
        columns = order[group * WIDTH : min((group + 1) * WIDTH, num_columns)]
        depth = _depth(J, columns)
        packed = np.empty(_row(depth + 1))
        for lane in range(WIDTH):
            column = columns[min(lane, len(columns) - 1)]
            sites, size = _sites(J[column])
            _pack(packed, lane, cov, sites, size, J[column], depth)
            centre = mean[min(column, len(mean) - 1)]
            total = 0.0
            for i in range(size):
                site = sites[i]
                precision, m = J[column, site], centre[site]
                surprise = h[column, site] - precision * m
                packed[_row(depth) + i * WIDTH + lane] = surprise / math.sqrt(precision)
                total += m * (h[column, site] - 0.5 * precision * m)
                total += 0.5 * surprise * surprise / precision
            out[column] = total
        _factor_lanes(packed, depth + 1)
        for lane in range(len(columns)):
            total = out[columns[lane]]
            for i in range(depth):
                white = packed[_row(depth) + i * WIDTH + lane]
                total += math.log(packed[_row(i) + i * WIDTH + lane]) - 0.5 * white * white
            out[columns[lane]] = total

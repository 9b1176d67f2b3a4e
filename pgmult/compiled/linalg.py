"""Small dense linear algebra whose bits do not depend on BLAS, its threads or the batch's split.

Single matrices, a few hundred rows at most, are factored by plain loops. Many Gaussian systems that
share a prior and differ in their diagonal are factored eight at a time, one system a SIMD lane
(`sample_diagonal_posteriors`), which is fast whatever the size of one system.
"""

import math

import numpy as np

from .jit import jit
from .simd import (
    WIDTH,
    add,
    add_product,
    divide,
    load,
    multiply,
    reciprocal_root,
    splat,
    store,
    subtract_product,
)
from .streams import gamma, normal, open_stream

# rows, a multiple of 4: two columns of 200 rows and 8 lanes take half of a 48 KiB cache
_BLOCK = 16


@jit(reassociate=True)
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
def solve_lower(root, x):
    """Replace x by L^-1 x, L the lower triangle of `root`."""
    for i in range(x.size):
        total = x[i]
        for j in range(i):
            total -= root[i, j] * x[j]
        x[i] = total / root[i, i]


@jit
def solve_lower_transpose(root, x):
    """Replace x by L'^-1 x, column after column of L'."""
    for i in range(x.size - 1, -1, -1):
        x[i] /= root[i, i]
        for j in range(i):
            x[j] -= root[i, j] * x[i]


@jit
def solve_lower_transpose_by_rows(root, x):
    """`solve_lower_transpose` with sums in another order: row after row of L'."""
    for i in range(x.size - 1, -1, -1):
        total = x[i]
        for j in range(i + 1, x.size):
            total -= root[j, i] * x[j]
        x[i] = total / root[i, i]


@jit
def product(a, b, out):
    """Write the matrix product ``a b`` to `out`, one sum after the other."""
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            total = 0.0
            for k in range(a.shape[1]):
                total += a[i, k] * b[k, j]
            out[i, j] = total


@jit
def invert_positive_definite(a):
    """The inverse of a symmetric positive definite matrix, exactly symmetric."""
    root = a.copy()
    cholesky(root)
    return inverse_from_root(root)


@jit
def inverse_from_root(root):
    """(L L')^-1, exactly symmetric."""
    n = root.shape[0]
    inverse_root = invert_lower(root)
    inverse = np.zeros((n, n))
    for k in range(n):
        for i in range(k + 1):
            scale = inverse_root[k, i]
            for j in range(i + 1):
                inverse[i, j] += scale * inverse_root[k, j]
    for i in range(n):
        for j in range(i):
            inverse[j, i] = inverse[i, j]
    return inverse


@jit
def scatter(x, mean):
    """Sum over rows of the outer products (x - mean)(x - mean)', ``(n, n)``."""
    num_rows, n = x.shape
    total = np.zeros((n, n))
    block = np.zeros((4, n))  # rows go four at a time: one pass over `total` for four of them
    for first in range(0, num_rows, 4):
        for r in range(4):
            for i in range(n):
                block[r, i] = x[first + r, i] - mean[i] if first + r < num_rows else 0.0
        for i in range(n):
            s0, s1, s2, s3 = block[0, i], block[1, i], block[2, i], block[3, i]
            for j in range(i + 1):
                total[i, j] += (s0 * block[0, j] + s1 * block[1, j]) + (
                    s2 * block[2, j] + s3 * block[3, j]
                )
    for i in range(n):
        for j in range(i):
            total[j, i] = total[i, j]
    return total


@jit(reassociate=True)
def sample_inverse_wishart(key, scale_factor, dof, cov):
    """Write a draw of IW(scale, dof) into `cov`; `scale_factor` is the Cholesky factor of scale.

    Bartlett (1933): with T lower triangular, T_ii^2 ~ chi2(dof - i) and standard normals below,
    (L T^-T)(L T^-T)' is inverse Wishart.
    """
    n = scale_factor.shape[0]
    state = open_stream(key, np.int64(0))
    bartlett = np.zeros((n, n))
    for i in range(n):
        x, state = gamma(0.5 * (dof - i), state)
        bartlett[i, i] = math.sqrt(2.0 * x)
        for j in range(i):
            bartlett[i, j], state = normal(state)
    inverse = invert_lower(bartlett)
    root = np.zeros((n, n))  # L T^-T
    for i in range(n):
        for j in range(n):
            total = 0.0
            for k in range(min(i, j) + 1):
                total += scale_factor[i, k] * inverse[j, k]
            root[i, j] = total
    for i in range(n):
        for j in range(i + 1):
            total = 0.0
            for k in range(n):
                total += root[i, k] * root[j, k]
            cov[i, j] = total
            cov[j, i] = total


@jit
def row_at(i):
    """Where row i of a packed lower triangle of lanes begins."""
    return i * (i + 1) // 2 * WIDTH


@jit
def _eliminate_packed(a, i, rows, j):
    """Finish columns j and j + 1 of up to four packed rows i, ..., all beyond row j + 1.

    A tile of four rows by two columns stays in registers while the products of its rows with rows
    j and j + 1, which are finished, are subtracted. Its second column is written first: where rows
    repeat, the first one stays.
    """
    left_row, right_row, c, d = row_at(j), row_at(j + 1), j * WIDTH, (j + 1) * WIDTH
    r0 = row_at(i)
    r1 = row_at(i + 1) if rows > 1 else r0
    r2 = row_at(i + 2) if rows > 2 else r0
    r3 = row_at(i + 3) if rows > 3 else r0
    x00, x01 = load(a, r0 + c), load(a, r0 + d)
    x10, x11 = load(a, r1 + c), load(a, r1 + d)
    x20, x21 = load(a, r2 + c), load(a, r2 + d)
    x30, x31 = load(a, r3 + c), load(a, r3 + d)
    for k in range(0, c, WIDTH):
        left, right = load(a, left_row + k), load(a, right_row + k)
        y = load(a, r0 + k)
        x00, x01 = subtract_product(x00, y, left), subtract_product(x01, y, right)
        y = load(a, r1 + k)
        x10, x11 = subtract_product(x10, y, left), subtract_product(x11, y, right)
        y = load(a, r2 + k)
        x20, x21 = subtract_product(x20, y, left), subtract_product(x21, y, right)
        y = load(a, r3 + k)
        x30, x31 = subtract_product(x30, y, left), subtract_product(x31, y, right)
    left, across, right = load(a, left_row + c), load(a, right_row + c), load(a, right_row + d)
    x00, x10 = multiply(x00, left), multiply(x10, left)
    x20, x30 = multiply(x20, left), multiply(x30, left)
    store(a, r3 + d, multiply(subtract_product(x31, x30, across), right))
    store(a, r2 + d, multiply(subtract_product(x21, x20, across), right))
    store(a, r1 + d, multiply(subtract_product(x11, x10, across), right))
    store(a, r0 + d, multiply(subtract_product(x01, x00, across), right))
    store(a, r3 + c, x30)
    store(a, r2 + c, x20)
    store(a, r1 + c, x10)
    store(a, r0 + c, x00)


@jit
def factor_lanes(a, n):
    """Cholesky factors, in place, of `n` packed rows of lanes, with *reciprocal* diagonals.

    A right-hand side packed as one more row comes out as the forward solution. Rows go in blocks
    that share the columns they read while those are in the nearest cache.
    """
    for block in range(0, n, _BLOCK):
        end = min(block + _BLOCK, n)
        for j in range(0, block, 2):
            for i in range(block, end, 4):
                _eliminate_packed(a, i, min(4, end - i), j)
        for i in range(block, end, 4):
            for j in range(block, i, 2):
                _eliminate_packed(a, i, min(4, end - i), j)
            for r in range(i, min(i + 4, end)):
                for c in range(i, r + 1):
                    x = load(a, row_at(r) + c * WIDTH)
                    for k in range(0, c * WIDTH, WIDTH):
                        x = subtract_product(x, load(a, row_at(r) + k), load(a, row_at(c) + k))
                    last = load(a, row_at(c) + c * WIDTH)
                    x = multiply(x, last) if c < r else reciprocal_root(x)
                    store(a, row_at(r) + c * WIDTH, x)


@jit
def solve_upper_lanes(a, x, n):
    """Solve L' y = x in place, L as `factor_lanes` leaves it."""
    for i in range(n - 1, -1, -1):
        row = row_at(i)
        y = multiply(load(x, i * WIDTH), load(a, row + i * WIDTH))
        store(x, i * WIDTH, y)
        for k in range(0, i * WIDTH, WIDTH):
            store(x, k, subtract_product(load(x, k), load(a, row + k), y))


@jit
def solve_lower_lanes(a, x, n):
    """Solve L y = x in place, L as `factor_lanes` leaves it."""
    for i in range(0, n, 4):
        r0 = row_at(i)
        r1 = row_at(i + 1) if i + 1 < n else r0
        r2 = row_at(i + 2) if i + 2 < n else r0
        r3 = row_at(i + 3) if i + 3 < n else r0
        last = (n - 1) * WIDTH
        x0, x1 = load(x, i * WIDTH), load(x, min((i + 1) * WIDTH, last))
        x2, x3 = load(x, min((i + 2) * WIDTH, last)), load(x, min((i + 3) * WIDTH, last))
        for k in range(0, i * WIDTH, WIDTH):
            y = load(x, k)
            x0 = subtract_product(x0, load(a, r0 + k), y)
            x1 = subtract_product(x1, load(a, r1 + k), y)
            x2 = subtract_product(x2, load(a, r2 + k), y)
            x3 = subtract_product(x3, load(a, r3 + k), y)
        for row in range(i, min(i + 4, n)):
            y = x0 if row == i else x1 if row == i + 1 else x2 if row == i + 2 else x3
            for k in range(i * WIDTH, row * WIDTH, WIDTH):
                y = subtract_product(y, load(a, row_at(row) + k), load(x, k))
            store(x, row * WIDTH, multiply(y, load(a, row_at(row) + row * WIDTH)))


@jit
def multiply_upper_lanes(a, x, n):
    """Replace x by L' x, L as `factor_lanes` leaves it."""
    for i in range(n):
        row = row_at(i)
        y = load(x, i * WIDTH)
        for k in range(0, i * WIDTH, WIDTH):
            store(x, k, add_product(load(x, k), load(a, row + k), y))
        store(x, i * WIDTH, divide(y, load(a, row + i * WIDTH)))


@jit
def solve_lanes(a, x, n):
    """Replace x by L'^-1 (L^-1 b + x), L the factor of `n` packed rows and b the row after them.

    A draw of the Gaussian of that precision and linear term where x comes in as standard normal
    noise, its mean where x comes in as 0. The rows become factors as by `factor_lanes`.
    """
    factor_lanes(a, n + 1)
    last = row_at(n)
    for k in range(0, n * WIDTH, WIDTH):
        store(x, k, add(load(x, k), load(a, last + k)))
    solve_upper_lanes(a, x, n)


@jit
def complete_lanes(inverse_root, root, whitened, x, depth):
    """Fill coordinates ``depth..n-1`` of x from the prior's conditional given the first `depth`.

    With z = L x standard normal under the prior (L the inverse of `root`), the leading z follow
    from the leading x, and the trailing z come in as noise in `whitened`; then x = root z.
    """
    n = root.shape[0]
    for i in range(depth):
        z = splat(0.0)
        for k in range(i + 1):
            z = add_product(z, splat(inverse_root[i, k]), load(x, k * WIDTH))
        store(whitened, i * WIDTH, z)
    for i in range(depth, n):
        y = splat(0.0)
        for k in range(i + 1):
            y = add_product(y, splat(root[i, k]), load(whitened, k * WIDTH))
        store(x, i * WIDTH, y)


@jit
def sample_diagonal_posteriors(
    worker, start, stop, pieces, order, depths, root, mean, J, h, key, out
):
    """Draw rows with density proportional to N(x | mean_r, cov) exp(-x' diag(J_r) x / 2 + h_r' x).

    Row r's observations reach only its first ``depths[r]`` coordinates, m for short: J and h are
    zero beyond. So only the m x m posterior of those is factored. Its prior precision is that of
    the *marginal* of the leading coordinates, L_m' L_m with L the inverse of the covariance's
    Cholesky factor `root`; the other coordinates follow from the prior's conditional by forward
    substitution. Cost: O(m^3) a row, eight rows at a time.

    Groups of rows of neighbouring depth (`order` sorts rows by depth) are factored side by side;
    this piece does groups ``worker, worker + pieces, ...``, which balances the pieces, so `start`
    and `stop` go unused. Returns 0, or 1 + a row without a proper posterior.
    """
    num_rows, n = out.shape
    inverse_root = invert_lower(root)
    precision = np.zeros((n, n))
    reached = 0
    packed = np.empty(row_at(n + 1))
    x = np.empty(n * WIDTH)
    whitened = np.empty(n * WIDTH)
    for group in range(worker, (num_rows + WIDTH - 1) // WIDTH, pieces):
        first = group * WIDTH
        width = min(WIDTH, num_rows - first)
        depth = depths[order[first + width - 1]]
        while reached < depth:  # the marginal's precision grows by one row of L at a time
            for i in range(reached + 1):
                for j in range(i + 1):
                    precision[i, j] += inverse_root[reached, i] * inverse_root[reached, j]
            reached += 1
        for i in range(depth):
            row = row_at(i)
            for j in range(i + 1):
                store(packed, row + j * WIDTH, splat(precision[i, j]))
        for lane in range(WIDTH):
            r = order[first + min(lane, width - 1)]
            m = min(r, mean.shape[0] - 1)
            for i in range(depth):
                packed[row_at(i) + i * WIDTH + lane] += J[r, i]
                packed[row_at(depth) + i * WIDTH + lane] = h[r, i] - J[r, i] * mean[m, i]
            packed[row_at(depth) + depth * WIDTH + lane] = 1.0
        for lane in range(width):
            state = open_stream(key, order[first + lane])
            for i in range(depth):
                x[i * WIDTH + lane], state = normal(state)
            for i in range(depth, n):
                whitened[i * WIDTH + lane], state = normal(state)
        solve_lanes(packed, x, depth)
        if depth < n:
            complete_lanes(inverse_root, root, whitened, x, depth)
        for lane in range(width):
            r = order[first + lane]
            m = min(r, mean.shape[0] - 1)
            for i in range(n):
                out[r, i] = mean[m, i] + x[i * WIDTH + lane]
                if not math.isfinite(out[r, i]):
                    return 1 + r
    return 0

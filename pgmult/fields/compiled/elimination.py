"""Partial Cholesky factorisation of a dense symmetric matrix, and products that go with it.

Matrices are the upper triangles of row-major arrays, held as flat vectors whose rows start a
multiple of eight numbers apart (`row_stride`), so that a row is worked on eight columns at a time.
Eliminating the first p unknowns of

    [[A, B], [., D]]    leaves    [[R, R^-T B], [., D - B' A^-1 B]],    R'R = A,

which is a Cholesky factor, a triangular solve and a Schur complement in one: the step of a Kalman
filter, of a conditional distribution and of a determinant. All of it is one loop over tiles of four
rows by sixteen columns that stay in registers. The bits depend on nothing but the matrix.
"""

import math

import numpy as np

from pgmult.compiled.jit import jit
from pgmult.compiled.simd import WIDTH, load, multiply, splat, store, subtract_product
from pgmult.compiled.vectors import index_of_largest


@jit
def row_stride(size):
    """Distance between rows of `size` numbers: whole vectors, and not a multiple of 512 bytes.

    Rows a high power of two apart would fall on the same lines of the nearest cache.
    """
    stride = (size + WIDTH - 1) // WIDTH * WIDTH
    return stride + WIDTH if stride % 64 == 0 else stride


@jit(within=True)
def _subtract_tile(a, stride, above, i, j, depth):
    """Four rows, sixteen columns, minus their products over the first `depth` rows."""
    second = j + WIDTH
    r0 = (above + i) * stride
    r1, r2, r3 = r0 + stride, r0 + 2 * stride, r0 + 3 * stride
    x00, x01 = load(a, r0 + j), load(a, r0 + second)
    x10, x11 = load(a, r1 + j), load(a, r1 + second)
    x20, x21 = load(a, r2 + j), load(a, r2 + second)
    x30, x31 = load(a, r3 + j), load(a, r3 + second)
    for k in range(0, depth * stride, stride):
        left, right = load(a, k + j), load(a, k + second)
        y = splat(a[k + i])
        x00, x01 = subtract_product(x00, y, left), subtract_product(x01, y, right)
        y = splat(a[k + i + 1])
        x10, x11 = subtract_product(x10, y, left), subtract_product(x11, y, right)
        y = splat(a[k + i + 2])
        x20, x21 = subtract_product(x20, y, left), subtract_product(x21, y, right)
        y = splat(a[k + i + 3])
        x30, x31 = subtract_product(x30, y, left), subtract_product(x31, y, right)
    store(a, r0 + j, x00)
    store(a, r0 + second, x01)
    store(a, r1 + j, x10)
    store(a, r1 + second, x11)
    store(a, r2 + j, x20)
    store(a, r2 + second, x21)
    store(a, r3 + j, x30)
    store(a, r3 + second, x31)


@jit
def _subtract_rows(a, stride, above, i, rows, width, depth):
    """Rows ``i..i+rows-1`` from their diagonal on, minus their products over `depth` rows.

    `above` rows stand before row 0.
    """
    j = i // WIDTH * WIDTH
    if rows == 4:
        while j + 2 * WIDTH <= stride and j < width:
            _subtract_tile(a, stride, above, i, j, depth)
            j += 2 * WIDTH
    while j < width:
        for r in range(i, i + rows):
            here = (above + r) * stride + j
            x = load(a, here)
            for k in range(0, depth * stride, stride):
                x = subtract_product(x, splat(a[k + r]), load(a, k + j))
            store(a, here, x)
        j += WIDTH


@jit
def eliminate(a, stride, pivots, size, width):
    """Eliminate the first `pivots` of `size` unknowns in place.

    `a` is the upper triangle; what lies below the diagonal is neither meaningful before nor after.
    Columns from `size` to `width` are right-hand sides: B and D above may have more columns.
    Returns 0, or 1 + the row whose pivot is not positive.
    """
    for i in range(0, pivots, 4):
        rows = min(4, pivots - i)
        _subtract_rows(a, stride, 0, i, rows, width, i)
        for r in range(i, i + rows):
            first = r // WIDTH * WIDTH
            for k in range(i, r):
                y = splat(a[k * stride + r])
                for j in range(first, width, WIDTH):
                    x = load(a, r * stride + j)
                    store(a, r * stride + j, subtract_product(x, y, load(a, k * stride + j)))
            pivot = a[r * stride + r]
            if not pivot > 0.0:
                return 1 + r
            scale = splat(1.0 / math.sqrt(pivot))
            for j in range(first, width, WIDTH):
                store(a, r * stride + j, multiply(scale, load(a, r * stride + j)))
    for i in range(pivots, size, 4):
        _subtract_rows(a, stride, 0, i, min(4, size - i), width, pivots)
    return 0


@jit
def mirror(a, stride, first, size):
    """Copy the upper triangle of unknowns ``first..size-1`` to the lower one."""
    for top in range(first, size, WIDTH):
        bottom = min(top + WIDTH, size)
        for r in range(top, size):
            for c in range(top, min(bottom, r)):
                a[r * stride + c] = a[c * stride + r]


@jit
def semidefinite_root(cov, tolerance):
    """A matrix X with X'X = `cov` and as many rows as `cov` has rank, by pivoting.

    Stops when no variance beyond `tolerance` times the largest is left, so a covariance that is
    singular to working precision needs nothing added to its diagonal. ``(rank, n)``.
    """
    n = cov.shape[0]
    root = np.zeros((n, n))
    left = np.empty(n)
    for i in range(n):
        left[i] = cov[i, i]
    enough = tolerance * left[index_of_largest(left)]
    for k in range(n):
        pivot = index_of_largest(left)
        if not left[pivot] > enough:
            return root[:k].copy()
        for j in range(n):
            root[k, j] = cov[pivot, j]
        for i in range(k):
            scale = root[i, pivot]
            for j in range(n):
                root[k, j] -= scale * root[i, j]
        scale = 1.0 / math.sqrt(left[pivot])
        for j in range(n):
            root[k, j] *= scale
            left[j] -= root[k, j] * root[k, j]
        left[pivot] = 0.0
    return root

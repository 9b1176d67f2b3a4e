"""P = L D L' of sparse matrices, L unit lower triangular, row by row of L.

The columns that row k of L touches are those on the paths from the entries of row k of P to k in
the elimination tree (Davis 2005, "Algorithm 849: a concise sparse Cholesky factorization package").
Matrices are given by the columns of their upper triangles, diagonal included.
"""

from typing import Any, NamedTuple

import numpy as np

from pgmult.compiled.jit import jit


class Lower(NamedTuple):
    """Columns of L below its diagonal, and D."""

    indptr: Any
    rows: Any
    values: Any
    pivots: Any


@jit
def tree_of(indptr, rows):
    """The elimination tree, -1 above its roots, and where each column of L begins."""
    n = len(indptr) - 1
    parent, visited, count = np.full(n, -1), np.empty(n, np.int64), np.zeros(n, np.int64)
    for k in range(n):
        visited[k] = k
        for p in range(indptr[k], indptr[k + 1]):
            i = rows[p]
            while visited[i] != k:
                if parent[i] < 0:
                    parent[i] = k
                count[i] += 1
                visited[i] = k
                i = parent[i]
    starts = np.zeros(n + 1, np.int64)
    starts[1:] = np.cumsum(count)
    return parent, starts


@jit
def factor(indptr, rows, values, parent, starts):
    """L and D, and whether the matrix is positive definite."""
    n = len(parent)
    lower = Lower(starts, np.empty(starts[n], np.int64), np.empty(starts[n]), np.empty(n))
    filled, visited = starts[:n].copy(), np.empty(n, np.int64)
    path, touched, row = np.empty(n, np.int64), np.empty(n, np.int64), np.zeros(n)
    for k in range(n):
        visited[k] = k
        first = n
        for p in range(indptr[k], indptr[k + 1]):
            i = rows[p]
            row[i] += values[p]
            length = 0
            while visited[i] != k:
                path[length] = i
                visited[i] = k
                length += 1
                i = parent[i]
            while length > 0:
                first, length = first - 1, length - 1
                touched[first] = path[length]
        pivot, row[k] = row[k], 0.0
        for t in range(first, n):
            i = touched[t]
            value, row[i] = row[i], 0.0
            for p in range(starts[i], filled[i]):
                row[lower.rows[p]] -= lower.values[p] * value
            share = value / lower.pivots[i]
            pivot -= share * value
            lower.rows[filled[i]], lower.values[filled[i]] = k, share
            filled[i] += 1
        if not pivot > 0.0:
            return lower, False
        lower.pivots[k] = pivot
    return lower, True


@jit
def solve_lower(lower, x):
    """Replace x by L^-1 x."""
    for j in range(len(x)):
        for p in range(lower.indptr[j], lower.indptr[j + 1]):
            x[lower.rows[p]] -= lower.values[p] * x[j]


@jit
def solve_upper(lower, x):
    """Replace x by L'^-1 x."""
    for j in range(len(x) - 1, -1, -1):
        total = x[j]
        for p in range(lower.indptr[j], lower.indptr[j + 1]):
            total -= lower.values[p] * x[lower.rows[p]]
        x[j] = total


@jit
def multiply_upper(lower, x):
    """Replace x by L' x."""
    for j in range(len(x)):
        total = x[j]
        for p in range(lower.indptr[j], lower.indptr[j + 1]):
            total += lower.values[p] * x[lower.rows[p]]
        x[j] = total

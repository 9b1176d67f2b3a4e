"""Products of a sparse design with a small block for each of its rows: see `Several`."""

import numpy as np

from pgmult.compiled.jit import jit


@jit
def weighted_gram(rows, columns, blocks, pattern):
    """Sum over rows n of a_n a_n' times block n, at the entries of a pattern: ``(nnz, C, C)``.

    `rows`, `columns` and `pattern` are ``(indptr, indices, values)`` of the design, of its
    transpose, and ``(indptr, indices, mirrors)`` of the product, with sorted indices; entry e of
    the pattern is the transpose of entry ``mirrors[e]``. Blocks are symmetric.
    """
    row_ptr, row_columns, row_values = rows
    column_ptr, column_rows, column_values = columns
    ptr, indices, mirrors = pattern
    size = blocks.shape[1]
    out = np.zeros((len(indices), size, size))
    place = np.empty(len(ptr) - 1, np.int64)
    for i in range(len(ptr) - 1):
        for e in range(ptr[i], ptr[i + 1]):
            place[indices[e]] = e
        for q in range(column_ptr[i], column_ptr[i + 1]):
            n = column_rows[q]
            block = blocks[n]
            for r in range(row_ptr[n], row_ptr[n + 1]):
                if row_columns[r] < i:
                    continue
                product = column_values[q] * row_values[r]
                target = out[place[row_columns[r]]]
                for s in range(size):
                    for t in range(size):
                        target[s, t] += product * block[s, t]
        for e in range(ptr[i], ptr[i + 1]):
            if indices[e] > i:
                for s in range(size):
                    for t in range(size):
                        out[mirrors[e], s, t] = out[e, t, s]
    return out


@jit
def row_covariances(rows, covariance, num):
    """Covariances of the `num` predictors of each row, ``(num_rows, num, num)``.

    `covariance` is that of the weights by pairs of columns of the design, ``(num_columns,
    num_columns, num * num)``.
    """
    ptr, columns, values = rows
    out, half = np.zeros((len(ptr) - 1, num, num)), np.empty(num * num)
    for n in range(len(ptr) - 1):
        half[:] = 0.0
        for q in range(ptr[n], ptr[n + 1]):
            beside = covariance[columns[q]]
            for r in range(ptr[n], q + 1):
                product = values[q] * values[r]
                if r == q:
                    product *= 0.5
                block = beside[columns[r]]
                for k in range(len(half)):
                    half[k] += product * block[k]
        for s in range(num):
            for t in range(num):
                out[n, s, t] = half[s * num + t] + half[t * num + s]
    return out


@jit
def quadratic(psi, J, h, out):
    """Sum over rows of h' psi - psi' J psi / 2; set `out` to the derivatives, h - J psi."""
    total, product = 0.0, np.empty(psi.shape[1])
    for n in range(psi.shape[0]):
        product[:] = 0.0
        for t in range(psi.shape[1]):  # blocks are symmetric: their rows are their columns
            factor, column = psi[n, t], J[n, t]
            for s in range(len(product)):
                product[s] += column[s] * factor
        for s in range(len(product)):
            out[n, s] = h[n, s] - product[s]
            total += psi[n, s] * (h[n, s] - 0.5 * product[s])
    return total

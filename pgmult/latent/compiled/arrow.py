"""Elimination of many small blocks that meet only in a few other weights: see `ArrowFactor`.

What stands between a block and the others has few full columns, for a level of one grouping meets
few levels of another: those of block g are ``columns[indptr[g]:indptr[g + 1]]``, with ``(d,)``
values each.
"""

from typing import Any, NamedTuple

import numpy as np

from pgmult.compiled.jit import jit
from pgmult.compiled.linalg import cholesky, invert_lower
from pgmult.compiled.vectors import copy, dot


class Between(NamedTuple):
    """What stands between blocks and others: ``values (num_entries, d)``."""

    indptr: Any
    columns: Any
    values: Any


@jit
def _subtract(a, factor, b):
    """Subtract `factor` times b from a."""
    for j in range(a.shape[0]):
        a[j] -= factor * b[j]


@jit
def eliminate(blocks, between, others):
    """Cholesky factors of blocks, their inverses, these times `between`, and the complement.

    Only what is on and below the diagonal of `others` is looked at and returned. The last is
    whether all blocks are positive definite.
    """
    num, d, _ = blocks.shape
    indptr, columns, values = between
    lower, inverse = blocks.copy(), np.empty((num, d, d))
    across, complement = np.empty((len(columns), d)), others.copy()
    for g in range(num):
        if cholesky(lower[g]) != 0:
            return lower, inverse, across, complement, False
        inverted = invert_lower(lower[g])
        for i in range(d):
            copy(inverted[i], inverse[g, i])
        for e in range(indptr[g], indptr[g + 1]):
            for i in range(d):
                across[e, i] = 0.0
                for j in range(i + 1):
                    across[e, i] += inverse[g, i, j] * values[e, j]
            for f in range(indptr[g], e + 1):  # columns are in order
                total = 0.0
                for i in range(d):
                    total += across[e, i] * across[f, i]
                complement[columns[e], columns[f]] -= total
    return lower, inverse, across, complement, True


@jit
def forward(inverse, between, inner, b):
    """The factor's inverse times b."""
    num, d, _ = inverse.shape
    indptr, columns, across = between
    out, remaining = np.empty(len(b)), b[num * d :].copy()
    for g in range(num):
        top = out[g * d : (g + 1) * d]
        for i in range(d):
            top[i] = 0.0
            for j in range(i + 1):
                top[i] += inverse[g, i, j] * b[g * d + j]
        for e in range(indptr[g], indptr[g + 1]):
            for i in range(d):
                remaining[columns[e]] -= across[e, i] * top[i]
    done = out[num * d :]
    for i in range(len(remaining)):
        done[i] = (remaining[i] - dot(inner[i, :i], done[:i])) / inner[i, i]
    return out


@jit
def backward(inverse, between, inner, e):
    """The transposed factor's inverse times e."""
    num, d, _ = inverse.shape
    indptr, columns, across = between
    out, top = np.empty(len(e)), np.empty(d)
    others = out[num * d :]
    copy(e[num * d :], others)
    for i in range(len(others) - 1, -1, -1):
        others[i] /= inner[i, i]
        _subtract(others[:i], others[i], inner[i, :i])
    for g in range(num):
        for i in range(d):
            top[i] = e[g * d + i]
        for f in range(indptr[g], indptr[g + 1]):
            for i in range(d):
                top[i] -= across[f, i] * others[columns[f]]
        for i in range(d):
            out[g * d + i] = 0.0
            for j in range(i, d):
                out[g * d + i] += inverse[g, j, i] * top[j]
    return out


@jit
def multiply_back(lower, between, inner, x):
    """The transposed factor times x: what `backward` undoes."""
    num, d, _ = lower.shape
    indptr, columns, across = between
    out, others = np.zeros(len(x)), x[num * d :]
    for i in range(len(others)):
        _subtract(out[num * d : num * d + i + 1], -others[i], inner[i, : i + 1])
    for g in range(num):
        for i in range(d):
            for j in range(i + 1):
                out[g * d + j] += lower[g, i, j] * x[g * d + i]
        for e in range(indptr[g], indptr[g + 1]):
            for i in range(d):
                out[g * d + i] += across[e, i] * others[columns[e]]
    return out


@jit
def forward_columns(inverse, between, b):
    """What `forward` makes of the columns of b before it comes to the others, in place."""
    num, d, _ = inverse.shape
    indptr, columns, across = between
    for g in range(num):
        for i in range(d - 1, -1, -1):
            row = b[g * d + i]
            for n in range(len(row)):
                row[n] *= inverse[g, i, i]
            for j in range(i):
                _subtract(row, -inverse[g, i, j], b[g * d + j])
        for e in range(indptr[g], indptr[g + 1]):
            for i in range(d):
                _subtract(b[num * d + columns[e]], across[e, i], b[g * d + i])

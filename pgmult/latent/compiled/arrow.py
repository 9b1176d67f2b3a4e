"""Solves with the factor of an arrow: blocks that meet only in a few other weights.

See `pgmult.latent.factors`: `inverse` ``(g, d, d)`` holds the inverses of the blocks' Cholesky
factors, `across` ``(g, d, r)`` these times what stands between blocks and others, and `lower`
``(r, r)`` is the factor of what is left of the others.
"""

import numpy as np

from pgmult.compiled.jit import jit


@jit(reassociate=True)
def _dot(a, b):
    total = 0.0
    for j in range(a.shape[0]):
        total += a[j] * b[j]
    return total


@jit
def _add(a, factor, b):
    """Add `factor` times b to a."""
    for j in range(a.shape[0]):
        a[j] += factor * b[j]


@jit
def forward(inverse, across, lower, b):
    """The factor's inverse times b."""
    num, d, r = across.shape
    out = np.empty(len(b))
    rest = b[num * d :].copy()
    for g in range(num):
        for i in range(d):
            total = 0.0
            for j in range(i + 1):
                total += inverse[g, i, j] * b[g * d + j]
            out[g * d + i] = total
            _add(rest, -total, across[g, i])
    for i in range(r):
        out[num * d + i] = (rest[i] - _dot(lower[i, :i], out[num * d : num * d + i])) / lower[i, i]
    return out


@jit
def backward(inverse, across, lower, e):
    """The transposed factor's inverse times e."""
    num, d, r = across.shape
    out = np.empty(len(e))
    rest = e[num * d :].copy()
    for i in range(r - 1, -1, -1):
        rest[i] /= lower[i, i]
        _add(rest[:i], -rest[i], lower[i, :i])
    top = np.empty(d)
    for g in range(num):
        for i in range(d):
            top[i] = e[g * d + i] - _dot(across[g, i], rest)
        for i in range(d):
            total = 0.0
            for j in range(i, d):
                total += inverse[g, j, i] * top[j]
            out[g * d + i] = total
    out[num * d :] = rest
    return out

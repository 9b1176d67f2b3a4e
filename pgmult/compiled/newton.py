"""Many small symmetric systems at once, each with word of whether it is positive definite."""

import math

import numpy as np

from .jit import jit
from .linalg import cholesky, invert_lower


@jit
def solve_rows(worker, start, stop, matrices, vectors, solutions, is_definite):
    """``solutions[r] = matrices[r]^-1 vectors[r]`` where the matrix is positive definite."""
    n = matrices.shape[1]
    for r in range(start, stop):
        root = matrices[r].copy()
        is_definite[r] = cholesky(root) == 0
        if not is_definite[r]:
            continue
        x = solutions[r]
        for i in range(n):
            total = vectors[r, i]
            for j in range(i):
                total -= root[i, j] * x[j]
            x[i] = total / root[i, i]
        for i in range(n - 1, -1, -1):
            x[i] /= root[i, i]
            for j in range(i):
                x[j] -= root[i, j] * x[i]


@jit
def invert_rows(worker, start, stop, matrices, inverses, log_dets, is_definite):
    """Inverses and log determinants of the matrices that are positive definite."""
    n = matrices.shape[1]
    for r in range(start, stop):
        root = matrices[r].copy()
        is_definite[r] = cholesky(root) == 0
        if not is_definite[r]:
            continue
        log_dets[r] = 0.0
        for i in range(n):
            log_dets[r] += 2.0 * math.log(root[i, i])
        inverse_root = invert_lower(root)
        inverse = np.zeros((n, n))
        for k in range(n):
            for i in range(k + 1):
                scale = inverse_root[k, i]
                for j in range(i + 1):
                    inverse[i, j] += scale * inverse_root[k, j]
        for i in range(n):
            for j in range(i + 1):
                inverses[r, i, j] = inverse[i, j]
                inverses[r, j, i] = inverse[i, j]

"""Many small symmetric systems at once, each with word of whether it is positive definite."""

import math

from .jit import jit
from .linalg import cholesky, inverse_from_root, solve_with_root


@jit
def solve_rows(worker, start, stop, matrices, vectors, solutions, is_definite):
    """``solutions[r] = matrices[r]^-1 vectors[r]`` where the matrix is positive definite."""
    for r in range(start, stop):
        root = matrices[r].copy()
        is_definite[r] = cholesky(root) == 0
        if is_definite[r]:
            solutions[r] = vectors[r]
            solve_with_root(root, solutions[r])


@jit
def invert_rows(worker, start, stop, matrices, inverses, log_dets, is_definite):
    """Inverses and log determinants of the matrices that are positive definite."""
    for r in range(start, stop):
        root = matrices[r].copy()
        is_definite[r] = cholesky(root) == 0
        if is_definite[r]:
            log_dets[r] = 0.0
            for i in range(root.shape[0]):
                log_dets[r] += 2.0 * math.log(root[i, i])
            inverses[r] = inverse_from_root(root)

"""Gaussian fields in a basis of few functions: factors of each column's precision.

f = Phi z at the inputs, z ~ N(0, I) of `rank` coordinates. A column with the potential
exp(-f' J f / 2 + h' f) has the precision B = I + Phi' J Phi and the linear term b = Phi' h, so with
B = R'R and u = R^-T b the log normaliser is u'u / 2 - log |R|, and the mean R^-1 u.
O(n rank^2 / 2 + rank^3 / 6) multiplications a column.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgmult.compiled.jit import jit

from .elimination import eliminate, row_stride, subtract_products

_BLOCK = 128  # inputs added to B at a time


class Found(NamedTuple):
    """What is found of each column.

    Attributes
    ----------
    log_normalizers : array, ``(num_columns,)``
    explained : array, ``(num_columns, num_directions)``
        x' B^-1 x for each direction x.
    means : array, ``(num_columns, num_tilts, rank)``
        Of z.
    """

    log_normalizers: NDArray[np.float64]
    explained: NDArray[np.float64]
    means: NDArray[np.float64]


@jit(reassociate=True)
def _solve_upper(a, stride, x):
    """Solve R y = x in place, R the upper triangle of `a`."""
    for i in range(x.shape[0] - 1, -1, -1):
        total = x[i]
        for j in range(i + 1, x.shape[0]):
            total -= a[i * stride + j] * x[j]
        x[i] = total / a[i * stride + i]


@jit
def factor_columns(worker, start, stop, basis, J, h, directions, found):
    """Factor each column's precision: log normalisers, variances and means.

    `basis` is (num_inputs, rank), J (num_columns, num_inputs), h (num_columns, num_tilts,
    num_inputs), of which the first has a log normaliser, `directions` (num_directions, rank).
    Returns 0, or 1 + a column whose precision is not positive definite to working precision.
    """
    num_inputs, rank = basis.shape
    log_normalizers, explained, means = found
    first = rank + h.shape[1]
    width = first + directions.shape[0]
    stride = row_stride(width)
    a = np.zeros((_BLOCK + rank) * stride)
    system = a[_BLOCK * stride :]
    for c in range(start, stop):
        system[:] = 0.0
        for i in range(rank):
            system[i * stride + i] = -1.0
        for begin in range(0, num_inputs, _BLOCK):
            rows = min(_BLOCK, num_inputs - begin)
            for i in range(rows):
                root = math.sqrt(J[c, begin + i])
                for j in range(rank):
                    a[i * stride + j] = root * basis[begin + i, j]
            a[rows * stride : _BLOCK * stride] = 0.0
            subtract_products(a, stride, _BLOCK, rank)
        for i in range(rank):
            for j in range(i, rank):
                system[i * stride + j] *= -1.0
            for j in range(rank, width):
                system[i * stride + j] = 0.0
        for k in range(h.shape[1]):
            for i in range(num_inputs):
                for j in range(rank):
                    system[j * stride + rank + k] += h[c, k, i] * basis[i, j]
        for r in range(directions.shape[0]):
            for j in range(rank):
                system[j * stride + first + r] = directions[r, j]
        if eliminate(system, stride, rank, rank, width):
            return 1 + c
        total = 0.0
        explained[c] = 0.0
        for i in range(rank):
            u = system[i * stride + rank]
            total += 0.5 * u * u - math.log(system[i * stride + i])
            for r in range(directions.shape[0]):
                explained[c, r] += system[i * stride + first + r] ** 2
        if not math.isfinite(total):
            return 1 + c
        log_normalizers[c] = total
        for k in range(h.shape[1]):
            for i in range(rank):
                means[c, k, i] = system[i * stride + rank + k]
            _solve_upper(system, stride, means[c, k])
    return 0

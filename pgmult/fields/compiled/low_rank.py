"""Gaussian fields in a basis of few functions: factors of each column's precision.

f = Phi z at the inputs, z ~ N(0, I) of `rank` coordinates. A column with the potential
exp(-f' J f / 2 + h' f) has the precision B = I + Phi' J Phi and the linear term b = Phi' h, so with
B = R'R and u = R^-T b the log normaliser is u'u / 2 - log |R|, and a draw R^-1 (u + noise).
O(n rank^2 / 2 + rank^3 / 6) multiplications a column.
"""

import math

import numpy as np

from pgmult.compiled.jit import jit
from pgmult.compiled.streams import normal, open_stream

from .elimination import eliminate, row_stride, subtract_products

_BLOCK = 128  # inputs added to B at a time


@jit(reassociate=True)
def _solve_upper(a, stride, x):
    """Solve R y = x in place, R the upper triangle of `a`."""
    for i in range(x.shape[0] - 1, -1, -1):
        total = x[i]
        for j in range(i + 1, x.shape[0]):
            total -= a[i * stride + j] * x[j]
        x[i] = total / a[i * stride + i]


@jit
def factor_columns(
    worker, start, stop, key, basis, J, h, directions, log_normalizers, explained, means, draws
):
    """Factor each column's precision: log normalisers, variances, means and draws.

    `basis` is (num_inputs, rank), J and h (num_columns, num_inputs); `explained`, (num_columns,
    num_directions), gets x' B^-1 x for the rows x of `directions`, (num_directions, rank). `means`
    and `draws`, (num_columns, rank), get those of z unless they are empty. Returns 0, or 1 + a
    column whose precision is not positive definite to working precision.
    """
    num_inputs, rank = basis.shape
    width = rank + 1 + directions.shape[0]
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
        for i in range(num_inputs):
            for j in range(rank):
                system[j * stride + rank] += h[c, i] * basis[i, j]
        for r in range(directions.shape[0]):
            for j in range(rank):
                system[j * stride + rank + 1 + r] = directions[r, j]
        if eliminate(system, stride, rank, rank, width):
            return 1 + c
        total = 0.0
        explained[c] = 0.0
        for i in range(rank):
            u = system[i * stride + rank]
            total += 0.5 * u * u - math.log(system[i * stride + i])
            for r in range(directions.shape[0]):
                explained[c, r] += system[i * stride + rank + 1 + r] ** 2
        if not math.isfinite(total):
            return 1 + c
        log_normalizers[c] = total
        if means.shape[0]:
            for i in range(rank):
                means[c, i] = system[i * stride + rank]
            _solve_upper(system, stride, means[c])
        if draws.shape[0]:
            state = open_stream(key, c)
            for i in range(rank):
                noise, state = normal(state)
                draws[c, i] = system[i * stride + rank] + noise
            _solve_upper(system, stride, draws[c])
    return 0

"""Loops over many points that the compiler turns into vector instructions.

Points stand side by side, coordinate d of point i at ``z[d, i]``.
"""

import math

import numpy as np

from .jit import jit

FACTORS = 512  # each at most 2: their product does not overflow
_LOG2E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
# of power series by Horner's rule: the coefficient that it starts from, and the others
EXP_TOP, EXP_REST = 1.0 / 479001600.0, tuple(1.0 / math.factorial(k) for k in range(11, -1, -1))
_LOG_TOP, _LOG_REST = 1.0 / 31.0, tuple(1.0 / k for k in range(29, 0, -2))


@jit
def copy(source, out):
    """``out[i]`` = source[i]. Numba's ``out[:] = source`` takes 2 s to compile: its errors do."""
    for i in range(source.shape[0]):
        out[i] = source[i]


@jit(inline=True)
def exp_minus(a):
    """exp(-a), to 2 units in the last place, in operations that vectorise.

    `a` is moved into [-700, 700] first.
    """
    a = min(max(a, -700.0), 700.0)
    n = math.floor(0.5 - a * _LOG2E)
    r = (-a - n * _LN2_HIGH) - n * _LN2_LOW
    p = EXP_TOP
    for coefficient in EXP_REST:
        p = p * r + coefficient
    return p * np.int64((np.int64(n) + np.int64(1023)) << np.int64(52)).view(np.float64)


@jit(inline=True)
def log1p(u):
    """log(1 + u) for u in [0, 1], to a few units in the last place, in what vectorises."""
    t = u / (2.0 + u)
    s = t * t
    p = _LOG_TOP
    for coefficient in _LOG_REST:
        p = p * s + coefficient
    return 2.0 * t * p


@jit(reassociate=True)
def combine(row, constant, z, out):
    """``out[i]`` = constant + sum_d row[d] z[d, i]."""
    depth, size = z.shape[0], out.shape[0]
    for i in range(size):
        out[i] = constant
    d = 0
    while d + 4 <= depth:
        c0, c1, c2, c3 = row[d], row[d + 1], row[d + 2], row[d + 3]
        z0, z1, z2, z3 = z[d], z[d + 1], z[d + 2], z[d + 3]
        for i in range(size):
            out[i] += (c0 * z0[i] + c1 * z1[i]) + (c2 * z2[i] + c3 * z3[i])
        d += 4
    while d < depth:
        c0, z0 = row[d], z[d]
        for i in range(size):
            out[i] += c0 * z0[i]
        d += 1


@jit
def multiply_softplus(psi, product, linear):
    """Multiply 1 + exp(-|psi|) into `product` and add max(psi, 0) to `linear`.

    The logarithm of the product plus the sum is a sum of log(1 + exp(psi)): one logarithm serves
    up to `FACTORS` of them.
    """
    for i in range(psi.shape[0]):
        product[i] *= 1.0 + exp_minus(abs(psi[i]))
        linear[i] += max(psi[i], 0.0)


@jit(reassociate=True)
def dot(a, b):
    """Sum of products."""
    total = 0.0
    for d in range(a.shape[0]):
        total += a[d] * b[d]
    return total


@jit
def index_of_largest(x):
    """The first of the largest entries."""
    best = 0
    for i in range(1, x.size):
        if x[i] > x[best]:
            best = i
    return best

"""Pólya-gamma draws, PG(b, c): scalar functions that other compiled kernels inline.

``draw(b, c, state)`` takes real b >= 0, ``draw_integer(n, c, state)`` a count; both return
``(omega, state)``. Nan, a negative b or an infinite b gives nan; b = 0 gives exactly 0.
"""

import math

import numpy as np

from . import streams
from ._jit import jit

_MOST_PROPOSALS = 1000  # every acceptance probability here exceeds 1/2: 2**-1000 never happens
_LARGEST_TILTED = 8.0  # beyond it PG(b <= 1, c) has less than 2**-53 of its mass


@jit
def _cumulants(c):
    """The first three cumulants of PG(1, c); b times these are those of PG(b, c)."""
    if c < 0.35:
        w = 0.25 * c * c
        first = 0.25 + w * (-1 / 12 + w * (1 / 30 - w * (17 / 1260 - w * 0.005467372134038801)))
        second = 1 / 24 + w * (
            -1 / 30 + w * (17 / 840 - w * (0.010934744268077601 - w * 0.005539522206188873))
        )
        third = 1 / 60 + w * (
            -17 / 840
            + w
            * (
                0.0164021164021164
                - w * (0.011079044412377746 - w * (0.006735240068573402 - w * 0.00382156526600971))
            )
        )
        return first, second, third
    e = math.exp(-c)
    inverse = 1.0 / (1.0 + e)
    t = (1.0 - e) * inverse
    s = 4.0 * e * inverse * inverse
    r = 1.0 / c
    first = 0.5 * t * r
    second = 0.25 * r * r * (2.0 * t * r - s)
    third = 0.25 * r * r * r * ((6.0 * t * r - 3.0 * s) * r - t * s)
    return first, second, third


@jit
def _inverse_gaussian_series(b, c, state):
    """Exact: an inverse Gaussian proposal, thinned by the alternating series of the density."""
    for _ in range(_MOST_PROPOSALS):
        x, state = streams.normal(state)
        v = x * x / b
        if c < 1.0:
            s = c + v + math.sqrt(v * (2.0 * c + v))
        else:
            v /= c
            s = c * (1.0 + v + math.sqrt(v * (2.0 + v)))
        u, state = streams.uniform(state)
        x = 0.5 * b / s
        if u * (1.0 + c / s) > 1.0:
            x = 0.5 * b / c * (s / c)
        u, state = streams.uniform(state)
        if c < 4.0 and x > _LARGEST_TILTED:
            continue
        # reject where u > 1 - a_1 + a_2 - ..., a_n = (b)_n / n! (2n + b) / b exp(-n (n + b) / 2x)
        total = 1.0
        term = 1.0
        ratio = b
        n = 1
        rate = -0.5 / x
        while n < 100:
            ratio_now = ratio * (2.0 * n + b) / b
            now = ratio_now * math.exp(rate * n * (n + b))
            falling = now <= term
            if n % 2 == 1:
                total -= now
                if falling and u <= total:
                    return x, state
            else:
                total += now
                if falling and u > total:
                    break
            if now < 1e-18 and falling:
                if u <= total:
                    return x, state
                break
            term = now
            ratio *= (b + n) / (n + 1.0)
            n += 1
    return 0.5 * b * math.tanh(0.5 * c) / c if c > 0.0 else 0.25 * b, state


@jit
def _gamma_series(b, c, state):
    """The leading terms of the infinite gamma sum, and a shifted gamma with the cumulants of the
    rest."""
    first, second, third = _cumulants(c)
    terms = 2 if b < 200.0 else (1 if b < 5000.0 else 0)
    omega = 0.0
    rate = 0.5 * math.pi * math.pi + 0.5 * c * c
    if terms > 0:
        x, state = streams.gamma(b, state)
        r = 1.0 / rate
        omega += x * r
        first, second, third = first - r, second - r * r, third - 2.0 * r * r * r
    if terms > 1:
        x, state = streams.gamma(b, state)
        r = 1.0 / (rate + 4.0 * math.pi * math.pi)
        omega += x * r
        first, second, third = first - r, second - r * r, third - 2.0 * r * r * r
    scale = 0.5 * third / second
    shape = second / (scale * scale)
    x, state = streams.gamma(b * shape, state)
    return omega + b * (first - shape * scale) + scale * x, state


@jit
def draw(b, c, state):
    """One draw from PG(b, c), b >= 0 and c real."""
    c = abs(c)
    if not (b > 0.0 and b < math.inf and c < math.inf):
        return (0.0 if b == 0.0 and c == c else math.nan), state
    if b <= 1.0 or b * math.exp(-c) < 0.3:
        return _inverse_gaussian_series(b, c, state)
    if b < 5.0:
        whole = math.floor(b)
        omega = 0.0
        if b > whole:
            omega, state = _inverse_gaussian_series(b - whole, c, state)
        for _ in range(np.int64(whole)):
            x, state = _inverse_gaussian_series(1.0, c, state)
            omega += x
        return omega, state
    return _gamma_series(b, c, state)


@jit
def draw_integer(n, c, state):
    """One draw from PG(n, c), n >= 0 an integer."""
    return draw(np.float64(n), c, state)

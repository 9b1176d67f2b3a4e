"""Keyed random streams: row i's random numbers are a pure function of (key, i).

A block of a sweep draws one 128-bit key from its chain's `numpy.random.Generator`. Row i of the
block then opens its own stream, ``state = open_stream(key, i)``: Philox4x64-10 (Salmon et al.
2011, "Parallel random numbers: as easy as 1, 2, 3") turns (key, i) into the 256 bits that seed
xoshiro256++ (Blackman and Vigna 2021). So a row's draws do not depend on which thread, process
or machine makes them, or when.

A state is a value, four uint64 that the compiler keeps in registers; each draw returns the number
and the next state::

    state = open_stream(key, row)
    x, state = normal(state)
    u, state = uniform(state)

Normal and exponential variates come from 256-level ziggurats (Marsaglia and Tsang 2000a), gamma
variates from Marsaglia and Tsang (2000b), binomials from inversion and Hörmann's (1993) BTRS.
"""

import math

import numpy as np

from .jit import jit

_M0 = np.uint64(0xD2E7470EE14C6C93)
_M1 = np.uint64(0xCA5A826395121157)
_W0 = np.uint64(0x9E3779B97F4A7C15)
_W1 = np.uint64(0xBB67AE8584CAA73B)
_LOW32 = np.uint64(0xFFFFFFFF)
_U32 = np.uint64(32)
_TO_UNIT = 2.0**-53


@jit
def _multiply_high(a, b):
    """The high 64 bits of a 64 x 64-bit product, from 32-bit halves."""
    a_low, a_high = a & _LOW32, a >> _U32
    b_low, b_high = b & _LOW32, b >> _U32
    middle = a_high * b_low + ((a_low * b_low) >> _U32)
    other = a_low * b_high + (middle & _LOW32)
    return a_high * b_high + (middle >> _U32) + (other >> _U32)


@jit(within=True)
def philox(key0, key1, row):
    """Philox4x64-10 of the counter (row, 0, 0, 0) under a 128-bit key: four uint64."""
    c0, c1, c2, c3 = row, np.uint64(0), np.uint64(0), np.uint64(0)
    for _ in range(10):
        high0, low0 = _multiply_high(_M0, c0), _M0 * c0
        high1, low1 = _multiply_high(_M1, c2), _M1 * c2
        c0, c1, c2, c3 = high1 ^ c1 ^ key0, low1, high0 ^ c3 ^ key1, low0
        key0, key1 = key0 + _W0, key1 + _W1
    return c0, c1, c2, c3


@jit
def open_stream(key, row):
    """The stream of one row: a state for the functions below.

    `key` is a uint64 array of length 2, `row` any integer: the row's *global* id.
    """
    return philox(key[0], key[1], np.uint64(row))


@jit(inline=True)
def next_uint64(state):
    """64 random bits (xoshiro256++) and the next state."""
    s0, s1, s2, s3 = state
    total = s0 + s3
    result = ((total << np.uint64(23)) | (total >> np.uint64(41))) + s0
    shifted = s1 << np.uint64(17)
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= shifted
    s3 = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))
    return result, (s0, s1, s2, s3)


@jit(inline=True)
def uniform(state):
    """A uniform on the open interval (0, 1): its log and that of its complement are finite."""
    bits, state = next_uint64(state)
    return (np.float64(bits >> np.uint64(12)) + 0.5) * (2.0 * _TO_UNIT), state


def _ziggurat(density, inverse_density, tail_start, area):
    """Layer edges of a 256-level ziggurat: widths per 52-bit unit, accept thresholds, heights."""
    edges = np.empty(257)
    edges[256] = area / density(tail_start)  # the base strip, tail included, as a rectangle
    edges[255] = tail_start
    for i in range(254, 0, -1):
        edges[i] = inverse_density(area / edges[i + 1] + density(edges[i + 1]))
    edges[0] = 0.0
    widths = edges[1:] * 2.0**-52
    thresholds = (edges[:-1] / edges[1:] * 2.0**52).astype(np.uint64)
    return widths, thresholds, np.array([density(x) for x in edges])


_NORMAL_TAIL = 3.6541528853610088
_NORMAL_WIDTH, _NORMAL_ACCEPT, _NORMAL_HEIGHT = _ziggurat(
    lambda x: math.exp(-0.5 * x * x),
    lambda y: math.sqrt(-2.0 * math.log(y)),
    _NORMAL_TAIL,
    0.00492867323399,
)
_EXPONENTIAL_TAIL = 7.69711747013104972
_EXPONENTIAL_WIDTH, _EXPONENTIAL_ACCEPT, _EXPONENTIAL_HEIGHT = _ziggurat(
    lambda x: math.exp(-x), lambda y: -math.log(y), _EXPONENTIAL_TAIL, 0.0039496598225815571993
)
_LAYER = np.uint64(0xFF)
_ONE = np.uint64(1)


@jit(inline=True)
def exponential(state):
    """A unit exponential."""
    shift = 0.0
    while True:
        bits, state = next_uint64(state)
        layer = np.int64(bits & _LAYER)
        mantissa = bits >> np.uint64(12)
        x = np.float64(mantissa) * _EXPONENTIAL_WIDTH[layer]
        if mantissa < _EXPONENTIAL_ACCEPT[layer]:
            return shift + x, state
        if layer == 255:  # memoryless: the tail is the same distribution, shifted
            shift += _EXPONENTIAL_TAIL
            continue
        u, state = uniform(state)
        low, high = _EXPONENTIAL_HEIGHT[layer + 1], _EXPONENTIAL_HEIGHT[layer]
        if low + u * (high - low) < math.exp(-x):
            return shift + x, state


@jit(within=True)
def _normal_tail(state):
    """A standard normal beyond `_NORMAL_TAIL` (Marsaglia 1964)."""
    while True:
        e, state = exponential(state)
        f, state = exponential(state)
        x = e / _NORMAL_TAIL
        if 2.0 * f > x * x:
            return _NORMAL_TAIL + x, state


@jit(inline=True)
def normal(state):
    """A standard normal."""
    while True:
        bits, state = next_uint64(state)
        layer = np.int64(bits & _LAYER)
        negative = (bits >> np.uint64(8)) & _ONE == _ONE
        mantissa = bits >> np.uint64(12)
        x = np.float64(mantissa) * _NORMAL_WIDTH[layer]
        if mantissa < _NORMAL_ACCEPT[layer]:
            return (-x if negative else x), state
        if layer == 255:
            x, state = _normal_tail(state)
            return (-x if negative else x), state
        u, state = uniform(state)
        low, high = _NORMAL_HEIGHT[layer + 1], _NORMAL_HEIGHT[layer]
        if low + u * (high - low) < math.exp(-0.5 * x * x):
            return (-x if negative else x), state


@jit
def _gamma_above_one(shape, state):
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x, state = normal(state)
        root = 1.0 + c * x
        if root <= 0.0:
            continue
        v = root * root * root
        u, state = uniform(state)
        square = x * x
        if u < 1.0 - 0.0331 * square * square:
            return d * v, state
        if math.log(u) < 0.5 * square + d * (1.0 - v + math.log(v)):
            return d * v, state


@jit
def gamma(shape, state):
    """A gamma variate of unit scale, `shape` > 0; underflows for tiny shapes: see `log_gamma`."""
    if shape >= 1.0:
        return _gamma_above_one(shape, state)
    x, state = log_gamma(shape, state)
    return math.exp(x), state


@jit(within=True)
def log_gamma(shape, state):
    """The logarithm of a gamma variate, exact for shapes so small that the variate underflows."""
    if shape >= 1.0:
        x, state = _gamma_above_one(shape, state)
        return math.log(x), state
    x, state = _gamma_above_one(shape + 1.0, state)
    e, state = exponential(state)
    return math.log(x) - e / shape, state

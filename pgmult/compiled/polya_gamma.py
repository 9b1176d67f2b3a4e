"""Pólya-gamma draws, PG(b, c): scalar functions that other compiled kernels inline.

``draw(b, c, state)`` takes real b >= 0, ``draw_integer(n, c, state)`` a count; both return
``(omega, state)``. Nan, an infinite or a negative b gives nan; b = 0 gives exactly 0.

The density of PG(b, c) is exp(-c**2 x / 2) cosh(c / 2)**b times

    f(x; b) = 2**b b / (2 sqrt(2 pi x**3)) exp(-b**2 / 8x) R(x; b),
    R(x; b) = 1 - a_1 + a_2 - ...,   a_n = (b)_n / n! (2n + b) / b exp(-n (n + b) / 2x)

(Polson, Scott and Windle 2013, section 4). R falls from 1 to 0 as x grows, and once the a_n fall
they go on falling, so a few terms decide whether a number is below R. Four samplers rest on it.

*Strips* (b = 1, 2, 3, 4; |c| < 4; exact). PG(b, c) with b >= 1 is a sum of gamma variables of
shape b, so its density is log-concave. For each b and for 8 b base tilts c0 from 0 to 4 the region
below the density is covered by rectangles of equal area and one exponential tail (Ahrens 1993,
"Sampling from general distributions by suboptimal division of domains"). A draw from the base at
or below c, thinned by exp(-(c**2 - c0**2) x / 2), is a draw from PG(b, c); one exponential variate
settles the thinning and, 95 times in 100, the rectangle as well. The base is close enough for the
thinning to accept 84 in 100 at worst.

*Inverse Gaussian* (real b; exact). f without R, tilted, is inverse Gaussian; accept with
probability R. The acceptance rate is (1 + exp(-c))**-b. That R <= 1 is known for b = 1, follows for
integers by convolution, and is checked numerically in between.

*Sums* (exact): PG(b1, c) + PG(b2, c) = PG(b1 + b2, c).

*Gamma terms* (real b). PG(b, c) is the sum over k >= 0 of Gamma(b) / lambda_k with
lambda_k = 2 pi**2 (k + 1/2)**2 + c**2 / 2. The leading terms are drawn as they are, and the rest
as one shifted gamma variable with its first three cumulants. This one is not exact: see below.
"""

import math

import numpy as np
from scipy.special import zeta

from . import streams
from .jit import jit

_MOST_PROPOSALS = 1000  # acceptance is above 1/2 everywhere: never reached, and nothing can hang
_MOST_TERMS = 200
_LEADING = (2.0 * math.pi) ** 1.5

# Where each sampler is used, and why there. Costs are nanoseconds a draw on one 2.6 GHz core; the
# error of gamma terms is the largest difference of distribution functions over the region, by
# inversion of the difference of characteristic functions (10**7 draws show 4e-4).
LARGEST_TILT = 4.0  # from here on the inverse Gaussian accepts 98 of 100 for b = 1: 22, strips 17
LARGEST_STRIP = 4  # strips: 14-20; tables grow with the square of this (160 kB)
LARGEST_SUM = 8  # two strips: 26-33, as much as gamma terms; three: 45
LAST_FRACTION = 2.0  # below it, a strip and an inverse Gaussian: exact, 35-70
LAST_THREE_TERMS = 8.0  # 40-45; error 1.4e-6 at 2, 4e-7 at 3, 4e-8 at 8 (two terms: 1e-6 at 5)
LAST_TWO_TERMS = 7000.0  # 32; error 4e-7 at 8, 1e-7 at 50, 1e-8 at 7000
# beyond, one shifted gamma: 20-25; error 1.1e-6 at 7000, 8e-8 at 1e5
LEAST_REJECTION = 0.3  # inverse Gaussian where b exp(-c) is less: it accepts 3 of 4

_STRIPS = 128
_TILTS = 8  # base tilts for b = 1; in proportion for others
_STRIP = np.uint64(_STRIPS - 1)


def _log_kernel(b, c, x):
    """Log density of PG(b, c) up to a constant, for 1 <= b <= 4 and x up to 6."""
    series = np.ones(np.broadcast_shapes(np.shape(b), np.shape(x)))
    coefficient = 1.0
    for n in range(1, 27):
        coefficient = coefficient * (1.0 - b - n) / n
        series += coefficient * (2.0 * n + b) / b * np.exp(-n * (n + b) / (2.0 * x))
    series = np.maximum(series, 1e-300)  # far out, where it is nothing but rounding
    return np.log(series) - 1.5 * np.log(x) - b * b / (8.0 * x) - 0.5 * c * c * x


def _strips():
    """Strips (inner and outer edge, gap) and their tilt, area and tail's rate, for each table.

    From the mode outwards, a rectangle of area A ends where its height, the density at its inner
    edge, is used up; the leftmost ends at 0, and the last strip is the tail. A is the smallest on
    a grid that leaves at most A for the tail. Edges are rounded to single precision, and A then
    raised until every rectangle is as high as the density again.
    """
    sizes = range(1, LARGEST_STRIP + 1)
    b = np.concatenate([np.full(_TILTS * n, float(n)) for n in sizes])
    step = np.concatenate([np.arange(_TILTS * n) / (float(_TILTS) * n) for n in sizes])
    tilt = step + np.sqrt(step * (step + 8.0))  # c**2 / (8 + 2 c) = step
    grid = np.linspace(0.004, 6.0, 1500)[:, None]
    log_density = _log_kernel(b, tilt, grid)
    peak = log_density.max(axis=0)
    best = log_density.argmax(axis=0)
    before, at, after = (log_density[best + i, np.arange(b.size)] for i in (-1, 0, 1))
    spacing = grid[1, 0] - grid[0, 0]
    mode = grid[best, 0] + 0.5 * spacing * (before - after) / (before - 2.0 * at + after)
    area = np.trapezoid(np.exp(log_density - peak), grid, axis=0) / _STRIPS
    area = area * np.linspace(1.0, 1.15, 11)[:, None]

    def density(x):
        return np.exp(np.maximum(_log_kernel(b, tilt, x) - peak, -300.0))

    right, left = [mode + 0.0 * area], [mode + 0.0 * area]
    for _ in range(_STRIPS - 1):
        right.append(np.minimum(right[-1] + area / density(right[-1]), 6.0))
        inner = left[-1]
        width = area / density(np.maximum(inner, 1e-2 * mode))
        left.append(np.where(width < inner, inner - width, 0.0))
    right = np.array(right, dtype=np.float32).astype(np.float64)
    left = np.array(left, dtype=np.float32).astype(np.float64)
    num_left = (left > 0.0).sum(axis=0)  # as many rectangles have their inner edge there
    last = np.take_along_axis(right, (_STRIPS - 1 - num_left)[None], axis=0)[0]
    # a chord of a concave function, continued, lies above it
    near = 0.999 * last
    rate = (_log_kernel(b, tilt, near) - _log_kernel(b, tilt, last)) / (last - near)
    choice = (density(last) <= area * rate).argmax(axis=0)
    strips = np.zeros((b.size, _STRIPS, 4), dtype=np.float32)
    shapes = np.zeros((b.size, 3))
    for row, k in enumerate(choice):
        lefts = num_left[k, row]
        rights = _STRIPS - 1 - lefts
        inner = np.concatenate([left[:lefts, k, row], right[:rights, k, row]])
        outer = np.concatenate([left[1 : lefts + 1, k, row], right[1 : rights + 1, k, row]])
        log_inner = _log_kernel(b[row], tilt[row], inner)
        log_outer = _log_kernel(b[row], tilt[row], np.maximum(outer, 1e-300))
        tail = math.exp(_log_kernel(b[row], tilt[row], last[k, row])) / rate[k, row]
        size = (1.0 + 1e-6) * max(tail, (np.exp(log_inner) * np.abs(outer - inner)).max())
        log_height = np.log(size / np.abs(outer - inner))
        strips[row, :-1, 0] = inner
        strips[row, :-1, 1] = outer
        strips[row, :-1, 2] = log_height - log_inner + 1e-6
        strips[row, :-1, 3] = np.minimum(1.000001 * (log_inner - log_outer), 1000.0)
        strips[row, -1] = last[k, row], last[k, row], math.inf, 0.0
        shapes[row] = tilt[row], size, rate[k, row]
    return strips, shapes


_STRIP_TABLE, _SHAPE_TABLE = _strips()


@jit
def _below_series(u, b, x):
    """Whether u <= R(x; b)."""
    rate = -0.5 / x
    total, previous, binomial = 1.0, 1.0, 1.0
    for n in range(1, _MOST_TERMS):
        binomial *= (b + (n - 1.0)) / n
        term = binomial * (2.0 * n + b) / b * math.exp(rate * n * (n + b))
        falling = term <= previous
        if n & 1:
            total -= term
            if falling and u <= total:
                return True
        else:
            total += term
            if falling and u > total:
                return False
        if term < 1e-17 and falling:
            break
        previous = term
    return u <= total


@jit(inline=True)
def _strip_draw(n, c, state):
    """PG(n, c) for n = 1, ..., LARGEST_STRIP and 0 <= c < LARGEST_TILT: exact."""
    b = np.float64(n)
    table = _TILTS * (n * (n - 1) // 2) + np.int64((0.5 * _TILTS) * b * c * c / (4.0 + c))
    tilt = _SHAPE_TABLE[table, 0]
    thinning = 0.5 * (c - tilt) * (c + tilt)
    for _ in range(_MOST_PROPOSALS):
        bits, state = streams.next_uint64(state)
        strip = np.int64(bits & _STRIP)
        inner = np.float64(_STRIP_TABLE[table, strip, 0])
        width = np.float64(_STRIP_TABLE[table, strip, 1]) - inner
        u = (np.float64(bits >> np.uint64(12)) + 0.5) * 2.0**-52
        x = inner + u * width
        e, state = streams.exponential(state)
        rest = e - thinning * x
        # the log density lies above its chord
        if rest >= _STRIP_TABLE[table, strip, 2] + u * _STRIP_TABLE[table, strip, 3]:
            return x, state
        if rest < 0.0 or x <= 0.0:
            continue
        area = _SHAPE_TABLE[table, 1]
        if strip == _STRIPS - 1:
            f, state = streams.exponential(state)
            rate = _SHAPE_TABLE[table, 2]
            x += f / rate
            rest = e - thinning * x
            if rest < 0.0:
                continue
            height = area * rate * math.exp(-f)
        else:
            height = area / abs(width)
        exponent = min(0.125 * b * b / x + 0.5 * tilt * tilt * x - rest, 700.0)
        if _below_series(height * x * math.sqrt(x) * math.exp(exponent), b, x):
            return x, state
    return 0.25 * b, state


@jit(inline=True)
def _inverse_gaussian_draw(b, c, state):
    """PG(b, c) for b > 0, c >= 0, at (1 + exp(-c))**b proposals a draw: exact.

    An inverse Gaussian of mean m = b / 2c and shape b**2 / 4 is m s or m / s, with s the larger
    root of a quadratic in a squared normal (Michael, Schucany and Haas 1976).
    """
    c = max(c, 1e-30)  # the same distribution, and no division by zero
    if b < 1e-270:
        return 0.0, state  # b**2, the scale of nearly all draws, underflows
    mean = 0.5 * b / c
    scale = 1.0 / math.sqrt(2.0 * b * c)
    # a tangent of log(b + 2) lies above it
    most = 1.0986122886681098 + (b - 1.0) / 3.0 if b <= 4.0 else math.log(b + 2.0)
    for _ in range(_MOST_PROPOSALS):
        x, state = streams.normal(state)
        z = abs(x) * scale
        root = z + math.sqrt(1.0 + z * z)
        s = root * root
        r = 1.0 / s
        u, state = streams.uniform(state)
        x = mean * (r + np.float64(u * (1.0 + r) > 1.0) * (s - r))
        e, state = streams.exponential(state)
        # reject with probability a_1 - a_2 + ... <= a_1
        if 2.0 * x * (e + most) <= 1.0 + b:
            return x, state
        u = -math.expm1(-e)
        if b <= 1.0:
            # R(x; b) <= R(x; 1), and PG(1, 0) has density below 2 pi exp(-pi**2 x / 2)
            exponent = 0.125 / x - (0.5 * math.pi * math.pi) * x
            if u > _LEADING * x * math.sqrt(x) * math.exp(exponent):
                continue
        elif x > 8.0 * b:
            continue
        if _below_series(u, b, x):
            return x, state
    return 0.25 * b, state


def _log_cosh_series(num_terms):
    """Taylor coefficients of log cosh sqrt(w): sums of (-1)**(n + 1) / n (pi (k - 1/2))**-2n."""
    n = np.arange(1, num_terms)
    coefficients = (4.0**n - 1.0) * zeta(2.0 * n) / n * -((-1.0) ** n) / np.pi ** (2.0 * n)
    return np.concatenate([[0.0], coefficients])


LOG_COSH = _log_cosh_series(41)
_CUMULANT_SERIES = np.array(
    [-((-0.5) ** j) * np.polynomial.polynomial.polyder(LOG_COSH, j)[:9] for j in (1, 2, 3)]
)


@jit(inline=True)
def _cumulants(c):
    """The first three cumulants of PG(1, c), c >= 0; times b, those of PG(b, c)."""
    first, second, third = 0.0, 0.0, 0.0
    if c < 0.4:
        w = 0.25 * c * c
        for i in range(8, -1, -1):
            first = first * w + _CUMULANT_SERIES[0, i]
            second = second * w + _CUMULANT_SERIES[1, i]
            third = third * w + _CUMULANT_SERIES[2, i]
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


def _remainders():
    """Chebyshev fits of the shifted gamma (shape, scale, shift) for the terms after 2 and 3.

    Functions of c**2 without a singularity nearer than -(5 pi)**2; shape and shift are those of
    b = 1 and proportional to b.
    """
    nodes = np.polynomial.chebyshev.chebpts1(_DEGREE + 1)
    tilt_squared = 0.5 * _WIDEST**2 * (nodes + 1.0)
    last = 4000
    fits = np.empty((2, 3, _DEGREE + 1))
    for terms in (2, 3):
        k = np.arange(terms, last)[:, None] + 0.5
        inverse = 1.0 / (2.0 * np.pi**2 * k**2 + 0.5 * tilt_squared)
        # beyond the last term, sums are integrals
        first = inverse.sum(axis=0) + 1.0 / (2.0 * np.pi**2 * last)
        second = (inverse**2).sum(axis=0) + 1.0 / (12.0 * np.pi**4 * last**3)
        third = 2.0 * (inverse**3).sum(axis=0)
        scale = 0.5 * third / second
        shape = second / scale**2
        for i, values in enumerate((shape, scale, first - shape * scale)):
            chebyshev = np.polynomial.chebyshev.chebfit(nodes, values, _DEGREE)
            fits[terms - 2, i] = np.polynomial.chebyshev.cheb2poly(chebyshev)
    return fits


_DEGREE = 9
_WIDEST = math.log(LAST_TWO_TERMS / LEAST_REJECTION)  # beyond it the inverse Gaussian is used
_REMAINDERS = _remainders()


@jit(inline=True)
def _gamma(shape, state):
    """A gamma variate of shape >= 2 (Marsaglia and Tsang 2000) with a sharper squeeze.

    With y = k x the log acceptance is -(3/4) d y**4 g(y), g(y) = sum_j 4 / (j + 4) (-y)**j; for
    d > 4 the squeeze 1 - 0.02 x**4 / d is positive for y**4 < 1 / 1.62 d < 0.155 only, and there
    g < 2.16.
    """
    d = shape - 1.0 / 3.0
    inverse = 1.0 / d
    k = math.sqrt((1.0 / 9.0) * inverse)
    squeeze = 0.02 * inverse if d > 4.0 else 0.0331
    for _ in range(_MOST_PROPOSALS):
        x, state = streams.normal(state)
        u, state = streams.uniform(state)
        root = 1.0 + k * x
        v = root * root * root
        square = x * x
        if u < 1.0 - squeeze * square * square:
            return d * v, state
        if root > 0.0 and math.log(u) < 0.5 * square + d * (1.0 - v + math.log(v)):
            return d * v, state
    return shape, state


@jit(inline=True)
def _gamma_draw(b, c, state):
    """PG(b, c) for b >= 2: leading gamma terms, and a shifted gamma for the rest."""
    if b >= LAST_TWO_TERMS:
        first, second, third = _cumulants(c)
        scale = 0.5 * third / second
        shape = second / (scale * scale)
        x, state = _gamma(b * shape, state)
        return b * (first - shape * scale) + scale * x, state
    fit = 1 if b < LAST_THREE_TERMS else 0
    z = c * c * (2.0 / (_WIDEST * _WIDEST)) - 1.0
    shape, scale, shift = 0.0, 0.0, 0.0
    for i in range(_DEGREE, -1, -1):
        shape = shape * z + _REMAINDERS[fit, 0, i]
        scale = scale * z + _REMAINDERS[fit, 1, i]
        shift = shift * z + _REMAINDERS[fit, 2, i]
    x, state = _gamma(b * shape, state)
    omega = b * shift + scale * x
    rate = 0.5 * (math.pi * math.pi + c * c)
    for k in range(2 + fit):
        x, state = _gamma(b, state)
        omega += x / (rate + (2.0 * math.pi * math.pi) * (k * (k + 1)))
    return omega, state


@jit
def draw(b, c, state):
    """One draw from PG(b, c): b >= 0 and c real; b = 0 gives 0."""
    c = abs(c)
    if not (0.0 < b < math.inf and c < math.inf):
        return (0.0 if (b == 0.0 or c == math.inf) and c == c else math.nan), state
    if c >= LARGEST_TILT:
        if b * math.exp(-c) < LEAST_REJECTION:
            return _inverse_gaussian_draw(b, c, state)
        return _gamma_draw(b, c, state)
    if b > LARGEST_SUM or (b > LAST_FRACTION and b != math.floor(b)):
        return _gamma_draw(b, c, state)
    whole = np.int64(b)
    if b <= LARGEST_STRIP and b == whole:
        return _strip_draw(whole, c, state)
    omega = 0.0
    if b > whole:
        omega, state = _inverse_gaussian_draw(b - whole, c, state)
    while whole > 0:
        strip = min(whole, LARGEST_STRIP)
        x, state = _strip_draw(strip, c, state)
        omega += x
        whole -= strip
    return omega, state


@jit
def draw_integer(n, c, state):
    """One draw from PG(n, c): n an integer, c real; n = 0 gives 0."""
    return draw(np.float64(n), c, state)


CHUNK = 512


@jit
def fill(worker, start, stop, key, first, b, c, out):
    """Draws into flat `out`; its i-th chunk of `CHUNK` draws has stream first + i."""
    for chunk in range(start, stop):
        state = streams.open_stream(key, first + chunk)
        for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, out.size)):
            out[i], state = draw(b[i], c[i], state)

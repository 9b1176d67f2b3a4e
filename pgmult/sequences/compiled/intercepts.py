r"""Logistic regressions whose intercepts of groups are integrated out, one group after another.

Of a group, z ~ N(0, 1) and rows with predictors fixed + sd z. Its log density

    l(z) = -z^2 / 2 + sum over rows of taken psi - reached log(1 + e^psi)

is concave with l'' <= -1. The trapezoidal rule about its mode converges exponentially for such
functions (Trefethen and Weideman 2014, "The exponentially convergent trapezoidal rule"): by steps
of .8 / sqrt(1 + sd^2 max(1, n / 4)) for n reached, relative errors are below 1e-8 (up to a standard
deviation of 800, from where on steps are no shorter). Draws of z are
by rejection from an envelope that holds for every log-concave density (Devroye 1984, "A simple
algorithm for generating random variates with a log-concave density").
"""

import math

import numpy as np

from pgmult.compiled import simd
from pgmult.compiled.jit import jit
from pgmult.compiled.simd import WIDTH
from pgmult.compiled.streams import exponential, normal, open_stream, uniform

_STEP, _LEAST_STEP = 0.8, 1e-3
_NEGLIGIBLE = -32.0  # log of a node's share that ends a sum
_CAREFUL = 1.0 - 1e-6  # factor of the density at the mode, whose integral is by quadrature
_NEWTON = 100  # steps at most
_LOG_ROOT = 0.5 * math.log(2.0 * math.pi)  # integral without rows


@jit(within=True)
def _value(z, sd, fixed, taken, reached, begin, end):
    """Log density of a group."""
    value = -0.5 * z * z
    for c in range(begin, end):
        psi = fixed[c] + sd * z
        value += taken[c] * psi - reached[c] * (max(psi, 0.0) + math.log1p(math.exp(-abs(psi))))
    return value


@jit(within=True)
def _mode(sd, fixed, taken, reached, begin, end):
    """The mode of a group's density, and how many it reached: Newton's method, bracketed."""
    total = 0.0
    for c in range(begin, end):
        total += reached[c]
    low, high, z = -sd * total, sd * total, 0.0
    for _ in range(_NEWTON):
        slope, curvature = -z, 1.0
        for c in range(begin, end):
            psi = fixed[c] + sd * z
            small = math.exp(-abs(psi))
            share = 1.0 / (1.0 + small) if psi > 0.0 else small / (1.0 + small)
            slope += sd * (taken[c] - reached[c] * share)
            curvature += sd * sd * reached[c] * share * (1.0 - share)
        if slope > 0.0:
            low = z
        else:
            high = z
        new = z + slope / curvature
        if new <= low or new >= high:
            new = 0.5 * (low + high)
        near = abs(new - z) < 1e-10
        z = new
        if near:
            break
    return z, total


@jit(within=True)
def _log_integral(sd, fixed, taken, reached, begin, end, lanes):
    """Log integral of a group's density, its mode, and the log density there."""
    mode, total = _mode(sd, fixed, taken, reached, begin, end)
    top = _value(mode, sd, fixed, taken, reached, begin, end)
    step = max(_STEP / math.sqrt(1.0 + sd * sd * max(1.0, 0.25 * total)), _LEAST_STEP)
    nodes = 1.0
    for side in (-step, step):
        first, gap = 1, 0.0
        while gap > _NEGLIGIBLE:  # eight nodes at a time, as far as the last one counts
            for lane in range(WIDTH):
                lanes[lane] = side * (first + lane)
            away = simd.load(lanes, 0)
            slope = simd.subtract_product(simd.splat(-mode), away, simd.splat(0.5))
            gaps = simd.multiply(away, slope)
            for c in range(begin, end):
                at_mode = simd.splat(fixed[c] + sd * mode)
                psi = simd.add_product(at_mode, away, simd.splat(sd))
                change = simd.softplus_change(at_mode, psi)
                gaps = simd.add_product(gaps, away, simd.splat(sd * taken[c]))
                gaps = simd.subtract_product(gaps, change, simd.splat(reached[c]))
            simd.store(lanes, 0, gaps)
            gap = lanes[WIDTH - 1]
            simd.store(lanes, 0, simd.exp_negative(gaps))
            for lane in range(WIDTH):
                nodes += lanes[lane]
            first += WIDTH
    return top + math.log(step * nodes), mode, top


@jit
def log_integrals(sd, fixed, taken, reached, offsets, out):
    """Set the log integral of each group; rows are sorted by group."""
    lanes = np.empty(WIDTH)
    for g in range(offsets.size - 1):
        begin, end = offsets[g], offsets[g + 1]
        out[g] = _LOG_ROOT
        if begin < end:
            out[g] = _log_integral(sd, fixed, taken, reached, begin, end, lanes)[0]


@jit
def draw_groups(key, sd, fixed, taken, reached, offsets, which, out):
    """Write a draw of each z to `out`; its rows are those of group `which`, both ``(num,)``."""
    size, lanes = offsets.size - 1, np.empty(WIDTH)
    modes, tops, heights = np.zeros(size), np.zeros(size), np.zeros(size)
    for g in np.unique(which):
        begin, end = offsets[g], offsets[g + 1]
        total, modes[g], tops[g] = _log_integral(sd, fixed, taken, reached, begin, end, lanes)
        heights[g] = _CAREFUL * math.exp(tops[g] - total)
    for i in range(out.size):
        g, state = which[i], open_stream(key, i)
        begin, end = offsets[g], offsets[g + 1]
        if begin == end:
            out[i], state = normal(state)
            continue
        while True:  # four tries on average
            where, state = uniform(state)
            beyond, state = exponential(state)
            tail = where < 0.5
            away = (1.0 + beyond if tail else 2.0 * where - 1.0) / heights[g]
            side, state = uniform(state)
            z = modes[g] + (away if side < 0.5 else -away)
            limit, state = exponential(state)
            gap = _value(z, sd, fixed, taken, reached, begin, end) - tops[g]
            if gap > -limit - (beyond if tail else 0.0):
                out[i] = z
                break

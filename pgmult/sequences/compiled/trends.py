r"""Sweeps of `pgmult.sequences.models.trend`: levels with damped slopes, series after series.

A series is one stick of one sequence. With its parameters x, its log scales l_t and its sites (J_t,
h_t), exp(h psi - J psi^2 / 2) near the likelihood of psi_t, levels and slopes are a Gaussian chain
of two dimensions: a Kalman filter gives the sites' density Z, and white noise, three numbers eps_t
a step, gives a path of (level, slope, psi) drawn backwards. What is left of the likelihood is

    C(psi) = sum_t log p(counts_t | psi_t) - h_t psi_t + J_t psi_t^2 / 2.

In the coordinates (x, white noise z of the scales, eps) the posterior is the density

    p(x) Z(x, z) exp(C(psi(x, z, eps)))  N(z; 0, I) N(eps; 0, I),

in which eps and z hardly depend on x (Murray and Adams 2010, "Slice sampling covariance
hyperparameters of latent Gaussian models", whitening by surrogate data). A sweep finds z and eps
from scales and path, moves each parameter by a slice, z and eps by elliptical slices, and writes
scales and path.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgmult.compiled.ellipse import open_bracket, shrink_bracket
from pgmult.compiled.jit import jit
from pgmult.compiled.streams import exponential, normal, open_stream, uniform
from pgmult.compiled.vectors import exp_minus, log1p
from pgmult.sequences.compiled.brackets import FOUND, LEFT, RIGHT, START, look_next

_Floats = NDArray[np.float64]
DAMPING, SLOPE, NOISE, VOLATILITY, SCALE = range(5)
NUM_PARAMETERS = 5
FIRST_SD = 5.0  # of first levels
_TURNS = 3  # of z, and of eps, a sweep
_WIDTH = 1.5
_OUT = 20  # widths at most that a slice is stepped out
_LEAST = -1e300  # a slice is above it, so that searches end where nothing is possible


class TrendSeries(NamedTuple):
    """What all series share, and what each saw.

    Attributes
    ----------
    offsets : int array, ``(num_sequences + 1,)``
    taken, reaching, J, h : arrays, ``(num_sticks, num_steps)``
        Counts and totals of each stick, and its site; zeros where nothing was observed.
    mean, sd : arrays, ``(5,)``
        Of the Gaussian prior of x: the damping's log odds, and the logarithms of the slope's and
        the observations' noise, in units of the level's, of the volatility and of the last scale.
    """

    offsets: NDArray[np.int64]
    taken: _Floats
    reaching: _Floats
    J: _Floats
    h: _Floats
    mean: _Floats
    sd: _Floats


class _Work(NamedTuple):
    """A series while it is swept: rows of steps, and what its density leaves on the way."""

    taken: _Floats
    reaching: _Floats
    J: _Floats
    h: _Floats
    log_scale: _Floats
    ahead: _Floats
    filtered: _Floats
    path: _Floats


@jit
def _work_of(series, row, log_scales, moments, paths):
    """A row of a sequence's sticks, one sequence after another; with rows of the arrays."""
    k, q = row % series.J.shape[0], row // series.J.shape[0]
    begin, end = series.offsets[q], series.offsets[q + 1]
    return _Work(
        series.taken[k, begin:end], series.reaching[k, begin:end], series.J[k, begin:end],
        series.h[k, begin:end], log_scales[begin:end, k], moments[begin:end, k],
        np.empty((end - begin, 5)), paths[begin:end, k],
    )  # fmt: skip


@jit
def filter_series(x, work):
    """The log density of the sites.

    Rows of `ahead` get the mean and variance of psi given the steps before, of `filtered` means and
    the covariance of level and slope given the step itself, too.
    """
    _, _, J, h, log_scale, ahead, filtered, _ = work
    damping = 1.0 / (1.0 + math.exp(-x[DAMPING]))
    of_slope, of_noise = math.exp(2.0 * x[SLOPE]), math.exp(2.0 * x[NOISE])
    var = math.exp(2.0 * log_scale[0])
    level, slope, total = 0.0, 0.0, 0.0
    a, b, c = FIRST_SD * FIRST_SD, 0.0, var * of_slope / (1.0 - damping * damping)
    for t in range(J.shape[0]):
        if t > 0:
            var = math.exp(2.0 * log_scale[t])
            level += slope
            slope *= damping
            a += 2.0 * b + c + var
            b = damping * (b + c)
            c = damping * damping * c + var * of_slope
        spread = a + var * of_noise
        ahead[t, 0], ahead[t, 1] = level, spread
        weight = 1.0 / (1.0 + J[t] * spread)
        pull = h[t] - J[t] * level
        total += 0.5 * (math.log(weight) + weight * (2.0 * h[t] * level + h[t] * h[t] * spread
                                                     - J[t] * level * level))  # fmt: skip
        level += weight * a * pull
        slope += weight * b * pull
        c -= weight * J[t] * b * b
        kept = weight * (1.0 + J[t] * var * of_noise)  # 1 - weight J a, which would cancel
        b *= kept
        a *= kept
        filtered[t, 0], filtered[t, 1] = level, slope
        filtered[t, 2], filtered[t, 3], filtered[t, 4] = a, b, c
    return total


@jit
def _path(x, work, white, whiten):
    """Write (level, slope, psi) of every step from white noise, or to `whiten` white noise."""
    damping = 1.0 / (1.0 + math.exp(-x[DAMPING]))
    of_slope, of_noise = math.exp(2.0 * x[SLOPE]), math.exp(2.0 * x[NOISE])
    last, filtered, path = work.J.shape[0] - 1, work.filtered, work.path
    for t in range(last, -1, -1):
        level, slope = filtered[t, 0], filtered[t, 1]
        a, b, c = filtered[t, 2], filtered[t, 3], filtered[t, 4]
        inverse = 1.0 / (a * c - b * b)
        p, q, r = c * inverse, -b * inverse, a * inverse  # the precision
        if t < last:
            tight = math.exp(-2.0 * work.log_scale[t + 1])
            bend = damping * tight / of_slope
            by_level = tight * (path[t + 1, 0] - level - slope)
            by_slope = by_level + bend * (path[t + 1, 1] - damping * slope)
            p, q, r = p + tight, q + tight, r + tight + damping * bend
            inverse = 1.0 / (p * r - q * q)
            level += inverse * (r * by_level - q * by_slope)
            slope += inverse * (p * by_slope - q * by_level)
        root = math.sqrt(p)
        cross = q / root
        corner = math.sqrt(r - cross * cross)
        noise = of_noise * math.exp(2.0 * work.log_scale[t])
        weight = 1.0 / (1.0 + noise * work.J[t])
        sd = math.sqrt(noise * weight)
        if whiten:
            white[t, 1] = corner * (path[t, 1] - slope)
            white[t, 0] = root * (path[t, 0] - level) + cross * (path[t, 1] - slope)
            white[t, 2] = (path[t, 2] - weight * (path[t, 0] + noise * work.h[t])) / sd
        else:
            path[t, 1] = slope + white[t, 1] / corner
            path[t, 0] = level + (white[t, 0] - cross * (path[t, 1] - slope)) / root
            path[t, 2] = weight * (path[t, 0] + noise * work.h[t]) + sd * white[t, 2]


@jit
def _density(x, white, series, work):
    """The log density of the module's docstring but for N(z) N(eps); `work` gets the path."""
    total = 0.0
    for p in range(NUM_PARAMETERS):
        total -= 0.5 * ((x[p] - series.mean[p]) / series.sd[p]) ** 2
    last, volatility = work.J.shape[0] - 1, math.exp(x[VOLATILITY])
    work.log_scale[last] = x[SCALE]
    for t in range(last - 1, -1, -1):
        work.log_scale[t] = work.log_scale[t + 1] + volatility * white[t, 3]
    total += filter_series(x, work)
    _path(x, work, white, False)
    for t in range(last + 1):
        psi = work.path[t, 2]
        softplus = max(psi, 0.0) + log1p(exp_minus(abs(psi)))
        total += work.taken[t] * psi - work.reaching[t] * softplus
        total -= psi * (work.h[t] - 0.5 * work.J[t] * psi)
    return total if math.isfinite(total) else -math.inf


@jit
def _slice_parameter(p, x, now, white, series, work, state):
    """One slice update of a coordinate of x, in place; its density, and the stream's state."""
    e, state = exponential(state)
    u, state = uniform(state)
    share, state = uniform(state)  # of the steps out that may be to the left (Neal 2003)
    steps_left = int(_OUT * share)
    steps_right = _OUT - 1 - steps_left
    floor, left = max(now - e, _LEAST), x[p] - _WIDTH * u
    at, state = look_next((START, x[p], x[p], left, left + _WIDTH), True, _WIDTH, state)
    while at[0] != FOUND:
        x[p] = at[2]
        now = _density(x, white, series, work)
        above = now >= floor
        if at[0] == LEFT:
            above, steps_left = above and steps_left > 0, steps_left - 1
        elif at[0] == RIGHT:
            above, steps_right = above and steps_right > 0, steps_right - 1
        at, state = look_next(at, above, _WIDTH, state)
    return now, state


@jit
def _turn(first, last, x, now, white, series, work, state):
    """One elliptical slice of columns of the white noise, in place; as `_slice_parameter`."""
    T = white.shape[0]
    origin, across = white.copy(), np.empty((T, 4))
    for t in range(T):
        for i in range(first, last):
            across[t, i], state = normal(state)
    e, state = exponential(state)
    floor = max(now - e, _LEAST)
    angle, left, right, state = open_bracket(state)
    while True:
        cos, sin = math.cos(angle), math.sin(angle)
        for t in range(T):
            for i in range(first, last):
                white[t, i] = origin[t, i] * cos + across[t, i] * sin
        now = _density(x, white, series, work)
        if now >= floor or angle == 0.0:
            return now, state
        angle, left, right, state = shrink_bracket(angle, left, right, state)


@jit
def filter_rows(worker, start, stop, series, parameters, log_scales, moments):
    """Means and variances of psi given the steps before, ``(num_steps, num_sticks, 2)``."""
    for row in range(start, stop):
        filter_series(parameters[row], _work_of(series, row, log_scales, moments, moments))


@jit
def sweep(worker, start, stop, key, series, parameters, log_scales, paths, fresh):
    """One sweep of series, in place; where they are `fresh`, from paths that are drawn.

    Rows of `parameters`, ``(num_sequences * num_sticks, 5)``, are x of a sequence's sticks, one
    after another; `log_scales` are ``(num_steps, num_sticks)``, `paths` ``(num_steps, num_sticks,
    3)``.
    """
    moments = np.empty((*log_scales.shape, 2))
    for row in range(start, stop):
        x, state = parameters[row], open_stream(key, row)
        work = _work_of(series, row, log_scales, moments, paths)
        T = work.J.size
        white = np.zeros((T, 4))
        for t in range(T):
            if t > 0:
                fall = work.log_scale[t - 1] - work.log_scale[t]
                white[t - 1, 3] = fall * math.exp(-x[VOLATILITY])
            for i in range(3 if fresh else 0):
                white[t, i], state = normal(state)
        if not fresh:
            filter_series(x, work)
            _path(x, work, white, True)
        now = _density(x, white, series, work)
        for p in range(NUM_PARAMETERS):
            now, state = _slice_parameter(p, x, now, white, series, work, state)
        for _ in range(_TURNS):
            now, state = _turn(3, 4, x, now, white, series, work, state)
            now, state = _turn(0, 3, x, now, white, series, work, state)

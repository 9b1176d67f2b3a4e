"""Gaussians near the weights' posterior, found from the data, and slices around them.

Rows see weights through one predictor each, so an ellipse of weights is an ellipse of predictors:
an angle costs O(rows) whatever the number of columns.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from examples.papers.regressions.compiled.weights import PANEL, ROWS, add_gram, pack_row
from pgmult.compiled.ellipse import open_bracket, shrink_bracket
from pgmult.compiled.jit import jit
from pgmult.compiled.linalg import cholesky, invert_lower, solve_lower_transpose
from pgmult.compiled.simd import WIDTH
from pgmult.compiled.streams import exponential, gamma, normal, open_stream, uniform
from pgmult.compiled.vectors import dot, exp_minus, log1p

DOF = 8.0  # of the Student-t
REFLECTED = -1  # in the place of a number of moves
_COS = -1.0 / 3.0  # of the angle of reflected moves
_SIN = math.sqrt(8.0) / 3.0
_SLICED = 0.125  # of the sweeps of reflected moves
_REACH = 6.0  # standard deviations that expectations are summed over
_MOST_STEPS = 100
_NEAR_MODE, _NEAR = 0.1, 0.02  # posterior standard deviations: nearer, all bases are as good


@jit(reassociate=True)
def _sum_softplus(trials, centre, along, across, cos, sin):
    """sum_n trials_n log(1 + exp psi_n), psi = centre + along cos + across sin."""
    total = 0.0
    for n in range(trials.size):
        psi = centre[n] + cos * along[n] + sin * across[n]
        total += trials[n] * (max(psi, 0.0) + log1p(exp_minus(abs(psi))))
    return total


@jit(reassociate=True)
def _expect(mean, scale):
    """E log(1 + exp psi), E sigma(psi), E sigma(psi) sigma(-psi) for psi ~ N(mean, scale**2).

    The trapezoid rule, with an error of 1e-7 or so.
    """
    step = min(0.5, 1.5 / max(scale, 1e-3))
    size = int(_REACH / step) if scale > 0.0 else 0
    total = softplus = share = spread = 0.0
    for i in range(-size, size + 1):
        t = i * step
        weight = exp_minus(0.5 * t * t)
        psi = mean + scale * t
        tail = exp_minus(abs(psi))
        part = 1.0 / (1.0 + tail)
        total += weight
        softplus += weight * (max(psi, 0.0) + log1p(tail))
        share += weight * (part if psi > 0.0 else tail * part)
        spread += weight * tail * part * part
    return softplus / total, share / total, spread / total


@jit
def _expect_rows(rows, sites, w):
    """Write slopes and curvatures of the rows' expected sites; the sum of their expectations."""
    level = 0.0
    for n in range(rows.x.shape[0]):
        psi = rows.known[n] + dot(rows.x[n], w)
        rest, share, spread = _expect(psi, sites.scale[n])
        level += rows.successes[n] * psi - rows.trials[n] * rest
        sites.slopes[n] = rows.successes[n] - rows.trials[n] * share
        sites.curvatures[n] = rows.trials[n] * spread
    return level


@jit
def _solve_lower(root, b):
    """Replace b by root^-1 b."""
    for i in range(b.size):
        b[i] = (b[i] - dot(root[i, :i], b[:i])) / root[i, i]


class _Rows(NamedTuple):
    """The rows of a group."""

    x: Any
    successes: Any
    trials: Any
    known: Any


class _Sites(NamedTuple):
    """Expected sites of a group's rows: sds of predictors, slopes and curvatures."""

    scale: Any
    slopes: Any
    curvatures: Any


class _Room(NamedTuple):
    """Where the rows' products are added up: panels of rows, X' slopes and X' J X."""

    panels: Any
    force: Any
    square: Any


@jit
def _add_up(rows, sites, room):
    """Write X' slopes to `room.force`, and X' J X to the lower triangle of `room.square`."""
    size, num_rows = rows.x.shape[1], rows.x.shape[0]
    flat = rows.x.reshape(-1)
    room.square[:] = 0.0
    room.force[:] = 0.0
    for first in range(0, num_rows, ROWS):
        chunk = min(ROWS, num_rows - first)
        for r in range(chunk):
            n = first + r
            pack_row(
                flat, n * size, size, sites.slopes[n], math.sqrt(sites.curvatures[n]),
                room.panels, r * WIDTH, room.force,
            )  # fmt: skip
        add_gram(room.panels, room.square, size, room.force.size, chunk)


@jit
def _shortened(rows, sites, prior_mean, precision, w, step, level):
    """The share of a step by which the log density, `level` at w, does not fall."""
    other, gap = np.empty(w.size), np.empty(w.size)
    share = 1.0
    while share > 1e-6:
        for i in range(w.size):
            other[i] = w[i] + share * step[i]
            gap[i] = other[i] - prior_mean[i]
        there = _expect_rows(rows, sites, other)
        for i in range(w.size):
            there -= 0.5 * gap[i] * dot(precision[i], gap)
        if there >= level - 1e-9 * abs(level):
            break
        share *= 0.5
    return share


@jit
def _rescale(x, root, scale):
    """Write the predictors' sds under the Gaussian to `scale`; the largest relative change."""
    change, inverse = 0.0, invert_lower(root)
    for r in range(x.shape[0]):
        v = 0.0
        for k in range(x.shape[1]):
            part = dot(inverse[k, : k + 1], x[r, : k + 1])
            v += part * part
        sd = math.sqrt(v)
        change = max(change, abs(sd - scale[r]) / max(sd, 1e-300))
        scale[r] = sd
    return change


@jit
def find_bases(worker, start, stop, group_rows, prior, gram, pull):
    """Potentials of groups' rows with which the prior is near the posterior of the weights.

    Newton's method for the mode, then for the fixed point of expected sites: with psi_n normal as
    the Gaussian itself has it, slopes successes_n - trials_n E sigma(psi_n) and curvatures
    J_n = trials_n E[sigma(psi_n) sigma(-psi_n)]. `gram` takes X' J X, and `pull` the linear term.
    Curvatures that swing are damped. The search depends on the arguments alone; its end decides how
    fast slices are, not what they leave invariant. Returns 0, or 1 + a group whose precision is not
    positive definite.
    """
    x, offsets, successes, trials, known = group_rows
    mean, precision = prior
    size = x.shape[1]
    num_panels = 2 * ((size + 2 * WIDTH - 1) // (2 * WIDTH))
    stride = num_panels * WIDTH
    room = _Room(np.zeros(num_panels * PANEL), np.empty(stride), np.empty(stride * stride))
    root = np.empty((size, size))
    w, step, gap, other = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    for g in range(start, stop):
        begin, end = offsets[g], offsets[g + 1]
        num_rows, prior_mean = end - begin, mean[min(g, mean.shape[0] - 1)]
        rows = _Rows(x[begin:end], successes[begin:end], trials[begin:end], known[begin:end])
        sites = _Sites(np.zeros(num_rows), np.empty(num_rows), np.empty(num_rows))
        for i in range(size):
            w[i] = prior_mean[i]
        at_mode, length, rate = True, np.inf, 1.0
        for _ in range(_MOST_STEPS):
            level = _expect_rows(rows, sites, w)
            _add_up(rows, sites, room)
            for i in range(size):
                gap[i] = w[i] - prior_mean[i]
            for i in range(size):
                for j in range(i + 1):
                    new = rate * room.square[i * stride + j]
                    if rate < 1.0:
                        new += (1.0 - rate) * gram[g, i, j]
                    gram[g, i, j] = gram[g, j, i] = new
                    root[i, j] = precision[i, j] + new
                drag = dot(precision[i], gap)
                level -= 0.5 * gap[i] * drag
                step[i] = other[i] = room.force[i] - drag
            if cholesky(root) != 0:
                return 1 + g
            _solve_lower(root, step)
            solve_lower_transpose(root, step)
            before, length = length, math.sqrt(max(dot(step, other), 0.0))
            if not at_mode:
                rate = max(0.5 * rate, 0.2) if length > before else min(1.2 * rate, 1.0)
            share = 1.0
            if length > 1.0:  # far from the mode a step may be too long
                share = _shortened(rows, sites, prior_mean, precision, w, step, level)
            for i in range(size):
                w[i] += share * step[i]
            if at_mode and length > _NEAR_MODE:
                continue
            at_mode = False
            change = _rescale(rows.x, root, sites.scale)
            if length < _NEAR and change < _NEAR:
                break
        for i in range(size):
            gap[i] = w[i] - prior_mean[i]
        for i in range(size):
            pull[g, i] = dot(gram[g, i], w) + dot(precision[i], gap)
    return 0


@jit
def place_bases(worker, start, stop, gram, pull, prior, base, root):
    """Means of the prior times the potentials, and lower roots of its precisions.

    Returns 0, or 1 + a group whose precision is not positive definite.
    """
    mean, precision = prior
    size = mean.shape[1]
    for g in range(start, stop):
        prior_mean = mean[min(g, mean.shape[0] - 1)]
        for i in range(size):
            for j in range(i + 1):
                root[g, i, j] = precision[i, j] + gram[g, i, j]
            base[g, i] = pull[g, i] + dot(precision[i], prior_mean)
        if cholesky(root[g]) != 0:
            return 1 + g
        _solve_lower(root[g], base[g])
        solve_lower_transpose(root[g], base[g])
    return 0


@jit
def _base(square, half, gaussian):
    """Log density of the base at a squared distance from its mean, up to a constant."""
    return -0.5 * square if gaussian else -half * math.log1p(square / DOF)


class Moves(NamedTuple):
    """Means of bases, lower roots of their precisions, and how many slices a sweep has."""

    base: Any
    root: Any
    moves: Any


class _Terms(NamedTuple):
    """Of the log density at a cos + b sin: coefficients of its linear and quadratic terms."""

    linear_a: float
    linear_b: float
    square_a: float
    square_ab: float
    square_b: float


@jit
def _terms_of(taken, along, across, gap, precision, a, b):
    """Of rows with predictors along cos + across sin, and of a Gaussian prior."""
    linear_a = linear_b = square_a = square_b = square_ab = 0.0
    for r in range(taken.size):
        linear_a += taken[r] * along[r]
        linear_b += taken[r] * across[r]
    for i in range(gap.size):
        drag_a, drag_b = dot(precision[i], a), dot(precision[i], b)
        linear_a -= gap[i] * drag_a
        linear_b -= gap[i] * drag_b
        square_a += a[i] * drag_a
        square_ab += a[i] * drag_b
        square_b += b[i] * drag_b
    return _Terms(linear_a, linear_b, square_a, square_ab, square_b)


@jit
def slice_weights(worker, start, stop, rows, prior, around, key, weights, out):
    """Move each group's weights on ellipses of a Student-t around ``base[g]``.

    As `slice_around` of ``wang2013/around.py`` does, ``moves[g]`` times. Where that is `REFLECTED`,
    most sweeps are one Metropolis step instead, to an angle that is always the same on an ellipse
    of the Gaussian itself (Neal 1999, "Regression and classification using Gaussian process
    priors", section 5): where nearly all are accepted the weights come out negatively correlated
    with those before. All of the log density but the log normalisers of the rows is quadratic in
    the cosine and sine of the angle. Returns 0, or 1 + a group whose log density is not finite.
    """
    x, offsets, successes, trials, known = rows
    mean, precision = prior
    base, root, moves = around
    size = x.shape[1]
    half = 0.5 * (DOF + size)
    a, b, z = np.empty(size), np.empty(size), np.empty(size)
    noise, gap = np.empty(size), np.empty(size)
    for g in range(start, stop):
        begin, num_rows = offsets[g], offsets[g + 1] - offsets[g]
        prior_mean, counted = mean[min(g, mean.shape[0] - 1)], trials[begin : begin + num_rows]
        centre, along, across = np.empty(num_rows), np.empty(num_rows), np.empty(num_rows)
        if moves[g] == 0:
            for i in range(size):
                out[g, i] = weights[g, i]
            continue
        state = open_stream(key, g)
        for i in range(size):
            a[i] = weights[g, i] - base[g, i]
            gap[i] = base[g, i] - prior_mean[i]
        taken = successes[begin : begin + num_rows]
        for r in range(num_rows):
            centre[r] = known[begin + r] + dot(x[begin + r], base[g])
            along[r] = dot(x[begin + r], a)
        rest = _sum_softplus(counted, centre, along, along, 1.0, 0.0)
        reflected = moves[g] == REFLECTED
        if reflected:
            u, state = uniform(state)
            reflected = u >= _SLICED
        for _ in range(abs(moves[g])):
            for j in range(size):
                z[j] = 0.0
            for i in range(size):
                for j in range(i + 1):
                    z[j] += root[g, i, j] * a[i]
            here = dot(z, z)
            stretch = 1.0
            if not reflected:
                mass, state = gamma(half, state)
                stretch = math.sqrt(0.5 * (DOF + here) / mass)
            for i in range(size):
                draw, state = normal(state)
                noise[i] = b[i] = draw * stretch
            both, there = dot(z, noise), dot(noise, noise)
            solve_lower_transpose(root[g], b)
            for r in range(num_rows):
                across[r] = dot(x[begin + r], b)
            q = _terms_of(taken, along, across, gap, precision, a, b)
            level = q.linear_a - 0.5 * q.square_a - _base(here, half, reflected) - rest
            if not math.isfinite(level):
                return 1 + g
            depth, state = exponential(state)
            level -= depth
            angle, left, right, state = open_bracket(state)
            while True:
                cos, sin = (_COS, _SIN) if reflected else (math.cos(angle), math.sin(angle))
                new_rest = _sum_softplus(counted, centre, along, across, cos, sin)
                square = here * cos * cos + 2.0 * both * cos * sin + there * sin * sin
                value = q.linear_a * cos + q.linear_b * sin - new_rest
                value -= 0.5 * (q.square_a * cos * cos + q.square_b * sin * sin)
                value -= _base(square, half, reflected) + q.square_ab * cos * sin
                if value >= level or angle == 0.0:
                    break
                if reflected:
                    cos, sin, new_rest = 1.0, 0.0, rest
                    break
                angle, left, right, state = shrink_bracket(angle, left, right, state)
            rest = new_rest
            for i in range(size):
                a[i] = a[i] * cos + b[i] * sin
            for r in range(num_rows):
                along[r] = along[r] * cos + across[r] * sin
        for i in range(size):
            out[g, i] = base[g, i] + a[i]
    return 0

"""Many scalar Gaussian chains: normalisers and draws given potentials, slices given counts.

Chain (r, i) runs over times t = 0, ..., T - 1::

    x_t = centre_i + d_t, d_0 ~ N(0, initial_var_r), d_t ~ N(persistence d_{t-1}, innovation_var_r)

times exp(-J x_t**2 / 2 + h x_t) at every time, which may be 1 (J = h = 0). The filter goes forwards
over means and variances and divides by 1 + variance J alone, so nothing cancels and nothing is
special about a time without observation; draws come back, each from T standard normal numbers that
a chain and its variances tell again. `LANES` neighbouring chains of a row go side by side, so the
recursions vectorise. O(T) a chain.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgmult.compiled.ellipse import open_bracket, shrink_bracket
from pgmult.compiled.jit import jit
from pgmult.compiled.streams import exponential, gamma, normal, open_stream
from pgmult.compiled.vectors import exp_minus, log1p

FloatArray, IntArray = NDArray[np.float64], NDArray[np.int64]

LANES = 64
_FACTORS = 4  # of the normaliser for one logarithm; each would have to pass 1e75 to overflow
DOF = 8.0  # of the Student-t that chains are sliced around
_FURTHEST = 100.0  # of a predicted logit, where its counts are weighed


class ChainPrior(NamedTuple):
    """The prior of rows of chains."""

    centre: FloatArray  # (num_chains,)
    persistence: float
    initial_var: FloatArray  # (num_rows,)
    innovation_var: FloatArray


class ChainPotential(NamedTuple):
    """A potential of chains; both are (num_rows, num_times, num_chains)."""

    J: FloatArray
    h: FloatArray


class Counts(NamedTuple):
    """Binomial counts of logits; both are (num_rows, num_times, num_chains)."""

    taken: FloatArray
    reaching: FloatArray


class _Room(NamedTuple):
    """Room for neighbouring chains of a row, (num_times, LANES) each.

    Means and variances of deviations given all up to each time; after `_look_back` those of a
    deviation given the next one, the standard deviation instead of the variance.
    """

    mean: FloatArray
    var: FloatArray
    gain: FloatArray
    placed: FloatArray  # deviations that a draw has


@jit
def _make_room(num_times):
    room = (num_times, LANES)
    return _Room(np.zeros(room), np.zeros(room), np.empty(room), np.zeros(room))


@jit
def _before(chains, r, t):
    """The time before, or one of no weight; how it pulls, and the variance given it."""
    if t == 0:
        return 0, 0.0, chains.initial_var[r]
    return t - 1, chains.persistence, chains.innovation_var[r]


@jit
def _look_back(persistence, step_var, room, count):
    """Write mean (where d_{t+1} is 0), standard deviation and slope of d_t given d_{t+1}.

    In the place of means and variances given all up to t; the last time has no later one.
    """
    last = room.mean.shape[0] - 1
    for t in range(last + 1):
        mean, var, gain = room.mean[t], room.var[t], room.gain[t]
        pull, spread = (persistence, step_var) if t < last else (0.0, 1.0)
        for i in range(count):
            share = 1.0 / (1.0 + pull * pull * var[i] / spread)
            gain[i] = pull * var[i] / spread * share
            mean[i] *= share
            var[i] = math.sqrt(var[i] * share)


@jit
def _filter(chains, potentials, r, first, room):
    """Filter the chains of row r from number `first` on and look back.

    Returns how many they are, and their log normaliser.
    """
    _, num_times, num_chains = potentials.J.shape
    count = min(LANES, num_chains - first)
    block = slice(first, first + count)
    centre, mean, var = chains.centre[block], room.mean, room.var
    exponent, product = np.zeros(LANES), np.ones(LANES)
    for t in range(num_times):
        earlier, pull, step_var = _before(chains, r, t)
        J, h = potentials.J[r, t, block], potentials.h[r, t, block]
        for i in range(count):
            expected, spread = pull * mean[earlier, i], pull * pull * var[earlier, i] + step_var
            precision, c = J[i], centre[i]
            linear = h[i] - precision * c
            growth = 1.0 + spread * precision
            shrink = 1.0 / growth
            exponent[i] += c * (linear + h[i]) + shrink * (
                linear * (2.0 * expected + spread * linear) - precision * expected * expected
            )
            product[i] *= growth
            mean[t, i], var[t, i] = shrink * (expected + spread * linear), shrink * spread
        if t % _FACTORS == _FACTORS - 1 or t == num_times - 1:
            for i in range(count):
                exponent[i] -= math.log(product[i])
                product[i] = 1.0
    _look_back(chains.persistence, chains.innovation_var[r], room, count)
    return count, 0.5 * exponent[:count].sum()


@jit
def _place(noise, r, first, count, room):
    """Deviations of filtered chains, the last time first, from their noise."""
    last = room.placed.shape[0] - 1
    for t in range(last, -1, -1):
        own, later, out = noise[r, t, first:], room.placed[min(t + 1, last)], room.placed[t]
        middle, sd, gain = room.mean[t], room.var[t], room.gain[t]
        for i in range(count):
            out[i] = middle[i] + sd[i] * own[i] + gain[i] * later[i]


@jit
def place_chains(worker, start, stop, chains, potentials, noise, out):
    """The draw of chains that standard normal `noise` makes, (num_rows, num_times, num_chains)."""
    _, num_times, num_chains = potentials.J.shape
    room = _make_room(num_times)
    for r in range(start, stop):
        for first in range(0, num_chains, LANES):
            count, _ = _filter(chains, potentials, r, first, room)
            _place(noise, r, first, count, room)
            for t in range(num_times - 1, -1, -1):
                for i in range(count):
                    out[r, t, first + i] = chains.centre[first + i] + room.placed[t, i]


@jit
def noise_of_chains(worker, start, stop, chains, potentials, x, noise):
    """The standard normal numbers from which `place_chains` makes x."""
    _, num_times, num_chains = potentials.J.shape
    room = _make_room(num_times)
    for r in range(start, stop):
        for first in range(0, num_chains, LANES):
            count, _ = _filter(chains, potentials, r, first, room)
            for t in range(num_times):
                later = min(t + 1, num_times - 1)  # of no weight at the last time
                for i in range(count):
                    c = chains.centre[first + i]
                    step = x[r, t, first + i] - c - room.mean[t, i]
                    step -= room.gain[t, i] * (x[r, later, first + i] - c)
                    noise[r, t, first + i] = step / room.var[t, i]


@jit(reassociate=True)
def _log_binomials(taken, reaching, centre, placed, count):
    """Log likelihood of `taken` out of `reaching` at logits centre + placed, up to a constant."""
    total = 0.0
    for i in range(count):
        psi = centre[i] + placed[i]
        softplus = max(psi, 0.0) + log1p(exp_minus(abs(psi)))
        total += taken[i] * psi - reaching[i] * softplus
    return total


@jit
def log_densities(worker, start, stop, active, chains, potentials, noise, counts, out):
    """out[r] = log normaliser of row r, and the log likelihood of counts where `noise` places it.

    Rows that are not `active` keep their value.
    """
    _, num_times, num_chains = potentials.J.shape
    room = _make_room(num_times)
    for r in range(start, stop):
        if not active[r]:
            continue
        out[r] = 0.0
        for first in range(0, num_chains, LANES):
            count, level = _filter(chains, potentials, r, first, room)
            out[r] += level
            _place(noise, r, first, count, room)
            block = slice(first, first + count)
            for t in range(num_times - 1, -1, -1):
                out[r] += _log_binomials(
                    counts.taken[r, t, block], counts.reaching[r, t, block], chains.centre[block],
                    room.placed[t], count,
                )  # fmt: skip


@jit
def normal_rows(worker, start, stop, key, out):
    """Standard normal numbers, a stream for each row."""
    for r in range(start, stop):
        state = open_stream(key, r)
        flat = out[r].reshape(-1)
        for i in range(flat.size):
            flat[i], state = normal(state)


class _Slices(NamedTuple):
    """Neighbouring chains of a row, each on an ellipse ``middle + along cos + across sin``."""

    room: _Room  # the filter of the Gaussian that they are sliced around
    blocks: FloatArray  # (6, num_times, LANES): the constants below say what stands where
    rows: FloatArray  # (9, LANES)
    place: IntArray  # (LANES,): the number of each chain in its row


_TRIALS, _J, _H = 0, 1, 2  # trials; of the Gaussian: J, and the successes less h
_MIDDLE, _ALONG, _ACROSS = 3, 4, 5
_CENTRE, _HERE, _BOTH, _THERE = 0, 1, 2, 3  # squared length of `along`, product, that of `across`
_ANGLE, _LEFT, _RIGHT, _LEVEL, _VALUE = 4, 5, 6, 7, 8  # of the slice; log density at the angle
_NUM_BLOCKS, _NUM_ROWS = 6, 9


@jit(within=True)
def _base(chains, counts, r, first, width, w):
    """A Gaussian near the law of chains given counts: its potential, and its filter.

    One forward pass of a dynamic generalised linear model (West, Harrison and Migon 1985). It
    depends on counts and variances alone, not on where the chains are.

    A prediction is matched by the logit of a Beta(a, b), a = (1 + o) precision and b = a / o for
    odds o, to which the counts are added: log(a / b), 1 / a + 1 / b are mean and variance before
    and after. J is by how much the precision grows, the logarithm of `ratio` that of the mean.
    """
    predicted, precision, ratio = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    mean, var, centre = w.room.mean, w.room.var, w.rows[_CENTRE]
    w.rows[:] = 0.0
    for i in range(width):
        centre[i] = chains.centre[first + i]
        w.place[i] = first + i
    for t in range(w.blocks.shape[1]):
        trials, J, h = w.blocks[_TRIALS, t], w.blocks[_J, t], w.blocks[_H, t]
        earlier, pull, spread = _before(chains, r, t)
        for i in range(width):
            trials[i] = counts.reaching[r, t, first + i]
            predicted[i] = centre[i] + pull * mean[earlier, i]
            precision[i] = 1.0 / (pull * pull * var[earlier, i] + spread)
            odds = exp_minus(-min(max(predicted[i], -_FURTHEST), _FURTHEST))
            y = counts.taken[r, t, first + i]
            a, z = (1.0 + odds) * precision[i], trials[i] - y
            J[i] = (a * (z * odds * odds + y) + y * z * (1.0 + odds) * odds) / (
                (1.0 + odds) * (a * (1.0 + odds) + (y + z) * odds)
            )
            ratio[i] = (a + y) / (a + z * odds)
        for i in range(width):
            growth = math.log(ratio[i])
            mean[t, i] = predicted[i] - centre[i] + growth
            var[t, i] = 1.0 / (precision[i] + J[i])
            base = J[i] * predicted[i] + growth * (precision[i] + J[i])
            h[i] = counts.taken[r, t, first + i] - base


@jit(within=True)
def _draw_ellipses(chains, x, r, half, width, w, state):
    """Ellipses through the chains of row r of x and a draw of a Student-t, and their lengths.

    The draw is one of the Gaussian, times a scale that depends on where the chain is.
    """
    room, noise, J = w.room, np.empty(LANES), w.blocks[_J]
    current, both, other = w.rows[_HERE], w.rows[_BOTH], w.rows[_THERE]
    middle, along, across = w.blocks[_MIDDLE], w.blocks[_ALONG], w.blocks[_ACROSS]
    num_times = middle.shape[0]
    for t in range(num_times - 1, -1, -1):
        for i in range(width):
            noise[i], state = normal(state)
        later = min(t + 1, num_times - 1)  # of no weight at the last time
        mean, sd, gain = room.mean[t], room.var[t], room.gain[t]
        for i in range(width):
            middle[t, i] = mean[i] + gain[i] * middle[later, i]
            across[t, i] = sd[i] * noise[i] + gain[i] * across[later, i]
            other[i] += noise[i] * noise[i]
    for t in range(num_times):
        for i in range(width):
            middle[t, i] += w.rows[_CENTRE, i]
            along[t, i] = x[r, t, w.place[i]] - middle[t, i]
    for t in range(num_times):
        earlier, pull, spread = _before(chains, r, t)
        weight = 1.0 / spread
        for i in range(width):
            a, b = along[t, i], across[t, i]
            step, other_step = a - pull * along[earlier, i], b - pull * across[earlier, i]
            current[i] += J[t, i] * a * a
            current[i] += weight * step * step
            both[i] += J[t, i] * a * b
            both[i] += weight * step * other_step
    for i in range(width):
        g, state = gamma(half, state)
        stretch = 0.5 * (DOF + current[i]) / g
        root = math.sqrt(stretch)
        both[i] *= root
        other[i] *= stretch
        for t in range(num_times):
            across[t, i] *= root
    return state


@jit
def _weigh_points(half, waiting, w, cos, sin):
    """Log density of each unfinished chain at its angle, minus that of the Student-t."""
    value, current, both, other = w.rows[_VALUE], w.rows[_HERE], w.rows[_BOTH], w.rows[_THERE]
    middle, along, across = w.blocks[_MIDDLE], w.blocks[_ALONG], w.blocks[_ACROSS]
    for i in range(waiting):
        angle = w.rows[_ANGLE, i]
        value[i], cos[i], sin[i] = 0.0, math.cos(angle), math.sin(angle)
    for t in range(middle.shape[0]):
        slope, curvature, trials = w.blocks[_H, t], w.blocks[_J, t], w.blocks[_TRIALS, t]
        for i in range(waiting):
            psi = middle[t, i] + along[t, i] * cos[i] + across[t, i] * sin[i]
            softplus = max(psi, 0.0) + log1p(exp_minus(abs(psi)))  # less what the base has of it:
            value[i] += (slope[i] + 0.5 * curvature[i] * psi) * psi - trials[i] * softplus
    for i in range(waiting):
        c, s = cos[i], sin[i]
        square = current[i] * c * c + 2.0 * both[i] * c * s + other[i] * s * s
        value[i] += half * math.log1p(square / DOF) - 0.5 * square


@jit(within=True)
def _take_points(waiting, w, x, r, cos, sin, state):
    """Write chains above their slice to row r of x, and shrink the brackets of the others.

    Returns how many still wait; these move to the front.
    """
    blocks, rows, i = w.blocks, w.rows, 0
    while i < waiting:
        if rows[_VALUE, i] >= rows[_LEVEL, i] or rows[_ANGLE, i] == 0.0:
            for t in range(blocks.shape[1]):
                psi = blocks[_MIDDLE, t, i] + blocks[_ALONG, t, i] * cos[i]
                x[r, t, w.place[i]] = psi + blocks[_ACROSS, t, i] * sin[i]
            waiting -= 1
            for b in range(_NUM_BLOCKS):
                for t in range(blocks.shape[1]):
                    blocks[b, t, i] = blocks[b, t, waiting]
            for row in range(_NUM_ROWS):
                rows[row, i] = rows[row, waiting]
            w.place[i], cos[i], sin[i] = w.place[waiting], cos[waiting], sin[waiting]
            continue
        rows[_ANGLE, i], rows[_LEFT, i], rows[_RIGHT, i], state = shrink_bracket(
            rows[_ANGLE, i], rows[_LEFT, i], rows[_RIGHT, i], state
        )
        i += 1
    return waiting, state


@jit
def slice_chains(worker, start, stop, key, chains, counts, x):
    """Move each chain of `x`, in place: an elliptical slice around a Gaussian.

    Leaves the prior times the likelihood of the counts, of logit x, as it is.
    See Nishihara, Murray and Adams (2014); the base is a Student-t of `DOF` degrees of freedom.
    """
    _, num_times, num_chains = x.shape
    blocks, rows = np.zeros((_NUM_BLOCKS, num_times, LANES)), np.zeros((_NUM_ROWS, LANES))
    w = _Slices(_make_room(num_times), blocks, rows, np.zeros(LANES, dtype=np.int64))
    cos, sin = np.empty(LANES), np.empty(LANES)
    half = 0.5 * (DOF + num_times)
    for r in range(start, stop):
        state = open_stream(key, r)
        for first in range(0, num_chains, LANES):
            width = min(LANES, num_chains - first)
            _base(chains, counts, r, first, width, w)
            _look_back(chains.persistence, chains.innovation_var[r], w.room, width)
            state = _draw_ellipses(chains, x, r, half, width, w, state)
            _weigh_points(half, width, w, cos, sin)  # where the chains are
            for i in range(width):
                e, state = exponential(state)
                rows[_LEVEL, i] = rows[_VALUE, i] - e
                rows[_ANGLE, i], rows[_LEFT, i], rows[_RIGHT, i], state = open_bracket(state)
            waiting = width
            while waiting > 0:
                _weigh_points(half, waiting, w, cos, sin)
                waiting, state = _take_points(waiting, w, x, r, cos, sin, state)

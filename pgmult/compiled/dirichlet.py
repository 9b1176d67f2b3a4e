"""Dirichlet rows from keyed streams, exact for concentrations so small that gammas underflow.

Shapes below one use Ahrens and Dieter's (1974) algorithm GS, whose proposal is a power of a
uniform: an exponential variate divided by the shape *is* minus its logarithm, so the logarithm of
the gamma variate comes with it at no cost. Most cells of a topic or an emission row are such: their
first proposals are made for a whole row at once, eight exponentials at a time, and the few that are
refused (5 in 100 at a shape of 0.05) are drawn again one by one.
"""

import math

import numpy as np

from .jit import jit
from .simd import WIDTH, exp_negative, load, splat, store, where_above
from .streams import exponential, gamma, open_stream, uniform

_INVERSE_E = math.exp(-1.0)
_SAFE_LOG = -700.0  # `exp_negative` goes no further
_NOTHING = -746.0  # of this, and of all below, the exponential is 0
_SAFE_TOTAL = 2.0**-30  # shares of it keep their digits down to 1e-298


@jit
def gamma_below_one(shape, state):
    """A gamma variate of `shape` < 1 and its logarithm, which is finite when it underflows."""
    while True:
        u, state = uniform(state)
        e, state = exponential(state)
        u *= 1.0 + shape * _INVERSE_E
        if u < 1.0:  # propose below 1; u is now a uniform of its own
            log_x = -e / shape
            x = math.exp(log_x)
            if u < 1.0 - x or u < math.exp(-x):
                return x, log_x, state
        else:
            x = 1.0 + e
            log_x = math.log(x)
            u, state = uniform(state)
            if math.log(u) < (shape - 1.0) * log_x:
                return x, log_x, state


@jit(within=True)
def _propose_row(state, concentration, u, logs):
    """Gamma variates of shape >= 1 as they are, first proposals of GS for the others.

    Leaves logarithms in `logs`, and in `u` the uniforms that decide, 0 for what is decided.
    """
    for k in range(concentration.size):
        shape = concentration[k]
        if shape < 1.0:
            u[k], state = uniform(state)
            u[k] *= 1.0 + shape * _INVERSE_E
            e, state = exponential(state)
            logs[k] = -e / shape if u[k] < 1.0 else e
        else:
            u[k] = 0.0
            logs[k], state = gamma(shape, state)
    return state


@jit(within=True)
def _decide_row(state, concentration, u, logs, out):
    """Accept or refuse the proposals of a row; the sum of what is in `out` then."""
    total = 0.0
    for k in range(out.size):
        x = out[k]
        if u[k] == 0.0:
            x = logs[k]
        elif u[k] >= 1.0:  # a proposal above 1, by its distance
            x = 1.0 + logs[k]
            logs[k] = math.log(x)
            again, state = uniform(state)
            if math.log(again) >= (concentration[k] - 1.0) * logs[k]:
                x, logs[k], state = gamma_below_one(concentration[k], state)
        else:
            if logs[k] < _SAFE_LOG:
                x = math.exp(logs[k]) if logs[k] > _NOTHING else 0.0
            if u[k] >= 1.0 - x and u[k] >= math.exp(-x):
                x, logs[k], state = gamma_below_one(concentration[k], state)
        out[k] = x
        total += x
    return total


@jit
def row_room(num_categories):
    """Where `sample_row` works: a row for each of its three steps, whole vectors long."""
    return np.zeros((3, -(-num_categories // WIDTH) * WIDTH))


@jit
def sample_row(state, concentration, room, out):
    """Draw `out` from Dirichlet(concentration) out of one stream; `room` is from `row_room`.

    A row whose gammas sum to next to nothing (all shapes tiny) is normalised around the largest
    logarithm, and nothing is lost.
    """
    u, logs, x = room[0], room[1], room[2]
    zero = splat(0.0)
    state = _propose_row(state, concentration, u, logs)
    for k in range(0, x.size, WIDTH):
        log_x = load(logs, k)  # above 0 it is no logarithm, and not used
        store(x, k, exp_negative(where_above(log_x, zero, zero, log_x)))
    for k in range(out.size):
        out[k] = x[k]
    total = _decide_row(state, concentration, u, logs, out)
    if total < _SAFE_TOTAL:
        largest = -math.inf
        for k in range(out.size):
            if u[k] == 0.0:
                logs[k] = math.log(logs[k])
            largest = max(largest, logs[k])
        total = 0.0
        for k in range(out.size):
            out[k] = math.exp(logs[k] - largest)
            total += out[k]
    scale = 1.0 / total
    for k in range(out.size):
        out[k] *= scale


@jit
def sample_rows(worker, start, stop, key, concentration, out):
    """out[row] ~ Dirichlet(concentration[row])."""
    room = row_room(concentration.shape[1])
    for row in range(start, stop):
        sample_row(open_stream(key, row), concentration[row], room, out[row])

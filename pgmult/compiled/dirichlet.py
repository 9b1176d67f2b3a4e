"""Dirichlet rows from keyed streams, exact for concentrations so small that gammas underflow.

Shapes below one use Ahrens and Dieter's (1974) algorithm GS, whose proposal is a power of a
uniform: an exponential variate divided by the shape *is* minus its logarithm, so the logarithm of
the gamma variate comes with it at no cost.
"""

import math

from .jit import jit
from .streams import exponential, gamma, open_stream, uniform

_INVERSE_E = math.exp(-1.0)
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


@jit
def _sample_row_in_logs(key, row, concentration, out):
    """The same draws as the plain pass, normalised around the largest logarithm."""
    state = open_stream(key, row)
    largest = -math.inf
    for k in range(out.size):
        if concentration[k] < 1.0:
            _, out[k], state = gamma_below_one(concentration[k], state)
        else:
            x, state = gamma(concentration[k], state)
            out[k] = math.log(x)
        largest = max(largest, out[k])
    total = 0.0
    for k in range(out.size):
        out[k] = math.exp(out[k] - largest)
        total += out[k]
    return total


@jit
def sample_rows(worker, start, stop, key, concentration, out):
    """out[row] ~ Dirichlet(concentration[row]).

    A row whose gammas sum to next to nothing (all shapes tiny) is done again from its own stream
    in logarithms: same draws, nothing lost.
    """
    num_categories = concentration.shape[1]
    for row in range(start, stop):
        state = open_stream(key, row)
        total = 0.0
        for k in range(num_categories):
            shape = concentration[row, k]
            if shape < 1.0:
                x, _, state = gamma_below_one(shape, state)
            else:
                x, state = gamma(shape, state)
            out[row, k] = x
            total += x
        if total < _SAFE_TOTAL:
            total = _sample_row_in_logs(key, row, concentration[row], out[row])
        scale = 1.0 / total
        for k in range(num_categories):
            out[row, k] *= scale

"""Stick-breaking over rows: probabilities and the Pólya-gamma potential, in one pass each.

Stick k of K - 1 breaks for category ``order[k]``; the last entry of `order` takes the rest.
"""

import math

import numpy as np

from .jit import jit
from .polya_gamma import draw_integer
from .streams import exponential, normal, open_stream


@jit
def probs_rows(worker, start, stop, psi, order, out):
    """out[row, order[k]] = sigma(psi_k) prod_{j<k} sigma(-psi_j).

    One exponential serves sigma(psi) and sigma(-psi). Every factor carries its own relative
    error, so a product is right to K units in the last place wherever it does not underflow.
    """
    num_sticks = psi.shape[1]
    for row in range(start, stop):
        rest = 1.0
        for k in range(num_sticks):
            x = psi[row, k]
            e = math.exp(-abs(x))
            larger = 1.0 / (1.0 + e)
            smaller = e * larger
            out[row, order[k]] = rest * (larger if x >= 0.0 else smaller)
            rest *= smaller if x >= 0.0 else larger
        out[row, order[num_sticks]] = rest


@jit
def log_probs_rows(worker, start, stop, psi, order, out):
    """out[row, order[k]] = log sigma(psi_k) + sum_{j<k} log sigma(-psi_j)."""
    num_sticks = psi.shape[1]
    for row in range(start, stop):
        rest = 0.0
        for k in range(num_sticks):
            x = psi[row, k]
            softplus = math.log1p(math.exp(-abs(x)))
            out[row, order[k]] = rest + min(x, 0.0) - softplus
            rest -= max(x, 0.0) + softplus
        out[row, order[num_sticks]] = rest


@jit
def augment_rows(worker, start, stop, key, psi, counts, order, J, h):
    """J = omega ~ PG(N_k, psi_k) and h = x_k - N_k / 2, where N_k counts what reaches stick k."""
    num_sticks = psi.shape[1]
    for row in range(start, stop):
        state = open_stream(key, row)
        reaching = 0
        for k in range(num_sticks + 1):
            reaching += counts[row, k]
        for k in range(num_sticks):
            if reaching == 0:
                J[row, k] = 0.0
                h[row, k] = 0.0
                continue
            count = counts[row, order[k]]
            J[row, k], state = draw_integer(reaching, psi[row, k], state)
            h[row, k] = count - 0.5 * reaching
            reaching -= count


@jit
def _softplus(x):
    """Log(1 + exp(x))."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


@jit
def propose_rows(worker, start, stop, key, counts, mean, precision, psi):
    """Metropolis over the sticks of each row, in place, proposing from the prior given the others.

    `counts` are in the order of the sticks; `mean` has one row, or one a row of psi. The vector
    precision (psi - mean), from which every conditional mean follows, is kept up to date.
    """
    num_sticks = psi.shape[1]
    pull = np.empty(num_sticks)
    for row in range(start, stop):
        state = open_stream(key, row)
        m = min(row, mean.shape[0] - 1)
        reaching = counts[row, num_sticks]
        for i in range(num_sticks):
            reaching += counts[row, i]
            pull[i] = 0.0
        for k in range(num_sticks):
            deviation = psi[row, k] - mean[m, k]
            for i in range(num_sticks):
                pull[i] += precision[k, i] * deviation
        for k in range(num_sticks):
            noise, state = normal(state)
            step = noise / math.sqrt(precision[k, k]) - pull[k] / precision[k, k]
            here, there = psi[row, k], psi[row, k] + step
            count = counts[row, k]
            log_ratio = count * step - reaching * (_softplus(there) - _softplus(here))
            reaching -= count
            threshold, state = exponential(state)
            if log_ratio > -threshold:
                psi[row, k] = there
                for i in range(num_sticks):
                    pull[i] += precision[k, i] * step

"""Stick-breaking over rows: probabilities and the Pólya-gamma potential, in one pass each.

Stick k of K - 1 breaks for category ``order[k]``; the last entry of `order` takes the rest.
"""

import math

from .jit import jit
from .polya_gamma import draw_integer
from .streams import open_stream


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

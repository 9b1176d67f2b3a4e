"""Many scalar Gaussian chains with diagonal potentials: log normalisers and exact draws.

Chain (r, i) runs over times t = 0, ..., T - 1::

    x_t = centre_i + d_t, d_0 ~ N(0, initial_var_r), d_t ~ N(persistence d_{t-1}, innovation_var_r)

times exp(-J x_t**2 / 2 + h x_t) at every time, which may be 1 (J = h = 0). The filter goes forwards
over means and variances and divides by 1 + variance J alone, so nothing cancels and nothing is
special about a time without observation; the sampler comes back. `LANES` neighbouring chains of a
row go side by side, so the recursions vectorise. O(T) a chain.
"""

import math

import numpy as np

from pgmult.compiled.jit import jit
from pgmult.compiled.streams import exponential, normal, open_stream, uniform

LANES = 64
_FACTORS = 4  # of the normaliser for one logarithm; each would have to pass 1e75 to overflow


@jit
def log_normalizers(
    worker, start, stop, active, J, h, centre, persistence, initial_var, innovation_var, out
):
    """out[r] = log of the integral of the prior times the potential, over all chains of row r.

    `J` and `h` are (num_rows, num_times, num_chains); rows that are not `active` keep their value.
    """
    _, num_times, num_chains = J.shape
    mean, var = np.empty(LANES), np.empty(LANES)
    exponent, product = np.empty(LANES), np.empty(LANES)
    for r in range(start, stop):
        if not active[r]:
            continue
        total = 0.0
        for first in range(0, num_chains, LANES):
            width = min(LANES, num_chains - first)
            for i in range(width):
                mean[i] = 0.0
                var[i] = initial_var[r]
                exponent[i] = 0.0
                product[i] = 1.0
            for t in range(num_times):
                for i in range(width):
                    precision, linear = J[r, t, first + i], h[r, t, first + i]
                    c = centre[first + i]
                    exponent[i] += c * (2.0 * linear - precision * c)
                    linear -= precision * c
                    growth = 1.0 + var[i] * precision
                    shrink = 1.0 / growth
                    exponent[i] += shrink * (
                        linear * (2.0 * mean[i] + var[i] * linear) - precision * mean[i] * mean[i]
                    )
                    product[i] *= growth
                    mean[i] = persistence * shrink * (mean[i] + var[i] * linear)
                    var[i] = persistence * persistence * shrink * var[i] + innovation_var[r]
                if t % _FACTORS == _FACTORS - 1 or t == num_times - 1:
                    for i in range(width):
                        exponent[i] -= math.log(product[i])
                        product[i] = 1.0
            for i in range(width):
                total += exponent[i]
        out[r] = 0.5 * total


@jit
def sample_chains(
    worker, start, stop, key, J, h, centre, persistence, initial_var, innovation_var, out
):
    """Draw all chains of a piece's rows into `out`, (num_rows, num_times, num_chains)."""
    _, num_times, num_chains = J.shape
    mean, var = np.empty((num_times, LANES)), np.empty((num_times, LANES))
    noise = np.empty(LANES)
    for r in range(start, stop):
        state = open_stream(key, r)
        step_var = innovation_var[r]
        for first in range(0, num_chains, LANES):
            width = min(LANES, num_chains - first)
            for t in range(num_times):
                for i in range(width):
                    before, spread = 0.0, initial_var[r]
                    if t > 0:
                        before = persistence * mean[t - 1, i]
                        spread = persistence * persistence * var[t - 1, i] + step_var
                    precision = J[r, t, first + i]
                    linear = h[r, t, first + i] - precision * centre[first + i]
                    shrink = 1.0 / (1.0 + spread * precision)
                    mean[t, i] = shrink * (before + spread * linear)
                    var[t, i] = shrink * spread
            for t in range(num_times - 1, -1, -1):
                for i in range(width):
                    noise[i], state = normal(state)
                for i in range(width):
                    middle, spread = mean[t, i], var[t, i]
                    if t < num_times - 1:
                        later = out[r, t + 1, first + i] - centre[first + i]
                        whole = step_var + persistence * persistence * spread
                        middle = (middle * step_var + persistence * spread * later) / whole
                        spread = spread * step_var / whole
                    out[r, t, first + i] = centre[first + i] + middle + math.sqrt(spread) * noise[i]


@jit
def _log_shift(shift, taken, reaching, x, precision, linear):
    """Log of prior times binomial likelihood of a chain moved by `shift`, up to a constant."""
    total = shift * (linear - 0.5 * precision * shift)
    for t in range(x.shape[0]):
        if reaching[t] > 0.0:
            moved = x[t] + shift
            softplus = max(moved, 0.0) + math.log1p(math.exp(-abs(moved)))
            total += taken[t] * shift - reaching[t] * softplus
    return total


@jit
def shift_chains(
    worker, start, stop, key, taken, reaching, centre, persistence, initial_var, innovation_var, x
):
    """Move each chain of `x`, in place, as a whole: one slice update of the shift.

    Given the chain's binomial counts, `taken` of `reaching` with logit x_t, the shift's density is
    log-concave. The slice's width comes from counts and variances alone, not from where x is.
    Chains without counts stay.
    """
    _, num_times, num_chains = x.shape
    chain = np.empty(num_times)
    successes, trials = np.empty(num_times), np.empty(num_times)
    pull = 1.0 - persistence
    for r in range(start, stop):
        state = open_stream(key, r)
        precision = 1.0 / initial_var[r] + (num_times - 1) * pull * pull / innovation_var[r]
        for i in range(num_chains):
            hits, total = 0.0, 0.0
            for t in range(num_times):
                chain[t] = x[r, t, i]
                successes[t] = taken[r, t, i]
                trials[t] = reaching[r, t, i]
                hits += successes[t]
                total += trials[t]
            if total == 0.0:
                continue
            linear = (centre[i] - chain[0]) / initial_var[r]
            for t in range(1, num_times):
                innovation = chain[t] - centre[i] - persistence * (chain[t - 1] - centre[i])
                linear -= pull * innovation / innovation_var[r]
            share = (hits + 0.5) / (total + 1.0)
            width = 3.0 / math.sqrt(precision + total * share * (1.0 - share))
            e, state = exponential(state)
            level = _log_shift(0.0, successes, trials, chain, precision, linear) - e
            u, state = uniform(state)
            left = -width * u
            right = left + width
            while _log_shift(left, successes, trials, chain, precision, linear) > level:
                left -= width
            while _log_shift(right, successes, trials, chain, precision, linear) > level:
                right += width
            while True:
                u, state = uniform(state)
                shift = left + u * (right - left)
                if _log_shift(shift, successes, trials, chain, precision, linear) > level:
                    break
                if shift == 0.0:  # the interval has shrunk to where the chain is
                    break
                if shift < 0.0:
                    left = shift
                else:
                    right = shift
            for t in range(num_times):
                x[r, t, i] = chain[t] + shift

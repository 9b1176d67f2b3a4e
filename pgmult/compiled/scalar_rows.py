"""Log likelihoods of rows that have one predictor each, added up, and their slopes.

Binomial rows, y psi - n log(1 + exp psi), and through them negative binomial ones; Poisson rows,
y psi - exp psi.
"""

import numpy as np

from .jit import jit
from .vectors import exp_minus, log1p


@jit(reassociate=True)
def binomial_total(psi, successes, trials):
    """Sum of successes psi - trials log(1 + exp psi)."""
    total = 0.0
    for i in range(psi.shape[0]):
        softplus = max(psi[i], 0.0) + log1p(exp_minus(abs(psi[i])))
        total += successes[i] * psi[i] - trials[i] * softplus
    return total


@jit
def binomial_totals(psi, successes, trials):
    """`binomial_total` of each column."""
    totals = np.zeros(psi.shape[1])
    for i in range(psi.shape[0]):
        for k in range(psi.shape[1]):
            softplus = max(psi[i, k], 0.0) + log1p(exp_minus(abs(psi[i, k])))
            totals[k] += successes[i, k] * psi[i, k] - trials[i, k] * softplus
    return totals


@jit
def binomial_slope(psi, successes, trials):
    """Successes - trials / (1 + exp -psi) of each row."""
    out = np.empty(len(psi))
    for i in range(psi.shape[0]):
        tail = exp_minus(abs(psi[i]))
        share = (1.0 if psi[i] > 0.0 else tail) / (1.0 + tail)
        out[i] = successes[i] - trials[i] * share
    return out


@jit(reassociate=True)
def poisson_total(psi, counts, times):
    """Sum of times (counts psi - exp psi)."""
    total = 0.0
    for i in range(psi.shape[0]):
        total += times[i] * (counts[i] * psi[i] - exp_minus(-psi[i]))
    return total


@jit
def poisson_slope(psi, counts, times):
    """Times (counts - exp psi) of each row."""
    out = np.empty(len(psi))
    for i in range(psi.shape[0]):
        out[i] = times[i] * (counts[i] - exp_minus(-psi[i]))
    return out

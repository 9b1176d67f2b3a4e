"""Multinomial and Dirichlet-multinomial rows whose K scores are contrasts of K - 1 predictors.

Scores are ``H psi`` with the K - 1 orthonormal columns of Helmert contrasts: column c has a_c in
the rows up to c and -(c + 1) a_c in row c + 1, a_c = 1 / sqrt((c + 1) (c + 2)). So scores add up
to 0, and standard normal predictors make no category special.

A Dirichlet-multinomial row of concentration phi and shares p has alpha = phi p and probability

    prod_k Gamma(x_k + alpha_k) / Gamma(alpha_k)  Gamma(phi) / Gamma(N + phi)

times multinomial coefficients (Mosimann 1962).
"""

import math

import numpy as np

from pgmult.compiled.jit import jit
from pgmult.compiled.vectors import exp_minus

_BLOCK = 64  # rows side by side
_FEW = 24  # counts, up to which products take the place of gamma functions


@jit
def helmert_scales(num):
    """The a_c of `num` contrasts."""
    out = np.empty(num)
    for c in range(num):
        out[c] = 1.0 / math.sqrt((c + 1.0) * (c + 2.0))
    return out


@jit
def _fill_shares(psi, scales, shares):
    """Set `shares`, ``(K, num)``, to the probabilities of rows, and return logs of normalisers.

    Rows stand side by side, so that loops over them vectorise.
    """
    num, count = psi.shape
    total, top = np.zeros(num), np.empty(num)
    for c in range(count - 1, -1, -1):
        for n in range(num):
            z = psi[n, c] * scales[c]
            shares[c + 1, n] = total[n] - (c + 1.0) * z
            total[n] += z
    for n in range(num):
        shares[0, n] = top[n] = total[n]
        total[n] = 0.0
    for k in range(1, count + 1):
        for n in range(num):
            top[n] = max(top[n], shares[k, n])
    for k in range(count + 1):
        for n in range(num):
            shares[k, n] = exp_minus(top[n] - shares[k, n])
            total[n] += shares[k, n]
    for k in range(count + 1):
        for n in range(num):
            shares[k, n] /= total[n]
    for n in range(num):
        top[n] += math.log(total[n])
    return top


@jit
def fill_contrasts(g, scales, out):
    """Set `out` to the gradient in predictors of one in scores."""
    total = 0.0
    for c in range(len(out)):
        total += g[c]
        out[c] = (total - (c + 1.0) * g[c + 1]) * scales[c]


@jit
def shares_of(psi):
    """Probabilities of all rows."""
    num, count = psi.shape
    out, shares = np.empty((num, count + 1)), np.empty((count + 1, _BLOCK))
    scales = helmert_scales(count)
    for first in range(0, num, _BLOCK):
        rows = psi[first : first + _BLOCK]
        _fill_shares(rows, scales, shares)
        for n in range(len(rows)):
            for k in range(count + 1):
                out[first + n, k] = shares[k, n]
    return out


@jit
def rows_total(psi, counts, phi):
    """Log likelihood of Dirichlet-multinomial rows; of multinomial ones where phi is infinite."""
    num, count = psi.shape
    shares, pulls, value = np.empty((count + 1, _BLOCK)), np.empty(count), 0.0
    scales = helmert_scales(count)
    for first in range(0, num, _BLOCK):
        rows = psi[first : first + _BLOCK]
        normalisers = _fill_shares(rows, scales, shares)
        for n in range(len(rows)):
            size = 0.0
            for k in range(count + 1):
                size += counts[first + n, k]
            if phi < math.inf:
                for k in range(count + 1):
                    if counts[first + n, k] > 0.0:
                        value += log_rising(max(phi * shares[k, n], 1e-290), counts[first + n, k])
                value -= log_rising(phi, size)
            else:
                fill_contrasts(counts[first + n], scales, pulls)
                for c in range(count):
                    value += pulls[c] * rows[n, c]
                value -= size * normalisers[n]
    return value


@jit
def rows_slope(psi, counts, phi):
    """Its derivatives."""
    num, count = psi.shape
    out, shares = np.empty(psi.shape), np.empty((count + 1, _BLOCK))
    scales, u = helmert_scales(count), np.empty(count + 1)
    for first in range(0, num, _BLOCK):
        rows = psi[first : first + _BLOCK]
        _fill_shares(rows, scales, shares)
        for n in range(len(rows)):
            total = 0.0
            for k in range(count + 1):
                u[k] = counts[first + n, k]
                if phi < math.inf:
                    alpha = max(phi * shares[k, n], 1e-290)
                    u[k] = alpha * rising_slope(alpha, counts[first + n, k])
                total += u[k]
            for k in range(count + 1):
                u[k] -= total * shares[k, n]
            fill_contrasts(u, scales, out[first + n])
    return out


@jit
def log_rising(alpha, count):
    """Log Gamma(count + alpha) - log Gamma(alpha) for a whole count."""
    if count > _FEW:
        return math.lgamma(count + alpha) - math.lgamma(alpha)
    total, product, j = 0.0, 1.0, 0.0
    while j < count:
        product *= alpha + j
        j += 1.0
        if product > 1e200 or product < 1e-200:
            total += math.log(product)
            product = 1.0
    return total + math.log(product)


@jit
def _digamma(x):
    """The digamma function of x > 0, to some 12 digits (Abramowitz and Stegun, 6.3.18)."""
    value = 0.0
    while x < 10.0:
        value -= 1.0 / x
        x += 1.0
    s = 1.0 / (x * x)
    tail = s * (1 / 12 - s * (1 / 120 - s * (1 / 252 - s * (1 / 240 - s * (1 / 132)))))
    return value + math.log(x) - 0.5 / x - tail


@jit
def rising_slope(alpha, count):
    """The derivative of `log_rising` in alpha."""
    if count > _FEW:
        return _digamma(count + alpha) - _digamma(alpha)
    value, j = 0.0, 0.0
    while j < count:
        value += 1.0 / (alpha + j)
        j += 1.0
    return value


@jit
def beta_total(psi, successes, trials, phi):
    """Log likelihood of beta-binomial rows with log odds psi."""
    value = 0.0
    for n in range(len(psi)):
        tail = exp_minus(abs(psi[n]))
        p = (1.0 if psi[n] > 0.0 else tail) / (1.0 + tail)
        q = (tail if psi[n] > 0.0 else 1.0) / (1.0 + tail)
        value += log_rising(max(phi * p, 1e-290), successes[n])
        value += log_rising(max(phi * q, 1e-290), trials[n] - successes[n])
        value -= log_rising(phi, trials[n])
    return value


@jit
def beta_slope(psi, successes, trials, phi):
    """Its derivatives."""
    out = np.empty(len(psi))
    for n in range(len(psi)):
        tail = exp_minus(abs(psi[n]))
        p = (1.0 if psi[n] > 0.0 else tail) / (1.0 + tail)
        q = (tail if psi[n] > 0.0 else 1.0) / (1.0 + tail)
        a, b = max(phi * p, 1e-290), max(phi * q, 1e-290)
        u, v = a * rising_slope(a, successes[n]), b * rising_slope(b, trials[n] - successes[n])
        out[n] = q * u - p * v
    return out

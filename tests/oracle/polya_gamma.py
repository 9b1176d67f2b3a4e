"""Pólya-gamma laws computed slowly in ways that share nothing with the library.

* `characteristic_cdf`: Gil-Pelaez inversion of the characteristic function, a trapezoid sum with
  a half-step offset; its aliasing error is the mass beyond one period, which spans 45 standard
  deviations and more.
* `series_cdf`: the alternating density series integrated term by term (inverse Gaussian
  distribution functions), in double precision for b <= 4.
"""

import math
from functools import cache

import mpmath
import numpy as np
from scipy.special import erfcx, gammaln, ndtr
from scipy.stats import kstwobign


def log_cosh(z):
    """Log cosh on the right half plane, on the branch that is continuous from 0."""
    return z + np.log1p(np.exp(-2.0 * z)) - math.log(2.0)


@cache
def cumulants(b, c, order=4):
    """Cumulants 1, ..., order of PG(b, c): mpmath derivatives of g(w) = log cosh sqrt(w)."""
    with mpmath.workdps(60):
        # log E exp(t X) = b (g(w) - g(w - t / 2)) at w = c**2 / 4
        w = mpmath.mpf(float(c)) ** 2 / 4
        derivatives = mpmath.diffs(lambda v: mpmath.log(mpmath.cosh(mpmath.sqrt(v))), w, order)
        scaled = [mpmath.re(d) * -(mpmath.mpf(-0.5) ** j) for j, d in enumerate(derivatives)]
        return [float(b * value) for value in scaled[1:]]


def characteristic_cdf(x, b, c):
    """P(X <= x), X ~ PG(b, c), for an array x; absolute error near 1e-10 for b >= 0.5."""
    x = np.asarray(x, dtype=float)
    variance = cumulants(b, c)[1]
    # the right tail is exponential at rate (pi**2 + c**2) / 2 or thinner
    period = 45.0 * math.sqrt(variance) + 80.0 / (math.pi**2 + c * c)
    step = 2.0 * math.pi / period
    # |phi(t)| = exp(-b sqrt(t) / 2) about, for large t; or a Gaussian, for large b
    longest = 1.0
    while (
        b * (log_cosh(np.sqrt(c * c / 4.0 - 0.5j * longest)).real - float(log_cosh(abs(c) / 2.0)))
        < 28.0
    ):
        longest *= 1.1
    frequency = (np.arange(math.ceil(longest / step)) + 0.5) * step
    log_phi = b * (log_cosh(abs(c) / 2.0) - log_cosh(np.sqrt(c * c / 4.0 - 0.5j * frequency)))
    result = np.empty(x.shape)
    for i, point in np.ndenumerate(x):
        terms = np.imag(np.exp(log_phi - 1j * frequency * point)) / frequency
        result[i] = 0.5 - step / math.pi * terms.sum()
    return result


def series_cdf(x, b, c):
    """P(X <= x), X ~ PG(b, c), b <= 4, by the alternating series of inverse Gaussians."""
    x = np.asarray(x, dtype=float)[..., None]
    c = abs(c)
    n = np.arange(400.0)
    level = n + 0.5 * b
    sign = np.where(n % 2 == 0, 1.0, -1.0)
    log_weight = gammaln(n + b) - gammaln(b) - gammaln(n + 1.0) - n * c
    root = np.sqrt(x)
    # hitting times of `level` with drift c: two normal tails, the second times exp(2 level c)
    up = (level + c * x) / (math.sqrt(2.0) * root)
    second = 0.5 * erfcx(up) * np.exp(-((level - c * x) ** 2) / (2.0 * x))
    hitting = ndtr((c * x - level) / root) + second
    return (1.0 + math.exp(-c)) ** b * (sign * np.exp(log_weight) * hitting).sum(axis=-1)


def discrepancies(draws, b, c, num_points=200):
    """z of the mean, z of the variance and p of the Kolmogorov-Smirnov distance to PG(b, c).

    The distance is taken over `num_points` quantiles of the draws: never above the full one.
    """
    size = draws.size
    mean, variance, _, fourth = cumulants(b, c)
    squares = (draws - mean) ** 2
    z_mean = (draws.mean() - mean) / math.sqrt(variance / size)
    z_var = (squares.mean() - variance) / math.sqrt((fourth + 2.0 * variance**2) / size)
    ranks = np.linspace(0, size - 1, num_points + 2).astype(int)[1:-1]
    ordered = np.sort(draws)
    points = ordered[ranks]
    exact = series_cdf(points, b, c) if b < 0.5 else characteristic_cdf(points, b, c)
    below = np.searchsorted(ordered, points, side="right") / size
    return z_mean, z_var, float(kstwobign.sf(math.sqrt(size) * np.abs(below - exact).max()))

"""Conjugate draws of stick-breaking regressions: weights row by row, and their columns' scales.

Given omega and the regressors z_t = (x_t, u_t, 1) the rows of W in psi_t = W z_t are independent,

    w_k | omega, z ~ exp(-w' (P_k + sum_t omega_tk z_t z_t') w / 2
                         + (P_k m_k + sum_t kappa_tk z_t)' w)

with prior N(m_k, P_k^-1), P_k diagonal (Polson, Scott and Windle 2013, section 1.1). Column d of
the loadings, the part of W that multiplies x_t, has a variance of its own, inverse gamma: where a
column is not needed its scale shrinks, and with it what that coordinate of the state explains
(MacKay 1995, "Probable networks and plausible predictions", on automatic relevance determination).

Offsets have the Gaussian prior whose *probabilities* have the moments of a Dirichlet. Matching the
moments of log odds instead gives sticks the long left tail of a beta variable's logarithm as a
right tail as well, so that early sticks of a thousand take far too
much, and symbols never seen, at the end, have next to nothing left.
"""

from functools import lru_cache

import numpy as np
from scipy.special import expit, logit

from pgmult.compiled.rows import over_rows
from pgmult.compiled.simd import WIDTH
from pgmult.core.typing import FloatArray
from pgmult.core.validate import new_key
from pgmult.sequences.compiled import symbols

_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(48)
_NODE_WEIGHTS = _NODE_WEIGHTS / _NODE_WEIGHTS.sum()
_MOST_NEWTON_STEPS = 50


def sample_rows(
    rng: np.random.Generator,
    squares: FloatArray,
    linear: FloatArray,
    prior_precision: FloatArray,
    prior_mean: FloatArray,
) -> FloatArray:
    """One exact draw of every row of W, ``(num_rows, n)``.

    Parameters
    ----------
    rng : numpy.random.Generator
    squares : array, ``(num_rows, n (n + 1) / 2)``
        Lower triangles, row by row, as `ActiveSticks.statistics` gives them.
    linear : array, ``(num_rows, n)``
    prior_precision, prior_mean : arrays, ``(num_rows, n)``

    Raises
    ------
    FloatingPointError
        If a row has no finite posterior: the states have exploded.

    Notes
    -----
    O(num_rows n**3), eight rows at a time.
    """
    out = np.empty(linear.shape)
    groups = -(-len(out) // WIDTH)
    statuses = over_rows(
        symbols.sample_regressions, groups, new_key(rng), squares,
        linear + prior_precision * prior_mean, prior_precision, out, grain=8,
    )  # fmt: skip
    failed = [status - 1 for status in statuses if status]
    if failed:
        raise FloatingPointError(
            f"the weights of row {min(failed)} have no finite posterior (have states exploded?)"
        )
    return out


def sample_loading_var(
    rng: np.random.Generator, loadings: FloatArray, shape: float, scale: float
) -> FloatArray:
    """The variance of each column given loadings ``(n, D)`` and its IG(shape, scale) prior."""
    squares = np.einsum("kd,kd->d", loadings, loadings)
    return np.asarray(
        (scale + 0.5 * squares) / rng.gamma(shape + 0.5 * len(loadings), size=len(squares))
    )


def _expected(values: FloatArray) -> FloatArray:
    """Means over the nodes, the last axis."""
    return np.asarray(np.einsum("kn,n->k", values, _NODE_WEIGHTS))


@lru_cache(maxsize=8)
def uniform_sticks(num_symbols: int, concentration: float) -> tuple[FloatArray, FloatArray]:
    """Means and variances, ``(num_symbols - 1,)`` each, of sticks of exchangeable symbols.

    If psi_k ~ N(mean_k, var_k), sigma(psi_k) has the mean and variance of Beta(a, (K - k) a), which
    stick k has under a symmetric Dirichlet(a), a >= 0.1, below which the beta law has its mass at 0
    and 1: Newton's method, moments by Gauss-Hermite rule.
    """
    b = concentration * np.arange(num_symbols - 1, 0, -1)
    total = concentration + b
    mean_share, var_share = concentration / total, concentration * b / total**2 / (total + 1.0)
    slope = mean_share * (1.0 - mean_share)
    var = np.log1p(var_share / slope**2)
    mean = logit(mean_share) - 0.5 * var * (1.0 - 2.0 * mean_share)
    log_sd = 0.5 * np.log(var)
    for _ in range(_MOST_NEWTON_STEPS):
        noise = np.exp(log_sd)[:, None] * _NODES
        share = expit(mean[:, None] + noise)
        off = (share - mean_share[:, None]) / np.sqrt(var_share)[:, None]
        rate = share * (1.0 - share) / np.sqrt(var_share)[:, None]
        first, second = _expected(off), 0.5 * (_expected(off * off) - 1.0)
        by_mean, by_sd = _expected(rate), _expected(rate * noise)
        cross_mean = _expected(off * rate)
        cross_sd = _expected(off * rate * noise)
        determinant = by_mean * cross_sd - by_sd * cross_mean
        step_mean = (first * cross_sd - by_sd * second) / determinant
        step_sd = (by_mean * second - first * cross_mean) / determinant
        mean = mean - np.clip(step_mean, -1.0, 1.0)
        log_sd = log_sd - np.clip(step_sd, -0.5, 0.5)
        if max(np.abs(step_mean).max(), np.abs(step_sd).max()) < 1e-10:
            break
    mean.flags.writeable = False
    var = np.exp(2.0 * log_sd)
    var.flags.writeable = False
    return mean, var

"""Conjugate draws of stick-breaking regressions: weights row by row, and their columns' scales.

Given omega and the regressors z_t = (x_t, u_t, 1) the rows of W in psi_t = W z_t are independent,

    w_k | omega, z ~ exp(-w' (P + sum_t omega_tk z_t z_t') w / 2 + (P m_k + sum_t kappa_tk z_t)' w)

with prior N(m_k, P^-1), P diagonal (Polson, Scott and Windle 2013, section 1.1). Column d of the
loadings, the part of W that multiplies x_t, has a variance of its own, inverse gamma: where a
column is not needed its scale shrinks, and with it what that coordinate of the state explains
(MacKay 1995, "Probable networks and plausible predictions", on automatic relevance determination).
"""

import numpy as np

from pgmult._validate import new_key
from pgmult.compiled import symbols
from pgmult.compiled._rows import over_rows
from pgmult.compiled.simd import WIDTH
from pgmult.typing import FloatArray

__all__ = ["sample_loading_var", "sample_rows"]


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
    prior_precision : array, ``(n,)``
        Positive; common to all rows.
    prior_mean : array, ``(num_rows, n)``

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

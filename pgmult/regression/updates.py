"""Gibbs move of the weights of logistic regressions, one for each group of rows.

Given omega_n ~ PG(b_n, x_n' w_g) the weights are Gaussian (Polson, Scott and Windle 2013), with
precision P + X' diag(omega) X and precision times mean P m + X' (successes - trials / 2). Groups
run on all the threads of the enclosing chain.
"""

import numpy as np

from pgmult.compiled.rows import over_rows
from pgmult.core.typing import FloatArray
from pgmult.core.validate import new_key
from pgmult.regression.compiled.weights import sample_weights
from pgmult.regression.data import LabelledRows

__all__ = ["draw_weights"]


def draw_weights(
    rng: np.random.Generator,
    weights: FloatArray,
    mean: FloatArray,
    precision: FloatArray,
    data: LabelledRows,
) -> FloatArray:
    """Omega given `weights`, and weights moved given omega, every group on its own stream.

    Parameters
    ----------
    rng : numpy.random.Generator
    weights : array, ``(num_groups, num_covariates)``
        Where they are. Not changed.
    mean, precision : arrays, ``(num_covariates,)`` and ``(num_covariates, num_covariates)``
        Of their Gaussian prior.
    data : LabelledRows

    Raises
    ------
    ValueError
        If a group's posterior precision is not positive definite in floating point.
    """
    out = np.empty_like(weights)
    statuses = over_rows(
        sample_weights, data.num_groups, data.covariates, data.offsets, data.successes,
        data.trials, mean[None], precision, new_key(rng), weights, out, grain=1,
    )  # fmt: skip
    failed = [status - 1 for status in statuses if status]
    if failed:
        raise ValueError(
            f"group {min(failed)} has no Gaussian posterior: its precision is not positive definite"
            " or not finite (are covariates of very different scales?)"
        )
    return out

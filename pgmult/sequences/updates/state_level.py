"""One Gaussian move of the level of all states, which the observations cannot see.

With psi_t = offset + C x_t + E u_t, adding delta to all states and taking C delta from the offset
changes no psi. Given everything else up to that translation, delta is Gaussian: the offset has its
prior N(m, diag(s)), the mean of first states moves along, and every other step says

    x_t - A x_{t-1} - B u_t + (I - A) delta  ~  N(0, Q).

Under persistent dynamics a chain that draws x and the offset in turn moves along this direction in
tiny steps (Yu and Meng 2011, "To center or not to center", on interweaving such moves).
"""

import numpy as np

from pgmult.compiled.linalg import invert_lower, invert_positive_definite
from pgmult.core.typing import FloatArray
from pgmult.priors.gaussian import NormalInverseWishart, lower_cholesky
from pgmult.sequences.updates.dynamics import RegressionSums

__all__ = ["level_potential", "sample_level"]


def level_potential(
    later: RegressionSums,
    first: RegressionSums,
    noise_cov: FloatArray,
    initial_cov: FloatArray,
    start: NormalInverseWishart | None,
    loadings: FloatArray,
    offset: FloatArray,
    offset_mean: FloatArray,
    offset_var: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Precision ``(D, D)`` and linear term ``(D,)`` of delta.

    Parameters
    ----------
    later : RegressionSums
        `transition_sums` of the states about (A, B).
    first : RegressionSums
        `first_sums` about their mean.
    noise_cov, initial_cov : arrays, ``(D, D)``
    start : NormalInverseWishart or None
        The prior of the initial mean, which moves along; None if that stays where it is.
    loadings : array, ``(n, D)``
    offset, offset_mean, offset_var : arrays, ``(n,)``
    """
    D = len(noise_cov)
    away = np.eye(D) - later.coefficients[:, :D]
    noise_precision = invert_positive_definite(noise_cov)
    pull = np.einsum("ij,jk->ik", away.T, noise_precision)
    precision = later.count * np.einsum("ij,jk->ik", pull, away)
    linear = -np.einsum("ij,j->i", pull, later.ze[-1])
    initial_precision = invert_positive_definite(initial_cov)
    if start is None:
        weight, gap = first.count, -first.ze[-1]
    else:
        weight, gap = start.strength, start.strength * (start.mean - first.coefficients[:, 0])
    precision += weight * initial_precision
    linear += np.einsum("ij,j->i", initial_precision, gap)
    scaled = loadings / offset_var[:, None]
    precision += np.einsum("ki,kj->ij", scaled, loadings)
    linear += np.einsum("ki,k->i", scaled, offset - offset_mean)
    return 0.5 * (precision + precision.T), linear


def sample_level(rng: np.random.Generator, precision: FloatArray, linear: FloatArray) -> FloatArray:
    """One draw of delta."""
    half = invert_lower(lower_cholesky(precision))
    white = np.einsum("ij,j->i", half, linear) + rng.standard_normal(len(linear))
    return np.asarray(np.einsum("ij,i->j", half, white))

"""Moves of the level and of the scales of all states, which the observations cannot see.

*Level*. With psi_t = offset + C x_t + E u_t, adding delta to all states and taking C delta from the
offset changes no psi. Given everything else up to that translation, delta is Gaussian: the offset
has its prior N(m, diag(s)), the mean of first states moves along, and every other step says

    x_t - A x_{t-1} - B u_t + (I - A) delta  ~  N(0, Q).

Under persistent dynamics a chain that draws x and the offset in turn moves along this direction in
tiny steps (Yu and Meng 2011, "To center or not to center", on interweaving such moves).

*Scales*. With g = exp(a), one positive factor a coordinate, and G = diag(g), the transformation

    x_t -> G x_t,  C -> C G^-1,  v -> G^-2 v,  A -> G A G^-1,  B -> G B,  Q -> G Q G,
    m -> G m,  V -> G V G

leaves psi, the law of the states given the dynamics and that of the loadings C given their
variances v as they are, up to its Jacobian. What is left as a density of a is that of the priors of
(A, B, Q), (m, V) and v at the transformed point, times what the Jacobians of these contribute: a
line through a = 0 in a random direction is sampled by slice (Liu and Sabatti 2000, "Generalised
Gibbs sampler and multigrid Monte Carlo", on moves along a group). A chain that draws x, C, Q and v
in turn moves in tiny steps here, because thousands of states pin Q, and Q them.
"""

import numpy as np

from pgmult.compiled.linalg import invert_lower, invert_positive_definite
from pgmult.core.typing import FloatArray
from pgmult.core.validate import new_key
from pgmult.priors.gaussian import NormalInverseWishart, lower_cholesky
from pgmult.priors.matrix_normal import MatrixNormalInverseWishart
from pgmult.sequences.compiled.dynamics import ScaleLaw, slice_scales
from pgmult.sequences.updates.dynamics import RegressionSums


def level_potential(
    later: RegressionSums,
    initial_mean: FloatArray,
    noise_cov: FloatArray,
    initial_cov: FloatArray,
    start: NormalInverseWishart,
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
    initial_mean : array, ``(D,)``
    noise_cov, initial_cov : arrays, ``(D, D)``
    start : NormalInverseWishart
        The prior of the initial mean, which moves along.
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
    gap = start.strength * (start.mean - initial_mean)
    precision += start.strength * initial_precision
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


def scale_law(
    dynamics: tuple[MatrixNormalInverseWishart, FloatArray, FloatArray],
    initial: tuple[NormalInverseWishart, FloatArray, FloatArray],
    loading_prior: tuple[float, float],
    loading_var: FloatArray,
) -> ScaleLaw:
    """The law of a, ``(D,)``, whose density is `scale_log_density`.

    Parameters
    ----------
    dynamics : prior, coefficients ``(D + num_inputs, D)`` and noise_cov
        Coefficients are (A, B)'.
    initial : prior, initial mean and initial covariance
    loading_prior : shape and scale of the inverse gamma prior of v
    loading_var : array, ``(D,)``
        v.
    """
    prior, coefficients, noise_cov = dynamics
    D, num_inputs = len(noise_cov), len(coefficients) - len(noise_cov)
    shape, scale = loading_prior
    # the Jacobian of (A, B, Q), and the determinants of their density
    linear = num_inputs + D + 1.0 - (prior.dof + D + 1.0) - (D + num_inputs) + 2.0 * shape
    precision = invert_positive_definite(noise_cov)
    start, mean, cov = initial
    linear += D + 2.0 - (start.dof + D + 1.0) - 1.0  # and those of (m, V)
    first = (mean, start.mean, float(start.strength), start.scale, invert_positive_definite(cov))
    return ScaleLaw(
        np.ascontiguousarray(coefficients), prior.mean, prior.row_precision, prior.scale,
        precision, *first, float(scale), loading_var, float(linear),
    )  # fmt: skip


def sample_scales(rng: np.random.Generator, law: ScaleLaw) -> FloatArray:
    """Factors g, ``(state_dim,)``, after one slice update along a random direction."""
    a = np.empty(len(law.precision))
    direction = rng.standard_normal(len(a))
    direction /= np.sqrt(np.einsum("d,d", direction, direction))
    slice_scales(new_key(rng), direction, rng.standard_exponential(), law, a)
    return np.asarray(np.exp(a))

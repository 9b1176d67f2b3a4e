"""A move of the scales of all coordinates of the state, which the observations cannot see.

With g = exp(a), one positive factor a coordinate, and G = diag(g), the transformation

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

from pgmult.compiled.linalg import invert_positive_definite
from pgmult.core.typing import FloatArray
from pgmult.core.validate import new_key
from pgmult.priors.gaussian import NormalInverseWishart
from pgmult.priors.matrix_normal import MatrixNormalInverseWishart
from pgmult.sequences.compiled.dynamics import ScaleLaw, slice_scales

__all__ = ["sample_scales", "scale_law"]


def scale_law(
    dynamics: tuple[MatrixNormalInverseWishart, FloatArray, FloatArray],
    initial: tuple[NormalInverseWishart, FloatArray, FloatArray] | None,
    loading_prior: tuple[float, float],
    loading_var: FloatArray,
) -> ScaleLaw:
    """The law of a, ``(D,)``, whose density is `scale_log_density`.

    Parameters
    ----------
    dynamics : prior, coefficients ``(D + num_inputs, D)`` and noise_cov
        Coefficients are (A, B)'.
    initial : prior, initial mean and initial covariance, or None
        None where they follow from the dynamics.
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
    zero = np.zeros(D)
    first = (zero, zero, 0.0, noise_cov, precision)
    if initial is not None:
        start, mean, cov = initial
        linear += D + 2.0 - (start.dof + D + 1.0) - 1.0  # and those of (m, V)
        inverse = invert_positive_definite(cov)
        first = (mean, start.mean, float(start.strength), start.scale, inverse)
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

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

from collections.abc import Callable

import numpy as np

from pgmult.core.typing import BoolArray, FloatArray
from pgmult.priors.gaussian import NormalInverseWishart
from pgmult.priors.matrix_normal import MatrixNormalInverseWishart
from pgmult.sampling.moves import slice_sample

__all__ = ["sample_scales", "scale_density"]

_WIDTH = 0.5  # of the slice, in logarithms


def scale_density(
    dynamics: tuple[MatrixNormalInverseWishart, FloatArray, FloatArray],
    initial: tuple[NormalInverseWishart, FloatArray, FloatArray] | None,
    loading_prior: tuple[float, float],
    loading_var: FloatArray,
) -> Callable[[FloatArray], float]:
    """The log density of a, ``(D,)``, up to a constant.

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

    def log_density(a: FloatArray) -> float:
        g = np.exp(a)
        rows = np.concatenate([1.0 / g, np.ones(num_inputs)])
        both = g[:, None] * g
        total = prior.log_density(rows[:, None] * coefficients * g, noise_cov * both)
        power = num_inputs + D + 1.0  # of each factor in the Jacobian of (A, B, Q)
        if initial is not None:
            start, mean, cov = initial
            total += start.log_density(g * mean, cov * both)
            power += D + 2.0
        total += float(np.sum(2.0 * shape * a - scale * np.exp(2.0 * a) / loading_var))
        return total + power * float(a.sum())

    return log_density


def sample_scales(
    rng: np.random.Generator, log_density: Callable[[FloatArray], float], state_dim: int
) -> FloatArray:
    """Factors g, ``(state_dim,)``, after one slice update along a random direction."""
    direction = rng.standard_normal(state_dim)

    def along(distance: FloatArray, active: BoolArray) -> FloatArray:
        return np.array([log_density(distance[0] * direction)])

    return np.asarray(np.exp(slice_sample(rng, along, np.zeros(1), _WIDTH)[0] * direction))

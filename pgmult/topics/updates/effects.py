"""Random effects of a linear model of psi: their variances, then everything in one draw."""

import numpy as np

from pgmult.core.typing import BoolArray, FloatArray
from pgmult.priors.mixed_regression import MixedRegression, log_variance_density
from pgmult.sampling.moves import slice_sample

__all__ = ["sample_variances"]

_WIDTH = 2.0  # of a slice's first interval, in log rho


def sample_variances(
    rng: np.random.Generator, regression: MixedRegression, variances: FloatArray, scale: float
) -> FloatArray:
    """Move the variances of random terms, coefficients, effects and Sigma integrated out.

    A slice of each log rho_j in turn, given the others. Each of some eight densities costs
    O(A r**2 + r**3 + n**3): see `pgmult.priors.mixed_regression`.
    """
    moved = np.array(variances, dtype=np.float64)
    for j in range(len(moved)):

        def log_density(x: FloatArray, _: BoolArray, j: int = j) -> FloatArray:
            prior = log_variance_density(float(x[0]), scale)
            if prior == -np.inf:
                return np.array([prior])
            trial = moved.copy()
            trial[j] = np.exp(x[0])
            return np.array([prior + regression.log_evidence(trial)])

        start = np.log(moved[j : j + 1])
        moved[j] = np.exp(slice_sample(rng, log_density, start, _WIDTH)[0])
    return moved

"""Random effects of a linear model of psi: how much they vary, then everything in one draw.

Effects whose covariance is rho_j Sigma are drawn with B and Sigma, rho_j before them
(`pgmult.priors.mixed_regression`). Those with a covariance Omega_j of their own follow, a grouping
after the other: its variances along the axes that it shares with Sigma, then its effects, B and the
effects above in one draw, then Omega_j given them (`pgmult.priors.free_effects`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pgmult.core.typing import BoolArray, FloatArray
from pgmult.priors.free_effects import FreeEffects, OmegaPrior, given_scales, sample_covariance
from pgmult.priors.mixed_regression import MixedRegression, log_variance_density
from pgmult.sampling.moves import slice_sample
from pgmult.topics.data.terms import Term, are_free

__all__ = ["Effects", "sample_effects", "sample_variances"]

_WIDTH = 2.0  # of a slice's first interval, in log rho
_FURTHEST = 300.0  # of |log lambda|: no slice gets there, and squares are still numbers


@dataclass(frozen=True, slots=True, eq=False)
class Effects:
    """A regression with random terms, as it stands.

    Attributes
    ----------
    coefficients : array, ``(num_covariates, n)``
    Sigma : array, ``(n, n)``
    effects : array, ``(num_effects, n)``
        Term after term.
    variances : array, ``(num_shared,)``
        Rho of the terms whose covariance is that of documents, times rho.
    covariances : array, ``(num_free, n, n)``
        Omega of the groupings that have one.
    """

    coefficients: FloatArray
    Sigma: FloatArray
    effects: FloatArray
    variances: FloatArray
    covariances: FloatArray


def sample_effects(
    rng: np.random.Generator,
    regression: MixedRegression,
    terms: Sequence[Term],
    at: Effects,
    scale: float,
) -> Effects:
    """One sweep over a regression of psi on covariates and random terms.

    With covariances, groupings are the terms that have them. Besides what `sample_variances` costs
    there are then some eight densities of O(A r**2 + r**3) for each of n axes of each grouping.
    """
    free = np.flatnonzero(are_free(terms, at.covariances)).tolist()
    shared = [j for j in range(len(terms)) if j not in free]
    bounds = np.cumsum([0, *(term.size for term in terms)])
    own = [at.effects[bounds[j] : bounds[j + 1]] for j in range(len(terms))]

    def keep(of: Sequence[int], effects: FloatArray) -> None:
        ends = np.cumsum([terms[j].size for j in of])
        for j, end in zip(of, ends, strict=True):
            own[j] = effects[end - terms[j].size : end]

    whole = regression.given({j: own[j] for j in free})
    variances = sample_variances(rng, whole, at.variances, scale)
    coefficients, effects, Sigma = whole.sample(rng, variances)
    keep(shared, effects)
    covariances = at.covariances.copy()
    for i, j in enumerate(free):
        omega_prior = given_scales(rng, covariances[i], scale)
        here = regression.given({k: own[k] for k in free if k != j}, j)
        along = FreeEffects.of(here, variances, Sigma, covariances[i])
        moved = _sample_axes(rng, along, omega_prior)
        coefficients, effects, _ = along.sample(rng, moved)
        keep(sorted([*shared, j]), effects)
        covariances[i] = sample_covariance(rng, omega_prior, own[j])
    together = np.concatenate(own) if own else at.effects
    return Effects(coefficients, Sigma, together, variances, covariances)


def _sample_axes(rng: np.random.Generator, along: FreeEffects, prior: OmegaPrior) -> FloatArray:
    """Move the variances along each axis by a slice of its logarithm, effects integrated out."""
    moved = along.variances.copy()
    for axis in range(len(moved)):

        def log_density(x: FloatArray, _: BoolArray, axis: int = axis) -> FloatArray:
            if not abs(x[0]) < _FURTHEST:
                return np.array([-np.inf])
            here = along.log_density(axis, float(np.exp(x[0])), moved, prior)
            return np.array([here + x[0]])

        start = np.log(moved[axis : axis + 1])
        moved[axis] = np.exp(slice_sample(rng, log_density, start, _WIDTH)[0])
    return moved


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

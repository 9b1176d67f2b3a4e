"""The Gaussian prior of weights, as users give it."""

import numpy as np

from pgmult.core.arguments import as_kind
from pgmult.priors.gaussian import MvNormal

__all__ = ["as_weights_prior", "weights_prior"]


def as_weights_prior(prior: MvNormal | None, name: str) -> MvNormal | None:
    """`prior`, if it is one Gaussian that is conditioned on nothing, or left out."""
    if prior is not None and (
        as_kind(prior, name, MvNormal).potential is not None or prior.prior_mean.ndim != 1
    ):
        raise ValueError(f"{name} must be one Gaussian, not conditioned on anything")
    return prior


def weights_prior(prior: MvNormal | None, size: int, name: str) -> MvNormal:
    """`prior`, if it is of so many weights; N(0, I) where it is left out."""
    if prior is None:
        return MvNormal(np.zeros(size), np.eye(size))
    if as_kind(prior, name, MvNormal).size != size:
        raise ValueError(f"{name} must be of {size} weights, one a covariate, got {prior.size}")
    return prior

"""Priors of positive parameters, as densities of their logarithms."""

from typing import Protocol, runtime_checkable

import numpy as np

from pgmult.core.typing import FloatArray


@runtime_checkable
class Hyperprior(Protocol):
    """The law of a positive parameter x, worked with as log x."""

    def log_density(self, log_x: FloatArray) -> FloatArray:
        """Normalised log density of log x (not of x), elementwise."""

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        """Draws of log x."""

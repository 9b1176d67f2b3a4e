"""Priors of positive parameters, as densities of their logarithms."""

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from pgmult.core.parameters import Checked, Positive
from pgmult.core.typing import FloatArray

_LOG_2PI = math.log(2.0 * math.pi)


@runtime_checkable
class Hyperprior(Protocol):
    """The law of a positive parameter x, worked with as log x."""

    def log_density(self, log_x: FloatArray) -> FloatArray:
        """Normalised log density of log x (not of x), elementwise."""

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        """Draws of log x."""


@dataclass(frozen=True, slots=True)
class HalfNormal(Checked):
    """x is the absolute value of a N(0, scale**2) variable: it may be as small as it likes.

    Parameters
    ----------
    scale : float
        Positive.
    """

    scale: Positive

    def log_density(self, log_x: FloatArray) -> FloatArray:
        """Normalised log density of log x, elementwise."""
        z = np.exp(log_x) / self.scale
        return np.asarray(math.log(2.0 / self.scale) - 0.5 * (z * z + _LOG_2PI) + log_x)

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        """Draws of log x."""
        return np.asarray(np.log(self.scale * np.abs(rng.standard_normal(shape))))

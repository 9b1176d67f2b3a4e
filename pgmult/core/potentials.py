"""Gaussian potentials in information form: what every link emits and every prior conditions on.

A potential is exp(-x' J x / 2 + h' x) as a function of x. Information form has no special cases:
J = h = 0 *is* "no observation", so missing rows, empty documents and sticks that no count reached
need no clipping, and several observations of one x simply add.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["DensePotential", "DiagonalPotential"]


@dataclass(frozen=True, slots=True, eq=False)
class DiagonalPotential:
    """Elementwise exp(-J x**2 / 2 + h x).

    Attributes
    ----------
    J : array, ``(..., n)``
        Precision of each coordinate, >= 0.
    h : array, ``(..., n)``
        Linear term: precision times mean.
    """

    J: NDArray[np.float64]
    h: NDArray[np.float64]

    def __add__(self, other: "DiagonalPotential") -> "DiagonalPotential":
        """The product of the two potentials."""
        return DiagonalPotential(self.J + other.J, self.h + other.h)

    def dense(self) -> "DensePotential":
        """The same potential with J as a matrix."""
        return DensePotential(self.J[..., None] * np.eye(self.J.shape[-1]), self.h)


@dataclass(frozen=True, slots=True, eq=False)
class DensePotential:
    """exp(-x' J x / 2 + h' x).

    Attributes
    ----------
    J : array, ``(..., n, n)``
        Symmetric matrix, usually positive semi-definite.
    h : array, ``(..., n)``
        Linear term.
    """

    J: NDArray[np.float64]
    h: NDArray[np.float64]

    def __add__(self, other: "DensePotential") -> "DensePotential":
        """The product of the two potentials."""
        return DensePotential(self.J + other.J, self.h + other.h)

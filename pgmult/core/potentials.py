"""Gaussian potentials in information form: what every link emits and every prior conditions on.

A potential is exp(-x' J x / 2 + h' x) as a function of x. Information form has no special cases:
J = h = 0 *is* "no observation", so missing rows, empty documents and sticks that no count reached
need no clipping, and several observations of one x simply add.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmult.core.validate import as_finite


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

    def __post_init__(self) -> None:
        _check(self, 0)

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

    def __post_init__(self) -> None:
        _check(self, 1)

    def __add__(self, other: "DensePotential") -> "DensePotential":
        """The product of the two potentials."""
        return DensePotential(self.J + other.J, self.h + other.h)


def _check(potential: Any, more_axes: int) -> None:
    """Float64 arrays are taken as they are, a sweep's among them, where their shapes agree."""
    for name in ("J", "h"):
        value = getattr(potential, name)
        if type(value) is not np.ndarray or value.dtype != np.float64:
            object.__setattr__(potential, name, as_finite(value, name))
    J, h = potential.J.shape, potential.h.shape
    if (more_axes and h == ()) or h + h[-1:] * more_axes != J:
        raise ValueError(
            f"J must have the shape of h{', and a last axis more' * more_axes}, got J {J} and h {h}"
        )


def as_potential(value: object) -> DiagonalPotential | DensePotential:
    """`value`, if it is a potential."""
    if not isinstance(value, DiagonalPotential | DensePotential):
        raise TypeError(
            f"potential must be a DiagonalPotential or a DensePotential, got {type(value).__name__}"
        )
    return value

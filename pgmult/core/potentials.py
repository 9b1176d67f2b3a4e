"""Gaussian potentials in information form: what every link emits and every prior conditions on.

A potential is exp(-x' J x / 2 + h' x) as a function of x. Information form has no special cases:
J = h = 0 *is* "no observation", so missing rows, empty documents and sticks that no count reached
need no clipping, and several observations of one x simply add.
"""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from pgmult.core.validate import as_finite


@dataclass(frozen=True, slots=True, eq=False)
class _Potential:
    J: NDArray[np.float64]
    h: NDArray[np.float64]

    more_axes: ClassVar[int]  # of J than of h

    def __post_init__(self) -> None:
        """Float64 arrays are taken as they are, a sweep's among them, where their shapes agree."""
        for name in ("J", "h"):
            value = getattr(self, name)
            if type(value) is not np.ndarray or value.dtype != np.float64:
                object.__setattr__(self, name, as_finite(value, name))
        J, h, more = self.J.shape, self.h.shape, self.more_axes
        if (more and h == ()) or h + h[-1:] * more != J:
            wanted = f"the shape of h{', and a last axis more' * more}"
            raise ValueError(f"J must have {wanted}, got J {J} and h {h}")

    def __add__(self, other: Self) -> Self:
        """The product of the two potentials."""
        return type(self)(self.J + other.J, self.h + other.h)


class DiagonalPotential(_Potential):
    """Elementwise exp(-J x**2 / 2 + h x).

    Attributes
    ----------
    J : array, ``(..., n)``
        Precision of each coordinate, >= 0.
    h : array, ``(..., n)``
        Linear term: precision times mean.
    """

    __slots__ = ()
    more_axes = 0

    def dense(self) -> "DensePotential":
        """The same potential with J as a matrix."""
        return DensePotential(self.J[..., None] * np.eye(self.J.shape[-1]), self.h)


class DensePotential(_Potential):
    """exp(-x' J x / 2 + h' x).

    Attributes
    ----------
    J : array, ``(..., n, n)``
        Symmetric matrix, usually positive semi-definite.
    h : array, ``(..., n)``
        Linear term.
    """

    __slots__ = ()
    more_axes = 1


def as_potential(value: object) -> DiagonalPotential | DensePotential:
    """`value`, if it is a potential."""
    if not isinstance(value, DiagonalPotential | DensePotential):
        got = type(value).__name__
        raise TypeError(f"potential must be a DiagonalPotential or a DensePotential, got {got}")
    return value

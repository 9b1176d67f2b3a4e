"""What the Gaussian fields have in common: their verbs, and how they take means and potentials.

A field is C independent Gaussian columns over the same n inputs, times a diagonal potential.
`GaussianProcess` is the dense one; the others compute the same from some structure.
"""

from typing import NamedTuple, Protocol, Self, TypeVar

import numpy as np

from pgmult._validate import as_finite, as_nonnegative
from pgmult.potentials import DiagonalPotential
from pgmult.priors.covariances.base import as_inputs
from pgmult.typing import ArrayLike, FloatArray

__all__ = ["Field", "FieldDraw", "as_new_inputs", "as_prior_mean", "combined"]


class FieldDraw(NamedTuple):
    """One joint draw at the inputs and at new ones, and the law at the new ones given no draw.

    Attributes
    ----------
    values : array, ``(n, num_columns)``
    new_values : array, ``(m, num_columns)``
        Drawn jointly with `values`.
    new_mean, new_var : arrays, ``(m, num_columns)``
        With the values at the inputs integrated out.
    """

    values: FloatArray
    new_values: FloatArray
    new_mean: FloatArray
    new_var: FloatArray


class Field(Protocol):
    """Independent columns of a Gaussian field at n inputs, times a diagonal potential."""

    def condition(self, potential: DiagonalPotential) -> Self:
        """The posterior: this times `potential`, ``(n, num_columns)``."""

    def log_normalizer(self) -> FloatArray:
        """Log of the integral of the prior times the potential, ``(num_columns,)``."""

    def mean(self) -> FloatArray:
        """Means at the inputs, ``(n, num_columns)``."""

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """One draw at the inputs, ``(n, num_columns)``."""

    def predict(
        self, new_inputs: ArrayLike, new_mean: ArrayLike = 0.0
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and variance at new inputs, whose prior mean is `new_mean`."""

    def sample_at(
        self, rng: np.random.Generator, new_inputs: ArrayLike, new_mean: ArrayLike = 0.0
    ) -> FloatArray:
        """One joint draw at new inputs, ``(m, num_columns)``."""


AnyField = TypeVar("AnyField", bound=Field)


def as_prior_mean(value: ArrayLike, num_inputs: int, name: str = "prior_mean") -> FloatArray:
    """A prior mean ``(num_inputs, 1 or num_columns)``, from that, ``(num_inputs,)`` or a number."""
    mean = as_finite(value, name)
    if mean.ndim == 0:
        return np.full((num_inputs, 1), float(mean))
    if mean.ndim == 1:
        mean = mean[:, None]
    if mean.ndim != 2 or len(mean) != num_inputs:
        raise ValueError(
            f"{name} must be a number or have shape ({num_inputs},) or ({num_inputs}, columns),"
            f" got {np.shape(value)}"
        )
    return mean


def as_new_inputs(value: ArrayLike, inputs: FloatArray) -> FloatArray:
    """New inputs ``(m, columns)``, with as many columns as `inputs`."""
    new = as_inputs(value, "new_inputs")
    if new.shape[1] != inputs.shape[1]:
        raise ValueError(f"new_inputs must have {inputs.shape[1]} columns, got {new.shape[1]}")
    return new


def combined(
    seen: DiagonalPotential | None, new: DiagonalPotential, prior_mean: FloatArray
) -> DiagonalPotential:
    """The product of the potential so far and a new one, ``(n, num_columns)``.

    Square roots of J stand in the algorithms of structured fields, so h must be 0 where J is.
    """
    J, h = as_nonnegative(new.J, "J"), as_finite(new.h, "h")
    n, columns = prior_mean.shape
    columns = columns if columns > 1 or seen is None else seen.J.shape[1]
    expected = f"({n}, {columns if columns > 1 else 'columns'})"
    if J.shape != h.shape or J.ndim != 2 or len(J) != n or columns not in (1, J.shape[1]):
        raise ValueError(
            f"the potential must have shape {expected}, got J {J.shape} and h {h.shape}"
        )
    bad = (J == 0.0) & (h != 0.0)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise ValueError(
            f"h must be 0 where J is 0, got {h[row, column]} at row {row}, column {column}"
            " (a link's potential is, where there is no count)"
        )
    potential = DiagonalPotential(J, h)
    return potential if seen is None else seen + potential

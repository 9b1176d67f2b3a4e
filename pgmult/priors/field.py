"""What the structured Gaussian fields have in common: how they take means and potentials.

Like the dense `pgmult.GaussianProcess` they are C independent Gaussian columns over the same n
inputs, times a diagonal potential, with the verbs of `pgmult.priors.gp.Field`.
"""

from typing import NamedTuple

import numpy as np

from pgmult._validate import as_finite, as_nonnegative
from pgmult.potentials import DiagonalPotential
from pgmult.priors.covariances.base import as_inputs
from pgmult.typing import ArrayLike, FloatArray

__all__ = ["FieldDraw", "as_new_inputs", "as_new_mean", "as_prior_mean", "combined"]


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


def as_prior_mean(value: ArrayLike, num_inputs: int) -> FloatArray:
    """A prior mean ``(num_inputs, 1 or num_columns)``, from that, ``(num_inputs,)`` or a number."""
    mean = as_finite(value, "prior_mean")
    if mean.ndim == 0:
        return np.full((num_inputs, 1), float(mean))
    if mean.ndim == 1:
        mean = mean[:, None]
    if mean.ndim != 2 or len(mean) != num_inputs:
        raise ValueError(
            f"prior_mean must be a number or have shape ({num_inputs},) or"
            f" ({num_inputs}, columns), got {np.shape(value)}"
        )
    return mean


def as_new_mean(
    value: ArrayLike | None, prior_mean: FloatArray, num_new: int, num_columns: int
) -> FloatArray:
    """The prior mean at new inputs, ``(num_new, num_columns)``.

    `value` is a number, ``(num_columns,)`` or ``(num_new, num_columns)``; None is the prior mean
    of the inputs, where all of them agree.
    """
    if value is None:
        if len(prior_mean) == 0 or (prior_mean != prior_mean[0]).any():
            raise ValueError(
                "prior_mean differs between inputs, so it does not say what it is at new inputs:"
                " pass new_mean"
            )
        value = prior_mean[0]
    mean = as_finite(value, "new_mean")
    try:
        return np.broadcast_to(mean, (num_new, num_columns))
    except ValueError:
        raise ValueError(
            f"new_mean must be a number or have shape ({num_columns},) or"
            f" ({num_new}, {num_columns}), got {mean.shape}"
        ) from None


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

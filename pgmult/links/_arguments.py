"""What both links ask of their arguments, and the multinomial draw they share."""

import math

import numpy as np
from numpy.typing import ArrayLike

from pgmult.core.typing import Array, FloatArray, IntArray
from pgmult.core.validate import as_counts, as_finite, as_generator, as_simplex, place_of


def as_psi(psi: ArrayLike, smallest: int, name: str = "psi") -> FloatArray:
    """A finite float64 array whose last axis has at least `smallest` coordinates."""
    array = as_finite(psi, name)
    if array.ndim == 0 or array.shape[-1] < smallest:
        raise ValueError(
            f"{name} must have at least {smallest} on its last axis (2 categories or more),"
            f" got shape {array.shape}"
        )
    return array


def as_interior(pi: ArrayLike) -> FloatArray:
    """Probabilities without a zero, whose psi is finite."""
    array = as_simplex(pi)
    bad = array == 0.0
    if bad.any():
        raise ValueError(
            f"pi must be positive, got 0.0{place_of(bad)}"
            " (a zero probability has an infinite psi; mix in a little of the uniform)"
        )
    return array


def check_categories(name: str, array: Array, num_categories: int) -> None:
    """The last axis must have one entry per category."""
    if array.ndim == 0 or array.shape[-1] != num_categories:
        raise ValueError(
            f"{name} must have {num_categories} categories on its last axis to go with psi,"
            f" got shape {array.shape}"
        )


def common_shape(**shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that the named shapes broadcast to."""
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        described = " and ".join(f"{shape} of {name}" for name, shape in shapes.items())
        raise ValueError(f"axes must match or broadcast, got {described}") from None


def as_rows(array: Array, leading: tuple[int, ...]) -> Array:
    """``(rows, width)``, C-ordered and writable: one type for the compiled code."""
    width = array.shape[-1]
    if array.shape[:-1] != leading:
        array = np.broadcast_to(array, (*leading, width))
    return np.require(array, requirements=["C", "A", "W"]).reshape(math.prod(leading), width)


def simulate_counts(rng: np.random.Generator, pi: FloatArray, totals: ArrayLike) -> IntArray:
    """Multinomial counts; leading axes of `pi` and `totals` broadcast."""
    totals = as_counts(totals, "totals")
    common_shape(psi=pi.shape[:-1], totals=totals.shape)
    return as_generator(rng).multinomial(totals, pi / pi.sum(axis=-1, keepdims=True))

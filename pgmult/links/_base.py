"""What both links ask of their arguments, and what follows from their probabilities."""

import math
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from pgmult.core import validate
from pgmult.core.typing import Array, FloatArray, Generator, IntArray
from pgmult.core.validate import as_counts, as_finite, as_nonnegative, common_shape


def as_psi(psi: ArrayLike, smallest: int, name: str = "psi") -> FloatArray:
    """A finite float64 array whose last axis has at least `smallest` coordinates."""
    array = as_finite(psi, name)
    if array.ndim == 0 or array.shape[-1] < smallest:
        wanted = f"at least {smallest} on its last axis (2 categories or more)"
        raise ValueError(f"{name} must have {wanted}, got shape {array.shape}")
    return array


def as_interior(pi: ArrayLike) -> FloatArray:
    """Probabilities without a zero, whose psi is finite."""
    array = validate.as_simplex(pi)
    bad = array == 0.0
    if bad.any():
        hint = "a zero probability has an infinite psi; mix in a little of the uniform"
        raise ValueError(f"pi must be positive, got 0.0{validate.place_of(bad)} ({hint})")
    return array


def leading_shape(counts: Array, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The leading axes that counts and probabilities of a shape broadcast to."""
    if counts.ndim == 0 or counts.shape[-1] != shape[-1]:
        raise ValueError(f"counts must have {shape[-1]} categories as psi has, got {counts.shape}")
    return common_shape(psi=shape[:-1], counts=counts.shape[:-1])


def as_weights(counts: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    """Counts or expected counts that go with probabilities of a shape."""
    weights = as_nonnegative(counts, "counts")
    leading_shape(weights, shape)
    return weights


def as_rows(array: Array, leading: tuple[int, ...]) -> Array:
    """``(rows, width)``, C-ordered and writable: one type for the compiled code."""
    width = array.shape[-1]
    if array.shape[:-1] != leading:
        array = np.broadcast_to(array, (*leading, width))
    return np.require(array, requirements=["C", "A", "W"]).reshape(math.prod(leading), width)


class BaseLink(ABC):
    """What follows from the probabilities of a link."""

    __slots__ = ()

    @abstractmethod
    def probs(self, psi: ArrayLike) -> FloatArray:
        """Probabilities of the categories, ``(..., num_categories)``."""

    @abstractmethod
    def log_probs(self, psi: ArrayLike) -> FloatArray:
        """Logarithms of the probabilities, finite where the probabilities underflow."""

    def log_likelihood(self, psi: ArrayLike, counts: ArrayLike) -> FloatArray:
        """Multinomial log likelihood of each row, without the multinomial coefficient.

        Parameters
        ----------
        psi : array
            As in `probs`.
        counts : array, ``(..., num_categories)``
            Counts or expected counts.

        Returns
        -------
        array, ``(...)``
        """
        log_probs = self.log_probs(psi)
        weights = as_weights(counts, log_probs.shape)
        return np.asarray(np.einsum("...k,...k->...", log_probs, weights))

    def simulate(self, rng: Generator, psi: ArrayLike, totals: ArrayLike) -> IntArray:
        """Multinomial counts; leading axes of `psi` and `totals` broadcast.

        Parameters
        ----------
        rng : numpy.random.Generator
        psi : array
            As in `probs`.
        totals : integer array, ``(...)``

        Returns
        -------
        integer array, ``(..., num_categories)``
        """
        pi, totals = self.probs(psi), as_counts(totals, "totals")
        common_shape(psi=pi.shape[:-1], totals=totals.shape)
        return validate.as_generator(rng).multinomial(totals, pi / pi.sum(axis=-1, keepdims=True))

"""Slice sampling around a Gaussian (Nishihara, Murray and Adams 2014, "Parallel MCMC with
generalized elliptical slice sampling").

Where a Gaussian *base* comes near to the law of x, the ellipse is drawn from it, and what stands in
for the likelihood is the *correction*, the log density of x less the base's. Any base leaves the
law of x as it is; a good one lets nearly every first angle pass. If its tails are too light, chains
stay long where the correction is large: a Student-t base with the same mean and shape is a Gaussian
whose covariance is multiplied by an inverse gamma variable, drawn first.
"""

import math
from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np

from pgmult.core.typing import BoolArray, FloatArray
from pgmult.sampling.moves import elliptical_slice


class Base(Protocol):
    """A Gaussian law of many vectors, independent of each other: an `MvNormal`, a field."""

    def mean(self) -> FloatArray:
        """Means."""

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """One draw of every vector."""


@runtime_checkable
class Shape(Base, Protocol):
    """A base that knows its own precision, as a Student-t of its shape must."""

    def inner(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """A' precision b, one number a vector."""


def slice_around(
    rng: np.random.Generator,
    x: FloatArray,
    base: Base,
    correction: Callable[[FloatArray, BoolArray], FloatArray],
    dof: float | None = 8.0,
) -> FloatArray:
    """One elliptical slice update of each vector in `x`, on an ellipse of `base`.

    Leaves ``base(x) exp(correction(x))`` as it is, whatever the base: for a prior conditioned on a
    potential (J, h) in a likelihood's place, the prior cancels and the correction is the log
    likelihood less ``h'x - x'Jx / 2``.

    Base and correction must depend on nothing but data and variables that are held fixed: a base
    found from `x` itself, as by a search that starts there, is a bug.

    Parameters
    ----------
    rng : numpy.random.Generator
    x : array, ``(batch, ...)``
        Where every density is positive.
    base : Base
        Of vectors of the shape of `x`. One that has no ``inner`` needs ``dof=None``.
    correction : callable
        ``correction(x, active)``, ``(batch,)`` up to constants, of vectors ``(batch, ...)``; values
        where `active` is False are not looked at. -inf and nan are never moved to.
    dof : float or None
        Degrees of freedom of a Student-t with the base's mean and shape; None for the Gaussian
        itself. Any number leaves the law unchanged. Heavy tails cost nothing where the base is
        good and the vectors are short, and keep the chain moving where its tails are too light.

    Returns
    -------
    array, shape of `x`

    Raises
    ------
    FloatingPointError
        If a correction is not finite at `x`.
    """
    mean, draw = base.mean(), base.sample(rng)
    if draw.shape != x.shape:
        raise ValueError(f"base must be of vectors of the shape of x, {x.shape}, got {draw.shape}")
    if dof is None:
        return elliptical_slice(rng, correction, x, draw, mean)
    if not isinstance(base, Shape):
        raise TypeError("base must have a method inner(a, b), a' precision b (or give dof=None)")
    half = 0.5 * (dof + math.prod(x.shape[1:]))
    stretch = 0.5 * (dof + base.inner(x - mean, x - mean)) / rng.gamma(half, size=len(x))
    across = np.sqrt(stretch).reshape((-1,) + (1,) * (x.ndim - 1)) * (draw - mean)

    def log_density(point: FloatArray, active: BoolArray) -> FloatArray:
        square = base.inner(point - mean, point - mean)
        return correction(point, active) - 0.5 * square + half * np.log1p(square / dof)

    return elliptical_slice(rng, log_density, x, mean + across, mean)

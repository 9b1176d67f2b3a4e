r"""Moves that any model may use: slice sampling, of scalars and of Gaussian vectors.

*Slice sampling of independent scalars* (Neal 2003, "Slice sampling", figures 3 and 5).
For each scalar, a level is drawn below the density; an interval around the present value steps out
until both ends lie below the level; points are drawn from it, and it shrinks to them, until one
lies above. Many scalars that are independent given everything else go side by side.

*Elliptical slice sampling of Gaussian vectors* (Murray, Adams and MacKay 2010, figure 2).

For a vector x ~ N(m, V) with likelihood L(x), a second draw nu ~ N(m, V) spans an ellipse through
the present point, along which the prior is stationary::

    x(angle) - m = (x - m) cos(angle) + (nu - m) sin(angle)

A level is drawn below L(x); angles are drawn from a bracket that begins with the whole ellipse and
shrinks towards angle 0, where x is, until L(x(angle)) is above the level. Nothing is tuned and
something is always accepted. Many vectors that are independent given everything else go side by
side, each with its own level and bracket.

*Slice sampling around a Gaussian* (Nishihara, Murray and Adams 2014, "Parallel MCMC with
generalized elliptical slice sampling").

Where a Gaussian *base* comes near to the law of x, the ellipse is drawn from it, and what stands in
for the likelihood is the *correction*, the log density of x less the base's. Any base leaves the
law of x as it is; a good one lets nearly every first angle pass. If its tails are too light, chains
stay long where the correction is large: a Student-t base with the same mean and shape is a Gaussian
whose covariance is multiplied by an inverse gamma variable, drawn first.

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> x = np.zeros((5000, 1))
>>> for _ in range(20):  # prior N(0, 1), one observation 2 of variance 1: posterior N(1, 1 / 2)
...     x = elliptical_slice(
...         rng,
...         lambda x, active: -0.5 * np.sum((x - 2.0) ** 2, axis=1),
...         x,
...         rng.standard_normal(x.shape),
...     )
>>> bool(abs(x.mean() - 1.0) < 0.05 and abs(x.var() - 0.5) < 0.05)
True

One count in 10,000, and N(0, 100) on its logit: some thousand effective draws in 2,000.

>>> from pgmult import DiagonalPotential, MvNormal, StickBreaking
>>> link, counts, prior = StickBreaking(), np.array([[1, 9999]]), MvNormal([0.0], [[100.0]])
>>> site = link.quadratic(np.array([[-9.2]]), counts)
>>> for _ in range(30):  # half of each step: whole ones need not settle
...     base = prior.condition(site)
...     new = link.expected_sites(base.mean(), base.cov()[..., 0], counts)
...     site = DiagonalPotential((site.J + new.J) / 2, (site.h + new.h) / 2)
>>> base = prior.condition(site)
>>> psi, draws = base.mean(), []
>>> for _ in range(2000):
...     psi = slice_around(
...         rng,
...         psi,
...         base,
...         lambda psi, active: (
...             link.log_likelihood(psi, counts)
...             - np.sum(site.h * psi - 0.5 * site.J * psi * psi, axis=1)
...         ),
...     )
...     draws.append(psi[0, 0])
>>> bool(abs(np.mean(draws) + 9.63) < 0.15)  # by a sum over a grid
True
"""

import math
from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np

from pgmult.core.typing import BoolArray, FloatArray


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


def slice_sample(
    rng: np.random.Generator,
    log_density: Callable[[FloatArray, BoolArray], FloatArray],
    x: FloatArray,
    width: float = 1.0,
) -> FloatArray:
    """One slice update of each scalar in `x`.

    Parameters
    ----------
    rng : numpy.random.Generator
    log_density : callable
        ``log_density(x, active)``, the log densities ``(n,)`` up to constants; values where
        `active` is False are not looked at. Each must go to -inf at both ends.
    x : array, ``(n,)``
        Where the density is positive.
    width : float
        Of the first interval: a few standard deviations. Any width leaves the law unchanged.

    Raises
    ------
    FloatingPointError
        If the log density is not finite at `x`.
    """
    everywhere = np.ones(x.shape, dtype=np.bool_)
    here = log_density(x, everywhere)
    if not np.isfinite(here).all():
        raise FloatingPointError(f"the log density must be finite at the start, got {here}")
    level = here - rng.exponential(size=x.shape)
    left = x - width * rng.random(x.shape)
    right = left + width
    for end, step in ((left, -width), (right, width)):
        active = everywhere.copy()
        while active.any():
            active &= log_density(end, active) > level
            end[active] += step
    new, active = x.copy(), everywhere
    while active.any():
        point = np.where(active, left + (right - left) * rng.random(x.shape), new)
        accepted = active & (log_density(point, active) > level)
        new[accepted] = point[accepted]
        active = active & ~accepted
        left = np.where(active & (point < x), point, left)
        right = np.where(active & (point >= x), point, right)
    return new


def elliptical_slice(
    rng: np.random.Generator,
    log_likelihood: Callable[[FloatArray, BoolArray], FloatArray],
    x: FloatArray,
    prior_draw: FloatArray,
    prior_mean: FloatArray | float = 0.0,
) -> FloatArray:
    """One elliptical slice update of each vector in `x`.

    Parameters
    ----------
    rng : numpy.random.Generator
    log_likelihood : callable
        ``log_likelihood(x, active)``, the log likelihoods ``(batch,)`` up to constants, of vectors
        ``(batch, ...)``; values where `active` is False are not looked at. -inf and nan are never
        moved to.
    x : array, ``(batch, ...)``
        Where every likelihood is positive.
    prior_draw : array, shape of `x`
        A draw of each vector from its prior, mean included, independent of `x`.
    prior_mean : array or float
        Broadcasts against `x`.

    Returns
    -------
    array, shape of `x`

    Raises
    ------
    FloatingPointError
        If a log likelihood is not finite at `x`.

    Notes
    -----
    What happens to a vector depends on the generator's state and its own likelihood, not on how
    many angles the others try.
    """
    if prior_draw.shape != x.shape:
        raise ValueError(f"prior_draw must have the shape of x, {x.shape}, got {prior_draw.shape}")
    return _on_ellipse(
        rng,
        lambda point, cos, sin, active: log_likelihood(point, active),
        x, x - prior_mean, prior_draw - prior_mean, prior_mean,
    )  # fmt: skip


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
    found from `x` itself, as by a search that starts there, is a bug. A base that comes from
    expected sites (`StickBreaking.expected_sites` at its own means and variances) is far better
    than one at the mode.

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
    start, across = x - mean, draw - mean
    if dof is None:
        return _on_ellipse(
            rng, lambda point, cos, sin, active: correction(point, active), x, start, across, mean
        )
    if not isinstance(base, Shape):
        raise TypeError("base must have a method inner(a, b), a' precision b (or give dof=None)")
    half = 0.5 * (dof + math.prod(x.shape[1:]))
    here = base.inner(start, start)
    stretch = 0.5 * (dof + here) / rng.gamma(half, size=len(x))
    across = np.sqrt(stretch).reshape((-1,) + (1,) * (x.ndim - 1)) * across
    both, there = base.inner(start, across), base.inner(across, across)

    def log_density(
        point: FloatArray, cos: FloatArray, sin: FloatArray, active: BoolArray
    ) -> FloatArray:
        square = here * cos * cos + 2.0 * both * cos * sin + there * sin * sin
        return correction(point, active) - 0.5 * square + half * np.log1p(square / dof)

    return _on_ellipse(rng, log_density, x, start, across, mean)


def _on_ellipse(
    rng: np.random.Generator,
    log_density: Callable[[FloatArray, FloatArray, FloatArray, BoolArray], FloatArray],
    x: FloatArray,
    start: FloatArray,
    across: FloatArray,
    mean: FloatArray | float,
) -> FloatArray:
    """Points ``mean + start cos + across sin``, by their ``log_density(x, cos, sin, active)``."""
    batch = len(x)
    active = np.ones(batch, dtype=np.bool_)
    here = log_density(x, np.ones(batch), np.zeros(batch), active)
    if not np.isfinite(here).all():
        vector = int(np.argmin(np.isfinite(here)))
        raise FloatingPointError(
            f"the log likelihood must be finite at the start, got {here[vector]} of vector {vector}"
        )
    level = here - rng.exponential(size=batch)
    angle = 2.0 * math.pi * rng.random(batch)
    left, right = angle - 2.0 * math.pi, angle.copy()
    column = (batch,) + (1,) * (x.ndim - 1)
    new = x.copy()
    while True:
        cos, sin = np.cos(angle), np.sin(angle)
        point = mean + start * cos.reshape(column) + across * sin.reshape(column)
        point = np.where(active.reshape(column), point, new)
        accepted = active & (log_density(point, cos, sin, active) >= level)
        new[accepted] = point[accepted]
        active = active & ~accepted
        if not active.any():
            return new
        left = np.where(active & (angle < 0.0), angle, left)
        right = np.where(active & (angle >= 0.0), angle, right)
        # a bracket shrunk to rounding holds the start itself
        shrunk = left + (right - left) * rng.random(batch)
        angle = np.where(right - left > 1e-14, shrunk, 0.0)

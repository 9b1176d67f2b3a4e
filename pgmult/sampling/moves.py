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
"""

import math
from collections.abc import Callable

import numpy as np

from pgmult.core.typing import BoolArray, FloatArray, Generator

LogDensity = Callable[[FloatArray, BoolArray], FloatArray]


def slice_sample(
    rng: Generator, log_density: LogDensity, x: FloatArray, width: float = 1.0
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
        Of the first interval: a few standard deviations. Any width leaves the target unchanged.

    Raises
    ------
    FloatingPointError
        If the log density is not finite at `x`.
    """
    everywhere = np.ones(x.shape, dtype=np.bool_)
    current = log_density(x, everywhere)
    if not np.isfinite(current).all():
        raise FloatingPointError(f"the log density must be finite at the start, got {current}")
    level = current - rng.exponential(size=x.shape)
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
    rng: Generator, log_likelihood: LogDensity, x: FloatArray, prior_draw: FloatArray,
    prior_mean: FloatArray | float = 0.0,
) -> FloatArray:  # fmt: skip
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
    batch, start, across = len(x), x - prior_mean, prior_draw - prior_mean
    active = np.ones(batch, dtype=np.bool_)
    current = log_likelihood(x, active)
    if not np.isfinite(current).all():
        vector = int(np.argmin(np.isfinite(current)))
        raise FloatingPointError(
            f"the log likelihood must be finite at the start, got {current[vector]}"
            f" of vector {vector}"
        )
    level = current - rng.exponential(size=batch)
    angle = 2.0 * math.pi * rng.random(batch)
    left, right = angle - 2.0 * math.pi, angle.copy()
    column = (batch,) + (1,) * (x.ndim - 1)
    new = x.copy()
    while True:
        cos, sin = np.cos(angle).reshape(column), np.sin(angle).reshape(column)
        point = np.where(active.reshape(column), prior_mean + start * cos + across * sin, new)
        accepted = active & (log_likelihood(point, active) >= level)
        new[accepted] = point[accepted]
        active = active & ~accepted
        if not active.any():
            return new
        left = np.where(active & (angle < 0.0), angle, left)
        right = np.where(active & (angle >= 0.0), angle, right)
        # a bracket shrunk to rounding holds the start itself
        shrunk = left + (right - left) * rng.random(batch)
        angle = np.where(right - left > 1e-14, shrunk, 0.0)

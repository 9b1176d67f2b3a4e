"""Slice sampling of independent scalars (Neal 2003, "Slice sampling", figures 3 and 5).

For each scalar, a level is drawn below the density; an interval around the present value steps out
until both ends lie below the level; points are drawn from it, and it shrinks to them, until one
lies above. Many scalars that are independent given everything else go side by side.
"""

from collections.abc import Callable

import numpy as np

from pgmult.typing import BoolArray, FloatArray

__all__ = ["slice_sample"]


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

"""Slice updates of hyperparameters whose density is dear to evaluate.

The density of a hyperparameter with a Gaussian field integrated out costs a factorisation, as much
as a draw of the field itself. So the interval of the slice (Neal 2003, "Slice sampling", section
4.1) is not stepped out: it is laid at random around the present value and shrinks to points that
are refused. The law stays invariant for any width; too wide costs one more try for each halving,
too narrow makes short moves. What is right is a hundred times less for many counts than for few, so
each update draws its width, as likely in each octave. The density at the present value is handed on
from update to update, never worked out twice.
"""

from collections.abc import Callable

import numpy as np

from pgmult.typing import BoolArray, FloatArray

__all__ = ["sample_hyperparameters"]

_NARROWEST = 1.0 / 64.0  # of first intervals, in widths


def sample_hyperparameters(
    rng: np.random.Generator,
    log_density: Callable[[FloatArray, BoolArray], FloatArray],
    x: FloatArray,
    width: float,
) -> FloatArray:
    """One slice update of each coordinate in turn, of independent rows side by side.

    Parameters
    ----------
    rng : numpy.random.Generator
    log_density : callable
        ``log_density(x, active)``, the log densities ``(num_rows,)`` at ``x (num_rows,
        num_coordinates)`` up to constants; rows where `active` is False are not looked at.
    x : array, ``(num_rows, num_coordinates)``
        Where the density is positive. Not changed.
    width : float
        Of the widest first interval; the narrowest is a 64th of it.

    Raises
    ------
    FloatingPointError
        If the log density is not finite at `x`.
    """
    x = x.copy()
    here = log_density(x, np.ones(len(x), dtype=np.bool_))
    if not np.isfinite(here).all():
        raise FloatingPointError(f"the log density must be finite at the start, got {here}")
    for i in range(x.shape[1]):
        level = here - rng.exponential(size=len(x))
        size = width * _NARROWEST ** rng.random()
        left = x[:, i] - size * rng.random(len(x))
        right = left + size
        active = np.ones(len(x), dtype=np.bool_)
        while active.any():
            point = x.copy()
            point[active, i] = (left + (right - left) * rng.random(len(x)))[active]
            there = log_density(point, active)
            accepted = active & (there > level)
            below = active & ~accepted & (point[:, i] < x[:, i])
            left[below] = point[below, i]
            above = active & ~accepted & ~below
            right[above] = point[above, i]
            x[accepted], here[accepted] = point[accepted], there[accepted]
            active &= ~accepted
    return x

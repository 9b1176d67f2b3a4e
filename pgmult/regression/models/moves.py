"""Moves of an additive regression: weights and hyperparameters of one stick after the other.

Each leaves the posterior as it is; how far the approximation is from it says which of them pay.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

import numpy as np

from pgmult.core.typing import BoolArray, FloatArray
from pgmult.latent.additive import Additive
from pgmult.latent.approximation import Approximation
from pgmult.latent.moves import Point, carry, interweave, reflect, swing
from pgmult.priors import LogNormal
from pgmult.regression.models.approximated import Block
from pgmult.regression.models.dense import Dense
from pgmult.sampling.moves import slice_sample
from pgmult.variational.sites import CountSite

SIZES = (0.05, 1e4)
"""Of a negative binomial, the least and the most."""

_NEAR = 0.15  # spread up to which reflected leaps alone nearly do, and they are cheap
_FAR = 2.0  # spread from which on leaps are hardly ever taken
_WOVEN_NEAR, _SWUNG_NEAR = 0.2, 0.5  # of the sweeps, all where it is farther
_SAME = 0.05  # spread up to which one kick is enough
_MORE_KICKS = 2


def swept(
    rng: np.random.Generator,
    points: Sequence[tuple[FloatArray, FloatArray]],
    parts: Sequence[Block],
    dense: Sequence[Dense],
    kicks: int,
    size_law: LogNormal,
) -> list[tuple[FloatArray, FloatArray]]:
    """Hyperparameters and weights of all sticks, after one sweep."""
    moved_points = []
    for (x, w), (family, rows, found), block in zip_longest(points, parts, dense):
        own = x[: family.num_hyperparameters]
        if len(own) < len(x):
            x = np.append(own, sized(rng, x[-1:], family.predictor(w), rows, size_law))
            rows = replace(rows, size=math.exp(float(x[-1])))
        if block is None:
            own, w = moved(rng, Point.of(own, w, family, found), family, rows, found, kicks)
        else:
            w = block.moved(rng, w, block.likelihood(rows), kicks)
        moved_points.append((np.append(own, x[len(own) :]), w))
    return moved_points


def moved(
    rng: np.random.Generator,
    point: Point,
    family: Additive,
    rows: Any,
    found: Approximation,
    kicks: int,
) -> tuple[FloatArray, FloatArray]:
    """Leaps where the approximation is near, paths and slices the more the farther it is."""
    near, far = found.spread < _NEAR, found.spread > _FAR
    if not near or rng.random() < _WOVEN_NEAR:
        point = interweave(rng, point, family, rows, found)
    point = (carry if far else reflect)(rng, point, family, rows, found)
    if not near or rng.random() < _SWUNG_NEAR:
        few = 1 + (found.spread > _SAME)
        kicks = few if near else kicks * (_MORE_KICKS if far else 1)
        point = swing(rng, point, family, rows, found, kicks)
    return point.x, point.w


def sized(
    rng: np.random.Generator, log_size: FloatArray, psi: FloatArray, rows: CountSite, law: LogNormal
) -> FloatArray:
    """The log size of a negative binomial, given the predictors."""

    def log_density(at: FloatArray, active: BoolArray) -> FloatArray:
        size = math.exp(float(at[0]))
        if not SIZES[0] < size < SIZES[1]:
            return np.array([-np.inf])
        value = float(replace(rows, size=size).value(psi).sum())
        return np.asarray(value + law.log_density(at))

    return slice_sample(rng, log_density, log_size)

"""Covariances on the sphere: inputs are latitude and longitude in degrees.

Most families are not positive definite in great-circle distance: of the Matérn class only
nu <= 1/2 is (Gneiting 2013, "Strictly and non-strictly positive definite functions on spheres").
So `GreatCircle` *is* the exponential covariance.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from pgmult.core.parameters import Positive, whole
from pgmult.core.typing import FloatArray
from pgmult.fields.covariances.base import Covariance, CovarianceFamily

EARTH_RADIUS = 6371.0088  # kilometres, the mean radius
MOST_DEGREES = {"latitude": 90.0, "longitude": 360.0}
Column = Annotated[int, whole(minimum=0)]


def as_radians(X: FloatArray, place: Callable[[int], str] = "at row {}".format) -> FloatArray:
    """Latitude and longitude in radians, ``(2, len(X))``; `place` names a row in errors."""
    for values, (name, most) in zip(X.T, MOST_DEGREES.items(), strict=True):
        bad = np.abs(values) > most
        if bad.any():
            row = int(bad.argmax())
            hint = "coordinates in metres or kilometres are called x and y"
            if np.abs(values[row]) <= 360.0:
                hint = f"are latitude and longitude swapped? {hint}"
            got = f"{values[row]:g} {place(row)} ({hint})"
            raise ValueError(f"{name} must be from -{most:g} to {most:g} degrees, got {got}")
    return np.radians(X.T)


def great_circle(X: FloatArray, Y: FloatArray) -> FloatArray:
    """Angles between points of latitude and longitude in degrees, ``(len(X), len(Y))``, radians.

    By the haversine formula, accurate for close points.
    """
    (a, b), (c, d) = as_radians(X), as_radians(Y)
    haversine = np.square(np.sin(0.5 * (a[:, None] - c)))
    haversine += np.cos(a)[:, None] * np.cos(c) * np.square(np.sin(0.5 * (b[:, None] - d)))
    return np.asarray(2.0 * np.arcsin(np.sqrt(np.minimum(haversine, 1.0))))


@dataclass(frozen=True, eq=False)
class GreatCircle(CovarianceFamily):
    """exp(-distance / length_scale) in great-circle distance (Matérn 1/2 on the sphere).

    Parameters
    ----------
    length_scale : float
        In kilometres.
    latitude, longitude : int
        The columns that hold them, in degrees.
    """

    length_scale: Positive = 1000.0
    latitude: Column = 0
    longitude: Column = 1

    def _complete(self) -> None:
        if self.latitude == self.longitude:
            raise ValueError(f"latitude and longitude must differ, got {self.latitude} for both")

    @property
    def active(self) -> tuple[int, int]:
        """Latitude and longitude."""
        return self.latitude, self.longitude

    def _cov(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        distance = EARTH_RADIUS * great_circle(self._select(X), self._select(Y))
        return np.exp(-(distance / self.length_scale))


def columns_in_degrees(covariance: Covariance) -> tuple[int, int] | None:
    """The columns of latitude and longitude, if a covariance is one on the sphere."""
    spheres = (leaf for leaf in covariance.leaves() if isinstance(leaf, GreatCircle))
    return next((leaf.active for leaf in spheres), None)

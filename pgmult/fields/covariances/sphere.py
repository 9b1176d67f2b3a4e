"""Covariances on the sphere: inputs are latitude and longitude in degrees.

Most families are not positive definite in great-circle distance: of the Matérn class only
nu <= 1/2 is (Gneiting 2013, "Strictly and non-strictly positive definite functions on spheres").
So `GreatCircle` *is* the exponential covariance, and every other isotropic family goes through
`Chordal`, the straight-line distance through the sphere, in which all of them are positive
definite; the two distances differ by 1 % at 2,500 km on the Earth.
"""

from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

import numpy as np

from pgmult.core.parameters import Positive, real, whole
from pgmult.core.typing import FloatArray
from pgmult.fields.covariances.base import Covariance, Family, Product, Sum
from pgmult.fields.covariances.families import Stationary

EARTH_RADIUS = 6371.0088  # kilometres, the mean radius
Column = Annotated[int, whole(minimum=0)]


def _columns(kind: str, columns: tuple[int, ...], X: FloatArray) -> FloatArray:
    """Latitude and longitude among the inputs, ``(len(X), 2)``."""
    if max(columns) >= X.shape[1]:
        raise ValueError(
            f"{kind} acts on column {max(columns)}, but the inputs have {X.shape[1]} columns"
            " (they are numbered from 0)"
        )
    return X[:, list(columns)]


def _degrees(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Latitude and longitude in radians."""
    latitude, longitude = X.T
    bad = np.abs(latitude) > 90.0
    if bad.any():
        raise ValueError(
            f"latitude must be from -90 to 90 degrees, got {latitude[bad][0]} at row"
            f" {int(np.argmax(bad))} (are latitude and longitude swapped?)"
        )
    bad = np.abs(longitude) > 360.0
    if bad.any():
        raise ValueError(
            f"longitude must be from -360 to 360 degrees, got {longitude[bad][0]} at row"
            f" {int(np.argmax(bad))}"
        )
    return np.radians(latitude), np.radians(longitude)


def great_circle(X: FloatArray, Y: FloatArray) -> FloatArray:
    """Angles between points of latitude and longitude in degrees, ``(len(X), len(Y))``, radians.

    By the haversine formula, accurate for close points.
    """
    (a, b), (c, d) = (_degrees(points) for points in (X, Y))
    haversine = np.square(np.sin(0.5 * (a[:, None] - c)))
    haversine += np.cos(a)[:, None] * np.cos(c) * np.square(np.sin(0.5 * (b[:, None] - d)))
    return np.asarray(2.0 * np.arcsin(np.sqrt(np.minimum(haversine, 1.0))))


def _refuse_same(latitude: int, longitude: int) -> None:
    if latitude == longitude:
        raise ValueError(f"latitude and longitude must be different columns, got {latitude} twice")


@dataclass(frozen=True, eq=False)
class GreatCircle(Family):
    """exp(-distance / length_scale) in great-circle distance (Matérn 1/2 on the sphere).

    Parameters
    ----------
    length_scale : float
        In the units of `radius`.
    latitude, longitude : int
        The columns that hold them, in degrees.
    radius : float
        Of the sphere; by default the Earth's in kilometres.
    """

    length_scale: Annotated[float, real(above=0.0)] = 1000.0  # distance is of both columns
    latitude: Column = 0
    longitude: Column = 1
    radius: Positive = EARTH_RADIUS
    _parameters = ("length_scale",)

    def _complete(self) -> None:
        _refuse_same(self.latitude, self.longitude)

    @property
    def active(self) -> tuple[int, ...] | None:
        """Latitude and longitude."""
        return self.latitude, self.longitude

    def _cov(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        columns = (self.latitude, self.longitude)
        angle = great_circle(*(_columns("GreatCircle", columns, points) for points in (X, Y)))
        return np.exp(-(self.radius * angle / self.length_scale))

    def _diagonal(self, X: FloatArray) -> FloatArray:
        return np.ones(len(X))


def _as_isotropic(value: Any, name: str) -> Stationary:
    if not isinstance(value, Stationary):
        raise TypeError(
            "Chordal needs one isotropic family (SquaredExponential or Matern),"
            f" got {type(value).__name__}"
            " (combine covariances outside: Chordal(...) * Periodic(...))"
        )
    if np.ndim(value.length_scale) or value.active is not None:
        raise ValueError(
            "the covariance inside Chordal must have one length_scale and no active columns:"
            " distance is of latitude and longitude together"
        )
    return value


@dataclass(frozen=True, eq=False)
class Chordal(Covariance):
    """Any isotropic family on the sphere, in straight-line distance through it.

    Parameters
    ----------
    covariance : SquaredExponential or Matern
        With one length scale, in the units of `radius`, and without ``active``.
    latitude, longitude : int
        The columns that hold them, in degrees.
    radius : float
        Of the sphere; by default the Earth's in kilometres.
    """

    covariance: Annotated[Stationary, _as_isotropic]
    latitude: Column = 0
    longitude: Column = 1
    radius: Positive = EARTH_RADIUS

    def _complete(self) -> None:
        _refuse_same(self.latitude, self.longitude)

    @property
    def active(self) -> tuple[int, ...] | None:
        """Latitude and longitude."""
        return self.latitude, self.longitude

    def _in_space(self, X: FloatArray) -> FloatArray:
        latitude, longitude = _degrees(_columns("Chordal", (self.latitude, self.longitude), X))
        level = np.cos(latitude)
        return self.radius * np.column_stack(
            [level * np.cos(longitude), level * np.sin(longitude), np.sin(latitude)]
        )

    def _cov(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        return self.covariance._cov(self._in_space(X), self._in_space(Y))

    def _diagonal(self, X: FloatArray) -> FloatArray:
        return np.ones(len(X))

    @property
    def log_params(self) -> FloatArray:
        """Logarithms of the free parameters, ``(num_params,)``."""
        return self.covariance.log_params

    @property
    def param_names(self) -> tuple[str, ...]:
        """Those of the covariance inside."""
        return self.covariance.param_names

    def _moved_to(self, log_params: FloatArray) -> Self:
        return self._with(covariance=self.covariance._moved_to(log_params))

    def log_prior(self) -> float:
        """Log prior density of the free log parameters."""
        return self.covariance.log_prior()

    def sample_log_params(self, rng: np.random.Generator) -> FloatArray:
        """Free log parameters drawn from their priors, ``(num_params,)``."""
        return self.covariance.sample_log_params(rng)

    def fix(self) -> Self:
        """The same function with no free parameter."""
        return replace(self, covariance=self.covariance.fix())


def columns_in_degrees(covariance: Covariance) -> tuple[int, int] | None:
    """The columns of latitude and longitude, if a covariance is one on the sphere."""
    if isinstance(covariance, GreatCircle | Chordal):
        return covariance.latitude, covariance.longitude
    parts = covariance.parts if isinstance(covariance, Sum | Product) else ()
    return next(filter(None, map(columns_in_degrees, parts)), None)

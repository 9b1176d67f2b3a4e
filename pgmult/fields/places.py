"""Places by name: where the rows of a table of places lie, and how far apart.

Coordinates are what a table calls latitude and longitude (degrees, on the sphere) or x and y; what
else it says of its places, such as how many live there, is none, unless columns are named.

>>> towns = {"town": ["Suva", "Apia"], "lat": [-18.1, -13.8], "lon": [178.4, -171.8], "n": [94, 36]}
>>> found = places_of(towns)
>>> found.at, found.on_sphere
({'Suva': (-18.1, 178.4), 'Apia': (-13.8, -171.8)}, True)
>>> round(spread_in_km([*found.at.values()]))  # across 180 degrees
1151
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pgmult.core.labels import as_looked_at, is_missing, labels_of
from pgmult.core.tables import as_columns, chosen_columns
from pgmult.core.typing import Array
from pgmult.fields.covariances.sphere import EARTH_RADIUS, as_radians, great_circle

_LATITUDE, _LONGITUDE = {"lat", "latitude"}, {"lon", "long", "lng", "longitude"}


class Places(NamedTuple):
    """Coordinates of places.

    Attributes
    ----------
    at : mapping from name to coordinates
    on_sphere : bool
        Whether these are latitude and longitude in degrees.
    """

    at: Mapping[str, tuple[float, ...]]
    on_sphere: bool


def degrees_among(columns: Iterable[str]) -> list[str]:
    """The columns of latitude and of longitude by their names; empty where not one of each is."""
    return _one_of_each(columns, (_LATITUDE, _LONGITUDE))


def places_of(
    table: object,
    names: str | None = None,
    coordinates: Sequence[str] = (),
    what: str = "the table of places",
) -> Places:
    """Coordinates by the names of places.

    Parameters
    ----------
    table : data frame or mapping of columns
    names : str, optional
        The column of names; where the table does not have it, its first one.
    coordinates : sequence of str, optional
        Columns of coordinates. Left out: those called lat (latitude) and lon (long, lng,
        longitude), or x and y, or all others where these are one or two of numbers.
    what : str
        The table in errors.

    Raises
    ------
    ValueError
        If it is not clear which columns are coordinates, a latitude or longitude is impossible, or
        a place lies at two points.
    """
    columns = as_columns(table, what)
    names = next(iter(columns)) if names is None or names not in columns else names
    others = {name: column for name, column in columns.items() if name != names}
    chosen = _coordinates(others, names, coordinates, what)
    on_sphere = chosen == degrees_among(chosen) and len(chosen) > 1
    at = np.column_stack([others[name].astype(np.float64) for name in chosen])
    if on_sphere:
        as_radians(at, lambda row: f"in row {row + 1:,} below the header of {what}")
    points: dict[str, tuple[float, ...]] = {}
    first: dict[str, int] = {}
    for row, (place, point) in enumerate(zip(columns[names].tolist(), at, strict=True)):
        if is_missing(place):
            continue
        label = str(labels_of([place], names)[0])
        before = first.setdefault(as_looked_at(label), row)
        if not np.array_equal(at[before], point, equal_nan=True):
            one, other = (", ".join(f"{x:g}" for x in where) for where in (at[before], point))
            got = f"{label!r} at {one} in row {before + 1:,} below the header and at {other} in row"
            raise ValueError(f"{what} must have one place of a name, got {got} {row + 1:,}")
        points[label] = tuple(point.tolist())
    return Places(points, on_sphere)


def _coordinates(
    columns: Mapping[str, Array], names: str, wanted: Sequence[str], what: str
) -> list[str]:
    """The columns of coordinates."""
    chosen = [*chosen_columns(columns, [*wanted], what, "coordinates")]
    chosen = degrees_among(chosen) if set(degrees_among(chosen)) == set(chosen) else chosen
    chosen = chosen or degrees_among(columns) or _one_of_each(columns, ({"x"}, {"y"}))
    guessed = not chosen
    chosen = chosen or [*columns]
    texts = [name for name in chosen if columns[name].dtype.kind not in "iuf"]
    if not chosen or texts or (guessed and len(chosen) > 2):
        got = ", ".join(map(repr, chosen)) or "none"
        text = f", and text in {texts[0]!r}" if texts else ""
        raise ValueError(
            f"{what} must have names of places, here {names!r}, and numbers in columns called lat"
            f" and lon (degrees), or x and y, or in one or two others, got {got}{text}"
            " (coordinates says which they are)"
        )
    return chosen


def _one_of_each(columns: Iterable[str], kinds: Sequence[Collection[str]]) -> list[str]:
    every = list(columns)
    matches = [[name for name in every if as_looked_at(name) in kind] for kind in kinds]
    return [names[0] for names in matches] if all(len(names) == 1 for names in matches) else []


def spread_in_km(points: ArrayLike) -> float:
    """About the longest way between two of some points, ``(n, 2)`` of latitude and longitude."""
    at = np.unique(np.asarray(points, dtype=np.float64), axis=0)
    farthest = int(great_circle(at[:1], at)[0].argmax())
    return float(EARTH_RADIUS * great_circle(at[farthest : farthest + 1], at).max())

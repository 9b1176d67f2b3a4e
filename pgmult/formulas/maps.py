"""Maps: which areas are neighbours, for ``car(area, map)``.

A map is given as one of

* a table of two columns, one row per pair of neighbours; a row with an empty second cell names an
  area without neighbours;
* a mapping from each area to a list of its neighbours;
* GeoJSON, read or as a path: polygons are neighbours whose outlines share two points or more. An
  area's name is the property with the name of the formula's column, or else the feature's id.

A pair may stand either way round or twice.

>>> areas, pairs = neighbours_of({"a": ["b"], "b": ["a"], "island": []}, "area")
>>> areas.tolist(), pairs.tolist()
(['a', 'b', 'island'], [[0, 1]])
"""

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmult.core.arguments import brief
from pgmult.core.labels import is_missing, label_of
from pgmult.core.tables import exact_columns
from pgmult.core.typing import IntArray

_BORDER = 2  # points that two outlines share


def neighbours_of(source: object, column: str) -> tuple[NDArray[np.str_], IntArray]:
    """The areas of a map, sorted, and pairs of them that are neighbours.

    Parameters
    ----------
    source : table, mapping or GeoJSON
        See above.
    column : str
        The formula's column of areas.

    Returns
    -------
    areas : str array, ``(num_areas,)``
    pairs : int64 array, ``(num_pairs, 2)``
        The smaller number first, each pair once.

    Raises
    ------
    ValueError
        If `source` is no map, or an area is said to be its own neighbour.
    """
    if isinstance(source, str | os.PathLike):
        source = json.loads(Path(source).read_text(encoding="utf-8"))
    if isinstance(source, Mapping) and "features" in source:
        borders = _borders(source["features"], column)
    elif isinstance(source, Mapping) and _are_neighbours(source):
        borders = [(area, other) for area, others in source.items() for other in [None, *others]]
    else:
        borders = _pairs_of_table(source)
    named = [tuple(None if _is_empty(one) else label_of(one) for one in pair) for pair in borders]
    areas = sorted({one for pair in named for one in pair if one is not None})
    beside = [(one, other) for one, other in named if one is not None and other is not None]
    alike = [one for one, other in beside if one == other]
    if alike:
        raise ValueError(f"a map must not have an area beside itself, got {alike[0]!r}")
    if not beside:
        raise ValueError("a map must have two neighbours at least, got none")
    place = {area: i for i, area in enumerate(areas)}
    pairs = {tuple(sorted((place[one], place[other]))) for one, other in beside}
    return np.array(areas, dtype=np.str_), np.array(sorted(pairs), dtype=np.int64)


def _are_neighbours(source: Mapping[Any, Any]) -> bool:
    """Does a mapping list neighbours, and not two columns of pairs, whose names are no areas?"""
    lists = list(source.values())
    if not all(isinstance(one, list | tuple | set | np.ndarray) for one in lists):
        return False
    if len(lists) != 2 or len(lists[0]) != len(lists[1]):
        return True
    cells = {label_of(one) for column in lists for one in column if not _is_empty(one)}
    return not cells.isdisjoint(map(label_of, source))


def _pairs_of_table(table: object) -> list[tuple[object, object]]:
    with suppress(TypeError):
        columns = [cells.values.tolist() for cells in exact_columns(table, "map").values()]
        if len(columns) == 2:
            return list(zip(*columns, strict=True))
    what = "a table of two columns, a mapping from areas to lists of their neighbours, or GeoJSON"
    raise ValueError(f"a map must be {what}, got {brief(table)}")


def _is_empty(cell: Any) -> bool:
    return is_missing(cell) or cell == ""


def _borders(features: Any, column: str) -> list[tuple[object, object]]:
    """Areas, and pairs of them whose outlines share points."""
    at: dict[tuple[float, float], set[str]] = {}
    pairs: list[tuple[Any, Any]] = []
    for number, feature in enumerate(features):
        name = (feature.get("properties") or {}).get(column, feature.get("id"))
        if name is None:
            raise ValueError(f"feature {number} of a map must have a property {column!r} or an id")
        pairs.append((label_of(name), None))
        for x, y in _points((feature.get("geometry") or {}).get("coordinates", [])):
            at.setdefault((float(x), float(y)), set()).add(label_of(name))
    shared = Counter(pair for names in at.values() for pair in combinations(sorted(names), 2))
    return [*pairs, *(pair for pair, count in shared.items() if count >= _BORDER)]


def _points(coordinates: Any) -> Iterator[tuple[float, float]]:
    """All points of polygons, or of several."""
    if coordinates and isinstance(coordinates[0], int | float):
        yield coordinates[0], coordinates[1]
    else:
        for coordinate in coordinates:
            yield from _points(coordinate)

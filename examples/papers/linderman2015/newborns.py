"""Names of newborns in the United States by state and year: counts in space and time.

From the Social Security Administration's "Baby Names from Social Security Card Applications - Data
by State", https://www.ssa.gov/oact/babynames/limits.html, a work of the federal government in the
public domain. A name given to fewer than 5 children of a sex in a state and year is not listed
there and counts 0.

>>> thin([[2, 0, 1], [500, 300, 200]], 50, random_seed=0).sum(axis=1)
array([ 3, 50])
"""

import hashlib
import os
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from examples.papers.downloads import download
from pgmult.core.arguments import as_choice, as_list, as_seed, brief
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_counts, as_positive_int
from pgmult.datasets.states import us_states

_URL = "https://www.ssa.gov/oact/babynames/state/namesbystate.zip"
_SHA256 = "b170dc18bd6c20cffff21cb0d27aa6f91d5980f78791970d9ea03acdb42312b2"
_FIRST_YEAR, _LAST_RANKED_YEAR, _LAST_YEAR = 1910, 2013, 2014
_LISTED = {"M": 155_117_516, "F": 143_776_767}  # births in all states, 1910-2014, as of March 2015
_TOLERANCE = 0.01  # the Administration revises its counts every year, by far less

_MOST_ITEMS = 10**9  # of a row, in numpy's draws without replacement
_PLACES = {name: place for name, place in us_states().items() if len(name) == len("NY")}
_STATES = list(_PLACES)


@dataclass(frozen=True, slots=True, eq=False)
class NameCounts:
    """Newborns of one sex by year, state and name.

    Attributes
    ----------
    counts : int64 array, ``(num_years, num_states, num_names)``
    years : int64 array, ``(num_years,)``
    states : str array, ``(num_states,)``
        Postal codes, the District of Columbia among them.
    names : str array, ``(num_names,)``
        By frequency in all states from 1910 to 2013, largest first.
    places : array, ``(num_states, 2)``
        Latitude and longitude, degrees.
    """

    counts: IntArray
    years: IntArray
    states: NDArray[np.str_]
    names: NDArray[np.str_]
    places: FloatArray

    def inputs(self) -> FloatArray:
        """Year, latitude and longitude, ``(num_years * num_states, 3)``: all states of a year,
        then those of the next, as in ``counts.reshape(-1, num_names)``.
        """
        years = np.repeat(self.years.astype(np.float64), len(self.states))
        return np.column_stack([years, np.tile(self.places, (len(self.years), 1))])

    def take(
        self, years: Iterable[int] | None = None, states: Sequence[str] | None = None
    ) -> "NameCounts":
        """Some of the years and of the states, in the order given; all of them by default.

        Raises
        ------
        ValueError
            If one of them is unknown.
        """
        rows, columns = np.arange(len(self.years)), np.arange(len(self.states))
        if years is not None:
            rows = _positions("year", as_list(years, "years", "numbers"), self.years.tolist())
        if states is not None:
            columns = _positions("state", as_list(states, "states", "codes"), self.states.tolist())
        return NameCounts(
            np.ascontiguousarray(self.counts[rows][:, columns]), self.years[rows],
            self.states[columns], self.names, self.places[columns],
        )  # fmt: skip


def us_names(
    sex: Literal["M", "F"] = "M",
    top: int = 100,
    *,
    years: Iterable[int] | None = None,
    states: Sequence[str] | None = None,
) -> NameCounts:
    """Names of newborns in 50 states and the District of Columbia, 1910-2014.

    Taken from ``$PGMULT_DATA/names``, if it is there: the 200 most frequent names of each sex, as
    published in March 2015 (four large states partly estimated from later publications), checked
    against a checksum. Otherwise the Administration's file is downloaded once into the user's
    cache folder. It is revised every year, so that there is no checksum for it: its states and its
    number of births are checked, and counts may differ by a few from those of 2015.

    Parameters
    ----------
    sex : "M" or "F"
    top : int
        How many names, by their births in all states from 1910 to 2013.
    years, states
        As in `NameCounts.take`.

    Raises
    ------
    ImportError
        If a download is needed and pooch is not installed (``pip install "pgmult[data]"``).
    ValueError
        If the file is not the expected one, or a state or year is unknown.
    """
    as_choice(sex, "sex", _LISTED)
    top = as_positive_int(top, "top", minimum=2)
    folder = os.environ.get("PGMULT_DATA")
    local = Path(folder) / "names" / "ssa_names_by_state.npz" if folder else None
    if local is not None and local.is_file():
        counts, names = _read_npz(local, sex)
    else:
        counts, names = _read_zip(download(_URL, "namesbystate.zip"), sex)
    if top > len(names):
        raise ValueError(f"top must be at most {len(names)}, the names in this file, got {top}")
    everything = NameCounts(
        np.ascontiguousarray(counts[:, :, :top]),
        np.arange(_FIRST_YEAR, _LAST_YEAR + 1),
        np.array(_STATES),
        names[:top],
        np.array(list(_PLACES.values())),
    )
    return everything.take(years, states)


def thin(counts: ArrayLike, size: int, random_seed: Any = None) -> IntArray:
    """At most `size` of the items of each row, drawn without replacement.

    Parameters
    ----------
    counts : int array, ``(..., num_categories)``
    size : int
    random_seed : int, optional

    Returns
    -------
    int64 array, shape of `counts`
        Rows of `size` items or fewer stay as they are.
    """
    counts = as_counts(counts)
    size = as_positive_int(size, "size", minimum=0)
    if counts.ndim == 0 or counts.shape[-1] == 0:
        raise ValueError(f"counts must have categories on their last axis, got {counts.shape}")
    if counts.size and counts.sum(axis=-1, dtype=np.float64).max() >= _MOST_ITEMS:
        raise ValueError(f"counts must have rows of fewer than {_MOST_ITEMS:,} items")
    rows = counts.reshape(-1, counts.shape[-1])
    rng = np.random.default_rng(as_seed(random_seed))
    kept = [rng.multivariate_hypergeometric(x, min(size, x.sum())) for x in rows]
    return np.array(kept, dtype=np.int64).reshape(counts.shape)


def _positions(what: str, wanted: list[Any], known: list[Any]) -> IntArray:
    kind = str if isinstance(known[0], str) else int | np.integer
    unknown = [
        item
        for item in wanted
        if isinstance(item, bool) or not isinstance(item, kind) or item not in known
    ]
    if unknown:
        raise ValueError(
            f"{what}s must be known, got {brief(unknown[0])}: there are {known[0]} to {known[-1]}"
            f" ({what}s are {type(known[0]).__name__}s such as {known[0]!r})"
        )
    return np.array([known.index(item) for item in wanted], dtype=np.int64)


def _read_npz(path: Path, sex: str) -> tuple[IntArray, NDArray[np.str_]]:
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != _SHA256:
        raise ValueError(
            f"{path}: not the expected counts of names (checksum {found[:12]}…, expected"
            f" {_SHA256[:12]}…)"
        )
    with np.load(path) as file:
        return file[f"counts_{sex}"].astype(np.int64), file[f"names_{sex}"]


def _read_zip(path: Path, sex: str) -> tuple[IntArray, NDArray[np.str_]]:
    """Counts of all names, most frequent first, from the Administration's file.

    It holds a text file a state, ``CA.TXT``, of lines ``CA,F,1910,Mary,295``.
    """
    years: list[int] = []
    places: list[int] = []
    columns: list[int] = []
    births: list[int] = []
    column: dict[str, int] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for place, state in enumerate(_STATES):
                for line in archive.read(f"{state}.TXT").decode("ascii").split():
                    code, kind, year, name, number = line.split(",")
                    if code != state:
                        raise ValueError(f"{state}.TXT has the line {line!r}")
                    if kind == sex and _FIRST_YEAR <= int(year) <= _LAST_YEAR:
                        years.append(int(year) - _FIRST_YEAR)
                        places.append(place)
                        columns.append(column.setdefault(name, len(column)))
                        births.append(int(number))
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise ValueError(f"{path}: not the expected archive ({error}); delete it") from None
    if abs(sum(births) / _LISTED[sex] - 1.0) > _TOLERANCE:
        raise ValueError(
            f"{path}: not the expected archive ({sum(births):,} births, expected about"
            f" {_LISTED[sex]:,}); delete it to download it again"
        )
    ranked = np.array(years) <= _LAST_RANKED_YEAR - _FIRST_YEAR
    totals = np.bincount(columns, ranked * np.array(births), minlength=len(column))
    names = np.array(list(column))
    order = np.lexsort([names, -totals])[:1000]
    place_of = np.full(len(names), -1)
    place_of[order] = np.arange(len(order))
    counts = np.zeros((_LAST_YEAR + 1 - _FIRST_YEAR, len(_STATES), len(order)), dtype=np.int64)
    kept = place_of[columns] >= 0
    index = (np.array(years)[kept], np.array(places)[kept], place_of[columns][kept])
    counts[index] = np.array(births)[kept]
    return counts, names[order]

"""Tidy tables as fields: one row for each category at each place and time.

This is how counts come from a database or a statistical office, and how `FieldPredictions` hands
its answers back::

    year  state  name  births
    1999  TX     Ada       12
    1999  TX     Ben        7
    2000  TX     Ada       15

>>> births = {"year": [1999, 1999, 2000], "name": ["Ada", "Ben", "Ada"], "births": [12, 7, 15]}
>>> data = field_of(births, inputs=["year"], category="name", count="births")
>>> data.categories, data.counts
(array(['Ada', 'Ben'], dtype='<U3'), array([[12,  7],
       [15,  0]]))
"""

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgmult.core import labels as core_labels
from pgmult.core import tables as core_tables
from pgmult.core.arguments import as_choice, as_kind, as_mapping, as_strings
from pgmult.core.dates import dates_of
from pgmult.core.labels import TOTAL, as_looked_at
from pgmult.core.typing import Array, ArrayLike, BoolArray, FloatArray, IntArray
from pgmult.core.validate import as_finite
from pgmult.fields.data import CountField, as_field, clash_of
from pgmult.fields.places import degrees_among

_DATES = "datetime64[s]"
_CATEGORY, _COUNT = "category", "count"  # columns of a table that was wide
_LEAST_FILLED = 0.25  # share of combinations of values that occur, where columns make a table
_WOULD_BE_SEEN = 20.0  # counts that are expected where there is no row of a category
Absent = Literal["zero", "not counted"]
_Texts = NDArray[np.str_]


def field_of(table: object, **options: Any) -> CountField:
    """The data of `read_field`, with a warning of what was guessed; options are as there."""
    data, guess, _, totals = read_field(table, **options)
    for words in filter(None, (guess and f"{guess} (absent= says so)", totals)):
        warnings.warn(words, stacklevel=2)
    return data


class FieldRead(NamedTuple):
    """A field, and how the reader treated categories without a row and totals.

    Attributes
    ----------
    data : CountField
    guess : str
        What was taken for not counted by a guess; empty if nothing.
    zeros : str
        What was taken for 0; empty if nothing.
    totals : str
        Categories that are sums of the others, which were left out; empty if none.
    """

    data: CountField
    guess: str
    zeros: str
    totals: str


def read_field(
    table: object,
    *,
    inputs: str | Sequence[str],
    category: str | None = None,
    count: str | None = None,
    wide: Sequence[str] = (),
    new_inputs: object = None,
    places: Mapping[str, object] | None = None,
    absent: Absent | None = None,
    order: str | ArrayLike = "frequency",
) -> FieldRead:
    """A `CountField` from a tidy table, labels and dates kept, and what was guessed.

    Parameters
    ----------
    table : data frame (pandas, polars, pyarrow, ...), labelled array of xarray, or mapping
        Rows may stand in any order, and those of one category at the same inputs add up, with a
        warning where they are alike in every column. Of categories without a row somewhere
        `absent` says what they were.
    inputs : str or sequence of str
        Columns that say where and when: numbers, dates (years and their fractions to the model,
        dates again in what is reported; also 202001, 2020Q1, 2020-W05, Jan 2020 and 2019/20), or
        names of places.
    category : str
        The column of the category.
    count : str, optional
        The column of counts; left out, every row is one observation.
    wide : sequence of str, optional
        Columns of counts, one for each category, in place of `category` and `count`. An empty cell
        is a category without a row.
    new_inputs : table, optional
        Where predictions are wanted: the columns `inputs`, one row each.
    places : mapping, optional
        For each column of names a mapping from name to coordinates, such as
        ``{"state": pgmult.datasets.us_states()}`` or what `pgmult.fields.places.places_of` finds in
        a table; each name has the same number of them. Capitals and blanks of names do not matter.
    absent : {"zero", "not counted"}, optional
        What it means that a category has no row at some inputs. "zero": it was counted 0 times.
        "not counted": it could not be; probabilities there are those given that it is another (see
        `pgmult.fields.data`). Left out, a category that is absent at all places of a year is taken
        for not counted where the years beside it say that it would have been seen;
        all else for 0.
    order : {"frequency", "given"} or permutation of the categories
        The order of the sticks, as in `as_field`. Categories stand in the order of `wide`, or
        else of their names, numbers in them by value.

    Raises
    ------
    ValueError
        If a column or a place is missing, a value is missing, or a count is negative or fractional.
    TypeError
        If `table` is no table.
    """
    if absent is not None:
        as_choice(absent, "absent", ("zero", "not counted"))
    chosen = [inputs] if isinstance(inputs, str) else as_strings(inputs, "inputs")
    if not chosen:
        raise ValueError("inputs must name a column at least, got none")
    columns = as_given = core_tables.as_columns(table, "table")
    at_places = as_mapping(places, "places")
    if unused := [name for name in at_places if name not in chosen]:
        raise ValueError(f"places must be of columns among inputs, got {unused[0]!r}")
    wide = as_strings(wide, "wide")
    if wide:
        if category is not None or count is not None:
            raise ValueError("wide must be given alone, without category and count")
        columns = _as_long(columns, chosen, wide)
        category, count = _CATEGORY, _COUNT
    category = as_kind(category, "category", str, "the column of the category, or pass wide=")
    roles = {f"inputs {name}": name for name in chosen}
    core_tables.one_role_each({**roles, "category": category, "count": count})
    at = _with_dates(core_tables.chosen_columns(columns, chosen, "table", "inputs"), at_places)
    of_category = core_tables.chosen_columns(columns, [category], "table", "category")[category]
    x, names = _coordinates(at, at_places, "table")
    if not len(x):
        raise ValueError("table must have a row at least, got none")
    number = np.ones(len(x), dtype=np.int64)
    if count is not None:
        of_count = core_tables.chosen_columns(columns, [count], "table", "count")[count]
        number = core_tables.counts_of(of_count, count)
        _warn_of_repeats(as_given)
    labels, of_label = _in_order(core_labels.labels_of(of_category, category), wide)
    core_labels.warn_of_look_alikes(labels, f"column {category!r}")
    _, first, of_row = np.unique(x, axis=0, return_index=True, return_inverse=True)
    cells = of_row.reshape(-1), of_label
    counts = np.zeros((len(first), len(labels)), dtype=np.int64)
    np.add.at(counts, cells, number)
    present = np.zeros(counts.shape, dtype=np.bool_)
    present[cells] = True
    kept, totals = _totals(counts, present, labels.tolist())
    counts, present, categories = counts[:, kept], present[:, kept], labels[kept].tolist()
    counted = present if absent == "not counted" else np.ones_like(present)
    guess = ""
    axes = [key for key, c in at.items() if c.dtype.kind in "iufM" and key not in at_places]
    if absent is None and count is not None and axes and not present.all():
        counted, guess = _guess(counts, present, axes[0], at[axes[0]][first], categories)
    shown = {key: _shown(column[first]) for key, column in at.items()}
    row_names = _row_names(shown)
    # each row is one observation where there is no count
    zeros = "" if count is None else _zeros_in_words(counted & ~present, row_names, categories)
    data = as_field(
        x[first], counts, order=order, categories=categories, names=row_names, input_names=names,
        counted=counted,
    )  # fmt: skip
    data = replace(data, columns=shown)
    if new_inputs is not None:
        new = core_tables.as_columns(new_inputs, "new_inputs")
        data = with_table(data, new, at_places, what="new_inputs")
    return FieldRead(data, guess, zeros, totals)


def _as_long(columns: Mapping[str, Array], inputs: list[str], wide: list[str]) -> dict[str, Array]:
    """A row for each category of a table that has a column for each."""
    numbers = core_tables.chosen_columns(columns, wide, "table", "wide")
    core_tables.one_role_each({f"inputs {n}": n for n in inputs} | {f"wide {n}": n for n in wide})
    cells = np.stack([column.astype(object) for column in numbers.values()], axis=1)
    filled = ~np.array([[core_labels.is_missing(cell) for cell in line] for line in cells])
    for (name, column), is_filled in zip(numbers.items(), filled.T, strict=True):
        core_tables.counts_of(column[is_filled], name)
    row, k = np.nonzero(filled)
    long = {name: columns[name][row] for name in inputs if name in columns}
    return long | {_CATEGORY: np.array(wide)[k], _COUNT: cells[row, k].astype(np.float64)}


def _totals(counts: IntArray, present: BoolArray, labels: Sequence[str]) -> tuple[IntArray, str]:
    """Find categories that are sums of all others: those to keep, and words for the others.

    Raises
    ------
    ValueError
        If a category is called a total and has more than the others together.
    """
    every, total = np.arange(len(labels)), core_labels.total_of(counts, labels, present)
    if total is not None:
        words = f"{labels[total]!r} is the sum of the other categories wherever it has a row"
        return np.delete(every, total), f"{words}: left out"
    for k, label in enumerate(labels if len(labels) > 2 else ()):
        if not TOTAL.fullmatch(label.strip()):
            continue
        rows = present[:, k]
        number, others = counts[rows, k], np.delete(counts[rows], k, axis=1).sum(axis=1)
        if (number >= others).all():
            got = f"{label!r} has {number.sum():,} counts and the others {others.sum():,}"
            hint = "take its rows out; give the difference a category if it is one"
            raise ValueError(f"categories must not include a total, {got} ({hint})")
    return every, ""


def _guess(
    counts: IntArray, present: BoolArray, axis: str, along: Array, labels: Sequence[str]
) -> tuple[BoolArray, str]:
    """Guess what was counted where from values along an axis, and describe the guess."""
    counted = np.ones_like(present)
    values, of_value = np.unique(along, return_inverse=True)
    total, rows = np.zeros((2, len(values), len(labels)))
    np.add.at(total, of_value, counts)
    np.add.at(rows, of_value, present)
    sums = total.sum(axis=1)
    shares = total / np.maximum(sums, 1.0)[:, None]
    expected = np.empty_like(total)  # of the share at the nearest value that has the category
    for k in range(len(labels)):
        with_rows = np.flatnonzero(rows[:, k])
        near = with_rows[np.abs(np.arange(len(values))[:, None] - with_rows).argmin(axis=1)]
        expected[:, k] = shares[near, k] * sums
    missing = (rows == 0) & (np.bincount(of_value)[:, None] > 1) & (expected >= _WOULD_BE_SEEN)
    guesses, refused = [], []
    for k in np.argsort(-np.sum(expected * missing, axis=0), kind="stable"):
        at = np.flatnonzero(missing[:, k])
        if not len(at):
            continue
        counted[:, k] = ~missing[of_value, k]
        runs = np.split(at, np.flatnonzero(np.diff(at) > 1) + 1)
        ends = [[plain(v) for v in _shown(values[run[[0, -1]]])] for run in runs]
        spans = ", ".join(one if one == other else f"{one} to {other}" for one, other in ends)
        said = f"{labels[k]!r} has no row at {axis} {spans}, anywhere"
        if clash_of(counted) is None:
            guesses.append(said)
        else:
            counted[:, k] = True
            refused.append(f"{said}: taken for 0, as it was counted where others were not")
    guess = f"{'; '.join(guesses)}: taken for not counted there, instead of 0" if guesses else ""
    return counted, "; ".join([guess, *refused] if guess else [])


def _zeros_in_words(zeros: BoolArray, rows: Sequence[str], labels: Sequence[str]) -> str:
    if not zeros.any():
        return ""
    row, k = np.argwhere(zeros)[0]
    many = f"{np.count_nonzero(zeros):,} of {zeros.size:,} combinations of inputs and categories"
    return f"{many} have no row, as {labels[k]!r} at {rows[row]}: taken for 0"


def with_table(
    data: CountField,
    new: object,
    places: Mapping[str, object] | None = None,
    names: object = None,
    what: str = "new",
) -> CountField:
    """The same counts with predictions wanted at the rows of a table, or at arrays of coordinates.

    Parameters
    ----------
    data : CountField
        Where it comes from a table, `new` has the same columns, and places are found by the names
        that they have there, exactly.
    new : table or array
    places : mapping, optional
        Coordinates of places that are not in the data, as in `field_of`.
    names : sequence of str, optional
        Labels of the new inputs.
    what : str
        The table in errors.

    Raises
    ------
    TypeError, ValueError
        As `field_of`.
    """
    if data.columns is None or isinstance(new, np.ndarray | list | tuple):
        if places is not None:
            raise ValueError("places must be of data that were read from a table")
        return data.with_new_inputs(new, names)
    at_places = {key: dict(where) for key, where in as_mapping(places, "places").items()}
    for key, column in data.columns.items():
        pattern = re.compile(rf"{re.escape(key)}( \d+)?")
        x = data.inputs[:, [bool(pattern.fullmatch(name)) for name in data.input_labels]]
        is_number = column.dtype.kind != "U" and np.array_equal(x.ravel(), column)
        if not is_number and column.dtype.kind != "M":
            known = dict(zip(column.tolist(), x.tolist(), strict=True))
            at_places[key] = known | at_places.get(key, {})
    table = core_tables.as_columns(new, what)
    chosen = core_tables.chosen_columns(table, [*data.columns], what, "inputs")
    columns = _with_dates(chosen, at_places)
    x, _ = _coordinates(columns, at_places, what)
    shown = {key: _shown(column) for key, column in columns.items()}
    wider = data.with_new_inputs(x, _row_names(shown) if names is None else names)
    return replace(wider, new_columns=shown)


def _with_dates(columns: Mapping[str, Array], places: Mapping[str, object]) -> dict[str, Array]:
    """Columns of inputs, as dates where numbers or texts stand for dates and are no places."""
    dates = {name: dates_of(column) for name, column in columns.items() if name not in places}
    return {**columns, **{name: date for name, date in dates.items() if date is not None}}


def _coordinates(
    columns: Mapping[str, Array], places: Mapping[str, object], table: str
) -> tuple[FloatArray, list[str]]:
    """Inputs ``(n, d)`` of a table's columns, and what each is called."""
    arrays: list[FloatArray] = []
    names: list[str] = []
    for name, column in columns.items():
        items = column if column.dtype.kind in "OUS" else ()
        text = next((str(item) for item in items if isinstance(item, str)), None)
        if name in places:
            values = _places(column, places[name], name, table)
        elif column.dtype.kind == "M":
            values = core_tables.as_years(column)[:, None]
        elif text is not None:
            hint = f"places={{{name!r}: ...}} says where places are; a treatment takes a regression"
            if text[:1].isdigit():
                hint = "make numbers or datetime64 of them, as pandas.to_datetime does"
            got = f"strings such as {text!r} ({hint})"
            raise ValueError(f"column {name!r} of {table} must be numbers or dates, got {got}")
        else:
            values = as_finite(column, f"column {name!r} of {table}")[:, None]
        arrays.append(values)
        width = values.shape[1]
        names += [f"{name} {i + 1}" for i in range(width)] if width > 1 else [name]
    return np.concatenate(arrays, axis=1), names


def _warn_of_repeats(columns: Mapping[str, Array]) -> None:
    """Warn of rows that are like others in every column."""
    first: dict[Any, int] = {}
    rows = enumerate(zip(*(c.tolist() for c in columns.values()), strict=True))
    if again := [place for place, row in rows if first.setdefault(row, place) != place]:
        many = f"{len(again):,} rows are" if len(again) > 1 else "1 row is"
        words = f"{many} like another in every column, as row {again[0] + 1:,} below the header is"
        hint = "take repeats out if they are no further counts"
        warnings.warn(f"{words}, and counted once more: {hint}", stacklevel=3)


def _places(column: NDArray[Any], points: Any, name: str, table: str) -> FloatArray:
    """Coordinates of the places that a column names."""
    where = as_kind(points, f"places[{name!r}]", Mapping)
    every = [*where.values()]
    at = _find_places(core_labels.labels_of(where, "places"), every, column, name, table)
    distinct, first, of_row = np.unique(at, return_index=True, return_inverse=True)
    rows = [np.atleast_1d(np.asarray(every[place], dtype=object)) for place in distinct]
    if len({row.shape for row in rows}) > 1 or any(row.ndim != 1 for row in rows):
        raise ValueError(f"places[{name!r}] must have as many coordinates for every place")
    coordinates = as_finite(np.stack(rows).astype(np.float64), f"places[{name!r}]")
    _warn_of_same_points(column[first].astype(np.str_).tolist(), coordinates, name)
    return coordinates[of_row]


def _find_places(
    labels: _Texts, points: Sequence[Any], column: Array, name: str, table: str
) -> IntArray:
    """Find the place of each row by its text, its number, or its text but for capitals and blanks.

    What looks like several places that lie at different points is none of them.
    """
    at = core_labels.find_labels(labels, column, name, new_levels=True)
    if (at >= 0).all():
        return at
    alike: dict[str, int] = {}
    for place, look in enumerate(map(as_looked_at, labels.tolist())):
        other = alike.setdefault(look, place)
        if other >= 0 and not np.array_equal(points[other], points[place]):
            alike[look] = -1
    texts = core_labels.labels_of(column, name)
    at = np.where(at >= 0, at, [alike.get(as_looked_at(text), -1) for text in texts.tolist()])
    # one that is still not known is refused, with its row and with what is like it
    texts = np.where(at >= 0, labels[at], texts)
    return core_labels.find_labels(labels, texts, name, what=f"{table} column")


def _warn_of_same_points(places: Sequence[str], coordinates: FloatArray, name: str) -> None:
    """Warn of places with different names at one point, whose counts add up."""
    same: dict[bytes, str] = {}
    for place, point in zip(places, coordinates, strict=True):
        other = same.setdefault(point.tobytes(), place)
        if as_looked_at(other) != as_looked_at(place):
            words = f"{other!r} and {place!r} of {name!r} lie at one point"
            where = ", ".join(f"{x:g}" for x in point)
            warnings.warn(f"{words}, {where}: they are one place, and counts add up", stacklevel=3)
            return


def _shown(column: Array) -> Array:
    """A column of inputs as reports show it: dates, numbers or names."""
    if column.dtype.kind == "M":
        return column.astype(_DATES)
    return column if column.dtype.kind in "iuf" else column.astype(np.str_)


def _row_names(shown: Mapping[str, Array]) -> list[str]:
    return [", ".join(map(plain, row)) for row in zip(*shown.values(), strict=True)]


def plain(value: object) -> str:
    """A label as it is printed."""
    if isinstance(value, np.datetime64):
        return core_tables.date_text(value)
    return f"{value:g}" if isinstance(value, np.floating | float) else str(value)


def axis_and_places(
    data: CountField, columns: Mapping[str, object], num_rows: int
) -> tuple[str, FloatArray, list[str], IntArray]:
    """Split the columns: rows lie along the first one of numbers or dates, the others are places.

    Columns of latitude and longitude are a place together, and so are columns of numbers that fill
    little of the table of their values: points that are scattered.

    Returns
    -------
    axis : str
        Empty if there is none.
    x : array, ``(num_rows,)``
    places : list of str
    place : int array, ``(num_rows,)``
    """
    arrays = {name: np.asarray(values) for name, values in columns.items()}
    if data.columns is None:
        arrays.pop("row", None)
    lines = [name for name, values in arrays.items() if values.dtype.kind in "iufM"]
    located = degrees_among(lines)
    axis = next((name for name in lines if name not in located), "")
    others = [values for name, values in arrays.items() if name != axis]
    if axis and others and all(values.dtype.kind in "iuf" for values in arrays.values()):
        ways = arrays[axis][None], np.stack(others), np.stack([*arrays.values()])
        values, combinations, filled = (np.unique(way, axis=1).shape[1] for way in ways)
        if filled < _LEAST_FILLED * values * combinations:
            axis, others = "", [*arrays.values()]
    along: Array = arrays.get(axis, np.zeros(num_rows))
    x = core_tables.as_years(along) if along.dtype.kind == "M" else along.astype(np.float64)
    labels = [", ".join(map(plain, row)) for row in zip(*others, strict=True)]
    places, place = _in_order(np.array(labels or [""] * num_rows))
    return axis, x, places.tolist(), place


def _in_order(labels: _Texts, listed: Sequence[str] = ()) -> tuple[_Texts, IntArray]:
    """The different labels, as they are listed or else 1, 2, 10, and each row's number."""
    places = {name: i for i, name in enumerate(listed)}
    return core_labels.numbered(labels, lambda label: (places.get(label, 0), _natural(label)))


def _natural(label: str) -> tuple[bool, float, list[str | float]]:
    """What sorts labels as people do: 1, 2, 10, then plot 2, plot 10."""
    parts = re.split(r"(\d+(?:\.\d+)?)", label)
    return *core_labels.order_of(label)[:2], [float(x) if i % 2 else x for i, x in enumerate(parts)]

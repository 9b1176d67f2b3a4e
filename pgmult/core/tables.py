"""Tables of named columns: read from any data frame, and handed back as one.

Frames of pandas, polars, pyarrow and others go through narwhals; labelled arrays of xarray and
plain mappings from name to column do not need it.

>>> as_columns({"name": ["Ada", "Ben"], "births": [3, 5]}, "table")["births"]
array([3, 5])
"""

import datetime
import fnmatch
import re
import zoneinfo
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, NamedTuple, TypeVar

import numpy as np

from pgmult.core.arguments import as_list, brief
from pgmult.core.labels import Written, is_missing, label_of, plain_label
from pgmult.core.lazy import optional
from pgmult.core.typing import AnyArray, Array, BoolArray, FloatArray, IntArray
from pgmult.core.validate import as_counts, as_finite, as_positive_int

T = TypeVar("T")

_FEW, _MANY = 8, 30  # columns named in an error, and of a table
_YEAR = np.timedelta64(1, "Y")
TRUTH = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
_DIGITS = re.compile(r"\s*[-+]?\d+\.?\d*\s*")
_ROW = re.compile(r"\bat (?:row|position) (\d+)\b(?!, column)")  # in errors
_NO_FILE = "the table"


class Cells(NamedTuple):
    """The cells of a column, as exactly as they were given.

    Attributes
    ----------
    values : array, ``(num_rows,)``
        Of numbers, truth values, strings or dates; of objects, with None where there is no value,
        where several kinds stand together, where whole numbers have gaps or pass 64 bits.
    order : tuple of str, or None
        The labels of a categorical in its order, those that do not occur among them.
    east : int array, ``(num_rows,)``, or None
        Seconds by which each time is ahead of UTC, where its zone is known.
    later : int array, ``(num_rows,)``, or None
        By how many seconds each is later if it is the second time that clocks show it, where the
        zone was given and times do not state theirs.
    is_ordered : bool
        Whether the column is an ordered categorical.
    title : str
        What the file says that the column holds, such as the question of a survey.
    """

    values: AnyArray
    order: tuple[str, ...] | None = None
    east: IntArray | None = None
    later: IntArray | None = None
    is_ordered: bool = False
    title: str = ""

    def take(self, rows: BoolArray | IntArray | slice) -> "Cells":
        """Some of the cells; whole numbers without the gaps between them are numbers again."""
        values = self.values[rows]
        east, later = (None if x is None else x[rows] for x in (self.east, self.later))
        exactly = exact_array(values) if values.dtype.hasobject else values
        return Cells(exactly, self.order, east, later, self.is_ordered, self.title)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ExactTable:
    """Columns by name, cells as they were given. `pgmult.read` makes tables that can do more.

    ``table["year"]`` is a column; ``table[rows]`` are some of the rows, chosen by numbers, a slice
    or a mask: ``table[table["year"] >= 1946]``, ``table[~table.missing("year", "party")]``.

    Attributes
    ----------
    cells : mapping from name to Cells
        Each column exactly, with the order of a categorical.
    source : str
        What to call it in errors.
    lines : int array, ``(num_rows,)``, or None
        Line of the file at which each row begins, or its row in the sheet, where it is one.
    part : str
        "line", or "row" of a sheet.
    """

    cells: Mapping[str, Cells]
    source: str = _NO_FILE
    lines: IntArray | None = None
    part: str = "line"

    @property
    def columns(self) -> Mapping[str, AnyArray]:
        """All columns by name; a missing number is nan or None, a missing string None."""
        return as_columns(self, "table")

    def missing(self, *names: str) -> BoolArray:
        """Where any of these columns has no value, ``(num_rows,)``.

        ``table[~table.missing("year", "party")]`` are the rows of which both are known.
        """
        gaps = np.zeros(len(self), dtype=np.bool_)
        for name in names:
            gaps |= missing_in(self[name])
        return gaps

    def __len__(self) -> int:
        return len(next(iter(self.cells.values())).values)

    def __iter__(self) -> Iterator[str]:
        return iter(self.cells)

    def __getitem__(self, which: object) -> Any:
        if isinstance(which, str):
            return chosen_columns(self.columns, [which], self.source, "column")[which]
        rows = as_rows(which, len(self))
        chosen = Lazily(self.cells, lambda name: self.cells[name].take(rows))
        return replace(self, cells=chosen, lines=None if self.lines is None else self.lines[rows])

    def place(self, row: int) -> str:
        """Say where a row is, in words that follow what is wrong with it."""
        if self.lines is None:
            return f"in row {row + 1:,}"
        return f"in {self.part} {self.lines[row]:,}"

    def __repr__(self) -> str:
        names, size = ", ".join(list(self.cells)[:_MANY]), len(self.cells)
        more = f" and {size - _MANY:,} more" if size > _MANY else ""
        return f"{type(self).__name__}({len(self):,} rows, columns: {names}{more})"


@contextmanager
def rows_in_words(table: object) -> Iterator[None]:
    """Within this context, errors call a row of a file by its line."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if not isinstance(table, ExactTable) or table.source == _NO_FILE:
            raise
        words = _ROW.sub(lambda m: f"{table.place(int(m[1]))} of {table.source}", str(error))
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise (error if words == str(error) else kind(words)) from None


def as_rows(rows: object, count: int) -> IntArray:
    """Numbers of chosen rows, in the order given, from a slice, a mask or numbers."""
    if isinstance(rows, slice):
        return np.arange(count)[rows]
    values = as_list(rows, "rows", "rows of documents")
    if values and all(isinstance(row, bool | np.bool_) for row in values):
        if len(values) != count:
            raise ValueError(f"rows must be {count} truth values, one of each, got {len(values)}")
        return np.flatnonzero(values)
    return np.array([as_positive_int(row, "rows", 0, count - 1) for row in values], dtype=np.int64)


class Lazily(Mapping[str, T]):
    """A mapping whose values are found when they are first asked for: tables can be wide."""

    def __init__(self, names: Iterable[str], find: Callable[[str], T]):
        self._names, self._find = dict.fromkeys(names), find
        self._found: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        if name not in self._found and name in self._names:
            self._found[name] = self._find(name)
        return self._found[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def as_columns(table: object, name: str) -> Mapping[str, Array]:
    """The columns of a table, as arrays of one axis and one length: see `exact_columns`."""
    cells = exact_columns(table, name)
    return Lazily(cells, lambda column: cells[column].values)


def exact_columns(table: Any, name: str, time_zone: str | None = None) -> Mapping[str, Cells]:
    """The columns of a table, nothing of their cells lost.

    Parameters
    ----------
    table : data frame, labelled array, or mapping from name to column
    name : str
        What to call it in errors.
    time_zone : str, optional
        The time zone of the calendar for times that state a zone (default: the column's, which must
        be one), and of times that state none.

    Raises
    ------
    TypeError
        If it is nothing of the kind.
    ValueError
        If columns are of different lengths, names repeat, or a column has times of several zones.
    ImportError
        If it is a data frame and narwhals is missing.
    """
    if hasattr(table, "dims") and hasattr(table, "to_dataframe"):  # xarray's
        if getattr(table, "name", "") is None:
            raise ValueError(f"{name} must have a name, of what it counts: table.rename('count')")
        table = table.to_dataframe().reset_index()
    if isinstance(table, ExactTable):
        return table.cells
    if not isinstance(table, Mapping):
        table = _through_narwhals(table, name)
    columns: dict[str, Cells] = {}
    for key, column in table.items():
        if str(key) in columns:
            raise ValueError(f"{name} must have columns of different names, got {str(key)!r} twice")
        columns[str(key)] = exact(column, f"{key!r} of {name}", time_zone)
    if not columns:
        raise ValueError(f"{name} must have columns, got none")
    shapes = {key: cells.values.shape for key, cells in columns.items()}
    if len({*shapes.values()}) > 1 or any(len(shape) != 1 for shape in shapes.values()):
        raise ValueError(f"columns of {name} must have one axis and one length, got {shapes}")
    return columns


def _through_narwhals(table: Any, name: str) -> dict[str, Any]:
    kinds = "a data frame or a mapping from name to column"
    if isinstance(table, np.ndarray | list | tuple | str | bytes | int | float | type | None):
        raise TypeError(f"{name} must be {kinds}, got {brief(table)}")
    if getattr(getattr(table, "columns", None), "nlevels", 1) > 1:
        got = f"several, such as {tuple(table.columns[0])} (frame.columns.map('_'.join) makes one)"
        raise ValueError(f"{name} must have one name for each column, got {got}")
    names = [str(key) for key in getattr(table, "columns", ())]
    if len(set(names)) < len(names) and not hasattr(table, "column_names"):
        raise ValueError(f"{name} must have columns of different names, got {', '.join(names)}")
    needs = f"{name} is a data frame, not a mapping from name to column, and needs narwhals"
    narwhals = optional("narwhals.stable.v1", needs, "tables")
    try:
        frame = narwhals.from_native(table, eager_only=True)
    except Exception as error:
        raise TypeError(f"{name} must be {kinds}, got {brief(table)}") from error
    return {str(key): frame.get_column(key) for key in frame.columns}  # names may be numbers


def exact(column: object, name: str, time_zone: str | None = None) -> Cells:
    """One column, of any kind of array, list or series, as `exact_columns` has it.

    >>> exact([9007199254740993, None], "'id'").values
    array([9007199254740993, None], dtype=object)
    """
    if isinstance(column, Cells):
        return column
    if isinstance(column, np.ma.MaskedArray) and np.ma.is_masked(column):
        raise ValueError(f"a table must not have masked values, got some in column {name}")
    values, order, east = _of_series(column)
    later = None
    if isinstance(values, np.ndarray) and values.dtype.kind == "O" and values.ndim == 1:
        values = values.tolist()
    if not isinstance(values, np.ndarray):
        values, east = _local_times(list(values), name, time_zone)
        values = exact_array(values)
    if time_zone is not None and east is None and values.dtype.kind == "M":
        east, later = _by_clocks(values, name, time_zone)
    native = column.to_native() if hasattr(column, "to_native") else column
    ordered = getattr(getattr(native, "dtype", None), "ordered", False)
    return Cells(values, order, east, later, order is not None and bool(ordered))


def _of_series(column: Any) -> tuple[Any, tuple[str, ...] | None, IntArray | None]:
    """Cells of a series of pandas, polars or pyarrow, order of its categories, seconds from UTC."""
    if isinstance(column, np.ndarray | list | tuple | range):
        return column, None, None
    try:
        import narwhals.stable.v1 as narwhals

        series = narwhals.from_native(column, series_only=True)
    except (ImportError, TypeError):  # something else that numpy may understand
        categories = getattr(column, "categories", None)
        order = None if categories is None else tuple(label_of(x) for x in categories)
        return np.asarray(column), order, None
    kind = series.dtype
    if isinstance(kind, narwhals.Categorical | narwhals.Enum):
        order = tuple(label_of(label) for label in series.cat.get_categories().to_list())
        of_pandas = hasattr(getattr(series.to_native(), "dtype", None), "categories")
        ordered = of_pandas or isinstance(kind, narwhals.Enum)
        return exact_array(series.to_list()), order if ordered else None, None
    east = None
    if isinstance(kind, narwhals.Datetime) and kind.time_zone is not None:
        in_utc = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        series = series.dt.replace_time_zone(None)
        apart = (series.to_numpy() - in_utc.to_numpy()).astype("timedelta64[s]")
        east = np.where(np.isnat(apart), 0, apart.astype(np.int64))
    has_gap = narwhals.Float64 | narwhals.Float32 | narwhals.Datetime  # a number that is none
    if series.null_count() and not isinstance(kind, has_gap):
        return exact_array(series.to_list()), None, east
    return series.to_numpy(), None, east


def exact_array(cells: Iterable[Any]) -> AnyArray:
    """An array of cells that keeps every digit: of one kind where all are, else of objects."""
    items = list(cells)
    kinds = {*map(type, items)}
    if kinds != {str} and not all(issubclass(kind, Real) for kind in kinds):
        items = [None if is_missing(item) else item for item in items]
        kinds = {*map(type, items)}
    if any(issubclass(kind, float | np.floating) for kind in kinds):
        kinds, items = kinds - {type(None)}, [np.nan if x is None else x for x in items]
    if all(issubclass(kind, bool | np.bool_ | str | np.datetime64) for kind in kinds):
        if len(kinds) <= 1 and not any("\0" in item for item in items if isinstance(item, str)):
            return np.array(items)
    elif all(issubclass(kind, datetime.date) for kind in kinds):
        return np.array(items, dtype="datetime64[us]")
    elif all(issubclass(kind, int | np.integer) and kind is not bool for kind in kinds):
        least, most = min(items), max(items)
        if least >= -(2**63) and most < 2**64 and (least >= 0 or most < 2**63):
            return np.array(items, dtype=np.int64 if most < 2**63 else np.uint64)
    elif all(
        issubclass(kind, int | float | np.integer | np.floating) and kind not in (bool, Written)
        for kind in kinds
    ) and all(isinstance(item, float | np.floating) or abs(item) <= 2**53 for item in items):
        return np.array(items, dtype=np.float64)
    mixed = np.empty(len(items), dtype=object)
    mixed[:] = items
    return mixed


def numbers_of_texts(cells: Sequence[str | None]) -> Array:
    """Numbers as a file writes them: None where there is none, every digit kept.

    Whole numbers stay whole, and strings where they pass 64 bits; where one number is written in
    two ways, 1E5 and 100000, each cell is a `Written` number.
    """
    present = {cell for cell in cells if cell is not None}
    if all(cell.lstrip("+-").isdecimal() for cell in present):
        if any(abs(int(cell)) >= 2**64 for cell in present):
            return exact_array(cells)
        return exact_array([None if cell is None else int(cell) for cell in cells])
    values = {cell: float(cell) for cell in present}
    if len(set(values.values())) < len(set(map(plain_label, values))):
        return exact_array([None if cell is None else Written(cell) for cell in cells])
    return np.array([np.nan if cell is None else values[cell] for cell in cells])


def missing_in(column: Array) -> BoolArray:
    """Where a column has no value, ``(num_rows,)``."""
    if column.dtype.kind in "fM":
        return np.asarray(column != column)
    if column.dtype.kind != "O":
        return np.zeros(len(column), dtype=np.bool_)
    return np.array([is_missing(cell) for cell in column.tolist()], dtype=np.bool_)


def numbers_of(column: Array, name: str) -> FloatArray:
    """A column that is used as numbers, ``(num_rows,)``.

    Raises
    ------
    ValueError
        If a cell is missing, infinite, or no number.
    """
    missing = missing_in(column)
    if missing.any():
        row = int(np.argmax(missing))
        raise ValueError(f"column {name!r} must have a value in every row, got none at row {row}")
    cells = column.tolist() if column.dtype.kind in "OU" else []
    odd = [row for row, cell in enumerate(cells) if not isinstance(cell, Real)]
    if odd:
        row = next((i for i in odd if not _DIGITS.fullmatch(str(cells[i]))), odd[0])
        raise ValueError(f"column {name!r} must hold numbers, got {cells[row]!r} at row {row}")
    numbers = np.array([float(cell) for cell in cells]) if column.dtype.kind == "O" else column
    return as_finite(numbers, f"column {name!r}")


def truth_of(column: AnyArray) -> BoolArray | None:
    """Find which cells say yes, true or 1, in any capitals, where all others say no, false or 0.

    None if there are other words, or none: then it is no column of truth values.
    """
    if missing_in(column).any():
        return None
    plain = column if column.dtype.kind in "biufU" else column.astype(np.str_)
    cells, codes = np.unique(plain, return_inverse=True)
    truths = [TRUTH.get(plain_label(str(cell).casefold())) for cell in cells.tolist()]
    return None if None in truths else np.array(truths, dtype=np.bool_)[codes]


def columns_named(names: Sequence[str], wide: str | Sequence[str]) -> list[str]:
    """Columns named one by one, as ``first:last``, or by a pattern with ``*``.

    Raises
    ------
    ValueError
        If there are fewer than two, or one is named twice.
    """
    columns: list[str] = []
    for word in as_list(wide.split(",") if isinstance(wide, str) else wide, "wide", "columns"):
        first, _, last = word.partition(":") if word not in names else (word, "", "")
        if first in names and last in names:
            columns += names[names.index(first) : names.index(last) + 1]
        elif word in names:
            columns.append(word)
        else:
            columns += [name for name in names if fnmatch.fnmatchcase(name, word) and "*" in word]
    if len(set(columns)) < max(2, len(columns)):
        few = ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")
        wanted = "two different columns or more, such as 'y2000:y2009' or 'y*'"
        raise ValueError(f"wide must name {wanted}, got {wide!r} (the table has {few})")
    return columns


def counts_of(column: Array, name: str) -> IntArray:
    """A column that is used as counts, ``(num_rows,)``.

    Raises
    ------
    ValueError
        If a cell is missing, negative or no whole number, or their sum passes 2**63.
    """
    numbers = column if column.dtype.kind in "iu" else numbers_of(column, name)
    counts = as_counts(numbers, f"column {name!r}")
    if counts.sum(dtype=np.float64) >= 2**63:
        raise ValueError(f"column {name!r} must be counts that add up to less than 2**63")
    return counts


def _local_times(
    cells: list[object], name: str, time_zone: str | None
) -> tuple[list[object], IntArray | None]:
    """Times with zones as the calendar of their one zone, or of the zone that is asked for.

    Beside them by how many seconds they are ahead of UTC, if that is known.
    """
    times = {i: cell for i, cell in enumerate(cells) if isinstance(cell, datetime.datetime)}
    zones = {time.tzinfo for time in times.values()}
    if zones <= {None}:
        return cells, None
    if time_zone is not None:
        zone = zone_of(time_zone)
        if None in zones:
            raise ValueError(f"column {name} has times with and without a zone: give all one")
        times = {i: time.astimezone(zone) for i, time in times.items()}
    elif len(zones) > 1 and (None in zones or len({t.utcoffset() for t in times.values()}) > 1):
        listed = ", ".join(sorted(map(str, zones))[:_FEW])
        hint = "say whose calendar counts: pgmult.read(table, time_zone='Europe/Berlin')"
        raise ValueError(f"column {name} must have times of one zone, got {listed} ({hint})")
    east, local = np.zeros(len(cells), dtype=np.int64), list(cells)
    for i, time in times.items():
        ahead, local[i] = time.utcoffset(), time.replace(tzinfo=None)
        east[i] = 0 if ahead is None else round(ahead.total_seconds())
    return local, east


def _by_clocks(times: Array, name: str, time_zone: str) -> tuple[IntArray | None, IntArray | None]:
    """Seconds by which times of a zone's clocks are ahead of UTC, and later the second time.

    Days, which have no hours, are left alone.

    Raises
    ------
    ValueError
        If clocks never show one of the times.
    """
    zone, minutes = zone_of(time_zone), times.astype("datetime64[m]")
    if (np.isnat(times) | (times == times.astype("datetime64[D]"))).all():
        return None, None
    shown, which = np.unique(minutes, return_inverse=True)
    east = np.zeros((2, len(shown)), dtype=np.int64)
    for i, at in enumerate(shown.tolist()):
        if at is not None:
            both = (at.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1))
            east[:, i] = [round(ahead.total_seconds()) for ahead in both]
    if (never := east[1] > east[0]).any():
        hint = "are the times in UTC, or without summer time?"
        raise ValueError(f"clocks of {time_zone} skip {shown[never][0]} of column {name} ({hint})")
    return east[0][which], (east[0] - east[1])[which]


def zone_of(name: str) -> datetime.tzinfo:
    """Find a time zone by its name."""
    try:
        return zoneinfo.ZoneInfo(name)
    except (TypeError, ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        wanted = "the name of a zone, such as 'Europe/Berlin'"
        raise ValueError(f"time_zone must be {wanted}, got {brief(name)}") from None


def chosen_columns(
    columns: Mapping[str, T], chosen: Sequence[str], table: str, argument: str
) -> dict[str, T]:
    """Some columns of a table, which must be there and must not repeat.

    Raises
    ------
    ValueError
        That names the `argument` which chose them and the columns that there are.
    """
    for place, column in enumerate(chosen):
        if not isinstance(column, str):
            raise TypeError(f"{argument} must name a column, got {brief(column)}")
        if column not in columns:
            listed = ", ".join(map(repr, list(columns)[:_FEW]))
            has = listed if len(columns) <= _FEW else f"{listed} and {len(columns) - _FEW} more"
            got = f"{column!r} (it has {has})"
            raise ValueError(f"{argument} must name columns of {table}, got {got}")
        if column in chosen[:place]:
            raise ValueError(f"{argument} must be different columns, got {column!r} twice")
    return {column: columns[column] for column in chosen}


def one_role_each(columns: Mapping[str, str | None]) -> None:
    """Refuse a column that is named for two things.

    Parameters
    ----------
    columns : mapping from an argument to the column that it names, or None

    Raises
    ------
    ValueError
        With both arguments and the column.
    """
    roles: dict[str, str] = {}
    for argument, column in columns.items():
        if isinstance(column, str) and roles.setdefault(column, argument) != argument:
            wanted = f"another column than {roles[column]}"
            raise ValueError(f"{argument} must be {wanted}, got {column!r} for both")


def as_years(dates: Array) -> FloatArray:
    """Dates as years: the start of 1999 is 1999.0, the middle of its July about 1999.54.

    Parameters
    ----------
    dates : datetime64 array, ``(n,)``

    Raises
    ------
    ValueError
        If one is not a time.
    """
    if np.isnat(dates).any():
        raise ValueError(f"dates must be there, got NaT at row {int(np.argmax(np.isnat(dates)))}")
    years = dates.astype("datetime64[Y]")
    starts, ends = (y.astype("datetime64[us]") for y in (years, years + _YEAR))
    into = (dates.astype("datetime64[us]") - starts) / (ends - starts)
    return np.asarray(1970.0 + years.astype(np.int64) + into, dtype=np.float64)


def as_dates(years: FloatArray) -> AnyArray:
    """The dates that `as_years` made years of, to the second."""
    floors = np.floor(years)
    starts = (floors.astype(np.int64) - 1970).astype("datetime64[Y]")
    first, last = (y.astype("datetime64[s]").astype(np.int64) for y in (starts, starts + _YEAR))
    seconds = first + np.rint((years - floors) * (last - first)).astype(np.int64)
    return seconds.astype("datetime64[s]")


def date_text(date: np.datetime64) -> str:
    """A date as tables and figures have it: no midnight, and no day where years begin.

    >>> date_text(np.datetime64("2024-03-01T00:00:00")), date_text(np.datetime64("2024-01-01", "Y"))
    ('2024-03-01', '2024')
    """
    return str(date).removesuffix("T00:00:00")

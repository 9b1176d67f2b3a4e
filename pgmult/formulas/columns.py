"""The columns that a design is made of: numbers, dates, or labels by their numbers.

A date is the number of days since the first one of the rows that the design was made of, with
fractions where there are times of day.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmult.core import tables
from pgmult.core.arguments import as_strings, brief
from pgmult.core.labels import find_labels, label_of, labels_of, order_of, warn_of_look_alikes
from pgmult.core.tables import Cells, exact, numbers_of
from pgmult.core.typing import Array, ArrayLike, FloatArray, IntArray
from pgmult.formulas.functions import CALENDAR, NAMED

NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
NUMBER_WITH_COMMAS = re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?|[-+]?\d+,\d+")
_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?")
_ASKED = re.compile(r"(\w+)\((?:`([^`]+)`|([^\W\d][\w.]*))\)")  # of a calendar
_DAY = 86_400_000_000  # microseconds
_FEW_LABELS = 4  # numbers among labels: so many can be labels, such as grades
_MANY_LABELS = 20


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The user's columns as plain arrays.

    Attributes
    ----------
    names : str array, ``(num_columns,)``
    values : array, ``(num_rows, num_columns)``
        The number itself, the number of the label, or the days since the column's origin.
    num_levels : int array, ``(num_columns,)``
        How many labels a column has; 0 for numbers.
    levels : str array, ``(num_columns, max_levels)``
        The labels of each column, the reference first.
    origins : array, ``(num_columns,)``, or None
        The day, since 1970, from which a column of dates counts; nan for other columns. None where
        no column is one.
    """

    names: NDArray[np.str_]
    values: FloatArray
    num_levels: IntArray
    levels: NDArray[np.str_]
    origins: FloatArray | None = None

    def origin_of(self, column: int) -> float | None:
        """The day, since 1970, from which a column of dates counts; None for other columns."""
        if self.origins is None or np.isnan(self.origins[column]):
            return None
        return float(self.origins[column])

    def cells(self, column: int, values: ArrayLike | None = None) -> NDArray[Any]:
        """Cells of one column as they were given: numbers, dates or labels.

        Parameters
        ----------
        values : array, ``(num_cells,)``, optional
            As in `values`, of which they are all if it is left out.
        """
        numbers = np.asarray(self.values[:, column] if values is None else values, dtype=np.float64)
        if levels := self.levels_of(column):
            return np.asarray(levels)[numbers.astype(np.int64)]
        if (origin := self.origin_of(column)) is None:
            return numbers
        thousandths = np.rint(numbers * (_DAY / 1000)).astype(np.int64)
        return plain_dates((thousandths + int(origin) * (_DAY // 1000)).astype("datetime64[ms]"))

    def days_of(self, column: int, cells: ArrayLike) -> FloatArray:
        """Dates as days since the origin of a column of dates."""
        name, origin = str(self.names[column]), int(self.origin_of(column) or 0.0)
        return np.asarray((_times_of(exact(cells, repr(name)).values, name) - origin * _DAY) / _DAY)

    def levels_of(self, column: int) -> list[str]:
        """Labels of one column; none for numbers."""
        return [str(level) for level in self.levels[column, : self.num_levels[column]]]

    def place(self, name: str) -> int:
        """The number of the column of this name."""
        return int(np.flatnonzero(self.names == name)[0])

    def take(self, rows: IntArray | slice) -> "Columns":
        """Some of the rows."""
        return replace(self, values=self.values[rows])


def as_mapping(covariates: object, names: Sequence[str] | None) -> Mapping[str, Any]:
    """Columns by name, from a table, a mapping or a matrix; a mapping may hold single values."""
    if isinstance(covariates, Mapping):
        if isinstance(covariates, tables.Lazily):
            return covariates
        columns = {str(name): column for name, column in covariates.items()}
        if len(columns) < len(covariates):
            listed = ", ".join(map(str, covariates))
            raise ValueError(f"covariates must have columns of different names, got {listed}")
        return columns
    if isinstance(covariates, tables.ExactTable) or hasattr(covariates, "columns"):
        return tables.exact_columns(covariates, "covariates")
    try:
        matrix = np.asanyarray(covariates)
    except ValueError as error:
        raise ValueError(f"covariates must be columns or a matrix: {error}") from None
    if matrix.ndim != 2:
        what = "a mapping of columns, a DataFrame or a matrix (documents, covariates)"
        got = f"{type(covariates).__name__} with shape {matrix.shape}"
        raise ValueError(f"covariates must be {what}, got {got}")
    width = matrix.shape[1]
    names = [f"x{j}" for j in range(width)] if names is None else as_strings(names, "names")
    if len(names) != width or len(set(names)) < len(names):
        listed = f"each with its own name (names: {', '.join(names)})"
        raise ValueError(f"covariates must have {len(names)} columns, {listed}, got {width}")
    return dict(zip(names, matrix.T, strict=True))


def num_rows_of(table: Mapping[str, object], names: Iterable[str], at_least: int = 1) -> int:
    """Rows of those columns of these names that are there; single values serve all rows."""
    columns = [table[name] for name in names if name in table]
    sizes = [np.size(_values(column)) for column in columns if not _is_single(column)]
    return max(sizes, default=at_least)


def _is_single(column: Any) -> bool:
    return not isinstance(column, Cells) and np.ndim(column) == 0


def _values(column: object) -> Any:
    return column.values if isinstance(column, Cells) else column


def source_of(name: str) -> str:
    """The column that a grouping is made of: date for ``weekday(date)``, else the name itself."""
    asked = _ASKED.fullmatch(name)
    return asked[2] or asked[3] if asked and asked[1] in CALENDAR else name


def _asked(function: str, source: str, dates: Array) -> Cells:
    """What a calendar says of dates, as labels."""
    if not _are_dates(dates):
        raise ValueError(f"{function}() takes a column of dates (1999-12-31), and {source} is none")
    values = CALENDAR[function](dates.astype("datetime64[ms]"))
    if function in NAMED:
        return Cells(np.array(NAMED[function])[values.astype(np.int64) - 1], NAMED[function])
    return Cells(np.array(list(map(label_of, values.tolist())), dtype=np.str_))


def cells_of_rows(table: Mapping[str, object], name: str, num_rows: int) -> Cells:
    """The cells of a column, one for each row; of ``weekday(date)`` what dates are.

    Raises
    ------
    ValueError
        If the column is not there or has another length, or a cell has no value.
    """
    if name not in table and (source := source_of(name)) != name:
        dates = cells_of_rows(table, source, num_rows).values
        return _asked(name.partition("(")[0], source, dates)
    if name not in table:
        raise ValueError(f"covariates must have a column {name!r}, got {', '.join(table)}")
    column = [table[name]] * num_rows if _is_single(table[name]) else table[name]
    if (shape := np.shape(_values(column))) != (num_rows,):
        each = f"one value for each of the {num_rows} rows (documents of the corpus)"
        raise ValueError(f"column {name!r} of covariates must have {each}, got shape {shape}")
    if isinstance(column, np.ma.MaskedArray):
        column = [None if x is np.ma.masked else x for x in column]
    cells = exact(column, repr(name))
    if (missing := tables.missing_in(cells.values)).any():
        hint = "drop such rows, by --drop-incomplete, or fill in a value and add a column for it"
        got = f"a missing value at row {int(np.argmax(missing))} ({hint})"
        raise ValueError(f"column {name!r} has {got}")
    return cells


def label_or_quantile_values(cells: ArrayLike, levels: Sequence[str] = ()) -> list[Any]:
    """All labels of a column, or the 10, 50 and 90 % quantiles of its numbers or dates.

    Labels stand in the order of `levels`, of which they are, if there are any.
    """
    values = np.asarray(cells)
    if levels:
        present = set(values.tolist())
        return [level for level in levels if level in present]
    if values.dtype.kind in "fM":
        values = quantiles(values, [0.1, 0.5, 0.9], method="nearest")
    return listed(np.unique(values))


def listed(values: Array) -> list[object]:
    """Values one by one; dates stay those of numpy, which figures put on an axis."""
    return list(values) if values.dtype.kind == "M" else list(values.tolist())


def quantiles(column: NDArray[Any], at: Any, method: Any = "linear") -> NDArray[Any]:
    """Quantiles of numbers; of dates those that are there, whose months and weekdays are known."""
    if column.dtype.kind != "M":
        return np.asarray(np.quantile(column, at, method=method))
    places = np.quantile(np.arange(len(column)), at, method="nearest")
    return np.asarray(np.sort(column)[places.astype(np.int64)])


def days_or_numbers(column: object) -> FloatArray:
    """Return numbers as they are, and dates as days since 1970."""
    cells = exact(column, "to move").values
    if _are_dates(cells):
        return np.asarray(cells.astype("datetime64[us]").astype(np.int64) / _DAY)
    return np.asarray(cells, dtype=np.float64)


def moved(column: Any, step: float, above: bool, ends: tuple[float, float]) -> NDArray[Any]:
    """Return one end of a step about each cell; the step stays between the ends of the data.

    Parameters
    ----------
    column : array of numbers or dates
    step : float
        Width, of dates in days. Near an end of the data the step moves, and keeps its width.
    above : bool
        Whether the upper end is returned.
    ends : pair of float
        The smallest and the largest that there may be, as `days_or_numbers` has them.
    """
    low, high = ends
    lower = np.clip(days_or_numbers(column) - 0.5 * step, low, max(low, high - step))
    at = np.asarray(np.minimum(lower + step, high) if above else lower)
    if not _are_dates(exact(column, "to move").values):
        return at
    return np.round(at * _DAY).astype(np.int64).astype("datetime64[us]")


def named_column(columns: Mapping[str, Cells], name: object, what: str) -> Cells:
    """A column that is there; `what` asked for it, for errors."""
    if not isinstance(name, str) or name not in columns:
        has = ", ".join(columns)
        raise ValueError(f"{what} must name a column of the table, got {brief(name)}; it has {has}")
    return columns[name]


def table_column(columns: Mapping[str, Cells], name: Any, what: str) -> NDArray[Any]:
    """A column that is there and has no missing values; `what` asked for it, for errors."""
    return cells_of_rows(columns, name, len(named_column(columns, name, what).values)).values


def read_columns(
    table: Mapping[str, object],
    names: Sequence[str],
    num_rows: int,
    *,
    like: Columns | None = None,
    as_labels: Collection[str] = (),
) -> Columns:
    """Checked columns, coded as others are.

    Parameters
    ----------
    table : mapping from name to column
    names : sequence of str
    num_rows : int
    like : Columns, optional
        With the same names: labels must be among theirs.
    as_labels : collection of str
        Columns whose numbers are labels.
    """
    values, levels, origins = [], [], np.full(len(names), np.nan)
    for j, name in enumerate(names):
        cells = cells_of_rows(table, name, num_rows)
        labels: list[str] = []
        are_dates = cells.order is None and len(cells.values) > 0 and _are_dates(cells.values)
        if like is not None and (origin := like.origin_of(j)) is not None:
            origins[j], column = origin, like.days_of(j, cells.values)
        elif like is None and name not in as_labels and are_dates:
            times = _times_of(cells.values, name)
            origins[j] = times.min() // _DAY
            column = (times - int(origins[j]) * _DAY) / _DAY
        elif like is None:
            column, labels = _read(name, cells, name in as_labels)
        elif labels := like.levels_of(j):
            column = find_labels(labels, cells.values, name).astype(np.float64)
        else:
            column = _numbers_again(name, cells)
        values.append(column)
        levels.append(labels)
    sizes = np.array([len(labels) for labels in levels], dtype=np.int64)
    width = int(sizes.max(initial=0))
    padded = [labels + [""] * (width - len(labels)) for labels in levels]
    return Columns(
        np.array(names, dtype=np.str_), np.array(values).reshape(len(names), num_rows).T.copy(),
        sizes, np.array(padded, dtype=np.str_).reshape(len(names), width),
        None if np.isnan(origins).all() else origins,
    )  # fmt: skip


def _times_of(cells: Array, name: str) -> IntArray:
    """Dates as microseconds since 1970.

    Raises
    ------
    ValueError
        If a cell is no date.
    """
    if not _are_dates(cells):
        row = next(i for i in range(len(cells)) if not _are_dates(cells[i : i + 1]))
        got = f"{label_of(cells[row])!r} at row {row}"
        raise ValueError(f"column {name!r} must hold dates (1999-12-31), as before, got {got}")
    return cells.astype("datetime64[us]").astype(np.int64)


def _are_dates(cells: Array) -> bool:
    """Whether all cells are dates, or write one as ISO 8601 does."""
    if cells.dtype.kind != "U":
        return cells.dtype.kind == "M"
    if not len(cells) or not all(map(_DATE.fullmatch, cells.tolist())):
        return False
    with suppress(ValueError):  # the 31st of June
        return bool(len(cells.astype("datetime64[us]")))
    return False


def plain_dates(cells: Array) -> Array:
    """Dates, or texts that write them, in days, seconds or milliseconds; other cells as they are.

    So a date has one label, however it is written.
    """
    if not _are_dates(cells):
        return cells
    dates = cells.astype("datetime64[ms]")
    rough = (dates.astype(f"datetime64[{unit}]") for unit in ("D", "s"))
    return next((np.asarray(one) for one in rough if (one == dates).all()), dates)


def _read(name: str, cells: Cells, as_labels: bool) -> tuple[FloatArray, list[str]]:
    """Numbers, or numbers of labels and the labels: in order, or that of a categorical."""
    is_plain = not as_labels and cells.order is None
    if cells.values.dtype.kind != "M" and _are_numbers(name, cells) and is_plain:
        return numbers_of(cells.values, name), []
    texts = labels_of(cells.values, name).tolist()
    present = set(texts)
    order = sorted(present, key=order_of) if cells.order is None else cells.order
    levels = [level for level in order if level in present]
    if is_plain:
        _refuse_misread(name, texts, present)
    warn_of_look_alikes(levels, f"column {name!r}")
    place = {level: i for i, level in enumerate(levels)}
    return np.array([place[text] for text in texts], dtype=np.float64), levels


def _refuse_misread(name: str, texts: Sequence[str], present: Collection[str]) -> None:
    """Raise ValueError where labels are numbers but for a few cells, or nearly one a row."""
    odd = {text for text in present if not NUMBER.fullmatch(text)}
    marked = [text for text in odd if NUMBER_WITH_COMMAS.fullmatch(text)]
    rows = [row for row, text in enumerate(texts) if text in odd]
    as_labels = f"C({name}) takes its cells for labels"
    if len(present) - len(odd) > _FEW_LABELS or (marked and len(present) > _FEW_LABELS):
        must = f"column {name!r} must hold numbers or labels, got"
        if marked and len(marked) == len(odd):
            hint = f"write 66565 or 3.14; {as_labels}"
            raise ValueError(f"{must} {marked[0]!r}, a number with a comma ({hint})")
        if rows and 4 * len(rows) <= len(texts):
            hint = f"write a number there, or nothing: --na-values; {as_labels}"
            raise ValueError(f"{must} {texts[rows[0]]!r} at row {rows[0]} among numbers ({hint})")
    if len(present) > _MANY_LABELS and 2 * len(present) > len(texts):
        hint = f"leave it out; (1 | {name}) pools what rows share; {as_labels}"
        got = f"got {len(present)} labels in {len(texts)} rows, such as {texts[0]!r} ({hint})"
        raise ValueError(f"column {name!r} must not have a label of its own in most rows, {got}")


def _numbers_again(name: str, cells: Cells) -> FloatArray:
    if _are_numbers(name, cells):
        return numbers_of(cells.values, name)
    texts = labels_of(cells.values, name).tolist()
    row = next((i for i, text in enumerate(texts) if not NUMBER.fullmatch(text)), 0)
    got = f"{texts[row]!r} at row {row}"
    raise ValueError(f"column {name!r} must hold numbers, as before, got {got}")


def _are_numbers(name: str, cells: Cells) -> bool:
    """Whether cells are numbers rather than labels; nothing else is a covariate."""
    kind = cells.values.dtype.kind
    if kind in "iuf" or (kind == "O" and not len(cells.values)):
        return True
    if kind in "bU":
        return False
    kinds = {type(cell) for cell in cells.values.tolist()} if kind == "O" else set()
    are_labels = [issubclass(one, str | bool) for one in kinds]
    are_numbers = [issubclass(one, int | float) and one is not bool for one in kinds]
    if kinds and (all(are_numbers) or all(are_labels)):
        return all(are_numbers)
    if any(issubclass(one, str) for one in kinds):
        raise TypeError(f"column {name!r} must hold numbers or labels, it mixes the two")
    type_name = next((one.__name__ for one in kinds), str(cells.values.dtype))
    rows = " (frame.explode(column) makes a row of each)" if type_name == "list" else ""
    raise TypeError(f"column {name!r} must hold numbers, dates or labels, got {type_name}{rows}")


def labels_only(name: str, cells: Cells) -> NDArray[np.str_]:
    """A column of labels; numbers are refused."""
    if cells.order is None and (cells.values.dtype.kind == "M" or _are_numbers(name, cells)):
        hint = "cut them into labels, such as decades, or turn codes into strings"
        raise TypeError(f"column {name!r} must hold labels, got numbers or dates ({hint})")
    return cells.values

"""Columns of a table in a file, by name: what texts, tidy counts and sequences come from.

What a column is follows from its cells alone: numbers or dates where every cell that holds a value
is one, and text otherwise; 007 is text, and so are whole numbers that pass 64 bits. No digit is
lost: whole numbers stay whole where cells are empty, and where one number is written in two ways,
1E5 and 100000, each cell remembers its own (`pgmult.core.labels.Written`).
"""

import csv
import datetime
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmult.core.arguments import as_strings, brief
from pgmult.core.labels import label_of, plain_label
from pgmult.core.tables import Cells, Lazily, exact, exact_array, numbers_of_texts
from pgmult.datasets.files import TABLES, Meter, each_line, lines_of, suffix_of

_NUMBER = re.compile(r"[+-]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?")
_SHOWN = 30  # columns named in an error
_CSV = (".csv", ".tsv")
_DATE = re.compile(r"\d{4}-\d\d(-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d(:?\d\d)?)?)?)?")

NA_VALUES = ("", "NA")
"""What a cell reads that holds no value, in every reader that takes ``na_values``."""


def typed(
    cells: Sequence[str | None], name: str, time_zone: str | None = None, numbers: bool = True
) -> NDArray[Any]:
    """A column of a file as numbers or dates where all of its cells are, else as strings.

    Parameters
    ----------
    cells : sequence of str, None where there is no value
    name : str
        The column, for errors.
    time_zone : str, optional
        As in `pgmult.read`.
    numbers : bool
        Whether strings can be numbers; where they have quotes, as in JSON, they are none.

    Returns
    -------
    array
        Of objects, with None, where whole numbers or strings are missing; missing dates are NaT.

    Examples
    --------
    >>> typed(["1", "2"], "x"), typed(["1", None], "x"), typed(["1", "x"], "x")
    (array([1, 2]), array([1, None], dtype=object), array(['1', 'x'], dtype='<U1'))
    """
    return _typed(cells, name, time_zone, numbers).values


def _typed(
    cells: Sequence[str | None], name: str, time_zone: str | None = None, numbers: bool = True
) -> Cells:
    """Make cells of a column as `typed` does, with the order and zone that `Cells` keeps."""
    present = [cell for cell in cells if cell is not None]
    if not present:
        return Cells(np.array(cells, dtype=object))
    if numbers and all(_NUMBER.fullmatch(cell) for cell in present):
        return Cells(numbers_of_texts(cells))
    if all(_DATE.fullmatch(cell) for cell in present):
        try:
            times = [None if x is None else datetime.datetime.fromisoformat(_day(x)) for x in cells]
        except ValueError:  # the 31st of June
            return Cells(exact_array(cells))
        dates = exact(times, repr(name), time_zone)
        return dates._replace(values=dates.values.astype("datetime64[s]"))
    return Cells(exact_array(cells))


def _day(text: str) -> str:
    """A date in full: 1999-12 becomes 1999-12-01."""
    return f"{text}-01" if len(text) == len("1999-12") else text


def is_number_or_date(cell: str) -> bool:
    """Whether a cell of a table can be of a column of numbers or of dates."""
    return typed([cell], "").dtype.kind not in "UO"


def columns_of_file(
    path: Path,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    na_values: Sequence[str] = NA_VALUES,
    time_zone: str | None = None,
) -> Mapping[str, Cells]:
    """Columns of a table in a file, each made when it is first asked for: see `pgmult.read`."""
    suffix = _kind_of(path, delimiter)
    no_value = frozenset(as_strings(na_values, "na_values"))
    of_csv = suffix in _CSV
    if suffix == ".parquet":
        with _parquet(path) as file:
            table = file.read()
        names, num_rows = table.column_names, table.num_rows
    elif not of_csv:
        columns = _json_columns(each_line(path, encoding, newline="\n"), path, no_value)
        names, num_rows = list(columns), len(next(iter(columns.values()), ()))
    else:
        names, *rows = _csv_rows(path, delimiter, encoding)
        places, num_rows = {name: j for j, name in enumerate(names)}, len(rows)
    if not num_rows:
        raise ValueError(f"{path}: the table has no rows")

    def column(name: str) -> Cells:
        if suffix == ".parquet":
            cells = _of_arrow(table.column(name))
        elif of_csv:
            j = places[name]
            cells = [None if row[j] in no_value else row[j] for row in rows]
        else:
            cells = columns[name]
        if suffix != ".parquet" and all(isinstance(cell, str) or cell is None for cell in cells):
            cells = _typed(cells, name, time_zone, of_csv)
        return exact(cells, f"{name!r} of {path}", time_zone)

    return Lazily(names, column)


def _kind_of(path: Path, delimiter: Any) -> str:
    """The suffix of a table's file."""
    if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1):
        raise ValueError(f"delimiter must be one character, got {brief(delimiter)}")
    suffix = suffix_of(path)
    if suffix not in TABLES:
        raise ValueError(
            f"path must end in {', '.join(TABLES)}, which are tables, got {str(path)!r}"
        )
    return suffix


def cells_of_file(
    path: Path,
    names: Sequence[str],
    delimiter: Any = None,
    encoding: str = "utf-8",
    na_values: Sequence[str] = NA_VALUES,
    meter: Meter | None = None,
) -> Iterator[tuple[Any, ...]]:
    """Cells of some columns, a row at a time: None where there is no value.

    Raises
    ------
    ValueError
        If a column is not there, or the table has no rows.
    """
    suffix = _kind_of(path, delimiter)
    if suffix == ".parquet":
        rows, columns = _parquet_cells(path, names, meter)
    elif suffix in (".jsonl", ".ndjson"):
        columns = {}  # until all rows are read
        rows = _json_cells(
            each_line(path, encoding, newline="\n", meter=meter), path, names, columns
        )
    else:
        table = _csv_rows(path, delimiter, encoding, meter)
        columns = dict.fromkeys(next(table))
        rows = _csv_cells(table, names, columns, frozenset(as_strings(na_values, "na_values")))
    if columns:
        _check_there(path, names, columns, delimiter)
    empty = True
    for cells in rows:
        empty = False
        yield cells
    if empty:
        raise ValueError(f"{path}: the table has no rows")
    _check_there(path, names, columns, delimiter)


def _check_there(path: Path, names: Sequence[str], columns: Any, delimiter: str | None) -> None:
    unknown = [name for name in names if name not in columns]
    if unknown:
        split = "" if delimiter is None else f" with delimiter {delimiter!r}"
        raise ValueError(
            f"{path}: the table has no column {unknown[0]!r} among {list(columns)[:_SHOWN]}{split}"
        )


def _up_to(lines: Iterator[str], characters: int) -> list[str]:
    first: list[str] = []
    while sum(map(len, first)) < characters and (line := next(lines, "")):
        first.append(line)
    return first


def _csv_cells(
    rows: Iterator[list[str]], names: Sequence[str], columns: Any, no_value: frozenset[str]
) -> Iterator[tuple[Any, ...]]:
    header = list(columns)
    places = [header.index(name) for name in names if name in columns]
    for row in rows:
        yield tuple(None if row[j] in no_value else row[j] for j in places)


def _json_cells(
    lines: Iterable[str], path: Path, names: Sequence[str], columns: dict[str, None]
) -> Iterator[tuple[Any, ...]]:
    for row in _json_rows(lines, path):
        columns |= dict.fromkeys(row)
        yield tuple(map(row.get, names))


def _parquet(path: Path) -> Any:
    """An open file."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise ImportError(
            f"{path} needs pyarrow to be read: pip install pyarrow (or save it as .csv)"
        ) from None
    try:
        return parquet.ParquetFile(path)
    except OSError:
        raise
    except Exception as error:
        raise ValueError(f"{path}: not a Parquet file ({' '.join(str(error).split())})") from None


def _parquet_cells(
    path: Path, names: Sequence[str], meter: Meter | None
) -> tuple[Iterator[tuple[Any, ...]], dict[str, None]]:
    file = _parquet(path)
    columns = dict.fromkeys(file.schema_arrow.names)

    def cells() -> Iterator[tuple[Any, ...]]:
        with file:
            read = 0
            for batch in file.iter_batches(columns=list(names)):
                read += batch.num_rows
                if meter is not None:
                    meter.done = meter.total * read // file.metadata.num_rows
                yield from zip(*(batch.column(name).to_pylist() for name in names), strict=True)

    return cells(), columns


def _of_arrow(column: Any) -> Any:
    """Dates without a zone as an array, anything else as a list."""
    from pyarrow import types

    plain = types.is_temporal(column.type) and getattr(column.type, "tz", None) is None
    return column.to_numpy() if plain else column.to_pylist()


def labels_of_cells(kinds: set[str]) -> Callable[[Any], str]:
    """What makes labels of a column's cells, given `kind_of_cell` of all of them."""
    if kinds == {"number cell"}:
        return plain_label
    if len(kinds) == 1 or kinds <= {"number cell", "str"} or kinds <= {"int", "float"}:
        return label_of
    return lambda cell: cell if isinstance(cell, str) else json.dumps(cell)


def kind_of_cell(cell: Any, *, of_csv: bool) -> str:
    """What a column can be that has this cell: see `typed` and `_one_kind`."""
    return "number cell" if of_csv and _NUMBER.fullmatch(cell) else type(cell).__name__


def _delimiter(text: str, path: Path) -> str:
    """What separates the names in the header row."""
    header = lines_of(re.sub(r'"[^"]*"', "", text[:100_000]))[:1]
    marks = [mark for mark in (",", ";", "\t") if mark in "".join(header)]
    if len(marks) > 1:
        raise ValueError(
            f"{path}, line 1: {' and '.join(map(repr, marks))} stand in the header; say which one"
            f" separates cells, delimiter={marks[0]!r} or another"
        )
    return marks[0] if marks else ","


def _csv_rows(
    path: Path, delimiter: str | None, encoding: str, meter: Meter | None = None
) -> Iterator[list[str]]:
    """The header, then the rows; `given` is the user's delimiter."""
    lines = each_line(path, encoding, newline="", meter=meter)
    first = _up_to(lines, 100_000)
    mark = delimiter or ("\t" if suffix_of(path) == ".tsv" else _delimiter("".join(first), path))
    lines = chain(first, lines)
    if first and first[0].endswith("\n"):
        lines = _ended_by_feeds(lines)
    try:
        yield from _split_rows(lines, path, mark)
    except ValueError as error:
        if delimiter is None:
            raise
        raise ValueError(f"{error} (with delimiter={delimiter!r})") from None


def _ended_by_feeds(lines: Iterable[str]) -> Iterator[str]:
    """Lines of a file whose lines end in a line feed: outside quotes, a return alone is a blank."""
    begun, in_quotes = "", False
    for line in lines:
        in_quotes ^= line.count('"') % 2 == 1
        if line.endswith("\r") and not in_quotes:
            begun += f"{line[:-1]} "
        else:
            yield begun + line
            begun = ""
    if begun:
        yield begun


def _split_rows(lines: Iterable[str], path: Path, delimiter: str) -> Iterator[list[str]]:
    usual_limit = csv.field_size_limit(2**31 - 1)  # a cell can hold a whole book
    try:
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        header = [name.strip() for name in next(reader, [])]
        if not header:
            raise ValueError(f"{path}: the file is empty")
        if len(set(header)) < len(header):
            twice = next(name for name in header if header.count(name) > 1)
            raise ValueError(f"{path}, line 1: the header has {twice!r} more than once")
        yield header
        for row in reader:
            if row and len(row) != len(header):
                raise ValueError(
                    f"{path}, line {reader.line_num}: {len(row)} cells under a header of"
                    f" {len(header)} (a cell with {delimiter!r} in it needs quotes)"
                )
            if row:
                yield [cell.strip() for cell in row]
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num}: {error}") from None
    except (TypeError, ValueError) as error:  # csv refuses some characters
        if str(error).startswith(str(path)):
            raise
        raise ValueError(f"delimiter must separate cells, got {delimiter!r}: {error}") from None
    finally:
        csv.field_size_limit(usual_limit)


def _json_columns(
    lines: Iterable[str], path: Path, no_value: frozenset[str]
) -> dict[str, list[Any]]:
    rows = list(_json_rows(lines, path))
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: _one_kind([row.get(name) for row in rows], no_value) for name in names}


def _json_rows(lines: Iterable[str], path: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        place = f"{path}, line {number}"
        try:
            row: Any = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"{place}: not JSON ({error.msg}, column {error.colno})") from None
        except (ValueError, RecursionError) as error:  # a number or a nesting without end
            raise ValueError(f"{place}: not JSON that can be read ({error})") from None
        if not isinstance(row, dict):
            raise ValueError(f"{place}: expected an object, got {type(row).__name__}")
        yield row


def _one_kind(items: list[Any], no_value: frozenset[str]) -> list[Any]:
    """Numbers or truth values as they are; anything else as strings, nested values as JSON."""
    items = [None if isinstance(item, str) and item in no_value else item for item in items]
    present = [item for item in items if item is not None]
    of_one_kind = len({isinstance(item, bool) for item in present}) == 1
    if of_one_kind and all(isinstance(item, int | float) for item in present):
        return items
    return [x if x is None or isinstance(x, str) else json.dumps(x) for x in items]

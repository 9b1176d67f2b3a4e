"""Columns of a table in a file, by name: what texts, tidy counts and sequences come from.

What a column is follows from its cells alone: numbers or dates where every cell that holds a value
is one, and text otherwise; 007 is text.
"""

import csv
import io
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmult.core.arguments import as_path, as_strings, brief
from pgmult.datasets.files import TABLES, Meter, each_line, lines_of, read_file, suffix_of

__all__ = [
    "cells_of_file",
    "columns_of_file",
    "is_number_or_date",
    "kind_of_cell",
    "labels_of_cells",
    "read_columns",
]

_NUMBER = re.compile(r"[+-]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?")
_DIGITS = 19  # from so many on, a number may not be an integer of 64 bits
_SHOWN = 30  # columns named in an error
_DATE = re.compile(r"\d{4}-\d\d(-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)?)?")


def read_columns(
    path: str | os.PathLike[str], *, delimiter: str | None = None, encoding: str = "utf-8"
) -> dict[str, NDArray[Any]]:
    """Every column of a table, by its name: a mapping that `from_long` takes.

    Parameters
    ----------
    path : path
        ``.csv`` or ``.tsv`` with a header row, or ``.jsonl`` or ``.ndjson`` with an object a line,
        also compressed, ``.gz``; ``.parquet``, if pyarrow is installed.
    delimiter : str, optional
        What separates cells: one character. If left out, a tab in a ``.tsv``, and in a ``.csv``
        whichever of comma, semicolon and tab stands in the header row outside quotes; it is an
        error if several do.
    encoding : str

    Returns
    -------
    dict
        Arrays of numbers, of dates (ISO 8601, such as 1999-12 or 1999-12-31) where every cell is
        one, else of strings; objects, with None, where some cells are empty.

    Raises
    ------
    OSError
        If the file cannot be opened.
    ValueError
        Naming the file and the line: if it cannot be understood.
    """
    path = as_path(path)
    columns = columns_of_file(path, delimiter, encoding, missing=("",))
    if not len(next(iter(columns.values()), ())):
        raise ValueError(f"{path}: the table has no rows")
    return {name: _as_array(cells) for name, cells in columns.items()}


def _as_array(cells: list[Any]) -> NDArray[Any]:
    cells = [cell.strip() or None if isinstance(cell, str) else cell for cell in cells]
    if any(cell is None for cell in cells):
        return np.array(cells, dtype=object)
    if all(isinstance(cell, str) and _DATE.fullmatch(cell) for cell in cells):
        try:
            dates = [np.datetime64(cell.replace(" ", "T")) for cell in cells]
            return np.array(dates).astype("datetime64[s]")
        except ValueError:  # the 31st of June
            return np.array(cells)
    return np.array(cells)


def is_number_or_date(cell: str) -> bool:
    """Whether a cell of a table can be of a column of numbers or of dates."""
    if not _DATE.fullmatch(cell):
        return _NUMBER.fullmatch(cell) is not None
    try:
        np.datetime64(cell.replace(" ", "T"))
    except ValueError:  # the 31st of June
        return False
    return True


def columns_of_file(
    path: Path, delimiter: Any, encoding: str, missing: Sequence[str]
) -> dict[str, list[Any]]:
    """Columns of a table in a file, None where there is no value."""
    suffix = _kind_of(path, delimiter)
    if suffix in (".jsonl", ".ndjson"):
        return _json_columns(read_file(path, encoding).split("\n"), path)
    if suffix == ".parquet":
        with _parquet(path) as file:
            table = file.read()
        return {name: _of_arrow(table.column(name)) for name in table.column_names}
    content = read_file(path, encoding)
    mark = delimiter or ("\t" if suffix == ".tsv" else _delimiter(content, path))
    header, *rows = _csv_rows(io.StringIO(content, newline=""), path, mark, delimiter)
    no_value = frozenset(as_strings(missing, "missing"))
    return {
        name: _typed([None if row[j] in no_value else row[j] for row in rows])
        for j, name in enumerate(header)
    }


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
    missing: Sequence[str] = ("", "NA"),
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
        rows, there = _parquet_cells(path, names, meter)
    elif suffix in (".jsonl", ".ndjson"):
        there = {}  # until all rows are read
        rows = _json_cells(each_line(path, encoding, newline="\n", meter=meter), path, names, there)
    else:
        lines = each_line(path, encoding, newline="", meter=meter)
        first = _up_to(lines, 100_000)
        mark = delimiter or ("\t" if suffix == ".tsv" else _delimiter("".join(first), path))
        table = _csv_rows(chain(first, lines), path, mark, delimiter)
        there = dict.fromkeys(next(table))
        rows = _csv_cells(table, names, there, frozenset(as_strings(missing, "missing")))
    if there:
        _check_there(path, names, there, delimiter)
    empty = True
    for cells in rows:
        empty = False
        yield cells
    if empty:
        raise ValueError(f"{path}: the table has no rows")
    _check_there(path, names, there, delimiter)


def _check_there(path: Path, names: Sequence[str], there: Any, delimiter: str | None) -> None:
    unknown = [name for name in names if name not in there]
    if unknown:
        split = "" if delimiter is None else f" with delimiter {delimiter!r}"
        raise ValueError(
            f"{path}: the table has no column {unknown[0]!r} among {list(there)[:_SHOWN]}{split}"
        )


def _up_to(lines: Iterator[str], characters: int) -> list[str]:
    first: list[str] = []
    while sum(map(len, first)) < characters and (line := next(lines, "")):
        first.append(line)
    return first


def _csv_cells(
    rows: Iterator[list[str]], names: Sequence[str], there: Any, no_value: frozenset[str]
) -> Iterator[tuple[Any, ...]]:
    header = list(there)
    places = [header.index(name) for name in names if name in there]
    for row in rows:
        yield tuple(None if row[j] in no_value else row[j] for j in places)


def _json_cells(
    lines: Iterable[str], path: Path, names: Sequence[str], there: dict[str, None]
) -> Iterator[tuple[Any, ...]]:
    for row in _json_rows(lines, path):
        there |= dict.fromkeys(row)
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
    there = dict.fromkeys(file.schema_arrow.names)

    def cells() -> Iterator[tuple[Any, ...]]:
        with file:
            read = 0
            for batch in file.iter_batches(columns=list(names)):
                read += batch.num_rows
                if meter is not None:
                    meter.done = meter.total * read // file.metadata.num_rows
                yield from zip(*(batch.column(name).to_pylist() for name in names), strict=True)

    return cells(), there


def _of_arrow(column: Any) -> Any:
    """Dates as an array, anything else as a list."""
    from pyarrow import types

    return column.to_numpy() if types.is_temporal(column.type) else column.to_pylist()


def labels_of_cells(kinds: set[str]) -> Callable[[Any], str]:
    """What makes labels of a column's cells, given `kind_of_cell` of all of them."""
    if kinds == {"whole cell"}:
        return lambda cell: str(int(cell))
    if kinds <= {"whole cell", "number cell"}:
        return lambda cell: str(float(cell))
    if kinds <= {"int", "float"} and "float" in kinds:
        return lambda cell: str(float(cell))
    if len(kinds) == 1 or kinds <= {"whole cell", "number cell", "str"}:
        return str
    return lambda cell: cell if isinstance(cell, str) else json.dumps(cell)


def kind_of_cell(cell: Any, *, of_csv: bool) -> str:
    """What a column can be that has this cell: see `_typed` and `_one_kind`."""
    if of_csv and _NUMBER.fullmatch(cell.strip()):
        whole = len(cell) < _DIGITS and cell.strip().lstrip("+-").isdecimal()
        return "whole cell" if whole else "number cell"
    return type(cell).__name__


def _typed(cells: list[str | None]) -> list[Any]:
    """Numbers, if all cells that hold a value are numbers."""
    present = [cell for cell in cells if cell is not None]
    if not present or not all(_NUMBER.fullmatch(cell.strip()) for cell in present):
        return list(cells)
    whole = all(len(cell) < _DIGITS and cell.strip().lstrip("+-").isdecimal() for cell in present)
    if whole and len(present) == len(cells):
        return [int(cell) for cell in present]
    return [None if cell is None else float(cell) for cell in cells]


def _delimiter(text: str, path: Path) -> str:
    """What separates the names in the header row."""
    header = lines_of(re.sub(r'"[^"]*"', "", text[:100_000]))[:1]
    there = [mark for mark in (",", ";", "\t") if mark in "".join(header)]
    if len(there) > 1:
        raise ValueError(
            f"{path}, line 1: {' and '.join(map(repr, there))} stand in the header; say which one"
            f" separates cells, delimiter={there[0]!r} or another"
        )
    return there[0] if there else ","


def _csv_rows(
    lines: Iterable[str], path: Path, delimiter: str, given: str | None
) -> Iterator[list[str]]:
    """The header, then the rows; `given` is the user's delimiter, for errors."""
    try:
        yield from _split_rows(lines, path, delimiter)
    except ValueError as error:
        if given is None:
            raise
        raise ValueError(f"{error} (with delimiter={given!r})") from None


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


def _json_columns(lines: Iterable[str], path: Path) -> dict[str, list[Any]]:
    rows = list(_json_rows(lines, path))
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: _one_kind([row.get(name) for row in rows]) for name in names}


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


def _one_kind(items: list[Any]) -> list[Any]:
    """Numbers or truth values as they are; anything else as strings, nested values as JSON."""
    present = [item for item in items if item is not None]
    for kind in (bool, (int, float)):
        if present and all(isinstance(item, kind) for item in present):
            if kind is not bool and any(isinstance(item, bool) for item in present):
                break
            if kind is not bool or len(present) == len(items):
                return items
    return [x if x is None or isinstance(x, str) else json.dumps(x) for x in items]

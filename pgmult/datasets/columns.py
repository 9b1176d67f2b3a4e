"""Columns of a table in a file, by name: what texts, tidy counts and sequences come from.

What a column is follows from its cells alone: numbers or dates where every cell that holds a value
is one, and text otherwise; 007 is text.
"""

import csv
import io
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmult.core.arguments import as_path, as_strings, brief
from pgmult.datasets.files import TABLES, lines_of, read_file, suffix_of

__all__ = ["columns_of_file", "read_columns"]

_NUMBER = re.compile(r"[+-]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?")
_DATE = re.compile(r"\d{4}-\d\d(-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)?)?")


def read_columns(
    path: str | os.PathLike[str], *, delimiter: str | None = None, encoding: str = "utf-8"
) -> dict[str, NDArray[Any]]:
    """Every column of a table, by its name: a mapping that `from_long` takes.

    Parameters
    ----------
    path : path
        ``.csv`` or ``.tsv`` with a header row, or ``.jsonl`` or ``.ndjson`` with an object a line;
        also compressed, ``.gz``.
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
    if not next(iter(columns.values()), ()):
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


def columns_of_file(
    path: Path, delimiter: Any, encoding: str, missing: Sequence[str]
) -> dict[str, list[Any]]:
    """Columns of a ``.csv``, ``.tsv``, ``.jsonl`` or ``.ndjson``, None where there is no value."""
    if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1):
        raise ValueError(f"delimiter must be one character, got {brief(delimiter)}")
    suffix = suffix_of(path)
    if suffix in (".jsonl", ".ndjson"):
        return _json_columns(read_file(path, encoding), path)
    if suffix not in (".csv", ".tsv"):
        raise ValueError(
            f"path must end in {', '.join(TABLES)}, which are tables, got {str(path)!r}"
        )
    content = read_file(path, encoding)
    mark = delimiter or ("\t" if suffix == ".tsv" else _delimiter(content, path))
    try:
        header, rows = _csv_rows(content, path, mark)
    except ValueError as error:
        if delimiter is None:
            raise
        raise ValueError(f"{error} (with delimiter={delimiter!r})") from None
    no_value = frozenset(as_strings(missing, "missing"))
    return {
        name: _typed([None if row[j] in no_value else row[j] for row in rows])
        for j, name in enumerate(header)
    }


def _typed(cells: list[str | None]) -> list[Any]:
    """Numbers, if all cells that hold a value are numbers."""
    present = [cell for cell in cells if cell is not None]
    if not present or not all(_NUMBER.fullmatch(cell.strip()) for cell in present):
        return list(cells)
    whole = all(len(cell) < 19 and cell.strip().lstrip("+-").isdecimal() for cell in present)
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


def _csv_rows(text: str, path: Path, delimiter: str) -> tuple[list[str], list[list[str]]]:
    usual_limit = csv.field_size_limit(2**31 - 1)  # a cell can hold a whole book
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        header = next(reader, [])
        if not header:
            raise ValueError(f"{path}: the file is empty")
        if len(set(header)) < len(header):
            twice = next(name for name in header if header.count(name) > 1)
            raise ValueError(f"{path}, line 1: the header has {twice!r} more than once")
        rows = []
        for row in reader:
            if row and len(row) != len(header):
                raise ValueError(
                    f"{path}, line {reader.line_num}: {len(row)} cells under a header of"
                    f" {len(header)} (a cell with {delimiter!r} in it needs quotes)"
                )
            if row:
                rows.append(row)
        return header, rows
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num}: {error}") from None
    except (TypeError, ValueError) as error:  # csv refuses some characters
        if str(error).startswith(str(path)):
            raise
        raise ValueError(f"delimiter must separate cells, got {delimiter!r}: {error}") from None
    finally:
        csv.field_size_limit(usual_limit)


def _json_columns(text: str, path: Path) -> dict[str, list[Any]]:
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(text.split("\n"), start=1):
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
        rows.append(row)
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: _one_kind([row.get(name) for row in rows]) for name in names}


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

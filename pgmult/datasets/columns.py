"""Columns of a table in a file, as arrays: what tidy counts and sequences come from.

What a column is follows from its cells alone: whole numbers, numbers or dates where every cell is
one, and text otherwise. An empty cell is missing, which whoever needs the column refuses.
"""

import csv
import io
import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmult.core.arguments import as_path, brief
from pgmult.datasets.readers import _delimiter, _read, _suffix

__all__ = ["read_columns"]

_WHOLE = re.compile(r"[+-]?\d{1,18}")
_DATE = re.compile(r"\d{4}-\d\d(-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)?)?")


def read_columns(
    path: str | os.PathLike[str], *, delimiter: str | None = None, encoding: str = "utf-8"
) -> dict[str, NDArray[Any]]:
    """Every column of a table, by its name: a mapping that `from_long` takes.

    Parameters
    ----------
    path : path
        ``.csv`` or ``.tsv`` with a header row, or ``.jsonl`` or ``.ndjson`` with an object of
        strings, numbers or null a line; also compressed, ``.gz``.
    delimiter : str, optional
        What separates cells: one character. If left out, a tab in a ``.tsv``, and in a ``.csv``
        whichever of comma, semicolon and tab stands in the header row outside quotes; it is an
        error if several do.
    encoding : str

    Returns
    -------
    dict
        Arrays of integers, of floats, of dates (ISO 8601, such as 1999-12 or 1999-12-31) where
        every cell is one, else of strings; objects, with None, where some are missing.

    Raises
    ------
    OSError
        If the file cannot be opened.
    ValueError
        Naming the file and the line: if it cannot be understood.
    """
    path = as_path(path)
    text, suffix = _read(path, encoding), _suffix(path)
    if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1):
        raise ValueError(f"delimiter must be one character, got {brief(delimiter)}")
    if suffix in (".jsonl", ".ndjson"):
        columns = _json_columns(text, path)
    elif suffix in (".csv", ".tsv"):
        mark = delimiter or ("\t" if suffix == ".tsv" else _delimiter(text, path))
        columns = _csv_columns(text, path, mark)
    else:
        raise ValueError(f"{path}: the name of a table must end in .csv, .tsv, .jsonl or .ndjson")
    if not columns or not next(iter(columns.values())):
        raise ValueError(f"{path}: the table has no rows")
    return {name: _as_array(cells) for name, cells in columns.items()}


def _csv_columns(text: str, path: Path, delimiter: str) -> dict[str, list[Any]]:
    usual_limit = csv.field_size_limit(2**31 - 1)
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        header = next(reader, [])
        twice = [name for i, name in enumerate(header) if name in header[:i]]
        if twice:
            raise ValueError(f"{path}: the column {twice[0]!r} stands there twice")
        cells: list[list[Any]] = [[] for _ in header]
        for row in reader:
            if row and len(row) != len(header):
                raise ValueError(
                    f"{path}, line {reader.line_num}: {len(row)} cells under a header of"
                    f" {len(header)} (a cell with {delimiter!r} in it needs quotes)"
                )
            for column, cell in zip(cells, row, strict=False):
                column.append(cell.strip() or None)
        return dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num}: {error}") from None
    except TypeError as error:  # csv refuses some characters
        raise ValueError(f"delimiter must separate cells, got {delimiter!r}: {error}") from None
    finally:
        csv.field_size_limit(usual_limit)


def _json_columns(text: str, path: Path) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        place = f"{path}, line {number}"
        try:
            row: Any = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{place}: not JSON ({error})") from None
        if not isinstance(row, dict):
            raise ValueError(f"{place}: expected an object, got {type(row).__name__}")
        if columns and set(row) != set(columns):
            odd = sorted(set(row) ^ set(columns))[0]
            raise ValueError(f"{place}: the names of all lines must agree, {odd!r} does not")
        for name, value in row.items():
            if value is not None and (
                isinstance(value, bool) or not isinstance(value, str | int | float)
            ):
                raise ValueError(f"{place}: {name!r} must be a string or a number, got {value!r}")
            columns.setdefault(name, []).append(None if value is None else str(value).strip())
    return columns


def _as_array(cells: list[Any]) -> NDArray[Any]:
    there = [cell for cell in cells if cell is not None]
    if not there or len(there) < len(cells):
        return np.array(cells, dtype=object)
    if all(_WHOLE.fullmatch(cell) for cell in there):
        return np.array([int(cell) for cell in there])
    if all(_DATE.fullmatch(cell) for cell in there):
        try:
            return np.array([np.datetime64(cell.replace(" ", "T")) for cell in there]).astype(
                "datetime64[s]"
            )
        except ValueError:
            return np.array(there)
    try:
        values = np.array([float(cell) for cell in there])
    except ValueError:
        return np.array(there)
    return values if np.isfinite(values).all() else np.array(there)

"""Columns of a table in a file, as arrays: what tidy counts and sequences come from.

What a column is follows from its cells alone: whole numbers, numbers or dates where every cell is
one, and text otherwise; 007 is text. An empty cell is missing, which whoever needs the column
refuses.
"""

import os
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmult.core.arguments import as_path, brief
from pgmult.datasets.files import TABLES, read_file, suffix_of
from pgmult.datasets.tables import csv_rows, delimiter_of, json_columns

__all__ = ["read_columns"]

_WHOLE = re.compile(r"[+-]?(0|[1-9]\d{0,17})")
_NUMBER = re.compile(r"[+-]?(0|[1-9]\d*)?(\.\d*)?([eE][+-]?\d{1,3})?")
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
    suffix = suffix_of(path)
    if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1):
        raise ValueError(f"delimiter must be one character, got {brief(delimiter)}")
    if suffix not in TABLES:
        raise ValueError(
            f"path must end in {', '.join(TABLES)}, which are tables, got {str(path)!r}"
        )
    text = read_file(path, encoding)
    if suffix in (".jsonl", ".ndjson"):
        columns = {key: _as_array(cells) for key, cells in json_columns(text, path).items()}
    else:
        mark = delimiter or ("\t" if suffix == ".tsv" else delimiter_of(text, path))
        try:
            header, rows = csv_rows(text, path, mark)
        except ValueError as error:
            if delimiter is None:
                raise
            raise ValueError(f"{error} (with delimiter={delimiter!r})") from None
        columns = {
            name: _as_array([_number(row[j].strip()) for row in rows])
            if all(_is_number(row[j].strip()) for row in rows)
            else _as_array([row[j].strip() or None for row in rows])
            for j, name in enumerate(header)
        }
    if not columns or not len(next(iter(columns.values()))):
        raise ValueError(f"{path}: the table has no rows")
    return columns


def _is_number(cell: str) -> bool:
    return bool(_NUMBER.fullmatch(cell)) and any(c.isdigit() for c in cell)


def _number(cell: str) -> int | float:
    return int(cell) if _WHOLE.fullmatch(cell) else float(cell)


def _as_array(cells: list[Any]) -> NDArray[Any]:
    """Numbers, dates or strings; objects where a value is missing."""
    if not cells or any(cell is None for cell in cells):
        return np.array(cells, dtype=object)
    if all(isinstance(cell, str) and _DATE.fullmatch(cell) for cell in cells):
        try:
            dates = [np.datetime64(cell.replace(" ", "T")) for cell in cells]
        except ValueError:
            return np.array(cells)
        return np.array(dates, dtype="datetime64[s]")
    return np.array(cells)

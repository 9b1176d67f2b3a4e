"""Tables of texts: one column holds the texts, and the others stay beside them.

>>> table = read_table({"speech": ["Peace and trade", "War"], "year": [1815, 1812]}, "speech")
>>> corpus = table.corpus()
>>> corpus.vocabulary.tolist(), corpus.table.columns["year"].tolist()
(['peace', 'trade', 'war'], [1815, 1812])
"""

import csv
import io
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from pgmult.core.arguments import as_kind, as_path, as_strings, brief, under_name
from pgmult.core.tables import as_columns, as_labels
from pgmult.datasets.files import TABLES, lines_of, read_file, suffix_of
from pgmult.datasets.text import TextOptions, count_words
from pgmult.topics.data.corpus import Corpus
from pgmult.topics.data.documents import DocumentTable

__all__ = ["TextTable", "csv_rows", "delimiter_of", "json_columns", "read_table"]

_SHOWN = 6  # columns named in an error
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TextTable(DocumentTable):
    """A table of texts, a document a row. Make one with `read_table`.

    Notes
    -----
    ``table.columns`` are the others by name, ``table.texts`` the texts. ``table[rows]`` are some of
    the rows, chosen by numbers, a slice or a mask: ``table[table.columns["year"] >= 1946]``,
    ``table[~table.missing("year", "party")]``.
    """

    source: str = "the table"

    def corpus(self, *, names: str | None = None, **text_options: Unpack[TextOptions]) -> Corpus:
        """Count the words of the texts; the columns stay with the corpus.

        Every row becomes a document, also when none of its words is kept: rows keep their numbers.
        ``corpus[corpus.totals > 0]`` leaves empty ones out, with their columns, and
        ``print(corpus.table.losses)`` tells what was lost.

        Parameters
        ----------
        names : str, optional
            The column that says what to call each document.
        **text_options
            How words are chosen: see `corpus_from_texts`.

        Raises
        ------
        ValueError
            If no word is left, or an option is out of its range.
        """
        called = None
        if names is not None:
            with under_name("names", of="column"):
                labels = self.column(names)
            called = as_labels(labels, names)
        try:
            corpus, losses = count_words(
                self.texts, None if called is None else called.tolist(), **text_options
            )
        except ValueError as error:
            raise ValueError(f"{self.source}: {error}") from None
        table = DocumentTable(self.names, self.values, self.text, losses)
        return replace(corpus, table=table)


def read_table(
    table: Any,
    text: str | None = None,
    *,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    missing: Sequence[str] = ("", "NA"),
) -> TextTable:
    """Read a table with a document a row, and keep all of its columns.

    Parameters
    ----------
    table : path, data frame or mapping
        ``.csv`` or ``.tsv`` with a header row, or ``.jsonl`` or ``.ndjson`` with an object a line,
        also compressed, ``.gz``; a data frame of pandas, polars, pyarrow or others; a mapping from
        name to column.
    text : str
        The column that holds the texts. A missing value is an empty document.
    delimiter : str, optional
        What separates cells: one character. If left out, a tab in a ``.tsv``, and in a ``.csv``
        whichever of comma, semicolon and tab stands in the header row outside quotes; it is an
        error if several do.
    encoding : str
    missing : sequence of str
        What a cell of a ``.csv`` or ``.tsv`` reads that holds no value.

    Returns
    -------
    TextTable
        A column of a file is one of numbers, if all cells that hold a value are numbers.

    Raises
    ------
    ValueError
        If `text` is left out or no column of strings, or the file cannot be understood; with its
        name and line.
    """
    if isinstance(table, str | os.PathLike):
        path = as_path(table, "table")
        place, columns = f"{path}: ", _columns_of_file(path, delimiter, encoding, missing)
        if not next(iter(columns.values()), ()):
            raise ValueError(f"{path}: the table has no rows")
    else:
        place, columns = "", {key: _listed(c) for key, c in as_columns(table, "table").items()}
    split = "" if delimiter is None else f" with delimiter {delimiter!r}"
    column = _text_column(columns, text, place, split)
    found = TextTable.of(columns, column)
    return replace(found, source=place.removesuffix(": ") or "the table")


def _listed(column: Any) -> Any:
    return column if column.dtype.kind in "biufM" else column.tolist()


def _text_column(columns: dict[str, Any], text: Any, place: str, split: str) -> str:
    """The name of the column of texts, which is asked for and not guessed."""
    strings = [
        name
        for name, column in columns.items()
        if not isinstance(column, np.ndarray) and any(isinstance(item, str) for item in column)
    ]
    if text is not None:
        text = as_kind(text, "text", str)
        if text not in columns:
            raise ValueError(
                f"{place}text must be a column of the table, no column {text!r} among"
                f" {list(columns)[: 5 * _SHOWN]}{split}"
            )
        if text not in strings and any(item is not None for item in columns[text]):
            raise ValueError(f"{place}text must be a column of strings, {text!r} has none")
        return str(text)
    longest = sorted(strings, key=lambda name: -sum(len(x or "") for x in columns[name]))
    which = ", ".join(map(repr, longest[:_SHOWN])) + (", ..." if len(longest) > _SHOWN else "")
    raise ValueError(
        f"{place}say which column holds the texts"
        + (f" (strings are in {which})" if longest else ", but none holds strings")
    )


def _columns_of_file(
    path: Path, delimiter: Any, encoding: str, missing: Sequence[str]
) -> dict[str, list[Any]]:
    if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1):
        raise ValueError(f"delimiter must be one character, got {brief(delimiter)}")
    suffix = suffix_of(path)
    if suffix in (".jsonl", ".ndjson"):
        return json_columns(read_file(path, encoding), path)
    if suffix not in (".csv", ".tsv"):
        raise ValueError(f"{path}: the name of a table must end in {', '.join(TABLES)}")
    content = read_file(path, encoding)
    if delimiter is None:
        delimiter = "\t" if suffix == ".tsv" else delimiter_of(content, path)
    header, rows = csv_rows(content, path, delimiter)
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


def delimiter_of(text: str, path: Path) -> str:
    """What separates the names in the header row."""
    header = lines_of(re.sub(r'"[^"]*"', "", text[:100_000]))[:1]
    there = [mark for mark in (",", ";", "\t") if mark in "".join(header)]
    if len(there) > 1:
        raise ValueError(
            f"{path}, line 1: {' and '.join(map(repr, there))} stand in the header; say which one"
            f" separates cells, delimiter={there[0]!r} or another"
        )
    return there[0] if there else ","


def csv_rows(text: str, path: Path, delimiter: str) -> tuple[list[str], list[list[str]]]:
    """The header and the rows of cells under it."""
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


def json_columns(text: str, path: Path) -> dict[str, list[Any]]:
    """The columns of lines of objects; None where a line lacks a name."""
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

"""Tables of texts: one column holds the texts, and the others stay beside them.

>>> table = read_table({"speech": ["Peace and trade", "War"], "year": [1815, 1812]}, "speech")
>>> corpus = table.corpus()
>>> corpus.vocabulary.tolist(), corpus.table.columns["year"].tolist()
(['peace', 'trade', 'war'], [1815, 1812])
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np

from pgmult.core.arguments import as_kind, as_path, under_name
from pgmult.core.tables import as_columns, as_labels
from pgmult.datasets.columns import columns_of_file
from pgmult.datasets.text import TextOptions, count_words
from pgmult.topics.data.corpus import Corpus
from pgmult.topics.data.documents import DocumentTable

__all__ = ["TextTable", "read_table"]

_SHOWN = 6  # columns named in an error


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
        also compressed, ``.gz``; ``.parquet``, if pyarrow is installed; a data frame of pandas,
        polars, pyarrow or others; a mapping from name to column.
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
        place, columns = f"{path}: ", columns_of_file(path, delimiter, encoding, missing)
        if not len(next(iter(columns.values()), ())):
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

"""Columns of the table that documents came from, and the counts of words that were left out.

A `DocumentTable` holds the columns, texts among them, compressed, and travels with the corpus: into
the run directory, and through every choice of rows. So quotes can be read from a run that was
loaded, and covariates stay with the documents that they belong to.

>>> table = DocumentTable.of({"speech": ["We hold", "Four score"], "year": [1776, 1863]}, "speech")
>>> table[[1]].texts
['Four score']
>>> table.columns["year"]
array([1776, 1863])
"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pgmult.core.answers import Answer
from pgmult.core.labels import is_missing, label_of
from pgmult.core.tabled import Column, Table
from pgmult.core.tables import as_rows, chosen_columns, exact, numbers_of_texts
from pgmult.core.typing import Array, ArrayLike, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class PackedTexts:
    """Strings in compressed UTF-8.

    Attributes
    ----------
    packed : uint8 array
        All of them, one after the other, compressed by zlib.
    ends : int64 array
        Where each ends among the bytes before compression; minus that minus one, if it is missing.
    rows : int64 array
        Which of them these are.
    """

    packed: NDArray[np.uint8]
    ends: IntArray
    rows: IntArray

    @classmethod
    def of(cls, texts: Sequence[str | None]) -> Self:
        """Pack texts; None is a missing one."""
        pieces = [(text or "").encode("utf-8", "surrogatepass") for text in texts]
        ends = np.cumsum([len(piece) for piece in pieces], dtype=np.int64)
        missing = np.array([text is None for text in texts], dtype=np.bool_)
        packed = np.frombuffer(zlib.compress(b"".join(pieces)), dtype=np.uint8)
        return cls(packed, np.where(missing, -ends - 1, ends), np.arange(len(pieces)))

    def unpack(self) -> list[str | None]:
        """The texts."""
        content = zlib.decompress(self.packed.tobytes())
        ends = np.where(self.ends < 0, -self.ends - 1, self.ends)
        starts = np.concatenate([[0], ends[:-1]])
        rows = self.rows.tolist()
        texts = [content[starts[d] : ends[d]].decode("utf-8", "surrogatepass") for d in rows]
        return [None if self.ends[d] < 0 else text for d, text in zip(rows, texts, strict=True)]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: IntArray) -> Self:
        return replace(self, rows=self.rows[rows])


@dataclass(frozen=True, slots=True)
class WordLoss:
    """Words left out for one reason: how many different ones, and how many tokens they were."""

    reason: str
    words: int
    tokens: int


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Losses(Answer):
    """Words and texts that were left out between texts and counts; print it for a table.

    Attributes
    ----------
    documents : int
        Texts that there were.
    without_text : int
        Of these, texts that were missing or had no word at all.
    emptied : int
        Of these, texts with words, none of which was kept.
    words, tokens : int
        Different words, and words in running text, that were read.
    left_out : tuple of WordLoss
        In the order in which the choices were made.
    ngrams : int
        Longest run of words counted as one.
    """

    documents: int
    without_text: int
    emptied: int
    words: int
    tokens: int
    left_out: tuple[WordLoss, ...]
    ngrams: int = 1

    def table(self) -> Table:
        """Counts of words read, left out for each reason, and kept."""
        parts = ([getattr(loss, of) for loss in self.left_out] for of in ("words", "tokens"))
        words, tokens = parts
        words = [self.words, *words, self.words - sum(words)]
        tokens = [self.tokens, *tokens, self.tokens - sum(tokens)]
        cells = [f"{n:,} ({n / max(self.tokens, 1):.1%})" for n in tokens]
        caption, empty = f"{self.documents:,} documents", self.without_text + self.emptied
        if empty:
            left = f"{empty:,} {'is' if empty == 1 else 'are'} left without words"
            caption += f", of which {left} ({self.without_text:,} had none to begin with)"
        columns = [
            Column("reason", ["read", *(loss.reason for loss in self.left_out), "kept"], "words"),
            Column("words", words, "different", "{:,}".format),
            Column("tokens", tokens, "in running text", cells),
        ]
        return Table(f"{caption}.", columns)


@dataclass(frozen=True, slots=True, eq=False)
class DocumentTable:
    """Columns of a table with a document a row. `pgmult.datasets.DataTable.corpus` makes one.

    Attributes
    ----------
    names : tuple of str
    values : tuple of arrays and PackedTexts
        Numbers, truth values or dates as arrays, ``(num_documents,)``; strings packed.
    text : str or None
        The column that the words were counted in.
    losses : Losses or None
        What was lost in counting.
    written : tuple of str
        Columns whose strings are numbers, as written: an array would not hold them exactly.
    """

    names: tuple[str, ...]
    values: tuple[Array | PackedTexts, ...]
    text: str | None = None
    losses: Losses | None = None
    written: tuple[str, ...] = ()

    @classmethod
    def of(cls, columns: Mapping[str, Any], text: str | None = None) -> Self:
        """Columns of one length, each of numbers, truth values, dates, or strings and None."""
        cells = {name: exact(column, repr(name)).values for name, column in columns.items()}
        written = tuple(name for name, column in cells.items() if _are_numbers(column))
        return cls(tuple(cells), tuple(map(_stored, cells.values())), text, written=written)

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """All columns but the text by name; missing strings are None, missing numbers nan."""
        return {name: self.column(name) for name in self.names if name != self.text}

    @property
    def texts(self) -> list[str]:
        """The texts; a missing one is empty."""
        if self.text is None:
            raise ValueError("the documents were not read from texts")
        return ["" if text is None else text for text in self.column(self.text).tolist()]

    def column(self, name: str) -> NDArray[Any]:
        """One column."""
        chosen_columns(dict.fromkeys(self.names, np.empty(0)), [name], "the table", "column")
        values = self.values[self.names.index(name)]
        if isinstance(values, PackedTexts):
            texts = values.unpack()
            if name in self.written:
                return numbers_of_texts(texts)
            unpacked = np.empty(len(values), dtype=object)
            unpacked[:] = texts
            return unpacked
        return values

    def __len__(self) -> int:
        return len(self.values[0]) if self.values else 0

    def __getitem__(self, rows: ArrayLike | slice) -> Self:
        chosen = as_rows(rows, len(self))
        return replace(self, values=tuple(values[chosen] for values in self.values))

    def __repr__(self) -> str:
        others = ", ".join(name for name in self.names if name != self.text)
        text = "" if self.text is None else f", texts in {self.text!r}"
        return f"{type(self).__name__}({len(self):,} documents{text}, columns: {others or 'none'})"


def _are_numbers(column: Array) -> bool:
    """Return whether a column of objects holds only numbers and missing values."""
    kinds = {type(cell) for cell in column.tolist()} if column.dtype.kind == "O" else set()
    numbers = {kind for kind in kinds if issubclass(kind, int | float) and kind is not bool}
    return bool(numbers) and kinds <= {*numbers, type(None)}


def _stored(column: Array) -> Array | PackedTexts:
    if column.dtype.kind in "biufM":
        return column
    try:
        return PackedTexts.of([None if is_missing(x) else label_of(x) for x in column.tolist()])
    except TypeError as error:
        raise TypeError(f"columns must hold numbers, dates or strings: {error}") from None

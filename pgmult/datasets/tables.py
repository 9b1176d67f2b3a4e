"""Tables: read once, and handed to any family of models.

`pgmult.read` takes a file, a data frame or a mapping and keeps every cell as it is: numbers of 19
digits, leading zeros, times in their own calendar. A column is converted only when it is used:
labels stay exact, and only what is used as a number becomes one (`pgmult.core.labels`).

>>> table = read({"speech": ["Peace and trade", "War"], "year": [1815, 1812]})
>>> corpus = table.corpus("speech")
>>> corpus.vocabulary.tolist(), corpus.table.columns["year"].tolist()
(['peace', 'trade', 'war'], [1815, 1812])
>>> states = read({"who": ["a", "a", "b"], "day": [1, 3, 1], "state": ["well", "ill", "ill"]})
>>> states.sequences("state", sequence="who", time="day")
Sequences(2 sequences, 4 steps, 2 symbols, 3 observations)
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from pgmult.core import tables
from pgmult.core.arguments import as_kind, as_path, as_strings, under_name
from pgmult.core.labels import Levels, labels_of
from pgmult.core.typing import ArrayLike
from pgmult.datasets.columns import NA_VALUES, columns_of_file
from pgmult.datasets.files import errors_at

if TYPE_CHECKING:
    from pgmult.choice.data import ChoiceRows
    from pgmult.datasets.text import TextOptions
    from pgmult.fields.data import CountField
    from pgmult.fields.tables import Absent
    from pgmult.regression.data import AdditiveRows
    from pgmult.sequences.data.sequences import Sequences
    from pgmult.topics.data.corpus import Corpus

_SHOWN = 6  # columns named in an error
_WORDS_EACH = 5  # rows of a document, on average, from which on they may be its words


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DataTable(tables.ExactTable):
    """Columns by name, a row for each text, count, step or case. Make one with `pgmult.read`.

    Notes
    -----
    ``table["year"]`` is a column; ``table[rows]`` are some of the rows, chosen by numbers, a slice
    or a mask: ``table[table["year"] >= 1946]``, ``table[~table.missing("year", "party")]``.
    """

    def corpus(
        self, text: str | None = None, *, names: str | None = None, count: str | None = None,
        wide: str | Sequence[str] | None = None, **text_options: "Unpack[TextOptions]",
    ) -> "Corpus":  # fmt: skip
        """Count the words of a column of texts; the other columns stay with the corpus.

        Every row becomes a document, also when none of its words is kept: rows keep their numbers.
        ``corpus[corpus.totals > 0]`` leaves empty ones out, with their columns, and
        ``print(corpus.table.losses)`` lists what was lost. ``corpus.with_covariates(formula)`` adds
        covariates from the other columns.

        Parameters
        ----------
        text : str
            The column that holds the texts, or lists of words, which stay as they are. A missing
            value is an empty document.
        names : str, optional
            The column that names the documents.
        count : str, optional
            Column of counts, where a row is a word of a document: `text` is the column of words,
            and rows of the same name are one document. Columns that do not vary within documents
            stay with the corpus. Without counts, a table is read so where no cell has more than one
            word and most names come in many rows.
        wide : str or sequence of str, optional
            Columns of counts, one for each word, which their names are: named one by one, as
            ``first:last``, or by a pattern with ``*``. `text` and `count` are left out then.
        **text_options
            How words are chosen: see `pgmult.datasets.text.WordChoices`.

        Raises
        ------
        ValueError
            If `text` is left out or no column of strings, no word is left, an option is out of its
            range, or a cell of `wide` is no count.
        """
        from pgmult.datasets.text import count_words, tokens_of
        from pgmult.topics.data.documents import DocumentTable

        text = None if text is None else as_kind(text, "text", str)
        names = None if names is None else as_kind(names, "names", str)
        if wide is not None:
            if text is not None or count is not None:
                raise ValueError("text and count must be left out where wide names columns")
            return self._with_column_a_word(wide, names, **text_options)
        if count is not None or self._has_word_a_row(text, names):
            return self._counted(text, names, count, **text_options)
        tokens = tokens_of(self[text].tolist()) if text in self.cells else None
        column = self._text_column(text) if tokens is None else str(text)
        columns: Mapping[str, Any] = self.columns
        if tokens is not None:
            columns = {**columns, column: [" ".join(words) for words in tokens]}
        texts = tokens or ["" if x is None else x for x in self[column].tolist()]
        called = self._names(names)
        with errors_at(self.source):
            corpus, losses = count_words(texts, called, **text_options)
        return replace(corpus, table=replace(DocumentTable.of(columns, column), losses=losses))

    def _has_word_a_row(self, text: str | None, names: str | None) -> bool:
        """Whether rows are words of documents, whose names come again and again."""
        if text not in self.cells or names not in self.cells:
            return False
        words, documents = self[text].tolist(), set(self[names].tolist())
        return len(words) >= _WORDS_EACH * len(documents) and all(
            x is None or (isinstance(x, str) and " " not in x) for x in words
        )

    def _counted(
        self, text: str | None, names: str | None, count: str | None,
        **text_options: "Unpack[TextOptions]",
    ) -> "Corpus":  # fmt: skip
        """The corpus of a table with a row for each word of each document."""
        from pgmult.datasets.text import normal_form

        if text is None or names is None:
            raise ValueError(f"{self.source}: count needs text, of words, and names, of documents")
        tables.one_role_each({"text": text, "names": names, "count": count})
        gaps = self.missing(text, names)
        if count is None and gaps.any():
            complete: DataTable = self[~gaps]
            return complete._counted(text, names, count, **text_options)
        labels = labels_of(self[names], names)
        documents, first, codes = np.unique(labels, return_index=True, return_inverse=True)
        counters = [Counter[str]() for _ in documents]
        counts = [1] * len(self) if count is None else tables.counts_of(self[count], count).tolist()
        words = labels_of(self[text], text).tolist()
        for code, word, times in zip(codes.tolist(), words, counts, strict=True):
            if times:
                counters[code][normal_form(word)] += times
        order = np.argsort(first, kind="stable").tolist()
        others = {}
        for name in self:
            labels = np.array(list(map(str, self[name].tolist())))
            if name not in (text, count) and np.array_equal(labels, labels[first[codes]]):
                others[name] = self.cells[name].take(np.sort(first)).values
        names_in_order = documents[order].tolist()
        return _corpus_of([counters[i] for i in order], names_in_order, others, **text_options)

    def _with_column_a_word(
        self, wide: str | Sequence[str], names: str | None, **text_options: "Unpack[TextOptions]"
    ) -> "Corpus":
        """The corpus of a table with a row for each document and a column for each word."""
        from pgmult.datasets.text import normal_form

        columns = tables.columns_named(list(self), wide)
        counters = [Counter[str]() for _ in range(len(self))]
        for name in columns:
            word, counts = normal_form(name), tables.counts_of(self[name], name)
            for i in np.flatnonzero(counts).tolist():
                counters[i][word] += int(counts[i])
        others = {name: cells for name, cells in self.columns.items() if name not in columns}
        return _corpus_of(counters, self._names(names), others, **text_options)

    def _names(self, column: str | None) -> list[str] | None:
        """The names of documents, if a column has them."""
        if column is None:
            return None
        with under_name("names", of="column"):
            return list(labels_of(self[column], column).tolist())

    def _text_column(self, text: str | None) -> str:
        """The name of the column of texts, which is asked for and not guessed."""
        place = "" if self.source == "the table" else f"{self.source}: "
        columns = tables.chosen_columns(
            self.columns, [*self] if text is None else [text], self.source, "text"
        )
        strings = {n: [x for x in c.tolist() if isinstance(x, str)] for n, c in columns.items()}
        lengths = {name: sum(map(len, cells)) for name, cells in strings.items() if cells}
        if text is None:
            longest = sorted(lengths, key=lengths.__getitem__, reverse=True)
            more = ", ..." if len(longest) > _SHOWN else ""
            which = f" (strings are in {', '.join(map(repr, longest[:_SHOWN]))}{more})"
            which = which if longest else ", but none holds strings"
            raise ValueError(f"{place}say which column holds the texts{which}")
        if not lengths and not self.missing(text).all():
            raise ValueError(f"{place}text must be a column of strings, {text!r} has none")
        return text

    def field(
        self, inputs: str | Sequence[str], category: str | None = None, *, count: str | None = None,
        wide: Sequence[str] = (), new_inputs: object = None,
        places: Mapping[str, object] | None = None, absent: "Absent | None" = None,
        order: str | ArrayLike = "frequency",
    ) -> "CountField":  # fmt: skip
        """Counts of categories in space and time: see `pgmult.fields.tables.field_of`.

        Besides a column, `count` may be an expression such as ``"round(share * n / 100)"``.
        """
        from pgmult.fields.tables import field_of

        with tables.rows_in_words(self):
            return field_of(
                self.computed(count, "count"), inputs=inputs, category=category, count=count,
                wide=wide, new_inputs=new_inputs, places=places, absent=absent, order=order,
            )  # fmt: skip

    def sequences(
        self, symbol: str | Sequence[str] | None = None, *,
        sequence: str | Sequence[str] | None = None, time: str | None = None,
        begin: str | None = None, end: str | None = None, wide: str | Sequence[str] | None = None,
        every: str | None = None, week_start: str = "monday", count: str | None = None,
        weight: str | None = None, known: str | None = None, order: str | ArrayLike | None = None,
        inputs: Any = None, maps: Mapping[str, Any] | None = None,
    ) -> "Sequences":  # fmt: skip
        """Sequences of symbols or counts: see `pgmult.sequences.data.tables.sequences_of`.

        Several columns of `sequence`, such as a person and a day, identify a sequence together.
        """
        from pgmult.sequences.data.tables import sequences_of

        table = self
        if not isinstance(sequence, str | None):
            table, sequence = self._joined(as_strings(sequence, "sequence"))
        return sequences_of(
            table, symbol=symbol, sequence=sequence, time=time, begin=begin, end=end, wide=wide,
            every=every, week_start=week_start, count=count, weight=weight, known=known,
            order=order, inputs=inputs, maps=maps,
        )  # fmt: skip

    def _joined(self, columns: Sequence[str]) -> "tuple[DataTable, str]":
        """The table with a column of the combinations of the labels of others, and its name."""
        if not columns:
            raise ValueError("sequence must name at least one column, got none")
        cells = tables.chosen_columns(self.columns, columns, self.source, "sequence")
        levels, codes = Levels.of(cells)
        name = ":".join(columns)
        joined = tables.Cells(levels.names[codes], tuple(levels.names.tolist()))
        return self._with(name, joined), name

    def _with(self, name: str, cells: tables.Cells) -> "DataTable":
        """The table with one more column."""
        every = tables.Lazily([*self.cells, name], lambda x: cells if x == name else self.cells[x])
        return replace(self, cells=every)

    def computed(self, expression: Any, argument: str) -> "DataTable":
        """The table with a column of the numbers of an expression, which has parentheses.

        The table itself where `expression` is a column; `argument` has it, for errors.
        """
        from pgmult.formulas.coding import computed_numbers

        numbers = computed_numbers(expression, self.cells, len(self), argument)
        return self if numbers is None else self._with(str(expression), tables.Cells(numbers))

    def rows(
        self, formula: str, *, weights: str | None = None,
        ordered: Sequence[Any] | bool | None = None, maps: Mapping[str, Any] | None = None,
        family: str | None = None, unit: str = "observation",
    ) -> "AdditiveRows":  # fmt: skip
        """Covariates and outcomes of a regression, by formula: see `pgmult.regression.rows`.

        Besides a column, `weights` may be an expression such as ``"round(share * n / 100)"``.
        """
        from pgmult.regression.rows import rows_of

        with tables.rows_in_words(self):
            return rows_of(
                formula, self.computed(weights, "weights"), weights=weights, ordered=ordered,
                maps=maps, family=family, unit=unit,
            )  # fmt: skip

    def choices(
        self, formula: str, *, occasion: str | Sequence[str], alternative: str | None = None,
        base: object = None, weights: str | None = None, signs: Mapping[str, int] | None = None,
        worst: str | None = None, none: Any = None, available: str | None = None,
    ) -> "ChoiceRows":  # fmt: skip
        """Choices among alternatives, a row each, by formula: see `pgmult.choice.choices_of`.

        Besides a column, `weights` may be an expression such as ``"round(share * n / 100)"``.
        """
        from pgmult.choice.data import choices_of

        with tables.rows_in_words(self):
            return choices_of(
                formula, self.computed(weights, "weights"), occasion=occasion,
                alternative=alternative, base=base, weights=weights, signs=signs, worst=worst,
                none=none, available=available,
            )  # fmt: skip


def read(
    table: object, *, delimiter: str | None = None, encoding: str | None = None,
    na_values: Sequence[str] = NA_VALUES, time_zone: str | None = None, sheet: str | None = None,
) -> DataTable:  # fmt: skip
    """Read a table with named columns; every cell is kept exactly.

    Parameters
    ----------
    table : path, data frame, labelled array or mapping
        ``.csv`` or ``.tsv`` with a header row, ``.jsonl`` or ``.ndjson`` with one object per line,
        or ``.json`` with an array of objects, also compressed, ``.gz``; ``.parquet``, if pyarrow is
        installed; ``.xlsx``, ``.xls``, ``.ods``, ``.sav``, ``.dta``, ``.sas7bdat``, ``.rds``, with
        ``pip install 'pgmult[files]'``; a ``.zip`` of one of these. The first bytes of a file
        decide before its name does. A folder of tables, or a pattern such as ``"waves/*.csv"``, is
        read as one table with the name of the file in a column ``file``. Or a data frame of pandas,
        polars, pyarrow or others; an array of xarray; a mapping from name to column.
    delimiter : str, optional
        What separates cells: one character. If left out, a tab in a ``.tsv``, and in a ``.csv``
        whichever of comma, semicolon and tab stands in the header row outside quotes; it is an
        error if several do and do not divide the rows alike.
    encoding : str, optional
        Encoding of a text file. If left out: UTF-8, or UTF-16 where the file has its marks, or
        else cp1252, which Windows writes, with a warning.
    na_values : sequence of str
        How missing values are written in a text file, or which labels of a survey mean them.
    time_zone : str, optional
        Times with a zone stay in the zone of their column. If a column has several (summer and
        winter offsets are two), its times are converted to this one, such as "Europe/Berlin". Times
        without a zone are those that its clocks show.
    sheet : str, optional
        Sheet of a workbook, file of a ``.zip``, data frame of an ``.RData``, if it has several.

    Returns
    -------
    Table
        A column of a file holds numbers or dates (ISO 8601, such as 1999-12 or 1999-12-31) if every
        cell with a value is one, and strings otherwise. Numbers may have decimal commas. Values of
        SPSS, Stata and SAS that have labels are a categorical in the order of the values.

    Raises
    ------
    OSError
        If the file cannot be opened.
    ImportError
        If the library that reads such files is missing.
    ValueError
        If the file cannot be understood, with its name and line; if columns have different lengths
        or one has times of several zones.
    TypeError
        If `table` is no table.
    """
    if isinstance(table, DataTable):
        return table
    if isinstance(table, str | os.PathLike):
        path = as_path(table, "table")
        cells, lines, part = columns_of_file(path, delimiter, encoding, na_values, time_zone, sheet)
        return DataTable(cells, str(path), lines, part)
    return DataTable(tables.exact_columns(table, "table", time_zone))


def _corpus_of(
    counters: Sequence[Counter[str]], names: Sequence[str] | None, columns: Mapping[str, object],
    **text_options: "Unpack[TextOptions]",
) -> "Corpus":  # fmt: skip
    """The corpus of the words of documents, with columns that describe these."""
    from pgmult.datasets.text import LOOKED_AT, Dropped, WordChoices, chosen_counts
    from pgmult.topics.data.documents import DocumentTable

    options = WordChoices(**text_options)
    choices = options.for_texts([[*c.elements()] for c in counters[:LOOKED_AT]])
    corpus, losses = chosen_counts(counters, names, choices, Dropped())
    return replace(corpus, table=replace(DocumentTable.of(columns), losses=losses))

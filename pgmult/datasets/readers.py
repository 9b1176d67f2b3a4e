"""Readers of corpora in files: LDA-C, plain text, tables of texts and sparse matrices.

`read_corpus` recognises the kind of a path and calls the right one of `read_ldac`, `read_text`,
`read_npz` and `pgmult.read`. Files may be compressed (``.gz``). Nothing is
ever unpickled. An error names the file and, where there is one, the line.
"""

import codecs
import os
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, product
from pathlib import Path
from typing import Literal, NamedTuple, Unpack

import numpy as np
import scipy.io
import scipy.sparse
from numpy.typing import NDArray

from pgmult.core.arguments import as_choice, as_path, as_strings
from pgmult.datasets import files
from pgmult.datasets.tables import read
from pgmult.datasets.text import Text, TextOptions, count_words
from pgmult.topics.data.corpus import Corpus, as_corpus
from pgmult.topics.data.documents import DocumentTable
from pgmult.topics.data.packed import is_packed, open_corpus

COUNTED = ("LDA-C", "sparse matrix", "packed corpus")
"""Kinds of sources whose words are counted already."""

Vocabulary = str | os.PathLike[str] | Sequence[str] | NDArray[np.str_]

_COLUMN_NAMES = ("vocab", "vocabulary", "features", "terms", "colnames", "cols")
_ROW_NAMES = ("rownames", "rows", "documents", "docs", "barcodes")
_LDAC_LINE = re.compile(rb"\s*\d+(\s+\d+:\d+)*\s*")


class Source(NamedTuple):
    """What `recognise` found at a path.

    Attributes
    ----------
    kind : "LDA-C", "sparse matrix", "table", "text", "folder of text" or "packed corpus"
    path : Path
    vocabulary : Path or None
        A ``vocab.txt``, ``vocab.txt.gz`` or the like beside a file of counts.
    """

    kind: Literal["LDA-C", "sparse matrix", "table", "text", "folder of text", "packed corpus"]
    path: Path
    vocabulary: Path | None = None


def recognise(path: str | os.PathLike[str]) -> Source:
    """The kind of corpus at a path, by its name and its first line.

    A folder is a packed corpus, if it holds a ``corpus.json``, or of tables, or of text; ``.npz``
    and ``.mtx`` are sparse matrices; what `pgmult.read` reads is a table; a file whose first line
    reads ``M term:count term:count ...`` is LDA-C; any other is text. A ``.gz`` at the end of a
    name is ignored.

    Raises
    ------
    FileNotFoundError
        If nothing is at `path`.
    """
    path = files.local_path(as_path(path))
    if path.is_dir() and is_packed(path):
        return Source("packed corpus", path)
    if files.is_table(path):
        return Source("table", path)
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file or folder")
    if path.is_dir():
        return Source("folder of text", path)
    if files.suffix_of(path) in (".npz", ".mtx"):
        return Source("sparse matrix", path, _words_beside(path, _COLUMN_NAMES))
    first = files.head_of(path, 2**20).removeprefix(codecs.BOM_UTF8).partition(b"\n")[0]
    if _LDAC_LINE.fullmatch(first):
        return Source("LDA-C", path, _words_beside(path, _COLUMN_NAMES))
    return Source("text", path)


def read_corpus(
    path: str | os.PathLike[str], *, vocabulary: Vocabulary | None = None,
    column: str | None = None, documents: Literal["lines", "paragraphs"] = "lines",
    delimiter: str | None = None, encoding: str | None = None, **text_options: Unpack[TextOptions],
) -> Corpus:  # fmt: skip
    """Read a corpus of any kind that `recognise` knows.

    Parameters
    ----------
    path : path
        A file or a folder; one that `pack_files` wrote is opened and left on disk.
    vocabulary : path or sequence of str, optional
        The words of an LDA-C file or a sparse matrix: a file with one word per line, or the words.
        Without it, a ``vocab.txt`` (or ``vocab.txt.gz``) beside the file is taken, if there is one.
    column : str, optional
        The column of a table that holds the texts; required for a table.
    documents : "lines" or "paragraphs"
        What is a document in a file of text.
    delimiter : str, optional
        What separates the cells of a table: see `pgmult.read`.
    encoding : str
    **text_options
        How words are chosen: see `pgmult.datasets.text.WordChoices`. Only for texts.

    Raises
    ------
    OSError
        If the file cannot be opened.
    ValueError
        If it cannot be understood, or an argument does not fit its kind.
    """
    source = recognise(path)
    refuse_choices(source, vocabulary, text_options)
    if source.kind == "packed corpus":
        return open_corpus(path)
    if source.kind in COUNTED:
        return read_counts(source, source.vocabulary if vocabulary is None else vocabulary)
    if source.kind == "table":
        table = read(source.path, delimiter=delimiter, encoding=encoding)
        return table.corpus(column, **text_options)
    return read_text(source.path, documents=documents, encoding=encoding, **text_options)


def read_counts(source: Source, vocabulary: Vocabulary | None) -> Corpus:
    """Read a file of counts; columns of one word are added up.

    Names of the rows of a ``.mtx`` are in a file beside it, such as ``rownames.txt``. A matrix of
    words by documents is turned round, if the number of words says so.
    """
    words = as_words(vocabulary)
    if source.kind == "LDA-C":
        corpus = read_ldac(source.path, words)
    elif files.suffix_of(source.path) == ".npz":
        corpus = read_npz(source.path, words)
    else:
        rows = as_words(_words_beside(source.path, _ROW_NAMES))
        with files.errors_at(source.path, kinds=Exception):  # mmread raises many kinds
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                matrix = scipy.sparse.coo_array(scipy.io.mmread(source.path))
            if words is not None and matrix.shape[1] != len(words) == matrix.shape[0]:
                matrix = matrix.T
            names = rows if rows is not None and len(rows) == matrix.shape[0] else None
            corpus = as_corpus(matrix, words, names)
    twice = [word for word, times in Counter(words).items() if times > 1]
    if not twice:
        return corpus
    repeated = f"{len(twice):,} words more than once, such as {twice[0]!r}"
    warnings.warn(f"the vocabulary has {repeated}: their counts are added up", stacklevel=3)
    unique, places = np.unique(words or [], return_inverse=True)
    entries = np.ones(len(places)), (np.arange(len(places)), places)
    merged = corpus.to_csr() @ scipy.sparse.csr_array(entries, shape=(len(places), len(unique)))
    return as_corpus(merged, unique, corpus.names)


def refuse_choices(
    source: Source, vocabulary: Vocabulary | None, choices: Mapping[str, object]
) -> None:
    """Refuse choices of words that are counted already, and a vocabulary for others."""
    if source.kind in COUNTED and choices:
        counted = f"{source.path} holds counts already ({source.kind})"
        raise ValueError(f"{counted}: {', '.join(choices)} cannot be applied")
    if source.kind not in ("LDA-C", "sparse matrix") and vocabulary is not None:
        raise ValueError(f"{source.path} is a {source.kind}: a vocabulary is for files of counts")


def read_ldac(path: str | os.PathLike[str], vocabulary: Vocabulary | None = None) -> Corpus:
    """Read a corpus in the format of Blei's lda-c: one document per line, ``M term:count ...``.

    Parameters
    ----------
    path : path
        Line d says how many different words M document d has, and then, for each, the word's
        number (from 0) and its count. An empty document is the line ``0``.
    vocabulary : path or sequence of str, optional
        Word j, or a file with word j on line j + 1. Without it the largest number in the file
        says the number of words.

    Raises
    ------
    ValueError
        Naming file and line: if M is not the number of entries (a truncated line), an entry is
        not ``term:count``, both below 2**31, a word comes twice in a line or its number is not
        below the vocabulary's size.
    """
    path = as_path(path)
    words = as_words(vocabulary)
    blocks = list(ldac_blocks(path, words))
    parts = zip(*((np.diff(x.indptr), x.words, x.counts) for x in blocks), strict=True)
    sizes, numbers, counts = map(np.concatenate, parts)
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    return as_corpus(Corpus(indptr, numbers, counts, blocks[-1].num_words), words)


def ldac_blocks(
    path: Path, words: list[str] | None, meter: files.Meter | None = None
) -> Iterator[Corpus]:
    """Documents of an LDA-C file, some at a time; the last of them knows the number of words."""
    sizes: list[int] = []
    entries: list[tuple[int, int]] = []
    num_words, number = 0 if words is None else len(words), 0

    def block() -> Corpus:
        columns = np.array(entries, dtype=np.int32).reshape(-1, 2)
        indptr = np.cumsum([0, *sizes], dtype=np.int64)
        sizes.clear()
        entries.clear()
        return Corpus(indptr, columns[:, 0].copy(), columns[:, 1].copy(), num_words)

    for number, line in enumerate(files.each_line(path, meter=meter), start=1):
        try:
            ids, amounts = _entries(line, words)
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}") from None
        num_words = max(num_words, *(word + 1 for word in ids), 0)
        document = sorted(entry for entry in zip(ids, amounts, strict=True) if entry[1])
        sizes.append(len(document))
        entries += document
        if len(entries) >= 2**18 or len(sizes) >= 2**16:
            yield block()
    if not number:
        raise ValueError(f"{path}: the file is empty")
    yield block()


def _entries(line: str, words: list[str] | None) -> tuple[list[int], list[int]]:
    """The words and counts of a line of an LDA-C file."""
    first, *entries = line.split() or ["(nothing)"]
    if not first.isdecimal():
        raise ValueError(f"expected the number of entries, got {first[:40]!r}")
    if _whole_number(first) != len(entries):
        raise ValueError(f"announces {first} entries but has {len(entries)} (a truncated file?)")
    ids, amounts = [], []
    for entry in entries:
        word, _, amount = entry.partition(":")
        if not (word.isdecimal() and amount.isdecimal()):
            raise ValueError(f"expected term:count (whole numbers), got {entry[:40]!r}")
        ids.append(_whole_number(word))
        amounts.append(_whole_number(amount))
    if words is not None and max(ids, default=-1) >= len(words):
        what = f"word number {max(ids)} is beyond the vocabulary of {len(words)} words"
        raise ValueError(f"{what} (numbers start at 0)")
    if len(set(ids)) < len(ids):
        raise ValueError(f"word number {next(i for i in ids if ids.count(i) > 1)} comes twice")
    return ids, amounts


def _whole_number(text: str) -> int:
    """The value of decimal digits, if it is one of a file of counts."""
    if len(text) > 18 or int(text) >= 2**31 - 1:
        raise ValueError(f"expected a number below 2**31 - 1, got {text[:40]} (a damaged file?)")
    return int(text)


def read_npz(path: str | os.PathLike[str], vocabulary: Vocabulary | None = None) -> Corpus:
    """Read a sparse matrix of counts, documents by words, written by `scipy.sparse.save_npz`.

    Parameters
    ----------
    path : path
    vocabulary : path or sequence of str, optional
        The word of each column, or a file with one word per line.
    """
    path = as_path(path)
    words = as_words(vocabulary)
    what = "not a sparse matrix as scipy.sparse.save_npz writes it"
    # numpy leaves a broken file open that it opened itself, and a damaged one can raise anything
    with path.open("rb") as file, files.errors_at(path, what, Exception):
        matrix = scipy.sparse.load_npz(file)
    with files.errors_at(path, kinds=(TypeError, ValueError)):
        return as_corpus(matrix, words)


def read_text(
    path: str | os.PathLike[str], *, documents: Literal["lines", "paragraphs"] = "lines",
    encoding: str | None = None, **text_options: Unpack[TextOptions],
) -> Corpus:  # fmt: skip
    """Read plain text.

    Parameters
    ----------
    path : path
        A folder: every ``.txt`` or ``.txt.gz`` file in it or below is a document, in the order of
        their names. A file: every line that is not blank is a document, or every paragraph.
    documents : "lines" or "paragraphs"
        What is a document in a file: a line, or lines up to a blank one.
    encoding : str
    **text_options
        How words are chosen: see `pgmult.datasets.text.WordChoices`.

    Returns
    -------
    Corpus
        With the texts in its table. Its names are the files' paths inside the folder, or
        ``line 7`` for what starts there.
    """
    path = as_path(path)
    as_choice(documents, "documents", ("lines", "paragraphs"))
    names, texts = map(list, zip(*texts_of(path, documents, encoding), strict=True))
    with files.errors_at(path):
        corpus, losses = count_words(texts, names, **text_options)
    return replace(corpus, table=replace(DocumentTable.of({"text": texts}, "text"), losses=losses))


def texts_of(
    path: Path, documents: str, encoding: str | None, meter: files.Meter | None = None
) -> Iterator[tuple[str, Text]]:
    """Names and texts of the documents of a file or a folder, one after the other."""
    if path.is_dir():
        for file in texts_in(path):
            text = files.read_file(file, files.encoding_of(file, encoding))
            yield file.relative_to(path).as_posix(), text
            if meter is not None:
                meter.done += file.stat().st_size
        return
    encoding = files.encoding_of(path, encoding)
    lines = enumerate(files.each_line(path, encoding, meter=meter), start=1)
    alone, empty = documents == "lines", True
    for (blank, _), group in groupby(lines, lambda x: (not x[1].strip(), alone and x[0])):
        if not blank:
            (first, *_), rows = zip(*group, strict=True)
            empty = False
            yield f"line {first}", "".join(rows).removesuffix("\n")
    if empty:
        raise ValueError(f"{path}: the file is empty")


def texts_in(folder: Path) -> list[Path]:
    """The files of text in a folder and below, in the order of their names."""
    texts = sorted(f for f in folder.rglob("*") if f.is_file() and files.suffix_of(f) == ".txt")
    if not texts:
        raise ValueError(f"path {folder} has no .txt or .txt.gz file in this folder or below")
    return texts


def _words_beside(path: Path, names: Sequence[str]) -> Path | None:
    """The file beside counts that names their columns or rows, if there is one."""
    stem = path.name.split(".")[0]
    candidates = [f"{word}.txt{end}" for word in names for end in ("", ".gz")]
    parts = product(names, "._", ("", ".txt"))
    candidates += [f"{stem}{mark}{word}{end}" for word, mark, end in parts]
    beside = map(path.with_name, candidates)
    return next((file for file in beside if file.is_file()), None)


def _without_numbers(lines: list[str]) -> list[str]:
    """Words of lines that have numbers beside them: those of the words, or how often they occur.

    >>> _without_numbers(["2 tax", "1 peace"]), _without_numbers(["tax 7", "peace 3"])
    (['peace', 'tax'], ['tax', 'peace'])
    """
    cells = [re.findall(r'"[^"]*"|\S+', line) for line in lines]
    cells = [[cell.strip('"') for cell in row] for row in cells]
    if len({len(row) for row in cells}) != 1:
        return lines
    columns = list(zip(*cells, strict=True))
    numbers = [[*map(int, column)] for column in columns if all(map(str.isdecimal, column))]
    words = [column for column in columns if not all(map(str.isdecimal, column))]
    if not numbers or len(words) != 1:
        return lines
    if sorted(numbers[0]) in ([*range(len(lines))], [*range(1, len(lines) + 1)]):
        return [word for _, word in sorted(zip(numbers[0], words[0], strict=True))]
    return list(words[0])


def as_words(vocabulary: Vocabulary | None) -> list[str] | None:
    """A vocabulary, out of its file where it is one."""
    if vocabulary is None:
        return None
    if isinstance(vocabulary, str | os.PathLike):
        words = [line.strip() for line in files.each_line(as_path(vocabulary, "vocabulary"))]
        if "" in words:
            raise ValueError(f"{vocabulary}, line {words.index('') + 1}: a blank line, not a word")
        return _without_numbers(words)
    return as_strings(vocabulary, "vocabulary")

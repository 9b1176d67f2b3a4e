"""Readers of corpora in files: LDA-C, plain text, tables of texts and sparse matrices.

`read_corpus` recognises the kind of a path and calls the right one of `read_ldac`, `read_text`,
`read_table` and `read_npz`. Files may be compressed (``.gz``). Nothing is ever unpickled. An error
names the file and, where there is one, the line.
"""

import csv
import gzip
import json
import os
import re
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Unpack

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from pgmult.datasets.text import TextOptions, corpus_from_texts
from pgmult.topics.data.corpus import Corpus, as_corpus

__all__ = ["Source", "read_corpus", "read_ldac", "read_npz", "read_table", "read_text", "recognise"]

Vocabulary = str | os.PathLike[str] | Sequence[str] | NDArray[np.str_]

_TABLES = (".csv", ".tsv", ".jsonl", ".ndjson")
_LDAC_LINE = re.compile(rb"\s*\d+(\s+\d+:\d+)*\s*")


class Source(NamedTuple):
    """What `recognise` found at a path.

    Attributes
    ----------
    kind : "LDA-C", "sparse matrix", "table", "text" or "folder of text"
    path : Path
    vocabulary : Path or None
        A ``vocab.txt`` or ``vocab.txt.gz`` beside a file of counts.
    """

    kind: Literal["LDA-C", "sparse matrix", "table", "text", "folder of text"]
    path: Path
    vocabulary: Path | None = None


def recognise(path: str | os.PathLike[str]) -> Source:
    """The kind of corpus at a path, by its name and its first line.

    A folder is a folder of text; ``.npz`` is a sparse matrix; ``.csv``, ``.tsv``, ``.jsonl`` and
    ``.ndjson`` are tables; a file whose first line reads ``M term:count term:count ...`` is LDA-C;
    any other is text. A ``.gz`` at the end of a name is looked through.

    Raises
    ------
    FileNotFoundError
        If nothing is at `path`.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file or folder")
    if path.is_dir():
        return Source("folder of text", path)
    if path.suffix == ".npz":
        return Source("sparse matrix", path, _vocabulary_beside(path))
    if _suffix(path) in _TABLES:
        return Source("table", path)
    if _LDAC_LINE.fullmatch(_first_line(path)):
        return Source("LDA-C", path, _vocabulary_beside(path))
    return Source("text", path)


def read_corpus(
    path: str | os.PathLike[str],
    *,
    vocabulary: Vocabulary | None = None,
    column: str | None = None,
    documents: Literal["lines", "paragraphs"] = "lines",
    encoding: str = "utf-8",
    **text_options: Unpack[TextOptions],
) -> Corpus:
    """Read a corpus of any kind that `recognise` knows.

    Parameters
    ----------
    path : path
        A file or a folder.
    vocabulary : path or sequence of str, optional
        The words of an LDA-C file or a sparse matrix: a file with a word a line, or the words.
        Without it, a ``vocab.txt`` (or ``vocab.txt.gz``) beside the file is taken, if there is one.
    column : str, optional
        The column of a table that holds the texts; required for a table.
    documents : "lines" or "paragraphs"
        What is a document in a file of text.
    encoding : str
    **text_options
        How words are chosen: see `corpus_from_texts`. Only for texts.

    Raises
    ------
    OSError
        If the file cannot be opened.
    ValueError
        If it cannot be understood, or an argument does not fit its kind.
    """
    source = recognise(path)
    if source.kind in ("LDA-C", "sparse matrix"):
        if text_options:
            raise ValueError(
                f"{path} holds counts already ({source.kind}):"
                f" {', '.join(text_options)} cannot be applied"
            )
        words = source.vocabulary if vocabulary is None else vocabulary
        return (read_ldac if source.kind == "LDA-C" else read_npz)(source.path, words)
    if vocabulary is not None:
        raise ValueError(f"{path} is a {source.kind}: a vocabulary is for files of counts")
    if source.kind == "table":
        if column is None:
            raise ValueError(f"{path} is a table: say which column holds the texts")
        return read_table(source.path, column, encoding=encoding, **text_options)
    return read_text(source.path, documents=documents, encoding=encoding, **text_options)


def read_ldac(path: str | os.PathLike[str], vocabulary: Vocabulary | None = None) -> Corpus:
    """Read a corpus in the format of Blei's lda-c: a document a line, ``M term:count ...``.

    Parameters
    ----------
    path : path
        Line d says how many different words M document d has, and then, for each, the word's
        number (from 0) and its count. An empty document is the line ``0``.
    vocabulary : path or sequence of str, optional
        Word j, or a file with word j on line j + 1. Without it the largest number in the file
        tells the number of words.

    Raises
    ------
    ValueError
        Naming file and line: if M is not the number of entries (a truncated line), an entry is
        not ``term:count``, a word comes twice in a line or its number is not below the
        vocabulary's size.
    """
    path = Path(path)
    words = _as_words(vocabulary)
    indptr, indices, counts = [0], [], []
    lines = _read(path, "utf-8").splitlines()
    if not lines:
        raise ValueError(f"{path}: the file is empty")
    for number, line in enumerate(lines, start=1):
        ids, amounts = _parse_ldac_line(line, f"{path}, line {number}", words)
        indices += ids
        counts += amounts
        indptr.append(len(indices))
    num_words = len(words) if words is not None else max(indices, default=-1) + 1
    matrix = scipy.sparse.csr_array(
        (np.array(counts, dtype=np.int64), np.array(indices, dtype=np.int64), indptr),
        shape=(len(lines), num_words),
    )
    return as_corpus(matrix, words)


def _parse_ldac_line(line: str, place: str, words: list[str] | None) -> tuple[list[int], list[int]]:
    first, *entries = line.split() or ["(nothing)"]
    if not first.isdecimal():
        raise ValueError(f"{place}: expected the number of entries, got {first!r}")
    if int(first) != len(entries):
        raise ValueError(
            f"{place}: announces {first} entries but has {len(entries)} (a truncated file?)"
        )
    ids, amounts = [], []
    for entry in entries:
        word, _, amount = entry.partition(":")
        if not (word.isdecimal() and amount.isdecimal()):
            raise ValueError(f"{place}: expected term:count, both whole numbers, got {entry!r}")
        ids.append(int(word))
        amounts.append(int(amount))
    if ids and words is not None and max(ids) >= len(words):
        raise ValueError(
            f"{place}: word number {max(ids)} is beyond the vocabulary of {len(words)} words"
            " (numbers start at 0)"
        )
    if len(set(ids)) < len(ids):
        twice = next(i for i in ids if ids.count(i) > 1)
        raise ValueError(f"{place}: word number {twice} comes twice")
    return ids, amounts


def read_npz(path: str | os.PathLike[str], vocabulary: Vocabulary | None = None) -> Corpus:
    """Read a sparse matrix of counts, documents by words, written by `scipy.sparse.save_npz`.

    Parameters
    ----------
    path : path
    vocabulary : path or sequence of str, optional
        The word of each column, or a file with a word a line.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:  # numpy leaves a broken file open that it opened itself
            matrix = scipy.sparse.csr_array(scipy.sparse.load_npz(file))
        matrix.check_format(full_check=True)
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(
            f"{path}: not a sparse matrix as scipy.sparse.save_npz writes it ({error})"
        ) from None
    try:
        return as_corpus(matrix, _as_words(vocabulary))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def read_text(
    path: str | os.PathLike[str],
    *,
    documents: Literal["lines", "paragraphs"] = "lines",
    encoding: str = "utf-8",
    **text_options: Unpack[TextOptions],
) -> Corpus:
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
        How words are chosen: see `corpus_from_texts`.

    Returns
    -------
    Corpus
        Its names are the files' paths inside the folder, or ``line 7`` for what starts there.
    """
    path = Path(path)
    if documents not in ("lines", "paragraphs"):
        raise ValueError(f"documents must be 'lines' or 'paragraphs', got {documents!r}")
    if path.is_dir():
        files = sorted(f for f in path.rglob("*") if f.is_file() and _suffix(f) == ".txt")
        if not files:
            raise ValueError(f"{path}: no .txt or .txt.gz file in this folder")
        texts = [_read(file, encoding) for file in files]
        names = [file.relative_to(path).as_posix() for file in files]
    else:
        starts, texts = _documents_of(_read(path, encoding), documents)
        if not texts:
            raise ValueError(f"{path}: the file is empty")
        names = [f"line {start}" for start in starts]
    try:
        return corpus_from_texts(texts, names=names, **text_options)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _documents_of(text: str, documents: str) -> tuple[list[int], list[str]]:
    """First lines (from 1) and texts of the documents in one file."""
    starts: list[int] = []
    texts: list[str] = []
    inside = False
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            inside = False
        elif inside and documents == "paragraphs":
            texts[-1] += "\n" + line
        else:
            inside = True
            starts.append(number)
            texts.append(line)
    return starts, texts


def read_table(
    path: str | os.PathLike[str],
    column: str,
    *,
    encoding: str = "utf-8",
    **text_options: Unpack[TextOptions],
) -> Corpus:
    """Read one column of texts from a table, a document a row.

    Parameters
    ----------
    path : path
        ``.csv`` or ``.tsv`` with a header row, or ``.jsonl`` or ``.ndjson`` with an object a line;
        also compressed, ``.gz``.
    column : str
        The name of the column. A missing value is an empty document.
    encoding : str
    **text_options
        How words are chosen: see `corpus_from_texts`.
    """
    path = Path(path)
    text = _read(path, encoding)
    suffix = _suffix(path)
    if suffix in (".jsonl", ".ndjson"):
        texts = _json_column(text, path, column)
    elif suffix in (".csv", ".tsv"):
        texts = _csv_column(text, path, column, delimiter="\t" if suffix == ".tsv" else ",")
    else:
        raise ValueError(f"{path}: the name of a table must end in {', '.join(_TABLES)}")
    if not texts:
        raise ValueError(f"{path}: the table has no rows")
    try:
        return corpus_from_texts(texts, **text_options)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _csv_column(text: str, path: Path, column: str, delimiter: str) -> list[str]:
    usual_limit = csv.field_size_limit(2**31 - 1)  # a cell can hold a whole book
    try:
        reader = csv.reader(text.splitlines(keepends=True), delimiter=delimiter, strict=True)
        header = next(reader, [])
        if column not in header:
            raise ValueError(f"{path}: no column {column!r} among {header}")
        place = header.index(column)
        texts = []
        for row in reader:
            if row and len(row) != len(header):
                raise ValueError(
                    f"{path}, line {reader.line_num}: {len(row)} cells under a header of"
                    f" {len(header)} (a cell with {delimiter!r} in it needs quotes)"
                )
            if row:
                texts.append(row[place])
        return texts
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num}: {error}") from None
    finally:
        csv.field_size_limit(usual_limit)


def _json_column(text: str, path: Path, column: str) -> list[str]:
    texts = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        place = f"{path}, line {number}"
        try:
            row: Any = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"{place}: not JSON ({error.msg}, column {error.colno})") from None
        if not isinstance(row, dict):
            raise ValueError(f"{place}: expected an object, got {type(row).__name__}")
        if column not in row:
            raise ValueError(f"{place}: no {column!r} among {list(row)}")
        value = "" if row[column] is None else row[column]
        if not isinstance(value, str):
            raise ValueError(f"{place}: {column!r} must be a string, got {value!r}")
        texts.append(value)
    return texts


def _suffix(path: Path) -> str:
    """The last part of the name, lower case, a ``.gz`` looked through."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def _vocabulary_beside(path: Path) -> Path | None:
    candidates = (path.with_name("vocab.txt"), path.with_name("vocab.txt.gz"))
    return next((file for file in candidates if file.is_file()), None)


def _as_words(vocabulary: Vocabulary | None) -> list[str] | None:
    if vocabulary is None:
        return None
    if isinstance(vocabulary, str | os.PathLike):
        words = [line.strip() for line in _read(Path(vocabulary), "utf-8").splitlines()]
        if "" in words:
            raise ValueError(f"{vocabulary}, line {words.index('') + 1}: a blank line, not a word")
        return words
    return [str(word) for word in vocabulary]


def _first_line(path: Path) -> bytes:
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            return file.readline(2**20)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        return b""  # `_read` says what is wrong


def _read(path: Path, encoding: str) -> str:
    """A file's text, decompressed; newlines are as in the file, a byte order mark is dropped."""
    if path.is_dir():
        raise IsADirectoryError(f"{path}: a folder, expected a file")
    try:
        data = path.read_bytes()
        if path.suffix == ".gz":
            data = gzip.decompress(data)
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: no such file") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path}: damaged or truncated gzip data ({error})") from None
    if b"\0" in data[:65536] and "16" not in encoding and "32" not in encoding:
        raise ValueError(f"{path}: a binary file, expected text")
    try:
        return data.decode(encoding).removeprefix("\N{BYTE ORDER MARK}")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{path}, line {line}: byte 0x{data[error.start]:02x} is not {encoding}"
            " (pass encoding='latin-1' or what the file was written in)"
        ) from None

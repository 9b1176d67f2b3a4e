r"""Corpora larger than memory: `read_corpus`, but from files to disk.

Texts are read once. Each document's words are numbered in order of appearance and written with
their counts. Up to half a million different words are held in memory; beyond that they are sorted
and written to disk as well, and their counts are added up at the end. Only then is it known which
words to keep, and a second pass, over the numbers, leaves out the others.

>>> import tempfile
>>> from pathlib import Path
>>> with tempfile.TemporaryDirectory() as folder:
...     _ = Path(folder, "speeches.txt").write_text("Peace and trade\nWar, and war again\n")
...     corpus = pack_files(f"{folder}/speeches.txt", f"{folder}/corpus", progressbar=False)
...     print(corpus, corpus.vocabulary)
Corpus(2 documents, 3 words, 4 tokens) ['peace' 'trade' 'war']
"""

import json
import os
import time
import zipfile
import zlib
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from heapq import merge
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any, Literal, Unpack

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from pgmult.core.arguments import as_choice, as_flag, as_kind, as_path
from pgmult.core.mapped import ArrayWriter
from pgmult.core.sealed import array_header
from pgmult.core.terminal import StatusLine
from pgmult.datasets import files, readers
from pgmult.datasets.columns import cells_of_file, kind_of_cell, labels_of_cells
from pgmult.datasets.text import LOOKED_AT, Dropped, Text, TextOptions, WordChoices, tokens_of
from pgmult.topics.data.corpus import Corpus, as_corpus
from pgmult.topics.data.documents import Losses
from pgmult.topics.data.packed import CorpusWriter, open_corpus

_RAW = {"indptr": np.int64, "words": np.int32, "counts": np.int32}  # before words are chosen
_CSR = ("indptr", "indices", "data")
_MOST_WORDS = 500_000  # different ones in memory
_ROWS = 4096  # documents that are looked at together
_SHOW_SECONDS = 0.5
_LOG_SECONDS = 60.0  # between lines where nothing can be rewritten


def pack_files(
    path: str | os.PathLike[str], out: str | os.PathLike[str], *,
    vocabulary: readers.Vocabulary | None = None, column: str | None = None,
    names: str | None = None, documents: Literal["lines", "paragraphs"] = "lines",
    delimiter: str | None = None, encoding: str | None = None, progressbar: bool = True,
    **text_options: Unpack[TextOptions],
) -> Corpus:  # fmt: skip
    """Read a corpus of any size, in one pass, into a folder that `pgmult.topics.open_corpus` opens.

    The packed corpus is what `read_corpus` makes of the same files, without the texts and the
    columns of a table.

    Parameters
    ----------
    path : path
        What `read_corpus` reads.
    out : path
        A new or empty folder.
    vocabulary, column, documents, delimiter, encoding
        As in `read_corpus`.
    names : str, optional
        The column of a table that names the documents.
    progressbar : bool
        Show progress on the error stream.
    **text_options
        How words are chosen: see `pgmult.datasets.text.WordChoices`. Only for texts.

    Returns
    -------
    Corpus
        The packed one, opened. `pgmult.topics.data.packed.losses_of` lists what was lost.

    Raises
    ------
    OSError
        If a file cannot be opened, or `out` is occupied.
    ValueError
        If a file cannot be understood, or an argument does not fit its kind.
    ImportError
        If it is a ``.parquet`` and pyarrow is missing.

    Notes
    -----
    Memory: about 200 MB, plus the words that are kept. A sparse matrix whose rows are not
    compressed (``format`` other than "csr") is read whole. While packing, texts take twice the size
    of the packed corpus on disk.
    """
    source = readers.recognise(path)
    out = as_path(out, "out")
    as_choice(documents, "documents", ("lines", "paragraphs"))
    enabled = as_flag(progressbar, "progressbar")
    if source.kind == "packed corpus":
        raise ValueError(f"{path} is a packed corpus already: pgmult.topics.open_corpus opens it")
    readers.refuse_choices(source, vocabulary, text_options)
    if names is not None and source.kind != "table":
        raise ValueError(f"names are a column of a table, and {path} is a {source.kind}")
    are_texts = source.kind == "folder of text"
    meter = files.Meter(
        readers.texts_in(source.path) if are_texts else files.tables_of(source.path)
    )
    with CorpusWriter(out) as writer, closing(_Progress(meter, enabled)) as progress:
        if source.kind in readers.COUNTED:
            _pack_counts(source, vocabulary, writer, progress)
        else:
            texts, kinds = readers.texts_of(source.path, documents, encoding, meter), {"str"}
            if source.kind == "table":
                if column is None:
                    raise ValueError(f"{path}: say which column holds the texts")
                chosen = [as_kind(column, "column", str)]
                chosen += [] if names is None else [as_kind(names, "names", str)]
                rows, kinds = cells_of_file(source.path, chosen, delimiter, encoding, meter), set()
                texts = _texts_in(rows, source.path, chosen, kinds)
            choices = WordChoices(**text_options)
            _pack_texts(texts, kinds, choices, source.path, writer, progress)
    return open_corpus(out)


def _pack_counts(
    source: readers.Source, vocabulary: Any, writer: CorpusWriter, progress: "_Progress"
) -> None:
    """Pack counts, some documents at a time; a file whose words are added up is read whole."""
    named = source.vocabulary if vocabulary is None else vocabulary
    words = readers.as_words(named)
    if files.suffix_of(source.path) == ".mtx" or len({*(words or ())}) < len(words or ()):
        corpus = readers.read_counts(source, named)
        words = None if corpus.vocabulary is None else corpus.vocabulary.tolist()
        blocks: Iterable[Corpus] = [corpus]
    elif source.kind == "LDA-C":
        blocks = readers.ldac_blocks(source.path, words, progress.meter)
    else:
        blocks = _npz_blocks(source.path, words)
    for corpus in blocks:
        writer.append(np.diff(corpus.indptr), corpus.words, corpus.counts)
        progress.show("reading", writer.num_documents, writer.num_tokens)
    writer.finish(corpus.num_words, None if words is None else np.array(words))


def _texts_in(
    rows: Iterable[tuple[Any, ...]], path: Path, columns: list[str], kinds: set[str]
) -> Iterator[tuple[Any, Text]]:
    """The name, None if there are none, and the text of each row; kinds of names go to `kinds`."""
    of_csv, of_texts = path.is_file() and files.form_of(path) in files.DELIMITED, set[str]()
    for number, (text, *name) in enumerate(rows):
        tokens = tokens_of([text])
        if text is not None:
            of_texts.add("str" if tokens else kind_of_cell(text, of_csv=of_csv))
        for cell in name:
            if cell is None or cell != cell:
                what = f"column {columns[1]!r} must have a value in every row"
                raise ValueError(f"{path}: {what}, got none at row {number}")
            kinds.add(kind_of_cell(cell, of_csv=of_csv))
        if tokens is None and not isinstance(text, str):
            text = "" if text is None else json.dumps(text)
        yield (name[0] if name else None), text if tokens is None else tokens[0]
    if of_texts and "str" not in of_texts:
        raise ValueError(f"{path}: text must be a column of strings, {columns[0]!r} has none")


def _pack_texts(
    texts: Iterator[tuple[object, Text]], kinds: set[str], choices: WordChoices, path: Path,
    writer: CorpusWriter, progress: "_Progress",
) -> None:  # fmt: skip
    begun = list(islice(texts, LOOKED_AT))
    choices = choices.for_texts([text for _, text in begun])
    dropped, words = Dropped(), _Words(writer.folder)
    ends, ids, counts = waiting = array("q", [0]), array("i"), array("i")
    with ExitStack() as stack:
        made = (ArrayWriter(writer.folder / f"raw-{x}.npy", kind) for x, kind in _RAW.items())
        raw = [*map(stack.enter_context, made)]
        for name, text in chain(begun, texts):
            counted = choices.words_of(text, dropped)
            ids.extend(words.number(counted))
            counts.extend(counted.values())
            ends.append(raw[1].length + len(ids))
            if name is not None:
                writer.name([name])
            if len(ids) >= 2**18 or len(ends) >= 2**16:
                _flush(raw, waiting)
                progress.show("reading", words.num_documents, words.num_tokens)
        _flush(raw, waiting)
        indptr, tokens, amounts = (file.finish().open() for file in raw)
    with files.errors_at(path):
        dropped.refuse_unsegmented()
        read = ((word, count, spread) for word, _, count, spread in words.merged())
        vocabulary, left_out = choices.choose(read, words.num_documents)
    corpus = Corpus(indptr, tokens, amounts, num_words=words.num_different)
    emptied = _rewrite(corpus, words.columns(vocabulary), writer, progress)
    documents = words.num_documents, words.num_empty, emptied
    of_words = words.num_different, words.num_tokens
    losses = Losses(*documents, *of_words, left_out, choices.ngrams)
    label = labels_of_cells(kinds) if kinds else None
    writer.finish(len(vocabulary), np.array(vocabulary), label=label, losses=dropped.added(losses))


def _flush(raw: Iterable[ArrayWriter], waiting: Iterable["array[int]"]) -> None:
    """Write the numbers that wait, and forget them."""
    for file, numbers in zip(raw, waiting, strict=True):
        file.append(np.array(numbers))
        del numbers[:]


def _rewrite(
    corpus: Corpus, columns: NDArray[np.int32], writer: CorpusWriter, progress: "_Progress"
) -> int:
    """Write the words that stay under their new numbers; how many documents lost all of theirs."""
    emptied = 0
    for block in map(corpus.rows, corpus.pieces()):
        before = np.diff(block.indptr)
        document = np.repeat(np.arange(len(before)), before)
        column = columns[block.words]
        order = np.lexsort((column, document))
        order = order[column[order] >= 0]
        after = np.bincount(document[order], minlength=len(before))
        emptied += int(np.count_nonzero((before > 0) & (after == 0)))
        writer.append(after, column[order], block.counts[order])
        progress.show("writing", writer.num_documents, writer.num_tokens)
    return emptied


class _Words:
    """Numbers of words, in the order in which they come, and how often each of them came.

    Of more than `_MOST_WORDS` different ones those so far go to a file, sorted; a word that comes
    again gets another number.
    """

    def __init__(self, folder: Path):
        self._folder = folder
        self._files: list[Path] = []
        self._first = 0
        self._ids: dict[str, int] = {}
        self._counts, self._spread = array("q"), array("q")
        self.num_documents = self.num_empty = self.num_tokens = self.num_different = 0

    def number(self, words: Counter[str]) -> list[int]:
        """The numbers of one document's words."""
        if len(self._ids) > _MOST_WORDS:
            self._put_away()
        numbers = []
        for word, count in words.items():
            place = self._ids.setdefault(word, len(self._ids))
            if place == len(self._counts):
                self._counts.append(0)
                self._spread.append(0)
            self._counts[place] += count
            self._spread[place] += 1
            numbers.append(self._first + place)
        self.num_documents += 1
        self.num_empty += not words
        self.num_tokens += words.total()
        return numbers

    def _sorted(self) -> Iterator[list[Any]]:
        for word, place in sorted(self._ids.items()):
            yield [word, self._first + place, self._counts[place], self._spread[place]]

    def _put_away(self) -> None:
        self._files.append(self._folder / f"raw-words-{len(self._files)}.txt")
        with self._files[-1].open("w", encoding="ascii") as file:
            file.writelines(json.dumps(item) + "\n" for item in self._sorted())
        self._first += len(self._ids)
        self._ids = {}
        self._counts, self._spread = array("q"), array("q")

    def merged(self) -> Iterator[tuple[str, list[int], int, int]]:
        """Words in alphabetical order: all numbers, the count and the number of documents."""
        self.num_different = 0
        every = merge(*map(_items_of, self._files), self._sorted())
        for word, same in groupby(every, key=lambda item: item[0]):
            _, numbers, counts, spread = zip(*same, strict=True)
            self.num_different += 1
            yield word, list(numbers), sum(counts), sum(spread)

    def columns(self, vocabulary: list[str]) -> NDArray[np.int32]:
        """The place of each number's word among those kept, -1 if it is none of them."""
        size = self._first + len(self._ids)
        columns = np.memmap(self._folder / "raw-columns", np.int32, "w+", shape=(max(1, size),))
        places = {word: place for place, word in enumerate(vocabulary)}
        for word, numbers, _, _ in self.merged():
            columns[numbers] = places.get(word, -1)
        return np.asarray(columns)


def _items_of(path: Path) -> Iterator[list[Any]]:
    with path.open(encoding="ascii") as file:
        yield from map(json.loads, file)


def _npz_blocks(path: Path, words: list[str] | None) -> Iterator[Corpus]:
    first = 0
    for block in _csr_blocks(path) or [readers.read_npz(path, words)]:
        with files.errors_at(f"{path}, counted from row {first}", kinds=(TypeError, ValueError)):
            corpus = as_corpus(block, None if first else words)
        yield corpus
        first += corpus.num_documents
    if not first:
        raise ValueError(f"{path}: a matrix without rows")


def _csr_blocks(path: Path) -> Iterator[scipy.sparse.csr_array] | None:
    """Rows of a matrix whose rows are compressed, some at a time; None if it is another."""
    try:
        with zipfile.ZipFile(path) as file, np.load(path, allow_pickle=False) as small:
            name = small["format"].item()
            if name not in (b"csr", "csr"):
                return None
            num_rows, num_words = map(int, small["shape"])
            lengths = [_Member(file, name).length for name in _CSR]
    except Exception:  # `read_npz` says what is wrong
        return None
    if lengths[0] != num_rows + 1 or lengths[1] != lengths[2]:
        return None
    return _rows_of(path, num_rows, num_words)


def _rows_of(path: Path, num_rows: int, num_words: int) -> Iterator[scipy.sparse.csr_array]:
    damages = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError)
    with files.errors_at(path, "a damaged archive", damages), zipfile.ZipFile(path) as file:
        indptr, indices, data = (_Member(file, name) for name in _CSR)
        last = indptr.read(1)
        if last[0] != 0:
            raise ValueError(f"{path}: its indptr must begin with 0, got {last[0]}")
        for start in range(0, num_rows, _ROWS):
            count = min(_ROWS, num_rows - start)
            ends = np.concatenate([last, indptr.read(count)]).astype(np.int64)
            if np.any(np.diff(ends) < 0) or ends[-1] > indices.length:
                raise ValueError(f"{path}: its indptr must not decrease, nor pass its entries")
            size = int(ends[-1] - ends[0])
            entries = data.read(size), indices.read(size), ends - ends[0]
            with files.errors_at(path):
                block = scipy.sparse.csr_array(entries, shape=(count, num_words))
            yield block
            last = ends[-1:]


class _Member:
    """A vector in an ``.npz``, some numbers at a time."""

    def __init__(self, file: zipfile.ZipFile, name: str):
        self._stream = file.open(f"{name}.npy")
        (self.length,), _, self._dtype = array_header(self._stream)
        if self._dtype.hasobject:
            raise ValueError("it holds objects")

    def read(self, count: int) -> NDArray[np.generic]:
        content = self._stream.read(count * self._dtype.itemsize)
        return np.frombuffer(content, self._dtype)


class _Progress:
    """How far packing is: a line that rewrites itself, or a line a minute."""

    def __init__(self, meter: files.Meter, enabled: bool):
        self.meter = meter
        self._line = StatusLine()
        self._enabled = enabled and self._line.is_open
        self._began = self._said = time.monotonic()

    def show(self, doing: str, documents: int, words: int) -> None:
        """Show the progress, if the last time is long enough ago."""
        now = time.monotonic()
        wait = _SHOW_SECONDS if self._line.is_terminal else _LOG_SECONDS
        if not self._enabled or now < self._said + wait:
            return
        self._said = now
        line = f"{doing}: {documents:,} documents, {words:,} words"
        share = self.meter.done / max(1, self.meter.total)
        if doing == "reading" and share > 0.0:
            left = (now - self._began) * (1.0 - share) / share
            line += f", {share:.0%} of the files, {left:.0f} s left"
        self._line.show(line)

    def close(self) -> None:
        """Leave the last line standing."""
        self._line.finish()

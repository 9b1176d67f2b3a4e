"""Corpora larger than memory: a folder of arrays that stay on disk.

::

    corpus/
      corpus.json       sizes; the arrays' lengths, dtypes and checksums; what was lost in counting
      indptr.npy        of a `Corpus`, as are all of these
      words.npy
      counts.npy
      vocabulary.npy    if the words are known
      names.npy         if the documents have names

`pack_corpus` writes it from counts, in one pass over blocks of documents;
`pgmult.datasets.pack_files` from files. `open_corpus` gives a `Corpus` whose arrays are read from
disk when a sweep touches them: the same draws as the same corpus in memory. A file that was damaged
since, even by one bit, is refused: see `pgmult.core.mapped`.

The folder is written under another name and renamed at the end, so it is never incomplete.

>>> import numpy as np, tempfile
>>> counts = np.random.default_rng(0).poisson(0.5, size=(20, 30))
>>> with tempfile.TemporaryDirectory() as folder:
...     corpus = pack_corpus(counts, f"{folder}/corpus")
...     print(open_corpus(f"{folder}/corpus"))
Corpus(20 documents, 30 words, 326 tokens)
"""

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmult.core.arguments import as_path, as_strings
from pgmult.core.mapped import ArrayFile, ArrayWriter, pieces
from pgmult.core.sealed import locked, read_json, reading, sync_folder, write_json
from pgmult.core.typing import IntArray
from pgmult.topics.data.corpus import Corpus, corpus_from
from pgmult.topics.data.documents import Losses, WordLoss

SCHEMA = 2
_MANIFEST = "corpus.json"
_DTYPES = {"indptr": "<i8", "words": "<i4", "counts": "<i4"}


def pack_corpus(
    counts: Any, out: str | os.PathLike[str], *,
    vocabulary: Sequence[str] | NDArray[np.str_] | None = None,
) -> Corpus:  # fmt: skip
    """Write a corpus to a folder, from which `open_corpus` maps it into memory.

    Parameters
    ----------
    counts : Corpus, matrix or array; or a list or an iterator of these
        What `as_corpus` takes; of a list or an iterator blocks of documents, one below the other,
        of which one is in memory at a time. A list of rows of numbers is one matrix. Names of
        documents are packed if all blocks have them; texts, columns and covariates are not:
        `pgmult.topics.with_covariates` takes the opened corpus.
    out : path
        A new or empty folder.
    vocabulary : sequence of str, optional
        One word per column; that of the first block if left out.

    Returns
    -------
    Corpus
        The packed one, opened.

    Raises
    ------
    FileExistsError
        If something is at `out` already.
    BlockingIOError
        If another process packs there.
    ValueError
        If there is no block, or blocks differ in their number of words or in their vocabularies; or
        as `as_corpus`.
    """
    listed = counts if isinstance(counts, list | tuple) else ()  # of matrices, or rows of one
    are_blocks = [isinstance(of, Corpus) or getattr(of, "ndim", 0) == 2 for of in listed]
    in_blocks = isinstance(counts, Iterator) or (bool(are_blocks) and all(are_blocks))
    blocks = counts if in_blocks else [counts]
    words = None if vocabulary is None else np.array(as_strings(vocabulary, "vocabulary"))
    with CorpusWriter(as_path(out, "out")) as writer:
        num_words, named = None, []
        for number, block in enumerate(blocks):
            corpus = corpus_from(block, f"counts[{number}]" if in_blocks else "counts")
            size, own = corpus.num_words, corpus.vocabulary
            if num_words is None:
                num_words, words = size, own if words is None else words
            if size != num_words:
                every = f"{num_words} words in every block"
                raise ValueError(f"counts must have {every}, got {size} in block {number}")
            if not (own is None or words is None or np.array_equal(own, words)):
                raise ValueError(f"counts must have one vocabulary, block {number} has another")
            for rows in corpus.pieces():
                part = corpus.rows(rows)
                writer.append(np.diff(part.indptr), part.words, part.counts)
            named.append(corpus.names is not None)
            if corpus.names is not None:
                writer.name(corpus.names.tolist())
        if num_words is None:
            raise ValueError("counts must have at least one block of documents, got none")
        if words is not None and len(words) != num_words:
            every = f"one entry for each of the {num_words} words (columns) of counts"
            raise ValueError(f"vocabulary must have {every}, got {len(words)}")
        writer.finish(num_words, words, label=str if all(named) else None)
    return open_corpus(out)


def open_corpus(path: str | os.PathLike[str]) -> Corpus:
    """A packed corpus, its arrays left on disk until they are used.

    All of it is read once, the first time that a process opens it, to compare checksums: about a
    second for four gigabytes that the system has in memory.

    Parameters
    ----------
    path : path
        The folder.

    Raises
    ------
    FileNotFoundError
        If there is no packed corpus.
    ValueError
        If a file is damaged, naming it.
    """
    path = as_path(path)
    manifest = _manifest(path)
    arrays: dict[str, Any] = {
        name: ArrayFile(f"{path.absolute() / name}.npy", *about).open()
        for name, about in manifest["arrays"].items()
    }
    corpus = Corpus(num_words=manifest["num_words"], **arrays)
    _check(corpus, path)
    return corpus


def is_packed(path: Path) -> bool:
    """Return whether a path is a folder that `pack_corpus` wrote."""
    return (path / _MANIFEST).is_file()


def losses_of(path: Path) -> Losses | None:
    """Return the losses in counting a packed corpus; None if it came as counts."""
    losses = _manifest(path)["losses"]
    if losses is None:
        return None
    return Losses(**losses | {"left_out": tuple(WordLoss(**loss) for loss in losses["left_out"])})


def _manifest(path: Path) -> dict[str, Any]:
    file = path / _MANIFEST
    if not file.is_file():
        why = "no corpus.json, so no packed corpus (pack makes one)"
        raise FileNotFoundError(errno.ENOENT, why, str(path))
    manifest = read_json(file)
    with reading(file):
        if manifest["pgmult_corpus"] != SCHEMA:
            raise ValueError(f"its schema is {manifest['pgmult_corpus']}, not {SCHEMA}")
        arrays = {name: ArrayFile("", *about) for name, about in manifest["arrays"].items()}
        kinds = {name: arrays[name].dtype for name in _DTYPES}
        labels = {name: about.dtype[:2] for name, about in arrays.items() if name not in _DTYPES}
        if kinds != _DTYPES or not labels.items() <= {"vocabulary": "<U", "names": "<U"}.items():
            raise ValueError(f"it has arrays of other kinds, {kinds | labels}")
        if not all(type(about.length) is int for about in arrays.values()):
            raise ValueError("a length is no number")
        if type(manifest["num_words"]) is not int or "losses" not in manifest:
            raise ValueError("it does not say how many words there are, or what was lost")
    return manifest


def _check(corpus: Corpus, path: Path) -> None:
    """Compiled code trusts indices."""
    ends, entries = corpus.indptr, (len(corpus.words), len(corpus.counts))
    runs = len(ends) > 0 and ends[0] == 0 and (ends[-1], ends[-1]) == entries
    last = 0
    for piece in pieces(ends):
        runs = runs and bool(piece[0] >= last and np.all(piece[1:] >= piece[:-1]))
        last = piece[-1]
    if not runs:
        raise ValueError(f"{path / 'indptr.npy'} is damaged: it does not count the entries")
    for name, least, most in (("words", 0, corpus.num_words - 1), ("counts", 1, None)):
        for piece in pieces(getattr(corpus, name)):
            if piece.min() < least or (most is not None and piece.max() > most):
                raise ValueError(f"{path / name}.npy is damaged: it has numbers out of range")
    for name, length in (("vocabulary", corpus.num_words), ("names", corpus.num_documents)):
        labels = getattr(corpus, name)
        if labels is not None and len(labels) != length:
            raise ValueError(f"{path / name}.npy is damaged: it should have {length} entries")


class CorpusWriter:
    """Writes a packed corpus, documents in order. Use it in a ``with`` block.

    Without `finish`, nothing is left but, of a process that was killed, a folder ``NAME.part``,
    which the next one to pack there removes.
    """

    def __init__(self, out: Path):
        if out.exists() and not (out.is_dir() and not any(out.iterdir())):
            taken = "out must be a new or empty folder, and something is there"
            raise FileExistsError(errno.EEXIST, taken, str(out))
        self._out = out.absolute()
        self.folder = self._out.with_name(self._out.name + ".part")
        """Where files are written until all are complete; `finish` removes files of other kinds."""
        self.folder.mkdir(parents=True, exist_ok=True)
        why = "another process is packing a corpus there", "nothing can be written there"
        self._lock = locked(self.folder, *why)
        try:
            for left_over in self.folder.iterdir():
                if left_over.name != "lock":
                    left_over.unlink()
            self._arrays: dict[str, ArrayWriter] = {}
            for name, dtype in _DTYPES.items():
                self._write(name, np.zeros(int(name == "indptr"), dtype))
            self._names = (self.folder / "names.txt").open("w", encoding="ascii")
        except BaseException:
            self._lock.close()
            raise
        self.num_tokens = 0

    @property
    def num_documents(self) -> int:
        """So far."""
        return self._arrays["indptr"].length - 1

    def append(self, sizes: IntArray, words: NDArray[np.int32], counts: NDArray[np.int32]) -> None:
        """Write documents: entries of each, and their words, sorted in each, and counts."""
        self._arrays["indptr"].append(self._arrays["words"].length + np.cumsum(sizes))
        self._arrays["words"].append(words)
        self._arrays["counts"].append(counts)
        self.num_tokens += int(counts.sum(dtype=np.int64))

    def name(self, names: Sequence[Any]) -> None:
        """Write what the next documents are called: strings, or what `finish` makes labels of."""
        self._names.writelines(json.dumps(name, default=str) + "\n" for name in names)

    def finish(
        self, num_words: int, vocabulary: NDArray[np.str_] | None, *,
        label: Callable[[object], str] | None = None, losses: Losses | None = None,
    ) -> None:  # fmt: skip
        """Complete the folder and give it its name; documents have names if they have a `label`."""
        self._names.close()
        if vocabulary is not None:
            self._write("vocabulary", np.asarray(vocabulary, dtype=np.str_))
        if label is not None:
            self._write_names(label)
        manifest: dict[str, object] = {
            "pgmult_corpus": SCHEMA,
            "num_words": num_words,
            "arrays": {name: list(array.finish()[1:]) for name, array in self._arrays.items()},
            "losses": None if losses is None else asdict(losses),
        }
        expected = {f"{name}.npy" for name in self._arrays} | {"lock"}
        for other in self.folder.iterdir():
            if other.name not in expected:
                other.unlink()
        write_json(self.folder / _MANIFEST, manifest)
        if os.name != "posix":  # Windows renames no folder with an open file in it
            self._lock.close()
        if self._out.is_dir():
            self._out.rmdir()
        self.folder.rename(self._out)
        sync_folder(self._out.parent)
        (self._out / "lock").unlink()

    def _write(self, name: str, array: NDArray[np.generic]) -> None:
        self._arrays[name] = ArrayWriter(self.folder / f"{name}.npy", array.dtype)
        self._arrays[name].append(array)

    def _write_names(self, label: Callable[[object], str]) -> None:
        def each() -> Iterator[list[str]]:
            with (self.folder / "names.txt").open(encoding="ascii") as file:
                while lines := file.readlines(2**20):
                    yield [label(json.loads(line)) for line in lines]

        longest = max((len(name) for names in each() for name in names), default=1)
        self._write("names", np.empty(0, dtype=f"<U{max(1, longest)}"))
        for names in each():
            self._arrays["names"].append(np.array(names))

    def __enter__(self) -> "CorpusWriter":
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        self._names.close()
        for array in self._arrays.values():
            array.__exit__()
        if self.folder.exists() and kind is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
        self._lock.close()

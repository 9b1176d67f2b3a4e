"""Word counts of documents: the data type of every topic model.

A `Corpus` is a compressed sparse row matrix of counts, documents by words, with optional names.
`as_corpus` makes one from whatever the user has and is the boundary that rejects bad counts.
Empty documents and unused words are kept: they carry no information, and rows keep their numbers.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from pgmult.core.validate import as_counts

__all__ = ["Corpus", "as_corpus", "simulate_words", "split_tokens"]


@dataclass(frozen=True, slots=True, eq=False)
class Corpus:
    """Counts of words in documents. Make one with `as_corpus`, which checks its input.

    Attributes
    ----------
    indptr : int64 array, ``(num_documents + 1,)``
        Document d's entries are ``indptr[d]:indptr[d + 1]``.
    words : int32 array, ``(num_entries,)``
        Word number of each entry.
    counts : int32 array, ``(num_entries,)``
        How often that word stands in that document, >= 1.
    num_words : int
        Size of the vocabulary, unused words included.
    vocabulary : str array, ``(num_words,)``, or None
    names : str array, ``(num_documents,)``, or None
    """

    indptr: NDArray[np.int64]
    words: NDArray[np.int32]
    counts: NDArray[np.int32]
    num_words: int
    vocabulary: NDArray[np.str_] | None = None
    names: NDArray[np.str_] | None = None

    @property
    def num_documents(self) -> int:
        """Number of documents, empty ones included."""
        return len(self.indptr) - 1

    @property
    def num_tokens(self) -> int:
        """Number of words in running text."""
        return int(self.counts.sum(dtype=np.int64))

    @property
    def totals(self) -> NDArray[np.int64]:
        """Tokens of each document, ``(num_documents,)``."""
        running = np.concatenate([[0], np.cumsum(self.counts, dtype=np.int64)])
        return np.diff(running[self.indptr])

    def to_csr(self) -> "scipy.sparse.csr_array":
        """The counts as a scipy sparse array, ``(num_documents, num_words)``."""
        return scipy.sparse.csr_array(
            (self.counts, self.words, self.indptr), shape=(self.num_documents, self.num_words)
        )

    def __repr__(self) -> str:
        return (
            f"Corpus({self.num_documents:,} documents, {self.num_words:,} words,"
            f" {self.num_tokens:,} tokens)"
        )


def as_corpus(
    counts: Any,
    vocabulary: Sequence[str] | NDArray[np.str_] | None = None,
    names: Sequence[str] | NDArray[np.str_] | None = None,
) -> Corpus:
    """A `Corpus` from a scipy sparse matrix, a dense array or another corpus.

    Parameters
    ----------
    counts : sparse matrix or array, ``(num_documents, num_words)``
        Non-negative integers, in any integer or float dtype. Duplicates are added up.
    vocabulary : sequence of str, optional
        One word a column.
    names : sequence of str, optional
        One name a document.

    Raises
    ------
    ValueError
        If a count is negative, fractional, nan, infinite or above 2**31 - 1; if the shape is not
        two-dimensional; if `vocabulary` or `names` has the wrong length.
    """
    if isinstance(counts, Corpus):
        if vocabulary is None and names is None:
            return counts
        vocabulary = counts.vocabulary if vocabulary is None else vocabulary
        names = counts.names if names is None else names
        counts = counts.to_csr()
    table = counts if scipy.sparse.issparse(counts) else as_counts(counts)
    if table.ndim != 2:
        raise ValueError(
            f"counts must be documents by words, got {table.ndim} axes (shape {table.shape})"
        )
    matrix = scipy.sparse.csr_array(table, copy=True)
    entries = _checked_entries(matrix)
    matrix = scipy.sparse.csr_array((entries, matrix.indices, matrix.indptr), shape=matrix.shape)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    if matrix.nnz and matrix.data.max() > np.iinfo(np.int32).max:
        raise ValueError(f"counts must be below 2**31, got {matrix.data.max()}")
    num_documents, num_words = matrix.shape
    return Corpus(
        indptr=matrix.indptr.astype(np.int64),
        words=matrix.indices.astype(np.int32),
        counts=matrix.data.astype(np.int32),
        num_words=num_words,
        vocabulary=_as_names(vocabulary, "vocabulary", num_words, "words (columns)"),
        names=_as_names(names, "names", num_documents, "documents (rows)"),
    )


def _checked_entries(matrix: "scipy.sparse.csr_array") -> NDArray[np.int64]:
    """The stored entries as integers; an error names the row and column of a bad one."""
    try:
        return as_counts(matrix.data)
    except ValueError:
        data = matrix.data
        whole = data == np.floor(data)
        entry = int(np.argmin(np.isfinite(data) & (data >= 0) & (data < 2**63) & whole))
        row = int(np.searchsorted(matrix.indptr, entry, side="right")) - 1
        fraction = np.isfinite(data[entry]) and not whole[entry]
        hint = " (did you pass proportions or tf-idf weights?)" if fraction else ""
        raise ValueError(
            f"counts must be non-negative integers, got {data[entry]} at row {row},"
            f" column {int(matrix.indices[entry])}{hint}"
        ) from None


def _as_names(
    names: Sequence[str] | NDArray[np.str_] | None, argument: str, length: int, what: str
) -> NDArray[np.str_] | None:
    if names is None:
        return None
    array = np.asarray(names, dtype=np.str_)
    if array.shape != (length,):
        raise ValueError(
            f"{argument} must have one entry for each of the {length} {what}, got {array.shape}"
        )
    return array


def simulate_words(
    rng: np.random.Generator,
    assignments: NDArray[np.int64],
    topics: NDArray[np.float64],
    like: Corpus,
) -> Corpus:
    """Draw a word for every token given its topic.

    Parameters
    ----------
    assignments : int array, ``(num_tokens,)``
        Topic of each token, document after document.
    topics : array, ``(num_topics, num_words)``
        Rows sum to 1.
    like : Corpus
        Sets the documents' lengths, and all else that a corpus holds.

    Returns
    -------
    Corpus
        One entry a token, in the order of `assignments`: words may repeat in a document.
    """
    words = np.empty(len(assignments), dtype=np.int32)
    for k in range(len(topics)):
        running = np.cumsum(topics[k])
        here = assignments == k
        u = rng.random(np.count_nonzero(here)) * running[-1]
        words[here] = np.searchsorted(running, u, side="right")
    return replace(
        like,
        indptr=np.concatenate([[0], np.cumsum(like.totals)]),
        words=words,
        counts=np.ones(len(words), dtype=np.int32),
    )


def split_tokens(
    corpus: Corpus, documents: int, observed: float = 0.5, *, random_seed: int = 0
) -> tuple[Corpus, Corpus]:
    """Hold out part of the tokens of some documents, for document completion.

    Parameters
    ----------
    corpus : Corpus
    documents : int
        How many documents lose tokens, chosen at random.
    observed : float
        Share of a chosen document's tokens that stay, rounded up, in (0, 1).
    random_seed : int

    Returns
    -------
    training, held_out : Corpus
        Both with all rows and all words; their counts add up to `corpus`.
    """
    if not 0.0 < observed < 1.0:
        raise ValueError(f"observed must be a share between 0 and 1, got {observed}")
    if not 0 < documents <= corpus.num_documents:
        raise ValueError(f"documents must be from 1 to {corpus.num_documents}, got {documents}")
    rng = np.random.default_rng(random_seed)
    chosen = np.sort(rng.permutation(corpus.num_documents)[:documents])
    held = scipy.sparse.lil_array((corpus.num_documents, corpus.num_words), dtype=np.int64)
    for d in chosen:
        entries = slice(corpus.indptr[d], corpus.indptr[d + 1])
        tokens = np.repeat(corpus.words[entries], corpus.counts[entries])
        shuffled = tokens[rng.permutation(len(tokens))]
        words, counts = np.unique(shuffled[math.ceil(len(tokens) * observed) :], return_counts=True)
        held[d, words] = counts
    held_out = held.tocsr()
    return (
        as_corpus(corpus.to_csr() - held_out, corpus.vocabulary, corpus.names),
        as_corpus(held_out, corpus.vocabulary, corpus.names),
    )

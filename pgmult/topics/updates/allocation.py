"""Shared methods of topic models that hold theta and the topics: z and its counts.

Given topic proportions theta ``(num_documents, num_topics)`` and word probabilities of topics
``(num_topics, num_words)``, the tokens are independent. Their topics z are one exact draw, kept
as counts; summed out, they leave a word's probability (theta @ topics)[d, w].
"""

import copy
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pgmult.compiled.dirichlet import sample_rows
from pgmult.compiled.rows import num_workers, over_rows
from pgmult.compiled.simd import WIDTH
from pgmult.core.family import Family
from pgmult.core.typing import FloatArray, IntArray, ObservedRows
from pgmult.core.validate import new_key
from pgmult.sampling.blocks import Sums, SweepsInBlocks
from pgmult.topics.compiled.tokens import Shares, allocate, entry_probs, pad_columns, pad_rows
from pgmult.topics.data.corpus import (
    Corpus,
    corpus_from,
    refuse_to_simulate,
    simulate_words,
)
from pgmult.topics.family import TOPICS

_MOST = 2**31 - 1


def no_counts(*shape: int) -> NDArray[np.int32]:
    """Counts of words by topic before there are any: of no shape in models that keep none."""
    return np.zeros(shape or (0, 0), dtype=np.int32)


def kept_counts(topic_counts: IntArray) -> NDArray[np.int32]:
    """Topic counts as int32, the type that states hold.

    Raises
    ------
    ValueError
        If a document has 2**31 tokens of a topic.
    """
    if topic_counts.size and topic_counts.max() > _MOST:
        raise ValueError(
            f"documents must have fewer than 2**31 tokens of a topic, got {topic_counts.max()}"
        )
    return topic_counts.astype(np.int32)


def _vectors(num_rows: int, num_columns: int) -> NDArray[np.float32]:
    """Rows of whole vectors, none across two cache lines: a sixth of the time of a draw of z."""
    width, line = -(-num_columns // WIDTH) * WIDTH, 16
    room = np.empty(num_rows * width + line, dtype=np.float32)
    start = -(room.ctypes.data // room.itemsize) % line
    return room[start : start + num_rows * width].reshape(num_rows, width)


class WordTables:
    """Tables for draws of z: the topics that are read, and the word counts that are written.

    Both are as large as the topics, which may be larger than a block of documents, so all blocks
    that a thread draws in a sweep share them.

    Parameters
    ----------
    topics : array, ``(num_topics, num_words)``
    num_documents : int
        At most, of a call of `allocate`.
    """

    __slots__ = ("_before", "_by_word", "_tokens", "_topics", "_word_counts")

    def __init__(self, topics: FloatArray, num_documents: int):
        num_topics, num_words = topics.shape
        self._topics = topics
        self._by_word = _vectors(num_words, num_topics)
        over_rows(pad_columns, num_words, topics, self._by_word)
        tables = num_workers(num_documents)
        self._word_counts = np.zeros((tables, num_words, num_topics), dtype=np.int32)
        self._tokens = 0  # in there, and the others:
        self._before: IntArray | None = None

    def another(self) -> "WordTables":
        """Tables of the same topics with counts of their own, for another thread."""
        other = copy.copy(self)
        other._word_counts = np.zeros_like(self._word_counts)
        other._tokens, other._before = 0, None
        return other

    def allocate(self, rng: np.random.Generator, data: Corpus, theta: FloatArray) -> IntArray:
        """Topics of documents' tokens, ``(num_documents, num_topics)``; words are counted here.

        Arguments and errors are those of `allocate_tokens`.
        """
        size = int(data.counts.sum(dtype=np.int64))
        if size > _MOST:
            raise ValueError(
                f"{data.num_documents:,} documents, a block, must have fewer than 2**31 tokens, got"
                f" {size:,} (count in larger units, or take fewer block_rows=)"
            )
        if self._tokens + size > _MOST:
            (self._before,) = (counts.T for counts in self.counts())
            self._word_counts[:], self._tokens = 0, 0
        topic_counts = np.zeros(theta.shape, dtype=np.int64)
        padded = _vectors(*theta.shape)
        over_rows(pad_rows, len(theta), theta, padded)
        statuses = over_rows(
            allocate, data.num_documents, new_key(rng), data.entries,
            Shares(padded, self._by_word, theta, self._topics), topic_counts, self._word_counts,
        )  # fmt: skip
        failed = [status - 1 for status in statuses if status]
        if failed:
            raise FloatingPointError(
                f"document {min(failed)} holds a word of probability 0 under every topic"
            )
        self._tokens += size
        return topic_counts

    def counts(self) -> tuple[IntArray]:
        """The tokens so far: one array, ``(num_topics, num_words)``, laid out word by word."""
        first, *others = self._word_counts
        total = first.astype(np.int64)
        for table in others:
            total += table
        return ((total if self._before is None else total + self._before).T,)


def allocate_tokens(
    rng: np.random.Generator, data: Corpus, theta: FloatArray, topics: FloatArray
) -> tuple[IntArray, IntArray]:
    """Draw z given theta and the topics.

    Returns
    -------
    topic_counts : int64 array, ``(num_documents, num_topics)``
    word_counts : int64 array, ``(num_topics, num_words)``
        Laid out word by word.

    Raises
    ------
    FloatingPointError
        If a document holds a word that has probability 0 under all its topics.
    """
    tables = WordTables(topics, data.num_documents)
    return tables.allocate(rng, data, theta), *tables.counts()


def sample_topics(
    rng: np.random.Generator, word_concentration: float, word_counts: IntArray
) -> FloatArray:
    """Draw word probabilities, ``(num_topics, num_words)``, given the counts of words in topics.

    The same draw as ``Dirichlet(word_concentration).condition(word_counts).sample(rng)``.
    """
    concentration = np.add(word_counts, word_concentration, order="C", dtype=np.float64)
    topics = np.empty(concentration.shape)
    over_rows(sample_rows, len(topics), new_key(rng), concentration, topics, grain=1)
    return topics


def mean_words(
    topics: FloatArray, word_counts: IntArray | NDArray[np.int32], concentration: Any
) -> FloatArray:
    """Means of what `sample_topics` draws given these counts; `topics` where there are none.

    Parameters
    ----------
    concentration : float or array that goes with the counts
        Of the Dirichlet prior, a number or one for each word.
    """
    if not word_counts.any():
        return topics
    mean = word_counts + np.asarray(concentration, dtype=np.float64)
    return np.asarray(mean / mean.sum(axis=-1, keepdims=True))


def word_probs(data: Corpus, theta: FloatArray, topics: FloatArray) -> FloatArray:
    """The probability of each entry's word in its document, theta @ topics."""
    probs = np.empty(len(data.words))
    over_rows(
        entry_probs, data.num_documents, data.indptr, data.words, np.ascontiguousarray(theta),
        np.ascontiguousarray(topics.T), probs,
    )  # fmt: skip
    return probs


class AllocatedTopics(SweepsInBlocks):
    """The methods of topic models that depend on psi, topics and topic counts alone."""

    __slots__ = ()
    link: Callable[[Any], Any]  # of those models whose proportions come from psi
    dims: ClassVar[Mapping[str, tuple[str, ...]]]
    label_rows: ClassVar[Mapping[str, str]] = {"topic": "topics"}
    many_modes: ClassVar[bool] = True
    row_dim: ClassVar[str] = "document"
    family: ClassVar[Family] = TOPICS
    summary_names: ClassVar[frozenset[str]] = frozenset({"topic_shares", "effective_topics"})
    reported_names: ClassVar[tuple[str, ...]] = ("topic_shares",)

    def as_data(self, data: Any) -> Any:
        """A corpus from a sparse matrix or array of counts: see `pgmult.topics.as_corpus`."""
        return corpus_from(data, "data")

    def coords(self, data: Any) -> Mapping[str, NDArray[Any]]:
        """Words and documents by name where the corpus has names."""
        labels = {"word": data.vocabulary, "document": data.names}
        return {dim: names for dim, names in labels.items() if names is not None}

    def simulate(self, rng: np.random.Generator, state: Any, data: Any) -> Any:
        """Documents of the same lengths: a word for every token that the state allocates."""
        refuse_to_simulate(data)
        codes, number = data.versions or (np.zeros(data.num_documents, dtype=np.int64), 1)
        rows = np.arange(state.topic_counts.shape[1]) * number + codes[:, None]
        assignments = np.repeat(rows.ravel(), state.topic_counts.ravel())
        topics = self._topics_of(state, data).reshape(-1, data.num_words)
        return simulate_words(rng, assignments, topics, data)

    def summary_table(self, state: Any, data: Any) -> FloatArray:
        """The topics word by word, ``(num_words, num_topics)``, shared by summaries of blocks."""
        return np.ascontiguousarray(self._topics_of(state, data).T)

    def local_summary(self, state: Any, data: Any, by_word: FloatArray | None = None) -> Sums:
        """Sum over a block of documents: tokens of each topic; the log likelihood."""
        if by_word is None:
            by_word = self.summary_table(state, data)
        tokens = self._corpus_of(data)
        with np.errstate(divide="ignore"):
            log_probs = np.log(word_probs(tokens, self.theta(state, data), by_word.T))
        words = float(np.sum(tokens.counts * log_probs))
        return Sums((state.topic_counts.sum(axis=0),), (np.array(words),))

    def summarized(self, name: str, state: Any, summary: Sums, data: Any) -> Any:
        """Topic shares, or the effective number of topics, from the tokens of each topic."""
        shares = _shares(summary.exact[0])
        return shares if name == "topic_shares" else _effective(shares)

    def _corpus_of(self, data: Any) -> Corpus:
        """The tokens, of the words that `_topics_of` has probabilities of."""
        tokens: Corpus = data.by_version()
        return tokens

    def _topics_of(self, state: Any, data: Any) -> FloatArray:
        """Word probabilities; of versions beside each other, as `Corpus.by_version` has them."""
        return np.asarray(state.topics.reshape(len(state.topics), -1))

    def sweep_tables(self, state: Any, data: Any) -> WordTables:
        """Tables that blocks of documents share in a sweep: topics and word counts."""
        return WordTables(self._topics_of(state, data), self._corpus_of(data).num_documents)

    def _allocate(
        self, rng: np.random.Generator, state: Any, data: Any, tables: WordTables | None
    ) -> tuple[IntArray, tuple[IntArray, ...]]:
        """Draw z of a block of documents: topic counts, and word counts if there are no tables."""
        word_tables = tables or self.sweep_tables(state, data)
        topic_counts = word_tables.allocate(rng, self._corpus_of(data), self.theta(state, data))
        return topic_counts, () if tables else word_tables.counts()

    def theta(self, state: Any, data: Any) -> FloatArray:
        """Topic proportions of each document, ``(num_documents, num_topics)``."""
        return np.asarray(self.link(data).probs(state.psi))

    def mean_theta(
        self, rng: np.random.Generator, state: Any, data: Any, rows: IntArray, draws: int
    ) -> FloatArray:
        """Topic proportions of some documents, averaged given the topics of their tokens.

        Parameters
        ----------
        rows : int array, ``(num_rows,)``
            The documents.
        draws : int
            Averaged over where their mean is not known.
        """
        return np.asarray(self.theta(state, data)[rows])

    def mean_topics(self, state: Any, data: Any) -> FloatArray:
        """Return `_topics_of`, averaged given the topics of the tokens where that is possible."""
        return self._topics_of(state, data)

    def observed_rows(self, data: Any) -> ObservedRows:
        """The documents, dense, with their totals."""
        constants = {"totals": (("document",), data.totals)}
        return ObservedRows(("document", "word"), data.to_csr().toarray(), constants)

    def row_probs(self, draw: Mapping[str, Any], data: Any) -> FloatArray:
        """Word probabilities of documents from kept ``topics`` and ``theta`` or ``psi``."""
        theta, topics = self.kept_shares(draw, "topics", data)
        if topics.ndim == 2:
            return np.asarray(theta @ topics)
        probs: FloatArray = data.versions.word_probs(theta, topics.swapaxes(0, 1))
        return probs

    def kept_shares(
        self, draw: Mapping[str, Any], words: str, data: Any
    ) -> tuple[FloatArray, FloatArray]:
        """Theta and the variable `words` of a draw; an error names what was not kept."""
        sources = [name for name in ("theta", "psi") if name in self.dims]
        if words not in draw or not set(sources) & set(draw):
            needed = f"{words} and {' or '.join(sources)}"
            raise ValueError(f"the posterior must have kept {needed} (keep=)")
        theta = draw["theta"] if "theta" in draw else self.link(data).probs(draw["psi"])
        return theta, draw[words]

    def reported(self, draw: Mapping[str, NDArray[Any]]) -> FloatArray:
        """Shares of topics, which every report begins with, if they are stored."""
        return np.asarray(draw.get("topic_shares", np.empty(0)), dtype=np.float64)[None]

    def label_probs(self, state: Any, data: Any) -> FloatArray:
        """Words of topics, in all their versions, by which topics of several chains are matched."""
        return np.asarray(
            self.mean_topics(state, data).reshape(len(self._topics_of(state, data)), -1)
        )

    def topic_shares(self, state: Any, data: Any) -> FloatArray:
        """Each topic's share of all tokens as last allocated, ``(num_topics,)``."""
        return _shares(state.topic_counts.sum(axis=0))

    def effective_topics(self, state: Any, data: Any) -> float:
        """Exponential of the entropy of the topic shares; it does not depend on labels."""
        return _effective(self.topic_shares(state, data))


def _shares(tokens: IntArray) -> FloatArray:
    return np.asarray(tokens / max(1, tokens.sum()))


def _effective(shares: FloatArray) -> float:
    used = shares[shares > 0]
    return float(np.exp(-np.sum(used * np.log(used))))

"""Shared methods of topic models that hold theta and the topics: z and its counts.

Given topic proportions theta ``(num_documents, num_topics)`` and word probabilities of topics
``(num_topics, num_words)``, the tokens are independent. Their topics z are one exact draw, kept
as counts; summed out, they leave a word's probability (theta @ topics)[d, w].
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pgmult.compiled.dirichlet import sample_rows
from pgmult.compiled.rows import num_workers, over_rows
from pgmult.compiled.simd import WIDTH
from pgmult.core.typing import Array, FloatArray, Generator, IntArray, ObservedRows
from pgmult.core.validate import new_key
from pgmult.sampling.blocks import State, SweepsInBlocks
from pgmult.topics.compiled.tokens import Shares, allocate, entry_probs, write_columns
from pgmult.topics.data.corpus import Corpus, Documents, corpus_from
from pgmult.topics.data.timed import TimedCorpus
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
    if (most := topic_counts.max(initial=0)) > _MOST:
        raise ValueError(f"documents must have fewer than 2**31 tokens of a topic, got {most}")
    return topic_counts.astype(np.int32)


def _vectors(num_rows: int, num_columns: int) -> NDArray[np.float32]:
    """Zeros in whole vectors, none across two cache lines: a sixth of the time of a draw of z."""
    width, line = -(-num_columns // WIDTH) * WIDTH, 16
    room = np.zeros(num_rows * width + line, dtype=np.float32)
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
        over_rows(write_columns, num_words, topics, self._by_word)
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

    def allocate(self, rng: Generator, data: Corpus, theta: FloatArray) -> IntArray:
        """Topics of documents' tokens, ``(num_documents, num_topics)``; words are counted here.

        Arguments and errors are those of `allocate_tokens`.
        """
        size = int(data.counts.sum(dtype=np.int64))
        if size > _MOST:
            block = f"{data.num_documents:,} documents, a block,"
            got = f"{size:,} (count in larger units, or take fewer block_rows=)"
            raise ValueError(f"{block} must have fewer than 2**31 tokens, got {got}")
        if self._tokens + size > _MOST:
            self._before = self.counts()[0].T
            self._word_counts[:], self._tokens = 0, 0
        topic_counts = np.zeros(theta.shape, dtype=np.int64)
        shares = Shares(_vectors(*theta.shape), self._by_word, theta, self._topics)
        shares.theta[:, : theta.shape[1]] = theta
        given = new_key(rng), data.entries, shares, topic_counts, self._word_counts
        statuses = over_rows(allocate, data.num_documents, *given)
        failed = [status - 1 for status in statuses if status]
        if failed:
            raise FloatingPointError(
                f"document {min(failed)} holds a word of probability 0 under every topic"
            )
        self._tokens += size
        return topic_counts

    def counts(self) -> tuple[IntArray]:
        """The tokens so far: one array, ``(num_topics, num_words)``, laid out word by word."""
        total = self._word_counts.sum(axis=0, dtype=np.int64)
        return ((total if self._before is None else total + self._before).T,)


def allocate_tokens(
    rng: Generator, data: Corpus, theta: FloatArray, topics: FloatArray
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


def sample_topics(rng: Generator, word_concentration: float, word_counts: IntArray) -> FloatArray:
    """Draw word probabilities, ``(num_topics, num_words)``, given the counts of words in topics.

    The same draw as ``Dirichlet(word_concentration).condition(word_counts).sample(rng)``.
    """
    concentration = np.add(word_counts, word_concentration, order="C", dtype=np.float64)
    topics = np.empty(concentration.shape)
    over_rows(sample_rows, len(topics), new_key(rng), concentration, topics, grain=1)
    return topics


def mean_words(
    topics: FloatArray, word_counts: IntArray | NDArray[np.int32], concentration: FloatArray | float
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
    given = np.ascontiguousarray(theta), np.ascontiguousarray(topics.T), probs
    over_rows(entry_probs, data.num_documents, data.indptr, data.words, *given)
    return probs


class AllocatedTopics(SweepsInBlocks[Documents, State], ABC):
    """The methods of all topic models, LDA included."""

    __slots__ = ()
    dims: ClassVar[Mapping[str, tuple[str, ...]]]
    label_rows: ClassVar[Mapping[str, str]] = {"topic": "topics"}
    many_modes = True
    row_dim = "document"
    family = TOPICS
    reported_names: ClassVar[tuple[str, ...]] = ("topic_shares",)

    def as_data(self, data: object) -> Any:
        """A corpus from a sparse matrix or array of counts: see `pgmult.topics.as_corpus`."""
        return corpus_from(data, "data")

    def coords(self, data: Documents) -> Mapping[str, Array]:
        """Words and documents by name where the corpus has names."""
        labels = {"word": data.vocabulary, "document": data.names}
        return {dim: names for dim, names in labels.items() if names is not None}

    @abstractmethod
    def theta(self, state: State, data: Documents) -> FloatArray:
        """Topic proportions of each document, ``(num_documents, num_topics)``."""

    @abstractmethod
    def mean_topics(self, state: State, data: Documents) -> FloatArray:
        """Mean word probabilities given the topics of the tokens, where these give it."""

    def mean_theta(
        self, rng: Generator, state: State, data: Documents, rows: IntArray, draws: int
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

    def observed_rows(self, data: Documents) -> ObservedRows:
        """The documents, dense, with their totals, and their times if they have some."""
        constants = {"totals": (("document",), data.totals)}
        if isinstance(data, TimedCorpus):
            constants["time_of_document"] = (("document",), data.time_labels[data.times])
        return ObservedRows(("document", "word"), data.to_csr().toarray(), constants)

    def row_probs(self, draw: Mapping[str, FloatArray], data: Documents) -> FloatArray:
        """Word probabilities of documents from kept ``topics`` and ``theta``."""
        if "topics" not in draw or "theta" not in draw:
            raise ValueError("the posterior must have kept topics and theta (keep=)")
        return np.asarray(draw["theta"] @ draw["topics"])

    def reported(self, draw: Mapping[str, Array]) -> FloatArray:
        """Shares of topics, which every report begins with, if they are stored."""
        return np.asarray(draw.get("topic_shares", np.empty(0)), dtype=np.float64)[None]

    def label_probs(self, state: State, data: Documents) -> FloatArray:
        """Words of topics, in all their versions, by which topics of several chains are matched."""
        return self.mean_topics(state, data)

    @abstractmethod
    def topic_shares(self, state: State, data: Documents) -> FloatArray:
        """Each topic's share of all tokens as last allocated, ``(num_topics,)``."""

    def effective_topics(self, state: State, data: Documents) -> float:
        """Exponential of the entropy of the topic shares; it does not depend on labels."""
        return effective(self.topic_shares(state, data))


def shares_of(tokens: IntArray) -> FloatArray:
    """Shares of topics in all tokens."""
    return np.asarray(tokens / max(1, tokens.sum()))


def effective(shares: FloatArray) -> float:
    """Exponential of the entropy of shares."""
    used = shares[shares > 0]
    return float(np.exp(-np.sum(used * np.log(used))))

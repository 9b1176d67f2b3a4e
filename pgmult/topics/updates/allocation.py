"""What topic models that hold theta and the topics share: z, and what follows from it.

Given topic proportions theta ``(num_documents, num_topics)`` and word probabilities of topics
``(num_topics, num_words)``, the tokens are independent. Their topics z are one exact draw, kept
as counts; summed out, they leave a word's probability (theta @ topics)[d, w].
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pgmult.compiled.rows import num_workers, over_rows
from pgmult.compiled.simd import WIDTH
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import new_key
from pgmult.sampling.blocks import Sums, log_likelihood
from pgmult.topics.compiled.tokens import allocate, entry_probs, pad_columns, pad_rows
from pgmult.topics.data.corpus import Corpus, corpus_from, simulate_words

__all__ = [
    "AllocatedTopics",
    "allocate_tokens",
    "words_log_likelihood",
]


def allocate_tokens(
    rng: np.random.Generator, data: Corpus, theta: FloatArray, topics: FloatArray
) -> tuple[IntArray, NDArray[np.int32]]:
    """Draw z given theta and the topics.

    Returns
    -------
    topic_counts : int64 array, ``(num_documents, num_topics)``
    word_counts : int32 array, ``(num_topics, num_words)``
        Laid out word by word.

    Raises
    ------
    FloatingPointError
        If a document holds a word that has probability 0 under all its topics.
    """
    topic_counts = np.zeros(theta.shape, dtype=np.int64)
    word_counts = np.zeros(
        (num_workers(data.num_documents), data.num_words, theta.shape[1]), dtype=np.int32
    )
    width = -(-theta.shape[1] // WIDTH) * WIDTH
    padded = np.empty((len(theta), width), dtype=np.float32)
    by_word = np.empty((data.num_words, width), dtype=np.float32)
    over_rows(pad_rows, len(theta), theta, padded)
    over_rows(pad_columns, data.num_words, topics, by_word)
    statuses = over_rows(
        allocate, data.num_documents, new_key(rng), data.indptr, data.words, data.counts,
        padded, by_word, theta, topics, topic_counts, word_counts,
    )  # fmt: skip
    failed = [status - 1 for status in statuses if status]
    if failed:
        raise FloatingPointError(
            f"document {min(failed)} holds a word of probability 0 under every topic"
        )
    if len(word_counts) == 1:
        return topic_counts, word_counts[0].T
    return topic_counts, word_counts.sum(axis=0, dtype=np.int32).T


def words_log_likelihood(data: Corpus, theta: FloatArray, topics: FloatArray) -> float:
    """Log probability of the words given theta and the topics, assignments summed out."""
    probs = np.empty(len(data.words))
    over_rows(
        entry_probs, data.num_documents, data.indptr, data.words,
        theta, np.ascontiguousarray(topics.T), probs,
    )  # fmt: skip
    with np.errstate(divide="ignore"):
        return float(np.sum(data.counts * np.log(probs)))


class AllocatedTopics:
    """What follows from a state's psi, topics and topic counts, whatever the prior of psi."""

    __slots__ = ()
    link: Callable[[Any], Any]  # of those models whose proportions come from psi
    label_rows: ClassVar[Mapping[str, str]] = {"topic": "topics"}
    row_dim: ClassVar[str] = "document"
    summary_names: ClassVar[frozenset[str]] = frozenset({"topic_shares", "effective_topics"})

    @property
    def in_blocks(self) -> bool:
        """Whether documents are drawn independently, given what they share."""
        return True

    def as_data(self, data: Any) -> Any:
        """A corpus from a sparse matrix or array of counts: see `pgmult.topics.as_corpus`."""
        return corpus_from(data, "data")

    def coords(self, data: Any) -> Mapping[str, NDArray[Any]]:
        """Words and documents by name where the corpus has names."""
        labels = {"word": data.vocabulary, "document": data.names}
        return {dim: names for dim, names in labels.items() if names is not None}

    def simulate(self, rng: np.random.Generator, state: Any, data: Any) -> Any:
        """Documents of the same lengths: a word for every token that the state allocates."""
        num_documents, num_topics = state.topic_counts.shape
        topic_ids = np.tile(np.arange(num_topics), num_documents)
        assignments = np.repeat(topic_ids, state.topic_counts.ravel())
        return simulate_words(rng, assignments, state.topics, data)

    def log_likelihood(self, state: Any, data: Any) -> float:
        """Log probability of the words given theta and the topics, assignments summed out."""
        return log_likelihood(self, state, data)

    def local_summary(self, state: Any, data: Any) -> Sums:
        """Of a block of documents: tokens of each topic; the log likelihood."""
        words = words_log_likelihood(
            self._corpus_of(data), self.theta(state, data), self._topics_of(state, data)
        )
        return Sums((state.topic_counts.sum(axis=0),), (np.array(words),))

    def summarized(self, name: str, state: Any, summary: Sums, data: Any) -> Any:
        """Topic shares, or how many topics that is, from the tokens of each topic."""
        shares = _shares(summary.exact[0])
        return shares if name == "topic_shares" else _effective(shares)

    def _corpus_of(self, data: Any) -> Corpus:
        """The tokens, of the words that `_topics_of` has probabilities of."""
        tokens: Corpus = data
        return tokens

    def _topics_of(self, state: Any, data: Any) -> FloatArray:
        """Word probabilities, ``(num_topics, num_words)``."""
        return np.asarray(state.topics)

    def _allocate(
        self, rng: np.random.Generator, state: Any, data: Any
    ) -> tuple[IntArray, NDArray[np.int32]]:
        """Draw z of a block of documents: see `allocate_tokens`."""
        return allocate_tokens(
            rng, self._corpus_of(data), self.theta(state, data), self._topics_of(state, data)
        )

    def theta(self, state: Any, data: Any) -> FloatArray:
        """Topic proportions of each document, ``(num_documents, num_topics)``."""
        return np.asarray(self.link(data).probs(state.psi))

    def topic_shares(self, state: Any, data: Any) -> FloatArray:
        """Each topic's share of all tokens as last allocated, ``(num_topics,)``."""
        return _shares(state.topic_counts.sum(axis=0))

    def effective_topics(self, state: Any, data: Any) -> float:
        """Exponential of the entropy of the topic shares: the same under any labels."""
        return _effective(self.topic_shares(state, data))


def _shares(tokens: IntArray) -> FloatArray:
    return np.asarray(tokens / max(1, tokens.sum()))


def _effective(shares: FloatArray) -> float:
    used = shares[shares > 0]
    return float(np.exp(-np.sum(used * np.log(used))))

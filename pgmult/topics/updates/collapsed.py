"""Collapsed Gibbs sweeps over topic assignments, theta and the topics integrated out.

Griffiths and Steyvers (2004), "Finding scientific topics". Latent Dirichlet allocation is sampled
with these sweeps; the correlated topic model starts from a few of them.

Where topics have keywords, a token that came as a keyword of topic k is assigned to num_topics + k.
"""

from dataclasses import dataclass, field

import numpy as np

from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import new_key
from pgmult.topics.compiled import collapsed
from pgmult.topics.data.corpus import Corpus, refuse_many_tokens

_BYTES = 24  # of a token: its topic, the sweep before and a copy that is kept


@dataclass(frozen=True, slots=True, eq=False)
class Allocation:
    """Every token's topic and the counts that follow from it.

    Attributes
    ----------
    assignments : int64 array, ``(num_tokens,)``
        Topic of each token; tokens stand in the order of the corpus's entries. Empty where only
        the counts were kept.
    topic_counts : int64 array, ``(num_documents, num_topics)``
    word_counts : int64 array, ``(num_words, num_topics)``
        But for those that came as keywords.
    keyword_counts : int64 array, ``(num_words, num_keyword_topics)``
        These.
    """

    assignments: IntArray
    topic_counts: IntArray
    word_counts: IntArray
    keyword_counts: IntArray = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))


def no_keywords(num_words: int, num_topics: int) -> collapsed.Keyed:
    """What sweeps take where there are no keywords."""
    none = np.zeros(0, dtype=np.int64)
    starts = np.zeros(num_words + 1, dtype=np.int64)
    return collapsed.Keyed(starts, none, np.zeros(0), np.ones(num_topics))


def count_topics(
    corpus: Corpus, assignments: IntArray, num_topics: int, num_keyword_topics: int = 0
) -> Allocation:
    """The counts of given assignments.

    Raises
    ------
    ValueError
        If there is not one assignment a token, or one is not from 0 to `num_topics` - 1, or those
        of keywords.
    """
    if assignments.shape != (corpus.num_tokens,):
        raise ValueError(
            f"assignments must have one topic for each of the {corpus.num_tokens} tokens,"
            f" got shape {assignments.shape}"
        )
    size = num_topics + num_keyword_topics
    topic_counts = np.zeros((corpus.num_documents, size), dtype=np.int64)
    word_counts = np.zeros((corpus.num_words, size), dtype=np.int64)
    status = collapsed.count_topics(corpus.entries, assignments, topic_counts, word_counts)
    if status:
        raise ValueError(
            f"assignments must be topics from 0 to {size - 1},"
            f" got {assignments[status - 1]} at position {status - 1}"
        )
    if not num_keyword_topics:
        return Allocation(assignments, topic_counts, word_counts)
    topic_counts[:, :num_keyword_topics] += topic_counts[:, num_topics:]
    in_topics = np.ascontiguousarray(topic_counts[:, :num_topics])
    plain, keyed = (np.ascontiguousarray(part) for part in np.split(word_counts, [num_topics], 1))
    return Allocation(assignments, in_topics, plain, keyed)


def random_allocation(rng: np.random.Generator, corpus: Corpus, num_topics: int) -> Allocation:
    """Topics drawn uniformly, token by token.

    Raises
    ------
    MemoryError
        If there are more tokens than there is memory for.
    """
    refuse_many_tokens(
        corpus.num_tokens, _BYTES, "LDA keeps a topic for each",
        "CorrelatedTopics and other models that hold topics keep counts",
    )  # fmt: skip
    assignments = rng.integers(num_topics, size=corpus.num_tokens)
    return count_topics(corpus, assignments, num_topics)


def collapsed_sweeps(
    rng: np.random.Generator,
    corpus: Corpus,
    allocation: Allocation,
    alpha: FloatArray,
    eta: float,
    sweeps: int = 1,
    keyed: collapsed.Keyed | None = None,
) -> Allocation:
    """Draw every token's topic anew, given all others, `sweeps` times.

    Parameters
    ----------
    alpha : array, ``(num_topics,)``
        Dirichlet concentration of topics in documents.
    eta : float
        Dirichlet concentration of words in topics.
    keyed : Keyed, optional
        Of `pgmult.topics.updates.keywords.Keywords.keyed`.

    Notes
    -----
    A sweep costs O(tokens * topics of a document + num_words * num_topics).
    """
    assignments = allocation.assignments.copy()
    topic_counts = allocation.topic_counts.copy()
    word_counts = allocation.word_counts.copy()
    tallies = collapsed.Tallies(topic_counts, word_counts, word_counts.sum(axis=0))
    of_words = keyed or no_keywords(*word_counts.shape)
    for _ in range(sweeps):
        collapsed.collapsed_sweep(
            new_key(rng), corpus.entries, assignments, alpha, eta, of_words, tallies
        )
    if keyed is not None:
        return count_topics(corpus, assignments, len(alpha), _num_keyword_topics(keyed))
    return Allocation(assignments, topic_counts, word_counts)


def _num_keyword_topics(keyed: collapsed.Keyed) -> int:
    return int(keyed.topics.max(initial=-1)) + 1

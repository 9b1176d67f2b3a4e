"""Collapsed Gibbs sweeps over topic assignments, theta and the topics integrated out.

Griffiths and Steyvers (2004), "Finding scientific topics". Latent Dirichlet allocation is sampled
with these sweeps; the correlated topic model starts from a few of them.
"""

from dataclasses import dataclass

import numpy as np

from pgmult._validate import new_key
from pgmult.compiled.tokens import collapsed_sweep
from pgmult.corpus import Corpus
from pgmult.typing import FloatArray, IntArray

__all__ = ["Allocation", "collapsed_sweeps", "count_topics", "random_allocation"]


@dataclass(frozen=True, slots=True, eq=False)
class Allocation:
    """Every token's topic and the counts that follow from it.

    Attributes
    ----------
    assignments : int64 array, ``(num_tokens,)``
        Topic of each token; tokens stand in the order of the corpus's entries.
    topic_counts : int64 array, ``(num_documents, num_topics)``
    word_counts : int64 array, ``(num_words, num_topics)``
    """

    assignments: IntArray
    topic_counts: IntArray
    word_counts: IntArray


def _tokens(corpus: Corpus) -> tuple[IntArray, IntArray]:
    """Where each document's tokens begin, and each token's word."""
    token_indptr = np.concatenate([[0], np.cumsum(corpus.totals)])
    return token_indptr, np.repeat(corpus.words, corpus.counts).astype(np.int64)


def count_topics(corpus: Corpus, assignments: IntArray, num_topics: int) -> Allocation:
    """The counts of given assignments."""
    token_indptr, words = _tokens(corpus)
    documents = np.repeat(np.arange(corpus.num_documents), np.diff(token_indptr))

    def tabulate(rows: IntArray, num_rows: int) -> IntArray:
        flat = np.bincount(rows * num_topics + assignments, minlength=num_rows * num_topics)
        return flat.reshape(num_rows, num_topics)

    return Allocation(
        assignments,
        tabulate(documents, corpus.num_documents),
        tabulate(words, corpus.num_words),
    )


def random_allocation(rng: np.random.Generator, corpus: Corpus, num_topics: int) -> Allocation:
    """Topics drawn uniformly, token by token."""
    assignments = rng.integers(num_topics, size=corpus.num_tokens)
    return count_topics(corpus, assignments, num_topics)


def collapsed_sweeps(
    rng: np.random.Generator,
    corpus: Corpus,
    allocation: Allocation,
    alpha: FloatArray,
    eta: float,
    sweeps: int = 1,
) -> Allocation:
    """Draw every token's topic anew, given all others, `sweeps` times.

    Parameters
    ----------
    alpha : array, ``(num_topics,)``
        Dirichlet concentration of topics in documents.
    eta : float
        Dirichlet concentration of words in topics.
    """
    token_indptr, words = _tokens(corpus)
    assignments = allocation.assignments.copy()
    topic_counts = allocation.topic_counts.copy()
    word_counts = allocation.word_counts.copy()
    totals = word_counts.sum(axis=0)
    for _ in range(sweeps):
        collapsed_sweep(
            new_key(rng), token_indptr, words, assignments, alpha, eta,
            topic_counts, word_counts, totals,
        )  # fmt: skip
    return Allocation(assignments, topic_counts, word_counts)

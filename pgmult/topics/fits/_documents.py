"""What the mean-field fits of topic models share: their start, and expected counts of words."""

from typing import Any

import numpy as np

from pgmult.compiled.rows import over_rows
from pgmult.core.typing import FloatArray
from pgmult.topics.compiled.variational_topics import expected_word_counts
from pgmult.topics.data.corpus import Corpus, corpus_from

__all__ = ["as_words", "word_counts"]


def as_words(counts: Any, name: str = "corpus") -> Corpus:
    """A corpus with at least one token."""
    corpus = corpus_from(counts, name)
    if corpus.num_tokens == 0:
        raise ValueError(f"{name} must have at least one token, got {corpus!r}")
    return corpus


def word_counts(
    corpus: Corpus, weights: FloatArray, theta: FloatArray, by_word: FloatArray
) -> FloatArray:
    """Expected tokens of words in topics, ``(num_topics, num_words)``.

    Each word sums over its documents in order, so the threads' split does not show.
    """
    entries = np.argsort(corpus.words, kind="stable")
    sizes = np.bincount(corpus.words, minlength=corpus.num_words)
    word_indptr = np.concatenate([[0], np.cumsum(sizes)])
    documents = np.repeat(np.arange(corpus.num_documents), np.diff(corpus.indptr))[entries]
    out = np.empty(by_word.shape)
    over_rows(
        expected_word_counts, corpus.num_words, (word_indptr, documents, entries), weights, theta,
        by_word, out,
    )  # fmt: skip
    return np.ascontiguousarray(out.T)

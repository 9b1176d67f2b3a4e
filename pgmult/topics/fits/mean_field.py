"""Steps of variational fits of topic models: data, means of theta, sums over documents."""

from collections.abc import Callable
from typing import Any

import numpy as np

from pgmult.compiled.rows import over_rows
from pgmult.core.typing import FloatArray
from pgmult.topics.compiled.variational_topics import expected_word_counts
from pgmult.topics.data.corpus import Corpus, corpus_from

_POINTS = 32  # antithetic pairs that a posterior mean of theta averages over
_ROWS = 256  # documents whose theta is averaged together
_PIECE, _MOST_PIECES = 64, 64  # of a sum over documents: size and number


def as_words(counts: object, name: str = "corpus") -> Corpus:
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
    documents = corpus.entry_documents[entries]
    out = np.empty(by_word.shape)
    given = (word_indptr, documents, entries), weights, theta, by_word, out
    over_rows(expected_word_counts, corpus.num_words, *given)
    return np.ascontiguousarray(out.T)


def as_precision(cov: FloatArray) -> FloatArray:
    """The inverse, exactly symmetric."""
    precision = np.linalg.inv(cov)
    return np.asarray(0.5 * (precision + precision.T))


def mean_theta(link: Any, means: FloatArray, precisions: Callable[..., FloatArray]) -> FloatArray:
    """Mean of link(psi) over psi ~ N(mean_d, precision_d^-1), ``(num_documents, num_topics)``.

    The average over 32 antithetic pairs, the same for every document and call. `precisions` gives
    those of some documents.
    """
    half = np.random.Generator(np.random.Philox(0)).standard_normal((_POINTS, means.shape[1]))
    parts = []
    for first in range(0, max(1, len(means)), _ROWS):
        rows = slice(first, first + _ROWS)
        roots = np.linalg.cholesky(precisions(rows)).swapaxes(1, 2)
        away = np.linalg.solve(roots, np.broadcast_to(half.T, (len(roots), *half.T.shape)))
        psi = means[rows, :, None] + np.concatenate([away, -away], axis=2)
        parts.append(link.probs(psi.swapaxes(1, 2)).mean(axis=1))
    return np.concatenate(parts)


def num_pieces(num_documents: int) -> int:
    """Number of parts of a sum over documents; it does not depend on the number of threads."""
    return max(1, min(_MOST_PIECES, -(-num_documents // _PIECE)))


def refuse_failed(statuses: list[int], what: str) -> None:
    """Raise FloatingPointError for a kernel's nonzero statuses, which are 1 + a document."""
    failed = [status - 1 for status in statuses if status]
    if failed:
        why = "probability 0 under every topic, or a covariance singular to working precision"
        raise FloatingPointError(f"document {min(failed)} has no {what}: a word of {why}")

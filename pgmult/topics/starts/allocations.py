r"""Allocations of tokens in a search: collapsed sweeps, scores, and merges of topics.

An allocation z with concentrations alpha and eta is judged by LOO = sum_i log p(w_i | z_-i, w_-i),
in nats, each word predicted from all others: among allocations of simulated documents it orders
almost exactly as the recovery of the truth does. The log joint J = log p(w, z | alpha, eta), theta
and the topics integrated out, ignores how many allocations are about as good, and so prefers
degenerate ones.

Topics are joined by the change of F = J + sum_i H(z_i | z_-i, w), which adds the entropy of every
token's topic given all others: see `merge_gains`.
"""

from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from pgmult.core.typing import FloatArray, IntArray
from pgmult.topics.compiled import starts as compiled
from pgmult.topics.compiled.collapsed import Tallies
from pgmult.topics.data.corpus import Corpus
from pgmult.topics.updates.collapsed import (
    Allocation,
    collapsed_sweeps,
    count_topics,
    random_allocation,
)
from pgmult.topics.updates.concentrations import sample_concentrations

_ROWS = 2**14  # documents that are looked at together
_ALPHA_SUM = 5.0  # of the concentrations that a search starts from
_ALPHA_SHAPE = _ALPHA_RATE = 1.0  # of their gamma priors


@dataclass(frozen=True, slots=True, eq=False)
class Searched:
    """An allocation and its concentrations: a point of a search.

    Attributes
    ----------
    allocation : Allocation
    alpha : array, ``(num_topics,)``
        Of topics in documents.
    eta : float
        Of words in topics.
    """

    allocation: Allocation
    alpha: FloatArray
    eta: float

    @property
    def num_topics(self) -> int:
        """Number of topics, K."""
        return len(self.alpha)

    @property
    def sizes(self) -> IntArray:
        """Tokens of each topic."""
        return np.asarray(self.allocation.word_counts.sum(axis=0))

    def theta(self, rows: slice = slice(None)) -> FloatArray:
        """Mean proportions given the allocation, ``(num_documents, num_topics)``, all positive."""
        smoothed = self.allocation.topic_counts[rows] + self.alpha
        return np.asarray(smoothed / smoothed.sum(axis=1, keepdims=True))

    def psi(self, link: Any) -> FloatArray:
        """Where a link has these proportions, some documents at a time."""
        count = len(self.allocation.topic_counts)
        parts = [slice(first, first + _ROWS) for first in range(0, max(1, count), _ROWS)]
        found = (link.inverse(self.theta(rows)) for rows in parts)
        psi = np.empty((count, *(first := next(found)).shape[1:]))
        for rows, values in zip(parts, chain([first], found), strict=True):
            psi[rows] = values
        return psi

    def topics(self) -> FloatArray:
        """Mean word probabilities given the allocation, ``(num_topics, num_words)``."""
        smoothed = self.allocation.word_counts.T + self.eta
        return np.asarray(smoothed / smoothed.sum(axis=1, keepdims=True))

    def swept(
        self, rng: np.random.Generator, corpus: Corpus, sweeps: int, held: int = 0
    ) -> "Searched":
        """After collapsed sweeps, alpha learned but for the first `held` of them."""
        allocation, alpha = self.allocation, self.alpha
        held = min(held, sweeps)
        if held:
            allocation = collapsed_sweeps(rng, corpus, allocation, alpha, self.eta, held)
        for _ in range(sweeps - held):
            allocation = collapsed_sweeps(rng, corpus, allocation, alpha, self.eta)
            alpha = sample_concentrations(
                rng, alpha, allocation.topic_counts, _ALPHA_SHAPE, _ALPHA_RATE
            )
        return Searched(allocation, alpha, self.eta)

    def loo(self, corpus: Corpus) -> float:
        """LOO, in O(tokens K)."""
        return float(compiled.score_tokens(*_tokens_of(self, corpus)))

    def by_size(self) -> "Searched":
        """The same, topics sorted by size."""
        return self.ordered(np.argsort(-self.sizes, kind="stable"))

    def ordered(self, order: IntArray) -> "Searched":
        """The same, topics in another order."""
        topic_counts, word_counts = (
            np.ascontiguousarray(counts[:, order])
            for counts in (self.allocation.topic_counts, self.allocation.word_counts)
        )
        assignments = np.argsort(order)[self.allocation.assignments]
        allocation = Allocation(assignments, topic_counts, word_counts)
        return Searched(allocation, self.alpha[order], self.eta)


def unsearched(rng: np.random.Generator, corpus: Corpus, num_topics: int, eta: float) -> Searched:
    """Topics drawn uniformly, token by token."""
    alpha = np.full(num_topics, _ALPHA_SUM / num_topics)
    return Searched(random_allocation(rng, corpus, num_topics), alpha, eta)


def _tokens_of(at: Searched, corpus: Corpus) -> tuple[Any, ...]:
    """What compiled passes over all tokens take first."""
    allocation = at.allocation
    tallies = Tallies(allocation.topic_counts, allocation.word_counts, at.sizes)
    return corpus.entries, allocation.assignments, at.alpha, at.eta, tallies


def merge_gains(at: Searched, corpus: Corpus) -> FloatArray:
    """What F changes by when two topics become one, ``(num_topics, num_topics)``.

    Entry (a, b), a < b, is exact in the log joint, alpha_a + alpha_b the joined topic's. For the
    entropies the shares of a and b in each token are added up, where both have 0.1 % or more.
    Entries elsewhere are -inf. O(tokens K + (documents + words) K**2) at most.
    """
    allocation = at.allocation
    gains = np.zeros((at.num_topics, at.num_topics))
    compiled.join_in_tokens(*_tokens_of(at, corpus), gains)
    compiled.join_in_documents(allocation.topic_counts, at.alpha, gains)
    distinct = [np.unique(n[n > 0], return_counts=True) for n in allocation.topic_counts.T]
    starts = np.cumsum([0, *(len(values) for values, _ in distinct)])
    values, times = (np.concatenate(parts) for parts in zip(*distinct, strict=True))
    compiled.join_margins(starts, values, times, at.alpha, gains)
    compiled.join_in_words(allocation.word_counts, at.sizes, at.eta, gains)
    gains[np.tril_indices(at.num_topics)] = -np.inf
    return gains


def merge_topics(at: Searched, corpus: Corpus, merges: int) -> Searched:
    """Join `merges` pairs of topics, those of the largest gains that share no topic.

    Raises
    ------
    ValueError
        If there are not as many pairs.
    """
    K = at.num_topics
    if not 0 <= merges <= K // 2:
        raise ValueError(f"merges must be from 0 to {K // 2} of {K} topics, got {merges}")
    gains = merge_gains(at, corpus)
    into = np.arange(K)
    free = np.ones(K, dtype=bool)
    for place in np.argsort(-gains, axis=None, kind="stable"):
        if merges == 0:
            break
        a, b = divmod(int(place), K)
        if a < b and free[a] and free[b]:
            into[b] = a
            free[a] = free[b] = False
            merges -= 1
    kept, new = np.unique(into, return_inverse=True)
    alpha = np.zeros(len(kept))
    np.add.at(alpha, new, at.alpha)
    assignments = new[at.allocation.assignments]
    return Searched(count_topics(corpus, assignments, len(kept)), alpha, at.eta)

"""Latent Dirichlet allocation by collapsed Gibbs, its Dirichlet concentration learned.

The baseline that a correlated topic model must beat (Blei, Ng and Jordan 2003)::

    alpha_k     ~ Gamma(shape, rate),               k = 1..K
    theta_d     ~ Dirichlet(alpha),                 d = 1..D
    topics_k    ~ Dirichlet(eta)
    z_di, x_di  ~ theta_d, topics_{z_di}

theta and the topics are integrated out of the sweep over z (Griffiths and Steyvers 2004). alpha is
drawn exactly given the topic counts by two augmentations (Newman et al. 2009, "Distributed
algorithms for topic models", appendix): Gamma(n + a) / Gamma(a) is a sum over Chinese-restaurant
table counts, and Gamma(A) / Gamma(A + N) an integral over a Beta(A, N) variable, after which each
alpha_k is gamma. A fixed symmetric alpha of 1 is a straw man; a learned one is a strong baseline.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from pgmult._validate import as_positive, as_positive_int, new_key
from pgmult.compiled._rows import num_workers, over_rows
from pgmult.compiled.tokens import sample_tables
from pgmult.corpus import Corpus, as_corpus, simulate_words
from pgmult.priors import Dirichlet
from pgmult.typing import FloatArray, IntArray
from pgmult.updates.collapsed_topics import (
    Allocation,
    collapsed_sweeps,
    count_topics,
    random_allocation,
)

__all__ = ["LDA", "LDAState"]


@dataclass(frozen=True, slots=True, eq=False)
class LDAState:
    """One point of the chain.

    Attributes
    ----------
    assignments : int64 array, ``(num_tokens,)``
        Topic of each token, in the order of the corpus's entries.
    alpha : array, ``(num_topics,)``
    """

    assignments: IntArray
    alpha: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class LDA:
    """Latent Dirichlet allocation with a learned, asymmetric Dirichlet prior of topics.

    Parameters
    ----------
    num_topics : int
        K >= 2.
    word_concentration : float
        Dirichlet concentration eta of words in topics.
    alpha_shape, alpha_rate : float
        Gamma prior of each alpha_k.
    alpha : float or array, ``(num_topics,)``, optional
        Held fixed where given, instead of learned.
    """

    num_topics: int
    word_concentration: float = 0.05
    alpha_shape: float = 1.0
    alpha_rate: float = 1.0
    alpha: ArrayLike | None = None

    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "assignments": ("token",),
        "alpha": ("topic",),
        "topics": ("topic", "word"),
        "theta": ("document", "topic"),
    }
    default_keep: ClassVar[tuple[str, ...]] = ("topics", "alpha")
    label_dims: ClassVar[frozenset[str]] = frozenset({"topic", "token"})

    def __post_init__(self) -> None:
        as_positive_int(self.num_topics, "num_topics", minimum=2)
        for name in ("word_concentration", "alpha_shape", "alpha_rate"):
            as_positive(getattr(self, name), name)
        if self.alpha is not None:
            alpha = as_positive(self.alpha, "alpha")
            if alpha.shape not in ((), (self.num_topics,)):
                raise ValueError(
                    f"alpha must be one number or {self.num_topics} (num_topics), got shape"
                    f" {alpha.shape}"
                )
            object.__setattr__(self, "alpha", np.array(np.broadcast_to(alpha, self.num_topics)))

    def as_data(self, data: Any) -> Corpus:
        """A corpus from a sparse matrix or array of counts: see `pgmult.as_corpus`."""
        return as_corpus(data)

    def coords(self, data: Corpus) -> Mapping[str, NDArray[Any]]:
        """Words and documents by name where the corpus has names."""
        labels = {"word": data.vocabulary, "document": data.names}
        return {dim: names for dim, names in labels.items() if names is not None}

    def prior(self, rng: np.random.Generator, data: Corpus) -> LDAState:
        """A state from the prior, given the documents' lengths."""
        learned = rng.gamma(self.alpha_shape, 1.0 / self.alpha_rate, size=self.num_topics)
        alpha = learned if self.alpha is None else np.array(self.alpha)
        theta = Dirichlet(alpha).sample(rng, (data.num_documents, self.num_topics))
        documents = np.repeat(np.arange(data.num_documents), data.totals)
        running = np.cumsum(theta, axis=1)[documents]
        u = rng.random((len(documents), 1)) * running[:, -1:]
        return LDAState(np.sum(running < u, axis=1), alpha)

    def simulate(self, rng: np.random.Generator, state: LDAState, data: Corpus) -> Corpus:
        """Words given the assignments, from topics drawn from their prior."""
        words = Dirichlet(self.word_concentration)
        topics = words.sample(rng, (self.num_topics, data.num_words))
        return simulate_words(rng, state.assignments, topics, data)

    def init(self, rng: np.random.Generator, data: Corpus) -> LDAState:
        """Uniform assignments, and alpha = 5 / K where it is learned."""
        allocation = random_allocation(rng, data, self.num_topics)
        start = np.full(self.num_topics, 5.0 / self.num_topics)
        alpha = start if self.alpha is None else np.array(self.alpha)
        return LDAState(allocation.assignments, alpha)

    def step(self, rng: np.random.Generator, state: LDAState, data: Corpus) -> LDAState:
        """All assignments, then alpha where it is learned."""
        allocation = collapsed_sweeps(
            rng, data, self._allocation(state, data), state.alpha, self.word_concentration
        )
        alpha = state.alpha
        if self.alpha is None:
            alpha = self._sample_alpha(rng, alpha, allocation.topic_counts)
        return LDAState(allocation.assignments, alpha)

    def log_likelihood(self, state: LDAState, data: Corpus) -> float:
        """Log p(words | assignments), the topics integrated out."""
        counts = self._allocation(state, data).word_counts
        eta = self.word_concentration
        whole = eta * data.num_words
        occupied = counts[counts > 0]
        return float(
            np.sum(gammaln(occupied + eta) - gammaln(eta))
            + np.sum(gammaln(whole) - gammaln(counts.sum(axis=0) + whole))
        )

    def theta(self, state: LDAState, data: Corpus) -> FloatArray:
        """Mean topic proportions given the assignments, ``(num_documents, num_topics)``."""
        smoothed = self._allocation(state, data).topic_counts + state.alpha
        return np.asarray(smoothed / smoothed.sum(axis=1, keepdims=True))

    def topics(self, state: LDAState, data: Corpus) -> FloatArray:
        """Mean word probabilities given the assignments, ``(num_topics, num_words)``."""
        smoothed = self._allocation(state, data).word_counts.T + self.word_concentration
        return np.asarray(smoothed / smoothed.sum(axis=1, keepdims=True))

    def _allocation(self, state: LDAState, data: Corpus) -> Allocation:
        return count_topics(data, state.assignments, self.num_topics)

    def _sample_alpha(
        self, rng: np.random.Generator, alpha: FloatArray, topic_counts: IntArray
    ) -> FloatArray:
        tables = np.zeros((num_workers(len(topic_counts)), self.num_topics), dtype=np.int64)
        over_rows(sample_tables, len(topic_counts), new_key(rng), topic_counts, alpha, tables)
        totals = topic_counts.sum(axis=1)
        totals = totals[totals > 0]
        # log Beta(A, N) by gammas in log space: A may be tiny
        whole = float(alpha.sum())
        log_first = np.log(rng.gamma(whole + 1.0, size=len(totals))) - (
            rng.exponential(size=len(totals)) / whole
        )
        log_beta = log_first - np.logaddexp(log_first, np.log(rng.gamma(totals)))
        shape = self.alpha_shape + tables.sum(axis=0)
        return np.asarray(rng.gamma(shape) / (self.alpha_rate - log_beta.sum()))

"""Latent Dirichlet allocation, the Dirichlet concentrations of documents' topics learned.

The baseline that a correlated topic model must beat (Blei, Ng and Jordan 2003)::

    alpha_k     ~ Gamma(shape, rate),               k = 1..K
    theta_d     ~ Dirichlet(alpha),                 d = 1..D        topics in documents
    topics_k    ~ Dirichlet(eta)                                    words in topics
    log eta     ~ N(log 0.1, 1)                                     unless it is fixed
    z_di, x_di  ~ theta_d, topics_{z_di}                            each token's topic and word

`LDA` integrates theta and the topics out and draws the tokens' topics z one after another
(Griffiths and Steyvers 2004): few sweeps, each of them serial. alpha is drawn given z alone by an
exact augmentation (`pgmult.topics.updates.collapsed`). With a learned alpha the model predicts
much better than with a symmetric alpha of 1 (Wallach, Mimno and McCallum 2009).

>>> import numpy as np, pgmult
>>> counts = np.random.default_rng(0).poisson(0.5, size=(20, 30))
>>> posterior = pgmult.sample(
...     pgmult.topics.LDA(num_topics=3), pgmult.topics.as_corpus(counts),
...     draws=10, tune=10, chains=1, random_seed=0, progressbar=False,
... )
>>> posterior["alpha"].shape
(1, 10, 3)
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike

from pgmult.core.parameters import Checked, axes_of
from pgmult.core.typing import FloatArray, Generator, IntArray
from pgmult.core.validate import as_positive
from pgmult.priors import Dirichlet
from pgmult.topics.data.corpus import Corpus, simulate_words
from pgmult.topics.models.topic_model import OF_TOPICS, Concentration, NumTopics, WordConcentration
from pgmult.topics.updates import collapsed
from pgmult.topics.updates import word_concentration as concentration
from pgmult.topics.updates.allocation import AllocatedTopics, shares_of

_START_ALPHA_SUM = 5.0


@dataclass(frozen=True, slots=True, eq=False)
class LDAState:
    """One point of the chain.

    Attributes
    ----------
    assignments : int64 array, ``(num_tokens,)``
        Topic of each token, in the order of the corpus's entries.
    alpha : array, ``(num_topics,)``
    word_concentration : float
        Eta.
    """

    assignments: Annotated[IntArray, "token"]
    alpha: Annotated[FloatArray, "topic"]
    word_concentration: float = concentration.CENTRE


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LDA(Checked, AllocatedTopics[Corpus, LDAState]):
    """Latent Dirichlet allocation by collapsed Gibbs sweeps.

    Parameters
    ----------
    num_topics : int
        K >= 2.
    word_concentration : float, optional
        Dirichlet concentration eta of words in topics; learned if left out: see
        `pgmult.topics.updates.word_concentration`.
    alpha_shape, alpha_rate : float
        Gamma prior of each alpha_k.
    alpha : float or array, ``(num_topics,)``, optional
        Held fixed where given, instead of learned.

    Notes
    -----
    `topics` and `theta` are their means given the assignments.
    """

    num_topics: NumTopics
    word_concentration: WordConcentration = None
    alpha_shape: Concentration = 1.0
    alpha_rate: Concentration = 1.0
    alpha: Annotated[ArrayLike, as_positive] | None = None

    dims = axes_of(LDAState) | OF_TOPICS | {"topics": ("topic", "word")}
    in_blocks = False  # topics are integrated out, and join all documents
    label_dims = frozenset({"topic", "token"})
    default_keep = "topics", "alpha", "topic_shares", "effective_topics", "word_concentration"

    def _complete(self) -> None:
        if self.alpha is None:
            return
        if np.shape(self.alpha) not in ((), (self.num_topics,)):
            allowed, got = f"one number or {self.num_topics} (num_topics)", np.shape(self.alpha)
            raise ValueError(f"alpha must be {allowed}, got shape {got}")
        self._set(alpha=np.array(np.broadcast_to(self.alpha, self.num_topics)))

    def prior(self, rng: Generator, data: Corpus) -> LDAState:
        """A state from the prior, given the documents' lengths."""
        alpha = self.alpha
        if alpha is None:
            alpha = rng.gamma(self.alpha_shape, 1.0 / self.alpha_rate, size=self.num_topics)
        alpha = np.array(alpha)
        theta = Dirichlet(alpha).sample(rng, (data.num_documents, self.num_topics))
        documents = np.repeat(np.arange(data.num_documents), data.totals)
        running = np.cumsum(theta, axis=1)[documents]
        u = rng.random((len(documents), 1)) * running[:, -1:]
        eta = concentration.prior_concentration(rng, self.word_concentration)
        return LDAState(np.sum(running < u, axis=1), alpha, eta)

    def simulate(self, rng: Generator, state: LDAState, data: Corpus) -> Corpus:
        """Words given the assignments, from topics drawn from their prior."""
        words = Dirichlet(state.word_concentration)
        topics = words.sample(rng, (self.num_topics, data.num_words))
        return simulate_words(rng, state.assignments, topics, data)

    def init(self, rng: Generator, data: Corpus) -> LDAState:
        """Uniform assignments; where learned, alpha = 5 / K."""
        allocation = collapsed.random_allocation(rng, data, self.num_topics)
        even = np.full(self.num_topics, _START_ALPHA_SUM / self.num_topics)
        alpha = even if self.alpha is None else np.array(self.alpha)
        eta = concentration.start_concentration(self.word_concentration)
        return LDAState(allocation.assignments, alpha, eta)

    def step(self, rng: Generator, state: LDAState, data: Corpus) -> LDAState:
        """All assignments, then alpha and eta where they are learned."""
        at, eta = self._allocation(state, data), state.word_concentration
        allocation = collapsed.sweep(rng, data, at, state.alpha, eta)
        alpha = self._sample_alpha(rng, state.alpha, allocation.topic_counts)
        fixed, word_counts = self.word_concentration, allocation.word_counts.T
        eta = concentration.sample_concentration(rng, fixed, eta, word_counts)
        return LDAState(allocation.assignments, alpha, eta)

    def log_likelihood(self, state: LDAState, data: Corpus) -> float:
        """Log p(words | assignments), the topics integrated out."""
        evidence = concentration.log_evidence(self._allocation(state, data).word_counts.T)
        return evidence(state.word_concentration)

    def theta(self, state: LDAState, data: Corpus) -> FloatArray:
        """Mean topic proportions given the assignments, ``(num_documents, num_topics)``."""
        return Dirichlet(self._allocation(state, data).topic_counts + state.alpha).mean()

    def topics(self, state: LDAState, data: Corpus) -> FloatArray:
        """Mean word probabilities given the assignments, ``(num_topics, num_words)``."""
        counts = self._allocation(state, data).word_counts.T
        return Dirichlet(counts + state.word_concentration).mean()

    def topic_shares(self, state: LDAState, data: Corpus) -> FloatArray:
        """Each topic's share of all tokens, ``(num_topics,)``."""
        return shares_of(np.bincount(state.assignments, minlength=self.num_topics))

    def mean_topics(self, state: LDAState, data: Corpus) -> FloatArray:
        """The same as `topics`."""
        return self.topics(state, data)

    def _allocation(self, state: LDAState, data: Corpus) -> collapsed.Allocation:
        return collapsed.count_topics(data, state.assignments, self.num_topics)

    def _sample_alpha(self, rng: Generator, alpha: FloatArray, counts: IntArray) -> FloatArray:
        """A draw of alpha given the topics of documents' tokens, where it is learned."""
        if self.alpha is not None:
            return alpha
        prior = self.alpha_shape, self.alpha_rate
        return collapsed.sample_concentrations(rng, alpha, counts, *prior)

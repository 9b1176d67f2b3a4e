"""The correlated topic model under the stick-breaking link (SB-CTM).

Documents are mixtures of topics with correlated proportions (Linderman, Johnson and Adams 2015,
section 3; Blei and Lafferty 2007 for the logistic normal original)::

    topics_k      ~ Dirichlet(eta),                 k = 1..K        words in topics
    mu, Sigma     ~ NIW,
    psi_d         ~ N(mu, Sigma),                   d = 1..D        K - 1 sticks
    theta_d       = stick-breaking(psi_d)                           topics in documents
    z_di, x_di    ~ theta_d, topics_{z_di}                          each token's topic and word

Every block of the sweep is exact:

1. z | psi, topics, x        a multinomial a (document, word) entry; kept as counts
2. topics | z                Dirichlet rows
3. psi | z, mu, Sigma        all sticks of a document on one path about a Gaussian that is near
                             their law (`pgmult.topics.compiled.swing`)
4. mu, Sigma | psi           normal-inverse-Wishart

Sigma is the covariance of sticks and depends on their order: see `topic_correlations` for topics.

>>> import numpy as np, pgmult
>>> counts = np.random.default_rng(0).poisson(0.5, size=(20, 30))
>>> posterior = pgmult.sample(
...     pgmult.topics.CorrelatedTopics(num_topics=3), pgmult.topics.as_corpus(counts),
...     draws=10, tune=10, chains=1, random_seed=0, progressbar=False,
... )
>>> posterior["topics"].shape
(1, 10, 3, 30)
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from pgmult.core.typing import IntArray
from pgmult.priors import NormalInverseWishart
from pgmult.sampling.blocks import BLOCK_ROWS
from pgmult.topics.data.corpus import Corpus, simulate_words
from pgmult.topics.models.gaussian import (
    BlockRows,
    Concentration,
    ExchangeableTopicsState,
    NormalTopics,
    NumTopics,
    Scales,
)
from pgmult.topics.starts.allocations import Searched
from pgmult.topics.starts.searches import START_SWEEPS, StartSweeps
from pgmult.topics.updates.allocation import kept_counts
from pgmult.topics.updates.collapsed import words_collapsed


@dataclass(frozen=True, slots=True, eq=False)
class CollapsedWordsState(ExchangeableTopicsState):
    """One point of a chain that integrates the topics out to draw z, and so keeps it.

    Attributes
    ----------
    assignments : int64 array, ``(num_tokens,)``
        Topic of each token, in the order of the corpus's entries.
    """

    assignments: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class CorrelatedTopics(NormalTopics):
    """Correlated topic model with the stick-breaking link, sampled in exact blocks.

    Parameters
    ----------
    num_topics : int
        K >= 2.
    word_concentration : float
        Dirichlet concentration eta of words in topics.
    gaussian : NormalInverseWishart, optional
        Prior of mu and Sigma on K - 1 sticks; by default `NormalInverseWishart.weak` around the
        mean at which all topics are equally probable.
    order : sequence of num_topics integers, optional
        Another order of sticks: see `pgmult.StickBreaking`. Chains start with topics sorted by
        size, so that early sticks are large topics.
    start_sweeps : int
        A chain starts from a search of its own, of this many collapsed sweeps of latent Dirichlet
        allocation, and stays near the mode of the posterior where the search ended. See
        `pgmult.topics.find_start` for longer searches and for how far to trust each topic.
    scales : HalfTScales or CommonScale, optional
        Prior of the scales of Sigma (`pgmult.priors.scales`), which `gaussian` fixes otherwise.
    keywords : mapping from str to sequence of str, optional
        Words of the first topics, by names of your own: ``{"economy": ["tax", "jobs"]}``.
    words : {"parallel", "collapsed"}
        How z is drawn: given the topics, documents in parallel, or with the topics integrated out,
        token after token, which moves topics further per sweep but uses one thread. Both are exact.
    block_rows : int
        Documents per block: see `pgmult.sampling.blocks`. It changes the draws, not their
        distribution. Collapsed words are not drawn in blocks.

    Notes
    -----
    A sweep costs O(entries K + K V + D K**3).
    """

    num_topics: NumTopics
    word_concentration: Concentration = 0.05
    gaussian: NormalInverseWishart | None = None
    order: Sequence[int] | None = None
    start_sweeps: StartSweeps = START_SWEEPS
    scales: Scales | None = None
    keywords: Any = None
    words: Literal["parallel", "collapsed"] = "parallel"
    block_rows: BlockRows = BLOCK_ROWS

    @property
    def in_blocks(self) -> bool:
        """Whether documents are drawn independently, given what they share."""
        return self.words == "parallel"

    def prior(self, rng: np.random.Generator, data: Corpus) -> ExchangeableTopicsState:
        """A state from the prior, its topic counts from the documents' totals."""
        topics = np.tile(np.arange(self.num_topics), data.num_documents)
        state = NormalTopics.prior(self, rng, data)
        return self._with_assignments(state, np.repeat(topics, state.topic_counts.ravel()))

    def from_allocation(
        self, rng: np.random.Generator, at: Searched, data: Corpus
    ) -> ExchangeableTopicsState:
        """A state with these topics in this order, all else drawn given them."""
        state = NormalTopics.from_allocation(self, rng, at, data)
        return self._with_assignments(state, at.allocation.assignments)

    def _with_assignments(
        self, state: ExchangeableTopicsState, z: IntArray
    ) -> ExchangeableTopicsState:
        """The state with the topics of tokens, where the sweep needs them."""
        if self.words == "parallel":
            return state
        return CollapsedWordsState(
            state.psi, state.mu, state.Sigma, state.topics, state.topic_counts, z,
            word_counts=state.word_counts, keyword_shares=state.keyword_shares,
            keyword_words=state.keyword_words,
        )  # fmt: skip

    def simulate(
        self, rng: np.random.Generator, state: ExchangeableTopicsState, data: Corpus
    ) -> Corpus:
        """Documents of the same lengths: a word for every token given its topic."""
        if isinstance(state, CollapsedWordsState):
            return simulate_words(rng, state.assignments, state.topics, data)
        simulated: Corpus = NormalTopics.simulate(self, rng, state, data)
        return simulated

    def step(
        self, rng: np.random.Generator, state: ExchangeableTopicsState, data: Corpus
    ) -> ExchangeableTopicsState:
        """One sweep over all variables."""
        if not isinstance(state, CollapsedWordsState):
            moved: ExchangeableTopicsState = NormalTopics.step(self, rng, state, data)
            return moved
        z, keywords, keyed = state.assignments, self._keywords_in(data), None
        shares, words = state.keyword_shares, state.keyword_words
        if keywords is not None:
            z = keywords.mark(rng, data, z, state.topics, shares, words)
            keyed = keywords.keyed(shares, words, data.num_words, self.num_topics)
        theta = self.theta(state, data)
        at = words_collapsed(rng, data, z, theta, self.word_concentration, keyed)
        psi = self._sample_psi(rng, state, at.topic_counts, data)
        if keywords is not None:
            shares, words = keywords.given(rng, at)
        moved = self._words_given(rng, state, at.word_counts.T, shares, words, data)
        moved = self._sample_mean(rng, moved, self.psi_mean.sums(state, psi, data), data)
        return replace(
            moved, psi=psi, topic_counts=kept_counts(at.topic_counts),
            assignments=at.assignments % self.num_topics,
        )  # type: ignore[call-arg]  # fmt: skip

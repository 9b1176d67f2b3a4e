"""Shared parts of topic models with Gaussian psi: their sweeps, and Dirichlet topics.

They differ in the link, in what the mean of psi depends on (`pgmult.topics.priors.means`), and in
how words vary (`pgmult.topics.updates.words`). With ``keywords=`` some words of the first topics
are given (`pgmult.topics.updates.keywords`):

>>> import numpy as np, pgmult
>>> counts = np.random.default_rng(0).poisson(0.5, size=(20, 4))
>>> corpus = pgmult.topics.as_corpus(counts, ["tax", "jobs", "war", "peace"])
>>> posterior = pgmult.sample(
...     pgmult.topics.CorrelatedTopics(num_topics=3, keywords={"economy": ["tax", "jobs"]}), corpus,
...     draws=10, tune=10, chains=1, random_seed=0, progressbar=False,
... )
>>> found = posterior.keywords()
>>> found.labels["topic"], found.mean.shape
(['economy'], (1, 2))
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pgmult.core.machine import refuse_unaffordable
from pgmult.core.parameters import Checked, axes_of, real
from pgmult.core.typing import FloatArray, IntArray
from pgmult.links import StickBreaking
from pgmult.priors import NormalInverseWishart
from pgmult.sampling.blocks import Asks, Sums, as_block_rows
from pgmult.topics.data.corpus import as_num_topics
from pgmult.topics.priors.means import ConstantMean, PsiMean
from pgmult.topics.starts.find import StartsFromTopics
from pgmult.topics.starts.searches import Searched
from pgmult.topics.updates.allocation import AllocatedTopics, WordTables, kept_counts, no_counts
from pgmult.topics.updates.keywords import Keywords, KeywordsState, as_keywords
from pgmult.topics.updates.swing import swing_psi
from pgmult.topics.updates.words import DirichletWords

NumTopics = Annotated[int, as_num_topics]
Concentration = Annotated[float, real(above=0.0, minimum=1e-300)]
BlockRows = Annotated[int, as_block_rows]


OF_TOPICS = {"theta": ("document", "topic"), "topic_shares": ("topic",), "effective_topics": ()}
"""Axes of what follows from the state of a topic model."""


class GaussianTopics(Checked, StartsFromTopics, AllocatedTopics):
    """Topics ~ Dirichlet(word_concentration), theta_d = link(psi_d), psi_d Gaussian."""

    __slots__ = ()
    num_topics: int
    word_concentration: float
    keywords: Any
    block_rows: int

    state_type: ClassVar[type[Any]]
    default_keep: ClassVar[tuple[str, ...]] = (
        "topics", "mu", "Sigma", "topic_shares", "effective_topics", "keyword_shares",
    )  # fmt: skip
    label_dims: ClassVar[frozenset[str]] = frozenset({"topic", "stick", "other_stick"})
    takes_single_words: ClassVar[bool] = False  # where something else says what belongs together

    def _complete(self) -> None:
        refuse_unaffordable(32.0 * self.num_topics**2, "num_topics", self.num_topics)
        keywords = as_keywords(self.keywords, self.num_topics)
        if keywords != self.keywords:
            self._set(keywords=keywords)

    @property
    @abstractmethod
    def psi_mean(self) -> PsiMean:
        """The prior of the mean and covariance of psi, and how they move."""

    def words(self, data: Any) -> Any:
        """The prior of the topics' words, and how they move."""
        return DirichletWords(self.num_topics, self.word_concentration, self.keywords)

    def link(self, data: Any = None) -> Any:
        """The link from psi to topic proportions."""
        return StickBreaking()

    def as_data(self, data: Any) -> Any:
        """A corpus from a sparse matrix or array of counts: see `pgmult.topics.as_corpus`."""
        corpus = AllocatedTopics.as_data(self, data)
        if not self.takes_single_words and corpus.num_tokens and corpus.totals.max() < 2:
            raise ValueError(
                "data must have documents of two words or more: words that no document has together"
                f" tell nothing of topics, got {corpus!r} (join texts, or keep more words)"
            )
        Keywords.of(self.keywords, corpus)
        return corpus

    def coords(self, data: Any) -> Mapping[str, NDArray[Any]]:
        """Words and documents by name where the corpus has names, and keywords."""
        coords = dict(AllocatedTopics.coords(self, data))
        if self.keywords:
            coords["keyword_topic"] = np.array([name for name, _ in self.keywords], dtype=np.str_)
            pairs = [f"{name}: {word}" for name, words in self.keywords for word in words]
            coords["keyword"] = np.array(pairs, dtype=np.str_)
        return coords

    def absent(self, data: Any) -> frozenset[str]:
        """Variables that these data, or this model, leave empty."""
        return frozenset() if self.keywords else frozenset({"keyword_shares", "keyword_words"})

    def in_order(self, at: Searched, data: Any) -> Searched:
        """Topics with keywords first."""
        if not self.keywords:
            return at
        word_counts = np.ascontiguousarray(at.allocation.word_counts.T)
        return at.ordered(Keywords.of(self.keywords, data).best_order(word_counts))

    def _uniform(self) -> FloatArray:
        """The psi at which all topics are equally probable."""
        return np.asarray(self.link().inverse(np.full(self.num_topics, 1.0 / self.num_topics)))

    def prior(self, rng: np.random.Generator, data: Any) -> Any:
        """A state from the prior, its topic counts from the documents' totals."""
        psi, of_psi = self.psi_mean.prior(rng, data)
        words = self.words(data).prior(rng, data)
        topic_counts = kept_counts(self.link(data).simulate(rng, psi, data.totals))
        return self.state_type(psi=psi, topic_counts=topic_counts, **of_psi, **words)

    def from_allocation(self, rng: np.random.Generator, at: Searched, data: Any) -> Any:
        """A state with these topics in this order, all else drawn given them."""
        psi = at.flat_psi(self.link(data))
        words = self.words(data).start(rng, at, data)
        of_psi = self.psi_mean.start(rng, psi, data)
        topic_counts = kept_counts(at.allocation.topic_counts)
        return self.state_type(psi=psi, topic_counts=topic_counts, **of_psi, **words)

    def from_part(self, rng: np.random.Generator, at: Searched, subset: Any) -> Any:
        """A state of a part; topics that nothing varies at their mean.

        A draw given so few tokens is far from it.
        """
        state = self.from_allocation(rng, at, subset)
        return replace(state, topics=at.topics()) if self.words(subset).is_plain else state

    def local_step(
        self, rng: np.random.Generator, state: Any, data: Any, tables: WordTables | None = None
    ) -> tuple[Any, None, Sums]:
        """Z and psi of a block of documents."""
        topic_counts, words = self._allocate(rng, state, data, tables)
        psi = self._sample_psi(rng, state, topic_counts, data)
        of_psi = self.psi_mean.sums(state, psi, data)
        moved = replace(state, psi=psi, topic_counts=kept_counts(topic_counts))
        return moved, None, Sums((*of_psi.exact, *words), of_psi.rounded)

    def shared_step(
        self, rng: np.random.Generator, state: Any, sums: Sums, data: Any, ask: Asks
    ) -> Any:
        """Words given z; the mean and covariance of psi given psi."""
        state = replace(state, **self.words(data).given(rng, state, sums.exact[1], data))
        return replace(state, **self.psi_mean.given(rng, state, sums, data))

    def _sample_psi(
        self, rng: np.random.Generator, state: Any, topic_counts: IntArray, data: Any
    ) -> FloatArray:
        """Psi given the topics of the tokens."""
        means = self.psi_mean.means(state, data)
        return swing_psi(rng, self.link(data), state.psi, topic_counts, means, state.Sigma)

    def start_concentration(self) -> float:
        """Dirichlet concentration of words in topics."""
        return self.word_concentration

    def mean_topics(self, state: Any, data: Any) -> FloatArray:
        """Mean word probabilities given the topics of the tokens, once these are known."""
        return np.asarray(self.words(data).mean(state, data))

    def mean_theta(
        self, rng: np.random.Generator, state: Any, data: Any, rows: IntArray, draws: int
    ) -> FloatArray:
        """Topic proportions of some documents, averaged over draws of psi given their counts."""
        subset, local = data[rows], replace(state, psi=state.psi[rows])
        total = np.zeros((len(rows), self.num_topics))
        topic_counts = state.topic_counts[rows].astype(np.int64)
        for _ in range(draws):
            local = replace(local, psi=self._sample_psi(rng, local, topic_counts, subset))
            total += self.theta(local, subset)
        return total / draws


@dataclass(frozen=True, slots=True, eq=False)
class ExchangeableTopicsState(KeywordsState):
    """One point of the chain, of n = K - 1 sticks or n = K coordinates of a softmax.

    Attributes
    ----------
    psi : array, ``(num_documents, n)``
    mu : array, ``(n,)``
    Sigma : array, ``(n, n)``
    topics : array, ``(num_topics, num_words)``
        Word probabilities of each topic; rows sum to 1.
    topic_counts : int32 array, ``(num_documents, num_topics)``
        Tokens of each document by topic, as last allocated.
    word_counts : int32 array, ``(num_topics, num_words)``
        Tokens of each topic by word, as last allocated, but for those that came as keywords; empty
        before the first sweep.
    keyword_shares, keyword_words : arrays
        See `pgmult.topics.updates.keywords.KeywordsState`.
    """

    psi: Annotated[FloatArray, "document", "stick"]
    mu: Annotated[FloatArray, "stick"]
    Sigma: Annotated[FloatArray, "stick", "other_stick"]
    topics: Annotated[FloatArray, "topic", "word"]
    topic_counts: Annotated[NDArray[np.int32], "document", "topic"]
    word_counts: NDArray[np.int32] = field(
        default_factory=no_counts, kw_only=True, metadata={"has_law": False}
    )


class NormalTopics(GaussianTopics):
    """psi_d ~ N(mu, Sigma), the same for every document, and mu, Sigma ~ NIW."""

    __slots__ = ()
    gaussian: NormalInverseWishart | None
    state_type: ClassVar[type[Any]] = ExchangeableTopicsState
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = axes_of(ExchangeableTopicsState) | OF_TOPICS

    def _complete(self) -> None:
        centre = self._uniform()
        if self.gaussian is None:
            self._set(gaussian=NormalInverseWishart.weak(centre))
        size = len(self.gaussian_prior.mean)
        if size != len(centre):
            raise ValueError(
                f"gaussian must have {len(centre)} dimensions for {self.num_topics} topics,"
                f" got {size}"
            )

    @property
    def gaussian_prior(self) -> NormalInverseWishart:
        """The prior of mu and Sigma, the default if none was given."""
        assert self.gaussian is not None  # set by _complete
        return self.gaussian

    @property
    def psi_mean(self) -> PsiMean:
        """The prior of the mean and covariance of psi, and how they move."""
        return ConstantMean(self.gaussian_prior)

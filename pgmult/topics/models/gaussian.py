"""What topic models share whose psi are Gaussian and whose topics are Dirichlet rows.

They differ in the link, in what the mean of psi depends on, and so in their sweeps.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from pgmult.core.arguments import as_kind, as_real, as_repeats, brief
from pgmult.core.machine import refuse_unaffordable
from pgmult.core.orders import as_permutation
from pgmult.core.typing import FloatArray, IntArray
from pgmult.priors import CovarianceScales, Dirichlet, MvNormal, NormalInverseWishart
from pgmult.priors.gaussian import Moments
from pgmult.sampling.blocks import Sums, as_block_rows, step
from pgmult.topics.data.corpus import Corpus, as_num_topics
from pgmult.topics.starts.allocations import Searched
from pgmult.topics.starts.find import StartsFromTopics
from pgmult.topics.updates.allocation import AllocatedTopics, WordTables
from pgmult.topics.updates.words import sample_topics

__all__ = [
    "ExchangeableTopics",
    "ExchangeableTopicsState",
    "GaussianTopics",
    "as_gaussian",
    "as_scales",
]


def as_gaussian(
    gaussian: NormalInverseWishart | None, centre: FloatArray, size: str
) -> NormalInverseWishart:
    """The prior of a mean and covariance of psi: a weak one around `centre` unless given."""
    if gaussian is None:
        return NormalInverseWishart.weak(centre)
    as_kind(gaussian, "gaussian", NormalInverseWishart)
    if len(gaussian.mean) != len(centre):
        raise ValueError(
            f"gaussian must have {len(centre)} dimensions ({size}), got {len(gaussian.mean)}"
        )
    return gaussian


def as_scales(scales: CovarianceScales | None) -> None:
    """Refuse what is no prior of a covariance's scales."""
    if scales is not None and (
        isinstance(scales, type) or not isinstance(scales, CovarianceScales)
    ):
        raise TypeError(
            "scales must be a prior such as pgmult.priors.HalfTScales() or CommonScale(), or None,"
            f" got {brief(scales)}"
        )


class GaussianTopics(StartsFromTopics, AllocatedTopics):
    """Topics ~ Dirichlet(word_concentration), theta_d = link(psi_d), psi_d Gaussian."""

    __slots__ = ()
    num_topics: int
    word_concentration: float
    start_sweeps: int
    scales: CovarianceScales | None
    block_rows: int

    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "psi": ("document", "stick"),
        "mu": ("stick",),
        "Sigma": ("stick", "other_stick"),
        "topics": ("topic", "word"),
        "topic_counts": ("document", "topic"),
        "theta": ("document", "topic"),
        "topic_shares": ("topic",),
        "effective_topics": (),
    }
    default_keep: ClassVar[tuple[str, ...]] = (
        "topics", "mu", "Sigma", "topic_shares", "effective_topics",
    )  # fmt: skip
    label_dims: ClassVar[frozenset[str]] = frozenset({"topic", "stick", "other_stick"})

    def __post_init__(self) -> None:
        num_topics = as_num_topics(self.num_topics)
        refuse_unaffordable(32.0 * num_topics**2, "num_topics", num_topics)  # for covariances
        word_concentration = as_real(
            self.word_concentration, "word_concentration", above=0.0, minimum=1e-300
        )
        object.__setattr__(self, "num_topics", num_topics)
        object.__setattr__(self, "word_concentration", word_concentration)
        as_repeats(self.start_sweeps, "start_sweeps", minimum=0)
        as_scales(self.scales)
        object.__setattr__(self, "block_rows", as_block_rows(self.block_rows))
        if self.order is not None:
            order = as_permutation(self.order, self.num_topics)
            object.__setattr__(self, "order", tuple(order.tolist()))

    def _uniform(self) -> FloatArray:
        """The psi at which all topics are equally probable."""
        return np.asarray(self.link(None).inverse(np.full(self.num_topics, 1.0 / self.num_topics)))

    def _words_from_prior(
        self, rng: np.random.Generator, psi: FloatArray, data: Corpus
    ) -> tuple[FloatArray, IntArray]:
        """Topics, and the topic counts of documents with the totals of `data`."""
        topics = Dirichlet(self.word_concentration).sample(rng, (self.num_topics, data.num_words))
        return topics, self.link(data).simulate(rng, psi, data.totals)

    def start_concentration(self) -> float:
        """Dirichlet concentration of words in topics."""
        return self.word_concentration

    @abstractmethod
    def _around(
        self,
        rng: np.random.Generator,
        psi: FloatArray,
        topics: FloatArray,
        topic_counts: IntArray,
        data: Any,
    ) -> Any:
        """A state of these psi and topics, all else drawn given them."""

    def from_allocation(self, rng: np.random.Generator, at: Searched, data: Any) -> Any:
        """A state with these topics in this order, all else drawn given them."""
        psi = at.psi(self.link(data))
        topics = Dirichlet(self.word_concentration).condition(at.allocation.word_counts.T)
        return self._around(rng, psi, topics.sample(rng), at.allocation.topic_counts, data)


@dataclass(frozen=True, slots=True, eq=False)
class ExchangeableTopicsState:
    """One point of the chain, of n = K - 1 sticks or n = K coordinates of a softmax.

    Attributes
    ----------
    psi : array, ``(num_documents, n)``
    mu : array, ``(n,)``
    Sigma : array, ``(n, n)``
    topics : array, ``(num_topics, num_words)``
        Word probabilities of each topic; rows sum to 1.
    topic_counts : int64 array, ``(num_documents, num_topics)``
        Tokens of each document by topic, as last allocated.
    """

    psi: FloatArray
    mu: FloatArray
    Sigma: FloatArray
    topics: FloatArray
    topic_counts: IntArray


class ExchangeableTopics(GaussianTopics):
    """psi_d ~ N(mu, Sigma), the same for every document, and mu, Sigma ~ NIW."""

    __slots__ = ()
    gaussian: NormalInverseWishart | None

    @property
    def gaussian_prior(self) -> NormalInverseWishart:
        """The prior of mu and Sigma, whether it was given or not."""
        assert self.gaussian is not None  # set by __post_init__
        return self.gaussian

    @abstractmethod
    def _sample_psi(
        self, rng: np.random.Generator, state: ExchangeableTopicsState, topic_counts: IntArray
    ) -> FloatArray:
        """Psi given the topics of the tokens and mu and Sigma."""

    def step(
        self, rng: np.random.Generator, state: ExchangeableTopicsState, data: Corpus
    ) -> ExchangeableTopicsState:
        """One sweep over all variables."""
        moved: ExchangeableTopicsState = step(self, rng, state, data)
        return moved

    def local_step(
        self,
        rng: np.random.Generator,
        state: ExchangeableTopicsState,
        data: Corpus,
        tables: WordTables | None = None,
    ) -> tuple[ExchangeableTopicsState, Sums]:
        """Z and psi of a block of documents."""
        topic_counts, words = self._allocate(rng, state, data, tables)
        psi = self._sample_psi(rng, state, topic_counts)
        moved = replace(state, psi=psi, topic_counts=topic_counts)
        return moved, self._sums(psi, words, state.mu)

    def shared_step(
        self, rng: np.random.Generator, state: ExchangeableTopicsState, sums: Sums, data: Corpus
    ) -> ExchangeableTopicsState:
        """Topics given z; mu and Sigma given psi, after the scales where they are learned."""
        (count, word_counts), (total, squares) = sums
        topics = sample_topics(rng, self.word_concentration, word_counts)
        gaussian = self.gaussian_prior
        if self.scales is not None:
            gaussian = self.scales.given(rng, state.Sigma, gaussian)
        moments = Moments(int(count), state.mu, total, squares)
        mu, Sigma = gaussian.condition_moments(moments).sample(rng)
        return replace(state, topics=topics, mu=mu, Sigma=Sigma)

    @staticmethod
    def _sums(psi: FloatArray, words: tuple[IntArray, ...], mu: FloatArray) -> Sums:
        """Documents, words of topics; first and second moments of psi about the old mu."""
        moments = Moments.of(psi, mu)
        return Sums((np.array(moments.count), *words), (moments.total, moments.squares))

    def prior(self, rng: np.random.Generator, data: Corpus) -> ExchangeableTopicsState:
        """A state from the prior, its topic counts from the documents' totals."""
        gaussian = self.gaussian_prior
        if self.scales is not None:
            gaussian = self.scales.sample(rng, gaussian)
        mu, Sigma = gaussian.sample(rng)
        psi = MvNormal(mu, Sigma).sample(rng, data.num_documents)
        return ExchangeableTopicsState(psi, mu, Sigma, *self._words_from_prior(rng, psi, data))

    def _around(
        self,
        rng: np.random.Generator,
        psi: FloatArray,
        topics: FloatArray,
        topic_counts: IntArray,
        data: Corpus,
    ) -> ExchangeableTopicsState:
        """A state of these psi and topics."""
        mu, Sigma = self.gaussian_prior.condition(psi).sample(rng)
        return ExchangeableTopicsState(psi, mu, Sigma, topics, topic_counts)

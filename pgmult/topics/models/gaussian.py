"""What topic models with Gaussian psi share: their sweeps, and topics that are Dirichlet rows.

They differ in the link, and in what the mean of psi depends on: see `pgmult.topics.priors.means`.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pgmult.core.arguments import as_kind, as_real, as_repeats, brief
from pgmult.core.machine import refuse_unaffordable
from pgmult.core.orders import as_permutation
from pgmult.core.typing import FloatArray, IntArray
from pgmult.links import StickBreaking
from pgmult.priors import CovarianceScales, Dirichlet, NormalInverseWishart
from pgmult.sampling.blocks import Sums, as_block_rows
from pgmult.topics.data.corpus import as_num_topics
from pgmult.topics.priors.means import ConstantMean, PsiMean, PsiSums
from pgmult.topics.starts.allocations import Searched
from pgmult.topics.starts.find import StartsFromTopics
from pgmult.topics.updates.allocation import AllocatedTopics, WordTables, kept_counts, sample_topics
from pgmult.topics.updates.sticks import sample_sticks

__all__ = [
    "ExchangeableTopicsState",
    "GaussianTopics",
    "NormalTopics",
]


def _check_scales(scales: CovarianceScales | None) -> None:
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

    state_type: ClassVar[type[Any]]
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
        object.__setattr__(self, "num_topics", num_topics)
        as_repeats(self.start_sweeps, "start_sweeps", minimum=0)
        _check_scales(self.scales)
        object.__setattr__(self, "block_rows", as_block_rows(self.block_rows))
        self._check_words()
        if self.order is not None:
            order = as_permutation(self.order, self.num_topics)
            object.__setattr__(self, "order", tuple(order.tolist()))

    def _check_words(self) -> None:
        """Check what the prior of words has."""
        word_concentration = as_real(
            self.word_concentration, "word_concentration", above=0.0, minimum=1e-300
        )
        object.__setattr__(self, "word_concentration", word_concentration)

    @property
    @abstractmethod
    def psi_mean(self) -> PsiMean:
        """The prior of the mean and covariance of psi, and how they move."""

    def link(self, data: Any = None) -> Any:
        """The link from psi to topic proportions."""
        return StickBreaking(self.order)

    def _uniform(self) -> FloatArray:
        """The psi at which all topics are equally probable."""
        return np.asarray(self.link().inverse(np.full(self.num_topics, 1.0 / self.num_topics)))

    def prior(self, rng: np.random.Generator, data: Any) -> Any:
        """A state from the prior, its topic counts from the documents' totals."""
        psi, of_psi = self.psi_mean.prior(rng, data)
        words = self._words_from_prior(rng, data)
        topic_counts = kept_counts(self.link(data).simulate(rng, psi, data.totals))
        return self.state_type(psi=psi, topic_counts=topic_counts, **of_psi, **words)

    def from_allocation(self, rng: np.random.Generator, at: Searched, data: Any) -> Any:
        """A state with these topics in this order, all else drawn given them."""
        psi = at.psi(self.link(data))
        words = self._words_at(rng, at, data)
        of_psi = self.psi_mean.start(rng, psi, data)
        topic_counts = kept_counts(at.allocation.topic_counts)
        return self.state_type(psi=psi, topic_counts=topic_counts, **of_psi, **words)

    def local_step(
        self, rng: np.random.Generator, state: Any, data: Any, tables: WordTables | None = None
    ) -> tuple[Any, Sums]:
        """Z and psi of a block of documents."""
        topic_counts, words = self._allocate(rng, state, data, tables)
        psi = self._sample_psi(rng, state, topic_counts, data)
        counts, sums = self.psi_mean.sums(state, psi, data)
        moved = replace(state, psi=psi, topic_counts=kept_counts(topic_counts))
        return moved, Sums((counts, *words), sums)

    def shared_step(self, rng: np.random.Generator, state: Any, sums: Sums, data: Any) -> Any:
        """Words given z; the mean and covariance of psi given psi."""
        state = self._sample_words(rng, state, sums.exact[1], data)
        return self._sample_mean(rng, state, sums, data)

    def _sample_psi(
        self, rng: np.random.Generator, state: Any, topic_counts: IntArray, data: Any
    ) -> FloatArray:
        """Psi given the topics of the tokens: all sticks in one of two steps (`sample_sticks`)."""
        means = self.psi_mean.means(state, data)
        return sample_sticks(rng, self.link(data), state.psi, topic_counts, means, state.Sigma)

    def _sample_mean(self, rng: np.random.Generator, state: Any, sums: Sums, data: Any) -> Any:
        """The mean and covariance of psi given psi."""
        of_psi = PsiSums(sums.exact[0], sums.rounded)
        return replace(state, **self.psi_mean.given(rng, state, of_psi, data))

    def start_concentration(self) -> float:
        """Dirichlet concentration of words in topics."""
        return self.word_concentration

    def _words_from_prior(self, rng: np.random.Generator, data: Any) -> dict[str, Any]:
        """Fields of the state that say what words topics have, from their prior."""
        topics = Dirichlet(self.word_concentration).sample(rng, (self.num_topics, data.num_words))
        return {"topics": topics}

    def _words_at(self, rng: np.random.Generator, at: Searched, data: Any) -> dict[str, Any]:
        """The same given the topics of the tokens."""
        topics = Dirichlet(self.word_concentration).condition(at.allocation.word_counts.T)
        return {"topics": topics.sample(rng)}

    def _sample_words(
        self, rng: np.random.Generator, state: Any, word_counts: IntArray, data: Any
    ) -> Any:
        """The state with words of topics drawn given the tokens' topics."""
        return replace(state, topics=sample_topics(rng, self.word_concentration, word_counts))


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
    topic_counts : int32 array, ``(num_documents, num_topics)``
        Tokens of each document by topic, as last allocated.
    """

    psi: FloatArray
    mu: FloatArray
    Sigma: FloatArray
    topics: FloatArray
    topic_counts: NDArray[np.int32]


class NormalTopics(GaussianTopics):
    """psi_d ~ N(mu, Sigma), the same for every document, and mu, Sigma ~ NIW."""

    __slots__ = ()
    gaussian: NormalInverseWishart | None
    state_type: ClassVar[type[Any]] = ExchangeableTopicsState

    def __post_init__(self) -> None:
        GaussianTopics.__post_init__(self)
        centre = self._uniform()
        if self.gaussian is None:
            object.__setattr__(self, "gaussian", NormalInverseWishart.weak(centre))
        as_kind(self.gaussian, "gaussian", NormalInverseWishart)
        given = len(self.gaussian_prior.mean)
        if given != len(centre):
            raise ValueError(
                f"gaussian must have {len(centre)} dimensions for {self.num_topics} topics,"
                f" got {given}"
            )

    @property
    def gaussian_prior(self) -> NormalInverseWishart:
        """The prior of mu and Sigma, whether it was given or not."""
        assert self.gaussian is not None  # set by __post_init__
        return self.gaussian

    @property
    def psi_mean(self) -> PsiMean:
        """The prior of the mean and covariance of psi, and how they move."""
        return ConstantMean(self.gaussian_prior, self.scales)

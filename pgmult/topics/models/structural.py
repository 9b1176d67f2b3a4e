"""Correlated topics whose prevalence depends on covariates: a structural topic model.

The correlated topic model under the stick-breaking link with a linear model for the mean of psi
(Roberts, Stewart and Airoldi 2016, "A model of text for experimentation in the social sciences",
whose link is the softmax)::

    topics_k      ~ Dirichlet(eta),                 k = 1..K        words in topics
    B, Sigma      ~ MNIW,                                           B: covariates x sticks
    psi_d         ~ N(B' x_d, Sigma),               d = 1..D        K - 1 sticks
    theta_d       = stick-breaking(psi_d)                           topics in documents
    z_di, w_di    ~ theta_d, topics_{z_di}                          each token's topic and word

The blocks of the sweep are those of `pgmult.topics.CorrelatedTopics`; the last one is a Bayesian
regression of psi on the covariates.

A coefficient lives on a stick, and what it does to a topic depends on the sticks before it. So read
effects from `pgmult.topics.effects`: the expected topic proportions E[theta | x] at covariates x,
and differences of them.

>>> import numpy as np, pgmult
>>> rng = np.random.default_rng(0)
>>> counts = rng.poisson(0.5, size=(20, 30))
>>> data = pgmult.topics.with_covariates(counts, {"year": np.arange(20), "party": ["D", "R"] * 10})
>>> posterior = pgmult.sample(
...     pgmult.topics.StructuralTopics(num_topics=3), data,
...     draws=10, tune=10, chains=1, random_seed=0, progressbar=False,
... )
>>> posterior["coefficients"].shape
(1, 10, 3, 2)
>>> found = pgmult.topics.effects(posterior, "party", at={"year": 10})
>>> found.mean.shape, pgmult.topics.difference(found, "R", "D").mean.shape
((2, 3), (1, 3))
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pgmult.core.arguments import as_kind
from pgmult.core.typing import FloatArray, IntArray
from pgmult.links import StickBreaking
from pgmult.priors import CovarianceScales, MatrixNormalInverseWishart, MvNormal
from pgmult.priors.matrix_normal import linear_means
from pgmult.topics.data.structured import StructuredCorpus
from pgmult.topics.models.gaussian import GaussianTopics
from pgmult.topics.starts.searches import START_SWEEPS
from pgmult.topics.updates.allocation import allocate_tokens
from pgmult.topics.updates.sticks import sample_sticks
from pgmult.topics.updates.words import sample_topics

__all__ = ["StructuralTopics", "StructuralTopicsState"]


@dataclass(frozen=True, slots=True, eq=False)
class StructuralTopicsState:
    """One point of the chain.

    Attributes
    ----------
    psi : array, ``(num_documents, num_topics - 1)``
    coefficients : array, ``(num_covariates, num_topics - 1)``
        Of the centred and scaled covariates.
    Sigma : array, ``(num_topics - 1, num_topics - 1)``
        Covariance of psi given the covariates.
    topics : array, ``(num_topics, num_words)``
        Word probabilities of each topic; rows sum to 1.
    topic_counts : int64 array, ``(num_documents, num_topics)``
        Tokens of each document by topic, as last allocated.
    """

    psi: FloatArray
    coefficients: FloatArray
    Sigma: FloatArray
    topics: FloatArray
    topic_counts: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class StructuralTopics(GaussianTopics):
    """Correlated topic model with covariates of prevalence.

    Parameters
    ----------
    num_topics : int
        K >= 2.
    word_concentration : float
        Dirichlet concentration eta of words in topics.
    regression : MatrixNormalInverseWishart, optional
        Prior of the coefficients and Sigma on K - 1 sticks; by default
        `MatrixNormalInverseWishart.weak` around no effects and an intercept at which all topics are
        equally probable: worth one average document, and the same for any units and coding of the
        covariates.
    order : sequence of num_topics integers, optional
        Another order of sticks: see `pgmult.StickBreaking`.
    start_sweeps : int
        Collapsed sweeps of the search that a chain starts from: see `pgmult.topics.find_start`.
    scales : HalfTScales or CommonScale, optional
        Prior of the scales of Sigma (`pgmult.priors.scales`), which `regression` fixes otherwise.

    Notes
    -----
    The data are a `StructuredCorpus`, made by `pgmult.topics.with_covariates`. A sweep costs what
    one of `CorrelatedTopics` does, plus O(D p (p + K)) for p covariates.
    """

    num_topics: int
    word_concentration: float = 0.05
    regression: MatrixNormalInverseWishart | None = None
    order: Sequence[int] | None = None
    start_sweeps: int = START_SWEEPS
    scales: CovarianceScales | None = None

    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **GaussianTopics.dims,
        "coefficients": ("covariate", "stick"),
        "unscaled_coefficients": ("covariate", "stick"),
    }
    default_keep: ClassVar[tuple[str, ...]] = ("coefficients", *GaussianTopics.default_keep)

    def __post_init__(self) -> None:
        GaussianTopics.__post_init__(self)
        if self.regression is None:
            return
        as_kind(self.regression, "regression", MatrixNormalInverseWishart)
        if self.regression.mean.shape[1] != self.num_topics - 1:
            raise ValueError(
                f"regression must have {self.num_topics - 1} columns (num_topics - 1),"
                f" got {self.regression.mean.shape[1]}"
            )

    def _prior_of(self, data: StructuredCorpus) -> MatrixNormalInverseWishart:
        names = data.design.names
        if self.regression is None:
            mean = np.zeros((len(names), self.num_topics - 1))
            mean[0] = self._uniform()
            return MatrixNormalInverseWishart.weak(mean, data.covariates)
        if len(self.regression.mean) != len(names):
            raise ValueError(
                f"regression must have {len(names)} rows, one a covariate ({', '.join(names)}),"
                f" got {len(self.regression.mean)}"
            )
        return self.regression

    def as_data(self, data: Any) -> StructuredCorpus:
        """`data` itself, if it is a corpus with as many covariates as the prior has."""
        if not isinstance(data, StructuredCorpus):
            raise TypeError(
                f"data must be a corpus with covariates, got {type(data).__name__}"
                " (make one with pgmult.topics.with_covariates)"
            )
        self._prior_of(data)
        return data

    def coords(self, data: StructuredCorpus) -> Mapping[str, NDArray[Any]]:
        """Covariates by name; words and documents where the corpus has names."""
        return {"covariate": data.design.names, **GaussianTopics.coords(self, data)}

    def link(self, data: Any = None) -> StickBreaking:
        """The link from psi to topic proportions."""
        return StickBreaking(self.order)

    def prior(self, rng: np.random.Generator, data: StructuredCorpus) -> StructuralTopicsState:
        """A state from the prior, its topic counts from the documents' totals."""
        regression = self._prior_of(data)
        if self.scales is not None:
            regression = self.scales.sample(rng, regression)
        coefficients, Sigma = regression.sample(rng)
        psi = MvNormal(linear_means(data.covariates, coefficients), Sigma).sample(rng)
        words = self._words_from_prior(rng, psi, data)
        return StructuralTopicsState(psi, coefficients, Sigma, *words)

    def _around(
        self,
        rng: np.random.Generator,
        psi: FloatArray,
        topics: FloatArray,
        topic_counts: IntArray,
        data: StructuredCorpus,
    ) -> StructuralTopicsState:
        """A state of these psi and topics."""
        coefficients, Sigma = self._prior_of(data).condition(psi, data.covariates).sample(rng)
        return StructuralTopicsState(psi, coefficients, Sigma, topics, topic_counts)

    def step(
        self, rng: np.random.Generator, state: StructuralTopicsState, data: StructuredCorpus
    ) -> StructuralTopicsState:
        """One sweep over all blocks."""
        topic_counts, word_counts = allocate_tokens(
            rng, data, self.theta(state, data), state.topics
        )
        topics = sample_topics(rng, self.word_concentration, word_counts)
        means = linear_means(data.covariates, state.coefficients)
        psi = sample_sticks(rng, self.link(data), state.psi, topic_counts, means, state.Sigma)
        regression = self._prior_of(data)
        if self.scales is not None:
            regression = self.scales.given(rng, state.Sigma, regression)
        coefficients, Sigma = regression.condition(psi, data.covariates).sample(rng)
        return StructuralTopicsState(psi, coefficients, Sigma, topics, topic_counts)

    def unscaled_coefficients(
        self, state: StructuralTopicsState, data: StructuredCorpus
    ) -> FloatArray:
        """Coefficients of the covariates as given, ``(num_covariates, num_topics - 1)``."""
        return data.design.unscale(state.coefficients)

    def mu(self, state: StructuralTopicsState, data: StructuredCorpus) -> FloatArray:
        """Mean of psi at the documents' average covariates, ``(num_topics - 1,)``.

        With Sigma it says how topics go together in documents of the same covariates.
        """
        average = data.covariates.mean(axis=0)
        return np.asarray(np.einsum("p,pn->n", average, state.coefficients))

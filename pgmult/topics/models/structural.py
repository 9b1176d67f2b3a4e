"""Correlated topics whose prevalence depends on covariates: a structural topic model.

The correlated topic model with a linear model for the mean of psi (Roberts, Stewart and Airoldi
2016, "A model of text for experimentation in the social sciences")::

    log eta       ~ N(log 0.1, 1)                                   unless it is fixed
    topics_k      ~ Dirichlet(eta),                 k = 1..K        words in topics
    B, Sigma      ~ MNIW,                                           B: covariates x topics
    u_ja          ~ N(0, rho_j Sigma), or N(0, Omega_j)             effect of level a, term j
    psi_d         ~ N(B' x_d + sum_j u_j' z_jd, Sigma),  d = 1..D   K coordinates
    theta_d       = softmax(psi_d)                                  topics in documents
    z_di, w_di    ~ theta_d, topics_{z_di}                          each token's topic and word

The blocks of the sweep are those of `pgmult.topics.LogisticNormalTopics`, the last one a Bayesian
regression of psi on the covariates. Three parts are optional:

* random terms (authors, smooth curves) of the formula: B, u and Sigma stay one exact draw, and
  sqrt(rho_j) is half-t (`pgmult.priors.mixed_regression`);
* groups of documents with words of their own, phi_gk ~ Dir(c_k topics_k): the content covariates of
  stm, by table counts (`pgmult.topics.updates.content`);
* keywords, which say in advance what some topics are about (`pgmult.topics.updates.keywords`).

The proportion of a topic depends on the coefficients of all topics, and adding the same to all of
them changes nothing. So do not read coefficients one by one: `pgmult.topics.effects` gives the
expected topic proportions E[theta | x] at covariates x, and differences of them.

>>> import numpy as np, pgmult
>>> rng = np.random.default_rng(0)
>>> counts = rng.poisson(0.5, size=(20, 30))
>>> data = pgmult.topics.with_covariates(counts, {"year": np.arange(20), "party": ["D", "R"] * 10})
>>> posterior = pgmult.sample(
...     pgmult.topics.StructuralTopics(num_topics=3), data,
...     draws=10, tune=10, chains=1, random_seed=0, progressbar=False,
... )
>>> posterior["coefficients"].shape
(1, 10, 3, 3)
>>> found = pgmult.topics.effects(posterior, "party", at={"year": 10})
>>> found.mean.shape, found.difference("party", "R", "D").mean.shape
((2, 3), (3,))

Effects of authors, and words by party:

>>> table = {"party": ["D", "R"] * 10, "author": [f"author {i // 2 % 5}" for i in range(20)]}
>>> formula = "~ party + (1 | author)"
>>> data = pgmult.topics.with_covariates(counts, table, formula, content="~ party")
>>> posterior = pgmult.sample(
...     pgmult.topics.StructuralTopics(num_topics=3), data,
...     draws=10, tune=10, chains=1, random_seed=0, progressbar=False,
... )
>>> posterior["effects"].shape, posterior["group_topics"].shape
((1, 10, 5, 3), (1, 10, 2, 3, 30))
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pgmult.core.parameters import axes_of, real
from pgmult.core.typing import FloatArray, Generator, IntArray
from pgmult.links import LogisticNormal
from pgmult.priors import MatrixNormalInverseWishart
from pgmult.sampling.blocks import BLOCK_ROWS, Total, blocks, step
from pgmult.topics.data.corpus import StructuredCorpus
from pgmult.topics.models import topic_model
from pgmult.topics.priors.regression import RegressedMean
from pgmult.topics.starts.searches import START_SWEEPS, Searched, StartSweeps
from pgmult.topics.updates.allocation import no_counts
from pgmult.topics.updates.content import ContentPrior, WordsByGroup
from pgmult.topics.updates.keywords import KeywordsState
from pgmult.topics.updates.word_concentration import CENTRE
from pgmult.topics.updates.words import DirichletWords

_EMPTY1, _EMPTY2, _EMPTY3 = (partial(np.empty, (0,) * axes) for axes in (1, 2, 3))


@dataclass(frozen=True, slots=True, eq=False)
class StructuralTopicsState(KeywordsState):
    """One point of the chain; arrays that the data or the model do not use are empty.

    Attributes
    ----------
    psi : array, ``(num_documents, num_topics)``
    coefficients : array, ``(num_covariates, num_topics)``
        Of the centred and scaled covariates.
    Sigma : array, ``(num_topics, num_topics)``
        Covariance of psi given the covariates and random effects.
    topics : array, ``(num_topics, num_words)``
        Word probabilities of each topic, whatever the group; rows sum to 1.
    topic_counts : int32 array, ``(num_documents, num_topics)``
        Tokens of each document by topic, as last allocated.
    effects : array, ``(num_effects, num_topics)``
        Of random terms, one after the other.
    effect_variances : array, ``(num_terms,)``
        Rho: variance of a term's effects in units of Sigma.
    group_topics : array, ``(num_groups, num_topics, num_words)``
        Word probabilities in each group.
    content_concentration : array, ``(num_topics,)``
        How close words of groups stay to those of the topic, in tokens.
    content_rate : float
        Of the prior of these.
    keyword_shares, keyword_words : arrays
        See `pgmult.topics.updates.keywords.KeywordsState`.
    plain_topics : array, ``(num_topics, num_words)``
        With keywords and groups, what groups vary around: `topics` without keywords.
    word_counts : int32 array, ``(num_topics, num_words)``, by group ``(num_groups, ...)``
        Tokens by word, as last allocated, but for those that came as keywords; empty before the
        first sweep.
    word_concentration : float
        Eta, of the topics' Dirichlet prior.
    """

    psi: Annotated[FloatArray, "document", "topic"]
    coefficients: Annotated[FloatArray, "covariate", "topic"]
    Sigma: Annotated[FloatArray, "topic", "other_topic"]
    topics: Annotated[FloatArray, "topic", "word"]
    topic_counts: Annotated[NDArray[np.int32], "document", "topic"]
    effects: Annotated[FloatArray, "effect", "topic"] = field(default_factory=_EMPTY2)
    effect_variances: Annotated[FloatArray, "term"] = field(default_factory=_EMPTY1)
    group_topics: Annotated[FloatArray, "group", "topic", "word"] = field(default_factory=_EMPTY3)
    content_concentration: Annotated[FloatArray, "topic"] = field(default_factory=_EMPTY1)
    content_rate: float = 0.0
    plain_topics: FloatArray = field(default_factory=_EMPTY2)
    word_counts: NDArray[np.int32] = field(default_factory=no_counts, metadata={"has_prior": False})
    word_concentration: float = CENTRE


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StructuralTopics(topic_model.TopicModel[StructuredCorpus]):
    """Correlated topic model with covariates of prevalence and of content.

    Parameters
    ----------
    num_topics : int
        K >= 2.
    word_concentration : float, optional
        Dirichlet concentration eta of words in topics; learned if left out: see
        `pgmult.topics.updates.word_concentration`.
    regression : MatrixNormalInverseWishart, optional
        Prior of the coefficients and Sigma on K coordinates; by default
        `MatrixNormalInverseWishart.weak` around no effects and an intercept at which all topics are
        equally probable: worth one average document, and the same for any units and coding of the
        covariates.
    start_sweeps : int
        Collapsed sweeps of the search that a chain starts from: see `pgmult.topics.find_start`.
    effect_scale : float
        The standard deviation of a random term's effects, in units of that of psi given all
        covariates, is half-t with 3 degrees of freedom and this scale.
    content : ContentPrior
        How far words by group may stray from those of their topic.
    keywords : mapping from str to sequence of str, optional
        Words of the first topics, by names of your own: ``{"economy": ["tax", "jobs"]}``.
    block_rows : int
        Documents per block: see `pgmult.sampling.blocks`. It changes the draws, not their
        distribution.

    Notes
    -----
    The data are a `StructuredCorpus`, made by `pgmult.topics.with_covariates`. A sweep costs what
    one of `LogisticNormalTopics` does, plus O(D (p + K)**2) for p covariates; with random terms, of
    which the largest grouping has A levels and the others r, some 10 J (A (p + r)**2 + (p + r)**3 +
    K**3) more for J terms; with G groups O(G K V) gamma variates.

    Draws keep ``group_topics`` in single precision, 4 G K V bytes each, which is more than all else
    together where G > 2. Thin, or keep less: with ``keep=`` and no ``group_topics`` there is still
    all that prevalence needs, but no `pgmult.topics.content` and no `pgmult.topics.fold_in`.
    """

    num_topics: topic_model.NumTopics
    word_concentration: topic_model.WordConcentration = None
    regression: MatrixNormalInverseWishart | None = None
    start_sweeps: StartSweeps = START_SWEEPS
    effect_scale: Annotated[float, real(above=0.0, minimum=1e-6)] = 1.0
    content: ContentPrior = field(default_factory=ContentPrior)
    keywords: Any = None
    block_rows: topic_model.BlockRows = BLOCK_ROWS

    state_type = StructuralTopicsState
    dims = axes_of(StructuralTopicsState) | topic_model.OF_TOPICS | {
        "mu": ("topic",), "group_tokens": ("group", "topic"),
    }  # fmt: skip
    label_dims = frozenset({"topic", "other_topic"})
    single_precision = frozenset({"group_topics"})
    label_parts: ClassVar[Mapping[str, str]] = {"topic": "group_topics"}
    summary_names = frozenset({*topic_model.SUMMARIES, "group_tokens", "mu"})
    reported_names = "topic_shares", "coefficients", "effects"
    default_keep = (
        "coefficients", "effects", "effect_variances", "group_topics",
        "group_tokens", "content_concentration", *topic_model.TopicModel.default_keep,
    )  # fmt: skip

    def _complete(self) -> None:
        size = self.num_topics if self.regression is None else self.regression.mean.shape[1]
        if size != self.num_topics:
            every = f"a column for each of {self.num_topics} topics"
            raise ValueError(f"regression must have {every}, got {size}")

    def link(self, data: object = None) -> LogisticNormal:
        """The link from psi to topic proportions."""
        return LogisticNormal()

    @property
    def psi_mean(self) -> RegressedMean:
        """The regression of psi on covariates and random terms."""
        return RegressedMean(self.regression, self._uniform(), self.effect_scale)

    def words(self, data: StructuredCorpus) -> DirichletWords:
        """The prior of the topics' words, by group if there are groups, and how they move."""
        about = self.num_topics, self.word_concentration, self.keywords
        if data.content is None:
            return DirichletWords(*about)
        return WordsByGroup(*about, self.content)

    def from_allocation(self, rng: Generator, at: Searched, data: Any) -> StructuralTopicsState:
        """The start of every topic model; words of groups may differ after some sweeps of them."""
        state: StructuralTopicsState = super(StructuralTopics, self).from_allocation(rng, at, data)
        if isinstance(words := self.words(data), WordsByGroup):
            held = partial(self.shared_step, words=replace(words, hold=True))
            for _ in range(self.content.start_sweeps):
                state = step(self, rng, state, data, held)
        return state

    def group_tokens(self, state: StructuralTopicsState, data: StructuredCorpus) -> IntArray:
        """Tokens of each topic in each group as last allocated, ``(num_groups, num_topics)``.

        Where there are few, the group's words of the topic are those of its prior.
        """
        return self.version_tokens(state, data)

    def mu(self, state: StructuralTopicsState, data: StructuredCorpus) -> FloatArray:
        """Mean of psi at the documents' average covariates, ``(n,)``.

        With Sigma it determines how topics correlate in documents of the same covariates.
        """
        parts, total = blocks(data.num_documents, self.block_rows), Total()
        for b, part in enumerate(parts):
            total.add(b, self.psi_mean.summary(data.rows(part)))
        return self.psi_mean.summarized("mu", state, total.result(len(parts)), data)

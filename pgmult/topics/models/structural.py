"""Correlated topics whose prevalence depends on covariates: a structural topic model.

The correlated topic model with a linear model for the mean of psi (Roberts, Stewart and Airoldi
2016, "A model of text for experimentation in the social sciences")::

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
from pgmult.core.typing import FloatArray, IntArray
from pgmult.links import LogisticNormal
from pgmult.priors import MatrixNormalInverseWishart
from pgmult.sampling.blocks import BLOCK_ROWS, Asks, Sums, Total, blocks, step
from pgmult.topics.data.corpus import Corpus, StructuredCorpus, refuse_to_simulate, simulate_words
from pgmult.topics.models.gaussian import (
    OF_TOPICS,
    BlockRows,
    Concentration,
    GaussianTopics,
    NumTopics,
)
from pgmult.topics.models.words import KeywordsState
from pgmult.topics.priors.regression import RegressedMean
from pgmult.topics.starts.allocations import Searched
from pgmult.topics.starts.searches import START_SWEEPS, StartSweeps
from pgmult.topics.updates.allocation import kept_counts, mean_words, no_counts
from pgmult.topics.updates.content import ContentPrior, sample_content, vary
from pgmult.topics.updates.keywords import Keywords

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
        See `pgmult.topics.models.words.KeywordsState`.
    plain_topics : array, ``(num_topics, num_words)``
        With keywords and groups, what groups vary around: `topics` without keywords.
    word_counts : int32 array, ``(num_topics, num_words)``, by group ``(num_groups, ...)``
        Tokens by word, as last allocated, but for those that came as keywords; empty before the
        first sweep.
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
    word_counts: NDArray[np.int32] = field(default_factory=no_counts, metadata={"has_law": False})


@dataclass(frozen=True, slots=True, eq=False)
class StructuralTopics(GaussianTopics):
    """Correlated topic model with covariates of prevalence and of content.

    Parameters
    ----------
    num_topics : int
        K >= 2.
    word_concentration : float
        Dirichlet concentration eta of words in topics.
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

    num_topics: NumTopics
    word_concentration: Concentration = 0.05
    regression: MatrixNormalInverseWishart | None = None
    start_sweeps: StartSweeps = START_SWEEPS
    effect_scale: Annotated[float, real(above=0.0, minimum=1e-6)] = 1.0
    content: ContentPrior = field(default_factory=ContentPrior)
    keywords: Any = None
    block_rows: BlockRows = BLOCK_ROWS

    state_type: ClassVar[type[Any]] = StructuralTopicsState
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = axes_of(StructuralTopicsState) | {
        **OF_TOPICS,
        "mu": ("topic",),
        "group_tokens": ("group", "topic"),
    }
    single_precision: ClassVar[frozenset[str]] = frozenset({"group_topics"})
    label_parts: ClassVar[Mapping[str, str]] = {"topic": "group_topics"}
    summary_names: ClassVar[frozenset[str]] = GaussianTopics.summary_names | {"group_tokens", "mu"}
    default_keep: ClassVar[tuple[str, ...]] = (
        "coefficients", "effects", "effect_variances", "group_topics",
        "group_tokens", "content_concentration", *GaussianTopics.default_keep,
    )  # fmt: skip

    def _complete(self) -> None:
        if self.regression is not None and self.regression.mean.shape[1] != self.num_topics:
            raise ValueError(
                f"regression must have a column for each of {self.num_topics} topics, got"
                f" {self.regression.mean.shape[1]}"
            )

    def link(self, data: Any = None) -> LogisticNormal:
        """The link from psi to topic proportions."""
        return LogisticNormal()

    @property
    def psi_mean(self) -> RegressedMean:
        """The regression of psi on covariates and random terms."""
        return RegressedMean(self.regression, self._uniform(), self.effect_scale)

    def as_data(self, data: Any) -> StructuredCorpus:
        """`data` itself, if it is a corpus with as many covariates as the prior has."""
        if not isinstance(data, StructuredCorpus):
            raise TypeError(
                f"data must be a corpus with covariates, got {type(data).__name__}"
                " (make one with pgmult.topics.with_covariates)"
            )
        self.psi_mean.prior_of(data)
        self._keywords_in(data)
        return data

    def coords(self, data: StructuredCorpus) -> Mapping[str, NDArray[Any]]:
        """Covariates, effects and groups by name; words and documents where they have names."""
        coords = {"covariate": data.design.names, **GaussianTopics.coords(self, data)}
        coords["coding"] = np.array([data.design.coding], dtype=np.str_)
        if data.design.terms:
            coords["term"] = np.array([term.name for term in data.design.terms], dtype=np.str_)
            coords["effect"] = data.design.effect_names
        if data.content is not None:
            coords["group"] = data.content.labels
        return coords

    def absent(self, data: StructuredCorpus) -> frozenset[str]:
        """Variables that these data, or this model, leave empty."""
        absent = set(GaussianTopics.absent(self, data))
        if not data.design.terms:
            absent |= {"effects", "effect_variances"}
        if data.content is None:
            absent |= {"group_topics", "group_tokens", "content_concentration", "content_rate"}
        return frozenset(absent)

    def _varied_from_prior(
        self, rng: np.random.Generator, state: StructuralTopicsState, data: StructuredCorpus
    ) -> StructuralTopicsState:
        """The state with groups and keywords, both from their priors around its topics."""
        if data.content is not None:
            rate = self.content.sample_rate(rng)
            concentration = self.content.sample(rng, rate, self.num_topics)
            none = np.zeros((data.content.num_groups, *state.topics.shape), dtype=np.int64)
            state = replace(
                state, group_topics=vary(rng, state.topics, concentration, none),
                content_concentration=concentration, content_rate=rate,
                word_counts=no_counts(*none.shape),
            )  # fmt: skip
        varied: StructuralTopicsState = GaussianTopics._varied_from_prior(self, rng, state, data)
        return varied

    def _mixed(
        self,
        state: StructuralTopicsState,
        shares: FloatArray,
        words: FloatArray,
        data: StructuredCorpus,
    ) -> StructuralTopicsState:
        """The state with keywords mixed into topics that have none yet."""
        mixed: StructuralTopicsState = GaussianTopics._mixed(self, state, shares, words, data)
        if data.content is None:
            return mixed
        groups = Keywords.of(self.keywords, data).mixed(state.group_topics, shares, words)
        return replace(mixed, group_topics=groups, plain_topics=state.topics)

    def _from_part(
        self, rng: np.random.Generator, at: Searched, part: StructuredCorpus
    ) -> StructuralTopicsState:
        """A state of a part: topics at their mean, if neither groups nor keywords vary them."""
        if part.content is not None:
            whole: StructuralTopicsState = self.from_allocation(rng, at, part)
            return whole
        state: StructuralTopicsState = GaussianTopics._from_part(self, rng, at, part)
        return state

    def _varied_at_start(
        self, rng: np.random.Generator, state: StructuralTopicsState, data: StructuredCorpus
    ) -> StructuralTopicsState:
        """With groups, some sweeps follow in which these are free to differ."""
        topics = state.topics
        if data.content is not None:
            content = self.content
            state = replace(
                state,
                group_topics=np.repeat(topics[None], data.content.num_groups, axis=0),
                word_counts=no_counts(data.content.num_groups, *topics.shape),
                content_concentration=np.full(self.num_topics, content.start),
                content_rate=content.shape / content.start,
            )
        state = GaussianTopics._varied_at_start(self, rng, state, data)
        if data.content is not None:
            hold = partial(self.shared_step, hold=True)
            for _ in range(self.content.start_sweeps):
                state = step(self, rng, state, data, hold)
        return state

    def shared_step(
        self,
        rng: np.random.Generator,
        state: StructuralTopicsState,
        sums: Sums,
        data: StructuredCorpus,
        ask: Asks,
        hold: bool = False,
    ) -> StructuralTopicsState:
        """All words, then the regression of psi; `hold` keeps concentrations of content fixed."""
        state = self._sample_words(rng, state, sums.exact[1], data, hold)
        moved: StructuralTopicsState = self._sample_mean(rng, state, sums, data)
        return moved

    def _sample_words(
        self,
        rng: np.random.Generator,
        state: StructuralTopicsState,
        word_counts: IntArray,
        data: StructuredCorpus,
        hold: bool = False,
    ) -> StructuralTopicsState:
        """Words of topics, groups and keywords given the tokens' topics."""
        if data.content is None:
            plain_state: StructuralTopicsState = GaussianTopics._sample_words(
                self, rng, state, word_counts, data
            )
            return plain_state
        keywords = self._keywords_in(data)
        by_word = word_counts.T.reshape(data.content.num_groups, data.num_words, self.num_topics)
        counts = np.ascontiguousarray(by_word.swapaxes(1, 2))
        plain, shares, words = state, state.keyword_shares, state.keyword_words
        if keywords is not None:
            counts, shares, words = keywords.sample(rng, counts, state.group_topics, shares, words)
            plain = replace(state, topics=state.plain_topics)
        eta = self.word_concentration
        moved = sample_content(rng, self.content, eta, counts, plain, hold)
        state = replace(state, word_counts=kept_counts(counts), **moved)
        return state if keywords is None else self._mixed(state, shares, words, data)

    def mean_topics(self, state: StructuralTopicsState, data: StructuredCorpus) -> FloatArray:
        """Mean word probabilities, as `_topics_of` has them, given which topic a token is of.

        And given which came as keywords, and what groups vary around.
        """
        counts, content = state.word_counts, data.content
        if content is None:
            return GaussianTopics.mean_topics(self, state, data)
        if not counts.any():
            return self._topics_of(state, data)
        above = state.plain_topics if self.keywords else state.topics
        around = state.content_concentration[:, None] * above
        mean = mean_words(state.group_topics, counts, around)
        keywords = self._keywords_in(data)
        if keywords is not None:
            mean = keywords.mixed(mean, state.keyword_shares, state.keyword_words)
        return np.ascontiguousarray(mean.swapaxes(0, 1)).reshape(self.num_topics, -1)

    def simulate(
        self, rng: np.random.Generator, state: StructuralTopicsState, data: StructuredCorpus
    ) -> StructuredCorpus:
        """Documents of the same lengths: a word for every token that the state allocates."""
        if data.content is None:
            simulated: StructuredCorpus = GaussianTopics.simulate(self, rng, state, data)
            return simulated
        refuse_to_simulate(data)
        rows = data.content.codes[:, None] * self.num_topics + np.arange(self.num_topics)
        assignments = np.repeat(rows.ravel(), state.topic_counts.ravel())
        topics = state.group_topics.reshape(-1, data.num_words)
        return simulate_words(rng, assignments, topics, data)

    def local_summary(
        self,
        state: StructuralTopicsState,
        data: StructuredCorpus,
        by_word: FloatArray | None = None,
    ) -> Sums:
        """Of a block: tokens of topics, and by group; the log likelihood, sums of covariates."""
        (tokens,), (words,) = GaussianTopics.local_summary(self, state, data, by_word)
        count = np.array(data.num_documents)
        total = data.covariates.sum(axis=0)
        return Sums((tokens, self.group_tokens(state, data), count), (words, total))

    def summarized(
        self, name: str, state: StructuralTopicsState, summary: Sums, data: StructuredCorpus
    ) -> Any:
        """Tokens by group and mu, and what other topic models have."""
        _, groups, count = summary.exact
        if name == "group_tokens":
            return groups
        if name == "mu":
            average = summary.rounded[1] / count
            return np.asarray(np.einsum("p,pn->n", average, state.coefficients))
        return GaussianTopics.summarized(self, name, state, summary, data)

    def _corpus_of(self, data: StructuredCorpus) -> Corpus:
        """The words as pairs of a group and a word."""
        return data.by_version()

    def _topics_of(self, state: StructuralTopicsState, data: StructuredCorpus) -> FloatArray:
        """Topics over these pairs, ``(num_topics, num_groups * num_words)``."""
        if not len(state.group_topics):
            return state.topics
        topics = np.ascontiguousarray(state.group_topics.swapaxes(0, 1))
        return topics.reshape(len(state.topics), -1)

    def row_probs(self, draw: Mapping[str, Any], data: StructuredCorpus) -> FloatArray:
        """Word probabilities of documents, from the topics of their group if there are groups."""
        if data.versions is None:
            return GaussianTopics.row_probs(self, draw, data)
        return data.versions.word_probs(*self.kept_shares(draw, "group_topics", data))

    def group_tokens(self, state: StructuralTopicsState, data: StructuredCorpus) -> IntArray:
        """Tokens of each topic in each group as last allocated, ``(num_groups, num_topics)``.

        Where there are few, the group's words of the topic are those of its prior.
        """
        if data.versions is None:
            return np.zeros((0, self.num_topics), dtype=np.int64)
        return data.versions.tokens(state.topic_counts)

    def mu(self, state: StructuralTopicsState, data: StructuredCorpus) -> FloatArray:
        """Mean of psi at the documents' average covariates, ``(n,)``.

        With Sigma it determines how topics correlate in documents of the same covariates.
        """
        parts = blocks(data.num_documents, self.block_rows)
        total = Total()
        for b, part in enumerate(parts):
            total.add(b, Sums((), (data.covariates[part].sum(axis=0),)))
        average = total.result(len(parts)).rounded[0] / data.num_documents
        return np.asarray(np.einsum("p,pn->n", average, state.coefficients))

"""Topic models with Gaussian psi: a link, a mean of psi, and words of topics.

A document's topic proportions are ``link(psi_d)``, psi_d is Gaussian, and each token has a topic
and a word of it. A model names three parts: `link`, what the mean of psi depends on
(`psi_mean`: `pgmult.topics.priors.means`), and how words vary (`words`:
`pgmult.topics.updates.words`). All else is the same for all models. With ``keywords=`` some words
of the first topics are set in advance (`pgmult.topics.updates.keywords`):

>>> import numpy as np, pgmult
>>> counts = np.random.default_rng(0).poisson(0.5, size=(20, 4))
>>> corpus = pgmult.topics.as_corpus(counts, ["tax", "jobs", "war", "peace"])
>>> posterior = pgmult.sample(
...     pgmult.topics.CorrelatedTopics(num_topics=3, keywords={"economy": ["tax", "jobs"]}), corpus,
...     draws=10, tune=10, chains=1, random_seed=0, progressbar=False,
... )
>>> strength = posterior.keywords()
>>> strength.labels["topic"], strength.mean.shape
(['economy'], (1, 2))
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Generic

import numpy as np
from numpy.typing import NDArray

from pgmult.core.machine import refuse_unaffordable
from pgmult.core.parameters import Checked, axes_of, real
from pgmult.core.typing import Array, FloatArray, Generator, IntArray
from pgmult.links import LogisticNormal, StickBreaking
from pgmult.priors import NormalInverseWishart
from pgmult.sampling.blocks import BLOCK_ROWS, Asks, Sums, as_block_rows, started
from pgmult.topics.data.corpus import Documents, as_num_topics, refuse_to_simulate, simulate_words
from pgmult.topics.priors.means import ConstantMean, Fields, PsiMean, PsiState
from pgmult.topics.starts import searches
from pgmult.topics.starts.find import TopicStart
from pgmult.topics.starts.searches import Placement, Searched
from pgmult.topics.updates import allocation
from pgmult.topics.updates.drifting import DriftingWords
from pgmult.topics.updates.keywords import Keywords, KeywordsState, as_keywords
from pgmult.topics.updates.swing import swing_psi
from pgmult.topics.updates.word_concentration import CENTRE, start_concentration
from pgmult.topics.updates.words import DirichletWords

NumTopics = Annotated[int, as_num_topics]
Concentration = Annotated[float, real(above=0.0, minimum=1e-300)]
WordConcentration = Annotated[float, real(above=0.0, minimum=1e-300)] | None
BlockRows = Annotated[int, as_block_rows]


OF_TOPICS = {"theta": ("document", "topic"), "topic_shares": ("topic",), "effective_topics": ()}
"""Axes of what follows from the state of a topic model."""

SUMMARIES = "topic_shares", "effective_topics"
"""Variables of any topic model that are made of sums over blocks of documents."""


class TopicModel(Checked, allocation.AllocatedTopics[Documents, PsiState], Generic[Documents]):
    """Topics of words, theta_d = link(psi_d), psi_d Gaussian; sampled in blocks of documents."""

    __slots__ = ()
    num_topics: int
    word_concentration: float | None
    keywords: Any
    start_sweeps: int
    block_rows: int

    state_type: ClassVar[type[Any]]
    default_keep: ClassVar[tuple[str, ...]] = (
        "topics", "mu", "Sigma", "topic_shares", "effective_topics", "keyword_shares",
        "word_concentration",
    )  # fmt: skip
    label_dims: ClassVar[frozenset[str]] = frozenset({"topic", "stick", "other_stick"})
    summary_names: ClassVar[frozenset[str]] = frozenset(SUMMARIES)

    def _complete(self) -> None:
        refuse_unaffordable(32.0 * self.num_topics**2, "num_topics", self.num_topics)
        keywords = as_keywords(self.keywords, self.num_topics)
        if keywords != self.keywords:
            self._set(keywords=keywords)

    @property
    @abstractmethod
    def psi_mean(self) -> PsiMean[Documents]:
        """The prior of the mean and covariance of psi, and how they move."""

    def words(self, data: Documents) -> DirichletWords | DriftingWords:
        """The prior of the topics' words, and how they move."""
        return DirichletWords(self.num_topics, self.word_concentration, self.keywords)

    def link(self, data: Documents | None = None) -> StickBreaking | LogisticNormal:
        """The link from psi to topic proportions."""
        return StickBreaking()

    def as_data(self, data: object) -> Documents:
        """Data of the model, checked: see `pgmult.topics.as_corpus` and ``with_covariates``."""
        corpus = self.psi_mean.as_data(data)
        Keywords.of(self.keywords, corpus)
        return corpus

    def coords(self, data: Any) -> Mapping[str, Array]:
        """Words, documents, groups, keywords and what the mean of psi depends on by name."""
        of_words = allocation.AllocatedTopics.coords(self, data)
        coords = {**of_words, **self.psi_mean.coords(data)}
        if getattr(data, "content", None) is not None:
            coords["group"] = data.content.labels
        if self.keywords:
            coords["keyword_topic"] = np.array([name for name, _ in self.keywords], dtype=np.str_)
            pairs = [f"{name}: {word}" for name, words in self.keywords for word in words]
            coords["keyword"] = np.array(pairs, dtype=np.str_)
        return coords

    def absent(self, data: Documents) -> frozenset[str]:
        """Variables that these data, or this model, leave empty."""
        absent = self.psi_mean.absent(data)
        if self.word_concentration is not None:
            absent |= {"word_concentration"}
        if not self.keywords:
            absent |= {"keyword_shares", "keyword_words"}
        if getattr(data, "content", None) is None:
            absent |= {"group_topics", "group_tokens", "content_concentration", "content_rate"}
        return frozenset(absent)

    def _uniform(self) -> FloatArray:
        """The psi at which all topics are equally probable."""
        return np.asarray(self.link().inverse(np.full(self.num_topics, 1.0 / self.num_topics)))

    # ------------------------------------------------------------------------ starts

    def prior(self, rng: Generator, data: Any) -> Any:
        """A state from the prior, its topic counts from the documents' totals."""
        psi, of_psi = self.psi_mean.prior(rng, data)
        words = self.words(data).prior(rng, data)
        topic_counts = allocation.kept_counts(self.link(data).simulate(rng, psi, data.totals))
        return self.state_type(psi=psi, topic_counts=topic_counts, **of_psi, **words)

    def simulate(self, rng: Generator, state: PsiState, data: Documents) -> Documents:
        """Documents of the same lengths: a word for every token that the state allocates."""
        refuse_to_simulate(data)
        codes, number = data.versions or (np.zeros(data.num_documents, dtype=np.int64), 1)
        rows = np.arange(state.topic_counts.shape[1]) * number + codes[:, None]
        assignments = np.repeat(rows.ravel(), state.topic_counts.ravel())
        topics = self.words(data).table(state).reshape(-1, data.num_words)
        return simulate_words(rng, assignments, topics, data)

    def init(self, rng: Generator, data: Documents) -> PsiState:
        """The start of a single chain: one leaf of a search, topics sorted by size."""
        begun = self.shared_start(rng, data)
        if begun is not None:
            return started(self, rng, *begun, data)
        how = self.num_topics, self.start_concentration(), self.start_sweeps
        return self.from_allocation(rng, self.in_order(searches.leaf(rng, data, *how), data), data)

    def shared_start(self, rng: Generator, data: Documents) -> tuple[PsiState, Placement] | None:
        """The start of a chain of a large corpus, searched in a part of it, without the rows.

        The state has the rows of that part; what all rows start from comes with it. None, and no
        random number drawn, where the corpus is not that large.
        """
        if not searches.is_too_large_to_sweep(data):
            return None
        part = searches.Part.of(rng, data, self.num_topics)
        if part.documents is None:
            return None
        how = self.num_topics, self.start_concentration(), self.start_sweeps
        return self._without_rows(rng, searches.grown(rng, part.words, *how), part, data)

    def _without_rows(
        self, rng: Generator, at: Searched, part: searches.Part, data: Documents
    ) -> tuple[PsiState, Placement]:
        """The state of the searched part, and what all rows start from."""
        words = data if part.corpus is data else data.bare[part.documents]
        at = self.in_order(searches.counted(rng, at, part.corpus, words), data)
        return self.from_part(rng, at, data[part.documents]), Placement.of(at, self.link(data))

    def local_start(self, rng: Generator, placement: Placement, data: Documents) -> Fields:
        """Return the start of a block's documents, given the topics of the searched part."""
        placed = Searched(placement.place(rng, data), placement.alpha, 0.0)
        psi = placed.flat_psi(self.link(data), placement.centre)
        return {"psi": psi, "topic_counts": allocation.kept_counts(placed.allocation.topic_counts)}

    def find_start(
        self, rng: Generator, data: Documents, leaves: int = 4, *, sweeps: int | None = None
    ) -> TopicStart:
        """See `pgmult.topics.find_start`."""
        sweeps = self.start_sweeps if sweeps is None else sweeps
        part = searches.Part.of(rng, data, self.num_topics)
        how = self.num_topics, self.start_concentration(), leaves, sweeps
        best, found, loo = searches.search_leaves(rng, part.words, *how)
        if part.documents is None or not searches.is_too_large_to_sweep(data):
            whole = searches.settled(rng, best, part, sweeps)
            at = self.in_order(searches.counted(rng, whole, part.corpus, data), data)
            state, topics = self.from_allocation(rng, at, data), at.topics()
        else:
            state, placement = self._without_rows(rng, best, part, data)
            state = started(self, rng, state, placement, data)
            topics = np.ascontiguousarray(placement.by_word.T)
        return TopicStart.of(state, loo, topics, [at.topics() for at in found if at is not best])

    def start_concentration(self) -> float:
        """Dirichlet concentration of words in topics, for the search."""
        return start_concentration(self.word_concentration)

    def in_order(self, at: Searched, data: Documents) -> Searched:
        """Topics by size, those with keywords first."""
        at = at.ordered(np.argsort(-at.sizes, kind="stable"))
        if not self.keywords:
            return at
        word_counts = np.ascontiguousarray(at.allocation.word_counts.T)
        return at.ordered(Keywords.of(self.keywords, data).best_order(word_counts))

    def from_allocation(self, rng: Generator, at: Searched, data: Any) -> PsiState:
        """A state with these topics in this order, all else drawn given them."""
        psi = at.flat_psi(self.link(data))
        words = self.words(data).start(rng, at, data)
        of_psi = self.psi_mean.start(rng, psi, data)
        topic_counts = allocation.kept_counts(at.allocation.topic_counts)
        return self.state_type(psi=psi, topic_counts=topic_counts, **of_psi, **words)

    def from_part(self, rng: Generator, at: Searched, subset: Documents) -> PsiState:
        """A state of a part; topics that nothing varies at their mean.

        A draw given so few tokens is far from it.
        """
        state = self.from_allocation(rng, at, subset)
        is_plain = type(self.words(subset)) is DirichletWords and not self.keywords
        return replace(state, topics=at.topics()) if is_plain else state

    # ------------------------------------------------------------------------ sweeps

    def sweep_tables(self, state: PsiState, data: Documents) -> allocation.WordTables:
        """Tables that blocks of documents share in a sweep: topics and word counts."""
        return allocation.WordTables(self.words(data).table(state), data.num_documents)

    def local_step(
        self, rng: Generator, state: PsiState, data: Documents,
        tables: allocation.WordTables | None = None,
    ) -> tuple[PsiState, None, Sums]:  # fmt: skip
        """Z and psi of a block of documents."""
        counted = tables or self.sweep_tables(state, data)
        topic_counts = counted.allocate(rng, data.by_version(), self.theta(state, data))
        words = () if tables else counted.counts()
        psi = self._sample_psi(rng, state, topic_counts, data)
        of_psi = self.psi_mean.sums(state, psi, data)
        moved = replace(state, psi=psi, topic_counts=allocation.kept_counts(topic_counts))
        return moved, None, Sums((*of_psi.exact, *words), of_psi.rounded)

    def shared_step(
        self, rng: Generator, state: PsiState, sums: Sums, data: Documents, ask: Asks,
        words: Any = None,
    ) -> PsiState:  # fmt: skip
        """Words given z; the mean and covariance of psi given psi."""
        words = self.words(data) if words is None else words
        state = replace(state, **words.given(rng, state, sums.exact[1], data))
        return replace(state, **self.psi_mean.given(rng, state, sums, data))

    def _sample_psi(
        self, rng: Generator, state: PsiState, topic_counts: IntArray, data: Documents
    ) -> FloatArray:
        """Psi given the topics of the tokens."""
        means = self.psi_mean.means(state, data)
        return swing_psi(rng, self.link(data), state.psi, topic_counts, means, state.Sigma)

    # ------------------------------------------------------------------------ what follows

    def theta(self, state: PsiState, data: Documents) -> FloatArray:
        """Topic proportions of each document, ``(num_documents, num_topics)``."""
        return np.asarray(self.link(data).probs(state.psi))

    def mean_topics(self, state: PsiState, data: Any) -> FloatArray:
        """Mean word probabilities given the topics of the tokens, once these are known."""
        return np.asarray(self.words(data).mean(state, data))

    def mean_theta(
        self, rng: Generator, state: PsiState, data: Documents, rows: IntArray, draws: int
    ) -> FloatArray:
        """Topic proportions of some documents, averaged over draws of psi given their counts."""
        subset, local = data[rows], replace(state, psi=state.psi[rows])
        total = np.zeros((len(rows), self.num_topics))
        topic_counts = state.topic_counts[rows].astype(np.int64)
        for _ in range(draws):
            local = replace(local, psi=self._sample_psi(rng, local, topic_counts, subset))
            total += self.theta(local, subset)
        return total / draws

    def row_probs(self, draw: Mapping[str, Any], data: Any) -> FloatArray:
        """Word probabilities of documents, of each from its version of the topics."""
        topics = self.words(data).drawn(draw)
        if topics is None or not {"theta", "psi"} & set(draw):
            name = "group_topics" if getattr(data, "content", None) else "topics"
            raise ValueError(f"the posterior must have kept {name} and theta or psi (keep=)")
        theta = draw["theta"] if "theta" in draw else self.link(data).probs(draw["psi"])
        if topics.ndim == 2:
            return np.asarray(theta @ topics)
        return np.asarray(data.versions.word_probs(theta, topics))

    def reported(self, draw: Mapping[str, Array]) -> FloatArray:
        """Shares of topics, and expected ones where the mean of psi has others to report."""
        shares = allocation.AllocatedTopics.reported(self, draw)
        psi = self.psi_mean.reported(draw)
        if not len(psi):
            return shares
        return np.concatenate([shares.reshape(-1, self.num_topics), self.link().probs(psi)])

    def topic_shares(self, state: PsiState, data: Documents) -> FloatArray:
        """Each topic's share of all tokens as last allocated, ``(num_topics,)``."""
        return allocation.shares_of(state.topic_counts.sum(axis=0))

    def version_tokens(self, state: PsiState, data: Documents) -> IntArray:
        """Tokens of each topic in each version of the topics, ``(num_versions, num_topics)``."""
        if data.versions is None:
            return np.zeros((0, self.num_topics), dtype=np.int64)
        return data.versions.tokens(state.topic_counts)

    def summary_table(self, state: PsiState, data: Documents) -> FloatArray:
        """The topics word by word, ``(num_words, num_topics)``, shared by summaries of blocks."""
        return np.ascontiguousarray(self.words(data).table(state).T)

    def local_summary(self, state: PsiState, data: Documents, by_word: Any = None) -> Sums:
        """Sum over a block of documents: tokens of topics, also by version; the log likelihood."""
        if by_word is None:
            by_word = self.summary_table(state, data)
        tokens = data.by_version()
        with np.errstate(divide="ignore"):
            log_probs = np.log(allocation.word_probs(tokens, self.theta(state, data), by_word.T))
        words = float(np.sum(tokens.counts * log_probs))
        more = self.psi_mean.summary(data)
        exact = (state.topic_counts.sum(axis=0), self.version_tokens(state, data), *more.exact)
        return Sums(exact, (np.array(words), *more.rounded))

    def summarized(self, name: str, state: PsiState, summary: Sums, data: Documents) -> object:
        """A variable from the sums of all blocks."""
        if name == "group_tokens":
            return summary.exact[1]
        if name not in SUMMARIES:
            return self.psi_mean.summarized(name, state, summary, data)
        shares = allocation.shares_of(summary.exact[0])
        return shares if name == "topic_shares" else allocation.effective(shares)


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
    word_concentration : float
        Eta, of the topics' Dirichlet prior.
    keyword_shares, keyword_words : arrays
        See `pgmult.topics.updates.keywords.KeywordsState`.
    """

    psi: Annotated[FloatArray, "document", "stick"]
    mu: Annotated[FloatArray, "stick"]
    Sigma: Annotated[FloatArray, "stick", "other_stick"]
    topics: Annotated[FloatArray, "topic", "word"]
    topic_counts: Annotated[NDArray[np.int32], "document", "topic"]
    word_counts: NDArray[np.int32] = field(
        default_factory=allocation.no_counts, kw_only=True, metadata={"has_prior": False}
    )
    word_concentration: float = field(default=CENTRE, kw_only=True)


class NormalTopics(TopicModel[Any]):
    """psi_d ~ N(mu, Sigma), the same for every document, and mu, Sigma ~ NIW."""

    __slots__ = ()
    gaussian: NormalInverseWishart | None
    state_type: ClassVar[type[Any]] = ExchangeableTopicsState
    dims = axes_of(ExchangeableTopicsState) | OF_TOPICS

    def _complete(self) -> None:
        centre = self._uniform()
        if self.gaussian is None:
            self._set(gaussian=NormalInverseWishart.weak(centre))
        if (size := len(self.gaussian_prior.mean)) != len(centre):
            topics = f"{len(centre)} dimensions for {self.num_topics} topics"
            raise ValueError(f"gaussian must have {topics}, got {size}")

    @property
    def gaussian_prior(self) -> NormalInverseWishart:
        """The prior of mu and Sigma, the default if none was given."""
        assert self.gaussian is not None  # set by _complete
        return self.gaussian

    @property
    def psi_mean(self) -> PsiMean[Any]:
        """The prior of the mean and covariance of psi, and how they move."""
        return ConstantMean(self.gaussian_prior)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ExchangeableTopics(NormalTopics):
    """The parameters of models in which all documents are alike: see those for each link."""

    num_topics: NumTopics
    word_concentration: WordConcentration = None
    gaussian: NormalInverseWishart | None = None
    start_sweeps: searches.StartSweeps = searches.START_SWEEPS
    keywords: Any = None
    block_rows: BlockRows = BLOCK_ROWS

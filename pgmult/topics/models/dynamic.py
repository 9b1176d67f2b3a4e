r"""Topics whose words change over time, under the stick-breaking link.

Dynamic topic models (Blei and Lafferty 2006) let each topic's words drift from one time step to the
next. Here both the words and the topic proportions are stick-breaking transforms of Gaussians
(Linderman, Johnson and Adams 2015), so that every block is an exact draw. With t(d) the time of
document d and words in a fixed order, most frequent first::

    base_v                ~ N(that of equally probable words, base_var),    v = 1..V-1
    eta_{k,0,v}           ~ N(base_v, initial_var_k),                       k = 1..K
    eta_{k,t,v} - base_v  ~ N(persistence (eta_{k,t-1,v} - base_v), drift_var_k)
    topics_{k,t}          = stick-breaking(eta_{k,t})                       words in topics
    mu_0, Sigma           ~ NIW,    mu_t ~ N(mu_{t-1}, prevalence_drift Sigma)
    psi_d                 ~ N(mu_{t(d)}, Sigma)                             K - 1 sticks
    theta_d               = stick-breaking(psi_d)                           topics in documents
    z_di, x_di            ~ theta_d, topics_{z_di, t(d)}

with inverse-gamma priors of initial_var_k (how peculiar topic k's words are), drift_var_k (how fast
they change) and prevalence_drift (how fast topics rise and fall). A sweep:

1. z | psi, eta, x                        a multinomial a (document, word) entry
2. psi | z, mu, Sigma                     Pólya-gamma, then Gaussian, as in `CorrelatedTopics`
3. prevalence_drift | psi                 mu and Sigma integrated out; then mu, Sigma | the rest
4. eta_{k,.,v} | z, variances, base       an elliptical slice of each chain around a Gaussian
5. initial_var, eta | z or, as often, drift_var, eta | z    a slice of each topic's variance,
   along with all its chains
6. base | eta                             Gaussian

Two simpler updates would mix slowly and are avoided. Pólya-gamma variables would make the chains
of rare words take short steps: the more tokens reach a stick, the shorter, even if almost none
stops there and the data say little (Johndrow et al. 2019, "MCMC for imbalanced categorical data").
So step 4 slices. Variances given eta could hardly move, since thousands of sticks determine them.
So step 3 integrates mu and Sigma out, and step 5 conditions on surrogate data in place of eta
(`pgmult.topics.priors.chains`).

>>> import numpy as np, pgmult
>>> counts = np.random.default_rng(0).poisson(0.5, size=(20, 30))
>>> data = pgmult.topics.as_timed_corpus(counts, times=2000 + np.arange(20) // 5)
>>> posterior = pgmult.sample(
...     pgmult.topics.DynamicTopics(num_topics=3), data, keep=["topics", "drift_var"],
...     draws=10, tune=10, chains=1, random_seed=0, progressbar=False,
... )
>>> posterior["topics"].shape
(1, 10, 3, 4, 30)
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pgmult.core.arguments import as_share
from pgmult.core.parameters import axes_of, real
from pgmult.core.typing import BoolArray, FloatArray, IntArray, ObservedRows
from pgmult.links import StickBreaking
from pgmult.priors import NormalInverseWishart
from pgmult.sampling.blocks import BLOCK_ROWS, Asks, Sums
from pgmult.sampling.moves import slice_sample
from pgmult.topics.data.corpus import Corpus, refuse_to_simulate, simulate_words
from pgmult.topics.data.timed import TimedCorpus
from pgmult.topics.models.gaussian import (
    OF_TOPICS,
    BlockRows,
    NormalTopics,
    NumTopics,
)
from pgmult.topics.priors.chains import ScalarChains
from pgmult.topics.priors.walk import WalkingMean, log_inverse_gamma, sample_inverse_gamma
from pgmult.topics.starts.allocations import Searched
from pgmult.topics.starts.searches import START_SWEEPS, StartSweeps
from pgmult.topics.updates.allocation import AllocatedTopics

_START_CONCENTRATION = 0.05  # of words in topics, for the collapsed sweeps that a chain starts from
_SLICE_WIDTH = 0.15  # of log variances

Above0 = Annotated[float, real(above=0.0)]


@dataclass(frozen=True, slots=True, eq=False)
class DynamicTopicsState:
    """One point of the chain.

    Attributes
    ----------
    psi : array, ``(num_documents, num_topics - 1)``
    mu : array, ``(num_times, num_topics - 1)``
    Sigma : array, ``(num_topics - 1, num_topics - 1)``
    prevalence_drift : float
        Variance of a step of mu, in units of Sigma.
    eta : array, ``(num_topics, num_times, num_words - 1)``
        Sticks of words, in the data's `order`.
    base : array, ``(num_words - 1,)``
    initial_var, drift_var : arrays, ``(num_topics,)``
    topic_counts : int32 array, ``(num_documents, num_topics)``
        Tokens of each document by topic, as last allocated.
    topics : array, ``(num_topics, num_times, num_words)``
        Word probabilities.
    """

    psi: Annotated[FloatArray, "document", "stick"]
    mu: Annotated[FloatArray, "time", "stick"]
    Sigma: Annotated[FloatArray, "stick", "other_stick"]
    prevalence_drift: float
    eta: Annotated[FloatArray, "topic", "time", "word_stick"]
    base: Annotated[FloatArray, "word_stick"]
    initial_var: Annotated[FloatArray, "topic"]
    drift_var: Annotated[FloatArray, "topic"]
    topic_counts: Annotated[NDArray[np.int32], "document", "topic"]
    topics: Annotated[FloatArray, "topic", "time", "word"]


@dataclass(frozen=True, slots=True, eq=False)
class DynamicTopics(NormalTopics):
    """Topics whose words and prevalence drift over time, every variance learned.

    Parameters
    ----------
    num_topics : int
        K >= 2.
    gaussian : NormalInverseWishart, optional
        Prior of mu_0 and Sigma on K - 1 sticks; by default `NormalInverseWishart.weak` around the
        mean at which all topics are equally probable.
    prevalence_shape, prevalence_scale : float
        Inverse-gamma prior of prevalence_drift, of mean scale / (shape - 1).
    persistence : float
        In [0, 1]: 1 makes each word stick a random walk; below 1 it returns to its base.
    base_var : float
        Prior variance of each word stick's base.
    initial_shape, initial_scale : float
        Inverse-gamma prior of each topic's initial_var.
    drift_shape, drift_scale : float
        Inverse-gamma prior of each topic's drift_var.
    start_sweeps : int
        Collapsed sweeps of the search that a chain starts from: see `pgmult.topics.find_start`.
    block_rows : int
        Documents per block: see `pgmult.sampling.blocks`. It changes the draws, not their
        distribution.

    Notes
    -----
    A sweep costs O(tokens + entries K + D K**3 + K T V), memory is O(entries + K T V): T time
    steps of all K V word probabilities are held.
    """

    num_topics: NumTopics
    gaussian: NormalInverseWishart | None = None
    prevalence_shape: Above0 = 2.0
    prevalence_scale: Above0 = 0.05
    persistence: Annotated[float, as_share] = 1.0
    base_var: Above0 = 4.0
    initial_shape: Above0 = 2.0
    initial_scale: Above0 = 4.0
    drift_shape: Above0 = 2.0
    drift_scale: Above0 = 0.05
    start_sweeps: StartSweeps = START_SWEEPS
    block_rows: BlockRows = 8 * BLOCK_ROWS

    keywords: ClassVar[tuple[()]] = ()  # type: ignore[misc]

    state_type: ClassVar[type[Any]] = DynamicTopicsState
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = axes_of(DynamicTopicsState) | {
        **OF_TOPICS,
        "prevalence": ("time", "topic"),
    }
    default_keep: ClassVar[tuple[str, ...]] = (
        "initial_var", "drift_var", "prevalence_drift", "prevalence", "topic_shares",
        "effective_topics",
    )  # fmt: skip
    summary_names: ClassVar[frozenset[str]] = AllocatedTopics.summary_names | {"prevalence"}

    @property
    def psi_mean(self) -> WalkingMean:
        """The walk of the mean of psi."""
        return WalkingMean(self.gaussian_prior, self.prevalence_shape, self.prevalence_scale)

    def as_data(self, data: Any) -> TimedCorpus:
        """A timed corpus as it is; other data are refused."""
        if not isinstance(data, TimedCorpus):
            raise TypeError(
                f"dynamic topics need the documents' times, got {type(data).__name__}"
                " (make the data with as_timed_corpus(counts, times))"
            )
        return data

    def coords(self, data: TimedCorpus) -> Mapping[str, NDArray[Any]]:
        """Times, and words and documents by name where the corpus has names."""
        return {**NormalTopics.coords(self, data), "time": data.time_labels}

    def _words_from_prior(self, rng: np.random.Generator, data: TimedCorpus) -> dict[str, Any]:
        """Base, variances and eta from their priors."""
        centre = _uniform_sticks(data.num_words)
        base = centre + np.sqrt(self.base_var) * rng.standard_normal(len(centre))
        initial_var = sample_inverse_gamma(
            rng, self.initial_shape, self.initial_scale, self.num_topics
        )
        drift_var = sample_inverse_gamma(rng, self.drift_shape, self.drift_scale, self.num_topics)
        eta = self._chains(base, initial_var, drift_var, data).sample(rng)
        return self._words(base, initial_var, drift_var, eta, data)

    def _words(
        self,
        base: FloatArray,
        initial_var: FloatArray,
        drift_var: FloatArray,
        eta: FloatArray,
        data: TimedCorpus,
    ) -> dict[str, Any]:
        """The state's fields of topics and their words."""
        return {
            "base": base, "initial_var": initial_var, "drift_var": drift_var, "eta": eta,
            "topics": self.word_link(data).probs(eta),
        }  # fmt: skip

    def simulate(
        self, rng: np.random.Generator, state: DynamicTopicsState, data: TimedCorpus
    ) -> TimedCorpus:
        """Documents of the same lengths and times: a word for every token the state allocates."""
        refuse_to_simulate(data)
        rows = np.arange(self.num_topics) * data.num_times + data.times[:, None]
        assignments = np.repeat(rows.ravel(), state.topic_counts.ravel())
        topics = state.topics.reshape(-1, data.num_words)
        return simulate_words(rng, assignments, topics, data)

    def start_concentration(self) -> float:
        """Dirichlet concentration of words in topics, for the search."""
        return _START_CONCENTRATION

    def _from_part(self, rng: np.random.Generator, at: Searched, part: TimedCorpus) -> Any:
        """A state of a part; its topics are means."""
        return self.from_allocation(rng, at, part)

    def _words_at(
        self, rng: np.random.Generator, at: Searched, data: TimedCorpus
    ) -> dict[str, Any]:
        """Words that are the same at all times."""
        level = self.link().inverse(at.topics()[:, data.order])
        base = level.mean(axis=0)
        initial_var = self.initial_scale + np.mean((level - base) ** 2, axis=1)
        drift_var = np.full(self.num_topics, self.drift_scale / self.drift_shape)
        eta = np.repeat(level[:, None], data.num_times, axis=1)
        return self._words(base, initial_var, drift_var, eta, data)

    def shared_step(
        self, rng: np.random.Generator, state: DynamicTopicsState, sums: Sums, data: TimedCorpus,
        ask: Asks,
    ) -> DynamicTopicsState:  # fmt: skip
        """Prevalence given psi, then words given z."""
        state = self._sample_mean(rng, state, sums, data)
        word_counts = sums.exact[1].reshape(state.topics.shape)
        initial_var, drift_var, eta = self._sample_chains(rng, state, word_counts, data)
        mean, var = self._base_given(eta, initial_var, drift_var)
        base = mean + np.sqrt(var) * rng.standard_normal(mean.shape)
        return replace(state, **self._words(base, initial_var, drift_var, eta, data))

    def local_summary(
        self, state: DynamicTopicsState, data: TimedCorpus, by_word: FloatArray | None = None
    ) -> Sums:
        """Of a block of documents: tokens of topics, and by time; the log likelihood."""
        tokens, words = AllocatedTopics.local_summary(self, state, data, by_word)
        return Sums((*tokens, data.versions.tokens(state.topic_counts)), words)

    def summarized(
        self, name: str, state: DynamicTopicsState, summary: Sums, data: TimedCorpus
    ) -> Any:
        """Prevalence, and what other topic models have."""
        if name == "prevalence":
            return _prevalence(summary.exact[1])
        return AllocatedTopics.summarized(self, name, state, summary, data)

    def observed_rows(self, data: TimedCorpus) -> ObservedRows:
        """The documents, dense, with their totals and times."""
        rows = AllocatedTopics.observed_rows(self, data)
        times = {"time_of_document": (("document",), np.asarray(data.time_labels)[data.times])}
        return rows._replace(constants={**rows.constants, **times})

    def row_probs(self, draw: Mapping[str, Any], data: TimedCorpus) -> FloatArray:
        """Word probabilities of documents, from the topics of their time."""
        theta, topics = self.kept_shares(draw, "topics", data)
        return data.versions.word_probs(theta, topics.swapaxes(0, 1))

    def prevalence(self, state: DynamicTopicsState, data: TimedCorpus) -> FloatArray:
        """Each topic's share of a time's tokens, ``(num_times, num_topics)``; 0 without tokens."""
        return _prevalence(data.versions.tokens(state.topic_counts))

    def _corpus_of(self, data: TimedCorpus) -> Corpus:
        """The words as pairs of a time and a word, so that one call serves all times."""
        return data.by_version()

    def _topics_of(self, state: DynamicTopicsState, data: TimedCorpus) -> FloatArray:
        """Topics over these pairs, ``(num_topics, num_times * num_words)``."""
        return state.topics.reshape(self.num_topics, -1)

    def mean_topics(self, state: DynamicTopicsState, data: TimedCorpus) -> FloatArray:
        """The topics as drawn: the tokens' topics do not give their mean."""
        return self._topics_of(state, data)

    def word_link(self, data: TimedCorpus) -> StickBreaking:
        """The link from eta to the words of a topic, frequent words first."""
        return StickBreaking(order=data.order)

    def _chains(
        self, base: FloatArray, initial_var: FloatArray, drift_var: FloatArray, data: TimedCorpus
    ) -> ScalarChains:
        """The prior of eta."""
        return ScalarChains(base, initial_var, drift_var, data.num_times, self.persistence)

    def _sample_chains(
        self,
        rng: np.random.Generator,
        state: DynamicTopicsState,
        word_counts: IntArray,
        data: TimedCorpus,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """initial_var, drift_var and eta given the tokens' topics."""
        taken = word_counts[..., data.order[:-1]].astype(np.float64, order="C")
        reaching = self.word_link(data).totals(word_counts).astype(np.float64, order="C")
        chains = self._chains(state.base, state.initial_var, state.drift_var, data)
        eta = chains.slice(rng, state.eta, taken, reaching)
        name, shape, scale = "innovation_var", self.drift_shape, self.drift_scale
        if rng.random() < 0.5:
            name, shape, scale = "initial_var", self.initial_shape, self.initial_scale
        given = chains.condition(chains.surrogate(rng, eta, taken, reaching))
        noise = given.noise_of(eta)

        def log_density(log_var: FloatArray, active: BoolArray) -> FloatArray:
            moved = given.with_vars(**{name: np.exp(log_var)})
            likelihood = moved.log_place(noise, taken, reaching, active)
            return log_inverse_gamma(log_var, shape, scale) + likelihood

        log_var = slice_sample(rng, log_density, np.log(getattr(chains, name)), _SLICE_WIDTH)
        moved = given.with_vars(**{name: np.exp(log_var)})
        return moved.initial_var, moved.innovation_var, moved.place(noise)

    def _base_given(
        self, eta: FloatArray, initial_var: FloatArray, drift_var: FloatArray
    ) -> tuple[FloatArray, float]:
        """Means of base and their common variance."""
        pull = 1.0 - self.persistence  # of base on eta_t given eta_{t-1}
        num_steps = eta.shape[1] - 1
        innovation = eta[:, 1:] - self.persistence * eta[:, :-1]
        precision = (
            np.sum(1.0 / initial_var + pull**2 * num_steps / drift_var) + 1.0 / self.base_var
        )
        linear = _uniform_sticks(eta.shape[2] + 1) / self.base_var
        linear = linear + (1.0 / initial_var) @ eta[:, 0]
        linear = linear + (pull / drift_var) @ innovation.sum(axis=1)
        return linear / precision, float(1.0 / precision)


def _prevalence(tokens: IntArray) -> FloatArray:
    return np.asarray(tokens / np.maximum(tokens.sum(axis=1, keepdims=True), 1))


def _uniform_sticks(size: int) -> FloatArray:
    """The sticks of `size` equally probable categories."""
    return StickBreaking().inverse(np.full(size, 1.0 / size))

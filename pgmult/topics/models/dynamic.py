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

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pgmult.core.arguments import as_share
from pgmult.core.parameters import axes_of, real
from pgmult.core.typing import FloatArray, Generator, IntArray
from pgmult.priors import NormalInverseWishart
from pgmult.sampling.blocks import BLOCK_ROWS, Asks, Sums
from pgmult.topics.data.timed import TimedCorpus
from pgmult.topics.models import topic_model
from pgmult.topics.models.topic_model import SUMMARIES
from pgmult.topics.priors.walk import WalkingMean
from pgmult.topics.starts.searches import START_SWEEPS, StartSweeps
from pgmult.topics.updates.drifting import DriftingWords

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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DynamicTopics(topic_model.NormalTopics):
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

    num_topics: topic_model.NumTopics
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
    block_rows: topic_model.BlockRows = 8 * BLOCK_ROWS

    keywords: ClassVar[Any] = ()  # type: ignore[misc]
    word_concentration: ClassVar[float | None] = None  # type: ignore[misc]

    state_type = DynamicTopicsState
    dims = axes_of(DynamicTopicsState) | topic_model.OF_TOPICS | {"prevalence": ("time", "topic")}
    default_keep = ("initial_var", "drift_var", "prevalence_drift", "prevalence", *SUMMARIES)
    summary_names = topic_model.NormalTopics.summary_names | {"prevalence"}

    @property
    def psi_mean(self) -> WalkingMean:
        """The walk of the mean of psi."""
        return WalkingMean(self.gaussian_prior, self.prevalence_shape, self.prevalence_scale)

    def words(self, data: TimedCorpus) -> DriftingWords:
        """The prior of the topics' words, and how they move."""
        return DriftingWords(
            self.num_topics, self.persistence, self.base_var,
            (self.initial_shape, self.initial_scale), (self.drift_shape, self.drift_scale),
        )  # fmt: skip

    def shared_step(
        self, rng: Generator, state: DynamicTopicsState, sums: Sums, data: TimedCorpus,
        ask: Asks, words: object = None,
    ) -> DynamicTopicsState:  # fmt: skip
        """Prevalence given psi, then words given z."""
        state = replace(state, **self.psi_mean.given(rng, state, sums, data))
        return replace(state, **self.words(data).given(rng, state, sums.exact[1], data))

    def summarized(
        self, name: str, state: DynamicTopicsState, summary: Sums, data: TimedCorpus
    ) -> object:
        """A variable from the sums of all blocks."""
        if name == "prevalence":
            return self._prevalence(summary.exact[1], state)
        return super(DynamicTopics, self).summarized(name, state, summary, data)

    def prevalence(self, state: DynamicTopicsState, data: TimedCorpus) -> FloatArray:
        """Each topic's share of a time's tokens, ``(num_times, num_topics)``.

        Where a time has no tokens: the shares at the mean of psi, which the walk leads through.
        """
        return self._prevalence(self.version_tokens(state, data), state)

    def _prevalence(self, tokens: IntArray, state: DynamicTopicsState) -> FloatArray:
        totals = tokens.sum(axis=1, keepdims=True)
        expected = self.link().probs(state.mu)
        return np.asarray(np.where(totals > 0, tokens / np.maximum(totals, 1), expected))

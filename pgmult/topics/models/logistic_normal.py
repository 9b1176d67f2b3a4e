r"""The correlated topic model under the softmax link (LN-CTM), by single-site Pólya-gamma Gibbs.

The logistic normal original of correlated topics (Blei and Lafferty 2007), sampled as Chen, Zhu,
Wang, Zheng and Zhang (2013, "Scalable inference for logistic-normal topic models") do::

    topics_k      ~ Dirichlet(eta),                 k = 1..K        words in topics
    mu, Sigma     ~ NIW,
    psi_d         ~ N(mu, Sigma),                   d = 1..D        K coordinates
    theta_d       = softmax(psi_d)                                  topics in documents
    z_di, x_di    ~ theta_d, topics_{z_di}                          each token's topic and word

No augmentation makes the softmax Gaussian in all of psi_d, but given the other coordinates psi_dk
sees a logistic likelihood in psi_dk - zeta_dk, zeta_dk = log sum_{j != k} exp(psi_dj). A sweep:

1. z | psi, topics, x            a multinomial a (document, word) entry; kept as counts
2. topics | z                    Dirichlet rows
3. for each k in turn:
   omega_dk | psi, z ~ PG(N_d, psi_dk - zeta_dk), then psi_dk | omega_dk, other psi, z, mu, Sigma
4. psi_d + constant | mu, Sigma  the direction that theta does not see
5. mu, Sigma | psi               normal-inverse-Wishart

*Identification.* Adding a number to all of psi_d changes no probability. The proper prior of
(mu, Sigma) makes the posterior proper all the same; along that direction it is the prior given the
rest, and step 4 draws it exactly. Read correlations of topics from theta, not from Sigma.

>>> import numpy as np, pgmult
>>> counts = np.random.default_rng(0).poisson(0.5, size=(20, 30))
>>> posterior = pgmult.sample(
...     pgmult.topics.LogisticNormalTopics(num_topics=3), pgmult.topics.as_corpus(counts),
...     draws=10, tune=10, chains=1, random_seed=0, progressbar=False,
... )
>>> posterior["mu"].shape
(1, 10, 3)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pgmult.compiled.rows import over_rows
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import new_key
from pgmult.links import LogisticNormal
from pgmult.priors import NormalInverseWishart
from pgmult.sampling.blocks import BLOCK_ROWS
from pgmult.topics.compiled.softmax import sample_rows
from pgmult.topics.models.gaussian import (
    BlockRows,
    Concentration,
    ExchangeableTopicsState,
    NormalTopics,
    NumTopics,
    Scales,
)
from pgmult.topics.starts.searches import START_SWEEPS, StartSweeps

_ALL_TRIALS = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, eq=False)
class LogisticNormalTopics(NormalTopics):
    """Correlated topic model with the softmax link, sampled one coordinate of psi at a time.

    Parameters
    ----------
    num_topics : int
        K >= 2.
    word_concentration : float
        Dirichlet concentration eta of words in topics.
    gaussian : NormalInverseWishart, optional
        Prior of mu and Sigma on K coordinates; by default `NormalInverseWishart.weak` around zero,
        where all topics are equally probable.
    start_sweeps : int
        Collapsed sweeps of the search that a chain starts from: see `pgmult.topics.find_start`.
    approximate_trials : int, optional
        *Approximate* where given: documents of more than this many tokens draw omega with this
        many trials, moved and stretched to the mean and variance of PG(N_d, .), as Chen et al. do
        to save time. The draws here take about the same time for every N_d, so this serves to
        repeat their results. By default every draw is from PG(N_d, .) itself.
    scales : HalfTScales or CommonScale, optional
        Prior of the scales of Sigma (`pgmult.priors.scales`), which `gaussian` fixes otherwise.
    block_rows : int
        Documents of a block: see `pgmult.sampling.blocks`. Draws depend on it, their law does not.

    Notes
    -----
    A sweep costs O(tokens + entries K + K V + D K**2).
    """

    num_topics: NumTopics
    word_concentration: Concentration = 0.05
    gaussian: NormalInverseWishart | None = None
    start_sweeps: StartSweeps = START_SWEEPS
    approximate_trials: int | None = None
    scales: Scales | None = None
    block_rows: BlockRows = BLOCK_ROWS

    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **NormalTopics.dims,
        "psi": ("document", "topic"),
        "mu": ("topic",),
        "Sigma": ("topic", "other_topic"),
    }
    label_dims: ClassVar[frozenset[str]] = frozenset({"topic", "other_topic"})

    def link(self, data: Any = None) -> LogisticNormal:
        """The link from psi to topic proportions."""
        return LogisticNormal()

    def _sample_psi(
        self,
        rng: np.random.Generator,
        state: ExchangeableTopicsState,
        topic_counts: IntArray,
        data: Any,
    ) -> FloatArray:
        """One pass over the coordinates of every document, then over the direction of ones."""
        psi = np.empty_like(state.psi)
        trials = _ALL_TRIALS if self.approximate_trials is None else self.approximate_trials
        statuses = over_rows(
            sample_rows, len(psi), new_key(rng), topic_counts, state.mu, state.Sigma,
            trials, state.psi, psi,
        )  # fmt: skip
        if any(statuses):
            raise FloatingPointError(
                f"Sigma is singular to working precision (condition number"
                f" {np.linalg.cond(state.Sigma):.1e}): psi has no finite draw"
            )
        return psi

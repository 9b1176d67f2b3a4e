"""The correlated topic model under the softmax link (LN-CTM).

The logistic normal original of correlated topics (Blei and Lafferty 2007)::

    log eta       ~ N(log 0.1, 1)                                   unless it is fixed
    topics_k      ~ Dirichlet(eta),                 k = 1..K        words in topics
    mu, Sigma     ~ NIW,
    psi_d         ~ N(mu, Sigma),                   d = 1..D        K coordinates
    theta_d       = softmax(psi_d)                                  topics in documents
    z_di, x_di    ~ theta_d, topics_{z_di}                          each token's topic and word

No augmentation makes the softmax Gaussian in all of psi_d, but a path about a Gaussian near its
conditional moves all of it at once (`pgmult.topics.compiled.swing`), and so many times further than
one coordinate after another given Pólya-gamma variables (Chen, Zhu, Wang, Zheng and Zhang 2013,
"Scalable inference for logistic-normal topic models"). A sweep:

1. z | psi, topics, x            a multinomial a (document, word) entry; kept as counts
2. eta, topics | z               eta by a slice, topics summed out; then Dirichlet rows
3. psi | z, mu, Sigma            one path per document
4. mu, Sigma | psi               normal-inverse-Wishart

*Identification.* Adding a number to all of psi_d changes no probability. The proper prior of
(mu, Sigma) makes the posterior proper all the same. Read correlations of topics from theta, not
from Sigma.

>>> import numpy as np, pgmult
>>> counts = np.random.default_rng(0).poisson(0.5, size=(20, 30))
>>> posterior = pgmult.sample(
...     pgmult.topics.LogisticNormalTopics(num_topics=3), pgmult.topics.as_corpus(counts),
...     draws=10, tune=10, chains=1, random_seed=0, progressbar=False,
... )
>>> posterior["mu"].shape
(1, 10, 3)
"""

from dataclasses import dataclass

from pgmult.links import LogisticNormal
from pgmult.topics.models.topic_model import ExchangeableTopics


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LogisticNormalTopics(ExchangeableTopics):
    """Correlated topic model with the softmax link, sampled in exact blocks.

    Parameters
    ----------
    num_topics : int
        K >= 2.
    word_concentration : float, optional
        Dirichlet concentration eta of words in topics; learned if left out: see
        `pgmult.topics.updates.word_concentration`.
    gaussian : NormalInverseWishart, optional
        Prior of mu and Sigma on K coordinates; by default `NormalInverseWishart.weak` around zero,
        where all topics are equally probable.
    start_sweeps : int
        Collapsed sweeps of the search that a chain starts from: see `pgmult.topics.find_start`.
    keywords : mapping from str to sequence of str, optional
        Words of the first topics, by names of your own: ``{"economy": ["tax", "jobs"]}``.
    block_rows : int
        Documents per block: see `pgmult.sampling.blocks`. It changes the draws, not their
        distribution.

    Notes
    -----
    A sweep costs O(tokens + entries K + K V + D K**3).
    """

    dims = ExchangeableTopics.dims | {
        "psi": ("document", "topic"), "mu": ("topic",), "Sigma": ("topic", "other_topic"),
    }  # fmt: skip
    label_dims = frozenset({"topic", "other_topic"})

    def link(self, data: object = None) -> LogisticNormal:
        """The link from psi to topic proportions."""
        return LogisticNormal()

"""The correlated topic model under the stick-breaking link (SB-CTM).

Documents are mixtures of topics with correlated proportions (Linderman, Johnson and Adams 2015,
section 3; Blei and Lafferty 2007 for the logistic normal original)::

    log eta       ~ N(log 0.1, 1)                                   unless it is fixed
    topics_k      ~ Dirichlet(eta),                 k = 1..K        words in topics
    mu, Sigma     ~ NIW,
    psi_d         ~ N(mu, Sigma),                   d = 1..D        K - 1 sticks
    theta_d       = stick-breaking(psi_d)                           topics in documents
    z_di, x_di    ~ theta_d, topics_{z_di}                          each token's topic and word

Every block of the sweep is exact:

1. z | psi, topics, x        a multinomial a (document, word) entry; kept as counts
2. eta, topics | z           eta by a slice, topics summed out; then Dirichlet rows
3. psi | z, mu, Sigma        all sticks of a document on one path about a Gaussian that is near
                             their posterior (`pgmult.topics.compiled.swing`)
4. mu, Sigma | psi           normal-inverse-Wishart

Sigma is the covariance of sticks and depends on their order: see `topic_correlations` for topics.

>>> import numpy as np, pgmult
>>> counts = np.random.default_rng(0).poisson(0.5, size=(20, 30))
>>> posterior = pgmult.sample(
...     pgmult.topics.CorrelatedTopics(num_topics=3), pgmult.topics.as_corpus(counts),
...     draws=10, tune=10, chains=1, random_seed=0, progressbar=False,
... )
>>> posterior["topics"].shape
(1, 10, 3, 30)
"""

from dataclasses import dataclass

from pgmult.topics.models.topic_model import ExchangeableTopics


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CorrelatedTopics(ExchangeableTopics):
    """Correlated topic model with the stick-breaking link, sampled in exact blocks.

    Parameters
    ----------
    num_topics : int
        K >= 2.
    word_concentration : float, optional
        Dirichlet concentration eta of words in topics; learned if left out: see
        `pgmult.topics.updates.word_concentration`.
    gaussian : NormalInverseWishart, optional
        Prior of mu and Sigma on K - 1 sticks; by default `NormalInverseWishart.weak` around the
        mean at which all topics are equally probable. Chains start with topics sorted by size, so
        that early sticks are large topics.
    start_sweeps : int
        A chain starts from a search of its own, of this many collapsed sweeps of latent Dirichlet
        allocation, and stays near the mode of the posterior where the search ended. See
        `pgmult.topics.find_start` for longer searches and for how far to trust each topic.
    keywords : mapping from str to sequence of str, optional
        Words of the first topics, by names of your own: ``{"economy": ["tax", "jobs"]}``.
    block_rows : int
        Documents per block: see `pgmult.sampling.blocks`. It changes the draws, not their
        distribution.

    Notes
    -----
    A sweep costs O(entries K + K V + D K**3).
    """

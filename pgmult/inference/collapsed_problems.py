r"""Three mixtures whose parameters integrate out: problems for `pgmult.inference.collapsed`.

With N_k the expected number of observations of component k and Dirichlet(alpha) weights, the
weights contribute log B(alpha + N) - log B(alpha) to the bound and digamma(alpha_k + N_k) - const
to the logits of component k. To these are added

* `GaussianMixtureProblem`: the evidence of each component's normal-inverse-Wishart prior given
  weighted data (Bishop 2006, Pattern Recognition and Machine Learning, sections 10.2 and 4.6);
* `TopicProblem`: a Dirichlet evidence for every document and for every topic, latent Dirichlet
  allocation with (document, word) entries as rows (Hensman et al. 2012, section 5.2);
* `ExpressionProblem`: log p(read | transcript) of each alignment, the model of BitSeq (Glaus,
  Honkela and Rattray 2012; Hensman et al. 2012, section 5.3).
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.special import digamma, gammaln, multigammaln

from pgmult._validate import as_finite, as_positive, as_positive_int
from pgmult.alignments import Alignments
from pgmult.compiled._rows import over_rows
from pgmult.compiled.collapsed_bounds import add_pairs, add_up_groups
from pgmult.compiled.gaussian_mixture import add_distances, weigh_components
from pgmult.corpus import Corpus, as_corpus
from pgmult.inference.collapsed import CollapsedFit
from pgmult.priors.gaussian import NormalInverseWishart
from pgmult.typing import FloatArray, IntArray
from pgmult.updates.collapsed_topics import collapsed_sweeps, random_allocation

__all__ = ["ExpressionProblem", "GaussianMixtureProblem", "TopicProblem"]


def _log_beta(counts: FloatArray, concentration: float) -> float:
    """Sum over rows of log B(concentration + counts) - log B(concentration, ...)."""
    size = counts.shape[-1]
    totals = counts.sum(axis=-1)
    terms = gammaln(concentration + counts).sum(axis=-1) - size * gammaln(concentration)
    terms -= gammaln(size * concentration + totals) - gammaln(size * concentration)
    return float(np.sum(terms))


def _dirichlet_moments(counts: FloatArray, concentration: float) -> tuple[FloatArray, FloatArray]:
    """Means and variances of Dirichlet(concentration + counts): Beta marginals."""
    alpha = concentration + counts
    total = alpha.sum(axis=-1, keepdims=True)
    mean = alpha / total
    return mean, mean * (1.0 - mean) / (total + 1.0)


@dataclass(eq=False)
class GaussianMixtureProblem:
    """Rows of data from a mixture of Gaussians.

    Parameters
    ----------
    x : array, ``(num_rows, num_columns)``
    num_components : int
        K, at most the number of rows. Components that the data do not need empty themselves.
    prior : NormalInverseWishart, optional
        Of each component; by default centred on the data, with their variances as expected
        covariance, and worth little: 0.01 observations for the mean and D + 2 degrees of freedom.
    concentration : float
        Of the symmetric Dirichlet prior of weights.
    """

    x: FloatArray
    num_components: int
    prior: NormalInverseWishart | None = None
    concentration: float = 1.0

    def __post_init__(self) -> None:
        self.x = as_finite(self.x, "x")
        if self.x.ndim != 2 or self.x.shape[1] == 0:
            raise ValueError(f"x must have shape (rows, columns), got {self.x.shape}")
        as_positive_int(self.num_components, "num_components")
        if self.num_components > len(self.x):
            raise ValueError(
                f"num_components must be at most the {len(self.x)} rows, got {self.num_components}"
            )
        as_positive(self.concentration, "concentration")
        D = self.x.shape[1]
        if self.prior is None:
            constant = self.x.min(axis=0) == self.x.max(axis=0)
            if constant.any():
                raise ValueError(
                    f"x must vary in every column, column {constant.argmax()} does not"
                    " (drop it, or give a prior)"
                )
            scale = np.diag(self.x.var(axis=0))
            self.prior = NormalInverseWishart(self.x.mean(axis=0), 0.01, D + 2.0, scale)
        elif len(self.prior.mean) != D:
            raise ValueError(f"prior must have {D} dimensions, got {len(self.prior.mean)}")

    @cached_property
    def indptr(self) -> IntArray:
        """K candidates a row."""
        return np.arange(len(self.x) + 1) * self.num_components

    @cached_property
    def weights(self) -> FloatArray:
        """One observation a row."""
        return np.ones(len(self.x))

    def marginal(self, probs: FloatArray) -> tuple[float, FloatArray]:
        """As `pgmult.inference.collapsed.CollapsedProblem` says."""
        prior, D = self._prior, self.x.shape[1]
        shares = probs.reshape(len(self.x), self.num_components)
        counts = shares.sum(axis=0)
        mean, strength, dof, scale = self._posterior(shares)
        root = np.linalg.cholesky(scale)
        log_det = 2.0 * np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
        evidence = (
            0.5 * D * (np.log(prior.strength / strength) - counts * np.log(np.pi))
            + 0.5 * (prior.dof * np.linalg.slogdet(prior.scale)[1] - dof * log_det)
            + multigammaln(0.5 * dof, D)
            - multigammaln(0.5 * prior.dof, D)
        )
        expected_log_det = digamma(0.5 * (dof[:, None] - np.arange(D))).sum(axis=1) - log_det
        constant = (
            digamma(self.concentration + counts)
            - digamma(self.num_components * self.concentration + len(self.x))
            + 0.5 * (expected_log_det - D * np.log(np.pi) - D / strength)
        )
        logits = np.tile(constant, (len(self.x), 1))
        over_rows(add_distances, len(self.x), self.x, mean, root, -0.5 * dof, logits)
        return _log_beta(counts, self.concentration) + float(evidence.sum()), logits.ravel()

    @property
    def _prior(self) -> NormalInverseWishart:
        assert self.prior is not None  # set by __post_init__
        return self.prior

    def _posterior(self, shares: FloatArray) -> tuple[FloatArray, ...]:
        """Mean, strength, dof and scale of each component, given that it has `shares` of rows."""
        prior, K, D = self._prior, self.num_components, self.x.shape[1]
        mean, strength, scale = np.empty((K, D)), np.empty(K), np.empty((K, D, D))
        over_rows(
            weigh_components, K, self.x, shares, prior.mean, float(prior.strength), prior.scale,
            mean, strength, scale, grain=1,
        )  # fmt: skip
        return mean, strength, prior.dof + (strength - prior.strength), scale

    def weights_posterior(self, fit: CollapsedFit) -> tuple[FloatArray, FloatArray]:
        """Means and variances of the weights, ``(num_components,)`` each."""
        shares = fit.probs.reshape(len(self.x), -1)
        return _dirichlet_moments(shares.sum(axis=0), self.concentration)

    def components(self, fit: CollapsedFit) -> list[NormalInverseWishart]:
        """The law of each component's mean and covariance."""
        laws = self._posterior(fit.probs.reshape(len(self.x), -1))
        return [NormalInverseWishart(*law) for law in zip(*laws, strict=True)]


@dataclass(eq=False)
class TopicProblem:
    """Words of documents from topics: latent Dirichlet allocation.

    The tokens of one word in one document share their probabilities, a row.

    Parameters
    ----------
    corpus : Corpus, or what `pgmult.as_corpus` takes
    num_topics : int
    topic_concentration, word_concentration : float
        Of the symmetric Dirichlet priors of topics in documents, and of words in topics.
    """

    corpus: Corpus
    num_topics: int
    topic_concentration: float = 0.1
    word_concentration: float = 0.05
    _by_word: tuple[IntArray, IntArray] = field(init=False, repr=False)
    _documents: IntArray = field(init=False, repr=False)
    _entries: IntArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        as_positive_int(self.num_topics, "num_topics", minimum=2)
        as_positive(self.topic_concentration, "topic_concentration")
        as_positive(self.word_concentration, "word_concentration")
        self.corpus = as_corpus(self.corpus)
        if self.corpus.num_tokens == 0:
            raise ValueError("the corpus must have a token, it has none")
        words = self.corpus.words
        per_word = np.bincount(words, minlength=self.corpus.num_words)
        starts = np.concatenate([[0], np.cumsum(per_word)]).astype(np.int64)
        self._by_word = starts, np.argsort(words, kind="stable")
        self._documents = np.repeat(
            np.arange(self.corpus.num_documents), np.diff(self.corpus.indptr)
        )
        self._entries = np.arange(len(words))

    @cached_property
    def indptr(self) -> IntArray:
        """K candidates an entry of the corpus."""
        return np.arange(len(self.corpus.words) + 1) * self.num_topics

    @cached_property
    def weights(self) -> FloatArray:
        """Tokens of each entry."""
        return self.corpus.counts.astype(np.float64)

    def marginal(self, probs: FloatArray) -> tuple[float, FloatArray]:
        """As `pgmult.inference.collapsed.CollapsedProblem` says."""
        shares = probs.reshape(-1, self.num_topics)
        in_documents, in_topics = self._counts(shares)
        alpha, eta = self.topic_concentration, self.word_concentration
        value = _log_beta(in_documents, alpha) + _log_beta(in_topics.T, eta)
        by_document = digamma(alpha + in_documents)
        by_document -= digamma(self.num_topics * alpha + in_documents.sum(axis=1, keepdims=True))
        by_word = digamma(eta + in_topics)
        by_word -= digamma(self.corpus.num_words * eta + in_topics.sum(axis=0))
        return value, self._pairs(by_document, by_word)

    def sampled_start(self, random_seed: int, sweeps: int = 100) -> FloatArray:
        """Logits given the state of a collapsed Gibbs chain, ``(num_entries,)``.

        Searches that start here end in higher maxima than those of
        `pgmult.inference.collapsed.random_start`, and after fewer steps; a sweep takes about as
        long as a step.
        """
        as_positive_int(sweeps, "sweeps")
        rng = np.random.default_rng(random_seed)
        K, alpha, eta = self.num_topics, self.topic_concentration, self.word_concentration
        allocation = random_allocation(rng, self.corpus, K)
        allocation = collapsed_sweeps(rng, self.corpus, allocation, np.full(K, alpha), eta, sweeps)
        by_word = np.log(eta + allocation.word_counts)
        by_word -= np.log(self.corpus.num_words * eta + allocation.word_counts.sum(axis=0))
        return self._pairs(np.log(alpha + allocation.topic_counts), by_word)

    def _pairs(self, by_document: FloatArray, by_word: FloatArray) -> FloatArray:
        """Sums of a row of each, entry by entry, ``(num_entries,)``."""
        words = self.corpus.words
        sums = np.empty((len(words), self.num_topics))
        over_rows(
            add_pairs, len(words), self._documents, words, by_document, by_word, sums, grain=1024
        )
        return sums.ravel()

    def _counts(self, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Expected tokens: topics in documents, ``(D, K)``, and words in topics, ``(V, K)``."""
        in_documents = np.empty((self.corpus.num_documents, self.num_topics))
        in_topics = np.empty((self.corpus.num_words, self.num_topics))
        for (starts, entries), out in (
            ((self.corpus.indptr, self._entries), in_documents),
            (self._by_word, in_topics),
        ):
            over_rows(add_up_groups, len(out), starts, entries, self.weights, shares, out)
        return in_documents, in_topics

    def topics(self, fit: CollapsedFit) -> FloatArray:
        """Posterior means of word probabilities, ``(num_topics, num_words)``."""
        _, in_topics = self._counts(fit.probs.reshape(-1, self.num_topics))
        return _dirichlet_moments(in_topics.T, self.word_concentration)[0]

    def theta(self, fit: CollapsedFit) -> FloatArray:
        """Posterior means of topic proportions, ``(num_documents, num_topics)``."""
        in_documents, _ = self._counts(fit.probs.reshape(-1, self.num_topics))
        return _dirichlet_moments(in_documents, self.topic_concentration)[0]


@dataclass(eq=False)
class ExpressionProblem:
    """Shares of transcripts among reads, each of which fits several.

    Parameters
    ----------
    data : Alignments
    concentration : float
        Of the symmetric Dirichlet prior of shares.
    """

    data: Alignments
    concentration: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.data, Alignments):
            raise TypeError(
                f"data must be Alignments, got {type(self.data).__name__}"
                " (make them with pgmult.as_alignments)"
            )
        as_positive(self.concentration, "concentration")

    @property
    def indptr(self) -> IntArray:
        """The alignments of each read."""
        return self.data.indptr

    @cached_property
    def weights(self) -> FloatArray:
        """How many reads a row stands for."""
        return self.data.counts.astype(np.float64)

    def marginal(self, probs: FloatArray) -> tuple[float, FloatArray]:
        """As `pgmult.inference.collapsed.CollapsedProblem` says."""
        reads = self._reads(probs)
        counts = self._count(reads)
        value = _log_beta(counts, self.concentration) + np.sum(reads * self.data.log_likelihood)
        expected = digamma(self.concentration + counts)
        expected -= digamma(len(counts) * self.concentration + self.data.num_reads)
        return float(value), self.data.log_likelihood + expected[self.data.transcripts]

    def counts(self, fit: CollapsedFit) -> FloatArray:
        """Expected reads of each transcript, ``(num_transcripts,)``."""
        return self._count(self._reads(fit.probs))

    def shares_posterior(self, fit: CollapsedFit) -> tuple[FloatArray, FloatArray]:
        """Means and variances of the shares, ``(num_transcripts,)`` each.

        Mean field: the variances leave out that it is uncertain where reads belong.
        """
        return _dirichlet_moments(self.counts(fit), self.concentration)

    def _reads(self, probs: FloatArray) -> FloatArray:
        """Expected reads of each alignment."""
        return probs * np.repeat(self.weights, np.diff(self.data.indptr))

    def _count(self, reads: FloatArray) -> FloatArray:
        counts = np.bincount(self.data.transcripts, reads, self.data.num_transcripts)
        return counts.astype(np.float64)

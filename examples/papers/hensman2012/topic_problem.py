"""LDA by collapsed variational Bayes: the bound for `natural_cg`."""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
from scipy.special import digamma

from examples.papers.hensman2012.collapsed import (
    CollapsedFit,
    dirichlet_log_evidence,
    dirichlet_moments,
)
from examples.papers.hensman2012.compiled.collapsed_bounds import add_pairs, add_up_groups
from pgmult.compiled.rows import over_rows
from pgmult.core.arguments import as_repeats, as_seed
from pgmult.core.parameters import Checked
from pgmult.core.typing import FloatArray, IntArray
from pgmult.topics.data.corpus import Corpus
from pgmult.topics.fits.mean_field import as_words
from pgmult.topics.models.topic_model import Concentration, NumTopics
from pgmult.topics.starts.searches import START_SWEEPS, leaf


@dataclass(eq=False)
class TopicProblem(Checked):
    """Words of documents from topics: latent Dirichlet allocation.

    The tokens of one word in one document share their probabilities, a row.

    Parameters
    ----------
    corpus : Corpus, or what `pgmult.topics.as_corpus` takes
    num_topics : int
    topic_concentration, word_concentration : float
        Of the symmetric Dirichlet priors of topics in documents, and of words in topics.
    """

    corpus: Annotated[Corpus, as_words]
    num_topics: NumTopics
    topic_concentration: Concentration = 0.1
    word_concentration: Concentration = 0.05

    @cached_property
    def _by_word(self) -> tuple[IntArray, IntArray]:
        """Where the entries of each word begin among the entries sorted by word, and those."""
        words = self.corpus.words
        sizes = np.bincount(words, minlength=self.corpus.num_words)
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return starts, np.argsort(words, kind="stable")

    @cached_property
    def indptr(self) -> IntArray:
        """K candidates per entry of the corpus."""
        return np.arange(len(self.corpus.words) + 1) * self.num_topics

    @cached_property
    def weights(self) -> FloatArray:
        """Tokens of each entry."""
        return self.corpus.counts.astype(np.float64)

    def marginal(self, probs: FloatArray) -> tuple[float, FloatArray]:
        """As `examples.papers.hensman2012.collapsed.CollapsedProblem` says."""
        shares = probs.reshape(-1, self.num_topics)
        in_documents, in_topics = self._counts(shares)
        alpha, eta = self.topic_concentration, self.word_concentration
        value = dirichlet_log_evidence(in_documents, alpha) + dirichlet_log_evidence(
            in_topics.T, eta
        )
        by_document = digamma(alpha + in_documents)
        by_document -= digamma(self.num_topics * alpha + in_documents.sum(axis=1, keepdims=True))
        by_word = digamma(eta + in_topics)
        by_word -= digamma(self.corpus.num_words * eta + in_topics.sum(axis=0))
        return value, self._pairs(by_document, by_word)

    def sampled_start(
        self, random_seed: int | None = None, sweeps: int = START_SWEEPS
    ) -> FloatArray:
        """Logits given the allocation that a search arrives at, ``(num_entries,)``.

        `natural_cg` starts here. Searches end in higher maxima than from
        `random_start`, and after fewer steps; a sweep takes about as long as a
        step.

        Parameters
        ----------
        random_seed : int, optional
        sweeps : int
        """
        sweeps = as_repeats(sweeps, "sweeps")
        rng = np.random.default_rng(as_seed(random_seed))
        found = leaf(rng, self.corpus, self.num_topics, self.word_concentration, sweeps)
        by_document = np.log(self.topic_concentration + found.allocation.topic_counts)
        return self._pairs(by_document, np.log(np.ascontiguousarray(found.topics().T)))

    def _pairs(self, by_document: FloatArray, by_word: FloatArray) -> FloatArray:
        """Sums of a row of each, entry by entry, ``(num_entries,)``."""
        words = self.corpus.words
        sums = np.empty((len(words), self.num_topics))
        whose = self.corpus.entry_documents
        over_rows(add_pairs, len(words), whose, words, by_document, by_word, sums, grain=1024)
        return sums.ravel()

    def _counts(self, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Expected tokens: topics in documents, ``(D, K)``, and words in topics, ``(V, K)``."""
        in_documents = np.empty((self.corpus.num_documents, self.num_topics))
        in_topics = np.empty((self.corpus.num_words, self.num_topics))
        for (starts, entries), out in (
            ((self.corpus.indptr, np.arange(len(shares))), in_documents),
            (self._by_word, in_topics),
        ):
            over_rows(add_up_groups, len(out), starts, entries, self.weights, shares, out)
        return in_documents, in_topics

    def topics(self, fit: CollapsedFit) -> FloatArray:
        """Posterior means of word probabilities, ``(num_topics, num_words)``."""
        _, in_topics = self._counts(fit.probs.reshape(-1, self.num_topics))
        return dirichlet_moments(in_topics.T, self.word_concentration)[0]

    def theta(self, fit: CollapsedFit) -> FloatArray:
        """Posterior means of topic proportions, ``(num_documents, num_topics)``."""
        in_documents, _ = self._counts(fit.probs.reshape(-1, self.num_topics))
        return dirichlet_moments(in_documents, self.topic_concentration)[0]

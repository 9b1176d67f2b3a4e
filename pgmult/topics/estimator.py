"""A scikit-learn estimator of the correlated topic model.

Counts come in as `CountVectorizer` makes them; topics and proportions of documents come out, and
the posterior for all else: correlations are ``estimator.posterior_.correlations()``.

>>> import numpy as np
>>> from pgmult.topics import TopicTransformer
>>> counts = np.random.default_rng(0).poisson(0.5, size=(20, 30))
>>> estimator = TopicTransformer(3, draws=10, tune=10, random_state=0).fit(counts)
>>> estimator.components_.shape, estimator.transform(counts[:2]).shape
((3, 30), (2, 3))
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from pgmult.compiled.rows import row_threads
from pgmult.core.arguments import as_flag, under_name
from pgmult.core.sklearn import as_seed, as_threads
from pgmult.core.typing import FloatArray, Generator
from pgmult.sampling.driver import sample
from pgmult.topics.data.corpus import Corpus, as_num_topics, corpus_from, refuse_texts, split_tokens
from pgmult.topics.fits.new_documents import fold_in
from pgmult.topics.models.correlated import CorrelatedTopics
from pgmult.topics.runs import mean_of
from pgmult.topics.scores.completion import completion_score
from pgmult.topics.summaries.matching import aligned_chains, placed_draws
from pgmult.topics.summaries.stability import topic_stability

_KEPT = ("topics", "mu", "Sigma", "topic_shares", "effective_topics", "word_concentration")
_FOLD_IN_DRAWS = 100  # posterior draws that new documents are folded into


@dataclass(eq=False, repr=False, kw_only=True)
class TopicTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Topics whose proportions in documents are correlated, with the stick-breaking link.

    Parameters
    ----------
    n_components : int
        Topics, >= 2.
    word_concentration : float, optional
        Dirichlet concentration of words in topics; learned if left out.
    draws, tune, chains, thin : int
        As in `pgmult.sample`. All kept draws of the topics are in memory.
    random_state : int, numpy.random.RandomState or None
    n_jobs : int or None
        Threads; None is one, -1 all processors. Results do not depend on it.
    verbose : bool
        Whether sampling shows its progress.

    Attributes
    ----------
    components_ : array, ``(n_components, n_features_in_)``
        Posterior mean of the word probabilities, each over the chains that found it, in the order
        of the chain with the best log likelihood; rows sum to 1.
    posterior_ : Posterior
    stability_ : TopicStability
        Which chains found each component.
    n_iter_ : int
        Sweeps of a chain.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    Notes
    -----
    `transform` folds documents in, also those of the training set: the topics do not change. It
    uses no randomness of its own, and a document's row does not depend on the other documents.
    Chains need not hold the same topics (see ``stability_``), so documents are read from the chain
    with the best log likelihood, whose topics the components are; `score` predicts with all.
    """

    n_components: int = field(default=10, kw_only=False)
    word_concentration: float | None = None
    draws: int = 200
    tune: int = 500
    chains: int = 2
    thin: int = 2
    random_state: int | np.random.RandomState | Generator | None = None
    n_jobs: int | None = None
    verbose: bool = False

    def fit(self, X: object, y: object = None) -> "TopicTransformer":
        """Fit the model to word counts.

        Parameters
        ----------
        X : array or sparse matrix, ``(n_samples, n_features)``
            Non-negative integers in any dtype.
        y : ignored

        Raises
        ------
        ValueError
            If a count is negative or fractional, or if there are none at all.
        """
        corpus = self._corpus(X, reset=True)
        if corpus.num_tokens == 0:
            raise ValueError(f"X must hold at least one token, got {corpus!r}")
        num_topics = as_num_topics(self.n_components, "n_components")
        model = CorrelatedTopics(num_topics, self.word_concentration)
        with under_name("X", of="data"):
            corpus = model.as_data(corpus)
        self.posterior_ = sample(
            model, corpus, draws=self.draws, tune=self.tune, chains=self.chains, thin=self.thin,
            cores=as_threads(self.n_jobs), random_seed=as_seed(self.random_state),
            progressbar=as_flag(self.verbose, "verbose"),
            keep=_KEPT,
        )  # fmt: skip
        self.stability_ = topic_stability(self.posterior_)
        self.n_iter_ = self.tune + self.draws * self.thin
        chains = aligned_chains(self.posterior_, None, "topics")
        draws = self.posterior_.num_chains * self.posterior_.num_draws
        self.components_ = mean_of(placed_draws(self.posterior_, "topics", chains, draws, axis=0))
        return self

    def transform(self, X: object) -> FloatArray:
        """Posterior mean of the topic proportions, ``(n_samples, n_components)``.

        Of documents folded into up to 100 draws of one chain with a fixed seed.

        Parameters
        ----------
        X : array or sparse matrix, ``(n_samples, n_features)``
        """
        check_is_fitted(self)
        corpus = self._corpus(X, reset=False)
        with row_threads(as_threads(self.n_jobs)):
            read = [self.stability_.matches.reference]
            return mean_of(theta for theta, _ in self._folded(corpus, read))

    def score(self, X: object, y: object = None) -> float:
        """Document completion: mean log probability of a held-out token, in nats.

        Half of each document's tokens, chosen at random with a fixed seed, are shown to the model,
        and the other half are scored by sum_k theta_k topics_k, averaged over posterior draws
        (see `DocumentCompletion`). Higher is better; use documents that were not in the fit.

        Parameters
        ----------
        X : array or sparse matrix, ``(n_samples, n_features)``
        y : ignored

        Raises
        ------
        ValueError
            If no document has two tokens.
        """
        check_is_fitted(self)
        corpus = self._corpus(X, reset=False)
        shown, held_out = split_tokens(corpus, corpus.num_documents)
        with row_threads(as_threads(self.n_jobs)):
            folded = self._folded(shown, range(self.posterior_.num_chains))
            return completion_score(folded, held_out).log_predictive

    def __sklearn_tags__(self) -> object:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _corpus(self, X: object, *, reset: bool) -> Corpus:
        """Counts as a corpus."""
        refuse_texts(X, "X")
        if isinstance(X, Corpus):
            raise TypeError(f"X must be an array or a sparse matrix (corpus.to_csr()), got {X!r}")
        X = validate_data(
            self, X, accept_sparse="csr", ensure_non_negative=True,
            ensure_min_features=2 if reset else 1, reset=reset,
        )  # fmt: skip
        return corpus_from(X, "X")

    def _folded(self, corpus: Corpus, chains: Sequence[int]) -> Iterator[Any]:
        """Documents folded into draws of some chains: theta and topics, each chain's own."""
        for place, chain in enumerate(chains):
            share = _FOLD_IN_DRAWS // len(chains) + (place < _FOLD_IN_DRAWS % len(chains))
            if share == 0:
                return
            for folded in fold_in(
                self.posterior_, corpus, chain=chain + 1, max_draws=share, random_seed=chain
            ):
                yield folded.theta, folded.topics

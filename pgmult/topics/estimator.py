"""A scikit-learn estimator of the correlated topic model.

Counts come in as `CountVectorizer` makes them; topics, proportions of documents and the
correlations between topics come out.

>>> import numpy as np
>>> from pgmult.topics import TopicTransformer
>>> counts = np.random.default_rng(0).poisson(0.5, size=(20, 30))
>>> estimator = TopicTransformer(3, method="svi", random_state=0).fit(counts)
>>> estimator.components_.shape, estimator.transform(counts[:2]).shape
((3, 30), (2, 3))
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from pgmult.compiled.rows import row_threads
from pgmult.core.arguments import as_choice, as_flag, as_repeats, brief
from pgmult.core.machine import refuse_unaffordable
from pgmult.core.sklearn import as_seed, as_threads
from pgmult.core.typing import FloatArray
from pgmult.priors import MvNormal
from pgmult.sampling.driver import sample
from pgmult.topics.data.corpus import (
    Corpus,
    StructuredCorpus,
    as_num_topics,
    corpus_from,
    refuse_texts,
    split_tokens,
)
from pgmult.topics.draws import mean_of
from pgmult.topics.fits.fold_in import fold_in
from pgmult.topics.fits.stick_breaking import VariationalTopics, fit_cavi, fit_svi
from pgmult.topics.models.correlated import CorrelatedTopics
from pgmult.topics.models.structural import StructuralTopics
from pgmult.topics.scores.completion import completion_score
from pgmult.topics.summaries.matching import align_topics
from pgmult.topics.summaries.stability import topic_stability

_KEPT = ("topics", "mu", "Sigma", "topic_shares", "effective_topics")
_KEPT_OF_COVARIATES = ("coefficients", "effects", "effect_variances",
                       "group_topics")  # fmt: skip
_FOLD_IN_DRAWS = 100  # posterior draws that new documents are folded into
_SIMULATIONS, _SIMULATED = 100, 200  # draws of mu and Sigma, documents of each: correlations


def _streams(estimator: "TopicTransformer") -> bool:
    if estimator.method != "svi":
        raise AttributeError(
            "partial_fit needs method='svi': a Gibbs sampler sees all documents in every sweep"
        )
    return True


@dataclass(eq=False, repr=False, kw_only=True)
class TopicTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Topics whose proportions in documents are correlated, with the stick-breaking link.

    Parameters
    ----------
    n_components : int
        Topics, >= 2.
    method : {"gibbs", "svi"}
        Gibbs sampling gives posterior draws and predicts best. Variational inference is faster and
        takes minibatches (`partial_fit`), but understates uncertainty.
    word_concentration : float
        Dirichlet concentration of words in topics.
    draws, tune, chains, thin : int
        Of Gibbs sampling, as in `pgmult.sample`. All kept draws of the topics are in memory.
    max_iter : int
        Of variational inference: iterations, or passes over the documents with `batch_size`.
    tol : float
        Of variational inference: ends when the bound changes by less than this share of itself.
    batch_size : int or None
        Of variational inference: documents in a minibatch; None takes all documents at once.
    learning_offset, learning_decay : float
        Step t has size ``(t + learning_offset) ** -learning_decay``.
    total_samples : int or None
        Documents in the whole stream that `partial_fit` sees part of; those seen so far if None.
    random_state : int, numpy.random.RandomState or None
    n_jobs : int or None
        Threads; None is one, -1 all processors. Results do not depend on it.
    verbose : bool
        Whether Gibbs sampling shows its progress.

    Attributes
    ----------
    components_ : array, ``(n_components, n_features_in_)``
        Posterior mean of the word probabilities; rows sum to 1. Of Gibbs sampling, each over the
        chains that found it, in the order of the chain with the best log likelihood.
    posterior_ : Posterior
        With ``method="gibbs"``.
    variational_ : VariationalTopics
        With ``method="svi"``.
    stability_ : TopicStability
        With ``method="gibbs"``: which chains found each component.
    topic_order_ : int array, ``(chains, n_components)``
        With ``method="gibbs"``: the topic of each chain that goes with each component.
    n_iter_ : int
        Sweeps of a chain, or updates of the variational posterior.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    Notes
    -----
    `transform` folds documents in, also those of the training set: the topics do not change. It
    uses no randomness of its own, and a document's row does not depend on the other documents.
    Chains need not hold the same topics (see ``stability_``), so documents and correlations are
    read from the chain with the best log likelihood, whose topics the components are; `score`
    predicts with all of them.
    """

    n_components: int = field(default=10, kw_only=False)
    method: Literal["gibbs", "svi"] = "gibbs"
    word_concentration: float = 0.05
    draws: int = 200
    tune: int = 500
    chains: int = 2
    thin: int = 2
    max_iter: int = 200
    tol: float = 1e-5
    batch_size: int | None = None
    learning_offset: float = 1.0
    learning_decay: float = 0.6
    total_samples: int | None = None
    random_state: Any = None
    n_jobs: int | None = None
    verbose: bool = False

    def fit(self, X: Any, y: Any = None) -> "TopicTransformer":
        """Fit the model to word counts.

        Parameters
        ----------
        X : array or sparse matrix, ``(n_samples, n_features)``, or Corpus
            Non-negative integers in any dtype. A corpus with covariates
            (`pgmult.topics.with_covariates`) gets a `StructuralTopics`, and new documents then
            need the same covariates: ``data.new_documents(counts, columns)``.
        y : ignored

        Raises
        ------
        ValueError
            If a count is negative or fractional, or if there are none at all.
        """
        corpus = self._corpus(X, reset=True)
        model = self._model(corpus)
        seed = as_seed(self.random_state)
        self._forget()
        if self.method == "gibbs":
            self.posterior_ = sample(
                model, corpus, draws=self.draws, tune=self.tune, chains=self.chains,
                thin=self.thin, cores=as_threads(self.n_jobs), random_seed=seed,
                progressbar=as_flag(self.verbose, "verbose"),
                keep=[*_KEPT, *(name for name in _KEPT_OF_COVARIATES if name in model.dims)],
            )  # fmt: skip
            self.stability_ = topic_stability(self.posterior_)
            self.topic_order_ = self.stability_.matches.order
            self.n_iter_ = self.tune + self.draws * self.thin
        elif self.batch_size is None:
            self.variational_ = fit_cavi(
                model, corpus, max_iterations=self.max_iter, tolerance=self.tol,
                random_seed=seed, cores=as_threads(self.n_jobs),
            )  # fmt: skip
            self.n_iter_ = self.variational_.num_iterations
        else:
            self.variational_ = fit_svi(
                model, corpus, batch_size=self.batch_size, max_epochs=self.max_iter,
                tolerance=self.tol, delay=self.learning_offset, forgetting=self.learning_decay,
                random_seed=seed, cores=as_threads(self.n_jobs),
            )  # fmt: skip
            self.n_iter_ = self.variational_.num_updates
        self._n_seen = corpus.num_documents
        self._set_components()
        return self

    @available_if(_streams)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any = None) -> "TopicTransformer":
        """One stochastic step from a minibatch, with ``method="svi"``; the first call starts.

        Parameters
        ----------
        X : array or sparse matrix, ``(n_samples, n_features)``
        y : ignored
        """
        begun = self._is_variational
        corpus = self._corpus(X, reset=not begun)
        model = self._model(corpus)
        if not begun:
            self._forget()
        self._n_seen = corpus.num_documents + (self._n_seen if begun else 0)
        total = self._n_seen if self.total_samples is None else self.total_samples
        with row_threads(as_threads(self.n_jobs)):
            if begun:
                q = self.variational_
            else:
                rng = np.random.default_rng(as_seed(self.random_state))
                q = VariationalTopics.start(rng, model, corpus, total)
            self.variational_ = q.update(
                corpus, total, delay=self.learning_offset, forgetting=self.learning_decay
            )
        self.n_iter_ = self.variational_.num_updates
        self._set_components()
        return self

    def transform(self, X: Any) -> FloatArray:
        """Posterior mean of the topic proportions, ``(n_samples, n_components)``.

        With ``method="gibbs"``, of documents folded into up to 100 draws of one chain by Gibbs
        sampling with a fixed seed; with ``method="svi"``, under q.

        Parameters
        ----------
        X : array or sparse matrix, ``(n_samples, n_features)``
        """
        check_is_fitted(self)
        corpus = self._corpus(X, reset=False)
        return self._mean_theta(corpus)

    def sample_transform(self, X: Any, n_draws: int = 100, random_state: Any = None) -> FloatArray:
        """Draws of the topic proportions from their posterior.

        Parameters
        ----------
        X : array or sparse matrix, ``(n_samples, n_features)``
        n_draws : int
            With ``method="gibbs"``, spread over the draws of the chain with the best log
            likelihood; at most as many as it has.
        random_state : int, numpy.random.RandomState or None

        Returns
        -------
        array, ``(n_draws, n_samples, n_components)``
        """
        check_is_fitted(self)
        corpus = self._corpus(X, reset=False)
        n_draws = as_repeats(n_draws, "n_draws")
        size = corpus.num_documents * len(self.components_)
        refuse_unaffordable(16.0 * n_draws * size, "n_draws", n_draws)
        seed = as_seed(random_state)
        if not self._is_variational:
            kept, one = self.posterior_.num_draws, [self._read_chain]
            if n_draws > kept:
                raise ValueError(f"n_draws must be at most the {kept} of a chain, got {n_draws}")
            with row_threads(as_threads(self.n_jobs)):
                return np.array([theta for theta, _ in self._folded(corpus, n_draws, one, seed)])
        q, rng = self.variational_, np.random.default_rng(seed)
        with row_threads(as_threads(self.n_jobs)):
            documents = q.infer(corpus)
            sticks = documents.prior.condition(documents.potential)
            return np.array([q.model.link().probs(sticks.sample(rng)) for _ in range(n_draws)])

    def score(self, X: Any, y: Any = None) -> float:
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
        if self._is_variational:
            return completion_score(
                [(self._mean_theta(shown), self.components_)], held_out
            ).log_predictive
        with row_threads(as_threads(self.n_jobs)):
            folded = self._folded(shown, _FOLD_IN_DRAWS, range(self.posterior_.num_chains))
            words = held_out.by_version() if self._is_structured else held_out
            return completion_score(folded, words).log_predictive

    def perplexity(self, X: Any) -> float:
        """Exponential of minus `score`: document completion perplexity per token."""
        return float(np.exp(-self.score(X)))

    @property
    def topic_covariance_(self) -> FloatArray:
        """Covariance of the topic proportions of a new document, ``(n_components, n_components)``.

        Of 20,000 documents simulated from draws of mu and Sigma, with a fixed seed: the sticks'
        own covariance depends on their order and is hard to interpret.
        """
        return np.asarray(np.cov(self._simulated_theta(), rowvar=False))

    @property
    def topic_correlation_(self) -> FloatArray:
        """Correlations of the topic proportions of a new document: see `topic_covariance_`."""
        return np.asarray(np.corrcoef(self._simulated_theta(), rowvar=False))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _corpus(self, X: Any, *, reset: bool) -> Corpus:
        """Counts as a corpus; a corpus as it is, with its covariates if it has any."""
        refuse_texts(X, "X")
        if not reset and self._is_structured and not isinstance(X, StructuredCorpus):
            raise ValueError(
                "X must have the covariates of the documents that were fitted: make it with"
                f" data.new_documents(X, columns), got {brief(X)}"
            )
        if not isinstance(X, Corpus):
            X = validate_data(
                self, X, accept_sparse="csr", ensure_non_negative=True,
                ensure_min_features=2 if reset else 1, reset=reset,
            )  # fmt: skip
            X = corpus_from(X, "X")
        elif reset:
            self.__dict__.pop("feature_names_in_", None)
            self.n_features_in_ = int(X.num_words)
        elif X.num_words != self.n_features_in_:
            raise ValueError(f"X must have {self.n_features_in_} features (words), got {X!r}")
        if reset and X.num_tokens == 0:
            raise ValueError(f"X must hold at least one token, got {X!r}")
        corpus: Corpus = X
        return corpus

    @property
    def _is_structured(self) -> bool:
        posterior = getattr(self, "posterior_", None)
        return posterior is not None and isinstance(posterior.model, StructuralTopics)

    def _model(self, corpus: Corpus) -> Any:
        """The model of a corpus: with covariates if it has any."""
        as_choice(self.method, "method", ("gibbs", "svi"))
        structured = isinstance(corpus, StructuredCorpus)
        if structured and self.method != "gibbs":
            raise ValueError(f"method must be 'gibbs' with covariates, got {brief(self.method)}")
        kind = StructuralTopics if structured else CorrelatedTopics
        return kind(as_num_topics(self.n_components, "n_components"), self.word_concentration)

    @property
    def _is_variational(self) -> bool:
        """Whether the last fit was variational; `method` may have been changed since."""
        return hasattr(self, "variational_")

    def _forget(self) -> None:
        """Remove what an earlier fit with the other method left."""
        for name in ("posterior_", "stability_", "topic_order_", "variational_"):
            self.__dict__.pop(name, None)

    def _set_components(self) -> None:
        if self._is_variational:
            self.components_ = self.variational_.topics
        else:
            self.components_ = align_topics(self.posterior_).mean

    def _mean_theta(self, corpus: Corpus) -> FloatArray:
        with row_threads(as_threads(self.n_jobs)):
            if self._is_variational:
                return self.variational_.theta(corpus)
            folded = self._folded(corpus, _FOLD_IN_DRAWS, [self._read_chain])
            return mean_of(theta for theta, _ in folded)

    def _folded(
        self, corpus: Corpus, n_draws: int, chains: Sequence[int], seed: int = 0
    ) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Documents folded into draws of some chains: theta and topics, each chain's own."""
        for place, chain in enumerate(chains):
            share = n_draws // len(chains) + (place < n_draws % len(chains))
            if share == 0:
                return
            for folded in fold_in(
                self.posterior_, corpus, chain=chain, max_draws=share, random_seed=seed + chain
            ):
                yield folded.theta, folded.topics

    @property
    def _read_chain(self) -> int:
        """The chain whose topics the components are."""
        return self.stability_.matches.reference

    def _simulated_theta(self) -> FloatArray:
        """Proportions of new documents, as many for each of some draws of mu and Sigma."""
        check_is_fitted(self)
        rng = np.random.default_rng(0)
        if self._is_variational:
            gaussian = self.variational_.gaussian
            draws = [gaussian.sample(rng) for _ in range(_SIMULATIONS)]
        else:
            chain, kept = self._read_chain, self.posterior_.num_draws
            mu, Sigma = self.posterior_["mu"][chain], self.posterior_["Sigma"][chain]
            used = np.linspace(0, kept - 1, _SIMULATIONS).astype(int)
            draws = [(mu[draw], Sigma[draw]) for draw in used]
        link = self.variational_.model.link() if self._is_variational else self.posterior_.link
        return np.concatenate(
            [link.probs(MvNormal(m, S).sample(rng, _SIMULATED)) for m, S in draws]
        )

r"""The logistic normal topic model by variational EM, documents by Laplace's approximation.

The model of `pgmult.topics.LogisticNormalTopics` (Blei and Lafferty 2007), eta its psi::

    eta_d ~ N(mu, Sigma),  theta_d = softmax(eta_d),  z_di ~ theta_d,  words ~ topics_{z_di}

with q(eta_d) q(z_di) for documents, and point estimates of the topics, mu and Sigma. Whatever
q(eta_d) = N(m, S), the best q(z_di = k) is proportional to exp(m_k) topics[k, word], since the
normaliser of the softmax is common to all k. With those put in, a document of N tokens has the
level

    sum_i log sum_k exp(m_k) topics[k, word_i]  -  N E log sum_k exp(eta_k)
        -  KL(N(m, S) || N(mu, Sigma)),

whose only term without a closed form is E log sum exp. Laplace's method (Wang and Blei 2013) puts
there the expansion of the log joint at its maximum, so m does not depend on S, and S is
(Sigma^-1 + N (diag pi - pi pi'))^-1, pi = softmax(m). A step of m is S times the gradient, halved
until the level rises: no start diverges. The delta method and Blei and Lafferty's bound were
measured beside it on two corpora: slower, and worse for held-out words
(``examples/papers/wang2013/README.md``).

The M-step is the mode under the priors of the model: topics from expected counts plus
`word_concentration` each, the mode under Dirichlet(word_concentration + 1); mu and the *precision*
Sigma^-1 at the mode under the normal-inverse-Wishart, with the covariances S_d in the sum.

>>> import numpy as np, pgmult
>>> from examples.papers.wang2013.variational_ctm import fit_ctm
>>> counts = np.random.default_rng(0).poisson(0.5, size=(20, 30))
>>> corpus = pgmult.topics.as_corpus(counts)
>>> model = pgmult.topics.LogisticNormalTopics(3)
>>> fitted = fit_ctm(model, corpus, random_seed=0)
>>> fitted.converged, fitted.topics.shape, fitted.theta(corpus).shape
(True, (3, 30), (20, 3))
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from examples.papers.wang2013 import ctm_kernels as compiled
from pgmult.compiled.rows import over_rows, row_threads
from pgmult.core.arguments import as_kind, as_real, as_repeats, as_seed, brief
from pgmult.core.machine import as_cores
from pgmult.core.typing import BoolArray, FloatArray, IntArray
from pgmult.core.validate import as_positive_int
from pgmult.links import LogisticNormal
from pgmult.topics.data.corpus import Corpus, corpus_from
from pgmult.topics.fits.mean_field import (
    as_precision,
    as_words,
    mean_theta,
    num_pieces,
    refuse_failed,
    word_counts,
)
from pgmult.topics.models.logistic_normal import LogisticNormalTopics
from pgmult.topics.starts.searches import START_SWEEPS, leaf
from pgmult.variational.ascent import HasHistory, has_settled

_FIT_TOLERANCE, _FIT_STEPS = 1e-2, 5  # of documents while topics still move


@dataclass(frozen=True, slots=True, eq=False)
class CTMDocuments:
    """q(eta) of documents given the topics, mu and Sigma.

    Attributes
    ----------
    mean, var : arrays, ``(num_documents, num_topics)``
        Moments of eta.
    topic_counts : array, ``(num_documents, num_topics)``
        Expected tokens of each topic.
    level : array, ``(num_documents,)``
        Log probability of each document's words given the topics, mu and Sigma, approximated.
    steps : int64 array, ``(num_documents,)``
        Points that each document tried.
    converged : bool array, ``(num_documents,)``
    """

    mean: FloatArray
    var: FloatArray
    topic_counts: FloatArray
    level: FloatArray
    steps: IntArray
    converged: BoolArray
    _totals: FloatArray
    _precision: FloatArray
    _cov_sum: FloatArray
    _word_counts: FloatArray

    def cov(self, document: int) -> FloatArray:
        """Covariance of one document's eta, ``(num_topics, num_topics)``: O(num_topics**3)."""
        cov = np.linalg.inv(self._precisions(slice(document, document + 1)))[0]
        return np.asarray(0.5 * (cov + cov.T))

    def theta(self) -> FloatArray:
        """Posterior mean of the topic proportions, ``(num_documents, num_topics)``."""
        return mean_theta(LogisticNormal(), self.mean, self._precisions)

    def _precisions(self, rows: slice) -> FloatArray:
        """Of eta of some documents."""
        share = LogisticNormal().probs(self.mean[rows])
        spread = share[:, :, None] * (np.eye(share.shape[1]) - share[:, None])
        return np.asarray(self._precision + self._totals[rows, None, None] * spread)


@dataclass(frozen=True, slots=True, eq=False)
class CTMFit(HasHistory):
    """Topics, mu and Sigma estimated by variational EM: a `pgmult.variational.Fit`.

    Attributes
    ----------
    model : LogisticNormalTopics
    method : "laplace"
    topics : array, ``(num_topics, num_words)``
        Word probabilities of each topic; rows sum to 1.
    mu : array, ``(num_topics,)``
    Sigma : array, ``(num_topics, num_topics)``
    history : array, ``(num_iterations,)``
        Sum of the documents' levels and of the log prior densities of topics, mu and Sigma^-1 up to
        a constant, before each M-step and at the result: no bound.
    converged : bool
    """

    model: LogisticNormalTopics
    topics: FloatArray
    mu: FloatArray
    Sigma: FloatArray
    history: FloatArray = field(default_factory=lambda: np.empty(0))
    converged: bool = False

    method: ClassVar[str] = "laplace"
    is_bound: ClassVar[bool] = False

    def infer(
        self, corpus: object, *, tolerance: float = 1e-4, max_steps: int = 500
    ) -> CTMDocuments:
        """The q of documents, seen before or not, given what was fitted.

        A document is done when a step is no longer than `tolerance` standard deviations, or after
        `max_steps`. An empty one has the prior.
        """
        tolerance = as_real(tolerance, "tolerance", above=0.0)
        max_steps = as_repeats(max_steps, "max_steps")
        return self._infer(corpus_from(corpus, "corpus"), tolerance, max_steps)

    def theta(self, corpus: object) -> FloatArray:
        """Posterior mean topic proportions of documents, ``(num_documents, num_topics)``."""
        return self.infer(corpus).theta()

    def _infer(
        self,
        corpus: Corpus,
        tolerance: float,
        max_steps: int,
        start: CTMDocuments | FloatArray | None = None,
    ) -> CTMDocuments:
        num_topics, num_words = self.topics.shape
        if corpus.num_words != num_words:
            raise ValueError(f"corpus must have the fit's {num_words} words, got {corpus!r}")
        precision = as_precision(self.Sigma)
        shape = (corpus.num_documents, num_topics)
        if isinstance(start, CTMDocuments):
            mean = start.mean.copy()
        else:
            mean = np.array(np.broadcast_to(self.mu if start is None else start, shape))
        by_word, count = np.ascontiguousarray(self.topics.T), shape[0]
        tokens = compiled.Tokens(corpus.entries, corpus.totals.astype(np.float64), by_word)
        prior = compiled.Prior(precision, self.mu)
        found = compiled.Found(
            mean, np.empty(shape), np.empty(shape), np.empty(shape), np.empty(len(corpus.words)),
            np.empty(count), np.empty(count, dtype=np.int64), np.empty(count, dtype=np.bool_),
        )  # fmt: skip
        statuses = over_rows(
            compiled.infer_eta, count, tokens, prior, tolerance, max_steps,
            found,
        )  # fmt: skip
        refuse_failed(statuses, "Gaussian approximation")
        pieces = num_pieces(count)
        cov_sums, level = np.empty((pieces, num_topics, num_topics)), np.empty(count)
        over_rows(
            compiled.sum_moments, pieces, tokens.totals, prior, found, cov_sums, level, grain=1
        )
        cov_sum = cov_sums.sum(axis=0)
        cov_sum += np.tril(cov_sum, -1).T
        return CTMDocuments(
            mean, found.var, found.taken, level, found.steps, found.is_done, tokens.totals,
            precision, cov_sum, word_counts(corpus, found.weights, found.shares, by_word),
        )  # fmt: skip

    def _log_prior(self) -> float:
        """Of topics under Dirichlet(1 + eta), and of mu and Sigma^-1, up to a constant."""
        prior = self.model.gaussian_prior
        precision = np.linalg.inv(self.Sigma)
        gap = self.mu - prior.mean
        scale = prior.scale + prior.strength * np.outer(gap, gap)
        log_det = float(np.linalg.slogdet(precision)[1])
        gaussian = 0.5 * ((prior.dof - len(gap)) * log_det - float(np.sum(precision * scale)))
        return gaussian + self.model.start_concentration() * float(np.log(self.topics).sum())

    def _maximized(self, documents: CTMDocuments) -> "CTMFit":
        """The M-step."""
        prior, count = self.model.gaussian_prior, len(documents.mean)
        strength = prior.strength + count
        mu = (prior.strength * prior.mean + documents.mean.sum(axis=0)) / strength
        gap, deviations = mu - prior.mean, documents.mean - mu
        scale = prior.scale + prior.strength * np.outer(gap, gap)
        scale += np.einsum("di,dj->ij", deviations, deviations)
        scale += documents._cov_sum
        return replace(
            self,
            topics=_smoothed(documents._word_counts, self.model.start_concentration()),
            mu=mu,
            Sigma=scale / (prior.dof + count - len(mu)),
        )


def fit_ctm(
    model: LogisticNormalTopics,
    corpus: Any,
    *,
    max_iterations: int = 200,
    tolerance: float = 1e-4,
    start_sweeps: int = START_SWEEPS,
    random_seed: int | None = None,
    cores: int | None = None,
    callback: Callable[[CTMFit], Any] | None = None,
) -> CTMFit:
    """Variational EM for the logistic normal topic model.

    Parameters
    ----------
    model : LogisticNormalTopics
        Its `start_sweeps` is of the sampler, and not used. A concentration of words that it would
        learn is fixed at 0.1.
    corpus : Corpus, or sparse matrix or array of counts
    max_iterations : int
    tolerance : float
        The fit ends when the objective changes by less than this share of itself.
    start_sweeps : int
        Collapsed sweeps of the search for a start: see `pgmult.topics.find_start`.
    random_seed : int, optional
        Of the start; the rest is deterministic. Other seeds may end in other local optima.
    cores : int, optional
        Threads; all processors if left out. Results do not depend on it.
    callback : callable, optional
        Called with the fit so far after every iteration.

    Returns
    -------
    CTMFit

    Raises
    ------
    ValueError
        If the corpus has no tokens, or an argument is out of range.

    Notes
    -----
    An iteration takes documents up to five steps further from where the last one left them.
    """
    if as_kind(model, "model", LogisticNormalTopics).keywords:
        raise ValueError("model must have no keywords to be fitted (sample, which knows them)")
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be a function of a fit, got {brief(callback)}")
    corpus = as_words(corpus)
    max_iterations = as_positive_int(max_iterations, "max_iterations")
    tolerance = as_real(tolerance, "tolerance", above=0.0)
    start_sweeps = as_repeats(start_sweeps, "start_sweeps", minimum=0)
    history: list[float] = []
    with row_threads(as_cores(cores)):
        rng = np.random.default_rng(as_seed(random_seed))
        start = leaf(rng, corpus, model.num_topics, model.start_concentration(), start_sweeps)
        start = start.ordered(np.argsort(-start.sizes, kind="stable"))
        eta = model.link().inverse(start.theta())
        gaussian = model.gaussian_prior.condition(eta)
        Sigma = gaussian.scale / (gaussian.dof - model.num_topics)
        # theta says nothing of the mean of a document's eta, which eta above has at zero
        Sigma = Sigma + np.trace(Sigma) / model.num_topics**2
        fit = CTMFit(model, start.topics(), gaussian.mean, Sigma)
        documents = fit._infer(corpus, _FIT_TOLERANCE, _FIT_STEPS, eta)
        while True:
            history.append(float(documents.level.sum()) + fit._log_prior())
            converged = has_settled(history, tolerance)
            fit = replace(fit, history=np.array(history), converged=converged)
            if callback is not None:
                try:
                    callback(fit)
                except TypeError as error:
                    raise TypeError(f"callback must take a fit: {error}") from error
            if converged or len(history) == max_iterations:
                return fit
            fit = fit._maximized(documents)
            documents = fit._infer(corpus, _FIT_TOLERANCE, _FIT_STEPS, documents)


def _smoothed(word_counts: FloatArray | IntArray, concentration: float) -> FloatArray:
    smoothed = word_counts + concentration
    return np.asarray(smoothed / smoothed.sum(axis=1, keepdims=True))

r"""Mean-field variational inference for the correlated topic model, in batch and from a stream.

The posterior of `pgmult.topics.CorrelatedTopics` is approximated by independent factors (Linderman,
Johnson and Adams 2015, appendix C; Hoffman et al. 2013 for streams)::

    q(topics_k)   = Dirichlet            words in topics
    q(mu, Sigma)  = normal-inverse-Wishart
    q(psi_d)      = N(m_d, V_d)          full covariance over K - 1 sticks
    q(z_di)       = categorical          shared by equal words of a document

Given the sticks, log theta is a sum of log sigma(psi_k) and log sigma(-psi_k), and with
xi_k^2 = E psi_k^2 both have the closed-form bound of Jaakkola and Jordan (2000),

    E log sigma(+-psi_k) >= +-m_k / 2 - log 2 cosh(xi_k / 2),

which is what the best q(omega_k), a Pólya-gamma, gives. The bound is linear in the counts of
topics, so expected counts are all it needs: x_k becomes E x_k and N_k becomes N - sum_{j<k} E x_j.
Nothing is estimated by Monte Carlo. q(psi_d) is the prior under E Sigma^-1 times the potential
J_k = E N_k tanh(xi_k / 2) / (2 xi_k), h_k = E x_k - E N_k / 2: its mean is
V_d (h + E[Sigma^-1] E mu), without the inverse that the appendix prints after the bracket.

Mean-field posteriors are too narrow, and the bound of log sigma narrows them further. On three
topics of disjoint words, 200 documents of 40 words each, sticks have standard deviations some 30 %
too small, Sigma is some 40 % too small, and most word probabilities have standard deviations
several times too small. Posterior means of theta differ from those of Gibbs by about a third of a
posterior standard deviation, those of word probabilities by about one; where topics share a third
or more of their words, by half and by one and a half, as far as one slowly mixing chain can tell.
Use mean field for speed and for streams, and Gibbs (`pgmult.sample`) for uncertainty.

>>> import numpy as np, pgmult
>>> counts = np.random.default_rng(0).poisson(0.5, size=(20, 30))
>>> corpus = pgmult.topics.as_corpus(counts)
>>> model = pgmult.topics.CorrelatedTopics(num_topics=3)
>>> fitted = pgmult.topics.fits.fit_cavi(model, corpus, random_seed=0)
>>> fitted.converged, fitted.topics.shape, fitted.theta(corpus).shape
(True, (3, 30), (20, 3))
>>> bool((np.diff(fitted.history) > 0).all())
True
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import digamma

from pgmult.compiled.rows import over_rows, row_threads
from pgmult.core.arguments import as_kind, as_real, as_repeats, as_seed
from pgmult.core.machine import as_cores
from pgmult.core.potentials import DiagonalPotential
from pgmult.core.typing import ArrayLike, FloatArray, Generator, IntArray
from pgmult.core.validate import as_generator, as_positive_int
from pgmult.links import StickBreaking
from pgmult.priors import Dirichlet, MvNormal, NormalInverseWishart
from pgmult.priors.dirichlet import dirichlet_divergence
from pgmult.priors.gaussian import expected_log_det, niw_divergence
from pgmult.topics.compiled.variational_topics import Found, Given, infer_documents, sum_covariances
from pgmult.topics.data.corpus import Corpus, as_corpus, corpus_from
from pgmult.topics.fits import mean_field
from pgmult.topics.models.correlated import CorrelatedTopics
from pgmult.variational.ascent import HasHistory, has_settled

_FIT_TOLERANCE, _FIT_STEPS = 1e-3, 50  # of documents while topics still move


@dataclass(frozen=True, slots=True, eq=False)
class DocumentPosterior:
    """q of documents given q of the topics, mu and Sigma.

    Attributes
    ----------
    prior : MvNormal
        The Gaussian with mean E mu and precision E Sigma^-1.
    potential : DiagonalPotential, ``(num_documents, num_topics - 1)``
        Likelihood of a document's sticks: q(psi) is ``prior.condition(potential)``.
    mean, var : arrays, ``(num_documents, num_topics - 1)``
        Moments of psi under q.
    topic_counts : array, ``(num_documents, num_topics)``
        Expected tokens of each topic.
    steps : int64 array, ``(num_documents,)``
        Coordinate ascent steps that each document took.
    """

    prior: MvNormal
    potential: DiagonalPotential
    mean: FloatArray
    var: FloatArray
    topic_counts: FloatArray
    steps: IntArray
    _precision: FloatArray
    _scores: FloatArray
    _word_counts: FloatArray

    def theta(self) -> FloatArray:
        """Posterior mean of the topic proportions, ``(num_documents, num_topics)``.

        The Monte Carlo error of `mean_theta` is some 5 % of theta's posterior standard deviation.
        """
        J, eye = self.potential.J, np.eye(self.mean.shape[1])

        def precisions(rows: slice) -> FloatArray:
            return self._precision + J[rows, :, None] * eye

        return mean_field.mean_theta(StickBreaking(), self.mean, precisions)


@dataclass(frozen=True, slots=True)
class Bound:
    """The evidence lower bound, term by term.

    Attributes
    ----------
    documents : float
        Expected log density of words, assignments and sticks, less that of their q.
    topics : float
        Minus the divergence of q(topics) from its prior.
    gaussian : float
        Minus the divergence of q(mu, Sigma) from its prior.
    """

    documents: float
    topics: float
    gaussian: float

    @property
    def total(self) -> float:
        """The bound."""
        return self.documents + self.topics + self.gaussian


@dataclass(frozen=True, slots=True, eq=False)
class VariationalTopics(HasHistory):
    """q(topics) and q(mu, Sigma): a value and a `pgmult.variational.Fit`; `update` gives a new one.

    Attributes
    ----------
    model : CorrelatedTopics
    concentration : array, ``(num_topics, num_words)``
        Of q(topics), Dirichlet rows.
    gaussian : NormalInverseWishart
        q(mu, Sigma).
    method : {"cavi", "svi"}
    num_updates : int
        Minibatches seen.
    history : array, ``(num_iterations,)``
        With `fit_cavi` the bound before each update and at the result: it never falls. With
        `fit_svi` its estimate of each pass over the corpus, the mean of those of minibatches.
    converged : bool
        Whether the fit ended because the bound changed by less than its tolerance.
    """

    model: CorrelatedTopics
    concentration: FloatArray
    gaussian: NormalInverseWishart
    method: str = "svi"
    num_updates: int = 0
    history: FloatArray = field(default_factory=lambda: np.empty(0))
    converged: bool = False

    @property
    def is_bound(self) -> bool:
        """True where the objective is a lower bound, and not an estimate of one."""
        return self.method == "cavi"

    @classmethod
    def start(
        cls, rng: Generator, model: CorrelatedTopics, corpus: Any, num_documents: int | None = None
    ) -> "VariationalTopics":
        """The start of a fit: a search for topics on these documents.

        Parameters
        ----------
        rng : numpy.random.Generator
        model : CorrelatedTopics
        corpus : Corpus, or sparse matrix or array of counts
            All documents, or the first of a stream.
        num_documents : int, optional
            How many documents there are in all; those of `corpus` if left out.
        """
        corpus = mean_field.as_words(corpus)
        if as_kind(model, "model", CorrelatedTopics).keywords:
            raise ValueError("model must have no keywords to be fitted (sample, which knows them)")
        state = model.init(as_generator(rng), corpus)
        scale = _scale(corpus.num_documents, num_documents)
        sizes, prior = scale * state.topic_counts.sum(axis=0), model.gaussian_prior
        nothing, count = np.zeros_like(prior.scale), scale * len(state.psi)
        sample = _gaussian_posterior(prior, state.psi, nothing, count)
        return cls(model, model.start_concentration() + sizes[:, None] * state.topics, sample)

    @property
    def topics(self) -> FloatArray:
        """Posterior mean of the word probabilities, ``(num_topics, num_words)``."""
        return Dirichlet(self.concentration).mean()

    def update(
        self, minibatch: Corpus, num_documents: int | None = None, *,
        step_size: float | None = None, delay: float = 1.0, forgetting: float = 0.6,
    ) -> "VariationalTopics":  # fmt: skip
        """One stochastic natural-gradient step from some of the documents.

        Parameters
        ----------
        minibatch : Corpus, or sparse matrix or array of counts
        num_documents : int, optional
            How many documents there are in all, of which the minibatch stands for its share; those
            of the minibatch if left out.
        step_size : float, optional
            In (0, 1]; ``(num_updates + delay) ** -forgetting`` if left out, which satisfies the
            conditions of Robbins and Monro for forgetting in (0.5, 1].
        delay, forgetting : float

        Returns
        -------
        VariationalTopics
            With step size 1 and all documents this is one iteration of `fit_cavi`.
        """
        minibatch = mean_field.as_words(minibatch, "minibatch")
        if step_size is None:
            step_size = _step_size(self.num_updates + 1, delay, forgetting)
        step_size = as_real(step_size, "step_size", above=0.0, maximum=1.0)
        scale = _scale(minibatch.num_documents, num_documents)
        documents = self._infer(minibatch, _FIT_TOLERANCE, _FIT_STEPS)
        return self._toward(documents, scale, step_size)

    def bound(self, documents: DocumentPosterior, num_documents: int | None = None) -> Bound:
        """The evidence lower bound at q, given q of documents under this q of the topics.

        Parameters
        ----------
        documents : DocumentPosterior
            From `infer` of this very object.
        num_documents : int, optional
            If `documents` are a sample of so many, their terms are scaled up: an estimate.
        """
        count, n = as_kind(documents, "documents", DocumentPosterior).mean.shape
        scale = _scale(count, num_documents)
        constants = -0.5 * (expected_log_det(self.gaussian) + n / self.gaussian.strength)
        of_documents = scale * (float(documents._scores.sum()) + count * constants)
        away = dirichlet_divergence(self.concentration, self.model.start_concentration())
        return Bound(of_documents, -away, -niw_divergence(self.gaussian, self.model.gaussian_prior))

    def infer(
        self, corpus: object, *, tolerance: float = 1e-4, max_steps: int = 500
    ) -> DocumentPosterior:
        """The q of documents, seen before or not, given what was fitted.

        Parameters
        ----------
        corpus : Corpus, or sparse matrix or array of counts
            With the words of the fit. An empty document has the prior.
        tolerance : float
            A document is done when a step is no longer: the share of its tokens that move.
        max_steps : int

        Raises
        ------
        ValueError
            If the number of words is not that of the fit.
        FloatingPointError
            If a document holds a word of probability 0 under every topic.

        Notes
        -----
        A step costs O(entries K + K**3) a document, the latter in SIMD lanes. Rows run on the
        threads of the enclosing context; a document's answer does not depend on the others.
        """
        tolerance = as_real(tolerance, "tolerance", above=0.0)
        max_steps = as_repeats(max_steps, "max_steps")
        return self._infer(corpus_from(corpus, "corpus"), tolerance, max_steps)

    def theta(self, corpus: object) -> FloatArray:
        """Posterior mean topic proportions of documents, ``(num_documents, num_topics)``."""
        return self.infer(corpus).theta()

    def _infer(
        self, corpus: Corpus, tolerance: float, max_steps: int,
        start: DocumentPosterior | None = None,
    ) -> DocumentPosterior:  # fmt: skip
        num_topics, num_words = self.concentration.shape
        if corpus.num_words != num_words:
            raise ValueError(f"corpus or minibatch must have {num_words} words, got {corpus!r}")
        log_topics = digamma(self.concentration)
        log_topics -= digamma(self.concentration.sum(axis=1, keepdims=True))
        shift = log_topics.max(axis=0)
        by_word = np.exp(np.ascontiguousarray((log_topics - shift).T))
        cov = self.gaussian.scale / self.gaussian.dof
        precision = mean_field.as_precision(cov)
        begun = (self.gaussian.mean, np.diagonal(cov)) if start is None else (start.mean, start.var)
        count, shape = corpus.num_documents, (corpus.num_documents, num_topics)
        sticks = (count, num_topics - 1)
        mean, var = (np.array(np.broadcast_to(of, sticks), order="C") for of in begun)
        local = Found(
            mean, var, np.empty(sticks), np.empty(sticks), np.empty(shape), np.empty(shape),
            np.empty(len(corpus.words)), np.empty(count), np.empty(count, dtype=np.int64),
        )  # fmt: skip
        fixed = Given(by_word, shift, precision, self.gaussian.mean)
        given = corpus.entries, fixed, tolerance, max_steps, local
        statuses = over_rows(infer_documents, count, *given)
        mean_field.refuse_failed(statuses, "mean-field posterior")
        return DocumentPosterior(
            MvNormal(self.gaussian.mean, cov), DiagonalPotential(local.J, local.h), mean, var,
            local.taken, local.steps, precision, local.scores,
            mean_field.word_counts(corpus, local.weights, local.theta, by_word),
        )  # fmt: skip

    def _toward(
        self, documents: DocumentPosterior, scale: float, step_size: float
    ) -> "VariationalTopics":
        """Move natural parameters by `step_size` towards their optimum given the documents."""
        target = self.model.start_concentration() + scale * documents._word_counts
        count, n = documents.mean.shape
        pieces, prior = mean_field.num_pieces(count), self.model.gaussian_prior
        totals, J = np.zeros((pieces, n, n)), documents.potential.J
        over_rows(sum_covariances, pieces, documents._precision, J, totals, grain=1)
        within = totals.sum(axis=0)
        within += np.tril(within, -1).T
        asked = _gaussian_posterior(prior, documents.mean, within, scale * count)
        return replace(
            self, concentration=(1.0 - step_size) * self.concentration + step_size * target,
            gaussian=_mixed(self.gaussian, asked, step_size), num_updates=self.num_updates + 1,
        )  # fmt: skip


def fit_cavi(
    model: CorrelatedTopics, corpus: Corpus | ArrayLike, *, max_iterations: int = 200,
    tolerance: float = 1e-5, random_seed: int | None = None, cores: int | None = None,
) -> VariationalTopics:  # fmt: skip
    """Batch coordinate ascent: the bound rises with every iteration.

    Parameters
    ----------
    model : CorrelatedTopics
        A concentration of words that it would learn is fixed at 0.1. The fit starts from its
        search and ends near it: on 2,246 newswire articles with 50 topics, held-out words have a
        log probability of -7.43 from 5 ``start_sweeps``, -7.24 from 30, -7.17 from 100 and -7.16
        from 300.
    corpus : Corpus, or sparse matrix or array of counts
    max_iterations : int
    tolerance : float
        The fit ends when the bound changes by less than this share of itself.
    random_seed : int, optional
        Of the start; the rest is deterministic. Other seeds may end in other local optima.
    cores : int, optional
        Threads; all processors if left out. Results do not depend on it.

    Returns
    -------
    VariationalTopics

    Raises
    ------
    ValueError
        If the corpus has no tokens, or an argument is out of range.
    """
    as_kind(model, "model", CorrelatedTopics)
    corpus = mean_field.as_words(corpus)
    max_iterations = as_positive_int(max_iterations, "max_iterations")
    tolerance = as_real(tolerance, "tolerance", above=0.0)
    rng = np.random.default_rng(as_seed(random_seed))
    with row_threads(as_cores(cores)):
        q, bounds, documents = VariationalTopics.start(rng, model, corpus), list[float](), None
        while True:
            documents = q._infer(corpus, _FIT_TOLERANCE, _FIT_STEPS, documents)
            bounds.append(q.bound(documents).total)
            converged = has_settled(bounds, tolerance)
            if converged or len(bounds) == max_iterations:
                break
            q = q._toward(documents, 1.0, 1.0)
    return replace(q, method="cavi", history=np.array(bounds), converged=converged)


def fit_svi(
    model: CorrelatedTopics, corpus: Corpus | ArrayLike, *, batch_size: int = 256,
    max_epochs: int = 20, delay: float = 1.0, forgetting: float = 0.6, tolerance: float = 1e-4,
    random_seed: int | None = None, cores: int | None = None,
) -> VariationalTopics:  # fmt: skip
    """Stochastic variational inference: steps from minibatches in random order.

    Parameters
    ----------
    model : CorrelatedTopics
        As in `fit_cavi`; its search is of ``4 * batch_size`` documents.
    corpus : Corpus, or sparse matrix or array of counts
    batch_size : int
        Documents in a minibatch.
    max_epochs : int
        Passes over the corpus.
    delay, forgetting : float
        Step t = 1, 2, ... has size ``(t + delay) ** -forgetting``: Hoffman et al. (2013).
    tolerance : float
        The fit ends when the mean of the minibatches' estimates of the bound changes by less than
        this share of itself from one pass to the next.
    random_seed : int, optional
        Of the start and of the order of documents.
    cores : int, optional
        Threads; all processors if left out. Results do not depend on it.

    Returns
    -------
    VariationalTopics
        Its objective is an estimate of the bound during the last pass.
    """
    as_kind(model, "model", CorrelatedTopics)
    corpus = mean_field.as_words(corpus)
    batch_size = as_positive_int(batch_size, "batch_size")
    max_epochs = as_positive_int(max_epochs, "max_epochs")
    tolerance = as_real(tolerance, "tolerance", above=0.0)
    _step_size(1, delay, forgetting)
    rng = np.random.default_rng(as_seed(random_seed))
    counts, total = corpus.to_csr(), corpus.num_documents
    with row_threads(as_cores(cores)):
        sampled = rng.permutation(np.flatnonzero(corpus.totals))[: 4 * batch_size]
        first = as_corpus(counts[np.sort(sampled)])
        q, means = VariationalTopics.start(rng, model, first, total), list[float]()
        while len(means) < max_epochs and not has_settled(means, tolerance):
            bounds = []
            for rows in np.array_split(rng.permutation(total), max(1, round(total / batch_size))):
                documents = q._infer(as_corpus(counts[rows]), _FIT_TOLERANCE, _FIT_STEPS)
                bounds.append(q.bound(documents, total).total)
                step_size = _step_size(q.num_updates + 1, delay, forgetting)
                q = q._toward(documents, total / len(rows), step_size)
            means.append(float(np.mean(bounds)))
    return replace(q, history=np.array(means), converged=has_settled(means, tolerance))


def _scale(num_seen: int, num_documents: int | None) -> float:
    """Number of documents in all divided by the number of documents given."""
    if num_documents is None:
        return 1.0
    return as_positive_int(num_documents, "num_documents", num_seen, 2**62) / num_seen


def _step_size(t: int, delay: float, forgetting: float) -> float:
    delay = as_real(delay, "delay", minimum=0.0)
    forgetting = as_real(forgetting, "forgetting", above=0.5, maximum=1.0)  # else no convergence
    return float((t + delay) ** -forgetting)


def _gaussian_posterior(
    prior: NormalInverseWishart, means: FloatArray, within: FloatArray, count: float
) -> NormalInverseWishart:
    """q(mu, Sigma) given q(psi) of a sample that represents `count` rows.

    The sum of the rows' covariances is `within`.
    """
    average = means.mean(axis=0)
    deviations = means - average
    scatter = within + np.einsum("di,dj->ij", deviations, deviations)
    return prior.condition_average(count, average, count / len(means) * scatter)


def _mixed(
    old: NormalInverseWishart, new: NormalInverseWishart, step_size: float
) -> NormalInverseWishart:
    """Natural parameters (strength mean, strength, dof, scale + strength mean mean') mixed."""
    retained, gained = (1.0 - step_size) * old.strength, step_size * new.strength
    strength = retained + gained
    shift = new.mean - old.mean
    mean = (retained * old.mean + gained * new.mean) / strength
    dof = (1.0 - step_size) * old.dof + step_size * new.dof
    scale = (1.0 - step_size) * old.scale + step_size * new.scale
    scale += (retained * gained / strength) * np.outer(shift, shift)
    return NormalInverseWishart(mean=mean, strength=strength, dof=dof, scale=scale)

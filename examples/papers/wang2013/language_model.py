r"""Language models with learned smoothing: a unigram model of groups of documents.

Each group g of documents has log Dirichlet parameters, one per word (Wang and Blei 2013, section
2.2, after MacKay and Peto 1995)::

    theta_gi ~ N(mu, sigma^2),                i = 1..V
    z_d      ~ Dirichlet(exp theta_g),        d in group g      word probabilities of a document
    x_d      ~ Multinomial(N_d, z_d)

A document's next word is w with probability (a_w + x_dw) / (sum a + N_d), a = E exp theta_g: its
own counts, smoothed by the group's. The sum of a says how much, and the model learns it.

z is summed out. Write a = exp theta, A = sum a, and D for the documents that have words::

    L(theta) = - sum (theta - mu)^2 / (2 sigma^2)
               + sum_d [log Gamma(A) - log Gamma(A + N_d)
                        + sum_i log Gamma(a_i + x_di) - log Gamma(a_i)]

q(theta) is Gaussian at the mode of L, with the inverse of its curvature there as covariance, a
diagonal and a matrix of rank one. Beside quadrature with two words its standard deviations are
right within 2 %. Those of a q(theta) q(z), by Laplace or by the delta method (Wang and Blei), are
far too small: given all z_d, a log parameter is known to some 1 / sqrt(D) however rare its word.
All three predict held-out words alike (see README.md). L is not concave:
steps are preconditioned by its absolute curvature, O(V) per step, and halved until L rises.

mu and sigma^2 are learned by expectation-maximisation, from all words of all groups.

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> z = rng.dirichlet([5.0, 2.0, 1.0, 0.5], size=40)
>>> fitted = fit_language_model(np.array([rng.multinomial(50, p) for p in z]))
>>> fitted.concentration.round(1)
array([[4.6, 2.1, 1. , 0.6]])
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaln, gammaln, polygamma

from examples.papers.climb import Climb
from pgmult.core.arguments import as_flag, as_real
from pgmult.core.typing import BoolArray, FloatArray, IntArray
from pgmult.core.validate import as_counts, as_positive_int
from pgmult.topics.data.corpus import Corpus, corpus_from
from pgmult.topics.fits.mean_field import as_words
from pgmult.topics.scores.completion import CompletionScore
from pgmult.variational.ascent import HasHistory, has_settled

_LONGEST_STEP = 3.0  # of a log parameter
_LEAST_CURVATURE = 1e-8  # relative to the largest
_LEAST_REST = 1e-3  # of the eigenvalue in `_definite`, where it is not positive
_LEAST_VAR = 1e-6  # of sigma^2


@dataclass(frozen=True, slots=True, eq=False)
class LanguageModelFit(HasHistory):
    """q(theta) of each group, and the prior of groups and words: a `pgmult.variational.Fit`.

    Attributes
    ----------
    mean, var : arrays, ``(num_groups, num_words)``
        Of each log Dirichlet parameter.
    mu, sigma_var : float
        Mean and variance of the prior.
    history : array, ``(num_iterations,)``
        The approximate log evidence, multinomial coefficients left out, before each update of mu
        and sigma^2 and at the result: no bound.
    is_proper : bool array, ``(num_groups, num_words)``
        Whether the curvature at the mean is negative. Where it is not, `var` is made of its
        absolute value, and says little.
    converged : bool
    """

    mean: FloatArray
    var: FloatArray
    mu: float
    sigma_var: float
    history: FloatArray
    is_proper: BoolArray
    converged: bool

    method: ClassVar[str] = "laplace"
    is_bound: ClassVar[bool] = False

    @property
    def concentration(self) -> FloatArray:
        """E exp theta, ``(num_groups, num_words)``: what documents' own counts are added to."""
        return np.asarray(np.exp(self.mean + 0.5 * self.var))

    @property
    def word_probs(self) -> FloatArray:
        """Word probabilities of a new document, ``(num_groups, num_words)``."""
        concentration = self.concentration
        return np.asarray(concentration / concentration.sum(axis=1, keepdims=True))

    def log_predictive(
        self, observed: Any, held_out: Any, groups: ArrayLike | None = None
    ) -> CompletionScore:
        """Log probability of held-out tokens given the other tokens of the same documents.

        Parameters
        ----------
        observed, held_out : Corpus, or sparse matrix or array of counts
            The same documents in the same rows, with the words of the fit.
        groups : int array, ``(num_documents,)``, optional
            As in `fit_language_model`.

        Raises
        ------
        ValueError
            If shapes do not agree, or there is nothing to score.
        """
        observed = corpus_from(observed, "observed")
        held_out = corpus_from(held_out, "held_out")
        expected = (observed.num_documents, self.mean.shape[1])
        for name, corpus in (("observed", observed), ("held_out", held_out)):
            if (corpus.num_documents, corpus.num_words) != expected:
                raise ValueError(f"{name} must be {expected}, got {corpus!r}")
        if held_out.num_tokens == 0:
            raise ValueError("held_out has no tokens to score")
        labels = _as_groups(groups, observed.num_documents, len(self.mean))
        a = self.concentration
        rows = held_out.entry_documents
        own = np.asarray(observed.to_csr()[rows, held_out.words]).ravel()
        totals = a.sum(axis=1)[labels] + observed.totals
        log_probs = np.log((a[labels[rows], held_out.words] + own) / totals[rows])
        by_document = np.zeros(len(labels))
        np.add.at(by_document, rows, held_out.counts * log_probs)
        return CompletionScore(by_document, held_out.totals)


@dataclass(frozen=True, slots=True, eq=False)
class GroupCounts:
    """Sufficient statistics of a group: documents with equal counts of a word are taken together.

    Attributes
    ----------
    words, counts, times : arrays, ``(num_pairs,)``
        So many documents have this word this often, once or more.
    totals, total_times : arrays
        So many documents are this long, one token or longer.
    """

    words: IntArray
    counts: FloatArray
    times: FloatArray
    totals: FloatArray
    total_times: FloatArray
    num_words: int

    @classmethod
    def of(cls, corpus: Corpus, rows: IntArray) -> "GroupCounts":
        """The documents in these rows of a corpus."""
        part = corpus.to_csr()[rows]
        pairs, times = np.unique(np.stack([part.indices, part.data]), axis=1, return_counts=True)
        lengths = np.asarray(part.sum(axis=1)).ravel()
        totals, total_times = np.unique(lengths[lengths > 0], return_counts=True)
        return cls(
            pairs[0].astype(np.int64), pairs[1].astype(np.float64), times.astype(np.float64),
            totals.astype(np.float64), total_times.astype(np.float64), corpus.num_words,
        )  # fmt: skip

    @property
    def num_documents(self) -> float:
        """Documents that have words."""
        return float(self.total_times.sum())

    def evidence(self, a: FloatArray) -> float:
        """Log probability of the words given Dirichlet parameters, z summed out."""
        there, total = a[self.words], a.sum()
        rises = gammaln(self.counts) - betaln(there, self.counts)  # nothing cancels for a large a
        falls = gammaln(self.totals) - betaln(total, self.totals)
        return float(self.times @ rises - self.total_times @ falls)

    def slopes(self, a: FloatArray, order: int = 0) -> tuple[FloatArray, float]:
        """Of the evidence: d / d a_i and what its falls add to all of them; or their derivatives.

        `order` is that of the polygamma function.
        """
        there, total = a[self.words], a.sum()
        rises = polygamma(order, there + self.counts) - polygamma(order, there)
        falls = polygamma(order, total + self.totals) - polygamma(order, total)
        by_word = np.zeros(self.num_words)
        np.add.at(by_word, self.words, self.times * rises)
        return by_word, -float(self.total_times @ falls)


@dataclass(frozen=True, slots=True, eq=False)
class GroupObjective:
    """L of one group, its gradient and its curvature."""

    data: GroupCounts
    mu: float
    sigma_var: float

    def level(self, m: FloatArray) -> float:
        """L, up to a constant of the prior."""
        return self.data.evidence(np.exp(m)) - 0.5 * float(np.sum((m - self.mu) ** 2)) / (
            self.sigma_var
        )

    def gradient(self, m: FloatArray) -> FloatArray:
        """Of L."""
        by_word, common = self.data.slopes(np.exp(m))
        return np.asarray(np.exp(m) * (by_word + common) - (m - self.mu) / self.sigma_var)

    def curvature(self, m: FloatArray) -> tuple[FloatArray, float]:
        """Of L: c and w of minus its Hessian, diag(c) - w a a'."""
        a = np.exp(m)
        by_word, common = self.data.slopes(a)
        second, weight = self.data.slopes(a, order=1)
        return 1.0 / self.sigma_var - a * (by_word + common) - a**2 * second, weight

    def step(self, m: FloatArray, gradient: FloatArray) -> FloatArray:
        """The gradient over the curvature, made positive definite."""
        diagonal, rest, weight, _ = _definite(m, *self.curvature(m))
        leaning = np.exp(m) / diagonal
        return np.asarray(
            gradient / diagonal + leaning * (weight * float(leaning @ gradient) / rest)
        )


def _definite(
    m: FloatArray, diagonal: FloatArray, weight: float
) -> tuple[FloatArray, float, float, BoolArray]:
    """Make diag(c) - w a a' positive definite: c, the eigenvalue 1 - w a' c^-1 a, w, where it was.

    In the metric of c that matrix has one eigenvalue that is not 1. Like c it counts by its
    absolute value where it is not positive.
    """
    is_positive = diagonal > 0.0
    diagonal = np.abs(diagonal)
    diagonal = np.maximum(diagonal, _LEAST_CURVATURE * diagonal.max())
    length = float(np.sum(np.exp(2.0 * m) / diagonal))
    rest = 1.0 - weight * length
    if rest > _LEAST_CURVATURE:
        return diagonal, rest, weight, is_positive
    rest = max(-rest, _LEAST_REST)
    return diagonal, rest, (1.0 - rest) / length, np.zeros_like(is_positive)


def _climb(
    objective: GroupObjective, m: FloatArray, tolerance: float, steps: int = 500
) -> tuple[FloatArray, bool]:
    """Ascend until a step is short, in standard deviations; whether it was."""
    level = objective.level(m)
    for _ in range(steps):
        gradient = objective.gradient(m)
        step = objective.step(m, gradient)
        rise = max(float(gradient @ step), 0.0)
        if math.sqrt(rise) <= tolerance:
            return m, True
        longest = min(1.0, _LONGEST_STEP / float(np.abs(step).max()))
        climb = Climb(level, promise=rise, share=longest)
        for _ in climb:
            trial = m + climb.share[0] * step
            with np.errstate(all="ignore"):  # a step may overflow: it is refused
                value = objective.level(trial)
            climb.accept(value)
        if climb.stuck[0]:
            return m, False
        m, level = trial, value
    return m, False


def _fit_group(
    objective: GroupObjective, m: FloatArray, tolerance: float
) -> tuple[FloatArray, FloatArray, BoolArray, float, bool]:
    """Mean, variances, where they are proper, the level and whether it converged."""
    m, converged = _climb(objective, m, tolerance)
    diagonal, rest, weight, is_proper = _definite(m, *objective.curvature(m))
    s = 1.0 / diagonal + np.exp(2.0 * m) / diagonal**2 * (weight / rest)
    log_det = float(np.sum(np.log(diagonal * objective.sigma_var))) + math.log(rest)
    return m, s, is_proper, objective.level(m) - 0.5 * log_det, converged


def fit_language_model(
    corpus: Any,
    groups: ArrayLike | None = None,
    *,
    mu: float = 0.0,
    sigma_var: float = 1.0,
    learn_prior: bool = True,
    tolerance: float = 1e-6,
    max_iterations: int = 500,
) -> LanguageModelFit:
    """Log Dirichlet parameters of groups of documents, by variational EM.

    Parameters
    ----------
    corpus : Corpus, or sparse matrix or array of counts
    groups : int array, ``(num_documents,)``, optional
        Numbers of the documents' groups, from 0; one group if left out. A number that no document
        has is a group that has the prior.
    mu, sigma_var : float
        Mean and variance of log parameters, or where their estimates start.
    learn_prior : bool
        Whether mu and sigma^2 are estimated.
    tolerance : float
        EM ends when the objective changes by less than this share of itself; the climb within a
        group when a step is shorter, in standard deviations of the whole group.
    max_iterations : int

    Returns
    -------
    LanguageModelFit

    Raises
    ------
    ValueError
        If the corpus has no tokens, or an argument is out of range.

    Notes
    -----
    A step costs O(num_words + distinct (word, count) pairs) per group.
    """
    corpus = as_words(corpus)
    mu, sigma_var = as_real(mu, "mu"), as_real(sigma_var, "sigma_var", above=0.0)
    learn_prior = as_flag(learn_prior, "learn_prior")
    tolerance = as_real(tolerance, "tolerance", above=0.0)
    max_iterations = as_positive_int(max_iterations, "max_iterations")
    labels = _as_groups(groups, corpus.num_documents)
    data = [GroupCounts.of(corpus, np.flatnonzero(labels == g)) for g in range(labels.max() + 1)]
    mean = np.stack([_start(counts, mu) for counts in data])
    history: list[float] = []
    while True:
        fits = [
            _fit_group(GroupObjective(counts, mu, sigma_var), m, tolerance)
            for counts, m in zip(data, mean, strict=True)
        ]
        mean, var = np.stack([fit[0] for fit in fits]), np.stack([fit[1] for fit in fits])
        history.append(sum(fit[3] for fit in fits))
        is_still = not learn_prior or has_settled(history, tolerance)
        if is_still or len(history) == max_iterations:
            is_proper = np.stack([fit[2] for fit in fits])
            converged = is_still and all(fit[4] for fit in fits)
            return LanguageModelFit(
                mean, var, mu, sigma_var, np.array(history), is_proper, converged
            )
        mu = float(mean.mean())
        sigma_var = max(float(np.mean((mean - mu) ** 2 + var)), _LEAST_VAR)


def _start(data: GroupCounts, mu: float) -> FloatArray:
    """Logarithms of the group's word frequencies, smoothed, around mu."""
    frequencies = np.bincount(data.words, data.times * data.counts, minlength=data.num_words) + 1.0
    return np.asarray(mu + np.log(frequencies / frequencies.mean()))


def _as_groups(groups: ArrayLike | None, num_documents: int, most: int | None = None) -> IntArray:
    if groups is None:
        return np.zeros(num_documents, dtype=np.int64)
    labels = as_counts(groups, "groups")
    if labels.shape != (num_documents,):
        raise ValueError(
            f"groups must have one entry for each of the {num_documents} documents, got shape"
            f" {labels.shape}"
        )
    if most is not None and labels.max(initial=0) >= most:
        raise ValueError(f"groups must be below the fit's {most}, got {labels.max()}")
    return labels

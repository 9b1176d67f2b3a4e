r"""Language models with learned smoothing: a unigram model of groups of documents.

Each group g of documents has log Dirichlet parameters, one per word (Wang and Blei 2013, section
2.2, after MacKay and Peto 1995)::

    theta_gi ~ N(mu, sigma^2),                i = 1..V
    z_d      ~ Dirichlet(exp theta_g),        d in group g      word probabilities of a document
    x_d      ~ Multinomial(N_d, z_d)

A document's next word is w with probability (a_w + x_dw) / (sum a + N_d), a = E exp theta_g: its
own counts, smoothed by the group's. The sum of a says how much, and the model learns it.

With q(theta) q(z), and a_i for E exp theta_i by Taylor, q(z_d) = Dirichlet(a + x_d). It is put
in, and what is left to climb is explicit. Write e = exp m, E = sum e, D for the documents that have
words, and s for the variances of q(theta), words independent::

    L(m, s) = - sum [(m - mu)^2 + s - sigma^2 log s] / (2 sigma^2)  +  sum_i s_i D h_i / 2
              + D [log Gamma(E) - sum_i log Gamma(e_i)]
              + sum_d [sum_i log Gamma(a_i + x_di) - log Gamma(A + N_d)],       A = sum a,

    h_i = e_i [psi(E) - psi(e_i)] + e_i^2 [psi'(E) - psi'(e_i)].

"laplace"    a = e and s = 0: L is the log posterior of theta with z summed out. Its mode is that of
             f at the best q(z), and -Hess f there, with trigammas, the inverse of the covariance, a
             diagonal and a matrix of rank one.
"delta"      a_i = e_i (1 + s_i / 2), L climbed in m (tetragammas in its gradient) and s in turns.
"collapsed"  the mode of "laplace", covariance from the curvature with z summed out.

The posterior of theta is not independent of z: given all z_d, a log parameter is known to some 1 /
sqrt(D) however rare its word. So the variances of the first two are far too small, and those of the
third are not. f is not concave: steps are preconditioned by the absolute curvature of the collapsed
log posterior, a diagonal and a matrix of rank one, O(V) per step, and halved until L rises.

mu and sigma^2 are learned by expectation-maximisation, from all words of all groups.

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> z = rng.dirichlet([5.0, 2.0, 1.0, 0.5], size=40)
>>> fitted = fit_language_model(np.array([rng.multinomial(50, p) for p in z]), method="collapsed")
>>> fitted.concentration.round(1)
array([[4.6, 2.1, 1. , 0.6]])
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaln, digamma, gammaln, polygamma

from pgmult.core.arguments import as_choice, as_flag, as_real
from pgmult.core.typing import BoolArray, FloatArray, IntArray
from pgmult.core.validate import as_counts, as_positive_int
from pgmult.topics.data.corpus import Corpus, corpus_from
from pgmult.topics.fits.mean_field import as_words
from pgmult.topics.scores.completion import CompletionScore
from pgmult.variational.ascent import Climb, HasHistory, has_settled

_METHODS = ("laplace", "delta", "collapsed")
_LONGEST_STEP = 3.0  # of a log parameter
_LEAST_CURVATURE = 1e-8  # relative to the largest
_LEAST_REST = 1e-3  # of the eigenvalue in `_definite`, where it is not positive
_LEAST_VAR = 1e-6  # of sigma^2


@dataclass(frozen=True, slots=True, eq=False)
class LanguageModelFit(HasHistory):
    """q(theta) of each group, and the prior of groups and words: a `pgmult.variational.Fit`.

    Attributes
    ----------
    method : {"laplace", "delta", "collapsed"}
    mean, var : arrays, ``(num_groups, num_words)``
        Of each log Dirichlet parameter.
    mu, sigma_var : float
        Mean and variance of the prior.
    history : array, ``(num_iterations,)``
        The approximate log evidence, multinomial coefficients left out, before each update of mu
        and sigma^2 and at the result: no bound, for E log Gamma is expanded.
    is_proper : bool array, ``(num_groups, num_words)``
        Whether the curvature at the mean is negative. Where it is not, `var` is made of its
        absolute value, and says little.
    converged : bool
    """

    method: str
    mean: FloatArray
    var: FloatArray
    mu: float
    sigma_var: float
    history: FloatArray
    is_proper: BoolArray
    converged: bool

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
    """L of one group, its gradient and its curvatures."""

    data: GroupCounts
    mu: float
    sigma_var: float

    def level(self, m: FloatArray, s: FloatArray | None) -> float:
        """L without sum log s / 2 and constants; with z summed out and no variances if None."""
        e, data = np.exp(m), self.data
        prior = -0.5 * float(np.sum((m - self.mu) ** 2)) / self.sigma_var
        if s is None:
            return prior + data.evidence(e)
        a, total = e * (1.0 + 0.5 * s), e.sum()
        gammas = gammaln(total) - gammaln(a.sum()) + float(np.sum(gammaln(a) - gammaln(e)))
        curvature = self._likelihood_curvature(e, total)
        return float(
            prior
            - 0.5 * s.sum() / self.sigma_var
            + 0.5 * data.num_documents * (s @ curvature)
            + data.num_documents * gammas
            + data.evidence(a)
        )

    @staticmethod
    def _likelihood_curvature(e: FloatArray, total: float) -> FloatArray:
        """h: second derivatives of log Gamma(E) - sum log Gamma(e)."""
        return np.asarray(
            e * (digamma(total) - digamma(e)) + e**2 * (polygamma(1, total) - polygamma(1, e))
        )

    def expected_log(self, a: FloatArray) -> FloatArray:
        """tau_i = sum_d E log z_di, over documents that have words."""
        by_word, common = self.data.slopes(a)
        return np.asarray(
            by_word + common + self.data.num_documents * (digamma(a) - digamma(a.sum()))
        )

    def collapsed_gradient(self, m: FloatArray) -> FloatArray:
        """Of the log posterior with z summed out."""
        by_word, common = self.data.slopes(np.exp(m))
        return np.asarray(np.exp(m) * (by_word + common) - (m - self.mu) / self.sigma_var)

    def collapsed_curvature(self, m: FloatArray) -> tuple[FloatArray, float]:
        """Of the same: c and w of minus its Hessian, diag(c) - w e e'."""
        e = np.exp(m)
        by_word, common = self.data.slopes(e)
        second, weight = self.data.slopes(e, order=1)
        return 1.0 / self.sigma_var - e * (by_word + common) - e**2 * second, weight

    def curvature(self, m: FloatArray, a: FloatArray) -> FloatArray:
        """Diagonal of minus the Hessian of f at m, q(z_d) = Dirichlet(a + x_d) as it is."""
        e = np.exp(m)
        likelihood = self.data.num_documents * self._likelihood_curvature(e, e.sum())
        return np.asarray(1.0 / self.sigma_var - likelihood - e * self.expected_log(a))

    def split_curvature(self, m: FloatArray) -> tuple[FloatArray, float]:
        """Of minus the Hessian of f, a = exp m: c and w of diag(c) - w e e'."""
        e = np.exp(m)
        weight = self.data.num_documents * float(polygamma(1, e.sum()))
        return self.curvature(m, e) + weight * e**2, weight

    def delta_gradient(self, m: FloatArray, s: FloatArray) -> FloatArray:
        """Of L with respect to m, s held fixed and q(z) at its best."""
        e, D = np.exp(m), self.data.num_documents
        a, total = e * (1.0 + 0.5 * s), e.sum()
        zero, one, two = digamma(total), polygamma(1, total), polygamma(2, total)
        own = e * (zero - digamma(e)) + 2.0 * e**2 * one
        own -= 3.0 * e**2 * polygamma(1, e) + e**3 * polygamma(2, e)
        shared = one * (s @ e) + two * (s @ e**2)
        return np.asarray(
            -(m - self.mu) / self.sigma_var
            + D * e * (zero - digamma(e))
            + 0.5 * D * (s * own + e * shared)
            + a * self.expected_log(a)
        )

    def step(self, m: FloatArray, gradient: FloatArray) -> FloatArray:
        """The gradient over the collapsed curvature, made positive definite."""
        diagonal, rest, weight, _ = _definite(m, *self.collapsed_curvature(m))
        leaning = np.exp(m) / diagonal
        return np.asarray(
            gradient / diagonal + leaning * (weight * float(leaning @ gradient) / rest)
        )


def _definite(
    m: FloatArray, diagonal: FloatArray, weight: float
) -> tuple[FloatArray, float, float, BoolArray]:
    """Make diag(c) - w e e' positive definite: c, the eigenvalue 1 - w e' c^-1 e, w, where it was.

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
    objective: GroupObjective, m: FloatArray, s: FloatArray | None, tolerance: float, steps: int
) -> tuple[FloatArray, bool]:
    """Ascend in m, s held fixed, until a step is short, in standard deviations; whether it was."""
    level = objective.level(m, s)
    for _ in range(steps):
        gradient = objective.collapsed_gradient(m) if s is None else objective.delta_gradient(m, s)
        step = objective.step(m, gradient)
        rise = max(float(gradient @ step), 0.0)
        if math.sqrt(rise) <= tolerance:
            return m, True
        longest = min(1.0, _LONGEST_STEP / float(np.abs(step).max()))
        climb = Climb(level, promise=rise, share=longest)
        for _ in climb:
            trial = m + climb.share[0] * step
            with np.errstate(all="ignore"):  # a step may overflow: it is refused
                value = objective.level(trial, s)
            climb.accept(value)
        if climb.stuck[0]:
            return m, False
        m, level = trial, value
    return m, False


def _fit_group(
    objective: GroupObjective, m: FloatArray, method: str, tolerance: float, steps: int
) -> tuple[FloatArray, FloatArray, BoolArray, float, bool]:
    """Mean, variances, where they are proper, the level and whether it converged."""
    m, converged = _climb(objective, m, None, tolerance, steps)
    if method == "delta":
        s = 1.0 / np.abs(objective.curvature(m, np.exp(m)))
        for _ in range(steps):
            s = _best_var(objective, m, s)
            before = m
            m, _ = _climb(objective, m, s, tolerance, 1)
            converged = bool(np.sqrt(np.sum((m - before) ** 2 / s)) <= tolerance)
            if converged:
                break
        is_proper = objective.curvature(m, np.exp(m) * (1.0 + 0.5 * s)) > 0.0
        level = objective.level(m, s) + 0.5 * float(np.sum(1.0 + np.log(s / objective.sigma_var)))
        return m, s, is_proper, level, converged
    is_collapsed = method == "collapsed"
    curvature = objective.collapsed_curvature(m) if is_collapsed else objective.split_curvature(m)
    diagonal, rest, weight, is_proper = _definite(m, *curvature)
    s = 1.0 / diagonal + np.exp(2.0 * m) / diagonal**2 * (weight / rest)
    log_det = float(np.sum(np.log(diagonal * objective.sigma_var))) + math.log(rest)
    return m, s, is_proper, objective.level(m, None) - 0.5 * log_det, converged


def _best_var(objective: GroupObjective, m: FloatArray, s: FloatArray) -> FloatArray:
    """The variances that maximise L given m, in turns with q(z); kept where there are none."""
    e = np.exp(m)
    for _ in range(100):
        curvature = objective.curvature(m, e * (1.0 + 0.5 * s))
        new = np.where(curvature > 0.0, 1.0 / np.abs(curvature), s)
        change = np.abs(new - s).max() / s.max()
        s = new
        if change <= 1e-13:
            break
    return s


def fit_language_model(
    corpus: Any,
    groups: ArrayLike | None = None,
    *,
    method: str = "laplace",
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
    method : {"laplace", "delta", "collapsed"}
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
    as_choice(method, "method", _METHODS)
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
            _fit_group(GroupObjective(counts, mu, sigma_var), m, method, tolerance, 500)
            for counts, m in zip(data, mean, strict=True)
        ]
        mean, var = np.stack([fit[0] for fit in fits]), np.stack([fit[1] for fit in fits])
        history.append(sum(fit[3] for fit in fits))
        is_still = not learn_prior or has_settled(history, tolerance)
        if is_still or len(history) == max_iterations:
            is_proper = np.stack([fit[2] for fit in fits])
            converged = is_still and all(fit[4] for fit in fits)
            return LanguageModelFit(
                method, mean, var, mu, sigma_var, np.array(history), is_proper, converged
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

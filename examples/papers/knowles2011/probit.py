r"""Multinomial probit regression by variational Bayes, with its predictive probabilities.

Each row has a latent y_nk ~ N(x_n' w_k, 1) for each class, and its label is the class of the
largest. With q(W) q(y) both are conjugate (Girolami and Rogers 2006): the weights of all classes
share one covariance,

    S = (S0^-1 + X' X)^-1,     m_k = S (S0^-1 m0 + X' E y_k),

and y_n is a Gaussian around x_n' m restricted to the cone where its label i is the largest. With
u ~ N(0, 1) and g_j = u + x_n'(m_i - m_j),

    Z_n = E_u prod_{j != i} Phi(g_j),
    E y_nj = x_n' m_j - E_u[phi(g_j) prod_{l != i, j} Phi(g_l)] / Z_n     for j != i,
    L = sum_n log Z_n - K tr(X' X S) / 2 - sum_k KL(q(w_k) || prior).

Rows with several counts have a y for each. The same Z with y's of variance 1 + x' S x is the
predictive probability: one integral over u, and no Monte Carlo.

Alternating these updates converges slowly, as with all augmentation; Anderson's mixing, which
extrapolates from the last steps, speeds it up.

Reference: Girolami and Rogers (2006), Variational Bayesian multinomial probit regression with
Gaussian process priors. Neural Computation 18, 1790-1817.
"""

import math
from typing import Any, Self

import numpy as np
from scipy.special import log_ndtr, logsumexp

from examples.papers.regressions.data import CountedRows, as_counted_rows, require_counted_rows
from examples.papers.regressions.linear import weights_prior
from examples.papers.regressions.mixing import Mixing
from examples.papers.regressions.solver import SiteFit
from pgmult.core.arguments import as_real
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_positive_int
from pgmult.priors.gaussian import MvNormal

_LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)
_STEP = 0.25
_REACH = 8.5
_BLOCK = 4096  # rows


def _win(mean: FloatArray, winner: IntArray) -> tuple[FloatArray, FloatArray]:
    """Log Z, that y_winner is the largest of y ~ N(mean, I), and m_j - E y_j of those that lose.

    Arrays ``(num_rows,)`` and ``(num_rows, K)``, the latter 0 for the winner.
    """
    log_z, falls = np.empty(len(mean)), np.empty_like(mean)
    for start in range(0, len(mean), _BLOCK):
        part = slice(start, start + _BLOCK)
        m, rows = mean[part], np.arange(len(mean[part]))
        lead = m[rows, winner[part]][:, None] - m
        high = np.maximum(_REACH, _REACH - lead.min(axis=1))  # where u must be far out
        num_nodes = math.ceil((high.max() + _REACH) / _STEP) + 1
        step = (high + _REACH) / (num_nodes - 1)
        u = -_REACH + step[:, None] * np.arange(num_nodes)
        g = u[:, None, :] + lead[:, :, None]
        log_below = log_ndtr(g)
        log_below[rows, winner[part]] = 0.0
        log_weight = log_below.sum(axis=1) - 0.5 * u * u - _LOG_ROOT_2PI + np.log(step)[:, None]
        log_z[part] = logsumexp(log_weight, axis=1)
        weight = np.exp(log_weight - log_z[part, None])
        ratio = np.exp(-0.5 * g * g - _LOG_ROOT_2PI - log_below)
        fall = np.einsum("nku,nu->nk", ratio, weight)
        fall[rows, winner[part]] = 0.0
        falls[part] = fall
    return log_z, falls


def probit_probs(mean: FloatArray, var: FloatArray) -> FloatArray:
    """Probabilities of the classes, ``(num_rows, K)``.

    Parameters
    ----------
    mean : array, ``(num_rows, K)``
        Means of independent Gaussian predictors.
    var : array, ``(num_rows,)``
        Their variance, the same for all classes; 0 for known predictors.
    """
    scaled = mean / np.sqrt(1.0 + var)[:, None]
    columns = [_win(scaled, np.full(len(mean), k))[0] for k in range(mean.shape[1])]
    probs = np.exp(np.column_stack(columns))
    return np.asarray(probs / probs.sum(axis=1, keepdims=True))


def fit_probit_regression(
    data: CountedRows,
    prior: MvNormal | None = None,
    *,
    tolerance: float = 1e-5,
    max_iterations: int = 1000,
) -> SiteFit:
    """Variational Bayes for multinomial probit regression.

    Parameters
    ----------
    data : CountedRows
    prior : MvNormal, optional
        Of each class's weights; N(0, I) if left out.
    tolerance : float
        Ends where an iteration would move the means by no more than this, in posterior standard
        deviations.
    max_iterations : int

    Returns
    -------
    SiteFit
        Its objective is a lower bound of the log evidence, and never falls on the way.
    """
    as_real(tolerance, "tolerance", minimum=0.0)
    as_positive_int(max_iterations, "max_iterations")
    size, num_classes = require_counted_rows(data).num_covariates, data.num_categories
    prior = weights_prior(prior, size, "prior")
    row, label = np.nonzero(data.counts)
    weight = data.counts[row, label].astype(np.float64)
    x, P0, m0 = data.covariates[row], prior.precision(), prior.prior_mean
    gram = (weight[:, None] * x).T @ x
    P = P0 + gram
    S = np.linalg.inv(P)
    log_det = float(np.linalg.slogdet(P)[1] - np.linalg.slogdet(P0)[1])
    at = np.arange(len(row))

    def evaluate(m: FloatArray) -> tuple[float, FloatArray]:
        """L, and where q(y) would have the means."""
        psi = x @ m.T
        log_z, falls = _win(psi, label)
        gap = m - m0
        penalty = 0.5 * float(np.einsum("ki,ij,kj->", gap, P0, gap))
        y = psi - falls
        y[at, label] += falls.sum(axis=1)
        target = (P0 @ m0 + (weight[:, None] * y).T @ x) @ S
        return float(weight @ log_z) - 0.5 * num_classes * log_det - penalty, target

    m = np.tile(m0, (num_classes, 1))
    level, target = evaluate(m)
    precisions = np.tile(P, (1, num_classes, 1, 1))
    mixing, converged = Mixing(), False
    for iteration in range(1, max_iterations + 1):  # noqa: B007
        ways = m[None], precisions, target[None], precisions
        proposed = mixing.propose(*ways, tolerance=tolerance)
        if proposed is None:
            converged = True
            break
        new_m = proposed[0][0]
        new_level, new_target = evaluate(new_m)
        if new_level >= level:
            m, level, target = new_m, new_level, new_target
        else:
            m = target
            level, target = evaluate(m)
    cov = np.tile(S, (num_classes, 1, 1))
    return SiteFit("probit", m, cov, np.array([level]), True, converged, iteration)


class MultinomialProbit:
    """What the tables ask of a classifier, with N(0, 1) for all weights and intercepts.

    After `fit` its attributes are those of `MultinomialRegression`.
    """

    joint_cov_ = None  # classes are independent under q

    def fit(self, x: FloatArray, y: Any) -> Self:
        """From covariates ``(num_rows, num_covariates)`` and labels."""
        self.classes_, labels = np.unique(y, return_inverse=True)
        self._found = fit_probit_regression(as_counted_rows(_design(x), labels))
        self.coef_, self.intercept_ = self._found.mean[:, :-1], self._found.mean[:, -1]
        self.coef_cov_, self.log_evidence_ = self._found.cov, self._found.objective
        return self

    def predict_proba(self, x: FloatArray) -> FloatArray:
        """Averaged over the posterior, ``(num_rows, num_classes)``."""
        design = _design(x)
        var = np.einsum("nd,nd->n", design @ self._found.cov[0], design)
        return probit_probs(design @ self._found.mean.T, var)


def _design(x: FloatArray) -> FloatArray:
    return np.column_stack([x, np.ones(len(x))])

"""Likelihoods of counts of categories, by K - 1 predictors a row: see `compiled.categories`."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import digamma, expit, gammaln, polygamma

from pgmult.core.typing import FloatArray
from pgmult.latent.compiled import categories

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
_RULE = _NODES, _WEIGHTS / _WEIGHTS.sum()
_POINT = np.zeros(1), np.ones(1)  # of predictors without variance
_POOLED = 30  # rounds of a search
_LEAST_KEPT = 0.3  # share of the information given tables: less, and searches overshoot
_FEW = 20  # categories, up to which curvatures are averaged exactly


def helmert(num: int) -> FloatArray:
    """Orthonormal contrasts of `num` categories, ``(num, num - 1)``: their columns add up to 0."""
    scales = categories.helmert_scales(num - 1)
    out = np.triu(np.ones((num, num - 1))) - np.diag(np.arange(1.0, num), -1)[:, :-1]
    return np.asarray(out * scales)


@dataclass(frozen=True, slots=True, eq=False)
class MultinomialRows:
    """Rows of a softmax, which scatter (Dirichlet-multinomial counts) if they have a size.

    Attributes
    ----------
    counts : float array, ``(num_rows, K)``
    size : float
        The concentration phi.
    """

    counts: FloatArray
    size: float = math.inf

    def total(self, psi: FloatArray) -> float:
        """Log likelihood of all rows, without multinomial coefficients."""
        return float(categories.rows_total(psi, self.counts, self.size))

    def slope(self, psi: FloatArray) -> FloatArray:
        """First derivatives, ``(num_rows, K - 1)``."""
        return np.asarray(categories.rows_slope(psi, self.counts, self.size))

    def informative(self, shares: FloatArray) -> FloatArray:
        """Information on the logarithm of each share, roughly the expected one if rows scatter."""
        totals = self.counts.sum(axis=1, keepdims=True)
        if math.isinf(self.size):
            return np.asarray(totals * shares)
        return _information(self.size, totals, shares)

    def curvature(
        self, points: Iterable[tuple[float, FloatArray]], factors: FloatArray | float = 1.0
    ) -> FloatArray:
        """Mean curvatures at weighted points, ``(num_rows, K - 1, K - 1)``.

        They are H' (diag d - d d' / sum d) H with the information d; of many categories roughly.
        With factors ``(num_rows, K)``, d is so many times the information.
        """
        num = self.counts.shape[1]
        contrasts = helmert(num)
        shares = [(weight, categories.shares_of(psi)) for weight, psi in points]
        if num > _FEW:
            shares = [(1.0, np.asarray(sum(weight * each for weight, each in shares)))]
        mean, outer = np.zeros(self.counts.shape), np.zeros((len(self.counts), num - 1, num - 1))
        for weight, probs in shares:
            d = factors * self.informative(probs)
            across = d @ contrasts
            unit = across / np.maximum(d.sum(axis=1, keepdims=True), 1e-300)
            mean, outer = mean + weight * d, outer + weight * across[:, :, None] * unit[:, None]
        square = np.triu((mean @ contrasts)[:, :, None] * categories.helmert_scales(num - 1), 1)
        square = square + square.transpose(0, 2, 1)
        np.einsum("ncc->nc", square)[...] = mean @ contrasts**2
        return np.asarray(square - outer)


def pooled_shares(counts: FloatArray, size: float) -> FloatArray:
    """Most likely shares of Dirichlet-multinomial rows that all have the same, ``(K,)``.

    They are proportional to expected numbers of tables (Minka 2000, "Estimating a Dirichlet
    distribution").
    """
    shares = (counts.sum(axis=0) + 0.5) / (counts.sum() + 0.5 * counts.shape[1])
    for _ in range(_POOLED):
        alpha = np.maximum(size * shares, 1e-100)
        tables = np.sum(alpha * (digamma(counts + alpha) - digamma(alpha)), axis=0) + 0.5
        shares = tables / tables.sum()
    return np.asarray(shares)


def _information(size: float, totals: FloatArray, shares: FloatArray) -> FloatArray:
    """Roughly the expected information of Dirichlet-multinomial rows on each log share.

    Given numbers of tables (Antoniak 1974) rows are multinomial: the information is their mean,
    which is known, less their variance given a count, at the mean of those counts that are not 0.
    """
    alpha = np.maximum(size * shares, 1e-100)  # whose square is a number
    tables = alpha * (digamma(size + totals) - digamma(size))
    present = np.maximum(-np.expm1(-alpha * np.log1p(totals / size)), 1e-200)
    count = np.maximum(totals * shares / present, 1.0)
    var = alpha * (digamma(count + alpha) - digamma(alpha))
    var += alpha**2 * (polygamma(1, count + alpha) - polygamma(1, alpha))
    return np.asarray(np.maximum(tables - present * var, _LEAST_KEPT * tables))


@dataclass(frozen=True, slots=True, eq=False)
class BetaBinomialSite:
    """Beta-binomial rows: their log odds have a beta distribution's mean (Skellam 1948).

    Attributes
    ----------
    successes, trials : float arrays, ``(num_rows,)``
    size : float
        The concentration phi: the sum of the beta distribution's parameters.
    """

    successes: FloatArray
    trials: FloatArray
    size: float

    def value(self, psi: FloatArray) -> FloatArray:
        """Log likelihood of each row."""
        a, b = (np.maximum(self.size * expit(x), 1e-290) for x in (psi, -psi))
        y, n, phi = self.successes, self.trials, self.size
        rising = gammaln(y + a) - gammaln(a) + gammaln(n - y + b) - gammaln(b)
        return np.asarray(rising + gammaln(phi) - gammaln(n + phi))

    def total(self, psi: FloatArray) -> float:
        """Log likelihood of all rows, without binomial coefficients."""
        return float(categories.beta_total(psi, self.successes, self.trials, self.size))

    def slope(self, psi: FloatArray) -> FloatArray:
        """First derivative of each row's log likelihood."""
        return np.asarray(categories.beta_slope(psi, self.successes, self.trials, self.size))

    def expect(self, mean: FloatArray, var: FloatArray) -> tuple[Any, Any, Any]:
        """Expected values and slopes, and half the curvature: minus the expected information."""
        value, slope, half = np.zeros((3, len(mean)))
        for node, weight in zip(*(_RULE if var.any() else _POINT), strict=True):
            psi = mean + node * np.sqrt(var)
            shares = expit(np.column_stack([psi, -psi]))
            first, second = _information(self.size, self.trials[:, None], shares).T
            value += weight * self.value(psi)
            slope += weight * self.slope(psi)
            half -= 0.5 * weight * first * second / np.maximum(first + second, 1e-300)
        return value, slope, half

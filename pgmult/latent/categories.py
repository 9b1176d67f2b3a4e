"""Likelihoods of counts of categories, by K - 1 predictors a row: see `compiled.categories`."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import digamma, expit, gammaln, polygamma

from pgmult.core.typing import FloatArray
from pgmult.latent.compiled import categories

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
_RULE = _NODES, _WEIGHTS / _WEIGHTS.sum()
_FEW = 20  # categories, up to which curvatures are averaged exactly


def helmert(num: int) -> FloatArray:
    """Orthonormal contrasts of `num` categories, ``(num, num - 1)``: their columns add up to 0."""
    scales = categories.helmert_scales(num - 1)
    out = np.triu(np.ones((num, num - 1))) - np.diag(np.arange(1.0, num), -1)[:, :-1]
    return np.asarray(out * scales)


@dataclass(frozen=True, slots=True, eq=False)
class MultinomialRows:
    """Rows of a softmax.

    Attributes
    ----------
    counts : float array, ``(num_rows, K)``
    """

    counts: FloatArray

    def total(self, psi: FloatArray) -> float:
        """Log likelihood of all rows, without multinomial coefficients."""
        return float(categories.multinomial_total(psi, self.counts))

    def slope(self, psi: FloatArray) -> FloatArray:
        """First derivatives, ``(num_rows, K - 1)``."""
        return np.asarray(categories.multinomial_slope(psi, self.counts))

    def informative(self, shares: FloatArray) -> FloatArray:
        """Information on the logarithm of each share, those of a row adding up to its total."""
        return np.asarray(self.counts.sum(axis=1, keepdims=True) * shares)

    def curvature(self, points: Iterable[tuple[float, FloatArray]]) -> FloatArray:
        """Mean curvatures at weighted points, ``(num_rows, K - 1, K - 1)``."""
        contrasts = helmert(self.counts.shape[1])
        few = len(contrasts) <= _FEW
        mean, outer = (
            np.zeros(self.counts.shape),
            np.zeros((len(self.counts), *[few * len(contrasts)] * 2)),
        )
        for weight, psi in points:
            d = self.informative(categories.shares_of(psi))
            mean += weight * d
            if few:
                unit = d / np.maximum(d.sum(axis=1, keepdims=True), 1e-300)
                outer += weight * d[:, :, None] * unit[:, None]
        if not few:
            unit = mean / np.maximum(mean.sum(axis=1, keepdims=True), 1e-300)
            across, beside = mean @ contrasts, unit @ contrasts
            square = (contrasts.T * mean[:, None]) @ contrasts
            return np.asarray(square - across[:, :, None] * beside[:, None])
        return np.asarray(
            contrasts.T @ (mean[:, :, None] * np.eye(len(contrasts)) - outer) @ contrasts
        )


@dataclass(frozen=True, slots=True, eq=False)
class DirichletRows(MultinomialRows):
    """Rows of a softmax that scatter: Dirichlet-multinomial counts.

    Attributes
    ----------
    size : float
        The concentration phi.
    """

    size: float

    def total(self, psi: FloatArray) -> float:
        """Log likelihood of all rows, without multinomial coefficients."""
        return float(categories.dirichlet_total(psi, self.counts, self.size))

    def slope(self, psi: FloatArray) -> FloatArray:
        """First derivatives, ``(num_rows, K - 1)``."""
        return np.asarray(categories.dirichlet_slope(psi, self.counts, self.size))

    def informative(self, shares: FloatArray) -> FloatArray:
        """Roughly the expected information on the logarithm of each share."""
        return _information(self.size, self.counts.sum(axis=1, keepdims=True), shares)


def _information(size: float, totals: FloatArray, shares: FloatArray) -> FloatArray:
    """Roughly the expected information of Dirichlet-multinomial rows on each log share.

    Given numbers of tables (Antoniak 1974) rows are multinomial: the information is their mean,
    which is known, less their variance given a count, at the mean of those counts that are not 0.
    """
    alpha = np.maximum(size * shares, 1e-200)
    tables = alpha * (digamma(size + totals) - digamma(size))
    present = np.maximum(-np.expm1(-alpha * np.log1p(totals / size)), 1e-200)
    count = np.maximum(totals * shares / present, 1.0)
    var = alpha * (digamma(count + alpha) - digamma(alpha))
    var += alpha**2 * (polygamma(1, count + alpha) - polygamma(1, alpha))
    return np.asarray(np.maximum(tables - present * var, 1e-3 * tables))


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
        y, n = self.successes, self.trials
        return np.asarray(
            gammaln(y + a) - gammaln(a) + gammaln(n - y + b) - gammaln(b)
            + gammaln(self.size) - gammaln(n + self.size)
        )  # fmt: skip

    def total(self, psi: FloatArray) -> float:
        """Log likelihood of all rows, without binomial coefficients."""
        return float(categories.beta_total(psi, self.successes, self.trials, self.size))

    def slope(self, psi: FloatArray) -> FloatArray:
        """First derivative of each row's log likelihood."""
        return np.asarray(categories.beta_slope(psi, self.successes, self.trials, self.size))

    def expect(self, mean: FloatArray, var: FloatArray) -> tuple[Any, Any, Any]:
        """Expected values and slopes, and half the curvature: minus the expected information."""
        value, slope, half = np.zeros((3, len(mean)))
        for node, weight in zip(*_RULE, strict=True):
            psi = mean + node * np.sqrt(var)
            shares = expit(np.column_stack([psi, -psi]))
            first, second = _information(self.size, self.trials[:, None], shares).T
            value += weight * self.value(psi)
            slope += weight * self.slope(psi)
            half -= 0.5 * weight * first * second / np.maximum(first + second, 1e-300)
        return value, slope, half

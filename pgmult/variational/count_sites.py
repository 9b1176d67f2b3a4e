"""Sites of log-linear regressions of counts: Poisson and negative binomial.

Counts y_n with rates exp psi_n, psi ~ N(m, v)::

    Poisson             f(psi) = y psi - exp psi               E f = y m - exp(m + v / 2)
    negative binomial   f(psi) = y psi - (y + r) log(r + exp psi) + const

The Poisson's expectations have closed forms. The negative binomial of size r has mean mu = exp psi
and variance mu + mu^2 / r, and is a binomial in disguise: y successes among y + r trials, at log
odds psi - log r. So its expectations are `logistic_expectations`, and a Pólya-gamma variable of
shape y + r makes it Gaussian. Values have the normalisers of y in them, so that L of one family and
size compares with another's.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import gammaln

from pgmult.core.arguments import as_real
from pgmult.core.typing import FloatArray
from pgmult.core.validate import as_nonnegative
from pgmult.links.logistic import logistic_expectations
from pgmult.variational.sites import Expectation

__all__ = ["NegativeBinomialLaplace", "NegativeBinomialRows", "PoissonLaplace", "PoissonRows"]

_LARGEST = 700.0  # exponent


def _check(site: "PoissonRows | NegativeBinomialRows") -> None:
    y = as_nonnegative(site.counts, "counts")
    times = np.ones(y.shape) if site.weights is None else as_nonnegative(site.weights, "weights")
    if y.ndim != 1 or y.shape != times.shape:
        raise ValueError(
            f"counts must be a row of numbers with as many weights, got shapes {y.shape} and"
            f" {times.shape}"
        )
    object.__setattr__(site, "counts", y)
    object.__setattr__(site, "weights", times)


@dataclass(frozen=True, slots=True, eq=False)
class PoissonRows:
    """Counts with rates exp psi: the expectation itself.

    Attributes
    ----------
    counts : array, ``(num_rows,)``
    weights : array, ``(num_rows,)``, optional
        How many times each row counts.
    """

    counts: FloatArray
    weights: FloatArray | None = None

    method: ClassVar[str] = "quadrature"
    is_bound: ClassVar[bool] = True
    at_mode: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check(self)

    def expect(self, mean: FloatArray, var: FloatArray) -> Expectation:
        """F, dF/dm and dF/dv."""
        rate = np.exp(np.minimum(mean + 0.5 * var, _LARGEST))
        value = self.counts * mean - rate - gammaln(self.counts + 1.0)
        times = np.asarray(self.weights)
        return times * value, times * (self.counts - rate), -0.5 * times * rate


class PoissonLaplace(PoissonRows):
    """Second-order expansion of a Poisson row at the mode of the posterior."""

    method: ClassVar[str] = "laplace"
    is_bound: ClassVar[bool] = False
    at_mode: ClassVar[bool] = True

    def expect(self, mean: FloatArray, var: FloatArray) -> Expectation:
        """F, dF/dm and dF/dv, whatever `var` is."""
        return PoissonRows.expect(self, mean, np.zeros_like(mean))


@dataclass(frozen=True, slots=True, eq=False)
class NegativeBinomialRows:
    """Counts with means exp psi and variances mean + mean^2 / size: the expectation itself.

    Attributes
    ----------
    counts : array, ``(num_rows,)``
    size : float
        r; the larger, the nearer to a Poisson.
    weights : array, ``(num_rows,)``, optional
        How many times each row counts.
    """

    counts: FloatArray
    size: float
    weights: FloatArray | None = None

    method: ClassVar[str] = "quadrature"
    is_bound: ClassVar[bool] = True
    at_mode: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check(self)
        as_real(self.size, "size", above=0.0)

    def expect(self, mean: FloatArray, var: FloatArray) -> Expectation:
        """F, dF/dm and dF/dv."""
        y, r, times = self.counts, self.size, np.asarray(self.weights)
        odds = mean - np.log(r)
        rest, share, spread = logistic_expectations(odds, var)
        value = y * odds - (y + r) * rest + gammaln(y + r) - gammaln(r) - gammaln(y + 1.0)
        return times * value, times * (y - (y + r) * share), -0.5 * times * (y + r) * spread


class NegativeBinomialLaplace(NegativeBinomialRows):
    """Second-order expansion of a negative binomial row at the mode of the posterior."""

    method: ClassVar[str] = "laplace"
    is_bound: ClassVar[bool] = False
    at_mode: ClassVar[bool] = True

    def expect(self, mean: FloatArray, var: FloatArray) -> Expectation:
        """F, dF/dm and dF/dv, whatever `var` is."""
        return NegativeBinomialRows.expect(self, mean, np.zeros_like(mean))

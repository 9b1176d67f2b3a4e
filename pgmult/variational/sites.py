r"""Sites: log likelihoods of rows, averaged over Gaussian predictors.

A row with predictor psi has log likelihood f(psi). Under q, psi is Gaussian with mean m and
variance v, and a *site* stands in for the expectation of f by some F(m, v), with its derivatives:
`pgmult.variational.fit_sites` and the moves of `pgmult.latent` do the rest. Here F is the
expectation itself, to 12 digits: L is a lower bound of the log evidence, and q the Gaussian nearest
to the posterior in the sense of KL(q || posterior).

For counts of events E f is known in closed form or by quadrature (`CountSite`)::

    Poisson             f(psi) = y psi - exp psi               E f = y m - exp(m + v / 2)
    negative binomial   f(psi) = y psi - (y + r) log(r + exp psi) + const

A negative binomial of size r has mean mu = exp psi and variance mu + mu^2 / r. It is equivalent to
a binomial: y successes among y + r trials at log odds psi - log r.

The likelihood may be your own: see `Site`.

References: Polson, Scott and Windle (2013); Knowles and Minka (2011), Non-conjugate variational
message passing for multinomial and binary regression.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, runtime_checkable

import numpy as np
from scipy.special import gammaln

from pgmult.compiled import scalar_rows
from pgmult.core.arguments import as_real
from pgmult.core.parameters import Checked
from pgmult.core.typing import FloatArray
from pgmult.core.validate import as_nonnegative
from pgmult.links.logistic import logistic_expectations

Expectation = tuple[FloatArray, FloatArray, FloatArray]  # F, dF/dm, dF/dv

_LARGEST = 700.0  # exponent


@runtime_checkable
class Site(Protocol):
    """An approximation F(m, v) of E f(psi), psi ~ N(m, v), for each row.

    To use a likelihood of your own, write `expect`, which returns three numbers per row: F, dF/dm
    and dF/dv. Where F is the expectation itself, of an f whose derivatives are known,

        dF/dm = E f'(psi),    dF/dv = E f''(psi) / 2,

    so a site needs three functions. f must be log concave (f'' <= 0), or curvatures could cancel
    the prior's. `expect` must take any means, and variances from 0 up: the search begins at 0, and
    samplers take F(psi, 0) for f(psi).
    """

    def expect(self, mean: FloatArray, var: FloatArray) -> Expectation:
        """F, dF/dm and dF/dv (not above 0), a row each, at means and variances of the predictor."""


# --------------------------------------------------------------------------- binomial rows


@dataclass(frozen=True, slots=True, eq=False)
class LogisticSite(Checked):
    """Binomial rows: f(psi) = successes psi - trials log(1 + exp psi).

    Attributes
    ----------
    successes, trials : arrays, ``(num_rows,)`` or ``(num_rows, num_columns)``
        Counts or expected counts; a row of 0 trials says nothing.
    """

    successes: Annotated[FloatArray, as_nonnegative]
    trials: Annotated[FloatArray, as_nonnegative]

    def _complete(self) -> None:
        shape, trials = self.successes.shape, self.trials
        if shape != trials.shape or len(shape) not in (1, 2) or (self.successes > trials).any():
            got = f"shapes {shape} and {trials.shape}"
            raise ValueError(f"successes must be rows of numbers not above trials, got {got}")

    def value(self, psi: FloatArray) -> FloatArray:
        """Log likelihood of each row."""
        log1p_exp = np.maximum(psi, 0.0) + np.log1p(np.exp(-np.abs(psi)))
        return np.asarray(self.successes * psi - self.trials * log1p_exp)

    def total(self, psi: FloatArray) -> Any:
        """Log likelihood of all rows: a number, or one per column."""
        if psi.ndim == 2:
            return scalar_rows.binomial_totals(psi, self.successes, self.trials)
        return float(scalar_rows.binomial_total(psi, self.successes, self.trials))

    def slope(self, psi: FloatArray) -> FloatArray:
        """First derivative of each row's log likelihood."""
        rows = map(np.ravel, (psi, self.successes, self.trials))
        return np.asarray(scalar_rows.binomial_slope(*rows)).reshape(psi.shape)

    def expect(self, mean: FloatArray, var: FloatArray) -> Expectation:
        """F, dF/dm and dF/dv."""
        rest, d_mean, spread = logistic_expectations(mean, var)
        x, n = self.successes, self.trials
        return x * mean - n * rest, x - n * d_mean, -0.5 * n * spread


# --------------------------------------------------------------------------- counts of events


def _as_size(value: object, name: str) -> float:
    is_poisson = isinstance(value, float) and value == math.inf
    return math.inf if is_poisson else as_real(value, name, above=0.0)


@dataclass(frozen=True, slots=True, eq=False)
class CountSite(Checked):
    """Counts of events with means exp psi: the expectation itself, the normalisers of y included.

    So L of one family and size compares with another's.

    Attributes
    ----------
    counts : array, ``(num_rows,)``
    size : float
        r of a negative binomial, whose variance is mean + mean^2 / r; of a Poisson, inf.
    weights : array, ``(num_rows,)``, optional
        How many times each row counts.
    """

    counts: Annotated[FloatArray, as_nonnegative]
    size: Annotated[float, _as_size] = math.inf
    weights: Annotated[FloatArray, as_nonnegative] | None = None

    def _complete(self) -> None:
        y = self.counts
        times = np.ones(y.shape) if self.weights is None else self.weights
        if y.ndim != 1 or y.shape != times.shape:
            raise ValueError(f"counts must be a row, as weights, got {y.shape} and {times.shape}")
        self._set(weights=times)

    def value(self, psi: FloatArray) -> FloatArray:
        """Log likelihood of each row."""
        return self.expect(psi, np.zeros_like(psi))[0]

    def total(self, psi: FloatArray) -> float:
        """Log likelihood of all rows, up to a constant."""
        y, r, times = self.counts, self.size, np.asarray(self.weights)
        if math.isinf(r):
            return float(scalar_rows.poisson_total(psi, y, times))
        return float(scalar_rows.binomial_total(psi - math.log(r), times * y, times * (y + r)))

    def slope(self, psi: FloatArray) -> FloatArray:
        """First derivative of each row's log likelihood."""
        y, r, times = self.counts, self.size, np.asarray(self.weights)
        if math.isinf(r):
            return np.asarray(scalar_rows.poisson_slope(psi, y, times))
        psi = psi - math.log(r)
        return np.asarray(scalar_rows.binomial_slope(psi, times * y, times * (y + r)))

    def expect(self, mean: FloatArray, var: FloatArray) -> Expectation:
        """F, dF/dm and dF/dv."""
        y, r, times = self.counts, self.size, np.asarray(self.weights)
        if math.isinf(r):
            rate = np.exp(np.minimum(mean + 0.5 * var, _LARGEST))
            value = y * mean - rate - gammaln(y + 1.0)
            return times * value, times * (y - rate), -0.5 * times * rate
        odds = mean - np.log(r)
        rest, share, spread = logistic_expectations(odds, var)
        value = y * odds - (y + r) * rest + gammaln(y + r) - gammaln(r) - gammaln(y + 1.0)
        return times * value, times * (y - (y + r) * share), -0.5 * times * (y + r) * spread

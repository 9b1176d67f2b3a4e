r"""Sites: log likelihoods of rows, averaged over Gaussian predictors.

A row with predictor psi has log likelihood f(psi). Under q, psi is Gaussian with mean m and
variance v, and a *site* stands in for the expectation of f by some F(m, v), with its derivatives.
That is all in which Laplace's method, the delta method, bounds and quadrature differ:
`pgmult.variational.fits` does the rest.

===============  =================================================  =====================
site             F(m, v)                                            L is
===============  =================================================  =====================
AtMode           f(m): the covariance is that at the mode           Laplace's evidence
Delta            f(m) + f''(m) v / 2                                a Taylor approximation
JaakkolaJordan   min over xi of a quadratic bound: xi^2 = m^2 + v   a lower bound
Quadrature       E f itself, to 12 digits                           a lower bound, the best
===============  =================================================  =====================

Binary and binomial rows have all of these. For counts of events E f is known in closed form or by
quadrature (`CountSite`)::

    Poisson             f(psi) = y psi - exp psi               E f = y m - exp(m + v / 2)
    negative binomial   f(psi) = y psi - (y + r) log(r + exp psi) + const

A negative binomial of size r has mean mu = exp psi and variance mu + mu^2 / r. It is equivalent to
a binomial: y successes among y + r trials at log odds psi - log r.

The likelihood may be your own: see `Site`.

References: Wang and Blei (2013), Variational inference in nonconjugate models, sections 3 and 4.2;
Jaakkola and Jordan (2000), Bayesian parameter estimation via variational methods; Polson, Scott
and Windle (2013); Knowles and Minka (2011), Non-conjugate variational message passing for
multinomial and binary regression.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from scipy.special import expit, gammaln

from pgmult.compiled import scalar_rows
from pgmult.core.arguments import as_choice, as_real
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

    Attributes
    ----------
    method : str
        Its name, which its fits have too.
    is_bound : bool
        Whether F(m, v) <= E f(psi) everywhere, so that L is a lower bound of the log evidence.
    at_mode : bool
        Whether F looks at v = 0 only (Laplace): L then has the expansion at the mode added.
    """

    at_mode: ClassVar[bool]

    @property
    def method(self) -> str:
        """Its name."""

    @property
    def is_bound(self) -> bool:
        """Whether L is a lower bound."""

    def expect(self, mean: Any, var: Any) -> tuple[Any, Any, Any]:
        """F, dF/dm and dF/dv (not above 0), a row each, at means and variances of the predictor."""


@dataclass(frozen=True, slots=True, eq=False)
class AtMode:
    """Second-order expansion of any site's rows at the mode of the posterior: Laplace's method.

    Attributes
    ----------
    site : Site
        With F(m, 0) = f(m), as all here have.
    """

    site: Site

    method: ClassVar[str] = "laplace"
    is_bound: ClassVar[bool] = False
    at_mode: ClassVar[bool] = True

    def expect(self, mean: FloatArray, var: FloatArray) -> Expectation:
        """F, dF/dm and dF/dv, whatever `var` is."""
        return self.site.expect(mean, np.zeros_like(var))


# --------------------------------------------------------------------------- binomial rows


def _log1p_exp(x: FloatArray) -> FloatArray:
    return np.asarray(np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x))))


@dataclass(frozen=True, slots=True, eq=False)
class LogisticSite:
    """Binomial rows: f(psi) = successes psi - trials log(1 + exp psi).

    "delta" expands f at the mean of q (the multivariate delta method): good while predictors have
    variances of order one; its L is not a bound, and is too large where rows are certain and
    variances large. "jaakkola_jordan" is their quadratic bound at its best xi, which is also mean
    field with a Pólya-gamma variable a row: -2 dF/dv is its expectation. "quadrature" is E f
    itself, so that q is the Gaussian nearest to the posterior in the sense of KL(q || posterior):
    it converges where the others do not, as with separable labels and a vague prior.

    Attributes
    ----------
    successes, trials : arrays, ``(num_rows,)`` or ``(num_rows, num_columns)``
        Counts or expected counts; a row of 0 trials says nothing.
    method : {"delta", "jaakkola_jordan", "quadrature"}
    """

    successes: FloatArray
    trials: FloatArray
    method: str = "quadrature"

    at_mode: ClassVar[bool] = False

    def __post_init__(self) -> None:
        successes = as_nonnegative(self.successes, "successes")
        trials = as_nonnegative(self.trials, "trials")
        as_choice(self.method, "method", ("delta", "jaakkola_jordan", "quadrature"))
        apart = successes.shape != trials.shape
        if apart or successes.ndim not in (1, 2) or (successes > trials).any():
            raise ValueError(
                "successes must be rows of numbers not above trials, got shapes"
                f" {successes.shape} and {trials.shape}"
            )
        object.__setattr__(self, "successes", successes)
        object.__setattr__(self, "trials", trials)

    @property
    def is_bound(self) -> bool:
        """Whether L is a lower bound."""
        return self.method != "delta"

    def value(self, psi: FloatArray) -> FloatArray:
        """Log likelihood of each row."""
        return self.successes * psi - self.trials * _log1p_exp(psi)

    def total(self, psi: FloatArray) -> Any:
        """Log likelihood of all rows: a number, or one per column."""
        if psi.ndim == 2:
            return scalar_rows.binomial_totals(psi, self.successes, self.trials)
        return float(scalar_rows.binomial_total(psi, self.successes, self.trials))

    def slope(self, psi: FloatArray) -> FloatArray:
        """First derivative of each row's log likelihood."""
        flat = (np.ravel(a) for a in (psi, self.successes, self.trials))
        return np.asarray(scalar_rows.binomial_slope(*flat)).reshape(psi.shape)

    def expect(self, mean: FloatArray, var: FloatArray) -> Expectation:
        """F, dF/dm and dF/dv."""
        if self.method == "delta":
            return _delta(self.successes, self.trials, mean, var)
        if self.method == "quadrature":
            rest, d_mean, spread = logistic_expectations(mean, var)
            d_var = 0.5 * spread
        else:
            rest, d_mean, d_var = jaakkola_jordan(mean, var)
        return (
            self.successes * mean - self.trials * rest,
            self.successes - self.trials * d_mean,
            -self.trials * d_var,
        )


def _delta(
    successes: FloatArray, trials: FloatArray, mean: FloatArray, var: FloatArray
) -> Expectation:
    """The slope has the third derivative of f, too."""
    share = expit(mean)
    half_curvature = -0.5 * trials * share * (1.0 - share)
    value = successes * mean - trials * _log1p_exp(mean) + half_curvature * var
    d_mean = successes - trials * share + half_curvature * (1.0 - 2.0 * share) * var
    return value, d_mean, half_curvature


def jaakkola_jordan(mean: FloatArray, var: FloatArray) -> Expectation:
    """Their bound of E log(1 + exp psi) at its best xi, with its derivatives."""
    xi = np.sqrt(mean * mean + var)
    omega = half_tanh(xi)
    return 0.5 * (mean + xi) + np.log1p(np.exp(-xi)), 0.5 + omega * mean, 0.5 * omega


def half_tanh(t: FloatArray) -> FloatArray:
    """tanh(t / 2) / (2 t), t >= 0: the mean of PG(1, t)."""
    away = np.maximum(t, 1e-3)
    return np.where(t < 1e-3, 0.25 - t * t / 48.0, np.tanh(0.5 * away) / (2.0 * away))


# --------------------------------------------------------------------------- counts of events


@dataclass(frozen=True, slots=True, eq=False)
class CountSite:
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

    counts: FloatArray
    size: float = math.inf
    weights: FloatArray | None = None

    method: ClassVar[str] = "quadrature"
    is_bound: ClassVar[bool] = True
    at_mode: ClassVar[bool] = False

    def __post_init__(self) -> None:
        y = as_nonnegative(self.counts, "counts")
        given = self.weights
        times = np.ones(y.shape) if given is None else as_nonnegative(given, "weights")
        if y.ndim != 1 or y.shape != times.shape:
            raise ValueError(
                f"counts must be a row of numbers with as many weights, got shapes {y.shape} and"
                f" {times.shape}"
            )
        if not (isinstance(self.size, float) and self.size == math.inf):
            as_real(self.size, "size", above=0.0)
        object.__setattr__(self, "counts", y)
        object.__setattr__(self, "weights", times)

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

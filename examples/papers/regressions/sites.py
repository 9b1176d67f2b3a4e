r"""Sites of several approximations: Laplace's, the delta method's, a bound and quadrature.

They differ in the F(m, v) that stands in for E f(psi), psi ~ N(m, v), and in nothing else:

===============  =================================================  =====================
site             F(m, v)                                            L is
===============  =================================================  =====================
AtMode           f(m): the covariance is that at the mode           Laplace's evidence
Delta            f(m) + f''(m) v / 2                                a Taylor approximation
JaakkolaJordan   min over xi of a quadratic bound: xi^2 = m^2 + v   a lower bound
Quadrature       E f itself, to 12 digits                           a lower bound, the best
===============  =================================================  =====================

References: Wang and Blei (2013), Variational inference in nonconjugate models, sections 3 and 4.2;
Jaakkola and Jordan (2000), Bayesian parameter estimation via variational methods; Polson, Scott
and Windle (2013).
"""

from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from scipy.special import expit

from pgmult import variational
from pgmult.core.arguments import as_choice
from pgmult.core.typing import FloatArray
from pgmult.variational.sites import Expectation


@runtime_checkable
class Site(variational.Site, Protocol):
    """A `pgmult.variational.Site` that says what it is, as the solver of these papers asks.

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


@dataclass(frozen=True, slots=True, eq=False)
class LogisticSite(variational.LogisticSite):
    """Binomial rows: f(psi) = successes psi - trials log(1 + exp psi).

    "delta" expands f at the mean of q (the multivariate delta method): good while predictors have
    variances of order one; its L is not a bound, and is too large where rows are certain and
    variances large. "jaakkola_jordan" is their quadratic bound at its best xi, which is also mean
    field with a Pólya-gamma variable a row: -2 dF/dv is its expectation. "quadrature" is E f
    itself, so that q is the Gaussian nearest to the posterior in the sense of KL(q || posterior):
    it converges where the others do not, as with separable labels and a vague prior.
    """

    method: str = "quadrature"

    at_mode: ClassVar[bool] = False

    def __post_init__(self) -> None:
        variational.LogisticSite.__post_init__(self)
        as_choice(self.method, "method", ("delta", "jaakkola_jordan", "quadrature"))

    @property
    def is_bound(self) -> bool:
        """Whether L is a lower bound."""
        return self.method != "delta"

    def expect(self, mean: FloatArray, var: FloatArray) -> Expectation:
        """F, dF/dm and dF/dv."""
        if self.method == "delta":
            return _delta(self.successes, self.trials, mean, var)
        if self.method == "quadrature":
            return variational.LogisticSite.expect(self, mean, var)
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
    value = successes * mean - trials * np.logaddexp(0.0, mean) + half_curvature * var
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

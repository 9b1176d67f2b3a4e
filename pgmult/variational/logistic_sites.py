"""Sites of logistic regression: Laplace, delta, Jaakkola and Jordan, quadrature."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit

from pgmult import polya_gamma
from pgmult.core.typing import FloatArray
from pgmult.core.validate import as_nonnegative
from pgmult.links.logistic import logistic_expectations
from pgmult.variational.sites import Expectation, Site

__all__ = ["LOGISTIC_SITES", "Delta", "JaakkolaJordan", "Laplace", "Quadrature"]


# --------------------------------------------------------------------------- logistic sites


def _log1p_exp(x: FloatArray) -> FloatArray:
    return np.asarray(np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x))))


@dataclass(frozen=True, slots=True, eq=False)
class LogisticRows:
    """Binomial rows: f(psi) = successes psi - trials log(1 + exp psi).

    Attributes
    ----------
    successes, trials : arrays, ``(num_rows,)``
        Counts or expected counts; a row of 0 trials says nothing.
    """

    successes: FloatArray
    trials: FloatArray

    at_mode: ClassVar[bool] = False

    def __post_init__(self) -> None:
        successes = as_nonnegative(self.successes, "successes")
        trials = as_nonnegative(self.trials, "trials")
        if successes.ndim != 1 or successes.shape != trials.shape or (successes > trials).any():
            raise ValueError(
                "successes must be a row of numbers not above trials, got shapes"
                f" {successes.shape} and {trials.shape}"
            )
        object.__setattr__(self, "successes", successes)
        object.__setattr__(self, "trials", trials)


class Laplace(LogisticRows):
    """Second-order expansion of a logistic row at the mode of the posterior."""

    method: ClassVar[str] = "laplace"
    is_bound: ClassVar[bool] = False
    at_mode: ClassVar[bool] = True

    def expect(self, mean: FloatArray, var: FloatArray) -> Expectation:
        """F, dF/dm and dF/dv, whatever `var` is."""
        share = expit(mean)
        value = self.successes * mean - self.trials * _log1p_exp(mean)
        return (
            value,
            self.successes - self.trials * share,
            -0.5 * self.trials * share * (1.0 - share),
        )


class Delta(LogisticRows):
    """Second-order expansion of a logistic row at the mean of q: the multivariate delta method.

    Good while predictors have variances of order one; its L is no bound, and rises without reason
    where rows are certain and variances large.
    """

    method: ClassVar[str] = "delta"
    is_bound: ClassVar[bool] = False

    def expect(self, mean: FloatArray, var: FloatArray) -> Expectation:
        """F, dF/dm and dF/dv: dF/dm has the third derivative of f, dF/dv half its second."""
        share = expit(mean)
        half_curvature = -0.5 * self.trials * share * (1.0 - share)
        value = self.successes * mean - self.trials * _log1p_exp(mean) + half_curvature * var
        d_mean = self.successes - self.trials * share
        return value, d_mean + half_curvature * (1.0 - 2.0 * share) * var, half_curvature


class JaakkolaJordan(LogisticRows):
    """The quadratic bound of Jaakkola and Jordan at its best xi, xi**2 = m**2 + v.

    The same as mean field with a Pólya-gamma variable a row: -2 dF/dv is its expectation.
    """

    method: ClassVar[str] = "jaakkola_jordan"
    is_bound: ClassVar[bool] = True

    def expect(self, mean: FloatArray, var: FloatArray) -> Expectation:
        """F, dF/dm and dF/dv."""
        xi = np.sqrt(mean * mean + var)
        omega = polya_gamma.mean(self.trials, xi)
        kappa = self.successes - 0.5 * self.trials
        value = kappa * mean - self.trials * (_log1p_exp(-xi) + 0.5 * xi)
        return value, kappa - omega * mean, -0.5 * omega


class Quadrature(LogisticRows):
    """E f(psi) itself, by quadrature: q is then the Gaussian nearest to the posterior.

    Nearest in the sense of KL(q || posterior). Sure where the others are not: with separable labels
    and a vague prior, variances of predictors are large, Taylor expansions and the quadratic bound
    far off, and their iterations slow.
    """

    method: ClassVar[str] = "quadrature"
    is_bound: ClassVar[bool] = True

    def expect(self, mean: FloatArray, var: FloatArray) -> Expectation:
        """F, dF/dm and dF/dv."""
        rest, share, spread = logistic_expectations(mean, var)
        return (
            self.successes * mean - self.trials * rest,
            self.successes - self.trials * share,
            -0.5 * self.trials * spread,
        )


LOGISTIC_SITES: dict[str, Callable[[FloatArray, FloatArray], Site]] = {
    site.method: site for site in (Laplace, Delta, JaakkolaJordan, Quadrature)
}

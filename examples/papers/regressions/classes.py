"""Softmax regressions: predictors of all classes for a row, and expected log likelihoods of counts.

`ClassRows` is the design of one predictor a class, `SoftmaxSite` the expected log likelihood by an
approximation of log sum exp, both for `examples.papers.regressions.solver`; `SoftplusSite` is that
of two classes, whose predictor is one number.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from examples.papers.regressions.bounds import Approximation
from examples.papers.regressions.designs import Rows
from examples.papers.regressions.sites import AtMode, LogisticSite, Site
from pgmult.core.arguments import as_choice
from pgmult.core.typing import FloatArray, IntArray
from pgmult.variational.sites import Expectation


@dataclass(frozen=True, slots=True, eq=False)
class ClassRows:
    """Rows with a predictor for each class, whose weights are independent under q.

    Predictors have means and variances ``(num_rows, num_classes)``.

    Attributes
    ----------
    covariates : array, ``(num_rows, num_weights)``
    num_classes : int
    """

    covariates: FloatArray
    num_classes: int

    @property
    def shape(self) -> tuple[int, int]:
        """Number of classes, and of weights in each."""
        return self.num_classes, self.covariates.shape[1]

    def project(self, mean: FloatArray) -> FloatArray:
        """Means of the predictors."""
        return np.asarray(self.covariates @ mean.T)

    def project_cov(self, cov: FloatArray) -> FloatArray:
        """Variances of the predictors."""
        return predictor_vars(self.covariates, cov)

    def pull(self, d_mean: FloatArray) -> FloatArray:
        """Gradient with respect to the weights."""
        return np.asarray(d_mean.T @ self.covariates)

    def gram(self, d_var: FloatArray) -> FloatArray:
        """Minus twice the derivatives with respect to the covariances of the weights."""
        x = self.covariates
        return np.asarray((x.T * (-2.0 * d_var.T)[:, None, :]) @ x)

    def total(self, values: FloatArray) -> FloatArray:
        """The sum over the rows, ``(1,)``, since every row sees all classes."""
        return np.array([values.sum()])


class SoftmaxRows(ClassRows):
    """`ClassRows` of a softmax, which sees differences of predictors only."""

    def centre(self, mean: FloatArray, prior_mean: FloatArray) -> FloatArray:
        """The same differences; what the classes have in common is where the prior wants it."""
        return np.asarray(mean + (prior_mean - mean).mean(axis=0))


def predictor_vars(x: Any, covs: FloatArray) -> FloatArray:
    """x_n' S_k x_n, ``(num_rows, num_laws)``: variances of predictors under several laws."""
    design = Rows(x)
    return np.maximum(np.column_stack([design.project_cov(S[None]) for S in covs]), 0.0)


class _Approximated:
    """Rows whose expectations are those of an approximation."""

    __slots__ = ()
    approximation: Approximation

    at_mode: ClassVar[bool] = False

    @property
    def method(self) -> str:
        """The approximation's name."""
        return self.approximation.name

    @property
    def is_bound(self) -> bool:
        """Whether values are nowhere above E log p."""
        return self.approximation.is_bound


@dataclass(frozen=True, slots=True, eq=False)
class SoftplusSite(_Approximated):
    """Binomial rows: f(psi) = successes psi - trials log(1 + exp psi).

    Attributes
    ----------
    successes, trials : arrays, ``(num_rows,)``
    approximation : Approximation
        One of `examples.papers.regressions.bounds.SOFTPLUS`.
    """

    successes: FloatArray
    trials: FloatArray
    approximation: Approximation

    def expect(self, mean: FloatArray, var: FloatArray) -> Expectation:
        """F, dF/dm and dF/dv, ``(num_rows,)`` each."""
        rest, d_mean, d_var = self.approximation.expect(mean, var)
        return (
            self.successes * mean - self.trials * rest,
            self.successes - self.trials * d_mean,
            -self.trials * d_var,
        )


@dataclass(frozen=True, slots=True, eq=False)
class SoftmaxSite(_Approximated):
    """Multinomial rows: f(psi) = sum_k y_k psi_k - N log sum exp psi.

    Attributes
    ----------
    counts : array, ``(num_rows, num_classes)``
    approximation : Approximation
        Of the log sum exp: of `LOG_SUM_EXP` for independent predictors,
        or of `DENSE_LOG_SUM_EXP` where `var` is ``(num_rows, num_classes, num_classes)``.
    """

    counts: FloatArray | IntArray
    approximation: Approximation

    def expect(self, mean: FloatArray, var: FloatArray) -> Expectation:
        """F, ``(num_rows,)``, dF/dm and dF/dv."""
        totals = self.counts.sum(axis=1)
        rest, d_mean, d_var = self.approximation.expect(mean, var)
        each = totals.reshape(-1, *(1,) * (d_var.ndim - 1))
        value = (self.counts * mean).sum(axis=1) - totals * rest
        return value, self.counts - totals[:, None] * d_mean, -each * d_var


LOGISTIC_METHODS = ("laplace", "delta", "jaakkola_jordan", "quadrature")


def logistic_site(successes: FloatArray, trials: FloatArray, method: str) -> Site:
    """Binomial rows by one of `LOGISTIC_METHODS`."""
    as_choice(method, "method", LOGISTIC_METHODS)
    if method == "laplace":
        return AtMode(LogisticSite(successes, trials, "delta"))
    return LogisticSite(successes, trials, method)

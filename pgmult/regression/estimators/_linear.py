"""What the faces of regressions share: the intercept, the prior and the moments of the weights."""

import warnings

import numpy as np

from pgmult.core.arguments import as_flag, as_real
from pgmult.core.typing import FloatArray
from pgmult.core.validate import place_of
from pgmult.priors.gaussian import MvNormal

__all__ = ["LinearPredictor", "as_variance", "moments"]


def moments(draws: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Means and covariances of the weights of each output, draws ``(draws, outputs, weights)``."""
    mean = draws.mean(axis=0)
    away = draws - mean
    return mean, np.einsum("ski,skj->kij", away, away) / max(len(draws) - 1, 1)


_LARGEST = 1e30  # of X: from there on squares of variances of predictors overflow
_ABSURD = 1e6  # variance of a predictor: log odds of a thousand either way


def as_variance(value: float, name: str) -> float:
    """Of weights, in a range where precisions can be inverted."""
    return as_real(value, name, minimum=1e-100, maximum=1e100)


class LinearPredictor:
    """Weights of the columns of X and, last, of an intercept if there is one."""

    method: str
    fit_intercept: bool
    weight_var: float
    intercept_var: float

    def _design(self, X: FloatArray) -> FloatArray:
        """The covariates, and a column of ones after them for the intercept."""
        bad = np.abs(X) > _LARGEST
        if bad.any():
            raise ValueError(
                f"X must be at most {_LARGEST:g} in size, got {X[bad][0]:g}{place_of(bad)}"
                " (bring columns to scales near 1)"
            )
        with_intercept = as_flag(self.fit_intercept, "fit_intercept")
        return np.column_stack([X, np.ones(len(X))]) if with_intercept else X

    def _prior(self, size: int) -> MvNormal:
        """Independent weights with the variances that the estimator was given."""
        variances = np.full(size, as_variance(self.weight_var, "weight_var"))
        if self.fit_intercept:
            variances[-1] = as_variance(self.intercept_var, "intercept_var")
        return MvNormal(np.zeros(size), np.diag(variances))

    def _warn_of_scales(self, X: FloatArray, weight_var: float) -> None:
        """Say so where the prior of the coefficients means that all probabilities are 0 or 1."""
        typical = weight_var * float(np.median((X * X).sum(axis=1)))
        if typical > _ABSURD:
            warnings.warn(
                f"the prior gives the predictor of a typical row a variance of {typical:.2g}: it"
                " expects all probabilities to be 0 or 1 (bring columns to scales near 1, as"
                " StandardScaler does, or give smaller variances)",
                UserWarning,
                stacklevel=3,
            )

    def _set_weights(self, mean: FloatArray, cov: FloatArray) -> None:
        """`coef_`, `intercept_` and `coef_cov_` from means and covariances, a row an output."""
        self._weights = mean
        self.coef_ = mean[:, :-1] if self.fit_intercept else mean
        self.intercept_ = mean[:, -1] if self.fit_intercept else np.zeros(len(mean))
        self.coef_cov_ = cov

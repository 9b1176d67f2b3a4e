"""What the faces of regressions share: the intercept, the prior and the moments of the weights."""

import numpy as np

from pgmult.core.typing import FloatArray
from pgmult.core.validate import as_positive
from pgmult.priors.gaussian import MvNormal

__all__ = ["LinearPredictor", "moments"]


def moments(draws: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Means and covariances of the weights of each output, draws ``(draws, outputs, weights)``."""
    mean = draws.mean(axis=0)
    away = draws - mean
    return mean, np.einsum("ski,skj->kij", away, away) / max(len(draws) - 1, 1)


class LinearPredictor:
    """Weights of the columns of X and, last, of an intercept if there is one."""

    fit_intercept: bool
    weight_var: float
    intercept_var: float

    def _design(self, X: FloatArray) -> FloatArray:
        """The covariates, and a column of ones after them for the intercept."""
        return np.column_stack([X, np.ones(len(X))]) if self.fit_intercept else X

    def _prior(self, size: int) -> MvNormal:
        """Independent weights with the variances that the estimator was given."""
        variances = np.full(size, float(as_positive(self.weight_var, "weight_var")))
        if self.fit_intercept:
            variances[-1] = float(as_positive(self.intercept_var, "intercept_var"))
        return MvNormal(np.zeros(size), np.diag(variances))

    def _set_weights(self, mean: FloatArray, cov: FloatArray) -> None:
        """`coef_`, `intercept_` and `coef_cov_` from means and covariances, a row an output."""
        self._weights = mean
        self.coef_ = mean[:, :-1] if self.fit_intercept else mean
        self.intercept_ = mean[:, -1] if self.fit_intercept else np.zeros(len(mean))
        self.coef_cov_ = cov

"""The paper's multinomial regressions by any of their methods, as a classifier for its tables.

Weights of all classes, or of the sticks, and intercepts are N(0, 1).
"""

from typing import Any, Self

import numpy as np

import pgmult
from examples.papers.regressions.data import as_counted_rows
from examples.papers.regressions.multinomial import StickBreakingRegression
from examples.papers.regressions.multinomial_fits import (
    fit_softmax_regression,
    fit_stick_breaking_regression,
    softmax_probs,
    stick_probs,
)
from pgmult.core.typing import FloatArray

STICKS = {"sticks": "quadrature", "mean_field": "jaakkola_jordan"}
_LIMITS: dict[str, Any] = {"tolerance": 1e-5, "max_iterations": 1000}


class MultinomialRegression:
    """What the tables ask of a classifier.

    After `fit` it has ``classes_``; ``coef_``, ``intercept_`` and ``coef_cov_``, moments of each
    output's weights, the intercept last; ``joint_cov_``, of all outputs' weights, or None; and
    ``log_evidence_``, as the method bounds or approximates it.

    Parameters
    ----------
    method : str
        One of `fit_softmax_regression`; "sticks" and "mean_field", by quadrature and by Jaakkola
        and Jordan's bound; or "gibbs", draws of the sticks' weights.
    covariance : {"class", "full"}
        Of a softmax.
    """

    def __init__(self, method: str, covariance: Any):
        self.method, self.covariance = method, "full" if method == "laplace" else covariance

    def fit(self, x: FloatArray, y: Any) -> Self:
        """From covariates ``(num_rows, num_covariates)`` and labels."""
        self.classes_, labels = np.unique(y, return_inverse=True)
        data = as_counted_rows(_design(x), labels)
        self._order, self.joint_cov_ = data.order, None
        if self.method == "gibbs":
            posterior = pgmult.sample(
                StickBreakingRegression(), data, draws=500, tune=100, chains=1, random_seed=0,
                progressbar=False,
            )  # fmt: skip
            self._draws = posterior.stack("weights")
            mean = self._draws.mean(axis=0)
            away = self._draws - mean
            self.coef_cov_ = np.einsum("ski,skj->kij", away, away) / len(away)
            self.log_evidence_ = float("nan")
        else:
            if self.method in STICKS:
                found = fit_stick_breaking_regression(data, method=STICKS[self.method], **_LIMITS)
            else:
                found = fit_softmax_regression(
                    data, method=self.method, covariance=self.covariance, **_LIMITS
                )
            self._found, mean = found, found.mean
            self.coef_cov_, self.joint_cov_ = found.cov, found.joint_cov
            self.log_evidence_ = found.objective
        self.coef_, self.intercept_ = mean[:, :-1], mean[:, -1]
        return self

    def predict_proba(self, x: FloatArray) -> FloatArray:
        """Averaged over the posterior, ``(num_rows, num_classes)``."""
        design = _design(x)
        if self.method == "gibbs":
            link = pgmult.StickBreaking(self._order)
            probs = [link.probs(design @ weights.T) for weights in self._draws]
            return np.asarray(np.mean(probs, axis=0))
        if self.method in STICKS:
            return stick_probs(self._found, design, self._order)
        return softmax_probs(self._found, design)


def _design(x: FloatArray) -> FloatArray:
    return np.column_stack([x, np.ones(len(x))])

"""scikit-learn face of Bayesian multinomial regression, by every method of the library.

>>> import numpy as np
>>> from pgmult.regression import MultinomialClassifier
>>> rng = np.random.default_rng(0)
>>> X = rng.standard_normal((200, 2))
>>> y = (X @ [[0.0, 2.0, -1.0], [1.0, 0.0, -2.0]] + rng.gumbel(size=(200, 3))).argmax(axis=1)
>>> fitted = MultinomialClassifier().fit(X, y)
>>> fitted.coef_.shape, fitted.coef_cov_.shape, fitted.predict_proba(X[:2]).shape
((3, 2), (3, 3, 3), (2, 3))
"""

import warnings
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from pgmult.core.arguments import as_choice
from pgmult.core.sklearn import as_seed
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_counts
from pgmult.links import LogisticNormal, StickBreaking
from pgmult.priors.gaussian import MvNormal
from pgmult.regression.data import CountedRows, as_counted_rows
from pgmult.regression.estimators._linear import LinearPredictor, moments
from pgmult.regression.fits.multinomial import (
    fit_softmax_regression,
    fit_stick_breaking_regression,
    softmax_probs,
    stick_probs,
)
from pgmult.regression.fits.probit import fit_probit_regression, probit_probs
from pgmult.regression.models.softmax import SoftmaxRegression
from pgmult.regression.models.stick_breaking import StickBreakingRegression
from pgmult.sampling.diagnostics import ConvergenceWarning
from pgmult.sampling.driver import sample
from pgmult.sampling.posterior import Posterior
from pgmult.variational.messages import RegressionFit

__all__ = ["MultinomialClassifier"]

_SOFTMAX = (
    "tilted", "log", "quadratic", "bohning", "adaptive", "taylor", "quadrature", "laplace",
)  # fmt: skip
_STICKS = {"sticks": "quadrature", "mean_field": "jaakkola_jordan"}
_METHODS = (*_SOFTMAX, "slice", "probit", *_STICKS, "gibbs")
_DRAWS = 64  # in a block of predictions


class MultinomialClassifier(LinearPredictor, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Multinomial regression with Gaussian priors, a posterior of the weights and honest averages.

    The prior of the coefficients is N(0, weight_var) each, and that of the intercepts
    N(0, intercept_var). Columns are used as they are: bring them to scales where that prior says
    what you mean. The prior is proper, so separable labels and constant columns have a posterior.

    Parameters
    ----------
    method : str
        How outcomes depend on the weights, and how their posterior is found.

        Softmax, weights for every class: "tilted" (the default), "log", "quadratic", "bohning" or
        "adaptive" maximise a bound of the evidence, "taylor" and "laplace" expand, "quadrature" has
        no error but its Gaussian's (see `pgmult.variational.bounds`). "slice" samples the posterior
        itself, around such a Gaussian.
        Probit: "probit", by variational Bayes.
        Sticks, weights for every class but the last to break: "gibbs" samples the posterior itself,
        "sticks" is its best Gaussian (quadrature), "mean_field" one by Pólya-gamma variables.
    covariance : {"full", "class"}
        With a softmax, whether one Gaussian has all classes' weights, O((n_classes n_weights)^3),
        or each class has its own, independent of the others. "laplace" is full whatever this says,
        and "quadrature", "log" and "quadratic", which look at variances only, are of classes.
    weight_var, intercept_var : float
        Variances of the prior.
    fit_intercept : bool
    order : "frequency", "given" or sequence of int
        In which classes break the sticks: see `pgmult.regression.as_counted_rows`.
    tol, max_iter : float, int
        Of the approximations.
    draws, tune, chains : int
        Of "slice" and "gibbs".
    random_state : int, numpy.random.RandomState or None
        Of "slice" and "gibbs".

    Attributes
    ----------
    classes_ : array, ``(n_classes,)``
        The labels; the numbers of the columns where y was counts.
    coef_ : array, ``(n_outputs, n_features)``
        Posterior means; an output is a class, or a stick.
    intercept_ : array, ``(n_outputs,)``
    coef_cov_ : array, ``(n_outputs, n_weights, n_weights)``
        Posterior covariance of each output's coefficients and, last, the intercept.
    joint_cov_ : array, ``(n_outputs * n_weights, n_outputs * n_weights)``, or None
        Of all outputs', with ``covariance="full"`` and methods that see correlations; else None.
    stick_classes_ : array, ``(n_classes,)``
        The classes in the order of the sticks.
    log_evidence_ : float
        Log p(y), as the method bounds or approximates it; nan with "slice" and "gibbs".
    posterior_ : Posterior or None
        With "slice" and "gibbs".
    n_iter_ : int
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn
    """

    def __init__(
        self,
        method: str = "tilted",
        *,
        covariance: Literal["full", "class"] = "full",
        weight_var: float = 1.0,
        intercept_var: float = 100.0,
        fit_intercept: bool = True,
        order: str | Sequence[int] | IntArray = "frequency",
        tol: float = 1e-5,
        max_iter: int = 1000,
        draws: int = 1000,
        tune: int = 200,
        chains: int = 2,
        random_state: Any = None,
    ):
        self.method = method
        self.covariance = covariance
        self.weight_var = weight_var
        self.intercept_var = intercept_var
        self.fit_intercept = fit_intercept
        self.order = order
        self.tol = tol
        self.max_iter = max_iter
        self.draws = draws
        self.tune = tune
        self.chains = chains
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> "MultinomialClassifier":
        """Fit the weights.

        Parameters
        ----------
        X : array, ``(n_samples, n_features)``
        y : array, ``(n_samples,)`` or ``(n_samples, n_classes)``
            Labels, or counts of the classes.

        Raises
        ------
        ValueError
            If there is one class only, a count is not a non-negative integer, or an argument of
            the estimator is not one of those listed.
        """
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True)
        as_choice(self.method, "method", _METHODS)
        as_choice(self.covariance, "covariance", ("full", "class"))
        x = self._design(X)
        data = as_counted_rows(x, self._counts(y), order=self.order)
        prior = self._prior(x.shape[1])
        self._warn_of_scales(X, self.weight_var)
        self._order = data.order
        self.stick_classes_ = self.classes_[data.order]
        self.posterior_: Posterior | None = None
        if self.method in ("slice", "gibbs"):
            fit = self._sample(data, prior)
        else:
            fit = self._approximate(data, prior)
        self._fit = fit
        self._set_weights(fit.mean, fit.cov)
        self.joint_cov_ = fit.joint_cov
        self.log_evidence_, self.n_iter_ = fit.objective, fit.num_iterations
        if not fit.converged:
            warnings.warn(
                f"method {self.method!r} had not converged after {self.n_iter_} iterations: raise"
                " max_iter, or bring columns to smaller scales",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the classes averaged over the posterior, ``(n_samples, n_classes)``.

        Parameters
        ----------
        X : array, ``(n_samples, n_features)``
        """
        check_is_fitted(self)
        x = self._design(validate_data(self, X, dtype=np.float64, reset=False))
        if self.posterior_ is not None:
            return self._average_draws(self.posterior_["weights"], x)
        if self.method in _STICKS:
            return stick_probs(self._fit, x, self._order)
        if self.method == "probit":
            var = np.einsum("nd,nd->n", x @ self._fit.cov[0], x)
            return probit_probs(x @ self._fit.mean.T, var)
        return softmax_probs(self._fit, x)

    def predict(self, X: Any) -> Any:
        """The most probable class of each row.

        Parameters
        ----------
        X : array, ``(n_samples, n_features)``
        """
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of labels, or of counts, that are of the class predicted for their row.

        Parameters
        ----------
        X : array, ``(n_samples, n_features)``
        y : array, ``(n_samples,)`` or ``(n_samples, n_classes)``
            Labels or counts, as in `fit`.
        sample_weight : array, ``(n_samples,)``, optional
        """
        if np.ndim(y) < 2 or np.shape(y)[1] == 1:
            return float(super().score(X, y, sample_weight))
        counts = as_counts(y, "y")
        weight = np.ones(len(counts)) if sample_weight is None else np.asarray(sample_weight)
        if counts.shape[1] != len(self.classes_):
            raise ValueError(
                f"y must have a column for each of {len(self.classes_)} classes, got shape"
                f" {counts.shape}"
            )
        best = self.predict_proba(X).argmax(axis=1)
        hits = counts[np.arange(len(counts)), best]
        return float(weight @ hits / (weight @ counts.sum(axis=1)))

    def _counts(self, y: Any) -> IntArray:
        """Counts of the classes, which are remembered."""
        if np.ndim(y) == 2 and np.shape(y)[1] > 1:
            counts = as_counts(y, "y")
            self.classes_ = np.arange(counts.shape[1])
            return counts
        labels = column_or_1d(y, warn=True)
        check_classification_targets(labels)
        self.classes_, index = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                "y must have at least two classes, got one class only:"
                f" {self.classes_[0]!r} in every row"
            )
        return np.eye(len(self.classes_), dtype=np.int64)[index]

    def _approximate(self, data: CountedRows, prior: MvNormal) -> RegressionFit:
        limits: dict[str, Any] = {"tolerance": self.tol, "max_iterations": self.max_iter}
        if self.method in _STICKS:
            site = _STICKS[self.method]
            return fit_stick_breaking_regression(data, prior, method=site, **limits)
        if self.method == "probit":
            return fit_probit_regression(data, prior, **limits)
        only: dict[str, Literal["full", "class"]] = {"laplace": "full", "quadrature": "class"}
        covariance = only.get(self.method, self.covariance)
        return fit_softmax_regression(
            data, prior, method=self.method, covariance=covariance, **limits
        )

    def _sample(self, data: CountedRows, prior: MvNormal) -> RegressionFit:
        """Moments of the draws, which are kept in `posterior_`."""
        seed = as_seed(self.random_state)
        model: Any = StickBreakingRegression(prior)
        if self.method == "slice":
            model = SoftmaxRegression(prior)
        posterior = sample(
            model, data, draws=self.draws, tune=self.tune,
            chains=self.chains, random_seed=seed, progressbar=False,
        )  # fmt: skip
        self.posterior_ = posterior
        draws = posterior["weights"].reshape(-1, *posterior["weights"].shape[2:])
        mean, cov = moments(draws)
        nan, num_sweeps = float("nan"), self.draws + self.tune
        return RegressionFit(self.method, mean, cov, None, nan, False, True, num_sweeps)

    def _average_draws(self, weights: FloatArray, x: FloatArray) -> FloatArray:
        draws = weights.reshape(-1, *weights.shape[2:])
        link = LogisticNormal() if self.method == "slice" else StickBreaking(self._order)
        total = np.zeros((len(x), len(self.classes_)))
        for start in range(0, len(draws), _DRAWS):
            psi = np.einsum("nd,skd->snk", x, draws[start : start + _DRAWS])
            total += link.probs(psi).sum(axis=0)
        return total / len(draws)

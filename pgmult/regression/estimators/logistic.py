"""scikit-learn faces of Bayesian logistic regression, of one set of rows and of groups.

>>> import numpy as np
>>> from pgmult.regression import LogisticClassifier
>>> rng = np.random.default_rng(0)
>>> X = rng.standard_normal((200, 3))
>>> y = X[:, 0] - 0.5 * X[:, 2] + rng.logistic(size=200) > 0.0
>>> fitted = LogisticClassifier().fit(X, y)
>>> fitted.coef_.shape, fitted.coef_cov_.shape, fitted.predict_proba(X[:2]).shape
((1, 3), (1, 4, 4), (2, 2))
"""

import warnings
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from pgmult.core.arguments import as_choice, as_real, brief
from pgmult.core.sklearn import as_seed
from pgmult.core.typing import FloatArray
from pgmult.links.logistic import logistic_expectations
from pgmult.priors.gaussian import MvNormal
from pgmult.regression.data import as_labelled_rows
from pgmult.regression.estimators._linear import LinearPredictor, as_variance, moments
from pgmult.regression.fits.logistic import fit_grouped_logistic_regression, fit_logistic_regression
from pgmult.regression.models.logistic import GroupedLogisticRegression, LogisticRegression
from pgmult.sampling.diagnostics import ConvergenceWarning
from pgmult.sampling.driver import sample
from pgmult.variational.fixed_points import predictor_vars
from pgmult.variational.logistic_sites import LOGISTIC_SITES

__all__ = ["GroupedLogisticClassifier", "LogisticClassifier"]


@runtime_checkable
class _Table(Protocol):
    """A DataFrame, of whichever package."""

    columns: Any

    def drop(self, *, columns: list[Any]) -> "_Table": ...

    def __getitem__(self, name: Any) -> Any: ...


Method = Literal["laplace", "delta", "jaakkola_jordan", "quadrature", "gibbs"]


class _Logistic(LinearPredictor, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What the two faces share: labels, and averages over q."""

    average: str
    random_state: Any
    n_iter_: int
    multilabel_: bool = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _warn_unless(self, converged: bool) -> None:
        if not converged:
            warnings.warn(
                f"method {self.method!r} had not converged after {self.n_iter_} iterations: try"
                " method='quadrature', or columns on smaller scales",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _binary(self, y: Any) -> FloatArray:
        """0 or 1 for the two classes, which are remembered."""
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if kind != "binary":
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {kind}."
            )
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y must have two classes, got one class only: {self.classes_[0]!r} in every row"
            )
        return np.asarray(labels, dtype=np.float64)

    def _average(self, mean: FloatArray, var: FloatArray) -> FloatArray:
        """E sigma(psi), psi ~ N(mean, var), as `average` says."""
        if self.average == "plug_in":
            return np.asarray(expit(mean))
        if self.average == "probit":
            return np.asarray(expit(mean / np.sqrt(1.0 + np.pi / 8.0 * var)))
        as_choice(self.average, "average", ("quadrature", "probit", "plug_in"))
        return logistic_expectations(mean, var)[1]

    def predict(self, X: Any) -> Any:
        """The more probable class of each row; with labels ``(n, L)``, 0 or 1 for each of them.

        Parameters
        ----------
        X : array, ``(n_samples, n_features)``
        """
        probs = self.predict_proba(X)
        if self.multilabel_:
            return (probs > 0.5).astype(np.int64)
        return self.classes_[(probs[:, 1] > 0.5).astype(np.int64)]

    def decision_function(self, X: Any) -> FloatArray:
        """Log odds of `predict_proba`, ``(n_samples,)`` or ``(n_samples, n_labels)``.

        Parameters
        ----------
        X : array, ``(n_samples, n_features)``
        """
        probs = self.predict_proba(X)
        if not self.multilabel_:
            probs = probs[:, 1]
        return np.asarray(logit(np.clip(probs, 1e-300, 1.0 - 1e-16)))

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities, averaged over the posterior."""
        raise NotImplementedError


class LogisticClassifier(_Logistic):
    """Logistic regression with a Gaussian prior, a posterior of the weights and honest averages.

    The prior of the coefficients is N(0, weight_var) each, and that of the intercept, which is a
    weight like the others, N(0, intercept_var). Columns are used as they are: bring them to scales
    where that prior says what you mean. The prior is proper, so separable labels, constant columns
    and more columns than rows have a posterior too.

    Parameters
    ----------
    method : {"quadrature", "delta", "laplace", "jaakkola_jordan", "gibbs"}
        How the posterior is found: see `pgmult.variational.sites`. "quadrature" is the best
        Gaussian and never fails, "delta" nearly as good and twice as fast where predictors are not
        very uncertain, "laplace" the fastest; "gibbs" samples the posterior itself.
    weight_var, intercept_var : float
        Variances of the prior.
    fit_intercept : bool
    average : {"quadrature", "probit", "plug_in"}
        How `predict_proba` averages over a Gaussian posterior: to 12 digits, by MacKay's
        approximation, or not at all. With "gibbs" it averages over the draws.
    tol, max_iter : float, int
        Of the approximations: see `pgmult.variational.sites.fit_sites`.
    draws, tune, chains : int
        Of "gibbs".
    random_state : int, numpy.random.RandomState or None
        Of "gibbs".

    Attributes
    ----------
    coef_ : array, ``(n_outputs, n_features)``
        Posterior means; one output, or one for each label.
    intercept_ : array, ``(n_outputs,)``
    coef_cov_ : array, ``(n_outputs, n_weights, n_weights)``
        Posterior covariance of the coefficients and, last, the intercept where there is one.
    log_evidence_ : array, ``(n_outputs,)``
        Log p(y), as the method bounds or approximates it; nan with "gibbs".
    posterior_ : list of Posterior, or None
        With "gibbs", one for each output.
    classes_ : array
        The two classes, or with labels ``(n, L)`` the numbers of the labels.
    multilabel_ : bool
    n_iter_ : int
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn
    """

    def __init__(
        self,
        method: Method = "quadrature",
        *,
        weight_var: float = 1.0,
        intercept_var: float = 100.0,
        fit_intercept: bool = True,
        average: Literal["quadrature", "probit", "plug_in"] = "quadrature",
        tol: float = 1e-6,
        max_iter: int = 500,
        draws: int = 1000,
        tune: int = 200,
        chains: int = 2,
        random_state: Any = None,
    ):
        self.method = method
        self.weight_var = weight_var
        self.intercept_var = intercept_var
        self.fit_intercept = fit_intercept
        self.average = average
        self.tol = tol
        self.max_iter = max_iter
        self.draws = draws
        self.tune = tune
        self.chains = chains
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> "LogisticClassifier":
        """Fit the weights.

        Parameters
        ----------
        X : array, ``(n_samples, n_features)``
        y : array, ``(n_samples,)`` or ``(n_samples, n_labels)``
            Two classes; or several labels of 0 and 1, each fitted by itself, where one that is the
            same in every row is left to the prior.

        Raises
        ------
        ValueError
            If y has one class only, or more than two.
        """
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True)
        self.multilabel_ = y.ndim == 2 and y.shape[1] > 1
        if y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        if self.multilabel_:
            if not ((y == 0) | (y == 1)).all():
                raise ValueError("y must be 0 or 1 everywhere where it has several columns")
            labels, self.classes_ = y.astype(np.float64), np.arange(y.shape[1])
        else:
            labels = self._binary(y)[:, None]
        as_choice(self.method, "method", (*LOGISTIC_SITES, "gibbs"))
        x = self._design(X)
        model = LogisticRegression(self._prior(x.shape[1]))
        self._warn_of_scales(X, self.weight_var)
        outputs = [as_labelled_rows(x, column) for column in labels.T]
        self.posterior_ = None
        if self.method == "gibbs":
            seed = as_seed(self.random_state)
            self.posterior_ = [
                sample(
                    model, data, draws=self.draws, tune=self.tune, chains=self.chains,
                    random_seed=seed + i, progressbar=False,
                )
                for i, data in enumerate(outputs)
            ]  # fmt: skip
            draws = [p["weights"].reshape(-1, x.shape[1]) for p in self.posterior_]
            self._set_weights(*moments(np.stack(draws, axis=1)))
            self.log_evidence_ = np.full(len(outputs), np.nan)
            self.n_iter_ = self.draws + self.tune
            return self
        fits = [
            fit_logistic_regression(
                model, data, method=self.method, tolerance=self.tol, max_iterations=self.max_iter
            )
            for data in outputs
        ]
        self._set_weights(
            np.concatenate([fit.mean for fit in fits]), np.concatenate([fit.cov for fit in fits])
        )
        self.log_evidence_ = np.array([fit.objective for fit in fits])
        self.n_iter_ = max(fit.num_iterations for fit in fits)
        self._warn_unless(all(fit.converged for fit in fits))
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities averaged over the posterior.

        Parameters
        ----------
        X : array, ``(n_samples, n_features)``

        Returns
        -------
        array, ``(n_samples, 2)`` or ``(n_samples, n_labels)``
            Of the two classes; or that each of several labels is 1.
        """
        check_is_fitted(self)
        x = self._design(validate_data(self, X, dtype=np.float64, reset=False))
        if self.posterior_ is not None:
            draws = [p["weights"].reshape(-1, x.shape[1]) for p in self.posterior_]
            probs = np.column_stack([_mean_share(x, d) for d in draws])
        else:
            probs = self._average(x @ self._weights.T, predictor_vars(x, self.coef_cov_))
        return probs if self.multilabel_ else np.column_stack([1.0 - probs[:, 0], probs[:, 0]])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


class GroupedLogisticClassifier(_Logistic):
    """Logistic regressions of groups whose weights have a common, learned, Gaussian law.

    Weights of group g, the intercept's last, are N(mu, Sigma); mu is N(0, mean_var I), and Sigma
    inverse Wishart around spread_var I, worth about spread_strength groups (Wang and Blei 2013,
    section 4.2, and with the defaults the prior of their section 5.3).

    Parameters
    ----------
    groups : int, str or None
        The column of X that says which group a row is of: its number, or in a DataFrame its name,
        and then its labels may be strings. With None all rows are of one group.
    method : {"quadrature", "delta", "laplace", "jaakkola_jordan", "gibbs"}
        MAP-EM with that E-step, or Gibbs sampling of everything.
    mean_var, spread_var, spread_strength : float
        Of the prior.
    fit_intercept, average, tol, max_iter, draws, tune, chains, random_state
        As in `LogisticClassifier`; `tol` and `max_iter` are of MAP-EM.

    Attributes
    ----------
    groups_ : array, ``(n_groups,)``
    coef_ : array, ``(n_groups, n_features)``
        Posterior means; the group's column is not among the features.
    intercept_ : array, ``(n_groups,)``
    coef_cov_ : array, ``(n_groups, n_weights, n_weights)``
    mean_, spread_ : arrays, ``(n_weights,)`` and ``(n_weights, n_weights)``
        mu and Sigma, their posterior means with "gibbs".
    posterior_ : Posterior or None
        With "gibbs".
    classes_, n_iter_, n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    Notes
    -----
    A row of a group that was not in the fit is predicted with the common law of the weights. In
    `predict_proba`, with "gibbs", those averages take mu and Sigma at their means.
    """

    def __init__(
        self,
        groups: int | str | None = None,
        *,
        method: Method = "quadrature",
        mean_var: float = 100.0,
        spread_var: float = 1.0,
        spread_strength: float = 100.0,
        fit_intercept: bool = True,
        average: Literal["quadrature", "probit", "plug_in"] = "quadrature",
        tol: float = 1e-4,
        max_iter: int = 200,
        draws: int = 1000,
        tune: int = 500,
        chains: int = 2,
        random_state: Any = None,
    ):
        self.groups = groups
        self.method = method
        self.mean_var = mean_var
        self.spread_var = spread_var
        self.spread_strength = spread_strength
        self.fit_intercept = fit_intercept
        self.average = average
        self.tol = tol
        self.max_iter = max_iter
        self.draws = draws
        self.tune = tune
        self.chains = chains
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> "GroupedLogisticClassifier":
        """Fit the groups' weights and their common law.

        Parameters
        ----------
        X : array or DataFrame, ``(n_samples, n_columns)``
            Features, and the column of groups.
        y : array, ``(n_samples,)``
            Two classes; a group may have one of them only.
        """
        X, groups = self._take_groups(X)
        X, y = validate_data(self, X, y, dtype=np.float64)
        successes = self._binary(y)
        as_choice(self.method, "method", (*LOGISTIC_SITES, "gibbs"))
        x = self._design(X)
        size = x.shape[1]
        labels = np.zeros(len(x), dtype=np.int64) if groups is None else groups
        data = as_labelled_rows(x, successes, labels)
        self.groups_ = data.group_names
        eye = np.eye(size)
        strength = as_real(self.spread_strength, "spread_strength", minimum=1e-100)
        mean_var = as_variance(self.mean_var, "mean_var")
        spread_var = as_variance(self.spread_var, "spread_var")
        self._warn_of_scales(X, spread_var)
        model = GroupedLogisticRegression(
            MvNormal(np.zeros(size), mean_var * eye), size + strength, strength * spread_var * eye
        )
        self.posterior_ = None
        if self.method == "gibbs":
            self.posterior_ = sample(
                model, data, draws=self.draws, tune=self.tune, chains=self.chains,
                random_seed=as_seed(self.random_state), progressbar=False,
            )  # fmt: skip
            draws = self.posterior_["weights"].reshape(-1, data.num_groups, size)
            self._set_weights(*moments(draws))
            self.mean_ = self.posterior_["mu"].mean(axis=(0, 1))
            self.spread_ = self.posterior_["Sigma"].mean(axis=(0, 1))
            self.n_iter_ = self.draws + self.tune
            return self
        fit = fit_grouped_logistic_regression(
            model, data, method=self.method, tolerance=self.tol, max_iterations=self.max_iter
        )
        self._set_weights(fit.weights.mean, fit.weights.cov)
        self.mean_, self.spread_ = fit.mu, fit.Sigma
        self.n_iter_ = fit.num_iterations
        self._warn_unless(fit.converged)
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the two classes, averaged over the posterior, ``(n_samples, 2)``.

        Parameters
        ----------
        X : array or DataFrame, ``(n_samples, n_columns)``
        """
        mean, var, x, place = self._predictor(X)
        probs = self._average(mean, var)
        if self.posterior_ is not None:
            draws = self.posterior_["weights"].reshape(-1, len(self.groups_), x.shape[1])
            for g in np.unique(place[place >= 0]):
                rows = place == g
                probs[rows] = _mean_share(x[rows], draws[:, g])
        return np.column_stack([1.0 - probs, probs])

    def _predictor(self, X: Any) -> tuple[FloatArray, FloatArray, FloatArray, Any]:
        """Mean and variance of each row's predictor, the design, and each row's group or -1."""
        check_is_fitted(self)
        X, groups = self._take_groups(X)
        x = self._design(validate_data(self, X, dtype=np.float64, reset=False))
        if groups is None:
            place = np.zeros(len(x), dtype=np.int64)
        else:
            places = {name: g for g, name in enumerate(self.groups_.tolist())}
            place = np.array([places.get(name, -1) for name in np.asarray(groups).tolist()])
        weights = np.vstack([self._weights, self.mean_])  # place -1: the common law
        covs = np.concatenate([self.coef_cov_, self.spread_[None]])
        mean = np.einsum("nd,nd->n", x, weights[place])
        var = np.empty(len(x))
        for g in np.unique(place):
            rows = x[place == g]
            var[place == g] = np.einsum("nd,nd->n", rows @ covs[g], rows)
        return mean, var, x, place

    def _take_groups(self, X: Any) -> tuple[Any, Any]:
        """X without the column of groups, and that column."""
        if self.groups is None:
            return X, None
        if isinstance(self.groups, bool) or not isinstance(self.groups, int | np.integer | str):
            raise TypeError(f"groups must be a column's number or name, got {brief(self.groups)}")
        if isinstance(X, _Table):
            name = X.columns[self.groups] if isinstance(self.groups, int) else self.groups
            if name not in X.columns:
                raise ValueError(
                    f"groups must name a column of X, got {name!r}; X has"
                    f" {', '.join(str(column) for column in X.columns)}"
                )
            return X.drop(columns=[name]), X[name].to_numpy()
        array = np.asarray(X)
        if isinstance(self.groups, str):
            raise ValueError(
                f"groups must be the number of a column where X is an array, got {self.groups!r}"
            )
        if array.ndim != 2 or not -array.shape[1] <= self.groups < array.shape[1]:
            raise ValueError(
                f"groups must be a column of X, got {self.groups} for shape {array.shape}"
            )
        return np.delete(array, self.groups, axis=1), array[:, self.groups]


def _mean_share(x: FloatArray, draws: FloatArray) -> FloatArray:
    """The mean of sigma(x' w) over draws of w, in blocks of them."""
    total = np.zeros(len(x))
    for start in range(0, len(draws), 256):
        total += expit(x @ draws[start : start + 256].T).sum(axis=1)
    return total / len(draws)

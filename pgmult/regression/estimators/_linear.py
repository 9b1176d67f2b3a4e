"""What the faces of regressions share: parameters, columns, rows, priors and moments of weights."""

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from pgmult.core.arguments import as_choice, as_flag, as_real, brief
from pgmult.core.machine import refuse_unaffordable
from pgmult.core.sklearn import as_seed, refuse_dates
from pgmult.core.typing import FloatArray
from pgmult.core.validate import as_finite, place_of
from pgmult.priors.gaussian import MvNormal
from pgmult.regression.data import as_row_numbers
from pgmult.regression.models.scaled import HalfT, Horseshoe, ScaledRegression
from pgmult.sampling.diagnostics import ConvergenceWarning
from pgmult.sampling.driver import sample
from pgmult.sampling.posterior import Posterior

__all__ = [
    "FixedPrior",
    "HasColumns",
    "LinearClassifier",
    "LinearPredictor",
    "Moments",
    "as_variance",
    "log_of",
    "moments",
]

_LARGEST = 1e30  # of X: from there on squares of variances of predictors overflow
_ABSURD = 1e6  # variance of a predictor: log odds of a thousand either way
_NARROWEST, _WIDEST = 1e-6, 1e6  # variances that evidence may choose
_SCALES = {"half_t": HalfT, "horseshoe": Horseshoe}
_EVIDENCE = ("evidence", "ard")

Moments = tuple[FloatArray, FloatArray]


def moments(draws: FloatArray) -> Moments:
    """Means and covariances of the weights of each output, draws ``(draws, outputs, weights)``."""
    mean = draws.mean(axis=0)
    away = draws - mean
    return mean, np.einsum("ski,skj->kij", away, away) / max(len(draws) - 1, 1)


def log_of(probs: FloatArray) -> FloatArray:
    """Logarithms, finite where probabilities underflow."""
    return np.asarray(np.log(np.maximum(probs, 1e-300)))


def as_variance(value: Any, name: str) -> float:
    """Of weights, in a range where precisions can be inverted."""
    return as_real(value, name, minimum=1e-100, maximum=1e100)


@runtime_checkable
class HasColumns(Protocol):
    """A DataFrame, of whichever package."""

    columns: Any

    def drop(self, *, columns: list[Any]) -> "HasColumns": ...

    def __getitem__(self, name: Any) -> Any: ...


@dataclass(eq=False, repr=False, kw_only=True)
class LinearPredictor(BaseEstimator):  # type: ignore[misc]
    """Weights of the columns of X and, last, of an intercept if there is one."""

    method: str = field(default="quadrature", kw_only=False)
    fit_intercept: bool = True
    tol: float = 1e-6
    max_iter: int = 500
    draws: int = 1000
    tune: int = 200
    chains: int = 2
    random_state: Any = None
    verbose: bool = False

    def _take(self, X: Any, y: Any, **options: Any) -> Any:
        """X and y to fit, checked as scikit-learn does."""
        refuse_dates(X)
        return validate_data(self, X, y, dtype=np.float64, accept_sparse="csr", **options)

    def _take_new(self, X: Any) -> Any:
        """X of rows to predict, checked as scikit-learn does."""
        check_is_fitted(self)
        return validate_data(self, X, dtype=np.float64, accept_sparse="csr", reset=False)

    def _design(self, X: Any) -> Any:
        """The covariates, and a column of ones after them for the intercept; sparse as X is."""
        numbers = X.data if sparse.issparse(X) else X
        bad = np.abs(numbers) > _LARGEST
        if bad.any():
            raise ValueError(
                f"X must be at most {_LARGEST:g} in size, got {numbers[bad][0]:g}{place_of(bad)}"
                " (bring columns to scales near 1)"
            )
        with_intercept = as_flag(self.fit_intercept, "fit_intercept")
        if not sparse.issparse(X):
            return np.column_stack([X, np.ones(len(X))]) if with_intercept else X
        ones = [sparse.csr_array(np.ones((X.shape[0], 1)))] if with_intercept else []
        return sparse.hstack([sparse.csr_array(X), *ones], format="csr")

    def _dense_design(self, X: Any) -> FloatArray:
        """The design of methods that know no sparse one."""
        if sparse.issparse(X):
            refuse_unaffordable(16.0 * math.prod(X.shape), "X", X.shape[0])
            X = X.toarray()
        return np.asarray(self._design(X))

    def _row_weights(self, X: Any, sample_weight: Any) -> FloatArray:
        """How many times each row counts."""
        if sample_weight is None:
            return np.ones(X.shape[0])
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
        weight = as_row_numbers(weight, "sample_weight", X.shape[0], default=1.0, minimum=0.0)
        if not weight.any():
            raise ValueError("sample_weight must have at least one non-zero number, got zeros")
        return weight

    def _known(self, X: Any, offset: Any) -> FloatArray:
        """What is added to each row's predictor."""
        return as_row_numbers(offset, "offset", X.shape[0], default=0.0)

    def _sample(self, model: Any, data: Any, shift: int = 0) -> Posterior:
        """Draws, as the parameters ask for."""
        return sample(
            model, data, draws=self.draws, tune=self.tune, chains=self.chains,
            random_seed=self._seed + shift, progressbar=as_flag(self.verbose, "verbose"),
        )  # fmt: skip

    def _draw_seed(self) -> None:
        self._seed = as_seed(self.random_state)

    def _warn_unless(self, converged: bool) -> None:
        if not converged:
            warnings.warn(
                f"method {self.method!r} had not converged after {self.n_iter_} iterations: raise"
                " max_iter, try method='quadrature', or bring columns to smaller scales",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _warn_of_scales(self, X: Any, weight_var: Any) -> None:
        """Say so where the prior of the coefficients means that all probabilities are 0 or 1."""
        squares = X.multiply(X) if sparse.issparse(X) else X * X
        typical = float(np.median(np.asarray(squares @ np.broadcast_to(weight_var, X.shape[1:]))))
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


@dataclass(eq=False, repr=False, kw_only=True)
class FixedPrior(LinearPredictor):
    """Independent weights a priori, with variances that are given or learned."""

    weight_var: float | ArrayLike | str = 1.0
    intercept_var: float = 100.0

    def _variances(self, num_features: int) -> FloatArray:
        """Of the prior; 1 for coefficients whose variances are to be learned."""
        given = self.weight_var
        if isinstance(given, str):
            as_choice(given, "weight_var", (*_EVIDENCE, *_SCALES))
            if given in _SCALES and "sampling" not in self.method and self.method != "slice":
                raise ValueError(
                    f"weight_var={given!r} is sampled along with the weights, which method"
                    f" {self.method!r} does not do (or take 'evidence' or 'ard')"
                )
            own: FloatArray = np.ones(num_features)
        elif not hasattr(given, "__len__") or getattr(given, "shape", None) == ():
            own = np.full(num_features, as_variance(given, "weight_var"))
        else:
            own = as_finite(given, "weight_var")
            if own.shape != (num_features,):
                raise ValueError(
                    f"weight_var must be a number, or one for each of {num_features} columns of X,"
                    f" got shape {own.shape}"
                )
            for value in own:
                as_variance(float(value), "weight_var")
        if not as_flag(self.fit_intercept, "fit_intercept"):
            return own
        return np.append(own, as_variance(self.intercept_var, "intercept_var"))

    def _learn_prior(
        self, num_features: int, fit: Callable[[MvNormal], tuple[float, FloatArray, FloatArray]]
    ) -> MvNormal:
        """The prior of the weights of an output, which is kept in `weight_var_`.

        ``fit(prior)`` is a bound of the log evidence, with the means and covariances of all
        outputs' weights where it is largest. Its slope in the logarithm of a variance v is then
        sum (m^2 + s^2 - v) / (2 v), over the weights that share v.
        """
        variances = self._variances(num_features)
        if self.weight_var in _EVIDENCE if isinstance(self.weight_var, str) else False:
            shared = self.weight_var == "evidence"

            def downhill(log_vars: FloatArray) -> tuple[float, FloatArray]:
                variances[:num_features] = np.exp(log_vars)
                level, mean, cov = fit(MvNormal(np.zeros(len(variances)), np.diag(variances)))
                squares = mean**2 + np.diagonal(cov, axis1=1, axis2=2)
                slopes = 0.5 * (squares / variances - 1.0).sum(axis=0)[:num_features]
                return -level, -(slopes.sum(keepdims=True) if shared else slopes)

            size = 1 if shared else num_features
            bounds = [(math.log(_NARROWEST), math.log(_WIDEST))] * size
            found = minimize(
                downhill, np.zeros(size), jac=True, method="L-BFGS-B", bounds=bounds,
                options={"maxiter": 200, "ftol": 1e-9, "gtol": 1e-3},
            )  # fmt: skip
            variances[:num_features] = np.exp(found.x)
        self.weight_var_ = variances[:num_features].copy()
        return MvNormal(np.zeros(len(variances)), np.diag(variances))

    def _scaled(self, model: Any) -> Any:
        """The model, with the widths of its prior learned where they are to be sampled."""
        if not isinstance(self.weight_var, str) or self.weight_var not in _SCALES:
            return model
        which = np.ones(model.weights_prior.size, dtype=np.bool_)
        which[-1] = not self.fit_intercept
        return ScaledRegression(model, _SCALES[self.weight_var](), which)

    def _keep_scales(self, posteriors: list[Posterior]) -> None:
        """Posterior means of the variances that were sampled."""
        if "common_var" in posteriors[0]:
            size = len(self.weight_var_)
            each = [
                (p["common_var"][..., None] * p["local_vars"][..., :size]).mean(axis=(0, 1))
                for p in posteriors
            ]
            self.weight_var_ = each[0] if len(each) == 1 else np.array(each)


@dataclass(eq=False, repr=False, kw_only=True)
class LinearClassifier(ClassifierMixin, LinearPredictor):  # type: ignore[misc]
    """Classes, and what their rows count."""

    class_weight: Mapping[Any, float] | str | None = None

    def _class_weights(self, totals: FloatArray) -> FloatArray:
        """What a count of each class is worth; `totals` is how often each was seen."""
        given = self.class_weight
        if given is None:
            return np.ones(len(totals))
        if isinstance(given, str):
            as_choice(given, "class_weight", ("balanced",))
            seen = np.where(totals > 0.0, totals, 1.0)
            return np.asarray(totals.sum() / (len(totals) * seen))
        if not isinstance(given, Mapping):
            raise TypeError(
                f"class_weight must be 'balanced', or weights by class, got {brief(given)}"
            )
        names = list(self.classes_.tolist())
        each = np.ones(len(names))
        for name, value in given.items():
            if name not in names:
                raise ValueError(f"class_weight must be of classes of y, got {brief(name)}")
            each[names.index(name)] = as_real(value, f"class_weight of {name!r}", minimum=0.0)
        return each

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithms of `predict_proba`.

        Parameters
        ----------
        X : array, ``(n_samples, n_features)``
        """
        return log_of(self.predict_proba(X))

"""What the estimators of regressions share: columns and their units, priors, weights, warnings."""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import ndtri
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from pgmult.core.arguments import as_choice, as_flag, as_real, brief
from pgmult.core.estimands import Estimand
from pgmult.core.machine import refuse_unaffordable
from pgmult.core.sklearn import as_seed, refuse_dates
from pgmult.core.typing import FloatArray
from pgmult.core.validate import as_finite, place_of
from pgmult.priors.gaussian import MvNormal
from pgmult.regression.data import LabelledRows, as_row_numbers
from pgmult.regression.models.scaled import HalfT, Horseshoe, ScaledRegression
from pgmult.sampling.diagnostics import ConvergenceWarning
from pgmult.sampling.driver import sample
from pgmult.sampling.posterior import Posterior
from pgmult.variational.designs import Rows
from pgmult.variational.fits import SiteFit, correction_of_fit
from pgmult.variational.sites import LogisticSite

_LARGEST = 1e30  # of X: from there on squares of variances of predictors overflow
_ABSURD = 1e6  # variance of a predictor: log odds of a thousand either way
_CONSTANT = 1e-10  # of a column's mean: a standard deviation below this share is rounding
_BITS = 2.0**40
_FAR = 0.25  # of a root of the number of weights: standard deviation of the correction
_DRAWS = 100  # for that
_COEFFICIENT_DRAWS = 2000  # of a Gaussian, for differences
_NARROWEST, _WIDEST = 1e-6, 1e6  # variances that evidence may choose
_SCALES = {"half_t": HalfT, "horseshoe": Horseshoe}
_EVIDENCE = ("evidence", "ard")

Moments = tuple[FloatArray, FloatArray]


class ApproximationWarning(UserWarning):
    """A Gaussian approximation is far from the posterior."""


def moments(draws: FloatArray) -> Moments:
    """Means and covariances of the weights of each output, draws ``(draws, outputs, weights)``."""
    mean = draws.mean(axis=0)
    away = draws - mean
    return mean, np.einsum("ski,skj->kij", away, away) / max(len(draws) - 1, 1)


def correction_of_rows(fit: SiteFit, rows: LabelledRows, prior: MvNormal) -> FloatArray:
    """How far the posterior of each group's weights is from its Gaussian."""
    design = Rows(rows.covariates, rows.offsets, rows.known)
    return correction_of_fit(fit, design, LogisticSite(rows.successes, rows.trials, "delta"), prior)


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


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """How columns are standardised inside, and weights put into the units of the user.

    Attributes
    ----------
    centre, scale : arrays, ``(num_features,)``
        Means and standard deviations of the columns; 0 and 1 where they stay as they are.
    to_user : array, ``(num_weights, num_weights)``
        Weights of the user's columns are ``weights @ to_user``, for weights of standardised ones.
    """

    centre: FloatArray
    scale: FloatArray
    to_user: FloatArray

    @classmethod
    def of(cls, X: Any, weight: FloatArray, *, scaled: bool, with_intercept: bool) -> "Units":
        """Of columns whose rows count `weight` times. Without an intercept nothing is centred."""
        size = X.shape[1]
        centre, scale = np.zeros(size), np.ones(size)
        if scaled and weight.any():
            share = weight / weight.sum()
            centre = np.asarray(X.T @ share)
            if sparse.issparse(X):
                var = np.maximum(X.multiply(X).T @ share - centre**2, 0.0)
            else:
                var = share @ (X - centre) ** 2
            sd = np.sqrt(np.asarray(var))
            constant = sd <= _CONSTANT * np.abs(centre)
            # rounded to 40 bits, so that the order of rows, which the last bits tell, says nothing
            mantissa, exponent = np.frexp(np.where(constant, 1.0, sd))
            scale = np.ldexp(np.round(mantissa * _BITS) / _BITS, exponent)
            centre = np.round(centre / scale * _BITS) / _BITS * scale
        to_user = np.diag(1.0 / scale)
        if with_intercept:
            to_user = np.block([[to_user, -(centre / scale)[:, None]], [np.zeros(size), 1.0]])
        else:
            centre = np.zeros(size)
        return cls(centre, scale, to_user)

    def uncentred(self) -> FloatArray:
        """As `to_user`, for columns that are scaled but not centred, as sparse ones are."""
        turn = self.to_user.copy()
        size = len(self.scale)
        turn[:size, :size] = np.eye(size)
        return turn


@dataclass(eq=False, repr=False, kw_only=True)
class LinearPredictor(BaseEstimator):  # type: ignore[misc]
    """Weights of the columns of X and, last, of an intercept if there is one."""

    method: str = field(default="quadrature", kw_only=False)
    fit_intercept: bool = True
    scale_inputs: bool = True
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

    def _learn_units(self, X: Any, weight: FloatArray) -> None:
        """Means and standard deviations of the columns, of rows that count `weight` times."""
        _refuse_huge(X)
        self._units = Units.of(
            X, weight,
            scaled=as_flag(self.scale_inputs, "scale_inputs"),
            with_intercept=as_flag(self.fit_intercept, "fit_intercept"),
        )  # fmt: skip

    def _design(self, X: Any) -> Any:
        """Standardised columns, and one of ones for the intercept; sparse ones are not centred."""
        _refuse_huge(X)
        if not sparse.issparse(X):
            if self.scale_inputs:
                X = (X - self._units.centre) / self._units.scale
            return np.column_stack([X, np.ones(len(X))]) if self.fit_intercept else X
        x = sparse.csr_array(X)
        if self.scale_inputs:
            x = x @ sparse.diags_array(1.0 / self._units.scale)
        ones = [sparse.csr_array(np.ones((X.shape[0], 1)))] if self.fit_intercept else []
        return sparse.hstack([x, *ones], format="csr")

    def _dense_design(self, X: Any) -> FloatArray:
        """The design of methods that know no sparse one."""
        if sparse.issparse(X):
            refuse_unaffordable(16.0 * math.prod(X.shape), "X", X.shape[0])
            X = X.toarray()
        return np.asarray(self._design(X))

    def _own_design(self, X: Any) -> Any:
        """The columns in the user's units, and ones: what draws of the weights are of."""
        _refuse_huge(X)
        if not self.fit_intercept:
            return X
        if sparse.issparse(X):
            return sparse.hstack([X, sparse.csr_array(np.ones((X.shape[0], 1)))], format="csr")
        return np.column_stack([X, np.ones(len(X))])

    def _turned(
        self, x: Any, mean: FloatArray, cov: FloatArray, *, back: bool = False
    ) -> tuple[FloatArray, FloatArray]:
        """Moments of the weights of standardised columns for those of the design `x`, or back."""
        if not sparse.issparse(x) or not self.scale_inputs:
            return mean, cov
        turn = self._units.uncentred()
        turn = np.asarray(np.linalg.inv(turn)) if back else turn
        return mean @ turn, turn.T @ cov @ turn

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
        """Draws, as the parameters ask for, of weights in the user's units."""
        posterior = sample(
            model, data, draws=self.draws, tune=self.tune, chains=self.chains,
            random_seed=self._seed + shift, progressbar=as_flag(self.verbose, "verbose"),
        )  # fmt: skip
        if not self.scale_inputs:
            return posterior
        turn = self._units.to_user
        draws = dict(posterior)
        for name in draws.keys() & {"weights", "mu"}:
            draws[name] = draws[name] @ turn
        if "Sigma" in draws:
            draws["Sigma"] = turn.T @ draws["Sigma"] @ turn
        return Posterior(
            draws,
            dims={name: axes[2:] for name, axes in posterior.dims.items()},
            coords=posterior.coords, sample_stats=posterior.sample_stats, attrs=posterior.attrs,
            label_dims=posterior.label_dims,
        )  # fmt: skip

    def _draw_seed(self) -> None:
        self._seed = as_seed(self.random_state)

    def _warn_unless(self, converged: bool) -> None:
        if not converged:
            others = ["raise max_iter"]
            others += ["take method='quadrature'"] if self.method != "quadrature" else []
            others += ["leave scale_inputs=True"] if not self.scale_inputs else []
            warnings.warn(
                f"method {self.method!r} had not converged after {self.n_iter_} iterations:"
                f" {', or '.join(others)}",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _warn_of_corrections(self, sds: FloatArray, size: int, exact: str = "sampling") -> None:
        """Say so where Gaussians are not what posteriors of so many weights look like."""
        most, limit = float(np.max(sds)), _FAR * math.sqrt(size)
        if not most <= limit:
            warnings.warn(
                f"method {self.method!r} takes the posterior for a Gaussian, and it is far from"
                f" one: their log densities differ by a standard deviation of {most:.2g}, where"
                f" {limit:.2g} is much for {size} weights. Means and standard deviations may be off"
                f" by tenths of a standard deviation and more (method={exact!r} is exact)",
                ApproximationWarning,
                stacklevel=3,
            )

    def _warn_of_scales(self, X: Any, weight_var: Any) -> None:
        """Say so where the prior of the coefficients means that all probabilities are 0 or 1."""
        if sparse.issparse(X):
            squares = X.multiply(X) / self._units.scale**2
        else:
            squares = ((X - self._units.centre) / self._units.scale) ** 2
        typical = float(np.median(np.asarray(squares @ np.broadcast_to(weight_var, X.shape[1:]))))
        if typical > _ABSURD:
            hint = "" if self.scale_inputs else "leave scale_inputs=True, or "
            warnings.warn(
                f"the prior gives the predictor of a typical row a variance of {typical:.2g}: it"
                f" expects all probabilities to be 0 or 1 ({hint}give smaller variances)",
                UserWarning,
                stacklevel=3,
            )

    def _set_weights(self, mean: FloatArray, cov: FloatArray) -> None:
        """Moments of standardised columns' weights, a row an output: kept, and in user's units."""
        self._weights, self._covs = mean, cov
        if self.scale_inputs:
            turn = self._units.to_user
            mean, cov = mean @ turn, turn.T @ cov @ turn
        self._tell(mean, cov)

    def _set_draws(self, draws: FloatArray) -> None:
        """Draws of the weights in the user's units, ``(draws, outputs, weights)``."""
        self._tell(*moments(draws))
        self.n_iter_ = self.draws + self.tune

    def _tell(self, mean: FloatArray, cov: FloatArray) -> None:
        self.coef_ = mean[:, :-1] if self.fit_intercept else mean
        self.intercept_ = mean[:, -1] if self.fit_intercept else np.zeros(len(mean))
        self.coef_cov_ = cov

    def coefficients(self, probability: float = 0.9) -> "Coefficients":
        """The weights of all columns and the intercept, in the units of X.

        Parameters
        ----------
        probability : float
            Of the intervals: quantiles of draws where the posterior was sampled, else those of its
            Gaussian approximation.

        Returns
        -------
        Coefficients
            Its axes are output (a class or a label), where there are several, and weight.
        """
        draws, gaussian = self._weight_draws()
        axes: tuple[str, ...] = ("output", "weight")
        labels = {"output": self._output_names(), "weight": self._weight_names()}
        if draws.shape[1] == 1:
            draws, axes, labels = draws[:, 0], axes[1:], {"weight": labels["weight"]}
            gaussian = None if gaussian is None else (gaussian[0][0], gaussian[1][0])
        return Coefficients(
            draws, axes, labels, caption="Coefficients.", probability=probability,
            gaussian=gaussian,
        )  # fmt: skip

    def _weight_names(self) -> list[str]:
        """Of the columns, and of the intercept."""
        names = getattr(self, "feature_names_in_", range(self.coef_.shape[1]))
        return [*map(str, names), *(["Intercept"] if self.fit_intercept else [])]

    def _weight_draws(self) -> tuple[FloatArray, Moments | None]:
        """Draws ``(draws, outputs, weights)``; means and sds of the Gaussian where it is one."""
        check_is_fitted(self)
        if self.posterior_ is None:
            width = len(self._weight_names())
            mean = np.column_stack([self.coef_, self.intercept_])[:, :width]
            sd = np.sqrt(np.diagonal(self.coef_cov_, axis1=1, axis2=2))
            return self._gaussian_draws(), (mean, sd)
        each = self.posterior_ if isinstance(self.posterior_, list) else [self.posterior_]
        return np.concatenate([p.stack("weights") for p in each], axis=1), None

    def _gaussian_draws(self) -> FloatArray:
        """Draws of the Gaussian, always the same, ``(draws, outputs, weights)``."""
        mean, covs = self._weights, self._covs
        joint = getattr(self, "_joint_cov", None)
        rng = np.random.default_rng(0)
        if joint is not None:
            noise = rng.standard_normal((_COEFFICIENT_DRAWS, mean.size))
            away = (noise @ np.linalg.cholesky(joint).T).reshape(-1, *mean.shape)
        else:
            noise = rng.standard_normal((_COEFFICIENT_DRAWS, *mean.shape))
            away = np.einsum("kij,skj->ski", np.linalg.cholesky(covs), noise)
        return np.asarray((mean + away) @ self._units.to_user)

    def _output_names(self) -> Any:
        """What the outputs are of."""
        return self.classes_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Coefficients(Estimand):
    """Weights of a regression: an `Estimand`, with the moments of a Gaussian where it is one.

    Attributes
    ----------
    gaussian : pair of arrays, or None
        Means and standard deviations, where the posterior is approximated by a Gaussian: `mean`,
        `sd` and intervals are then its own. Its `draws` are for differences.
    """

    gaussian: tuple[FloatArray, FloatArray] | None = field(default=None, kw_only=True)

    @property
    def mean(self) -> FloatArray:
        """Means."""
        return super(Coefficients, self).mean if self.gaussian is None else self.gaussian[0]

    @property
    def sd(self) -> FloatArray:
        """Standard deviations."""
        return super(Coefficients, self).sd if self.gaussian is None else self.gaussian[1]

    def quantile(self, at: float | Sequence[float]) -> FloatArray:
        """Quantiles, with those that `at` lists along the first axis, if it is a list."""
        if self.gaussian is None:
            return super(Coefficients, self).quantile(at)
        z = ndtri(np.asarray(at)).reshape(*np.shape(at), *(1,) * self.mean.ndim)
        return np.asarray(self.mean + z * self.sd)


def _refuse_huge(X: Any) -> None:
    numbers = X.data if sparse.issparse(X) else X
    bad = np.abs(numbers) > _LARGEST
    if bad.any():
        raise ValueError(
            f"X must be at most {_LARGEST:g} in size, got {numbers[bad][0]:g}{place_of(bad)}"
            " (bring columns to scales near 1)"
        )


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
            if given in _SCALES and "sampling" not in self.method:
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

    def _prior(self, variances: FloatArray, x: Any) -> MvNormal:
        """Independent weights of standardised columns, in terms of the design `x`."""
        zeros, cov = np.zeros((1, len(variances))), np.diag(variances)
        return MvNormal(zeros[0], self._turned(x, zeros, cov)[1])

    def _learn_prior(
        self, x: Any, fit: Callable[[MvNormal], tuple[float, FloatArray, FloatArray]]
    ) -> MvNormal:
        """The prior of the weights of an output, which is kept in `weight_var_`.

        ``fit(prior)`` is a bound of the log evidence, with the means and covariances of all
        outputs' weights where it is largest. Its slope in the logarithm of a variance v is then
        sum (m^2 + s^2 - v) / (2 v), over the weights that share v.
        """
        num_features = x.shape[1] - int(self.fit_intercept)
        variances = self._variances(num_features)
        if self.weight_var in _EVIDENCE if isinstance(self.weight_var, str) else False:
            shared = self.weight_var == "evidence"

            def downhill(log_vars: FloatArray) -> tuple[float, FloatArray]:
                variances[:num_features] = np.exp(log_vars)
                level, mean, cov = fit(self._prior(variances, x))
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
        return self._prior(variances, x)

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

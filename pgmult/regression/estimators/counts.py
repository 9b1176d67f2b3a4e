"""A scikit-learn estimator of log-linear regressions of counts: Poisson and negative binomial.

>>> import numpy as np
>>> from pgmult.regression import CountRegressor
>>> rng = np.random.default_rng(0)
>>> X = rng.standard_normal((200, 2))
>>> y = rng.poisson(np.exp(1.0 + 0.5 * X[:, 0]))
>>> fitted = CountRegressor().fit(X, y)
>>> abs(fitted.coef_).round(1), fitted.intercept_.round(1), fitted.predict(X[:2]).shape
(array([[0.5, 0. ]]), array([1.]), (2,))
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import xlogy
from sklearn.base import RegressorMixin

from pgmult.core.arguments import as_choice, as_real
from pgmult.core.typing import FloatArray
from pgmult.core.validate import as_nonnegative
from pgmult.priors.gaussian import MvNormal
from pgmult.regression.data import as_event_rows, as_row_numbers
from pgmult.regression.estimators._linear import FixedPrior
from pgmult.regression.fits.counts import DISTRIBUTIONS, count_site, fit_count_regression
from pgmult.regression.models.counts import NegativeBinomialRegression, PoissonRegression
from pgmult.regression.models.scaled import ScaledRegression
from pgmult.variational.designs import Rows, predictor_vars
from pgmult.variational.fits import correction_of_fit

_METHODS = ("quadrature", "laplace", "sampling")
_DRAWS = 256  # in a block of predictions
_LARGEST = 700.0  # logarithm of a mean


@dataclass(eq=False, repr=False, kw_only=True)
class CountRegressor(RegressorMixin, FixedPrior):  # type: ignore[misc]
    """Counts of events whose log rates are linear in the columns of X, with a posterior of both.

    Columns are standardised inside, and answers are in the units of X: the prior of a coefficient
    is N(0, weight_var) for a step of one standard deviation of its column, and that of the
    intercept, at the means of the columns, N(0, intercept_var).

    Parameters
    ----------
    method : {"quadrature", "laplace", "sampling"}
        How the posterior is found: the best Gaussian, that at the mode, or draws from the posterior
        itself, by slices around the first.
    distribution : {"poisson", "negative_binomial"}
        The latter for counts that vary more than their means say.
    dispersion : float or None
        Of the negative binomial, whose variance is mean + dispersion mean^2. With None the one that
        makes the data most probable, or with "sampling" drawn along with the weights.
    weight_var, intercept_var, fit_intercept, scale_inputs, tol, max_iter, draws, tune, chains
    random_state, verbose
        As in `LogisticClassifier`. "evidence" and "ard" maximise the bound of "quadrature".

    Attributes
    ----------
    coef_ : array, ``(1, n_features)``
        Posterior means.
    intercept_ : array, ``(1,)``
    coef_cov_ : array, ``(1, n_weights, n_weights)``
        Posterior covariance of the coefficients and, last, the intercept where there is one.
    dispersion_ : float
        As given or learned, the posterior mean with "sampling"; 0 of the Poisson.
    weight_var_ : array, ``(n_features,)``
        Variances of the prior as given or learned.
    log_evidence_ : float
        Log p(y), as the method bounds or approximates it, at this dispersion; nan with "sampling".
    posterior_ : Posterior or None
        With "sampling".
    n_iter_ : int
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn
    """

    distribution: str = "poisson"
    dispersion: float | None = None

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, offset: Any = None
    ) -> "CountRegressor":
        """Fit the weights.

        Parameters
        ----------
        X : array or sparse array, ``(n_samples, n_features)``
            A sparse one is made dense by "sampling" only.
        y : array, ``(n_samples,)``
            Counts, not negative. A rate, weighted by its exposure, has the Poisson posterior of its
            count.
        sample_weight : array, ``(n_samples,)``, optional
            How many times each row counts.
        offset : array, ``(n_samples,)``, optional
            Added to the log rate of each row, such as the logarithm of its exposure. Give that of
            new rows to `predict`.
        """
        as_choice(self.method, "method", _METHODS)
        as_choice(self.distribution, "distribution", DISTRIBUTIONS)
        X, y = self._take(X, y, y_numeric=True)
        weight = self._row_weights(X, sample_weight)
        self._learn_units(X, weight)
        sampled = self.method == "sampling"
        x = self._dense_design(X) if sampled else self._design(X)
        y, known = as_nonnegative(y, "y"), self._known(X, offset)
        data = as_event_rows(x, y, weights=weight, predictor_offset=known)
        size = self._size()
        settings: dict[str, Any] = {
            "distribution": self.distribution, "size": size,
            "tolerance": self.tol, "max_iterations": self.max_iter,
        }  # fmt: skip

        def bound(prior: MvNormal) -> tuple[float, FloatArray, FloatArray]:
            found = fit_count_regression(data, prior, **settings)
            return found.objective, found.mean, found.cov

        self._draw_seed()
        prior = self._learn_prior(x, bound)
        self._warn_of_scales(X, self.weight_var_)
        if not sampled:
            fit = fit_count_regression(data, prior, method=self.method, **settings)
            self.posterior_ = None
            self._set_weights(*self._turned(x, fit.mean, fit.cov, back=True))
            self.dispersion_ = 1.0 / fit.size
            self.log_evidence_, self.n_iter_ = fit.objective, fit.num_iterations
            self._warn_unless(fit.converged)
            rows, site = Rows(x, known=known), count_site(data, fit.size)
            self._warn_of_corrections(correction_of_fit(fit, rows, site, prior), x.shape[1])
            return self
        model: Any = PoissonRegression(prior)
        if self.distribution == "negative_binomial":
            if isinstance(self._scaled(model), ScaledRegression):
                raise ValueError(f"weight_var={self.weight_var!r} needs distribution='poisson'")
            model = NegativeBinomialRegression(prior, size=size)
        self.posterior_ = self._sample(self._scaled(model), data)
        self._keep_scales([self.posterior_])
        self._set_draws(self.posterior_.stack("weights"))
        self.log_evidence_ = float("nan")
        is_poisson = self.distribution == "poisson"
        self.dispersion_ = 0.0 if is_poisson else float((1.0 / self.posterior_["size"]).mean())
        return self

    def _size(self) -> float | None:
        """Of the negative binomial, where it is given."""
        if self.dispersion is None:
            return None
        if self.distribution == "poisson":
            raise ValueError("dispersion needs distribution='negative_binomial'")
        return 1.0 / as_real(self.dispersion, "dispersion", minimum=1e-4, maximum=1e3)

    def predict(self, X: Any, offset: Any = None) -> FloatArray:
        """Mean counts, averaged over the posterior, ``(n_samples,)``.

        Parameters
        ----------
        X : array or sparse array, ``(n_samples, n_features)``
        offset : array, ``(n_samples,)``, optional
            Added to the log rate of each row.
        """
        X = self._take_new(X)
        known = self._known(X, offset)
        if self.posterior_ is None:
            x = self._design(X)
            mean, covs = self._turned(x, self._weights, self._covs)
            level = x @ mean[0] + known + 0.5 * predictor_vars(x, covs)[:, 0]
            return np.asarray(np.exp(np.minimum(level, _LARGEST)))
        x, draws = self._own_design(X), self.posterior_.stack("weights")[:, 0]
        total = np.zeros(len(known))
        for start in range(0, len(draws), _DRAWS):
            psi = x @ draws[start : start + _DRAWS].T + known[:, None]
            total += np.exp(np.minimum(psi, _LARGEST)).sum(axis=1)
        return total / len(draws)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, offset: Any = None) -> float:
        """The share of the Poisson deviance that the means explain, 1 at best (scikit-learn's D2).

        Parameters
        ----------
        X : array or sparse array, ``(n_samples, n_features)``
        y : array, ``(n_samples,)``
        sample_weight, offset : arrays, ``(n_samples,)``, optional
        """
        mean, y = self.predict(X, offset), as_nonnegative(y, "y")
        weight = as_row_numbers(sample_weight, "sample_weight", len(mean), default=1.0, minimum=0.0)
        deviance = weight @ (xlogy(y, y) - xlogy(y, mean) - y + mean)
        flat = np.full(len(y), weight @ y / weight.sum())
        most = weight @ (xlogy(y, y) - xlogy(y, flat) - y + flat)
        return float(1.0 - deviance / most) if most > 0.0 else float("nan")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        tags.regressor_tags.poor_score = True  # of counts that are no counts
        return tags

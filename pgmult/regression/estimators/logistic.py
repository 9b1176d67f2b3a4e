"""A scikit-learn estimator of Bayesian logistic regression.

>>> import numpy as np
>>> from pgmult.regression import LogisticClassifier
>>> rng = np.random.default_rng(0)
>>> X = rng.standard_normal((200, 3))
>>> y = X[:, 0] - 0.5 * X[:, 2] + rng.logistic(size=200) > 0.0
>>> fitted = LogisticClassifier().fit(X, y)
>>> fitted.coef_.shape, fitted.coef_cov_.shape, fitted.predict_proba(X[:2]).shape
((1, 3), (1, 4, 4), (2, 2))
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import column_or_1d

from pgmult.core.arguments import as_choice
from pgmult.core.sklearn import as_classes
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_counts
from pgmult.links.logistic import logistic_expectations
from pgmult.priors.gaussian import MvNormal
from pgmult.regression.data import LabelledRows, as_labelled_rows, refuse_sums
from pgmult.regression.estimators._linear import (
    FixedPrior,
    LinearClassifier,
    correction_of_rows,
    log_of,
)
from pgmult.regression.fits.logistic import fit_logistic_regression
from pgmult.regression.models.logistic import LogisticRegression
from pgmult.sampling.posterior import Posterior
from pgmult.variational.designs import predictor_vars
from pgmult.variational.sites import LOGISTIC_METHODS

_METHODS = (*LOGISTIC_METHODS, "sampling")
_MOMENTS = ("mean", "cov")
_DRAWS = 256  # in a block of predictions


@dataclass(eq=False, repr=False, kw_only=True)
class LogisticClassifier(LinearClassifier, FixedPrior):
    """Logistic regression with a Gaussian prior; predictions average over the posterior.

    Columns are standardised inside, and answers are in the units of X: the prior of a coefficient
    is N(0, weight_var) for a step of one standard deviation of its column, and that of the
    intercept, at the means of the columns, N(0, intercept_var). The prior is proper, so separable
    labels, constant columns and more columns than rows have a posterior too.

    Parameters
    ----------
    method : {"quadrature", "delta", "laplace", "jaakkola_jordan", "sampling"}
        How the posterior is found: see `pgmult.variational.sites`. "quadrature" is the best
        Gaussian and never fails, "delta" nearly as good and twice as fast where predictors are not
        very uncertain, "laplace" the fastest; "sampling" draws from the posterior itself, by
        Pólya-gamma Gibbs or slices around a Gaussian, whichever is faster
        (`pgmult.regression.updates`).
    weight_var : float, array of a variance for each column, or str
        Variances of the coefficients' prior. "evidence" finds one for all, and "ard" one for each
        column, that make the data most probable (columns of no use get a tiny one); both maximise
        the bound of "quadrature", whatever the method. With "sampling" they may be drawn with the
        weights: "half_t" is one half-t standard deviation, "horseshoe" one half-Cauchy for each
        column times a common one (see `pgmult.regression.models.scaled`).
    intercept_var : float
        Variance of the intercept's prior.
    fit_intercept : bool
    scale_inputs : bool
        Whether columns are standardised, by the means and standard deviations of the rows of the
        fit, each counted as often as its weight and trials say. If not, the prior is of the columns
        as they are. Without an intercept they are scaled and not centred.
    class_weight : mapping from class to number, "balanced" or None
        Weight of a row by its class. "balanced" gives all classes the same total weight, as if that
        many rows had been seen: the posterior and its probabilities then describe a population in
        which classes are equally frequent.
    average : {"quadrature", "probit", "plug_in"}
        How `predict_proba` averages over a Gaussian posterior: to 12 digits, by MacKay's
        approximation, or not at all. With "sampling" it averages over the draws.
    tol, max_iter : float, int
        Of the approximations: see `pgmult.variational.fit_sites`.
    draws, tune, chains : int
        Of "sampling".
    random_state : int, numpy.random.RandomState or None
        Of "sampling".
    verbose : bool
        Whether sampling shows its progress.

    Attributes
    ----------
    coef_ : array, ``(n_outputs, n_features)``
        Posterior means; one output, or one for each label.
    intercept_ : array, ``(n_outputs,)``
    coef_cov_ : array, ``(n_outputs, n_weights, n_weights)``
        Posterior covariance of the coefficients and, last, the intercept where there is one.
    weight_var_ : array, ``(n_features,)``, or with several labels one row each
        Variances of the prior as given or learned; posterior means where they were sampled.
    log_evidence_ : array, ``(n_outputs,)``
        Log p(y), as the method bounds or approximates it, without binomial coefficients; nan with
        "sampling".
    posterior_ : list of Posterior, or None
        With "sampling", one for each output; weights in the units of X.
    classes_ : array
        The two classes; with trials 0 and 1, failures and successes; with labels ``(n, L)`` the
        numbers of the labels.
    multilabel_ : bool
    n_iter_ : int
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn
    """

    average: str = "quadrature"

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, trials: Any = None, offset: Any = None
    ) -> "LogisticClassifier":
        """Fit the weights.

        Parameters
        ----------
        X : array or sparse array, ``(n_samples, n_features)``
            A sparse one is made dense by "sampling" only.
        y : array, ``(n_samples,)`` or ``(n_samples, n_labels)``
            Two classes; with `trials`, counts of successes; or several labels of 0 and 1, each
            fitted by itself, where one that is the same in every row is left to the prior.
        sample_weight : array, ``(n_samples,)``, optional
            How many times each row counts: a row of weight 2 is worth two rows, and the posterior
            of whole weights is that of rows repeated. Other weights raise the likelihood of their
            row to that power, exactly so with every method, "sampling" included.
        trials : array, ``(n_samples,)``, optional
            Numbers of trials; y then counts successes.
        offset : array, ``(n_samples,)``, optional
            Added to the log odds of each row. Give that of new rows to `predict_proba`.

        Raises
        ------
        ValueError
            If y has one class only, or more than two.

        Warns
        -----
        ApproximationWarning
            If the posterior is far from the Gaussian that the method takes it for.
        """
        as_choice(self.method, "method", _METHODS)
        X, y = self._take(X, y, multi_output=True)
        self.multilabel_ = y.ndim == 2 and y.shape[1] > 1
        if y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        weight = self._row_weights(X, sample_weight)
        known = self._known(X, offset)
        if self.multilabel_:
            if trials is not None or self.class_weight is not None:
                raise ValueError("trials and class_weight need a y of one column")
            if not ((y == 0) | (y == 1)).all():
                raise ValueError("y must be 0 or 1 everywhere where it has several columns")
            columns, self.classes_ = list(y.astype(np.int64).T), np.arange(y.shape[1])
        else:
            successes, trials, weight = self._outcomes(y, trials, weight)
            columns = [successes]
        self._learn_units(X, weight if trials is None else weight * trials)
        sampled = self.method == "sampling"
        x = self._dense_design(X) if sampled else self._design(X)
        outputs = [
            as_labelled_rows(x, column, trials=trials, weights=weight, predictor_offset=known)
            for column in columns
        ]
        self._draw_seed()
        results: list[Any] = []
        variances, corrections = [], []
        for i, data in enumerate(outputs):
            prior = self._learn_prior(x, self._bound(data))
            variances.append(self.weight_var_)
            model = LogisticRegression(prior)
            if sampled:
                results.append(self._sample(self._scaled(model), data, shift=i))
                continue
            fit = fit_logistic_regression(
                model, data, method=self.method, tolerance=self.tol, max_iterations=self.max_iter
            )
            corrections.append(correction_of_rows(fit, data, prior))
            results.append(fit)
        self.weight_var_ = np.array(variances) if self.multilabel_ else variances[0]
        self._warn_of_scales(X, self.weight_var_.max(axis=0) if self.multilabel_ else variances[0])
        if sampled:
            self.posterior_: list[Posterior] | None = results
            self._set_draws(np.concatenate([p.stack("weights") for p in results], axis=1))
            self._keep_scales(results)
            self.log_evidence_ = np.full(len(outputs), np.nan)
            return self
        self.posterior_ = None
        means, covs = (np.concatenate([getattr(f, part) for f in results]) for part in _MOMENTS)
        self._set_weights(*self._turned(x, means, covs, back=True))
        self.log_evidence_ = np.array([fit.objective for fit in results])
        self.n_iter_ = max(fit.num_iterations for fit in results)
        self._warn_unless(all(fit.converged for fit in results))
        self._warn_of_corrections(np.concatenate(corrections), x.shape[1])
        return self

    def _bound(self, data: LabelledRows) -> Any:
        """Of the log evidence, and the moments of q, for a prior: what variances are learned by."""

        def fit(prior: MvNormal) -> tuple[float, FloatArray, FloatArray]:
            found = fit_logistic_regression(LogisticRegression(prior), data, method="quadrature")
            return found.objective, found.mean, found.cov

        return fit

    def predict_proba(self, X: Any, offset: Any = None) -> FloatArray:
        """Probabilities averaged over the posterior.

        Parameters
        ----------
        X : array or sparse array, ``(n_samples, n_features)``
        offset : array, ``(n_samples,)``, optional
            Added to the log odds of each row.

        Returns
        -------
        array, ``(n_samples, 2)`` or ``(n_samples, n_labels)``
            Of the two classes; or that each of several labels is 1.
        """
        X = self._take_new(X)
        known = self._known(X, offset)
        if self.posterior_ is not None:
            x, draws = self._own_design(X), [p.stack("weights")[:, 0] for p in self.posterior_]
            probs = np.column_stack([_mean_share(x, d, known) for d in draws])
        else:
            x = self._design(X)
            mean, covs = self._turned(x, self._weights, self._covs)
            probs = self._average(x @ mean.T + known[:, None], predictor_vars(x, covs))
        return probs if self.multilabel_ else np.column_stack([1.0 - probs[:, 0], probs[:, 0]])

    def _binary(self, y: Any) -> IntArray:
        """0 or 1 for the two classes, which are remembered."""
        if np.ndim(y) == 1:
            as_classes(y)  # for what is missing
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if kind != "binary":
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {kind}."
                " (Counts of successes need trials=)"
            )
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y must have two classes, got one class only: {self.classes_[0]!r} in every row"
            )
        return np.asarray(labels)

    def _outcomes(self, y: Any, trials: Any, weight: FloatArray) -> tuple[Any, Any, FloatArray]:
        """Successes, trials (None for labels), and how many times each row counts."""
        if trials is None:
            labels = self._binary(y)
            each = self._class_weights(np.bincount(labels, weight, minlength=2).astype(np.float64))
            return labels, None, weight * each[labels]
        if self.class_weight is not None:
            raise ValueError("class_weight is of labels: leave it out where y counts successes")
        self.classes_ = np.arange(2)
        y, trials = as_counts(y, "y"), refuse_sums(as_counts(trials, "trials"), "trials")
        if y.shape != (len(weight),) or trials.shape != y.shape:
            raise ValueError(
                f"trials must have shape ({len(weight)},) as y has, got {trials.shape}, and y"
                f" {y.shape}"
            )
        if (y > trials).any():
            row = int(np.argmax(y > trials))
            raise ValueError(f"y must be at most trials, {trials[row]}, got {y[row]} at row {row}")
        return y, trials, weight

    def _average(self, mean: FloatArray, var: FloatArray) -> FloatArray:
        """E sigma(psi), psi ~ N(mean, var), as `average` says."""
        if self.average == "plug_in":
            return np.asarray(expit(mean))
        if self.average == "probit":
            return np.asarray(expit(mean / np.sqrt(1.0 + np.pi / 8.0 * var)))
        as_choice(self.average, "average", ("quadrature", "probit", "plug_in"))
        return logistic_expectations(mean, var)[1]

    def predict(self, X: Any, offset: Any = None) -> Any:
        """The more probable class of each row; with labels ``(n, L)``, 0 or 1 for each of them.

        Parameters
        ----------
        X : array, ``(n_samples, n_features)``
        offset : array, ``(n_samples,)``, optional
        """
        probs = self.predict_proba(X, offset)
        if getattr(self, "multilabel_", False):
            return (probs > 0.5).astype(np.int64)
        return self.classes_[(probs[:, 1] > 0.5).astype(np.int64)]

    def predict_log_proba(self, X: Any, offset: Any = None) -> FloatArray:
        """Logarithms of `predict_proba`.

        Parameters
        ----------
        X : array, ``(n_samples, n_features)``
        offset : array, ``(n_samples,)``, optional
        """
        return log_of(self.predict_proba(X, offset))

    def decision_function(self, X: Any, offset: Any = None) -> FloatArray:
        """Log odds of `predict_proba`, ``(n_samples,)`` or ``(n_samples, n_labels)``.

        Parameters
        ----------
        X : array, ``(n_samples, n_features)``
        offset : array, ``(n_samples,)``, optional
        """
        probs = self.predict_proba(X, offset)
        if not getattr(self, "multilabel_", False):
            probs = probs[:, 1]
        return np.asarray(logit(np.clip(probs, 1e-300, 1.0 - 1e-16)))

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, *, trials: Any = None, offset: Any = None
    ) -> float:
        """The share of labels, or of trials, that are of the class predicted for their row.

        Parameters
        ----------
        X : array, ``(n_samples, n_features)``
        y : array
            As in `fit`.
        sample_weight, trials, offset : arrays, ``(n_samples,)``, optional
        """
        if trials is None and offset is None:
            return float(super().score(X, y, sample_weight))
        above = self.predict_proba(X, offset)[:, 1] > 0.5
        if trials is None:
            hits, trials = self.classes_[above.astype(np.int64)] == np.asarray(y), 1.0
        else:
            y, trials = as_counts(y, "y"), refuse_sums(as_counts(trials, "trials"), "trials")
            hits = np.where(above, y, trials - y)
        weight = np.ones(len(above)) if sample_weight is None else np.asarray(sample_weight)
        return float(weight @ hits / np.sum(weight * trials))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.multi_label = True
        return tags


def _mean_share(x: Any, draws: FloatArray, known: FloatArray) -> FloatArray:
    """The mean of sigma(x' w + known) over draws of w, in blocks of them."""
    total = np.zeros(len(known))
    for start in range(0, len(draws), _DRAWS):
        total += expit(x @ draws[start : start + _DRAWS].T + known[:, None]).sum(axis=1)
    return total / len(draws)

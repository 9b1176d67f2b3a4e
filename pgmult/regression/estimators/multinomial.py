"""A scikit-learn estimator of Bayesian multinomial regression, by every method of the library.

>>> import numpy as np
>>> from pgmult.regression import MultinomialClassifier
>>> rng = np.random.default_rng(0)
>>> X = rng.standard_normal((200, 2))
>>> y = (X @ [[0.0, 2.0, -1.0], [1.0, 0.0, -2.0]] + rng.gumbel(size=(200, 3))).argmax(axis=1)
>>> fitted = MultinomialClassifier().fit(X, y)
>>> fitted.coef_.shape, fitted.coef_cov_.shape, fitted.predict_proba(X[:2]).shape
((3, 2), (3, 3, 3), (2, 3))
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from pgmult.core.arguments import as_choice, brief
from pgmult.core.sklearn import as_classes
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_counts
from pgmult.links import LogisticNormal, StickBreaking
from pgmult.priors.gaussian import MvNormal
from pgmult.regression.data import CountedRows, as_counted_rows, refuse_sums
from pgmult.regression.estimators._linear import (
    Coefficients,
    FixedPrior,
    HasColumns,
    LinearClassifier,
    correction_of_rows,
)
from pgmult.regression.fits.multinomial import (
    fit_softmax_regression,
    fit_stick_breaking_regression,
    softmax_probs,
    stick_probs,
)
from pgmult.regression.models.multinomial import SoftmaxRegression, StickBreakingRegression
from pgmult.sampling.posterior import Posterior
from pgmult.variational.bounds import LOG_SUM_EXP
from pgmult.variational.designs import SoftmaxRows
from pgmult.variational.fits import SiteFit, correction_of_fit
from pgmult.variational.sites import SoftmaxSite

_SOFTMAX = (
    "tilted", "log", "quadratic", "bohning", "adaptive", "taylor", "quadrature", "laplace",
)  # fmt: skip
_STICKS = {"sticks": "quadrature", "mean_field": "jaakkola_jordan"}
_SAMPLED = ("sampling", "sticks_sampling")
_METHODS = (*_SOFTMAX, "sampling", *_STICKS, "sticks_sampling")
_DRAWS = 64  # in a block of predictions


@dataclass(eq=False, repr=False, kw_only=True)
class MultinomialClassifier(LinearClassifier, FixedPrior):
    """Multinomial regression with Gaussian priors; predictions average over the posterior.

    Columns are standardised inside, and answers are in the units of X: the prior of a coefficient
    is N(0, weight_var) for a step of one standard deviation of its column, and that of the
    intercepts, at the means of the columns, N(0, intercept_var). The prior is proper, so separable
    labels and constant columns have a posterior.

    Parameters
    ----------
    method : str
        How outcomes depend on the weights, and how their posterior is found.

        Softmax, weights for every class: "quadrature" (the default) is the best Gaussian; "tilted",
        "log", "quadratic", "bohning" or "adaptive" maximise a bound of the evidence instead,
        "taylor" and "laplace" expand (see `pgmult.variational.bounds`). "sampling" samples the
        posterior itself, around such a Gaussian.
        Sticks, weights for every class but the last to break: "sticks_sampling" samples the
        posterior itself, "sticks" is its best Gaussian (quadrature), "mean_field" one by
        Pólya-gamma variables.
    covariance : {"full", "class"}
        With a softmax, whether one Gaussian has all classes' weights, O((n_classes n_weights)^3),
        or each class has its own, independent of the others. "laplace" is always full, and "log"
        and "quadratic", which use variances only, are always by class.
    weight_var : float, array of a variance for each column, or str
        Variances of the coefficients' prior, the same for all classes. "evidence", "ard", and with
        "sampling" and "sticks_sampling" "half_t" and "horseshoe", learn them: see
        `LogisticClassifier`. The evidence is that of "tilted" or "sticks", depending on the
        link.
    intercept_var : float
        Variance of the intercepts' prior.
    fit_intercept, scale_inputs : bool
        See `LogisticClassifier`.
    class_weight : mapping from class to number, "balanced" or None
        Weight of a count by its class: see `LogisticClassifier`.
    order : "frequency", "given" or sequence of int
        Order of the classes in stick breaking: see `pgmult.regression.as_counted_rows`.
    tol, max_iter : float, int
        Of the approximations.
    draws, tune, chains : int
        Of "sampling" and "sticks_sampling".
    random_state : int, numpy.random.RandomState or None
        Of "sampling" and "sticks_sampling".
    verbose : bool
        Whether sampling shows its progress.

    Attributes
    ----------
    classes_ : array, ``(n_classes,)``
        The labels; where y was counts, names of its columns in a DataFrame, else their numbers.
    coef_ : array, ``(n_outputs, n_features)``
        Posterior means; an output is a class, or a stick.
    intercept_ : array, ``(n_outputs,)``
    coef_cov_ : array, ``(n_outputs, n_weights, n_weights)``
        Posterior covariance of each output's coefficients and, last, the intercept.
    weight_var_ : array, ``(n_features,)``
        Variances of the prior as given or learned; posterior means where they were sampled.
    joint_cov_ : array, ``(n_outputs * n_weights, n_outputs * n_weights)``, or None
        Covariance of all outputs' weights, with ``covariance="full"`` and methods that use
        correlations; else None.
    stick_classes_ : array, ``(n_classes,)``
        The classes in the order of the sticks.
    log_evidence_ : float
        Log p(y), as the method bounds or approximates it; nan with "sampling" and
        "sticks_sampling".
    posterior_ : Posterior or None
        With "sampling" and "sticks_sampling".
    n_iter_ : int
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    Notes
    -----
    The default is what came nearest to long exact chains: of thirteen data sets "quadrature" had
    the smallest error of held-out probabilities on eleven, 0.0011 on average, "tilted" 0.0018,
    "taylor" 0.0046, and "laplace" 0.014 (``python tests/benchmarks/softmax_methods.py``; geometric
    means). It takes up to three times as long as "tilted".
    """

    method: str = field(default="quadrature", kw_only=False)
    covariance: Literal["full", "class"] = "full"
    order: str | Sequence[int] | IntArray = "frequency"
    tol: float = 1e-5
    max_iter: int = 1000

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "MultinomialClassifier":
        """Fit the weights.

        Parameters
        ----------
        X : array or sparse array, ``(n_samples, n_features)``
            A sparse one is made dense.
        y : array, ``(n_samples,)``, or array or DataFrame, ``(n_samples, n_classes)``
            Labels, or counts of the classes; the columns of a DataFrame name them.
        sample_weight : array, ``(n_samples,)``, optional
            How many times each row counts: see `LogisticClassifier.fit`.

        Raises
        ------
        ValueError
            If there is one class only, a count is not a non-negative integer, or an argument of
            the estimator is not one of those listed.

        Warns
        -----
        ApproximationWarning
            If the posterior is far from the Gaussian that the method takes it for.
        """
        names = y.columns if isinstance(y, HasColumns) else None
        as_choice(self.method, "method", _METHODS)
        as_choice(self.covariance, "covariance", ("full", "class"))
        X, y = self._take(X, y, multi_output=True)
        counts, weight = self._counts(y, names), self._row_weights(X, sample_weight)
        each = self._class_weights(weight @ counts)
        self._learn_units(X, weight * (counts @ each))
        x = self._dense_design(X)
        data = as_counted_rows(x, counts, order=self.order, weights=weight)
        if self.class_weight is not None:
            data = data.with_counts(data.counts * each)
        self._draw_seed()
        prior = self._learn_prior(x, self._bound(data))
        self._warn_of_scales(X, self.weight_var_)
        self._order = data.order
        self.stick_classes_ = self.classes_[data.order]
        self.posterior_: Posterior | None = None
        self._joint_cov = self.joint_cov_ = None
        if self.method in _SAMPLED:
            model = SoftmaxRegression if self.method == "sampling" else StickBreakingRegression
            self.posterior_ = self._sample(self._scaled(model(prior)), data)
            self._keep_scales([self.posterior_])
            self._set_draws(self.posterior_.stack("weights"))
            self.log_evidence_ = float("nan")
            return self
        self._found = fit = self._fit(data, prior)
        self._set_weights(fit.mean, fit.cov)
        if fit.joint_cov is not None:
            self._joint_cov = fit.joint_cov
            turn = np.kron(np.eye(len(fit.mean)), self._units.to_user)
            self.joint_cov_ = turn.T @ fit.joint_cov @ turn
        self.log_evidence_, self.n_iter_ = fit.objective, fit.num_iterations
        self._warn_unless(fit.converged)
        if self.method in _STICKS:
            sds = correction_of_rows(fit, data.sticks, prior)
            self._warn_of_corrections(sds, fit.mean.shape[1], "sticks_sampling")
        else:
            rows = SoftmaxRows(data.covariates, len(self.classes_))
            site = SoftmaxSite(data.counts, LOG_SUM_EXP["log"])
            self._warn_of_corrections(correction_of_fit(fit, rows, site, prior), fit.mean.size)
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the classes averaged over the posterior, ``(n_samples, n_classes)``.

        Parameters
        ----------
        X : array or sparse array, ``(n_samples, n_features)``
        """
        X = self._take_new(X)
        if self.posterior_ is not None:
            return self._average_draws(self.posterior_.stack("weights"), self._own_design(X))
        x = self._dense_design(X)
        if self.method in _STICKS:
            return stick_probs(self._found, x, self._order)
        return softmax_probs(self._found, x)

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
        counts = refuse_sums(as_counts(y, "y"), "y")
        weight = np.ones(len(counts)) if sample_weight is None else np.asarray(sample_weight)
        if counts.shape[1] != len(self.classes_):
            raise ValueError(
                f"y must have a column for each of {len(self.classes_)} classes, got shape"
                f" {counts.shape}"
            )
        best = self.predict_proba(X).argmax(axis=1)
        hits = counts[np.arange(len(counts)), best]
        return float(weight @ hits / (weight @ counts.sum(axis=1)))

    def _counts(self, y: Any, names: Any) -> IntArray:
        """Counts of the classes, which are remembered."""
        if np.ndim(y) == 2 and np.shape(y)[1] > 1:
            counts = refuse_sums(as_counts(y, "y"), "y")
            self.classes_ = np.arange(counts.shape[1]) if names is None else np.asarray(names)
            if len(set(self.classes_.tolist())) < len(self.classes_):
                raise ValueError("y must have a different name for each of its columns")
            return counts
        labels = column_or_1d(y, warn=True)
        self.classes_, index = as_classes(labels)
        check_classification_targets(labels)
        if len(self.classes_) < 2:
            raise ValueError(
                "y must have at least two classes, got one class only:"
                f" {self.classes_[0]!r} in every row"
            )
        return np.eye(len(self.classes_), dtype=np.int64)[index]

    def _fit(self, data: CountedRows, prior: MvNormal, method: str | None = None) -> SiteFit:
        method = self.method if method is None else method
        limits: dict[str, Any] = {"tolerance": self.tol, "max_iterations": self.max_iter}
        if method in _STICKS:
            return fit_stick_breaking_regression(data, prior, method=_STICKS[method], **limits)
        covariance: Literal["full", "class"] = "full" if method == "laplace" else self.covariance
        return fit_softmax_regression(data, prior, method=method, covariance=covariance, **limits)

    def _bound(self, data: CountedRows) -> Any:
        """Of the log evidence, and the moments of q, for a prior: what variances are learned by."""
        of_sticks = self.method in _STICKS or self.method == "sticks_sampling"
        method = "sticks" if of_sticks else "tilted"

        def fit(prior: MvNormal) -> tuple[float, FloatArray, FloatArray]:
            found = self._fit(data, prior, method)
            return found.objective, found.mean, found.cov

        return fit

    def coefficients(self, probability: float = 0.9, reference: Any = None) -> Coefficients:
        """Contrasts: each class's weights less those of a reference class, in the units of X.

        With a softmax they are what a column adds to the log odds of a class against the reference;
        the weights of one class alone mostly reflect the prior.

        Parameters
        ----------
        probability : float
            Of the intervals.
        reference : class, optional
            The first if left out.

        Raises
        ------
        ValueError
            If there is no such class; or with methods of sticks, whose weights depend on the order
            of the classes: use `AdditiveClassifier` for contrasts of these.
        """
        draws, gaussian = self._weight_draws()
        if draws.shape[1] < len(self.classes_):
            raise ValueError(
                f"method {self.method!r} has weights of sticks, which are no contrasts of classes"
                " (take method='quadrature', or posterior_.contrasts() of AdditiveClassifier)"
            )
        names = self.classes_.tolist()
        if reference is not None and reference not in names:
            raise ValueError(f"reference must be one of the classes, got {brief(reference)}")
        base = 0 if reference is None else names.index(reference)
        others = np.delete(np.arange(len(names)), base)
        if gaussian is not None:
            mean, own = gaussian[0], gaussian[1] ** 2
            var = own[others] + own[base]
            if self.joint_cov_ is not None:
                joint = self.joint_cov_.reshape(*mean.shape, *mean.shape)
                both = np.einsum("kwlw->klw", joint)
                var = var - 2.0 * both[others, base]
            gaussian = mean[others] - mean[base], np.sqrt(var)
        return Coefficients(
            draws[:, others] - draws[:, [base]], ("output", "weight"),
            {"output": self.classes_[others], "weight": self._weight_names()},
            caption=f"Coefficients of log odds against {names[base]}.",
            probability=probability, gaussian=gaussian, is_difference=True,
        )  # fmt: skip

    def _average_draws(self, draws: FloatArray, x: Any) -> FloatArray:
        x = x.toarray() if sparse.issparse(x) else x
        link = LogisticNormal() if self.method == "sampling" else StickBreaking(self._order)
        total = np.zeros((len(x), len(self.classes_)))
        for start in range(0, len(draws), _DRAWS):
            psi = np.einsum("nd,skd->snk", x, draws[start : start + _DRAWS])
            total += link.probs(psi).sum(axis=0)
        return total / len(draws)

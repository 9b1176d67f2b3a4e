"""Estimators in scikit-learn's manner, all of them faces of `AdditiveRegression`.

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> X = {"age": rng.integers(18, 80, size=200), "region": rng.choice(list("abcdefgh"), size=200)}
>>> y = np.where(X["age"] / 20.0 + rng.logistic(size=200) > 2.5, "left", "right")
>>> model = AdditiveClassifier("s(age) + (1 | region)", method="approximate", random_state=0)
>>> model.fit(X, y).predict_proba(X).shape
(200, 2)
>>> model.posterior_.comparisons("age").axes
('comparison', 'category')
>>> calls = rng.poisson(np.exp(0.5 + 0.02 * X["age"]))
>>> CountRegressor("age", method="approximate", random_state=0).fit(X, calls).coef_.round(2)
array([[0.01]])
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import d2_tweedie_score
from sklearn.utils import assert_all_finite, check_consistent_length, validation
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from pgmult.core.arguments import as_choice, as_flag, brief
from pgmult.core.labels import find_labels, labels_of
from pgmult.core.sklearn import as_classes, as_seed
from pgmult.core.typing import FloatArray
from pgmult.core.validate import as_counts, as_nonnegative
from pgmult.regression.answers import predicted_rows
from pgmult.regression.data import AdditiveRows
from pgmult.regression.models.additive import AdditiveRegression, LinkName
from pgmult.regression.rows import as_weights, rows_of
from pgmult.sampling.driver import sample

_MOST_CORRELATED = 4  # effects of a group whose correlations are learned
_OUTCOME = "outcome"


@dataclass(eq=False, repr=False, kw_only=True)
class _Additive(BaseEstimator):  # type: ignore[misc]
    """What the estimators share: columns, a formula, and draws."""

    formula: str | None = field(default=None, kw_only=False)
    groups: str | int | None = None
    priors: Mapping[str, Any] | None = None
    method: Literal["sampling", "approximate"] = "sampling"
    draws: int = 500
    tune: int = 100
    chains: int = 2
    random_state: int | np.random.RandomState | np.random.Generator | None = None
    verbose: bool = False

    def _rows(
        self, table: dict[str, Any], outcome: dict[str, object], weight: object, **more: Any
    ) -> AdditiveRows:
        """Rows of the columns of X, and of y, whose names do not matter."""
        check_consistent_length(*table.values(), *outcome.values())
        taken = _OUTCOME
        while any(name.startswith(taken) for name in table):
            taken += "_"
        columns = {f"{taken}{name}": values for name, values in outcome.items()}
        left, weights = ", ".join(columns), None
        if weight is not None:
            checked = validation._check_sample_weight(weight, next(iter(columns.values())))
            weights, numbers = f"{taken}weight", as_weights(checked, "sample_weight")
            if not numbers.any():
                raise ValueError("sample_weight must have at least one non-zero number, got zeros")
            columns[weights] = numbers
        left = f"c({left})" if len(outcome) > 1 else left
        formula = f"{left} ~ {self._right_side(list(table))}"
        return rows_of(formula, {**table, **columns}, weights=weights, **more)

    def _sample(self, data: AdditiveRows, link: LinkName = "auto") -> None:
        priors = {} if self.priors is None else self.priors
        model = AdditiveRegression(link=link, priors=priors, method=self.method)
        self.posterior_ = sample(
            model, data, draws=self.draws, tune=self.tune, chains=self.chains,
            random_seed=as_seed(self.random_state), progressbar=as_flag(self.verbose, "verbose"),
        )  # fmt: skip

    def _means(self, X: object) -> FloatArray:
        """Averaged over the posterior, ``(n_samples, num_categories)``."""
        validation.check_is_fitted(self)
        table, draws = self._columns(X, reset=False), self.draws * self.chains
        return predicted_rows(self.posterior_, table, None, None, draws, 0, "X", True).mean()

    def _weights(self) -> FloatArray:
        """Posterior means of fixed effects in the units of X, ``(num_weights, num_outputs)``."""
        validation.check_is_fitted(self)
        design, mean = self.posterior_.data.design, np.mean(self.posterior_["weights"], axis=(0, 1))
        effects = mean[:, : len(design.names)].T
        if design.names[0] != "Intercept":
            return np.asarray(effects / design.scale[:, None])
        return np.asarray(design.unscale(effects))

    @property
    def coef_(self) -> FloatArray:
        """Posterior means of the fixed effects but the intercept, a row an output."""
        return np.asarray(self._weights()[self.posterior_.data.design.names != "Intercept"].T)

    @property
    def intercept_(self) -> FloatArray:
        """Posterior mean of each output's intercept, where all columns are 0."""
        weights = self._weights()
        return np.asarray(weights[self.posterior_.data.design.names == "Intercept"].sum(axis=0))

    def _columns(self, X: Any, *, reset: bool) -> dict[str, Any]:
        """X as columns by name; arrays are checked as scikit-learn does."""
        if isinstance(X, Mapping) and not sparse.issparse(X):
            table = {str(name): np.asarray(values) for name, values in X.items()}
            if reset:
                self.n_features_in_ = len(table)
                self.feature_names_in_ = np.array(list(table), dtype=object)
        elif hasattr(X, "columns"):
            validation.validate_data(self, X, skip_check_array=True, reset=reset)
            table = {str(label): np.asarray(X[label]) for label in X.columns}
        else:
            array = validation.validate_data(self, X, dtype=np.float64, reset=reset)
            table = {f"x{j}": column for j, column in enumerate(array.T)}
        if not table:
            raise ValueError("X must have a column, got none")
        return table

    def _right_side(self, names: list[str]) -> str:
        """The formula, or that of all columns."""
        if self.formula is not None:
            if not isinstance(self.formula, str) or self.groups is not None:
                must = "formula must be what stands right of ~, and groups be left out then"
                got = f"{brief(self.formula)} and {brief(self.groups)}"
                raise ValueError(f"{must}, got {got}")
            return self.formula.partition("~")[2] or self.formula
        columns = {name: name if name.isidentifier() else f"`{name}`" for name in names}
        if self.groups is None:
            return " + ".join(columns.values())
        group = self.groups
        if type(group) is int and abs(group) < len(names):
            group = names[group]
        if not isinstance(group, str) or group not in columns:
            has = ", ".join(names)
            raise ValueError(f"groups must be a column of X, {has}, got {brief(group)}")
        group = columns.pop(group)
        bar = "|" if len(columns) < _MOST_CORRELATED else "||"
        both = " + ".join(["1", *columns.values()])
        return f"{both} + ({both} {bar} {group})"


@dataclass(eq=False, repr=False, kw_only=True)
class AdditiveClassifier(ClassifierMixin, _Additive):  # type: ignore[misc]
    """A classifier by `AdditiveRegression`: fixed effects, pooled groups, curves and areas.

    Parameters
    ----------
    formula : str, optional
        The right-hand side, in terms of the columns of a data frame (those of an array are ``x0``,
        ``x1``, ...). If left out, all columns are linear terms, and with `groups` their effects
        also differ by group.
    groups : str or int, optional
        Without a formula: name or number of the column that holds each row's group.
    link : str
        Link of several classes: see `AdditiveRegression`. That of two is logistic.
    priors : mapping, optional
        See `AdditiveRegression`.
    method : {"sampling", "approximate"}
        Sample the posterior, or draw from its approximation without a chain.
    draws, tune, chains : int
    random_state : int, numpy.random.RandomState or None
    verbose : bool
        Whether sampling shows its progress.

    Attributes
    ----------
    classes_ : array, ``(n_classes,)``
    posterior_ : Posterior
        A run with all its methods: ``comparisons``, ``contrasts``, ``groups``, ``report``...
    coef_ : array, ``(n_outputs, n_coefficients)``
        Posterior means of fixed effects, in the units of X: of the log odds of the second of two
        classes; of each class's score in a softmax.
    intercept_ : array, ``(n_outputs,)``
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    Notes
    -----
    Standard deviations of groups have half-t priors, so groups that do not differ are pooled.
    Labels of groups that were not in the fit are predicted with effects drawn from the distribution
    of their grouping.
    """

    link: LinkName = "auto"

    def fit(self, X: object, y: object, sample_weight: Any = None) -> "AdditiveClassifier":
        """Draw from the posterior.

        Parameters
        ----------
        X : data frame, mapping of columns, or array, ``(n_samples, n_features)``
        y : array, ``(n_samples,)``, or array or data frame, ``(n_samples, n_classes)``
            Classes, or counts of them; the columns of a data frame name them.
        sample_weight : array, ``(n_samples,)``, optional
            How many observations a row stands for; fractions are its share of the likelihood.

        Raises
        ------
        ValueError
            If there is one class only, or the formula cannot be read.
        """
        table = self._columns(X, reset=True)
        if y is None:
            raise ValueError("AdditiveClassifier requires y to be passed, but the target y is None")
        columns = getattr(y, "columns", None)
        y = np.asarray(y)
        assert_all_finite(y, input_name="y")
        are_counts = y.ndim == 2 and y.shape[1] > 1
        if are_counts:
            counts = as_counts(y, "y")
            self.classes_ = np.arange(counts.shape[1]) if columns is None else np.asarray(columns)
            outcome: dict[str, object] = {str(k): column for k, column in enumerate(counts.T)}
        else:
            y = validation.column_or_1d(y, warn=True)
            check_consistent_length(*table.values(), y)
            check_classification_targets(y)
            self.classes_, codes = as_classes(y)
            outcome, present = {"": labels_of(self.classes_, "y")[codes]}, codes
            if sample_weight is not None:
                sample_weight = validation._check_sample_weight(sample_weight, codes)
                present = codes[sample_weight > 0]
            if len(present) and (present == present[0]).all():
                only = self.classes_[present[0]]
                raise ValueError(f"y must have two classes, got one class: {only!r}")
        data, names = self._rows(table, outcome, sample_weight), labels_of(self.classes_, "y")
        if are_counts:
            data = replace(data, categories=names)
        self._places = find_labels(data.categories, names, "classes")
        self._sample(data, as_choice(self.link, "link", get_args(LinkName)))
        return self

    def predict_proba(self, X: object) -> FloatArray:
        """Probabilities of the classes, averaged over the posterior, ``(n_samples, n_classes)``.

        Parameters
        ----------
        X : as in `fit`
        """
        return self._means(X)[:, self._places]

    def predict(self, X: object) -> Any:
        """The most probable class of each row.

        Parameters
        ----------
        X : as in `fit`
        """
        best = self.predict_proba(X).argmax(axis=1)  # before classes_, which a fit brings
        return self.classes_[best]

    def _weights(self) -> FloatArray:
        """Effects on the classes in their order, or on the log odds of the second of two."""
        effects, data = super()._weights(), self.posterior_.data
        link = self.posterior_.model.link_name(data)
        if link == "softmax":
            return np.asarray(effects[:, self._places])
        if link != "logistic":
            got = f"{link!r} (posterior_.contrasts() has log odds)"
            raise AttributeError(f"coef_ of several classes needs the softmax link, got {got}")
        return effects if data.order[0] == self._places[1] else -effects


@dataclass(eq=False, repr=False, kw_only=True)
class CountRegressor(RegressorMixin, _Additive):  # type: ignore[misc]
    """Counts of events by `AdditiveRegression`: log rates are sums of terms.

    Parameters
    ----------
    formula, groups, priors, method, draws, tune, chains, random_state, verbose
        As in `AdditiveClassifier`; ``offset(log_hours)`` in a formula is an exposure.
    distribution : {"poisson", "negative_binomial"}
        The latter for counts that vary more than their means say.

    Attributes
    ----------
    posterior_ : Posterior
    coef_ : array, ``(1, n_coefficients)``
        Posterior means of fixed effects on the log rate, in the units of X.
    intercept_ : array, ``(1,)``
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn
    """

    distribution: Literal["poisson", "negative_binomial"] = "poisson"

    def fit(self, X: object, y: Any, sample_weight: object = None) -> "CountRegressor":
        """Draw from the posterior.

        Parameters
        ----------
        X : data frame, mapping of columns, or array, ``(n_samples, n_features)``
        y : array, ``(n_samples,)``
            Counts, not negative. A rate, weighted by its exposure, has the Poisson posterior of
            its count.
        sample_weight : array, ``(n_samples,)``, optional
            How many rows a row stands for; fractions are its share of the likelihood.
        """
        table = self._columns(X, reset=True)
        if y is None:
            raise ValueError("CountRegressor requires y to be passed, but the target y is None")
        y = validation.column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        type_of_target(y, input_name="y", raise_unknown=True)
        if len(y) < 2:
            raise ValueError(f"y must have two rows or more, got n_samples = {len(y)}")
        values, codes = np.unique(as_nonnegative(y, "y"), return_inverse=True)
        family = as_choice(self.distribution, "distribution", ("poisson", "negative_binomial"))
        data = self._rows(table, {"": codes}, sample_weight, family=family)
        numbers: Any = values if (values % 1.0).any() else values.astype(np.int64)
        self._sample(replace(data, counts=numbers[data.counts]))
        return self

    def predict(self, X: object) -> FloatArray:
        """Mean counts, averaged over the posterior, ``(n_samples,)``.

        Parameters
        ----------
        X : as in `fit`
        """
        return self._means(X)[:, 0]

    def score(self, X: Any, y: Any, sample_weight: object = None) -> float:
        """The share of the Poisson deviance that the means explain, 1 at best (scikit-learn's D2).

        Parameters
        ----------
        X : as in `fit`
        y : array, ``(n_samples,)``
        sample_weight : array, ``(n_samples,)``, optional
        """
        y, mean = as_nonnegative(y, "y"), np.maximum(self.predict(X), 1e-300)
        return float(d2_tweedie_score(y, mean, sample_weight=sample_weight, power=1))

    def __sklearn_tags__(self) -> object:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        tags.regressor_tags.poor_score = True  # of counts that are no counts
        return tags

"""A scikit-learn estimator of additive regressions: pooled groups and smooth curves, by formula.

>>> import numpy as np
>>> from pgmult.regression import AdditiveClassifier
>>> rng = np.random.default_rng(0)
>>> X = {"age": rng.integers(18, 80, size=200), "region": rng.choice(list("abcdefgh"), size=200)}
>>> y = np.where(X["age"] / 20.0 + rng.logistic(size=200) > 2.5, "left", "right")
>>> model = AdditiveClassifier("s(age) + (1 | region)", method="approximate", random_state=0)
>>> model.fit(X, y).predict_proba(X).shape
(200, 2)
>>> model.posterior_.comparisons("age").axes
('comparison', 'category')
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_consistent_length
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from pgmult.core.arguments import as_flag, brief
from pgmult.core.labels import find_labels, labels_of
from pgmult.core.sklearn import as_classes, as_seed
from pgmult.core.typing import FloatArray
from pgmult.regression.answers import Means
from pgmult.regression.data import as_row_numbers
from pgmult.regression.models.additive import AdditiveRegression
from pgmult.regression.rows import rows_of
from pgmult.sampling.driver import sample

_MOST_CORRELATED = 4  # effects of a group whose correlations are learned
_OUTCOME = "outcome"


@dataclass(eq=False, repr=False, kw_only=True)
class AdditiveClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier by `AdditiveRegression`: fixed effects, pooled groups, curves and areas.

    Parameters
    ----------
    formula : str, optional
        The right-hand side, in terms of the columns of a data frame (those of an array are ``x0``,
        ``x1``, ...). If left out, all columns are linear terms, and with `groups` their effects
        also differ by group.
    groups : str or int, optional
        Without a formula: name or number of the column that holds each row's group.
    effects : str
        "sticks", "categories", "correlated" or "softmax": see `AdditiveRegression`.
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
        With all its methods: ``comparisons``, ``groups``, ``loo``, ``report``...
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    Notes
    -----
    Standard deviations of groups have half-t priors, so groups that do not differ are pooled.
    Labels of groups that were not in the fit are predicted with effects drawn from the law of their
    grouping.
    """

    formula: str | None = field(default=None, kw_only=False)
    groups: str | int | None = None
    effects: Literal["sticks", "categories", "correlated", "softmax"] = "sticks"
    priors: Mapping[str, Any] | None = None
    method: Literal["sampling", "approximate"] = "sampling"
    draws: int = 500
    tune: int = 100
    chains: int = 2
    random_state: Any = None
    verbose: bool = False

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "AdditiveClassifier":
        """Draw from the posterior.

        Parameters
        ----------
        X : data frame, mapping of columns, or array, ``(n_samples, n_features)``
        y : array, ``(n_samples,)``
            Classes.
        sample_weight : array, ``(n_samples,)``, optional
            How many respondents a row stands for; fractions are its share of the likelihood.

        Raises
        ------
        ValueError
            If there is one class only, or the formula cannot be read.
        """
        table = self._columns(X, y, reset=True)
        if not table:
            raise ValueError("X must have a column, got none")
        check_consistent_length(*table.values(), y)
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        self.classes_, codes = as_classes(y)
        weight = None
        if sample_weight is not None:
            given = _check_sample_weight(sample_weight, codes)
            weight = as_row_numbers(given, "sample_weight", len(codes), default=1.0, minimum=0.0)
            if not weight.any():
                raise ValueError("sample_weight must have at least one non-zero number, got zeros")
        seen = np.unique(codes if weight is None else codes[weight > 0])
        if len(seen) < 2:
            raise ValueError(f"y must have two classes, got one class: {self.classes_[seen[0]]!r}")
        names = labels_of(self.classes_, "y")
        outcome = _OUTCOME
        while outcome in table:
            outcome += "_"
        formula = f"{outcome} ~ {self._right_side(list(table))}"
        rows = {**table, outcome: names[codes]}
        weights = None if weight is None else f"{outcome}_weight"
        if weights is not None:
            rows[weights] = weight
        data = rows_of(formula, rows, weights=weights)
        model = AdditiveRegression(
            effects=self.effects,
            priors={} if self.priors is None else self.priors,
            method=self.method,
        )
        self.posterior_ = sample(
            model, data, draws=self.draws, tune=self.tune, chains=self.chains,
            random_seed=as_seed(self.random_state), progressbar=as_flag(self.verbose, "verbose"),
        )  # fmt: skip
        self._places = find_labels(data.categories, names, "classes")
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the classes, averaged over the posterior, ``(n_samples, n_classes)``.

        Parameters
        ----------
        X : as in `fit`
        """
        check_is_fitted(self)
        table = self._columns(X, None, reset=False)
        draws = self.draws * self.chains
        means = Means.of(self.posterior_, table, None, None, True, draws, 0, "X")
        return means.mean()[:, self._places]

    def predict(self, X: Any) -> Any:
        """The most probable class of each row.

        Parameters
        ----------
        X : as in `fit`
        """
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def _columns(self, X: Any, y: Any, *, reset: bool) -> dict[str, Any]:
        """X as columns by name; arrays are checked as scikit-learn does."""
        if isinstance(X, Mapping) and not sparse.issparse(X):
            table: dict[str, Any] = {str(name): np.asarray(values) for name, values in X.items()}
            if reset:
                self.n_features_in_ = len(table)
                self.feature_names_in_ = np.array(list(table), dtype=object)
            return table
        if hasattr(X, "columns"):
            names = [str(name) for name in X.columns]
            validate_data(self, X, skip_check_array=True, reset=reset)
            return {name: np.asarray(X[own]) for name, own in zip(names, X.columns, strict=True)}
        if y is None:
            array = validate_data(self, X, dtype=np.float64, reset=reset)
        else:
            array, _ = validate_data(self, X, y, dtype=np.float64, reset=reset)
        return {f"x{j}": column for j, column in enumerate(array.T)}

    def _right_side(self, names: list[str]) -> str:
        """The formula, or that of all columns."""
        if self.formula is not None:
            if not isinstance(self.formula, str) or self.groups is not None:
                raise ValueError(
                    "formula must be what stands right of ~, and groups be left out then, got"
                    f" {brief(self.formula)} and {brief(self.groups)}"
                )
            return self.formula.partition("~")[2] or self.formula
        if self.groups is None:
            return " + ".join(map(_quoted, names))
        known = isinstance(self.groups, str) and self.groups in names
        if not known and not (type(self.groups) is int and abs(self.groups) < len(names)):
            raise ValueError(
                f"groups must be a column of X, {', '.join(names)}, got {brief(self.groups)}"
            )
        group = self.groups if isinstance(self.groups, str) else names[self.groups]
        rest = [_quoted(name) for name in names if name != group]
        bar = "|" if len(rest) < _MOST_CORRELATED else "||"
        both = " + ".join(["1", *rest])
        return f"{both} + ({both} {bar} {_quoted(group)})"


def _quoted(name: str) -> str:
    return name if name.isidentifier() else f"`{name}`"

"""Regressions from tables by formula: ``from_formula("vote ~ age + C(region)", table)``.

Formulas are those of `pgmult.formulas.language`: columns, ``C(column)`` for numbers that are
labels, ``a:b`` and ``a * b``, ``log(a)``, ``poly(a, 2)``, ``offset(a)``... ``- 1`` leaves the
intercept out. The left-hand side says what y is (`pgmult.regression.rows`): one column, of labels,
or of counts for `CountRegressor`; ``p(wins, games)`` for the logistic classifiers;
``c(red, green, blue)`` for `MultinomialClassifier`.

New data are tables with the same columns. They are coded by what was learnt from the first table,
such as labels of columns and knots of splines.

>>> import numpy as np, pandas as pd
>>> rng = np.random.default_rng(0)
>>> table = pd.DataFrame({"age": rng.normal(size=90), "region": ["north", "south", "west"] * 30})
>>> table["vote"] = np.where(table["age"] + rng.logistic(size=90) > 0.0, "yes", "no")
>>> fitted = from_formula("vote ~ age + C(region)", table)
>>> fitted.predict_proba(table[:2]).shape
(2, 2)
>>> fitted.coefficients().labels["weight"]
['age', 'C(region)[T.south]', 'C(region)[T.west]', 'Intercept']
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from pgmult.core.arguments import as_kind, under_name
from pgmult.core.tables import as_frame, exact_columns
from pgmult.core.typing import FloatArray
from pgmult.formulas.columns import table_column
from pgmult.formulas.design import Design
from pgmult.regression.estimators._linear import Coefficients, LinearPredictor
from pgmult.regression.estimators.counts import CountRegressor
from pgmult.regression.estimators.logistic import LogisticClassifier
from pgmult.regression.estimators.multinomial import MultinomialClassifier
from pgmult.regression.rows import ask, offset_at


@dataclass(frozen=True, eq=False, repr=False)
class FormulaFit:
    """A regression that was fitted by formula, for tables. See `from_formula`.

    Attributes
    ----------
    formula : str
    estimator : LinearPredictor
        Fitted; its columns are those of the formula.
    """

    formula: str
    estimator: Any
    _design: Design
    _offset: str | None

    def __repr__(self) -> str:
        return f"{self.formula}, by {self.estimator!r}\n{self.coefficients()}"

    def _repr_html_(self) -> str:
        """What a notebook shows: the coefficients with their intervals."""
        return replace(self.coefficients(), caption=f"{self.formula}.")._repr_html_()

    def design(self, table: Any) -> Any:
        """The columns that the estimator sees, as a DataFrame without the intercept.

        Parameters
        ----------
        table : data frame, or mapping from name to column
            With the columns that the formula names.
        """
        columns = exact_columns(table, "table")
        with under_name("table", of="covariates"):
            return _frame(self._design.like(columns))

    def predict(self, table: Any) -> Any:
        """What the estimator predicts for each row.

        Parameters
        ----------
        table : data frame, or mapping from name to column
        """
        return self._ask(self.estimator.predict, table)

    def predict_proba(self, table: Any) -> FloatArray:
        """Probabilities of the classes, of a classifier.

        Parameters
        ----------
        table : data frame, or mapping from name to column
        """
        if isinstance(self.estimator, CountRegressor):
            raise TypeError("counts have no classes: predict their means by predict(table)")
        return np.asarray(self._ask(self.estimator.predict_proba, table))

    def coefficients(self, probability: float = 0.9, **options: Any) -> Coefficients:
        """The weights of the columns: an `Estimand`.

        Parameters
        ----------
        probability : float
            Of the intervals: quantiles of draws where the posterior was sampled, else those of its
            Gaussian approximation.
        **options
            Of `MultinomialClassifier`, the ``reference`` class.
        """
        found: Coefficients = self.estimator.coefficients(probability, **options)
        return found

    def _ask(self, method: Any, table: Any) -> Any:
        columns = exact_columns(table, "table")
        with under_name("table", of="covariates"):
            design = self._design.like(columns)
        offset = offset_at(design, columns, self._offset)
        more = {} if offset is None else {"offset": offset}
        return method(_frame(design), **more)


def from_formula(
    formula: str,
    table: Any,
    estimator: Any = None,
    *,
    weights: str | None = None,
    offset: str | None = None,
) -> FormulaFit:
    """Fit a regression of the columns of a table.

    Parameters
    ----------
    formula : str
        ``"y ~ x1 + C(x2)"``: see `pgmult.regression.estimators.formula`.
    table : data frame, or mapping from name to column
        Without missing values in the columns that are named.
    estimator : LinearPredictor, optional
        A regression of this package with its parameters; it is not changed. If left out, y decides:
        `MultinomialClassifier` for ``c(...)`` and for labels of three classes or more, else
        `LogisticClassifier`. Numbers other than 0 and 1 need an estimator, since they may be
        counts. The formula decides whether there is an intercept.
    weights, offset : str, optional
        Columns of `sample_weight` and of `offset` in the estimator's `fit`.

    Returns
    -------
    FormulaFit

    Raises
    ------
    ValueError
        If the formula cannot be read, a column is unknown or has missing values, or new data have
        labels that the first table had not.
    ImportError
        Without pandas (``pip install 'pgmult[tables,sklearn]'``).
    """
    columns = exact_columns(table, "table")
    asked = ask(formula, columns)
    y, more = asked.y, {} if asked.trials is None else {"trials": asked.trials}
    y = as_frame(y) if isinstance(y, dict) else y
    if estimator is None:
        estimator = _usual(y, more)
    else:
        as_kind(estimator, "estimator", LinearPredictor)
    model = clone(estimator).set_params(fit_intercept=asked.formula.intercept)
    if weights is not None:
        more["sample_weight"] = table_column(columns, weights, "weights")
    known = offset_at(asked.design, columns, offset)
    if isinstance(model, MultinomialClassifier | CountRegressor) and "trials" in more:
        raise ValueError("p(successes, trials) is for logistic classifiers: see c(...) for counts")
    if known is not None:
        if isinstance(model, MultinomialClassifier):
            raise ValueError("offset is for regressions with one predictor a row")
        more["offset"] = known
    model.fit(_frame(asked.design), y, **more)
    return FormulaFit(formula, model, asked.design, offset)


def _usual(y: Any, more: dict[str, Any]) -> Any:
    if "trials" in more:
        return LogisticClassifier()
    if np.ndim(y) == 2:
        return MultinomialClassifier()
    labels = np.unique(np.asarray(y))
    if labels.dtype.kind in "iuf" and not np.isin(labels, (0, 1)).all():
        raise ValueError(
            "estimator must be given where the table has a y that is neither labels nor 0 and 1:"
            " CountRegressor() for counts, MultinomialClassifier() for numbered classes"
        )
    return LogisticClassifier() if len(labels) <= 2 else MultinomialClassifier()


def _frame(design: Design) -> Any:
    """Columns of a design as the estimator takes them, without the intercept."""
    names = design.names.tolist()
    found = {name: design.matrix[:, j] for j, name in enumerate(names) if name != "Intercept"}
    return as_frame(found)

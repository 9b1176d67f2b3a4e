"""Regressions from tables by formula: ``from_formula("vote ~ age + C(region)", table)``.

The right-hand side is `formulaic`'s: columns, ``C(column)`` for labels, ``a:b`` and ``a * b``,
``log(a)``, ``poly(a, 2)``... ``- 1`` leaves the intercept out. The left-hand side says what y is:

* ``vote``: one column, of labels, or of counts for `CountRegressor`;
* ``p(wins, games)``: successes and trials, for the logistic classifiers;
* ``c(red, green, blue)``: counts of several classes, for `MultinomialClassifier`.

New data are tables with the same columns. What the formula learnt from the first table, such as the
labels of a column and where a spline has its knots, it keeps.

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

import re
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from pgmult.core.arguments import as_kind, brief
from pgmult.core.tables import as_columns, as_frame
from pgmult.core.typing import FloatArray
from pgmult.regression.estimators._linear import Coefficients, LinearPredictor
from pgmult.regression.estimators.counts import CountRegressor
from pgmult.regression.estimators.logistic import LogisticClassifier
from pgmult.regression.estimators.multinomial import MultinomialClassifier

__all__ = ["FormulaFit", "from_formula"]

_CALL = re.compile(r"([pc])\s*\((.*)\)")


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
    _spec: Any
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
        return _design_of(self._spec, _as_table(table), self.estimator)

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

    def coefficients(self, probability: float = 0.9) -> Coefficients:
        """The weights of the columns: an `Estimand`.

        Parameters
        ----------
        probability : float
            Of the intervals: quantiles of draws where the posterior was sampled, else those of its
            Gaussian approximation.
        """
        found: Coefficients = self.estimator.coefficients(probability)
        return found

    def _ask(self, method: Any, table: Any) -> Any:
        table = _as_table(table)
        more = {} if self._offset is None else {"offset": _column(table, self._offset, "offset")}
        return method(self.design(table), **more)


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
        A regression of this package, with the parameters that it shall have; it is not changed.
        Left out, what y is decides: `MultinomialClassifier` for ``c(...)`` and for labels of three
        classes or more, else `LogisticClassifier`. Numbers that are not 0 and 1 need one: they may
        be counts. Whether there is an intercept, the formula says. A `GroupedLogisticClassifier`
        finds its column of groups in the table.
    weights, offset : str, optional
        Columns of `sample_weight` and of `offset` in the estimator's `fit`.

    Returns
    -------
    FormulaFit

    Raises
    ------
    ValueError
        If the formula cannot be evaluated, a column is unknown or has missing values, or new data
        have labels that the first table had not.
    ImportError
        Without formulaic and pandas (``pip install 'pgmult[formulas,sklearn]'``).
    """
    if not isinstance(formula, str) or formula.count("~") != 1:
        raise ValueError(f"formula must be 'y ~ columns', got {brief(formula)}")
    left, right = (side.strip() for side in formula.split("~"))
    table = _as_table(table)
    y, more = _outcome(left, table)
    if estimator is None:
        estimator = _usual(y, more)
    else:
        as_kind(estimator, "estimator", LinearPredictor)
    spec = _spec_of(right, formula, table, estimator)
    model = clone(estimator).set_params(fit_intercept="Intercept" in spec.column_names)
    for name, argument, column in (
        ("sample_weight", "weights", weights),
        ("offset", "offset", offset),
    ):
        if column is not None:
            more[name] = _column(table, column, argument)
    if isinstance(model, MultinomialClassifier | CountRegressor) and "trials" in more:
        raise ValueError("p(successes, trials) is for logistic classifiers: see c(...) for counts")
    if isinstance(model, MultinomialClassifier) and offset is not None:
        raise ValueError("offset is for regressions with one predictor a row")
    model.fit(_design_of(spec, table, model), y, **more)
    return FormulaFit(formula, model, spec, offset)


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


def _as_table(table: Any) -> Any:
    return as_frame(as_columns(table, "table"))


def _column(table: Any, name: Any, what: str) -> Any:
    if not isinstance(name, str) or name not in table.columns:
        known = ", ".join(map(str, table.columns))
        raise ValueError(
            f"{what} must name a column of the table, got {brief(name)}; it has {known}"
        )
    column = table[name]
    if column.isna().any():
        row = int(np.argmax(column.isna().to_numpy()))
        raise ValueError(f"column {name!r} has a missing value at row {row} (drop such rows)")
    return column.to_numpy()


def _outcome(left: str, table: Any) -> tuple[Any, dict[str, Any]]:
    """What `fit` takes for y, and trials where there are any."""
    call = _CALL.fullmatch(left)
    if call is None:
        return _column(table, left, "the left-hand side"), {}
    names = [name.strip() for name in call[2].split(",")]
    columns = [_column(table, name, "the left-hand side") for name in names]
    if call[1] == "p":
        if len(names) != 2:
            raise ValueError(f"p(successes, trials) takes two columns, got {left!r}")
        return columns[0], {"trials": columns[1]}
    if len(names) < 2:
        raise ValueError(f"c(...) takes two columns of counts or more, got {left!r}")
    return as_frame(dict(zip(names, columns, strict=True))), {}


def _spec_of(right: str, formula: str, table: Any, estimator: Any) -> Any:
    """What formulaic learns of the right-hand side from the first table."""
    try:
        import formulaic
        from formulaic.errors import FormulaicError
    except ImportError as error:
        raise ImportError(
            "formulas need the package formulaic: pip install 'pgmult[formulas]'"
        ) from error
    try:
        parsed = formulaic.Formula(right)
        if not isinstance(parsed, formulaic.SimpleFormula):
            raise ValueError(f"formula must have one right-hand side, got {formula!r}")
        for name in sorted(parsed.required_variables):
            _column(table, str(name), "the formula")
        with np.errstate(all="ignore"):  # what comes out is checked by the estimator
            spec = parsed.get_model_matrix(table, context=None).model_spec
    except FormulaicError as error:
        raise ValueError(
            f"formula {formula!r} cannot be evaluated: {error}; columns of the table:"
            f" {', '.join(map(str, table.columns))}"
        ) from error
    if len([name for name in spec.column_names if name != "Intercept"]) == 0:
        raise ValueError(f"formula must have a column beside the intercept, got {formula!r}")
    return spec


def _design_of(spec: Any, table: Any, estimator: Any) -> Any:
    from formulaic.errors import DataMismatchWarning, FormulaicError

    for name in sorted(spec.required_variables):
        _column(table, str(name), "the formula")
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("error", DataMismatchWarning)
            design = spec.get_model_matrix(table, context=None)
    except DataMismatchWarning as news:
        unknown = re.search(r"\{.*?\}", str(news))
        raise ValueError(
            "the table has labels that the first had not: " + (unknown[0] if unknown else str(news))
        ) from None
    except FormulaicError as error:
        raise ValueError(f"the formula cannot be evaluated on this table: {error}") from error
    design = as_frame({name: design[name].to_numpy() for name in spec.column_names})
    design = design.drop(columns=[name for name in ("Intercept",) if name in design.columns])
    groups = getattr(estimator, "groups", None)
    if groups is not None:
        design = design.assign(**{str(groups): _column(table, groups, "groups")})
    return design

"""Design matrices from columns, a matrix or a formula, and the same columns for other values.

A design matrix always begins with the intercept. Its columns of numbers are centred and scaled,
which `Design.unscale` undoes for coefficients. The design remembers how it was made: `Design.rows`
makes the same columns for other values.

Formulas are those of the package formulaic: ``~ year + party + year:party``, ``~ bs(year, df=4)``,
``~ C(party, contr.treatment("R"))``. The constant in the bases ``cr``, ``cs`` and ``cc`` of splines
is taken out of them, the intercept being there. Two things are our own, terms of the sum whose
effects share a variance that is learned (`pgmult.topics.data.terms`):

* ``(1 | author)``, an effect of each author; ``(1 | author:paper)`` of each combination;
* ``s(year)``, a smooth curve: ``year`` and its bends, ``s(year, knots=20)`` with more of them.
  ``party * s(year)`` has a curve for all, and deviations from it for each party.
"""

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmult.core.arguments import as_flag, as_strings, brief
from pgmult.core.labels import warn_of_look_alikes
from pgmult.core.typing import FloatArray, IntArray
from pgmult.sampling.codec import fingerprint
from pgmult.topics.data.terms import KNOTS, SplineTerm, Term, are_free, group_term, spline_term

__all__ = ["Columns", "Design", "as_mapping", "labels_only", "make_design"]

_COLLINEAR = 1e-7  # share of a column's length that the columns before it must leave unexplained


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The user's columns as plain arrays.

    Attributes
    ----------
    names : str array, ``(num_columns,)``
    values : array, ``(num_rows, num_columns)``
        The number itself, or the number of the label.
    num_levels : int array, ``(num_columns,)``
        How many labels a column has; 0 for numbers.
    levels : str array, ``(num_columns, max_levels)``
        The labels of each column, the reference first.
    """

    names: NDArray[np.str_]
    values: FloatArray
    num_levels: IntArray
    levels: NDArray[np.str_]

    def levels_of(self, column: int) -> list[str]:
        """Labels of one column; none for numbers."""
        return [str(level) for level in self.levels[column, : self.num_levels[column]]]

    def take(self, rows: IntArray | slice) -> "Columns":
        """Some of the rows."""
        return replace(self, values=self.values[rows])


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """A design matrix and how it was made.

    Attributes
    ----------
    names : str array, ``(num_covariates,)``
        The first is the intercept.
    matrix : array, ``(num_documents, num_covariates)``
        Centred and scaled; the first column is 1.
    centre, scale : arrays, ``(num_covariates,)``
        What was subtracted from each column, and what it was then divided by.
    columns : Columns
        What the matrix was made from.
    formula : str or None
        How; None for main effects of all columns.
    terms : tuple of GroupTerm and SplineTerm
        Random terms, in the formula's order.
    origin : Columns or None
        The rows that bases of splines were laid out on, where they are not the design's own.
    """

    names: NDArray[np.str_]
    matrix: FloatArray
    centre: FloatArray
    scale: FloatArray
    columns: Columns
    formula: str | None
    terms: tuple[Term, ...] = ()
    origin: Columns | None = None

    @property
    def num_effects(self) -> int:
        """Effects of all random terms together."""
        return sum(term.size for term in self.terms)

    @property
    def effect_names(self) -> NDArray[np.str_]:
        """Names of the effects, term after term, ``(num_effects,)``."""
        names = [f"{term.name}[{level}]" for term in self.terms for level in term.levels]
        return np.array(names, dtype=np.str_)

    @property
    def coding(self) -> str:
        """A fingerprint of all that made the columns: means, scales, labels, knots.

        Coefficients of designs that differ in any of these mean different things, whatever the
        columns' names.
        """
        origin = self.origin or self.columns
        parts = [
            (t.knots, t.bends, t.line) if isinstance(t, SplineTerm) else (t.levels,)
            for t in self.terms
        ]
        made = (self.formula, self.names, self.centre, self.scale, tuple(parts))
        return fingerprint((made, (origin.names, origin.values, origin.num_levels, origin.levels)))

    def mean(self, coefficients: FloatArray, effects: FloatArray) -> FloatArray:
        """The mean of psi, ``(num_documents, n)``, from all coefficients and effects."""
        mean = np.asarray(np.einsum("rp,pn->rn", self.matrix, coefficients))
        for term, its in zip(self.terms, self.split(effects), strict=True):
            mean += term.mean(its)
        return mean

    def split(self, effects: FloatArray) -> list[FloatArray]:
        """Effects ``(num_effects, ...)`` of each term by itself."""
        bounds = np.cumsum([0, *(term.size for term in self.terms)])
        return [effects[a:b] for a, b in pairwise(bounds)]

    def covariances(
        self, Sigma: FloatArray, variances: FloatArray, free: FloatArray
    ) -> tuple[IntArray, FloatArray]:
        """Covariances of psi, unknown levels having effects of the prior.

        Parameters
        ----------
        Sigma : array, ``(n, n)``
        variances : array, ``(num_shared,)``
            Rho of random terms, in units of Sigma.
        free : array, ``(num_free, n, n)``
            Omega of groupings that have a covariance of their own.

        Returns
        -------
        which : int array, ``(num_documents,)``
        covariances : array, ``(num_covariances, n, n)``
            Few: documents whose terms are known alike share one.
        """
        if not self.terms:
            return np.zeros(len(self.matrix), dtype=np.int64), Sigma[None]
        shared, own = iter(variances), iter(free)
        each = [next(own) if it else next(shared) * Sigma for it in are_free(self.terms, free)]
        unseen = np.column_stack([term.unseen() for term in self.terms])
        kinds, which = np.unique(unseen, axis=0, return_inverse=True)
        return which.reshape(-1), Sigma + np.einsum("mt,tij->mij", kinds, np.stack(each))

    def take(self, rows: IntArray | slice) -> "Design":
        """The design of some documents, bases of splines as they are."""
        return replace(
            self, matrix=np.ascontiguousarray(self.matrix[rows]), columns=self.columns.take(rows),
            terms=tuple(term.take(rows) for term in self.terms), origin=self.origin or self.columns,
        )  # fmt: skip

    def like(
        self, covariates: Any, *, unseen: bool = False, num_rows: int | None = None
    ) -> "Design":
        """The same design, for other documents.

        Parameters
        ----------
        covariates : as for `rows`
        unseen : bool
            Whether grouping columns may hold labels that the design does not know. The effect of
            such a label is not known, and adds to the variance.
        num_rows : int, optional
            How many documents there must be.
        """
        given = as_mapping(covariates, [str(name) for name in self.columns.names])
        if num_rows is not None:
            given = {
                name: column if np.ndim(column) else [column] * num_rows
                for name, column in given.items()
            }
        columns = self._read(given)
        if num_rows is not None and len(columns.values) != num_rows:
            raise ValueError(
                f"covariates must have a row for each of the {num_rows} documents of corpus,"
                f" got {len(columns.values)}"
            )
        return replace(
            self, matrix=self.rows(given), columns=columns, origin=self.origin or self.columns,
            terms=self.term_rows(given, unseen=unseen),
        )  # fmt: skip

    def term_rows(self, covariates: Any, *, unseen: bool = False) -> tuple[Term, ...]:
        """The random terms at other values of their columns: see `like`."""
        given = as_mapping(covariates, [str(name) for name in self.columns.names])
        origin, rows = self.origin or self.columns, self._read(given)
        num_rows = len(rows.values)
        terms: list[Term] = []
        for term in self.terms:
            if isinstance(term, SplineTerm):
                x = _numbers(term.expression, origin, rows)
                multipliers = _multipliers(term.factors, origin, rows)[1]
                terms.append(replace(term, basis=term.rows(x, multipliers)))
                continue
            labels = _group_labels(term.variables, given, num_rows)
            known = {str(level): i for i, level in enumerate(term.levels)}
            codes = np.array([known.get(label, -1) for label in labels], dtype=np.int64)
            if not unseen and (codes < 0).any():
                row = int(np.argmin(codes))
                raise ValueError(
                    f"column {':'.join(term.variables)!r} must hold a label of {term.name!r}, got"
                    f" {labels[row]!r} at row {row} (unseen=True takes it for a new one)"
                )
            terms.append(replace(term, codes=codes))
        return tuple(terms)

    def _read(self, given: Mapping[str, Any]) -> Columns:
        """Columns at new rows; grouping columns count where there is no other."""
        grouping = [name for term in self.terms for name in term.variables if name in given]
        lengths = [np.size(given[name]) for name in grouping if np.ndim(given[name])]
        return _read_columns(given, known=self.columns, at_least=max(lengths, default=1))

    def rows(self, covariates: Any) -> FloatArray:
        """Rows of the design matrix for other values of the same columns.

        Parameters
        ----------
        covariates : mapping, pandas DataFrame or matrix
            Every column that the design was made from, numbers as numbers and labels as labels;
            others are ignored. In a mapping a single value serves all rows. A matrix must have
            the columns of the matrix that the design was made from.

        Returns
        -------
        array, ``(num_rows, num_covariates)``

        Raises
        ------
        ValueError
            If a column is missing, has a missing value or a label that the design does not know.
        """
        given = as_mapping(covariates, [str(name) for name in self.columns.names])
        matrix = _evaluate(self.formula, self.origin or self.columns, self._read(given))[1]
        return (matrix - self.centre) / self.scale

    def unscale(self, coefficients: FloatArray) -> FloatArray:
        """Coefficients of the covariates as given, before they were centred and scaled.

        Parameters
        ----------
        coefficients : array, ``(..., num_covariates, n)``
            Of the design matrix.
        """
        slopes = coefficients / self.scale[:, None]
        slopes[..., 0, :] -= np.einsum("p,...pn->...n", self.centre, slopes)
        return slopes


def make_design(
    covariates: Any,
    num_rows: int,
    formula: str | None = None,
    names: Sequence[str] | None = None,
    standardize: bool = True,
) -> Design:
    """A design of so many rows: see `pgmult.topics.with_covariates`, which describes the rest."""
    given = as_mapping(covariates, names)
    standardize = as_flag(standardize, "standardize")
    if formula is not None and not isinstance(formula, str):
        raise TypeError(f"formula must be a string, got {brief(formula)}")
    whole = given
    if formula is not None:
        fixed = _parse(formula).fixed_text
        given = {name: column for name, column in given.items() if _mentions(fixed, name)}
    columns = _read_columns(given, num_rows=num_rows)
    labels, matrix = _evaluate(formula, columns, columns, whole)
    _check_design(labels, matrix)
    centre, scale = np.zeros(len(labels)), np.ones(len(labels))
    if standardize:
        plain = ((matrix == 0.0) | (matrix == 1.0)).all(axis=0)
        centre[~plain] = matrix[:, ~plain].mean(axis=0)
        scale[~plain] = matrix[:, ~plain].std(axis=0)
    terms = () if formula is None else _make_terms(formula, columns, whole, num_rows)
    matrix = (matrix - centre) / scale
    return Design(np.array(labels), matrix, centre, scale, columns, formula, terms)


# --------------------------------------------------------------------------- reading columns


def as_mapping(covariates: Any, names: Sequence[str] | None) -> dict[str, Any]:
    """Columns by name, from a mapping, a DataFrame or a matrix."""
    if hasattr(covariates, "items"):
        pairs = [(str(name), column) for name, column in covariates.items()]
        columns = dict(pairs)
        if len(columns) < len(pairs):
            raise ValueError(
                "covariates must have columns of different names, got"
                f" {', '.join(name for name, _ in pairs)}"
            )
        return columns
    try:
        matrix = np.asanyarray(covariates)
    except ValueError as error:
        raise ValueError(f"covariates must be columns or a matrix: {error}") from None
    if names is not None:
        names = as_strings(names, "names")
    if matrix.ndim != 2:
        raise ValueError(
            "covariates must be a mapping of columns, a DataFrame or a matrix (documents,"
            f" covariates), got {type(covariates).__name__} with shape {matrix.shape}"
        )
    if names is None:
        names = [f"x{j}" for j in range(matrix.shape[1])]
    if len(names) != matrix.shape[1] or len(set(names)) < len(names):
        raise ValueError(
            f"covariates must have {len(names)} columns, each with its own name"
            f" (names: {', '.join(names)}), got {matrix.shape[1]}"
        )
    return {str(name): matrix[:, j] for j, name in enumerate(names)}


def _mentions(formula: str, name: str) -> bool:
    quoted, rest = re.findall("`([^`]+)`", formula), re.sub("`[^`]+`", " ", formula)
    return name in quoted or re.search(rf"(?<!\w){re.escape(name)}(?!\w)", rest) is not None


def _read_columns(
    given: Mapping[str, Any],
    *,
    num_rows: int | None = None,
    known: Columns | None = None,
    at_least: int = 1,
) -> Columns:
    """Checked columns: for all documents of a corpus, or more rows for columns known already."""
    names = list(given) if known is None else [str(name) for name in known.names]
    absent = [name for name in names if name not in given]
    if absent:
        raise ValueError(f"covariates must have a column {absent[0]!r}, got {', '.join(given)}")
    if known is not None:
        lengths = [np.size(given[name]) for name in names if np.ndim(given[name])]
        num_rows = max(lengths, default=at_least)
        given = {
            name: given[name] if np.ndim(given[name]) else [given[name]] * num_rows
            for name in names
        }
    values, levels = [], []
    for j, name in enumerate(names):
        if np.shape(given[name]) != (num_rows,):
            raise ValueError(
                f"column {name!r} of covariates must have one value for each of the {num_rows} rows"
                f" (documents of the corpus), got shape {np.shape(given[name])}"
            )
        column, labels = _read_column(
            name, given[name], None if known is None else known.levels_of(j)
        )
        values.append(column)
        levels.append(labels)
    width = max((len(labels) for labels in levels), default=0)
    padded = [labels + [""] * (width - len(labels)) for labels in levels]
    return Columns(
        np.array(names, dtype=np.str_),
        np.array(values).reshape(len(names), num_rows or 0).T.copy(),
        np.array([len(labels) for labels in levels], dtype=np.int64),
        np.array(padded, dtype=np.str_).reshape(len(names), width),
    )


def _read_column(name: str, column: Any, known: list[str] | None) -> tuple[FloatArray, list[str]]:
    """Numbers, or numbers of labels and the labels."""
    dtype = getattr(column, "dtype", None)
    categories = getattr(dtype, "categories", None)
    items = np.asarray(column).tolist() if dtype is not None else list(column)
    missing = np.array([_is_missing(item) for item in items], dtype=bool)
    if isinstance(column, np.ma.MaskedArray):
        missing |= np.ma.getmaskarray(column)
    if missing.any():
        raise ValueError(
            f"column {name!r} has a missing value at row {int(np.argmax(missing))} (drop such"
            " documents, as --drop-incomplete does, or fill in a value and add a column that says"
            " so)"
        )
    is_date = getattr(dtype, "kind", "O") in "mM"
    strange = [x for x in items if is_date or not isinstance(x, Real | str | np.bool_)]
    if strange:
        raise TypeError(
            f"column {name!r} must hold numbers or labels, got {dtype or type(strange[0]).__name__}"
            " (turn dates into numbers, such as years)"
        )
    is_number = [isinstance(x, Real) and not isinstance(x, bool) for x in items]
    if all(is_number) and categories is None and not known:
        numbers = np.array(items, dtype=np.float64)
        bad = ~np.isfinite(numbers)
        if bad.any():
            row = int(np.argmax(bad))
            raise ValueError(f"column {name!r} must be finite, got {numbers[row]} at row {row}")
        return numbers, []
    if known == []:
        raise ValueError(f"column {name!r} must hold numbers, as before, got {items[0]!r}")
    if any(is_number) and not all(is_number):
        raise TypeError(f"column {name!r} must hold numbers or labels, it mixes the two")
    texts = [str(item) for item in items]
    if known:
        unknown = [text for text in texts if text not in known]
        if unknown:
            raise ValueError(
                f"column {name!r} must be one of {', '.join(known)}, got {unknown[0]!r}"
            )
        levels = known
    else:
        present = set(texts)
        order = sorted(present) if categories is None else [str(level) for level in categories]
        levels = [level for level in order if level in present]
        warn_of_look_alikes(levels, f"column {name!r}")
    place = {level: i for i, level in enumerate(levels)}
    return np.array([place[text] for text in texts], dtype=np.float64), levels


def _is_missing(item: Any) -> bool:
    not_a_number = isinstance(item, Real) and item != item
    return item is None or not_a_number or type(item).__name__ in ("NAType", "NaTType")


# --------------------------------------------------------------------------- making the design


def _evaluate(
    formula: str | None, columns: Columns, rows: Columns, there: Iterable[str] = ()
) -> tuple[list[str], FloatArray]:
    """Names and values of covariates at `rows`, as the design of `columns` has them.

    An error names the columns that are `there`, also those that the formula does not mention.
    """
    labels, matrix = (
        _main_effects(rows) if formula is None else _evaluate_formula(formula, columns, rows, there)
    )
    bad = ~np.isfinite(matrix)
    if bad.any():
        row, j = np.unravel_index(int(np.argmax(bad)), matrix.shape)
        raise ValueError(
            f"covariates must be finite: {labels[j]!r} is not, got {matrix[row, j]} at row {row}"
        )
    return labels, matrix


def _main_effects(columns: Columns) -> tuple[list[str], FloatArray]:
    labels, effects = ["Intercept"], [np.ones(len(columns.values))]
    for j, name in enumerate(columns.names):
        values, levels = columns.values[:, j], columns.levels_of(j)
        if levels:
            labels += [f"{name}[T.{level}]" for level in levels[1:]]
            effects += [(values == i).astype(np.float64) for i in range(1, len(levels))]
        else:
            labels.append(str(name))
            effects.append(values)
    return labels, np.column_stack(effects)


def _evaluate_formula(
    formula: str, columns: Columns, rows: Columns, there: Iterable[str]
) -> tuple[list[str], FloatArray]:
    labels, matrix = _model_matrix(_parse(formula).fixed, formula, columns, rows, there)
    if "Intercept" not in labels:
        raise ValueError(
            f"formula must have an intercept, got {formula!r} (leave out 0 and -1: the effects of"
            " labels are then against the reference)"
        )
    return labels, matrix


# --------------------------------------------------------------------------- formulas

_GROUP = re.compile(r"\(\s*1\s*\|([^()|]*)\)")
_PLACE = re.compile(r"_group_(\d+)_")
_COLOURS = re.compile("\x1b\\[[0-9;]*m|[\u29db\u29da]")


@dataclass(frozen=True, slots=True)
class _Parsed:
    """A formula taken apart.

    Attributes
    ----------
    fixed : formulaic formula
        Without random terms, ``s(x)`` for a straight line.
    fixed_text : str
        The formula without groupings: what its other columns are found in.
    terms : tuple of (name, what, factors, knots)
        Random terms in order: groupings' columns are in `what`, and knots is 0.
    """

    fixed: Any
    fixed_text: str
    terms: tuple[tuple[str, str, tuple[str, ...], int], ...]


def _formulaic() -> Any:
    try:
        import formulaic
    except ImportError as error:
        raise ImportError(
            "formulas need the package formulaic: pip install 'pgmult[formulas]' (or pass columns"
            " without a formula)"
        ) from error
    return formulaic


def _formula(text: str, shown: str) -> Any:
    """What formulaic reads in a text; errors show the user's."""
    formulaic = _formulaic()
    from formulaic.errors import FormulaicError

    try:
        return formulaic.Formula(text)
    except FormulaicError as error:
        raise ValueError(f"formula {shown!r} cannot be evaluated: {_plain(error)}") from None


def _parse(formula: str) -> _Parsed:
    """Take a formula apart: groupings by their bars, curves among the terms of the rest."""
    formulaic = _formulaic()
    from formulaic.parser.types import Term as FormulaTerm

    groups = [" ".join(text.split()) for text in _GROUP.findall(formula)]
    numbers = iter(range(len(groups)))
    text = _GROUP.sub(lambda _: f"_group_{next(numbers)}_", formula)
    if "|" in text:
        raise ValueError(
            f"formula must write groups as (1 | author), got {formula!r} (slopes that vary by group"
            " are not supported)"
        )
    parsed = _formula(text, formula)
    if not isinstance(parsed, formulaic.SimpleFormula):
        raise ValueError(f"formula must have a right-hand side only, got {formula!r}")
    fixed: list[Any] = []
    terms: list[tuple[str, str, tuple[str, ...], int]] = []
    for term in parsed:
        expressions = [factor.expr for factor in term.factors]
        curves = [
            (i, curve) for i, expr in enumerate(expressions) if (curve := _curve(expr, formula))
        ]
        group = [place for expr in expressions if (place := _PLACE.fullmatch(expr))]
        if (group and len(expressions) > 1) or len(curves) > 1:
            raise ValueError(
                f"formula must add (1 | author) as a term of its own, and multiply at most one s(x)"
                f" in a term, got {formula!r}"
            )
        if group:
            variables = groups[int(group[0].group(1))]
            terms.append((f"1 | {variables}", variables, (), 0))
            continue
        if curves:
            (at, (x, knots)) = curves[0]
            others = tuple(expr for i, expr in enumerate(expressions) if i != at)
            terms.append((":".join(expressions), x, others, knots))
            straight = _straight(x, formula)
            factors = [f for i, f in enumerate(term.factors) if i != at]
            term = FormulaTerm([*factors[:at], *straight, *factors[at:]])
        fixed.append(term)
    names = [name for name, *_ in terms]
    if len(set(names)) < len(names):
        raise ValueError(f"formula must have each random term once, got {formula!r}")
    unique = list(dict.fromkeys(fixed))
    return _Parsed(formulaic.Formula(unique), _PLACE.sub(" ", text), tuple(terms))


def _straight(x: str, formula: str) -> list[Any]:
    """The factor of a curve's straight line."""
    terms = list(_formula(f"0 + {x}", formula))
    if len(terms) != 1 or len(terms[0].factors) != 1:
        raise ValueError(f"s({x}) must run over one column of numbers, in {formula!r}")
    return list(terms[0].factors)


def _curve(expression: str, formula: str) -> tuple[str, int] | None:
    """What a curve ``s(x, knots=10)`` runs over and how many knots it has; None for others."""
    try:
        call = ast.parse(expression, mode="eval").body
    except SyntaxError:  # a quoted name
        if expression.startswith("s("):
            raise ValueError(
                f"formula must write curves over columns with plain names, got {expression!r}"
            ) from None
        return None
    if not (isinstance(call, ast.Call) and getattr(call.func, "id", None) == "s"):
        return None
    options = {option.arg: option.value for option in call.keywords}
    knots = options.pop("knots", ast.Constant(KNOTS))
    value = getattr(knots, "value", None)
    if len(call.args) != 1 or options or type(value) is not int or value < 4:
        raise ValueError(
            f"formula must write curves as s(x) or s(x, knots=10), with 4 knots at least, got"
            f" {expression!r} in {formula!r}"
        )
    return ast.unparse(call.args[0]), value


def _make_terms(
    formula: str, columns: Columns, given: Mapping[str, Any], num_rows: int
) -> tuple[Term, ...]:
    """The random terms of a formula."""
    terms: list[Term] = []
    for name, what, factors, knots in _parse(formula).terms:
        if knots:
            x = _numbers(what, columns, columns)
            labels, multipliers = _multipliers(factors, columns, columns)
            text = " ".join((what, *factors))
            variables = [str(column) for column in columns.names if _mentions(text, str(column))]
            terms.append(spline_term(name, what, variables, x, multipliers, labels, factors, knots))
            continue
        variables = [part.strip().strip("`") for part in what.split(":")]
        absent = [column for column in variables if column not in given]
        if absent:
            raise ValueError(
                f"formula {formula!r} names {absent[0]!r}; columns of covariates:"
                f" {', '.join(given) or 'none'}"
            )
        term = group_term(name, variables, _group_labels(variables, given, num_rows))
        if term.size < 2:
            raise ValueError(f"({name}) needs two groups at least, got {', '.join(term.levels)}")
        terms.append(term)
    return tuple(terms)


def _numbers(expression: str, columns: Columns, rows: Columns) -> FloatArray:
    """The one column of numbers that an expression gives, ``(num_rows,)``."""
    formula = _formula(f"0 + {expression}", f"s({expression})")
    matrix = _model_matrix(formula, f"s({expression})", columns, rows)[1]
    if matrix.shape[1] != 1 or not np.isfinite(matrix).all():
        raise ValueError(
            f"s({expression}) must run over one column of finite numbers, got {matrix.shape[1]}"
            " columns"
            + (" (labels have no curve: make numbers of dates)" if matrix.shape[1] > 1 else "")
        )
    return matrix[:, 0]


def _multipliers(
    factors: Sequence[str], columns: Columns, rows: Columns
) -> tuple[list[str], FloatArray]:
    """What a curve is multiplied by: an indicator of every label, none of them the reference."""
    if not factors:
        return [""], np.ones((len(rows.values), 1))
    text = ":".join(factors)
    labels, matrix = _model_matrix(_formula(f"0 + {text}", text), text, columns, rows)
    return [f"{label}:" for label in labels], matrix


def _group_labels(variables: Sequence[str], given: Mapping[str, Any], num_rows: int) -> list[str]:
    """A label a row: those of the grouping columns, joined."""
    parts = []
    for name in variables:
        if name not in given:
            raise ValueError(f"covariates must have a column {name!r}, got {', '.join(given)}")
        column = given[name]
        if np.ndim(column) == 0:
            column = [column] * num_rows
        if np.shape(column) != (num_rows,):
            raise ValueError(
                f"column {name!r} of covariates must have one value for each of the {num_rows} rows"
                f" (documents of the corpus), got shape {np.shape(column)}"
            )
        parts.append(_labels_of(name, column))
    return [":".join(row) for row in zip(*parts, strict=True)]


def labels_only(name: str, column: Any) -> list[str]:
    """A column of labels; numbers are refused."""
    values, levels = _read_column(name, column, None)
    if not levels:
        raise TypeError(
            f"column {name!r} must hold labels, got numbers (cut them into labels, such as decades,"
            " or turn codes into strings)"
        )
    return [levels[int(value)] for value in values]


def _labels_of(name: str, column: Any) -> list[str]:
    """A column as labels, whole numbers among them."""
    values, levels = _read_column(name, column, None)
    if levels:
        return [levels[int(value)] for value in values]
    return [str(int(value)) if value == int(value) else repr(float(value)) for value in values]


def _model_matrix(
    formula: Any, text: str, columns: Columns, rows: Columns, there: Iterable[str] = ()
) -> tuple[list[str], FloatArray]:
    """Names and values of a formulaic formula's columns at `rows`, laid out on `columns`."""
    from formulaic.errors import FormulaicError
    from formulaic.transforms.cubic_spline import cubic_spline
    from formulaic.utils.stateful_transforms import stateful_transform

    natural = partial(cubic_spline, cyclic=False, constraints="center")
    cyclic = partial(cubic_spline, cyclic=True, constraints="center")
    own = {"cr": stateful_transform(natural), "cc": stateful_transform(cyclic)}
    context = {**own, "cs": own["cr"]}
    try:
        with np.errstate(all="ignore"):  # what comes out is checked
            fitted = formula.get_model_matrix(
                _as_frame(columns), context=context, na_action="ignore"
            )
            labels = [str(label) for label in fitted.columns]
            if rows is not columns:
                fitted = fitted.model_spec.get_model_matrix(_as_frame(rows), context=context)
    except FormulaicError as error:
        raise ValueError(
            f"formula {text!r} cannot be evaluated: {_plain(error)}; columns of covariates:"
            f" {', '.join(there or columns.names) or 'none'}"
        ) from None
    return labels, np.ascontiguousarray(fitted.to_numpy(), dtype=np.float64)


def _plain(error: Exception) -> str:
    """An error's message on one line, without colours."""
    return " ".join(_COLOURS.sub("", str(error)).split())


def _as_frame(columns: Columns) -> Any:
    import pandas as pd

    frame = {}
    for j, name in enumerate(columns.names):
        values, levels = columns.values[:, j], columns.levels_of(j)
        labelled = pd.Categorical.from_codes(values.astype(int), levels) if levels else values
        frame[str(name)] = labelled
    return pd.DataFrame(frame, index=range(len(columns.values)))


def _check_design(labels: list[str], matrix: FloatArray) -> None:
    """Refuse columns that the data cannot tell from each other."""
    if len(labels) > len(matrix):
        raise ValueError(
            f"{len(labels)} covariates, the intercept included, need at least as many documents in"
            f" the corpus, got {len(matrix)}"
        )
    others = matrix[:, 1:]
    centred = others - others.mean(axis=0)
    lengths = np.sqrt((centred * centred).sum(axis=0))
    flat = lengths <= 1e-12 * np.sqrt((others * others).sum(axis=0))
    if flat.any():
        j = int(np.argmax(flat))
        raise ValueError(
            f"covariates must vary: {labels[j + 1]!r} is constant, {others[0, j]} in every"
            " document (leave it out: the intercept is there already)"
        )
    unit = centred / lengths
    left_over = np.abs(np.diagonal(np.linalg.qr(unit, mode="r")))
    if (left_over < _COLLINEAR).any():
        j = int(np.argmax(left_over < _COLLINEAR))
        weights = np.linalg.lstsq(unit[:, :j], unit[:, j], rcond=None)[0]
        partners = [labels[i + 1] for i in range(j) if abs(weights[i]) > 1e-6]
        raise ValueError(
            f"covariates must differ: {labels[j + 1]!r} is a linear combination of"
            f" {', '.join(partners)} (leave one of them out)"
        )

"""Design matrices from columns, a matrix or a formula, and the same columns for other values.

A design matrix always begins with the intercept. Its columns of numbers are centred and scaled,
which `Design.unscale` undoes for coefficients. The design remembers how it was made: `Design.rows`
makes the same columns for other values.

Formulas are those of the package formulaic: ``~ year + party + year:party``, ``~ bs(year, df=4)``,
``~ C(party, contr.treatment("R"))``.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmult.core.arguments import as_flag, as_strings, brief
from pgmult.core.typing import FloatArray, IntArray

__all__ = ["Columns", "Design", "make_design"]

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
    """

    names: NDArray[np.str_]
    matrix: FloatArray
    centre: FloatArray
    scale: FloatArray
    columns: Columns
    formula: str | None

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
        given = _as_mapping(covariates, [str(name) for name in self.columns.names])
        columns = _read_columns(given, known=self.columns)
        matrix = _evaluate(self.formula, self.columns, columns)[1]
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
    given = _as_mapping(covariates, names)
    standardize = as_flag(standardize, "standardize")
    if formula is not None and not isinstance(formula, str):
        raise TypeError(f"formula must be a string, got {brief(formula)}")
    if formula is not None:
        given = {name: column for name, column in given.items() if _mentions(formula, name)}
    columns = _read_columns(given, num_rows=num_rows)
    labels, matrix = _evaluate(formula, columns, columns)
    _check_design(labels, matrix)
    centre, scale = np.zeros(len(labels)), np.ones(len(labels))
    if standardize:
        plain = ((matrix == 0.0) | (matrix == 1.0)).all(axis=0)
        centre[~plain] = matrix[:, ~plain].mean(axis=0)
        scale[~plain] = matrix[:, ~plain].std(axis=0)
    return Design(np.array(labels), (matrix - centre) / scale, centre, scale, columns, formula)


# --------------------------------------------------------------------------- reading columns


def _as_mapping(covariates: Any, names: Sequence[str] | None) -> dict[str, Any]:
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
    given: Mapping[str, Any], *, num_rows: int | None = None, known: Columns | None = None
) -> Columns:
    """Checked columns: for all documents of a corpus, or more rows for columns known already."""
    names = list(given) if known is None else [str(name) for name in known.names]
    absent = [name for name in names if name not in given]
    if absent:
        raise ValueError(f"covariates must have a column {absent[0]!r}, got {', '.join(given)}")
    if known is not None:
        lengths = [np.size(given[name]) for name in names if np.ndim(given[name])]
        num_rows = max(lengths, default=1)
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
            " documents, or fill in a value and add a column that says so)"
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
    place = {level: i for i, level in enumerate(levels)}
    return np.array([place[text] for text in texts], dtype=np.float64), levels


def _is_missing(item: Any) -> bool:
    not_a_number = isinstance(item, Real) and item != item
    return item is None or not_a_number or type(item).__name__ in ("NAType", "NaTType")


# --------------------------------------------------------------------------- making the design


def _evaluate(formula: str | None, columns: Columns, rows: Columns) -> tuple[list[str], FloatArray]:
    """Names and values of covariates at `rows`, as the design of `columns` has them."""
    labels, matrix = (
        _main_effects(rows) if formula is None else _evaluate_formula(formula, columns, rows)
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
    formula: str, columns: Columns, rows: Columns
) -> tuple[list[str], FloatArray]:
    try:
        import formulaic
        from formulaic.errors import FormulaicError
    except ImportError as error:
        raise ImportError(
            "formulas need the package formulaic: pip install 'pgmult[formulas]' (or pass columns"
            " without a formula)"
        ) from error
    try:
        parsed = formulaic.Formula(formula)
        if not isinstance(parsed, formulaic.SimpleFormula):
            raise ValueError(f"formula must have a right-hand side only, got {formula!r}")
        with np.errstate(all="ignore"):  # what comes out is checked
            fitted = parsed.get_model_matrix(_as_frame(columns), context=None, na_action="ignore")
            labels = [str(label) for label in fitted.columns]
            if rows is not columns:
                fitted = fitted.model_spec.get_model_matrix(_as_frame(rows), context=None)
    except FormulaicError as error:
        raise ValueError(
            f"formula {formula!r} cannot be evaluated: {error}; columns of covariates:"
            f" {', '.join(columns.names) or 'none'}"
        ) from error
    if "Intercept" not in labels:
        raise ValueError(
            f"formula must have an intercept, got {formula!r} (leave out 0 and -1: the effects of"
            " labels are then against the reference)"
        )
    return labels, np.ascontiguousarray(fitted.to_numpy(), dtype=np.float64)


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

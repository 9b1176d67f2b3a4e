"""From the terms of a formula to columns of numbers.

A term is a product of factors: numbers, several columns of them (a spline), or labels. Labels are
coded by treatment, an indicator of every label but the first, wherever the terms before span what
the first would add, and by an indicator of every label elsewhere. So columns are independent as far
as the structure of the formula can tell (as in R and patsy).

What functions learn of the first rows (means, knots, labels) is the `Coding`'s: it alone, and not
the rows, decides how other rows are coded.
"""

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NoReturn

import numpy as np

from pgmult.core.arguments import under_name
from pgmult.core.labels import find_labels, label_of
from pgmult.core.typing import FloatArray, IntArray
from pgmult.formulas import functions, language
from pgmult.formulas.columns import Columns, read_columns
from pgmult.formulas.functions import BASES, CALENDAR, NAMED, OPERATORS, ROWWISE, State
from pgmult.formulas.language import Call, Name, Node, Number, Term, Text

Scoped = tuple[tuple[str, bool], ...]
"""Factors of a product, and whether labels leave out their first."""

_CONTRASTS = ("contr.treatment", "contr.sum")
_OF_DATES = (*CALENDAR, "days")


def bases_of(contrast: Node) -> tuple[Node, ...]:
    """What ``contr.treatment("a")``, or ``contr.treatment(base="a")``, is given."""
    return *contrast.arguments, *(value for _, value in contrast.options)


@dataclass(frozen=True, slots=True, eq=False)
class _Labels:
    """A factor of labels: codes, levels in their order, and the level that is left out."""

    codes: IntArray
    levels: list[str]
    base: int = 0
    to_sum: bool = False

    def columns(self, name: str, reduced: bool) -> list[tuple[str, FloatArray]]:
        """An indicator of each level; less that of the last one, if they are to sum to 0."""
        every = [(self.codes == i).astype(np.float64) for i in range(len(self.levels))]
        of = list(zip(self.levels, every, strict=True))
        if not reduced:
            return [(f"{name}[{level}]", one) for level, one in of]
        if self.to_sum:
            return [(f"{name}[S.{level}]", one - every[-1]) for level, one in of[:-1]]
        del of[self.base]
        return [(f"{name}[T.{level}]", one) for level, one in of]


@dataclass(slots=True, eq=False)
class Coding:
    """How the terms of a formula become columns.

    Attributes
    ----------
    formula : str
        For errors.
    states : dict from the text of an expression to arrays by name
        What functions learnt of the first rows.
    learns : bool
        Whether these are the first rows.
    """

    formula: str
    states: dict[str, State] = field(default_factory=dict)
    learns: bool = False

    def matrix(
        self, terms: Sequence[Term], rows: Columns, intercept: bool = True
    ) -> tuple[list[str], FloatArray]:
        """Names and values of the columns of some terms at some rows."""
        factors = {str(factor): self._factor(factor, rows) for term in terms for factor in term}
        columns = [("Intercept", np.ones(len(rows.values)))] if intercept else []
        spanned: set[frozenset[tuple[str, bool]]] = {frozenset()} if intercept else set()
        for term in terms:
            choices = [
                ((key, True), None) if isinstance(factors[key], _Labels) else ((key, False),)
                for key in map(str, term)
            ]
            span = [tuple(one for one in chosen if one) for chosen in product(*choices)]
            new = [scoped for scoped in span if frozenset(scoped) not in spanned]
            spanned.update(map(frozenset, new))
            for scoped in _fewest(new):
                columns += _product(scoped, term, factors, len(rows.values))
        names, values = [name for name, _ in columns], [column for _, column in columns]
        matrix = np.column_stack(values) if values else np.empty((len(rows.values), 0))
        bad = ~np.isfinite(matrix)
        if bad.any():
            row, j = np.unravel_index(int(np.argmax(bad)), matrix.shape)
            got = f"{names[j]!r} is not, got {matrix[row, j]} at row {row}"
            raise ValueError(f"covariates must be finite: {got}")
        return names, matrix

    def numbers(self, node: Node, rows: Columns) -> FloatArray:
        """The one number of each row that an expression gives."""
        with np.errstate(all="ignore"):  # what comes out is checked
            value = self._value(node, rows)
        if isinstance(value, _Labels):
            self._refuse(f"{node} holds labels, and numbers are needed here")
        if value.ndim != 1 or not np.isfinite(value).all():
            self._refuse(f"{node} must be one column of finite numbers")
        return value

    def _factor(self, node: Node, rows: Columns) -> "_Labels | FloatArray":
        if node.function in OPERATORS:
            self._refuse(f"{node} is arithmetic among terms: write I({node})")
        with np.errstate(all="ignore"):  # what comes out is checked
            value = self._value(node, rows)
        if node.function not in NAMED or isinstance(value, _Labels):
            return value
        names = NAMED[node.function]
        texts = [names[int(number) - 1] for number in value]
        return self._known(str(node), texts, [name for name in names if name in set(texts)])

    def _known(self, key: str, texts: Sequence[str], levels: list[str], name: str = "") -> _Labels:
        """Texts as labels: those of the first rows, in the order of `levels` there."""
        if self.learns:
            self.states[key] = {"levels": np.array(levels, dtype=np.str_)}
        known = self.states[key]["levels"].tolist()
        return _Labels(find_labels(known, texts, name or key), known)

    def _value(self, node: Node, rows: Columns) -> "_Labels | FloatArray":
        """What an expression is in every row."""
        match node:
            case Name(name):
                return self._column(name, rows)
            case Number(value):
                return np.full(len(rows.values), float(value))
            case Call("C"):
                return self._labels(node, rows)
            case Call(function, (only,)) if function in ("+", "-") and not node.options:
                number = self._number(only, rows, function)
                return number if function == "+" else -number
            case Call(function, (left, right)) if function in OPERATORS:
                return self._operation(node, left, right, rows)
            case Call(function, (only,)) if function in ROWWISE and not node.options:
                inside = self._value(only, rows)
                if function == "I" and not isinstance(inside, _Labels):
                    return inside
                return np.asarray(ROWWISE[function](self._number(only, rows, function)))
            case Call(function, (first, *_)) if function in BASES:
                return self._basis(node, first, rows)
            case Call(function, (only,)) if function in _OF_DATES and not node.options:
                return self._calendar(function, only, rows)
            case Call(function) if function in functions.SPECIAL:
                self._refuse(f"{node} must be a term of its own")
            case Call(function) if function not in (*BASES, *ROWWISE, *_OF_DATES):
                known = [*ROWWISE, *BASES, "days", *CALENDAR, "C", *functions.SPECIAL[2:]]
                hint = f"functions are {', '.join(known)}; of anything else make a column first"
                self._refuse(f"there is no function {function}() ({hint})")
        takes = f"{node.function}() takes a column, got {node}" if node.function else ""
        return self._refuse(takes or f"{node} is no column")

    def _calendar(self, function: str, node: Node, rows: Columns) -> FloatArray:
        """What a calendar says of dates."""
        j = date_at(node, rows)
        if j is None:
            self._refuse(f"{function}() takes a column of dates (1999-12-31), and {node} is none")
        if function == "days":
            return rows.values[:, j]
        return np.asarray(CALENDAR[function](rows.cells(j).astype("datetime64[ms]")))

    def _column(self, name: str, rows: Columns) -> "_Labels | FloatArray":
        j = rows.place(name)
        values, levels = rows.values[:, j], rows.levels_of(j)
        return _Labels(values.astype(np.int64), levels) if levels else values

    def _number(self, node: Node, rows: Columns, function: str) -> FloatArray:
        value = self._value(node, rows)
        if isinstance(value, _Labels) or value.ndim != 1:
            what = "labels" if isinstance(value, _Labels) else "several columns"
            self._refuse(f"{function}() takes numbers, and {node} holds {what}")
        return value

    def _operation(self, node: Call, left: Node, right: Node, rows: Columns) -> FloatArray:
        sign = node.function
        column = self._column(left.name, rows) if isinstance(left, Name) else None
        if sign in ("==", "!=") and isinstance(column, _Labels):
            if not isinstance(right, Text | Number):
                self._refuse(f"labels are compared with a label, got {node}")
            asked = right.text if isinstance(right, Text) else right.value
            same = column.codes == find_labels(column.levels, [asked], _title(left))[0]
            return np.asarray(same == (sign == "=="), dtype=np.float64)
        if isinstance(right, Text) and (j := date_at(left, rows)) is not None:
            try:
                right = Number(float(rows.days_of(j, [right.text])[0]))
            except ValueError:
                self._refuse(f"{left} is compared with a date (1999-12-31), got {right}")
        both = [
            x.value if isinstance(x, Number) else self._number(x, rows, sign) for x in (left, right)
        ]
        result = np.asarray(OPERATORS[sign](*both), dtype=np.float64)
        return result if result.ndim else np.full(len(rows.values), float(result))

    def _basis(self, node: Call, first: Node, rows: Columns) -> FloatArray:
        """Columns of a function that learns, by what it learnt."""
        function, key = BASES[node.function], str(node)
        allowed = list(inspect.signature(function).parameters)[2:]
        options = dict(zip(allowed, map(self._constant, node.arguments[1:]), strict=False))
        options |= {name: self._constant(value) for name, value in node.options}
        if options.keys() - set(allowed) or len(node.arguments) - 1 > len(allowed):
            listed = ", ".join(allowed) or "none"
            self._refuse(f"{node.function}() has the options {listed}, got {node}")
        period = functions.PERIODS.get(first.function) if node.function == "cc" else None
        if period and not options.keys() & {"lower_bound", "upper_bound", "period"}:
            options["lower_bound"], options["upper_bound"] = period
        state = self.states.get(key) if self.learns else self.states[key]
        x = self._number(first, rows, node.function)
        if not np.isfinite(x).all():
            self._refuse(f"{first} must be finite in {node}")
        try:
            basis, self.states[key] = function(x, state, **options)
        except (TypeError, ValueError) as error:
            j, unit = date_at(first, rows), ""
            if j is not None:
                unit = f" (in days since {label_of(rows.cells(j, [0.0])[0])})"
            self._refuse(f"{node} cannot be made: {error}{unit}")
        return basis

    def _labels(self, node: Call, rows: Columns) -> _Labels:
        """Labels of `C(column, contrasts)`."""
        first, *contrasts = node.arguments or (Number(0),)
        asks = first.function in CALENDAR
        if not (asks or isinstance(first, Name)) or len(contrasts) > 1 or node.options:
            self._refuse(f'C() takes a column, C(x) or C(x, contr.treatment("base")), got {node}')
        name = _title(first)
        factor = self._factor(first, rows)
        if not isinstance(factor, _Labels):  # numbers that are used as numbers elsewhere, too
            cells = factor if asks else rows.cells(rows.place(name))
            in_order = list(map(label_of, np.unique(cells)))
            factor = self._known(str(node), list(map(label_of, cells)), in_order, name)
        if not contrasts:
            return factor
        (contrast,) = contrasts
        kind, bases = contrast.function or _title(contrast), bases_of(contrast)
        if len(bases) > 1 or any(name != "base" for name, _ in contrast.options):
            self._refuse(f'contrasts have one base, contr.treatment("a"), got {contrast}')
        if kind not in _CONTRASTS or (bases and kind == "contr.sum"):
            self._refuse(f"contrasts are {' and '.join(_CONTRASTS)}, got {contrast}")
        base = find_labels(factor.levels, map(self._constant, bases), name) if bases else [0]
        return _Labels(factor.codes, factor.levels, int(base[0]), kind == "contr.sum")

    def _constant(self, node: Node) -> object:
        match node:
            case Number(value) | Text(value):
                return value
            case Name("None"):
                return None
            case Call("-", (Number(value),)):
                return -value
            case Call("[", items):
                return [self._constant(item) for item in items]
        return self._refuse(f"{node} must be a number, a text or a list, written out")

    def _refuse(self, why: str) -> NoReturn:
        raise ValueError(f"formula {self.formula!r}: {why}")


def computed_numbers(
    expression: object, table: Mapping[str, object], num_rows: int, argument: str
) -> FloatArray | None:
    """Evaluate an expression such as ``round(share * n)``, with parentheses, in every row.

    None where `expression` is a column, or none of these. `argument` has it, for errors.

    Raises
    ------
    ValueError
        If a column is missing, or a row has no finite number.
    """
    if not isinstance(expression, str) or expression in table or "(" not in expression:
        return None
    with under_name(argument, of="formula"), under_name(argument, of="covariates"):
        node = language.parse_expression(expression)
        columns = read_columns(table, [*dict.fromkeys(language.names_in(node))], num_rows)
        return Coding(expression).numbers(node, columns)


def _product(
    scoped: Scoped, term: Term, factors: Mapping[str, Any], num_rows: int
) -> list[tuple[str, FloatArray]]:
    """Names and values of the products of columns of some factors of a term."""
    titles = {str(factor): _title(factor) for factor in term}
    parts = []
    for key, reduced in scoped:
        factor, title = factors[key], titles[key]
        if isinstance(factor, _Labels):
            parts.append(factor.columns(title, reduced))
        elif factor.ndim == 1:
            parts.append([(title, factor)])
        else:
            parts.append([(f"{title}[{j + 1}]", column) for j, column in enumerate(factor.T)])
    columns = []
    for backwards in product(*reversed(parts)):  # the first factor changes fastest
        names, values = zip(*backwards[::-1], strict=True) if backwards else ((), ())
        columns.append((":".join(names), math.prod(values, start=np.ones(num_rows))))
    return columns


def date_at(node: Node, rows: Columns) -> int | None:
    """The place of a column of dates, None for anything else."""
    j = rows.place(node.name) if isinstance(node, Name) else None
    return j if j is not None and rows.origin_of(j) is not None else None


def _title(factor: Node) -> str:
    return factor.name if isinstance(factor, Name) else str(factor)


def _fewest(products: Sequence[Scoped]) -> list[Scoped]:
    """The fewest products that span the same: a:(b less its first) and a are a:b."""
    terms: list[Scoped] = []
    for scoped in sorted(products, key=len):
        for before in terms:
            more = set(scoped) - set(before)
            if len(scoped) - 1 != len(before) or len(more) != 1:
                continue
            one = more.pop()
            if one[1]:
                reduced = tuple((key, False) if (key, r) == one else (key, r) for key, r in scoped)
                terms = _fewest([*(term for term in terms if term != before), reduced])
                break
        else:
            terms = [*terms, scoped]
    return terms

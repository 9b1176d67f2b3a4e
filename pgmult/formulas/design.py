"""Design matrices from columns, a matrix or a formula, and the same columns for other values.

The columns of numbers of a design matrix are centred and scaled, if that is asked for, which
`Design.unscale` undoes for coefficients. The design remembers how it was made, and of the rows that
it was made from only what its functions learnt of them: `Design.rows` makes the same columns for
other values, of one row or of many.

Formulas are those of `pgmult.formulas.language`. Some terms have effects that share a variance,
which is learned (`pgmult.formulas.terms`):

* ``(1 | author)``, an effect of each author; ``(1 | author:paper)`` of each combination, and
  ``(1 | author/paper)`` of both;
* ``s(year)``, a smooth curve: ``year`` and its bends, ``s(year, knots=20)`` with more of them.
  ``party * s(year)`` has a curve for all, and deviations from it for each party.

Additive regressions have these, too:

* ``(1 + x | g)`` or ``(x | g)``, an intercept and a slope of each g that are correlated,
  ``(0 + x | g)`` a slope alone. ``(1 + x || g)`` is ``(1 | g) + (0 + x | g)``: not correlated. As
  in lme4, x may be labels; ``||`` leaves effects of the labels of one column correlated.
* ``rw(t)``, a random walk over numbers or dates;
* ``gp(x)``, a Gaussian process, and ``gp(x, y)`` over a plane. ``gp(x, k=30, c=2)`` has 30
  functions along the longest side, which reach to twice the range of x;
* ``car(area, map)``, areas that are like their neighbours.

A column of dates (datetime64, or texts as 1999-12-31 and 1999-12-31T18:30) is the number of days
since the first of them, and ``year(date)``, ``month(date)`` and others ask the calendar:
`pgmult.formulas.functions`.

>>> table = {"x": [1.0, 2.0, 4.0, 3.0], "g": ["a", "b", "b", "a"]}
>>> design = make_design(table, 4, "~ log(x) * g", standardize=False)
>>> design.names.tolist()
['Intercept', 'log(x)', 'g[T.b]', 'log(x):g[T.b]']
>>> design.rows({"x": 1.0, "g": ["a", "b"]})
array([[1., 0., 0., 0.],
       [1., 0., 1., 0.]])
"""

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmult.core.arguments import as_flag, brief, under_name
from pgmult.core.labels import Levels, find_labels, label_of, labels_of, numbered, report_new_labels
from pgmult.core.typing import Array, FloatArray, IntArray
from pgmult.formulas import columns as cells_of
from pgmult.formulas import language
from pgmult.formulas.coding import Coding, bases_of, date_at
from pgmult.formulas.columns import Columns, source_of
from pgmult.formulas.functions import NAMED, SPECIAL, State
from pgmult.formulas.language import Call, Formula, Name, Node, Number, Text, names_in, parse
from pgmult.formulas.maps import neighbours_of
from pgmult.formulas.terms import GroupTerm, Inputs, ProcessTerm, Slopes, SplineTerm, Term, times_of
from pgmult.sampling.codec import fingerprint

Table = Mapping[str, Any]
_KNOTS = 10
_COLLINEAR = 1e-7  # share of a column's length that the columns before it must leave unexplained
_LARGEST = 1e100  # of a covariate, whose square must be a number, too
_MOST_NAMED = 6  # areas that a map lacks


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Design:
    """A design matrix and how it was made.

    Attributes
    ----------
    names : str array, ``(num_covariates,)``
        The first is the intercept, if there is one.
    matrix : array, ``(num_rows, num_covariates)``
        Centred and scaled; the column of the intercept is 1.
    centre, scale : arrays, ``(num_covariates,)``
        What was subtracted from each column, and what it was then divided by.
    columns : Columns
        What the matrix was made from.
    formula : str or None
        How; None for main effects of all columns.
    terms : tuple of GroupTerm, SplineTerm and ProcessTerm
        Random terms, in the formula's order.
    states : mapping from the text of an expression to arrays by name
        What the formula's functions learnt of the first rows.
    offset : array, ``(num_rows,)``, or None
        The sum of all ``offset(x)``.
    named_offsets : mapping from category to array, ``(num_rows,)``
        The sum of all ``offset(x, "category")``.
    margins : array, ``(num_covariates, num_covariates)``, or None
        What was subtracted from each product of numbers before that: multiples of the columns of
        its factors, with which it is not correlated any more. So the origins of factors do not
        matter to priors. None without products.
    """

    names: NDArray[np.str_]
    matrix: FloatArray
    centre: FloatArray
    scale: FloatArray
    columns: Columns
    formula: str | None
    terms: tuple[Term, ...] = ()
    states: Mapping[str, State] = field(default_factory=dict)
    offset: FloatArray | None = None
    named_offsets: Mapping[str, FloatArray] = field(default_factory=dict)
    margins: FloatArray | None = None

    @property
    def groupings(self) -> list[GroupTerm]:
        """Terms of levels."""
        return [term for term in self.terms if isinstance(term, GroupTerm)]

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
        columns = (self.columns.names, self.columns.num_levels, self.columns.levels)
        terms = tuple(map(_coding, self.terms))
        made = (self.formula, self.names, self.centre, self.scale, terms)
        more = [x for x in (self.columns.origins, self.margins) if x is not None]
        return fingerprint((made, columns, dict(self.states), *more))

    def mean(self, coefficients: FloatArray, effects: FloatArray) -> FloatArray:
        """The mean of psi, ``(num_documents, n)``, from all coefficients and effects."""
        mean, start = np.asarray(np.einsum("rp,pn->rn", self.matrix, coefficients)), 0
        for term in self.terms:
            mean += term.mean(effects[start : start + term.size])
            start += term.size
        return mean

    def covariances(self, Sigma: FloatArray, variances: FloatArray) -> tuple[IntArray, FloatArray]:
        """Covariances of psi, unknown levels having effects of the prior.

        Parameters
        ----------
        Sigma : array, ``(n, n)``
        variances : array, ``(num_terms,)``
            Rho of random terms, in units of Sigma.

        Returns
        -------
        which : int array, ``(num_documents,)``
        covariances : array, ``(num_covariances, n, n)``
            Few: documents whose terms are known alike share one.
        """
        if not self.terms:
            return np.zeros(len(self.matrix), dtype=np.int64), Sigma[None]
        unseen = np.column_stack([term.unseen() for term in self.terms])
        scaled = np.stack([variance * Sigma for variance in variances])
        kinds, which = np.unique(unseen, axis=0, return_inverse=True)
        return which.reshape(-1), Sigma + np.einsum("mt,tij->mij", kinds, scaled)

    def take(self, rows: IntArray | slice) -> "Design":
        """The design of some rows."""
        return replace(
            self, matrix=np.ascontiguousarray(self.matrix[rows]), columns=self.columns.take(rows),
            terms=tuple(term.take(rows) for term in self.terms),
            offset=None if self.offset is None else self.offset[rows],
            named_offsets={name: x[rows] for name, x in self.named_offsets.items()},
        )  # fmt: skip

    def like(
        self, covariates: object, *, new_levels: bool = False, num_rows: int | None = None
    ) -> "Design":
        """The same design, for other rows.

        Parameters
        ----------
        covariates : as for `rows`
        new_levels : bool
            Whether grouping columns may hold labels that the design does not know. The effect of
            such a label is not known, and adds to the variance.
        num_rows : int, optional
            How many rows there must be.
        """
        table = cells_of.as_mapping(covariates, self._column_names)
        columns = self._read(table, num_rows)
        offsets = _offsets(self._plan, self._coder, columns)
        if num_rows is not None and len(columns.values) != num_rows:
            each = f"a row for each of the {num_rows} documents of corpus"
            raise ValueError(f"covariates must have {each}, got {len(columns.values)}")
        return replace(
            self, matrix=self._matrix(columns), columns=columns,
            terms=self._terms_at(table, columns, new_levels),
            offset=offsets.pop("", None), named_offsets=offsets,
        )  # fmt: skip

    @property
    def covariates(self) -> list[str]:
        """Columns that the design is made of, but those whose calendar alone makes groups."""
        groups = {source_of(name) for term in self.groupings for name in term.variables}
        named = {name for node in self._plan.read for name in names_in(node)}
        return [name for name in self._column_names if name in named or name not in groups]

    def levels_of(self, column: str) -> list[str]:
        """Labels of a column in their order; none of one of numbers or dates."""
        if column in self._column_names:
            return self.columns.levels_of(self.columns.place(column))
        for term in self.groupings:
            if column in term.variables:
                labels = term.known.labels[:, term.variables.index(column)].tolist()
                return list(dict.fromkeys(labels))
        return []

    def reference_of(self, column: str) -> str | None:
        """The label that ``C(column, contr.treatment(base))`` compares the others with."""
        for node in self._plan.read:
            match node:
                case Call("C", (Name(name), Call("contr.treatment") as contrast)) if name == column:
                    levels, (base,) = self.levels_of(column), bases_of(contrast)
                    value = base.text if isinstance(base, Text) else str(base)
                    return levels[int(find_labels(levels, [value], column)[0])] if levels else value
        return None

    def report_new_labels(
        self, covariates: object, table: str, *, argument: str | None = None, asked: bool = False
    ) -> None:
        """Say how many labels of groupings in other rows the design does not know.

        Parameters
        ----------
        covariates : as for `rows`
        table, argument, asked : as in `pgmult.core.labels.report_new_labels`

        Raises
        ------
        ValueError
            If it knows none of a column's, as said there.
        """
        rows = cells_of.as_mapping(covariates, self._column_names)
        known = {
            name: labels
            for term in self.groupings
            if term.kind in ("group", "slopes")
            for name, labels in zip(term.variables, term.known.labels.T, strict=True)
        }
        for name, labels in known.items():
            size = cells_of.num_rows_of(rows, [source_of(name)])
            cells = cells_of.cells_of_rows(rows, name, size).values
            report_new_labels(labels, cells, name, table, argument=argument, asked=asked)

    def places(self, formula: str) -> tuple[IntArray, list[int]]:
        """Return which columns and which terms a formula of some of this one's terms has.

        Raises
        ------
        ValueError
            If it has others.
        """
        plan, columns = _plan(formula), self.names.tolist()
        terms, wanted = [term.name for term in self.terms], [one.name for one in plan.random]
        missing = [name for name in wanted if name not in terms]
        missing += [name for name in plan.columns if name not in self._column_names]
        names: list[str] = []
        if not missing:
            names, _ = self._coder.matrix(plan.fixed, self.columns, plan.formula.intercept)
            missing = [name for name in names if name not in columns]
        if missing:
            lacks = f"which the data's formula {self.formula or '~ .'!r} has not"
            raise ValueError(f"the formula {formula!r} has {missing[0]}, {lacks}")
        return np.array(list(map(columns.index, names))), list(map(terms.index, wanted))

    def rows(self, covariates: Any) -> FloatArray:
        """Rows of the design matrix for other values of the same columns.

        Parameters
        ----------
        covariates : mapping, table or matrix
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
        return self._matrix(self._read(cells_of.as_mapping(covariates, self._column_names)))

    @property
    def _column_names(self) -> list[str]:
        return list(self.columns.names.tolist())

    @property
    def _plan(self) -> "_Plan":
        return _plan(self.formula, self._column_names)

    @property
    def _coder(self) -> Coding:
        return Coding(self.formula or "~ .", dict(self.states))

    def _matrix(self, columns: Columns) -> FloatArray:
        matrix = self._coder.matrix(self._plan.fixed, columns, self._plan.formula.intercept)[1]
        if self.margins is not None:
            matrix = matrix - matrix @ self.margins
        return (matrix - self.centre) / self.scale

    def _read(self, table: Mapping[str, object], num_rows: int | None = None) -> Columns:
        """Columns at new rows; grouping columns count where there is no other."""
        names = self._column_names
        grouping = [name for term in self.terms for name in term.variables]
        least = cells_of.num_rows_of(table, grouping if names or grouping else table, num_rows or 1)
        size = cells_of.num_rows_of(table, names, least)
        return cells_of.read_columns(table, names, size, like=self.columns)

    def _terms_at(
        self, table: Mapping[str, object], columns: Columns, new_levels: bool
    ) -> tuple[Term, ...]:
        terms: list[Term] = []
        for term in self.terms:
            if not isinstance(term, GroupTerm):
                nodes = tuple(map(language.parse_expression, term.expressions))
                factors = tuple(map(language.parse_expression, term.factors))
                inputs, multipliers, _ = _inputs_at(nodes, factors, self._coder, columns)
                forms = [_text_of(node, columns) for node in nodes]
                terms.append(replace(term, basis=term.rows(inputs, multipliers, forms)))
                continue
            cells, _ = _cells_of(term.variables, table, len(columns.values), term.kind)
            if term.kind == "map":
                codes = _find_areas(term.name, term.known, *cells.values())
            else:
                codes = term.known.find(list(cells.values()), new_levels)
            new, slopes = term.new[:0], term.slopes
            if (unknown := codes < 0).any():
                levels, places = Levels.of({name: x[unknown] for name, x in cells.items()})
                codes[unknown], new = -1 - places, levels.labels
            if slopes is not None:
                effects = parse(slopes.effects)
                values = self._coder.matrix(effects.terms, columns, effects.intercept)[1]
                slopes = replace(slopes, values=(values - slopes.centre) / slopes.scale)
            terms.append(replace(term, codes=codes, new=new, slopes=slopes))
        return tuple(terms)

    def unscale(self, coefficients: FloatArray) -> FloatArray:
        """Coefficients of the covariates as given, before they were centred and scaled.

        Parameters
        ----------
        coefficients : array, ``(..., num_covariates, n)``
            Of the design matrix.
        """
        slopes = coefficients / self.scale[:, None]
        constant = np.einsum("p,...pn->...n", self.centre, slopes)
        if self.margins is not None:
            slopes = slopes - np.einsum("pq,...qn->...pn", self.margins, slopes)
        slopes[..., 0, :] -= constant
        return slopes


def make_design(
    covariates: object,
    num_rows: int | None = None,
    formula: str | Formula | None = None,
    names: Sequence[str] | None = None,
    standardize: bool = True,
    check: bool = True,
    every_term: bool = False,
    maps: Mapping[str, object] | None = None,
) -> Design:
    """A design of the rows of a table.

    Parameters
    ----------
    covariates : table, mapping from name to column, or matrix
    num_rows : int, optional
        How many rows there must be.
    formula : str or Formula, optional
        By default all columns. An outcome on its left is not looked at.
    names : sequence of str, optional
        Of a matrix's columns; ``x0, x1, ...`` if left out.
    standardize : bool
        Whether to bring columns to mean 0 and standard deviation 1, except those of only zeros and
        ones.
    check : bool
        Whether to refuse columns that the rows cannot tell from each other, and a formula without
        intercept unless `every_term`.
    every_term : bool
        Whether terms may be others than ``(1 | g)`` and ``s(x)``.
    maps : mapping from name to map, optional
        See `pgmult.formulas.maps`.

    Raises
    ------
    ValueError
        If the formula or a column cannot be read.
    """
    table = cells_of.as_mapping(covariates, names)
    standardize = as_flag(standardize, "standardize")
    if formula is not None and not isinstance(formula, str | Formula):
        raise TypeError(f"formula must be a string, got {brief(formula)}")
    plan = _plan(formula, list(table))
    text = None if formula is None else plan.formula.text
    for name in plan.formula.columns:
        if name not in table:
            has = ", ".join(table) or "none"
            plan.formula.refuse(f"it names {name!r}; columns of covariates, the table: {has}")
    for one in plan.random:
        if one.kind not in ("group", "spline") and not every_term:
            alone = "is a term of additive regressions alone (table.rows(formula))"
            here = "here groups are written (1 | author), without slopes that vary by group"
            plan.formula.refuse(f"{one.title} {alone}; {here}")
    if check and not plan.formula.intercept and not every_term:
        plan.formula.refuse("it must have an intercept (leave out 0 and -1)")
    num_rows = cells_of.num_rows_of(table, table) if num_rows is None else num_rows
    used = [name for name in table if name in plan.columns]
    columns = cells_of.read_columns(table, used, num_rows, as_labels=plan.labels)
    coder = Coding(text or "~ .", learns=True)
    labels, matrix = coder.matrix(plan.fixed, columns, plan.formula.intercept)
    if check:
        if not labels:
            plan.formula.refuse("it must have a column or an intercept")
        _check_design(labels, matrix, plan.formula.intercept, has_priors=every_term)
    centre, scale = np.zeros(len(labels)), np.ones(len(labels))
    margins = _margins(labels, matrix) if standardize and plan.formula.intercept else None
    if margins is not None:
        matrix = matrix - matrix @ margins
    if standardize:
        centre, scale = _units(matrix)
        if not plan.formula.intercept:  # about 0, where the predictor is 0
            centre, scale = np.zeros(len(labels)), np.hypot(centre, scale)
    terms = tuple(_term(one, plan, table, coder, columns, maps or {}) for one in plan.random)
    offsets = _offsets(plan, coder, columns)
    return Design(
        np.array(labels, dtype=np.str_), (matrix - centre) / scale, centre, scale, columns, text,
        terms, coder.states, offsets.pop("", None), offsets, margins,
    )  # fmt: skip


def _units(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Means and standard deviations of columns, 0 and 1 of those that hold zeros and ones alone."""
    varies = ~((matrix == 0.0) | (matrix == 1.0)).all(axis=0)
    centre, scale = np.zeros(len(varies)), np.ones(len(varies))
    centre[varies], scale[varies] = matrix[:, varies].mean(axis=0), matrix[:, varies].std(axis=0)
    return centre, scale


def _margins(labels: Sequence[str], matrix: FloatArray) -> FloatArray | None:
    """What products of numbers have of their factors: coefficients of a regression on these.

    A product of x and z is that of x and z + 1 less x. Without what is linear in x and z the two
    are one column, so its prior, and those of x and z, do not depend on where z is 0.
    """
    factors = [frozenset(re.sub(r"\[[^\]]*\]", "", label).split(":")) for label in labels]
    factors[0] = frozenset()  # the intercept
    margins = np.zeros((len(labels), len(labels)))
    for j, names in enumerate(factors):
        column = matrix[:, j]
        lower = [i for i, other in enumerate(factors) if other < names]
        if len(names) > 1 and not ((column == 0.0) | (column == 1.0)).all():
            margins[lower, j] = np.linalg.lstsq(matrix[:, lower], column, rcond=None)[0]
    return margins if margins.any() else None


def table_of(design: Design) -> dict[str, NDArray[Any]]:
    """The columns that a design was made from, labels of groupings included."""
    columns = design.columns
    table = {name: columns.cells(place) for place, name in enumerate(columns.names.tolist())}
    for term in design.groupings:
        levels = term.known.labels
        if len(term.new):  # codes below 0 count from the end
            levels = np.concatenate([levels, term.new[::-1]])
        for j, name in enumerate(term.variables):
            if source_of(name) == name:  # what dates are follows from the dates
                table.setdefault(name, levels[term.codes, j])
    return table


def joined_designs(first: Design, second: Design, order: IntArray) -> Design:
    """The rows of a design and of another like it, in some order."""
    one, other = table_of(first), table_of(second)
    joined = {name: np.concatenate([one[name], other[name]])[order] for name in one}
    return first.like(joined, new_levels=True, num_rows=len(order))


def distinct_rows(design: Design, *more: Array) -> tuple[Design, IntArray]:
    """The rows of a design that differ, in it or in other columns, and which of them each row is.

    Parameters
    ----------
    design : Design
    *more : arrays, ``(num_rows, ...)``
    """
    columns = [design.matrix, *(term.design for term in design.terms)]
    columns += [] if design.offset is None else [design.offset]
    every = np.column_stack([*columns, *design.named_offsets.values(), *more])
    _, rows, which = np.unique(every, axis=0, return_index=True, return_inverse=True)
    return design.take(rows), which.reshape(-1)


# --------------------------------------------------------------------------- parts of a formula


@dataclass(frozen=True, slots=True)
class _Random:
    """A random term as a formula writes it.

    Attributes
    ----------
    name : str
    kind : str
        "group", "slopes", "walk", "map", "spline" or "process".
    columns : tuple of str
        Columns of a grouping, a walk or a map.
    effects, map : str
        Effects of each level, and the name of a map.
    inputs : tuple of nodes
        What a curve or a process runs over.
    factors : product
        What a curve is multiplied by.
    count : int
        Knots of a curve, or functions of a process.
    bound : float
        How far a process reaches.
    """

    name: str
    kind: str
    columns: tuple[str, ...] = ()
    effects: str = "1"
    map: str = ""
    inputs: tuple[Node, ...] = ()
    factors: language.Term = ()
    count: int = 0
    bound: float = 1.5

    @property
    def title(self) -> str:
        return f"({self.name})" if self.kind in ("group", "slopes") else self.name


@dataclass(frozen=True, slots=True)
class _Plan:
    """The parts of a formula.

    Attributes
    ----------
    formula : Formula
    fixed : list of products
        Terms of the design matrix, ``s(x)`` being x.
    random : list
        Groupings, curves and processes in order.
    offsets : list of pairs
        What is added, and the category to whose score; "" where there is none.
    columns, labels : sets of str
        Columns that are read, and those of them whose numbers are labels.
    read : list of nodes
        What is read as a column of numbers or labels, not as groups.
    """

    formula: Formula
    fixed: list[language.Term]
    random: list[_Random]
    offsets: list[tuple[Node, str]]
    columns: set[str]
    labels: set[str]
    read: list[Node]


def _plan(formula: str | Formula | None, names: Sequence[str] = ()) -> _Plan:
    """The parts of a formula; of all columns, if there is none."""
    if formula is None:
        return _parts(Formula("~ .", None, True, tuple((Name(name),) for name in names)))
    return _parts(parse(formula) if isinstance(formula, str) else formula)


@lru_cache(maxsize=64)
def _parts(formula: Formula) -> _Plan:
    fixed: list[language.Term] = []
    random: list[_Random] = []
    offsets: list[tuple[Node, str]] = []
    for term in formula.terms:
        special = [i for i, node in enumerate(term) if node.function in SPECIAL]
        if not special:
            fixed.append(term)
            continue
        at = special[0]
        call = term[at]
        if len(special) > 1 or (len(term) > 1 and call.function != "s"):
            alone = "(1 | author) or offset(x) must be a term of its own"
            formula.refuse(f"{alone}; a term has one s(x) at most")
        if call.function == "offset":
            offsets.append(_read_offset(call, formula))
        elif call.function == "gp":
            random.append(_read_process(call, formula))
        elif call.function != "s":
            random += _groupings(call, formula)
        else:
            random.append(_read_curve(term, at, formula))
            (x,) = random[-1].inputs
            plain = (x.function or "I").isidentifier() and x.function not in NAMED
            fixed.append((*term[:at], x if plain else Call("I", (x,)), *term[at + 1 :]))
    if len({one.name for one in random}) < len(random):
        formula.refuse("each random term must stand in it once")
    fixed = list(language.unique(fixed))
    read = [node for term in fixed for node in term] + [node for node, _ in offsets]
    read += [node for one in random if one.kind == "process" for node in one.inputs]
    read += [node for one in random for term in parse(one.effects).terms for node in term]
    groups = [name for one in random for name in one.columns]
    dates = {source_of(name) for name in groups if source_of(name) != name}
    coded = [node for node in read if node.function == "C" and isinstance(node.arguments[0], Name)]
    labels = {name for node in coded for name in names_in(node)}
    others = {name for node in read if node not in coded for name in names_in(node)}
    columns = labels | others | dates
    return _Plan(formula, fixed, random, offsets, columns, labels - others, read)


def _groupings(call: Node, formula: Formula) -> list[_Random]:
    """The groupings of ``(effects | columns)``, ``rw(column)`` or ``car(column, map)``."""
    name, inside = str(call), call.arguments
    if call.function in ("rw", "car"):
        is_walk = call.function == "rw"
        kind, form, count = ("walk", "rw(time)", 1) if is_walk else ("map", "car(area, map)", 2)
        names = tuple(node.name for node in inside if isinstance(node, Name))
        if len(names) != count or len(inside) != count or call.options:
            formula.refuse(f"{form} takes {count} name{'s' * (count > 1)}, got {call}")
        return [_Random(name, kind, names[:1], map=names[-1])]
    intercept, slopes = language.sum_of(inside[0], formula)
    every = [*(["1"] if intercept else []), *(":".join(map(str, term)) for term in slopes)]
    if not every:
        formula.refuse(f"{call} has no effects (1 is an intercept)")
    if call.function == "||":
        sums = [one if one == "1" else f"0 + {one}" for one in every]
    else:
        sums = [" + ".join(every if intercept else ["0", *every])]
    groupings = []
    for names in _levels(inside[1], formula):
        for effects in sums:
            kind = "group" if effects == "1" else "slopes"
            groupings.append(_Random(f"{effects} | {':'.join(names)}", kind, names, effects))
    return groupings


def _levels(group: Node, formula: Formula) -> list[tuple[str, ...]]:
    """The columns of each grouping: of ``a/b`` there are two, a and a:b."""
    if isinstance(group, Name):
        return [(group.name,)]
    if source_of(str(group)) != str(group):
        return [(str(group),)]
    if group.function in (":", "/"):
        first, second = (_levels(argument, formula) for argument in group.arguments)
        both = [tuple(dict.fromkeys((*a, *b))) for a in first[-1:] for b in second]
        return both if group.function == ":" else [*first, *both]
    columns = "a column, weekday(date) or another of its calendar, or several as in a:b or a/b"
    return formula.refuse(f"a grouping is {columns}, got {group}")


def _read_process(call: Node, formula: Formula) -> _Random:
    options, inputs = dict(call.options), call.arguments
    default = Number(20 if len(inputs) == 1 else 14)
    match options.pop("k", default), options.pop("c", Number(1.5)):
        case Number(int() as count), Number(c) if 2 <= count <= 1000 and c > 1 and inputs:
            if not options:
                return _Random(str(call), "process", inputs=inputs, count=count, bound=float(c))
    what = "with k functions along a side, 2 to 1000, that reach to c > 1 times the data's range"
    written = f"gp(x) or gp(x, y, k=20, c=1.5), {what}"
    return formula.refuse(f"processes are written {written}, got {call}")


def _read_curve(term: language.Term, at: int, formula: Formula) -> _Random:
    call, others = term[at], (*term[:at], *term[at + 1 :])
    match call.arguments, call.options or (("knots", Number(_KNOTS)),):
        case (x,), (("knots", Number(int() as count)),) if count >= 4:
            name = ":".join(map(str, term))
            return _Random(name, "spline", inputs=(x,), factors=others, count=count)
    what = "with 4 knots at least, and f * s(x) gives each level of f a curve"
    return formula.refuse(f"curves are written s(x) or s(x, knots=10), {what}, got {call}")


def terms_named(text: str) -> list[str]:
    """Names of the random terms that a text such as ``"(x | g)"`` stands for, if any."""
    try:
        return [random_term.name for random_term in _parts(parse(text)).random]
    except ValueError:
        return []


# --------------------------------------------------------------------------- random terms


def _term(
    one: _Random, plan: _Plan, table: Table, coder: Coding, columns: Columns, maps: Table
) -> Term:
    """Make a random term; slopes are centred wherever their levels have an intercept, too."""
    if one.inputs:
        return _over_inputs(one, coder, columns)
    name, kind = one.name, one.kind
    cells, orders = _cells_of(one.columns, table, len(columns.values), kind)
    if kind == "map":
        return _areas(one, cells, plan.formula, maps)
    levels, codes = Levels.of(cells, orders)
    if len(levels) < 2:
        groups = ", ".join(levels.names)
        raise ValueError(f"{one.title} needs two groups at least, got {groups}")
    if kind == "walk":
        times = times_of(levels.labels[:, 0].tolist(), name)
        order = np.argsort(times, kind="stable")
        if not (np.diff(times[order]) > 0.0).all():
            raise ValueError(f"{name} must have one label for each time")
        levels = replace(levels, labels=levels.labels[order])
        return GroupTerm(name, levels, np.argsort(order)[codes], times=times[order])
    if kind == "group":
        return GroupTerm(name, levels, codes)
    effects = parse(one.effects)
    labels, values = coder.matrix(effects.terms, columns, effects.intercept)
    centre, scale = _units(values)
    are_numbers = len(labels) == len(effects.terms)  # labels without an intercept have columns each
    have_intercepts = [other.columns for other in plan.random if other.kind == "group"]
    if not (effects.intercept or (one.columns in have_intercepts and are_numbers)):
        centre = np.zeros(len(labels))
    if not (scale > 0.0).all():
        raise ValueError(f"({name}): {labels[int(np.argmin(scale))]} must vary")
    names, scaled = np.array(labels, dtype=np.str_), (values - centre) / scale
    return GroupTerm(name, levels, codes, Slopes(one.effects, names, scaled, centre, scale))


def _cells_of(
    names: Sequence[str], table: Table, num_rows: int, kind: str
) -> tuple[dict[str, Array], dict[str, Sequence[str] | None]]:
    """Cells of grouping columns, dates of a walk written alike, and the orders of their labels."""
    columns = {name: cells_of.cells_of_rows(table, name, num_rows) for name in names}
    plain: Callable[[Array], Array] = cells_of.plain_dates if kind == "walk" else np.asarray
    cells = {name: plain(column.values) for name, column in columns.items()}
    return cells, {name: column.order for name, column in columns.items()}


def _areas(grouping: _Random, cells: Table, formula: Formula, maps: Table) -> GroupTerm:
    (column,), name = grouping.columns, grouping.name
    if grouping.map not in maps:
        hint = f'table.rows(formula, maps={{"{grouping.map}": neighbours}})'
        got = ", ".join(maps) or "none"
        formula.refuse(f"{name} needs a map {grouping.map!r}, got {got} ({hint})")
    with under_name(f"the map {grouping.map!r}", of="a map"):
        areas, pairs = neighbours_of(maps[grouping.map], column)
    levels = Levels((column,), areas[:, None])
    return GroupTerm(name, levels, _find_areas(name, levels, cells[column]), neighbours=pairs)


def _find_areas(name: str, levels: Levels, cells: Any) -> IntArray:
    """The place on the map of each row's area.

    Raises
    ------
    ValueError
        If areas are not on the map, with the map's name.
    """
    column, on_map = levels.columns[0], name.removesuffix(")").rpartition(", ")[2]
    labels = labels_of(cells, column)
    codes = levels.find([labels], True)
    absent = numbered(labels[codes < 0])[0].tolist()
    if absent:
        more = ", ..." if len(absent) > _MOST_NAMED else ""
        lacks = ", ".join(map(repr, absent[:_MOST_NAMED])) + more
        hint = f"a row {absent[0]!r} whose second cell is empty adds an area without neighbours"
        must = f"the map {on_map!r} of {name} must have every area of column {column!r}"
        raise ValueError(f"{must}, it lacks {lacks} ({hint}, such as an island)")
    return codes


def _over_inputs(one: _Random, coder: Coding, columns: Columns) -> Term:
    """Make a curve or a process."""
    nodes, factors = one.inputs, one.factors
    inputs, multipliers, labels = _inputs_at(nodes, factors, coder, columns)
    names = {name for node in (*nodes, *factors) for name in names_in(node)}
    variables = tuple(name for name in columns.names.tolist() if name in names)
    texts, of_factors = tuple(map(str, nodes)), tuple(map(str, factors))
    over = Inputs(one.name, texts, inputs, of_factors, multipliers, tuple(labels), variables)
    if one.kind == "process":
        return ProcessTerm.of(over, one.count, one.bound)
    return SplineTerm.of(over, one.count)


def _inputs_at(
    nodes: Sequence[Node], factors: language.Term, coder: Coding, columns: Columns
) -> tuple[FloatArray, FloatArray, list[str]]:
    """What a term runs over, and what it is multiplied by: indicators of every label."""
    inputs = np.column_stack([coder.numbers(node, columns) for node in nodes])
    if not factors:
        return inputs, np.ones((len(inputs), 1)), [""]
    labels, multipliers = coder.matrix([factors], columns, intercept=False)
    return inputs, multipliers, [f"{label}:" for label in labels]


def _text_of(node: Node, columns: Columns) -> Callable[[float], str]:
    """How a value of an expression is written in errors: dates as dates."""
    j = date_at(node, columns)
    if j is None:
        return "{:g}".format
    return lambda value: label_of(columns.cells(j, [value])[0])


def _coding(term: Term) -> tuple[object, ...]:
    """What the coding of a term's rows depends on."""
    if isinstance(term, SplineTerm):
        return (term.knots, term.bends, term.line)
    if isinstance(term, ProcessTerm):
        return (term.centre, term.unit, term.reach, term.waves)
    labels = (term.known.labels,)
    return labels if term.slopes is None else (*labels, term.slopes.centre, term.slopes.scale)


def _read_offset(call: Node, formula: Formula) -> tuple[Node, str]:
    """What an offset adds, and the category to whose score."""
    match call.arguments:
        case (node,):
            return node, ""
        case (node, Text(category)):
            return node, category
    return formula.refuse(f'an offset is written offset(x) or offset(x, "category"), got {call}')


def _offsets(plan: _Plan, coder: Coding, columns: Columns) -> dict[str, FloatArray]:
    """Sums of offsets by category; "" for those without one."""
    sums: dict[str, FloatArray] = {}
    for node, category in plan.offsets:
        sums[category] = sums.get(category, 0.0) + np.asarray(coder.numbers(node, columns))
    return sums


# --------------------------------------------------------------------------- what is refused


def _check_design(
    labels: list[str], matrix: FloatArray, intercept: bool, *, has_priors: bool
) -> None:
    """Refuse columns that the data cannot tell from each other.

    Interactions of labels are such where a combination of them has no rows. If coefficients have
    priors, these determine the effect, and a warning says so.
    """
    if len(labels) > len(matrix):
        columns = f"{len(labels)} covariates{', the intercept included,' if intercept else ''}"
        raise ValueError(f"{columns} need at least as many rows, got {len(matrix)}")
    labels, others = labels[intercept:], matrix[:, int(intercept) :]
    size = np.abs(others).max(axis=0, initial=0.0)
    if (size > _LARGEST).any():
        j = int(np.argmax(size > _LARGEST))
        got = f"{labels[j]!r} has {size[j]:g} (take another unit, or its logarithm)"
        raise ValueError(f"covariates must be smaller than {_LARGEST:g}, {got}")
    centred = others - others.mean(axis=0) if intercept else others
    lengths = np.sqrt((centred * centred).sum(axis=0))
    flat = lengths <= 1e-12 * np.sqrt((others * others).sum(axis=0))
    may_lack = np.array([has_priors and ":" in name and "[" in name for name in labels], bool)
    if (flat & ~may_lack).any():
        j = int(np.argmax(flat & ~may_lack))
        got = f"{labels[j]!r} is constant, {others[0, j]} in every row"
        hint = " (leave it out: the intercept is there already)" if intercept else ""
        raise ValueError(f"covariates must vary: {got}{hint}")
    unit = centred / np.where(flat, 1.0, lengths)
    depends = np.abs(np.diagonal(np.linalg.qr(unit, mode="r"))) < _COLLINEAR
    lacking = ", ".join(repr(labels[j]) for j in np.flatnonzero(depends & may_lack))
    if lacking:
        text = f"some combinations of labels have no rows: the effect of {lacking} is its prior's"
        warnings.warn(text, stacklevel=4)
    if (depends & ~may_lack).any():
        j = int(np.argmax(depends & ~may_lack))
        weights = np.linalg.lstsq(unit[:, :j], unit[:, j], rcond=None)[0]
        partners = ", ".join(labels[i] for i in np.flatnonzero(np.abs(weights) > 1e-6))
        got = f"{labels[j]!r} is a linear combination of {partners} (leave one of them out)"
        raise ValueError(f"covariates must differ: {got}")

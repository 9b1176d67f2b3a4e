"""Choices from a table, one row per alternative: ``taken ~ price + time + (price | who)``.

The left-hand side says which alternative of an occasion was taken: true or 1, or how often, or its
share. On the right are attributes: the column that names alternatives gives each of them a
constant, and ``price:income`` lets the effect of the price depend on a person's income. ``(price +
time | who)`` has the attributes for which people's tastes differ; with ``||`` these are
uncorrelated. An intercept is the same for all alternatives of an occasion, so it has no effect and
is left out.

>>> table = {
...     "who": ["ada"] * 4 + ["ben"] * 4, "trip": [1, 1, 2, 2, 1, 1, 2, 2],
...     "mode": ["bus", "car"] * 4, "price": [2.0, 5.0, 3.0, 4.0, 2.0, 7.0, 4.0, 4.5],
...     "taken": [1, 0, 0, 1, 1, 0, 1, 0],
... }
>>> choices_of("taken ~ mode + price + (price | who)", table, occasion="trip")
ChoiceRows(8 rows, 4 occasions, 2 people, 2 attributes)
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
from scipy.optimize import linprog

from pgmult.core import tables
from pgmult.core.arguments import as_choice, as_kind, as_list, as_mapping, brief, under_name
from pgmult.core.labels import Levels, find_labels, labels_of, numbered
from pgmult.core.memory import part_of
from pgmult.core.tables import Cells, ExactTable, exact_columns, missing_in, numbers_of
from pgmult.core.typing import Array, BoolArray, FloatArray, Generator, IntArray, StrArray
from pgmult.formulas.columns import NUMBER, named_column, table_column
from pgmult.formulas.design import Design, make_design
from pgmult.formulas.language import Formula, Name, parse
from pgmult.formulas.terms import GroupTerm

Columns = Mapping[str, Cells]
_FEW_OCCASIONS = 2000  # that mostly suffice to show that no attribute predicts every choice
_SOME = 1e-6
_NONE, _BEST, _WORST = "none", "best", "worst"
_FEW_NUMBERS, _RARE = 4, 0.05  # numbers that may be labels, as grades are; share of odd words
_COUNTS = 0.1  # share of occasions that more than one choice each makes counts
_MOST_GROUPS = 12  # labels of a column that divides occasions into groups


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class ChoiceRows:
    """Choice data, one row per alternative. Make them with ``pgmult.read(table).choices(formula)``.

    Attributes
    ----------
    design : Design
        How the attributes are made of a table.
    x : array, ``(num_rows, num_columns)``
        Attributes, unscaled.
    taken : array, ``(num_rows,)``
        How often, or with which share or weight, each alternative was taken.
    occasions : int64 array, ``(num_occasions + 1,)``
        Where the rows of each occasion begin.
    people : int64 array, ``(num_people + 1,)``
        Where the occasions of each person begin.
    random : int64 array, ``(num_attributes,)``
        Columns for which people's tastes differ.
    signs : array, ``(num_attributes,)``
        1 or -1 where all people's coefficients have this sign, 0 elsewhere.
    diagonal : bool
        Whether tastes for different attributes are independent.
    scale : array, ``(num_columns,)``
        Standard deviations of columns within occasions.
    person, alternatives : Levels or None
        Names of people and of alternatives.
    alternative : int64 array, ``(num_rows,)``
        Which alternative each row is; 0 if they have no names.
    source : int64 array, ``(num_rows,)``
        The row of the table that each row comes from.
    occasion_columns : tuple of str
        Columns that identify the occasions of a person.
    weighted_by : str or None
        The column of weights.
    is_attribute : bool array, ``(num_design_columns,)``
        Columns of the design that are attributes: all but the intercept and bases.
    side : array, ``(num_rows,)``, or None
        -1 in choices of the worst alternative, whose attributes have the other sign, and 1 in those
        of the best; None if there are no choices of the worst.
    groups : mapping from a column to its levels and the level of each occasion
        Columns beside the formula that divide occasions into a few groups.
    none : str or None
        The label of "none of these".
    available : str or None
        The column that says which alternatives were available.
    cluster : int64 array, ``(num_occasions,)``
        The respondent of each occasion: the person, or the first of several columns that identify
        occasions; the occasion itself if there is no such column.
    """

    design: Design
    x: FloatArray
    taken: FloatArray
    occasions: IntArray
    people: IntArray
    random: IntArray
    signs: FloatArray
    diagonal: bool
    scale: FloatArray
    person: Levels | None
    alternatives: Levels | None
    alternative: IntArray
    source: IntArray
    occasion_columns: tuple[str, ...]
    weighted_by: str | None
    is_attribute: BoolArray
    cluster: IntArray
    side: FloatArray | None = None
    groups: Mapping[str, tuple[Levels, IntArray]] = field(default_factory=dict)
    none: str | None = None
    available: str | None = None

    def __repr__(self) -> str:
        people = f" {self.num_people:,} people," if self.person is not None else ""
        size = f"{self.num_rows:,} rows, {self.num_occasions:,} occasions,{people}"
        return f"ChoiceRows({size} {len(self.names)} attributes)"

    @property
    def num_rows(self) -> int:
        """Alternatives of all occasions."""
        return len(self.taken)

    @property
    def num_occasions(self) -> int:
        """Occasions."""
        return len(self.occasions) - 1

    @property
    def row_costs(self) -> IntArray:
        """The relative cost of each person in a sweep: occasions."""
        return np.diff(self.people)

    @property
    def num_people(self) -> int:
        """People; 1 if the data do not distinguish them."""
        return len(self.people) - 1

    @property
    def names(self) -> StrArray:
        """Names of attributes, ``(num_columns,)``."""
        return np.asarray(self.design.names[self.is_attribute])

    @property
    def fixed(self) -> IntArray:
        """Columns for which all people have the same taste."""
        return np.setdiff1d(np.arange(self.x.shape[1]), self.random)

    @property
    def person_names(self) -> StrArray:
        """Names of people."""
        return np.array(["all"]) if self.person is None else self.person.names

    @property
    def occasion_of_row(self) -> IntArray:
        """The occasion of each row."""
        return np.repeat(np.arange(self.num_occasions), np.diff(self.occasions))

    @property
    def first_row(self) -> IntArray:
        """The first row of the occasion of each row."""
        return np.repeat(self.occasions[:-1], np.diff(self.occasions))

    @property
    def within(self) -> FloatArray:
        """Attributes less their means over the alternatives of the occasion."""
        sums = np.add.reduceat(self.x, self.occasions[:-1], axis=0)
        return np.asarray(self.x - (sums / np.diff(self.occasions)[:, None])[self.occasion_of_row])

    @property
    def totals(self) -> FloatArray:
        """How many choices each occasion stands for."""
        return np.asarray(np.add.reduceat(self.taken, self.occasions[:-1]))

    @property
    def person_of_row(self) -> IntArray:
        """The person of each row."""
        return np.repeat(np.arange(self.num_people), np.diff(self.occasions[self.people]))

    def rows(self, people: slice) -> "ChoiceRows":
        """People, as a slice, and their choices.

        The same slice returns the same object.
        """

        def of(who: range) -> "ChoiceRows":
            cases, people = _between(self.people, who)
            levels = self.person and replace(self.person, labels=self.person.labels[who])
            return replace(self._of_occasions(cases, people), person=levels)

        return part_of(self, people, self.num_people, of)

    def _of_occasions(self, cases: Any, people: IntArray) -> "ChoiceRows":
        """Some occasions, and where those of each person begin among them."""
        rows, occasions = _between(self.occasions, cases)
        return replace(
            self, design=self.design.take(rows), x=self.x[rows], taken=self.taken[rows],
            occasions=occasions, people=people, cluster=self.cluster[cases],
            alternative=self.alternative[rows], source=self.source[rows],
            side=None if self.side is None else self.side[rows],
            groups={name: (levels, codes[cases]) for name, (levels, codes) in self.groups.items()},
        )  # fmt: skip

    @property
    def is_none(self) -> BoolArray:
        """Whether a row is "none of these", ``(num_rows,)``."""
        levels, of_row = self.labels(self.named)
        return np.asarray(levels.names[of_row] == self.none)

    @property
    def offset(self) -> FloatArray:
        """What utilities have beside the attributes, ``(num_rows,)``."""
        if self.design.offset is None:
            return np.zeros(self.num_rows)
        return self.design.offset if self.side is None else self.side * self.design.offset

    @property
    def of_best(self) -> "ChoiceRows":
        """The choices of the best alternatives alone."""
        if self.side is None:
            return self
        cases = np.flatnonzero(self.side[self.occasions[:-1]] > 0.0)
        return replace(self._of_occasions(cases, np.searchsorted(cases, self.people)), side=None)

    @property
    def named(self) -> str | None:
        """The column that names the alternatives."""
        return None if self.alternatives is None else self.alternatives.columns[0]

    def labels(self, column: Any, argument: str = "by") -> tuple[Levels, IntArray]:
        """The levels of a column and each row's: alternatives, of the formula, or of `groups`.

        Without a column all rows have the level "all".
        """
        if column is None:
            return Levels(("",), np.array([["all"]])), np.zeros(self.num_rows, dtype=np.int64)
        columns, known = self.design.columns, dict(self.groups)
        name = as_choice(column, argument, filter(None, [self.named, *columns.names, *known]))
        if self.alternatives is not None and name == self.named:
            return self.alternatives, self.alternative
        if name in known:
            return known[name][0], known[name][1][self.occasion_of_row]
        place = columns.place(name)
        return Levels.of({name: columns.cells(place)}, {name: columns.levels_of(place)})

    def made_of(self, design: Design, **changes: Any) -> "ChoiceRows":
        """Other rows, of a design like that of these."""
        x = np.ascontiguousarray(design.matrix[:, self.is_attribute])
        made = replace(self, design=design, x=x, **changes)
        return made if made.side is None else replace(made, x=made.side[:, None] * x)

    def without_people(self) -> "ChoiceRows":
        """The same choices, without differences of tastes between people."""
        return replace(
            self, people=np.array([0, self.num_occasions]), random=self.random[:0],
            signs=self.signs[:0], diagonal=False, person=None,
        )  # fmt: skip

    def coefficients_of(self, tastes: FloatArray) -> FloatArray:
        """Tastes, ``(..., num_attributes)``, as coefficients: exp where the sign is fixed."""
        signed = self.signs != 0.0
        positive = np.exp(np.where(signed, tastes, 0.0))
        return np.asarray(np.where(signed, self.signs * positive, tastes))

    def probs(self, tastes: FloatArray, coefficients: FloatArray) -> FloatArray:
        """Probabilities of all rows, with sum 1 in each occasion, given the tastes of each row."""
        u = np.einsum("rk,rk->r", self.x[:, self.random], self.coefficients_of(tastes))
        return self.probs_of(u + (self.x[:, self.fixed] @ coefficients + self.offset))

    def probs_of(self, utilities: FloatArray) -> FloatArray:
        """Probabilities of all rows, with sum 1 in each occasion, given utilities of rows."""
        first, of_row = self.occasions[:-1], self.occasion_of_row
        p = np.exp(utilities - np.maximum.reduceat(utilities, first)[of_row])
        return np.asarray(p / np.add.reduceat(p, first)[of_row])

    def drawn(self, rng: Generator, probs: FloatArray) -> FloatArray:
        """New choices with the same totals; one alternative gets all of a fractional total."""
        totals, of_row = self.totals, self.occasion_of_row
        is_count, place = totals == np.round(totals), np.arange(self.num_rows) - self.first_row
        padded = np.zeros((self.num_occasions, int(place.max()) + 1))
        padded[of_row, place] = probs
        padded /= padded.sum(axis=1, keepdims=True)
        counts = rng.multinomial(np.where(is_count, totals, 1.0).astype(np.int64), padded)
        return np.asarray((counts * np.where(is_count, 1.0, totals)[:, None])[of_row, place])


def _between(bounds: IntArray, which: Any) -> tuple[slice | IntArray, IntArray]:
    """Rows between bounds, neighbours as a slice; and the bounds among these rows."""
    which = range(len(bounds) - 1)[which] if isinstance(which, slice) else which
    if isinstance(which, range) and which.step == 1:
        starts = bounds[which.start : which.start + len(which) + 1]
        return slice(int(starts[0]), int(starts[-1])), starts - starts[0]
    sizes = np.diff(bounds)[which]
    starts = np.append(0, np.cumsum(sizes))
    return np.repeat(bounds[:-1][which] - starts[:-1], sizes) + np.arange(starts[-1]), starts


def choices_of(
    formula: str, table: object, *, occasion: str | Sequence[str], alternative: str | None = None,
    base: object = None, weights: str | None = None, signs: Mapping[str, int] | None = None,
    worst: str | None = None, none: Any = None, available: str | None = None,
) -> ChoiceRows:  # fmt: skip
    """Choices from a table with a row for each alternative of each occasion.

    Parameters
    ----------
    formula : str
        ``"taken ~ price + time + (price + time | who)"``. ``"taken ~ price | income | time"`` is
        short for ``"taken ~ price + mode + mode:income + mode:time"`` with ``alternative="mode"``.
    table : table, data frame, or mapping from name to column
    occasion : str or sequence of str
        Columns that identify occasions; within each person, if the formula has people.
    alternative : str, optional
        The column that names the alternatives; numbers are names, too.
    base : label, optional
        The alternative whose constant, and whose coefficients of what belongs to a person, are 0;
        the first if left out.
    weights : str, optional
        The column with the weight of each occasion, the same in all its rows.
    signs : mapping from attribute to 1 or -1, optional
        Attributes for which every person's coefficient has this sign: plus or minus the exponential
        of a normal taste.
    worst : str, optional
        The column that marks the worst alternative of an occasion, where the left-hand side marks
        the best (best-worst scaling, MaxDiff). The worst is chosen among all but the best, with
        utilities of the other sign (Marley and Louviere 2005, "Some probabilistic models of best,
        worst, and best-worst choices"). An occasion may lack one of the two answers. It may be the
        column of the left-hand side, if that is 1 for the best, -1 for the worst and 0 for others.
    none : label, optional
        The alternative that is "none of these", which may also be an empty cell. Its attributes
        are 0 where they are empty, and it has a constant.
    available : str, optional
        The column that is 1, or true, where an alternative was available. Other rows are left out,
        also of tables in which choices are predicted.

    Returns
    -------
    ChoiceRows
        Rows in the order of people and occasions.

    Raises
    ------
    ValueError
        If an occasion has no choice, one alternative or one twice; an attribute never varies within
        occasions or is collinear with others there; or the formula has random terms of more than
        one grouping.
    """
    formula = in_full(as_kind(formula, "formula", str), alternative)
    parsed = parse(formula)
    outcome = outcome_of(parsed)
    if available is not None:
        tables.one_role_each({"available": available, "the left-hand side": outcome})
        there, rows = available_rows(table, available, outcome=outcome)
        with tables.rows_in_words(there):
            data = choices_of(
                formula, there, occasion=occasion, alternative=alternative, base=base,
                weights=weights, signs=signs, worst=worst, none=none,
            )  # fmt: skip
        source = rows[data.source] if worst is None else data.source
        return replace(data, source=source, available=available)
    columns = dict(exact_columns(table, "table"))
    if none is not None:
        if alternative not in parsed.columns:  # else the alternatives have constants
            parsed = parse(f"{formula} + {_NONE}")
        columns = _with_none(columns, parsed, alternative, none)
    elif alternative is not None:
        _refuse_empty(columns, parsed, alternative)
    sides = None
    if worst is not None:
        columns, sides = _best_and_worst(columns, outcome, worst, listed(occasion))
    if alternative is not None:
        columns[alternative] = _named(columns, alternative, base)
    elif base is not None:
        raise ValueError(f"base must come with alternative=, whose label it is, got {brief(base)}")
    design = make_design(
        columns, _size(columns), parsed, standardize=False, check=False, every_term=True
    )
    for place, name in enumerate(design.columns.names.tolist()):
        is_free = columns[name].order is None and f"C({name}" not in formula
        if is_free and name != alternative and design.columns.levels_of(place):
            refuse_words(design.columns.cells(place), name)
    terms = _people(design)
    if len({term.variables for term in terms}) > 1 or len(terms) < bool(design.terms):
        parsed.refuse("people are one grouping with attributes, (price + time | who)")
    arranged = _arranged(columns, design, listed(occasion), alternative, parsed)
    design = arranged["design"]
    is_attribute = _kept(design, alternative, arranged["occasions"])
    names = design.names[is_attribute]
    random, diagonal = _random(terms, names, design.names[~is_attribute], parsed)
    cells = table_column(columns, outcome, "the left-hand side")
    data = ChoiceRows(
        **arranged, x=np.ascontiguousarray(design.matrix[:, is_attribute]),
        taken=amounts_of(cells, outcome)[arranged["source"]], random=random,
        signs=_signs(signs, names[random]), diagonal=diagonal, scale=np.ones(len(names)),
        weighted_by=weights, is_attribute=is_attribute, none=None if none is None else str(none),
    )  # fmt: skip
    if sides is not None:
        side = np.where(sides == _WORST, -1.0, 1.0)[data.source]
        data = replace(data, x=side[:, None] * data.x, side=side)
    _check_taken(data, columns, outcome)
    _refuse_twice(data, columns)
    data = replace(data, scale=_scale(data, alternative))
    _warn_if_separated(data)
    return replace(data, taken=data.taken * _weights(data, columns))


def rows_like(
    data: ChoiceRows, table: object, occasion: str | Sequence[str] | None, new_people: bool
) -> tuple[ChoiceRows, IntArray]:
    """The same attributes of another table.

    Occasions stand for as many choices as its columns of choices and weights say; for one each if
    it has no such columns, or an occasion without a choice.

    The columns that identify occasions are those of `data`; all rows are one if `table` has none of
    these columns.

    Raises
    ------
    ValueError
        If `occasion` is left out, and what is one occasion is not clear.

    Returns
    -------
    ChoiceRows
    int64 array, ``(num_people,)``
        Which person of `data` each is, -1 for one who is not among them.
    """
    source, columns = None, dict(exact_columns(table, "new"))
    if data.available in columns:
        there, source = available_rows(table, data.available, "new")
        columns = dict(there.cells)
    parsed = parse(str(data.design.formula))
    if data.none is not None:
        columns = _with_none(columns, parsed, data.named, data.none)
    num_rows = _size(columns)
    if new_people and data.person is not None:
        columns = dict.fromkeys(data.person.columns, Cells(np.full(num_rows, "\0"))) | columns
    _refuse_new_alternatives(data, columns)
    levels_by_name = {name: levels for name, (levels, _) in data.groups.items()}
    if data.named is not None and data.alternatives is not None:
        levels_by_name[data.named] = data.alternatives
    for name in columns.keys() & levels_by_name:
        order = tuple(levels_by_name[name].labels[:, 0].tolist())
        columns[name] = columns[name]._replace(order=order)
    cells_by_name = {name: cells.values for name, cells in columns.items()}
    with under_name("new", of="covariates"):
        design = data.design.like(cells_by_name, new_levels=new_people, num_rows=num_rows)
    if new_people:
        data.design.report_new_labels(cells_by_name, "new", asked=True)
    asked, names = occasion is not None, data.occasion_columns
    given = listed(occasion) if asked else [name for name in names if name in columns]
    if not asked and 0 < len(given) < len(names):
        missing = [name for name in names if name not in columns]
        raise ValueError(
            f"occasion must name what identifies the occasions of new: it has {' and '.join(given)}"
            f" without {' and '.join(missing)} (occasion=[] takes all rows of a person for one)"
        )
    named = data.named if data.named in columns else None
    rows = data.made_of(**_arranged(columns, design, given, named, parsed), side=None)
    if given or not asked:
        _refuse_twice(rows, columns)
    firsts, terms = rows.occasions[rows.people[:-1]], _people(rows.design)
    codes = terms[0].codes[firsts] if terms else np.zeros(1, dtype=np.int64)
    rows = replace(rows, taken=_weighed(rows, columns))
    rows = rows if source is None else replace(rows, source=source[rows.source])
    return rows, np.maximum(codes, -1)


def _size(columns: Columns) -> int:
    """Number of rows."""
    return len(next(iter(columns.values())).values)


def available_rows(
    table: object, column: Any, what: str = "table", outcome: str | None = None
) -> tuple[Any, IntArray]:
    """The rows of alternatives that were available, none of the others taken, and their numbers."""
    exact = table if isinstance(table, ExactTable) else ExactTable(exact_columns(table, what))
    is_there = amounts_of(table_column(exact.cells, column, "available"), column) > 0.0
    rows, others = np.flatnonzero(is_there), np.flatnonzero(~is_there)
    if outcome is not None and outcome in exact.cells and len(others):
        taken = exact.cells[outcome].values[others]
        amounts = amounts_of(np.where(missing_in(taken), 0, taken), outcome)
        if (amounts > 0).any():
            got = f"one that is not at row {others[np.argmax(amounts > 0)]}"
            raise ValueError(f"alternatives must be available where they are taken, got {got}")
    return exact[rows], rows


def _refuse_new_alternatives(data: ChoiceRows, columns: Columns) -> None:
    """Refuse alternatives whose constants, or coefficients, the data say nothing about."""
    name = data.named or ""
    if name not in columns or name not in data.design.columns.names:
        return
    known = data.design.levels_of(name)
    if len(new := np.setdiff1d(labels_of(columns[name].values, name), known)):
        raise ValueError(
            f"new has the alternative {str(new[0])!r}, which has no constant, unlike"
            f" {', '.join(known)} (name it as the one that it is most like, or fit without {name})"
        )


def _weighed(data: ChoiceRows, columns: Columns) -> FloatArray:
    """What was taken in another table; equal shares of one choice where it does not say."""
    name = outcome_of(parse(str(data.design.formula)))
    weights = _weights(data, columns) if data.weighted_by in columns else 1.0
    if name in columns and not missing_in(columns[name].values).any():
        taken = amounts_of(columns[name].values, name)[data.source]
        if (np.add.reduceat(taken, data.occasions[:-1]) > 0.0).all():
            return np.asarray(taken * weights)
    return np.asarray(weights / np.diff(data.occasions)[data.occasion_of_row])


def _named(columns: Columns, name: str, base: object) -> Cells:
    """The column of alternatives: labels, numbers among them in their order, the base first."""
    labels = labels_of(table_column(columns, name, "alternative"), name)
    order = list(columns[name].order or numbered(labels)[0])
    if base is not None:
        order.insert(0, order.pop(int(find_labels(order, [base], "base", what="argument")[0])))
    return columns[name]._replace(values=labels, order=tuple(map(str, order)))


def _with_none(
    columns: Columns, parsed: Formula, alternative: str | None, none: object
) -> dict[str, Cells]:
    """Columns in which "none of these" has attributes, a label, and a column that marks it."""
    if alternative is None:
        raise ValueError(f"none must come with alternative=, whose label it is, got {brief(none)}")
    out, cells = dict(columns), named_column(columns, alternative, "alternative").values
    label = labels_of([none], "none")[0]
    labels = labels_of(np.where(missing_in(cells), label, cells), alternative)
    is_none = labels == label
    if not is_none.any():
        find_labels(numbered(labels)[0], [none], "none", what=f"the labels of {alternative}")
    order = columns[alternative].order
    order = None if order is None else tuple(dict.fromkeys([*order, label]))
    out[alternative] = columns[alternative]._replace(values=labels, order=order)
    for name in parsed.columns:
        if name in columns and name not in (alternative, outcome_of(parsed)):
            values = columns[name].values
            if (empty := missing_in(values) & is_none).any():
                plain = values[~missing_in(values)].min() if values.dtype.kind == "O" else 0.0
                filled = np.where(empty, plain if isinstance(plain, str) else 0, values)
                out[name] = columns[name]._replace(values=tables.exact_array(filled.tolist()))
    return out | ({_NONE: Cells(1.0 * is_none)} if _NONE in parsed.columns else {})


def _refuse_empty(columns: Columns, parsed: Formula, alternative: str) -> None:
    """Refuse an alternative without attributes, which is "none of these" mostly."""
    cells = named_column(columns, alternative, "alternative").values
    labels, nameless = np.where(missing_in(cells), "", cells).astype(str), missing_in(cells).any()
    for name in [name for name in parsed.columns if name in columns]:
        empty = missing_in(columns[name].values)
        always = [x for x in np.unique(labels[empty]).tolist() if empty[labels == x].all()]
        if nameless or always:
            which = "".join(always[:1]) or "LABEL"
            raise ValueError(
                f"{alternative if nameless else name} must have a value in every row, got none (if"
                f" these are rows of 'none of these', say so: none={which!r}, --none {which})"
            )


def _best_and_worst(
    columns: Columns, best: str, worst: str, occasion: Sequence[str]
) -> tuple[dict[str, Cells], StrArray]:
    """Rows of the choices of the best, then of the worst among the others; and which these are.

    One column may mark both, by 1 and -1.
    """
    if as_kind(worst, "worst", str) == best:
        marks = numbers_of(table_column(columns, best, "worst"), best)
        if not np.isin(marks, (-1.0, 0.0, 1.0)).all():
            got = brief(marks.tolist())
            raise ValueError(f"{best} must be 1 (best), 0 or -1 (worst), got {got}")
        worst, chosen = f"{best}: {_WORST}", [marks > 0.0, marks < 0.0]
    else:
        cells = [(table_column(columns, name, "worst"), name) for name in (best, worst)]
        chosen = [amounts_of(*one) > 0.0 for one in cells]
    if not occasion:
        raise ValueError("occasion must name a column where worst= marks the worst, got none")
    codes = _codes(columns, occasion)
    for name, marked in zip((best, worst), chosen, strict=True):
        if np.bincount(codes[marked]).max(initial=0) > 1:
            raise ValueError(f"{name} must mark one alternative of an occasion at most")
    answered = [np.isin(codes, codes[marked]) for marked in chosen]
    if (chosen[0] & chosen[1]).any():
        raise ValueError(f"{best} and {worst} must not mark the same alternative")
    first, then = np.flatnonzero(answered[0]), np.flatnonzero(answered[1] & ~chosen[0])
    sides = np.repeat([_BEST, _WORST], [len(first), len(then)])
    out = stacked(columns, np.concatenate([first, then]), occasion, sides)
    taken = np.concatenate([chosen[0][first], chosen[1][then]])
    return out | {best: Cells(1.0 * taken), worst: Cells(sides)}, sides


def _codes(columns: Columns, occasion: Sequence[str]) -> IntArray:
    """The number of the occasion, or respondent, of each row, by columns that identify these."""
    return Levels.of({name: table_column(columns, name, "occasion") for name in occasion})[1]


def stacked(
    columns: Columns, rows: IntArray, occasion: Sequence[str], which: Array
) -> dict[str, Cells]:
    """Rows of several choices of an occasion, whose last column then says which choice it is."""
    out, last = {name: cells.take(rows) for name, cells in columns.items()}, occasion[-1]
    labels = np.char.add(labels_of(out[last].values, last), ", ")
    return out | {last: Cells(np.char.add(labels, which.astype(np.str_)))}


def _groups(
    columns: Columns, beside: set[str], rows: IntArray, firsts: IntArray
) -> dict[str, tuple[Levels, IntArray]]:
    """Columns beside some that are the same in all rows of an occasion, with few labels.

    `rows` are in the order of occasions, and `firsts` the first one of the occasion of each.
    """
    out, first = {}, np.unique(firsts)
    for name, cells in columns.items():
        if name in beside or cells.values.dtype.kind not in "OUTiufb":
            continue
        values = cells.values[rows]
        alike = (values == values[firsts]).all() and not missing_in(values).any()
        if alike and 1 < len(set(values[first].tolist())) <= _MOST_GROUPS:
            out[name] = Levels.of({name: values[first]}, {name: cells.order})
    return out


def refuse_words(
    labels: StrArray, name: str, places: Sequence[tuple[object, int]] | None = None
) -> None:
    """Refuse words among an attribute's numbers, many or rare words, which make labels of all.

    Parameters
    ----------
    labels : str array, ``(num_cells,)``
    name : str
    places : sequence of pairs of a column and a row, ``(num_cells,)``, optional
    """
    levels, codes = np.unique(labels, return_inverse=True)
    is_number = np.array([bool(NUMBER.fullmatch(level)) for level in levels.tolist()])
    words, count = ~is_number[codes.reshape(-1)], is_number.sum()
    if words.any() and (count > _FEW_NUMBERS or (count > 1 and words.mean() <= _RARE)):
        at = int(np.argmax(words))
        column, row = (name, at) if places is None else places[at]
        raise ValueError(
            f"column {column!r} must hold numbers, got {str(labels[at])!r} at row {row} (write one"
            f" there, or nothing and --drop-incomplete; C({name}) makes labels of all cells)"
        )


def outcome_of(formula: Formula) -> str:
    """The column that stands on the left-hand side."""
    if not isinstance(formula.outcome, Name):
        formula.refuse("its left-hand side is the column that says which alternative was taken")
    return formula.outcome.name


def in_full(formula: str, alternative: str | None) -> str:
    """A formula with what stands between bars, outside brackets, as products of alternatives."""
    depth = np.cumsum([(mark == "(") - (mark == ")") for mark in formula])
    bars = [i for i, mark in enumerate(formula) if mark == "|" and not depth[i]]
    if not bars:
        return formula
    first, *parts = (formula[a + 1 : b] for a, b in pairwise([-1, *bars, len(formula)]))
    if alternative is None or len(parts) > 2:
        raise ValueError(
            f"formula {formula!r}: what stands after | has a coefficient for each alternative, so"
            " it needs alternative=, and two parts after | at most"
        )
    label = str(Name(alternative))
    after = [parse("~ " + part) for part in [parts[0].strip() or "1", *parts[1:]]]
    terms = [label] if after[0].intercept else []
    for term in (term for formula in after for term in formula.terms):
        product = ":".join(map(str, term))
        terms.append(product if "|" in product else f"{label}:{product}")
    first = first if first.partition("~")[2].strip() else f"{first} 1"
    return " + ".join([first.strip(), *terms])


def _kept(design: Design, alternative: str | None, occasions: IntArray) -> BoolArray:
    """Columns that are attributes: not the intercept, nor products of the base and a person's.

    The products of all alternatives and what belongs to a person add up to what is the same for
    all alternatives of an occasion, so that of one is 0.
    """
    names, is_attribute = design.names.tolist(), design.names != "Intercept"
    levels = [f"{alternative}[{level}]" for level in design.levels_of(alternative or "")]
    firsts = np.repeat(occasions[:-1], np.diff(occasions))
    for place, name in enumerate(names if levels else []):
        columns = {name.replace(levels[0], level) for level in levels}
        if levels[0] in name and columns <= set(names):
            total = design.matrix[:, np.isin(names, [*columns])].sum(axis=1)
            is_attribute[place] = (np.abs(total - total[firsts]) > 1e-9 * np.abs(total).max()).any()
    return np.asarray(is_attribute)


def _refuse_twice(data: ChoiceRows, columns: Columns) -> None:
    """An alternative that stands twice in an occasion."""
    if data.alternatives is None:
        return
    which, of_row = data.alternative, data.occasion_of_row
    at = np.lexsort((which, of_row))
    again = (np.diff(which[at]) == 0) & (np.diff(of_row[at]) == 0)
    if again.any():
        row = at[int(np.argmax(again))]
        got = f"{data.named} {data.alternatives.names[which[row]]}"
        raise ValueError(
            f"an alternative must stand once in an occasion, got {got} twice in"
            f" {_case_text(data, columns, row) or 'one'} (occasion= names what identifies them)"
        )


def _case_text(data: ChoiceRows, columns: Columns, row: int) -> str:
    """The occasion of a row, in words."""
    names = [*(data.person.columns if data.person else ()), *data.occasion_columns]
    rows = data.source[[row]]
    return ", ".join(f"{name} {labels_of(columns[name].values[rows], name)[0]}" for name in names)


def _people(design: Design) -> list[GroupTerm]:
    """Terms of people's tastes; none if there is a term of another kind."""
    groups = [term for term in design.terms if isinstance(term, GroupTerm)]
    others = len(groups) < len(design.terms) or {g.kind for g in groups} - {"slopes", "group"}
    return [] if others else [g for g in groups if g.kind == "slopes"]  # constants mean nothing


def _arranged(
    columns: Columns, design: Design, occasion: Sequence[str], alternative: str | None,
    parsed: Formula,
) -> dict[str, Any]:  # fmt: skip
    """Fields that identify people, occasions and alternatives, in the order of people."""
    terms, same = _people(design), np.zeros(_size(columns), dtype=np.int64)
    of_row = terms[0].codes if terms else same
    case = _codes(columns, occasion) if occasion else same
    order = np.lexsort((case, of_row))
    case, who = case[order], of_row[order]
    is_first = np.append(True, (np.diff(case) != 0) | (np.diff(who) != 0))
    starts = np.flatnonzero(is_first)
    people = np.flatnonzero(np.append(np.diff(who[starts], prepend=-2) != 0, True))
    cluster = np.arange(len(starts))  # the respondent of each occasion
    if terms:
        cluster = np.repeat(np.arange(len(people) - 1), np.diff(people))
    elif len(occasion) > 1:
        cluster = _codes(columns, occasion[:1])[order[starts]]
    levels, codes = None, same
    if alternative is not None:
        cells = table_column(columns, alternative, "alternative")
        levels, codes = Levels.of({alternative: cells}, {alternative: columns[alternative].order})
    firsts = starts[np.cumsum(is_first) - 1]
    return {
        "design": design.take(order), "occasions": np.append(starts, len(order)), "people": people,
        "source": order, "occasion_columns": tuple(occasion), "cluster": cluster,
        "person": terms[0].known if terms else None, "alternatives": levels,
        "alternative": codes[order],
        "groups": _groups(columns, {*parsed.columns, *occasion}, order, firsts),
    }  # fmt: skip


def listed(occasion: object) -> list[Any]:
    """The columns that identify occasions."""
    return [occasion] if isinstance(occasion, str) else as_list(occasion, "occasion", "columns")


def _check_taken(data: ChoiceRows, columns: Columns, name: str) -> None:
    """Refuse occasions without a choice or with too many, ranks, and codes of yes and no."""
    taken, sums, sizes = data.taken, data.totals, np.diff(data.occasions)
    once = np.isin(taken, (0.0, 1.0)).all() & (sums > 1.0)
    for bad, wanted, got in (
        (sizes < 2, "occasions must have two alternatives or more", "one"),
        (~(sums > 0.0), "one alternative ('none of these' is one) must be taken", "none"),
        (once, "one alternative of an occasion must be taken", f"{sums[np.argmax(once)]:g}"),
    ):
        if bad.any():
            row = data.occasions[np.argmax(bad)]
            raise ValueError(f"{wanted}, got {got} in {_case_text(data, columns, row)}")
    marked = np.flatnonzero(taken)
    of_row = data.occasion_of_row[marked]
    ranked = taken[marked][np.lexsort((taken[marked], of_row))]
    numbers = np.bincount(of_row)
    place = np.concatenate([np.arange(1, number + 1) for number in numbers.tolist()])
    if len(sums) > 1 and max(sizes) > 2 and min(numbers) > 1 and np.array_equal(ranked, place):
        raise ValueError(
            f"{name} must say what was taken, got 1, 2, ... once each in every occasion, which are"
            " ranks (pgmult.choice.explode, or --ranks, makes choices of them)"
        )
    if len(sums) > 1 and len(np.unique(taken)) == 2 and not np.isclose(sums, 1.0).all():
        _refuse_codes(columns[name].values, name)
    odd = taken[marked] != 1.0
    if max(numbers) == 1 and odd.any() and odd.mean() < _COUNTS:
        at = marked[np.argmax(odd)]
        raise ValueError(
            f"{name} must be 1 for what was taken and 0 for others, got {taken[at]:g} at row"
            f" {data.source[at]}, unlike nearly all (weights= counts the choices of an occasion)"
        )


def amounts_of(cells: Array, name: str) -> FloatArray:
    """Truth values, or numbers that are 0 or more."""
    if (truth := tables.truth_of(cells)) is not None:
        return truth.astype(np.float64)
    if cells.dtype.kind == "U":
        _refuse_codes(cells, name)
    taken = numbers_of(cells, name)
    if (least := taken.min(initial=0.0)) < 0.0:
        hint = f" (if -1 marks the worst: worst={name!r}, --worst {name})" * bool(least == -1.0)
        raise ValueError(f"{name} must be 0 or more, got {least:g}{hint}")
    return taken


def _refuse_codes(cells: Array, name: str) -> NoReturn:
    codes = brief(np.unique(labels_of(cells, name)).tolist())
    raise ValueError(
        f"{name} must be yes or no, true or false, 1 or 0, or a count or share of choices, got"
        f" {codes}: say which one means taken (1 for it, 0 for the other; weights= for counts)"
    )


def _weights(data: ChoiceRows, columns: Columns) -> FloatArray:
    """Weights of rows, 1 where no column has them."""
    name = data.weighted_by
    if name is None:
        return np.ones(data.num_rows)
    weight = numbers_of(table_column(columns, name, "weights"), name)[data.source]
    if (weight < 0.0).any() or (weight != weight[data.first_row]).any():
        raise ValueError("weights must be 0 or more, and the same in all rows of an occasion")
    return weight


def _random(
    terms: Sequence[Any], names: StrArray, without: StrArray, parsed: Formula
) -> tuple[IntArray, bool]:
    """Columns for which tastes differ, and whether tastes for them are independent."""
    left_out = {"Intercept", *without.tolist()}
    asked = [name for term in terms for name in term.slopes.names if name not in left_out]
    places = {name: i for i, name in enumerate(names.tolist())}
    if lacking := [name for name in asked if name not in places]:
        parsed.refuse(
            f"{lacking[0]} varies by person and must stand among the attributes, too:"
            f" {', '.join(places)} (multiply what belongs to a person by the alternatives)"
        )
    if len(set(asked)) < len(asked):
        parsed.refuse("an attribute varies by person once")
    return np.array([places[name] for name in asked], dtype=np.int64), len(terms) > 1


def _scale(data: ChoiceRows, alternative: str | None) -> FloatArray:
    """Standard deviations within occasions, where columns must vary and not be sums of others."""
    within, names = data.within, data.names
    if not len(names):
        raise ValueError("formula must have an attribute, got none")
    scale = np.sqrt(np.mean(within**2, axis=0))
    constant = scale <= 1e-9 * np.maximum(np.abs(data.x).max(axis=0), 1e-300)
    if constant.any():
        name = names[int(np.argmax(constant))]
        raise ValueError(
            f"attributes must vary within occasions, got {name}, which never does (what belongs to"
            f" a person goes into a product: {alternative or 'price'}:{name}, without {name} alone;"
            f" or after a bar, taken ~ price | {name}, with alternative=)"
        )
    left = np.abs(np.diagonal(np.linalg.qr(within / scale, mode="r"))) < 1e-7 * np.sqrt(len(within))
    if len(left) < len(names) or left.any():
        name = names[int(np.argmax(left))]
        got = f"{name} (leave one out)"
        raise ValueError(f"attributes must not be sums of others within occasions, got {got}")
    return np.asarray(scale)


def _warn_if_separated(data: ChoiceRows) -> None:
    """Warn of attributes that predict every choice: the likelihood has no maximum then.

    That is so if a weighted sum of them is nowhere larger in what was not taken than in what was,
    and the same in all that was taken of one occasion (Albert and Anderson 1984): a linear program.
    """
    x, occasions, of_row = data.x / data.scale, data.occasions, data.occasion_of_row
    most = np.lexsort((-data.taken, of_row))[occasions[:-1]]
    for last in (occasions[min(_FEW_OCCASIONS, data.num_occasions)], data.num_rows):
        away, taken = (x - x[most][of_row])[:last], data.taken[:last] > 0.0
        left, tied = away[~taken], away[taken]
        if not len(left):
            return
        optimum = linprog(
            left.mean(axis=0), left, np.zeros(len(left)), tied, np.zeros(len(tied)), (-1.0, 1.0)
        )  # fmt: skip
        if not (optimum.success and optimum.fun < -_SOME):
            return
    alone = (np.sign(optimum.x) * left <= 0.0).all(axis=0) & ~tied.any(axis=0)
    matters = np.abs(optimum.x) > _SOME
    which = data.names[matters & alone if (matters & alone).any() else matters]
    verb = "predicts" if len(which) == 1 else "predict"
    said = f"{' and '.join(which)} {verb} every choice without an error"
    warnings.warn(f"{said}, so only the prior bounds the coefficients", stacklevel=3)


def _signs(signs: Mapping[str, int] | None, names: StrArray) -> FloatArray:
    given = as_mapping(signs, "signs")
    for name, sign in given.items():
        if name not in names:
            wanted = f"of attributes that vary by person, {', '.join(names) or 'none'}"
            raise ValueError(f"signs must be {wanted}, got {brief(name)}")
        if sign not in (1, -1):
            raise ValueError(f"signs must be 1 or -1, got {brief(sign)} for {name}")
    return np.array([given.get(name, 0) for name in names.tolist()], dtype=np.float64)

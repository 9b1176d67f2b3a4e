"""Rows of regressions out of a table, by formula: ``"vote ~ age + C(region)"``.

The right-hand side is that of `pgmult.formulas.language`; ``- 1`` leaves the intercept out, and
``offset(x)`` is added to
the predictor, and ``offset(x, "red")`` to the score of a category. The left-hand side says what y
is:

* ``vote``: one column, of labels or of counts;
* ``p(wins, games)``: successes and trials;
* ``c(red, green, blue)``: counts of several categories.

Rows are those of an `AdditiveRegression`: equal ones are added up to one cell, unless they are
counts that scatter.

>>> table = {"age": [20, 30, 20], "wins": [1, 0, 2], "games": [2, 1, 2]}
>>> rows = rows_of("p(wins, games) ~ age", table)
>>> rows.categories.tolist(), rows.counts.tolist()
(['success', 'failure'], [[1, 1], [0, 1], [2, 0]])
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmult.core.arguments import as_choice, as_kind, as_list, brief, under_name
from pgmult.core.labels import TOTAL, Levels, find_labels, label_of, total_of
from pgmult.core.tables import Cells, exact_columns
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_counts, as_nonnegative, place_of
from pgmult.formulas.columns import NUMBER, table_column
from pgmult.formulas.design import distinct_rows, make_design
from pgmult.formulas.language import Formula, Name, parse
from pgmult.regression.data import AdditiveRows

_ROUNDED = 1.005  # sum of shares each of which was rounded
_MORE = 1.001  # sum of fractional weights by their number, from which on a warning says so
_WHOLE = 1e-3  # from a whole number, that R's glm takes for rounding
_LARGEST = 1e12
_LARGEST_OFFSET = 30.0  # of a log: a factor of 1e13
_MOST_NUMBERS = 20  # that are taken for labels without being asked
_SUMS = 6  # rows in which a category that is not called a total is not the sum by chance
_MOST_REPEATED = 100_000  # rows of counts, one for each unit of a weight
_OF_EVENTS = ("poisson", "negative_binomial")
_FAMILIES = ("categories", "dirichlet_multinomial", *_OF_EVENTS)


def _outcome(formula: Formula, columns: Mapping[str, Cells]) -> tuple[Any, Any]:
    """y, and trials where there are any."""
    left: Any = formula.outcome
    names = [node.name for node in left.arguments or (left,) if isinstance(node, Name)]
    if left.function not in ("", "p", "c") or len(names) != max(len(left.arguments), 1):
        formula.refuse(f"its left-hand side is a column, p(y, trials) or c(red, green), got {left}")
    cells = {name: table_column(columns, name, "the left-hand side") for name in names}
    if not left.function:
        return cells[left.name], None
    if left.function == "p":
        if len(names) != 2:
            formula.refuse(f"p(successes, trials) takes two columns, got {left}")
        return cells[names[0]], cells[names[1]]
    if len(cells) < 2:
        formula.refuse(f"c(...) takes two columns of counts or more, got {left}")
    return cells, None


def rows_of(
    formula: str,
    table: object,
    *,
    weights: str | None = None,
    ordered: Sequence[object] | bool | None = None,
    maps: Mapping[str, object] | None = None,
    family: str | None = None,
    unit: str = "observation",
) -> AdditiveRows:
    """Data of an `AdditiveRegression` from a table: rows of equal covariates are one cell.

    Parameters
    ----------
    formula : str
    table : table, data frame, or mapping from name to column
    weights : str, optional
        Column of how many observations a row stands for: a weight w raises the row's likelihood to
        the power w. See `AdditiveRows.is_weighted` for what fractions leave out.
    ordered : sequence of categories or bool, optional
        Categories from the lowest to the highest; True for those of the outcome in the order that
        they have. By default those of an ordered categorical have an order.
    maps : mapping from name to map, optional
        Of ``car(area, name)``: see `pgmult.formulas.maps`.
    family : str, optional
        "categories"; "dirichlet_multinomial" for counts of categories whose probabilities scatter
        between rows (beta-binomial for two); "poisson" or "negative_binomial" for events. By
        default rows of several counts scatter unless they have an order or fractional weights;
        numbers are labels if there are 20 at most.
    unit : str
        What reports call an observation, in the singular, such as "animal".

    Raises
    ------
    ValueError
        If the formula cannot be read, a column is not there or has missing values, or the outcome
        is a single label.
    """
    parsed, columns = parse(as_kind(formula, "formula", str)), exact_columns(table, "table")
    is_said = family is not None
    family = "categories" if family is None else as_choice(family, "family", _FAMILIES)
    is_events, num_rows = family in _OF_EVENTS, len(next(iter(columns.values())).values)
    outcome = columns.get(parsed.outcome.name) if isinstance(parsed.outcome, Name) else None
    times = one_each = np.ones(num_rows, dtype=np.int64)
    if weights is not None:
        times = _times_of(table_column(columns, weights, "weights"))
        if not is_said and outcome is not None and _are_shares(outcome.values, times):
            right = parsed.text.partition("~")[2].strip()
            parsed = parse(f"p({parsed.outcome}, {weights}) ~ {right}")
            outcome, times = None, one_each
        elif (shares := _shares(parsed, columns)) is not None:
            columns = {**columns, **{n: Cells(np.rint(x * times)) for n, x in shares.items()}}
            times = one_each
            shared = f"{parsed.outcome} are taken for shares of {weights!r}: counts are rounded"
            warnings.warn(shared, stacklevel=3)
    categories, counts = (_events if is_events else _counts)(parsed, columns)
    if len(categories) < 2 and not is_events:
        parsed.refuse(f"{parsed.outcome} must hold two labels or more, got {categories[0]!r} alone")
    numbers = outcome.values if outcome is not None else np.empty(0, object)
    if not is_said and numbers.dtype.kind in "iuf" and len(categories) > _MOST_NUMBERS:
        if numbers.min() >= 0.0 and numbers.max() <= 1.0:
            parsed.refuse(f"{parsed.outcome} holds shares: write p(successes, trials) of counts")
        parsed.refuse(
            f"{parsed.outcome} holds {len(categories)} different numbers: say"
            ' family="negative_binomial" or "poisson" for counts of events, "categories" for labels'
        )
    design = make_design(columns, num_rows, parsed, every_term=True, maps=maps)
    if is_events:
        if design.offset is not None and np.abs(design.offset).max() > _LARGEST_OFFSET:
            worst = float(design.offset[np.abs(design.offset).argmax()])
            factor = f"where {worst:g} is a factor exp({worst:g})"
            hint = "that of a time or a population is written offset(log(x))"
            parsed.refuse(f"an offset is added to the log of the mean, {factor}; {hint}")
        if ordered is not None:
            raise ValueError(f"ordered must be left out for events, got {brief(ordered)}")
        design, cells = distinct_rows(design, counts)
        entries = np.column_stack([cells, times])[times > 0] if times.dtype.kind == "i" else None
        first, people = np.unique(cells, return_index=True)[1], np.bincount(cells, times)
        order, names = np.zeros(1, dtype=np.int64), np.asarray(categories)
        parts = counts[first], design, order, names, family, people.astype(np.float64), entries
        return AdditiveRows(*parts, unit=unit)
    if ordered is None:
        ordered = outcome is not None and outcome.is_ordered
    if is_ordered := ordered is not False:
        places = np.arange(len(categories)) if ordered is True else _in_order(categories, ordered)
        categories, counts = [categories[i] for i in places], counts[:, places]
    is_label = isinstance(parsed.outcome, Name)
    whole = times.dtype.kind == "i" and times.sum() <= _MOST_REPEATED
    if not is_said and not is_label and not is_ordered and whole and (counts.sum(axis=1) > 1).any():
        family = "dirichlet_multinomial"
    if family == "dirichlet_multinomial":
        if not whole:
            parsed.refuse("rows that scatter must have whole weights, 100,000 in all at most")
        rows = np.repeat(np.arange(num_rows), times)
        counts, design, times = counts[rows], design.take(rows), np.ones(len(rows), dtype=np.int64)
        cells = np.arange(len(rows))
    else:
        design, cells = distinct_rows(design)
    weighted: NDArray[Any] = counts * times[:, None]
    sums = np.zeros((len(design.matrix), weighted.shape[1]), dtype=weighted.dtype)
    np.add.at(sums, cells, weighted)
    if not is_ordered:
        _refuse_total(parsed, sums, categories)
    entries = None
    if weighted.dtype.kind == "i":
        rows, which = np.nonzero(weighted)
        entries = np.column_stack([cells[rows] * weighted.shape[1] + which, weighted[rows, which]])
    order = np.arange(len(categories))
    if len(order) == 2 and is_label:  # log odds of the second label, or of the first count
        order = order[::-1].copy()
    elif len(order) > 2 and not is_ordered:
        order = np.argsort(-sums.sum(axis=0), kind="stable")
    names = np.asarray(categories)
    return AdditiveRows(sums, design, order, names, family, None, entries, is_ordered, unit)


def _refuse_total(parsed: Formula, counts: NDArray[Any], categories: Sequence[str]) -> None:
    """Refuse a category that is the sum of the others."""
    present = np.repeat(counts.sum(axis=1, keepdims=True) > 0, len(categories), axis=1)
    total, is_label = total_of(counts, categories, present, _SUMS), isinstance(parsed.outcome, Name)
    if total is not None:
        way = "take its rows out of the table" if is_label else "leave it out"
        parsed.refuse(f"{categories[total]!r} is the sum of the other categories: {way}")
    elif len(categories) == 2 and not is_label:
        y, n = categories
        if TOTAL.fullmatch(n.strip()) and (counts[:, 1] >= counts[:, 0]).all():
            parsed.refuse(f"{n!r} is a total: write p({y}, {n}) for {y} of {n}")


def _in_order(categories: Sequence[str], ordered: object) -> IntArray:
    """Places of categories in the order of a list, which may have more of them.

    Warns
    -----
    UserWarning
        If no row has a category of the list.
    """
    with under_name("ordered", of="labels"):
        listed = [label_of(label) for label in as_list(ordered, "ordered", "categories")]
    numbers = {float(name): name for name in categories if NUMBER.fullmatch(name)}
    for i, name in enumerate(listed):
        if name not in categories and NUMBER.fullmatch(name):  # 1.0 is 1
            listed[i] = numbers.get(float(name), name)
    missing = [name for name in categories if name not in listed]
    if missing:
        raise ValueError(f"ordered must list every category, it lacks {', '.join(missing)}")
    if len(set(listed)) < len(listed):
        raise ValueError(f"ordered must list each category once, got {', '.join(listed)}")
    absent = ", ".join(name for name in listed if name not in categories)
    if absent:
        warnings.warn(f"no row has {absent}: left out of the ordered categories", stacklevel=4)
    return np.array([categories.index(name) for name in listed if name in categories])


def as_weights(value: Any, name: str) -> FloatArray:
    """Numbers from 0 to 1e12."""
    numbers = as_nonnegative(value, name)
    if (high := numbers > _LARGEST).any():
        got = f"{numbers[high][0]:g}{place_of(high)}"
        raise ValueError(f"{name} must be at most {_LARGEST:g}, got {got}")
    return numbers


def _times_of(cells: NDArray[Any]) -> NDArray[Any]:
    """Weights of rows: whole numbers as such, where all are.

    Warns
    -----
    UserWarning
        If fractions add up to more than the rows.
    """
    if cells.dtype.kind != "f" or (cells == np.round(cells)).all():
        return as_counts(cells, "weights")
    times = as_weights(cells, "weights")
    if (total := float(times.sum())) > _MORE * len(times):
        weights = f"weights add up to {total:,.6g} in {len(times):,} rows"
        hint = f"divide by the mean weight, {total / len(times):.4g}, if a row is one"
        are = "intervals are those of so many independent observations"
        warnings.warn(f"{weights}: {are} ({hint})", stacklevel=4)
    return times


def _events(parsed: Formula, columns: Mapping[str, Cells]) -> tuple[list[str], IntArray]:
    """Numbers of events in each row."""
    if not isinstance(parsed.outcome, Name):
        parsed.refuse(f"events are one column of counts, got {parsed.outcome}")
    name = parsed.outcome.name
    return [name], as_counts(table_column(columns, name, "the left-hand side"), name)[:, None]


def _shares(parsed: Formula, columns: Mapping[str, Cells]) -> dict[str, FloatArray] | None:
    """Columns of ``c(...)`` as shares, if they hold fractions, of 1 or of 100."""
    if parsed.outcome is None or parsed.outcome.function != "c":
        return None
    shares, _ = _outcome(parsed, columns)
    if any(x.dtype.kind not in "iuf" or not (x >= 0).all() for x in shares.values()):
        return None
    most = np.sum([*shares.values()], axis=0).max(initial=0.0)
    is_whole = all((x == np.round(x)).all() for x in shares.values())
    if is_whole or most > 100.0 * _ROUNDED:
        return None
    return {name: x / (1.0 if most <= _ROUNDED else 100.0) for name, x in shares.items()}


def _are_shares(y: NDArray[Any], trials: NDArray[Any]) -> bool:
    """Whether fractions from 0 to 1 are whole numbers of the trials, as in R's glm with weights."""
    if y.dtype.kind != "f" or trials.dtype.kind not in "iuf" or (y == np.rint(y)).all():
        return False
    part = y * trials
    return bool(((y >= 0.0) & (y <= 1.0) & (np.abs(part - np.rint(part)) < _WHOLE)).all())


def _counts(parsed: Formula, columns: Mapping[str, Cells]) -> tuple[list[str], IntArray]:
    """Classes of an outcome, and their counts in each row."""
    if parsed.outcome is None:
        raise ValueError(f"formula must be 'y ~ columns', got {parsed.text!r}")
    y, trials = _outcome(parsed, columns)
    if trials is not None:
        y = np.rint(y * trials) if _are_shares(y, trials) else y
        counts = [as_counts(y, "successes"), as_counts(trials - y, "trials less successes")]
        return ["success", "failure"], np.column_stack(counts)
    if isinstance(y, dict):
        return list(y), np.column_stack([as_counts(column, name) for name, column in y.items()])
    order = columns[parsed.outcome.name].order if isinstance(parsed.outcome, Name) else None
    levels, codes = Levels.of({"y": y}, {"y": order})
    return levels.names.tolist(), (codes[:, None] == np.arange(len(levels))).astype(np.int64)


def outcomes_of(data: AdditiveRows, table: object) -> IntArray:
    """Counts of the data's classes in the rows of a table, ``(num_rows, num_classes)``; or events.

    Raises
    ------
    ValueError
        If the table has another class.
    """
    columns, parsed = exact_columns(table, "held_out"), parse(str(data.design.formula))
    with under_name("held_out: the left-hand side", of="the left-hand side"):
        categories, counts = (_events if data.is_events else _counts)(parsed, columns)
    places = find_labels(data.categories, categories, "held_out", what="outcomes of")
    out = np.zeros((len(counts), data.num_categories), dtype=np.int64)
    out[:, places] = counts
    return out

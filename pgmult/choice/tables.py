"""Tables of choices in other forms: a row for each occasion, or ranks.

`lengthen` and `explode` give them the form that `choices` reads: a row for each alternative of an
occasion, which says whether it was taken.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pgmult.choice.data import amounts_of, listed, refuse_words, stacked
from pgmult.core.arguments import as_kind, as_mapping, brief
from pgmult.core.labels import Levels, begin_alike, find_labels, labels_of, numbered
from pgmult.core.tables import Cells, ExactTable, exact_columns, missing_in, numbers_of
from pgmult.core.typing import StrArray
from pgmult.core.validate import refuse_rows
from pgmult.formulas.columns import named_column, table_column


def lengthen(
    table: Any, choice: str | None, attributes: Mapping[str, Mapping[Any, str | None]],
    available: Mapping[Any, str] | None = None,
) -> ExactTable:  # fmt: skip
    """A row for each alternative, from a table with a row for each occasion.

    Parameters
    ----------
    table : table, data frame, or mapping from name to column
    choice : str or None
        The column that says which alternative was taken; None where one of the attributes is a
        share or rank of each alternative.
    attributes : mapping from attribute to a mapping from alternative to column
        None for an alternative whose attribute is 0, as that of "none of these" may be.
    available : mapping from alternative to column, optional
        Columns that are 0 or false in occasions where the alternative was not available.

    Returns
    -------
    table
        Columns ``occasion`` (the row of the wide table, from 1), ``alternative``, ``taken`` if
        there is a choice, the attributes, and all others. Labels keep the order of a categorical.

    Raises
    ------
    ValueError
        If attributes or `available` list different alternatives, a label of `choice` is not among
        them, an alternative was taken that was not available, or one that was has a gap.
    """
    columns, named = exact_columns(table, "table"), as_mapping(attributes, "attributes")
    if not named:
        raise ValueError("attributes must have one or more, got none")
    first, *_ = named
    labels = labels_of(as_kind(named[first], f"attributes[{first!r}]", Mapping), "attributes")

    def columns_of(of: object, what: str) -> dict[int, str | None]:
        """Columns by the number of the alternative."""
        columns_by_label = as_kind(of, what, Mapping)
        places = find_labels(labels, list(columns_by_label), what, what="the alternatives of")
        return dict(zip(places.tolist(), columns_by_label.values(), strict=True))

    asked = {name: columns_of(of, f"attributes[{name!r}]") for name, of in named.items()}
    for name, of in asked.items():
        if len(of) < len(labels):
            got = f"{brief(list(named[name]))} of {name} and {brief(list(named[first]))}"
            raise ValueError(f"attributes must have the same alternatives, got {got}")
    is_there = np.ones((len(next(iter(columns.values())).values), len(labels)), dtype=np.bool_)
    for place, column in columns_of({} if available is None else available, "available").items():
        cells = table_column(columns, column, "available")
        is_there[:, place] = amounts_of(cells, str(column)) > 0.0
    rows, which = np.nonzero(is_there)
    order = None if choice is None else named_column(columns, choice, "choice").order
    out = {"occasion": Cells(rows + 1), "alternative": _ordered(labels[which], order)}
    if choice is not None:
        nothing = [j for j in range(len(labels)) if all(of[j] is None for of in asked.values())]
        if nothing:  # "none of these", which may be an empty cell
            cells = named_column(columns, choice, "choice").values
            cells = np.where(missing_in(cells), labels[nothing[0]], cells)
        else:
            cells = table_column(columns, choice, "choice")
        chosen = find_labels(labels, cells, choice)
        out["taken"] = Cells(1 * (which == chosen[rows]))
        left = ~is_there[np.arange(len(chosen)), chosen]
        refuse_rows(left, labels[chosen], choice, "be available where it is taken")
    for name, of in asked.items():
        present = {place: column for place, column in of.items() if column is not None}
        every = [named_column(columns, column, "attributes") for column in present.values()]
        texts = any(isinstance(x, str) for column in every for x in column.values.tolist())
        values = np.full(len(rows), "", dtype=object) if texts else np.zeros(len(rows))
        orders: dict[str, None] = {}
        for place, column in present.items():
            at = np.flatnonzero(which == place)
            attribute = named_column(columns, column, "attributes").take(rows[at])
            cells, orders = attribute.values, orders | dict.fromkeys(attribute.order or ())
            if (gap := missing_in(cells)).any():
                where = f"where {labels[place]} is available, got none"
                row = rows[at[np.argmax(gap)]]
                raise ValueError(f"column {column!r} must have a value {where} at row {row}")
            cells = cells.astype(np.int64) if cells.dtype == bool else cells
            values[at] = labels_of(cells, column) if texts else numbers_of(cells, column)
        if texts:
            filled = values != ""
            if not orders:
                pairs = zip(which[filled].tolist(), rows[filled].tolist(), strict=True)
                places = [(of[place], row) for place, row in pairs]
                refuse_words(values[filled].astype(np.str_), name, places)
            values[~filled] = min(values[filled])
        out[name] = _ordered(values.astype(np.str_), tuple(orders)) if texts else Cells(values)
    used = {choice, *(name for of in named.values() for name in of.values()), *out}
    others = {name: cells.take(rows) for name, cells in columns.items() if name not in used}
    return ExactTable(out | others)


def _ordered(labels: StrArray, order: Sequence[str] | None) -> Cells:
    """Labels in an order, those that are not in it last."""
    return Cells(labels, tuple(dict.fromkeys([*order, *labels.tolist()])) if order else None)


def wide_columns(
    table: object, choice: str | None, patterns: Mapping[str, str], partial: bool = False,
    without: str | None = None,
) -> dict[str, dict[Any, str | None]]:  # fmt: skip
    """Columns of alternatives by pattern, for `lengthen`: ``{"price": "price.{}"}``.

    The labels of `choice` stand at ``{}``, whole or without the letters that all begin with.

    Parameters
    ----------
    table : table, data frame, or mapping from name to column
    choice : str or None
        The column that says which alternative was taken; None to have the labels from the columns
        of the first pattern.
    patterns : mapping from attribute to pattern
    partial : bool
        Whether alternatives may lack a column.
    without : str, optional
        The label of "none of these", whose attributes are 0.

    Raises
    ------
    ValueError
        If an alternative lacks a column, or there are columns of one that nobody took.
    """
    columns = exact_columns(table, "table")

    def ends_of(pattern: str) -> dict[str, str]:
        """What stands at ``{}``, and the column."""
        regex = re.compile("(.+)".join(map(re.escape, pattern.split("{}", 1))))
        return {match[1]: name for name in columns if (match := regex.fullmatch(name))}

    if choice is None:
        labels = list(ends_of(next(iter(patterns.values()))))
    else:
        column = named_column(columns, choice, "choice")
        cells, order = column.values, column.order
        labels = numbered(labels_of(cells[~missing_in(cells)], choice))[0].tolist()
        labels = labels if order is None else [label for label in order if label in labels]
        if without is not None and missing_in(cells).any():
            labels = list(dict.fromkeys([*labels, without]))
    if without is not None:
        find_labels(labels, [without], "none", what=f"the labels of {choice}")
        labels.remove(without)
    columns_by_name: dict[str, dict[Any, str | None]] = {}
    alike, others = begin_alike(labels), list[set[str]]()
    for name, pattern in patterns.items():
        ends = ends_of(pattern)
        short = not set(labels) & set(ends)
        at = {label: label.removeprefix(alike) if short else label for label in labels}
        columns_by_name[name] = {label: ends[end] for label, end in at.items() if end in ends}
        lacking = [label for label, end in at.items() if end not in ends]
        if lacking and not partial:
            raise ValueError(
                f"{name}={pattern} must give each alternative a column, got none for {lacking[0]!r}"
                f" among {', '.join(columns)} (--none {lacking[0]} if that is 'none of these'; add"
                f" a column of zeros if {name} is 0 there, as a wait is for those who walk)"
            )
        others.append(ends.keys() - at.values())
        if without is not None and not partial:
            columns_by_name[name][without] = None
    unknown = others[0].intersection(*others)
    if unknown:
        raise ValueError(
            f"alternatives must be taken once or more, got {', '.join(sorted(unknown))} of"
            f" {' and '.join(patterns.values())}, which {choice} never has (rename such columns)"
        )
    return columns_by_name


def explode(table: object, rank: str, occasion: str | Sequence[str]) -> ExactTable:
    """The choices that rankings consist of: the best of all, then the best of the others.

    A ranking of J alternatives is as probable as the J - 1 choices together (the rank-ordered or
    exploded logit: Beggs, Cardell and Hausman 1981, "Assessing the potential demand for electric
    cars").

    Parameters
    ----------
    table : table, data frame, or mapping from name to column
        A row for each alternative of an occasion.
    rank : str
        The column of ranks: 1 is the best. Alternatives without a rank, or with 0, are worse than
        all that have one.
    occasion : str or sequence of str
        Columns that identify occasions.

    Returns
    -------
    table
        All columns, with a row for each alternative of each choice. `rank` is 1 for what was taken
        and 0 for all else; the last column of `occasion` is text, the occasion and the rank.

    Raises
    ------
    ValueError
        If ranks of an occasion are not 1, 2, ... once each, or there are none.
    """
    columns, rank = exact_columns(table, "table"), as_kind(rank, "rank", str)
    names = listed(occasion)
    if not names:
        raise ValueError("occasion must name one or more columns, got none")
    cells = named_column(columns, rank, "rank").values
    levels, codes = Levels.of({name: table_column(columns, name, "occasion") for name in names})
    gaps, place = missing_in(cells), np.zeros(len(cells))
    place[~gaps] = numbers_of(cells[~gaps], rank)
    ranked = np.flatnonzero(place)
    at = ranked[np.lexsort((place[ranked], codes[ranked]))]
    counts = np.bincount(codes[ranked], minlength=len(levels))
    expected = np.arange(len(at)) - np.repeat(np.cumsum(counts) - counts, counts) + 1
    odd = np.append(codes[at[place[at] != expected]], np.flatnonzero(counts == 0))
    if len(odd):
        ranks = np.sort(place[ranked][codes[ranked] == odd.min()])
        got = ", ".join(f"{x:g}" for x in ranks[:8]) or "none"
        where = f"{':'.join(names)} {levels.names[odd.min()]}"
        raise ValueError(f"{rank} must rank alternatives 1, 2, ... once each, got {got} in {where}")
    last = np.minimum(counts, np.bincount(codes) - 1)[codes]  # the one that is left is no choice
    stage = np.arange(1, last.max() + 1)[:, None]
    stages, rows = np.nonzero((last >= stage) & ((place == 0.0) | (place >= stage)))
    out = stacked(columns, rows, names, stages + 1)
    return ExactTable(out | {rank: Cells(1 * (place[rows] == stages + 1))})

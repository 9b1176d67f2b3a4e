"""Other forms of tables of sequences: a row for each person, and a row for each spell.

TraMineR calls them STS (a column for each time), SPELL (begin, end and state) and DSS (distinct
states one after another). Both become the form with a row for each step.

>>> wide = {"id": ["a", "b"], "y2000": ["in", "in"], "y2002": ["out", None]}
>>> {name: cells.values.tolist() for name, cells in from_wide(wide, ["y2000", "y2002"]).items()}
{'id': ['a', 'a', 'b', 'b'], 'time': [2000, 2002, 2000, 2002], 'state': ['in', 'out', 'in', None]}
>>> spells = {"id": ["a", "a"], "from": [1, 3], "to": [2, 5], "state": ["in", "out"]}
>>> from_spells(spells, "state", "from", "to", sequence="id")["state"].values.tolist()
['in', 'in', 'out', 'out', 'out']
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pgmult.core import tables
from pgmult.core.labels import labels_of, numbered
from pgmult.core.tables import Cells, columns_named, exact_columns, missing_in
from pgmult.sequences.data.times import read_times

TIME, STATE = "time", "state"  # columns of a table that had a column for each time


def from_wide(table: object, wide: str | Sequence[str]) -> dict[str, Cells]:
    """A table with a row for each step of one that has a row for each sequence.

    Parameters
    ----------
    table : data frame, or mapping from name to column
    wide : str or sequence of str
        Columns of the times: see `pgmult.core.tables.columns_named`. The number that ends each name
        is its time where all have one and these increase; otherwise steps follow each other.

    Returns
    -------
    dict from str to Cells
        ``time``, ``state``, and the other columns, which stay the same along a row.
    """
    cells = exact_columns(table, "table")
    columns = columns_named(list(cells), wide)
    endings = [re.search(r"\d+$", name) for name in columns]
    numbers = [int(ending[0]) for ending in endings if ending is not None]
    if len(numbers) < len(columns) or (np.diff(numbers) <= 0).any():
        numbers = list(range(len(columns)))
    count = len(cells[columns[0]].values)
    rows = np.repeat(np.arange(count), len(columns))
    other = {name: column.take(rows) for name, column in cells.items() if name not in columns}
    states = zip(*(cells[name].values.tolist() for name in columns), strict=True)
    state = tables.exact_array([cell if cell == cell else None for row in states for cell in row])
    order = cells[columns[0]].order
    return {**other, TIME: Cells(np.tile(numbers, count)), STATE: Cells(state, order)}


def from_spells(
    table: Any, symbol: str, begin: str, end: str, *, sequence: str | None = None,
    every: str | int | None = None, week_start: str = "monday",
) -> dict[str, Cells]:  # fmt: skip
    """A table with a row for each step of one that has a row for each spell in a state.

    A spell is at all steps from its begin to its end. The end is the last step of a spell, unless
    spells begin when the ones before them end: then it is the step after the last.

    Returns
    -------
    dict from str to Cells
        The columns of the table; `begin` is the time of each step.

    Raises
    ------
    ValueError
        If a spell has no begin or no end, ends before it begins, or overlaps another one.
    """
    cells = exact_columns(table, "table")
    values = {name: column.values for name, column in cells.items()}
    tables.chosen_columns(values, [symbol], "table", "symbol")
    tables.chosen_columns(values, [begin, end], "table", "begin")
    whose, names = np.zeros(len(values[begin]), dtype=np.int64), None
    if sequence is not None:
        tables.chosen_columns(values, [sequence], "table", "sequence")
        names, whose = numbered(labels_of(values[sequence], sequence))
    for name in (begin, end):
        if (missing := missing_in(values[name])).any():
            raise ValueError(
                f"column {name!r} must say when each spell {'begins' if name == begin else 'ends'},"
                f" got nothing at row {int(np.argmax(missing))} (a spell that goes on ends with the"
                " last observation)"
            )
    times, clock = read_times(cells[begin], begin, every, week_start)
    last_times, _ = read_times(cells[end], end, every, week_start)
    if clock.unit is None:
        clock = clock._replace(origin=0)  # the same for both ends
    first, last = clock.steps(times.values, begin), clock.steps(last_times.values, end)
    order = np.lexsort((last, first, whose))
    whose, first, last = whose[order], first[order], last[order]
    follows = np.flatnonzero(np.diff(whose) == 0)
    begins, ends = values[begin][order], values[end][order]
    stop = last + 1
    if 2 * (begins[follows + 1] == ends[follows]).sum() > len(follows) > 0:
        stop = np.maximum(last, first)  # the step in which the next one begins
    else:  # of a step that two spells share, the later one has all
        stop[follows] -= first[follows + 1] == last[follows]
    wrong = last < first
    wrong[follows] |= stop[follows] > first[follows + 1]
    if wrong.any():
        i = int(np.argmax(wrong))
        who = "" if names is None else f" of {sequence} {names[whose[i]]}"
        then = "" if last[i] < first[i] else f", row {order[i + 1]} begins {begins[i + 1]}"
        raise ValueError(
            f"spells must not overlap, and end after they begin: row {order[i]}{who} has"
            f" {begins[i]} to {ends[i]}{then}"
        )
    lengths = np.maximum(stop - first, 0)
    rows = np.repeat(order, lengths)
    place = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    steps = np.repeat(first, lengths) + place
    others = {name: column.take(rows) for name, column in cells.items() if name != begin}
    return {**others, begin: Cells(clock.times(steps))}


def in_steps(
    table: Any, columns: Mapping[str, Any], wide: str | Sequence[str] | None
) -> tuple[Any, dict[str, Any]]:
    """A table with a row for each step, and the columns of `sequences_of` there.

    Parameters
    ----------
    table : data frame, or mapping from name to column
    columns : mapping
        ``symbol``, ``sequence``, ``time``, ``count``, ``begin``, ``end``, ``every`` and
        ``week_start``, each a str or None.
    wide : str or sequence of str, optional
    """
    named = dict(columns)
    begin, end = named.pop("begin"), named.pop("end")
    if wide is not None:
        taken = [name for name in ("symbol", "time", "count", "known") if named.get(name)]
        if taken or begin or end:
            what = taken[0] if taken else "begin and end"
            raise ValueError(f"{what} must be left out where wide names columns of times")
        long = from_wide(table, wide)
        if named["sequence"] is None:  # a row is a sequence
            size = len(columns_named(list(exact_columns(table, "table")), wide))
            long["row"] = Cells(np.arange(len(long[STATE].values)) // size + 1)
            named["sequence"] = "row"
        return long, {**named, "symbol": STATE, "time": TIME}
    if (begin is None) != (end is None):
        raise ValueError(f"begin and end must both be columns, got {begin!r} and {end!r}")
    if begin is None:
        return table, named
    for name in ("time", "count"):
        if named[name] is not None:
            raise ValueError(f"{name} must be left out where rows are spells, with begin and end")
    spells = from_spells(
        table, named["symbol"], begin, end, sequence=named["sequence"], every=named["every"],
        week_start=named["week_start"],
    )  # fmt: skip
    return spells, {**named, "time": begin}

"""Other forms of tables of sequences: a row for each person, and a row for each spell.

TraMineR calls them STS (a column for each time), SPELL (begin, end and state) and DSS (distinct
states one after another). Both become the form with a row for each step.

>>> wide = {"id": ["a", "b"], "y2000": ["in", "in"], "y2002": ["out", None]}
>>> {name: cells.values.tolist() for name, cells in from_wide(wide, ["y2000", "y2002"]).items()}
{'id': ['a', 'a', 'b', 'b'], 'time': [2000, 2002, 2000, 2002], 'state': ['in', 'out', 'in', None]}
>>> spells = {"id": ["a", "a"], "from": [1, 3], "to": [2, 5], "state": ["in", "out"]}
>>> from_spells(spells, "from", "to", sequence="id")["state"].values.tolist()
['in', 'in', 'out', 'out', 'out']
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pgmult.core import tables
from pgmult.core.labels import labels_of, numbered
from pgmult.core.tables import Cells, columns_named, exact_columns, missing_in
from pgmult.core.validate import refuse_rows
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
    table: Any, begin: str, end: str, *, sequence: str | None = None,
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
    tables.chosen_columns(values, [begin, end], "table", "begin")
    whose, names = np.zeros(len(values[begin]), dtype=np.int64), None
    if sequence is not None:
        tables.chosen_columns(values, [sequence], "table", "sequence")
        names, whose = numbered(labels_of(values[sequence], sequence))
    goes_on = "a spell that goes on ends with the last observation"
    for name, what in ((begin, "begins"), (end, "ends")):
        when = f"say when each spell {what}"
        refuse_rows(missing_in(values[name]), values[name], name, when, goes_on)
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
        got = f"row {order[i]}{who} has {begins[i]} to {ends[i]}"
        then = "" if last[i] < first[i] else f", row {order[i + 1]} begins {begins[i + 1]}"
        raise ValueError(f"spells must not overlap, and end after they begin: {got}{then}")
    lengths = np.maximum(stop - first, 0)
    rows = np.repeat(order, lengths)
    place = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    steps = np.repeat(first, lengths) + place
    others = {name: column.take(rows) for name, column in cells.items() if name != begin}
    return {**others, begin: Cells(clock.times(steps))}


def in_steps(
    table: Any, columns: Mapping[str, Any], wide: str | Sequence[str] | None,
    every: str | int | None, week_start: str,
) -> tuple[Any, dict[str, Any]]:  # fmt: skip
    """A table with a row for each step, and the columns of `sequences_of` there.

    Parameters
    ----------
    table : data frame, or mapping from name to column
    columns : mapping
        ``symbol``, ``sequence``, ``time``, ``count``, ``begin``, ``end`` and others.
    wide, every, week_start
        As in `sequences_of`.
    """
    named = dict(columns)
    begin, end = named.pop("begin"), named.pop("end")

    def left_out(names: Sequence[str], where: str) -> None:
        if given := [name for name in names if columns[name] is not None]:
            raise ValueError(f"{given[0]} must be left out where {where}")

    if wide is not None:
        taken = ("symbol", "time", "count", "known", "begin", "end")
        left_out(taken, "wide names columns of times")
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
    left_out(("time", "count"), "rows are spells, with begin and end")
    how = {"sequence": named["sequence"], "every": every, "week_start": week_start}
    return from_spells(table, begin, end, **how), {**named, "time": begin}

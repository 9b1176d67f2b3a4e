"""Tidy tables as sequences: one row for each observation.

::

    patient  day         state     count
    p1       2024-03-01  stable        1
    p1       2024-03-03  relapse       1
    p2       2024-02-11  stable        1

Steps between the first and the last of a sequence that have no row are missing.

>>> visits = {"day": [1, 3, 4], "state": ["stable", "relapse", "stable"]}
>>> data = sequences_of(visits, symbol="state", time="day")
>>> data.totals, data.alphabet
(array([1, 0, 1, 1]), array(['relapse', 'stable'], dtype='<U7'))
"""

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from pgmult.core.arguments import as_choice, as_kind, brief, under_name
from pgmult.core.labels import find_labels, labels_of, warn_of_look_alikes
from pgmult.core.tables import (
    Cells,
    as_columns,
    chosen_columns,
    counts_of,
    exact_columns,
    one_role_each,
)
from pgmult.core.typing import ArrayLike, IntArray
from pgmult.formulas.design import Design, make_design, table_of
from pgmult.formulas.language import parse
from pgmult.sequences.data.sequences import Sequences, as_sequences

_UNITS = {
    "year": "Y", "quarter": "3M", "month": "M", "week": "W", "day": "D", "hour": "h", "minute": "m",
    "second": "s", "y": "Y", "w": "W", "d": "D", "h": "h", "min": "m", "sec": "s", "s": "s",
}  # fmt: skip
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_FIRST_MONDAY = 4  # days after 1970-01-01
_MOST_STEPS = 10**8


def sequences_of(
    table: Any,
    *,
    symbol: str,
    sequence: str | None = None,
    time: str | None = None,
    every: str | None = None,
    week_start: str = "monday",
    count: str | None = None,
    order: str | ArrayLike | None = None,
    inputs: str | Design | None = None,
    maps: Mapping[str, Any] | None = None,
) -> Sequences:
    """`Sequences` from a tidy table.

    Parameters
    ----------
    table : data frame (pandas, polars, pyarrow, ...), labelled array of xarray, or mapping
    symbol : str
        The column of the symbols.
    sequence : str, optional
        The column that says to which sequence a row belongs; by default all rows are of one.
        Sequences stand in alphabetical order.
    time : str, optional
        The column of steps, whole numbers or dates. Rows of one sequence and step add up, and steps
        without a row are missing. Left out, every row is a step and rows stand in their order.
    every : str, optional
        How long a step is, where `time` has dates: "year", "quarter", "month", "week", "day",
        "hour", "minute", "second", or a number of these, "2 weeks", "5min", "2h", "15s". Steps
        begin where the calendar does (hours at midnight, months on the first), and tables and
        figures of what is found tell that time.
    week_start : str
        The day that weeks begin on; on Mondays, by default, as ISO 8601 counts them.
    count : str, optional
        The column of counts; left out, every row is one observation.
    order : "frequency", "given" or a permutation, optional
        The order of the sticks, as in `as_sequences`.
    inputs : str or Design, optional
        A formula of what acts on the steps, such as ``"~ temperature + (1 | animal)"``: see
        `pgmult.formulas.design`; or the design of other sequences, to be coded alike. A step
        without a row has the inputs of the step before it.
    maps : mapping from name to map, optional
        See `pgmult.formulas.maps`.

    Raises
    ------
    ValueError
        If a column or a value is missing, `every` is missing or superfluous, or a count is negative
        or fractional.
    TypeError
        If `table` is no table.
    """
    columns, cells = as_columns(table, "table"), exact_columns(table, "table")
    one_role_each({"symbol": symbol, "sequence": sequence, "time": time, "count": count})

    def column(name: str, argument: str) -> NDArray[Any]:
        return chosen_columns(columns, [name], "table", argument)[name]

    def numbered(name: str, argument: str) -> tuple[NDArray[Any], IntArray]:
        names, number = np.unique(labels_of(column(name, argument), name), return_inverse=True)
        warn_of_look_alikes(names, f"column {name!r}")
        return names, number

    symbols, of_symbol = numbered(symbol, "symbol")
    num_rows = len(of_symbol)
    if num_rows == 0:
        raise ValueError("table must have a row at least, got none")
    names, of_sequence = None, np.zeros(num_rows, dtype=np.int64)
    if sequence is not None:
        names, of_sequence = numbered(sequence, "sequence")
    number = np.ones(num_rows, dtype=np.int64)
    if count is not None:
        number = counts_of(column(count, "count"), count)
    if time is None:
        if every is not None:
            raise ValueError(f"every must be left out where there is no time, got {every!r}")
        step, clock = np.arange(num_rows), _Clock()
    else:
        times = column(time, "time")
        clock = _clock(times, time, every, week_start)
        step = clock.steps(times, time)
    parts, starts, place, before = [], [], np.empty(num_rows, dtype=np.int64), 0
    for s in range(1 if names is None else len(names)):
        rows = of_sequence == s
        starts.append(step[rows].min())
        at = step[rows] - starts[-1]
        if time is None:
            at = np.arange(rows.sum())
        length = int(at.max()) + 1
        if length > _MOST_STEPS:
            raise ValueError(
                f"time must not leave more than {_MOST_STEPS:,} steps in a sequence, got {length:,}"
                " (another every=, or times in larger units)"
            )
        place[rows], before = before + at, before + length
        parts.append(
            scipy.sparse.csr_array(
                (number[rows], (at, of_symbol[rows])), shape=(length, len(symbols))
            )
        )
    sequences = as_sequences(parts, alphabet=symbols.tolist(), order=order, names=names)
    sequences = replace(sequences, keys=(sequence or "", time or ""))
    if inputs is not None:
        with under_name("inputs", of="formula"):
            design = _design_of_steps(inputs, cells, place, sequences, maps)
        sequences = sequences.with_design(design)
    if time is None:
        return sequences
    firsts = np.array(starts, dtype=np.int64) * clock.every + clock.origin
    dates = firsts if clock.unit is None else firsts.astype(f"datetime64[{clock.unit}]")
    return replace(sequences, starts=dates, every=clock.every)


def _design_of_steps(
    inputs: str | Design,
    cells: Mapping[str, Cells],
    place: IntArray,
    sequences: Sequences,
    maps: Mapping[str, Any] | None,
) -> Design:
    """Inputs of every step, by a formula or coded as another design."""
    steps = sequences.num_steps
    if isinstance(inputs, str):
        given = _inputs_of_steps(cells, parse(inputs).columns, place, sequences)
        return make_design(given, steps, inputs, every_term=True, maps=maps)
    design = as_kind(inputs, "inputs", Design, "or a formula")
    given = _inputs_of_steps(cells, list(table_of(design)), place, sequences)
    design.tell_new_labels(given, "inputs")
    return design.like(given, new_levels=True, num_rows=steps)


def _inputs_of_steps(
    cells: Mapping[str, Cells], needed: Sequence[str], place: IntArray, data: Sequences
) -> dict[str, Cells]:
    """The columns of inputs, one cell a step; those of the step before where there is no row."""
    source = np.full(data.num_steps, -1)
    source[place[::-1]] = np.arange(len(place))[::-1]  # the first row of each step
    told = np.maximum.accumulate(np.where(source < 0, -1, np.arange(data.num_steps)))
    if (gaps := int((source < 0).sum())) > 0:
        warnings.warn(
            f"{gaps} steps have no row: they get the inputs of the step before (give them rows with"
            " a count of 0 where their inputs are known)",
            stacklevel=3,
        )
    given = {}
    for name in needed:
        if name not in cells:
            raise ValueError(
                f"inputs must name columns of the table, got {name!r} (it has"
                f" {', '.join(map(repr, cells))})"
            )
        column = cells[name].values
        differs = np.flatnonzero(column != column[source[place]])
        if len(differs):
            row = int(differs[0])
            raise ValueError(
                f"column {name!r} must be the same in all rows of a step, got {column[row]} at row"
                f" {row} and {column[source[place[row]]]} before"
            )
        given[name] = cells[name].take(source[told])
    return given


def future_of(data: Sequences, table: Any, steps: int) -> dict[str, Cells]:
    """The rows of a table for the steps after the last, in the order of sequences and steps.

    Raises
    ------
    ValueError
        If a step ahead has no row.
    """
    cells, columns = exact_columns(table, "inputs"), as_columns(table, "inputs")
    sequence, time = data.keys
    of_sequence = np.zeros(len(next(iter(cells.values())).values), dtype=np.int64)
    if sequence:
        own = chosen_columns(columns, [sequence], "inputs", "sequence")[sequence]
        assert data.names is not None  # of that column
        of_sequence = find_labels(data.names, labels_of(own, sequence), sequence)
    if time:
        whens = chosen_columns(columns, [time], "inputs", "time")[time]
        ahead = _steps_after(data, whens, of_sequence)
    else:
        order = np.argsort(of_sequence, kind="stable")
        starts = np.searchsorted(of_sequence[order], of_sequence[order])
        ahead = np.empty(len(order), dtype=np.int64)
        ahead[order] = np.arange(len(order)) - starts
    rows = np.full((data.num_sequences, steps), -1)
    fits = (ahead >= 0) & (ahead < steps)
    rows[of_sequence[fits], ahead[fits]] = np.flatnonzero(fits)
    if (rows < 0).any():
        s, t = (int(i[0]) for i in np.nonzero(rows < 0))
        name = s if data.names is None else data.names[s]
        raise ValueError(
            f"inputs must have a row for each of the {steps} steps ahead of each sequence, got none"
            f" for step {t + 1} of {name}"
        )
    return {name: column.take(rows.ravel()) for name, column in cells.items()}


def _steps_after(data: Sequences, times: NDArray[Any], sequence: IntArray) -> IntArray:
    """How many steps after its sequence's last each time is, from 0."""
    assert data.starts is not None
    starts = data.starts[sequence]
    if starts.dtype.kind == "M":
        if times.dtype.kind != "M":
            raise ValueError(f"column {data.keys[1]!r} must have dates, as before")
        gone = (times.astype(starts.dtype) - starts).astype(np.int64) // data.every
    else:
        gone = _Clock().steps(times, data.keys[1]) - starts
    return np.asarray(gone - data.lengths[sequence])


class _Clock(NamedTuple):
    """How times become steps: step i begins at ``origin + i every`` of a unit; None, numbers."""

    unit: str | None = None
    every: int = 1
    origin: int = 0

    def steps(self, times: NDArray[Any], name: str) -> IntArray:
        """The step of each time."""
        if self.unit is not None:
            if np.isnat(times).any():
                row = int(np.argmax(np.isnat(times)))
                raise ValueError(
                    f"column {name!r} must have a date in every row, got none at row {row}"
                )
            units = times.astype(f"datetime64[{self.unit}]").astype(np.int64)
            return np.asarray((units - self.origin) // self.every)
        try:
            steps = times.astype(np.int64)
            whole = bool((steps == times).all())
        except (TypeError, ValueError, OverflowError):
            whole = False
        if not whole or times.dtype.kind not in "iufO":
            raise ValueError(f"column {name!r} must be whole numbers or dates, of steps")
        return steps


def _clock(times: NDArray[Any], name: str, every: str | None, week_start: str) -> _Clock:
    """The clock of a column of times."""
    if times.dtype.kind != "M":
        if every is None:
            return _Clock()
        kind = "strings such as" if times.dtype.kind in "OUS" else "numbers such as"
        raise ValueError(
            f"every must be left out where column {name!r} has no dates, got {every!r} and"
            f" {kind} {str(times[0])!r} (dates are written 1999-12-31, or are datetime64)"
        )
    words = "'year', 'month', 'week', 'day', '2h', '5min', '15s'"
    if every is None:
        raise ValueError(
            f"every must say how long a step is where column {name!r} has dates: {words}"
        )
    told = (
        re.fullmatch(r"\s*(\d{1,9})?\s*([a-z]+?)s?\s*", every) if isinstance(every, str) else None
    )
    unit = None if told is None else _UNITS.get(told[2] or "s")
    if told is None or unit is None or told[1] == "0":
        raise ValueError(f"every must be a length of time, such as {words}, got {brief(every)}")
    number = int(told[1] or 1)
    if unit == "W":
        day = _WEEKDAYS.index(as_choice(week_start, "week_start", _WEEKDAYS))
        return _Clock("D", 7 * number, _FIRST_MONDAY + day)
    return _Clock(unit[-1], number * int(unit[:-1] or 1))

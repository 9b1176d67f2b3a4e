"""Tidy tables as sequences: one row for each observation.

::

    patient  day         state     count
    p1       2024-03-01  stable        1
    p1       2024-03-03  relapse       1
    p2       2024-02-11  stable        1

Steps between the first and the last of a sequence that have no row are missing.

>>> visits = {"day": [1, 3, 4], "state": ["stable", "relapse", "stable"]}
>>> data = from_long(visits, symbol="state", time="day")
>>> data.totals, data.alphabet
(array([1, 0, 1, 1]), array(['relapse', 'stable'], dtype='<U7'))
"""

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from pgmult.core.arguments import as_choice
from pgmult.core.tables import as_columns, as_labels, chosen_columns, warn_of_look_alikes
from pgmult.core.typing import ArrayLike, IntArray
from pgmult.core.validate import as_counts
from pgmult.sequences.data.sequences import Sequences, as_sequences

__all__ = ["from_long"]

_UNITS = {
    "year": "Y",
    "month": "M",
    "week": "W",
    "day": "D",
    "hour": "h",
    "minute": "m",
    "second": "s",
}
_MOST_STEPS = 10**8


def from_long(
    table: Any,
    *,
    symbol: str,
    sequence: str | None = None,
    time: str | None = None,
    every: str | None = None,
    count: str | None = None,
    order: str | ArrayLike | None = None,
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
    every : {"year", "month", "week", "day", "hour", "minute", "second"}, optional
        How long a step is, where `time` has dates. Tables and figures of what is found have a
        date for each step, then: the first day of its month or year, the Thursday of its week.
    count : str, optional
        The column of counts; left out, every row is one observation.
    order : "frequency", "given" or a permutation, optional
        The order of the sticks, as in `as_sequences`.

    Raises
    ------
    ValueError
        If a column or a value is missing, `every` is missing or superfluous, or a count is negative
        or fractional.
    TypeError
        If `table` is no table.
    """
    columns = as_columns(table, "table")

    def column(name: str, argument: str) -> NDArray[Any]:
        return chosen_columns(columns, [name], "table", argument)[name]

    symbols, of_symbol = np.unique(as_labels(column(symbol, "symbol"), symbol), return_inverse=True)
    warn_of_look_alikes(symbols, f"column {symbol!r}")
    num_rows = len(of_symbol)
    if num_rows == 0:
        raise ValueError("table must have a row at least, got none")
    if sequence is None:
        names, of_sequence = None, np.zeros(num_rows, dtype=np.int64)
    else:
        names, of_sequence = np.unique(
            as_labels(column(sequence, "sequence"), sequence), return_inverse=True
        )
        warn_of_look_alikes(names, f"column {sequence!r}")
    number = np.ones(num_rows, dtype=np.int64)
    if count is not None:
        number = as_counts(column(count, "count"), "count")
    if time is None:
        if every is not None:
            raise ValueError(f"every must be left out where there is no time, got {every!r}")
        step = np.arange(num_rows)
    else:
        step = _steps(column(time, "time"), time, every)
    parts, starts = [], []
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
        parts.append(
            scipy.sparse.csr_array(
                (number[rows], (at, of_symbol[rows])), shape=(length, len(symbols))
            )
        )
    sequences = as_sequences(
        parts, alphabet=symbols.tolist(), order=order, names=None if names is None else names
    )
    if time is None:
        return sequences
    unit = None if every is None else f"datetime64[{_UNITS[every]}]"
    return replace(sequences, starts=np.array(starts, dtype=np.int64).astype(unit or np.int64))


def _steps(times: NDArray[Any], name: str, every: str | None) -> IntArray:
    """Steps as whole numbers."""
    if times.dtype.kind == "M":
        if every is None:
            raise ValueError(
                f"every must say how long a step is where column {name!r} has dates, one of"
                f" {', '.join(map(repr, _UNITS))}"
            )
        if np.isnat(times).any():
            row = int(np.argmax(np.isnat(times)))
            raise ValueError(
                f"column {name!r} must have a date in every row, got none at row {row}"
            )
        unit = _UNITS[as_choice(every, "every", tuple(_UNITS))]
        return times.astype(f"datetime64[{unit}]").astype(np.int64)
    if every is not None:
        kind = "strings such as" if times.dtype.kind in "OUS" else "numbers such as"
        raise ValueError(
            f"every must be left out where column {name!r} has no dates, got {every!r} and"
            f" {kind} {str(times[0])!r} (dates are written 1999-12-31, or are datetime64)"
        )
    try:
        steps = times.astype(np.int64)
        whole = bool((steps == times).all())
    except (TypeError, ValueError, OverflowError):
        whole = False
    if not whole or times.dtype.kind not in "iufO":
        raise ValueError(f"column {name!r} must be whole numbers or dates, of steps")
    return steps

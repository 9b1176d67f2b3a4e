"""Times as steps: whole numbers, dates, and numbers that are dates.

A clock cuts time into steps. Numbers are steps themselves unless they are dates written as numbers,
20240131, or times since 1970; a series of which most steps would have no row is refused with the
spacing that its rows have.

>>> usual_step(np.array([0, 600, 1200, 2400]), np.zeros(4, dtype=np.int64))
'600'
"""

import re
import warnings
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from pgmult.core.arguments import as_choice, brief
from pgmult.core.dates import dates_of, whole_numbers
from pgmult.core.tables import Cells
from pgmult.core.typing import Array, FloatArray, IntArray
from pgmult.core.validate import refuse_rows
from pgmult.sequences.data.clocks import shown_twice, warn_of_changed_clocks

_UNITS = {
    "year": "Y", "quarter": "3M", "month": "M", "week": "W", "day": "D", "hour": "h", "minute": "m",
    "second": "s", "y": "Y", "w": "W", "d": "D", "h": "h", "min": "m", "sec": "s", "s": "s",
}  # fmt: skip
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_FIRST_MONDAY = 4  # days after 1970-01-01
_DAY = 86400  # seconds
_COARSEST = 6  # steps of a grid in one that is said to be a step
_LADDER = (  # lengths of steps that one would choose, in seconds
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200, 10800, 14400, 21600, 43200,
    _DAY, 7 * _DAY, 28 * _DAY, 89 * _DAY, 365 * _DAY,
)  # fmt: skip


class Clock(NamedTuple):
    """How times become steps: step i begins at ``origin + i every`` of a unit; None, numbers."""

    unit: str | None = None
    every: int = 1
    origin: int = 0

    def times(self, steps: IntArray) -> Array:
        """When steps begin."""
        numbers = steps * self.every + self.origin
        return numbers if self.unit is None else numbers.astype(f"datetime64[{self.unit}]")

    def steps(self, times: Array, name: str) -> IntArray:
        """The step of each time."""
        if self.unit is not None:
            refuse_rows(np.isnat(times), times, name, "have a date in every row")
            times = times.astype(f"datetime64[{self.unit}]").astype(np.int64)
        numbers = whole_numbers(times)
        if numbers is None:
            cells = times.tolist()
            odd = [not isinstance(x, int | float) or x != x // 1 for x in cells]
            row = odd.index(True) if any(odd) else 0
            got = f"{cells[row]!r} at row {row} ({_how_to_write(cells[row])})"
            raise ValueError(f"column {name!r} must be whole numbers or dates, of steps, got {got}")
        return np.asarray((numbers - self.origin) // self.every)


def _is_date(cell: object) -> bool:
    """Whether a text is a date by itself; numbers are not."""
    with suppress(ValueError):
        return isinstance(cell, str) and not np.isnat(np.datetime64(cell))
    return False


def _how_to_write(cell: object) -> str:
    """A hint on how dates are written, for a cell that is none."""
    if re.match(r"\s*\d{1,2}:\d{2}", str(cell)):
        return "a time of day needs its date, as in 2024-03-01 08:15"
    if isinstance(cell, float):
        return "round times to the number of their step, such as the year or the wave"
    return "dates are written 1999-12-31, 2020Q1, 2020-W05, Jan 2020 or 2019/20"


def read_times(
    cells: Cells, name: str, every: str | int | None, week_start: str
) -> tuple[Cells, Clock]:
    """The times of a column, as dates where they stand for dates, and its clock.

    Raises
    ------
    ValueError
        If `every`, how long a step is, is missing, superfluous or no length of time.
    """
    dates = dates_of(cells.values)
    times = cells.values if dates is None else dates
    if times.dtype.kind == "M":
        example = "" if dates is None else f", such as {dates[0]}"
        return cells if dates is None else Cells(dates), _clock(name, every, week_start, example)
    if every is None:
        return cells, Clock()
    if re.fullmatch(r"\s*0*[1-9]\d{0,17}\s*", str(every)) and not isinstance(every, bool):
        numbers = whole_numbers(times)
        return cells, Clock(None, int(every), 0 if numbers is None else int(numbers.min()))
    kind = "strings such as" if times.dtype.kind in "OUS" else "numbers such as"
    row = next((i for i, cell in enumerate(times.tolist()) if not _is_date(cell)), 0)
    got = f"{kind} {str(times[row])!r} at row {row} ({_how_to_write(times[row])})"
    raise ValueError(f"every must be left out where column {name!r} has no dates, got {got}")


def _clock(name: str, every: str | int | None, week_start: str, example: str) -> Clock:
    """The clock of dates, by how long a step is."""
    words = "'year', 'month', 'week', 'day', '2h', '5min', '15s'"
    if every is None:
        where = f"where column {name!r} has dates{example}"
        raise ValueError(f"every must say how long a step is {where}: {words}")
    text = every if isinstance(every, str) else ""
    parsed = re.fullmatch(r"\s*(\d{1,9})?\s*([a-z]+?)s?\s*", text)
    unit = None if parsed is None else _UNITS.get(parsed[2])
    if parsed is None or unit is None or parsed[1] == "0":
        raise ValueError(f"every must be a length of time, such as {words}, got {brief(every)}")
    number = int(parsed[1] or 1)
    if unit == "W":
        day = _WEEKDAYS.index(as_choice(week_start, "week_start", _WEEKDAYS))
        return Clock("D", 7 * number, _FIRST_MONDAY + day)
    return Clock(unit[-1], number * int(unit[:-1] or 1))


def in_passed_time(times: Cells, unit: str | None, sequence: IntArray, name: str) -> Array:
    """Times in UTC where they have a zone and steps are shorter than a day, else as they are.

    Local times that clocks show twice are of the first or the second hour by the order of rows.

    Warns
    -----
    UserWarning
        If times are local, and have a zone or look as if they had.
    """
    if unit not in ("h", "m", "s") or np.isnat(times.values).any():
        return times.values
    if times.east is None:
        warn_of_changed_clocks(times.values, sequence, name)
        return times.values
    if times.east.any():
        said = "steps are counted in UTC, and tables show it, since clocks change"
        warnings.warn(f"column {name!r} has times of a zone: {said}", stacklevel=3)
    passed = times.values.astype("datetime64[s]") - times.east.astype("timedelta64[s]")
    if times.later is not None:
        shown = times.values.astype("datetime64[s]").astype(np.int64)
        hour = np.where(times.later > 0, shown // _DAY, -1)
        second, unsure = shown_twice(shown, sequence, hour)
        passed += np.where(second, times.later, 0).astype("timedelta64[s]")
        if unsure.any():
            warnings.warn(
                f"column {name!r} has times that clocks show twice, such as"
                f" {times.values[unsure][0]}, and the order of rows does not show which are the"
                " second ones: all are taken for the first (give times their offset)",
                stacklevel=3,
            )
    return np.asarray(passed)


def _apart(times: IntArray, sequence: IntArray) -> IntArray:
    """Differences of successive times of a sequence, in all of them, without zeros."""
    order = np.lexsort((times, sequence))
    apart = np.diff(times[order])
    return np.asarray(apart[(np.diff(sequence[order]) == 0) & (apart > 0)])


def _filled(times: FloatArray | IntArray, sequence: IntArray, every: float) -> tuple[float, float]:
    """Shares of steps that have a row, and of rows that share theirs with no other."""
    steps = np.floor(times / every).astype(np.int64)
    order = np.lexsort((steps, sequence))
    steps, begins = steps[order], np.diff(sequence[order]) != 0
    ends = np.append(np.flatnonzero(begins), len(steps) - 1)
    spans = steps[ends] - steps[np.append(0, ends[:-1] + 1)] + 1
    different = 1 + np.count_nonzero(begins | (np.diff(steps) != 0))
    return different / float(spans.sum()), different / len(times)


def _grid(times: IntArray, sequence: IntArray, every: int) -> int:
    """The length of steps that moves no time, where steps of `every` move some.

    Many times in a step are meant to be together, and a length far below `every` is that of a clock
    that does not run evenly: then it is `every`.
    """
    apart = _apart(times, sequence)
    fits = int(np.gcd.reduce(apart, initial=every))
    steps = np.stack([sequence, (times - times.min()) // every])
    shared = len(np.unique(steps, axis=1).T) < len(np.unique(np.stack([sequence, times]), axis=1).T)
    return every if shared or every > _COARSEST * fits else fits


def refuse_moved_times(times: Array, sequence: IntArray, clock: Clock, name: str) -> None:
    """Refuse steps that would move times: 2018 as a step of 2011, 2013.

    Raises
    ------
    ValueError
        With the length of a step that fits.
    """
    if clock.unit not in (None, "Y"):
        return
    numbers = times.astype(f"datetime64[{clock.unit}]" if clock.unit else np.int64).astype(np.int64)
    fits = _grid(numbers, sequence, clock.every)
    if fits == clock.every:
        return
    order = np.lexsort((numbers, sequence))
    apart = np.where(np.diff(sequence[order]) == 0, np.diff(numbers[order]), 0)
    row = int(order[np.flatnonzero(apart % clock.every)[0] + 1])
    kind = "year" if clock.unit else ""
    length = f"{fits} {kind}s" if kind and fits > 1 else kind or str(fits)
    raise ValueError(
        f"every must fit all times of {name!r}: {numbers[row] + 1970 * bool(kind)} (row {row})"
        f" is not a whole number of steps of {clock.every} after the one before; {length!r} fits"
    )


def usual_step(times: Array, sequence: IntArray) -> str:
    """The length of a step, as `every` has it, at which most steps have a row.

    Parameters
    ----------
    times : int or datetime64 array, ``(num_rows,)``
    sequence : int array, ``(num_rows,)``

    Returns
    -------
    str
        By the most usual difference of successive times where half of them have it, else by the
        median one or, where that leaves most steps without a row, by a longer one; empty if every
        length leaves most steps empty or most rows share a step with another.
    """
    dates = times.dtype.kind == "M"
    numbers = times.astype("datetime64[s]").astype(np.int64) if dates else times.astype(np.int64)
    apart = _apart(numbers, sequence)
    if not len(apart):
        return "day" if dates else "1"
    usual, regular = _usual(apart)
    longer = [rung for rung in _LADDER if rung > usual] if dates else [usual << k for k in range(7)]
    if dates and not regular:
        longer = [max((rung for rung in _LADDER if rung <= usual), default=1), *longer]
    if not dates and (fits := _grid(numbers, sequence, usual)) < usual:
        return str(fits)
    for length in [usual, *longer] if regular else longer:
        filled, apart_rows = _filled(numbers, sequence, length)
        if apart_rows < 0.5:
            return ""
        if filled >= 0.5:
            return _in_words(length) if dates else str(length)
    return ""


def _usual(apart: IntArray) -> tuple[int, bool]:
    """The most frequent difference where half of them are that, else the median; and which."""
    different, often = np.unique(apart, return_counts=True)
    regular = bool(2 * often.max() >= len(apart))
    return int(different[often.argmax()] if regular else np.median(apart)), regular


def _in_words(seconds: int) -> str:
    """A length of time, as `every` has it."""
    for days, name in ((365, "year"), (89, "quarter"), (28, "month")):
        if seconds >= days * _DAY:
            return name
    for size, name in ((7 * _DAY, "week"), (_DAY, "day"), (3600, "h"), (60, "min")):
        if seconds % size == 0:
            number = seconds // size
            return f"{'' if number == 1 and size >= _DAY else number}{name}"
    return f"{seconds}s"


def refuse_sparse_steps(
    times: Array, sequence: IntArray, place: IntArray, num_steps: int, name: str
) -> None:
    """Refuse numbers of steps most of which have no row: they hardly are numbers of steps.

    Raises
    ------
    ValueError
        With the spacing of the rows.
    """
    empty = num_steps - len(np.unique(place))
    if 2 * empty <= num_steps:
        return
    numbers = times.astype(np.int64)
    apart, step = _apart(numbers, sequence), usual_step(numbers, sequence)
    if step == "1":  # no longer one fits
        return
    usual, regular = _usual(apart)
    spacing = f"mostly {usual:,} apart" if regular else f"{usual:,} apart at the median"
    hint = f"every={step!r} makes that a step" if step else "count time in larger units"
    raise ValueError(
        f"column {name!r} must number the steps: {empty:,} of {num_steps:,} would have no row,"
        f" since rows are {spacing} ({hint}; every='1' keeps the empty steps, as missing ones)"
    )

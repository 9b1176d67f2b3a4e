"""Times as steps: whole numbers, dates, and numbers that are dates.

A clock cuts time into steps. Numbers are steps themselves unless they are dates written as numbers,
20240131, or times since 1970; a series of which most steps would have no row is refused with the
spacing that its rows have.

In spring a day of local times lacks an hour, and in autumn it has one twice. Where the zone of
times is known, the order of rows tells which of the two hours each is of; where it is not, times
that look like those of a zone raise a warning.

>>> usual_step(np.array([0, 600, 1200, 2400]), np.zeros(4, dtype=np.int64))
'600'
>>> at = np.array(["2024-10-27T02:00", "2024-10-27T02:30"] * 2, dtype="datetime64[s]")
>>> shown_twice(at.astype(np.int64), np.zeros(4, dtype=np.int64), np.zeros(4, dtype=np.int64))[0]
array([False, False,  True,  True])
"""

import re
import warnings
import zoneinfo
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from pgmult.core.arguments import as_choice, brief
from pgmult.core.dates import dates_of, whole_numbers
from pgmult.core.tables import Cells
from pgmult.core.typing import Array, BoolArray, FloatArray, IntArray
from pgmult.core.validate import refuse_rows

_UNITS = {
    "year": "Y", "quarter": "3M", "month": "M", "week": "W", "day": "D", "hour": "h", "minute": "m",
    "second": "s", "y": "Y", "w": "W", "d": "D", "h": "h", "min": "m", "sec": "s", "s": "s",
}  # fmt: skip
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_FIRST_MONDAY = 4  # days after 1970-01-01
_ZONES = (  # of the clocks that are set forward and back, one each
    "Europe/Berlin", "Europe/London", "Europe/Athens", "America/New_York", "Australia/Sydney",
    "Pacific/Auckland",
)  # fmt: skip
_HOUR, _DAY = 3600, 86400  # seconds
_LATEST = 7_258_118_400  # seconds: the year 2200
_USUAL = 0.9  # of the times of a regular table have the usual number of rows
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
        second, unsure = shown_twice(shown, sequence, np.where(times.later > 0, shown // _DAY, -1))
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
    fits = int(np.gcd.reduce(_apart(times, sequence), initial=every))
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


# --------------------------------------------------------------------------- changes of clocks


def shown_twice(times: IntArray, sequence: IntArray, hour: IntArray) -> tuple[BoolArray, BoolArray]:
    """Rows of the second of two hours that a clock shows alike, by their order.

    Parameters
    ----------
    times : int array, ``(num_rows,)``
        Local, in seconds.
    sequence : int array, ``(num_rows,)``
    hour : int array, ``(num_rows,)``
        Which hour that a clock shows twice a row is in; -1 for none.

    Returns
    -------
    second : bool array, ``(num_rows,)``
        Where rows of a sequence are in their order, those after a step back in time; else, where
        each time has twice as many rows as are usual, the latter half of them.
    unsure : bool array, ``(num_rows,)``
        Rows of hours with more rows than are usual that are in neither way two hours.
    """
    second, unsure = np.zeros((2, len(times)), dtype=np.bool_)
    if not (hour >= 0).any():
        return second, unsure
    order = np.argsort(sequence, kind="stable")
    whose, place = sequence[order], hour[order]
    steps = np.where(np.diff(whose) == 0, np.sign(np.diff(times[order])), 0)
    size = int(whose[-1]) + 1
    runs_backwards = np.bincount(whose[1:], steps, size) < 0
    ahead = steps * np.where(runs_backwards[whose[1:]], -1, 1)
    inside = (place[1:] >= 0) & (place[1:] == place[:-1])
    in_order = np.bincount(whose[1:], (ahead < 0) & ~inside, size) == 0
    usual = _usual_rows(times, sequence, hour < 0)
    groups = np.flatnonzero(place >= 0)
    _, number = np.unique(np.stack([whose[groups], place[groups]]), axis=1, return_inverse=True)
    by_group = groups[np.argsort(number.ravel(), kind="stable")]
    for rows_of_hour in np.split(by_group, np.cumsum(np.bincount(number.ravel()))[:-1]):
        s = int(whose[rows_of_hour[0]])
        rows = order[rows_of_hour[::-1] if runs_backwards[s] else rows_of_hour]
        back = np.flatnonzero(np.diff(times[rows]) < 0)
        if in_order[s] and len(back) == 1:
            second[rows[back[0] + 1 :]] = True
            continue
        _, of_time, often = np.unique(times[rows], return_inverse=True, return_counts=True)
        if usual and (often == 2 * usual).all():
            by_time = np.argsort(of_time, kind="stable")
            rank = np.arange(len(rows)) - np.repeat(np.cumsum(often) - often, often)
            second[rows[by_time[rank >= usual]]] = True
        elif (often > max(usual, 1)).any():
            unsure[rows] = True
    return second, unsure


def _usual_rows(times: IntArray, sequence: IntArray, chosen: BoolArray) -> int:
    """How many rows nearly every time of a sequence has; 0 if there is no such number."""
    if not chosen.any():
        return 1
    _, often = np.unique(np.stack([sequence[chosen], times[chosen]]), axis=1, return_counts=True)
    usual = int(np.bincount(often).argmax())
    return usual if (often == usual).mean() >= _USUAL else 0


def warn_of_changed_clocks(times: Array, sequence: IntArray, name: str) -> None:
    """Tell local times without a zone that lack an hour, or have one twice, as clocks are changed.

    Only times that nearly follow each other by one length, of an hour or less, can show it.
    """
    seconds = times.astype("datetime64[s]").astype(np.int64)
    order = np.lexsort((seconds, sequence))
    same = np.diff(sequence[order]) == 0
    before, after = seconds[order][:-1][same], seconds[order][1:][same]
    apart = (after - before)[after > before]
    step = float(np.median(apart)) if len(apart) else 0.0
    if not 0.0 < step <= _HOUR or (abs(apart - step) <= step / 10).mean() < 0.5:
        return
    empty = abs(after - before - _HOUR - step) <= step / 2
    starts = after[empty] // _HOUR * _HOUR - _HOUR  # of the last whole hour without a row
    lacking = _zones_of(starts[starts > before[empty]], _HOUR)
    if lacking and 2 * np.isin(starts, [*lacking]).sum() >= len(starts):
        start = min(lacking)
        _warn(name, "no row in the hour", start, "forward", lacking[start], "it is a missing step")
        return
    (_, hours), rows = np.unique(np.stack([sequence, seconds // _HOUR]), axis=1, return_counts=True)
    back = _zones_of(hours[rows > np.median(rows)] * _HOUR, -_HOUR)
    hour = np.where(np.isin(seconds // _HOUR * _HOUR, [*back]), seconds // _HOUR, -1)
    second, unsure = shown_twice(seconds, sequence, hour)
    twice = second | unsure
    if twice.any() and _usual_rows(seconds, sequence, ~twice):
        start, outcome = int(hour[twice].min()) * _HOUR, "two hours are taken for one"
        _warn(name, "twice the rows in the hour", start, "back", back[start], outcome)


def _warn(name: str, what: str, start: int, where: str, zone: str, outcome: str) -> None:
    warnings.warn(
        f"column {name!r} has {what} from {np.datetime64(start, 's')}, in which clocks are set"
        f" {where} ({zone}), and no zone: {outcome} (else read the table with time_zone={zone!r})",
        stacklevel=4,
    )


def _zones_of(starts: IntArray, change: int) -> dict[int, str]:
    """Local hours, in seconds, that clocks skip (or show twice, for a negative change), and whose.

    The first zone of those that do.
    """
    zones: dict[int, str] = {}
    for zone in _ZONES:
        with suppress(zoneinfo.ZoneInfoNotFoundError):  # a system without zones
            clock = zoneinfo.ZoneInfo(zone)
            for start in np.unique(starts[(starts >= 0) & (starts < _LATEST)]).tolist():
                shown = np.datetime64(start, "s").item()
                first, second = (
                    shown.replace(tzinfo=clock, fold=fold).timestamp() for fold in (0, 1)
                )
                if first - second == change:
                    zones.setdefault(start, zone)
    return zones

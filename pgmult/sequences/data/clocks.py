"""Local times over a change of clocks: which hour never was, and which of two a row is of.

In spring a day of local times lacks an hour, and in autumn it has one twice. Where the zone of
times is known, the order of rows tells which of the two hours each is of; where it is not, times
that look like those of a zone raise a warning.

>>> at = np.array(["2024-10-27T02:00", "2024-10-27T02:30"] * 2, dtype="datetime64[s]")
>>> shown_twice(at.astype(np.int64), np.zeros(4, dtype=np.int64), np.zeros(4, dtype=np.int64))[0]
array([False, False,  True,  True])
"""

import warnings
import zoneinfo
from contextlib import suppress

import numpy as np

from pgmult.core.typing import Array, BoolArray, IntArray

_ZONES = (  # of the clocks that are set forward and back, one each
    "Europe/Berlin", "Europe/London", "Europe/Athens", "America/New_York", "Australia/Sydney",
    "Pacific/Auckland",
)  # fmt: skip
_HOUR, _DAY = 3600, 86400
_LATEST = 7_258_118_400  # seconds: the year 2200
_USUAL = 0.9  # of the times of a regular table have the usual number of rows


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
    within = np.diff(whose) == 0
    steps = np.where(within, np.sign(np.diff(times[order])), 0)
    size = int(whose[-1]) + 1
    runs_backwards = np.bincount(whose[1:], steps, size) < 0
    ahead = steps * np.where(runs_backwards[whose[1:]], -1, 1)
    inside = (place[1:] >= 0) & (place[1:] == place[:-1])
    in_order = np.bincount(whose[1:], (ahead < 0) & ~inside, size) == 0
    usual = _usual_rows(times, sequence, hour < 0)
    groups = np.flatnonzero(place >= 0)
    keys = np.stack([whose[groups], place[groups]])
    _, number = np.unique(keys, axis=1, return_inverse=True)
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
    pairs = np.stack([sequence[chosen], times[chosen]])
    _, often = np.unique(pairs, axis=1, return_counts=True)
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
    pairs = np.stack([sequence, seconds // _HOUR])
    (_, hours), rows = np.unique(pairs, axis=1, return_counts=True)
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

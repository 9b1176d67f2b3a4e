"""Dates that are written as numbers or as texts.

>>> dates_of(np.array([20240131, 20240201])).astype(str).tolist()
['2024-01-31T00:00:00', '2024-02-01T00:00:00']
>>> dates_of(np.array([1706659200, 1706659800])).astype(str).tolist()
['2024-01-31T00:00:00', '2024-01-31T00:10:00']
>>> dates_of(np.array(["2020Q1", "2020Q4"])).astype("datetime64[M]").tolist()
[datetime.date(2020, 1, 1), datetime.date(2020, 10, 1)]
"""

import datetime
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmult.core.typing import AnyArray, Array, IntArray

_YEARS, _YEARS_WITH_HOURS = (1600, 2200), (1900, 2200)  # of dates that are written as numbers
_SINCE_1970 = (5 * 10**8, 42 * 10**8)  # seconds: 1985 to 2103, and no numbers of steps


def dates_of(times: AnyArray) -> NDArray[np.datetime64] | None:
    """The dates that numbers or texts stand for, in seconds; None where they are no dates.

    Numbers are dates where each has the digits of one (``YYYYMM``, ``YYYYMMDD``, and with hours,
    minutes and seconds), or is a time since 1970, in seconds or in thousandths, millionths or
    billionths of them. Texts are, where each is a quarter (2020Q1), an ISO week (2020-W05), a month
    (Jan 2020) or a school year (2019/20), which begin then.
    """
    if not len(times) or times.dtype.kind not in "iufOU":
        return None
    if all(isinstance(cell, str) for cell in times.tolist()):
        return _texts_as_dates(times.tolist())
    numbers = whole_numbers(times)
    if numbers is not None and (written := _written_dates(numbers)) is not None:
        return written
    if times.dtype.kind == "O" and numbers is None:
        return None
    values = times if numbers is None else numbers
    for per_second in (1, 10**3, 10**6, 10**9):
        low, high = (bound * per_second for bound in _SINCE_1970)
        if (values >= low).all() and (values < high).all():
            seconds = np.floor_divide(values, per_second).astype(np.int64)
            return np.asarray(seconds.astype("datetime64[s]"))
    return None


def _texts_as_dates(cells: list[str]) -> NDArray[np.datetime64] | None:
    """Dates of quarters, weeks, months or school years, if all are of one kind."""
    for pattern, date in _TEXTS:
        matches = [re.fullmatch(pattern, cell.strip(), re.IGNORECASE) for cell in cells]
        if all(matches):
            try:
                dates = [date(*match.groups()) for match in matches if match is not None]
            except ValueError:  # a week 60
                return None
            return np.array(dates, dtype="datetime64[s]")
    return None


def _school_year(first: str, second: str) -> str:
    if (int(first) + 1) % 10 ** len(second) != int(second):
        raise ValueError(f"a school year must end in the year after {first}, got {second}")
    return f"{first}-01"


_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = f"({'|'.join(_MONTHS)})[a-z]*\\.?"
_TEXTS: tuple[tuple[str, Callable[..., Any]], ...] = (
    (r"(\d{4})[- ]?q([1-4])", lambda year, q: f"{year}-{3 * int(q) - 2:02}"),
    (r"q([1-4])[-/ ]?(\d{4})", lambda q, year: f"{year}-{3 * int(q) - 2:02}"),
    (r"(\d{4})[- ]?w(\d{1,2})", lambda y, w: datetime.date.fromisocalendar(int(y), int(w), 1)),
    (rf"{_MONTH}[- ](\d{{4}})", lambda m, year: f"{year}-{_MONTHS.index(m.lower()) + 1:02}"),
    (rf"(\d{{4}})[- ]{_MONTH}", lambda year, m: f"{year}-{_MONTHS.index(m.lower()) + 1:02}"),
    (r"(\d{4})[/-](\d{2}|\d{4})", _school_year),
)


def _written_dates(numbers: IntArray) -> NDArray[np.datetime64] | None:
    """Dates of numbers such as 202401, 20240131 and 20240131235959."""
    digits = len(str(int(numbers.max())))
    if digits not in (6, 8, 10, 12, 14) or numbers.min() < 10 ** (digits - 1):
        return None
    parts = [numbers // 10 ** (digits - 4)]
    parts += [numbers // 10 ** (digits - end) % 100 for end in range(6, digits + 1, 2)]
    parts += [np.full_like(numbers, least) for least in (1, 0, 0, 0)[len(parts) - 2 :]]
    years = _YEARS if digits <= 8 else _YEARS_WITH_HOURS
    limits = (years, (1, 12), (1, 31), (0, 23), (0, 59), (0, 59))
    if any(
        (x < low).any() or (x > high).any() for x, (low, high) in zip(parts, limits, strict=True)
    ):
        return None
    year, month, day, hour, minute, second = parts
    months = (year - 1970) * 12 + month - 1
    dates = months.astype("datetime64[M]").astype("datetime64[D]") + (day - 1)
    if (dates.astype("datetime64[M]").astype(np.int64) != months).any():  # such as 31 June
        return None
    return np.asarray(dates.astype("datetime64[s]") + ((hour * 60 + minute) * 60 + second))


def whole_numbers(times: Array) -> IntArray | None:
    """The numbers of a column of whole numbers; None for other columns."""
    if times.dtype.kind == "f" and not np.isfinite(times).all():
        return None
    try:
        numbers = times.astype(np.int64)
        integral = bool((numbers == times).all())
    except (TypeError, ValueError, OverflowError):
        return None
    return numbers if integral and times.dtype.kind in "iufO" else None

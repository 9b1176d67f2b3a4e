"""The functions of formulas, each known to say of a row the same whatever rows stand beside it.

Some work on the number in a row alone (``log``). The others learn something of the first table,
such as a mean or where knots are, and keep it as arrays by name, which is all that they look at on
other rows. So a row has one answer, alone or in company, and what is stored is data.

==========================  =======================================================================
``log exp sqrt abs ...``    of each number; ``I(x > 3)`` and other arithmetic and comparisons
``center(x)``               less the mean
``scale(x)``                less the mean, by the standard deviation
``poly(x, 2)``              orthogonal polynomials; ``raw=True`` for powers
``bs(x, df=4)``             B-splines; options knots, degree, lower_bound, upper_bound,
                            extrapolation ("raise", "clip" or "extend")
``cr(x, df=4)``, ``cs``     natural cubic splines, whose average over the rows is 0; options knots,
                            lower_bound, upper_bound
``cc(x, df=4)``             cyclic cubic splines, closed after a year, a week or a day of
                            ``yearday(date)``, ``month(date)``, ``weekday(date)`` and
                            ``hour(date)``, else after ``period=12``; by default after one more than
                            the largest of whole numbers, and at the ends of others
``days(date)``              days since the first date of the first rows, as ``date`` itself is
``year(date)``, ``hour``    the year; hours since midnight, 13.5 at half past one
``yearday(date)``           days since the year began, 0 on the 1st of January
``month(date)``, ``weekday``  labels, January to December and Monday to Sunday; 1 to 12 and 1 to 7
                            within other functions, such as ``cc(month(date), knots=[4, 7, 10])``
==========================  =======================================================================

Cubic splines are those of Wood (2017, Generalized Additive Models, section 5.3).
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline, CubicSpline

from pgmult.core.typing import Array, FloatArray

State = dict[str, NDArray[Any]]

ROWWISE: Mapping[str, Any] = {
    "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "exp": np.exp,
    "expm1": np.expm1, "sqrt": np.sqrt, "abs": np.abs, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "tanh": np.tanh, "floor": np.floor, "ceil": np.ceil, "round": np.round, "I": lambda x: x,
}  # fmt: skip
"""Functions of one number."""

OPERATORS: Mapping[str, np.ufunc] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "//": np.floor_divide,
    "%": np.mod, "**": np.power, "==": np.equal, "!=": np.not_equal, "<": np.less,
    "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
}  # fmt: skip
"""What stands between two numbers."""


def _center(x: FloatArray, state: State | None) -> tuple[FloatArray, State]:
    state = {"mean": np.mean(x, keepdims=True)} if state is None else state
    return x - state["mean"], state


def _scale(x: FloatArray, state: State | None) -> tuple[FloatArray, State]:
    centred, learnt = _center(x, state)
    if state is None:
        size = np.sqrt(np.sum(centred**2, keepdims=True) / (len(x) - 1))
        learnt = {**learnt, "size": size}
    return centred / learnt["size"], learnt


def _poly(
    x: FloatArray, state: State | None, degree: int = 1, raw: bool = False
) -> tuple[FloatArray, State]:
    """Polynomials orthogonal over the first rows, by their recurrence."""
    if not 1 <= degree <= 20:
        raise ValueError(f"degree must be 1 to 20, got {degree}")
    if raw:
        return np.stack([np.power(x, k) for k in range(1, degree + 1)], axis=1), state or {}
    learnt = state or {"alpha": np.empty(degree), "norms": np.empty(degree + 1)}
    columns, alpha, norms = [np.ones(len(x))], learnt["alpha"], learnt["norms"]
    for i in range(degree):
        squares = columns[i] ** 2
        if state is None:
            norms[i], alpha[i] = np.sum(squares), np.sum(x * squares) / np.sum(squares)
        column = (x - alpha[i]) * columns[i]
        if i >= 1:
            column -= norms[i] / norms[i - 1] * columns[i - 1]
        columns.append(column)
    if state is None:
        norms[degree] = np.sum(columns[degree] ** 2)
    return (np.stack(columns, axis=1) / np.sqrt(norms))[:, 1:], learnt


def _bs(
    x: FloatArray,
    state: State | None,
    df: int | None = None,
    knots: list[float] | None = None,
    degree: int = 3,
    lower_bound: float | None = None,
    upper_bound: float | None = None,
    extrapolation: str = "raise",
) -> tuple[FloatArray, State]:
    """B-splines without the first, which the intercept stands for."""
    if extrapolation not in ("raise", "clip", "extend"):
        raise ValueError(f"extrapolation must be 'raise', 'clip' or 'extend', got {extrapolation}")
    if not 0 <= degree <= 10:
        raise ValueError(f"degree must be 0 to 10, got {degree}")
    if state is None:
        ends = _ends(x, lower_bound, upper_bound)
        if df is not None and knots is not None:
            raise ValueError("it takes df or knots, not both")
        if df is not None and not degree <= df <= 1000:
            raise ValueError(f"df must be {degree} at least, got {df}")
        inner = knots or []
        if df is not None:
            inner = np.quantile(x, np.linspace(0, 1, df - degree + 2))[1:-1].tolist()
        state = {"knots": np.pad([ends[0], *inner, ends[1]], degree, mode="edge")}
    t = state["knots"]
    outside = (x < t[0]) | (x > t[-1])
    if extrapolation == "raise" and outside.any():
        hint = "extrapolation='clip' or 'extend' goes on from there; s(x) goes on straight"
        got = f"{x[outside][0]:g} ({hint})"
        raise ValueError(f"it is known from {t[0]:g} to {t[-1]:g} alone, got {got}")
    if extrapolation == "clip":
        x = np.clip(x, t[0], t[-1])
    return BSpline(t, np.eye(len(t) - degree - 1), degree)(x)[:, 1:], state


def _ends(x: FloatArray, lower: float | None, upper: float | None) -> tuple[float, float]:
    low = float(np.min(x) if lower is None else lower)
    high = float(np.max(x) if upper is None else upper)
    if not low < high:
        raise ValueError(f"it must run over different values, got bounds {low:g}, {high:g}")
    return low, high


def _cubic(
    x: FloatArray,
    state: State | None,
    df: int | None = None,
    knots: list[float] | None = None,
    lower_bound: float | None = None,
    upper_bound: float | None = None,
) -> tuple[FloatArray, State]:
    """Natural cubic splines by their values at knots, those of average 0 over the first rows."""
    state = state or _learnt(x, df, knots, _ends(x, lower_bound, upper_bound))
    return _at_knots(x, state["knots"]) @ state["free"], state


def _cyclic(
    x: FloatArray,
    state: State | None,
    df: int | None = None,
    knots: list[float] | None = None,
    lower_bound: float | None = None,
    upper_bound: float | None = None,
    period: float | None = None,
) -> tuple[FloatArray, State]:
    """Cyclic cubic splines, which close after a period."""
    if period is not None and (upper_bound is not None or not period > 0.0):
        raise ValueError(f"it takes a positive period or an upper bound, got period {period}")
    if state is None:
        lower_bound = float(np.min(x)) if lower_bound is None else lower_bound
        if upper_bound is None and period is None and not (x % 1.0).any():
            period = float(np.max(x)) - lower_bound + 1.0
        upper_bound = upper_bound if period is None else lower_bound + period
        state = _learnt(x, df, knots, _ends(x, lower_bound, upper_bound), is_cyclic=True)
    return _at_knots(x, state["knots"], is_cyclic=True) @ state["free"], state


def _learnt(
    x: FloatArray, df: int | None, knots: Any, ends: tuple[float, float], is_cyclic: bool = False
) -> State:
    """The knots of a cubic spline, and combinations of its values there of average 0."""
    if (df is None) == (knots is None):
        raise ValueError("it takes df or knots, one of the two")
    inner = knots
    if df is not None:
        if not 1 <= df <= 1000:
            raise ValueError(f"df must be 1 to 1000, got {df}")
        within = np.unique(x[(ends[0] <= x) & (x <= ends[1])])
        inner = np.percentile(within, np.linspace(0, 100, df + 1 + is_cyclic)[1:-1])
    places = np.unique([*ends, *inner])
    if len(places) < len(inner) + 2 or places[0] < ends[0] or places[-1] > ends[1]:
        between = f"between {ends[0]:g} and {ends[1]:g} (take a smaller df)"
        raise ValueError(f"its {len(inner)} knots must be different and {between}")
    mean = _at_knots(x, places, is_cyclic).mean(axis=0)
    return {"knots": places, "free": np.linalg.qr(mean[:, None], mode="complete")[0][:, 1:]}


def _at_knots(x: FloatArray, knots: FloatArray, is_cyclic: bool = False) -> FloatArray:
    """What the values at each knot add to a spline at x, ``(len(x), num_values)``."""
    if not is_cyclic:
        return natural_spline(knots, np.eye(len(knots)), x)
    circle = np.vstack([np.eye(len(knots) - 1), np.eye(1, len(knots) - 1)])
    around = knots[0] + (x - knots[0]) % (knots[-1] - knots[0])
    return np.asarray(CubicSpline(knots, circle, bc_type="periodic")(around))


def natural_spline(knots: FloatArray, values: FloatArray, x: FloatArray) -> FloatArray:
    """Natural cubic splines through values at knots, straight beyond the first and the last.

    Parameters
    ----------
    knots : array, ``(num_knots,)``
    values : array, ``(num_knots, num_curves)``
    x : array, ``(num_rows,)``

    Returns
    -------
    array, ``(num_rows, num_curves)``
    """
    spline = CubicSpline(knots, values, bc_type="natural")
    inside = np.clip(x, knots[0], knots[-1])
    return np.asarray(spline(inside) + spline(inside, 1) * (x - inside)[:, None])


BASES: Mapping[str, Callable[..., tuple[FloatArray, State]]] = {
    "center": _center, "scale": _scale, "poly": _poly, "bs": _bs, "cr": _cubic,
    "cs": _cubic, "cc": _cyclic,
}  # fmt: skip
"""``function(x, state, **options) -> columns, state``: with state None it learns from x."""


_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_UNIX_WEEKDAY = 3  # the first day of 1970 was a Thursday


_HOUR = 3_600_000  # milliseconds


def _count(dates: Array, unit: str) -> FloatArray:
    """Whole years, months or days since 1970."""
    return dates.astype(f"datetime64[{unit}]").astype(np.int64).astype(np.float64)


def _since(dates: Array, began: str) -> FloatArray:
    """Hours since the year, or the day, began."""
    gaps = dates - dates.astype(f"datetime64[{began}]").astype(dates.dtype)
    return np.asarray(gaps.astype(np.int64) / _HOUR)


CALENDAR: Mapping[str, Callable[[NDArray[np.datetime64]], Array]] = {
    "year": lambda dates: 1970.0 + _count(dates, "Y"),
    "month": lambda dates: 1.0 + _count(dates, "M") % 12.0,
    "weekday": lambda dates: 1.0 + (_count(dates, "D") + _UNIX_WEEKDAY) % 7.0,
    "yearday": lambda dates: _since(dates, "Y") // 24.0,
    "hour": lambda dates: _since(dates, "D"),
}
"""Functions of a column of dates, datetime64 in milliseconds."""

PERIODS: Mapping[str, tuple[float, float]] = {
    "month": (1.0, 13.0), "weekday": (1.0, 8.0), "yearday": (0.0, 366.0), "hour": (0.0, 24.0),
}  # fmt: skip
"""Where the numbers of a calendar begin, and where they begin again."""

NAMED: Mapping[str, tuple[str, ...]] = {"month": _MONTHS, "weekday": _WEEKDAYS}
"""What numbers from 1 on are called, where a function's are labels."""

SPECIAL = ("|", "||", "s", "gp", "rw", "car", "offset")
"""What makes terms rather than columns."""

"""Small drawings of the page: intervals in the rows of a table, and curves with bands.

They are drawn at the size at which they are read, so that letters stay legible on a telephone, and
coloured by classes of the style sheet, so that they follow a dark screen.
"""

import html
import math
from collections.abc import Sequence

import numpy as np

from pgmult.core.typing import FloatArray
from pgmult.topics.summaries.effects import Effects

__all__ = ["axis_svg", "curve_svg", "interval_svg", "legend", "span_of", "ticks_of"]

_WIDTH, _ROW, _EDGE = 230, 18, 6


def span_of(*values: FloatArray, zero: bool = True) -> tuple[float, float]:
    """An axis that holds all the values, and zero if asked."""
    there = np.concatenate([np.ravel(v) for v in values])
    there = there[np.isfinite(there)]
    low, high = (float(there.min()), float(there.max())) if there.size else (0.0, 1.0)
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    return (low, high) if high > low else (low - 1.0, high + 1.0)


def ticks_of(low: float, high: float, count: int = 4) -> list[float]:
    """Round numbers between two ends."""
    rough = (high - low) / count
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * m for m in (1, 2, 5, 10) if unit * m >= rough)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [step * i for i in range(first, last + 1)]


def _x(value: float, span: tuple[float, float]) -> float:
    low, high = span
    inside = min(max(value, low), high)
    return _EDGE + (_WIDTH - 2 * _EDGE) * (inside - low) / (high - low)


def axis_svg(span: tuple[float, float], ticks: Sequence[tuple[float, str]]) -> str:
    """The numbers along the intervals below."""
    marks = "".join(
        f'<text x="{_x(value, span):.1f}" y="13" text-anchor="middle">{html.escape(text)}</text>'
        for value, text in ticks
    )
    return f'<svg class="row" width="{_WIDTH}" height="{_ROW}" aria-hidden="true">{marks}</svg>'


def interval_svg(
    span: tuple[float, float],
    points: Sequence[tuple[float, float, float, str]],
    label: str,
    zero: float | None = 0.0,
) -> str:
    """Points with their intervals, one below the other: (mean, lower, upper, class)."""
    height = max(_ROW, 9 * len(points) + 6)
    parts = []
    if zero is not None:
        x = _x(zero, span)
        parts.append(f'<line class="zero" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height}"/>')
    gap = height / (len(points) + 1)
    for i, (mean, lower, upper, kind) in enumerate(points):
        if not math.isfinite(mean):
            continue
        y = gap * (i + 1)
        parts.append(
            f'<line class="{kind}" x1="{_x(lower, span):.1f}" x2="{_x(upper, span):.1f}"'
            f' y1="{y:.1f}" y2="{y:.1f}"/><circle class="{kind}" cx="{_x(mean, span):.1f}"'
            f' cy="{y:.1f}" r="3.5"/>'
        )
    return (
        f'<svg class="row" role="img" aria-label="{html.escape(label)}" width="{_WIDTH}"'
        f' height="{height:.0f}">{"".join(parts)}</svg>'
    )


def curve_svg(found: Effects, topic: int, width: int = 240, height: int = 150) -> str:
    """A topic's expected share along a number, a band and a line for each group."""
    x = found.numbers
    mean, lower, upper = (100.0 * v[:, topic] for v in (found.mean, found.lower, found.upper))
    top = float(np.nanmax(upper))
    top = top if top > 0.0 else 1.0
    left, right, bottom = 30, width - 18, height - 18
    low, high = float(x.min()), float(x.max())
    high = high if high > low else low + 1.0

    def at(value: float, share: float) -> str:
        horizontal = left + (right - left) * (value - low) / (high - low)
        return f"{horizontal:.1f},{bottom - (bottom - 8) * share / top:.1f}"

    parts = []
    for share in ticks_of(0.0, top, 3):
        y = bottom - (bottom - 8) * share / top
        parts.append(
            f'<line class="grid" x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text x="{left - 4}" y="{y + 4:.1f}" text-anchor="end">{share:g}</text>'
        )
    for value in ticks_of(low, high, 3):
        where = at(value, 0.0).split(",")[0]
        parts.append(f'<text x="{where}" y="{height - 4}" text-anchor="middle">{value:g}</text>')
    for g, rows in enumerate(found.groups.values()):
        band = [at(x[i], upper[i]) for i in rows] + [at(x[i], lower[i]) for i in rows[::-1]]
        line = " ".join(at(x[i], mean[i]) for i in rows)
        parts.append(
            f'<polygon class="c{g % 6}" points="{" ".join(band)}"/>'
            f'<polyline class="c{g % 6}" points="{line}"/>'
        )
    told = "; ".join(
        f"{f'{group}: ' if group else ''}{mean[rows[0]]:.1f} % at {x[rows[0]]:g},"
        f" {mean[rows[-1]]:.1f} % at {x[rows[-1]]:g}"
        for group, rows in found.groups.items()
    )
    return (
        f'<svg class="curve" role="img" aria-label="{html.escape(told)}" width="{width}"'
        f' height="{height}">{"".join(parts)}</svg>'
    )


def legend(labels: Sequence[str]) -> str:
    """Groups by colour; nothing for one without a name."""
    if not any(labels):
        return ""
    marks = "".join(
        f'<span><i class="c{g % 6}"></i> {html.escape(label)}</span>'
        for g, label in enumerate(labels)
    )
    return f'<p class="legend">{marks}</p>'

"""Shares of categories: stacked along time, and which category each step has."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from pgmult.core.figures.base import (
    CYCLE,
    NUM_COLOURS,
    Axes,
    Figure,
    axes_or_new,
    clean,
    drawing,
    framed,
    key,
    legend_beside,
    round_ticks,
    whole_numbers,
)
from pgmult.core.markup import Markup, tag
from pgmult.core.typing import FloatArray, IntArray

OTHER = -2
"""The number of all categories that have no colour of their own."""
MISSING = -1
"""The number of a step at which nothing was seen."""

_WIDTH, _LEFT, _RIGHT, _BOTTOM = 480.0, 42.0, 8.0, 34.0


@dataclass(frozen=True, slots=True, eq=False)
class Raster(Figure):
    """What was seen at each step: one row per sequence, a colour a category.

    Attributes
    ----------
    rows : sequence of int arrays
        Numbers of the categories, `OTHER` or `MISSING`; rows may differ in length.
    names : sequence of str
        Of the rows.
    categories : sequence of str
        Of the numbers from 0.
    label : str
        What the figure shows, for those who do not see it.
    x_label, caption : str
    starts : sequence of int, optional
        The step at which each row begins; 0 if left out.
    tick_text : function, optional
        What to write at a place of the axis.
    """

    rows: Sequence[IntArray]
    names: Sequence[str]
    categories: Sequence[str]
    label: str
    x_label: str = "step"
    caption: str = ""
    starts: Sequence[int] | None = None
    tick_text: Callable[[float], str] | None = None

    def _span(self) -> tuple[int, int]:
        ends = [s + len(row) for s, row in zip(self._starts, self.rows, strict=True)]
        return min(self._starts), max(ends)

    @property
    def _starts(self) -> Sequence[int]:
        return [0] * len(self.rows) if self.starts is None else self.starts

    def svg(self) -> Markup:
        """The raster as SVG, equal neighbours in one stroke."""
        low, high = self._span()
        left = 12.0 + 6.4 * min(16, max(map(len, self.names)))
        size = max(6.0, min(18.0, 220.0 / len(self.rows)))
        wide = (_WIDTH - left - _RIGHT) / (high - low)
        strokes: dict[int, list[str]] = {}
        parts = []
        for r, (row, start) in enumerate(zip(self.rows, self._starts, strict=True)):
            top = r * size
            for a, b, number in _runs(row):
                x = left + (start + a - low) * wide
                box = f"M{x:.2f} {top + 0.1 * size:.1f}h{(b - a) * wide:.2f}v{0.8 * size:.1f}"
                strokes.setdefault(number, []).append(f"{box}h-{(b - a) * wide:.2f}z")
            if size >= 9.0 or r % 2 == 0 or not self.names[r - 1]:
                name = _short(self.names[r])
                y = max(top + 0.5 * size + 4, 9.0)  # the first one is taller than a low row
                parts.append(tag("text", name, class_="end", x=left - 5, y=y))
        parts += [tag("path", class_=_kind(n), d="".join(d)) for n, d in sorted(strokes.items())]
        floor = size * len(self.rows)
        parts += _axis(low, high, left, wide, floor, self.tick_text, self.x_label)
        svg = drawing(parts, self.label, _WIDTH, floor + _BOTTOM)
        return framed(svg, self.caption, _keys(self.categories, set(strokes)))

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the rows with matplotlib."""
        axes = axes_or_new(axes, 7.0, 1.0 + 0.22 * len(self.rows))
        present: dict[int, None] = {}
        for r, (row, start) in enumerate(zip(self.rows, self._starts, strict=True)):
            for first, last, number in _runs(row):
                ends = (start + first - 0.5, last - first)
                axes.broken_barh([ends], (r - 0.4, 0.8), color=_paint(number))
                present[number] = None
        for number in sorted(present):
            name = {MISSING: "no data", OTHER: "other"}.get(number) or self.categories[number]
            axes.plot([], [], "s", color=_paint(number), label=name)
        axes.set_yticks(range(len(self.rows)), list(map(_short, self.names)), fontsize=7)
        axes.set_ylim(len(self.rows) - 0.4, -0.6)
        _finish(axes, self)
        return axes


@dataclass(frozen=True, slots=True, eq=False)
class Stack(Figure):
    """Probabilities along time, stacked: at each step the heights sum to one.

    Attributes
    ----------
    shares : array, ``(num_steps, num_categories)``
        In the order in which they are stacked; what is wanting to one is left grey: other
        categories.
    categories : sequence of str
    label : str
        What the figure shows, for those who do not see it.
    x_label, caption : str
    start : int
        The place of the first step.
    seen : int array, optional
        What was seen at the first steps, as in `Raster`: a strip above.
    divider : float, optional
        Where what lies ahead begins.
    tick_text : function, optional
    """

    shares: FloatArray
    categories: Sequence[str]
    label: str
    x_label: str = "step"
    caption: str = ""
    start: int = 0
    seen: IntArray | None = None
    divider: float | None = None
    tick_text: Callable[[float], str] | None = None

    def svg(self) -> Markup:
        """The stack as SVG."""
        steps = len(self.shares)
        low, high = self.start, self.start + steps
        wide = (_WIDTH - _LEFT - _RIGHT) / steps
        top, floor = 14.0, 154.0
        edges = self._edges()
        parts = []
        for k in range(edges.shape[1] - 1):
            upper, lower = edges[:, k + 1], edges[:, k]
            d = _outline(floor - upper * (floor - top), floor - lower * (floor - top), wide)
            number = k if k < len(self.categories) else OTHER
            parts.append(tag("path", class_=_kind(number), d=d, fill_opacity=".75"))
        if self.seen is not None:
            for a, b, number in _runs(self.seen):
                box = {"x": _LEFT + a * wide, "width": (b - a) * wide, "y": 0, "height": 9}
                parts.append(tag("rect", class_=_kind(number), **box))
        for share in (0.0, 0.5, 1.0):
            y = floor - share * (floor - top) + 4.0
            parts.append(tag("text", f"{share:g}", class_="end", x=_LEFT - 5.0, y=y))
        if self.divider is not None:
            x = _LEFT + (self.divider - low) * wide
            parts.append(tag("path", class_="now", d=f"M{x:.1f} 0V{floor:.0f}"))
        parts += _axis(low, high, _LEFT, wide, floor, self.tick_text, self.x_label)
        svg = drawing(parts, self.label, _WIDTH, floor + _BOTTOM)
        shown = {*range(len(self.categories))} | ({OTHER} if self._has_rest else set())
        shown |= set() if self.seen is None else {*self.seen.tolist()}
        keys = _keys(self.categories, shown)
        if self.seen is not None:
            keys.append(key(tag("rect", class_="gap", width=30, height=5), "above: what was seen"))
        if self.divider is not None:
            keys.append(key(tag("path", class_="now", d="M15 0V14"), "the last that was seen"))
        return framed(svg, self.caption, keys)

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the stack with matplotlib."""
        axes = axes_or_new(axes, 7.0, 3.0)
        edges, x = self._edges(), self.start - 0.5 + np.arange(len(self.shares) + 1)
        for k, (lower, upper) in enumerate(pairwise(np.vstack([edges, edges[-1:]]).T)):
            number = k if k < len(self.categories) else OTHER
            axes.fill_between(
                x, lower, upper, step="post",
                color=_paint(number), alpha=0.75, linewidth=0,
                label=self.categories[k] if number >= 0 else "other",
            )  # fmt: skip
        if self.seen is not None:
            for first, last, number in _runs(self.seen):
                ends = (self.start + first - 0.5, last - first)
                axes.broken_barh([ends], (1.02, 0.06), color=_paint(number))
        if self.divider is not None:
            axes.axvline(self.divider - 0.5, color="black", linewidth=1.0, linestyle="--")
        _finish(axes, self)
        axes.set_ylim(0.0, 1.0 if self.seen is None else 1.1)
        axes.set_yticks([0.0, 0.5, 1.0])
        axes.set_ylabel("probability")
        return axes

    def _edges(self) -> FloatArray:
        """Heights between categories, ``(num_steps, num_categories + 1)``, or one more for rest."""
        edges = np.cumsum(np.column_stack([np.zeros(len(self.shares)), self.shares]), axis=1)
        return np.column_stack([edges, np.ones(len(edges))]) if self._has_rest else edges

    @property
    def _has_rest(self) -> bool:
        return bool((self.shares.sum(axis=1) < 1.0 - 1e-6).any())


def _runs(row: IntArray) -> list[tuple[int, int, int]]:
    """First and last place, and number, of stretches of one number."""
    if not len(row):
        return []
    ends = np.flatnonzero(np.diff(row)) + 1
    bounds = [0, *ends.tolist(), len(row)]
    return [(a, b, int(row[a])) for a, b in pairwise(bounds)]


def _paint(number: int) -> str:
    """The colour of a category for matplotlib."""
    return {MISSING: "0.9", OTHER: "0.6"}.get(number, CYCLE[number % NUM_COLOURS])


def _finish(axes: Axes, figure: "Raster | Stack") -> None:
    """Labels of what is drawn along time."""
    whole_numbers(axes, most=8 if figure.tick_text is None else 4)
    if figure.tick_text is not None:
        words = figure.tick_text
        axes.xaxis.set_major_formatter(lambda x, _: words(x))
    axes.margins(x=0.01)
    axes.set_xlabel(figure.x_label)
    axes.set_title(figure.caption, fontsize=9, loc="left")
    legend_beside(axes)
    clean(axes)


def _kind(number: int) -> str:
    """The class of a block of a category."""
    if number == MISSING:
        return "gap"
    return "block neutral" if number == OTHER else f"block c{number % NUM_COLOURS}"


def _keys(categories: Sequence[str], shown: set[int]) -> list[Markup]:
    block = tag("rect", class_="solid", width=30, height=14)
    keys = [key(block, name, k) for k, name in enumerate(categories) if k in shown]
    keys += [key(block, "other")] if OTHER in shown else []
    gap = tag("rect", class_="gap", width=30, height=14)
    return keys + ([key(gap, "no data")] if MISSING in shown else [])


def _outline(upper: FloatArray, lower: FloatArray, wide: float) -> str:
    """A block of columns of this width, along its upper edge and back along the lower one."""
    x = np.repeat(_LEFT + wide * np.arange(len(upper) + 1), 2)[1:-1]
    across, down = np.append(x, x[::-1]), np.repeat(np.append(upper, lower[::-1]), 2)
    return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(across, down, strict=True)) + "Z"


def _axis(
    low: int,
    high: int,
    left: float,
    wide: float,
    floor: float,
    tick_text: Callable[[float], str] | None,
    x_label: str,
) -> list[Markup]:
    right = left + (high - low) * wide
    parts = [tag("path", class_="axis", d=f"M{left:.0f} {floor:.1f}H{right:.0f}")]
    most = 7 if tick_text is None else 4
    for tick in round_ticks(low, max(high - 1, low + 1), most, whole=True):
        x = left + (tick - low + 0.5) * wide
        words = f"{tick:.0f}" if tick_text is None else tick_text(tick)
        parts.append(tag("path", class_="axis", d=f"M{x:.1f} {floor:.1f}v4"))
        parts.append(tag("text", words, class_="middle", x=x, y=floor + 15.0))
    middle = (left + right) / 2.0
    parts.append(tag("text", x_label, class_="middle", x=middle, y=floor + 29.0))
    return parts


def _short(name: str) -> str:
    return name if len(name) <= 16 else f"{name[:15]}…"

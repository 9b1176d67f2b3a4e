"""Shares of categories: stacked along time, and which category each step has."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from pgmult.core.figures import base
from pgmult.core.figures.base import Axes, Figure, TickText, key, stroke
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
    tick_text: TickText | None = None

    def _blocks(self) -> list[tuple[int, int, int, int]]:
        """Row, first place, length and number of each stretch of one number."""
        starts = [0] * len(self.rows) if self.starts is None else self.starts
        rows = enumerate(zip(self.rows, starts, strict=True))
        return [(r, start + a, n, k) for r, (row, start) in rows for a, n, k in _runs(row)]

    def svg(self) -> Markup:
        """The raster as SVG, equal neighbours in one stroke."""
        blocks = self._blocks()
        low, high = min(a for _, a, _, _ in blocks), max(a + n for _, a, n, _ in blocks)
        left = 12.0 + 6.4 * min(16, max(map(len, self.names)))
        size = max(6.0, min(18.0, 220.0 / len(self.rows)))
        wide = (_WIDTH - left - _RIGHT) / (high - low)
        parts, strokes = [], dict[int, list[str]]()
        for r, a, count, number in blocks:
            x, y, width = left + (a - low) * wide, r * size + 0.1 * size, count * wide
            box = f"M{x:.2f} {y:.1f}h{width:.2f}v{0.8 * size:.1f}h-{width:.2f}z"
            strokes.setdefault(number, []).append(box)
        for r, name in enumerate(self.names):
            if size >= 9.0 or r % 2 == 0 or not self.names[r - 1]:
                y = max(r * size + 0.5 * size + 4, 9.0)  # the first one is taller than a low row
                parts.append(base.words(_short(name), left - 5, y, "end"))
        parts += [stroke(_kind(n), "".join(d)) for n, d in sorted(strokes.items())]
        floor = size * len(self.rows)
        parts += _axis(low, high, left, wide, floor, self)
        room, keys = (_WIDTH, floor + _BOTTOM), _keys(self.categories, set(strokes))
        return base.framed(parts, self.label, room, self.caption, keys)

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the rows with matplotlib."""
        axes = base.axes_or_new(axes, 7.0, 1.0 + 0.22 * len(self.rows))
        blocks = self._blocks()
        for r, a, count, number in blocks:
            axes.broken_barh([(a - 0.5, count)], (r - 0.4, 0.8), color=_paint(number))
        for number in sorted({number for *_, number in blocks}):
            name = {MISSING: "no data", OTHER: "other"}.get(number) or self.categories[number]
            axes.plot([], [], "s", color=_paint(number), label=name)
        axes.set_yticks(range(len(self.rows)), list(map(_short, self.names)), fontsize=7)
        axes.set_ylim(len(self.rows) - 0.4, -0.6)
        return _finished(axes, self)


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
    tick_text: TickText | None = None

    def svg(self) -> Markup:
        """The stack as SVG."""
        low, high = self.start, self.start + len(self.shares)
        wide = (_WIDTH - _LEFT - _RIGHT) / len(self.shares)
        top, floor = 14.0, 154.0
        heights = floor - self._edges() * (floor - top)
        parts = []
        for k, (lower, upper) in enumerate(pairwise(heights.T)):
            kind = _kind(k if k < len(self.categories) else OTHER)
            parts.append(stroke(kind, _outline(upper, lower, wide), fill_opacity=".75"))
        shown = {*range(len(self.categories))} | ({OTHER} if self._has_rest else set())
        marks = []
        if self.seen is not None:
            for a, count, number in _runs(self.seen):
                box = {"x": _LEFT + a * wide, "width": count * wide, "y": 0, "height": 9}
                parts.append(tag("rect", class_=_kind(number), **box))
            shown |= {*self.seen.tolist()}
            marks = [key(tag("rect", class_="gap", width=30, height=5), "above: what was seen")]
        for share in (0.0, 0.5, 1.0):
            y = floor - share * (floor - top) + 4.0
            parts.append(base.words(f"{share:g}", _LEFT - 5.0, y, "end"))
        if self.divider is not None:
            x = _LEFT + (self.divider - low) * wide
            parts.append(stroke("now", f"M{x:.1f} 0V{floor:.0f}"))
            marks.append(key(stroke("now", "M15 0V14"), "the last that was seen"))
        parts += _axis(low, high, _LEFT, wide, floor, self)
        room, keys = (_WIDTH, floor + _BOTTOM), _keys(self.categories, shown)
        return base.framed(parts, self.label, room, self.caption, keys + marks)

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the stack with matplotlib."""
        axes = base.axes_or_new(axes, 7.0, 3.0)
        edges, x = self._edges(), self.start - 0.5 + np.arange(len(self.shares) + 1)
        names = [*self.categories, "other"]
        for k, (lower, upper) in enumerate(pairwise(np.vstack([edges, edges[-1:]]).T)):
            colour = _paint(k if k < len(self.categories) else OTHER)
            axes.fill_between(
                x, lower, upper, step="post", color=colour, alpha=0.75, lw=0, label=names[k]
            )
        for first, count, number in [] if self.seen is None else _runs(self.seen):
            ends = (self.start + first - 0.5, count)
            axes.broken_barh([ends], (1.02, 0.06), color=_paint(number))
        if self.divider is not None:
            axes.axvline(self.divider - 0.5, color="black", lw=1.0, ls="--")
        axes.set_ylim(0.0, 1.0 if self.seen is None else 1.1)
        axes.set_yticks([0.0, 0.5, 1.0])
        axes.set_ylabel("probability")
        return _finished(axes, self)

    def _edges(self) -> FloatArray:
        """Heights between categories, ``(num_steps, num_categories + 1)``, or one more for rest."""
        edges = np.cumsum(np.column_stack([np.zeros(len(self.shares)), self.shares]), axis=1)
        return np.column_stack([edges, np.ones(len(edges))]) if self._has_rest else edges

    @property
    def _has_rest(self) -> bool:
        return bool((self.shares.sum(axis=1) < 1.0 - 1e-6).any())


def _runs(row: IntArray) -> list[tuple[int, int, int]]:
    """First place, length and number of stretches of one number."""
    bounds = np.flatnonzero(np.diff(row, prepend=row[:1] - 1, append=row[-1:] - 1)).tolist()
    return [(a, b - a, int(row[a])) for a, b in pairwise(bounds)]


def _paint(number: int) -> str:
    """The colour of a category for matplotlib."""
    return {MISSING: "0.9", OTHER: "0.6"}.get(number, base.CYCLE[number % base.NUM_COLOURS])


def _finished(axes: Axes, figure: Raster | Stack) -> Axes:
    """Labels of what is drawn along time."""
    base.step_ticks(axes, figure.tick_text)
    axes.set_xlabel(figure.x_label)
    return base.finished(axes, figure.caption)


def _kind(number: int) -> str:
    """The class of a block of a category."""
    if number == MISSING:
        return "gap"
    return f"block {base.class_of(None if number == OTHER else number)}"


def _keys(categories: Sequence[str], shown: set[int]) -> list[Markup]:
    block, gap = (tag("rect", class_=kind, width=30, height=14) for kind in ("solid", "gap"))
    keys = [key(block, name, k) for k, name in enumerate(categories) if k in shown]
    keys += [key(block, "other")] if OTHER in shown else []
    return keys + ([key(gap, "no data")] if MISSING in shown else [])


def _outline(upper: FloatArray, lower: FloatArray, wide: float) -> str:
    """A block of columns of this width, along its upper edge and back along the lower one."""
    x = np.repeat(_LEFT + wide * np.arange(len(upper) + 1), 2)[1:-1]
    across, down = np.append(x, x[::-1]), np.repeat(np.append(upper, lower[::-1]), 2)
    return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(across, down, strict=True)) + "Z"


def _axis(
    low: int, high: int, left: float, wide: float, floor: float, figure: Raster | Stack
) -> list[Markup]:
    """The axis of steps, whose ticks stand below the middle of a column."""
    text = figure.tick_text or "{:.0f}".format
    most = base.MOST_TICKS[figure.tick_text is None]
    steps = base.round_ticks(low, max(high - 1, low + 1), most, whole=True)
    ticks = [(left + (step - low + 0.5) * wide, text(step)) for step in steps]
    return base.lower_axis(ticks, left, left + (high - low) * wide, floor, figure.x_label)


def _short(name: str) -> str:
    return name if len(name) <= 16 else f"{name[:15]}…"

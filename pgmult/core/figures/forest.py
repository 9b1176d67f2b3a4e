"""Points with intervals, one row per label: differences, ratios, distances."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pgmult.core.figures import base
from pgmult.core.figures.base import Axes, Figure, key
from pgmult.core.markup import Markup, joined, tag
from pgmult.core.tabled import Column, wrapped
from pgmult.core.typing import FloatArray, IntArray

GREY = -1
"""The colour of what rests on too little to be read."""

_WIDTH, _ROW, _EDGE, _LETTER = 230, 18, 6, 7  # of a drawing in a row of a page, in its pixels


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Forest(Figure):
    """A figure of rows, each of them points with their intervals.

    On a page it is a table whose cells stand beside the drawings, at the size at which they are
    read, so that letters stay legible on a telephone.

    Attributes
    ----------
    labels : sequence of str
        Of the rows, from the top.
    mean, lower, upper : arrays, ``(point, row)``
    colours : int array, ``(point, row)``, or None
        Numbers of the colours, `GREY` among them; by default each point of a row has its own.
    legend : mapping from a colour to what it stands for
    legend_title : str
    sizes : array, ``(row,)``, or None
        Areas of the points over the usual one.
    line : float or None
        Where a line stands, such as at no difference.
    span : pair of float, optional
        The ends of the axis; what lies beyond is drawn at the edge. By default all that there is.
    ticks : pairs of place and text, optional
    name, x_label, caption : str
        Of the labels, of the axis, of the figure.
    note : str
        How to read it, below it on a page.
    cells : sequence of Column
        What stands in words beside each row of the page.
    texts : sequence of str
        What each row shows, for those who do not see it; its means and intervals, if left out.
    """

    labels: Sequence[str]
    mean: FloatArray
    lower: FloatArray
    upper: FloatArray
    colours: IntArray | None = None
    legend: Mapping[int, str] = field(default_factory=dict)
    legend_title: str = ""
    sizes: FloatArray | None = None
    line: float | None = 0.0
    span: tuple[float, float] | None = None
    ticks: Sequence[tuple[float, str]] | None = None
    name: str = ""
    x_label: str = ""
    caption: str = ""
    note: str = ""
    cells: Sequence[Column] = ()
    texts: Sequence[str] = ()

    def svg(self) -> Markup:
        """The figure as a table with a drawing in each row."""
        form = "g" if self.line is None else "+g"
        numbers = base.round_ticks(*self._span(), 4)
        ticks = self.ticks or [(x, f"{x:{form}}" if x else "0") for x in numbers]
        axis = []
        for at, text in ticks:
            room = _LETTER * len(text) / 2  # so that the last one is not cut
            x = min(max(self._x(at), room), _WIDTH - room)
            axis.append(tag("text", text, x=x, y=13, text_anchor="middle"))
        drawn = tag("svg", axis, class_="row", width=_WIDTH, height=_ROW, aria_hidden="true")
        heads = [tag("th", c.head) if c.head.strip() else tag("td") for c in self.cells]
        head = tag("thead", tag("tr", tag("th", self.name), tag("td", drawn), heads))
        table = tag("table", head, map(self._row, range(len(self.labels))), class_="forest")
        about = self.caption or self.x_label or self.name or "figure"
        dot = tag("circle", class_="dot", cx=15, cy=7, r=5)
        legend = [key(dot, name, colour) for colour, name in self.legend.items()]
        return joined(
            tag("ul", legend, class_="legend") if len(legend) > 1 else None,
            tag("div", table, class_="wide", tabindex=0, role="region", aria_label=about),
            tag("p", self.note, class_="note") if self.note else None,
        )

    def _row(self, row: int) -> Markup:
        """A row; the heads of its cells are read where there is no room above them."""
        beside = [
            tag("td", c.cells[row], class_="number", data_label=c.head.strip()) for c in self.cells
        ]
        height = max(_ROW, 9 * len(self.mean) + 6)
        parts, said = [], []
        if self.line is not None:
            x = self._x(self.line)
            parts.append(tag("line", class_="zero", x1=x, x2=x, y1=0, y2=height))
        for p, (mean, lower, upper, colour) in enumerate(self._marks(row)):
            y = height * (p + 1) / (len(self.mean) + 1)
            kind = base.class_of(None if colour == GREY else colour)
            ends = {"x1": self._x(lower), "x2": self._x(upper), "y1": y, "y2": y}
            parts.append(tag("line", class_=f"{kind} mean", **ends))
            parts.append(tag("circle", class_=f"{kind} dot", cx=self._x(mean), cy=y, r=3.5))
            said.append(f"{mean:.3g} [{lower:.3g}, {upper:.3g}]")
        label = self.texts[row] if self.texts else ", ".join(said) or "no value"
        drawn = tag("svg", parts, class_="row", role="img", aria_label=label, width=_WIDTH,
                    height=height)  # fmt: skip
        return tag("tr", tag("th", self.labels[row], scope="row"), tag("td", drawn), beside)

    def _marks(self, row: int) -> Iterator[tuple[float, float, float, int]]:
        """Points of a row that are there, with their ends and colour."""
        for p in range(len(self.mean)):
            mean, lower, upper = (float(x[p, row]) for x in (self.mean, self.lower, self.upper))
            if math.isfinite(mean):
                colour = p if self.colours is None else int(self.colours[p, row])
                yield mean, lower, upper, colour

    def _span(self) -> tuple[float, float]:
        if self.span is not None:
            return self.span
        ends = np.concatenate([self.lower.ravel(), self.upper.ravel()])
        ends = ends[np.isfinite(ends)]
        also = np.inf if self.line is None else self.line
        low, high = ends.min(initial=also), ends.max(initial=-also if self.line is None else also)
        return (float(low), float(high)) if high > low else (0.0, 1.0)

    def _x(self, value: float) -> float:
        low, high = self._span()
        return _EDGE + (_WIDTH - 2 * _EDGE) * (min(max(value, low), high) - low) / (high - low)

    def plot(self, axes: Axes | None = None) -> Axes:
        """The figure with matplotlib."""
        count, size = self.mean.shape
        axes = base.axes_or_new(axes, 6.4, 1.3 + size * max(0.22, 0.13 * count))
        low, high = self.span or (-np.inf, np.inf)
        if self.line is not None:
            axes.axvline(self.line, color="0.6", linewidth=0.8)
        step = min(0.18, 0.6 / count)
        for row in range(size):
            for p, (mean, lower, upper, colour) in enumerate(self._marks(row)):
                drawn = "0.6" if colour == GREY else base.style_of(colour)[0]
                y = size - 1 - row + step * (0.5 * (count - 1) - p)
                axes.hlines(y, max(lower, low), min(upper, high), color=drawn, lw=1.3)
                marker = "<" if mean < low else ">" if mean > high else "o"
                area = 20.0 * (1.0 if self.sizes is None else self.sizes[row])
                x = min(max(mean, low), high)
                axes.scatter(x, y, area, drawn, marker=marker, zorder=3, clip_on=False)
        for colour, label in self.legend.items():
            axes.plot([], [], "o-", color=base.style_of(colour)[0], ms=4.5, label=label)
        axes.set_yticks(range(size), self.labels[::-1], fontsize=8)
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(-0.6, size - 0.4)
        if self.span is not None:
            axes.set_xlim(*self.span)
        if self.ticks is not None:
            axes.set_xticks(*zip(*self.ticks, strict=True))
        axes.set_xlabel(self.x_label, fontsize=8)
        if len(self.legend) > 1:
            base.legend_beside(axes, self.legend_title or None)
        inches = axes.figure.figure.get_figwidth()  # that of the whole figure, not of a part of it
        if (place := axes.get_subplotspec()) is not None:
            inches /= place.get_gridspec().ncols
        inches -= 0.065 * max(map(len, self.labels), default=0)
        caption = wrapped(self.caption, max(30, int(15.0 * inches)))
        axes.set_title("\n".join(caption), fontsize=7, loc="left")
        base.clean(axes)
        return axes

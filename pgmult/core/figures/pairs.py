"""What goes together: a matrix of pairs, and a graph of those that are surely joined."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pgmult.core.figures.base import BLUE, RED, Axes, Figure, axes_or_new
from pgmult.core.markup import Markup, tag
from pgmult.core.typing import FloatArray

_CELL = 14  # pixels of a cell


@dataclass(frozen=True, slots=True, eq=False)
class Matrix(Figure):
    """A symmetric matrix of numbers around 0; the deeper its colour, the farther a cell is from it.

    Attributes
    ----------
    values : array, ``(label, label)``
        nan where there is nothing to show. The diagonal is not drawn.
    unsure : bool array, ``(label, label)``
        Cells that are marked by a dot.
    labels : sequence of str
    keys : sequence of int
        What each row is of: the ``data-t`` of a page whose script points rows out.
    told : mapping from a pair of rows to text, as nested sequences
        What a cell says where one rests on it.
    caption : str
    """

    values: FloatArray
    unsure: NDArray[np.bool_]
    labels: Sequence[str]
    keys: Sequence[int]
    told: Sequence[Sequence[str]]
    caption: str

    def svg(self) -> Markup:
        """The lower half, each row's label at its end."""
        limit = self._limit()
        rows = []
        for i, label in enumerate(self.labels):
            for j in range(i):
                value = float(self.values[i, j])
                if math.isnan(value):
                    continue
                shade = f"{'r' if value > 0.0 else 'b'}{math.ceil(8 * abs(value) / limit)}"
                where = {"x": _CELL * j, "y": _CELL * i, "data_t": f"{self.keys[i]} {self.keys[j]}"}
                rows.append(tag("rect", tag("title", self.told[i][j]), class_=shade, **where))
                if self.unsure[i, j]:
                    rows.append(tag("circle", cx=_CELL * j + 6.5, cy=_CELL * i + 6.5, r=1))
            end = {"x": _CELL * i + 2, "y": _CELL * i + 11}
            rows.append(tag("text", label, data_t=self.keys[i], **end))
        side = _CELL * len(self.labels)
        size = {"viewBox": f"0 0 {side + 200} {side}", "width": side + 200}
        return tag("div", tag("svg", rows, class_="matrix", **size), class_="wide")

    def plot(self, axes: Axes | None = None) -> Axes:
        """The whole matrix with matplotlib."""
        count = len(self.labels)
        cell = min(0.24, 14.0 / count)  # inches
        side = 2.8 + cell * count
        axes = axes_or_new(axes, side + 0.6, side)
        mean = self.values.copy()
        np.fill_diagonal(mean, np.nan)
        limit = self._limit()
        image = axes.imshow(mean, cmap="RdBu_r", vmin=-limit, vmax=limit)
        rows, columns = np.nonzero(self.unsure & ~np.isnan(mean))
        axes.plot(columns, rows, ".", color="0.45", markersize=2.5)
        size = min(7.0, 50.0 * cell)  # points
        axes.set_xticks(range(count), self.labels, rotation=90, fontsize=size)
        axes.set_yticks(range(count), self.labels, fontsize=size)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        bar = axes.figure.colorbar(image, ax=axes, shrink=0.6)
        bar.ax.tick_params(labelsize=7)
        axes.set_title(self.caption, fontsize=8)
        return axes

    def _limit(self) -> float:
        off = ~np.eye(len(self.values), dtype=np.bool_)
        return max(0.05, float(np.nanmax(np.abs(self.values[off]), initial=0.0)))


@dataclass(frozen=True, slots=True, eq=False)
class Graph(Figure):
    """Labels as points, joined by lines: red above 0, blue and dashed below.

    Attributes
    ----------
    places : array, ``(label, 2)``
        Within [0, 1].
    labels : sequence of str
    pairs : sequence of (int, int, float)
        The labels that are joined, and how strongly.
    told : sequence of str
        What a line says where one rests on it.
    sizes : array, ``(label,)``
        Of the points.
    label, caption : str
        What the figure shows, for those who do not see it and for those who do.
    """

    places: FloatArray
    labels: Sequence[str]
    pairs: Sequence[tuple[int, int, float]]
    told: Sequence[str]
    sizes: FloatArray
    label: str
    caption: str

    def svg(self) -> Markup:
        """The figure as SVG."""
        width, height = 1000, min(900, 260 + 12 * len(self.labels))
        places = self.places * [width - 220, height - 80] + [110, 40]
        parts = []
        for (i, j, strength), told in zip(self.pairs, self.told, strict=True):
            (x1, y1), (x2, y2) = places[[i, j]].round().astype(int).tolist()
            kind = "positive" if strength > 0.0 else "negative"
            parts.append(
                tag("line", tag("title", told), class_=kind, data_t=f"{i} {j}", x1=x1, y1=y1,
                    x2=x2, y2=y2, stroke_width=0.5 + 4.0 * abs(strength) / self._strongest())
            )  # fmt: skip
        for k, (x, y) in enumerate(places.round().astype(int).tolist()):
            radius = 4.0 + 6.0 * math.sqrt(self.sizes[k] / self.sizes.max())
            dot = tag("circle", cx=x, cy=y, r=radius)
            name = tag("text", self.labels[k], x=x, y=round(y - radius - 3))
            parts.append(tag("g", dot, name, data_t=k))
        size = {"viewBox": f"0 0 {width} {height}", "width": width}
        drawn = tag("svg", parts, class_="graph", role="img", aria_label=self.label, **size)
        return tag("div", drawn, class_="wide")

    def plot(self, axes: Axes | None = None) -> Axes:
        """The figure with matplotlib."""
        side = 4.0 + 0.5 * len(self.labels) ** 0.5
        axes = axes_or_new(axes, 1.4 * side, side)
        for i, j, strength in self.pairs:
            x, y = self.places[[i, j]].T
            colour, dashes = (RED, "-") if strength > 0.0 else (BLUE, (0, (3, 2)))
            thick = 0.3 + 3.0 * abs(strength) / self._strongest()
            axes.plot(x, y, color=colour, linestyle=dashes, linewidth=thick, alpha=0.4)
        x, y = self.places.T
        axes.scatter(x, y, s=30, color="white", edgecolors="0.25", zorder=3)
        for label, place in zip(self.labels, self.places, strict=True):
            axes.annotate(
                label, place, (0, 6), textcoords="offset points", ha="center", fontsize=7, zorder=4
            )
        axes.margins(0.1)
        axes.set_axis_off()
        axes.set_title(self.caption, fontsize=8)
        return axes

    def _strongest(self) -> float:
        return max((abs(strength) for *_, strength in self.pairs), default=1.0)

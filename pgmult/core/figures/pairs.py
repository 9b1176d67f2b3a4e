"""Matrices of numbers as tiles: of pairs, and of rows by columns."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pgmult.core.figures.base import Axes, Figure, axes_or_new, framed, words
from pgmult.core.markup import Markup, tag
from pgmult.core.typing import BoolArray, FloatArray

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
    titles : mapping from a pair of rows to text, as nested sequences
        What a cell says where one rests on it.
    caption : str
    """

    values: FloatArray
    unsure: BoolArray
    labels: Sequence[str]
    titles: Sequence[Sequence[str]]
    caption: str

    def svg(self) -> Markup:
        """The lower half, each row's label at its end."""
        limit = self._limit()
        rows = []
        for i, label in enumerate(self.labels):
            for j in np.flatnonzero(~np.isnan(self.values[i, :i])).tolist():
                value = float(self.values[i, j])
                colour = f"c{int(value > 0.0)}"  # of the cycle: the first is blue, the second red
                where = {"x": _CELL * j, "y": _CELL * i, "class_": colour}
                title, depth = tag("title", self.titles[i][j]), round(abs(value) / limit, 2)
                rows.append(tag("rect", title, fill_opacity=depth, **where))
                if self.unsure[i, j]:
                    rows.append(tag("circle", cx=_CELL * j + 6.5, cy=_CELL * i + 6.5, r=1))
            rows.append(tag("text", label, x=_CELL * i + 2, y=_CELL * i + 11))
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
        axes.figure.colorbar(image, ax=axes, shrink=0.6).ax.tick_params(labelsize=7)
        axes.set_title(self.caption, fontsize=8)
        return axes

    def _limit(self) -> float:
        off = ~np.eye(len(self.values), dtype=np.bool_)
        return max(0.05, float(np.nanmax(np.abs(self.values[off]), initial=0.0)))


@dataclass(frozen=True, slots=True, eq=False)
class HeatMap(Figure):
    """A matrix of numbers that are not negative; the deeper its colour, the larger a number.

    Attributes
    ----------
    values : array, ``(row, column)``
        A number that is nan is not drawn.
    rows, columns : sequence of str
        Labels.
    label : str
        What the figure shows, for those who do not see it.
    x_label, y_label, caption : str
    """

    values: FloatArray
    rows: Sequence[str]
    columns: Sequence[str]
    label: str
    x_label: str = ""
    y_label: str = ""
    caption: str = ""

    def svg(self) -> Markup:
        """Return the matrix as SVG; a tile shows its number where a pointer rests on it."""
        top = max(1e-300, float(np.nanmax(self.values, initial=0.0)))
        left = 12.0 + 6.0 * max(map(len, self.rows), default=0)
        needed = 8.0 + 6.4 * max(map(len, self.columns), default=0)
        wide = min(max(40.0, needed), max(3.0, (640.0 - left) / max(1, len(self.columns))))
        parts = []
        for i, row in enumerate(self.rows):
            parts.append(words(row, left - 4.0, 18 * i + 13, "end"))
            for j in np.flatnonzero(~np.isnan(self.values[i])).tolist():
                value = float(self.values[i, j])
                box = {"x": round(left + wide * j, 1), "y": 18 * i, "height": 17}
                how = {"width": round(wide - 0.5, 1), "fill_opacity": round(value / top, 3)}
                title = tag("title", f"{row}, {self.columns[j]}: {value:.3f}")
                parts.append(tag("rect", title, class_="block c0", **how, **box))
        floor, every = 18.0 * len(self.rows), max(1, math.ceil(min(48.0, needed) / wide))
        for j in range(0, len(self.columns), every):
            parts.append(words(self.columns[j], round(left + wide * (j + 0.5), 1), floor + 13.0))
        parts.append(words(self.x_label, left + wide * len(self.columns) / 2, floor + 28.0))
        size = round(left + wide * len(self.columns) + 20.0), round(floor + 34.0)
        return framed(parts, self.label, size, self.caption, is_fixed=True)

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the matrix with matplotlib."""
        height, width = self.values.shape
        axes = axes_or_new(axes, 2.0 + min(6.0, 0.4 * width), 1.2 + min(8.0, 0.26 * height))
        image = axes.imshow(self.values, cmap="Blues", vmin=0.0, aspect="auto")
        axes.figure.colorbar(image, ax=axes, shrink=0.7)
        every = max(1, width // 12)
        axes.set_xticks(range(0, width, every), self.columns[::every], fontsize=7)
        axes.set_yticks(range(height), self.rows, fontsize=7)
        axes.set(xlabel=self.x_label, ylabel=self.y_label)
        axes.set_title(self.caption, fontsize=9, loc="left")
        return axes

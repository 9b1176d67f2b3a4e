"""A map of the United States, a square a state: the deeper its colour, the larger its number."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pgmult.core.figures.base import Axes, Figure, axes_or_new, framed
from pgmult.core.markup import Markup, tag

_TILES = """
AK .  .  .  .  .  .  .  .  .  ME
.  .  .  .  .  .  .  .  .  VT NH
WA ID MT ND MN IL WI MI NY RI MA
OR NV WY SD IA IN OH PA NJ CT .
CA UT CO NE MO KY WV VA MD DE .
.  AZ NM KS AR TN NC SC DC .  .
.  .  .  OK LA MS AL GA .  .  .
HI .  .  TX .  .  .  .  FL .  .
"""
US_TILES = {
    state: (row, column)
    for row, line in enumerate(_TILES.split("\n")[1:-1])
    for column, state in enumerate(line.split())
    if state != "."
}
"""Where each of the United States lies, about: row and column of a square."""


@dataclass(frozen=True, slots=True, eq=False)
class Tiles(Figure):
    """One square for each of the United States.

    Attributes
    ----------
    values : mapping from postal code to (mean, lower, upper)
        Under the mean stands the half width of the interval.
    label : str
        What the numbers are, for those who do not see the figure and beside the scale of colours.
    caption : str

    Raises
    ------
    ValueError
        If a state is unknown.
    """

    values: Mapping[str, tuple[float, float, float]]
    label: str
    caption: str = ""

    def __post_init__(self) -> None:
        if unknown := sorted(map(str, set(self.values) - set(US_TILES))):
            raise ValueError(f"values must have postal codes of states, got {', '.join(unknown)}")

    def svg(self) -> Markup:
        """The map as SVG."""
        parts, top = [], max(1e-300, *(mean for mean, _, _ in self.values.values()))
        for state, (row, column) in US_TILES.items():
            x, y, estimate = 34 * column, 34 * row, self.values.get(state)
            square = {"x": x, "y": y, "width": 32, "height": 32}
            if estimate is None:
                parts.append(tag("rect", class_="none", **square))
                parts.append(tag("text", state, x=x + 16, y=y + 20))
                continue
            mean, lower, upper = estimate
            depth = f"fill-opacity:{0.06 + 0.49 * min(1.0, mean / top):.2f}"
            title = tag("title", f"{state}: {mean:.3f} [{lower:.3f}, {upper:.3f}]")
            texts = [
                tag("text", state, x=x + 16, y=y + 9),
                tag("text", _short(mean), x=x + 16, y=y + 19),
                tag("text", f"±{_short((upper - lower) / 2)}", class_="small", x=x + 16, y=y + 28),
            ]
            parts.append(tag("g", title, tag("rect", style=depth, **square), texts))
        size = 34 * 11 - 2, 34 * 8 - 2
        return framed(parts, self.label, size, self.caption, kind="tiles")

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the map with matplotlib."""
        axes = axes_or_new(axes, 5.5, 4.0)
        shades = np.full((8, 11), np.nan)
        for state, (row, column) in US_TILES.items():
            mean, lower, upper = self.values.get(state, (np.nan, np.nan, np.nan))
            shades[row, column] = mean
            half = "" if np.isnan(mean) else f"\n{_short(mean)}\n±{_short((upper - lower) / 2)}"
            axes.text(column, row, f"{state}{half}", ha="center", va="center", fontsize=5)
        axes.imshow(shades, cmap="Blues", vmin=0.0, alpha=0.6)
        axes.set_axis_off()
        axes.set_title(self.caption, fontsize=9, loc="left")
        return axes


def _short(x: float) -> str:
    """Such as .027: without the zero that every probability begins with."""
    text = f"{x:.3f}" if x < 0.1 else f"{x:.2f}"
    return text.removeprefix("0")

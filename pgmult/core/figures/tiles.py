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
    top : float, optional
        The number of the deepest colour; by default the largest.

    Raises
    ------
    ValueError
        If a state is unknown.
    """

    values: Mapping[str, tuple[float, float, float]]
    label: str
    caption: str = ""
    top: float | None = None

    def __post_init__(self) -> None:
        if unknown := sorted(map(str, set(self.values) - set(US_TILES))):
            raise ValueError(
                f"unknown states: {', '.join(unknown)} (the keys are the postal codes of the 50"
                " states and DC)"
            )

    @property
    def _top(self) -> float:
        top = max(mean for mean, _, _ in self.values.values()) if self.top is None else self.top
        return max(top, 1e-300)

    def svg(self) -> Markup:
        """The map as SVG."""
        parts = []
        for state, (row, column) in US_TILES.items():
            x, y, found = 34 * column, 34 * row, self.values.get(state)
            square = {"x": x, "y": y, "width": 32, "height": 32}
            if found is None:
                parts.append(tag("rect", class_="none", **square))
                parts.append(tag("text", state, x=x + 16, y=y + 20))
                continue
            mean, lower, upper = found
            depth = f"fill-opacity:{0.06 + 0.49 * min(1.0, mean / self._top):.2f}"
            parts.append(
                tag(
                    "g",
                    tag("title", f"{state}: {mean:.3f} [{lower:.3f}, {upper:.3f}]"),
                    tag("rect", style=depth, **square),
                    tag("text", state, x=x + 16, y=y + 9),
                    tag("text", _short(mean), x=x + 16, y=y + 19),
                    tag("text", f"±{_short((upper - lower) / 2)}", class_="small", x=x + 16,
                        y=y + 28),
                )
            )  # fmt: skip
        size = f"0 0 {34 * 11 - 2} {34 * 8 - 2}"
        svg = tag("svg", parts, class_="tiles", role="img", aria_label=self.label, viewBox=size)
        return framed(svg, self.caption)

    def plot(self, axes: Axes | None = None, *, colours: str = "viridis") -> Axes:
        """The map with matplotlib, its colours those of a colour map; less known, paler."""
        axes = axes_or_new(axes, 6.6, 4.4)
        height, width = np.max(list(US_TILES.values()), axis=0) + 1
        table, halves = np.full((2, height, width), np.nan)
        for state, (mean, lower, upper) in self.values.items():
            table[US_TILES[state]], halves[US_TILES[state]] = mean, (upper - lower) / 2
        low = min(0.0, float(np.nanmin(table, initial=0.0)))
        image = axes.imshow(table, cmap=colours, vmin=low, vmax=self._top)
        paler = np.clip(np.nan_to_num(halves) / max(self._top - low, 1e-300), 0.0, 0.5)
        image.set_alpha(1.0 - paler)
        for state, (row, column) in US_TILES.items():
            mean, half = table[row, column], halves[row, column]
            known = bool(np.isfinite(mean))
            if not known:
                axes.fill_between(
                    [column - 0.5, column + 0.5], row - 0.5, row + 0.5, color="0.9", linewidth=0.0
                )
            colour = image.cmap(image.norm(mean))[:3] if known else (0.9, 0.9, 0.9)
            red, green, blue = (1.0 - (1.0 - paler[row, column]) * (1.0 - c) for c in colour)
            ink = "black" if 0.3 * red + 0.6 * green + 0.1 * blue > 0.5 else "white"
            text = f"{state}\n{_short(mean)}\n±{_short(half)}" if known else state
            axes.text(column, row, text, ha="center", va="center", fontsize=7, color=ink)
        axes.set_xticks(np.arange(width + 1) - 0.5, minor=True)
        axes.set_yticks(np.arange(height + 1) - 0.5, minor=True)
        axes.grid(which="minor", color="white", linewidth=2.0)
        axes.tick_params(which="both", length=0, labelbottom=False, labelleft=False)
        axes.spines[:].set_visible(False)
        axes.set_title(self.caption, fontsize=9, loc="left")
        colorbar = axes.figure.colorbar(image, ax=axes, shrink=0.6, label=self.label)
        colorbar.outline.set_visible(False)
        return axes


def _short(x: float) -> str:
    """Such as .027: without the zero that every probability begins with."""
    text = f"{x:.3f}" if x < 0.1 else f"{x:.2f}"
    return text.removeprefix("0")

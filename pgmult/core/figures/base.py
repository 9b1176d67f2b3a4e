"""What all figures share: how they are drawn, colours, a frame.

A kind of figure is a frozen dataclass of data that `Figure.svg` draws for pages and notebooks, and
`Figure.plot` with matplotlib. A category keeps its
number, and with it its colour and dashes, in every figure. In SVG colours are named by number in
`STYLE`, for light and dark screens.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pgmult.core.arguments import as_kind
from pgmult.core.lazy import optional
from pgmult.core.markup import Markup, joined, style_sheet, tag

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Canvas
else:
    Axes = Canvas = Any

TickText = Callable[[float], str]
"""What to write at a place of an axis."""
MOST_TICKS = (4, 7)  # of an axis of words, or of numbers
CYCLE = (
    "#2a6f97", "#c8553d", "#4f7a4e", "#8457a8", "#96740a", "#1d2538", "#0b8a83", "#b0407f",
    "#4b0000", "#0087f0", "#5a870f",
)  # fmt: skip
BLUE, RED = CYCLE[:2]
NUM_COLOURS = len(CYCLE)
_DARK = (
    "#6cb4dd", "#f08a70", "#9fcf95", "#c9aede", "#e0b93a", "#f4f1ea", "#5fd0c5", "#ee8fc4",
    "#4b69d2", "#2d780f", "#c32d5a",
)  # fmt: skip
_DASHES = ((), (6, 3), (2, 3), (8, 3, 2, 3))  # of the 12th category on

_light, _dark = (" ".join(f"--c{i}: {c};" for i, c in enumerate(of)) for of in (CYCLE, _DARK))
STYLE = Markup(
    f":root {{ {_light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {_dark} }} }}\n"
    + "".join(f".c{i} {{ --c: var(--c{i}); }}\n" for i in range(NUM_COLOURS))
    + style_sheet(__file__, "figures.css")
)


class Figure(ABC):
    """Data that can be drawn."""

    __slots__ = ()

    @abstractmethod
    def svg(self) -> Markup:
        """The figure with its caption and legend, as an element of a page that has `STYLE`."""

    @abstractmethod
    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the figure with matplotlib, on new axes unless some are given."""

    def _repr_html_(self) -> str:
        return joined(tag("style", STYLE), self.svg())


def panels(figures: Sequence[Figure | Markup]) -> Markup:
    """Several figures, beside each other where the screen is wide."""
    drawn = [figure.svg() if isinstance(figure, Figure) else figure for figure in figures]
    return tag("div", drawn, class_="panels") if len(drawn) > 1 else joined(drawn)


# --------------------------------------------------------------------------- SVG


def framed(
    parts: Sequence[Markup], label: str, size: tuple[float, float], caption: str,
    keys: Sequence[Markup] = (), *, kind: str = "drawing", is_fixed: bool = False,
) -> Markup:  # fmt: skip
    """A drawing as wide as a page has room, or of a fixed width, its legend below."""
    svg = tag(
        "svg", parts, class_=kind, role="img", aria_label=label,
        viewBox=f"0 0 {size[0]:.0f} {size[1]:.0f}", width=round(size[0]) if is_fixed else None,
    )  # fmt: skip
    legend = tag("ul", keys, class_="legend") if keys else None
    return tag("figure", tag("figcaption", caption), svg, legend)


def key(swatch: Markup, name: str, colour: int | None = None) -> Markup:
    """An entry of a legend; without the number of a colour it is grey."""
    drawn = tag("svg", swatch, viewBox="0 0 30 14", aria_hidden="true")
    return tag("li", drawn, name, class_=class_of(colour))


def class_of(colour: int | None) -> str:
    """The class of what is drawn in the colour of that number; None is grey."""
    return "neutral" if colour is None else f"c{colour % NUM_COLOURS}"


def words(text: str, x: float, y: float, kind: str = "middle") -> Markup:
    """A text in a drawing, of which x is the middle or the end."""
    return tag("text", text, class_=kind, x=x, y=y)


def stroke(kind: str, d: str, **more: object) -> Markup:
    """A path in a drawing."""
    return tag("path", class_=kind, d=d, **more)


def lower_axis(
    ticks: Sequence[tuple[float, str]], left: float, right: float, floor: float, label: str,
    room: float = 0.0,
) -> list[Markup]:  # fmt: skip
    """The lower axis of a drawing, with texts at its ticks and its label, below some room."""
    parts = [stroke("axis", f"M{left:.0f} {floor:.1f}H{right:.0f}")]
    for x, text in ticks:
        parts.append(stroke("axis", f"M{x:.1f} {floor:.1f}v4"))
        parts.append(words(text, x, floor + room + 15.0))
    return [*parts, words(label, (left + right) / 2.0, floor + room + 29.0)]


def dashes_of(number: int) -> str | None:
    """``stroke-dasharray`` of a category's line; None of a solid one."""
    return " ".join(map(str, _DASHES[number // NUM_COLOURS % len(_DASHES)])) or None


# --------------------------------------------------------------------------- matplotlib


def new_figure(width: float, height: float) -> Canvas:
    """A figure that no global state knows, with room for its labels."""
    matplotlib = optional("matplotlib.figure", "plots need matplotlib", "plots")
    canvas: Canvas = matplotlib.Figure(figsize=(width, height), layout="constrained")
    return canvas


def axes_or_new(axes: Axes | None, width: float, height: float) -> Axes:
    """The axes given, or those of a new figure.

    Raises
    ------
    TypeError
        If something else than axes is given.
    """
    if axes is None:
        return new_figure(width, height).add_subplot()
    from matplotlib.axes import Axes

    return as_kind(axes, "axes", Axes, "of matplotlib")


def style_of(number: int) -> tuple[str, Any]:
    """Colour and dashes of the category of that number: the same wherever it is drawn."""
    dashes = _DASHES[number // NUM_COLOURS % len(_DASHES)]
    return CYCLE[number % NUM_COLOURS], (0, dashes) if dashes else "-"


def step_ticks(axes: Axes, tick_text: TickText | None, are_whole: bool = True) -> None:
    """Ticks of the lower axis: at whole numbers alone (steps, years), and in words."""
    from matplotlib.ticker import MaxNLocator

    if are_whole:
        most = 8 if tick_text is None else 4
        axes.xaxis.set_major_locator(MaxNLocator(nbins=most, integer=True, steps=[1, 2, 5, 10]))
    if tick_text is not None:
        axes.xaxis.set_major_formatter(lambda x, _: tick_text(x))


def finished(axes: Axes, caption: str, has_legend: bool = True) -> Axes:
    """The axes of something along time with its caption, a legend and a plain frame."""
    axes.margins(x=0.01)
    axes.set_title(caption, fontsize=9, loc="left")
    if has_legend:
        legend_beside(axes)
    clean(axes)
    return axes


def legend_beside(axes: Axes, title: str | None = None) -> None:
    """A legend to the right of the axes, where it hides nothing."""
    axes.legend(
        frameon=False, fontsize=8, title=title, title_fontsize=8, loc="upper left",
        bbox_to_anchor=(1.0, 1.0), borderaxespad=0.0,
    )  # fmt: skip


def clean(axes: Axes) -> None:
    """Only the left and lower frame."""
    axes.spines[["top", "right"]].set_visible(False)


def round_ticks(low: float, high: float, most: int, whole: bool = False) -> list[float]:
    """Round numbers from `low` to `high`, about so many at most."""
    raw = (high - low) / most
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(size * m for m in (1.0, 2.0, 5.0, 10.0) if size * m >= raw)
    step = max(step, 1.0) if whole else step
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(k * step, 12) for k in range(first, last + 1)]

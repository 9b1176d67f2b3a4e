"""What the figures of this package share: colours, a figure, a frame."""

from typing import TYPE_CHECKING, Any

from pgmult.core.arguments import as_kind
from pgmult.core.drawings import LIGHT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
else:
    Axes = Figure = Any

CYCLE = LIGHT
BLUE, RED = CYCLE[:2]
_DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))


def new_figure(width: float, height: float) -> Figure:
    """A figure that no global state knows, with room for its labels."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("plots need matplotlib: pip install 'pgmult[plots]'") from None
    return Figure(figsize=(width, height), layout="constrained")


def style_of(number: int) -> tuple[str, Any]:
    """Colour and dashes of the category of that number: the same wherever it is drawn."""
    return CYCLE[number % len(CYCLE)], _DASHES[number // len(CYCLE) % len(_DASHES)]


def whole_numbers(axes: Axes, most: int = 8) -> None:
    """Ticks of the lower axis at whole numbers alone: steps, years."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(nbins=most, integer=True, steps=[1, 2, 5, 10]))


def mark_gaps(axes: Axes, where: Any, missing: Any, step: float = 1.0) -> None:
    """Shade the places, ``where[missing]``, at which nothing was observed, as "no data"."""
    label: str | None = "no data"
    for x in where[missing]:
        axes.axvspan(x - step / 2, x + step / 2, color="0.5", alpha=0.15, lw=0, label=label)
        label = None


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


def clean(axes: Axes) -> None:
    """Only the left and lower frame."""
    axes.spines[["top", "right"]].set_visible(False)

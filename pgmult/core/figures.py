"""What the figures of this package share: colours, a figure, a frame."""

from typing import TYPE_CHECKING, Any

from pgmult.core.arguments import as_kind

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
else:
    Axes = Figure = Any

BLUE = "#2a6f97"
RED = "#c8553d"
CYCLE = (BLUE, RED, "#588157", "#6d597a", "#b08900", "#4a4e69")


def new_figure(width: float, height: float) -> Figure:
    """A figure that no global state knows, with room for its labels."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("plots need matplotlib: pip install 'pgmult[plots]'") from None
    return Figure(figsize=(width, height), layout="constrained")


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

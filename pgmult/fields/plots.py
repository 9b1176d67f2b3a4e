"""Figures of multinomial Gaussian processes: maps of states, and series with bands."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pgmult.core.figures.base import clean, mark_gaps, new_figure, style_of, whole_numbers
from pgmult.core.figures.tiles import US_TILES
from pgmult.core.typing import ArrayLike, FloatArray
from pgmult.fields.predictions import FieldPredictions

if TYPE_CHECKING:
    from matplotlib.axes import Axes
else:
    Axes = Any

__all__ = ["probability_series", "state_tiles"]


def state_tiles(
    values: Mapping[str, float],
    *,
    uncertainty: Mapping[str, float] | None = None,
    label: str = "",
    limits: tuple[float, float] | None = None,
    colours: str = "viridis",
    number_format: str = ".2f",
    axes: Axes | None = None,
) -> Axes:
    """One square for each of the United States, about where it lies, coloured by a number.

    Parameters
    ----------
    values : mapping
        From postal codes, such as "NY", to numbers: probabilities of a category, say, or of its
        being among the ten most frequent. States left out, or with nan, are grey.
    uncertainty : mapping, optional
        From the same codes to how far a number may be off, half of its interval, say: it stands
        below the number, and the less is known, the paler the square.
    label : str
        What the numbers are.
    limits : pair of float, optional
        Of the colours; by default those of the values.
    colours : str
        A colour map of matplotlib.
    number_format : str
        Of the number in a square; an empty string leaves numbers out.
    axes : matplotlib Axes, optional

    Raises
    ------
    ValueError
        If a state is unknown, or no value is a number.
    """
    if unknown := sorted(set(values) - set(US_TILES)):
        raise ValueError(
            f"unknown states: {', '.join(map(str, unknown))} (the keys are the postal codes of the"
            " 50 states and DC)"
        )
    numbers = np.array(list(values.values()), dtype=np.float64)
    if not np.isfinite(numbers).any():
        raise ValueError("values must have a number at least")
    low, high = (np.nanmin(numbers), np.nanmax(numbers)) if limits is None else limits
    if axes is None:
        axes = new_figure(6.6, 4.4).add_subplot()
    height, width = np.max(list(US_TILES.values()), axis=0) + 1
    table = np.full((height, width), np.nan)
    for state, number in zip(values, numbers, strict=True):
        table[US_TILES[state]] = number
    spread = np.full((height, width), np.nan)
    for state, number in ({} if uncertainty is None else uncertainty).items():
        if state not in US_TILES:
            raise ValueError(f"unknown states: {state} in uncertainty")
        spread[US_TILES[state]] = number
    image = axes.imshow(table, cmap=colours, vmin=low, vmax=high)
    if uncertainty is not None:
        paler = np.clip(spread / max(high - low, 1e-300), 0.0, 0.5)
        image.set_alpha(np.where(np.isfinite(paler), 1.0 - paler, 1.0))
    for state, (row, column) in US_TILES.items():
        number = table[row, column]
        known = bool(np.isfinite(number))
        if not known:
            axes.fill_between(
                [column - 0.5, column + 0.5], row - 0.5, row + 0.5, color="0.9", linewidth=0.0
            )
        red, green, blue, _ = image.cmap(image.norm(number)) if known else (0.9, 0.9, 0.9, 1.0)
        if known and np.isfinite(spread[row, column]):
            alpha = 1.0 - float(paler[row, column])
            red, green, blue = (1.0 - alpha * (1.0 - c) for c in (red, green, blue))
        ink = "black" if 0.3 * red + 0.6 * green + 0.1 * blue > 0.5 else "white"
        text = f"{state}\n{number:{number_format}}" if known and number_format else state
        if known and number_format and np.isfinite(spread[row, column]):
            text += f"\n±{spread[row, column]:{number_format}}"
        axes.text(column, row, text, ha="center", va="center", fontsize=7, color=ink)
    axes.set_xticks(np.arange(width + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(height + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=2.0)
    axes.tick_params(which="both", length=0, labelbottom=False, labelleft=False)
    axes.spines[:].set_visible(False)
    colorbar = axes.figure.colorbar(image, ax=axes, shrink=0.6, label=label)
    colorbar.outline.set_visible(False)
    return axes


def probability_series(
    times: ArrayLike,
    predictions: FieldPredictions,
    categories: Sequence[str] | Sequence[int],
    *,
    observed: tuple[ArrayLike, ArrayLike] | None = None,
    probability: float = 0.9,
    axes: Axes | None = None,
) -> Axes:
    """Probabilities of some categories over time: means, bands of intervals, observed shares.

    Parameters
    ----------
    times : array, ``(num_new,)``
        Of the rows of `predictions`: numbers, or dates.
    predictions : FieldPredictions
    categories : sequence of str or int
        Labels, where the predictions have them, or numbers.
    observed : pair of arrays, ``(num_rows,)`` and ``(num_rows, num_categories)``, optional
        Times and counts, whose shares are drawn as points; the times of empty rows are shaded.
    probability : float
        Of the central intervals.
    axes : matplotlib Axes, optional

    Raises
    ------
    ValueError
        If a category is unknown, or there is not one time for each row.
    """
    at = _numbers(times)
    num_new, num_categories = predictions.pi.shape[1:]
    if at.shape != (num_new,):
        raise ValueError(f"times must have shape ({num_new},), got {at.shape}")
    places = [
        _place_of(category, predictions.categories, num_categories) for category in categories
    ]
    if axes is None:
        axes = new_figure(6.4, 3.8).add_subplot()
    order = np.argsort(at, kind="stable")
    mean, (lower, upper) = predictions.mean(), predictions.interval(probability)
    for category, k in zip(categories, places, strict=True):
        colour, dashes = style_of(k)
        axes.fill_between(
            at[order], lower[order, k], upper[order, k], color=colour, alpha=0.2, linewidth=0.0
        )
        axes.plot(at[order], mean[order, k], linestyle=dashes, color=colour, label=str(category))
        if observed is not None:
            when, counts = _numbers(observed[0]), np.asarray(observed[1])
            totals = counts.sum(axis=1)
            seen = totals > 0
            axes.plot(
                when[seen],
                counts[seen, k] / totals[seen],
                ".",
                color=colour,
                markersize=4,
                alpha=0.7,
            )
    if observed is not None:
        when, counts = _numbers(observed[0]), np.asarray(observed[1])
        gaps = np.sort(np.unique(when[counts.sum(axis=1) == 0]))
        apart = np.diff(np.unique(np.concatenate([at, when])))
        mark_gaps(axes, gaps, slice(None), float(np.median(apart)) if len(apart) else 1.0)
    if np.asarray(times).dtype.kind == "M":
        axes.xaxis_date()
    elif (at == np.round(at)).all():
        whole_numbers(axes)
    axes.set_ylim(bottom=0.0)
    axes.set_ylabel(f"probability, {round(100 * probability)} % band")
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    clean(axes)
    return axes


def _numbers(times: ArrayLike) -> FloatArray:
    """Times as the axis counts them: dates in days."""
    when = np.asarray(times)
    if when.dtype.kind != "M":
        return when.astype(np.float64)
    from matplotlib.dates import date2num

    numbers: Any = date2num  # without types
    return np.asarray(numbers(when), dtype=np.float64)


def _place_of(category: str | int, labels: Any, size: int) -> int:
    if isinstance(category, str):
        known = [] if labels is None else list(labels)
        if category not in known:
            raise ValueError(f"unknown category {category!r}")
        return known.index(category)
    if not 0 <= category < size:
        raise ValueError(f"categories are numbered from 0 to {size - 1}, got {category}")
    return int(category)

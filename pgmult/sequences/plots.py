"""Figures of sequences: probabilities with bands, forecast fans, latent axes and their words."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pgmult.core.figures.base import (
    BLUE,
    CYCLE,
    RED,
    clean,
    mark_gaps,
    new_figure,
    style_of,
    whole_numbers,
)
from pgmult.core.tables import date_text
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_positive_int
from pgmult.sequences.data.sequences import Sequences
from pgmult.sequences.forecasts import Forecast, StepProbs
from pgmult.sequences.summaries import LatentAxes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
else:
    Axes = Figure = Any

__all__ = ["axis_words", "forecast_fan", "latent_trajectories", "symbol_probs"]


def symbol_probs(
    probs: StepProbs,
    data: Sequences,
    *,
    sequence: int = 0,
    symbols: Sequence[str | int] | int = 4,
    axes: Axes | None = None,
) -> Axes:
    """Probabilities of some symbols along a sequence, with the outermost quantiles as a band.

    Symbols keep their colours in every figure. Ticks below the axis mark the steps at which each
    was observed, or, where steps have several observations, points their shares; missing steps
    are shaded.

    Parameters
    ----------
    probs : StepProbs
        Of `data`, from `pgmult.sequences.smooth` or `pgmult.sequences.filter_sequences`.
    data : Sequences
        Steps whose times are known have them below the axis.
    sequence : int
        Which of the sequences.
    symbols : sequence of str or int, or int
        Which symbols, by name or number; or how many, those whose probabilities move most.
    axes : matplotlib Axes, optional
    """
    steps = _steps(data, sequence, probs.mean)
    mean = probs.mean[steps]
    chosen = _chosen(symbols, mean, data)
    axes = new_figure(7.0, 2.8).add_subplot() if axes is None else axes
    where = np.arange(len(mean))
    counts, totals = data.to_csr()[steps][:, chosen].toarray(), data.totals[steps]
    for number, k in enumerate(chosen):
        color, dashes = style_of(int(k))
        band = probs.quantiles[:, steps, k]
        axes.fill_between(where, band.min(axis=0), band.max(axis=0), color=color, alpha=0.2, lw=0)
        axes.plot(
            where, mean[:, k], linestyle=dashes, color=color, linewidth=1.2, label=_name(data, k)
        )
        if totals.max() > 1:
            full = totals > 0
            shares = counts[full, number] / totals[full]
            axes.plot(where[full], shares, ".", color=color, markersize=4, alpha=0.7)
            continue
        seen = np.flatnonzero(counts[:, number])
        level = np.full(len(seen), -0.025 * (number + 1))
        axes.plot(
            seen, level, "|", color=color, markersize=4, transform=axes.get_xaxis_transform(),
            clip_on=False,
        )  # fmt: skip
    mark_gaps(axes, where, totals == 0)
    axes.set_ylim(bottom=0.0)
    if totals.max() <= 1:
        axes.tick_params(axis="x", pad=3 + 3 * len(chosen))
    _label(axes, "step", "probability")
    _tell_times(axes, data, sequence, 0)
    axes.margins(x=0.01)
    return axes


def forecast_fan(
    forecast: Forecast,
    data: Sequences,
    *,
    sequence: int = 0,
    symbols: Sequence[str | int] | int = 3,
    history: StepProbs | None = None,
    last: int = 50,
    axes: Axes | None = None,
) -> Axes:
    """Probabilities of some symbols after a sequence's end, in fans of nested quantiles.

    Parameters
    ----------
    forecast : Forecast
        Of `data`, from `pgmult.sequences.forecast`; pairs of its levels, outermost first, are the
        fans.
    data : Sequences
    sequence, symbols, axes
        As in `symbol_probs`.
    history : StepProbs, optional
        Of `data`: what came before, with a band.
    last : int
        How many steps of the history.
    """
    steps = _steps(data, sequence, None if history is None else history.mean)
    mean = forecast.mean[sequence]
    before = np.zeros((0, data.num_symbols)) if history is None else history.mean[steps]
    before = before[-as_positive_int(last, "last") :]
    chosen = _chosen(symbols, np.concatenate([before, mean]), data)
    axes = new_figure(7.0, 2.8).add_subplot() if axes is None else axes
    ahead, past = np.arange(1, len(mean) + 1), np.arange(-len(before) + 1, 1)
    levels = np.argsort(forecast.levels)
    for k in chosen:
        color, dashes = style_of(int(k))
        for low, high in zip(levels, levels[::-1], strict=True):
            if forecast.levels[low] < forecast.levels[high]:
                band = forecast.quantiles[[low, high], sequence, :, k]
                axes.fill_between(ahead, *band, color=color, alpha=0.18, linewidth=0)
        if history is not None:
            band = history.quantiles[:, steps, k][:, -len(before) :]
            axes.fill_between(
                past, band.min(axis=0), band.max(axis=0), color=color, alpha=0.12, linewidth=0
            )
        path = np.concatenate([before[:, k], mean[:, k]])
        where = np.concatenate([past, ahead])
        axes.plot(where, path, linestyle=dashes, color=color, label=_name(data, k))
    axes.axvline(0.5, color="0.4", linewidth=0.8, linestyle=":")
    axes.set_ylim(bottom=0.0)
    _label(axes, "steps after the last one", "probability")
    _tell_times(axes, data, sequence, int(data.lengths[sequence]) - 1)
    axes.margins(x=0.01)
    return axes


def latent_trajectories(
    found: LatentAxes, data: Sequences, *, sequence: int = 0, axes: Axes | None = None
) -> Axes:
    """Where a sequence stands on each latent axis, with intervals over draws.

    Parameters
    ----------
    found : LatentAxes
        Of `data`, from `pgmult.sequences.summaries.latent_axes`.
    data : Sequences
    sequence : int
    axes : matplotlib Axes, optional
    """
    steps = _steps(data, sequence, found.scores)
    axes = new_figure(7.0, 2.8).add_subplot() if axes is None else axes
    where = np.arange(steps.stop - steps.start)
    for a, share in enumerate(found.shares):
        color = CYCLE[a % len(CYCLE)]
        axes.fill_between(
            where, found.lower[steps, a], found.upper[steps, a], color=color, alpha=0.2, linewidth=0
        )
        name = f"axis {a} ({100.0 * share:.0f} % of variance)"
        axes.plot(where, found.scores[steps, a], color=color, linewidth=1.2, label=name)
    mark_gaps(axes, where, data.totals[steps] == 0)
    axes.axhline(0.0, color="0.6", linewidth=0.6, zorder=0)
    _label(axes, "step", "score")
    axes.margins(x=0.01)
    return axes


def axis_words(found: LatentAxes, data: Sequences, *, num_words: int = 8) -> Figure:
    """A panel a latent axis: by how much one unit of score multiplies the odds of symbols.

    The symbols shown at either end are those that count most on it, by effect and frequency.

    Parameters
    ----------
    found : LatentAxes
        Of `data`, from `pgmult.sequences.summaries.latent_axes`.
    data : Sequences
    num_words : int
        At most so many at either end.
    """
    num_words = as_positive_int(num_words, "num_words")
    panels = []
    for effects in found.effects:
        pull = np.sqrt(found.weights) * effects
        order = np.argsort(-pull, kind="stable")
        high = [k for k in order[:num_words] if pull[k] > 0.0]
        low = [k for k in order[::-1][:num_words] if pull[k] < 0.0]
        panels.append(np.array([*high, *low[::-1]]))
    height = 0.7 + 0.16 * max(map(len, panels))
    figure = new_figure(2.9 * len(panels), height)
    for a, (axes, shown) in enumerate(
        zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True)
    ):
        factors = np.exp(found.effects[a, shown])
        colors = [RED if factor > 1.0 else BLUE for factor in factors]
        axes.barh(range(len(shown)), factors - 1.0, left=1.0, color=colors, height=0.72)
        axes.axvline(1.0, color="0.3", linewidth=0.8)
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(lambda x, _: f"×{x:g}")
        axes.minorticks_off()
        axes.set_yticks(range(len(shown)), [_name(data, k) for k in shown], fontsize=7)
        axes.tick_params(axis="y", length=0)
        axes.tick_params(axis="x", labelsize=7)
        axes.invert_yaxis()
        axes.set_title(f"axis {a}", fontsize=8)
        clean(axes)
    return figure


def _steps(data: Sequences, sequence: int, values: FloatArray | None) -> slice:
    """The steps of a sequence, of values that must be of all steps of the data."""
    if values is not None and len(values) != data.num_steps:
        raise ValueError(f"the data have {data.num_steps} steps, the values are of {len(values)}")
    if not 0 <= sequence < data.num_sequences:
        raise ValueError(
            f"sequence must be from 0 to {data.num_sequences - 1}, the last one, got {sequence}"
        )
    return slice(int(data.offsets[sequence]), int(data.offsets[sequence + 1]))


def _chosen(symbols: Sequence[str | int] | int, mean: FloatArray, data: Sequences) -> IntArray:
    """Numbers of symbols asked for by name, number or how many."""
    if isinstance(symbols, int | np.integer):
        count = as_positive_int(symbols, "symbols")
        return np.sort(np.argsort(-mean.var(axis=0), kind="stable")[:count])
    names = [] if data.alphabet is None else data.alphabet.tolist()
    numbers = []
    for symbol in symbols:
        number = names.index(symbol) if symbol in names else symbol
        if isinstance(number, str) or not 0 <= number < data.num_symbols:
            raise ValueError(f"symbols must be of the data, got {symbol!r}")
        numbers.append(int(number))
    return np.array(numbers, dtype=np.int64)


def _name(data: Sequences, k: int) -> str:
    return str(k) if data.alphabet is None else str(data.alphabet[k])


def _tell_times(axes: Axes, data: Sequences, sequence: int, step: int) -> None:
    """Write times below an axis that counts steps from `step` of a sequence, where it has times."""
    if data.starts is None:
        return

    def told(x: float, _: Any) -> str:
        times = data.times([sequence], [step + round(x)])
        assert times is not None
        return date_text(times[0]) if times.dtype.kind == "M" else str(times[0])

    whole_numbers(axes, most=5)  # dates are long
    axes.xaxis.set_major_formatter(told)
    axes.set_xlabel("time")


def _label(axes: Axes, x: str, y: str) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    whole_numbers(axes)
    axes.legend(
        frameon=False, fontsize=8, ncols=5, loc="lower left", bbox_to_anchor=(0.0, 1.0),
        borderaxespad=0.2,
    )  # fmt: skip
    clean(axes)

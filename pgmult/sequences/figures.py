"""Figures of sequences: probabilities of symbols along one of them, and what lies ahead of it."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

from pgmult.core.figures.base import NUM_COLOURS
from pgmult.core.figures.lines import Line, Lines
from pgmult.core.figures.shares import MISSING, OTHER, Raster, Stack
from pgmult.core.tables import date_text
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_positive_int
from pgmult.sequences.data.sequences import Sequences


class _Probabilities(Protocol):
    """Means and quantiles of probabilities, of all steps or of those ahead."""

    @property
    def mean(self) -> FloatArray: ...
    @property
    def quantiles(self) -> FloatArray: ...
    @property
    def levels(self) -> FloatArray: ...
    @property
    def sequences(self) -> Sequences: ...


def labels_of(data: Sequences) -> list[str]:
    """What symbols are called; white space is quoted."""
    if data.alphabet is None:
        return [str(k) for k in range(data.num_symbols)]
    return [repr(a) if a.strip() != a else a for a in data.alphabet.tolist()]


def name_of(data: Sequences, sequence: int) -> str:
    """What a sequence is called."""
    return f"sequence {sequence}" if data.names is None else str(data.names[sequence])


def when(data: Sequences, sequence: int, step: float) -> str:
    """The time of a step of a sequence, or its number."""
    times = data.times([sequence], [round(step)])
    if times is None:
        return f"{step:.0f}"
    return date_text(times[0]) if isinstance(times[0], np.datetime64) else str(times[0])


def steps_of(data: Sequences, sequence: int) -> slice:
    """The steps of a sequence.

    Raises
    ------
    ValueError
        If there is no such sequence.
    """
    if not 0 <= sequence < data.num_sequences:
        raise ValueError(
            f"sequence must be from 0 to {data.num_sequences - 1}, the last one, got {sequence}"
        )
    return slice(int(data.offsets[sequence]), int(data.offsets[sequence + 1]))


def _chosen(symbols: Sequence[str | int] | int, mean: FloatArray, data: Sequences) -> IntArray:
    """Numbers of symbols asked for by name, number or how many: those that move most.

    Raises
    ------
    ValueError
        If a symbol is none of the data's.
    """
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


def gaps_of(totals: IntArray, first: int = 0) -> list[tuple[float, float]]:
    """Stretches of the axis, which counts steps from `first`, at which steps are missing."""
    return [(first + t - 0.5, first + t + 0.5) for t in np.flatnonzero(totals == 0)]


def axis_of(data: Sequences, sequence: int) -> dict[str, Any]:
    """Of `Lines`: an axis that counts the steps of a sequence, with times where it has them."""
    if data.starts is None:
        return {"x_label": "step"}
    return {"x_label": "time", "tell": partial(when, data, sequence)}


def main_symbols(data: Sequences, most: int = NUM_COLOURS) -> IntArray:
    """The most frequent symbols, each of which has a colour of its own, in their own order."""
    weight = np.bincount(data.symbols, data.counts, data.num_symbols)
    return np.sort(np.argsort(-weight, kind="stable")[:most])


def seen_symbols(data: Sequences, main: IntArray) -> IntArray:
    """Of every step the place of its most frequent symbol among the main ones; `OTHER`, `MISSING`
    where it is none of them, or nothing was seen.
    """
    places = np.full(data.num_symbols, OTHER)
    places[main] = np.arange(len(main))
    step = np.repeat(np.arange(data.num_steps), np.diff(data.indptr))
    order = np.lexsort((-data.symbols, data.counts, step))
    found = np.full(data.num_steps, MISSING)
    found[step[order]] = places[data.symbols[order]]
    return found


def raster(
    data: Sequences, *, last: int = 300, rows: IntArray | None = None,
    names: Sequence[str] | None = None,
) -> Raster:  # fmt: skip
    """What was seen, one row per sequence.

    Parameters
    ----------
    data : Sequences
    last : int
        How many of the last steps of each sequence.
    rows : int array, optional
        Sequences, in the order in which they are shown; by default all.
    names : sequence of str, optional
        What to call these.
    """
    main, labels = main_symbols(data), labels_of(data)
    seen = seen_symbols(data, main)
    shown = list(range(data.num_sequences)) if rows is None else rows.tolist()
    starts = [max(0, int(data.lengths[s]) - last) for s in shown]
    strips = [
        seen[data.offsets[s] + first : data.offsets[s + 1]]
        for s, first in zip(shown, starts, strict=True)
    ]
    axis = axis_of(data, shown[0]) if len(shown) == 1 else {"x_label": "step of the sequence"}
    return Raster(
        strips, [name_of(data, s) for s in shown] if names is None else names,
        [labels[k] for k in main], label="the symbols that were seen, a row a sequence",
        starts=starts, **axis,
    )  # fmt: skip


def symbol_stack(
    past: _Probabilities, ahead: _Probabilities | None = None, *, sequence: int = 0, last: int = 100
) -> Stack:
    """Probabilities of the main symbols along a sequence and ahead of it, stacked to one.

    Parameters
    ----------
    past, ahead : StepProbs and Forecast
        Of the same sequences.
    sequence, last : int
        Which one, and how many steps of its past.
    """
    data, steps = past.sequences, steps_of(past.sequences, sequence)
    first = max(0, steps.stop - steps.start - last)
    shown = slice(steps.start + first, steps.stop)
    main, names = main_symbols(data), labels_of(data)
    shares, seen = past.mean[shown][:, main], seen_symbols(data, main)[shown]
    if ahead is not None:
        coming = ahead.mean[sequence][:, main]
        shares = np.concatenate([shares, coming])
    name = name_of(data, sequence)
    divider = None if ahead is None else float(steps.stop - steps.start)
    return Stack(
        shares, [names[k] for k in main], label=f"probabilities of symbols along {name}",
        caption=name, start=first, seen=seen, divider=divider, **axis_of(data, sequence),
    )  # fmt: skip


def symbol_lines(
    past: _Probabilities | None,
    ahead: _Probabilities | None = None,
    *,
    sequence: int = 0,
    symbols: Sequence[str | int] | int = 4,
    last: int | None = None,
) -> Lines:
    """Probabilities of some symbols along a sequence and ahead of it, quantiles as nested bands.

    Ticks below the axis mark the steps at which a symbol was observed, or, where steps have several
    observations, points its shares; missing steps are shaded.

    Parameters
    ----------
    past, ahead : StepProbs and Forecast, or either
        Of the same sequences.
    sequence : int
    symbols : sequence of str or int, or int
        Which symbols, by name or number; or how many, those whose probabilities move most.
    last : int, optional
        How many steps of the past to show.
    """
    one = ahead if past is None else past
    assert one is not None
    data, steps = one.sequences, steps_of(one.sequences, sequence)
    first = steps.stop - steps.start
    if past is not None:
        first = 0 if last is None else max(0, first - last)
    shown = slice(steps.start + first, steps.stop)
    parts: list[tuple[_Probabilities, FloatArray, FloatArray]] = []
    if past is not None:
        parts.append((past, past.mean[shown], past.quantiles[:, shown]))
    if ahead is not None:
        parts.append((ahead, ahead.mean[sequence], ahead.quantiles[:, sequence]))
    mean = np.concatenate([m for _, m, _ in parts])
    x = first + np.arange(len(mean), dtype=np.float64)
    counts, totals = data.to_csr()[shown].toarray(), data.totals[shown]
    full = np.flatnonzero(totals > 0)
    single = totals.max(initial=0) <= 1
    most = max(len(p.levels) for p, _, _ in parts) // 2
    nested = zip(*(_nested(p.levels, m, q, most) for p, m, q in parts), strict=True)
    bands = [[np.concatenate(ends) for ends in zip(*pair, strict=True)] for pair in nested]
    lines = []
    for k in _chosen(symbols, mean, data).tolist():
        lines.append(
            Line(
                labels_of(data)[k], k, x, mean[:, k],
                [(low[:, k], high[:, k]) for low, high in bands],
                points=None if single else (x[full], counts[full, k] / totals[full]),
                rug=x[np.flatnonzero(counts[:, k])] if single else None,
            )
        )  # fmt: skip
    name = name_of(data, sequence)
    return Lines(
        lines,
        label=f"probabilities along {name}" + (" and ahead of it" if ahead is not None else ""),
        caption=name,
        gaps=gaps_of(totals, first),
        divider=None if ahead is None else float(steps.stop - steps.start) - 0.5,
        **axis_of(data, sequence),
    )


def _nested(
    levels: FloatArray, mean: FloatArray, quantiles: FloatArray, most: int
) -> list[tuple[FloatArray, FloatArray]]:
    """So many pairs of quantiles, the outermost first; those that are wanting have no width."""
    order = np.argsort(levels)
    pairs = [(quantiles[i], quantiles[j]) for i, j in zip(order, order[::-1], strict=True)]
    found = pairs[: len(order) // 2]
    return found + [(mean, mean)] * (most - len(found))

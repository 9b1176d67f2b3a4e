"""What symbols, sequences and steps are called in tables and figures, and which were observed."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from pgmult.core.figures.base import NUM_COLOURS
from pgmult.core.figures.shares import MISSING, OTHER, Raster
from pgmult.core.tabled import Column
from pgmult.core.tables import date_text
from pgmult.core.typing import BoolArray, IntArray
from pgmult.sequences.data.sequences import Sequences

_LONG = 1000  # steps
_LAST = 300  # steps of each sequence that are drawn


def labels_of(data: Sequences) -> list[str]:
    """What symbols are called; white space is quoted."""
    if data.alphabet is None:
        return [str(k) for k in range(data.num_symbols)]
    return [repr(a) if a.strip() != a else a for a in data.alphabet.tolist()]


def name_of(data: Sequences, sequence: int) -> str:
    """What a sequence is called."""
    if data.names is None:
        return f"sequence {sequence + 1}"
    return f"{data.keys[0]} {data.names[sequence]}" if data.keys[0] else str(data.names[sequence])


def is_after_last(data: Sequences) -> BoolArray:
    """Whether each step comes after the last observation of its sequence, ``(num_steps,)``."""
    observed = np.where(data.observed, np.arange(data.num_steps), -1)
    last = np.maximum.reduceat(observed, data.offsets[:-1])
    return np.asarray(np.arange(data.num_steps) > np.repeat(last, data.lengths))


def in_steps(number: float) -> str:
    """A number of steps, such as 12.3; nothing is said of how long a visit that hardly ends is."""
    return f"{number:.3g}" if number < _LONG else f"over {_LONG:,}"


def steps_in_words(middle: float, lower: float, upper: float) -> str:
    """A number of steps with the ends of an interval."""
    return f"{in_steps(middle)} [{in_steps(lower)}, {in_steps(upper)}]"


def label_of(data: Sequences, sequence: int) -> str:
    """What a sequence is called in a column that says what it is: see `key_of`."""
    return name_of(data, sequence) if data.names is None else str(data.names[sequence])


def key_of(data: Sequences) -> str:
    """What a column of sequences is called: as in the table that they come from."""
    return data.keys[0] or "sequence"


def when(data: Sequences, sequence: int, step: float) -> str:
    """The time of a step of a sequence, or its number, from 1."""
    times = data.times([sequence], [round(step)])
    if times is None:
        return step_number(step)
    return date_text(times[0]) if isinstance(times[0], np.datetime64) else str(times[0])


def step_number(step: float) -> str:
    """What the step at a place from 0 is called."""
    return f"{step + 1.0:.0f}"


def place_columns(data: Sequences, sequence: IntArray, step: IntArray) -> list[Column]:
    """Columns of a table of steps: ``sequence``, ``step``, ``time`` if there is one.

    Steps count from 1, as do sequences without names.
    """
    names = sequence + 1 if data.names is None else data.names[sequence]
    columns = [Column("sequence", names, key_of(data)), Column("step", step + 1, "step")]
    if (times := data.times(sequence, step)) is not None:
        columns.append(Column("time", times, "time", date_text if times.dtype.kind == "M" else str))
    return columns


def axis_of(data: Sequences, sequence: int) -> dict[str, Any]:
    """Options of `Lines`: an axis of steps of a sequence, with times where it has them."""
    label = "step" if data.starts is None else "time"
    return {"x_label": label, "tick_text": partial(when, data, sequence)}


def main_symbols(data: Sequences) -> IntArray:
    """The most frequent symbols, each of which has its colour, in the order of the data."""
    return np.sort(np.argsort(-data.symbol_totals, kind="stable")[:NUM_COLOURS])


def seen_symbols(data: Sequences, main: IntArray) -> IntArray:
    """The place of every step's most frequent symbol among the main ones; `OTHER`, `MISSING`
    where it is none of them, or nothing was observed.
    """
    places = np.full(data.num_symbols, OTHER)
    places[main] = np.arange(len(main))
    order = np.lexsort((-data.symbols, data.counts, data.step_of_entry))
    symbols = np.full(data.num_steps, MISSING)
    symbols[data.step_of_entry[order]] = places[data.symbols[order]]
    return symbols


def raster(
    data: Sequences, *, rows: IntArray | None = None, names: Sequence[str] | None = None
) -> Raster:
    """The observed symbols at the last 300 steps at most, one row per sequence.

    Parameters
    ----------
    data : Sequences
    rows : int array, optional
        Sequences, in the order in which they are shown; by default all.
    names : sequence of str, optional
        What to call these.
    """
    main, labels = main_symbols(data), labels_of(data)
    symbols = seen_symbols(data, main)
    shown = list(range(data.num_sequences)) if rows is None else rows.tolist()
    starts = [max(0, int(data.lengths[s]) - _LAST) for s in shown]
    strips = [symbols[data.offsets[s] : data.offsets[s + 1]][-_LAST:] for s in shown]
    axis: dict[str, Any] = {"x_label": "step of the sequence", "tick_text": step_number}
    if len(shown) == 1 or (data.starts is not None and len(np.unique(data.starts)) == 1):
        axis = axis_of(data, shown[0])
    return Raster(
        strips, [name_of(data, s) for s in shown] if names is None else names,
        [labels[k] for k in main], label="the observed symbols, a row a sequence",
        starts=starts, **axis,
    )  # fmt: skip

"""What a report has of panels, many sequences beside each other: the population, then who differs.

>>> from pgmult.sequences import as_sequences
>>> data = as_sequences(["ABAB", "BABA", "AABB"] * 4)
>>> pairs_in_data(data).rows[0], shares_by_step(data).rows[0]
(('A', '20', '0.20', '0.80'), ('1', '12', '0.67', '0.33'))
"""

import numpy as np

from pgmult.core.reports import Section
from pgmult.core.tabled import number
from pgmult.core.typing import FloatArray, IntArray
from pgmult.sequences.answers import NextChange, StepProbs
from pgmult.sequences.data.sequences import Sequences
from pgmult.sequences.figures import key_of, label_of, labels_of, seen_symbols

_PANEL = 10  # sequences of a panel
_MOST_SYMBOLS, _STEPS_SHOWN = 12, 12
_EACH = 5  # sequences that stand out for one reason


def is_panel(data: Sequences) -> bool:
    """Whether a report begins with the population."""
    return data.num_sequences >= _PANEL


def _main_symbols(data: Sequences) -> tuple[IntArray, list[str], str]:
    """The main symbols, the most frequent first, their names, and a remark if there are others."""
    main = np.argsort(-data.symbol_totals, kind="stable")[:_MOST_SYMBOLS]
    among = "" if len(main) == data.num_symbols else f", among the {len(main)} most frequent"
    return main, [labels_of(data)[k] for k in main], among


def pair_counts(data: Sequences, main: IntArray) -> IntArray:
    """How often one main symbol came a step after another, ``(num_main, num_main)``."""
    symbols, counts = seen_symbols(data, main), np.zeros((len(main),) * 2, dtype=np.int64)
    before, after = symbols[:-1], symbols[1:]
    both = data.follows[1:] & (before >= 0) & (after >= 0)
    np.add.at(counts, (before[both], after[both]), 1)
    return counts


def _texts(counts: IntArray | FloatArray) -> tuple[str, ...]:
    """How many, and the share of each."""
    return f"{counts.sum():,}", *(f"{x:.2f}" for x in counts / counts.sum())


def pairs_in_data(data: Sequences) -> Section:
    """What follows what in all sequences, where both steps have an observation."""
    main, names, among = _main_symbols(data)
    counts = pair_counts(data, main)
    return Section(
        "What follows what",
        f"How often each symbol (columns) came a step after each (rows){among}.",
        head=("after", "times", *names), shown=_MOST_SYMBOLS,
        rows=[(n, *_texts(row)) for n, row in zip(names, counts, strict=True) if row.any()],
    )  # fmt: skip


def shares_by_step(data: Sequences) -> Section:
    """Shares of the symbols at steps of the sequences."""
    main, names, among = _main_symbols(data)
    symbols, step = seen_symbols(data, main), data.place_of_step
    weights = np.ones(data.num_steps) if data.step_weights is None else data.step_weights
    last, rows = int(data.lengths.max()), []
    for t in np.unique(np.linspace(0, last - 1, min(last, _STEPS_SHOWN)).astype(np.int64)):
        at = np.flatnonzero((step == t) & (symbols >= 0))
        if len(at):
            counts = np.bincount(symbols[at], weights[at], minlength=len(main))
            rows.append((str(t + 1), f"{len(at):,}", *_texts(counts)[1:]))
    return Section(
        "Shares step by step",
        f"Shares of the symbols{among} over the sequences that have an observation at the step,"
        f" their first step being 1.{data.weighting}",
        head=("step", "observed", *names), rows=rows, shown=_STEPS_SHOWN,
    )  # fmt: skip


# --------------------------------------------------------------------------- who differs


def standing_out(
    past: StepProbs, change: NextChange, by_change: IntArray
) -> tuple[Section, list[int]]:
    """What may set sequences apart, a row for each that stands out, and which ones these are.

    The geometric mean of the probabilities of a sequence's symbols is 1 where nothing was observed;
    its gap are the most missing steps in a row.

    Parameters
    ----------
    past, change
        What a run says of the steps, and of those ahead.
    by_change : int array
        Sequences, the likeliest to change first.
    """
    data, size, changes = past.sequences, past.sequences.num_sequences, change.lasts[:, 0]
    step, sequence = data.step_of_entry, data.sequence_of_step
    logs = np.log(np.maximum(past.mean[step, data.symbols], 1e-300))
    sums = np.bincount(sequence[step], data.counts * logs, size)
    predicted = np.exp(sums / np.maximum(np.bincount(sequence, data.totals, size), 1))
    bounds = np.union1d(data.offsets, np.flatnonzero(data.observed))
    # all steps between two of these are missing, and the first if it was not observed
    runs = np.diff(bounds) - data.observed[bounds[:-1]]
    gaps = np.zeros(size, dtype=np.int64)
    np.maximum.at(gaps, sequence[bounds[:-1]], runs)
    ranked = {
        "likely to change": by_change[: int((changes >= 0.01).sum())],
        "predicted worst": np.argsort(predicted, kind="stable"),
        "long gap": np.argsort(-gaps, kind="stable")[: int((gaps > 0).sum())],
    }
    reasons: dict[int, list[str]] = {}
    for reason, order in ranked.items():
        for s in order[:_EACH].tolist():
            reasons.setdefault(s, []).append(reason)
    rows = []
    for s, why in reasons.items():
        numbers = number(2)(changes[s]), f"{predicted[s]:.2f}", str(gaps[s])
        rows.append((label_of(data, s), ", ".join(why), *numbers))
    section = Section(
        "Sequences that stand out",
        f"The {_EACH} likeliest to change at the next step, those whose symbols have the lowest"
        " probabilities (geometric mean), and those with most missing steps in a row.",
        head=(key_of(data), "why", "P(changes next)", "predicted", "gap"), rows=rows, shown=15,
    )  # fmt: skip
    return section, [*reasons]


def grouped(data: Sequences, path: IntArray | None) -> tuple[IntArray, list[str]]:
    """Sequences by the state, or else the symbol, that most of their steps have; and its name.

    Within a group those with a larger share of it come first.
    """
    if path is None:
        main = np.argsort(-data.symbol_totals, kind="stable")
        path, names = seen_symbols(data, main), [labels_of(data)[k] for k in main]
    else:
        names = [f"state {name}" for name in data.names_of_states(int(path.max()) + 1)]
    counts = np.zeros((data.num_sequences, len(names)))
    np.add.at(counts, (data.sequence_of_step[path >= 0], path[path >= 0]), 1.0)
    group = counts.argmax(axis=1)
    share = counts.max(axis=1) / np.maximum(counts.sum(axis=1), 1.0)
    return np.lexsort((-share, group)), [names[g] for g in group]

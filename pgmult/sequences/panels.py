"""What a report has of panels, many sequences beside each other: the population, then who differs.

>>> from pgmult.sequences import as_sequences
>>> data = as_sequences(["ABAB", "BABA", "AABB"] * 4)
>>> pairs_in_data(data).rows[0], shares_by_step(data).rows[0]
(('A', '20', '0.20', '0.80'), ('1', '12', '0.67', '0.33'))
"""

from typing import NamedTuple

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


def _symbols_of_steps(data: Sequences) -> tuple[IntArray, IntArray]:
    """The main symbols, the most frequent first, and the place of each step's among them."""
    main = np.argsort(-data.symbol_totals, kind="stable")[:_MOST_SYMBOLS]
    return main, seen_symbols(data, main)


def _among(data: Sequences, main: IntArray) -> str:
    return "" if len(main) == data.num_symbols else f", among the {len(main)} most frequent"


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
    main, _ = _symbols_of_steps(data)
    counts, names = pair_counts(data, main), [labels_of(data)[k] for k in main]
    return Section(
        "What follows what",
        f"In all {data.num_sequences:,} sequences together, how often each symbol (columns)"
        f" came a step after each (rows){_among(data, main)}.",
        head=("after", "times", *names), shown=_MOST_SYMBOLS,
        rows=[(n, *_texts(row)) for n, row in zip(names, counts, strict=True) if row.any()],
    )  # fmt: skip


def shares_by_step(data: Sequences) -> Section:
    """Shares of the symbols at steps of the sequences."""
    main, symbols = _symbols_of_steps(data)
    step = data.place_of_step
    weights = np.ones(data.num_steps) if data.step_weights is None else data.step_weights
    last, rows = int(data.lengths.max()), []
    for t in np.unique(np.linspace(0, last - 1, min(last, _STEPS_SHOWN)).astype(np.int64)):
        at = np.flatnonzero((step == t) & (symbols >= 0))
        if len(at):
            counts = np.bincount(symbols[at], weights[at], minlength=len(main))
            rows.append((str(t + 1), f"{len(at):,}", *_texts(counts)[1:]))
    return Section(
        "Shares step by step",
        f"Shares of the symbols{_among(data, main)} over the sequences that have an observation at"
        f" the step, their first step being 1.{data.weighting}",
        head=("step", "observed", *(labels_of(data)[k] for k in main)), rows=rows,
        shown=_STEPS_SHOWN,
    )  # fmt: skip


# --------------------------------------------------------------------------- who differs


class StandingOut(NamedTuple):
    """What may set a sequence apart.

    Attributes
    ----------
    changes : array, ``(num_sequences,)``
        Probability that the next symbol is another than the last; nan where none was observed.
    predicted : array, ``(num_sequences,)``
        Geometric mean of the probabilities of its symbols, as `predict` gives them; 1 where
        nothing was.
    gaps : int array, ``(num_sequences,)``
        Most missing steps in a row.
    """

    changes: FloatArray
    predicted: FloatArray
    gaps: IntArray

    @classmethod
    def of(cls, past: StepProbs, change: NextChange) -> "StandingOut":
        """What a run says of the steps and of those ahead."""
        data, size = past.sequences, past.sequences.num_sequences
        step, sequence = data.step_of_entry, data.sequence_of_step
        logs = np.log(np.maximum(past.mean[step, data.symbols], 1e-300))
        sums = np.bincount(sequence[step], data.counts * logs, size)
        times = np.bincount(sequence, data.totals, size)
        bounds = np.union1d(data.offsets, np.flatnonzero(data.totals > 0))
        # all steps between two of these are missing, and the first if it was not observed
        runs = np.diff(bounds) - (data.totals[bounds[:-1]] > 0)
        gaps = np.zeros(size, dtype=np.int64)
        np.maximum.at(gaps, sequence[bounds[:-1]], runs)
        return cls(change.lasts[:, 0], np.exp(sums / np.maximum(times, 1)), gaps)

    @property
    def by_change(self) -> IntArray:
        """Sequences, the likeliest to change first."""
        return np.argsort(np.nan_to_num(-self.changes, nan=np.inf), kind="stable")

    def reasons(self) -> dict[int, list[str]]:
        """Why a sequence stands out: the first few of each reason."""
        reasons: dict[int, list[str]] = {}
        ranked = {
            "likely to change": self.by_change[: int((self.changes >= 0.01).sum())],
            "predicted worst": np.argsort(self.predicted, kind="stable"),
            "long gap": np.argsort(-self.gaps, kind="stable")[: int((self.gaps > 0).sum())],
        }  # fmt: skip
        for reason, order in ranked.items():
            for s in order[:_EACH].tolist():
                reasons.setdefault(s, []).append(reason)
        return reasons

    def section(self, data: Sequences) -> Section:
        """A row for each sequence that stands out."""
        rows = [
            (
                label_of(data, s), ", ".join(why), number(2)(self.changes[s]),
                f"{self.predicted[s]:.2f}", str(self.gaps[s]),
            )
            for s, why in self.reasons().items()
        ]  # fmt: skip
        return Section(
            "Sequences that stand out",
            f"The {_EACH} that are likeliest to change at the next step, those whose symbols have"
            " the lowest probabilities (geometric mean), and those with most missing steps in a"
            " row. All others are in the tables below.",
            head=(key_of(data), "why", "P(changes next)", "predicted", "gap"), rows=rows, shown=15,
        )  # fmt: skip


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

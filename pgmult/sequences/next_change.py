"""How long the last symbol continues, and which one follows: counted in simulated futures.

>>> import numpy as np
>>> from pgmult.sequences import as_sequences
>>> futures = np.array([[[0, 0, 1]], [[1, 1, 0]], [[0, 0, 0]]])  # of one sequence that ended in A
>>> change = NextChange.of(futures, as_sequences(["BBAA"], alphabet="AB"))
>>> change.lasts.round(2).tolist(), change.then.tolist()
([[0.33, 0.0, 0.33, 0.33]], [[0.0, 1.0]])
"""

from dataclasses import dataclass

import numpy as np

from pgmult.core.answers import Answer
from pgmult.core.figures.lines import Line, Lines
from pgmult.core.tabled import Column, Table, number
from pgmult.core.typing import FloatArray, IntArray
from pgmult.sequences.data.sequences import Sequences
from pgmult.sequences.figures import key_of, label_of, labels_of, name_of, seen_symbols


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NextChange(Answer):
    """How long the current symbol of each sequence lasts, and which one follows.

    Attributes
    ----------
    draws : array, ``(num_paths, num_sequences)``
        How many more steps it continues in each simulated future; the most, in all that end later.
    present : int array, ``(num_sequences,)``
        The last symbol that was observed; -1 where none was.
    lasts : array, ``(num_sequences, steps + 1)``
        Probability that it continues for exactly 0, 1, ... steps; the last entry, for all simulated
        steps or longer.
    then : array, ``(num_sequences, num_symbols)``
        Probabilities of the symbol that comes after it, where it ends within the steps.
    sequences : Sequences
    """

    draws: FloatArray
    present: IntArray
    lasts: FloatArray
    then: FloatArray
    sequences: Sequences

    @classmethod
    def of(
        cls, simulated: IntArray, sequences: Sequences, first: FloatArray | None = None
    ) -> "NextChange":
        """From paths of symbols, ``(num_paths, num_sequences, steps)``.

        Probabilities of the `first` step, ``(num_sequences, num_symbols)``, where they are known,
        are not counted in the paths: the largest of many counted ones would be far too large.
        """
        paths, number, steps = simulated.shape
        symbols = seen_symbols(sequences, np.arange(sequences.num_symbols))
        steps_seen = np.where(symbols >= 0, np.arange(len(symbols)), -1)
        last = np.maximum.accumulate(steps_seen)[sequences.offsets[1:] - 1]
        unobserved = last < sequences.offsets[:-1]
        present = np.where(unobserved, -1, symbols[last])
        other = simulated != present[:, None]
        length = np.where(other.any(axis=2), other.argmax(axis=2), steps)
        lasts, then = np.zeros((number, steps + 1)), np.zeros((number, sequences.num_symbols))
        for s in range(number):
            lasts[s] = np.bincount(length[:, s], minlength=steps + 1) / paths
            ends = np.flatnonzero(length[:, s] < steps)
            come = simulated[ends, s, length[ends, s]]
            then[s] = np.bincount(come, minlength=sequences.num_symbols) / max(len(ends), 1)
        if first is not None:
            stays = np.where(unobserved, 0.0, first[np.arange(number), present])
            counted = 1.0 - lasts[:, :1]
            lasts[counted[:, 0] == 0.0, 1] = 1.0  # no path stays
            lasts[:, 1:] *= stays[:, None] / np.where(counted == 0.0, 1.0, counted)
            lasts[:, 0] = 1.0 - stays
        lasts[unobserved], then[unobserved] = np.nan, np.nan  # there is nothing to change
        return cls(length.astype(np.float64), present, lasts, then, sequences)

    def quantile(self, level: float) -> IntArray:
        """Quantile of its further steps, ``(num_sequences,)``; `horizon` means that or more."""
        return np.asarray((np.cumsum(self.lasts, axis=1) < level - 1e-12).sum(axis=1))

    @property
    def horizon(self) -> int:
        """How many steps were simulated."""
        return int(self.lasts.shape[1]) - 1

    def table(self) -> Table:
        """A row for each sequence with an observation.

        Ends that lie beyond the `horizon` have an empty cell, and ``lasts_at_least`` instead.
        """
        data, names = self.sequences, labels_of(self.sequences)
        rows = np.flatnonzero(self.present >= 0).tolist()
        middle, low, high = (self.quantile(level)[rows] for level in (0.5, 0.05, 0.95))
        present, then = self.present[rows], self.then[rows]

        def in_words(steps: int) -> str:
            return f"{steps} or more" if steps >= self.horizon else f"{steps}"

        def numbers(steps: IntArray) -> FloatArray:
            return np.where(steps >= self.horizon, np.nan, steps)

        ends = then.sum(axis=1) > 0.0  # in some simulated future
        first = then.argmax(axis=1)
        return Table(
            "Further steps for which the symbol observed last continues (median and 90 % interval"
            f" over futures simulated for {self.horizon} steps), and which one comes then.",
            [
                Column("sequence", [label_of(data, s) for s in rows], key_of(data)),
                Column("now", [names[k] for k in present], "now"),
                Column("changes_next", self.lasts[rows, 0], "P(changes next)", number(2)),
                Column("lasts", numbers(middle), "lasts", list(map(in_words, middle))),
                Column("lasts_lower", numbers(low)),
                Column(
                    "lasts_upper", numbers(high), "90 %",
                    [f"{a} to {in_words(b)}" if a < self.horizon else in_words(a)
                     for a, b in zip(low, high, strict=True)],
                ),
                Column("lasts_at_least", np.where(high >= self.horizon, self.horizon, np.nan)),
                Column(
                    "then", [names[k] if end else "" for k, end in zip(first, ends, strict=True)],
                    "then",
                ),
                Column("p_then", np.where(ends, then.max(axis=1), np.nan), "P(then)", number(2)),
            ],
        )  # fmt: skip

    def figure(self, sequence: int = 0) -> Lines:
        """The probability that the current symbol of a sequence continues."""
        if self.present[sequence] < 0:
            raise ValueError(f"sequence must have an observation, {sequence} has none")
        still = 1.0 - np.cumsum(self.lasts[sequence])[:-1]
        x = np.arange(1.0, len(still) + 1.0)
        name = labels_of(self.sequences)[self.present[sequence]]
        where = name_of(self.sequences, sequence)
        return Lines(
            [Line(name, int(self.present[sequence]), x, still)],
            label=f"how long {name} continues in {where}", x_label="steps ahead",
            y_label=f"probability that {name} still continues", caption=where,
        )  # fmt: skip

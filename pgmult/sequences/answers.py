"""Probabilities of symbols at the steps of sequences: tables of them, and figures along a sequence.

`pgmult.sequences.forecasts` computes them.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from pgmult.core.answers import Answer
from pgmult.core.figures.lines import Line, Lines
from pgmult.core.figures.shares import Stack
from pgmult.core.tabled import Column, Table, number
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_positive_int
from pgmult.sequences import figures
from pgmult.sequences.data.sequences import Sequences


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Probabilities(Answer):
    """Probabilities of symbols at some steps: what all answers have."""

    draws: FloatArray
    mean: FloatArray
    quantiles: FloatArray
    levels: FloatArray
    sequences: Sequences

    def of_channel(self, number: int) -> Self:
        """The answer for the symbols of one channel."""
        columns = self.sequences.channel_slices[number]
        return replace(
            self, draws=self.draws[..., columns], mean=self.mean[..., columns],
            quantiles=self.quantiles[..., columns], sequences=self.sequences.channel(number),
        )  # fmt: skip

    @property
    def caption(self) -> str:
        """What the probabilities are."""
        raise NotImplementedError

    def _places(self) -> tuple[IntArray, IntArray]:
        """The sequence of each row of `mean`, and its step there: all steps by default."""
        return self.sequences.sequence_of_step, self.sequences.place_of_step

    def table(self) -> Table:
        """A row for each step and symbol, as `pgmult.core.tabled.Table`.

        Its columns are ``sequence`` (a name, or a number from 1), ``symbol``, ``step`` (from 1 in
        each sequence), ``time`` where the sequences have it, ``mean``, and ``q0.05`` and so on for
        each level.
        """
        data = self.sequences
        sequence, step = (np.repeat(place, data.num_symbols) for place in self._places())
        symbols = np.tile(data.labels, len(step) // data.num_symbols)
        names = ["mean", *(f"q{level:g}" for level in self.levels)]
        numbers = zip(names, [self.mean, *self.quantiles], strict=True)
        return Table(
            self.caption,
            [
                *figures.place_columns(data, sequence, step), Column("symbol", symbols, "symbol"),
                *(Column(name, values.ravel(), name, number(3)) for name, values in numbers),
            ],
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"{self.caption} of {self.sequences}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StepProbs(Probabilities):
    """Probabilities of symbols at the steps of sequences.

    Attributes
    ----------
    draws : array, ``(num_draws, num_steps, num_symbols)``
        Draws of the probabilities, fewer of them where there are many steps.
    mean : array, ``(num_steps, num_symbols)``
        Posterior means: the best single prediction. Rows sum to 1.
    quantiles : array, ``(num_levels, num_steps, num_symbols)``
        Of the posterior of each probability.
    levels : array, ``(num_levels,)``
    sequences : Sequences
        Whose steps these are.
    filtered : bool
        Whether they are predictions from the steps before; else later steps count, too.
    """

    filtered: bool = False

    @property
    def caption(self) -> str:
        """What the probabilities are given."""
        past = "those before it" if self.filtered else "all observations of its sequence"
        return f"Probabilities of symbols at each step, given {past}"

    def figure(self, *, sequence: int = 0, symbols: Sequence[str | int] | int = 4) -> Lines:
        """Probabilities of some symbols along a sequence: see `symbol_lines`."""
        return symbol_lines(self, sequence=sequence, symbols=symbols)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Imputed(Probabilities):
    """Symbols at missing steps.

    Attributes
    ----------
    draws : array, ``(num_draws, num_missing, num_symbols)``
        Draws of the probabilities, fewer of them where there are many steps.
    mean : array, ``(num_missing, num_symbols)``
        Probability of each symbol.
    quantiles : array, ``(num_levels, num_missing, num_symbols)``
    levels : array, ``(num_levels,)``
    sequences : Sequences
        Whose steps are missing.
    steps : int64 array, ``(num_missing,)``
        Which steps of all sequences are missing.
    simulated : int64 array, ``(num_paths, num_missing)``
        Joint draws, one symbol per step: a row is one completion of all sequences.
    counts : int64 array, ``(num_paths, num_missing, num_symbols)``, or None
        Joint draws of counts, where totals were given.
    """

    steps: IntArray
    simulated: IntArray
    counts: IntArray | None = None

    caption: ClassVar[str] = "Probabilities of symbols at missing steps"

    def _places(self) -> tuple[IntArray, IntArray]:
        sequence, step = Probabilities._places(self)
        return sequence[self.steps], step[self.steps]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Forecast(Probabilities):
    """Forecasts of the steps after the last one of each sequence.

    Attributes
    ----------
    draws : array, ``(num_draws, num_sequences, steps, num_symbols)``
        Draws of the probabilities, fewer of them where there are many steps.
    mean : array, ``(num_sequences, steps, num_symbols)``
        Probability of each symbol.
    quantiles : array, ``(num_levels, num_sequences, steps, num_symbols)``
        Of the posterior of each probability, not of which symbol occurs.
    levels : array, ``(num_levels,)``
    sequences : Sequences
        The sequences that are forecast. In tables steps ahead are numbered from the sequence's
        length.
    simulated : int64 array, ``(num_paths, num_sequences, steps)``
        Simulated futures: one symbol per step (of the first channel, where there are several),
        states and symbols of a row drawn jointly; of more
        steps than the probabilities where these were asked for.
    counts : int64 array, ``(num_paths, num_sequences, steps, num_symbols)``, or None
        Simulated futures of counts, where totals were given.
    """

    simulated: IntArray
    counts: IntArray | None = None

    caption: ClassVar[str] = "Probabilities of symbols at steps ahead"

    def _places(self) -> tuple[IntArray, IntArray]:
        steps = self.mean.shape[1]
        sequence, ahead = np.divmod(np.arange(self.sequences.num_sequences * steps), steps)
        return sequence, ahead + self.sequences.lengths[sequence]

    def next_change(self) -> "NextChange":
        """How long each sequence's current symbol lasts, and which symbol follows.

        Of several channels it is the first one's symbol.
        """
        first = self.of_channel(0)
        return NextChange.of(self.simulated, first.sequences, first.mean[:, 0])

    def figure(
        self, *, history: StepProbs | None = None, sequence: int = 0,
        symbols: Sequence[str | int] | int = 3, last: int = 50,
    ) -> Lines:  # fmt: skip
        """Fans of nested quantiles, after the `last` steps of a history: see `symbol_lines`."""
        return symbol_lines(history, self, sequence=sequence, symbols=symbols, last=last)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NextChange(Answer):
    """How long the current symbol of each sequence lasts, and which one follows.

    Both are counted in simulated futures.

    >>> import numpy as np
    >>> from pgmult.sequences import as_sequences
    >>> futures = np.array([[[0, 0, 1]], [[1, 1, 0]], [[0, 0, 0]]])  # of one that ended in A
    >>> change = NextChange.of(futures, as_sequences(["BBAA"], alphabet="AB"))
    >>> change.lasts.round(2).tolist(), change.then.tolist()
    ([[0.33, 0.0, 0.33, 0.33]], [[0.0, 1.0]])

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
        symbols = figures.seen_symbols(sequences, np.arange(sequences.num_symbols))
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
        data, names = self.sequences, figures.labels_of(self.sequences)
        rows = np.flatnonzero(self.present >= 0).tolist()
        middle, low, high = (self.quantile(level)[rows] for level in (0.5, 0.05, 0.95))
        present, then = self.present[rows], self.then[rows]

        def in_words(steps: int) -> str:
            return f"{steps} or more" if steps >= self.horizon else f"{steps}"

        def numbers(steps: IntArray) -> FloatArray:
            return np.where(steps >= self.horizon, np.nan, steps)

        ends = then.sum(axis=1) > 0.0  # in some simulated future
        after = np.where(ends, np.array(names)[then.argmax(axis=1)], "").tolist()
        interval = [
            f"{a} to {in_words(b)}" if a < self.horizon else in_words(a)
            for a, b in zip(low, high, strict=True)
        ]
        return Table(
            "Further steps for which the symbol observed last continues (median and 90 % interval"
            f" over futures simulated for {self.horizon} steps), and which one comes then.",
            [
                Column("sequence", [figures.label_of(data, s) for s in rows], figures.key_of(data)),
                Column("now", [names[k] for k in present], "now"),
                Column("changes_next", self.lasts[rows, 0], "P(changes next)", number(2)),
                Column("lasts", numbers(middle), "lasts", list(map(in_words, middle))),
                Column("lasts_lower", numbers(low)),
                Column("lasts_upper", numbers(high), "90 %", interval),
                Column("lasts_at_least", np.where(high >= self.horizon, self.horizon, np.nan)),
                Column("then", after, "then"),
                Column("p_then", np.where(ends, then.max(axis=1), np.nan), "P(then)", number(2)),
            ],
        )

    def figure(self, sequence: int = 0) -> Lines:
        """The probability that the current symbol of a sequence continues."""
        if self.present[sequence] < 0:
            raise ValueError(f"sequence must have an observation, {sequence} has none")
        still = 1.0 - np.cumsum(self.lasts[sequence])[:-1]
        x = np.arange(1.0, len(still) + 1.0)
        name = figures.labels_of(self.sequences)[self.present[sequence]]
        where = figures.name_of(self.sequences, sequence)
        return Lines(
            [Line(name, int(self.present[sequence]), x, still)],
            label=f"how long {name} continues in {where}", x_label="steps ahead",
            y_label=f"probability that {name} still continues", caption=where,
        )  # fmt: skip


# --------------------------------------------------------------------------- figures


def _steps_of(data: Sequences, sequence: int) -> slice:
    """The steps of a sequence; a ValueError if there is none."""
    if not 0 <= sequence < data.num_sequences:
        raise ValueError(f"sequence must be from 0 to {data.num_sequences - 1}, got {sequence}")
    return slice(int(data.offsets[sequence]), int(data.offsets[sequence + 1]))


def _chosen(symbols: Sequence[str | int] | int, mean: FloatArray, data: Sequences) -> IntArray:
    """Numbers of symbols asked for by name, number or how many: those that move most."""
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


def symbol_stack(
    past: Probabilities, ahead: Probabilities | None = None, *, sequence: int = 0, last: int = 100
) -> Stack:
    """Probabilities of the main symbols along a sequence and ahead of it, stacked to one.

    Parameters
    ----------
    past, ahead : StepProbs and Forecast
        Of the same sequences.
    sequence, last : int
        Which one, and how many steps of its past.
    """
    data, steps = past.sequences, _steps_of(past.sequences, sequence)
    first = max(0, steps.stop - steps.start - last)
    shown = slice(steps.start + first, steps.stop)
    main, names = figures.main_symbols(data), figures.labels_of(data)
    shares, observed = past.mean[shown][:, main], figures.seen_symbols(data, main)[shown]
    name, divider = figures.name_of(data, sequence), None
    if ahead is not None:
        shares = np.concatenate([shares, ahead.mean[sequence][:, main]])
        divider = float(steps.stop - steps.start)
    return Stack(
        shares, [names[k] for k in main], label=f"probabilities of symbols along {name}",
        caption=name, start=first, seen=observed, divider=divider,
        **figures.axis_of(data, sequence),
    )  # fmt: skip


def symbol_lines(
    past: Probabilities | None, ahead: Probabilities | None = None, *, sequence: int = 0,
    symbols: Sequence[str | int] | int = 4, last: int = sys.maxsize,
) -> Lines:  # fmt: skip
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
    data, steps = one.sequences, _steps_of(one.sequences, sequence)
    size = steps.stop - steps.start
    first = size if past is None else max(0, size - last)
    shown = slice(steps.start + first, steps.stop)
    parts = list[tuple[Probabilities, FloatArray, FloatArray]]()
    if past is not None:
        parts.append((past, past.mean[shown], past.quantiles[:, shown]))
    if ahead is not None:
        parts.append((ahead, ahead.mean[sequence], ahead.quantiles[:, sequence]))
    mean = np.concatenate([m for _, m, _ in parts])
    x = first + np.arange(len(mean), dtype=np.float64)
    counts, totals = data.to_csr()[shown].toarray(), data.totals[shown]
    full, single = np.flatnonzero(totals > 0), totals.max(initial=0) <= 1
    most = max(len(p.levels) for p, _, _ in parts) // 2
    nested = zip(*(_nested(p.levels, m, q, most) for p, m, q in parts), strict=True)
    bands = [[np.concatenate(ends) for ends in zip(*pair, strict=True)] for pair in nested]
    lines = [
        Line(
            figures.labels_of(data)[k], k, x, mean[:, k],
            [(low[:, k], high[:, k]) for low, high in bands],
            points=None if single else (x[full], counts[full, k] / totals[full]),
            rug=x[np.flatnonzero(counts[:, k])] if single else None,
        )
        for k in _chosen(symbols, mean, data).tolist()
    ]  # fmt: skip
    name = figures.name_of(data, sequence)
    gaps = [(first + t - 0.5, first + t + 0.5) for t in np.flatnonzero(totals == 0)]
    return Lines(
        lines, label=f"probabilities along {name}{' and ahead of it' * (ahead is not None)}",
        caption=name, gaps=gaps, divider=None if ahead is None else size - 0.5,
        **figures.axis_of(data, sequence),
    )  # fmt: skip


def _nested(
    levels: FloatArray, mean: FloatArray, quantiles: FloatArray, most: int
) -> list[tuple[FloatArray, FloatArray]]:
    """So many pairs of quantiles, the outermost first; those that are wanting have no width."""
    order = np.argsort(levels)
    pairs = [(quantiles[i], quantiles[j]) for i, j in zip(order, order[::-1], strict=True)]
    inner = pairs[: len(order) // 2]
    return inner + [(mean, mean)] * (most - len(inner))

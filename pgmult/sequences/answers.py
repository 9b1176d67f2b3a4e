"""Probabilities of symbols at the steps of sequences: tables of them, and figures along a sequence.

`pgmult.sequences.forecasts` computes them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pgmult.core.answers import Answer
from pgmult.core.figures.lines import Line, Lines
from pgmult.core.figures.shares import Stack
from pgmult.core.tabled import Column, Table, number
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_positive_int
from pgmult.sequences.data.sequences import Sequences
from pgmult.sequences.figures import (
    axis_of,
    labels_of,
    main_symbols,
    name_of,
    place_columns,
    places_of,
    seen_symbols,
)
from pgmult.sequences.next_change import NextChange


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Probabilities(Answer):
    """Probabilities of symbols at some steps: what all answers have."""

    draws: FloatArray
    mean: FloatArray
    quantiles: FloatArray
    levels: FloatArray
    sequences: Sequences

    @property
    def caption(self) -> str:
        """What the probabilities are."""
        raise NotImplementedError

    def _places(self) -> tuple[IntArray, IntArray]:
        """The sequence of each row of `mean`, and its step there."""
        raise NotImplementedError

    def table(self) -> Table:
        """A row for each step and symbol, as `pgmult.core.tabled.Table`.

        Its columns are ``sequence`` and ``symbol`` (names, or numbers from 0), ``step`` (from 0 in
        each sequence), ``time`` where the sequences have it, ``mean``, and ``q0.05`` and so on for
        each level.
        """
        data = self.sequences
        sequence, step = (np.repeat(place, data.num_symbols) for place in self._places())
        symbols = np.arange(data.num_symbols) if data.alphabet is None else data.alphabet
        columns = [
            *place_columns(data, sequence, step),
            Column("symbol", np.tile(symbols, len(step) // len(symbols)), "symbol"),
            Column("mean", self.mean.ravel(), "mean", number(3)),
        ]
        for level, values in zip(self.levels, self.quantiles, strict=True):
            columns.append(Column(f"q{level:g}", values.ravel(), f"q{level:g}", number(3)))
        return Table(self.caption, columns)

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

    def _places(self) -> tuple[IntArray, IntArray]:
        return places_of(self.sequences, np.arange(self.sequences.num_steps))

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

    @property
    def caption(self) -> str:
        """What the probabilities are."""
        return "Probabilities of symbols at missing steps"

    def _places(self) -> tuple[IntArray, IntArray]:
        return places_of(self.sequences, self.steps)


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
        Simulated futures: one symbol per step, states and symbols of a row drawn jointly; of more
        steps than the probabilities where these were asked for.
    counts : int64 array, ``(num_paths, num_sequences, steps, num_symbols)``, or None
        Simulated futures of counts, where totals were given.
    """

    simulated: IntArray
    counts: IntArray | None = None

    @property
    def caption(self) -> str:
        """What the probabilities are."""
        return "Probabilities of symbols at steps ahead"

    def _places(self) -> tuple[IntArray, IntArray]:
        steps = self.mean.shape[1]
        sequence, ahead = np.divmod(np.arange(self.sequences.num_sequences * steps), steps)
        return sequence, ahead + self.sequences.lengths[sequence]

    def next_change(self) -> "NextChange":
        """How long each sequence's current symbol lasts, and which symbol follows."""
        return NextChange.of(self.simulated, self.sequences, self.mean[:, 0])

    def figure(
        self,
        *,
        history: StepProbs | None = None,
        sequence: int = 0,
        symbols: Sequence[str | int] | int = 3,
        last: int = 50,
    ) -> Lines:
        """Fans of nested quantiles, after the `last` steps of a history: see `symbol_lines`."""
        return symbol_lines(history, self, sequence=sequence, symbols=symbols, last=last)


# --------------------------------------------------------------------------- figures


def _steps_of(data: Sequences, sequence: int) -> slice:
    """The steps of a sequence; a ValueError if there is none."""
    if not 0 <= sequence < data.num_sequences:
        raise ValueError(
            f"sequence must be from 0 to {data.num_sequences - 1}, the last one, got {sequence}"
        )
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
    main, names = main_symbols(data), labels_of(data)
    shares, observed = past.mean[shown][:, main], seen_symbols(data, main)[shown]
    if ahead is not None:
        coming = ahead.mean[sequence][:, main]
        shares = np.concatenate([shares, coming])
    name = name_of(data, sequence)
    divider = None if ahead is None else float(steps.stop - steps.start)
    return Stack(
        shares, [names[k] for k in main], label=f"probabilities of symbols along {name}",
        caption=name, start=first, seen=observed, divider=divider, **axis_of(data, sequence),
    )  # fmt: skip


def symbol_lines(
    past: Probabilities | None,
    ahead: Probabilities | None = None,
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
    data, steps = one.sequences, _steps_of(one.sequences, sequence)
    first = steps.stop - steps.start
    if past is not None:
        first = 0 if last is None else max(0, first - last)
    shown = slice(steps.start + first, steps.stop)
    parts: list[tuple[Probabilities, FloatArray, FloatArray]] = []
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
        gaps=[(first + t - 0.5, first + t + 0.5) for t in np.flatnonzero(totals == 0)],
        divider=None if ahead is None else float(steps.stop - steps.start) - 0.5,
        **axis_of(data, sequence),
    )


def _nested(
    levels: FloatArray, mean: FloatArray, quantiles: FloatArray, most: int
) -> list[tuple[FloatArray, FloatArray]]:
    """So many pairs of quantiles, the outermost first; those that are wanting have no width."""
    order = np.argsort(levels)
    pairs = [(quantiles[i], quantiles[j]) for i, j in zip(order, order[::-1], strict=True)]
    inner = pairs[: len(order) // 2]
    return inner + [(mean, mean)] * (most - len(inner))

r"""Markov chains of symbols of order 1, 2, ...: a baseline for all models of sequences.

The symbol of a step depends on the last L symbols alone, its context. Rows of probabilities are
drawn towards those of the context that is one shorter (MacKay and Peto 1995, "A hierarchical
Dirichlet language model")::

    row_0         ~ Dirichlet(concentration)                          no context
    row_l(c)      ~ Dirichlet(strength_l row_{l-1}(c without its oldest)),     l = 1..L
    strength_l    ~ Gamma(strength_shape, strength_rate)
    x_t           ~ Multinomial(total_t, row_L(x_{t-L}, ..., x_{t-1}))

A context after which not every symbol is `allowed` is drawn towards equal shares of those that are,
and longer contexts towards it.

"Nothing" is a symbol of the context before a sequence begins; a step with several observations has
the most frequent symbol there. A step without observations has a symbol, too,
which is summed out of everything that is predicted: probabilities after a gap are those of powers
of the transition matrix. A sweep is exact: with n_l(c, k) observations of k in context c, and the
rows of level l integrated out,

1. missing symbols | rows, observed ones     forward filter, backward sampling of contexts, up to
                                             the last observation of each sequence;
2. strength_l | n_l, row_{l-1}               a slice step on its logarithm;
3. n_{l-1}                                   sums of tables m ~ CRT(n_l, strength_l row_{l-1}): of
                                             n, the i-th opens a table with probability a / (a + i)
                                             (Teh et al. 2006, section 5.3);

2 and 3 from the longest contexts to none, and then all rows from none to the longest: Dirichlet.

>>> import pgmult
>>> data = pgmult.sequences.as_sequences(["ABABABABABABABAB", "BABABABA"])
>>> posterior = pgmult.sample(
...     MarkovChain(order=1), data, draws=50, tune=5, chains=1, random_seed=0, progressbar=False
... )
>>> after_a = posterior["rows"][0, :, 1].mean(axis=0)
>>> bool(after_a[1] > 0.8)
True
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Annotated, ClassVar

import numpy as np
from scipy.sparse import csr_array

from pgmult.compiled.rows import over_rows
from pgmult.core.memory import once_a_data_set
from pgmult.core.parameters import Checked, Positive, axes_of, whole
from pgmult.core.sweeps import Sampled
from pgmult.core.typing import BoolArray, Coords, Draw, FloatArray, Generator, IntArray, Names
from pgmult.core.validate import new_key
from pgmult.sequences.compiled import contexts as compiled
from pgmult.sequences.data.sequences import Sequences, one_of, sequences_for, with_rows
from pgmult.sequences.models.base import Ahead, SequenceModel
from pgmult.sequences.models.hmm import as_allowed, dirichlet_rows, joined_terms, slice_log

_MOST_ROWS = 4_000_000  # entries of all rows
_NEAR = 20  # steps of a gap that a chain fills at its start
_MOST_HELD = 50_000_000  # probabilities of contexts in a gap
_LEAST = 1e-300


@dataclass(frozen=True, slots=True, eq=False)
class MarkovChainState:
    """One point of the chain.

    Attributes
    ----------
    rows : array, ``(num_contexts, num_symbols)``
        Probabilities of the next symbol after no context; after each single symbol, the last of
        which is "nothing", before the beginning; after each pair of these; and so on.
    strengths : array, ``(order,)``
    """

    rows: Annotated[FloatArray, "context", "symbol"]
    strengths: Annotated[FloatArray, "order"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MarkovChain(SequenceModel, Sampled[Sequences, MarkovChainState], Checked):
    """Markov chain of symbols whose rows are drawn towards those of shorter contexts.

    Parameters
    ----------
    order : int
        L >= 1: how many symbols back a step looks.
    concentration : float
        Of each symbol without a context.
    strength_shape, strength_rate : float
        Gamma prior of the strengths: how many observations a shorter context is worth.
    allowed : bool array, ``(num_symbols, num_symbols)``, optional
        Row i: symbols that may follow symbol i; all by default. A state that nobody leaves has a
        row that allows itself alone. Probabilities of others are below 1e-290.

    Notes
    -----
    Where nearly all steps are missing, as in a long gap, chains move slowly: make steps longer.

    A sweep costs O(num_observations order) and the rows take ``(num_symbols + 1)**order *
    num_symbols`` numbers, of which there may be 4 million.
    """

    order: Annotated[int, whole(1, 4)] = 1
    concentration: Positive = 1.0
    strength_shape: Positive = 1.0
    strength_rate: Positive = 0.1
    allowed: Annotated[BoolArray, as_allowed] | None = None

    dims: ClassVar[Mapping[str, Names]] = axes_of(MarkovChainState)
    default_keep: ClassVar[Names] = ("rows", "strengths")
    predictive_variables: ClassVar[Names] = ("rows",)

    def as_data(self, data: object) -> Sequences:
        """`as_sequences`, if there are few enough symbols to hold all contexts, and no inputs.

        Raises
        ------
        ValueError
            If there are too many symbols for the order, or inputs, or transitions that are not
            allowed.
        """
        sequences = sequences_for("a Markov chain", data)
        contexts = (sequences.num_symbols + 1) ** self.order
        if (size := contexts * sequences.num_symbols) > _MOST_ROWS:
            raise ValueError(
                f"order must be lower for so many symbols: rows of {sequences.num_symbols} symbols"
                f" after {self.order} take {size:,} numbers, and at most {_MOST_ROWS:,} are held"
            )
        unsure = np.add.reduceat(steps_of(sequences, self.order).unsure, sequences.offsets[:-1])
        if (size := int(unsure.max(initial=0)) * contexts) > _MOST_HELD:
            raise ValueError(
                f"data must have shorter gaps for order {self.order}: summing out the longest takes"
                f" {size:,} numbers, and at most {_MOST_HELD:,} are held (make steps longer)"
            )
        if self.allowed is not None:
            refuse_not_allowed(sequences, self.allowed)
        return sequences

    def coords(self, data: Sequences) -> Coords:
        """Symbols by their names, where they have any."""
        return {} if data.alphabet is None else {"symbol": data.alphabet}

    # ------------------------------------------------------------------ the model

    def prior(self, rng: Generator, data: Sequences) -> MarkovChainState:
        """A state from the prior."""
        strengths = rng.gamma(self.strength_shape, 1.0 / self.strength_rate, self.order)
        nothing = [np.zeros((size, data.num_symbols)) for size in self.sizes(data)]
        return self.draw_rows(rng, nothing, strengths)

    def simulate(self, rng: Generator, state: MarkovChainState, data: Sequences) -> Sequences:
        """New observations, one step of all sequences after the other."""
        number, rows = data.num_symbols, self.longest(state.rows, data)
        totals, context = data.totals, np.full(data.num_sequences, len(rows) - 1)  # nothing yet
        counts = np.zeros((data.num_steps, number), dtype=np.int64)
        for t in range(int(data.lengths.max())):
            going = np.flatnonzero(data.lengths > t)
            step, probs = data.offsets[going] + t, rows[context[going]]
            drawn = rng.multinomial(totals[step], probs / probs.sum(axis=1, keepdims=True))
            counts[step], last, missing = drawn, drawn.argmax(axis=1), totals[step] == 0
            last[missing] = one_of(rng.random(missing.sum()), probs[missing])
            context[going] = self._next(context[going], last, number)
        return with_rows(data, csr_array(counts))

    def log_likelihood(self, state: MarkovChainState, data: Sequences) -> float:
        """Log p(observations | rows), missing ones summed out; no multinomial coefficients."""
        return float(self.log_predictive({"rows": state.rows}, data).sum())

    def sampler(self, data: Sequences) -> "ChainSampler":
        """Return the exact sweep over missing symbols, strengths, tables and rows."""
        return ChainSampler(self, data)

    def draw_rows(
        self, rng: Generator, counts: list[FloatArray], strengths: FloatArray
    ) -> MarkovChainState:
        """The rows of all levels given their counts, from no context to the longest."""
        rows = [np.maximum(dirichlet_rows(rng, self.concentration + counts[0]), _LEAST)]
        for level, (strength, taken) in enumerate(zip(strengths, counts[1:], strict=True)):
            shares = self.parents(rows[-1], level, len(taken))
            drawn = dirichlet_rows(rng, np.maximum(strength * shares, _LEAST) + taken)
            rows.append(np.maximum(drawn, _LEAST))
        return MarkovChainState(np.concatenate(rows), np.asarray(strengths))

    def restricted(self, level: int) -> IntArray:
        """Contexts, of a level one longer than `level`, drawn towards what is allowed alone."""
        if level > 0 or self.allowed is None:
            return np.empty(0, dtype=np.int64)
        return np.flatnonzero(~self.allowed.all(axis=1))

    def parents(self, rows: FloatArray, level: int, size: int) -> FloatArray:
        """What rows of contexts one longer are drawn towards, given the rows of a level."""
        shares, few = rows[np.arange(size) % len(rows)], self.restricted(level)
        if self.allowed is not None:
            shares[few] = self.allowed[few] / self.allowed[few].sum(axis=1, keepdims=True)
        return shares

    # ------------------------------------------------------------------ contexts

    def sizes(self, data: Sequences) -> list[int]:
        """Contexts of each level."""
        return [(data.num_symbols + 1) ** level for level in range(self.order + 1)]

    def longest(self, rows: FloatArray, data: Sequences) -> FloatArray:
        """The rows of the longest contexts."""
        return rows[-((data.num_symbols + 1) ** self.order) :]

    def _next(self, context: IntArray, symbol: IntArray, number: int) -> IntArray:
        """The context of the step after, whose oldest symbol is forgotten."""
        return np.asarray((context * (number + 1) + symbol) % (number + 1) ** self.order)

    # ------------------------------------------------------------------ what a draw says

    def contexts_of_symbols(self, data: Sequences) -> list[tuple[int, ...]]:
        """The longest contexts without "nothing", the oldest symbol first."""
        return list(product(range(data.num_symbols), repeat=self.order))

    def _numbered(self, number: int) -> tuple[IntArray, IntArray]:
        """Contexts of so many symbols, as `contexts_of_symbols`, and their numbers."""
        contexts = np.array([*product(range(number), repeat=self.order)])
        return contexts, contexts @ (number + 1) ** np.arange(self.order)[::-1]

    def contexts_without_data(self, data: Sequences, names: Sequence[str]) -> list[str]:
        """Names of `contexts_of_symbols` after which no step was observed, of several allowed."""
        contexts, numbers = self._numbered(data.num_symbols)
        is_empty = ~np.isin(numbers, steps_of(data, self.order).contexts[data.observed])
        if self.allowed is not None:
            is_empty &= self.allowed.sum(axis=1)[contexts[:, -1]] > 1
        return [name for name, empty in zip(names, is_empty, strict=True) if empty]

    def transition_probs(self, draws: Draw) -> FloatArray:
        """Probabilities of the next symbol after each of `contexts_of_symbols`, of many draws.

        Parameters
        ----------
        draws : mapping from str to array, ``(num_draws, ...)``

        Returns
        -------
        array, ``(num_draws, num_symbols**order, num_symbols)``
        """
        number = draws["rows"].shape[-1]
        contexts, numbers = self._numbered(number)
        rows = draws["rows"][:, -((number + 1) ** self.order) :][:, numbers]
        return rows if self.allowed is None else rows * self.allowed[contexts[:, -1]]

    def log_predictive(self, draw: Draw, data: Sequences) -> FloatArray:
        """Log p(x_t | x_<t, rows), ``(num_steps,)``, missing steps summed out; 0 at these."""
        rows, steps = self.longest(draw["rows"], data), steps_of(data, self.order)
        step = data.step_of_entry
        terms = data.counts * np.log(rows[steps.contexts[step], data.symbols])
        log_p = np.bincount(step, terms, data.num_steps).astype(np.float64)
        if steps.unsure.any():
            _filter(steps, rows, log_p, np.empty((0, 0)))
        return log_p

    def step_probs(self, draw: Draw, data: Sequences, *, filtered: bool = False) -> FloatArray:
        """Probabilities of every step, ``(num_steps, num_symbols)``.

        They are those of the symbol given all others where it is missing, and those of the row
        after the symbols before it elsewhere; `filtered`, given the symbols before it alone.
        """
        rows, steps = self.longest(draw["rows"], data), steps_of(data, self.order)
        probs = np.ascontiguousarray(rows[steps.contexts])
        if (steps.unsure if filtered else ~data.observed).any():
            arrays = steps, rows, filtered, np.empty(data.num_steps), probs
            over_rows(compiled.smooth_symbols, data.num_sequences, *arrays, grain=1)
        return probs

    def ahead(self, chances: FloatArray, draw: Draw, data: Sequences, steps: int) -> Ahead:
        """Probabilities ahead, exact, and one path of symbols of each sequence.

        Parameters
        ----------
        chances : array, ``(num_sequences, 2, steps + 1)``
            Uniform numbers, from which the paths follow.

        Returns
        -------
        probs : array, ``(num_sequences, steps, num_symbols)``
        symbols : int array, ``(num_sequences, steps)``
        """
        number, rows = data.num_symbols, self.longest(draw["rows"], data)
        past, ends = steps_of(data, self.order), data.offsets[1:] - 1
        context = self._next(past.contexts[ends], past.main[ends] % number, number)
        unsure = past.unsure[ends] | (past.main[ends] == number)
        key = np.where(unsure, len(rows) + np.arange(len(ends)), context)
        alike, which = np.unique(key, return_inverse=True)  # a row for each unsure one, at the end
        dists, sure = np.zeros((len(alike), len(rows))), alike[alike < len(rows)]
        dists[np.arange(len(sure)), sure] = 1.0
        if unsure.any():
            final = np.empty((data.num_sequences, len(rows)))
            _filter(past, rows, np.empty(data.num_steps), final)
            dists[len(sure) :] = final[unsure]
            context[unsure] = one_of(chances[unsure, 0, -1], final[unsure])
        probs = np.empty((len(dists), steps, number))
        over_rows(compiled.look_ahead, len(dists), dists, rows, probs, grain=1)
        symbols = np.empty((len(ends), steps), dtype=np.int64)
        for t in range(steps):
            symbols[:, t] = one_of(chances[:, 1, t], rows[context])
            context = self._next(context, symbols[:, t], number)
        return probs[which], symbols

    def replicate(self, rng: Generator, draw: Draw, data: Sequences) -> IntArray:
        """Sequences made anew from one draw of `predictive_variables`, as counts of steps."""
        state = MarkovChainState(draw["rows"], np.full(self.order, np.nan))
        return np.asarray(self.simulate(rng, state, data).to_csr().toarray())


@dataclass(frozen=True, slots=True, eq=False)
class ChainSampler:
    """The sweep of a Markov chain over one data set.

    Attributes
    ----------
    model : MarkovChain
    data : Sequences
    """

    model: MarkovChain
    data: Sequences

    def init(self, rng: Generator) -> MarkovChainState:
        """Draw rows given counts, with strengths equal to the number of symbols; then sweep.

        Missing symbols are at first those before them, in gaps that are not long: a start with
        changes that are as rare as can be, since a matrix of which the data determine the square
        and the cube has roots in which states alternate.
        """
        model, data = self.model, self.data
        counts = [np.zeros((size, data.num_symbols)) for size in model.sizes(data)]
        counts[0] += np.bincount(data.symbols, data.counts, data.num_symbols)
        symbols, steps = steps_of(data, model.order).main, np.arange(data.num_steps)
        last = np.maximum.accumulate(np.where(symbols < data.num_symbols, steps, -1))
        near = steps - last <= np.minimum(data.place_of_step, _NEAR)
        counts[-1] = self.counts(np.where(near, symbols[last], data.num_symbols))
        strengths = np.full(model.order, float(data.num_symbols))
        return self.step(rng, model.draw_rows(rng, counts, strengths))

    def step(self, rng: Generator, state: MarkovChainState) -> MarkovChainState:
        """Return the state after a sweep over missing symbols, strengths, tables and rows."""
        model, number = self.model, self.data.num_symbols
        starts = np.cumsum([0, *model.sizes(self.data)])
        strengths = state.strengths.copy()
        counts = [self.counts(self.filled(rng, state))]
        for level in range(model.order, 0, -1):
            shorter_rows = state.rows[starts[level - 1] : starts[level]]
            context, symbol = np.nonzero(counts[0])
            parent = context % len(shorter_rows)
            taken = counts[0][context, symbol]
            share = model.parents(shorter_rows, level - 1, len(counts[0]))[context, symbol]
            totals = counts[0].sum(axis=1)
            sizes, times = np.unique(totals[totals > 0.0], return_counts=True)
            rows = -times.astype(np.float64), sizes, np.ones(len(sizes))
            terms = joined_terms((np.ones(len(taken)), taken, share), rows)
            prior = model.strength_shape, model.strength_rate
            strengths[level - 1] = slice_log(rng, terms, float(strengths[level - 1]), *prior)
            tables = _tables(rng, taken, strengths[level - 1] * share)
            tables[self.is_restricted(context, level)] = 0.0
            shorter = np.bincount(parent * number + symbol, tables, shorter_rows.size)
            counts.insert(0, np.asarray(shorter, np.float64).reshape(shorter_rows.shape))
        return model.draw_rows(rng, counts, strengths)

    def is_restricted(self, context: IntArray, level: int) -> BoolArray:
        """Whether the rows of contexts say nothing of those of shorter ones."""
        return np.isin(context, self.model.restricted(level - 1))

    def filled(self, rng: Generator, state: MarkovChainState) -> IntArray:
        """The symbol of each step, missing ones drawn given the observations of their sequence.

        Steps after the last observation keep the number of symbols: they say nothing of rows.
        """
        data, steps = self.data, steps_of(self.data, self.model.order)
        if not steps.unsure.any():
            return steps.main
        filled, rows = steps.main.copy(), self.model.longest(state.rows, data)
        arrays = steps, rows, np.empty(data.num_steps), filled
        over_rows(compiled.fill_symbols, data.num_sequences, new_key(rng), *arrays, grain=1)
        return filled

    def counts(self, symbols: IntArray) -> FloatArray:
        """How often each symbol came in each of the longest contexts, drawn ones included."""
        data, order, number = self.data, self.model.order, self.data.num_symbols
        contexts = contexts_of(symbols, data, order)
        size = (number + 1) ** order * number
        drawn = np.flatnonzero((symbols < number) & ~data.observed)
        entries = contexts[data.step_of_entry] * number + data.symbols
        counted = np.bincount(entries, data.counts, size)
        counted += np.bincount(contexts[drawn] * number + symbols[drawn], minlength=size)
        return np.asarray(counted, np.float64).reshape(-1, number)


def _filter(steps: compiled.ContextSteps, rows: FloatArray, *out: FloatArray) -> None:
    """Fill log predictive probabilities and contexts after sequences, if these have rows."""
    over_rows(compiled.filter_contexts, len(steps.offsets) - 1, steps, rows, *out, grain=1)


def refuse_not_allowed(data: Sequences, allowed: BoolArray) -> None:
    """Refuse symbols that cannot follow those before them, also across missing steps.

    Raises
    ------
    ValueError
        With the sequence, the step and the symbols of the first, or if there are other symbols.
    """
    if len(allowed) != data.num_symbols:
        raise ValueError(f"allowed must have {data.num_symbols} rows, got {len(allowed)}")
    main, step, within = steps_of(data, 1).main, data.step_of_entry, allowed
    last = np.maximum.accumulate(np.where(data.observed, np.arange(data.num_steps), -1))
    before, bad = np.append(-1, last)[step], np.zeros(len(step), dtype=np.bool_)
    apart = np.where(before < data.offsets[data.sequence_of_step[step]], 0, step - before)
    for gap in range(1, apart.max(initial=0) + 1):
        at = np.flatnonzero(apart == gap)
        bad[at] = ~within[main[before[at]], data.symbols[at]]
        within = (within.astype(np.float64) @ allowed) > 0.0
    if bad.any():
        names, entry = data.labels, bad.argmax()
        s = int(data.sequence_of_step[step[entry]])
        who = f"sequence {s + 1}" if data.names is None else f"{data.keys[0]} {data.names[s]}"
        raise ValueError(
            f"allowed must have all that was observed: {names[data.symbols[entry]]} comes after"
            f" {names[main[before[entry]]]} at step {data.place_of_step[step[entry]] + 1} of"
            f" {who.strip()}"
        )


@once_a_data_set
def steps_of(data: Sequences, order: int) -> compiled.ContextSteps:
    """The steps with their contexts, and which of these are unsure."""
    number, step = data.num_symbols, data.step_of_entry
    by_count = np.lexsort((-data.symbols, data.counts, step))  # the first most frequent is last
    main = np.full(data.num_steps, number)
    main[step[by_count]] = data.symbols[by_count]
    place, unsure = data.place_of_step, np.zeros(data.num_steps, dtype=np.bool_)
    for back in range(1, order + 1):
        unsure[back:] |= (main[: data.num_steps - back] == number) & (place[back:] >= back)
    observed = data.offsets, data.indptr, data.symbols, data.counts
    return compiled.ContextSteps(*observed, main, contexts_of(main, data, order), unsure)


def contexts_of(symbols: IntArray, data: Sequences, order: int) -> IntArray:
    """The context of every step given the symbol of each, by its number, ``(num_steps,)``."""
    number, place = data.num_symbols, data.place_of_step
    contexts = np.zeros(data.num_steps, dtype=np.int64)
    for back in range(order, 0, -1):
        before = np.full(data.num_steps, number)
        before[back:] = symbols[: data.num_steps - back]
        contexts = contexts * (number + 1) + np.where(place >= back, before, number)
    return contexts


def _tables(rng: Generator, taken: FloatArray, weight: FloatArray) -> FloatArray:
    """How many of `taken` customers opened a new table, ``(num_cells,)``."""
    number = taken.astype(np.int64)
    cell = np.repeat(np.arange(len(number)), number)
    place = np.arange(len(cell)) - np.repeat(np.cumsum(number) - number, number)
    a = weight[cell]
    opened = rng.random(len(cell)) * (a + place) < a
    return np.asarray(np.bincount(cell, opened, len(number)), np.float64)

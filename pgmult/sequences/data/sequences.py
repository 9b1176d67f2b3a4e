"""Sequences of symbols or of counts, some steps of which may be missing.

One type serves all: a compressed sparse matrix of steps by symbols, cut into sequences. A step with
one entry of count 1 saw a symbol; one with more is a row of counts (the words of a chapter); one
without entries is missing.

>>> data = as_sequences(["GATTACA", "TAG"])
>>> data
Sequences(2 sequences, 10 steps, 4 symbols, 10 observations)
>>> data.alphabet[data.order].tolist()
['A', 'T', 'G', 'C']
"""

import unicodedata
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Protocol, runtime_checkable

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from pgmult.core.arguments import as_mapping, as_repeats, as_strings, brief, under_name
from pgmult.core.labels import labels_of, numbered, order_of
from pgmult.core.memory import once_a_data_set
from pgmult.core.tables import missing_in
from pgmult.core.typing import Array, BoolArray, FloatArray, Generator, IntArray, ObservedRows
from pgmult.core.validate import as_counts, as_finite, as_order, as_positive_int
from pgmult.formulas.design import Design, joined_designs
from pgmult.latent.predictors import latent_of

_MOST_SYMBOLS = 10**6  # unless num_symbols says that so many are meant
_Names = Sequence[str] | NDArray[np.str_] | None
_Index = slice | IntArray


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Whole:
    """Facts about all sequences, for sweeps that hold only some of them.

    Attributes
    ----------
    num_sequences, num_steps : int
    taken : int64 array, ``(num_symbols,)``
        Observations of each symbol, in the sequences' order of symbols.
    reached : int64 array, ``(num_symbols - 1,)``
        Steps with an observation of this symbol or of a later one.
    """

    num_sequences: int
    num_steps: int
    taken: IntArray
    reached: IntArray


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Sequences:
    """Steps of symbols or counts. Make one with `as_sequences`, which checks its input.

    Attributes
    ----------
    offsets : int64 array, ``(num_sequences + 1,)``
        Sequence s is the steps ``offsets[s]:offsets[s + 1]``.
    indptr : int64 array, ``(num_steps + 1,)``
        Step t's entries are ``indptr[t]:indptr[t + 1]``; none is a missing step.
    symbols : int32 array, ``(num_entries,)``
        From 0 to ``num_symbols - 1``.
    counts : int32 array, ``(num_entries,)``
        Positive; all 1 for sequences of symbols.
    num_symbols : int
        K >= 2.
    order : int64 array, ``(num_symbols,)``
        A fixed order of the symbols for models that need one, most frequent first by default.
    inputs : array, ``(num_steps, num_inputs)``, or None
        Known covariates of every step, missing steps included; of a formula its columns, scaled,
        without the intercept.
    design : Design or None
        The formula's whole design, one row per step, effects of groups included.
    alphabet : str array, ``(num_symbols,)``, or None
        What the symbols are called.
    names : str array, ``(num_sequences,)``, or None
    starts : datetime64 or int64 array, ``(num_sequences,)``, or None
        Time of each sequence's first step, in units of which a step is `every`: see `times`.
    every : int
    keys : tuple of str
        Columns of the table that they were made of: those of sequences and times, "" for none.
    rows_of : Whole or None
        Facts on all sequences, if these are some `rows` of them.
    channels : tuple of int
        Numbers of symbols of each channel, where steps have an observation in each of several: the
        first symbols are those of the first channel, and so on. Empty where there is one. A step
        without an observation in a channel is missing there alone.
    weights : array, ``(num_sequences,)``, or None
        How much each sequence counts in averages over sequences; likelihoods are not weighted.
    known : int64 array, ``(num_steps,)``, or empty
        The hidden state of each step where it is known, -1 elsewhere: see `with_known_states`.
    state_names : str array or None
        What the hidden states that are known are called, the first ones of a model.
    """

    offsets: IntArray
    indptr: IntArray
    symbols: NDArray[np.int32]
    counts: NDArray[np.int32]
    num_symbols: int
    order: IntArray
    inputs: FloatArray | None = None
    alphabet: NDArray[np.str_] | None = None
    names: NDArray[np.str_] | None = None
    starts: NDArray[Any] | None = None
    every: int = 1
    design: Design | None = None
    keys: tuple[str, str] = ("", "")
    rows_of: Whole | None = None
    channels: tuple[int, ...] = ()
    weights: FloatArray | None = None
    known: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    state_names: NDArray[np.str_] | None = None

    @property
    def labels(self) -> NDArray[Any]:
        """What symbols are called; their numbers if they have no names, ``(num_symbols,)``."""
        return np.arange(self.num_symbols) if self.alphabet is None else self.alphabet

    @property
    def sequence_of_step(self) -> IntArray:
        """The sequence of each step, ``(num_steps,)``."""
        return np.repeat(np.arange(self.num_sequences), self.lengths)

    @property
    def step_of_entry(self) -> IntArray:
        """The step of each entry, ``(num_entries,)``."""
        return np.repeat(np.arange(self.num_steps), np.diff(self.indptr))

    @property
    def symbol_totals(self) -> FloatArray:
        """How often each symbol was observed, ``(num_symbols,)``."""
        return np.bincount(self.symbols, self.counts, self.num_symbols).astype(np.float64)

    @property
    def stick_of_symbol(self) -> IntArray:
        """The place of each symbol in `order`, ``(num_symbols,)``."""
        return np.argsort(self.order)

    @property
    def observed(self) -> BoolArray:
        """Whether each step has observations, ``(num_steps,)``."""
        return np.diff(self.indptr) > 0

    @property
    def place_of_step(self) -> IntArray:
        """The place of each step in its sequence, from 0, ``(num_steps,)``."""
        return np.arange(self.num_steps) - np.repeat(self.offsets[:-1], self.lengths)

    @property
    def follows(self) -> BoolArray:
        """Whether each step has one before it in its sequence, ``(num_steps,)``."""
        follows = np.ones(self.num_steps, dtype=np.bool_)
        follows[self.offsets[:-1]] = False
        return follows

    @property
    def step_weights(self) -> FloatArray | None:
        """The weight of each step, that of its sequence, ``(num_steps,)``."""
        return None if self.weights is None else np.repeat(self.weights, self.lengths)

    @property
    def weighting(self) -> str:
        """A sentence on weights for captions of averages over sequences; empty without any."""
        return "" if self.weights is None else " Sequences count by their weights."

    @property
    def channel_slices(self) -> list[slice]:
        """The symbols of each channel."""
        ends = np.cumsum([0, *(self.channels or (self.num_symbols,))]).tolist()
        return [slice(first, end) for first, end in pairwise(ends)]

    def channel(self, number: int) -> "Sequences":
        """The sequences with the symbols of one of their channels alone."""
        if not self.channels:
            return self
        columns = self.channel_slices[number]
        order = self.order[(self.order >= columns.start) & (self.order < columns.stop)]
        one = replace(
            self, channels=(), num_symbols=len(order), order=order - columns.start, rows_of=None,
            alphabet=_at(self.alphabet, columns),
        )  # fmt: skip
        return with_rows(one, self.to_csr()[:, columns])

    @property
    def num_sequences(self) -> int:
        """Number of sequences."""
        return len(self.offsets) - 1

    @property
    def num_steps(self) -> int:
        """Number of steps of all sequences, missing ones included."""
        return len(self.indptr) - 1

    @property
    def lengths(self) -> IntArray:
        """Steps of each sequence, ``(num_sequences,)``."""
        return np.diff(self.offsets)

    @property
    def num_inputs(self) -> int:
        """Covariates per step, 0 without inputs."""
        return 0 if self.inputs is None else self.inputs.shape[1]

    @property
    def totals(self) -> IntArray:
        """Observations of each step, ``(num_steps,)``: 0 where it is missing."""
        return np.diff(_ends(self.counts)[self.indptr])

    @property
    def num_rows(self) -> int:
        """Number of sequences: they are the rows of sweeps in blocks."""
        return self.num_sequences

    @property
    def row_offsets(self) -> IntArray:
        """Row r is the steps ``row_offsets[r]:row_offsets[r + 1]``."""
        return self.offsets

    @property
    def row_costs(self) -> IntArray:
        """The relative cost of a sequence in a sweep: its steps."""
        return self.lengths

    @property
    def whole(self) -> Whole:
        """Facts on all sequences, if these are some `rows` of them; else on these."""
        return _whole(self) if self.rows_of is None else self.rows_of

    def rows(self, chosen: slice) -> "Sequences":
        """Neighbouring sequences, for sweeps in blocks: entries and inputs are not copied.

        They keep the `whole`; ``slice(0, 0)`` has nothing else.
        """
        rows = range(self.num_sequences)[chosen]
        if rows.step != 1:
            raise ValueError(f"part must be of neighbouring sequences, got {chosen}")
        offsets = self.offsets[rows.start : rows.start + len(rows) + 1]
        steps = slice(offsets[0], offsets[-1])
        indptr = self.indptr[steps.start : steps.stop + 1]
        entries = slice(indptr[0], indptr[-1])
        chosen = slice(rows.start, rows.start + len(rows))
        return replace(
            self._of(chosen, steps, entries), offsets=offsets - offsets[0],
            indptr=indptr - indptr[0], rows_of=self.whole,
        )  # fmt: skip

    def times(self, sequences: ArrayLike, steps: ArrayLike) -> NDArray[Any] | None:
        """When steps of sequences are, dates or whole numbers; None without times.

        Parameters
        ----------
        sequences, steps : int arrays of one shape
            Numbers of sequences, and of steps from 0 in each; steps after the last are ahead.
        """
        if self.starts is None:
            return None
        when = self.starts[np.asarray(sequences)] + self.every * np.asarray(steps)
        return when.astype("datetime64[s]") if when.dtype.kind == "M" else np.asarray(when)

    def to_csr(self) -> "scipy.sparse.csr_array":
        """The counts as a scipy sparse array, ``(num_steps, num_symbols)``."""
        entries = self.counts, self.symbols, self.indptr
        return scipy.sparse.csr_array(entries, shape=(self.num_steps, self.num_symbols))

    def take(self, sequences: ArrayLike) -> "Sequences":
        """Some of the sequences, in the order given; symbols and their order stay as they are."""
        chosen = np.arange(self.num_sequences)[np.atleast_1d(np.asarray(sequences))]
        return self._pieces(self.offsets[chosen], self.offsets[chosen + 1], chosen)

    def last(self, steps: int) -> "Sequences":
        """The last steps of every sequence, so many at most; the same object if that is all."""
        if self.lengths.max() <= steps:
            return self
        start = np.maximum(self.offsets[:-1], self.offsets[1:] - steps)
        return self._pieces(start, self.offsets[1:], np.arange(self.num_sequences))

    def split(self, at: int | ArrayLike) -> tuple["Sequences", "Sequences"]:
        """Cut every sequence in two: its first `at` steps and the others.

        Parameters
        ----------
        at : int or int array, ``(num_sequences,)``
            Steps of the first part; negative ones count from the end, so that ``split(-10)`` holds
            out the last ten steps of every sequence.

        Raises
        ------
        ValueError
            If a part of a sequence would be empty.
        """
        asked = np.broadcast_to(np.asarray(at, dtype=np.int64), self.lengths.shape)
        cut = np.where(asked < 0, self.lengths + asked, asked)
        bad = (cut <= 0) | (cut >= self.lengths)
        if bad.any():
            s = int(np.argmax(bad))
            got = f"{asked[s]} for sequence {s + 1}, of {self.lengths[s]} steps"
            raise ValueError(f"at must leave steps on both sides of every cut, got {got}")
        bounds, every = self.offsets[:-1] + cut, np.arange(self.num_sequences)
        first = self._pieces(self.offsets[:-1], bounds, every)
        return first, self._pieces(bounds, self.offsets[1:], every)

    def with_design(self, design: Design, *, effects: bool | None = None) -> "Sequences":
        """The same sequences with a design of all steps.

        With `effects` the inputs also have a column for each effect of its terms; if left out, as
        the present inputs have.
        """
        inputs = design.matrix[:, design.names != "Intercept"]
        if effects or (effects is None and self.num_effects):
            inputs = np.concatenate([inputs, _effect_columns(design)], axis=1)
        return replace(self, design=design, inputs=inputs if inputs.size else None)

    def with_known_states(self, states: object) -> "Sequences":
        """The same sequences with the hidden states of the steps where these are known.

        `pgmult.sequences.MultinomialHMM` and `pgmult.sequences.MixedHMM` take them: the steps are
        in these states, which have the lowest numbers and these names.

        Parameters
        ----------
        states : array or list, ``(num_steps,)``
            A label for each step of all sequences, one sequence after the other; None or "" where
            the state is not known. States are in the order of numbers, or of the alphabet.

        Raises
        ------
        ValueError
            If there is not one for each step, or none is known.

        Examples
        --------
        >>> as_sequences(["ABBA"]).with_known_states(["well", None, None, "ill"]).known.tolist()
        [1, -1, -1, 0]
        """
        cells = np.asarray(states, dtype=object)
        if cells.shape != (self.num_steps,):
            raise ValueError(f"states must be {self.num_steps:,}, one a step, got {cells.shape}")
        is_known = ~missing_in(cells) & (cells != "")
        if not is_known.any():
            raise ValueError("states must be known at a step at least, got none")
        names, number = numbered(in_one_form(labels_of(cells[is_known], "states"), "states"))
        known = np.full(self.num_steps, -1)
        known[is_known] = number
        return replace(self, known=known, state_names=names)

    def of_states(self, num_states: int) -> "Sequences":
        """The same sequences, refused where more hidden states are known than a model has."""
        if self.state_names is not None and len(self.state_names) > num_states:
            known = f"{len(self.state_names)} ({few_of(self.state_names)})"
            raise ValueError(f"num_states must be at least the known {known}, got {num_states}")
        return self

    def names_of_states(self, num_states: int) -> list[str]:
        """What hidden states are called: as the known ones are, or by their numbers from 1."""
        named = [] if self.state_names is None else self.state_names.tolist()
        return [*named, *(str(m + 1) for m in range(len(named), num_states))]

    def beginnings(self) -> "Sequences":
        """Every beginning of every sequence, of one step, of two, ..., each a sequence."""
        sizes = np.concatenate([np.arange(1, n + 1) for n in self.lengths])
        which = self.sequence_of_step
        first = self.offsets[which]
        return self._pieces(first, first + sizes, which)

    @property
    def num_effects(self) -> int:
        """How many inputs, the last ones, are effects of the design's terms."""
        if self.design is None or not self.design.terms:
            return 0
        return self.num_inputs - int((self.design.names != "Intercept").sum())

    def extended(self, steps: int, inputs: Any = None) -> "Sequences":
        """The same sequences with missing steps appended to each, for forecasts.

        Parameters
        ----------
        steps : int
            How many, >= 1.
        inputs : array, ``(num_sequences, steps, num_inputs)``, or table, optional
            Covariates of the new steps; required if, and only if, the sequences have inputs. With a
            formula they are a table of its columns, one row per step, sequence after sequence, or a
            design that is coded as that of the sequences.

        Raises
        ------
        ValueError
            If inputs are missing, superfluous, not finite or of another shape.
        """
        steps = as_repeats(steps, "steps")
        after, count = np.repeat(self.offsets[1:], steps), self.num_sequences * steps
        longer = replace(
            self, offsets=self.offsets + steps * np.arange(self.num_sequences + 1),
            indptr=_ends(np.insert(np.diff(self.indptr), after, 0)), inputs=None, rows_of=None,
            known=np.insert(self.known, after, -1) if self.known.size else self.known,
        )  # fmt: skip
        if self.design is not None:
            if inputs is None:
                wanted = f"a table with {count} rows, {steps} of each sequence (inputs=, --future)"
                raise ValueError(f"inputs must say what acts on the steps ahead, {wanted}")
            if isinstance(inputs, np.ndarray):
                inputs = inputs.reshape(-1, inputs.shape[-1])
            if not isinstance(inputs, Design):
                self.design.report_new_labels(inputs, "inputs")
                inputs = self.design.like(inputs, new_levels=True, num_rows=count)
            order = np.insert(np.arange(self.num_steps), after, self.num_steps + np.arange(count))
            design = joined_designs(self.design, inputs, order)
            return longer.with_design(design, effects=self.num_effects > 0)
        if self.inputs is None:
            if inputs is not None:
                raise ValueError("these sequences have no inputs, so new steps take none")
            return longer
        shape = (self.num_sequences, steps, self.num_inputs)
        if inputs is None:
            raise ValueError(f"inputs must be those of the steps ahead, of shape {shape}")
        new = as_finite(inputs, "inputs")
        if new.shape != shape:
            raise ValueError(f"inputs of new steps must have shape {shape}, got {new.shape}")
        new = new.reshape(count, self.num_inputs)
        return replace(longer, inputs=np.insert(self.inputs, after, new, axis=0))

    def _pieces(self, start: IntArray, stop: IntArray, sequences: IntArray) -> "Sequences":
        """Steps ``start[i]:stop[i]`` of sequence ``sequences[i]``, for all i."""
        steps = _ranges(start, stop)
        first, end = self.indptr[steps], self.indptr[steps + 1]
        part = self._of(sequences, steps, _ranges(first, end))
        if part.starts is not None:
            later = self.every * (start - self.offsets[sequences])
            part = replace(part, starts=part.starts + later)
        return replace(part, offsets=_ends(stop - start), indptr=_ends(end - first), rows_of=None)

    def _of(self, sequences: _Index, steps: _Index, entries: _Index) -> "Sequences":
        """What some sequences, steps and entries have, beside where these begin."""
        return replace(
            self, symbols=self.symbols[entries], counts=self.counts[entries],
            inputs=_at(self.inputs, steps), names=_at(self.names, sequences),
            known=self.known[steps] if self.known.size else self.known,
            design=None if self.design is None else self.design.take(steps),
            weights=_at(self.weights, sequences), starts=_at(self.starts, sequences),
        )  # fmt: skip

    def __repr__(self) -> str:
        inputs = f", {self.num_inputs} inputs" if self.num_inputs else ""
        observations = int(self.counts.sum(dtype=np.int64))
        return (
            f"Sequences({self.num_sequences:,} sequences, {self.num_steps:,} steps,"
            f" {self.num_symbols:,} symbols, {observations:,} observations{inputs})"
        )


@once_a_data_set
def _whole(data: Sequences) -> Whole:
    n, sticks = data.num_symbols - 1, data.stick_of_symbol[data.symbols]
    taken = np.bincount(sticks, data.counts, minlength=data.num_symbols).astype(np.int64)
    begins = data.indptr[:-1][data.observed]
    deepest = np.maximum.reduceat(sticks, begins) if len(begins) else sticks
    depths = np.bincount(np.minimum(deepest + 1, n), minlength=n + 1)
    reached = depths[::-1].cumsum()[::-1][1:].astype(np.int64)
    return Whole(data.num_sequences, data.num_steps, taken, reached)


def _effect_columns(design: Design) -> FloatArray:
    """A column for each effect of a design's terms; those of new levels last."""
    latent = latent_of(design)
    fresh = [piece.fresh for piece in latent.pieces if piece.fresh is not None]
    columns = [latent.family.design[:, design.matrix.shape[1] :], *fresh]
    return np.concatenate([block.toarray() for block in columns], axis=1, dtype=np.float64)


def _at(values: NDArray[Any] | None, places: _Index) -> NDArray[Any] | None:
    """Some entries of an array, where there is one."""
    return None if values is None else values[places]


def _ends(lengths: NDArray[Any]) -> IntArray:
    """Where pieces of these lengths begin and end, one after the other, from 0."""
    return np.append(0, np.cumsum(lengths, dtype=np.int64))


def _ranges(start: IntArray, stop: IntArray) -> IntArray:
    """All the integers of ``start[i]:stop[i]``, one range after the other."""
    lengths = stop - start
    return np.repeat(start - _ends(lengths)[:-1], lengths) + np.arange(lengths.sum())


def as_sequences(
    data: object, *, num_symbols: int | None = None,
    alphabet: Sequence[str] | NDArray[np.str_] | None = None, inputs: object = None,
    order: str | ArrayLike | None = None, names: Sequence[str] | NDArray[np.str_] | None = None,
) -> Sequences:  # fmt: skip
    """A `Sequences` from symbols, labels, strings or counts.

    Parameters
    ----------
    data : list of sequences, one sequence, or Sequences
        A sequence is

        * a 1-D array of integers, the symbols 0, ..., K - 1, with -1 where a step is missing;
        * a string, each character a symbol;
        * a list, 1-D array or pandas Series of strings, each a symbol, with None where a step is
          missing (a Series of lists is many sequences);
        * a 2-D array or scipy sparse matrix of counts, ``(num_steps, num_symbols)``, a row of
          zeros where a step is missing;
        * a DataFrame of counts, whose columns are the symbols and whose rows are the steps.

        A list of strings is taken for many sequences of characters: put words in a list of lists.
    num_symbols : int, optional
        K, for integer symbols; by default one more than the largest, which must be below 10**6.
    alphabet : sequence of str, optional
        What the symbols are called; by default the labels that occur, sorted.
    inputs : array or list of arrays, optional
        Covariates: ``(num_steps, num_inputs)`` for all steps together, or one such array a
        sequence. Missing steps need theirs as well.
    order : "frequency", "given" or a permutation of 0, ..., K - 1, optional
        `Sequences.order`: stick-breaking models mix best with frequent symbols first, the default;
        `Sequences` that are given keep theirs.
    names : sequence of str, optional
        One name per sequence.

    Raises
    ------
    TypeError
        If `data` are none of these, such as a dict, bytes, a set or a generator.
    ValueError
        If a sequence is empty, a symbol or label is outside the alphabet, a count is not a
        non-negative integer, there is no observation at all or shapes do not agree.

    Examples
    --------
    >>> as_sequences([[0, 2, -1, 1], [1, 1]]).totals
    array([1, 1, 0, 1, 1, 1])
    """
    if num_symbols is not None:
        num_symbols = as_positive_int(num_symbols, "num_symbols", minimum=2)
    if alphabet is not None:
        alphabet = as_strings(list(alphabet) if isinstance(alphabet, str) else alphabet, "alphabet")
    if isinstance(data, Sequences):
        _agreed(num_symbols, data.num_symbols)
    else:
        data, alphabet = _read(data, num_symbols, alphabet)
        order = "frequency" if order is None else order
    changes: dict[str, Any] = {}
    if alphabet is not None:
        changes["alphabet"] = _as_labels(alphabet, data.num_symbols)
    if inputs is not None:
        changes["inputs"] = _as_inputs(inputs, data.lengths)
    if names is not None:
        changes["names"] = one_each = np.array(as_strings(names, "names"), dtype=np.str_)
        if len(one_each) != data.num_sequences:
            wanted = f"one a sequence, {data.num_sequences}"
            raise ValueError(f"names must be {wanted}, got {len(one_each)}")
    if order is not None:
        changes["order"] = as_order(order, data.symbol_totals)
    return replace(data, **changes) if changes else data


def _read(data: object, num_symbols: int | None, alphabet: _Names) -> tuple[Sequences, _Names]:
    """Sequences, their symbols in the order of their numbers, and what these are called."""
    kinds, parts = set(), []
    for s, cells in enumerate(_as_parts(data)):
        if isinstance(cells, _Table):
            columns = [str(column) for column in cells.columns]
            alphabet = columns if alphabet is None else alphabet
            if columns != list(alphabet):
                wanted = f"the alphabet, {few_of(alphabet)}, got {few_of(columns)}"
                raise ValueError(f"the columns of sequence {s + 1} must be {wanted}")
        kind, cells = _as_part(cells, s)
        kinds.add(kind)
        parts.append(cells)
    if not parts:
        raise ValueError("data must hold at least one sequence, got none")
    lengths = np.array([cells.shape[0] for cells in parts])
    if not lengths.all():
        raise ValueError(f"data must have steps, sequence {lengths.argmin() + 1} is empty")
    if len(kinds) > 1:
        raise ValueError(f"data must be of one kind, got {' and '.join(sorted(kinds))}")
    if "labels" in kinds:
        parts, alphabet = _number_labels(parts, alphabet)
    asked = num_symbols if alphabet is None else len(alphabet)
    table = _from_counts(parts) if "counts" in kinds else _from_symbols(parts, asked)
    size = _agreed(num_symbols, table.shape[1])
    if num_symbols is None and size > _MOST_SYMBOLS:
        wanted = f"symbols below {_MOST_SYMBOLS:,} unless num_symbols is given"
        raise ValueError(f"data must be {wanted}, got {size - 1:,}")
    if size < 2:
        raise ValueError(f"data must have at least 2 symbols, got {size}")
    if not table.nnz:
        raise ValueError("data must hold an observation: all steps are missing")
    return Sequences(_ends(lengths), *_arrays_of(table), size, np.arange(size)), alphabet


_OF_A_WORD = 20  # characters, at most, on average


@runtime_checkable
class _Table(Protocol):
    """A DataFrame, of any library."""

    columns: Any

    def to_numpy(self) -> NDArray[Any]: ...


@runtime_checkable
class _Column(Protocol):
    """A Series or an array of pandas."""

    dtype: Any

    def to_numpy(self) -> NDArray[Any]: ...

    def isna(self) -> object: ...


def _is_labels(values: Any) -> bool:
    """Are these strings, with None where a step is missing?"""
    return all(x is None or isinstance(x, str) for x in values)


def _as_parts(data: object) -> list[object]:
    """The data of each sequence."""
    if isinstance(data, list | tuple):
        numbers = all(isinstance(x, int | float | np.integer | np.floating) for x in data)
        return [np.asarray(data)] if data and numbers else list(data)
    if isinstance(data, np.ndarray):
        if data.ndim not in (1, 2, 3):
            raise ValueError(f"data must be an array of 1 to 3 axes, got shape {data.shape}")
        nested = data.ndim == 1 and data.dtype == object and not _is_labels(data)
        return list(data) if nested or data.ndim == 3 else [data]
    if isinstance(data, _Column) and not isinstance(data, _Table):
        cells = data.to_numpy()
        if cells.dtype == object and any(isinstance(x, list | tuple | np.ndarray) for x in cells):
            return list(cells)  # a list in each cell, as groupby(...).agg(list) has it
        _refuse_texts(cells)
    return [data]


def _refuse_texts(cells: Array) -> None:
    """Refuse a series of strings that may be one sequence of words or a sequence in each cell."""
    words = cells.tolist() if cells.dtype.kind in "OU" else []
    if len(words) < 2 or not all(isinstance(word, str) for word in words):
        return
    lengths = [len(word) for word in words]
    if max(lengths) > 1 and (len(set(words)) == len(words) or np.mean(lengths) > _OF_A_WORD):
        raise ValueError(
            f"data must be sequences, got a column of {len(words):,} strings such as"
            f" {brief(words[0])}: list(data) takes each for a sequence of characters, [data] all of"
            " them for one sequence of words"
        )


def _as_part(cells: object, s: int) -> tuple[str, Array | scipy.sparse.csr_array]:
    """Whether a sequence is of labels, symbols or counts, and an array of them."""
    if scipy.sparse.issparse(cells):
        return "counts", scipy.sparse.csr_array(cells)
    if isinstance(cells, str):
        cells = list(unicodedata.normalize("NFC", cells))
    elif isinstance(cells, _Table):
        name, cells = cells.columns[0], cells.to_numpy()
        if cells.dtype == object:
            hint = f"give a column of lists or strings alone: frame[{name!r}]"
            got = f"other cells in sequence {s + 1} ({hint})"
            raise TypeError(f"data must hold integers, strings or counts, got {got}")
    elif isinstance(cells, _Column):
        missing, cells = np.asarray(cells.isna()), cells.to_numpy()
        cells = np.where(missing, np.array(None), cells) if cells.dtype == object else cells
    elif not isinstance(cells, list | tuple | np.ndarray):
        raise TypeError(
            "data must be a list, string, array, Series or DataFrame of counts for each sequence,"
            f" got {brief(cells)} for number {s + 1} (decode bytes; give values of a dict and"
            " names=)"
        )
    if isinstance(cells, list | tuple) and any(isinstance(x, str) for x in cells):
        labels = np.empty(len(cells), dtype=object)
        labels[:] = cells
        return "labels", labels
    try:
        array = np.asarray(cells)
    except ValueError as error:
        raise ValueError(f"data must be rectangular, sequence {s + 1} is not: {error}") from None
    words = array.dtype.kind == "U" or (array.dtype == object and len(array) > 0)
    if words and array.ndim == 1 and _is_labels(array):
        return "labels", array
    if array.dtype.kind not in "iufb":
        got = f"{array.dtype} in sequence {s + 1}"
        raise TypeError(f"data must hold integers, strings or counts, got {got}")
    if array.ndim not in (1, 2):
        raise ValueError(f"data must have 1 or 2 axes, got shape {array.shape} in sequence {s + 1}")
    return ("counts" if array.ndim == 2 else "symbols"), array


def few_of(symbols: Iterable[object]) -> str:
    """The first of some names, for messages."""
    names = list(map(str, symbols))
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


def _agreed(num_symbols: int | None, number: int) -> int:
    """The number of symbols that data have, if it is the one asked for."""
    if num_symbols not in (None, number):
        raise ValueError(f"num_symbols is {num_symbols}, the data have {number}")
    return number


def in_one_form(labels: NDArray[np.str_], what: str) -> NDArray[np.str_]:
    """Labels in Unicode's composed form, so that those which differ by their form alone are one.

    That some were two is warned of.
    """
    different, number = np.unique(labels, return_inverse=True)
    composed = np.array([unicodedata.normalize("NFC", x) for x in different.tolist()], np.str_)
    changed, often = np.unique(composed, return_counts=True)
    if merged := len(composed) - len(changed):
        said = f"such as two of {str(changed[often > 1][0])!r}: they are one ({merged:,} such)"
        differ = f"{what} has labels that differ by their Unicode form alone"
        warnings.warn(f"{differ}, {said}", stacklevel=3)
    return np.asarray(composed[number])


def _number_labels(parts: list[Array], alphabet: _Names) -> tuple[list[Any], Any]:
    """Numbers for labels, -1 for None."""
    written = sorted({str(x) for words in parts for x in words if x is not None})
    composed = in_one_form(np.array(written, dtype=np.str_), "data").tolist()
    labels = sorted(set(composed), key=order_of) if alphabet is None else alphabet
    number: dict[Any, int] = {str(label): i for i, label in enumerate(labels)}
    alike = {unicodedata.normalize("NFC", label): i for label, i in number.items()}
    pairs = zip(written, composed, strict=True)
    number = {label: alike[other] for label, other in pairs if other in alike} | number
    number[None] = -1
    for s, words in enumerate(parts):
        for t, word in enumerate(words):
            if word not in number:
                got = f"{word!r} at step {t + 1} of sequence {s + 1} (a missing step is None)"
                raise ValueError(f"data must be labels of the alphabet of symbols, got {got}")
    return [np.array([number[x] for x in words], dtype=np.int64) for words in parts], labels


def _from_symbols(parts: list[NDArray[Any]], num_symbols: int | None) -> scipy.sparse.csr_array:
    top = 2**31 - 1 if num_symbols is None else num_symbols
    for s, row in enumerate(parts):
        bad = ~((row >= -1) & (row < top) & (row == np.floor(row)))
        if bad.any():
            t, last = int(np.argmax(bad)), "K - 1" if num_symbols is None else top - 1
            got = f"{row[t]} at step {t + 1} of sequence {s + 1} (a missing step is -1)"
            raise ValueError(f"data must be symbols from 0 to {last}, got {got}")
    steps = np.concatenate([row.astype(np.int32) for row in parts])
    symbols = steps[steps >= 0]
    if num_symbols is None:
        num_symbols = int(symbols.max(initial=-1)) + 1
    entries = np.ones(len(symbols), dtype=np.int32), symbols, _ends(steps >= 0)
    return scipy.sparse.csr_array(entries, shape=(len(steps), num_symbols))


def _from_counts(parts: list[Any]) -> scipy.sparse.csr_array:
    matrices: list[Any] = []
    for s, cells in enumerate(parts):
        if scipy.sparse.issparse(cells):
            counts = as_counts(cells.data, f"data's stored counts of sequence {s + 1}")
            matrix = scipy.sparse.csr_array((counts, cells.indices, cells.indptr), cells.shape)
        else:
            matrix = scipy.sparse.csr_array(as_counts(cells, f"data's counts of sequence {s + 1}"))
        if matrices and matrix.shape[1] != matrices[0].shape[1]:
            got = f"{matrix.shape[1]} columns in sequence {s + 1} and {matrices[0].shape[1]} in 1"
            raise ValueError(f"data must count the same symbols in every sequence, got {got}")
        matrices.append(matrix)
    table = scipy.sparse.csr_array(scipy.sparse.vstack(matrices, format="csr"))
    largest = int(table.data.max(initial=0))  # sums of larger ones may not fit in 64 bits
    if largest < 2**31:
        table.sum_duplicates()
        largest = int(table.data.max(initial=0))
    if largest >= 2**31:
        raise ValueError(f"data must be counts below 2**31, got {largest}")
    table.eliminate_zeros()
    return table


def _as_labels(labels: Sequence[str] | NDArray[np.str_], num_symbols: int) -> NDArray[np.str_]:
    array = np.asarray(list(labels), dtype=np.str_)
    if not len(array) == len(different := np.unique(array)) == num_symbols:
        got = f"{len(array)} of which {len(different)} differ"
        raise ValueError(f"alphabet must have {num_symbols} different labels, got {got}")
    return array


def _as_inputs(inputs: Any, lengths: IntArray) -> FloatArray:
    if isinstance(inputs, list | tuple) and len(inputs) == len(lengths) and np.ndim(inputs[0]) == 2:
        arrays = [as_finite(rows, f"inputs of sequence {s + 1}") for s, rows in enumerate(inputs)]
        for s, (array, length) in enumerate(zip(arrays, lengths.tolist(), strict=True)):
            if array.shape != (shape := (length, arrays[0].shape[1])):
                raise ValueError(
                    f"inputs of sequence {s + 1} must have shape {shape}, got {array.shape}"
                )
        inputs = np.concatenate(arrays)
    array, total = as_finite(inputs, "inputs"), int(lengths.sum())
    if array.ndim != 2 or len(array) != total or array.shape[1] == 0:
        raise ValueError(f"inputs must have shape ({total}, num_inputs), got {array.shape}")
    return array


def sequences_for(model: str, data: object, *takes: str) -> Sequences:
    """`as_sequences` of data, refused where they have inputs, channels or known states.

    `takes` names what the model takes of these: "inputs", "channels", "known states".
    """
    sequences = as_sequences(data)
    if sequences.channels and "channels" not in takes:
        got = f"{len(sequences.channels)} (MultinomialHMM takes several)"
        raise ValueError(f"{model} takes one channel, the sequences have {got}")
    if sequences.known.size and "known states" not in takes:
        raise ValueError(f"{model} has no hidden states (MultinomialHMM and MixedHMM have)")
    if (sequences.inputs is not None or sequences.design is not None) and "inputs" not in takes:
        raise ValueError(f"{model} takes no inputs (MixedHMM and MixedMarkovChain take them)")
    return sequences


def step_rows(data: Sequences) -> ObservedRows:
    """The steps as rows of counts, dense, with their totals, sequences and inputs."""
    constants: dict[str, Any] = {
        "totals": (("step",), data.totals), "sequence_of_step": (("step",), data.sequence_of_step),
    }  # fmt: skip
    if data.inputs is not None:
        constants["inputs"] = (("step", "input"), data.inputs)
    return ObservedRows(("step", "symbol"), data.to_csr().toarray(), constants)


def in_channels(channels: Mapping[str, object]) -> Sequences:
    """Join sequences of the same steps to one whose steps have an observation in each channel.

    `pgmult.sequences.MultinomialHMM` takes them: symbols of the channels are independent given the
    hidden state.

    Parameters
    ----------
    channels : mapping from str to what `as_sequences` takes
        Sequences of the same lengths; all else but symbols is that of the first.

    Raises
    ------
    ValueError
        If there are fewer than two, or lengths differ.

    Examples
    --------
    >>> both = in_channels({"job": ["AAB", "BB"], "place": [[0, -1, 1], [1, 0]]})
    >>> both.channels, both.alphabet.tolist(), both.totals.tolist()
    ((2, 2), ['job: A', 'job: B', 'place: 0', 'place: 1'], [2, 1, 2, 2, 2])
    """
    channels = as_mapping(channels, "channels")
    if len(channels) < 2:
        raise ValueError(f"channels must be two or more, got {len(channels)}")
    with under_name("channels", of="data"):
        sequences = {name: as_sequences(data) for name, data in channels.items()}
    first = next(iter(sequences.values()))
    for name, data in sequences.items():
        if data.lengths.tolist() != first.lengths.tolist():
            raise ValueError(f"channels must have the same steps, {name!r} differs from the first")
    labels = [f"{name}: {label}" for name, data in sequences.items() for label in data.labels]
    sizes = tuple(data.num_symbols for data in sequences.values())
    before = np.cumsum([0, *sizes[:-1]])
    order = [data.order + start for data, start in zip(sequences.values(), before, strict=True)]
    rows = scipy.sparse.hstack([data.to_csr() for data in sequences.values()], format="csr")
    return replace(
        with_rows(first, rows), num_symbols=sum(sizes), channels=sizes,
        order=np.concatenate(order), alphabet=np.array(labels),
    )  # fmt: skip


def with_rows(like: Sequences, rows: Any) -> Sequences:
    """The same sequences with other observations, a sparse array ``(num_steps, num_symbols)``."""
    rows = scipy.sparse.csr_array(rows)
    indptr, symbols, counts = _arrays_of(rows)
    return replace(like, indptr=indptr, symbols=symbols, counts=counts)


def _arrays_of(rows: Any) -> tuple[IntArray, NDArray[np.int32], NDArray[np.int32]]:
    """Where the entries of each step begin, their symbols and their counts."""
    symbols, counts = rows.indices.astype(np.int32), rows.data.astype(np.int32)
    return rows.indptr.astype(np.int64), symbols, counts


def one_of(chances: FloatArray, probs: FloatArray) -> IntArray:
    """A draw from each row of probabilities, by one uniform number each."""
    running = np.cumsum(probs, axis=-1)
    return np.asarray((running <= (chances * running[..., -1])[..., None]).sum(axis=-1))


def simulate_symbols(rng: Generator, probs: FloatArray, like: Sequences) -> Sequences:
    """Draw the observations of every step given its probabilities.

    Parameters
    ----------
    rng : numpy.random.Generator
    probs : array, ``(num_steps, num_symbols)``
        Rows sum to 1, over the symbols of each channel.
    like : Sequences
        Sets how many observations each step has, and all else that sequences hold.

    Returns
    -------
    Sequences
    """
    if like.channels:
        each = [
            simulate_symbols(rng, probs[:, columns], like.channel(number)).to_csr()
            for number, columns in enumerate(like.channel_slices)
        ]
        return with_rows(like, scipy.sparse.hstack(each, format="csr"))
    totals = like.totals
    rows = np.flatnonzero(totals == 1)
    single = one_of(rng.random(len(rows)), probs[rows])
    many = np.flatnonzero(totals > 1)
    exact = probs[many].astype(np.float64)
    drawn = rng.multinomial(totals[many], exact / exact.sum(axis=1, keepdims=True))
    row, symbol = np.nonzero(drawn)
    steps = np.concatenate([rows, many[row]])
    counts = np.concatenate([np.ones_like(single), drawn[row, symbol]])
    entries = counts, (steps, np.concatenate([single, symbol]))
    return with_rows(like, scipy.sparse.csr_array(entries, probs.shape))

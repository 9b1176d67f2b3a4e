"""Tidy tables as sequences: one row for each observation.

::

    patient  day         state     count
    p1       2024-03-01  stable        1
    p1       2024-03-03  relapse       1
    p2       2024-02-11  stable        1

Steps between the first and the last of a sequence that have no row are missing, and so is a step
whose symbol is unknown: it keeps its place.

>>> visits = {"day": [1, 3, 4], "state": ["stable", "relapse", "stable"]}
>>> data = sequences_of(visits, symbol="state", time="day")
>>> data.totals, data.alphabet
(array([1, 0, 1, 1]), array(['relapse', 'stable'], dtype='<U7'))
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse

from pgmult.core import tables
from pgmult.core.arguments import as_kind, as_strings, under_name
from pgmult.core.dates import dates_of
from pgmult.core.labels import find_labels, labels_of, numbered, warn_of_look_alikes
from pgmult.core.tables import Cells, exact_columns, missing_in
from pgmult.core.typing import Array, ArrayLike, BoolArray, FloatArray, IntArray, StrArray
from pgmult.core.validate import as_finite, refuse_rows
from pgmult.formulas.design import Design, make_design, table_of
from pgmult.formulas.language import parse
from pgmult.sequences.data import times
from pgmult.sequences.data.forms import in_steps
from pgmult.sequences.data.sequences import Sequences, as_sequences, in_channels, in_one_form

_MOST_STEPS = 10**8
_FEW_TWICE = 0.1  # of the times that have a row


def sequences_of(
    table: object, *, symbol: str | Sequence[str] | None = None, sequence: str | None = None,
    time: str | None = None, begin: str | None = None, end: str | None = None,
    wide: str | Sequence[str] | None = None, every: str | int | None = None,
    week_start: str = "monday", count: str | None = None, weight: str | None = None,
    known: str | None = None, order: str | ArrayLike | None = None,
    inputs: str | Design | None = None, maps: Mapping[str, object] | None = None,
) -> Sequences:  # fmt: skip
    """`Sequences` from a tidy table.

    Parameters
    ----------
    table : data frame (pandas, polars, pyarrow, ...), labelled array of xarray, or mapping
    symbol : str or sequence of str
        The column of the symbols; left out with `wide`. Several columns are channels: see
        `pgmult.sequences.in_channels`. A row without one is a missing step, unless
        others share it. Symbols have the order of a categorical column, else that of numbers or of
        the alphabet.
    sequence : str, optional
        The column that says to which sequence a row belongs; by default all rows are of one.
        Sequences have the order of a categorical column, else that of numbers or of the alphabet.
    time : str, optional
        The column of steps, whole numbers or dates. Rows of one sequence and step add up, and steps
        without a row are missing. Left out, every row is a step in the order of the rows.
        Dates that are written as numbers, 20240131, and times since 1970 (Unix seconds, or
        thousandths, ... of them) are recognised.
    begin, end : str, optional
        Columns of the first and the last step of each spell, where a row is a spell in a state, in
        place of `time`.
    wide : str or sequence of str, optional
        Columns of the times, where a row is a sequence: ``"y2000:y2009"``, ``"y*"`` or one by one.
    every : str or int, optional
        How long a step is, where `time` has dates: "year", "quarter", "month", "week", "day",
        "hour", "minute", "second", or a number of these, "2 weeks", "5min", "2h", "15s". Steps
        begin where the calendar does (hours at midnight, months on the first), and tables and
        figures show that time. Times of a zone are counted, and shown, in UTC where
        steps are shorter than a day: clocks change (`pgmult.read` takes the zone of times without
        one). Where `time` has numbers, how many of them make a step, 1 by default; it must be said
        where most steps would be missing.
    week_start : str
        The day that weeks begin on; on Mondays, by default, as ISO 8601 counts them.
    count : str, optional
        The column of counts; left out, every row is one observation.
    weight : str, optional
        The column that says how much each sequence counts in averages over sequences, such as how
        many people it stands for; the same in all rows of a sequence. Likelihoods are not weighted.
    known : str, optional
        The column of the hidden state, empty where that is not known: see
        `Sequences.with_known_states`.
    order : "frequency", "given" or a permutation, optional
        The order of the sticks, as in `as_sequences`.
    inputs : str or Design, optional
        A formula of what acts on the steps, such as ``"~ temperature + (1 | animal)"``: see
        `pgmult.formulas.design`; or the design of other sequences, to be coded alike. A step
        without a row has the inputs of the step before it.
    maps : mapping from name to map, optional
        See `pgmult.formulas.maps`.

    Raises
    ------
    ValueError
        If a column or a value is missing, `every` is missing, superfluous or moves times, most
        steps would be without a row though `every` is not given, a count is negative or fractional,
        a row is there twice and disagrees, or a column tells apart what would be rows of one step.
    TypeError
        If `table` is no table.
    """
    is_one = symbol is None or isinstance(symbol, str)
    channels: list[Any] = [symbol] if is_one else as_strings(symbol, "symbol")
    if not channels:
        raise ValueError(f"symbol must name at least one column, got {symbol!r}")
    if len(channels) > 1:
        if wide is not None:
            raise ValueError("symbol must be left out where wide names columns of times")
        tables.one_role_each({f"symbol {i}": name for i, name in enumerate(channels)})
        return in_channels({
            name: sequences_of(
                table, symbol=name, sequence=sequence, time=time, begin=begin, end=end,
                every=every, week_start=week_start, count=count, weight=weight, known=known,
                order=order, inputs=inputs, maps=maps,
            )
            for name in channels
        })  # fmt: skip
    roles = {
        "symbol": channels[0], "sequence": sequence, "time": time, "count": count, "begin": begin,
        "end": end, "weight": weight, "known": known,
    }  # fmt: skip
    tables.one_role_each(roles)
    table, named = in_steps(table, roles, wide, every, week_start)
    only, sequence, time = (named[name] for name in ("symbol", "sequence", "time"))
    cells = exact_columns(table, "table")
    if only is None:
        raise ValueError("symbol must name the column of the symbols, got None")

    def column(name: str, argument: str) -> Array:
        return tables.chosen_columns(cells, [name], "table", argument)[name].values

    def labelled(labels: StrArray, name: str) -> tuple[StrArray, IntArray]:
        names, number = numbered(in_one_form(labels, f"column {name!r}"))
        warn_of_look_alikes(names, f"column {name!r}")
        levels = list(cells[name].order or ())  # of a categorical column
        ranks = [levels.index(name) if name in levels else len(levels) for name in names.tolist()]
        order = np.argsort(ranks, kind="stable")
        return names[order], np.argsort(order)[number]

    cells_of_symbol = column(only, "symbol")
    num_rows, unknown = len(cells_of_symbol), missing_in(cells_of_symbol)
    if num_rows == 0:
        raise ValueError("table must have a row at least, got none")
    if unknown.all():
        raise ValueError(f"column {only!r} must have a symbol, every row lacks one")
    symbols, numbers = labelled(labels_of(cells_of_symbol[~unknown], only), only)
    of_symbol = np.zeros(num_rows, dtype=np.int64)
    of_symbol[~unknown] = numbers
    names, of_sequence = None, np.zeros(num_rows, dtype=np.int64)
    if sequence is not None:
        names, of_sequence = labelled(labels_of(column(sequence, "sequence"), sequence), sequence)
    number = np.ones(num_rows, dtype=np.int64)
    if count is not None:
        number = tables.counts_of(column(count, "count"), count)
    if time is None:
        if every is not None:
            raise ValueError(f"every must be left out where there is no time, got {every!r}")
        step, clock = _places_within(of_sequence), times.Clock()
    else:
        column(time, "time")
        whens, clock = times.read_times(cells[time], time, every, week_start)
        passed = times.in_passed_time(whens, clock.unit, of_sequence, time)
        step = clock.steps(passed, time)
        times.refuse_moved_times(passed, of_sequence, clock, time)
        if count is None:
            free = [name for name in cells if name not in named.values()]
            others = {name: cells[name].values[~unknown] for name in free}
            observed = passed[~unknown], of_sequence[~unknown], of_symbol[~unknown]
            stamps = whens.values
            days = stamps.astype("datetime64[D]") if stamps.dtype.kind == "M" else stamps
            are_exact = bool((stamps == days).all())
            _refuse_shared_times(observed, symbols, names, others, named, are_exact)
    starts, ends = np.full((2, int(of_sequence.max()) + 1), [[2**62], [-(2**62)]])
    np.minimum.at(starts, of_sequence, step)
    np.maximum.at(ends, of_sequence, step)
    if (longest := int((ends - starts).max()) + 1) > _MOST_STEPS:
        got = f"{longest:,} (another every=, or times in larger units)"
        raise ValueError(f"time must leave at most {_MOST_STEPS:,} steps in a sequence, got {got}")
    offsets = np.concatenate([[0], np.cumsum(ends - starts + 1)])
    place = offsets[of_sequence] + step - starts[of_sequence]
    entries = number[~unknown], (place[~unknown], of_symbol[~unknown])
    counts = scipy.sparse.csr_array(entries, shape=(offsets[-1], len(symbols)))
    if time is not None and every is None:
        times.refuse_sparse_steps(whens.values, of_sequence, place, int(offsets[-1]), time)
    weights = None
    if weight is not None:
        weights = _weights_of(column(weight, "weight"), weight, of_sequence)
    sequences = replace(
        as_sequences([counts], alphabet=symbols.tolist(), order=order), offsets=offsets,
        names=names, keys=(sequence or "", time or ""), weights=weights, every=clock.every,
        starts=None if time is None else clock.times(starts),
    )  # fmt: skip
    if known is not None:
        states = _states_of_steps(column(known, "known"), known, place, sequences.num_steps)
        sequences = sequences.with_known_states(states)
    if inputs is not None:
        with under_name("inputs", of="formula"):
            design = _design_of(inputs, cells, place, unknown, sequences, maps)
        sequences = sequences.with_design(design)
    return sequences


def _design_of(
    inputs: object, cells: Mapping[str, Cells], place: IntArray, unknown: BoolArray,
    data: Sequences, maps: Mapping[str, object] | None,
) -> Design:  # fmt: skip
    """The design of all steps by a formula, or like another one."""
    if isinstance(inputs, str):
        covariates = _inputs_of_steps(cells, parse(inputs).columns, place, unknown, data)
        return make_design(covariates, data.num_steps, inputs, every_term=True, maps=maps)
    design = as_kind(inputs, "inputs", Design, "or a formula")
    covariates = _inputs_of_steps(cells, tuple(table_of(design)), place, unknown, data)
    design.report_new_labels(covariates, "inputs")
    return design.like(covariates, new_levels=True, num_rows=data.num_steps)


def _places_within(sequence: IntArray) -> IntArray:
    """The place of each row among those of its sequence, from 0."""
    order = np.argsort(sequence, kind="stable")
    firsts = np.searchsorted(sequence[order], sequence[order])
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order)) - firsts
    return places


def _weights_of(cells: Array, name: str, sequence: IntArray) -> FloatArray:
    """The weight of each sequence, which all of its rows have."""
    weights = as_finite(cells, f"column {name!r}")
    _, first = np.unique(sequence, return_index=True)
    differs = weights != weights[first[sequence]]
    refuse_rows(differs, weights, name, "be the same in all rows of a sequence")
    refuse_rows(weights <= 0.0, weights, name, "have positive weights")
    return weights[first]


def _states_of_steps(cells: Array, name: str, place: IntArray, num_steps: int) -> Array:
    """The hidden state of each step, None where no row has one."""
    states = np.full(num_steps, None, dtype=object)
    rows = np.flatnonzero(~missing_in(cells))
    labels = labels_of(cells[rows], name)
    states[place[rows]] = labels
    differs = np.zeros(len(cells), dtype=np.bool_)
    differs[rows] = states[place[rows]] != labels
    refuse_rows(differs, cells, name, "have one state a step, as in the last row of it")
    return states


def _refuse_shared_times(
    at: tuple[Array, IntArray, IntArray], symbols: StrArray, names: StrArray | None,
    others: Mapping[str, Array], roles: Mapping[str, object], are_exact: bool,
) -> None:  # fmt: skip
    """Refuse rows of one time that are of several sequences, or that disagree as hardly any do.

    Parameters
    ----------
    at : arrays, ``(num_rows,)``
        Times, sequences and symbols of the rows that have a symbol.
    symbols, names : arrays
        What these are called; None if all rows are of one sequence.
    others, roles : mappings
        Columns without a role, and columns by arguments.
    are_exact : bool
        Whether one time is one moment: clocks show an hour twice.
    """
    times, sequence, symbol = at
    moment = np.unique(times, return_inverse=True)[1].reshape(-1)
    pairs = np.stack([sequence, moment])
    _, which, counts = np.unique(pairs, axis=1, return_inverse=True, return_counts=True)
    often = counts[which.reshape(-1)]
    for name, cells in others.items() if names is None and often.max() > 1 else ():
        if cells.dtype.kind == "f" or missing_in(cells).any():
            continue
        levels, number = np.unique(cells.astype(np.str_), return_inverse=True)
        apart = len(np.unique(np.stack([number.reshape(-1), moment]), axis=1).T) == len(moment)
        if apart and 1 < len(levels) <= len(moment) / 2:  # it says whose rows these are
            raise ValueError(
                f"sequence must be a column where a time has several rows: {often.max()} rows of"
                f" {times[np.argmax(often > 1)]} are of different {name!r}, so sequence={name!r}"
                " says whose they are (drop that column if all are of one sequence)"
            )
    share = ((often > 1) / often).sum()
    if not are_exact or not 0 < share <= _FEW_TWICE * (1.0 / often).sum():
        return
    order = np.lexsort((moment, sequence))
    same = (np.diff(moment[order]) == 0) & (np.diff(sequence[order]) == 0)
    differs = np.flatnonzero(same & (np.diff(symbol[order]) != 0))
    if len(differs):
        one, other = order[differs[0] : differs[0] + 2]
        who = "" if names is None else f" of {roles['sequence']} {names[sequence[one]]}"
        raise ValueError(
            f"column {roles['symbol']!r} must have one symbol at a time where nearly all rows have:"
            f" {times[one]}{who} has {symbols[symbol[one]]} and {symbols[symbol[other]]}"
            f" ({round(share)} such times: leave one of the rows out, or give count=)"
        )


def _inputs_of_steps(
    cells: Mapping[str, Cells], needed: Sequence[str], place: IntArray, unknown: BoolArray,
    data: Sequences,
) -> dict[str, Cells]:  # fmt: skip
    """The columns of inputs, one cell a step; those of the step before where no row has them.

    A row without a symbol need not have inputs. The first steps have those of the step after.
    """
    telling = np.ones(len(place), dtype=np.bool_)
    for name, column in tables.chosen_columns(cells, needed, "the table", "inputs").items():
        missing = missing_in(column.values)
        if (bad := np.flatnonzero(missing & ~unknown)).size:
            s = data.sequence_of_step[place[bad[0]]]
            who = "" if data.names is None else f", of {data.keys[0]} {data.names[s]}"
            raise ValueError(
                f"column {name!r} must have a value in every row with a symbol, got none at row"
                f" {bad[0]}{who} ({len(bad)} such rows; --drop-incomplete leaves out the symbol)"
            )
        telling &= ~missing
    rows = np.flatnonzero(telling)[::-1]
    source = np.full(data.num_steps, -1)
    source[place[rows]] = rows  # the first row of each step
    steps = np.arange(data.num_steps)
    before = np.maximum.accumulate(np.where(source < 0, -1, steps))
    after = np.minimum.accumulate(np.where(source < 0, data.num_steps, steps)[::-1])[::-1]
    firsts = np.repeat(data.offsets[:-1], data.lengths)
    nearest = np.where(before < firsts, after, before)
    silent = np.flatnonzero(nearest >= np.repeat(data.offsets[1:], data.lengths))
    if len(silent):
        name = _name_of(data, data.sequence_of_step[silent[0]])
        raise ValueError(f"inputs must have a value in each sequence, got none of {name}")
    filled, varies = dict[str, Cells](), np.zeros(data.num_steps, dtype=np.bool_)
    for name in needed:
        values = cells[name].values
        differs = telling & (values != values[source[place]])
        refuse_rows(differs, values, name, "be the same in all rows of a step")
        filled[name] = cells[name].take(source[nearest])
        varies |= filled[name].values != filled[name].values[firsts]
    changing = np.isin(firsts, firsts[varies])  # sequences whose inputs change
    if gaps := int(((source < 0) & changing).sum()):
        said = f"{gaps} steps have no row, and get the inputs of the step before (give them rows)"
        warnings.warn(said, stacklevel=3)
    return filled


def _name_of(data: Sequences, sequence: int) -> str:
    """What a sequence is called: its name, or its number from 1."""
    return str(sequence + 1 if data.names is None else data.names[sequence])


def future_of(data: Sequences, table: object, steps: int) -> dict[str, Cells]:
    """The rows of a table for the steps after the last, in the order of sequences and steps.

    Raises
    ------
    ValueError
        If a step ahead has no row.
    """
    cells, (sequence, time) = exact_columns(table, "inputs"), data.keys
    of_sequence = np.zeros(len(next(iter(cells.values())).values), dtype=np.int64)
    if sequence:
        whose = tables.chosen_columns(cells, [sequence], "inputs", "sequence")[sequence]
        assert data.names is not None  # of that column
        labels = in_one_form(labels_of(whose.values, sequence), f"column {sequence!r}")
        of_sequence = find_labels(data.names, labels, sequence)
    if time:
        whens = tables.chosen_columns(cells, [time], "inputs", "time")[time]
        ahead = _steps_after(data, whens, of_sequence)
    else:
        ahead = _places_within(of_sequence)
    rows = np.full((data.num_sequences, steps), -1)
    fits = (ahead >= 0) & (ahead < steps)
    rows[of_sequence[fits], ahead[fits]] = np.flatnonzero(fits)
    if (rows < 0).any():
        s, t = (int(i[0]) for i in np.nonzero(rows < 0))
        got = f"none for step {t + 1} of {_name_of(data, s)}"
        raise ValueError(f"inputs must have a row for each of the {steps} steps ahead, got {got}")
    return {name: column.take(rows.ravel()) for name, column in cells.items()}


def _steps_after(data: Sequences, cells: Cells, sequence: IntArray) -> IntArray:
    """How many steps after its sequence's last each time is, from 0."""
    assert data.starts is not None
    starts, name = data.starts[sequence], data.keys[1]
    unit = np.datetime_data(starts.dtype)[0] if starts.dtype.kind == "M" else None
    if unit is not None:
        dates = dates_of(cells.values)
        cells = cells if dates is None else Cells(dates)
        if cells.values.dtype.kind != "M":
            raise ValueError(f"column {name!r} must have dates, as before")
    passed = times.Clock(unit).steps(times.in_passed_time(cells, unit, sequence, name), name)
    return np.asarray((passed - starts.astype(np.int64)) // data.every - data.lengths[sequence])

r"""Mean probabilities of symbols by sequence, step or time, averaged over everything else.

*Linear dynamics*: probabilities at all steps, had a column had a value at all of them, the noise of
states as it was; averaged over the steps. Inputs that drive states add up along the path.

*Hidden Markov chains*: with a column set to a value everywhere, every row of inputs x has its own
transitions P(x). If inputs stayed at x, states would have the shares p = p P(x) in the long run,
and symbols those that states in these shares emit at x. Results are averages over the rows of
inputs in the data, each as often as it occurs there (MacDonald and Zucchini 2016, section 10.3, for
one covariate).

>>> import pgmult
>>> data = pgmult.sequences.as_sequences(["ABABABABAB", "AAAAABAAAA"], names=["one", "two"])
>>> model = pgmult.sequences.MultinomialLDS(state_dim=1)
>>> run = pgmult.sample(
...     model, data, keep=[*model.default_keep, "states"],
...     draws=20, tune=20, chains=1, random_seed=0, progressbar=False,
... )
>>> found = effects(run, "sequence")
>>> found.axes, found.difference("sequence", "two", "one").mean.shape
(('sequence', 'symbol'), (2,))
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pgmult.core.arguments import as_choice, as_mapping
from pgmult.core.averages import Rows, average, crossed, in_words
from pgmult.core.estimands import Estimand
from pgmult.core.reports import Interval, Section
from pgmult.core.typing import FloatArray
from pgmult.core.validate import as_positive_int
from pgmult.formulas.columns import label_or_quantile_values, listed, quantiles
from pgmult.formulas.design import Design, distinct_rows, table_of
from pgmult.sampling.posterior import Posterior
from pgmult.sequences.data.sequences import Sequences
from pgmult.sequences.figures import place_columns
from pgmult.sequences.models.hmm import mixed
from pgmult.sequences.models.mixed_hmm import MixedHMM
from pgmult.sequences.posteriors import Foretells, draws_of, points_and_states, sequences_of

_CURVE = np.linspace(0.02, 0.98, 9)  # quantiles of a number at which its effects are drawn
_MOST_LABELS = 12
_Each = Iterator[FloatArray]  # values of every step, draw by draw
_MOST_SYMBOLS = 6


def effects(
    run: Posterior, column: str = "sequence", values: Sequence[Any] | None = None, *,
    at: Mapping[str, Any] | None = None, by: str | None = None, probability: float = 0.9,
    max_draws: int = 500,
) -> Estimand:  # fmt: skip
    """Mean probabilities of the symbols in each sequence, at each step or time, or by an input.

    Averages over all steps, missing ones included, each step alike.
    ``found.difference(column, a, b)`` compares two sequences or times.

    `column` may also be an input of a formula. Of a `MixedHMM` the result is the symbols' long-run
    shares if the input had one value at all steps, all else unchanged, averaged over the steps; of
    a `MultinomialLDS` their mean probabilities if it had had that value, the noise as it was.

    Parameters
    ----------
    run : Posterior
        Of sequences, that kept what `pgmult.sequences.predict` takes, such as ``states``.
    column : "sequence", "step", "time" or an input
        What to compare: sequences, by name or number; steps, from 1 in each sequence; or times,
        where the sequences have them.
    values : sequence, optional
        Values of the column; all of them if left out.
    at : mapping from a column to a value, or to several, optional
        Only steps that have these; of `column`, its values.
    by : str, optional
        Another of the columns: averages are taken for each of its values.
    probability : float
        Of the intervals.
    max_draws : int

    Returns
    -------
    Estimand
        Axes `column`, then `by` if given, and symbol.

    Raises
    ------
    ValueError
        If there is no such sequence, step or time, or a variable was not kept.
    """
    data = sequences_of(run)
    if at is not None and column in as_mapping(at, "at") and values is None:
        at = dict(at)
        values = np.atleast_1d(at.pop(column)).tolist()
    if data.design is not None and column in table_of(data.design):
        settings = {column: values, **as_mapping(at, "at")}
        return _input_effects(run, data, column, settings, by, probability, max_draws)
    places = place_columns(data, data.sequence_of_step, data.place_of_step)
    rows: dict[str, Any] = {place.name: place.values for place in places}
    if data.design is not None:
        as_choice(column, "column", [*rows, *table_of(data.design)])
    labels = {"symbol": data.labels}
    steps = Rows(rows, lambda _: _each(run, data, max_draws), labels, data.step_weights)
    groups = crossed(rows, column, values, by)
    return average(
        over=steps, by=groups, where=at, probability=probability,
        caption=f"Mean probabilities of the symbols by {' and '.join(groups)}.{data.weighting}",
    )  # fmt: skip


def _each(run: Posterior, data: Sequences, max_draws: int) -> _Each:
    """Probabilities of every step, ``(num_steps, num_symbols)``, draw by draw."""
    as_positive_int(max_draws, "max_draws")
    model: Any = run.model
    if isinstance(model, Foretells):
        for draw in draws_of(run, model.predictive_variables, max_draws):
            yield model.step_probs(draw, data)
        return
    for point, states in points_and_states(run, max_draws):
        yield np.asarray(point.link.probs(point.psi(states, data.inputs)))


def _input_effects(
    run: Posterior, data: Sequences, column: str, settings: Mapping[str, Any], by: str | None,
    probability: float, max_draws: int,
) -> Estimand:  # fmt: skip
    """Shares of the symbols if a column had certain values, and others theirs: see `effects`."""
    design = data.design
    assert design is not None  # of all data of the model
    table, most = table_of(design), as_positive_int(max_draws, "max_draws")
    others, at = [name for name in table if name != column], dict(settings)
    values = at.pop(column)
    for name in at:
        as_choice(name, "at", others)
    if by is not None:
        as_choice(by, "by", others)
    if values is None:
        values = label_or_quantile_values(table[column], design.levels_of(column))
    is_mixed = isinstance(run.model, MixedHMM)
    of_rows = _long_run_shares if is_mixed else _moved_along

    def probabilities(changed: Mapping[str, object]) -> _Each:
        return of_rows(run, data, design.like(changed, num_rows=data.num_steps), most)

    rows = Rows(table, probabilities, {"symbol": data.labels}, data.step_weights, design.levels_of)
    what = "Long-run shares" if is_mixed else "Mean probabilities"
    return average(
        over=rows, set={column: list(values), **at}, by=by, probability=probability,
        caption=f"{what} of the symbols if {column} stayed so{in_words(at)}.{data.weighting}",
    )  # fmt: skip


def _moved_along(run: Posterior, data: Sequences, design: Design, most: int) -> _Each:
    """Probabilities of every step with other inputs, the noise of states as it was."""
    inputs = data.with_design(design).inputs
    first = set(data.offsets[:-1].tolist())
    for point, states in points_and_states(run, most):
        more = point.drive(inputs, data.num_steps) - point.drive(data.inputs, data.num_steps)
        for t in range(data.num_steps) if more.any() else ():
            more[t] = 0.0 if t in first else more[t] + point.transition @ more[t - 1]
        yield point.link.probs(point.psi(point.padded(states) + more, inputs))


def _long_run_shares(run: Posterior, data: Sequences, design: Design, most: int) -> _Each:
    """Long-run shares of the symbols at the inputs of every step."""
    model: MixedHMM = run.model
    cells, cell = distinct_rows(design)
    for draw in draws_of(run, model.predictive_variables, most):
        transition, emission, which = model.probs(model.state_of(draw), cells, data.order)
        shares = long_run(transition[which] if len(transition) > 1 else transition)
        shares = np.broadcast_to(shares, (len(which), shares.shape[1]))
        yield mixed(emission, which, shares)[cell]


def long_run(transition: FloatArray) -> FloatArray:
    """The shares p = p P of states, ``(..., num_states)``."""
    size = transition.shape[-1]
    system = np.eye(size) - np.swapaxes(transition, -1, -2) + 1.0  # p P = p and sum p = 1, added
    shares = np.linalg.solve(system, np.ones((*transition.shape[:-1], 1)))[..., 0]
    return np.asarray(np.maximum(shares, 0.0))


# --------------------------------------------------------------------------- of a report


def input_sections(
    run: Posterior, probability: float, max_draws: int
) -> tuple[list[str], list[Section]]:
    """What each column does, first in a sentence; of hidden chains how much individuals differ.

    Nothing is said of long-run shares where nobody leaves a state.
    """
    data: Sequences = run.data
    assert data.design is not None
    table, groups = table_of(data.design), grouping_columns(data.design)
    draws, sentences, sections = max(20, max_draws // 4), [], []
    is_mixed = isinstance(run.model, MixedHMM)
    allowed = run.model.allowed if is_mixed else None
    is_left = allowed is None or (allowed & ~np.eye(len(allowed), dtype=bool)).any(axis=1).all()
    for column in table if is_left else ():
        cells = np.asarray(table[column])
        is_number = cells.dtype.kind in "fM" and len(np.unique(cells)) > 2
        values = np.unique(quantiles(cells, _CURVE) if is_number else cells)
        if column in groups or len(values) > _MOST_LABELS:
            continue
        settings = {column: listed(values)}
        shares = _input_effects(run, data, column, settings, None, probability, draws)
        top = np.argsort(-shares.mean.max(axis=0), kind="stable")[:_MOST_SYMBOLS]
        labels = data.labels[np.sort(top)].tolist()
        figures = [shares.curves(column, only=labels)] if is_number else []
        sections.append(Section(
            f"What {column} does", "Averaged over all other columns.", table=shares.table(),
            figures=figures, is_drawn=is_number, shown=8,
        ))  # fmt: skip
        lead = "In the long run" if is_mixed else "On average"
        sentences.append(f"{lead} {_most_changed(shares, column, values.tolist())}")
    if is_mixed:
        sections += _who_differs(run, probability)
    return sentences, sections


def grouping_columns(design: Design) -> set[str]:
    """Columns that say to which individual or group a row belongs."""
    return {name for term in design.terms if term.kind == "group" for name in term.variables}


def _most_changed(shares: Estimand, column: str, values: list[object]) -> str:
    """The symbol whose share changes most, between which values."""
    k = int(np.ptp(shares.mean, axis=0).argmax())
    mean, symbol = shares.mean[:, k], np.asarray(shares.labels["symbol"])[k]
    high, low = int(mean.argmax()), int(mean.argmin())
    change = shares.difference(column, values[high], values[low])
    percent = f"{round(100 * shares.probability)} % interval"
    words = [f"{value:.4g}" if isinstance(value, float) else str(value) for value in values]
    return (
        f"{symbol} has {mean[high]:.2f} of the steps at {column} {words[high]} and"
        f" {mean[low]:.2f} at {words[low]}: a difference of {change.mean[k]:.2f}"
        f" ({percent} {change.lower[k]:.2f} to {change.upper[k]:.2f})."
    )


def _who_differs(run: Posterior, probability: float) -> list[Section]:
    """Standard deviations of effects of groups, of each stick of the chain that fits best."""
    if run["sds"].size == 0:
        return []
    sds = run.stack("sds")
    tail = 0.5 * (1.0 - probability)
    low, middle, high = np.quantile(sds.mean(axis=1), [tail, 0.5, 1.0 - tail], axis=0)
    ends = map(Interval, middle.tolist(), low.tolist(), high.tolist())
    how = "Standard deviation of a term's effects on log odds, averaged over what inputs act on."
    head = ("term", f"median [{round(100 * probability)} % interval]")
    rows = list(zip(map(str, run.coords["sd"]), ends, strict=True))
    return [Section("How much individuals differ", how, head=head, rows=rows)]

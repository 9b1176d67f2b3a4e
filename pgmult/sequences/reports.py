"""Report on a run of sequences: what varies, what comes next, and with what certainty.

`report` computes everything once; `pgmult.core.reports` shows it on a terminal and on a
page.

On a panel, many sequences beside each other, it says what the population does, then who differs.

>>> from pgmult.sequences import as_sequences
>>> data = as_sequences(["ABAB", "BABA", "AABB"] * 4)
>>> pairs_in_data(data).rows[0], shares_by_step(data).rows[0]
(('A', '20', '0.20', '0.80'), ('1', '12', '0.67', '0.33'))
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise, product, starmap
from typing import Any

import numpy as np

from pgmult.core.arguments import as_kind, as_mapping, as_path, as_probability
from pgmult.core.comparison import Comparison, as_comparison
from pgmult.core.markup import Leading
from pgmult.core.reports import Interval, Report, Section
from pgmult.core.scores import Score
from pgmult.core.tabled import number
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_positive_int
from pgmult.formulas.design import table_of
from pgmult.sampling.convergence import chains_in_words
from pgmult.sampling.posterior import Posterior
from pgmult.sequences import figures
from pgmult.sequences.answers import Forecast, NextChange, StepProbs, symbol_stack
from pgmult.sequences.checks import check
from pgmult.sequences.data.sequences import Sequences, few_of
from pgmult.sequences.figures import key_of, label_of, labels_of, name_of, seen_symbols
from pgmult.sequences.forecasts import forecast, predict
from pgmult.sequences.input_effects import grouping_columns, input_sections
from pgmult.sequences.models import hmm, lds, markov, mixed_markov, trend
from pgmult.sequences.posteriors import HasStateSpace, sequences_of
from pgmult.sequences.scores.rivals import compare
from pgmult.sequences.states import states
from pgmult.sequences.transitions import Transitions, transitions

_MOST_PANELS, _MOST_ROWS, _MOST_NAMED, _MOST_VALUES = 3, 60, 24, 6
_MOST_AHEAD = 300  # steps, to find a change
_MOST_HELD, _FEWEST_DRAWS = 60_000_000, 50  # probabilities at once, by fewer draws of large panels
_HISTORY = 100  # steps in a figure
_PANEL = 10  # sequences of a panel, of which a report says first what the population does
_MOST_SYMBOLS, _STEPS_SHOWN = 12, 12
_EACH = 5  # sequences that stand out for one reason
_CHECKED = 200  # draws that data are simulated from
_HARDLY = 0.005  # a chance that is printed as 0.00
_FEWEST_STAYS = 5  # from which on "nobody leaves" is said
_MOST_LISTED = 2000  # sequences in tables, most of them on demand
_NARROW = " Far ahead it is too narrow for shares that keep moving one way: try `--model trend`."


def report(
    run: Posterior, page: str | os.PathLike[str] | None = None, *,
    title: str = "Sequences of symbols", facts: Mapping[str, str] | None = None, steps: int = 12,
    held_out: Sequences | None = None, comparison: Comparison | bool = True,
    probability: float = 0.9, max_draws: int = 400, random_seed: int = 0,
) -> Report:  # fmt: skip
    """Summarise a posterior of sequences.

    If the sequences have inputs, steps ahead use those of `held_out`, and after these the last
    ones.

    Parameters
    ----------
    run : Posterior
        Run of hidden states, of a Markov chain, or of linear Gaussian states that kept ``states``,
        beside the variables that its model keeps by default.
    page : path, optional
        Where to write the report as an HTML page.
    title : str
    facts : mapping from str to str, optional
    steps : int
        How far ahead to forecast; at least as far as what was held out.
    held_out : Sequences, optional
        The continuation of each sequence, which was not in the fit.
    comparison : Comparison or bool
        Comparison with simple models: the result of `compare`, True to compute it, which samples
        these models, False to leave it out.
    probability : float
        Of the intervals.
    max_draws : int
        Fewer, 50 at least, where their probabilities at all steps would not fit in half a gigabyte.
    random_seed : int
        Of the forecasts' simulations.

    Raises
    ------
    ValueError
        If the posterior did not keep a variable that is needed.
    """
    as_kind(title, "title", str)
    place = None if page is None else as_path(page, "page")
    facts, comparison = as_mapping(facts, "facts"), as_comparison(comparison)
    tail = 0.5 * (1.0 - as_probability(probability, "probability"))
    max_draws, steps = as_positive_int(max_draws, "max_draws"), as_positive_int(steps, "steps")
    data = sequences_of(run)
    if held_out is not None:
        steps = max(steps, int(as_kind(held_out, "held_out", Sequences).lengths.max()))
    places = data.num_steps + steps * data.num_sequences
    max_draws = min(max_draws, max(_FEWEST_DRAWS, _MOST_HELD // (places * data.num_symbols)))
    few, far = min(max_draws, _CHECKED), _far(data, steps, max_draws)
    how: dict[str, Any] = {"levels": (tail, 1.0 - tail), "max_draws": max_draws}
    past = predict(run, **how)
    how |= {"inputs": _inputs_ahead(data, far, held_out), "simulate_to": far}
    ahead = forecast(run, steps, random_seed=random_seed, **how)
    is_chain = isinstance(run.model, markov.MarkovChain | mixed_markov.MixedMarkovChain)
    is_trend = isinstance(run.model, trend.MultinomialTrend)
    change, channels = ahead.next_change(), range(max(1, len(data.channels)))
    past, coming = past.of_channel(0), [ahead.of_channel(number) for number in channels]
    ahead, about = coming[0], {"data": data_in_words(data)}
    if data.weights is not None:
        about["weights"] = "of sequences, in averages over these; likelihoods are not weighted"
    data, held_out = data.channel(0), None if held_out is None else held_out.channel(0)
    if comparison is True and not is_trend:
        comparison = as_kind(compare(run, random_seed=random_seed), "comparison", Comparison)
    compared = [] if is_trend or isinstance(comparison, bool) else [comparison]
    verdict = [sentence for one in compared for sentence in one.sentences]
    if is_trend:
        verdict.append(Leading(_largest_move(past, ahead), "What comes next"))
    if not is_chain:
        verdict += [Leading(_movement(past), "Which symbols move"), *_swings(run)]
    verdict.append(Leading(_next(ahead), "What comes next"))
    verdict.append(Leading(_lasting(change), "The next change of symbol"))
    sections, path, of_panel = list[Section](), None, is_panel(data)
    if isinstance(run.model, hmm.MultinomialHMM) and not is_chain:
        hidden = states(run, probability=probability, max_draws=max_draws)
        path = hidden.path
        sections.append(hidden.section())
    if isinstance(run.model, hmm.MultinomialHMM | markov.MarkovChain):
        moves = transitions(run, probability=probability, max_draws=few)
        if len(moves.before) <= _MOST_ROWS and len(moves.after) <= _MOST_NAMED:
            sections += _transitions(moves, steps, _never_left(run, data) if is_chain else "")
            if of_panel and is_chain and len(moves.before) == len(moves.after):
                frequent = np.argsort(-data.symbol_totals, kind="stable")[:3]
                verdict[:0] = map(moves.sentence, frequent.tolist())
    if data.design is not None:
        verdict[:0], of_inputs = input_sections(run, probability, max_draws)
        sections += of_inputs
        if isinstance(run.model, mixed_markov.MixedMarkovChain):
            sections += _by_inputs(run, probability, few)
    order, shown = np.arange(data.num_sequences), np.argsort(-data.lengths, kind="stable")
    if of_panel:
        order = np.argsort(np.nan_to_num(-change.lasts[:, 0], nan=np.inf), kind="stable")
        apart, which = standing_out(past, change, order)
        sections += [] if is_chain else [pairs_in_data(data)]
        sections += [shares_by_step(data), apart]
        shown = np.array(which)
    sections.append(_observed(data, path))
    hint = " Inputs are those of the last step." * (data.design is not None and held_out is None)
    if isinstance(run.model, lds.MultinomialLDS) and run.model.is_noisy(run.data):
        hint += _NARROW
    percent = f"{round(100 * probability)} % interval"
    sections += [_coming(one, percent, hint, order, n) for n, one in enumerate(coming)]
    sections += [_changes(change, order), _figures(past, ahead, shown)]
    sections += [] if is_chain else [_symbols(past)]
    sections += [one.section() for one in compared]
    if held_out is not None:
        verdict.append(_held_out(ahead, held_out, data))
        sections.append(Section("What was held out", sentences=verdict[-1:]))
    fit = check(run, max_draws=few, random_seed=random_seed)
    chains = chains_in_words(run, _parts(run))
    verdict += [fit.verdict, chains[0]]
    sections += [fit.section(), Section("Diagnostics", sentences=chains)]
    return Report(title, verdict, sections, {**about, **facts}).save(place)


def _never_left(run: Posterior, data: Sequences) -> str:
    """Name the symbols that nobody leaves in the data, though the model allows it."""
    if run.model.allowed is not None or getattr(run.model, "order", 1) != 1:
        return ""
    counts = pair_counts(data, np.arange(data.num_symbols))
    stays = np.diagonal(counts)
    lasting = np.flatnonzero((stays == counts.sum(axis=1)) & (stays >= _FEWEST_STAYS))
    if not len(lasting):
        return ""
    names = few_of(np.asarray(labels_of(data))[lasting])
    how = "--only-observed, or MarkovChain's allowed"
    return f" In the data nobody leaves {names}: if nobody can, rule it out ({how})."


def _transitions(moves: Transitions, steps: int, hint: str) -> list[Section]:
    """The matrix, and how long visits last and where they lead, with intervals."""
    if len(moves.before) != len(moves.after):
        return [moves.section()]
    shares, lasts = moves.occupancy(steps), dict[str, str]()
    with suppress(ValueError):  # nobody leaves any
        last = moves.durations()
        ends = zip(np.median(last.draws, axis=0), last.lower, last.upper, strict=True)
        lasts = dict(zip(last.labels["in"], starmap(figures.steps_in_words, ends), strict=True))
    lasts |= dict.fromkeys(moves.without_data, "no data")
    rows = [
        (name, lasts.get(name, "nobody leaves"), *(f"{p:.2f}" for p in after))
        for name, after in zip(moves.before, shares.mean[:, steps], strict=True)
    ]
    curves = [
        replace(shares.at(**{"from": name}).curves("step"), caption=f"after {name}")
        for name in moves.before[:_MOST_PANELS]
    ]
    visits = Section(
        f"Visits, and where they lead in {steps} steps",
        f"Mean steps of a visit to a {moves.what}, median and interval, and the shares of all"
        f" symbols or states {steps} steps after.{hint}",
        head=("now", "lasts", *moves.after), rows=rows, shown=24, figures=curves,
    )  # fmt: skip
    return [moves.section(), visits]


def _by_inputs(run: Posterior, probability: float, max_draws: int) -> Iterator[Section]:
    """Yield the transitions at the values of each input, individuals aside."""
    groups = grouping_columns(run.data.design)
    for column in table_of(run.data.design):
        if column not in groups:
            moves = transitions(run, by=column, probability=probability, max_draws=max_draws)
            if len(moves.values) <= _MOST_VALUES:
                yield moves.section(f"Transitions by {column}")


def _parts(run: Posterior) -> dict[str, str]:
    """What chains must agree on, what matters most first."""
    names = {
        "last_probs": "probabilities", "rows": "probabilities",
        "effective_states": "number of states in use", "transition": "transition probabilities",
    }  # fmt: skip
    main = [name for name in names if name in run][:1]
    return {names[name]: name for name in main} | {"log likelihoods": "log_likelihood"}


def _inputs_ahead(data: Sequences, steps: int, held_out: Sequences | None) -> Any:
    """Inputs of steps ahead: those of what was held out, and then the last ones; None for none."""
    if data.design is None and data.inputs is None:
        return None
    source = data if held_out is None else held_out
    first = source.offsets[1:] - 1 if source is data else source.offsets[:-1]
    rows = np.minimum(first[:, None] + np.arange(steps), source.offsets[1:, None] - 1)
    if source.design is None:
        return np.asarray(source.inputs)[rows]
    return source.design.take(rows.ravel())


def _far(data: Sequences, steps: int, max_draws: int) -> int:
    """How far ahead the next change is looked for: as far as runs of symbols are long."""
    symbols = seen_symbols(data, np.arange(data.num_symbols))
    starts = ~data.follows
    starts[1:] |= symbols[1:] != symbols[:-1]
    mean_run = (symbols >= 0).sum() / max(1, (starts & (symbols >= 0)).sum())
    fits = _MOST_HELD // max(1, max_draws * data.num_sequences * data.num_symbols)
    return max(steps, min(int(np.ceil(4.0 * mean_run)), fits, _MOST_AHEAD))


def _observed(data: Sequences, path: IntArray | None) -> Section:
    """What was observed, all sequences below each other; those of a panel by their states."""
    most = "; with several observations a step, the most frequent" if data.totals.max() > 1 else ""
    which, rows, named = "", None, None
    if is_panel(data):
        order, groups = grouped(data, path)
        rows = order[np.unique(np.linspace(0, len(order) - 1, _MOST_ROWS).astype(np.int64))]
        which = "" if len(rows) == len(order) else f" ({len(rows)} of {len(order):,}, evenly)"
        by = "symbol" if path is None else "hidden state"
        which += f", grouped by the {by} that it is in most"
        of = [groups[s] for s in rows]
        named = [f"{group}: {name_of(data, s)}" for group, s in zip(of, rows, strict=True)]
        if len(rows) > _MOST_NAMED:  # the group alone, where it begins
            named = [now if now != one else "" for one, now in pairwise(["", *of])]
    how = f"A row a sequence{which}, a colour a symbol{most}; at most the last 300 steps."
    shown = figures.raster(data, rows=rows, names=named)
    return Section("Observed symbols", how, figures=[shown], shown=0)


def _largest_move(past: StepProbs, ahead: Forecast) -> str:
    """Where the forecast leads farthest from where a sequence ends."""
    data, steps, then = ahead.sequences, ahead.mean.shape[1], ahead.mean[:, -1]
    now = past.mean[data.offsets[1:] - 1]
    s, k = np.unravel_index(np.abs(then - now).argmax(), now.shape)
    goes = "rise" if then[s, k] > now[s, k] else "fall"
    where = f" in {name_of(data, int(s))}" if data.num_sequences > 1 else ""
    return (
        f"Within {steps} steps the probability of {labels_of(data)[k]}{where} is to {goes} most,"
        f" from {now[s, k]:.2f} to {Interval(then[s, k], *ahead.quantiles[:, s, -1, k])}."
    )


def _lasting(change: NextChange) -> str:
    """How long the present symbols last."""
    data, names = change.sequences, labels_of(change.sequences)
    middle, low, high = (change.quantile(level) for level in (0.5, 0.05, 0.95))
    most = f"{change.horizon} steps or more"
    if data.num_sequences == 1:
        now, then, p = names[change.present[0]], int(change.then[0].argmax()), change.then[0].max()
        if middle[0] == 0:
            soon = f"likely to change at once (probability {change.lasts[0, 0]:.2f})"
            return f"The present {now} is {soon}, most likely to {names[then]} ({p:.2f})."
        if middle[0] >= change.horizon:
            return f"The present {now} continues for {most} (median)."
        top = f"{high[0]}{' or more' * int(high[0] >= change.horizon)}"
        return (
            f"The present {now} continues for {middle[0]} more steps (median; 90 % interval"
            f" {low[0]} to {top}), and then comes {names[then]} with probability {p:.2f}."
        )
    changing, ends = change.lasts[:, 0], np.flatnonzero(change.present >= 0)
    if np.nanmax(changing) < _HARDLY:
        return "No change of symbol is likely at the next step of any sequence."
    s, steps = int(np.nanargmax(changing)), float(np.median(middle[ends]))
    mean = np.average(changing[ends], weights=None if data.weights is None else data.weights[ends])
    last = most if steps >= change.horizon else f"{steps:.0f} step{'s' * (round(steps) != 1)}"
    return (
        f"A change of symbol is most likely next in {name_of(data, s)} (now"
        f" {names[change.present[s]]}): probability {changing[s]:.2f}; over the"
        f" {data.num_sequences} sequences it is {mean:.2f} on average, and the present symbol"
        f" continues for {last} (median)."
    )


def _changes(change: NextChange, order: IntArray) -> Section:
    """When each sequence changes next, in an order of sequences."""
    table, has_one = change.table(), np.flatnonzero(change.present >= 0)
    rows = dict(zip(has_one.tolist(), table.rows, strict=True))
    return Section(
        "The next change of symbol", table.caption, head=table.head, shown=12,
        rows=[rows[s] for s in order[:_MOST_LISTED].tolist() if s in rows],
        figures=[change.figure(0)] if len(order) == 1 else [],
    )  # fmt: skip


def _range(past: StepProbs) -> FloatArray:
    """Between which probabilities each symbol is at nine tenths of the steps."""
    return np.quantile(past.mean, [0.05, 0.95], axis=0)


def _movement(past: StepProbs) -> str:
    low, high = _range(past)
    k = int((high - low).argmax())
    if high[k] - low[k] < 0.05:
        return "The probabilities hardly move: shares of all symbols say nearly as much."
    return (
        f"Probabilities move, that of {labels_of(past.sequences)[k]} most: between {low[k]:.2f}"
        f" and {high[k]:.2f} at nine tenths of the steps."
    )


def _swings(run: Posterior) -> list[str]:
    """Periods of the transition's complex eigenvalues, where all draws agree on them."""
    if not isinstance(run.model, HasStateSpace):
        return []
    transition = np.asarray(run["transition"])
    values = np.linalg.eigvals(transition.reshape(-1, *transition.shape[2:]))
    steady = (values.imag > 1e-3) & (np.abs(values) > 0.8)
    angles, number = np.sort(np.where(steady, np.angle(values), np.inf)), steady.sum(axis=1)
    count = np.bincount(number).argmax()
    if (number == count).mean() < 0.8:
        return []
    ends = np.quantile(2.0 * np.pi / angles[number == count, :count], [0.5, 0.05, 0.95], axis=0).T
    periods = [str(Interval(p, low, high, ".1f")) for p, low, high in ends if high < 1.25 * low]
    sentence = f"They swing with a period of {' and of '.join(periods)} steps (90 % interval)."
    return [sentence] if periods else []


def _next(ahead: Forecast) -> str:
    """How clear the next step is."""
    best, data = ahead.mean[:, 0].max(axis=1), ahead.sequences
    s, mean = int(best.argmax()), np.average(best, weights=data.weights)
    name = labels_of(data)[int(ahead.mean[s, 0].argmax())]
    if len(best) == 1:
        return f"Next comes {name} with probability {best[s]:.2f}."
    return (
        f"The next symbol is clearest in {name_of(data, s)}: {name} with probability {best[s]:.2f};"
        f" over the {len(best)} sequences the most probable one has {mean:.2f} on average."
    )


def _symbols(past: StepProbs) -> Section:
    data = past.sequences
    names, shares = labels_of(data), data.symbol_totals / data.counts.sum()
    low, high = _range(past)
    order = np.argsort(-(high - low), kind="stable")[:_MOST_ROWS]
    rows = [(names[k], f"{shares[k]:.3f}", f"{low[k]:.2f} to {high[k]:.2f}") for k in order]
    return Section(
        "Which symbols move",
        "Share of all observations, and the range of the probability at nine tenths of the steps.",
        head=("symbol", "share", "probability"), rows=rows, shown=8,
    )  # fmt: skip


def _coming(ahead: Forecast, percent: str, hint: str, order: IntArray, channel: int) -> Section:
    """Probabilities of the symbols that come, the likeliest first; how sure these are, second."""
    data, names, rows = ahead.sequences, labels_of(ahead.sequences), []
    steps, has_times = ahead.mean.shape[1], data.starts is not None
    at = [0] if is_panel(data) else sorted({0, steps // 2, steps - 1})
    for s, h in product(order[: _MOST_LISTED // len(at)].tolist(), at):
        mean = ahead.mean[s, h]
        first = np.argsort(-mean, kind="stable")[:3]
        time = [figures.when(data, s, data.lengths[s] + h)] * has_times
        cells = [f"{names[k]} {mean[k]:.2f}" for k in first]
        lower, upper = ahead.quantiles[:, s, h, first[0]]
        rows.append((label_of(data, s), str(h + 1), *time, *cells, f"[{lower:.2f}, {upper:.2f}]"))
    likeliest = ("first", "second", "third")[: data.num_symbols]
    return Section(
        "What comes next" + (f" in channel {channel + 1}" if channel else ""),
        "The probability that a symbol comes, so many steps ahead: the likeliest first, then its"
        f" rivals. The {percent} is of the first probability: how precisely it is estimated, not"
        f" which symbol comes.{hint}", rows=rows, shown=9,
        head=(key_of(data), "ahead", *["time"] * has_times, *likeliest, percent),
    )  # fmt: skip


def _figures(past: StepProbs, ahead: Forecast, order: IntArray) -> Section:
    """Probabilities along the first sequences of an order."""
    data = past.sequences
    few = np.sort(order[:_MOST_PANELS]).tolist()
    stacks = [symbol_stack(past, ahead, sequence=s, last=_HISTORY) for s in few]
    which = ""
    if data.num_sequences > _MOST_PANELS:
        reason = "that stand out" if is_panel(data) else "of the longest"
        which = f" of {len(few)} {reason}"
    return Section(
        "Probabilities, and the forecast",
        f"At each step{which}, the probability of each symbol, stacked; the strip above has"
        " the observed symbols. Right of the dashed line is the forecast.",
        figures=stacks, shown=0,
    )  # fmt: skip


def data_in_words(data: Sequences) -> str:
    """How many observations of how many symbols, in how many steps and sequences."""
    numbers = data.num_sequences, data.num_steps, data.num_symbols, int(data.counts.sum())
    parts = zip(("sequence", "step", "different symbol", "observation"), numbers, strict=True)
    counts = [f"{n:,} {what}{'s' * (n != 1)}" for what, n in parts]
    if data.channels:
        counts[2] += f" of {len(data.channels)} channels"
    return f"{', '.join(counts[:-1])} and {counts[-1]}"


def _held_out(ahead: Forecast, held_out: Sequences, data: Sequences) -> str:
    """The forecast of what was held out, beside shares of all symbols."""
    if held_out.num_sequences != data.num_sequences or held_out.num_symbols != data.num_symbols:
        wanted = f"{data.num_sequences} sequences of {data.num_symbols} symbols"
        raise ValueError(f"held_out must continue the {wanted}, got {held_out!r}")
    counts, step = held_out.counts, held_out.step_of_entry
    sequence, place = held_out.sequence_of_step[step], held_out.place_of_step[step]
    shares = data.symbol_totals + 1.0
    groups = sequence if data.num_sequences > 1 else step
    probs = ahead.mean[sequence, place, held_out.symbols], (shares / shares.sum())[held_out.symbols]
    logs = (np.bincount(groups, counts * np.log(np.maximum(p, 1e-300))) for p in probs)
    sizes = np.bincount(groups, counts).astype(np.int64)
    scored, plain = (Score(np.asarray(log_p), sizes) for log_p in logs)
    gained = scored.gain_over(plain)
    return (
        f"What was held out ({int(counts.sum()):,} observations, up to {held_out.lengths.max()}"
        f" steps) is predicted {gained.word} by overall shares: {gained} nats an observation."
    )


# --------------------------------------------------------------------------- panels


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

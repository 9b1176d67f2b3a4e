"""Report on a run of sequences: what varies, what comes next, and with what certainty.

`report` computes everything once; `pgmult.core.reports` shows it on a terminal and on a
page.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from pgmult.core.arguments import as_kind, as_mapping, as_path, as_probability
from pgmult.core.comparison import Comparison, as_comparison
from pgmult.core.markup import Leading
from pgmult.core.reports import Report, Section
from pgmult.core.scores import Score
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_positive_int
from pgmult.formulas.design import table_of
from pgmult.sampling.convergence import chains_in_words
from pgmult.sampling.posterior import Posterior
from pgmult.sequences.answers import Forecast, NextChange, StepProbs, symbol_stack
from pgmult.sequences.checks import check
from pgmult.sequences.data.sequences import Sequences, few_of
from pgmult.sequences.figures import (
    in_steps,
    key_of,
    label_of,
    labels_of,
    name_of,
    raster,
    seen_symbols,
    when,
)
from pgmult.sequences.forecasts import forecast, predict
from pgmult.sequences.input_effects import grouping_columns, input_sections
from pgmult.sequences.models.hmm import MultinomialHMM
from pgmult.sequences.models.lds import MultinomialLDS
from pgmult.sequences.models.markov import MarkovChain
from pgmult.sequences.models.mixed_markov import MixedMarkovChain
from pgmult.sequences.models.trend import MultinomialTrend
from pgmult.sequences.panels import StandingOut, grouped, is_panel, pairs_in_data, shares_by_step
from pgmult.sequences.posteriors import HasStateSpace, sequences_of
from pgmult.sequences.scores.rivals import compare
from pgmult.sequences.states import states
from pgmult.sequences.transitions import Transitions, transitions

_MOST_PANELS, _MOST_ROWS, _MOST_NAMED, _MOST_VALUES = 3, 60, 24, 6
_MOST_AHEAD = 300  # steps, to find a change
_MOST_HELD, _FEWEST_DRAWS = 60_000_000, 50  # probabilities at once, by fewer draws of large panels
_HISTORY = 100  # steps in a figure
_CHECKED = 200  # draws that data are simulated from
_HARDLY = 0.005  # a chance that is printed as 0.00
_FEWEST_STAYS = 5  # from which on "nobody leaves" is said
_MOST_LISTED = 2000  # sequences in tables, most of them on demand


def report(
    run: Posterior,
    page: str | os.PathLike[str] | None = None,
    *,
    title: str = "Sequences of symbols",
    facts: Mapping[str, str] | None = None,
    steps: int = 12,
    held_out: Sequences | None = None,
    comparison: Comparison | bool = True,
    probability: float = 0.9,
    max_draws: int = 400,
    random_seed: int = 0,
) -> Report:
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
    facts = as_mapping(facts, "facts")
    comparison = as_comparison(comparison)
    tail = 0.5 * (1.0 - as_probability(probability, "probability"))
    max_draws = as_positive_int(max_draws, "max_draws")
    data = sequences_of(run)
    if is_trend := isinstance(run.model, MultinomialTrend):
        comparison = False
    steps = as_positive_int(steps, "steps")
    if held_out is not None:
        steps = max(steps, int(as_kind(held_out, "held_out", Sequences).lengths.max()))
    levels = (tail, 1.0 - tail)
    places = data.num_steps + steps * data.num_sequences
    max_draws = min(max_draws, max(_FEWEST_DRAWS, _MOST_HELD // (places * data.num_symbols)))
    past = predict(run, levels=levels, max_draws=max_draws)
    far = _far(data, steps, max_draws)
    ahead = forecast(
        run, steps, inputs=_inputs_ahead(data, far, held_out), levels=levels,
        max_draws=max_draws, random_seed=random_seed, simulate_to=far,
    )  # fmt: skip
    is_chain = isinstance(run.model, MarkovChain | MixedMarkovChain)
    change, channels = ahead.next_change(), range(max(1, len(data.channels)))
    past, coming = past.of_channel(0), [ahead.of_channel(number) for number in channels]
    ahead, about = coming[0], {"data": data_in_words(data)}
    if data.weights is not None:
        about["weights"] = "of sequences, in averages over these; likelihoods are not weighted"
    data, held_out = data.channel(0), None if held_out is None else held_out.channel(0)
    percent = f"{round(100 * probability)} % interval"
    if comparison is True:
        compared = compare(run, random_seed=random_seed)
        comparison = as_kind(compared, "comparison", Comparison)
    verdict = [] if comparison is False else [*comparison.sentences]
    verdict += [
        *([Leading(_largest_move(past, ahead), "What comes next")] if is_trend else []),
        *([] if is_chain else [Leading(_movement(past), "Which symbols move"), *_swings(run)]),
        Leading(_next(ahead), "What comes next"),
        Leading(_lasting(change), "The next change of symbol"),
    ]  # fmt: skip
    sections, path, panel = list[Section](), None, is_panel(data)
    order = shown = np.arange(data.num_sequences)
    if isinstance(run.model, MultinomialHMM) and not is_chain:
        hidden = states(run, probability=probability, max_draws=max_draws)
        path = hidden.path
        sections.append(hidden.section())
    if isinstance(run.model, MultinomialHMM | MarkovChain):
        moves = transitions(run, probability=probability, max_draws=min(max_draws, _CHECKED))
        if len(moves.before) <= _MOST_ROWS and len(moves.after) <= _MOST_NAMED:
            sections += _transitions(moves, steps, _never_left(run, data) if is_chain else "")
            if panel and is_chain and len(moves.before) == len(moves.after):
                shares = np.bincount(data.symbols, data.counts, data.num_symbols)
                verdict[:0] = map(moves.sentence, np.argsort(-shares, kind="stable")[:3].tolist())
    if data.design is not None:
        sentences, of_inputs = input_sections(run, probability, max_draws)
        verdict[:0] = sentences
        sections += of_inputs
        if isinstance(run.model, MixedMarkovChain):
            sections += _by_inputs(run, probability, min(max_draws, _CHECKED))
    if panel:
        apart = StandingOut.of(past, change)
        sections += [] if is_chain else [pairs_in_data(data)]
        sections += [shares_by_step(data), apart.section(data)]
        order, shown = apart.by_change, np.array(list(apart.reasons()))
    else:
        shown = np.argsort(-data.lengths, kind="stable")
    table = change.table()
    changes = dict(zip(np.flatnonzero(change.present >= 0).tolist(), table.rows, strict=True))
    holds = data.design is not None and held_out is None
    narrow = isinstance(run.model, MultinomialLDS) and run.model.is_noisy(run.data)
    sections += [
        _seen(data, path),
        *(_coming(one, percent, holds, order, number, narrow) for number, one in enumerate(coming)),
        Section(
            "The next change of symbol",
            table.caption,
            head=table.head,
            shown=12,
            rows=[changes[s] for s in order[:_MOST_LISTED].tolist() if s in changes],
            figures=[change.figure(0)] if data.num_sequences == 1 else [],
        ),
        _figures(past, ahead, shown),
        *([] if is_chain else [_symbols(past)]),
    ]
    if comparison is not False:
        sections.append(comparison.section())
    if held_out is not None:
        outcome = _held_out(ahead, held_out, data)
        verdict.append(outcome)
        sections.append(Section("What was held out", sentences=[outcome]))
    fit = check(run, max_draws=min(max_draws, _CHECKED), random_seed=random_seed)
    verdict.append(fit.verdict)
    sections.append(fit.section())
    chains, *details = chains_in_words(run, _parts(run))
    verdict.append(chains)
    sections.append(Section("Diagnostics", sentences=[chains, *details]))
    return Report(title, verdict, sections, {**about, **facts}).save(place)


def _never_left(run: Posterior, data: Sequences) -> str:
    """Name the symbols that nobody leaves in the data, though the model allows it."""
    if run.model.allowed is not None or getattr(run.model, "order", 1) != 1:
        return ""
    symbol = seen_symbols(data, np.arange(data.num_symbols))
    before, after = symbol[:-1], symbol[1:]
    pairs = data.follows[1:] & (before >= 0) & (after >= 0)
    stays, all_moves = (
        np.bincount(before[chosen], minlength=data.num_symbols)
        for chosen in (pairs & (before == after), pairs)
    )
    lasting = np.flatnonzero((stays == all_moves) & (stays >= _FEWEST_STAYS))
    if not len(lasting):
        return ""
    names = few_of(np.asarray(labels_of(data))[lasting])
    return (
        f" In the data nobody leaves {names}: if nobody can, rule it out (--only-observed, or"
        " MarkovChain's allowed)."
    )


def _transitions(moves: Transitions, steps: int, hint: str) -> list[Section]:
    """The matrix, and how long visits last and where they lead, with intervals."""
    sections = [moves.section()]
    if len(moves.before) == len(moves.after):
        shares, lasts = moves.occupancy(steps), dict[str, str]()
        with suppress(ValueError):  # nobody leaves any
            last = moves.durations()
            ends = np.array([np.median(last.draws, axis=0), last.lower, last.upper]).T
            lasts = {
                name: "{} [{}, {}]".format(*map(in_steps, of))
                for name, of in zip(last.labels["in"], ends, strict=True)
            }
        lasts |= dict.fromkeys(moves.without_data, "no data")
        where = shares.mean[:, steps]
        rows = [
            (name, lasts.get(name, "nobody leaves"), *(f"{p:.2f}" for p in where[i]))
            for i, name in enumerate(moves.before)
        ]
        sections.append(
            Section(
                f"Visits, and where they lead in {steps} steps",
                f"Mean steps of a visit to a {moves.what}, median and interval, and the shares of"
                f" all symbols or states {steps} steps after.{hint}",
                head=("now", "lasts", *moves.after), rows=rows, shown=24,
                figures=[
                    replace(shares.at(**{"from": name}).curves("step"), caption=f"after {name}")
                    for name in moves.before[:_MOST_PANELS]
                ],
            )
        )  # fmt: skip
    return sections


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
    return {**{names[name]: name for name in main}, "log likelihoods": "log_likelihood"}


def _inputs_ahead(data: Sequences, steps: int, held_out: Sequences | None) -> Any:
    """Inputs of steps ahead: those of what was held out, and then the last ones; None for none."""
    if data.design is None and data.inputs is None:
        return None
    source = data if held_out is None else held_out
    first = source.offsets[1:] - 1 if source is data else source.offsets[:-1]
    rows = np.minimum(first[:, None] + np.arange(steps), source.offsets[1:, None] - 1)
    if data.design is None:
        return np.asarray(source.inputs)[rows]
    assert source.design is not None
    return source.design.take(rows.ravel())


def _far(data: Sequences, steps: int, max_draws: int) -> int:
    """How far ahead the next change is looked for: as far as runs of symbols are long."""
    far = int(np.ceil(4.0 * _mean_run(data)))
    fits = _MOST_HELD // max(1, max_draws * data.num_sequences * data.num_symbols)
    return max(steps, min(far, fits, _MOST_AHEAD))


def _mean_run(data: Sequences) -> float:
    """How long runs of a symbol are on average."""
    symbols = seen_symbols(data, np.arange(data.num_symbols))
    starts = ~data.follows
    starts[1:] |= symbols[1:] != symbols[:-1]
    return float((symbols >= 0).sum() / max(1, (starts & (symbols >= 0)).sum()))


def _seen(data: Sequences, path: IntArray | None) -> Section:
    """What was observed, all sequences below each other; those of a panel by their states."""
    most = "; with several observations a step, the most frequent" if data.totals.max() > 1 else ""
    how = f"A row a sequence%s, a colour a symbol{most}; at most the last 300 steps."
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
        shown = raster(data, rows=rows, names=named)
    else:
        which, shown = "", raster(data)
    return Section("Observed symbols", how % which, figures=[shown], shown=0)


def _largest_move(past: StepProbs, ahead: Forecast) -> str:
    """Where the forecast leads farthest from where a sequence ends."""
    data, steps = ahead.sequences, ahead.mean.shape[1]
    ends = past.mean[data.offsets[1:] - 1]
    s, k = np.unravel_index(np.abs(ahead.mean[:, -1] - ends).argmax(), ends.shape)
    lower, upper = ahead.quantiles[:, s, -1, k]
    name, goes = name_of(data, int(s)), "rise" if ahead.mean[s, -1, k] > ends[s, k] else "fall"
    where = f" in {name}" if data.num_sequences > 1 else ""
    return (
        f"Within {steps} steps the probability of {labels_of(data)[k]}{where} is to {goes} most,"
        f" from {ends[s, k]:.2f} to {ahead.mean[s, -1, k]:.2f} [{lower:.2f}, {upper:.2f}]."
    )


def _lasting(change: NextChange) -> str:
    """How long the present symbols last."""
    data, names = change.sequences, labels_of(change.sequences)
    middle, low, high = (change.quantile(level) for level in (0.5, 0.05, 0.95))
    if data.num_sequences == 1:
        now, then, p = names[change.present[0]], int(change.then[0].argmax()), change.then[0].max()
        if middle[0] == 0:
            return (
                f"The present {now} is likely to change at once (probability"
                f" {change.lasts[0, 0]:.2f}), most likely to {names[then]} ({p:.2f})."
            )
        if middle[0] >= change.horizon:
            return f"The present {now} continues for {change.horizon} steps or more (median)."
        top = f"{high[0]}{' or more' * int(high[0] >= change.horizon)}"
        return (
            f"The present {now} continues for {middle[0]} more steps (median; 90 % interval"
            f" {low[0]} to {top}), and then comes {names[then]} with probability {p:.2f}."
        )
    changing, weights = change.lasts[:, 0], data.weights
    if np.nanmax(changing) < _HARDLY:
        return "No change of symbol is likely at the next step of any sequence."
    s, steps = int(np.nanargmax(changing)), float(np.median(middle[change.present >= 0]))
    ends = np.flatnonzero(change.present >= 0)
    mean = np.average(changing[ends], weights=None if weights is None else weights[ends])
    last = f"{change.horizon} steps or more"
    if steps < change.horizon:
        last = f"{steps:.0f} step{'s' * (round(steps) != 1)}"
    return (
        f"A change of symbol is most likely next in {name_of(data, s)} (now"
        f" {names[change.present[s]]}): probability {changing[s]:.2f}; over the"
        f" {data.num_sequences} sequences it is {mean:.2f} on average, and the"
        f" present symbol continues for {last} (median)."
    )


def _range(past: StepProbs) -> tuple[FloatArray, FloatArray]:
    """Between which probabilities each symbol is at nine tenths of the steps."""
    low, high = np.quantile(past.mean, [0.05, 0.95], axis=0)
    return low, high


def _movement(past: StepProbs) -> str:
    low, high = _range(past)
    k = int((high - low).argmax())
    name = labels_of(past.sequences)[k]
    if high[k] - low[k] < 0.05:
        return "The probabilities hardly move: shares of all symbols say nearly as much."
    return (
        f"Probabilities move, that of {name} most: between {low[k]:.2f} and {high[k]:.2f} at nine"
        " tenths of the steps."
    )


def _swings(run: Posterior) -> list[str]:
    """Periods of the transition's complex eigenvalues, where all draws agree on them."""
    if not isinstance(run.model, HasStateSpace):
        return []
    transition = np.asarray(run["transition"])
    values = np.linalg.eigvals(transition.reshape(-1, *transition.shape[2:]))
    steady = (values.imag > 1e-3) & (np.abs(values) > 0.8)
    count = np.bincount(steady.sum(axis=1)).argmax()
    draws = values[steady.sum(axis=1) == count]
    if count == 0 or len(draws) < 0.8 * len(values):
        return []
    angles = np.sort(np.where((draws.imag > 1e-3) & (np.abs(draws) > 0.8), np.angle(draws), np.inf))
    intervals = []
    for periods in (2.0 * np.pi / angles[:, :count]).T:
        low, middle, high = np.quantile(periods, [0.05, 0.5, 0.95])
        if high < 1.25 * low:
            intervals.append(f"{middle:.1f} [{low:.1f}, {high:.1f}]")
    if not intervals:
        return []
    return [f"They swing with a period of {' and of '.join(intervals)} steps (90 % interval)."]


def _next(ahead: Forecast) -> str:
    """How clear the next step is."""
    best = ahead.mean[:, 0].max(axis=1)
    names, n = labels_of(ahead.sequences), len(best)
    s, mean = int(best.argmax()), np.average(best, weights=ahead.sequences.weights)
    k = int(ahead.mean[s, 0].argmax())
    if n == 1:
        return f"Next comes {names[k]} with probability {best[s]:.2f}."
    return (
        f"The next symbol is clearest in {name_of(ahead.sequences, s)}: {names[k]} with probability"
        f" {best[s]:.2f}; over the {n} sequences the most probable one has {mean:.2f} on"
        " average."
    )


def _symbols(past: StepProbs) -> Section:
    data = past.sequences
    low, high = _range(past)
    shares = np.bincount(data.symbols, data.counts, data.num_symbols) / data.counts.sum()
    order = np.argsort(-(high - low), kind="stable")[:_MOST_ROWS]
    names = labels_of(data)
    rows = [(names[k], f"{shares[k]:.3f}", f"{low[k]:.2f} to {high[k]:.2f}") for k in order]
    return Section(
        "Which symbols move",
        "Share of all observations, and between which values the posterior mean of a symbol's"
        " probability is at nine tenths of the steps.",
        head=("symbol", "share", "probability"), rows=rows, shown=8,
    )  # fmt: skip


def _coming(
    ahead: Forecast, percent: str, holds: bool, order: IntArray, channel: int, narrow: bool
) -> Section:
    """Probabilities of the symbols that come, the likeliest first; how sure these are, second."""
    data, names = ahead.sequences, labels_of(ahead.sequences)
    rows = []
    at = [0]
    if not is_panel(data):
        at = sorted({0, ahead.mean.shape[1] // 2, ahead.mean.shape[1] - 1})
    count = min(3, data.num_symbols)
    for s in order[: _MOST_LISTED // len(at)].tolist():
        for h in at:
            mean, (lower, upper) = ahead.mean[s, h], ahead.quantiles[:, s, h]
            first = np.argsort(-mean, kind="stable")[:count]
            time = () if data.starts is None else (when(data, s, data.lengths[s] + h),)
            cells = [f"{names[k]} {mean[k]:.2f}" for k in first]
            ends = f"[{lower[first[0]]:.2f}, {upper[first[0]]:.2f}]"
            rows.append((label_of(data, s), str(h + 1), *time, *cells, ends))
    return Section(
        "What comes next" + (f" in channel {channel + 1}" if channel else ""),
        "The probability that a symbol comes, so many steps ahead: the likeliest first, then its"
        f" rivals. The {percent} is of the first probability: how precisely it is estimated, not"
        " which symbol comes."
        + holds * " Inputs are those of the last step."
        + narrow
        * " Some steps ahead it is too narrow where shares keep moving in one direction: `--model"
        " trend` (MultinomialTrend) learns how far they do.",
        head=(
            key_of(data), "ahead", *(() if data.starts is None else ("time",)),
            *("first", "second", "third")[:count], percent,
        ),
        rows=rows, shown=9,
    )  # fmt: skip


def _figures(past: StepProbs, ahead: Forecast, order: IntArray) -> Section:
    """Probabilities along the first sequences of an order."""
    data = past.sequences
    few = np.sort(order[:_MOST_PANELS]).tolist()
    stacks = [symbol_stack(past, ahead, sequence=s, last=_HISTORY) for s in few]
    which = ""
    if data.num_sequences > _MOST_PANELS:
        which = f" of {len(few)} " + ("that stand out" if is_panel(data) else "of the longest")
    return Section(
        "Probabilities, and the forecast",
        f"At each step{which}, the probability of each symbol, stacked; the strip above has"
        " the observed symbols. Right of the dashed line is the forecast.",
        figures=stacks, shown=0,
    )  # fmt: skip


def data_in_words(data: Sequences) -> str:
    """How many observations of how many symbols, in how many steps and sequences."""
    parts = {
        "sequence": data.num_sequences,
        "step": data.num_steps,
        "different symbol": data.num_symbols,
        "observation": int(data.counts.sum()),
    }
    counts = [f"{n:,} {what}{'s' * (n != 1)}" for what, n in parts.items()]
    if data.channels:
        counts[2] += f" of {len(data.channels)} channels"
    return f"{', '.join(counts[:-1])} and {counts[-1]}"


def _held_out(ahead: Forecast, held_out: Sequences, data: Sequences) -> str:
    """The forecast of what was held out, beside shares of all symbols."""
    if held_out.num_sequences != data.num_sequences or held_out.num_symbols != data.num_symbols:
        raise ValueError(
            f"held_out must continue the {data.num_sequences} sequences of {data.num_symbols}"
            f" symbols, got {held_out!r}"
        )
    step = held_out.step_of_entry
    sequence = np.searchsorted(held_out.offsets, step, side="right") - 1
    probs = ahead.mean[sequence, step - held_out.offsets[sequence], held_out.symbols]
    shares = np.bincount(data.symbols, data.counts, data.num_symbols) + 1.0
    shares = ((shares / shares.sum())[held_out.symbols]).astype(np.float64)
    groups = sequence if data.num_sequences > 1 else step
    scored, plain = (
        Score(
            np.bincount(groups, held_out.counts * np.log(np.maximum(p, 1e-300))).astype(np.float64),
            np.bincount(groups, held_out.counts).astype(np.int64),
        )
        for p in (probs, shares)
    )
    gained = scored.gain_over(plain)
    return (
        f"How the sequences went on ({int(held_out.counts.sum()):,} observations that were held"
        f" out, up to {held_out.lengths.max()} steps ahead) is predicted {gained.word}"
        f" by overall shares: {gained} nats an observation."
    )

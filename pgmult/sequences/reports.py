"""What a posterior of sequences says, in plain words: what swings, what comes next, how sure.

`report` computes everything once; `pgmult.core.reports` shows it on a terminal and on a
page.
"""

import os
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from pgmult.core.arguments import as_kind, as_mapping, as_path, as_probability, brief
from pgmult.core.reports import Interval, Report, Section, check_section
from pgmult.core.scores import mean_by_token
from pgmult.core.typing import FloatArray
from pgmult.core.validate import as_positive_int, as_simplex
from pgmult.sampling.convergence import chains_in_words
from pgmult.sampling.posterior import Posterior
from pgmult.sequences.checks import check
from pgmult.sequences.data.sequences import Sequences
from pgmult.sequences.figures import labels_of, name_of, symbol_lines, when
from pgmult.sequences.forecasts import Forecast, StepProbs, forecast, predict
from pgmult.sequences.models.lds import MultinomialLDS
from pgmult.sequences.posteriors import sequences_of
from pgmult.sequences.scores.one_step import Gain, SequenceScore
from pgmult.sequences.updates.state_slice import slow_symbol

__all__ = ["data_in_words", "report"]

_MOST_LINES, _MOST_PANELS, _MOST_ROWS = 6, 3, 60
_HISTORY = 100  # steps in a figure


def report(
    posterior: Posterior,
    page: str | os.PathLike[str] | None = None,
    *,
    title: str = "Sequences of symbols",
    facts: Mapping[str, str] | None = None,
    steps: int = 12,
    held_out: Sequences | None = None,
    scores: Mapping[str, SequenceScore] | None = None,
    truth: tuple[ArrayLike, ArrayLike] | None = None,
    probability: float = 0.9,
    max_draws: int = 400,
    random_seed: int = 0,
) -> Report:
    """Summarise a posterior of sequences, without inputs, driven by linear Gaussian states.

    Parameters
    ----------
    posterior : Posterior
        That kept ``states`` beside the variables that its model keeps by default.
    page : path, optional
        Where to write the report as an HTML page.
    title : str
    facts : mapping from str to str, optional
    steps : int
        How far ahead to forecast; at least as far as what was held out.
    held_out : Sequences, optional
        How each sequence went on, which the model was not shown.
    scores : mapping from a forecaster's name to SequenceScore, optional
        Of the steps held out, one step ahead each; this model first.
    truth : pair of arrays, optional
        Where they are known, probabilities of the steps ``(num_steps, num_symbols)``, and of those
        ahead ``(num_sequences, steps, num_symbols)``.
    probability : float
        Of the intervals.
    max_draws : int
    random_seed : int
        Of the forecasts' simulations.

    Raises
    ------
    ValueError
        If the data have inputs, or the posterior did not keep what it takes.
    """
    as_kind(title, "title", str)
    place = None if page is None else as_path(page, "page")
    tail = 0.5 * (1.0 - as_probability(probability, "probability"))
    max_draws = as_positive_int(max_draws, "max_draws")
    data = sequences_of(posterior)
    if data.num_inputs:
        raise ValueError("data must have no inputs: those of steps ahead are not known here")
    steps = as_positive_int(steps, "steps")
    if held_out is not None:
        steps = max(steps, int(as_kind(held_out, "held_out", Sequences).lengths.max()))
    levels = (tail, 1.0 - tail)
    past = predict(posterior, levels=levels, max_draws=max_draws)
    ahead = forecast(posterior, steps, levels=levels, max_draws=max_draws, random_seed=random_seed)
    known = None
    if truth is not None:
        pair = truth if isinstance(truth, tuple | list) and len(truth) == 2 else None
        if pair is None:
            raise TypeError(f"truth must be a pair of arrays, got {brief(truth)}")
        known = as_simplex(pair[0], "truth"), as_simplex(pair[1], "truth")
        if known[0].shape != past.mean.shape or known[1].shape != ahead.mean.shape:
            raise ValueError(
                f"truth must have shapes {past.mean.shape} and {ahead.mean.shape}, got"
                f" {known[0].shape} and {known[1].shape}"
            )
    percent = f"{round(100 * probability)} % interval"
    verdict = [_movement(past), *_swings(posterior), _next(ahead)]
    sections = [
        _symbols(past),
        *_figures(past, ahead, known, percent),
        _coming(ahead, percent, known),
    ]
    told = [] if held_out is None else [_held_out(ahead, held_out, data)]
    scores = {
        k: as_kind(v, "scores", SequenceScore) for k, v in as_mapping(scores, "scores").items()
    }
    told += _one_step(scores)
    verdict += told
    if told:
        rows = [(name, score.mean, score.standard_error) for name, score in scores.items()]
        sections.append(
            Section(
                "What was held out",
                sentences=told,
                head=("one step ahead", "nats an observation", "±") if rows else (),
                rows=rows,
            )
        )
    fit = check(posterior, max_draws=max_draws, random_seed=random_seed)
    verdict.append(fit.verdict)
    sections.append(check_section(fit))
    if known is not None:
        verdict.append(_against_truth(past, ahead, known, percent))
    chains, *details = chains_in_words(
        posterior, {"probabilities": "last_probs", "log likelihoods": "log_likelihood"}
    )
    verdict.append(chains)
    model = posterior.model
    by_gibbs = isinstance(model, MultinomialLDS) and model.update == "gibbs"
    slow = slow_symbol(data) if by_gibbs else None
    if slow is not None:
        details.append(f"{slow}.")
    sections.append(Section("Diagnostics", sentences=[chains, *details]))
    about = {"data": data_in_words(data), **as_mapping(facts, "facts")}
    return Report(title, verdict, sections, about).save(place)


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


def _swings(posterior: Posterior) -> list[str]:
    """Periods of the transition's complex eigenvalues, where all draws agree on them."""
    transition = np.asarray(posterior["transition"])
    values = np.linalg.eigvals(transition.reshape(-1, *transition.shape[2:]))
    steady = (values.imag > 1e-3) & (np.abs(values) > 0.8)
    count = np.bincount(steady.sum(axis=1)).argmax()
    draws = values[steady.sum(axis=1) == count]
    if count == 0 or len(draws) < 0.8 * len(values):
        return []
    angles = np.sort(np.where((draws.imag > 1e-3) & (np.abs(draws) > 0.8), np.angle(draws), np.inf))
    told = []
    for periods in (2.0 * np.pi / angles[:, :count]).T:
        low, middle, high = np.quantile(periods, [0.05, 0.5, 0.95])
        if high < 1.25 * low:
            told.append(f"{middle:.1f} [{low:.1f}, {high:.1f}]")
    if not told:
        return []
    return [f"They swing with a period of {' and of '.join(told)} steps (90 % interval)."]


def _next(ahead: Forecast) -> str:
    """How clear the next step is."""
    best = ahead.mean[:, 0].max(axis=1)
    names, n = labels_of(ahead.sequences), len(best)
    s = int(best.argmax())
    k = int(ahead.mean[s, 0].argmax())
    if n == 1:
        return f"Next comes {names[k]} with probability {best[s]:.2f}."
    return (
        f"The next symbol is clearest in {name_of(ahead.sequences, s)}: {names[k]} with probability"
        f" {best[s]:.2f}; over the {n} sequences the most probable one has {best.mean():.2f} on"
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


def _coming(ahead: Forecast, percent: str, known: tuple[FloatArray, FloatArray] | None) -> Section:
    data, names = ahead.sequences, labels_of(ahead.sequences)
    rows = []
    at = sorted({0, ahead.mean.shape[1] // 2, ahead.mean.shape[1] - 1})
    for s in range(min(data.num_sequences, _MOST_ROWS // len(at))):
        for h in at:
            mean, (lower, upper) = ahead.mean[s, h], ahead.quantiles[:, s, h]
            k = int(mean.argmax())
            cell = Interval(float(mean[k]), float(lower[k]), float(upper[k]))
            truth = () if known is None else (f"{known[1][s, h, k]:.2f}",)
            told = () if data.starts is None else (when(data, s, data.lengths[s] + h),)
            rows.append((name_of(data, s), str(h + 1), *told, names[k], cell, *truth))
    return Section(
        "What comes next",
        f"The most probable symbol so many steps ahead, and its probability [{percent}: where that"
        " may be, not which symbol comes].",
        head=(
            "sequence", "ahead", *(() if data.starts is None else ("time",)), "symbol",
            "probability", *(() if known is None else ("truth",)),
        ),
        rows=rows, shown=9,
    )  # fmt: skip


def _figures(
    past: StepProbs, ahead: Forecast, known: tuple[FloatArray, FloatArray] | None, percent: str
) -> list[Section]:
    data = past.sequences
    low, high = _range(past)
    chosen = np.sort(np.argsort(-(high - low), kind="stable")[:_MOST_LINES]).tolist()
    longest = np.sort(np.argsort(-data.lengths, kind="stable")[:_MOST_PANELS])
    panels = [
        symbol_lines(
            past, ahead, sequence=int(s), symbols=chosen, last=_HISTORY, truth=known, band=percent
        )
        for s in longest
    ]
    which = "" if data.num_sequences <= _MOST_PANELS else f"; {len(longest)} of the longest"
    what = "all symbols" if data.num_symbols <= _MOST_LINES else "the symbols that move most"
    title = "Probabilities, and what lies ahead"
    return [Section(title, f"Of {what}{which}.", figures=panels, shown=0)]


def data_in_words(data: Sequences) -> str:
    """How many observations of how many symbols, in how many steps and sequences."""
    parts = {
        "sequence": data.num_sequences,
        "step": data.num_steps,
        "different symbol": data.num_symbols,
        "observation": int(data.counts.sum()),
    }
    told = [f"{n:,} {what}{'s' * (n != 1)}" for what, n in parts.items()]
    return f"{', '.join(told[:-1])} and {told[-1]}"


def _held_out(ahead: Forecast, held_out: Sequences, data: Sequences) -> str:
    """The whole continuation, told without a look at it, beside shares of all symbols."""
    if held_out.num_sequences != data.num_sequences or held_out.num_symbols != data.num_symbols:
        raise ValueError(
            f"held_out must continue the {data.num_sequences} sequences of {data.num_symbols}"
            f" symbols, got {held_out!r}"
        )
    step = np.repeat(np.arange(held_out.num_steps), np.diff(held_out.indptr))
    sequence = np.searchsorted(held_out.offsets, step, side="right") - 1
    probs = ahead.mean[sequence, step - held_out.offsets[sequence], held_out.symbols]
    shares = np.bincount(data.symbols, data.counts, data.num_symbols) + 1.0
    gains = held_out.counts * (
        np.log(np.maximum(probs, 1e-300)) - np.log((shares / shares.sum())[held_out.symbols])
    )
    groups = sequence if data.num_sequences > 1 else step
    gain, error = mean_by_token(
        np.bincount(groups, gains).astype(np.float64),
        np.bincount(groups, held_out.counts).astype(np.int64),
    )
    told = Gain(gain, error, error)
    return (
        f"How the sequences went on ({int(held_out.counts.sum()):,} observations that were held"
        f" out, up to {held_out.lengths.max()} steps ahead) is told {told.word} than by"
        f" overall shares: {gain:+.3f} ± {error:.3f} nats an observation."
    )


def _one_step(scores: Mapping[str, SequenceScore]) -> list[str]:
    if len(scores) < 2:
        return []
    (_, own), *others = scores.items()
    parts = []
    for name, other in others:
        gain = own.gain_over(other)
        parts.append(f"{gain.word} than {name} ({gain.mean:+.3f} ± {gain.standard_error:.3f} nats)")
    return [f"One step ahead, those observations are told {', '.join(parts)}."]


def _against_truth(
    past: StepProbs, ahead: Forecast, known: tuple[FloatArray, FloatArray], percent: str
) -> str:
    inside, error = [], []
    for truth, mean, (lower, upper) in (
        (known[0], past.mean, past.quantiles),
        (known[1], ahead.mean, ahead.quantiles),
    ):
        inside.append(((lower <= truth) & (truth <= upper)).mean())
        error.append(np.abs(mean - truth).mean())
    return (
        f"The truth is known here: the {percent}s hold {100 * inside[0]:.0f} % of the true"
        " probabilities"
        f" ({100 * inside[1]:.0f} % of those ahead), and a mean is {error[0]:.3f} off on average"
        f" ({error[1]:.3f} ahead)."
    )

"""Hidden states with names: what each one emits, where it leads, how long it lasts, and when it is.

The numbers of hidden states are arbitrary, and switch between chains and within them, so that an
average over draws is of nothing. Here the states of every draw are matched to those of its chain,
and the chains' to each other, by the steps at which they are: two states are compared by the total
variation distance of their probabilities over all steps, and assigned one to one. They are then
numbered from 1, the most frequent first. Where two chains' probabilities of a state have less than
half in common (the sum of the smaller over that of the larger ones), it is no counterpart: a chain
that lacks a state of the likeliest chain has other states: it is named, and left out of averages.

>>> import numpy as np, pgmult
>>> from pgmult.sequences import MultinomialHMM, as_sequences
>>> data = as_sequences(["AABAAABA" * 3 + "CCBCCBCCC" * 3] * 2)
>>> run = pgmult.sample(
...     MultinomialHMM(2), data, draws=400, tune=100, chains=2, random_seed=0, progressbar=False
... )
>>> states = run.states()
>>> states.emissions.mean.round(1).tolist()
[[0.0, 0.2, 0.8], [0.7, 0.2, 0.0]]
>>> states.path[[0, -1]].tolist()
[1, 0]
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pgmult.compiled.rows import over_rows
from pgmult.core.answers import Answer
from pgmult.core.arguments import as_probability
from pgmult.core.figures.pairs import HeatMap
from pgmult.core.reports import Interval, Report, Section
from pgmult.core.tabled import Column, Table, number, with_interval
from pgmult.core.typing import BoolArray, FloatArray, IntArray
from pgmult.core.validate import as_positive_int
from pgmult.sampling.labels import MATCH_LIMIT, LabelMatches, match_rows
from pgmult.sampling.posterior import Posterior
from pgmult.sequences import figures
from pgmult.sequences.compiled import hmm as compiled
from pgmult.sequences.data.sequences import Sequences
from pgmult.sequences.models.hmm import chains_of
from pgmult.sequences.posteriors import draws_of, sequences_of

if TYPE_CHECKING:
    from pgmult.sequences.models.hmm import MultinomialHMM

_HELD = 1 << 25  # probabilities of states
_TINY = 1e-12  # added to probabilities over steps of a state that is nowhere
_PASSES = 2  # over a chain's draws, to match them


class Averages(NamedTuple):
    """Posterior means with the ends of intervals; arrays of one shape, states first."""

    mean: FloatArray
    lower: FloatArray
    upper: FloatArray

    @classmethod
    def of(cls, draws: FloatArray, probability: float) -> "Averages":
        """Averages of draws along the first axis."""
        beside = 0.5 - 0.5 * probability
        lower, upper = np.quantile(draws, [beside, 1.0 - beside], axis=0)
        return cls(draws.mean(axis=0), lower, upper)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class States(Answer):
    """Hidden states, matched over draws and chains, the most frequent first.

    Attributes
    ----------
    draws : array, ``(num_draws, num_rows)``
        Draws of each row of the `table`.
    shares : Averages, ``(num_states,)``
        Shares of the steps up to the last observation of each sequence.
    emissions : Averages, ``(num_states, num_symbols)``
        Probabilities of symbols in each state; averages over the steps where inputs act on them.
    transitions : Averages, ``(num_states, num_states)``
        Row i: probabilities of the next state, given state i; averages as well.
    durations : Averages, ``(num_states,)``
        Mean steps of a visit, median of draws: steps in the state over visits of it, so that each
        visit counts once where inputs act on transitions.
    probs : array, ``(num_steps, num_states)``
        Probability of each state at each step, given all observations.
    path : int array, ``(num_steps,)``
        The most probable path of states, from 0, under the posterior means of all probabilities
        (Viterbi's); the most probable state of each step if `filtered`.
    sequences : Sequences
        Whose steps these are.
    matches : LabelMatches
        Of the chains' states, as the reference chain numbers them.
    agreement : array, ``(num_chains,)``
        At which share of the data's steps each chain holds the same state as the reference to be
        the most probable.
    used : bool array, ``(num_chains,)``
        Which chains have all states of the reference: averages are over these.
    probability : float
        Coverage of the intervals.
    filtered : bool
        Whether `probs` are given the observations up to each step alone.
    """

    draws: FloatArray
    shares: Averages
    emissions: Averages
    transitions: Averages
    durations: Averages
    probs: FloatArray
    path: IntArray
    sequences: Sequences
    matches: LabelMatches
    agreement: FloatArray
    used: BoolArray
    probability: float
    filtered: bool = False

    @property
    def names(self) -> list[str]:
        """What the states are called: as the known ones are, the others by numbers from 1."""
        return self.sequences.names_of_states(len(self.shares.mean))

    @property
    def _first(self) -> str:
        return "the most frequent" if self.sequences.state_names is None else "the known ones"

    @property
    def sentences(self) -> list[str]:
        """Whether chains agree, in words."""
        line = self.matches.headline("states")
        others = np.delete(self.agreement, self.matches.reference)
        if len(others):
            who = "both" if len(others) == 1 else "all"
            line += f", at {100 * others.min():.0f} % of the steps {who} hold the same one to be"
            line += " the most probable"
        lines = [f"{line[0].upper()}{line[1:]}."]
        if not self.used.all():
            gone = f"{int((~self.used).sum())} of {len(self.used)} chains have other states"
            lines.append(f"{gone} and are left out: try fewer states, or more chains.")
        return lines

    def table(self) -> Table:
        """A row for each number: ``state``, ``what``, ``of``, ``mean`` and its interval."""
        symbols, states = figures.labels_of(self.sequences), self.names
        what = ["share", "duration", *["emission"] * len(symbols), *["transition"] * len(states)]
        of = ["", "", *symbols, *states]
        names = {
            "state": [name for name in states for _ in of], "what": what * len(states),
            "of": of * len(states),
        }  # fmt: skip
        columns = [Column(name, cells, name) for name, cells in names.items()]
        ends = zip(self.shares, self.durations, self.emissions, self.transitions, strict=True)
        numbers = [np.column_stack(of_end).ravel() for of_end in ends]
        columns += with_interval("mean", numbers, "mean", self.probability, number(3))
        return Table(f"Hidden states, {self._first} first.", columns)

    def steps(self) -> Table:
        """A row for each step: the state on the most probable path, and probabilities of all."""
        data = self.sequences
        columns = figures.place_columns(data, data.sequence_of_step, data.place_of_step)
        path = np.array(self.names)[self.path] if data.state_names is not None else self.path + 1
        columns.append(Column("state", path, "state"))
        for m, name in enumerate(self.names):
            columns.append(Column(f"p{name}", self.probs[:, m], f"p{name}", number(3)))
        what = "The most probable path of states, and the probability of each"
        if self.filtered:
            what = "The most probable state, and the probability of each, given the steps up to it"
        return Table(f"{what}.", columns)

    def figure(self) -> HeatMap:
        """The probabilities of symbols (columns) in each state (rows)."""
        return HeatMap(
            self.emissions.mean, [f"state {name}" for name in self.names],
            figures.labels_of(self.sequences), label="probabilities of symbols in each state",
            x_label="symbol", y_label="state",
        )  # fmt: skip

    def section(self) -> Section:  # type: ignore[override]
        """What a report has of them."""
        symbols, percent = figures.labels_of(self.sequences), round(100 * self.probability)
        rows, leads = [], self.transitions.mean - 2.0 * np.eye(len(self.names))
        for m, name in enumerate(self.names):
            emits, then = self.emissions.mean[m], int(leads[m].argmax())
            often = np.argsort(-emits, kind="stable")[:3]
            share, lasts = ([ends[m] for ends in of] for of in (self.shares, self.durations))
            likeliest = ", ".join(f"{symbols[k]} {emits[k]:.2f}" for k in often)
            leads_to = f"{self.names[then]} ({self.transitions.mean[m, then]:.2f})"
            cells = str(Interval(*share)), figures.steps_in_words(*lasts), likeliest, leads_to
            rows.append((name, *cells))
        return Section(
            "Hidden states",
            f"Matched over draws and chains, {self._first} first: share of steps, mean steps of a"
            f" visit ({percent} % intervals), likeliest symbols, the state that mostly follows.",
            sentences=self.sentences, rows=rows,
            head=("state", "share", "lasts", "symbols", "then"),
        )  # fmt: skip

    def __repr__(self) -> str:
        sections = [replace(self.section(), sentences=())]
        return Report("Hidden states", self.sentences, sections).text()


class _Draw(NamedTuple):
    """A draw of one chain, with the probabilities of its states at the data's steps."""

    chain: int
    values: dict[str, Any]
    probs: FloatArray


def states(
    run: Posterior, data: object = None, *, filtered: bool = False, probability: float = 0.9,
    max_draws: int = 200,
) -> States:  # fmt: skip
    """The hidden states of a run: what they are, and when they are.

    Parameters
    ----------
    run : Posterior
        Run of `pgmult.sequences.MultinomialHMM` or `pgmult.sequences.MixedHMM`.
    data : Sequences, or what the model takes, optional
        Sequences to decode; those of the run by default, on which states are matched anyway.
    filtered : bool
        Decode each step from the observations up to it alone, as one could have at the time.
    probability : float
        Coverage of the intervals.
    max_draws : int
        Draws to use at most, as many of each chain.

    Returns
    -------
    States

    Raises
    ------
    ValueError
        If a variable that the model predicts by was not kept, or the data have other symbols.
    """
    probability = as_probability(probability, "probability")
    most = as_positive_int(max_draws, "max_draws")
    model, data_of_run = run.model, sequences_of(run)
    decoded = data_of_run if data is None else sequences_of(run, data)
    decoded = replace(decoded, state_names=data_of_run.state_names)
    taken, matches, agreement, used = matched_draws(run, most)
    until_last = ~figures.is_after_last(data_of_run)
    weights = None if data_of_run.step_weights is None else data_of_run.step_weights[until_last]
    rows = [
        (
            np.average(draw.probs[until_last][:, place], axis=0, weights=weights),
            draw.values["emission"][place], draw.values["transition"][np.ix_(place, place)],
            _leaving(model, draw, data_of_run)[place],
        )
        for draw, place in taken
    ]  # fmt: skip
    shares, emission, moves, leaves = (np.array(draws) for draws in zip(*rows, strict=True))
    lasts = 1.0 / np.maximum(leaves, _TINY)
    durations = Averages.of(lasts, probability)._replace(mean=np.median(lasts, axis=0))
    by_state = np.concatenate([shares[..., None], lasts[..., None], emission, moves], axis=2)
    return States(
        by_state.reshape(len(taken), -1), Averages.of(shares, probability),
        Averages.of(emission, probability), Averages.of(moves, probability), durations,
        *_decoded(model, taken, decoded, data is None, filtered), decoded,
        matches, agreement, used, probability, filtered,
    )  # fmt: skip


def matched_draws(
    run: Posterior, max_draws: int
) -> tuple[list[tuple[_Draw, IntArray]], LabelMatches, FloatArray, BoolArray]:
    """Draws of a run whose states are matched over draws and chains, the most frequent first.

    States that are known at some steps come before, and need no matching: as if each had been seen
    at many more steps.

    Returns
    -------
    taken : list of pairs
        Draws of chains that have all states, and the place of each state in them.
    matches, agreement, used
        As in `States`.
    """
    data = sequences_of(run)
    T, named = data.num_steps, 0 if data.state_names is None else len(data.state_names)
    sure = T * np.eye(run.model.num_states)[:named]
    fits = max(10, _HELD // (data.num_steps * run.model.num_states))
    draws = list(draws_with_states(run, data, min(max_draws, fits)))
    chains = sorted({draw.chain for draw in draws})
    probs = [[np.concatenate([d.probs, sure]) for d in draws if d.chain == c] for c in chains]
    orders, means = zip(*map(_matched, probs), strict=True)
    fit = np.asarray(run.sample_stats["log_likelihood"]).mean(axis=1)
    reference = int(np.argmax(fit[: len(chains)]))
    matches = match_rows(np.swapaxes(means, 1, 2) + _TINY, reference, limit=1.0)
    alike = np.array([mean[:T, order] for mean, order in zip(means, matches.order, strict=True)])
    both = np.minimum(alike, alike[reference]).sum(axis=1)
    either = np.maximum(alike, alike[reference]).sum(axis=1)
    matches = replace(matches, distance=1.0 - both / np.maximum(either, _TINY), limit=MATCH_LIMIT)
    used = np.asarray(matches.found.all(axis=1))
    often = alike[reference].mean(axis=0)
    often[:named] = np.arange(named + 1.0, 1.0, -1.0)
    frequent, best = np.argsort(-often, kind="stable"), alike.argmax(axis=2)
    taken: list[tuple[_Draw, IntArray]] = []
    for c in np.flatnonzero(used).tolist():
        of_chain = [draw for draw in draws if draw.chain == chains[c]]
        places = [order[matches.order[c]][frequent] for order in orders[c]]
        taken += zip(of_chain, places, strict=True)
    order, distance = matches.order[:, frequent], matches.distance[:, frequent]
    matches = replace(matches, order=order, distance=distance)
    return taken, matches, (best == best[reference]).mean(axis=1), used


def _leaving(model: "MultinomialHMM", draw: _Draw, data: Sequences) -> FloatArray:
    """The share of steps in each state after which it is left: one over the mean visit."""
    moves, _, which = model.probs_of_steps(model.state_of(draw.values), data)
    leaves: FloatArray = 1.0 - np.diagonal(moves, axis1=1, axis2=2)
    if len(leaves) == 1:
        return np.asarray(leaves[0])
    steps = np.flatnonzero(data.follows)
    weights = draw.probs[steps - 1] + _TINY
    return np.asarray((weights * leaves[which[steps]]).sum(axis=0) / weights.sum(axis=0))


def draws_with_states(run: Posterior, data: Sequences, max_draws: int) -> Iterator[_Draw]:
    """Draws of all chains, as many of each."""
    model = run.model
    draws = draws_of(run, model.predictive_variables, max_draws)
    size = len(draws) // run.num_chains
    for i, values in enumerate(draws):
        yield _Draw(i // size, values, model.state_probs(model.state_of(values), data))


def _matched(probs: Sequence[FloatArray]) -> tuple[list[IntArray], FloatArray]:
    """The order of states in each draw that makes them alike, and their mean probabilities."""
    mean, orders = probs[-1], list[IntArray]()
    for _ in range(_PASSES):
        pairs = (np.swapaxes([mean, one], 1, 2) + _TINY for one in probs)
        orders = [match_rows(pair, limit=1.0).order[1] for pair in pairs]
        mean = np.mean([one[:, order] for one, order in zip(probs, orders, strict=True)], axis=0)
    return orders, mean


def _decoded(
    model: "MultinomialHMM", taken: Sequence[tuple[_Draw, IntArray]], data: Sequences,
    fitted: bool, filtered: bool,
) -> tuple[FloatArray, IntArray]:  # fmt: skip
    """Probabilities of states at each step, and the most probable path."""
    total = np.zeros((data.num_steps, model.num_states))
    sums: list[Any] = [0.0, 0.0, 0.0]  # of first states, transitions and emissions
    which = np.zeros(data.num_steps, dtype=np.int64)
    for draw, place in taken:
        state = model.state_of(draw.values)
        if filtered:
            probs = model.filtered_state_probs(state, data)[1]
        else:
            probs = draw.probs if fitted else model.state_probs(state, data)
        total += probs[:, place] / len(taken)
        moves, emits, which = model.probs_of_steps(state, data)
        ordered = state.initial[place], moves[:, place][:, :, place], np.take(emits, place, axis=-2)
        sums = [x + new / len(taken) for x, new in zip(sums, ordered, strict=True)]
    if filtered:
        return total, total.argmax(axis=1)
    initial, transition, emission = map(np.asarray, sums)
    chains = chains_of(data, initial, (transition, emission, which))
    path = np.empty(data.num_steps, dtype=np.int64)
    over_rows(compiled.likeliest_paths, data.num_sequences, chains, path, grain=1)
    return total, path

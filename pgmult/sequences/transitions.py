r"""Transitions of symbols or of hidden states, and what follows from them, with intervals.

The transition matrix of each draw says which symbol or state comes a step later. From it follow,
draw by draw, how long visits last, the probability of reaching a state, the steps spent in each and
the shares at each step ahead: all are exact for that draw.

>>> import pgmult
>>> from pgmult.sequences import MarkovChain, as_sequences
>>> data = as_sequences(["AAAB", "AABB", "ABBB", "AAAA"] * 10)
>>> run = pgmult.sample(
...     MarkovChain(1), data, draws=200, tune=10, chains=2, random_seed=0, progressbar=False
... )
>>> moves = run.transitions()
>>> moves.draws.shape, moves.mean.round(1).tolist()
((400, 2, 2), [[0.7, 0.3], [0.0, 1.0]])
>>> moves.durations().mean.shape, moves.occupancy(5).mean.shape, moves.reach(5).mean.shape
((2,), (2, 6, 2), (2, 2))
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pgmult.core.answers import Answer
from pgmult.core.arguments import as_choice, as_mapping, as_probability
from pgmult.core.estimands import Estimand
from pgmult.core.figures.pairs import HeatMap
from pgmult.core.reports import Section
from pgmult.core.tabled import Table
from pgmult.core.typing import FloatArray
from pgmult.core.validate import as_positive_int
from pgmult.formulas.columns import label_or_quantile_values
from pgmult.formulas.design import Design, distinct_rows, table_of
from pgmult.sampling.posterior import Posterior
from pgmult.sequences.data.sequences import Sequences, few_of
from pgmult.sequences.figures import labels_of
from pgmult.sequences.models.hmm import MultinomialHMM
from pgmult.sequences.models.markov import MarkovChain
from pgmult.sequences.models.mixed_markov import MixedMarkovChain
from pgmult.sequences.posteriors import draws_of, sequences_of
from pgmult.sequences.states import draws_with_states, matched_draws

_MOST_ROWS = 100  # of inputs that differ
_HARDLY = 1e-6  # chance of leaving a state below which it is as if nobody did


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Transitions(Answer):
    """Transition probabilities with their draws.

    Attributes
    ----------
    probs : array, ``(num_draws, num_groups, num_rows, num_from, num_to)``
        Transition matrices at rows of inputs.
    weights : array, ``(num_draws, num_groups, num_rows, num_from)``
        How many visits of a state the averages over rows are of.
    before, after : sequence of str
        Names of the rows and the columns of a matrix.
    group : str
        The column of the groups; empty if there is one group.
    values : sequence
        The values of the groups.
    what : str
        "symbol" or "hidden state".
    probability : float
        Coverage of the intervals.
    without_data : sequence of str
        Symbols or contexts after which no step was observed: their rows come from the prior.
    note : str
        What else to say of the averages over rows of inputs.
    """

    probs: FloatArray
    weights: FloatArray
    before: Sequence[str]
    after: Sequence[str]
    group: str
    values: Sequence[Any]
    what: str
    probability: float
    without_data: Sequence[str] = ()
    note: str = ""

    def _averaged(self, values: FloatArray) -> FloatArray:
        """Average over rows of inputs what depends on a state and, perhaps, on more."""
        weights = self.weights.reshape(*self.weights.shape, *[1] * (values.ndim - 4))
        mean: FloatArray = (weights * values).sum(axis=2) / weights.sum(axis=2)
        return mean if self.group else mean[:, 0]

    def _estimand(
        self, draws: FloatArray, axes: Mapping[str, Sequence[object]], caption: str, **more: Any
    ) -> Estimand:
        labels = {**({self.group: self.values} if self.group else {}), **axes}
        more |= {"caption": caption, "probability": self.probability}
        return Estimand(draws, tuple(labels), labels, **more)

    def _pairs(self, values: FloatArray, caption: str) -> Estimand:
        """Averages of what depends on two states."""
        axes = {"from": self.before, "to": self.after}
        return self._estimand(self._averaged(values), axes, caption)

    @property
    def draws(self) -> FloatArray:
        """Transition matrices, ``(num_draws, [num_groups,] num_from, num_to)``."""
        return self._averaged(self.probs)

    @property
    def estimand(self) -> Estimand:
        """The transition probabilities, which can be subtracted, selected and plotted."""
        caption = f"Probability that a {self.what} (to) comes a step after another (from)."
        return self._pairs(self.probs, caption + self._warning)

    @property
    def mean(self) -> FloatArray:
        """Posterior means of the transition matrices."""
        return self.estimand.mean

    def table(self) -> Table:
        """A row for each pair of symbols or states, in each group."""
        return self.estimand.table()

    def difference(self, one: object, other: object) -> Estimand:
        """The transition probabilities of one group minus those of another."""
        if not self.group:
            raise ValueError("a difference takes groups: ask for transitions(by=) or at= values")
        return self.estimand.difference(self.group, one, other)

    @property
    def _warning(self) -> str:
        if not self.without_data:
            return self.note
        names = few_of(self.without_data)
        return f"{self.note} No step was observed after {names}: rows from the prior."

    # ------------------------------------------------------------------ what follows

    def _square(self) -> FloatArray:
        if len(self.before) != len(self.after):
            raise ValueError("this takes transitions of order 1: longer contexts are no states")
        return self.probs

    def durations(self) -> Estimand:
        """Mean steps of a visit: 1 / (1 - p), p the probability of staying.

        Where inputs differ, it is the steps of all visits over the number of these: one over the
        mean of 1 - p. States that nobody leaves have none, and are named in the caption.

        Raises
        ------
        ValueError
            If nobody leaves any state.
        """
        leaves = self._averaged(1.0 - np.diagonal(self._square(), axis1=3, axis2=4))
        ends = (leaves >= _HARDLY).reshape(-1, len(self.before)).mean(axis=0) > 0.5
        if not ends.any():
            raise ValueError(f"durations need a {self.what} that is left, nobody leaves any")
        caption, names = f"Mean steps of a visit to a {self.what}.", np.asarray(self.before)
        if not ends.all():
            caption += f" Nobody leaves {few_of(names[~ends])}."
        if (leaves[..., ends] < _HARDLY).any():
            caption += f" A visit that hardly ever ends has {1.0 / _HARDLY:,.0f}."
        lasts = 1.0 / np.maximum(leaves[..., ends], _HARDLY)
        return self._estimand(lasts, {"in": names[ends].tolist()}, caption, is_ratio=True)

    def reach(self, steps: int | None = None) -> Estimand:
        """Probability of being in each state at least once within so many steps, from each.

        Without a number of steps it is that of ever reaching it, the limit. It is 1 for all states
        that lead to each other by transitions of any probability, however small: rule out those
        that cannot be (`MarkovChain.allowed`).
        """
        moves, size = self._square(), len(self.before)
        chances = np.empty_like(moves)
        for j in range(size):
            others = moves * (np.arange(size) != j)  # which do not arrive
            ever = np.zeros(moves.shape[:-1]) if steps is not None else _ever(moves, j)
            for _ in range(1 if steps is None else as_positive_int(steps, "steps")):
                ever = moves[..., j] + (others @ ever[..., None])[..., 0]
            chances[..., j] = ever
        within = "ever" if steps is None else f"within {steps} steps"
        return self._pairs(chances, f"Probability of reaching a {self.what} (to) {within}.")

    def occupancy(self, steps: int) -> Estimand:
        """Shares of the states 0, 1, ..., `steps` steps after each."""
        moves = self._square()
        shares = [np.broadcast_to(np.eye(len(self.before)), moves.shape)]
        for _ in range(as_positive_int(steps, "steps")):
            shares.append(shares[-1] @ moves)
        averages = self._averaged(np.stack(shares, axis=4))
        axes = {"from": self.before, "step": range(steps + 1), "to": self.after}
        caption = f"Share of each {self.what} (to) so many steps ahead."
        return self._estimand(averages, axes, caption)

    def time_in(self, steps: int) -> Estimand:
        """Expected number of the next `steps` steps in each state, from each."""
        moves = self._square()
        power, total = moves, moves.copy()
        for _ in range(as_positive_int(steps, "steps") - 1):
            power = power @ moves
            total = total + power
        what = f"Expected number of the next {steps} steps in each {self.what} (to)."
        return self._pairs(total, what)

    # ------------------------------------------------------------------ shown

    @property
    def _rows(self) -> list[tuple[str, str]]:
        """The group, "" for none, and the name of each row of the matrices."""
        values = self.values if self.group else [""]
        groups = [f"{v:g}" if isinstance(v, float) else str(v) for v in values]
        return [(group, name) for group in groups for name in self.before]

    def figure(self) -> HeatMap:
        """A heat map: rows lead to columns."""
        mean = self.mean.reshape(-1, len(self.after))
        rows = [f"{self.group} {one}: {name}" if one else name for one, name in self._rows]
        return HeatMap(
            mean, rows, list(self.after), label=f"probabilities of the next {self.what}",
            x_label=f"the next {self.what}", y_label=f"{self.what} now",
        )  # fmt: skip

    def section(self, title: str = "Transitions", note: str = "", **options: object) -> Section:
        """A matrix with intervals, and its heat map."""
        answer = self.estimand
        ends = zip(answer.mean.ravel(), answer.lower.ravel(), answer.upper.ravel(), strict=True)
        cells = [f"{m:.2f} [{a:.2f}, {b:.2f}]" if b - a > 1e-12 else f"{m:.2f}" for m, a, b in ends]
        rows = zip(self._rows, np.reshape(cells, (-1, len(self.after))), strict=True)
        percent = f"{round(100 * self.probability)} % intervals"
        note = note or (
            f"Probabilities of a {self.what} (columns) a step after another (rows), with {percent};"
            f" missing steps are summed out.{self._warning}"
        )
        head = [self.group, "after", *self.after][not self.group :]
        return Section(
            title, note, head=head, figures=[self.figure(**options)], shown=24,
            rows=[(*pair[not self.group :], *row.tolist()) for pair, row in rows],
        )  # fmt: skip

    def sentence(self, state: int) -> str:
        """What comes after a state, in words; of the first group."""
        name = self.before[state]
        if name in self.without_data:
            return f"No step was observed after {name}: the data do not say what comes next."
        mean = self.mean[0, state] if self.group else self.mean[state]
        order = np.argsort(-mean, kind="stable")[:4]
        rows = [f"{mean[j]:.2f} are {self.after[j]}" for j in order if mean[j] >= 0.005]
        return f"Of those in {name} at a step, {', '.join(rows)} at the next."


def _ever(moves: FloatArray, target: int) -> FloatArray:
    """Probability of ever reaching a state from each other one, ``(..., num_states)``.

    States are eliminated one by one without a subtraction (Grassmann, Taksar and Heyman 1985,
    "Regenerative analysis and steady state distributions for Markov chains"), so that rare
    transitions keep all their digits. What is caught in states that do not lead to the target is in
    a last column.
    """
    size = moves.shape[-1]
    flows = np.concatenate([moves, np.zeros((*moves.shape[:-1], 1))], axis=-1)
    others = [k for k in range(size) if k != target]
    chances, leaving = np.zeros(moves.shape[:-1]), {}
    for place in reversed(range(len(others))):
        k, kept = others[place], [*others[:place], target, size]
        total = flows[..., k, kept].sum(axis=-1, keepdims=True)
        share = np.zeros((*total.shape[:-1], size + 1))
        share[..., kept] = flows[..., k, kept] / np.where(total > 0.0, total, 1.0)
        share[..., size] += total[..., 0] == 0.0
        leaving[k] = share
        flows = flows + flows[..., :, k, None] * share[..., None, :]
    for place, k in enumerate(others):
        before = others[:place]
        arrives = (leaving[k][..., before] * chances[..., before]).sum(axis=-1)
        chances[..., k] = leaving[k][..., target] + arrives
    return chances


def transitions(
    run: Posterior, *, at: Mapping[str, Any] | None = None, by: str | None = None,
    probability: float = 0.9, max_draws: int = 400,
) -> Transitions:  # fmt: skip
    """Probabilities of the next symbol, or hidden state, given the present one.

    Parameters
    ----------
    run : Posterior
        Run of a Markov chain, or of a hidden Markov model, whose states are matched over draws.
    at : mapping from str to value or list of values, optional
        Values of inputs, which all rows then have; one input may have several values.
    by : str, optional
        Input whose values make groups of rows.
    probability : float
        Coverage of the intervals.
    max_draws : int
        Draws to use at most.

    Returns
    -------
    Transitions
        Print it for a table; ``.durations()``, ``.reach(steps)``, ``.occupancy(steps)``,
        ``.time_in(steps)`` and ``.difference(one, other)`` follow from it.

    Raises
    ------
    ValueError
        If an input is named that the run does not have.
    """
    probability = as_probability(probability, "probability")
    most, data = as_positive_int(max_draws, "max_draws"), sequences_of(run)
    settings, names = as_mapping(at, "at"), labels_of(data)
    if (settings or by is not None) and data.design is None:
        wanted = "an input of the run, which has none (fit with --inputs)"
        raise ValueError(f"{'by' if by else 'at'} must name {wanted}")
    if isinstance(run.model, MarkovChain):
        draws = draws_of(run, ["rows"], most)
        probs = run.model.transition_probs({"rows": np.array([d["rows"] for d in draws])})
        before = [" ".join(names[k] for k in c) for c in run.model.contexts_of_symbols(data)]
        return Transitions(
            probs[:, None, None], np.ones((len(probs), 1, 1, len(before))), before, names, "", (),
            "symbol", probability, run.model.contexts_without_data(data, before),
        )  # fmt: skip
    model: MultinomialHMM = run.model
    if isinstance(model, MixedMarkovChain):  # whose states are the symbols
        taken = [(draw, np.arange(len(names))) for draw in draws_with_states(run, data, most)]
        what = "symbol"
    else:
        taken, what = matched_draws(run, most)[0], "hidden state"
        names = data.names_of_states(model.num_states)
    variables = model.predictive_variables
    values = {name: np.array([draw.values[name] for draw, _ in taken]) for name in variables}
    places = np.array([place for _, place in taken])
    column, levels, groups = _settings(data, settings, by)
    matrices, weights = list[FloatArray](), list[FloatArray]()
    of_step = np.ones(data.num_steps) if data.step_weights is None else data.step_weights
    for design, part in groups:
        steps = np.flatnonzero(data.follows & part)
        if design is None:
            moves, cell = model.transition_probs(values)[:, None], np.zeros(len(steps), np.int64)
        else:
            rows, cell = distinct_rows(design.take(steps))
            if len(rows.matrix) > _MOST_ROWS:
                chosen = np.unique(np.linspace(0, len(steps) - 1, _MOST_ROWS).astype(np.int64))
                steps, cell = steps[chosen], np.arange(len(chosen))
                rows = design.take(steps)
            moves = model.transition_probs(values, rows)
        visits = np.zeros(moves.shape[:3])
        for visited, (draw, _) in zip(visits, taken, strict=True):
            np.add.at(visited, cell, of_step[steps, None] * draw.probs[steps - 1])
        matrices.append(np.array([m[:, p][:, :, p] for m, p in zip(moves, places, strict=True)]))
        weights.append(np.array([v[:, p] for v, p in zip(visits, places, strict=True)]) + 1e-12)
    sides = _stacked(matrices), _stacked(weights), names, names
    note = data.weighting if data.design is not None else ""
    return Transitions(*sides, column, levels, what, probability, note=note)


def _stacked(groups: Sequence[FloatArray]) -> FloatArray:
    """Values of groups along the second axis, all with as many rows, with zeros appended."""
    draws, *rest = groups[0].shape[0], *groups[0].shape[2:]
    out = np.zeros((draws, len(groups), max(values.shape[1] for values in groups), *rest))
    for g, values in enumerate(groups):
        out[:, g, : values.shape[1]] = values
    return out


def _settings(
    data: Sequences, at: Mapping[str, object], by: str | None
) -> tuple[str, Sequence[object], list[tuple[Design | None, Any]]]:
    """The column of groups, its values, and the design and the rows of each group."""
    every = np.ones(data.num_steps, dtype=np.bool_)
    if data.design is None:
        return "", (), [(None, every)]
    cells = table_of(data.design)
    if by in cells and np.asarray(cells[by]).dtype.kind in "fM":  # a number has no groups
        at, by = {**at, by: label_or_quantile_values(cells[by])}, None
    several = {name: list(v) for name, v in at.items() if isinstance(v, list | tuple | np.ndarray)}
    for name in (*at, *([] if by is None else [by])):
        as_choice(name, "by" if name == by else "at", list(cells))
    if len(several) + (by is not None) > 1:
        raise ValueError("at must have one input with several values, and none with by")
    fixed = {name: value for name, value in at.items() if name not in several}

    def design(**changes: Any) -> Design:
        assert data.design is not None
        new = {name: np.full(data.num_steps, value) for name, value in (fixed | changes).items()}
        return data.design.like({**cells, **new}, num_rows=data.num_steps) if new else data.design

    if several:
        ((column, values),) = several.items()
        return column, values, [(design(**{column: value}), every) for value in values]
    if by is None:
        return "", (), [(design(), every)]
    values, alike = list(label_or_quantile_values(cells[by], data.design.levels_of(by))), design()
    return by, values, [(alike, np.asarray(cells[by]) == value) for value in values]

"""Moves of hidden Markov models with inputs, the states summed out.

First states, transitions and emissions are a part each: Dirichlet rows, or regressions of their
sticks on inputs. All move along one path (`pgmult.sequences.updates.summed_out`), and then the
standard deviations of each stick by interweaving (`pgmult.latent.moves`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from pgmult.compiled.rows import over_rows
from pgmult.core.memory import once_a_data_set
from pgmult.core.typing import FloatArray, IntArray
from pgmult.formulas.design import Design, distinct_rows
from pgmult.latent.moves import interwoven
from pgmult.latent.predictors import Latent, check_priors, latent_of
from pgmult.sequences.compiled import hmm as compiled
from pgmult.sequences.compiled.hmm_paths import Moved, leap
from pgmult.sequences.data.sequences import Sequences
from pgmult.sequences.models.hmm import filtered, leading
from pgmult.sequences.updates.summed_out import (
    Columns,
    Part,
    Regressions,
    Rows,
    Values,
    walk_summed_out,
)

ACTED = ("transitions", "emissions")
_WIDTH = 1.5  # of the first interval of a slice
_LEAST_KNOWN = 0.25  # of what is known where all states are alike: the least of the metric


class _Part(NamedTuple):
    """Terms that act on transitions or on emissions.

    Attributes
    ----------
    latent : Latent
        Of the cells.
    columns : Columns
        Of their design.
    w, x : int arrays
        Their places among the weights and the hyperparameters of all terms.
    absorbed : tuple
        What cells say of the weights, were all that is known of psi one observation's worth.
    """

    latent: Latent
    columns: Columns
    w: IntArray
    x: IntArray
    absorbed: Any


class SeenInputs(NamedTuple):
    """Inputs as sweeps take them.

    Attributes
    ----------
    latent : Latent
        Of all terms, at the different rows of inputs, the cells.
    parts : tuple of _Part
        Of transitions and emissions.
    which : int array, ``(num_steps,)``
    share : array, ``(num_cells,)``
        Of the steps.
    """

    latent: Latent
    parts: tuple[_Part, _Part]
    which: IntArray
    share: FloatArray

    def blank(self, num_sticks: int) -> tuple[FloatArray, FloatArray]:
        """Hyperparameters and weights of terms that act on nothing: zeros."""
        family = self.latent.family
        size = family.num_hyperparameters, family.num_weights
        return np.zeros((num_sticks, size[0])), np.zeros((num_sticks, size[1]))


@once_a_data_set
def seen_inputs(design: Design, model: Any) -> SeenInputs:
    """Inputs of a design as sweeps of the model take them."""
    check_priors(design, model.priors)
    cells, which = distinct_rows(design)
    share = np.bincount(which) / len(which)
    whole = latent_of(cells, model.priors)
    first, second = (_part(cells, model, name, whole, share) for name in ACTED)
    return SeenInputs(whole, (first, second), which, share)


def _part(cells: Design, model: Any, name: str, whole: Latent, share: FloatArray) -> _Part:
    """The terms of a formula for transitions or emissions; all where there is none."""
    formula = model.inputs.get(name) if isinstance(model.inputs, Mapping) else None
    columns, terms = np.arange(len(cells.names)), list(range(len(cells.terms)))
    if formula is not None:
        columns, terms = cells.places(formula)
    own = replace(
        cells, names=cells.names[columns], matrix=cells.matrix[:, columns].copy(),
        centre=cells.centre[columns], scale=cells.scale[columns],
        terms=tuple(cells.terms[i] for i in terms),
    )  # fmt: skip
    latent = latent_of(own, model.priors)

    def places(slices: list[slice], fixed: IntArray) -> IntArray:
        rest = [np.arange(slices[1 + i].start, slices[1 + i].stop) for i in terms]
        return np.concatenate([fixed, *rest]).astype(np.int64)

    family = whole.family
    return _Part(
        latent, Columns.of(latent.family.design), places(family.weights, columns),
        places(family.hyperparameters, np.empty(0, dtype=np.int64)),
        latent.family.absorb(share, np.zeros(len(share))),
    )  # fmt: skip


def _times(absorbed: Any, by: float) -> Any:
    """What cells say of the weights, so many times; of the precision alone."""
    packed, pull = absorbed
    if isinstance(packed, tuple):
        blocks, between, others = packed
        packed = by * blocks, between._replace(values=by * between.values), by * others
    else:
        packed = by * packed
    return packed, 0.0 * pull


def places_of(shifts: tuple[FloatArray, FloatArray]) -> list[slice]:
    """Of the sticks of transitions and of emissions among all on which inputs act."""
    first, second = map(len, shifts)
    return [slice(0, first), slice(first, first + second)]


def blank_chains(
    data: Sequences, num_states: int, transitions: int, emissions: int, which: IntArray
) -> compiled.Chains:
    """Chains without probabilities, of so many cells, and of the cell of each step."""
    moves, log_moves = np.empty((2, transitions, num_states, num_states))
    emits, log_emits = np.empty((2, emissions * data.num_symbols, num_states))
    symbols = data.symbols
    if emissions > 1:
        symbols = symbols + data.num_symbols * np.repeat(which, np.diff(data.indptr))
    return compiled.Chains(
        data.offsets, data.indptr, symbols.astype(np.int32), data.counts, np.empty(num_states),
        moves, log_moves, emits, log_emits, False, leading(moves, which),
    )  # fmt: skip


class SummedOut:
    """First states, transitions and emissions at a state of the chain, as paths move them.

    Parameters
    ----------
    model : MixedHMM
    state : MixedHMMState
    data : Sequences

    Attributes
    ----------
    parts : tuple of Part
    values : tuple of arrays
        What moves: sticks of Dirichlet rows, or weights.
    before : tuple of arrays, ``(num_cells or 1, num_rows, num_categories)``
        What is as if it had been observed before: concentrations of Dirichlet rows.
    """

    def __init__(self, model: Any, state: Any, data: Sequences):
        self.seen: SeenInputs = model.seen(data.design)
        self._data = data
        M, shifts = model.num_states, model.shifts(data.num_symbols)
        concentrations = (
            np.full((1, M), model.initial_concentration),
            state.transition_concentration + state.stickiness * np.eye(M),
            np.full((M, data.num_symbols), state.emission_concentration),
        )
        rows = state.initial[None], state.transition, state.emission
        known, places = state.information, places_of(shifts)
        parts, values, before = list[Part](), list[FloatArray](), list[FloatArray]()
        sticks = model.sticks(data.order)
        for i, own in enumerate(sticks):
            mine, known = known[: own.size], known[own.size :]
            if i == 0 or not len(shifts[i - 1]):
                before.append(concentrations[i][None])
                a, reached = (each[0] for each in own.tried(before[i]))
                prior = a * (reached - a) / reached
                parts.append(Rows(own, a, reached, mine.reshape(prior.shape) + prior))
                values.append(own.psi(rows[i]))
                continue
            part, place = self.seen.parts[i - 1], places[i - 1]
            before.append(np.zeros((len(self.seen.share), *own.order.shape)))
            laws = [
                part.latent.family.at(x, _times(part.absorbed, float(j)))
                for x, j in zip(state.hyperparameters[place][:, part.x], mine, strict=True)
            ]
            information = mine[:, None] * self.seen.share
            constants = part.latent.family.offset[:, None] + shifts[i - 1]
            parts.append(
                Regressions(own, part.latent.family, part.columns, constants, laws, information)
            )
            values.append(state.weights[place][:, part.w])
        self.parts: tuple[Part, Part, Part] = (parts[0], parts[1], parts[2])
        self.values: Values = (values[0], values[1], values[2])
        self.before = before[0], before[1], before[2]
        self._orders = tuple(own.order for own in sticks)
        self._shapes = [own.order[:, 1:].shape for own in sticks]
        T = data.num_steps
        self._room = np.empty(T), np.empty((T, M)), np.zeros((T, M, M))
        self._blank = blank_chains(data, M, len(before[1]), len(before[2]), self.seen.which)

    def psi(self, values: Values) -> list[FloatArray]:
        """Predictors of the sticks of each part."""
        return [part.psi(own) for part, own in zip(self.parts, values, strict=True)]

    def counts(self, psi: Sequence[FloatArray]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """How often the categories of each row occurred, in expectation given observations."""
        data, (_, smoothed, pairs) = self._data, self._room
        over_rows(compiled.smooth_paths, data.num_sequences, self.chains(psi), *self._room, grain=1)
        first, moves, emits = self.before
        counts = np.zeros_like(first), np.zeros_like(moves), np.zeros_like(emits)
        slopes = np.empty(psi[0].shape), np.empty(psi[1].shape), np.empty(psi[2].shape)
        compiled.add_up_counts(
            (data.offsets, data.indptr, data.symbols, data.counts), self.seen.which, smoothed,
            pairs, tuple(psi), self._orders, counts, slopes,
        )  # fmt: skip
        return counts

    def leap(self, parts: Sequence[Moved], size: float, count: int) -> tuple[float, float]:
        """So many leapfrogs of a size; the log likelihoods at both ends, -inf if refused."""
        data, first, moves, emits = self._data, *parts
        psi = tuple(
            np.empty((len(part.constants), *shape))
            for part, shape in zip(parts, self._shapes, strict=True)
        )
        slopes = tuple(np.empty_like(own) for own in psi)
        flat = [tuple(own.reshape(len(own), -1) for own in each) for each in (psi, slopes)]
        start, end = leap(
            self._blank, (data.offsets, data.indptr, data.symbols, data.counts), self.seen.which,
            self._orders, self.before, (first, moves, emits), (psi, flat[0]), (slopes, flat[1]),
            self._room, size, count,
        )  # fmt: skip
        return start, end

    def log_likelihood(self, psi: Sequence[FloatArray]) -> float:
        """Of predictors."""
        return float(filtered(self.chains(psi))[0].sum())

    def chains(self, psi: Sequence[FloatArray]) -> compiled.Chains:
        """The sequences and the probabilities of predictors, until others are asked for."""
        given = max(map(len, psi)), tuple(psi), self._orders, self._blank
        least = min(over_rows(compiled.break_sticks, *given))
        if least >= compiled.SMALLEST:
            return self._blank
        with np.errstate(divide="ignore"):
            logs = np.log(self._blank.transition)
        return self._blank._replace(log_transition=logs, in_logs=True)


def move_probabilities(
    rng: np.random.Generator, model: Any, state: Any, data: Sequences
) -> tuple[Any, compiled.Chains]:
    """All probabilities after a path and moves of standard deviations, states summed out.

    Those that inputs act on come in the chains of all sequences, and as averages in the state.
    """
    at = SummedOut(model, state, data)
    parts, values = at.parts, at.values
    if all(np.isfinite(own).all() for own in values):  # a row may have a probability of 0
        values = walk_summed_out(rng, parts, at.leap, values, data.num_steps)
        rows = [part.sticks.probs(v[None])[0] for part, v in zip(parts, values, strict=True)
                if isinstance(part, Rows)]  # fmt: skip
        state = replace(state, initial=rows[0][0])
        if not model.acts_on_transitions:
            state = replace(state, transition=rows[1])
        if not model.acts_on_emissions:
            state = replace(state, emission=rows[-1])
    w, x = state.weights.copy(), state.hyperparameters.copy()
    psi, done = at.psi(values), 0
    for i, part in enumerate(parts):
        if not isinstance(part, Regressions):
            continue
        own, family = at.seen.parts[i - 1], part.family
        columns = psi[i].reshape(len(psi[i]), -1)  # the same numbers
        for s, weights in enumerate(values[i]):

            def total(moved: FloatArray, columns: FloatArray = columns, s: int = s) -> float:
                columns[:, s] = moved
                return at.log_likelihood(psi)

            x[done + s, own.x], w[done + s, own.w] = interwoven(
                rng, family, x[done + s, own.x], weights, columns[:, s].copy(), total, _WIDTH
            )
            columns[:, s] = family.times(w[done + s, own.w]) + part.constants[:, s]
        done += len(values[i])
    chains, share = at.chains(psi), at.seen.share
    if model.acts_on_transitions:
        state = replace(state, transition=np.einsum("c,cij->ij", share, chains.transition))
    if model.acts_on_emissions:
        each = chains.emission.reshape(len(share), -1, model.num_states)
        state = replace(state, emission=np.einsum("c,ckm->mk", share, each))
    return replace(state, weights=w, hyperparameters=x), chains


def scattered(rng: np.random.Generator, model: Any, state: Any, data: Sequences) -> Any:
    """The state with weights as far apart as the metric has them.

    Standard deviations of effects that are all 0 would go to 0, too.
    """
    at, w, done = SummedOut(model, state, data), state.weights.copy(), 0
    for i, part in enumerate(at.parts):
        if isinstance(part, Regressions):
            own = np.arange(done, done + len(part.laws))
            w[np.ix_(own, at.seen.parts[i - 1].w)] += part.velocity(rng)
            done += len(own)
    return replace(state, weights=w)


def least_known(model: Any, data: Sequences) -> FloatArray:
    """A share of the information of complete data, were all states and symbols alike."""
    M, K = model.num_states, data.num_symbols
    alike = (
        np.full((1, M), data.num_sequences / M), np.full((M, M), data.num_steps / M**2),
        np.full((M, K), data.totals.sum() / (M * K)),
    )  # fmt: skip
    found = []
    for sticks, counts in zip(model.sticks(data.order), alike, strict=True):
        taken, reached = sticks.tried(counts[None])
        found.append((taken * (reached - taken) / reached).ravel())
    return np.asarray(_LEAST_KNOWN * np.concatenate(found))


def known(model: Any, state: Any, data: Sequences) -> FloatArray:
    """The information of complete data at a state, in expectation given the observations."""
    at, found = SummedOut(model, state, data), []
    psi = at.psi(at.values)
    for part, one, counts in zip(at.parts, psi, at.counts(psi), strict=True):
        _, reached = part.sticks.tried(counts)
        found.append((reached * expit(one) * expit(-one)).sum(axis=0).ravel())
    return np.asarray(np.maximum(np.concatenate(found), least_known(model, data)))

"""Moves of hidden Markov models with inputs, the states summed out.

First states, transitions and emissions are a part each: Dirichlet rows, or regressions of their
sticks on inputs. All move along one path (`pgmult.sequences.updates.summed_out`), standard
deviations with the weights that they multiply, and then all hyperparameters given the weights.
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
from pgmult.latent.moves import given_weights
from pgmult.latent.predictors import Latent, check_priors, latent_of
from pgmult.sequences.compiled import hmm as compiled
from pgmult.sequences.compiled.hmm_paths import Moved, colour_velocity, leap
from pgmult.sequences.data.sequences import Sequences
from pgmult.sequences.models.hmm import filtered, leading
from pgmult.sequences.updates.summed_out import (
    Effects,
    Parts,
    of_rows,
    predictors,
    walk_summed_out,
)

ACTED = ("transitions", "emissions")
_LEAST_KNOWN = 0.25  # of what is known where all states are alike: the least of the metric


class _Part(NamedTuple):
    """Terms that act on transitions or on emissions.

    Attributes
    ----------
    latent : Latent
        Of the cells.
    effects : Effects
    w, x : int arrays
        Their places among the weights and the hyperparameters of all terms.
    """

    latent: Latent
    effects: Effects
    w: IntArray
    x: IntArray


class InputsOfSweeps(NamedTuple):
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

    def start(self, shifts: tuple[FloatArray, FloatArray]) -> tuple[FloatArray, FloatArray]:
        """Hyperparameters from which a search begins, and weights: 0, as all that acts on nothing.

        `shifts` are the constants of the sticks.
        """
        family, num_sticks = self.latent.family, sum(map(len, shifts))
        x = np.zeros((num_sticks, family.num_hyperparameters))
        for terms, place in zip(self.parts, places_of(shifts), strict=True):
            x[place, terms.x] = terms.latent.family.start()
        return x, np.zeros((num_sticks, family.num_weights))


@once_a_data_set
def seen_inputs(design: Design, model: Any) -> InputsOfSweeps:
    """Inputs of a design as sweeps of the model take them."""
    check_priors(design, model.priors)
    cells, which = distinct_rows(design)
    share = np.bincount(which) / len(which)
    latent = latent_of(cells, model.priors)
    first, second = (_part(cells, model, name, latent, share) for name in ACTED)
    return InputsOfSweeps(latent, (first, second), which, share)


def _part(cells: Design, model: Any, name: str, every: Latent, share: FloatArray) -> _Part:
    """The terms of a formula for transitions or emissions; all where there is none."""
    formula = model.inputs.get(name) if isinstance(model.inputs, Mapping) else None
    columns, terms = np.arange(len(cells.names)), list(range(len(cells.terms)))
    if formula is not None:
        columns, terms = cells.places(formula)
    chosen = replace(
        cells, names=cells.names[columns], matrix=cells.matrix[:, columns].copy(),
        centre=cells.centre[columns], scale=cells.scale[columns],
        terms=tuple(cells.terms[i] for i in terms),
    )  # fmt: skip
    latent = latent_of(chosen, model.priors)

    def places(slices: list[slice], fixed: IntArray) -> IntArray:
        effects = [np.arange(slices[1 + i].start, slices[1 + i].stop) for i in terms]
        return np.concatenate([fixed, *effects]).astype(np.int64)

    family = every.family
    return _Part(
        latent, Effects(latent.family, share), places(family.weights, columns),
        places(family.hyperparameters, np.empty(0, dtype=np.int64)),
    )  # fmt: skip


def places_of(shifts: tuple[FloatArray, FloatArray]) -> list[slice]:
    """Places of sticks of transitions and of emissions among all on which inputs act."""
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
    sticks : tuple of Sticks
    parts : tuple of Moved
    before : tuple of arrays, ``(num_cells or 1, num_rows, num_categories)``
        What is as if it had been observed before: concentrations of Dirichlet rows.
    acted : dict
        Of the parts that inputs act on: their terms, and the places of their sticks among all.
    """

    def __init__(self, model: Any, state: Any, data: Sequences):
        self.seen: InputsOfSweeps = model.seen(data.design)
        self._data = data
        M, shifts = model.num_states, model.shifts(data.num_symbols)
        concentrations = (
            np.full((1, M), model.initial_concentration),
            state.transition_concentration + state.stickiness * np.eye(M),
            np.full((M, data.num_symbols), state.emission_concentration),
        )
        rows = state.initial[None], state.transition, state.emission
        acting = zip(self.seen.parts, places_of(shifts), strict=True)
        self.acted = {1 + i: item for i, item in enumerate(acting) if len(shifts[i])}
        self.sticks = model.sticks(data.order)
        *information, near = np.split(
            state.information, np.cumsum([item.size for item in self.sticks])
        )
        parts, before = list[Moved](), list[FloatArray]()
        for i, sticks in enumerate(self.sticks):
            if i not in self.acted:
                before.append(concentrations[i][None])
                a, reached = (item[0] for item in sticks.tried(before[i]))
                prior = a * (reached - a) / reached
                parts.append(
                    of_rows(sticks.psi(rows[i]), information[i].reshape(prior.shape) + prior)
                )
                continue
            terms, place = self.acted[i]
            before.append(np.zeros((len(self.seen.share), *sticks.order.shape)))
            x = state.hyperparameters[place][:, terms.x]
            start = near.reshape(state.hyperparameters.shape)[place][:, terms.x]
            metric = terms.effects.metric(information[i], np.where(terms.effects.is_sd, start, x))
            constants = terms.effects.family.offset[:, None] + shifts[i - 1]
            w = state.weights[place][:, terms.w]
            parts.append(terms.effects.moved(w, x, constants, metric))
        self.parts: Parts = (parts[0], parts[1], parts[2])
        self.before = before[0], before[1], before[2]
        self._orders = tuple(acting.order for acting in self.sticks)
        T = data.num_steps
        self._room = np.empty(T), np.empty((T, M)), np.zeros((T, M, M))
        self._blank = blank_chains(data, M, len(before[1]), len(before[2]), self.seen.which)

    def psi(self, parts: Parts) -> list[FloatArray]:
        """Predictors of the sticks of each part."""
        return [predictors(*pair) for pair in zip(parts, self.sticks, strict=True)]

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

    def leap(self, parts: Parts, size: float, count: int) -> float:
        """So many leapfrogs of a size; by how much the log density grows, -inf if refused."""
        data = self._data
        flat = tuple(np.empty_like(moved.constants) for moved in parts)
        slopes = tuple(np.empty_like(array) for array in flat)
        shapes = [(-1, *array.order[:, 1:].shape) for array in self.sticks]

        def shaped(arrays: tuple[FloatArray, ...]) -> Any:
            both = zip(arrays, shapes, strict=True)
            return tuple(array.reshape(shape) for array, shape in both), arrays

        grown: float = leap(
            self._blank, (data.offsets, data.indptr, data.symbols, data.counts), self.seen.which,
            self._orders, self.before, parts, shaped(flat), shaped(slopes), self._room, size, count,
        )  # fmt: skip
        return grown

    def log_likelihood(self, psi: Sequence[FloatArray]) -> float:
        """Log likelihood of predictors."""
        return float(filtered(self.chains(psi))[0].sum())

    def chains(self, psi: Sequence[FloatArray]) -> compiled.Chains:
        """The sequences and the probabilities of predictors, until others are asked for."""
        arguments = max(map(len, psi)), tuple(psi), self._orders, self._blank
        least = min(over_rows(compiled.break_sticks, *arguments))
        if least >= compiled.SMALLEST:
            return self._blank
        with np.errstate(divide="ignore"):
            logs = np.log(self._blank.transition)
        return self._blank._replace(log_transition=logs, in_logs=True)


def move_probabilities(
    rng: np.random.Generator, model: Any, state: Any, data: Sequences
) -> tuple[Any, compiled.Chains]:
    """All probabilities after a path, states summed out, and hyperparameters given the weights.

    Those that inputs act on come in the chains of all sequences, and as averages in the state.
    """
    at = SummedOut(model, state, data)
    parts = at.parts
    if all(
        np.isfinite(terms.weights).all() for terms in parts
    ):  # a row may have a probability of 0
        parts = walk_summed_out(rng, parts, at.leap, data.num_steps)
    chains, share = at.chains(at.psi(parts)), at.seen.share
    emissions = chains.emission.reshape(-1, data.num_symbols, model.num_states)
    transition, emission = (
        np.tensordot(share if len(probs) > 1 else np.ones(1), probs, 1)
        for probs in (chains.transition, emissions)
    )
    w, x = state.weights.copy(), state.hyperparameters.copy()
    for i, (terms, place) in at.acted.items():
        family, moved = terms.effects.family, parts[i]
        w[place][:, terms.w] = moved.weights
        x[place][:, terms.x[terms.effects.is_sd]] = np.abs(moved.x)
        for s in range(place.start, place.stop):
            x[s, terms.x] = given_weights(rng, family, x[s, terms.x], w[s, terms.w])
    return replace(
        state, initial=chains.initial, transition=transition,
        emission=np.ascontiguousarray(emission.T), weights=w, hyperparameters=x,
    ), chains  # fmt: skip


def scattered(rng: np.random.Generator, model: Any, state: Any, data: Sequences) -> Any:
    """The state with weights as far apart as the metric has them.

    Standard deviations of effects that are all 0 would go to 0, too.
    """
    at, w = SummedOut(model, state, data), state.weights.copy()
    for i, (terms, place) in at.acted.items():
        velocity = rng.standard_normal(at.parts[i].velocity.shape)
        colour_velocity(at.parts[i]._replace(velocity=velocity))
        w[place][:, terms.w] += velocity[:, : len(terms.w)]
    return replace(state, weights=w)


def least_known(model: Any, data: Sequences) -> FloatArray:
    """What the metric has at first: see `MixedHMMState`.

    It is a share of the information of complete data, were all states and symbols alike.
    """
    M, K = model.num_states, data.num_symbols
    alike = (
        np.full((1, M), data.num_sequences / M), np.full((M, M), data.num_steps / M**2),
        np.full((M, K), data.totals.sum() / (M * K)),
    )  # fmt: skip
    least = []
    for sticks, counts in zip(model.sticks(data.order), alike, strict=True):
        taken, reached = sticks.tried(counts[None])
        least.append(_LEAST_KNOWN * (taken * (reached - taken) / reached).ravel())
    x, _ = model.seen(data.design).start(model.shifts(data.num_symbols))
    return np.concatenate([*least, x.ravel()])


def known(model: Any, state: Any, data: Sequences) -> FloatArray:
    """The information of complete data at a state, in expectation given the observations.

    Standard deviations of the metric go a fifth of the way to those of the state.
    """
    at, pieces = SummedOut(model, state, data), []
    psi = at.psi(at.parts)
    for sticks, one, counts in zip(at.sticks, psi, at.counts(psi), strict=True):
        _, reached = sticks.tried(counts)
        pieces.append((reached * expit(one) * expit(-one)).sum(axis=0).ravel())
    information = np.concatenate(pieces)
    near = 0.8 * state.information[len(information) :] + 0.2 * state.hyperparameters.ravel()
    return np.concatenate(
        [np.maximum(information, least_known(model, data)[: len(information)]), near]
    )

r"""Hidden Markov models with inputs, and with partially pooled effects of individuals.

A `MultinomialHMM` in which a formula acts on the transitions, on the emissions or on both
(Hughes, Guttorp and Charles 1999; Altman 2007, "Mixed hidden Markov models"). Rows of
probabilities break as sticks, each with a predictor that is a sum over terms
(`pgmult.latent.terms`)::

    transition_it  = sticks(psi_it),    psi_itk = (A w_ik)_t + c_k       into step t, from state i
    emission_mt    = sticks(psi_mt),    psi_mtk = (A w_mk)_t + c_k       at step t, in state m
    w              ~ N(0, Q(x)^-1),     x: half-t standard deviations, LKJ(2) correlations

The first stick of a transition is that of staying, so its weights are log odds of staying; the
others break in the order of the states, those of emissions in that of `Sequences.order`. The
constants c make shares equal where weights are 0. Parts that inputs do not act on are as in
`MultinomialHMM`.

A sweep moves all probabilities and standard deviations together by a Hamiltonian path with the
states summed out (`pgmult.sequences.updates.summed_out`), then the hyperparameters of each stick
given its weights (`pgmult.latent.moves`), and then draws states, concentrations and Dirichlet rows
as there.

>>> import numpy as np, pgmult
>>> rng = np.random.default_rng(0)
>>> table = {
...     "animal": np.repeat(["a", "b", "c"], 20), "warm": rng.standard_normal(60),
...     "does": rng.choice(["rests", "feeds", "moves"], size=60),
... }
>>> data = pgmult.read(table).sequences("does", sequence="animal", inputs="~ warm + (1 | animal)")
>>> posterior = pgmult.sample(
...     MixedHMM(num_states=2), data,
...     draws=10, tune=10, chains=1, random_seed=0, progressbar=False,
... )
>>> posterior["weights"].shape, posterior["sds"].shape
((1, 10, 2, 5), (1, 10, 2, 1))
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, NamedTuple
from zlib import crc32

import numpy as np
from scipy.special import expit

from pgmult.compiled.rows import over_rows
from pgmult.core.arguments import as_choice
from pgmult.core.blas import one_blas_thread
from pgmult.core.memory import once_a_data_set
from pgmult.core.parameters import axes_of
from pgmult.core.typing import Coords, Draw, FloatArray, Generator, IntArray
from pgmult.formulas.design import Design, distinct_rows, make_design
from pgmult.latent.moves import given_weights
from pgmult.latent.predictors import Latent, as_priors, check_priors, latent_of
from pgmult.sequences.compiled import hmm as compiled
from pgmult.sequences.compiled.hmm_paths import MovedPaths, colour_velocity, leap
from pgmult.sequences.data.sequences import Sequences
from pgmult.sequences.models.hmm import (
    MultinomialHMM,
    MultinomialHMMState,
    leading,
    log_predictive_of,
    sample_concentrations,
    sample_paths,
)
from pgmult.sequences.updates.summed_out import (
    Effects,
    OrderedSticks,
    Parts,
    of_rows,
    predictors,
    walk_summed_out,
)

ACTED = ("transitions", "emissions")
_LEAST_SHARE = 1e-6  # of first transitions and emissions
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


@dataclass(frozen=True, slots=True, eq=False)
class MixedHMMState(MultinomialHMMState):
    """One point of the chain: that of `MultinomialHMM` and

    Attributes
    ----------
    weights : array, ``(num_sticks, num_weights)``
        Of the sticks that inputs act on, transitions first; `transition` or `emission` are then
        averages over the steps.
    hyperparameters : array, ``(num_sticks, num_hyperparameters)``
        Coordinates: see `pgmult.latent.terms`.
    information : array, ``(num_known,)``
        Of first states, transitions and emissions, stick by stick: what the metric of paths has;
        and hyperparameters near which it is, stick by stick. It stays where a chain started.
    """

    weights: Annotated[FloatArray, "stick", "weight"]
    hyperparameters: Annotated[FloatArray, "stick", "hyperparameter"]
    information: Annotated[FloatArray, "known"]


def _as_acted(value: object, name: str) -> str | dict[str, str]:
    """What inputs act on, and by which terms."""
    if not isinstance(value, Mapping):
        return str(as_choice(value, name, (*ACTED, "both")))
    if not value:
        raise ValueError(f"{name} must name transitions, emissions or both, got an empty mapping")
    for name_of_part in value:
        as_choice(name_of_part, name, ACTED)
    return {str(name_of_part): str(formula) for name_of_part, formula in value.items()}


@dataclass(frozen=True, slots=True, eq=False)
class MixedHMM(MultinomialHMM):
    """Hidden Markov model whose transitions or emissions depend on inputs and individuals.

    Parameters
    ----------
    num_states, ... : as in `MultinomialHMM`
        Concentrations are those of rows that no inputs act on.
    inputs : str or mapping
        What the formula of the data acts on: "transitions", "emissions" or "both"; or, for each of
        these that inputs act on, a formula of some of the data's terms: ``{"transitions": "~ x",
        "emissions": "~ z + (1 | animal)"}`` of data with ``"~ x + z + (1 | animal)"``.
    priors : mapping from term to distribution, optional
        As in `pgmult.regression.AdditiveRegression`; coefficients of a column of standard deviation
        1 are N(0, 2.5^2) by default, standard deviations of effects half-t(3).

    Notes
    -----
    A sweep takes some twenty passes forwards and backwards over all sequences (five, where they
    have 10,000 steps). Each of the M (M - 1) sticks of transitions, and M (K - 1) of emissions,
    takes a factorisation of a matrix of the weights' size (by Schur complement for the largest
    grouping): once, or in each sweep where hyperparameters are more than standard deviations.
    """

    inputs: Annotated[str | Mapping[str, str], _as_acted] = "transitions"
    priors: Annotated[Mapping[str, Any], as_priors] = field(default_factory=dict)

    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **MultinomialHMM.dims, **axes_of(MixedHMMState), "sds": ("stick", "sd"),
    }  # fmt: skip
    default_keep: ClassVar[tuple[str, ...]] = (
        "initial", "transition", "emission", "weights", "hyperparameters", "sds",
        "effective_states",
    )  # fmt: skip
    rules_out: ClassVar[bool] = False  # transitions that are not allowed
    takes: ClassVar[tuple[str, ...]] = ("inputs", "known states")
    label_dims: ClassVar[frozenset[str]] = MultinomialHMM.label_dims | {"stick"}
    predictive_variables: ClassVar[tuple[str, ...]] = (
        "initial", "transition", "emission", "weights", "hyperparameters",
    )  # fmt: skip

    def _complete(self) -> None:
        if self.allowed is not None and not self.rules_out:
            raise ValueError("allowed is for MultinomialHMM: MixedHMM allows every transition")

    def as_data(self, data: object) -> Sequences:
        """`as_sequences`, with inputs: those of a formula, or columns of numbers."""
        sequences = MultinomialHMM.as_data(self, data)
        if sequences.design is None:
            if sequences.inputs is None:
                raise ValueError(
                    "the sequences must have inputs (table.sequences(..., inputs='~ x + (1 | g)'));"
                    " MultinomialHMM takes those without"
                )
            sequences = sequences.with_design(make_design(sequences.inputs))
        return sequences

    def coords(self, data: Sequences) -> Coords:
        """Symbols, sequences, sticks, weights and standard deviations by their names."""
        latent = self.seen(data.design).latent
        sticks = []
        if self.acts_on_transitions:
            rows = _orders(self.num_states)
            sticks += [f"{row[0]} to {j}" for row in rows for j in row[:-1]]
        if self.acts_on_emissions:
            symbols = range(data.num_symbols) if data.alphabet is None else data.alphabet
            labels = [symbols[k] for k in data.order[:-1]]
            sticks += [f"{m}: {symbol}" for m in range(self.num_states) for symbol in labels]
        named = MultinomialHMM.coords(self, data)
        return {**named, "stick": sticks, "weight": latent.names, "sd": latent.sd_names}

    @property
    def acts_on_transitions(self) -> bool:
        """Whether inputs do."""
        return self.inputs == "both" or "transitions" in self.inputs

    @property
    def acts_on_emissions(self) -> bool:
        """Whether inputs do."""
        return self.inputs == "both" or "emissions" in self.inputs

    @property
    def _plain(self) -> MultinomialHMM:
        """The model of the rows that inputs do not act on."""
        moves, emits = self.acts_on_transitions, self.acts_on_emissions
        return MultinomialHMM(
            self.num_states,
            1.0 if moves else self.transition_concentration,
            1.0 if emits else self.emission_concentration,
            self.initial_concentration,
            0.0 if moves else self.stickiness,
            self.concentration_shape, self.concentration_rate, self.stickiness_shape,
            self.stickiness_rate, self.start_tries, self.start_sweeps,
        )  # fmt: skip

    def sticks(self, order: IntArray) -> tuple[OrderedSticks, OrderedSticks, OrderedSticks]:
        """Sticks of first states, transitions and emissions."""
        M = self.num_states
        moves = np.array(_orders(M))
        first, emits = np.arange(M)[None], np.tile(order, (M, 1))
        return OrderedSticks(first), OrderedSticks(moves), OrderedSticks(emits)

    def seen(self, design: Design | None) -> InputsOfSweeps:
        """Inputs as sweeps take them."""
        assert design is not None  # as_data makes one
        return seen_inputs(design, self)

    def shifts(self, num_symbols: int) -> tuple[FloatArray, FloatArray]:
        """The constants of the sticks of transitions and of emissions, as far as inputs act."""
        M = self.num_states
        moves = np.append(0.0, -np.log(np.arange(M - 2, 0, -1)))
        emits = -np.log(np.arange(num_symbols - 1, 0, -1))
        return (
            np.tile(moves, M if self.acts_on_transitions else 0),
            np.tile(emits, M if self.acts_on_emissions else 0),
        )

    # ------------------------------------------------------------------ the model

    def prior(self, rng: Generator, data: Sequences) -> MixedHMMState:
        """A state from the prior."""
        rows, inputs = self._plain.prior(rng, data), self.seen(data.design)
        shifts = self.shifts(data.num_symbols)
        x, w = inputs.start(shifts)
        for terms, place in zip(inputs.parts, places_of(shifts), strict=True):
            for s in range(place.start, place.stop):
                x[s, terms.x], w[s, terms.w] = terms.latent.family.sample(rng)
        return self.whole(rows, w, x, least_information(self, data), data)

    def probs(
        self, state: MultinomialHMMState, design: Design | None, order: IntArray
    ) -> tuple[FloatArray, FloatArray, IntArray]:
        """Probabilities wherever inputs differ.

        Effects of individuals that the data do not have are drawn, the same for the same state.

        Returns
        -------
        transition : array, ``(num_cells or 1, num_states, num_states)``
        emission : array, ``(num_cells, num_states, num_symbols)``, or without the first axis
        which : int array, ``(num_rows,)``
            The cell of each row of the design.
        """
        assert isinstance(state, MixedHMMState)
        inputs, probs = self.seen(design), [state.transition[None], state.emission[None]]
        rng = np.random.default_rng(crc32(state.weights.tobytes()))
        shifts = self.shifts(len(order))
        owns = places_of(shifts)
        sticks = self.sticks(order)[1:]
        for i, (terms, place) in enumerate(zip(inputs.parts, owns, strict=True)):
            if len(shifts[i]):
                w, x = state.weights[place][:, terms.w], state.hyperparameters[place][:, terms.x]
                psi = terms.latent.draw(rng, w, x) + shifts[i]
                probs[i] = sticks[i].probs(psi.reshape(len(psi), self.num_states, -1))
        emission = probs[1] if self.acts_on_emissions else state.emission
        return probs[0], emission, inputs.which

    def probs_of_steps(
        self, state: MultinomialHMMState, data: Sequences
    ) -> tuple[FloatArray, FloatArray, IntArray]:
        """Transitions and emissions, and which of them each step has: see `chains_of`."""
        return self.probs(state, data.design, data.order)

    def transition_probs(self, draws: Draw, inputs: Design | None = None) -> FloatArray:
        """Transition probabilities of many draws at rows of inputs: see `MultinomialHMM`."""
        if inputs is None:
            raise ValueError("transitions depend on inputs: rows of these are needed")
        names, order = self.predictive_variables, np.arange(np.shape(draws["emission"])[-1])
        num_draws, num_rows, M = len(draws["initial"]), len(inputs.matrix), self.num_states
        probs = np.empty((num_draws, num_rows, M, M))
        for d in range(num_draws):
            state = self.state_of({name: draws[name][d] for name in names})
            transition, _, which = self.probs(state, inputs, order)
            probs[d] = transition[which] if len(transition) > 1 else transition
        return probs

    # ------------------------------------------------------------------ the sampler

    def init(self, rng: Generator, data: Sequences) -> MixedHMMState:
        """A start of the model without inputs, and sweeps that find a metric."""
        rows = self._plain.init(rng, replace(data, inputs=None, design=None))
        inputs, shifts = self.seen(data.design), self.shifts(data.num_symbols)
        near = [
            (probs + _LEAST_SHARE) / (1.0 + _LEAST_SHARE * probs.shape[1])
            for probs in (rows.transition, rows.emission)
        ]
        x, w = inputs.start(shifts)
        owns = places_of(shifts)
        for i, sticks in enumerate(self.sticks(data.order)[1:]):
            if len(shifts[i]):
                w[owns[i], 0] = sticks.psi(near[i]).ravel() - shifts[i]
        state = self.whole(rows, w, x, least_information(self, data), data)
        state = replace(state, information=information_at(self, state, data))
        state = scattered(rng, self, state, data)
        for _ in range(self.start_sweeps):
            state = replace(state, information=information_at(self, state, data))
            state = self.step(rng, state, data)
        return replace(state, information=information_at(self, state, data))

    def step(self, rng: Generator, state: MultinomialHMMState, data: Sequences) -> MixedHMMState:
        """One sweep over all blocks."""
        assert isinstance(state, MixedHMMState)
        with one_blas_thread():
            moved, chains = move_probabilities(rng, self, state, data)
        plain = self._plain
        counts = plain._count(sample_paths(rng, chains), data)
        rows = plain._draw_rows(rng, counts, *sample_concentrations(rng, plain, state, counts))
        return MixedHMMState(
            rows.initial,
            moved.transition if self.acts_on_transitions else rows.transition,
            moved.emission if self.acts_on_emissions else rows.emission,
            rows.transition_concentration, rows.stickiness, rows.emission_concentration,
            moved.weights, moved.hyperparameters, state.information,
        )  # fmt: skip

    def whole(
        self, rows: MultinomialHMMState, w: FloatArray, x: FloatArray, information: FloatArray,
        data: Sequences,
    ) -> MixedHMMState:  # fmt: skip
        """The state with averages of the probabilities that inputs act on."""
        state = MixedHMMState(
            rows.initial, rows.transition, rows.emission, rows.transition_concentration,
            rows.stickiness, rows.emission_concentration, w, x, information,
        )  # fmt: skip
        transition, emission, _ = self.probs(state, data.design, data.order)
        share = self.seen(data.design).share
        if self.acts_on_transitions:
            state = replace(state, transition=np.einsum("c,cij->ij", share, transition))
        if self.acts_on_emissions:
            state = replace(state, emission=np.einsum("c,cmk->mk", share, emission))
        return state

    # ------------------------------------------------------------------ what a state says

    def state_of(self, draw: Draw) -> MixedHMMState:
        """The state of a kept draw; its concentrations are nan."""
        return MixedHMMState(
            draw["initial"], draw["transition"], draw["emission"], np.nan, np.nan, np.nan,
            draw["weights"], draw["hyperparameters"], np.empty(0),
        )  # fmt: skip

    def sds(self, state: MixedHMMState, data: Sequences) -> FloatArray:
        """Standard deviations of all terms that have one; of slopes, in their columns' units.

        Where a term does not act they are next to 0.
        """
        latent = self.seen(data.design).latent
        return np.array([latent.sds(x) for x in state.hyperparameters])


@once_a_data_set
def seen_inputs(design: Design, model: MixedHMM) -> InputsOfSweeps:
    """Inputs of a design as sweeps of the model take them."""
    check_priors(design, model.priors)
    cells, which = distinct_rows(design)
    share = np.bincount(which) / len(which)
    latent = latent_of(cells, model.priors)
    first, second = (_part(cells, model, name, latent, share) for name in ACTED)
    return InputsOfSweeps(latent, (first, second), which, share)


def _part(cells: Design, model: MixedHMM, name: str, every: Latent, share: FloatArray) -> _Part:
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
) -> compiled.HiddenChains:
    """Chains without probabilities, of so many cells, and of the cell of each step."""
    moves, log_moves = np.empty((2, transitions, num_states, num_states))
    emits, log_emits = np.empty((2, emissions * data.num_symbols, num_states))
    symbols = data.symbols
    if emissions > 1:
        symbols = symbols + data.num_symbols * np.repeat(which, np.diff(data.indptr))
    return compiled.HiddenChains(
        data.offsets, data.indptr, symbols.astype(np.int32), data.counts, np.empty(num_states),
        moves, log_moves, emits, log_emits, False, leading(moves, which), data.known,
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

    def __init__(self, model: MixedHMM, state: MixedHMMState, data: Sequences):
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
        parts, before = list[MovedPaths](), list[FloatArray]()
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
        self._blank = blank_chains(data, M, len(before[1]), len(before[2]), self.seen.which)

    def psi(self, parts: Parts) -> list[FloatArray]:
        """Predictors of the sticks of each part."""
        return [predictors(*pair) for pair in zip(parts, self.sticks, strict=True)]

    def counts(self, psi: Sequence[FloatArray]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """How often the categories of each row occurred, in expectation given observations."""
        T, M = self._data.num_steps, len(self._blank.initial)
        smoothed, pairs = np.empty((T, M)), np.zeros((T, M, M))
        room, size = (np.empty(T), smoothed, pairs), self._data.num_sequences
        over_rows(compiled.smooth_paths, size, self.chains(psi), *room, grain=1)
        first, moves, emits = self.before
        counts = np.zeros_like(first), np.zeros_like(moves), np.zeros_like(emits)
        compiled.add_up_counts(self._blank, self.seen.which, smoothed, pairs, counts)
        return counts

    def leap(self, parts: Parts, size: float, count: int) -> float:
        """So many leapfrogs of a size; by how much the log density grows, -inf if refused."""
        which, orders = self.seen.which, self._orders
        return float(leap(self._blank, which, orders, self.before, parts, size, count))

    def log_likelihood(self, psi: Sequence[FloatArray]) -> float:
        """Log likelihood of predictors."""
        return float(log_predictive_of(self.chains(psi)).sum())

    def chains(self, psi: Sequence[FloatArray]) -> compiled.HiddenChains:
        """The sequences and the probabilities of predictors, until others are asked for."""
        arguments = max(map(len, psi)), tuple(psi), self._orders, self._blank
        least = min(over_rows(compiled.break_sticks, *arguments))
        if least >= compiled.SMALLEST:
            return self._blank
        with np.errstate(divide="ignore"):
            logs = np.log(self._blank.transition)
        return self._blank._replace(log_transition=logs, in_logs=True)


def move_probabilities(
    rng: Generator, model: MixedHMM, state: MixedHMMState, data: Sequences
) -> tuple[MixedHMMState, compiled.HiddenChains]:
    """All probabilities after a path, states summed out, and hyperparameters given the weights.

    Those that inputs act on come in the chains of all sequences, and as averages in the state.
    """
    at = SummedOut(model, state, data)
    parts = at.parts
    if all(np.isfinite(moved.weights).all() for moved in parts):  # a row may have a 0
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


def scattered(
    rng: Generator, model: MixedHMM, state: MixedHMMState, data: Sequences
) -> MixedHMMState:
    """The state with weights as far apart as the metric has them.

    Standard deviations of effects that are all 0 would go to 0, too.
    """
    at, w = SummedOut(model, state, data), state.weights.copy()
    for i, (terms, place) in at.acted.items():
        velocity = rng.standard_normal(at.parts[i].velocity.shape)
        colour_velocity(at.parts[i]._replace(velocity=velocity))
        w[place][:, terms.w] += velocity[:, : len(terms.w)]
    return replace(state, weights=w)


def least_information(model: MixedHMM, data: Sequences) -> FloatArray:
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


def information_at(model: MixedHMM, state: MixedHMMState, data: Sequences) -> FloatArray:
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
        [np.maximum(information, least_information(model, data)[: len(information)]), near]
    )


def _orders(num_states: int) -> list[list[int]]:
    """The order in which transitions of each state break: to stay, then the others."""
    every = list(range(num_states))
    return [[i, *every[:i], *every[i + 1 :]] for i in every]

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

Given the states every stick is a binomial regression. A sweep draws states, concentrations and
Dirichlet rows as there, and then, of each stick, weights by a swing about a Gaussian near
their mode, and standard deviations by interweaving (`pgmult.latent.moves`).

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

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from pgmult.compiled.rows import over_rows
from pgmult.core.blas import one_blas_thread
from pgmult.core.memory import once_a_data_set
from pgmult.core.parameters import axes_of
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import new_key
from pgmult.formulas.design import Design, distinct_rows, make_design
from pgmult.latent.additive import Additive
from pgmult.latent.approximation import near_mode
from pgmult.latent.moves import Point, interweave, swing
from pgmult.latent.predictors import Latent, as_priors, check_priors, latent_of
from pgmult.links import StickBreaking
from pgmult.sequences.compiled import hmm as compiled
from pgmult.sequences.data.sequences import Sequences, as_sequences, simulate_symbols
from pgmult.sequences.models.hmm import (
    MultinomialHMM,
    MultinomialHMMState,
    chains_of,
    leading,
    one_of,
)
from pgmult.variational.sites import LogisticSite

_KICKS = 3  # of a swing
_LEAST_SHARE = 1e-6  # of first transitions and emissions


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
    """

    weights: Annotated[FloatArray, "stick", "weight"]
    hyperparameters: Annotated[FloatArray, "stick", "hyperparameter"]


@dataclass(frozen=True, slots=True, eq=False)
class MixedHMM(MultinomialHMM):
    """Hidden Markov model whose transitions or emissions depend on inputs and individuals.

    Parameters
    ----------
    num_states, ... : as in `MultinomialHMM`
        Concentrations are those of rows that no inputs act on.
    inputs : str
        What the formula of the data acts on: "transitions", "emissions" or "both".
    priors : mapping from term to law, optional
        As in `pgmult.regression.AdditiveRegression`; coefficients of a column of standard deviation
        1 are N(0, 2.5^2) by default, standard deviations of effects half-t(3).

    Notes
    -----
    Beside what a sweep of `MultinomialHMM` costs, each of the M (M - 1) sticks of transitions, and
    M (K - 1) of emissions, takes some four factorisations of a matrix of the weights' size (by
    Schur complement for the largest grouping) and ten passes over the different rows of inputs.
    """

    inputs: Literal["transitions", "emissions", "both"] = "transitions"
    priors: Annotated[Mapping[str, Any], as_priors] = field(default_factory=dict)

    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **MultinomialHMM.dims, **axes_of(MixedHMMState), "sds": ("stick", "sd"),
    }  # fmt: skip
    default_keep: ClassVar[tuple[str, ...]] = (
        "initial", "transition", "emission", "weights", "hyperparameters", "sds",
        "effective_states",
    )  # fmt: skip
    label_dims: ClassVar[frozenset[str]] = MultinomialHMM.label_dims | {"stick"}
    predictive_variables: ClassVar[tuple[str, ...]] = (
        "initial", "transition", "emission", "weights", "hyperparameters",
    )  # fmt: skip

    def as_data(self, data: Any) -> Sequences:
        """`as_sequences`, with inputs: those of a formula, or columns of numbers."""
        sequences = as_sequences(data)
        if sequences.design is None:
            if sequences.inputs is None:
                raise ValueError(
                    "the sequences must have inputs (table.sequences(..., inputs='~ x + (1 | g)'));"
                    " MultinomialHMM takes those without"
                )
            sequences = sequences.with_design(make_design(sequences.inputs))
        return sequences

    def coords(self, data: Sequences) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """Symbols, sequences, sticks, weights and standard deviations by their names."""
        latent = self._seen(data.design).latent
        sticks = []
        if self.acts_on_transitions:
            sticks += [f"{i} to {j}" for i, row in self._orders() for j in row[:-1]]
        if self.acts_on_emissions:
            symbols = range(data.num_symbols) if data.alphabet is None else data.alphabet
            own = [symbols[k] for k in data.order[:-1]]
            sticks += [f"{m}: {symbol}" for m in range(self.num_states) for symbol in own]
        named = MultinomialHMM.coords(self, data)
        return {**named, "stick": sticks, "weight": latent.names, "sd": latent.sd_names}

    @property
    def acts_on_transitions(self) -> bool:
        """Whether inputs do."""
        return self.inputs != "emissions"

    @property
    def acts_on_emissions(self) -> bool:
        """Whether inputs do."""
        return self.inputs != "transitions"

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

    def _orders(self) -> Iterator[tuple[int, list[int]]]:
        """Of each state the order in which its transitions break: to stay, then the others."""
        every = list(range(self.num_states))
        return ((i, [i, *every[:i], *every[i + 1 :]]) for i in every)

    def _seen(self, design: Design | None) -> "_Seen":
        assert design is not None  # as_data makes one
        return _seen(design, self)

    def _shifts(self, num_symbols: int) -> FloatArray:
        """The constants of all sticks."""
        M, shifts = self.num_states, np.empty(0)
        if self.acts_on_transitions:
            shifts = np.tile(np.append(0.0, -np.log(np.arange(M - 2, 0, -1))), M)
        if self.acts_on_emissions:
            own = -np.log(np.arange(num_symbols - 1, 0, -1))
            shifts = np.append(shifts, np.tile(own, M))
        return np.asarray(shifts)

    # ------------------------------------------------------------------ the model

    def prior(self, rng: np.random.Generator, data: Sequences) -> MixedHMMState:
        """A state from the prior."""
        rows = self._plain.prior(rng, data)
        family = self._seen(data.design).latent.family
        drawn = [family.sample(rng) for _ in self._shifts(data.num_symbols)]
        x, w = (np.array(parts) for parts in zip(*drawn, strict=True))
        return self._whole(rows, w, x, data)

    def simulate(
        self, rng: np.random.Generator, state: MultinomialHMMState, data: Sequences
    ) -> Sequences:
        """New states and, given them, new observations."""
        transition, emission, which = self.laws(state, data.design, data.order)
        states = np.empty(data.num_steps, dtype=np.int64)
        over_rows(
            compiled.simulate_paths, data.num_sequences, new_key(rng), data.offsets,
            state.initial, transition, leading(transition, which), states, grain=1,
        )  # fmt: skip
        return simulate_symbols(rng, _emitted(emission, which, states), data)

    def laws(
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
        seen, M = self._seen(design), self.num_states
        rng = np.random.default_rng(crc32(state.weights.tobytes()))
        psi = seen.latent.draw(rng, state.weights, state.hyperparameters)
        psi += self._shifts(len(order))
        transition, emission = state.transition[None], state.emission
        if self.acts_on_transitions:
            moves = psi[:, : M * (M - 1)].reshape(-1, M, M - 1)
            rows = [StickBreaking(np.array(row)).probs(moves[:, i]) for i, row in self._orders()]
            transition = np.stack(rows, axis=1)
        if self.acts_on_emissions:
            own = psi[:, -M * (len(order) - 1) :].reshape(len(psi), M, -1)
            emission = StickBreaking(order).probs(own)
        return transition, emission, seen.which

    def chains(self, state: MultinomialHMMState, data: Sequences) -> compiled.Chains:
        """The sequences and parameters, as compiled functions take them."""
        transition, emission, which = self.laws(state, data.design, data.order)
        return chains_of(data, state.initial, transition, emission, which)

    # ------------------------------------------------------------------ the sampler

    def init(self, rng: np.random.Generator, data: Sequences) -> MixedHMMState:
        """A start of the model without inputs."""
        rows = self._plain.init(rng, replace(data, inputs=None, design=None))
        family = self._seen(data.design).latent.family
        shifts = self._shifts(data.num_symbols)
        psi = []
        if self.acts_on_transitions:
            near = (rows.transition + _LEAST_SHARE) / (1.0 + _LEAST_SHARE * self.num_states)
            psi += [StickBreaking(np.array(row)).inverse(near[i]) for i, row in self._orders()]
        if self.acts_on_emissions:
            near = (rows.emission + _LEAST_SHARE) / (1.0 + _LEAST_SHARE * data.num_symbols)
            psi += list(StickBreaking(data.order).inverse(near))
        w = np.zeros((len(shifts), family.num_weights))
        w[:, 0] = np.concatenate(psi) - shifts
        return self._whole(rows, w, np.tile(family.start(), (len(shifts), 1)), data)

    def step(
        self, rng: np.random.Generator, state: MultinomialHMMState, data: Sequences
    ) -> MixedHMMState:
        """One sweep over all blocks."""
        assert isinstance(state, MixedHMMState)
        states, plain = self.sample_states(rng, state, data), self._plain
        counts = plain._count(states, data)
        rows = plain._draw_rows(rng, counts, *plain._sample_concentrations(rng, state, counts))
        family = self._seen(data.design).latent.family
        w, x = state.weights.copy(), state.hyperparameters.copy()
        shifts = self._shifts(data.num_symbols)
        with one_blas_thread():
            for s, (successes, trials) in enumerate(self._tried(states, data)):
                own = family.shifted(float(shifts[s]))
                w[s], x[s] = regressed(rng, own, successes, trials, w[s], x[s])
        return self._whole(rows, w, x, data)

    def _tried(self, states: IntArray, data: Sequences) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Of each stick how often it was taken, and reached, in each cell."""
        M, seen = self.num_states, self._seen(data.design)
        if self.acts_on_transitions:
            later = np.ones(data.num_steps, dtype=np.bool_)
            later[data.offsets[:-1]] = False
            into = np.flatnonzero(later)
            for i, row in self._orders():
                own = into[states[into - 1] == i]
                yield from _sticks(seen, seen.which[own], states[own], 1.0, row)
        if self.acts_on_emissions:
            step = np.repeat(np.arange(data.num_steps), np.diff(data.indptr))
            for m in range(M):
                own = np.flatnonzero(states[step] == m)
                cells, symbols = seen.which[step[own]], data.symbols[own]
                yield from _sticks(seen, cells, symbols, data.counts[own], data.order)

    def _whole(
        self, rows: MultinomialHMMState, w: FloatArray, x: FloatArray, data: Sequences
    ) -> MixedHMMState:
        """The state with averages of the probabilities that inputs act on."""
        state = MixedHMMState(
            rows.initial, rows.transition, rows.emission, rows.transition_concentration,
            rows.stickiness, rows.emission_concentration, w, x,
        )  # fmt: skip
        transition, emission, _ = self.laws(state, data.design, data.order)
        share = self._seen(data.design).share
        if self.acts_on_transitions:
            state = replace(state, transition=np.einsum("c,cij->ij", share, transition))
        if self.acts_on_emissions:
            state = replace(state, emission=np.einsum("c,cmk->mk", share, emission))
        return state

    # ------------------------------------------------------------------ what a state says

    def state_of(self, draw: Mapping[str, FloatArray]) -> MixedHMMState:
        """The state of a kept draw; its concentrations are nan."""
        return MixedHMMState(
            draw["initial"], draw["transition"], draw["emission"], np.nan, np.nan, np.nan,
            draw["weights"], draw["hyperparameters"],
        )  # fmt: skip

    def sds(self, state: MixedHMMState, data: Sequences) -> FloatArray:
        """Standard deviations of all terms that have one; of slopes, in their columns' units."""
        latent = self._seen(data.design).latent
        return np.array([latent.sds(x) for x in state.hyperparameters])

    def step_probs(self, draw: Mapping[str, FloatArray], data: Sequences) -> FloatArray:
        """Probabilities of every step given all others, ``(num_steps, num_symbols)``."""
        state = self.state_of(draw)
        _, emission, which = self.laws(state, data.design, data.order)
        return _mixed(emission, which, self.state_probs(state, data))

    def ahead(
        self, rng: np.random.Generator, draw: Mapping[str, FloatArray], data: Sequences, steps: int
    ) -> tuple[FloatArray, IntArray]:
        """Probabilities ahead, exact, and one path of symbols of each sequence.

        Parameters
        ----------
        data : Sequences
            With the steps ahead, missing, and their inputs.

        Returns
        -------
        probs : array, ``(num_sequences, steps, num_symbols)``
        symbols : int array, ``(num_sequences, steps)``
        """
        state = self.state_of(draw)
        new = (data.offsets[1:, None] + np.arange(-steps, 0)).ravel()
        _, emission, which = self.laws(state, data.design, data.order)
        probs = _mixed(emission, which[new], self.state_probs(state, data)[new])
        path = self.sample_states(rng, state, data)[new]
        symbols = one_of(rng, _emitted(emission, which[new], path))
        return probs.reshape(-1, steps, data.num_symbols), symbols.reshape(-1, steps)


def regressed(
    rng: np.random.Generator,
    family: Additive,
    successes: FloatArray,
    trials: FloatArray,
    weights: FloatArray,
    x: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Weights and hyperparameters of a stick, moved given how often it was taken and reached."""
    rows = LogisticSite(successes, trials, "delta")  # of which values and derivatives are taken
    taken, reached = float(successes.sum()), float(trials.sum())
    start = math.log((taken + 0.5) / (reached - taken + 0.5))
    found = near_mode(family, rows, x, start)
    point = swing(rng, Point.of(x, weights, family, found), family, rows, found, _KICKS)
    if len(x):
        point = interweave(rng, point, family, rows, found)
    return point.w, point.x


class _Seen(NamedTuple):
    """Inputs as sweeps take them.

    Attributes
    ----------
    latent : Latent
        Of the different rows of inputs, the cells.
    which : int array, ``(num_steps,)``
    share : array, ``(num_cells,)``
        Of the steps.
    """

    latent: Latent
    which: IntArray
    share: FloatArray


@once_a_data_set
def _seen(design: Design, model: MixedHMM) -> _Seen:
    check_priors(design, model.priors)
    cells, which = distinct_rows(design)
    share = np.bincount(which) / len(which)
    return _Seen(latent_of(cells, model.priors), which, share)


def _sticks(
    seen: _Seen, cells: IntArray, outcomes: Any, counts: Any, order: Any
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Of each stick of one row of probabilities how often it was taken, and reached, by cell."""
    size, weights = len(order), np.zeros(len(cells)) + counts
    flat: FloatArray = np.bincount(
        cells * size + outcomes, weights, minlength=len(seen.share) * size
    ).astype(np.float64)
    taken = flat.reshape(-1, size)[:, order]
    reached = np.cumsum(taken[:, ::-1], axis=1)[:, ::-1]
    return ((taken[:, k].copy(), reached[:, k].copy()) for k in range(size - 1))


def _emitted(emission: FloatArray, which: IntArray, states: IntArray) -> FloatArray:
    """Probabilities of symbols in these states of rows of these cells."""
    return np.asarray(emission[states] if emission.ndim == 2 else emission[which, states])


def _mixed(emission: FloatArray, which: IntArray, probs: FloatArray) -> FloatArray:
    """Probabilities of symbols where those of states are known, row by row."""
    if emission.ndim == 2:
        return np.asarray(probs @ emission)
    each = (p[:, None] * emission[which, m] for m, p in enumerate(probs.T))
    return np.asarray(sum(each))

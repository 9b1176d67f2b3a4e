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
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, ClassVar, NamedTuple, cast
from zlib import crc32

import numpy as np
from scipy.special import expit

from pgmult.compiled.rows import over_rows
from pgmult.core.arguments import as_choice
from pgmult.core.blas import one_blas_thread
from pgmult.core.memory import once_a_data_set
from pgmult.core.parameters import axes_of
from pgmult.core.typing import Array, Coords, Draw, FloatArray, Generator, IntArray, Names
from pgmult.formulas.design import Design, distinct_rows, make_design
from pgmult.latent.moves import given_weights
from pgmult.latent.predictors import Latent, as_priors, check_priors, latent_of
from pgmult.sequences.compiled import hmm as compiled
from pgmult.sequences.compiled.hmm_paths import MovedPaths, colour_velocity, leap
from pgmult.sequences.data.sequences import Sequences
from pgmult.sequences.models import hmm
from pgmult.sequences.models.hmm import HMMState, MultinomialHMM, ProbsOfSteps
from pgmult.sequences.updates import summed_out
from pgmult.sequences.updates.summed_out import Acting, Chosen, OrderedSticks, Parts

_PARTS = ("initial", "transition", "emission")
_ACTED = ("transitions", "emissions")
_LEAST_SHARE = 1e-6  # of first transitions and emissions
_LEAST_KNOWN = 0.25  # of what is known where all states are alike: the least of the metric


@dataclass(frozen=True, slots=True, eq=False)
class PathTuning:
    """What the sweeps of a start learned of the posterior: what the metric of paths is made of.

    Attributes
    ----------
    information : array
        Of first states, transitions and emissions, stick by stick.
    near : array, ``(num_sticks, num_hyperparameters)``
        Hyperparameters near which it is.
    """

    information: FloatArray
    near: FloatArray


UNTUNED = PathTuning(np.empty(0), np.empty(0))
"""The tuning of states whose sampler learns nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class MixedHMMState(HMMState):
    """One point of the chain: that of `MultinomialHMM` and

    Attributes
    ----------
    weights : array, ``(num_sticks, num_weights)``
        Of the sticks that inputs act on, transitions first; `transition` or `emission` are then
        averages over the steps.
    hyperparameters : array, ``(num_sticks, num_hyperparameters)``
        Coordinates: see `pgmult.latent.terms`.
    tuning : PathTuning
        What the sweeps of a start learned of the posterior: fixed after them, and part of no draw.
    """

    weights: Annotated[FloatArray, "stick", "weight"]
    hyperparameters: Annotated[FloatArray, "stick", "hyperparameter"]
    tuning: PathTuning

    @classmethod
    def of(
        cls, rows: HMMState, w: FloatArray, x: FloatArray, tuning: PathTuning = UNTUNED
    ) -> "MixedHMMState":
        """Return the state of these rows of probabilities and of weights."""
        values = {field.name: getattr(rows, field.name) for field in fields(HMMState)}
        return cls(**values, weights=w, hyperparameters=x, tuning=tuning)


class InputsOfSweeps(NamedTuple):
    """Inputs as sweeps take them.

    Attributes
    ----------
    latent : Latent
        Of all terms, at the different rows of inputs, the cells.
    acting : dict
        Terms that act on "transition" and on "emission", as far as inputs do.
    which : int array, ``(num_steps,)``
    share : array, ``(num_cells,)``
        Of the steps.
    """

    latent: Latent
    acting: dict[str, Acting]
    which: IntArray
    share: FloatArray

    def start(self) -> tuple[FloatArray, FloatArray]:
        """Hyperparameters from which a search begins, and weights: 0, as where nothing acts."""
        family, num_sticks = self.latent.family, max(a.place.stop for a in self.acting.values())
        x = np.zeros((num_sticks, family.num_hyperparameters))
        for terms in self.acting.values():
            x[terms.place, terms.x] = terms.family.start()
        return x, np.zeros((num_sticks, family.num_weights))


def _as_acted(value: object, name: str) -> str | dict[str, str]:
    """What inputs act on, and by which terms."""
    if not isinstance(value, Mapping):
        return str(as_choice(value, name, (*_ACTED, "both")))
    if not value:
        raise ValueError(f"{name} must name transitions, emissions or both, got an empty mapping")
    return {str(as_choice(part, name, _ACTED)): str(formula) for part, formula in value.items()}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
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

    dims: ClassVar[Mapping[str, Names]] = {
        **MultinomialHMM.dims, **axes_of(MixedHMMState), "sds": ("stick", "sd"),
    }  # fmt: skip
    rules_out: ClassVar[bool] = False  # transitions that are not allowed
    takes: ClassVar[Names] = ("inputs", "known states")
    label_dims: ClassVar[frozenset[str]] = MultinomialHMM.label_dims | {"stick"}
    predictive_variables: ClassVar[Names] = (*_PARTS, "weights", "hyperparameters")
    default_keep: ClassVar[Names] = (*predictive_variables, "sds", "effective_states")

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
        sticks, latent = list[str](), self.seen(data.design, data.order).latent
        if "transition" in self.acted:
            names, rows = self.state_labels(data), self.sticks(data.order)["transition"].order
            sticks += [f"{names[row[0]]} to {names[j]}" for row in rows for j in row[:-1]]
        if "emission" in self.acted:
            labels = data.labels[data.order[:-1]]
            sticks += [f"{m}: {symbol}" for m in range(self.num_states) for symbol in labels]
        named = MultinomialHMM.coords(self, data)
        return {**named, "stick": sticks, "weight": latent.names, "sd": latent.sd_names}

    def state_labels(self, data: Sequences) -> Array:
        """What states are called in names of sticks: their numbers."""
        return np.arange(self.num_states)

    @property
    def acted(self) -> list[str]:
        """What inputs act on of "transition" and "emission"."""
        return [name for name in _PARTS[1:] if self.inputs == "both" or f"{name}s" in self.inputs]

    @property
    def _plain(self) -> MultinomialHMM:
        """The model of the rows that inputs do not act on."""
        values = {field.name: getattr(self, field.name) for field in fields(MultinomialHMM)}
        values["allowed"] = None
        values |= {f"{name}_concentration": 1.0 for name in self.acted}
        values["stickiness"] = 0.0 if "transition" in self.acted else self.stickiness
        return MultinomialHMM(**values)

    def sticks(self, order: IntArray) -> dict[str, OrderedSticks]:
        """Sticks of first states, transitions and emissions; transitions break to stay, first."""
        every = np.arange(self.num_states)
        moves = np.array([[i, *every[:i], *every[i + 1 :]] for i in every])
        orders = every[None], moves, np.tile(order, (self.num_states, 1))
        return {name: OrderedSticks(rows) for name, rows in zip(_PARTS, orders, strict=True)}

    def seen(self, design: Design | None, order: IntArray) -> InputsOfSweeps:
        """Inputs as sweeps take them, with symbols in some order."""
        return seen_inputs(cast(Design, design), self, order)  # as_data makes one

    def shifts(self, name: str, sticks: OrderedSticks) -> FloatArray:
        """The constants of the sticks of transitions or of emissions."""
        shifts = -np.log(np.arange(sticks.order.shape[1] - 1, 0, -1))
        if name == "transition":
            shifts = np.append(0.0, shifts[1:])
        return np.tile(shifts, self.num_states)

    # ------------------------------------------------------------------ the model

    def prior(self, rng: Generator, data: Sequences) -> MixedHMMState:
        """A state from the prior."""
        rows, inputs = self._plain.prior(rng, data), self.seen(data.design, data.order)
        x, w = inputs.start()
        for terms in inputs.acting.values():
            for s in range(terms.place.start, terms.place.stop):
                x[s, terms.x], w[s, terms.w] = terms.family.sample(rng)
        return self.whole(rows, w, x, least_information(self, data), data)

    def probs(self, state: Any, design: Design | None, order: IntArray) -> ProbsOfSteps:
        """Probabilities wherever inputs differ.

        Effects of individuals that the data do not have are drawn, the same for the same state.

        Returns
        -------
        transition : array, ``(num_cells or 1, num_states, num_states)``
        emission : array, ``(num_cells or 1, num_states, num_symbols)``
        which : int array, ``(num_rows,)``
            The cell of each row of the design.
        """
        probs = {"transition": state.transition[None], "emission": state.emission[None]}
        rng = np.random.default_rng(crc32(state.weights.tobytes()))
        inputs = self.seen(design, order)
        for name, terms in inputs.acting.items():
            probs[name] = terms.sticks.probs(terms.psi(rng, state.weights, state.hyperparameters))
        return probs["transition"], probs["emission"], inputs.which

    def probs_of_steps(self, state: HMMState, data: Sequences) -> ProbsOfSteps:
        """Transitions and emissions, and which of them each step has: see `chains_of`."""
        return self.probs(state, data.design, data.order)

    def transition_probs(self, draws: Draw, inputs: Design | None = None) -> FloatArray:
        """Transition probabilities of many draws at rows of inputs: see `MultinomialHMM`."""
        if inputs is None:
            raise ValueError("transitions depend on inputs: rows of these are needed")
        probs, order = list[FloatArray](), np.arange(np.shape(draws["emission"])[-1])
        for d in range(len(draws["initial"])):
            state = self.state_of({name: draws[name][d] for name in self.predictive_variables})
            transition, _, which = self.probs(state, inputs, order)
            probs.append(transition[hmm.leading(transition, which)])
        return np.array(probs)

    # ------------------------------------------------------------------ the sampler

    def init(self, rng: Generator, data: Sequences) -> MixedHMMState:
        """A start of the model without inputs, and sweeps that find a metric."""
        rows = self._plain.init(rng, replace(data, inputs=None, design=None))
        inputs = self.seen(data.design, data.order)
        x, w = inputs.start()
        for name, terms in inputs.acting.items():
            probs = getattr(rows, name)
            near = (probs + _LEAST_SHARE) / (1.0 + _LEAST_SHARE * probs.shape[1])
            w[terms.place, 0] = terms.sticks.psi(near).ravel() - terms.shifts
        state = self.whole(rows, w, x, least_information(self, data), data)
        state = tuned(self, state, data)
        state = scattered(rng, self, state, data)
        for _ in range(self.start_sweeps):
            state = self.step(rng, tuned(self, state, data), data)
        return tuned(self, state, data)

    def step(self, rng: Generator, state: Any, data: Sequences) -> MixedHMMState:
        """One sweep over all blocks."""
        with one_blas_thread():
            moved, chains = move_probabilities(rng, self, state, data)
        plain = self._plain
        counts = plain._count(hmm.sample_paths(rng, chains), data)
        rows = plain._draw_rows(rng, counts, *hmm.sample_concentrations(rng, plain, state, counts))
        rows = replace(rows, **{name: getattr(moved, name) for name in self.acted})
        return MixedHMMState.of(rows, moved.weights, moved.hyperparameters, state.tuning)

    def whole(
        self, rows: HMMState, w: FloatArray, x: FloatArray, tuning: PathTuning, data: Sequences
    ) -> MixedHMMState:
        """The state with averages of the probabilities that inputs act on."""
        state = MixedHMMState.of(rows, w, x, tuning)
        both = zip(_PARTS[1:], self.probs(state, data.design, data.order), strict=False)
        share = self.seen(data.design, data.order).share
        means = {n: np.einsum("c,cij->ij", share, probs) for n, probs in both if n in self.acted}
        return replace(state, **means)

    # ------------------------------------------------------------------ what a state says

    def state_of(self, draw: Draw) -> MixedHMMState:
        """The state of a kept draw; its concentrations are nan."""
        rows = MultinomialHMM.state_of(self, draw)
        return MixedHMMState.of(rows, draw["weights"], draw["hyperparameters"])

    def sds(self, state: MixedHMMState, data: Sequences) -> FloatArray:
        """Standard deviations of all terms that have one; of slopes, in their columns' units.

        Where a term does not act they are next to 0.
        """
        latent = self.seen(data.design, data.order).latent
        return np.array([latent.sds(x) for x in state.hyperparameters])


@once_a_data_set
def seen_inputs(design: Design, model: MixedHMM, order: IntArray) -> InputsOfSweeps:
    """Inputs of a design as sweeps of the model take them."""
    check_priors(design, model.priors)
    cells, which = distinct_rows(design)
    share, every = np.bincount(which) / len(which), latent_of(cells, model.priors)
    acting, first = dict[str, Acting](), 0
    for name in model.acted:
        terms, sticks = _chosen_terms(cells, model, f"{name}s", every), model.sticks(order)[name]
        acting[name] = Acting(terms, share, sticks, model.shifts(name, sticks), first)
        first += sticks.size
    return InputsOfSweeps(every, acting, which, share)


def _chosen_terms(cells: Design, model: MixedHMM, name: str, every: Latent) -> Chosen:
    """The terms of a formula for transitions or emissions, all where there is none."""
    family = every.family
    if not isinstance(model.inputs, Mapping):
        return every, np.arange(family.num_weights), np.arange(family.num_hyperparameters)
    columns, terms = cells.places(model.inputs[name])
    chosen = replace(cells, terms=tuple(cells.terms[i] for i in terms))

    def places(slices: list[slice], fixed: IntArray) -> IntArray:
        effects = [np.arange(slices[1 + i].start, slices[1 + i].stop) for i in terms]
        return np.concatenate([fixed, *effects]).astype(np.int64)

    x = places(family.hyperparameters, columns[:0])
    return latent_of(chosen, model.priors, columns), places(family.weights, columns), x


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
    """

    def __init__(self, model: MixedHMM, state: MixedHMMState, data: Sequences):
        self.seen, self._data = model.seen(data.design, data.order), data
        M, self.sticks = model.num_states, model.sticks(data.order)
        before = {
            "initial": np.full((1, 1, M), model.initial_concentration),
            "transition": (state.transition_concentration + state.stickiness * np.eye(M))[None],
            "emission": np.full((1, M, data.num_symbols), state.emission_concentration),
        }
        ends = np.cumsum([sticks.size for sticks in self.sticks.values()])
        information, parts = np.split(state.tuning.information, ends[:-1]), list[MovedPaths]()
        for (name, sticks), amount in zip(self.sticks.items(), information, strict=True):
            if name in self.seen.acting:
                before[name] = np.zeros((len(self.seen.share), *sticks.order.shape))
                at = state.weights, state.hyperparameters
                parts.append(self.seen.acting[name].moved(*at, amount, state.tuning.near))
                continue
            prior = sticks.information(before[name])[0]
            psi = sticks.psi(np.atleast_2d(getattr(state, name)))
            parts.append(summed_out.of_rows(psi, amount.reshape(prior.shape) + prior))
        self.parts: Parts = tuple(parts)
        self.before = tuple(before.values())
        self._orders = tuple(sticks.order for sticks in self.sticks.values())
        moves, emits = np.empty_like(self.before[1]), np.empty((self.before[2].size // M, M))
        into, cells = (hmm.leading(before, self.seen.which) for before in self.before[1:])
        symbols = data.symbols + data.num_symbols * cells[data.step_of_entry]
        self._blank = compiled.HiddenChains(
            data.offsets, data.indptr, symbols.astype(np.int32), data.counts, np.empty(M), moves,
            np.empty_like(moves), emits, np.empty_like(emits), False, into, data.known,
        )  # fmt: skip

    def psi(self, parts: Parts) -> list[FloatArray]:
        """Predictors of the sticks of each part, ``(num_cells, num_rows, num_sticks)``."""
        predictors = []
        for moved, order in zip(parts, self._orders, strict=True):
            psi, weights = np.empty_like(moved.constants), np.ascontiguousarray(moved.weights.T)
            over_rows(compiled.set_product, len(psi), moved.rows, weights, psi)
            predictors.append((psi + moved.constants).reshape(len(psi), len(order), -1))
        return predictors

    def acting(self, parts: Parts) -> list[tuple[Acting, MovedPaths]]:
        """The parts that inputs act on, with their terms."""
        acting = self.seen.acting
        return [(acting[n], moved) for n, moved in zip(_PARTS, parts, strict=True) if n in acting]

    def counts(self, psi: Sequence[FloatArray]) -> tuple[FloatArray, ...]:
        """How often the categories of each row occurred, in expectation given observations."""
        T, M, size = self._data.num_steps, len(self._blank.initial), self._data.num_sequences
        log_p, smoothed, pairs = np.empty(T), np.empty((T, M)), np.zeros((T, M, M))
        over_rows(compiled.smooth_paths, size, self.chains(psi), log_p, smoothed, pairs, grain=1)
        counts = tuple(np.zeros_like(before) for before in self.before)
        compiled.add_up_counts(self._blank, self.seen.which, smoothed, pairs, counts)
        return counts

    def leap(self, parts: Parts, size: float, count: int) -> float:
        """So many leapfrogs of a size; by how much the log density grows, -inf if refused."""
        which, orders = self.seen.which, self._orders
        return float(leap(self._blank, which, orders, self.before, parts, size, count))

    def chains(self, psi: Sequence[FloatArray]) -> compiled.HiddenChains:
        """The sequences and the probabilities of predictors, until others are asked for."""
        arguments = max(map(len, psi)), tuple(psi), self._orders, self._blank
        if min(over_rows(compiled.break_sticks, *arguments)) >= compiled.SMALLEST:
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
        parts = summed_out.walk_summed_out(rng, parts, at.leap, data.num_steps)
    chains, share = at.chains(at.psi(parts)), at.seen.share
    emissions = chains.emission.reshape(-1, data.num_symbols, model.num_states)
    transition, emission = (
        np.tensordot(share if len(probs) > 1 else np.ones(1), probs, 1)
        for probs in (chains.transition, emissions)
    )
    w, x = state.weights.copy(), state.hyperparameters.copy()
    for terms, moved in at.acting(parts):
        family, place = terms.family, terms.place
        w[place][:, terms.w] = moved.weights
        x[place][:, terms.x[terms.is_sd]] = np.abs(moved.x)
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
    for terms, moved in at.acting(at.parts):
        velocity = rng.standard_normal(moved.velocity.shape)
        colour_velocity(moved._replace(velocity=velocity))
        w[terms.place][:, terms.w] += velocity[:, : len(terms.w)]
    return replace(state, weights=w)


def least_information(model: MixedHMM, data: Sequences) -> PathTuning:
    """What the metric has at first.

    It is a share of the information of complete data, were all states and symbols alike.
    """
    M, K = model.num_states, data.num_symbols
    often = data.num_sequences / M, data.num_steps / M**2, data.totals.sum() / (M * K)
    both = zip(model.sticks(data.order).values(), often, strict=True)
    alike = [(sticks, np.full((1, *sticks.order.shape), number)) for sticks, number in both]
    least = [_LEAST_KNOWN * sticks.information(counts).ravel() for sticks, counts in alike]
    x, _ = model.seen(data.design, data.order).start()
    return PathTuning(np.concatenate(least), x)


def tuned(model: MixedHMM, state: MixedHMMState, data: Sequences) -> MixedHMMState:
    """The state with the information of complete data there, in expectation given observations.

    Standard deviations of the metric go a fifth of the way to those of the state.
    """
    at, pieces = SummedOut(model, state, data), []
    psi = at.psi(at.parts)
    for sticks, one, counts in zip(at.sticks.values(), psi, at.counts(psi), strict=True):
        _, reached = sticks.tried(counts)
        pieces.append((reached * expit(one) * expit(-one)).sum(axis=0).ravel())
    near = 0.8 * state.tuning.near + 0.2 * state.hyperparameters
    least = least_information(model, data).information
    return replace(state, tuning=PathTuning(np.maximum(np.concatenate(pieces), least), near))

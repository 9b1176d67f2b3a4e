"""Hidden Markov models of symbols and counts, by blocked Gibbs sweeps.

The discrete alternative to a linear dynamical system (Rabiner 1989; Scott 2002, "Bayesian methods
for hidden Markov models: recursive computing in the 21st century")::

    initial         ~ Dirichlet(initial_concentration)
    transition_i    ~ Dirichlet(alpha + kappa e_i),     i = 1..M   rows
    emission_i      ~ Dirichlet(eta)                               symbols in states
    z_1             ~ initial,    z_t ~ transition_{z_t-1}         each sequence
    x_t             ~ Multinomial(total_t, emission_{z_t})         in each channel

kappa > 0 makes states sticky (Fox, Sudderth, Jordan and Willsky 2011). Transitions that are not
`allowed` have concentrations and probabilities of 0. Where steps have an observation in each of
several channels (`pgmult.sequences.in_channels`), these are independent given the state, each with
emissions that sum to 1; a step may be missing in some of them. A sweep draws

1. z | initial, transition, emission, x      forward filter, backward sampling
2. alpha, kappa, eta | z, x                  where learned: slice steps on their logarithms, the
                                             rows integrated out
3. initial, transition, emission | all that  Dirichlet rows

z is not stored in the chain: given the parameters its distribution is known exactly, so log
likelihoods, `state_probs` and one-step-ahead predictions integrate it out. Steps without
observations are summed out.

Where `Sequences.known` has the state of a step, that step is in this state in all of this. The
likelihood is then that of observations and known states together, and known states number, and
name, the states.

The posterior of many sequences has many modes, which no sweep leaves. A chain starts from the best
of many short chains, the best third of which, by likelihood, goes on until one is left. Half of
them begin with emissions like the observations around steps chosen at random, each far from those
before it (Arthur and Vassilvitskii 2007, "k-means++"). In those that go on states are replaced: one
state, chosen at random, by the observations around a step that the others explain badly; after
`start_sweeps` sweeps the likelier of both goes on (Fränti and Kivijärvi 2000, "Randomised local
search algorithm for the clustering problem").

>>> import pgmult
>>> data = pgmult.sequences.as_sequences(["GATTACAGATTACAGATTACA", "TAGATTACAG"])
>>> posterior = pgmult.sample(
...     MultinomialHMM(num_states=3), data,
...     draws=10, tune=10, chains=1, random_seed=0, progressbar=False,
... )
>>> posterior["emission"].shape
(1, 10, 3, 4)
"""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import logsumexp, xlogy

from pgmult.compiled.dirichlet import sample_rows
from pgmult.compiled.rows import over_rows
from pgmult.core.arguments import as_repeats
from pgmult.core.parameters import Checked, Positive, axes_of, whole
from pgmult.core.typing import BoolArray, Coords, Draw, FloatArray, Generator, IntArray, Names
from pgmult.core.validate import as_finite, as_nonnegative, new_key
from pgmult.formulas.design import Design
from pgmult.sequences.compiled import hmm as compiled
from pgmult.sequences.data.sequences import Sequences, one_of, sequences_for, simulate_symbols
from pgmult.sequences.models.base import Ahead, SequenceModel

_NO_PAIRS = np.empty((0, 0, 0))
_START_ALPHA, _START_ETA = 1.0, 0.1  # where they are learned
_START_KAPPAS = (20.0, 1.0)  # in turn: states that last, and states that need not
_REACH = 4  # steps on each side, of the observations around one
_WORTH = 2.0  # observations that the shares of all are worth beside those around a step
_MOST_WINDOWS, _MOST_CELLS = 2_000, 4_000_000  # of which some are chosen
_REPLACED = 2  # times as many states of a start are replaced as there are short chains
_LEAST_MOVE = 1e-3  # to or from a state that is new, where it is possible


@dataclass(frozen=True, slots=True, eq=False)
class HMMState:
    """One point of the chain.

    Attributes
    ----------
    initial : array, ``(num_states,)``
        Probabilities of the first step's state.
    transition : array, ``(num_states, num_states)``
        Row i: of the next state, given state i.
    emission : array, ``(num_states, num_symbols)``
        Row i: of the symbols, given state i.
    transition_concentration, stickiness, emission_concentration : float
        alpha, kappa and eta.
    """

    initial: Annotated[FloatArray, "hidden_state"]
    transition: Annotated[FloatArray, "hidden_state", "next_hidden_state"]
    emission: Annotated[FloatArray, "hidden_state", "symbol"]
    transition_concentration: float
    stickiness: float
    emission_concentration: float


ProbsOfSteps = tuple[FloatArray, FloatArray, IntArray]
"""Transitions and emissions of cells, and the cell of each step: see `chains_of`."""


def as_allowed(value: Any, name: str) -> BoolArray:
    """Return which transitions are possible: in a square array, one or more in each row."""
    array, kind = as_finite(value, name), np.asarray(value).dtype
    if array.ndim != 2 or array.shape[0] != array.shape[1] or kind.kind not in "bi":
        got = f"shape {array.shape} of {kind}"
        raise ValueError(f"{name} must be a square array of True and False, got {got}")
    if not (none := array.any(axis=1)).all():
        raise ValueError(f"{name} must allow a state after each, got none after {none.argmin()}")
    return array.astype(np.bool_)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MultinomialHMM(SequenceModel, Checked):
    """Hidden Markov model with multinomial emissions.

    Parameters
    ----------
    num_states : int
        M >= 2.
    transition_concentration : float, optional
        Dirichlet concentration alpha of each entry of a transition row; learned if left out.
    emission_concentration : float, optional
        Dirichlet concentration eta of each symbol in a state; learned if left out.
    initial_concentration : float
        Dirichlet concentration of each state at the first step.
    stickiness : float or None
        Extra concentration kappa >= 0 of staying in a state; None: learned.
    concentration_shape, concentration_rate : float
        Gamma prior of alpha and of eta where they are learned.
    stickiness_shape, stickiness_rate : float
        Gamma prior of kappa where it is learned.
    start_tries, start_sweeps : int
        Short chains among which a chain takes its start, and sweeps after which they are compared.
        Each time a third of them goes on, twice as many states as there were chains are replaced.
    allowed : bool array, ``(num_states, num_states)``, optional
        Row i: states that may follow state i; all by default. A state that nobody leaves has a row
        that allows itself alone.

    Notes
    -----
    A sweep costs O(num_steps M**2 + num_entries M + M num_symbols) and holds O(num_steps M)
    numbers of the longest sequences, one a thread; sequences are shared among threads.
    """

    num_states: Annotated[int, whole(2)]
    transition_concentration: Positive | None = None
    emission_concentration: Positive | None = None
    initial_concentration: Positive = 1.0
    stickiness: Annotated[float, as_nonnegative] | None = 0.0
    concentration_shape: Positive = 1.0
    concentration_rate: Positive = 1.0
    stickiness_shape: Positive = 1.0
    stickiness_rate: Positive = 0.1
    start_tries: Annotated[int, as_repeats] = 12
    start_sweeps: Annotated[int, partial(as_repeats, minimum=0)] = 10
    allowed: Annotated[BoolArray, as_allowed] | None = None

    dims: ClassVar[Mapping[str, Names]] = axes_of(HMMState) | {
        "state_probs": ("step", "hidden_state"), "effective_states": (),
    }  # fmt: skip
    default_keep: ClassVar[Names] = (*axes_of(HMMState), "effective_states")
    takes: ClassVar[Names] = ("channels", "known states")
    label_dims: ClassVar[frozenset[str]] = frozenset({"hidden_state", "next_hidden_state"})
    label_rows: ClassVar[Mapping[str, str]] = {"hidden_state": "emission"}
    predictive_variables: ClassVar[Names] = ("initial", "transition", "emission")

    @property
    def possible(self) -> BoolArray:
        """Transitions that are allowed."""
        M = self.num_states
        return np.ones((M, M), dtype=np.bool_) if self.allowed is None else self.allowed

    def _complete(self) -> None:
        if self.allowed is not None and len(self.allowed) != self.num_states:
            raise ValueError(f"allowed must have {self.num_states} rows, got {len(self.allowed)}")

    def as_data(self, data: object) -> Sequences:
        """`as_sequences`; the model takes no inputs."""
        return sequences_for(type(self).__name__, data, *self.takes).of_states(self.num_states)

    def coords(self, data: Sequences) -> Coords:
        """Symbols and sequences by their names, where they have any."""
        named = {"symbol": data.alphabet, "sequence": data.names}
        return {axis: labels for axis, labels in named.items() if labels is not None}

    # ------------------------------------------------------------------ the model

    def prior(self, rng: Generator, data: Sequences) -> HMMState:
        """A state from the prior."""

        def drawn(value: float | None, shape: float, rate: float) -> float:
            return float(rng.gamma(shape, 1.0 / rate) if value is None else value)

        shape, rate = self.concentration_shape, self.concentration_rate
        alpha = drawn(self.transition_concentration, shape, rate)
        kappa = drawn(self.stickiness, self.stickiness_shape, self.stickiness_rate)
        eta = drawn(self.emission_concentration, shape, rate)
        return self._draw_rows(rng, _no_counts(self, data), alpha, kappa, eta)

    def simulate(self, rng: Generator, state: HMMState, data: Sequences) -> Sequences:
        """New states and, given them, new observations; known are the states of the same steps."""
        transition, emission, which = self.probs_of_steps(state, data)
        states = np.empty(data.num_steps, dtype=np.int64)
        chain = data.offsets, state.initial, transition, leading(transition, which), states
        over_rows(compiled.simulate_paths, data.num_sequences, new_key(rng), *chain, grain=1)
        known = np.where(data.known < 0, -1, states) if data.known.size else data.known
        emits = emission[leading(emission, which), states]
        return replace(simulate_symbols(rng, emits, data), known=known)

    def log_likelihood(self, state: HMMState, data: Sequences) -> float:
        """Log p(observations | parameters), the states summed out; no multinomial coefficients."""
        return float(log_predictive_of(self.chains(state, data)).sum())

    # ------------------------------------------------------------------ the sampler

    def init(self, rng: Generator, data: Sequences) -> HMMState:
        """The best of many short chains: see the module.

        Where stickiness is learned, every other one begins with states that last: chains that begin
        without find long stretches late, if at all.
        """
        alpha = self.transition_concentration or _START_ALPHA
        eta = self.emission_concentration or _START_ETA
        chains, share = list[HMMState](), _share_of(data)
        kappas = _START_KAPPAS if self.stickiness is None else (float(self.stickiness),)
        for number, kappa in zip(range(self.start_tries), itertools.cycle(kappas), strict=False):
            state = self._draw_rows(rng, _no_counts(self, data), alpha, kappa, eta)
            emission = share * rng.exponential(size=(self.num_states, data.num_symbols))
            if number % 4 >= 2:
                around, emission = _Around.draw(rng, data, self.num_states), emission[:0]
                for _ in range(self.num_states):  # shares around steps far from each other
                    emission = np.concatenate([emission, [around.far_from(rng, emission)]])
            emission = _known_shares(data, emission)
            for channel in data.channel_slices:
                emission[:, channel] /= emission[:, channel].sum(axis=1, keepdims=True)
            chains.append(replace(state, emission=emission))

        def swept(state: HMMState) -> tuple[float, HMMState]:
            for _ in range(self.start_sweeps):
                state = self.step(rng, state, data)
            return self.log_likelihood(state, data), state

        fits = [swept(state) for state in chains]
        while True:
            best = sorted(fits, key=lambda fit: -fit[0])[: -(-len(fits) // 3)]
            fits = [swept(state) for _, state in best]
            replaced = _REPLACED * self.start_tries // len(fits) if self.start_sweeps else 0
            for place, _ in itertools.product(range(len(fits)), range(replaced)):
                other = swept(self._with_another(rng, fits[place][1], data))
                fits[place] = max(fits[place], other, key=lambda fit: fit[0])
            if len(fits) == 1:
                return fits[0][1]

    def _with_another(self, rng: Generator, state: HMMState, data: Sequences) -> HMMState:
        """The state of a chain after one hidden state is replaced by another: see the module."""
        M, around = self.num_states, _Around.draw(rng, data, self.num_states)
        m = int(rng.integers(M))
        others = np.delete(np.arange(M), m)
        emission, transition = state.emission.copy(), state.transition.copy()
        emission[m] = around.far_from(rng, emission[others])
        for channel in data.channel_slices:
            emission[m, channel] /= emission[m, channel].sum()
        stays = np.diag(transition)[others].mean()
        transition[m], transition[others, m] = (1.0 - stays) / (M - 1.0), (1.0 - stays) / M
        transition[m, m] = stays
        if self.allowed is not None:
            transition = np.where(self.allowed, np.maximum(transition, _LEAST_MOVE), 0.0)
        transition /= transition.sum(axis=1, keepdims=True)
        initial = state.initial.copy()
        initial[m] = initial[others].mean()
        initial /= initial.sum()
        return replace(state, initial=initial, transition=transition, emission=emission)

    def step(self, rng: Generator, state: HMMState, data: Sequences) -> HMMState:
        """One sweep over all blocks."""
        counts = self._count(self.sample_states(rng, state, data), data)
        return self._draw_rows(rng, counts, *sample_concentrations(rng, self, state, counts))

    def sample_states(self, rng: Generator, state: HMMState, data: Sequences) -> IntArray:
        """The hidden states of all steps, ``(num_steps,)``, drawn given the parameters.

        Raises
        ------
        FloatingPointError
            If the parameters make an observation impossible.
        """
        return sample_paths(rng, self.chains(state, data))

    def _count(self, states: IntArray, data: Sequences) -> "_Counts":
        """How often the states were first, followed each other and emitted the symbols."""
        M, follows = self.num_states, data.follows
        pairs = (M * states[:-1] + states[1:])[follows[1:]]
        cells = np.repeat(states, np.diff(data.indptr)) * data.num_symbols + data.symbols
        emitted = np.bincount(cells, data.counts, M * data.num_symbols).astype(np.float64)
        first = np.bincount(states[~follows], minlength=M).astype(np.float64)
        moved = np.bincount(pairs, minlength=M * M).astype(np.float64)
        emissions = [emitted.reshape(M, -1)[:, channel] for channel in data.channel_slices]
        return _Counts(first, moved.reshape(M, M), emissions)

    def _draw_rows(
        self, rng: Generator, counts: "_Counts", alpha: float, kappa: float, eta: float
    ) -> HMMState:
        """The probabilities given counts and concentrations."""
        M, rows = self.num_states, np.empty((self.num_states + 1, self.num_states))
        rows[0] = self.initial_concentration + counts.initial
        rows[1:] = alpha + counts.transition
        rows[1:].flat[:: M + 1] += kappa
        rows[1:] *= self.possible
        drawn = dirichlet_rows(rng, rows)
        emissions = [dirichlet_rows(rng, eta + taken) for taken in counts.emissions]
        probs = drawn[0].copy(), drawn[1:].copy(), np.concatenate(emissions, axis=1)
        return HMMState(*probs, alpha, kappa, eta)

    # ------------------------------------------------------------------ what a state says

    def state_of(self, draw: Draw) -> HMMState:
        """The state of a kept draw; its concentrations, which may not be kept, are nan."""
        probs = draw["initial"], draw["transition"], draw["emission"]
        return HMMState(*probs, np.nan, np.nan, np.nan)

    def chains(self, state: HMMState, data: Sequences) -> compiled.HiddenChains:
        """The sequences and parameters, as compiled functions take them."""
        return chains_of(data, state.initial, self.probs_of_steps(state, data))

    def state_probs(self, state: HMMState, data: Sequences) -> FloatArray:
        """p(z_t | all observations, parameters), ``(num_steps, num_states)``."""
        chains, smoothed = self.chains(state, data), np.empty((data.num_steps, len(state.initial)))
        room = np.empty(data.num_steps), smoothed, _NO_PAIRS
        over_rows(compiled.smooth_paths, data.num_sequences, chains, *room, grain=1)
        return smoothed

    def filtered_state_probs(self, state: HMMState, data: Sequences) -> FloatArray:
        """p(z_t | x before t) and p(z_t | x up to t), ``(2, num_steps, num_states)``."""
        chains, probs = self.chains(state, data), np.empty((2, data.num_steps, len(state.initial)))
        over_rows(compiled.filter_paths, data.num_sequences, chains, *probs, grain=1)
        return probs

    def probs_of_steps(self, state: HMMState, data: Sequences) -> ProbsOfSteps:
        """Transitions and emissions, and which of them each step has: see `chains_of`."""
        which = np.zeros(data.num_steps, dtype=np.int64)
        return state.transition[None], state.emission[None], which

    def transition_probs(self, draws: Draw, inputs: Design | None = None) -> FloatArray:
        """Transition probabilities of many draws, at rows of inputs where the model takes them.

        Parameters
        ----------
        draws : mapping from str to array, ``(num_draws, ...)``
            Draws of `predictive_variables`.
        inputs : Design, optional
            Rows of inputs, coded as those of the data. Only models that take inputs need them.

        Returns
        -------
        array, ``(num_draws, num_states, num_states)``
            ``(num_draws, num_rows, num_states, num_states)`` at rows of inputs.
            Row i holds the probabilities of the next state given state i.
        """
        if inputs is not None:
            raise ValueError("this model takes no inputs, its transitions are the same everywhere")
        return np.array(draws["transition"], dtype=np.float64)

    def effective_states(self, state: HMMState, data: Sequences) -> float:
        """How many states are in use: the exponential of the entropy of their shares."""
        shares = self.state_probs(state, data).mean(axis=0)
        return float(np.exp(-xlogy(shares, shares).sum()))

    def log_predictive(self, draw: Draw, data: Sequences) -> FloatArray:
        """Log p(x_t | x_<t of the same sequence, parameters), ``(num_steps,)``; exact.

        Parameters
        ----------
        draw : mapping
            One posterior draw of `predictive_variables`.
        data : Sequences
            What to predict: the training sequences, others, or both joined.

        Returns
        -------
        array, ``(num_steps,)``
            Without multinomial coefficients; 0 at missing steps, -inf where a draw rules a step
            out (which then counts as missing for the steps after it). Known states of the steps
            before count, that of the step itself does not.
        """
        state = self.state_of(draw)
        chains = self.chains(state, data)
        log_predictive = log_predictive_of(chains)
        if not data.known.size:
            return log_predictive
        with np.errstate(divide="ignore"):
            log_probs = np.log(self.filtered_state_probs(state, data)[0])
        shape = data.num_steps, len(chains.log_emission)
        rows = csr_array((chains.counts, chains.symbols, chains.indptr), shape=shape)
        fits = logsumexp(log_probs + rows @ chains.log_emission, axis=1)
        return np.where(data.known < 0, log_predictive, np.where(data.observed, fits, 0.0))

    def step_probs(self, draw: Draw, data: Sequences, *, filtered: bool = False) -> FloatArray:
        """Probabilities of every step given all observations, ``(num_steps, num_symbols)``.

        If `filtered`, they are given the observations before the step alone.
        """
        state = self.state_of(draw)
        _, emission, which = self.probs_of_steps(state, data)
        if filtered:
            return mixed(emission, which, self.filtered_state_probs(state, data)[0])
        return mixed(emission, which, self.state_probs(state, data))

    def ahead(self, chances: FloatArray, draw: Draw, data: Sequences, steps: int) -> Ahead:
        """Probabilities ahead, exact, and one path of symbols of each sequence.

        Paths are of the first channel, where there are several.

        Parameters
        ----------
        chances : array, ``(num_sequences, 2, steps + 1)``
            Uniform numbers, from which the paths follow.
        data : Sequences
            With the steps ahead, missing, and their inputs.

        Returns
        -------
        probs : array, ``(num_sequences, steps, num_symbols)``
        symbols : int array, ``(num_sequences, steps)``
        """
        state = self.state_of(draw)
        new = data.offsets[1:, None] + np.arange(-steps, 0)
        transition, emission, which = self.probs_of_steps(state, data)
        smoothed = self.state_probs(state, data)
        probs = mixed(emission, which[new.ravel()], smoothed[new.ravel()])
        hidden = one_of(chances[:, 0, -1], smoothed[new[:, 0] - 1])
        path = np.empty(new.shape, dtype=np.int64)
        for t, cells in enumerate(which[new].T):
            moves = transition[leading(transition, cells), hidden]
            path[:, t] = hidden = one_of(chances[:, 0, t], moves)
        emits = emission[leading(emission, which[new]), path][..., data.channel_slices[0]]
        return probs.reshape(-1, steps, data.num_symbols), one_of(chances[:, 1, :-1], emits)

    def replicate(self, rng: Generator, draw: Draw, data: Sequences) -> IntArray:
        """Sequences made anew from one draw of `predictive_variables`, as counts of steps."""
        return np.asarray(self.simulate(rng, self.state_of(draw), data).to_csr().toarray())


_Terms = tuple[FloatArray, ...]
"""Times, what is added, slopes and bases: see `pgmult.sequences.compiled.hmm.log_rising`."""


class _Counts(NamedTuple):
    """Sufficient statistics of the Dirichlet rows, of emissions for each channel."""

    initial: FloatArray
    transition: FloatArray
    emissions: list[FloatArray]


def _no_counts(model: MultinomialHMM, data: Sequences) -> _Counts:
    M, emitted = model.num_states, np.zeros((model.num_states, data.num_symbols))
    return _Counts(np.zeros(M), np.zeros((M, M)), [emitted[:, c] for c in data.channel_slices])


def _share_of(data: Sequences) -> FloatArray:
    """Frequencies of the symbols, one more of each than there are."""
    times = np.bincount(data.symbols, data.counts, data.num_symbols)
    return np.asarray(times + 1.0, dtype=np.float64)


def _known_shares(data: Sequences, emission: FloatArray) -> FloatArray:
    """Emissions, those of states which are known somewhere by the observations of these steps."""
    steps, emission = np.flatnonzero(data.known >= 0), emission.copy()
    rows, share = data.to_csr()[steps].toarray(), _share_of(data)
    for m in np.unique(data.known[steps]).tolist():
        emission[m] = rows[data.known[steps] == m].sum(axis=0) + _WORTH * share / share.sum()
    return emission


class _Around(NamedTuple):
    """Observations around some steps.

    Attributes
    ----------
    counts : array, ``(num_windows, num_symbols)``
    share : array, ``(num_symbols,)``
        Frequencies of the symbols of all.
    best : array, ``(num_windows,)``
        Log probabilities of the counts by their shares.
    """

    counts: FloatArray
    share: FloatArray
    best: FloatArray

    @classmethod
    def draw(cls, rng: Generator, data: Sequences, num_states: int) -> "_Around":
        """Observations around steps chosen at random."""
        times = _share_of(data)
        share = times / times.sum()
        size = min(_MOST_WINDOWS, max(num_states, _MOST_CELLS // data.num_symbols), data.num_steps)
        steps = rng.choice(data.num_steps, size=size, replace=False)
        sequence = np.searchsorted(data.offsets, steps, side="right") - 1
        begin = np.maximum(steps - _REACH, data.offsets[sequence])
        width = np.minimum(steps + _REACH + 1, data.offsets[sequence + 1]) - begin
        indptr = np.concatenate([[0], np.cumsum(width)])
        inside = np.arange(indptr[-1]) - np.repeat(indptr[:-1] - begin, width)
        around = csr_array((np.ones(len(inside)), inside, indptr), shape=(size, data.num_steps))
        counts = (around @ data.to_csr()).toarray() + 1e-9 * share
        best = xlogy(counts, counts / counts.sum(axis=1, keepdims=True)).sum(axis=1)
        return cls(counts, share, best)

    def far_from(self, rng: Generator, shares: FloatArray) -> FloatArray:
        """Shares of symbols around a step, chosen with a chance in proportion to how much worse
        the best of others explain the observations around it than their own do.
        """
        logs = np.log(np.maximum(shares, np.finfo(np.float64).tiny))
        fits = (self.counts @ logs.T).max(axis=1, initial=-np.inf)
        worse = np.maximum(self.best - fits, 0.0) if np.isfinite(fits).all() else np.ones(len(fits))
        number = rng.choice(len(worse), p=worse / worse.sum()) if worse.sum() > 0.0 else 0
        row = self.counts[number] + _WORTH * self.share
        return np.asarray(row / row.sum())


def chains_of(data: Sequences, initial: FloatArray, probs: ProbsOfSteps) -> compiled.HiddenChains:
    """Sequences and parameters, as compiled functions take them.

    Parameters
    ----------
    data : Sequences
    initial : array, ``(num_states,)``
    probs : transition, emission and which
        ``(num_cells or 1, num_states, num_states)``, ``(num_cells or 1, num_states, num_symbols)``
        and the cell of each step, an int array, ``(num_steps,)``.
    """
    transition, emission, which = probs
    if emission.shape[-1] != data.num_symbols:
        sizes = f"{emission.shape[-1]} symbols, the data have {data.num_symbols}"
        raise ValueError(f"the model's states emit {sizes}")
    symbols, by_symbol = data.symbols, emission[0].T
    if len(emission) > 1:
        by_symbol = emission[which[data.step_of_entry], :, symbols]
        symbols = np.arange(len(symbols), dtype=symbols.dtype)
    by_symbol = np.ascontiguousarray(by_symbol)
    with np.errstate(divide="ignore"):
        logs = np.log(transition), np.log(by_symbol)
    in_logs = bool(min(initial.min(), transition.min()) < compiled.SMALLEST)
    return compiled.HiddenChains(
        data.offsets, data.indptr, symbols, data.counts, initial, transition, logs[0], by_symbol,
        logs[1], in_logs, leading(transition, which), data.known,
    )  # fmt: skip


def mixed(emission: FloatArray, which: IntArray, probs: FloatArray) -> FloatArray:
    """Probabilities of symbols where those of states are known, row by row."""
    if len(emission) == 1:
        return np.asarray(probs @ emission[0])
    return np.asarray(sum(p[:, None] * emission[which, m] for m, p in enumerate(probs.T)))


def sample_paths(rng: Generator, chains: compiled.HiddenChains) -> IntArray:
    """Hidden states of all steps given the parameters: see `MultinomialHMM.sample_states`."""
    log_predictive = np.empty(len(chains.indptr) - 1)
    states, size = np.empty(len(log_predictive), dtype=np.int64), len(chains.offsets) - 1
    over_rows(compiled.sample_paths, size, new_key(rng), chains, log_predictive, states, grain=1)
    if len(impossible := np.flatnonzero(np.isneginf(log_predictive))):
        what = "the observations of step {} are impossible in every state that can be there"
        if chains.known.size and chains.known[impossible[0]] >= 0:
            what = "the known state of step {} cannot be there, or have its observations"
            what += " (do transitions that are not allowed lead there?)"
        raise FloatingPointError(what.format(impossible[0] + 1))
    return states


def log_predictive_of(chains: compiled.HiddenChains) -> FloatArray:
    """Log p(x_t | x_<t) of each step."""
    log_predictive = np.empty(len(chains.indptr) - 1)
    over_rows(compiled.filter_sequences, len(chains.offsets) - 1, chains, log_predictive, grain=1)
    return log_predictive


def leading(transition: FloatArray, which: IntArray) -> IntArray:
    """The transition into each step, or its emission, where there is one for all or one a cell."""
    return which if len(transition) > 1 else np.zeros_like(which)


def dirichlet_rows(rng: Generator, concentration: FloatArray) -> FloatArray:
    """Dirichlet rows of concentrations that a sweep has made, which are not checked."""
    out = np.empty_like(concentration)
    over_rows(sample_rows, len(out), new_key(rng), concentration, out, grain=1)
    return out


def _row_terms(counts: FloatArray, slope: FloatArray, base: FloatArray) -> _Terms:
    """Log p(counts | x), Dirichlet rows of concentrations slope x + base integrated out."""
    parts = (counts, slope, base)
    arrays = [np.concatenate([cells.ravel(), cells.sum(axis=1)]) for cells in parts]
    return np.repeat([1.0, -1.0], [counts.size, len(counts)]), *arrays


def _emission_terms(channels: list[FloatArray]) -> _Terms:
    """Log p(symbols | eta, states), rows integrated out, of eta; counts of each channel."""
    values, times = np.unique(np.concatenate(channels, axis=1), return_counts=True)
    totals = np.concatenate([counts.sum(axis=1) for counts in channels])
    numbers = np.repeat([float(counts.shape[1]) for counts in channels], len(channels[0]))
    cells = times.astype(np.float64), values, np.ones(len(values))
    return joined_terms(cells, (np.full(len(totals), -1.0), totals, numbers))


def joined_terms(*parts: tuple[FloatArray, FloatArray, FloatArray]) -> _Terms:
    """Terms of cells and of totals, each by times, what is added and slopes; bases are 0."""
    arrays = [np.concatenate(pieces) for pieces in zip(*parts, strict=True)]
    return *arrays, np.zeros(len(arrays[0]))


def sample_concentrations(
    rng: Generator, model: MultinomialHMM, state: HMMState, counts: _Counts
) -> tuple[float, float, float]:
    """alpha, kappa and eta given the states, where they are learned."""
    alpha, kappa = state.transition_concentration, state.stickiness
    eta, entry = state.emission_concentration, model.possible.astype(np.float64)
    stays, prior = np.diag(np.diag(entry)), (model.concentration_shape, model.concentration_rate)
    if model.transition_concentration is None:
        alpha = slice_log(rng, _row_terms(counts.transition, entry, kappa * stays), alpha, *prior)
    if model.stickiness is None:
        terms = _row_terms(counts.transition, stays, alpha * entry)
        kappa = slice_log(rng, terms, kappa, model.stickiness_shape, model.stickiness_rate)
    if model.emission_concentration is None:
        eta = slice_log(rng, _emission_terms(counts.emissions), eta, *prior)
    return alpha, kappa, eta


def slice_log(rng: Generator, terms: _Terms, value: float, shape: float, rate: float) -> float:
    """One slice update, on its logarithm, of a positive number with a gamma prior."""
    drop = rng.standard_exponential()
    return math.exp(compiled.slice_log(new_key(rng), math.log(value), drop, shape, rate, terms))

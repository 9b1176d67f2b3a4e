r"""Markov chains of symbols whose transitions depend on inputs and individuals.

The question that multi-state models of panels answer (Kalbfleisch and Lawless 1985, "The analysis
of panel data under a Markov assumption"; Muenz and Rubinstein 1985, "Markov models for covariate
dependence of binary sequences"). Rows of transitions are multinomial logits, broken as sticks, the
first of which is to stay::

    first symbol  ~  Dirichlet rows of the initial concentration
    P(j | i, t)   =  sticks(psi_it),    psi_itk = (A w_ik)_t + c_k       into step t, from symbol i
    w             ~  N(0, Q(x)^-1),     x: half-t standard deviations, LKJ(2) correlations

A step without an observation has a symbol that is summed out: transitions across a gap are products
of the steps' matrices.

Given the symbols of all steps the sticks of transitions are independent logistic regressions on the
inputs: of n_tik transitions from i into step t that reach stick k, some take it. An approximation
is found once for each stick, from the steps whose symbol and the one before are observed
(`pgmult.latent.approximation`), and the moves of `pgmult.latent.moves` go around it. They leave the
posterior as it is whatever they go around. A sweep:

1. missing symbols before the last observation | transitions, observed ones
2. first symbols | all of them                      Dirichlet
3. weights and hyperparameters | all symbols        stick by stick

Where an intercept of each individual is all that is pooled, these are integrated out in 3
(`pgmult.sequences.updates.intercepts`). Where an individual has one sequence, and these have few
ways in which their missing symbols may be filled in, each has integrals for all its ways: 1 draws
one of them with the intercepts integrated out, too.

Symbols after the last observation of a sequence need not be drawn: they sum to 1.

>>> import numpy as np, pgmult
>>> table = {"who": np.repeat(["a", "b", "c"], 8), "x": np.tile([0.0, 1.0], 12),
...          "is": list("AABBABAAABABBBBAABBBAABA")}
>>> data = pgmult.read(table).sequences("is", sequence="who", inputs="~ x")
>>> run = pgmult.sample(
...     MixedMarkovChain(2), data, draws=10, tune=10, chains=1, random_seed=0, progressbar=False
... )
>>> run.coords["stick"].tolist(), run["weights"].shape
(['A to A', 'B to B'], (1, 10, 2, 2))
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from pgmult.core.blas import one_blas_thread
from pgmult.core.sweeps import Sampled, Sampler
from pgmult.core.typing import Array, BoolArray, Coords, Draw, FloatArray, Generator, IntArray
from pgmult.latent.additive import Additive
from pgmult.latent.approximation import Approximation, approximate, hyperparameters_near
from pgmult.latent.hyperparameters import Leaning
from pgmult.latent.moves import Point, Target, interweave, reflect, swing
from pgmult.sequences.data.sequences import Sequences
from pgmult.sequences.models.hmm import HMMState, sample_paths
from pgmult.sequences.models.markov import refuse_not_allowed
from pgmult.sequences.models.mixed_hmm import UNTUNED, MixedHMM, MixedHMMState
from pgmult.sequences.updates.intercepts import Intercepts, Patterns
from pgmult.sequences.updates.summed_out import OrderedSticks
from pgmult.variational.sites import LogisticSite

_NEAR = 0.15  # spread up to which reflected leaps alone nearly do, and they are cheap
_WOVEN_NEAR, _SWUNG_NEAR = 0.2, 0.5  # of the sweeps, all where it is farther
_KICKS = 3
_CERTAIN = 1e6  # constant of a stick whose probability is 1
_MOST_WAYS = 200_000  # steps of all ways to fill missing symbols in
_ROUNDS = 2  # of distributions near the posterior


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MixedMarkovChain(Sampled[Sequences, MixedHMMState], MixedHMM):  # type: ignore[misc]
    """Markov chain of symbols whose transitions depend on inputs and individuals.

    Parameters
    ----------
    num_states : int
        Number of symbols.
    initial_concentration : float
        Dirichlet concentration of each symbol at the first step.
    priors : mapping from term to distribution, optional
        As in `pgmult.regression.AdditiveRegression`.
    ...
        Other parameters of `MixedHMM` play no part.

    Notes
    -----
    Each of the K (K - 1) sticks takes some factorisations of a matrix of the weights' size a sweep
    (by Schur complement for the largest grouping).
    """

    default_keep: ClassVar[tuple[str, ...]] = MixedHMM.default_keep[:-1]  # states are observed
    monitored: ClassVar[tuple[str, ...]] = ("transition",)
    takes: ClassVar[tuple[str, ...]] = ("inputs",)
    rules_out: ClassVar[bool] = True
    label_dims: ClassVar[frozenset[str]] = frozenset()
    label_rows: ClassVar[Mapping[str, str]] = {}

    def _complete(self) -> None:
        if self.inputs != "transitions":
            raise ValueError(f"inputs act on transitions of a Markov chain, got {self.inputs!r}")

    def as_data(self, data: Any) -> Sequences:
        """`as_sequences`, with inputs and at most one observation a step.

        Raises
        ------
        ValueError
            If there are other symbols, several observations of a step, no inputs, or transitions
            that are not allowed.
        """
        sequences = MixedHMM.as_data(self, data)
        if sequences.num_symbols != self.num_states:
            sizes = f"{sequences.num_symbols}, got {self.num_states}"
            raise ValueError(f"num_states must be the number of symbols, {sizes}")
        if len(many := np.flatnonzero(sequences.totals > 1)):
            raise ValueError(
                f"a Markov chain has one symbol a step, got {sequences.totals[many[0]]} at step"
                f" {many[0] + 1} (MixedHMM takes several)"
            )
        if self.allowed is not None:
            refuse_not_allowed(sequences, self.allowed)
        return sequences

    def shifts(self, name: str, sticks: OrderedSticks) -> FloatArray:
        """The constants of the sticks, which rule out what is not allowed."""
        is_open = np.take_along_axis(self.possible, sticks.order, axis=1)
        later = is_open[:, :0:-1].cumsum(axis=1)[:, ::-1]  # symbols that may break after each
        free = np.where(np.arange(self.num_states - 1) > 0, -np.log(np.maximum(later, 1)), 0.0)
        forced = np.where(is_open[:, :-1], _CERTAIN, -_CERTAIN)
        return np.where(is_open[:, :-1] & (later > 0), free, forced).ravel()

    def coords(self, data: Sequences) -> Coords:
        """Symbols, which are the states, and sticks by their names."""
        states = {"hidden_state": data.labels, "next_hidden_state": data.labels}
        return {**MixedHMM.coords(self, data), **states}

    def state_labels(self, data: Sequences) -> Array:
        """What states are called in names of sticks: the symbols."""
        return data.labels

    def prior(self, rng: Generator, data: Sequences) -> MixedHMMState:
        """A state from the prior."""
        state = MixedHMM.prior(self, rng, data)
        return self.state_at(state.initial, state.weights, state.hyperparameters, data)

    def state_at(
        self, initial: FloatArray, w: FloatArray, x: FloatArray, data: Sequences
    ) -> MixedHMMState:
        """The state with these weights and hyperparameters; transitions are averages over steps."""
        symbols, alike = np.eye(self.num_states), np.ones((self.num_states, self.num_states))
        return self.whole(HMMState(initial, alike, symbols, 1.0, 0.0, 1.0), w, x, UNTUNED, data)

    def step_probs(self, draw: Draw, data: Sequences, *, filtered: bool = False) -> FloatArray:
        """Probabilities of every step, ``(num_steps, num_symbols)``.

        They are given all others where the symbol is missing, and those before it elsewhere;
        `filtered`, given those before it alone.
        """
        probs = MixedHMM.step_probs(self, draw, data, filtered=True)
        missing = ~data.observed
        if not filtered and missing.any():
            probs[missing] = MixedHMM.step_probs(self, draw, data)[missing]
        return probs

    def sampler(self, data: Sequences) -> Sampler[MixedHMMState]:
        """Return how chains of a data set move."""
        if Intercepts.takes(self.seen(data.design, data.order).acting["transition"].family):
            return InterceptSampler(self, data)
        return TransitionSampler(self, data)


class _StickSampler:
    """What both samplers of a Markov chain of symbols with inputs start from.

    Parameters
    ----------
    model : MixedMarkovChain
    data : Sequences

    Attributes
    ----------
    symbols : int array, ``(num_steps,)``
        The symbols of all steps, -1 where one is missing.
    is_over : bool array, ``(num_steps,)``
        After the last observation of a sequence.
    is_drawn : bool array, ``(num_steps,)``
        Missing before it: the symbol is drawn.
    """

    def __init__(self, model: MixedMarkovChain, data: Sequences):
        self.model, self.data, self._inputs = model, data, model.seen(data.design, data.order)
        self._terms, self.symbols = self._inputs.acting["transition"], np.full(data.num_steps, -1)
        self._is_free = np.abs(self._terms.shifts) < _CERTAIN  # neither ruled out nor certain
        self.symbols[data.observed] = data.symbols
        observed = np.append(0, np.cumsum(data.observed))
        self.is_over = observed[1:] == np.repeat(observed[data.offsets[1:]], data.lengths)
        self.is_over &= ~data.observed
        self.is_drawn = ~data.observed & ~self.is_over

    def init(self, rng: Generator) -> MixedHMMState:
        """A draw near the posterior of what is observed, and a sweep."""
        (x, w), M = self._inputs.start(), self.model.num_states
        with one_blas_thread():
            for s in range(len(w)):
                x[s], w[s] = self._start(rng, s)
        return self.step(rng, self.model.state_at(np.full(M, 1.0 / M), w, x, self.data))

    def draw(self, rng: Generator, state: MixedHMMState) -> IntArray:
        """The symbols with missing ones drawn, -1 after the last observation."""
        if not self.is_drawn.any():
            return self.symbols
        return np.where(self.is_over, -1, sample_paths(rng, self.model.chains(state, self.data)))

    def transitions(self, symbols: IntArray) -> IntArray:
        """The steps into which both symbols are those of a transition."""
        return np.flatnonzero(self.data.follows & (symbols >= 0) & (np.roll(symbols, 1) >= 0))

    def predictor(self, s: int, cells: IntArray | slice) -> Additive:
        """The predictor of a stick at some cells."""
        family, offset = self._terms.family, self._terms.family.offset + self._terms.shifts[s]
        return Additive(family.terms, family.design[cells], offset[cells])

    def initial(self, rng: Generator, first: IntArray) -> FloatArray:
        """Probabilities of first symbols given some, of which -1 says nothing."""
        counts = np.bincount(first[first >= 0], minlength=self.model.num_states)
        return rng.dirichlet(self.model.initial_concentration + counts)

    def _start(self, rng: Generator, s: int) -> tuple[FloatArray, FloatArray]:
        """Hyperparameters and weights of a stick."""
        raise NotImplementedError

    def step(self, rng: Generator, state: MixedHMMState) -> MixedHMMState:
        """The state after one sweep."""
        raise NotImplementedError


class TransitionSampler(_StickSampler):
    """The sampler around approximations."""

    def __init__(self, model: MixedMarkovChain, data: Sequences):
        super().__init__(model, data)
        beside = self.is_drawn | np.append(False, self.is_drawn[:-1])
        steps = beside & data.follows & ~self.is_over
        is_open = np.isin(np.arange(len(self._inputs.share)), self._inputs.which[steps])
        self._of_stick = self._approximations(is_open)

    def _approximations(self, is_open: BoolArray) -> list[tuple[IntArray, Additive, Approximation]]:
        """What moves the weights of each stick, at open cells and those where it was reached."""
        moving = list[tuple[IntArray, Additive, Approximation]]()
        taken, reached = self._tried(self.symbols)
        with one_blas_thread():
            for s in range(len(self._terms.shifts)):
                cells = np.flatnonzero((reached[:, s] > 0.0) | is_open)
                predictor = self.predictor(s, cells)
                base = approximate(predictor, LogisticSite(taken[cells, s], reached[cells, s]))
                moving.append((cells, predictor, base))
        return moving

    def _tried(self, symbols: IntArray) -> tuple[FloatArray, FloatArray]:
        """How often each stick was taken and reached, ``(num_cells, num_sticks)`` each."""
        M, size = self.model.num_states, len(self._inputs.share)
        step = self.transitions(symbols)
        place = (self._inputs.which[step] * M + symbols[step - 1]) * M + symbols[step]
        counts = np.bincount(place, minlength=size * M * M).astype(np.float64)
        taken, reached = self._terms.sticks.tried(counts.reshape(size, M, M))
        return taken.reshape(size, -1), reached.reshape(size, -1)

    def _start(self, rng: Generator, s: int) -> tuple[FloatArray, FloatArray]:
        """A draw from the approximation."""
        _, family, base = self._of_stick[s]
        x = hyperparameters_near(rng, family, base.guess)
        return x, family.at(x, base.absorbed).sample(rng)

    def step(self, rng: Generator, state: MixedHMMState) -> MixedHMMState:
        """The state after one sweep."""
        symbols = self.draw(rng, state)
        initial = self.initial(rng, symbols[self.data.offsets[:-1]])
        taken, reached = self._tried(symbols)
        w, x = state.weights.copy(), state.hyperparameters.copy()
        with one_blas_thread():
            for s, (cells, family, base) in enumerate(self._of_stick):
                if not self._is_free[s]:
                    x[s], w[s] = self._terms.family.sample(rng)
                    continue
                rows = LogisticSite(taken[cells, s], reached[cells, s])
                target, is_far = Target(family, rows, base), base.spread > _NEAR
                point = Point.of(x[s], w[s], target)
                if is_far or rng.random() < _WOVEN_NEAR:
                    point = interweave(rng, point, target)
                point = reflect(rng, point, target)
                if is_far or rng.random() < _SWUNG_NEAR:
                    point = swing(rng, point, target, _KICKS if is_far else 1)
                x[s], w[s] = point.x, point.w
        return self.model.state_at(initial, w, x, self.data)


class InterceptSampler(_StickSampler):
    """The sampler where an intercept of each individual is all that is pooled."""

    def __init__(self, model: MixedMarkovChain, data: Sequences):
        super().__init__(model, data)
        sticks = range(len(self._terms.shifts))
        self._sticks = [Intercepts(self.predictor(s, slice(None))) for s in sticks]
        self._breaks = np.argsort(self._terms.sticks.order, axis=1)
        self._individual = self._sticks[0].individuals[self._inputs.which]
        ways: Any = self._all_ways()
        self._ways = ways
        if ways is not None:
            self._different = self._patterns(ways.way, len(ways.first), ways.step, ways.symbols)
        with one_blas_thread():
            self._near = self._distributions()

    def _distributions(self) -> list[Leaning]:
        """Distributions near those of each stick: of what is observed, then of all ways."""
        both = zip(self._sticks, self._of_symbols(self.symbols), strict=True)
        near = [stick.distribution(patterns, patterns.copies.dot) for stick, patterns in both]
        if self._ways is None or not self.is_drawn.any():
            return near
        alike = np.full(self.model.num_states, 1.0 / self.model.num_states)
        for _ in range(_ROUNDS):
            points = [stick.at(near[s], 0.0 * near[s].mean) for s, stick in enumerate(self._sticks)]
            integrals = self._integrals(*zip(*points, strict=True))
            for s, stick in enumerate(self._sticks):
                target = self._log_likelihood(s, alike, integrals)
                near[s] = stick.distribution(self._different[s], target)
        return near

    def _of_symbols(self, symbols: IntArray) -> list[Patterns]:
        """The different individuals with these symbols of all steps."""
        step = self.transitions(symbols)
        pairs = np.stack([symbols[step - 1], symbols[step]])
        return self._patterns(self._individual[step], self._sticks[0].num_levels, step, pairs)

    def _patterns(
        self, individuals: IntArray, num: int, step: IntArray, pairs: IntArray
    ) -> list[Patterns]:
        """The different ones among so many individuals, for each stick, by their transitions."""
        patterns, depth = list[Patterns](), self._breaks[pairs[0], pairs[1]]
        cells = self._inputs.which[step]
        for s, stick in enumerate(self._sticks):
            origin, place = divmod(s, self.model.num_states - 1)
            reached = (pairs[0] == origin) & (depth >= place)
            taken = reached & (depth == place)
            patterns.append(stick.patterns(individuals, num, cells, taken, reached))
        return patterns

    def _all_ways(self) -> "_Ways | None":
        """All ways to fill missing symbols in, if individuals have a sequence each, and few."""
        of_sequence = self._individual[self.data.offsets[:-1]]
        is_one = np.repeat(of_sequence, self.data.lengths) == self._individual
        every = np.arange(self._sticks[0].num_levels)
        if not is_one.all() or not np.array_equal(np.sort(of_sequence), every):
            return None
        return _Ways.of(self)

    def _start(self, rng: Generator, s: int) -> tuple[FloatArray, FloatArray]:
        """A draw from the distribution near that of what is observed."""
        return self._sticks[s].at(self._near[s], rng.standard_normal(len(self._near[s].mean)))

    def step(self, rng: Generator, state: MixedHMMState) -> MixedHMMState:
        """The state after one sweep."""
        x, w = state.hyperparameters.copy(), state.weights.copy()
        with one_blas_thread():
            if self._ways is None:
                symbols = self.draw(rng, state)
                first, patterns = symbols[self.data.offsets[:-1]], self._of_symbols(symbols)
                like = [alike.which for alike in patterns]
                for s in np.flatnonzero(self._is_free).tolist():
                    around = self._near[s], patterns[s], patterns[s].copies.dot
                    x[s], w[s] = self._sticks[s].step(rng, x[s], w[s], *around)
            else:
                patterns = self._different
                chosen = self._move(rng, state.initial, x, w)
                first = self._ways.first[chosen]
                by_level = chosen[np.argsort(self._individual[self.data.offsets[:-1]])]
                like = [alike.which[by_level] for alike in patterns]
            for s, stick in enumerate(self._sticks):
                if not self._is_free[s]:
                    x[s], w[s] = self._terms.family.sample(rng)
                    continue
                w[s] = stick.with_intercepts(rng, x[s], w[s], patterns[s], like[s])
        return self.model.state_at(self.initial(rng, first), w, x, self.data)

    def _move(self, rng: Generator, initial: FloatArray, x: FloatArray, w: FloatArray) -> IntArray:
        """Move hyperparameters and weights, in place, and return a way of each sequence then."""
        integrals = self._integrals([*x], [*w])
        for s in np.flatnonzero(self._is_free).tolist():
            stick, patterns = self._sticks[s], self._different[s]
            target = self._log_likelihood(s, initial, integrals)
            x[s], w[s] = stick.step(rng, x[s], w[s], self._near[s], patterns, target)
            integrals[s] = stick.log_integrals(x[s], w[s], patterns)[patterns.which]
        log_p = self._ways.log_first(initial) + integrals.sum(axis=0)
        return np.asarray(self._ways.choose(rng, log_p))

    def _integrals(self, x: Sequence[FloatArray], w: Sequence[FloatArray]) -> FloatArray:
        """Log integrals of each stick and way, ``(num_sticks, num_ways)``."""
        both = enumerate(zip(self._sticks, self._different, strict=True))
        return np.array([one.log_integrals(x[s], w[s], p)[p.which] for s, (one, p) in both])

    def _log_likelihood(
        self, s: int, initial: FloatArray, integrals: FloatArray
    ) -> Callable[[FloatArray], float]:
        """The log likelihood by the integrals of a stick, ways summed out, given other sticks."""
        ways, which = self._ways, self._different[s].which
        others = ways.log_first(initial) + integrals.sum(axis=0) - integrals[s]
        return lambda of_stick: ways.log_sums(others + of_stick[which])


class _Ways(NamedTuple):
    """All ways in which the missing symbols of sequences may be filled in.

    Attributes
    ----------
    way, step : int arrays, ``(num_transitions,)``
        The way that each transition is part of, and the step that it leads to.
    symbols : int array, ``(2, num_transitions)``
        From which symbol, and to which.
    first : int array, ``(num_ways,)``
        The first symbol, -1 for none.
    offsets : int array, ``(num_sequences + 1,)``
        The ways of each sequence.
    """

    way: IntArray
    step: IntArray
    symbols: IntArray
    first: IntArray
    offsets: IntArray

    @classmethod
    def of(cls, chains: _StickSampler) -> "_Ways | None":
        """The ways of all sequences; None if they are many."""
        data, size, is_drawn = chains.data, chains.model.num_states, chains.is_drawn
        before = np.append(0, np.cumsum(is_drawn))
        gaps = np.diff(before[data.offsets])
        if (data.lengths * float(size) ** gaps).sum() > _MOST_WAYS:
            return None
        number = size**gaps
        offsets = np.append(0, np.cumsum(number))
        sequence = np.repeat(np.arange(data.num_sequences), number)
        length = data.lengths[sequence]
        begin = np.append(0, np.cumsum(length))
        way = np.repeat(np.arange(len(sequence)), length)
        step = np.arange(begin[-1]) - np.repeat(begin[:-1] - data.offsets[sequence], length)
        rank = before[step] - before[data.offsets[sequence]][way]
        digit = (way - offsets[sequence][way]) // size**rank % size
        symbols = np.where(is_drawn[step], digit, chains.symbols[step])
        pairs = np.stack([np.roll(symbols, 1), symbols])
        at = np.flatnonzero(data.follows[step] & (pairs >= 0).all(axis=0))
        return cls(way[at], step[at], pairs[:, at], symbols[begin[:-1]], offsets)

    def log_first(self, initial: FloatArray) -> FloatArray:
        """Log probability of the first symbol of each way."""
        return np.asarray(np.log(np.append(initial, 1.0))[self.first])

    def log_sums(self, log_weights: FloatArray) -> float:
        """The sum over sequences of the log of the sum over ways, from log weights of all ways."""
        first = self.offsets[:-1]
        top = np.maximum.reduceat(log_weights, first)
        weights = np.exp(log_weights - np.repeat(top, np.diff(self.offsets)))
        return float((top + np.log(np.add.reduceat(weights, first))).sum())

    def choose(self, rng: Generator, log_weights: FloatArray) -> IntArray:
        """A way of each sequence, by log weights of all, ``(num_sequences,)``."""
        first, count = self.offsets[:-1], np.diff(self.offsets)
        top = np.repeat(np.maximum.reduceat(log_weights, first), count)
        running = np.append(0.0, np.cumsum(np.exp(log_weights - top)))
        low, high = running[first], running[self.offsets[1:]]
        at = np.searchsorted(running, low + rng.random(len(first)) * (high - low), side="right")
        return np.asarray(np.clip(at - 1, first, self.offsets[1:] - 1))

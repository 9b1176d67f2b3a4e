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
inputs: of n_tik transitions from i into step t that reach stick k, some take it. Where an intercept
of each individual is all that is pooled, these are integrated out
(`pgmult.sequences.updates.intercepts`). Otherwise an approximation is found once for each stick,
from the steps whose symbol and the one before are observed (`pgmult.latent.approximation`), and
the moves of `pgmult.latent.moves` go around it. Either leaves the posterior as it is whatever it
goes around. A sweep:

1. missing symbols before the last observation | transitions, observed ones
2. first symbols | all of them                      Dirichlet
3. weights and hyperparameters | all symbols        stick by stick

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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgmult.core.blas import one_blas_thread
from pgmult.core.sweeps import Sampled
from pgmult.core.typing import BoolArray, FloatArray, IntArray
from pgmult.latent.additive import Additive
from pgmult.latent.approximation import Approximation, approximate, hyperparameters_near
from pgmult.latent.moves import Point, Target, interweave, reflect, swing
from pgmult.sequences.data.sequences import Sequences
from pgmult.sequences.models.hmm import MultinomialHMMState, sample_paths
from pgmult.sequences.models.mixed_hmm import MixedHMM, MixedHMMState
from pgmult.sequences.updates.intercepts import Intercepts
from pgmult.variational.sites import LogisticSite

_NOTHING = np.empty(0)
_NEAR = 0.15  # spread up to which reflected leaps alone nearly do, and they are cheap
_WOVEN_NEAR, _SWUNG_NEAR = 0.2, 0.5  # of the sweeps, all where it is farther
_KICKS = 3


@dataclass(frozen=True, slots=True, eq=False)
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
    label_dims: ClassVar[frozenset[str]] = frozenset()
    label_rows: ClassVar[Mapping[str, str]] = {}

    def _complete(self) -> None:
        MixedHMM._complete(self)
        if self.inputs != "transitions":
            raise ValueError(f"inputs act on transitions of a Markov chain, got {self.inputs!r}")

    def as_data(self, data: Any) -> Sequences:
        """`as_sequences`, with inputs and at most one observation a step.

        Raises
        ------
        ValueError
            If there are other symbols, several observations of a step, or no inputs.
        """
        sequences = MixedHMM.as_data(self, data)
        if sequences.num_symbols != self.num_states:
            raise ValueError(
                f"num_states must be the number of symbols, {sequences.num_symbols}, got"
                f" {self.num_states}"
            )
        if (sequences.totals > 1).any():
            step = int(np.argmax(sequences.totals > 1))
            raise ValueError(
                f"a Markov chain has one symbol a step, got {sequences.totals[step]} at step"
                f" {step + 1} (MixedHMM takes several)"
            )
        return sequences

    def coords(self, data: Sequences) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """Symbols, which are the states, and sticks by their names."""
        symbols = np.arange(data.num_symbols) if data.alphabet is None else data.alphabet
        rows = self.sticks(data.order)[1].order
        sticks = [f"{symbols[row[0]]} to {symbols[j]}" for row in rows for j in row[:-1]]
        states = {"hidden_state": symbols, "next_hidden_state": symbols, "stick": sticks}
        return {**MixedHMM.coords(self, data), **states}

    def prior(self, rng: np.random.Generator, data: Sequences) -> MixedHMMState:
        """A state from the prior."""
        state = MixedHMM.prior(self, rng, data)
        return self.state_at(state.initial, state.weights, state.hyperparameters, data)

    def state_at(
        self, initial: FloatArray, w: FloatArray, x: FloatArray, data: Sequences
    ) -> MixedHMMState:
        """The state with these weights and hyperparameters; transitions are averages over steps."""
        symbols, alike = np.eye(self.num_states), np.ones((self.num_states, self.num_states))
        rows = MultinomialHMMState(initial, alike, symbols, 1.0, 0.0, 1.0)
        return self.whole(rows, w, x, _NOTHING, data)

    def step_probs(
        self, draw: Mapping[str, FloatArray], data: Sequences, *, filtered: bool = False
    ) -> FloatArray:
        """Probabilities of every step, ``(num_steps, num_symbols)``.

        They are given all others where the symbol is missing, and those before it elsewhere;
        `filtered`, given those before it alone.
        """
        probs = MixedHMM.step_probs(self, draw, data, filtered=True)
        missing = np.diff(data.indptr) == 0
        if not filtered and missing.any():
            probs[missing] = MixedHMM.step_probs(self, draw, data)[missing]
        return probs

    def sampler(self, data: Sequences) -> "TransitionSampler":
        """Return how chains of a data set move."""
        return TransitionSampler(self, data)


class _Stick(NamedTuple):
    """What moves the weights of a stick.

    Attributes
    ----------
    cells : int array
        Rows of inputs at which it can be reached.
    moves : Approximated or Intercepts
    """

    cells: IntArray
    moves: "Approximated | Intercepts"


class Approximated(NamedTuple):
    """Moves of a predictor around an approximation of the first data."""

    family: Additive
    base: Approximation

    def start(self, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """A draw from the approximation."""
        x = hyperparameters_near(rng, self.family, self.base.guess)
        return x, self.family.at(x, self.base.absorbed).sample(rng)

    def step(
        self, rng: np.random.Generator, x: FloatArray, w: FloatArray, rows: LogisticSite
    ) -> tuple[FloatArray, FloatArray]:
        """Hyperparameters and weights after a sweep."""
        target = Target(self.family, rows, self.base)
        point = Point.of(x, w, target)
        is_far = self.base.spread > _NEAR
        if is_far or rng.random() < _WOVEN_NEAR:
            point = interweave(rng, point, target)
        point = reflect(rng, point, target)
        if is_far or rng.random() < _SWUNG_NEAR:
            point = swing(rng, point, target, _KICKS if is_far else 1)
        return point.x, point.w


class TransitionSampler:
    """The sampler of a Markov chain of symbols with inputs.

    Parameters
    ----------
    model : MixedMarkovChain
    data : Sequences
    """

    def __init__(self, model: MixedMarkovChain, data: Sequences):
        self.model, self.data, self._inputs = model, data, model.seen(data.design)
        (self._sticks,) = model.sticks(data.order)[1:2]
        self._symbols = np.full(data.num_steps, -1)
        self._symbols[np.diff(data.indptr) > 0] = data.symbols
        self._follows = data.follows
        observed = np.append(0, np.cumsum(self._symbols >= 0))
        self._is_over = observed[1:] == np.repeat(observed[data.offsets[1:]], data.lengths)
        self._is_over &= self._symbols < 0
        missing, which = (self._symbols < 0) & ~self._is_over, self._inputs.which
        self._has_gaps = missing.any()
        beside = missing | np.append(False, missing[:-1])
        open_steps = beside & self._follows & ~self._is_over
        is_open = np.bincount(which[open_steps], minlength=len(self._inputs.share)) > 0
        self._of_stick = self._approximations(is_open)

    def _approximations(self, is_open: BoolArray) -> list[_Stick]:
        """What moves the weights of each stick, at open cells and those where it was reached."""
        family, moving = self._inputs.parts[0].latent.family, list[_Stick]()
        taken, reached = self._tried(self._symbols)
        with one_blas_thread():
            for s, shift in enumerate(self.model.shifts(self.data.num_symbols)[0]):
                cells = np.flatnonzero((reached[:, s] > 0.0) | is_open)
                offset = family.offset[cells] + shift
                predictor = Additive(family.terms, family.design[cells], offset)
                rows = LogisticSite(taken[cells, s], reached[cells, s])
                if Intercepts.takes(predictor):
                    moving.append(_Stick(cells, Intercepts(predictor, rows)))
                else:
                    base = approximate(predictor, rows)
                    moving.append(_Stick(cells, Approximated(predictor, base)))
        return moving

    def _tried(self, symbols: IntArray) -> tuple[FloatArray, FloatArray]:
        """How often each stick was taken and reached, ``(num_cells, num_sticks)`` each."""
        M, size = self.model.num_states, len(self._inputs.share)
        step = np.flatnonzero(self._follows & (symbols >= 0) & (np.roll(symbols, 1) >= 0))
        place = (self._inputs.which[step] * M + symbols[step - 1]) * M + symbols[step]
        counts = np.bincount(place, minlength=size * M * M).astype(np.float64)
        taken, reached = self._sticks.tried(counts.reshape(size, M, M))
        return taken.reshape(size, -1), reached.reshape(size, -1)

    def init(self, rng: np.random.Generator) -> MixedHMMState:
        """A draw from the approximations, and a sweep."""
        terms, M = self._inputs.parts[0], self.model.num_states
        x, w = self._inputs.start(self.model.shifts(self.data.num_symbols))
        with one_blas_thread():
            for s, stick in enumerate(self._of_stick):
                x[s, terms.x], w[s, terms.w] = stick.moves.start(rng)
        return self.step(rng, self.model.state_at(np.full(M, 1.0 / M), w, x, self.data))

    def step(self, rng: np.random.Generator, state: MixedHMMState) -> MixedHMMState:
        """The state after one sweep."""
        model, terms, symbols = self.model, self._inputs.parts[0], self._symbols
        if self._has_gaps:
            paths = sample_paths(rng, model.chains(state, self.data))
            symbols = np.where(self._is_over, -1, paths)
        first = symbols[self.data.offsets[:-1]]
        counts = np.bincount(first[first >= 0], minlength=model.num_states)
        initial = rng.dirichlet(model.initial_concentration + counts)
        taken, reached = self._tried(symbols)
        w, x = state.weights.copy(), state.hyperparameters.copy()
        with one_blas_thread():
            for s, (cells, moves) in enumerate(self._of_stick):
                rows = LogisticSite(taken[cells, s], reached[cells, s])
                x[s, terms.x], w[s, terms.w] = moves.step(rng, x[s, terms.x], w[s, terms.w], rows)
        return model.state_at(initial, w, x, self.data)

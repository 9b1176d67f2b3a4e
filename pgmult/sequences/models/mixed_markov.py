r"""Markov chains of symbols whose transitions depend on inputs and individuals.

The question that multi-state models of panels answer (Kalbfleisch and Lawless 1985, "The analysis
of panel data under a Markov assumption"; Muenz and Rubinstein 1985, "Markov models for covariate
dependence of binary sequences"). Rows of transitions are multinomial logits, broken as sticks, the
first of which is to stay::

    first symbol  ~  Dirichlet rows of the initial concentration
    P(j | i, t)   =  sticks(psi_it),    psi_itk = (A w_ik)_t + c_k       into step t, from symbol i
    w             ~  N(0, Q(x)^-1),     x: half-t standard deviations, LKJ(2) correlations

A step without an observation has a symbol that is summed out: transitions across a gap are products
of the steps' matrices. `pgmult.sequences.updates.transition_moves` samples them.

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
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pgmult.core.sweeps import Sampled
from pgmult.core.typing import FloatArray
from pgmult.sequences.data.sequences import Sequences
from pgmult.sequences.models.hmm import MultinomialHMMState
from pgmult.sequences.models.mixed_hmm import MixedHMM, MixedHMMState
from pgmult.sequences.updates.transition_moves import TransitionSampler

_NOTHING = np.empty(0)


@dataclass(frozen=True, slots=True, eq=False)
class MixedMarkovChain(Sampled[Sequences, MixedHMMState], MixedHMM):  # type: ignore[misc]
    """Markov chain of symbols whose transitions depend on inputs and individuals.

    Parameters
    ----------
    num_states : int
        Number of symbols.
    initial_concentration : float
        Dirichlet concentration of each symbol at the first step.
    priors : mapping from term to law, optional
        As in `pgmult.regression.AdditiveRegression`.
    ...
        Other parameters of `MixedHMM` play no part.

    Notes
    -----
    Each of the K (K - 1) sticks takes some factorisations of a matrix of the weights' size a sweep
    (by Schur complement for the largest grouping).
    """

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

    def sampler(self, data: Sequences) -> TransitionSampler:
        """Return how chains of a data set move."""
        return TransitionSampler(self, data)

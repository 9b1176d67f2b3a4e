r"""Linear dynamical systems of symbols and counts under the softmax, by particle Gibbs (LNM-LDS).

The baseline of `MultinomialLDS`, with the softmax in the place of stick breaking and otherwise the
same priors and data (Linderman, Johnson and Adams 2015, section 5). With inputs u_t, where there
are any::

    (A, B)', Q   ~  matrix-normal inverse-Wishart                       dynamics
    x_first      ~  N(m, V),  (m, V) ~ NIW                              every sequence's first state
    x_t          ~  N(A x_{t-1} + B u_t, Q)
    v_d          ~  IG(loading_shape, loading_scale),     d = 1..D
    c_kd         ~  N(0, v_d),                            k = 1..K      loadings
    e_k          ~  N(0, emission_var I)                                emission weights
    b_k          ~  N(0, offset_var)                                    offset
    counts_t     ~  Multinomial(total_t, softmax(b + E u_t + C x_t))

No augmentation makes the softmax Gaussian in x_t. A sweep:

1. x | C, E, b, the rest    particle Gibbs with ancestor sampling, block by block
2. C, E, b | x, v           row by row, a slice update around each row's mode
3. v | C                    inverse gamma
4. A, B, Q | x              matrix-normal inverse-Wishart; m, V | x normal-inverse-Wishart

*Identification.* All K rows of C, E and b are free: a vector added to all of them changes no
probability, and moves as the prior says (see `pgmult.sequences.updates.softmax_loadings`). The
basis of the states is not identified either. Look at probabilities, `eigenvalue_moduli`, the log
likelihood; and at `moved`, the share of steps at which the last sweep's path is new, to judge
`num_particles`.

>>> import numpy as np, pgmult
>>> data = pgmult.sequences.as_sequences(["ABABABAB", "BABABA"])
>>> posterior = pgmult.sample(
...     pgmult.sequences.LogisticNormalLDS(state_dim=2, num_particles=10), data,
...     draws=10, tune=10, chains=1, random_seed=0, progressbar=False,
... )
>>> posterior["last_probs"].shape
(1, 10, 2, 2)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np

from pgmult.core.arguments import as_repeats
from pgmult.core.parameters import Positive
from pgmult.core.typing import FloatArray, IntArray
from pgmult.links import LogisticNormal
from pgmult.priors.matrix_normal import linear_means
from pgmult.sequences.data.sequences import Sequences
from pgmult.sequences.models._state_space import (
    START_SWEEPS,
    StateSpace,
    StateSpaceState,
    state_space_dims,
)
from pgmult.sequences.updates.dynamics import sample_dynamics, sample_initial
from pgmult.sequences.updates.particle_gibbs import sample_paths
from pgmult.sequences.updates.softmax_loadings import sample_softmax_rows


@dataclass(frozen=True, slots=True, eq=False)
class LogisticNormalLDSState(StateSpaceState):
    """One point of the chain: a `StateSpaceState`, and how far its states moved.

    Attributes
    ----------
    moved : array, ``(num_sequences,)``
        The share of each sequence's steps at which the last sweep's path left the one before.
    """

    moved: Annotated[FloatArray, "sequence"]


@dataclass(frozen=True, slots=True, eq=False)
class LogisticNormalLDS(StateSpace):
    """Linear dynamical system seen through a softmax, sampled by particle Gibbs.

    Parameters
    ----------
    state_dim : int
        D >= 1.
    num_particles : int
        Of particle Gibbs, >= 2, the present path included.
    dynamics : MatrixNormalInverseWishart, optional
        Prior of (A, B)' and Q. By default A is around I / 2 with the weight of four steps, an
        input's weights have that of one, and E[Q] = I.
    start : NormalInverseWishart, optional
        Prior of m and V; by default `NormalInverseWishart.weak` at 0.
    loading_shape, loading_scale : float
        Inverse-gamma prior of the variance of each column of the loadings.
    emission_var : float
        Prior variance of emission weights: give inputs a standard deviation of about 1.
    offset_var : float
        Prior variance of each symbol's offset.

    Notes
    -----
    A sweep costs O(T K (D N + (D + U)**2)) for N particles, T steps, K symbols and U inputs, and
    memory is O(T (D + K / 32) + K (D + U)) besides the data.
    """

    num_particles: Annotated[int, partial(as_repeats, minimum=2)] = 10
    loading_scale: Positive = 0.2
    offset_var: Positive = 4.0

    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **state_space_dims("symbol"),
        "moved": ("sequence",),
    }
    default_keep: ClassVar[tuple[str, ...]] = (*StateSpace.default_keep, "moved")

    def link(self, data: Any = None) -> LogisticNormal:
        """The link from psi to probabilities."""
        return LogisticNormal()

    def prior(self, rng: np.random.Generator, data: Sequences) -> LogisticNormalLDSState:
        """A state from the prior."""
        D, K = self.state_dim, data.num_symbols
        loading_var = self.loading_scale / rng.gamma(self.loading_shape, size=D)
        precision = self._precision(loading_var, data)
        weights = rng.standard_normal((K, len(precision))) / np.sqrt(precision)
        coefficients, noise_cov = self.dynamics_prior(data).sample(rng)
        transition, input_weights = coefficients[:D].T.copy(), coefficients[D:].T.copy()
        initial_mean, initial_cov = self.gaussian_prior.sample(rng)
        dynamics = transition, input_weights, noise_cov, initial_mean, initial_cov
        return LogisticNormalLDSState(
            self._law_of(data, *dynamics).sample(rng), *dynamics, *self._split(weights),
            loading_var, np.zeros(data.num_sequences),
        )  # fmt: skip

    def init(self, rng: np.random.Generator, data: Sequences) -> LogisticNormalLDSState:
        """A start from spectral states and the weights and dynamics that go with them."""
        states, design, weights, loading_var = self._start(rng, data)
        for _ in range(START_SWEEPS):
            weights, loading_var = self._sample_weights(rng, weights, design, loading_var, data)
        return self._state(rng, states, weights, loading_var, np.zeros(data.num_sequences), data)

    def step(
        self, rng: np.random.Generator, state: LogisticNormalLDSState, data: Sequences
    ) -> LogisticNormalLDSState:
        """One sweep over all blocks."""
        parameters = {name: getattr(state, name) for name in self.predictive_variables}
        draw = self.state_space(parameters, self.link(data))
        states, moved = sample_paths(rng, draw, data, state.states, self.num_particles)
        weights = np.concatenate(
            [state.loadings, state.emission_weights, state.offset[:, None]], axis=1
        )
        weights, loading_var = self._sample_weights(
            rng, weights, self.design(states, data), state.loading_var, data
        )
        return self._state(rng, states, weights, loading_var, moved, data)

    def log_likelihood(self, state: LogisticNormalLDSState, data: Sequences) -> float:
        """Log probability of the observations *given the states*, not of predictions.

        For that, score `pgmult.sequences.one_step_ahead` on sequences held out.
        """
        psi = self._psi(state, data)
        steps = np.repeat(np.arange(data.num_steps), np.diff(data.indptr))
        log_probs = self.link(data).log_probs(psi)[steps, data.symbols]
        return float((data.counts * log_probs).sum())

    def _seen_loadings(self, state: StateSpaceState) -> FloatArray:
        """C less the mean of its rows, which moves no probability."""
        return np.asarray(state.loadings - state.loadings.mean(axis=0))

    def _precision(self, loading_var: FloatArray, data: Sequences) -> FloatArray:
        """Of the prior of a row of (C, E, b)."""
        emission = np.full(data.num_inputs, self.emission_var)
        return np.asarray(1.0 / np.concatenate([loading_var, emission, [self.offset_var]]))

    def _split(self, weights: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        D = self.state_dim
        return weights[:, :D].copy(), weights[:, D:-1].copy(), weights[:, -1].copy()

    def _psi(
        self, state: StateSpaceState, data: Sequences, steps: IntArray | slice = slice(None)
    ) -> FloatArray:
        psi = state.offset + linear_means(state.states[steps], state.loadings.T)
        if data.inputs is not None:
            psi += linear_means(data.inputs[steps], state.emission_weights.T)
        return psi

    def _sample_weights(
        self,
        rng: np.random.Generator,
        weights: FloatArray,
        design: FloatArray,
        loading_var: FloatArray,
        data: Sequences,
    ) -> tuple[FloatArray, FloatArray]:
        """Loadings, emission weights and offset, side by side, and the loadings' variances."""
        weights = sample_softmax_rows(
            rng, data, design, weights, self._precision(loading_var, data)
        )
        return weights, self.sample_loading_var(rng, weights)

    def _state(
        self,
        rng: np.random.Generator,
        states: FloatArray,
        weights: FloatArray,
        loading_var: FloatArray,
        moved: FloatArray,
        data: Sequences,
    ) -> LogisticNormalLDSState:
        """Draw what the states alone determine: dynamics, and the law of first states."""
        transition, input_weights, noise_cov = sample_dynamics(
            rng, self.dynamics_prior(data), states, data.offsets, data.inputs
        )
        initial_mean, initial_cov = sample_initial(rng, self.gaussian_prior, states, data.offsets)
        return LogisticNormalLDSState(
            states, transition, input_weights, noise_cov, initial_mean, initial_cov,
            *self._split(weights), loading_var, moved,
        )  # fmt: skip

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
probability, and moves as the prior says (see `pgmult.sequences.updates.softmax_loadings`). Neither
do the data tell the states from their image under a change of basis. Look at probabilities,
`eigenvalue_moduli`, the log likelihood; and at `moved`, the share of steps at which the last
sweep's path is new, to judge `num_particles`.

>>> import numpy as np, pgmult
>>> data = pgmult.sequences.as_sequences(["ABABABAB", "BABABA"])
>>> posterior = pgmult.sample(
...     pgmult.sequences.LogisticNormalLDS(state_dim=2, num_particles=10), data,
...     draws=10, tune=10, chains=1, random_seed=0, progressbar=False,
... )
>>> posterior["last_probs"].shape
(1, 10, 2, 2)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pgmult.core.typing import FloatArray
from pgmult.core.validate import as_positive, as_positive_int
from pgmult.links import LogisticNormal
from pgmult.priors import MatrixNormalInverseWishart, NormalInverseWishart
from pgmult.priors.matrix_normal import linear_means
from pgmult.sequences.data.sequences import Sequences, as_sequences, simulate_symbols
from pgmult.sequences.priors.dynamics import LinearDynamics, input_drive
from pgmult.sequences.priors.state_space import StateSpaceDraw
from pgmult.sequences.updates.dynamics import sample_dynamics, sample_initial
from pgmult.sequences.updates.loadings import sample_loading_var
from pgmult.sequences.updates.particle_gibbs import sample_paths
from pgmult.sequences.updates.softmax_loadings import sample_softmax_rows
from pgmult.sequences.updates.spectral_start import spectral_states

__all__ = ["LogisticNormalLDS", "LogisticNormalLDSState"]

_START_SWEEPS = 3  # of the weights given the states that a chain starts from
_START_CONCENTRATION = 0.5  # added to counts of symbols where the offset starts


@dataclass(frozen=True, slots=True, eq=False)
class LogisticNormalLDSState:
    """One point of the chain.

    Attributes
    ----------
    states : array, ``(num_steps, state_dim)``
        x.
    transition : array, ``(state_dim, state_dim)``
        A.
    input_weights : array, ``(state_dim, num_inputs)``
        B.
    noise_cov : array, ``(state_dim, state_dim)``
        Q.
    initial_mean : array, ``(state_dim,)``
    initial_cov : array, ``(state_dim, state_dim)``
        Of first states: m and V.
    loadings : array, ``(num_symbols, state_dim)``
        C.
    emission_weights : array, ``(num_symbols, num_inputs)``
        E.
    offset : array, ``(num_symbols,)``
        b.
    loading_var : array, ``(state_dim,)``
        v.
    moved : array, ``(num_sequences,)``
        The share of each sequence's steps at which the last sweep's path left the one before.
    """

    states: FloatArray
    transition: FloatArray
    input_weights: FloatArray
    noise_cov: FloatArray
    initial_mean: FloatArray
    initial_cov: FloatArray
    loadings: FloatArray
    emission_weights: FloatArray
    offset: FloatArray
    loading_var: FloatArray
    moved: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class LogisticNormalLDS:
    """Linear dynamical system seen through a softmax, sampled by particle Gibbs.

    Parameters
    ----------
    state_dim : int
        D >= 1.
    num_particles : int
        Of particle Gibbs, >= 2, the present path included.
    dynamics : MatrixNormalInverseWishart, optional
        Prior of (A, B)' and Q. By default A is around I / 2 with the weight of 4 D steps, so that
        most dynamics are stable, an input's weights have the weight of one, and E[Q] = I.
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

    state_dim: int = 10
    num_particles: int = 10
    dynamics: MatrixNormalInverseWishart | None = None
    start: NormalInverseWishart | None = None
    loading_shape: float = 2.0
    loading_scale: float = 0.2
    emission_var: float = 1.0
    offset_var: float = 4.0

    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "states": ("step", "state"),
        "transition": ("state", "other_state"),
        "input_weights": ("state", "input"),
        "noise_cov": ("state", "other_state"),
        "initial_mean": ("state",),
        "initial_cov": ("state", "other_state"),
        "loadings": ("symbol", "state"),
        "emission_weights": ("symbol", "input"),
        "offset": ("symbol",),
        "loading_var": ("state",),
        "moved": ("sequence",),
        "last_states": ("sequence", "state"),
        "last_probs": ("sequence", "symbol"),
        "mean_probs": ("symbol",),
        "probs": ("step", "symbol"),
        "eigenvalue_moduli": ("mode",),
    }
    default_keep: ClassVar[tuple[str, ...]] = (
        "transition", "input_weights", "noise_cov", "initial_mean", "initial_cov", "loadings",
        "emission_weights", "offset", "moved", "last_states", "last_probs", "eigenvalue_moduli",
    )  # fmt: skip
    label_dims: ClassVar[frozenset[str]] = frozenset({"state", "other_state"})

    def __post_init__(self) -> None:
        D = as_positive_int(self.state_dim, "state_dim")
        as_positive_int(self.num_particles, "num_particles", minimum=2)
        for name in ("loading_shape", "loading_scale", "emission_var", "offset_var"):
            as_positive(getattr(self, name), name)
        if self.dynamics is not None and self.dynamics.mean.shape[1] != D:
            raise ValueError(
                f"dynamics must be of {D} dimensions, got {self.dynamics.mean.shape[1]}"
            )
        if self.start is None:
            object.__setattr__(self, "start", NormalInverseWishart.weak(np.zeros(D)))
        elif len(self.start.mean) != D:
            raise ValueError(f"start must have {D} dimensions, got {len(self.start.mean)}")

    def as_data(self, data: Any) -> Sequences:
        """`Sequences`, from what `as_sequences` takes."""
        sequences = as_sequences(data)
        rows = self.state_dim + sequences.num_inputs
        if self.dynamics is not None and len(self.dynamics.mean) != rows:
            raise ValueError(
                f"dynamics must have a row for each of {self.state_dim} states and"
                f" {sequences.num_inputs} inputs, got {len(self.dynamics.mean)}"
            )
        return sequences

    def coords(self, data: Sequences) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """Symbols and sequences by name where the data have names."""
        labels = {"symbol": data.alphabet, "sequence": data.names}
        return {dim: names for dim, names in labels.items() if names is not None}

    def link(self, data: Any = None) -> LogisticNormal:
        """The link from psi to probabilities."""
        return LogisticNormal()

    def prior(self, rng: np.random.Generator, data: Sequences) -> LogisticNormalLDSState:
        """A state from the prior."""
        D, K = self.state_dim, data.num_symbols
        loading_var = self.loading_scale / rng.gamma(self.loading_shape, size=D)
        precision = self._precision(loading_var, data)
        weights = rng.standard_normal((K, len(precision))) / np.sqrt(precision)
        coefficients, noise_cov = self._dynamics(data).sample(rng)
        transition, input_weights = coefficients[:D].T.copy(), coefficients[D:].T.copy()
        initial_mean, initial_cov = self._niw.sample(rng)
        drive = None
        if data.inputs is not None:
            drive = input_drive(data.inputs, input_weights, data.offsets)
        law = LinearDynamics(
            transition, noise_cov, initial_mean, initial_cov, data.offsets, drive=drive
        )
        return LogisticNormalLDSState(
            law.sample(rng), transition, input_weights, noise_cov, initial_mean, initial_cov,
            *self._split(weights), loading_var, np.zeros(data.num_sequences),
        )  # fmt: skip

    def simulate(
        self, rng: np.random.Generator, state: LogisticNormalLDSState, data: Sequences
    ) -> Sequences:
        """Sequences of the same lengths, totals and inputs."""
        return simulate_symbols(rng, self.probs(state, data), data)

    def init(self, rng: np.random.Generator, data: Sequences) -> LogisticNormalLDSState:
        """A start from spectral states and the weights and dynamics that go with them."""
        states = spectral_states(rng, data, self.state_dim)
        used = np.bincount(data.symbols, data.counts, minlength=data.num_symbols)
        smoothed = used + _START_CONCENTRATION
        design = self._design(states, data)
        weights = np.zeros((data.num_symbols, design.shape[1]))
        weights[:, -1] = self.link(data).inverse(smoothed / smoothed.sum())
        loading_var = np.full(self.state_dim, self.loading_scale / self.loading_shape)
        for _ in range(_START_SWEEPS):
            weights, loading_var = self._sample_weights(rng, weights, design, loading_var, data)
        return self._state(rng, states, weights, loading_var, np.zeros(data.num_sequences), data)

    def step(
        self, rng: np.random.Generator, state: LogisticNormalLDSState, data: Sequences
    ) -> LogisticNormalLDSState:
        """One sweep over all blocks."""
        states, moved = sample_paths(
            rng, self.state_space(state, data), data, state.states, self.num_particles
        )
        weights = np.concatenate(
            [state.loadings, state.emission_weights, state.offset[:, None]], axis=1
        )
        weights, loading_var = self._sample_weights(
            rng, weights, self._design(states, data), state.loading_var, data
        )
        return self._state(rng, states, weights, loading_var, moved, data)

    def log_likelihood(self, state: LogisticNormalLDSState, data: Sequences) -> float:
        """Log probability of the observations *given the states*: no measure of prediction.

        For that, score `pgmult.sequences.one_step_ahead` on sequences held out.
        """
        psi = self._psi(state, data)
        steps = np.repeat(np.arange(data.num_steps), np.diff(data.indptr))
        log_probs = self.link(data).log_probs(psi)[steps, data.symbols]
        return float((data.counts * log_probs).sum())

    def state_space(self, state: LogisticNormalLDSState, data: Sequences) -> StateSpaceDraw:
        """The parameters as particle methods take them."""
        return StateSpaceDraw(
            state.transition, state.noise_cov, state.initial_mean, state.initial_cov,
            state.loadings, state.offset, state.input_weights, state.emission_weights,
            link="softmax",
        )  # fmt: skip

    def probs(self, state: LogisticNormalLDSState, data: Sequences) -> FloatArray:
        """Probabilities of the symbols at every step, ``(num_steps, num_symbols)``."""
        return self.link(data).probs(self._psi(state, data))

    def mean_probs(self, state: LogisticNormalLDSState, data: Sequences) -> FloatArray:
        """Probabilities averaged over all steps, ``(num_symbols,)``."""
        return np.asarray(self.probs(state, data).mean(axis=0))

    def last_states(self, state: LogisticNormalLDSState, data: Sequences) -> FloatArray:
        """The states of each sequence's last step, ``(num_sequences, state_dim)``: forecasts."""
        return state.states[data.offsets[1:] - 1]

    def last_probs(self, state: LogisticNormalLDSState, data: Sequences) -> FloatArray:
        """Probabilities at each sequence's last step, ``(num_sequences, num_symbols)``."""
        return self.probs(state, data)[data.offsets[1:] - 1]

    def eigenvalue_moduli(self, state: LogisticNormalLDSState, data: Sequences) -> FloatArray:
        """Moduli of the transition's eigenvalues, largest first: what any basis agrees on."""
        return np.sort(np.abs(np.linalg.eigvals(state.transition)))[::-1]

    @property
    def _niw(self) -> NormalInverseWishart:
        assert self.start is not None  # set by __post_init__
        return self.start

    def _dynamics(self, data: Sequences) -> MatrixNormalInverseWishart:
        """The prior of (A, B)' and Q."""
        if self.dynamics is not None:
            return self.dynamics
        D, U = self.state_dim, data.num_inputs
        precision = np.diag(np.concatenate([np.full(D, 4.0 * D), np.ones(U)]))
        return MatrixNormalInverseWishart(0.5 * np.eye(D + U, D), precision, D + 2.0, np.eye(D))

    def _precision(self, loading_var: FloatArray, data: Sequences) -> FloatArray:
        """Of the prior of a row of (C, E, b)."""
        emission = np.full(data.num_inputs, self.emission_var)
        return np.asarray(1.0 / np.concatenate([loading_var, emission, [self.offset_var]]))

    def _design(self, states: FloatArray, data: Sequences) -> FloatArray:
        """What psi is linear in: states, inputs and 1."""
        inputs = np.zeros((data.num_steps, 0)) if data.inputs is None else data.inputs
        return np.concatenate([states, inputs, np.ones((data.num_steps, 1))], axis=1)

    def _split(self, weights: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        D = self.state_dim
        return weights[:, :D].copy(), weights[:, D:-1].copy(), weights[:, -1].copy()

    def _psi(self, state: LogisticNormalLDSState, data: Sequences) -> FloatArray:
        psi = state.offset + linear_means(state.states, state.loadings.T)
        if data.inputs is not None:
            psi += linear_means(data.inputs, state.emission_weights.T)
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
        loading_var = sample_loading_var(
            rng, weights[:, : self.state_dim], self.loading_shape, self.loading_scale
        )
        return weights, loading_var

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
            rng, self._dynamics(data), states, data.offsets, data.inputs
        )
        initial_mean, initial_cov = sample_initial(rng, self._niw, states, data.offsets)
        return LogisticNormalLDSState(
            states, transition, input_weights, noise_cov, initial_mean, initial_cov,
            *self._split(weights), loading_var, moved,
        )  # fmt: skip

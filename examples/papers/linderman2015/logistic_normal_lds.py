r"""Linear dynamical systems of symbols and counts under the softmax, by particle Gibbs (LNM-LDS).

The baseline of `pgmult.sequences.MultinomialLDS`, with the softmax in the place of stick breaking
and otherwise the same priors and data (Linderman, Johnson and Adams 2015, section 5)::

    A', Q        ~  matrix-normal inverse-Wishart, around I / 2         dynamics
    x_first      ~  N(m, V),  (m, V) ~ NIW                              every sequence's first state
    x_t          ~  N(A x_{t-1}, Q)
    v_d          ~  IG(loading_shape, loading_scale),     d = 1..D
    c_kd         ~  N(0, v_d),                            k = 1..K      loadings
    b_k          ~  N(0, offset_var)                                    offset
    counts_t     ~  Multinomial(total_t, softmax(b + C x_t))

No augmentation makes the softmax Gaussian in x_t. A sweep:

1. x | C, b, the rest       particle Gibbs with ancestor sampling, block by block
2. C, b | x, v              row by row, a slice update around each row's mode
3. v | C                    inverse gamma
4. A, Q | x                 matrix-normal inverse-Wishart; m, V | x normal-inverse-Wishart

*Identification.* All K rows of C and b are free: a vector added to all of them changes no
probability, and moves as the prior says (see `softmax_loadings`). The basis of the states is not
identified either. Look at probabilities, `eigenvalue_moduli`, the log likelihood; and at `moved`,
the share of steps at which the last sweep's path is new, to judge `num_particles`.

>>> import pgmult
>>> data = pgmult.sequences.as_sequences(["ABABABAB", "BABABA"])
>>> posterior = pgmult.sample(
...     LogisticNormalLDS(state_dim=2, num_particles=10), data,
...     draws=10, tune=10, chains=1, random_seed=0, progressbar=False,
... )
>>> posterior["last_probs"].shape
(1, 10, 2, 2)
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from examples.papers.linderman2015.dynamics import sample_dynamics, sample_initial
from examples.papers.linderman2015.particle_gibbs import sample_paths
from examples.papers.linderman2015.softmax_loadings import sample_softmax_rows
from pgmult.core.arguments import as_repeats
from pgmult.core.family import Family
from pgmult.core.parameters import Checked, Positive, axes_of
from pgmult.core.typing import FloatArray
from pgmult.links import LogisticNormal
from pgmult.priors import MatrixNormalInverseWishart, NormalInverseWishart
from pgmult.priors.gaussian import lower_cholesky
from pgmult.priors.matrix_normal import linear_means
from pgmult.sequences.data.sequences import Sequences, sequences_for, simulate_symbols
from pgmult.sequences.family import SEQUENCES
from pgmult.sequences.models.lds import as_state_dim
from pgmult.sequences.priors.dynamics import LinearDynamics
from pgmult.sequences.priors.state_space import StateSpaceDraw
from pgmult.sequences.updates.conjugate import sample_loading_var
from pgmult.sequences.updates.spectral_start import spectral_states

_FILTER_PARTICLES = 500
_START_SWEEPS = 3  # of the weights given the states that a chain starts from


@dataclass(frozen=True, slots=True, eq=False)
class LogisticNormalLDSState:
    """One point of the chain.

    Attributes
    ----------
    states : array, ``(num_steps, state_dim)``
        x.
    transition, noise_cov : arrays, ``(state_dim, state_dim)``
        A and Q.
    initial_mean, initial_cov : arrays, ``(state_dim,)`` and ``(state_dim, state_dim)``
        Of first states: m and V.
    loadings, offset : arrays, ``(num_symbols, state_dim)`` and ``(num_symbols,)``
        C and b.
    loading_var : array, ``(state_dim,)``
        v.
    moved : array, ``(num_sequences,)``
        The share of each sequence's steps at which the last sweep's path left the one before.
    """

    states: Annotated[FloatArray, "step", "state"]
    transition: Annotated[FloatArray, "state", "other_state"]
    noise_cov: Annotated[FloatArray, "state", "other_state"]
    initial_mean: Annotated[FloatArray, "state"]
    initial_cov: Annotated[FloatArray, "state", "other_state"]
    loadings: Annotated[FloatArray, "symbol", "state"]
    offset: Annotated[FloatArray, "symbol"]
    loading_var: Annotated[FloatArray, "state"]
    moved: Annotated[FloatArray, "sequence"]


@dataclass(frozen=True, slots=True, eq=False)
class LogisticNormalLDS(Checked):
    """Linear dynamical system seen through a softmax, sampled by particle Gibbs.

    Parameters
    ----------
    state_dim : int
        D >= 1.
    num_particles : int
        Of particle Gibbs, >= 2, the present path included.
    start : NormalInverseWishart, optional
        Prior of m and V; by default `NormalInverseWishart.weak` at 0.
    loading_shape, loading_scale : float
        Inverse-gamma prior of the variance of each column of the loadings.
    offset_var : float
        Prior variance of each symbol's offset.

    Notes
    -----
    A sweep costs O(T K (D N + D**2)) for N particles, T steps and K symbols, and memory is
    O(T (D + K / 32) + K D) besides the data.
    """

    state_dim: Annotated[int, as_state_dim]
    num_particles: Annotated[int, partial(as_repeats, minimum=2)] = 10
    start: NormalInverseWishart | None = None
    loading_shape: Positive = 2.0
    loading_scale: Positive = 0.2
    offset_var: Positive = 4.0

    dims: ClassVar[Mapping[str, tuple[str, ...]]] = axes_of(LogisticNormalLDSState) | {
        "last_states": ("sequence", "state"),
        "last_probs": ("sequence", "symbol"),
        "probs": ("step", "symbol"),
        "eigenvalue_moduli": ("mode",),
    }
    family: ClassVar[Family] = SEQUENCES
    label_dims: ClassVar[frozenset[str]] = frozenset({"state", "other_state"})
    basis_dims: ClassVar[frozenset[str]] = label_dims
    predictive_variables: ClassVar[tuple[str, ...]] = (
        "transition", "noise_cov", "initial_mean", "initial_cov", "loadings", "offset",
    )  # fmt: skip
    default_keep: ClassVar[tuple[str, ...]] = (
        *predictive_variables, "last_states", "last_probs", "eigenvalue_moduli", "moved",
    )  # fmt: skip

    def _complete(self) -> None:
        if self.start is None:
            self._set(start=NormalInverseWishart.weak(np.zeros(self.state_dim)))
        elif len(self.start.mean) != self.state_dim:
            raise ValueError(
                f"start must have {self.state_dim} dimensions, got {len(self.start.mean)}"
            )

    @property
    def _start(self) -> NormalInverseWishart:
        assert self.start is not None  # set by _complete
        return self.start

    @property
    def _dynamics(self) -> MatrixNormalInverseWishart:
        one = np.eye(self.state_dim)
        return MatrixNormalInverseWishart(0.5 * one, 4.0 * one, self.state_dim + 2.0, one)

    def as_data(self, data: Any) -> Sequences:
        """`as_sequences`; the model takes no inputs."""
        return sequences_for("LogisticNormalLDS", data)

    def coords(self, data: Sequences) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """Symbols and sequences by their names, where they have any."""
        named = {"symbol": data.alphabet, "sequence": data.names}
        return {axis: labels for axis, labels in named.items() if labels is not None}

    def link(self, data: Any = None) -> LogisticNormal:
        """The link from psi to probabilities."""
        return LogisticNormal()

    def prior(self, rng: np.random.Generator, data: Sequences) -> LogisticNormalLDSState:
        """A state from the prior."""
        loading_var = self.loading_scale / rng.gamma(self.loading_shape, size=self.state_dim)
        precision = self._precision(loading_var)
        weights = rng.standard_normal((data.num_symbols, len(precision))) / np.sqrt(precision)
        coefficients, noise_cov = self._dynamics.sample(rng)
        dynamics = coefficients.T.copy(), noise_cov, *self._start.sample(rng)
        states = LinearDynamics(*dynamics, data.offsets).sample(rng)
        return LogisticNormalLDSState(
            states, *dynamics, weights[:, :-1].copy(), weights[:, -1].copy(), loading_var,
            np.zeros(data.num_sequences),
        )  # fmt: skip

    def simulate(
        self, rng: np.random.Generator, state: LogisticNormalLDSState, data: Sequences
    ) -> Sequences:
        """Sequences of the same lengths and totals."""
        return simulate_symbols(rng, self.probs(state, data), data)

    def log_likelihood(self, state: LogisticNormalLDSState, data: Sequences) -> float:
        """Log probability of the observations *given the states*, not of predictions.

        For that, score `pgmult.sequences.one_step_ahead` on sequences held out.
        """
        steps = np.repeat(np.arange(data.num_steps), np.diff(data.indptr))
        log_probs = self.link(data).log_probs(_psi(state, state.states))[steps, data.symbols]
        return float((data.counts * log_probs).sum())

    # ------------------------------------------------------------------ the sampler

    def init(self, rng: np.random.Generator, data: Sequences) -> LogisticNormalLDSState:
        """A start from spectral states and the weights and dynamics that go with them."""
        states = spectral_states(rng, data, self.state_dim)
        used = np.bincount(data.symbols, data.counts, minlength=data.num_symbols) + 0.5
        weights = np.zeros((data.num_symbols, self.state_dim + 1))
        weights[:, -1] = self.link(data).inverse(used / used.sum())
        loading_var = np.full(self.state_dim, self.loading_scale / self.loading_shape)
        for _ in range(_START_SWEEPS):
            weights, loading_var = self._sample_weights(rng, weights, states, loading_var, data)
        return self._state(rng, states, weights, loading_var, np.zeros(data.num_sequences), data)

    def step(
        self, rng: np.random.Generator, state: LogisticNormalLDSState, data: Sequences
    ) -> LogisticNormalLDSState:
        """One sweep over all blocks."""
        draw = self.state_space(
            {name: getattr(state, name) for name in self.predictive_variables}, self.link(data)
        )
        states, moved = sample_paths(rng, draw, data, state.states, self.num_particles)
        weights = np.column_stack([state.loadings, state.offset])
        weights, loading_var = self._sample_weights(rng, weights, states, state.loading_var, data)
        return self._state(rng, states, weights, loading_var, moved, data)

    def _precision(self, loading_var: FloatArray) -> FloatArray:
        """Of the prior of a row of (C, b)."""
        return np.asarray(1.0 / np.append(loading_var, self.offset_var))

    def _sample_weights(
        self,
        rng: np.random.Generator,
        weights: FloatArray,
        states: FloatArray,
        loading_var: FloatArray,
        data: Sequences,
    ) -> tuple[FloatArray, FloatArray]:
        """Loadings and offset, side by side, and the loadings' variances."""
        design = np.column_stack([states, np.ones(len(states))])
        precision = self._precision(loading_var)
        weights = sample_softmax_rows(rng, data, design, weights, precision)
        shape, scale = self.loading_shape, self.loading_scale
        return weights, sample_loading_var(rng, weights[:, :-1], shape, scale)

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
        return LogisticNormalLDSState(
            states, *sample_dynamics(rng, self._dynamics, states, data.offsets),
            *sample_initial(rng, self._start, states, data.offsets), weights[:, :-1].copy(),
            weights[:, -1].copy(), loading_var, moved,
        )  # fmt: skip

    # ------------------------------------------------------------------ what a state says

    def state_space(self, draw: Mapping[str, Any], link: Any) -> StateSpaceDraw:
        """One posterior draw of `predictive_variables`, as particle methods take it."""
        return StateSpaceDraw(link=link, **{name: draw[name] for name in self.predictive_variables})

    def at_levels(self, draw: dict[str, Any], data: Sequences) -> dict[str, Any]:
        """The draw: there are no effects of levels."""
        return draw

    def log_predictive(self, draw: Mapping[str, Any], data: Sequences) -> FloatArray:
        """Log p(x_t | x_<t, draw), ``(num_steps,)``, by a bootstrap filter with one seed."""
        rng, size = np.random.default_rng(0), _FILTER_PARTICLES
        roots = lower_cholesky(draw["initial_cov"]).T, lower_cholesky(draw["noise_cov"]).T
        out, place = np.zeros(data.num_steps), np.arange(size)
        for first, end in itertools.pairwise(data.offsets.tolist()):
            x = np.tile(draw["initial_mean"], (size, 1))
            for t in range(first, end):
                x = x if t == first else x @ draw["transition"].T
                x = x + rng.standard_normal(x.shape) @ roots[t > first]
                seen = slice(data.indptr[t], data.indptr[t + 1])
                if seen.start == seen.stop:
                    continue
                log_probs = self.link().log_probs(draw["offset"] + x @ draw["loadings"].T)
                log_p = log_probs[:, data.symbols[seen]] @ data.counts[seen]
                weights = np.exp(log_p - log_p.max())
                out[t] = log_p.max() + np.log(weights.mean())
                running = np.cumsum(weights) / weights.sum()
                chosen = np.searchsorted(running, (place + rng.random()) / size)
                x = x[np.minimum(chosen, size - 1)]
        return out

    def probs(self, state: LogisticNormalLDSState, data: Sequences) -> FloatArray:
        """Probabilities of the symbols at every step, ``(num_steps, num_symbols)``."""
        return self.link(data).probs(_psi(state, state.states))

    def last_states(self, state: LogisticNormalLDSState, data: Sequences) -> FloatArray:
        """The states of each sequence's last step, ``(num_sequences, state_dim)``."""
        return state.states[data.offsets[1:] - 1]

    def last_probs(self, state: LogisticNormalLDSState, data: Sequences) -> FloatArray:
        """Probabilities at each sequence's last step, ``(num_sequences, num_symbols)``."""
        return self.link(data).probs(_psi(state, self.last_states(state, data)))

    def eigenvalue_moduli(self, state: LogisticNormalLDSState, data: Sequences) -> FloatArray:
        """Moduli of the transition's eigenvalues, largest first, ``(state_dim,)``."""
        return np.sort(np.abs(np.linalg.eigvals(state.transition)))[::-1].copy()


def _psi(state: LogisticNormalLDSState, states: FloatArray) -> FloatArray:
    """The link's argument at some states."""
    return state.offset + linear_means(states, state.loadings.T)

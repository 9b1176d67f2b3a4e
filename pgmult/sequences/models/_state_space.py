"""What linear dynamical systems of symbols share, whatever their link: parameters, priors, reports.

::

    (A, B)', Q   ~  matrix-normal inverse-Wishart                       dynamics
    x_first      ~  N(m, V),  (m, V) ~ NIW                              every sequence's first state
    x_t          ~  N(A x_{t-1} + B u_t, Q)
    v_d          ~  IG(loading_shape, loading_scale),     d = 1..D
    psi_t        =  b + E u_t + C x_t,    column d of C has variance v_d
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pgmult.core.family import Family
from pgmult.core.parameters import Checked, Positive, axes_of
from pgmult.core.potentials import DensePotential
from pgmult.core.typing import FloatArray, IntArray, ObservedRows
from pgmult.core.validate import as_positive_int
from pgmult.formulas.design import Design
from pgmult.links import LogisticNormal, StickBreaking
from pgmult.priors import MatrixNormalInverseWishart, NormalInverseWishart
from pgmult.priors.gaussian import lower_cholesky
from pgmult.sequences.data.sequences import Sequences, as_sequences, simulate_symbols, step_rows
from pgmult.sequences.family import SEQUENCES
from pgmult.sequences.priors.dynamics import LinearDynamics, input_drive
from pgmult.sequences.priors.state_space import StateSpaceDraw, joined_states
from pgmult.sequences.updates.loadings import sample_loading_var
from pgmult.sequences.updates.spectral_start import spectral_states

_MOST_STATES = 1_000  # a sweep takes their cube a step: more is a slip
START_SWEEPS = 3  # of the weights given the states that a chain starts from
_START_CONCENTRATION = 0.5  # added to counts of symbols where the offset starts


def as_state_dim(value: Any, name: str = "state_dim") -> int:
    """How many dimensions a state has."""
    return as_positive_int(value, name, maximum=_MOST_STATES)


@dataclass(frozen=True, slots=True, eq=False)
class StateSpaceState:
    """One point of the chain; a row is a stick, or a symbol under the softmax.

    Attributes
    ----------
    states : array, ``(num_steps, state_dim)``
        x.
    transition, noise_cov : arrays, ``(state_dim, state_dim)``
        A and Q.
    input_weights : array, ``(state_dim, num_inputs)``
        B; zero where inputs do not enter the dynamics.
    initial_mean, initial_cov : arrays, ``(state_dim,)`` and ``(state_dim, state_dim)``
        Of first states: m and V.
    loadings, offset : arrays, ``(num_rows, state_dim)`` and ``(num_rows,)``
        C and b.
    emission_weights : array, ``(num_rows, num_inputs)``
        E; zero where inputs do not enter the emissions.
    loading_var : array, ``(state_dim,)``
        v.
    """

    states: Annotated[FloatArray, "step", "state"]
    transition: Annotated[FloatArray, "state", "other_state"]
    input_weights: Annotated[FloatArray, "state", "input"]
    noise_cov: Annotated[FloatArray, "state", "other_state"]
    initial_mean: Annotated[FloatArray, "state"]
    initial_cov: Annotated[FloatArray, "state", "other_state"]
    loadings: Annotated[FloatArray, "row", "state"]
    emission_weights: Annotated[FloatArray, "row", "input"]
    offset: Annotated[FloatArray, "row"]
    loading_var: Annotated[FloatArray, "state"]


def state_space_dims(row: str) -> dict[str, tuple[str, ...]]:
    """Axes of the variables; a row of the loadings is a stick or a symbol."""
    own = {
        name: tuple(row if axis == "row" else axis for axis in axes)
        for name, axes in axes_of(StateSpaceState).items()
    }
    return own | {
        "last_states": ("sequence", "state"),
        "last_probs": ("sequence", "symbol"),
        "mean_probs": ("symbol",),
        "probs": ("step", "symbol"),
        "eigenvalue_moduli": ("mode",),
        "amplitudes": ("axis",),
        "lagged_amplitudes": ("axis",),
    }


@lru_cache(maxsize=8)
def _default_dynamics(D: int, U: int, about: float, weight: float) -> MatrixNormalInverseWishart:
    precision = np.diag(np.concatenate([np.full(D, weight), np.ones(U)]))
    return MatrixNormalInverseWishart(about * np.eye(D + U, D), precision, D + 2.0, np.eye(D))


def eigenvalue_moduli(transition: FloatArray) -> FloatArray:
    """Moduli of a transition's eigenvalues, largest first: the same in every basis of states."""
    return np.sort(np.abs(np.linalg.eigvals(transition)))[::-1].copy()


@dataclass(frozen=True, slots=True, eq=False)
class StateSpace(Checked, ABC):
    """A linear dynamical system of symbols; `link` and the emissions' updates are its children's.

    Parameters
    ----------
    state_dim : int
    dynamics : MatrixNormalInverseWishart, optional
    start : NormalInverseWishart, optional
    loading_shape, loading_scale, emission_var : float
        As in `MultinomialLDS`.
    """

    state_dim: Annotated[int, as_state_dim]
    dynamics: MatrixNormalInverseWishart | None = None
    start: NormalInverseWishart | None = None
    loading_shape: Positive = 2.0
    loading_scale: Positive = 0.05
    emission_var: Positive = 1.0

    family: ClassVar[Family] = SEQUENCES
    label_dims: ClassVar[frozenset[str]] = frozenset({"state", "other_state"})
    basis_dims: ClassVar[frozenset[str]] = label_dims
    predictive_variables: ClassVar[tuple[str, ...]] = (
        "transition", "noise_cov", "initial_mean", "initial_cov", "loadings", "offset",
        "input_weights", "emission_weights",
    )  # fmt: skip
    told: ClassVar[tuple[str, ...]] = ("last_probs",)
    default_keep: ClassVar[tuple[str, ...]] = (
        *predictive_variables, "last_states", "last_probs", "eigenvalue_moduli", "amplitudes",
        "lagged_amplitudes",
    )  # fmt: skip

    def _complete(self) -> None:
        D = self.state_dim
        if self.dynamics is not None and self.dynamics.mean.shape[1] != D:
            raise ValueError(
                f"dynamics must be of {D} dimensions, got {self.dynamics.mean.shape[1]}"
            )
        if self.start is None:
            self._set(start=NormalInverseWishart.weak(np.zeros(D)))
        elif len(self.start.mean) != D:
            raise ValueError(f"start must have {D} dimensions, got {len(self.start.mean)}")

    # ------------------------------------------------------------------ data

    def as_data(self, data: Any) -> Sequences:
        """`Sequences`, from what `as_sequences` takes."""
        sequences = as_sequences(data)
        if sequences.design is not None and sequences.design.terms:
            sequences = self._with_effects(sequences, sequences.design)
        rows = self.state_dim + self._num_fixed(sequences)
        if self.dynamics is not None and len(self.dynamics.mean) != rows:
            raise ValueError(
                f"dynamics must have a row for each of {self.state_dim} states and"
                f" {rows - self.state_dim} inputs, got {len(self.dynamics.mean)}"
            )
        return sequences

    def _with_effects(self, sequences: Sequences, design: Design) -> Sequences:
        """The sequences with the columns of their terms, where the model takes terms."""
        raise ValueError(
            f"{type(self).__name__} takes columns, without effects of groups or curves, got"
            f" {design.formula!r}"
        )

    def coords(self, data: Sequences) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """Labels of symbols, or their numbers, and of sequences where they have any."""
        symbols = np.arange(data.num_symbols) if data.alphabet is None else data.alphabet
        return {"symbol": symbols} | ({} if data.names is None else {"sequence": data.names})

    def driving(self, data: Sequences) -> FloatArray | None:
        """The inputs that enter the dynamics."""
        return data.inputs

    def emitting(self, data: Sequences) -> FloatArray | None:
        """The inputs that enter the emissions."""
        return data.inputs

    def _num_fixed(self, data: Sequences) -> int:
        """Inputs that enter the dynamics, without effects of terms."""
        inputs = self.driving(data)
        return 0 if inputs is None else inputs.shape[1] - data.num_effects

    # ------------------------------------------------------------------ what a state says

    @abstractmethod
    def link(self, data: Sequences) -> StickBreaking | LogisticNormal:
        """The link from psi to probabilities."""

    @abstractmethod
    def _psi(
        self, state: Any, data: Sequences, steps: IntArray | slice = slice(None)
    ) -> FloatArray:
        """The link's argument at some steps."""

    def simulate(
        self, rng: np.random.Generator, state: StateSpaceState, data: Sequences
    ) -> Sequences:
        """Sequences of the same lengths, totals and inputs."""
        return simulate_symbols(rng, self.probs(state, data), data)

    def state_space(
        self, draw: Mapping[str, Any], link: StickBreaking | LogisticNormal
    ) -> StateSpaceDraw:
        """One posterior draw of `predictive_variables`, as particle methods take it."""
        return StateSpaceDraw(link=link, **{name: draw[name] for name in self.predictive_variables})

    def at_levels(self, draw: dict[str, Any], data: Sequences) -> dict[str, Any]:
        """The draw with effects of all levels that data have; a model of columns has none."""
        return draw

    def observed_rows(self, data: Sequences) -> ObservedRows:
        """The steps, with their totals, sequences and inputs."""
        return step_rows(data)

    def row_probs(self, draw: Mapping[str, Any], data: Sequences) -> FloatArray:
        """Of ``probs``, or of ``states`` and what is kept by default: given the states."""
        if "probs" in draw:
            return np.asarray(draw["probs"])
        if "states" not in draw:
            raise ValueError("the posterior must have kept probs or states (pass it in keep=)")
        point = self.state_space(draw, self.link(data))
        return point.link.probs(point.psi(joined_states(draw), data.inputs))

    def probs(self, state: StateSpaceState, data: Sequences) -> FloatArray:
        """Probabilities of the symbols at every step, ``(num_steps, num_symbols)``."""
        return self.link(data).probs(self._psi(state, data))

    def mean_probs(self, state: StateSpaceState, data: Sequences) -> FloatArray:
        """Probabilities averaged over all steps, ``(num_symbols,)``."""
        return np.asarray(self.probs(state, data).mean(axis=0))

    def last_states(self, state: StateSpaceState, data: Sequences) -> FloatArray:
        """The states of each sequence's last step, ``(num_sequences, state_dim)``: forecasts."""
        return state.states[data.offsets[1:] - 1]

    def last_probs(self, state: StateSpaceState, data: Sequences) -> FloatArray:
        """Probabilities at each sequence's last step, ``(num_sequences, num_symbols)``."""
        return self.link(data).probs(self._psi(state, data, data.offsets[1:] - 1))

    def eigenvalue_moduli(self, state: StateSpaceState, data: Sequences) -> FloatArray:
        """Moduli of the transition's eigenvalues, largest first, ``(state_dim,)``."""
        return eigenvalue_moduli(state.transition)

    def amplitudes(self, state: StateSpaceState, data: Sequences) -> FloatArray:
        """Standard deviations of what one step's noise adds to psi along its own axes.

        The singular values of C Q^(1/2), largest first, ``(min(state_dim, n),)``: C Q C' does not
        depend on the states' basis. With `lagged_amplitudes` the last to converge.
        """
        return self._singular_values(lower_cholesky(state.noise_cov), state)

    def lagged_amplitudes(self, state: StateSpaceState, data: Sequences) -> FloatArray:
        """Square roots of the singular values of C A Q C': what is left of the noise a step on."""
        lagged = np.einsum("ij,jk->ik", state.transition, state.noise_cov)
        root = self._seen_root(state)
        return np.asarray(np.sqrt(self._singular_values(lagged @ root, state)))

    def _singular_values(self, right: FloatArray, state: StateSpaceState) -> FloatArray:
        """Of C times `right`, ``(state_dim, state_dim)``, as many as C has."""
        values = np.linalg.svd(self._seen_root(state).T @ right, compute_uv=False)
        return np.asarray(values[: len(state.loadings)], dtype=np.float64)

    def _seen_root(self, state: StateSpaceState) -> FloatArray:
        """L, ``(state_dim, state_dim)``, with L L' = C' C to working precision."""
        seen = self._seen_loadings(state)
        gram = np.einsum("kd,ke->de", seen, seen)
        gram[np.diag_indices_from(gram)] += 1e-14 * np.trace(gram) + np.finfo(np.float64).tiny
        return lower_cholesky(gram)

    def _seen_loadings(self, state: StateSpaceState) -> FloatArray:
        """C less the part that no probability depends on."""
        return state.loadings

    # ------------------------------------------------------------------ priors and pieces of sweeps

    @property
    def gaussian_prior(self) -> NormalInverseWishart:
        assert self.start is not None  # set by _complete
        return self.start

    def dynamics_prior(self, data: Sequences) -> MatrixNormalInverseWishart:
        """The prior of (A, B)' and Q."""
        if self.dynamics is not None:
            return self.dynamics
        return _default_dynamics(self.state_dim, self._num_fixed(data), *self._about(data))

    def _about(self, data: Sequences) -> tuple[float, float]:
        """What times I the default prior of the transition is around, and its weight in steps."""
        return 0.5, 4.0

    def _law_of(
        self,
        data: Sequences,
        transition: FloatArray,
        input_weights: FloatArray,
        noise_cov: FloatArray,
        initial_mean: FloatArray,
        initial_cov: FloatArray,
        potential: DensePotential | None = None,
    ) -> LinearDynamics:
        """The prior of the states, times a potential."""
        u = self.driving(data)
        drive = None if u is None else input_drive(u, input_weights, data.offsets)
        return LinearDynamics(
            transition, noise_cov, initial_mean, initial_cov, data.offsets, drive, potential
        )

    def design(self, states: FloatArray, data: Sequences) -> FloatArray:
        """What psi is linear in: states, the inputs that enter emissions, and 1."""
        columns = [states, np.ones((data.num_steps, 1))]
        inputs = self.emitting(data)
        if inputs is not None:
            columns.insert(1, inputs)
        return np.concatenate(columns, axis=1)

    def _start(
        self, rng: np.random.Generator, data: Sequences
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Spectral states, their design, weights of an offset alone, and the loadings' variance."""
        states = spectral_states(rng, data, self.state_dim)
        used = np.bincount(data.symbols, data.counts, minlength=data.num_symbols)
        smoothed = used + _START_CONCENTRATION
        offset = self.link(data).inverse(smoothed / smoothed.sum())
        design = self.design(states, data)
        weights = np.zeros((len(offset), design.shape[1]))
        weights[:, -1] = offset
        loading_var = np.full(self.state_dim, self.loading_scale / self.loading_shape)
        return states, design, weights, loading_var

    def sample_loading_var(self, rng: np.random.Generator, weights: FloatArray) -> FloatArray:
        loadings = weights[:, : self.state_dim]
        return sample_loading_var(rng, loadings, self.loading_shape, self.loading_scale)

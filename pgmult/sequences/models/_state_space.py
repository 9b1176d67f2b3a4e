"""The laws of a linear dynamical system under the stick-breaking link: state, priors, likelihood.

`pgmult.sequences.models.lds` describes the model and samples it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from pgmult.core.family import Family
from pgmult.core.parameters import Checked, Positive, axes_of, real, whole
from pgmult.core.potentials import DensePotential
from pgmult.core.typing import FloatArray, IntArray
from pgmult.latent.predictors import as_priors
from pgmult.links import StickBreaking
from pgmult.priors import MatrixNormalInverseWishart, NormalInverseWishart
from pgmult.priors.gaussian import lower_cholesky
from pgmult.priors.matrix_normal import linear_means
from pgmult.sequences.data.sequences import Sequences, as_sequences
from pgmult.sequences.family import SEQUENCES
from pgmult.sequences.priors.dynamics import LinearDynamics
from pgmult.sequences.updates.carried import many_a_step, sample_noise_sd
from pgmult.sequences.updates.loadings import uniform_sticks
from pgmult.sequences.updates.pooled import Pooled, pooled_of, refuse_other_priors

as_state_dim = whole(1, 1_000)  # a sweep takes their cube a step: more is a slip


@lru_cache(maxsize=8)
def _default_dynamics(D: int, U: int, about: float, weight: float) -> MatrixNormalInverseWishart:
    precision = np.diag(np.concatenate([np.full(D, weight), np.ones(U)]))
    return MatrixNormalInverseWishart(about * np.eye(D + U, D), precision, D + 2.0, np.eye(D))


def eigenvalue_moduli(transition: FloatArray) -> FloatArray:
    """Moduli of a transition's eigenvalues, largest first: the same in every basis of states."""
    return np.sort(np.abs(np.linalg.eigvals(transition)))[::-1].copy()


@dataclass(frozen=True, slots=True, eq=False)
class LDSState:
    """One point of the chain, as it is sampled; its properties are what is reported.

    Attributes
    ----------
    states : array, ``(num_steps, state_dim)``
        x.
    dynamics : array, ``(state_dim, state_dim + num_driving)``
        A, and B as far as inputs drive.
    noise_cov, initial_mean, initial_cov, loading_var : arrays
        Q, m, V and v.
    weights : array, ``(num_sticks, state_dim + num_emitting + 1)``
        C, E as far as inputs act on psi, and b.
    noise : array, ``(num_steps, num_sticks)``, or ``(num_steps, 0)``
        e.
    noise_sd : array, ``(num_sticks,)``, or ``(0,)``
        s.
    hyperparameters : array, ``(num_pooled, num_hyperparameters)``, or ``(0, 0)``
        Coordinates of standard deviations of effects, on each stick and then on the states, as far
        as inputs enter: see `pgmult.latent.terms`.
    """

    states: Annotated[FloatArray, "step", "state"]
    dynamics: Annotated[FloatArray, "state", "driver"]
    noise_cov: Annotated[FloatArray, "state", "other_state"]
    initial_mean: Annotated[FloatArray, "state"]
    initial_cov: Annotated[FloatArray, "state", "other_state"]
    weights: Annotated[FloatArray, "stick", "column"]
    loading_var: Annotated[FloatArray, "state"]
    noise: Annotated[FloatArray, "step", "noisy_stick"]
    noise_sd: Annotated[FloatArray, "noisy_stick"]
    hyperparameters: Annotated[FloatArray, "pooled", "hyperparameter"]

    @property
    def transition(self) -> FloatArray:
        """A."""
        return self.dynamics[:, : len(self.dynamics)].copy()

    @property
    def input_weights(self) -> FloatArray:
        """B; zero where inputs do not enter the dynamics."""
        return self._of_inputs(self.dynamics[:, len(self.dynamics) :])

    @property
    def loadings(self) -> FloatArray:
        """C."""
        return self.weights[:, : len(self.dynamics)].copy()

    @property
    def emission_weights(self) -> FloatArray:
        """E; zero where inputs do not enter the emissions."""
        return self._of_inputs(self.weights[:, len(self.dynamics) : -1])

    @property
    def offset(self) -> FloatArray:
        """Of psi."""
        return self.weights[:, -1].copy()

    def _of_inputs(self, columns: FloatArray) -> FloatArray:
        if columns.shape[1]:
            return columns.copy()
        num_inputs = max(self.dynamics.shape[1], self.weights.shape[1] - 1) - len(self.dynamics)
        return np.zeros((len(columns), num_inputs))

    @property
    def eigenvalue_moduli(self) -> FloatArray:
        """Moduli of the transition's eigenvalues, largest first, ``(state_dim,)``."""
        return eigenvalue_moduli(self.transition)

    @property
    def amplitudes(self) -> FloatArray:
        """Standard deviations of what one step's noise adds to psi along its own axes.

        The singular values of C Q^(1/2), largest first, ``(min(state_dim, num_sticks),)``: C Q C'
        does not depend on the states' basis. With `lagged_amplitudes` the last to converge.
        """
        return self._singular_values(lower_cholesky(self.noise_cov))

    @property
    def lagged_amplitudes(self) -> FloatArray:
        """Square roots of the singular values of C A Q C': what is left of the noise a step on."""
        lagged = np.einsum("ij,jk->ik", self.transition, self.noise_cov)
        return np.asarray(np.sqrt(self._singular_values(lagged @ self._seen_root())))

    def _singular_values(self, right: FloatArray) -> FloatArray:
        """Of C times `right`, ``(state_dim, state_dim)``, as many as C has."""
        values = np.linalg.svd(self._seen_root().T @ right, compute_uv=False)
        return np.asarray(values[: len(self.weights)], dtype=np.float64)

    def _seen_root(self) -> FloatArray:
        """L, ``(state_dim, state_dim)``, with L L' = C' C to working precision."""
        loadings = self.loadings
        gram = np.einsum("kd,ke->de", loadings, loadings)
        gram[np.diag_indices_from(gram)] += 1e-14 * np.trace(gram) + np.finfo(np.float64).tiny
        return lower_cholesky(gram)


@dataclass(frozen=True, slots=True, eq=False)
class LinearSystem(Checked):
    """The prior and likelihood of `MultinomialLDS`, which samples them and has its parameters."""

    state_dim: Annotated[int, as_state_dim]
    dynamics: MatrixNormalInverseWishart | None = None
    start: NormalInverseWishart | None = None
    loading_shape: Positive = 2.0
    loading_scale: Positive = 0.05
    emission_var: Positive = 1.0
    inputs: Literal["both", "dynamics", "emissions"] = "both"
    concentration: Annotated[float, real(minimum=0.1)] = 1.0
    overdispersion: Literal["auto"] | bool = "auto"
    noise_scale: Positive = 0.1
    priors: Annotated[Mapping[str, Any], as_priors] = field(default_factory=dict)

    dims: ClassVar[Mapping[str, tuple[str, ...]]] = axes_of(LDSState) | {
        "transition": ("state", "other_state"),
        "input_weights": ("state", "input"),
        "loadings": ("stick", "state"),
        "offset": ("stick",),
        "emission_weights": ("stick", "input"),
        "last_states": ("sequence", "state"),
        "last_probs": ("sequence", "symbol"),
        "mean_probs": ("symbol",),
        "probs": ("step", "symbol"),
        "eigenvalue_moduli": ("mode",),
        "amplitudes": ("axis",),
        "lagged_amplitudes": ("axis",),
        "sds": ("pooled", "sd"),
    }
    family: ClassVar[Family] = SEQUENCES
    label_dims: ClassVar[frozenset[str]] = frozenset({"state", "other_state"})
    basis_dims: ClassVar[frozenset[str]] = label_dims
    predictive_variables: ClassVar[tuple[str, ...]] = (
        "transition", "noise_cov", "initial_mean", "initial_cov", "loadings", "offset",
        "input_weights", "emission_weights", "noise_sd",
    )  # fmt: skip
    told: ClassVar[tuple[str, ...]] = ("last_probs",)
    default_keep: ClassVar[tuple[str, ...]] = (
        *predictive_variables[:-1], "last_states", "last_probs", "eigenvalue_moduli", "amplitudes",
        "lagged_amplitudes", "noise_sd", "hyperparameters", "sds",
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
        design = sequences.design
        if design is not None and design.terms:
            refuse_other_priors(design, self.priors)
            pooled_of(design, self.priors, self.state_dim)  # refuses what it does not take
            if not sequences.num_effects:
                sequences = sequences.with_design(design, effects=True)
        rows = self.state_dim + self._num_fixed(sequences)
        if self.dynamics is not None and len(self.dynamics.mean) != rows:
            raise ValueError(
                f"dynamics must have a row for each of {self.state_dim} states and"
                f" {rows - self.state_dim} inputs, got {len(self.dynamics.mean)}"
            )
        return sequences

    def coords(self, data: Sequences) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """Labels of symbols, or their numbers; of sequences where they have any, and of inputs.

        A stick has its symbol's label.
        """
        symbols = np.arange(data.num_symbols) if data.alphabet is None else data.alphabet
        sticks, pooled = np.asarray(symbols)[data.order[:-1]], self.pooled(data)
        noisy = sticks if self.is_noisy(data) else sticks[:0]
        own = {"symbol": symbols, "stick": sticks, "noisy_stick": noisy}
        if data.names is not None:
            own["sequence"] = data.names
        if pooled is None:
            return own
        blocks = [*(str(stick) for stick in sticks), "states"]
        entered = (
            blocks[-1:] if self.inputs == "dynamics" else blocks[: self.num_pooled(len(sticks))]
        )
        return {**own, "input": pooled.names, "pooled": entered, "sd": pooled.latent.sd_names}

    def driving(self, data: Sequences) -> FloatArray | None:
        """The inputs that enter the dynamics."""
        return None if self.inputs == "emissions" else data.inputs

    def emitting(self, data: Sequences) -> FloatArray | None:
        """The inputs that enter the emissions."""
        return None if self.inputs == "dynamics" else data.inputs

    def _num_fixed(self, data: Sequences) -> int:
        """Inputs that enter the dynamics, without effects of terms."""
        inputs = self.driving(data)
        return 0 if inputs is None else inputs.shape[1] - data.num_effects

    def pooled(self, data: Sequences) -> Pooled | None:
        """The terms of the inputs."""
        if not data.num_effects:
            return None
        assert data.design is not None  # which has the terms
        return pooled_of(data.design, self.priors, self.state_dim)

    def num_pooled(self, num_sticks: int) -> int:
        """How many have effects: sticks, states or both."""
        return num_sticks * (self.inputs != "dynamics") + (self.inputs != "emissions")

    def is_noisy(self, data: Sequences) -> bool:
        """Whether psi has noise of its own at every step."""
        return many_a_step(data) if self.overdispersion == "auto" else self.overdispersion

    # ------------------------------------------------------------------ the likelihood

    def link(self, data: Sequences) -> StickBreaking:
        """The link from psi to probabilities, frequent symbols first."""
        return StickBreaking(order=data.order)

    def design(self, states: FloatArray, data: Sequences) -> FloatArray:
        """What psi is linear in: states, the inputs that enter emissions, and 1."""
        columns = [states, np.ones((data.num_steps, 1))]
        inputs = self.emitting(data)
        if inputs is not None:
            columns.insert(1, inputs)
        return np.concatenate(columns, axis=1)

    def psi(
        self, state: LDSState, data: Sequences, steps: IntArray | slice = slice(None)
    ) -> FloatArray:
        """The link's argument at some steps."""
        psi = linear_means(self.design(state.states, data)[steps], state.weights.T)
        return psi + state.noise[steps] if len(state.noise_sd) else psi

    def probs(self, state: LDSState, data: Sequences) -> FloatArray:
        """Probabilities of the symbols at every step, ``(num_steps, num_symbols)``."""
        return self.link(data).probs(self.psi(state, data))

    # ------------------------------------------------------------------ priors

    def prior(self, rng: np.random.Generator, data: Sequences) -> LDSState:
        """A state from the prior."""
        D, n, U = self.state_dim, data.num_symbols - 1, data.num_inputs
        x, pooled = np.empty((0, 0)), self.pooled(data)
        if pooled is not None:
            terms, size = pooled.of_stick.terms, self.num_pooled(n)
            x = np.array([np.concatenate([t.sample(rng) for t in terms]) for _ in range(size)])
        loading_var = self.loading_scale / rng.gamma(self.loading_shape, size=D)
        emitted = U * (self.inputs != "dynamics")
        nowhere, nothing = np.empty((0, D)), np.empty(0)
        state = LDSState(
            nowhere, nowhere, np.eye(D), np.zeros(D), np.eye(D), np.zeros((n, D + emitted + 1)),
            loading_var, nowhere, nothing, x,
        )  # fmt: skip
        mean, var = self.weight_moments(state, data)
        sd = np.sqrt(var)
        weights = [sd[:, part] * rng.standard_normal((n, size)) for part, size in (
            (slice(D), D), (slice(D, -1), emitted), (slice(-1, None), 1),
        )]  # fmt: skip
        coefficients, noise_cov = self.dynamics_prior(data, x).sample(rng)
        driven = D + U * (self.inputs != "emissions")
        initial_mean, initial_cov = self.gaussian_prior.sample(rng)
        state = replace(
            state, weights=mean + np.concatenate(weights, axis=1), noise_cov=noise_cov,
            dynamics=coefficients[:driven].T.copy(), initial_mean=initial_mean,
            initial_cov=initial_cov,
        )  # fmt: skip
        states = self.law(state, data).sample(rng)
        sd = sample_noise_sd(rng, self.noise_scale, n * self.is_noisy(data))
        noise = sd * rng.standard_normal((data.num_steps, len(sd)))
        return replace(state, states=states, noise=noise, noise_sd=sd)

    @property
    def gaussian_prior(self) -> NormalInverseWishart:
        """Of the mean and covariance of first states."""
        assert self.start is not None  # set by _complete
        return self.start

    def dynamics_prior(
        self, data: Sequences, x: FloatArray | None = None
    ) -> MatrixNormalInverseWishart:
        """The prior of (A, B)' and Q, with the precisions of effects at hyperparameters."""
        prior, pooled = self.dynamics, self.pooled(data)
        if prior is None:
            about, weight = (1.0, 1.0) if many_a_step(data) else (0.5, 4.0)
            prior = _default_dynamics(self.state_dim, self._num_fixed(data), about, weight)
        if pooled is None or x is None or self.driving(data) is None:
            return prior
        own, size = len(prior.mean), pooled.num_effects
        precision = np.zeros((own + size, own + size))
        precision[:own, :own] = prior.row_precision
        precision[range(own, own + size), range(own, own + size)] = 1.0 / pooled.variances(x[-1])
        mean = np.concatenate([prior.mean, np.zeros((size, self.state_dim))])
        return replace(prior, mean=mean, row_precision=precision)

    def offset_moments(self, data: Sequences) -> tuple[FloatArray, FloatArray]:
        """Prior mean and variance of each stick's offset."""
        return uniform_sticks(data.num_symbols, self.concentration)

    def weight_moments(self, state: LDSState, data: Sequences) -> tuple[FloatArray, FloatArray]:
        """Prior means and variances of the weights, of their shape."""
        mean, var = np.zeros_like(state.weights), np.empty_like(state.weights)
        var[:, : self.state_dim] = state.loading_var
        if self.emitting(data) is not None:
            var[:, self.state_dim : -1], pooled = self.emission_var, self.pooled(data)
            if pooled is not None:
                effects = [pooled.variances(own) for own in state.hyperparameters[: len(var)]]
                var[:, self.state_dim + pooled.fixed : -1] = effects
        mean[:, -1], var[:, -1] = self.offset_moments(data)
        return mean, var

    def law(
        self, state: LDSState, data: Sequences, seen: DensePotential | None = None
    ) -> LinearDynamics:
        """The law of the states given all else, times a potential."""
        u, law = self.driving(data), LinearDynamics(
            state.transition, state.noise_cov, state.initial_mean, state.initial_cov, data.offsets,
            potential=seen,
        )  # fmt: skip
        return law if u is None else law.driven(u, state.input_weights)

"""The laws of a linear dynamical system under the stick-breaking link: priors, weights, dynamics.

`pgmult.sequences.models.lds` describes the model and samples it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from pgmult.core.arguments import as_real
from pgmult.core.parameters import Positive
from pgmult.core.potentials import DensePotential
from pgmult.core.typing import FloatArray, IntArray
from pgmult.formulas.design import Design
from pgmult.latent.predictors import as_priors
from pgmult.links import StickBreaking
from pgmult.priors.gaussian import lower_cholesky
from pgmult.priors.matrix_normal import MatrixNormalInverseWishart, linear_means
from pgmult.sequences.data.sequences import Sequences
from pgmult.sequences.models._state_space import StateSpace, state_space_dims
from pgmult.sequences.priors.dynamics import LinearDynamics
from pgmult.sequences.priors.state_space import StateSpaceDraw
from pgmult.sequences.updates.carried import many_a_step, sample_noise_sd
from pgmult.sequences.updates.loadings import uniform_sticks
from pgmult.sequences.updates.pooled import Pooled, pooled_of, refuse_other_priors


def _as_concentration(value: Any, name: str) -> float:
    number = as_real(value, name)
    uniform_sticks(2, number)  # refuses what is out of range
    return number


@dataclass(frozen=True, slots=True, eq=False)
class StickBreakingState:
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
        """B."""
        return self.weights[:, -1].copy()

    def _of_inputs(self, columns: FloatArray) -> FloatArray:
        if columns.shape[1]:
            return columns.copy()
        num_inputs = max(self.dynamics.shape[1], self.weights.shape[1] - 1) - len(self.dynamics)
        return np.zeros((len(columns), num_inputs))


@dataclass(frozen=True, slots=True, eq=False)
class StickBreakingLDS(StateSpace):
    """The prior and likelihood of `MultinomialLDS`, which samples them.

    Parameters
    ----------
    inputs, concentration, overdispersion, noise_scale, priors
        As in `MultinomialLDS`.
    """

    inputs: Literal["both", "dynamics", "emissions"] = "both"
    concentration: Annotated[float, _as_concentration] = 1.0
    overdispersion: Literal["auto"] | bool = "auto"
    noise_scale: Positive = 0.1
    priors: Annotated[Mapping[str, Any], as_priors] = field(default_factory=dict)

    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **state_space_dims("stick"), "dynamics": ("state", "driver"),
        "weights": ("stick", "column"), "noise": ("step", "noisy_stick"),
        "noise_sd": ("noisy_stick",), "hyperparameters": ("pooled", "hyperparameter"),
        "sds": ("pooled", "sd"),
    }  # fmt: skip
    predictive_variables: ClassVar[tuple[str, ...]] = (*StateSpace.predictive_variables, "noise_sd")
    default_keep: ClassVar[tuple[str, ...]] = (
        *StateSpace.default_keep, "noise_sd", "hyperparameters", "sds",
    )  # fmt: skip

    def coords(self, data: Sequences) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """Labels as of every state space; a stick has its symbol's."""
        labels = StateSpace.coords(self, data)
        sticks = np.asarray(labels["symbol"])[data.order[:-1]]
        own = {**labels, "stick": sticks, "noisy_stick": sticks[: self._num_noisy(data)]}
        pooled = self.pooled(data)
        if pooled is None:
            return own
        blocks = [*(str(stick) for stick in sticks), "states"]
        entered = (
            blocks[-1:] if self.inputs == "dynamics" else blocks[: self._num_pooled(len(sticks))]
        )
        return {**own, "input": pooled.names, "pooled": entered, "sd": pooled.latent.sd_names}

    def _num_pooled(self, num_sticks: int) -> int:
        """How many have effects: sticks, states or both."""
        return num_sticks * (self.inputs != "dynamics") + (self.inputs != "emissions")

    def _with_effects(self, sequences: Sequences, design: Design) -> Sequences:
        refuse_other_priors(design, self.priors)
        pooled_of(design, self.priors, self.state_dim)  # refuses what it does not take
        return sequences if sequences.num_effects else sequences.with_design(design, effects=True)

    def pooled(self, data: Sequences) -> Pooled | None:
        """The terms of the inputs."""
        if not data.num_effects:
            return None
        assert data.design is not None  # which has the terms
        return pooled_of(data.design, self.priors, self.state_dim)

    def sds(self, state: StickBreakingState, data: Sequences) -> FloatArray:
        """Standard deviations of effects on each stick and, in units of Q's root, on states."""
        pooled = self.pooled(data)
        if pooled is None:
            return np.empty((0, 0))
        return np.array([pooled.latent.sds(x) for x in state.hyperparameters])

    def is_noisy(self, data: Sequences) -> bool:
        """Whether psi has noise of its own at every step."""
        return many_a_step(data) if self.overdispersion == "auto" else self.overdispersion

    def _num_noisy(self, data: Sequences) -> int:
        return data.num_symbols - 1 if self.is_noisy(data) else 0

    def state_space(self, draw: Mapping[str, Any], link: Any) -> StateSpaceDraw:
        """A draw of `predictive_variables`; noise is states without a memory."""
        kept = StateSpace.predictive_variables
        point = StateSpaceDraw(link=link, **{name: draw[name] for name in kept})
        return point.with_noise(draw["noise_sd"]) if len(draw["noise_sd"]) else point

    def at_levels(self, draw: dict[str, Any], data: Sequences) -> dict[str, Any]:
        """The draw with effects of all levels that data have, those of new ones drawn.

        They are the same whenever they are drawn for the same draw and levels.
        """
        pooled, x = self.pooled(data), draw["hyperparameters"]
        assert pooled is not None  # data have effects
        rng = np.random.default_rng(crc32(draw["loadings"].tobytes()))
        out, n = dict(draw), len(draw["loadings"])
        if self.inputs != "dynamics":
            new = np.array([pooled.new_effects(rng, own) for own in x[:n]])
            out["emission_weights"] = np.concatenate([draw["emission_weights"], new], axis=1)
        else:
            out["emission_weights"] = np.zeros((n, data.num_inputs))
        if self.inputs != "emissions":
            white = [pooled.new_effects(rng, x[-1]) for _ in range(self.state_dim)]
            new = lower_cholesky(draw["noise_cov"]) @ np.array(white)
            out["input_weights"] = np.concatenate([draw["input_weights"], new], axis=1)
        else:
            out["input_weights"] = np.zeros((self.state_dim, data.num_inputs))
        return out

    def link(self, data: Sequences) -> StickBreaking:
        """The link from psi to probabilities, frequent symbols first."""
        return StickBreaking(order=data.order)

    def prior(self, rng: np.random.Generator, data: Sequences) -> StickBreakingState:
        """A state from the prior."""
        D, n, U = self.state_dim, data.num_symbols - 1, data.num_inputs
        x, pooled = np.empty((0, 0)), self.pooled(data)
        if pooled is not None:
            terms, size = pooled.of_stick.terms, self._num_pooled(n)
            x = np.array([np.concatenate([t.sample(rng) for t in terms]) for _ in range(size)])
        loading_var = self.loading_scale / rng.gamma(self.loading_shape, size=D)
        loadings = np.sqrt(loading_var) * rng.standard_normal((n, D))
        emission_weights = np.zeros((n, U))
        if self.inputs != "dynamics":
            var = self._input_variances(x, n, data)
            emission_weights = np.sqrt(var) * rng.standard_normal((n, U))
        mean, var = self.offset_moments(data)
        offset = mean + np.sqrt(var) * rng.standard_normal(n)
        prior = self.dynamics_prior(data, x)
        coefficients, noise_cov = prior.sample(rng)
        transition, weights = coefficients[:D].T.copy(), coefficients[D:].T.copy()
        initial_mean, initial_cov = self.gaussian_prior.sample(rng)
        input_weights = weights if self.inputs != "emissions" else np.zeros((D, U))
        dynamics = transition, input_weights, noise_cov, initial_mean, initial_cov
        states = self._law_of(data, *dynamics).sample(rng)
        sd = sample_noise_sd(rng, self.noise_scale, self._num_noisy(data))
        driven = [input_weights] if self.inputs != "emissions" else []
        emitted = [emission_weights] if self.inputs != "dynamics" else []
        return StickBreakingState(
            states, np.concatenate([transition, *driven], axis=1), noise_cov, initial_mean,
            initial_cov, np.concatenate([loadings, *emitted, offset[:, None]], axis=1), loading_var,
            sd * rng.standard_normal((data.num_steps, len(sd))), sd, x,
        )  # fmt: skip

    def _psi(
        self, state: StickBreakingState, data: Sequences, steps: IntArray | slice = slice(None)
    ) -> FloatArray:
        psi = linear_means(self.design(state.states, data)[steps], state.weights.T)
        return psi + state.noise[steps] if len(state.noise_sd) else psi

    def offset_moments(self, data: Sequences) -> tuple[FloatArray, FloatArray]:
        """Prior mean and variance of each stick's offset."""
        return uniform_sticks(data.num_symbols, self.concentration)

    def _about(self, data: Sequences) -> tuple[float, float]:
        return (1.0, 1.0) if many_a_step(data) else (0.5, 4.0)

    def _input_variances(self, x: FloatArray, num_sticks: int, data: Sequences) -> FloatArray:
        """Prior variances of emission weights at hyperparameters, ``(num_sticks, num_inputs)``."""
        var, pooled = np.full((num_sticks, data.num_inputs), self.emission_var), self.pooled(data)
        if pooled is not None:
            var[:, pooled.fixed :] = [pooled.variances(own) for own in x[:num_sticks]]
        return var

    def dynamics_prior(
        self, data: Sequences, x: FloatArray | None = None
    ) -> MatrixNormalInverseWishart:
        """With the precisions of effects at hyperparameters."""
        prior, pooled = StateSpace.dynamics_prior(self, data), self.pooled(data)
        if pooled is None or x is None or self.driving(data) is None:
            return prior
        own, size = len(prior.mean), pooled.num_effects
        precision = np.zeros((own + size, own + size))
        precision[:own, :own] = prior.row_precision
        precision[range(own, own + size), range(own, own + size)] = 1.0 / pooled.variances(x[-1])
        mean = np.concatenate([prior.mean, np.zeros((size, self.state_dim))])
        return replace(prior, mean=mean, row_precision=precision)

    def weight_moments(
        self, state: StickBreakingState, data: Sequences
    ) -> tuple[FloatArray, FloatArray]:
        """Prior means and variances of the weights, of their shape."""
        mean, var = np.zeros_like(state.weights), np.empty_like(state.weights)
        var[:, : self.state_dim] = state.loading_var
        if self.emitting(data) is not None:
            own = self._input_variances(state.hyperparameters, len(var), data)
            var[:, self.state_dim : -1] = own
        mean[:, -1], var[:, -1] = self.offset_moments(data)
        return mean, var

    def driving(self, data: Sequences) -> FloatArray | None:
        return None if self.inputs == "emissions" else data.inputs

    def emitting(self, data: Sequences) -> FloatArray | None:
        return None if self.inputs == "dynamics" else data.inputs

    def law(
        self, state: StickBreakingState, data: Sequences, seen: DensePotential | None = None
    ) -> LinearDynamics:
        """The law of the states given all else, times a potential."""
        return self._law_of(
            data, state.transition, state.input_weights, state.noise_cov, state.initial_mean,
            state.initial_cov, seen,
        )  # fmt: skip

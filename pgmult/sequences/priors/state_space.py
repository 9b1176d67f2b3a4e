"""Linear Gaussian states seen through a link: one point of such a model.

`LDSState` is that of a chain, `StateSpaceDraw` that of particle methods::

    x_first ~ N(initial_mean + drive_first, initial_cov),
    x_t     ~ N(transition x_{t-1} + drive_t, noise_cov),      drive_t = input_weights u_t
    counts_t ~ Multinomial(total_t, link(offset + emission_weights u_t + loadings x_t))

where the link breaks sticks in some order of the symbols. Inputs drive states from a sequence's
second step on, and its first as well where it continues another. With loadings all zero the states
say nothing:

>>> import numpy as np
>>> from pgmult.links import StickBreaking
>>> draw = StateSpaceDraw(
...     transition=0.9 * np.eye(1), noise_cov=np.eye(1), initial_mean=np.zeros(1),
...     initial_cov=np.eye(1), loadings=np.zeros((2, 1)), offset=np.zeros(2),
...     link=StickBreaking(order=[0, 2, 1]),
... )
>>> draw.state_dim, draw.num_symbols
(1, 3)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from scipy.linalg import block_diag

from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_finite, as_spd
from pgmult.links import StickBreaking
from pgmult.priors.gaussian import lower_cholesky
from pgmult.priors.matrix_normal import linear_means
from pgmult.sequences.compiled.particles import Parameters, ParticleSteps
from pgmult.sequences.data.sequences import Sequences


@dataclass(frozen=True, slots=True, eq=False)
class LDSState:
    """One point of the chain; its properties are what is reported.

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

    def changed(self, **values: FloatArray) -> "LDSState":
        """Return the state with other values of some fields: `dataclasses.replace`, but faster."""
        fields = self.__dataclass_fields__
        return LDSState(*(values[f] if f in values else getattr(self, f) for f in fields))

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
        """b, the offset of psi."""
        return self.weights[:, -1].copy()

    def _of_inputs(self, columns: FloatArray) -> FloatArray:
        if columns.shape[1]:
            return columns.copy()
        num_inputs = max(self.dynamics.shape[1], self.weights.shape[1] - 1) - len(self.dynamics)
        return np.zeros((len(columns), num_inputs))

    @property
    def eigenvalue_moduli(self) -> FloatArray:
        """Moduli of the transition's eigenvalues, largest first, in any basis, ``(state_dim,)``."""
        return np.sort(np.abs(np.linalg.eigvals(self.transition)))[::-1].copy()

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
        return np.asarray(np.sqrt(self._singular_values(lagged @ self._loading_root())))

    def _singular_values(self, right: FloatArray) -> FloatArray:
        """Singular values of C times `right`, ``(state_dim, state_dim)``, as many as C has."""
        values = np.linalg.svd(self._loading_root().T @ right, compute_uv=False)
        return np.asarray(values[: len(self.weights)], dtype=np.float64)

    def _loading_root(self) -> FloatArray:
        """L, ``(state_dim, state_dim)``, with L L' = C' C to working precision."""
        loadings = self.loadings
        gram = np.einsum("kd,ke->de", loadings, loadings)
        gram[np.diag_indices_from(gram)] += 1e-14 * np.trace(gram) + np.finfo(np.float64).tiny
        return lower_cholesky(gram)


class StateSpaceDraw(NamedTuple):
    """The parameters of one draw; n = K - 1.

    Attributes
    ----------
    transition : array, ``(D, D)``
    noise_cov : array, ``(D, D)``
    initial_mean : array, ``(D,)`` or ``(num_sequences, D)``
        The latter where sequences start from different places.
    initial_cov : array, ``(D, D)``
    loadings : array, ``(n, D)``
    offset : array, ``(n,)``
    link : StickBreaking
    input_weights : array, ``(D, num_inputs)``, or None
        Of the inputs in the states' drive.
    emission_weights : array, ``(n, num_inputs)``, or None
        Of the inputs in the link's argument.
    continues : bool
        Whether the inputs of first steps drive their states: see `continued`.
    """

    transition: FloatArray
    noise_cov: FloatArray
    initial_mean: FloatArray
    initial_cov: FloatArray
    loadings: FloatArray
    offset: FloatArray
    link: StickBreaking
    input_weights: FloatArray | None = None
    emission_weights: FloatArray | None = None
    continues: bool = False

    @property
    def state_dim(self) -> int:
        """Size of a state, D."""
        return len(self.transition)

    @property
    def num_symbols(self) -> int:
        """K."""
        return len(self.offset) + 1

    @property
    def order(self) -> IntArray:
        """Symbols by position: the sticks' order, ``(K,)``."""
        order = self.link.order
        return np.arange(self.num_symbols) if order is None else np.asarray(order, np.int64)

    def with_noise(self, noise_sd: FloatArray) -> "StateSpaceDraw":
        """The same draw with white noise on every row of psi: states without a memory."""
        n, var, drives = len(noise_sd), np.diag(noise_sd**2), self.input_weights
        return self._replace(
            transition=block_diag(self.transition, 0.0 * var),
            noise_cov=block_diag(self.noise_cov, var),
            initial_mean=np.append(self.initial_mean, np.zeros(n)),
            initial_cov=block_diag(self.initial_cov, var),
            loadings=np.concatenate([self.loadings, np.eye(n)], axis=1),
            input_weights=None if drives is None else np.pad(drives, ((0, n), (0, 0))),
        )  # fmt: skip

    def padded(self, states: FloatArray) -> FloatArray:
        """States ``(..., D)``, with zeros for noise where the draw has it and they do not."""
        more = self.state_dim - states.shape[-1]
        return np.concatenate([states, np.zeros((*states.shape[:-1], more))], axis=-1)

    def continued(self, last_states: FloatArray) -> "StateSpaceDraw":
        """The same draw for sequences that go on where others ended.

        `last_states`, ``(num_sequences, D)`` or ``(D,)``, are the states of the step before each
        sequence's first.
        """
        last = self.padded(np.asarray(last_states, np.float64))
        mean = np.einsum("...d,ed->...e", last, self.transition)
        return self._replace(initial_mean=mean, initial_cov=self.noise_cov, continues=True)

    def psi(self, states: FloatArray, inputs: FloatArray | None) -> FloatArray:
        """The link's argument at states ``(num_steps, D)``, ``(num_steps, n)``."""
        psi = self.offset + linear_means(self.padded(states), self.loadings.T)
        if inputs is not None and self.emission_weights is not None:
            psi += linear_means(inputs, self.emission_weights.T)
        return psi

    def drive(self, inputs: FloatArray | None, num_steps: int) -> FloatArray:
        """What inputs add to states, ``(num_steps, D)``."""
        if inputs is None or self.input_weights is None:
            return np.zeros((num_steps, self.state_dim))
        return linear_means(inputs, self.input_weights.T)


def joined_states(draw: Mapping[str, object]) -> FloatArray:
    """States of a kept draw, and the noise beside them where it was kept."""
    if "noise" not in draw:
        return np.asarray(draw["states"])
    return np.concatenate([draw["states"], draw["noise"]], axis=-1)


def as_arrays(draws: Sequence[StateSpaceDraw], data: Sequences) -> tuple[ParticleSteps, Parameters]:
    """Draws, and the data they are for, as compiled code takes them.

    Raises
    ------
    ValueError
        If shapes do not agree with the data's, numbers are not finite or a covariance is not
        positive definite.
    """
    first, D, U = draws[0], draws[0].state_dim, data.num_inputs
    n, starts = len(first.offset), (data.num_sequences, D)
    if n + 1 != data.num_symbols:
        raise ValueError(f"the draws are of {n + 1} symbols, the data of {data.num_symbols}")

    def stack(name: str, *shape: int) -> FloatArray:
        arrays = [getattr(draw, name) for draw in draws]
        if arrays[0] is None:  # of inputs that do not enter there
            return np.zeros((len(draws), *shape))
        stacked = as_finite(np.array(arrays), name)
        if stacked.shape[1:] != shape:
            hint = " (do the data lack inputs?)" if 0 in shape else ""
            raise ValueError(f"{name} must have shape {shape}, got {stacked.shape[1:]}{hint}")
        return stacked

    def roots(name: str) -> FloatArray:
        return np.array([lower_cholesky(cov) for cov in as_spd(stack(name, D, D), name, D)])

    initial_mean = np.array([np.broadcast_to(draw.initial_mean, starts) for draw in draws])
    input_weights = stack("input_weights", D, U)
    if data.inputs is not None and first.continues:
        arriving = data.inputs[data.offsets[:-1]]
        initial_mean = initial_mean + np.einsum("qu,sdu->sqd", arriving, input_weights)
    loadings = stack("loadings", n, D)
    parameters = Parameters(
        stack("transition", D, D), roots("noise_cov"), as_finite(initial_mean, "initial_mean"),
        roots("initial_cov"), loadings, np.ascontiguousarray(np.swapaxes(loadings, 1, 2)),
        stack("offset", n), input_weights, stack("emission_weights", n, U),
    )  # fmt: skip
    positions = np.argsort(first.order)[data.symbols]
    increasing = np.lexsort((positions, data.step_of_entry))
    inputs = np.zeros((data.num_steps, 0)) if data.inputs is None else data.inputs
    steps = ParticleSteps(
        data.offsets, data.indptr, positions[increasing], data.counts[increasing].astype(np.int64),
        np.ascontiguousarray(inputs, np.float64),
    )  # fmt: skip
    return steps, parameters

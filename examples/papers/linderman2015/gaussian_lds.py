"""A linear dynamical system of raw vectors: one-hot symbols or shares of counts as if Gaussian.

A baseline that ignores that data are counts (Linderman, Johnson and Adams 2015, section 5)::

    A, Q        ~ MNIW                                      dynamics
    b_k, r_k    ~ N(0, r_k diag(1 / precision)) IG(shape, scale)   (offset, loadings) of vector k
    x_1         ~ N(0, I),    x_t ~ N(A x_t-1, Q)           each sequence
    y_t         ~ N(offset + loadings x_t, diag(r))

where y_t is a step's counts divided by their total. A sweep draws the states x given all parameters
(filter forwards, sample backwards), then A, Q and b, r given the states. The states x are not
stored in the chain: given the parameters their law is known exactly, so likelihoods and predictions
integrate them out.

A forecast of y_t is no distribution of symbols. `GaussianLDS.log_predictive` makes one of the
Kalman filter's mean of y_t: clipped at a small floor and normalised.

>>> import pgmult
>>> data = pgmult.sequences.as_sequences(["GATTACAGATTACAGATTACA", "TAGATTACAG"])
>>> posterior = pgmult.sample(
...     GaussianLDS(state_dim=2), data,
...     draws=10, tune=10, chains=1, random_seed=0, progressbar=False,
... )
>>> posterior["eigenvalue_moduli"].shape
(1, 10, 2)
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from examples.papers.linderman2015.compiled import kalman
from examples.papers.linderman2015.dynamics import sample_dynamics
from examples.papers.linderman2015.vectors import VectorSequences, as_vector_sequences
from pgmult.compiled.linalg import invert_lower, scatter
from pgmult.compiled.rows import over_rows
from pgmult.core.family import Family
from pgmult.core.parameters import Checked, Positive, axes_of
from pgmult.core.potentials import DensePotential
from pgmult.core.typing import FloatArray, IntArray
from pgmult.priors.gaussian import lower_cholesky
from pgmult.priors.matrix_normal import MatrixNormalInverseWishart, linear_means
from pgmult.sequences.data.sequences import Sequences
from pgmult.sequences.family import SEQUENCES
from pgmult.sequences.models.lds import as_state_dim
from pgmult.sequences.priors.dynamics import LinearDynamics

_BLOCK = 4096  # steps whose forecasts are held at a time
_REACH, _PASSES, _JITTER = 5, 10, 0.1  # of the start


@dataclass(frozen=True, slots=True, eq=False)
class GaussianLDSState:
    """One point of the chain.

    Attributes
    ----------
    transition : array, ``(state_dim, state_dim)``
    noise_cov : array, ``(state_dim, state_dim)``
    loadings : array, ``(n, state_dim)``
    offset : array, ``(n,)``
    emission_var : array, ``(n,)``
        r.
    """

    transition: Annotated[FloatArray, "factor", "previous_factor"]
    noise_cov: Annotated[FloatArray, "factor", "other_factor"]
    loadings: Annotated[FloatArray, "symbol", "factor"]
    offset: Annotated[FloatArray, "symbol"]
    emission_var: Annotated[FloatArray, "symbol"]


@dataclass(frozen=True, slots=True, eq=False)
class GaussianLDS(Checked):
    """Linear dynamical system with Gaussian emissions of independent coordinates.

    Parameters
    ----------
    state_dim : int
        D >= 1.
    dynamics : MatrixNormalInverseWishart, optional
        Prior of A' and Q; by default A has mean 0, worth one step, and E[Q] = I.
    loadings_precision, offset_precision : float
        Of a loading and of an offset, relative to the coordinate's emission variance: the number of
        steps it is worth.
    emission_shape : float
        Of the inverse-gamma prior of a coordinate's emission variance.
    emission_scale : float, optional
        Its scale; by default 1 / n, the size of the variance of one of n shares.
    probability_floor : float, optional
        Where a forecast is clipped before it is normalised; by default 0.3 / n.

    Notes
    -----
    A sweep costs O(num_steps (D**3 + n D) + n D**2).
    """

    state_dim: Annotated[int, as_state_dim]
    dynamics: MatrixNormalInverseWishart | None = None
    loadings_precision: Positive = 1.0
    offset_precision: Positive = 0.01
    emission_shape: Positive = 2.0
    emission_scale: Positive | None = None
    probability_floor: Positive | None = None

    dims: ClassVar[Mapping[str, tuple[str, ...]]] = axes_of(GaussianLDSState) | {
        "eigenvalue_moduli": ("mode",),
        "state_means": ("step", "factor"),
    }
    family: ClassVar[Family] = SEQUENCES
    label_dims: ClassVar[frozenset[str]] = frozenset({"factor", "previous_factor", "other_factor"})
    basis_dims: ClassVar[frozenset[str]] = label_dims
    predictive_variables: ClassVar[tuple[str, ...]] = tuple(axes_of(GaussianLDSState))
    default_keep: ClassVar[tuple[str, ...]] = (*predictive_variables, "eigenvalue_moduli")

    def _complete(self) -> None:
        D = self.state_dim
        if self.dynamics is None:
            self._set(
                dynamics=MatrixNormalInverseWishart(np.zeros((D, D)), np.eye(D), D + 2.0, np.eye(D))
            )
        elif self.dynamics.mean.shape != (D, D):
            raise ValueError(
                f"dynamics must be of {D} x {D} transitions (state_dim), got"
                f" {self.dynamics.mean.shape}"
            )

    @property
    def _mniw(self) -> MatrixNormalInverseWishart:
        assert self.dynamics is not None  # set by _complete
        return self.dynamics

    def as_data(self, data: Any) -> VectorSequences:
        """`as_vector_sequences`."""
        return as_vector_sequences(data)

    def coords(self, data: VectorSequences) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """Symbols by their names, where they have any."""
        return {} if data.labels is None else {"symbol": data.labels}

    # ------------------------------------------------------------------ the model

    def prior(self, rng: np.random.Generator, data: VectorSequences) -> GaussianLDSState:
        """A state from the prior."""
        coefficients, noise_cov = self._mniw.sample(rng)
        nothing = np.zeros((0, data.values.shape[1])), np.zeros((0, self.state_dim))
        return GaussianLDSState(
            np.ascontiguousarray(coefficients.T), noise_cov, *self._sample_emission(rng, *nothing)
        )

    def simulate(
        self, rng: np.random.Generator, state: GaussianLDSState, data: VectorSequences
    ) -> VectorSequences:
        """New states and, given them, new vectors."""
        states = _dynamics(state, data.offsets).sample(rng)
        noise = np.sqrt(state.emission_var) * rng.standard_normal(data.values.shape)
        values = state.offset + linear_means(states, state.loadings.T) + noise
        return replace(data, values=np.where(data.observed[:, None], values, 0.0))

    def log_likelihood(self, state: GaussianLDSState, data: VectorSequences) -> float:
        """Log p(vectors | parameters), the states integrated out."""
        seen = data.observed
        residuals = (data.values - state.offset)[seen]
        own = -0.5 * np.einsum("tk,tk,k->", residuals, residuals, 1.0 / state.emission_var)
        log_dets = np.log(2.0 * math.pi * state.emission_var).sum()
        of_states = filtered(law_of_states(state, data)).log_normalizers.sum()
        return float(own - 0.5 * seen.sum() * log_dets + of_states)

    # ------------------------------------------------------------------ the sampler

    def init(self, rng: np.random.Generator, data: VectorSequences) -> GaussianLDSState:
        """Slow states: moving averages of the vectors along their principal directions."""
        return self._sample_parameters(rng, _principal_states(rng, data, self.state_dim), data)

    def step(
        self, rng: np.random.Generator, state: GaussianLDSState, data: VectorSequences
    ) -> GaussianLDSState:
        """One sweep over all blocks."""
        return self._sample_parameters(rng, law_of_states(state, data).sample(rng), data)

    def _sample_parameters(
        self, rng: np.random.Generator, states: FloatArray, data: VectorSequences
    ) -> GaussianLDSState:
        dynamics = sample_dynamics(rng, self._mniw, states, data.offsets)
        emission = self._sample_emission(rng, data.values[data.observed], states[data.observed])
        return GaussianLDSState(*dynamics, *emission)

    def _sample_emission(
        self, rng: np.random.Generator, values: FloatArray, states: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Loadings, offset and emission variances given the states: conjugate regressions.

        They have the same covariates, so one precision matrix serves all coordinates.
        """
        num_steps, n = values.shape
        x = np.column_stack([np.ones(num_steps), states])
        size = x.shape[1]
        prior = np.diag([self.offset_precision] + [self.loadings_precision] * (size - 1))
        precision = prior + scatter(x, np.zeros(size))
        root = lower_cholesky(precision)
        # precision = L L': with w = L^-1 X'y the mean is L'^-1 w, and y'y - w'w what is left over
        half = invert_lower(root)
        pulled = linear_means(half, np.einsum("tp,tn->pn", x, values))
        left_over = np.einsum("tn,tn->n", values, values) - np.einsum("pn,pn->n", pulled, pulled)
        scale = (1.0 / n if self.emission_scale is None else self.emission_scale) + (
            0.5 * np.maximum(left_over, 0.0)
        )
        emission_var = scale / rng.gamma(self.emission_shape + 0.5 * num_steps, size=n)
        noise = np.sqrt(emission_var) * rng.standard_normal((size, n))
        coefficients = np.einsum("qp,qn->np", half, pulled + noise)
        return (
            np.ascontiguousarray(coefficients[:, 1:]),
            np.ascontiguousarray(coefficients[:, 0]),
            emission_var,
        )

    # ------------------------------------------------------------------ what a state says

    def eigenvalue_moduli(self, state: GaussianLDSState, data: VectorSequences) -> FloatArray:
        """Moduli of the transition's eigenvalues, largest first, ``(state_dim,)``."""
        return np.sort(np.abs(np.linalg.eigvals(state.transition)))[::-1].copy()

    def state_means(self, state: GaussianLDSState, data: VectorSequences) -> FloatArray:
        """E[x_t | all vectors, parameters], ``(num_steps, state_dim)``."""
        return law_of_states(state, data).sample_around(np.random.default_rng(0))[1]

    def log_predictive(self, draw: Mapping[str, FloatArray], data: Sequences) -> FloatArray:
        """Log probability of each step's symbols by the forecast of its vector.

        The Kalman filter's E[y_t | y_<t, parameters], clipped at `probability_floor` and
        normalised.

        Parameters
        ----------
        draw : mapping
            One posterior draw of `predictive_variables`.
        data : Sequences

        Returns
        -------
        array, ``(num_steps,)``
            Without multinomial coefficients; 0 at missing steps.
        """
        state = GaussianLDSState(*(draw[name] for name in self.predictive_variables))
        vectors = as_vector_sequences(data)
        given = filtered(law_of_states(state, vectors)).means
        predicted = np.zeros_like(given)
        predicted[1:] = linear_means(given[:-1], state.transition.T)
        predicted[data.offsets[:-1]] = 0.0
        floor = 0.3 / data.num_symbols if self.probability_floor is None else self.probability_floor
        out = np.empty(data.num_steps)
        for first in range(0, data.num_steps, _BLOCK):
            last = min(first + _BLOCK, data.num_steps)
            means = state.offset + linear_means(predicted[first:last], state.loadings.T)
            probs = np.maximum(means, floor)
            probs /= probs.sum(axis=1, keepdims=True)
            steps = np.repeat(np.arange(last - first), np.diff(data.indptr[first : last + 1]))
            entries = slice(data.indptr[first], data.indptr[last])
            terms = data.counts[entries] * np.log(probs[steps, data.symbols[entries]])
            out[first:last] = np.bincount(steps, terms, minlength=last - first)
        return out


def _dynamics(
    state: GaussianLDSState, offsets: IntArray, seen: DensePotential | None = None
) -> LinearDynamics:
    D = len(state.transition)
    return LinearDynamics(
        state.transition, state.noise_cov, np.zeros(D), np.eye(D), offsets, potential=seen
    )


class Filtered(NamedTuple):
    """Laws of states given what has been seen so far, the step's own potential included.

    Attributes
    ----------
    means, covs : arrays, ``(num_steps, D)`` and ``(num_steps, D, D)``
    log_normalizers : array, ``(num_sequences,)``
        Log of the integral of the prior times the potential.
    """

    means: FloatArray
    covs: FloatArray
    log_normalizers: FloatArray


def filtered(dynamics: LinearDynamics) -> Filtered:
    """The Kalman filter of linear dynamics and their potentials.

    Raises
    ------
    ValueError
        If a step has no Gaussian law.
    """
    (steps, D), sequences = dynamics.shape, len(dynamics.offsets) - 1
    drive, potential = dynamics.parts()
    law = kalman.Law(
        dynamics.offsets, dynamics.transition, dynamics.noise_cov, dynamics.initial_mean,
        dynamics.initial_cov, drive, potential.J, potential.h,
    )  # fmt: skip
    roots = np.empty((steps, D, D)), np.empty((steps, D, D))
    out, covs = kalman.Filtered(np.empty((steps, D)), *roots, np.empty(sequences)), roots[0].copy()
    statuses = over_rows(kalman.filter_chains, sequences, law, out, grain=1)
    failed = [status - 1 for status in statuses if status]
    if failed:
        raise ValueError(
            f"step {min(failed)} has no Gaussian law: its precision is not positive definite or not"
            " finite (is J indefinite there, or has the chain exploded?)"
        )
    over_rows(kalman.filtered_covs, steps, out, covs)
    return Filtered(out.means, covs, out.log_z)


def law_of_states(state: GaussianLDSState, data: VectorSequences) -> LinearDynamics:
    """The law of the states given parameters and vectors."""
    weighted = state.loadings / state.emission_var[:, None]
    precision = np.einsum("kd,ke->de", weighted, state.loadings)
    J = data.observed[:, None, None] * (0.5 * (precision + precision.T))
    h = np.einsum("tk,dk->td", data.values, np.ascontiguousarray(weighted.T))
    h = np.where(data.observed[:, None], h - np.einsum("k,kd->d", state.offset, weighted), 0.0)
    return _dynamics(state, data.offsets, DensePotential(J, h))


def _principal_states(
    rng: np.random.Generator, data: VectorSequences, state_dim: int
) -> FloatArray:
    """Moving averages of the vectors along their principal directions, of unit variance."""
    seen = data.observed
    centred = np.where(seen[:, None], data.values - data.values[seen].mean(axis=0), 0.0)
    smooth = np.empty_like(centred)
    for first, last in itertools.pairwise(data.offsets):
        running = np.concatenate([np.zeros((1, centred.shape[1])), centred[first:last].cumsum(0)])
        t = np.arange(last - first)
        low, high = np.maximum(t - _REACH, 0), np.minimum(t + _REACH + 1, last - first)
        smooth[first:last] = (running[high] - running[low]) / (high - low)[:, None]
    directions = rng.standard_normal((smooth.shape[1], state_dim))
    for _ in range(_PASSES):
        directions = np.einsum("tn,td->nd", smooth, linear_means(smooth, directions))
        directions = np.linalg.qr(directions)[0]
    states = np.zeros((len(smooth), state_dim))
    found = directions.shape[1]  # n where that is less than state_dim
    states[:, :found] = linear_means(smooth, directions)
    states /= np.maximum(states.std(axis=0), 1e-10)
    return states + _JITTER * rng.standard_normal(states.shape)

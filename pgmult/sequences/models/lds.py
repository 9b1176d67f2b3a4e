r"""Linear dynamical systems of symbols, words and counts, under the stick-breaking link (SBM-LDS).

Sequences of symbols, or of rows of counts, are driven by a state that moves linearly (Linderman,
Johnson and Adams 2015, section 5). With inputs u_t, where there are any::

    (A, B)', Q   ~  matrix-normal inverse-Wishart                       dynamics
    x_first      ~  N(m, V)                                             every sequence's first state
    x_t          ~  N(A x_{t-1} + B u_t, Q)
    v_d          ~  IG(loading_shape, loading_scale),     d = 1..D
    c_kd         ~  N(0, v_d),                            k = 1..K-1    loadings
    e_k          ~  N(0, emission_var I)                                emission weights
    b_k          ~  N(m_k, s_k), sigma(b_k) like Beta(a, (K - k) a)     offset
    s_k          ~  noise_scale |t_3|, e_tk ~ N(0, s_k^2)               where counts scatter
    psi_t        =  b + E u_t + C x_t (+ e_t)
    counts_t     ~  Multinomial(total_t, stick-breaking(psi_t))

in which the sticks break in the data's `order`, frequent symbols first. First states have a mean
and covariance of their own, (m, V) ~ NIW. A small v_d switches coordinate d of the state off, so a
D larger than needed does little harm.

Steps with many observations vary more than multinomial counts do. Independent noise e_t at each
step, off where steps have few observations, keeps forecasts calibrated. Forecasts and particle
filters treat it as further states without memory.

Offsets have the Gaussian prior whose *probabilities* have the moments of a Dirichlet. Matching the
moments of log odds instead gives sticks the long left tail of a beta variable's logarithm as a
right tail as well, so that early sticks of a thousand take far too much, and symbols never seen, at
the end, have next to nothing left.

Chains move as `pgmult.sequences.updates.lds_moves` describes.

The data do not identify the basis of the state: after a change of basis (x, A, Q, C) fit equally
well. Look at what does not depend on the basis: probabilities, `eigenvalue_moduli` of A, the log
likelihood, and, the slowest to converge, how strongly the noise of a step shows at once and a step
later (`amplitudes` and `lagged_amplitudes`, square roots of the singular values of C Q C' and of C
A Q C').

>>> import numpy as np, pgmult
>>> data = pgmult.sequences.as_sequences(["ABABABAB", "BABABA"])
>>> posterior = pgmult.sample(
...     pgmult.sequences.MultinomialLDS(state_dim=2), data,
...     draws=10, tune=10, chains=1, random_seed=0, progressbar=False,
... )
>>> posterior["last_probs"].shape
(1, 10, 2, 2)
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal, cast
from zlib import crc32

import numpy as np
from scipy.linalg import block_diag
from scipy.special import expit, logit

from pgmult.core.parameters import Checked, Positive, axes_of, real, whole
from pgmult.core.potentials import DensePotential
from pgmult.core.typing import Coords, FloatArray, Generator, IntArray, Names
from pgmult.formulas.design import Design
from pgmult.latent.predictors import as_priors
from pgmult.links import StickBreaking
from pgmult.priors import MatrixNormalInverseWishart, NormalInverseWishart
from pgmult.priors.gaussian import lower_cholesky
from pgmult.priors.matrix_normal import linear_means
from pgmult.sampling.blocks import SampledInBlocks, Sums, as_block_rows
from pgmult.sequences.active_sticks import ActiveSticks, Pairs
from pgmult.sequences.data.sequences import Sequences, sequences_for, simulate_symbols
from pgmult.sequences.models.base import SequenceModel
from pgmult.sequences.priors.dynamics import LinearDynamics
from pgmult.sequences.priors.state_space import LDSState, StateSpaceDraw, joined_states
from pgmult.sequences.updates.lds_moves import PolyaGamma, sampler
from pgmult.sequences.updates.pooled import Pooled, pooled_of
from pgmult.sequences.updates.sites import many_a_step, sample_noise_sd

as_state_dim = whole(1, 1_000)  # a sweep takes their cube a step: more is a slip
_MOST_STATES, _FEW_STATES = 10, 4
_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(48)
_NODE_WEIGHTS = _NODE_WEIGHTS / _NODE_WEIGHTS.sum()
_MOST_NEWTON_STEPS = 50


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MultinomialLDS(SequenceModel, SampledInBlocks[Sequences, LDSState], Checked):
    """Linear dynamical system with multinomial observations, sampled in exact blocks.

    Parameters
    ----------
    state_dim : int
        D >= 1. Where steps have many counts, a dimension less than symbols (ten at most) forecasts
        best: with fewer, what is left of each symbol's ups and downs passes for white noise, and
        intervals are too narrow. `pgmult.sequences.search_state_dim` compares some.
    inputs : "both", "dynamics" or "emissions"
        What the inputs of the data, if any, act on.
    dynamics : MatrixNormalInverseWishart, optional
        Prior of (A, B)' and Q. By default A has mean I, worth one step, where steps with
        observations have twenty on average, and mean I / 2, worth four steps, where they have
        fewer; weights of inputs are worth one step, and E[Q] = I.
    start : NormalInverseWishart, optional
        Prior of m and V; by default `NormalInverseWishart.weak` at 0.
    loading_shape, loading_scale : float
        Inverse-gamma prior of the variance of each column of the loadings.
    emission_var : float
        Prior variance of emission weights: give inputs a standard deviation of about 1.
    concentration : float
        a, of the prior of the offset: sigma(b_k) has the mean and variance that it has under
        symmetric Dirichlet probabilities. As there, 1 is worth one observation of every symbol.
    overdispersion : "auto" or bool
        Whether psi has white noise at every step; "auto" where steps with observations have twenty
        on average.
    priors : mapping from term to distribution, optional
        Of standard deviations of effects of groups and curves, half-t(3) by default: see
        `pgmult.regression.AdditiveRegression`. These effects act on what `inputs` says; those on
        the dynamics are in units of Q.
    noise_scale : float
        Scale of the half-t prior, with three degrees of freedom, of the noise's standard
        deviations.
    block_rows : int
        Sequences per block: see `pgmult.sampling.blocks`. It changes the draws, not their
        distribution. Of more than one block no sweep has a Hamiltonian path.

    Notes
    -----
    The log likelihood is that of the observations *given the states*, so it does not measure
    prediction. For that, score `pgmult.sequences.one_step_ahead` on sequences held out.

    A sweep costs O(P (D + U)**2 + T D**3 + K (D + U)**3), and a path some ten times O(P (D + U) +
    T D (D + U)), for P active (step, stick) pairs, T steps and U inputs, and memory is
    O(P + T D**2 + K (D + U)**2).
    """

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
    block_rows: Annotated[int, as_block_rows] = 256

    row_dim: ClassVar[str] = "sequence"
    cell_dim: ClassVar[str] = "step"
    whole_names: ClassVar[frozenset[str]] = frozenset({"mean_probs"})
    dims: ClassVar[Mapping[str, Names]] = axes_of(LDSState) | {
        "transition": ("state", "other_state"), "input_weights": ("state", "input"),
        "loadings": ("stick", "state"), "emission_weights": ("stick", "input"),
        "offset": ("stick",), "last_states": ("sequence", "state"),
        "last_probs": ("sequence", "symbol"), "mean_probs": ("symbol",),
        "probs": ("step", "symbol"), "eigenvalue_moduli": ("mode",), "amplitudes": ("axis",),
        "lagged_amplitudes": ("axis",), "sds": ("pooled", "sd"),
    }  # fmt: skip
    label_dims: ClassVar[frozenset[str]] = frozenset({"state", "other_state"})
    basis_dims: ClassVar[frozenset[str]] = label_dims
    predictive_variables: ClassVar[Names] = (
        "transition", "noise_cov", "initial_mean", "initial_cov", "loadings", "offset",
        "input_weights", "emission_weights", "noise_sd",
    )  # fmt: skip
    monitored: ClassVar[Names] = ("last_probs",)
    default_keep: ClassVar[Names] = (
        *predictive_variables[:-1], "last_states", "last_probs", "eigenvalue_moduli", "amplitudes",
        "lagged_amplitudes", "noise_sd", "hyperparameters", "sds",
    )  # fmt: skip

    def _complete(self) -> None:
        D = self.state_dim
        size = D if self.dynamics is None else self.dynamics.mean.shape[1]
        if size != D:
            raise ValueError(f"dynamics must be of {D} dimensions, got {size}")
        if self.start is None:
            self._set(start=NormalInverseWishart.weak(np.zeros(D)))
        elif len(self.start.mean) != D:
            raise ValueError(f"start must have {D} dimensions, got {len(self.start.mean)}")

    # ------------------------------------------------------------------ data

    def as_data(self, data: object) -> Sequences:
        """`Sequences`, from what `as_sequences` takes."""
        sequences = sequences_for("MultinomialLDS", data, "inputs")
        design = sequences.design
        if design is not None and design.terms:
            pooled_of(design, self.priors, self.state_dim)  # refuses what it does not take
            if not sequences.num_effects:
                sequences = sequences.with_design(design, effects=True)
        states, inputs = self.state_dim, self._num_fixed(sequences)
        rows = states + inputs if self.dynamics is None else len(self.dynamics.mean)
        if rows != states + inputs:
            each = f"each of {states} states and {inputs} inputs"
            raise ValueError(f"dynamics must have a row for {each}, got {rows}")
        return sequences

    def coords(self, data: Sequences) -> Coords:
        """Labels of symbols, or their numbers; of sequences where they have any, and of inputs.

        A stick has its symbol's label.
        """
        sticks, pooled = data.labels[data.order[:-1]], self.pooled(data)
        noisy = sticks if self.is_noisy(data) else sticks[:0]
        labels = {"symbol": data.labels, "stick": sticks, "noisy_stick": noisy}
        if data.names is not None:
            labels["sequence"] = data.names
        if pooled is None:
            return labels
        blocks, size = [*map(str, sticks), "states"], self.num_pooled(len(sticks))
        entered = blocks[-1:] if self.inputs == "dynamics" else blocks[:size]
        return {**labels, "input": pooled.names, "pooled": entered, "sd": pooled.latent.sd_names}

    def entering(self, data: Sequences, place: str) -> FloatArray:
        """The inputs that enter the "dynamics" or the "emissions", ``(num_steps, number)``."""
        if data.inputs is None or self.inputs not in ("both", place):
            return np.empty((data.num_steps, 0))
        return data.inputs

    def _num_fixed(self, data: Sequences) -> int:
        """Inputs that enter the dynamics, without effects of terms."""
        return max(0, int(self.entering(data, "dynamics").shape[1]) - data.num_effects)

    def pooled(self, data: Sequences) -> Pooled | None:
        """The terms of the inputs."""
        if not data.num_effects:
            return None
        return pooled_of(cast(Design, data.design), self.priors, self.state_dim)

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
        one = np.ones((data.num_steps, 1))
        return np.concatenate([states, self.entering(data, "emissions"), one], axis=1)

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

    def prior(self, rng: Generator, data: Sequences) -> LDSState:
        """A state from the prior."""
        D, n, U = self.state_dim, data.num_symbols - 1, data.num_inputs
        x, pooled, nowhere = np.empty((0, 0)), self.pooled(data), np.empty((0, D))
        if pooled is not None:
            terms, size = pooled.of_stick.terms, self.num_pooled(n)
            x = np.array([np.concatenate([t.sample(rng) for t in terms]) for _ in range(size)])
        emitted, driven = U * (self.inputs != "dynamics"), D + U * (self.inputs != "emissions")
        loading_var = self.loading_scale / rng.gamma(self.loading_shape, size=D)
        mean, var = self.weight_moments(loading_var, x, data)
        white = [rng.standard_normal((n, size)) for size in (D, emitted, 1)]
        weights = mean + np.sqrt(var) * np.concatenate(white, axis=1)
        coefficients, noise_cov = self.dynamics_prior(data, x).sample(rng)
        dynamics, first = coefficients[:driven].T.copy(), self.gaussian_prior.sample(rng)
        state = LDSState(
            nowhere, dynamics, noise_cov, *first, weights, loading_var, nowhere, np.empty(0), x
        )
        states = self.states_given(state, data).sample(rng)
        sd = sample_noise_sd(rng, self.noise_scale, n * self.is_noisy(data))
        noise = sd * rng.standard_normal((data.num_steps, len(sd)))
        return state.changed(states=states, noise=noise, noise_sd=sd)

    @property
    def gaussian_prior(self) -> NormalInverseWishart:
        """The prior of the mean and covariance of first states."""
        return cast(NormalInverseWishart, self.start)  # set by _complete

    def dynamics_prior(
        self, data: Sequences, x: FloatArray | None = None
    ) -> MatrixNormalInverseWishart:
        """The prior of (A, B)' and Q, with the precisions of effects at hyperparameters."""
        prior, pooled = self.dynamics, self.pooled(data)
        if prior is None:
            about, weight = (1.0, 1.0) if many_a_step(data) else (0.5, 4.0)
            prior = _default_dynamics(self.state_dim, self._num_fixed(data), about, weight)
        if pooled is None or x is None or self.inputs == "emissions":
            return prior
        precision = block_diag(prior.row_precision, np.diag(1.0 / pooled.variances(x[-1])))
        mean = np.concatenate([prior.mean, np.zeros((pooled.num_effects, self.state_dim))])
        return replace(prior, mean=mean, row_precision=precision)

    def offset_moments(self, data: Sequences) -> tuple[FloatArray, FloatArray]:
        """Prior mean and variance of each stick's offset."""
        return uniform_sticks(data.num_symbols, self.concentration)

    def weight_moments(
        self, loading_var: FloatArray, x: FloatArray, data: Sequences
    ) -> tuple[FloatArray, FloatArray]:
        """Prior means and variances of the weights, given those of loadings and hyperparameters."""
        D, pooled, U = self.state_dim, self.pooled(data), self.entering(data, "emissions").shape[1]
        mean, var = np.zeros((2, data.num_symbols - 1, D + U + 1))
        var[:, :D], var[:, D:] = loading_var, self.emission_var
        if pooled is not None and U:
            var[:, D + pooled.fixed : -1] = [pooled.variances(at) for at in x[: len(var)]]
        mean[:, -1], var[:, -1] = self.offset_moments(data)
        return mean, var

    def states_given(
        self, state: LDSState, data: Sequences, potential: DensePotential | None = None
    ) -> LinearDynamics:
        """The distribution of the states given all else, times a potential."""
        first, u = (state.initial_mean, state.initial_cov), self.entering(data, "dynamics")
        A, Q = state.transition, state.noise_cov
        states = LinearDynamics(A, Q, *first, data.offsets, potential=potential)
        return states.driven(u, state.input_weights) if u.size else states

    # ------------------------------------------------------------------ the sampler

    def sampler(self, data: Sequences) -> PolyaGamma:
        """Return how chains of a data set move: see `pgmult.sequences.updates.lds_moves`."""
        return sampler(self, data)

    def local_summary(self, state: LDSState, data: Sequences) -> Sums:
        """The log likelihood of a block of sequences."""
        if len(state.noise_sd):
            pairs = Pairs.of(data)
            fit = pairs.log_likelihoods(self.psi(state, data)[pairs.step, pairs.stick]).sum()
        else:
            design = self.design(state.states, data)
            fit = ActiveSticks.of(data).log_likelihood(design, state.weights).sum()
        return Sums((), (np.array(fit),))

    # ------------------------------------------------------------------ what a state says

    def simulate(self, rng: Generator, state: LDSState, data: Sequences) -> Sequences:
        """Sequences of the same lengths, totals and inputs."""
        return simulate_symbols(rng, self.probs(state, data), data)

    def mean_probs(self, state: LDSState, data: Sequences) -> FloatArray:
        """Probabilities averaged over all steps, ``(num_symbols,)``."""
        return np.asarray(self.probs(state, data).mean(axis=0))

    def last_states(self, state: LDSState, data: Sequences) -> FloatArray:
        """The states of each sequence's last step, ``(num_sequences, state_dim)``: forecasts."""
        return state.states[data.offsets[1:] - 1]

    def last_probs(self, state: LDSState, data: Sequences) -> FloatArray:
        """Probabilities at each sequence's last step, ``(num_sequences, num_symbols)``."""
        return self.link(data).probs(self.psi(state, data, data.offsets[1:] - 1))

    def sds(self, state: LDSState, data: Sequences) -> FloatArray:
        """Standard deviations of effects on each stick and, in units of Q's root, on states."""
        pooled = self.pooled(data)
        if pooled is None:
            return np.empty((0, 0))
        return np.array([pooled.latent.sds(x) for x in state.hyperparameters])

    def state_space(self, draw: Mapping[str, Any], link: Any) -> StateSpaceDraw:
        """A draw of `predictive_variables`; noise is states without a memory."""
        *names, noise_sd = self.predictive_variables
        point = StateSpaceDraw(link=link, **{name: draw[name] for name in names})
        return point.with_noise(draw[noise_sd]) if len(draw[noise_sd]) else point

    def at_levels(self, draw: dict[str, Any], data: Sequences) -> dict[str, Any]:
        """The draw with effects of all levels that data have, those of new ones drawn.

        They are the same whenever they are drawn for the same draw and levels.
        """
        pooled, x = cast(Pooled, self.pooled(data)), draw["hyperparameters"]
        rng, n = np.random.default_rng(crc32(draw["loadings"].tobytes())), len(draw["loadings"])
        emits, drives = np.zeros((n, data.num_inputs)), np.zeros((self.state_dim, data.num_inputs))
        if self.inputs != "dynamics":
            new = np.array([pooled.new_effects(rng, coordinates) for coordinates in x[:n]])
            emits = np.concatenate([draw["emission_weights"], new], axis=1)
        if self.inputs != "emissions":
            white = [pooled.new_effects(rng, x[-1]) for _ in range(self.state_dim)]
            new = lower_cholesky(draw["noise_cov"]) @ np.array(white)
            drives = np.concatenate([draw["input_weights"], new], axis=1)
        return {**draw, "emission_weights": emits, "input_weights": drives}

    def row_probs(self, draw: Mapping[str, object], data: Sequences) -> FloatArray:
        """Probabilities of steps: ``probs``, or those given ``states`` and parameters."""
        if "probs" in draw:
            return np.asarray(draw["probs"])
        if "states" not in draw:
            raise ValueError("the posterior must have kept probs or states (pass it in keep=)")
        point = self.state_space(draw, self.link(data))
        return point.link.probs(point.psi(joined_states(draw), data.inputs))


@lru_cache(maxsize=8)
def _default_dynamics(D: int, U: int, about: float, weight: float) -> MatrixNormalInverseWishart:
    precision = np.diag(np.concatenate([np.full(D, weight), np.ones(U)]))
    return MatrixNormalInverseWishart(about * np.eye(D + U, D), precision, D + 2.0, np.eye(D))


def usual_state_dim(data: Sequences) -> int:
    """Dimensions that data support: a state for each stick, if steps tell each, or four at most."""
    most = _MOST_STATES if many_a_step(data) else _FEW_STATES
    return max(1, min(most, data.num_symbols - 1))


def _expected(values: FloatArray) -> FloatArray:
    """Means over the nodes, the last axis."""
    return np.asarray(np.einsum("kn,n->k", values, _NODE_WEIGHTS))


@lru_cache(maxsize=8)
def uniform_sticks(num_symbols: int, concentration: float) -> tuple[FloatArray, FloatArray]:
    """Means and variances, ``(num_symbols - 1,)`` each, of sticks of exchangeable symbols.

    If psi_k ~ N(mean_k, var_k), sigma(psi_k) has the mean and variance of Beta(a, (K - k) a), which
    stick k has under a symmetric Dirichlet(a), a >= 0.1 (below it, the mass is at 0 and 1):
    Newton's method, moments by Gauss-Hermite rule.
    """
    b = concentration * np.arange(num_symbols - 1, 0, -1)
    total = concentration + b
    mean_share, var_share = concentration / total, concentration * b / total**2 / (total + 1.0)
    var = np.log1p(var_share / (mean_share * (1.0 - mean_share)) ** 2)
    mean = logit(mean_share) - 0.5 * var * (1.0 - 2.0 * mean_share)
    log_sd = 0.5 * np.log(var)
    for _ in range(_MOST_NEWTON_STEPS):
        noise = np.exp(log_sd)[:, None] * _NODES
        share = expit(mean[:, None] + noise)
        off = (share - mean_share[:, None]) / np.sqrt(var_share)[:, None]
        rate = share * (1.0 - share) / np.sqrt(var_share)[:, None]
        first, second = _expected(off), 0.5 * (_expected(off * off) - 1.0)
        by_mean, by_sd = _expected(rate), _expected(rate * noise)
        cross_mean, cross_sd = _expected(off * rate), _expected(off * rate * noise)
        determinant = by_mean * cross_sd - by_sd * cross_mean
        step_mean = (first * cross_sd - by_sd * second) / determinant
        step_sd = (by_mean * second - first * cross_mean) / determinant
        mean = mean - np.clip(step_mean, -1.0, 1.0)
        log_sd = log_sd - np.clip(step_sd, -0.5, 0.5)
        if max(np.abs(step_mean).max(), np.abs(step_sd).max()) < 1e-10:
            break
    var = np.exp(2.0 * log_sd)
    mean.flags.writeable = var.flags.writeable = False
    return mean, var

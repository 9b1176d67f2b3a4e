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

Given one Pólya-gamma variable for each stick that a step reaches, everything is Gaussian. A sweep:

0. A, B, C, E, b, x         a Hamiltonian path by the likelihood itself, where steps have few
                            observations: see `pgmult.sequences.updates.white_paths`
   s, e, C, E, b, x         moves around Gaussian sites, where steps have many observations: see
                            `pgmult.sequences.updates.carried`
1. omega | x, C, E, b       Pólya-gamma, on active sticks alone: see `ActiveSticks`
2. x | omega, the rest      filter forwards, sample backwards, all steps at once
3. C, E, b | omega, x, v    Gaussian, row by row
4. v | C                    inverse gamma
5. level of x and b         a translation of all x and the b that undoes it: Gaussian
6. A, B, Q | x              matrix-normal inverse-Wishart; m, V | x normal-inverse-Wishart
7. scales of x and C        factors of x and the C that undoes them: a slice update

Given what they share, sequences are independent, so a sweep is made of blocks of them
(`pgmult.sampling.blocks`). A block does 0 to 2 and sums what 3 to 7 need: cross products of psi's
design for each stick, moments of steps and of first states. At the end its states are moved by 5
and 7. A path (0) takes a single block.

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
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar
from zlib import crc32

import numpy as np

from pgmult.core.typing import FloatArray
from pgmult.priors.gaussian import lower_cholesky
from pgmult.priors.matrix_normal import linear_means
from pgmult.sampling.blocks import Ask, Asks, Sums, SweepsInBlocks, as_block_rows
from pgmult.sequences.active_sticks import ActiveSticks, Pairs
from pgmult.sequences.data.sequences import Sequences, simulate_symbols, step_rows
from pgmult.sequences.models._state_space import LDSState, LinearSystem
from pgmult.sequences.priors.state_space import StateSpaceDraw, joined_states
from pgmult.sequences.updates import lds_moves as moves
from pgmult.sequences.updates.carried import AroundSites, NoiseIntegratedOut, many_a_step
from pgmult.sequences.updates.dynamics import first_sums, transition_sums
from pgmult.sequences.updates.spectral_start import spectral_states
from pgmult.sequences.updates.white_paths import few_states

_START_SWEEPS = 3  # of the weights given the states that a chain starts from
_START_CONCENTRATION = 0.5  # added to counts of symbols where the offset starts


@dataclass(frozen=True, slots=True, eq=False)
class MultinomialLDS(SweepsInBlocks, LinearSystem):
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
    priors : mapping from term to law, optional
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

    block_rows: Annotated[int, as_block_rows] = 256

    row_dim: ClassVar[str] = "sequence"
    cell_dim: ClassVar[str] = "step"
    whole_names: ClassVar[frozenset[str]] = frozenset({"mean_probs"})

    def has_sites(self, data: Sequences) -> bool:
        """Whether sweeps have moves around sites."""
        return self.is_noisy(data) or many_a_step(data)

    def has_paths(self, data: Sequences) -> bool:
        """Whether sweeps have a path by the likelihood itself."""
        return (
            few_states(data.whole.num_steps, self.state_dim)
            and data.whole.num_sequences <= self.block_rows  # one block
            and not self.has_sites(data)
        )

    def init(self, rng: np.random.Generator, data: Sequences) -> LDSState:
        """A start from spectral states and the weights and dynamics that go with them."""
        D, driving, pooled = self.state_dim, self.driving(data), self.pooled(data)
        states = spectral_states(rng, data, D)
        used = np.bincount(data.symbols, data.counts, data.num_symbols) + _START_CONCENTRATION
        offset, design = self.link(data).inverse(used / used.sum()), self.design(states, data)
        weights = np.zeros((len(offset), design.shape[1]))
        weights[:, -1] = offset
        loading_var = np.full(D, self.loading_scale / self.loading_shape)
        x, sd = np.empty((0, 0)), np.full(len(offset) * self.is_noisy(data), self.noise_scale)
        if pooled is not None:
            x = np.tile(pooled.of_stick.start(), (self.num_pooled(len(offset)), 1))
        about = np.eye(D, D if driving is None else D + data.num_inputs)
        first_mean = states[data.offsets[:-1]].mean(axis=0)
        state = LDSState(
            states, about, np.eye(D), first_mean, np.eye(D), weights, loading_var,
            np.zeros((data.num_steps, len(sd))), sd, x,
        )  # fmt: skip
        active = ActiveSticks.of(data)
        for _ in range(_START_SWEEPS):
            omega = active.augment(rng, design, state.weights)
            seen = active.statistics(omega, design)
            state = moves.draw_weights(rng, self, state, *seen, data, effects=False)
        later = transition_sums(states, data.offsets, driving, about)
        first = first_sums(states, data.offsets, first_mean)
        return moves.draw_dynamics(rng, self, state, later, first, data)

    def local_step(
        self, rng: np.random.Generator, state: LDSState, data: Sequences
    ) -> tuple[LDSState, AroundSites | NoiseIntegratedOut | None, Sums]:
        """Sites of a block; or its states given omega, after a path with dynamics and weights."""
        if self.has_sites(data):
            return state, AroundSites(self, state, data), Sums((), (np.zeros(()),))
        if not self.has_paths(data):
            return moves.given_omega(rng, self, state, data)
        state, _, sums = moves.given_omega(rng, self, moves.walk(rng, self, state, data), data)
        return state, None, Sums((), (state.dynamics, state.weights, *sums.rounded))

    def local_turn(
        self,
        rng: np.random.Generator,
        state: LDSState,
        held: AroundSites,
        data: Sequences,
        weights: FloatArray,
    ) -> tuple[LDSState, AroundSites, Sums]:
        """A block's states after a turn around its sites."""
        moves.turn(rng, self, replace(state, weights=weights), held, data)
        return state, held, Sums((), (np.zeros(()),))

    def local_states(
        self,
        rng: np.random.Generator,
        state: LDSState,
        held: AroundSites,
        data: Sequences,
        weights: FloatArray,
    ) -> tuple[LDSState, NoiseIntegratedOut | None, Sums]:
        """A block's states given omega."""
        state = replace(state, states=held.states, weights=weights)
        return moves.given_omega(rng, self, state, data, held)

    def local_move(
        self,
        rng: np.random.Generator | None,
        state: LDSState,
        held: NoiseIntegratedOut | None,
        data: Sequences,
        delta: FloatArray,
        factors: FloatArray,
        weights: FloatArray,
    ) -> tuple[LDSState, None, Sums]:
        """A block's states after the moves of their level and scales; their noise."""
        states, noise = state.states + delta, state.noise
        if held is not None and rng is not None:
            noise = held.sample_noise(rng, linear_means(self.design(states, data), weights.T))
        return replace(state, states=states * factors, noise=noise), None, Sums((), (delta,))

    def shared_step(
        self, rng: np.random.Generator, state: LDSState, sums: Sums, data: Sequences,
        ask: Asks,
    ) -> LDSState:  # fmt: skip
        """All that sequences share; their level and scales."""
        if self.has_sites(data):
            state, sums = moves.around_sites(rng, self, state, data, ask)
        elif self.has_paths(data):
            dynamics, weights, *rounded = sums.rounded
            state, sums = replace(state, dynamics=dynamics, weights=weights), Sums((), (*rounded,))
        squares, linear, later, first = moves.read_sums(sums, state)
        state = moves.draw_weights(rng, self, state, squares, linear, data)
        state, delta = moves.move_level(rng, self, state, later, data)
        later, first = moves.moved_sums(later, first, delta)
        state = moves.draw_dynamics(rng, self, state, later, first, data)
        moved, factors = moves.move_scales(rng, self, state, data)
        has_noise = len(state.noise_sd) > 0
        ask(Ask("local_move", (delta, factors, state.weights), moves=True, draws=has_noise))
        return moved

    def local_summary(self, state: LDSState, data: Sequences) -> Sums:
        """The log likelihood of a block of sequences."""
        if len(state.noise_sd):
            pairs = Pairs.of(data)
            psi = self.psi(state, data)[pairs.step, pairs.stick]
            fit = (pairs.taken * psi - pairs.reaching * np.logaddexp(0.0, psi)).sum()
        else:
            design = self.design(state.states, data)
            fit = ActiveSticks.of(data).log_likelihood(design, state.weights).sum()
        return Sums((), (np.array(fit),))

    # ------------------------------------------------------------------ what a state says

    def simulate(self, rng: np.random.Generator, state: LDSState, data: Sequences) -> Sequences:
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
        pooled, x = self.pooled(data), draw["hyperparameters"]
        assert pooled is not None  # data have effects
        rng, n = np.random.default_rng(crc32(draw["loadings"].tobytes())), len(draw["loadings"])
        emits, drives = np.zeros((n, data.num_inputs)), np.zeros((self.state_dim, data.num_inputs))
        if self.inputs != "dynamics":
            new = np.array([pooled.new_effects(rng, own) for own in x[:n]])
            emits = np.concatenate([draw["emission_weights"], new], axis=1)
        if self.inputs != "emissions":
            white = [pooled.new_effects(rng, x[-1]) for _ in range(self.state_dim)]
            new = lower_cholesky(draw["noise_cov"]) @ np.array(white)
            drives = np.concatenate([draw["input_weights"], new], axis=1)
        return {**draw, "emission_weights": emits, "input_weights": drives}

    observed_rows = staticmethod(step_rows)

    def row_probs(self, draw: Mapping[str, Any], data: Sequences) -> FloatArray:
        """Of ``probs``, or of ``states`` and what is kept by default: given the states."""
        if "probs" in draw:
            return np.asarray(draw["probs"])
        if "states" not in draw:
            raise ValueError("the posterior must have kept probs or states (pass it in keep=)")
        point = self.state_space(draw, self.link(data))
        return point.link.probs(point.psi(joined_states(draw), data.inputs))

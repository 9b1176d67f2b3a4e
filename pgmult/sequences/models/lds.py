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

import warnings
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np

from pgmult.core.typing import FloatArray
from pgmult.priors.matrix_normal import linear_means
from pgmult.sampling.blocks import Ask, Asks, Sums, SweepsInBlocks, as_block_rows
from pgmult.sampling.diagnostics import ConvergenceWarning
from pgmult.sequences.active_sticks import ActiveSticks, Pairs, slow_symbol, stick_rates
from pgmult.sequences.data.sequences import Sequences
from pgmult.sequences.models._state_space import START_SWEEPS
from pgmult.sequences.models._stick_breaking_lds import StickBreakingLDS, StickBreakingState
from pgmult.sequences.updates import lds_moves as moves
from pgmult.sequences.updates.carried import Sited, Softened, many_a_step
from pgmult.sequences.updates.dynamics import first_sums, transition_sums
from pgmult.sequences.updates.white_paths import few_states


@dataclass(frozen=True, slots=True, eq=False)
class MultinomialLDS(SweepsInBlocks, StickBreakingLDS):
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
    update : {"auto", "gibbs"}
        Whether moves without Pólya-gamma variables come on top of the sweep given these: "auto" has
        moves around sites where steps have twenty observations on average, and Hamiltonian paths by
        the likelihood itself where they have fewer. Noise always uses the former.
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

    update: Literal["auto", "gibbs"] = "auto"
    block_rows: Annotated[int, as_block_rows] = 256

    row_dim: ClassVar[str] = "sequence"
    cell_dim: ClassVar[str] = "step"
    whole_names: ClassVar[frozenset[str]] = frozenset({"mean_probs"})

    def has_sites(self, data: Sequences) -> bool:
        """Whether sweeps have moves around sites: noise has no others."""
        return self.is_noisy(data) or (self.update != "gibbs" and many_a_step(data))

    def has_paths(self, data: Sequences) -> bool:
        """Whether sweeps have a path by the likelihood itself."""
        return (
            self.update == "auto"
            and few_states(data.whole.num_steps, self.state_dim)
            and data.whole.num_sequences <= self.block_rows  # one block
            and not self.has_sites(data)
        )

    def init(self, rng: np.random.Generator, data: Sequences) -> StickBreakingState:
        """A start from spectral states and the weights and dynamics that go with them.

        Warns
        -----
        ConvergenceWarning
            If ``update="gibbs"`` would hardly move the states.
        """
        slow = slow_symbol(data) if self.update == "gibbs" else None
        if slow is not None:
            warnings.warn(slow, ConvergenceWarning, stacklevel=2)
        states, design, weights, loading_var = self._start(rng, data)
        D, driving, pooled = self.state_dim, self.driving(data), self.pooled(data)
        x, sd = np.empty((0, 0)), np.full(self._num_noisy(data), self.noise_scale)
        if pooled is not None:
            x = np.tile(pooled.of_stick.start(), (self._num_pooled(len(weights)), 1))
        about = np.eye(D, D if driving is None else D + data.num_inputs)
        first_mean = states[data.offsets[:-1]].mean(axis=0)
        state = StickBreakingState(
            states, about, np.eye(D), first_mean, np.eye(D), weights, loading_var,
            np.zeros((data.num_steps, len(sd))), sd, x,
        )  # fmt: skip
        active = ActiveSticks.of(data)
        for _ in range(START_SWEEPS):
            omega = active.augment(rng, design, state.weights)
            seen = active.statistics(omega, design)
            state = moves.draw_weights(rng, self, state, *seen, data, effects=False)
        later = transition_sums(states, data.offsets, driving, about)
        first = first_sums(states, data.offsets, first_mean)
        return moves.draw_dynamics(rng, self, state, later, first, data)

    def local_step(
        self, rng: np.random.Generator, state: StickBreakingState, data: Sequences
    ) -> tuple[StickBreakingState, Sited | Softened | None, Sums]:
        """Sites of a block; or its states given omega, after a path with dynamics and weights."""
        if self.has_sites(data):
            return state, Sited.of(self, state, data), Sums((), (np.zeros(()),))
        if not self.has_paths(data):
            return moves.given_omega(rng, self, state, data)
        state, _, sums = moves.given_omega(rng, self, moves.walk(rng, self, state, data), data)
        return state, None, Sums((), (state.dynamics, state.weights, *sums.rounded))

    def local_turn(
        self,
        rng: np.random.Generator,
        state: StickBreakingState,
        held: Sited,
        data: Sequences,
        weights: FloatArray,
    ) -> tuple[StickBreakingState, Sited, Sums]:
        """A block's states after a turn around its sites."""
        if self.update != "gibbs":
            moves.turn(rng, self, replace(state, weights=weights), held, data)
        return state, held, Sums((), (np.zeros(()),))

    def local_states(
        self,
        rng: np.random.Generator,
        state: StickBreakingState,
        held: Sited,
        data: Sequences,
        weights: FloatArray,
    ) -> tuple[StickBreakingState, Softened | None, Sums]:
        """A block's states given omega."""
        state = replace(state, states=held.states, weights=weights)
        return moves.given_omega(rng, self, state, data, held)

    def local_move(
        self,
        rng: np.random.Generator | None,
        state: StickBreakingState,
        held: Softened | None,
        data: Sequences,
        delta: FloatArray,
        factors: FloatArray,
        weights: FloatArray,
    ) -> tuple[StickBreakingState, None, Sums]:
        """A block's states after the moves of their level and scales; their noise."""
        states, noise = state.states + delta, state.noise
        if held is not None and rng is not None:
            noise = held.sample_noise(rng, linear_means(self.design(states, data), weights.T))
        return replace(state, states=states * factors, noise=noise), None, Sums((), (delta,))

    def shared_step(
        self, rng: np.random.Generator, state: StickBreakingState, sums: Sums, data: Sequences,
        ask: Asks,
    ) -> StickBreakingState:  # fmt: skip
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

    def local_summary(self, state: StickBreakingState, data: Sequences) -> Sums:
        """The log likelihood of a block of sequences."""
        if len(state.noise_sd):
            pairs = Pairs.of(data)
            psi = self._psi(state, data)[pairs.step, pairs.stick]
            fit = (pairs.taken * psi - pairs.reaching * np.logaddexp(0.0, psi)).sum()
        else:
            design = self.design(state.states, data)
            fit = ActiveSticks.of(data).log_likelihood(design, state.weights).sum()
        return Sums((), (np.array(fit),))

    def augmentation_rates(self, data: Sequences) -> FloatArray:
        """How much of a stick's psi a Pólya-gamma sweep renews at a step, ``(num_symbols - 1,)``.

        See `pgmult.sampling.diagnostics.augmentation_rate`; about half of it is the number of
        effective draws per sweep of ``update="gibbs"``.
        """
        return stick_rates(data)

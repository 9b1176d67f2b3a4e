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

from pgmult.compiled.linalg import invert_positive_definite
from pgmult.core.typing import BoolArray, FloatArray
from pgmult.priors.gaussian import lower_cholesky
from pgmult.priors.matrix_normal import linear_means
from pgmult.sampling.blocks import Ask, Asks, Sums, SweepsInBlocks, as_block_rows
from pgmult.sampling.diagnostics import ConvergenceWarning
from pgmult.sequences.active_sticks import (
    KAPPA,
    ActiveSticks,
    Pairs,
    slow_symbol,
    stick_rates,
)
from pgmult.sequences.compiled.dynamics import ScaleLaw
from pgmult.sequences.compiled.white_paths import Held as HeldByPath
from pgmult.sequences.data.sequences import Sequences
from pgmult.sequences.models._state_space import START_SWEEPS
from pgmult.sequences.models._stick_breaking_lds import StickBreakingLDS, StickBreakingState
from pgmult.sequences.priors.dynamics import LinearDynamics
from pgmult.sequences.updates.carried import (
    RowLaw,
    Sited,
    Softened,
    grid_of_sds,
    log_density_of_sds,
    many_a_step,
)
from pgmult.sequences.updates.dynamics import (
    RegressionSums,
    draw_dynamics,
    draw_initial,
    first_sums,
    transition_sums,
)
from pgmult.sequences.updates.loadings import sample_rows
from pgmult.sequences.updates.unseen_moves import (
    level_potential,
    sample_level,
    sample_scales,
    scale_law,
)
from pgmult.sequences.updates.white_paths import few_states, seen_by, walk_white

_NEWTON = 2  # steps towards the mode of weights
_ROUNDS = 2  # of weights and turns, around sites, a sweep


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
        x, pooled = np.empty((0, 0)), self._pooled(data)
        if pooled is not None:
            x = np.tile(pooled.of_stick.start(), (self._num_pooled(len(weights)), 1))
        active = ActiveSticks.of(data)
        for _ in range(START_SWEEPS):
            omega = active.augment(rng, design, weights)
            squares, linear = active.statistics(omega, design)
            weights = self._sample_weights(rng, squares, linear, loading_var, x, data)
            loading_var = self._sample_loading_var(rng, weights)
        driving, D = self._driving(data), self.state_dim
        about = np.eye(D, D if driving is None else D + data.num_inputs)
        later = transition_sums(states, data.offsets, driving, about)
        first = first_sums(states, data.offsets, states[data.offsets[:-1]].mean(axis=0))
        sd = np.full(self._num_noisy(data), self.noise_scale)
        noise = np.zeros((data.num_steps, len(sd))), sd, x
        return self._state(rng, states, later, first, weights, loading_var, noise, data)

    def local_step(
        self, rng: np.random.Generator, state: StickBreakingState, data: Sequences
    ) -> tuple[StickBreakingState, Sited | Softened | None, Sums]:
        """Sites of a block; or its states given omega, after a path with dynamics and weights."""
        dynamics, weights = self._coefficients(state, data), self._weights(state)
        if self._has_sites(data):
            return state, self._sited(state, data), Sums((), (np.zeros(()),))
        if not self._has_paths(data):
            return self._given_omega(rng, state, state.states, data, dynamics, weights)
        dynamics, weights, states = self._walked(rng, state, data, dynamics, weights)
        state, _, sums = self._given_omega(rng, state, states, data, dynamics, weights)
        return state, None, Sums((), (dynamics, weights, *sums.rounded))

    def local_noise(
        self,
        rng: None,
        state: StickBreakingState,
        held: Sited,
        data: Sequences,
        weights: FloatArray,
        noise_sd: FloatArray,
    ) -> tuple[StickBreakingState, Sited, Sums]:
        """A block's part of the log density of standard deviations of noise."""
        return state, held, Sums((), (held.noise_log_densities(weights, noise_sd**2),))

    def local_noise_carry(
        self,
        rng: None,
        state: StickBreakingState,
        held: Sited,
        data: Sequences,
        weights: FloatArray,
        noise_sd: FloatArray,
    ) -> tuple[StickBreakingState, Sited, Sums]:
        """Change of a block's correction, stick by stick, by other noise."""
        return state, held, Sums((), (held.carry_noise(weights, noise_sd**2),))

    def local_rows(
        self,
        rng: None,
        state: StickBreakingState,
        held: Sited,
        data: Sequences,
        accepted: BoolArray,
        at: FloatArray,
    ) -> tuple[StickBreakingState, Sited, Sums]:
        """A block's part of the expansion of the likelihood in weights, at some or by sites."""
        held.settle(accepted)
        return state, held, Sums((), held.row_sums(at if at.size else None))

    def local_fits(
        self,
        rng: None,
        state: StickBreakingState,
        held: Sited,
        data: Sequences,
        weights: FloatArray,
        others: FloatArray,
    ) -> tuple[StickBreakingState, Sited, Sums]:
        """A block's gain, stick by stick, by the first weights over the others."""
        return state, held, Sums((), (held.fits(weights) - held.fits(others),))

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
            design, active = self._design(held.states, data), ActiveSticks.of(data)

            def law_of(J: FloatArray, h: FloatArray) -> LinearDynamics:
                return self._law(
                    state, data, active.potential(J, design, weights, self.state_dim, h)
                )

            held.turn(rng, weights, law_of)
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
        dynamics = self._coefficients(state, data)
        return self._given_omega(rng, state, held.states, data, dynamics, weights, held)

    def _given_omega(
        self,
        rng: np.random.Generator,
        state: StickBreakingState,
        states: FloatArray,
        data: Sequences,
        dynamics: FloatArray,
        weights: FloatArray,
        sited: Sited | None = None,
    ) -> tuple[StickBreakingState, Softened | None, Sums]:
        """A block's states given omega, noise integrated out, and the sums all else depends on."""
        design, active = self._design(states, data), ActiveSticks.of(data)
        softened, pull = None, KAPPA
        if sited is None or not len(state.noise_sd):
            omega = active.augment(rng, design, weights)
        else:
            softened = Softened(rng, sited.pairs, sited.psi(weights), sited.noise_var)
            omega, pull = softened.sites
        seen = active.potential(omega, design, weights, self.state_dim, pull)
        states = self._law_of(
            data, *self._split(dynamics, data), state.noise_cov, state.initial_mean,
            state.initial_cov, seen,
        ).sample(rng)  # fmt: skip
        later = transition_sums(states, data.offsets, self._driving(data), dynamics)
        first = first_sums(states, data.offsets, state.initial_mean)
        design[:, : self.state_dim] = states
        sums = (
            *active.statistics(omega, design, pull), later.zz, later.ze, later.ee, first.zz,
            first.ze, first.ee,
        )  # fmt: skip
        return replace(state, states=states), softened, Sums((), sums)

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
            noise = held.sample_noise(rng, linear_means(self._design(states, data), weights.T))
        return replace(state, states=states * factors, noise=noise), None, Sums((), (delta,))

    def shared_step(
        self, rng: np.random.Generator, state: StickBreakingState, sums: Sums, data: Sequences,
        ask: Asks,
    ) -> StickBreakingState:  # fmt: skip
        """All that sequences share; their level and scales."""
        dynamics, weights = self._coefficients(state, data), self._weights(state)
        noise_sd = state.noise_sd
        if self._has_sites(data):
            weights, noise_sd, sums = self._around_sites(rng, state, weights, data, ask)
        elif self._has_paths(data):
            dynamics, weights, *rounded = sums.rounded
            sums = Sums((), tuple(rounded))
        squares, linear, *moments_of_states = sums.rounded
        later = RegressionSums(dynamics, *moments_of_states[:3])
        first = RegressionSums(state.initial_mean[:, None], *moments_of_states[3:])
        x = state.hyperparameters
        weights = self._sample_weights(rng, squares, linear, state.loading_var, x, data)
        x, weights = self._pooled_weights(rng, squares, linear, x, weights, data)
        loading_var = self._sample_loading_var(rng, weights)
        delta, weights = self._translated(rng, weights, state, later, data)
        later, first = _moved_sums(later, first, delta)
        kept = state.noise, noise_sd, x
        moved = self._state(rng, state.states, later, first, weights, loading_var, kept, data)
        factors = sample_scales(rng, self._scale_law(moved, data))
        ask(Ask("local_move", (delta, factors, weights), moves=True, draws=len(noise_sd) > 0))
        return _rescaled(moved, factors)

    def _around_sites(
        self,
        rng: np.random.Generator,
        state: StickBreakingState,
        weights: FloatArray,
        data: Sequences,
        ask: Asks,
    ) -> tuple[FloatArray, FloatArray, Sums]:
        """Weights and standard deviations of noise, and the sums of states, noise and omega."""
        sd, accepted = state.noise_sd, np.zeros(len(weights), dtype=np.bool_)
        if len(sd):
            grid = grid_of_sds(rng, sd)
            sums = ask(Ask("local_noise", (weights, grid), moves=False, draws=False))
            log_p = sums.rounded[0] + log_density_of_sds(grid, self.noise_scale)
            chosen = np.argmax(log_p + rng.gumbel(size=grid.shape), axis=1)
            other = grid[np.arange(len(sd)), chosen]
            sums = ask(Ask("local_noise_carry", (weights, other), moves=True, draws=False))
            accepted = -rng.standard_exponential(len(sd)) < sums.rounded[0]
            sd = np.where(accepted, other, sd)
        for _ in range(_ROUNDS):
            weights = self._moved_rows(rng, state, accepted, weights, data, ask)
            accepted = np.zeros_like(accepted)
            ask(Ask("local_turn", (weights,), moves=True))
        sums = ask(Ask("local_states", (weights,), moves=True))
        return weights, sd, sums

    def _moved_rows(
        self,
        rng: np.random.Generator,
        state: StickBreakingState,
        accepted: BoolArray,
        weights: FloatArray,
        data: Sequences,
        ask: Asks,
    ) -> FloatArray:
        """Weights stick by stick, given states and noise; omega plays no part."""
        x = state.hyperparameters
        mean, var = self._weight_moments(weights.shape, state.loading_var, x, data)
        at: FloatArray = np.empty((0, 0))
        for _ in range(1 + _NEWTON):
            sums = ask(Ask("local_rows", (accepted, at), moves=True, draws=False))
            squares, linear = sums.rounded
            law = RowLaw(squares, linear, mean, 1.0 / var)
            at, accepted = law.mean, np.zeros(len(mean), dtype=np.bool_)
        other = law.sample(rng)
        sums = ask(Ask("local_fits", (other, weights), moves=False, draws=False))
        gain = sums.rounded[0] + law.log_ratio(other) - law.log_ratio(weights)
        taken = -rng.standard_exponential(len(gain)) < gain
        return np.where(taken[:, None], other, weights)

    def local_summary(self, state: StickBreakingState, data: Sequences) -> Sums:
        """The log likelihood of a block of sequences."""
        if len(state.noise_sd):
            pairs = Pairs.of(data)
            psi = self._psi(state, data)[pairs.step, pairs.stick]
            fit = (pairs.taken * psi - pairs.reaching * np.logaddexp(0.0, psi)).sum()
        else:
            design = self._design(state.states, data)
            fit = ActiveSticks.of(data).log_likelihood(design, self._weights(state)).sum()
        return Sums((), (np.array(fit),))

    def augmentation_rates(self, data: Sequences) -> FloatArray:
        """How much of a stick's psi a Pólya-gamma sweep renews at a step, ``(num_symbols - 1,)``.

        See `pgmult.sampling.diagnostics.augmentation_rate`; about half of it is the number of
        effective draws per sweep of ``update="gibbs"``.
        """
        return stick_rates(data)

    def _has_paths(self, data: Sequences) -> bool:
        """Whether sweeps have a path by the likelihood itself."""
        return (
            self.update == "auto"
            and few_states(data.whole.num_steps, self.state_dim)
            and data.whole.num_sequences <= self.block_rows  # one block
            and not self._has_sites(data)
        )

    def _walked(
        self,
        rng: np.random.Generator,
        state: StickBreakingState,
        data: Sequences,
        dynamics: FloatArray,
        weights: FloatArray,
    ) -> tuple[FloatArray, ...]:
        """Dynamics and weights, and the states of the only block, after a path."""
        x, Q = state.hyperparameters, state.noise_cov
        mean, var = self._weight_moments(weights.shape, state.loading_var, x, data)
        prior = self._dynamics(data, x)
        held = HeldByPath(
            lower_cholesky(Q), state.initial_mean, lower_cholesky(state.initial_cov),
            invert_positive_definite(Q), prior.mean, prior.row_precision, mean, 1.0 / var,
        )  # fmt: skip
        known = self._design(state.states, data)[:, self.state_dim :]
        seen = seen_by(data, self._driving(data), known)
        return walk_white(rng, seen, held, (dynamics, weights, state.states))

    def _has_sites(self, data: Sequences) -> bool:
        """Whether sweeps have moves around sites: noise has no others."""
        return self.is_noisy(data) or (self.update != "gibbs" and many_a_step(data))

    def _sited(self, state: StickBreakingState, data: Sequences) -> Sited:
        var = state.noise_sd**2 if len(state.noise_sd) else np.zeros(len(state.offset))
        return Sited(
            ActiveSticks.of(data), Pairs.of(data), data.offsets, self._design(state.states, data),
            self.state_dim, state.noise, var,
        )  # fmt: skip

    def _sample_weights(
        self,
        rng: np.random.Generator,
        squares: FloatArray,
        linear: FloatArray,
        loading_var: FloatArray,
        x: FloatArray,
        data: Sequences,
    ) -> FloatArray:
        """Loadings, emission weights and offset, side by side: see `ActiveSticks.statistics`."""
        mean, var = self._weight_moments(linear.shape, loading_var, x, data)
        return sample_rows(rng, squares, linear, 1.0 / var, mean)

    def _pooled_weights(
        self,
        rng: np.random.Generator,
        squares: FloatArray,
        linear: FloatArray,
        x: FloatArray,
        weights: FloatArray,
        data: Sequences,
    ) -> tuple[FloatArray, FloatArray]:
        """Standard deviations of effects in psi, and the weights that go along."""
        pooled = self._pooled(data)
        if pooled is None or self._emitting(data) is None:
            return x, weights
        x, weights = x.copy(), weights.copy()
        for k in range(len(weights)):
            x[k], weights[k] = pooled.move_stick(rng, x[k], weights[k], squares[k], linear[k])
        return x, weights

    def _translated(
        self,
        rng: np.random.Generator,
        weights: FloatArray,
        state: StickBreakingState,
        later: RegressionSums,
        data: Sequences,
    ) -> tuple[FloatArray, FloatArray]:
        """A move of the states' level, and the weights whose offset undoes it.

        The initial mean moves along, and is drawn afresh right after: `_state`.
        """
        loadings = weights[:, : self.state_dim]
        delta = sample_level(
            rng,
            *level_potential(
                later, state.initial_mean, state.noise_cov, state.initial_cov, self.gaussian_prior,
                loadings, weights[:, -1],
                *self._offset_moments(data),
            ),
        )  # fmt: skip
        weights = weights.copy()
        weights[:, -1] -= np.einsum("kd,d->k", loadings, delta)
        return delta, weights

    def _scale_law(self, state: StickBreakingState, data: Sequences) -> ScaleLaw:
        """The law of the logarithms of factors that `_rescaled` takes."""
        return scale_law(
            (
                self._dynamics(data, state.hyperparameters),
                self._coefficients(state, data).T,
                state.noise_cov,
            ),
            (self.gaussian_prior, state.initial_mean, state.initial_cov),
            (self.loading_shape, self.loading_scale),
            state.loading_var,
        )

    def _state(
        self,
        rng: np.random.Generator,
        states: FloatArray,
        later: RegressionSums,
        first: RegressionSums,
        weights: FloatArray,
        loading_var: FloatArray,
        kept: tuple[FloatArray, FloatArray, FloatArray],
        data: Sequences,
    ) -> StickBreakingState:
        """Draw what the states' moments alone determine: dynamics, and the law of first states."""
        D, U = self.state_dim, data.num_inputs
        noise, noise_sd, x = kept
        prior = self._dynamics(data, x)
        transition, input_weights, noise_cov = draw_dynamics(rng, prior, later)
        initial_mean, initial_cov = draw_initial(rng, self.gaussian_prior, first)
        pooled, n = self._pooled(data), len(weights)
        if pooled is not None and self._driving(data) is not None:
            x = x.copy()
            x[-1], input_weights = pooled.move_states(
                rng, x[-1], input_weights, noise_cov, transition, later
            )
        return StickBreakingState(
            states=states,
            transition=transition,
            input_weights=np.zeros((D, U)) if self.inputs == "emissions" else input_weights,
            noise_cov=noise_cov,
            initial_mean=initial_mean,
            initial_cov=initial_cov,
            loadings=weights[:, :D].copy(),
            emission_weights=(
                np.zeros((n, U)) if self.inputs == "dynamics" else weights[:, D:-1].copy()
            ),
            offset=weights[:, -1].copy(),
            loading_var=loading_var,
            noise=noise,
            noise_sd=noise_sd,
            hyperparameters=x,
        )


def _moved_sums(
    later: RegressionSums, first: RegressionSums, delta: FloatArray
) -> tuple[RegressionSums, RegressionSums]:
    """The sums after a move of the states' level; those of first states are about a mean as far."""
    D, rows = later.coefficients.shape
    z = np.zeros(rows)
    z[:D] = delta
    transition = later.coefficients[:, :D]
    later = later.shifted(z, delta - np.einsum("ij,j->i", transition, delta))
    about = first.coefficients + delta[:, None]
    return later, RegressionSums(about, first.zz, first.ze, first.ee)


def _rescaled(state: StickBreakingState, g: FloatArray) -> StickBreakingState:
    """The parameters that go with states times g, ``(state_dim,)``: same probabilities."""
    both = g[:, None] * g
    return replace(
        state,
        transition=g[:, None] * state.transition / g,
        input_weights=g[:, None] * state.input_weights,
        noise_cov=both * state.noise_cov,
        initial_mean=g * state.initial_mean,
        initial_cov=both * state.initial_cov,
        loadings=state.loadings / g,
        loading_var=state.loading_var / g**2,
    )

r"""How chains of linear dynamical systems move: `sampler` chooses among three ways.

Given one Pólya-gamma variable for each stick that a step reaches, everything is Gaussian. A sweep:

1. omega | x, C, E, b       Pólya-gamma, on active sticks alone: see `ActiveSticks`
2. x | omega, parameters    filter forwards, sample backwards, all steps at once
3. C, E, b | omega, x, v    Gaussian, row by row
4. v | C                    inverse gamma
5. level of x and b         a translation of all x and the b that undoes it: Gaussian
6. A, B, Q | x              matrix-normal inverse-Wishart; m, V | x normal-inverse-Wishart
7. scales of x and C        factors of x and the C that undoes them: a slice update

Where steps have few observations, a Hamiltonian path of A, B, C, E, b and x by the likelihood
itself comes before (`ByLikelihood`). Where they have many, moves around Gaussian sites of s, e, C,
E, b and x do (`AroundSites`, `pgmult.sequences.updates.sites`).

Given what they share, sequences are independent, so a sweep is made of blocks of them
(`pgmult.sampling.blocks`). A block does 1 and 2 and sums what 3 to 7 need: cross products of psi's
design for each stick, moments of steps and of first states. At the end its states are moved by 5
and 7. A path takes a single block.

*Level*. With psi_t = b + C x_t + E u_t, adding delta to all states and taking C delta from b
changes no psi. Given everything else up to that translation, delta is Gaussian: the offset has its
prior N(m, diag(s)), the mean of first states moves along, and every other step says

    x_t - A x_{t-1} - B u_t + (I - A) delta  ~  N(0, Q).

Under persistent dynamics a chain that draws x and the offset in turn moves along this direction in
tiny steps (Yu and Meng 2011, "To center or not to center", on interweaving such moves).

*Scales*. With g = exp(a), one positive factor a coordinate, and G = diag(g), the transformation

    x_t -> G x_t,  C -> C G^-1,  v -> G^-2 v,  A -> G A G^-1,  B -> G B,  Q -> G Q G,
    m -> G m,  V -> G V G

leaves psi, the density of the states given the dynamics and that of the loadings C given their
variances v as they are, up to its Jacobian. The density of a that remains is that of the priors of
(A, B, Q), (m, V) and v at the transformed point, times what the Jacobians of these contribute: a
line through a = 0 in a random direction is sampled by slice (Liu and Sabatti 2000, "Generalised
Gibbs sampler and multigrid Monte Carlo", on moves along a group). A chain that draws x, C, Q and v
in turn moves in tiny steps here, because thousands of states pin Q, and Q them.

*Paths*. Where psi is far from 0, omega holds it there: what is drawn given omega moves slowly.
Given Q, m, V and the loadings' variances a path (Neal 2011, "MCMC using Hamiltonian dynamics")
moves dynamics and weights together with the white noise that the states are made of
(`pgmult.sequences.compiled.white_paths`). Nobody knows beforehand how far the states spread, in
units of Q, and what that makes of the steps that are stable: both the `spread` that the metric
takes for granted and the size of a step are drawn anew, from distributions that depend on nothing
that moves, so the path is exact. Of some ten thousand steps, whose states drift slowly, none would
be taken: these do without.
"""

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from pgmult.compiled.linalg import invert_lower, invert_positive_definite
from pgmult.core.typing import BoolArray, FloatArray, Generator
from pgmult.core.validate import new_key
from pgmult.priors import MatrixNormalInverseWishart
from pgmult.priors.gaussian import lower_cholesky
from pgmult.priors.matrix_normal import linear_means
from pgmult.sampling.blocks import Ask, Asks, Sums, step, to_held
from pgmult.sequences.active_sticks import KAPPA, ActiveSticks, Pairs
from pgmult.sequences.compiled import white_paths
from pgmult.sequences.compiled.dynamics import ScaleParameters, slice_scales
from pgmult.sequences.compiled.white_paths import Observations, PathParameters, Place
from pgmult.sequences.data.sequences import Sequences
from pgmult.sequences.priors.dynamics import LinearDynamics
from pgmult.sequences.priors.state_space import LDSState
from pgmult.sequences.updates import conjugate, sites
from pgmult.sequences.updates.conjugate import RegressionSums, first_sums
from pgmult.sequences.updates.sites import NoiseIntegratedOut, SitedBlock, many_a_step
from pgmult.sequences.updates.spectral_start import spectral_states

if TYPE_CHECKING:
    from pgmult.sequences.models.lds import MultinomialLDS

_START_SWEEPS = 3  # of the weights given the states that a chain starts from
_START_CONCENTRATION = 0.5  # added to counts of symbols where the offset starts
_NEWTON = 2  # steps towards the mode of weights
_ROUNDS = 2  # of weights and turns, around sites, a sweep
_SIZES = math.log(0.1), math.log(4.0)  # the least, and how many times it is the largest
_SPREADS = math.log(0.5), math.log(100.0)
_LENGTH, _LENGTH_OF_MANY = 5.0, 2.5  # at most, in units of the metric
_LEAST_LENGTH = 0.3  # of it
_CURVATURE = 0.1  # of the likelihood of a stick in psi, at a step
_SOME, _MANY = 1_000, 20_000  # numbers in all states: from some on, paths take the time

Rng = Generator
Noise = NoiseIntegratedOut | None


def sampler(model: "MultinomialLDS", data: Sequences) -> "PolyaGamma":
    """Return how chains move: around sites, by the likelihood itself, or by omega alone."""
    facts = data.whole
    if model.is_noisy(data) or many_a_step(data):
        return AroundSites(model, data)
    is_one_block = facts.num_sequences <= model.block_rows
    if is_one_block and facts.num_steps * model.state_dim <= _MANY:
        return ByLikelihood(model, data)
    return PolyaGamma(model, data)


class PolyaGamma:
    """Gibbs sweeps given Pólya-gamma variables.

    Parameters
    ----------
    model : MultinomialLDS
    data : Sequences
        All of the sequences, or those of a block.
    """

    def __init__(self, model: "MultinomialLDS", data: Sequences):
        self.model, self.data, self.driving = model, data, model.entering(data, "dynamics")
        self.pooled = model.pooled(data)
        self.columns = model.design(np.empty((data.num_steps, 0)), data)

    @cached_property
    def active(self) -> ActiveSticks:
        """The active sticks of these sequences."""
        return ActiveSticks.of(self.data)

    def design(self, states: FloatArray) -> FloatArray:
        """What psi is linear in: see `MultinomialLDS.design`."""
        return np.concatenate([states, self.columns], axis=1)

    def dynamics_prior(self, state: LDSState) -> MatrixNormalInverseWishart:
        """The prior of (A, B)' and Q given the state's hyperparameters."""
        return self.model.dynamics_prior(self.data, state.hyperparameters)

    def weight_moments(self, state: LDSState) -> tuple[FloatArray, FloatArray]:
        """Prior means and variances of the weights given the rest of the state."""
        return self.model.weight_moments(state.loading_var, state.hyperparameters, self.data)

    # ------------------------------------------------------------------ whole sweeps

    def init(self, rng: Rng) -> LDSState:
        """A start from spectral states and the weights and dynamics that go with them."""
        model, data, D = self.model, self.data, self.model.state_dim
        states = spectral_states(rng, data, D)
        used = np.bincount(data.symbols, data.counts, data.num_symbols) + _START_CONCENTRATION
        offset, design = model.link(data).inverse(used / used.sum()), self.design(states)
        weights = np.zeros((len(offset), design.shape[1]))
        weights[:, -1] = offset
        loading_var = np.full(D, model.loading_scale / model.loading_shape)
        x, sd = np.empty((0, 0)), np.full(len(offset) * model.is_noisy(data), model.noise_scale)
        if self.pooled is not None:
            x = np.tile(self.pooled.of_stick.start(), (model.num_pooled(len(offset)), 1))
        about = np.eye(D, D + self.driving.shape[1])
        first_mean = states[data.offsets[:-1]].mean(axis=0)
        state = LDSState(
            states, about, np.eye(D), first_mean, np.eye(D), weights, loading_var,
            np.zeros((data.num_steps, len(sd))), sd, x,
        )  # fmt: skip
        for _ in range(_START_SWEEPS):
            omega = self.active.augment(rng, design, state.weights)
            statistics = self.active.statistics(omega, design)
            state = self.draw_weights(rng, state, *statistics, effects=False)
        later = conjugate.transition_sums(states, data.offsets, self.driving, about)
        return self.draw_dynamics(rng, state, later, first_sums(states, data.offsets, first_mean))

    def step(self, rng: Rng, state: LDSState) -> LDSState:
        """One sweep over all variables, block after block of sequences."""
        moved: LDSState = step(self.model, rng, state, self.data)
        return moved

    # ------------------------------------------------------------------ of a block of sequences

    def local_step(self, rng: Rng, state: LDSState) -> tuple[LDSState, Any, Sums]:
        """States given omega, and the sums that `finish` takes."""
        omega = self.active.augment(rng, self.design(state.states), state.weights)
        state, sums = self.given_omega(rng, state, omega)
        return state, None, Sums((), sums)

    def states_given(self, state: LDSState, omega: FloatArray, pull: FloatArray) -> LinearDynamics:
        """The distribution of a block's states given omega, and pull in the place of kappa."""
        model, design = self.model, self.design(state.states)
        potential = self.active.potential(omega, design, state.weights, model.state_dim, pull)
        return model.states_given(state, self.data, potential)

    def given_omega(
        self, rng: Rng, state: LDSState, omega: FloatArray, pull: FloatArray = KAPPA
    ) -> tuple[LDSState, tuple[FloatArray, ...]]:
        """A block's states given omega, and the sums on which all else depends."""
        offsets, states = self.data.offsets, self.states_given(state, omega, pull).sample(rng)
        later = conjugate.transition_sums(states, offsets, self.driving, state.dynamics)
        first = first_sums(states, offsets, state.initial_mean)
        statistics = self.active.statistics(omega, self.design(states), pull)
        sums = *statistics, later.zz, later.ze, later.ee, first.zz, first.ze, first.ee
        return state.changed(states=states), sums

    def local_move(
        self, rng: Rng | None, state: LDSState, held: Noise, delta: FloatArray,
        factors: FloatArray, weights: FloatArray,
    ) -> tuple[LDSState, None, Sums]:  # fmt: skip
        """A block's states after the moves of their level and scales; their noise."""
        states, noise = state.states + delta, state.noise
        if held is not None and rng is not None:
            noise = held.sample_noise(rng, linear_means(self.design(states), weights.T))
        return state.changed(states=states * factors, noise=noise), None, Sums((), (delta,))

    # ------------------------------------------------------------------ what sequences share

    def shared_step(self, rng: Rng, state: LDSState, sums: Sums, ask: Asks) -> LDSState:
        """All that sequences share, given the sums of `given_omega`; their level and scales."""
        squares, linear, *moments = sums.rounded
        later = RegressionSums(state.dynamics, *moments[:3])
        state = self.draw_weights(rng, state, squares, linear)
        state, delta = self.move_level(rng, state, later)
        first = RegressionSums((state.initial_mean + delta)[:, None], *moments[3:])
        state = self.draw_dynamics(rng, state, later.translated(delta), first)
        state, factors, weights = *self.move_scales(rng, state), state.weights
        moved = delta, factors, weights
        ask(Ask("local_move", moved, moves=True, draws=len(state.noise_sd) > 0))
        return state

    def draw_weights(
        self, rng: Rng, state: LDSState, squares: FloatArray, linear: FloatArray, *,
        effects: bool = True,
    ) -> LDSState:  # fmt: skip
        """C, E and b given omega and states, with standard deviations of effects; v given C."""
        model, (mean, var) = self.model, self.weight_moments(state)
        weights = conjugate.sample_rows(rng, squares, linear, 1.0 / var, mean)
        x = state.hyperparameters
        if effects and self.pooled is not None and model.inputs != "dynamics":
            x = x.copy()
            for k in range(len(weights)):
                at = x[k], weights[k], squares[k], linear[k]
                x[k], weights[k] = self.pooled.move_stick(rng, *at)
        loadings, prior = weights[:, : model.state_dim], (model.loading_shape, model.loading_scale)
        loading_var = conjugate.sample_loading_var(rng, loadings, *prior)
        return state.changed(weights=weights, hyperparameters=x, loading_var=loading_var)

    def level_potential(
        self, state: LDSState, later: RegressionSums
    ) -> tuple[FloatArray, FloatArray]:
        """Precision ``(D, D)`` and linear term ``(D,)`` of a translation of all states.

        `later` are the `transition_sums` of the states about (A, B).
        """
        start, loadings, D = self.model.gaussian_prior, state.loadings, self.model.state_dim
        away, (mean, var) = np.eye(D) - state.transition, self.model.offset_moments(self.data)
        pull = np.einsum("ij,jk->ik", away.T, invert_positive_definite(state.noise_cov))
        precision = later.count * np.einsum("ij,jk->ik", pull, away)
        linear = -np.einsum("ij,j->i", pull, later.ze[-1])
        of_first = invert_positive_definite(state.initial_cov)
        precision += start.strength * of_first
        linear += np.einsum("ij,j->i", of_first, start.strength * (start.mean - state.initial_mean))
        scaled = loadings / var[:, None]
        precision += np.einsum("ki,kj->ij", scaled, loadings)
        linear += np.einsum("ki,k->i", scaled, state.weights[:, -1] - mean)
        return 0.5 * (precision + precision.T), linear

    def move_level(
        self, rng: Rng, state: LDSState, later: RegressionSums
    ) -> tuple[LDSState, FloatArray]:
        """A translation of the states, and the offset that undoes it.

        The initial mean moves along, and is drawn afresh by `draw_dynamics`.
        """
        delta = sample_level(rng, *self.level_potential(state, later))
        weights = state.weights.copy()
        weights[:, -1] -= np.einsum("kd,d->k", state.loadings, delta)
        return state.changed(weights=weights), delta

    def draw_dynamics(
        self, rng: Rng, state: LDSState, later: RegressionSums, first: RegressionSums
    ) -> LDSState:
        """A, B, Q, m and V given moments of states, and standard deviations of effects on these."""
        x = state.hyperparameters
        A, B, Q = conjugate.draw_dynamics(rng, self.dynamics_prior(state), later)
        mean, cov = conjugate.draw_initial(rng, self.model.gaussian_prior, first)
        dynamics = np.concatenate([A, B], axis=1)
        if self.pooled is not None and self.model.inputs != "emissions":
            x = x.copy()
            x[-1], dynamics = self.pooled.move_states(rng, x[-1], dynamics, Q, later)
        return state.changed(
            dynamics=dynamics, noise_cov=Q, initial_mean=mean, initial_cov=cov, hyperparameters=x
        )

    def move_scales(self, rng: Rng, state: LDSState) -> tuple[LDSState, FloatArray]:
        """Factors of the states, ``(state_dim,)``, after one slice update in a random direction.

        The state has all that goes with them but the states, which are in blocks.
        """
        a, direction = np.empty(self.model.state_dim), rng.standard_normal(self.model.state_dim)
        direction /= np.sqrt(np.einsum("d,d", direction, direction))
        density = self.scale_density(state)
        slice_scales(new_key(rng), direction, rng.standard_exponential(), density, a)
        factors = np.asarray(np.exp(a))
        return rescaled(state, factors), factors

    def scale_density(self, state: LDSState) -> ScaleParameters:
        """Density of the logarithms of the factors of `move_scales`: see `scale_log_density`."""
        model, prior, start = self.model, self.dynamics_prior(state), self.model.gaussian_prior
        D, rows = state.dynamics.shape
        # the Jacobian of (A, B, Q), and the determinants of their density
        linear = (rows - D) + D + 1.0 - (prior.dof + D + 1.0) - rows + 2.0 * model.loading_shape
        linear += D + 2.0 - (start.dof + D + 1.0) - 1.0  # and those of (m, V)
        return ScaleParameters(
            np.ascontiguousarray(state.dynamics.T), prior.mean, prior.row_precision, prior.scale,
            invert_positive_definite(state.noise_cov), state.initial_mean, start.mean,
            float(start.strength), start.scale, invert_positive_definite(state.initial_cov),
            float(model.loading_scale), state.loading_var, float(linear),
        )  # fmt: skip


class ByLikelihood(PolyaGamma):
    """A Hamiltonian path by the likelihood itself before each Gibbs sweep, of a single block."""

    @cached_property
    def observations(self) -> Observations:
        """The data as paths take them."""
        pairs, columns = Pairs.of(self.data), np.ascontiguousarray(self.columns)
        reached = [values[pairs.reaching > 0] for values in pairs[:4]]
        arrays: Any = (*reached, self.data.offsets, columns, self.driving)
        return Observations(*arrays)

    def local_step(self, rng: Rng, state: LDSState) -> tuple[LDSState, Any, Sums]:
        """Dynamics, weights and states along a path; then states given omega."""
        state, held, sums = super().local_step(rng, self.walk(rng, state))
        return state, held, Sums((), (state.dynamics, state.weights, *sums.rounded))

    def shared_step(self, rng: Rng, state: LDSState, sums: Sums, ask: Asks) -> LDSState:
        """All that sequences share, from dynamics and weights at the end of the path."""
        dynamics, weights, *rounded = sums.rounded
        moved = state.changed(dynamics=dynamics, weights=weights)
        return super().shared_step(rng, moved, Sums((), (*rounded,)), ask)

    def walk(self, rng: Rng, state: LDSState) -> LDSState:
        """Dynamics, weights and states after one path."""
        held, x = self.held(state), state.states.copy()
        u, v, length = rng.random(3)
        size, spread = math.exp(_SIZES[0] + u * _SIZES[1]), math.exp(_SPREADS[0] + v * _SPREADS[1])
        longest = _LENGTH if x.size < _SOME else _LENGTH_OF_MANY
        count = max(1, int(longest * (_LEAST_LENGTH + (1.0 - _LEAST_LENGTH) * length) / size))
        flat = np.empty((4, state.dynamics.size + state.weights.size + x.size))
        flat[2] = rng.standard_normal(flat.shape[1])
        place, slopes, scales = (laid_out(flat[i], state) for i in (0, 1, 3))
        place.dynamics[:], place.weights[:] = state.dynamics, state.weights
        scales.dynamics[:], scales.weights[:] = _rough_sds(held, len(x), spread)
        scales.white[:] = 1.0
        chance = white_paths.walk(self.observations, held, place, slopes, flat, x, size, count)
        if -rng.standard_exponential() < chance:
            return state.changed(dynamics=place.dynamics, weights=place.weights, states=x)
        return state

    def held(self, state: LDSState) -> PathParameters:
        """What a path from a state holds fixed."""
        prior, (mean, var) = self.dynamics_prior(state), self.weight_moments(state)
        return PathParameters(
            lower_cholesky(state.noise_cov), state.initial_mean, lower_cholesky(state.initial_cov),
            invert_positive_definite(state.noise_cov), prior.mean, prior.row_precision, mean,
            1.0 / var,
        )  # fmt: skip


class AroundSites(PolyaGamma):
    """Moves around Gaussian sites before the Gibbs sweep: see `pgmult.sequences.updates.sites`."""

    def local_step(self, rng: Rng, state: LDSState) -> tuple[LDSState, Any, Sums]:
        """Set up a block's sites, which answer what `shared_step` asks."""
        return state, SitedBlock(self.data, state, self.columns), Sums((), (np.zeros(()),))

    def shared_step(self, rng: Rng, state: LDSState, sums: Sums, ask: Asks) -> LDSState:
        """Noise's standard deviations, weights and states around sites, and then all else."""
        return super().shared_step(rng, *self.around_sites(rng, state, ask), ask)

    def around_sites(self, rng: Rng, state: LDSState, ask: Asks) -> tuple[LDSState, Sums]:
        """Noise's standard deviations, weights and states; the sums of `given_omega` at the end."""
        accepted = np.zeros(len(state.weights), dtype=np.bool_)
        if len(state.noise_sd):
            state, accepted = self._move_noise(rng, state, ask)
        for _ in range(_ROUNDS):
            state = self._move_rows(rng, state, accepted, ask)
            accepted = np.zeros_like(accepted)
            ask(Ask("local_turn", (state.weights,), moves=True))
        return state, ask(Ask("local_states", (state.weights,), moves=True))

    def local_turn(
        self, rng: Rng, state: LDSState, held: SitedBlock, weights: FloatArray
    ) -> tuple[LDSState, SitedBlock, Sums]:
        """A block's states and noise after a turn around its sites, which have them."""
        there = state.changed(states=held.states, weights=weights)
        held.turn(rng, weights, self.states_given(there, *held.sites))
        return state, held, Sums((), (np.zeros(()),))

    def local_states(
        self, rng: Rng, state: LDSState, held: SitedBlock, weights: FloatArray
    ) -> tuple[LDSState, Noise, Sums]:
        """A block's states given omega, noise integrated out."""
        state = state.changed(states=held.states, weights=weights)
        if not len(state.noise_sd):
            return super().local_step(rng, state)
        noise = NoiseIntegratedOut(rng, held.pairs, held.psi(weights), held.noise_var)
        state, sums = self.given_omega(rng, state, *noise.sites)
        return state, noise, Sums((), sums)

    def _move_noise(self, rng: Rng, state: LDSState, ask: Asks) -> tuple[LDSState, BoolArray]:
        """Standard deviations of noise, which is carried along; and where they moved."""
        sd, weights = state.noise_sd, state.weights
        grid = sites.grid_of_sds(rng, sd)
        log_p = ask(to_held("noise_log_densities", weights, grid**2)).rounded[0]
        log_p = log_p + sites.log_density_of_sds(grid, self.model.noise_scale)
        chosen = np.argmax(log_p + rng.gumbel(size=grid.shape), axis=1)
        other = grid[np.arange(len(sd)), chosen]
        gain = ask(to_held("carry_noise", weights, other**2, moves=True)).rounded[0]
        accepted = -rng.standard_exponential(len(sd)) < gain
        return state.changed(noise_sd=np.where(accepted, other, sd)), accepted

    def _move_rows(self, rng: Rng, state: LDSState, accepted: BoolArray, ask: Asks) -> LDSState:
        """Weights stick by stick, given states and noise; omega plays no part."""
        mean, var = self.weight_moments(state)
        at: FloatArray = np.empty((0, 0))
        for _ in range(1 + _NEWTON):
            squares, linear = ask(to_held("rows_after", accepted, at, moves=True)).rounded
            proposal = sites.RowProposal(squares, linear, mean, 1.0 / var)
            at, accepted = proposal.mean, np.zeros(len(mean), dtype=np.bool_)
        other = proposal.sample(rng)
        gain = ask(to_held("gains", other, state.weights)).rounded[0]
        gain = gain + proposal.log_ratio(other) - proposal.log_ratio(state.weights)
        taken = -rng.standard_exponential(len(gain)) < gain
        return state.changed(weights=np.where(taken[:, None], other, state.weights))


def sample_level(rng: Rng, precision: FloatArray, linear: FloatArray) -> FloatArray:
    """One draw of the translation."""
    half = invert_lower(lower_cholesky(precision))
    white = np.einsum("ij,j->i", half, linear) + rng.standard_normal(len(linear))
    return np.asarray(np.einsum("ij,i->j", half, white))


def rescaled(state: LDSState, g: FloatArray) -> LDSState:
    """The parameters that go with states times g, ``(state_dim,)``: same probabilities."""
    both, D = g[:, None] * g, len(g)
    dynamics, weights = g[:, None] * state.dynamics, state.weights.copy()
    dynamics[:, :D] /= g
    weights[:, :D] /= g
    return state.changed(
        dynamics=dynamics, weights=weights, noise_cov=both * state.noise_cov,
        initial_mean=g * state.initial_mean, initial_cov=both * state.initial_cov,
        loading_var=state.loading_var / g**2,
    )  # fmt: skip


def laid_out(flat: FloatArray, state: LDSState) -> Place:
    """Parts of a vector in the shapes of dynamics, weights and states."""
    b, w, x = state.dynamics, state.weights, state.states
    middle = b.size + w.size  # sliced by hand: numpy's split takes a tenth of a short sweep
    return Place(
        flat[: b.size].reshape(b.shape), flat[b.size : middle].reshape(w.shape),
        flat[middle:].reshape(x.shape),
    )  # fmt: skip


def _rough_sds(
    held: PathParameters, num_steps: int, spread: float
) -> tuple[FloatArray, FloatArray]:
    """Rough standard deviations, were the states' variances `spread` times those of Q."""
    often, D = _CURVATURE * num_steps, len(held.root)
    wide = often * np.cumsum(spread * held.root * held.root, axis=1)[:, -1]
    rows, informed = np.diag(held.row_precision).copy(), np.full(held.weight_mean.shape[1], often)
    rows[:D] += wide
    informed[:D] = wide
    dynamics = 1.0 / np.sqrt(np.diag(held.precision)[:, None] * rows)
    return dynamics, 1.0 / np.sqrt(held.weight_precision + informed)

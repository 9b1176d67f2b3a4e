"""Moves of a linear dynamical system under the stick-breaking link.

A move takes the state of the chain and gives another; `pgmult.sequences.models.lds` puts them in
order. Each leaves the posterior as it is. Sums over sequences come from their blocks: where a move
has to know more of these while it goes, it asks them.

Two moves are of what the observations cannot see.

*Level*. With psi_t = offset + C x_t + E u_t, adding delta to all states and taking C delta from the
offset changes no psi. Given everything else up to that translation, delta is Gaussian: the offset
has its prior N(m, diag(s)), the mean of first states moves along, and every other step says

    x_t - A x_{t-1} - B u_t + (I - A) delta  ~  N(0, Q).

Under persistent dynamics a chain that draws x and the offset in turn moves along this direction in
tiny steps (Yu and Meng 2011, "To center or not to center", on interweaving such moves).

*Scales*. With g = exp(a), one positive factor a coordinate, and G = diag(g), the transformation

    x_t -> G x_t,  C -> C G^-1,  v -> G^-2 v,  A -> G A G^-1,  B -> G B,  Q -> G Q G,
    m -> G m,  V -> G V G

leaves psi, the law of the states given the dynamics and that of the loadings C given their
variances v as they are, up to its Jacobian. What is left as a density of a is that of the priors of
(A, B, Q), (m, V) and v at the transformed point, times what the Jacobians of these contribute: a
line through a = 0 in a random direction is sampled by slice (Liu and Sabatti 2000, "Generalised
Gibbs sampler and multigrid Monte Carlo", on moves along a group). A chain that draws x, C, Q and v
in turn moves in tiny steps here, because thousands of states pin Q, and Q them.
"""

from dataclasses import replace

import numpy as np

from pgmult.compiled.linalg import invert_lower, invert_positive_definite
from pgmult.core.typing import BoolArray, FloatArray
from pgmult.core.validate import new_key
from pgmult.priors.gaussian import lower_cholesky
from pgmult.sampling.blocks import Ask, Asks, Sums, to_held
from pgmult.sequences.active_sticks import KAPPA, ActiveSticks
from pgmult.sequences.compiled.dynamics import ScaleLaw, slice_scales
from pgmult.sequences.compiled.white_paths import PathParameters
from pgmult.sequences.data.sequences import Sequences
from pgmult.sequences.models._state_space import LDSState, LinearSystem
from pgmult.sequences.priors.dynamics import LinearDynamics
from pgmult.sequences.updates import dynamics as conjugate
from pgmult.sequences.updates.carried import (
    AroundSites,
    NoiseIntegratedOut,
    RowLaw,
    grid_of_sds,
    log_density_of_sds,
)
from pgmult.sequences.updates.dynamics import RegressionSums, first_sums, transition_sums
from pgmult.sequences.updates.loadings import sample_loading_var, sample_rows
from pgmult.sequences.updates.white_paths import seen_by, walk_white

_NEWTON = 2  # steps towards the mode of weights
_ROUNDS = 2  # of weights and turns, around sites, a sweep

_Rng = np.random.Generator
_State = LDSState


# ---------------------------------------------------------------------- of a block of sequences


def walk(rng: _Rng, model: LinearSystem, state: _State, data: Sequences) -> _State:
    """A path of dynamics, weights and states by the likelihood itself, of the only block."""
    Q, prior = state.noise_cov, model.dynamics_prior(data, state.hyperparameters)
    mean, var = model.weight_moments(state, data)
    held = PathParameters(
        lower_cholesky(Q), state.initial_mean, lower_cholesky(state.initial_cov),
        invert_positive_definite(Q), prior.mean, prior.row_precision, mean, 1.0 / var,
    )  # fmt: skip
    known = model.design(state.states, data)[:, model.state_dim :]
    seen = seen_by(data, model.driving(data), known)
    dynamics, weights, states = walk_white(
        rng, seen, held, (state.dynamics, state.weights, state.states)
    )
    return replace(state, dynamics=dynamics, weights=weights, states=states)


def given_omega(
    rng: _Rng,
    model: LinearSystem,
    state: _State,
    data: Sequences,
    sited: AroundSites | None = None,
) -> tuple[_State, NoiseIntegratedOut | None, Sums]:
    """States given omega, noise integrated out, and the sums that all else depends on."""
    design, active = model.design(state.states, data), ActiveSticks.of(data)
    softened, pull = None, KAPPA
    if sited is None or not len(state.noise_sd):
        omega = active.augment(rng, design, state.weights)
    else:
        softened = NoiseIntegratedOut(rng, sited.pairs, sited.psi(state.weights), sited.noise_var)
        omega, pull = softened.sites
    seen = active.potential(omega, design, state.weights, model.state_dim, pull)
    states = model.law(state, data, seen).sample(rng)
    later = transition_sums(states, data.offsets, model.driving(data), state.dynamics)
    first = first_sums(states, data.offsets, state.initial_mean)
    design[:, : model.state_dim] = states
    sums = (
        *active.statistics(omega, design, pull), later.zz, later.ze, later.ee, first.zz, first.ze,
        first.ee,
    )  # fmt: skip
    return replace(state, states=states), softened, Sums((), sums)


def turn(rng: _Rng, model: LinearSystem, state: _State, held: AroundSites, data: Sequences) -> None:
    """States and noise along an ellipse around their sites; `held` has them."""
    design, active = model.design(held.states, data), ActiveSticks.of(data)

    def law_of(J: FloatArray, h: FloatArray) -> LinearDynamics:
        seen = active.potential(J, design, state.weights, model.state_dim, h)
        return model.law(state, data, seen)

    held.turn(rng, state.weights, law_of)


# ---------------------------------------------------------------------- around sites


def around_sites(
    rng: _Rng, model: LinearSystem, state: _State, data: Sequences, ask: Asks
) -> tuple[_State, Sums]:
    """Noise's standard deviations, weights and states; the sums of `given_omega` at the end."""
    accepted = np.zeros(len(state.weights), dtype=np.bool_)
    if len(state.noise_sd):
        state, accepted = _move_noise(rng, model, state, ask)
    for _ in range(_ROUNDS):
        state = _move_rows(rng, model, state, accepted, data, ask)
        accepted = np.zeros_like(accepted)
        ask(Ask("local_turn", (state.weights,), moves=True))
    return state, ask(Ask("local_states", (state.weights,), moves=True))


def _move_noise(
    rng: _Rng, model: LinearSystem, state: _State, ask: Asks
) -> tuple[_State, BoolArray]:
    """Standard deviations of noise, which is carried along; and where they moved."""
    sd, weights = state.noise_sd, state.weights
    grid = grid_of_sds(rng, sd)
    of_sites = ask(to_held("noise_log_densities", weights, grid**2)).rounded[0]
    log_p = of_sites + log_density_of_sds(grid, model.noise_scale)
    chosen = np.argmax(log_p + rng.gumbel(size=grid.shape), axis=1)
    other = grid[np.arange(len(sd)), chosen]
    gain = ask(to_held("carry_noise", weights, other**2, moves=True)).rounded[0]
    accepted = -rng.standard_exponential(len(sd)) < gain
    return replace(state, noise_sd=np.where(accepted, other, sd)), accepted


def _move_rows(
    rng: _Rng,
    model: LinearSystem,
    state: _State,
    accepted: BoolArray,
    data: Sequences,
    ask: Asks,
) -> _State:
    """Weights stick by stick, given states and noise; omega plays no part."""
    mean, var = model.weight_moments(state, data)
    at: FloatArray = np.empty((0, 0))
    for _ in range(1 + _NEWTON):
        squares, linear = ask(to_held("rows_after", accepted, at, moves=True)).rounded
        law = RowLaw(squares, linear, mean, 1.0 / var)
        at, accepted = law.mean, np.zeros(len(mean), dtype=np.bool_)
    other = law.sample(rng)
    gain = ask(to_held("gains", other, state.weights)).rounded[0]
    gain = gain + law.log_ratio(other) - law.log_ratio(state.weights)
    taken = -rng.standard_exponential(len(gain)) < gain
    return replace(state, weights=np.where(taken[:, None], other, state.weights))


# ---------------------------------------------------------------------- given sums over sequences


def read_sums(
    sums: Sums, state: _State
) -> tuple[FloatArray, FloatArray, RegressionSums, RegressionSums]:
    """The sums of `given_omega`, and what moments of states are about."""
    squares, linear, *moments = sums.rounded
    later = RegressionSums(state.dynamics, *moments[:3])
    return squares, linear, later, RegressionSums(state.initial_mean[:, None], *moments[3:])


def draw_weights(
    rng: _Rng,
    model: LinearSystem,
    state: _State,
    squares: FloatArray,
    linear: FloatArray,
    data: Sequences,
    *,
    effects: bool = True,
) -> _State:
    """C, E and b given omega and states, with standard deviations of effects; v given C."""
    mean, var = model.weight_moments(state, data)
    weights, x = sample_rows(rng, squares, linear, 1.0 / var, mean), state.hyperparameters
    pooled = model.pooled(data) if effects and model.emitting(data) is not None else None
    if pooled is not None:
        x = x.copy()
        for k in range(len(weights)):
            x[k], weights[k] = pooled.move_stick(rng, x[k], weights[k], squares[k], linear[k])
    loadings, prior = weights[:, : model.state_dim], (model.loading_shape, model.loading_scale)
    loading_var = sample_loading_var(rng, loadings, *prior)
    return replace(state, weights=weights, hyperparameters=x, loading_var=loading_var)


def level_potential(
    model: LinearSystem, state: _State, later: RegressionSums, data: Sequences
) -> tuple[FloatArray, FloatArray]:
    """Precision ``(D, D)`` and linear term ``(D,)`` of a translation of all states.

    `later` are the `transition_sums` of the states about (A, B).
    """
    start, loadings, (mean, var) = model.gaussian_prior, state.loadings, model.offset_moments(data)
    away = np.eye(model.state_dim) - state.transition
    noise_precision = invert_positive_definite(state.noise_cov)
    pull = np.einsum("ij,jk->ik", away.T, noise_precision)
    precision = later.count * np.einsum("ij,jk->ik", pull, away)
    linear = -np.einsum("ij,j->i", pull, later.ze[-1])
    initial_precision = invert_positive_definite(state.initial_cov)
    gap = start.strength * (start.mean - state.initial_mean)
    precision += start.strength * initial_precision
    linear += np.einsum("ij,j->i", initial_precision, gap)
    scaled = loadings / var[:, None]
    precision += np.einsum("ki,kj->ij", scaled, loadings)
    linear += np.einsum("ki,k->i", scaled, state.offset - mean)
    return 0.5 * (precision + precision.T), linear


def sample_level(rng: _Rng, precision: FloatArray, linear: FloatArray) -> FloatArray:
    """One draw of the translation."""
    half = invert_lower(lower_cholesky(precision))
    white = np.einsum("ij,j->i", half, linear) + rng.standard_normal(len(linear))
    return np.asarray(np.einsum("ij,i->j", half, white))


def move_level(
    rng: _Rng, model: LinearSystem, state: _State, later: RegressionSums, data: Sequences
) -> tuple[_State, FloatArray]:
    """A translation of the states, and the offset that undoes it.

    The initial mean moves along, and is drawn afresh by `draw_dynamics`.
    """
    delta = sample_level(rng, *level_potential(model, state, later, data))
    weights = state.weights.copy()
    weights[:, -1] -= np.einsum("kd,d->k", state.loadings, delta)
    return replace(state, weights=weights), delta


def moved_sums(
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


def draw_dynamics(
    rng: _Rng,
    model: LinearSystem,
    state: _State,
    later: RegressionSums,
    first: RegressionSums,
    data: Sequences,
) -> _State:
    """A, B, Q, m and V given moments of states, and standard deviations of effects on these."""
    x, prior = state.hyperparameters, model.dynamics_prior(data, state.hyperparameters)
    A, B, Q = conjugate.draw_dynamics(rng, prior, later)
    mean, cov = conjugate.draw_initial(rng, model.gaussian_prior, first)
    pooled = model.pooled(data)
    if pooled is not None and model.driving(data) is not None:
        x = x.copy()
        x[-1], B = pooled.move_states(rng, x[-1], B, Q, A, later)
    return replace(
        state, dynamics=np.concatenate([A, B], axis=1), noise_cov=Q, initial_mean=mean,
        initial_cov=cov, hyperparameters=x,
    )  # fmt: skip


def move_scales(
    rng: _Rng, model: LinearSystem, state: _State, data: Sequences
) -> tuple[_State, FloatArray]:
    """Factors of the states, ``(state_dim,)``, and the state but for these, which are in blocks.

    One slice update along a random direction.
    """
    a, direction = np.empty(model.state_dim), rng.standard_normal(model.state_dim)
    direction /= np.sqrt(np.einsum("d,d", direction, direction))
    law = law_of_scales(model, state, data)
    slice_scales(new_key(rng), direction, rng.standard_exponential(), law, a)
    factors = np.asarray(np.exp(a))
    return rescaled(state, factors), factors


def rescaled(state: _State, g: FloatArray) -> _State:
    """The parameters that go with states times g, ``(state_dim,)``: same probabilities."""
    both, D = g[:, None] * g, len(g)
    dynamics, weights = g[:, None] * state.dynamics, state.weights.copy()
    dynamics[:, :D] /= g
    weights[:, :D] /= g
    return replace(
        state, dynamics=dynamics, weights=weights, noise_cov=both * state.noise_cov,
        initial_mean=g * state.initial_mean, initial_cov=both * state.initial_cov,
        loading_var=state.loading_var / g**2,
    )  # fmt: skip


def law_of_scales(model: LinearSystem, state: _State, data: Sequences) -> ScaleLaw:
    """The law of the logarithms of the factors of `move_scales`: see `scale_log_density`."""
    prior = model.dynamics_prior(data, state.hyperparameters)
    start, (D, rows) = model.gaussian_prior, state.dynamics.shape
    # the Jacobian of (A, B, Q), and the determinants of their density
    linear = (rows - D) + D + 1.0 - (prior.dof + D + 1.0) - rows + 2.0 * model.loading_shape
    linear += D + 2.0 - (start.dof + D + 1.0) - 1.0  # and those of (m, V)
    return ScaleLaw(
        np.ascontiguousarray(state.dynamics.T), prior.mean, prior.row_precision, prior.scale,
        invert_positive_definite(state.noise_cov), state.initial_mean, start.mean,
        float(start.strength), start.scale, invert_positive_definite(state.initial_cov),
        float(model.loading_scale), state.loading_var, float(linear),
    )  # fmt: skip

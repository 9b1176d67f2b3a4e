"""Particles for linear Gaussian states seen through sticks.

    x_first ~ N(mean, initial_root initial_root'),    x_t ~ N(A x_{t-1} + drive_t, root root')
    counts_t ~ Multinomial(total_t, pi(offset + loadings x_t))

Particles look ahead. At each step the log likelihood is expanded to second order around the mode
of its product with the Gaussian that has the predicted particles' moments, which gives a Gaussian
potential g(x), the same for all particles. A particle and its ancestor are then proposed from the
mixture

    q(i, x) = share W_i f(x | x_i) + (1 - share) W_i f(x | x_i) g(x) / Z,
    Z = sum_i W_i integral f(x | x_i) g(x) dx,

where W are the weights of the last step and f the transition density, so that f cancels in

    weight = W_i f(x | x_i) p(counts | x) / q(i, x)
           = p(counts | x) / (share + (1 - share) g(x) / Z).

A fully adapted auxiliary filter (Pitt and Shephard 1999) is the limit of exact g; the blind share
bounds the weights whatever g is (Hesterberg 1995). The mean of the weights is an unbiased estimate
of p(counts_t | counts before) given the last step's particles, so that their product is one of the
likelihood.

Coordinate d of particle i stands at ``z[d, i]``.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgmult.compiled import linalg
from pgmult.compiled.jit import jit
from pgmult.compiled.streams import normal, open_stream, uniform
from pgmult.compiled.vectors import combine, copy, dot
from pgmult.sequences.compiled.likelihoods import WORK_ROWS, expand, log_likelihoods

Floats, Ints = NDArray[np.float64], NDArray[np.int64]
NEWTON_STEPS = 20
SMALL_DECREMENT = 0.05  # in units of log density
BACKWARD_MOVES = 8  # of each state of a path


class Parameters(NamedTuple):
    """Parameters of a state space; of many, arrays have a leading axis.

    Roots of covariances are lower triangular; ``columns`` are the transposed loadings.
    ``initial_mean`` has a row a sequence.
    """

    transition: Floats
    root: Floats
    initial_mean: Floats
    initial_root: Floats
    loadings: Floats
    columns: Floats
    offset: Floats
    input_weights: Floats
    emission_weights: Floats


class ParticleSteps(NamedTuple):
    """Sequences as `pgmult.sequences.Sequences` has them, but for the entries' `positions`.

    A position is a stick; they increase within a step.
    """

    offsets: Ints
    indptr: Ints
    positions: Ints
    counts: Ints
    inputs: Floats


class Filtered(NamedTuple):
    """The results of a particle filter, for each draw and step.

    Attributes
    ----------
    log_predictive : array, ``(num_draws, num_steps)``
        log p(x_t | x_1, ..., x_{t-1}) of each step's observations given those before in its
        sequence, without the multinomial coefficient; 0 at missing steps.
    last : array, ``(num_draws, num_sequences, num_last, D)``
        States of each sequence's last step given all its observations.
    paths : array, ``(num_draws, num_paths, num_steps, D)``
        States of all steps given all observations of their sequence.
    """

    log_predictive: NDArray[np.float64]
    last: NDArray[np.float64]
    paths: NDArray[np.float64]


@jit
def parameters_of(many, s):
    """Parameters of draw s."""
    return Parameters(
        many.transition[s], many.root[s], many.initial_mean[s], many.initial_root[s],
        many.loadings[s], many.columns[s], many.offset[s], many.input_weights[s],
        many.emission_weights[s],
    )  # fmt: skip


@jit(inline=True)
def entries_of(steps, t):
    """Positions and counts of a step."""
    entries = slice(steps.indptr[t], steps.indptr[t + 1])
    return steps.positions[entries], steps.counts[entries]


@jit(within=True)
def _look_ahead(positions, counts, columns, offset, mean, cov, J, h):
    """Expand the step's log likelihood to h'x - x'Jx / 2 around the mode under N(mean, cov).

    Newton's method with halved steps where the density does not rise. Where it ends does not
    matter for exactness; the expansion is at the last point that was an improvement.
    """
    depth = mean.shape[0]
    precision = linalg.invert_positive_definite(cov)
    gradient, curvature = np.empty(depth), np.empty((depth, depth))
    x, step, best = mean.copy(), np.empty(depth), mean.copy()
    highest = -math.inf
    for _ in range(NEWTON_STEPS):
        value = expand(positions, counts, columns, offset, x, gradient, curvature)
        for a in range(depth):
            step[a] = gradient[a]
            for b in range(depth):
                pull = precision[a, b] * (x[b] - mean[b])
                value -= 0.5 * (x[a] - mean[a]) * pull
                step[a] -= pull
        if not value >= highest:
            for a in range(depth):
                x[a] = 0.5 * (x[a] + best[a])
            continue
        highest = value
        copy(x, best)
        for a in range(depth):
            h[a] = gradient[a]
            for b in range(depth):
                J[a, b] = curvature[a, b]
                h[a] += J[a, b] * x[b]
        slope = step.copy()
        curvature += precision
        if linalg.cholesky(curvature):
            return
        linalg.solve_lower(curvature, step)
        linalg.solve_lower_transpose_by_rows(curvature, step)
        if dot(slope, step) < SMALL_DECREMENT:
            return
        x += step


@jit
def tilt(J, h, root, cov, tilted_root):
    """Covariance of N(., root root') times the potential, a root of it, and log|.| of the change.

    With R R' = I + root' J root the covariance is G G', G = root R^-T: nothing is inverted, so a
    `root` near singular does no harm.
    """
    depth = h.shape[0]
    inner, half = np.empty((depth, depth)), np.empty((depth, depth))
    linalg.product(J, root, half)
    linalg.product(root.T, half, inner)
    for a in range(depth):
        inner[a, a] += 1.0
    if linalg.cholesky(inner):
        return math.nan
    log_det = 0.0
    for a in range(depth):
        log_det += math.log(inner[a, a])
        for b in range(depth):
            total = root[a, b] if b <= a else 0.0
            for c in range(b):
                total -= tilted_root[a, c] * inner[b, c]
            tilted_root[a, b] = total / inner[b, b]
    for a in range(depth):
        for b in range(a + 1):
            cov[a, b] = dot(tilted_root[a], tilted_root[b])
            cov[b, a] = cov[a, b]
    return log_det


@jit
def log_potentials(J, h, z, work, out):
    """``out[i]`` = h'z_i - z_i'J z_i / 2."""
    out[:] = 0.0
    for a in range(h.shape[0]):
        pulled, za = work[0], z[a]
        combine(J[a], 0.0, z, pulled)
        for i in range(za.shape[0]):
            out[i] += za[i] * (h[a] - 0.5 * pulled[i])


@jit(within=True)
def tilt_particles(J, h, cov, log_det, predicted, work, pulls, tilted, out):
    """Means of N(predicted_i, .) times the potential, and the log of the integrals, out[i]."""
    size = predicted.shape[1]
    log_potentials(J, h, predicted, work, out)
    for a in range(h.shape[0]):
        pull = pulls[a]
        combine(J[a], 0.0, predicted, pull)
        for i in range(size):
            pull[i] = h[a] - pull[i]
    for a in range(h.shape[0]):
        shift = tilted[a]
        combine(cov[a], 0.0, pulls, shift)
        for i in range(size):
            out[i] += 0.5 * shift[i] * pulls[a, i]
            shift[i] += predicted[a, i]
    for i in range(size):
        out[i] -= log_det


@jit(reassociate=True)
def _moments(weights, z, root, mean, cov):
    """Mean of weighted particles, and their covariance plus root root'."""
    depth, size = z.shape
    for a in range(depth):
        za = z[a]
        total = 0.0
        for i in range(size):
            total += weights[i] * za[i]
        mean[a] = total
    for a in range(depth):
        za = z[a]
        for b in range(a + 1):
            zb = z[b]
            total = 0.0
            for i in range(size):
                total += weights[i] * (za[i] - mean[a]) * (zb[i] - mean[b])
            for c in range(b + 1):
                total += root[a, c] * root[b, c]
            cov[a, b] = total
            cov[b, a] = total


@jit
def normalize(log_weights, weights):
    """Fill `weights`, which sum to 1; returns the log of the sum of what was given."""
    largest, total = -math.inf, 0.0
    for i in range(log_weights.shape[0]):
        largest = max(largest, log_weights[i])
    if not math.isfinite(largest):
        return math.nan
    for i in range(weights.shape[0]):
        weights[i] = math.exp(log_weights[i] - largest)
        total += weights[i]
    for i in range(weights.shape[0]):
        weights[i] /= total
    return largest + math.log(total)


@jit
def _systematic(weights, u, ancestors):
    """Ancestors in proportion to weights, one uniform for all."""
    count, i, passed = ancestors.shape[0], 0, weights[0]
    for n in range(count):
        goal = (n + u) / count
        while passed < goal and i < weights.shape[0] - 1:
            i += 1
            passed += weights[i]
        ancestors[n] = i


@jit
def pick(running, u):
    """The index at which running sums of weights pass u times the last of them."""
    goal = u * running[-1]
    low, high = 0, running.shape[0] - 1
    while low < high:
        middle = (low + high) // 2
        if running[middle] > goal:
            high = middle
        else:
            low = middle + 1
    return low


@jit
def running_sums(weights, running):
    """Sums of the weights up to and including each."""
    total = 0.0
    for i in range(weights.shape[0]):
        total += weights[i]
        running[i] = total


@jit
def predict(transition, drive, z, predicted):
    """Means of the next states, ``drive + transition z``."""
    for a in range(drive.shape[0]):
        combine(transition[a], drive[a], z, predicted[a])


@jit
def spread(i, middle, ancestor, root, state, z):
    """Particle i around column `ancestor` of `middle`, with noise of covariance root root'."""
    depth = root.shape[0]
    for a in range(depth):
        z[a, i] = middle[a, ancestor]
    for b in range(depth):
        noise, state = normal(state)
        for a in range(depth):
            z[a, i] += root[a, b] * noise
    return state


@jit
def move(inputs, weights, base, out):
    """Write base + weights inputs."""
    for a in range(base.shape[0]):
        out[a] = base[a] + dot(weights[a], inputs)


@jit(within=True)
def _divide(share, log_z, J, h, z, work, log_weights):
    """Divide weights by the proposal's density in units of f, all in logarithms."""
    ahead = work[1]
    log_potentials(J, h, z, work, ahead)
    for i in range(z.shape[1]):
        relative = ahead[i] - log_z
        if relative > 0.0:
            log_weights[i] -= relative + math.log(share * math.exp(-relative) + (1.0 - share))
        else:
            log_weights[i] -= math.log(share + (1.0 - share) * math.exp(relative))


@jit(within=True)
def _see(state, model, root, steps, t, num_blind, particles, room):
    """Move particles to a step that has entries, and weigh them.

    `particles` are predicted means, weights, places and ancestors; means alone are of this step.
    What is in `room` is written before it is read.
    Returns the stream's state and the step's log predictive, nan where weights are not finite.
    """
    predicted, weights, z, ancestors = particles
    pulls, tilted, work, log_weights, log_ahead, adapted = room[:6]
    mean, h, cov, J, tilted_cov, tilted_root, level = room[6:]
    (positions, times), size = entries_of(steps, t), z.shape[1]
    share = num_blind / size
    move(steps.inputs[t], model.emission_weights, model.offset, level)
    _moments(weights, predicted, root, mean, cov)
    _look_ahead(positions, times, model.columns, level, mean, cov, J, h)
    log_det = tilt(J, h, root, tilted_cov, tilted_root)
    tilt_particles(J, h, tilted_cov, log_det, predicted, work, pulls, tilted, log_ahead)
    for i in range(size):
        log_ahead[i] += math.log(weights[i]) if weights[i] > 0.0 else -math.inf
    log_z = normalize(log_ahead, adapted)
    if not math.isfinite(log_z):
        return state, math.nan
    u, state = uniform(state)
    _systematic(weights, u, ancestors[:num_blind])
    u, state = uniform(state)
    _systematic(adapted, u, ancestors[num_blind:])
    for i in range(num_blind):
        state = spread(i, predicted, ancestors[i], root, state, z)
    for i in range(num_blind, size):
        state = spread(i, tilted, ancestors[i], tilted_root, state, z)
    log_likelihoods(positions, times, model.loadings, level, z, work, log_weights)
    _divide(share, log_z, J, h, z, work, log_weights)
    return state, normalize(log_weights, weights) - math.log(size)


class History(NamedTuple):
    """What a filter keeps of each step of a sequence, for paths back through it, or of the last.

    ``moved`` holds A z + drive of the next step of each particle, ``running`` the running sums of
    weights, ``parents`` the particle of the step before that each one comes from.
    """

    z: Floats
    moved: Floats
    running: Floats
    parents: Ints


@jit
def _log_transition(x, moved, i, root, work):
    """Log density of a step to x from particle i, up to a constant."""
    total = 0.0
    for a in range(x.shape[0]):
        gap = x[a] - moved[a, i]
        for b in range(a):
            gap -= root[a, b] * work[b]
        work[a] = gap / root[a, a]
        total -= 0.5 * work[a] * work[a]
    return total


@jit(within=True)
def trace_back(state, root, history, ends, paths):
    """Fill `paths` ``(num_paths, length, D)`` with draws of the states given all observations.

    A path begins at particle ``ends[m]`` of the last step. Its particle a step before starts as the
    parent and is moved by some Metropolis steps that leave weight times transition density
    invariant, so that paths do not all meet in a few ancestors (Bunch and Godsill 2013).
    """
    length, work = history.z.shape[0], np.empty(history.z.shape[1])
    for m in range(ends.shape[0]):
        i = ends[m]
        copy(history.z[length - 1, :, i], paths[m, length - 1])
        for t in range(length - 2, -1, -1):
            i = history.parents[t + 1, i]
            x, moved = paths[m, t + 1], history.moved[t]
            now = _log_transition(x, moved, i, root, work)
            for _ in range(BACKWARD_MOVES):
                u, state = uniform(state)
                j = pick(history.running[t], u)
                other = _log_transition(x, moved, j, root, work)
                u, state = uniform(state)
                if math.log(u) < other - now:
                    i, now = j, other
            copy(history.z[t, :, i], paths[m, t])
    return state


@jit
def filter_rows(worker, start, stop, keys, num_particles, num_blind, steps, draws, out):
    """Filter row = draw * num_sequences + sequence; fills `out`, a `Filtered`.

    `num_blind` of the particles are proposed from the transition alone; ancestors are resampled
    systematically. A missing step only moves the particles. Sequence q's random numbers are those
    of ``keys[q]``. Returns 0, or 1 + the step at which the weights are not finite.
    """
    log_predictive, last, paths = out
    num_sequences, num_paths = steps.offsets.shape[0] - 1, paths.shape[1]
    depth, size = draws.root.shape[1], num_particles
    weights, drive, zeros = np.empty(size), np.empty(depth), np.zeros(depth)
    room = (
        np.empty((depth, size)), np.empty((depth, size)), np.empty((WORK_ROWS, size)),
        np.empty(size), np.empty(size), np.empty(size), np.empty(depth), np.empty(depth),
        np.empty((depth, depth)), np.empty((depth, depth)), np.empty((depth, depth)),
        np.empty((depth, depth)), np.empty(draws.offset.shape[1]),
    )  # fmt: skip
    ends = np.empty(max(num_paths, last.shape[2]), np.int64)
    for row in range(start, stop):
        s, q = row // num_sequences, row % num_sequences
        model = parameters_of(draws, s)
        state = open_stream(keys[q], s)
        weights[:] = 1.0 / size
        first, end = steps.offsets[q], steps.offsets[q + 1]
        length = end - first if num_paths > 0 else 1
        history = History(
            np.empty((length, depth, size)), np.empty((length, depth, size)),
            np.empty((length, size)), np.empty((length, size), np.int64),
        )  # fmt: skip
        for t in range(first, end):
            now = min(t - first, length - 1)
            before = max(now - 1, 0)
            z, predicted, ancestors = history.z[now], history.moved[before], history.parents[now]
            root = model.root
            if t == first:
                root = model.initial_root
                for a in range(depth):
                    predicted[a, :] = model.initial_mean[q, a]
            else:
                move(steps.inputs[t], model.input_weights, zeros, drive)
                predict(model.transition, drive, history.z[before], predicted)
            log_predictive[s, t] = 0.0
            if steps.indptr[t] == steps.indptr[t + 1]:
                for i in range(size):
                    ancestors[i] = i
                    state = spread(i, predicted, i, root, state, z)
            else:
                particles = predicted, weights, z, ancestors
                state, log_p = _see(state, model, root, steps, t, num_blind, particles, room)
                log_predictive[s, t] = log_p
                if not math.isfinite(log_p):
                    return 1 + t
            running_sums(weights, history.running[now])
        for wanted in (last.shape[2], num_paths):
            if wanted > 0:
                u, state = uniform(state)
                _systematic(weights, u, ends[:wanted])
        for m in range(last.shape[2]):
            copy(history.z[length - 1, :, ends[m]], last[s, q, m])
        if num_paths > 0:
            state = trace_back(state, model.root, history, ends[:num_paths], paths[s, :, first:end])
    return 0

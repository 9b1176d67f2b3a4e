"""Particle Gibbs with ancestor sampling on blocks of steps, the states around a block fixed.

Of the model and by the particles of `pgmult.sequences.compiled.particles`; the algorithm is that of
Lindsten, Jordan and Schön (2014). Particles look ahead to the end of the block: likelihoods are
expanded around the block's mode, and the Gaussian messages H_t(x_t) that come back from there twist
the targets (Whiteley and Lee 2014), so that with g_t the potential of step t, f the transition
density and a blind share of particles that look at nothing

    weight = p(counts | x) r / (share + (1 - share) g_t(x) r),    r = H_t(x) / H_{t-1}(x_i).

Were the expansion exact all weights would be 1. Ancestors are drawn again only where the effective
size falls below half of the particles.
"""

import math
from typing import NamedTuple

import numpy as np

from examples.papers.linderman2015.compiled.softmax_likelihoods import (
    WORK_ROWS,
    expand,
    log_likelihoods,
)
from pgmult.compiled.jit import jit
from pgmult.compiled.linalg import invert_lower, invert_positive_definite, product
from pgmult.compiled.streams import open_stream, uniform
from pgmult.compiled.vectors import combine, dot
from pgmult.sequences.compiled.particles import (
    NEWTON_STEPS,
    SMALL_DECREMENT,
    Floats,
    Ints,
    entries_of,
    log_potentials,
    move,
    normalize,
    parameters_of,
    pick,
    predict,
    running_sums,
    spread,
    tilt,
    tilt_particles,
)


@jit
def _transposed_product(a, b, out):
    """Write ``a' b`` to `out`, one sum after the other."""
    for i in range(a.shape[1]):
        for j in range(b.shape[1]):
            total = 0.0
            for k in range(a.shape[0]):
                total += a[k, i] * b[k, j]
            out[i, j] = total


class Block(NamedTuple):
    """A block of steps with the prior of its states, given those around it.

    Of the first step the noise may be another than the dynamics', at ``roots[0]``.
    """

    begin: int
    length: int
    followed: bool
    """Whether the sequence goes on: then messages come from the state after the block."""
    start: Floats
    """Predicted mean of the first step."""
    drives: Floats
    levels: Floats
    """Offset and inputs' part of the link's argument."""
    roots: tuple[Floats, Floats]
    inverse_roots: tuple[Floats, Floats]
    precision: Floats
    """Of the dynamics' noise."""


class Gaussian(NamedTuple):
    """The block's Gaussian, step by step: potentials, messages, and each step given the last.

    A step's potential, (J, h), times the message of what follows it, H_t(x) = exp(m'x - x'Mx / 2)
    up to a constant, is (X, b); given the step's predicted mean y, the step is
    N(y + S (b - X y), S), S = G G'.
    """

    J: Floats
    h: Floats
    M: Floats
    m: Floats
    X: Floats
    b: Floats
    S: Floats
    G: Floats
    log_dets: Floats


class Swarm(NamedTuple):
    """The block's particles and their ancestors, and scratch of one step."""

    places: Floats
    ancestors: Ints
    predicted: Floats
    tilted: Floats
    pulls: Floats
    surprise: Floats
    work: Floats
    weights: Floats
    log_weights: Floats
    log_z: Floats
    ahead: Floats
    future: Floats
    running: Floats


@jit(within=True)
def _surround(block, model, steps, states, q, gaussian):
    """Fill in the prior of a block of sequence q, and the message of the state that follows it."""
    begin, length, depth = block.begin, block.length, block.start.shape[0]
    zeros = np.zeros(depth)
    for t in range(length + block.followed):
        move(steps.inputs[begin + t], model.input_weights, zeros, block.drives[t])
    for t in range(length):
        move(steps.inputs[begin + t], model.emission_weights, model.offset, block.levels[t])
    if begin == steps.offsets[q]:
        block.start[:] = model.initial_mean[q]
    else:
        move(states[begin - 1], model.transition, block.drives[0], block.start)
    M, m = gaussian.M[length - 1], gaussian.m[length - 1]
    if not block.followed:
        M[:] = 0.0
        m[:] = 0.0
        return
    pull, precision, transition = np.empty(depth), block.precision, model.transition
    for i in range(depth):
        pull[i] = states[begin + length, i] - block.drives[length, i]
    for i in range(depth):
        total = 0.0
        for k in range(depth):
            for j in range(depth):
                total += transition[k, i] * precision[k, j] * pull[j]
        m[i] = total
        for j in range(depth):
            total = 0.0
            for k in range(depth):
                total += transition[k, i] * dot(precision[k], transition[:, j])
            M[i, j] = total


@jit(within=True)
def _pull_back(transition, precision, drive, S, X, b, inner, outer, pull, back, M, m):
    """The message (M, m) to a step from the one after it, whose law given it is (S, X, b)."""
    depth = m.shape[0]
    # precision - precision S precision = precision S X: nothing is subtracted
    for i in range(depth):
        for j in range(depth):
            inner[i, j] = dot(S[i], X[j])
    product(precision, inner, outer)
    for i in range(depth):
        for j in range(i):
            outer[i, j] = 0.5 * (outer[i, j] + outer[j, i])
            outer[j, i] = outer[i, j]
    for i in range(depth):
        back[i] = dot(S[i], b)
    for i in range(depth):
        pull[i] = dot(precision[i], back) - dot(outer[i], drive)
    for i in range(depth):
        m[i] = 0.0
        for k in range(depth):
            m[i] += transition[k, i] * pull[k]
    product(outer, transition, inner)
    _transposed_product(transition, inner, M)


@jit(within=True)
def _send_back(block, transition, gaussian):
    """Messages from the block's end, and the law of each step. False if something is singular."""
    J, h, M, m, X, b, S, G, log_dets = gaussian
    depth = h.shape[1]
    inner, outer = np.empty((depth, depth)), np.empty((depth, depth))
    pull, back = np.empty(depth), np.empty(depth)
    for t in range(block.length - 1, -1, -1):
        for i in range(depth):
            b[t, i] = h[t, i] + m[t, i]
            for j in range(depth):
                X[t, i, j] = J[t, i, j] + M[t, i, j]
        log_dets[t] = tilt(X[t], b[t], block.roots[min(t, 1)], S[t], G[t])
        if not math.isfinite(log_dets[t]):
            return False
        if t > 0:
            _pull_back(
                transition, block.precision, block.drives[t], S[t], X[t], b[t], inner, outer, pull,
                back, M[t - 1], m[t - 1],
            )  # fmt: skip
    return True


@jit(within=True)
def _mean_path(block, transition, gaussian, path):
    """Means of the block's Gaussian, forwards."""
    depth = path.shape[1]
    y, pull = block.start.copy(), np.empty(depth)
    for t in range(block.length):
        if t > 0:
            for i in range(depth):
                y[i] = block.drives[t, i] + dot(transition[i], path[t - 1])
        for i in range(depth):
            pull[i] = gaussian.b[t, i] - dot(gaussian.X[t, i], y)
        for i in range(depth):
            path[t, i] = y[i] + dot(gaussian.S[t, i], pull)


@jit(within=True)
def _log_prior(block, transition, gaussian, path):
    """Of a path, what follows the block included, up to a constant."""
    depth = path.shape[1]
    difference = np.empty(depth)
    total = 0.0
    for t in range(block.length):
        inverse_root = block.inverse_roots[min(t, 1)]
        for i in range(depth):
            difference[i] = path[t, i] - block.start[i]
            if t > 0:
                difference[i] = path[t, i] - block.drives[t, i] - dot(transition[i], path[t - 1])
        for i in range(depth):
            scaled = dot(inverse_root[i], difference)
            total -= 0.5 * scaled * scaled
    end = block.length - 1
    for i in range(depth):
        pulled = dot(gaussian.M[end, i], path[end])
        total += path[end, i] * (gaussian.m[end, i] - 0.5 * pulled)
    return total


@jit(within=True)
def _expand_path(block, model, steps, path, J, h):
    """Log likelihood of the block's counts along a path, and its expansion there."""
    columns, levels = model.columns, block.levels
    value, depth = 0.0, path.shape[1]
    for t in range(block.length):
        seen, times = entries_of(steps, block.begin + t)
        if seen.shape[0] == 0:
            J[t] = 0.0
            h[t] = 0.0
            continue
        value += expand(seen, times, columns, levels[t], path[t], h[t], J[t])
        for i in range(depth):
            h[t, i] += dot(J[t, i], path[t])
    return value


@jit(within=True)
def _find_mode(block, model, steps, gaussian):
    """Expand the likelihoods around the mode of the block, from where the prior alone puts it.

    Newton's method with halved steps, as for one step. False if something is singular.
    """
    length, depth = block.length, block.start.shape[0]
    path, best = np.empty((length, depth)), np.empty((length, depth))
    gaussian.J[:length] = 0.0
    gaussian.h[:length] = 0.0
    highest, gain, rises = -math.inf, math.inf, True
    for _ in range(NEWTON_STEPS + 1):
        if rises:
            if not _send_back(block, model.transition, gaussian):
                return False
            if gain < SMALL_DECREMENT * length:
                break
            _mean_path(block, model.transition, gaussian, path)
        else:
            for t in range(length):
                for i in range(depth):
                    path[t, i] = 0.5 * (path[t, i] + best[t, i])
        value = _log_prior(block, model.transition, gaussian, path)
        value += _expand_path(block, model, steps, path, gaussian.J, gaussian.h)
        rises = value >= highest
        if rises:
            gain = value - highest
            highest = value
            best[:] = path
    return True


@jit
def effective_size_of(weights):
    """1 / sum of squared weights, which sum to 1."""
    squares = 0.0
    for i in range(weights.shape[0]):
        squares += weights[i] * weights[i]
    return 1.0 / squares


@jit(within=True)
def _draw_ancestors(state, inverse_root, present, ancestors, swarm):
    """Ancestors in proportion to weights; the present path's, also to where it goes from them.

    Returns the stream's state, and whether a weight of the present path's is finite.
    """
    (depth, size), running, ahead = swarm.surprise.shape, swarm.running, swarm.ahead
    running_sums(swarm.weights, running)
    for i in range(size - 1):
        u, state = uniform(state)
        ancestors[i] = pick(running, u)
    for i in range(depth):
        for n in range(size):
            swarm.surprise[i, n] = present[i] - swarm.predicted[i, n]
    for n in range(size):
        ahead[n] = swarm.log_weights[n] - swarm.log_z[n]
    for i in range(depth):
        scaled = swarm.work[0]
        combine(inverse_root[i], 0.0, swarm.surprise, scaled)
        for n in range(size):
            ahead[n] -= 0.5 * scaled[n] * scaled[n]
    if not math.isfinite(normalize(ahead, swarm.weights)):
        return state, False
    running_sums(swarm.weights, running)
    u, state = uniform(state)
    ancestors[size - 1] = pick(running, u)
    swarm.log_weights[:] = 0.0
    return state, True


@jit(within=True)
def _weigh(share, log_z, ancestors, likelihood, future, ahead, log_weights):
    """Multiply weights by likelihoods over the proposal's densities, all in logarithms."""
    for i in range(log_weights.shape[0]):
        before = log_z[ancestors[i]]
        relative = ahead[i] - before
        largest = max(relative, 0.0)
        blind = share * math.exp(-largest)
        density = math.log(blind + (1.0 - share) * math.exp(relative - largest))
        log_weights[i] += likelihood[i] + future[i] - before - largest - density


@jit(within=True)
def _fly(state, block, model, steps, states, gaussian, share, swarm):
    """Particles through the block, the present path the last of them.

    Returns the stream's state, and 0 or 1 + a step at which no weight is finite.
    """
    places, lineage, predicted, tilted, pulls, surprise, work = swarm[:7]
    weights, log_weights, log_z, ahead, future, _ = swarm[7:]
    _, _, M, m, X, b, S, G, log_dets = gaussian
    depth, size = predicted.shape
    log_weights[:] = 0.0
    for t in range(block.length):
        z, ancestors, present = places[t], lineage[t], states[block.begin + t]
        if t == 0:
            for i in range(depth):
                predicted[i, :] = block.start[i]
        else:
            predict(model.transition, block.drives[t], places[t - 1], predicted)
        tilt_particles(X[t], b[t], S[t], log_dets[t], predicted, work, pulls, tilted, log_z)
        normalize(log_weights, weights)
        for i in range(size):
            ancestors[i] = i
        if t > 0 and 2.0 * effective_size_of(weights) < size:
            state, fine = _draw_ancestors(state, block.inverse_roots[1], present, ancestors, swarm)
            if not fine:
                return state, 1 + block.begin + t
        root = block.roots[min(t, 1)]
        for i in range(size - 1):
            coin, state = uniform(state)
            if coin < share:
                state = spread(i, predicted, ancestors[i], root, state, z)
            else:
                state = spread(i, tilted, ancestors[i], G[t], state, z)
        for i in range(depth):
            z[i, size - 1] = present[i]
        seen, times = entries_of(steps, block.begin + t)
        likelihood = surprise[0]
        log_likelihoods(seen, times, model.loadings, block.levels[t], z, work, likelihood)
        log_potentials(M[t], m[t], z, work, future)
        log_potentials(X[t], b[t], z, work, ahead)
        _weigh(share, log_z, ancestors, likelihood, future, ahead, log_weights)
        if not math.isfinite(normalize(log_weights, weights)):
            return state, 1 + block.begin + t
    return state, 0


@jit(within=True)
def _trace_back(block, u, swarm, states):
    """Draw a particle of the last step, and write it and its ancestors; how many states are new."""
    running_sums(swarm.weights, swarm.running)
    chosen, changed = pick(swarm.running, u), 0
    present = swarm.weights.shape[0] - 1
    for t in range(block.length - 1, -1, -1):
        for i in range(states.shape[1]):
            states[block.begin + t, i] = swarm.places[t, i, chosen]
        changed += chosen != present
        chosen = swarm.ancestors[t, chosen]
    return changed


@jit(within=True)
def _gaussian(longest, depth):
    vectors, matrices = (longest, depth), (longest, depth, depth)
    return Gaussian(
        np.empty(matrices), np.empty(vectors), np.empty(matrices), np.empty(vectors),
        np.empty(matrices), np.empty(vectors), np.empty(matrices), np.empty(matrices),
        np.empty(longest),
    )  # fmt: skip


@jit(within=True)
def _swarm(longest, depth, size):
    return Swarm(
        np.empty((longest, depth, size)), np.empty((longest, size), np.int64),
        np.empty((depth, size)), np.empty((depth, size)), np.empty((depth, size)),
        np.empty((depth, size)), np.empty((WORK_ROWS, size)), np.empty(size), np.empty(size),
        np.empty(size), np.empty(size), np.empty(size), np.empty(size),
    )  # fmt: skip


@jit
def conditional_blocks(
    worker, start, stop, key, num_particles, share, block_starts, block_stops, sequences, steps,
    draws, states, moved,
):  # fmt: skip
    """Particle Gibbs with ancestor sampling on blocks of steps, under the first of `draws`.

    Updates `states`, (num_steps, state_dim), in place at steps ``block_starts[r]`` to
    ``block_stops[r] - 1`` of sequence ``sequences[r]``; no two blocks of a call are neighbours.
    ``moved[r]`` counts the steps whose state is new. Returns 0, or 1 + a step at which no weight
    is finite.
    """
    model = parameters_of(draws, 0)
    depth, root = model.root.shape[0], model.root
    inverse_root = invert_lower(root)
    precision = invert_positive_definite(root @ root.T)
    initial_roots = (model.initial_root, root)
    initial_inverses = (invert_lower(model.initial_root), inverse_root)
    longest = 0
    for r in range(start, stop):
        longest = max(longest, block_stops[r] - block_starts[r])
    first_mean, drives = np.empty(depth), np.zeros((longest + 1, depth))
    levels = np.empty((longest, model.offset.shape[0]))
    gaussian, swarm = _gaussian(longest, depth), _swarm(longest, depth, num_particles)
    for r in range(start, stop):
        begin, end, q = block_starts[r], block_stops[r], sequences[r]
        opens = begin == steps.offsets[q]
        block = Block(
            begin, end - begin, end < steps.offsets[q + 1], first_mean, drives, levels,
            initial_roots if opens else (root, root),
            initial_inverses if opens else (inverse_root, inverse_root), precision,
        )  # fmt: skip
        _surround(block, model, steps, states, q, gaussian)
        if not _find_mode(block, model, steps, gaussian):
            return 1 + begin
        state = open_stream(key, begin)
        state, failed = _fly(state, block, model, steps, states, gaussian, share, swarm)
        if failed:
            return failed
        u, state = uniform(state)
        moved[r] = _trace_back(block, u, swarm, states)
    return 0

"""Particles for linear Gaussian states seen through sticks or a softmax.

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
likelihood. `conditional_rows` runs the same scheme around a reference path, with ancestor sampling
(Lindsten, Jordan and Schön 2014), which leaves the law of the states given the data invariant.

Particles stand side by side, coordinate d of particle i at ``z[d, i]``, so that loops over them
vectorise. A symbol at stick k takes k products of `loadings` and z. Entries of a step are sorted
by position: a stick, or with a softmax the row of `loadings`.
"""

import math

import numpy as np

from ._jit import jit
from .linalg import cholesky, invert_positive_definite
from .streams import normal, open_stream, uniform
from .vectors import FACTORS, combine, dot, exp_minus, multiply_softplus

_BLOCK = 32  # rows of a softmax whose maximum is taken together
_NEWTON_STEPS = 20
_SMALL_DECREMENT = 0.05  # in units of log density


@jit
def _stick_log_likelihoods(positions, counts, loadings, offset, z, work, out):
    """Log likelihood of one step's counts for every particle, only the sticks they reach."""
    num_sticks, size = offset.shape[0], z.shape[1]
    psi, product, linear = work[0], work[1], work[2]
    out[:] = 0.0
    reaching = 0
    for e in range(positions.shape[0]):
        reaching += counts[e]
    first = 0
    for e in range(positions.shape[0]):
        position = positions[e]
        product[:] = 1.0
        linear[:] = 0.0
        for j in range(first, min(position + 1, num_sticks)):
            combine(loadings[j], offset[j], z, psi)
            multiply_softplus(psi, product, linear)
            if (j - first) % FACTORS == FACTORS - 1:
                for i in range(size):
                    linear[i] += math.log(product[i])
                    product[i] = 1.0
        for i in range(size):
            out[i] -= reaching * (linear[i] + math.log(product[i]))
        if position < num_sticks:
            for i in range(size):
                out[i] += counts[e] * psi[i]
        reaching -= counts[e]
        first = position + 1


@jit
def _softmax_log_likelihoods(positions, counts, loadings, offset, z, work, out):
    """Log likelihood of one step's counts for every particle; sums of exponentials by blocks."""
    num_rows, size = offset.shape[0], z.shape[1]
    largest, total, top = work[_BLOCK], work[_BLOCK + 1], work[_BLOCK + 2]
    out[:] = 0.0
    trials = 0
    for e in range(positions.shape[0]):
        psi = work[0]
        combine(loadings[positions[e]], offset[positions[e]], z, psi)
        trials += counts[e]
        for i in range(size):
            out[i] += counts[e] * psi[i]
    largest[:] = -1e300
    total[:] = 0.0
    for first in range(0, num_rows, _BLOCK):
        rows = min(_BLOCK, num_rows - first)
        top[:] = largest
        for r in range(rows):
            psi = work[r]
            combine(loadings[first + r], offset[first + r], z, psi)
            for i in range(size):
                top[i] = max(top[i], psi[i])
        for i in range(size):
            total[i] *= exp_minus(top[i] - largest[i])
            largest[i] = top[i]
        for r in range(rows):
            psi = work[r]
            for i in range(size):
                total[i] += exp_minus(top[i] - psi[i])
    for i in range(size):
        out[i] -= trials * (largest[i] + math.log(total[i]))


@jit
def log_likelihoods(softmax, positions, counts, loadings, offset, z, work, out):
    """Log likelihood, without the multinomial coefficient, of one step for every particle.

    `z` is (state_dim, num_particles), `work` (`WORK_ROWS`, num_particles).
    """
    if softmax:
        _softmax_log_likelihoods(positions, counts, loadings, offset, z, work, out)
    else:
        _stick_log_likelihoods(positions, counts, loadings, offset, z, work, out)


WORK_ROWS = _BLOCK + 3


@jit(reassociate=True)
def _add_outer(curvature, weight, row):
    """Add weight row row' to the lower triangle of `curvature`."""
    for a in range(row.shape[0]):
        scale = weight * row[a]
        for b in range(a + 1):
            curvature[a, b] += scale * row[b]


@jit
def _expand_sticks(positions, counts, loadings, offset, x, gradient, curvature):
    """Log likelihood at `x`, its gradient and minus its second derivative (lower triangle)."""
    num_sticks = offset.shape[0]
    value = 0.0
    reaching = 0
    for e in range(positions.shape[0]):
        reaching += counts[e]
    first = 0
    for e in range(positions.shape[0]):
        for j in range(first, min(positions[e] + 1, num_sticks)):
            taken = counts[e] if j == positions[e] else 0
            psi = offset[j] + dot(loadings[j], x)
            small = math.exp(-abs(psi))
            share = (1.0 if psi >= 0.0 else small) / (1.0 + small)
            value += taken * psi - reaching * (max(psi, 0.0) + math.log1p(small))
            slope = taken - reaching * share
            for d in range(x.shape[0]):
                gradient[d] += slope * loadings[j, d]
            _add_outer(curvature, reaching * share * (1.0 - share), loadings[j])
        reaching -= counts[e]
        first = positions[e] + 1
    return value


@jit
def _expand_softmax(positions, counts, loadings, offset, x, gradient, curvature):
    """Log likelihood at `x`, its gradient and minus its second derivative (lower triangle)."""
    num_rows, depth = loadings.shape
    psi = np.empty(num_rows)
    mean = np.zeros(depth)
    largest = -math.inf
    for k in range(num_rows):
        psi[k] = offset[k] + dot(loadings[k], x)
        largest = max(largest, psi[k])
    total = 0.0
    for k in range(num_rows):
        total += math.exp(psi[k] - largest)
    log_total = largest + math.log(total)
    value = 0.0
    trials = 0
    for e in range(positions.shape[0]):
        value += counts[e] * (psi[positions[e]] - log_total)
        trials += counts[e]
        for d in range(depth):
            gradient[d] += counts[e] * loadings[positions[e], d]
    for k in range(num_rows):
        share = math.exp(psi[k] - log_total)
        for d in range(depth):
            mean[d] += share * loadings[k, d]
        _add_outer(curvature, trials * share, loadings[k])
    for d in range(depth):
        gradient[d] -= trials * mean[d]
    _add_outer(curvature, -np.float64(trials), mean)
    return value


@jit
def expand(softmax, positions, counts, loadings, offset, x, gradient, curvature):
    """Log likelihood at the vector `x`; fills its gradient and minus its second derivative."""
    gradient[:] = 0.0
    curvature[:] = 0.0
    if softmax:
        value = _expand_softmax(positions, counts, loadings, offset, x, gradient, curvature)
    else:
        value = _expand_sticks(positions, counts, loadings, offset, x, gradient, curvature)
    for a in range(x.shape[0]):
        for b in range(a):
            curvature[b, a] = curvature[a, b]
    return value


@jit
def _solve(root, b):
    """Solve root root' x = b in place, `root` lower triangular."""
    n = b.shape[0]
    for a in range(n):
        for c in range(a):
            b[a] -= root[a, c] * b[c]
        b[a] /= root[a, a]
    for a in range(n - 1, -1, -1):
        for c in range(a + 1, n):
            b[a] -= root[c, a] * b[c]
        b[a] /= root[a, a]


@jit
def _look_ahead(softmax, positions, counts, loadings, offset, mean, cov, J, h):
    """Expand the step's log likelihood to h'x - x'Jx / 2 around the mode under N(mean, cov).

    Newton's method with halved steps where the density does not rise. Where it ends does not
    matter for exactness; the expansion is at the last point that was an improvement.
    """
    depth = mean.shape[0]
    if positions.shape[0] == 0:
        J[:] = 0.0
        h[:] = 0.0
        return
    precision = invert_positive_definite(cov)
    gradient, curvature = np.empty(depth), np.empty((depth, depth))
    x, step, best = mean.copy(), np.empty(depth), mean.copy()
    highest = -math.inf
    for _ in range(_NEWTON_STEPS):
        value = expand(softmax, positions, counts, loadings, offset, x, gradient, curvature)
        for a in range(depth):
            step[a] = gradient[a]
            for b in range(depth):
                pull = precision[a, b] * (x[b] - mean[b])
                value -= 0.5 * (x[a] - mean[a]) * pull
                step[a] -= pull
        if not value >= highest:
            x[:] = 0.5 * (x + best)
            continue
        highest = value
        best[:] = x
        for a in range(depth):
            h[a] = gradient[a]
            for b in range(depth):
                J[a, b] = curvature[a, b]
                h[a] += J[a, b] * x[b]
        slope = step.copy()
        curvature += precision
        if cholesky(curvature):
            return
        _solve(curvature, step)
        if dot(slope, step) < _SMALL_DECREMENT:
            return
        x += step


@jit
def _tilt(J, h, root, cov, tilted_root):
    """Covariance of N(., root root') times the potential, a root of it, and log|.| of the change.

    With R R' = I + root' J root the covariance is G G', G = root R^-T: nothing is inverted, so a
    `root` near singular does no harm.
    """
    depth = h.shape[0]
    inner = np.zeros((depth, depth))
    half = np.zeros((depth, depth))
    for a in range(depth):
        for b in range(depth):
            for c in range(b, depth):
                half[a, b] += J[a, c] * root[c, b]
    for a in range(depth):
        for b in range(depth):
            for c in range(a, depth):
                inner[a, b] += root[c, a] * half[c, b]
        inner[a, a] += 1.0
    if cholesky(inner):
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
def _log_potentials(J, h, z, work, out):
    """``out[i]`` = h'z_i - z_i'J z_i / 2."""
    out[:] = 0.0
    for a in range(h.shape[0]):
        pulled = work[0]
        combine(J[a], 0.0, z, pulled)
        za = z[a]
        for i in range(za.shape[0]):
            out[i] += za[i] * (h[a] - 0.5 * pulled[i])


@jit
def _tilt_particles(J, h, cov, log_det, predicted, work, pulls, tilted, out):
    """Means of N(predicted_i, .) times the potential, and the log of the integrals, out[i]."""
    size = predicted.shape[1]
    _log_potentials(J, h, predicted, work, out)
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
def _normalize(log_weights, weights):
    """Fill `weights`, which sum to 1; returns the log of the sum of what was given."""
    largest = -math.inf
    for i in range(log_weights.shape[0]):
        largest = max(largest, log_weights[i])
    if not math.isfinite(largest):
        return math.nan
    total = 0.0
    for i in range(weights.shape[0]):
        weights[i] = math.exp(log_weights[i] - largest)
        total += weights[i]
    for i in range(weights.shape[0]):
        weights[i] /= total
    return largest + math.log(total)


@jit
def _systematic(weights, u, ancestors):
    """Ancestors in proportion to weights, one uniform for all."""
    count = ancestors.shape[0]
    i, passed = 0, weights[0]
    for n in range(count):
        goal = (n + u) / count
        while passed < goal and i < weights.shape[0] - 1:
            i += 1
            passed += weights[i]
        ancestors[n] = i


@jit
def _pick(running, u):
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
def _running_sums(weights, running):
    total = 0.0
    for i in range(weights.shape[0]):
        total += weights[i]
        running[i] = total


@jit
def _predict(transition, drive, z, predicted):
    for a in range(drive.shape[0]):
        combine(transition[a], drive[a], z, predicted[a])


@jit
def _spread(i, middle, ancestor, root, state, z):
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
def _move(inputs, weights, base, out):
    """Write base + weights inputs."""
    for a in range(base.shape[0]):
        out[a] = base[a] + dot(weights[a], inputs)


@jit
def _weigh(softmax, positions, counts, loadings, offset, z, share, log_z, J, h, work, out):
    """Log weights of particles: their likelihood over the proposal's density in units of f."""
    size = z.shape[1]
    log_likelihoods(softmax, positions, counts, loadings, offset, z, work, out)
    ahead = work[1]
    _log_potentials(J, h, z, work, ahead)
    for i in range(size):
        relative = ahead[i] - log_z
        if relative > 0.0:
            out[i] -= relative + math.log(share * math.exp(-relative) + (1.0 - share))
        else:
            out[i] -= math.log(share + (1.0 - share) * math.exp(relative))


@jit
def filter_rows(
    worker, start, stop, key, num_particles, num_blind, softmax, offsets, indptr, positions, counts,
    inputs, transition, root, initial_mean, initial_root, loadings, offset, input_weights,
    emission_weights, log_predictive, effective_size, state_mean, state_draw,
):  # fmt: skip
    """Filter row = draw * num_sequences + sequence; outputs have the axes draw and step.

    `num_blind` of the particles are proposed from the transition alone; ancestors are resampled
    systematically. A missing step only moves the particles. Returns 0, or 1 + the step at which
    the weights are not finite.
    """
    num_sequences = offsets.shape[0] - 1
    depth, size = root.shape[1], num_particles
    share = num_blind / size
    z, predicted = np.empty((depth, size)), np.empty((depth, size))
    tilted, pulls = np.empty((depth, size)), np.empty((depth, size))
    work = np.empty((WORK_ROWS, size))
    weights, log_weights, log_ahead = np.empty(size), np.empty(size), np.empty(size)
    adapted = np.empty(size)
    ancestors = np.empty(size, np.int64)
    mean, cov = np.empty(depth), np.empty((depth, depth))
    J, h = np.empty((depth, depth)), np.empty(depth)
    tilted_cov, tilted_root = np.empty((depth, depth)), np.empty((depth, depth))
    drive, level, zeros = np.empty(depth), np.empty(offset.shape[1]), np.zeros(depth)
    for row in range(start, stop):
        s, q = row // num_sequences, row % num_sequences
        state = open_stream(key, row)
        for i in range(size):
            weights[i] = 1.0 / size
        for t in range(offsets[q], offsets[q + 1]):
            first = t == offsets[q]
            spread = initial_root[s] if first else root[s]
            if first:
                for a in range(depth):
                    predicted[a, :] = initial_mean[s, q, a]
            else:
                _move(inputs[t], input_weights[s], zeros, drive)
                _predict(transition[s], drive, z, predicted)
            seen = positions[indptr[t] : indptr[t + 1]]
            times = counts[indptr[t] : indptr[t + 1]]
            if seen.shape[0] == 0:
                for i in range(size):
                    state = _spread(i, predicted, i, spread, state, z)
                log_predictive[s, t] = 0.0
            else:
                _move(inputs[t], emission_weights[s], offset[s], level)
                _moments(weights, predicted, spread, mean, cov)
                _look_ahead(softmax, seen, times, loadings[s], level, mean, cov, J, h)
                log_det = _tilt(J, h, spread, tilted_cov, tilted_root)
                _tilt_particles(
                    J, h, tilted_cov, log_det, predicted, work, pulls, tilted, log_ahead
                )
                for i in range(size):
                    log_ahead[i] += math.log(weights[i]) if weights[i] > 0.0 else -math.inf
                log_z = _normalize(log_ahead, adapted)
                if not math.isfinite(log_z):
                    return 1 + t
                u, state = uniform(state)
                _systematic(weights, u, ancestors[:num_blind])
                u, state = uniform(state)
                _systematic(adapted, u, ancestors[num_blind:])
                for i in range(num_blind):
                    state = _spread(i, predicted, ancestors[i], spread, state, z)
                for i in range(num_blind, size):
                    state = _spread(i, tilted, ancestors[i], tilted_root, state, z)
                _weigh(
                    softmax, seen, times, loadings[s], level, z, share, log_z, J, h, work,
                    log_weights,
                )  # fmt: skip
                log_predictive[s, t] = _normalize(log_weights, weights) - math.log(size)
                if not math.isfinite(log_predictive[s, t]):
                    return 1 + t
            squares = 0.0
            for i in range(size):
                squares += weights[i] * weights[i]
            effective_size[s, t] = 1.0 / squares
            u, state = uniform(state)
            _running_sums(weights, log_weights)
            chosen = _pick(log_weights, u)
            for a in range(depth):
                state_draw[s, t, a] = z[a, chosen]
                state_mean[s, t, a] = dot(weights, z[a])
    return 0


@jit
def conditional_rows(
    worker, start, stop, key, num_particles, share, softmax, offsets, indptr, positions, counts,
    inputs, transition, root, initial_mean, initial_root, loadings, offset, input_weights,
    emission_weights, inverse_root, reference, out, moved,
):  # fmt: skip
    """Particle Gibbs with ancestor sampling: a new path of each sequence, into `out`.

    The last particle of each step is the `reference`; its ancestor is drawn in proportion to
    weight times transition density (Lindsten, Jordan and Schön 2014, algorithm 2). The others are
    independent draws from the mixture. ``moved[sequence]`` counts steps at which the new path is
    not the reference. Returns 0, or 1 + the step at which the weights are not finite.
    """
    depth, size = root.shape[0], num_particles
    last = size - 1
    predicted, tilted = np.empty((depth, size)), np.empty((depth, size))
    pulls = np.empty((depth, size))
    work = np.empty((WORK_ROWS, size))
    weights, log_weights, log_ahead = np.empty(size), np.empty(size), np.empty(size)
    running, running_ahead, adapted = np.empty(size), np.empty(size), np.empty(size)
    mean, cov = np.empty(depth), np.empty((depth, depth))
    J, h = np.empty((depth, depth)), np.empty(depth)
    tilted_cov, tilted_root = np.empty((depth, depth)), np.empty((depth, depth))
    drive, level, zeros = np.empty(depth), np.empty(offset.shape[0]), np.zeros(depth)
    surprise = np.empty((depth, size))
    longest = 0
    for q in range(start, stop):
        longest = max(longest, offsets[q + 1] - offsets[q])
    paths, ancestors = np.empty((longest, depth, size)), np.empty((longest, size), np.int64)
    for q in range(start, stop):
        state = open_stream(key, q)
        begin, end = offsets[q], offsets[q + 1]
        for i in range(size):
            weights[i] = 1.0 / size
        for t in range(begin, end):
            z = paths[t - begin]
            first = t == begin
            spread = initial_root if first else root
            if first:
                for a in range(depth):
                    predicted[a, :] = initial_mean[q, a]
            else:
                _move(inputs[t], input_weights, zeros, drive)
                _predict(transition, drive, paths[t - begin - 1], predicted)
            seen = positions[indptr[t] : indptr[t + 1]]
            times = counts[indptr[t] : indptr[t + 1]]
            _move(inputs[t], emission_weights, offset, level)
            _moments(weights, predicted, spread, mean, cov)
            _look_ahead(softmax, seen, times, loadings, level, mean, cov, J, h)
            log_det = _tilt(J, h, spread, tilted_cov, tilted_root)
            _tilt_particles(J, h, tilted_cov, log_det, predicted, work, pulls, tilted, log_ahead)
            for i in range(size):
                log_ahead[i] += math.log(weights[i]) if weights[i] > 0.0 else -math.inf
            log_z = _normalize(log_ahead, adapted)
            if not math.isfinite(log_z):
                return 1 + t
            _running_sums(weights, running)
            _running_sums(adapted, running_ahead)
            for i in range(last):
                coin, state = uniform(state)
                u, state = uniform(state)
                if coin < share:
                    ancestors[t - begin, i] = _pick(running, u)
                    state = _spread(i, predicted, ancestors[t - begin, i], spread, state, z)
                else:
                    ancestors[t - begin, i] = _pick(running_ahead, u)
                    state = _spread(i, tilted, ancestors[t - begin, i], tilted_root, state, z)
            for a in range(depth):
                z[a, last] = reference[t, a]
            if first:
                ancestors[0, last] = last
            else:
                for a in range(depth):
                    for i in range(size):
                        surprise[a, i] = reference[t, a] - predicted[a, i]
                for i in range(size):
                    log_ahead[i] = math.log(weights[i]) if weights[i] > 0.0 else -math.inf
                for a in range(depth):
                    scaled = work[0]
                    combine(inverse_root[a], 0.0, surprise, scaled)
                    for i in range(size):
                        log_ahead[i] -= 0.5 * scaled[i] * scaled[i]
                if not math.isfinite(_normalize(log_ahead, adapted)):
                    return 1 + t
                u, state = uniform(state)
                _running_sums(adapted, running)
                ancestors[t - begin, last] = _pick(running, u)
            _weigh(softmax, seen, times, loadings, level, z, share, log_z, J, h, work, log_weights)
            if not math.isfinite(_normalize(log_weights, weights)):
                return 1 + t
        u, state = uniform(state)
        _running_sums(weights, running)
        chosen = _pick(running, u)
        changed = 0
        for t in range(end - 1, begin - 1, -1):
            for a in range(depth):
                out[t, a] = paths[t - begin, a, chosen]
            changed += chosen != last
            chosen = ancestors[t - begin, chosen]
        moved[q] = changed
    return 0

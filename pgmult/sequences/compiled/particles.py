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
likelihood.

`conditional_blocks` is particle Gibbs with ancestor sampling (Lindsten, Jordan and Schön 2014) on
blocks of steps, the states around a block fixed. Its particles look ahead to the end of the block:
likelihoods are expanded around the block's mode, and the Gaussian messages H_t(x_t) that come back
from there twist the targets (Whiteley and Lee 2014), so that with g_t the potential of step t

    weight = p(counts | x) r / (share + (1 - share) g_t(x) r),    r = H_t(x) / H_{t-1}(x_i).

Were the expansion exact all weights would be 1. Ancestors are drawn again only where the effective
size falls below half of the particles.

Particles stand side by side, coordinate d of particle i at ``z[d, i]``, so that loops over them
vectorise. A symbol at stick k takes k products of `loadings` and z. Entries of a step are sorted
by position: a stick, or with a softmax the row of `loadings`.
"""

import math

import numpy as np

from pgmult.compiled.jit import jit
from pgmult.compiled.linalg import cholesky, invert_lower, invert_positive_definite
from pgmult.compiled.streams import normal, open_stream, uniform
from pgmult.compiled.vectors import FACTORS, combine, dot, exp_minus, multiply_softplus

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
def _weighted_dot(weight, a, b):
    total = 0.0
    for j in range(weight.shape[0]):
        total += weight[j] * a[j] * b[j]
    return total


@jit
def _slope_at_sticks(positions, counts, psi, weight):
    """Log likelihood; `psi` becomes its slope and `weight` minus its second derivative."""
    num_sticks = psi.shape[0]
    value = 0.0
    reaching = 0
    for e in range(positions.shape[0]):
        reaching += counts[e]
    first = 0
    for e in range(positions.shape[0]):
        for j in range(first, min(positions[e] + 1, num_sticks)):
            taken = counts[e] if j == positions[e] else 0
            x = psi[j]
            small = math.exp(-abs(x))
            share = (1.0 if x >= 0.0 else small) / (1.0 + small)
            value += taken * x - reaching * (max(x, 0.0) + math.log1p(small))
            psi[j] = taken - reaching * share
            weight[j] = reaching * share * (1.0 - share)
        reaching -= counts[e]
        first = positions[e] + 1
    return value


@jit
def _slope_at_softmax(positions, counts, psi, weight):
    """Log likelihood; `psi` becomes its slope and `weight` the expected counts."""
    value, largest, total = 0.0, -math.inf, 0.0
    trials = 0
    for e in range(positions.shape[0]):
        value += counts[e] * psi[positions[e]]
        trials += counts[e]
    for k in range(psi.shape[0]):
        largest = max(largest, psi[k])
    for k in range(psi.shape[0]):
        weight[k] = exp_minus(largest - psi[k])
    for k in range(psi.shape[0]):
        total += weight[k]
    scale = trials / total
    for k in range(psi.shape[0]):
        weight[k] *= scale
        psi[k] = -weight[k]
    for e in range(positions.shape[0]):
        psi[positions[e]] += counts[e]
    return value - trials * (largest + math.log(total)), trials


@jit
def expand(softmax, positions, counts, columns, offset, x, gradient, curvature):
    """Log likelihood at the vector `x`; fills its gradient and minus its second derivative.

    `columns` are the transposed loadings, (state_dim, num_rows).
    """
    depth = x.shape[0]
    used = offset.shape[0] if softmax else min(positions[-1] + 1, offset.shape[0])
    psi, weight = np.empty(used), np.empty(used)
    combine(x, 0.0, columns[:, :used], psi)
    for j in range(used):
        psi[j] += offset[j]
    trials = 0
    if softmax:
        value, trials = _slope_at_softmax(positions, counts, psi, weight)
    else:
        value = _slope_at_sticks(positions, counts, psi, weight)
    mean = np.zeros(depth)
    for a in range(depth):
        column = columns[a, :used]
        gradient[a] = dot(column, psi)
        if softmax:
            mean[a] = dot(column, weight) / trials
    for a in range(depth):
        for b in range(a + 1):
            entry = _weighted_dot(weight, columns[a, :used], columns[b, :used])
            curvature[a, b] = entry - trials * mean[a] * mean[b]
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
def _look_ahead(softmax, positions, counts, columns, offset, mean, cov, J, h):
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
        value = expand(softmax, positions, counts, columns, offset, x, gradient, curvature)
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
    inputs, transition, root, initial_mean, initial_root, loadings, columns, offset,
    input_weights, emission_weights, log_predictive, effective_size, state_mean, state_draw,
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
                _look_ahead(softmax, seen, times, columns[s], level, mean, cov, J, h)
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
def _backwards(J, h, transition, precision, root, drives, right, X, b, M, m, S, G, log_dets):
    """Messages from the future of a block, and the law of each step given the one before it.

    The step's potential times what follows it, H_t(x) = exp(m'x - x'Mx / 2) up to a constant, is
    (X, b); given the step's predicted mean y, the step is N(y + S (b - X y), S), S = G G'. Of the
    first step `root` may be another: pass it in ``root[0]``, the dynamics' in ``root[1]``.
    `right` says that M and m of the last step are given. Returns False if something is singular.
    """
    length, depth = h.shape
    inner, outer = np.empty((depth, depth)), np.empty((depth, depth))
    pull, back = np.empty(depth), np.empty(depth)
    if not right:
        M[length - 1] = 0.0
        m[length - 1] = 0.0
    for t in range(length - 1, -1, -1):
        for i in range(depth):
            b[t, i] = h[t, i] + m[t, i]
            for j in range(depth):
                X[t, i, j] = J[t, i, j] + M[t, i, j]
        log_dets[t] = _tilt(X[t], b[t], root[0] if t == 0 else root[1], S[t], G[t])
        if not math.isfinite(log_dets[t]):
            return False
        if t == 0:
            return True
        # precision - precision S precision = precision S X: nothing is subtracted
        for i in range(depth):
            for j in range(depth):
                inner[i, j] = dot(S[t, i], X[t, j])
        for i in range(depth):
            for j in range(depth):
                total = 0.0
                for k in range(depth):
                    total += precision[i, k] * inner[k, j]
                outer[i, j] = total
        for i in range(depth):
            for j in range(i):
                outer[i, j] = 0.5 * (outer[i, j] + outer[j, i])
                outer[j, i] = outer[i, j]
        for i in range(depth):
            back[i] = dot(S[t, i], b[t])
        for i in range(depth):
            pull[i] = dot(precision[i], back) - dot(outer[i], drives[t])
        for i in range(depth):
            total = 0.0
            for k in range(depth):
                total += transition[k, i] * pull[k]
            m[t - 1, i] = total
            for j in range(depth):
                total = 0.0
                for k in range(depth):
                    total += outer[i, k] * transition[k, j]
                inner[i, j] = total
        for i in range(depth):
            for j in range(depth):
                total = 0.0
                for k in range(depth):
                    total += transition[k, i] * inner[k, j]
                M[t - 1, i, j] = total
    return True


@jit
def _mean_path(start, transition, drives, X, b, S, path):
    """Means of a block's Gaussian, forwards; `start` is the predicted mean of its first step."""
    length, depth = path.shape
    y, pull = start.copy(), np.empty(depth)
    for t in range(length):
        if t > 0:
            for i in range(depth):
                y[i] = drives[t, i] + dot(transition[i], path[t - 1])
        for i in range(depth):
            pull[i] = b[t, i] - dot(X[t, i], y)
        for i in range(depth):
            path[t, i] = y[i] + dot(S[t, i], pull)


@jit
def _log_prior(path, start, transition, drives, inverse_roots, M, m):
    """Of a block's path, what follows it included, up to a constant."""
    length, depth = path.shape
    difference = np.empty(depth)
    total = 0.0
    for t in range(length):
        inverse_root = inverse_roots[0] if t == 0 else inverse_roots[1]
        for i in range(depth):
            difference[i] = path[t, i] - start[i]
            if t > 0:
                difference[i] = path[t, i] - drives[t, i] - dot(transition[i], path[t - 1])
        for i in range(depth):
            scaled = dot(inverse_root[i], difference)
            total -= 0.5 * scaled * scaled
    for i in range(depth):
        total += path[-1, i] * (m[i] - 0.5 * dot(M[i], path[-1]))
    return total


@jit
def conditional_blocks(
    worker, start, stop, key, num_particles, share, softmax, block_starts, block_stops, sequences,
    offsets, indptr, positions, counts, inputs, transition, root, initial_mean, initial_root,
    loadings, columns, offset, input_weights, emission_weights, states, moved,
):  # fmt: skip
    """Particle Gibbs with ancestor sampling on blocks of steps, given the states around them.

    Updates `states`, (num_steps, state_dim), in place at steps ``block_starts[r]`` to
    ``block_stops[r] - 1`` of sequence ``sequences[r]``; no two blocks of a call are neighbours.
    ``moved[r]`` counts the steps whose state is new. Returns 0, or 1 + a step at which no weight
    is finite.
    """
    depth, size = root.shape[0], num_particles
    last = size - 1
    longest = 0
    for r in range(start, stop):
        longest = max(longest, block_stops[r] - block_starts[r])
    precision = invert_positive_definite(root @ root.T)
    roots = (initial_root, root)
    inverse_roots = (invert_lower(initial_root), invert_lower(root))
    J, h = np.empty((longest, depth, depth)), np.empty((longest, depth))
    new_J, new_h = np.empty((longest, depth, depth)), np.empty((longest, depth))
    X, b = np.empty((longest, depth, depth)), np.empty((longest, depth))
    M, m = np.empty((longest, depth, depth)), np.empty((longest, depth))
    S, G = np.empty((longest, depth, depth)), np.empty((longest, depth, depth))
    log_dets, drives = np.empty(longest), np.zeros((longest + 1, depth))
    levels = np.empty((longest, offset.shape[0]))
    path, best = np.empty((longest, depth)), np.empty((longest, depth))
    particles, ancestors = np.empty((longest, depth, size)), np.empty((longest, size), np.int64)
    predicted, tilted = np.empty((depth, size)), np.empty((depth, size))
    pulls, surprise = np.empty((depth, size)), np.empty((depth, size))
    work = np.empty((WORK_ROWS, size))
    weights, log_weights = np.empty(size), np.empty(size)
    log_z, ahead, future = np.empty(size), np.empty(size), np.empty(size)
    running = np.empty(size)
    zeros, first_mean = np.zeros(depth), np.empty(depth)
    for r in range(start, stop):
        begin, end, q = block_starts[r], block_stops[r], sequences[r]
        length = end - begin
        state = open_stream(key, begin)
        opens, right = begin == offsets[q], end < offsets[q + 1]
        spreads = roots if opens else (root, root)
        inverses = inverse_roots if opens else (inverse_roots[1], inverse_roots[1])
        for t in range(length + right):
            _move(inputs[begin + t], input_weights, zeros, drives[t])
        for t in range(length):
            _move(inputs[begin + t], emission_weights, offset, levels[t])
        if opens:
            first_mean[:] = initial_mean[q]
        else:
            _move(states[begin - 1], transition, drives[0], first_mean)
        if right:
            for i in range(depth):
                pulls[i, 0] = states[end, i] - drives[length, i]
            for i in range(depth):
                total = 0.0
                for k in range(depth):
                    for j in range(depth):
                        total += transition[k, i] * precision[k, j] * pulls[j, 0]
                m[length - 1, i] = total
                for j in range(depth):
                    total = 0.0
                    for k in range(depth):
                        total += transition[k, i] * dot(precision[k], transition[:, j])
                    M[length - 1, i, j] = total
        # the mode of the block given its neighbours, from where the prior alone puts it
        J[:] = 0.0
        h[:] = 0.0
        highest = -math.inf
        fine = _backwards(
            J[:length], h[:length], transition, precision, spreads, drives, right,
            X, b, M[:length], m[:length], S, G, log_dets,
        )  # fmt: skip
        if not fine:
            return 1 + begin
        _mean_path(first_mean, transition, drives, X, b, S, path[:length])
        for _ in range(_NEWTON_STEPS):
            value = _log_prior(
                path[:length], first_mean, transition, drives, inverses, M[length - 1],
                m[length - 1],
            )  # fmt: skip
            for t in range(length):
                low, high = indptr[begin + t], indptr[begin + t + 1]
                if low == high:
                    new_J[t] = 0.0
                    new_h[t] = 0.0
                    continue
                value += expand(
                    softmax, positions[low:high], counts[low:high], columns, levels[t], path[t],
                    new_h[t], new_J[t],
                )  # fmt: skip
                for i in range(depth):
                    new_h[t, i] += dot(new_J[t, i], path[t])
            if not value >= highest:
                for t in range(length):
                    for i in range(depth):
                        path[t, i] = 0.5 * (path[t, i] + best[t, i])
                continue
            gain = value - highest
            highest = value
            best[:length] = path[:length]
            J[:length] = new_J[:length]
            h[:length] = new_h[:length]
            fine = _backwards(
                J[:length], h[:length], transition, precision, spreads, drives, right,
                X, b, M[:length], m[:length], S, G, log_dets,
            )  # fmt: skip
            if not fine:
                return 1 + begin
            if gain < _SMALL_DECREMENT * length:
                break
            _mean_path(first_mean, transition, drives, X, b, S, path[:length])
        log_weights[:] = 0.0
        for t in range(length):
            z = particles[t]
            spread = spreads[0] if t == 0 else spreads[1]
            inverse_root = inverses[0] if t == 0 else inverses[1]
            if t == 0:
                for i in range(depth):
                    predicted[i, :] = first_mean[i]
            else:
                _predict(transition, drives[t], particles[t - 1], predicted)
            _tilt_particles(X[t], b[t], S[t], log_dets[t], predicted, work, pulls, tilted, log_z)
            _normalize(log_weights, weights)
            squares = 0.0
            for i in range(size):
                squares += weights[i] * weights[i]
            resample = t > 0 and squares * size > 2.0
            for i in range(size):
                ancestors[t, i] = i
            if resample:
                _running_sums(weights, running)
                for i in range(last):
                    u, state = uniform(state)
                    ancestors[t, i] = _pick(running, u)
                for i in range(depth):
                    for n in range(size):
                        surprise[i, n] = states[begin + t, i] - predicted[i, n]
                for n in range(size):
                    ahead[n] = log_weights[n] - log_z[n]
                for i in range(depth):
                    scaled = work[0]
                    combine(inverse_root[i], 0.0, surprise, scaled)
                    for n in range(size):
                        ahead[n] -= 0.5 * scaled[n] * scaled[n]
                if not math.isfinite(_normalize(ahead, weights)):
                    return 1 + begin + t
                _running_sums(weights, running)
                u, state = uniform(state)
                ancestors[t, last] = _pick(running, u)
                log_weights[:] = 0.0
            for i in range(last):
                coin, state = uniform(state)
                if coin < share:
                    state = _spread(i, predicted, ancestors[t, i], spread, state, z)
                else:
                    state = _spread(i, tilted, ancestors[t, i], G[t], state, z)
            for i in range(depth):
                z[i, last] = states[begin + t, i]
            low, high = indptr[begin + t], indptr[begin + t + 1]
            log_likelihoods(
                softmax, positions[low:high], counts[low:high], loadings, levels[t], z, work,
                surprise[0],
            )  # fmt: skip
            likelihood = surprise[0]
            _log_potentials(M[t], m[t], z, work, future)
            _log_potentials(X[t], b[t], z, work, ahead)
            for i in range(size):
                before = log_z[ancestors[t, i]]
                relative = ahead[i] - before
                largest = max(relative, 0.0)
                log_weights[i] += (
                    likelihood[i]
                    + future[i]
                    - before
                    - largest
                    - math.log(
                        share * math.exp(-largest) + (1.0 - share) * math.exp(relative - largest)
                    )
                )
            if not math.isfinite(_normalize(log_weights, weights)):
                return 1 + begin + t
        u, state = uniform(state)
        _running_sums(weights, running)
        chosen = _pick(running, u)
        changed = 0
        for t in range(length - 1, -1, -1):
            for i in range(depth):
                states[begin + t, i] = particles[t, i, chosen]
            changed += chosen != last
            chosen = ancestors[t, chosen]
        moved[r] = changed
    return 0

"""Gaussian fields over times and places whose covariance is Markov in time: filter and solve.

A field is a sum of terms; term i has the covariance k_i(t, t') K_i(s, s') and a state of p_i blocks
of one number a place. Stacked over terms, with A_t and Q_t small and one number a pair of blocks::

    x_t = (A_t (x) I) x_{t-1} + e_t,    e_t ~ N(0, Q_t (x) K),    f_t = sum of terms' first blocks

(A_0 = 0, Q_0 the stationary covariance; Hartikainen and Särkkä 2010; Särkkä, Solin and Hartikainen
2013 for space). Column c of the field is multiplied by exp(-J f**2 / 2 + h f) at every time and
place. The filter goes in covariance form, so tiny steps and singular covariances cancel nothing:
with w = sqrt(J) and P the predicted covariance, one partial Cholesky elimination of

    [[I + w P_ff w, w P_f., y], [., P, -m]]

gives the filtered covariance and mean, and the whitened innovations u of any number of right-hand
sides y. Places without observation (J = 0) are left out. What is asked of a column then follows:

* the log normaliser, from u and the pivots;
* the *weights* alpha with E f(any t, s) = sum over observed (t', s') of k(t, t') K(s, s') alpha, by
  one backward pass, and the mean at any time and place, by one forward pass over the weights;
* a draw: a draw from the prior, corrected by the mean given what it leaves unexplained (Durbin
  and Koopman 2002, in information form: y = h / w - w f - noise);
* a draw along with the coefficients of a trend F beta added to the field: beta comes in drawn from
  its prior N(0, I / precision); with v the innovations of the right-hand sides w F, and u those of
  y = h / w - w (f + F beta) - noise, beta moves by b = G^-1 v'u, G = v'v + precision I, and u by
  -v b; means likewise from y = h / w and beta = 0, and the log normaliser with the trend integrated
  out is that without it plus u'v b / 2 - log|G / precision| / 2;
* the variance that the observations explain of a variable with covariance c to f: u'u for y = w c.

O(T (S**3 (1/6 + q/2 + q**2/2))) multiplications a column, for T times, S places, q blocks.
"""

import math

import numpy as np

from pgmult.compiled.jit import jit
from pgmult.compiled.linalg import cholesky, invert_positive_definite
from pgmult.compiled.simd import WIDTH, add_product, load, multiply, splat, store
from pgmult.compiled.streams import normal, open_stream

from .elimination import eliminate, mirror, row_stride


@jit
def _predict(old, old_stride, old_pivots, new, stride, pivots, A, Q, K, starts, row):
    """Covariance and right-hand sides of time t from those of t - 1, into rows ``pivots...``.

    Whole vectors are written; what they write too far right is written again, or is padding.
    """
    num_terms, size = starts.shape[0] - 1, row.shape[0] - WIDTH
    num_places = K.shape[0] // num_terms
    width = num_places * starts[-1]
    for i in range(num_terms):
        for b in range(starts[i], starts[i + 1]):
            for s in range(num_places):
                place = (old_pivots + b * num_places + s) * old_stride + old_pivots
                for c in range(0, size, WIDTH):
                    x = splat(0.0)
                    for a in range(b, starts[i + 1]):
                        there = place + (a - b) * num_places * old_stride
                        x = add_product(x, splat(A[b, a]), load(old, there + c))
                    store(row, c, x)
                place = (pivots + b * num_places + s) * stride + pivots
                cov = K[i * num_places + s]
                for j in range(num_terms):
                    for d in range(starts[j], starts[j + 1]):
                        scale = splat(Q[b, d])
                        for c in range(0, num_places, WIDTH):
                            x = multiply(scale, load(cov, c))
                            for a in range(d, starts[j + 1]):
                                x = add_product(x, splat(A[d, a]), load(row, a * num_places + c))
                            store(new, place + d * num_places + c, x)
                for c in range(width, size, WIDTH):
                    store(new, place + c, load(row, c))


@jit
def _observe(a, stride, pivots, active, w, starts, num_places, width):
    """The rows of the observed places above the covariance in rows ``pivots...``."""
    for i in range(pivots):
        s = active[i]
        row = i * stride + pivots
        scale = splat(w[s])
        for c in range(0, width, WIDTH):
            x = splat(0.0)
            for first in starts[:-1]:
                there = (pivots + first * num_places + s) * stride + pivots
                x = add_product(x, scale, load(a, there + c))
            store(a, row + c, x)
        for j in range(i, pivots):
            total = 0.0
            for first in starts[:-1]:
                total += a[row + first * num_places + active[j]]
            a[i * stride + j] = w[active[j]] * total
        a[i * stride + i] += 1.0


@jit
def advance(A, t, starts, x):
    """States ``(num_blocks, num_places)`` carried to time t, before any noise."""
    for i in range(starts.shape[0] - 1):
        for b in range(starts[i], starts[i + 1]):
            for c in range(x.shape[1]):
                x[b, c] *= A[t, b, b]
            for a in range(b + 1, starts[i + 1]):
                for c in range(x.shape[1]):
                    x[b, c] += A[t, b, a] * x[a, c]


@jit
def _draw_prior(state, A, root_Q, roots, ranks, starts, x, noise, field):
    """Draw the field, ``(num_times, num_places)``, from the prior; the stream's next state."""
    num_times, num_places = field.shape
    x[:] = 0.0
    for t in range(num_times):
        advance(A, t, starts, x)
        for i in range(starts.shape[0] - 1):
            moves = root_Q[t, starts[i], starts[i]] != 0.0
            for b in range(starts[i], starts[i + 1] if moves else starts[i]):
                for k in range(ranks[i]):
                    noise[b, k], state = normal(state)
                for k in range(ranks[i]):
                    total = 0.0
                    for a in range(starts[i], b + 1):
                        total += root_Q[t, b, a] * noise[a, k]
                    for c in range(num_places):
                        x[b, c] += total * roots[i, k, c]
            for c in range(num_places):
                field[t, c] = x[starts[i], c] if i == 0 else field[t, c] + x[starts[i], c]
    return state


@jit
def _filter(
    J, rhs, num_solved, times, A, Q, K, starts, active, num_active, w, buffers, row, factors,
    squares, ahead,
):  # fmt: skip
    """The forward pass over `times`: factors for `_weights`, squared innovations.

    `rhs` is (times, num_places, num_rhs), of which the first `num_solved` are kept in `factors`.
    Adds the squares of the innovations to `squares`, goes on to fill the later rows of `ahead`,
    (num_times, num_places), with variances, and returns the sum of the logarithms of the pivots'
    roots, or nan where a pivot is not positive.
    """
    num_places, num_rhs = rhs.shape[1], rhs.shape[2]
    size = starts[-1] * num_places
    width, kept = size + num_rhs, size + num_solved
    stride = buffers.shape[1] // (num_places + size)
    log_roots, first, before = 0.0, 0, 0
    buffers[0, : size * stride] = 0.0
    for t in range(max(times, ahead.shape[0])):
        old, new = buffers[t % 2], buffers[(t + 1) % 2]
        pivots = num_active[t]
        _predict(old, stride, before, new, stride, pivots, A[t], Q[t], K, starts, row)
        if t >= times:
            for s in range(num_places):
                ahead[t, s] = 0.0
                for i in starts[:-1]:
                    for j in starts[:-1]:
                        here = (i * num_places + s) * stride + j * num_places + s
                        ahead[t, s] += new[here]
        for i in range(pivots):
            w[active[t, i]] = math.sqrt(J[t, active[t, i]])
        _observe(new, stride, pivots, active[t], w, starts, num_places, width)
        for i in range(pivots):
            here = i * stride + pivots + size
            for r in range(num_rhs):
                new[here + r] += rhs[t, active[t, i], r]
        if eliminate(new, stride, pivots, pivots + size, pivots + width):
            return math.nan
        mirror(new, stride, pivots, pivots + size)
        for i in range(pivots):
            here = i * stride
            for r in range(num_rhs):
                squares[r] += new[here + pivots + size + r] ** 2
            log_roots += math.log(new[here + i])
            for c in range(pivots + kept):
                factors[first + i, c] = new[here + c]
        first += pivots
        before = pivots
    return log_roots


@jit
def _explain_by_trend(rhs, trend, times, num_active, size, precision, factors, coefficients):
    """Move the coefficients of a trend, and the innovations of `rhs` by what they explain.

    `trend` is the right-hand side of the first feature. Returns what integrating the trend out adds
    to the log normaliser of `rhs`.
    """
    num_features = coefficients.shape[0]
    gram, tilt = np.zeros((num_features, num_features)), np.zeros(num_features)
    for f in range(num_features):
        gram[f, f] = precision
    first = 0
    for t in range(times):
        begin = num_active[t] + size
        for row in range(first, first + num_active[t]):
            for f in range(num_features):
                v = factors[row, begin + trend + f]
                tilt[f] += v * factors[row, begin + rhs]
                for g in range(num_features):
                    gram[f, g] += v * factors[row, begin + trend + g]
        first += num_active[t]
    inverse = invert_positive_definite(gram)
    cholesky(gram)
    gain = 0.0
    for f in range(num_features):
        move = 0.0
        for g in range(num_features):
            move += inverse[f, g] * tilt[g]
        coefficients[f] += move
        gain += 0.5 * tilt[f] * move - math.log(gram[f, f]) + 0.5 * math.log(precision)
        first = 0
        for t in range(times):
            begin = num_active[t] + size
            for row in range(first, first + num_active[t]):
                factors[row, begin + rhs] -= move * factors[row, begin + trend + f]
            first += num_active[t]
    return gain


@jit(reassociate=True)
def _weights(rhs, J, times, A, starts, active, num_active, factors, state_weights, residual):
    """The backward pass of right-hand side `rhs`: each state's weights, (num_times, size)."""
    num_places = J.shape[1]
    size = starts[-1] * num_places
    last = 0
    for t in range(times):
        last += num_active[t]
    for t in range(times - 1, -1, -1):
        here = state_weights[t]
        here[:] = 0.0
        if t + 1 < times:
            for i in range(starts.shape[0] - 1):
                for b in range(starts[i], starts[i + 1]):
                    for a in range(starts[i], b + 1):
                        scale = A[t + 1, a, b]
                        for s in range(num_places):
                            here[b * num_places + s] += (
                                scale * state_weights[t + 1, a * num_places + s]
                            )
        pivots = num_active[t]
        last -= pivots
        for i in range(pivots):
            total = 0.0
            for c in range(size):
                total += factors[last + i, pivots + c] * here[c]
            residual[i] = factors[last + i, pivots + size + rhs] - total
        for i in range(pivots - 1, -1, -1):
            total = residual[i]
            for j in range(i + 1, pivots):
                total -= factors[last + i, j] * residual[j]
            residual[i] = total / factors[last + i, i]
        for i in range(pivots):
            s = active[t, i]
            weight = math.sqrt(J[t, s]) * residual[i]
            for first in starts[:-1]:
                here[first * num_places + s] += weight


@jit
def _expect(state_weights, times, A, Q, cross, starts, x, mixed, field):
    """Add the field's mean given the weights, ``(num_times, num_places of any kind)``."""
    num_observed, num_places = cross.shape[1], cross.shape[2]
    x[:] = 0.0
    for t in range(field.shape[0]):
        for i in range(starts.shape[0] - 1):
            for b in range(starts[i], starts[i + 1]):
                for c in range(num_places):
                    x[b, c] *= A[t, b, b]
                for a in range(b + 1, starts[i + 1]):
                    for c in range(num_places):
                        x[b, c] += A[t, b, a] * x[a, c]
            if t < times and Q[t, starts[i], starts[i]] != 0.0:
                for b in range(starts[i], starts[i + 1]):
                    for s in range(num_observed):
                        mixed[s] = 0.0
                    for a in range(starts[i], starts[i + 1]):
                        for s in range(num_observed):
                            mixed[s] += Q[t, b, a] * state_weights[t, a * num_observed + s]
                    for s in range(num_observed):
                        for c in range(num_places):
                            x[b, c] += mixed[s] * cross[i, s, c]
            for c in range(num_places):
                field[t, c] += x[starts[i], c]


@jit
def solve_columns(
    worker, start, stop, key, J, h, A, Q, root_Q, K, cross, roots, ranks, starts, directions,
    features, trend_precision, coefficients, log_normalizers, means, draws, explained, ahead,
):  # fmt: skip
    """For each column: its log normaliser, mean, draw, and what it explains of `directions`.

    `J` and `h` are (num_columns, num_times, num_observed), h = 0 where J = 0. `K` is
    (num_terms, num_observed, num_observed), `cross` (num_terms, num_observed, num_places) whose
    first places are the observed ones, and `roots` (num_terms, rank, num_places) roots of the
    covariance of all places. `directions` are covariances (num_directions, num_times,
    num_observed) to the field, and `features`, (num_features, num_times, num_observed), a trend
    that draws do not include and whose `coefficients`, (num_columns, num_features), they move;
    where nothing is drawn means do so.
    `means`, `draws`, (num_columns, num_times, num_places), and `explained`, (num_columns,
    num_directions), are filled unless empty, as are the variances `ahead`, (num_columns, num_times,
    num_observed), at times beyond a column's last observation.
    Returns 0, or 1 + a column whose potential is not finite.
    """
    _, num_times, num_observed = J.shape
    num_places = cross.shape[2]
    num_blocks = starts[-1]
    size = num_blocks * num_observed
    num_means = 1 if means.shape[0] > 0 or log_normalizers.shape[0] > 0 else 0
    num_draws = 1 if draws.shape[0] > 0 else 0
    num_features = features.shape[0]
    trend = num_means + num_draws  # the first of its right-hand sides
    num_solved = trend + num_features
    num_rhs = num_solved + directions.shape[0]
    first = np.int64(0)  # a literal 0 would have every callee compiled for it, too
    most, deepest = first, first
    for c in range(start, stop):
        total = 0
        for t in range(num_times):
            for s in range(num_observed):
                if J[c, t, s] != 0.0:
                    total += 1
                    deepest = max(deepest, t + 1)
        most = max(most, total)
    padded = np.zeros((K.shape[0] * num_observed, num_observed + WIDTH))
    for i in range(K.shape[0]):
        for s in range(num_observed):
            for c in range(num_observed):
                padded[i * num_observed + s, c] = K[i, s, c]
    stride = row_stride(num_observed + size + num_rhs + WIDTH)
    buffers = np.zeros((2, (num_observed + size) * stride))
    factors = np.empty((most, row_stride(num_observed + size + num_solved)))
    state_weights = np.empty((deepest, size))
    rhs = np.zeros((deepest, num_observed, num_rhs))
    active = np.empty((num_times, num_observed), np.int64)
    num_active = np.empty(num_times, np.int64)
    row = np.empty(size + num_rhs + WIDTH)
    w, residual = np.empty(num_observed), np.empty(num_observed)
    mixed = np.empty(num_observed)
    x, noise = np.empty((num_blocks, num_places)), np.empty((num_blocks, num_places))
    squares = np.empty(num_rhs)
    for c in range(start, stop):
        state = open_stream(key, c)
        if num_draws:
            state = _draw_prior(state, A, root_Q, roots, ranks, starts, x, noise, draws[c])
        times, constant = first, 0.0
        for t in range(num_times):
            num_active[t] = 0
            for s in range(num_observed):
                if J[c, t, s] == 0.0:
                    continue
                times = t + 1
                active[t, num_active[t]] = s
                num_active[t] += 1
                precision = math.sqrt(J[c, t, s])
                data = h[c, t, s] / precision
                constant += data * data
                if num_means:
                    rhs[t, s, 0] = data
                for f in range(num_features):
                    rhs[t, s, trend + f] = precision * features[f, t, s]
                if num_draws:
                    error, state = normal(state)
                    value = draws[c, t, s]
                    for f in range(num_features):
                        value += features[f, t, s] * coefficients[c, f]
                    rhs[t, s, num_means] = data - precision * value - error
                for r in range(num_solved, num_rhs):
                    rhs[t, s, r] = precision * directions[r - num_solved, t, s]
        squares[:] = 0.0
        log_roots = _filter(
            J[c], rhs, num_solved, times, A, Q, padded, starts, active, num_active, w, buffers, row,
            factors, squares, ahead[min(c, ahead.shape[0] - 1)],
        )  # fmt: skip
        if not math.isfinite(log_roots + constant):
            return 1 + c
        for r in range(num_solved, num_rhs):
            explained[c, r - num_solved] = squares[r]
        if num_features and not num_draws:
            log_roots -= _explain_by_trend(
                first, trend, times, num_active, size, trend_precision, factors, coefficients[c]
            )
        if log_normalizers.shape[0]:
            log_normalizers[c] = 0.5 * (constant - squares[0]) - log_roots
        if means.shape[0]:
            _weights(
                first, J[c], times, A, starts, active, num_active, factors, state_weights,
                residual,
            )  # fmt: skip
            means[c] = 0.0
            _expect(state_weights, times, A, Q, cross, starts, x, mixed, means[c])
        if num_draws:
            if num_features:
                _explain_by_trend(
                    num_means, trend, times, num_active, size, trend_precision, factors,
                    coefficients[c],
                )  # fmt: skip
            _weights(
                num_means, J[c], times, A, starts, active, num_active, factors,
                state_weights, residual,
            )  # fmt: skip
            _expect(state_weights, times, A, Q, cross, starts, x, mixed, draws[c])
    return 0

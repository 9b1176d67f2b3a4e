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
* the variance that the observations explain of a variable with covariance c to f: u'u for y = w c.

O(T (S**3 (1/6 + q/2 + q**2/2))) multiplications a column, for T times, S places, q blocks.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgmult.compiled.jit import jit
from pgmult.compiled.simd import WIDTH, add_product, load, multiply, splat, store
from pgmult.compiled.streams import normal, open_stream

from .elimination import eliminate, mirror, row_stride

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]


class Chain(NamedTuple):
    """The dynamics at some times and places, of which the first are observed.

    Attributes
    ----------
    A, Q, innovation_root : arrays, ``(num_times, num_blocks, num_blocks)``
        Transitions, covariances of the innovations and their roots.
    K : array, ``(num_terms, num_observed, num_observed)``
        Covariances of the observed places.
    cross : array, ``(num_terms, num_observed, num_places)``
        Their covariances with all places.
    roots : array, ``(num_terms, rank, num_places)``
        Roots of the covariances of all places, of which the first `ranks` rows count.
    ranks : int array, ``(num_terms,)``
    starts : int array, ``(num_terms + 1,)``
        The first block of each term, and the number of blocks.
    """

    A: _Floats
    Q: _Floats
    innovation_root: _Floats
    K: _Floats
    cross: _Floats
    roots: _Floats
    ranks: _Ints
    starts: _Ints


class Answers(NamedTuple):
    """What is found of each column; an empty array is not asked for.

    Attributes
    ----------
    log_normalizers : array, ``(num_columns,)``
    means : array, ``(num_columns, num_tilts, num_times, num_places)``
    explained : array, ``(num_columns, num_directions)``
        The variance that observations explain of each direction.
    ahead : array, ``(num_columns, num_times, num_observed)``
        Variances at times beyond a column's last observation.
    """

    log_normalizers: _Floats
    means: _Floats
    explained: _Floats
    ahead: _Floats


class _Work(NamedTuple):
    """Arrays that serve one column after the other."""

    padded: _Floats  # covariances of the observed places, in rows of whole vectors
    rhs: _Floats
    active: _Ints  # the observed places of each time
    num_active: _Ints
    buffers: _Floats
    row: _Floats
    factors: _Floats
    squares: _Floats  # of innovations, for each right-hand side
    state_weights: _Floats
    at_places: _Floats  # a number for each observed place, of one stage after the other
    x: _Floats


@jit(within=True)
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


@jit(within=True)
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
def draw_columns(worker, start, stop, key, chain, draws):
    """Draws of the prior, ``(num_columns, num_times, num_places)``."""
    _, num_times, num_places = draws.shape
    root_Q, roots, starts = chain.innovation_root, chain.roots, chain.starts
    x, noise = np.empty((2, starts[-1], num_places))
    for column in range(start, stop):
        field, state = draws[column], open_stream(key, column)
        x[:] = 0.0
        for t in range(num_times):
            advance(chain.A, t, starts, x)
            for i in range(starts.shape[0] - 1):
                moves = root_Q[t, starts[i], starts[i]] != 0.0
                for b in range(starts[i], starts[i + 1] if moves else starts[i]):
                    for k in range(chain.ranks[i]):
                        noise[b, k], state = normal(state)
                    for k in range(chain.ranks[i]):
                        total = 0.0
                        for a in range(starts[i], b + 1):
                            total += root_Q[t, b, a] * noise[a, k]
                        for c in range(num_places):
                            x[b, c] += total * roots[i, k, c]
                for c in range(num_places):
                    field[t, c] = x[starts[i], c] if i == 0 else field[t, c] + x[starts[i], c]


@jit(within=True)
def _set_sides(J, h, directions, work):
    """The right-hand sides of a column: each h / w, and w times directions.

    Returns the number of times up to the last observation, and the sum of squares of the first.
    """
    num_times, num_observed = J.shape
    num_tilts = h.shape[0]
    active, num_active, rhs = work.active, work.num_active, work.rhs
    times, constant = np.int64(0), 0.0
    for t in range(num_times):
        num_active[t] = 0
        for s in range(num_observed):
            if J[t, s] == 0.0:
                continue
            times = t + 1
            active[t, num_active[t]] = s
            num_active[t] += 1
            precision = math.sqrt(J[t, s])
            for i in range(num_tilts):
                rhs[t, s, i] = h[i, t, s] / precision
            if num_tilts:
                constant += rhs[t, s, 0] ** 2
            for r in range(directions.shape[0]):
                rhs[t, s, num_tilts + r] = precision * directions[r, t, s]
    return times, constant


@jit(within=True)
def _filter(J, times, chain, num_tilts, work, ahead):
    """The forward pass over `times`: factors for `_weights`, squared innovations.

    Right-hand sides are (times, num_places, num_rhs), of which the first `num_tilts` are kept in
    the factors. Adds the squares of the innovations to `work.squares`, goes on to fill the later
    rows of `ahead`, (num_times, num_places), with variances, and returns the sum of the logarithms
    of the pivots' roots, or nan where a pivot is not positive.
    """
    A, Q, starts, rhs = chain.A, chain.Q, chain.starts, work.rhs
    active, num_active, w = work.active, work.num_active, work.at_places
    buffers, factors, squares = work.buffers, work.factors, work.squares
    num_places, num_rhs = rhs.shape[1], rhs.shape[2]
    size = starts[-1] * num_places
    width, kept = size + num_rhs, size + num_tilts
    stride = buffers.shape[1] // (num_places + size)
    log_roots, first, before = 0.0, 0, 0
    buffers[0, : size * stride] = 0.0
    squares[:] = 0.0
    for t in range(max(times, ahead.shape[0])):
        old, new = buffers[t % 2], buffers[(t + 1) % 2]
        pivots = num_active[t]
        _predict(
            old, stride, before, new, stride, pivots, A[t], Q[t], work.padded, starts, work.row
        )
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


@jit(reassociate=True)
def _weights(side, J, times, A, starts, work):
    """The backward pass of a right-hand side: each state's weights, (num_times, size)."""
    active, num_active, residual = work.active, work.num_active, work.at_places
    factors, state_weights = work.factors, work.state_weights
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
            residual[i] = factors[last + i, pivots + size + side] - total
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


@jit(within=True)
def _write_mean(side, J, times, chain, work, field):
    """Write the field's mean, by its weights, to ``(num_times, num_places of any kind)``."""
    A, Q, cross, starts = chain.A, chain.Q, chain.cross, chain.starts
    state_weights, x, mixed = work.state_weights, work.x, work.at_places
    num_observed, num_places = cross.shape[1], cross.shape[2]
    _weights(side, J, times, A, starts, work)
    x[:] = 0.0
    for t in range(field.shape[0]):
        advance(A, t, starts, x)
        for i in range(starts.shape[0] - 1):
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
                field[t, c] = x[starts[i], c] if i == 0 else field[t, c] + x[starts[i], c]


@jit(within=True)
def _workspace(J, chain, num_tilts, num_directions, start, stop):
    """Arrays for some columns: as large as the one with most observations needs."""
    _, num_times, num_observed = J.shape
    num_places, num_blocks = chain.cross.shape[2], chain.starts[-1]
    size = num_blocks * num_observed
    num_rhs = num_tilts + num_directions
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
    num_terms = chain.K.shape[0]
    padded = np.zeros((num_terms * num_observed, num_observed + WIDTH))
    for i in range(num_terms):
        for s in range(num_observed):
            for c in range(num_observed):
                padded[i * num_observed + s, c] = chain.K[i, s, c]
    stride = row_stride(num_observed + size + num_rhs + WIDTH)
    return _Work(
        padded,
        np.zeros((deepest, num_observed, num_rhs)),
        np.empty((num_times, num_observed), np.int64),
        np.empty(num_times, np.int64),
        np.zeros((2, (num_observed + size) * stride)),
        np.empty(size + num_rhs + WIDTH),
        np.empty((most, row_stride(num_observed + size + num_tilts))),
        np.empty(num_rhs),
        np.empty((deepest, size)),
        np.empty(num_observed),
        np.empty((num_blocks, num_places)),
    )


@jit
def solve_columns(worker, start, stop, J, h, chain, directions, answers):
    """For each column: log normaliser, means by several h, and what it explains of `directions`.

    `J` is (num_columns, num_times, num_observed), `h` (num_columns, num_tilts, num_times,
    num_observed) and 0 where J is; the log normaliser is that of the first. `directions` are
    covariances (num_directions, num_times, num_observed) to the field. Returns 0, or 1 + a column
    whose potential is not finite.
    """
    log_normalizers, means, explained, ahead = answers
    num_tilts, num_directions = h.shape[1], directions.shape[0]
    work = _workspace(J, chain, num_tilts, num_directions, start, stop)
    for c in range(start, stop):
        times, constant = _set_sides(J[c], h[c], directions, work)
        log_roots = _filter(J[c], times, chain, num_tilts, work, ahead[min(c, ahead.shape[0] - 1)])
        if not math.isfinite(log_roots + constant):
            return 1 + c
        for r in range(num_directions):
            explained[c, r] = work.squares[num_tilts + r]
        if num_tilts:
            log_normalizers[c] = 0.5 * (constant - work.squares[0]) - log_roots
        for i in range(num_tilts):
            _write_mean(i, J[c], times, chain, work, means[c, i])
    return 0

"""The sticks of documents given their topic counts: one exact pass, eight documents at a time.

Document d has psi ~ N(mean_d, cov), and stick k took x_k of the N_k tokens that reached it:
likelihood sigma(psi_k)^x_k sigma(-psi_k)^(N_k - x_k). The counts divide the sticks into three
kinds, which are updated in different ways:

*used*, x_k > 0. The data are informative about psi_k. Pólya-gamma omega_k is drawn for these sticks
alone, then all of them in one Gaussian draw given the sticks passed by. The size of that system is
the number of topics in the document, not in the model.

*passed by*, x_k = 0 < N_k. The likelihood is flat over a wide range, but a step given omega is
short: its standard deviation is 1 / sqrt(omega) for any N_k (Johndrow, Smith, Pillai and Dunson
2019, "MCMC for imbalanced categorical data"). These sticks are proposed from their prior given all
other sticks and accepted by the ratio of likelihoods, omega integrated out. The used sticks are
moved in the same way once more, at little extra cost.

*not reached*, N_k = 0: the last sticks. Both updates above use the marginal prior of the sticks
that are reached; the others are then drawn from the prior given these.
"""

import math

import numpy as np

from pgmult.compiled.jit import jit
from pgmult.compiled.linalg import (
    complete_lanes,
    invert_lower,
    row_at,
    solve_lanes,
)
from pgmult.compiled.polya_gamma import draw_integer
from pgmult.compiled.simd import (
    WIDTH,
    add,
    add_product,
    load,
    multiply,
    softplus_change,
    splat,
    store,
    subtract_product,
    where_above,
)
from pgmult.compiled.streams import exponential, normal, open_stream

_TILE = 4  # rows of a product that share what they read


@jit
def _products(matrix, k, x, first, last, p0, p1, p2, p3):
    """Rows k, ..., k + 3 of `matrix` times x, over coordinates first, ..., last - 1, added."""
    for j in range(first, last):
        y = load(x, j * WIDTH)
        p0 = add_product(p0, splat(matrix[k, j]), y)
        p1 = add_product(p1, splat(matrix[k + 1, j]), y)
        p2 = add_product(p2, splat(matrix[k + 2, j]), y)
        p3 = add_product(p3, splat(matrix[k + 3, j]), y)
    return p0, p1, p2, p3


@jit
def _multiply_lanes(matrix, size, x, out):
    """Write matrix x to `out`."""
    zero = splat(0.0)
    for k in range(0, size, _TILE):
        p0, p1, p2, p3 = _products(matrix, k, x, 0, size, zero, zero, zero, zero)
        store(out, k * WIDTH, p0)
        store(out, (k + 1) * WIDTH, p1)
        store(out, (k + 2) * WIDTH, p2)
        store(out, (k + 3) * WIDTH, p3)


@jit
def _propose_lanes(precision, size, mean, taken, reaching, noise, thresholds, pull, x):
    """Metropolis over sticks in turn, each proposed from its prior given the others."""
    zero = splat(0.0)
    for tile in range(0, size, _TILE):
        p0, p1, p2, p3 = _products(precision, tile, x, 0, tile, zero, zero, zero, zero)
        p0, p1, p2, p3 = _products(precision, tile, x, tile + _TILE, size, p0, p1, p2, p3)
        store(pull, 0, p0)
        store(pull, WIDTH, p1)
        store(pull, 2 * WIDTH, p2)
        store(pull, 3 * WIDTH, p3)
        for k in range(tile, tile + _TILE):
            at = k * WIDTH
            force = load(pull, (k - tile) * WIDTH)
            for j in range(tile, tile + _TILE):
                force = add_product(force, splat(precision[k, j]), load(x, j * WIDTH))
            var = 1.0 / precision[k, k]
            step = multiply(load(noise, at), splat(math.sqrt(var)))
            step = subtract_product(step, force, splat(var))
            old = load(x, at)
            here = add(load(mean, at), old)
            change = softplus_change(here, add(here, step))
            log_ratio = multiply(load(taken, at), step)
            log_ratio = subtract_product(log_ratio, load(reaching, at), change)
            excess = add(log_ratio, load(thresholds, at))
            store(x, at, where_above(excess, zero, add(old, step), old))


@jit
def sort_rows(counts, sticks):
    """Rows by how many sticks anything reaches, then by how many are used; and the former."""
    num_rows, num_topics = counts.shape
    depths, num_used = np.zeros(num_rows, dtype=np.int64), np.zeros(num_rows, dtype=np.int64)
    for r in range(num_rows):
        for k in range(num_topics):
            if counts[r, sticks[k]] > 0:
                depths[r] = min(k + 1, num_topics - 1)
                num_used[r] += 1
    rows = np.empty(num_rows, dtype=np.int64)
    for r in range(num_rows):
        rows[r] = r
    by_use = _sort_stably(rows, num_used, num_topics)
    return _sort_stably(by_use, depths, num_topics), depths


@jit
def _sort_stably(rows, keys, most):
    """Rows by keys from 0 to `most`."""
    after = np.zeros(most + 2, dtype=np.int64)
    for r in rows:
        after[keys[r] + 1] += 1
    for i in range(1, after.size):
        after[i] += after[i - 1]
    out = np.empty(rows.size, dtype=np.int64)
    for r in rows:
        out[after[keys[r]]] = r
        after[keys[r]] += 1
    return out


@jit
def sample_sticks(
    worker, start, stop, pieces, by_depth, depths, root, mean, counts, sticks, key, psi
):
    """Move psi, in place, given topic counts.

    Parameters
    ----------
    by_depth : (num_rows,) rows by `depths`, how many sticks anything reaches.
    root : Cholesky factor of the covariance.
    mean : one row, or one a row of psi.
    sticks : (num_topics,) the topic of each stick, and that which takes the rest.

    This piece does groups of eight rows ``worker, worker + pieces, ...``. Returns 0, or 1 + a row
    that is not finite.
    """
    num_rows, n = psi.shape
    inverse_root = invert_lower(root)
    room = -(-n // _TILE) * _TILE  # in whole tiles: sticks beyond are independent and stay at 0
    precision = np.zeros((room, room))  # of the sticks reached, the others integrated out
    for i in range(room):
        precision[i, i] = 1.0
    grown = 0
    packed = np.empty(row_at(n + 1))
    solution = np.empty(n * WIDTH)
    size = room * WIDTH
    x, others, pull = np.zeros(size), np.zeros(size), np.zeros(size)
    centre, taken, reaching = np.zeros(size), np.zeros(size), np.zeros(size)
    noise, thresholds = np.zeros(size), np.zeros(size)
    used, num_used = np.empty((WIDTH, n), dtype=np.int64), np.empty(WIDTH, dtype=np.int64)
    omega = np.empty((WIDTH, n))
    whitened = np.empty(n * WIDTH)
    for group in range(worker, (num_rows + WIDTH - 1) // WIDTH, pieces):
        first = group * WIDTH
        width = min(WIDTH, num_rows - first)
        depth = depths[by_depth[first + width - 1]]
        while grown < depth:  # by one row of the inverse of `root` at a time
            precision[grown, grown] = 0.0
            for i in range(grown + 1):
                for j in range(i + 1):
                    precision[i, j] += inverse_root[grown, i] * inverse_root[grown, j]
                    precision[j, i] = precision[i, j]
            grown += 1
        most = 0
        for lane in range(WIDTH):
            r = by_depth[first + min(lane, width - 1)]
            m = min(r, mean.shape[0] - 1)
            state = open_stream(key, r)
            rest = counts[r, sticks[n]]
            for k in range(depths[r]):
                rest += counts[r, sticks[k]]
            found = 0
            for k in range(depth):
                at = k * WIDTH + lane
                count = counts[r, sticks[k]]
                centre[at] = mean[m, k]
                taken[at] = count
                reaching[at] = rest
                x[at] = psi[r, k] - mean[m, k]
                others[at] = x[at]
                if count > 0:
                    omega[lane, found], state = draw_integer(rest, psi[r, k], state)
                    used[lane, found] = k
                    others[at] = 0.0
                    found += 1
                rest -= count
            for k in range(depth):
                noise[k * WIDTH + lane], state = normal(state)
            for k in range(depth):
                thresholds[k * WIDTH + lane], state = exponential(state)
            for i in range(found):
                solution[i * WIDTH + lane], state = normal(state)
            for k in range(depth, n):
                whitened[k * WIDTH + lane], state = normal(state)
            num_used[lane] = found
            most = max(most, found)
        whole = -(-depth // _TILE) * _TILE
        _multiply_lanes(precision, whole, others, pull)
        for lane in range(WIDTH):
            found = num_used[lane]
            for i in range(most):
                row = row_at(i) + lane
                if i < found:
                    k = used[lane, i]
                    for j in range(i):
                        packed[row + j * WIDTH] = precision[k, used[lane, j]]
                    packed[row + i * WIDTH] = precision[k, k] + omega[lane, i]
                    at = k * WIDTH + lane
                    packed[row_at(most) + i * WIDTH + lane] = (
                        taken[at] - 0.5 * reaching[at] - omega[lane, i] * centre[at] - pull[at]
                    )
                else:  # nothing to solve for
                    for j in range(i):
                        packed[row + j * WIDTH] = 0.0
                    packed[row + i * WIDTH] = 1.0
                    packed[row_at(most) + i * WIDTH + lane] = 0.0
                    solution[i * WIDTH + lane] = 0.0
            packed[row_at(most) + most * WIDTH + lane] = 1.0
        solve_lanes(packed, solution, most)
        for lane in range(WIDTH):
            for i in range(num_used[lane]):
                x[used[lane, i] * WIDTH + lane] = solution[i * WIDTH + lane]
        _propose_lanes(precision, whole, centre, taken, reaching, noise, thresholds, pull, x)
        if depth < n:
            complete_lanes(inverse_root, root, whitened, x, depth)
        for lane in range(width):
            r = by_depth[first + lane]
            m = min(r, mean.shape[0] - 1)
            for k in range(n):
                psi[r, k] = mean[m, k] + x[k * WIDTH + lane]
                if not math.isfinite(psi[r, k]):
                    return 1 + r
    return 0

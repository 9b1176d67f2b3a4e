"""Stick-breaking regressions on steps of symbols, touching only the sticks that a step reaches.

Step t's row psi_t = W z_t, W ``(num_sticks, n)``, has observations only as deep as its last symbol:
`depths[t]` sticks are *active*, and beyond them J = h = 0. Frequent symbols come first, so most
steps are shallow, and everything here costs in proportion to the active (step, stick) pairs, in
time and in memory.

Steps are sorted by depth and go eight at a time, one step a SIMD lane. Group g holds the steps
``order[8 g : 8 g + 8]``; the value of stick k in a lane stands at
``flat[8 * (starts[g] + k) + lane]``, with zeros below a lane's own depth. So the sorted groups are
a staircase: stick k is active in the first few of them.
"""

import math

import numpy as np

from pgmult.compiled.jit import jit
from pgmult.compiled.linalg import row_at, solve_lanes
from pgmult.compiled.polya_gamma import draw_integer
from pgmult.compiled.simd import WIDTH, add_product, load, splat, store
from pgmult.compiled.streams import normal, open_stream

COLUMNS = 6  # of a product in registers at a time, one vector of steps each
STICKS = 2  # of the statistics, by three columns
_THIRDS = 3
_BLOCK = 64  # groups whose design products stay in the second-level cache meanwhile
_LARGEST_PRODUCT = 1e280


@jit
def _load_lanes(order, first, design, lanes):
    """Design rows of eight steps, ``lanes[8 i + lane]``; beyond the last step it is repeated."""
    num_steps, n = design.shape
    for lane in range(WIDTH):
        step = order[min(first + lane, num_steps - 1)]
        for i in range(n):
            lanes[i * WIDTH + lane] = design[step, i]


@jit
def _psi_lanes(weights, lanes, depth, psi):
    """Psi of the first `depth` sticks for eight steps."""
    for k in range(depth):
        x = splat(0.0)
        for i in range(weights.shape[1]):
            x = add_product(x, splat(weights[k, i]), load(lanes, i * WIDTH))
        store(psi, k * WIDTH, x)


@jit
def draw_active(worker, start, stop, key, active, design, weights, omega):
    """Omega ~ PG(N_tk, psi_tk) of the active pairs of groups start, ..., stop - 1.

    A step's stream is that of its row in `sticks.augment_rows`, and so are its draws.
    """
    _, depths, order, starts, indptr, sticks, counts = active
    num_steps, n = design.shape
    lanes = np.empty(n * WIDTH)
    psi = np.empty((weights.shape[0] + 1) * WIDTH)
    for g in range(start, stop):
        first = g * WIDTH
        depth = depths[order[first]]
        if depth == 0:
            continue
        _load_lanes(order, first, design, lanes)
        _psi_lanes(weights, lanes, depth, psi)
        for lane in range(WIDTH):
            reached = 0
            if first + lane < num_steps:
                step = order[first + lane]
                reached = depths[step]
                state = open_stream(key, step)
                entry, end = indptr[step], indptr[step + 1]
                reaching = np.int64(0)
                for e in range(entry, end):
                    reaching += counts[e]
                for k in range(reached):
                    place = (starts[g] + k) * WIDTH + lane
                    omega[place], state = draw_integer(reaching, psi[k * WIDTH + lane], state)
                    if sticks[entry] == k:
                        reaching -= counts[entry]
                        entry += 1
            for k in range(reached, starts[g + 1] - starts[g]):
                omega[(starts[g] + k) * WIDTH + lane] = 0.0


@jit
def log_likelihood_active(worker, start, stop, active, design, weights, out):
    """out[t] = sum_k x_tk psi_tk - N_tk log(1 + exp psi_tk): one exponential an active pair."""
    _, depths, order, _, indptr, sticks, counts = active
    num_steps, n = design.shape
    lanes = np.empty(n * WIDTH)
    psi = np.empty((weights.shape[0] + 1) * WIDTH)
    for g in range(start, stop):
        first = g * WIDTH
        depth = depths[order[first]]
        if depth > 0:
            _load_lanes(order, first, design, lanes)
            _psi_lanes(weights, lanes, depth, psi)
        for lane in range(min(WIDTH, num_steps - first)):
            step = order[first + lane]
            entry = indptr[step]
            reaching = np.int64(0)
            for e in range(entry, indptr[step + 1]):
                reaching += counts[e]
            total, linear, product = 0.0, 0.0, 1.0
            for k in range(depths[step]):
                x = psi[k * WIDTH + lane]
                linear += max(x, 0.0)
                product *= 1.0 + math.exp(-abs(x))
                taken = sticks[entry] == k
                if taken or product > _LARGEST_PRODUCT or k == depths[step] - 1:
                    total -= reaching * (linear + math.log(product))
                    linear, product = 0.0, 1.0
                if taken:
                    total += counts[entry] * x
                    reaching -= counts[entry]
                    entry += 1
            out[step] = total


@jit
def draw_lanes(worker, start, stop, key, reaching, psi, omega):
    """Omega ~ PG(N_tk, psi_tk) of groups of eight lanes; each group has a stream of its own."""
    for g in range(start, stop):
        state = open_stream(key, g)
        for place in range(g * WIDTH, (g + 1) * WIDTH):
            omega[place], state = draw_integer(reaching[place], psi[place], state)


@jit
def accumulate_potentials(worker, start, stop, active, omega, pull, design, rows, J, h):
    """Potentials of the leading coordinates x_t of z_t = (x_t, v_t), given omega.

    J_t = sum_k omega_tk c_k c_k' and h_t = sum_k (kappa_tk - omega_tk b_k' v_t) c_k. Where `pull`
    is not empty, it is kappa. Of rows w_k = (c_k, b_k) of W, `rows` are the c_k, ``(num_sticks,
    size)``; their sums over the sticks before each, ``(num_sticks + 1, size)``, which give sum_k
    N_tk c_k entry by entry; and columns c_ki c_kj (j <= i), then c_ki b_kq, cut into tiles,
    ``(tiles, num_sticks, COLUMNS)``.
    """
    _, depths, order, starts, indptr, sticks, counts = active
    loadings, running, products = rows
    num_steps, n = design.shape
    num_sticks, size = loadings.shape
    num_tiles = products.shape[0]
    totals = np.zeros(num_tiles * COLUMNS * WIDTH)
    for g in range(start, stop):
        first = g * WIDTH
        depth = depths[order[first]]
        for tile in range(num_tiles):
            x0 = x1 = x2 = x3 = x4 = x5 = splat(0.0)
            for k in range(depth):
                w = load(omega, (starts[g] + k) * WIDTH)
                x0 = add_product(x0, splat(products[tile, k, 0]), w)
                x1 = add_product(x1, splat(products[tile, k, 1]), w)
                x2 = add_product(x2, splat(products[tile, k, 2]), w)
                x3 = add_product(x3, splat(products[tile, k, 3]), w)
                x4 = add_product(x4, splat(products[tile, k, 4]), w)
                x5 = add_product(x5, splat(products[tile, k, 5]), w)
            place = tile * COLUMNS * WIDTH
            store(totals, place, x0)
            store(totals, place + WIDTH, x1)
            store(totals, place + 2 * WIDTH, x2)
            store(totals, place + 3 * WIDTH, x3)
            store(totals, place + 4 * WIDTH, x4)
            store(totals, place + 5 * WIDTH, x5)
        for lane in range(min(WIDTH, num_steps - first)):
            step = order[first + lane]
            column = lane
            for i in range(size):
                for j in range(i + 1):
                    J[step, i, j] = totals[column]
                    J[step, j, i] = totals[column]
                    column += WIDTH
            for i in range(size):
                linear = 0.0
                for q in range(size, n):
                    linear -= totals[column] * design[step, q]
                    column += WIDTH
                if pull.size > 0:
                    for k in range(depths[step]):
                        linear += pull[(starts[g] + k) * WIDTH + lane] * loadings[k, i]
                    h[step, i] = linear
                    continue
                for e in range(indptr[step], indptr[step + 1]):
                    k = sticks[e]
                    if k < num_sticks:
                        linear += counts[e] * (loadings[k, i] - 0.5 * running[k + 1, i])
                    else:
                        linear -= 0.5 * counts[e] * running[num_sticks, i]
                h[step, i] = linear


@jit(within=True)
def _load_products(order, first_group, groups, design, products, lanes):
    """``products[groups, columns]`` of lanes: z_i z_j, j <= i, of eight steps each."""
    n = design.shape[1]
    columns = products.size // (_BLOCK * WIDTH)
    for g in range(groups):
        _load_lanes(order, (first_group + g) * WIDTH, design, lanes)
        place = g * columns * WIDTH
        for i in range(n):
            for j in range(i + 1):
                for lane in range(WIDTH):
                    products[place + lane] = lanes[i * WIDTH + lane] * lanes[j * WIDTH + lane]
                place += WIDTH


@jit
def accumulate_statistics(worker, start, stop, pieces, active, omega, design, out):
    """out[k] = sum_t omega_tk z_t z_t', its lower triangle row by row, ``(num_sticks, columns)``.

    This piece does tiles ``worker, worker + pieces, ...`` of `STICKS` sticks, which balances the
    pieces: early sticks are active more often. `start` and `stop` go unused.
    """
    _, depths, order, starts, _, _, _ = active
    n = design.shape[1]
    num_sticks, used = out.shape
    columns = (used + _THIRDS - 1) // _THIRDS * _THIRDS
    num_groups = starts.size - 1
    products = np.zeros(_BLOCK * columns * WIDTH)
    lanes = np.empty(n * WIDTH)
    sums = np.empty(STICKS * _THIRDS * WIDTH)
    for block in range(0, num_groups, _BLOCK):
        if depths[order[block * WIDTH]] == 0:
            break
        groups = min(_BLOCK, num_groups - block)
        _load_products(order, block, groups, design, products, lanes)
        for k in range(worker * STICKS, num_sticks, pieces * STICKS):
            active = 0
            while active < groups and depths[order[(block + active) * WIDTH]] > k:
                active += 1
            if active == 0:
                break
            for column in range(0, columns, _THIRDS):
                x0 = x1 = x2 = y0 = y1 = y2 = splat(0.0)
                for g in range(active):
                    place = (starts[block + g] + k) * WIDTH
                    u, v = load(omega, place), load(omega, place + WIDTH)
                    place = (g * columns + column) * WIDTH
                    z = load(products, place)
                    x0, y0 = add_product(x0, u, z), add_product(y0, v, z)
                    z = load(products, place + WIDTH)
                    x1, y1 = add_product(x1, u, z), add_product(y1, v, z)
                    z = load(products, place + 2 * WIDTH)
                    x2, y2 = add_product(x2, u, z), add_product(y2, v, z)
                store(sums, 0, x0)
                store(sums, WIDTH, x1)
                store(sums, 2 * WIDTH, x2)
                store(sums, 3 * WIDTH, y0)
                store(sums, 4 * WIDTH, y1)
                store(sums, 5 * WIDTH, y2)
                for row in range(min(STICKS, num_sticks - k)):
                    for c in range(min(_THIRDS, used - column)):
                        total = 0.0
                        for lane in range(WIDTH):
                            total += sums[(row * _THIRDS + c) * WIDTH + lane]
                        out[k + row, column + c] += total


@jit
def sample_regressions(worker, start, stop, key, squares, linear, precision, out):
    """Draw rows w_k ~ exp(-w' (diag(precision_k) + S_k) w / 2 + linear_k' w), eight at a time.

    S_k's lower triangle is ``squares[k]``, row by row. Row k has stream k. `start` and `stop`
    count groups of eight. Returns 0, or 1 + a row without a proper posterior.
    """
    num_rows, n = out.shape
    packed = np.empty(row_at(n + 1))
    x = np.empty(n * WIDTH)
    for group in range(start, stop):
        first = group * WIDTH
        width = min(WIDTH, num_rows - first)
        for lane in range(WIDTH):
            k = first + min(lane, width - 1)
            column = 0
            for i in range(n):
                for j in range(i + 1):
                    packed[row_at(i) + j * WIDTH + lane] = squares[k, column]
                    column += 1
                packed[row_at(i) + i * WIDTH + lane] += precision[k, i]
                packed[row_at(n) + i * WIDTH + lane] = linear[k, i]
            packed[row_at(n) + n * WIDTH + lane] = 1.0
        for lane in range(width):
            state = open_stream(key, first + lane)
            for i in range(n):
                x[i * WIDTH + lane], state = normal(state)
        solve_lanes(packed, x, n)
        for lane in range(width):
            for i in range(n):
                out[first + lane, i] = x[i * WIDTH + lane]
                if not math.isfinite(out[first + lane, i]):
                    return 1 + first + lane
    return 0

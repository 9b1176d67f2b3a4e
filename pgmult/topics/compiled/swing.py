"""Psi of documents given their topic counts: paths about a Gaussian, eight documents at a time.

Write x for psi less its mean. Its law given the counts is N(x | 0, cov) times the likelihood, and
the law of `latent.moves.swing` with a Gaussian site in the likelihood's place,

    exp(linear' x - x' J x / 2),

is N(m, P^-1), P = cov^-1 + J. What the site lacks is the correction C(x). Sites depend on counts,
mean and covariance, never on x, so a path about that Gaussian leaves the law of x as it is:

1. With L L' near P, u = L'(x - m) is near standard normal where C = 0; v ~ N(0, I).
2. Kicks v += s L^-1 grad C, half as long at both ends, and between them exact turns of (u, v) by
   the angle pi / (2 `_TURNS`) times U(0.8, 1.2): together about a quarter of a turn.
3. The end is accepted by exp(change of the log law of x - change of v'v / 2), the old x kept
   otherwise.

L, and what is solved by it, are in single precision, which is about twice as fast: a kick is *some*
function of u and a turn is exact, so a path can be gone back whatever the kicks are, and what is
accepted is in double precision.

Under *sticks* counts are binomial: slope taken - reaching sigma(psi), J diagonal. Sticks that no
token reaches are integrated out first and drawn from the prior given the others at the end. Under
the *softmax* slope is taken - N p(psi) and J = N (diag(p) - p p') at shares p of the site.
"""

import math
from typing import NamedTuple

import numpy as np

from pgmult.compiled.jit import jit
from pgmult.compiled.linalg import (
    complete_lanes,
    factor_lanes,
    invert_lower,
    multiply_upper_lanes,
    row_at,
    solve_lower_lanes,
    solve_upper_lanes,
)
from pgmult.compiled.simd import (
    WIDTH,
    add,
    add_product,
    divide,
    exp_negative,
    load,
    minus_absolute,
    multiply,
    narrow,
    softplus_change,
    splat,
    store,
    subtract,
    subtract_product,
    where_above,
    widen,
)
from pgmult.compiled.streams import exponential, normal, open_stream, uniform

_TURNS = 4
_RIDGE = 5e-7  # of L's rows, on the diagonal: single precision finds no P singular


class SwingRows(NamedTuple):
    """Documents in order of their depth, how many sticks anything reaches; all K of a softmax.

    `sticks` has the topic of each stick, and that which takes the rest; `streams` the stream of
    random numbers of each document.
    """

    by_depth: np.ndarray
    depths: np.ndarray
    counts: np.ndarray
    sticks: np.ndarray
    streams: np.ndarray
    softmax: bool


class Lanes(NamedTuple):
    """Eight documents, n numbers of each, or one from `angle` on.

    The likelihood: `taken`, `reaching`, `total` tokens. The site: `curvature` c and `linear`; J is
    diag(c), less c c' / total of a softmax; `centre` m. The path: `old`, x, u, v, and in single
    precision the slope of C at x, or what else is solved.
    """

    mean: np.ndarray
    taken: np.ndarray
    reaching: np.ndarray
    curvature: np.ndarray
    linear: np.ndarray
    old: np.ndarray
    x: np.ndarray
    u: np.ndarray
    v: np.ndarray
    slope: np.ndarray
    solved: np.ndarray
    centre: np.ndarray
    unreached: np.ndarray
    angle: np.ndarray
    cosine: np.ndarray
    sine: np.ndarray
    threshold: np.ndarray
    total: np.ndarray


@jit(within=True)
def _make_lanes(n):
    size = n * WIDTH
    return Lanes(
        np.zeros(size), np.zeros(size), np.zeros(size), np.zeros(size), np.zeros(size),
        np.zeros(size), np.zeros(size), np.zeros(size), np.zeros(size), np.zeros(size),
        np.zeros(size, dtype=np.float32), np.zeros(size), np.zeros(size), np.zeros(WIDTH),
        np.zeros(WIDTH), np.zeros(WIDTH), np.zeros(WIDTH), np.zeros(WIDTH),
    )  # fmt: skip


@jit(within=True)
def _read(rows, r, lane, depth, mean, key, psi, lanes):
    """One document into its lane: its likelihood, a first guess of x and its weight, its noise."""
    n = psi.shape[1]
    m = min(r, mean.shape[0] - 1)
    remaining, largest, prior = 0, mean[m, 0], 0.0
    for k in rows.sticks:
        remaining += rows.counts[r, k]
    for k in range(1, n):
        largest = max(largest, mean[m, k])
    if rows.softmax:
        for k in range(n):
            prior += math.exp(mean[m, k] - largest)
    smoothed = math.log(remaining + 0.5 * n) - largest - math.log(max(prior, 1.0))
    lanes.total[lane] = max(remaining, 1)
    for k in range(depth):
        at = k * WIDTH + lane
        count = rows.counts[r, rows.sticks[k]]
        lanes.mean[at], lanes.taken[at], lanes.reaching[at] = mean[m, k], count, remaining
        lanes.old[at] = psi[r, k] - mean[m, k]
        if rows.softmax:
            lanes.x[at] = math.log(count + 0.5) - smoothed - mean[m, k]
            lanes.slope[at] = count + 0.5
        else:
            left = remaining - count
            lanes.x[at] = math.log((count + 0.5) / (left + 0.5)) - mean[m, k]
            lanes.slope[at] = (
                (count + 0.5) * (left + 0.5) / (remaining + 1.0) if remaining > 0 else 0.0
            )
            remaining = left
    state = open_stream(key, rows.streams[r])
    for k in range(depth):
        lanes.v[k * WIDTH + lane], state = normal(state)
    for k in range(depth, n):
        lanes.unreached[k * WIDTH + lane], state = normal(state)
    share, state = uniform(state)
    lanes.angle[lane] = (0.8 + 0.4 * share) * 0.5 * math.pi / _TURNS
    lanes.cosine[lane], lanes.sine[lane] = math.cos(lanes.angle[lane]), math.sin(lanes.angle[lane])
    lanes.threshold[lane], state = exponential(state)


@jit
def _sum_exponentials(lanes, x, depth):
    """The largest psi, and the sum of exp(psi) divided by exp of it."""
    largest = splat(-math.inf)
    for at in range(0, depth * WIDTH, WIDTH):
        psi = add(load(lanes.mean, at), load(x, at))
        largest = where_above(psi, largest, psi, largest)
    total = splat(0.0)
    for at in range(0, depth * WIDTH, WIDTH):
        psi = add(load(lanes.mean, at), load(x, at))
        total = add(total, exp_negative(subtract(psi, largest)))
    return largest, total


@jit
def _average(lanes, x, depth, softmax):
    """The average of x by curvature, with which a softmax's site compares x; 0 under sticks."""
    total = splat(0.0)
    if softmax:
        for at in range(0, depth * WIDTH, WIDTH):
            total = add_product(total, load(lanes.curvature, at), load(x, at))
    return divide(total, load(lanes.total, 0))


@jit
def _expect(lanes, depth, softmax):
    """Write the counts that are expected at x to `slope`."""
    zero, one = splat(0.0), splat(1.0)
    largest, total = zero, zero
    if softmax:
        largest, total = _sum_exponentials(lanes, lanes.x, depth)
    for at in range(0, depth * WIDTH, WIDTH):
        psi = add(load(lanes.mean, at), load(lanes.x, at))
        if softmax:
            share = divide(exp_negative(subtract(psi, largest)), total)
        else:
            e = exp_negative(minus_absolute(psi))
            share = divide(where_above(psi, zero, one, e), add(one, e))
        store(lanes.slope, at, multiply(load(lanes.reaching, at), share))


@jit
def _bend(lanes, depth, softmax):
    """Expected counts at x, and the diagonal of the likelihood's curvature there."""
    _expect(lanes, depth, softmax)
    zero, one = splat(0.0), splat(1.0)
    for at in range(0, depth * WIDTH, WIDTH):
        expected, n = load(lanes.slope, at), load(lanes.reaching, at)
        left = divide(subtract(n, expected), where_above(n, zero, n, one))
        store(lanes.curvature, at, expected if softmax else multiply(expected, left))


@jit(within=True)
def _approximate(lanes, weights, depth, softmax):
    """The site: one Newton step from the first guess, each coordinate under its marginal prior."""
    for k in range(depth):
        at, weight = k * WIDTH, load(lanes.slope, k * WIDTH)
        x = multiply(weight, load(lanes.x, at))
        store(lanes.x, at, divide(x, add(weight, splat(weights[k]))))
    _bend(lanes, depth, softmax)
    for k in range(depth):
        at, tau, x = k * WIDTH, splat(weights[k]), load(lanes.x, k * WIDTH)
        force = subtract(load(lanes.taken, at), load(lanes.slope, at))
        force = subtract_product(force, tau, x)
        store(lanes.x, at, add(x, divide(force, add(load(lanes.curvature, at), tau))))
    _bend(lanes, depth, softmax)
    average = _average(lanes, lanes.x, depth, softmax)
    for at in range(0, depth * WIDTH, WIDTH):
        linear = subtract(load(lanes.taken, at), load(lanes.slope, at))
        x = subtract(load(lanes.x, at), average)
        store(lanes.linear, at, add_product(linear, load(lanes.curvature, at), x))


@jit(within=True)
def _factor(lanes, precision, depth, softmax, packed):
    """The factor of the Gaussian's precision, and its mean."""
    end, ridge = row_at(depth), splat(1.0 + _RIDGE * depth)
    for i in range(depth):
        row, pivot = row_at(i), load(lanes.curvature, i * WIDTH)
        shared = divide(pivot, load(lanes.total, 0))
        for j in range(i + 1):
            value = splat(precision[i, j])
            if softmax:
                value = subtract_product(value, shared, load(lanes.curvature, j * WIDTH))
            value = multiply(add(value, pivot), ridge) if i == j else value
            store(packed, row + j * WIDTH, narrow(value))
        store(packed, end + i * WIDTH, narrow(load(lanes.linear, i * WIDTH)))
    store(packed, end + depth * WIDTH, narrow(splat(1.0)))
    factor_lanes(packed, depth + 1)
    for at in range(0, depth * WIDTH, WIDTH):
        store(lanes.solved, at, load(packed, end + at))
    solve_upper_lanes(packed, lanes.solved, depth)
    for at in range(0, depth * WIDTH, WIDTH):
        store(lanes.centre, at, widen(load(lanes.solved, at)))


@jit(within=True)
def _slopes(lanes, depth, softmax):
    """Write the slope of the correction at x to `solved`."""
    _expect(lanes, depth, softmax)
    average = _average(lanes, lanes.x, depth, softmax)
    for at in range(0, depth * WIDTH, WIDTH):
        slope = subtract(load(lanes.taken, at), load(lanes.slope, at))
        slope = subtract(slope, load(lanes.linear, at))
        x = subtract(load(lanes.x, at), average)
        store(lanes.solved, at, narrow(add_product(slope, load(lanes.curvature, at), x)))


@jit(within=True)
def _gain(lanes, precision, depth, softmax):
    """Return the log density of x less that of `old`."""
    gain, half = splat(0.0), splat(0.5)
    if softmax:  # the change of log sum exp(psi); `angle` has served, and holds its logarithms
        before, total_before = _sum_exponentials(lanes, lanes.old, depth)
        after, total_after = _sum_exponentials(lanes, lanes.x, depth)
        store(lanes.angle, 0, divide(total_after, total_before))
        for lane in range(WIDTH):
            lanes.angle[lane] = math.log(lanes.angle[lane])
        change = add(load(lanes.angle, 0), subtract(after, before))
        gain = subtract_product(gain, load(lanes.reaching, 0), change)
    for i in range(depth):
        at = i * WIDTH
        old, x, mean = load(lanes.old, at), load(lanes.x, at), load(lanes.mean, at)
        gain = add_product(gain, load(lanes.taken, at), subtract(x, old))
        if not softmax:
            change = softplus_change(add(mean, old), add(mean, x))
            gain = subtract_product(gain, load(lanes.reaching, at), change)
        diagonal = multiply(half, splat(precision[i, i]))
        before, after = multiply(diagonal, old), multiply(diagonal, x)
        for j in range(i):
            shared = splat(precision[i, j])
            before = add_product(before, shared, load(lanes.old, j * WIDTH))
            after = add_product(after, shared, load(lanes.x, j * WIDTH))
        gain = add_product(subtract_product(gain, x, after), old, before)
    return gain


@jit
def _energy(lanes, depth):
    """Kinetic energy, v'v / 2."""
    total = splat(0.0)
    for at in range(0, depth * WIDTH, WIDTH):
        v = load(lanes.v, at)
        total = add_product(total, v, v)
    return multiply(splat(0.5), total)


@jit(within=True)
def _travel(lanes, precision, packed, depth, softmax):
    """One path from `old` to x; x stays at `old` in lanes where the path is refused."""
    for at in range(0, depth * WIDTH, WIDTH):
        old = load(lanes.old, at)
        store(lanes.x, at, old)
        store(lanes.solved, at, narrow(subtract(old, load(lanes.centre, at))))
    multiply_upper_lanes(packed, lanes.solved, depth)
    for at in range(0, depth * WIDTH, WIDTH):
        store(lanes.u, at, widen(load(lanes.solved, at)))
    gain = _energy(lanes, depth)
    angle, cosine, sine = load(lanes.angle, 0), load(lanes.cosine, 0), load(lanes.sine, 0)
    half = multiply(splat(0.5), angle)
    for kick in range(_TURNS + 1):
        _slopes(lanes, depth, softmax)
        solve_lower_lanes(packed, lanes.solved, depth)
        length = half if kick == 0 or kick == _TURNS else angle
        for at in range(0, depth * WIDTH, WIDTH):
            v = add_product(load(lanes.v, at), length, widen(load(lanes.solved, at)))
            store(lanes.v, at, v)
        if kick == _TURNS:
            break
        for at in range(0, depth * WIDTH, WIDTH):
            u, v = load(lanes.u, at), load(lanes.v, at)
            turned = add_product(multiply(u, cosine), v, sine)
            store(lanes.v, at, subtract_product(multiply(v, cosine), u, sine))
            store(lanes.u, at, turned)
            store(lanes.solved, at, narrow(turned))
        solve_upper_lanes(packed, lanes.solved, depth)
        for at in range(0, depth * WIDTH, WIDTH):
            store(lanes.x, at, add(load(lanes.centre, at), widen(load(lanes.solved, at))))
    gain = subtract(gain, _energy(lanes, depth))
    gain = add(gain, _gain(lanes, precision, depth, softmax))
    excess = add(gain, load(lanes.threshold, 0))
    for at in range(0, depth * WIDTH, WIDTH):
        moved = where_above(excess, splat(0.0), load(lanes.x, at), load(lanes.old, at))
        store(lanes.x, at, moved)


@jit
def swing_documents(worker, start, stop, pieces, rows, root, mean, key, psi):
    """Move psi, in place, given topic counts.

    Parameters
    ----------
    rows : Rows
    root : Cholesky factor of the covariance.
    mean : one row, or one a row of psi.

    This piece does groups of eight rows ``worker, worker + pieces, ...``. Returns 0, or 1 + a row
    that is not finite.
    """
    num_rows, n = psi.shape
    inverse_root = invert_lower(root)
    weights = np.empty(n)
    for k in range(n):
        total = 0.0
        for j in range(n):
            total += root[k, j] * root[k, j]
        weights[k] = 1.0 / total
    precision = np.zeros((n, n))  # of what is reached, the rest integrated out
    grown = 0
    packed = np.empty(row_at(n + 1), dtype=np.float32)
    lanes = _make_lanes(n)
    for group in range(worker, (num_rows + WIDTH - 1) // WIDTH, pieces):
        first = group * WIDTH
        width = min(WIDTH, num_rows - first)
        depth = rows.depths[rows.by_depth[first + width - 1]]
        while grown < depth:  # by one row of the inverse of `root` at a time
            for i in range(grown + 1):
                for j in range(i + 1):
                    precision[i, j] += inverse_root[grown, i] * inverse_root[grown, j]
            grown += 1
        for lane in range(WIDTH):
            r = rows.by_depth[first + min(lane, width - 1)]
            _read(rows, r, lane, depth, mean, key, psi, lanes)
        _approximate(lanes, weights, depth, rows.softmax)
        _factor(lanes, precision, depth, rows.softmax, packed)
        _travel(lanes, precision, packed, depth, rows.softmax)
        if depth < n:
            complete_lanes(inverse_root, root, lanes.unreached, lanes.x, depth)
        for lane in range(width):
            r = rows.by_depth[first + lane]
            m = min(r, mean.shape[0] - 1)
            for k in range(n):
                psi[r, k] = mean[m, k] + lanes.x[k * WIDTH + lane]
                if not math.isfinite(psi[r, k]):
                    return 1 + r
    return 0

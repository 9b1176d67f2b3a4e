"""Draws of Gaussian chains by block elimination, eight stretches of steps in SIMD lanes.

The precision of a whole chain of states is block tridiagonal. With Q the noise covariance and
V the initial one its blocks are

    (t, t)      J_t + (V^-1 at a first step, else Q^-1) + (A' Q^-1 A unless t is a last step)
    (t, t - 1)  -Q^-1 A

One sequence is a recursion that no processor can spread out, so chains are cut into *stretches*,
whose last states are *joints*. Given the joints on both sides a stretch is independent of the
rest, and nested elimination (George 1973) makes three passes of it:

1. `eliminate_stretches`: inner states go, from the left. The front of the elimination holds the
   state t, its successor, the joint before the stretch and the linear term. Eliminating t is a
   partial Cholesky factorisation of the front, and what remains of it is the next front.
2. `sample_joints`: the joints of a sequence are a short block tridiagonal system of their own.
3. `sample_stretches`: inner states come back from the right, given the joints.

A subtraction can cancel here, so every pivot is compared with the diagonal entry that it began as.
The sum of these ratios comes back as the *growth*; relative errors are about growth * 1e-16, and
nan says that a pivot was not positive.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgmult.compiled.jit import jit
from pgmult.compiled.linalg import (
    cholesky,
    eliminate_tile,
    solve_lower,
    solve_lower_transpose,
    store_tile,
    tile_less_products,
)
from pgmult.compiled.simd import (
    WIDTH,
    add_product,
    load,
    multiply,
    reciprocal_root,
    splat,
    store,
    subtract_product,
)
from pgmult.compiled.streams import normal, open_stream

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]


class Stretches(NamedTuple):
    """Sequences cut into stretches of steps.

    ``first`` marks the first steps of sequences. Stretch c is the steps
    ``begins[c]:ends[c]``, sequence s the stretches ``parts[s]:parts[s + 1]``, and group g holds the
    stretches ``lanes[8 g : 8 g + 8]``, longest first. If not ``joined``, every sequence is one.
    """

    first: NDArray[np.bool_]
    parts: _Ints
    begins: _Ints
    ends: _Ints
    lanes: _Ints
    joined: bool


class KalmanChain(NamedTuple):
    """The precision and linear term of all states.

    ``blocks`` holds what the dynamics give to the block of a step in the middle of a sequence, at
    its end, at its beginning, and at both; ``coupling`` is Q^-1 A.
    """

    J: _Floats
    linear: _Floats
    blocks: _Floats
    coupling: _Floats


class Reduced(NamedTuple):
    """The result of the first pass.

    Of group g, what sampling needs, at ``factors[bases[g]:]``. Of every stretch, the reduced block
    of its joint in ``joints``, what its diagonal began as in ``diagonals``, the block (joint, joint
    before) in ``links``, what is added to the joint before in ``behind``, the linear terms of both,
    and the growth of rounding errors.
    """

    bases: _Ints
    factors: _Floats
    diagonals: _Floats
    joints: _Floats
    links: _Floats
    behind: _Floats
    joint_linear: _Floats
    behind_linear: _Floats
    growths: _Floats


class _Front(NamedTuple):
    """Packed rows of lanes: entry (r, c) is at ``flat[r * stride + c * WIDTH]``, r >= c.

    First the ``n`` rows of a state, then its successor's, the joint's before the stretch if any,
    and one of linear terms.
    """

    flat: _Floats
    n: int
    rows: int
    stride: int


@jit(inline=True)
def add(x, y):
    """Lane by lane, x + y."""
    return add_product(x, splat(1.0), y)


@jit(inline=True)
def _four_rows(front, i):
    """Where rows i, ..., i + 3 begin; those beyond the last repeat it."""
    last, stride = front.rows - 1, front.stride
    return (
        i * stride,
        min(i + 1, last) * stride,
        min(i + 2, last) * stride,
        min(i + 3, last) * stride,
    )


@jit(within=True)
def _eliminate(front, diagonal, growth):
    """Factor the state's columns and update the other rows.

    The factor's diagonal is left as its reciprocal. Returns the growth so far.
    """
    flat, n, rows, stride = front
    for j in range(0, n, 2):  # two columns at a time; the last may be alone, and is then repeated
        paired = j + 1 < n
        p = j * stride, (j + 1 if paired else j) * stride
        c = j * WIDTH, (j + 1 if paired else j) * WIDTH
        x00, x10, x11 = load(flat, p[0] + c[0]), load(flat, p[1] + c[0]), load(flat, p[1] + c[1])
        for k in range(0, c[0], WIDTH):
            left, right = load(flat, p[0] + k), load(flat, p[1] + k)
            x00 = subtract_product(x00, left, left)
            x10 = subtract_product(x10, right, left)
            x11 = subtract_product(x11, right, right)
        r0 = reciprocal_root(x00)
        growth = add_product(growth, multiply(r0, r0), load(diagonal, c[0]))
        store(flat, p[0] + c[0], r0)
        across, r1 = splat(0.0), r0
        if paired:
            across = multiply(x10, r0)
            r1 = reciprocal_root(subtract_product(x11, across, across))
            growth = add_product(growth, multiply(r1, r1), load(diagonal, c[1]))
            store(flat, p[1] + c[0], across)
            store(flat, p[1] + c[1], r1)
        for i in range(j + 2 if paired else j + 1, rows, 4):
            eliminate_tile(flat, _four_rows(front, i), p, c, r0, across, r1)
    for i in range(n, rows, 4):
        r = _four_rows(front, i)
        for j in range(n, min(i + 4, rows), 2):
            second = min(j + 1, rows - 1)
            p, c = (j * stride, second * stride), (j * WIDTH, second * WIDTH)
            store_tile(flat, r, c, tile_less_products(flat, r, p, c, n * WIDTH))
    return growth


@jit(within=True)
def _open_front(front, lanes, cut, coupling):
    """Begin with nothing but the coupling of first states to the joints before."""
    flat, n, _, stride = front
    flat[:] = 0.0
    for lane in range(WIDTH):
        if cut.joined and not cut.first[cut.begins[lanes[lane]]]:
            for i in range(n):
                for j in range(n):
                    flat[(2 * n + i) * stride + j * WIDTH + lane] = -coupling[j, i]


@jit(within=True)
def _own_blocks(step, lanes, cut, chain, terms):
    """Write one step's own blocks and linear terms to lanes of packed rows.

    A lane whose stretch is over keeps what the last step left there.
    """
    num_steps, n = chain.linear.shape
    for lane in range(WIDTH):
        t = cut.begins[lanes[lane]] + step
        if t >= cut.ends[lanes[lane]]:
            continue
        kind = 1 if t + 1 == num_steps or cut.first[t + 1] else 0
        block = chain.blocks[kind + 2 if cut.first[t] else kind]
        place = lane
        for i in range(n):
            for j in range(i + 1):
                terms[place] = chain.J[t, i, j] + block[i, j]
                place += WIDTH
        for i in range(n):
            terms[place] = chain.linear[t, i]
            place += WIDTH


@jit(within=True)
def _add_own(front, terms, diagonal):
    """Add a step's own blocks and linear terms to the front, and note the diagonals."""
    flat, n, rows, stride = front
    place = 0
    for i in range(n):
        for j in range(0, (i + 1) * WIDTH, WIDTH):
            store(flat, i * stride + j, add(load(flat, i * stride + j), load(terms, place)))
            place += WIDTH
        store(diagonal, i * WIDTH, load(terms, place - WIDTH))
    rhs = (rows - 1) * stride
    for i in range(0, n * WIDTH, WIDTH):
        store(flat, rhs + i, add(load(flat, rhs + i), load(terms, place + i)))


@jit(within=True)
def _keep_joint(lane, stretch, front, diagonal, joined, left):
    """Take what is left of a stretch, its joint and the joint before, from a lane of the front."""
    flat, n, rows, stride = front
    joint, link, behind = left.joints[stretch], left.links[stretch], left.behind[stretch]
    rhs = (rows - 1) * stride + lane
    for i in range(n):
        row = i * stride + lane
        left.diagonals[stretch, i] = diagonal[i * WIDTH + lane]
        left.joint_linear[stretch, i] = flat[rhs + i * WIDTH]
        for j in range(i + 1):
            joint[i, j] = flat[row + j * WIDTH]
            joint[j, i] = joint[i, j]
        if joined:
            row = (2 * n + i) * stride + lane
            left.behind_linear[stretch, i] = flat[rhs + (2 * n + i) * WIDTH]
            for j in range(n):
                link[j, i] = flat[row + j * WIDTH]
            for j in range(i + 1):
                behind[i, j] = flat[row + (2 * n + j) * WIDTH]
                behind[j, i] = behind[i, j]


@jit(within=True)
def _add_successor(front, coupling):
    """Rows of the next state: coupled to the present one, nothing else yet."""
    flat, n, rows, stride = front
    for i in range(n):
        row = (n + i) * stride
        for j in range(n):
            store(flat, row + j * WIDTH, splat(-coupling[i, j]))
        for j in range(n, n + i + 1):
            store(flat, row + j * WIDTH, splat(0.0))
        for r in range(2 * n, rows):
            store(flat, r * stride + (n + i) * WIDTH, splat(0.0))


@jit(within=True)
def _advance(front, factors, place):
    """Keep the factor of the state that was eliminated; what remains is the next front."""
    flat, n, rows, stride = front
    for i in range(n):
        for j in range(i + 1):
            store(factors, place, load(flat, i * stride + j * WIDTH))
            place += WIDTH
    for r in range(2 * n, rows):
        for j in range(n):
            store(factors, place, load(flat, r * stride + j * WIDTH))
            place += WIDTH
    for i in range(n):
        row, source = i * stride, (n + i) * stride + n * WIDTH
        for j in range(i + 1):
            store(flat, row + j * WIDTH, load(flat, source + j * WIDTH))
    for r in range(2 * n, rows):
        row = r * stride
        for j in range(n):
            store(flat, row + j * WIDTH, load(flat, row + (n + j) * WIDTH))


@jit
def eliminate_stretches(worker, start, stop, cut, chain, left):
    """First pass over groups of eight stretches: fills `left`, a `Reduced`."""
    n = chain.linear.shape[1]
    rows = (3 if cut.joined else 2) * n + 1
    front = _Front(np.empty(rows * rows * WIDTH), n, rows, rows * WIDTH)
    terms = np.empty((n * (n + 1) // 2 + n) * WIDTH)
    diagonal, grown = np.empty(n * WIDTH), np.empty(WIDTH)
    size = factor_size(n, cut.joined)
    for group in range(start, stop):
        lanes = cut.lanes[group * WIDTH : (group + 1) * WIDTH]
        longest = cut.ends[lanes[0]] - cut.begins[lanes[0]]
        shortest = cut.ends[lanes[WIDTH - 1]] - cut.begins[lanes[WIDTH - 1]]
        growth = splat(0.0)
        _open_front(front, lanes, cut, chain.coupling)
        for step in range(longest):
            _own_blocks(step, lanes, cut, chain, terms)
            _add_own(front, terms, diagonal)
            if step + 1 >= shortest:
                store(grown, 0, growth)
                for lane in range(WIDTH):
                    stretch = lanes[lane]
                    if cut.begins[stretch] + step + 1 == cut.ends[stretch]:
                        left.growths[stretch] = grown[lane]
                        _keep_joint(lane, stretch, front, diagonal, cut.joined, left)
            if step + 1 < longest:
                _add_successor(front, chain.coupling)
                growth = _eliminate(front, diagonal, growth)
                _advance(front, left.factors, left.bases[group] + step * size)
    return 0


@jit
def factor_size(n, joined):
    """Numbers that a group keeps of one step."""
    return (n * (n + 1) // 2 + n * (n if joined else 0) + n) * WIDTH


@jit(within=True)
def _factor_joint(c, before, after, left):
    """Factor the block of joint c, given the joint before, and solve for its linear term.

    `before` and `after` say whether its sequence has a joint there. Returns whether the block is
    not positive definite.
    """
    block, linear, link = left.joints[c], left.joint_linear[c], left.links[c]
    n = linear.size
    if after:
        for i in range(n):
            linear[i] += left.behind_linear[c + 1, i]
            for j in range(n):
                block[i, j] += left.behind[c + 1, i, j]
    if before:
        for i in range(n):
            solve_lower(left.joints[c - 1], link[i])
        for i in range(n):
            for k in range(n):
                linear[i] -= link[i, k] * left.joint_linear[c - 1, k]
            for j in range(n):
                for k in range(n):
                    block[i, j] -= link[i, k] * link[j, k]
    if cholesky(block) > 0:
        return True
    for i in range(n):
        left.growths[c] += left.diagonals[c, i] / (block[i, i] * block[i, i])
    solve_lower(block, linear)
    return False


@jit
def sample_joints(worker, start, stop, key, cut, left, out):
    """Second pass: draw the joints of sequences, the last states of their stretches.

    Overwrites `joints`, `links` and `joint_linear` with factors. `growths` gets the joints' share;
    with a nan among them there is no draw.
    """
    n = left.joint_linear.shape[1]
    x, ahead = np.empty(n), np.empty(n)
    for s in range(start, stop):
        begin, end = cut.parts[s], cut.parts[s + 1]
        for c in range(begin, end):
            if _factor_joint(c, c > begin, c + 1 < end, left):
                left.growths[c] = math.nan
                return 0
        state = open_stream(key, cut.parts[cut.parts.shape[0] - 1] + s)
        for c in range(end - 1, begin - 1, -1):
            for i in range(n):
                e, state = normal(state)
                x[i] = left.joint_linear[c, i] + e
                if c + 1 < end:
                    for k in range(n):
                        x[i] -= left.links[c + 1, k, i] * ahead[k]
            solve_lower_transpose(left.joints[c], x)
            for i in range(n):
                ahead[i] = x[i]
                out[cut.ends[c] - 1, i] = x[i]
    return 0


@jit(within=True)
def _draw_inner(factors, place, coupling, z, ahead, x, n, joined):
    """One inner state in every lane, given successor, joint before, and noise in `x`."""
    triangle = place
    place += n * (n + 1) // 2 * WIDTH
    rhs = place + (n * n * WIDTH if joined else 0)
    for i in range(n):  # coupling' times the successor
        total = splat(0.0)
        for j in range(n):
            total = add_product(total, splat(coupling[j, i]), load(ahead, j * WIDTH))
        store(z, (n + i) * WIDTH, total)
    row = triangle
    for i in range(n):
        total = load(z, (n + i) * WIDTH)
        for k in range(0, i * WIDTH, WIDTH):
            total = subtract_product(total, load(factors, row + k), load(z, n * WIDTH + k))
        total = multiply(total, load(factors, row + i * WIDTH))
        store(z, (n + i) * WIDTH, total)
        row += (i + 1) * WIDTH
    for i in range(n):
        total = add(load(x, i * WIDTH), load(z, (n + i) * WIDTH))
        total = add(total, load(factors, rhs + i * WIDTH))
        if joined:
            for j in range(n):
                source = place + (j * n + i) * WIDTH
                total = subtract_product(total, load(factors, source), load(z, j * WIDTH))
        store(x, i * WIDTH, total)
    for i in range(n - 1, -1, -1):
        row -= (i + 1) * WIDTH
        total = multiply(load(x, i * WIDTH), load(factors, row + i * WIDTH))
        store(x, i * WIDTH, total)
        for k in range(0, i * WIDTH, WIDTH):
            store(x, k, subtract_product(load(x, k), load(factors, row + k), total))


@jit
def sample_stretches(worker, start, stop, key, cut, coupling, left, out):
    """Third pass: draw the inner states of groups of stretches, given the joints in `out`."""
    n = out.shape[1]
    begins, ends, joined = cut.begins, cut.ends, cut.joined
    size = factor_size(n, joined)
    z = np.zeros(2 * n * WIDTH)  # the joint before; then room to solve in
    x, ahead = np.zeros(n * WIDTH), np.zeros(n * WIDTH)
    for group in range(start, stop):
        lanes = cut.lanes[group * WIDTH : (group + 1) * WIDTH]
        num_lanes = 1
        while num_lanes < WIDTH:  # a short group repeats its last stretch
            if lanes[num_lanes] == lanes[num_lanes - 1]:
                break
            num_lanes += 1
        states = np.empty((WIDTH, 4), dtype=np.uint64)
        x[:] = 0.0
        ahead[:] = 0.0
        z[:] = 0.0
        for lane in range(num_lanes):
            stretch = lanes[lane]
            s0, s1, s2, s3 = open_stream(key, stretch)
            states[lane, 0], states[lane, 1], states[lane, 2], states[lane, 3] = s0, s1, s2, s3
            if not cut.first[begins[stretch]]:
                for i in range(n):
                    z[i * WIDTH + lane] = out[begins[stretch] - 1, i]
        for step in range(ends[lanes[0]] - begins[lanes[0]] - 2, -1, -1):
            for lane in range(num_lanes):
                stretch = lanes[lane]
                inner = ends[stretch] - begins[stretch] - 1
                if step >= inner:
                    continue
                if step == inner - 1:
                    for i in range(n):
                        ahead[i * WIDTH + lane] = out[ends[stretch] - 1, i]
                state = states[lane, 0], states[lane, 1], states[lane, 2], states[lane, 3]
                for i in range(n):
                    x[i * WIDTH + lane], state = normal(state)
                states[lane, 0], states[lane, 1], states[lane, 2], states[lane, 3] = state
            place = left.bases[group] + step * size
            _draw_inner(left.factors, place, coupling, z, ahead, x, n, joined)
            for i in range(n):
                store(ahead, i * WIDTH, load(x, i * WIDTH))
            for lane in range(num_lanes):
                stretch = lanes[lane]
                if step < ends[stretch] - begins[stretch] - 1:
                    for i in range(n):
                        out[begins[stretch] + step, i] = x[i * WIDTH + lane]
    return 0

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

A subtraction can cancel here, as it cannot in `kalman.py`, so every pivot is compared with the
diagonal entry that it began as. The sum of these ratios comes back as the *growth*; relative errors
are about growth * 1e-16, and nan says that a pivot was not positive.
"""

import math

import numpy as np

from pgmult.compiled.jit import jit
from pgmult.compiled.linalg import cholesky
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


@jit(inline=True)
def add(x, y):
    """Lane by lane, x + y."""
    return add_product(x, splat(1.0), y)


@jit
def information_linear(worker, start, stop, first, precision, pull, drive, initial_linear, h, out):
    """Linear term of every step: potential, drive into the step and drive into the next.

    `precision` is Q^-1, `pull` is A' Q^-1; `first` marks the first steps, at which
    `initial_linear` holds the initial law's own term, drive and all.
    """
    num_steps, n = h.shape
    driven = drive.shape[0] > 0
    sequence = 0
    for t in range(start):
        sequence += first[t]
    for t in range(start, stop):
        for i in range(n):
            out[t, i] = h[t, i]
            if first[t]:
                out[t, i] += initial_linear[sequence, i]
            elif driven:
                for j in range(n):
                    out[t, i] += precision[i, j] * drive[t, j]
            if driven and t + 1 < num_steps and not first[t + 1]:
                for j in range(n):
                    out[t, i] -= pull[i, j] * drive[t + 1, j]
        sequence += first[t]


@jit
def _eliminate(front, n, rows, stride, diagonal, growth):
    """Factor the first `n` columns of the packed front and update the rest, `rows` rows in all.

    Entry (r, c) is at ``front[r * stride + c * WIDTH]``; only r >= c counts. The factor's diagonal
    is left as its reciprocal. Returns the growth so far.
    """
    for j in range(0, n, 2):
        paired = j + 1 < n
        p0 = j * stride
        p1 = p0 + stride if paired else p0
        c0 = j * WIDTH
        c1 = c0 + WIDTH if paired else c0
        x00, x10, x11 = load(front, p0 + c0), load(front, p1 + c0), load(front, p1 + c1)
        for k in range(0, c0, WIDTH):
            left, right = load(front, p0 + k), load(front, p1 + k)
            x00 = subtract_product(x00, left, left)
            x10 = subtract_product(x10, right, left)
            x11 = subtract_product(x11, right, right)
        r0 = reciprocal_root(x00)
        growth = add_product(growth, multiply(r0, r0), load(diagonal, c0))
        store(front, p0 + c0, r0)
        across, r1 = splat(0.0), r0
        if paired:
            across = multiply(x10, r0)
            r1 = reciprocal_root(subtract_product(x11, across, across))
            growth = add_product(growth, multiply(r1, r1), load(diagonal, c1))
            store(front, p1 + c0, across)
            store(front, p1 + c1, r1)
        for i in range(j + 2 if paired else j + 1, rows, 4):
            i0 = i * stride
            i1 = min(i + 1, rows - 1) * stride
            i2 = min(i + 2, rows - 1) * stride
            i3 = min(i + 3, rows - 1) * stride
            y00, y01 = load(front, i0 + c0), load(front, i0 + c1)
            y10, y11 = load(front, i1 + c0), load(front, i1 + c1)
            y20, y21 = load(front, i2 + c0), load(front, i2 + c1)
            y30, y31 = load(front, i3 + c0), load(front, i3 + c1)
            for k in range(0, c0, WIDTH):
                left, right = load(front, p0 + k), load(front, p1 + k)
                z = load(front, i0 + k)
                y00, y01 = subtract_product(y00, z, left), subtract_product(y01, z, right)
                z = load(front, i1 + k)
                y10, y11 = subtract_product(y10, z, left), subtract_product(y11, z, right)
                z = load(front, i2 + k)
                y20, y21 = subtract_product(y20, z, left), subtract_product(y21, z, right)
                z = load(front, i3 + k)
                y30, y31 = subtract_product(y30, z, left), subtract_product(y31, z, right)
            y00, y10 = multiply(y00, r0), multiply(y10, r0)
            y20, y30 = multiply(y20, r0), multiply(y30, r0)
            # where there is no second column, the first is written over it
            store(front, i0 + c1, multiply(subtract_product(y01, y00, across), r1))
            store(front, i1 + c1, multiply(subtract_product(y11, y10, across), r1))
            store(front, i2 + c1, multiply(subtract_product(y21, y20, across), r1))
            store(front, i3 + c1, multiply(subtract_product(y31, y30, across), r1))
            store(front, i0 + c0, y00)
            store(front, i1 + c0, y10)
            store(front, i2 + c0, y20)
            store(front, i3 + c0, y30)
    for i in range(n, rows, 4):
        i0 = i * stride
        i1 = min(i + 1, rows - 1) * stride
        i2 = min(i + 2, rows - 1) * stride
        i3 = min(i + 3, rows - 1) * stride
        for j in range(n, min(i + 4, rows), 2):
            p0, p1 = j * stride, min(j + 1, rows - 1) * stride
            c0, c1 = j * WIDTH, min(j + 1, rows - 1) * WIDTH
            y00, y01 = load(front, i0 + c0), load(front, i0 + c1)
            y10, y11 = load(front, i1 + c0), load(front, i1 + c1)
            y20, y21 = load(front, i2 + c0), load(front, i2 + c1)
            y30, y31 = load(front, i3 + c0), load(front, i3 + c1)
            for k in range(0, n * WIDTH, WIDTH):
                left, right = load(front, p0 + k), load(front, p1 + k)
                z = load(front, i0 + k)
                y00, y01 = subtract_product(y00, z, left), subtract_product(y01, z, right)
                z = load(front, i1 + k)
                y10, y11 = subtract_product(y10, z, left), subtract_product(y11, z, right)
                z = load(front, i2 + k)
                y20, y21 = subtract_product(y20, z, left), subtract_product(y21, z, right)
                z = load(front, i3 + k)
                y30, y31 = subtract_product(y30, z, left), subtract_product(y31, z, right)
            store(front, i0 + c0, y00)
            store(front, i0 + c1, y01)
            store(front, i1 + c0, y10)
            store(front, i1 + c1, y11)
            store(front, i2 + c0, y20)
            store(front, i2 + c1, y21)
            store(front, i3 + c0, y30)
            store(front, i3 + c1, y31)
    return growth


@jit
def _own_block(lane, t, block, J, linear, own):
    """Write one step's own block and linear term to a lane of packed rows."""
    n = linear.shape[1]
    place = lane
    for i in range(n):
        for j in range(i + 1):
            own[place] = J[t, i, j] + block[i, j]
            place += WIDTH
    for i in range(n):
        own[place] = linear[t, i]
        place += WIDTH


@jit
def eliminate_stretches(
    worker, start, stop, lanes, begins, ends, bases, first, J, linear, blocks, coupling, joined,
    factors, diagonals, joints, links, behind, joint_linear, behind_linear, growths,
):  # fmt: skip
    """First pass over groups of eight stretches: ``lanes[8 * group + lane]`` names the stretch.

    `blocks` holds what the dynamics give to the block of a step in the middle of a sequence, at its
    end, at its beginning, and at both; `coupling` is Q^-1 A. What sampling needs of group g is left
    in ``factors[bases[g]:]``; of every stretch, the reduced block of its joint in `joints`, the
    block (joint, joint before) in `links`, what is added to the joint before in `behind`, and the
    linear terms of both. Without `joined`, no stretch has a joint before.
    """
    num_steps, n = linear.shape
    rows = (3 if joined else 2) * n + 1
    stride = rows * WIDTH
    rhs_row = (rows - 1) * stride
    front = np.empty(rows * stride)
    own = np.empty((n * (n + 1) // 2 + n) * WIDTH)
    diagonal = np.empty(n * WIDTH)
    grown = np.empty(WIDTH)
    size = factor_size(n, joined)
    for group in range(start, stop):
        leading, trailing = lanes[group * WIDTH], lanes[group * WIDTH + WIDTH - 1]
        longest = ends[leading] - begins[leading]
        shortest = ends[trailing] - begins[trailing]
        growth = splat(0.0)
        front[:] = 0.0
        for lane in range(WIDTH):
            stretch = lanes[group * WIDTH + lane]
            if joined and not first[begins[stretch]]:
                for i in range(n):
                    for j in range(n):
                        front[(2 * n + i) * stride + j * WIDTH + lane] = -coupling[j, i]
        for step in range(longest):
            for lane in range(WIDTH):
                stretch = lanes[group * WIDTH + lane]
                t = begins[stretch] + step
                if t < ends[stretch]:  # else whatever the last step left there
                    kind = 1 if t + 1 == num_steps or first[t + 1] else 0
                    kind += 2 if first[t] else 0
                    _own_block(lane, t, blocks[kind], J, linear, own)
            place = 0
            for i in range(n):
                row = i * stride
                for j in range(0, (i + 1) * WIDTH, WIDTH):
                    x = load(own, place)
                    store(front, row + j, add(load(front, row + j), x))
                    place += WIDTH
                store(diagonal, i * WIDTH, load(own, place - WIDTH))
            for i in range(0, n * WIDTH, WIDTH):
                total = add(load(front, rhs_row + i), load(own, place + i))
                store(front, rhs_row + i, total)
            if step + 1 >= shortest:
                store(grown, 0, growth)
                for lane in range(WIDTH):
                    stretch = lanes[group * WIDTH + lane]
                    if begins[stretch] + step + 1 == ends[stretch]:
                        growths[stretch] = grown[lane]
                        _keep_joint(
                            lane, front, stride, joined, diagonal, diagonals[stretch],
                            joints[stretch], links[stretch], behind[stretch],
                            joint_linear[stretch], behind_linear[stretch],
                        )  # fmt: skip
            if step + 1 == longest:
                break
            for i in range(n):  # the successor: coupled to its predecessor, nothing else yet
                row = (n + i) * stride
                for j in range(n):
                    store(front, row + j * WIDTH, splat(-coupling[i, j]))
                for j in range(n, n + i + 1):
                    store(front, row + j * WIDTH, splat(0.0))
                for r in range(2 * n, rows):
                    store(front, r * stride + (n + i) * WIDTH, splat(0.0))
            growth = _eliminate(front, n, rows, stride, diagonal, growth)
            place = bases[group] + step * size
            for i in range(n):
                for j in range(i + 1):
                    store(factors, place, load(front, i * stride + j * WIDTH))
                    place += WIDTH
            for r in range(2 * n, rows):
                for j in range(n):
                    store(factors, place, load(front, r * stride + j * WIDTH))
                    place += WIDTH
            for i in range(n):  # what remains is the next front
                row, source = i * stride, (n + i) * stride + n * WIDTH
                for j in range(i + 1):
                    store(front, row + j * WIDTH, load(front, source + j * WIDTH))
            for r in range(2 * n, rows):
                row = r * stride
                for j in range(n):
                    store(front, row + j * WIDTH, load(front, row + (n + j) * WIDTH))
    return 0


@jit
def _keep_joint(
    lane, front, stride, joined, diagonal, own_diagonal, joint, link, behind, joint_linear,
    behind_linear,
):  # fmt: skip
    """Take what is left of a stretch, its joint and the joint before, from a lane of the front."""
    n = len(joint_linear)
    rhs = (stride // WIDTH - 1) * stride + lane
    for i in range(n):
        row = i * stride + lane
        own_diagonal[i] = diagonal[i * WIDTH + lane]
        joint_linear[i] = front[rhs + i * WIDTH]
        for j in range(i + 1):
            joint[i, j] = front[row + j * WIDTH]
            joint[j, i] = joint[i, j]
        if joined:
            row = (2 * n + i) * stride + lane
            behind_linear[i] = front[rhs + (2 * n + i) * WIDTH]
            for j in range(n):
                link[j, i] = front[row + j * WIDTH]
            for j in range(i + 1):
                behind[i, j] = front[row + (2 * n + j) * WIDTH]
                behind[j, i] = behind[i, j]


@jit
def factor_size(n, joined):
    """Numbers that a group keeps of one step."""
    return (n * (n + 1) // 2 + n * (n if joined else 0) + n) * WIDTH


@jit
def sample_joints(
    worker, start, stop, key, parts, ends, diagonals, joints, links, behind, joint_linear,
    behind_linear, growths, out,
):  # fmt: skip
    """Second pass: draw the joints of sequence s, the last states of stretches ``parts[s:s + 2]``.

    Overwrites `joints`, `links` and `joint_linear` with factors. `growths` gets the joints' share;
    with a nan among them there is no draw.
    """
    n = joint_linear.shape[1]
    x, ahead = np.empty(n), np.empty(n)
    for s in range(start, stop):
        for c in range(parts[s], parts[s + 1]):
            block, linear = joints[c], joint_linear[c]
            if c + 1 < parts[s + 1]:
                for i in range(n):
                    linear[i] += behind_linear[c + 1, i]
                    for j in range(n):
                        block[i, j] += behind[c + 1, i, j]
            if c > parts[s]:
                before, link = joints[c - 1], links[c]
                for i in range(n):  # row i of (joint, joint before) times L^-T
                    for j in range(n):
                        total = link[i, j]
                        for k in range(j):
                            total -= link[i, k] * before[j, k]
                        link[i, j] = total / before[j, j]
                for i in range(n):
                    for k in range(n):
                        linear[i] -= link[i, k] * joint_linear[c - 1, k]
                    for j in range(n):
                        for k in range(n):
                            block[i, j] -= link[i, k] * link[j, k]
            if cholesky(block) > 0:
                growths[c] = math.nan
                return 0
            for i in range(n):
                growths[c] += diagonals[c, i] / (block[i, i] * block[i, i])
                for k in range(i):
                    linear[i] -= block[i, k] * linear[k]
                linear[i] /= block[i, i]
        state = open_stream(key, parts[parts.shape[0] - 1] + s)
        for c in range(parts[s + 1] - 1, parts[s] - 1, -1):
            block = joints[c]
            for i in range(n):
                e, state = normal(state)
                x[i] = joint_linear[c, i] + e
                if c + 1 < parts[s + 1]:
                    for k in range(n):
                        x[i] -= links[c + 1, k, i] * ahead[k]
            for i in range(n - 1, -1, -1):
                x[i] /= block[i, i]
                for k in range(i):
                    x[k] -= block[i, k] * x[i]
            for i in range(n):
                ahead[i] = x[i]
                out[ends[c] - 1, i] = x[i]
    return 0


@jit
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
def sample_stretches(
    worker, start, stop, key, lanes, begins, ends, bases, first, coupling, joined, factors, out
):
    """Third pass: draw the inner states of groups of stretches, given the joints in `out`."""
    n = out.shape[1]
    size = factor_size(n, joined)
    z = np.zeros(2 * n * WIDTH)  # the joint before; then room to solve in
    x, ahead = np.zeros(n * WIDTH), np.zeros(n * WIDTH)
    for group in range(start, stop):
        num_lanes = 1
        while num_lanes < WIDTH:  # a short group repeats its last stretch
            if lanes[group * WIDTH + num_lanes] == lanes[group * WIDTH + num_lanes - 1]:
                break
            num_lanes += 1
        states = np.empty((WIDTH, 4), dtype=np.uint64)
        x[:] = 0.0
        ahead[:] = 0.0
        z[:] = 0.0
        for lane in range(num_lanes):
            stretch = lanes[group * WIDTH + lane]
            s0, s1, s2, s3 = open_stream(key, stretch)
            states[lane, 0], states[lane, 1], states[lane, 2], states[lane, 3] = s0, s1, s2, s3
            if not first[begins[stretch]]:
                for i in range(n):
                    z[i * WIDTH + lane] = out[begins[stretch] - 1, i]
        longest = ends[lanes[group * WIDTH]] - begins[lanes[group * WIDTH]]
        for step in range(longest - 2, -1, -1):
            for lane in range(num_lanes):
                stretch = lanes[group * WIDTH + lane]
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
            _draw_inner(factors, bases[group] + step * size, coupling, z, ahead, x, n, joined)
            for i in range(n):
                store(ahead, i * WIDTH, load(x, i * WIDTH))
            for lane in range(num_lanes):
                stretch = lanes[group * WIDTH + lane]
                if step < ends[stretch] - begins[stretch] - 1:
                    for i in range(n):
                        out[begins[stretch] + step, i] = x[i * WIDTH + lane]
    return 0

"""Gaussian fields on grids with product covariances: means by conjugate gradients.

On a grid the covariance is a Kronecker product of the axes' covariances, with a root G = (x) G_a
that is applied one axis at a time. In f = G z, z ~ N(0, I), a column with the potential
exp(-f' J f / 2 + h' f) is Gaussian with precision B = I + G' J G and a mean that solves B z = G' h.
The axes' roots are such that G_a' diag(d_a) G_a is diagonal for a
product d of axes close to J, so B's preconditioner I + scale G' d G is a diagonal; the condition
number is at most the range of J / (scale d).

Grids are flat vectors whose last axis is padded with zeros to whole vectors of eight.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgmult.compiled.jit import jit
from pgmult.compiled.simd import WIDTH, add_product, load, splat, store
from pgmult.compiled.vectors import dot

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]


class Plan(NamedTuple):
    """Columns, and the roots of the axes' covariances in which their preconditioner is diagonal.

    Attributes
    ----------
    columns : int array, ``(number,)``
    scales : array, ``(number,)``
        Of the preconditioner of each column.
    spectrum : array, ``(num_coordinates,)``
        The preconditioner's diagonal before it is scaled, padded.
    sizes, ranks : int arrays, ``(num_axes,)``
        Points and coordinates of each axis.
    roots, transposes : arrays
        Matrices from coordinates to points and back, one axis after the other.
    root_places, transpose_places : int arrays, ``(num_axes,)``
        Where each begins.
    """

    columns: _Ints
    scales: _Floats
    spectrum: _Floats
    sizes: _Ints
    ranks: _Ints
    roots: _Floats
    root_places: _Ints
    transposes: _Floats
    transpose_places: _Ints


class Found(NamedTuple):
    """What is found of the columns of a plan.

    Attributes
    ----------
    fields : array, ``(number, cells)``
        Means.
    errors : array, ``(number,)``
        The estimated root mean square of a column's error in posterior standard deviations:
        sqrt(r' M^-1 r / number of coordinates) for residual r and preconditioner M.
    """

    fields: _Floats
    errors: _Floats


@jit
def padded(size):
    """`size` rounded up to whole vectors."""
    return (size + WIDTH - 1) // WIDTH * WIDTH


@jit
def _multiply(a, a0, a_stride, b, b0, c, c0, m, k, n):
    """C = A B at the given places of flat vectors; B and C have rows of n, a multiple of eight."""
    for i in range(0, m, 4):
        rows = min(4, m - i)
        r0 = a0 + i * a_stride
        r1 = r0 + (a_stride if rows > 1 else 0)
        r2 = r0 + (2 * a_stride if rows > 2 else 0)
        r3 = r0 + (3 * a_stride if rows > 3 else 0)
        for j in range(0, n, 2 * WIDTH):
            second = j + WIDTH if j + WIDTH < n else j
            x00, x01, x10, x11 = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
            x20, x21, x30, x31 = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
            for q in range(k):
                left, right = load(b, b0 + q * n + j), load(b, b0 + q * n + second)
                y = splat(a[r0 + q])
                x00, x01 = add_product(x00, y, left), add_product(x01, y, right)
                y = splat(a[r1 + q])
                x10, x11 = add_product(x10, y, left), add_product(x11, y, right)
                y = splat(a[r2 + q])
                x20, x21 = add_product(x20, y, left), add_product(x21, y, right)
                y = splat(a[r3 + q])
                x30, x31 = add_product(x30, y, left), add_product(x31, y, right)
            here = c0 + i * n
            store(c, here + j, x00)
            store(c, here + second, x01)
            if rows > 1:
                store(c, here + n + j, x10)
                store(c, here + n + second, x11)
            if rows > 2:
                store(c, here + 2 * n + j, x20)
                store(c, here + 2 * n + second, x21)
            if rows > 3:
                store(c, here + 3 * n + j, x30)
                store(c, here + 3 * n + second, x31)


@jit
def apply_axes(x, matrices, places, sizes, new_sizes, first, second):
    """Multiply a grid by one matrix an axis; the result is one of the two work vectors.

    Axis a goes from ``sizes[a]`` to ``new_sizes[a]`` points. Its matrix begins at ``places[a]`` and
    has one row a new point; the last axis' is transposed, and padded.
    """
    last = sizes.shape[0] - 1
    left, right = 1, padded(sizes[last])
    for a in range(last):
        right *= sizes[a]
    for a in range(last):
        right //= sizes[a]
        for block in range(left):
            _multiply(
                matrices, places[a], sizes[a], x, block * sizes[a] * right, first,
                block * new_sizes[a] * right, new_sizes[a], sizes[a], right,
            )  # fmt: skip
        left *= new_sizes[a]
        x, first, second = first, second, first
    _multiply(
        x, 0, padded(sizes[last]), matrices, places[last], first, 0, left, sizes[last],
        padded(new_sizes[last]),
    )  # fmt: skip
    return first


@jit(reassociate=True)
def _weighted(x, weights):
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * x[i] * weights[i]
    return total


@jit
def solve_columns(worker, start, stop, J, h, plan, tolerance, max_iterations, found):
    """Means of some columns by preconditioned conjugate gradients.

    A column's error is beyond `tolerance` where `max_iterations` did not do. Returns the largest
    number of iterations.
    """
    columns, scales, spectrum, sizes, ranks = plan[:5]
    roots, root_places, transposes, transpose_places = plan[5:]
    out, errors = found
    num_coordinates = 1
    for rank in ranks:
        num_coordinates *= rank
    size, cells = spectrum.shape[0], J.shape[1]
    longest = max(padded(ranks[-1]), padded(sizes[-1]))  # of any grid from one to the other
    for a in range(sizes.shape[0] - 1):
        longest *= max(ranks[a], sizes[a])
    first, second = np.empty(longest), np.empty(longest)
    field, weights = np.empty(cells), np.empty(size)
    z, residual, direction, image = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    most = 0
    for c in range(start, stop):
        precision = J[columns[c]]
        there = apply_axes(h[columns[c]], transposes, transpose_places, sizes, ranks, first, second)
        for i in range(size):
            z[i] = 0.0
            residual[i] = there[i]
            weights[i] = 1.0 / (1.0 + scales[c] * spectrum[i])
        for i in range(size):
            direction[i] = weights[i] * residual[i]
        energy = _weighted(residual, weights)
        iterations = 0
        while True:
            errors[c] = math.sqrt(energy / num_coordinates)
            if not errors[c] > tolerance or iterations == max_iterations:
                break
            there = apply_axes(direction, roots, root_places, ranks, sizes, first, second)
            for i in range(cells):
                field[i] = precision[i] * there[i]
            there = apply_axes(field, transposes, transpose_places, sizes, ranks, first, second)
            for i in range(size):
                image[i] = direction[i] + there[i]
            step = energy / dot(direction, image)
            for i in range(size):
                z[i] += step * direction[i]
                residual[i] -= step * image[i]
            before = energy
            energy = _weighted(residual, weights)
            ratio = energy / before
            for i in range(size):
                direction[i] = weights[i] * residual[i] + ratio * direction[i]
            iterations += 1
        most = max(most, iterations)
        out[c] = apply_axes(z, roots, root_places, ranks, sizes, first, second)[:cells]
    return most

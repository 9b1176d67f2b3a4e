"""Choices of people among alternatives: their likelihood, its derivatives, and swings of tastes.

Utilities are ``base + x coef`` with ``coef_k = beta_k``, or ``sign_k exp(beta_k)`` for coefficients
of one sign, all less those of one alternative of the occasion, which has no row: its utility is 0.
`LANES` people stand side by side in a group, and loops go over them: a row holds an alternative of
an occasion of each, and the occasions that stand side by side are a slot. Where people differ in
the number of occasions, or occasions in that of alternatives, rows are filled with what nobody can
take. A kernel takes groups as rows of `pgmult.compiled.rows`, and draws nothing: noise is given.
"""

import math
from typing import NamedTuple

import numpy as np

from pgmult.compiled import simd
from pgmult.compiled.jit import jit
from pgmult.compiled.simd import add_product, load, multiply, splat, store, subtract_product
from pgmult.compiled.vectors import copy, log1p

LANES = simd.WIDTH  # people of a group
_LN2 = math.log(2.0)
_TWO_52 = 0x4330000000000000  # bits of 2^52
_BIAS = 2.0**52 + 1023.0
_FRACTION, _ONE = 0x000FFFFFFFFFFFFF, 0x3FF0000000000000  # bits of the fraction, and those of 1


class Choices(NamedTuple):
    """What kernels read.

    Attributes
    ----------
    x : array, ``(num_attributes, num_cells)``
        Less that of the alternative without a row; a cell is a row of a person.
    base : array, ``(num_cells,)``
        What utilities have besides, likewise.
    signs : array, ``(num_attributes,)``
        1 or -1 of a coefficient that has this sign, 0 of one that may have either.
    taken : array, ``(num_cells,)``
        How often, or with which weight, an alternative was taken.
    counts : array, ``(LANES num_slots,)``
        The same of all alternatives of an occasion.
    rows : int array, ``(num_slots + 1,)``
        Where the rows of each slot begin.
    slots : int array, ``(num_groups + 1,)``
        Where the slots of each group begin.
    """

    x: np.ndarray
    base: np.ndarray
    signs: np.ndarray
    taken: np.ndarray
    counts: np.ndarray
    rows: np.ndarray
    slots: np.ndarray

    def given(self, b: np.ndarray) -> "Choices":
        """Choices by the first attributes, given the coefficients of the others."""
        if not len(b):
            return self
        d = len(self.x) - len(b)
        base = self.base + b @ self.x[d:]
        return self._replace(x=self.x[:d], signs=self.signs[:d], base=base)


class PersonSites(NamedTuple):
    """Gaussian likelihoods of people's tastes, exp((h - cross b)'beta - beta'J beta / 2).

    Attributes
    ----------
    J : array, ``(num_attributes, num_attributes, num_people)``
    h : array, ``(num_attributes, num_people)``
    cross : array, ``(num_attributes, num_fixed, num_people)``
        How they change with b, the coefficients that all people share.
    """

    J: np.ndarray
    h: np.ndarray
    cross: np.ndarray


class Population(NamedTuple):
    """Tastes are ``mean + root x`` with x standard normal.

    Attributes
    ----------
    mean : array, ``(num_attributes,)``
    b : array, ``(num_fixed,)``
    root : array, ``(num_attributes, num_attributes)``
        Lower triangular.
    """

    mean: np.ndarray
    b: np.ndarray
    root: np.ndarray


class Noise(NamedTuple):
    """Random numbers of people's paths.

    Attributes
    ----------
    normal : array, ``(num_attributes, num_people)``
    lengths : array, ``(num_people,)``
        Of the steps of paths.
    exponential : array, ``(num_people,)``
    kicks : int
        Steps of a path.
    """

    normal: np.ndarray
    lengths: np.ndarray
    exponential: np.ndarray
    kicks: int


@jit(inline=True)
def _log(x):
    """log(x) for x of 1 or more, in operations that vectorise."""
    bits = np.float64(x).view(np.int64)
    exponent = np.int64((bits >> np.int64(52)) | np.int64(_TWO_52)).view(np.float64) - _BIAS
    fraction = np.int64((bits & np.int64(_FRACTION)) | np.int64(_ONE)).view(np.float64)
    return exponent * _LN2 + log1p(fraction - 1.0)


@jit(inline=True)
def _exp(x, most):
    """Lane by lane, exp(x), of `most` where x is larger."""
    most = splat(most)
    return simd.exp_negative(simd.where_above(x, most, most, x))


@jit
def _expected(choices, group, beta, coef, work, value):
    """Write log likelihoods of people, their coefficients, and expectations of `taken`.

    `beta` may lack the last attributes, whose coefficients are in `coef`. `work` are expectations
    of rows, and a buffer for slots.
    """
    p, totals = work
    begin, end = choices.slots[group], choices.slots[group + 1]
    first, last = LANES * choices.rows[begin], LANES * choices.rows[end]
    x, c, size = choices.x.reshape(choices.x.size), coef.reshape(coef.size), choices.x.shape[1]
    for k in range(beta.shape[0]):
        sign, entry = choices.signs[k], load(beta[k], 0)
        if sign != 0.0:
            entry = multiply(splat(sign), _exp(entry, 300.0))
        store(c, LANES * k, entry)
    score = splat(0.0)
    for cell in range(first, last, LANES):
        u = load(choices.base, cell)
        for k in range(coef.shape[0]):
            u = add_product(u, load(c, LANES * k), load(x, size * k + cell))
        score = add_product(score, load(choices.taken, cell), u)
        store(p, cell - first, _exp(u, 700.0))
    for slot in range(begin, end):
        low, high = LANES * choices.rows[slot] - first, LANES * choices.rows[slot + 1] - first
        total, count = splat(1.0), load(choices.counts, LANES * slot)
        for cell in range(low, high, LANES):
            total = simd.add(total, load(p, cell))
        store(totals, LANES * (slot - begin), total)
        total = simd.divide(count, total)
        for cell in range(low, high, LANES):
            store(p, cell, multiply(total, load(p, cell)))
    for i in range(LANES * (end - begin)):
        totals[i] = choices.counts[LANES * begin + i] * _log(totals[i])
    for i in range(0, LANES * (end - begin), LANES):
        score = simd.subtract(score, load(totals, i))
    store(value, 0, score)


@jit
def _slopes(choices, group, coef, p, slope):
    """Write slopes of log likelihoods in what coefficients are made of; `p` are expectations."""
    begin, end = choices.slots[group], choices.slots[group + 1]
    first, last = LANES * choices.rows[begin], LANES * choices.rows[end]
    for k in range(coef.shape[0]):
        x, change = choices.x[k], splat(0.0)
        for cell in range(first, last, LANES):
            away = simd.subtract(load(choices.taken, cell), load(p, cell - first))
            change = add_product(change, away, load(x, cell))
        if choices.signs[k] != 0.0:
            change = multiply(change, load(coef[k], 0))
        store(slope[k], 0, change)


@jit
def _curvature(choices, group, coef, p, J):
    """The negative second derivative of people's log likelihoods, without that of exp.

    In an occasion it is that of the covariance of attributes over alternatives.
    """
    begin, end = choices.slots[group], choices.slots[group + 1]
    first, last = LANES * choices.rows[begin], LANES * choices.rows[end]
    d, zero, one = coef.shape[0], splat(0.0), splat(1.0)
    sums = np.empty((d, LANES * (end - begin)))
    means = np.empty(LANES * (end - begin))
    for k in range(d):
        x = choices.x[k]
        for slot in range(begin, end):
            total, count = zero, load(choices.counts, LANES * slot)
            for cell in range(LANES * choices.rows[slot], LANES * choices.rows[slot + 1], LANES):
                total = add_product(total, load(p, cell - first), load(x, cell))
            store(sums[k], LANES * (slot - begin), total)
            total = simd.divide(total, simd.where_above(count, zero, count, one))
            store(means, LANES * (slot - begin), total)
        for j in range(k + 1):
            other, entry = choices.x[j], zero
            for cell in range(first, last, LANES):
                share = multiply(load(p, cell - first), load(x, cell))
                entry = add_product(entry, share, load(other, cell))
            for i in range(0, LANES * (end - begin), LANES):
                entry = subtract_product(entry, load(means, i), load(sums[j], i))
            if choices.signs[k] != 0.0:
                entry = multiply(entry, load(coef[k], 0))
            if choices.signs[j] != 0.0:
                entry = multiply(entry, load(coef[j], 0))
            store(J[k, j], 0, entry)
            store(J[j, k], 0, entry)


@jit
def slopes_rows(worker, start, stop, choices, tastes, values, slopes, J):
    """Log likelihoods of people, and their slopes and curvatures where there is a place for them.

    Parameters
    ----------
    tastes : array, ``(num_attributes, num_people)``
    values : array, ``(num_people,)``
    slopes : array, ``(num_attributes, num_people)``, or ``(0, 0)``
    J : array, ``(num_attributes, num_attributes, num_people)``, or ``(0, 0, 0)``
    """
    d = tastes.shape[0]
    beta, coef, slope = np.empty((d, LANES)), np.empty((d, LANES)), np.empty((d, LANES))
    work = np.empty(choices.base.size), np.empty(choices.counts.size)
    value, curvature = np.empty(LANES), np.empty((d, d, LANES))
    for group in range(start, stop):
        first, last = LANES * group, LANES * (group + 1)
        beta[:] = tastes[:, first:last]
        _expected(choices, group, beta, coef, work, value)
        values[first:last] = value
        if J.size:
            _curvature(choices, group, coef, work[0], curvature)
            J[:, :, first:last] = curvature
        if slopes.size:
            _slopes(choices, group, coef, work[0], slope)
            slopes[:, first:last] = slope


@jit(inline=True)
def _add(out, c, x, at):
    """Add c times the lanes of x that begin at a place."""
    store(out, 0, add_product(load(out, 0), splat(c), load(x, at)))


@jit(inline=True)
def _add_product(out, c, x, y):
    """Add c x y, lane by lane."""
    store(out, 0, add_product(load(out, 0), multiply(splat(c), load(x, 0)), load(y, 0)))


@jit
def _given_site(sites, first, population, buffers):
    """The Gaussian N(m, (L L')^-1) of standardised tastes given sites, of the people of a group.

    It is written to buffers: J root, L^-1, m, the site's slope at the mean, and one more.
    """
    root, d = population.root, population.mean.size
    JR, inverse, m, pull, work = buffers
    for k in range(d):
        store(pull[k], 0, load(sites.h[k], first))
        for j in range(d):
            _add(pull[k], -population.mean[j], sites.J[k, j], first)
        for j in range(population.b.size):
            _add(pull[k], -population.b[j], sites.cross[k, j], first)
        for j in range(d):
            JR[k, j] = 0.0
            for n in range(j, d):
                _add(JR[k, j], root[n, j], sites.J[k, n], first)
    for k in range(d):
        for j in range(k + 1):
            inverse[k, j] = 1.0 if j == k else 0.0
            for n in range(k, d):
                _add(inverse[k, j], root[n, k], JR[n, j], 0)
    _invert_root(inverse)
    for k in range(d):
        work[k] = 0.0
        m[k] = 0.0
        for n in range(k, d):
            _add(work[k], root[n, k], pull[n], 0)
    _solve(inverse, work, m)


@jit
def _invert_root(A):
    """Replace lower triangles, of matrices side by side, by those of L^-1 where A = L L'."""
    d = A.shape[0]
    for k in range(d):  # L, with the inverses of its diagonal
        for j in range(k + 1):
            entry = load(A[k, j], 0)
            for n in range(j):
                entry = subtract_product(entry, load(A[k, n], 0), load(A[j, n], 0))
            scale = simd.reciprocal_root(entry) if j == k else multiply(entry, load(A[j, j], 0))
            store(A[k, j], 0, scale)
    for k in range(d):
        last = multiply(splat(-1.0), load(A[k, k], 0))
        for j in range(k):
            entry = multiply(load(A[k, j], 0), load(A[j, j], 0))
            for n in range(j + 1, k):
                entry = add_product(entry, load(A[k, n], 0), load(A[n, j], 0))
            store(A[k, j], 0, multiply(entry, last))


@jit
def _solve(inverse, x, out):
    """Add (L L')^-1 x to `out`, and leave L^-1 x in `x`."""
    d = x.shape[0]
    for k in range(d - 1, -1, -1):
        entry = multiply(load(x[k], 0), load(inverse[k, k], 0))
        for j in range(k):
            entry = add_product(entry, load(inverse[k, j], 0), load(x[j], 0))
        store(x[k], 0, entry)
    for j in range(d):
        entry = load(out[j], 0)
        for k in range(j, d):
            entry = add_product(entry, load(inverse[k, j], 0), load(x[k], 0))
        store(out[j], 0, entry)


@jit
def _density(choices, group, population, gaussian, work, z, lanes, value, slope):
    """Log densities of people's x, z standard deviations from its mean, and slopes.

    Up to a constant, they are the likelihood's times exp(-x'x / 2). `lanes` become x, tastes, the
    slope in z, and L'^-1 times it; `slope` is that of the likelihood in tastes and in b.
    """
    _, inverse, m, _, _ = gaussian
    x, beta, q, y = lanes
    coef, buffers = work
    d = x.shape[0]
    for k in range(d):
        copy(m[k], x[k])
        for j in range(k, d):
            _add_product(x[k], 1.0, inverse[j, k], z[j])
    for k in range(d):
        beta[k] = population.mean[k]
        for j in range(k + 1):
            _add(beta[k], population.root[k, j], x[j], 0)
    _expected(choices, group, beta, coef, buffers, value)
    _slopes(choices, group, coef, buffers[0], slope)
    for k in range(d):
        q[k] = 0.0
        y[k] = 0.0
        _add(q[k], -1.0, x[k], 0)
        for n in range(k, d):
            _add(q[k], population.root[n, k], slope[n], 0)
        _add_product(value, -0.5, x[k], x[k])
    _solve(inverse, q, y)


@jit
def _buffers(choices, population):
    """Buffers of `_given_site`, and of `_density`: coefficients and rows; x, tastes, two slopes."""
    d, size = population.mean.size, choices.x.shape[0]
    matrices, vectors = np.empty((2, d, d, LANES)), np.empty((7, d, LANES))
    coef = np.empty((size, LANES))
    for k in range(d, size):
        coef[k] = population.b[k - d]
    gaussian = matrices[0], matrices[1], vectors[0], vectors[1], vectors[2]
    lanes = vectors[3], vectors[4], vectors[5], vectors[6]
    buffers = np.empty(choices.base.size), np.empty(choices.counts.size)
    return gaussian, (coef, buffers), lanes


@jit
def swing_rows(worker, start, stop, choices, sites, population, noise, people):
    """One Hamiltonian path of each person's tastes around their Gaussian given the site.

    See `pgmult.latent.moves`. `choices` have the other coefficients in their base. `people` are
    tastes and, of the same shape ``(num_attributes, num_people)``, standardised tastes, which
    become the standard deviations that tastes are from their mean. Where the path is accepted,
    tastes are replaced.
    """
    tastes, white = people
    d, kicks = population.mean.size, noise.kicks
    gaussian, work, lanes = _buffers(choices, population)
    _, inverse, m, _, _ = gaussian
    _, beta, q, _ = lanes
    z, v, away, slope = np.empty((4, d, LANES))
    gain, value, s = np.empty((3, LANES))
    for group in range(start, stop):
        first, last = LANES * group, LANES * (group + 1)
        _given_site(sites, first, population, gaussian)
        s[:], v[:] = noise.lengths[first:last], noise.normal[:, first:last]
        for k in range(d):
            copy(white[k, first:last], away[k])
            _add(away[k], -1.0, m[k], 0)
        for k in range(d - 1, -1, -1):
            z[k] = away[k] / inverse[k, k]
            for j in range(k):
                _add_product(away[j], -1.0, inverse[k, j], z[k])
        white[:, first:last] = z
        _density(choices, group, population, gaussian, work, z, lanes, value, slope)
        gain[:] = -value
        for k in range(d):
            _add_product(gain, 0.5, v[k], v[k])
        for step in range(kicks + 1):
            share = 0.5 if step == 0 or step == kicks else 1.0
            v += share * s * (q + z)
            if step == kicks:
                break
            for i in range(LANES):
                cos, sin = math.cos(s[i]), math.sin(s[i])
                for k in range(d):
                    z[k, i], v[k, i] = z[k, i] * cos + v[k, i] * sin, v[k, i] * cos - z[k, i] * sin
            _density(choices, group, population, gaussian, work, z, lanes, value, slope)
        for k in range(d):
            _add_product(gain, -0.5, v[k], v[k])
        for i in range(LANES):
            if gain[i] + value[i] > -noise.exponential[first + i]:
                tastes[:, first + i] = beta[:, i]
                white[:, first + i] = z[:, i]


@jit
def carry_rows(worker, start, stop, choices, sites, population, white, out):
    """Log densities of people with their white noise held fixed, and slopes in the population.

    With A = L L' = 1 + root' J root, the precision of standardised tastes x given the site, and
    m = A^-1 root' (h - cross b - J mean), tastes are mean + root x where x = m + L'^-1 z, and z has
    the density of x, the likelihood's times exp(-x'x / 2), over that of L.

    Parameters
    ----------
    white : array, ``(num_attributes, num_people)``
        z.
    out : tuple of four arrays
        Tastes, of the same shape; values, ``(num_people,)``; slopes in mean and b,
        ``(num_attributes + num_fixed, num_people)``; and those in the lower triangle of the root,
        ``(num_attributes, num_attributes, num_people)``.
    """
    tastes, values, slopes, of_root = out
    d, f = population.mean.size, population.b.size
    gaussian, work, lanes = _buffers(choices, population)
    JR, inverse, m, pull, _ = gaussian
    x, beta, q, y = lanes
    P, S = np.empty((2, d, d, LANES))
    z, slope = np.empty((d, LANES)), np.empty((d + f, LANES))
    value, entry = np.empty((2, LANES))
    for group in range(start, stop):
        first, last = LANES * group, LANES * (group + 1)
        _given_site(sites, first, population, gaussian)
        z[:] = white[:, first:last]
        _density(choices, group, population, gaussian, work, z, lanes, value, slope)
        tastes[:, first:last] = beta
        for k in range(d):
            value += np.log(inverse[k, k])
        values[first:last] = value
        _slope_of_factor(inverse, z, q, P, S)
        for k in range(d):
            for j in range(k + 1):
                _add_product(S[k, j], -1.0, y[k], m[j])
                _add_product(S[k, j], -1.0, m[k], y[j])
        for k in range(d):
            for j in range(k + 1):
                entry[:] = 0.0
                _add_product(entry, 1.0, slope[k], x[j])
                _add_product(entry, 1.0, pull[k], y[j])
                for n in range(d):
                    _add_product(entry, 1.0, JR[k, n], S[max(n, j), min(n, j)])
                copy(entry, of_root[k, j, first:last])
        for k in range(d):  # how the site's slope changes with mean and b
            entry[:] = 0.0
            for j in range(k + 1):
                _add(entry, population.root[k, j], y[j], 0)
            for j in range(f):
                _add_product(slope[d + j], -1.0, sites.cross[k, j, first:last], entry)
        for k in range(d):
            for j in range(d):
                _add_product(slope[k], -1.0, JR[k, j], y[j])
        slopes[:, first:last] = slope


@jit
def _slope_of_factor(inverse, z, q, P, S):
    """Write the slope in L L' by that in L to the lower triangle of S (Murray 2016).

    It is L'^-1 P L^-1 plus its transpose, where P is the lower triangle of -z q' less 1, with half
    of its diagonal ("Differentiation of the Cholesky decomposition", arXiv:1602.07527).
    """
    d, half, one = z.shape[0], splat(-0.5), splat(1.0)
    for k in range(d):  # P L^-1
        for j in range(k + 1):
            entry = add_product(one, load(z[k], 0), load(q[k], 0))
            entry = multiply(multiply(half, entry), load(inverse[k, j], 0))
            for n in range(j, k):
                product = multiply(load(q[n], 0), load(inverse[n, j], 0))
                entry = subtract_product(entry, load(z[k], 0), product)
            store(P[k, j], 0, entry)
    for k in range(d):
        for j in range(k + 1):
            entry = splat(0.0)
            for n in range(k, d):
                entry = add_product(entry, load(inverse[n, k], 0), load(P[n, j], 0))
                entry = add_product(entry, load(inverse[n, j], 0), load(P[n, k], 0))
            store(S[k, j], 0, entry)

"""Choices of people among alternatives: their likelihood, its derivatives, and swings of tastes.

Utilities are ``base + x coef`` with ``coef_k = beta_k``, or ``sign_k exp(beta_k)`` for coefficients
of one sign, all less those of one alternative of the occasion, which has no row: its utility is 0.
The rows of occasions with equally many alternatives are one block, alternative after alternative,
so that loops over occasions have neighbours. A row kernel of `pgmult.compiled.rows` takes one
person a row, and draws nothing: noise is given.
"""

import math
from functools import partial
from typing import NamedTuple

import numpy as np

from pgmult.compiled.jit import jit
from pgmult.compiled.rows import over_rows
from pgmult.compiled.vectors import copy, exp_minus

LANES = 32  # people side by side in small matrices
over_people = partial(over_rows, grain=LANES)


class Choices(NamedTuple):
    """What kernels read.

    Attributes
    ----------
    x : array, ``(num_attributes, num_rows)``
        Less that of the alternative without a row.
    base : array, ``(num_rows,)``
        What utilities have besides, likewise.
    signs : array, ``(num_attributes,)``
        1 or -1 of a coefficient that has this sign, 0 of one that may have either.
    taken : array, ``(num_rows,)``
        How often, or with which weight, an alternative was taken.
    counts : array, ``(num_occasions,)``
        The same of all alternatives of an occasion.
    rows, occasions : int arrays, ``(num_blocks + 1,)``
        Where the rows and the occasions of each block begin.
    people : int array, ``(num_people + 1,)``
        Where the blocks of each person begin.
    """

    x: np.ndarray
    base: np.ndarray
    signs: np.ndarray
    taken: np.ndarray
    counts: np.ndarray
    rows: np.ndarray
    occasions: np.ndarray
    people: np.ndarray

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


@jit(reassociate=True, inline=True)
def _expected(choices, i, coef, p, total):
    """Log likelihood of person i, and how often rows are expected to be taken; their span."""
    begin, end = choices.people[i], choices.people[i + 1]
    first, last = choices.rows[begin], choices.rows[end]
    x, taken, p = choices.x[:, first:last], choices.taken[first:last], p[: last - first]
    copy(choices.base[first:last], p)
    for k in range(coef.size):
        column, c = x[k], coef[k]
        for r in range(p.size):
            p[r] += c * column[r]
    value = 0.0
    for r in range(p.size):
        value += taken[r] * p[r]
        p[r] = exp_minus(-p[r])
    for block in range(begin, end):
        counts = choices.counts[choices.occasions[block] : choices.occasions[block + 1]]
        a, b, n = choices.rows[block] - first, choices.rows[block + 1] - first, counts.size
        for o in range(n):
            total[o] = 1.0
        for r in range(a, b, n):
            column = p[r : r + n]
            for o in range(n):
                total[o] += column[o]
        for o in range(n):
            value -= counts[o] * math.log(total[o])
            total[o] = counts[o] / total[o]
        for r in range(a, b, n):
            column = p[r : r + n]
            for o in range(n):
                column[o] *= total[o]
    return value, first, last


@jit(reassociate=True, inline=True)
def _value_and_slope(choices, i, beta, coef, work, slope):
    """Log likelihood of person i, the coefficients, and its slope in what they are made of."""
    signs = choices.signs
    for k in range(coef.size):
        coef[k] = beta[k] if signs[k] == 0.0 else signs[k] * math.exp(min(beta[k], 300.0))
    value, first, last = _expected(choices, i, coef, *work)
    x, taken, away = choices.x[:, first:last], choices.taken[first:last], work[0][: last - first]
    for r in range(away.size):
        away[r] = taken[r] - away[r]
    for k in range(coef.size):
        column, change = x[k], 0.0
        for r in range(away.size):
            change += column[r] * away[r]
        slope[k] = change if signs[k] == 0.0 else change * coef[k]
    return value


@jit
def _curvature(choices, i, coef, buffers, total, row, J):
    """The negative second derivative of person i's log likelihood, without that of exp.

    In an occasion it is that of the covariance of attributes over alternatives.
    """
    signs, (x, p) = choices.signs, (choices.x, buffers[0])
    _, first, _ = _expected(choices, i, coef, *buffers)
    J[:] = 0.0
    for block in range(choices.people[i], choices.people[i + 1]):
        start, n = choices.occasions[block], choices.occasions[block + 1] - choices.occasions[block]
        for o in range(n):
            total[:] = 0.0
            for r in range(choices.rows[block] + o, choices.rows[block + 1], n):
                for k in range(coef.size):
                    row[k] = x[k, r]
                    share = p[r - first] * row[k]
                    total[k] += share
                    for j in range(k + 1):
                        J[k, j] += share * row[j]
            for k in range(coef.size):
                for j in range(k + 1):
                    J[k, j] -= total[k] * total[j] / max(choices.counts[start + o], 1e-300)
    for k in range(coef.size):
        for j in range(k + 1):
            J[k, j] *= (coef[k] if signs[k] != 0.0 else 1.0) * (coef[j] if signs[j] != 0.0 else 1.0)
            J[j, k] = J[k, j]


@jit
def _work(choices, size):
    """Buffers for rows and occasions, of which one person touches few; and three vectors."""
    buffers = np.empty(choices.taken.size), np.empty(choices.counts.size)
    return buffers, np.empty(size), np.empty(size), np.empty(size)


@jit
def slopes_rows(worker, start, stop, choices, tastes, values, slopes, J):
    """Log likelihoods of people, their slopes in tastes, and curvatures where J has entries."""
    buffers, total, coef, row = _work(choices, tastes.shape[1])
    for i in range(start, stop):
        values[i] = _value_and_slope(choices, i, tastes[i], coef, buffers, slopes[i])
        if J.size:
            _curvature(choices, i, coef, buffers, total, row, J[i])


@jit(inline=True)
def _add(out, c, x):
    for p in range(out.size):
        out[p] += c * x[p]


@jit(inline=True)
def _add_product(out, c, x, y):
    for p in range(out.size):
        out[p] += c * (x[p] * y[p])


@jit
def _buffers(d):
    """Buffers of `_given_site`: J root, L^-1, m, the site's slope at the mean, and one more."""
    matrices, vectors = np.empty((2, d, d, LANES)), np.empty((3, d, LANES))
    return matrices[0], matrices[1], vectors[0], vectors[1], vectors[2]


@jit
def _given_site(sites, first, last, population, buffers):
    """The Gaussian N(m, (L L')^-1) of standardised tastes given sites, of some people.

    It is written into the buffers of `_buffers`, and cut to size.
    """
    size, root, d = last - first, population.root, population.mean.size
    JR, inverse, m, pull, work = buffers
    JR, inverse = JR[:, :, :size], inverse[:, :, :size]
    m, pull, work = m[:, :size], pull[:, :size], work[:, :size]
    for k in range(d):
        copy(sites.h[k, first:last], pull[k])
        for j in range(d):
            _add(pull[k], -population.mean[j], sites.J[k, j, first:last])
        for j in range(population.b.size):
            _add(pull[k], -population.b[j], sites.cross[k, j, first:last])
        for j in range(d):
            JR[k, j] = 0.0
            for n in range(j, d):
                _add(JR[k, j], root[n, j], sites.J[k, n, first:last])
    for k in range(d):
        for j in range(k + 1):
            inverse[k, j] = 1.0 if j == k else 0.0
            for n in range(k, d):
                _add(inverse[k, j], root[n, k], JR[n, j])
    _invert_root(inverse)
    for k in range(d):
        work[k] = 0.0
        m[k] = 0.0
        for n in range(k, d):
            _add(work[k], root[n, k], pull[n])
    _solve(inverse, work, m)
    return JR, inverse, m, pull


@jit(within=True)
def _invert_root(A):
    """Replace lower triangles, of matrices side by side, by those of L^-1 where A = L L'."""
    d, size = A.shape[1:]
    for k in range(d):
        for j in range(k + 1):
            entry, other = A[k, j], A[j, j]
            for n in range(j):
                _add_product(entry, -1.0, A[k, n], A[j, n])
            for p in range(size):
                entry[p] = math.sqrt(entry[p]) if j == k else entry[p] / other[p]
    for k in range(d):
        last = A[k, k]
        for p in range(size):
            last[p] = 1.0 / last[p]
        for j in range(k):
            entry, other = A[k, j], A[j, j]
            for p in range(size):
                entry[p] *= other[p]
            for n in range(j + 1, k):
                _add_product(entry, 1.0, A[k, n], A[n, j])
            for p in range(size):
                entry[p] *= -last[p]


@jit
def _solve(inverse, x, out):
    """Add (L L')^-1 x to `out`, and leave L^-1 x in `x`."""
    for k in range(x.shape[0] - 1, -1, -1):
        entry, last = x[k], inverse[k, k]
        for p in range(entry.size):
            entry[p] *= last[p]
        for j in range(k):
            _add_product(entry, 1.0, inverse[k, j], x[j])
    for k in range(x.shape[0]):
        for j in range(k + 1):
            _add_product(out[j], 1.0, inverse[k, j], x[k])


@jit
def _place(population, inverse, m, white, x, beta):
    """Standardised tastes, and tastes, that are so many standard deviations from their mean."""
    for k in range(m.shape[0]):
        copy(m[k], x[k])
        for j in range(k, m.shape[0]):
            _add_product(x[k], 1.0, inverse[j, k], white[j])
    for k in range(m.shape[0]):
        beta[k] = population.mean[k]
        for j in range(k + 1):
            _add(beta[k], population.root[k, j], x[j])


@jit(within=True)
def _likelihoods(choices, first, beta, b, work, value, slopes):
    """Log likelihoods of people from the first on, and slopes in tastes and in b."""
    buffers, at, coef, slope = work
    d = beta.shape[0]
    copy(b, at[d:])
    for p in range(value.size):
        for k in range(d):
            at[k] = beta[k, p]
        value[p] = _value_and_slope(choices, first + p, at, coef, buffers, slope)
        for k in range(coef.size):
            slopes[k, p] = slope[k]


@jit
def _density(choices, first, population, gaussian, work, z, lanes, value, slope):
    """Log densities of people's x, z standard deviations from its mean, and slopes.

    Up to a constant, they are the likelihood's times exp(-x'x / 2). `lanes` become x, tastes, the
    slope in z, and L'^-1 times it; `slope` is that of the likelihood in tastes and in b.
    """
    _, inverse, m, _ = gaussian
    x, beta, q, y = lanes
    b, buffers = work
    _place(population, inverse, m, z, x, beta)
    _likelihoods(choices, first, beta, b, buffers, value, slope)
    for k in range(x.shape[0]):
        q[k] = 0.0
        y[k] = 0.0
        _add(q[k], -1.0, x[k])
        for n in range(k, x.shape[0]):
            _add(q[k], population.root[n, k], slope[n])
        _add_product(value, -0.5, x[k], x[k])
    _solve(inverse, q, y)


@jit
def swing_rows(worker, start, stop, choices, sites, population, noise, kicks, tastes, white):
    """One Hamiltonian path of each person's tastes around their Gaussian given the site.

    See `pgmult.latent.moves`. `choices` have the other coefficients in their base; `noise` are
    normal numbers ``(num_attributes, num_people)``, lengths of steps and exponential numbers
    ``(num_people,)``. `white`, of the shape of the former, are standardised tastes, and become the
    standard deviations that tastes are from their mean. Where the path is accepted, `tastes` are
    replaced.
    """
    normal, length, exponential = noise
    d = population.mean.size
    buffers, work = _buffers(d), (population.b[:0], _work(choices, d))
    vectors = np.empty((8, d, LANES))
    gains, values = np.empty(LANES), np.empty(LANES)
    for first in range(start, stop, LANES):
        last = min(stop, first + LANES)
        gaussian = _given_site(sites, first, last, population, buffers)
        _, inverse, m, _ = gaussian
        lanes = vectors[:4, :, : last - first]
        _, beta, q, _ = lanes
        z, v, slope, away = vectors[4:, :, : last - first]
        gain, value = gains[: last - first], values[: last - first]
        s = length[first:last]
        for k in range(d):
            copy(normal[k, first:last], v[k])
            copy(white[k, first:last], away[k])
            _add(away[k], -1.0, m[k])
        for k in range(d - 1, -1, -1):
            for p in range(s.size):
                z[k, p] = away[k, p] / inverse[k, k, p]
            for j in range(k):
                _add_product(away[j], -1.0, inverse[k, j], z[k])
            copy(z[k], white[k, first:last])
        _density(choices, first, population, gaussian, work, z, lanes, value, slope)
        for p in range(s.size):
            gain[p] = -value[p]
        for k in range(d):
            _add_product(gain, 0.5, v[k], v[k])
        for step in range(kicks + 1):
            share = 0.5 if step == 0 or step == kicks else 1.0
            for k in range(d):
                for p in range(s.size):
                    v[k, p] += share * s[p] * (q[k, p] + z[k, p])
            if step == kicks:
                break
            for p in range(s.size):
                cos, sin = math.cos(s[p]), math.sin(s[p])
                for k in range(d):
                    z[k, p], v[k, p] = z[k, p] * cos + v[k, p] * sin, v[k, p] * cos - z[k, p] * sin
            _density(choices, first, population, gaussian, work, z, lanes, value, slope)
        for k in range(d):
            _add_product(gain, -0.5, v[k], v[k])
        for p in range(s.size):
            if gain[p] + value[p] > -exponential[first + p]:
                copy(beta[:, p], tastes[:, first + p])
                copy(z[:, p], white[:, first + p])


@jit
def carry_rows(
    worker, start, stop, choices, sites, population, white, tastes, values, slopes, of_root
):
    """Log densities of people with their white noise held fixed, and slopes in the population.

    With A = L L' = 1 + root' J root, the precision of standardised tastes x given the site, and
    m = A^-1 root' (h - cross b - J mean), tastes are mean + root x where x = m + L'^-1 z, and z has
    the density of x, the likelihood's times exp(-x'x / 2), over that of L.

    Parameters
    ----------
    white : array, ``(num_attributes, num_people)``
        z.
    tastes : array, of the same shape
        To which people are carried.
    values : array, ``(num_people,)``
    slopes : array, ``(num_attributes + num_fixed, num_people)``
        In mean and b.
    of_root : array, ``(num_attributes, num_attributes, num_people)``
        In the lower triangle of the root.
    """
    d, f = population.mean.size, population.b.size
    buffers, work = _buffers(d), (population.b, _work(choices, d + f))
    vectors, matrices = np.empty((5, d, LANES)), np.empty((2, d, d, LANES))
    for first in range(start, stop, LANES):
        last = min(stop, first + LANES)
        gaussian = _given_site(sites, first, last, population, buffers)
        JR, inverse, m, pull = gaussian
        lanes, turned = vectors[:4, :, : last - first], vectors[4, :, : last - first]
        x, beta, q, y = lanes
        P, S = matrices[:, :, :, : last - first]
        z, value, slope = white[:, first:last], values[first:last], slopes[:, first:last]
        _density(choices, first, population, gaussian, work, z, lanes, value, slope)
        for k in range(d):
            copy(beta[k], tastes[k, first:last])
            entry = inverse[k, k]
            for p in range(value.size):
                value[p] += math.log(entry[p])
        _slope_of_factor(inverse, z, q, P, S)
        for k in range(d):
            for j in range(k + 1):
                _add_product(S[k, j], -1.0, y[k], m[j])
                _add_product(S[k, j], -1.0, m[k], y[j])
        for k in range(d):
            for j in range(k + 1):
                entry = of_root[k, j, first:last]
                entry[:] = 0.0
                _add_product(entry, 1.0, slope[k], x[j])
                _add_product(entry, 1.0, pull[k], y[j])
                for n in range(d):
                    _add_product(entry, 1.0, JR[k, n], S[max(n, j), min(n, j)])
        for k in range(d):  # how the site's slope changes with mean and b
            turned[k] = 0.0
            for j in range(k + 1):
                _add(turned[k], population.root[k, j], y[j])
            for j in range(f):
                _add_product(slope[d + j], -1.0, sites.cross[k, j, first:last], turned[k])
        for k in range(d):
            for j in range(d):
                _add_product(slope[k], -1.0, JR[k, j], y[j])


@jit(within=True)
def _slope_of_factor(inverse, z, q, P, S):
    """Write the slope in L L' by that in L to the lower triangle of S (Murray 2016).

    It is L'^-1 P L^-1 plus its transpose, where P is the lower triangle of -z q' less 1, with half
    of its diagonal ("Differentiation of the Cholesky decomposition", arXiv:1602.07527).
    """
    d = z.shape[0]
    for k in range(d):  # P L^-1
        for j in range(k + 1):
            entry, other = P[k, j], inverse[k, j]
            for p in range(entry.size):
                entry[p] = -0.5 * (z[k, p] * q[k, p] + 1.0) * other[p]
            for n in range(j, k):
                other = inverse[n, j]
                for p in range(entry.size):
                    entry[p] -= z[k, p] * q[n, p] * other[p]
    for k in range(d):
        for j in range(k + 1):
            S[k, j] = 0.0
            for n in range(k, d):
                _add_product(S[k, j], 1.0, inverse[n, k], P[n, j])
                _add_product(S[k, j], 1.0, inverse[n, j], P[n, k])

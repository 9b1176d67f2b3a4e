"""Choices of people among alternatives: their likelihood, its derivatives, and swings of tastes.

Utilities are ``base + x coef`` with ``coef_k = beta_k``, or ``sign_k exp(beta_k)`` for coefficients
of one sign, all less those of one alternative of the occasion, which has no row: its utility is 0.
The rows of occasions with equally many alternatives are one block, alternative after alternative,
so that loops over occasions have neighbours. A row kernel of `pgmult.compiled.rows` takes one
person a row, and draws nothing: noise is given.
"""

import math
from typing import NamedTuple

import numpy as np

from pgmult.compiled.jit import jit
from pgmult.compiled.linalg import (
    cholesky,
    solve_lower,
    solve_lower_transpose,
    solve_with_root,
)
from pgmult.compiled.vectors import exp_minus


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


class Sites(NamedTuple):
    """Gaussian likelihoods of people's tastes, exp(h'beta - beta'J beta / 2), to swing around.

    Attributes
    ----------
    J : array, ``(num_people, num_attributes, num_attributes)``
    h : array, ``(num_people, num_attributes)``
    """

    J: np.ndarray
    h: np.ndarray


@jit
def _coefficients(beta, signs, coef):
    for k in range(beta.size):
        coef[k] = beta[k] if signs[k] == 0.0 else signs[k] * math.exp(min(beta[k], 300.0))


@jit(reassociate=True, inline=True)
def _expected(choices, i, coef, p, total):
    """Log likelihood of person i, and how often rows are expected to be taken; their span."""
    begin, end = choices.people[i], choices.people[i + 1]
    first, last = choices.rows[begin], choices.rows[end]
    x, taken, p = choices.x[:, first:last], choices.taken[first:last], p[: last - first]
    p[:] = choices.base[first:last]
    for k in range(coef.size):
        own, c = x[k], coef[k]
        for r in range(p.size):
            p[r] += c * own[r]
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
            own = p[r : r + n]
            for o in range(n):
                total[o] += own[o]
        for o in range(n):
            value -= counts[o] * math.log(total[o])
            total[o] = counts[o] / total[o]
        for r in range(a, b, n):
            own = p[r : r + n]
            for o in range(n):
                own[o] *= total[o]
    return value, first, last


@jit(reassociate=True, inline=True)
def _value_and_slope(choices, i, coef, work, slope, residual):
    """Log likelihood of person i; its slope in the coefficients, and in each row's utility."""
    value, first, last = _expected(choices, i, coef, *work)
    x, taken, away = choices.x[:, first:last], choices.taken[first:last], work[0][: last - first]
    for r in range(away.size):
        away[r] = taken[r] - away[r]
    for k in range(coef.size):
        own, change = x[k], 0.0
        for r in range(away.size):
            change += own[r] * away[r]
        slope[k] = change
    if residual.size:
        residual[first:last] = away
    return value


@jit
def _in_betas(coef, signs, slope):
    """Slopes in the coefficients become slopes in what these are made of."""
    for k in range(coef.size):
        if signs[k] != 0.0:
            slope[k] *= coef[k]


@jit(reassociate=True)
def _curvature(choices, i, coef, work, J):
    """The negative second derivative of person i's log likelihood, without that of exp."""
    signs, (p, sums) = choices.signs, work
    _, first, last = _expected(choices, i, coef, p, sums[0])
    J[:] = 0.0
    for block in range(choices.people[i], choices.people[i + 1]):
        counts = choices.counts[choices.occasions[block] : choices.occasions[block + 1]]
        a, b, n = choices.rows[block], choices.rows[block + 1], counts.size
        for k in range(coef.size):
            one = sums[k]
            one[:n] = 0.0
            for r in range(a, b, n):
                own, share = choices.x[k, r : r + n], p[r - first : r - first + n]
                for o in range(n):
                    one[o] += share[o] * own[o]
            for j in range(k + 1):
                other, product = sums[j], 0.0
                for o in range(n):
                    product += one[o] * other[o] / max(counts[o], 1e-300)
                J[k, j] -= product
    for k in range(coef.size):
        one = choices.x[k, first:last]
        for j in range(k + 1):
            other, product = choices.x[j, first:last], 0.0
            for r in range(one.size):
                product += p[r] * one[r] * other[r]
            J[k, j] += product
            if signs[k] != 0.0:
                J[k, j] *= coef[k]
            if signs[j] != 0.0:
                J[k, j] *= coef[j]
            J[j, k] = J[k, j]


@jit
def _buffers(choices, num_attributes):
    """Room for the probabilities of one person's rows, and for sums over occasions."""
    rows = occasions = 0
    for i in range(choices.people.size - 1):
        first, last = choices.people[i], choices.people[i + 1]
        rows = max(rows, choices.rows[last] - choices.rows[first])
        for block in range(first, last):
            occasions = max(occasions, choices.occasions[block + 1] - choices.occasions[block])
    return np.empty(rows), np.empty((max(num_attributes, 1), occasions))


@jit
def slopes_rows(worker, start, stop, choices, tastes, values, slopes, residual):
    """Log likelihoods of people, their slopes in tastes and in utilities of rows."""
    d = tastes.shape[1]
    p, sums = _buffers(choices, 1)
    work, coef = (p, sums[0]), np.empty(d)
    for i in range(start, stop):
        _coefficients(tastes[i], choices.signs, coef)
        values[i] = _value_and_slope(choices, i, coef, work, slopes[i], residual)
        _in_betas(coef, choices.signs, slopes[i])


@jit
def sites_rows(worker, start, stop, choices, tastes, sites):
    """Gaussian likelihoods with the slope and curvature of the true ones at some tastes."""
    d = tastes.shape[1]
    p, sums = _buffers(choices, d)
    coef, none = np.empty(d), np.empty(0)
    for i in range(start, stop):
        J, h = sites.J[i], sites.h[i]
        _coefficients(tastes[i], choices.signs, coef)
        _value_and_slope(choices, i, coef, (p, sums[0]), h, none)
        _in_betas(coef, choices.signs, h)
        _curvature(choices, i, coef, (p, sums), J)
        for k in range(d):
            for j in range(d):
                h[k] += J[k, j] * tastes[i, j]


@jit
def climb_rows(worker, start, stop, choices, law, steps, tastes, sites):
    """Newton steps to people's posterior modes from `tastes`, which they replace, and sites there.

    A step is halved while it does not climb. `law` is (mean, precision) of the population.
    """
    mean, precision = law
    d = tastes.shape[1]
    p, sums = _buffers(choices, d)
    work, none, coef = (p, sums[0]), np.empty(0), np.empty(d)
    slope, step, there, root = np.empty(d), np.empty(d), np.empty(d), np.empty((d, d))
    for i in range(start, stop):
        beta = tastes[i]
        for _ in range(steps):
            _coefficients(beta, choices.signs, coef)
            here = _value_and_slope(choices, i, coef, work, slope, none)
            _in_betas(coef, choices.signs, slope)
            _curvature(choices, i, coef, (p, sums), root)
            for k in range(d):
                pull = 0.0
                for j in range(d):
                    pull += precision[k, j] * (beta[j] - mean[j])
                    root[k, j] += precision[k, j]
                slope[k] -= pull
                here -= 0.5 * (beta[k] - mean[k]) * pull
            if cholesky(root) != 0:
                break
            step[:] = slope
            solve_with_root(root, step)
            for _ in range(20):
                for k in range(d):
                    there[k] = beta[k] + step[k]
                _coefficients(there, choices.signs, coef)
                value = _value_and_slope(choices, i, coef, work, slope, none)
                for k in range(d):
                    pull = 0.0
                    for j in range(d):
                        pull += precision[k, j] * (there[j] - mean[j])
                    value -= 0.5 * (there[k] - mean[k]) * pull
                if value >= here:
                    beta[:] = there
                    break
                step *= 0.5
    sites_rows(worker, start, stop, choices, tastes, sites)


@jit(inline=True)
def _correction(choices, i, beta, J, h, work, slope):
    """Log likelihood less the site's at `beta`, and its slope."""
    buffers, coef, none = work
    _coefficients(beta, choices.signs, coef)
    value = _value_and_slope(choices, i, coef, buffers, slope, none)
    _in_betas(coef, choices.signs, slope)
    for k in range(beta.size):
        product = 0.0
        for j in range(beta.size):
            product += J[k, j] * beta[j]
        slope[k] -= h[k] - product
        value -= beta[k] * (h[k] - 0.5 * product)
    return value


@jit
def swing_rows(worker, start, stop, choices, law, sites, noise, kicks, tastes):
    """One Hamiltonian path of each person's tastes around N(mean, precision^-1) times its site.

    See `pgmult.latent.moves`: `law` is (mean, precision) of the population, `noise` normal numbers
    ``(num_people, num_attributes)``, lengths of steps and exponential numbers ``(num_people,)``.
    `tastes` are replaced where the path is accepted.
    """
    mean, precision = law
    normal, length, exponential = noise
    d = mean.size
    p, sums = _buffers(choices, 1)
    work = (p, sums[0]), np.empty(d), np.empty(0)
    root, centre, z, v = np.empty((d, d)), np.empty(d), np.empty(d), np.empty(d)
    slope, kicked, beta = np.empty(d), np.empty(d), np.empty(d)
    for i in range(start, stop):
        J, h = sites.J[i], sites.h[i]
        for k in range(d):
            centre[k] = h[k]
            for j in range(d):
                root[k, j] = precision[k, j] + J[k, j]
                centre[k] += precision[k, j] * mean[j]
            v[k] = normal[i, k]
        if cholesky(root) != 0:
            continue
        solve_with_root(root, centre)
        solve_lower_transpose(root, v)
        for k in range(d):
            z[k] = tastes[i, k] - centre[k]
        cos, sin = math.cos(length[i]), math.sin(length[i])
        gain = -_correction(choices, i, tastes[i], J, h, work, slope)
        for step in range(kicks + 1):
            s = length[i] * (0.5 if step == 0 or step == kicks else 1.0)
            kicked[:] = slope
            solve_lower(root, kicked)
            energy = 0.0
            for k in range(d):
                energy += v[k] * slope[k]
            gain -= s * energy
            for k in range(d):
                gain -= 0.5 * s * s * kicked[k] * kicked[k]
            solve_lower_transpose(root, kicked)
            for k in range(d):
                v[k] += s * kicked[k]
            if step == kicks:
                break
            for k in range(d):
                z[k], v[k] = z[k] * cos + v[k] * sin, v[k] * cos - z[k] * sin
                beta[k] = centre[k] + z[k]
            value = _correction(choices, i, beta, J, h, work, slope)
        gain += value
        if gain > -exponential[i]:
            tastes[i] = beta

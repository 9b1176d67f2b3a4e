"""Softmaxes of correlated Gaussians, averaged over many standard normal points."""

import math

import numpy as np

from pgmult.compiled.jit import jit
from pgmult.compiled.vectors import combine, exp_minus


@jit(reassociate=True)
def _add_shares(mean, sign, turned, top, total, shares, sums):
    """Add up softmax(0, mean + sign turned) over the points: all arrays but `mean` and `sums`."""
    num_points = top.size
    for i in range(num_points):
        top[i] = 0.0
    for k in range(mean.size):
        m, t = mean[k], turned[k]
        for i in range(num_points):
            top[i] = max(top[i], m + sign * t[i])
    first = shares[0]
    for i in range(num_points):
        first[i] = exp_minus(top[i])
        total[i] = first[i]
    for k in range(mean.size):
        m, t, share = mean[k], turned[k], shares[k + 1]
        for i in range(num_points):
            share[i] = exp_minus(top[i] - m - sign * t[i])
            total[i] += share[i]
    for i in range(num_points):
        total[i] = 1.0 / total[i]
    for k in range(sums.size):
        share, added = shares[k], 0.0
        for i in range(num_points):
            added += share[i] * total[i]
        sums[k] += added


@jit
def average_rows(worker, start, stop, mean, root, points, out):
    """E softmax(0, x), x ~ N(mean, root root'), over points and their mirrors.

    Rows of `mean` are ``(D,)``, of `root` ``(D, D)`` and of `out` ``(D + 1,)``; points are
    ``(num_blocks, D, num_points)``.
    """
    num_blocks, size, num_points = points.shape
    turned, shares = np.empty((size, num_points)), np.empty((size + 1, num_points))
    top, total = np.empty(num_points), np.empty(num_points)
    for n in range(start, stop):
        out[n] = 0.0
        for b in range(num_blocks):
            for k in range(size):
                combine(root[n, k], 0.0, points[b], turned[k])
            for sign in (-1.0, 1.0):
                _add_shares(mean[n], sign, turned, top, total, shares, out[n])
        out[n] /= 2.0 * num_blocks * num_points


@jit(reassociate=True)
def _add_products(shares, sums, squares):
    """Add up shares, and the products of all pairs of them, over the points."""
    num_points = shares.shape[1]
    for k in range(sums.size):
        first, added = shares[k], 0.0
        for i in range(num_points):
            added += first[i]
        sums[k] += added
        for j in range(k + 1):
            second, added = shares[j], 0.0
            for i in range(num_points):
                added += first[i] * second[i]
            squares[k, j] += added


@jit
def _take_shares(mean, sign, turned, top, total, shares):
    """Softmaxes of (0, mean + sign turned) at the points; the sum of their log normalisers."""
    num_points, size = top.size, mean.size
    top[:] = 0.0
    for k in range(size):
        m, t = mean[k], turned[k]
        for i in range(num_points):
            top[i] = max(top[i], m + sign * t[i])
    for i in range(num_points):
        total[i] = shares[0, i] = exp_minus(top[i])
    for k in range(size):
        m, t, share = mean[k], turned[k], shares[k + 1]
        for i in range(num_points):
            share[i] = exp_minus(top[i] - m - sign * t[i])
            total[i] += share[i]
    level = 0.0
    for i in range(num_points):
        level += top[i] + math.log(total[i])
        total[i] = 1.0 / total[i]
    for k in range(size + 1):
        share = shares[k]
        for i in range(num_points):
            share[i] *= total[i]
    return level


@jit
def integrate_rows(worker, start, stop, mean, root, points, value, probs, half_curvature):
    """E log(1 + sum exp x), E softmax(0, x) and half the expected Hessian, x ~ N(mean, root root').

    Rows of `mean` are ``(D,)``, of `root` ``(D, D)``, of `probs` ``(D + 1,)`` and of
    `half_curvature` ``(D + 1, D + 1)``; points are ``(num_blocks, D, num_points)``, and their
    mirrors are taken too.
    """
    num_blocks, size, num_points = points.shape
    turned, shares = np.empty((size, num_points)), np.empty((size + 1, num_points))
    top, total = np.empty(num_points), np.empty(num_points)
    squares = np.empty((size + 1, size + 1))
    each = 1.0 / (2.0 * num_blocks * num_points)
    for n in range(start, stop):
        level = 0.0
        probs[n] = 0.0
        squares[:] = 0.0
        for b in range(num_blocks):
            for k in range(size):
                combine(root[n, k], 0.0, points[b], turned[k])
            for sign in (-1.0, 1.0):
                level += _take_shares(mean[n], sign, turned, top, total, shares)
                _add_products(shares, probs[n], squares)
        value[n] = each * level
        for k in range(size + 1):
            probs[n, k] *= each
            for j in range(k + 1):
                both = -0.5 * each * squares[k, j]
                half_curvature[n, k, j] = half_curvature[n, j, k] = both
            half_curvature[n, k, k] += 0.5 * probs[n, k]

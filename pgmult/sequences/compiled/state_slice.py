"""Pieces of slices of whole paths of states around a Gaussian.

See `pgmult.sequences.updates.state_slice`, which strings them together.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgmult.compiled.ellipse import open_bracket, shrink_bracket
from pgmult.compiled.jit import jit
from pgmult.compiled.streams import exponential, open_stream

# Gauss-Hermite: exact for polynomials of degree nine
_NODES = np.array([-2.8569700138728056, -1.355626179974266, 0.0, 1.355626179974266,
                   2.8569700138728056])  # fmt: skip
_SHARES = np.array([0.011257411327720689, 0.22207592200561264, 0.5333333333333333,
                    0.22207592200561264, 0.011257411327720689])  # fmt: skip


@jit
def expected_sites(worker, start, stop, active, design, covs, weights, J, h):
    """Write to J and h the potentials of a piece's states from expected sites.

    The states have means in the leading columns of `design` and covariances `covs`. Where these
    have no size, the sites are those at a rough guess of psi: of the offset's probability and of
    the step's share, to which the former adds as many trials as would have one success.
    """
    _, depths, _, _, indptr, sticks, counts = active
    D, q = J.shape[1], design.shape[1]
    guessing = covs.shape[1] == 0
    square, linear = np.empty((D, D)), np.empty(D)
    for t in range(start, stop):
        entry = indptr[t]
        reaching = np.int64(0)
        for e in range(entry, indptr[t + 1]):
            reaching += counts[e]
        for i in range(D):
            linear[i] = 0.0
            for j in range(D):
                square[i, j] = 0.0
        for k in range(depths[t]):
            taken = np.int64(0)
            if sticks[entry] == k:
                taken = counts[entry]
                entry += 1
            known, var, seen = 0.0, 0.0, 0.0  # the part of psi that no state has a hand in
            for i in range(D, q):
                known += weights[k, i] * design[t, i]
            if guessing:
                share = 1.0 / (1.0 + math.exp(-known))
                more = 1.0 / max(min(share, 1.0 - share), 1e-6)
                share = (taken + more * share) / (reaching + more)
                seen = math.log(share / (1.0 - share)) - known
                spread = share * (1.0 - share)
            else:
                for i in range(D):
                    seen += weights[k, i] * design[t, i]
                    for j in range(i):
                        var += 2.0 * weights[k, i] * weights[k, j] * covs[t, i, j]
                    var += weights[k, i] * weights[k, i] * covs[t, i, i]
                scale = math.sqrt(max(var, 0.0))
                share = spread = 0.0
                for n in range(_NODES.size):
                    x = known + seen + scale * _NODES[n]
                    tail = math.exp(-abs(x))
                    part = 1.0 / (1.0 + tail)
                    share += _SHARES[n] * (part if x > 0.0 else tail * part)
                    spread += _SHARES[n] * tail * part * part
            precision = reaching * spread
            pull = taken - reaching * share + precision * seen
            for i in range(D):
                linear[i] += pull * weights[k, i]
                for j in range(i + 1):
                    square[i, j] += precision * weights[k, i] * weights[k, j]
            reaching -= taken
        for i in range(D):
            h[t, i] = linear[i]
            for j in range(i + 1):
                J[t, i, j] = square[i, j]
                J[t, j, i] = square[i, j]


class Base(NamedTuple):
    """The Gaussian that paths are sliced around, and what psi is made of.

    ``centre`` are the means of the states, and (J, h) the sites in the likelihood's place. States
    in the leading columns of ``design`` are not looked at.
    """

    design: NDArray[np.float64]
    weights: NDArray[np.float64]
    J: NDArray[np.float64]
    h: NDArray[np.float64]
    centre: NDArray[np.float64]


@jit
def _point_of(t, cos, sin, centre, states, across, x):
    """Write a state on the ellipse of step t to x."""
    for i in range(x.size):
        here, there = states[t, i] - centre[t, i], across[t, i] - centre[t, i]
        x[i] = centre[t, i] + here * cos + there * sin


@jit
def _correction(first, end, cos, sin, active, base, states, across, x):
    """Log likelihood of a path, less the sites in its place."""
    _, depths, _, _, indptr, sticks, counts = active
    design, weights, J, h, centre = base
    D, q = x.size, design.shape[1]
    total = 0.0
    for t in range(first, end):
        _point_of(t, cos, sin, centre, states, across, x)
        for i in range(D):
            total -= h[t, i] * x[i]
            for j in range(i):
                total += x[i] * J[t, i, j] * x[j]
            total += 0.5 * x[i] * J[t, i, i] * x[i]
        entry = indptr[t]
        reaching = np.int64(0)
        for e in range(entry, indptr[t + 1]):
            reaching += counts[e]
        for k in range(depths[t]):
            psi = 0.0
            for i in range(D):
                psi += weights[k, i] * x[i]
            for i in range(D, q):
                psi += weights[k, i] * design[t, i]
            total -= reaching * (max(psi, 0.0) + math.log1p(math.exp(-abs(psi))))
            if sticks[entry] == k:
                total += counts[entry] * psi
                reaching -= counts[entry]
                entry += 1
    return total


@jit
def slice_paths(worker, start, stop, key, offsets, active, base, across, states):
    """Move the `states` of a piece's sequences along ellipses around the base's centre.

    `across` is a second point of each ellipse. Sequence s has stream s. Returns 0, or 1 + a
    sequence whose log likelihood is not finite.
    """
    x = np.empty(states.shape[1])
    for s in range(start, stop):
        first, end = offsets[s], offsets[s + 1]
        state = open_stream(key, s)
        angle, left, right, state = open_bracket(state)
        drop, state = exponential(state)
        level, cos, sin, started = 0.0, 1.0, 0.0, False
        while True:
            total = _correction(first, end, cos, sin, active, base, states, across, x)
            if not started:
                if not math.isfinite(total):
                    return 1 + s
                level, started = total - drop, True
            elif total >= level:
                break
            else:
                angle, left, right, state = shrink_bracket(angle, left, right, state)
            cos, sin = math.cos(angle), math.sin(angle)
            if angle == 0.0:  # the bracket has shrunk to where the path is
                break
        for t in range(first, end):
            _point_of(t, cos, sin, base[4], states, across, x)
            states[t] = x
    return 0

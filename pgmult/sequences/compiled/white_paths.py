r"""Hamiltonian paths of dynamics, weights and the white noise of states, without omega.

With white noise z_t ~ N(0, I) in the place of states,

    x_first = m + V^1/2 z,      x_t = A x_t-1 + B u_t + Q^1/2 z_t,      psi_t = W (x_t, e_t, 1),

everything below Q, m, V and the loadings' variances has a Gaussian prior and the likelihood is that
of the observations themselves. The gradient takes one pass along the steps and one back:
O(num_steps D (D + U) + P q) for P pairs of step and stick.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgmult.compiled.jit import jit

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]


class Observations(NamedTuple):
    """Observations: `Pairs` without their sites, sequences, and given columns of psi."""

    step: _Ints
    stick: _Ints
    taken: _Floats
    reaching: _Floats
    offsets: _Ints
    columns: _Floats
    inputs: _Floats


class PathParameters(NamedTuple):
    """What a path holds fixed: roots of Q and V, m, and the priors of (A, B)' and W."""

    root: _Floats
    start: _Floats
    start_root: _Floats
    precision: _Floats
    mean: _Floats
    row_precision: _Floats
    weight_mean: _Floats
    weight_precision: _Floats


class Place(NamedTuple):
    """(A, B), W and z, or slopes by these."""

    dynamics: _Floats
    weights: _Floats
    white: _Floats


@jit(within=True)
def exchange(observed, held, dynamics, x, white, to_states):
    """Write the states that white noise stands for to x, or the noise that states stand for."""
    offsets, inputs, D = observed.offsets, observed.inputs, x.shape[1]
    for s in range(offsets.size - 1):
        for t in range(offsets[s], offsets[s + 1]):
            first = t == offsets[s]
            root = held.start_root if first else held.root
            for i in range(D):
                ahead = held.start[i] if first else 0.0
                if not first:
                    for j in range(D):
                        ahead += dynamics[i, j] * x[t - 1, j]
                    for j in range(inputs.shape[1]):
                        ahead += dynamics[i, D + j] * inputs[t, j]
                for j in range(i):
                    ahead += root[i, j] * white[t, j]
                if to_states:
                    x[t, i] = ahead + root[i, i] * white[t, i]
                else:
                    white[t, i] = (x[t, i] - ahead) / root[i, i]


@jit(within=True)
def _fit(observed, weights, x, by_weights, by_x, in_full):
    """The log likelihood, of its linear terms alone unless `in_full`; its slopes are added."""
    D, total = x.shape[1], 0.0
    step, stick, taken, reaching = observed.step, observed.stick, observed.taken, observed.reaching
    columns = observed.columns
    for p in range(step.size):
        t, k, n = step[p], stick[p], reaching[p]
        psi = 0.0
        for j in range(D):
            psi += weights[k, j] * x[t, j]
        for j in range(columns.shape[1]):
            psi += weights[k, D + j] * columns[t, j]
        tail = math.exp(-abs(psi))
        share = (1.0 if psi > 0.0 else tail) / (1.0 + tail)
        total += taken[p] * psi
        if in_full:
            total -= n * (max(psi, 0.0) + math.log1p(tail))
        slope = taken[p] - n * share
        for j in range(D):
            by_x[t, j] += slope * weights[k, j]
            by_weights[k, j] += slope * x[t, j]
        for j in range(columns.shape[1]):
            by_weights[k, D + j] += slope * columns[t, j]
    return total


@jit(within=True)
def _back(observed, held, place, x, by_x, slopes):
    """Carry slopes by states, `by_x`, back to dynamics and noise; the log prior of noise."""
    D, total = x.shape[1], 0.0
    offsets, inputs, dynamics = observed.offsets, observed.inputs, place.dynamics
    white = place.white
    for s in range(offsets.size - 1):
        for t in range(offsets[s + 1] - 1, offsets[s] - 1, -1):
            first = t == offsets[s]
            root = held.start_root if first else held.root
            for j in range(D):
                z = white[t, j]
                total -= 0.5 * z * z
                slope = -z
                for i in range(j, D):
                    slope += root[i, j] * by_x[t, i]
                slopes.white[t, j] = slope
            if first:
                continue
            for i in range(D):
                for j in range(D):
                    by_x[t - 1, j] += dynamics[i, j] * by_x[t, i]
                    slopes.dynamics[i, j] += by_x[t, i] * x[t - 1, j]
                for j in range(inputs.shape[1]):
                    slopes.dynamics[i, D + j] += by_x[t, i] * inputs[t, j]
    return total


@jit(within=True)
def _prior(held, place, slopes):
    """The log prior of dynamics and weights; its slopes are added."""
    total, (n, q), (D, R) = 0.0, place.weights.shape, place.dynamics.shape
    for k in range(n):
        for j in range(q):
            away = place.weights[k, j] - held.weight_mean[k, j]
            slopes.weights[k, j] -= held.weight_precision[k, j] * away
            total -= 0.5 * held.weight_precision[k, j] * away * away
    for i in range(D):
        for j in range(R):
            pull = 0.0
            for k in range(D):
                for r in range(R):
                    away = place.dynamics[k, r] - held.mean[r, k]
                    pull += held.precision[i, k] * away * held.row_precision[r, j]
            slopes.dynamics[i, j] -= pull
            total -= 0.5 * pull * (place.dynamics[i, j] - held.mean[j, i])
    return total


@jit(within=True)
def log_density(observed, held, place, x, by_x, slopes, in_full):
    """Log density of (A, B), W and z up to a constant; fills states, and slopes by all of them.

    Unless `in_full` the logarithms are left out: the number says only whether all is finite.
    """
    exchange(observed, held, place.dynamics, x, place.white, True)
    for slope in (slopes.dynamics, slopes.weights, by_x):
        for i in range(slope.shape[0]):
            for j in range(slope.shape[1]):
                slope[i, j] = 0.0
    total = _fit(observed, place.weights, x, slopes.weights, by_x, in_full)
    total += _back(observed, held, place, x, by_x, slopes)
    return total + _prior(held, place, slopes)


@jit
def walk(observed, held, place, slopes, flat, x, size, count):
    """One path of `count` leapfrogs from states x; the logarithm of the chance of its end.

    Rows of `flat` are `place` and `slopes` as vectors, momenta, and the standard deviations that
    measure steps. Place and x are changed.
    """
    at, by, momenta, scale = flat[0], flat[1], flat[2], flat[3]
    by_x, start, end = np.empty_like(x), 0.0, 0.0
    exchange(observed, held, place.dynamics, x, place.white, False)
    for i in range(count + 1):
        end = log_density(observed, held, place, x, by_x, slopes, i == 0 or i == count)
        if not math.isfinite(end):
            return -math.inf
        step = size if 0 < i < count else 0.5 * size
        kinetic = 0.0
        for j in range(at.size):
            if i == 0:
                kinetic += 0.5 * momenta[j] * momenta[j]
            momenta[j] += step * scale[j] * by[j]
            if i < count:
                at[j] += size * scale[j] * momenta[j]
            else:
                kinetic += 0.5 * momenta[j] * momenta[j]
        if i == 0:
            start = end - kinetic
        elif i == count:
            end -= kinetic
    return end - start

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


@jit
def _ahead(observed, held, dynamics, x, t, first, out):
    """What x_t is without its noise."""
    for i in range(x.shape[1]):
        out[i] = held.start[i] if first else 0.0
        if not first:
            for j in range(x.shape[1]):
                out[i] += dynamics[i, j] * x[t - 1, j]
            for j in range(observed.inputs.shape[1]):
                out[i] += dynamics[i, x.shape[1] + j] * observed.inputs[t, j]


@jit(within=True)
def states_of(observed, held, place, x):
    """Write the states that white noise stands for to x."""
    ahead = np.empty(x.shape[1])
    for s in range(observed.offsets.size - 1):
        for t in range(observed.offsets[s], observed.offsets[s + 1]):
            first = t == observed.offsets[s]
            root = held.start_root if first else held.root
            _ahead(observed, held, place.dynamics, x, t, first, ahead)
            for i in range(x.shape[1]):
                x[t, i] = ahead[i]
                for j in range(i + 1):
                    x[t, i] += root[i, j] * place.white[t, j]


@jit(within=True)
def whiten(observed, held, dynamics, x, white):
    """Write the white noise that stands for states x."""
    ahead = np.empty(x.shape[1])
    for s in range(observed.offsets.size - 1):
        for t in range(observed.offsets[s], observed.offsets[s + 1]):
            first = t == observed.offsets[s]
            root = held.start_root if first else held.root
            _ahead(observed, held, dynamics, x, t, first, ahead)
            for i in range(x.shape[1]):
                away = x[t, i] - ahead[i]
                for j in range(i):
                    away -= root[i, j] * white[t, j]
                white[t, i] = away / root[i, i]


@jit(within=True)
def _fit(observed, weights, x, by_weights, by_x):
    """The log likelihood; its slopes are added."""
    D, total = x.shape[1], 0.0
    for p in range(observed.step.size):
        t, k, n = observed.step[p], observed.stick[p], observed.reaching[p]
        psi = 0.0
        for j in range(D):
            psi += weights[k, j] * x[t, j]
        for j in range(observed.columns.shape[1]):
            psi += weights[k, D + j] * observed.columns[t, j]
        tail = math.exp(-abs(psi))
        share = (1.0 if psi > 0.0 else tail) / (1.0 + tail)
        total += observed.taken[p] * psi - n * (max(psi, 0.0) + math.log1p(tail))
        slope = observed.taken[p] - n * share
        for j in range(D):
            by_x[t, j] += slope * weights[k, j]
            by_weights[k, j] += slope * x[t, j]
        for j in range(observed.columns.shape[1]):
            by_weights[k, D + j] += slope * observed.columns[t, j]
    return total


@jit(within=True)
def _back(observed, held, place, x, by_x, slopes):
    """Carry slopes by states, `by_x`, back to dynamics and noise; the log prior of noise."""
    D, total = x.shape[1], 0.0
    for s in range(observed.offsets.size - 1):
        for t in range(observed.offsets[s + 1] - 1, observed.offsets[s] - 1, -1):
            first = t == observed.offsets[s]
            root = held.start_root if first else held.root
            for j in range(D):
                z = place.white[t, j]
                total -= 0.5 * z * z
                slopes.white[t, j] = -z
                for i in range(j, D):
                    slopes.white[t, j] += root[i, j] * by_x[t, i]
            if first:
                continue
            for i in range(D):
                for j in range(D):
                    by_x[t - 1, j] += place.dynamics[i, j] * by_x[t, i]
                    slopes.dynamics[i, j] += by_x[t, i] * x[t - 1, j]
                for j in range(observed.inputs.shape[1]):
                    slopes.dynamics[i, D + j] += by_x[t, i] * observed.inputs[t, j]
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
def log_density(observed, held, place, x, by_x, slopes):
    """Log density of (A, B), W and z up to a constant; fills states, and slopes by all of them."""
    states_of(observed, held, place, x)
    for slope in (slopes.dynamics, slopes.weights, by_x):
        for i in range(slope.shape[0]):
            for j in range(slope.shape[1]):
                slope[i, j] = 0.0
    total = _fit(observed, place.weights, x, slopes.weights, by_x)
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
    whiten(observed, held, place.dynamics, x, place.white)
    for i in range(count + 1):
        end = log_density(observed, held, place, x, by_x, slopes)
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

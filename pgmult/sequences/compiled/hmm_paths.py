"""Leapfrogs of all probabilities of hidden Markov chains, the states summed out.

See `pgmult.sequences.updates.summed_out`, whose paths these are.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgmult.compiled.jit import jit
from pgmult.latent.compiled.coordinates import BEND, LARGEST, LEAST_LOG_SD
from pgmult.latent.compiled.stacked import Stacked, colour, solve
from pgmult.sequences.compiled import hmm
from pgmult.sequences.compiled.hmm import SMALLEST, ByRows

_LEAST_SD = math.exp(LEAST_LOG_SD)
_Floats = NDArray[np.float64]


class Scales(NamedTuple):
    """Standard deviations that move with the weights that they multiply.

    Attributes
    ----------
    of : int array, ``(num_weights,)``
        Which multiplies a weight; -1 for none.
    near : array, ``(num_sticks, num_sds)``
        Those at which the metric is.
    added : array, ``(num_sticks, num_weights)``
        What the metric adds to a weight's precision, in precisions of its prior.
    scale, dof : arrays, ``(num_sds,)``
        Of their half-t priors.
    """

    of: NDArray[np.int64]
    near: _Floats
    added: _Floats
    scale: _Floats
    dof: _Floats


class MovedPaths(NamedTuple):
    """Weights of sticks and coordinates of their standard deviations, and what moves them.

    Attributes
    ----------
    weights : array, ``(num_sticks, num_weights)``
    x : array, ``(num_sticks, num_sds)``
    velocity : array, ``(num_sticks, num_weights + num_sds)``
    rows, columns : ByRows
        The design A and A'.
    constants : array, ``(num_cells, num_sticks)``
        psi = A weights' + constants.
    precision : ByRows
        That of the distribution of all sticks' weights at the metric's standard deviations.
    metric : Stacked
        Of weights.
    masses : array, ``(num_sticks, num_sds)``
    scales : Scales
    """

    weights: _Floats
    x: _Floats
    velocity: _Floats
    rows: ByRows
    columns: ByRows
    constants: _Floats
    precision: ByRows
    metric: Stacked
    masses: _Floats
    scales: Scales


@jit(inline=True)
def _sd(x):
    """The standard deviation at a coordinate, mirrored at 0: see `pgmult.latent.terms`."""
    return max(BEND * math.expm1(abs(x)), _LEAST_SD)


@jit(within=True)
def _ratios(block, s, ratios, shares):
    """Compare each weight of a stick: its standard deviation over the metric's, and a share.

    That is the share of the metric's precision in which the prior has no part.
    """
    for j in range(ratios.size):
        which = block.scales.of[j]
        ratios[j] = 1.0 if which < 0 else _sd(block.x[s, which]) / block.scales.near[s, which]
        added = block.scales.added[s, j] * ratios[j] ** 2
        shares[j] = added / (1.0 + added)


@jit(inline=True)
def _shrunk(added, share):
    """How much larger a prior's standard deviation is than the weight's, beside the metric's."""
    return math.sqrt((1.0 + added) * (1.0 - share))


@jit
def colour_velocity(block):
    """Make a draw under the metric of velocities that are standard normal numbers."""
    num_sticks, size = block.weights.shape
    for s in range(num_sticks):
        colour(block.metric, s, block.velocity[s, :size].copy(), block.velocity[s])
        for k in range(block.masses.shape[1]):
            block.velocity[s, size + k] /= math.sqrt(block.masses[s, k])


@jit(within=True)
def _predict(block, psi):
    """Predictors of a part."""
    hmm.set_product(0, 0, psi.shape[0], block.rows, block.weights.T, psi)
    for c in range(psi.shape[0]):
        for s in range(psi.shape[1]):
            psi[c, s] += block.constants[c, s]


@jit(within=True)
def _kick(block, slopes, length):
    """Change velocities by the metric's inverse times the slopes of the log density.

    Returns the log density of the prior, and what the kinetic energy grows by.
    """
    num_sticks, size = block.weights.shape
    of, added = block.scales.of, block.scales.added
    ratios, shares = np.empty((2, num_sticks, size))
    for s in range(num_sticks):
        _ratios(block, s, ratios[s], shares[s])
    apart = (block.weights / ratios).reshape(-1, 1)
    pulled, held = np.empty((size, num_sticks)), np.empty_like(apart)
    hmm.set_product(0, 0, size, block.columns, slopes, pulled)
    hmm.set_product(0, 0, held.size, block.precision, apart, held)
    prior, energy, pull, solved = 0.0, 0.0, np.empty(size), np.empty(size)
    for s in range(num_sticks):
        rise = np.zeros(block.x.shape[1])
        for j in range(size):
            white, pulled_back = apart[s * size + j, 0], held[s * size + j, 0]
            shrunk = _shrunk(added[s, j], shares[s, j])
            pull[j] = shrunk * (ratios[s, j] * pulled[j, s] - pulled_back)
            prior -= 0.5 * white * pulled_back
            if of[j] >= 0:
                prior += math.log(shrunk)
                rise[of[j]] += (1.0 - shares[s, j]) * block.weights[s, j] * pulled[j, s]
                rise[of[j]] -= shares[s, j] * (1.0 - white * pulled_back)
        solve(block.metric, s, pull, solved)
        for j in range(size):
            energy += length * pull[j] * (block.velocity[s, j] + 0.5 * length * solved[j])
            block.velocity[s, j] += length * solved[j]
        for k in range(rise.size):
            x, sd = block.x[s, k], _sd(block.x[s, k])
            spread = block.scales.dof[k] * block.scales.scale[k] ** 2
            power = block.scales.dof[k] + 1.0
            if abs(x) > LARGEST:
                prior = -math.inf
            prior += abs(x) - 0.5 * power * math.log1p(sd**2 / spread)
            slope = 1.0 + (sd + BEND) / sd * (rise[k] - power * sd**2 / (spread + sd**2))
            slope = slope if x > 0.0 else -slope
            v, gain = block.velocity[s, size + k], length * slope / block.masses[s, k]
            energy += length * slope * (v + 0.5 * gain)
            block.velocity[s, size + k] = v + gain
    return prior, energy


@jit(within=True)
def _drift(block, length):
    """Change coordinates of standard deviations, and weights with them, by velocities."""
    size, added = block.weights.shape[1], block.scales.added
    ratios, shares = np.empty((2, 2, size))
    for s in range(block.weights.shape[0]):
        _ratios(block, s, ratios[0], shares[0])
        for k in range(block.x.shape[1]):
            block.x[s, k] += length * block.velocity[s, size + k]
        _ratios(block, s, ratios[1], shares[1])
        for j in range(size):
            before = ratios[0, j] * _shrunk(added[s, j], shares[0, j])
            after = ratios[1, j] * _shrunk(added[s, j], shares[1, j])
            moved = block.weights[s, j] / before + length * block.velocity[s, j]
            block.weights[s, j] = after * moved


@jit(within=True)
def _log_density(psi, order, before, counts, slopes):
    """Log density of counts made before, up to a constant; sets the slopes of all counts' in psi.

    These are n - N sigma(psi), of how often a stick was taken and reached.
    """
    total = 0.0
    for cell in range(psi.shape[0]):
        for i in range(psi.shape[1]):
            last = order[i, psi.shape[2]]
            weight, reached = before[cell, i, last], counts[cell, i, last]
            for k in range(psi.shape[2] - 1, -1, -1):
                taken, stick = counts[cell, i, order[i, k]], psi[cell, i, k]
                weight += before[cell, i, order[i, k]]
                reached += taken
                log_rest = max(stick, 0.0) + math.log1p(math.exp(-abs(stick)))
                total += before[cell, i, order[i, k]] * stick - weight * log_rest
                slopes[cell, i, k] = taken - reached / (1.0 + math.exp(-stick))
    return total


@jit
def _room(part, order):
    """Room for a number of each stick in each cell; the same as cells by rows by sticks."""
    flat = np.empty_like(part.constants)
    return flat, flat.reshape(flat.shape[0], order.shape[0], order.shape[1] - 1)


@jit
def leap(chains, cells, orders, before, parts, size, count):
    """So many leapfrogs, which change all that moves; by how much the log density grows.

    That is the posterior's less the kinetic energy. It is -inf where a path comes to a probability
    that is next to 0, and ends there. Velocities begin as standard normal numbers.
    """
    T, M, grown = chains.indptr.size - 1, chains.initial.size, 0.0
    log_predictive, smoothed, pairs = np.empty(T), np.empty((T, M)), np.zeros((T, M, M))
    psi = _room(parts[0], orders[0]), _room(parts[1], orders[1]), _room(parts[2], orders[2])
    slopes = _room(parts[0], orders[0]), _room(parts[1], orders[1]), _room(parts[2], orders[2])
    sticks = psi[0][1], psi[1][1], psi[2][1]
    num_cells = max(sticks[0].shape[0], sticks[1].shape[0], sticks[2].shape[0])
    for p in range(3):
        colour_velocity(parts[p])
    for i in range(count + 1):
        for p in range(3):
            _predict(parts[p], psi[p][0])
        if hmm.break_sticks(0, 0, num_cells, sticks, orders, chains) < SMALLEST:
            return -math.inf
        hmm.smooth_paths(0, 0, chains.offsets.size - 1, chains, log_predictive, smoothed, pairs)
        counts = before[0].copy(), before[1].copy(), before[2].copy()
        hmm.add_up_counts(chains, cells, smoothed, pairs, counts)
        fit = log_predictive.sum()
        for p in range(3):
            density = _log_density(sticks[p], orders[p], before[p], counts[p], slopes[p][1])
            length = size if 0 < i < count else 0.5 * size
            prior, energy = _kick(parts[p], slopes[p][0], length)
            fit += prior + density
            grown -= energy
            if i < count:
                _drift(parts[p], size)
        if i == 0:
            grown -= fit
    return grown + fit

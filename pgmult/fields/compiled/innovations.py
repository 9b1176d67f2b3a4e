"""Innovations of a field over times and places: the standard normal noise it is computed from.

With the state of `pgmult.fields.compiled.space_time`, let a filter observe the field itself,
without noise, one time after another. Its prediction error at time t is L_t xi_t, with xi_t
independent standard normals whose law does not depend on the covariance. The xi_t and the field
determine each other, as in a Cholesky factorisation of the dense covariance in the order of time::

    f_t = H x_t + L_t xi_t,    x_{t+1} = A_{t+1} (x_t + G_t xi_t)

L_t and G_t are the same for all columns. Where the past and earlier places determine the field,
L_t has a column of zeros, and that entry of xi_t cannot be found from the field.

O(T S**3 q**2) once and O(T S**2 q) a column, for T times, S places, q blocks of a state.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgmult.compiled.jit import jit
from pgmult.fields.compiled.space_time import advance


class Innovations(NamedTuple):
    """How noise enters a field over times and places.

    Attributes
    ----------
    active : int array, ``(num_times, num_places)``
        The places that are seen at each time, first in each row.
    num_active : int array, ``(num_times,)``
        How many there are.
    roots : array, ``(num_times, num_places, num_places)``
        L, its rows and columns in the order of `active`.
    gains : array, ``(num_times, size, num_places)``
        G.
    """

    active: NDArray[np.int64]
    num_active: NDArray[np.int64]
    roots: NDArray[np.float64]
    gains: NDArray[np.float64]


@jit
def innovations(chain, active, num_active, tolerance):
    """Of a chain and the places seen; a variance below `tolerance` times the prior's is none."""
    A, Q, K, starts = chain.A, chain.Q, chain.K, chain.starts
    num_times, num_places = active.shape
    num_blocks = starts[-1]
    size = num_blocks * num_places
    roots = np.zeros((num_times, num_places, num_places))
    gains = np.zeros((num_times, size, num_places))
    P, half = np.zeros((size, size)), np.zeros((size, size))
    ahead = np.zeros((num_places, size))
    for t in range(num_times):
        half[:] = 0.0
        for b in range(num_blocks):
            for a in range(b, num_blocks):
                scale = A[t, b, a]
                if scale != 0.0:
                    for s in range(num_places):
                        for c in range(size):
                            half[b * num_places + s, c] += scale * P[a * num_places + s, c]
        P[:] = 0.0
        for b in range(num_blocks):
            for a in range(b, num_blocks):
                scale = A[t, b, a]
                if scale != 0.0:
                    for r in range(size):
                        for s in range(num_places):
                            P[r, b * num_places + s] += scale * half[r, a * num_places + s]
        for i in range(starts.shape[0] - 1):
            for b in range(starts[i], starts[i + 1]):
                for d in range(starts[i], starts[i + 1]):
                    for s in range(num_places):
                        for c in range(num_places):
                            P[b * num_places + s, d * num_places + c] += Q[t, b, d] * K[i, s, c]
        L, G = roots[t], gains[t]
        for i in range(num_active[t]):
            s = active[t, i]
            prior = 0.0
            for c in range(size):
                total = 0.0
                for first in starts[:-1]:
                    total += P[first * num_places + s, c]
                ahead[i, c] = total
            for term in range(starts.shape[0] - 1):
                prior += K[term, s, s]
            for j in range(i + 1):
                total = 0.0
                for first in starts[:-1]:
                    total += ahead[i, first * num_places + active[t, j]]
                for k in range(j):
                    total -= L[i, k] * L[j, k]
                if j == i:
                    L[i, i] = math.sqrt(total) if total > tolerance * prior else 0.0
                elif L[j, j] > 0.0:
                    L[i, j] = total / L[j, j]
            if L[i, i] > 0.0:
                for c in range(size):
                    total = ahead[i, c]
                    for k in range(i):
                        total -= L[i, k] * G[c, k]
                    G[c, i] = total / L[i, i]
        for r in range(size):
            for c in range(size):
                total = 0.0
                for k in range(num_active[t]):
                    total += G[r, k] * G[c, k]
                P[r, c] -= total
    return Innovations(active, num_active, roots, gains)


@jit
def carry_columns(worker, start, stop, whiten, chain, parts, noise, values):
    """Each column's noise from its values, or the values from the noise.

    Both are ``(num_columns, num_times, num_places)``. Noise that the values say nothing of stays
    what it is.
    """
    active, num_active, roots, gains = parts
    A, starts = chain.A, chain.starts
    num_times, num_places = active.shape
    x = np.empty((starts[-1], num_places))
    for column in range(start, stop):
        x[:] = 0.0
        for t in range(num_times):
            advance(A, t, starts, x)
            L, G, xi = roots[t], gains[t], noise[column, t]
            for i in range(num_active[t]):
                s = active[t, i]
                total = 0.0
                for first in starts[:-1]:
                    total += x[first, s]
                for k in range(i):
                    total += L[i, k] * xi[active[t, k]]
                if not whiten:
                    values[column, t, s] = total + L[i, i] * xi[s]
                elif L[i, i] > 0.0:
                    xi[s] = (values[column, t, s] - total) / L[i, i]
            for b in range(starts[-1]):
                for c in range(num_places):
                    total = x[b, c]
                    for i in range(num_active[t]):
                        total += G[b * num_places + c, i] * xi[active[t, i]]
                    x[b, c] = total
    return 0

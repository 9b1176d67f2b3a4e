"""Gaussian series with a small state, many columns that differ in what they were multiplied by.

With a state x_t of a few numbers, A_0 = 0 and independent e_t,

    x_t = A_t x_{t-1} + e_t,    e_t ~ N(0, Q_t),    f_t = H_t' x_t,

column c is multiplied by exp(-J f**2 / 2 + h f) at every step. A Kalman filter in covariance form
and the adjoint pass back (de Jong 1989; Durbin and Koopman 2002) give log normalisers, means and
variances; J may be 0, so new steps are steps without potential. Where f is seen without noise, the
filter's innovations are standard normal noise that makes f, and that f tells::

    f_t = H_t' A_t x_{t-1} + root_t xi_t,    x_t = A_t x_{t-1} + gain_t xi_t

O(T q**3) a column, for T steps and q numbers of state.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgmult.compiled.jit import jit
from pgmult.compiled.linalg import product


class StateSpaceChain(NamedTuple):
    """The dynamics.

    Attributes
    ----------
    A, Q : arrays, ``(num_steps, size, size)``
    H : array, ``(num_steps, size)``
    """

    A: NDArray[np.float64]
    Q: NDArray[np.float64]
    H: NDArray[np.float64]


@jit
def _multiply(A, x, spare):
    """Replace x by A x."""
    for i in range(len(x)):
        spare[i] = 0.0
        for k in range(len(x)):
            spare[i] += A[i, k] * x[k]
    x[:] = spare


@jit
def _predict(A, Q, x, P, spare):
    """Mean and covariance of a state after a step, in place."""
    _multiply(A, x, spare[0])
    product(A, P, spare)
    for i in range(len(x)):
        for j in range(i + 1):
            total = Q[i, j]
            for k in range(len(x)):
                total += spare[i, k] * A[j, k]
            P[i, j] = P[j, i] = total


@jit
def _see(H, x, P, cross):
    """Mean and variance of f, and its covariances with the state."""
    size = len(x)
    mean, var = 0.0, 0.0
    for i in range(size):
        total = 0.0
        for j in range(size):
            total += P[i, j] * H[j]
        cross[i] = total
        mean += H[i] * x[i]
        var += H[i] * total
    return mean, max(var, 0.0)


@jit
def smooth_columns(worker, start, stop, J, h, chain, out):
    """Log normalisers, means and variances of f, and means of the last state, of each column.

    `J`, `h`, means and variances are (num_columns, num_steps), the last states (num_columns, size).
    """
    log_normalizers, means, variances, lasts = out
    num_steps, size = chain.H.shape
    cross, (at, var) = np.empty((num_steps, size)), np.empty((2, num_steps))
    x, r, seen = np.empty((3, size))
    P, N, spare = np.empty((3, size, size))
    for c in range(start, stop):
        x[:], P[:], r[:], N[:] = 0.0, 0.0, 0.0, 0.0
        log_z = 0.0
        for t in range(num_steps):
            _predict(chain.A[t], chain.Q[t], x, P, spare)
            at[t], var[t] = _see(chain.H[t], x, P, cross[t])
            left, scale = h[c, t] - J[c, t] * at[t], 1.0 / (1.0 + J[c, t] * var[t])
            log_z += at[t] * (h[c, t] - 0.5 * J[c, t] * at[t])
            log_z += 0.5 * (var[t] * left * left * scale + math.log(scale))
            for i in range(size):
                x[i] += cross[t, i] * scale * left
                for j in range(size):
                    P[i, j] -= J[c, t] * scale * cross[t, i] * cross[t, j]
        log_normalizers[c] = log_z
        lasts[c] = x
        for t in range(num_steps - 1, -1, -1):
            H, scale = chain.H[t], 1.0 / (1.0 + J[c, t] * var[t])
            gain, known = J[c, t] * scale, (h[c, t] - J[c, t] * at[t]) * scale
            twice = 0.0
            for i in range(size):
                known -= gain * cross[t, i] * r[i]
                total = 0.0
                for j in range(size):
                    total += N[i, j] * cross[t, j]
                seen[i] = total
                twice += cross[t, i] * total
            means[c, t], left = at[t], 0.0
            for i in range(size):
                r[i] += H[i] * known
                means[c, t] += cross[t, i] * r[i]
                for j in range(size):
                    N[i, j] += H[i] * H[j] * gain * (1.0 + gain * twice)
                    N[i, j] -= gain * (H[i] * seen[j] + seen[i] * H[j])
                    left += cross[t, i] * N[i, j] * cross[t, j]
            variances[c, t] = max(var[t] - left, 0.0)
            A = chain.A[t]  # what later steps say of a state, in terms of the state before
            _multiply(A.T, r, spare[0])
            product(N, A, spare)
            product(A.T, spare, N)


@jit
def innovations(chain, tolerance):
    """Roots ``(num_steps,)`` and gains ``(num_steps, size)``.

    A variance below `tolerance` times that of f is none.
    """
    num_steps, size = chain.H.shape
    roots, gains = np.zeros(num_steps), np.zeros((num_steps, size))
    x, cross = np.zeros((2, size))
    P, spare = np.zeros((2, size, size))
    _predict(chain.A[0], chain.Q[0], x, P, spare)
    _, first = _see(chain.H[0], x, P, cross)
    P[:] = 0.0
    for t in range(num_steps):
        _predict(chain.A[t], chain.Q[t], x, P, spare)
        _, var = _see(chain.H[t], x, P, cross)
        if not var > tolerance * first:
            continue
        roots[t] = math.sqrt(var)
        gains[t] = cross / roots[t]
        P -= np.outer(gains[t], gains[t])
    return roots, gains


@jit
def carry_columns(worker, start, stop, whiten, chain, roots, gains, noise, values):
    """Each column's noise from its values, or the values from the noise.

    Both are ``(num_columns, num_steps)``. Noise that the values say nothing of stays what it is.
    """
    num_steps, size = chain.H.shape
    x, spare = np.empty((2, size))
    for c in range(start, stop):
        x[:] = 0.0
        for t in range(num_steps):
            _multiply(chain.A[t], x, spare)
            mean = 0.0
            for i in range(size):
                mean += chain.H[t, i] * x[i]
            if not whiten:
                values[c, t] = mean + roots[t] * noise[c, t]
            elif roots[t] > 0.0:
                noise[c, t] = (values[c, t] - mean) / roots[t]
            for i in range(size):
                x[i] += gains[t, i] * noise[c, t]

"""Linear dynamics as one dense Gaussian, worked out to fifty digits."""

import mpmath
import numpy as np

from pgmult import DensePotential


def _matrix(array):
    return mpmath.matrix(np.atleast_2d(array).tolist())


def _array(matrix):
    return np.array(matrix.tolist(), dtype=float)


def dense_moments(dynamics, s):
    """Log normaliser, mean ``(T, D)`` and covariance ``(T, D, T, D)`` of sequence s.

    x = B (start + noise), a potential with block-diagonal J: log Z from det(I + P J), the mean and
    covariance from (I + P J)^-1 P, which needs no inverse of P or J.
    """
    steps = slice(*dynamics.offsets[s : s + 2])
    T, D = int(steps.stop - steps.start), dynamics.shape[1]
    with mpmath.workdps(50):
        A = _matrix(dynamics.transition)
        push, cov = mpmath.zeros(T * D, 1), mpmath.zeros(T * D, T * D)
        J, h = mpmath.zeros(T * D, T * D), mpmath.zeros(T * D, 1)
        mean_t, cov_t = _matrix(dynamics.initial_mean).T, _matrix(dynamics.initial_cov)
        for t in range(T):
            here = slice(t * D, (t + 1) * D)
            if t > 0:
                mean_t = A * mean_t
                cov_t = A * cov_t * A.T + _matrix(dynamics.noise_cov)
            if dynamics.drive is not None:
                mean_t = mean_t + _matrix(dynamics.drive[steps][t]).T
            push[here, 0] = mean_t
            block = cov_t
            for later in range(t, T):
                there = slice(later * D, (later + 1) * D)
                cov[there, here] = block
                cov[here, there] = block.T
                block = A * block
            if dynamics.potential is not None:
                J[here, here] = _matrix(dynamics.potential.J[steps][t])
                h[here, 0] = _matrix(dynamics.potential.h[steps][t]).T
        growth = mpmath.eye(T * D) + cov * J
        linear = h - J * push
        posterior = mpmath.inverse(growth) * cov
        shift = posterior * linear
        log_z = -mpmath.log(mpmath.det(growth)) / 2
        log_z += (push.T * (h - J * push / 2) + linear.T * shift / 2)[0, 0]
        mean = _array(push + shift).reshape(T, D)
        return float(log_z), mean, _array(posterior).reshape(T, D, T, D)


def posterior_means(dynamics):
    """Of all states, ``(num_steps, D)``, by their precision: in double precision, for kind laws."""
    (T, D), first = dynamics.shape, dynamics.offsets[:-1]
    drive = np.zeros((T, D)) if dynamics.drive is None else dynamics.drive
    means, weights = drive.copy(), np.tile(np.linalg.inv(dynamics.noise_cov), (T, 1, 1))
    means[first] += dynamics.initial_mean
    weights[first] = np.linalg.inv(dynamics.initial_cov)
    gaps = np.eye(T * D).reshape(T, D, T, D)  # of states from what is expected before drive
    for t in set(range(T)) - set(first.tolist()):
        gaps[t, :, t - 1] = -dynamics.transition
    pulled = np.einsum("tiuj,tik->ujtk", gaps, weights)
    precision = np.einsum("ujtk,tkvl->ujvl", pulled, gaps)
    linear = np.einsum("ujtk,tk->uj", pulled, means)
    if dynamics.potential is not None:
        precision[np.arange(T), :, np.arange(T)] += dynamics.potential.J
        linear += dynamics.potential.h
    return np.linalg.solve(precision.reshape(T * D, T * D), linear.ravel()).reshape(T, D)


def log_density(dynamics, x):
    """Of all states ``(num_steps, D)``, up to a constant."""
    drive = np.zeros_like(x) if dynamics.drive is None else dynamics.drive
    total, first = 0.0, set(dynamics.offsets.tolist())
    for t in range(len(x)):
        mean, cov = dynamics.initial_mean, dynamics.initial_cov
        if t not in first:
            mean, cov = dynamics.transition @ x[t - 1], dynamics.noise_cov
        gap = x[t] - mean - drive[t]
        total -= 0.5 * gap @ np.linalg.solve(cov, gap)
    if dynamics.potential is not None:
        J, h = dynamics.potential.J, dynamics.potential.h
        total += (x * h).sum() - 0.5 * np.einsum("ti,tij,tj->", x, J, x)
    return total


def project(potential, loadings, offset):
    """The potential of x, ``(num_steps, D)``, when psi = offset + loadings x."""
    J = np.einsum("tk,ki,kj->tij", potential.J, loadings, loadings)
    return DensePotential(J, (potential.h - potential.J * offset) @ loadings)

"""Expectations of the logistic function under normal distributions, by quadrature."""

import math

import numpy as np
from scipy.special import ndtr

from pgmult.core.typing import FloatArray

_WIDE = 1.5  # standard deviations from which the expectations are split at 0


def _half_line() -> tuple[FloatArray, FloatArray]:
    """Gauss-Legendre nodes and weights on pieces of (0, 40)."""
    x, w = np.polynomial.legendre.leggauss(16)
    edges = np.array([0.0, 2.0, 5.0, 10.0, 20.0, 40.0])
    half = 0.5 * np.diff(edges)[:, None]
    return (edges[:-1, None] + half * (1.0 + x)).ravel(), (half * w).ravel()


# nodes and weights of E g(x), x standard normal, for g analytic within pi / _WIDE: trapezoids
_NODES = 0.4 * np.arange(-21.0, 22.0)
_DENSITY = np.exp(-0.5 * _NODES * _NODES)
_NARROW_RULE, _WIDE_RULE = (_NODES, _DENSITY / _DENSITY.sum()), _half_line()
_POINT_RULE = np.zeros(1), np.ones(1)  # of normals without variance


def logistic_expectations(
    mean: FloatArray, var: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """E log(1 + exp psi), E sigma(psi) and E sigma(psi) sigma(-psi) for psi ~ N(mean, var).

    To some 12 digits. Narrow normals by the trapezoid rule over 8.4 standard deviations; for wide
    ones max(psi, 0) and its derivative have closed forms, and what is left decays like exp(-|psi|).

    Parameters
    ----------
    mean, var : arrays of one shape
    """
    shape = mean.shape
    mean, scale = mean.ravel(), np.sqrt(var).ravel()
    out = np.zeros((3, mean.size))
    is_wide = scale > _WIDE
    m, s = mean[~is_wide], scale[~is_wide]
    sums = np.zeros((3, m.size))
    for node, weight in zip(*(_NARROW_RULE if s.any() else _POINT_RULE), strict=True):
        psi = m + node * s
        tail = np.exp(-np.abs(psi))
        share = np.where(psi > 0.0, 1.0, tail) / (1.0 + tail)
        sums[0] += weight * (np.maximum(psi, 0.0) + np.log1p(tail))
        sums[1] += weight * share
        sums[2] += weight * tail / (1.0 + tail) ** 2
    out[:, ~is_wide] = sums
    if is_wide.any():
        m, s = mean[is_wide], scale[is_wide]
        z = m / s
        sums = np.zeros((3, m.size))
        sums[0] = m * ndtr(z) + s * np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
        sums[1] = ndtr(z)
        for t, weight in zip(*_WIDE_RULE, strict=True):
            right = np.exp(-0.5 * ((t - m) / s) ** 2) / (s * math.sqrt(2.0 * math.pi))
            left = np.exp(-0.5 * ((t + m) / s) ** 2) / (s * math.sqrt(2.0 * math.pi))
            small = math.exp(-t) / (1.0 + math.exp(-t))
            sums[0] += weight * math.log1p(math.exp(-t)) * (right + left)
            sums[1] += weight * small * (left - right)
            sums[2] += weight * small * (1.0 - small) * (right + left)
        out[:, is_wide] = sums
    return out[0].reshape(shape), out[1].reshape(shape), out[2].reshape(shape)

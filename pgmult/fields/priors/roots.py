"""Symmetric roots of covariance matrices, singular or not, and of their Kronecker products.

For K = V diag(s^2) V' with the directions V that carry variance, K^1/2 = V diag(s) V'. Values z of
N(0, K) say of their noise x, z = K^1/2 x, what it is along V; across, it is anything. Unlike V
itself, K^1/2 is a continuous function of K.

>>> import numpy as np
>>> roots = [SymmetricRoot.of(np.ones((2, 2))), SymmetricRoot.of(np.eye(1))]
>>> values = np.array([[3.0], [3.0]])
>>> noise = whiten(roots, values, np.array([[0.5], [-0.5]]))
>>> noise.T.round(3), colour(roots, noise).T.round(3)
(array([[2.621, 1.621]]), array([[3., 3.]]))
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from pgmult.core.typing import FloatArray

_TINY = 1e-13  # of the largest variance: what is below is rounding


class SymmetricRoot(NamedTuple):
    """K^1/2.

    Attributes
    ----------
    directions : array, ``(n, rank)``
        Orthonormal.
    scales : array, ``(rank,)``
        Standard deviations along them.
    """

    directions: FloatArray
    scales: FloatArray

    @classmethod
    def of(cls, cov: FloatArray) -> "SymmetricRoot":
        """By eigenvectors, O(n**3)."""
        values, vectors = np.linalg.eigh(cov)
        kept = values > _TINY * values[-1]
        return cls(np.ascontiguousarray(vectors[:, kept]), np.sqrt(values[kept]))


def whiten(roots: Sequence[SymmetricRoot], values: FloatArray, fresh: FloatArray) -> FloatArray:
    """Noise of values ``(n, num_columns)``, n the product of the roots' sizes in C order.

    Across the directions that carry variance it is that of `fresh`.
    """
    along = _apply(roots, values, lambda scales: 1.0 / scales)
    return along + fresh - _apply(roots, fresh, np.ones_like)


def colour(roots: Sequence[SymmetricRoot], noise: FloatArray) -> FloatArray:
    """The values that noise makes, ``(n, num_columns)``."""
    return _apply(roots, noise, lambda scales: scales)


def _apply(
    roots: Sequence[SymmetricRoot], x: FloatArray, of_scales: Callable[[FloatArray], FloatArray]
) -> FloatArray:
    """The Kronecker product of V diag(f(s)) V' times the columns of x."""
    out = x.reshape(*(len(root.directions) for root in roots), -1)
    for axis, (V, scales) in enumerate(roots):
        matrix = (V * of_scales(scales)) @ V.T
        out = np.moveaxis(np.tensordot(matrix, out, axes=(1, axis)), 0, axis)
    return np.ascontiguousarray(out).reshape(x.shape)

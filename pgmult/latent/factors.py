"""Cholesky factors of precision matrices: dense, arrow and sparse, with the same methods.

A precision P = L L' of weights w is factored once, and then gives

    log_det     log |P|
    solve(b)    P^-1 b
    forward(B)  L^-1 B, so that the squares of its columns are b' P^-1 b
    colour(e)   L'^-1 e, a draw from N(0, P^-1) of standard normal e
    white(x)    L' x, its inverse

An *arrow* has many small blocks that meet only in a few other weights: the levels of a large
grouping and everything else. They are eliminated first (a Schur complement), at a cost linear in
the number of blocks. A *sparse* factor is for maps and several large groupings.

>>> import numpy as np
>>> factor = DenseFactor.of(np.array([[4.0, 2.0], [2.0, 3.0]]))
>>> factor.solve(np.array([2.0, 1.0])).round(3)
array([0.5, 0. ])
>>> factor.white(factor.colour(np.array([0.3, -1.0]))).round(3)
array([ 0.3, -1. ])
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.linalg.lapack import dpotrf
from scipy.sparse.linalg import splu

from pgmult.core.typing import FloatArray, IntArray

__all__ = ["ArrowFactor", "DenseFactor", "Factor", "SparseFactor"]

_ROUNDING = 1e-11  # of the diagonal, added where rounding makes a pivot negative


class Factor(Protocol):
    """A factored precision matrix."""

    @property
    def log_det(self) -> float:
        """Log determinant of the precision."""

    def solve(self, b: FloatArray) -> FloatArray:
        """The precision's inverse times a vector."""

    def colour(self, e: FloatArray) -> FloatArray:
        """A draw with this precision, of standard normal numbers."""

    def white(self, x: FloatArray) -> FloatArray:
        """The standard normal numbers that `colour` makes a draw of."""


@dataclass(frozen=True, slots=True, eq=False)
class DenseFactor:
    """A lower triangular Cholesky factor, ``(n, n)``."""

    lower: FloatArray

    @classmethod
    def of(cls, precision: FloatArray) -> "DenseFactor":
        """Factor a symmetric positive definite matrix.

        Raises
        ------
        numpy.linalg.LinAlgError
            If it is not positive definite by more than rounding.
        """
        lower, failed = dpotrf(precision, lower=1, clean=1)
        if failed:
            diagonal = np.diagonal(precision)
            more = _ROUNDING * (diagonal + 0.1 * diagonal.max(initial=0.0))
            lower, failed = dpotrf(precision + np.diag(more), lower=1, clean=1)
        if failed:
            raise np.linalg.LinAlgError(f"minor {failed} of a precision is not positive")
        return cls(lower)

    @property
    def log_det(self) -> float:
        """Log determinant of the precision."""
        return float(2.0 * np.log(np.diagonal(self.lower)).sum())

    def solve(self, b: FloatArray) -> FloatArray:
        """The precision's inverse times a vector or the columns of a matrix."""
        return np.asarray(cho_solve((self.lower, True), b, check_finite=False))

    def forward(self, b: FloatArray) -> FloatArray:
        """The factor's inverse times a vector or the columns of a matrix."""
        return np.asarray(solve_triangular(self.lower, b, lower=True, check_finite=False))

    def colour(self, e: FloatArray) -> FloatArray:
        """A draw with this precision, of standard normal numbers."""
        return np.asarray(solve_triangular(self.lower, e, lower=True, trans=1, check_finite=False))

    def white(self, x: FloatArray) -> FloatArray:
        """The standard normal numbers that `colour` makes a draw of."""
        return np.asarray(self.lower.T @ x)


@dataclass(frozen=True, slots=True, eq=False)
class ArrowFactor:
    """The factor of a matrix whose first coordinates are blocks that meet only in the others.

    Attributes
    ----------
    lower, inverse : array, ``(num_blocks, d, d)``
        Cholesky factors of the blocks, and their inverses.
    across : array, ``(num_blocks, d, num_others)``
        ``inverse`` times what stands between blocks and others.
    inner : DenseFactor
        Of the Schur complement of the blocks.
    """

    lower: FloatArray
    inverse: FloatArray
    across: FloatArray
    inner: DenseFactor

    @classmethod
    def of(cls, blocks: FloatArray, between: FloatArray, others: FloatArray) -> "ArrowFactor":
        """Factor blocks ``(g, d, d)``, what is between ``(g, d, r)``, and others ``(r, r)``."""
        lower: FloatArray = np.asarray(np.linalg.cholesky(blocks), dtype=np.float64)
        inverse = np.asarray(1.0 / lower if blocks.shape[1] == 1 else np.linalg.inv(lower))
        across = inverse @ between
        flat = across.reshape(-1, across.shape[2])
        return cls(lower, inverse, across, DenseFactor.of(others - flat.T @ flat))

    @property
    def log_det(self) -> float:
        """Log determinant of the precision."""
        own = np.log(np.einsum("gii->gi", self.lower)).sum()
        return self.inner.log_det + float(2.0 * own)

    def solve(self, b: FloatArray) -> FloatArray:
        """The precision's inverse times a vector."""
        return self.colour(self.forward(b))

    def forward(self, b: FloatArray) -> FloatArray:
        """The factor's inverse times a vector or the columns of a matrix."""
        num, d, _ = self.lower.shape
        columns = b.reshape(len(b), -1)
        top = (self.inverse @ columns[: num * d].reshape(num, d, -1)).reshape(num * d, -1)
        flat = self.across.reshape(num * d, -1)
        rest = self.inner.forward(columns[num * d :] - flat.T @ top)
        return np.concatenate([top, rest]).reshape(b.shape)

    def colour(self, e: FloatArray) -> FloatArray:
        """A draw with this precision, of standard normal numbers."""
        num, d, _ = self.lower.shape
        rest = self.inner.colour(e[num * d :])
        top = e[: num * d].reshape(num, d) - self.across @ rest
        return np.concatenate([np.einsum("gji,gj->gi", self.inverse, top).ravel(), rest])

    def white(self, x: FloatArray) -> FloatArray:
        """The standard normal numbers that `colour` makes a draw of."""
        num, d, _ = self.lower.shape
        rest = x[num * d :]
        top = np.einsum("gji,gj->gi", self.lower, x[: num * d].reshape(num, d))
        return np.concatenate([(top + self.across @ rest).ravel(), self.inner.white(rest)])


@dataclass(frozen=True, slots=True, eq=False)
class SparseFactor:
    """P = R' L D L' R by SuperLU without pivoting, R a permutation that keeps L sparse."""

    decomposition: Any
    unit_lower: Any
    pivots: FloatArray
    order: IntArray

    @classmethod
    def of(cls, precision: Any) -> "SparseFactor":
        """Factor a symmetric positive definite scipy.sparse matrix.

        Raises
        ------
        numpy.linalg.LinAlgError
            If it is not positive definite.
        """
        found = splu(
            precision.tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )  # fmt: skip
        pivots = found.U.diagonal()
        if (found.perm_r != found.perm_c).any() or not (pivots > 0.0).all():
            raise np.linalg.LinAlgError("a sparse precision is not positive definite")
        return cls(found, found.L.tocsr(), pivots, np.argsort(found.perm_r))

    @property
    def log_det(self) -> float:
        """Log determinant of the precision."""
        return float(np.log(self.pivots).sum())

    def solve(self, b: FloatArray) -> FloatArray:
        """The precision's inverse times a vector."""
        return np.asarray(self.decomposition.solve(b))

    def colour(self, e: FloatArray) -> FloatArray:
        """A draw with this precision, of standard normal numbers."""
        b = np.empty(len(e))
        b[self.order] = self.unit_lower @ (np.sqrt(self.pivots) * e)
        return self.solve(b)

    def white(self, x: FloatArray) -> FloatArray:
        """The standard normal numbers that `colour` makes a draw of."""
        return np.asarray(np.sqrt(self.pivots) * (self.unit_lower.T @ x[self.order]))

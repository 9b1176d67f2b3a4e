"""Cholesky factors of precision matrices: dense, arrow and sparse, with the same methods.

A precision P = L L' of weights w is factored once, and then gives

    log_det     log |P|
    solve(b)    P^-1 b
    colour(e)   L'^-1 e, a draw from N(0, P^-1) of standard normal e
    white(x)    L' x, its inverse

An *arrow* has many small blocks that meet only in a few other weights: the levels of a large
grouping and everything else. They are eliminated first (a Schur complement), at a cost linear in
the number of blocks. A *sparse* factor is for maps and several large groupings.

>>> import numpy as np
>>> factor = ArrowFactor.dense(np.array([[4.0, 2.0], [2.0, 3.0]]))
>>> factor.solve(np.array([2.0, 1.0])).round(3)
array([0.5, 0. ])
>>> factor.white(factor.colour(np.array([0.3, -1.0]))).round(3)
array([ 0.3, -1. ])
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.sparse.linalg import splu

from pgmult.core.typing import FloatArray, IntArray
from pgmult.latent.compiled import arrow, sparse_cholesky
from pgmult.latent.compiled.arrow import Between
from pgmult.latent.compiled.stacked import Stacked

_ROUNDING = 1e-11  # of the diagonal, added where rounding makes a pivot negative
_NOTHING = Between(np.zeros(1, np.int64), np.empty(0, np.int64), np.empty((0, 1)))


@dataclass(frozen=True, slots=True, eq=False)
class ArrowFactor:
    """The factor of a matrix whose first coordinates are blocks that meet only in the others.

    Without blocks it is that of any matrix.

    Attributes
    ----------
    lower : array, ``(num_blocks, d, d)``
        Cholesky factors of the blocks.
    inverse : array, ``(num_blocks, d, d)``
        Their inverses.
    across : Between
        ``inverse`` times what stands between blocks and others.
    inner : array, ``(num_others, num_others)``
        Cholesky factor of what is left of the others: the Schur complement of the blocks.
    order : int array, ``(num_weights,)``, or None
        Weights as the factor has them, if vectors have another order.
    """

    lower: FloatArray
    inverse: FloatArray
    across: Between
    inner: FloatArray
    order: IntArray | None = None

    @classmethod
    def of(
        cls, blocks: FloatArray, between: Between, others: FloatArray, order: IntArray | None = None
    ) -> "ArrowFactor":
        """Factor blocks ``(g, d, d)``, what is between them and others, and others ``(r, r)``.

        Raises
        ------
        numpy.linalg.LinAlgError
            If the matrix is not positive definite by more than rounding.
        """
        lower, inverse, across, complement, proper = arrow.eliminate(blocks, between, others)
        if not proper:
            raise np.linalg.LinAlgError("a block of a precision is not positive definite")
        inner = _cholesky(complement)
        return cls(lower, inverse, between._replace(values=across), inner, order)

    @classmethod
    def dense(cls, precision: FloatArray) -> "ArrowFactor":
        """Factor a matrix without blocks; raises as `of`."""
        none = np.empty((0, 1, 1))
        return cls(none, none, _NOTHING, _cholesky(precision))

    @property
    def log_det(self) -> float:
        """Log determinant of the precision."""
        blocks = np.log(np.einsum("gii->gi", self.lower)).sum()
        return float(2.0 * (blocks + np.log(np.diagonal(self.inner)).sum()))

    def solve(self, b: FloatArray) -> FloatArray:
        """The precision's inverse times a vector."""
        ordered = b if self.order is None else b[self.order]
        return self.colour(arrow.forward(self.inverse, self.across, self.inner, ordered))

    def forward(self, b: FloatArray) -> FloatArray:
        """The factor's inverse times the columns of a matrix, in the factor's order."""
        out = b.copy() if self.order is None else b[self.order]
        first = self.lower.shape[0] * self.lower.shape[1]
        arrow.forward_columns(self.inverse, self.across, out)
        out[first:] = solve_triangular(self.inner, out[first:], lower=True, check_finite=False)
        return out

    def inverse_blocks(self) -> tuple[FloatArray, FloatArray]:
        """The precision's inverse at the blocks, ``(num_blocks, d, d)``, and at the others."""
        upper, _ = dpotri(self.inner.T)
        others = np.triu(upper) + np.triu(upper, 1).T
        num, d, _ = self.lower.shape
        indptr, columns, values = self.across
        owner = np.repeat(np.arange(num), np.diff(indptr))
        places = np.repeat(owner * d, d) + np.tile(np.arange(d), len(owner)), np.repeat(columns, d)
        across = sparse.csr_array((values.ravel(), places), shape=(num * d, len(others)))
        beside = (across @ others).reshape(num, d, len(others))[owner, :, columns]
        inner, filled = np.zeros((num, d, d)) + np.eye(d), np.diff(indptr) > 0
        if filled.any():
            products = values[:, :, None] * beside[:, None]
            inner[filled] += np.add.reduceat(products, indptr[:-1][filled])
        return np.einsum("gji,gjk,gkl->gil", self.inverse, inner, self.inverse), others

    def colour(self, e: FloatArray) -> FloatArray:
        """A draw with this precision, of standard normal numbers."""
        draw = np.asarray(arrow.backward(self.inverse, self.across, self.inner, e))
        return draw if self.order is None else _back(draw, self.order)

    def white(self, x: FloatArray) -> FloatArray:
        """The standard normal numbers that `colour` makes a draw of."""
        ordered = x if self.order is None else x[self.order]
        return np.asarray(arrow.multiply_back(self.lower, self.across, self.inner, ordered))


def stacked(factors: Sequence[Any], order: IntArray) -> Stacked:
    """Arrow factors, or sparse ones, of matrices with entries in the same places.

    Parameters
    ----------
    factors : sequence of ArrowFactor or SparseFactor
    order : int array, ``(num_weights,)``
        The weights as arrow factors have them.
    """
    nothing, none = np.zeros(1, np.int64), np.empty((len(factors), 0))
    first = factors[0]
    if isinstance(first, SparseFactor):
        values = np.array([factor.lower.values for factor in factors])
        pivots = np.array([factor.lower.pivots for factor in factors])
        lower = first.lower._replace(values=values, pivots=pivots)
        between = Between(nothing, nothing[:0], none[:, :, None])
        return Stacked(first.order, none[:, :, None, None], between, none[:, :, None], lower)
    parts = ([f.inverse, f.inner, f.across.values] for f in factors)
    inverse, inner, across = map(np.array, zip(*parts, strict=True))
    lower = sparse_cholesky.Lower(nothing, nothing[:0], none, none)
    return Stacked(order, inverse, first.across._replace(values=across), inner, lower)


def between_of(matrix: sparse.csr_array, d: int) -> Between:
    """The full columns of each `d` rows of a sparse array ``(num_blocks * d, num_others)``."""
    entries = matrix.tocoo()
    places = entries.row // d * matrix.shape[1] + entries.col.astype(np.int64)
    filled, which = np.unique(places, return_inverse=True)
    values = np.zeros((len(filled), d))
    values[which, entries.row % d] = entries.data
    block, columns = np.divmod(filled, max(matrix.shape[1], 1))
    indptr = np.searchsorted(block, np.arange(matrix.shape[0] // d + 1))
    return Between(indptr, columns, values)


def _cholesky(precision: FloatArray) -> FloatArray:
    """The lower factor, rows side by side in memory, from what is on and below the diagonal."""
    upper, failed = dpotrf(precision.T, clean=1)
    if failed:
        diagonal = np.diagonal(precision)
        more = _ROUNDING * (diagonal + 0.1 * diagonal.max(initial=0.0))
        upper, failed = dpotrf(precision.T + np.diag(more), clean=1)
    if failed:
        raise np.linalg.LinAlgError(f"minor {failed} of a precision is not positive")
    return np.asarray(upper.T)


@dataclass(frozen=True, slots=True, eq=False)
class Analysis:
    """An order of weights that keeps a factor sparse, and where its entries stand.

    It depends on where a matrix has entries alone: found once, it serves all hyperparameters.

    Attributes
    ----------
    indptr, columns : int arrays
        Of the matrix, compressed rows.
    order : int array, ``(num_weights,)``
    entries : int array
        Which entries of the matrix are in the upper triangle of the reordered one.
    upper_indptr, upper_rows : int64 arrays
        Where that has them.
    parent : int64 array, ``(num_weights,)``
        The elimination tree.
    starts : int64 array, ``(num_weights + 1,)``
        Where columns of the factor begin.
    """

    indptr: IntArray
    columns: IntArray
    order: IntArray
    entries: IntArray
    upper_indptr: IntArray
    upper_rows: IntArray
    parent: IntArray
    starts: IntArray

    @classmethod
    def of(cls, precision: Any) -> "Analysis":
        """Analyse a symmetric scipy.sparse array of compressed rows, its entries in order."""
        size, lengths = precision.shape[0], np.diff(precision.indptr)
        ones = sparse.csr_array((np.ones(precision.nnz), precision.indices, precision.indptr))
        away = ones + sparse.diags_array(2.0 * lengths)  # dominant diagonal
        how: Any = {"permc_spec": "MMD_AT_PLUS_A", "options": {"SymmetricMode": True}}
        lu = splu(away.tocsc(), diag_pivot_thresh=0.0, **how)
        place = np.asarray(lu.perm_c, dtype=np.int64)
        rows, columns = place[np.repeat(np.arange(size), lengths)], place[precision.indices]
        entries = np.flatnonzero(rows <= columns)
        entries = entries[np.lexsort((rows[entries], columns[entries]))]
        indptr, rows = np.searchsorted(columns[entries], np.arange(size + 1)), rows[entries]
        parent, starts = sparse_cholesky.tree_of(indptr, rows)
        order = np.argsort(place)
        of = precision.indptr, precision.indices
        return cls(*of, order, entries, indptr, rows, parent, starts)

    def fits(self, precision: sparse.csr_array) -> bool:
        """Whether a matrix has its entries where that one had them."""
        same = np.array_equal(precision.indptr, self.indptr)
        return same and np.array_equal(precision.indices, self.columns)


@dataclass(frozen=True, slots=True, eq=False)
class SparseFactor:
    """P = R' L D L' R, R a permutation that keeps L sparse."""

    lower: sparse_cholesky.Lower
    order: IntArray

    @classmethod
    def of(cls, precision: Any, analysis: Analysis) -> "SparseFactor":
        """Factor a symmetric positive definite matrix that the analysis fits.

        Raises
        ------
        numpy.linalg.LinAlgError
            If it is not positive definite.
        """
        upper = analysis.upper_indptr, analysis.upper_rows, precision.data[analysis.entries]
        lower, proper = sparse_cholesky.factor(*upper, analysis.parent, analysis.starts)
        if not proper:
            raise np.linalg.LinAlgError("a sparse precision is not positive definite")
        return cls(lower, analysis.order)

    @property
    def log_det(self) -> float:
        """Log determinant of the precision."""
        return float(np.log(self.lower.pivots).sum())

    def solve(self, b: FloatArray) -> FloatArray:
        """The precision's inverse times a vector."""
        x = b[self.order]
        sparse_cholesky.solve_lower(self.lower, x)
        return self._back(x / self.lower.pivots)

    def colour(self, e: FloatArray) -> FloatArray:
        """A draw with this precision, of standard normal numbers."""
        return self._back(e / np.sqrt(self.lower.pivots))

    def white(self, x: FloatArray) -> FloatArray:
        """The standard normal numbers that `colour` makes a draw of."""
        out = x[self.order]
        sparse_cholesky.multiply_upper(self.lower, out)
        return np.asarray(np.sqrt(self.lower.pivots) * out)

    def _back(self, x: FloatArray) -> FloatArray:
        sparse_cholesky.solve_upper(self.lower, x)
        return _back(x, self.order)


def _back(x: FloatArray, order: IntArray) -> FloatArray:
    """A vector in an order, as it was before."""
    out = np.empty_like(x)
    out[order] = x
    return out


Factor = ArrowFactor | SparseFactor

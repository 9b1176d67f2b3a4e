"""Where the weights of several terms stand in the factor of their precision.

The levels of the largest grouping are eliminated first, as blocks that meet only in the other
weights; where those are many, the factor is sparse.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from pgmult.core.typing import FloatArray, IntArray
from pgmult.latent.factors import Analysis, ArrowFactor, Factor, SparseFactor, between_of
from pgmult.latent.terms import Term

_MANY_LEVELS = 20  # of a grouping that is worth eliminating first
_LEAST_ELIMINATED = 0.5  # of the other weights: for fewer a dense factor takes less time
_MANY_WEIGHTS = 1500  # besides those, from which on a factor is sparse


class Layout:
    """The order of weights in a factor, and how matrices are packed for it.

    Parameters
    ----------
    terms : sequence of Term

    Attributes
    ----------
    weights : list of slice
        Those of each term.
    first : int or None
        The term whose weights are eliminated first.
    order : int array, ``(num_weights,)``
        The weights of that term, then the others.
    places : list of slice
        The weights of each other term among the others.
    is_sparse : bool
    """

    def __init__(self, terms: Sequence[Term]):
        sizes = [term.size for term in terms]
        self.weights = slices(sizes)
        apart = [term.size if term.num_blocks else 0 for term in terms]
        most = max(apart, default=0)
        others = sum(sizes) - most
        self.is_sparse = others > _MANY_WEIGHTS
        self.first, self.order, self.places = None, np.arange(sum(sizes)), self.weights
        self._num_blocks = terms[apart.index(most)].num_blocks if most else 0
        is_worth_it = self._num_blocks >= _MANY_LEVELS and most > _LEAST_ELIMINATED * others
        if is_worth_it and not self.is_sparse:
            self.first = apart.index(most)
            first = self.weights[self.first]
            self.order = np.concatenate([self.order[first], np.delete(self.order, first)])
            sizes[self.first] = 0
            self.places = slices(sizes)
        self._analysis: Analysis | None = None

    def packed(self, gram: sparse.csr_array) -> Any:
        """A sparse matrix of weights as `factor` takes it."""
        if self.is_sparse:
            return gram
        if self.first is None:
            return np.asarray(gram.todense())
        at = self.weights[self.first]
        size = at.stop - at.start
        d = size // self._num_blocks
        ordered = gram[self.order][:, self.order]
        top = ordered[:size, :size].tocoo()
        blocks = np.zeros((self._num_blocks, d, d))
        np.add.at(blocks, (top.row // d, top.row % d, top.col % d), top.data)
        inner = np.asarray(ordered[size:, size:].todense())
        return blocks, between_of(ordered[:size, size:], d), inner

    def factor(self, gram: Any, precisions: Sequence[Any]) -> Factor:
        """Factor a packed matrix plus the precisions of the terms."""
        if self.is_sparse:
            precision = (gram + joined(precisions)).tocsr()
            precision.sort_indices()
            if self._analysis is None or not self._analysis.fits(precision):
                self._analysis = Analysis.of(precision)
            return SparseFactor.of(precision, self._analysis)
        inner = list(zip(precisions, self.places, strict=True))
        if self.first is None:
            return ArrowFactor.dense(_added(gram, inner))
        blocks, between, others = gram
        first, _ = inner.pop(self.first)
        if first.ndim == 1:
            first = first.reshape(len(blocks), -1, 1) * np.eye(blocks.shape[1])
        return ArrowFactor.of(blocks + first, between, _added(others, inner), self.order)

    def moments(self, factor: Factor, mean: FloatArray) -> list[FloatArray] | None:
        """Second moments of each term's weights, or of their blocks; None of a sparse factor."""
        if not isinstance(factor, ArrowFactor):
            return None
        blocks, others = factor.inverse_blocks()
        moments = []
        for i, (at, place) in enumerate(zip(self.weights, self.places, strict=True)):
            w, cov = mean[at, None], others[place, place]
            if i == self.first:
                w, cov = mean[at].reshape(*blocks.shape[:2], 1), blocks
            moments.append(cov + w * np.swapaxes(w, -1, -2))
        return moments


def slices(sizes: Sequence[int]) -> list[slice]:
    """Consecutive slices of these sizes."""
    return [slice(start, stop) for start, stop in pairwise(np.cumsum([0, *sizes]).tolist())]


def _added(gram: FloatArray, precisions: Iterable[tuple[Any, slice]]) -> FloatArray:
    """A dense matrix with the precisions of terms added in their places."""
    out = gram.copy()
    for precision, place in precisions:
        if sparse.issparse(precision):
            out[place, place] += precision.todense()
        else:
            diagonal_blocks(out[place, place], precision)[...] += precision
    return out


def diagonal_blocks(matrix: FloatArray, like: FloatArray) -> FloatArray:
    """A view of a matrix's diagonal, or of as many blocks around it as another array has."""
    if like.ndim == 1:
        return np.asarray(np.einsum("ii->i", matrix))
    num, d, _ = like.shape
    return np.asarray(np.einsum("gigj->gij", matrix.reshape(num, d, num, d)))


def joined(precisions: Sequence[Any]) -> sparse.csr_array:
    """The precisions of terms, or of groups of them, as one sparse array."""
    parts: list[Any] = []
    for one in precisions:
        if sparse.issparse(one):
            parts.append(one)
        elif one.ndim == 1:
            parts.append(sparse.diags_array(one))
        else:
            parts += map(sparse.csr_array, one)
    return sparse.block_diag(parts, format="csr")


def compressed_rows(matrix: Any) -> tuple[IntArray, IntArray, FloatArray]:
    """A sparse array as plain ones: where its rows begin, columns and values of its entries."""
    rows = sparse.csr_array(matrix, dtype=np.float64)
    rows.sum_duplicates()
    return rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data

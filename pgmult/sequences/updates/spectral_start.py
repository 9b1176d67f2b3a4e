"""Where chains of linear dynamical systems start: states that tell the future from the past.

A state is what the past says about the future. With y_t the observed frequencies of symbols at
step t, less their means and over the square roots of their means, let P_t stack averages of y over
ranges of lags before t, and F_t the same after t. The leading singular vectors (U, V) of the
cross-moment sum_t F_t P_t' span the directions of the past that predict directions of the future,
as in subspace identification (Van Overschee and De Moor 1996) on correspondence analysis's scale,
and

    x_t = U' F_t + V' P_t

is a start for the states. The noise of single symbols is in neither cross-moment nor x_t: a step's
own observation plays no part in its state.
"""

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import LinearOperator

from pgmult.compiled.linalg import cholesky, invert_lower
from pgmult.core.typing import FloatArray, Generator
from pgmult.priors.matrix_normal import linear_means
from pgmult.sequences.data.sequences import Sequences

_LAGS = ((1, 1), (2, 2), (3, 4), (5, 8), (9, 16))
_MOST_SYMBOLS = 300  # rare ones say little and cost as much
_EXTRA = 8  # directions more than are wanted, and
_PASSES = 6  # passes of subspace iteration
_JITTER = 0.1  # of states that are otherwise of unit variance: chains start apart


def spectral_states(rng: Generator, data: Sequences, state_dim: int) -> FloatArray:
    """States of unit variance, ``(num_steps, state_dim)``, leading direction first.

    Costs O(num_steps state_dim) sparse products; the same bits for any number of BLAS threads.
    """
    ahead, behind = _windows(data, forward=True), _windows(data, forward=False)
    size = min(state_dim + _EXTRA, ahead.shape[1])
    left = right = _orthonormal(rng.standard_normal((ahead.shape[1], size)))
    for _ in range(_PASSES):
        left = _orthonormal(ahead.rmatmat(behind.matmat(right)))
        right = _orthonormal(behind.rmatmat(ahead.matmat(left)))
    u, _, v = np.linalg.svd(np.einsum("ti,tj->ij", ahead.matmat(left), behind.matmat(right)))
    chosen = min(state_dim, size)
    states = np.zeros((data.num_steps, state_dim))
    states[:, :chosen] = ahead.matmat(linear_means(left, u[:, :chosen]))
    states[:, :chosen] += behind.matmat(linear_means(right, v[:chosen].T))
    scale = states.std(axis=0)
    states /= np.where(scale > 1e-10 * scale.max(initial=0.0), scale, np.inf)
    return states + _JITTER * rng.standard_normal(states.shape)


def _windows(data: Sequences, *, forward: bool) -> LinearOperator:
    """Steps by (range of lags, symbol): a sparse matrix less one of rank one a range."""
    used = np.bincount(data.symbols, data.counts, minlength=data.num_symbols)
    frequent = np.argsort(-used, kind="stable")[:_MOST_SYMBOLS]
    frequent = frequent[used[frequent] > 0]
    root = np.sqrt(used[frequent] / used.sum())
    y = data.to_csr()[:, frequent].astype(np.float64)
    y.sort_indices()
    step = np.repeat(np.arange(data.num_steps), np.diff(y.indptr))
    y.data = y.data / data.totals[step] / root[y.indices]
    reaches = [_averages(data, first, last, forward) for first, last in _LAGS]
    blocks = scipy.sparse.hstack([reach @ y for reach in reaches], format="csr")
    shares = np.stack([reach @ data.observed.astype(np.float64) for reach in reaches], axis=1)
    sparse = scipy.sparse.csr_array(blocks)

    def times(x: FloatArray) -> FloatArray:
        means = np.einsum("k,bkr->br", root, x.reshape(len(_LAGS), len(root), -1))
        return np.asarray(sparse @ x - linear_means(shares, means))

    def transposed(x: FloatArray) -> FloatArray:
        means = np.einsum("tb,tr->br", shares, x)[:, None, :] * root[:, None]
        return np.asarray(sparse.T @ x - means.reshape(sparse.shape[1], -1))

    return LinearOperator(sparse.shape, None, matmat=times, rmatmat=transposed, dtype=np.float64)


def _averages(data: Sequences, first: int, last: int, forward: bool) -> "scipy.sparse.csr_array":
    """Row t has 1 / sqrt(width) at the steps `first` to `last` after, or before, t."""
    lags = np.arange(first, last + 1) * (1 if forward else -1)
    row = np.repeat(np.arange(data.num_steps), len(lags))
    column, sequence = row + np.tile(lags, data.num_steps), data.sequence_of_step[row]
    inside = (column >= data.offsets[sequence]) & (column < data.offsets[sequence + 1])
    weight = np.full(inside.sum(), 1.0 / np.sqrt(len(lags)))
    places, size = (row[inside], column[inside]), data.num_steps
    return scipy.sparse.csr_array((weight, places), shape=(size, size))


def _orthonormal(x: FloatArray) -> FloatArray:
    """An orthonormal basis of the columns of x, by Cholesky factors of its Gram matrix, twice."""
    for _ in range(2):
        gram = np.einsum("ij,ik->jk", x, x)
        gram[np.diag_indices_from(gram)] += 1e-12 * np.trace(gram) + np.finfo(np.float64).tiny
        cholesky(gram)
        x = linear_means(x, invert_lower(gram).T)
    return x

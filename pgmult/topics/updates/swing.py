"""Psi of documents given their topic counts and a Gaussian prior: one exact step for either link.

All coordinates of a document move together, along a Hamiltonian path about a Gaussian that is near
their distribution: see `pgmult.topics.compiled.swing`.
"""

import numpy as np
from numpy.typing import NDArray

from pgmult.compiled.rows import num_workers, over_rows
from pgmult.compiled.simd import WIDTH
from pgmult.core.typing import FloatArray, Generator, IntArray
from pgmult.core.validate import new_key
from pgmult.links import LogisticNormal, StickBreaking
from pgmult.priors.gaussian import lower_cholesky
from pgmult.topics.compiled import swing


def swing_psi(
    rng: Generator, link: StickBreaking | LogisticNormal, psi: FloatArray,
    counts: IntArray, mean: FloatArray, cov: FloatArray,
) -> FloatArray:  # fmt: skip
    """Move psi, leaving its conditional distribution given the counts unchanged.

    Parameters
    ----------
    rng : numpy.random.Generator
    link : StickBreaking or LogisticNormal
    psi : array, ``(num_documents, n)``
        K - 1 sticks or K coordinates of a softmax. Not changed.
    counts : int64 array, ``(num_documents, K)``
    mean : array, ``(n,)`` or one row a document
    cov : array, ``(n, n)``

    Returns
    -------
    array, ``(num_documents, n)``

    Raises
    ------
    ValueError
        If the covariance is singular to working precision, or a document has no finite draw.

    Notes
    -----
    A document costs O(m**3), m the number of its sticks that anything reaches, or K.
    """
    streams, depths = np.arange(len(psi), dtype=np.uint64), np.full(len(psi), psi.shape[1])
    if isinstance(link, StickBreaking):  # no more sticks than any token reaches
        num_topics = counts.shape[1]
        used = counts[:, link.order_of(num_topics)[::-1]] > 0
        reached = np.minimum(num_topics - np.argmax(used, axis=1), num_topics - 1)
        depths = np.where(used.any(axis=1), reached, 0)
    return _moved(new_key(rng), streams, depths, link, psi, counts, mean, cov)


def swing_alone(
    key: NDArray[np.uint64], streams: NDArray[np.uint64], link: StickBreaking | LogisticNormal,
    psi: FloatArray, counts: IntArray, mean: FloatArray, cov: FloatArray,
) -> FloatArray:  # fmt: skip
    """Draw psi as `swing_psi` does, by a stream for each document: none depends on another."""
    depths = np.full(len(psi), psi.shape[1])
    return _moved(key, streams, depths, link, psi, counts, mean, cov)


def _moved(
    key: NDArray[np.uint64], streams: NDArray[np.uint64], depths: IntArray,
    link: StickBreaking | LogisticNormal, psi: FloatArray, counts: IntArray,
    mean: FloatArray, cov: FloatArray,
) -> FloatArray:  # fmt: skip
    """Psi after its moves, documents taken in the order of their depths."""
    num_topics, by_depth = counts.shape[1], np.argsort(depths, kind="stable")
    is_softmax = isinstance(link, LogisticNormal)
    order = np.arange(num_topics) if isinstance(link, LogisticNormal) else link.order_of(num_topics)
    rows = swing.SwingRows(by_depth, depths, counts, order, streams, is_softmax)
    root, groups, moved = lower_cholesky(cov), -(-len(psi) // WIDTH), psi.copy()
    given = rows, root, np.atleast_2d(mean), key, moved
    statuses = over_rows(swing.swing_documents, groups, num_workers(groups, 1), *given, grain=1)
    failed = [status - 1 for status in statuses if status]
    if failed:
        raise ValueError(f"psi of document {min(failed)} is not finite any more")
    return moved

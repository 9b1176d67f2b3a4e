"""Sticks of documents given their topic counts and a Gaussian prior: two exact steps.

*Together*: all sticks in one Gaussian draw given one Pólya-gamma omega each. It takes long steps
along the correlations of the prior, which the covariance needs to mix well, and short ones for
topics that a document does not use.

*By use*: sticks of topics that a document uses are drawn together given omega; then every stick is
proposed from its prior given the others, omega integrated out. It takes long steps for topics that
a document does not use, and short ones along correlations in documents of few words. It costs a
third as much: see `pgmult.topics.compiled.sticks`.

Each mixes well where the other does not, so a sweep takes one of them at random.
"""

import numpy as np

from pgmult.compiled.linalg import cholesky
from pgmult.compiled.rows import num_workers, over_rows
from pgmult.compiled.simd import WIDTH
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import new_key
from pgmult.links import StickBreaking
from pgmult.priors import MvNormal
from pgmult.topics.compiled import sticks

TOGETHER = 0.8
"""The share of the sweeps that draw all sticks together."""


def sample_sticks(
    rng: np.random.Generator,
    link: StickBreaking,
    psi: FloatArray,
    counts: IntArray,
    mean: FloatArray,
    cov: FloatArray,
) -> FloatArray:
    """Move psi by one of the two steps, leaving its law given the counts as it is.

    Parameters
    ----------
    rng : numpy.random.Generator
    link : StickBreaking
    psi : array, ``(num_documents, num_topics - 1)``
        Not changed.
    counts : int64 array, ``(num_documents, num_topics)``
    mean : array, ``(num_topics - 1,)`` or one row a document
    cov : array, ``(num_topics - 1, num_topics - 1)``

    Returns
    -------
    array, ``(num_documents, num_topics - 1)``

    Raises
    ------
    ValueError
        If the covariance is singular to working precision, or a document has no Gaussian law.

    Notes
    -----
    A document costs O(K**3) together, and O(K**2 + U**3) by use, U the number of topics that it
    uses.
    """
    if rng.random() < TOGETHER:
        return MvNormal(mean, cov).condition(link.augment(rng, psi, counts)).sample(rng)
    return sample_used_sticks(rng, link, psi, counts, mean, cov)


def sample_used_sticks(
    rng: np.random.Generator,
    link: StickBreaking,
    psi: FloatArray,
    counts: IntArray,
    mean: FloatArray,
    cov: FloatArray,
) -> FloatArray:
    """The step by use alone: parameters and errors as those of `sample_sticks`."""
    root = cov.copy()
    if cholesky(root):
        raise ValueError("the covariance of psi is singular to working precision")
    moved = psi.copy()
    order = link.order_of(counts.shape[1])
    by_depth, depths = sticks.sort_rows(counts, order)
    groups = -(-len(psi) // WIDTH)
    statuses = over_rows(
        sticks.sample_sticks, groups, num_workers(groups, 1), by_depth, depths, root,
        np.atleast_2d(mean), counts, order, new_key(rng), moved, grain=1,
    )  # fmt: skip
    failed = [status - 1 for status in statuses if status]
    if failed:
        raise ValueError(f"the sticks of document {min(failed)} are not finite any more")
    return moved

"""The order in which sticks break for categories: the one place that reads what users say of it."""

from typing import Any

import numpy as np

from pgmult.core.typing import ArrayLike, IntArray
from pgmult.core.validate import as_counts


def as_permutation(order: Any, size: int) -> IntArray:
    """A permutation of 0, ..., size - 1.

    Raises
    ------
    ValueError
        If it is none.
    """
    permutation = as_counts(order, "order")
    if permutation.shape != (size,) or not np.array_equal(np.sort(permutation), np.arange(size)):
        raise ValueError(f"order must be a permutation of 0, ..., {size - 1}, got {order}")
    return permutation


def as_order(order: object, totals: ArrayLike) -> IntArray:
    """The order of sticks of categories with the given total counts.

    Parameters
    ----------
    order : {"frequency", "given"} or permutation of the categories
        "frequency" takes frequent categories first, ties as they come: Gibbs sampling mixes best.
    totals : array, ``(num_categories,)``
    """
    totals = np.asarray(totals)
    if not isinstance(order, str):
        return as_permutation(order, len(totals))
    if order == "given":
        return np.arange(len(totals))
    if order == "frequency":
        return np.argsort(-totals, kind="stable")
    raise ValueError(f"order must be 'frequency', 'given' or a permutation, got {order!r}")

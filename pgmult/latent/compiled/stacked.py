"""Factors of several precisions with entries in the same places, as compiled functions take them.

See `pgmult.latent.factors.stacked`, which makes them.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from pgmult.compiled.jit import jit
from pgmult.latent.compiled.arrow import Between, backward, forward
from pgmult.latent.compiled.sparse_cholesky import Lower, solve_lower, solve_upper


class Stacked(NamedTuple):
    """Arrow factors, or sparse ones where `pivots` has entries; the first axis is of factors.

    `order` is that of the weights in the factors, `between` has ``(num_factors, num_entries, d)``
    values and `lower` those of L.
    """

    order: Any
    inverse: Any
    between: Between
    inner: Any
    lower: Lower


@jit
def solve(factors, which, b, x):
    """Set x to the inverse of one precision times b."""
    between, lower = factors.between, factors.lower
    half = b[factors.order]
    if lower.pivots.size > 0:
        mine = Lower(lower.indptr, lower.rows, lower.values[which], lower.pivots[which])
        solve_lower(mine, half)
        for j in range(half.size):
            half[j] /= math.sqrt(mine.pivots[j])
    else:
        across = Between(between.indptr, between.columns, between.values[which])
        half = forward(factors.inverse[which], across, factors.inner[which], half)
    colour(factors, which, half, x)


@jit
def colour(factors, which, e, x):
    """Set x to a draw with one precision, of standard normal numbers."""
    between, lower = factors.between, factors.lower
    if lower.pivots.size > 0:
        mine = Lower(lower.indptr, lower.rows, lower.values[which], lower.pivots[which])
        coloured = e / np.sqrt(mine.pivots)
        solve_upper(mine, coloured)
    else:
        across = Between(between.indptr, between.columns, between.values[which])
        coloured = backward(factors.inverse[which], across, factors.inner[which], e)
    for j in range(coloured.size):
        x[factors.order[j]] = coloured[j]

"""Factors of several precisions with entries in the same places, as compiled functions take them.

See `pgmult.latent.factors.stacked`, which makes them.
"""

from typing import Any, NamedTuple

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
    order, between, lower = factors.order, factors.between, factors.lower
    own = b[order]
    if lower.pivots.size > 0:
        mine = Lower(lower.indptr, lower.rows, lower.values[which], lower.pivots[which])
        solve_lower(mine, own)
        for j in range(own.size):
            own[j] /= mine.pivots[j]
        solve_upper(mine, own)
    else:
        across = Between(between.indptr, between.columns, between.values[which])
        inverse, inner = factors.inverse[which], factors.inner[which]
        own = backward(inverse, across, inner, forward(inverse, across, inner, own))
    for j in range(own.size):
        x[order[j]] = own[j]

"""Sticks proposed from their prior conditional: the moves that Pólya-gamma Gibbs makes too small.

Where a category is rare but many observations reach its stick (a topic that a document does not
use), the likelihood in psi_k is flat over a wide range, yet given omega it is a narrow Gaussian
around the old value, and the chain creeps (Johndrow, Smith, Pillai and Dunson 2019, "MCMC for
imbalanced categorical data"). There a proposal that ignores the likelihood is the right one: each
stick in turn is drawn from its Gaussian prior given the other sticks of its row and accepted with
the ratio of its binomial likelihoods, omega summed out,

    psi_k' ~ p(psi_k | psi_{-k}),   min(1, [sigma(psi')^x sigma(-psi')^(N-x)] / [same at psi]).

Nothing is tuned, and the move leaves the posterior exact. It complements the Gaussian draw given
omega, which is quick where the data are informative and such proposals are refused.
"""

import numpy as np

from pgmult.compiled.linalg import invert_positive_definite
from pgmult.compiled.rows import over_rows
from pgmult.compiled.sticks import propose_rows
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import new_key
from pgmult.links import StickBreaking
from pgmult.priors import MvNormal

__all__ = ["propose_from_prior"]


def propose_from_prior(
    rng: np.random.Generator,
    link: StickBreaking,
    psi: FloatArray,
    counts: IntArray,
    prior: MvNormal,
) -> FloatArray:
    """Go once over all sticks of all rows.

    Parameters
    ----------
    rng : numpy.random.Generator
    link : StickBreaking
    psi : array, ``(num_rows, num_categories - 1)``
        Not changed.
    counts : integer array, ``(num_rows, num_categories)``
    prior : MvNormal
        Of the rows of psi, not yet conditioned on anything.

    Returns
    -------
    array, ``(num_rows, num_categories - 1)``
        Costs O(num_categories**2) a row.
    """
    moved = psi.copy()
    ordered = counts if link.order is None else counts[:, list(link.order)]
    over_rows(
        propose_rows, len(moved), new_key(rng), np.ascontiguousarray(ordered),
        np.atleast_2d(prior.prior_mean), invert_positive_definite(prior.prior_cov), moved,
    )  # fmt: skip
    return moved

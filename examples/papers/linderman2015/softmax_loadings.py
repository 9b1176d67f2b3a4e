r"""Rows of a softmax regression with Gaussian priors: loadings, weights and offset together.

    counts_t ~ Multinomial(total_t, softmax(W z_t)),    W_kp ~ N(0, 1 / precision_p),

for symbols k and regressors z_t, the last of which is the constant 1. Every row moves in turn by a
slice update around its own mode: see `compiled.softmax_loadings`. A vector added
to all rows changes no probability; along it the posterior is the prior given the rest, and is drawn
exactly.

All K rows are free, rather than the last fixed at 0: the prior then treats all symbols alike, and
no probability depends on which symbol is the last.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse

from examples.papers.linderman2015.compiled import softmax_loadings
from pgmult.core.memory import once_a_data_set
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import new_key
from pgmult.sequences.data.sequences import Sequences


class _Seen(NamedTuple):
    """What every sweep needs of the data: steps that are not missing, and counts by symbol."""

    steps: IntArray
    totals: FloatArray
    by_symbol: "scipy.sparse.csr_array"
    hits: IntArray


@once_a_data_set
def _seen(data: Sequences) -> _Seen:
    totals = data.totals
    counts = data.to_csr().astype(np.float64)
    hits = np.bincount(data.symbols, data.counts, minlength=data.num_symbols)
    steps = np.flatnonzero(totals)
    return _Seen(steps, totals[steps].astype(np.float64), counts.T.tocsr(), hits)


def sample_softmax_rows(
    rng: np.random.Generator,
    data: Sequences,
    regressors: FloatArray,
    rows: FloatArray,
    precision: FloatArray,
) -> FloatArray:
    """One update of every row of W given the regressors.

    Parameters
    ----------
    rng : numpy.random.Generator
    data : Sequences
    regressors : array, ``(num_steps, P)``
        The last column is 1.
    rows : array, ``(num_symbols, P)``
        W where the chain is.
    precision : array, ``(P,)``
        Of the prior, positive.

    Returns
    -------
    array, ``(num_symbols, P)``

    Raises
    ------
    FloatingPointError
        If a row has no finite posterior: the regressors have exploded.

    Notes
    -----
    O(num_steps P**2) per row, after O(num_steps num_symbols P).
    """
    seen = _seen(data)
    new = rows.copy()
    tries = softmax_loadings.sample_rows(
        new_key(rng), np.ascontiguousarray(regressors[seen.steps].T), seen.totals,
        np.ascontiguousarray(seen.by_symbol @ regressors), seen.hits, precision, new,
    )  # fmt: skip
    if tries < 0:
        raise FloatingPointError(
            f"the weights of symbol {-1 - tries} have no finite posterior (have states exploded?)"
        )
    shift = -new.mean(axis=0)
    shift += rng.standard_normal(len(precision)) / np.sqrt(len(new) * precision)
    return np.asarray(new + shift)

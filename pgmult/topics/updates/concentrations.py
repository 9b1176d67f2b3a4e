"""Exact updates of Dirichlet concentrations that have gamma priors, given counts.

A Dirichlet integrated out of multinomial counts n_1..n_K of total N leaves

    Gamma(A) / Gamma(A + N) prod_k Gamma(n_k + a_k) / Gamma(a_k),    A = sum_k a_k.

Both kinds of factor are sums or integrals of exponentials and powers (Newman et al. 2009,
"Distributed algorithms for topic models", appendix; Escobar and West 1995; Antoniak 1974)::

    Gamma(n + a) / Gamma(a)  is a sum over t of a**t,       t ~ CRT(n, a), table counts
    Gamma(A) / Gamma(A + N)  is an integral of b**A,        b ~ Beta(A, N)

so given t and b a gamma prior stays gamma: exp(-rate a) a**(shape - 1) meets a**t b**a.

>>> import numpy as np
>>> counts = np.array([[9, 0, 1], [7, 1, 0]])
>>> rng = np.random.default_rng(0)
>>> sample_concentrations(rng, np.ones(3), counts, shape=1.0, rate=1.0).shape
(3,)
"""

import numpy as np

from pgmult.compiled.rows import num_workers, over_rows
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import new_key
from pgmult.topics.compiled.tokens import sample_tables


def sample_concentrations(
    rng: np.random.Generator, alpha: FloatArray, counts: IntArray, shape: float, rate: float
) -> FloatArray:
    """Each category's own concentration, all rows of counts sharing them.

    Parameters
    ----------
    alpha : array, ``(num_categories,)``
        The concentrations of the sweep before.
    counts : int64 array, ``(num_rows, num_categories)``
        Multinomial counts, their Dirichlet probabilities integrated out.
    shape, rate : float
        Gamma prior of every concentration.
    """
    log_beta = _sum_log_beta(rng, float(alpha.sum()), counts.sum(axis=1))
    tables = np.zeros((num_workers(len(counts)), counts.shape[1]), dtype=np.int64)
    over_rows(sample_tables, len(counts), new_key(rng), counts, alpha, tables)
    return np.asarray(rng.gamma(shape + tables.sum(axis=0)) / (rate - log_beta))


def _sum_log_beta(rng: np.random.Generator, whole: float, totals: IntArray) -> float:
    """Sum of the logarithms of Beta(whole, total) variates, `whole` however small."""
    totals = totals[totals > 0]
    log_first = np.log(rng.gamma(whole + 1.0, size=len(totals))) - (
        rng.exponential(size=len(totals)) / whole
    )
    return float(np.sum(log_first - np.logaddexp(log_first, np.log(rng.gamma(totals)))))

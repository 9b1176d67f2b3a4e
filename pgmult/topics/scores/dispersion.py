"""Pearson's dispersion of word counts: are they more variable than a multinomial?

Pearson's statistic of counts x_dv with shares q_dv and totals m_d, sum_dv (x_dv - m_d q_dv)**2 /
(m_d q_dv (1 - q_dv)), is 1 a cell in expectation (Taddy 2012, "On estimation and selection for
topic models", section 4.2). In cells with tiny expectations single tokens would decide it: those
below 0.05 are left out.
"""

from typing import Any

import numpy as np

from pgmult.core.typing import FloatArray

_EXPECTED = 0.05  # tokens of a word in a document, at least, for it to be counted there


def expected_cells(totals: Any, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Expected counts m q, and the weight of each squared residual: 0 for counts left out.

    Parameters
    ----------
    totals : array, ``(num_documents,)``
    shares : array, ``(num_documents, num_words)``
        Rows sum to 1.

    Returns
    -------
    means, weights : arrays, ``(num_documents, num_words)``
    """
    shares = np.clip(shares, 1e-300, 1.0 - 1e-12)
    means = np.asarray(totals, dtype=np.float64)[:, None] * shares
    counted = means >= _EXPECTED
    weights = np.zeros_like(means)
    weights[counted] = 1.0 / np.maximum(means[counted] * (1.0 - shares[counted]), 1e-300)
    return means, weights

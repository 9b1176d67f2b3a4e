r"""Scores of predicted probabilities against counts, one row per input: those of Figure 3's table.

*Overlap of extremes.* How many of the r most (or least) frequent categories were predicted to be
among the r most (least) probable? Small counts have ties, and the answer is averaged over all ways
to break them. With A categories above the value at rank r and T
tied at it, a category is among the first r with probability

    1 above,    (r - A) / T tied,    0 below,

in the prediction and, independently, in the counts; the expected overlap is the sum over the
categories of the products of the two.

*Log predictive.* log p(x) under one prediction, or under the mixture over posterior draws,
log (1/S) sum_s p(x | pi_s), a row at a time.

>>> import numpy as np
>>> counts = np.array([[5, 3, 0, 0], [2, 2, 2, 1]])
>>> probs = np.array([[0.4, 0.3, 0.2, 0.1], [0.4, 0.3, 0.2, 0.1]])
>>> overlap(probs, counts, 2)
array([2.        , 1.33333333])
>>> overlap(probs, counts, 1, lowest=True)
array([0.5, 1. ])
"""

import numpy as np
from scipy.special import gammaln, logsumexp, xlogy

from pgmult.core.scores import mean_by_token


def overlap(
    predicted: np.ndarray, counts: np.ndarray, size: int, *, lowest: bool = False
) -> np.ndarray:
    """Expected number of common categories among the first `size`, ties broken at random.

    Parameters
    ----------
    predicted : array, ``(num_rows, num_categories)``
        Probabilities, or anything that ranks the categories.
    counts : array of the same shape
    size : int
        From 1 to the number of categories.
    lowest : bool
        Compare the lowest ones instead of the highest.

    Returns
    -------
    array, ``(num_rows,)``
    """
    sign = -1 if lowest else 1
    return (_among_the_first(sign * predicted, size) * _among_the_first(sign * counts, size)).sum(1)


def _among_the_first(values: np.ndarray, size: int) -> np.ndarray:
    """Probability that each entry of a row is among its `size` largest, ties broken at random."""
    last = -np.partition(-values, size - 1, axis=1)[:, size - 1 : size]
    above, tied = values > last, values == last
    left = size - above.sum(axis=1, keepdims=True)
    return above + tied * (left / tied.sum(axis=1, keepdims=True))


def log_predictive(probs: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Log multinomial probability of each row, ``(num_rows,)``.

    Parameters
    ----------
    probs : array, ``(num_rows, num_categories)`` or ``(num_draws, num_rows, num_categories)``
        One prediction, or draws of which the equal mixture predicts. A probability of 0 is allowed;
        a count where it stands makes the row -inf.
    counts : array, ``(num_rows, num_categories)``
    """
    draws = probs.reshape(-1, *counts.shape)
    by_draw = np.array([xlogy(counts, draw).sum(axis=1) for draw in draws])
    coefficient = gammaln(counts.sum(axis=1) + 1.0) - gammaln(counts + 1.0).sum(axis=1)
    return coefficient + logsumexp(by_draw, axis=0) - np.log(len(draws))


def mean_over_rows(by_row: np.ndarray, totals: np.ndarray | None = None) -> tuple[float, float]:
    """Mean of a score by row, and its standard error over rows.

    Parameters
    ----------
    by_row : array, ``(num_rows,)``
    totals : int array, ``(num_rows,)``, optional
        Counts of each row: the mean is then the sum of the scores, divided by that of the counts.
    """
    return mean_by_token(by_row, np.ones(len(by_row), dtype=np.int64) if totals is None else totals)

"""Scores a token, and paired differences of them."""

import numpy as np

from pgmult.core.typing import FloatArray, IntArray


def mean_by_token(by_document: FloatArray, totals: IntArray) -> tuple[float, float]:
    """Sums over tokens, by document, as a mean by token and its standard error over documents.

    A document of probability 0 makes them -inf and nan.
    """
    level = float(by_document.sum() / totals.sum())
    scored = totals > 0
    with np.errstate(invalid="ignore"):
        residuals = by_document[scored] - level * totals[scored]
    count = max(2, int(scored.sum()))
    spread = np.sqrt(np.sum(residuals**2) * count / (count - 1)) / totals.sum()
    return level, float(spread)


def paired_difference(
    by_document: FloatArray, reference: FloatArray, totals: IntArray
) -> tuple[float, float]:
    """Mean gain a token over a reference on the same documents, and its standard error.

    Parameters
    ----------
    by_document, reference : arrays, ``(num_documents,)``
        Summed log probabilities of each document's tokens under two models.
    totals : int array, ``(num_documents,)``
        How many tokens of each document were scored.
    """
    return mean_by_token(by_document - reference, totals)

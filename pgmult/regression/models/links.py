"""Links of an additive regression: probabilities or mean counts of rows, and their likelihood.

Scores of a row are its predictors, ``(..., num_scores)``: log odds of sticks (`pgmult.links`), one
score for each category of a softmax, log odds of each category or a higher one, or log rates.
"""

from dataclasses import dataclass

import numpy as np

from pgmult.core.typing import FloatArray
from pgmult.links import StickBreaking
from pgmult.regression.data import MOST_EVENTS, AdditiveRows


@dataclass(frozen=True, slots=True, eq=False)
class Rates:
    """Counts of events: their mean is exp psi."""

    def probs(self, psi: FloatArray) -> FloatArray:
        """Mean counts."""
        return np.asarray(np.exp(np.minimum(psi, MOST_EVENTS)))


@dataclass(frozen=True, slots=True, eq=False)
class Softmax:
    """A score for each category (McFadden 1974)."""

    def probs(self, scores: FloatArray) -> FloatArray:
        """Probabilities of the categories."""
        columns = np.ascontiguousarray(np.moveaxis(scores, -1, 0))  # sums of few are slow by rows
        shares = np.exp(columns - columns.max(axis=0))
        shares /= shares.sum(axis=0)
        return np.moveaxis(shares, 0, -1)


@dataclass(frozen=True, slots=True, eq=False)
class Cumulative:
    """Score k is the log odds of category k or a higher one, k = 1..K - 1 (McCullagh 1980).

    With s_k > s_{k+1}, category k has probability sigma(s_k) - sigma(s_{k+1}), which is
    sigma(s_k) sigma(-s_{k+1}) (1 - exp(s_{k+1} - s_k)).
    """

    def probs(self, scores: FloatArray) -> FloatArray:
        """Probabilities of the categories; 0 for one whose scores are not in order."""
        s = np.ascontiguousarray(np.moveaxis(scores, -1, 0))  # sums of few are slow by rows
        tail = np.exp(-np.abs(s))
        small, large = tail / (1.0 + tail), 1.0 / (1.0 + tail)
        above, below = np.where(s > 0.0, large, small), np.where(s > 0.0, small, large)
        between = -np.expm1(-np.maximum(s[:-1] - s[1:], 0.0))
        probs = np.concatenate([below[:1], above[:-1] * below[1:] * between, above[-1:]])
        probs /= probs.sum(axis=0)
        return np.moveaxis(probs, 0, -1)


Link = StickBreaking | Softmax | Cumulative | Rates


def link_of(data: AdditiveRows, name: str) -> Link:
    """The link of this name, its sticks in the order of the data."""
    if data.is_events:
        return Rates()
    if name == "cumulative":
        return Cumulative()
    return Softmax() if name == "softmax" else StickBreaking(data.order)

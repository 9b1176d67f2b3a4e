"""Links of an additive regression: probabilities or mean counts of rows, and their likelihood.

Sticks have that of `pgmult.links`.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import log_softmax, softmax

from pgmult.core.typing import FloatArray, IntArray
from pgmult.links import StickBreaking
from pgmult.regression.data import MOST_EVENTS, AdditiveRows
from pgmult.variational.sites import CountSite


@dataclass(frozen=True, slots=True, eq=False)
class Rates:
    """Counts of events: their mean is exp psi.

    Attributes
    ----------
    times : array, ``(num_rows,)``
        How many rows of the table a row stands for.
    size : float
        Of a negative binomial.
    """

    times: FloatArray | None
    size: float

    def probs(self, psi: FloatArray) -> FloatArray:
        """Mean counts."""
        return np.asarray(np.exp(np.minimum(psi, MOST_EVENTS)))

    def log_likelihood(self, psi: FloatArray, counts: FloatArray) -> FloatArray:
        """Of each row, up to a constant, by psi and counts ``(num_rows, 1)``."""
        site = CountSite(counts[:, 0].astype(np.float64), self.size, self.times)
        return site.value(psi[:, 0])


@dataclass(frozen=True, slots=True, eq=False)
class Softmax:
    """Scores of every category, ``order[j]`` the j-th: ``(num_rows, K)``."""

    order: IntArray

    def probs(self, scores: FloatArray) -> FloatArray:
        """Of the categories."""
        out = np.empty_like(scores)
        out[..., self.order] = softmax(scores, axis=-1)
        return out

    def log_likelihood(self, scores: FloatArray, counts: FloatArray) -> FloatArray:
        """What each row and score adds, without multinomial coefficients."""
        return np.asarray(counts[:, self.order] * log_softmax(scores, axis=1))


Link = StickBreaking | Softmax | Rates


def link_of(data: AdditiveRows, effects: str, size: float = math.inf) -> Link:
    """The link of effects of these data, its sticks in their order."""
    if data.is_events:
        return Rates(data.times, size)
    return (Softmax if effects == "softmax" else StickBreaking)(data.order)

"""Arbitrary labels, such as the numbers of topics, matched between chains.

Each label owns a row of one variable, a probability distribution: a topic its words. Rows are
compared by the total variation distance of their posterior means, 0 where they are equal and 1
where they have no mass in common, and assigned one to one. A label that has no counterpart in
another chain belongs to a mode that this chain did not visit: exact moves hardly ever cross between
modes, so that more draws do not help, and an average over chains would be of nothing.

>>> import numpy as np
>>> first = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])
>>> found = match_rows(np.stack([first, first[::-1]]))
>>> found.order.tolist(), found.headline("topics")
([[0, 1], [1, 0]], '2 of 2 topics were found by both chains')
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from pgmult.core.typing import BoolArray, FloatArray, IntArray

MATCH_LIMIT = 0.5
"""Rows farther apart, in total variation, are no pair."""


@dataclass(frozen=True, slots=True, eq=False)
class LabelMatches:
    """The best matching of every chain's labels to those of one chain.

    Attributes
    ----------
    reference : int
        The chain whose labels the others are matched to.
    order : int array, ``(chain, label)``
        ``order[c, k]`` is the label of chain c that goes with label k of the reference.
    distance : array, ``(chain, label)``
        Total variation distance of the two posterior mean rows: 0 equal, 1 nothing in common.
    limit : float
        Above it there is no counterpart.
    """

    reference: int
    order: IntArray
    distance: FloatArray
    limit: float = MATCH_LIMIT

    @property
    def found(self) -> BoolArray:
        """Whether a chain has a counterpart of each label, ``(chain, label)``."""
        return self.distance <= self.limit

    @property
    def by_all(self) -> BoolArray:
        """Whether all chains have a counterpart of each label, ``(label,)``."""
        return np.asarray(self.found.all(axis=0))

    def headline(self, labels: str) -> str:
        """Such as "16 of 20 topics were found by all 4 chains"; `labels` is a noun."""
        chains, size = self.order.shape
        if chains == 1:
            return f"one chain found {size} {labels}, and no other says whether it would too"
        who = "both chains" if chains == 2 else f"all {chains} chains"
        count = int(self.by_all.sum())
        return f"{count} of {size} {labels} {'was' if count == 1 else 'were'} found by {who}"


def distances(first: FloatArray, second: FloatArray) -> FloatArray:
    """Total variation distance of each row from each, ``(len(first), len(second))``."""
    return np.asarray(0.5 * cdist(first, second, "cityblock"))


def match_rows(
    means: FloatArray, reference: int = 0, limit: float = MATCH_LIMIT, *, worst: bool = False
) -> LabelMatches:
    """Match the rows of every chain to those of the reference.

    Parameters
    ----------
    means : array, ``(chain, label, ...)``
        Posterior means in each chain; where a label has several distributions, one after the
        other, their distances are averaged.
    reference : int
    limit : float in (0, 1]
        Pairs at this distance or beyond count alike, so that they do not pull others apart.
    worst : bool
        Whether the largest distance of a label's several distributions counts, not the average.
    """
    rows = means.reshape(*means.shape[:2], -1, means.shape[-1] if worst else means[0, 0].size)
    rows = rows / rows.sum(axis=3, keepdims=True)
    order = np.empty(rows.shape[:2], dtype=np.int64)
    distance = np.empty(rows.shape[:2])
    for c, chain in enumerate(rows):
        parts = zip(rows[reference].swapaxes(0, 1), chain.swapaxes(0, 1), strict=True)
        costs = np.max([distances(*pair) for pair in parts], axis=0)
        first, order[c] = linear_sum_assignment(np.minimum(costs, limit) + 1e-6 * costs)
        distance[c] = costs[first, order[c]]
    return LabelMatches(reference, order, distance, limit)

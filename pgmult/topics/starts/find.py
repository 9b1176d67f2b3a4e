"""A start for chains of a topic model, found by search: `find_start`.

>>> import numpy as np
>>> from pgmult.topics import CorrelatedTopics, find_start
>>> counts = np.random.default_rng(0).poisson(0.5, size=(20, 30))
>>> start = find_start(CorrelatedTopics(3), counts, leaves=2, sweeps=20, random_seed=0)
>>> start.state.topics.shape, start.support.shape
((3, 30), (3,))
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from pgmult.compiled.rows import row_threads
from pgmult.core.arguments import as_repeats, as_seed, brief
from pgmult.core.machine import as_cores
from pgmult.core.typing import FloatArray, data_of
from pgmult.core.validate import as_positive_int
from pgmult.topics.data.corpus import Documents

if TYPE_CHECKING:
    from pgmult.topics.models.topic_model import TopicModel

_SAME = 0.5  # topics at least as far apart, in total variation, are not the same
_MOST_LEAVES = 10_000


@dataclass(frozen=True, slots=True, eq=False)
class TopicStart:
    """The result of a search.

    Attributes
    ----------
    state : state of the model
        Topics sorted by size.
    loo : float
        Log probability of every word given all others, summed, of the allocation that was found; of
        a large corpus, of the part that was searched.
    leaf_loo : list of float
        Of the search's leaves, in order.
    support : array, ``(num_topics,)``
        The share of the other leaves that found each topic, in the state's order: one-to-one
        matches with a total variation distance below 0.5. Topics of much support recur in other
        searches and chains, topics of none mostly do not. nan if there was one leaf only.
    """

    state: object
    loo: float
    leaf_loo: list[float]
    support: FloatArray

    @classmethod
    def of(
        cls, state: object, leaf_loo: list[float], topics: FloatArray, others: list[FloatArray]
    ) -> "TopicStart":
        """The start from these topics, which leaves of other topics may have found as well."""
        matches = np.zeros(len(topics))
        for other in others:
            apart = 0.5 * cdist(topics, other, "cityblock")
            rows, columns = linear_sum_assignment(np.minimum(apart, _SAME))
            matches[rows] += apart[rows, columns] < _SAME
        support = matches / len(others) if others else np.full(len(topics), np.nan)
        return cls(state, max(leaf_loo), leaf_loo, support)

    def facts(self) -> dict[str, object]:
        """Facts that a run stores: log probabilities per leaf and the topics' support."""
        facts: dict[str, object] = {"loo": self.loo, "leaf_loo": self.leaf_loo}
        if not np.isnan(self.support).any():
            facts["support"] = self.support.tolist()
        return facts


def find_start(
    model: "TopicModel[Documents]", data: Documents, *, leaves: int = 4,
    sweeps: int | None = None, random_seed: int | None = None, cores: int | None = None,
) -> TopicStart:  # fmt: skip
    """Search for a good start of a topic model's chains.

    Parameters
    ----------
    model : CorrelatedTopics, LogisticNormalTopics, StructuralTopics, DynamicTopics
    data : its data, or what its ``as_data`` takes
    leaves : int
        Independent chains of collapsed sweeps, which `support` compares; that with the largest LOO
        is taken.
    sweeps : int, optional
        Of each leaf; the model's `start_sweeps` if left out.
    random_seed : int, optional
    cores : int, optional
        Threads, all processors if left out: leaves run in parallel. The result does not depend on
        it.

    Returns
    -------
    TopicStart

    Notes
    -----
    A sweep costs O(tokens * topics of a document + words * topics), and all the rest as much as a
    few sweeps. Of a large corpus as many documents are searched as make up half a million tokens,
    or 10,000 a topic; some sweeps over all tokens follow, unless there are more than 20,000
    documents and 5 million tokens: see `pgmult.topics.starts.searches`.
    """
    if not hasattr(model, "start_sweeps"):
        got = brief(model)
        raise TypeError(f"model must be a topic model that starts from a search, got {got}")
    leaves = as_positive_int(leaves, "leaves", maximum=_MOST_LEAVES)
    sweeps = None if sweeps is None else as_repeats(sweeps, "sweeps", minimum=0)
    data = data_of(model, data)
    if data.num_words < 2:
        raise ValueError(f"data must have at least 2 different words, got {brief(data)}")
    rng = np.random.default_rng(as_seed(random_seed))
    with row_threads(as_cores(cores)):
        return model.find_start(rng, data, leaves, sweeps=sweeps)

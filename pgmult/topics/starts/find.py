"""A start for chains of a topic model, found by search: `find_start`.

>>> import numpy as np
>>> from pgmult.topics import CorrelatedTopics, find_start
>>> counts = np.random.default_rng(0).poisson(0.5, size=(20, 30))
>>> start = find_start(CorrelatedTopics(3), counts, leaves=2, sweeps=20, random_seed=0)
>>> start.state.topics.shape, start.support.shape
((3, 30), (3,))
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from pgmult.compiled.rows import row_threads
from pgmult.core.arguments import as_repeats, as_seed, brief
from pgmult.core.machine import as_cores
from pgmult.core.typing import FloatArray, Generator, IntArray, data_of
from pgmult.core.validate import as_positive_int
from pgmult.sampling.blocks import started
from pgmult.topics.data.corpus import Corpus, Documents
from pgmult.topics.priors.means import PsiState
from pgmult.topics.starts import searches

if TYPE_CHECKING:
    from pgmult.topics.models.topic_model import TopicModel

_SAME = 0.5  # topics at least as far apart, in total variation, are not the same
_MOST_LEAVES = 10_000


def start_chain(
    model: "TopicModel[Documents, PsiState]", rng: Generator, data: Documents
) -> PsiState:
    """The start of a single chain: one leaf of a search, topics sorted by size."""
    begun = model.shared_start(rng, data)
    if begun is not None:
        return started(model, rng, *begun, data)
    how = model.num_topics, model.start_concentration(), model.start_sweeps
    searched = searches.leaf(rng, data, *how)
    return model.from_allocation(rng, model.in_order(searched, data), data)


def start_without_rows(
    model: "TopicModel[Documents, PsiState]", rng: Generator, data: Documents
) -> tuple[PsiState, searches.Placement] | None:
    """The start of a chain of a large corpus, searched in a part of it, without the rows.

    The state has the rows of that part; what all rows start from comes with it. None, and no random
    number drawn, where the corpus is not that large.
    """
    if not searches.is_too_large_to_sweep(data):
        return None
    small = searches.thinned(rng, data, model.num_topics)
    chosen = searches.documents_to_search(rng, small, model.num_topics)
    if chosen is None:
        return None
    how = model.num_topics, model.start_concentration(), model.start_sweeps
    searched = searches.grown(rng, searches.only_words(small, chosen), *how)
    return _without_rows(model, rng, searched, small, chosen, data)


def _without_rows(
    model: "TopicModel[Documents, PsiState]", rng: Generator, searched: searches.Searched,
    small: Corpus, chosen: IntArray, data: Documents,
) -> tuple[PsiState, searches.Placement]:  # fmt: skip
    """The state of the searched part, and what all rows start from."""
    words = data if small is data else searches.only_words(data, chosen)
    at = model.in_order(searches.counted(rng, searched, small, words), data)
    return model.from_part(rng, at, data[chosen]), searches.Placement.of(at, model.link(data))


def search(
    model: "TopicModel[Documents, PsiState]", rng: Generator, data: Documents,
    leaves: int, sweeps: int | None,
) -> "TopicStart":  # fmt: skip
    """Search as `find_start` does."""
    sweeps = model.start_sweeps if sweeps is None else sweeps
    small = searches.thinned(rng, data, model.num_topics)
    chosen = searches.documents_to_search(rng, small, model.num_topics)
    subset = small if chosen is None else searches.only_words(small, chosen)
    how = model.num_topics, model.start_concentration(), leaves, sweeps
    searched, first, leaf_loo = searches.search_leaves(rng, subset, *how)
    if chosen is None or not searches.is_too_large_to_sweep(data):
        whole = searches.settled(rng, searched, subset, small, sweeps)
        best = model.in_order(searches.counted(rng, whole, small, data), data)
        state, topics = model.from_allocation(rng, best, data), best.topics()
    else:
        state, placement = _without_rows(model, rng, searched, small, chosen, data)
        state = started(model, rng, state, placement, data)
        topics = np.ascontiguousarray(placement.by_word.T)
    support = _support(topics, [at.topics() for at in first if at is not searched])
    return TopicStart(state, max(leaf_loo), leaf_loo, support)


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

    def facts(self) -> dict[str, object]:
        """Facts that a run stores: log probabilities per leaf and the topics' support."""
        facts: dict[str, object] = {"loo": self.loo, "leaf_loo": self.leaf_loo}
        if not np.isnan(self.support).any():
            facts["support"] = self.support.tolist()
        return facts


def find_start(
    model: "TopicModel[Documents, PsiState]", data: Documents, *, leaves: int = 4,
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


def _support(topics: FloatArray, others: Sequence[FloatArray]) -> FloatArray:
    matches = np.zeros(len(topics))
    for other in others:
        apart = 0.5 * cdist(topics, other, "cityblock")
        rows, columns = linear_sum_assignment(np.minimum(apart, _SAME))
        matches[rows] += apart[rows, columns] < _SAME
    return matches / len(others) if others else np.full(len(topics), np.nan)

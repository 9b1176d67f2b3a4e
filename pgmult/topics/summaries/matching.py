"""The labels of topics are arbitrary: topics matched between chains, and between runs.

Topics are compared by the total variation distance of their posterior mean word probabilities,
0 where they are equal and 1 where they have no word in common, and assigned one to one so that the
summed distance is smallest.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from pgmult.core.arguments import as_list, as_real
from pgmult.core.typing import FloatArray, IntArray
from pgmult.topics.draws import Draws, as_chain, as_draws, each_draw, names_along, num_chains
from pgmult.topics.summaries.words import mean_topics

__all__ = [
    "AlignedTopics",
    "RunMatches",
    "TopicMatches",
    "align_topics",
    "match_runs",
    "match_topics",
]


@dataclass(frozen=True, slots=True, eq=False)
class TopicMatches:
    """The best matching of every chain's topics to those of chain 0.

    Attributes
    ----------
    order : int array, ``(chain, topic)``
        ``order[c, k]`` is the topic of chain c that goes with topic k of chain 0.
    distance : array, ``(chain, topic)``
        Total variation distance of the two posterior mean topics: 0 equal, 1 no word in common.
    """

    order: IntArray
    distance: FloatArray


def match_topics(posterior: Draws) -> TopicMatches:
    """Match the topics of every chain to those of chain 0.

    Parameters
    ----------
    posterior : Posterior, or mapping with ``topics``, ``(chain, draw, topic, word)``
    """
    return _match_chains(_chain_means(posterior))


def _chain_means(posterior: Draws) -> FloatArray:
    each_draw(posterior, "topics", 0)  # complains of a posterior without topics
    return np.stack([mean_topics(posterior, c) for c in range(num_chains(posterior, "topics"))])


def _match_chains(means: FloatArray) -> TopicMatches:
    order = np.empty(means.shape[:2], dtype=np.int64)
    distance = np.empty(means.shape[:2])
    for c, topics in enumerate(means):
        costs = _distances(means[0], topics)
        reference, order[c] = linear_sum_assignment(costs)
        distance[c] = costs[reference, order[c]]
    return TopicMatches(order, distance)


def _distances(first: FloatArray, second: FloatArray) -> FloatArray:
    """Total variation distance of each topic from each, ``(len(first), len(second))``."""
    return np.asarray(0.5 * cdist(first, second, "cityblock"))


@dataclass(frozen=True, slots=True, eq=False)
class AlignedTopics:
    """Topics averaged over matched chains, in the order of chain 0.

    Attributes
    ----------
    mean : array, ``(topic, word)``
        Mean of the chains' posterior means.
    between_sd : array, ``(topic, word)``
        Standard deviation of the chains' posterior means; nan with one chain. Where it is far
        above the posterior sd in each chain, the chains hold different topics.
    matches : TopicMatches
        Which topics were averaged, and how far apart they are.
    """

    mean: FloatArray
    between_sd: FloatArray
    matches: TopicMatches


def align_topics(posterior: Draws) -> AlignedTopics:
    """Average the topics over chains, each chain's topics matched to those of chain 0.

    An average of topics that do not match is the topic of no chain: look at ``matches.distance``.

    Parameters
    ----------
    posterior : Posterior, or mapping with ``topics``, ``(chain, draw, topic, word)``
    """
    means = _chain_means(posterior)
    matches = _match_chains(means)
    aligned = np.take_along_axis(means, matches.order[:, :, None], axis=1)
    one = len(means) == 1
    between = np.full(means.shape[1:], np.nan) if one else aligned.std(axis=0, ddof=1)
    return AlignedTopics(aligned.mean(axis=0), between, matches)


@dataclass(frozen=True, slots=True, eq=False)
class RunMatches:
    """Which topics of two runs go together.

    Attributes
    ----------
    pairs : int array, ``(num_pairs, 2)``
        Topics of the first and the second run, the closest pair first.
    distance : array, ``(num_pairs,)``
        Total variation distance of each pair's posterior mean topics.
    only_first, only_second : int arrays
        Topics of each run that have no partner.
    """

    pairs: IntArray
    distance: FloatArray
    only_first: IntArray
    only_second: IntArray


def match_runs(
    first: Draws, second: Draws, *, chains: tuple[int, int] = (0, 0), max_distance: float = 0.5
) -> RunMatches:
    """Match the topics of two runs, which may differ in number of topics and in vocabulary.

    Parameters
    ----------
    first, second : Posterior, or mapping with ``topics``, ``(chain, draw, topic, word)``
        Words are compared by name; a word of one run alone has probability 0 in the other.
    chains : (int, int)
        The chain of each.
    max_distance : float in (0, 1]
        Topics farther apart are no pair.

    Raises
    ------
    ValueError
        If the runs have no word in common.
    """
    max_distance = as_real(max_distance, "max_distance", above=0.0, maximum=1.0)
    pair = as_list(chains, "chains", "two numbers of chains")
    if len(pair) != 2:
        raise ValueError(f"chains must be one for each of the two runs, got {len(pair)}")
    for run, name, chain in ((first, "first", pair[0]), (second, "second", pair[1])):
        as_chain(as_draws(run, "topics", argument=name), "topics", chain, "chains")
    chains = pair[0], pair[1]
    costs = _distances(*_in_one_vocabulary(first, second, chains))
    rows, columns = linear_sum_assignment(np.minimum(costs, max_distance))
    near = costs[rows, columns] < max_distance
    distance = costs[rows, columns][near]
    closest = np.argsort(distance, kind="stable")
    pairs = np.column_stack([rows, columns])[near][closest]
    return RunMatches(
        pairs,
        distance[closest],
        np.setdiff1d(np.arange(costs.shape[0]), pairs[:, 0]),
        np.setdiff1d(np.arange(costs.shape[1]), pairs[:, 1]),
    )


def _in_one_vocabulary(
    first: Draws, second: Draws, chains: tuple[int, int]
) -> tuple[FloatArray, FloatArray]:
    """Mean topics of both runs over the words of either."""
    means = [mean_topics(run, chain) for run, chain in zip((first, second), chains, strict=True)]
    words = [
        names_along(run, "word", mean.shape[1])
        for run, mean in zip((first, second), means, strict=True)
    ]
    if set(words[0]).isdisjoint(words[1]):
        raise ValueError(
            f"first and second must have words in common: the first has {words[0][0]!r}, the"
            f" second {words[1][0]!r}"
        )
    number = {name: j for j, name in enumerate(dict.fromkeys([*words[0], *words[1]]))}
    wide = []
    for names, mean in zip(words, means, strict=True):
        wide.append(np.zeros((len(mean), len(number))))
        wide[-1][:, [number[name] for name in names]] = mean
    return wide[0], wide[1]

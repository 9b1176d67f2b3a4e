"""The labels of topics are arbitrary: topics matched between chains, and between runs.

Topics are compared by the total variation distance of their posterior mean word probabilities,
0 where they are equal and 1 where they have no word in common, and assigned one to one so that the
summed distance is smallest; pairs farther apart than 0.5 are none (`pgmult.sampling.labels`). Where
groups of documents word topics each in their own way, the group counts that is farthest apart.

Chains of a topic model rest in modes that no exact move crosses, so a topic of one chain need not
be there in another. What is said over chains is said of each topic over those chains that found it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from pgmult.core.arguments import as_list, as_real
from pgmult.core.typing import FloatArray, IntArray
from pgmult.sampling.labels import MATCH_LIMIT, LabelMatches, distances, match_rows
from pgmult.sampling.posterior import Posterior
from pgmult.topics.draws import (
    Draws,
    as_chain,
    as_draws,
    each_draw,
    mean_of,
    names_along,
    num_chains,
    share_of_draws,
)  # fmt: skip

__all__ = [
    "AlignedTopics",
    "RunMatches",
    "align_topics",
    "aligned_chains",
    "best_chain",
    "match_runs",
    "match_topics",
    "mean_topics",
]

_MATCHED_DRAWS = 100  # of a chain: more do not move a mean that is compared at a distance of 0.5


def best_chain(posterior: Draws) -> int:
    """The chain to read where one is shown: with the best log likelihood, on average.

    0 where draws hold none. All chains are of one model, so their scores of words left out differ
    as their log likelihoods do: on docstrings, K = 20, importance-sampled leave-one-out and WAIC
    chose the same of four chains in five runs of five, and went no closer with words held out.
    """
    if not isinstance(posterior, Posterior) or posterior.num_draws == 0:
        return 0
    log_likelihood = posterior.sample_stats.get("log_likelihood")
    return 0 if log_likelihood is None else int(np.argmax(np.mean(log_likelihood, axis=1)))


def mean_topics(posterior: Draws, chain: int = 0, *, max_draws: int | None = None) -> FloatArray:
    """Posterior mean of the word probabilities in one chain, ``(num_topics, num_words)``.

    Of `max_draws` draws, evenly spread, where given.
    """
    return mean_of(each_draw(posterior, "topics", chain, max_draws))


def match_topics(posterior: Draws, *, reference: int | None = None) -> LabelMatches:
    """Match the topics of every chain to those of one.

    Parameters
    ----------
    posterior : Posterior, or mapping with ``topics``, ``(chain, draw, topic, word)``
    reference : int, optional
        The chain whose topics the others' are matched to; `best_chain` if left out.
    """
    as_draws(posterior, "topics")
    if reference is None:
        reference = best_chain(posterior)
    reference = as_chain(posterior, "topics", reference, "reference")
    return match_rows(_chain_means(posterior), reference, worst="group_topics" in posterior)


def _chain_means(posterior: Draws) -> FloatArray:
    """What each chain's topics say; by group, ``(chain, topic, group, word)``, where that differs.

    Two chains may agree on a topic's words over all groups, and not on which group says them of
    which topic: then they have not found the same topics.
    """
    chains = range(num_chains(posterior, "topics"))
    if "group_topics" not in posterior:
        return np.stack([mean_topics(posterior, c, max_draws=_MATCHED_DRAWS) for c in chains])
    by_group = [mean_of(each_draw(posterior, "group_topics", c, _MATCHED_DRAWS)) for c in chains]
    return np.stack(by_group).swapaxes(1, 2)


@dataclass(frozen=True, slots=True, eq=False)
class AlignedChain:
    """One chain as the others see it.

    Attributes
    ----------
    chain : int
    order : int array, ``(topic,)``, or the slice of all
        Its topic for each topic of the reference.
    found : bool array, ``(topic,)``, or True
        Whether it found that topic; if not, its draws say nothing of it.
    """

    chain: int
    order: Any
    found: Any


def aligned_chains(posterior: Draws, chain: int | None, name: str) -> list[AlignedChain]:
    """The chain asked for as it is, or all of them with their topics matched to the best one's.

    Parameters
    ----------
    posterior : Posterior, or mapping with `name`, and with ``topics`` where chains are several
    chain : int or None
        None for all.
    name : str
        A variable that is there.
    """
    as_draws(posterior, name)
    if chain is None and num_chains(posterior, name) > 1:
        if "topics" not in posterior:
            raise ValueError(
                "chain must be given, for chains are aligned by their topics, and posterior holds"
                f" only {', '.join(map(str, posterior))} (name 'topics' in keep= of pgmult.sample)"
            )
        matches = match_topics(posterior)
        return [
            AlignedChain(c, order, found)
            for c, (order, found) in enumerate(zip(matches.order, matches.found, strict=True))
        ]
    return [
        AlignedChain(as_chain(posterior, name, 0 if chain is None else chain), slice(None), True)
    ]


def scope_of(chains: list[AlignedChain]) -> str:
    """What an interval is over, in words."""
    if len(chains) == 1:
        return f"within chain {chains[0].chain}"
    return f"over those of {len(chains)} chains that found the topic"


def each_aligned(
    posterior: Draws, name: str, chains: list[AlignedChain], max_draws: int
) -> Iterator[tuple[AlignedChain, FloatArray]]:
    """Draws of a variable, of every chain as many, with the chain that each is of."""
    for one in chains:
        for draw in each_draw(posterior, name, one.chain, share_of_draws(max_draws, len(chains))):
            yield one, draw


@dataclass(frozen=True, slots=True, eq=False)
class AlignedTopics:
    """Topics averaged over the chains that found them, in the order of the reference chain.

    Attributes
    ----------
    mean : array, ``(topic, word)``
        Mean of those chains' posterior means.
    between_sd : array, ``(topic, word)``
        Standard deviation of those chains' posterior means; nan with one chain.
    matches : LabelMatches
        Which topics were averaged, and how far apart they are.
    """

    mean: FloatArray
    between_sd: FloatArray
    matches: LabelMatches


def align_topics(posterior: Draws) -> AlignedTopics:
    """Average the topics over chains, each chain's topics matched to those of the best one.

    A chain that did not find a topic does not enter its average.

    Parameters
    ----------
    posterior : Posterior, or mapping with ``topics``, ``(chain, draw, topic, word)``
    """
    matches = match_topics(posterior)
    means = np.stack([mean_topics(posterior, c) for c in range(len(matches.order))])
    aligned = np.take_along_axis(means, matches.order[:, :, None], axis=1)
    here = matches.found[:, :, None]
    count = here.sum(axis=0)
    mean = (aligned * here).sum(axis=0) / count
    with np.errstate(invalid="ignore", divide="ignore"):
        between = np.sqrt((here * (aligned - mean) ** 2).sum(axis=0) / (count - 1))
    return AlignedTopics(mean, np.where(count > 1, between, np.nan), matches)


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
    first: Draws,
    second: Draws,
    *,
    chains: tuple[int, int] = (0, 0),
    max_distance: float = MATCH_LIMIT,
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
    costs = distances(*_in_one_vocabulary(first, second, chains))
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

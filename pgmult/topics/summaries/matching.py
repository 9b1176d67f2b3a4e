"""The labels of topics are arbitrary: topics matched between chains, and between runs.

Topics are compared by the total variation distance of their posterior mean word probabilities,
0 where they are equal and 1 where they have no word in common, and assigned one to one so that the
summed distance is smallest; pairs farther apart than 0.5 are none (`pgmult.sampling.labels`). Where
groups of documents word topics each in their own way, the group counts that is farthest apart.

Chains of a topic model may be in different modes: a topic of one chain may be missing in another.
Draws of a topic are pooled over the chains that found it.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from pgmult.core.answers import Answer
from pgmult.core.comparison import Comparison
from pgmult.core.estimands import Estimand
from pgmult.core.tabled import Column, Table, number
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_positive_int
from pgmult.sampling.labels import MATCH_LIMIT, LabelMatches, distances, match_rows
from pgmult.sampling.posterior import Posterior
from pgmult.topics import runs

_COMPARED_DRAWS = 20  # of either run, whose topics are compared one by one
_MATCHED_DRAWS = 100  # of a chain: more do not move a mean that is compared at a distance of 0.5


def best_chain(run: Posterior) -> int:
    """The place of the chain to read where one is shown: its mean log likelihood is the best.

    0 where draws hold none. All chains are of one model, so their scores of words left out differ
    as their log likelihoods do: on docstrings, K = 20, importance-sampled leave-one-out and WAIC
    chose the same of four chains in five runs of five, and went no closer with words held out.
    """
    if runs.as_draws(run).num_draws == 0:
        return 0
    log_likelihood = run.sample_stats.get("log_likelihood")
    return 0 if log_likelihood is None else int(np.argmax(np.mean(log_likelihood, axis=1)))


def mean_topics(run: Posterior, chain: int = 1, *, max_draws: int | None = None) -> FloatArray:
    """Posterior mean of the word probabilities in one chain, ``(num_topics, num_words)``.

    Chains count from 1. Of `max_draws` draws, evenly spread, where given.
    """
    return runs.mean_of(runs.each_draw(run, "topics", runs.as_chain(run, chain), max_draws))


def match_topics(run: Posterior) -> LabelMatches:
    """Match the topics of every chain of a run, or of ``topics`` alone, to the best one's.

    A topic with keywords has its number in every chain, and is matched to none but itself. Two
    chains may agree on a topic's average words and differ in those of single groups; then their
    topics are different.
    """
    runs.as_draws(run, "topics")
    best, worst = best_chain(run), "group_topics" in run
    name, chains = "group_topics" if worst else "topics", range(run.num_chains)
    draws = (runs.each_draw(run, name, c, _MATCHED_DRAWS) for c in chains)
    means = np.stack(list(map(runs.mean_of, draws)))
    means = means.swapaxes(1, 2) if worst else means
    size, keywords = means.shape[1], len(run.coords.get("keyword_topic", ()))
    bounds = [*range(min(keywords + 1, size)), size]
    parts = [match_rows(means[:, a:b], best, worst=worst) for a, b in pairwise(bounds)]
    order = np.concatenate([of.order + a for of, a in zip(parts, bounds, strict=False)], axis=1)
    return replace(parts[0], order=order, distance=np.concatenate([x.distance for x in parts], 1))


@dataclass(frozen=True, slots=True, eq=False)
class AlignedChain:
    """One chain as the others see it.

    Attributes
    ----------
    chain : int
        Its place in arrays, from 0.
    order : int array, ``(topic,)``, or the slice of all
        Its topic for each topic of the reference.
    found : bool array, ``(topic,)``, or True
        Whether it found that topic; if not, its draws are not used for it.
    """

    chain: int
    order: Any
    found: Any

    def place(self, values: FloatArray, axis: int = -1) -> FloatArray:
        """Values of topics in the reference's order, nan for those that the chain did not find."""
        placed = np.where(self.found, np.moveaxis(values, axis, -1)[..., self.order], np.nan)
        return np.moveaxis(placed, -1, axis)


def aligned_chains(run: Posterior, chain: int | None, name: str) -> list[AlignedChain]:
    """The chain asked for as it is, or all of them with their topics matched to the best one's.

    Parameters
    ----------
    run : Posterior
        With `name`, and with ``topics`` where chains are several.
    chain : int or None
        Its number, from 1; None for all.
    name : str
        A variable that is there.
    """
    runs.as_draws(run, name)
    if chain is None and run.num_chains > 1:
        if "topics" not in run:
            raise runs.not_kept(run, "'topics', by which chains are aligned, or chain be given")
        matches = match_topics(run)
        return list(map(AlignedChain, range(run.num_chains), matches.order, matches.found))
    return [AlignedChain(0 if chain is None else runs.as_chain(run, chain), slice(None), True)]


def scope_of(chains: list[AlignedChain]) -> str:
    """Say which chains an interval is over."""
    if len(chains) == 1:
        return f"within chain {chains[0].chain + 1}"
    return f"over those of {len(chains)} chains that found the topic"


def each_aligned(
    run: Posterior, name: str, chains: list[AlignedChain], max_draws: int
) -> Iterator[tuple[AlignedChain, FloatArray]]:
    """Draws of a variable, of every chain as many, with the chain that each is of."""
    share = runs.share_of_draws(max_draws, len(chains))
    return ((one, of) for one in chains for of in runs.each_draw(run, name, one.chain, share))


def placed_draws(
    run: Posterior, name: str, chains: list[AlignedChain], max_draws: int, axis: int = -1
) -> Iterator[FloatArray]:
    """Yield draws with topics (on `axis`) in the reference's order: see `AlignedChain.place`."""
    draws = each_aligned(run, name, chains, max_draws)
    return (one.place(draw, axis) for one, draw in draws)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RunMatches(Answer):
    """Matches of the topics of two runs; print it to see their words.

    Attributes
    ----------
    pairs : int array, ``(num_pairs, 2)``
        Places of topics, from 0, in the first and the second run, the closest pair first.
    distance : array, ``(num_pairs,)``
        Total variation distance of each pair's posterior mean topics.
    only_first, only_second : int arrays
        Places of topics of each run that have no partner.
    words : pair of lists of lists of str
        The most probable words of each topic of either run.
    draws : array, ``(num_draws, num_pairs)``
        Distances of single draws of each pair, which differ by what either run does not know.
    """

    pairs: IntArray
    distance: FloatArray
    only_first: IntArray
    only_second: IntArray
    words: tuple[list[list[str]], list[list[str]]]
    draws: FloatArray

    def figure(self) -> Any:
        """Draw the distances of single draws of each pair."""
        names = [f"{i + 1} {' '.join(self.words[0][i][:3])}" for i in self.pairs[:, 0].tolist()]
        caption = "Total variation distance of single draws of topics that match, 90 % intervals."
        return Estimand(self.draws, ("topic",), {"topic": names}, caption=caption).figure()

    def table(self) -> Table:
        """One row per pair; then a row for each topic without a partner."""
        one, other = ([None] * len(alone) for alone in (self.only_first, self.only_second))
        first = [*(self.pairs[:, 0] + 1).tolist(), *(self.only_first + 1).tolist(), *other]
        second = [*(self.pairs[:, 1] + 1).tolist(), *one, *(self.only_second + 1).tolist()]
        gaps = [math.nan] * (len(first) - len(self.pairs))
        columns = [Column("distance", [*self.distance, *gaps], "distance", number(2))]
        sides = {"first": first, "second": second}
        for (name, numbers), words in zip(sides.items(), self.words, strict=True):
            texts = ["" if k is None else " ".join(words[k - 1]) for k in numbers]
            cells = ["" if k is None else str(k) for k in numbers]
            columns += [Column(name, numbers, name, cells), Column(f"{name}_words", texts, "words")]
        only, others = len(self.only_first), len(self.only_second)
        alone = f"{only} of the first run alone and {others} of the second"
        measure = "Distance: total variation, 0 the same, 1 no word in common."
        return Table(f"{len(self.pairs)} topics found in both runs, {alone}. {measure}", columns)


def compare(
    run: Posterior, other: Posterior | None = None, *, num_words: int = 8, random_seed: int = 0
) -> RunMatches | Comparison:
    """Match the topics of two runs, or compare one run with simple models.

    Parameters
    ----------
    run, other : Posterior
        With ``topics``, of each the chain with the best log likelihood. Words are compared by name;
        a word of one run alone has probability 0 in the other. The runs may differ in number of
        topics and in vocabulary. Without another run, `run` is compared with LDA and word
        frequencies on words held out of short runs: see `pgmult.topics.scores.rivals`.
    num_words : int
        Shown of each topic.
    random_seed : int
        Of the short runs.

    Raises
    ------
    ValueError
        If the runs have no word in common.
    """
    if other is None:
        from pgmult.topics.scores.rivals import compare_with_rivals

        return compare_with_rivals(runs.as_draws(run), random_seed=random_seed)
    num_words = as_positive_int(num_words, "num_words")
    both = runs.as_draws(run, "topics"), runs.as_draws(other, "topics", argument="other")
    means = [runs.over_versions(mean_topics(one, best_chain(one) + 1)) for one in both]
    names = [runs.names_along(one, "word", m.shape[1]) for one, m in zip(both, means, strict=True)]
    if set(names[0]).isdisjoint(names[1]):
        had = f"one has {names[0][0]!r}, the other {names[1][0]!r}"
        raise ValueError(f"the runs must have words in common: {had}")
    costs = _distances(names, means)
    at = linear_sum_assignment(np.minimum(costs, MATCH_LIMIT))
    closest = np.argsort(costs[at], kind="stable")
    closest = closest[costs[at][closest] < MATCH_LIMIT]
    pairs = np.column_stack(at)[closest]
    top = zip(names, (runs.most_probable(mean, num_words) for mean in means), strict=True)
    one, two = ([[of[j] for j in row] for row in rows] for of, rows in top)
    drawn = (runs.each_draw(of, "topics", best_chain(of), _COMPARED_DRAWS) for of in both)
    single = (map(runs.over_versions, of) for of in zip(*drawn, strict=False))
    apart = [_distances(names, list(of)) for of in single]
    alone = zip(costs.shape, pairs.T, strict=True)
    first, second = (np.setdiff1d(range(size), side) for size, side in alone)
    draws = np.reshape([of[tuple(pairs.T)] for of in apart], (-1, len(pairs)))
    return RunMatches(pairs, costs[at][closest], first, second, (one, two), draws)


def _distances(words: Sequence[list[str]], topics: Sequence[FloatArray]) -> FloatArray:
    """Distances between the topics of two runs over the words of either."""
    number = {name: j for j, name in enumerate(dict.fromkeys([*words[0], *words[1]]))}
    wide = [np.zeros((len(of), len(number))) for of in topics]
    for names, of, values in zip(words, wide, topics, strict=True):
        of[:, [number[name] for name in names]] = values
    return distances(*wide)

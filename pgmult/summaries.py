"""What a posterior of topics says: top words, correlations, and topics matched between chains.

The labels of topics are arbitrary, and so is the order of sticks on which `Sigma` lives. So words
are summarised within a chain, correlations are those of *simulated* topic proportions, and chains
are compared topic by topic after the best matching of their mean topics.

>>> import numpy as np
>>> draws = {"topics": np.tile([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]], (1, 5, 1, 1))}
>>> [[(word, round(mean, 2)) for word, mean, sd in topic] for topic in top_words(draws, 2)]
[[('0', 0.7), ('1', 0.2)], [('2', 0.8), ('0', 0.1)]]
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import squareform

from pgmult._validate import as_generator, as_positive_int
from pgmult.links import StickBreaking
from pgmult.typing import FloatArray, IntArray, Link

__all__ = [
    "PairCorrelation",
    "TopWord",
    "TopicCorrelations",
    "TopicMatches",
    "match_topics",
    "similar_together",
    "strongest_pairs",
    "top_words",
    "topic_correlations",
    "topic_labels",
]

Draws = Mapping[str, NDArray[np.generic]]


class TopWord(NamedTuple):
    """A word of a topic, its posterior mean probability and posterior standard deviation."""

    word: str
    mean: float
    sd: float


def top_words(posterior: Draws, num_words: int = 10, *, chain: int = 0) -> list[list[TopWord]]:
    """The most probable words of each topic by posterior mean, in one chain.

    Parameters
    ----------
    posterior : Posterior, or mapping with ``topics``, ``(chain, draw, topic, word)``
    num_words : int
    chain : int

    Returns
    -------
    list of lists of TopWord
        Topic by topic, most probable word first. Where the corpus has no vocabulary, a word's name
        is its number.
    """
    num_words = as_positive_int(num_words, "num_words")
    topics = _topics(posterior)[chain]
    names = getattr(posterior, "coords", {}).get("word", range(topics.shape[2]))
    means = topics.mean(axis=0)
    result = []
    for k, mean in enumerate(means):
        best = np.argsort(-mean, kind="stable")[:num_words]
        sds = topics[:, k, best].std(axis=0)
        result.append(
            [
                TopWord(str(names[j]), float(mean[j]), float(sd))
                for j, sd in zip(best, sds, strict=True)
            ]
        )
    return result


@dataclass(frozen=True, slots=True, eq=False)
class TopicCorrelations:
    """Posterior of the correlation matrix of topic proportions.

    Attributes
    ----------
    mean, lower, upper : arrays, ``(topic, topic)``
        Posterior mean and the ends of the central interval.
    probability : float
        Of the interval.
    """

    mean: FloatArray
    lower: FloatArray
    upper: FloatArray
    probability: float


def topic_correlations(
    rng: np.random.Generator,
    posterior: Draws,
    *,
    link: Link | None = None,
    chain: int = 0,
    num_simulated: int = 2000,
    max_draws: int = 100,
    probability: float = 0.9,
) -> TopicCorrelations:
    """Correlations between topics over documents, on simulated proportions.

    For each draw of (mu, Sigma), `num_simulated` documents theta = link(psi), psi ~ N(mu, Sigma),
    are simulated and their correlation matrix is taken. All draws share the same standard normals,
    so their Monte Carlo error, about ``1 / sqrt(num_simulated)``, hardly widens the interval.

    Parameters
    ----------
    rng : numpy.random.Generator
    posterior : Posterior, or mapping with ``mu`` and ``Sigma``
        ``(chain, draw, stick)`` and ``(chain, draw, stick, stick)``.
    link : Link, optional
        The model's; `StickBreaking` by default.
    chain : int
    num_simulated : int
    max_draws : int
        At most so many draws are used, evenly spread over the chain.
    probability : float in (0, 1)

    Returns
    -------
    TopicCorrelations
        nan for a topic whose proportion does not vary.
    """
    if not 0.0 < probability < 1.0:
        raise ValueError(f"probability must be in (0, 1), got {probability}")
    mu = np.asarray(posterior["mu"][chain], dtype=np.float64)
    num_draws, sticks = mu.shape
    link = StickBreaking() if link is None else link
    noise = as_generator(rng).standard_normal((num_simulated, sticks))
    used = np.unique(np.linspace(0, num_draws - 1, min(max_draws, num_draws)).astype(np.int64))
    correlations = []
    for i in used:
        factor = np.linalg.cholesky(np.asarray(posterior["Sigma"][chain, i], dtype=np.float64))
        theta = link.probs(mu[i] + noise @ factor.T)
        with np.errstate(invalid="ignore", divide="ignore"):
            correlations.append(np.corrcoef(theta, rowvar=False))
    tail = 0.5 * (1.0 - probability)
    lower, upper = np.quantile(correlations, [tail, 1.0 - tail], axis=0)
    return TopicCorrelations(np.mean(correlations, axis=0), lower, upper, probability)


class PairCorrelation(NamedTuple):
    """Two topics and the posterior of their correlation."""

    first: int
    second: int
    mean: float
    lower: float
    upper: float


def strongest_pairs(
    correlations: TopicCorrelations, num_pairs: int = 5
) -> tuple[list[PairCorrelation], list[PairCorrelation]]:
    """The pairs of topics with the largest positive and the largest negative mean correlations."""
    rows, columns = np.triu_indices(len(correlations.mean), k=1)
    pairs = [
        PairCorrelation(
            int(i),
            int(j),
            float(correlations.mean[i, j]),
            float(correlations.lower[i, j]),
            float(correlations.upper[i, j]),
        )
        for i, j in zip(rows, columns, strict=True)
    ]
    ascending = sorted(pairs, key=lambda pair: pair.mean)
    positive = [pair for pair in reversed(ascending) if pair.mean > 0.0]
    negative = [pair for pair in ascending if pair.mean < 0.0]
    return positive[:num_pairs], negative[:num_pairs]


def similar_together(correlations: TopicCorrelations) -> IntArray:
    """An order of the topics, ``(topic,)``, in which correlated ones stand side by side.

    The leaves of the average-linkage tree of distances 1 - correlation.
    """
    distance = 1.0 - np.nan_to_num(correlations.mean)
    np.fill_diagonal(distance, 0.0)
    tree = linkage(squareform(0.5 * (distance + distance.T)), "average", optimal_ordering=True)
    return np.asarray(leaves_list(tree), dtype=np.int64)


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

    The assignment minimises the summed total variation distance between posterior mean topics.

    Parameters
    ----------
    posterior : Posterior, or mapping with ``topics``, ``(chain, draw, topic, word)``
    """
    means = np.stack([chain.mean(axis=0) for chain in _topics(posterior)])
    order = np.empty(means.shape[:2], dtype=np.int64)
    distance = np.empty(means.shape[:2])
    for c, topics in enumerate(means):
        costs = np.stack([0.5 * np.abs(topics - topic).sum(axis=1) for topic in means[0]])
        reference, order[c] = linear_sum_assignment(costs)
        distance[c] = costs[reference, order[c]]
    return TopicMatches(order, distance)


def topic_labels(words: Sequence[Sequence[TopWord]], num_words: int = 3) -> list[str]:
    """A short name for each topic: its first words."""
    return [" ".join(word.word for word in topic[:num_words]) for topic in words]


def _topics(posterior: Draws) -> FloatArray:
    if "topics" not in posterior:
        raise KeyError(f"the posterior holds no 'topics', only {', '.join(posterior)}")
    return np.asarray(posterior["topics"])

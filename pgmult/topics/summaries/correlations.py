"""Correlations between topics over documents, of *simulated* topic proportions.

`Sigma` is of psi, not of proportions: of sticks, whose order is arbitrary, or of coordinates of a
softmax, to which any number may be added. The proportions of one document's topics depend on all of
its psi; so documents are simulated from every draw of (mu, Sigma), whatever the link.

Shares of one whole go down when another goes up, so topics that have nothing to do with each other
are correlated negatively. With mean shares m, independent ones normalised (a Dirichlet) show

    r_ij = -sqrt(m_i m_j / ((1 - m_i) (1 - m_j))),

whatever their concentration; what a model says beyond that is the `excess`.
"""

import warnings
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from pgmult.core.arguments import as_kind, as_probability, as_repeats, as_seed
from pgmult.core.estimands import Estimand
from pgmult.core.figures.pairs import Matrix
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_positive_int
from pgmult.sampling.posterior import Posterior
from pgmult.topics.runs import as_draws, of_chain, share_of_draws, spread, topic_places
from pgmult.topics.summaries.effects import topic_names
from pgmult.topics.summaries.matching import aligned_chains, scope_of


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class TopicCorrelations(Estimand):
    """Posterior of the correlation matrix of topic proportions.

    Its axes are the topics, twice. An entry is nan where a draw's chain did not find a topic, or
    where the topic's proportion does not vary.

    Attributes
    ----------
    draws, axes, labels, caption, probability
        As in `pgmult.core.estimands.Estimand`.
    independent : array, ``(topic, topic)``
        Correlations of unrelated topics with the same mean shares.
    scope : str
        What the interval is over: draws within one chain, or over the chains that found a topic.
    """

    independent: FloatArray
    scope: str

    def take(self, topics: IntArray) -> "TopicCorrelations":
        """The same of some topics, given by their numbers, in this order."""
        numbers = topic_places(topics, len(self.independent))
        block = np.ix_(numbers, numbers)
        labels = {axis: [self.labels[axis][k] for k in numbers] for axis in self.labels}
        draws, independent = self.draws[:, block[0], block[1]], self.independent[block]
        return replace(self, draws=draws, labels=labels, independent=independent)

    def excess(self) -> "TopicCorrelations":
        """Correlations beyond `independent`: 0 where topics are unrelated."""
        nothing = np.zeros_like(self.independent)
        return replace(self, draws=self.draws - self.independent, independent=nothing)

    def figure(self) -> Matrix:
        """All pairs, similar topics next to each other."""
        order = similar_together(self)
        labels = [str(self.labels["topic"][k]) for k in order]
        block = np.ix_(order, order)
        mean, lower, upper = (x[block] for x in (self.mean, *self.interval()))

        def title(i: int, j: int) -> str:
            pair = PairCorrelation(i, j, mean[i, j], lower[i, j], upper[i, j])
            return f"{labels[i].split()[0]} and {labels[j].split()[0]}: {pair}"

        places = range(len(order))
        return Matrix(
            mean, (lower < 0.0) & (upper > 0.0), labels,
            [[title(i, j) for j in places] for i in places],
            f"correlation over documents (dot: {100 * self.probability:g} % interval contains 0)",
        )  # fmt: skip


def topic_correlations(
    run: Posterior, *, chain: int | None = None, num_simulated: int = 2000, max_draws: int = 400,
    probability: float = 0.9, random_seed: int = 0,
) -> TopicCorrelations:  # fmt: skip
    """Correlations between topics over documents, on simulated proportions.

    For each draw of (mu, Sigma), `num_simulated` documents theta = link(psi), psi ~ N(mu, Sigma),
    are simulated and their correlation matrix is taken. All draws share the same standard normals,
    so their Monte Carlo error, about ``1 / sqrt(num_simulated)``, hardly widens the interval.

    Parameters
    ----------
    run : Posterior
        With ``mu`` and ``Sigma``, ``(chain, draw, stick)`` and ``(chain, draw, stick, stick)``, or
        as many coordinates as the model's link takes.
    chain : int, optional
        One chain alone, by its number from 1. If left out, chains are aligned topic by topic
        with the best one, and a pair's draws are those of the chains that found both.
    num_simulated : int
    max_draws : int
        Draws to use at most, evenly spread over chains.
    probability : float in (0, 1)
    random_seed : int

    Returns
    -------
    TopicCorrelations
        nan for a topic whose proportion does not vary.

    Raises
    ------
    ValueError
        If the posterior does not know its model, or the model has no one mean of psi.
    """
    probability = as_probability(probability, "probability")
    num_simulated = as_repeats(num_simulated, "num_simulated", minimum=2)
    link = as_draws(run).link
    chains = aligned_chains(run, chain, "mu")
    if len(run.dims["mu"]) != 3:
        got = f"axes {run.dims['mu']} of {type(run.model).__name__}"
        raise ValueError(f"mu must be one mean of psi, (chain, draw, stick), got {got}")
    rng = np.random.default_rng(as_seed(random_seed))
    normals = rng.standard_normal((num_simulated, run["mu"].shape[2]))
    correlations, shares = [], []
    for one in chains:
        kept = of_chain(run, one.chain, "mu", "Sigma").values()
        mu, Sigma = (np.asarray(of, np.float64) for of in kept)
        for i in spread(len(mu), share_of_draws(max_draws, len(chains))):
            theta = link.probs(mu[i] + normals @ np.linalg.cholesky(Sigma[i]).T)[:, one.order]
            with np.errstate(invalid="ignore", divide="ignore"):
                found = np.corrcoef(theta, rowvar=False)
            is_found = np.broadcast_to(one.found, len(found))
            correlations.append(np.where(is_found & is_found[:, None], found, np.nan))
            shares.append(np.where(is_found, theta.mean(axis=0), np.nan))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a share that never varies is all nan
        independent = _independent(np.nanmean(shares, axis=0))
    axes, names = ("topic", "other_topic"), topic_names(run, chain)
    return TopicCorrelations(
        np.stack(correlations), axes, dict.fromkeys(axes, names),
        caption="Correlations of topics' shares over documents.", probability=probability,
        independent=independent, scope=scope_of(chains),
    )  # fmt: skip


def _independent(shares: FloatArray) -> FloatArray:
    """Correlations of a Dirichlet of these mean shares; 1 on the diagonal."""
    odds = np.sqrt(shares / (1.0 - shares))
    result = -np.outer(odds, odds)
    np.fill_diagonal(result, 1.0)
    return result


class PairCorrelation(NamedTuple):
    """Two topics and the posterior of their correlation."""

    first: int
    second: int
    mean: float
    lower: float
    upper: float

    def __str__(self) -> str:
        """Such as +0.31 [+0.24, +0.37]."""
        return f"{self.mean:+.2f} [{self.lower:+.2f}, {self.upper:+.2f}]"


def strongest_pairs(
    correlations: TopicCorrelations, num_pairs: int = 5
) -> tuple[list[PairCorrelation], list[PairCorrelation]]:
    """The pairs of topics with the largest positive and the largest negative mean correlations."""
    as_kind(correlations, "correlations", TopicCorrelations)
    num_pairs = as_positive_int(num_pairs, "num_pairs", minimum=0)
    places = np.triu_indices(len(correlations.independent), k=1)
    values = (x[places] for x in (correlations.mean, *correlations.interval()))
    rows = zip(*(x.tolist() for x in (*places, *values)), strict=True)
    ascending = sorted((PairCorrelation(*row) for row in rows), key=lambda pair: pair.mean)
    positive = [pair for pair in reversed(ascending) if pair.mean > 0.0]
    negative = [pair for pair in ascending if pair.mean < 0.0]
    return positive[:num_pairs], negative[:num_pairs]


def similar_together(correlations: TopicCorrelations) -> IntArray:
    """An order of the topics, ``(topic,)``, with correlated ones next to each other.

    The leaves of the average-linkage tree of distances 1 - correlation.
    """
    distance = 1.0 - np.nan_to_num(correlations.mean)
    np.fill_diagonal(distance, 0.0)
    tree = linkage(squareform(0.5 * (distance + distance.T)), "average", optimal_ordering=True)
    return np.asarray(leaves_list(tree), dtype=np.int64)

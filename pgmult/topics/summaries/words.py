"""Scores of words in topics: how probable, how exclusive, how far above their common share.

With phi the word probabilities of one draw, `shares` the topics' shares of all tokens and
p = shares phi the probabilities of words in the whole corpus, as the model has them::

    probability  phi_kw
    lift         phi_kw / p_w                               (Taddy 2012)
    relevance    w log phi_kw + (1 - w) log(phi_kw / p_w)   (Sievert and Shirley 2014, section 3.1)
    FREX         1 / (w / ECDF_k(e_kw) + (1 - w) / ECDF_k(phi_kw)),  e_kw = phi_kw / sum_j phi_jw
                                                            (Bischof and Airoldi 2012, eq. 1)

Scores are computed for each draw and then averaged. A rare word that moves between topics from draw
to draw therefore has a low average exclusivity, and no further shrinkage is needed.

>>> topics = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])
>>> lift(topics, [0.5, 0.5]).round(2).tolist()
[[1.75, 1.33, 0.22], [0.25, 0.67, 1.78]]
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pgmult.core.arguments import as_choice, as_list, as_share, as_strings, brief
from pgmult.core.estimands import Estimand
from pgmult.core.typing import FloatArray
from pgmult.core.validate import as_nonnegative, as_positive_int
from pgmult.sampling.posterior import Posterior
from pgmult.topics.draws import Draws, as_draws, names_along
from pgmult.topics.summaries.matching import AlignedChain, aligned_chains, each_aligned, scope_of


def keywords(posterior: Posterior, *, probability: float = 0.9) -> Estimand:
    """How strongly topics use the keywords that they were given.

    A topic's tokens come from its keywords with a probability that is learned, its *strength*: near
    0 the texts do not use them together, and near 1 the topic has hardly other words. Such a topic
    has its number, and its name, in every chain.

    Parameters
    ----------
    posterior : Posterior
        Of a model with ``keywords=``, with ``keyword_shares`` and ``topic_shares``.
    probability : float in (0, 1)
        Of the intervals.

    Returns
    -------
    Estimand
        By ``topic`` and ``share``: "strength", and "of all words".
    """
    as_draws(posterior, "keyword_shares", "topic_shares")
    strength, shares = (
        np.asarray(posterior.stack(name), dtype=np.float64)
        for name in ("keyword_shares", "topic_shares")
    )
    names = names_along(posterior, "keyword_topic", strength.shape[1])
    return Estimand(
        np.stack([strength, shares[:, : len(names)]], axis=2), ("topic", "share"),
        {"topic": names, "share": ["strength", "of all words"]}, probability=probability,
        caption="Topics with keywords: how much of a topic comes as its keywords, and its share.",
    )  # fmt: skip


def lift(topics: ArrayLike, shares: ArrayLike) -> FloatArray:
    """How many times more probable a word is in a topic than in the whole corpus.

    Parameters
    ----------
    topics : array, ``(num_topics, num_words)``
    shares : array, ``(num_topics,)``
        Sum to 1.

    Returns
    -------
    array, ``(num_topics, num_words)``
    """
    topics = as_topics(topics)
    return np.asarray(topics / (_as_shares(shares, topics) @ topics))


def relevance(topics: ArrayLike, shares: ArrayLike, weight: float = 0.6) -> FloatArray:
    """Sievert and Shirley's relevance: `weight` of the log probability, the rest of the log lift.

    Parameters and result are as in `lift`; `weight` is their lambda, in [0, 1].
    """
    topics = as_topics(topics)
    common = np.log(_as_shares(shares, topics) @ topics)
    return np.asarray(np.log(topics) - (1.0 - as_share(weight, "weight")) * common)


def frex(topics: ArrayLike, weight: float = 0.5) -> FloatArray:
    """Harmonic mean of a word's ranks in a topic by probability and by exclusivity, in (0, 1].

    Parameters
    ----------
    topics : array, ``(num_topics, num_words)``
    weight : float
        Of exclusivity, in [0, 1].

    Returns
    -------
    array, ``(num_topics, num_words)``
        Ranks are shares of the vocabulary, 1 the best; ties share their mean rank.
    """
    topics = as_topics(topics)
    weight = as_share(weight, "weight")
    exclusive = _ranks(topics / topics.sum(axis=0))
    return np.asarray(1.0 / (weight / exclusive + (1.0 - weight) / _ranks(topics)))


def as_topics(topics: ArrayLike) -> FloatArray:
    """Word probabilities with zeros, which come from rounding, replaced by the least number."""
    probs = as_nonnegative(topics, "topics")
    if probs.ndim != 2 or not probs.size:
        raise ValueError(f"topics must have shape (num_topics, num_words), got {probs.shape}")
    return np.maximum(probs, np.finfo(np.float64).tiny)


def _as_shares(shares: ArrayLike, topics: FloatArray) -> FloatArray:
    """Shares, checked: one for each topic."""
    array = as_nonnegative(shares, "shares")
    if array.shape != topics.shape[:1]:
        raise ValueError(
            f"shares must be one for each of the {len(topics)} topics, got shape {array.shape}"
        )
    return array


def names_of(words: Any, argument: str = "words") -> list[list[str]]:
    """The top words of each topic as strings."""
    result = []
    for topic in as_list(words, argument, "words of topics"):
        if not isinstance(topic, list | tuple | np.ndarray) or isinstance(topic, TopWord):
            raise TypeError(
                f"{argument} must be a list of words for each topic, got {brief(topic)} for one"
            )
        names = [word.word if isinstance(word, TopWord) else word for word in topic]
        result.append(as_strings(names, argument))
    return result


def _ranks(values: FloatArray) -> FloatArray:
    """Mean ranks within rows, as shares of the row's length."""
    order = np.argsort(values, axis=1)
    ordered = np.take_along_axis(values, order, axis=1)
    size = values.shape[1]
    places = np.broadcast_to(np.arange(1.0, size + 1.0), values.shape)
    rises = ordered[:, 1:] > ordered[:, :-1]
    if not rises.all():
        edge = np.ones((len(values), 1), dtype=np.bool_)
        first = np.where(np.hstack([edge, rises]), places, 0.0)
        last = np.where(np.hstack([rises, edge]), places, np.inf)
        first = np.maximum.accumulate(first, axis=1)
        last = np.minimum.accumulate(last[:, ::-1], axis=1)[:, ::-1]
        places = 0.5 * (first + last)
    ranks = np.empty(values.shape)
    np.put_along_axis(ranks, order, places / size, axis=1)
    return ranks


_Score = Callable[[FloatArray, FloatArray, Any], FloatArray]

SCORES: dict[str, tuple[float | None, _Score]] = {
    "probability": (None, lambda topics, shares, weight: topics),
    "frex": (0.5, lambda topics, shares, weight: frex(topics, weight)),
    "lift": (None, lambda topics, shares, weight: lift(topics, shares)),
    "relevance": (0.6, relevance),
}
"""Each score's usual weight, if it has one, and the score of one draw of topics and shares."""


@dataclass(frozen=True, slots=True, eq=False)
class WordScores:
    """A score of every word in every topic.

    Attributes
    ----------
    mean, sd : arrays, ``(num_topics, num_words)``
        Over posterior draws.
    names : list of str
        The words.
    scope : str
        What `sd` is over: draws within one chain, or over the chains that found a topic.
    """

    mean: FloatArray
    sd: FloatArray
    names: list[str]
    scope: str

    def top(self, num_words: int) -> list[list["TopWord"]]:
        """The words with the highest mean score, topic by topic."""
        num_words = as_positive_int(num_words, "num_words")
        result = []
        for mean, sd in zip(self.mean, self.sd, strict=True):
            best = np.argsort(-mean, kind="stable")[:num_words]
            result.append([TopWord(self.names[j], float(mean[j]), float(sd[j])) for j in best])
        return result


class TopWord(NamedTuple):
    """A word of a topic, and the posterior mean and standard deviation of its score there."""

    word: str
    mean: float
    sd: float


def word_scores(
    posterior: Draws,
    by: str = "probability",
    *,
    weight: float | None = None,
    chain: int | None = None,
    max_draws: int = 100,
) -> WordScores:
    """Score every word of every topic, draw by draw.

    Parameters
    ----------
    posterior : Posterior, or mapping with ``topics``, ``(chain, draw, topic, word)``
        Lift and relevance take the topics' sizes from ``topic_shares``; where they were not kept,
        all topics count as equally large.
    by : {"probability", "frex", "lift", "relevance"}
    weight : float in [0, 1], optional
        For FREX of exclusivity, 0.5 if left out; for relevance lambda, 0.6 if left out.
    chain : int, optional
        One chain alone. If left out, chains are aligned topic by topic with the best one, and each
        topic's draws are those of the chains that found it.
    max_draws : int
        Draws to use at most, evenly spread over chains.

    Returns
    -------
    WordScores
        Where the corpus has no vocabulary, a word's name is its number.
    """
    as_choice(by, "by", SCORES)
    usual, score = SCORES[by]
    if weight is None:
        weight = usual
    elif usual is None:
        raise ValueError(f"weight must be left out, for {by} has none, got {brief(weight)}")
    chains = aligned_chains(posterior, chain, "topics")
    count, mean, squares = np.zeros(1), np.zeros((1, 1)), np.zeros((1, 1))
    for one, topics, shares in _topics_and_shares(posterior, chains, max_draws):
        values = score(topics, shares, weight)[one.order]
        here = np.broadcast_to(one.found, len(values))[:, None]
        count = count + here
        change = here * (values - mean)
        mean = mean + change / np.maximum(count, 1)
        squares = squares + change * (values - mean)
    names = names_along(posterior, "word", mean.shape[1])
    return WordScores(mean, np.sqrt(squares / count), names, scope_of(chains))


def _topics_and_shares(
    posterior: Draws, chains: list[AlignedChain], max_draws: int
) -> Iterator[tuple[AlignedChain, FloatArray, FloatArray]]:
    draws = each_aligned(posterior, "topics", chains, max_draws)
    if "topic_shares" in as_draws(posterior):
        shares = each_aligned(posterior, "topic_shares", chains, max_draws, ["topics"])
        return ((one, t, s) for (one, t), (_, s) in zip(draws, shares, strict=True))
    return ((one, t, np.full(len(t), 1.0 / len(t))) for one, t in draws)


def top_words(
    posterior: Draws,
    num_words: int = 10,
    *,
    by: str = "probability",
    weight: float | None = None,
    chain: int | None = None,
    max_draws: int = 100,
) -> list[list[TopWord]]:
    """The words that score highest in each topic by posterior mean.

    Parameters
    ----------
    num_words : int
    posterior, by, weight, chain, max_draws
        As in `word_scores`.

    Returns
    -------
    list of lists of TopWord
        Topic by topic, best word first, with posterior mean and sd of the score.
    """
    scores = word_scores(posterior, by, weight=weight, chain=chain, max_draws=max_draws)
    return scores.top(num_words)


def topic_labels(words: Sequence[Sequence[TopWord]], num_words: int = 3) -> list[str]:
    """A short name for each topic: its first words."""
    num_words = as_positive_int(num_words, "num_words")
    return [" ".join(topic[:num_words]) for topic in names_of(words)]

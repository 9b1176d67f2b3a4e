"""Scores of words in topics: how probable, and how exclusive.

With phi the word probabilities of one draw::

    probability  phi_kw
    FREX         1 / (w / ECDF_k(e_kw) + (1 - w) / ECDF_k(phi_kw)),  e_kw = phi_kw / sum_j phi_jw
                                                            (Bischof and Airoldi 2012, eq. 1)

Scores are computed for each draw and then averaged. A rare word that moves between topics from draw
to draw therefore has a low average exclusivity, and no further shrinkage is needed.

>>> topics = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])
>>> frex(topics).round(2).tolist()
[[1.0, 0.67, 0.33], [0.4, 0.57, 1.0]]

Words may also be judged by a reference corpus, their *coherence*. A `Corpus` keeps no order of
words, so words occur together when they are in one document: the window of every co-occurrence here
is the document. With D(v) the number of reference documents that have word v, D(v, u) those that
have both, p = D / number of documents, and words in the order of their scores, v_1 the best::

    NPMI    mean over l < m of  log[p(v_m, v_l) / (p(v_m) p(v_l))] / -log p(v_m, v_l)
                                            (Bouma 2009; Lau, Newman and Baldwin 2014)

Coherence in the corpus that a model was trained on is biased upwards: use another of the same kind.

>>> from pgmult.topics import as_corpus
>>> corpus = as_corpus([[1, 1, 0], [2, 1, 0], [0, 0, 1], [0, 1, 1]], ["salt", "pan", "goal"])
>>> npmi([["salt", "pan"], ["salt", "goal"]], corpus).round(3).tolist()
[0.415, -1.0]
"""

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pgmult.core.arguments import as_choice, as_kind, as_list, as_share, as_strings, brief
from pgmult.core.estimands import Estimand
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_nonnegative, as_positive_int
from pgmult.sampling.posterior import Posterior
from pgmult.topics.data.corpus import Corpus
from pgmult.topics.runs import as_draws, most_probable, names_along, over_versions
from pgmult.topics.summaries.matching import aligned_chains, each_aligned, scope_of

_MOST_TOPICS, _NAMED_WORDS = 0.6, 8  # that use words alike, and how many of these are named


def keywords(run: Posterior, *, probability: float = 0.9) -> Estimand:
    """Estimate how strongly topics use their keywords.

    A topic's tokens come from its keywords with a probability that is learned, its *strength*: near
    0 the texts do not use them together, and near 1 the topic has hardly other words. Such a topic
    has its number, and its name, in every chain.

    Parameters
    ----------
    run : Posterior
        Of a model with ``keywords=``, with ``keyword_shares`` and ``topic_shares``.
    probability : float in (0, 1)
        Of the intervals.

    Returns
    -------
    Estimand
        By ``topic`` and ``share``: "strength", and "of all words".
    """
    as_draws(run, "keyword_shares", "topic_shares")
    strength, shares = run.stack("keyword_shares"), run.stack("topic_shares")
    names = names_along(run, "keyword_topic", strength.shape[1])
    return Estimand(
        np.stack([strength, shares[:, : len(names)]], axis=2), ("topic", "share"),
        {"topic": names, "share": ["strength", "of all words"]}, probability=probability,
        caption="Topics with keywords: how much of a topic comes as its keywords, and its share.",
    )  # fmt: skip


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


def names_of(words: Any, argument: str = "words") -> list[list[str]]:
    """The top words of each topic as strings."""
    result = []
    for topic in as_list(words, argument, "words of topics"):
        if not isinstance(topic, list | tuple | np.ndarray) or isinstance(topic, TopWord):
            got = brief(topic)
            raise TypeError(f"{argument} must be a list of words for each topic, got {got} for one")
        names = [word.word if isinstance(word, TopWord) else word for word in topic]
        result.append(as_strings(names, argument))
    return result


def _ranks(values: FloatArray) -> FloatArray:
    """Mean ranks within rows, as shares of the row's length."""
    order, size = np.argsort(values, axis=1), values.shape[1]
    places = np.broadcast_to(np.arange(1.0, size + 1.0), values.shape)
    rises = np.diff(np.take_along_axis(values, order, axis=1)) > 0.0
    if not rises.all():
        edge = np.ones((len(values), 1), dtype=np.bool_)
        first = np.where(np.hstack([edge, rises]), places, 0.0)
        last = np.where(np.hstack([rises, edge]), places, np.inf)
        last = np.minimum.accumulate(last[:, ::-1], axis=1)[:, ::-1]
        places = 0.5 * (np.maximum.accumulate(first, axis=1) + last)
    ranks = np.empty(values.shape)
    np.put_along_axis(ranks, order, places / size, axis=1)
    return ranks


SCORES: dict[str, Callable[[FloatArray], FloatArray]] = {"probability": np.asarray, "frex": frex}
"""The scores of one draw of topics, by name."""


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

    def used_alike(self, shares: FloatArray, candidates: Set[str]) -> list[str]:
        """The most frequent candidates that most topics use half to twice as often as the average.

        Scores are probabilities, and `shares` those of the topics, ``(num_topics,)``.
        """
        average = shares @ self.mean / shares.sum()
        lift = self.mean / np.maximum(average, np.finfo(float).tiny)
        is_alike = ((lift > 0.5) & (lift < 2.0)).mean(axis=0) >= _MOST_TOPICS
        alike = [self.names[j] for j in np.argsort(-average, kind="stable") if is_alike[j]]
        return [name for name in alike if name in candidates][:_NAMED_WORDS]


class TopWord(NamedTuple):
    """A word of a topic, and the posterior mean and standard deviation of its score there."""

    word: str
    mean: float
    sd: float


def word_scores(
    run: Posterior, by: str = "probability", *, chain: int | None = None, max_draws: int = 100
) -> WordScores:
    """Score every word of every topic, draw by draw; of topics that drift, averaged over times.

    Parameters
    ----------
    run : Posterior
        With ``topics``.
    by : {"probability", "frex"}
        FREX with half of its weight on exclusivity.
    chain : int, optional
        One chain alone, by its number from 1. If left out, chains are aligned topic by topic
        with the best one, and each topic's draws are those of the chains that found it.
    max_draws : int
        Draws to use at most, evenly spread over chains.

    Returns
    -------
    WordScores
        Where the corpus has no vocabulary, a word's name is its number.
    """
    score = SCORES[as_choice(by, "by", SCORES)]
    chains = aligned_chains(run, chain, "topics")
    count, mean, squares = np.zeros(1), np.zeros((1, 1)), np.zeros((1, 1))
    for one, topics in each_aligned(run, "topics", chains, max_draws):
        values = score(over_versions(topics))[one.order]
        is_found = np.broadcast_to(one.found, len(values))[:, None]
        count = count + is_found
        change = is_found * (values - mean)
        mean = mean + change / np.maximum(count, 1)
        squares = squares + change * (values - mean)
    names = names_along(run, "word", mean.shape[1])
    return WordScores(mean, np.sqrt(squares / count), names, scope_of(chains))


def top_words(
    run: Posterior, num_words: int = 10, *, by: str = "probability", chain: int | None = None,
    max_draws: int = 100,
) -> list[list[TopWord]]:  # fmt: skip
    """The words that score highest in each topic by posterior mean.

    Parameters
    ----------
    num_words : int
    run, by, chain, max_draws
        As in `word_scores`.

    Returns
    -------
    list of lists of TopWord
        Topic by topic, best word first, with posterior mean and sd of the score.
    """
    return word_scores(run, by, chain=chain, max_draws=max_draws).top(num_words)


def topic_labels(words: Sequence[Sequence[TopWord]], num_words: int = 3) -> list[str]:
    """A short name for each topic: its first words."""
    num_words = as_positive_int(num_words, "num_words")
    return [" ".join(topic[:num_words]) for topic in names_of(words)]


Words = Sequence[Sequence[TopWord | str]]


def npmi(words: Words, reference: Corpus) -> FloatArray:
    """Mean normalised pointwise mutual information of the pairs of a topic's words.

    Parameters
    ----------
    words : lists of TopWord or str, one per topic
        As from `top_words`; ten per topic is usual.
    reference : Corpus

    Returns
    -------
    array, ``(num_topics,)``
        From -1, no pair ever together, over 0, independent, to 1, always together. A pair that is
        never together counts -1, and a pair that is in every document 0; nan with one word.
    """
    counts = _documents_with(words, reference)
    num_documents = reference.num_documents
    result = np.full(len(counts), np.nan)
    for k, together in enumerate(counts):
        first, second = np.triu_indices(len(together), k=1)
        alone, both = np.diag(together), together[first, second] / num_documents
        met = (both > 0.0) & (both < 1.0)
        expected = alone[first] * alone[second] / num_documents**2
        scores = np.where(both > 0.0, 0.0, -1.0)
        scores[met] = np.log(both[met] / expected[met]) / -np.log(both[met])
        if len(scores):
            result[k] = scores.mean()
    return result


def exclusivity(topics: ArrayLike, num_words: int = 10, *, weight: float = 0.7) -> FloatArray:
    """Summed FREX of each topic's most probable words, `weight` on exclusivity: stm's measure.

    Parameters
    ----------
    topics : array, ``(num_topics, num_words)``
        As from `mean_topics`.
    num_words : int
        10, like the weight, is what stm takes (Roberts et al. 2014, section 3.4).
    weight : float in [0, 1]

    Returns
    -------
    array, ``(num_topics,)``
        At most `num_words`.
    """
    topics = as_topics(topics)
    best = most_probable(topics, as_positive_int(num_words, "num_words"))
    return np.asarray(np.take_along_axis(frex(topics, weight), best, axis=1).sum(axis=1))


def _documents_with(words: Words, reference: Corpus) -> list[IntArray]:
    """Count the documents with each pair of a topic's words, topic by topic."""
    names = as_kind(reference, "reference", Corpus, "make one with as_corpus").vocabulary
    listed = range(reference.num_words) if names is None else names
    number = {str(name): j for j, name in enumerate(listed)}
    topics = names_of(words)
    used = sorted({number[word] for topic in topics for word in topic if word in number})
    counts = np.zeros((len(used) + 1, len(used) + 1), dtype=np.int64)  # last: words unknown there
    for rows in reference.pieces():
        present = reference.rows(rows).to_csr()[:, used]
        present.data = np.ones_like(present.data, dtype=np.int64)
        counts[:-1, :-1] += (present.T @ present).toarray()
    place = {str(listed[j]): i for i, j in enumerate(used)}
    places = [[place.get(word, -1) for word in topic] for topic in topics]
    return [counts[np.ix_(rows, rows)] for rows in places]

"""Words of topics: Dirichlet rows and, where a model was given some, keywords mixed into them.

Models with a Gaussian psi take ``keywords=``: see `pgmult.topics.updates.keywords`.
In states ``topics`` are the mixtures, by which tokens are allocated, and ``word_counts`` are the
tokens that did not come as keywords.

>>> import numpy as np, pgmult
>>> counts = np.random.default_rng(0).poisson(0.5, size=(20, 4))
>>> corpus = pgmult.topics.as_corpus(counts, ["tax", "jobs", "war", "peace"])
>>> posterior = pgmult.sample(
...     pgmult.topics.CorrelatedTopics(num_topics=3, keywords={"economy": ["tax", "jobs"]}), corpus,
...     draws=10, tune=10, chains=1, random_seed=0, progressbar=False,
... )
>>> found = posterior.keywords()
>>> found.labels["topic"], found.mean.shape
(['economy'], (1, 2))
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from pgmult.core.typing import FloatArray, IntArray
from pgmult.topics.starts.allocations import Searched
from pgmult.topics.starts.find import StartsFromTopics
from pgmult.topics.updates.allocation import (
    AllocatedTopics,
    kept_counts,
    mean_words,
    sample_topics,
)
from pgmult.topics.updates.keywords import Keywords, as_keywords

_EMPTY = partial(np.empty, 0)


@dataclass(frozen=True, slots=True, eq=False)
class KeywordsState:
    """What a state holds of keywords: empty without any.

    Attributes
    ----------
    keyword_shares : array, ``(num_keyword_topics,)``
        Share of a topic's tokens that came as its keywords.
    keyword_words : array, ``(num_keywords,)``
        Probability of each keyword among those of its topic.
    """

    keyword_shares: Annotated[FloatArray, "keyword_topic"] = field(
        default_factory=_EMPTY, kw_only=True
    )
    keyword_words: Annotated[FloatArray, "keyword"] = field(default_factory=_EMPTY, kw_only=True)


class WordsOfTopics(StartsFromTopics, AllocatedTopics):
    """Topics ~ Dirichlet(eta), the first of them with keywords if the model has some."""

    __slots__ = ()
    keywords: Any

    def _complete(self) -> None:
        keywords = as_keywords(self.keywords, self.num_topics)
        if keywords != self.keywords:
            self._set(keywords=keywords)  # type: ignore[attr-defined]

    def as_data(self, data: Any) -> Any:
        """A corpus from a sparse matrix or array of counts: see `pgmult.topics.as_corpus`."""
        corpus = AllocatedTopics.as_data(self, data)
        self._keywords_in(corpus)
        return corpus

    def coords(self, data: Any) -> Mapping[str, NDArray[Any]]:
        """Words and documents by name where the corpus has names, and keywords."""
        coords = dict(AllocatedTopics.coords(self, data))
        if self.keywords:
            coords["keyword_topic"] = np.array([name for name, _ in self.keywords], dtype=np.str_)
            pairs = [f"{name}: {word}" for name, words in self.keywords for word in words]
            coords["keyword"] = np.array(pairs, dtype=np.str_)
        return coords

    def absent(self, data: Any) -> frozenset[str]:
        """Variables that these data, or this model, leave empty."""
        return frozenset() if self.keywords else frozenset({"keyword_shares", "keyword_words"})

    def _keywords_in(self, data: Any) -> Keywords | None:
        """The keywords as words of a corpus, if there are any."""
        return Keywords.of(self.keywords, data) if self.keywords else None

    def in_order(self, at: Searched, data: Any) -> Searched:
        """Topics with keywords first."""
        keywords = self._keywords_in(data)
        if keywords is None:
            return at
        return at.ordered(keywords.best_order(np.ascontiguousarray(at.allocation.word_counts.T)))

    def _varied_from_prior(self, rng: np.random.Generator, state: Any, data: Any) -> Any:
        """The state with what varies its topics, drawn from the prior."""
        keywords = self._keywords_in(data)
        return state if keywords is None else self._mixed(state, *keywords.prior(rng), data)

    def _varied_at_start(self, rng: np.random.Generator, state: Any, data: Any) -> Any:
        """The state with what varies its topics where a chain begins."""
        keywords = self._keywords_in(data)
        return state if keywords is None else self._mixed(state, *keywords.start(), data)

    def _mixed(self, state: Any, shares: FloatArray, words: FloatArray, data: Any) -> Any:
        """The state with keywords mixed into topics that have none yet."""
        topics = Keywords.of(self.keywords, data).mixed(state.topics, shares, words)
        return replace(state, topics=topics, keyword_shares=shares, keyword_words=words)

    def _from_part(self, rng: np.random.Generator, at: Searched, part: Any) -> Any:
        """A state of a part: topics at their mean, if nothing varies them."""
        if self.keywords:
            return self.from_allocation(rng, at, part)
        return StartsFromTopics._from_part(self, rng, at, part)

    def _sample_words(
        self, rng: np.random.Generator, state: Any, word_counts: IntArray, data: Any
    ) -> Any:
        """The state with words of topics drawn given the tokens' topics, and keywords first."""
        counts, keywords = word_counts, self._keywords_in(data)
        shares, words = state.keyword_shares, state.keyword_words
        if keywords is not None:
            by_group, shares, words = keywords.sample(
                rng, word_counts[None], state.topics[None], shares, words
            )
            counts = by_group[0]
        return self._words_given(rng, state, counts, shares, words, data)

    def _words_given(
        self,
        rng: np.random.Generator,
        state: Any,
        counts: IntArray,
        shares: FloatArray,
        words: FloatArray,
        data: Any,
    ) -> Any:
        """The same given which tokens came as keywords: `counts` has the others."""
        topics = sample_topics(rng, self.start_concentration(), counts)
        state = replace(state, topics=topics, word_counts=kept_counts(counts))
        return self._mixed(state, shares, words, data) if self.keywords else state

    def mean_topics(self, state: Any, data: Any) -> FloatArray:
        """Mean word probabilities given the topics of the tokens, once these are known."""
        keywords = self._keywords_in(data)
        mean = mean_words(state.topics, state.word_counts, self.start_concentration())
        if keywords is None or not state.word_counts.any():
            return mean
        return keywords.mixed(mean, state.keyword_shares, state.keyword_words)

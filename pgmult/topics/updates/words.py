"""Words of topics as a part of a topic model: Dirichlet rows, some of them with keywords.

In every topic model with Gaussian psi the words of a topic are drawn by a part of its own, as the
mean of psi is (`pgmult.topics.priors.means`). A part owns some fields of the model's state: these
here; topics that groups of documents vary (`pgmult.topics.updates.content`); topics that drift
(`pgmult.topics.updates.drifting`). In states ``topics`` are the mixtures with keywords, by which
tokens are allocated, and ``word_counts`` are the tokens that did not come as keywords.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmult.core.typing import FloatArray, Generator, IntArray
from pgmult.priors import Dirichlet
from pgmult.topics.data.corpus import Corpus
from pgmult.topics.priors.means import Fields
from pgmult.topics.starts.searches import Searched
from pgmult.topics.updates.allocation import kept_counts, mean_words, no_counts, sample_topics
from pgmult.topics.updates.keywords import Keywords, NamedWords
from pgmult.topics.updates.word_concentration import prior_concentration, sample_concentration


@dataclass(frozen=True, slots=True, eq=False)
class DirichletWords:
    """Topics ~ Dirichlet(concentration), the first of them with keywords if there are some.

    Attributes
    ----------
    num_topics : int
    concentration : float, optional
        Eta; learned if left out (`pgmult.topics.updates.word_concentration`).
    keywords : names and words of the first topics
    """

    num_topics: int
    concentration: float | None
    keywords: NamedWords

    def table(self, state: Any) -> FloatArray:
        """Word probabilities, ``(num_topics, num_words)``; of versions beside each other."""
        return np.asarray(state.topics)

    def drawn(self, draw: Mapping[str, FloatArray]) -> FloatArray | None:
        """Topics of a draw, by version ``(num_versions, num_topics, num_words)`` if there are any.

        None where they were not kept.
        """
        return draw.get("topics")

    def prior(self, rng: Generator, data: Corpus) -> Fields:
        """The fields of this part, drawn from the prior."""
        keywords, shape = Keywords.of(self.keywords, data), (self.num_topics, data.num_words)
        eta = prior_concentration(rng, self.concentration)
        topics = Dirichlet(eta).sample(rng, shape)
        return self._mixed(eta, keywords, topics, no_counts(*shape), *keywords.prior(rng))

    def start(self, rng: Generator, at: Searched, data: Corpus) -> Fields:
        """Fields that a chain starts from, given the topics of the tokens."""
        topics, keywords = at.drawn_topics(rng), Keywords.of(self.keywords, data)
        counts = no_counts(*topics.shape)
        return self._mixed(at.eta, keywords, topics, counts, *keywords.start())

    def given(self, rng: Generator, state: Any, word_counts: IntArray, data: Corpus) -> Fields:
        """New values of the fields, keywords first, given the topics of the tokens."""
        keywords = Keywords.of(self.keywords, data)
        at = word_counts[None], state.topics[None], state
        (counts,), shares, words = keywords.sample(rng, *at)
        eta = sample_concentration(rng, self.concentration, state.word_concentration, counts)
        topics = sample_topics(rng, eta, counts)
        return self._mixed(eta, keywords, topics, kept_counts(counts), shares, words)

    def mean(self, state: Any, data: Corpus) -> FloatArray:
        """Mean topics given the topics of the tokens, and which came as keywords, once known.

        Of topics in versions ``(num_topics, num_versions * num_words)``.
        """
        mean = mean_words(state.topics, state.word_counts, state.word_concentration)
        if mean is state.topics:
            return np.asarray(mean)
        keywords = Keywords.of(self.keywords, data)
        return keywords.mixed(mean, state.keyword_shares, state.keyword_words)

    def _mixed(
        self, eta: float, keywords: Keywords, topics: FloatArray, word_counts: NDArray[np.int32],
        shares: FloatArray, words: FloatArray,
    ) -> Fields:  # fmt: skip
        """The fields, keywords mixed into topics that have none yet."""
        return {
            "topics": keywords.mixed(topics, shares, words), "word_counts": word_counts,
            "keyword_shares": shares, "keyword_words": words, "word_concentration": eta,
        }  # fmt: skip

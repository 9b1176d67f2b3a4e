"""Topic models of tomotopy, another library, to be run and scored like those of pgmult.

What `completion_by_seconds` of this folder asks of a model, and no more. A state is a model of
tomotopy, which changes in place: take no step back.
"""

from dataclasses import dataclass

import numpy as np

import pgmult


@dataclass(frozen=True)
class TomotopyModel:
    """Collapsed Gibbs sampling by "LDAModel", alpha learned, or by "CTModel", correlated topics."""

    kind: str
    num_topics: int
    dims = ("theta", "topics")

    def init(self, rng, data: pgmult.topics.Corpus):
        """A model that has been given the documents; it leaves empty ones out."""
        import tomotopy

        seed = int(rng.integers(2**31))
        state = getattr(tomotopy, self.kind)(k=self.num_topics, eta=0.05, seed=seed)
        tokens = np.split(np.repeat(data.words, data.counts), np.cumsum(data.totals)[:-1])
        for words in tokens:
            state.add_doc([str(word) for word in words])
        state.train(0, workers=1)
        return state

    def step(self, rng, state, data: pgmult.topics.Corpus):
        """One sweep, in this thread."""
        state.train(1, workers=1)
        return state

    def theta(self, state, data: pgmult.topics.Corpus) -> np.ndarray:
        """``(num_documents, num_topics)``; even where a document is empty."""
        theta = np.full((data.num_documents, self.num_topics), 1.0 / self.num_topics)
        theta[data.totals > 0] = [document.get_topic_dist() for document in state.docs]
        return theta

    def topics(self, state, data: pgmult.topics.Corpus) -> np.ndarray:
        """``(num_topics, num_words)``; words without a token have what its rarest words have."""
        found = np.array([state.get_topic_word_dist(k) for k in range(self.num_topics)], float)
        topics = np.repeat(found.min(axis=1, keepdims=True), data.num_words, axis=1)
        topics[:, [int(word) for word in state.used_vocabs]] = found
        return topics / topics.sum(axis=1, keepdims=True)

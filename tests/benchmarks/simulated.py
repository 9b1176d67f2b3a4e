"""Simulated corpora of correlated topics."""

import numpy as np

import pgmult
from pgmult.topics.data.corpus import Corpus, simulate_words
from pgmult.topics.models.topic_model import ExchangeableTopicsState


class Truth:
    """A few correlated topics, and documents of about `length` tokens on them, in blocks."""

    def __init__(self, rng, num_words, num_topics, length):
        self.rng, self.length, self.num_words = rng, length, num_words
        self.model = pgmult.topics.CorrelatedTopics(num_topics)
        root = rng.normal(size=(num_topics - 1, 10)) / np.sqrt(10.0)
        self.cov = 4.0 * root @ root.T + 2.0 * np.eye(num_topics - 1)
        self.topics = pgmult.Dirichlet(0.02).sample(rng, (num_topics, num_words))

    def blocks(self, num_documents, block=10_000):
        for first in range(0, num_documents, block):
            yield self.block(min(block, num_documents - first))[0]

    def block(self, size):
        """Counts of words, and the state that they were drawn from."""
        rng, mean = self.rng, self.model.gaussian.mean
        psi = pgmult.MvNormal(mean, self.cov).sample(rng, size)
        totals = rng.poisson(self.length, size=size)
        counts = self.model.link().simulate(rng, psi, totals)
        assignments = np.repeat(np.tile(np.arange(counts.shape[1]), size), counts.ravel())
        shape = Corpus(
            np.arange(size + 1), np.zeros(size, dtype=np.int32), totals.astype(np.int32),
            self.num_words,
        )  # fmt: skip
        words = simulate_words(rng, assignments, self.topics, shape).to_csr()
        return words, ExchangeableTopicsState(psi, mean, self.cov, self.topics, counts)

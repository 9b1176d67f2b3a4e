"""A simulated corpus of correlated topics, with the state that it was made from."""

import numpy as np

import pgmult
from pgmult.topics.data.corpus import simulate_words
from pgmult.topics.models.gaussian import ExchangeableTopicsState


def simulated(rng, num_documents, num_words, num_topics, length):
    """Documents of about `length` tokens on a few correlated topics each, and their state."""
    model = pgmult.topics.CorrelatedTopics(num_topics, word_concentration=0.02)
    root = rng.normal(size=(num_topics - 1, 10)) / np.sqrt(10.0)
    cov = 4.0 * root @ root.T + 2.0 * np.eye(num_topics - 1)
    psi = pgmult.MvNormal(model.gaussian.mean, cov).sample(rng, num_documents)
    totals = rng.poisson(length, size=num_documents)
    topic_counts = model.link().simulate(rng, psi, totals)
    topics = pgmult.Dirichlet(0.02).sample(rng, (num_topics, num_words))
    assignments = np.repeat(np.tile(np.arange(num_topics), num_documents), topic_counts.ravel())
    shape = pgmult.topics.Corpus(
        indptr=np.arange(num_documents + 1), words=np.zeros(num_documents, dtype=np.int32),
        counts=totals.astype(np.int32), num_words=num_words,
    )  # fmt: skip
    corpus = pgmult.topics.as_corpus(simulate_words(rng, assignments, topics, shape).to_csr())
    mean = model.gaussian.mean
    return corpus, ExchangeableTopicsState(psi, mean, cov, topics, topic_counts)

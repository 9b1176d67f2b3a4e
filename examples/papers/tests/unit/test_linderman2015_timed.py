"""Models scored for the same seconds of a processor."""

import numpy as np

import pgmult
from examples.papers.linderman2015.timed import completion_by_seconds


def test_scores_after_seconds_of_a_processor():
    counts = np.random.default_rng(0).poisson(0.6, size=(30, 20))
    corpus = pgmult.topics.as_corpus(counts)
    training, held_out = pgmult.topics.split_tokens(corpus, [0, 3, 4, 9])
    assert np.flatnonzero(held_out.totals).tolist() == [0, 3, 4, 9]
    model = pgmult.topics.LDA(2)
    completion_by_seconds(model, training, held_out, [0.01])
    found = completion_by_seconds(model, training, held_out, [0.02, 0.05], chains=2)
    assert [at.seconds for at in found] == [0.02, 0.05]
    assert all(a < b for a, b in zip(found[0].sweeps, found[1].sweeps, strict=True))
    for at in found:
        assert len(at.score.chains) == 2
        assert at.score.num_draws <= sum(at.sweeps)

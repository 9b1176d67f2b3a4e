"""Topic models in blocks of documents: the same draws for any shards; data by rows."""

import numpy as np
import pytest

from pgmult.sampling.blocks import as_block_model
from pgmult.topics import LDA, CorrelatedTopics, as_corpus, with_covariates
from pgmult.topics.updates import allocation

COUNTS = np.random.default_rng(6).poisson(0.4, size=(37, 12))
CORPUS = as_corpus(COUNTS, [f"word{v}" for v in range(12)], [f"document {d}" for d in range(37)])
COLUMNS = {
    "year": np.arange(37) % 7,
    "party": ["D", "R", "R"] * 12 + ["D"],
    "author": [f"author {i // 2 % 5}" for i in range(37)],
    "editor": [f"editor {i % 3}" for i in range(37)],
}
SMALL = {"num_topics": 3, "start_sweeps": 1, "block_rows": 6}


def structured(formula="~ year", **options):
    return with_covariates(CORPUS, COLUMNS, formula, **options)


def test_models_whose_documents_depend_on_each_other_have_no_blocks():
    with pytest.raises(TypeError, match="rows that are independent"):
        as_block_model(LDA(3))


def test_rows_of_a_corpus_are_views():
    data = structured("~ year + (1 | author)", content="~ party")
    here = data.rows(slice(10, 20))
    chosen = data[10:20]
    for name in ("indptr", "words", "counts", "names", "covariates"):
        np.testing.assert_array_equal(getattr(here, name), getattr(chosen, name))
    np.testing.assert_array_equal(here.content.codes, chosen.content.codes)
    np.testing.assert_array_equal(here.design.terms[0].codes, chosen.design.terms[0].codes)
    for mine, whole in (
        (here.words, data.words),
        (here.counts, data.counts),
        (here.covariates, data.covariates),
    ):
        assert np.shares_memory(mine, whole)
    nothing = data.rows(slice(0, 0))
    assert nothing.num_documents == nothing.num_tokens == 0
    assert nothing.vocabulary is data.vocabulary


def test_words_are_counted_beyond_what_four_bytes_hold(monkeypatch):
    rng = np.random.default_rng(0)
    topics, theta = rng.dirichlet(np.ones(12), 3), rng.dirichlet(np.ones(3), 37)
    words = []
    for most in (2**31 - 1, 120):
        monkeypatch.setattr(allocation, "_MOST", most)
        tables = allocation.WordTables(topics, 20)
        for part in (slice(0, 12), slice(12, 30), slice(30, 37)):
            tables.allocate(np.random.default_rng(part.start), CORPUS.rows(part), theta[part])
        words.append(tables.counts()[0])
    assert words[0].dtype == words[1].dtype == np.int64
    np.testing.assert_array_equal(*words)
    np.testing.assert_array_equal(words[0].sum(axis=0), COUNTS.sum(axis=0))


def test_states_hold_counts_of_four_bytes():
    model = CorrelatedTopics(**SMALL)
    rng = np.random.default_rng(0)
    state = model.init(rng, CORPUS)
    for _ in range(2):
        assert state.topic_counts.dtype == np.int32
        state = model.step(rng, state, CORPUS)
    with pytest.raises(ValueError, match="fewer than 2\\*\\*31 tokens of a topic, got 2147483648"):
        allocation.kept_counts(np.array([[1, 2**31]]))

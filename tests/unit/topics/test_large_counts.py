"""Counts that are no words of a text: exact draws at a cost that does not grow with them."""

import math

import numpy as np
import pytest
from scipy import stats

from pgmult import topics
from pgmult.compiled.jit import jit
from pgmult.compiled.rows import num_workers, over_rows, row_threads
from pgmult.compiled.streams import open_stream
from pgmult.core.validate import new_key
from pgmult.topics.compiled import fold_in as kernels
from pgmult.topics.compiled import tokens
from pgmult.topics.starts.searches import Placement, leaf, thinned
from pgmult.topics.updates import collapsed
from pgmult.topics.updates.allocation import WordTables, allocate_tokens


@jit
def _binomials(key, n, p, out):
    for row in range(out.shape[0]):
        out[row], _ = tokens.binomial(n, p, open_stream(key, row))


@pytest.mark.parametrize(
    ("n", "p"), [(20, 0.3), (33, 0.5), (200, 0.01), (1000, 0.9), (5000, 0.5), (3000, 1e-3)]
)
def test_binomials_have_their_law(n, p):
    out = np.empty(20_000, dtype=np.int64)
    _binomials(new_key(np.random.default_rng(n)), n, p, out)
    law = stats.binom(n, p)
    edges = np.unique(law.ppf(np.linspace(0.0, 1.0, 21)[1:-1]))
    bins = np.searchsorted(edges, out, side="left")
    expected = np.diff(np.concatenate([[0.0], law.cdf(edges), [1.0]])) * len(out)
    seen = np.bincount(bins, minlength=len(expected))
    kept = expected > 5
    assert (
        stats.chisquare(seen[kept], expected[kept] * seen[kept].sum() / expected[kept].sum())[1]
        > 1e-4
    )
    assert out.min() >= 0
    assert out.max() <= n


@pytest.mark.parametrize(("n", "p", "sure"), [(10**9, 0.0, 0), (10**9, 1.0, 10**9), (0, 0.5, 0)])
def test_binomials_that_are_certain(n, p, sure):
    out = np.empty(3, dtype=np.int64)
    _binomials(new_key(np.random.default_rng(0)), n, p, out)
    assert (out == sure).all()


@pytest.mark.parametrize("count", [tokens.MANY + 1, 50_000_000])
def test_split_counts_have_the_law_of_tokens(count):
    rng = np.random.default_rng(count)
    theta, words = rng.dirichlet(np.ones(5), 3), rng.dirichlet(np.ones(4), 5)
    theta[0, 2] = words[1, 0] = 0.0
    counts = np.full((3, 4), count)
    counts[:, 3] = 7  # drawn one by one
    data = topics.as_corpus(counts)
    drawn = [allocate_tokens(rng, data, theta, words) for _ in range(400)]
    here, there = (np.array(parts) for parts in zip(*drawn, strict=True))
    np.testing.assert_array_equal(here.sum(axis=2), np.tile(counts.sum(axis=1), (400, 1)))
    np.testing.assert_array_equal(there.sum(axis=1), np.tile(counts.sum(axis=0), (400, 1)))
    assert not here[:, 0, 2].any()
    assert not there[:, 1, 0].any()
    p = theta[:, :, None] * words
    p /= p.sum(axis=1, keepdims=True)
    mean, var = (np.einsum("dw,dkw->dk", counts, each) for each in (p, p * (1.0 - p)))
    possible = var > 0.0
    z = (here.mean(axis=0) - mean)[possible] / np.sqrt(var[possible] / 400)
    assert np.abs(z).max() < 4.5
    ratio = here.var(axis=0)[possible] / var[possible]
    assert np.abs(ratio - 1.0).max() < 5.0 * math.sqrt(2.0 / 400)
    both = np.mean((here[:, :, 0] - mean[:, 0]) * (here[:, :, 1] - mean[:, 1]), axis=0)
    expected = -np.einsum("dw,dw->d", counts, p[:, 0] * p[:, 1])
    spread = np.sqrt(var[:, 0] * var[:, 1] / 400)
    assert (np.abs(both - expected) < 5.0 * spread).all()


def test_threads_do_not_matter_to_split_counts():
    rng = np.random.default_rng(0)
    theta, words = rng.dirichlet(np.ones(5), 9), rng.dirichlet(np.ones(4), 5)
    data = topics.as_corpus(rng.integers(0, 4000, (9, 4)))
    found = []
    for threads in (1, 3):
        with row_threads(threads, grain=1):
            found.append(allocate_tokens(np.random.default_rng(1), data, theta, words))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_table_counts_of_many_tokens_have_their_moments():
    n, alpha = 200_000, np.array([0.3, 1.0, 4.5])
    counts = np.full((400, 3), n)
    rng = np.random.default_rng(0)
    tables = np.zeros((num_workers(len(counts)), counts.shape[1]), dtype=np.int64)
    over_rows(tokens.sample_tables, len(counts), new_key(rng), counts, alpha, tables)
    found = tables.sum(axis=0)
    i = np.arange(n)
    p = alpha[:, None] / (alpha[:, None] + i)
    z = (found - 400 * p.sum(axis=1)) / np.sqrt(400 * (p * (1.0 - p)).sum(axis=1))
    assert np.abs(z).max() < 4.0
    later = (p * (i >= tokens.MANY)).sum(axis=1)
    assert (400 * later > 100).all()  # of those that are not drawn one by one


@pytest.fixture(scope="module")
def dense():
    """Topics, and counts of a million a cell."""
    rng = np.random.default_rng(4)
    theta, words = rng.dirichlet(np.full(3, 0.3), 30), rng.dirichlet(np.full(20, 0.2), 3)
    return words, topics.as_corpus(rng.poisson(3e7 * theta @ words))


def test_counts_are_searched_in_larger_units(dense):
    _, corpus = dense
    small = thinned(np.random.default_rng(0), corpus, 3)
    assert 2e5 < small.num_tokens < 2e6
    assert small.num_documents == corpus.num_documents
    np.testing.assert_allclose(
        small.totals / small.num_tokens, corpus.totals / corpus.num_tokens, atol=0.003
    )
    few = topics.as_corpus(np.random.default_rng(0).poisson(300.0, (20, 30)))
    assert thinned(np.random.default_rng(0), few, 3) is few
    found = leaf(np.random.default_rng(0), corpus, 3, 0.05, 20)
    np.testing.assert_array_equal(found.allocation.topic_counts.sum(axis=1), corpus.totals)
    np.testing.assert_array_equal(
        found.allocation.word_counts.sum(axis=1),
        np.bincount(corpus.words, corpus.counts, corpus.num_words),
    )
    placed = Placement.of(found).place(np.random.default_rng(0), corpus)
    np.testing.assert_array_equal(placed.topic_counts.sum(axis=1), corpus.totals)


@pytest.mark.parametrize("model", [topics.CorrelatedTopics(3), topics.LogisticNormalTopics(3)])
def test_models_of_topics_find_them_in_large_counts(model, dense):
    words, corpus = dense
    rng = np.random.default_rng(0)
    state = topics.find_start(model, corpus, leaves=1, sweeps=30, random_seed=0).state
    for _ in range(3):
        state = model.step(rng, state, corpus)
    gaps = np.abs(state.topics[:, None] - words).sum(axis=2).min(axis=0)
    assert gaps.max() < 0.2
    np.testing.assert_array_equal(state.topic_counts.sum(axis=1), corpus.totals)


@pytest.mark.parametrize("count", [tokens.MANY + 1, 50_000_000])
def test_fold_in_splits_large_counts(count):
    rng = np.random.default_rng(count)
    theta, words = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(3), 4)
    words[:, 2] = 0.0  # a word that no topic has says nothing of theta
    data = topics.as_corpus(np.tile([count, 5, count], (400, 1)))
    out = np.empty((400, 4), dtype=np.int64)
    kernels.allocate_documents(
        0, 0, 400, new_key(rng), np.arange(400, dtype=np.uint64), data.entries,
        np.ascontiguousarray(words.T), np.tile(theta, (400, 1)), out,
    )  # fmt: skip
    assert (out.sum(axis=1) == 2 * count + 5).all()
    p = np.array([*(theta * words[:, :2].T), theta])
    p /= p.sum(axis=1, keepdims=True)
    sizes = np.array([count, 5, count])
    mean, var = sizes @ p, sizes @ (p * (1.0 - p))
    assert (np.abs(out.mean(axis=0) - mean) < 4.5 * np.sqrt(var / 400)).all()
    assert (np.abs(out.var(axis=0) / var - 1.0) < 5.0 * math.sqrt(2.0 / 400)).all()


def test_what_is_too_many_is_refused(dense, monkeypatch):
    _, corpus = dense
    monkeypatch.setattr("pgmult.topics.data.corpus.available_memory", lambda: 1e6)
    with pytest.raises(MemoryError, match=r"fewer tokens, got 8.*LDA keeps a topic for each.*GiB"):
        collapsed.random_allocation(np.random.default_rng(0), corpus, 3)
    model = topics.LogisticNormalTopics(3)
    with pytest.raises(MemoryError, match="simulated words are drawn one by one"):
        model.simulate(np.random.default_rng(0), None, corpus)
    theta, words = np.full((60, 2), 0.5), np.full((2, 2), 0.5)
    many = topics.as_corpus(np.full((60, 2), 50_000_000))
    with pytest.raises(
        ValueError, match=r"60 documents.* fewer than 2\*\*31 tokens, got 6,000,000"
    ):
        WordTables(words, 60).allocate(np.random.default_rng(0), many, theta)
    tables = WordTables(words, 10)
    for _ in range(3):  # more than 2**31 together, but not at once
        tables.allocate(np.random.default_rng(0), many[:10], theta[:10])
    (counts,) = tables.counts()
    assert counts.sum() == 3_000_000_000

"""Searches for starts: scores and merges against slow references, threads, truth, support."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from scipy.special import gammaln

import pgmult
from pgmult import sample
from pgmult.compiled.rows import row_threads
from pgmult.core.validate import new_key
from pgmult.topics import (
    CorrelatedTopics,
    DynamicTopics,
    LogisticNormalTopics,
    StructuralTopics,
    as_corpus,
    as_timed_corpus,
    find_start,
    with_covariates,
)
from pgmult.topics.compiled.starts import place_tokens
from pgmult.topics.starts import searches
from pgmult.topics.starts.searches import leaf, merge_gains, merge_topics, search_leaves, unsearched
from pgmult.topics.updates.collapsed import count_topics

COUNTS = np.random.default_rng(5).poisson(0.5, size=(12, 9))
COUNTS[3] = 0
COUNTS[:, 4] = 0


@pytest.fixture
def corpus():
    return as_corpus(COUNTS)


@pytest.fixture
def at(rng, corpus):
    """Five topics after two sweeps, the fifth almost unused."""
    start = unsearched(rng, corpus, 5, 0.2).swept(rng, corpus, 2, held=2)
    return replace(start, alpha=np.array([0.7, 0.3, 1.1, 0.2, 0.01]))


def tokens_of(corpus):
    documents = np.repeat(np.arange(corpus.num_documents), corpus.totals)
    return documents, np.repeat(corpus.words, corpus.counts)


def evidence(counts, concentration):
    """Log probability of rows of counts, their Dirichlet integrated out."""
    counts, concentration = np.asarray(counts), np.broadcast_to(concentration, counts.shape[1])
    total = concentration.sum()
    rows = gammaln(total) - gammaln(total + counts.sum(axis=1))
    return float(rows.sum() + np.sum(gammaln(counts + concentration) - gammaln(concentration)))


def joint(corpus, z, alpha, eta):
    allocation = count_topics(corpus, z, len(alpha))
    return evidence(allocation.topic_counts, alpha) + evidence(allocation.word_counts.T, eta)


def conditionals(corpus, at):
    """Token by token, from its definition: p(word | others) and the conditional of its topic."""
    documents, words = tokens_of(corpus)
    z, K, V = at.allocation.assignments, at.num_topics, corpus.num_words
    for i in range(len(z)):
        rest = np.delete(np.arange(len(z)), i)
        here = np.bincount(z[rest][documents[rest] == documents[i]], minlength=K) + at.alpha
        there = np.bincount(z[rest][words[rest] == words[i]], minlength=K) + at.eta
        whole = np.bincount(z[rest], minlength=K) + V * at.eta
        probs = here / here.sum() * there / whole
        yield probs.sum(), probs / probs.sum()


def entropy(p):
    return -sum(x * math.log(x) for x in p if x > 0)


def test_scores_are_those_of_the_definition(corpus, at):
    expected = sum(math.log(p) for p, _ in conditionals(corpus, at))
    np.testing.assert_allclose(at.loo(corpus), expected, rtol=1e-12)


def reference_gains(corpus, at):
    """Each pair joined for good: the log joint counted again, the shares of each token added."""
    gains = np.full((at.num_topics, at.num_topics), -np.inf)
    z, shares = at.allocation.assignments, [p for _, p in conditionals(corpus, at)]
    J = joint(corpus, z, at.alpha, at.eta)
    for b in range(at.num_topics):
        for a in range(b):
            alpha = at.alpha.copy()
            alpha[a] += alpha[b]
            into = np.delete(np.arange(at.num_topics), b)
            merged = np.argsort(np.append(into, b))[np.where(z == b, a, z)]
            gains[a, b] = joint(corpus, merged, alpha[into], at.eta) - J
            for p in shares:
                if min(p[a], p[b]) > 1e-3:
                    gains[a, b] += entropy([p[a] + p[b]]) - entropy([p[a], p[b]])
    return gains


def test_gains_and_merges_are_those_of_a_count_anew(corpus, at):
    expected = reference_gains(corpus, at)
    np.testing.assert_allclose(merge_gains(at, corpus), expected, rtol=1e-9, atol=1e-9)
    a, b = np.unravel_index(np.argmax(expected), expected.shape)
    z = at.allocation.assignments
    one = merge_topics(at, corpus, 1)
    assert one.num_topics == 4
    np.testing.assert_allclose(one.alpha.sum(), at.alpha.sum())
    together = one.allocation.assignments[:, None] == one.allocation.assignments
    same = np.where(z == b, a, z)
    np.testing.assert_array_equal(together, same[:, None] == same)
    two = merge_topics(at, corpus, 2)
    rest = expected.copy()
    rest[[a, b], :] = rest[:, [a, b]] = -np.inf
    c, d = np.unravel_index(np.argmax(rest), rest.shape)
    same = np.where(same == d, c, same)
    labels = two.allocation.assignments
    np.testing.assert_array_equal(labels[:, None] == labels, same[:, None] == same)
    assert np.isclose(two.alpha[labels[z == c][0]], at.alpha[c] + at.alpha[d])


def test_searches_do_not_depend_on_threads():
    corpus = as_corpus(np.random.default_rng(3).poisson(0.4, size=(60, 40)))
    found = []
    for threads in (1, 3):
        with row_threads(threads):
            rng = np.random.default_rng(4)
            found.append(search_leaves(rng, corpus, 4, 0.1, 3, 24))
    for one, other in zip(*((best, *grown) for best, grown, _ in found), strict=True):
        np.testing.assert_array_equal(one.allocation.assignments, other.allocation.assignments)
        np.testing.assert_array_equal(one.alpha, other.alpha)
    best, grown, loo = found[0]
    assert best.num_topics == 4
    assert loo == [at.loo(corpus) for at in grown]
    assert len(set(loo)) == 3
    assert best.loo(corpus) == max(loo)


def blocky(rng, documents=120):
    """Documents of one of three topics each, on ten words of its own."""
    topic = rng.integers(3, size=documents)
    counts = np.zeros((documents, 30), dtype=int)
    for d, k in enumerate(topic):
        counts[d, 10 * k : 10 * k + 10] = rng.poisson(1.5, size=10)
    return as_corpus(counts), topic


def test_of_a_very_large_corpus_no_sweep_goes_over_all_tokens(rng, monkeypatch):
    corpus, truth = blocky(rng)
    model = CorrelatedTopics(3)
    expected = model.init(np.random.default_rng(5), corpus)
    swept = find_start(model, corpus, leaves=2, sweeps=30, random_seed=1).state
    monkeypatch.setattr(searches, "_LARGE", (119, corpus.num_tokens))  # not more than both
    np.testing.assert_array_equal(model.init(np.random.default_rng(5), corpus).psi, expected.psi)
    monkeypatch.setattr(searches, "_LARGE", (119, 600))
    monkeypatch.setattr(searches, "_MOST_TOKENS", (600, 1))
    monkeypatch.setattr("pgmult.topics.data.corpus._BLOCK", 100)
    monkeypatch.setattr("pgmult.topics.starts.searches._ROWS", 7)

    def no_more(*arguments):
        raise AssertionError("swept everything")

    monkeypatch.setattr("pgmult.topics.starts.searches.settled", no_more)
    states = []
    for threads in (1, 3):
        with row_threads(threads, grain=1):
            states.append(model.init(np.random.default_rng(5), corpus))
    state, again = states
    assert np.array_equal(state.topic_counts.sum(axis=1), corpus.totals)
    np.testing.assert_array_equal(state.psi, again.psi)
    for start in (
        state,
        find_start(model, corpus, leaves=2, sweeps=30, random_seed=1).state,
        swept,
    ):
        largest = start.topic_counts.argmax(axis=1)
        filled = corpus.totals > 0
        assert len(set(zip(largest[filled], truth[filled], strict=True))) == 3
        theta = pgmult.StickBreaking().probs(start.psi)
        assert np.array_equal(theta.argmax(axis=1)[filled], largest[filled])


@pytest.mark.parametrize("large", [False, True], ids=["together", "in blocks"])
def test_chains_begin_with_documents_near_their_mean(rng, monkeypatch, large):
    corpus, truth = blocky(rng)
    corpus = as_corpus(corpus.to_csr(), [f"w{j}" for j in range(30)])
    if large:
        monkeypatch.setattr(searches, "_LARGE", (119, 600))
        monkeypatch.setattr(searches, "_MOST_TOKENS", (600, 1))
    models = (
        (CorrelatedTopics(3, block_rows=50), corpus),
        (LogisticNormalTopics(3), corpus),
        (CorrelatedTopics(3, keywords={"a": ["w0"]}), corpus),
        (StructuralTopics(3), with_covariates(corpus, {"x": truth.astype(float)}, "~ x")),
        (DynamicTopics(3), as_timed_corpus(corpus, np.arange(120) // 40)),
    )
    for model, data in models:
        data = model.as_data(data)
        state = model.init(np.random.default_rng(3), data)
        with monkeypatch.context() as patch:
            patch.setattr(searches, "_FLAT", 1.0)
            pure = model.init(np.random.default_rng(3), data)
        assert np.array_equal(state.topic_counts, pure.topic_counts)
        lengths = corpus.totals[:, None]
        share = 1.0 - 0.75 * np.minimum(1.0, lengths / 15) / (1.0 + lengths / 10_000)
        filled = corpus.totals > 0
        centre = (state.psi - share * pure.psi)[filled] / (1.0 - share[filled])
        np.testing.assert_allclose(centre, np.tile(centre[0], (len(centre), 1)), atol=1e-9)
        if not large:
            np.testing.assert_allclose(centre[0], pure.psi.mean(axis=0), atol=1e-9)


def test_a_large_corpus_is_searched_in_part(rng, monkeypatch):
    corpus = as_corpus(rng.poisson(0.5, size=(50, 30)))
    monkeypatch.setattr(searches, "_MOST_TOKENS", (200, 1))
    part = searches.Part.of(rng, corpus, 3).words
    assert 150 < part.num_tokens <= 200
    rows = corpus.to_csr().toarray().tolist()
    assert all(row in rows for row in part.to_csr().toarray().tolist())
    assert searches.Part.of(rng, part, 3).words is part
    found = leaf(rng, corpus, 3, 0.1, 30)
    again = count_topics(corpus, found.allocation.assignments, 3)
    np.testing.assert_array_equal(again.topic_counts, found.allocation.topic_counts)
    np.testing.assert_array_equal(again.word_counts, found.allocation.word_counts)
    start = find_start(CorrelatedTopics(3), corpus, leaves=2, sweeps=30, random_seed=1)
    assert start.state.topic_counts.sum() == corpus.num_tokens
    assert start.loo == max(start.leaf_loo)
    assert start.loo > 0.3 * found.loo(corpus)  # of fewer tokens


def test_tokens_are_placed_by_their_conditional(rng):
    """Documents of two tokens: the pairs of topics have their exact probabilities."""
    copies = 40_000
    corpus = as_corpus(np.tile([[1, 1]], (copies, 1)))
    alpha, by_word = np.array([0.4, 1.5]), np.array([[0.7, 0.2], [0.3, 0.8]])
    z = np.zeros(2 * copies, dtype=np.int64)
    first = np.arange(copies + 1) * 2
    place_tokens(0, 0, copies, new_key(rng), corpus.entries, first, alpha, by_word, z)
    expected = np.array(
        [
            alpha[a] * (alpha[b] + (a == b)) * by_word[0, a] * by_word[1, b]
            for a in range(2)
            for b in range(2)
        ]
    )
    seen = np.bincount(2 * z[::2] + z[1::2], minlength=4)
    assert stats.chisquare(seen, copies * expected / expected.sum()).pvalue > 1e-5


def simulated(rng, num_topics=12, documents=250):
    topics = rng.dirichlet(np.full(300, 0.05), size=num_topics)
    theta = rng.dirichlet(np.full(num_topics, 0.15), size=documents)
    return as_corpus(np.array([rng.multinomial(60, p) for p in theta @ topics])), topics


def missing(truth, found):
    apart = 0.5 * cdist(truth, found.topics(), "cityblock")
    rows, columns = linear_sum_assignment(apart)
    return np.sum(apart[rows, columns] > 0.4)


def test_merging_recovers_the_truth_better_than_plain_sweeps():
    lost = {"plain": 0, "merge": 0}
    better = 0
    for seed in range(4):
        corpus, truth = simulated(np.random.default_rng(seed))
        plain = unsearched(np.random.default_rng(seed), corpus, 12, 0.05)
        found = {
            "plain": plain.swept(np.random.default_rng(seed), corpus, 60, held=15),
            "merge": leaf(np.random.default_rng(seed), corpus, 12, 0.05, 60),
        }
        for name, at in found.items():
            lost[name] += missing(truth, at)
        better += found["merge"].loo(corpus) > found["plain"].loo(corpus)
    assert lost["merge"] < 0.7 * lost["plain"]
    assert better >= 3


def test_support_counts_the_other_leaves_that_found_a_topic():
    corpus, truth = simulated(np.random.default_rng(1), 4, 100)
    start = find_start(CorrelatedTopics(4), corpus, leaves=4, sweeps=60, random_seed=3)
    assert len(start.leaf_loo) == 4
    assert start.loo == max(start.leaf_loo)
    apart = 0.5 * cdist(start.state.topics, truth, "cityblock").min(axis=1)
    assert np.all(start.support[apart < 0.2] == 1.0)
    assert np.isin(start.support, np.arange(4) / 3).all()
    idle = find_start(CorrelatedTopics(8, 0.05), corpus, leaves=3, sweeps=60, random_seed=3)
    assert idle.support.min() < 1.0
    alone = find_start(CorrelatedTopics(4), corpus, leaves=1, sweeps=20, random_seed=3)
    assert np.isnan(alone.support).all()


def data_of(model):
    if isinstance(model, DynamicTopics):
        return as_timed_corpus(COUNTS, np.arange(12) // 4)
    if isinstance(model, StructuralTopics):
        return with_covariates(as_corpus(COUNTS), {"x": np.arange(12.0)})
    return as_corpus(COUNTS)


@pytest.mark.parametrize(
    "model",
    [
        CorrelatedTopics(3),
        LogisticNormalTopics(3),
        StructuralTopics(3),
        pytest.param(DynamicTopics(3), marks=pytest.mark.slow, id="DynamicTopics"),
    ],
    ids=lambda model: type(model).__name__,
)
def test_every_model_starts_from_a_search(rng, model):
    data = data_of(model)
    start = find_start(model, data, leaves=2, sweeps=20, random_seed=1, cores=1)
    again = find_start(model, data, leaves=2, sweeps=20, random_seed=1, cores=2)
    np.testing.assert_array_equal(start.state.topic_counts, again.state.topic_counts)
    sizes = start.state.topic_counts.sum(axis=0)
    assert np.all(np.diff(sizes) <= 0)
    assert np.isfinite(model.log_likelihood(start.state, data))
    assert model.step(rng, start.state, data).topic_counts.shape == (12, 3)


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
def test_chains_share_the_start_of_a_search():
    seen = {}
    posterior = sample(
        CorrelatedTopics(2, start_sweeps=20), COUNTS, starts="shared", chains=3, draws=4, tune=0,
        random_seed=1, progressbar=False, callback=lambda s: seen.setdefault(s.chain, s.state),
    )  # fmt: skip
    (facts,) = posterior.attrs["start_facts"]
    assert posterior.attrs["starts"] == "shared"
    assert len(facts["leaf_loo"]) == 3
    assert facts["loo"] == max(facts["leaf_loo"])
    assert len(facts["support"]) == 2


def test_an_empty_corpus_has_a_start():
    start = find_start(CorrelatedTopics(3), np.zeros((4, 5), dtype=int), leaves=2, sweeps=25)
    assert start.state.topic_counts.sum() == 0


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [({"model": 3}, TypeError, "model must be a topic model that starts from a search, got 3")],
)
def test_bad_arguments_are_named(change, error, words):
    arguments = {"model": CorrelatedTopics(2), "data": COUNTS, "sweeps": 1} | change
    with pytest.raises(error, match=words):
        find_start(arguments.pop("model"), arguments.pop("data"), **arguments)

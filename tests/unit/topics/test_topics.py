"""Topic allocation, the correlated topic model, LDA and held-out scores on small corpora.

The joint-distribution and calibration tests of the samplers stand in tests/statistical.
"""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from pgmult import sample
from pgmult.compiled.simd import WIDTH
from pgmult.core.validate import new_key
from pgmult.topics import CorrelatedTopics, LogisticNormalTopics, as_corpus, split_tokens
from pgmult.topics.compiled.tokens import Shares, allocate, sample_tables
from pgmult.topics.scores import DocumentCompletion
from pgmult.topics.scores.completion import unigram_log_predictive


def draw_allocation(rng, corpus, theta, topics):
    num_topics = theta.shape[1]
    width = -(-num_topics // WIDTH) * WIDTH
    padded, by_word = np.zeros((2, max(len(theta), corpus.num_words), width), dtype=np.float32)
    padded[: len(theta), :num_topics] = theta
    by_word[: corpus.num_words, :num_topics] = topics.T
    topic_counts = np.zeros(theta.shape, dtype=np.int64)
    word_counts = np.zeros((1, corpus.num_words, theta.shape[1]), dtype=np.int32)
    status = allocate(
        0, 0, corpus.num_documents, new_key(rng), corpus.entries,
        Shares(padded, by_word, theta, topics), topic_counts, word_counts,
    )  # fmt: skip
    return status, topic_counts, word_counts[0]


@pytest.mark.parametrize("num_topics", [2, 3, 8, 9, 21])
def test_topics_of_tokens_follow_their_conditional(rng, num_topics):
    tokens = 60_000
    counts = np.array([[tokens, 0, tokens // 2], [0, 0, 0], [0, tokens, 0]])
    theta = rng.dirichlet(np.full(num_topics, 0.5), size=3)
    topics = rng.dirichlet(np.ones(3), size=num_topics)
    status, topic_counts, word_counts = draw_allocation(rng, as_corpus(counts), theta, topics)
    assert status == 0
    np.testing.assert_array_equal(topic_counts.sum(axis=1), counts.sum(axis=1))
    np.testing.assert_array_equal(word_counts.sum(axis=1), counts.sum(axis=0))
    for word, document in ((0, 0), (1, 2), (2, 0)):
        conditional = theta[document] * topics[:, word]
        expected = conditional / conditional.sum() * counts[document, word]
        likely = expected > 5.0
        grouped = [
            np.append(a[likely], a[~likely].sum() + 1e-9)
            for a in (word_counts[word].astype(float), expected)
        ]
        assert stats.chisquare(*grouped).pvalue > 1e-5


def test_tiny_probabilities_are_drawn_in_double_precision(rng):
    """Probabilities below single precision keep their ratio; impossible words are an error."""
    theta = np.array([[0.25, 0.75]])
    topics = np.array([[1.0, 3e-200], [1.0, 1e-200]])
    corpus = as_corpus(np.array([[0, 40_000]]))
    status, topic_counts, _ = draw_allocation(rng, corpus, theta, topics)
    assert status == 0
    assert stats.binomtest(int(topic_counts[0, 0]), 40_000, 0.5).pvalue > 1e-5
    status, _, _ = draw_allocation(rng, corpus, theta, np.array([[1.0, 0.0], [1.0, 0.0]]))
    assert status == 1


def test_table_counts_have_the_antoniak_moments(rng):
    n, copies = 12, 20_000
    alpha = np.array([0.3, 2.0])
    tables = np.zeros((1, 2), dtype=np.int64)
    counts = np.full((copies, 2), n, dtype=np.int64)
    sample_tables(0, 0, copies, new_key(rng), counts, alpha, tables)
    p = alpha[:, None] / (alpha[:, None] + np.arange(n))
    z = (tables[0] - copies * p.sum(axis=1)) / np.sqrt(copies * (p * (1 - p)).sum(axis=1))
    assert np.abs(z).max() < 4.0


def test_empty_documents_and_unused_words_are_kept(rng, corpus):
    model = CorrelatedTopics(4)
    state = model.step(rng, model.init(rng, corpus), corpus)
    assert state.psi.shape == (40, 3)
    assert state.topics.shape == (4, 25)
    assert state.topic_counts[3].sum() == 0
    assert np.isfinite(state.psi[3]).all()


def test_topics_of_well_separated_words_are_recovered(rng):
    """Three topics of disjoint words, two of which avoid each other: all are found."""
    num_documents, block, model = 400, 10, LogisticNormalTopics(3)
    Sigma = np.array([[1.5, -1.2, 0.0], [-1.2, 1.5, 0.0], [0.0, 0.0, 0.5]])
    truth = np.kron(np.eye(3), np.full((1, block), 1.0 / block))
    theta = model.link().probs(rng.multivariate_normal(np.zeros(3), Sigma, size=num_documents))
    corpus = as_corpus(np.array([rng.multinomial(80, p) for p in theta @ truth]))
    state = model.init(rng, corpus)
    mean_theta, covs = np.zeros((num_documents, 3)), []
    for sweep in range(150):
        state = model.step(rng, state, corpus)
        if sweep >= 50:
            mean_theta += model.theta(state, corpus) / 100
            covs.append(state.Sigma)
    owner = state.topics.reshape(3, 3, block).sum(axis=2).argmax(axis=1)
    assert sorted(owner) == [0, 1, 2]
    error = np.abs(mean_theta - theta[:, owner]).mean()
    assert error < 2.0 * np.mean(np.sqrt(theta * (1 - theta) / 80))
    label = np.argsort(owner)
    contrast = np.array([1.0, -1.0, 0.0])  # identified: it does not see the direction of ones
    spread = contrast @ np.mean(covs, axis=0)[np.ix_(label, label)] @ contrast
    assert spread == pytest.approx(contrast @ Sigma @ contrast, rel=0.35)


def test_split_tokens_is_the_published_protocol(rng, corpus):
    training, held_out = split_tokens(corpus, documents=10)
    total = training.to_csr() + held_out.to_csr()
    assert (total != corpus.to_csr()).nnz == 0
    changed = held_out.totals > 0
    assert changed.sum() <= 10
    np.testing.assert_array_equal(held_out.totals[changed], corpus.totals[changed] // 2)
    assert list(training.vocabulary) == list(corpus.vocabulary)
    with pytest.raises(ValueError, match="observed"):
        split_tokens(corpus, 3, observed=1.0)
    with pytest.raises(ValueError, match="documents must be at most 40, got 41"):
        split_tokens(corpus, 41)


def test_completion_of_a_uniform_model_is_minus_log_v(corpus, rng):
    training, held_out = split_tokens(corpus, documents=10)
    empty = as_corpus(np.zeros(corpus.to_csr().shape, dtype=int))
    score = unigram_log_predictive(empty, held_out)
    assert score.log_predictive == pytest.approx(-np.log(25))
    assert score.standard_error == pytest.approx(0.0, abs=1e-12)
    assert unigram_log_predictive(training, held_out).log_predictive != score.log_predictive


def test_completion_refuses_the_wrong_corpus(rng, corpus):
    _, held_out = split_tokens(corpus, documents=10)
    model = CorrelatedTopics(3)
    other = as_corpus(np.ones((2, 25), dtype=int))
    sweep = SimpleNamespace(
        chain=0, index=0, tuning=False, state=model.prior(rng, other), model=model, data=other
    )
    with pytest.raises(ValueError, match=r"held_out must be \(2, 25\)"):
        DocumentCompletion(held_out)(sweep)
    with pytest.raises(ValueError, match="no tokens"):
        DocumentCompletion(as_corpus(np.zeros((2, 3), dtype=int)))


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
def test_a_sparse_matrix_will_do(rng, corpus):
    """`pgmult.sample` takes what users have; a corpus passes through as it is."""
    model = CorrelatedTopics(3)
    assert model.as_data(corpus) is corpus
    options = {"draws": 1, "tune": 0, "chains": 1, "random_seed": 0, "progressbar": False}
    from_matrix = sample(model, corpus.to_csr(), **options)
    from_corpus = sample(model, corpus, **options)
    np.testing.assert_array_equal(from_matrix["mu"], from_corpus["mu"])
    with pytest.raises(ValueError, match=r"data must be non-negative integers, got 0.5"):
        sample(model, np.full((2, 3), 0.5), **options)

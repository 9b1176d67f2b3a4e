"""Latent Dirichlet allocation: its concentrations, its sweeps, what it keeps."""

import dataclasses

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

from pgmult import sample
from pgmult.topics import LDA, as_corpus
from pgmult.topics.updates.collapsed import (
    count_topics,
    random_allocation,
    sample_concentrations,
    sweep,
)


def exact_cdf(log_density):
    """The distribution function of a positive variable, by quadrature on its logarithm."""
    grid = np.linspace(-12.0, 6.0, 20_001)
    log_weight = log_density(np.exp(grid)) + grid
    running = np.cumsum(np.exp(log_weight - log_weight.max()))
    return lambda x: np.interp(np.log(x), grid, running / running[-1])


# ------------------------------------------------------------------ the concentrations


@pytest.mark.slow
def test_concentrations_have_their_exact_posterior(rng):
    """Given the other one, each of two is a curve: its draws' ranks there are uniform."""
    counts = np.array([[6, 0], [3, 1], [0, 0], [2, 4]])
    totals = counts.sum(axis=1)

    def log_density(a, b):
        each = gammaln(counts[:, 0] + a[:, None]) - gammaln(a[:, None])
        whole = gammaln(a[:, None] + b) - gammaln(totals + a[:, None] + b)
        return (each + whole).sum(axis=1) - 0.5 * a

    alpha, ranks = np.ones(2), []
    for i in range(8_000):
        alpha = sample_concentrations(rng, alpha, counts, 1.0, 0.5)
        if i % 20 == 19:
            ranks.append(exact_cdf(lambda a, b=alpha[1]: log_density(a, b))(alpha[0]))
    assert stats.kstest(ranks, "uniform").pvalue > 1e-3


# ------------------------------------------------------------------ the collapsed sweep


def sweep_probabilities(documents, start, alpha, eta, num_words):
    """Probability of every outcome of one collapsed sweep, by the rule of conditionals."""
    documents = [np.array(words) for words in documents]
    document_of = np.repeat(np.arange(len(documents)), [len(words) for words in documents])
    word_of = np.concatenate(documents)
    topics = range(len(alpha))
    probabilities = {tuple(start): 1.0}
    for i in range(len(word_of)):
        reached = {}
        for z, probability in probabilities.items():
            others = np.arange(len(word_of)) != i
            weights = np.empty(len(alpha))
            for k in topics:
                same = others & (np.array(z) == k)
                in_document = np.sum(same & (document_of == document_of[i]))
                of_word = np.sum(same & (word_of == word_of[i]))
                weights[k] = (in_document + alpha[k]) * (of_word + eta)
                weights[k] /= same.sum() + num_words * eta
            for k in topics:
                outcome = (*z[:i], k, *z[i + 1 :])
                share = probability * weights[k] / weights.sum()
                reached[outcome] = reached.get(outcome, 0.0) + share
        probabilities = reached
    return probabilities


@pytest.mark.parametrize(
    ("start", "alpha", "eta"),
    [
        ([0, 0, 1, 2, 0], [0.5, 1.5, 0.2], 0.4),
        ([1, 1, 1, 1, 1], [2.0, 2.0, 2.0], 0.05),
        ([2, 0, 2, 2, 1], [1e-3, 0.3, 4.0], 3.0),
    ],
    ids=["short", "prior of topics wide", "prior of words wide"],
)
def test_a_collapsed_sweep_has_its_exact_transition_probabilities(rng, start, alpha, eta):
    """Every outcome of a sweep over two documents, and each token's own topic."""
    documents, num_words = [[0, 0, 1], [1, 3]], 4
    corpus = as_corpus([[2, 1, 0, 0], [0, 1, 0, 1]])
    allocation = count_topics(corpus, np.array(start), 3)
    expected = sweep_probabilities(documents, start, alpha, eta, num_words)
    draws, alpha = 12_000, np.array(alpha)
    outcomes = np.array(
        [sweep(rng, corpus, allocation, alpha, eta).assignments for _ in range(draws)]
    )
    places = np.array(list(expected))
    shares = np.array(list(expected.values()))
    code = 3 ** np.arange(5)
    observed = np.bincount(outcomes @ code, minlength=3**5)[places @ code]
    common = draws * shares >= 10.0
    table = np.append(observed[common], observed[~common].sum())
    of_table = np.append(shares[common], shares[~common].sum())
    assert stats.chisquare(table, draws * of_table).pvalue > 1e-4
    for i in range(5):
        seen = np.bincount(outcomes[:, i], minlength=3)
        share = np.bincount(places[:, i], shares, minlength=3)
        assert stats.chisquare(seen, draws * share).pvalue > 1e-4


def test_sweeps_of_many_topics_keep_their_counts(rng):
    """Documents gain and lose topics, and bounds move, on the way from a uniform start."""
    corpus = as_corpus(rng.poisson(0.8, size=(30, 60)))
    allocation = random_allocation(rng, corpus, 40)
    end = allocation
    for _ in range(50):
        end = sweep(rng, corpus, end, np.full(40, 0.05), 0.02)
    again = count_topics(corpus, end.assignments, 40)
    np.testing.assert_array_equal(end.topic_counts, again.topic_counts)
    np.testing.assert_array_equal(end.word_counts, again.word_counts)
    np.testing.assert_array_equal(end.topic_counts.sum(axis=1), corpus.totals)
    np.testing.assert_array_equal(end.word_counts.sum(axis=1), corpus.to_csr().sum(axis=0))
    occupied = [np.mean(a.topic_counts > 0) for a in (allocation, end)]
    assert occupied[1] < 0.5 * occupied[0]


def test_assignments_that_do_not_fit_are_refused(rng, corpus):
    state = LDA(4).init(rng, corpus)
    with pytest.raises(ValueError, match=r"one topic for each of the \d+ tokens, got shape \(3,\)"):
        count_topics(corpus, state.assignments[:3], 4)
    wrong = state.assignments.copy()
    wrong[7] = 4
    with pytest.raises(ValueError, match="from 0 to 3, got 4 at position 7"):
        LDA(4).step(rng, dataclasses.replace(state, assignments=wrong), corpus)
    wrong[7] = -1
    with pytest.raises(ValueError, match="from 0 to 3, got -1 at position 7"):
        LDA(4).log_likelihood(dataclasses.replace(state, assignments=wrong), corpus)


# ------------------------------------------------------------------ the models


def test_lda_says_how_large_its_topics_are(rng, corpus):
    model = LDA(4)
    state = model.init(rng, corpus)
    shares = model.topic_shares(state, corpus)
    for k in range(4):
        assert shares[k] == pytest.approx(np.mean(state.assignments == k))
    entropy = stats.entropy(shares)
    assert model.effective_topics(state, corpus) == pytest.approx(np.exp(entropy))
    empty = as_corpus(np.zeros((2, 3), dtype=int))
    nothing = model.step(rng, model.init(rng, empty), empty)
    np.testing.assert_array_equal(model.topic_shares(nothing, empty), np.zeros(4))


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
def test_what_lda_keeps(corpus):
    options = {"draws": 5, "tune": 1, "chains": 2, "random_seed": 0, "progressbar": False}
    learned = sample(LDA(3), corpus, **options)
    assert len(np.unique(learned["alpha"])) == 30
    assert learned["topic_shares"].shape == (2, 5, 3)
    np.testing.assert_allclose(learned["topic_shares"].sum(axis=-1), 1.0)
    assert learned["effective_topics"].max() <= 3.0 + 1e-12


def test_lda_keeps_the_concentrations_that_it_was_given(rng, corpus):
    alpha = np.array([0.2, 0.4, 0.9])
    model = LDA(3, alpha=alpha, word_concentration=0.3)
    state = model.init(rng, corpus)
    for _ in range(2):
        np.testing.assert_array_equal(state.alpha, alpha)
        np.testing.assert_allclose(model.theta(state, corpus).sum(axis=1), 1.0)
        np.testing.assert_allclose(model.topics(state, corpus).sum(axis=1), 1.0)
        state = model.step(rng, state, corpus)

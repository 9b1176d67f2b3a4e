"""Probabilities of whole documents where they are known exactly, and what is refused.

That the estimates are unbiased where there is something to estimate is tested in tests/statistical.
"""

import numpy as np
import pytest

from pgmult import Dirichlet, MvNormal, Posterior, StickBreaking, load, sample
from pgmult.compiled.rows import row_threads
from pgmult.core.scores import paired_difference
from pgmult.sampling import Origin
from pgmult.topics import LDA, CorrelatedTopics, LogisticNormalTopics, as_corpus
from pgmult.topics.scores.completion import completion_score
from pgmult.topics.scores.whole_documents import (
    TopicDraw,
    anneal_shares,
    annealed,
    left_to_right,
    topic_draws,
)

SMALL = {left_to_right: {"particles": 3}, annealed: {"steps": 5, "runs": 3}}
METHODS = pytest.mark.parametrize(
    "method",
    [left_to_right, pytest.param(annealed, marks=pytest.mark.slow)],
    ids=["left_to_right", "annealed"],
)


def make_draws(rng, num_topics=4, num_words=6):
    """One draw under each prior."""
    topics = rng.dirichlet(np.full(num_words, 0.5), size=num_topics)
    sticks = num_topics - 1
    return {
        "Dirichlet": TopicDraw(topics, Dirichlet(rng.uniform(0.05, 1.0, size=num_topics))),
        "sticks": TopicDraw(topics, MvNormal(rng.normal(size=sticks), 0.5 + np.eye(sticks))),
    }


PRIORS = pytest.mark.parametrize(
    "prior", ["Dirichlet", pytest.param("sticks", marks=pytest.mark.slow)]
)


@pytest.fixture
def rng():
    return np.random.default_rng(4)


@pytest.fixture
def corpus(rng):
    """A dozen documents, one of them empty."""
    counts = rng.poisson(1.0, size=(12, 6))
    counts[5] = 0
    return as_corpus(counts)


@METHODS
@PRIORS
def test_equal_topics_leave_nothing_to_estimate(rng, corpus, method, prior):
    draw = make_draws(rng)[prior]
    equal = draw._replace(topics=np.tile(draw.topics[0], (4, 1)))
    score = method([equal], corpus, random_seed=1, **SMALL[method])
    exact = corpus.to_csr() @ np.log(draw.topics[0])
    np.testing.assert_allclose(score.by_document, exact, rtol=1e-12, atol=1e-12)
    assert score.by_document[5] == 0.0
    assert score.log_predictive == pytest.approx(exact.sum() / corpus.num_tokens)


def test_one_word_is_exact_under_a_dirichlet(rng):
    """With theta integrated out, every particle knows p(w)."""
    draw = make_draws(rng)["Dirichlet"]
    alpha = draw.prior.concentration
    score = left_to_right([draw], as_corpus(np.eye(6, dtype=int)), particles=2, runs=2)
    np.testing.assert_allclose(score.by_document, np.log(alpha / alpha.sum() @ draw.topics))
    np.testing.assert_allclose(score.error_by_document, 0.0, atol=1e-14)


def test_no_particle_knows_of_tokens_to_come(rng):
    """With one particle and two tokens, the estimate is a known mixture over the first topic."""
    draw = make_draws(rng)["Dirichlet"]
    alpha = np.asarray(draw.prior.concentration)
    copies = 4000
    words = np.zeros((copies, 6), dtype=int)
    words[:, 2] = 2
    score = left_to_right([draw], as_corpus(words), particles=1)
    likelihood = draw.topics[:, 2]
    first = alpha / alpha.sum() @ likelihood
    second = (alpha @ likelihood + likelihood) / (alpha.sum() + 1.0)
    values, counts = np.unique(score.by_document.round(9), return_counts=True)
    order = np.argsort(first * second)
    np.testing.assert_allclose(values, np.log(first * second)[order], atol=1e-8)
    expected = (alpha * likelihood / (alpha @ likelihood))[order] * copies
    np.testing.assert_allclose(counts, expected, atol=5.0 * np.sqrt(copies) / 2)


@METHODS
@PRIORS
def test_bits_do_not_depend_on_threads_or_neighbours(rng, corpus, method, prior):
    draw = make_draws(rng)[prior]
    reference = method([draw], corpus, cores=1, **SMALL[method]).by_document
    for cores in (2, 5):
        with row_threads(1, grain=1):
            again = method([draw], corpus, cores=cores, **SMALL[method]).by_document
        np.testing.assert_array_equal(again, reference)
    leading = as_corpus(corpus.to_csr()[:7])
    first = method([draw], leading, **SMALL[method]).by_document
    np.testing.assert_array_equal(first, reference[:7])
    other = method([draw], corpus, random_seed=1, **SMALL[method]).by_document
    assert (other != reference)[corpus.totals > 1].all()


@METHODS
@PRIORS
def test_draws_and_runs_are_averaged_as_probabilities(rng, corpus, method, prior):
    """Of several draws, the mean of p; its error comes from how draws differ."""
    draws = [make_draws(rng)[prior]._replace(topics=np.tile(p, (4, 1)))
             for p in rng.dirichlet(np.ones(6), size=3)]  # fmt: skip
    score = method(draws, corpus, **SMALL[method])
    exact = np.exp(np.stack([corpus.to_csr() @ np.log(draw.topics[0]) for draw in draws]))
    np.testing.assert_allclose(score.by_document, np.log(exact.mean(axis=0)), atol=1e-12)
    relative = exact / exact.mean(axis=0)
    np.testing.assert_allclose(
        score.error_by_document, relative.std(axis=0, ddof=1) / np.sqrt(3), atol=1e-10
    )
    assert score.num_draws == 3
    assert score.monte_carlo_error == pytest.approx(
        np.sqrt(np.sum(score.error_by_document**2)) / corpus.num_tokens
    )


@METHODS
@PRIORS
def test_impossible_words_have_probability_zero(rng, method, prior):
    draw = make_draws(rng)[prior]
    topics = draw.topics.copy()
    topics[:, 1] = 0.0
    topics[1:, 0] = 0.0
    draw = draw._replace(topics=topics / topics.sum(axis=1, keepdims=True))
    corpus = as_corpus([[3, 0, 1, 0, 0, 1], [1, 2, 0, 1, 0, 0]])
    score = method([draw], corpus, **SMALL[method])
    assert np.isfinite(score.by_document[0])
    assert score.by_document[1] == score.log_predictive == -np.inf
    assert np.isnan(score.standard_error)


def test_shares_run_from_zero_to_one():
    for steps in (1, 7):
        shares = anneal_shares(steps)
        assert shares[0] == 0.0
        assert shares[-1] == 1.0
        assert (np.diff(shares) > 0.0).all()
        assert len(shares) == steps + 1


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
def test_draws_of_a_posterior(rng, corpus, tmp_path):
    options = {"draws": 4, "tune": 0, "chains": 2, "random_seed": 0, "progressbar": False}
    lda = sample(LDA(3), corpus, **options)
    draws = topic_draws(lda, max_draws=3)
    assert len(draws) == 3
    np.testing.assert_array_equal(draws[2].prior.concentration, lda["alpha"][1, 3])
    assert len(topic_draws(lda)) == 8

    model = CorrelatedTopics(3, order=[2, 0, 1])
    sample(model, corpus, store=tmp_path / "run", **options)
    sticks = load(tmp_path / "run")
    draw = topic_draws(sticks, max_draws=1)[0]
    # breaking the reordered topics in their own order is breaking the topics in the link's
    psi = np.array([0.3, -1.0])
    np.testing.assert_allclose(
        StickBreaking().probs(psi) @ draw.topics, model.link().probs(psi) @ sticks["topics"][0, 0]
    )
    np.testing.assert_array_equal(draw.prior.prior_cov, sticks["Sigma"][0, 0])
    with pytest.raises(ValueError, match="must hold topics and alpha"):
        topic_draws({"topics": lda["topics"], "mu": sticks["mu"]})
    assert len(topic_draws({"topics": lda["topics"], "alpha": lda["alpha"]})) == 8
    with pytest.raises(ValueError, match="posterior must know its model, got a plain dict"):
        topic_draws(dict(sticks))
    softmax = Posterior(dict(sticks), origin=Origin.of(LogisticNormalTopics(2), corpus))
    with pytest.raises(ValueError, match="of CorrelatedTopics, got one of LogisticNormalTopics"):
        topic_draws(softmax)


@METHODS
def test_what_does_not_fit_is_refused(rng, corpus, method):
    draws = make_draws(rng)
    sticks = draws["sticks"]
    few = Dirichlet(np.ones(3))
    small = MvNormal(np.zeros(2), np.eye(2))
    with pytest.raises(ValueError, match=r"topics must be \(num_topics, 6\)"):
        method([sticks._replace(topics=np.full((4, 5), 0.2))], corpus)
    with pytest.raises(ValueError, match="must sum to 1"):
        method([sticks._replace(topics=np.ones((4, 6)))], corpus)
    with pytest.raises(ValueError, match="prior must be of 4 topics"):
        method([sticks._replace(prior=few)], corpus)
    with pytest.raises(ValueError, match="one unconditioned Gaussian of 3 sticks"):
        method([sticks._replace(prior=small)], corpus)
    with pytest.raises(ValueError, match="at least one TopicDraw"):
        method([], corpus)
    with pytest.raises(ValueError, match="no tokens"):
        method([sticks], as_corpus(np.zeros((2, 6), dtype=int)))
    with pytest.raises(ValueError, match="runs must be at least 1"):
        method([sticks], corpus, runs=0)


def test_paired_difference_is_that_of_a_ratio(rng):
    totals = np.array([10, 0, 30, 5])
    base = -7.0 * totals
    level, error = paired_difference(base + 0.1 * totals, base, totals)
    assert level == pytest.approx(0.1)
    assert error == pytest.approx(0.0, abs=1e-12)
    gains = np.array([1.0, 0.0, 6.0, -0.5])
    level, error = paired_difference(base + gains, base, totals)
    residuals = (gains - gains.sum() / 45 * totals)[totals > 0]
    assert level == pytest.approx(6.5 / 45)
    assert error == pytest.approx(np.sqrt(3 / 2 * np.sum(residuals**2)) / 45)


def test_whole_documents_and_completion_agree_where_theta_is_known(rng, corpus):
    topics = rng.dirichlet(np.ones(6), size=2)
    theta = np.array([0.3, 0.7])
    sure = TopicDraw(topics, Dirichlet(1e12 * theta))
    whole = left_to_right([sure], corpus, particles=2)
    completion = completion_score([(np.tile(theta, (12, 1)), topics)], corpus)
    np.testing.assert_allclose(whole.by_document, completion.by_unit, rtol=1e-5)

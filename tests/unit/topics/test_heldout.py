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
    annealed,
    topic_draws,
)

SMALL = {"steps": 5, "runs": 3}


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
def corpus(rng):
    """A dozen documents, one of them empty."""
    counts = rng.poisson(1.0, size=(12, 6))
    counts[5] = 0
    return as_corpus(counts)


@PRIORS
def test_equal_topics_leave_nothing_to_estimate(rng, corpus, prior):
    draw = make_draws(rng)[prior]
    equal = draw._replace(topics=np.tile(draw.topics[0], (4, 1)))
    score = annealed([equal], corpus, random_seed=1, **SMALL)
    exact = corpus.to_csr() @ np.log(draw.topics[0])
    np.testing.assert_allclose(score.by_unit, exact, rtol=1e-12, atol=1e-12)
    assert score.by_unit[5] == 0.0
    assert score.log_predictive == pytest.approx(exact.sum() / corpus.num_tokens)


@PRIORS
def test_bits_do_not_depend_on_threads_or_neighbours(rng, corpus, prior):
    draw = make_draws(rng)[prior]
    reference = annealed([draw], corpus, cores=1, **SMALL).by_unit
    for cores in (2, 5):
        with row_threads(1, grain=1):
            again = annealed([draw], corpus, cores=cores, **SMALL).by_unit
        np.testing.assert_array_equal(again, reference)
    leading = as_corpus(corpus.to_csr()[:7])
    first = annealed([draw], leading, **SMALL).by_unit
    np.testing.assert_array_equal(first, reference[:7])
    other = annealed([draw], corpus, random_seed=1, **SMALL).by_unit
    assert (other != reference)[corpus.totals > 1].all()


@PRIORS
def test_draws_and_runs_are_averaged_as_probabilities(rng, corpus, prior):
    """Of several draws, the mean of p; its error comes from how draws differ."""
    draws = [make_draws(rng)[prior]._replace(topics=np.tile(p, (4, 1)))
             for p in rng.dirichlet(np.ones(6), size=3)]  # fmt: skip
    score = annealed(draws, corpus, **SMALL)
    exact = np.exp(np.stack([corpus.to_csr() @ np.log(draw.topics[0]) for draw in draws]))
    np.testing.assert_allclose(score.by_unit, np.log(exact.mean(axis=0)), atol=1e-12)
    relative = exact / exact.mean(axis=0)
    np.testing.assert_allclose(score.errors, relative.std(axis=0, ddof=1) / np.sqrt(3), atol=1e-10)
    assert score.num_draws == 3
    assert score.monte_carlo_error == pytest.approx(
        np.sqrt(np.sum(score.errors**2)) / corpus.num_tokens
    )


@PRIORS
def test_impossible_words_have_probability_zero(rng, prior):
    draw = make_draws(rng)[prior]
    topics = draw.topics.copy()
    topics[:, 1] = 0.0
    topics[1:, 0] = 0.0
    draw = draw._replace(topics=topics / topics.sum(axis=1, keepdims=True))
    corpus = as_corpus([[3, 0, 1, 0, 0, 1], [1, 2, 0, 1, 0, 0]])
    score = annealed([draw], corpus, **SMALL)
    assert np.isfinite(score.by_unit[0])
    assert score.by_unit[1] == score.log_predictive == -np.inf
    assert np.isnan(score.standard_error)


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


def test_what_does_not_fit_is_refused(rng, corpus):
    draws = make_draws(rng)
    sticks = draws["sticks"]
    few = Dirichlet(np.ones(3))
    small = MvNormal(np.zeros(2), np.eye(2))
    with pytest.raises(ValueError, match=r"topics must be \(num_topics, 6\)"):
        annealed([sticks._replace(topics=np.full((4, 5), 0.2))], corpus)
    with pytest.raises(ValueError, match="must sum to 1"):
        annealed([sticks._replace(topics=np.ones((4, 6)))], corpus)
    with pytest.raises(ValueError, match="prior must be of 4 topics"):
        annealed([sticks._replace(prior=few)], corpus)
    with pytest.raises(ValueError, match="one unconditioned Gaussian of 3 sticks"):
        annealed([sticks._replace(prior=small)], corpus)
    with pytest.raises(ValueError, match="at least one TopicDraw"):
        annealed([], corpus)
    with pytest.raises(ValueError, match="no tokens"):
        annealed([sticks], as_corpus(np.zeros((2, 6), dtype=int)))
    with pytest.raises(ValueError, match="runs must be at least 1"):
        annealed([sticks], corpus, runs=0)


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
    whole = annealed([sure], corpus, steps=5)
    completion = completion_score([(np.tile(theta, (12, 1)), topics)], corpus)
    np.testing.assert_allclose(whole.by_unit, completion.by_unit, rtol=1e-5)

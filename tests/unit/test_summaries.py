"""Numbers about topics: against closed forms, and under every relabelling."""

import numpy as np
import pytest

from pgmult import Posterior, StickBreaking
from pgmult.summaries import (
    TopicCorrelations,
    match_topics,
    similar_together,
    strongest_pairs,
    top_words,
    topic_correlations,
    topic_labels,
)


def test_top_words_are_posterior_moments():
    rng = np.random.default_rng(0)
    draws = rng.dirichlet([5.0, 1.0, 3.0, 0.5], size=(2, 50, 3))
    posterior = Posterior(
        {"topics": draws}, dims={"topics": ("topic", "word")}, coords={"word": ["a", "b", "c", "d"]}
    )
    for chain in (0, 1):
        words = top_words(posterior, 2, chain=chain)
        assert [len(topic) for topic in words] == [2, 2, 2]
        for k, topic in enumerate(words):
            assert [word.word for word in topic] == ["a", "c"]
            for word, j in zip(topic, (0, 2), strict=True):
                assert word.mean == pytest.approx(draws[chain, :, k, j].mean())
                assert word.sd == pytest.approx(draws[chain, :, k, j].std())
    assert topic_labels(top_words(posterior, 3), 2) == ["a c"] * 3


def test_top_words_without_topics():
    with pytest.raises(KeyError, match="no 'topics', only mu"):
        top_words({"mu": np.zeros((1, 2, 3))})


def test_matching_undoes_a_relabelling():
    rng = np.random.default_rng(1)
    base = rng.dirichlet(np.full(30, 0.1), size=6)
    permutation = rng.permutation(6)
    draws = np.stack([np.stack([base] * 4), np.stack([base[permutation]] * 4)])
    matches = match_topics({"topics": draws})
    np.testing.assert_array_equal(matches.order[0], np.arange(6))
    np.testing.assert_array_equal(permutation[matches.order[1]], np.arange(6))
    np.testing.assert_allclose(matches.distance, 0.0, atol=1e-12)


def test_matching_says_when_a_topic_has_no_counterpart():
    topics = np.eye(4)[None, None].repeat(2, axis=0)
    topics[1, 0, 3] = [1.0, 0.0, 0.0, 0.0]
    matches = match_topics({"topics": topics})
    assert sorted(matches.distance[1].tolist()) == [0.0, 0.0, 0.0, 1.0]


def test_two_topics_are_perfectly_anticorrelated():
    rng = np.random.default_rng(2)
    draws = {"mu": np.zeros((1, 5, 1)), "Sigma": np.ones((1, 5, 1, 1))}
    result = topic_correlations(rng, draws, num_simulated=100)
    np.testing.assert_allclose(result.mean, [[1.0, -1.0], [-1.0, 1.0]])


def test_correlations_match_a_long_simulation_and_ignore_the_order_of_sticks():
    """A correlation of sticks moves two topics together; permuted sticks give permuted topics."""
    rng = np.random.default_rng(3)
    mu = np.array([-1.0, -0.5, 0.2])
    factor = np.array([[1.0, 0.0, 0.0], [0.8, 0.6, 0.0], [-0.3, 0.2, 0.9]])
    draws = {"mu": mu[None, None], "Sigma": (factor @ factor.T)[None, None]}
    theta = StickBreaking().probs(mu + rng.standard_normal((400_000, 3)) @ factor.T)
    expected = np.corrcoef(theta, rowvar=False)
    found = topic_correlations(rng, draws, num_simulated=40_000)
    np.testing.assert_allclose(found.mean, expected, atol=0.03)
    order = [2, 0, 3, 1]
    permuted = topic_correlations(
        rng, draws, num_simulated=40_000, link=StickBreaking(order=np.array(order))
    )
    np.testing.assert_allclose(permuted.mean[np.ix_(order, order)], expected, atol=0.03)


def test_interval_is_a_quantile_over_draws():
    rhos = np.linspace(-0.9, 0.9, 41)
    Sigma = np.array([[[1.0, r], [r, 1.0]] for r in rhos])[None]
    draws = {"mu": np.zeros((1, 41, 2)), "Sigma": Sigma}

    def found(**options):
        return topic_correlations(np.random.default_rng(4), draws, **options)

    wide, narrow = found(probability=0.9), found(probability=0.5)
    assert (wide.lower <= narrow.lower).all()
    assert (narrow.upper <= wide.upper).all()
    assert wide.upper[0, 1] - wide.lower[0, 1] > narrow.upper[0, 1] - narrow.lower[0, 1] > 0.0
    ends = [
        topic_correlations(
            np.random.default_rng(4), {"mu": draws["mu"][:, i], "Sigma": Sigma[:, i]}
        ).mean
        for i in (slice(0, 1), slice(40, 41))
    ]
    np.testing.assert_allclose(found(max_draws=2).mean, np.mean(ends, axis=0))


def test_bad_probability():
    with pytest.raises(ValueError, match=r"probability must be in \(0, 1\), got 90"):
        topic_correlations(np.random.default_rng(0), {}, probability=90)


def correlations(matrix):
    matrix = np.asarray(matrix, dtype=float)
    return TopicCorrelations(matrix, matrix - 0.1, matrix + 0.1, 0.9)


def test_strongest_pairs_are_split_by_sign():
    found = correlations(
        [[1, 0.5, -0.2, 0], [0.5, 1, -0.7, 0.1], [-0.2, -0.7, 1, np.nan], [0, 0.1, np.nan, 1]]
    )
    positive, negative = strongest_pairs(found, 5)
    assert [(p.first, p.second) for p in positive] == [(0, 1), (1, 3)]
    assert [(p.first, p.second) for p in negative] == [(1, 2), (0, 2)]
    assert negative[0].lower == pytest.approx(-0.8)
    assert len(strongest_pairs(found, 1)[0]) == 1


def test_similar_topics_stand_together():
    blocks = np.full((4, 4), -0.5)
    for pair in ((0, 2), (1, 3)):
        blocks[np.ix_(pair, pair)] = 0.9
    np.fill_diagonal(blocks, 1.0)
    order = similar_together(correlations(blocks)).tolist()
    assert {frozenset(order[:2]), frozenset(order[2:])} == {frozenset({0, 2}), frozenset({1, 3})}

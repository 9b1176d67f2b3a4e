"""Which topics chains share; and that what chains do not share is never averaged."""

import numpy as np
import pytest
from topic_runs import run_of

from pgmult import Posterior
from pgmult.topics import (
    CorrelatedTopics,
    document_topics,
    top_words,
    topic_correlations,
    topic_stability,
)
from pgmult.topics import report as topic_report
from pgmult.topics.summaries import mean_topics
from pgmult.topics.summaries.documents import quotes
from pgmult.topics.summaries.matching import match_topics
from pgmult.topics.summaries.words import word_scores

WORDS = 12


def three_chains(**attrs):
    """Chain 1 is the best; of its topics 0 is in all, 1 is near, 2 in two chains, 3 in its own."""
    eye = np.eye(WORDS)
    near = 0.65 * eye[1] + 0.35 * eye[7]
    chains = np.stack(
        [
            [eye[2], near, eye[0], eye[10]],  # 0
            [eye[0], eye[1], eye[2], eye[3]],  # 1, whose labels are told
            [eye[11], eye[1], eye[8], eye[0]],  # 2
        ]
    )
    rng = np.random.default_rng(0)
    draws = {
        "topics": np.repeat(chains[:, None], 6, axis=1),
        "topic_shares": np.tile([0.1, 0.2, 0.3, 0.4], (3, 6, 1)),
        "theta": rng.dirichlet(np.ones(4), size=(3, 6, 5)),
        "mu": rng.normal(size=(3, 6, 3)),
        "Sigma": np.tile(np.eye(3) + 0.3, (3, 6, 1, 1)),
        "effective_topics": rng.normal(size=(3, 6)),
    }
    level = np.array([-10.0, 0.0, -20.0])[:, None]
    stats = {"log_likelihood": level + rng.normal(size=(3, 6))}
    return run_of(CorrelatedTopics(4), sample_stats=stats, attrs=attrs, **draws)


def test_each_topic_of_the_best_chain_is_looked_for_in_the_others():
    found = topic_stability(three_chains())
    assert found.matches.reference == 1
    assert found.chains.tolist() == [3, 3, 2, 1]
    again = found.found_again
    assert (np.diff(again) < 0).all(), "the nearer the others', the more probably"
    assert again[0] > 0.95
    assert again[3] < 0.15
    assert found.is_likely.tolist() == [True, True, True, False]
    assert found.headline == "2 of 4 topics were found by all 3 chains"
    assert found.breakdown == (
        f"one more chain would find about {again.sum():.0f} of them, 2 with a probability of 90 %"
        " or more"
    )
    assert "99 %" in str(found)
    np.testing.assert_allclose(found.mean_distance, [0.0, 0.175, 0.5, 1.0])
    np.testing.assert_allclose(found.worst_distance, [0.0, 0.35, 1.0, 1.0])
    np.testing.assert_allclose(found.shares, [(0.3 + 0.1 + 0.4) / 3, 0.2, (0.1 + 0.3) / 2, 0.4])
    lines = str(found).splitlines()
    assert lines[0].startswith(found.headline)
    head = next(i for i, line in enumerate(lines) if line.startswith("topic"))
    assert lines[head + 1].split()[:2] == ["4", "40.0"], "the largest first"
    np.testing.assert_array_equal(found.take(np.array([4, 1])).found_again, again[[3, 0]])


def test_two_chains_say_less_than_many():
    """What agrees with one other chain alone is less sure, and so is what does not."""
    posterior = three_chains()
    draws = {"topics": np.concatenate([posterior["topics"], posterior["topics"][1:]])}
    few = topic_stability(Posterior({"topics": draws["topics"][[1, 2]]}))
    many = topic_stability(Posterior({"topics": draws["topics"][[1, 2, 2, 2]]}))
    np.testing.assert_allclose(few.mean_distance, many.mean_distance)
    assert few.found_again.min() > many.found_again.min()
    assert few.found_again.max() <= many.found_again.max()


def test_one_chain_is_compared_with_none():
    posterior = three_chains()
    alone = Posterior(
        {"topics": posterior["topics"][:1]}, dims={"topics": posterior.dims["topics"][2:]}
    )
    found = topic_stability(alone)
    assert "no other says" in found.headline
    assert np.isnan(found.worst_distance).all()
    assert np.isnan(found.found_again).all()
    assert found.is_likely.all()


def test_a_shared_start_is_told():
    shared = topic_stability(three_chains(starts="shared"))
    assert shared.headline.startswith("given one mode, 2 of 4 topics")
    assert np.isnan(shared.found_again).all(), "they agree by construction"
    report = topic_report(three_chains(starts="shared"), title="t")
    assert any(sentence.startswith("Given one mode") for sentence in report.verdict)


def test_words_are_averaged_over_the_chains_that_found_the_topic():
    posterior = three_chains()
    found = word_scores(posterior)
    eye = np.eye(WORDS)
    np.testing.assert_allclose(found.mean[0], eye[0])
    np.testing.assert_allclose(found.mean[1], (2 * eye[1] + 0.65 * eye[1] + 0.35 * eye[7]) / 3)
    np.testing.assert_allclose(found.mean[2:], eye[2:4])
    assert found.sd[1, 7] > 0.1 > found.sd[0].max(), "over chains"
    assert "over those of 3 chains" in found.scope
    alone = word_scores(posterior, chain=3)
    np.testing.assert_allclose(alone.mean, mean_topics(posterior, 3))
    assert alone.scope == "within chain 3"
    assert [topic[0].word for topic in top_words(posterior)] == ["0", "1", "2", "3"]


def test_documents_are_averaged_over_the_chains_that_found_the_topic():
    posterior = three_chains()
    theta = posterior["theta"]
    found = document_topics(posterior)
    by_topic = [[(0, 2), (1, 0), (2, 3)], [(0, 1), (1, 1), (2, 1)], [(0, 0), (1, 2)], [(1, 3)]]
    for k, places in enumerate(by_topic):
        draws = np.concatenate([theta[c, :, :, j] for c, j in places])
        np.testing.assert_allclose(found.mean[:, k], draws.mean(axis=0))
        np.testing.assert_allclose(found.upper[:, k], np.quantile(draws, 0.95, axis=0))
    best = quotes(posterior, num_quotes=1).quotes
    assert [int(topic[0].document) for topic in best] == (1 + found.mean.argmax(axis=0)).tolist()


def test_a_pair_that_no_two_chains_share_is_of_one_chain():
    posterior = three_chains()
    pooled, best = topic_correlations(posterior), topic_correlations(posterior, chain=2)
    np.testing.assert_allclose(pooled.mean[3], best.mean[3], atol=1e-12)
    assert abs(pooled.mean[0, 1] - best.mean[0, 1]) > 1e-3


def test_excess_is_nothing_for_a_dirichlet():
    """Of any concentration: theta ~ Dirichlet has exactly the correlations that are taken off."""
    rng = np.random.default_rng(1)
    alpha = np.array([2.0, 0.7, 0.4, 0.2])
    shares = alpha / alpha.sum()
    theta = rng.dirichlet(alpha, size=200_000)
    from pgmult.topics.summaries.correlations import _independent

    np.testing.assert_allclose(np.corrcoef(theta.T), _independent(shares), atol=0.01)
    found = topic_correlations(three_chains(), chain=1)
    np.testing.assert_allclose(found.excess().mean + found.independent, found.mean)
    np.testing.assert_allclose(found.excess().upper + found.independent, found.upper)


def test_chains_without_their_topics_cannot_be_aligned():
    posterior = three_chains()
    only = Posterior({"theta": posterior["theta"]}, dims={"theta": ("document", "topic")})
    with pytest.raises(
        ValueError, match="must hold 'topics', by which chains are aligned, or chain be given, got"
    ):
        document_topics(only)
    assert document_topics(only, chain=3).scope == "within chain 3"


class TestWarnings:
    """Chains of topics are judged by the topics they found and by how each of them mixes."""

    def long(self, level):
        rng = np.random.default_rng(2)
        base = rng.dirichlet(np.ones(WORDS), size=(1, 3))
        topics = np.concatenate([base, base[:, [2, 0, 1]]])[:, None]
        noise = rng.dirichlet(np.full(WORDS, 50.0), size=(2, 800, 3))
        draws = {"topics": 0.95 * topics + 0.05 * noise, "effective_topics": level()}
        return run_of(CorrelatedTopics(3), **draws)

    def modes(self):
        return np.random.default_rng(3).normal([[0.0], [50.0]], 1.0, size=(2, 800))

    def test_the_same_topics_in_other_modes_are_no_problem(self):
        assert self.long(self.modes).convergence_problems() == ""
        unknown = self.long(self.modes)
        unknown.origin = None  # a model of no labels would be told of its R-hat
        assert "R-hat above 1.01" in unknown.convergence_problems()

    def test_a_topic_of_one_chain_is_told_without_asking_for_draws(self):
        posterior = self.long(self.modes)
        posterior["topics"][1, :, 0] = np.eye(WORDS)[0]
        text = posterior.convergence_problems()
        assert text.startswith("2 of 3 topics were found by both chains")
        assert "more draws do not join them" in text
        assert "draws (draws=)" not in text

    def test_topics_that_are_nan_are_told_and_not_matched(self):
        posterior = self.long(self.modes)
        posterior["topics"][1, 5, 0] = np.nan
        assert "are nan in some draw" in posterior.convergence_problems()

    def test_a_chain_that_drifts_is_asked_for_draws(self):
        text = self.long(lambda: np.linspace(0, 1, 1600).reshape(2, 800)).convergence_problems()
        assert "each within its chains" in text
        assert "its halves differ: tune longer" in text


def test_topics_with_keywords_are_matched_to_themselves():
    """Words alone would match "tax" of the second chain with a topic that has no name."""
    first = np.array([[0.5, 0.5, 0.0, 0.0], [0.1, 0.1, 0.8, 0.0], [0.0, 0.1, 0.1, 0.8]])
    second = first[[1, 0, 2]]
    draws = {"topics": np.stack([first, second])[:, None]}
    free = match_topics(Posterior(draws))
    assert free.order[1].tolist() == [1, 0, 2]
    assert free.by_all.all()
    named = Posterior(
        draws, dims={"topics": ("topic", "word")}, coords={"keyword_topic": ["tax", "war"]}
    )
    found = match_topics(named)
    assert found.order[1].tolist() == [0, 1, 2]
    assert found.by_all.tolist() == [False, False, True]
    np.testing.assert_allclose(found.distance[1], [0.8, 0.8, 0.0])

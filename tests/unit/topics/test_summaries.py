"""Numbers about topics: against closed forms, and under every relabelling."""

import numpy as np
import pytest
import scipy.stats
from topic_runs import run_of

import pgmult
from pgmult import LogisticNormal, Posterior, StickBreaking, load, sample
from pgmult.sampling import Origin
from pgmult.topics import (
    LDA,
    CorrelatedTopics,
    DynamicTopics,
    LogisticNormalTopics,
    as_corpus,
    document_topics,
    top_words,
    topic_correlations,
)
from pgmult.topics import compare as match_runs
from pgmult.topics.runs import mean_of
from pgmult.topics.summaries import (
    TopicCorrelations,
    exclusivity,
    frex,
    mean_topics,
    npmi,
    strongest_pairs,
    topic_labels,
)
from pgmult.topics.summaries.correlations import similar_together
from pgmult.topics.summaries.documents import quotes
from pgmult.topics.summaries.matching import match_topics
from pgmult.topics.summaries.words import SCORES, TopWord, word_scores


def test_top_words_without_topics():
    with pytest.raises(ValueError, match="must hold 'topics', got only mu"):
        top_words(Posterior({"mu": np.zeros((1, 2, 3))}))


PHI = np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])


class TestScores:
    """By hand, for two topics and three words."""

    def test_frex_is_a_harmonic_mean_of_ranks(self):
        """Exclusivity of topic 0 is 5/6, 3/4, 1/5: ranks 3, 2, 1; by probability the same."""
        np.testing.assert_allclose(frex(PHI)[0], [1.0, 2 / 3, 1 / 3])
        # Topic 1: probabilities tie at rank 1.5; exclusivity 1/6, 1/4, 4/5 ranks 1, 2, 3.
        expected = [1 / (0.5 / (1 / 3) + 0.5 / 0.5), 1 / (0.5 / (2 / 3) + 0.5 / 0.5), 1.0]
        np.testing.assert_allclose(frex(PHI)[1], expected)
        weighted = 1 / (0.7 / (1 / 3) + 0.3 / 0.5)
        assert frex(PHI, 0.7)[1, 0] == pytest.approx(weighted), "the weight is exclusivity's"

    @pytest.mark.parametrize("levels", [2, 5, 1000])
    def test_frex_with_ties_ranks_as_scipy_does(self, levels):
        rng = np.random.default_rng(3)
        counts = rng.integers(1, levels + 1, size=(4, 60)).astype(float)
        topics = counts / counts.sum(axis=1, keepdims=True)
        probable = scipy.stats.rankdata(topics, axis=1) / 60
        exclusive = scipy.stats.rankdata(topics / topics.sum(axis=0), axis=1) / 60
        expected = scipy.stats.hmean([probable, exclusive])
        np.testing.assert_allclose(frex(topics), expected, rtol=1e-12)

    def test_a_word_that_rounding_left_no_probability(self):
        topics = np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
        assert np.isfinite(frex(topics)).all()
        assert (frex(topics)[0, 0] > frex(topics)[0, 1:]).all()

    @pytest.mark.parametrize("by", ["probability", "frex"])
    def test_scores_are_averaged_draw_by_draw(self, by):
        rng = np.random.default_rng(4)
        draws = Posterior({"topics": rng.dirichlet(np.ones(6), size=(2, 9, 3))})
        each = [topics if by == "probability" else frex(topics) for topics in draws["topics"][1]]
        found = word_scores(draws, by, chain=2)
        np.testing.assert_allclose(found.mean, np.mean(each, axis=0))
        np.testing.assert_allclose(found.sd, np.std(each, axis=0))
        best = top_words(draws, 1, by=by, chain=2)
        for k, (word,) in enumerate(best):
            assert int(word.word) == np.argmax(found.mean[k])
            assert word.mean == found.mean[k].max()
            assert word.sd == found.sd[k, int(word.word)]
        thinned = word_scores(draws, by, chain=2, max_draws=3)
        np.testing.assert_allclose(thinned.mean, np.mean([each[i] for i in (0, 4, 8)], axis=0))

    def test_bad_arguments(self):
        draws = Posterior({"topics": PHI[None, None]})
        with pytest.raises(ValueError, match=r"by must be one of probability, frex, got 'idf'"):
            top_words(draws, by="idf")
        with pytest.raises(ValueError, match="chain must be at most 1, got 2"):
            top_words(draws, chain=2)
        with pytest.raises(ValueError, match="must have draws, and has none"):
            top_words(Posterior({"topics": np.empty((1, 0, 2, 3))}))

    def test_a_run_on_disk_is_read_part_by_part(self, tmp_path, monkeypatch):
        """Every score of a stored run is that of the draws in memory, never all read at once."""
        monkeypatch.setattr("pgmult.sampling.store.FLUSH_BYTES", 1)
        rng = np.random.default_rng(5)
        posterior = Posterior(
            {
                "topics": rng.dirichlet(np.ones(6), size=(2, 9, 3)),
                "topic_shares": rng.dirichlet(np.ones(3), size=(2, 9)),
            },
            dims={"topics": ("topic", "word"), "topic_shares": ("topic",)},
        )
        posterior.save(tmp_path / "run")
        stored = pgmult.load(tmp_path / "run")
        monkeypatch.setattr("pgmult.sampling.store.StoredDraws.__getitem__", None)
        for by in SCORES:
            found, expected = (word_scores(p, by, chain=2) for p in (stored, posterior))
            np.testing.assert_array_equal(found.mean, expected.mean)
        np.testing.assert_allclose(mean_topics(stored, 2), posterior["topics"][1].mean(axis=0))
        np.testing.assert_array_equal(match_topics(stored).order, match_topics(posterior).order)


class TestCoherence:
    """Five documents over the words a to e, by hand."""

    REFERENCE = as_corpus(
        #  a  b  c  d  e  f
        [
            [3, 1, 0, 1, 0, 0],
            [1, 2, 0, 1, 0, 0],
            [1, 0, 1, 1, 0, 0],
            [0, 1, 1, 1, 0, 0],
            [0, 0, 0, 1, 2, 0],
        ],
        list("abcdef"),
    )

    def test_npmi_counts_documents_and_not_tokens(self):
        """p(a) = p(b) = 3/5, p(a, b) = 2/5; p(c) = 2/5, p(a, c) = p(b, c) = 1/5."""
        ab = np.log((2 / 5) / (9 / 25)) / -np.log(2 / 5)
        ac = np.log((1 / 5) / (6 / 25)) / -np.log(1 / 5)
        found = npmi([list("ab"), list("ac"), list("abc"), list("cba")], self.REFERENCE)
        np.testing.assert_allclose(found, [ab, ac, (ab + 2 * ac) / 3, (ab + 2 * ac) / 3])

    def test_npmi_at_its_ends(self):
        """Never together -1, always together 1, independent 0, in every document 0."""
        reference = as_corpus(
            [[1, 1, 0, 1, 1], [1, 1, 0, 0, 1], [0, 0, 1, 1, 1], [0, 0, 1, 0, 1]], list("abcde")
        )
        found = npmi(
            [list("ac"), list("ab"), list("ad"), list("ee"), list("ae"), list("a")], reference
        )
        np.testing.assert_allclose(found, [-1.0, 1.0, 0.0, 0.0, 0.0, np.nan], atol=1e-15)

    def test_words_that_the_reference_does_not_know(self):
        found = npmi([["a", "zebra"], ["f", "a"]], self.REFERENCE)
        np.testing.assert_array_equal(found, [-1.0, -1.0])

    def test_top_words_and_numbers_are_words_too(self):
        numbered = as_corpus(self.REFERENCE.to_csr())
        words = [[TopWord("0", 0.4, 0.1), TopWord("1", 0.2, 0.1)]]
        np.testing.assert_array_equal(npmi(words, numbered), npmi([list("ab")], self.REFERENCE))
        assert topic_labels(words) == ["0 1"]

    def test_exclusivity_sums_frex_over_the_most_probable(self):
        np.testing.assert_allclose(exclusivity(PHI, 2), [1.0 + 2 / 3, 1.0 + frex(PHI, 0.7)[1, 0]])
        np.testing.assert_allclose(exclusivity(PHI, 1, weight=0.5), [1.0, 1.0])


class TestDocuments:
    @pytest.fixture
    def draws(self):
        rng = np.random.default_rng(6)
        psi = rng.normal(scale=2.0, size=(2, 40, 5, 2))
        return run_of(CorrelatedTopics(3), psi=psi, theta=StickBreaking().probs(psi))

    def test_moments_and_quantiles(self, draws):
        found = document_topics(draws, [4, 2], chain=2, probability=0.8)
        theta = draws["theta"][1][:, [3, 1]]
        np.testing.assert_allclose(found.mean, theta.mean(axis=0))
        np.testing.assert_allclose(found.sd, theta.std(axis=0))
        np.testing.assert_allclose(found.lower, np.quantile(theta, 0.1, axis=0))
        np.testing.assert_allclose(found.upper, np.quantile(theta, 0.9, axis=0))
        assert found.documents == ["4", "2"]
        assert found.probability == 0.8

    def test_proportions_follow_the_models_link(self, draws):
        sticks = run_of(CorrelatedTopics(3), psi=draws["psi"])
        direct = document_topics(draws, chain=1)
        np.testing.assert_allclose(document_topics(sticks, chain=1).mean, direct.mean)
        best = quotes(sticks, None, 1, chain=1).quotes
        assert [topic[0].mean for topic in best] == pytest.approx(direct.mean.max(axis=0))
        softmax = run_of(LogisticNormalTopics(2), psi=draws["psi"])
        expected = LogisticNormal().probs(draws["psi"][0]).mean(axis=0)
        np.testing.assert_allclose(document_topics(softmax, chain=1).mean, expected)

    def test_sticks_without_a_model(self, draws):
        with pytest.raises(ValueError, match="must know its model: take it from"):
            document_topics(Posterior({"psi": draws["psi"]}), chain=1)
        with pytest.raises(TypeError, match=r"run must be a Posterior, got .*dict"):
            document_topics(dict(draws), chain=1)

    def test_blocks_do_not_show(self, draws, monkeypatch):
        whole = document_topics(draws, chain=1)
        monkeypatch.setattr("pgmult.topics.summaries.documents._BLOCK", 2 * 200 * 3)
        pieces = document_topics(draws, chain=1)
        np.testing.assert_array_equal(pieces.lower, whole.lower)
        assert len(pieces.documents) == 5

    def test_names(self, draws):
        posterior = Posterior(
            {"theta": draws["theta"]},
            dims={"theta": ("document", "topic")},
            coords={"document": list("vwxyz")},
        )
        found = document_topics(posterior, ["y", 1], chain=1)
        assert found.documents == ["y", "v"]
        np.testing.assert_allclose(found.mean, draws["theta"][0].mean(axis=0)[[3, 0]])
        for unknown in ("nobody", 6, 0, -1):
            with pytest.raises(ValueError, match=f"documents must be among the 5, got {unknown!r}"):
                document_topics(posterior, [unknown], chain=1)

    def test_representatives_have_the_highest_mean(self, draws):
        found = quotes(draws, None, 2, chain=2).quotes
        every = document_topics(draws, chain=2)
        assert [len(topic) for topic in found] == [2, 2, 2]
        for k, topic in enumerate(found):
            best = np.argsort(-every.mean[:, k])[:2]
            assert [int(document.document) - 1 for document in topic] == best.tolist()
            for document, d in zip(topic, best, strict=True):
                assert document[1:4] == (every.mean[d, k], every.lower[d, k], every.upper[d, k])

    def test_bad_arguments(self, draws):
        with pytest.raises(ValueError, match=r"'theta' or 'psi', got only mu.*keep="):
            document_topics(Posterior({"mu": np.zeros((1, 2, 3))}))


def run_on(topics, words):
    return Posterior(
        {"topics": np.asarray(topics)[None, None]},
        dims={"topics": ("topic", "word")},
        coords={"word": list(words)},
    )


class TestMatchingRuns:
    def test_vocabularies_and_numbers_of_topics_may_differ(self):
        first = run_on([[0.9, 0.1, 0.0], [0.0, 0.2, 0.8]], "abc")
        second = run_on([[0.0, 0.0, 0.0, 1.0], [0.7, 0.1, 0.2, 0.0], [0.0, 0.9, 0.1, 0.0]], "cbdx")
        found = match_runs(first, second)
        assert found.pairs.tolist() == [[1, 1]]
        np.testing.assert_allclose(found.distance, [0.5 * (0.1 + 0.1 + 0.2)])
        assert found.only_first.tolist() == [0]
        assert found.only_second.tolist() == [0, 2]
        back = match_runs(second, first)
        assert back.pairs.tolist() == [[1, 1]]
        assert back.only_second.tolist() == [0]

    def test_far_topics_do_not_cost_near_ones_their_partner(self):
        """On the line from b to a: 0-0 0.04, 1-1 1.00; crosswise 0.45 and 0.51, less in sum."""
        first = run_on([[0.45, 0.55], [1.0, 0.0]], "ab")
        second = run_on([[0.49, 0.51], [0.0, 1.0]], "ab")
        found = match_runs(first, second)
        assert found.pairs.tolist() == [[0, 0]]
        np.testing.assert_allclose(found.distance, [0.04])

    def test_closest_pair_first_and_the_best_chain(self):
        rng = np.random.default_rng(7)
        topics = rng.dirichlet(np.full(20, 0.1), size=4)
        noisy = 0.9 * topics + 0.1 * rng.dirichlet(np.full(20, 0.1), size=4)
        draws = {
            "topics": np.stack([rng.dirichlet(np.ones(20), size=4), noisy[[2, 0, 3, 1]]])[:, None]
        }
        second = Posterior(draws, sample_stats={"log_likelihood": np.array([[0.0], [1.0]])})
        found = match_runs(Posterior({"topics": topics[None, None]}), second)
        partner = dict(found.pairs.tolist())
        assert partner == {0: 1, 1: 3, 2: 0, 3: 2}
        assert (np.diff(found.distance) >= 0).all()
        expected = [0.5 * np.abs(topics[i] - noisy[i]).sum() for i in found.pairs[:, 0]]
        np.testing.assert_allclose(found.distance, expected)

    def test_bad_arguments(self):
        first = run_on([[0.5, 0.5]], "ab")
        with pytest.raises(
            ValueError, match="must have words in common: one has 'a', the other 'x'"
        ):
            match_runs(first, run_on([[0.5, 0.5]], "xy"))


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
@pytest.mark.parametrize("model", [CorrelatedTopics(3), LogisticNormalTopics(3)])
def test_correlations_and_documents_of_a_stored_run_follow_its_link(model, tmp_path):
    corpus = as_corpus(np.random.default_rng(8).poisson(1.0, size=(10, 9)))
    sample(
        model, corpus, draws=6, tune=4, chains=1, random_seed=0, progressbar=False,
        keep=("topics", "mu", "Sigma", "psi", "theta"), store=tmp_path / "run",
    )  # fmt: skip
    run = load(tmp_path / "run")
    theta = [
        model.link().probs(np.random.default_rng(draw).multivariate_normal(mu, Sigma, size=30_000))
        for draw, (mu, Sigma) in enumerate(zip(run["mu"][0], run["Sigma"][0], strict=True))
    ]
    expected = np.mean([np.corrcoef(draw, rowvar=False) for draw in theta], axis=0)
    found = topic_correlations(run, num_simulated=10_000)
    np.testing.assert_allclose(found.mean, expected, atol=0.04)
    sticks = Posterior({"psi": run["psi"]}, origin=Origin.of(run.model, corpus))
    np.testing.assert_allclose(document_topics(sticks).mean, run["theta"][0].mean(axis=0))


def test_correlations_need_a_model_with_one_mean():
    draws = {"mu": np.zeros((1, 5, 2)), "Sigma": np.tile(np.eye(2), (1, 5, 1, 1))}
    with pytest.raises(ValueError, match="posterior must know its model: take it from"):
        topic_correlations(Posterior(draws))
    with pytest.raises(ValueError, match="must have a link, LDA has none"):
        topic_correlations(run_of(LDA(3), **draws))
    over_time = draws | {"mu": np.zeros((1, 5, 4, 2))}
    with pytest.raises(ValueError, match=r"one mean of psi.+of DynamicTopics"):
        topic_correlations(run_of(DynamicTopics(3), **over_time))


def correlations(matrix):
    matrix = np.asarray(matrix, dtype=float)
    return TopicCorrelations(
        np.stack([matrix - 0.1, matrix, matrix + 0.1]), ("topic", "other_topic"), {},
        probability=0.999, independent=np.zeros_like(matrix), scope="within chain 0",
    )  # fmt: skip


def test_strongest_pairs_are_split_by_sign():
    found = correlations(
        [[1, 0.5, -0.2, 0], [0.5, 1, -0.7, 0.1], [-0.2, -0.7, 1, np.nan], [0, 0.1, np.nan, 1]]
    )
    positive, negative = strongest_pairs(found, 5)
    assert [(p.first, p.second) for p in positive] == [(0, 1), (1, 3)]
    assert [(p.first, p.second) for p in negative] == [(1, 2), (0, 2)]
    assert negative[0].lower == pytest.approx(-0.8, abs=1e-3)
    assert len(strongest_pairs(found, 1)[0]) == 1


def test_similar_topics_stand_together():
    blocks = np.full((4, 4), -0.5)
    for pair in ((0, 2), (1, 3)):
        blocks[np.ix_(pair, pair)] = 0.9
    np.fill_diagonal(blocks, 1.0)
    order = similar_together(correlations(blocks)).tolist()
    assert {frozenset(order[:2]), frozenset(order[2:])} == {frozenset({0, 2}), frozenset({1, 3})}


def test_means_leave_out_what_a_chain_did_not_find():
    draws = [np.array([1.0, np.nan]), np.array([3.0, 5.0]), np.array([5.0, 6.0])]
    np.testing.assert_array_equal(mean_of(draws), [3.0, 5.5])

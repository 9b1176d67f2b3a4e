"""Words by group, and quotes: against the draws themselves."""

from dataclasses import replace

import numpy as np
import pytest
from topic_runs import run_of

from pgmult import Posterior
from pgmult.topics import (
    CorrelatedTopics,
    StructuralTopics,
    as_corpus,
    content,
    quotes,
    topic_stability,
    with_covariates,
)
from pgmult.topics.data.documents import DocumentTable
from pgmult.topics.summaries.matching import match_topics

WORDS = ["tax", "cut", "job", "war", "iraq", "peace"]
BASE = np.array([[0.5, 0.2, 0.2, 0.04, 0.03, 0.03], [0.03, 0.03, 0.04, 0.3, 0.3, 0.3]])


@pytest.fixture
def data(rng):
    return with_covariates(
        as_corpus(rng.poisson(5.0, size=(8, 6)), WORDS, [f"speech {d}" for d in range(8)]),
        {"party": list("DRDRDRDR")}, content="~ party",
    )  # fmt: skip


def posterior_of(rng, data, num_draws=50, tokens=((400, 30), (300, 900))):
    """Two chains, the second with the topics under the other's numbers."""
    phi = np.stack([BASE, np.roll(BASE, 1, axis=1)])
    phi = np.stack([[rng.dirichlet(200 * row) for row in group] for _ in range(2 * num_draws)
                    for group in phi]).reshape(2, num_draws, 2, 2, 6)  # fmt: skip
    counts = np.array(tokens, dtype=float) + np.zeros((2, num_draws, 2, 2))
    topics = np.tile(BASE, (2, num_draws, 1, 1))
    draws = {"group_topics": phi, "group_tokens": counts, "topics": topics}
    draws["group_topics"][1] = phi[1][:, :, ::-1]
    draws["group_tokens"][1] = counts[1][:, :, ::-1]
    draws["topics"][1] = topics[1][:, ::-1]
    draws["coefficients"] = np.zeros((2, num_draws, 2, 2))
    draws["Sigma"] = np.tile(np.eye(2), (2, num_draws, 1, 1))
    draws["theta"] = rng.dirichlet([1.0, 1.0], size=(2, 1, 8)).repeat(num_draws, axis=1)
    draws["theta"][1] = draws["theta"][0][..., ::-1]
    return run_of(StructuralTopics(2), data, **draws)


def test_words_by_group_are_posterior_quantiles(rng, data):
    posterior = posterior_of(rng, data)
    found = content(posterior)
    assert found.groups == ["D", "R"]
    np.testing.assert_array_equal(found.tokens, [[400, 30], [300, 900]])
    words = found.words("R", "D", topic=1, num_words=2)
    phi = posterior["group_topics"].copy()
    phi[1] = phi[1][:, :, ::-1]
    phi = phi[:, :, :, 0].reshape(100, 2, 6)  # draws, groups, words
    gap = (phi[:, 1] - phi[:, 0]).mean(axis=0)
    expected = [*np.argsort(-gap)[:2], *np.argsort(gap)[:2]]
    assert words.words == [WORDS[j] for j in expected]
    ratio = np.log2(phi[:, 1] / phi[:, 0])[:, expected]
    np.testing.assert_allclose(words.mean, phi.mean(axis=0)[::-1, expected])
    np.testing.assert_allclose(words.log_ratio.quantile(0.5), np.median(ratio, axis=0))
    np.testing.assert_allclose(words.log_ratio.lower, np.quantile(ratio, 0.05, axis=0))
    np.testing.assert_allclose(words.upper, np.quantile(phi, 0.95, axis=0)[::-1, expected])
    np.testing.assert_allclose(words.log_ratio.p_above(), (ratio > 0).mean(axis=0))
    assert "300 of R and 400 of D" in words.caption


def test_unmatched_chains_would_mix_the_topics(rng, data):
    """The mutant: chains pooled by number give a topic that neither of them has."""
    posterior = posterior_of(rng, data)
    phi = posterior["group_topics"]
    unmatched = phi.mean(axis=(0, 1))
    matched = content(posterior).mean
    assert np.abs(matched[0] - BASE).max() < 0.02
    assert np.abs(unmatched[0] - BASE).max() > 0.1


def test_a_topic_that_groups_word_crosswise_is_not_the_same(rng, data):
    """Chains that agree on the words of all, and not on what party R says in which topic."""
    posterior = posterior_of(rng, data)
    assert (topic_stability(posterior).found_again > 0.9).all()
    posterior["group_topics"][1, :, 1] = posterior["group_topics"][1, :, 1, ::-1].copy()
    mixed = match_topics(Posterior({"topics": posterior["topics"]}))
    assert mixed.by_all.all(), "by the words of all groups there is nothing to see"
    assert (match_topics(posterior).distance[1] > 0.5).all()
    assert not topic_stability(posterior).is_likely.any()
    assert not posterior.label_matches()["topic"].by_all.any(), "so that sampling warns of it"


def test_few_tokens_are_marked(rng, data):
    found = content(posterior_of(rng, data))
    thin = found.words("R", "D", topic=2)
    assert thin.is_faint
    assert not found.words("R", "D", topic=1).is_faint
    assert "fewer than 50 say hardly anything" in thin.caption
    assert str(thin.table()).count("(") >= len(thin.words)
    lines = [line for line in str(found).splitlines() if line.startswith("(D)")]
    assert len(lines) == 1
    colors = {tuple(c.get_edgecolor()[0][:3]) for c in thin.plot().collections}
    assert colors == {(0.6, 0.6, 0.6)}
    wide = found.words("R", "D", topic=1).table().to_dataframe()
    assert {"word", "R", "R_lower", "D_upper", "log2_ratio", "p_first"} <= set(wide.columns)


def test_words_that_a_group_hardly_says_are_not_its_own(rng, data):
    scarce = posterior_of(rng, data, tokens=((4, 30), (300, 900)))
    words = content(scarce).words("R", "D", topic=1, num_words=3)
    of_d = [j for j, p in zip(words.words, words.log_ratio.p_above(), strict=True) if p < 0.5]
    assert all(BASE[0, WORDS.index(word)] * 4 >= 0.9 for word in of_d)
    silent = posterior_of(rng, data, tokens=((0, 0), (0, 0)))
    nothing = content(silent).words("R", "D", topic=1)
    assert nothing.words == []
    assert "forest" in nothing.figure().svg()
    nothing.plot()


def test_groups_and_content_that_are_not_there(rng, data):
    found = content(posterior_of(rng, data))
    with pytest.raises(ValueError, match="first must be one of D, R, got 'X'"):
        found.words("X", "D", topic=1)
    with pytest.raises(ValueError, match="second must be another group than first"):
        found.words("D", "D", topic=1)
    plain = with_covariates(data, {"party": list("DRDRDRDR")})
    with pytest.raises(ValueError, match="run must be of data with content covariates"):
        content(run_of(StructuralTopics(2), plain, x=np.zeros((1, 1))))


# ------------------------------------------------------------------ quotes


def test_quotes_are_the_texts_of_the_largest_shares(rng, data):
    texts = [f"text\nof {d}" for d in range(7)] + ["word " * 200]
    data = replace(data, table=DocumentTable.of({"text": texts}, "text"))
    posterior = posterior_of(rng, data)
    theta = posterior["theta"][0, 0, :, 1]
    best = np.argsort(-theta)[:2]
    found = quotes(posterior, 2, 2)
    (pair,) = found.quotes
    assert [quote.document for quote in pair] == [f"speech {d}" for d in best]
    np.testing.assert_allclose([quote.mean for quote in pair], theta[best])
    assert "2 iraq" in str(found) or "2 war" in str(found)
    every = {q.document: q.text for q in quotes(posterior, 2, 8).quotes[0]}
    assert all(every[f"speech {d}"] == f"text of {d}" for d in range(7))
    assert every["speech 7"].endswith(" ...")
    assert len(every["speech 7"]) <= 400


def test_without_texts_documents_are_named_and_it_is_said(rng, data):
    named = quotes(posterior_of(rng, data), [1])
    assert "holds no texts" in str(named)
    assert named.quotes[0][0].text is None
    texts = {"text": [f"body {d}" for d in range(8)]}
    read = replace(data, table=DocumentTable.of(texts, text="text"))
    found = quotes(posterior_of(rng, read), 1)
    assert found.note == ""
    for quote in found.quotes[0]:
        assert quote.text == f"body {quote.document.split()[-1]}"
    other = run_of(CorrelatedTopics(2), theta=np.full((1, 2, 3, 2), 0.5))
    assert quotes(other).quotes[0][0].text is None


def test_documents_without_names_are_called_by_their_row_and_columns(rng, data):
    table = {
        "id": list(range(1, 9)), "text": [f"body {d}" for d in range(8)],
        "party": [None, "R"] * 4, "day": np.array("2009-02-07", "M8[s]") + np.arange(8) * 86400,
    }  # fmt: skip
    read = replace(data, names=None, table=DocumentTable.of(table, text="text"))
    posterior = posterior_of(rng, read)
    best = int(np.argmax(posterior["theta"][0, 0, :, 1]))
    (quote,) = quotes(posterior, 2, 1).quotes[0]
    assert quote.document == f"row {best + 1}: {'R, ' * (best % 2)}2009-02-{7 + best:02}"
    assert quote.text == f"body {best}"

"""Topic models beside LDA and word frequencies, on words held out of short runs."""

import numpy as np
import pytest

import pgmult
from pgmult.topics import LDA, CorrelatedTopics, as_corpus
from pgmult.topics.scores import rivals

pytestmark = pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")


@pytest.fixture(scope="module")
def corpus():
    """Two topics of words of their own, half of the documents of each."""
    rng = np.random.default_rng(0)
    one = np.repeat([1.0, 0.0], 15) + 0.02
    laws = [one / one.sum(), one[::-1] / one.sum()]
    return as_corpus(np.array([rng.multinomial(40, laws[d % 2]) for d in range(60)]))


def run_of(model, corpus):
    return pgmult.sample(
        model, corpus, draws=20, tune=20, chains=2, random_seed=0, progressbar=False
    )


def test_topics_beat_word_frequencies_where_there_are_any(corpus):
    found = run_of(CorrelatedTopics(2), corpus).compare()
    assert found.names == ("the model", "word frequencies", "LDA")
    assert found.gains[1].sign == 1
    assert abs(found.gains[2].mean) < 0.1, "LDA finds these topics as well"
    assert "2 chains of 60 sweeps" in found.how


def test_they_do_not_where_there_are_none():
    loose = as_corpus(np.random.default_rng(1).multinomial(40, np.full(30, 1 / 30), size=60))
    found = rivals.compare_with_rivals(run_of(CorrelatedTopics(2), loose))
    assert found.best == "word frequencies"


def test_lda_has_no_rival_of_its_own_kind(corpus):
    assert run_of(LDA(2), corpus).compare().names == ("the model", "word frequencies")


def test_short_runs_see_a_tenth_less_and_draws_stay_as_they_are(corpus):
    run = run_of(CorrelatedTopics(2), corpus)
    before = np.asarray(run["topics"]).copy()
    found = run.compare()
    assert f"{int(corpus.num_tokens * 0.1)} in all" in found.how.replace(",", "")
    np.testing.assert_array_equal(before, run["topics"])
    again = run.compare()
    assert again.levels == found.levels, "the same seed, the same answer"


def test_few_words_and_large_corpora(corpus, monkeypatch):
    short = as_corpus(np.ones((5, 4), dtype=int))
    with pytest.raises(ValueError, match="a document of ten words or more"):
        rivals.compare_with_rivals(run_of(CorrelatedTopics(2), short))
    monkeypatch.setattr(rivals, "_MOST_TOKENS", 800)
    found = rivals.compare_with_rivals(run_of(CorrelatedTopics(2), corpus))
    assert "words of 20 documents" in found.how


def test_the_report_says_it_where_it_is_asked(corpus):
    run = run_of(CorrelatedTopics(2), corpus)
    comparison = run.compare()
    said = run.report(comparison=comparison)
    assert comparison.sentences[0] in said.verdict
    assert "Does it predict better than simple models?" in said.text(100)
    plain = run.report()
    assert any(".report(comparison=True) does" in sentence for sentence in plain.verdict)
    assert "simple models" not in plain.text(100)

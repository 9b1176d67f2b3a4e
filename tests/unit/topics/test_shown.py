"""What results of topics show in a notebook, and hand on as data frames."""

import numpy as np
import pytest

from pgmult.topics import as_corpus
from pgmult.topics.fits import NewDocuments
from pgmult.topics.scores import CompletionScore, DocumentScore, TopicChoice
from pgmult.topics.scores.selection import Candidate
from pgmult.topics.summaries import DocumentTopics, PredictiveChecks
from pgmult.topics.summaries.checks import Dependence
from pgmult.topics.summaries.quotes import Quote, Quotes

pytest.importorskip("pandas")


def choice():
    rows = (
        Candidate(5, -7.0, -0.1, 0.02, 0.1, 8.0, 1.4, 0.0, 1.0),
        Candidate(9, -6.9, 0.0, 0.0, 0.2, 9.0, 1.2, 0.3, 2.0),
    )
    return TopicChoice(rows, np.zeros((2, 3)), np.ones(3, dtype=np.int64))


def quotes(note=""):
    found = [[Quote("a<b", 0.9, 0.8, 1.0, None if note else "some words")], []]
    return Quotes([0, 3], ["0 x", "3 y"], found, 0.9, note)


def test_a_choice_of_topics_is_a_table_with_what_it_says():
    frame = choice().to_dataframe()
    assert frame["num_topics"].tolist() == [5, 9]
    assert frame["difference"].tolist() == [-0.1, 0.0]
    shown = choice()._repr_html_()
    assert shown.count("<tr>") == 3
    assert "9 topics predict held-out words best" in shown
    assert str(choice()).startswith("9 topics predict")


def test_quotes_are_a_table_without_texts_where_there_are_none():
    assert quotes().to_dataframe().loc[0].tolist() == [0, "a<b", 0.9, 0.8, 1.0, "some words"]
    assert "a&lt;b" in quotes()._repr_html_()
    bare = quotes("only counts ship")
    assert "text" not in bare.table().columns
    assert "only counts ship</p>" in bare._repr_html_()


def test_shares_of_documents_are_a_row_a_document_and_topic():
    mean = np.array([[0.25, 0.75], [0.5, 0.5]])
    found = DocumentTopics(["d", "e"], mean, 0.1 * mean, 0.5 * mean, 1.2 * mean, 0.9, "one chain")
    frame = found.to_dataframe()
    assert frame["document"].tolist() == ["d", "d", "e", "e"]
    assert frame["topic"].tolist() == [0, 1, 0, 1]
    assert frame["mean"].tolist() == mean.ravel().tolist()
    assert repr(found) == "DocumentTopics(2 documents, 2 topics; one chain)"
    assert "90 % intervals one chain" in found._repr_html_()


def test_scores_hand_on_a_row_a_document():
    ones = np.ones(2)
    score = CompletionScore(-ones, np.array([1, 1]), num_draws=3)
    assert score.to_dataframe()["log_predictive"].tolist() == [-1.0, -1.0]
    assert score._repr_html_() == f"<p>{score}</p>"
    whole = DocumentScore(-ones, np.array([1, 1]), errors=0.1 * ones, num_draws=3)
    assert whole.to_dataframe()["error"].tolist() == [0.1, 0.1]
    assert whole._repr_html_() == f"<p>{whole}</p>"


def test_new_documents_show_what_was_lost_and_hand_on_their_shares():
    mean = np.array([[0.25, 0.75]])
    shares = DocumentTopics(["d"], mean, 0.1 * mean, 0.5 * mean, 1.2 * mean, 0.9, "one chain")
    found = NewDocuments(shares, as_corpus([[1, 0]]), 1, 1, 2, [], {})
    assert found.to_dataframe()["mean"].tolist() == [0.25, 0.75]
    assert "1 new documents" in found._repr_html_()
    assert "<table>" in found._repr_html_()


def test_checks_hand_on_the_words_of_documents_and_of_groups():
    def one(of):
        return Dependence(of, ones, ones, ones, [[("a", 1.0)], []], is_modelled=False)

    ones = np.ones(2)
    checks = PredictiveChecks(1.0, 1.0, 0.5, (one("document"), one("party")), ["0 x", "1 y"], 9)
    frame = checks.to_dataframe()
    assert frame["of"].tolist() == ["document"] * 2 + ["party"] * 2
    assert frame["keeping"].tolist() == ["a +1.00", ""] * 2

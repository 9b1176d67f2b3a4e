"""What results of topics show in a notebook, and hand on as data frames."""

import numpy as np
import pytest

from pgmult.topics import as_corpus
from pgmult.topics.fits import NewDocuments
from pgmult.topics.scores import TopicChoice
from pgmult.topics.scores.selection import Candidate
from pgmult.topics.summaries import DocumentTopics, RunMatches
from pgmult.topics.summaries.documents import Quote, Quotes

pytest.importorskip("pandas")

MEAN = np.array([[0.25, 0.75], [0.5, 0.5]])
SHARES = DocumentTopics(
    ["d", "e"], MEAN, 0.1 * MEAN, 0.5 * MEAN, 1.2 * MEAN, 0.9, "one chain",
    np.stack([0.9 * MEAN, 1.1 * MEAN]),
)  # fmt: skip
CHOICE = TopicChoice(
    (
        Candidate(5, -7.0, -0.1, 0.02, 0.1, 8.0, 1.0),
        Candidate(9, -6.9, 0.0, 0.0, 0.2, 9.0, 2.0),
    ),
    np.array([[-7.0, -6.9], [-7.1, -6.8]]),
)  # fmt: skip


def quotes(note=""):
    found = [[Quote("a<b", 0.9, 0.8, 1.0, None if note else "some words")], []]
    return Quotes([1, 4], ["1 x", "4 y"], found, 0.9, note, np.array([[0.8], [1.0]]))


# a result, columns of its data frame, and what stands in a notebook
RESULTS = {
    "numbers of topics": (
        CHOICE,
        {"num_topics": [5, 9], "difference": [-0.1, 0.0]},
        "9 topics predict held-out words best",
    ),
    "quotes": (quotes(), {"topic": [1], "mean": [0.9], "text": ["some words"]}, "a&lt;b"),
    "documents": (
        SHARES,
        {"document": list("ddee"), "topic": [1, 2, 1, 2], "mean": MEAN.ravel().tolist()},
        "90 % intervals one chain",
    ),
    "new documents": (
        NewDocuments(SHARES, as_corpus([[1, 0], [1, 1]]), 1, 1, 2, [], {}),
        {"mean": MEAN.ravel().tolist()},
        "2 new documents",
    ),
    "two runs": (
        RunMatches(
            np.array([[1, 4], [0, 2]]),
            np.array([0.05, 0.25]),
            np.array([2, 3, 4]),
            np.array([], int),
            ([["a"]] * 5, [["b"]] * 5),
            np.array([[0.04, 0.2], [0.06, 0.3]]),
        ),
        {"first": [2, 1, 3, 4, 5], "second": [5.0, 3.0]},
        "2 topics found in both runs",
    ),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_are_shown_and_handed_on(name):
    result, columns, said = RESULTS[name]
    frame = result.to_dataframe()
    assert {column: frame[column].dropna().tolist() for column in columns} == columns
    assert said in result._repr_html_()
    assert len(result.draws) == 2
    assert "<svg" in result.figure().svg()


def test_quotes_without_texts_say_so():
    bare = quotes("only counts ship")
    assert "text" not in bare.table().columns
    assert "only counts ship</p>" in bare._repr_html_()


def test_what_is_printed():
    assert repr(SHARES) == "DocumentTopics(2 documents, 2 topics; one chain)"
    text = str(RESULTS["two runs"][0])
    assert ["0.05", "2", "a", "5", "b"] in [line.split() for line in text.splitlines()]
    assert "3 of the first run alone" in text

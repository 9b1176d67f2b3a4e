"""Tables beside a corpus: choices of rows and splits keep what belongs to a document."""

import numpy as np
import pytest
from topic_runs import speeches

import pgmult
from pgmult.sampling.codec import decode, encode
from pgmult.topics import (
    CorrelatedTopics,
    LogisticNormalTopics,
    as_corpus,
    split_tokens,
    with_covariates,
)
from pgmult.topics.data.documents import DocumentTable, Losses, PackedTexts, WordLoss

TEXTS = ["red blue", None, "", "grün \N{GREEK SMALL LETTER OMEGA} 🙂", "\ud800 lone", "x" * 1000]


@pytest.fixture
def corpus():
    """Document d has d + 1 tokens, and every column says d."""
    counts = np.array(
        [np.random.default_rng(0).multinomial(d + 1, np.full(5, 0.2)) for d in range(12)]
    )
    columns = {
        "speech": [f"text {d}" for d in range(12)],
        "year": np.arange(2000, 2012),
        "party": [["D", "R", "I"][d % 3] for d in range(12)],
    }
    made = as_corpus(counts, list("abcde"), [f"doc {d}" for d in range(12)])
    return pgmult.topics.Corpus(
        made.indptr, made.words, made.counts, 5, made.vocabulary, made.names,
        DocumentTable.of(columns, "speech"),
    )  # fmt: skip


def test_packed_texts_come_back():
    packed = PackedTexts.of(TEXTS)
    assert packed.unpack() == TEXTS
    assert len(packed.packed) < 200, "compressed"
    rows = np.array([4, 1, 1])
    assert packed[rows].unpack() == [TEXTS[4], None, None]
    assert packed[rows][np.array([0])].unpack() == [TEXTS[4]]
    assert PackedTexts.of([]).unpack() == []


def test_a_table_survives_a_run_directory():
    table = DocumentTable.of(
        {
            "a/b.c": ["x", None, "y"],
            "when": np.array(["2001-01-01", "2002-02-02", "NaT"], "M8[D]"),
            "size": [1, None, 3],
            "flag": [True, False, True],
        }
    )
    arrays = {}
    again = decode(encode(table, arrays), arrays)
    for name, column in table.columns.items():
        np.testing.assert_array_equal(again.columns[name], column)
    assert again[[2, 0]].columns["a/b.c"].tolist() == ["y", "x"]


@pytest.mark.parametrize("rows", [slice(2, 9, 3), [5, 0, 5], np.arange(12) % 2 == 0])
def test_chosen_rows_keep_all_that_belongs_to_them(corpus, rows):
    chosen, expected = corpus[rows], np.arange(12)[rows]
    np.testing.assert_array_equal(chosen.totals, expected + 1)
    np.testing.assert_array_equal(chosen.to_csr().toarray(), corpus.to_csr().toarray()[rows])
    assert chosen.names.tolist() == [f"doc {d}" for d in expected]
    assert chosen.table.texts == [f"text {d}" for d in expected]
    np.testing.assert_array_equal(chosen.table.columns["year"], 2000 + expected)
    data = corpus.with_covariates("~ year + party")
    np.testing.assert_array_equal(data[rows].covariates, data.covariates[rows])
    again = data[rows].design.rows({"year": 2005, "party": "R"})
    np.testing.assert_array_equal(again, data.design.rows({"year": 2005, "party": "R"}))


def test_splits_keep_covariates(corpus):
    """They used to be lost without a word."""
    data = corpus.with_covariates("~ year + party")
    for part in split_tokens(data, 5):
        assert type(part) is type(data)
        np.testing.assert_array_equal(part.covariates, data.covariates)
        assert part.table.texts == data.table.texts
    training, held_out = split_tokens(data, 5)
    np.testing.assert_array_equal(training.totals + held_out.totals, data.totals)


def test_covariates_of_a_corpus_that_has_no_table():
    with pytest.raises(ValueError, match=r"not read from a table.*with_covariates\(corpus, column"):
        as_corpus(np.eye(3)).with_covariates("~ year")


def test_covariates_of_the_table_are_those_of_the_columns(corpus):
    columns = {"year": np.arange(2000, 2012), "party": ["D", "R", "I"] * 4}
    np.testing.assert_array_equal(
        corpus.with_covariates("~ year * party").covariates,
        with_covariates(corpus, columns, "~ year * party").covariates,
    )


def test_rows_that_are_not_there(corpus):
    for rows, message in (
        ([12], r"rows must be at most 11, got 12"),
        (np.ones(3, bool), r"12 truth values, one of each, got 3"),
    ):
        with pytest.raises(ValueError, match=message):
            corpus[rows]
    with pytest.raises(ValueError, match=r"columns of the table, got 'years' \(it has 'speech'"):
        corpus.table.column("years")
    with pytest.raises(TypeError, match=r"must hold numbers, dates or strings: .*got \[1\]"):
        DocumentTable.of({"a": np.array([[1], "b"], dtype=object)})


def test_losses_add_up():
    losses = Losses(4, 1, 2, 10, 100, (WordLoss("stop words", 3, 60), WordLoss("rare", 2, 15)))
    lines = str(losses).splitlines()
    assert lines[0] == "4 documents, of which 3 are left without words (1 had none to begin with)."
    assert lines[3].split() == ["read", "10", "100", "(100.0%)"]
    assert lines[6].split() == ["kept", "5", "25", "(25.0%)"]


def test_shares_by_a_column_are_averages_of_documents():
    run = speeches()
    shares = run.shares("party")
    theta = np.asarray(run["theta"])
    party = run.data.table.columns["party"]
    np.testing.assert_allclose(shares.mean.sum(axis=1), 1.0)
    assert shares.labels["party"] == sorted(set(party))
    chain = run.shares("party", chain=1)
    expected = theta[0][:, party == "D"].mean(axis=(0, 1))
    np.testing.assert_allclose(chain.mean[chain.labels["party"].index("D")], expected)
    with pytest.raises(ValueError, match="'height'"):
        run.shares("height")


def test_texts_of_one_word_each_are_refused():
    corpus = as_corpus(np.eye(8, dtype=int)[np.arange(40) % 8])
    for model in (CorrelatedTopics(2), LogisticNormalTopics(2)):
        with pytest.raises(ValueError, match="documents of two words or more"):
            model.as_data(corpus)

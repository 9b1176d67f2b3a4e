"""What data frames come in: names that are numbers or tuples, and lists in cells."""

import numpy as np
import pandas as pd
import pytest

import pgmult
from pgmult.sequences import as_sequences
from pgmult.topics import as_corpus, with_covariates

TEXTS = ["the cat sat on mats", "dogs run far", "cats and dogs run"] * 4
FRAME = pd.DataFrame(
    {"text": TEXTS, "vote": list("abc") * 4, "x": np.arange(12.0), "g": ["u", "v"] * 6}
)
NUMBERED = FRAME.set_axis(range(4), axis=1)
LEVELS = FRAME.set_axis(pd.MultiIndex.from_product([["k"], FRAME.columns]), axis=1)
STEPS = pd.DataFrame({"s": [1, 1, 1, 2, 2, 2], "y": list("abcabd")})
LISTS = STEPS.groupby("s").agg(list)


@pytest.mark.parametrize("dtype", [None, "string", "category"])
def test_a_series_of_texts_is_a_list_of_them(dtype):
    series = pd.Series(TEXTS, dtype=dtype, index=range(5, 17))
    whole, found = (pgmult.read({"text": texts}).corpus("text") for texts in (TEXTS, series))
    np.testing.assert_array_equal(found.to_csr().toarray(), whole.to_csr().toarray())
    one, other = (
        pgmult.read(FRAME).corpus("text", stop_words=words)
        for words in (["the", "and"], pd.Series(["the", "and"]))
    )
    assert one.vocabulary.tolist() == other.vocabulary.tolist()


def test_columns_whose_names_are_numbers():
    table = pgmult.read(NUMBERED)
    assert list(table.columns) == ["0", "1", "2", "3"]
    named = pgmult.read(FRAME)
    for formula, plain in (("`1` ~ `2` + (1 | `3`)", "vote ~ x + (1 | g)"),):
        one, other = table.rows(formula), named.rows(plain)
        np.testing.assert_array_equal(one.counts, other.counts)
        np.testing.assert_array_equal(one.design.matrix, other.design.matrix)
    assert table.corpus("0").num_tokens == named.corpus("text").num_tokens
    design = with_covariates(np.ones((12, 3), dtype=int), NUMBERED[[2, 3]]).design
    assert design.names.tolist() == ["Intercept", "2", "3[T.v]"]
    backwards = pgmult.read(NUMBERED[[3, 2, 1]])
    assert backwards.cells["2"].values.tolist() == FRAME["x"].tolist()


def test_rows_of_several_index_levels_are_rows():
    table = pgmult.read(FRAME.set_index(["g", "x"]))
    assert list(table.columns) == ["text", "vote"]
    counts = as_corpus(pd.crosstab(FRAME["g"], FRAME["vote"]))
    assert counts.num_tokens == 12


def test_lists_in_cells_are_sequences():
    whole = as_sequences([list("abc"), list("abd")])
    for column in (LISTS["y"], LISTS["y"].to_numpy(), LISTS["y"].tolist()):
        found = as_sequences(column)
        np.testing.assert_array_equal(found.symbols, whole.symbols)
        np.testing.assert_array_equal(found.offsets, whole.offsets)
    numbers = as_sequences(pd.Series([[0, 1, 1], [1, 0]]))
    assert numbers.lengths.tolist() == [3, 2]
    words = as_sequences(pd.Series(["sun", "rain", "sun", "sun"]))  # one sequence of words
    assert words.num_sequences == 1
    assert as_sequences(["abc", "abd"]).num_sequences == 2
    assert as_sequences([pd.Series(["abc", "abd"])]).num_sequences == 1


SAID_IN_ONE_SENTENCE = {
    "levels": (lambda: pgmult.read(LEVELS), ValueError, r"got several, such as \('k'"),
    "levels of covariates": (
        lambda: with_covariates(np.ones((12, 3), dtype=int), LEVELS), ValueError,
        r"covariates must have one name for each column",
    ),
    "1 and '1'": (
        lambda: pgmult.read(FRAME.set_axis(["1", 1, "x", "g"], axis=1)), ValueError,
        "columns of different names",
    ),
    "a series": (lambda: pgmult.read(FRAME["text"]), TypeError, "must be a data frame"),
    "texts or words": (
        lambda: as_sequences(pd.Series(["abc", "abd"])), ValueError,
        r"column of 2 strings .* list\(data\) takes each .* \[data\] all",
    ),
    "long texts": (
        lambda: as_sequences(pd.Series(["acgt" * 10] * 3)), ValueError, "column of 3 strings",
    ),
    "a frame of lists": (lambda: as_sequences(LISTS), TypeError, r"strings alone: frame\['y'\]"),
    "lists as symbols": (
        lambda: pgmult.read(LISTS).sequences(symbol="y"), TypeError, r"frame.explode\(column\)",
    ),
    "lists as covariates": (
        lambda: pgmult.read(LISTS.reset_index()).rows("s ~ y"), TypeError,
        r"got list \(frame.explode\(column\)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SAID_IN_ONE_SENTENCE)
def test_what_is_refused_says_so_in_one_sentence(case):
    ask, kind, said = SAID_IN_ONE_SENTENCE[case]
    with pytest.raises(kind, match=said) as raised:
        ask()
    assert "\n" not in str(raised.value)

"""Sequences take what users have, and refuse what cannot be meant."""

import numpy as np
import pytest
import scipy.sparse

from pgmult.sequences.data.sequences import as_sequences, simulate_symbols

COUNTS = np.array([[1, 2, 0], [0, 0, 0], [3, 0, 0]])


def rows(data):
    return data.to_csr().toarray()


def test_symbols_labels_and_strings_are_the_same_thing():
    symbols = as_sequences([[2, 0, -1], np.array([1])], num_symbols=3)
    labels = as_sequences([["c", "a", None], ["b"]])
    strings = as_sequences([["c", "a", None], "b"], alphabet=["a", "b", "c"])
    for data in (symbols, labels, strings):
        np.testing.assert_array_equal(rows(data), [[0, 0, 1], [1, 0, 0], [0, 0, 0], [0, 1, 0]])
        np.testing.assert_array_equal(data.offsets, [0, 3, 4])
        np.testing.assert_array_equal(data.totals, [1, 1, 0, 1])
    assert symbols.alphabet is None
    assert labels.alphabet.tolist() == ["a", "b", "c"]


def test_one_sequence_needs_no_list():
    for data in ("ABA", np.array([0, 1, 0]), [0, 1, 0]):
        assert as_sequences(data).lengths.tolist() == [3]
    assert as_sequences(COUNTS).lengths.tolist() == [3]
    assert as_sequences(scipy.sparse.csr_array(COUNTS)).lengths.tolist() == [3]


@pytest.mark.parametrize("convert", [np.array, np.float64, scipy.sparse.coo_array])
def test_counts(convert):
    data = as_sequences([convert(COUNTS), convert(COUNTS[:1])])
    np.testing.assert_array_equal(rows(data), np.vstack([COUNTS, COUNTS[:1]]))
    assert data.counts.dtype == data.symbols.dtype == np.int32
    np.testing.assert_array_equal(data.totals, [3, 0, 3, 3])


def test_frequent_symbols_come_first_unless_told_otherwise():
    assert as_sequences("CABBCB").order.tolist() == [1, 2, 0]
    assert as_sequences("CABBCB", order=[2, 0, 1]).order.tolist() == [2, 0, 1]
    again = as_sequences(as_sequences("CABBCB"), order=[0, 1, 2])
    assert again.order.tolist() == [0, 1, 2]
    assert as_sequences(again).order.tolist() == [0, 1, 2]
    assert as_sequences(again, order="frequency").order.tolist() == [1, 2, 0]


def test_inputs_for_all_steps_or_a_sequence_each():
    u = np.arange(10.0).reshape(5, 2)
    for inputs in (u, [u[:3], u[3:]]):
        data = as_sequences([[0, 1, 0], [1, 1]], inputs=inputs)
        np.testing.assert_array_equal(data.inputs, u)
        assert data.num_inputs == 2
    assert as_sequences([[0, 1]]).num_inputs == 0


def test_split_take_and_extend_keep_everything_together():
    u = np.arange(5.0)[:, None]
    data = as_sequences([[0, -1, 1], [1, 2]], inputs=u, names=["x", "y"])
    past, future = data.split(-1)
    assert past.lengths.tolist() == [2, 1]
    assert future.lengths.tolist() == [1, 1]
    np.testing.assert_array_equal(future.symbols, [1, 2])
    np.testing.assert_array_equal(future.inputs[:, 0], [2.0, 4.0])
    np.testing.assert_array_equal(data.split([1, 1])[0].symbols, [0, 1])
    second = data.take([1])
    assert second.names.tolist() == ["y"]
    np.testing.assert_array_equal(second.symbols, [1, 2])
    np.testing.assert_array_equal(data.take([1, 0]).symbols, [1, 2, 0, 1])
    longer = data.extended(2, inputs=np.array([[[5.0], [6.0]], [[7.0], [8.0]]]))
    assert longer.lengths.tolist() == [5, 4]
    np.testing.assert_array_equal(longer.totals, [1, 0, 1, 0, 0, 1, 1, 0, 0])
    np.testing.assert_array_equal(longer.inputs[:, 0], [0, 1, 2, 5, 6, 3, 4, 7, 8])
    np.testing.assert_array_equal(longer.symbols, data.symbols)
    for part in (past, future, second, longer):
        np.testing.assert_array_equal(part.order, data.order)


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ([[0, 1], []], {}, "sequence 2 is empty"),
        ([], {}, "at least one sequence"),
        ([[0, 1], [1, 3]], {"num_symbols": 3}, "got 3 at step 2 of sequence 2"),
        ([[0, -2]], {}, "got -2 at step 2 of sequence 1"),
        ([[0, np.nan]], {}, "got nan at step 2 of sequence 1.*missing step is -1"),
        ([[0, 0.5]], {}, "got 0.5 at step 2"),
        ([COUNTS, COUNTS - 1], {}, "of sequence 2 must be non-negative integers, got -1 at"),
        ([COUNTS + 0.5], {}, "of sequence 1 must be .*, got 1.5 at"),
        (np.where(COUNTS == 3, np.nan, COUNTS), {}, "of sequence 1 must be .*, got nan at row 2"),
        (
            scipy.sparse.csr_array(np.where(COUNTS == 3, np.nan, COUNTS)),
            {},
            "stored counts of .* got nan",
        ),
        ([COUNTS, COUNTS[:, :2]], {}, "got 2 columns in sequence 2 and 3"),
        ([COUNTS, [0, 1]], {}, "one kind, got counts and symbols"),
        ([[0, 0]], {}, "at least 2 symbols"),
        ([[-1, -1]], {"num_symbols": 4}, "all steps are missing"),
        ("ABX", {"alphabet": "AB"}, "got 'X' at step 3 of sequence 1"),
        ("AB", {"alphabet": "AAB"}, "3 different labels"),
        ("AB", {"num_symbols": 5}, "num_symbols is 5, the data have 2"),
        ("ABC", {"order": [0, 1, 1]}, "permutation of 0, ..., 2"),
        ("ABC", {"order": "alphabetical"}, "'frequency', 'given' or a permutation"),
        ([[0, 10**9]], {}, r"below 1,000,000 unless num_symbols is given, got"),
        ("ABC", {"inputs": np.zeros((2, 1))}, r"\(3, num_inputs\)"),
        ("ABC", {"inputs": [[0.0], [np.nan], [1.0]]}, "inputs must be finite, got nan at row 1"),
        (["AB", "BA"], {"inputs": [np.zeros((2, 1)), np.zeros((3, 1))]}, "inputs of sequence 2"),
        ("ABC", {"names": ["a", "b"]}, "names must be one a sequence"),
        (np.zeros((2, 2, 2, 2)), {}, "1 to 3 axes"),
        (scipy.sparse.csr_array(np.array([[2**31, 1]])), {}, "below 2..31"),
    ],
)
def test_bad_input_is_named(data, options, message):
    with pytest.raises(ValueError, match=message):
        as_sequences(data, **options)


@pytest.mark.parametrize("data", [7, [7, "a"], [3, [1, 2]], [[["a"]]]])
def test_what_is_no_sequence(data):
    with pytest.raises((TypeError, ValueError)):
        as_sequences(data)


@pytest.mark.parametrize(
    "data", [b"ABBA", [b"AB", b"BA"], {"x": [0, 1]}, {0, 1}, (x for x in "AB"), ["sun", None]]
)
def test_nothing_is_guessed_of_other_types(data):
    with pytest.raises(TypeError, match=r"must be a list, string, .*decode bytes; .*names="):
        as_sequences(data)


def test_more_symbols_than_anybody_has_must_be_meant():
    assert as_sequences([[0, 10**6 + 1]], num_symbols=2 * 10**6).num_symbols == 2 * 10**6


def test_arrays_of_words_are_one_sequence():
    for words in (np.array(["sun", "rain"]), np.array(["sun", None, "rain"], dtype=object)):
        data = as_sequences(words)
        assert data.lengths.tolist() == [len(words)]
        assert data.alphabet.tolist() == ["rain", "sun"]
    two = np.empty(2, dtype=object)
    two[:] = [["sun", "rain"], ["sun"]]
    assert as_sequences(two).lengths.tolist() == [2, 1]


def test_tables_are_count_series_and_columns_are_sequences():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"wine": [2, 0, 1], "beer": [1, 0, 3]}, index=[1950, 1951, 1952])
    data = as_sequences(table)
    assert data.alphabet.tolist() == ["wine", "beer"]
    np.testing.assert_array_equal(rows(data), [[2, 1], [0, 0], [1, 3]])
    assert as_sequences([table, table]).lengths.tolist() == [3, 3]
    with pytest.raises(ValueError, match="columns of sequence 2 must be the alphabet, wine, beer"):
        as_sequences([table, table[["beer", "wine"]]])
    with pytest.raises(TypeError, match="must hold integers, strings or counts"):
        as_sequences(pandas.DataFrame({"day": ["sun", "rain"]}))
    words = pandas.Series(["sun", None, "rain"])
    for column in (words, words.astype("category"), pandas.Categorical(words)):
        data = as_sequences(column)
        assert data.alphabet.tolist() == ["rain", "sun"]
        np.testing.assert_array_equal(data.totals, [1, 0, 1])
    assert as_sequences([words, words]).lengths.tolist() == [3, 3]
    np.testing.assert_array_equal(as_sequences(pandas.Series([0, 1, 1])).symbols, [0, 1, 1])


def test_cuts_and_extensions_are_checked():
    data = as_sequences([[0, 1, 1], [1, 0]])
    for at in (0, 2, -3, [1, 2]):
        with pytest.raises(ValueError, match="both sides"):
            data.split(at)
    with pytest.raises(ValueError, match="have no inputs"):
        data.extended(1, inputs=np.zeros((2, 1, 1)))
    driven = as_sequences(data, inputs=np.zeros((5, 2)))
    with pytest.raises(ValueError, match=r"the steps ahead, of shape \(2, 1, 2\)"):
        driven.extended(1)
    with pytest.raises(ValueError, match="must have shape"):
        driven.extended(1, inputs=np.zeros((2, 2, 2)))


def test_simulated_data_keep_totals_and_follow_the_probabilities():
    rng = np.random.default_rng(0)
    like = as_sequences([np.array([[1, 0, 0], [0, 5, 0], [0, 0, 0], [0, 1, 0]])])
    probs = np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1], [0.1, 0.1, 0.8], [0.0, 1.0, 0.0]])
    total = np.zeros((4, 3))
    for _ in range(2000):
        data = simulate_symbols(rng, probs, like)
        np.testing.assert_array_equal(data.totals, like.totals)
        total += rows(data)
    expected = probs * like.totals[:, None]
    sd = np.sqrt(expected * (1.0 - probs) * 2000)
    assert (np.abs(total - 2000 * expected) <= 4.5 * sd).all()

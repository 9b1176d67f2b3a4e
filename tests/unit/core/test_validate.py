"""Bad input: what was wrong, where it stood, what was expected. Good input: dtype and order."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from pgmult.core.validate import (
    as_counts,
    as_finite,
    as_generator,
    as_nonnegative,
    as_positive,
    as_positive_int,
    as_simplex,
    as_spd,
    new_key,
)
from pgmult.topics.data.corpus import Corpus, as_corpus

GOOD = np.array([[2, 0, 1], [0, 0, 0], [4, 1, 0]])


def spoiled(value, row=2, column=1):
    counts = GOOD.astype(float)
    counts[row, column] = value
    return counts


# ------------------------------------------------------------------ counts

BAD_COUNTS = [
    (-1.0, r"counts must be non-negative integers, got -1(\.0)? at row 2, column 1"),
    (0.5, r"got 0\.5 at row 2, column 1 \(did you pass proportions"),
    (np.nan, "got nan at row 2, column 1"),
    (np.inf, "got inf at row 2, column 1"),
    (-np.inf, "got -inf at row 2, column 1"),
    (-0.5, r"got -0\.5 at row 2, column 1"),
]
FORMS = [
    np.asarray,
    np.asfortranarray,
    lambda counts: counts.tolist(),
    scipy.sparse.csr_array,
    scipy.sparse.csc_matrix,
    scipy.sparse.coo_array,
    lambda counts: counts.astype(np.float32),
]


@pytest.mark.parametrize(("value", "message"), BAD_COUNTS)
def test_bad_counts_are_refused_with_their_place(value, message):
    with pytest.raises(ValueError, match=message):
        as_counts(spoiled(value))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("value", "message"), BAD_COUNTS)
def test_a_corpus_refuses_bad_counts_with_their_place(form, value, message):
    with pytest.raises(ValueError, match=message):
        as_corpus(form(spoiled(value)))


@pytest.mark.parametrize("value", [-3, -(2**40)])
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_negative_integers(form, value):
    counts = GOOD.copy()
    counts[0, 2] = value
    with pytest.raises(ValueError, match=f"got {value} at row 0, column 2"):
        as_corpus(form(counts))


@given(
    shape=st.tuples(st.integers(1, 6), st.integers(1, 6)),
    value=st.one_of(
        st.floats(max_value=-1e-9, allow_nan=False),
        st.floats(min_value=1e-9, max_value=0.999),
        st.just(np.nan),
        st.floats(min_value=2.0**63),
    ),
    data=st.data(),
)
@settings(max_examples=80, deadline=None)
def test_the_place_of_a_bad_count_is_right_in_every_form(shape, value, data):
    row = data.draw(st.integers(0, shape[0] - 1))
    column = data.draw(st.integers(0, shape[1] - 1))
    counts = np.ones(shape)
    counts[row, column] = value
    for check in (as_counts, as_corpus, lambda c: as_corpus(scipy.sparse.csr_array(c))):
        with pytest.raises(ValueError, match=f"at row {row}, column {column}"):
            check(counts)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (["a", "b"], "array of numbers, got dtype <U1"),
        ([1 + 2j], "got dtype complex128"),
        ([None, 1], "got dtype object"),
        (np.array(["2020-01-01"], dtype="M8[D]"), "got dtype datetime64"),
    ],
)
def test_counts_that_are_no_numbers(value, message):
    with pytest.raises(TypeError, match=message):
        as_counts(value)


def test_rows_of_different_lengths():
    with pytest.raises(ValueError, match="counts must be a rectangular array of numbers"):
        as_counts([[1, 2], [3]])


def test_masked_counts_are_not_read_under_the_mask():
    masked = np.ma.masked_equal(GOOD, 4)
    for check in (as_counts, as_corpus):
        with pytest.raises(ValueError, match="must not be masked"):
            check(masked)
    np.testing.assert_array_equal(as_counts(np.ma.masked_equal(GOOD, 99)), GOOD)


@pytest.mark.parametrize("value", [2**63, 2**64 - 1])
def test_unsigned_counts_do_not_wrap_around(value):
    with pytest.raises(ValueError, match=f"below 2.*63, got {value} at position 1"):
        as_counts(np.array([1, value], dtype=np.uint64))


@pytest.mark.parametrize(
    "dtype", [np.bool_, np.int8, np.uint8, np.int32, np.uint64, np.float16, np.float64]
)
def test_counts_become_int64_in_c_order(dtype):
    counts = np.asfortranarray((GOOD > 0).astype(dtype))
    taken = as_counts(counts)
    assert taken.dtype == np.int64
    assert taken.flags.c_contiguous
    np.testing.assert_array_equal(taken, GOOD > 0)


def test_counts_of_any_number_of_axes():
    assert as_counts(3).shape == ()
    assert as_counts(np.float64(3.0)).shape == ()
    assert as_counts(np.zeros((0, 4))).shape == (0, 4)
    with pytest.raises(ValueError, match=r"got -1$"):
        as_counts(-1)
    with pytest.raises(ValueError, match=r"got 0\.5 \(did you"):
        as_counts(0.5)
    with pytest.raises(ValueError, match=r"got -1 at index \(1, 0, 1\)"):
        as_counts([[[1, 1]], [[1, -1]]])


# ------------------------------------------------------------------ corpora


@pytest.mark.parametrize("form", FORMS)
def test_every_form_makes_the_same_corpus(form):
    corpus = as_corpus(form(GOOD.astype(float)), vocabulary=["a", "b", "c"], names=["x", "y", "z"])
    np.testing.assert_array_equal(corpus.to_csr().toarray(), GOOD)
    np.testing.assert_array_equal(corpus.totals, [3, 0, 5])
    assert (corpus.num_documents, corpus.num_words, corpus.num_tokens) == (3, 3, 8)
    assert corpus.indptr.dtype == np.int64
    assert corpus.words.dtype == corpus.counts.dtype == np.int32
    assert corpus.vocabulary.tolist() == ["a", "b", "c"]
    again = as_corpus(corpus)
    assert again.vocabulary is not None
    assert again.names.tolist() == ["x", "y", "z"]
    np.testing.assert_array_equal(again.counts, corpus.counts)


def test_the_callers_matrix_is_left_alone():
    matrix = scipy.sparse.csr_array(
        (np.array([1.0, 2.0, 0.0]), np.array([2, 2, 0]), np.array([0, 3])), shape=(1, 4)
    )
    corpus = as_corpus(matrix)
    assert matrix.nnz == 3
    assert matrix.data.dtype == np.float64
    assert (corpus.words.tolist(), corpus.counts.tolist()) == ([2], [3])


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([1, 2, 3], r"documents by words, got 1 axes \(shape \(3,\)\)"),
        (np.zeros((2, 2, 2)), r"documents by words, got 3 axes"),
        (5, "documents by words, got 0 axes"),
        (scipy.sparse.coo_array(np.ones(3)), "documents by words"),
    ],
)
def test_a_corpus_has_two_axes(counts, message):
    with pytest.raises(ValueError, match=message):
        as_corpus(counts)


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_a_corpus_counts_below_two_to_the_31(form):
    assert as_corpus(form(np.array([[2**31 - 1]]))).num_tokens == 2**31 - 1
    with pytest.raises(ValueError, match=r"below 2\*\*31, got 2147483648"):
        as_corpus(form(np.array([[2**31]])))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"vocabulary": ["a", "b"]}, r"vocabulary .* 3 words \(columns\) of counts, got \(2,\)"),
        ({"names": list("wxyz")}, r"names .* 3 documents \(rows\) of counts, got \(4,\)"),
    ],
)
def test_names_of_the_wrong_length(names, message):
    with pytest.raises(ValueError, match=message):
        as_corpus(GOOD, **names)


@pytest.mark.parametrize("vocabulary", ["abc", [["a", "b", "c"]], {"a", "b", "c"}, [1, 2, 3]])
def test_a_vocabulary_that_is_no_list_of_words(vocabulary):
    with pytest.raises(TypeError, match="vocabulary must be"):
        as_corpus(GOOD, vocabulary=vocabulary)


def test_a_corpus_of_another_type():
    with pytest.raises(TypeError, match="CountVectorizer"):
        as_corpus("some text")
    with pytest.raises(TypeError, match="array of numbers"):
        as_corpus(scipy.sparse.csr_array(GOOD.astype(complex)))


def test_a_corpus_says_what_it_is():
    assert repr(as_corpus(GOOD)) == "Corpus(3 documents, 3 words, 8 tokens)"
    assert isinstance(as_corpus(GOOD), Corpus)


# ------------------------------------------------------------------ real numbers


@pytest.mark.parametrize(
    ("check", "value", "message"),
    [
        (as_finite, [1.0, np.nan], "x must be finite, got nan at position 1"),
        (as_finite, [[0.0], [-np.inf]], "x must be finite, got -inf at row 1, column 0"),
        (as_finite, np.nan, "x must be finite, got nan$"),
        (as_positive, [1.0, 0.0], r"x must be positive, got 0\.0 at position 1"),
        (as_positive, [np.inf], "must be finite"),
        (as_nonnegative, [0.0, -1e-300], "got -1e-300 at position 1"),
    ],
)
def test_bad_numbers(check, value, message):
    with pytest.raises(ValueError, match=message):
        check(value, "x")


@pytest.mark.parametrize("check", [as_finite, as_positive, as_nonnegative])
def test_good_numbers_become_float64_in_c_order(check):
    taken = check(np.asfortranarray([[1, 2], [3, 4]], dtype=np.float32), "x")
    assert taken.dtype == np.float64
    assert taken.flags.c_contiguous
    assert check(2, "x").shape == ()
    assert check(np.ones((0, 3)), "x").shape == (0, 3)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([0.5, 0.6], r"pi must sum to 1 on its last axis, got 1\.1 \(divide by the sum"),
        ([[0.5, 0.5], [0.2, 0.7]], r"got 0\.8999.* at position 1"),
        ([1.5, -0.5], r"pi must be non-negative, got -0\.5 at position 1"),
        ([1.0], r"at least 2 categories on its last axis, got shape \(1,\)"),
        (1.0, r"at least 2 categories"),
        ([0.5, np.nan], "pi must be finite"),
    ],
)
def test_bad_probabilities(value, message):
    with pytest.raises(ValueError, match=message):
        as_simplex(value)


def test_good_probabilities():
    assert as_simplex([[1, 0], [0, 1]]).dtype == np.float64
    as_simplex([1 / 3, 1 / 3, 1 / 3])


# ------------------------------------------------------------------ matrices


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([[1.0, 2.0], [2.0, 1.0]], r"Sigma must be positive definite, .* eigenvalue -1 \(add"),
        ([[1.0, 1.0], [1.0, 1.0]], "Sigma must be positive definite"),
        (np.zeros((2, 2)), "Sigma must be positive definite"),
        (np.stack([np.eye(2), -np.eye(2)]), "smallest eigenvalue -1"),
        ([[1.0, 0.5], [0.4, 1.0]], "Sigma must be symmetric, it is not at row 0, column 1"),
        (np.ones((2, 3)), r"square matrix, got shape \(2, 3\)"),
        ([1.0, 2.0], r"square matrix, got shape \(2,\)"),
        (np.ones((0, 0)), "square matrix"),
        ([[np.nan]], "Sigma must be finite"),
        (np.eye(3), "Sigma must be 2 x 2, got 3 x 3"),
    ],
)
def test_bad_covariances(value, message):
    with pytest.raises(ValueError, match=message):
        as_spd(value, "Sigma", size=2 if np.shape(value) == (3, 3) else None)


def test_good_covariances():
    assert as_spd([[2, 1], [1, 2]], "Sigma", 2).dtype == np.float64
    assert as_spd(np.stack([np.eye(3)] * 4), "Sigma").shape == (4, 3, 3)
    rounding = np.eye(2) + np.array([[0.0, 1e-12], [0.0, 0.0]])
    as_spd(rounding, "Sigma")


# ------------------------------------------------------------------ integers and generators


@pytest.mark.parametrize("value", [True, np.True_, 3.0, "3", None, np.array([3])])
def test_no_integers(value):
    with pytest.raises(TypeError, match="num_topics must be an integer, got"):
        as_positive_int(value, "num_topics")


def test_integers_have_a_minimum():
    assert as_positive_int(np.int32(3), "num_topics", minimum=2) == 3
    assert type(as_positive_int(np.int32(3), "num_topics")) is int
    with pytest.raises(ValueError, match="num_topics must be at least 2, got 1"):
        as_positive_int(1, "num_topics", minimum=2)


@pytest.mark.parametrize("value", [0, None, np.random, "seed"])
def test_no_generators(value):
    with pytest.raises(TypeError, match=r"rng must be a numpy.random.Generator, got .*default_rng"):
        as_generator(value)


def test_a_key_is_fresh_every_time_and_a_function_of_the_generator():
    one, two = np.random.default_rng(5), np.random.default_rng(5)
    keys = [tuple(new_key(one)) for _ in range(100)]
    assert len(set(keys)) == 100
    assert keys == [tuple(new_key(two)) for _ in range(100)]
    assert new_key(one).dtype == np.uint64
    assert new_key(one).shape == (2,)


@pytest.mark.parametrize("bits", ["PCG64", "PCG64DXSM", "Philox", "SFC64", "MT19937"])
def test_keys_are_two_integers_of_64_bits(bits):
    ones = np.random.Generator(getattr(np.random, bits)(3))
    others = np.random.Generator(getattr(np.random, bits)(3))
    for _ in range(3):
        expected = others.integers(0, 2**64, size=2, dtype=np.uint64)
        np.testing.assert_array_equal(new_key(ones), expected)

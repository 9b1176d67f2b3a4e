"""Designs from columns, matrices and formulas; the structural topic model on small corpora."""

import numpy as np
import pandas as pd
import pytest

from pgmult import MatrixNormalInverseWishart, sample
from pgmult.topics import (
    CorrelatedTopics,
    LogisticNormalTopics,
    StructuralTopics,
    as_corpus,
    split_tokens,
    with_covariates,
)

YEARS = np.array([1990.0, 1995.0, 2000.0, 2005.0, 2010.0, 2020.0])
PARTIES = np.array(["R", "D", "R", "I", "D", "I"])
COLUMNS = {"year": YEARS, "party": PARTIES}


@pytest.fixture
def corpus(rng):
    """Six documents, one of them empty."""
    counts = rng.poisson(1.0, size=(6, 8))
    counts[2] = 0
    return as_corpus(counts, [f"word{v}" for v in range(8)])


# ------------------------------------------------------------------ designs


def test_main_effects_of_columns(corpus):
    design = with_covariates(corpus, COLUMNS, standardize=False).design
    assert list(design.names) == ["Intercept", "year", "party[T.I]", "party[T.R]"]
    expected = np.column_stack([np.ones(6), YEARS, PARTIES == "I", PARTIES == "R"])
    np.testing.assert_array_equal(design.matrix, expected)


def test_numbers_are_standardized_and_zeros_and_ones_are_not(corpus):
    design = with_covariates(corpus, COLUMNS).design
    np.testing.assert_allclose(design.matrix[:, 1].mean(), 0.0, atol=1e-14)
    np.testing.assert_allclose(design.matrix[:, 1].std(), 1.0)
    assert set(np.unique(design.matrix[:, [0, 2, 3]])) == {0.0, 1.0}


def test_a_formula_reads_only_the_columns_it_names(corpus):
    broken = {**COLUMNS, "note": [None] * 6, "my year": YEARS}
    data = with_covariates(corpus, broken, "~ log(`my year`) + party")
    assert set(data.design.columns.names) == {"party", "my year"}
    intercept_alone = with_covariates(corpus, broken, "~ 1")
    np.testing.assert_array_equal(intercept_alone.covariates, np.ones((6, 1)))


def test_scaling_is_undone(rng, corpus):
    """Coefficients of the covariates as given predict what those of the design matrix do."""
    data = with_covariates(corpus, COLUMNS, "~ year * party")
    plain = with_covariates(corpus, COLUMNS, "~ year * party", standardize=False)
    coefficients = rng.normal(size=(2, 6, 3))
    np.testing.assert_allclose(
        plain.covariates @ data.design.unscale(coefficients),
        data.covariates @ coefficients,
        rtol=1e-9,
    )
    np.testing.assert_array_equal(plain.design.unscale(coefficients), coefficients)


def test_a_matrix_will_do(corpus):
    matrix = np.column_stack([YEARS, YEARS**2])
    data = with_covariates(corpus, matrix)
    assert list(data.design.names) == ["Intercept", "x0", "x1"]
    np.testing.assert_allclose(data.design.rows(matrix[3:]), data.covariates[3:])
    named = with_covariates(corpus, matrix, names=["year", "square"])
    assert list(named.design.names) == ["Intercept", "year", "square"]
    np.testing.assert_allclose(
        named.design.rows({"square": [1990.0**2], "year": 1990}), data.covariates[:1]
    )


def test_labels_of_all_kinds(corpus):
    flags = YEARS > 2000
    ordered = pd.Categorical(PARTIES, categories=["R", "X", "D", "I"])
    frame = pd.DataFrame({"flag": flags, "party": ordered})
    frame["size"] = pd.array([1, 2, 3, 4, 5, 5], dtype="Int64")
    data = with_covariates(corpus, frame)
    assert list(data.design.names) == [
        "Intercept", "flag[T.True]", "party[T.D]", "party[T.I]", "size",
    ]  # fmt: skip
    np.testing.assert_array_equal(data.covariates[:, 1], flags)
    again = with_covariates(corpus, frame, "~ flag + party + size")
    np.testing.assert_allclose(again.covariates, data.covariates)


def test_a_structured_corpus_is_a_corpus(rng, corpus):
    data = with_covariates(corpus, COLUMNS)
    assert as_corpus(data) is data
    assert CorrelatedTopics(2).as_data(data) is data
    assert ", prevalence ~ year + party)" in repr(data)
    training, _ = split_tokens(data, documents=2)
    assert with_covariates(training, COLUMNS).num_tokens < data.num_tokens


@pytest.mark.parametrize(
    ("columns", "formula", "error", "message"),
    [
        (
            {"year": [1, 2, np.nan, 4, 5, 6]},
            None,
            ValueError,
            "'year' has a missing value at row 2",
        ),
        (
            {"party": ["D", None, "R", "D", "R", "D"]},
            None,
            ValueError,
            "'party' has a missing value at row 1",
        ),
        (
            {"size": pd.array([1, 2, 3, None, 5, 6], dtype="Int64")},
            None,
            ValueError,
            "'size' has a missing value at row 3",
        ),
        (
            {"year": np.ma.masked_equal([1, 2, 3, 4, 5, 6], 5)},
            None,
            ValueError,
            "'year' has a missing value at row 4",
        ),
        ({"year": [1, 2, np.inf, 4, 5, 6]}, None, ValueError, "'year' must be finite, got inf at"),
        ({"year": YEARS[:5]}, None, ValueError, r"each of the 6 rows .*got shape \(5,\)"),
        ({"flat": np.full(6, 3.0)}, None, ValueError, "'flat' is constant, 3.0 in every row"),
        ({"a": YEARS, "b": 2 * YEARS + 1}, None, ValueError, "'b' is a linear combination of a "),
        (
            {**COLUMNS, "red": PARTIES == "R", "blue": YEARS > 1990},
            "~ year + party + red",
            ValueError,
            r"'red\[T.True\]' is a linear combination of party\[T.R\]",
        ),
        ({"id": list("abcdef"), "x": YEARS}, None, ValueError, "need at least as many rows"),
        ({"gap": np.arange(6).astype("m8[D]")}, None, TypeError, "numbers, dates or labels, got"),
        ({"x": [1, "a", 2, "b", 3, 4]}, None, TypeError, "it mixes the two"),
        (YEARS, None, ValueError, r"DataFrame or a matrix .* got ndarray with shape \(6,\)"),
        (COLUMNS, "party ~ year", ValueError, "no outcome, got 'party ~ year'"),
        (
            {"x": [1.0, 2.0, 0.0, 4.0, 5.0, 6.0]},
            "~ log(x)",
            ValueError,
            r"'log\(x\)' is not, got -inf at row 2",
        ),
    ],
)
def test_bad_covariates_are_refused(corpus, columns, formula, error, message):
    with pytest.raises(error, match=message):
        with_covariates(corpus, columns, formula)


def test_bad_names_are_refused(corpus):
    with pytest.raises(ValueError, match="columns of different names, got a, a"):
        with_covariates(corpus, pd.DataFrame(np.eye(6)[:, :2], columns=["a", "a"]))
    for names in (["a"], ["a", "a"]):
        with pytest.raises(ValueError, match=r"covariates must have . columns"):
            with_covariates(corpus, np.eye(6)[:, :2], names=names)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"year": 2000}, "must have a column 'party', got year"),
        ({"year": 2000, "party": "Z"}, "'party' must be one of D, I, R, got 'Z'"),
        ({"year": "late", "party": "D"}, "'year' must hold numbers, as before, got 'late'"),
        ({"year": [2000, 2001, 2002], "party": ["D", "R"]}, "each of the 3 rows"),
        ({"year": [2000, np.nan], "party": "D"}, "'year' has a missing value at row 1"),
    ],
)
def test_bad_rows_are_refused(corpus, rows, message):
    for formula in (None, "~ year + party"):
        design = with_covariates(corpus, COLUMNS, formula).design
        with pytest.raises(ValueError, match=message):
            design.rows(rows)


# ------------------------------------------------------------------ the model


def test_data_without_the_models_covariates_are_refused(corpus):
    with pytest.raises(TypeError, match=r"a corpus with covariates, got Corpus.*with_covariates"):
        sample(StructuralTopics(3), corpus)
    model = StructuralTopics(
        3, regression=MatrixNormalInverseWishart.weak(np.zeros((3, 3)), np.eye(3))
    )
    with pytest.raises(ValueError, match=r"must have 2 rows, one a covariate \(Intercept, year\)"):
        sample(model, with_covariates(corpus, {"year": YEARS}))


def test_an_intercept_alone_is_the_correlated_topic_model(corpus):
    """The same random numbers and the same prior: the same draws, up to rounding."""
    data = with_covariates(corpus, {}, "~ 1")
    for method in ("prior", "init"):
        one, other = (
            getattr(model, method)(np.random.default_rng(4), data)
            for model in (LogisticNormalTopics(3), StructuralTopics(3))
        )
        np.testing.assert_allclose(other.coefficients[0], one.mu, rtol=1e-8)
        for name in ("psi", "Sigma", "topics", "topic_counts"):
            np.testing.assert_allclose(getattr(other, name), getattr(one, name), rtol=1e-8)


def test_units_and_origins_of_covariates_make_no_difference(corpus):
    """Same random numbers, same chain: the default prior and the predictions are the same."""
    states = []
    for year, standardize in ((YEARS, True), (YEARS, False), (2000.0 + YEARS / 7.0, False)):
        columns = {"party": PARTIES == "R", "year": year}
        data = with_covariates(corpus, columns, "~ party * year", standardize=standardize)
        model, rng = StructuralTopics(3), np.random.default_rng(4)
        state = model.step(rng, model.init(rng, data), data)
        states.append((state, data.covariates @ state.coefficients))
    for state, means in states[1:]:
        np.testing.assert_allclose(state.psi, states[0][0].psi, rtol=1e-4)
        np.testing.assert_allclose(means, states[0][1], rtol=1e-4)

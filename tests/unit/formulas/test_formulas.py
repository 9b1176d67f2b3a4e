"""The language of formulas and the columns that it makes."""

import numpy as np
import pandas as pd
import pytest

from pgmult.formulas.design import make_design
from pgmult.formulas.language import parse
from pgmult.sampling.codec import decode, encode

ROWS = 40
RNG = np.random.default_rng(3)
TABLE = {
    "x": RNG.uniform(1.0, 5.0, ROWS),
    "z": RNG.normal(size=ROWS),
    "n": RNG.integers(1, 4, ROWS),
    "g": np.array(list("abc"))[RNG.integers(0, 3, ROWS)],
    "h": np.array(["u", "v"])[RNG.integers(0, 2, ROWS)],
    "my column": RNG.uniform(1.0, 2.0, ROWS),
}
FORMULAS = [
    "x + z", "0 + x", "g", "0 + g", "g - 1", "g * h", "g:h", "0 + g:h", "g + x:g", "x:g", "0 + g:x",
    "(g + h + x)**2", "(g + h + x)^2", "g / h", "g / (h + x)", "g:h:x", "x * g * h", "g + h:g",
    "h:g + g", "x + x:z + z - z", "C(n)", "C(n):x", "C(g, contr.treatment('b'))", "C(g, contr.sum)",
    "C(g, contr.sum) * h", "log(x) * g", "np.log(x)", "I(x ** 2 + z / 3)", "I(x > 3) + g",
    "log(`my column`)", "scale(x) + center(z)", "center(x):g", "poly(x, 3)",
    "bs(x, df=5)", "bs(x, df=4, degree=2):h", "bs(x, knots=[2, 3.5])", "x + bs(log(x))",
]  # fmt: skip


@pytest.mark.parametrize("formula", FORMULAS)
def test_columns_are_those_of_formulaic(formula):
    """An independent implementation: the same names, and numbers (but of splines to the bit)."""
    formulaic = pytest.importorskip("formulaic")
    text = formula.replace("^", "**")
    expected = formulaic.Formula(text).get_model_matrix(pd.DataFrame(TABLE))
    found = make_design(TABLE, ROWS, formula, standardize=False, check=False)
    assert found.names.tolist() == [name.replace("np.", "") for name in expected.columns]
    rounding = 1e-14 if "bs(" in formula else 0.0
    np.testing.assert_allclose(found.matrix, expected.to_numpy(), rtol=0.0, atol=rounding)


@pytest.mark.parametrize("basis", ["cr", "cc"])
def test_cubic_splines_are_those_of_formulaic(basis):
    formulaic = pytest.importorskip("formulaic")
    for df in (2, 3, 6):
        text = f"0 + {basis}(x, df={df}, constraints='center')"
        expected = formulaic.Formula(text).get_model_matrix(pd.DataFrame(TABLE)).to_numpy()
        found = make_design(TABLE, ROWS, f"{basis}(x, df={df})", standardize=False).matrix
        np.testing.assert_allclose(found[:, 1:], expected, atol=1e-12)


EVERY = [
    *FORMULAS, "poly(x, 2, raw=True)", "I(x % 2 - 1)", "cr(x, df=4)", "cc(x, df=3)",
    "s(x, knots=6)", "g * s(log(x)) + (1 | h:n)", "s(x + z)", "offset(x) + z", "(1 | g/h)",
]  # fmt: skip


@pytest.mark.parametrize("formula", EVERY)
def test_a_row_has_one_answer_alone_and_in_company(formula):
    design = make_design(TABLE, ROWS, formula, check=False)
    stored = decode(encode(design))
    for row in (0, 7, ROWS - 1):
        alone = stored.like({name: column[row] for name, column in TABLE.items()})
        np.testing.assert_allclose(alone.matrix[0], design.matrix[row], atol=1e-12)
        for one, term in zip(alone.terms, design.terms, strict=True):
            np.testing.assert_allclose(one.design[0], term.design[row], atol=1e-12)
        if design.offset is not None:
            assert alone.offset[0] == design.offset[row]


@pytest.mark.parametrize("formula", EVERY)
def test_permuted_rows_are_permuted_rows(formula):
    order = np.random.default_rng(0).permutation(ROWS)
    turned = {name: column[order] for name, column in TABLE.items()}
    one = make_design(TABLE, ROWS, formula, check=False)
    other = make_design(turned, ROWS, formula, check=False)
    assert one.names.tolist() == other.names.tolist()
    np.testing.assert_allclose(other.matrix, one.matrix[order], atol=1e-9)
    for term, again in zip(one.terms, other.terms, strict=True):
        np.testing.assert_allclose(again.design, term.design[order], atol=1e-9)


@pytest.mark.parametrize("formula", ["x * g", "g:h + x", "s(x) * g", "C(n) + (1 | g)"])
def test_other_codings_of_a_factor_span_the_same(formula):
    """Labels under other names, and in another order."""
    names = {"a": "z", "b": "y", "c": "x"}
    renamed = TABLE | {"g": np.array([names[label] for label in TABLE["g"]])}
    one = make_design(TABLE, ROWS, formula).matrix
    other = make_design(renamed, ROWS, formula).matrix
    projected = one @ np.linalg.lstsq(one, other, rcond=None)[0]
    np.testing.assert_allclose(projected, other, atol=1e-9)


def test_units_of_an_input_do_not_matter_where_columns_are_scaled():
    inches = TABLE | {"x": TABLE["x"] * 39.37 + 3.0}
    for formula in ("x + g", "s(x) + g", "poly(x, 2)", "bs(x, df=4)", "cr(x, df=4)"):
        one, other = (make_design(table, ROWS, formula) for table in (TABLE, inches))
        np.testing.assert_allclose(one.matrix, other.matrix, atol=1e-8)
        for term, again in zip(one.terms, other.terms, strict=True):
            np.testing.assert_allclose(again.design, term.design, atol=1e-8)


def test_factors_of_numbers_text_and_categoricals_are_one():
    expected = make_design(TABLE, ROWS, "C(n)", standardize=False)
    for column in (
        TABLE["n"].astype(float), [str(n) for n in TABLE["n"]], pd.Series(TABLE["n"]),
        pd.Series(TABLE["n"], dtype="Int64"), pd.Categorical(TABLE["n"]),
        pd.Series([str(n) for n in TABLE["n"]], dtype="string"),
    ):  # fmt: skip
        found = make_design(TABLE | {"n": column}, ROWS, "C(n)", standardize=False)
        assert found.names.tolist() == expected.names.tolist()
        np.testing.assert_array_equal(found.matrix, expected.matrix)
        np.testing.assert_array_equal(found.rows({"n": [2.0]}), found.rows({"n": ["2"]}))


def test_labels_of_groups_are_exact():
    ids = 2**63 + np.arange(3, dtype=np.uint64)[TABLE["n"] - 1]
    term = make_design(TABLE | {"id": ids}, ROWS, "~ (1 | id)").terms[0]
    assert term.size == 3
    text = [str(i) for i in ids.tolist()]
    again = make_design(TABLE | {"id": text}, ROWS, "~ (1 | id)").terms[0]
    np.testing.assert_array_equal(again.codes, term.codes)
    np.testing.assert_array_equal(term.known.find([text]), term.codes)


def test_combinations_of_labels_are_tuples():
    table = {"g": ["a:b", "a", "a:b", "a"], "h": ["c", "b:c", "c", "b:c"]}
    term = make_design(table, 4, "~ (1 | g:h)").terms[0]
    assert term.levels.tolist() == ['a:"b:c"', '"a:b":c']
    assert term.codes.tolist() == [1, 0, 1, 0]
    assert term.known.find([["a", "new"], ["b:c", "c"]], new_levels=True).tolist() == [0, -1]
    with pytest.raises(ValueError, match=r"known combinations, got a:c at row 0"):
        term.known.find([["a"], ["c"]], new_levels=False)


def test_what_a_run_stores_is_read_and_not_evaluated(tmp_path):
    """A folder of somebody else may hold any formula."""
    marker = tmp_path / "marker"
    design = make_design(TABLE, ROWS, "x + g")
    for hostile in (
        f"x + {{open({str(marker)!r}, 'w')}}", f"I(open({str(marker)!r}, 'w')) + g",
        "__import__('os').system('true')",
    ):  # fmt: skip
        tree = encode(design)
        tree["fields"]["formula"] = hostile
        with pytest.raises(ValueError, match="formula"):
            decode(tree).rows({"x": 1.0, "g": "a"})
    assert not marker.exists()


@pytest.mark.parametrize(
    ("text", "name"),
    [("y ~ region name", "region name"), ("y ~ C(my age)", "my age"), ("y ~ 2nd", "2nd")],
)
def test_names_that_need_backticks_are_shown_in_them(text, name):
    with pytest.raises(ValueError, match=f"in backticks: `{name}`"):
        parse(text)
    assert name in parse(text.replace(name, f"`{name}`")).columns


def test_trees_are_shown_as_formulas_that_read_the_same():
    for text in (
        "I(-x ** 2)",
        "I((x + z) * 2)",
        "I(x - (z - n))",
        "f(`my column`, [1, 'a'], k=-1)",
    ):
        factor = parse(text).terms[0][0]
        assert parse(str(factor)).terms[0][0] == factor


def test_long_sums_are_read():
    names = [f"x{i}" for i in range(3000)]
    assert parse(" + ".join(names)).columns == tuple(names)
    with pytest.raises(ValueError, match=r"more than 10,000 terms"):
        parse("(" + " + ".join(names) + ") ** 2")


@pytest.mark.parametrize("formula", ["~ x * z", "~ g + x:g", "~ poly(x, 2) * z", "~ g * s(x)"])
def test_origins_of_factors_do_not_matter_in_products(formula):
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, 40))
    table = {"x": x, "z": z, "g": rng.choice(list("abc"), 40)}
    moved = table | {"x": x + 100.0, "z": 3.0 * (z - 7.0)}
    design, other = (make_design(columns, 40, formula) for columns in (table, moved))
    np.testing.assert_allclose(design.matrix, other.matrix, atol=1e-9)
    np.testing.assert_allclose(design.rows(table), design.matrix, atol=1e-12)
    raw = make_design(table, 40, formula, standardize=False)
    weights = rng.normal(size=(len(design.names), 2))
    np.testing.assert_allclose(raw.matrix @ design.unscale(weights), design.matrix @ weights)

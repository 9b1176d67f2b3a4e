"""Labels that are numbers stand in the order of their values, in the tables of every family."""

import numpy as np
import pytest

import pgmult
from pgmult.core.averages import Rows, average
from pgmult.core.labels import Levels, numbered, order_of
from pgmult.regression.scores import _parts_of

NUMBERS = ["1", "2", "10"]
GIVEN = {
    "whole": [10, 1, 2, 10, 1, 2] * 4,
    "with a point": [10.0, 1.0, 2.0, 10.0, 1.0, 2.0] * 4,
    "text": ["10", "1", "2", "10", "1", "2"] * 4,
}
N = 24


def numbers_of_regression(cells):
    rows = pgmult.read({"y": cells, "x": np.arange(N) % 5}).rows("y ~ x")
    return rows.categories


def groups_of_regression(cells):
    rows = pgmult.read({"y": list("ab") * 12, "g": cells}).rows("y ~ (1 | g)")
    return rows.design.terms[0].known.names


def labels_of_a_formula(cells):
    rows = pgmult.read({"y": list("ab") * 12, "g": cells}).rows("y ~ C(g)")
    return [name[len("C(g)[T.") : -1] for name in rows.design.names[1:]]


def categories_of_a_field(cells):
    table = pgmult.read({"t": np.arange(N) // 6, "y": cells})
    return table.field(inputs="t", category="y").categories


def symbols(cells):
    return pgmult.read({"y": cells}).sequences(symbol="y").alphabet


def names_of_sequences(cells):
    table = pgmult.read({"y": list("ab") * 12, "who": cells})
    return table.sequences(symbol="y", sequence="who").names


def alternatives(cells):
    occasion = np.repeat(np.arange(8), 3)
    table = {"n": [1, 0, 0] * 8, "x": np.arange(N) % 7, "o": occasion, "alt": cells}
    data = pgmult.read(table).choices("n ~ x", occasion="o", alternative="alt")
    return data.alternatives.names


def parts_of_a_check(cells):
    return _parts_of("g", np.array(cells))[0]


def averages(cells):
    table = {"g": np.array(list(map(str, cells)))}
    rows = Rows(table, lambda table: [np.ones((len(table["g"]), 1))], {"category": ["all"]})
    return list(map(str, average(over=rows, by={"g": None}).labels["g"]))


FAMILIES = [
    numbers_of_regression, groups_of_regression, categories_of_a_field, symbols,
    names_of_sequences, alternatives, parts_of_a_check, averages,
]  # fmt: skip


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("of", FAMILIES, ids=lambda of: of.__name__)
def test_numbers_by_their_value(of, given):
    cells = GIVEN[given] if of is not averages else [str(int(float(x))) for x in GIVEN[given]]
    expected = ["1.0", "2.0", "10.0"] if of is parts_of_a_check and "point" in given else NUMBERS
    found = [str(one).removesuffix(".0") for one in of(cells)]
    assert found == [one.removesuffix(".0") for one in expected]


@pytest.mark.parametrize("given", GIVEN)
def test_the_reference_of_a_formula_is_the_least(given):
    assert labels_of_a_formula(GIVEN[given]) == ["2", "10"]


def test_texts_stand_behind_numbers_and_by_the_alphabet():
    assert sorted(["b", "10", "a", "9", "-1", "0.5", "1e3"], key=order_of) == [
        "-1", "0.5", "9", "10", "1e3", "a", "b",
    ]  # fmt: skip
    names, number = numbered(np.array(["10", "9", "10", "a"]))
    assert names.tolist() == ["9", "10", "a"]
    assert number.tolist() == [1, 0, 1, 2]


def test_combinations_stand_by_their_columns():
    known, codes = Levels.of({"s": ["NY", "AL", "AL", "NY"], "age": [10, 9, 10, 9]})
    assert known.names.tolist() == ["AL:9", "AL:10", "NY:9", "NY:10"]
    assert codes.tolist() == [3, 0, 1, 2]


def test_an_ordered_categorical_keeps_its_order():
    pandas = pytest.importorskip("pandas")
    size = pandas.Categorical(["small", "large", "mid"] * 8, ["small", "mid", "large"], True)
    frame = pandas.DataFrame({"y": list("ab") * 12, "size": size, "x": range(24)})
    table, order = pgmult.read(frame), ["small", "mid", "large"]
    assert table.rows("y ~ size").design.names.tolist()[1:] == ["size[T.mid]", "size[T.large]"]
    assert table.rows("y ~ (1 | size)").design.terms[0].known.names.tolist() == order
    assert table.rows("size ~ x").categories.tolist() == order


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
@pytest.mark.parametrize("base", ["3", "base=3", "'3'"])
def test_the_reference_and_the_order_in_answers(base):
    pandas = pytest.importorskip("pandas")
    cells = pandas.Categorical(["small", "large", "mid"] * 8, ["small", "mid", "large"], True)
    frame = pandas.DataFrame({"y": list("abb") * 8, "size": cells, "n": [1, 10, 2, 3] * 6})
    formula = f"y ~ size + C(n, contr.treatment({base})) + (1 | size)"
    rows = pgmult.read(frame).rows(formula)
    model = pgmult.regression.AdditiveRegression()
    run = pgmult.sample(
        model, rows, draws=4, tune=2, chains=1, progressbar=False, random_seed=1
    )  # fmt: skip
    found = run.comparisons("n").labels["comparison"]["comparison"]
    assert list(found) == ["1 less 3", "2 less 3", "10 less 3"]
    assert list(run.contrasts("size").labels["comparison"]["comparison"]) == [
        "mid less small", "large less small",
    ]  # fmt: skip
    assert list(run.effects("n").labels["n"]) == ["1", "2", "3", "10"]
    assert list(run.effects("size", by="n").labels["size"]) == ["small", "mid", "large"]
    assert list(run.predict(by="size").labels["size"]) == ["small", "mid", "large"]

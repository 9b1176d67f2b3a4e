"""Columns of numbers that one cell makes labels of are refused, and labels stay labels."""

import pytest

from pgmult.formulas.design import make_design

NUMBERS = [str(n) for n in range(30)]


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([*NUMBERS, "90+"], "got '90\\+' at row 30 among numbers"),
        (["unknown", *NUMBERS, "?"], "got 'unknown' at row 0 among numbers"),
        ([*NUMBERS, "66,565"], "got '66,565', a number with a comma"),
        ([f"{n},5" for n in range(30)], "got '.*', a number with a comma"),
        ([f"{n},000" for n in range(1, 9)], "a number with a comma"),
        ([*NUMBERS, "3.5.1"], "among numbers"),
        ([f"person {n}" for n in range(30)], "30 labels in 30 rows, such as 'person 0'"),
    ],
)
@pytest.mark.parametrize("formula", ["~ x", "~ x:z", "~ x + (1 | g)"])
def test_refused(cells, message, formula):
    table = {"x": cells, "z": list(range(len(cells))), "g": ["a", "b"] * len(cells)}
    table["g"] = table["g"][: len(cells)]
    with pytest.raises(ValueError, match=message):
        make_design(table, formula=formula)
    labels = make_design(table, formula="~ C(x)", check=False)
    assert labels.matrix.shape[1] >= len(set(cells)) - 1


@pytest.mark.parametrize(
    "cells",
    [
        ["1", "2", "3", "none"] * 9,  # grades
        ["01", "02", "04", "05", "06", "08"] * 6,  # codes with a nought before them
        [f"{low}-{low + 9}" for low in range(0, 90, 10)] * 3,
        ["18-29", "30-44", "45-64", "65+"] * 5,
        [f"person {n}" for n in range(25)] * 2,
        ["a", "b", "c"],
    ],
)
def test_labels(cells):
    assert make_design({"x": cells}, formula="~ x").matrix.shape[1] == len(set(cells))


def test_groups_may_be_many():
    table = {"who": [f"person {n}" for n in range(30)]}
    assert make_design(table, formula="~ (1 | who)").terms[0].size == 30

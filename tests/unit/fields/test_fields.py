"""Counts at inputs: sites, sums, labels, orders and refusals."""

import numpy as np
import pytest

from pgmult.fields.data import CountField, as_field

INPUTS = np.array([[1.0, 0.0], [0.0, 0.0], [1.0, 0.0], [3.0, 1.0]])
COUNTS = np.array([[1, 5, 0], [0, 0, 0], [2, 2, 2], [0, 9, 1]])


def test_sites_are_the_distinct_inputs_as_they_come():
    field = as_field(INPUTS, COUNTS, new_inputs=[[3.0, 1.0], [7.0, 7.0], [7.0, 7.0]])
    expected = [[1.0, 0.0], [0.0, 0.0], [3.0, 1.0], [7.0, 7.0]]
    np.testing.assert_array_equal(field.sites, expected)
    np.testing.assert_array_equal(field.sites[field.row_sites], field.inputs)
    np.testing.assert_array_equal(field.sites[field.new_sites], field.new_inputs)
    np.testing.assert_array_equal(field.site_counts(), [[3, 7, 2], [0, 0, 0], [0, 9, 1], [0, 0, 0]])
    assert (field.num_rows, field.num_categories, field.num_sites, field.num_new) == (4, 3, 4, 3)
    np.testing.assert_array_equal(field.totals, [6, 0, 6, 10])
    assert repr(field) == "CountField(4 rows, 3 categories, 2 inputs, 3 new inputs)"


def test_orders_of_sticks():
    np.testing.assert_array_equal(as_field(INPUTS, COUNTS).category_order, [1, 0, 2])
    np.testing.assert_array_equal(as_field(INPUTS, COUNTS, order="given").category_order, range(3))
    assert as_field(INPUTS, COUNTS, order=[2, 0, 1]).category_order.tolist() == [2, 0, 1]
    field = as_field(INPUTS, COUNTS)
    assert field.with_counts(COUNTS[:, ::-1].copy()).category_order.tolist() == [1, 0, 2]


def test_one_axis_of_inputs_is_one_column():
    field = as_field([0.0, 1.0], [[1, 2], [3, 4]], new_inputs=[2.0])
    assert field.inputs.shape == (2, 1)
    assert field.new_inputs.shape == (1, 1)
    assert as_field(field) is field


def test_labels_of_data_frames():
    pandas = pytest.importorskip("pandas")
    counts = pandas.DataFrame(COUNTS, columns=["a", "b", "c"], index=list("wxyz"))
    new = pandas.DataFrame({"year": [9.0], "place": [2.0]}, index=["next"])
    field = as_field(pandas.DataFrame(INPUTS), counts, new)
    assert isinstance(field, CountField)
    assert field.categories.tolist() == ["a", "b", "c"]
    assert field.names.tolist() == ["w", "x", "y", "z"]
    assert field.new_names.tolist() == ["next"]
    assert as_field(INPUTS, counts, categories=["p", "q", "r"]).categories.tolist() == list("pqr")
    assert as_field(INPUTS, COUNTS).categories is None


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: as_field(INPUTS[:3], COUNTS), "as many rows, got 3 and 4"),
        (lambda: as_field([[np.nan]], [[1, 2]]), "inputs must be finite, got nan at row 0"),
        (lambda: as_field(INPUTS, COUNTS - 1), "non-negative integers, got -1"),
        (lambda: as_field(INPUTS, COUNTS / 10.0), "did you pass proportions"),
        (lambda: as_field(INPUTS, COUNTS[:, 0]), "two categories or more"),
        (lambda: as_field(INPUTS, COUNTS[:, :1]), "two categories or more"),
        (lambda: as_field(np.empty((0, 1)), np.empty((0, 2))), "a row at least"),
        (lambda: as_field(INPUTS, COUNTS, new_inputs=[1.0]), "must have 2 columns"),
        (lambda: as_field(INPUTS, COUNTS, new_inputs=[[np.inf, 1.0]]), "new_inputs must be finite"),
        (lambda: as_field(INPUTS, COUNTS, order="rare"), "frequency"),
        (lambda: as_field(INPUTS, COUNTS, order=[0, 0, 1]), "permutation of 0, ..., 2"),
        (lambda: as_field(INPUTS, COUNTS, names=["one"]), "names must have 4 labels"),
        (lambda: as_field(np.zeros((4, 1, 1)), COUNTS), r"shape \(rows, columns\)"),
    ],
)
def test_bad_input(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_bad_calls():
    with pytest.raises(TypeError, match="counts must be given"):
        as_field(INPUTS)
    with pytest.raises(TypeError, match="is a CountField already"):
        as_field(as_field(INPUTS, COUNTS), COUNTS)

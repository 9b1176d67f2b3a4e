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
    np.testing.assert_array_equal(as_field(INPUTS, COUNTS).order, [1, 0, 2])
    np.testing.assert_array_equal(as_field(INPUTS, COUNTS, order="given").order, range(3))
    assert as_field(INPUTS, COUNTS, order=[2, 0, 1]).order.tolist() == [2, 0, 1]
    field = as_field(INPUTS, COUNTS)
    assert field.with_counts(COUNTS[:, ::-1].copy()).order.tolist() == [1, 0, 2]


def test_one_axis_of_inputs_is_one_column():
    field = as_field([0.0, 1.0], [[1, 2], [3, 4]], new_inputs=[2.0])
    assert field.inputs.shape == (2, 1)
    assert field.new_inputs.shape == (1, 1)
    assert as_field(field) is field


def test_labels_of_data_frames():
    pandas = pytest.importorskip("pandas")
    counts = pandas.DataFrame(COUNTS, columns=["a", "b", "c"], index=list("wxyz"))
    inputs = pandas.DataFrame(INPUTS, columns=["year", "place"], index=counts.index)
    new = pandas.DataFrame({"year": [9.0], "place": [2.0]}, index=["next"])
    field = as_field(inputs, counts, new)
    assert isinstance(field, CountField)
    assert field.categories.tolist() == ["a", "b", "c"]
    assert field.names.tolist() == ["w", "x", "y", "z"]
    assert field.new_names.tolist() == ["next"]
    assert field.input_names.tolist() == ["year", "place"]
    assert as_field(INPUTS, counts, categories=["p", "q", "r"]).categories.tolist() == list("pqr")
    assert as_field(INPUTS, COUNTS).categories is None
    assert as_field(inputs, COUNTS).names.tolist() == ["w", "x", "y", "z"]


def frames():
    pandas = pytest.importorskip("pandas")
    labels = ["w", "x", "y", "z"]
    return (
        pandas.DataFrame(INPUTS, columns=["year", "place"], index=labels),
        pandas.DataFrame(COUNTS, columns=["a", "b", "c"], index=labels),
        pandas.DataFrame([[5.0, 1.0], [6.0, 2.0]], columns=["year", "place"]),
    )


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda x, y, new: as_field(x, y.loc[["z", "x", "w", "y"]]),
            "rows of counts must have the labels of rows of inputs in the same order, got 'z' for",
        ),
        (lambda x, y, new: as_field(x, y.reset_index(drop=True)), "got '0' for 'w' at 0"),
        (
            lambda x, y, new: as_field(x, y, new[["place", "year"]]),
            "columns of new_inputs must have the labels of columns of inputs in the same order",
        ),
        (
            lambda x, y, new: as_field(x, y).with_new_inputs(new.set_axis(["year", "s"], axis=1)),
            "got 's' for 'place' at 1",
        ),
    ],
)
def test_labels_that_disagree_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build(*frames())


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: as_field(INPUTS[:3], COUNTS), "as many rows, got 3 and 4"),
        (lambda: as_field([[np.nan]], [[1, 2]]), "inputs must be finite, got nan at row 0"),
        (lambda: as_field(INPUTS, COUNTS - 1), "non-negative integers, got -1"),
        (lambda: as_field(INPUTS, 0 * COUNTS + 2**62), r"add up to less than 2\*\*63"),
        (lambda: as_field(INPUTS, COUNTS / 10.0), "did you pass proportions"),
        (lambda: as_field(INPUTS, COUNTS[:, 0]), "two categories or more"),
        (lambda: as_field(INPUTS, COUNTS[:, :1]), "two categories or more"),
        (lambda: as_field(np.empty((0, 1)), np.empty((0, 2))), "a row and a column at least"),
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

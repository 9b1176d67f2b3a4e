"""Averages of probabilities over rows, against sums that are written out."""

import numpy as np
import pytest

from pgmult.core.averages import Pair, Rows, average, differences

RNG = np.random.default_rng(0)
DRAWS, SIZE = 3, 40
TABLE = {
    "place": np.array(["a", "b", "c"])[np.r_[0, 1, 2, RNG.integers(3, size=37)]],
    "sex": np.array(["f", "m"])[np.arange(SIZE) % 2],
    "age": RNG.normal(size=SIZE),
    "n": RNG.integers(1, 9, size=SIZE),
}
SLOPES = RNG.normal(size=DRAWS)


def probabilities(table):
    """Of two categories; they depend on age and place."""
    place = np.unique(TABLE["place"], return_inverse=True)[0].searchsorted(table["place"])
    for slope in SLOPES:
        p = 1.0 / (1.0 + np.exp(-slope * np.asarray(table["age"], dtype=float) - place))
        yield np.stack([p, 1.0 - p], axis=1)


ROWS = Rows(TABLE, probabilities, {"category": ["yes", "no"]})
PROBS = np.array(list(probabilities(TABLE)))


def test_rows_are_averaged_all_together_and_in_groups():
    np.testing.assert_allclose(average(over=ROWS).draws, PROBS.mean(axis=1))
    grouped = average(over=ROWS, by="place")
    assert grouped.axes == ("place", "category")
    for k, place in enumerate("abc"):
        alone = PROBS[:, TABLE["place"] == place].mean(axis=1)
        np.testing.assert_allclose(grouped.draws[:, k], alone)
        np.testing.assert_allclose(average(over=ROWS, where={"place": place}).draws, alone)


def test_several_columns_make_one_axis_or_one_each():
    joint = average(over=ROWS, by=["place", "sex"])
    assert joint.axes == ("place:sex", "category")
    crossed = average(over=ROWS, by={"place": ["c", "a"], "sex": None})
    assert crossed.axes == ("place", "sex", "category")
    one = joint.at(place="c", sex="m").draws
    np.testing.assert_allclose(crossed.draws[:, 0, 1], one)


def test_rows_count_by_their_weights():
    weighted = np.einsum("srk,r->sk", PROBS, TABLE["n"]) / TABLE["n"].sum()
    np.testing.assert_allclose(average(over=ROWS, weight="n").draws, weighted)
    fixed = Rows(TABLE, probabilities, ROWS.labels, weights=TABLE["n"].astype(float))
    np.testing.assert_allclose(average(over=fixed).draws, weighted)
    repeated = np.repeat(np.arange(SIZE), TABLE["n"])
    longer = Rows({k: v[repeated] for k, v in TABLE.items()}, probabilities, ROWS.labels)
    np.testing.assert_allclose(average(over=longer, by="place").draws,
                               average(over=fixed, by="place").draws)  # fmt: skip
    spread = fixed.spread(int(TABLE["n"].sum()))
    np.testing.assert_allclose(average(over=spread).draws, weighted)


def test_columns_are_set_to_each_of_several_values():
    at = average(over=ROWS, set={"age": [0.5, -1.0], "sex": "f"}, by="place")
    assert at.axes == ("age", "place", "category")
    other = np.array(list(probabilities(TABLE | {"age": np.full(SIZE, -1.0)})))
    rows = TABLE["place"] == "b"
    np.testing.assert_allclose(at.draws[:, 1, 1], other[:, rows].mean(axis=1))


def test_differences_are_those_of_averages():
    pairs = [Pair("age", "1 less 0", 1.0, 0.0), Pair("place", "b less a", "b", "a")]
    gaps = differences(pairs, over=ROWS, by="sex")
    for i, (column, one, other) in enumerate([("age", 1.0, 0.0), ("place", "b", "a")]):
        at = average(over=ROWS, set={column: [one, other]}, by="sex").draws
        np.testing.assert_allclose(gaps.draws[:, i], at[:, 0] - at[:, 1])
    shift = [Pair("age", "+1", lambda age: age + 0.5, lambda age: age - 0.5)]
    up, down = (
        np.array(list(probabilities(TABLE | {"age": TABLE["age"] + h}))) for h in (0.5, -0.5)
    )
    np.testing.assert_allclose(differences(shift, over=ROWS).draws[:, 0], (up - down).mean(axis=1))
    assert gaps.is_difference


def test_a_function_of_probabilities_is_averaged_row_by_row():
    odds = ROWS.mapped(lambda p: np.log(p[:, :1] / p[:, 1:]), {"odds": ["yes"]})
    log_odds = np.log(PROBS[..., :1] / PROBS[..., 1:]).mean(axis=1)
    np.testing.assert_allclose(average(over=odds).draws, log_odds)
    np.testing.assert_allclose(ROWS.mean(), PROBS.mean(axis=0))


@pytest.mark.parametrize(("options", "message"), [
    ({"by": "town"}, "by must be"), ({"set": {"town": 1}}, "column of at must be"),
    ({"set": {"place": "a"}, "by": "place"}, "which by= divides the rows by"),
    ({"where": {"place": "z"}}, "z"), ({"set": {"age": []}}, "must hold a value"),
    ({"by": {"place": None}, "where": {"age": 99.0}}, "99"),
    ({"by": {"place": ["a", "z"]}}, "z"), ({"weight": "town"}, "weight must be"),
])  # fmt: skip
def test_unknown_columns_and_values_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        average(over=ROWS, **options)


def test_empty_groups_are_named():
    rows = Rows({"a": ["x", "x", "y"], "b": ["u", "v", "u"], "n": [1.0, 1.0, 0.0]}, None, {})
    with pytest.raises(ValueError, match="none was of a y, b v"):
        average(over=rows, by={"a": None, "b": None})
    with pytest.raises(ValueError, match="n must be positive in each part, got 0 in 'y'"):
        average(over=rows, by="a", weight="n")

"""Verdicts of posterior predictive checks."""

import numpy as np

from pgmult.core.checks import Kind, PredictiveChecks

ADVICE = {name: (f"More {name}.", f"Less {name}.") for name in ("a", "b", "c", "a:b", "a:c", "b:c")}
KINDS = {name: Kind("columns") for name in "abc"} | {
    f"{one}:{other}": Kind("pairs", [one, other]) for one, other in ("ab", "ac", "bc")
}


def verdict(**excess):
    """Checks of standard normal statistics, those of the data at some excess."""
    rng = np.random.default_rng(0)
    of_data = {name: excess.get(name.replace(":", ""), 0.0) for name in ADVICE}
    draws = [(of_data, {name: rng.standard_normal() for name in ADVICE}) for _ in range(400)]
    return PredictiveChecks.of(draws, ADVICE, KINDS).verdict


def test_the_most_extreme_of_a_kind_is_named():
    assert verdict(a=5.0, b=9.0) == "More b. These are the most extreme of 2 such columns."
    assert verdict(a=5.0) == "More a."
    assert verdict(a=-5.0, b=9.0) == "More b. Less a."


def test_what_parts_explain_is_not_said():
    assert verdict(a=5.0, ab=20.0, ac=6.0) == "More a."
    assert verdict(a=5.0, bc=6.0) == "More a. More b:c."
    assert verdict(ab=5.0, bc=6.0) == "More b:c. These are the most extreme of 2 such pairs."


def test_agreement_names_what_was_compared():
    assert verdict().startswith("Data simulated from the model agree with the data in a, b, c")


def test_statistics_have_the_digits_that_their_intervals_support():
    """A sum that is 0 but for rounding is printed as 0; one that never varies as it is."""
    rng = np.random.default_rng(0)
    of_data, size = {"a": 1e-17, "b": 2.0, "c": 512.7}, {"a": 1.0, "b": 0.0, "c": 90.0}
    draws = [(of_data, {x: of_data[x] + rng.normal() * size[x] for x in size}) for _ in range(400)]
    table = PredictiveChecks.of(draws, ADVICE).table()
    a, b, c = (row[1:3] for row in table.rows)
    assert a[0] == "0.00"
    assert b == ["2", "2 [2, 2]"]
    assert c[0] == "513"
    assert "." not in c[1]

"""Labels of new rows that the data do not have: told with their number, or refused."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest

import pgmult
from pgmult.choice.data import rows_like
from pgmult.core.labels import report_new_labels
from pgmult.regression.models.additive import AdditiveRegression
from pgmult.topics.data.corpus import with_covariates

STATES = ["01", "02", "03", "04"]
RNG = np.random.default_rng(0)
SURVEY = {
    "vote": RNG.choice(["yes", "no"], 80).tolist(),
    "x": RNG.standard_normal(80).tolist(),
    "state": (STATES * 20),
    "t": (list(range(2000, 2020)) * 4),
}

# labels of the data, those of the new rows, and what is said by default: None for nothing, a
# refusal for what begins with "!"; the last is whether it is said where all may be new, too
VARIANTS = {
    "the same": (STATES, ["04", "01"], None, False),
    "numbers for numbers": (["1", "2"], [1, 2.0], None, False),
    "zeros in front": (STATES, ["1", "2", "3", "4"], "!4 of 4 .*'01', '02', '03', '04'", True),
    "integers": (STATES, [1, 2, 3, 4], "!4 of 4 .*nearest there: '01', '02'", True),
    "most of them": (STATES, ["1", "2", "3", "04"], "3 of 4 .*'1', '2', '3' .*'01', '02'", True),
    "floats as text": (["1", "2"], ["1e0", "02", "2"], "2 of 3 .*nearest there: '1', '2'", True),
    "capitals": (["Ohio", "Utah"], ["OHIO", "Utah"], "1 of 2 .* is not .*'OHIO' .*'Ohio'", True),
    "blanks": (["New York", "Utah"], ["NewYork", " Utah"], "!2 of 2 .*'Utah', 'New York'", True),
    "composed": (["Qu\u00e9bec", "a"], ["Que\u0301bec", "a"], "1 of 2 .*'Qu\u00e9bec'", True),
    "full width": (["A1", "B1"], ["\uff211", "B1"], "1 of 2 .*'A1'", True),
    "a slip": (["Ohio", "Utah"], ["Ohoi", "Utah"], "1 of 2 .*'Ohoi' .nearest there: 'Ohio'", False),
    "new years": (["2000", "2001"], ["2001", "2002"], "1 of 2 .*nearest there: '2001'", False),
    "a new one": (["Ohio", "Utah"], ["Guam", "Utah"], "1 of 2 labels .*: 'Guam'$", False),
    "other codes": (["Ohio", "Utah"], ["39", "49"], "!2 of 2 .*'39', '49' .new_levels=True", False),
    "one row": (STATES, [7], "!1 of 1 labels of .* is not .*takes it for a new one", False),
    "many": (STATES, range(5, 50), "!45 of 45 .*, ... ", False),
}  # fmt: skip


@pytest.mark.parametrize("variant", VARIANTS)
def test_new_labels_are_counted_with_the_nearest(variant):
    known, given, said, always = VARIANTS[variant]

    def tell(**how):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            report_new_labels(known, given, "state", "census", **how)
        return [str(one.message) for one in told]

    if said is None:
        assert tell(argument="new_levels=True") == []
    elif said.startswith("!"):
        with pytest.raises(ValueError, match=said[1:]):
            tell(argument="new_levels=True")
    else:
        (only,) = tell(argument="new_levels=True")
        assert re.search(said, only)
    assert bool(tell(asked=True)) is always
    if not always and said and said.startswith("!"):  # nothing but new ones, and no way to say so
        assert tell() == []


@pytest.fixture(scope="module")
def run():
    data = pgmult.read(SURVEY).rows("vote ~ x + (1 | state) + rw(t)")
    return pgmult.sample(
        AdditiveRegression(method="approximate"),
        data,
        draws=8,
        tune=0,
        chains=1,
        random_seed=0,
        progressbar=False,
    )


def census(states, t=2003):
    size = len(states)
    return {"x": [0.0] * size, "state": states, "t": [t] * size, "n": [1] * size}


def test_a_census_with_other_labels_is_refused(run):
    with pytest.raises(ValueError, match=r"^4 of 4 labels of 'state' in census .*new_levels=True"):
        run.poststratify(census([1, 2, 3, 4]), weight="n")
    with pytest.warns(UserWarning, match=r"^3 of 4 labels of 'state' in census are not"):
        run.poststratify(census(["1", "2", "3", "04"]), weight="n")
    with pytest.warns(UserWarning, match="1 of 2 labels of 'state' in census is not"):
        run.poststratify(census(["01", "99"]), weight="n")
    run.poststratify(census(["98", "99"]), weight="n", new_levels=True)
    with pytest.raises(ValueError, match=r"one of 01, 02, 03, 04, got '98'.*2 of 2 labels are not"):
        run.poststratify(census(["98", "99"]), weight="n", new_levels=False)
    run.poststratify(census(STATES, 2025), weight="n")  # walks go on


def test_new_rows_name_the_labels_that_they_may_mean(run):
    with pytest.raises(ValueError, match=r"got '1' at row 1 \(nearest: '01'; 2 of 3 labels are"):
        run.predict(census(["04", 1, 2]))
    with pytest.raises(ValueError, match="nearest: '02'"):
        run.effects("state", ["01", "2"])
    with pytest.raises(ValueError, match="nearest: '02'"):
        run.effects("x", [0.0], at={"state": 2})
    with pytest.warns(UserWarning, match=r"^1 of 2 labels of 'state' in new is not .*'1' .*'01'"):
        run.predict(census(["04", 1]), new_levels=True)
    run.predict(census(["04", "05"]), new_levels=True)
    run.predict(pd.DataFrame(census(["x", "y"])), at={"state": "04"})


def test_documents_choices_and_sequences_tell_them_too():
    counts = np.ones((4, 3), dtype=np.int64)
    topics = with_covariates(counts, {"state": STATES}, "(1 | state)")
    with pytest.warns(UserWarning, match="2 of 2 labels of 'state' in covariates"):
        topics.new_documents(counts[:2], {"state": [1, 2]}, new_levels=True)
    topics.new_documents(counts[:2], {"state": ["a", "b"]}, new_levels=True)
    table = {
        "o": np.repeat(range(8), 2), "taken": [1, 0, 0, 1] * 4, "state": np.repeat(STATES, 4),
        "price": RNG.random(16),
    }  # fmt: skip
    choices = pgmult.read(table).choices("taken ~ price + (price | state)", occasion="o")
    new = {"o": [0, 0], "price": [1.0, 2.0], "state": [1, 1]}
    with pytest.warns(UserWarning, match="1 of 1 labels of 'state' in new is not"):
        rows_like(choices, new, "o", True)
    steps = {"s": np.repeat(STATES, 3), "y": list("abcabbaacbca"), "x": RNG.random(12)}
    read = pgmult.read(steps | {"state": steps["s"]})
    sequences = read.sequences(symbol="y", sequence="s", inputs="x + (1 | state)")
    ahead = {"x": [0.0] * 4, "state": ["01", "02", "03", "4"]}
    with pytest.warns(UserWarning, match="1 of 4 labels of 'state' in inputs is not .*'04'"):
        sequences.extended(1, ahead)
    with pytest.raises(ValueError, match="4 of 4 labels of 'state' in inputs"):
        sequences.extended(1, ahead | {"state": [1, 2, 3, 4]})
    sequences.extended(1, ahead | {"state": list("abcd")})

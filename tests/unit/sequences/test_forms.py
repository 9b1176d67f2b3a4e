"""Tables of sequences in other forms, and rows that say something else than was asked."""

import numpy as np
import pytest

import pgmult
from pgmult.core.tables import columns_named
from pgmult.sequences.data.forms import from_spells, from_wide
from pgmult.sequences.data.times import usual_step

LONG = {
    "id": ["a", "a", "a", "b", "b"],
    "year": [2000, 2001, 2003, 2000, 2003],
    "state": ["in", "in", "out", "out", "in"],
}


def same(one, other):
    assert np.array_equal(one.to_csr().toarray(), other.to_csr().toarray())
    assert np.array_equal(one.offsets, other.offsets)
    assert one.names.tolist() == other.names.tolist()
    assert one.alphabet.tolist() == other.alphabet.tolist()
    if other.starts is not None:
        assert one.starts.astype(str).tolist() == other.starts.astype(str).tolist()


@pytest.fixture
def steps():
    return pgmult.read(LONG).sequences("state", sequence="id", time="year")


def test_a_row_for_each_person(steps):
    wide = {"id": ["a", "b"], "y2000": ["in", "out"], "y2001": ["in", None]}
    wide |= {"y2003": ["out", "in"], "sex": ["f", "m"]}
    same(pgmult.read(wide).sequences(sequence="id", wide="y2000:y2003"), steps)
    same(pgmult.read(wide).sequences(sequence="id", wide="y*"), steps)
    for chosen in ("y2000,y2001,y2003", ["y2000", "y2001", "y2003"]):
        assert columns_named([*wide], chosen) == ["y2000", "y2001", "y2003"]
    data = pgmult.read(wide).sequences(sequence="id", wide="y*", inputs="~ sex")  # no warning
    assert data.num_inputs == 1
    alone = pgmult.read(wide).sequences(wide="y*")
    assert alone.names.tolist() == ["1", "2"]


def test_names_without_numbers_are_steps_one_after_another():
    cells = from_wide({"mon": ["x", "y"], "tue": ["y", "y"], "wed": ["x", None]}, "mon:wed")
    assert cells["time"].values.tolist() == [0, 1, 2] * 2


@pytest.mark.parametrize(
    "spells",
    [
        {"from": [2000, 2003, 2000, 2003], "to": [2001, 2003, 2000, 2003]},  # last steps
        {"from": [2000, 2002, 2000, 2003], "to": [2002, 2003, 2003, 2004]},  # next begins
    ],
    ids=["inclusive", "touching"],
)
def test_a_row_for_each_spell(spells):
    table = {"id": list("aabb"), "state": ["in", "out", "out", "in"], **spells}
    data = pgmult.read(table).sequences("state", sequence="id", begin="from", end="to")
    steps = from_spells(table, "from", "to", sequence="id")
    assert data.num_sequences == 2
    first = [
        s for s, who in zip(steps["state"].values, steps["id"].values, strict=True) if who == "a"
    ]
    assert first == (["in", "in", "out"])


def test_spells_of_dates():
    table = {
        "id": [1, 1, 1], "state": ["school", "work", "retired"],
        "from": np.array(["1990-09-01", "1995-07-15", "1997-02-01"], dtype="datetime64[D]"),
        "to": np.array(["1995-06-30", "1997-01-31", "1999-12-31"], dtype="datetime64[D]"),
    }  # fmt: skip
    data = pgmult.read(table).sequences(
        "state", sequence="id", begin="from", end="to", every="year"
    )
    assert data.starts[0].astype(str) == "1990"
    labels = data.alphabet[data.symbols].tolist()
    assert labels == ["school"] * 5 + ["work"] * 2 + ["retired"] * 3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"to": [2001, 1999, 2000, 2003]}, "end after they begin: row 1 of id a"),
        ({"to": [2005, 2005, 2000, 2003]}, "spells must not overlap.*row 1 begins 2003"),
        ({"to": [2001, None, 2000, 2003]}, "column 'to' must say when each spell ends.*row 1"),
    ],
)
def test_spells_that_contradict_are_refused(change, words):
    table = {"id": list("aabb"), "state": ["in", "out", "out", "in"]}
    table |= {"from": [2000, 2003, 2000, 2003], "to": [2001, 2003, 2000, 2003], **change}
    with pytest.raises(ValueError, match=words):
        pgmult.read(table).sequences("state", sequence="id", begin="from", end="to")


def test_roles_that_do_not_go_together():
    with pytest.raises(ValueError, match="begin and end must both be columns"):
        pgmult.read(LONG).sequences("state", sequence="id", begin="year")
    with pytest.raises(ValueError, match="time must be left out where rows are spells"):
        pgmult.read({**LONG, "to": LONG["year"]}).sequences(
            "state", time="id", begin="year", end="to"
        )
    with pytest.raises(ValueError, match="wide must name two different columns"):
        pgmult.read(LONG).sequences(sequence="id", wide="y*")


# --------------------------------------------------------------------------- silent wrong answers


def test_a_sequence_that_was_forgotten_is_named():
    animals, days = 20, 10
    table = {
        "animal": np.repeat(np.arange(animals), days), "day": np.tile(np.arange(days), animals),
        "does": np.array(["rest", "feed"])[np.arange(animals * days) % 3 % 2],
        "temperature": np.linspace(0, 1, animals * days),
    }  # fmt: skip
    with pytest.raises(
        ValueError, match=r"20 rows of 0 are of different 'animal'.*sequence='animal'"
    ):
        pgmult.read(table).sequences("does", time="day")
    pooled = {name: column for name, column in table.items() if name != "animal"}
    assert pgmult.read(pooled).sequences("does", time="day").totals[0] == animals


def test_a_row_twice_that_disagrees():
    years = [*range(2000, 2030), 2007]
    state = [*(["in", "out"] * 15), "in"]
    with pytest.raises(
        ValueError, match=r"2007 of id a has in and out|2007 of id a has out and in"
    ):
        pgmult.read({"id": ["a"] * 31, "year": years, "state": state}).sequences(
            "state", sequence="id", time="year"
        )


def test_steps_that_would_move_times_are_refused():
    waves = {"id": ["a"] * 5, "year": [2011, 2013, 2015, 2018, 2020], "state": list("xyxyx")}
    with pytest.raises(
        ValueError, match=r"2018 \(row 3\) is not a whole number of steps of 2.*'1'"
    ):
        pgmult.read(waves).sequences("state", sequence="id", time="year", every="2")
    dates = {**waves, "year": np.array(waves["year"], dtype=str).astype("datetime64[Y]")}
    with pytest.raises(ValueError, match=r"2018 \(row 3\).*'year'"):
        pgmult.read(dates).sequences("state", sequence="id", time="year", every="2 years")
    data = pgmult.read(waves).sequences("state", sequence="id", time="year")
    assert np.flatnonzero(data.totals).tolist() == [0, 2, 4, 7, 9]
    assert usual_step(np.array(waves["year"]), np.zeros(5, dtype=np.int64)) == "1"
    assert usual_step(np.array([2000, 2004, 2010]), np.zeros(3, dtype=np.int64)) == "2"


def test_days_that_are_counted_by_weeks_may_share_them():
    days = np.array([0, 2, 9, 10, 11, 20])
    data = pgmult.read({"day": days, "s": list("abbaba")}).sequences("s", time="day", every="7")
    assert data.totals.tolist() == [2, 3, 1]


def test_symbols_keep_the_order_of_a_categorical():
    pandas = pytest.importorskip("pandas")
    state = pandas.Categorical(
        ["ill", "well", "dead", "well"], ["well", "ill", "dead"], ordered=True
    )
    table = pandas.DataFrame({"t": range(4), "state": state})
    assert pgmult.read(table).sequences("state", time="t").alphabet.tolist() == [
        "well",
        "ill",
        "dead",
    ]


# --------------------------------------------------------------------------- kinds of times


@pytest.mark.parametrize(
    ("cells", "every", "first", "gaps"),
    [
        (["2020Q1", "2020Q2", "2020Q4"], "quarter", "2020-01", [2]),
        (["Q4 2019", "Q1 2020"], "quarter", "2019-10", []),
        (["2020-W05", "2020-W06", "2020-W08"], "week", "2020-01-27", [2]),
        (["Jan 2020", "Feb 2020", "May 2020"], "month", "2020-01", [2, 3]),
        (["2020 January", "2020 March"], "month", "2020-01", [1]),
        (["2019/20", "2020/21", "2022/23"], "year", "2019", [2]),
    ],
)
def test_times_in_words(cells, every, first, gaps):
    table = pgmult.read({"t": cells, "s": list("abab")[: len(cells)]})
    data = table.sequences("s", time="t", every=every)
    assert str(data.starts[0]).startswith(first)
    assert np.flatnonzero(data.totals == 0).tolist() == gaps


@pytest.mark.parametrize(
    ("cells", "hint"),
    [
        (["08:30", "08:40"], "needs its date"),
        (["2019/25", "2020/21"], "2020-W05"),
        (["2020-W60", "2020-W61"], "2020-W05"),
    ],
)
def test_times_that_are_not_read_are_named(cells, hint):
    with pytest.raises(ValueError, match=rf"got {cells[0]!r} at row 0 .*{hint}"):
        pgmult.read({"t": cells, "s": ["a", "b"]}).sequences("s", time="t")


def test_a_missing_covariate_is_named_with_its_cell():
    table = {
        "who": list("aabb"),
        "t": [0, 1, 0, 1],
        "s": list("xyxy"),
        "warm": [1.0, 2.0, None, 3.0],
    }
    with pytest.raises(ValueError, match=r"column 'warm' .* at row 2, of who b"):
        pgmult.read(table).sequences("s", sequence="who", time="t", inputs="~ warm")

"""Tidy tables as sequences."""

import numpy as np
import pytest
import scipy.sparse

import pgmult
from pgmult.core.labels import order_of
from pgmult.sequences import Forecast, Imputed, MarkovChain, MultinomialHMM, StepProbs, as_sequences
from pgmult.sequences.data.tables import future_of, sequences_of
from pgmult.sequences.scores.one_step import joined

VISITS = {
    "who": ["b", "a", "a", "b", "a"],
    "day": [4, 3, 1, 5, 6],
    "state": ["x", "y", "x", "z", "x"],
    "n": [2, 1, 1, 1, 3],
}
DATES = np.array(["2024-03-04", "2024-03-03", "2024-03-01", "2024-03-05", "2024-03-06"], "M8[D]")


def same(found, wanted):
    assert (found.to_csr() != wanted.to_csr()).nnz == 0
    assert found.offsets.tolist() == wanted.offsets.tolist()
    assert found.alphabet.tolist() == wanted.alphabet.tolist()


def test_steps_without_a_row_are_missing():
    found = sequences_of(VISITS, symbol="state", sequence="who", time="day")
    same(found, as_sequences([["x", None, "y", None, None, "x"], ["x", "z"]]))
    assert found.names.tolist() == ["a", "b"]


@pytest.mark.parametrize("resolution", ["D", "ns"])
def test_dates(resolution):
    table = VISITS | {"day": DATES.astype(f"M8[{resolution}]")}
    found = sequences_of(table, symbol="state", sequence="who", time="day", every="day")
    same(found, as_sequences([["x", None, "y", None, None, "x"], ["x", "z"]]))
    monthly = sequences_of(table, symbol="state", time="day", every="month")
    assert monthly.to_csr().toarray().tolist() == [[3, 1, 1]]


def test_rows_stand_in_their_order_without_times():
    found = sequences_of(VISITS, symbol="state", sequence="who")
    same(found, as_sequences([["y", "x", "x"], ["x", "z"]]))


def test_counts_add_up():
    table = {name: values + values[:1] for name, values in VISITS.items()}
    found = sequences_of(table, symbol="state", time="day", count="n")
    assert found.totals.tolist() == [1, 0, 1, 4, 1, 3]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"symbol": "stat"}, "symbol must name columns of table, got 'stat'"),
        ({"every": "day"}, "every must be left out where column 'day' has no dates"),
        ({"time": None, "every": "day"}, "every must be left out where there is no time"),
        ({"table": VISITS | {"day": DATES}}, "every must say how long a step is"),
        ({"table": VISITS | {"day": DATES}, "every": "fortnight"}, "every must be"),
        ({"table": VISITS | {"day": [1, 2, 3, 4, 5.5]}}, "column 'day' must be whole numbers"),
        ({"table": VISITS | {"day": list("abcde")}}, "column 'day' must be whole numbers"),
        ({"table": VISITS | {"day": [0, 1, 2, 3, 10**12]}}, "time must leave at most"),
        (
            {"table": VISITS | {"state": [None] * 5}},
            "'state' must have a symbol, every row lacks one",
        ),
        (
            {"table": VISITS | {"n": [1, 1, 1, 1, -1]}, "count": "n"},
            "column 'n' must be non-negative",
        ),
        ({"count": "state"}, "count must be another column than symbol, got 'state' for both"),
        ({"sequence": "day"}, "time must be another column than sequence, got 'day' for both"),
        (
            {"table": VISITS | {"n": list("abcde")}, "count": "n"},
            "must hold numbers, got 'a' at row",
        ),
        ({"table": {name: [] for name in VISITS}}, "table must have a row"),
    ],
)
def test_bad_input(change, message):
    arguments = {"table": VISITS, "symbol": "state", "time": "day"} | change
    with pytest.raises(ValueError, match=message):
        sequences_of(**arguments)


def test_answers_as_tables():
    data = as_sequences([["x", None, "y"], ["z"]], names=["a", "b"])
    rng = np.random.default_rng(0)
    mean, levels = rng.dirichlet(np.ones(3), 4), np.array([0.05, 0.95])
    quantiles = np.array([0.5 * mean, 1.5 * mean])
    found = StepProbs(mean[None], mean, quantiles, levels, data).to_dataframe()
    assert found.columns.tolist() == ["sequence", "step", "symbol", "mean", "q0.05", "q0.95"]
    assert found["sequence"].tolist() == ["a"] * 9 + ["b"] * 3
    assert found["step"].tolist() == np.repeat([1, 2, 3, 1], 3).tolist()
    assert found["symbol"].tolist() == ["x", "y", "z"] * 4
    assert (found["mean"] == mean.ravel()).all()
    assert (found["q0.95"] == quantiles[1].ravel()).all()

    imputed = Imputed(
        mean[None, :1], mean[:1], quantiles[:, :1], levels, data, np.array([1]),
        np.zeros((1, 1), dtype=np.int64),
    ).to_dataframe()  # fmt: skip
    assert imputed[["sequence", "step"]].drop_duplicates().values.tolist() == [["a", 2]]

    ahead = Forecast(
        mean.reshape(1, 2, 2, 3), mean.reshape(2, 2, 3), quantiles.reshape(2, 2, 2, 3), levels,
        data, np.zeros((1, 2, 2), dtype=np.int64),
    ).to_dataframe()  # fmt: skip
    rows = ahead[["sequence", "step"]].drop_duplicates().values.tolist()
    assert rows == [["a", 4], ["a", 5], ["b", 2], ["b", 3]]
    assert (ahead["q0.05"] == quantiles[0].ravel()).all()


def visits():
    days = np.array(["2024-02-27", "2024-03-01", "2024-03-02", "2024-03-04"], dtype="datetime64[D]")
    table = {"who": ["a", "a", "b", "b"], "day": days, "state": ["x", "y", "y", "x"]}
    return sequences_of(table, symbol="state", sequence="who", time="day", every="day")


def test_steps_keep_their_dates_when_sequences_are_cut_taken_and_extended():
    data = visits()
    assert data.times([0, 0, 1], [0, 4, 0]).astype(str).tolist() == [
        "2024-02-27T00:00:00", "2024-03-02T00:00:00", "2024-03-02T00:00:00",
    ]  # fmt: skip
    _, later = data.split(-1)
    assert later.starts.astype(str).tolist() == ["2024-03-01", "2024-03-04"]
    assert data.take([1]).starts.astype(str).tolist() == ["2024-03-02"]
    assert data.extended(2).starts.tolist() == data.starts.tolist()
    years = sequences_of({"y": [1990, 1992], "s": ["u", "v"]}, symbol="s", time="y")
    assert years.times([0], [3]).tolist() == [1993]
    assert sequences_of({"s": ["u", "v"]}, symbol="s").times([0], [0]) is None


def test_months_are_counted_as_months():
    months = np.array(["2023-11-20", "2024-02-03"], dtype="datetime64[D]")
    table = {"t": months, "s": ["u", "v"]}
    data = sequences_of(table, symbol="s", time="t", every="month")
    assert data.times([0], [4])[0] == np.datetime64("2024-03-01")


def test_forecasts_and_figures_tell_the_dates_of_steps_ahead():
    data = visits()
    mean = np.full((2, 3, 2), 0.5)
    ahead = Forecast(
        mean[None], mean, np.stack([mean, mean]), np.array([0.05, 0.95]), data, mean[:, :, 0]
    )
    table = ahead.table().columns
    assert list(table)[:4] == ["sequence", "step", "time", "symbol"]
    assert table["time"][0] == np.datetime64("2024-03-02")  # the day after a's last
    assert table["time"][-1] == np.datetime64("2024-03-07")
    axes = ahead.plot()
    axes.figure.canvas.draw()
    assert "2024-03-02" in [tick.get_text() for tick in axes.get_xticklabels()]
    assert axes.get_xlabel() == "time"


IDS = ["1234567890123456789", "1234567890123456788", "1E5", "100000"]


@pytest.mark.parametrize("ids", [IDS, [int(x) for x in IDS[:2]]], ids=["text", "integers"])
def test_sequences_and_symbols_keep_names_that_floats_would_merge(ids):
    table = {"who": ids * 2, "state": ids + ids[::-1], "t": [0] * len(ids) + [1] * len(ids)}
    data = sequences_of(table, symbol="state", sequence="who", time="t")
    assert data.names.tolist() == data.alphabet.tolist() == sorted(map(str, ids), key=order_of)


@pytest.mark.parametrize(
    ("counts", "match"),
    [
        (["a", "b"], r"column 'n' must hold numbers, got 'a' at row 0"),
        ([1, None], "column 'n' must have a value in every row, got none at row 1"),
        ([2**62, 2**62], r"column 'n' must be counts that add up to less than 2\*\*63"),
        ([2**62, 1], r"counts below 2\*\*31, got 4611686018427387904"),
        ([1, -1], "column 'n' must be non-negative integers, got -1"),
    ],
)
def test_columns_that_hold_no_counts_are_refused_in_words(counts, match):
    table = {"s": ["u", "v"], "n": np.array(counts, dtype=object if None in counts else None)}
    with pytest.raises(ValueError, match=match):
        sequences_of(table, symbol="s", count="n")


def test_a_sparse_count_given_twice_does_not_wrap():
    twice = scipy.sparse.csr_array(
        (np.array([2**62, 2**62, 1]), np.array([0, 0, 1]), np.array([0, 3])), shape=(1, 2)
    )
    with pytest.raises(ValueError, match=r"counts below 2\*\*31"):
        as_sequences([twice])


# ------------------------------------------------------------------ inputs by formula

HEALTH = {
    "who": ["a", "a", "a", "b", "b", "b"],
    "day": [1, 2, 4, 1, 2, 3], "temp": [1, 2, 3, 4, 5, 6],
    "state": ["x", "y", "x", "y", "x", "x"],
}  # fmt: skip


def health():
    with pytest.warns(UserWarning, match="1 steps have no row"):
        return sequences_of(
            HEALTH, symbol="state", sequence="who", time="day", inputs="~ temp + (1 | who)"
        )


def temperatures(data):
    return data.inputs[:, 0] * data.design.scale[1] + data.design.centre[1]


def test_a_formula_has_a_row_for_each_step():
    data = health()
    np.testing.assert_allclose(temperatures(data), [1, 2, 2, 3, 4, 5, 6])
    assert data.design.terms[0].codes.tolist() == [0, 0, 0, 0, 1, 1, 1]
    first, later = data.split(2)
    whole, _ = joined(first, later)
    np.testing.assert_array_equal(whole.inputs, data.inputs)
    np.testing.assert_allclose(temperatures(data.take([1])), [4, 5, 6])


def test_inputs_of_steps_ahead_are_found_by_sequence_and_time():
    data = health()
    future = {
        "who": ["b", "a", "a", "b", "a"], "day": [4, 6, 5, 5, 4], "temp": [10, 20, 30, 40, 50],
    }  # fmt: skip
    found = data.extended(2, future_of(data, future, 2))
    np.testing.assert_allclose(temperatures(found), [1, 2, 2, 3, 30, 20, 4, 5, 6, 10, 40])
    with pytest.raises(ValueError, match="none for step 3 of a"):
        future_of(data, future, 3)


def test_rows_of_a_step_must_have_the_same_inputs():
    table = {**HEALTH, "day": [1, 1, 4, 1, 2, 3]}
    with pytest.raises(ValueError, match="'temp' must be the same in all rows of a step, got 2"):
        sequences_of(table, symbol="state", sequence="who", time="day", inputs="~ temp")


def test_models_without_inputs_refuse_them():
    for model in (MarkovChain(1), MultinomialHMM(2)):
        with pytest.raises(ValueError, match="takes no inputs"):
            model.as_data(health())


# ------------------------------------------------------------------ steps that are steps

ALTERNATING = ["a", "b"] * 100


def with_gaps(values, lost):
    return [None if i in lost else value for i, value in enumerate(values)]


@pytest.mark.parametrize("timed", [True, False])
def test_a_step_whose_symbol_is_unknown_keeps_its_place(timed):
    lost = set(np.random.default_rng(0).choice(100, 50, replace=False) * 2 + 1)
    table = {"state": with_gaps(ALTERNATING, lost), "at": [*range(200)]}
    found = sequences_of(table, symbol="state", time="at" if timed else None)
    same(found, as_sequences([with_gaps(ALTERNATING, lost)]))


def test_a_row_without_a_symbol_need_not_tell_its_inputs():
    table = {
        "state": ["x", None, "y", None, "x"], "temp": [1.0, np.nan, 3.0, 4.0, 5.0],
        "who": ["a", "a", "a", "b", "b"],
    }  # fmt: skip
    with pytest.warns(UserWarning, match="1 steps have no row"):
        data = sequences_of(table, symbol="state", sequence="who", inputs="~ temp")
    np.testing.assert_allclose(temperatures(data), [1, 1, 3, 4, 5])
    table["temp"] = [np.nan, 2.0, 3.0, 4.0, 5.0]
    table["state"] = [None, "x", "y", "x", "x"]
    with pytest.warns(UserWarning, match="1 steps have no row"):
        data = sequences_of(table, symbol="state", sequence="who", inputs="~ temp")
    np.testing.assert_allclose(temperatures(data), [2, 2, 3, 4, 5])
    table["temp"], table["state"][3:] = [2.0, 2.0, 3.0, np.nan, np.nan], [None, None]
    with pytest.raises(ValueError, match=r"inputs must have a value in each sequence.* b"):
        sequences_of(table, symbol="state", sequence="who", inputs="~ temp")


SECONDS = 1706659200 + 600 * np.arange(500)


@pytest.mark.parametrize(
    ("times", "every", "steps", "first"),
    [
        ([20240131, 20240201, 20240202], "day", 3, "2024-01-31"),
        ([20240131.0, 20240201.0, 20240202.0], "day", 3, "2024-01-31"),
        ([202411, 202412, 202501], "month", 3, "2024-11-01"),
        ([2024013122, 2024013123, 2024020100], "h", 3, "2024-01-31T22:00:00"),
        ([202401312358, 202401312359, 202402010000], "min", 3, "2024-01-31T23:58:00"),
        ([20240131235959, 20240201000000, 20240201000001], "s", 3, "2024-01-31T23:59:59"),
        (SECONDS, "10min", 500, "2024-01-31T00:00:00"),
        (SECONDS * 1000, "10min", 500, "2024-01-31T00:00:00"),
        (SECONDS * 10**6, "10min", 500, "2024-01-31T00:00:00"),
        (SECONDS * 10**9, "10min", 500, "2024-01-31T00:00:00"),
        (SECONDS + 0.25, "10min", 500, "2024-01-31T00:00:00"),
        (600 * np.arange(500), "600", 500, "0"),
        (600 * np.arange(500) + 7, 600, 500, "7"),
        ([1990, 1994, 1998], "4", 3, "1990"),
        ([3, 4, 5], None, 3, "3"),
        ([20240131, 20240132, 20240133], None, 3, "20240131"),  # there is no 32nd
        ([1, 2, 90], "1", 90, "1"),
    ],
)
def test_numbers_are_steps_or_the_dates_that_they_write(times, every, steps, first):
    times = np.asarray(times)
    table = {"at": times, "s": [["u", "v"][i % 2] for i in range(len(times))]}
    data = sequences_of(table, symbol="s", time="at", every=every)
    assert data.num_steps == steps
    told = data.times([0], [0])[0]
    assert told == (np.datetime64(first) if "-" in first else int(first))
    future = {"at": times[-1:] + (times[1] - times[0]), "s": ["u"]}
    if steps == len(times) and times[-1] - times[-2] == times[1] - times[0]:
        assert future_of(data, future, 1)["s"].values.tolist() == ["u"]


@pytest.mark.parametrize(
    ("times", "match"),
    [
        ([20240131, 20240201, 20240202], "every must say .* has dates, such as 2024-01-31T"),
        (SECONDS, "every must say .* has dates, such as 2024-01-31T00:00:00: 'year'"),
        (
            600 * np.arange(500),
            r"298,901 of 299,401 would have no row, since rows are mostly 600 apart"
            r" \(every='600' makes",
        ),
        ([1990, 1994, 1998, 2002], "mostly 4 apart"),
        ([0, 3, 10, 40, 90, 95], "apart at the median"),
    ],
)
def test_a_series_of_which_most_steps_would_be_missing_is_refused(times, match):
    table = {"at": times, "s": [["u", "v"][i % 2] for i in range(len(times))]}
    with pytest.raises(ValueError, match=match):
        sequences_of(table, symbol="s", time="at")


@pytest.mark.parametrize("change", ["2024-03-30T12:00", "2024-10-26T12:00"])
def test_local_hours_over_a_change_of_clocks_are_hours_that_passed(tmp_path, change):
    pandas = pytest.importorskip("pandas")
    start = pandas.Timestamp(change, tz="Europe/Berlin").tz_convert("UTC")
    times = pandas.date_range(start, periods=96, freq="h").tz_convert("Europe/Berlin")
    symbols = ["u", "v"] * 48
    file = tmp_path / "t.csv"
    rows = [f"{at.isoformat()},{s}" for at, s in zip(times, symbols, strict=True)]
    file.write_text("\n".join(["at,s", *rows]))
    for table in (
        pgmult.read(file, time_zone="Europe/Berlin"),
        pandas.DataFrame({"at": times, "s": symbols}),
    ):
        with pytest.warns(UserWarning, match="steps are counted in UTC"):
            data = sequences_of(table, symbol="s", time="at", every="h")
        assert data.totals.tolist() == [1] * 96
        assert data.times([0], [0])[0] == np.datetime64(start.tz_localize(None))
        days = sequences_of(table, symbol="s", time="at", every="day")
        assert days.num_steps == 5


def test_symbols_and_names_that_differ_by_unicode_form_alone_are_one():
    two = ["caf\u00e9", "cafe\u0301"]
    table = {"s": [two[0], two[1], "tea", two[0]], "who": [two[0], two[1], two[0], two[1]]}
    with pytest.warns(UserWarning, match="differ by their Unicode form alone, such as two of"):
        data = sequences_of(table, symbol="s", sequence="who")
    assert data.alphabet.tolist() == ["caf\u00e9", "tea"]
    assert data.names.tolist() == ["caf\u00e9"]
    with pytest.warns(UserWarning, match="Unicode form alone"):
        assert as_sequences([[*two, "tea"]]).alphabet.tolist() == ["caf\u00e9", "tea"]
    known = as_sequences([[two[1], "tea"]], alphabet=[two[0], "tea"])
    assert known.symbols.tolist() == [0, 1]
    assert as_sequences([two[1], "abc"]).lengths.tolist() == [4, 3]


def test_numbers_of_sequences_stand_in_their_order():
    table = {"who": [10, 1, 2, 10], "s": ["u", "v", "u", "v"]}
    data = sequences_of(table, symbol="s", sequence="who")
    assert data.names.tolist() == ["1", "2", "10"]
    assert data.lengths.tolist() == [1, 1, 2]
    assert data.alphabet[data.symbols].tolist() == ["v", "u", "u", "v"]


CHANNELS = {
    "who": ["a"] * 5 + ["b"] * 6, "year": [0, 1, 2, 3, 4, 0, 1, 2, 3, 5, 6],
    "job": ["n", "n", None, "s", "s", "n", "s", "s", "n", "n", "n"],
    "home": ["x", None, "y", "y", "x", "x", "z", "z", None, "x", "y"],
}  # fmt: skip


def test_names_of_several_columns_stand_in_the_order_of_their_numbers():
    table = {"who": [10, 10, 2, 2], "day": [2, 10, 10, 1], "is": list("abab")}
    names = pgmult.read(table).sequences("is", sequence=["who", "day"]).names
    assert list(names) == ["2:1", "2:10", "10:2", "10:10"]


def test_several_columns_of_symbols_are_channels():
    how = {"sequence": "who", "time": "year"}
    both = pgmult.read(CHANNELS).sequences(["job", "home"], **how)
    assert both.channels == (2, 3)
    assert both.alphabet.tolist() == ["job: n", "job: s", "home: x", "home: y", "home: z"]
    for number, name in enumerate(["job", "home"]):
        alone, one = pgmult.read(CHANNELS).sequences(name, **how), both.channel(number)
        np.testing.assert_array_equal(one.to_csr().toarray(), alone.to_csr().toarray())
        np.testing.assert_array_equal(one.order, alone.order)
        np.testing.assert_array_equal(one.starts, alone.starts)
    with pytest.raises(ValueError, match="'job' for both"):
        pgmult.read(CHANNELS).sequences(["job", "job"], **how)
    with pytest.raises(ValueError, match="wide names columns"):
        pgmult.read(CHANNELS).sequences(["job", "home"], wide="y*")

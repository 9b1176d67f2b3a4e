"""Columns of dates in formulas: days since the first, and what a calendar says of them."""

import datetime

import numpy as np
import pandas as pd
import pytest

import pgmult
from pgmult.formulas.design import make_design, table_of
from pgmult.regression.models.additive import AdditiveRegression
from pgmult.sampling.codec import decode, encode
from pgmult.topics.data.corpus import with_covariates
from pgmult.topics.summaries.effects import lay_out

RNG = np.random.default_rng(0)
SIZE = 120
FIRST = np.datetime64("2020-02-29")
SINCE = np.concatenate([[0], RNG.integers(0, 700, SIZE - 1)])
DAYS = FIRST + SINCE
WRITTEN = {
    "days": DAYS, "nanoseconds": DAYS.astype("datetime64[ns]"), "texts": DAYS.astype(str),
    "texts with midnights": [f"{day}T00:00" for day in DAYS], "dates": DAYS.tolist(),
    "stamps": [pd.Timestamp(day) for day in DAYS], "series": pd.Series(DAYS),
    "strings of pandas": pd.Series(DAYS.astype(str)),
}  # fmt: skip
FORMULAS = [
    "date", "s(date)", "gp(date)", "rw(date)", "month(date)", "weekday(date) + year(date)",
    "I(date > '2021-01-01')", "s(month(date))", "bs(date, df=4)", "date * month(date)",
    "cc(yearday(date), df=4, lower_bound=0, upper_bound=366)", "C(date == '2020-02-29')",
    "x + (date | g)", "poly(days(date), 2)", "offset(days(date) / 1000) + x",
    "(1 | weekday(date)) + x", "(x | g:month(date))", "(1 | year(date)/month(date))",
    "C(month(date))", "C(weekday(date), contr.treatment('Sunday')) + C(year(date))",
]  # fmt: skip
OTHERS = {"x": RNG.standard_normal(SIZE), "g": ["a", "b", "c"] * (SIZE // 3)}


@pytest.mark.parametrize("formula", [f for f in FORMULAS if not f.startswith("C(date ==")])
@pytest.mark.parametrize("written", WRITTEN)
def test_dates_are_the_same_however_they_are_written(written, formula):
    whole = make_design(OTHERS | {"date": DAYS}, SIZE, formula, every_term=True, check=False)
    found = make_design(
        OTHERS | {"date": WRITTEN[written]}, SIZE, formula, every_term=True, check=False
    )
    assert found.coding == whole.coding
    np.testing.assert_array_equal(found.matrix, whole.matrix)
    some = {name: np.asarray(column)[40:44] for name, column in OTHERS.items()}
    again = whole.like(some | {"date": pd.Series(WRITTEN[written])[40:44].tolist()})
    np.testing.assert_allclose(again.matrix, whole.matrix[40:44], atol=1e-12)
    for own, term in zip(again.terms, whole.terms, strict=True):
        np.testing.assert_allclose(own.design, term.design[40:44], atol=1e-9)


def test_what_functions_say_of_a_date():
    times = ["2024-02-29T13:30", "2023-12-31 00:00:30", "2024-03-01T23:59:59.5"]
    table = {"t": [*times, "2020-01-06T00:00"]}
    asked = "t + days(t) + year(t) + yearday(t) + hour(t) + I(month(t)) + I(weekday(t)) - 1"
    design = make_design(table, 4, asked, standardize=False, check=False, every_term=True)
    found = dict(zip(design.names.tolist(), design.matrix.T, strict=True))
    days = np.array([1515.5625, 1455 + 30 / 86400, 1517 - 0.5 / 86400, 0.0])
    np.testing.assert_allclose(found["t"], days, rtol=1e-14)
    np.testing.assert_array_equal(found["days(t)"], found["t"])
    np.testing.assert_array_equal(found["year(t)"], [2024, 2023, 2024, 2020])
    np.testing.assert_array_equal(found["yearday(t)"], [59, 364, 60, 5])
    np.testing.assert_allclose(found["hour(t)"], [13.5, 30 / 3600, 24 - 0.5 / 3600, 0.0])
    np.testing.assert_array_equal(found["I(month(t))"], [2, 12, 3, 1])
    np.testing.assert_array_equal(found["I(weekday(t))"], [4, 7, 5, 1])
    labels = make_design(table, 4, "weekday(t)", check=False, standardize=False)
    assert labels.names.tolist()[1:] == [
        f"weekday(t)[T.{day}]" for day in ("Thursday", "Friday", "Sunday")
    ]
    back = table_of(design)["t"]
    assert [str(time) for time in back] == [
        "2024-02-29T13:30:00.000", "2023-12-31T00:00:30.000", "2024-03-01T23:59:59.500",
        "2020-01-06T00:00:00.000",
    ]  # fmt: skip
    np.testing.assert_array_equal(design.like({"t": back}).matrix, design.matrix)


def test_new_rows_count_from_the_same_day():
    design = make_design({"date": DAYS}, SIZE, "date", standardize=False)
    new = design.rows({"date": ["2020-02-28", "2023-02-28"]})
    np.testing.assert_array_equal(new[:, 1], [-1.0, 1095.0])
    np.testing.assert_array_equal(design.rows({"date": datetime.date(2020, 3, 1)})[:, 1], [1.0])
    again = decode(encode(design, arrays := {}), arrays)
    assert again.coding == design.coding
    np.testing.assert_array_equal(again.rows({"date": [FIRST]})[:, 1], [0.0])
    shifted = make_design({"date": DAYS + np.timedelta64(1, "D")}, SIZE, "date", standardize=False)
    assert shifted.coding != design.coding


REFUSED = {
    "a number": ("date", {"date": [3.0]}, "must hold dates .1999-12-31., as before, got '3'"),
    "no date": ("date", {"date": ["2020-06-31"]}, "must hold dates .*, got '2020-06-31' at row 0"),
    "a gap": ("date", {"date": [None]}, "missing value at row 0"),
    "too late": ("gp(date)", {"date": ["2030-01-01"]}, "known for date from 20.*got 2030-01-01"),
    "beyond knots": ("bs(date, df=4)", {"date": ["2030-01-01"]}, "in days since 2020-02-29"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_date_is_refused(case):
    formula, new, said = REFUSED[case]
    design = make_design({"date": DAYS}, SIZE, formula, every_term=True)
    with pytest.raises(ValueError, match=said):
        design.like(new)


def test_formulas_about_dates_that_cannot_be():
    table = {"date": DAYS, "x": SINCE.astype(float)}
    with pytest.raises(ValueError, match=r"month\(\) takes a column of dates .*, and x is none"):
        make_design(table, SIZE, "month(x)")
    with pytest.raises(ValueError, match=r"hour\(\) takes a column of dates"):
        make_design(table, SIZE, "hour(date + 1)")
    with pytest.raises(ValueError, match=r"date is compared with a date .1999-12-31., got 'May'"):
        make_design(table, SIZE, "I(date < 'May')")
    spring = {"date": [f"2020-0{m}-1{d}" for m in (3, 4, 5) for d in range(5)]}
    design = make_design(spring, 15, "month(date)")
    with pytest.raises(ValueError, match="must be one of March, April, May, got 'June'"):
        design.rows({"date": "2020-06-01"})


def test_groups_of_a_calendar():
    design = make_design({"date": DAYS}, SIZE, "(1 | weekday(date))", every_term=True)
    (term,) = design.terms
    week = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
    assert term.known.names.tolist() == week
    assert term.codes[0] == week.index("Saturday")
    assert list(table_of(design)) == ["date"]
    (moved,) = design.like({"date": DAYS + np.timedelta64(1, "D")}).terms
    np.testing.assert_array_equal(moved.codes, (term.codes + 1) % 7)
    spring = {"date": [f"2020-0{m}-1{d}" for m in (3, 4, 5) for d in range(5)]}
    design = make_design(spring, 15, "(1 | month(date))", every_term=True)
    assert design.terms[0].known.names.tolist() == ["March", "April", "May"]
    with pytest.raises(ValueError, match=r"'month\(date\)' must be one of .*, got 'June'"):
        design.like({"date": ["2020-06-01"]})
    new = design.like({"date": ["2020-06-01"]}, new_levels=True)
    assert new.terms[0].new.tolist() == [["June"]]
    with pytest.warns(UserWarning, match=r"1 of 2 labels of 'month\(date\)' in new is not"):
        design.report_new_labels({"date": ["2020-06-01", "2020-05-01"]}, "new")
    with pytest.raises(ValueError, match=r"weekday\(\) takes a column of dates .*, and x is none"):
        make_design({"x": [1.0, 2.0]}, 2, "(1 | weekday(x))", every_term=True)


def test_the_calendar_as_labels():
    table = {"my date": DAYS}
    formula = "C(weekday(`my date`), contr.treatment('Sunday')) + C(year(`my date`))"
    design = make_design(table, SIZE, formula, standardize=False)
    days = [name.partition("[T.")[2] for name in design.names[1:7]]
    assert days == ["Monday]", "Tuesday]", "Wednesday]", "Thursday]", "Friday]", "Saturday]"]
    assert design.names.tolist()[7:] == ["C(year(`my date`))[T.2021]", "C(year(`my date`))[T.2022]"]
    np.testing.assert_array_equal(design.matrix[0, 1:], [0, 0, 0, 0, 0, 1, 0, 0])


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
def test_a_regression_with_groups_of_a_calendar():
    table = {"date": DAYS, "y": ["a", "b", "a"] * 40, "x": SINCE / 100}
    rows = pgmult.read(table).rows("y ~ x + (1 | weekday(date))")
    run = pgmult.sample(
        AdditiveRegression(), rows, draws=4, tune=2, chains=1, progressbar=False, random_seed=1
    )
    assert run.groups("weekday(date)").draws.shape[1:] == (7, 2)
    assert [str(c) for c in run.comparisons().labels["comparison"]["column"]] == ["x"]
    new = {"date": ["2024-01-01"], "x": [1.0]}
    assert run.predict(new).draws.shape[1:] == (1, 2)
    shown = run.effects("date", ["2024-01-01", "2024-01-02"])
    assert shown.draws.shape[1:] == (2, 2)
    assert "weekday(date)" in str(run.report())


def test_texts_of_other_kinds_stay_labels():
    for texts in (["2010-11", "2011-12"], ["2020-02-30", "2020-01-01"], ["1", "2020-01-01"]):
        design = make_design({"g": texts * 3}, 6, "g")
        assert design.columns.levels_of(0) == sorted(texts)
    ordered = pd.Categorical(
        ["2021-01-01", "2020-01-01"] * 3, categories=["2021-01-01", "2020-01-01"]
    )
    assert make_design({"g": ordered}, 6, "g").names[1] == "g[T.2020-01-01]"
    assert make_design({"g": DAYS[:2].tolist() * 3}, 6, "C(g)").columns.num_levels[0] == 2


@pytest.mark.parametrize(
    "formula", ["s(date)", "gp(date)", "month(date)", "bs(date, df=4)", "date + rw(date)"]
)
def test_answers_are_told_by_dates(formula, tmp_path):
    table = {"vote": RNG.choice(["a", "b"], SIZE).tolist(), "date": DAYS.astype(str).tolist()}
    data = pgmult.read(table).rows(f"vote ~ {formula}")
    run = pgmult.sample(
        AdditiveRegression(method="approximate"), data, draws=8, tune=0, chains=1, random_seed=0,
        progressbar=False,
    )  # fmt: skip
    asked = ["2020-05-05", datetime.date(2020, 5, 5), np.datetime64("2020-05-05T00:00")]
    known = [DAYS.min(), str(DAYS.max())] if "rw" in formula else asked
    draws = run.effects("date", known).draws
    if "rw" not in formula:
        np.testing.assert_allclose(draws[:, :2], draws[:, 1:])
    assert "2020-" in str(run.effects("date"))
    compared = str(run.comparisons("date"))
    assert (" less 20" if formula[:4] in ("mont", "bs(d", "date") else " days ") in compared
    run.report(tmp_path / "page.html")
    assert "2020-" in (tmp_path / "page.html").read_text(encoding="utf-8")
    run.check(by="date")
    run.check({name: column[:50] for name, column in table.items()}, by="date")


def test_topics_and_sequences_have_them_too():
    counts = RNG.poisson(2.0, (SIZE, 4))
    topics = with_covariates(counts, {"date": DAYS}, "s(date) + weekday(date)")
    new = topics.new_documents(counts[:2], {"date": ["2020-03-01", "2021-03-01"]})
    assert new.design.columns.values[:, 0].tolist() == [1.0, 366.0]
    values, *_ = lay_out(
        topics, "date", at=None, by=None, scope="population", num_rows=100,
        rng=np.random.default_rng(0),
    )  # fmt: skip
    assert {*np.array(values["date"]).astype(DAYS.dtype).tolist()} <= {*DAYS.tolist()}
    steps = {
        "s": np.repeat(["a", "b"], 10), "y": list("ababaabbab" * 2),
        "date": [f"2020-01-{day:02d}" for day in range(1, 11)] * 2,
    }  # fmt: skip
    sequences = pgmult.read(steps).sequences(symbol="y", sequence="s", inputs="date")
    later = sequences.extended(1, {"date": ["2020-01-11", "2020-01-12"]})
    ahead = table_of(later.design)["date"][[10, 21]]
    assert [str(one) for one in ahead] == ["2020-01-11", "2020-01-12"]

"""Tidy tables as fields, and predictions as tidy tables."""

from dataclasses import replace

import numpy as np
import pytest

import pgmult
from pgmult.fields import MultinomialGP, as_field, predict
from pgmult.fields.covariances import Matern
from pgmult.fields.tables import axis_and_places, field_of, read_field

pytestmark = pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")  # short on purpose
STATES = pgmult.datasets.us_states()


def births(rng):
    """A tidy table with its truth: shuffled, two rows split in two, zeros left out."""
    rows = [
        (year, state, name, int(rng.integers(0, 9)))
        for year in (1999, 2000, 2001)
        for state in ("TX", "Ohio")
        for name in ("Ada", "Ben", "Cleo")
    ]
    truth = {(y, s, n): c for y, s, n, c in rows}
    rows = [row for row in rows if row[3]] + [(2001, "TX", "Ada", 2), (2001, "TX", "Ada", 1)]
    truth[2001, "TX", "Ada"] += 3
    columns = list(zip(*[rows[i] for i in rng.permutation(len(rows))], strict=True))
    return dict(zip(["year", "state", "name", "births"], map(list, columns), strict=True)), truth


def check(data, truth):
    assert data.categories.tolist() == ["Ada", "Ben", "Cleo"]
    found = {}
    for x, counts in zip(data.inputs, data.counts, strict=True):
        state = next(s for s in ("TX", "Ohio") if np.allclose(STATES[s], x[1:]))
        found.update(
            {(int(x[0]), state, n): c for n, c in zip(data.categories, counts, strict=True)}
        )
    assert found == truth


def test_rows_add_up_and_what_is_missing_is_zero():
    table, truth = births(np.random.default_rng(0))
    data = field_of(
        table, inputs=["year", "state"], category="name", count="births", places={"state": STATES}
    )
    check(data, truth)
    assert data.input_names.tolist() == ["year", "state 1", "state 2"]
    assert sorted(data.names)[:2] == ["1999, Ohio", "1999, TX"]


def test_any_frame():
    pandas = pytest.importorskip("pandas", reason="frames of pandas")
    table, truth = births(np.random.default_rng(1))
    frame = pandas.DataFrame(table).set_index(np.arange(len(table["year"])) + 7)
    frame["births"] = frame["births"].astype("Int64")
    frame["hospital"] = np.arange(len(frame))  # else some rows are alike, and warned of
    frame["name"] = frame["name"].astype("category")
    data = field_of(
        frame, inputs=["year", "state"], category="name", count="births", places={"state": STATES}
    )
    check(data, truth)


def test_rows_that_are_alike_are_told():
    table = {"year": [1, 1, 1, 2], "name": ["a", "b", "a", "a"], "n": [3, 4, 3, 3]}
    with pytest.warns(UserWarning, match="^1 row is like another in every column, as row 3 below"):
        data = field_of(table, inputs="year", category="name", count="n")
    assert data.counts.tolist() == [[6, 4], [3, 0]]
    each = {**table, "hospital": [1, 1, 2, 1]}  # not alike in every column
    field_of(each, inputs="year", category="name", count="n")
    del table["n"]  # every row an observation: they are alike
    field_of(table, inputs="year", category="name")


def test_names_that_look_alike_are_told():
    table = {"year": [1, 1, 2, 2], "name": ["Ada", "ADA", "Ben", "ada "]}
    told = "'name' has 'ADA' and 'Ada', which differ in capitals or blanks alone, and 1 more so"
    with pytest.warns(UserWarning, match=told):
        data = field_of(table, inputs="year", category="name")
    assert data.num_categories == 4


def test_labelled_arrays():
    xarray = pytest.importorskip("xarray", reason="arrays of xarray")
    counts = xarray.DataArray(
        np.arange(6).reshape(3, 2), {"year": [1, 2, 3], "name": ["b", "a"]}, name="births"
    )
    data = field_of(counts, inputs="year", category="name", count="births")
    assert data.counts.tolist() == [[1, 0], [3, 2], [5, 4]]
    with pytest.raises(ValueError, match="table must have a name"):
        field_of(counts.rename(None), inputs="year", category="name", count="births")


def test_every_row_is_one_without_counts():
    table = {"t": [0.0, 0.0, 1.0], "word": ["a", "b", "a"]}
    assert field_of(table, inputs="t", category="word").counts.tolist() == [[1, 1], [1, 0]]


@pytest.mark.parametrize("resolution", ["D", "s", "ns"])
def test_dates_come_back_as_dates(resolution):
    days = np.array(["1999-01-01", "1999-07-02", "2000-12-31"], dtype=f"datetime64[{resolution}]")
    new = np.array(["2001-02-03", "2004-02-29"], dtype=f"datetime64[{resolution}]")
    table = {"day": np.repeat(days, 2), "word": ["a", "b"] * 3, "n": [5, 2, 4, 3, 1, 6]}
    data = field_of(table, inputs="day", category="word", count="n", new_inputs={"day": new})
    assert data.inputs[:2, 0] == pytest.approx([1999.0, 1999.0 + 182 / 365])
    assert data.names.tolist() == ["1999-01-01", "1999-07-02", "2000-12-31"]
    posterior = pgmult.sample(
        MultinomialGP(Matern(1.5, 1.0)), data,
        draws=4, tune=2, chains=1, random_seed=0, progressbar=False, keep=["pi_new"],
    )  # fmt: skip
    found = predict(posterior, data=data, inputs="new", max_draws=None).to_dataframe()
    assert found.columns.tolist() == ["day", "category", "mean", "sd", "lower", "upper"]
    assert (found["day"].to_numpy() == np.repeat(new, 2)).all()
    assert found["category"].tolist() == ["a", "b"] * 2
    assert found["mean"].to_numpy().reshape(2, 2).sum(axis=1) == pytest.approx(1.0)


def test_dates_survive_a_stored_run(tmp_path):
    table = {"day": np.array(["1999-01-01", "1999-07-02"], dtype="M8[D]"), "word": ["a", "b"]}
    new = {"day": np.array(["2001-02-03"], dtype="M8[D]")}
    data = field_of(table, inputs="day", category="word", new_inputs=new)
    settings = {"draws": 3, "tune": 1, "chains": 1, "progressbar": False, "keep": ["pi_new"]}
    model = MultinomialGP(Matern(1.5, 1.0))
    pgmult.sample(model, data, random_seed=0, store=tmp_path / "run", **settings)
    assert pgmult.load(tmp_path / "run").is_of(data)


def test_years_and_back():
    from pgmult.core.tables import as_dates, as_years

    rng = np.random.default_rng(0)
    dates = rng.integers(-(10**10), 10**10, 1000).astype("datetime64[s]")
    assert (as_dates(as_years(dates)) == dates).all()
    assert as_years(np.array(["1999-01-01"], dtype="M8[D]"))[0] == 1999.0


def test_all_states_by_code_and_name():
    assert len(STATES) == 2 * 51
    assert STATES["Wyoming"] == STATES["WY"] != STATES["West Virginia"]


GOOD = {"year": [1.0, 2.0], "place": ["TX", "OH"], "name": ["a", "b"], "n": [1, 2]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"inputs": "yaer"},
            "inputs must name columns of table, got 'yaer' .it has 'year', 'place'",
        ),
        ({"inputs": ["year", "year"]}, "inputs must be different columns, got 'year' twice"),
        ({"inputs": []}, "inputs must name a column at least"),
        ({"category": "nmae"}, "category must name columns of table, got 'nmae'"),
        ({"count": "m"}, "count must name columns of table, got 'm'"),
        (
            {"inputs": "place"},
            "'place' of table must be numbers or dates, got strings such as 'TX'",
        ),
        (
            {"inputs": "place", "places": {"place": {"TX": 1}}},
            "table column 'place' must be one of TX, got 'OH' at row 1",
        ),
        ({"inputs": "year", "places": {"place": {}}}, "places must be of columns among inputs"),
        (
            {"inputs": "place", "places": {"place": {"TX": 1, "OH": (1, 2)}}},
            "must have as many coordinates",
        ),
        ({"table": {**GOOD, "n": [1, -2]}}, "column 'n' must be non-negative"),
        ({"table": {**GOOD, "n": [1, np.nan]}}, "'n' must have a value in every row"),
        ({"table": {**GOOD, "n": ["1", "NA"]}}, "'n' must hold numbers, got 'NA' at row 1"),
        ({"table": {**GOOD, "n": ["1", "1,234"]}}, "'n' must hold numbers, got '1,234' at row 1"),
        ({"table": {**GOOD, "n": ["1", "2"]}}, "'n' must hold numbers, got '1' at row 0"),
        (
            {"table": {**GOOD, "n": np.array([1, None], dtype=object)}},
            "'n' must have a value in every row, got none at row 1",
        ),
        (
            {"table": {**GOOD, "year": ["1999-01-01", "07/01/1999"]}},
            "'year' of table must be numbers or dates, got strings .*pandas.to_datetime",
        ),
        (
            {"inputs": "place", "places": {"place": {"TX": 1, "oh": 2, "Oh": 3}}},
            "must be one of TX, oh, Oh, got 'OH' at row 1",
        ),
        ({"table": {**GOOD, "year": [1.0, np.nan]}}, "'year' of table must be finite"),
        ({"table": {**GOOD, "name": ["a", None]}}, "'name' must have a value in every row"),
        ({"table": {**GOOD, "n": [1]}}, "columns of table must have one axis and one length"),
        ({"table": {}}, "table must have columns"),
        (
            {"table": {**GOOD, "n": np.ma.masked_equal([1, 2], 2)}},
            "table must not have masked values, got some in column 'n'",
        ),
        ({"new_inputs": {"yaer": [3.0]}}, "inputs must name columns of new_inputs, got 'year'"),
        (
            {"table": {**GOOD, "year": np.array(["1999-01-01", "NaT"], "M8[D]")}},
            "dates must be there, got NaT at row 1",
        ),
    ],
)
def test_bad_input(change, message):
    arguments = {"table": GOOD, "inputs": "year", "category": "name", "count": "n"} | change
    with pytest.raises(ValueError, match=message):
        field_of(**arguments)


@pytest.mark.parametrize("table", [None, 3, "table.csv", [[1, 2]], np.ones((2, 2)), object()])
def test_no_table(table):
    with pytest.raises(TypeError, match="table must be a data frame or a mapping"):
        field_of(table, inputs="year", category="name")


class TestNewRows:
    """Rows that are predicted are read as the table of the data was."""

    @pytest.fixture
    def run(self):
        table = {"year": [2000, 2000, 2001, 2001], "region": [7, 8, 7, 8], "name": list("abba")}
        data = field_of(
            table, inputs=["year", "region"], category="name",
            places={"region": {7: (0.0, 1.0), 8: (3.0, 4.0)}},
        )  # fmt: skip
        return pgmult.sample(
            MultinomialGP(Matern(1.5, 2.0)), data, draws=3, tune=1, chains=1, random_seed=0,
            progressbar=False, keep=["psi", "beta", "hyperparameters"],
        )  # fmt: skip

    @pytest.mark.parametrize("region", [8, 8.0, "8"])
    def test_places_are_found_by_value(self, run, region):
        found = run.predict({"region": [region], "year": [2003]})
        np.testing.assert_array_equal(found.draws, run.predict([[2003.0, 3.0, 4.0]]).draws)
        assert list(found.table().columns)[:3] == ["year", "region", "category"]

    def test_other_places_have_to_be_given(self, run):
        new = {"region": [7, 9], "year": [2003, 2003]}
        with pytest.raises(ValueError, match="column 'region' must be one of 7, 8, got '9' at row"):
            run.predict(new)
        found = run.predict(new, places={"region": {9: (5.0, 5.0)}})
        expected = run.predict([[2003.0, 0.0, 1.0], [2003.0, 5.0, 5.0]])
        np.testing.assert_array_equal(found.draws, expected.draws)

    def test_a_missing_column_is_refused(self, run):
        with pytest.raises(ValueError, match="region"):
            run.predict({"year": [2003]})


YEARLY = {
    "year": [2000, 2000, 2000, 2001, 2001, 2001],
    "name": ["Ada", "Ben", "Total"] * 2,
    "n": [3, 4, 7, 5, 2, 7],
}


def test_a_category_that_is_the_sum_of_the_others_is_left_out():
    with pytest.warns(UserWarning, match="'Total' is the sum of the other categories"):
        data = field_of(YEARLY, inputs="year", category="name", count="n")
    assert data.categories.tolist() == ["Ada", "Ben"]
    renamed = YEARLY | {"name": ["Ada", "Ben", "Cy"] * 2}
    assert field_of(renamed, inputs="year", category="name", count="n").num_categories == 3
    large = renamed | {"n": [30, 40, 70, 50, 20, 70]}
    with pytest.warns(UserWarning, match="'Cy' is the sum"):
        field_of(large, inputs="year", category="name", count="n")


def test_a_total_of_more_than_the_other_categories_is_refused():
    with pytest.raises(ValueError, match="must not include a total, 'Total' has 15 counts"):
        field_of(YEARLY | {"n": [3, 4, 8, 5, 2, 7]}, inputs="year", category="name", count="n")


def test_a_column_for_each_category():
    wide = {"year": [2001, 2000], "Ada": [5, 3], "Ben": [2, 4], "all": [7, 7]}
    with pytest.warns(UserWarning, match="'all' is the sum"):
        data = field_of(wide, inputs="year", wide=["Ada", "Ben", "all"])
    long = field_of(
        {name: [v for v, k in zip(cells, YEARLY["name"], strict=True) if k != "Total"]
         for name, cells in YEARLY.items()},
        inputs="year", category="name", count="n",
    )  # fmt: skip
    assert data.categories.tolist() == long.categories.tolist()
    np.testing.assert_array_equal(data.counts, long.counts)
    with pytest.raises(ValueError, match="wide must be given alone"):
        field_of(wide, inputs="year", category="Ada", wide=["Ben", "all"])
    with pytest.raises(TypeError, match="the column of the category, or pass wide="):
        field_of(wide, inputs="year")


def test_an_empty_cell_of_a_wide_table_is_a_category_without_a_row():
    wide = {"year": [2000, 2001], "Ada": [5, 3], "Ben": [2, 4], "Cy": [None, 2.0]}
    data = field_of(wide, inputs="year", wide=["Ada", "Ben", "Cy"], absent="not counted")
    assert data.counted.tolist() == [[True, True, False], [True, True, True]]


def test_places_that_are_numbers_stand_in_their_order():
    columns = {"year": [2000] * 3, "plot": ["10", "2", "1"]}
    data = replace(as_field(np.arange(3.0), np.ones((3, 2), dtype=int)), columns=columns)
    assert axis_and_places(data, columns, 3)[2] == ["1", "2", "10"]


@pytest.mark.parametrize(
    ("texts", "dates"),
    [
        (["2010Q1", "2010Q3"], ["2010-01-01", "2010-07-01"]),
        (["Jan 2010", "Jul 2010"], ["2010-01-01", "2010-07-01"]),
        ([201012, 201101], ["2010-12-01", "2011-01-01"]),
        (["2010/11", "2011/12"], ["2010-01-01", "2011-01-01"]),
    ],
)
def test_times_that_stand_for_dates_are_dates(texts, dates):
    """Months 201012 and 201101 are a month apart, and no 89."""
    counts = {"a": [3, 4], "b": [5, 6]}
    read = field_of(
        {"time": texts} | counts, inputs="time", wide=["a", "b"], new_inputs={"time": texts}
    )
    same = field_of({"time": np.array(dates, "M8[D]")} | counts, inputs="time", wide=["a", "b"])
    np.testing.assert_array_equal(read.inputs, same.inputs)
    np.testing.assert_array_equal(read.new_inputs, same.inputs)
    assert read.names.tolist() == same.names.tolist() == dates


def test_a_column_of_percentages_is_named():
    table = {"year": [2000, 2001, 2002], "a": [None, 40, 50], "b": [3, 39.5, 41]}
    with pytest.raises(ValueError, match=r"column 'b' must be non-negative integers, got 39\.5"):
        field_of(table, inputs="year", wide=["a", "b"])


def test_places_come_in_the_order_of_their_numbers():
    """1, 2, 10, and plot 2 before plot 10."""
    place = ["plot 10", "plot 2", "plot 1", "10", "2"]
    table = {"place": place * 2, "year": [2000] * 5 + [2001] * 5, "name": ["a", "b"] * 5}
    places = {name: (float(i), 0.0) for i, name in enumerate(place)}
    data = field_of(table, inputs=["year", "place"], category="name", places={"place": places})
    names = axis_and_places(data, data.columns, data.num_rows)[2]
    assert names == ["2", "10", "plot 1", "plot 2", "plot 10"]


def test_points_in_space_are_places_without_an_axis():
    """Scattered numbers, and latitudes with longitudes; a panel of numbers has its years."""
    rng, counts = np.random.default_rng(0), np.ones((24, 2), dtype=int)

    def axis_of(columns):
        data = replace(as_field(np.arange(24.0), counts), columns=columns)
        axis, _, places, _ = axis_and_places(data, columns, 24)
        return axis, len(places)

    x, y = rng.normal(size=(2, 24))
    lat, lon = (np.repeat(np.arange(4.0), 6), np.tile(np.arange(6.0), 4))
    assert axis_of({"x": x, "y": y}) == ("", 24)
    assert axis_of({"lat": lat, "lon": lon}) == ("", 24)
    assert axis_of({"year": lat, "plot": lon}) == ("year", 6)
    assert axis_of({"year": np.tile(lat[::6], 6), "lat": lon // 1, "lon": 0.0 * lon}) == ("year", 6)
    assert axis_of({"age": x, "core": np.array(["a", "b"] * 12)}) == ("age", 2)
    assert axis_of({"depth": x}) == ("depth", 1)


def test_single_observations_say_nothing_of_rows_that_are_absent():
    table = {"x": [1.0, 2.0, 3.0], "kind": ["a", "b", "a"]}
    assert read_field(table, inputs="x", category="kind").zeros == ""
    assert (
        "taken for 0"
        in read_field(table | {"n": [3, 4, 5]}, inputs="x", category="kind", count="n").zeros
    )


def test_rows_of_a_wide_table_with_one_number_alike_are_no_repeats():
    field_of({"x": [1, 1], "a": [5, 5], "b": [2, 3]}, inputs="x", wide=["a", "b"])
    with pytest.warns(UserWarning, match="as row 2 below the header is"):
        field_of({"x": [1, 1], "a": [5, 5], "b": [2, 2]}, inputs="x", wide=["a", "b"])


def test_categories_keep_the_order_of_wide_columns():
    wide = {f"age{k}": [k, 3] for k in range(1, 12)}
    listed = [*wide][::-1]
    assert field_of({"year": [1, 2]} | wide, inputs="year", wide=listed).category_labels == listed
    long = {"year": [1] * 3 + [2] * 3, "age": ["age10", "age2", "age1"] * 2}
    assert field_of(long, inputs="year", category="age").category_labels == [
        "age1",
        "age2",
        "age10",
    ]

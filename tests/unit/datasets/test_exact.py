"""From a cell to a label and back: nothing is merged, rounded, shifted or guessed."""

import datetime
import json

import numpy as np
import pandas as pd
import pytest

import pgmult
from pgmult.core.labels import find_labels, is_missing, labels_of, value_texts
from pgmult.core.tables import exact
from pgmult.topics import with_covariates

IDS = ["9007199254740993", "9007199254740992", "9223372036854775807", "18446744073709551615"]
KEYS = ["1E5", "100000", "007", "7"]


def written(tmp_path, columns, name="t.csv"):
    path = tmp_path / name
    if name.endswith(".jsonl"):
        rows = zip(*columns.values(), strict=True)
        text = "\n".join(json.dumps(dict(zip(columns, row, strict=True))) for row in rows)
    else:
        rows = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
        text = "\n".join([",".join(columns), *rows]) + "\n"
    path.write_text(text, encoding="utf-8")
    return path


def every_form(tmp_path, ids):
    """A column of ids as each kind of table has it."""
    numbers = [int(i) for i in ids]
    yield "csv", written(tmp_path, {"id": ids, "s": list("abab")})
    yield "jsonl", written(tmp_path, {"id": numbers, "s": list("abab")}, "t.jsonl")
    yield "mapping", {"id": numbers, "s": list("abab")}
    yield "text", {"id": ids, "s": list("abab")}
    yield "array", {"id": np.array(numbers, dtype=np.uint64), "s": list("abab")}
    yield "pandas", pd.DataFrame({"id": np.array(numbers, dtype=np.uint64), "s": list("abab")})
    yield "nullable", pd.DataFrame({"id": pd.array(numbers, dtype="UInt64"), "s": list("abab")})
    yield "string", pd.DataFrame({"id": pd.array(ids, dtype="string"), "s": list("abab")})
    yield "categorical", pd.DataFrame({"id": pd.Categorical(numbers), "s": list("abab")})
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    arrow = pyarrow.table({"id": pyarrow.array(numbers, pyarrow.uint64()), "s": list("abab")})
    yield "arrow", arrow
    parquet.write_table(arrow, tmp_path / "t.parquet")
    yield "parquet", tmp_path / "t.parquet"


def test_ids_of_19_digits_are_kept_in_every_form(tmp_path):
    for form, table in every_form(tmp_path, IDS):
        data = pgmult.read(table).sequences("s", sequence="id")
        assert sorted(data.names.tolist()) == sorted(IDS), form
        corpus = with_covariates(np.eye(4, dtype=int), {"id": pgmult.read(table)["id"]}, "(1 | id)")
        assert sorted(corpus.design.terms[0].levels.tolist()) == sorted(IDS), form


def test_ids_stay_whole_where_one_is_missing(tmp_path):
    holes = pd.DataFrame({"id": pd.array([int(i) for i in IDS[:2]] + [None], dtype="Int64")})
    for table in (written(tmp_path, {"id": [*IDS[:2], ""], "x": [1, 2, 3]}), holes):
        column = pgmult.read(table)["id"]
        assert column.tolist() == [int(IDS[0]), int(IDS[1]), None]
    column = exact([int(IDS[0]), float("nan")], "'id'").values
    assert column.tolist()[0] == int(IDS[0])


def test_one_number_written_in_two_ways_is_two_labels(tmp_path):
    for ids in (KEYS, ["1E5", "100000", "3", "2"]):
        table = pgmult.read(written(tmp_path, {"id": ids, "s": list("abab")}))
        assert sorted(table.sequences("s", sequence="id").names.tolist()) == sorted(ids)
    assert np.asarray(table["id"], dtype=float).tolist() == [1e5, 1e5, 3.0, 2.0]


def test_a_corpus_keeps_its_columns_exactly_in_a_run(tmp_path):
    ids = ["1E5", "100000", IDS[0], "NA"]
    table = pgmult.read(
        written(tmp_path, {"t": ["war peace", "peace trade", "trade", "war"], "id": ids})
    )
    corpus = table.corpus("t")
    from pgmult.sampling.codec import decode, encode

    arrays = {}
    again = decode(encode(corpus, arrays), arrays)
    column = again.table.column("id")
    assert labels_of(column[:3], "id").tolist() == ids[:3]
    assert is_missing(column[3])


@pytest.mark.parametrize("asked", [1, 1.0, "1", "1.0", "1.00", np.int32(1), np.float32(1.0)])
def test_equal_values_are_one_label(asked):
    assert find_labels(["2", "1"], [asked], "id").tolist() == [1]
    assert find_labels(["2.0", "1.0"], [asked], "id").tolist() == [1]


def test_unknown_labels_are_named_with_the_nearest():
    many = [str(year) for year in range(1900, 2000)]
    with pytest.raises(
        ValueError, match=r"'year' must hold .*got '2000' at row 1 .*'1999', '1998'"
    ):
        find_labels(many, [1999, 2000], "year")
    names = [f"name {i}" for i in range(20)] + ["Abraham Lincoln"]
    with pytest.raises(ValueError, match=r"nearest: 'Abraham Lincoln'.*new_levels=True"):
        find_labels(names, ["abraham lincoln"], "who", new_levels=False)
    assert find_labels(names, ["nobody"], "who", new_levels=True).tolist() == [-1]
    with pytest.raises(ValueError, match="must have a value in every row, got none at row 0"):
        find_labels(names, [None], "who", new_levels=True)


def test_labels_of_documents_are_found_again_by_value():
    counts = np.random.default_rng(0).poisson(1.0, (6, 5))
    authors = [1, 1, 2, 2, 3, 3]
    data = with_covariates(counts, {"a": authors}, "(1 | a)", content=None)
    for same in ([1, 3], [1.0, 3.0], ["1", "3"], pd.array([1, 3], dtype="Int64")):
        new = data.new_documents(counts[:2], {"a": same})
        assert new.design.terms[0].codes.tolist() == [0, 2]
    with pytest.raises(ValueError, match=r"'a' must be one of 1, 2, 3, got '1.5' at row 1"):
        data.new_documents(counts[:2], {"a": [1, 1.5]})
    with pytest.raises(ValueError, match="must have a column 'a'"):
        data.new_documents(counts[:2], {"b": [1, 2]})
    new = data.new_documents(counts[:2], {"a": [1, 9]}, new_levels=True)
    assert new.design.terms[0].codes.tolist() == [0, -1]


def test_printed_numbers_tell_rows_apart():
    assert value_texts([20200101, 20200103]) == ["20200101", "20200103"]
    assert value_texts([1.5e9 + 0.251, 1.5e9 + 0.252]) == ["1500000000.251", "1500000000.252"]
    assert value_texts([1 / 3, 0.5, "x"]) == ["0.333333", "0.5", "x"]


ZONED = ["2024-03-01T00:30+02:00", "2024-03-02T23:30+02:00", "2024-03-03T12:00+02:00"]
LOCAL = ["2024-03-01T00:30", "2024-03-02T23:30", "2024-03-03T12:00"]
PATIENTS = {"who": [3, 1, 2, 1, 3, 2], "t": [1, 1, 1, 2, 2, 2], "s": list("abbaab"), "n": [1] * 6}


class TestTimes:
    @pytest.mark.parametrize("form", ["csv", "python", "pandas", "arrow", "parquet"])
    def test_a_zone_keeps_its_calendar(self, tmp_path, form):
        table = {"t": pd.to_datetime(ZONED), "s": list("aba")}
        if form == "csv":
            table = written(tmp_path, {"t": ZONED, "s": list("aba")})
        elif form == "python":
            table["t"] = [datetime.datetime.fromisoformat(text) for text in ZONED]
        elif form == "pandas":
            table = pd.DataFrame(table)
        else:
            pyarrow = pytest.importorskip("pyarrow")
            from pyarrow import parquet

            table = pyarrow.table(table)
            if form == "parquet":
                parquet.write_table(table, tmp_path / "t.parquet")
                table = tmp_path / "t.parquet"
        column = pgmult.read(table)["t"]
        assert column.astype("M8[m]").tolist() == np.array(LOCAL, "M8[m]").tolist()

    def test_several_zones_are_refused_unless_one_is_asked_for(self, tmp_path):
        summer = ["2024-01-01T00:30+01:00", "2024-07-01T00:30+02:00", "2024-07-01T22:30Z"]
        path = written(tmp_path, {"t": summer, "s": list("aba")})
        with pytest.raises(ValueError, match=r"t.csv must have times of one zone.*time_zone="):
            _ = pgmult.read(path)["t"]
        column = pgmult.read(path, time_zone="Europe/Berlin")["t"]
        expected = ["2024-01-01T00:30", "2024-07-01T00:30", "2024-07-02T00:30"]
        assert column.astype("M8[m]").tolist() == np.array(expected, "M8[m]").tolist()
        with pytest.raises(ValueError, match="time_zone must be the name of a zone"):
            _ = pgmult.read(path, time_zone="Middle/Earth")["t"]

    def test_weeks_begin_on_mondays_or_where_one_says(self):
        days = np.arange("2024-02-26", "2024-03-11", dtype="M8[D]")  # two weeks from a Monday
        table = pgmult.read({"t": days, "s": ["a", "b"] * 7})
        iso = table.sequences("s", time="t", every="week")
        assert iso.totals.tolist() == [7, 7]
        assert iso.times([0, 0], [0, 1]).astype("M8[D]").tolist() == [days[0], days[7]]
        sunday = table.sequences("s", time="t", every="week", week_start="sunday")
        assert sunday.totals.tolist() == [6, 7, 1]
        fortnight = table.sequences("s", time="t", every="2 weeks")
        assert fortnight.totals.sum() == 14

    @pytest.mark.parametrize(
        ("every", "seconds"), [("5min", 300), ("2h", 7200), ("15s", 15), ("90 seconds", 90)]
    )
    def test_steps_of_any_length(self, every, seconds):
        times = np.datetime64("2024-03-01T00:00:00") + np.arange(4) * seconds
        table = pgmult.read({"t": times[[0, 1, 3]], "s": list("aba")})
        found = table.sequences("s", time="t", every=every)
        assert found.totals.tolist() == [1, 1, 0, 1]
        assert found.times([0, 0], [0, 3]).tolist() == times[[0, 3]].tolist()
        assert found.split(2)[1].starts[0] == times[2]

    def test_odd_lengths_are_refused(self):
        table = pgmult.read({"t": np.array(["2024-03-01"], "M8[D]"), "s": ["a"]})
        for every in ("fortnight", "0 days", "-1 day", 5, "1.5h"):
            with pytest.raises(ValueError, match="every must be a length of time"):
                table.sequences("s", time="t", every=every)


def test_na_is_missing_in_every_reader_or_in_none(tmp_path):
    cells = {"s": ["NA", "b", "a"], "x": [1, 2, 3]}
    for name in ("t.csv", "t.jsonl"):
        path = written(tmp_path, cells, name)
        assert pgmult.read(path)["s"].tolist() == [None, "b", "a"]
        assert pgmult.read(path, na_values=())["s"].tolist() == ["NA", "b", "a"]
        assert pgmult.read(path, na_values=["b"])["s"].tolist() == ["NA", None, "a"]
        assert pgmult.read(path).sequences("s").totals.tolist() == [0, 1, 1]
        assert pgmult.read(path, na_values=()).sequences("s").num_steps == 3


class TestOneAnswer:
    """The same data in another dress."""

    def same(self, one, other):
        assert one.to_csr().toarray().tolist() == other.to_csr().toarray().tolist()
        assert one.names.tolist() == other.names.tolist()

    def sequences(self, table):
        return pgmult.read(table).sequences("s", sequence="who", time="t", count="n")

    def test_rows_in_another_order(self):
        order = np.random.default_rng(0).permutation(6)
        turned = {name: [column[i] for i in order] for name, column in PATIENTS.items()}
        self.same(self.sequences(PATIENTS), self.sequences(turned))

    def test_a_row_split_in_two_and_a_row_of_zero(self):
        double = PATIENTS | {"n": [2] * 6}
        split = {name: column * 2 for name, column in PATIENTS.items()}
        self.same(self.sequences(double), self.sequences(split))
        more = {name: [*column, column[0]] for name, column in PATIENTS.items()}
        more["n"][-1] = 0
        self.same(self.sequences(PATIENTS), self.sequences(more))

    def test_ids_as_text_and_as_integers(self):
        text = PATIENTS | {"who": [str(i) for i in PATIENTS["who"]]}
        self.same(self.sequences(PATIENTS), self.sequences(text))

    def test_fields_too(self):
        table = PATIENTS | {"place": PATIENTS["who"]}
        where = {"1": 0.0, "2": 1.5, "3": 4.0}

        def field(place, known):
            return pgmult.read(table | {"place": place}).field(
                ["t", "place"], "s", count="n", places={"place": known}
            )

        one = field(table["place"], where)
        for place, known in (
            ([str(i) for i in table["place"]], where),
            ([float(i) for i in table["place"]], where),
            (table["place"], {f"{name}.0": at for name, at in where.items()}),
        ):
            other = field(place, known)
            assert other.counts.tolist() == one.counts.tolist()
            assert other.inputs.tolist() == one.inputs.tolist()


@pytest.mark.parametrize("dtype", ["string", "category", "object"])
def test_a_missing_category_is_refused_in_words(dtype):
    table = pd.DataFrame({"name": pd.Series(["a", None, "b"], dtype=dtype), "t": [1, 2, 3]})
    with pytest.raises(
        ValueError, match="'name' must have a value in every row, got none at row 1"
    ):
        pgmult.read(table).field("t", "name")
    with pytest.raises(ValueError, match="'name' has a missing value at row 1"):
        with_covariates(np.eye(3, dtype=int), table, "~ t + name")

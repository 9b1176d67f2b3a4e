"""Tables of texts: every column stays, what is missing is said, and what words were lost."""

import gzip
import json

import numpy as np
import pytest

from pgmult.datasets import ENGLISH_STOP_WORDS, read, read_corpus

CSV = """speech,year,party,score,code
"peace, trade",1901,R,1.5,01
war,1902,D,,x
,1903,R,2e1,NA
the of,1904,,3,3
peace war war,1905,D,4,4
"""


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def table(tmp_path):
    return read(write(tmp_path / "t.csv", CSV))


def texts(table):
    return [text or "" for text in table["speech"].tolist()]


@pytest.mark.parametrize(
    ("cells", "dtype", "values"),
    [
        (["1", "-2", "0"], "int64", [1, -2, 0]),
        (["1", "2.5", "1e3"], "float64", [1.0, 2.5, 1000.0]),
        (["007", "12"], "<U3", ["007", "12"]),
        (["nan", "1"], "<U3", ["nan", "1"]),
        (["1999-12", "2000-01"], "datetime64[s]", ["1999-12-01", "2000-01-01"]),
        (["1999-12-31", "2000-01-01 06:30"], "datetime64[s]", ["1999-12-31", "2000-01-01T06:30"]),
        (["1999-12-31", "soon"], "<U10", ["1999-12-31", "soon"]),
        (["2024-13-45", "2024-01-01"], "<U10", ["2024-13-45", "2024-01-01"]),
        (["1", ""], "object", [1.0, None]),
    ],
)
def test_kinds_of_columns(tmp_path, cells, dtype, values):
    path = write(tmp_path / "t.csv", "x,y\n" + "".join(f'"{cell}",a\n' for cell in cells))
    column = read(path)["x"]
    assert column.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(column, np.array(values, dtype=dtype))


class TestColumns:
    def test_all_stay_and_have_their_types(self, table):
        columns = table.columns
        assert list(columns) == ["speech", "year", "party", "score", "code"]
        assert columns["year"].dtype.kind == "i"
        assert columns["party"].tolist() == ["R", "D", "R", None, "D"]
        np.testing.assert_array_equal(columns["score"], [1.5, np.nan, 20.0, 3.0, 4.0])
        assert columns["code"].tolist() == ["01", "x", None, "3", "4"]
        assert texts(table) == ["peace, trade", "war", "", "the of", "peace war war"]
        assert repr(table) == "DataTable(5 rows, columns: speech, year, party, score, code)"

    def test_the_corpus_has_them(self, table):
        corpus = table.corpus("speech")
        assert corpus.num_documents == 5
        assert corpus.totals.tolist() == [2, 1, 0, 0, 3]
        assert corpus.table.columns["year"].tolist() == [1901, 1902, 1903, 1904, 1905]
        kept = corpus[corpus.totals > 0]
        assert kept.table.columns["year"].tolist() == [1901, 1902, 1905]
        assert kept.table.texts == ["peace, trade", "war", "peace war war"]

    def test_rows_can_be_chosen_before(self, table):
        known = table[~table.missing("party", "score")]
        assert known.columns["year"].tolist() == [1901, 1903, 1905]
        corpus = known.corpus("speech")
        data = corpus.with_covariates("~ year + party")
        assert [str(name) for name in data.design.names] == ["Intercept", "year", "party[T.R]"]
        np.testing.assert_array_equal(data.design.matrix[:, 2], [1, 1, 0])

    def test_whole_numbers_are_numbers_again_without_their_gaps(self, tmp_path):
        table = read(write(tmp_path / "t.csv", "year,who\n2000,a\n,b\n2002,c\n"))
        assert table["year"].dtype == object
        known = table[~table.missing("year")]
        assert known["year"].dtype == np.int64
        assert known["year"].tolist() == [2000, 2002]

    def test_a_covariate_without_a_value_is_refused(self, table):
        with pytest.raises(ValueError, match=r"'party' has a missing value at row 3"):
            table.corpus("speech").with_covariates("~ year + party")
        with pytest.raises(ValueError, match=r"'score' has a missing value at row 1"):
            table.corpus("speech").with_covariates("~ score")

    def test_documents_are_called_by_a_column(self, table):
        assert table[[0, 1]].corpus("speech", names="code").names.tolist() == ["01", "x"]
        with pytest.raises(ValueError, match=r"names 'code' must have a value in every row"):
            table.corpus("speech", names="code")

    def test_data_frames_mappings_and_files_are_read_alike(self, table, tmp_path):
        pandas = pytest.importorskip("pandas")
        frame = pandas.read_csv(tmp_path / "t.csv", dtype={"code": str})
        given = {name: table[name] for name in table.columns}
        (tmp_path / "t.tsv.gz").write_bytes(
            gzip.compress("\n".join("\t".join(r) for r in _cells(table)).encode())
        )
        rows = zip(*(map(_plain, column) for column in given.values()), strict=True)
        lines = [json.dumps(dict(zip(table.columns, row, strict=True))) for row in rows]
        write(tmp_path / "t.jsonl", "\n".join(lines))
        for other in (frame, given, tmp_path / "t.tsv.gz", tmp_path / "t.jsonl"):
            again = read(other)
            assert texts(again) == texts(table)
            for name, column in table.columns.items():
                np.testing.assert_array_equal(again.columns[name], column)

    def test_json_of_several_kinds(self, tmp_path):
        rows = [{"t": "a b", "x": 1, "ok": True, "tags": ["u"]}, {"t": "c", "x": "2", "ok": False}]
        path = write(tmp_path / "t.jsonl", "\n".join(map(json.dumps, rows)))
        columns = read(path).columns
        assert columns["x"].tolist() == ["1", "2"]
        assert columns["ok"].tolist() == [True, False]
        assert columns["tags"].tolist() == ['["u"]', None]


def _plain(value):
    value = value.item() if hasattr(value, "item") else value
    return None if value != value else value


def _cells(table):
    yield table.columns
    for row in zip(*(table[name] for name in table.columns), strict=True):
        yield ["" if (value := _plain(v)) is None else str(value) for v in row]


class TestNothingIsGuessed:
    def test_the_column_of_texts_is_asked_for(self, tmp_path):
        path = write(tmp_path / "t.csv", "title,body,year\na,long text here,1\nb,more text,2\n")
        expected = r"t.csv: say which column holds the texts \(strings are in 'body', 'title'\)"
        for refused in (lambda: read(path).corpus(), lambda: read_corpus(path)):
            with pytest.raises(ValueError, match=expected):
                refused()
        with pytest.raises(ValueError, match=r"text must be a column of strings, 'year' has none"):
            read(path).corpus("year")
        with pytest.raises(ValueError, match="which column holds the texts, but none holds str"):
            read({"x": [1, 2]}).corpus()


class TestWords:
    def test_losses_are_counted(self, table):
        losses = table.corpus("speech", min_documents=2).table.losses
        assert (losses.documents, losses.without_text, losses.emptied) == (5, 1, 1)
        assert (losses.words, losses.tokens) == (5, 8)
        assert [(x.reason, x.words, x.tokens) for x in losses.left_out] == [
            ("stop words (English)", 2, 2),
            ("in fewer than 2 documents", 1, 1),
        ]
        assert "2 are left without words (1 had none to begin with)" in str(losses)

    def test_reasons_add_up(self):
        rng = np.random.default_rng(0)
        words = [f"w{chr(97 + i)}{chr(97 + j)}" for i in range(8) for j in range(8)]
        texts = [" ".join(rng.choice(words, size=12, p=_zipf(64))) + " the" for _ in range(40)]
        table = read({"t": texts})
        options = {"min_count": 3, "min_documents": 3, "max_document_share": 0.5, "max_words": 9}
        corpus = table.corpus("t", **options)
        losses = corpus.table.losses
        assert len(losses.left_out) >= 4
        assert losses.words - sum(x.words for x in losses.left_out) == corpus.num_words == 9
        assert losses.tokens - sum(x.tokens for x in losses.left_out) == corpus.num_tokens

    def test_runs_of_words_stop_at_stop_words(self):
        texts = ["the united states of america", "united states army"]
        corpus = read({"text": texts}).corpus("text", ngrams=3)
        assert corpus.vocabulary.tolist() == [
            "america", "army", "states", "states_army", "united", "united_states",
            "united_states_army",
        ]  # fmt: skip
        assert corpus.to_csr().toarray()[:, 5].tolist() == [1, 1]
        with pytest.raises(ValueError, match="ngrams must be at most 10, got 11"):
            read({"text": texts}).corpus("text", ngrams=11)

    def test_stop_words_of_a_file(self, tmp_path):
        path = write(tmp_path / "stop.txt", "\ufeffDer\ndie\n\nund \n")
        texts = ["der Hund und die Katze"]
        for words in (path, str(path), ["der", "die", "und"]):
            kept = read({"text": texts}).corpus("text", stop_words=words).vocabulary.tolist()
            assert kept == ["hund", "katze"]
        assert "der" not in ENGLISH_STOP_WORDS
        with pytest.raises(
            ValueError, match=r"such as 'de', a file with .* or words, got 'klingon'"
        ):
            read({"text": texts}).corpus("text", stop_words="klingon")
        path.write_bytes(b"f\xfcr\n")
        with pytest.raises(ValueError, match=r"stop.txt, line 1: byte 0xfc is not utf-8"):
            read({"text": texts}).corpus("text", stop_words=path)


def _zipf(count):
    weights = 1.0 / np.arange(1, count + 1)
    return weights / weights.sum()


def test_several_columns_identify_a_sequence():
    table = read({"who": [1, 1, 1, 1, 2, 2], "day": [1, 1, 2, 2, 1, 1], "at": [0, 1, 0, 1, 0, 1],
                  "does": list("abbaab")})  # fmt: skip
    data = table.sequences("does", sequence=["who", "day"], time="at")
    assert data.names.tolist() == ["1:1", "1:2", "2:1"]
    assert data.keys == ("who:day", "at")
    with pytest.raises(ValueError, match="sequence must name columns of the table, got 'hour'"):
        table.sequences("does", sequence=["who", "hour"], time="at")
    with pytest.raises(ValueError, match="sequence must name at least one column"):
        table.sequences("does", sequence=[], time="at")


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ("round(x * n", "weights 'round.*found the end"),
        ("round(y)", "weights must have a column 'y'"),
        ("center(z)", "weights must have a column 'z'"),
        ("log(x - 1)", "weights 'log.*finite numbers"),
        (3, "weights must"),
    ],
)
def test_weights_that_cannot_be_computed_are_named(weights, words):
    table = read({"y1": ["a", "b", "a"], "x": [1, 2, 3], "n": [4, 5, 6]})
    with pytest.raises((TypeError, ValueError), match=words):
        table.rows("y1 ~ x", weights=weights)


def test_counts_and_weights_may_be_expressions():
    polls = {"year": [2000, 2000, 2005, 2005], "party": ["A", "B"] * 2, "share": [40, 60, 45, 55],
             "n": [1000, 1000, 801, 801]}  # fmt: skip
    table = read(polls)
    count = "round(share * n / 100)"
    field = table.field("year", "party", count=count)
    assert field.counts.tolist() == [[400, 600], [360, 441]]
    trips = {
        "trip": [1, 1, 2, 2],
        "price": [1.0, 2.0, 1.0, 3.0],
        "taken": [1, 0, 0, 1],
        "n": [3] * 4,
    }
    data = read(trips).choices("taken ~ price", occasion="trip", weights="exp(n - 3) * 2")
    assert data.taken.tolist() == [2.0, 0.0, 0.0, 2.0]
    for bad in ("round(share * m)", "round(share"):
        with pytest.raises(ValueError, match=r"^count"):
            table.field("year", "party", count=bad)

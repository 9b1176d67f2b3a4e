"""Forms in which people have tables: each is read as the same table, or refused by one sentence."""

import base64
import gzip
import json
import zipfile
from datetime import date

import numpy as np
import pytest

from pgmult import read
from pgmult.core.tables import missing_in
from pgmult.datasets import files as files_module
from pgmult.datasets.files import form_of, is_table, tables_of

ROWS = {
    "name": ["Ada", "Zoë", "Émile", None],
    "votes": [1, 20, None, 4],
    "share": [0.25, 1234.5, -3.125, 0.1],
    "day": ["2020-02-29", "1999-12-31", "2000-01-01", "2001-06-05"],
    "answer": ["yes", "no", "no", "yes"],
}
"""Columns of each kind, with a gap in a text and in whole numbers."""


def cells(table):
    """The columns of a table as lists, None for no value, dates as text."""
    columns = {}
    for name in table:
        column = table[name]
        texts = [str(x)[:10] for x in column] if column.dtype.kind == "M" else column.tolist()
        gaps = missing_in(column)
        columns[name] = [None if gap else x for gap, x in zip(gaps, texts, strict=True)]
    return columns


def text_of(separator=",", decimal=".", head="", names=(), end="\n"):
    """The rows as a text file has them."""

    def cell(x):
        text = "" if x is None else str(x)
        return text.replace(".", decimal) if isinstance(x, float) else text

    lines = [separator.join(names or ROWS)]
    lines += [separator.join(map(cell, row)) for row in zip(*ROWS.values(), strict=True)]
    return head + end.join(lines) + end


def thousands(x):
    return f"{x:,}".replace(",", " ").replace(".", ",").replace(" ", ".")


def written(path, form):
    """Write the rows in a form; return the path."""
    frame_of = {"xlsx": as_workbook, "sav": as_spss, "dta": as_stata, "rds": as_r}
    if form in frame_of:
        frame_of[form](path)
    elif form == "parquet":
        pa = pytest.importorskip("pyarrow")
        table = dict(ROWS, day=[date.fromisoformat(x) for x in ROWS["day"]])
        pytest.importorskip("pyarrow.parquet").write_table(pa.table(table), path)
    elif form == "zip":
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("inside/rows.csv", text_of())
            file.writestr("readme.txt", "Rows.")
            file.writestr("__MACOSX/._rows.csv", "nothing")
    elif form == "json":
        rows = [dict(zip(ROWS, row, strict=True)) for row in zip(*ROWS.values(), strict=True)]
        path.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    elif form == "json columns":
        path.write_text(json.dumps(ROWS), encoding="utf-8")
    elif form == "json of pandas":
        held = {name: {str(i): x for i, x in enumerate(v)} for name, v in ROWS.items()}
        path.write_text(json.dumps(held), encoding="utf-8")
    elif form == "jsonl":
        rows = zip(*ROWS.values(), strict=True)
        text = "\n".join(json.dumps(dict(zip(ROWS, row, strict=True))) for row in rows)
        path.write_text(text, encoding="utf-8")
    else:
        path.write_bytes(TEXTS[form]())
    return path


def as_workbook(path):
    openpyxl = pytest.importorskip("openpyxl")
    pytest.importorskip("python_calamine")
    book = openpyxl.Workbook()
    sheet = book.active
    for row in [["Table 1: answers"], [], list(ROWS)]:
        sheet.append(row)
    days = [date.fromisoformat(x) for x in ROWS["day"]]
    for row in zip(*dict(ROWS, day=days).values(), strict=True):
        sheet.append(row)
    book.create_sheet("empty")
    book.save(path)


def frame(pandas):
    columns = dict(ROWS, name=["Ada", "Zoë", "Émile", ""])
    days = [date.fromisoformat(x) for x in ROWS["day"]]
    return pandas.DataFrame(dict(columns, votes=[1.0, 20.0, np.nan, 4.0], day=days))


def as_spss(path):
    pytest.importorskip("pyreadstat").write_sav(frame(pytest.importorskip("pandas")), path)


def as_stata(path):
    pytest.importorskip("pyreadstat").write_dta(frame(pytest.importorskip("pandas")), path)


def as_r(path):
    pyreadr, pandas = pytest.importorskip("pyreadr"), pytest.importorskip("pandas")
    table = frame(pandas).replace({"name": {"": None}})
    pyreadr.write_rds(path, table.assign(day=ROWS["day"]))


TEXTS = {
    "csv": lambda: text_of().encode(),
    "tsv": lambda: text_of("\t").encode(),
    "tabs in txt": lambda: text_of("\t").encode(),
    "tabs in csv": lambda: text_of("\t").encode(),
    "bars": lambda: text_of("|").encode(),
    "semicolons": lambda: text_of(";").encode(),
    "decimal commas": lambda: text_of(";", ",").encode(),
    "thousands": lambda: text_of(";", ",").replace("1234,5", "1.234,5").encode(),
    "sep": lambda: text_of(";", ",", head="sep=;\r\n", end="\r\n").encode(),
    "mark of bytes": lambda: text_of().encode("utf-8-sig"),
    "utf-16": lambda: text_of().encode("utf-16"),
    "utf-16 big": lambda: b"\xfe\xff" + text_of("\t").encode("utf-16-be"),
    "utf-16 without a mark": lambda: text_of(";").encode("utf-16-le"),
    "gzip": lambda: gzip.compress(text_of().encode()),
    "last mark": lambda: text_of().replace("\n", ",\n").encode(),
}
NAMES = {
    "tsv": "t.tsv", "tabs in txt": "t.txt", "gzip": "t.csv.gz", "json columns": "t.json",
    "json of pandas": "t.json",
}  # fmt: skip
FORMS = [
    *TEXTS, "xlsx", "sav", "dta", "rds", "zip", "json", "json columns", "json of pandas", "jsonl",
    "parquet",
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_same_table(tmp_path, form):
    name = NAMES.get(form, "t.csv" if form in TEXTS else f"t.{form}")
    path = written(tmp_path / name, form)
    assert is_table(path)
    expected = dict(ROWS)
    if form == "last mark":
        expected["column 6"] = [None] * 4
    found = cells(read(path))
    assert found == expected
    assert all(type(x) is type(y) for x, y in zip(found["votes"], ROWS["votes"], strict=True))


@pytest.mark.parametrize(("form", "name"), [("xlsx", "t.csv"), ("parquet", "t.txt"), ("sav", "t")])
def test_the_first_bytes_decide_before_the_name(tmp_path, form, name):
    assert cells(read(written(tmp_path / name, form))) == ROWS


def test_windows_writes_cp1252_and_a_warning_says_so(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(text_of(";").encode("cp1252"))
    with pytest.warns(UserWarning, match=r"t.csv is not UTF-8 and is read as cp1252.*'Zoë'"):
        assert cells(read(path)) == ROWS
    assert cells(read(path, encoding="latin-1")) == ROWS
    with pytest.raises(ValueError, match=r"line 3: byte 0xeb is not utf-8"):
        read(path, encoding="utf-8")


@pytest.mark.parametrize(
    "content", ["имя;n\nАнна;1\nБорис;2\n".encode("cp1251"), "a,b\né,1\n".encode() + b"\xe9,2\n"]
)
def test_other_encodings_are_not_taken_for_it(tmp_path, content):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"t.csv, line \d: byte .* encoding"):
        read(path)


def test_r_writes_a_header_that_is_one_shorter(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('"x","g"\n"1",1.5,"a"\n"2",2,"b, c"\n', encoding="utf-8")
    assert cells(read(path)) == {"row": [1, 2], "x": [1.5, 2.0], "g": ["a", "b, c"]}
    path = tmp_path / "t.txt"
    path.write_text('"x" "g h"\n"Mazda RX4" 1.5 "a"\n"Fiat" NA "b c"\n', encoding="utf-8")
    assert is_table(path)
    assert cells(read(path))["row"] == ["Mazda RX4", "Fiat"]
    assert cells(read(path))["x"] == [1.5, None]
    path = tmp_path / "one.csv"  # a comma in a text, not a name of a row
    path.write_text("id,body\n1,red,blue\n2,green\n", encoding="utf-8")
    with pytest.raises(ValueError, match="line 2: 3 cells under a header of 2"):
        read(path)


def test_blanks_between_cells_without_quotes(tmp_path):
    path = tmp_path / "t.txt"
    rows = [f"{i % 2} {49 + i / 2:.1f} g{i % 3}" for i in range(8)]
    path.write_text("\n".join(["N yield group", *rows, ""]).replace(".", ","), encoding="utf-8")
    found = cells(read(path))
    assert found["yield"] == [49 + i / 2 for i in range(8)]
    assert found["group"][:3] == ["g0", "g1", "g2"]
    path.write_text("one line of words\n" * 9, encoding="utf-8")
    assert not is_table(path)


def test_a_header_with_two_marks_is_divided_as_its_rows(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("price, EUR;qty\n1,5;2\n30;4\n7,25;1\n", encoding="utf-8")
    assert cells(read(path)) == {"price, EUR": [1.5, 30.0, 7.25], "qty": [2, 4, 1]}


class TestMarksOfThousands:
    @pytest.mark.parametrize(
        ("text", "numbers"),
        [
            ('a,b\n"1,234",x\n567,y\n"12,345.5",z\n', [1234.0, 567.0, 12345.5]),
            ("a\tb\n1,234\tx\n567\ty\n12,345\tz\n", [1234, 567, 12345]),
            ("a\tb\n1,5\tx\n567\ty\n12,345\tz\n", [1.5, 567.0, 12.345]),
            ("a;b\n1.234.567;x\n567;y\n12.345;z\n", [1234567, 567, 12345]),
            ("a;b\n1,234;x\nNA;z\n0,5;y\n", [1.234, None, 0.5]),
            ("a;b\n1.234;0.5\n2.345;1\n", [1.234, 2.345]),
            ('a,b\n"1,23,4",x\n567,y\n"1,2",z\n', ["1,23,4", "567", "1,2"]),
        ],
    )
    def test_are_told_from_decimal_ones(self, tmp_path, text, numbers):
        path = tmp_path / "t.csv"
        path.write_text(text, encoding="utf-8")
        assert cells(read(path))["a"] == numbers

    def test_of_points_that_may_be_either_a_warning_says_how_they_are_read(self, tmp_path):
        path = tmp_path / "t.csv"
        path.write_text("a;b\n1.234;x\n567;y\n12.345;z\n", encoding="utf-8")
        with pytest.warns(UserWarning, match=r"'a' of .*t.csv: all points .*; 1.234 is read as"):
            assert cells(read(path))["a"] == [1.234, 567.0, 12.345]


class TestQuotes:
    def test_a_cell_over_many_rows(self, tmp_path):
        rows = [f"{i},word {i},{i}" for i in range(30)]
        rows[4], rows[24] = '4,"word 4,4', '24,word 24",24'
        path = tmp_path / "t.csv"
        path.write_text("\n".join(["id,text,n", *rows]), encoding="utf-8")
        with pytest.raises(ValueError, match=r"line 6: a cell that begins with a quote.*twice"):
            read(path)
        rows[24] = '24,"word 24,24'  # this one ends the text of the first: two cells are one
        path.write_text("\n".join(["id,text,n", *rows]), encoding="utf-8")
        with pytest.raises(ValueError, match=r"line 6: a cell that begins with a quote closes"):
            read(path)
        rows[4], rows[24] = '"4,word 4,4', '24",word 24,24'
        path.write_text("\n".join(["id,text,n", *rows]), encoding="utf-8")
        with pytest.raises(ValueError, match=r"line 6: a cell that begins with a quote goes on to"):
            read(path)

    @pytest.mark.parametrize("size", [1, 40])
    def test_a_lone_quote(self, tmp_path, size):
        rows = [f"{i},word" for i in range(size)]
        path = tmp_path / "t.csv"
        path.write_text("\n".join(["id,text", "a,b", '1,"x', *rows]), encoding="utf-8")
        with pytest.raises(ValueError, match=r"line 3: a cell that begins with a quote is never"):
            read(path)

    def test_texts_of_many_lines_are_texts(self, tmp_path):
        text = "Dear all,\nfirst, second, third\nas I said\n\nyours,\nme"
        path = tmp_path / "t.csv"
        path.write_text(f'id,text,n\n1,"{text}",2\n2,"so 5"" pipe",3\n', encoding="utf-8")
        assert cells(read(path))["text"] == [text, 'so 5" pipe']


class TestLabels:
    @pytest.fixture
    def survey(self, tmp_path):
        """Labels of all values, of the ends only, of an age, and a missing one that is declared."""
        pyreadstat, pandas = pytest.importorskip("pyreadstat"), pytest.importorskip("pandas")
        table = pandas.DataFrame({
            "v1": [3.0, 1.0, 2.0, 9.0, np.nan], "v2": [2.0, 1.0, 2.0, 8.0, 1.0],
            "v3": [0.0, 10.0, 4.0, 5.0, 6.0], "age": [20.0, 31.0, 45.0, 98.0, 71.0],
        })  # fmt: skip
        trust = {1: "none", 2: "some", 3: "much", 9: "refused"}
        labels = {
            "v1": trust, "v2": {1: "Left", 2: "Right", 8: "Don't know"},
            "v3": {0: "not at all", 10: "completely"}, "age": {98: "98 or older"},
        }  # fmt: skip
        pyreadstat.write_sav(
            table, tmp_path / "s.sav", variable_value_labels=labels,
            column_labels={"v1": "Trust in parliament"}, missing_ranges={"v1": [9]},
            variable_measure={"v1": "ordinal", "v2": "nominal"},
        )  # fmt: skip
        return tmp_path / "s.sav"

    def test_of_values_and_variables(self, survey):
        table = read(survey)
        assert cells(table)["v1"] == ["much", "none", "some", None, None]
        assert table.cells["v1"].order == ("none", "some", "much", "refused")
        assert table.cells["v1"].is_ordered
        assert not table.cells["v2"].is_ordered
        assert table.cells["v1"].title == "Trust in parliament"
        assert table[[0, 2]].cells["v1"].title == "Trust in parliament"
        assert cells(table)["v3"] == [0, 10, 4, 5, 6]
        assert cells(table)["age"] == [20, 31, 45, 98, 71]

    def test_that_mean_no_value(self, survey):
        table = read(survey, na_values=["Don't know"])
        assert cells(table)["v2"] == ["Right", "Left", "Right", None, "Left"]
        assert table.cells["v2"].order == ("Left", "Right")

    def test_an_ordered_outcome_has_the_order_of_its_values(self, survey):
        table = read(survey)
        rows = table[~table.missing("v1")].rows("v1 ~ age")
        assert [str(x) for x in rows.categories][:3] == ["none", "some", "much"]

    def test_of_stata_with_letters_for_missing(self, tmp_path):
        pyreadstat, pandas = pytest.importorskip("pyreadstat"), pytest.importorskip("pandas")
        table = pandas.DataFrame({"v": [1, 2, "a", 2]}, dtype=object)
        pyreadstat.write_dta(
            table, tmp_path / "s.dta", variable_value_labels={"v": {1: "no", 2: "yes"}},
            missing_user_values={"v": ["a"]},
        )  # fmt: skip
        assert cells(read(tmp_path / "s.dta"))["v"] == ["no", "yes", None, "yes"]

    def test_of_numbers_that_say_no_answer(self, tmp_path):
        pyreadstat, pandas = pytest.importorskip("pyreadstat"), pytest.importorskip("pandas")
        path = tmp_path / "s.dta"
        labels = {"age": {-2: "No answer", 98: "98 or older"}}
        table = pandas.DataFrame({"age": [20, 98, -2, 31, 44], "name": ["a", "", "b", "c", "d"]})
        pyreadstat.write_dta(table, path, variable_value_labels=labels)
        with pytest.warns(UserWarning, match=r"'age' of .*: -2 \('No answer'\) in its cells"):
            assert cells(read(path))["age"] == [20, 98, -2, 31, 44]
        table = read(path, na_values=["No answer"])
        assert cells(table) == {
            "age": [20, 98, None, 31, 44], "name": ["a", None, "b", "c", "d"]
        }  # fmt: skip

    def test_numbers_of_single_precision_have_the_digits_that_were_typed(self, tmp_path):
        pandas = pytest.importorskip("pandas")
        table = pandas.DataFrame({"x": np.array([5.1, 0.2, np.nan], dtype=np.float32)})
        table.to_stata(tmp_path / "s.dta", write_index=False)
        pytest.importorskip("pyreadstat")
        assert cells(read(tmp_path / "s.dta"))["x"] == [5.1, 0.2, None]

    def test_two_values_with_one_label_stay_two(self, tmp_path):
        pyreadstat, pandas = pytest.importorskip("pyreadstat"), pytest.importorskip("pandas")
        table = pandas.DataFrame({"v": [1.0, 2.0, 3.0]})
        labels = {"v": {1: "other", 2: "other", 3: "none"}}
        pyreadstat.write_sav(table, tmp_path / "s.sav", variable_value_labels=labels)
        assert cells(read(tmp_path / "s.sav"))["v"] == ["other (1)", "other (2)", "none"]


class TestSeveral:
    def test_sheets_are_named_and_chosen(self, tmp_path):
        openpyxl = pytest.importorskip("openpyxl")
        pytest.importorskip("python_calamine")
        book = openpyxl.Workbook()
        book.active.append(["x", 2000])
        book.active.append([1, 2.5])
        other = book.create_sheet("notes")
        other.append(["y"])
        other.append(["a"])
        path = tmp_path / "t.xlsx"
        book.save(path)
        expected = r"t.xlsx: it has 2 sheets, 'Sheet', 'notes': choose one with sheet='Sheet'"
        with pytest.raises(ValueError, match=expected):
            read(path)
        assert cells(read(path, sheet="Sheet")) == {"x": [1], "2000": [2.5]}
        with pytest.raises(ValueError, match=r"sheet must be one of its sheets, .*, got 'x'"):
            read(path, sheet="x")
        with pytest.raises(ValueError, match="sheet is for workbooks and archives"):
            read(written(tmp_path / "t.csv", "csv"), sheet="x")

    def test_tables_of_an_archive(self, tmp_path):
        path = tmp_path / "t.zip"
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("a.csv", "x\n1\n")
            file.writestr("b.csv", "x,y\n1\n")
        with pytest.raises(ValueError, match=r"it has 2 tables, 'a.csv', 'b.csv'"):
            read(path)
        assert cells(read(path, sheet="a.csv")) == {"x": [1]}
        with pytest.raises(ValueError, match=r"t.zip, b.csv, line 2: 1 cells under a header of 2"):
            read(path, sheet="b.csv")

    @pytest.mark.parametrize("asked", ["waves", "waves/*.csv"])
    def test_files_of_the_same_columns(self, tmp_path, asked):
        (tmp_path / "waves").mkdir()
        for year, text in (("2001", "id,y\n01,1\n"), ("2002", "y,id\nx,2\n2,3\n")):
            (tmp_path / "waves" / f"{year}.csv").write_text(text, encoding="utf-8")
        table = read(tmp_path / asked)
        assert cells(table) == {
            "id": ["01", "2", "3"], "y": ["1", "x", "2"], "file": ["2001.csv", *["2002.csv"] * 2],
        }  # fmt: skip
        (tmp_path / "waves" / "2003.csv").write_text("id,z\n1,1\n", encoding="utf-8")
        with pytest.raises(ValueError, match=r"'y' only in one of 2001.csv and 2003.csv"):
            read(tmp_path / asked)

    def test_files_of_several_forms(self, tmp_path):
        (tmp_path / "a.csv").write_text("id,y\n1,x\n2,y\n", encoding="utf-8")
        rows = '[{"id": 3, "y": "z"}, {"id": 4, "y": null}]'
        (tmp_path / "b.json").write_text(rows, encoding="utf-8")
        files = ["a.csv"] * 2 + ["b.json"] * 2
        assert cells(read(tmp_path)) == {
            "id": [1, 2, 3, 4], "y": ["x", "y", "z", None], "file": files,
        }  # fmt: skip

    def test_a_packed_corpus_is_no_table(self, tmp_path):
        (tmp_path / "corpus.json").write_text("{}", encoding="utf-8")
        with pytest.raises(ValueError, match=r"is a packed corpus and no table"):
            read(tmp_path)

    def test_nothing_there(self, tmp_path):
        for asked in ("*.csv", "."):
            with pytest.raises(FileNotFoundError, match="no table there"):
                tables_of(tmp_path / asked)
        with pytest.raises(FileNotFoundError, match=r"t.csv: no such file"):
            read(tmp_path / "t.csv")


@pytest.mark.parametrize("address", ["https://x.org/t.csv", "s3://bucket/t.csv"])
def test_addresses_are_refused(address):
    with pytest.raises(ValueError, match=r"is an address: download it first"):
        read(address)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("t.xlsx", b"PK\x03\x04", "t.xlsx: not a workbook that can be read"),
        ("t.xlsx", b"", "t.xlsx: not a workbook that can be read"),
        ("t.zip", b"PK\x03\x04", "t.zip: a damaged archive"),
        ("t.sav", b"$FL2xx", "t.sav: cannot be read"),
        ("t.dta", b"<stata_dta>", "t.dta: cannot be read"),
        ("t.sas7bdat", b"\0" * 100, "t.sas7bdat: cannot be read"),
        ("t.rds", b"X\n", "t.rds: cannot be read"),
        ("t.json", b'[{"a": 1},\n {"a": }]', "t.json, line 2: not JSON"),
        ("t.json", b"[1, 2]", "expected an array of objects"),
        ("t.json", b'{"a": [1, 2], "b": [1]}', "must have the same length"),
        ("t.log", b"some words\nand more\n", r"path must end in .csv, .tsv"),
    ],
)
def test_damaged_files_are_one_sentence(tmp_path, name, content, sentence):
    if name.endswith(".rds"):
        pytest.importorskip("pyreadr")
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError, match=sentence):
        read(path)


@pytest.mark.parametrize(
    ("suffix", "module", "extra"),
    [
        ("xlsx", "python-calamine", "files"),
        ("sav", "pyreadstat", "files"),
        ("rds", "pyreadr", "rdata"),
    ],
)
def test_what_is_missing_is_said(tmp_path, monkeypatch, suffix, module, extra):
    def missing(name):
        raise ImportError(name)

    path = written(tmp_path / f"t.{suffix}", suffix)
    monkeypatch.setattr(files_module, "import_module", missing)
    with pytest.raises(ImportError, match=rf"needs {module} .*pip install 'pgmult\[{extra}\]'"):
        read(path)


def test_texts_are_no_tables(tmp_path):
    path = tmp_path / "t.txt"
    for text in (
        "a line, and one\nmore, here\nthen, so\n",
        '"Well" she said\n"No" he said\n',
        "x\n",
    ):
        path.write_text(text, encoding="utf-8")
        assert form_of(path) == ""


class TestLinesThatAreNoRows:
    def test_above_the_header(self, tmp_path):
        path = tmp_path / "t.csv"
        path.write_text('"Data","Bank",\n\n"At","2021",\n\n"Name","Code","1960",\n"A","B","5",\n')
        with pytest.raises(ValueError, match=r"line 5: 4 cells .* if line 1 is not the header"):
            read(path)

    def test_below_the_table(self, tmp_path):
        path = tmp_path / "t.csv"
        path.write_text("vote,age\nL,20\nR,30\n\nSource: survey of 2020\n")
        with pytest.raises(ValueError, match=r"line 5: 1 cells .*lines that are no rows, such as"):
            read(path)


def test_headers_of_two_rows_and_notes_below_a_sheet(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    rows = [["Votes by town"], [], ["town", 2020, None, "day"], [None, "left", "right", None],
            *([f"T{i}", 100 + i, 200 - i, f"2020-01-0{i + 1}"] for i in range(9)),
            [], ["Source: the office"]]  # fmt: skip
    for row in rows:
        book.active.append(row)
    book.active.merge_cells("B3:C3")
    book.save(tmp_path / "t.xlsx")
    with pytest.warns(UserWarning, match="a note below the table is left out, 'Source: the office"):
        table = read(tmp_path / "t.xlsx")
    assert [*table] == ["town", "2020 left", "2020 right", "day"]
    assert table["2020 right"].tolist() == [200 - i for i in range(9)]
    assert table.lines.tolist() == [*range(5, 14)]
    assert table.place(2) == "in row 7"
    book.active.insert_rows(1, 2)  # rows that hold nothing at all
    book.active.insert_rows(11)
    book.save(tmp_path / "u.xlsx")
    with pytest.warns(UserWarning, match="a note below the table is left out"):
        assert read(tmp_path / "u.xlsx").lines.tolist() == [7, 8, 9, 10, *range(12, 17)]


def test_members_of_objects_in_json_are_columns(tmp_path):
    rows = [{"vote": "LR"[i % 2], "who": {"age": 20 + i, "of": {"sex": "f"}}} for i in range(3)]
    (tmp_path / "t.json").write_text(json.dumps(rows))
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    for name in ("t.json", "t.jsonl"):
        table = read(tmp_path / name)
        assert [*table] == ["vote", "who.age", "who.of.sex"]
        assert table["who.age"].tolist() == [20, 21, 22]


OF_R = base64.b64decode(
    b"H4sIAAAAAAAAA4vgYmBgYGZgYWJiYGYFMhlYQ0PcdC2AYsJADhOQ5gPRjtfnn+4BMhyvL5B/A1IG1AEkGBlYGDhBmpJz"
    b"EouLgQwBsCaIIHuAf7BnRHIJlMsG5pag6yypys9LheqECfK6lhblF6TqO6UW5WTmAQX+wdxh/wFsOYODEgMUoJjGlpOY"
    b"lJoDdAgTMapZ8xJzU9FdzeKTmgZzMntQalppcWoKxAUoejnzEuPLEnNKwfpBljGiWsL4H2ouC1SDcEZiWWpePNiBOakp"
    b"8cUFwACDSPGhSkFFucqSS4qK40EkzHcp+aVJOakI17D8R3M8UyLM6Sxl+SWp6G4uyi/Xg/mZF6S8AUj8////H5qbYRq4"
    b"UhJLEvXSioBaQJYCAK5w/c4sAgAA"
)
"""A data frame: times of Berlin, and a labelled column of haven with a declared missing value."""
TABLE_OF_R = base64.b64decode(
    b"H4sIAAAAAAAAA4vgYmBgYGZgYWJiYGYFMhlYQ0PcdC2AYrxADhMUMzIAVYBpFgZOkIaUzFwgxQuRAilBkeYASucl5qYW"
    b"A6WEoWoEwOog8oyJMEYSmk5WqDawcpggCPxDV5ick1iMrpC1JDEpJxWkGgBM4Z8O1wAAAA=="
)
"""A table of counts, which is no data frame."""


def test_what_is_lost_of_data_frames_of_r_is_said(tmp_path):
    pytest.importorskip("pyreadr")
    path = tmp_path / "t.rds"
    path.write_bytes(OF_R)
    with (
        pytest.warns(UserWarning, match=r"'at' are those of clocks in UTC"),
        pytest.warns(UserWarning, match="declared missing values pyreadr does not read"),
    ):
        assert cells(read(path)) == {"at": ["2020-03-28", "2020-03-29"], "vote": [1, 9]}
    with pytest.warns(UserWarning, match="declared missing"):
        at = read(path, time_zone="Europe/Berlin")["at"]
    assert at.astype("datetime64[h]").astype(str).tolist() == ["2020-03-28T12", "2020-03-29T13"]
    with pytest.raises(ValueError, match="time_zone must be the name of a zone"):
        read(path, time_zone="Mars")
    path.write_bytes(TABLE_OF_R)
    with pytest.raises(ValueError, match="holds no data frame"):
        read(path)

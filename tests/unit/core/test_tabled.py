"""Tables that print themselves and hand their numbers on."""

import csv

import numpy as np
import pytest

from pgmult.core.answers import Answer
from pgmult.core.tabled import Column, Table, number, with_interval, write_csv


def table(faint=None):
    values = np.array([0.5, np.nan]), np.array([0.4, np.nan]), np.array([0.6, np.nan])
    columns = [Column("name", ["Ada", "<b>"], "name"), Column("only", [1, 2])]
    return Table("What.", [*columns, *with_interval("x", values, "x", 0.9, number(1))], faint)


def test_numbers_and_printed_cells_are_columns_of_one_table():
    assert list(table().columns) == ["name", "only", "x", "x_lower", "x_upper"]
    assert table().head == ["name", "x", "90 %"]
    assert str(table(faint=[True, False])).splitlines() == [
        "What.", "", "name     x  90 %", "(Ada)  0.5  [0.4, 0.6]", "<b>",
    ]  # fmt: skip
    assert "<td>&lt;b&gt;</td>" in table()._repr_html_()
    assert table(faint=[True, False]).html().count('class="faint"') == 1
    assert "<th" in Table("None.", [Column("x", [], "x")])._repr_html_()


def test_a_long_table_is_cut_in_a_notebook():
    long = Table("", [Column("x", range(103), "x")])
    shown = long._repr_html_()
    assert shown.count("<tr>") == 101
    assert shown.endswith("<p>3 more rows</p>")


def test_results_show_and_hand_on_their_table():
    pytest.importorskip("pandas")

    class Found(Answer):
        def table(self):
            return Table("What.", [Column("x", [1.5], "x, %", ["150"])], faint=[True])

    assert Found().to_dataframe()["x"].tolist() == [1.5]
    assert repr(Found()) == "What.\n\n x, %\n(150)"
    assert '<td class="number">(150)</td>' in Found()._repr_html_()


def test_cells_that_a_spreadsheet_would_evaluate_are_quoted(tmp_path):
    hostile = ["=1+1", "+x", "-x", "@x", "\tx", "\rx", "-5", "+1e3", "plain", None]
    path = write_csv(tmp_path / "x.csv", {"=head": hostile, "y": [0.1 + 0.2, np.nan] + [1] * 8})
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert [row[0] for row in rows] == [
        "'=head", "'=1+1", "'+x", "'-x", "'@x", "'\tx", "'\rx", "-5", "+1e3", "plain", "",
    ]  # fmt: skip
    assert [row[1] for row in rows[1:4]] == ["0.3", "", "1"]
    close = write_csv(
        tmp_path / "close.csv", {"x": [1.00000001, 1.00000002], "t": [1.6e9, 1.6e9 + 1]}
    )
    assert close.read_text(encoding="utf-8").splitlines()[1:] == [
        "1.00000001,1600000000", "1.00000002,1600000001",
    ]  # fmt: skip
    saved = table().save(tmp_path / "table.csv")
    assert saved.read_text(encoding="utf-8").splitlines()[1] == "Ada,1,0.5,0.4,0.6"


def test_numbers_that_differ_by_rounding_have_six_digits(tmp_path):
    """Scores of two categories are the same number, computed twice."""
    path = write_csv(tmp_path / "x.csv", {"nats": [0.05615285088352566, 0.056152850883525694]})
    assert path.read_text().split() == ["nats", "0.0561529", "0.0561529"]


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        ({"x": [0.123456], "mean": [12.345678], "sd": [0.3456]}, "0.123456,12.346,0.346"),
        ({"mean": [0.5012345], "q0.05": [0.4123456], "q0.95": [0.6123456]}, "0.5012,0.4123,0.6123"),
        (
            {"mean": [0.123456], "lower": [0.123456], "upper": [0.123456]},
            "0.123456," * 2 + "0.123456",
        ),
        ({"mean": [0.123456], "sd": [0.0]}, "0.123456,0"),
        ({"mean": ["a"], "sd": [0.0123456]}, "a,0.0123"),
    ],
)
def test_estimates_have_the_digits_that_their_spread_supports(tmp_path, columns, line):
    assert write_csv(tmp_path / "x.csv", columns).read_text().splitlines()[1] == line


def test_computed_numbers_have_six_digits_even_if_two_agree_in_these(tmp_path):
    shares = np.array([0.123456712345678, 0.123456723456789, 1.0 / 3.0])
    path = write_csv(tmp_path / "shares.csv", {"share": shares})
    assert path.read_text().split() == ["share", "0.123457", "0.123457", "0.333333"]

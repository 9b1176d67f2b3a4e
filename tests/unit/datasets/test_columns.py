"""Columns of tables: what a cell is follows from the cells alone."""

import gzip

import numpy as np
import pytest

from pgmult.datasets import read


def written(tmp_path, text, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


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
    path = written(tmp_path, "x,y\n" + "".join(f'"{cell}",a\n' for cell in cells))
    column = read(path)["x"]
    assert column.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(column, np.array(values, dtype=dtype))


def test_other_files(tmp_path):
    tabs = written(tmp_path, "a\tb\n1\tx\n", "t.tsv.gz")
    assert {k: v.tolist() for k, v in read(tabs).columns.items()} == {"a": [1], "b": ["x"]}
    lines = written(
        tmp_path, '{"a": 1, "b": "2024-01-01"}\n{"a": 2.5, "b": "2024-01-02"}\n', "t.jsonl"
    )
    found = read(lines)
    assert found["a"].tolist() == [1.0, 2.5]
    assert found["b"].dtype.kind == "M"


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ("a,b\n1\n", "t.csv", r"line 2: 1 cells under a header of 2"),
        ("a,a\n1,2\n", "t.csv", "'a' more than once"),
        ("a,b\n", "t.csv", "the table has no rows"),
        ("a,b;c\n1,2\n", "t.csv", "stand in the header"),
        ("a\n1\n", "t.txt", "path must end in .csv"),
        ("[1]\n", "t.jsonl", "line 1: expected an object, got list"),
        ("", "t.csv", "the file is empty"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path, text, name, said):
    with pytest.raises(ValueError, match=said):
        read(written(tmp_path, text, name))

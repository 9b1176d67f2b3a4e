"""Values that a user may hand to any argument by mistake: each is made afresh where it is used."""

import datetime
import decimal
import fractions
import math
from pathlib import Path

import numpy as np
import scipy.sparse


def _read_only():
    array = np.ones((3, 2))
    array.flags.writeable = False
    return array


def _in_itself():
    value = []
    value.append(value)
    return value


def _deep():
    value = [1]
    for _ in range(300):
        value = [value]
    return value


def _frame(**options):
    import pandas

    return pandas.DataFrame({"beer": [1, 2, 0], "wine": [0, 1, 3]}, **options)


def _series(values, **options):
    import pandas

    return pandas.Series(values, **options)


VALUES = {
    "None": lambda: None,
    "True": lambda: True,
    "False": lambda: False,
    "numpy True": lambda: np.True_,
    "0": lambda: 0,
    "-1": lambda: -1,
    "1": lambda: 1,
    "3": lambda: 3,
    "2**31": lambda: 2**31,
    "2**64": lambda: 2**64,
    "10**30": lambda: 10**30,
    "0.5": lambda: 0.5,
    "-0.5": lambda: -0.5,
    "1.5": lambda: 1.5,
    "nan": lambda: math.nan,
    "inf": lambda: math.inf,
    "-inf": lambda: -math.inf,
    "1e300": lambda: 1e300,
    "-1e300": lambda: -1e300,
    "5e-324": lambda: 5e-324,
    "1j": lambda: 1j,
    "numpy int8 -3": lambda: np.int8(-3),
    "numpy float32": lambda: np.float32(0.25),
    "numpy nan": lambda: np.float64("nan"),
    "Fraction": lambda: fractions.Fraction(1, 3),
    "Decimal": lambda: decimal.Decimal("0.1"),
    "date": lambda: datetime.date(2020, 2, 29),
    "empty string": lambda: "",
    "a string": lambda: "nonsense",
    "a number as string": lambda: "3",
    "a line break in a string": lambda: "a\u2028b\x85c\nd",
    "a null in a string": lambda: "a\x00b",
    "half a surrogate": lambda: "\ud800",
    "bytes": lambda: b"beer",
    "bytearray": lambda: bytearray(b"wine"),
    "a path": lambda: Path("no") / "such" / "place",
    "empty list": list,
    "empty tuple": lambda: (),
    "empty dict": dict,
    "a set": lambda: {1, 2},
    "a dict": lambda: {"a": 1, "b": 2},
    "a dict of lists": lambda: {"x": [0.0, 1.0], "y": [1, 2]},
    "list of None": lambda: [None, None],
    "list of nan": lambda: [math.nan, 1.0],
    "list of ints": lambda: [1, 2, 3],
    "list of negative ints": lambda: [-1, -2, -3],
    "list of huge ints": lambda: [2**70, 1],
    "list of strings": lambda: ["a", "b"],
    "list of lists of strings": lambda: [["a", "b"], ["b"]],
    "ragged": lambda: [[1, 2], [3]],
    "list with an empty list": lambda: [[]],
    "list in itself": _in_itself,
    "300 lists deep": _deep,
    "a range": lambda: range(3),
    "a generator": lambda: (i for i in range(3)),
    "a function": lambda: len,
    "a lambda": lambda: lambda *arguments, **options: None,
    "an object": lambda: object(),
    "a class": lambda: int,
    "a module": lambda: math,
    "Ellipsis": lambda: ...,
    "0-d array": lambda: np.array(3.0),
    "0-d nan": lambda: np.array(math.nan),
    "empty array": lambda: np.array([]),
    "no rows": lambda: np.zeros((0, 3)),
    "no columns": lambda: np.zeros((3, 0)),
    "four axes": lambda: np.zeros((2, 1, 2, 1)),
    "vector": lambda: np.array([0.2, 0.3, 0.5]),
    "vector of nan": lambda: np.full(3, math.nan),
    "matrix of -1": lambda: np.full((3, 2), -1),
    "matrix of inf": lambda: np.full((3, 3), math.inf),
    "matrix of 0": lambda: np.zeros((3, 3)),
    "matrix of 1e300": lambda: np.full((3, 3), 1e300),
    "object array": lambda: np.array([1, "a", None], dtype=object),
    "object array of ints": lambda: np.array([[1, 2], [3, 4]], dtype=object),
    "string array": lambda: np.array(["a", "b", "a"]),
    "bytes array": lambda: np.array([b"a", b"b"]),
    "complex array": lambda: np.array([1j, 2.0]),
    "datetime array": lambda: np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"),
    "structured array": lambda: np.zeros(2, dtype=[("a", float), ("b", int)]),
    "bool array": lambda: np.array([[True, False], [False, True]]),
    "int8 array": lambda: np.array([[1, 2], [3, 4]], dtype=np.int8),
    "uint64 beyond int64": lambda: np.array([2**63 + 1, 1], dtype=np.uint64),
    "float32 array": lambda: np.ones((3, 2), dtype=np.float32),
    "float16 array": lambda: np.ones((3, 2), dtype=np.float16),
    "big-endian array": lambda: np.ones((3, 2), dtype=">f8"),
    "read-only array": _read_only,
    "every second entry": lambda: np.arange(12.0).reshape(3, 4)[:, ::2],
    "column order": lambda: np.asfortranarray(np.arange(6.0).reshape(3, 2)),
    "masked array": lambda: np.ma.masked_array([1.0, 2.0, 3.0], mask=[0, 1, 0]),
    "sparse": lambda: scipy.sparse.csr_array(np.array([[1, 0, 2], [0, 3, 0]])),
    "sparse, negative": lambda: scipy.sparse.csr_array(np.array([[-1.0, 0.0], [0.0, 2.0]])),
    "sparse, nan": lambda: scipy.sparse.coo_array(([math.nan], ([0], [1])), shape=(2, 2)),
    "data frame": _frame,
    "labelled data frame": lambda: _frame(index=["x", "y", "z"]),
    "series": lambda: _series([1, 2, 3]),
    "series of strings": lambda: _series(["a", "b", "a"]),
    "categorical": lambda: _series(["a", "b", "a"], dtype="category"),
    "nullable integers": lambda: _series([9007199254740993, None, 1], dtype="Int64"),
    "nullable strings": lambda: _series(["a", None, "b"], dtype="string"),
    "times of a zone": lambda: _series(["2024-03-01T00:30+02:00"] * 3, dtype="datetime64[ns, UTC]"),
    "times of two zones": lambda: [
        datetime.datetime(2024, 3, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=hours)))
        for hours in (1, 2, 1)
    ],
    "ids of 19 digits": lambda: [1234567890123456789, 1234567890123456788, 2**63 + 1],
    "ids of 19 digits in text": lambda: ["1234567890123456789", "1E5", "100000"],
    "hostile text": lambda: ["a<script>alert(1)</script>", "=1+1", "~ {raise}"],
    "a hostile formula": lambda: "y ~ __import__('os').system('true') + {raise}",
    "a generator of numpy": lambda: np.random.default_rng(0),
    "a legacy generator": lambda: np.random.RandomState(0),
}

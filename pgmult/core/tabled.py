"""Tables of results: each column declared once, with its numbers and how they are printed.

A `Table` prints itself, is a table in a notebook, and hands its numbers on as a data frame or a CSV
file.

>>> shares = Table("Shares.", [
...     Column("name", ["Ada", "Ben"], "name"),
...     *with_interval("share", ([0.31, 0.3], [0.24, 0.2], [0.37, 0.4]), "share, %", 0.9, percent),
... ])
>>> print(shares)
Shares.
<BLANKLINE>
name  share, %  90 %
Ada       31.0  [24.0, 37.0]
Ben       30.0  [20.0, 40.0]
>>> list(shares.columns)
['name', 'share', 'share_lower', 'share_upper']
"""

import csv
import io
import math
import os
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from pgmult.core.arguments import as_path
from pgmult.core.lazy import optional
from pgmult.core.markup import Markup, joined, tag
from pgmult.core.tables import date_text
from pgmult.core.typing import AnyArray, Array

if TYPE_CHECKING:
    from pandas import DataFrame

WIDTH = 100
_MOST_ROWS = 100  # that are shown of themselves
_NARROW, _WIDE = 0.02, 3.0  # intervals whose ends have three digits behind the point
_SDS = 3.3  # standard deviations of an interval, about
_ESTIMATES = re.compile(r"mean|median|sd|lower|upper|q0\.\d+")
_NUMBER = re.compile(r"[-+<>]?[\d.,]*")  # stands to the right; words and intervals to the left
_WORDS = re.compile("[A-Za-z]")
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")  # what spreadsheets evaluate

Form = Callable[[Any], str]


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A column of a table.

    Attributes
    ----------
    name : str
        In data frames; empty for one that is only printed.
    values : sequence
    head : str
        Above the printed column; empty for one that is not printed.
    form : callable or sequence of str
        How a value is printed, or the printed cells themselves.
    """

    name: str
    values: Sequence[Any] | AnyArray
    head: str = ""
    form: Form | Sequence[str] = str

    @property
    def cells(self) -> list[str]:
        """The printed values."""
        return list(map(self.form, self.values)) if callable(self.form) else list(self.form)


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Rows of numbers with what they are in words; print it for a text of aligned columns.

    Attributes
    ----------
    caption : str
        What the numbers are.
    parts : sequence of Column
    faint : sequence of bool, or None
        Which rows rest on too little to be read: they are printed in parentheses.
    """

    caption: str
    parts: Sequence[Column]
    faint: Sequence[bool] | None = None

    @property
    def columns(self) -> dict[str, Sequence[Any] | AnyArray]:
        """The numbers, by name."""
        return {column.name: column.values for column in self.parts if column.name}

    @property
    def head(self) -> list[str]:
        """What stands above the printed columns."""
        return [column.head for column in self.parts if column.head]

    @property
    def rows(self) -> list[list[str]]:
        """The printed cells, row by row."""
        rows = [list(r) for r in zip(*(p.cells for p in self.parts if p.head), strict=True)]
        for row, faint in zip(rows, self.faint or [False] * len(rows), strict=True):
            if faint:
                row[0] = f"({row[0]})"
        return rows

    def __len__(self) -> int:
        return len(self.parts[0].values)

    def to_dataframe(self) -> "DataFrame":
        """The numbers as a pandas data frame.

        Raises
        ------
        ImportError
            If pandas is missing.
        """
        pandas = optional("pandas", "data frames need pandas", "tables")
        columns = {name: np.asarray(column) for name, column in self.columns.items()}
        frame: DataFrame = pandas.DataFrame(columns)
        return frame

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the numbers as a CSV file: see `write_csv`."""
        return write_csv(as_path(path), self.columns)

    def __repr__(self) -> str:
        return self.text(most=_MOST_ROWS)

    def text(self, width: int = WIDTH, most: int | None = None) -> str:
        """The caption, in lines of at most `width`, and all rows, or at most so many."""
        rows = self.rows[:most]
        more = [f"({len(self) - len(rows):,} more rows)"] if len(rows) < len(self) else []
        right = [all(map(_NUMBER.fullmatch, x.cells)) for x in self.parts if x.head]
        above = [*wrapped(self.caption, width), ""] if self.caption else []
        return "\n".join([*above, *aligned([self.head, *rows], right), *more])

    def html(self, most: int | None = None) -> Markup:
        """The printed table as HTML, without its caption: all rows, or at most so many."""
        head = tag("tr", (tag("th", name, scope="col") for name in self.head))
        kinds = ["faint" if grey else None for grey in self.faint or [False] * len(self)]
        body = []
        for row, kind in zip(self.rows[:most], kinds[:most], strict=True):  # words may be broken
            cells = (tag("td", x, class_=None if _WORDS.search(x) else "number") for x in row)
            body.append(tag("tr", cells, class_=kind))
        return tag("table", tag("thead", head), tag("tbody", body))

    def _repr_html_(self) -> str:
        above = [tag("p", self.caption)] if self.caption else []
        more = len(self) - _MOST_ROWS
        below = tag("p", f"{more:,} more rows") if more > 0 else None
        return joined(above, self.html(_MOST_ROWS), below)


def aligned(rows: Sequence[Sequence[str]], right: Sequence[bool] | None = None) -> list[str]:
    """Lines of rows of cells, below each other; those of some columns stand to the right."""
    columns = []
    for column, to_right in zip(zip(*rows, strict=True), right or repeat(False), strict=False):
        width = max(map(len, column))
        columns.append([cell.rjust(width) if to_right else cell.ljust(width) for cell in column])
    return ["  ".join(row).rstrip() for row in zip(*columns, strict=True)]


def with_interval(
    name: str, values: Iterable[Any], head: str, probability: float, form: Form,
    ends: tuple[str, str] | None = None,
) -> list[Column]:  # fmt: skip
    """Columns of a mean and an interval: three in data frames, two in print.

    Parameters
    ----------
    name : str
        Of the mean in data frames.
    values : three sequences of numbers
        Means, lower and upper ends.
    head : str
        Above the printed mean.
    probability : float
        Of the interval.
    form : callable
        How a number is printed.
    ends : pair of str, optional
        Names of the ends; by default `name` with ``_lower`` and ``_upper``.
    """
    mean, lower, upper = values
    low, high = ends or (f"{name}_lower", f"{name}_upper")
    intervals = [interval(a, b, form) for a, b in zip(lower, upper, strict=True)]
    printed = Column(high, upper, f"{100.0 * probability:g} %", intervals)
    return [Column(name, mean, head, form), Column(low, lower), printed]


def write_csv(path: Path, columns: Mapping[str, Sequence[object] | Array]) -> Path:
    """Write columns as a CSV file, with empty cells for what is missing.

    Whole numbers are written out; others have six digits, or as many as distinguish the cells of a
    column that has no number with more than 15, as labels and places have and computed numbers have
    not. Estimates beside a standard deviation or interval are rounded to a hundredth of it.

    Text that begins with ``=``, ``+``, ``-``, ``@``, a tab or a carriage return, and is no number,
    gets a leading apostrophe: programs for spreadsheets would evaluate it.
    """
    with path.open("w", encoding="utf-8", newline="") as file:
        print_csv(file, columns)
    return path


def print_csv(file: TextIO, columns: Mapping[str, Sequence[object] | Array]) -> None:
    """Write columns as CSV to a file that is open, such as the terminal: see `write_csv`."""
    head = map(_csv_cell, columns)
    for row in (head, *zip(*map(_csv_column, _supported(columns).values()), strict=True)):
        line = io.StringIO(newline="")
        csv.writer(line).writerow(row)  # its own end of line: cells with a return are quoted
        file.write(line.getvalue().removesuffix("\r\n") + "\n")


def _supported(columns: Mapping[str, Any]) -> Mapping[str, Any]:
    """Round estimates to the digits that their standard deviation or interval supports."""
    estimates = {x: np.asarray(of) for x, of in columns.items() if _ESTIMATES.fullmatch(x)}
    estimates = {x: values for x, values in estimates.items() if values.dtype.kind == "f"}
    ends = [of for x, of in estimates.items() if x not in ("mean", "median")]
    if not ends:
        return columns
    sd = estimates.get("sd", (ends[-1] - ends[0]) / _SDS)
    unit = 10.0 ** np.floor(np.log10(np.where(sd > 0.0, sd, 1.0)) - 2.0)
    rounded = {x: np.where(sd > 0.0, np.round(of / unit) * unit, of) for x, of in estimates.items()}
    return {**columns, **rounded}


def _csv_column(column: Sequence[object] | Array) -> list[object]:
    """Cells of a column."""
    numbers = [float(x) for x in column if isinstance(x, float | np.floating) and x == x]
    floats = {float(f"{x:.13g}") for x in numbers}  # numbers that differ by rounding are one
    is_label = all(float(f"{x:.15g}") == x for x in numbers)
    distinct = (n for n in range(6, 13) if len({f"{x:.{n}g}" for x in floats}) == len(floats))
    digits = next(distinct, 13) if is_label else 6
    return [_csv_cell(value, digits) for value in column]


def _csv_cell(value: object, digits: int = 6) -> Any:
    if isinstance(value, float | np.floating):
        number = float(value)
        if math.isnan(number):
            return ""
        if number.is_integer() and abs(number) < 2**53:
            return str(int(number))
        return f"{number:.{digits}g}"
    if isinstance(value, np.datetime64):
        return date_text(value)
    if isinstance(value, str) and value.startswith(_FORMULA_STARTS):
        with suppress(ValueError):
            if math.isfinite(float(value)):
                return value
        return f"'{value}"
    return "" if value is None else value


def wrapped(text: str, width: int) -> list[str]:
    """Lines of a text, none of which begins with a percent sign."""
    lines = textwrap.wrap(text.replace(" %", "\u00a0%"), width)
    return [line.replace("\u00a0", " ") for line in lines]


def wrapped_pieces(start: str, pieces: Sequence[str], width: int) -> list[str]:
    """Lines of pieces, all with the width of `start` before them."""
    lines = [start]
    for piece in pieces:
        if len(lines[-1]) + 1 + len(piece) > width and len(lines[-1]) > len(start):
            lines.append(" " * len(start))
        lines[-1] += f" {piece}"
    return lines


def number(digits: int) -> Form:
    """Prints numbers with so many digits behind the point, and nothing for nan."""
    return lambda x: "" if np.isnan(x) else unsigned(f"{x:.{digits}f}")


def digits_of(width: float) -> int:
    """Digits behind the point that an interval supports: three, but for wide or narrow ones.

    >>> [digits_of(width) for width in (600.0, 30.0, 5.0, 0.1, 0.003)]
    [0, 1, 1, 3, 4]
    """
    if not 0.0 < width < math.inf or _NARROW <= width <= _WIDE:
        return 3
    return min(max((width > _WIDE) - math.floor(math.log10(width / _SDS)), 0), 8)


def unsigned(text: str) -> str:
    """A number as it is printed, without a sign where all its digits are 0."""
    return text.lstrip("+-") if not text.strip("+-0.") else text


def percent(share: float) -> str:
    """A share in percent, such as 4.1."""
    return "" if np.isnan(share) else f"{100.0 * share:.1f}"


def interval(lower: float, upper: float, form: Form = percent) -> str:
    """Such as [3.2, 5.1]."""
    return "" if np.isnan(lower) else f"[{form(lower)}, {form(upper)}]"


def probability_text(probability: float) -> str:
    """Such as 0.97; never a 0 or 1 that draws cannot show."""
    if np.isnan(probability):
        return ""
    return "<.01" if probability < 0.01 else ">.99" if probability > 0.99 else f"{probability:.2f}"

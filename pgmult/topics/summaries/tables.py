"""Tables that print themselves, and hand their numbers on."""

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pgmult.core.notebook import columns_html
from pgmult.core.tables import as_frame

__all__ = [
    "WIDTH",
    "SummaryTable",
    "Tabled",
    "interval",
    "percent",
    "points",
    "probability_text",
    "wrapped",
]

WIDTH = 100
_GAP = "  "
_MOST_ROWS = 100  # in a notebook


@dataclass(frozen=True, slots=True, eq=False)
class SummaryTable:
    """Rows of numbers with what they are in words; printed, a text of aligned columns.

    Attributes
    ----------
    caption : str
        What the numbers are.
    columns : mapping from name to column
        The numbers themselves, which `to_dataframe` hands on.
    shown : mapping from heading to list of str
        The same as they are printed.
    faint : list of bool, or None
        Which rows rest on too little to be read: they are printed in parentheses.
    """

    caption: str
    columns: Mapping[str, Sequence[Any]]
    shown: Mapping[str, Sequence[str]]
    faint: Sequence[bool] | None = None

    def to_dataframe(self) -> Any:
        """The numbers as a pandas data frame.

        Raises
        ------
        ImportError
            If pandas is missing.
        """
        return as_frame({name: np.asarray(column) for name, column in self.columns.items()})

    def __len__(self) -> int:
        return len(next(iter(self.shown.values())))

    def rows(self) -> list[list[str]]:
        """The printed cells, row by row."""
        rows = [list(row) for row in zip(*self.shown.values(), strict=True)]
        if self.faint is not None:
            for row, faint in zip(rows, self.faint, strict=True):
                if faint:
                    row[0] = f"({row[0]})"
        return rows

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        columns = zip(*self.rows(), strict=True) if len(self) else [()] * len(self.shown)
        shown = dict(zip(self.shown, columns, strict=True))
        return columns_html(shown, self.caption, most=_MOST_ROWS)

    def text(self, width: int = WIDTH) -> str:
        """The caption, in lines of at most `width`, and the table."""
        rows = [list(self.shown), *self.rows()]
        widths = [max(len(row[i]) for row in rows) for i in range(len(self.shown))]
        right = [_is_numeric(column) for column in self.shown.values()]
        lines = [
            _GAP.join(
                cell.rjust(width) if numeric else cell.ljust(width)
                for cell, width, numeric in zip(row, widths, right, strict=True)
            ).rstrip()
            for row in rows
        ]
        return "\n".join([*wrapped(self.caption, width), "", *lines])


class Tabled:
    """A result that shows itself, and hands its numbers on, as the table that it makes."""

    __slots__ = ()

    def table(self) -> SummaryTable:
        """What it found, as a table."""
        raise NotImplementedError

    def to_dataframe(self) -> Any:
        """The numbers of the table as a pandas data frame."""
        return self.table().to_dataframe()

    def __repr__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def wrapped(text: str, width: int) -> list[str]:
    """Lines of a text, none of which begins with a percent sign."""
    lines = textwrap.wrap(text.replace(" %", "\u00a0%"), width)
    return [line.replace("\u00a0", " ") for line in lines]


def _is_numeric(cells: Sequence[str]) -> bool:
    """Numbers stand to the right; words and intervals to the left."""
    return all(re.fullmatch(r"[-+<>]?[\d.,]*", cell) for cell in cells)


def percent(share: float) -> str:
    """A share in percent, such as 4.1."""
    return "" if np.isnan(share) else f"{100.0 * share:.1f}"


def points(difference: float) -> str:
    """A difference of shares in percentage points, such as +5.1."""
    return "" if np.isnan(difference) else f"{100.0 * difference:+.1f}"


def interval(lower: float, upper: float, number: Any = percent) -> str:
    """Such as [3.2, 5.1]."""
    return "" if np.isnan(lower) else f"[{number(lower)}, {number(upper)}]"


def probability_text(probability: float) -> str:
    """Such as 0.97; never a 0 or 1 that draws cannot show."""
    if np.isnan(probability):
        return ""
    return "<.01" if probability < 0.01 else ">.99" if probability > 0.99 else f"{probability:.2f}"

"""Results as tables in the output of a notebook's cell.

>>> columns_html({"name": ["Ada"], "share": [0.25]})[:42]
'<table><thead><tr><th scope="col">name</th'
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pgmult.core.markup import Markup, joined, tag
from pgmult.core.tables import date_text

__all__ = ["columns_html", "lines_html"]

_MOST_ROWS = 20


def columns_html(
    columns: Mapping[str, Any],
    title: str = "",
    notes: Sequence[str] = (),
    *,
    most: int | None = _MOST_ROWS,
) -> Markup:
    """The first rows of a table, and how many more there are.

    Parameters
    ----------
    columns : mapping from name to values, all of one length
        Numbers are shown with four digits.
    title : str
        A line above it.
    notes : sequence of str
        Lines below it.
    most : int or None
        Rows that are shown; None for all.
    """
    size = len(next(iter(columns.values())))
    shown = [list(column[:most]) for column in columns.values()]
    head = (tag("th", str(name), scope="col") for name in columns)
    rows = (tag("tr", map(_cell, row)) for row in zip(*shown, strict=True))
    below = [f"{size - most:,} more rows"] if most is not None and size > most else []
    table = tag("table", tag("thead", tag("tr", head)), tag("tbody", rows))
    return joined(lines_html([title] if title else []), table, lines_html([*below, *notes]))


def lines_html(lines: Sequence[str]) -> Markup:
    """Each a paragraph."""
    return joined(tag("p", line) for line in lines)


def _cell(value: Any) -> Markup:
    if isinstance(value, float | np.floating):
        told = "-" if np.isnan(value) else f"{value:.4g}"
        return tag("td", told, style="text-align:right")
    return tag("td", date_text(value) if isinstance(value, np.datetime64) else str(value))

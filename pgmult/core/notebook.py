"""Results as tables in the output of a notebook's cell.

>>> columns_html({"name": ["Ada"], "share": [0.25]})[:42]
'<table><thead><tr><th scope="col">name</th'
"""

import html
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pgmult.core.tables import date_text

__all__ = ["columns_html", "lines_html"]

_MOST_ROWS = 20


def columns_html(
    columns: Mapping[str, Any],
    title: str = "",
    notes: Sequence[str] = (),
    *,
    most: int | None = _MOST_ROWS,
) -> str:
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
    head = "".join(f'<th scope="col">{html.escape(str(name))}</th>' for name in columns)
    shown = [list(column[:most]) for column in columns.values()]
    rows = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in zip(*shown, strict=True))
    below = [f"{size - most:,} more rows"] if most is not None and size > most else []
    top, lines = lines_html([title] if title else []), lines_html([*below, *notes])
    return f"{top}<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{lines}"


def lines_html(lines: Sequence[str]) -> str:
    """Each a paragraph."""
    return "".join(f"<p>{html.escape(line)}</p>" for line in lines)


def _cell(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return f'<td style="text-align:right">{"-" if np.isnan(value) else f"{value:.4g}"}</td>'
    text = date_text(value) if isinstance(value, np.datetime64) else str(value)
    return f"<td>{html.escape(text)}</td>"

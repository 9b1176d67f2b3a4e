"""Sheets of workbooks (Excel, LibreOffice), read by python-calamine."""

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pgmult.datasets.files import library, the_one


def workbook_rows(path: Path, sheet: str | None) -> Iterator[list[str]]:
    """Give the header of a sheet and its rows, each cell as a text file would have it.

    A title and empty rows above the header are skipped: the header is the first row that fills
    more than half of the columns. Rows without any value are left out.

    Raises
    ------
    ImportError
        If python-calamine is missing.
    ValueError
        If the file is no workbook, or several sheets hold something and none is chosen.
    """
    calamine = library("python_calamine", path)
    try:
        book = calamine.CalamineWorkbook.from_path(str(path))
    except (calamine.CalamineError, OSError) as error:
        raise ValueError(f"{path}: not a workbook that can be read ({error})") from None
    names = list(book.sheet_names)
    if sheet is None and len(names) > 1:
        names = [name for name in names if book.get_sheet_by_name(name).to_python()] or names
    name = the_one(names, sheet, path, "sheets")
    rows = [[_text(cell) for cell in row] for row in book.get_sheet_by_name(name).to_python()]
    rows = [row for row in rows if any(row)]
    width = max(map(len, rows), default=0)
    first = next((i for i, row in enumerate(rows) if 2 * sum(map(bool, row)) > width), 0)
    if not rows:
        raise ValueError(f"{path}: sheet {name!r} is empty")
    header = [cell or f"column {j}" for j, cell in enumerate(rows[first], start=1)]
    if len(set(header)) < len(header):
        twice = next(cell for cell in header if header.count(cell) > 1)
        raise ValueError(
            f"{path}, sheet {name!r}: the header has {twice!r} more than once (rename one)"
        )
    yield header
    yield from rows[first + 1 :]


def _text(cell: Any) -> str:
    """A cell as it would be written in a text file, every digit kept."""
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() else repr(cell)
    if isinstance(cell, datetime.date | datetime.time):
        return cell.isoformat()
    return str(cell).strip()

"""Sheets of workbooks (Excel, LibreOffice), read by python-calamine."""

import datetime
import warnings
from collections.abc import Iterator
from pathlib import Path

from pgmult.datasets.files import errors_at, library, refuse_repeated, the_one


def workbook_rows(path: Path, sheet: str | None, starts: list[int]) -> Iterator[list[str]]:
    """Give the header of a sheet and its rows, each cell as a text file would have it.

    The numbers of these rows in the sheet, as programs show them, go to `starts`.

    A title and empty rows above the header are skipped: the header is the first row that fills
    more than half of the columns, with the row below it where that names columns under merged
    cells. Rows without any value are left out, and so are notes below the table, with a warning.

    Raises
    ------
    ImportError
        If python-calamine is missing.
    ValueError
        If the file is no workbook, or several sheets hold something and none is chosen.
    """
    calamine = library("python_calamine", path)
    with errors_at(path, "not a workbook that can be read", (calamine.CalamineError, OSError)):
        book = calamine.CalamineWorkbook.from_path(str(path))
        names = list(book.sheet_names)
        if sheet is None and len(names) > 1:
            names = [name for name in names if book.get_sheet_by_name(name).to_python()] or names
        name = the_one(names, sheet, path, "sheets")
        table = book.get_sheet_by_name(name)
        rows = [[_text(cell) for cell in row] for row in table.to_python()]
        top = 1 + (table.start[0] if table.start else 0)
    numbers = [number for number, row in enumerate(rows, start=top) if any(row)]
    rows = [row for row in rows if any(row)]
    width = max(map(len, rows), default=0)
    first = next((i for i, row in enumerate(rows) if 2 * sum(map(bool, row)) > width), 0)
    if not rows:
        raise ValueError(f"{path}: sheet {name!r} is empty")
    names, rows = rows[first], rows[first + 1 :]
    if rows and _is_second_header(names, rows[0]):
        names, rows = _joined_headers(names, rows[0]), rows[1:]
    starts += numbers[len(numbers) - len(rows) :]
    note = ""
    while width > 2 and len(rows) > 1 and rows[-1][0] and not any(rows[-1][1:]):
        note = rows.pop()[0]
        starts.pop()
    if note:
        said = f"a note below the table is left out, {note[:60]!r}"
        warnings.warn(f"{path}, sheet {name!r}: {said}", stacklevel=2)
    header = [cell or f"column {j}" for j, cell in enumerate(names, start=1)]
    refuse_repeated(header, f"{path}, sheet {name!r}")
    yield header
    yield from rows


def _is_second_header(names: list[str], below: list[str]) -> bool:
    """Whether a row names columns that stand under merged cells, and has gaps under full names."""
    under = [bool(cell) for name, cell in zip(names, below, strict=True) if not name]
    gaps = [not cell for name, cell in zip(names, below, strict=True) if name]
    are_words = not any(cell.replace(".", "").isdigit() and len(cell) != 4 for cell in below)
    return bool(under) and all(under) and any(gaps) and are_words


def _joined_headers(names: list[str], below: list[str]) -> list[str]:
    """Names of columns whose header has two rows, the upper one of merged cells."""
    joined, upper = list[str](), ""
    for name, cell in zip(names, below, strict=True):
        upper = name or upper
        joined.append(f"{upper} {cell}" if cell else upper)
    return joined


def _text(cell: object) -> str:
    """A cell as it would be written in a text file, every digit kept."""
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() else repr(cell)
    if isinstance(cell, datetime.date | datetime.time):
        return cell.isoformat()
    return str(cell).strip()

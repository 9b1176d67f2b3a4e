"""Columns of a table in a file, by name: what texts, tidy counts and sequences come from.

What a column is follows from its cells alone: numbers or dates where every cell that holds a value
is one, and text otherwise; 007 is text, and so are whole numbers that pass 64 bits. No digit is
lost: whole numbers stay whole where cells are empty, and where one number is written in two ways,
1E5 and 100000, each cell remembers its own (`pgmult.core.labels.Written`).
"""

import csv
import datetime
import json
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pgmult.core.arguments import as_strings, brief
from pgmult.core.labels import label_of, plain_label
from pgmult.core.tables import Cells, Lazily, exact, exact_array, numbers_of_texts
from pgmult.core.typing import IntArray
from pgmult.datasets import files
from pgmult.datasets.labelled import labelled_columns
from pgmult.datasets.workbooks import workbook_rows

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

_NUMBER = re.compile(r"[+-]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?")
_THOUSANDS = ".'\N{RIGHT SINGLE QUOTATION MARK}\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE} "
_COMMAS = re.compile(rf"[+-]?(\d+|\d{{1,3}}([{_THOUSANDS}]\d{{3}})+)(,\d+)?([eE][+-]?\d{{1,3}})?")
_THREES = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?")  # 1,234.5
_POINT_AND_THREE = re.compile(r"[+-]?([1-9]\d{0,2}\.\d{3}|\d{1,3})")
_MILLIONS = re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3}){2,}")  # 1.234.567
_TABS = dict.fromkeys((".tsv", ".tab"), "\t")
_SHOWN = 30  # columns named in an error
_LOOKED_AT = 1000  # rows that say whether commas are decimal
_LOOKED_THROUGH = 100_000  # characters that show what separates cells
_FIRST_ROWS = 20  # rows that show whether the header lacks the name of the first column
_MANY_LINES = 4  # of a cell that are looked at for rows
_DATE = re.compile(r"\d{4}-\d\d(-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d(:?\d\d)?)?)?)?")

NA_VALUES = ("", "NA")
"""What a cell reads that holds no value, in every reader that takes ``na_values``."""


class _Texts(NamedTuple):
    """Cells of text: the different ones, and the number of that of each row.

    `decimal` is the mark of decimals in numbers: a comma; a point, since some do not stand before
    three digits, or commas separate cells; "?" if it is not known. Empty where strings are no
    numbers, as in JSON, where they have quotes.
    """

    different: Sequence[str | None]
    rows: IntArray
    decimal: str

    @classmethod
    def of(cls, cells: Sequence[str | None], decimal: str = ".") -> "_Texts":
        """Look at each text once."""
        numbers = {text: i for i, text in enumerate(dict.fromkeys(cells))}
        rows = np.fromiter(map(numbers.__getitem__, cells), np.int64, len(cells))
        return cls([*numbers], rows, decimal)


def _typed(column: object, name: str, time_zone: str | None = None) -> Cells:
    """Make cells of a column: of texts numbers or dates where all are, else strings.

    Whole numbers and strings with gaps are objects, with None; missing dates are NaT.

    >>> for cells in (["1", "2"], ["1", None], ["1", "x"]):
    ...     _typed(_Texts.of(cells), "x").values
    array([1, 2])
    array([1, None], dtype=object)
    array(['1', 'x'], dtype='<U1')
    """
    if not isinstance(column, _Texts):
        return exact(column, name, time_zone)
    texts, rows, decimal = column
    if decimal == ",":
        texts = _with_points(texts) or texts
    elif decimal:
        texts = _without_thousands(texts, name, decimal == ".")
    present = [text for text in texts if text is not None]
    are_numbers = decimal != "" and all(map(_NUMBER.fullmatch, present))
    if present and not are_numbers and all(map(_DATE.fullmatch, present)):
        times = []
        with suppress(ValueError):  # the 31st of June
            times = [text and _date(text) for text in texts]
        if times:
            dates = exact([times[i] for i in rows.tolist()], name, time_zone)
            return dates._replace(values=dates.values.astype("datetime64[s]"))
    values = numbers_of_texts(texts) if are_numbers else exact_array(texts)
    return Cells(values[rows])


def _date(text: str) -> datetime.datetime:
    """A date or a time; of 1999-12, the first day."""
    return datetime.datetime.fromisoformat(text + "-01" * (len(text) == len("1999-12")))


def is_number_or_date(cell: str) -> bool:
    """Whether a cell of a table can be of a column of numbers or of dates."""
    may_be = _NUMBER.fullmatch(cell) or _DATE.fullmatch(cell)
    return bool(may_be) and _typed(_Texts.of([cell]), "").values.dtype.kind not in "UO"


class RawTable(NamedTuple):
    """What a reader finds in a file, before columns become numbers or dates.

    Attributes
    ----------
    names : list of str
    num_rows : int
    cells : callable
        ``cells(name)`` are the cells of a column: `_Texts`; or a list with None where there is no
        value, `Cells` or an array where the file itself says what they are.
    lines : sequence of int
        Line of the file at which each row begins, or its row in the sheet, if that is known.
    part : str
        "line", or "row" of a sheet.
    """

    names: list[str]
    num_rows: int
    cells: Callable[[str], Any]
    lines: Sequence[int] = ()
    part: str = "line"


def columns_of_file(
    path: Path, delimiter: str | None = None, encoding: str | None = None,
    na_values: Sequence[str] = NA_VALUES, time_zone: str | None = None, sheet: str | None = None,
) -> tuple[Mapping[str, Cells], IntArray | None, str]:  # fmt: skip
    """Columns of tables in files, each made when it is first asked for: see `pgmult.read`.

    Line numbers come with the columns of a single text file, and row numbers with those of a sheet.
    """
    no_value = frozenset(as_strings(na_values, "na_values"))
    paths = files.tables_of(path)
    tables = [_raw_table(file, delimiter, encoding, no_value, sheet, time_zone) for file in paths]
    first = tables[0]
    for file, table in zip(paths, tables, strict=True):
        if not table.num_rows:
            raise ValueError(f"{file}: the table has no rows")
        if odd := sorted({*table.names} ^ {*first.names}):
            which = f"got {odd[0]!r} only in one of {paths[0].name} and {file.name}"
            raise ValueError(f"{path}: tables must have the same columns, {which}")
    several = [] if paths == [path] else ["file" if "file" not in first.names else "file_name"]

    def column(name: str) -> Cells:
        if name in several:
            sizes = [table.num_rows for table in tables]
            return exact(np.repeat([file.name for file in paths], sizes), name)
        return _joined([x.cells(name) for x in tables], f"{name!r} of {path}", time_zone)

    lines = np.array(first.lines, np.int64) if len(first.lines) and not several else None
    return Lazily([*first.names, *several], column), lines, first.part


def _joined(pieces: Sequence[Any], name: str, time_zone: str | None) -> Cells:
    """One column of those of several files; what all have in one form is looked at together."""
    kinds = {*map(type, pieces)}
    marks = {piece.decimal for piece in pieces if isinstance(piece, _Texts)}
    if len(pieces) > 1 and kinds == {list}:
        pieces = [[cell for piece in pieces for cell in piece]]
    elif len(pieces) > 1 and kinds == {_Texts} and (len(marks) == 1 or "" not in marks):
        texts = [x.different[i] for x in pieces for i in x.rows.tolist()]
        pieces = [_Texts.of(texts, next(mark for mark in (",", ".", "?", "") if mark in marks))]
    each = [_typed(piece, name, time_zone) for piece in pieces]
    if len(each) == 1:
        return each[0]
    order = dict.fromkeys(label for cells in each for label in cells.order or ())
    values = exact_array([cell for cells in each for cell in cells.values.tolist()])
    return each[0]._replace(values=values, order=tuple(order) or None, east=None, later=None)


def _raw_table(
    path: Path, delimiter: str | None, encoding: str | None, no_value: frozenset[str],
    sheet: str | None, time_zone: str | None,
) -> RawTable:  # fmt: skip
    """Read a table in a file of any form."""
    with files.unzipped(path, sheet) as (file, chosen):
        form = _form_of(file, delimiter)
        if chosen is not None and form not in (*files.WORKBOOKS, *files.FROM_R):
            raise ValueError(f"{path}: sheet is for workbooks and archives, got {chosen!r}")
        if form == ".parquet":
            with _parquet(file) as opened:
                table = opened.read()
            size = table.num_rows
            return RawTable(table.column_names, size, lambda name: _of_arrow(table.column(name)))
        if form in (*files.LABELLED, *files.FROM_R):
            columns = labelled_columns(file, form, no_value, chosen, time_zone)
            size = len(next(iter(columns.values())).values) if columns else 0
            return RawTable([*columns], size, columns.__getitem__)
        if form in (*files.LINES, ".json"):
            read = _json_records if form == ".json" else _json_lines
            records = list(read(file, encoding))
            names = list(dict.fromkeys(name for row in records for name in row))
            return RawTable(
                names, len(records),
                lambda name: _one_kind([row.get(name) for row in records], no_value),
            )  # fmt: skip
        lines: list[int] = []
        if form in files.WORKBOOKS:
            mark, rows = "", workbook_rows(file, chosen, lines)
        else:
            mark, rows = _csv_rows(file, delimiter, encoding, starts=lines)
        names, *cells = rows
        columns_of_text = dict(zip(names, zip(*cells, strict=True), strict=False))

        stripped = [[*map(str.strip, x[:_LOOKED_AT])] for x in columns_of_text.values()]
        some = [[x for x in texts if x and x not in no_value] for texts in stripped]
        decimal = "." if mark != ";" or any(map(_has_points, some)) else "?"
        if mark not in (",", "") and any(_has_commas(x, mark) for x in some):
            decimal = ","

        def column(name: str) -> _Texts:
            texts = _Texts.of(columns_of_text[name], decimal)
            stripped = [x and x.strip() for x in texts.different]
            return texts._replace(different=[None if x in no_value else x for x in stripped])

        return RawTable(names, len(cells), column, lines, "line" if mark else "row")


def _has_commas(cells: Sequence[str], mark: str) -> bool:
    """Whether a column has decimal commas: 1,5 or 1.234.567, and beside semicolons 1,234 too."""
    sure = (x for x in cells if "," in x and (mark == ";" or not _THREES.fullmatch(x)))
    is_sure = any(sure) or any(map(_MILLIONS.fullmatch, cells))
    return is_sure and _with_points(cells) is not None


def _has_points(cells: Sequence[str]) -> bool:
    """Whether a column has numbers with decimal points that cannot be marks of thousands."""
    is_sure = any("." in x and not _POINT_AND_THREE.fullmatch(x) for x in cells)
    return is_sure and all(map(_NUMBER.fullmatch, cells))


def _without_thousands(
    cells: Sequence[str | None], name: str, decimal_points: bool
) -> Sequence[str | None]:
    """Read 1,234 as 1234 where all commas are marks of thousands; warn of points that may be.

    >>> _without_thousands(["1,234", None, "7.5"], "x", True)
    ['1234', None, '7.5']
    """
    written = [cell for cell in cells if cell is not None]
    example = next((x for x in written if "." in x), None)
    if any("," in x for x in written):
        if all(_THREES.fullmatch(x) or _NUMBER.fullmatch(x) for x in written):
            return [cell and cell.replace(",", "") for cell in cells]
    elif example and not decimal_points and all(map(_POINT_AND_THREE.fullmatch, written)):
        read = f"all points stand before three digits; {example} is read as a number with decimals"
        warnings.warn(f"{name}: {read} (take out points that mark thousands)", stacklevel=2)
    return cells


def _with_points(cells: Sequence[str | None]) -> list[str | None] | None:
    """Rewrite numbers with decimal commas, 1.234,5, with points; None if some cell is none.

    >>> _with_points(["1.234,5", None, "7"]), _with_points(["1,234", "x"])
    (['1234.5', None, '7'], None)
    """
    if not all(cell is None or _COMMAS.fullmatch(cell) for cell in cells):
        return None
    marks = str.maketrans(",", ".", "".join(_THOUSANDS))
    return [cell and cell.translate(marks) for cell in cells]


def _lines(path: Path, encoding: str | None, newline: str | None, **more: Any) -> Iterator[str]:
    """Lines of a text, in the encoding that it seems to have where none is asked for."""
    return files.each_line(path, files.encoding_of(path, encoding), newline=newline, **more)


def _form_of(path: Path, delimiter: object) -> str:
    """The form of a table's file."""
    if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1):
        raise ValueError(f"delimiter must be one character, got {brief(delimiter)}")
    form = files.form_of(path) or (".csv" if delimiter else "")
    if not form:
        raise ValueError(f"path must end in {', '.join(files.TABLES)}, got {str(path)!r}")
    return form


def cells_of_file(
    path: Path, names: Sequence[str], delimiter: Any, encoding: str | None, meter: files.Meter
) -> Iterator[tuple[Any, ...]]:
    """Cells of some columns, a row at a time: None where there is no value.

    Raises
    ------
    ValueError
        If a column is not there, or the table has no rows.
    """
    empty = True
    for row in _each_row(path, names, delimiter, encoding, meter):
        empty = False
        yield row
    if empty:
        raise ValueError(f"{path}: the table has no rows")


def _each_row(
    path: Path, names: Sequence[str], delimiter: Any, encoding: str | None, meter: files.Meter
) -> Iterator[tuple[Any, ...]]:
    def check(columns: Iterable[str]) -> None:
        if odd := [name for name in names if name not in columns]:
            how = "" if delimiter is None else f" with delimiter {delimiter!r}"
            raise ValueError(f"{path}: no column {odd[0]!r} among {list(columns)[:_SHOWN]}{how}")

    form = "" if files.is_pattern(path) or path.is_dir() else _form_of(path, delimiter)
    if form in files.LINES:
        seen = dict[str, None]()
        for record in _json_lines(path, encoding, meter=meter):
            seen |= dict.fromkeys(record)
            yield tuple(map(record.get, names))
        check(seen or names)
    elif form == ".parquet":
        with _parquet(path) as file:
            check(file.schema_arrow.names)
            for batch in file.iter_batches(columns=list(names)):
                meter.done += meter.total * batch.num_rows // file.metadata.num_rows
                yield from zip(*(batch.column(name).to_pylist() for name in names), strict=True)
    elif form in files.DELIMITED:
        _, rows = _csv_rows(path, delimiter, encoding, meter)
        header = next(rows)
        check(header)
        places = [header.index(name) for name in names]
        cells = ((row[j].strip() for j in places) for row in rows)
        yield from (tuple(None if x in NA_VALUES else x for x in row) for row in cells)
    else:
        whole = columns_of_file(path, delimiter, encoding)[0]
        check(whole)
        yield from zip(*(whole[name].values.tolist() for name in names), strict=True)


def _parquet(path: Path) -> "ParquetFile":
    """An open file."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise ImportError(f"{path} needs pyarrow: pip install pyarrow (or save as .csv)") from None
    with files.errors_at(path, "not a Parquet file", (ValueError, ArrowException)):
        return parquet.ParquetFile(path)


def _of_arrow(column: Any) -> Any:
    """Dates without a zone as an array, strings as texts, anything else as a list."""
    from pyarrow import types

    if types.is_temporal(column.type) and getattr(column.type, "tz", None) is None:
        return column.to_numpy()
    cells = column.to_pylist()
    return _Texts.of(cells, "") if {*map(type, cells)} <= {str, type(None)} else cells


def labels_of_cells(kinds: set[str]) -> Callable[[Any], str]:
    """What makes labels of a column's cells, given `kind_of_cell` of all of them."""
    if kinds == {"number cell"}:
        return plain_label
    if len(kinds) == 1 or kinds <= {"number cell", "str"} or kinds <= {"int", "float"}:
        return label_of
    return lambda cell: cell if isinstance(cell, str) else json.dumps(cell)


def kind_of_cell(cell: Any, *, of_csv: bool) -> str:
    """What a column can be that has this cell: see `_typed` and `_one_kind`."""
    return "number cell" if of_csv and _NUMBER.fullmatch(cell) else type(cell).__name__


def _delimiter(text: str, path: Path) -> str:
    """What separates the names in the header row, and as many cells in the rows below it."""
    lines = files.lines_of(text)[:_LOOKED_AT]
    header = re.sub(r'"[^"]*"', "", lines[0] if lines else "")
    marks = [mark for mark in (",", ";", "\t") if mark in header]
    if len(marks) > 1:
        widths = {m: [len(row) for row in csv.reader(lines[:20], delimiter=m)] for m in marks}
        even = [mark for mark in marks if len(set(widths[mark][:-1])) == 1 < len(widths[mark])]
        if len(even) == 1:
            return even[0]
        listed = f"{path}, line 1: {' and '.join(map(repr, marks))} stand in the header"
        advice = f"say which one separates cells, delimiter={marks[0]!r} or another"
        raise ValueError(f"{listed}; {advice}")
    if not marks and "|" in header:
        return "|"
    return marks[0] if marks else " " if re.fullmatch(r" +", header) else ","


def _csv_rows(
    path: Path, delimiter: str | None, encoding: str | None, meter: files.Meter | None = None,
    starts: list[int] | None = None,
) -> tuple[str, Iterator[list[str]]]:  # fmt: skip
    """What separates cells; the header, and the rows with blanks, whose lines go to `starts`."""
    lines = _lines(path, encoding, "", meter=meter)
    first, size = list[str](), 0
    while size < _LOOKED_THROUGH and (line := next(lines, "")):
        first.append(line)
        size += len(line)
    said = re.fullmatch(r"sep=(.)\s*", first[0], re.IGNORECASE) if first else None
    first = first[1:] if said else first  # it is for Excel
    mark = delimiter or (said and said[1]) or _TABS.get(files.suffix_of(path))
    mark = mark or (" " if files.form_of(path) == ".dat" else _delimiter("".join(first), path))
    lines = chain(first, lines)
    if first and first[0].endswith("\n"):
        lines = _ended_by_feeds(lines)
    asked = f" (with delimiter={delimiter!r})" if delimiter else ""
    return mark, _split_rows(lines, path, mark, 1 + (said is not None), starts, asked)


def _ended_by_feeds(lines: Iterable[str]) -> Iterator[str]:
    """Lines of a file whose lines end in a line feed: outside quotes, a return alone is a blank."""
    begun, in_quotes = "", False
    for line in lines:
        in_quotes ^= line.count('"') % 2 == 1
        if line.endswith("\r") and not in_quotes:
            begun += f"{line[:-1]} "
        else:
            yield begun + line
            begun = ""
    if begun:
        yield begun


def _split_rows(
    lines: Iterable[str], path: Path, delimiter: str, first_line: int, starts: list[int] | None,
    asked: str,
) -> Iterator[list[str]]:  # fmt: skip
    usual_limit = csv.field_size_limit(2**31 - 1)  # a cell can hold a whole book
    try:
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        rows = _checked_rows(reader, path, delimiter, first_line)
        header = [name.strip() for _, name_row in islice(rows, 1) for name in name_row]
        if not header:
            raise ValueError(f"{path}: the file is empty")
        begun = list(islice(rows, _FIRST_ROWS))
        if len(begun) > 1 and all(len(row) == len(header) + 1 for _, row in begun):
            is_ended = all(not row[-1].strip() for _, row in begun)  # a mark after the last cell
            name = next(x for x in ("row", "row_name", "row_number") if x not in header)
            header = [*header, ""] if is_ended else [name, *header]
        if header.count("") > 1 or (len(header) > 1 and not header[-1]):
            header = [name or f"column {j}" for j, name in enumerate(header, start=1)]
        files.refuse_repeated(header, f"{path}, line {first_line}")
        yield header
        for start, row in chain(begun, rows):
            if len(row) != len(header):
                remedy = f"a cell with {delimiter!r} in it needs quotes"
                if len(row) < len(header):
                    remedy = "take lines that are no rows, such as sources, out of the file"
                elif start <= first_line + _FIRST_ROWS:
                    remedy += f"; if line {first_line} is not the header, take lines above it out"
                where = f"{path}, line {start}: {len(row)} cells under a header of {len(header)}"
                raise ValueError(f"{where} ({remedy})")
            if starts is not None:
                starts.append(start)
            yield row
    except (TypeError, ValueError) as error:  # csv refuses some characters
        is_of_file = str(error).startswith(str(path))
        where = "" if is_of_file else f"delimiter must separate cells, got {delimiter!r}: "
        raise ValueError(f"{where}{error}{asked}") from None
    finally:
        csv.field_size_limit(usual_limit)


def _checked_rows(
    reader: Any, path: Path, delimiter: str, first_line: int
) -> Iterator[tuple[int, list[str]]]:
    """Rows that are not empty with the line where each begins, unless a quote is left open."""
    start, width, what = first_line, 0, ""
    try:
        for row in reader:
            end = first_line - 1 + reader.line_num
            width = width or len(row)
            is_long = width > 1 and end - start >= _MANY_LINES
            for inner in (cell.split("\n")[1:-1] for cell in row) if is_long else ():
                alike = {line.count(delimiter) for line in inner} == {width - 1}
                if len(inner) >= _MANY_LINES - 1 and alike:
                    what = f"goes on to line {end}, over lines that look like rows"
                    raise csv.Error
            if row:
                yield start, row
            start = end + 1
    except csv.Error as error:
        end = first_line - 1 + reader.line_num
        if "end of data" in str(error):
            what = "is never closed"
        elif not what and end > start:
            what = f"closes in line {end}, inside of a cell"
        what = f"a cell that begins with a quote {what}" if what else str(error)
        remedy = 'write a quote that is text twice, as in "5"" pipe", or drop it'
        raise ValueError(f"{path}, line {start}: {what} ({remedy})") from None


def _json_records(path: Path, encoding: str | None) -> list[dict[str, object]]:
    """Rows of a JSON file: an array of objects, columns by name, or an object a line."""
    try:
        held = _from_json("".join(_lines(path, encoding, "")), str(path))
    except _SeveralValuesError:
        return list(_json_lines(path, encoding))
    if isinstance(held, dict) and isinstance(held.get("data"), list):
        held = held["data"]  # a table with its schema
    kinds = {*map(type, held.values())} if isinstance(held, dict) else set()
    if kinds == {list}:
        if len({len(cells) for cells in held.values()}) > 1:
            raise ValueError(f"{path}: its arrays must have the same length to be columns")
        held = [dict(zip(held, row, strict=True)) for row in zip(*held.values(), strict=True)]
    elif kinds == {dict}:
        keys = dict.fromkeys(key for cells in held.values() for key in cells)
        held = [{name: cells.get(key) for name, cells in held.items()} for key in keys]
    if not isinstance(held, list) or not all(isinstance(row, dict) for row in held):
        raise ValueError(f"{path}: expected an array of objects, one a row, or an array a column")
    return [_flat(row) for row in held]


def _json_lines(
    path: Path, encoding: str | None, meter: files.Meter | None = None
) -> Iterator[dict[str, object]]:
    """Rows of a file with an object a line."""
    for number, line in enumerate(_lines(path, encoding, "\n", meter=meter), start=1):
        if line.strip():
            place = f"{path}, line {number}"
            row = _from_json(line, place)
            if not isinstance(row, dict):
                raise ValueError(f"{place}: expected an object, got {type(row).__name__}")
            yield _flat(row)


class _SeveralValuesError(ValueError):
    """A text holds several values of JSON."""


def _from_json(text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        kind = _SeveralValuesError if error.msg == "Extra data" else ValueError
        where = place if ", line " in place else f"{place}, line {error.lineno}"
        raise kind(f"{where}: not JSON ({error.msg}, column {error.colno})") from None
    except (ValueError, RecursionError) as error:  # a number or a nesting without end
        raise ValueError(f"{place}: not JSON that can be read ({error})") from None


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """A row without objects in it, whose members become columns.

    >>> _flat({"id": 1, "who": {"age": 20}})
    {'id': 1, 'who.age': 20}
    """
    flat = dict[str, Any]()
    for name, cell in row.items():
        is_nested = isinstance(cell, dict) and cell
        flat |= {f"{name}.{x}": y for x, y in _flat(cell).items()} if is_nested else {name: cell}
    return flat


def _one_kind(items: list[object], no_value: frozenset[str]) -> list[object] | _Texts:
    """Numbers or truth values as they are; anything else as strings, nested values as JSON."""
    items = [None if isinstance(item, str) and item in no_value else item for item in items]
    kinds = {*map(type, items)} - {type(None)}
    if kinds == {bool} or (kinds and kinds <= {int, float}):
        return items
    return _Texts.of([x if isinstance(x, str | None) else json.dumps(x) for x in items], "")

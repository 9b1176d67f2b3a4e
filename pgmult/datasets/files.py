"""Files: their form, which their first bytes decide before their names do, and the lines of texts.

Text is decompressed, decoded and cut into lines as an editor cuts them.
"""

import glob
import gzip
import io
import re
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from pgmult.core.arguments import as_kind

DELIMITED, LINES = (".csv", ".tsv", ".tab", ".dat"), (".jsonl", ".ndjson")
WORKBOOKS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
LABELLED = (".sav", ".zsav", ".por", ".dta", ".sas7bdat", ".xpt")
FROM_R = (".rds", ".rdata", ".rda")
TABLES = (
    *DELIMITED[:3], *LINES, ".json", ".parquet", *WORKBOOKS, *LABELLED, *FROM_R, ".zip",
)  # fmt: skip
_MARKS = {
    b"PAR1": ".parquet", b"$FL2": ".sav", b"$FL3": ".zsav", b"<stata_dta>": ".dta",
    b"\xd0\xcf\x11\xe0": ".xls", b"HEADER RECORD***": ".xpt",
}  # fmt: skip
_ENOUGH_ROWS = 5  # with a blank between cells, that are no lines of a text
_HEAD = 2**16  # bytes in which a form is looked for
_MOST_DECODED = 2**26  # bytes that decide an encoding
_FAR_EAST, _MANY_HIGH = b"\x81\x8d\x8f\x90\x9d", 0.25  # cp1252 lacks them; share of letters
_IN_UTF8 = re.compile(rb"[\xc3-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}")
_INTEGER_OR_DECIMAL = re.compile(r"-?\d+([.,]\d+)?")
_MOST_LISTED = 6


@contextmanager
def errors_at(
    place: object, what: str = "", kinds: type[Exception] | tuple[type[Exception], ...] = ValueError
) -> Iterator[None]:
    """Raise errors of some kinds as ValueError that says where, and `what` is wrong there."""
    try:
        yield
    except kinds as error:
        why = str(error) or type(error).__name__
        raise ValueError(f"{place}: {what} ({why})" if what else f"{place}: {why}") from None


def suffix_of(path: Path) -> str:
    """The last part of the name, lower case, a ``.gz`` looked through."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def local_path(path: Path) -> Path:
    """Refuse an address of the web."""
    if re.match(r"[a-z][a-z0-9+]+:/", str(path)):
        raise ValueError(f"{path} is an address: download it first, and pass the file's name")
    return path


def form_of(path: Path) -> str:
    """The suffix that says how a table is read, from the first bytes of a file, then its name.

    Empty for what is no table: texts, counts of words and sequences have forms of their own.
    """
    suffix, start = suffix_of(path), head_of(path)
    if start.startswith(b"PK\x03\x04"):
        try:
            with zipfile.ZipFile(path) as file:
                names = file.namelist()
        except zipfile.BadZipFile:
            return suffix if suffix in TABLES else ""  # its reader says what is wrong
        if any(name.startswith("xl/") for name in names):
            return suffix if suffix in WORKBOOKS else ".xlsx"
        if "content.xml" in names:
            return ".ods"
        return "" if suffix == ".npz" else ".zip"
    for mark, form in _MARKS.items():
        if start.startswith(mark):
            return form
    said = _form_of_text(start, suffix) if suffix in (*DELIMITED[1:], ".txt", "") else None
    return said if said is not None else suffix if suffix in TABLES else ""


def _form_of_text(start: bytes, suffix: str) -> str | None:
    """Find the form of a file of text that may be a table; None leaves it to the name."""
    is_utf16 = start[:2] in (b"\xff\xfe", b"\xfe\xff")
    text = start[: len(start) // 2 * 2].decode("utf-16" if is_utf16 else "utf-8", "replace")
    lines = [line for line in lines_of(text)[:20] if line.strip()]
    if len(lines) < 2:
        return None
    head, rows = lines[0].removeprefix("\ufeff"), lines[1:-1] or lines[1:]
    if re.fullmatch(r'"[^"]*"( "[^"]*")+', head):  # blanks between cells, as R writes it
        width, *widths = (len(re.findall(r'(?:"[^"]*"|[^\s"])+', row)) for row in (head, *rows))
        if {*widths} <= {width, width + 1}:
            return ".dat"
    cells = [line.split(" ") for line in (head, *rows)]
    if len(rows) >= _ENOUGH_ROWS and len(cells[0]) > 1 and len({*map(len, cells)}) == 1:
        are_numbers = [[*map(_INTEGER_OR_DECIMAL.fullmatch, x)] for x in zip(*cells, strict=True)]
        if any(not first and all(others) for first, *others in are_numbers):
            return ".dat"
    names, tabs = head.split("\t"), {row.count("\t") for row in rows}
    is_header = all(0 < len(name) <= 40 and not re.fullmatch(r"[-+.\d]+", name) for name in names)
    if len(names) > 1 and is_header and len(set(names)) == len(names):
        return ".tsv" if tabs <= {len(names) - 1, len(names)} and len(tabs) == 1 else None
    return None if suffix in (".tsv", ".tab") else ""


def is_table(path: Path) -> bool:
    """Whether a path holds a table, or tables of the same columns."""
    if path.is_dir():
        has_tables = any(suffix_of(file) in TABLES for file in path.iterdir() if file.is_file())
        return has_tables and not any(suffix_of(file) == ".txt" for file in path.rglob("*.txt*"))
    return bool(form_of(path)) if path.is_file() else is_pattern(path)


def is_pattern(path: Path) -> bool:
    """Whether a path has wildcards and is no file by itself."""
    return not path.exists() and re.search(r"[*?\[]", str(path)) is not None


def tables_of(path: Path) -> list[Path]:
    """Return the files of a path: itself, those of a folder that are tables, or of a pattern.

    Raises
    ------
    FileNotFoundError
        If there is none.
    ValueError
        If the folder is a packed corpus.
    """
    local_path(path)
    if (path / "corpus.json").is_file():
        raise ValueError(f"{path} is a packed corpus and no table: read_corpus opens it")
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if suffix_of(file) in TABLES)
    elif is_pattern(path):
        files = sorted(map(Path, glob.glob(str(path))))
    else:
        return [path]
    if not files:
        raise FileNotFoundError(f"{path}: no table there, such as a .csv")
    return files


def library(module: str, path: Path) -> ModuleType:
    """Import the library that reads a file.

    Raises
    ------
    ImportError
        With the command that installs it.
    """
    try:
        return import_module(module)
    except ImportError:
        extra, name = "rdata" if module == "pyreadr" else "files", module.replace("_", "-")
        advice = f"pip install 'pgmult[{extra}]' (or save it as .csv)"
        raise ImportError(f"{path} needs {name} to be read: {advice}") from None


@contextmanager
def unzipped(path: Path, chosen: str | None) -> Iterator[tuple[Path, str | None]]:
    """Give the one table of a ``.zip``, or the chosen one, and what is left to choose in it.

    Raises
    ------
    ValueError
        If several tables are in it and none is chosen.
    """
    if form_of(path) != ".zip":
        yield path, chosen
        return
    with errors_at(path, "a damaged archive", zipfile.BadZipFile):
        file = zipfile.ZipFile(path)
    with file, tempfile.TemporaryDirectory() as folder:
        names = [name for name in file.namelist() if not name.startswith("__MACOSX")]
        texts = [name for name in names if suffix_of(Path(name)) == ".txt"]
        tables = [name for name in names if suffix_of(Path(name)) in TABLES] or texts
        names = [*tables, *texts]
        name = the_one(tables, chosen if chosen in names else None, path, "tables")
        inner = Path(file.extract(name, folder))
        try:
            yield inner, None if chosen == name else chosen
        except ValueError as error:
            raise ValueError(str(error).replace(str(inner), f"{path}, {name}")) from None


def the_one(names: list[str], chosen: str | None, path: Path, what: str) -> str:
    """Return the chosen one of several sheets or tables of a file, or the only one.

    Raises
    ------
    ValueError
        With the names that there are.
    """
    if chosen in names or (chosen is None and len(names) == 1):
        return names[0] if chosen is None else chosen
    listed = ", ".join(map(repr, names[:_MOST_LISTED]))
    listed += f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
    if chosen is not None:
        raise ValueError(f"{path}: sheet must be one of its {what}, {listed}, got {chosen!r}")
    if not names:
        raise ValueError(f"{path}: it has no {what}")
    several = f"it has {len(names)} {what}, {listed}: choose one with sheet={names[0]!r}"
    raise ValueError(f"{path}: {several}")


def refuse_repeated(header: list[str], place: str) -> None:
    """Raise ValueError if a name stands in a header more than once."""
    if len(set(header)) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise ValueError(f"{place}: the header has {twice!r} more than once (rename one)")


def lines_of(text: str) -> list[str]:
    """Lines as an editor counts them: they end in LF, CR LF or CR, and nowhere else.

    ``str.splitlines`` also ends them at form feeds and at the line separators of Unicode, which
    stand inside texts.
    """
    return [line.removesuffix("\n") for line in io.StringIO(text, newline=None)]


def _checked_encoding(encoding: str) -> str:
    """The name of an encoding of text."""
    try:
        "".encode(as_kind(encoding, "encoding", str))
    except (LookupError, UnicodeError, ValueError):
        known = "one that Python knows, such as 'latin-1'"
        raise ValueError(f"encoding must be {known}, got {encoding!r}") from None
    return encoding


def read_file(path: Path, encoding: str | None = None) -> str:
    """A file's text, decompressed; newlines are as in the file, a byte order mark is dropped."""
    return "".join(each_line(path, encoding, newline=""))


def head_of(path: Path, size: int = _HEAD) -> bytes:
    """Return the first bytes of a file, decompressed; none of what cannot be read."""
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
            return file.read(size)
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: no such file") from None
    except (EOFError, zlib.error, gzip.BadGzipFile):
        return b""  # `each_line` says what is wrong


def encoding_of(path: Path, asked: str | None = None) -> str:
    """Find the encoding of a text, unless one is asked for: UTF-8, UTF-16 by its marks, or cp1252.

    Windows writes cp1252; a warning says that it is taken, with a word. Where other encodings are
    likely (too many letters with accents, sequences of UTF-8 beside broken ones) it stays UTF-8,
    whose error names the line.
    """
    if asked is not None:
        return asked
    start = head_of(path, _MOST_DECODED)
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    zeros = [start[offset:_HEAD:2].count(0) for offset in (0, 1)]
    if min(zeros) == 0 and max(zeros) > 0.4 * len(start[:_HEAD:2]):
        wide = "utf-16-be" if zeros[0] else "utf-16-le"
        if not re.search(r"[\0-\b\x0e-\x1f\ufffd]", start[:_HEAD].decode(wide, "replace")):
            return wide
    try:
        start.decode("utf-8")
    except UnicodeDecodeError as error:
        high = sum(map(start.count, map(bytes, zip(range(128, 256)))))
        letters = len(re.findall(rb"[A-Za-z\x80-\xff]", start))
        is_cut = error.end >= len(start) == _MOST_DECODED
        is_other = high > _MANY_HIGH * letters or any(start.count(byte) for byte in _FAR_EAST)
        if is_cut or is_other or _IN_UTF8.search(start):
            return "utf-8"
        word = re.search(rb"[\w\x80-\xff]*[\x80-\xff][\w\x80-\xff]*", start)
        read = f"{path} is not UTF-8 and is read as cp1252, which Windows writes"
        such_as = word[0][:30].decode("cp1252") if word else ""
        warnings.warn(f"{read}: {such_as!r} (if that is wrong, pass encoding=)", stacklevel=2)
        return "cp1252"
    return "utf-8"


class Meter:
    """How much of some files was read, and how much there is, in bytes on disk."""

    def __init__(self, files: list[Path]):
        self.total = sum(file.stat().st_size for file in files)
        self.done = 0


class _Counted(io.BufferedReader):
    """Remember what was read last and the lines before it, so that an error can name its line."""

    lines_before, latest = 0, b""

    def read1(self, size: int = -1) -> bytes:
        self.lines_before += self.latest.count(b"\n")
        self.latest = super().read1(size)
        return self.latest


def each_line(
    path: Path, encoding: str | None = None, *, default: str = "utf-8", newline: str | None = None,
    meter: Meter | None = None,
) -> Iterator[str]:  # fmt: skip
    """A file's lines, decompressed, one at a time; a byte order mark is dropped.

    Parameters
    ----------
    path : Path
    encoding : str, optional
        Encoding; `default` if left out.
    default : str
    newline : str, optional
        What ends lines, as in `open`.
    meter : Meter, optional
        Counts the bytes that are read.
    """
    if path.is_dir():
        raise IsADirectoryError(f"{path}: a folder, expected a file")
    name = default if encoding is None else _checked_encoding(encoding)
    try:
        raw = io.FileIO(path)
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: no such file") from None
    before = 0 if meter is None else meter.done
    with raw, io.BufferedReader(raw, 2**20) as buffered:
        zipped: Any = gzip.GzipFile(fileobj=buffered) if path.suffix == ".gz" else buffered
        try:
            counted = _Counted(zipped, 65536)
            if b"\0" in counted.peek(65536) and "16" not in name and "32" not in name:
                raise ValueError(f"{path}: a binary file, expected text")
            mark = "\N{BYTE ORDER MARK}"
            with io.TextIOWrapper(counted, name, newline=newline) as lines:
                for line in lines:
                    if meter is not None:
                        meter.done = before + raw.tell()
                    yield line.removeprefix(mark)
                    mark = ""
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(f"{path}: damaged or truncated gzip data ({error})") from None
        except UnicodeDecodeError as error:
            number = 1 + counted.lines_before + error.object[: error.start].count(b"\n")
            what = f"{path}, line {number}: byte 0x{error.object[error.start]:02x} is not {name}"
            remedy = f"save the file as {name}"
            if encoding:
                remedy = "pass encoding='latin-1' or what the file was written in"
            raise ValueError(f"{what} ({remedy})") from None
        except UnicodeError as error:
            raise ValueError(f"{path}: not {name} ({error})") from None

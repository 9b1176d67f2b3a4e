"""Files of text: decompressed, decoded and cut into lines as an editor cuts them."""

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pgmult.core.arguments import as_kind

TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")


def suffix_of(path: Path) -> str:
    """The last part of the name, lower case, a ``.gz`` looked through."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def lines_of(text: str) -> list[str]:
    """Lines as an editor counts them: they end in LF, CR LF or CR, and nowhere else.

    ``str.splitlines`` also ends them at form feeds and at the line separators of Unicode, which
    stand inside texts.
    """
    return [line.removesuffix("\n") for line in io.StringIO(text, newline=None)]


def _checked_encoding(encoding: str) -> str:
    """The name of an encoding of text."""
    as_kind(encoding, "encoding", str)
    try:
        "".encode(encoding)
    except (LookupError, UnicodeError, ValueError):
        raise ValueError(
            f"encoding must be one that Python knows, got {encoding!r} (such as 'utf-8', 'latin-1')"
        ) from None
    return encoding


def read_file(path: Path, encoding: str | None = None) -> str:
    """A file's text, decompressed; newlines are as in the file, a byte order mark is dropped."""
    return "".join(each_line(path, encoding, newline=""))


def _undecodable(
    error: UnicodeDecodeError, path: Path, lines_before: int, name: str, encoding: str | None
) -> ValueError:
    remedy = "pass encoding='latin-1' or what the file was written in"
    return ValueError(
        f"{path}, line {lines_before + 1}: byte 0x{error.object[error.start]:02x} is not {name}"
        f" ({remedy if encoding else f'save the file as {name}'})"
    )


class Meter:
    """How much of some files was read, and how much there is, in bytes on disk."""

    def __init__(self, files: list[Path]):
        self.total = sum(file.stat().st_size for file in files)
        self.done = 0


class _Metered(io.FileIO):
    """A file whose bytes are counted when they are read."""

    meter: Meter | None = None

    def readinto(self, buffer: Any) -> int:
        size = super().readinto(buffer)
        if self.meter is not None:
            self.meter.done += size
        return size


class _Counted(io.BufferedReader):
    """Remember what was read last and the lines before it, so that an error can name its line."""

    lines_before, latest = 0, b""

    def read1(self, size: int = -1) -> bytes:
        self.lines_before += self.latest.count(b"\n")
        self.latest = super().read1(size)
        return self.latest


def each_line(
    path: Path,
    encoding: str | None = None,
    *,
    default: str = "utf-8",
    newline: str | None = None,
    meter: Meter | None = None,
) -> Iterator[str]:
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
        raw = _Metered(path)
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: no such file") from None
    raw.meter = meter
    with raw, io.BufferedReader(raw, 2**20) as buffered:
        zipped: Any = gzip.GzipFile(fileobj=buffered) if path.suffix == ".gz" else buffered
        try:
            counted = _Counted(zipped, 65536)
            if b"\0" in counted.peek(65536) and "16" not in name and "32" not in name:
                raise ValueError(f"{path}: a binary file, expected text")
            mark = "\N{BYTE ORDER MARK}"
            with io.TextIOWrapper(counted, name, newline=newline) as lines:
                for line in lines:
                    yield line.removeprefix(mark)
                    mark = ""
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(f"{path}: damaged or truncated gzip data ({error})") from None
        except UnicodeDecodeError as error:
            before = counted.lines_before + error.object[: error.start].count(b"\n")
            raise _undecodable(error, path, before, name, encoding) from None
        except UnicodeError as error:
            raise ValueError(f"{path}: not {name} ({error})") from None

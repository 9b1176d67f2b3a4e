"""Files of text: decompressed, decoded and cut into lines as an editor cuts them."""

import gzip
import io
import zlib
from pathlib import Path

from pgmult.core.arguments import as_kind

__all__ = ["TABLES", "lines_of", "read_file", "suffix_of"]

TABLES = (".csv", ".tsv", ".jsonl", ".ndjson")


def suffix_of(path: Path) -> str:
    """The last part of the name, lower case, a ``.gz`` looked through."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def lines_of(text: str) -> list[str]:
    """Lines as an editor counts them: they end in LF, CR LF or CR, and nowhere else.

    ``str.splitlines`` also ends them at form feeds and at the line separators of Unicode, which
    stand inside texts.
    """
    return [line.removesuffix("\n") for line in io.StringIO(text, newline=None)]


def _known(encoding: str) -> str:
    """The name of an encoding of text."""
    as_kind(encoding, "encoding", str)
    try:
        "".encode(encoding)
    except (LookupError, UnicodeError, ValueError):
        raise ValueError(
            f"encoding must be one that Python knows, got {encoding!r} (such as 'utf-8', 'latin-1')"
        ) from None
    return encoding


def read_file(path: Path, encoding: str | None = None, own: str = "utf-8") -> str:
    """A file's text, decompressed; newlines are as in the file, a byte order mark is dropped.

    Without `encoding` it must be in the format's `own`.
    """
    if path.is_dir():
        raise IsADirectoryError(f"{path}: a folder, expected a file")
    try:
        data = path.read_bytes()
        if path.suffix == ".gz":
            data = gzip.decompress(data)
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: no such file") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path}: damaged or truncated gzip data ({error})") from None
    name = own if encoding is None else _known(encoding)
    if b"\0" in data[:65536] and "16" not in name and "32" not in name:
        raise ValueError(f"{path}: a binary file, expected text")
    try:
        return data.decode(name).removeprefix("\N{BYTE ORDER MARK}")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        remedy = "pass encoding='latin-1' or what the file was written in"
        raise ValueError(
            f"{path}, line {line}: byte 0x{data[error.start]:02x} is not {name}"
            f" ({remedy if encoding else f'save the file as {name}'})"
        ) from None
    except UnicodeError as error:
        raise ValueError(f"{path}: not {name} ({error})") from None

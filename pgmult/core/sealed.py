"""Files that survive a kill, and that report damage.

`write` puts a file beside its place, syncs it and renames it there: there is a whole file or none.

A *sealed* file ends with a CRC-32 of its content that goes on from a *seed*: the CRC-32 of what the
file is and where it belongs (`seed_of`). A reader compares it before it believes anything, so that
a flipped bit, a truncation or a file of another place is a ValueError that names the file. Two
formats are sealed: JSON (`write_json`) and arrays in an uncompressed ``.npz`` (`write_npz`).
Nothing is a pickle. Symbolic links are not followed, pipes not waited for, and no more memory is
taken than the file is long.

>>> import numpy as np, tempfile
>>> seed = seed_of("run 1", "x.npz")
>>> with tempfile.TemporaryDirectory() as folder:
...     write_npz(Path(folder, "x.npz"), {"x": np.arange(3)}, seed)
...     read_npz(Path(folder, "x.npz"), seed)
{'x': array([0, 1, 2])}
"""

import errno
import io
import json
import math
import os
import secrets
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np

from pgmult.core.typing import Array

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_CRC_DIGITS = 8
_PIECE = 2**22  # bytes that are read or written at a time
_JSON_END = b'"\n}'
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_TRIES = 20  # of a header that two threads read at a time


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn every error about a file's content into a ValueError that names the file."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:  # a hostile file can raise anything
        words = " ".join(str(error).split())[:200] or type(error).__name__
        raise ValueError(f"{path} is damaged, or not of this pgmult: {words}") from None


def seed_of(*place: str) -> int:
    """The CRC-32 from which a file's own one goes on: of what it is and where it belongs."""
    return zlib.crc32("/".join(place).encode())


# Writing


def write(path: Path, content: bytes | Callable[[BinaryIO], object], *, sync: bool = True) -> None:
    """Write a file so that it is there as a whole or not at all; what stood there is replaced.

    Parameters
    ----------
    path : path
    content : bytes, or a function that writes to the open file
    sync : bool
        Whether the content is on disk before the file has its name. The name itself is only there
        after a crash of the machine if `sync_folder` was called for its folder.

    Raises
    ------
    OSError
        If it cannot be written, naming `path`; nothing is left then.
    """
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(6)}.tmp")
    with _named(path):
        try:
            with open(temporary, "xb") as file:
                if callable(content):
                    content(file)
                else:
                    file.write(content)
                if sync:
                    file.flush()
                    os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()  # a full disk needs the room
            raise


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Within this context, errors of the system name a path."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def sync_folder(folder: Path) -> None:
    """Make the names of the files in a folder survive a crash of the machine."""
    if os.name != "posix":  # elsewhere a directory cannot be opened
        return
    with _named(folder):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def locked(folder: Path, elsewhere: str, refused: str) -> BinaryIO:
    """The open file ``folder/lock``, which no other process has; closing it, or dying, frees it.

    Parameters
    ----------
    folder : path
    elsewhere, refused : str
        What to say where another process has it, and where it cannot be made.
    """
    try:
        file = open(folder / "lock", "ab", opener=_open_itself)  # noqa: SIM115
    except OSError as error:
        raise OSError(error.errno, f"{refused}: {error.strerror}", str(folder)) from None
    if fcntl is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise BlockingIOError(errno.EAGAIN, elsewhere, str(folder)) from None
    return file


# Reading


def _open_itself(path: str, flags: int) -> int:
    """A file's descriptor; a symbolic link is not followed, a pipe not waited for."""
    safe = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    return os.open(path, flags | safe, 0o666)


def _regular(path: Path) -> BinaryIO:
    """An open file that is no link, folder or pipe."""
    try:
        file = open(path, "rb", opener=_open_itself)  # noqa: SIM115
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return file
        file.close()
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.EMLINK, errno.EISDIR, errno.ENXIO):
            raise
    raise ValueError(f"{path} is damaged: it is no regular file")


def read_bytes(path: Path) -> bytes:
    """All bytes of a regular file."""
    with _regular(path) as file:
        return file.read()


def _unsealed(path: Path) -> ValueError:
    why = "or not of pgmult, or was written for another place: its CRC-32 is wrong"
    return ValueError(f"{path} is damaged, {why}")


# JSON


def write_json(path: Path, value: Mapping[str, object]) -> None:
    """Write a sealed JSON file, for good; its name is its place."""
    content = json.dumps({**value, "crc32": ""}, indent=1).encode().removesuffix(_JSON_END)
    write(path, _sealed_json(path.name, content))
    sync_folder(path.parent)


def _sealed_json(name: str, content: bytes) -> bytes:
    return content + f"{zlib.crc32(content, seed_of(name)):08x}".encode() + _JSON_END


def read_json(path: Path) -> dict[str, Any]:
    """What `write_json` wrote."""
    text = read_bytes(path)
    if text != _sealed_json(path.name, text[: -_CRC_DIGITS - len(_JSON_END)]):
        raise _unsealed(path)
    with reading(path):
        value: dict[str, Any] = json.loads(text)
        del value["crc32"]
    return value


# Arrays


def write_npz(path: Path, arrays: Mapping[str, Array], seed: int, *, sync: bool = True) -> None:
    """Write a sealed ``.npz`` file, some megabytes at a time: a state may be half of memory.

    Parameters
    ----------
    path, sync : as for `write`
    arrays : mapping from name to array of numbers, dates or strings
    seed : int
        See `seed_of`.
    """

    def content(file: BinaryIO) -> None:
        sealing = _Sealing(file, seed)
        with zipfile.ZipFile(sealing, "w") as archive:  # type: ignore[call-overload]
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)
            archive.comment = bytes(_CRC_DIGITS)
        file.write(f"{sealing.crc:08x}".encode())

    write(path, content, sync=sync)


class _Sealing:
    """Passes on what is written to a file, but for its end, and knows the CRC-32 of that."""

    def __init__(self, file: BinaryIO, seed: int):
        self._file, self.crc = file, seed
        self._end = b""

    def write(self, data: Any) -> int:
        """Write some bytes, but for the last `_CRC_DIGITS` that there are by now."""
        view = memoryview(data)
        if len(view) < _CRC_DIGITS:
            view = memoryview(self._end + bytes(view))
            self._end = b""
        for piece in (self._end, view[:-_CRC_DIGITS]):
            self.crc = zlib.crc32(piece, self.crc)
            self._file.write(piece)
        self._end = bytes(view[-_CRC_DIGITS:])
        return len(data)

    def flush(self) -> None:
        """Nothing waits but the end."""


@contextmanager
def npz_members(path: Path, seed: int) -> Iterator[dict[str, Callable[[], IO[bytes]]]]:
    """The members of a sealed ``.npz`` file, each to be opened, after checking every byte.

    Errors inside the context are of the file: see `reading`.
    """
    with _regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        crc, left = seed, size - _CRC_DIGITS
        while left > 0 and (piece := file.read(min(left, _PIECE))):
            crc, left = zlib.crc32(piece, crc), left - len(piece)
        if file.read() != f"{crc:08x}".encode():
            raise _unsealed(path)
        with reading(path), zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            if sum(member.file_size for member in members) > size:
                raise ValueError("it is compressed")
            yield {x.filename.removesuffix(".npy"): partial(archive.open, x) for x in members}


def read_npz(
    path: Path, seed: int, wanted: Callable[[str], bool] = lambda name: True
) -> dict[str, Array]:
    """Read the arrays of a sealed ``.npz`` file whose names are wanted."""
    arrays = {}
    with npz_members(path, seed) as members:
        for name in filter(wanted, members):
            with members[name]() as file:
                arrays[name] = parsed_array(file.read())
    return arrays


def array_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[np.generic]]:
    """Shape, whether it is in Fortran's order, and dtype of the array in a ``.npy`` file.

    Python parses the header, and Python 3.11 may fail at that with a SystemError where two threads
    parse anything at a time: it is tried again.
    """
    place = file.tell()
    for _ in range(_TRIES):
        with suppress(SystemError):
            return _HEADERS[np.lib.format.read_magic(file)](file)
        file.seek(place)
    return _HEADERS[np.lib.format.read_magic(file)](file)


def parsed_array(content: bytes) -> Array:
    """The array in the content of a ``.npy`` file, which must be as long as its header claims."""
    file = io.BytesIO(content)
    shape, is_fortran, dtype = array_header(file)
    if dtype.hasobject:
        raise ValueError("it holds objects")
    if math.prod(shape) * dtype.itemsize != len(content) - file.tell():
        raise ValueError(f"it is too short or too long for {dtype} {shape}")
    order: Any = "F" if is_fortran else "C"
    return np.ndarray(shape, dtype, content, file.tell(), order=order).copy("K")

"""What a chain's workers and driver tell each other: files in the chain's folder of the run.

::

    chain-0/
      start.npz                      what all rows start from, until they have
      shared.000000120.npz           what all rows share after 120 sweeps, and how to make the last
      rows.000000100.0-65536.npz     what is of rows 0 to 65,535 alone after 100 sweeps

A shared file is there before the tasks of its sweep, and files of rows at a cut. The checkpoint
that counts on files of rows is written when they are on disk, and older ones go only then. Every
file is written under a name of its own and renamed, and whoever reads it checks whose it is and
every byte. None is ever changed: made again, it has the same content.
"""

import json
import os
import re
import secrets
import zipfile
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgmult.sampling.blocks import Ask
from pgmult.sampling.codec import decode
from pgmult.sampling.store import (
    _bundle,
    _seed,
    _sync_folder,
    _unpacked,
    _unsealed,
    array_header,
    reading,
)

__all__ = ["ChainFiles", "Part", "Shared"]

_OURS = re.compile(r"(shared|rows)\.(\d{9,})\..*")
_START = "start.npz"
_CHUNK = 2**22  # bytes of an array that are read or written at a time


class Part(NamedTuple):
    """Neighbouring rows: ``start <= row < stop``."""

    start: int
    stop: int


class Shared(NamedTuple):
    """What all rows share after a sweep, and how rows are moved by that sweep.

    Attributes
    ----------
    state : state
        Without its rows.
    key : uint64 array, ``(2,)``
    asks : tuple of (int, Ask)
        Those of its shared step that moved rows, and their numbers.
    """

    state: Any
    key: NDArray[np.uint64]
    asks: tuple[tuple[int, Ask], ...] = ()


class ChainFiles:
    """One chain's files of rows and of what they share.

    Parameters
    ----------
    folder : path
        The chain's, in a run directory.
    run : str
        The run's identity, so that no file of another is taken for one of its.
    """

    def __init__(self, folder: str | os.PathLike[str], run: str):
        self.folder = Path(folder)
        self.run = run

    def write_shared(self, sweep: int, shared: Shared) -> None:
        """What rows share after so many sweeps.

        Not synced: a machine that goes down takes the driver along, which makes it again.
        """
        asks = [(number, *ask) for number, ask in shared.asks]
        self._write(_shared_name(sweep), {**shared._asdict(), "asks": asks})

    def read_shared(self, sweep: int, modules: Collection[str] = ()) -> Shared:
        """What was written."""
        state, key, asks = self._read(_shared_name(sweep), Shared._fields, modules)
        return Shared(state, key, tuple((number, Ask(*ask)) for number, *ask in asks))

    def write_start(self, found: Any) -> None:
        """What all rows start from."""
        self._write(_START, {"found": found})

    def read_start(self, modules: Collection[str] = ()) -> Any:
        """What was written."""
        (found,) = self._read(_START, ("found",), modules)
        return found

    def _write(self, name: str, entries: Mapping[str, Any]) -> None:
        content = _bundle(entries, self._seed(name))
        _put(self.folder / name, lambda file: file.write(content))

    def _read(self, name: str, names: Sequence[str], modules: Collection[str]) -> list[Any]:
        """These entries of a file, whose every byte is checked."""
        content = _unsealed(self.folder / name, self._seed(name))
        with reading(self.folder / name):
            arrays = _unpacked(content)
            entries = json.loads(arrays["tree"].tobytes())["$dict"]
            return [decode(entries[of], arrays, modules) for of in names]

    def write_rows(self, sweep: int, start: int, rows: Mapping[str, NDArray[Any]]) -> None:
        """Fields of the state, of rows from `start` on, after so many sweeps; on disk for good."""
        name = _rows_name(sweep, start, start + _num_rows(rows))

        def write(file: BinaryIO) -> None:
            with zipfile.ZipFile(file, "w") as archive:  # a CRC-32 of every array is in it
                for field, array in rows.items():
                    with archive.open(f"{field}.npy", "w", force_zip64=True) as member:
                        _write_array(member, array)
                archive.comment = self._mark(name)
            file.flush()
            os.fsync(file.fileno())

        _put(self.folder / name, write)

    def read_rows(
        self, sweep: int, start: int, stop: int, parts: Sequence[Part]
    ) -> dict[str, NDArray[Any]]:
        """Fields of rows ``start <= row < stop``, from the files that hold some of them."""
        rows: dict[str, NDArray[Any]] = {}
        reached = start
        for part in sorted(parts):
            lo, hi = max(start, part.start), min(stop, part.stop)
            if lo >= hi:
                continue
            path = self.folder / _rows_name(sweep, *part)
            with reading(path), zipfile.ZipFile(path) as archive:
                if archive.comment != self._mark(path.name):
                    raise ValueError("it is of another run or place")
                for member in archive.infolist():
                    field = member.filename.removesuffix(".npy")
                    with archive.open(member) as file:
                        _read_array(file, field, rows, stop - start, part, lo, hi, start)
            if lo != reached:
                break
            reached = hi
        if reached != stop:
            raise ValueError(f"rows {reached} to {stop} after sweep {sweep} are in no file")
        return rows

    def settle(self) -> None:
        """Make the names of files that were renamed last."""
        _sync_folder(self.folder)

    def drop_all_but(self, sweep: float, parts: Collection[Part]) -> None:
        """Remove what a chain does not need that goes on from these files of rows."""
        (self.folder / _START).unlink(missing_ok=True)
        needed = {_rows_name(int(sweep), *part) for part in parts}
        for path in self.folder.iterdir():
            match = _OURS.fullmatch(path.name)
            older = match is not None and (match[1] == "rows" or int(match[2]) < sweep)
            if older and path.name not in needed:
                with suppress(PermissionError):  # Windows removes no open file: the next time
                    path.unlink(missing_ok=True)

    def _seed(self, name: str) -> int:
        return _seed(self.run, f"{self.folder.name}/{name}")

    def _mark(self, name: str) -> bytes:
        return f"{self._seed(name):08x}".encode()


def _shared_name(sweep: int) -> str:
    return f"shared.{sweep:09}.npz"


def _rows_name(sweep: int, start: int, stop: int) -> str:
    return f"rows.{sweep:09}.{start}-{stop}.npz"


def _num_rows(rows: Mapping[str, NDArray[Any]]) -> int:
    lengths = {len(array) for array in rows.values()}
    (length,) = lengths
    return length


def _write_array(file: IO[bytes], array: NDArray[Any]) -> None:
    array = np.ascontiguousarray(array)
    header = np.lib.format.header_data_from_array_1_0(array)
    np.lib.format.write_array_header_1_0(file, header)
    content = _bytes_of(array)
    for start in range(0, len(content), _CHUNK):
        file.write(content[start : start + _CHUNK])


def _read_array(
    file: IO[bytes],
    field: str,
    rows: dict[str, NDArray[Any]],
    num_rows: int,
    part: Part,
    lo: int,
    hi: int,
    origin: int,
) -> None:
    """Rows lo to hi of one file's array, into their place; the others are checked, too."""
    shape, _, dtype = array_header(file)
    if shape[0] != part.stop - part.start or dtype.hasobject:
        raise ValueError(f"it holds {dtype} {shape} of {field}")
    if field not in rows:
        rows[field] = np.empty((num_rows, *shape[1:]), dtype)
    size = dtype.itemsize * int(np.prod(shape[1:], dtype=np.int64))
    _skip(file, (lo - part.start) * size)
    into = _bytes_of(rows[field][lo - origin : hi - origin])
    while len(into):
        piece = file.read(min(_CHUNK, len(into)))
        if not piece:
            raise ValueError(f"{field} is cut off")
        into[: len(piece)] = piece
        into = into[len(piece) :]
    _skip(file, (part.stop - hi) * size)


def _bytes_of(array: NDArray[Any]) -> memoryview:
    """The memory of an array whose rows follow each other."""
    flat: Any = array.reshape(-1).view(np.uint8)
    return memoryview(flat)


def _skip(file: IO[bytes], size: int) -> None:
    while size > 0:
        piece = file.read(min(_CHUNK, size))
        if not piece:
            raise ValueError("it is cut off")
        size -= len(piece)


def _put(path: Path, write: Callable[[BinaryIO], Any]) -> None:
    """A file as a whole or not at all, however many write the same at a time."""
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        try:
            with open(temporary, "xb") as file:
                write(file)
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()  # a full disk needs the room
            raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error

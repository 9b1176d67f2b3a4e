"""Arrays that stay in their files: data larger than memory.

A `MappedArray` is an array whose bytes the operating system reads from a ``.npy`` file when they
are touched and forgets when memory is short. It knows its file and the SHA-256 of its content: so
it is hashed without being read, and written elsewhere as a reference. What is made of it (a slice,
a sum) is an array of its own, without a file.

`ArrayWriter` appends to such a file, of which the length need not be known, and hashes what it
writes.
"""

import errno
import hashlib
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["ArrayFile", "ArrayWriter", "MappedArray", "content_hash", "pieces"]

_HEADER = 128  # bytes before the numbers, whatever their number
_PIECE = 2**22  # bytes that are looked at together


class ArrayFile(NamedTuple):
    """A vector in a ``.npy`` file.

    Attributes
    ----------
    path : str
        Absolute.
    dtype : str
        As numpy writes it: ``"<i4"``.
    length : int
    sha256 : str
        Of the content: the numbers, without the header.
    """

    path: str
    dtype: str
    length: int
    sha256: str

    def open(self) -> "MappedArray":
        """The array.

        Raises
        ------
        FileNotFoundError
        ValueError
            If the file is of another length or dtype.
        """
        path = Path(self.path)
        if not path.is_file():
            raise FileNotFoundError(
                errno.ENOENT, "no such file (were the data moved or deleted?)", self.path
            )
        with path.open("rb") as file:
            found = file.read(_HEADER)
        try:
            dtype = np.dtype(self.dtype)
            fits = dtype.kind in "biufUSM" and found == _header(dtype, self.length)
        except TypeError:  # no dtype
            fits = False
        if not fits or path.stat().st_size != _HEADER + self.length * dtype.itemsize:
            raise ValueError(
                f"{path} is damaged, truncated or of something else: expected {self.length:,}"
                f" entries of {self.dtype}"
            )
        # "c": written pages would be ours alone. Compiled code is compiled anew for arrays that
        # cannot be written to.
        array = np.memmap(path, dtype, "c", _HEADER, (self.length,)).view(MappedArray)
        array.file = self
        return array


class MappedArray(np.ndarray):
    """An array in a file, which `file` tells; None of what was made of such an array."""

    file: ArrayFile | None

    def __array_finalize__(self, made_of: Any) -> None:
        self.file = None

    def __reduce__(self) -> Any:
        if self.file is None:
            return np.asarray(self).__reduce__()
        return ArrayFile.open, (self.file,)

    def check(self) -> None:
        """Read all of it.

        Raises
        ------
        ValueError
            If the content is not the one that was written.
        """
        if self.file is not None and _hash(self) != self.file.sha256:
            raise ValueError(f"{self.file.path} is damaged: its SHA-256 is not the one it had")


class ArrayWriter:
    """Appends to a vector in a ``.npy`` file. Use it in a ``with`` block."""

    def __init__(self, path: Path, dtype: Any):
        self._path, self._dtype = path, np.dtype(dtype)
        self._file = path.open("xb")
        self._file.write(_header(self._dtype, 0))
        self._hash = hashlib.sha256()
        self.length = 0

    def append(self, values: NDArray[Any]) -> None:
        """Write more numbers, in the file's dtype."""
        for piece in pieces(values):
            content = np.ascontiguousarray(piece, dtype=self._dtype).tobytes()
            self._hash.update(content)
            self._file.write(content)
        self.length += len(values)

    def finish(self) -> ArrayFile:
        """Put everything on disk; the file's description."""
        self._file.seek(0)
        self._file.write(_header(self._dtype, self.length))
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return ArrayFile(
            str(self._path.absolute()), self._dtype.str, self.length, self._hash.hexdigest()
        )

    def __enter__(self) -> "ArrayWriter":
        return self

    def __exit__(self, *error: Any) -> None:
        self._file.close()


def pieces(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """A vector in pieces of a few megabytes."""
    step = max(1, _PIECE // max(1, array.dtype.itemsize))
    for start in range(0, len(array), step):
        yield array[start : start + step]


def content_hash(array: NDArray[Any]) -> str:
    """SHA-256 of an array's numbers in C order; one in a file knows it."""
    if isinstance(array, MappedArray) and array.file is not None:
        return array.file.sha256
    return _hash(array)


def _hash(array: NDArray[Any]) -> str:
    digest = hashlib.sha256()
    for piece in pieces(np.asarray(array).reshape(-1)):
        digest.update(piece.tobytes())
    return digest.hexdigest()


def _header(dtype: np.dtype[Any], length: int) -> bytes:
    """What stands before the numbers of a ``.npy`` file, format 1.0, of one length for all."""
    text = f"{{'descr': {dtype.str!r}, 'fortran_order': False, 'shape': ({length},), }}"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", _HEADER - 10) + f"{text:<117}\n".encode()

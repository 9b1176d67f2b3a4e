"""Arrays that stay in their files: data larger than memory.

A `MappedArray` is an array whose bytes the operating system reads from a ``.npy`` file when they
are touched and forgets when memory is short. It knows its file, which says what its content must
be: a checksum of every block of some megabytes, compared before the numbers are used (once in a
process), and the SHA-256 of all, so that the array is hashed without being read and written
elsewhere as a reference. What is made of it (a slice, a sum) is an array of its own, without a
file.

`ArrayWriter` appends to such a file, of which the length need not be known, and makes the checksums
on the way.
"""

import errno
import hashlib
import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pgmult.core.typing import AnyArray, Array, BoolArray

_HEADER = 128  # bytes before the numbers, whatever their number
_BLOCK = 2**22  # bytes of a block, which has a checksum
_DIGITS = 8  # of one
_PAGE = 2**12  # bytes of a block whose sum is in its checksum

_checked: dict[tuple[object, ...], BoolArray] = {}
"""Of every file, which of its blocks this process has compared."""


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
    checksums : str
        Of each block of the content, eight hexadecimal digits.
    """

    path: str
    dtype: str
    length: int
    sha256: str
    checksums: str

    def open(self, *, check: bool = True) -> "MappedArray":
        """The array.

        Parameters
        ----------
        check : bool
            Whether to read all of it now and compare checksums, if this process has not done so
            before. Without, whoever uses a part of it must take it from `part_of`.

        Raises
        ------
        FileNotFoundError
        ValueError
            If the file is of another length or dtype, or its content is damaged.
        """
        path = Path(self.path)
        if not path.is_file():
            raise FileNotFoundError(errno.ENOENT, "no such file (moved or deleted?)", self.path)
        with path.open("rb") as file:
            header, status = file.read(_HEADER), os.fstat(file.fileno())
        dtype = np.dtype(object)
        with suppress(TypeError):  # no dtype
            dtype = np.dtype(self.dtype)
        size = self.length * dtype.itemsize
        blocks = -(-size // _BLOCK)
        expected = _header(dtype, self.length), _HEADER + size, _DIGITS * blocks
        found = header, status.st_size, len(self.checksums)
        if dtype.kind not in "biufUSM" or found != expected:
            wanted = f"{self.length:,} entries of {self.dtype}"
            raise ValueError(f"{path} is damaged, truncated or of something else, not {wanted}")
        # "c": written pages would be ours alone. Compiled code is compiled anew for arrays that
        # cannot be written to.
        array = np.memmap(path, dtype, "c", _HEADER, (self.length,)).view(MappedArray)
        array.file = self
        identity = (self, status.st_ino, status.st_mtime_ns)
        array.checked = _checked.setdefault(identity, np.zeros(blocks, dtype=np.bool_))
        if check:
            array.check()
        return array


class MappedArray(np.ndarray):
    """An array in a file, described by `file`; None for arrays that are computed from it."""

    file: ArrayFile | None
    checked: BoolArray | None

    def __array_finalize__(self, made_of: object) -> None:
        self.file = self.checked = None

    def __reduce__(self) -> Any:
        if self.file is None:
            return np.asarray(self).__reduce__()
        return ArrayFile.open, (self.file,)

    def check(self, start: int = 0, stop: int | None = None) -> None:
        """Compare the checksums of the blocks that hold the entries ``start <= i < stop``.

        Raises
        ------
        ValueError
            If the content is not the one that was written.
        """
        if self.file is None or self.checked is None:
            return
        size, stop = self.dtype.itemsize, len(self) if stop is None else stop
        first, last = start * size // _BLOCK, -(-stop * size // _BLOCK)
        if self.checked[first:last].all():
            return
        content: Any = np.asarray(self).view(np.uint8)
        for block in np.flatnonzero(~self.checked[first:last]) + first:
            actual = _checksum(content[block * _BLOCK : (block + 1) * _BLOCK])
            if actual != self.file.checksums[block * _DIGITS : (block + 1) * _DIGITS]:
                raise ValueError(f"{self.file.path} is damaged: its block {block} has changed")
            self.checked[block] = True


def part_of(array: Array, part: slice) -> AnyArray:
    """Neighbouring entries of a vector, without a copy; of one in a file, once they are checked."""
    if isinstance(array, MappedArray):
        array.check(part.start, part.stop)
    return np.asarray(array)[part]


class ArrayWriter:
    """Appends to a vector in a ``.npy`` file. Use it in a ``with`` block."""

    def __init__(self, path: Path, dtype: Any):
        self._path, self._dtype = path, np.dtype(dtype)
        self._file = path.open("xb")
        self._file.write(_header(self._dtype, 0))
        self._hash = hashlib.sha256()
        self._checksums, self._block = list[str](), bytearray()
        self.length = 0

    def append(self, values: AnyArray) -> None:
        """Write more numbers, in the file's dtype."""
        for piece in pieces(values):
            content = np.ascontiguousarray(piece, dtype=self._dtype).tobytes()
            self._hash.update(content)
            self._file.write(content)
            self._block += content
            while len(self._block) >= _BLOCK:
                self._end_block()
        self.length += len(values)

    def _end_block(self) -> None:
        self._checksums.append(_checksum(np.frombuffer(bytes(self._block[:_BLOCK]), np.uint8)))
        del self._block[:_BLOCK]

    def finish(self) -> ArrayFile:
        """Put everything on disk; the file's description."""
        if self._block:
            self._end_block()
        self._file.seek(0)
        self._file.write(_header(self._dtype, self.length))
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        path, sha256 = str(self._path.absolute()), self._hash.hexdigest()
        return ArrayFile(path, self._dtype.str, self.length, sha256, "".join(self._checksums))

    def __enter__(self) -> "ArrayWriter":
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()


def pieces(array: Array) -> Iterator[AnyArray]:
    """A vector in pieces of a few megabytes."""
    step = max(1, _BLOCK // max(1, array.dtype.itemsize))
    for start in range(0, len(array), step):
        yield array[start : start + step]


def _checksum(block: AnyArray) -> str:
    """The CRC-32 of sums of a block's 64-bit words, by place in their page and by page.

    These take a sixth of the time that a CRC-32 of all bytes does. Whatever follows the last whole
    page is taken as it is.
    """
    full = len(block) // _PAGE * _PAGE
    words = block[:full].view("<u8").reshape(-1, _PAGE // 8)
    crc = 0
    for sums in (words.sum(axis=0), words.sum(axis=1)):
        crc = zlib.crc32(sums.astype("<u8").tobytes(), crc)
    return f"{zlib.crc32(block[full:].tobytes(), crc):08x}"


def content_hash(array: Array) -> str:
    """SHA-256 of an array's numbers in C order; one in a file knows it."""
    if isinstance(array, MappedArray) and array.file is not None:
        return array.file.sha256
    digest = hashlib.sha256()
    for piece in pieces(np.asarray(array).reshape(-1)):
        digest.update(piece.tobytes())
    return digest.hexdigest()


def _header(dtype: np.dtype[np.generic], length: int) -> bytes:
    """What stands before the numbers of a ``.npy`` file, format 1.0, of one length for all."""
    text = f"{{'descr': {dtype.str!r}, 'fortran_order': False, 'shape': ({length},), }}"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", _HEADER - 10) + f"{text:<117}\n".encode()

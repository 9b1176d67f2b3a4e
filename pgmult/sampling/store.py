"""The run directory: a run on disk that survives being killed at any moment.

::

    run/
      meta.json             schema, versions, model, seed, settings, axes, hash of the data
      coords.npz            labels along the axes
      inputs.npz            the data and initial values, as plain arrays
      lock                  held by the process that writes
      chain-0/
        checkpoint.npz      state, generator and counters after some sweep
        mu.000000000-000000250.1c291ca3.npy     draws 0 to 249 of mu, and the file's CRC-32

Draws are appended in parts, and each part is on disk before the checkpoint that counts it. A
checkpoint is written beside the old one, synced and renamed over it, so there is always a whole
one; parts beyond it belong to sweeps that a resumed chain makes again, with the same bits, and are
dropped. Nothing here is a pickle.
"""

import errno
import io
import json
import math
import os
import re
import time
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from pgmult.sampling.codec import decode, encode

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["ChainWriter", "Run", "RunWriter", "StoredDraws", "flat_entries", "rectangle"]

SCHEMA = 1
FLUSH_SECONDS = 5.0
"""How often a chain writes its draws and a checkpoint."""
FLUSH_SHARE = 0.05
"""The share of a chain's time that writing may take: where it is slow, it is done less often."""
FLUSH_BYTES = 2**25
"""A part is written as soon as it holds so much."""

_PART = re.compile(r"(\w+)\.(\d{9,})-(\d{9,})\.([0-9a-f]{8})\.npy")
_CRC_DIGITS = 8
_BEFORE_INPUTS = {"lock", "coords.npz", "meta.json"}


@dataclass(frozen=True)
class Part:
    """One file of draws: ``start <= draw < stop`` of one variable."""

    path: Path
    start: int
    stop: int
    crc: int

    def read(self) -> NDArray[Any]:
        """The draws, ``(stop - start, ...)``, after checking every byte."""
        content = self.path.read_bytes()
        if zlib.crc32(content) != self.crc:
            raise ValueError(
                f"{self.path} is damaged: its CRC-32 is {zlib.crc32(content):08x} and should be"
                f" {self.crc:08x} (pgmult.load(..., damaged='drop') reads the draws before it)"
            )
        array: NDArray[Any] = np.load(io.BytesIO(content), allow_pickle=False)
        return array


class Run:
    """A run directory, open for reading; another process may be writing to it.

    Raises
    ------
    FileNotFoundError
        If there is no directory, or no run in it.
    ValueError
        If ``meta.json`` is damaged or of a newer schema.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)
        file = self.path / "meta.json"
        try:
            content = file.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            raise FileNotFoundError(
                errno.ENOENT, "not a run directory of pgmult: there is no meta.json", str(self.path)
            ) from None
        try:
            self.meta: dict[str, Any] = json.loads(content)
            schema = self.meta["pgmult_run"]
        except (ValueError, TypeError, KeyError):
            raise ValueError(f"{file} is damaged, or not of pgmult") from None
        if schema != SCHEMA:
            raise ValueError(
                f"{file} has schema {schema} and this pgmult reads schema {SCHEMA}"
                f" (it was written by pgmult {self.meta.get('version')})"
            )

    @property
    def num_chains(self) -> int:
        """Chains of the run, begun or not."""
        return int(self.meta["chains"])

    @property
    def names(self) -> list[str]:
        """Everything that is kept: variables, then sample statistics."""
        return [*self.meta["dims"], *self.meta["sample_stats"]]

    def coords(self) -> dict[str, NDArray[Any]]:
        """Labels of the labelled axes."""
        with _read_npz(self.path / "coords.npz") as file:
            return dict(file)

    def inputs(self, modules: Collection[str] = ()) -> dict[str, Any]:
        """What the run was begun with, ``{"data": ..., "initvals": ...}``."""
        file = self.path / "inputs.npz"
        if not file.exists():
            raise FileNotFoundError(
                errno.ENOENT, "the run was stopped before its data was written: begin again", file
            )
        inputs: dict[str, Any] = _read_bundle(file, modules)
        return inputs

    def checkpoint(self, chain: int, modules: Collection[str] = ()) -> dict[str, Any] | None:
        """State, generator and counters of a chain; None before its first checkpoint."""
        file = self._folder(chain) / "checkpoint.npz"
        return _read_bundle(file, modules) if file.exists() else None

    def counters(self, chain: int) -> dict[str, Any]:
        """The numbers of a chain's checkpoint, without reading its state."""
        file = self._folder(chain) / "checkpoint.npz"
        if not file.exists():
            return {"kept": 0, "sweep": 0, "seconds": 0.0}
        return _read_bundle(file, only=("kept", "sweep", "seconds"))

    def parts(self, chain: int, name: str, kept: int) -> list[Part]:
        """The files that hold draws 0 to `kept` of one variable, in order."""
        found = sorted(
            (part for part in self._all_parts(chain, name) if part.stop <= kept),
            key=lambda part: part.start,
        )
        reached = 0
        for part in found:
            if part.start != reached:
                break
            reached = part.stop
        if reached != kept:
            raise ValueError(
                f"draws {reached} to {kept} of {name} are missing in {self._folder(chain)}"
                " (pgmult.load(..., damaged='drop') reads the draws before them)"
            )
        return found

    def undamaged(self, chain: int) -> int:
        """How many draws of a chain can be read, checking every byte of them."""
        try:
            limit: float = self.counters(chain)["kept"]
        except ValueError:
            limit = float("inf")
        return min(self._undamaged(chain, name, limit) for name in self.names)

    def _undamaged(self, chain: int, name: str, limit: float) -> int:
        by_start = {part.start: part for part in self._all_parts(chain, name) if part.stop <= limit}
        reached = 0
        while reached in by_start:
            try:
                by_start[reached].read()
            except (OSError, ValueError):
                break
            reached = by_start[reached].stop
        return reached

    def _folder(self, chain: int) -> Path:
        return self.path / f"chain-{chain}"

    def _all_parts(self, chain: int, name: str | None = None) -> Iterator[Part]:
        with suppress(FileNotFoundError):
            for path in self._folder(chain).iterdir():
                match = _PART.fullmatch(path.name)
                if match and name in (None, match[1]):
                    yield Part(path, int(match[2]), int(match[3]), int(match[4], 16))


class RunWriter(Run):
    """A run directory that this process, and no other, writes to. Use it in a ``with`` block."""

    def __init__(self, path: str | os.PathLike[str]):
        super().__init__(path)
        self._lock = _lock(self.path)
        super().__init__(path)  # what was there before the lock may have changed

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        meta: Mapping[str, Any],
        coords: Mapping[str, NDArray[Any]],
        inputs: Mapping[str, Any] | None,
    ) -> "RunWriter":
        """Begin a run in a new or empty directory.

        Raises
        ------
        FileExistsError
            If something is there already.
        OSError
            If the directory cannot be made or written to, naming it.
        TypeError
            If a part of `inputs` cannot be written as plain arrays.
        """
        folder = Path(path)
        _refuse_occupied(folder)
        content = b"" if inputs is None else _bundle(inputs)
        folder.mkdir(parents=True, exist_ok=True)
        lock = _lock(folder)
        try:
            _replace(folder / "coords.npz", _npz({k: _plain(v) for k, v in coords.items()}))
            _replace(
                folder / "meta.json",
                json.dumps({"pgmult_run": SCHEMA, **meta}, indent=1).encode(),
            )
            if inputs is not None:
                _replace(folder / "inputs.npz", content)
        finally:
            lock.close()
        return cls(path)

    def __enter__(self) -> "RunWriter":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._lock.close()

    def update(self, **changes: Any) -> None:
        """Change entries of ``meta.json``."""
        self.meta |= changes
        _replace(self.path / "meta.json", json.dumps(self.meta, indent=1).encode())

    def chain(self, number: int) -> "ChainWriter":
        """Go on with a chain, after dropping parts that its checkpoint does not count."""
        folder = self._folder(number)
        folder.mkdir(exist_ok=True)
        kept = self.counters(number)["kept"]
        for part in self._all_parts(number):
            if part.stop > kept:
                part.path.unlink()
        _sync_folder(folder)
        return ChainWriter(folder, kept)


class ChainWriter:
    """Appends one chain's draws and writes its checkpoints."""

    def __init__(self, folder: Path, kept: int):
        self._folder = folder
        self._kept = kept
        self._waiting: dict[str, list[NDArray[Any]]] = {}
        self._bytes = 0
        self._next_time = time.monotonic() + FLUSH_SECONDS

    def append(self, values: Mapping[str, NDArray[Any]]) -> None:
        """Take one draw of every variable."""
        for name, value in values.items():
            self._waiting.setdefault(name, []).append(np.array(value))
            self._bytes += value.nbytes

    def due(self) -> bool:
        """Is it time to commit?"""
        return self._bytes >= FLUSH_BYTES or time.monotonic() >= self._next_time

    def commit(self, checkpoint: Mapping[str, Any]) -> None:
        """Write the draws taken since the last time, then the checkpoint that counts them."""
        began = time.monotonic()
        stop = self._kept
        for name, values in self._waiting.items():
            buffer = io.BytesIO()
            np.save(buffer, np.stack(values), allow_pickle=False)
            content = buffer.getvalue()
            stop = self._kept + len(values)
            crc = zlib.crc32(content)
            _write(self._folder / f"{name}.{self._kept:09}-{stop:09}.{crc:08x}.npy", content)
        if self._waiting:
            _sync_folder(self._folder)
        _replace(self._folder / "checkpoint.npz", _bundle({"kept": stop, **checkpoint}))
        self._kept, self._waiting, self._bytes = stop, {}, 0
        ended = time.monotonic()
        self._next_time = ended + max(FLUSH_SECONDS, (ended - began) / FLUSH_SHARE)


class StoredDraws(Mapping[str, NDArray[Any]]):
    """Variables of a run directory, ``(chain, draw, ...)``, each read when it is first used.

    Parameters
    ----------
    run : Run
    names : collection of str
    kept : mapping from a chain's number to how many of its draws can be read
    num_draws : int
        Draws of each chain to show, at most the smallest of `kept`.
    empty_shapes : mapping from name to the axes' sizes where there is no draw to tell them
    """

    def __init__(
        self,
        run: Run,
        names: Collection[str],
        kept: Mapping[int, int],
        num_draws: int,
        empty_shapes: Mapping[str, tuple[int, ...]],
    ):
        self._arrays: dict[str, NDArray[Any]] = {}
        self._num_draws = num_draws
        self._parts: dict[str, list[list[Part]]] = {}
        self._kinds: dict[str, tuple[tuple[int, ...], np.dtype[Any]]] = {}
        for name in names:
            chains = [run.parts(chain, name, count) for chain, count in kept.items()]
            self._parts[name] = [
                [part for part in parts if part.start < num_draws] for parts in chains
            ]
            first = next((parts[0] for parts in self._parts[name] if parts), None)
            if first is None:
                self._kinds[name] = (empty_shapes[name], np.dtype(np.float64))
            else:
                shape, dtype = _header(first.path)
                self._kinds[name] = (shape[1:], dtype)

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._arrays:
            array = np.empty(self.shape_of(name), self._kinds[name][1])
            for chain, draws, values in self._pieces(name):
                array[chain, draws] = values
            self._arrays[name] = array
        return self._arrays[name]

    def __contains__(self, name: object) -> bool:
        return name in self._parts

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def shape_of(self, name: str) -> tuple[int, ...]:
        """``(chain, draw, ...)`` of a variable, without reading its draws."""
        return (len(self._parts[name]), self._num_draws, *self._kinds[name][0])

    def entries(self, name: str, chosen: NDArray[np.int64]) -> NDArray[Any]:
        """Some entries ``(chain, draw, len(chosen))``, holding one part in memory at a time."""
        if name in self._arrays:
            return flat_entries(self._arrays[name], 2)[:, :, chosen]
        array = np.empty((*self.shape_of(name)[:2], len(chosen)), self._kinds[name][1])
        for chain, draws, values in self._pieces(name):
            array[chain, draws] = flat_entries(values, 1)[:, chosen]
        return array

    def each(self, name: str, chain: int) -> Iterator[NDArray[Any]]:
        """The draws of one chain in order, holding one part in memory at a time."""
        if name in self._arrays:
            yield from self._arrays[name][chain]
            return
        for part in self._parts[name][chain]:
            yield from part.read()[: self._num_draws - part.start]

    def _pieces(self, name: str) -> Iterator[tuple[int, slice, NDArray[Any]]]:
        for chain, parts in enumerate(self._parts[name]):
            for part in parts:
                stop = min(part.stop, self._num_draws)
                yield chain, slice(part.start, stop), part.read()[: stop - part.start]


def flat_entries(array: NDArray[Any], lead: int) -> NDArray[Any]:
    """The array with all axes after the first `lead` as one."""
    return array.reshape(*array.shape[:lead], math.prod(array.shape[lead:]))


def rectangle(kept: list[int]) -> tuple[list[int], int]:
    """The chains, and how many draws of each, that make the largest rectangle of draws."""
    best, draws = list(range(len(kept))), min(kept)
    for least in sorted(set(kept)):
        chains = [chain for chain, count in enumerate(kept) if count >= least]
        if len(chains) * least > len(best) * draws:
            best, draws = chains, least
    return best, draws


def _refuse_occupied(folder: Path) -> None:
    if not folder.exists():
        return
    if not folder.is_dir():
        raise FileExistsError(
            errno.EEXIST, "store must be a directory, this is a file", str(folder)
        )
    there = {path.name for path in folder.iterdir() if path.suffix != ".tmp"}
    if there <= _BEFORE_INPUTS:
        return  # empty, or a run that was killed before its data was written
    if "meta.json" in there and "coords.npz" in there:
        raise FileExistsError(
            errno.EEXIST,
            "store holds a run already (pgmult.resume goes on with it; or name another directory)",
            str(folder),
        )
    raise FileExistsError(
        errno.EEXIST,
        "store must be a new or empty directory, and this one is not empty and not a run of pgmult",
        str(folder),
    )


def _lock(folder: Path) -> BinaryIO:
    """The open lock file; closing it, or dying, releases the lock."""
    try:
        file = open(folder / "lock", "ab")  # noqa: SIM115
    except OSError as error:
        raise OSError(
            error.errno, f"the run directory cannot be written to: {error.strerror}", str(folder)
        ) from None
    if fcntl is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise BlockingIOError(
                errno.EAGAIN, "another process is writing to this run", str(folder)
            ) from None
    return file


def _plain(labels: NDArray[Any]) -> NDArray[Any]:
    """Labels that a .npy file can hold: of mixed types, as strings."""
    return labels.astype(np.str_) if labels.dtype.hasobject else labels


def _npz(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The content of an .npz file that ends, in its comment, with the CRC-32 of all before."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, array in arrays.items():
            with file.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
        file.comment = bytes(_CRC_DIGITS)
    content = buffer.getvalue()[:-_CRC_DIGITS]
    return content + f"{zlib.crc32(content):08x}".encode()


def _read_npz(path: Path) -> "np.lib.npyio.NpzFile":
    content = path.read_bytes()
    if f"{zlib.crc32(content[:-_CRC_DIGITS]):08x}".encode() != content[-_CRC_DIGITS:]:
        raise ValueError(f"{path} is damaged: its CRC-32 is not the one at its end")
    file: np.lib.npyio.NpzFile = np.load(io.BytesIO(content), allow_pickle=False)
    return file


def _bundle(value: Mapping[str, Any]) -> bytes:
    """A mapping of encodable values as the content of an .npz file."""
    arrays: dict[str, NDArray[Any]] = {}
    tree = json.dumps(encode(value, arrays))
    return _npz({"tree": np.frombuffer(tree.encode(), np.uint8), **arrays})


def _read_bundle(
    path: Path, modules: Collection[str] = (), only: Collection[str] = ()
) -> dict[str, Any]:
    """The mapping that was written, or some entries of it that hold no arrays."""
    with _read_npz(path) as file:
        tree = json.loads(file["tree"].tobytes())
        if only:
            return {name: decode(tree["$dict"][name]) for name in only}
        value: dict[str, Any] = decode(tree, file, modules)
    return value


def _header(path: Path) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and dtype of a .npy file."""
    try:
        with open(path, "rb") as file:
            version = np.lib.format.read_magic(file)
            read = (
                np.lib.format.read_array_header_1_0
                if version == (1, 0)
                else np.lib.format.read_array_header_2_0
            )
            shape, _, dtype = read(file)
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    return shape, dtype


def _write(path: Path, content: bytes) -> None:
    try:
        with open(path, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def _replace(path: Path, content: bytes) -> None:
    """Write a file so that it is there as a whole or not at all."""
    temporary = path.with_name(path.name + ".tmp")
    _write(temporary, content)
    os.replace(temporary, path)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":  # elsewhere a directory cannot be opened
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

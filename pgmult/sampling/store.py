"""The run directory: a run on disk that can be killed at any moment, and reports damage.

::

    run/
      meta.json             schema, versions, model, seed, settings, axes, hash of the data
      coords.npz            labels along the axes
      inputs.npz            the data and initial values, as plain arrays
      lock                  held by the process that writes
      chain-0/
        checkpoint.npz      state, generator and counters after some sweep
        mu.000000000-000000250.1c291ca3.npy     draws 0 to 249 of mu
        rows.*  shared.*  of a run on a cluster: see `pgmult.sampling.cluster.files`

Of large variables only every so manyth draw may be kept (``every`` in ``meta.json``): their parts
are numbered by what is kept of them. Draws are appended in parts, and each part is on disk before
the checkpoint that counts it. Parts beyond the checkpoint belong to sweeps that a resumed chain
makes again, with the same bits, and are removed.

All files are sealed (`pgmult.core.sealed`) with the run's identity and the file's place in the
directory; that of a part is in its name. So a flipped bit, or a checkpoint of another chain or
another run, is refused with a ValueError that names the file.

Arrays that stay in files of their own (`pgmult.core.mapped`) are written as references to these.
"""

import errno
import io
import json
import math
import os
import re
import secrets
import time
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, BinaryIO, NamedTuple

import numpy as np

from pgmult.core import sealed
from pgmult.core.arguments import as_mapping
from pgmult.core.mapped import ArrayFile, MappedArray
from pgmult.core.parameters import Checked, whole
from pgmult.core.sealed import reading, seed_of
from pgmult.core.tables import Lazily
from pgmult.core.typing import AnyArray, Array, IntArray
from pgmult.core.validate import as_positive_int
from pgmult.sampling.codec import decode, encode

SCHEMA = 4
LOG_LIKELIHOOD = "log_likelihood"
"""Always kept of a run, as a sample statistic."""
FLUSH_SECONDS = 5.0
"""How often a chain writes its draws and a checkpoint."""
FLUSH_SHARE = 0.05
"""The share of a chain's time that writing may take: where it is slow, it is done less often."""
FLUSH_BYTES = 2**25
"""A part is written as soon as it holds so much."""

_LOCK_ERRORS = "another process is writing to this run", "the run directory cannot be written to"
_PART = re.compile(r"((\w+)\.(\d{9,})-(\d{9,}))\.([0-9a-f]{8})\.npy")
_CHAIN = re.compile(r"chain-\d+")
_BEFORE_DATA = re.compile(r"lock|report\.html|coords\.npz|meta\.json|(coords|meta|inputs)\..*\.tmp")
_MOST_CHAINS = 10_000
MOST_SWEEPS = 10**9
"""More are a slip: a year, at thirty a second."""

Kind = tuple[tuple[int, ...], np.dtype[Any]]
"""Shape and dtype of one draw of a variable."""


@dataclass(frozen=True)
class DrawsFile:
    """One file of draws: ``start <= draw < stop`` of one variable.

    `seed` is the CRC-32 of all that `crc` covers besides the file's content.
    """

    path: Path
    start: int
    stop: int
    crc: int
    seed: int

    def read(self, kind: Kind | None = None) -> Array:
        """The draws, ``(stop - start, ...)``, after checking every byte."""
        content = sealed.read_bytes(self.path)
        checksum = zlib.crc32(content, self.seed)
        if checksum != self.crc:
            raise ValueError(
                f"{self.path} is damaged: its CRC-32 is {checksum:08x} and should be"
                f" {self.crc:08x} (pgmult.load(..., damaged='drop') reads the draws before it)"
            )
        with reading(self.path):
            array = sealed.parsed_array(content)
            shape, dtype = kind or (array.shape[1:], array.dtype)
            shape = self.stop - self.start, *shape
            if (array.shape, array.dtype) != (shape, dtype):
                raise ValueError(f"expected {dtype} {shape}, got {array.dtype} {array.shape}")
        return array


def as_every(every: object, name: str) -> dict[str, int]:
    """Check a mapping from a thinned variable to its thinning interval, 2 or more."""
    intervals = as_mapping(every, name)
    return {str(one): as_positive_int(n, name, 2, MOST_SWEEPS) for one, n in intervals.items()}


@dataclass(frozen=True)
class Settings(Checked):
    """The arguments of `pgmult.sample` that draws depend on."""

    draws: Annotated[int, whole(1, MOST_SWEEPS)]
    tune: Annotated[int, whole(0, MOST_SWEEPS)]
    chains: Annotated[int, whole(1, _MOST_CHAINS)]
    thin: Annotated[int, whole(1, MOST_SWEEPS)]
    entropy: Annotated[int, whole(0)]
    keep: tuple[str, ...]
    every: Annotated[Mapping[str, int], as_every] = field(default_factory=dict)

    @property
    def sweeps(self) -> int:
        """Sweeps of one chain."""
        return self.tune + self.draws * self.thin

    def due(self, draw: int) -> list[str]:
        """The variables that are kept of a draw of a chain, counted from 1."""
        return [name for name in self.keep if draw % self.every.get(name, 1) == 0]


class Counters(NamedTuple):
    """How far a chain came: draws kept, sweeps and seconds, and the kind of each variable."""

    kept: int = 0
    sweep: int = 0
    seconds: float = 0.0
    kinds: Mapping[str, Kind] = {}


class RunReader:
    """A run directory, open for reading; another process may be writing to it.

    Parameters
    ----------
    path : path
    theirs : objects
        A model or data, whose modules have classes that are not of pgmult.

    Attributes
    ----------
    path : Path
    meta : dict
        What ``meta.json`` says.
    num_chains : int
        Of the run, begun or not.
    names : list of str
        Everything that is kept: variables, then sample statistics.
    every : dict
        Thinning interval of each thinned variable.
    modules : set of str
        Where classes are that are not of pgmult.

    Raises
    ------
    FileNotFoundError
        If there is no directory, or no run in it.
    ValueError
        If ``meta.json`` is damaged or of another schema, or the folder of a chain is missing.
    """

    def __init__(self, path: str | os.PathLike[str], *theirs: object):
        self.path = Path(path)
        self.modules = {type(value).__module__ for value in theirs if value is not None}
        file = self.path / "meta.json"
        try:
            self.meta = sealed.read_json(file)
        except (FileNotFoundError, NotADirectoryError):
            raise FileNotFoundError(
                errno.ENOENT, "not a run directory of pgmult: there is no meta.json", str(self.path)
            ) from None
        with reading(file):
            schema, version = self.meta["pgmult_run"], self.meta.get("version")
            if schema != SCHEMA:
                wanted = f"this pgmult reads schema {SCHEMA}"
                raise ValueError(f"{wanted}, got {schema} (written by pgmult {version})")
            self.num_chains = int(self.meta["chains"])
            self.every: dict[str, int] = dict(self.meta["every"])
            self.names = [*self.meta["dims"], *self.meta["sample_stats"]]
            for folder in map(self._folder, range(self.num_chains)):
                if folder.is_symlink() or not folder.is_dir():
                    raise ValueError(f"{folder.name} of {self.num_chains} chains is no folder")

    def decoded(self, name: str) -> Any:
        """An object that ``meta.json`` describes."""
        with reading(self.path / "meta.json"):
            return decode(self.meta[name], modules=self.modules)

    def coords(self) -> dict[str, AnyArray]:
        """Labels of the labelled axes."""
        return sealed.read_npz(self.path / "coords.npz", self._seed("coords.npz"))

    def inputs(self, *names: str, check: bool = True) -> dict[str, Any]:
        """What the run was begun with, ``{"data": ..., "starts": ...}``, or some of it.

        Arrays in files of their own are read now, and checked, unless `check` is False:
        see `pgmult.core.mapped.ArrayFile.open`.
        """
        file = self.path / "inputs.npz"
        if not os.path.lexists(file):
            raise FileNotFoundError(
                errno.ENOENT, "the run was stopped before its data was written: begin again", file
            )
        return self._bundle("inputs.npz", names or ("data", "starts"), check=check)

    def checkpoint(self, chain: int) -> dict[str, Any] | None:
        """State, files of its rows and generator of a chain; None before its first checkpoint."""
        place = self._checkpoint(chain)
        return self._bundle(place, ("state", "parts", "generator")) if place else None

    def counters(self, chain: int) -> Counters:
        """The numbers of a chain's checkpoint, without reading its state."""
        place = self._checkpoint(chain)
        if place is None:
            return Counters()
        read = self._bundle(place, Counters._fields)
        with reading(self.path / place):
            counters = Counters(**read)
            kinds = {name: (tuple(s), np.dtype(d)) for name, (s, d) in counters.kinds.items()}
        return counters._replace(kinds=kinds)

    def parts(self, chain: int, name: str, kept: int) -> list[DrawsFile]:
        """The files that hold what was kept of draws 0 to `kept` of one variable, in order."""
        kept //= self.every.get(name, 1)
        parts = list(self._in_order(chain, name, kept))
        reached = parts[-1].stop if parts else 0
        if reached < kept:
            raise ValueError(
                f"draws {reached} to {kept} of {name} are missing in {self._folder(chain)}"
                " (pgmult.load(..., damaged='drop') reads the draws before them)"
            )
        return parts

    def _in_order(self, chain: int, name: str, end: float) -> Iterator[DrawsFile]:
        """The files of a variable that begin before `end`, until one is missing."""
        by_start = {part.start: part for part in self._all_parts(chain, name) if part.start < end}
        reached = 0
        while reached in by_start:
            yield by_start[reached]
            reached = by_start[reached].stop

    def undamaged(self, chain: int) -> Counters:
        """What can be read of a chain, after checking every byte of its draws."""
        limit: float = self.meta.get("settings", {}).get("draws", math.inf)
        counters = Counters(seconds=math.nan)
        with suppress(ValueError):
            counters = self.counters(chain)
            limit = counters.kept
        kinds = dict(counters.kinds)
        intact = min(self._undamaged(chain, name, limit, kinds) for name in self.names)
        return counters._replace(kept=intact, kinds=kinds)

    def _undamaged(self, chain: int, name: str, limit: float, kinds: dict[str, Kind]) -> int:
        every, reached = self.every.get(name, 1), 0
        for part in self._in_order(chain, name, limit / every):
            try:
                array = part.read(kinds.get(name))
            except (OSError, ValueError):
                break
            kinds[name], reached = (array.shape[1:], array.dtype), part.stop
        return int(min(limit, reached * every + every - 1))

    def _folder(self, chain: int) -> Path:
        return self.path / f"chain-{chain}"

    def _checkpoint(self, chain: int) -> str | None:
        """The place of a chain's checkpoint, if it has one."""
        place = f"chain-{chain}/checkpoint.npz"
        if os.path.lexists(self.path / place):
            return place
        if any(self._all_parts(chain)):
            raise ValueError(f"{self.path / place} is missing, and there are draws of that chain")
        return None

    def _all_parts(self, chain: int, name: str | None = None) -> Iterator[DrawsFile]:
        for path in self._folder(chain).iterdir():
            match = _PART.fullmatch(path.name)
            if match and name in (None, match[2]) and int(match[3]) < int(match[4]):
                seed = self._seed(f"chain-{chain}/{match[1]}")
                yield DrawsFile(path, int(match[3]), int(match[4]), int(match[5], 16), seed)

    def _seed(self, place: str) -> int:
        return seed_of(self.meta["id"], place)

    def _bundle(self, place: str, names: Collection[str], check: bool = True) -> dict[str, Any]:
        file, seed = self.path / place, self._seed(place)
        return read_bundle(file, seed, names, self.modules, check=check)


class RunWriter(RunReader, AbstractContextManager["RunWriter"]):
    """A run directory that this process, and no other, writes to. Use it in a ``with`` block."""

    def __init__(self, path: str | os.PathLike[str], *theirs: object, lock: BinaryIO | None = None):
        if lock is None:
            RunReader(path)  # nothing is touched unless it is a run
            lock = sealed.locked(Path(path), *_LOCK_ERRORS)
        self._lock = lock
        try:
            super().__init__(path, *theirs)
            _drop_unfinished(self.path)
        except BaseException:
            lock.close()
            raise

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], meta: Mapping[str, Any], coords: Mapping[str, Array],
        inputs: Mapping[str, object] | None,
    ) -> "RunWriter":  # fmt: skip
        """Begin a run in a new or empty directory, and lock it before anything is written.

        Raises
        ------
        FileExistsError
            If something is there already.
        BlockingIOError
            If another process begins a run there.
        OSError
            If the directory cannot be made or written to, naming it.
        TypeError
            If a part of `inputs` cannot be written as plain arrays.
        """
        folder = Path(path)
        _refuse_occupied(folder)  # before anything is touched
        identity = secrets.token_hex(8)
        arrays = None if inputs is None else _arrays_of(inputs)
        folder.mkdir(parents=True, exist_ok=True)
        lock = sealed.locked(folder, *_LOCK_ERRORS)
        try:
            _refuse_occupied(folder)  # another process may have been quicker
            for chain in range(meta["chains"]):
                (folder / f"chain-{chain}").mkdir(exist_ok=True)
            # .npy files hold labels of mixed types as strings
            labels = {n: x.astype(np.str_) if x.dtype.hasobject else x for n, x in coords.items()}
            sealed.write_npz(folder / "coords.npz", labels, seed_of(identity, "coords.npz"))
            sealed.write_json(folder / "meta.json", {"pgmult_run": SCHEMA, "id": identity, **meta})
            if arrays is not None:
                sealed.write_npz(folder / "inputs.npz", arrays, seed_of(identity, "inputs.npz"))
                sealed.sync_folder(folder)
        except BaseException:
            lock.close()
            raise
        return cls(path, lock=lock)

    def __exit__(self, kind: object, *error: object) -> None:
        self._lock.close()

    def update(self, **changes: Any) -> None:
        """Change entries of ``meta.json``."""
        self.meta |= changes
        sealed.write_json(self.path / "meta.json", self.meta)

    def chain(self, number: int) -> "ChainWriter":
        """Go on with a chain, after dropping what its checkpoint does not count."""
        folder, counters = self._folder(number), self.counters(number)
        for piece in self._all_parts(number):
            if piece.stop > counters.kept // self.every.get(piece.path.name.partition(".")[0], 1):
                piece.path.unlink()
        _drop_unfinished(folder)
        sealed.sync_folder(folder)
        return ChainWriter(folder, self.meta["id"], counters, self.every)


class ChainWriter:
    """Appends one chain's draws and writes its checkpoints."""

    def __init__(self, folder: Path, identity: str, counters: Counters, every: Mapping[str, int]):
        self.place = self._folder, self._identity = folder, identity
        self._every, self._kept, self._kinds = every, counters.kept, counters.kinds
        self._drawn = self.waiting = 0  # draws since the last commit, and their bytes
        self._waiting: dict[str, list[Array]] = {}
        self._next_time = time.monotonic() + FLUSH_SECONDS

    def begin(self, values: Mapping[str, Array]) -> None:
        """Take the shape and dtype of every variable from one draw, which is not kept."""
        kinds = {name: (value.shape, value.dtype) for name, value in values.items()}
        for name, (shape, dtype) in self._kinds.items():
            if kinds[name] != (shape, dtype):
                expected = f"{dtype} {shape} as in {self._folder}"
                raise ValueError(f"{name} must stay {expected}, got {kinds[name]}")
        self._kinds = kinds

    def append(self, values: Mapping[str, AnyArray]) -> None:
        """Take one draw of every variable that is kept of it."""
        self._drawn += 1
        for name, value in values.items():
            self._waiting.setdefault(name, []).append(np.array(value))
            self.waiting += value.nbytes

    def due(self) -> bool:
        """Is it time to commit?"""
        return self.waiting >= FLUSH_BYTES or time.monotonic() >= self._next_time

    def commit(self, checkpoint: Mapping[str, object]) -> None:
        """Write the draws taken since the last time, then the checkpoint that counts them."""
        began = time.monotonic()
        stop = self._kept + self._drawn
        for name, values in self._waiting.items():
            buffer = io.BytesIO()
            np.save(buffer, np.stack(values), allow_pickle=False)
            content = buffer.getvalue()
            start = self._kept // self._every.get(name, 1)
            label = f"{name}.{start:09}-{start + len(values):09}"
            crc = zlib.crc32(content, self._seed(label))
            sealed.write(self._folder / f"{label}.{crc:08x}.npy", content)
        if self._waiting:
            sealed.sync_folder(self._folder)
        kinds = {name: (shape, dtype.str) for name, (shape, dtype) in self._kinds.items()}
        record = {"kept": stop, "kinds": kinds, **checkpoint}
        write_bundle(self._folder / "checkpoint.npz", record, self._seed("checkpoint.npz"))
        sealed.sync_folder(self._folder)
        self._kept, self._drawn, self._waiting, self.waiting = stop, 0, {}, 0
        ended = time.monotonic()
        self._next_time = ended + max(FLUSH_SECONDS, (ended - began) / FLUSH_SHARE)

    def _seed(self, name: str) -> int:
        return seed_of(self._identity, self._folder.name, name)


class StoredDraws(Lazily[AnyArray]):
    """Variables of a run directory, ``(chain, draw, ...)``, each read when it is first used.

    Parameters
    ----------
    run : Run
    names : collection of str
    kept : mapping from a chain's number to how many of its draws can be read
    num_draws : int
        Draws of each chain to show, at most the smallest of `kept`.
    kinds : mapping from name to shape and dtype of one draw
    """

    def __init__(
        self, run: RunReader, names: Collection[str], kept: Mapping[int, int], num_draws: int,
        kinds: Mapping[str, Kind],
    ):  # fmt: skip
        super().__init__(names, self._whole)
        self._num_draws, self._kinds = num_draws, kinds
        self.every = {name: n for name, n in run.every.items() if name in names}
        self._parts: dict[str, list[list[DrawsFile]]] = {}
        for name in names:
            chains = (run.parts(chain, name, count) for chain, count in kept.items())
            size = self._size(name)
            self._parts[name] = [[p for p in parts if p.start < size] for parts in chains]

    def _size(self, name: str) -> int:
        """How many draws there are of a variable."""
        return self._num_draws // self.every.get(name, 1)

    def _whole(self, name: str) -> Array:
        return self._gathered(name, self._kinds[name][0], lambda values: values)

    def shape_of(self, name: str) -> tuple[int, ...]:
        """``(chain, draw, ...)`` of a variable, without reading its draws."""
        return (len(self._parts[name]), self._size(name), *self._kinds[name][0])

    def entries(self, name: str, chosen: IntArray) -> AnyArray:
        """Some entries ``(chain, draw, len(chosen))``, holding one part in memory at a time."""
        if name in self._found:
            return flat_entries(self._found[name], 2)[:, :, chosen]
        return self._gathered(name, (len(chosen),), lambda x: flat_entries(x, 1)[:, chosen])

    def each(self, name: str, chain: int) -> Iterator[AnyArray]:
        """The draws of one chain in order, holding one part in memory at a time."""
        if name in self._found:
            yield from self._found[name][chain]
            return
        for piece in self._parts[name][chain]:
            yield from piece.read(self._kinds[name])[: self._size(name) - piece.start]

    def _gathered(
        self, name: str, shape: tuple[int, ...], chosen: Callable[[Array], Array]
    ) -> Array:
        """What is chosen of every part, ``(chain, draw, *shape)``."""
        kind, size, parts = self._kinds[name], self._size(name), self._parts[name]
        array = np.empty((len(parts), size, *shape), kind[1])
        for of_chain, pieces in zip(array, parts, strict=True):
            for piece in pieces:
                stop = min(piece.stop, size)
                of_chain[piece.start : stop] = chosen(piece.read(kind)[: stop - piece.start])
        return array


def flat_entries(array: Array, lead: int) -> Array:
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


# Files


def _refuse_occupied(folder: Path) -> None:
    if not os.path.lexists(folder):
        return
    why = "store must be a directory, this is a file"
    if folder.is_dir():
        paths = [path for path in folder.iterdir() if not _BEFORE_DATA.fullmatch(path.name)]
        if all(_CHAIN.fullmatch(path.name) and _is_empty_folder(path) for path in paths):
            return  # empty, or a run that was killed before its data was written
        why = "store must be a new or empty directory, and this one holds other files"
        if (folder / "meta.json").exists() and (folder / "coords.npz").exists():
            why = "store holds a run (pgmult.resume goes on with it; or name another directory)"
    raise FileExistsError(errno.EEXIST, why, str(folder))


def _is_empty_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink() and not any(path.iterdir())


def _drop_unfinished(folder: Path) -> None:
    """Remove files that were not yet renamed into their places when their writer died."""
    for path in folder.glob("*.tmp"):
        path.unlink()


def write_bundle(path: Path, value: Mapping[str, object], seed: int, *, sync: bool = True) -> None:
    """Write a mapping of encodable values: see `pgmult.sampling.codec` and `write_npz`."""
    sealed.write_npz(path, _arrays_of(value), seed, sync=sync)


def read_bundle(
    path: Path, seed: int, names: Collection[str], modules: Collection[str] = (), *,
    check: bool = True,
) -> dict[str, Any]:  # fmt: skip
    """These entries of a mapping that `write_bundle` wrote."""

    def wanted(key: str) -> bool:
        return "." not in key or key.split(".")[1] in names

    arrays = sealed.read_npz(path, seed, wanted)
    with reading(path):
        entries = json.loads(arrays["tree"].tobytes())["$dict"]
        files = json.loads(arrays["files"].tobytes()) if "files" in arrays else {}
        files = {key: ArrayFile(*about) for key, about in files.items() if wanted(key)}
    arrays |= {key: file.open(check=check) for key, file in files.items()}
    with reading(path):
        return {name: decode(entries[name], arrays, modules) for name in names}


def _arrays_of(value: Mapping[str, object]) -> dict[str, AnyArray]:
    """A mapping of encodable values as what an .npz file holds."""
    arrays: dict[str, AnyArray] = {}
    texts = {"tree": encode(value, arrays)}
    mapped = {name: array for name, array in arrays.items() if isinstance(array, MappedArray)}
    files = {name: array.file for name, array in mapped.items() if array.file is not None}
    if files:
        texts["files"] = files
    packed = {name: np.frombuffer(json.dumps(x).encode(), np.uint8) for name, x in texts.items()}
    return packed | {k: array for k, array in arrays.items() if k not in files}

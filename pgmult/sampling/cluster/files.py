"""The files by which a chain's driver and workers exchange what they need.

::

    chain-0/
      start.npz                      what all rows start from, until they have
      shared.000000120.npz           what all rows share after 120 sweeps, and how to make the last
      rows.000000100.0-65536.npz     what is of rows 0 to 65,535 alone after 100 sweeps

The shared file of a sweep is written before its tasks begin, and files of rows at each cut. The
checkpoint that refers to files of rows is written after they are on disk, and older ones are
removed after that. All are sealed (`pgmult.core.sealed`). None is ever changed: if a task is done
twice, the second file has the same content.
"""

import math
import os
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from pgmult.core.sealed import array_header, npz_members, seed_of, write_npz
from pgmult.core.typing import AnyArray, Array
from pgmult.sampling.blocks import Ask, Key
from pgmult.sampling.store import read_bundle, write_bundle

_OURS = re.compile(r"(shared|rows)\.(\d{9,})\..*")
_START = "start.npz"


class RowRange(NamedTuple):
    """Neighbouring rows: ``start <= row < stop``."""

    start: int
    stop: int


NumberedAsks = tuple[tuple[int, Ask], ...]
"""Questions of a shared step, each with its number in the sweep."""


@dataclass(frozen=True, slots=True, eq=False)
class SharedArrays:
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
    key: Key
    asks: NumberedAsks = ()


class ChainFiles:
    """One chain's files of rows and of what they share.

    Parameters
    ----------
    folder : path
        The chain's, in a run directory.
    run : str
        The run's identity, so that no file of another is taken for one of its.
    modules : collection of str
        Where classes are that are not of pgmult.
    """

    def __init__(self, folder: str | os.PathLike[str], run: str, modules: Collection[str] = ()):
        self.folder, self.run, self._modules = Path(folder), run, modules

    def write_shared(self, sweep: int, shared: SharedArrays) -> None:
        """What rows share after so many sweeps.

        Not synced: a machine that goes down takes the driver along, which makes it again.
        """
        self._write(_shared_name(sweep), shared)

    def read_shared(self, sweep: int) -> SharedArrays:
        """What was written."""
        shared: SharedArrays = self._read(_shared_name(sweep))
        return shared

    def write_start(self, found: object) -> None:
        """What all rows start from."""
        self._write(_START, found)

    def read_start(self) -> Any:
        """What was written."""
        return self._read(_START)

    def _write(self, name: str, value: object) -> None:
        write_bundle(self.folder / name, {"value": value}, self._seed(name), sync=False)

    def _read(self, name: str) -> Any:
        file, seed = self.folder / name, self._seed(name)
        return read_bundle(file, seed, ("value",), self._modules)["value"]

    def write_rows(self, sweep: int, start: int, rows: Mapping[str, Array]) -> None:
        """Fields of the state, of rows from `start` on, after so many sweeps; on disk for good."""
        ((length,),) = [{len(array) for array in rows.values()}]
        name = _rows_name(sweep, start, start + length)
        arrays = {field: np.ascontiguousarray(array) for field, array in rows.items()}
        write_npz(self.folder / name, arrays, self._seed(name))

    def read_rows(
        self, sweep: int, start: int, stop: int, parts: Sequence[RowRange]
    ) -> dict[str, Array]:
        """Fields of rows ``start <= row < stop``, from the files that hold some of them."""
        rows: dict[str, AnyArray] = {}
        reached = start
        for shard in sorted(parts):
            lo, hi = max(start, shard.start), min(stop, shard.stop)
            if lo >= hi:
                continue
            name = _rows_name(sweep, *shard)
            with npz_members(self.folder / name, self._seed(name)) as members:
                for field, member in members.items():
                    with member() as file:
                        values = _rows_of(file, shard, lo, hi)
                    if field not in rows:
                        rows[field] = np.empty((stop - start, *values.shape[1:]), values.dtype)
                    rows[field][lo - start : hi - start] = values
            if lo != reached:
                break
            reached = hi
        if reached != stop:
            raise ValueError(f"rows {reached} to {stop} after sweep {sweep} are in no file")
        return rows

    def drop_all_but(self, sweep: float, parts: Collection[RowRange]) -> None:
        """Remove what a chain does not need that goes on from these files of rows."""
        (self.folder / _START).unlink(missing_ok=True)
        needed = {_rows_name(int(sweep), *shard) for shard in parts}
        for path in self.folder.iterdir():
            match = _OURS.fullmatch(path.name)
            older = match is not None and (match[1] == "rows" or int(match[2]) < sweep)
            if older and path.name not in needed:
                with suppress(PermissionError):  # Windows removes no open file: the next time
                    path.unlink(missing_ok=True)

    def _seed(self, name: str) -> int:
        return seed_of(self.run, self.folder.name, name)


def _shared_name(sweep: int) -> str:
    return f"shared.{sweep:09}.npz"


def _rows_name(sweep: int, start: int, stop: int) -> str:
    return f"rows.{sweep:09}.{start}-{stop}.npz"


def _rows_of(file: IO[bytes], part: RowRange, lo: int, hi: int) -> Array:
    """Rows ``lo <= row < hi`` of an array of the rows of a part."""
    shape, _, dtype = array_header(file)
    if shape[0] != part.stop - part.start or dtype.hasobject:
        raise ValueError(f"it holds {dtype} {shape}")
    size = dtype.itemsize * math.prod(shape[1:])
    file.seek((lo - part.start) * size, os.SEEK_CUR)
    content = file.read((hi - lo) * size)
    return np.frombuffer(content, dtype).reshape(hi - lo, *shape[1:])

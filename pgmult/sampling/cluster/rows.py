"""The driver's side of a chain whose rows are moved by workers.

The driver holds the shared fields of the state and the chain's generator. For each sweep it draws a
key, writes the shared fields to a file, has a task done for each shard of rows, adds up their sums
and makes the shared step; where that asks for more, it has one more task done for each shard. These
are the steps of `pgmult.sampling.blocks.step`, and the draws are the same.

Every `cut` sweeps the workers write their rows to files: when a worker dies, its rows are read from
there, and no more than `cut` sweeps are made again.
"""

import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import replace
from itertools import count, pairwise
from typing import Any

import numpy as np

from pgmult.core.sealed import sync_folder
from pgmult.core.typing import Array, Generator
from pgmult.core.validate import new_key
from pgmult.sampling import blocks
from pgmult.sampling.blocks import Ask, Sums, Total
from pgmult.sampling.cluster.executors import Cluster, WorkersLostError
from pgmult.sampling.cluster.files import ChainFiles, NumberedAsks, RowRange, SharedArrays
from pgmult.sampling.cluster.tasks import Done, Task
from pgmult.sampling.codec import contiguous

_TRIES = 3  # of a task that could not read or write a file
_MOST_WAITING = 2**28  # bytes of draws that are taken before their rows are written
_PAUSE = 1.0  # seconds between them: a file system may be late


def shards_of(costs: Array, block_rows: int, shards: int) -> list[RowRange]:
    """Rows cut between blocks into so many shards, or fewer, of about the same cost.

    Parameters
    ----------
    costs : array, ``(num_rows,)``
    block_rows, shards : int
    """
    if not len(costs):
        raise ValueError("data must have rows for a cluster to work on, got none")
    parts = blocks.blocks(len(costs), block_rows)
    starts = np.array([part.start for part in parts])
    ends = np.cumsum(np.add.reduceat(costs, starts))
    shards = min(shards, len(parts))
    ideal = ends[-1] * np.arange(1, shards) / shards
    nearest = np.searchsorted(ends - np.diff(ends, prepend=0) / 2, ideal)
    least = np.arange(1, shards)  # a block in every shard
    bounds = np.clip(nearest, least, len(parts) - shards + least)
    bounds = np.maximum.accumulate(bounds - least) + least
    rows = [0, *starts[bounds].tolist(), len(costs)]
    return [RowRange(start, stop) for start, stop in pairwise(rows)]


def rows_here(
    files: ChainFiles, state: Any, fields: Iterable[str], sweep: int, parts: Sequence[RowRange]
) -> object:
    """The whole state, its rows read from files."""
    rows = files.read_rows(sweep, 0, max(shard.stop for shard in parts), parts)
    return replace(state, **{name: rows[name] for name in fields})


class RowsElsewhere:
    """The rows of one chain, which are in the memory of workers and in files.

    Parameters
    ----------
    cluster : Cluster
    model, data : as the model has them
    files : ChainFiles
    number : int
        Of the chain.
    """

    show_seconds = 30.0  # between two times that the log likelihood is asked for, to be shown

    def __init__(self, cluster: Cluster, model: Any, data: Any, files: ChainFiles, number: int):
        self._cluster, self._model = cluster, model
        self._data, self._nothing = data, data.rows(slice(0, 0))
        self._files, self._number = files, number
        modules = tuple(sorted({type(model).__module__, type(data).__module__}))
        self._task = Task(
            "step", str(files.folder.parent.resolve()), files.run, secrets.token_hex(4), number,
            modules,
        )  # fmt: skip
        costs, block_rows = data.row_costs, model.block_rows
        self._mine = shards_of(costs, block_rows, cluster.shards)
        self._num_blocks = len(blocks.blocks(len(costs), block_rows))
        places = [blocks.cells(data, slice(*shard)) for shard in self._mine]
        self._places = tuple(RowRange(place.start, place.stop) for place in places)
        self._pool = ThreadPoolExecutor(len(self._mine), f"pgmult-chain-{number}-shard")
        self._sweep = self._cut = 0
        self.parts: tuple[RowRange, ...] = ()

    def start(self, rng: Generator) -> tuple[Any, tuple[RowRange, ...]]:
        """Have workers find where rows start: what they share, and files of rows.

        All of the state, where rows start together. The draws are those of the model's ``init``.
        """
        begun = self._model.shared_start(rng, self._data)
        if begun is None:
            return self._model.init(rng, self._data), ()
        state, start_info = begun
        self._files.write_start(contiguous(start_info))
        self._have("start", key=new_key(rng))
        return blocks.without_rows(self._model, state), self._places

    def begin(self, state: Any, parts: tuple[RowRange, ...], sweep: int) -> object:
        """Write the rows of a state to files, if they are not there yet; its shared fields.

        `parts` are the files that there are, by their `cells`.
        """
        model = self._model
        if not parts:
            for place in self._places:
                rows = blocks.local_fields(model, blocks.take_rows(model, state, slice(*place)))
                self._files.write_rows(sweep, place.start, rows)
            sync_folder(self._files.folder)
        self.parts, self._cut, self._sweep = parts or self._places, sweep, sweep
        self._state = blocks.without_rows(model, state)
        self._files.write_shared(sweep, SharedArrays(self._state, np.zeros(2, np.uint64)))
        return self._state

    def step(self, rng: Generator) -> object:
        """One sweep: the shared fields after it."""
        key, numbers = new_key(rng), count(1)
        asks: NumberedAsks = ()

        def ask(question: Ask) -> Sums:
            nonlocal asks
            now = (*asks, (next(numbers), question))
            asks = now if question.moves else asks
            return self._sums("answer", key=key, asks=now)

        sums = self._sums("step", key=key)
        self._state = contiguous(
            self._model.shared_step(rng, self._state, sums, self._nothing, ask)
        )
        self._sweep += 1
        self._files.write_shared(self._sweep, SharedArrays(self._state, key, asks))
        return self._state

    def values(self, names: Sequence[str]) -> tuple[float, dict[str, Any]]:
        """The log likelihood, and variables that are not of rows."""
        summary = self._sums("summarize")
        state, nothing = self._state, self._nothing
        return float(summary.rounded[0]), {
            name: blocks.shared_variable(self._model, state, summary, nothing, name)
            for name in names
        }

    def due(self, recorder: Any) -> bool:
        """Is it time to commit, and for a cut?"""
        return self._sweep >= self._cut + self._cluster.cut or recorder.waiting >= _MOST_WAITING

    def save(self) -> None:
        """Have the rows written to files, which a checkpoint may then count on."""
        if self._sweep > self._cut:
            self._have("save")
            self.parts, self._cut = self._places, self._sweep

    def saved(self) -> None:
        """Remove the files that the checkpoint, which is written now, does not need."""
        self._files.drop_all_but(self._cut, self.parts)

    def end(self) -> None:
        """Have the workers free the memory of the rows."""
        with suppress(Exception):  # a worker that died holds no memory
            self._have("forget")
        self._pool.shutdown(wait=False)

    def _have(self, kind: str, **about: Any) -> None:
        """Have a task of each shard done, which may write files."""
        for _ in self._each(kind, **about):
            pass
        sync_folder(self._files.folder)

    def _sums(self, kind: str, **about: Any) -> Sums:
        """The sums over all rows that a task of each shard gives."""
        total = Total()
        for done in self._each(kind, **about):
            assert done.total is not None
            total.merge(done.total)
        return total.result(self._num_blocks)

    def _each(self, kind: Any, **about: Any) -> Iterator[Done]:
        """A task for every shard; what came of them, as they come."""
        waiting = []
        for i, (shard, place) in enumerate(zip(self._mine, self._places, strict=True)):
            overlap = tuple(p for p in self.parts if p.start < place.stop and place.start < p.stop)
            task = replace(
                self._task, kind=kind, start=shard.start, stop=shard.stop, sweep=self._sweep,
                cut=self._cut, parts=overlap, **about,
            )  # fmt: skip
            home = self._number * len(self._mine) + i
            waiting.append(self._pool.submit(self._done, task, home))
        errors: list[BaseException] = []
        for future in as_completed(waiting):  # all of them, so that none is left behind
            error = future.exception()
            if error is not None:
                errors.append(error)
            elif not errors:
                yield future.result()
        if errors:
            raise errors[0]

    def _done(self, task: Task, home: int) -> Done:
        """The task's result; by another worker where one could not read or write a file."""
        executor = self._cluster.executor
        for i in range(_TRIES - 1):
            try:
                return executor.run(task, home + i)
            except WorkersLostError:
                raise
            except OSError:
                time.sleep(_PAUSE)
        return executor.run(task, home + _TRIES - 1)

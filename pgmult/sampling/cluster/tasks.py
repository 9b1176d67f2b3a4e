"""What a worker does: one task about some rows of one chain, from what is in files.

A task says all that it needs. The rows that a worker has in memory only save it time: where they
are not the ones asked for, it reads those of the last cut and makes the sweeps since then again,
out of the shared state and the key of each. So a worker may be lost, hang, be started anew or do a
task twice, and the rows are the same; none begins from anything but files.
"""

import ctypes
import importlib
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from threading import Lock
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgmult.core._version import __version__
from pgmult.core.blas import one_blas_thread
from pgmult.core.machine import available_memory
from pgmult.core.typing import IntArray
from pgmult.sampling.blocks import (
    Total,
    local_fields,
    local_steps,
    num_rows,
    put_rows,
    summaries,
    take_rows,
    with_rows_of,
)
from pgmult.sampling.cluster.files import ChainFiles, Part
from pgmult.sampling.cluster.shards import costs_of, shards_of
from pgmult.sampling.codec import decode
from pgmult.sampling.store import Run, reading

__all__ = ["Done", "Task", "work"]

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of glibc's mallopt


@dataclass(frozen=True, slots=True)
class Task:
    """Something to do with the rows ``start <= row < stop`` of a chain after `sweep` sweeps.

    Attributes
    ----------
    kind : str
        "step": move the rows by one sweep, and tell its sums; "tell": what is kept of the draw;
        "save": write the rows to a file; "forget": give their memory back.
    store : str
        The run directory, by a path that is right everywhere.
    run, session : str
        The run's identity, and that of one driver's work on it.
    chain, start, stop, sweep : int
    cut : int
        The sweep after which the rows were written to files last.
    parts : tuple of Part
        Those files.
    key : tuple of two int
        Of the sweep to be made.
    modules : tuple of str
        Where classes of model and data are that are not of pgmult.
    version : str
        Of the driver's pgmult.
    """

    kind: Literal["step", "tell", "save", "forget"]
    store: str
    run: str
    session: str
    chain: int
    start: int
    stop: int
    sweep: int
    cut: int
    parts: tuple[Part, ...]
    key: tuple[int, ...]
    modules: tuple[str, ...]
    version: str = __version__

    @property
    def name(self) -> str:
        """A name that no other task has."""
        return (
            f"pgmult-{self.kind}-{self.run}-{self.session}-chain{self.chain}"
            f"-rows{self.start}-{self.stop}-sweep{self.sweep}"
        )

    @property
    def words(self) -> str:
        """What it is about, for errors."""
        return f"rows {self.start} to {self.stop - 1} of chain {self.chain}, sweep {self.sweep}"


class Done(NamedTuple):
    """What came of a task.

    Attributes
    ----------
    total : Total or None
    seconds, cpu : float
        Of the rows themselves, of the clock and of a processor.
    again : int
        Sweeps that were made again, because the rows were not in memory.
    """

    total: Total | None
    seconds: float = 0.0
    cpu: float = 0.0
    again: int = 0


class _Rows(NamedTuple):
    """Rows in memory: the state after so many sweeps, and when it was used."""

    sweep: int
    state: Any
    data: Any
    used: float


class _Memory:
    """What this process has in memory: models and data of runs, and rows of chains."""

    def __init__(self) -> None:
        self.lock = Lock()
        self._runs: dict[str, tuple[Any, Any]] = {}
        self._sessions: dict[tuple[str, int], str] = {}
        self._rows: dict[tuple[str, int, int, int], _Rows] = {}

    def run(self, task: Task) -> tuple[Any, Any]:
        """The model and data of a task's run."""
        with self.lock:
            if task.run not in self._runs:
                run = Run(task.store)
                if run.meta["id"] != task.run:
                    raise ValueError(f"{task.store} holds another run on this machine")
                for module in task.modules:
                    importlib.import_module(module)
                with reading(run.path / "meta.json"):
                    model = decode(run.meta["model"], modules=task.modules)
                self._runs[task.run] = model, run.inputs(task.modules, ("data",))["data"]
            return self._runs[task.run]

    def take(self, task: Task) -> _Rows | None:
        """The rows of a task out of memory, where they are none newer than it asks for.

        They are the caller's until it gives them back: what is lost on the way is in files.
        """
        with self.lock:
            chain = task.run, task.chain
            if self._sessions.get(chain) != task.session:  # another driver, perhaps other shards
                self._sessions[chain] = task.session
                for key in [key for key in self._rows if key[:2] == chain]:
                    del self._rows[key]
            rows = self._rows.pop((*chain, task.start, task.stop), None)
        if rows is None or not task.cut <= rows.sweep <= task.sweep:
            return None
        return rows

    def give(self, task: Task, sweep: int, state: Any, data: Any, size: int) -> None:
        """Keep rows of so many bytes, and drop others where less than that is left."""
        with self.lock:
            if self._sessions.get((task.run, task.chain)) != task.session:
                return
            key = task.run, task.chain, task.start, task.stop
            self._rows[key] = _Rows(sweep, state, data, time.monotonic())
            others = sorted((k for k in self._rows if k != key), key=lambda k: self._rows[k].used)
            while others and available_memory() < size:
                del self._rows[others.pop(0)]  # used least recently

    def forget(self, task: Task) -> None:
        """Drop a chain's rows, and the run's data with the last of its chains."""
        with self.lock:
            self._sessions.pop((task.run, task.chain), None)
            for key in [key for key in self._rows if key[:2] == (task.run, task.chain)]:
                del self._rows[key]
            if not any(run == task.run for run, _ in self._sessions):
                self._runs.pop(task.run, None)


_memory = _Memory()
_busy = 0  # tasks that this process does now


def work(task: Task, threads: int = 1) -> Done:
    """Do a task, with so many threads: nothing but time depends on it.

    Raises
    ------
    ValueError
        If this process has another pgmult than the driver, or a file is damaged.
    OSError
        If a file cannot be read or written.
    Exception
        Whatever the model raises, with a note that names the rows.
    """
    if task.version != __version__:
        raise ValueError(
            f"workers must have the pgmult of the driver, {task.version}, and one has {__version__}"
        )
    _hold_memory()
    if task.kind == "forget":
        _memory.forget(task)
        return Done(None)
    try:
        with one_blas_thread(), _share_of(threads) as mine:
            return _work(task, mine)
    except Exception as error:
        error.add_note(f"by a worker, about {task.words}")
        raise


@cache
def _hold_memory() -> None:
    """Have freed memory kept for the next block, where the C library is glibc.

    Dask starts its workers with MALLOC_TRIM_THRESHOLD_ so low that every array is given back to the
    system, and its pages made anew for the next: 230,000 page faults a sweep of 10**5 documents.
    """
    if sys.platform.startswith("linux"):
        with suppress(OSError, AttributeError):
            library = ctypes.CDLL(None)
            library.mallopt(_M_MMAP_THRESHOLD, 2**25)
            library.mallopt(_M_TRIM_THRESHOLD, 2**28)


@contextmanager
def _share_of(threads: int) -> Iterator[int]:
    """So many threads, less where this process does several tasks at a time, as of two chains."""
    global _busy
    with _memory.lock:
        _busy += 1
        mine = max(1, threads // _busy)
    try:
        yield mine
    finally:
        with _memory.lock:
            _busy -= 1


def _work(task: Task, threads: int) -> Done:
    model, data = _memory.run(task)
    files = ChainFiles(f"{task.store}/chain-{task.chain}", task.run)
    shared, _ = files.read_shared(task.sweep, task.modules)
    rows = _memory.take(task)
    if rows is None:
        local = files.read_rows(task.cut, task.start, task.stop, task.parts)
        part = data.rows(slice(task.start, task.stop))
        rows = _Rows(task.cut, replace(shared, **local), part, 0.0)
    first, state, part = task.start // model.block_rows, rows.state, rows.data
    for sweep in range(rows.sweep, task.sweep):
        then, _ = files.read_shared(sweep, task.modules)
        _, key = files.read_shared(sweep + 1, task.modules)
        state, *_ = _moved(model, key, with_rows_of(model, then, state), part, first, threads)
    state, sweep, total = with_rows_of(model, shared, state), task.sweep, None
    began, cpu = time.perf_counter(), time.thread_time()
    if task.kind == "step":
        key = np.array(task.key, np.uint64)
        state, total, helped = _moved(model, key, state, part, first, threads)
        total.exact = [_narrowed(counts) for counts in total.exact]
        cpu -= helped
        sweep += 1
    elif task.kind == "tell":
        total = summaries(model, state, part, first)
    local = {name: getattr(state, name) for name in local_fields(model, state)}
    if task.kind == "save":
        files.write_rows(sweep, task.start, local)
    seconds, cpu = time.perf_counter() - began, time.thread_time() - cpu
    size = sum(array.nbytes for array in local.values())
    _memory.give(task, sweep, state, part, size)
    return Done(total, seconds, cpu, task.sweep - rows.sweep)


def _moved(
    model: Any, key: NDArray[np.uint64], state: Any, data: Any, first: int, threads: int
) -> tuple[Any, Total, float]:
    """One sweep of these rows, in place: their state, their sums and what other threads took.

    Every thread has neighbouring blocks of its own, and their sums meet here.
    """
    size = num_rows(model, state)
    parts = shards_of(costs_of(data, size), size, model.block_rows, threads)
    if len(parts) == 1:
        return *local_steps(model, key, state, data, first, overwrite=True), 0.0

    def move(part: Part) -> tuple[Total, float]:
        began, rows = time.thread_time(), slice(*part)
        here = take_rows(model, state, rows)
        b = first + part.start // model.block_rows
        moved, total = local_steps(model, key, here, data.rows(rows), b, overwrite=True)
        if moved is not here:  # of a single block
            put_rows(model, state, rows, moved)
        return total, time.thread_time() - began

    with ThreadPoolExecutor(len(parts) - 1, "pgmult-rows") as pool:
        others = [pool.submit(move, part) for part in parts[1:]]
        whole, _ = move(parts[0])
    helped = 0.0
    for other in others:
        total, took = other.result()
        whole.merge(total)
        helped += took
    return state, whole, helped


def _narrowed(counts: IntArray) -> NDArray[Any]:
    """Counts in no more bytes than they need, on their way to the driver."""
    least, most = int(counts.min(initial=0)), int(counts.max(initial=0))
    return counts.astype(np.result_type(np.min_scalar_type(least), np.min_scalar_type(most)))

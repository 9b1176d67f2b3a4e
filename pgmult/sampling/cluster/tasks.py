"""What a worker does: one task about some rows of one chain.

A task and the files of the run hold all that is needed for it. Rows that a worker has in memory
only save time: if they are not the ones of the task, it reads those of the last cut and makes the
sweeps since then again, from the shared fields and the key of each. So the rows are the same when
a worker is lost, hangs, is started anew or does a task twice.
"""

import ctypes
import importlib
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from threading import Lock
from typing import Any, Literal, NamedTuple

from pgmult.compiled.rows import row_threads
from pgmult.core._version import __version__
from pgmult.core.blas import one_blas_thread
from pgmult.core.machine import available_memory
from pgmult.sampling import blocks
from pgmult.sampling.blocks import Ask, HasRows, MovedRows, Shard, SweepsInBlocks, Total
from pgmult.sampling.cluster.files import ChainFiles, NumberedAsks, RowRange, SharedArrays
from pgmult.sampling.store import RunReader

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of glibc's mallopt


@dataclass(frozen=True, slots=True)
class Task:
    """Something to do with the rows ``start <= row < stop`` of a chain after `sweep` sweeps.

    Attributes
    ----------
    kind : str
        "start": write the rows where they start to a file; "step": move them by one sweep, and
        return its sums; "answer": what the shared step asks; "summarize": what is kept of the
        draw; "save": write the rows to a file; "forget": give their memory back.
    store : str
        The run directory, by a path that is right everywhere.
    run, session : str
        The run's identity, and that of one driver's work on it.
    chain : int
    modules : tuple of str
        Where the classes of model and data are.
    start, stop, sweep : int
    cut : int
        The sweep after which the rows were written to files last.
    parts : tuple of Part
        Those files, by their `cells`.
    key : uint64 array, ``(2,)``
        Of the sweep to be made.
    asks : tuple of (int, Ask)
        To be answered, after those of the same sweep that moved rows, and their numbers.
    version : str
        Of the driver's pgmult.
    """

    kind: Literal["start", "step", "answer", "summarize", "save", "forget"]
    store: str
    run: str
    session: str
    chain: int
    modules: tuple[str, ...]
    start: int = 0
    stop: int = 0
    sweep: int = 0
    cut: int = 0
    parts: tuple[RowRange, ...] = ()
    key: Any = None
    asks: NumberedAsks = ()
    version: str = __version__

    @property
    def name(self) -> str:
        """A name that no other task has."""
        place = f"chain{self.chain}-rows{self.start}-{self.stop}-sweep{self.sweep}"
        ask = "".join(f"-{number}" for number, _ in self.asks[-1:])
        return f"pgmult-{self.kind}-{self.run}-{self.session}-{place}{ask}"

    @property
    def words(self) -> str:
        """What it is about, for errors."""
        return f"rows {self.start} to {self.stop - 1} of chain {self.chain}, sweep {self.sweep}"


class Done(NamedTuple):
    """The result of a task.

    Attributes
    ----------
    total : Total or None
    seconds : float
        Of the clock, that the rows themselves took.
    again : int
        Sweeps that were made again, because the rows were not in memory.
    """

    total: Total | None
    seconds: float = 0.0
    again: int = 0


class _Rows(NamedTuple):
    """Rows in memory.

    They are as after so many sweeps, in the last of which the asks of these numbers moved them;
    `held` is from it, for more of its asks.
    """

    sweep: int
    asked: tuple[int, ...]
    state: Any
    held: list[Any]
    data: Any


class _Memory:
    """What this process has in memory: models and data of runs, and rows of chains."""

    def __init__(self) -> None:
        self.lock = Lock()
        self._runs: dict[str, tuple[SweepsInBlocks[Any, Any], HasRows]] = {}
        self._sessions: dict[tuple[str, int], str] = {}
        self._rows: dict[tuple[str, int, int, int], _Rows] = {}  # used last comes last
        self.busy = 0  # tasks that this process does now

    def run(self, task: Task) -> tuple[Any, Any]:
        """The model and data of a task's run."""
        with self.lock:
            if task.run not in self._runs:
                run = RunReader(task.store)
                if run.meta["id"] != task.run:
                    raise ValueError(f"{task.store} holds another run on this machine")
                for module in task.modules:
                    importlib.import_module(module)
                run.modules |= set(task.modules)
                data = run.inputs("data", check=False)["data"]
                self._runs[task.run] = run.decoded("model"), data
            return self._runs[task.run]

    def take(self, task: Task) -> _Rows | None:
        """The rows of a task out of memory.

        They are out of memory until `give` puts them back; if an error comes between, the next
        task reads them from files.
        """
        with self.lock:
            chain = task.run, task.chain
            if self._sessions.get(chain) != task.session:  # another driver, perhaps other shards
                self._sessions[chain] = task.session
                self._drop(chain)
            return self._rows.pop((*chain, task.start, task.stop), None)

    def give(self, task: Task, rows: _Rows, size: int) -> None:
        """Keep rows of so many bytes, and drop others where less than that is left."""
        with self.lock:
            if self._sessions.get((task.run, task.chain)) != task.session:
                return
            key = task.run, task.chain, task.start, task.stop
            self._rows[key] = rows
            while len(self._rows) > 1 and available_memory() < size:
                del self._rows[next(iter(self._rows))]

    def _drop(self, chain: tuple[str, int]) -> None:
        self._rows = {key: rows for key, rows in self._rows.items() if key[:2] != chain}

    def forget(self, task: Task) -> None:
        """Drop a chain's rows, and the run's data with the last of its chains."""
        with self.lock:
            self._sessions.pop((task.run, task.chain), None)
            self._drop((task.run, task.chain))
            if not any(run == task.run for run, _ in self._sessions):
                self._runs.pop(task.run, None)


_memory = _Memory()


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
        wanted = f"the pgmult of the driver, {task.version}"
        raise ValueError(f"workers must have {wanted}, and one has {__version__}")
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
    with _memory.lock:
        _memory.busy += 1
        mine = max(1, threads // _memory.busy)
    try:
        yield mine
    finally:
        with _memory.lock:
            _memory.busy -= 1


def _work(task: Task, threads: int) -> Done:
    model, data = _memory.run(task)
    files = ChainFiles(f"{task.store}/chain-{task.chain}", task.run, task.modules)
    span, began = slice(task.start, task.stop), time.perf_counter()
    place = blocks.cells(data, span)
    if task.kind == "start":
        found, first = files.read_start(), task.start // model.block_rows
        with row_threads(threads):
            local = blocks.local_starts(model, task.key, found, data.rows(span), first)
        files.write_rows(task.sweep, place.start, local)
        return Done(None, time.perf_counter() - began)
    sweeps = _Sweeps(task, model, files, threads)
    rows = _memory.take(task)
    if rows is None or not sweeps.leads_to(rows):
        local = files.read_rows(task.cut, place.start, place.stop, task.parts)
        state = replace(sweeps.record(task.cut).state, **local)
        rows = _Rows(task.cut, _numbers(sweeps.asks(task.cut)), state, [], data.rows(span))
    before = rows.sweep
    rows = sweeps.made(rows)
    total, began = None, time.perf_counter()
    if task.kind == "step":
        rows, total = sweeps.begun(rows)
    elif task.kind == "answer":
        rows, total = sweeps.answered(rows, *task.asks[-1])
    elif task.kind == "summarize":
        state = blocks.with_rows_of(model, sweeps.record(task.sweep).state, rows.state)
        total = sweeps.shard(rows).summaries(state)
    local = blocks.local_fields(model, rows.state)
    if task.kind == "save":
        files.write_rows(task.sweep, place.start, local)
    seconds = time.perf_counter() - began
    _memory.give(task, rows, sum(array.nbytes for array in local.values()))
    return Done(total and total.narrowed(), seconds, max(0, task.sweep - before))


def _numbers(asks: NumberedAsks) -> tuple[int, ...]:
    return tuple(number for number, _ in asks)


class _Sweeps:
    """Makes sweeps of some rows, from the shared files and what the task says."""

    def __init__(self, task: Task, model: Any, files: ChainFiles, threads: int):
        self._task, self._model, self._files, self._threads = task, model, files, threads
        self._last = task.sweep + (task.kind == "answer")  # that rows are in when the task begins
        self._known: dict[int, SharedArrays] = {}

    def shard(self, rows: _Rows) -> Shard[Any, Any]:
        """The blocks of the rows."""
        first = self._task.start // self._model.block_rows
        return Shard(self._model, rows.data, first, self._threads)

    def record(self, sweep: int) -> SharedArrays:
        """What rows share after so many sweeps, and how the last moves them."""
        task = self._task
        if sweep > task.sweep:
            return SharedArrays(None, task.key, task.asks)
        if sweep not in self._known:
            self._known = {sweep: self._files.read_shared(sweep)}
        return self._known[sweep]

    def asks(self, sweep: int) -> NumberedAsks:
        """Return the questions that moved rows in a sweep before the task."""
        asks = self.record(sweep).asks
        return asks[:-1] if sweep > self._task.sweep else asks

    def leads_to(self, rows: _Rows) -> bool:
        """Whether rows in memory are those of the task, or of an earlier sweep since the cut."""
        is_between = self._task.cut <= rows.sweep <= self._last
        return is_between and rows.asked == _numbers(self.asks(rows.sweep))

    def made(self, rows: _Rows) -> _Rows:
        """The rows moved to where the task finds them."""
        while rows.sweep < self._last:
            rows, _ = self.begun(rows)
            for number, ask in self.asks(rows.sweep):
                rows, _ = self.answered(rows, number, ask)
        return rows

    def begun(self, rows: _Rows) -> tuple[_Rows, Total]:
        """The rows after the first step of the next sweep."""
        rows.held.clear()  # there is room for the next
        state = blocks.with_rows_of(self._model, self.record(rows.sweep).state, rows.state)
        key = self.record(rows.sweep + 1).key
        moved = self.shard(rows).steps(key, state, overwrite=True)
        return _Rows(rows.sweep + 1, (), moved.state, moved.held, rows.data), moved.total

    def answered(self, rows: _Rows, number: int, ask: Ask) -> tuple[_Rows, Total]:
        """The rows after an answer in their sweep."""
        moved = MovedRows(rows.state, rows.held, Total())
        moved = self.shard(rows).answers(self.record(rows.sweep).key, number, ask, moved)
        asked = (*rows.asked, number) if ask.moves else rows.asked
        return rows._replace(state=moved.state, held=moved.held, asked=asked), moved.total

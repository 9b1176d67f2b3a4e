"""Compile what a model needs in processes side by side, the first time that it is sampled.

Numba compiles one function at a time in a process, and a first draw needs 40 to 100. While the
process that wants the draw compiles them in the order in which it meets them, others start at the
end of the list; whatever one has finished, the rest read from the cache on disk. Which functions a
model calls, and with which types, stands in ``kernels.json``, a set for each model:

    python -m tests.benchmarks.cold_start --record

writes it. A list out of date costs seconds and nothing else. `compilations` counts what is being
compiled in this process, for the progress line.

Environment
-----------
PGMULT_COMPILE_AHEAD : set to ``0`` to compile in one process.
"""

import atexit
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from multiprocessing.spawn import get_executable
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from numba import types
from numba.core import config, event

from pgmult.compiled.jit import cache_directory, collecting_seldom

_MOST_PROCESSES = 3  # a fourth would only find what the others did


@cache
def _sets() -> dict[str, list[Any]]:
    """Places and types of the kernels of each set, as ``kernels.json`` has them."""
    text = Path(__file__).with_name("kernels.json").read_text(encoding="utf-8")
    sets: dict[str, list[Any]] = json.loads(text)
    return sets


@cache
def kernels(kernel_set: str) -> list[tuple[Any, tuple[Any, ...]]]:
    """Compiled functions of a set and the types of their arguments; what takes longest last."""
    listed = _sets().get(kernel_set, ())
    return [(resolve_name(place), tuple(map(as_type, signature))) for place, signature in listed]


def as_type(written: Any) -> Any:
    """A type of numba's from how it is written in the list.

    A number by its name, ``"float64"``; an array with its dimensions and order, ``"float64 2C"``;
    a named tuple as a list of its class and its fields' types; any other
    as one of ``"tuple"`` and these.
    """
    if isinstance(written, list):
        kind, fields = written[0], tuple(map(as_type, written[1:]))
        return types.BaseTuple.from_types(fields, None if kind == "tuple" else resolve_name(kind))
    number, *array = written.split()
    kind = getattr(types, number)
    return types.Array(kind, int(array[0][:-1]), array[0][-1]) if array else kind


_helpers: dict[str, list[subprocess.Popen[bytes]]] = {}  # by the set that they compile


def compile_ahead(kernel_set: str, cores: int) -> None:
    """Have other processes compile what is missing of a set of kernels, unless they do already.

    They end with the next `compiling_ahead` of the set, or with this process. Where those of other
    sets take all processors, there are none.
    """
    busy = sum(helper.poll() is None for helpers in _helpers.values() for helper in helpers)
    others = min(cores - 1, _MOST_PROCESSES) - busy
    if others <= 0 or kernel_set in _helpers or not _is_missing(kernel_set):
        return
    helpers = _helpers[kernel_set] = list[subprocess.Popen[bytes]]()
    atexit.register(_end, kernel_set)
    silent = subprocess.DEVNULL
    with suppress(OSError):
        for i in range(others):
            program = f"from {__name__} import _help; _help({kernel_set!r}, {i}, {others})"
            command = [get_executable(), "-c", program]
            helpers.append(subprocess.Popen(command, stdin=silent, stdout=silent, stderr=silent))


@contextmanager
def compiling_ahead(kernel_set: str, cores: int) -> Iterator[None]:
    """Within this context, other processes compile what is missing of a set of kernels."""
    compile_ahead(kernel_set, cores)
    try:
        yield
    finally:
        _end(kernel_set)


def compile_everything(cores: int) -> None:
    """Compile all sets in this process, with others beside it."""
    for kernel_set in () if config.DISABLE_JIT else _sets():
        with compiling_ahead(kernel_set, cores), collecting_seldom():
            for kernel, signature in kernels(kernel_set):
                kernel.compile(signature)


def _end(kernel_set: str) -> None:
    for helper in _helpers.pop(kernel_set, ()):
        helper.kill()
        helper.wait()


def _is_missing(kernel_set: str) -> bool:
    is_off = config.DISABLE_JIT or os.environ.get("PGMULT_COMPILE_AHEAD") == "0"
    if is_off or cache_directory() is None:
        return False
    return any(not kernel._cache.is_on_disk() for kernel, _ in kernels(kernel_set))


def _help(kernel_set: str, number: int, others: int) -> None:
    """One of several processes: every `others`-th kernel from the end, then what is left."""
    backward = kernels(kernel_set)[::-1]
    mine = backward[number::others]
    with collecting_seldom():
        for kernel, signature in [*mine, *(one for one in backward if one not in mine)]:
            kernel.compile(signature)


class Compilations(event.Listener):
    """Counts compilations of this process; what comes from the cache on disk is none.

    Attributes
    ----------
    running, done : int
        Under way, a function that another one needs within it; and ended.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.running = self.done = 0

    def on_start(self, event: Any) -> None:
        """A compilation begins."""
        with self._lock:
            self.running += 1

    def on_end(self, event: Any) -> None:
        """A compilation ends."""
        with self._lock:
            self.running -= 1
            self.done += 1


@cache
def compilations() -> Compilations:
    """The counter of this process, from the first call on."""
    counter = Compilations()
    event.register("numba:compile", counter)
    return counter

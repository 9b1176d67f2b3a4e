"""Rows of a block shared among threads.

A row kernel is a compiled function ``kernel(worker, start, stop, *arguments)`` that does rows
``start <= row < stop`` and draws row i's random numbers from ``open_stream(key, i)``. Because the
kernels release the interpreter lock, ordinary threads run them side by side, inside chains that
are threads themselves; Numba's own parallel loops are not used (two threads in one abort the
process under its default threading layer). What a row computes never depends on the split.

`worker` numbers the piece, so that a kernel can add integer counts into its own slice
``out[worker]``; `num_workers` says how many slices to provide.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

_threads: ContextVar[int] = ContextVar("pgmult_row_threads", default=1)
_finest: ContextVar[int | None] = ContextVar("pgmult_row_grain", default=None)


@cache
def _shared_pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="pgmult-rows")


if hasattr(os, "register_at_fork"):  # a child has none of the parent's threads
    os.register_at_fork(after_in_child=_shared_pool.cache_clear)


@contextmanager
def row_threads(count: int, *, grain: int | None = None) -> Iterator[None]:
    """Within this context (and this thread), row kernels run on `count` threads.

    `grain` overrides the kernels' own: tests split even a handful of rows with ``grain=1``.
    """
    threads, finest = _threads.set(max(1, int(count))), _finest.set(grain)
    try:
        yield
    finally:
        _threads.reset(threads)
        _finest.reset(finest)


def num_workers(num_rows: int, grain: int = 64) -> int:
    """Into how many pieces `over_rows` splits `num_rows` rows here."""
    grain = _finest.get() or grain
    return max(1, min(_threads.get(), -(-num_rows // grain)))


def over_rows(
    kernel: Callable[..., Any], num_rows: int, *arguments: Any, grain: int = 64
) -> list[Any]:
    """Run a row kernel over all rows, in pieces of whole grains; each piece's result, in order."""
    grain = _finest.get() or grain
    pieces = num_workers(num_rows, grain)
    if pieces == 1:
        return [kernel(0, 0, num_rows, *arguments)]
    blocks = -(-num_rows // grain)
    bounds = [min(num_rows, grain * (blocks * i // pieces)) for i in range(pieces + 1)]
    others = [
        _shared_pool().submit(kernel, i, bounds[i], bounds[i + 1], *arguments)
        for i in range(1, pieces)
    ]
    try:
        first = kernel(0, 0, bounds[1], *arguments)
    finally:
        wait(others)  # whatever failed, nobody writes to the arrays any more
    return [first, *(other.result() for other in others)]

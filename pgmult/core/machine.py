"""What this machine has to offer: processors and memory."""

import math
import os
from contextlib import suppress
from pathlib import Path

from pgmult.core.validate import as_positive_int

_LITTLE = 2.0**24  # bytes that need no look at what there is: a sweep of tiny data asks often


def available_cores() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def as_cores(value: int | None) -> int:
    """A number of processors; None is all that there are."""
    return available_cores() if value is None else as_positive_int(value, "cores")


def available_memory() -> float:
    """Bytes this process may still take, where the system reports it; else infinity."""
    limits = [math.inf]
    for group in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        with suppress(OSError, ValueError):  # no such group, or "max"
            limit, used = (int(Path("/sys/fs/cgroup", name).read_text()) for name in group)
            limits.append(limit - used)
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        entries = dict(line.split(":", 1) for line in lines)
        limits.append(int(entries["MemAvailable"].split()[0]) * 1024)
    except (OSError, KeyError, ValueError):
        with suppress(AttributeError, ValueError):  # not everywhere
            limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(limits)


def refuse_unaffordable(num_bytes: float, name: str, value: object) -> None:
    """Raise MemoryError where an argument asks for more memory than there is."""
    if num_bytes < _LITTLE:
        return
    available = available_memory()
    if num_bytes > available:
        needed, free = (f"{size / 2**30:,.1f}" for size in (num_bytes, available))
        raise MemoryError(f"{name} = {value} needs {needed} GiB of memory, there are {free}")

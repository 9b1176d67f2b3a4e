"""Linear algebra on one thread, for draws that no number of processors changes.

A product or a Cholesky factor of some 64 rows and more is split among the BLAS's own threads, as
many as the machine has processors, and other splits round otherwise: the last bits would depend on
the machine. Sweeps over blocks of rows (`pgmult.sampling.blocks`) therefore run inside
`one_blas_thread`. They lose nothing by it, since blocks, chains and workers are what runs side by
side; and several processes whose BLAS threads wait for each other in busy loops burn time for
nothing.
"""

import ctypes
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from threading import Lock

import numpy as np
import scipy

_FUNCTIONS = [
    (f"{prefix}openblas_get_num_threads{suffix}", f"{prefix}openblas_set_num_threads{suffix}")
    for prefix in ("scipy_", "")
    for suffix in ("", "64_", "_64")
] + [("MKL_Get_Max_Threads", "MKL_Set_Num_Threads")]

_lock = Lock()
_inside = 0
_before: list[int] = []


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Within this context, linear algebra of this process runs on one thread.

    The setting is the process's: it is made by the first of several such contexts that overlap, in
    one thread or many, and undone by the last. A BLAS that is neither OpenBLAS nor MKL is left
    as it is.
    """
    global _inside, _before
    with _lock:
        _inside += 1
        if _inside == 1:
            _before = [get() for get, _ in _libraries()]
            for _, set_to in _libraries():
                set_to(1)
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                for (_, set_to), number in zip(_libraries(), _before, strict=True):
                    set_to(number)


@cache
def _libraries() -> list[tuple[Callable[[], int], Callable[[int], object]]]:
    """How to read and set the number of threads of every BLAS that numpy and scipy have loaded."""
    import scipy.linalg  # loads scipy's own  # noqa: F401

    libraries: list[tuple[Callable[[], int], Callable[[int], object]]] = []
    for path in _candidates():
        with suppress(OSError):
            library = ctypes.CDLL(path)
            for get, set_to in _FUNCTIONS:
                if hasattr(library, get) and hasattr(library, set_to):
                    libraries.append((getattr(library, get), getattr(library, set_to)))
    return libraries


def _candidates() -> list[str]:
    """Files of libraries that may be a BLAS, loaded already."""
    words = ("openblas", "mkl_rt", "libblas", "libcblas")
    if sys.platform.startswith("linux"):
        with open("/proc/self/maps") as maps:
            paths = {line.split(maxsplit=5)[-1].strip() for line in maps}
    else:  # those that wheels bring along
        packages = [Path(module.__file__).parent for module in (np, scipy)]
        folders = [f for p in packages for f in (p.parent / f"{p.name}.libs", p / ".dylibs")]
        paths = {str(file) for folder in folders if folder.is_dir() for file in folder.iterdir()}
    return sorted(path for path in paths if any(word in Path(path).name for word in words))

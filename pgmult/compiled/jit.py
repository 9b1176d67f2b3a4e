"""The one decorator behind every compiled function, and where its machine code is kept.

``@jit`` is `numba.njit` with four choices made once:

* ``nogil=True``: chains and blocks of rows run side by side in ordinary threads;
* ``error_model="numpy"``: a division by zero gives inf or nan, never an exception that would
  serialise a loop;
* no compilation on the main thread. Python raises KeyboardInterrupt there, between any two lines,
  and in the middle of numba's tables that would leave them half filled: nothing would compile for
  the rest of the process. Ctrl-C now ends the waiting at once, and the compilation ends by itself;
* a cache on disk whose entries carry a hash of the function's source file *and of every file of
  this package that it imports*, from its own folder or another, however indirectly. Numba stamps a
  cached function with its own file only, so a caller would go on running stale machine code after
  a helper in another file changed; with the hash in the entry's name it cannot, and an edit costs
  only what depends on it.

The cache is a set of pickles, so it must belong to the user alone: the folder is created with
mode 0700 and is refused if somebody else owns it. Where no such folder can be written, functions
are compiled in memory and nothing is said; `pgmult doctor` shows it.

Environment
-----------
PGMULT_CACHE : set to ``0`` to compile in memory only (development, continuous integration).
PGMULT_CACHE_DIR : where to keep machine code instead of the user's cache folder.
"""

import gc
import hashlib
import os
import pickle
import re
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import numba
from numba.core import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator

_IMPORTS = re.compile(r"^from ([\w.]+) import (?:\(([^)]*)\)|([^(#\n]+))", re.MULTILINE)


def imported_files(path: Path) -> list[Path]:
    """The files of the same package that a source file imports, at the start of a line."""
    files = []
    for module, in_parentheses, on_the_line in _IMPORTS.findall(path.read_text(encoding="utf-8")):
        first, *others = module.split(".")
        if first == "":  # from . import x, from .x import y
            place = path.parent.joinpath(*filter(None, others))
        else:
            package = next((folder for folder in path.parents if folder.name == first), None)
            if package is None:
                continue
            place = package.joinpath(*others)
        names = re.findall(r"^\s*(\w+)", (in_parentheses or on_the_line).replace(",", "\n"), re.M)
        candidates = [place.with_suffix(".py"), *(place / f"{name}.py" for name in names)]
        files += [candidate for candidate in candidates if candidate.is_file()]
    return files


@cache
def source_hash(file: str) -> str:
    """Hash of a source file and of all that it imports: what its machine code is made from."""
    sources: dict[Path, bytes] = {}
    waiting = [Path(file)]
    while waiting:
        path = waiting.pop()
        if path not in sources and path.is_file():
            sources[path] = path.read_bytes()
            waiting += imported_files(path)
    digest = hashlib.sha256()
    for path in sorted(sources):
        digest.update(path.name.encode())
        digest.update(sources[path])
    return digest.hexdigest()[:16]


def _candidate_roots() -> list[Path]:
    """Folders to try, best first; the temporary folder serves read-only homes."""
    if os.environ.get("PGMULT_CACHE_DIR"):
        return [Path(os.environ["PGMULT_CACHE_DIR"])]
    if sys.platform == "win32":
        user_cache = os.environ.get("LOCALAPPDATA", "")
    else:
        user_cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    roots = [Path(user_cache) / "pgmult"] if os.path.isabs(user_cache) else []
    owner = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    with suppress(OSError):  # there may be no temporary folder at all
        roots.append(Path(tempfile.gettempdir()) / f"pgmult-{owner}")
    return roots


def _is_private_and_writable(folder: Path) -> bool:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if hasattr(os, "getuid"):
            status = folder.lstat()
            if status.st_uid != os.getuid() or status.st_mode & 0o022:
                return False
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


@cache
def cache_directory() -> Path | None:
    """The folder of machine code, or None when it is compiled in memory only."""
    if os.environ.get("PGMULT_CACHE") == "0":
        return None
    name = f"py{sys.version_info.major}{sys.version_info.minor}-numba{numba.__version__}"
    for root in _candidate_roots():
        if _is_private_and_writable(root) and _is_private_and_writable(root / name):
            return root / name
    return None


class _FolderLocator(_CacheLocator):
    """Places every compiled function in `cache_directory()`."""

    def __init__(self, py_func, py_file):
        self._line = py_func.__code__.co_firstlineno
        self._hash = source_hash(py_file)
        self._folder = str(cache_directory())

    def get_cache_path(self):
        return self._folder

    def get_source_stamp(self):
        return self._hash

    def get_disambiguator(self):
        return f"{self._line}-{self._hash}"

    @classmethod
    def from_function(cls, py_func, py_file):
        return cls(py_func, py_file)


class _FolderCacheImpl(CompileResultCacheImpl):
    _locator_classes = (_FolderLocator,)


class _FolderCache(FunctionCache):
    _impl_class = _FolderCacheImpl

    def load_overload(self, sig, target_context):
        try:
            return super().load_overload(sig, target_context)
        except (AttributeError, ImportError, EOFError, pickle.UnpicklingError):
            # The entry is damaged, or names a class that a later version of this package lacks.
            Path(self._cache_file._index_path).unlink(missing_ok=True)
            return None

    def save_overload(self, sig, data):
        with suppress(OSError):  # a full disk costs the cache, not the result
            super().save_overload(sig, data)

    def is_on_disk(self):
        """Whether some version of the function is kept."""
        return os.path.exists(self._cache_file._index_path)


_FEW_COLLECTIONS = 50_000  # objects between two searches for garbage
_compiling: list[tuple[int, int, int]] = []  # the thresholds found, once for each thread within
_compiling_lock = threading.Lock()


@contextmanager
def collecting_seldom() -> Iterator[None]:
    """Within this context, Python looks for cyclic garbage seldom.

    A compiler makes millions of objects that live, and Python goes through them again and again:
    a twelfth of the seconds.
    """
    with _compiling_lock:
        thresholds = _compiling[0] if _compiling else gc.get_threshold()
        _compiling.append(thresholds)
        if 0 < thresholds[0] < _FEW_COLLECTIONS:
            gc.set_threshold(_FEW_COLLECTIONS, *thresholds[1:])
    try:
        yield
    finally:
        with _compiling_lock:
            thresholds = _compiling.pop()
            if not _compiling:
                gc.set_threshold(*thresholds)


def _off_the_main_thread(compile_for_args):
    """Numba's way from arguments to machine code, taken by another thread than the main one."""

    def compile_quietly(*args, **kwargs):
        with collecting_seldom():
            return compile_for_args(*args, **kwargs)

    def compile_elsewhere(*args, **kwargs):
        if threading.current_thread() is not threading.main_thread():
            return compile_quietly(*args, **kwargs)
        pool = ThreadPoolExecutor(1, thread_name_prefix="pgmult-compile")
        try:
            return pool.submit(compile_quietly, *args, **kwargs).result()
        finally:
            pool.shutdown(wait=False)

    return compile_elsewhere


def jit(function=None, *, inline=False, reassociate=False, within=False):
    """Compile a function when it is first called.

    Parameters
    ----------
    inline : bool
        Have the compiler paste the function into its callers. For scalar draws: a stream's state
        that goes through memory at a call costs more than the draw.
    reassociate : bool
        Let the compiler reorder floating-point sums so that reductions vectorise. Infinities and
        nans keep their meaning (this is not ``fastmath``).
    within : bool
        Compile the function with its caller, from its source, instead of by itself first: for what
        is called in one place, which costs up to half of the wait and changes no number.
    """
    if function is None:
        return lambda f: jit(f, inline=inline, reassociate=reassociate, within=within)
    dispatcher = numba.njit(
        nogil=True,
        error_model="numpy",
        forceinline=inline,
        inline="always" if within else "never",
        no_cfunc_wrapper=True,  # nobody asks for addresses of C functions
        fastmath={"reassoc", "contract"} if reassociate else False,
    )(function)
    if config.DISABLE_JIT:
        return dispatcher
    dispatcher._compile_for_args = _off_the_main_thread(dispatcher._compile_for_args)
    if cache_directory() is not None:
        dispatcher._cache = _FolderCache(function)
    return dispatcher

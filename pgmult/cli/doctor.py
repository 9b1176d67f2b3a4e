"""``pgmult doctor`` and ``pgmult warmup``: does this installation compile, cache and draw right?"""

import argparse
import os
from time import perf_counter

from pgmult.core._version import __version__


def _warmup(options: argparse.Namespace) -> int:
    from pgmult.compiled.ahead import compile_everything
    from pgmult.core.machine import available_cores

    began = perf_counter()
    compile_everything(available_cores())
    print(f"Compiled in {perf_counter() - began:.1f} s; cache of machine code: {_cache_in_words()}")
    return 0


def _doctor(options: argparse.Namespace) -> int:
    """Print what this installation is made of, and try it."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    from pgmult.core.machine import available_cores

    print(f"pgmult {__version__} on Python {platform.python_version()}, {platform.platform()}")
    broken = []
    others = "arviz scikit-learn matplotlib pooch pandas"
    for group, names in (("needs", "numpy scipy numba llvmlite"), ("may use", others)):
        versions = []
        for name in names.split():
            try:
                versions.append(f"{name} {version(name)}")
                broken += _fault_of(name)
            except PackageNotFoundError:
                versions.append(f"{name} -")
        print(f"{group:<9} {', '.join(versions)}")
    for problem in broken:
        print(f"broken    {problem}")
    print(f"cores     {available_cores()} available of {os.cpu_count()}")
    print(f"cache     {_cache_in_words()}")
    trouble = _self_check()
    print(f"sampler   {trouble or 'Pólya-gamma draws have the right mean, with any threads'}")
    return 1 if trouble or broken else 0


def _fault_of(name: str) -> list[str]:
    """Why an installed package cannot be imported, and what to do; nothing if it can."""
    import importlib
    import warnings

    module = {"scikit-learn": "sklearn"}.get(name, name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            importlib.import_module(module)
    except Exception as error:  # a broken installation can raise anything
        why = " ".join(f"{type(error).__name__}: {error}".split())
        beside = " matplotlib" if name == "arviz" else ""
        return [f"{name}: {why} (versions that do not fit: pip install --upgrade {name}{beside})"]
    return []


def _cache_in_words() -> str:
    from pgmult.compiled.jit import cache_directory

    folder = cache_directory()
    if folder is not None:
        return f"{folder}: private and writable, {len([*folder.iterdir()])} files"
    if os.environ.get("PGMULT_CACHE") == "0":
        return "off (PGMULT_CACHE=0): every process compiles anew"
    advice = "set PGMULT_CACHE_DIR to a folder that only you can write to"
    return f"none: no private folder is writable, so every process compiles anew ({advice})"


def _self_check() -> str:
    """What is wrong with the sampler, in words; empty if nothing."""
    import numpy as np

    from pgmult import polya_gamma
    from pgmult.compiled.rows import row_threads

    shape, tilt, size = 3, 1.5, 20_000
    counts, tilts = np.full(size, shape), np.full(size, tilt)
    draws = polya_gamma.sample(np.random.default_rng(0), counts, tilts)
    with row_threads(2):
        again = polya_gamma.sample(np.random.default_rng(0), counts, tilts)
    if not np.array_equal(draws, again):
        return "two threads draw other numbers than one"
    error = np.sqrt(float(polya_gamma.var(shape, tilt)) / size)
    expected = float(polya_gamma.mean(shape, tilt))
    if not abs(draws.mean() - expected) < 5.0 * error:
        return f"the mean of Pólya-gamma draws is {draws.mean():.5f} and should be {expected:.5f}"
    return ""

"""What every test may use."""

import gc
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from pgmult.topics import Corpus

os.environ.setdefault("PGMULT_COMPILE_AHEAD", "0")  # every processor is testing already


def pytest_configure(config: pytest.Config) -> None:
    """Without compilation, numpy warns of the wrap-around that integer arithmetic relies on."""
    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        wraps = "ignore:overflow encountered in scalar:RuntimeWarning"
        config.addinivalue_line("filterwarnings", wraps)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is imported and collected lives to the end: Python does not look there for garbage.

    Nor does it look often afterwards: a twelfth of the seconds of tests of the command line.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(10_000)
        gc.enable()


@pytest.fixture
def rng() -> np.random.Generator:
    """Random numbers that are the same in every run."""
    return np.random.default_rng(11)


@pytest.fixture
def corpus() -> "Corpus":
    """Forty documents of 0 to about 30 tokens, one of them empty, one word never used."""
    from pgmult.topics import as_corpus

    counts = np.random.default_rng(11).poisson(0.6, size=(40, 25))
    counts[3] = 0
    counts[:, 7] = 0
    return as_corpus(counts, [f"word{v}" for v in range(25)])


@pytest.fixture(autouse=True, scope="session")
def quick_disk() -> Iterator[None]:
    """Nothing waits until it is on disk, but in the processes that tests start and kill."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda file: None)
        yield


@pytest.fixture
def shared_data() -> Callable[[str], Path]:
    """``shared_data(name)``: a data set's folder; skips the test where it is absent.

    Looked for in ``$PGMULT_DATA``, else in ``shared/data`` beside the repository.
    """

    def find(name: str) -> Path:
        beside = Path(__file__).parents[2] / "shared" / "data"
        folder = Path(os.environ.get("PGMULT_DATA", beside)) / name
        if not folder.is_dir():
            pytest.skip(f"data set {name!r} is not on this machine (set PGMULT_DATA to its parent)")
        return folder

    return find

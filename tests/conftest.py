"""What every test may use."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Without compilation, numpy warns of the wrap-around that integer arithmetic relies on."""
    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        wraps = "ignore:overflow encountered in scalar:RuntimeWarning"
        config.addinivalue_line("filterwarnings", wraps)


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

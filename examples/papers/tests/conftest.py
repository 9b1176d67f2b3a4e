"""What tests of papers may use: what those of the package may, and the modules of a paper."""

import importlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tests.conftest import *  # noqa: F403

PAPERS = Path(__file__).parents[1]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of papers are slow ones: most compile code of their own, which no user waits for."""
    for item in items:
        if PAPERS in item.path.parents:
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def paper_scripts() -> Callable[[str], dict[str, ModuleType]]:
    """``paper_scripts(folder)``: the modules in a paper's folder, by name."""

    def load(folder: str) -> dict[str, ModuleType]:
        names = [path.stem for path in (PAPERS / folder).glob("*.py")]
        return {name: importlib.import_module(f"examples.papers.{folder}.{name}") for name in names}

    return load

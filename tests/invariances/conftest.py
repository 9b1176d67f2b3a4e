"""The folder in which relations keep their runs, each made once, and the marks of all of them."""

from pathlib import Path

import pytest

MATRIX = Path(__file__).parent / "test_matrix.py"

# Warnings are for users, who read them on the error stream; here the numbers are compared.
MARKS = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("default"),
    pytest.mark.xdist_group("invariances"),
]


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.parent == MATRIX.parent and item.path != MATRIX:
            for mark in MARKS:
                item.add_marker(mark)

"""Every notebook is a script and a stripped .ipynb that say the same."""

from pathlib import Path

import pytest

jupytext = pytest.importorskip("jupytext", reason="notebooks are paired by jupytext")

SCRIPTS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.py"))


def test_there_are_notebooks():
    assert SCRIPTS


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_the_pair_agrees_and_holds_no_output(script):
    notebook = jupytext.read(script.with_suffix(".ipynb"))
    source = jupytext.read(script)
    assert [(c.cell_type, c.source) for c in notebook.cells] == [
        (c.cell_type, c.source) for c in source.cells
    ]
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None

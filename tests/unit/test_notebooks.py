"""Every notebook is a script and an .ipynb that say the same; the .ipynb shows what it gives."""

import base64
import re
from pathlib import Path

import pytest

jupytext = pytest.importorskip("jupytext", reason="notebooks are paired by jupytext")

SCRIPTS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.py"))
AGAIN = "run python docs/notebooks.py"
A_PLACE = re.compile(
    r"(?<![\w./:])/(?:home|root|tmp|usr|var|work|Users|opt)/|[A-Z]:\\\\|0x[0-9a-f]{8}"
)
notebooks = pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)


def outputs(script):
    notebook = jupytext.read(script.with_suffix(".ipynb"))
    return [o for cell in notebook.cells if cell.cell_type == "code" for o in cell.outputs]


def test_there_are_notebooks_for_each_job_and_ones_own_model():
    assert {"topics", "fields", "sequences", "own_model"} <= {script.stem for script in SCRIPTS}
    assert sorted(SCRIPTS[0].parent.glob("*.ipynb")) == [s.with_suffix(".ipynb") for s in SCRIPTS]


@notebooks
def test_the_pair_agrees(script):
    notebook = jupytext.read(script.with_suffix(".ipynb"))
    source = jupytext.read(script)
    assert [(c.cell_type, c.source) for c in notebook.cells] == [
        (c.cell_type, c.source) for c in source.cells
    ], AGAIN


@notebooks
def test_it_shows_text_and_figures_and_no_error(script):
    kinds = {kind for output in outputs(script) for kind in output.get("data", {})}
    assert "image/png" in kinds, AGAIN
    assert any(output.output_type == "stream" for output in outputs(script)), AGAIN
    assert not [output for output in outputs(script) if output.output_type == "error"]


@notebooks
def test_it_holds_nothing_that_changes_from_run_to_run(script):
    notebook = jupytext.read(script.with_suffix(".ipynb"))
    assert set(notebook.metadata) <= {"jupytext", "kernelspec"}
    for number, cell in enumerate(notebook.cells):
        assert cell.id == f"cell-{number}"
        assert set(cell.metadata) <= {"lines_to_next_cell"}
        assert cell.get("execution_count") is None
    for output in outputs(script):
        assert output.get("execution_count") is None
        shown = [output.get("text", ""), *map(str, output.get("data", {}).values())]
        texts = [text for text in shown if not text.startswith("iVBOR")]
        assert not [place for text in texts for place in A_PLACE.findall(text)]


@notebooks
def test_it_is_small(script):
    assert script.with_suffix(".ipynb").stat().st_size < 400_000
    for output in outputs(script):
        if "image/png" in output.get("data", {}):
            assert base64.b64decode(output.data["image/png"]).startswith(b"\x89PNG")

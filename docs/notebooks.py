"""Run the notebooks and keep what they show: ``python docs/notebooks.py [NAME ...]``.

Writes an .ipynb beside each script of `notebooks/`, with its outputs, and without what changes from
run to run or names this machine: counters, times, folders. Figures have 256 colours, a third of the
bytes. Minutes of a processor.
"""

import base64
import io
import re
import sys
from pathlib import Path

import jupytext
from nbclient import NotebookClient
from PIL import Image

HERE = Path(__file__).parent.parent / "notebooks"
_WARNED_AT = re.compile(r"^(?:/|<|[A-Z]:).*?:\d+: (\w+Warning: .*)$", re.MULTILINE)
_SOURCE_LINE = re.compile(r"(Warning: .*(?:\n(?!  ).*)*)\n  .*(?:\n|$)")


def run(script):
    """The notebook of a script, with its outputs."""
    notebook = jupytext.read(script)
    client = NotebookClient(
        notebook, timeout=900, record_timing=False, resources={"metadata": {"path": str(HERE)}}
    )
    client.execute()
    notebook.metadata.pop("language_info", None)
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
        if cell.cell_type == "code":
            cell.execution_count = None
            cell.outputs = joined(cell.outputs)
            for output in cell.outputs:
                settle(output)
    return notebook


def joined(outputs):
    """Outputs with pieces of one stream together."""
    kept = []
    for output in outputs:
        last = kept[-1] if kept else {}
        if output.output_type == "stream" and last.get("name") == output.name:
            last.text += output.text
        else:
            kept.append(output)
    return kept


def settle(output):
    """Take out what is not the same next time, or elsewhere."""
    if output.output_type == "execute_result":
        output.execution_count = None
    if output.output_type == "stream":
        text = _WARNED_AT.sub(r"\1", output.text)
        output.text = _SOURCE_LINE.sub(r"\1\n", text)
    elif "image/png" in output.get("data", {}):
        output.data["image/png"] = smaller(output.data["image/png"])


def smaller(picture):
    """A PNG in base64, with a palette and without what it says of who made it."""
    file = io.BytesIO()
    with Image.open(io.BytesIO(base64.b64decode(picture))) as image:
        image.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(
            file, "PNG", optimize=True
        )
    return base64.b64encode(file.getvalue()).decode()


def main(names):
    """Run the notebooks of these names, or all."""
    for script in sorted(HERE.glob("*.py")):
        if not names or script.stem in names:
            jupytext.write(run(script), script.with_suffix(".ipynb"))
            print(script.with_suffix(".ipynb"))


if __name__ == "__main__":
    main(sys.argv[1:])

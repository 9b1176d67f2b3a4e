"""The tables of Knowles and Minka (2011) are made, here for a few halves of Iris."""

import importlib.util
import re
from argparse import Namespace
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "papers" / "knowles2011" / "tables.py"


def run(capsys, *tables, **options):
    spec = importlib.util.spec_from_file_location("knowles2011_tables", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    defaults = {"splits": 2, "sweeps": 300, "methods": ["quadratic", "tilted", "bohning"]}
    script.main(Namespace(tables=tables, **(defaults | options)))
    return capsys.readouterr().out


@pytest.mark.slow
def test_errors_of_the_bounds(capsys):
    printed = run(capsys, "figure2")
    at_one = next(line for line in printed.splitlines() if line.split()[0] == "1")
    log, tilted, quadratic = (float(cell) for cell in at_one.split()[1:4])
    assert tilted < log < quadratic


@pytest.mark.slow
def test_iris(capsys, shared_data, monkeypatch):
    monkeypatch.setenv("PGMULT_DATA", str(shared_data("uci").parent))
    printed = run(capsys, "iris", "accuracy")
    bounds = dict(re.findall(r"^(quadratic|tilted|bohning) +(-\d+\.\d) ±", printed, re.MULTILINE))
    assert float(bounds["tilted"]) == pytest.approx(-30.5, abs=3.5)  # the paper: -31.2
    assert float(bounds["quadratic"]) == pytest.approx(-64.9, abs=6.0)  # the paper: -65
    assert float(bounds["bohning"]) == pytest.approx(-40.6, abs=4.0)


@pytest.mark.slow
def test_without_data(capsys, monkeypatch):
    monkeypatch.delenv("PGMULT_DATA", raising=False)
    assert "left out" in run(capsys, "glass")

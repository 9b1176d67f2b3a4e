"""The tables of Hensman, Rattray and Lawrence (2012) are made, here for a small part."""

import csv
import importlib.util
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "papers" / "hensman2012" / "tables.py"
OPTIONS = {
    "tolerance": 1e-6, "iterations": 3000, "scale": 1.0, "threads": 1, "distances": [5.0],
    "components": 6, "restarts": 4, "topics": 20, "documents": [60], "starts": 1, "reads": 2000,
    "draws": 400,
}  # fmt: skip


@pytest.fixture
def made(tmp_path):
    """``made(tables, **options)``: the rows of the last table."""
    spec = importlib.util.spec_from_file_location("hensman2012_tables", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)

    def make(*tables, **options):
        script.main(Namespace(**(OPTIONS | {"tables": tables, "out": tmp_path} | options)))
        with open(tmp_path / f"{tables[-1]}.csv", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    return make


@pytest.mark.slow
def test_tables_without_data(made, monkeypatch, capsys):
    monkeypatch.delenv("PGMULT_DATA", raising=False)
    rows = made("mixtures")
    assert sum(int(row["successes"]) for row in rows) > 0
    for row in rows:
        spent = [float(row[f"{what}_a_success"]) for what in ("iterations", "evaluations")]
        assert spent[0] < spent[1] if int(row["successes"]) else spent == [np.inf, np.inf]
    rows = made("expression")
    assert {row["data"] for row in rows} == {"synthetic, 2,000 reads"}
    assert np.ptp([float(row["bound"]) for row in rows]) < 0.01
    assert made("accuracy")[0]["data"] == "synthetic, 400 reads"
    assert "bitseq/bitseq_c0b0.npz is left out" in capsys.readouterr().out


@pytest.mark.slow
def test_iterations_on_real_reads(made, monkeypatch, shared_data):
    monkeypatch.setenv("PGMULT_DATA", str(shared_data("bitseq").parent))
    rows = {row["method"]: row for row in made("expression", reads=0)}
    for row in rows.values():
        assert float(row["bound"]) == pytest.approx(-50416.039, abs=0.001)
    iterations = {method: float(row["iterations"]) for method, row in rows.items()}
    assert 240 < iterations["vbem"] < 300
    assert iterations["polak_ribiere"] == pytest.approx(iterations["vbem"], rel=0.05)
    assert iterations["fletcher_reeves"] < 75
    assert iterations["hestenes_stiefel"] < 75
    assert float(rows["squarem"]["evaluations"]) < 90


@pytest.mark.slow
def test_accuracy_on_real_reads(made, monkeypatch, shared_data):
    """Means agree with Gibbs sampling to half a standard deviation; deviations are too small."""
    monkeypatch.setenv("PGMULT_DATA", str(shared_data("bitseq").parent))
    everything, _ = made("accuracy", reads=0, draws=2000)
    assert float(everything["mean_away_in_sd_median"]) < 0.15
    assert float(everything["mean_away_in_sd_largest"]) < 0.75
    assert 0.3 < float(everything["sd_ratio_median"]) < 0.8
    assert float(everything["total_variation"]) < 0.012


@pytest.mark.slow
def test_topics_of_real_papers(made, monkeypatch, shared_data):
    """With momentum from the start, Fletcher-Reeves ends 9,000 nats below variational EM."""
    monkeypatch.setenv("PGMULT_DATA", str(shared_data("nips11").parent))
    rows = {row["method"]: row for row in made("topics", topics=10, tolerance=10.0, scale=0.1)}
    bounds = {method: float(row["bound"]) for method, row in rows.items()}
    for method in ("fletcher_reeves", "hestenes_stiefel", "squarem"):
        assert bounds[method] > bounds["vbem"] - 2000.0
    evaluations = {method: float(row["evaluations"]) for method, row in rows.items()}
    assert evaluations["fletcher_reeves"] < 0.75 * evaluations["vbem"]

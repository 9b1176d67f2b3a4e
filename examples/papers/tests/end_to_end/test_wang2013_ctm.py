"""The comparison of correlated topic models in Wang and Blei (2013) runs and ranks as it should."""

import csv
from types import SimpleNamespace

import pytest


@pytest.fixture
def ctm(paper_scripts, monkeypatch, shared_data):
    monkeypatch.setenv("PGMULT_DATA", str(shared_data("ap").parent))
    return paper_scripts("wang2013")["ctm"]


@pytest.mark.slow
def test_every_method_beats_the_unigram_and_is_drawn(ctm, tmp_path, capsys):
    options = SimpleNamespace(
        corpus="ap", documents=112, observed=[0.5], topics=[5], iterations=3, seconds=3.0,
        num_words=500, out=tmp_path, words=False,
    )  # fmt: skip
    ctm.main(options)
    assert (tmp_path / "ctm.csv").is_file()
    assert (tmp_path / "ctm.png").stat().st_size > 10_000
    lines = [line for line in capsys.readouterr().out.splitlines() if "observed, K = 5" in line]
    assert len(lines) == len((ctm.LAPLACE, ctm.GIBBS))
    with open(tmp_path / "ctm.csv", newline="", encoding="utf-8") as file:
        gains = [float(x["log_predictive"]) - float(x["unigram"]) for x in csv.DictReader(file)]
    assert min(gains) > 0.1


@pytest.mark.slow
def test_language_models_beat_what_they_smooth(ctm, capsys):
    ctm.language_models([0.5])
    levels = [
        float(line.split(": ")[1].split()[0]) for line in capsys.readouterr().out.splitlines()
    ]
    assert min(levels[2:]) > max(levels[:2]) + 0.1
    assert levels[2:] == pytest.approx([-7.17], abs=0.005)

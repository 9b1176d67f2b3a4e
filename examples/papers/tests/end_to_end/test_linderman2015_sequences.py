"""The figure of sequences of Linderman, Johnson and Adams (2015) is made, with short chains."""

import csv
from argparse import Namespace

import pytest


@pytest.mark.slow
def test_figure4(paper_scripts, monkeypatch, tmp_path, capsys, shared_data):
    monkeypatch.setenv("PGMULT_DATA", str(shared_data("alice").parent))
    shared_data("dna")
    options = Namespace(
        out=tmp_path, data=["dna", "alice", "chapters"], methods=["SBM-LDS", "HMM"], seeds=[0, 1],
        sweeps=8, seconds=10.0, draws=2, legacy_draws=2, particles=30, regions=4, words=1000,
    )  # fmt: skip
    paper_scripts("linderman2015")["figure4"].main(options)

    with open(tmp_path / "figure4.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    found = {(row["data"], row["method"], row["seed"]): row for row in rows}
    assert len(rows) == len(found) == 3 * (6 + 2 * 3)  # counted once, sampled at both seeds
    alice = {method: row for (data, method, seed), row in found.items() if data == "alice"}
    for method, legacy, gain in (  # nothing random in these
        ("unigram + 1", 1.18, 0.0),
        ("unigram + 0.1", 0.94, -0.31),
        ("bigram KN", 1.08, -0.09),
        ("online unigram", 1.25, 0.21),
        ("cache", 1.39, 0.31),
    ):
        assert float(alice[method]["legacy"]) == pytest.approx(legacy, abs=0.006)
        assert float(alice[method]["gain"]) == pytest.approx(gain, abs=0.01)
    assert float(alice["unigram + 1"]["log_predictive"]) == pytest.approx(-6.428, abs=1e-3)
    for seed in "01":  # after eight sweeps; amino acids are known, words are not
        assert float(found["dna", "SBM-LDS", seed]["gain"]) > 0.02
        blended = float(found["alice", "SBM-LDS and cache", seed]["gain"])
        assert blended > float(found["alice", "SBM-LDS", seed]["gain"]) + 0.2
    assert found["dna", "SBM-LDS", "0"]["gain"] != found["dna", "SBM-LDS", "1"]["gain"]
    assert (tmp_path / "figure4.png").read_bytes().startswith(b"\x89PNG")
    assert "alice: gain over unigram + 1" in capsys.readouterr().out

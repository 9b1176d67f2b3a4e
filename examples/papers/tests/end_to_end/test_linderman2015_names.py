"""The table of names of Linderman, Johnson and Adams (2015) is made, here for a small part."""

import csv
from argparse import Namespace

import pytest


@pytest.mark.slow
def test_names(paper_scripts, monkeypatch, tmp_path, capsys, shared_data):
    monkeypatch.setenv("PGMULT_DATA", str(shared_data("names").parent))
    options = Namespace(
        out=tmp_path, methods=["static", "raw_gp", "lnm_gp", "sbm_gp"], seconds=1.5, names=14,
        states=["CA", "NY", "TX"], years=10, births=1000, structure="dense", seed=0,
    )  # fmt: skip
    paper_scripts("linderman2015")["names"].main(options)

    with open(tmp_path / "names.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["method"], row["year"]) for row in rows] == [
        (method, year) for method in options.methods for year in ("2012", "2013")
    ]
    for row in rows:
        assert 7.0 < float(row["top"]) <= 10.0  # of 14: by chance 7.1
        if row["method"] == "static":
            assert float(row["gain"]) == 0.0
        else:  # equal shares would lose 0.17: with so many births standing still is good
            assert float(row["gain"]) > -0.02
    with open(tmp_path / "names_time.csv", encoding="utf-8") as file:
        assert {row["method"] for row in csv.DictReader(file)} == {"lnm_gp", "sbm_gp"}
    assert (tmp_path / "names.png").read_bytes().startswith(b"\x89PNG")
    assert "lnm_gp 2012: top-10" in capsys.readouterr().out

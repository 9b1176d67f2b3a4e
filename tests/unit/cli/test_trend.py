"""Trends at the command line, from a table of counts to a forecast."""

import numpy as np
import pytest

from pgmult.cli import main

pytestmark = pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")


def test_counts_by_year_are_forecast(tmp_path, capsys):
    rng = np.random.default_rng(2)
    share = 1.0 / (1.0 + np.exp(-0.2 * np.arange(-12.0, 13.0)))
    rows = ["place,year,name,n"]
    for place in "xy":
        for t, p in enumerate(share):
            counts = rng.multinomial(500, [p * 0.7, p * 0.3, 1.0 - p])
            rows += [
                f"{place},{1980 + t},{name},{n}" for name, n in zip("abc", counts, strict=True)
            ]
    table, run = tmp_path / "names.csv", tmp_path / "run"
    table.write_text("\n".join(rows), encoding="utf-8")
    columns = ["--symbol", "name", "--sequence", "place", "--time", "year", "--count", "n"]
    few = [
        "--draws",
        "40",
        "--tune",
        "40",
        "--chains",
        "2",
        "--cores",
        "1",
        "--quiet",
        "--hold-out",
        "3",
    ]
    fit = ["sequences", "fit", str(table), *columns, *few, "--model", "trend", "--out", str(run)]
    assert main(fit) == 0
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "levels with damped slopes" in page
    assert "held out" in page
    capsys.readouterr()
    ahead = tmp_path / "ahead.csv"
    assert main(["sequences", "forecast", str(run), "--steps", "2", "--out", str(ahead)]) == 0
    cells = ahead.read_text(encoding="utf-8").splitlines()
    assert len(cells) == 1 + 2 * 2 * 3
    assert "2002" in cells[1]

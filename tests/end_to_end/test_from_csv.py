"""Four jobs in twelve lines each, from a CSV to a saved figure, as they are printed."""

import csv
import datetime
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "from_csv"
SMALLER = {
    "draws=200, tune=400": "draws=8, tune=4",
    "draws=400, tune=400": "draws=8, tune=4",
    "draws=200, chains=2": "draws=8, tune=4, chains=2",
    "num_topics=12": "num_topics=3",
}


def articles(rng):
    words = np.array([f"word{a}{b}" for a in "abcdefgh" for b in "abcdefgh"])
    return [["text"], *([" ".join(rng.choice(words, size=12))] for _ in range(120))]


def names(rng):
    rows = [["year", "state", "name", "n"]]
    for year in range(1990, 2000):
        for state in ("NY", "CA"):
            counts = rng.multinomial(50, [0.4, 0.3, 0.2, 0.1])
            rows += [[year, state, name, n] for name, n in zip("ABCD", counts, strict=True)]
    return rows


def visits(rng):
    first = datetime.date(2024, 1, 1)
    return [["patient", "day", "state"]] + [
        [patient, first + datetime.timedelta(days=day), rng.choice(["stable", "relapse"])]
        for patient in ("p1", "p2")
        for day in range(25)
    ]


def survey(rng):
    rows = [
        [rng.choice(["left", "right", "none"]), "fm"[i % 2], 20 + i % 50, f"S{i % 7}"]
        for i in range(200)
    ]
    return [["vote", "sex", "age", "state"], *rows]


def census(rng):
    return [
        ["sex", "age", "state", "people"],
        *(["fm"[i % 2], 25 + i, f"S{i % 7}", 1 + i] for i in range(18)),
    ]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
@pytest.mark.parametrize(
    ("script", "table", "rows", "figure"),
    [
        ("topics.py", "articles.csv", articles, "topics.png"),
        ("fields.py", "names.csv", names, "names.png"),
        ("sequences.py", "visits.csv", visits, "visits.png"),
        ("regression.py", "survey.csv", survey, "age.png"),
    ],
    ids=["topics", "fields", "sequences", "regression"],
)
def test_a_table_becomes_a_figure(script, table, rows, figure, monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    for name, made in ((table, rows), ("census.csv", census)):
        with (tmp_path / name).open("w", newline="") as file:
            csv.writer(file).writerows(made(np.random.default_rng(0)))
    code = (FOLDER / script).read_text(encoding="utf-8")
    for as_printed, smaller in SMALLER.items():
        code = code.replace(as_printed, smaller)
    exec(code, {})
    assert (tmp_path / figure).stat().st_size > 5000


@pytest.mark.parametrize("script", sorted(path.name for path in FOLDER.glob("*.py")))
def test_scripts_are_short(script):
    _, body = (FOLDER / script).read_text(encoding="utf-8").split('"""\n', 1)
    assert len([line for line in body.splitlines() if line.strip()]) <= 12

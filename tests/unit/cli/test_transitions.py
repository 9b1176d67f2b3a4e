"""``pgmult sequences``: forms of tables, transitions, filtered predictions and states."""

import csv

import pytest

from pgmult.cli import main

pytestmark = pytest.mark.filterwarnings("ignore")
FIT = ["--no-compare", "--quiet", "--draws", "30", "--tune", "10", "--chains", "2", "--out"]


def write(path, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return str(path)


def read(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("run")


@pytest.fixture(scope="module")
def wide(place):
    """Well, ill and dead people, some of whom were lost."""
    people = ["WWIW", "WIID", "WWWW", "IIDD", "WIW-", "WW--", "WID-", "IWWI"] * 4
    head = ["id", "y2000", "y2001", "y2002", "y2003"]
    rows = [[i, *("" if k == "-" else k for k in one)] for i, one in enumerate(people)]
    return write(place / "wide.csv", [head, *rows])


@pytest.fixture(scope="module")
def run(place, wide):
    words = ["--wide", "y2000:y2003", "--sequence", "id", "--model", "markov", "--symbols", "W,I,D"]
    assert main(["sequences", "fit", wide, *words, *FIT, str(place / "run")]) == 0
    return str(place / "run")


def test_wide_long_and_spells_are_the_same(place, wide, run):
    table, long, spells = read(wide), [["id", "t", "s"]], [["id", "a", "b", "s"]]
    for row in table:
        steps = [(t, row[f"y{t}"]) for t in range(2000, 2004) if row[f"y{t}"]]
        long += [[row["id"], t, k] for t, k in steps]
        for t, k in steps:
            if spells[-1][0] == row["id"] and spells[-1][3] == k and spells[-1][2] == t - 1:
                spells[-1][2] = t
            else:
                spells.append([row["id"], t, t, k])
    answers = []
    for name, rows, words in (
        ("long", long, ["--symbol", "s", "--time", "t"]),
        ("spells", spells, ["--symbol", "s", "--begin", "a", "--end", "b"]),
    ):
        path = write(place / f"{name}.csv", rows)
        words += ["--sequence", "id", "--model", "markov", "--symbols", "W,I,D"]
        assert main(["sequences", "fit", path, *words, *FIT, str(place / name)]) == 0
        out = place / f"{name}-moves.csv"
        assert main(["sequences", "transitions", str(place / name), "--out", str(out)]) == 0
        answers.append(out.read_text())
    assert answers[0] == answers[1]


def test_transitions_and_what_follows(place, run, capsys):
    out = place / "moves.csv"
    for words, last in (
        ([], "to"), (["--durations"], "in"), (["--reach", "3"], "to"),
        (["--occupancy", "2"], "to"), (["--time-in", "5"], "to"),
    ):  # fmt: skip
        assert main(["sequences", "transitions", run, *words, "--out", str(out)]) == 0
        rows = read(out)
        assert [row[last] for row in rows][:3] == ["W", "I", "D"]  # as --symbols has them
    assert main(["sequences", "transitions", run, "--difference", "a", "b"]) != 0
    assert "--difference takes groups" in capsys.readouterr().err


def test_predictions_are_smoothed_or_filtered(place, wide, run):
    out = place / "predicted.csv"
    answers = []
    for words in ([], ["--filtered"]):
        assert main(["sequences", "predict", run, wide, *words, "--out", str(out)]) == 0
        answers.append([float(row["mean"]) for row in read(out)])
    assert len(answers[0]) == len(answers[1]) > 0


def test_hidden_states_of_a_new_table(place, wide, capsys):
    words = ["--wide", "y*", "--sequence", "id", "--model", "hmm", "--states", "2"]
    there, out = str(place / "hidden"), place / "states.csv"
    assert main(["sequences", "fit", wide, *words, *FIT, there]) == 0
    new = write(place / "new.csv", [["id", "y2000", "y2001"], ["z", "W", "I"]])
    for more in ([], ["--filtered"]):
        assert main(["sequences", "states", there, new, *more, "--out", str(out)]) == 0
        assert [row["sequence"] for row in read(out)] == ["z", "z"]
    assert main(["sequences", "transitions", there, "--out", str(out)]) == 0
    assert {row["from"] for row in read(out)} == {"1", "2"}


def test_what_is_asked_for_is_named(place, wide, run, capsys):
    assert main(["sequences", "fit", wide, *FIT, str(place / "none")]) != 0
    assert "--wide" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["sequences", "fit", wide, "--count", "y2000", "--count", "y2001", *FIT, "none"])
    assert "--count takes one column, got y2000 and y2001" in capsys.readouterr().err
    words = ["--wide", "y*", "--symbols", "W,Q", "--model", "markov"]
    assert main(["sequences", "fit", wide, *words, *FIT, str(place / "none")]) != 0
    assert "got 'Q'" in capsys.readouterr().err


def test_forecasts_that_need_inputs_name_the_option(place, capsys):
    rows = [["id", "t", "s", "warm"]]
    rows += [[i, t, "ab"[(i + t) % 3 % 2], 0.1 * t] for i in range(6) for t in range(8)]
    table = write(place / "warm.csv", rows)
    words = ["--symbol", "s", "--sequence", "id", "--time", "t", "--model", "hmm", "--states", "2"]
    there = str(place / "warm")
    assert main(["sequences", "fit", table, *words, "--inputs", "~ warm", *FIT, there]) == 0
    assert main(["sequences", "forecast", there, "--steps", "2"]) != 0
    assert "--future)" in capsys.readouterr().err
    out = str(place / "effects.csv")
    assert main(["sequences", "effects", there, "warm", "--at", "warm=0,0.5", "--out", out]) == 0
    assert {row["warm"] for row in read(out)} == {"0", "0.5"}
    assert main(["sequences", "transitions", there, "--at", "warm=0,0.5", "--out", out]) == 0
    assert {row["warm"] for row in read(out)} == {"0", "0.5"}
    gap = ["--difference", "0", "0.5", "--out", out]
    assert main(["sequences", "transitions", there, "--at", "warm=0,0.5", *gap]) == 0


def test_a_markov_chain_with_inputs_has_transitions_of_symbols_by_groups(place):
    rows = [["id", "t", "s", "sex"]]
    rows += [
        [i, t, "xy"[(i + t * (1 + i % 2)) % 3 % 2], "fm"[i % 2]] for i in range(8) for t in range(8)
    ]
    table = write(place / "sexes.csv", rows)
    words = ["--symbol", "s", "--sequence", "id", "--time", "t", "--model", "markov"]
    there, out = str(place / "sexes"), str(place / "sexes-moves.csv")
    assert main(["sequences", "fit", table, *words, "--inputs", "~ sex", *FIT, there]) == 0
    assert main(["sequences", "transitions", there, "--by", "sex", "--out", out]) == 0
    assert {(row["sex"], row["from"]) for row in read(out)} == {(s, k) for s in "fm" for k in "xy"}

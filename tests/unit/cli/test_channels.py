"""Several columns of symbols, and transitions that are ruled out, from a file to the answers."""

import csv

import numpy as np
import pytest

from pgmult.cli import main

SAMPLED = ["--draws", "60", "--tune", "40", "--chains", "2", "--quiet"]
STEPS = ["--sequence", "who", "--time", "year", "--every", "1"]


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    """Two channels that depend on one hidden state, with gaps in each; nobody leaves "r"."""
    path, rng = tmp_path_factory.mktemp("people") / "people.csv", np.random.default_rng(0)
    moves = np.array([[0.8, 0.15, 0.05], [0.2, 0.7, 0.1], [0.0, 0.0, 1.0]])
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["who", "year", "job", "home", "is"])
        for person in range(30):
            state = 0
            for year in range(10):
                alike = rng.random() < 0.9
                cells = "nsr"[state], "xyz"[state if alike else 0]
                gaps = [c if rng.random() < 0.9 else "" for c in cells]
                writer.writerow([f"p{person}", year, *gaps, "nsr"[state]])
                state = int(rng.choice(3, p=moves[state]))
    return path


def answer(run, *words):
    assert main(["sequences", *words[:1], str(run), *words[1:], "--out", f"{run}.csv"]) == 0
    with open(f"{run}.csv", newline="") as file:
        return list(csv.DictReader(file))


def test_several_channels(people, tmp_path):
    run, channels = tmp_path / "run", ["--symbol", "job", "--symbol", "home"]
    fit = ["sequences", "fit", str(people), *channels, *STEPS, "--states", "3", "--out", str(run)]
    assert main([*fit, *SAMPLED]) == 2  # gaps
    assert main([*fit, *SAMPLED, "--drop-incomplete"]) == 0
    page = (run / "report.html").read_text()
    assert "channel 2" in page
    assert "of 2 channels" in page
    ahead = answer(run, "forecast", "--steps", "1")
    by_channel = {}
    for row in ahead:
        name = row["symbol"].partition(":")[0]
        by_channel[row["sequence"], name] = by_channel.get((row["sequence"], name), 0.0) + float(
            row["mean"]
        )
    np.testing.assert_allclose(list(by_channel.values()), 1.0, atol=1e-3)  # of rounded means
    assert {name for _, name in by_channel} == {"job", "home"}
    change = answer(run, "forecast", "--steps", "2", "--next-change")
    assert {row["now"][:4] for row in change} == {"job:"}
    again = answer(run, "predict", str(people), "--drop-incomplete")
    assert [row["mean"] for row in again] == [row["mean"] for row in answer(run, "export")]
    assert [row["statistic"] for row in answer(run, "check")][-1] == "dependence"
    assert main(["sequences", "compare", str(run)]) == 0


def test_several_channels_are_for_hidden_states(people, tmp_path, capsys):
    fit = ["sequences", "fit", str(people), "--symbol", "job", "--symbol", "home", *STEPS]
    fit += ["--drop-incomplete", "--out", str(tmp_path / "run"), *SAMPLED]
    assert main([*fit, "--model", "markov"]) == 2
    assert "MultinomialHMM takes several" in capsys.readouterr().err
    assert main([*fit, "--max-symbols", "2"]) == 2
    assert "are for one --symbol" in capsys.readouterr().err


def transitions(people, run, *words):
    fit = ["sequences", "fit", str(people), "--symbol", "is", *STEPS, "--model", "markov", *words]
    assert main([*fit, "--out", str(run), *SAMPLED]) == 0
    rows = answer(run, "transitions")
    return {(row["from"], row["to"]): float(row["mean"]) for row in rows}


def test_transitions_that_are_ruled_out(people, tmp_path):
    free = transitions(people, tmp_path / "free")
    none = transitions(people, tmp_path / "none", "--forbid", "r", "*")
    seen = transitions(people, tmp_path / "seen", "--only-observed")
    assert free["r", "n"] > 1e-3
    for held in (none, seen):
        assert held["r", "r"] == 1.0
        assert held["r", "n"] == held["r", "s"] == 0.0
        assert held["s", "n"] == pytest.approx(free["s", "n"], abs=0.05)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--model", "markov", "--forbid", "n", "s"], "allowed must have all that was observed"),
        (["--model", "markov", "--forbid", "q", "s"], "--forbid must be one of n, r, s"),
        (["--model", "hmm", "--forbid", "r", "*"], "are for --model markov and markov2"),
    ],
)
def test_what_can_be_ruled_out(people, tmp_path, capsys, words, message):
    fit = ["sequences", "fit", str(people), "--symbol", "is", *STEPS, *SAMPLED]
    assert main([*fit, "--out", str(tmp_path / "run"), *words]) == 2
    assert message in capsys.readouterr().err

"""No command ends in a traceback: columns of the wrong kind are refused in one line, code 2."""

import csv

import pytest

from pgmult.cli import commands as cli

WRONG = {
    "text": ["some words", "more of them", "a third", "and so on"],
    "dates": ["2024-01-01", "2024-01-02", "2024-01-03", "2024-02-01"],
    "thousands": ["1,000", "2,500", "66,565", "3,000"],
    "empty": ["", "", "", ""],
    "truth": ["TRUE", "FALSE", "TRUE", "FALSE"],
    "negative": [-1, 2, -3, 4],
    "fractions": [0.5, 1.25, 2.75, 3.5],
    "infinite": ["inf", 1, 2, "nan"],
}
RIGHT = {
    "answer": ["a", "b", "a", "b"], "n": [1, 2, 3, 4], "x": [0.0, 1.0, 2.0, 4.0],
    "who": ["u", "u", "v", "v"], "when": [1, 2, 1, 2],
}  # fmt: skip
COMMANDS = {
    "regression": ["regression", "fit", "{}", "{answer} ~ {x} + (1 | {who})", "--weight", "{n}"],
    "choice": [
        "choice", "fit", "{}", "{n} ~ {x}", "--occasion", "{who}", "--alternative", "{when}",
    ],
    "fields": [
        "fields", "fit", "{}", "--inputs", "{x}", "--category", "{answer}", "--count", "{n}",
    ],
    "sequences": [
        "sequences", "fit", "{}", "--symbol", "{answer}", "--sequence", "{who}", "--time", "{when}",
        "--count", "{n}",
    ],
    "topics": [
        "topics", "fit", "{}", "--column", "{answer}", "--names", "{who}", "--prevalence", "~ {x}",
        "--topics", "2",
    ],
}  # fmt: skip
FEW = ["--draws", "1", "--tune", "0", "--chains", "1", "--quiet", "--no-compare"]


def cases():
    for family, command in COMMANDS.items():
        for role in RIGHT:
            if any(f"{{{role}}}" in word for word in command):
                for wrong in WRONG:
                    yield pytest.param(family, role, wrong, id=f"{family}-{role}-{wrong}")


@pytest.fixture(autouse=True)
def no_sampling(monkeypatch):
    """What passes the checks is not sampled here: it is the reading that is tried."""
    monkeypatch.setattr("pgmult.cli.actions.sampled", lambda *given: None)
    monkeypatch.setattr("pgmult.cli.actions._finish", lambda *given: 0)
    monkeypatch.setenv("PGMULT_TRACEBACK", "1")  # an error of the program's own is raised


@pytest.mark.parametrize(("family", "role", "wrong"), list(cases()))
def test_a_column_of_the_wrong_kind(family, role, wrong, capsys, tmp_path, recwarn):
    path = tmp_path / "table.csv"
    table = RIGHT | {wrong: WRONG[wrong]}
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([table.keys(), *zip(*table.values(), strict=True)])
    names = {name: wrong if name == role else name for name in RIGHT}
    command = [word.format(path, **names) for word in COMMANDS[family]]
    code = cli.main([*command, *FEW, "--out", str(tmp_path / "run")])
    errors = capsys.readouterr().err
    assert code in (0, 2)
    if code == 2:
        refusals = [line for line in errors.splitlines() if not line.startswith("pgmult: warning")]
        assert len(refusals) == 1, errors
        assert refusals[0].startswith("pgmult: ")
        assert len(refusals[0]) > len("pgmult: ") + 15

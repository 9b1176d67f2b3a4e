"""``pgmult fields`` and ``pgmult sequences``: from a table to a run, a report and tables."""

import argparse
import csv
import json
import re

import numpy as np
import pytest

import pgmult
from pgmult.cli import commands as cli
from pgmult.cli.actions import ActionParser
from pgmult.cli.runs import StoredRun
from pgmult.core.sweeps import Scan
from pgmult.fields import MultinomialGP, predict
from pgmult.fields.family import FIELDS
from pgmult.fields.tables import field_of
from pgmult.sampling.store import RunReader

FEW = ["--draws", "6", "--tune", "3", "--chains", "2", "--quiet"]
STATES = ["NY", "TX", "WA"]


def run(capsys, *arguments):
    """Exit code, output and error output of a command."""
    try:
        code = cli.main([str(argument) for argument in arguments])
    except SystemExit as stop:  # argparse
        code = stop.code
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def complaint(capsys, *arguments):
    """The one line of a command that refuses."""
    code, out, errors = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert errors.startswith("pgmult: ")
    assert errors.count("\n") == 1
    return errors


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """A tidy table of counts by year, state and name."""
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("names") / "names.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["year", "state", "name", "n"])
        for year in range(2000, 2006):
            for state in STATES:
                share = 0.2 + 0.1 * (year - 2000)
                counts = rng.multinomial(60, [share, 0.1, 0.9 - share])
                writer.writerows(
                    [year, state, name, n]
                    for name, n in zip(["Ada", "Ben", "Cleo"], counts, strict=True)
                )
    return path


@pytest.fixture(scope="module")
def field_run(names, tmp_path_factory):
    """A run of fields with two years hidden and a year predicted."""
    out = tmp_path_factory.mktemp("fields") / "run"
    new = out.with_name("new.csv")
    new.write_text("year,state\n2006,NY\n2006,OR\n")
    code = cli.main(
        ["fields", "fit", str(names), "--inputs", "year", "state", "--places", "us-states",
         "--category", "name", "--count", "n", "--out", str(out), "--hold-out", "year=2005",
         "--at", str(new), *FEW]
    )  # fmt: skip
    assert code == 0
    return out


@pytest.mark.usefixtures("field_run")
class TestFields:
    def test_fit_tells_what_moved_and_writes_a_page(self, capsys, field_run):
        code, out, errors = run(capsys, "fields", "show", field_run)
        assert (code, errors) == (0, "")
        said = "From year 2000 to 2005 (mean over 3 places, weighted by their counts) Ada rose"
        assert said in " ".join(out.split())
        assert "counts at 3 inputs that were held out" in out
        assert "At the new inputs" in out
        assert "2006, OR" in out
        page = (field_run / "report.html").read_text(encoding="utf-8")
        assert page.startswith("<!DOCTYPE html>")
        assert "map of Ada" in page
        assert 'class="drawing" role="img"' in page

    def test_the_draws_are_those_of_the_function(self, names, field_run):
        posterior, data = pgmult.load(field_run), RunReader(field_run).inputs()["data"]
        hidden = StoredRun.open(field_run, FIELDS).held_out["counts"]
        rows = list(csv.DictReader(names.read_text().splitlines()))
        whole = field_of(
            {
                key: np.array([int(r[key]) if key in ("year", "n") else r[key] for r in rows])
                for key in rows[0]
            },
            inputs=["year", "state"], category="name", count="n",
            places={"state": pgmult.datasets.us_states()},
        )  # fmt: skip
        np.testing.assert_array_equal(data.counts + hidden, whole.counts)
        np.testing.assert_array_equal(hidden.any(axis=1), whole.columns["year"] == 2005)
        with pytest.warns(pgmult.ConvergenceWarning):
            again = pgmult.sample(
                posterior.model, data, draws=6, tune=3, chains=2, random_seed=0, keep="psi",
                progressbar=False,
            )  # fmt: skip
        assert isinstance(posterior.model, MultinomialGP)
        np.testing.assert_array_equal(again["psi"], posterior["psi"])

    def test_predict_and_export_are_tidy(self, capsys, field_run, tmp_path):
        new = tmp_path / "at.csv"
        new.write_text("state,year\nOR,2003\n")
        code, out, _ = run(capsys, "fields", "predict", field_run, new)
        assert code == 0
        rows = list(csv.DictReader(out.splitlines()))
        assert [r["category"] for r in rows] == ["Ada", "Ben", "Cleo"]
        assert {(r["year"], r["state"]) for r in rows} == {("2003", "OR")}
        assert sum(float(r["mean"]) for r in rows) == pytest.approx(1.0, abs=1e-4)
        file = tmp_path / "probs.json"
        assert run(capsys, "fields", "export", field_run, "--out", file)[0] == 0
        table = json.loads(file.read_text())
        assert len(table) == 3 * (18 + 2)
        posterior, data = pgmult.load(field_run), RunReader(field_run).inputs()["data"]
        mean = predict(posterior, data=data, inputs="seen", max_draws=None).mean
        assert table[0]["mean"] == pytest.approx(mean[0, 0], rel=1e-4)

    def test_effects(self, capsys, field_run):
        given = ["fields", "effects", field_run, "year"]
        code, out, errors = run(capsys, *given, "--at", "state=NY", "--difference", 2004, 2000)
        assert (code, errors) == (0, "")
        code, out, _ = run(capsys, *given, "--by", "state", "--json")
        rows = json.loads(out)
        assert code == 0
        assert len(rows) == 3 * 6 * 3
        assert {row["state"] for row in rows} == set(STATES)
        assert "column must be one of year, state" in complaint(
            capsys, "fields", "effects", field_run, "age"
        )

    def test_rows_with_gaps_are_left_out_when_asked(self, capsys, tmp_path):
        table = tmp_path / "gaps.csv"
        table.write_text("year,name,n\n2000,Ada,3\n2000,,4\n,Ben,4\n2001,Ben,5\n2002,Ada,\n")
        fit = ["fields", "fit", table, "--inputs", "year", "--category", "name", "--count", "n",
               "--out", tmp_path / "run", *FEW]  # fmt: skip
        assert "leave such rows out by --drop-incomplete" in complaint(capsys, *fit)
        code, out, _ = run(capsys, *fit, "--drop-incomplete")
        assert code == 0
        assert "3 rows are left out, without a value of 'n' or 'name' or 'year'" in out
        assert pgmult.load(tmp_path / "run").data.counts.sum() == 8

    @pytest.mark.slow
    def test_states_of_a_hidden_markov_model(self, capsys, tmp_path):
        table = tmp_path / "does.csv"
        table.write_text("\n".join(["does", *("aabab" * 6 + "ccbcb" * 6)]))
        fit = ["sequences", "fit", table, "--symbol", "does", "--model", "hmm", "--states", 2,
               "--out", tmp_path / "run", *FEW]  # fmt: skip
        assert run(capsys, *fit)[0] == 0
        code, out, _ = run(capsys, "sequences", "states", tmp_path / "run")
        assert code == 0
        assert "Hidden states" in out
        path = tmp_path / "path.csv"
        steps = ["sequences", "states", tmp_path / "run", "--steps", "--out", path]
        assert run(capsys, *steps)[0] == 0
        assert path.read_text().splitlines()[0] == "sequence,step,state,p1,p2"
        assert "Hidden states" in (tmp_path / "run" / "report.html").read_text()

    @pytest.mark.parametrize("timed", [True, False])
    def test_steps_of_unknown_symbols_stay_when_rows_are_left_out(self, capsys, tmp_path, timed):
        rows = [
            f"{'' if i % 4 == 1 else 'ab'[i % 2]},{i},{'' if i % 6 == 2 else 7}" for i in range(60)
        ]
        table = tmp_path / "gaps.csv"
        table.write_text("\n".join(["does,at,heat", *rows]))
        fit = ["sequences", "fit", table, "--symbol", "does", "--model", "markov", "--out",
               tmp_path / "run", *FEW]  # fmt: skip
        fit += ["--time", "at"] if timed else []
        assert "or make such steps missing ones by --drop-incomplete" in complaint(capsys, *fit)
        code, out, _ = run(capsys, *fit, "--drop-incomplete")
        assert code == 0
        assert "15 rows are of missing steps, without a value of 'does'" in out
        data = pgmult.load(tmp_path / "run").data
        assert data.totals.tolist() == [int(i % 4 != 1) for i in range(60)]
        assert data.alphabet[data.symbols[:3]].tolist() == ["a", "a", "b"]

    def test_compare_report_and_resume(self, capsys, field_run, tmp_path):
        code, out, _ = run(capsys, "fields", "compare", field_run, field_run, "--json")
        assert code == 0
        assert [row["verdict"] for row in json.loads(out)] == ["", "level"]
        page = tmp_path / "page.html"
        assert run(capsys, "fields", "report", field_run, "--out", page)[0] == 0
        assert page.exists()
        code, out, _ = run(capsys, "fields", "resume", field_run, "--quiet", "--json")
        told = json.loads(out)
        assert code == 0
        assert told["facts"]["run"].startswith("2 x 6 draws after 3 sweeps")
        (change,) = (r for r in told["sections"]["What changed"]["rows"] if r["category"] == "Ada")
        assert change["change"]["lower"] <= change["change"]["mean"] <= change["change"]["upper"]

    def test_nothing_is_guessed(self, capsys, names, tmp_path):
        fit = ["fields", "fit", names, "--out", tmp_path / "run", "--category", "name"]
        both = ["--inputs", "year", "state"]
        states = ["--places", "us-states"]
        for more, said in {
            (*both,): "the input 'state' has names: if they are places, say where they are with",
            ("--inputs", "yaer"): "inputs must name columns of table, got 'yaer'",
            ("--inputs", "year", *states): "--places COLUMN=us-states: columns of names among the"
            " inputs are none",
            (*both, *states, "--hold-out", "2"): "--hold-out must be between 0 and 1",
            (*both, *states, "--hold-out", "state=NY"): "--hold-out must name an input of numbers",
            (*both, *states, "--hold-out", "year=2050"): "it hides 0",
            (*both, *states, "--length-scale", "year"): "--length-scale must be COLUMN=X",
            (*both, *states, "--length-scale", "age=3"): "must be of one of the inputs, got 'age'",
            (*both, *states, "--overdispersion", "1e300"): "overdispersion must be at most",
            (*both, *states, "--count", "name"): "count must be another column than category",
        }.items():  # fmt: skip
            assert said in complaint(capsys, *fit, *more)
        assert not (tmp_path / "run").exists()

    @pytest.mark.parametrize(
        ("line", "said"),
        [
            ("2000,NY,Ada,", "column 'n' (--count) has no value in 1 of 3 rows, first in line 3"),
            ("2000,,Ada,3", "column 'state' (--inputs state) has no value in 1 of 3 rows"),
            ("2000,NY,,3", "column 'name' (--category) has no value in 1 of 3 rows"),
            ("2000,NY,Ada,NA", "column 'n' (--count) has no value in 1 of 3 rows, first in line 3"),
            ("2000,NY,Ada,three", "column 'n' must hold numbers, got 'three' in line 3"),
            ("07/01/2000,NY,Ada,3", "dates such as 1999-12-31, in every row, got '07/01/2000' in"),
            (
                "2000,N.Y.,Ada,3",
                "column 'state' must hold labels that are known, got 'N.Y.' in line 3 of",
            ),
        ],
    )
    def test_odd_cells_are_refused_with_their_place(self, capsys, tmp_path, line, said):
        table = tmp_path / "odd.csv"
        table.write_text(f"year,state,name,n\n2000,NY,Ben,3\n{line}\n2001,TX,Ada,4\n")
        fit = ["fields", "fit", table, "--inputs", "year", "state", "--places", "us-states",
               "--category", "name", "--count", "n", "--out", tmp_path / "run"]  # fmt: skip
        assert said in complaint(capsys, *fit)

    @pytest.mark.filterwarnings("always::UserWarning")
    def test_labels_that_look_alike_and_repeats_are_told(self, capsys, tmp_path):
        table = tmp_path / "odd.csv"
        rows = ["2000; Ada ;3", "2000;ADA;4", "2001;Ada;5", "2001;ADA;6", "2001;ADA;6"]
        table.write_text("\ufeffyear;name;n\n" + "\n".join(rows), encoding="utf-8")
        code, out, errors = run(
            capsys, "fields", "fit", table, "--inputs", "year", "--category", "name", "--count",
            "n", "--out", tmp_path / "run", *FEW,
        )  # fmt: skip
        assert code == 0
        assert "odd.csv: 24 counts of 2 categories at 2 inputs\n" in out
        alike, repeat = sorted(errors.splitlines())
        assert alike.startswith("pgmult: warning: 1 row is like another in every column, as row 5")
        assert "'ADA' and 'Ada', which differ in capitals or blanks alone" in repeat

    def test_a_run_is_not_overwritten_or_mistaken(self, capsys, names, field_run, tmp_path):
        given = ["--inputs", "year", "--category", "name", "--count", "n"]
        again = run(capsys, "fields", "fit", names, *given, "--out", field_run)
        assert again[0] == 2
        assert "pgmult fields resume" in again[2]
        assert "is a run of pgmult fields" in complaint(capsys, "sequences", "show", field_run)
        assert "no such run" in complaint(capsys, "fields", "show", tmp_path / "nothing")
        (tmp_path / "empty").mkdir()
        assert "is not a run" in complaint(capsys, "fields", "show", tmp_path / "empty")

    def test_rare_categories_can_be_merged(self, capsys, names, tmp_path):
        given = ["--inputs", "year", "--category", "name", "--count", "n", "--max-categories", "2"]
        out = tmp_path / "run"
        assert run(capsys, "fields", "fit", names, *given, "--out", out, *FEW)[0] == 0
        data = RunReader(out).inputs()["data"]
        assert "(other)" in data.categories
        assert data.counts.sum() == 60 * 3 * 6


@pytest.fixture(scope="module")
def visits(tmp_path_factory):
    rng = np.random.default_rng(1)
    path = tmp_path_factory.mktemp("visits") / "visits.csv"
    lines = ["patient,day,state"]
    for patient in ("p1", "p2"):
        states = rng.choice(["stable", "relapse"], size=20)
        lines += [
            f"{patient},2024-01-{day + 1:02},{state}"
            for day, state in enumerate(states)
            if day != 7
        ]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def sequence_run(visits, tmp_path_factory):
    out = tmp_path_factory.mktemp("sequences") / "run"
    code = cli.main(
        ["sequences", "fit", str(visits), "--symbol", "state", "--sequence", "patient", "--time",
         "day", "--every", "day", "--model", "hmm", "--states", "2", "--out", str(out), *FEW]
    )  # fmt: skip
    assert code == 0
    return out


@pytest.mark.usefixtures("sequence_run")
class TestSequences:
    def test_show_forecast_and_export(self, capsys, sequence_run):
        code, out, errors = run(capsys, "sequences", "show", sequence_run)
        assert (code, errors) == (0, "")
        assert "What comes next" in out
        code, out, _ = run(capsys, "sequences", "forecast", sequence_run, "--steps", 2)
        rows = list(csv.DictReader(out.splitlines()))
        assert [r["step"] for r in rows] == ["21", "21", "22", "22"] * 2
        assert {r["symbol"] for r in rows} == {"stable", "relapse"}
        code, out, _ = run(capsys, "sequences", "export", sequence_run, "--json")
        table = json.loads(out)
        assert len(table) == 2 * 20 * 2
        code, out, _ = run(capsys, "sequences", "effects", sequence_run, "sequence", "--json")
        assert len(json.loads(out)) == 2 * 2
        page = (sequence_run / "report.html").read_text(encoding="utf-8")
        assert "no data" in page, "the day that nobody came is marked"

    def test_columns_are_those_of_fit_unless_told(self, capsys, sequence_run, visits):
        told = ["--symbol", "state", "--sequence", "patient", "--time", "day", "--every", "day"]
        predict = ["sequences", "predict", sequence_run, visits]
        assert run(capsys, *predict) == run(capsys, *predict, *told)

    @pytest.mark.filterwarnings("always::UserWarning")
    def test_other_sequences_are_predicted_by_the_symbols_of_the_run(
        self, capsys, sequence_run, tmp_path
    ):
        new = tmp_path / "new.csv"
        new.write_text("state\nrelapse\ndied\nrelapse\n")
        code, out, errors = run(
            capsys, "sequences", "predict", sequence_run, new, "--symbol", "state"
        )
        rows = list(csv.DictReader(out.splitlines()))
        assert code == 0
        assert [r["symbol"] for r in rows] == ["relapse", "stable"] * 3
        assert "1 symbols that are not in the run, such as 'died': their steps are" in errors

    def test_odd_cells_are_refused_with_their_place(self, capsys, tmp_path):
        table = tmp_path / "odd.csv"
        fit = ["sequences", "fit", table, "--symbol", "state", "--time", "day", "--every", "day",
               "--out", tmp_path / "run"]  # fmt: skip
        table.write_text("day,state\n2024-01-01,ill\n,well\n")
        assert (
            "column 'day' (--time day) has no value in 1 of 2 rows, first in line 3"
            in complaint(capsys, *fit)
        )
        table.write_text("day,state\n31/01/2024,ill\n01/02/2024,well\n")
        assert "strings such as '31/01/2024' at row 0 (dates are written 1999-12-31" in complaint(
            capsys, *fit
        )

    @pytest.mark.filterwarnings("always::UserWarning")
    def test_bases_that_are_masked_or_not_known_are_told(self, capsys, tmp_path):
        (tmp_path / "a.fa").write_text(">one\nACGTACGTaacgNNACGT\n>two\nACGGTTGCAA\n")
        run_of = [
            "sequences",
            "fit",
            tmp_path / "a.fa",
            "--model",
            "hmm",
            "--states",
            2,
            "--out",
            tmp_path / "run",
            *FEW,
        ]
        code, out, errors = run(capsys, *run_of)
        assert code == 0
        assert "a.fa (FASTA): 2 sequences, 28 steps, 8 different symbols and 28 observations" in out
        alike, unknown = sorted(errors.splitlines())
        assert "(soft-masked?) has 'A' and 'a', which differ in capitals" in alike
        assert "has N, for unknown bases, and N is a symbol like the others" in unknown

    @pytest.mark.slow
    def test_resume_goes_on(self, capsys, sequence_run):
        code, out, _ = run(capsys, "sequences", "resume", sequence_run, "--draws", 8, "--quiet")
        assert code == 0
        assert "2 x 8 draws" in out
        assert pgmult.load(sequence_run).attrs["draws"] == 8

    def test_compare_without_what_was_held_out_leaves_each_step_out(self, capsys, sequence_run):
        code, text, _ = run(capsys, "sequences", "compare", sequence_run, sequence_run)
        assert code == 0
        text = " ".join(text.split())
        assert "by draws given all other steps" in text
        assert "a step as well as" in text
        assert "+0.0000" in text

    @pytest.mark.slow
    def test_held_out_steps_are_scored(self, capsys, visits, tmp_path):
        given = ["--symbol", "state", "--sequence", "patient", "--time", "day", "--every", "day"]
        out = tmp_path / "run"
        fit = ["sequences", "fit", visits, *given, "--state-dim", 1, "--hold-out", 5, "--out", out]
        code, text, _ = run(capsys, *fit, *FEW)
        assert code == 0
        text = " ".join(text.split())
        assert "What was held out (10 observations, up to 5 steps)" in text
        assert "Each step is predicted from those before it, by draws given all other steps" in text
        code, text, _ = run(capsys, "sequences", "compare", out, out)
        text = " ".join(text.split())
        assert "Each step that was held out is predicted from those before it." in text
        assert "a step as well as" in text
        assert "+0.0000" in text

    def test_files_say_what_they_are(self, capsys, visits, tmp_path):
        out = ["--out", tmp_path / "run"]
        text, fasta, odd = tmp_path / "t.txt", tmp_path / "s.fa", tmp_path / "t.dat"
        text.write_text("to be or not to be\n")
        fasta.write_text(">a\nGATTACA\n")
        odd.write_text("x\n")
        for arguments, said in {
            (visits,): "is a table: say which column is --symbol",
            (visits, "--symbol", "state", "--units", "words"): "--units is for texts",
            (text,): "say --units words or --units characters",
            (text, "--units", "words", "--time", "t"): "is no table: --time is for tables",
            (fasta, "--units", "characters"): "is a FASTA file: --units is for texts",
            (odd,): "which says how it is read",
        }.items():
            assert said in complaint(capsys, "sequences", "fit", *arguments, *out)

    @pytest.mark.parametrize(
        ("name", "content", "more", "found"),
        [
            ("s.fa", ">a\nGATTACA\n>b\nTAGGAT\n", (), (2, 13, 4)),
            ("t.txt", "to be or not\nto be\n", ("--units", "words"), (2, 6, 4)),
            ("t.txt", "abba\nab\n", ("--units", "characters", "--each", "file"), (1, 7, 3)),
            ("t.txt", "a a b b b c\n", ("--units", "words", "--max-symbols", 2), (1, 6, 2)),
        ],
    )
    def test_other_files(self, capsys, tmp_path, name, content, more, found):
        path = tmp_path / name
        path.write_text(content)
        out = tmp_path / "run"
        code, _, _ = run(
            capsys,
            "sequences",
            "fit",
            path,
            *more,
            "--model",
            "hmm",
            "--states",
            2,
            "--out",
            out,
            *FEW,
        )
        assert code == 0
        data = RunReader(out).inputs()["data"]
        assert (data.num_sequences, data.num_steps, data.num_symbols) == found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "found"),
    [
        ("fields", r"hold (\d+) % of the true"),
        ("sequences", r"July and August are in state \d, the drier one, with probability 0.(\d+)"),
        ("regression", r"percentage points less often .* women applied where few"),
        ("choice", r"worth (\d+) dollars"),
    ],
)
def test_demonstrations_find_what_is_known(capsys, family, found, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, errors = run(
        capsys, "demo", family, "--draws", 60, "--tune", 60, "--quiet", "--json"
    )
    assert (code, errors) == (0, "")
    matches = [m for s in json.loads(out)["verdict"] if (m := re.search(found, s))]
    assert len(matches) == 1
    bounds = {"fields": (70, 100), "sequences": (80, 100), "choice": (10, 30)}
    if family in bounds:
        low, high = bounds[family]
        assert low <= int(matches[0][1]) <= high
    page = (tmp_path / f"pgmult-demo-{family}.html").read_text(encoding="utf-8")
    assert "http" not in page.replace("http://www.w3.org", "")


RUNNING = {"--cores", "--quiet", "--json", "--draws"}
READING = {"--delimiter", "--encoding", "--na-values", "--time-zone", "--sheet"}
SHARED = {
    "fit": RUNNING | READING | {
        "--out", "--title", "--tune", "--chains", "--thin", "--seed", "--drop-incomplete",
    },
    "resume": RUNNING,
    "show": {"--json"},
    "report": {"--out"},
    "predict": READING | {"--probability", "--seed", "--out", "--json"},
    "effects": {"--at", "--by", "--difference", "--probability", "--out", "--json", "--figure"},
    "check": {"--seed", "--out", "--json"},
    "compare": {"--json"},
    "export": {"--out"},
}  # fmt: skip
OWN = {
    "topics": {"content", "merge", "quotes", "pack", "refit", "search", "shares"},
    "fields": set(),
    "sequences": {"forecast", "states", "transitions"},
    "regression": {
        "poststratify", "comparisons", "contrasts", "groups", "variance-shares", "loo",
    },
    "choice": {
        "tastes", "worth", "simulate", "elasticities", "surplus", "diversion", "scores",
        "importances", "marginal-means", "amce",
    },
}  # fmt: skip
OWN_DEFAULTS = {"--draws", "--tune", "--by"}


def actions_of(parser):
    """The parsers of a parser's commands."""
    (found,) = (action.choices for action in parser._actions if action.dest == argparse.SUPPRESS
                and isinstance(action.choices, dict))  # fmt: skip
    for each in found.values():
        if isinstance(each, ActionParser):
            each.complete()
    return found


def options_of(parser):
    """Name of an option to what it takes: how many values, which default, which of them."""
    return {
        action.option_strings[-1]: action
        for action in parser._actions
        if action.option_strings and action.dest != "help"
    }


class TestOneVocabulary:
    def test_families_have_the_same_actions(self):
        families = actions_of(cli._parser())
        for family, own in OWN.items():
            assert set(actions_of(families[family])) == SHARED.keys() | own

    @pytest.mark.parametrize("word", SHARED)
    def test_and_the_same_options_for_the_same_thing(self, word):
        families = actions_of(cli._parser())
        each = {name: options_of(actions_of(families[name])[word]) for name in OWN}
        first = each["fields"]
        for family, options in each.items():
            assert SHARED[word] <= options.keys(), family
            for name in SHARED[word] - OWN_DEFAULTS:
                option, other = options[name], first[name]
                assert type(option) is type(other), (family, name)
                assert (option.nargs, option.default) == (other.nargs, other.default)

    def test_every_action_and_option_says_what_it_is(self):
        families = actions_of(cli._parser())
        for family in OWN:
            for word, parser in actions_of(families[family]).items():
                silent = [n for n, o in options_of(parser).items() if not (o.help or o.metavar)]
                assert silent == [], (family, word)


def test_a_run_that_was_sampled_in_python_answers(capsys, tmp_path):
    data = pgmult.sequences.as_sequences(["abcabcab", "bca"])
    model = pgmult.sequences.MultinomialLDS(1)
    with pytest.warns(pgmult.ConvergenceWarning):
        pgmult.sample(
            model, data, draws=6, tune=2, chains=2, random_seed=0, progressbar=False,
            store=tmp_path / "run", keep=(*model.default_keep, "states"),
        )  # fmt: skip
    code, out, errors = run(capsys, "sequences", "show", tmp_path / "run")
    assert (code, errors) == (0, "")
    assert out.startswith(f"{tmp_path / 'run'}\n---")
    code, out, _ = run(capsys, "sequences", "check", tmp_path / "run", "--json")
    assert {row["statistic"] for row in json.loads(out)} == {
        "repeats", "run of a step", "dispersion"
    }  # fmt: skip


def test_interrupted_runs_say_how_to_go_on(capsys, names, tmp_path, monkeypatch):
    sampler, sweeps = MultinomialGP.sampler, []

    def interrupted(self, data):
        moves = sampler(self, data)

        def step(rng, state):
            sweeps.append(None)
            if len(sweeps) == 5:
                raise KeyboardInterrupt
            return moves.step(rng, state)

        return Scan(moves.init, (step,))

    monkeypatch.setattr(MultinomialGP, "sampler", interrupted)
    out = tmp_path / "run"
    given = ["--inputs", "year", "--category", "name", "--count", "n"]
    few = ["--draws", 6, "--tune", 2, "--chains", 1, "--quiet"]
    code, _, errors = run(capsys, "fields", "fit", names, *given, "--out", out, *few)
    assert code == 130
    assert f"pgmult fields resume {out}" in errors
    monkeypatch.setattr(MultinomialGP, "sampler", sampler)
    code, text, _ = run(capsys, "fields", "resume", out, "--quiet")
    assert code == 0
    assert "1 x 6 draws" in text


def test_a_job_ends_once_it_is_settled_unless_it_is_told_when(capsys, tmp_path):
    table = tmp_path / "survey.csv"
    rng = np.random.default_rng(0)
    rows = [f"{'yes' if rng.random() < 0.4 else 'no'},{rng.integers(20, 80)}" for _ in range(60)]
    table.write_text("\n".join(["vote,age", *rows]) + "\n")
    fit = ["regression", "fit", table, "vote ~ age", "--tune", 5, "--chains", 2, "--quiet"]
    code, out, errors = run(capsys, *fit, "--out", tmp_path / "run")
    assert (code, errors) == (0, "")
    attrs = pgmult.load(tmp_path / "run").attrs
    assert attrs["until"] == "settled"
    assert 200 <= attrs["draws"] <= 300
    assert "ended as soon as the main results were worth 200" in " ".join(out.split())
    code, out, errors = run(capsys, "regression", "resume", tmp_path / "run", "--quiet")
    assert (code, errors) == (0, "")
    again = pgmult.load(tmp_path / "run").attrs
    assert again | {"seconds": attrs["seconds"]} == attrs
    code, out, errors = run(capsys, *fit, "--out", tmp_path / "few", "--draws", 6)
    assert (code, errors) == (0, "")
    assert "until" not in pgmult.load(tmp_path / "few").attrs

"""What was fitted is what is asked: the file of a run, asked about without further options, becomes
the data of the run, bit for bit."""

import csv
import json

import numpy as np
import pytest

import pgmult
from pgmult.choice.data import rows_like
from pgmult.cli import commands as cli
from pgmult.cli.runs import StoredRun
from pgmult.fields.tables import with_table
from pgmult.topics.fits.new_documents import align_words

FEW = ["--draws", "3", "--tune", "1", "--chains", "1", "--quiet", "--no-compare"]
RNG = np.random.default_rng(3)


def survey(gap="-9"):
    """A respondent a row, a few of whom did not say how old they are."""
    rows = [
        {"vote": RNG.choice([*"abc"]), "age": int(RNG.integers(18, 80)), "place": f"p{i % 4}"}
        for i in range(40)
    ]
    for i in (3, 8, 21):
        rows[i]["age"] = gap
    return rows


def speeches():
    words = ["tax", "job", "ship", "wave", "barn", "wheat", "the", "of", "sea"]
    return [
        {
            "body": f"@ann {' '.join(RNG.choice(words, 12))} http://a.example/x",
            "who": f"m{i % 5}", "party": [*"NS", "?"][i % 3], "name": f"speech {i}",
        }
        for i in range(30)
    ]  # fmt: skip


def counts():
    return [
        {"year": year, "state": state, "name": name, "n": int(RNG.integers(0, 9))}
        for year in ("1990", "1991", "?", "1992") for state in ("Ohio", "Utah")
        for name in [*"abcde"]
    ]  # fmt: skip


def visits():
    return [
        {
            "who": who, "at": f"2024-01-{day:02d}T23:30:00+0{1 + day % 2}:00",
            "does": "?" if day == 4 else RNG.choice([*"xyzw"], p=[0.4, 0.3, 0.2, 0.1]),
            "heat": int(RNG.integers(0, 9)) if day != 7 else "?",
        }
        for who in ("u", "v") for day in range(1, 16)
    ]  # fmt: skip


def trips(gap="?"):
    rows = [
        {
            "trip": i, "who": f"w{i % 6}", "mode": mode, "price": int(RNG.integers(1, 20)),
            "taken": int(mode == ["bus", "car", "train"][i % 3]),
        }
        for i in range(24) for mode in ("bus", "car", "train")
    ]  # fmt: skip
    rows[10]["price"] = gap
    return rows


def wide_trips():
    rows = [
        {
            "who": f"w{i % 6}", "mode": ["bus", "car", "train"][i % 3],
            **{f"price.{mode}": int(RNG.integers(1, 20)) for mode in ("bus", "car", "train")},
        }
        for i in range(24)
    ]  # fmt: skip
    rows[4]["price.car"] = "?"
    return rows


def words():
    return "\n".join(" ".join(RNG.choice(["the", "a-b", "Zoë", "ship"], 9)) for _ in range(8))


READ = ["--na-values", "?", "-9", "--drop-incomplete"]
PREVALENCE = ["--prevalence", "~ party + (1 | who)"]
KINDS = {
    "topics, stop words none": (
        speeches, ";", ["topics", "fit", "{}", "--column", "body", "--topics", "2", "--stop-words",
                        "none", "--names", "name", "--delimiter", ";"],
    ),
    "topics, pairs of words, addresses, rare ones left out": (
        speeches, ",", ["topics", "fit", "{}", "--column", "body", "--topics", "2", "--ngrams", "2",
                        "--keep-addresses", "--min-count", "3", "--max-words", "12"],
    ),
    "topics, a list of stop words, covariates with gaps": (
        speeches, ",", ["topics", "fit", "{}", "--column", "body", "--topics", "2", "--stop-words",
                        "{stops}", *PREVALENCE, *READ],
    ),
    "fields, the rarest merged, places, gaps": (
        counts, ",", ["fields", "fit", "{}", "--inputs", "year", "state", "--places", "us-states",
                      "--category", "name", "--count", "n", "--max-categories", "3", *READ],
    ),
    "fields, a table of places": (
        counts, "\t", ["fields", "fit", "{}", "--inputs", "year", "state", "--places",
                       "state={places}", "--category", "name", "--count", "n", "--delimiter", "\t",
                       *READ],
    ),
    "sequences, zones, the rarest left out, gaps": (
        visits, ",", ["sequences", "fit", "{}", "--symbol", "does", "--sequence", "who", "--time",
                      "at", "--every", "day", "--time-zone", "Europe/Berlin", "--max-symbols", "3",
                      "--state-dim", "1", *READ],
    ),
    "sequences, inputs with gaps": (
        visits, ",", ["sequences", "fit", "{}", "--symbol", "does", "--sequence", "who", "--time",
                      "at", "--every", "day", "--time-zone", "Europe/Berlin", "--model", "hmm",
                      "--states", "2", "--inputs", "~ heat + (1 | who)", *READ],
    ),
    "sequences, words of a text in another encoding": (
        words, "latin-1", ["sequences", "fit", "{}", "--units", "words", "--encoding", "latin-1",
                           "--state-dim", "1"],
    ),
    "sequences, characters of a whole text": (
        words, "utf-8", ["sequences", "fit", "{}", "--units", "characters", "--each", "file",
                         "--max-symbols", "6", "--state-dim", "1"],
    ),
    "regression, gaps": (
        survey, ",", ["regression", "fit", "{}", "vote ~ s(age) + (1 | place)", *READ],
    ),
    "regression, a mark between cells": (
        lambda: survey(30), "|", ["regression", "fit", "{}", "vote ~ age + (1 | place)",
                                  "--delimiter", "|"],
    ),
    "choice, gaps": (
        trips, ",", ["choice", "fit", "{}", "taken ~ price + mode + (price | who)", "--occasion",
                     "trip", "--alternative", "mode", *READ],
    ),
    "choice, a row an occasion, gaps": (
        wide_trips, ",", ["choice", "fit", "{}", "mode ~ price + (price | who)", "--wide",
                          "price=price.{{}}", *READ],
    ),
}  # fmt: skip


def wrote(folder, make, how):
    """A table with a mark between its cells, or a text in an encoding."""
    made = make()
    if isinstance(made, str):
        path = folder / "data.txt"
        path.write_text(made, encoding=how)
        return path
    path = folder / ("data.csv" if how != "\t" else "data.tsv")
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, made[0].keys(), delimiter=how)
        table.writeheader()
        table.writerows(made)
    return path


def done(capsys, *arguments):
    code = cli.main([str(one) for one in arguments])
    said = capsys.readouterr()
    assert code == 0, said.err
    return said.out


@pytest.fixture
def asked(monkeypatch):
    """What runs are asked, beside the answers."""
    calls = {}
    ask = StoredRun.ask

    def noted(run, word, *arguments, **options):
        calls[word] = run, arguments, options
        return ask(run, word, *arguments, **options)

    monkeypatch.setattr(StoredRun, "ask", noted)
    return calls


def same(one, other, *names):
    for name in names:
        first, second = getattr(one, name), getattr(other, name)
        assert (first is None) == (second is None), name
        np.testing.assert_array_equal(first, second, err_msg=name)


def same_words(run, corpus):
    aligned, _, _ = align_words(corpus, run.data.vocabulary, run.data.num_words)
    same(aligned, run.data, "indptr", "words", "counts", "vocabulary", "names")


def same_rows(run, table):
    """Every row of the table is in the cell of the data that its respondent is in."""
    design = run.data.design.like(table)
    cells = {row.tobytes() for row in run.data.design.matrix}
    assert {row.tobytes() for row in design.matrix} == cells
    assert len(design.matrix) == run.data.respondents.sum()


def same_data(family, run, arguments, options):
    if family == "topics":
        same_words(run, arguments[0])
    elif family == "fields":
        data = with_table(run.data, arguments[0], options["places"])
        rows = {row.tobytes() for row in run.data.inputs}
        assert {row.tobytes() for row in data.new_inputs} == rows
    elif family == "sequences":
        names = ("offsets", "indptr", "symbols", "counts", "alphabet", "names", "starts", "inputs")
        same(arguments[0], run.data, *names)
    elif family == "regression":
        same_rows(run, arguments[0])
    else:
        again, people = rows_like(run.data, arguments[0], None, False)
        same(again, run.data, "x", "taken", "occasions", "people", "alternative", "source")
        assert people.tolist() == [*range(run.data.num_people)]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_the_file_of_a_run_is_its_data(kind, capsys, tmp_path, asked):
    make, how, fit = KINDS[kind]
    family = fit[0]
    stops, places = tmp_path / "stops.txt", tmp_path / "places.tsv"
    stops.write_text("sea\nof\n")
    places.write_text("place\tx\ty\nOhio\t1\t2\nUtah\t3\t1\n")
    path, out = wrote(tmp_path, make, how), tmp_path / "run"
    done(capsys, *(word.format(path, stops=stops, places=places) for word in fit), "--out", out,
         *FEW)  # fmt: skip
    stops.unlink()  # a recipe does not need other files again
    places.unlink()
    done(capsys, family, "predict", out, path, "--out", tmp_path / "probabilities.csv")
    run, arguments, options = asked["predict"]
    same_data(family, run, arguments, options)
    if family == "topics":
        more = [] if "--prevalence" in fit else PREVALENCE
        done(capsys, "topics", "refit", out, path, *more, "--out", tmp_path / "again")
        same_words(asked["refit"][0], asked["refit"][1][0])
        same_words(asked["refit"][0], pgmult.load(tmp_path / "again").data)
    before = run.data
    done(capsys, family, "resume", out, "--draws", 4, "--quiet", "--no-compare")
    arrays = ("counts", "order", "indptr", "words", "x", "taken", "inputs")
    same(pgmult.load(out).data, before, *(name for name in arrays if hasattr(before, name)))


def test_rows_keep_their_numbers_where_some_are_left_out(capsys, tmp_path):
    path, out = wrote(tmp_path, survey, ","), tmp_path / "run"
    done(capsys, "regression", "fit", path, "vote ~ age", "--out", out, *READ, *FEW)
    told = done(capsys, "regression", "predict", out, path)
    lines = [int(row["line"]) for row in csv.DictReader(told.splitlines())]
    assert sorted(set(lines)) == [i + 2 for i in range(40) if i not in (3, 8, 21)]


def test_what_is_told_goes_before_the_recipe(capsys, tmp_path, asked):
    path, out = wrote(tmp_path, speeches, ","), tmp_path / "run"
    fit = ["topics", "fit", path, "--column", "body", "--topics", 2, "--stop-words", "none"]
    done(capsys, *fit, "--out", out, *FEW)
    assert json.loads((out / "job.json").read_text())["recipe"] == {
        "column": "body", "stop_words": "none",
    }  # fmt: skip
    done(capsys, "topics", "predict", out, path, "--stop-words", "english", "--out",
         tmp_path / "shares.csv")  # fmt: skip
    assert "the" not in asked["predict"][1][0].vocabulary.tolist()


def test_a_file_of_another_kind_takes_what_it_can(capsys, tmp_path, asked):
    """Counts have no columns, marks or stop words."""
    path, out = wrote(tmp_path, speeches, ";"), tmp_path / "run"
    fit = ["topics", "fit", path, "--column", "body", "--topics", 2, "--stop-words", "none"]
    done(capsys, *fit, "--delimiter", ";", "--na-values", "?", "--out", out, *FEW)
    (tmp_path / "other.dat").write_text("2 0:1 1:4\n1 1:1\n")
    (tmp_path / "vocab.txt").write_text("tax\nship\n")
    told = done(capsys, "topics", "predict", out, tmp_path / "other.dat", "--out",
                tmp_path / "shares.csv")  # fmt: skip
    assert "the run knows 6 of their 6 words" in told

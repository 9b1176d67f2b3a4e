"""Structural topic models from the command line: from a table to effects, quotes and files."""

import csv
import json

import numpy as np
import pytest

import pgmult
from pgmult.cli import commands as cli

WORDS = {"sea": ["ship", "sail", "wave", "harbour"], "land": ["field", "plough", "wheat", "barn"]}
FIT = [
    "--column", "text", "--prevalence", "~ party * year + (1 | who)", "--content", "~ party",
    "--topics", "2", "--draws", "8", "--tune", "10", "--chains", "2", "--quiet",
]  # fmt: skip


def rows(count=40):
    rng = np.random.default_rng(0)
    for d in range(count):
        kinds = rng.choice(["sea", "land"], p=[0.9, 0.1] if d % 2 else [0.2, 0.8], size=15)
        text = " ".join(rng.choice(WORDS[kind]) for kind in kinds)
        yield {"text": text, "party": "N" if d % 2 else "S", "year": 1900 + d, "who": f"m{d % 6}"}


def write(path, table):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(table[0]))
        writer.writeheader()
        writer.writerows(table)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where ``speeches.csv`` is."""
    folder = tmp_path_factory.mktemp("cli")
    write(folder / "speeches.csv", list(rows()))
    return folder


@pytest.fixture(scope="module")
def run(folder):
    """A run directory, and what was printed when it was made."""
    arguments = ["topics", "fit", str(folder / "speeches.csv"), *FIT, "--out", str(folder / "run")]
    assert cli.main(arguments) == 0
    return folder / "run"


def said(capsys, *arguments):
    code = cli.main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    assert (code, captured.err) == (0, "")
    return captured.out


def refused(capsys, *arguments):
    assert cli.main([str(argument) for argument in arguments]) == 2
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    return errors


class TestFit:
    def test_covariates_reach_the_model_and_texts_the_run(self, run):
        posterior = pgmult.load(run)
        data = posterior.data
        assert type(posterior.model).__name__ == "StructuralTopics"
        assert [term.name for term in data.design.terms] == ["1 | who"]
        assert data.content.labels.tolist() == ["N", "S"]
        assert data.table.texts == [row["text"] for row in rows()]
        assert "theta" in posterior, "for quotes"
        assert (run / "report.html").exists()

    def test_losses_are_printed(self, capsys, tmp_path):
        table = [{"text": "the ship sails", "x": 1}, {"text": "of", "x": 2}, {"text": "", "x": 3}]
        path = write(tmp_path / "t.csv", table * 5)
        output = said(
            capsys, "topics", "fit", path, "--column", "text", "--topics", 2, "--draws", 4,
            "--tune", 2, "--chains", 1, "--quiet", "--no-compare", "--out", tmp_path / "run",
        )  # fmt: skip
        assert ["stop", "words", "(English)", "2", "10", "(50.0%)"] in [
            row.split() for row in output.splitlines()
        ]
        assert "15 documents, of which 10 are left without words (5 had none to begin" in output

    @pytest.mark.filterwarnings("always::UserWarning")
    def test_texts_that_repeat_and_labels_that_look_alike_are_told(self, capsys, tmp_path):
        texts = ["the ship sails home", "home is a ship", "the ship sails home", "ship"] * 2
        table = [{"text": text, "party": party} for text, party in zip(
            texts, ["N", "n", " N ", "S"] * 2, strict=True)]  # fmt: skip
        path = write(tmp_path / "t.csv", table)
        code = cli.main(
            [str(a) for a in ("topics", "fit", path, "--column", "text", "--prevalence", "~ party",
             "--topics", 2, "--draws", 4, "--tune", 2, "--chains", 1, "--quiet", "--out",
             tmp_path / "run")]
        )  # fmt: skip
        told = capsys.readouterr()
        assert code == 0
        assert "\n4 documents have the same words as another one" in told.out
        assert "column 'party' has 'N' and 'n', which differ in capitals" in told.err

    def test_rows_without_a_covariate(self, capsys, folder, tmp_path):
        table = list(rows(12))
        table[3]["party"] = ""
        path = write(tmp_path / "t.csv", table)
        arguments = ["topics", "fit", path, *FIT, "--out", tmp_path / "run"]
        assert "column 'party' has a missing value at row 3" in refused(capsys, *arguments)
        output = said(capsys, *arguments, "--drop-incomplete")
        assert "1 row is left out, without a value of 'party'" in output
        assert pgmult.load(tmp_path / "run").data.num_documents == 11

    @pytest.mark.slow
    def test_resume_goes_on_with_the_same_covariates(self, capsys, folder, tmp_path):
        fit = ["topics", "fit", folder / "speeches.csv", "--column", "text", "--out"]
        said(capsys, *fit, tmp_path / "whole", *FIT[2:])
        fewer = [*FIT[2:]]
        fewer[fewer.index("--draws") + 1] = "3"
        said(capsys, *fit, tmp_path / "broken", *fewer)
        said(capsys, "topics", "resume", tmp_path / "broken", "--draws", 8, "--quiet")
        whole, broken = (pgmult.load(tmp_path / name) for name in ("whole", "broken"))
        np.testing.assert_array_equal(whole["coefficients"], broken["coefficients"])
        assert broken["effect_variances"].shape[:2] == (2, 8)
        shares = said(capsys, "topics", "effects", tmp_path / "broken", "party")
        assert "a new who" in shares

    def test_what_cannot_be(self, capsys, folder, run, tmp_path):
        out = ["--out", tmp_path / "run"]
        table = folder / "speeches.csv"
        texts = tmp_path / "texts.txt"
        texts.write_text("ship sail\nfield plough\n")
        for arguments, expected in (
            ([table], "say which column holds the texts (strings are in 'text', 'who', 'party')"),
            ([table, "--column", "text", "--prevalence", "~ height"], "height"),
            ([table, "--column", "text", "--prevalence", "~ {raise}"], "cannot read '{'"),
            ([table, "--column", "text", "--content", "~ {exit()}"], "cannot read '{'"),
            ([table, "--column", "text", "--content", "~ height"], "content must name columns"),
            ([table, "--column", "text", "--content", "~ year"], "column 'year' must hold labels"),
            ([texts, "--prevalence", "~ x"], "--prevalence is for tables"),
            ([texts, "--names", "x"], "--names is for tables"),
            ([texts, "--word-concentration", -1], "word_concentration must be"),
            ([table, "--column", "text", "--stop-words", "klingon"], "a file with a word a line"),
        ):
            assert expected in refused(capsys, "topics", "fit", *arguments, *out)
        assert not (tmp_path / "run").exists()


class TestKeywords:
    def test_topics_that_are_named_beforehand(self, capsys, folder, tmp_path):
        """With no covariates, too: their names, strength and shares are told."""
        (tmp_path / "words.txt").write_text("water: ship, harbour\n\nsoil: plough wheat\n")
        options = [option for option in FIT if not option.startswith("~")]
        options = [option for option in options if option not in ("--prevalence", "--content")]
        output = said(
            capsys, "topics", "fit", folder / "speeches.csv", *options, "--keywords",
            tmp_path / "words.txt", "--word-concentration", 0.2, "--out", tmp_path / "run",
        )  # fmt: skip
        posterior = pgmult.load(tmp_path / "run")
        assert posterior.model.word_concentration == 0.2
        assert posterior.model.keywords == (
            ("water", ("ship", "harbour")),
            ("soil", ("plough", "wheat")),
        )
        assert list(posterior.coords["keyword_topic"]) == ["water", "soil"]
        assert "how much of a topic comes as its keywords" in output
        found = posterior.keywords()
        np.testing.assert_allclose(
            found.mean[0], [posterior["keyword_shares"][..., 0].mean(),
                            posterior["topic_shares"][..., 0].mean()],
        )  # fmt: skip
        assert posterior.report(topic=1).title.startswith("Topic 1 water: ")

    @pytest.mark.parametrize("text", ["ship sail", "sea:", ": ship", "sea: ship\nsea: sail"])
    def test_files_that_name_no_topics(self, capsys, folder, tmp_path, text):
        (tmp_path / "words.txt").write_text(text)
        said_so = refused(
            capsys, "topics", "fit", folder / "speeches.csv", *FIT, "--keywords",
            tmp_path / "words.txt", "--out", tmp_path / "run",
        )  # fmt: skip
        assert "words.txt, line" in said_so
        assert "must be a" in said_so


class TestQuestions:
    def test_effects(self, capsys, run, tmp_path):
        output = said(capsys, "topics", "effects", run, "party", "--difference", "N", "S")
        assert "party N less party S" in output.replace("\n", " ")
        figure = tmp_path / "curve.svg"
        output = said(
            capsys, "topics", "effects", run, "year", "--by", "party", "--topic", 1,
            "--at", "year=1900,1920,1939", "--figure", figure,
        )  # fmt: skip
        assert figure.read_bytes().startswith(b"<?xml")
        firsts = [line.strip("( ").split()[:1] for line in output.splitlines()]
        numbers = {first[0] for first in firsts if first in (["1"], ["2"])}
        assert numbers == {"1"}
        assert "COLUMN=VALUE" in refused(capsys, "topics", "effects", run, "party", "--at", "year")
        assert "'height'" in refused(capsys, "topics", "effects", run, "height")

    def test_answers_as_files(self, capsys, run, tmp_path):
        file, page = tmp_path / "e.csv", tmp_path / "page.html"
        asked = ["topics", "effects", run, "party", "--difference", "N", "S"]
        assert cli.main([str(a) for a in (*asked, "--out", file)]) == 0
        capsys.readouterr()
        with file.open(newline="") as opened:
            rows_of_file = list(csv.DictReader(opened))
        rows_of_json = json.loads(said(capsys, *asked, "--json"))
        assert [r["topic"] for r in rows_of_file] == [str(r["topic"]) for r in rows_of_json]
        assert said(capsys, "topics", "report", run, "--out", page) == f"{page}\n"
        assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
        told = json.loads(said(capsys, "topics", "show", run, "--json"))
        assert told["title"] == "Topics in speeches.csv"

    def test_content(self, capsys, run, tmp_path):
        output = said(capsys, "topics", "content", run)
        assert "Words of each topic that a group uses most" in output
        output = said(
            capsys, "topics", "content", run, "N", "S", "--topic", 1, "--figure",
            tmp_path / "words.png",
        )  # fmt: skip
        assert "that N and S use most differently" in output
        assert (tmp_path / "words.png").stat().st_size > 1000
        assert "two groups are compared, got 1: N, S" in refused(
            capsys, "topics", "content", run, "N"
        )

    def test_quotes_after_loading(self, capsys, run):
        output = said(capsys, "topics", "quotes", run, "--topic", 1, "--quotes", 1)
        texts = [row["text"] for row in rows()]
        shown = " ".join(output.split())
        assert sum(text in shown for text in texts) == 1

    def test_checks(self, capsys, run):
        assert "words by document" in said(capsys, "topics", "check", run)

    def test_a_run_without_covariates(self, capsys, tmp_path, folder, run):
        arguments = ["--column", "text", *FIT[6:], "--out", tmp_path / "plain"]
        said(capsys, "topics", "fit", folder / "speeches.csv", *arguments)
        errors = refused(capsys, "topics", "effects", tmp_path / "plain", "party")
        assert "it takes a run of StructuralTopics, got CorrelatedTopics" in errors
        refit = ["topics", "refit", tmp_path / "plain", folder / "speeches.csv", "--out"]
        assert "--prevalence must say" in refused(capsys, *refit, tmp_path / "new")
        covariates = ["--prevalence", "~ party + (1 | who)"]
        output = said(capsys, *refit, tmp_path / "new", *covariates)
        assert f"pgmult topics effects {tmp_path / 'new'} COLUMN" in output
        shares = said(capsys, "topics", "effects", tmp_path / "new", "party")
        assert "a new who" in shares
        topics = (pgmult.load(tmp_path / name)["topics"] for name in ("plain", "new"))
        np.testing.assert_array_equal(*topics)
        assert "vary by group" in refused(capsys, *refit[:2], run, *refit[3:], "x", *covariates)


class TestFiles:
    def test_new_documents(self, capsys, run, tmp_path):
        new = [
            {"text": "ship ship wave rocket", "party": "N", "year": 1950, "who": "m1"},
            {"text": "barn wheat", "party": "S", "year": 1950, "who": "stranger"},
        ]
        path = write(tmp_path / "new.csv", new)
        predict = ["topics", "predict", run, path, "--out", tmp_path / "shares.csv"]
        errors = refused(capsys, *predict)
        assert "got 'stranger' at row 1" in errors
        assert "--new-levels" in errors
        assert cli.main([*map(str, predict), "--new-levels"]) == 0
        output = capsys.readouterr().out
        assert "2 new documents; the run knows 5 of their 6 words (83%)" in output
        assert "New to the run, of who: 1 (stranger)." in output
        with (tmp_path / "shares.csv").open(newline="") as file:
            shares = list(csv.DictReader(file))
        assert [row["who"] for row in shares] == ["m1", "stranger"]
        means = [
            name
            for name in shares[0]
            if name.startswith("topic") and " lower" not in name and " upper" not in name
        ]
        assert sum(float(shares[0][name]) for name in means) == pytest.approx(1.0, abs=1e-4)
        path = write(tmp_path / "bare.csv", [{"text": "ship", "party": "N"}])
        transform = ["topics", "predict", run, path, "--column", "text", "--out", "x.csv"]
        assert "must have a column 'year'" in refused(capsys, *transform)

    def test_other_files_are_read_as_the_file_of_the_run(self, capsys, tmp_path):
        path, stops = tmp_path / "texts.txt", tmp_path / "stops.txt"
        path.write_text("tax and jobs\nand ships\n\nbarn and wheat\n\n@ann ship tax\n")
        stops.write_text("ships\n")
        said(
            capsys, "topics", "fit", path, "--documents", "paragraphs", "--stop-words", stops,
            "--ngrams", 2, "--keep-addresses", "--topics", 2, "--draws", 4, "--tune", 2,
            "--chains", 1, "--no-compare", "--out", tmp_path / "run",
        )  # fmt: skip
        stops.unlink()
        predict = ["topics", "predict", tmp_path / "run", path, "--out", tmp_path / "x.csv"]
        assert cli.main([*map(str, predict)]) == 0
        output = capsys.readouterr().out
        data = pgmult.load(tmp_path / "run").data
        assert {"and", "tax_and", "ann"} <= set(data.vocabulary)
        assert f"the run knows {data.num_tokens} of their {data.num_tokens} words" in output
        assert "3 new documents" in output

    def test_export(self, capsys, run, tmp_path):
        output = said(capsys, "topics", "export", run, "--out", tmp_path / "out")
        names = [line.rsplit("/", 1)[1] for line in output.split()]
        assert names == ["topics.csv", "documents.csv"]

    def test_search(self, capsys, folder, run, tmp_path):
        search = ["topics", "search", folder / "speeches.csv", "--column", "text", "--topics"]
        output = said(
            capsys, *search, 3, 2, "--prevalence", "~ party", "--draws", 6,
            "--tune", 5, "--chains", 1, "--quiet", "--figure", tmp_path / "search.svg",
        )  # fmt: skip
        assert "coherence  exclusivity" in output
        assert "predict held-out words best" in output
        assert (tmp_path / "search.svg").exists()


@pytest.mark.slow
def test_the_demonstration(capsys, monkeypatch, tmp_path):
    """On few messages; that all of them are read is tested where they are."""
    from pgmult.cli import demos
    from pgmult.datasets import state_of_the_union

    few = state_of_the_union()[::13]
    monkeypatch.setattr(demos, "state_of_the_union", lambda: few)
    output = said(
        capsys, "demo", "--topics", 3, "--draws", 6, "--tune", 4,
        "--chains", 1, "--quiet", "--out", tmp_path / "run",
    )  # fmt: skip
    for piece in (
        "76 pieces of 200 words",
        "Party Republican - Democratic",
        "random terms",
        "Does it predict better than simple models?",
        "topics without columns",
    ):
        assert piece in output
    assert (tmp_path / "run" / "report.html").exists()

"""The command line: what it writes, its exit codes, and one clear line for bad input."""

import gzip
import os
import re
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse

import pgmult
from pgmult.cli import commands as cli
from pgmult.cli import shared
from pgmult.regression.models.sampler import RegressionSampler
from pgmult.topics.models.correlated import CorrelatedTopics

SMALL = ["--topics", "3", "--draws", "6", "--tune", "2", "--chains", "2", "--quiet"]


@pytest.fixture
def corpus(tmp_path):
    """An LDA-C file with its vocabulary beside it."""
    rng = np.random.default_rng(0)
    lines = []
    for _ in range(20):
        words = np.flatnonzero(rng.random(8) < 0.5)
        lines.append(" ".join([str(len(words)), *(f"{w}:{rng.integers(1, 5)}" for w in words)]))
    path = tmp_path / "corpus.dat"
    path.write_text("\n".join(lines) + "\n")
    (tmp_path / "vocab.txt").write_text("\n".join("abcdefgh") + "\n")
    return path


def run(capsys, *arguments):
    """Exit code, output and error output of a command."""
    try:
        code = cli.main([str(argument) for argument in arguments])
    except SystemExit as stop:  # argparse
        code = stop.code
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def fit(capsys, corpus, out, *more):
    return run(capsys, "topics", "fit", corpus, "--out", out, *more)


class TestPack:
    def test_a_run_of_a_packed_corpus_is_that_of_its_source(self, capsys, corpus, tmp_path):
        packed = tmp_path / "packed"
        code, output, errors = run(capsys, "topics", "pack", corpus, "--out", packed, "--quiet")
        assert (code, errors) == (0, "")
        assert f"{packed}: Corpus(20 documents, 8 words" in output
        assert f"Continue with: pgmult topics fit {packed} " in output
        code, output, errors = fit(capsys, packed, tmp_path / "one", *SMALL)
        assert (code, errors) == (0, "")
        assert "(packed corpus): Corpus(20 documents" in output
        fit(capsys, corpus, tmp_path / "other", *SMALL)
        one, other = pgmult.load(tmp_path / "one"), pgmult.load(tmp_path / "other")
        assert np.array_equal(one["topics"], other["topics"])

    def test_texts_and_what_was_lost(self, capsys, tmp_path):
        table = tmp_path / "t.csv"
        table.write_text("n,body\n1,red blue\n2,red red\n")
        out = ["--out", tmp_path / "packed", "--quiet"]
        code, output, _ = run(
            capsys, "topics", "pack", table, "--column", "body", "--names", "n",
            "--min-count", 2, *out,
        )  # fmt: skip
        assert code == 0
        assert "Corpus(2 documents, 1 words, 3 tokens)" in output
        assert "fewer than 2 times in all" in output
        assert pgmult.topics.open_corpus(tmp_path / "packed").names.tolist() == ["1", "2"]
        code, _, errors = run(capsys, "topics", "pack", table, "--column", "body", *out)
        assert (code, errors.count("\n")) == (2, 1)
        assert "out must be a new or empty folder" in errors
        code, _, errors = run(capsys, "topics", "pack", out[1], "--out", tmp_path / "again")
        assert (code, errors.count("\n")) == (2, 1)
        assert "a packed corpus already" in errors


class TestFit:
    @pytest.mark.slow
    def test_a_cluster_has_the_same_draws(self, capsys, corpus, tmp_path):
        here, there = tmp_path / "here", tmp_path / "there"
        assert fit(capsys, corpus, here, *SMALL)[0] == 0
        code, _, errors = fit(capsys, corpus, there, *SMALL, "--cluster", "local", "--cores", 2)
        assert (code, errors) == (0, "")
        first, second = pgmult.load(here), pgmult.load(there)
        assert set(second) == set(first) - {"theta"}
        assert all(np.array_equal(first[name], second[name]) for name in second)
        code, _, errors = fit(capsys, corpus, tmp_path / "no", *SMALL, "--cluster", "nowhere")
        assert code == 2
        assert "cluster must be 'local'" in errors

    def test_writes_draws_and_a_report(self, capsys, corpus, tmp_path):
        out = tmp_path / "run"
        code, output, errors = fit(capsys, corpus, out, *SMALL)
        assert (code, errors) == (0, "")
        assert f"(LDA-C) with the words of {tmp_path / 'vocab.txt'}: Corpus(20 documents" in output
        assert "2 x 6 draws after 2 sweeps of tuning" in output
        assert "Diagnostics" in output
        posterior = pgmult.load(out)
        assert posterior["topics"].shape == (2, 6, 3, 8)
        assert posterior.coords["word"].tolist() == list("abcdefgh")
        page = (out / "report.html").read_text(encoding="utf-8")
        assert page.startswith("<!DOCTYPE html>")
        assert "Topics in corpus.dat" in page

    def test_is_the_same_as_the_function(self, capsys, corpus, tmp_path):
        out = tmp_path / "run"
        assert fit(capsys, corpus, out, *SMALL, "--seed", 5, "--thin", 2)[0] == 0
        from pgmult.datasets import read_corpus

        with pytest.warns(pgmult.ConvergenceWarning):
            expected = pgmult.sample(
                CorrelatedTopics(3), read_corpus(corpus), draws=6, tune=2, chains=2, thin=2,
                random_seed=5, progressbar=False,
            )  # fmt: skip
        found = pgmult.load(out)
        for name in expected:
            np.testing.assert_array_equal(found[name], expected[name])

    def test_choices_of_words_reach_the_reader(self, capsys, tmp_path):
        table = tmp_path / "t.csv"
        table.write_text("body\n" + "red blue green\n" * 5 + "red blue\n" * 5 + "rare red\n")
        code, output, _ = fit(
            capsys, table, tmp_path / "run", *SMALL, "--column", "body", "--min-documents", 2,
            "--max-document-share", 0.95,
        )  # fmt: skip
        assert code == 0
        assert "(table): Corpus(11 documents, 2 words, 15 tokens)" in output

    def test_resume_extends_with_the_bits_of_an_unbroken_run(self, capsys, corpus, tmp_path):
        assert fit(capsys, corpus, tmp_path / "whole", *SMALL)[0] == 0
        shorter = ["--topics", 3, "--draws", 2, "--tune", 2, "--chains", 2, "--quiet"]
        assert fit(capsys, corpus, tmp_path / "broken", *shorter)[0] == 0
        more = ["--draws", 6, "--quiet"]
        assert run(capsys, "topics", "resume", tmp_path / "broken", *more)[0] == 0
        whole, resumed = pgmult.load(tmp_path / "whole"), pgmult.load(tmp_path / "broken")
        np.testing.assert_array_equal(whole["topics"], resumed["topics"])

    def test_proportions_are_kept_where_they_are_few_or_asked_for(
        self, capsys, tmp_path, monkeypatch
    ):
        monkeypatch.setattr("pgmult.cli.topics._MOST_BYTES", 1000)
        few, many = tmp_path / "few.dat", tmp_path / "many.dat"
        few.write_text("2 0:3 6:2\n" * 7)
        many.write_text("2 0:3 6:2\n" * 8)
        for corpus, option, kept in (
            (few, [], True),
            (few, ["--no-keep-theta"], False),
            (many, [], False),
            (many, ["--keep-theta"], True),
        ):
            out = tmp_path / f"{corpus.stem}{len(option)}{kept}"
            code, output, _ = fit(capsys, corpus, out, *SMALL, *option)
            assert code == 0
            assert ("in 8 documents are not stored" in output) is (corpus is many and not option)
            assert ("theta" in pgmult.load(out)) is kept
            page = (out / "report.html").read_text(encoding="utf-8")
            assert ("Representative documents" in page) is kept

    def test_interrupt_keeps_the_draws(self, capsys, corpus, tmp_path, monkeypatch):
        step = CorrelatedTopics.step
        sweeps = []

        def interrupted(self, rng, state, data):
            sweeps.append(None)
            if len(sweeps) == 5:
                raise KeyboardInterrupt
            return step(self, rng, state, data)

        monkeypatch.setattr(CorrelatedTopics, "step", interrupted)
        out = tmp_path / "run"
        small = ["--topics", 3, "--draws", 6, "--tune", 2, "--chains", 1, "--quiet"]
        code, output, errors = fit(capsys, corpus, out, *small)
        assert code == 130
        assert f"continue with pgmult topics resume {tmp_path / 'run'}" in errors
        assert "1 x 2 draws (of 6 planned)" in output
        assert pgmult.load(out).num_draws == 2
        monkeypatch.setattr(CorrelatedTopics, "step", step)
        assert run(capsys, "topics", "resume", out, "--quiet")[0] == 0
        assert pgmult.load(out).num_draws == 6

    def test_interrupt_before_the_first_draw(self, capsys, corpus, tmp_path, monkeypatch):
        def interrupted(self, rng, state, data):
            raise KeyboardInterrupt

        monkeypatch.setattr(CorrelatedTopics, "step", interrupted)
        code, _, errors = fit(capsys, corpus, tmp_path / "run", *SMALL)
        assert code == 130
        assert f"continue with pgmult topics resume {tmp_path / 'run'}" in errors
        assert "Traceback" not in errors


class TestBadInput:
    """Exit code 2, one line, no traceback."""

    def complaint(self, capsys, *arguments):
        code, _, errors = run(capsys, *arguments)
        assert code == 2
        assert errors.startswith("pgmult: ")
        assert errors.count("\n") == 1
        return errors

    def test_corpus_files(self, capsys, corpus, tmp_path):
        out = ["--out", tmp_path / "run"]
        broken = tmp_path / "broken.dat"
        broken.write_text("2 0:1 1:1\n2 0:1\n")
        matrix = tmp_path / "negative.npz"
        scipy.sparse.save_npz(matrix, scipy.sparse.csr_array([[1, -1]]))
        (tmp_path / "folder").mkdir()
        (tmp_path / "binary.txt").write_bytes(b"\0\1\2")
        (tmp_path / "words.txt").write_text("a\nb\n")
        wide = tmp_path / "wide.dat"
        wide.write_text("1 2147483648:1\n")
        table = tmp_path / "t.csv"
        table.write_text("body,a;b\nred,1\n")
        cut = tmp_path / "cut.dat.gz"
        cut.write_bytes(gzip.compress(b"1 0:1\n" * 999)[:20])
        for arguments, expected in {
            (tmp_path / "nothing",): "nothing: no such file or folder",
            (broken,): "broken.dat, line 2: announces 2 entries but has 1",
            (matrix,): "negative.npz: counts must be non-negative integers, got -1 at row 0",
            (tmp_path / "folder",): "no .txt or .txt.gz file in this folder",
            (tmp_path / "binary.txt",): "a binary file, expected text",
            (corpus, "--vocabulary", tmp_path / "words.txt"): "beyond the vocabulary of 2 words",
            (corpus, "--min-count", 2): "min_count cannot be applied",
            (wide,): "wide.dat, line 1: expected a number below 2**31 - 1, got 2147483648",
            (table, "--column", "body"): "';' stand in the header; say which one",
            (table, "--column", "body", "--encoding", "nope"): "such as 'latin-1', got 'nope'",
            (cut,): "cut.dat.gz: damaged or truncated gzip data",
        }.items():
            assert expected in self.complaint(capsys, "topics", "fit", *arguments, *out)
        assert not (tmp_path / "run").exists()

    def test_run_directories(self, capsys, corpus, tmp_path):
        foreign = tmp_path / "foreign"
        foreign.mkdir()
        (foreign / "thesis.tex").write_text("mine")
        fitting = ("topics", "fit", corpus, *SMALL, "--out")
        assert str(foreign) in self.complaint(capsys, *fitting, foreign)
        assert [path.name for path in foreign.iterdir()] == ["thesis.tex"]
        assert "a file" in self.complaint(capsys, *fitting, corpus)
        assert str(foreign) in self.complaint(capsys, "topics", "show", foreign)
        assert "nothing" in self.complaint(capsys, "topics", "show", tmp_path / "nothing")
        assert str(foreign) in self.complaint(capsys, "demo", "--out", foreign, *SMALL)

    @pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a folder root cannot fill")
    def test_unwritable_run_directory(self, capsys, corpus):
        fitting = ("topics", "fit", corpus, *SMALL, "--out")
        assert "/proc/self" in self.complaint(capsys, *fitting, "/proc/self/run")

    def test_a_run_is_not_overwritten(self, capsys, corpus, tmp_path):
        out = tmp_path / "run"
        assert fit(capsys, corpus, out, *SMALL)[0] == 0
        held = self.complaint(capsys, "topics", "fit", corpus, "--out", out, *SMALL)
        assert f"{out}: the directory holds a run (continue it by pgmult topics resume" in held
        assert "draws must be at least" in self.complaint(
            capsys, "topics", "resume", out, "--draws", 2, "--quiet"
        )

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["topics", "fit", "c", "--out", "r", "--topics", "1"], "must be at least 2, got 1"),
            (["topics", "fit", "c", "--out", "r", "--draws", "x"], "expected a whole number"),
            (["topics", "fit", "c"], "--out"),
            (["nonsense"], "invalid choice"),
            ([], "required"),
        ],
    )
    def test_usage(self, capsys, arguments, message):
        code, _, errors = run(capsys, *arguments)
        assert code == 2
        assert message in errors
        assert "Traceback" not in errors

    def test_missing_optional_package(self, capsys, monkeypatch):
        def needs(options):
            raise ImportError("plots need matplotlib: pip install 'pgmult[plots]'")

        monkeypatch.setattr(cli, "_doctor", needs)
        assert "pip install" in self.complaint(capsys, "doctor")


class TestShow:
    def test_prints_what_a_run_found(self, capsys, corpus, tmp_path):
        out = tmp_path / "run"
        fit(capsys, corpus, out, *SMALL)
        code, output, errors = run(capsys, "topics", "show", out, "--words", 2)
        assert (code, errors) == (0, "")
        lines = output.splitlines()
        head = next(
            i for i, line in enumerate(lines) if "exclusivity  words by probability" in line
        )
        rows = [line.split() for line in lines[head + 1 : head + 4]]
        assert sorted(row[0].strip("()") for row in rows) == ["1", "2", "3"]
        assert all(len(row[-2:]) == 2 and set(row[-2:]) <= set("abcdefgh") for row in rows)

    def test_one_topic_by_another_score_with_its_documents(self, capsys, corpus, tmp_path):
        from pgmult.topics import report as topic_report

        out = tmp_path / "run"
        fit(capsys, corpus, out, *SMALL, "--keep-theta")
        arguments = ["topics", "show", out, "--topic", 1, "--by", "frex", "--words", 3]
        code, output, errors = run(capsys, *arguments, "--documents", 2)
        assert (code, errors) == (0, "")
        made = topic_report(pgmult.load(out), topic=1, by="frex", num_words=3, num_documents=2)
        lines = output.splitlines()
        assert output.rstrip() == str(made).rstrip()
        assert len([line for line in lines if re.match(r"0\.\d+ ± ", line)]) == 3
        assert "Diagnostics" not in output

    def test_what_a_run_cannot_show(self, capsys, corpus, tmp_path):
        out = tmp_path / "run"
        fit(capsys, corpus, out, *SMALL, "--no-keep-theta")
        for arguments, message in {
            ("--topic", 4): "topic must be at most 3, got 4",
            (
                "--documents",
                2,
            ): "cannot answer 'documents': the run must have kept theta or psi (name it in",
            ("--by", "idf"): "invalid choice: 'idf'",
        }.items():
            code, _, errors = run(capsys, "topics", "show", out, *arguments)
            assert code == 2
            assert message in errors
            assert "Traceback" not in errors

    def test_draws_saved_without_their_corpus(self, capsys, corpus, tmp_path):
        fit(capsys, corpus, tmp_path / "run", *SMALL)
        pgmult.load(tmp_path / "run").save(tmp_path / "copy")
        code, output, _ = run(capsys, "topics", "show", tmp_path / "copy")
        assert code == 0
        assert "NPMI" not in output

    def test_two_runs_are_matched(self, capsys, corpus, tmp_path):
        fit(capsys, corpus, tmp_path / "a", *SMALL)
        fit(capsys, corpus, tmp_path / "b", "--topics", 4, *SMALL[2:], "--seed", 3)
        same = run(capsys, "topics", "compare", tmp_path / "a", tmp_path / "a", "--words", 2)
        assert same[::2] == (0, "")
        assert "3 topics found in both runs" in same[1]
        assert same[1].count("0.00 ") == 3
        assert "0 of the first run alone and 0 of the second" in " ".join(same[1].split())
        code, output, errors = run(capsys, "topics", "compare", tmp_path / "a", tmp_path / "b")
        assert (code, errors) == (0, "")
        assert "alone and 1 of the second" in " ".join(output.split()), "a fourth topic is alone"
        posterior = pgmult.Posterior({"x": np.zeros((1, 4))}, dims={"x": ()})
        posterior.save(tmp_path / "x")
        code, _, errors = run(capsys, "topics", "compare", tmp_path / "a", tmp_path / "x")
        assert code == 2
        assert "must know its model" in errors

    def test_a_run_without_topics(self, capsys, tmp_path):
        posterior = pgmult.Posterior({"x": np.zeros((1, 4))}, dims={"x": ()})
        posterior.save(tmp_path / "run")
        code, _, errors = run(capsys, "topics", "show", tmp_path / "run")
        assert code == 2
        assert "must know its model" in errors

    @pytest.mark.slow
    def test_a_reader_that_leaves(self, capsys, corpus, tmp_path):
        out = tmp_path / "run"
        fit(capsys, corpus, out, *SMALL)
        command = [sys.executable, "-m", "pgmult", "topics", "show", str(out)]
        reading, writing = os.pipe()
        os.close(reading)
        try:
            shown = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True)
        finally:
            os.close(writing)
        assert "Traceback" not in shown.stderr
        assert "Exception" not in shown.stderr


class TestDemo:
    SMALL = ("--draws", 6, "--tune", 4, "--chains", 1, "--quiet")

    def test_leaves_a_page_and_no_draws(self, capsys, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        for name in ("pgmult-demo-regression.html", "pgmult-demo-regression-2.html"):
            code, output, _ = run(capsys, "demo", "regression", *self.SMALL)
            assert code == 0
            assert f"Page with figures: {name}" in output
        assert sorted(path.name for path in tmp_path.iterdir()) == [
            "pgmult-demo-regression-2.html",
            "pgmult-demo-regression.html",
        ]

    def test_interrupt(self, capsys, tmp_path, monkeypatch):
        step, sweeps = RegressionSampler.step, []

        def interrupted(self, rng, state):
            sweeps.append(None)
            if len(sweeps) == 4 + 5 + 1:
                raise KeyboardInterrupt
            return step(self, rng, state)

        monkeypatch.setattr(RegressionSampler, "step", interrupted)
        code, output, _ = run(capsys, "demo", "regression", "--out", tmp_path / "run", *self.SMALL)
        assert code == 130
        assert "1 x 5 draws (of 6 planned)" in output
        assert pgmult.load(tmp_path / "run").num_draws == 5


class TestHousekeeping:
    def test_version_is_quick_to_say(self, capsys):
        assert run(capsys, "--version") == (0, f"pgmult {pgmult.__version__}\n", "")
        script = (
            "import sys; from pgmult.cli.commands import main\n"
            "try: main(['--version'])\n"
            "except SystemExit: assert not {'numba', 'numpy', 'scipy'} & set(sys.modules)"
        )
        subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)

    def test_help_of_demonstrations_names_the_families(self, capsys):
        code, output, _ = run(capsys, "demo", "--help")
        assert code == 0
        assert "FAMILY" in output
        assert "--draws" not in output, "which is an option of a family's own"

    def test_doctor(self, capsys, monkeypatch):
        code, output, _ = run(capsys, "doctor")
        assert code == 0
        for piece in (f"numpy {np.__version__}", "cores", "cache", "have the right mean"):
            assert piece in output

    def test_doctor_tells_of_packages_that_do_not_fit(self, capsys, monkeypatch, tmp_path):
        pytest.importorskip("arviz")
        (tmp_path / "arviz.py").write_text("raise AttributeError('no such colour map')")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "arviz", raising=False)
        code, output, _ = run(capsys, "doctor")
        monkeypatch.delitem(sys.modules, "arviz", raising=False)
        assert code == 1
        assert "arviz: AttributeError: no such colour map" in output
        assert "pip install --upgrade arviz matplotlib" in output

    def test_doctor_notices_a_broken_sampler(self, capsys, monkeypatch):
        from pgmult import polya_gamma

        right = polya_gamma.sample
        for broken, words in {
            lambda rng, b, c: 1.05 * right(rng, b, c): "the mean of Pólya-gamma draws is",
            lambda rng, b, c: right(np.random.default_rng(), b, c): "two threads draw other",
        }.items():
            monkeypatch.setattr(polya_gamma, "sample", broken)
            code, output, _ = run(capsys, "doctor")
            assert code == 1
            assert words in output

    @pytest.mark.slow
    def test_doctor_says_where_nothing_is_cached(self):
        command = [sys.executable, "-m", "pgmult", "doctor"]
        environment = {**os.environ, "PGMULT_CACHE": "0"}
        shown = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert "off (PGMULT_CACHE=0)" in shown.stdout

    @pytest.mark.slow
    def test_after_warmup_nothing_is_compiled(self, corpus, tmp_path):
        """What commands call, with these types of arguments, the warm-up has called."""
        code = (
            "import gc, sys\n"
            "from numba.core.dispatcher import Dispatcher\n"
            "from pgmult import cli\n"
            "assert cli.main(sys.argv[2:]) == 0\n"
            "called = [f'{f.py_func.__module__}.{f.py_func.__name__}{types}'\n"
            "          for f in gc.get_objects() if isinstance(f, Dispatcher)\n"
            "          for types in f.overloads]\n"
            "open(sys.argv[1], 'w').write('\\n'.join(called))\n"
        )

        def called(*arguments):
            command = [sys.executable, "-c", code, *map(str, (tmp_path / "calls", *arguments))]
            subprocess.run(command, capture_output=True, check=True)
            return set((tmp_path / "calls").read_text().splitlines())

        warm = called("warmup")
        assert called("topics", "fit", corpus, "--out", tmp_path / "run", *SMALL) <= warm
        found = called("demo", "topics", "--out", tmp_path / "structural", *SMALL)
        assert found <= warm
        assert len(found) > 10


def test_demonstrations_do_not_overwrite_each_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert str(shared.free_name("pgmult-demo", ".html")) == "pgmult-demo.html"
    (tmp_path / "pgmult-demo.html").touch()
    (tmp_path / "pgmult-demo-2.html").touch()
    assert str(shared.free_name("pgmult-demo", ".html")) == "pgmult-demo-3.html"

"""What the README and the guides print runs as it stands, and the sweep that is shown is right."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pgmult
from pgmult.topics.updates.allocation import allocate_tokens

ROOT = Path(__file__).parents[2]
SMALLER = {"num_topics=50": "num_topics=3", "draws=500, tune=500": "draws=10, tune=10"}
JARGON = re.compile(
    r"\b(sticks?|stick-breaking|omega|sites?|sweeps?|potentials?|augment\w*|P[óo]lya.?gamma|psi|theta"
    r"|Gibbs|conjugate|posteriors?|link)\b"
)


def blocks(name, language="python"):
    """The blocks of code of a page."""
    page = (ROOT / name).read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


(CORPUS, STRUCTURE, _), (SWEEP, OWN) = blocks("docs/topics.md"), blocks("docs/design.md")
(SEQUENCES,), (FIELD,) = blocks("docs/sequences.md"), blocks("docs/fields.md")
(REGRESSION,) = (block for block in blocks("docs/regressions.md") if "load_iris" in block)
(CHOICE,) = blocks("docs/choice.md")
JOBS = dict(zip(("topics", "fields", "sequences", "regression"), blocks("README.md"), strict=True))


class TestReadme:
    def test_it_is_short_and_without_jargon(self):
        text = (ROOT / "README.md").read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 160
        (how,) = re.findall(r"^How it works, in a sentence:.*?\n\n", text, re.MULTILINE | re.DOTALL)
        words = re.sub(
            r"```.*?```|`[^`]*`|\([^)]*\.md\)", "", text.replace(how, ""), flags=re.DOTALL
        )
        assert not JARGON.findall(words)

    def test_links_and_pictures_are_there(self):
        text = (ROOT / "README.md").read_text(encoding="utf-8")
        links = re.findall(r"\]\(([^)#:]+)\)", text)
        assert len(links) > 10
        assert [link for link in links if not (ROOT / link).exists()] == []

    @pytest.mark.slow
    @pytest.mark.parametrize("job", JOBS)
    def test_each_snippet_runs_alone(self, job, tmp_path):
        paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        done = subprocess.run(
            [sys.executable, "-W", "ignore::pgmult.ConvergenceWarning", "-c", JOBS[job]],
            capture_output=True, text=True, timeout=600, cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": paths},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "90 %" in done.stdout or "q0.05" in done.stdout
        assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
@pytest.mark.parametrize(
    "code",
    [SEQUENCES, FIELD, REGRESSION, CHOICE],
    ids=["sequences", "field", "regression", "choice"],
)
def test_what_needs_no_file(code, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    exec(code, {})


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
@pytest.mark.slow
def test_a_corpus_from_a_file(monkeypatch, tmp_path, capsys):
    pytest.importorskip("arviz")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    words = np.array([f"word{letter}" for letter in "abcdefghijklmnop"])
    articles = [" ".join(rng.choice(words, size=30)) for _ in range(40)]
    (tmp_path / "articles.csv").write_text("text\n" + "\n".join(articles) + "\n")
    code = CORPUS
    for as_printed, smaller in SMALLER.items():
        assert as_printed in code
        code = code.replace(as_printed, smaller)
    exec(code, {})
    assert capsys.readouterr().out.count(" ± ") == 3 * 6


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
def test_speeches_with_columns_beside_them(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    words = np.array([f"word{letter}" for letter in "abcdefghijklmnop"])
    speeches = [
        f"{' '.join(rng.choice(words, size=30))},{1950 + d},{'RD'[d % 2]},P{d % 6}"
        for d in range(60)
    ]
    (tmp_path / "speeches.csv").write_text("text,year,party,president\n" + "\n".join(speeches))
    code = STRUCTURE
    for as_printed, smaller in {
        "StructuralTopics(15)": "StructuralTopics(4)",
        "random_seed=1": "random_seed=1, draws=10, tune=5, chains=2, progressbar=False",
    }.items():
        assert as_printed in code
        code = code.replace(as_printed, smaller)
    exec(code, {})
    output = capsys.readouterr().out
    assert "Expected shares of topics in the population" in output
    assert "that R and D use most differently" in output
    assert (tmp_path / "party.svg").exists()
    assert (tmp_path / "years.svg").exists()


def test_the_sweep_of_the_example_is_shown():
    example = (ROOT / "examples" / "own_model.py").read_text(encoding="utf-8")
    for line in OWN.splitlines():
        assert f"        {line}\n" in example


class ShownTopics(pgmult.topics.CorrelatedTopics):
    """The model with the sweep that is shown."""

    shown = compile(SWEEP, "the sweep", "exec")

    def step(self, rng, state, data):
        names = {"self": self, "rng": rng, "state": state, "data": data}
        names |= {"Dirichlet": pgmult.Dirichlet, "MvNormal": pgmult.MvNormal}
        exec(self.shown, names | {"allocate_tokens": allocate_tokens}, names)
        drawn = ("psi", "mu", "Sigma", "topics", "topic_counts")
        return replace(state, **{name: names[name] for name in drawn})


class StaleTopics(ShownTopics):
    """A mutant: mu and Sigma given the psi of the sweep before."""

    shown = compile(SWEEP.replace("condition(psi)", "condition(state.psi)"), "a mutant", "exec")


@pytest.mark.slow
def test_the_sweep_that_is_shown():
    corpus = pgmult.topics.as_corpus(np.random.default_rng(0).poisson(0.8, size=(4, 5)))
    pgmult.testing.check_geweke(ShownTopics(3), corpus)
    pgmult.testing.rejects(pgmult.testing.check_geweke, StaleTopics(3), corpus)

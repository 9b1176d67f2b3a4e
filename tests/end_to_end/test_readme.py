"""The README's Python runs as it stands, and the sweep that it shows is a right one."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pgmult
from pgmult.topics.updates.allocation import allocate_tokens

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
CORPUS, STRUCTURE, SEQUENCES, FIELD, SURVEY, REGRESSION, OWN, SWEEP = re.findall(
    r"```python\n(.*?)```", README, re.DOTALL
)
SMALLER = {"num_topics=50": "num_topics=3", "draws=500, tune=500": "draws=10, tune=10"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
@pytest.mark.parametrize(
    "code", [SEQUENCES, FIELD, REGRESSION], ids=["sequences", "field", "regression"]
)
def test_what_needs_no_file(code, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    exec(code, {})


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
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
    assert "P(>0)" in output
    assert "that R and D use most differently" in output
    assert (tmp_path / "party.svg").exists()
    assert (tmp_path / "years.svg").exists()


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
def test_a_survey_and_a_census(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [
        f"{rng.choice(['left', 'right', 'none'])},{'fm'[i % 2]},{20 + i % 50},S{i % 7}"
        for i in range(200)
    ]
    (tmp_path / "survey.csv").write_text("vote,sex,age,state\n" + "\n".join(rows))
    cells = [f"{'fm'[i % 2]},{25 + i},S{i % 9},{1 + i}" for i in range(18)]
    (tmp_path / "census.csv").write_text("sex,age,state,people\n" + "\n".join(cells))
    as_printed = "random_seed=1)\nprint(run.report())"
    assert as_printed in SURVEY
    few = "random_seed=1, draws=20, tune=5, chains=2, progressbar=False)\nprint(run.report())"
    exec(SURVEY.replace(as_printed, few), {})
    output = capsys.readouterr().out
    assert "200 respondents" in output
    assert "Shares of categories by state" in output


def test_the_sweep_of_the_example_is_shown():
    example = (Path(__file__).parents[2] / "examples" / "own_model.py").read_text(encoding="utf-8")
    for line in OWN.splitlines():
        assert f"        {line}\n" in example


class ShownTopics(pgmult.topics.CorrelatedTopics):
    """The model with the sweep that is shown."""

    shown = SWEEP

    def step(self, rng, state, data):
        names = {"self": self, "rng": rng, "state": state, "data": data}
        names |= {"Dirichlet": pgmult.Dirichlet, "MvNormal": pgmult.MvNormal}
        exec(self.shown, names | {"allocate_tokens": allocate_tokens}, names)
        drawn = ("psi", "mu", "Sigma", "topics", "topic_counts")
        return replace(state, **{name: names[name] for name in drawn})


class StaleTopics(ShownTopics):
    """A mutant: mu and Sigma given the psi of the sweep before."""

    shown = SWEEP.replace("condition(psi)", "condition(state.psi)")


@pytest.mark.slow
def test_the_sweep_that_is_shown():
    corpus = pgmult.topics.as_corpus(np.random.default_rng(0).poisson(0.8, size=(4, 5)))
    pgmult.testing.check_geweke(ShownTopics(3), corpus)
    pgmult.testing.rejects(pgmult.testing.check_geweke, StaleTopics(3), corpus)

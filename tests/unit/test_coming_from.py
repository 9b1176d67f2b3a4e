"""Every line of the pages "Coming from another package" runs as it is printed, in its order."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def sections_of(page):
    """What stands before the first section, and sections by name."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return text.split("\n## ")[0], dict(found)


SECTIONS = sections_of("coming_from.md")[1]
START, OF_CHOICES = sections_of("coming_from_choice.md")
SECTIONS |= {name: START + section for name, section in OF_CHOICES.items()}
FEWER = {
    "random_seed=1": "random_seed=1, draws=12, tune=6, chains=2, progressbar=False",
    "AdditiveClassifier(groups=2)": "AdditiveClassifier(groups=2, draws=12, tune=6, chains=2)",
}


def lines_of(section):
    """The code of a section: its first block, then the right-hand cells of its table."""
    (start,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    cells = re.findall(r"^\|.*(?<!\\)\| (`.*) \|$", section, re.MULTILINE)
    code = [re.match(r"`([^`]+)`", cell)[1].replace("\\|", "|") for cell in cells]
    return [start, *code]


def test_the_page_has_its_sections():
    sections = ["brms/lme4", "bambi", "statsmodels", "hmmlearn", "BERTopic", "scikit-learn"]
    sections += ["apollo", "xlogit", "biogeme", "bayesm"]
    assert list(SECTIONS) == sections
    assert all(len(lines_of(section)) >= 7 for section in SECTIONS.values())


@pytest.mark.filterwarnings("ignore:.*in census .* not in the data")  # a new state
@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
@pytest.mark.parametrize("name", SECTIONS)
@pytest.mark.slow
def test_it_runs(name, monkeypatch, tmp_path):
    pytest.importorskip("sklearn")
    monkeypatch.chdir(tmp_path)
    names = {}
    for line in lines_of(SECTIONS[name]):
        for as_printed, fewer in FEWER.items():
            line = line.replace(as_printed, fewer)
        exec(line, names)

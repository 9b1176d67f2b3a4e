"""Every line of "Coming from another package" runs as it is printed, in its order."""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "coming_from.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
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
    assert list(SECTIONS) == sections
    assert all(len(lines_of(section)) >= 7 for section in SECTIONS.values())


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

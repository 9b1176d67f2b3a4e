"""Text of a user stays text: in pages, tables and notebook views, wherever it comes from."""

import csv
import html.parser
from dataclasses import replace

import numpy as np
import pytest
from topic_runs import run_of, speeches

from pgmult.core.comparison import Comparison
from pgmult.topics import check as predictive_checks
from pgmult.topics import compare as match_runs
from pgmult.topics import (
    content,
    document_topics,
    effects,
    quotes,
    topic_correlations,
    topic_stability,
)
from pgmult.topics import report as topic_report
from pgmult.topics.exports import export
from pgmult.topics.scores import Candidate, CompletionScore, TopicChoice
from pgmult.topics.summaries import variance_shares

ATTACK = "<script>alert(1)</script>\"><img src=x onerror='alert(2)'>&lt;b&gt;"


class Live(html.parser.HTMLParser):
    """Collects what a browser would run: scripts, images, handlers; and what it would show."""

    def __init__(self):
        super().__init__()
        self.scripts, self.found, self.text = 0, [], []

    def handle_starttag(self, tag, attrs):
        self.scripts += tag == "script"
        self.found += [tag] if tag == "img" else []
        self.found += [name for name, _ in attrs if name.startswith("on")]

    def handle_data(self, data):
        self.text.append(data)


def live(page):
    reader = Live()
    reader.feed(page)
    reader.close()
    return reader


@pytest.fixture(scope="module")
def posterior():
    """A run whose words, documents, texts, columns and labels are all hostile."""
    return speeches(ATTACK)


def test_a_page_runs_no_script(posterior):
    score = CompletionScore(-6.0 * np.ones(3), np.ones(3, dtype=np.int64))
    compared = Comparison.of({"n": score, f"m{ATTACK}": score}, "a word", "")
    report = topic_report(
        posterior, title=f"Run{ATTACK}", facts={f"corpus{ATTACK}": f"x.csv{ATTACK}"},
        comparison=compared,
    )  # fmt: skip
    found = live(report.html())
    assert found.found == []
    assert found.scripts == 0
    shown = "".join(found.text)
    for source in ("Run", "w0<b>", "speech 1 & co", "D", "party", "year", "m", "x.csv"):
        assert f"{source}{ATTACK}" in shown or f"{source} {ATTACK}" in shown, source
    assert any(f"What was <said> in {d}{ATTACK}" in shown for d in range(24))
    assert live(report._repr_html_()).found == []


def results(posterior):
    """Everything that a run can be asked for."""
    party, year, _ = (str(name) for name in ("party" + ATTACK, "year" + ATTACK, "author"))
    found = effects(posterior, party, num_simulated=4)
    labels = found.labels[party]
    yield found
    yield effects(posterior, year, by=party, num_simulated=4)
    yield found.difference(party, *labels)
    yield content(posterior)
    yield content(posterior).words(*content(posterior).groups, topic=1)
    yield quotes(posterior)
    yield document_topics(posterior)
    yield topic_stability(posterior)
    yield topic_correlations(posterior, chain=1, num_simulated=9)
    yield predictive_checks(posterior, groups=[party], max_draws=2)
    yield variance_shares(posterior)
    yield match_runs(posterior, posterior)
    yield TopicChoice((Candidate(2, -1.0, 0.0, 0.0, 0.0, 0.0, 1.0),), np.zeros((2, 1)))


def test_tables_figures_and_notebook_views_run_nothing(posterior):
    for one in results(posterior):
        drawn = [one._repr_html_()]
        if hasattr(one, "figure"):
            drawn += [one.figure().svg(), one.figure()._repr_html_()]
        for page in drawn:
            found = live(page)
            assert (found.scripts, found.found) == (0, []), type(one).__name__


def test_files_for_spreadsheets_hold_no_formulas(posterior, tmp_path):
    evil = '=HYPERLINK("http://x","y")'
    words = np.array([evil, *posterior.coords["word"][1:]])
    data = replace(posterior.data, vocabulary=words)
    made = run_of(posterior.model, data, posterior.sample_stats, **posterior)
    export(made, tmp_path)
    with (tmp_path / "topics.csv").open(encoding="utf-8", newline="") as file:
        assert next(row for row in csv.DictReader(file))["word"] == f"'{evil}"

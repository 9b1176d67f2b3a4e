"""The report on a model with covariates: its sections, and that they say what the library says."""

import re
import shutil
import subprocess

import numpy as np
import pytest
from html_pages import parsed
from topic_runs import run_of, speeches

from pgmult import Posterior
from pgmult.core.figures.lines import Line
from pgmult.topics import StructuralTopics, effects, quotes, topic_stability, with_covariates
from pgmult.topics import report as topic_report
from pgmult.topics.reports import _inside, _observed


@pytest.fixture(scope="module")
def report():
    return topic_report(speeches(), title="Speeches")


def order_of(report):
    return report.sections[0].table.columns["topic"].tolist()


@pytest.mark.slow
def test_effects_stand_in_the_reports_order_and_in_its_verdict(report):
    (found,) = [s.table for s in report.sections if s.title == "Party R - D"]
    library = effects(speeches(), "party").difference("party", "R", "D").take(order_of(report))
    np.testing.assert_allclose(found.columns["mean"], library.mean)
    assert list(found.columns["words"]) == library.names
    (said,) = (sentence for sentence in report.verdict[:3] if sentence.startswith("Party R - D: "))
    assert library.names[2] in said, "topic 1 is the smallest"
    assert "Party R - D" not in topic_report(speeches(), topic=1).text()
    calm = topic_report(speeches(effect=0.0), title="t", num_documents=0)
    assert any("no topic's share differs beyond its 90 % interval." in s for s in calm.verdict[:3])


def test_the_page_has_all_sections_in_order(report):
    page = report.html()
    told = " ".join(parsed(page).text)
    checks = "does-the-model-make-such-data"
    heads = ["party-r-d", "words-by-group", checks, "stability", "documents"]
    places = [page.index(f'<h2 id="{head}"') for head in heads]
    assert page.index('id="verdict"') < places[0]
    assert places == sorted(places)
    assert page.count('class="drawing"') == 3 + 1, "curves, and the trace"
    assert page.count('role="img"') >= 3
    assert "What was <said> in" in told
    assert "by a new author" in told
    assert page.count('class="faint"') == 1, "the topic of which one group has 20 tokens"
    (first,) = quotes(speeches(), order_of(report)[0], 1).quotes[0]
    assert first.document in told


def test_drawings_follow_the_screens_colours(report):
    """What is drawn has classes, and the style sheet has every class for a dark screen."""
    page = report.html()
    body = page[page.index("<body>") : page.index('<h2 id="diagnostics">')]
    assert not re.search(r'(fill|stroke)="#', body)
    style = page[: page.index("</style>")]
    assert style.count("prefers-color-scheme: dark") == 2
    assert re.search(r"svg\.matrix rect \{ fill: var\(--c\)", style)


@pytest.mark.slow
def test_a_narrow_screen_needs_no_sideways_scrolling(report, tmp_path):
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("the page is laid out by a browser: install chromium")
    inner = tmp_path / "page.html"
    page = report.html().replace("<details", "<details open")
    inner.write_text(page, encoding="utf-8")
    outer = tmp_path / "frame.html"  # a frame is as narrow as it says; a window need not be
    outer.write_text(
        f'<iframe src="{inner.name}" width="390" height="900" onload="document.title ='
        ' this.contentDocument.documentElement.scrollWidth"></iframe>'
    )
    command = [
        browser, "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files",
        "--virtual-time-budget=3000", "--dump-dom", outer.as_uri(),
    ]  # fmt: skip
    dom = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert 0 < int(re.search(r"<title>(\d+)</title>", dom)[1]) <= 390


@pytest.mark.slow
def test_what_is_not_there_is_left_out(report):
    bare = topic_report(speeches(texts=False), title="t")
    page = bare.html()
    assert "<blockquote" not in page
    assert "Representative documents" in page
    whole = speeches()
    names = ("topics", "topic_shares", "coefficients", "Sigma", "effects", "effect_variances")
    kept = {name: whole[name] for name in names}
    few = run_of(whole.model, whole.data, whole.sample_stats, **kept)
    found = topic_report(few, title="t")
    titles = {section.title for section in found.sections}
    assert not titles & {"Words by group", "Does the model make such data?"}
    parsed(found.html())
    forgotten = Posterior(kept, sample_stats=whole.sample_stats)
    assert "Party R - D" not in topic_report(forgotten, title="t").text()


def test_stability_as_a_figure():
    PathCollection = pytest.importorskip("matplotlib.collections").PathCollection
    found = topic_stability(speeches())
    axes = found.plot()
    points = [
        part.get_offsets()[0, 0] for part in axes.collections if isinstance(part, PathCollection)
    ]
    np.testing.assert_allclose(points, np.sort(found.mean_distance))
    assert found.figure().legend == {0: "found again: 90 % or more (3)"}


def test_curves_along_dates_end_where_groups_have_documents():
    run = speeches(dates=True)
    page = topic_report(run, title="t").html()
    assert page.count('class="drawing"') == 3 + 1, "curves, and the trace"
    ends = _observed(run.data, "year", "party")
    ends = [(values.min(), values.max()) for _, values in ends]
    np.testing.assert_allclose(ends, [(1990.16, 2012.16), (1991.16, 2013.16)], atol=0.02)


def test_a_curve_ends_where_its_group_has_documents():
    line = Line("N", 1, np.arange(4.0), np.ones(4), [(np.zeros(4), np.ones(4))])
    cut = _inside(line, np.array([1.0, 2.0]))
    assert cut.x.tolist() == [1.0, 2.0]
    assert all(len(end) == 2 for band in cut.bands for end in band)


@pytest.mark.slow
def test_effects_of_columns_that_a_formula_multiplies_are_shown_by_each_other():
    """An effect that changes sign from party to party is no average of both."""
    run = products()
    report = topic_report(run)
    titles = [section.title for section in report.sections]
    assert "Shares by party and house" in titles
    assert "Shares by house and party" not in titles, "the same once more"
    (gap,) = (s.table for s in report.sections if s.title == "House upper - lower by party")
    library = effects(run, "house", by="party", max_draws=400)
    expected = library.difference("house", "upper", "lower").take(order_of(report)).table()
    np.testing.assert_allclose(gap.columns["mean"], expected.columns["mean"])
    said = next(s for s in report.verdict if s.startswith("House upper - lower by party: "))
    assert re.search(r'"1 \S+ \S+ \S+" \(party [DR]\) [+-]\d', said)
    (along,) = (s for s in report.verdict if s.startswith("Along x, "))
    curves = effects(run, "x", by="party", max_draws=400)
    change = np.ptp(curves.mean, axis=1)
    party, topic = np.unravel_index(change.argmax(), change.shape)
    assert f'"{curves.names[topic]}"' in along
    assert along.endswith(f", party {'DR'[party]}.")
    ends = [float(x) for x in re.findall(r"% at (-?[\d.]+)", along.rpartition(",")[0])]
    present = np.asarray(run.data.design.columns.values[:, 2])
    assert all(abs(present - end).min() < 1e-4 for end in ends), "values that documents have"
    assert any("Averages over x, which the difference varies with." in s for s in report.verdict)


def products():
    """Four chains' worth of draws of a model in which party turns the effect of house, and of x."""
    rng = np.random.default_rng(0)
    table = {
        "party": np.tile(["D", "R"], 20), "house": np.repeat(["lower", "upper"], 20),
        "x": rng.normal(size=40),
    }  # fmt: skip
    data = with_covariates(rng.poisson(1.0, size=(40, 12)), table, "~ party * house + party * x")
    names = data.design.names.tolist()
    centre = np.zeros((len(names), 3))
    centre[names.index("house[T.upper]"), 0] = 1.0
    centre[names.index("party[T.R]:house[T.upper]"), 0] = -2.0
    centre[names.index("party[T.R]:x"), 1] = 2.0
    shape = (2, 60)
    return run_of(
        StructuralTopics(3), data, sample_stats={"log_likelihood": rng.normal(size=shape)},
        coefficients=centre + 0.05 * rng.normal(size=(*shape, *centre.shape)),
        Sigma=np.tile(0.3 * np.eye(3), (*shape, 1, 1)),
        topics=np.tile(rng.dirichlet(np.full(12, 0.2), size=3), (*shape, 1, 1)),
        topic_shares=rng.dirichlet([50.0, 30.0, 20.0], size=shape),
    )  # fmt: skip

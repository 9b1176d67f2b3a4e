"""The report on a model with covariates: its sections, and that they say what the library says."""

import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from html_pages import parsed

from pgmult import Posterior
from pgmult.sampling import Origin
from pgmult.topics import (
    StructuralTopics,
    as_corpus,
    difference,
    effects,
    topic_stability,
    with_covariates,
)
from pgmult.topics import (
    report as topic_report,
)
from pgmult.topics.data.documents import DocumentTable

NUM_DOCUMENTS, NUM_WORDS, NUM_TOPICS, DRAWS = 24, 12, 3, 15


def posterior_of(*, texts=True, effect=2.0):
    """Two chains, of which the second numbers the topics otherwise; topic 0 is of party R."""
    rng = np.random.default_rng(4)
    table = {
        "party": ["D", "R"] * 12,
        "year": np.linspace(1990, 2020, 24).tolist(),
        "author": [f"a{d % 6}" for d in range(24)],
    }
    corpus = as_corpus(
        rng.poisson(2.0, size=(NUM_DOCUMENTS, NUM_WORDS)), [f"w{j}<b>" for j in range(NUM_WORDS)],
        [f"speech {d} & co" for d in range(NUM_DOCUMENTS)],
    )  # fmt: skip
    if texts:
        kept = {"text": [f"What was <said> in {d}" for d in range(24)]}
        corpus = replace(corpus, table=DocumentTable.of(kept, text="text"))
    data = with_covariates(corpus, table, "~ party + year + (1 | author)", content="~ party")
    base = rng.dirichlet(np.full(NUM_WORDS, 0.2), size=NUM_TOPICS)
    model = StructuralTopics(NUM_TOPICS, effects="sticks")
    shape = (2, DRAWS)
    coefficients = np.array([[-0.8, 0.0], [effect, 0.0], [0.3, -0.5]])
    coefficients = coefficients + 0.05 * rng.normal(size=(*shape, 3, 2))
    tokens = np.broadcast_to([[400.0, 200.0, 20.0], [300.0, 100.0, 60.0]], (*shape, 2, 3))
    draws = {
        "coefficients": coefficients,
        "effects": 0.1 * rng.normal(size=(*shape, 6, 2)),
        "effect_variances": np.full((*shape, 1), 0.1),
        "Sigma": np.tile(0.5 * np.eye(2), (*shape, 1, 1)),
        "mu": np.zeros((*shape, 2)),
        "topics": np.tile(base, (*shape, 1, 1)),
        "group_topics": np.stack(
            [[rng.dirichlet(99 * row + 0.1) for row in base] for _ in range(4 * DRAWS)]
        ).reshape(*shape, 2, NUM_TOPICS, NUM_WORDS),
        "group_tokens": tokens.copy(),
        "topic_shares": np.broadcast_to([0.2, 0.5, 0.3], (*shape, 3)).copy(),
        "theta": rng.dirichlet(np.ones(3), size=(*shape, NUM_DOCUMENTS)),
    }
    return Posterior(
        draws, dims={name: model.dims[name] for name in draws}, coords=model.coords(data),
        sample_stats={"log_likelihood": rng.normal(np.array([[1.0], [0.0]]), size=shape)},
        attrs={"draws": DRAWS, "tune": 0, "random_seed": 0, "seconds": [1.0, 1.0]},
        label_dims=model.label_dims, origin=Origin.of(model, data),
    )  # fmt: skip


@pytest.fixture(scope="module")
def report():
    return topic_report(posterior_of(), title="Speeches")


def test_effects_stand_in_the_reports_order_and_in_its_verdict(report):
    (found,) = report.found.structure.differences
    library = difference(effects(posterior_of(), "party"), "R", "D")
    np.testing.assert_allclose(found.mean, library.mean[:, report.found.topics])
    assert found.names == report.found.names
    assert report.verdict[2].startswith("Party R minus D: ")
    assert report.found.names[2] in report.verdict[2], "topic 0 of the draws is the smallest"
    text = report.text()
    assert "Party R minus D" in text
    assert f"{100 * found.mean[0, 2]:+.1f}" in text
    assert topic_report(posterior_of(), title="t", covariates=False).found.structure is None
    calm = topic_report(posterior_of(effect=0.0), title="t", num_documents=0)
    assert "no topic's share differs beyond its 90 % interval" in calm.verdict[2]


def test_the_page_has_all_sections_in_order(report):
    page = report.html()
    told = " ".join(parsed(page).text)
    heads = ["effects", "words-by-group", "quotes", "checks", "stability"]
    places = [page.index(f'<h2 id="{head}"') for head in heads]
    assert page.index('id="verdict"') < places[0]
    assert places == sorted(places)
    assert page.count('class="drawing"') == NUM_TOPICS + 1, "curves, and the trace"
    assert page.count('role="img"') >= NUM_TOPICS
    assert "What was <said> in" in told
    assert "by a new author" in told
    assert page.count('class="faint"') == 1, "the topic of which one group has 20 tokens"
    quoted = report.found.structure.quotes.quotes[0][0]
    assert quoted.document in told


def test_drawings_follow_the_screens_colours(report):
    """What is drawn has classes, and the style sheet has every class for a dark screen."""
    page = report.html()
    body = page[page.index("<body>") : page.index("<h2>Diagnostics")]
    assert not re.search(r'(fill|stroke)="#', body)
    style = page[: page.index("</style>")]
    assert style.count("prefers-color-scheme: dark") == 4
    assert len(re.findall(r"\.[rb]8 \{ fill", style)) == 4


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


def test_what_is_not_there_is_left_out(report):
    bare = topic_report(posterior_of(texts=False), title="t")
    page = bare.html()
    assert 'id="quotes"' not in page
    assert "Representative documents" in page
    whole = posterior_of()
    kept = {name: whole[name] for name in ("topics", "coefficients", "Sigma", "effects",
                                           "effect_variances")}  # fmt: skip
    few = Posterior(
        kept, dims={name: whole.model.dims[name] for name in kept}, coords=whole.coords,
        sample_stats=whole.sample_stats, origin=Origin.of(whole.model, whole.data),
    )  # fmt: skip
    found = topic_report(few, title="t")
    assert found.found.structure.words is None
    assert found.found.structure.checks is None
    parsed(found.html())
    forgotten = Posterior(kept, sample_stats=whole.sample_stats)
    assert topic_report(forgotten, title="t").found.structure is None


def test_stability_as_a_figure():
    PathCollection = pytest.importorskip("matplotlib.collections").PathCollection
    found = topic_stability(posterior_of())
    axes = found.plot()
    points = [
        part.get_offsets()[0, 0] for part in axes.collections if isinstance(part, PathCollection)
    ]
    np.testing.assert_allclose(points, np.sort(found.mean_distance))
    assert found.figure().legend == {0: "found again: 90 % or more (3)"}

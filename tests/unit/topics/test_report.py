"""The report and its figures: complete, well-formed, and without matplotlib too."""

import html
import html.parser
import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from pgmult import Posterior
from pgmult.sampling import Origin
from pgmult.topics import (
    CorrelatedTopics,
    RunMatches,
    TopicCorrelations,
    as_corpus,
    exclusivity,
    npmi,
    plots,
    report,
    top_words,
    word_scores,
)
from pgmult.topics.scores.completion import CompletionScore, HeldOutScore, compare_scores


def draws_of(num_chains=2, num_draws=20, num_topics=5, num_words=12, seed=0, num_documents=7):
    """A posterior of topics that was never sampled."""
    rng = np.random.default_rng(seed)
    base = rng.dirichlet(np.full(num_words, 0.3), size=num_topics)
    lead = (num_chains, num_draws)
    topics = np.abs(base + 0.01 * rng.random((*lead, num_topics, num_words)))
    Sigma = np.eye(num_topics - 1) + 0.5 + 0.1 * rng.random(lead)[:, :, None, None]
    return Posterior(
        {
            "topics": topics / topics.sum(axis=-1, keepdims=True),
            "mu": rng.normal(size=(*lead, num_topics - 1)),
            "Sigma": Sigma,
            "topic_shares": rng.dirichlet(np.arange(1.0, num_topics + 1) * 50, size=lead),
            "effective_topics": 4.0 + 0.1 * rng.normal(size=lead),
            "theta": rng.dirichlet(np.ones(num_topics), size=(*lead, num_documents)),
        },
        dims={
            "topics": ("topic", "word"),
            "mu": ("stick",),
            "Sigma": ("stick", "other_stick"),
            "topic_shares": ("topic",),
            "effective_topics": (),
            "theta": ("document", "topic"),
        },
        coords={
            "word": [f"w{j}<b>" for j in range(num_words)],
            "document": [f"d{d}&" for d in range(num_documents)],
        },
        sample_stats={"log_likelihood": rng.normal(-1000.0, 5.0, size=lead)},
        attrs={"draws": num_draws, "tune": 7, "random_seed": 3, "seconds": [1.0, 2.0]},
        label_dims=frozenset({"topic", "stick", "other_stick"}),
        origin=Origin.of(CorrelatedTopics(num_topics), None),
    )


REFERENCE = as_corpus(
    np.random.default_rng(1).poisson(0.7, size=(30, 12)), [f"w{j}<b>" for j in range(12)]
)


@pytest.fixture
def summary():
    held_out = [
        HeldOutScore("ours", -6.0, 0.0, 0.0),
        HeldOutScore("rival", -6.01, -0.01, 0.02),
        HeldOutScore("unigram", -7.0, -1.0, 0.02),
    ]
    posterior = draws_of()
    return report.topic_report(
        posterior,
        title="Run <1> & more",
        facts={"corpus": "a < b", **report.run_facts(posterior)},
        held_out=held_out,
        reference=REFERENCE,
    )


class WellFormed(html.parser.HTMLParser):
    """Fails on a tag that is not closed, and collects text and attributes."""

    def __init__(self):
        super().__init__()
        self.open, self.text, self.attributes = [], [], []

    def handle_starttag(self, tag, attrs):
        self.attributes += attrs
        if tag not in ("meta", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def parsed(page):
    parser = WellFormed()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    return parser


def test_text_says_everything(summary):
    text = report.as_text(summary, width=100)
    lines = text.splitlines()
    assert all(len(line) <= 100 for line in lines if not line.startswith("- "))
    largest = int(np.argmax(summary.shares))
    first = next(line for line in lines if "%" in line and "±" in line)
    assert first.split()[0] == str(largest)
    word = summary.words[largest][0]
    assert f"{word.word} .{round(1000 * word.mean):03d}±" in first
    assert "ours     -6.0000  perplexity 403.4" in text
    assert (
        "rival    -6.0100  perplexity 407.5     -0.0100 ± 0.0200 from the first, too close" in text
    )
    assert re.search(r"unigram .* -1.0000 ± 0.0200 from the first$", text, re.M)
    assert "2 x 20 draws after 7 sweeps of tuning, 2 s, seed 3" in text


def test_correlations_and_findings_are_told(summary):
    text = report.as_text(summary)
    assert len(re.findall(r"^[+-]\d\.\d\d \[[+-]\d\.\d\d, [+-]\d\.\d\d\]", text, re.M)) >= 2
    assert re.search(r"log likelihood: R-hat \d\.\d{3}, the chains agree", text)
    assert "0 of 5 topics have no counterpart" in text


def test_topics_are_judged(summary):
    """Coherence and exclusivity are of the ten most probable words, whatever words are shown."""
    posterior = draws_of()
    most_probable = top_words(posterior, 10)
    by_frex = report.topic_report(posterior, title="t", by="frex", reference=REFERENCE, num_words=3)
    for made in (summary, by_frex):
        np.testing.assert_allclose(made.coherence, npmi(most_probable, REFERENCE))
        np.testing.assert_allclose(
            made.exclusivity, exclusivity(word_scores(posterior).mean, 10), rtol=1e-12
        )
    assert by_frex.words == top_words(posterior, 3, by="frex")
    assert "Topics: NPMI, top words, frex ± posterior sd" in report.as_text(by_frex)
    assert f" {summary.coherence[0]:5.2f} " in report.as_text(summary)


def test_one_topic_is_told_with_its_documents_and_correlations(summary):
    text = report.as_text(summary, topic=2)
    assert "exclusivity" in text.splitlines()[0]
    for word in summary.words[2]:
        assert re.search(rf"^ .*{re.escape(word.word)}$", text, re.M)
    for document in summary.documents[2]:
        assert f"{document.document} {document.mean:.2f}".replace(" 0.", " .") in text
    others = [int(n) for n in re.findall(r"\]  +(\d) w", text)]
    assert sorted(others) == [0, 1, 3, 4], "each pair with topic 2 once"


def test_page_is_whole(summary):
    page = report.as_html(summary)
    parser = parsed(page)
    text = " ".join(parser.text)
    for piece in ("Run <1> & more", "a < b", "w0<b>", "too close to call", "R-hat", "d0&"):
        assert piece in text
    for piece in ("NPMI", "exclusivity", "words by FREX", "Representative documents"):
        assert piece in text
    assert not [value for name, value in parser.attributes if name in ("src", "href")]
    assert "://" not in page
    assert '<p id="controls" hidden>' in page, "shown by the script that they need"


def test_page_draws_each_sure_correlation_and_each_pair(summary):
    page = report.as_html(summary)
    matrix = page[page.index('class="matrix"') :]
    cells = re.findall(r'data-t="(\d) (\d)"[^>]*>\s*<title>([^<]*)', matrix)
    assert len(cells) == 10
    assert {tuple(sorted((int(i), int(j)))) for i, j, _ in cells} == {
        (i, j) for i in range(5) for j in range(i + 1, 5)
    }
    found = summary.correlations
    for i, j, title in cells:
        assert title.endswith(f"{found.mean[int(i), int(j)]:+.2f} [" + title.split("[")[1])
    upper = np.triu_indices(5, k=1)
    positive, negative = int((found.lower > 0)[upper].sum()), int((found.upper < 0)[upper].sum())
    sure = positive + negative
    assert 0 < page.count("<line ") == min(positive, 5) + min(negative, 5)
    assert f"of {sure} correlations" in page


def test_page_ranks_words_as_the_library_does(summary):
    """The script's arithmetic on the page's numbers gives the rankings of `top_words`."""
    page = report.as_html(summary)
    packed = json.loads(re.search(r'id="words">(.*?)</script>', page, re.S)[1])
    posterior = draws_of()
    for weight in (0.0, 0.35, 0.6, 1.0):
        for k, expected in enumerate(top_words(posterior, 8, by="relevance", weight=weight)):
            words = packed["topics"][k]
            scores = {w[0]: weight * w[3] + (1.0 - weight) * w[4] for w in words}
            best = sorted(scores, key=scores.get, reverse=True)[: packed["count"]]
            np.testing.assert_allclose(
                [scores[name] for name in best], [word.mean for word in expected], atol=2e-3
            )
    for place, by in {1: "probability", 2: "frex"}.items():
        for k, expected in enumerate(top_words(posterior, 8, by=by)):
            best = sorted(packed["topics"][k], key=lambda w: -w[place])[: packed["count"]]
            np.testing.assert_allclose(
                [w[place] for w in best], [word.mean for word in expected], atol=2e-5
            )


def test_script_ranks_and_points_out(summary, tmp_path):
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("the script runs in a browser: install chromium")
    page = report.as_html(summary)
    asked = """<script>by.value = "relevance"; lambda.value = "0"; rank(); pick("3");</script>"""
    file = tmp_path / "page.html"
    file.write_text(page.replace("</body>", asked + "</body>"), encoding="utf-8")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", file.as_uri()]
    dom = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    row = re.search(r'<tr data-t="3" class="on">.*?</tr>', dom, re.S)[0]
    ranked = re.search(r'<td class="ranked">(.*?)</td>', row, re.S)[1]
    shown = re.findall(r'"word">(.*?) <small>', ranked)
    expected = top_words(draws_of(), 8, by="relevance", weight=0.0)[3]
    assert shown == [html.escape(word.word) for word in expected]
    assert dom.count('<tr data-t="3" class="on">') == 2, "among topics and among documents"
    assert '<p id="controls">' in dom


def test_page_needs_its_rankings():
    plain = report.topic_report(draws_of(), title="t", rank_for_page=False, num_documents=0)
    assert plain.documents == []
    assert "Topics: top words, probability" in report.as_text(plain)
    with pytest.raises(ValueError, match="rank_for_page=True"):
        report.as_html(plain)


def test_page_of_fifty_topics_is_small():
    posterior = draws_of(num_topics=50, num_words=400, num_draws=3)
    made = report.topic_report(posterior, title="t")
    page = report.as_html(made)
    parsed(page)
    assert len(page.encode()) < 1_000_000


def test_two_runs_side_by_side():
    words = top_words(draws_of(), 3)
    matches = RunMatches(
        np.array([[1, 4], [0, 2]]), np.array([0.05, 0.25]), np.array([2, 3, 4]), np.array([], int)
    )
    text = report.matches_as_text(matches, words, words)
    lines = text.splitlines()
    assert lines[0].startswith("2 topics found in both runs")
    assert lines[2].split()[:3] == ["0.05", "1", words[1][0].word]
    assert lines[3].split()[:2] == ["4", words[4][0].word]
    assert "3 topics of the first run alone" in text
    assert "second run alone" not in text


def test_few_draws_and_missing_variables():
    posterior = draws_of(num_chains=1, num_draws=2)
    only_topics = Posterior({"topics": posterior["topics"]}, sample_stats=posterior.sample_stats)
    summary = report.topic_report(only_topics, title="t")
    assert summary.correlations is None
    assert summary.by_size == [0, 1, 2, 3, 4]
    assert summary.findings == ["1 chain of 2 draws: too few for diagnostics."]
    assert "Topic correlations" not in report.as_html(summary)
    parsed(report.as_html(summary))


def test_a_drifting_chain_is_called_out():
    posterior = draws_of(num_chains=1, num_draws=60)
    posterior.sample_stats["log_likelihood"] = np.arange(60.0)[None]
    summary = report.topic_report(posterior, title="t")
    assert any("the two halves of the chain do not agree yet" in f for f in summary.findings)
    assert any("too few to rely on" in f for f in summary.findings)


def test_comparison_is_paired_by_document():
    rng = np.random.default_rng(5)
    held_out = as_corpus(rng.integers(0, 4, size=(50, 6)) * np.r_[0, np.ones(49, int)][:, None])
    totals = held_out.totals
    assert totals[0] == 0
    level = rng.normal(-6.0, 1.0, size=50)
    scores = {
        name: CompletionScore(0.0, 0.0, (level + shift) * totals, 1)
        for name, shift in {"first": 0.0, "second": -0.25}.items()
    }
    first, second = compare_scores(scores, held_out)
    assert (first.difference, first.difference_error) == (0.0, 0.0)
    assert second.difference == pytest.approx(-0.25)
    assert second.difference_error == pytest.approx(0.0, abs=1e-12), "no noise but the level's"


def test_comparison_error_is_that_of_a_mean():
    rng = np.random.default_rng(6)
    held_out = as_corpus(np.full((400, 2), 5))
    gains = rng.normal(0.0, 2.0, size=400)
    zero = CompletionScore(0.0, 0.0, np.zeros(400), 1)
    scores = {"first": zero, "second": CompletionScore(0.0, 0.0, gains, 1)}
    second = compare_scores(scores, held_out)[1]
    assert second.difference == pytest.approx(gains.mean() / 10)
    assert second.difference_error == pytest.approx(gains.std(ddof=1) / np.sqrt(400) / 10)


class TestPlots:
    @pytest.fixture(autouse=True)
    def _need_matplotlib(self):
        pytest.importorskip("matplotlib", reason="the optional figures need it")

    def test_heatmap_shows_the_matrix(self):
        mean = np.array([[1.0, 0.5, -0.2], [0.5, 1.0, -0.1], [-0.2, -0.1, 1.0]])
        width = np.array([[0, 0.1, 0.1], [0.1, 0, 0.3], [0.1, 0.3, 0]])
        axes = plots.topic_correlation_heatmap(
            TopicCorrelations(mean, mean - width, mean + width, 0.9), ["a", "b", "c"]
        )
        order = [label.get_text() for label in axes.get_xticklabels()]
        shown = np.ma.filled(axes.images[0].get_array(), np.nan)
        expected = mean.copy()
        np.fill_diagonal(expected, np.nan)
        places = ["abc".index(name) for name in order]
        np.testing.assert_array_equal(shown, expected[np.ix_(places, places)])
        dots = {
            tuple(sorted((order[int(x)], order[int(y)]))) for x, y in axes.lines[0].get_xydata()
        }
        assert dots == {("b", "c")}

    def test_graph_joins_sure_pairs(self):
        mean = np.array([[1.0, 0.5, -0.2], [0.5, 1.0, -0.1], [-0.2, -0.1, 1.0]])
        width = np.array([[0, 0.1, 0.1], [0.1, 0, 0.3], [0.1, 0.3, 0]])
        found = TopicCorrelations(mean, mean - width, mean + width, 0.9)
        axes = plots.topic_correlation_graph(found, ["a", "b", "c"])
        labels = {text.get_text(): text.xy for text in axes.texts}
        joined = {
            "".join(sorted(n for n, xy in labels.items() if [*xy] in line.get_xydata().tolist())): (
                line.get_linestyle(),
                line.get_linewidth(),
            )
            for line in axes.lines
        }
        assert joined.keys() == {"ab", "ac"}
        assert joined["ab"][0] == "-" != joined["ac"][0]
        assert joined["ab"][1] > joined["ac"][1]
        assert "2 of 2 correlations whose 90 % interval excludes 0" in axes.get_title()
        assert not plots.topic_correlation_graph(found, ["a", "b", "c"], max_pairs=0).lines

    def test_bars_show_words_and_are_never_cut(self):
        words = top_words(draws_of(), 4)
        figure = plots.top_word_bars(words, num_columns=3)
        panels = [axes for axes in figure.axes if axes.get_visible()]
        assert len(panels) == 5
        for axes, topic in zip(panels, words, strict=True):
            labels = [label.get_text() for label in axes.get_yticklabels()]
            assert labels == [word.word for word in topic]
            lengths = [bar.get_width() for bar in axes.patches]
            assert lengths == [word.mean for word in topic]
            assert axes.get_xlim()[1] >= max(word.mean + 2 * word.sd for word in topic)

    def test_traces_and_curves(self):
        draws = np.arange(6.0).reshape(2, 3)
        axes = plots.log_likelihood_trace(draws)
        np.testing.assert_array_equal([line.get_ydata() for line in axes.lines], draws)
        again = plots.held_out_curve({"a": ([1, 2], [-6.0, -5.0]), "b": ((), -7.0)}, axes)
        assert again is axes
        with pytest.raises(ValueError, match=r"must be \(chain, draw\), got shape \(3,\)"):
            plots.log_likelihood_trace(np.arange(3.0))

    @pytest.mark.slow
    def test_no_global_state(self, tmp_path):
        script = (
            "import sys, numpy as np; from pgmult.topics import plots;"
            "assert 'matplotlib' not in sys.modules;"
            "plots.log_likelihood_trace(np.zeros((1, 3))).figure.savefig(sys.argv[1]);"
            "assert 'matplotlib.pyplot' not in sys.modules"
        )
        subprocess.run([sys.executable, "-c", script, tmp_path / "trace.png"], check=True)


def test_plots_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install 'pgmult\[plots\]'"):
        plots.log_likelihood_trace(np.zeros((1, 3)))

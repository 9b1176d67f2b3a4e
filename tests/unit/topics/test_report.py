"""The report and its figures: complete, well-formed, and without matplotlib too."""

import html
import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from html_pages import parsed
from topic_runs import run_of

from pgmult import Posterior
from pgmult.core.comparison import Comparison
from pgmult.sampling import Origin
from pgmult.topics import CorrelatedTopics, as_corpus, plots, top_words
from pgmult.topics import report as topic_report
from pgmult.topics.draws import telling
from pgmult.topics.reports.contents import run_facts
from pgmult.topics.scores.completion import CompletionScore
from pgmult.topics.summaries import TopicCorrelations, exclusivity, npmi, word_scores

HOW = "Words that were held out of their documents."


def draws_of(num_chains=2, num_draws=20, num_topics=5, num_words=12, seed=0, num_documents=7):
    """A posterior of topics that was never sampled."""
    rng = np.random.default_rng(seed)
    base = rng.dirichlet(np.full(num_words, 0.3), size=num_topics)
    lead = (num_chains, num_draws)
    topics = np.abs(base + 0.01 * rng.random((*lead, num_topics, num_words)))
    Sigma = np.eye(num_topics - 1) + 0.5 + 0.1 * rng.random(lead)[:, :, None, None]
    posterior = run_of(
        CorrelatedTopics(num_topics),
        sample_stats={"log_likelihood": rng.normal(-1000.0, 5.0, size=lead)},
        attrs={"draws": num_draws, "tune": 7, "random_seed": 3, "seconds": [1.0, 2.0]},
        topics=topics / topics.sum(axis=-1, keepdims=True),
        mu=rng.normal(size=(*lead, num_topics - 1)),
        Sigma=Sigma,
        topic_shares=rng.dirichlet(np.arange(1.0, num_topics + 1) * 50, size=lead),
        effective_topics=4.0 + 0.1 * rng.normal(size=lead),
        theta=rng.dirichlet(np.ones(num_topics), size=(*lead, num_documents)),
    )
    posterior.coords["word"] = np.array([f"w{j}<b>" for j in range(num_words)])
    posterior.coords["document"] = np.array([f"d{d}&" for d in range(num_documents)])
    return posterior


REFERENCE = as_corpus(
    np.random.default_rng(1).poisson(0.7, size=(30, 12)), [f"w{j}<b>" for j in range(12)]
)


@pytest.fixture
def summary():
    totals = np.full(40, 10)
    noise = np.random.default_rng(0).normal(size=40)
    ours = CompletionScore(-6.0 * totals, totals)
    rival = CompletionScore(-6.01 * totals + 2.0 * noise, totals)
    comparison = {
        "half": Comparison.of({"ours": ours, "rival": rival}, "a word", HOW),
        "a tenth": Comparison.of(
            {"ours": ours, "unigram": CompletionScore(-7.0 * totals, totals)}, "a word", HOW
        ),
    }
    posterior = draws_of()
    return topic_report(
        posterior,
        title="Run <1> & more",
        facts={"corpus": "a < b", **run_facts(posterior)},
        comparison=comparison,
        reference=REFERENCE,
    )


def best_of(posterior):
    """The chain that a report shows, and its topics by size."""
    chain = int(np.argmax(posterior.sample_stats["log_likelihood"].mean(axis=1)))
    return chain, np.argsort(-posterior["topic_shares"][chain].mean(axis=0))


def test_the_verdict_comes_first(summary):
    text = summary.text()
    assert text.index("found by both chains") < text.index("largest first")
    assert summary.verdict[0].startswith(f'The largest of 5 topics: "{summary.found.names[0]}" (')
    assert summary.verdict[1] == (
        "5 of 5 topics were found by both chains; one more chain would find about 5 of them, 5"
        " with a probability of 90 % or more."
    )
    assert summary.verdict[2].startswith(
        "With half of a text seen, a word that was held out is one of 403 to the model; rival tells"
        " it as well ("
    )
    assert summary.verdict[3].endswith("is one of 403 to the model, one of 1,097 to unigram.")
    page = " ".join(parsed(summary.html()).text)
    assert page.index("found by both chains") < page.index("Largest first")


def test_text_says_everything(summary):
    text = summary.text(100)
    lines = text.splitlines()
    assert all(len(line) <= 100 for line in lines if "nats a word" not in line)
    first = next(line for line in lines if line.startswith(f"  {summary.found.topics[0]}  "))
    word, share = summary.found.words[0][0], summary.found.shares[0]
    assert f"{100 * share:.1f} ± " in first
    assert first.split()[8] == word.word
    assert "no.    share, %  chains  apart  again, %   NPMI  words by probability" in text
    assert "Does it beat the obvious? A tenth of a text seen" in text
    assert re.search(r"unigram +-7.0000 +\+1.000 ± 0.000 +better", text)
    assert "2 x 20 draws after 7 sweeps of tuning, 2 s, seed 3" in text


def test_topics_stand_by_size_with_the_numbers_of_the_draws_and_are_named_alike_everywhere(summary):
    posterior = draws_of()
    chain, order = best_of(posterior)
    assert summary.found.chain == chain
    np.testing.assert_array_equal(summary.found.topics, order)
    assert (np.diff(summary.found.shares) <= 0).all()
    scores = word_scores(posterior, chain=chain)
    telling_words = telling(scores.mean, 3)
    names = [f"{t} " + " ".join(scores.names[j] for j in telling_words[t]) for t in order]
    assert order.tolist() != sorted(order), "else this tells nothing"
    assert summary.found.names == names
    text, page = summary.text(), " ".join(parsed(summary.html()).text)
    for pair in re.findall(r"^[+-]\d\.\d\d \[.*?\]  (.*)  \|  (.*)$", text, re.M):
        assert set(pair) <= set(names)
        assert all(name in page for name in pair)


def test_correlations_and_findings_are_told(summary):
    text = summary.text()
    assert len(re.findall(r"^[+-]\d\.\d\d \[[+-]\d\.\d\d, [+-]\d\.\d\d\]", text, re.M)) >= 2
    assert "within chain" in text
    assert re.search(r"log likelihood, each chain by itself: split R-hat at most \d\.\d{3}", text)
    assert "0 of 5 topics have no counterpart" in " ".join(text.split())


def test_topics_are_judged(summary):
    """Coherence and exclusivity are of the ten most probable words, whatever words are shown."""
    posterior = draws_of()
    chain, order = best_of(posterior)
    most_probable = top_words(posterior, 10, chain=chain)
    by_frex = topic_report(posterior, title="t", by="frex", reference=REFERENCE, num_words=3)
    for made in (summary, by_frex):
        np.testing.assert_allclose(made.found.coherence, npmi(most_probable, REFERENCE)[order])
        expected = exclusivity(word_scores(posterior, chain=chain).mean, 10)[order]
        np.testing.assert_allclose(made.found.exclusivity, expected, rtol=1e-12)
    frex_words = top_words(posterior, 3, by="frex", chain=chain)
    assert by_frex.found.words == [frex_words[k] for k in order]
    assert "words by frex" in by_frex.text()
    assert f" {summary.found.coherence[0]:5.2f} " in summary.text()


def test_one_topic_is_told_with_its_documents_and_correlations(summary):
    text = summary.topic(int(summary.found.topics[2])).text()
    assert "exclusivity" in text.splitlines()[0]
    assert "2 of 2 chains, found again with probability 0.99" in text.splitlines()[0]
    for word in summary.found.words[2]:
        assert re.search(rf"^\S+ +{re.escape(word.word)}$", text, re.M)
    for document in summary.found.documents[2]:
        assert f"{document.document} {document.mean:.2f}".replace(" 0.", " .") in text
    others = [int(n) for n in re.findall(r"\]  +(\d) w", text)]
    assert sorted(others) == sorted(np.delete(summary.found.topics, 2)), "each pair with it once"


def test_page_is_whole(summary):
    page = summary.html()
    parser = parsed(page)
    text = " ".join(parser.text)
    for piece in ("Run <1> & more", "a < b", "w0<b>", "too close to call", "R-hat", "d0&"):
        assert piece in text
    for piece in ("NPMI", "exclusivity", "words by FREX", "Representative documents", "90 %"):
        assert piece in text
    places = {value for name, value in parser.attributes if name == "id"}
    assert not [value for name, value in parser.attributes if name == "src"]
    leads = {value for name, value in parser.attributes if name == "href"}
    assert "#topics-told" in leads
    assert leads <= {f"#{place}" for place in places}
    assert "://" not in page
    assert '<p id="controls" hidden>' in page, "shown by the script that they need"


def test_page_draws_each_sure_correlation_and_each_pair(summary):
    page = summary.html()
    matrix = page[page.index('class="matrix"') :]
    cells = re.findall(r'data-t="(\d) (\d)"[^>]*>\s*<title>([^<]*)', matrix)
    assert len(cells) == 10
    assert {tuple(sorted((int(i), int(j)))) for i, j, _ in cells} == {
        (i, j) for i in range(5) for j in range(i + 1, 5)
    }
    found = summary.found.correlations
    for i, j, title in cells:
        assert title.endswith(f"{found.mean[int(i), int(j)]:+.2f} [" + title.split("[")[1])
    upper = np.triu_indices(5, k=1)
    positive, negative = int((found.lower > 0)[upper].sum()), int((found.upper < 0)[upper].sum())
    sure = positive + negative
    lines = page.count('<line class="positive"') + page.count('<line class="negative"')
    assert 0 < lines == min(positive, 5) + min(negative, 5)
    assert f"of {sure} correlations whose 90 % interval" in page


def test_page_ranks_words_as_the_library_does(summary):
    """The script's arithmetic on the page's numbers gives the rankings of `top_words`."""
    page = summary.html()
    packed = json.loads(re.search(r'id="words">(.*?)</script>', page, re.S)[1])
    posterior = draws_of()
    chain, order = best_of(posterior)

    def best(**options):
        words = top_words(posterior, 8, chain=chain, **options)
        return enumerate(words[k] for k in order)

    for weight in (0.0, 0.35, 0.6, 1.0):
        for k, expected in best(by="relevance", weight=weight):
            words = packed["topics"][k]
            scores = {w[0]: weight * w[3] + (1.0 - weight) * w[4] for w in words}
            first = sorted(scores, key=scores.get, reverse=True)[: packed["count"]]
            np.testing.assert_allclose(
                [scores[name] for name in first], [word.mean for word in expected], atol=2e-3
            )
    for place, by in {1: "probability", 2: "frex"}.items():
        for k, expected in best(by=by):
            first = sorted(packed["topics"][k], key=lambda w: -w[place])[: packed["count"]]
            np.testing.assert_allclose(
                [w[place] for w in first], [word.mean for word in expected], atol=2e-5
            )


def test_script_ranks_and_points_out(summary, tmp_path):
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("the script runs in a browser: install chromium")
    page = summary.html()
    asked = """<script>by.value = "relevance"; lambda.value = "0"; rank(); pick("3");</script>"""
    file = tmp_path / "page.html"
    file.write_text(page.replace("</body>", asked + "</body>"), encoding="utf-8")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", file.as_uri()]
    dom = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    row = re.search(r'<tr data-t="3"[^>]* class="on">.*?</tr>', dom, re.S)[0]
    assert 'aria-pressed="true"' in row
    ranked = re.search(r'<td class="ranked">(.*?)</td>', row, re.S)[1]
    shown = re.findall(r'"word">(.*?) <small>', ranked)
    chain, order = best_of(draws_of())
    expected = top_words(draws_of(), 8, by="relevance", weight=0.0, chain=chain)[order[3]]
    assert shown == [html.escape(word.word) for word in expected]
    assert len(re.findall(r'<tr data-t="3"[^>]* class="on">', dom)) == 3, (
        "among topics, in the figure of stability and among documents"
    )
    assert '<p id="controls">' in dom


def test_a_page_without_rankings_is_plain():
    plain = topic_report(draws_of(), title="t", rank_for_page=False, num_documents=0)
    assert plain.found.documents == []
    assert "words by probability" in plain.text()
    page = plain.html()
    parsed(page)
    assert "<script" not in page
    assert "controls" not in page[page.index("<body>") :]


def test_few_draws_and_missing_variables():
    posterior = draws_of(num_chains=1, num_draws=2)
    only_topics = Posterior({"topics": posterior["topics"]}, sample_stats=posterior.sample_stats)
    summary = topic_report(only_topics, title="t")
    assert summary.found.correlations is None
    assert summary.found.topics.tolist() == [0, 1, 2, 3, 4], "no sizes were kept"
    assert np.isnan(summary.found.stability.found_again).all()
    assert summary.found.findings == ["1 chain of 2 draws: too few for diagnostics."]
    assert "Topics that go together" not in summary.html()
    parsed(summary.html())


def test_a_chain_that_still_climbs_is_told_from_one_that_has_settled():
    posterior = draws_of(num_chains=1, num_draws=60)
    posterior.origin = Origin.of(CorrelatedTopics(5), as_corpus(np.full((7, 12), 20)))
    number = 2_000.0  # of words, about what a drift is weighed by
    posterior.sample_stats["log_likelihood"] = number * np.arange(60.0)[None]
    climbing = topic_report(posterior, title="t")
    assert any("its halves differ" in f for f in climbing.found.findings)
    assert any("too few for intervals" in f for f in climbing.found.findings)
    assert "its topics are still forming." in climbing.verdict[-1]
    posterior.sample_stats["log_likelihood"] = number * np.arange(60.0)[None, ::-1]
    assert "tune" not in topic_report(posterior, title="t").verdict[-1].lower(), "it wanders"
    posterior.sample_stats["log_likelihood"] = 1e-6 * np.arange(60.0)[None]
    settled = topic_report(posterior, title="t")
    assert "It has settled" in settled.verdict[-1]
    assert "tun" not in settled.verdict[-1], "what does not help is not advised"


def score_of(by_document, held_out, chains=()):
    by_chain = np.array([by_document + shift * held_out.totals for shift in chains or (0.0,)])
    return CompletionScore(by_document, held_out.totals, by_chain)


def test_a_score_of_some_documents_alone():
    counts = np.full((10, 2), 3)
    held_out, part = as_corpus(counts), as_corpus(counts * (np.arange(10) < 4)[:, None])
    by_document = -np.arange(10.0)
    found = score_of(by_document, held_out, (0.0, -1.0)).on(part)
    assert found.log_predictive == pytest.approx(-(0 + 1 + 2 + 3) / 24)
    np.testing.assert_allclose(found.chains, [-6 / 24, -6 / 24 - 1.0])
    assert found.by_unit[4:].tolist() == [0.0] * 6


def correlations_of(mean, width):
    draws = np.stack([mean - width, mean, mean + width])
    return TopicCorrelations(
        draws, ("topic", "other_topic"), {}, probability=0.999,
        independent=np.zeros_like(mean), scope="within chain 0",
    )  # fmt: skip


MEAN = np.array([[1.0, 0.5, -0.2], [0.5, 1.0, -0.1], [-0.2, -0.1, 1.0]])
SPREAD = np.array([[0, 0.1, 0.1], [0.1, 0, 0.3], [0.1, 0.3, 0]])


class TestPlots:
    @pytest.fixture(autouse=True)
    def _need_matplotlib(self):
        pytest.importorskip("matplotlib", reason="the optional figures need it")

    def test_heatmap_shows_the_matrix(self):
        axes = correlations_of(MEAN, SPREAD).plot(["a", "b", "c"])
        order = [label.get_text() for label in axes.get_xticklabels()]
        shown = np.ma.filled(axes.images[0].get_array(), np.nan)
        expected = MEAN.copy()
        np.fill_diagonal(expected, np.nan)
        places = ["abc".index(name) for name in order]
        np.testing.assert_allclose(shown, expected[np.ix_(places, places)])
        dots = {
            tuple(sorted((order[int(x)], order[int(y)]))) for x, y in axes.lines[0].get_xydata()
        }
        assert dots == {("b", "c")}

    def test_graph_joins_sure_pairs(self):
        found = correlations_of(MEAN, SPREAD)
        axes = found.graph(["a", "b", "c"]).plot()
        labels = {text.get_text(): [*text.xy] for text in axes.texts}
        joined = {
            "".join(sorted(n for n, xy in labels.items() if xy in line.get_xydata().tolist())): (
                line.get_linestyle(),
                line.get_linewidth(),
            )
            for line in axes.lines
        }
        assert joined.keys() == {"ab", "ac"}
        assert joined["ab"][0] == "-" != joined["ac"][0]
        assert joined["ab"][1] > joined["ac"][1]
        assert "2 of 2 correlations whose 99.9 % interval excludes 0" in axes.get_title()
        assert not found.graph(["a", "b", "c"], max_pairs=0).plot().lines

    def test_bars_show_words_and_are_never_cut(self):
        words = top_words(draws_of(), 4, chain=0)
        figure = plots.top_word_bars(words, num_columns=3)
        panels = [axes for axes in figure.axes if axes.get_visible()]
        assert len(panels) == 5
        for axes, topic in zip(panels, words, strict=True):
            labels = [label.get_text() for label in axes.get_yticklabels()]
            assert labels == [word.word for word in topic]
            lengths = [bar.get_width() for bar in axes.patches]
            assert lengths == [word.mean for word in topic]
            assert axes.get_xlim()[1] >= max(word.mean + 2 * word.sd for word in topic)

    def test_traces(self):
        draws = np.arange(6.0).reshape(2, 3)
        axes = plots.trace(draws).plot()
        np.testing.assert_array_equal([line.get_ydata() for line in axes.lines], draws)
        with pytest.raises(ValueError, match=r"must be \(chain, draw\), got shape \(3,\)"):
            plots.trace(np.arange(3.0))


def test_plots_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install 'pgmult\[plots\]'"):
        plots.trace(np.zeros((1, 3))).plot()


def test_a_topic_is_named_by_frequent_words_that_are_its_own():
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(400, 0.3), size=4) * 0.2
    topics[:, 0] += 0.4  # a word that all of them say most
    topics[:, 5:8] += 0.02 * np.eye(4)[:, :3]
    topics[range(4), [1, 2, 3, 4]] += 0.38
    names = telling(topics, 1)[:, 0].tolist()
    assert names == [1, 2, 3, 4]
    assert telling(topics, 3).shape == (4, 3)
    versions = np.stack([topics, topics], axis=1)
    np.testing.assert_array_equal(telling(versions, 3), telling(topics, 3))

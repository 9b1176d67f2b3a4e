"""The report and its figures: complete, well-formed, and without matplotlib too."""

import re
import sys

import numpy as np
import pytest
from html_pages import parsed
from topic_runs import run_of

from pgmult import Posterior
from pgmult.core.comparison import Comparison
from pgmult.core.reports import run_in_words
from pgmult.sampling import Origin
from pgmult.sampling.diagnostics import ess_bulk
from pgmult.topics import CorrelatedTopics, as_corpus, plots, quotes, top_words
from pgmult.topics import report as topic_report
from pgmult.topics.reports import _largest_difference
from pgmult.topics.runs import independent_draws, telling
from pgmult.topics.scores.completion import CompletionScore
from pgmult.topics.summaries import TopicCorrelations, exclusivity, npmi
from pgmult.topics.summaries.words import WordScores, word_scores

HOW = "Words that were held out of their documents."


def draws_of(num_chains=2, num_draws=100, num_topics=5, num_words=12, seed=0, num_documents=7):
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
    np.random.default_rng(1).poisson(0.7, size=(7, 12)),
    [f"w{j}<b>" for j in range(12)], [f"d{d}&" for d in range(7)],
)  # fmt: skip


def with_data(posterior, corpus=REFERENCE):
    posterior.origin = Origin.of(CorrelatedTopics(5), corpus)
    return posterior


@pytest.fixture
def summary():
    totals = np.full(40, 10)
    noise = np.random.default_rng(0).normal(size=40)
    ours = CompletionScore(-6.0 * totals, totals)
    rival = CompletionScore(-6.01 * totals + 2.0 * noise, totals)
    scores = {
        "ours": ours, "rival": rival, "unigram": CompletionScore(-7.0 * totals, totals)
    }  # fmt: skip
    comparison = Comparison.of(scores, "a word", HOW)
    posterior = with_data(draws_of())
    return topic_report(
        posterior,
        title="Run <1> & more",
        facts={"corpus": "a < b", "run": run_in_words(posterior)},
        comparison=comparison,
    )


def best_of(posterior):
    """The chain that a report shows, and its topics by size."""
    chain = int(np.argmax(posterior.sample_stats["log_likelihood"].mean(axis=1)))
    return chain, np.argsort(-posterior["topic_shares"][chain].mean(axis=0))


def names_of(posterior):
    """What a report calls them: number, and words that tell each from the others."""
    chain, order = best_of(posterior)
    scores = word_scores(posterior, chain=chain + 1)
    words = telling(scores.mean, 3)
    return [f"{t + 1} " + " ".join(scores.names[j] for j in words[t]) for t in order]


def topics_of(report):
    """The table of topics."""
    return next(s for s in report.sections if s.title.startswith("Topics")).table.columns


def test_the_verdict_comes_first(summary):
    text = summary.text()
    assert text.index("found by both chains") < text.index("largest first")
    assert summary.verdict[0].startswith(f'The largest of 5 topics: "{names_of(draws_of())[0]}" (')
    assert summary.verdict[-2] == (
        "5 of 5 topics were found by both chains; one more chain would find about 5 of them, 5"
        " with a probability of 90 % or more."
    )
    assert "The model predicts a word no better than rival" in summary.text()
    page = " ".join(parsed(summary.html()).text)
    assert page.index("found by both chains") < page.index("share: of all words")


def test_text_says_everything(summary):
    text, shown = summary.text(100), topics_of(summary)
    first = next(line for line in text.splitlines() if line.startswith(f"  {shown['topic'][0]}  "))
    assert f"{100 * shown['share'][0]:.1f} ± " in first
    assert f"{shown['npmi'][0]:.2f} " in first
    assert first.split()[9] == shown["words"][0].split()[0]
    head = "no.    share, %  draws  chains  again, %   NPMI  exclusivity  words by probability"
    assert head in text
    assert "Does it predict better than simple models?" in text
    assert re.search(r"unigram +-7.0000 +\+1.000 ± 0.000 +better", text)
    assert "2 x 100 draws after 7 sweeps of tuning, 2 s of sampling, seed 3" in text


def test_topics_stand_by_size_with_their_numbers_from_1_and_are_named_alike_everywhere(summary):
    order, names = best_of(draws_of())[1], names_of(draws_of())
    assert order.tolist() != sorted(order), "else this tells nothing"
    shown = topics_of(summary)
    assert shown["topic"].tolist() == (order + 1).tolist()
    assert (np.diff(shown["share"]) <= 0).all()
    text, page = summary.text(), " ".join(parsed(summary.html()).text)
    shown = r"^[+-]\d\.\d\d \[[+-]\d\.\d\d, [+-]\d\.\d\d\]  (\S.*?\S)  +(\S.*?) +\d+$"
    pairs = re.findall(shown, text, re.M)
    assert len(pairs) >= 2
    assert {name for pair in pairs for name in pair} <= set(names)
    assert all(name in page for name in names)


def test_topics_are_judged(summary):
    """Coherence and exclusivity are of the ten most probable words, whatever words are shown."""
    posterior = draws_of()
    chain, order = best_of(posterior)
    most_probable = top_words(posterior, 10, chain=chain + 1)
    by_frex = topic_report(with_data(posterior), title="t", by="frex", num_words=3)
    for made in (summary, by_frex):
        shown = topics_of(made)
        np.testing.assert_allclose(shown["npmi"], npmi(most_probable, REFERENCE)[order])
        expected = exclusivity(word_scores(posterior, chain=chain + 1).mean, 10)[order]
        np.testing.assert_allclose(shown["exclusivity"], expected, rtol=1e-12)
    frex_words = top_words(posterior, 3, by="frex", chain=chain + 1)
    assert topics_of(by_frex)["words"] == [
        " ".join(word.word for word in frex_words[k]) for k in order
    ]
    assert "words by frex" in by_frex.text()


def test_one_topic_is_described_with_its_documents_and_correlations():
    posterior = draws_of()
    chain, order = best_of(posterior)
    place = int(order[2])
    text = topic_report(posterior, topic=place + 1).text()
    assert "exclusivity" in text.splitlines()[0]
    assert "2 of 2 chains, found again with probability 0.99" in text.splitlines()[0]
    for word in top_words(posterior, 8, chain=chain + 1)[place]:
        assert re.search(rf"^0\.\d+ ± 0\.\d+ +{re.escape(word.word)}$", text, re.M)
    for document in quotes(posterior, place + 1, 3, chain=chain + 1).quotes[0]:
        assert f"{document.document} {document.mean:.2f}".replace(" 0.", " .") in text
    others = [int(n) for n in re.findall(r"\]  +(\d) w", text)]
    assert sorted(others) == sorted(np.delete(order + 1, 2)), "each pair with it once"


def test_page_is_whole(summary):
    page = summary.html()
    parser = parsed(page)
    text = " ".join(parser.text)
    for piece in ("Run <1> & more", "a < b", "w0<b>", "rival", "R-hat", "d0&"):
        assert piece in text
    for piece in ("NPMI", "exclusivity", "words by FREX", "Representative documents", "90 %"):
        assert piece in text
    places = {value for name, value in parser.attributes if name == "id"}
    assert not [value for name, value in parser.attributes if name == "src"]
    leads = {value for name, value in parser.attributes if name == "href"}
    assert "#topics-told" in leads
    assert leads <= {f"#{place}" for place in places}
    assert "://" not in page
    assert "<script" not in page
    matrix = page[page.index('class="matrix"') :]
    assert len(re.findall(r"<rect[^>]*>\s*<title>", matrix)) == 10, "each pair"


def test_few_draws_and_missing_variables():
    posterior = draws_of(num_chains=1, num_draws=2)
    kept = {name: posterior[name] for name in ("topics", "topic_shares")}
    summary = topic_report(Posterior(kept, sample_stats=posterior.sample_stats), title="t")
    assert not {"chains", "again", "npmi"} & set(topics_of(summary))
    assert "They are too few for diagnostics." in summary.html()
    assert "Topics that go together" not in summary.html()
    parsed(summary.html())


def test_a_chain_that_still_climbs_is_told_from_one_that_has_settled():
    posterior = draws_of(num_chains=1, num_draws=200)
    with_data(posterior, as_corpus(np.full((7, 12), 70)))
    number = 2_000.0  # of words, about what a drift is weighed by
    posterior.sample_stats["log_likelihood"] = number * np.arange(200.0)[None]
    climbing = topic_report(posterior, title="t")
    table = climbing.sections[-1].table.columns
    assert table["r_hat"][0] > 1.2
    assert table["draws"][0] < 10
    assert table["median_draws"][0] == table["draws"][0]
    assert "its topics are still forming." in of_intervals(climbing)
    posterior.sample_stats["log_likelihood"] = number * np.arange(200.0)[None, ::-1]
    assert "forming" not in of_intervals(topic_report(posterior, title="t")), "it wanders"
    posterior.sample_stats["log_likelihood"] = 1e-6 * np.arange(200.0)[None]
    settled = of_intervals(topic_report(posterior, title="t"))
    assert settled == "Reliable (50 effective draws or more): 5 of 5 shares of topics."


def of_intervals(report):
    """What the first lines say of intervals."""
    (sentence,) = (s for s in report.verdict if s.startswith("Reliable ("))
    return sentence


def test_shares_of_few_effective_draws_are_marked_and_not_quoted():
    posterior = draws_of()
    chain, order = best_of(posterior)
    shares = posterior["topic_shares"].copy()
    for k in order[:2]:  # as one step at half of the draws
        shares[chain, :, k] = 0.3 + 1e-3 * shares[chain, :, k] + 0.1 * (np.arange(100) >= 50)
    posterior["topic_shares"][:] = shares
    report = topic_report(posterior, title="t")
    shown = report.sections[0].table
    pairs = zip(shown.columns["topic"], shown.columns["independent_draws"], strict=True)
    rough = {k for k, n in pairs if n < 50}
    assert rough == set((order[:2] + 1).tolist())
    assert list(shown.faint) == [k in rough for k in shown.columns["topic"]]
    assert "topics whose shares are reliable" in report.verdict[0]
    assert not any(f'"{k} ' in report.verdict[0] for k in rough)
    said = of_intervals(report)
    assert "3 of 5 shares of topics. The others are in parentheses or grey" in said
    assert re.search(r"continue the run to about [1-9]0*,?000 draws a chain", said)
    posterior["topic_shares"][:] = 0.2 + 0.02 * (np.arange(100) >= 50)[:, None] * np.array(
        [2, 1, -1, 1, -3]
    )
    assert "No share is reliable yet" in topic_report(posterior, title="t").verdict[0]


def test_the_largest_of_all_topics_is_not_claimed_where_its_share_is_rough():
    posterior = draws_of()
    largest = best_of(posterior)[1][0]
    posterior["topic_shares"][:, :, largest] += 0.1 * (np.arange(100) >= 50)
    first = topic_report(posterior).verdict[0]
    assert first.startswith("The largest of 5 topics whose shares are reliable: ")
    assert f'"{largest + 1} ' not in first


def test_a_document_with_most_of_the_words_is_named():
    counts = np.ones((7, 12), dtype=int)
    counts[4] *= 500
    many = as_corpus(np.repeat(counts, 20, axis=0)[: 20 * 4 + 1], names=[*map(str, range(81))])
    said = topic_report(with_data(draws_of(num_documents=81), many)).verdict[1]
    assert said.startswith('Document "80" has 86 % of all words')
    assert "Document" not in "".join(topic_report(with_data(draws_of())).verdict)


def test_topics_that_another_chain_would_hardly_find_are_not_said_to_go_together():
    posterior = draws_of()
    chain, _ = best_of(posterior)
    (told,) = (s for s in topic_report(posterior).verdict if "go together most" in s)
    first = next(name for name in names_of(posterior) if f'"{name}" with' in told)
    unique = np.full(12, 1e-6)
    unique[np.argmin(posterior["topics"][chain].mean(axis=(0, 1)))] = 1.0
    posterior["topics"][1 - chain, :, int(first.split()[0]) - 1] = unique / unique.sum()
    again = [s for s in topic_report(posterior).verdict if "go together most" in s]
    assert not any(f'"{first}"' in sentence for sentence in again)


def test_independent_draws_are_of_the_chains_that_have_an_entry():
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(3, 200, 2, 4))
    draws[1:, :, 0, 0] = np.nan  # found by the first chain alone
    draws[:, :, 1, 1] = np.nan  # by none
    draws[2, :, 0, 2] += 9.0  # chains disagree
    draws[2, :, 1, 2] = np.nan  # which disagrees is not there
    draws[:, :, 1, 3] = 1.0  # never changes
    worth = independent_draws(draws.reshape(600, 2, 4), 3)
    np.testing.assert_allclose(worth[0, 0], ess_bulk(draws[:1, :, 0, 0]))
    np.testing.assert_allclose(worth[1, 2], ess_bulk(draws[:2, :, 1, 2]))
    np.testing.assert_allclose(worth[0, 3], ess_bulk(draws[:, :, 0, 3]))
    assert worth[0, 2] < 8.0 < 300.0 < worth[1, 0]
    assert np.isnan(worth[1, 1])
    assert np.isnan(independent_draws(draws[:, :3].reshape(9, 2, 4), 3)).all(), "too few to tell"
    assert independent_draws(draws[..., :0].reshape(600, 2, 0), 3).shape == (2, 0)


def correlations_of(mean, width):
    axes = ("topic", "other_topic")
    draws = np.stack([mean - width, mean, mean + width])
    return TopicCorrelations(
        draws, axes, {axis: list("abc") for axis in axes}, probability=0.999,
        independent=np.zeros_like(mean), scope="within chain 0",
    )  # fmt: skip


MEAN = np.array([[1.0, 0.5, -0.2], [0.5, 1.0, -0.1], [-0.2, -0.1, 1.0]])
SPREAD = np.array([[0, 0.1, 0.1], [0.1, 0, 0.3], [0.1, 0.3, 0]])


class TestPlots:
    @pytest.fixture(autouse=True)
    def _need_matplotlib(self):
        pytest.importorskip("matplotlib", reason="the optional figures need it")

    def test_heatmap_shows_the_matrix(self):
        axes = correlations_of(MEAN, SPREAD).plot()
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

    def test_bars_show_words_and_are_never_cut(self):
        words = top_words(draws_of(), 4, chain=1)
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


class Gap:
    """Differences of four topics, of which all but the second are beyond their intervals."""

    names, probability = ("a", "b", "c", "d"), 0.9
    mean = np.array([0.03, 0.001, -0.02, 0.01])

    def interval(self):
        return self.mean - 0.005, self.mean + 0.005


@pytest.mark.parametrize(
    ("is_reported", "words"),
    [
        ([True] * 4, 'The largest differences, in percentage points: "a" .*, "c" .*, "d" '),
        ([False, True, True, True], "The largest reliable differences, in percentage points: .c. "),
        ([False, True, False, False], "none of these differences is reliable yet"),
    ],
)
def test_the_largest_differences_are_of_topics_that_are_found_again(is_reported, words):
    said = _largest_difference(Gap(), "Party R - D", np.array(is_reported))
    assert said.startswith("Party R - D: 3 of 4 topics differ beyond their 90 % interval")
    assert re.search(words, said)
    assert ('"a"' in said) == is_reported[0]


def test_words_that_topics_use_alike_are_named_and_words_of_one_topic_are_not():
    """Unto and thou are on no stop list; tax is frequent, but in one topic."""
    mean = np.array([[0.30, 0.25, 0.40, 0.03, 0.02], [0.34, 0.21, 0.02, 0.40, 0.03]])
    scores = WordScores(mean, np.zeros_like(mean), ["unto", "thou", "tax", "war", "rare"], "")
    shares, words = np.array([0.5, 0.5]), {"unto", "thou", "tax", "war"}
    assert scores.used_alike(shares, words) == ["unto", "thou"]
    assert scores.used_alike(shares, words - {"thou"}) == ["unto"]

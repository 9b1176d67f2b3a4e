"""Topics read as one, documents that stand for several, and averages beside curves."""

import numpy as np
import pytest

import pgmult
from pgmult.topics import CorrelatedTopics, StructuralTopics, as_corpus
from pgmult.topics.summaries.effects import lay_out

pytestmark = pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")

PEAK = np.array([0.1, 0.8, 0.1])


@pytest.fixture(scope="module")
def run():
    rng = np.random.default_rng(0)
    party = np.arange(150) % 2
    psi = rng.normal(size=(150, 4))
    psi[:, 0] += 2.0 * party
    theta = np.exp(psi) / np.exp(psi).sum(axis=1, keepdims=True)
    words = rng.dirichlet(np.full(50, 0.05), 4)
    vocabulary = np.array([f"word{a}{b}" for a in "abcde" for b in "abcdefghij"])
    texts = [" ".join(rng.choice(vocabulary, 40, p=row @ words)) for row in theta]
    columns = {
        "text": texts, "party": np.where(party, "R", "D"), "x": rng.normal(size=150),
        "copies": np.where(np.arange(150) < 75, 1, 3),
    }  # fmt: skip
    corpus = pgmult.read(columns).corpus("text", min_count=1, min_documents=1)
    corpus = corpus.with_covariates("~ party + x", content="~ party")
    model = StructuralTopics(4)
    return pgmult.sample(
        model, corpus, draws=30, tune=40, chains=2, random_seed=1, progressbar=False,
        keep={**dict.fromkeys(model.default_keep, 1), "theta": 2, "topics": 3},
    )  # fmt: skip


@pytest.fixture(scope="module")
def merged(run):
    return run.merge({"both": [2, 4]})


def both(values):
    """What a merged run should say, from what the run says of its four topics."""
    return np.stack([values[..., 1] + values[..., 3], values[..., 0], values[..., 2]], axis=-1)


def test_shares_and_effects_of_merged_topics_are_sums(run, merged):
    assert merged.shares("party").names[0].startswith("1 both: ")
    np.testing.assert_allclose(
        merged.shares("party").draws, both(run.shares("party").draws), rtol=1e-12
    )
    np.testing.assert_allclose(
        merged.effects("party").draws, both(run.effects("party").draws), rtol=1e-10
    )
    np.testing.assert_allclose(
        merged.documents([4, 6]).mean, both(run.documents([4, 6]).mean), rtol=1e-12
    )


def test_words_of_merged_topics_are_averages_by_size(run, merged):
    together = run.together("topics", "topic_shares")
    chain = run.stability().matches.reference
    topics, sizes = (together[name][chain] for name in ("topics", "topic_shares"))
    expected = sizes[:, 1, None] * topics[:, 1] + sizes[:, 3, None] * topics[:, 3]
    expected /= (sizes[:, 1] + sizes[:, 3])[:, None]
    np.testing.assert_allclose(merged["topics"][chain][:, 0], expected, rtol=1e-6)
    np.testing.assert_allclose(merged["topics"].sum(axis=-1), 1.0, rtol=1e-6)
    assert merged["group_topics"].shape[2:] == (2, 3, run.data.num_words)


def test_a_merged_run_has_a_page_and_survives_its_file(merged, tmp_path):
    merged.save(tmp_path / "run", with_data=True)
    again = pgmult.load(tmp_path / "run")
    np.testing.assert_array_equal(again.effects("x").draws, merged.effects("x").draws)
    again.report(tmp_path / "page.html")
    assert "both" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_what_needs_the_topics_of_the_model_refuses_merged_ones(run, merged):
    for word, arguments in (("check", ()), ("predict", (run.data,)), ("refit", (run.data,))):
        with pytest.raises(ValueError, match="must be of the model's topics"):
            getattr(merged, word)(*arguments)
    with pytest.raises(ValueError, match="unmerged"):
        merged.merge({"all": [1, 2]})


@pytest.mark.parametrize(
    "groups",
    [
        {},
        {"a": []},
        {"a": [1, 1]},
        {"a": [1], "b": [1]},
        {"a": [0]},
        {"a": [5]},
        {"a": range(1, 5)},
    ],
)
def test_groups_that_name_no_topics_are_refused(run, groups):
    with pytest.raises(ValueError, match="groups"):
        run.merge(groups)


def test_a_weight_of_three_counts_as_three_documents(run):
    weights = np.asarray(run.data.table.columns["copies"], dtype=np.float64)
    party = np.asarray(run.data.table.columns["party"]) == "R"
    theta = run.documents().draws
    expected = np.average(theta[:, party], axis=1, weights=weights[party])
    shares = run.shares("party", weight="copies")
    np.testing.assert_allclose(shares.draws[:, 1], expected, rtol=1e-12)
    copied = np.repeat(np.arange(150), weights.astype(int))
    values = run.data.design.columns.values[copied]
    for count in (1000, 20):  # all rows, and a few
        _, design, sizes, _ = lay_out(
            run.data, "party", at=None, by=None, scope="population", num_rows=count,
            rng=np.random.default_rng(0), weights=weights,
        )  # fmt: skip
        x = design.columns.values[: len(sizes), -1]
        tolerance = 1e-12 if count > 150 else 0.1
        assert np.average(x, weights=sizes) == pytest.approx(values[:, -1].mean(), abs=tolerance)
    plain, weighted = run.effects("x"), run.effects("x", weight="copies")
    assert not np.array_equal(plain.draws, weighted.draws)
    assert run.report(weight="copies").verdict
    for words, weight in (("must name columns", "nothing"), ("party", "party")):
        with pytest.raises(ValueError, match=words):
            run.effects("x", weight=weight)


def peaked(formula):
    rng = np.random.default_rng(0)
    year = np.repeat([1, 2, 3, 4, 5, 6], 50)
    centre = np.repeat(PEAK, 2)[year - 1]
    share = 1.0 / (1.0 + np.exp(-np.log(centre / (1.0 - centre)) - 0.5 * rng.normal(size=300)))
    words = rng.dirichlet(np.full(60, 0.1), 2)
    counts = np.array([rng.multinomial(40, p * words[0] + (1.0 - p) * words[1]) for p in share])
    data = pgmult.topics.with_covariates(counts, {"year": year}, formula)
    model = StructuralTopics(2)
    return pgmult.sample(
        model, data, draws=60, tune=60, chains=1, random_seed=1, progressbar=False,
        keep=(*model.default_keep, "theta"),
    )  # fmt: skip


@pytest.mark.slow
def test_a_line_through_a_peak_is_seen_and_a_curve_is_not_blamed():
    for formula, is_wrong in (("~ year", True), ("~ s(year)", False)):
        run = peaked(formula)
        check = run.check()
        p = dict(zip(check.statistics, check.p_values, strict=True))["topics along year"]
        assert (p < 0.025) == is_wrong
        assert ("differ from what the formula allows" in check.verdict) == is_wrong
        page = run.report().html()
        assert "plain averages" in page
        assert page.count('class="dot"') >= 12  # six years, two topics


def test_texts_of_one_word_are_refused():
    counts = np.eye(4, dtype=int)[np.arange(40) % 4]
    data = pgmult.topics.with_covariates(counts, {"x": np.arange(40)})
    timed = pgmult.topics.as_timed_corpus(counts, np.arange(40) // 10)
    for model, texts in (
        (CorrelatedTopics(2), as_corpus(counts)), (StructuralTopics(2), data),
        (pgmult.topics.DynamicTopics(2), timed),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="two words or more"):
            pgmult.sample(model, texts, draws=2, tune=0, chains=1, progressbar=False)

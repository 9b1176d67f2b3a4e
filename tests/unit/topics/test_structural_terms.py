"""Structural topics with random effects, words by group and keywords, on small corpora."""

import numpy as np
import pytest

from pgmult import load, resume, sample
from pgmult.topics import StructuralTopics, as_corpus, with_covariates
from pgmult.topics.compiled.content import log_rising
from pgmult.topics.updates.content import ContentPrior
from pgmult.topics.updates.keywords import Keywords, KeywordsState

NUM_DOCUMENTS = 40
rng = np.random.default_rng(3)
COUNTS = rng.poisson(0.4, size=(NUM_DOCUMENTS, 12))
VOCABULARY = [f"w{v}" for v in range(12)]
TABLE = {
    "year": np.arange(NUM_DOCUMENTS),
    "party": np.array(list("DR") * 20),
    "house": np.array(list("aabb") * 10),
    "author": [f"a{i // 5}" for i in range(NUM_DOCUMENTS)],
}
CONTENT = ContentPrior(start_sweeps=2)
WORDS = {"first": ["w0", "w3"], "second": ["w3"]}
OPTIONS = {"chains": 2, "tune": 3, "random_seed": 3, "progressbar": False}


def data(formula="~ s(year, knots=5) + (1 | author)", content="~ party:house"):
    return with_covariates(as_corpus(COUNTS, VOCABULARY), TABLE, formula, content=content)


def model(**options):
    return StructuralTopics(3, content=CONTENT, start_sweeps=3, **options)


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
def test_stored_and_resumed_runs_go_on_with_the_same_draws(tmp_path):
    own = model(keywords=WORDS)
    whole = sample(own, data(), draws=4, **OPTIONS)
    sample(own, data(), draws=2, store=str(tmp_path / "run"), **OPTIONS)
    resumed = resume(str(tmp_path / "run"), draws=4, progressbar=False)
    names = {"effects", "effect_variances", "group_topics", "group_tokens", "keyword_shares"}
    assert names < set(whole)
    for name in whole:
        np.testing.assert_array_equal(resumed[name], whole[name])
    loaded = load(str(tmp_path / "run"))
    assert loaded.dims["group_topics"] == ("chain", "draw", "group", "topic", "word")
    assert list(loaded.coords["group"]) == ["D:a", "D:b", "R:a", "R:b"]
    assert list(loaded.coords["term"]) == ["s(year, knots=5)", "1 | author"]
    assert loaded.coords["effect"][-1] == "1 | author[a7]"
    np.testing.assert_allclose(whole["group_topics"].sum(axis=-1), 1.0, rtol=1e-6)
    assert whole["group_topics"].dtype == loaded["group_topics"].dtype == np.float32
    tokens = [COUNTS[data().content.codes == g].sum() for g in range(4)]
    assert (whole["group_tokens"].sum(axis=-1) == tokens).all()


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
def test_what_the_data_do_not_have_is_not_kept():
    posterior = sample(model(), data("~ year", None), draws=2, **OPTIONS)
    assert not {name for name in posterior if name.startswith(("effect_", "group", "keyword"))}
    only_groups = sample(model(), data("~ year", "~ party"), draws=2, **OPTIONS)
    assert only_groups["group_topics"].shape == (2, 2, 2, 3, 12)
    assert "effects" not in only_groups


@pytest.mark.parametrize("n", [13, 200, 10**6])
@pytest.mark.parametrize("a", [1e-8, 0.3, 40.0, 900.0, 1001.0, 1e6, 1e10])
def test_log_rising_is_a_sum_of_logarithms(a, n):
    assert log_rising(a, n) == pytest.approx(np.sum(np.log(a + np.arange(n))), rel=1e-11)


def test_topics_with_keywords_come_first_and_have_them():
    base = np.full((3, 12), 0.25)
    base[np.repeat([0, 1, 2], 4), np.arange(12)] = 8.0
    base /= base.sum(axis=1, keepdims=True)
    draws = np.random.default_rng(7)
    theta = draws.dirichlet([0.3] * 3, size=60)
    counts = draws.multinomial(60, theta @ base)
    corpus = with_covariates(as_corpus(counts, VOCABULARY), {"x": np.arange(60)})
    own = StructuralTopics(3, keywords={"late": ["w8", "w9"], "early": ["w0"]})
    state = own.init(draws, corpus)
    topics = np.zeros((3, 12))
    for sweep in range(60):
        state = own.step(draws, state, corpus)
        topics += state.topics / 60 * (sweep >= 0)
    assert topics[0, 8:].sum() > 0.7
    assert topics[1, :4].sum() > 0.7


def test_keywords_mix_and_unmix():
    corpus = data("~ year", None)
    keywords = Keywords.of(model(keywords=WORDS).keywords, corpus)
    draws = np.random.default_rng(0)
    shares, words = keywords.prior(draws)
    plain = draws.dirichlet(np.ones(12), size=3)
    mixed = keywords.mixed(plain, shares, words)
    np.testing.assert_allclose(mixed.sum(axis=1), 1.0)
    np.testing.assert_array_equal(mixed[2], plain[2])
    counts = draws.integers(50, size=(1, 3, 12))
    state = KeywordsState(keyword_shares=shares, keyword_words=words)
    left, _, _ = keywords.sample(draws, counts, mixed[None], state)
    assert (left <= counts).all()
    untouched = np.ones((3, 12), dtype=bool)
    untouched[keywords.topics, keywords.words] = False
    np.testing.assert_array_equal(left[0][untouched], counts[0][untouched])


def test_keywords_must_be_words_of_the_corpus():
    own = StructuralTopics(3, keywords={"a": ["w0", "nope"]})
    with pytest.raises(
        ValueError, match=r"keywords\['a'\] must be words of the corpus, got 'nope'"
    ):
        sample(own, data())
    with pytest.raises(ValueError, match="need a corpus with a vocabulary"):
        sample(own, with_covariates(COUNTS, TABLE, "~ year"))

"""Covariates of other documents than those that the topics were found in."""

import numpy as np
import pytest
import topic_runs

from pgmult import Posterior, StickBreaking
from pgmult.topics import CorrelatedTopics, as_corpus, with_covariates
from pgmult.topics.fits import refit

VOCABULARY = [f"w{v}" for v in range(12)]
TOPICS = np.full((3, 12), 0.01)
TOPICS[np.repeat([0, 1, 2], 4), np.arange(12)] = 0.23
TOPICS /= TOPICS.sum(axis=1, keepdims=True)


def run_of(topics):
    """Draws of topics without anything beside them."""
    corpus = as_corpus(np.ones((2, 12), dtype=int), VOCABULARY)
    return topic_runs.run_of(CorrelatedTopics(3), corpus, topics=np.tile(topics, (2, 40, 1, 1)))


@pytest.fixture(scope="module")
def drifting():
    """What party does changes its sign along the years; words in another order, one unknown."""
    rng = np.random.default_rng(3)
    year, party = np.arange(400) % 40, np.array(["D", "R"])[rng.integers(2, size=400)]
    psi = 0.7 * rng.standard_normal((400, 2))
    psi[:, 0] += np.where(party == "R", (year - 20.0) / 10.0, 0.0)
    counts = rng.multinomial(60, StickBreaking().probs(psi) @ TOPICS)
    more = np.column_stack([counts[:, ::-1], rng.integers(3, size=400)])
    corpus = as_corpus(more, [*VOCABULARY[::-1], "new"])
    data = with_covariates(corpus, {"year": year, "party": party}, "~ party * s(year, knots=5)")
    return refit(run_of(TOPICS), data, max_draws=80, sweeps=3, warm_up=40, random_seed=1)


def test_effects_drift_over_time(drifting):
    """Formulas tell it: a product with a curve."""
    found = drifting.effects("party", at={"year": [3, 36]}, by="year", max_draws=60)
    gap = found.difference("party", "R", "D")
    truth = []
    noise = 0.7 * np.random.default_rng(0).standard_normal((20_000, 2))
    for year in (3, 36):
        shifted = noise + np.array([(year - 20.0) / 10.0, 0.0])
        link = StickBreaking()
        truth.append(link.probs(shifted).mean(axis=0)[0] - link.probs(noise).mean(axis=0)[0])
    assert truth[0] < -0.2 < 0.2 < truth[1]
    assert (np.abs(gap.mean[:, 0] - truth) < 4.0 * gap.sd[:, 0]).all()
    assert (np.abs(gap.mean[:, 0]) > 4.0 * gap.sd[:, 0]).all()


def test_effects_have_the_columns_of_marginaleffects(drifting):
    found = drifting.effects("party", at={"year": [3, 36]}, by="year", max_draws=20)
    gap = found.difference("party", "R", "D")
    tidy = gap.tidy()
    assert list(tidy.columns) == [
        "term", "contrast", "year", "topic", "words", "estimate", "std_error", "conf_low",
        "conf_high",
    ]  # fmt: skip
    assert set(tidy.columns["term"]) == {"party"}
    assert set(tidy.columns["contrast"]) == {"R - D"}
    assert list(tidy.columns["year"]) == [3, 3, 3, 36, 36, 36]
    np.testing.assert_array_equal(tidy.columns["estimate"], gap.mean.ravel())
    np.testing.assert_array_equal(tidy.columns["conf_low"], gap.interval()[0].ravel())
    assert list(found.tidy().columns)[:2] == ["year", "party"]


def test_what_cannot_be_refitted_is_refused():
    plain = as_corpus(np.ones((4, 12), dtype=int), VOCABULARY)
    table = {"party": list("DRDR")}
    with pytest.raises(TypeError, match=r"with_covariates\(formula\)"):
        refit(run_of(TOPICS), plain)
    with pytest.raises(ValueError, match="must have no content"):
        refit(run_of(TOPICS), with_covariates(plain, table, "~ party", content="~ party"))
    topics = run_of(TOPICS)["topics"][:, :, :, None]
    by_time = Posterior({"topics": topics}, dims={"topics": ("topic", "time", "word")})
    with pytest.raises(ValueError, match="words that do not vary by group"):
        refit(by_time, with_covariates(plain, table, "~ party"))

"""Checks against replicates: calibrated under the model, and they see what is not.

"Draws" are copies of the truth, or of what a test plants in them, so that a check's p-value is one
of known distribution.
"""

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from topic_runs import repeated

from pgmult.topics import (
    CorrelatedTopics,
    DynamicTopics,
    StructuralTopics,
    as_corpus,
    as_timed_corpus,
    with_covariates,
)
from pgmult.topics import check as predictive_checks
from pgmult.topics.summaries import checks

NUM_WORDS, NUM_TOPICS = 30, 3


def truth(rng, num_documents):
    return (
        rng.dirichlet(np.ones(NUM_TOPICS), size=num_documents),
        rng.dirichlet(np.full(NUM_WORDS, 0.3), size=NUM_TOPICS),
    )


def texts(rng, theta, phi, length=60, *, burst=0.0, groups=None, shift=0.0):
    """Words by document; with bursts, or with topics of another group's own words."""
    counts = np.empty((len(theta), phi.shape[1]), dtype=int)
    for d, shares in enumerate(theta):
        words = phi
        if groups is not None and groups[d]:
            words = (1.0 - shift) * phi + shift * np.roll(phi, 5, axis=1)
        if burst:
            words = np.array([rng.dirichlet(np.maximum(row / burst, 1e-3)) for row in words])
        counts[d] = rng.multinomial(length, shares @ words)
    return counts


def p_of(found, of=None):
    """Of dispersion, or of every topic's words by document or group."""
    start = "dispersion" if of is None else f"words by {of}, "
    rows = [j for j, name in enumerate(found.statistics) if name.startswith(start)]
    return found.p_values[rows]


def excess_of(found, of):
    """How much more information the data have than the replicates, of the first topic."""
    row = found.statistics.index(f"words by {of}") + 1
    return (found.observed - found.draws)[:, row].mean()


def posterior_of(counts, theta, phi):
    return repeated(CorrelatedTopics(len(phi)), as_corpus(counts), 20, theta=theta, topics=phi)


def test_dispersion_is_pearsons_statistic(monkeypatch):
    rng = np.random.default_rng(0)
    theta, phi = truth(rng, 12)
    counts = texts(rng, theta, phi)
    counts[3] = 0
    found = predictive_checks(posterior_of(counts, theta, phi), max_draws=1)
    used = counts.sum(axis=1) > 0
    x, q = counts[used], (theta @ phi)[used]
    m = x.sum(axis=1, keepdims=True)
    by_hand = ((x - m * q) ** 2 / (m * q * (1 - q)))[m * q >= 0.05].mean()
    assert found.observed[0, 0] == pytest.approx(by_hand)
    monkeypatch.setattr(checks, "_BLOCK", 100)  # documents in several blocks
    again = predictive_checks(posterior_of(counts, theta, phi), max_draws=1)
    assert again.observed[0, 0] == pytest.approx(by_hand)


def test_information_is_that_of_the_table_of_words_and_documents():
    """Of one topic, where z is known."""
    rng = np.random.default_rng(1)
    phi = np.stack([np.full(6, 1 / 6), np.full(6, 1 / 6)])
    theta = np.tile([1.0 - 1e-12, 1e-12], (9, 1))
    counts = rng.poisson(3.0, size=(9, 6)) + 1
    groups = np.repeat([0, 1, 2], 3)
    found = predictive_checks(
        posterior_of(counts, theta, phi), groups={"third": groups}, max_draws=2
    )
    by_third = np.stack([counts[groups == g].sum(axis=0) for g in range(3)])
    for table, of in ((counts, "document"), (by_third, "third")):
        share = table / table.sum()
        chance = share.sum(axis=0) * share.sum(axis=1, keepdims=True)
        by_hand = (share * np.log(share / chance)).sum()
        whole = found.statistics.index(f"words by {of}")
        assert found.observed[0, whole] == pytest.approx(by_hand)
        assert found.observed[0, whole + 1] == pytest.approx(by_hand), "of the one topic"


@pytest.mark.slow
def test_checks_are_calibrated_under_the_model():
    """At the true parameters, over corpora: p of dispersion is uniform; data and a replicate of one
    draw of z are exchangeable, so that p of several draws, which share the data, is conservative.
    """
    rng = np.random.default_rng(2)
    dispersion, averaged, single = [], [], []
    for seed in range(60):
        theta, phi = truth(rng, 30)
        groups = {"side": rng.integers(2, size=30)}
        posterior = posterior_of(texts(rng, theta, phi), theta, phi)
        found = predictive_checks(posterior, groups=groups, random_seed=seed)
        dispersion.append(p_of(found)[0])
        averaged.append([p_of(found, of)[0] for of in ("document", "side")])
        one_draw = predictive_checks(posterior, groups=groups, random_seed=seed, max_draws=1)
        single.append([excess_of(one_draw, of) for of in ("document", "side")])
    spread = np.array(dispersion) + rng.uniform(-0.5, 0.5, size=60) / 20  # from a grid to a line
    assert scipy.stats.kstest(spread, "uniform", args=(-0.025, 1.05)).pvalue > 1e-3
    for excess, p in zip(np.array(single).T, np.array(averaged).T, strict=True):
        assert scipy.stats.wilcoxon(excess).pvalue > 1e-3
        assert 0.4 < p.mean() < 0.6
        assert np.mean(p < 0.05) <= 0.1


def test_bursts_and_words_of_a_group_are_seen():
    rng = np.random.default_rng(3)
    theta, phi = truth(rng, 60)
    groups = np.arange(60) % 2
    calm = predictive_checks(
        posterior_of(texts(rng, theta, phi), theta, phi), groups={"side": groups}
    )
    assert min(p_of(calm, "document").min(), p_of(calm, "side").min()) > 0.02
    assert calm.verdict.startswith("Data simulated from the model agree with the data in ")
    bursts = texts(rng, theta, phi, burst=0.05)
    found = predictive_checks(posterior_of(bursts, theta, phi), groups={"side": groups})
    assert p_of(found)[0] < 0.05
    assert (p_of(found, "document") < 0.05).all()
    assert "more dispersed than the model's" in found.verdict
    assert "keep to single documents" in found.verdict
    parted = texts(rng, theta, phi, groups=groups, shift=0.4)
    found = predictive_checks(posterior_of(parted, theta, phi), groups={"side": groups})
    assert (p_of(found, "side") < 0.05).all()
    assert "content covariates of side would show how" in found.verdict
    assert len(found.table()) == 1 + 2 * (1 + 3)


def test_content_that_is_modelled_leaves_no_trace():
    rng = np.random.default_rng(4)
    theta, phi = truth(rng, 60)
    side = np.arange(60) % 2
    groups = np.stack([phi, 0.6 * phi + 0.4 * np.roll(phi, 5, axis=1)])
    counts = texts(rng, theta, phi, groups=side, shift=0.4)
    names = np.array(["left", "right"])[side]
    data = with_covariates(as_corpus(counts), {"side": names}, content="~ side")
    plain = {"theta": theta, "topics": phi}
    posterior = repeated(StructuralTopics(3), data, 20, **plain, group_topics=groups)
    assert p_of(predictive_checks(posterior, groups="side"), "side").min() > 0.02
    missing = repeated(StructuralTopics(3), data, 20, **plain)
    assert p_of(predictive_checks(missing, groups=["side"]), "side").max() < 0.05


@pytest.mark.parametrize("is_right", [True, False])
def test_topics_that_change_are_replicated_as_of_their_time(is_right):
    rng = np.random.default_rng(6)
    times = np.arange(80) % 2
    theta, phi = truth(rng, 80)
    data = as_timed_corpus(texts(rng, theta, phi, groups=times, shift=1.0), times)
    topics = np.stack([phi, np.roll(phi, 5, axis=1)], axis=1)  # (topic, time, word)
    told = topics if is_right else topics[:, ::-1]
    posterior = repeated(DynamicTopics(len(phi)), data, 20, theta=theta, topics=told)
    found = predictive_checks(posterior, groups={"when": times})
    assert (p_of(found)[0] > 0.02) == is_right
    p = p_of(found, "when")  # far too small or too large, unless words go with times as they should
    assert (np.minimum(p, 1.0 - p) > 0.02).all() == is_right


def test_what_cannot_be_checked_is_refused():
    rng = np.random.default_rng(5)
    theta, phi = truth(rng, 6)
    posterior = posterior_of(texts(rng, theta, phi), theta, phi)
    with pytest.raises(ValueError, match="one label for each of the 6 documents, got 2 of 'a'"):
        predictive_checks(posterior, groups={"a": [1, 2]})
    with pytest.raises(ValueError, match="groups must name columns of the corpus, got 'party'"):
        predictive_checks(posterior, groups="party")
    with pytest.raises(ValueError, match="groups must differ, got the one label 'x' of 'a'"):
        predictive_checks(posterior, groups={"a": ["x"] * 6})
    with pytest.raises(ValueError, match="data must be what the posterior was sampled with"):
        predictive_checks(posterior, data=as_corpus(np.ones((6, NUM_WORDS), dtype=int)))

"""Forecasters that count: against counts by hand, and each a probability distribution."""

from functools import partial

import numpy as np
import pytest

from examples.papers.linderman2015.ngrams import bigram, cache, unigram
from pgmult.sequences import as_sequences

K = 4
TRAIN = as_sequences([[0, 1, 0, 1, 2, 0], [1, 1, -1, 0, 1]], num_symbols=K)
TEST = as_sequences([[0, 1, 1, -1, 3, 0], [2, 0]], num_symbols=K)
FORECASTERS = {
    "unigram": unigram,
    "bigram": bigram,
    "bigram, continued": partial(bigram, continues=True),
    "cache": partial(cache, window=3),
    "cache, given weight": partial(cache, window=2, weight=0.3),
    "cache, continued": partial(cache, window=4, continues=True),
}


@pytest.mark.parametrize("name", FORECASTERS)
def test_each_is_a_distribution_of_the_next_symbol(name):
    parts = [[0, 1, 1, -1, 3, 0], [2, 0]]
    for s, part in enumerate(parts):
        for t, symbol in enumerate(part):
            if symbol < 0:
                continue
            logs = []
            for other in range(K):
                changed = [list(p) for p in parts]
                changed[s] = [*part[:t], other, *part[t + 1 :]]
                score = FORECASTERS[name](TRAIN, as_sequences(changed, num_symbols=K))
                place = sum(x >= 0 for p in parts[:s] for x in p) + sum(x >= 0 for x in part[:t])
                logs.append(score.log_predictive[place])
            assert np.exp(logs).sum() == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("name", FORECASTERS)
def test_each_uses_the_past_alone(name):
    """Other later steps, and other sequences, change nothing."""
    whole = FORECASTERS[name](TRAIN, TEST).log_predictive
    changed = as_sequences([[0, 1, 1, -1, 2, 2], [3, 3]], num_symbols=K)
    np.testing.assert_array_equal(FORECASTERS[name](TRAIN, changed).log_predictive[:3], whole[:3])


def probs(score):
    return np.exp(score.log_predictive)


def test_unigram():  # training counts 4, 5, 1, 0
    expected = np.array([5.0, 6.0, 6.0, 1.0, 5.0, 2.0, 5.0]) / 14.0
    np.testing.assert_allclose(probs(unigram(TRAIN, TEST)), expected)
    expected = (np.array([4.0, 5.0, 5.0, 0.0, 4.0, 1.0, 4.0]) + 0.5) / 12.0
    np.testing.assert_allclose(probs(unigram(TRAIN, TEST, pseudo_count=0.5)), expected)


# Pairs in training: 01 01 12 10 20 | 11 01; no pair across a missing step or two sequences.


def test_bigram():
    lower = np.array([5, 6, 2, 1]) / 14
    expected = [lower[0], 4 / 7, 2 / 7, lower[3], 1 / 4, lower[2], 2 / 5]
    np.testing.assert_allclose(probs(bigram(TRAIN, TEST)), expected)


def test_bigram_continued():
    """The first sequence goes on after a 0, the second after a 1."""
    expected = [1 / 7, 4 / 7, 2 / 7, 1 / 14, 1 / 4, 2 / 7, 2 / 5]
    np.testing.assert_allclose(probs(bigram(TRAIN, TEST, continues=True)), expected)


def naive_cache(train, test, window, weight, continues):
    whole = np.concatenate([train, test]) if continues else test
    ahead = len(whole) - len(test)
    frequencies = np.bincount(train, minlength=K) + 1.0
    out = []
    for t in range(ahead, len(whole)):
        recent = whole[max(0, t - window) : t]
        p = frequencies[whole[t]] / frequencies.sum()
        if len(recent):
            p = (1.0 - weight) * p + weight * np.mean(recent == whole[t])
        out.append(p)
    return out


@pytest.mark.parametrize("continues", [False, True])
@pytest.mark.parametrize("window", [1, 5, 50])
def test_cache_against_counting_again_at_every_step(window, continues):
    rng = np.random.default_rng(0)
    train, test = rng.integers(K, size=40), rng.integers(K, size=30)
    got = cache(
        as_sequences([train], num_symbols=K), as_sequences([test], num_symbols=K),
        window=window, weight=0.3, continues=continues,
    )  # fmt: skip
    np.testing.assert_allclose(probs(got), naive_cache(train, test, window, 0.3, continues))


def test_cache_fits_its_weight():
    """Runs of one symbol want a large weight, a cycle through all symbols a small one."""
    runs = as_sequences([np.repeat(np.arange(K), 20)], num_symbols=K)
    cycle = as_sequences([np.tile(np.arange(K), 20)], num_symbols=K)
    weights = [float(cache(train, train, window=3).method.split()[-1]) for train in (runs, cycle)]
    assert weights[0] > 0.8
    assert weights[1] < 0.01


def test_rows_of_counts():
    train = as_sequences([np.array([[2, 1, 0, 0], [0, 0, 3, 0]])])
    test = as_sequences([np.array([[1, 2, 0, 0], [0, 0, 0, 0], [0, 1, 0, 1]])])
    p = np.array([3, 2, 4, 1]) / 10
    expected = np.log([p[0] * p[1] ** 2, p[1] * p[3]])
    np.testing.assert_allclose(unigram(train, test).log_predictive, expected)
    mixed = 0.5 * p + 0.5 * np.array([1, 2, 0, 0]) / 3
    expected[1] = np.log(mixed[1] * mixed[3])
    got = cache(train, test, window=2, weight=0.5).log_predictive
    np.testing.assert_allclose(got, expected)


def test_bad_input():
    counts = as_sequences([np.array([[2, 1, 0, 0]])])
    with pytest.raises(ValueError, match="one symbol a step, got 3 observations at step 0 of the"):
        bigram(counts, TEST)
    with pytest.raises(ValueError, match=r"one symbol a step.* of the test"):
        bigram(TRAIN, counts)
    with pytest.raises(ValueError, match=r"4 symbols .* test sequences 2"):
        unigram(TRAIN, as_sequences([[0, 1]]))
    with pytest.raises(ValueError, match="pseudo_count must be positive"):
        unigram(TRAIN, TEST, pseudo_count=0.0)
    with pytest.raises(ValueError, match=r"weight must be between 0 and 1, got 1.0"):
        cache(TRAIN, TEST, weight=1.0)
    with pytest.raises(ValueError, match="window must be at least 1"):
        cache(TRAIN, TEST, window=0)
    with pytest.raises(ValueError, match="2 training and 1 test"):
        bigram(TRAIN, as_sequences([[0, 1]], num_symbols=K), continues=True)

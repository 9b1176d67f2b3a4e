"""Forecasters that count, and blends: by hand, and each a probability distribution."""

from functools import partial

import numpy as np
import pytest

from examples.papers.linderman2015.forecasters import blend, kneser_ney, online_unigram
from examples.papers.linderman2015.ngrams import bigram, unigram
from examples.papers.linderman2015.step_scores import SequenceScore
from pgmult.sequences import as_sequences

K = 4
TRAIN = as_sequences([[0, 1, 0, 1, 2, 0], [1, 1, -1, 0, 1]], num_symbols=K)
PARTS = [[0, 1, 1, -1, 3, 0], [2, 0]]
TEST = as_sequences(PARTS, num_symbols=K)
FORECASTERS = {
    "online unigram": online_unigram,
    "Kneser-Ney": kneser_ney,
    "Kneser-Ney, continued": partial(kneser_ney, continues=True),
    "blend": lambda train, test: blend(unigram(train, test), bigram(train, test)),
}


@pytest.mark.parametrize("name", FORECASTERS)
def test_each_is_a_distribution_of_the_next_symbol_given_the_past_alone(name):
    whole = FORECASTERS[name](TRAIN, TEST).log_predictive
    for t, place in ((0, 0), (4, 3)):
        logs = []
        for other in range(K):
            changed = [[*PARTS[0][:t], other, *PARTS[0][t + 1 :]], PARTS[1]]
            found = FORECASTERS[name](TRAIN, as_sequences(changed, num_symbols=K)).log_predictive
            logs.append(found[place])
            np.testing.assert_array_equal(found[:place], whole[:place])
        assert np.exp(logs).sum() == pytest.approx(1.0, rel=1e-12)


def probs(score):
    return np.exp(score.log_predictive)


def test_online_unigram_starts_again_in_every_sequence():
    expected = [5 / 14, 6 / 15, 7 / 16, 1 / 17, 6 / 18, 2 / 14, 5 / 15]
    np.testing.assert_allclose(probs(online_unigram(TRAIN, TEST)), expected)


def test_kneser_ney():
    # pairs 01: 3, 10: 1, 11: 1, 12: 1, 20: 1, so once = 4, twice = 0 and d = 1;
    # different symbols before 0: {1, 2}, 1: {0, 1}, 2: {1}; once = 1, twice = 2, d' = 1/5
    d = 1 / 5
    lower = np.array([2 - d, 2 - d, 1 - d, 0.0]) / 5 + 3 * d / 5 / K
    assert lower.sum() == pytest.approx(1.0)
    expected = [
        lower[0],
        2 / 3 + 1 / 3 * lower[1],  # after 0: one kind of pair, seen three times
        0.0 + lower[1],  # after 1: three kinds, each seen once
        lower[3],
        lower[0],  # after 3, never seen
        lower[2],
        0.0 + lower[0],
    ]
    np.testing.assert_allclose(probs(kneser_ney(TRAIN, TEST)), expected)


def test_kneser_ney_without_pairs_is_uniform():
    train = as_sequences([[0], [1], [1]], num_symbols=K)
    np.testing.assert_allclose(probs(kneser_ney(train, TEST)), 1 / K)


def score_of(log_predictive, sequence=None):
    log_predictive = np.asarray(log_predictive, dtype=np.float64)
    size = len(log_predictive)
    sequence = np.zeros(size, np.int64) if sequence is None else np.asarray(sequence)
    return SequenceScore("s", log_predictive, np.ones(size, np.int64), sequence)


def test_a_blend_integrates_its_weight_out_of_whole_sequences():
    rng = np.random.default_rng(2)
    p, q = rng.uniform(0.05, 1.0, size=(2, 7))
    sequence = np.repeat([0, 3], [4, 3])
    found = blend(score_of(np.log(p), sequence), score_of(np.log(q), sequence), num_weights=2000)
    nodes, weights = np.polynomial.legendre.leggauss(20)  # exact for polynomials of the weight
    u = 0.5 * (nodes + 1.0)[:, None]
    for first, last in ((0, 4), (4, 7)):
        steps = slice(first, last)
        for stop in range(first + 1, last + 1):
            along = slice(first, stop)
            whole = 0.5 * weights @ ((1.0 - u) * p[along] + u * q[along]).prod(axis=1)
            assert found.log_predictive[along].sum() == pytest.approx(np.log(whole), abs=1e-6)
        assert found.log_predictive[steps][0] == pytest.approx(np.log(0.5 * (p + q)[first]))

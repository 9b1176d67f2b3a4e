"""Mixtures of draws of whole sequences, and scores step by step."""

import numpy as np
import pytest
from scipy.special import logsumexp

from examples.papers.linderman2015.ngrams import bigram, unigram
from examples.papers.linderman2015.step_scores import SequenceScore, mix_draws
from pgmult.sequences import as_sequences

K = 3
TEST = as_sequences([[2, 0, -1], [0, 2, 2, 1]], num_symbols=K)


def test_the_mixture_is_of_whole_sequences():
    rng = np.random.default_rng(0)
    by_draw = np.log(rng.uniform(0.1, 1.0, size=(5, 7)))
    offsets = np.array([0, 3, 7])
    mixed = mix_draws(by_draw, offsets)
    for first, last in ((0, 3), (3, 7)):
        whole = np.log(np.mean(np.exp(by_draw[:, first:last].sum(axis=1))))
        assert mixed[first:last].sum() == pytest.approx(whole, rel=1e-12)
        assert mixed[first] == pytest.approx(np.log(np.exp(by_draw[:, first]).mean()))


def test_the_mixture_is_a_distribution_of_the_next_symbol():
    rng = np.random.default_rng(1)
    past = np.log(rng.uniform(size=(4, 6)))
    tables = np.log(rng.dirichlet(np.ones(K), size=4))
    last = [
        mix_draws(np.column_stack([past, tables[:, k]]), np.array([0, 7]))[-1] for k in range(K)
    ]
    assert np.exp(last).sum() == pytest.approx(1.0)


def test_a_draw_that_rules_out_a_step_loses_its_weight():
    with np.errstate(divide="ignore"):
        by_draw = np.log([[0.5, 0.0, 0.9], [0.2, 0.4, 0.3]])
    mixed = mix_draws(by_draw, np.array([0, 3]))
    np.testing.assert_allclose(mixed, np.log([0.35, 0.08 / 0.7, 0.3]))
    nobody = np.array([[0.0, -np.inf, -1.0], [0.0, -np.inf, -2.0]])
    mixed = mix_draws(nobody, np.array([0, 3]))
    expected = [0.0, -np.inf, logsumexp([-1.0, -2.0]) - np.log(2.0)]
    np.testing.assert_allclose(mixed, expected)


def test_missing_steps_are_left_out_and_counts_weigh():
    test = as_sequences([np.array([[1, 0, 0], [0, 0, 0], [0, 3, 0]])])
    score = SequenceScore.of_steps("mine", np.array([-1.0, 0.0, -5.0]), test)
    np.testing.assert_array_equal(score.log_predictive, [-1.0, -5.0])
    assert score.totals.tolist() == [1, 3]
    assert score.mean == -1.5


def test_gains_are_paired():
    train = as_sequences([np.tile([0, 1, 2], 20)], num_symbols=K)
    test = as_sequences([np.tile([0, 1, 2], 10)], num_symbols=K)
    gain = bigram(train, test).gain_over(unigram(train, test))
    assert gain.mean > 0.5
    assert gain.error < 0.1
    assert str(gain).startswith("+")
    with pytest.raises(ValueError, match="of the same steps: unigram"):
        unigram(train, TEST).gain_over(unigram(train, test))


def test_symbols_are_numbered_alike():
    with pytest.raises(ValueError, match="number their symbols alike"):
        unigram(as_sequences(["abc"]), as_sequences(["abd"]))

"""Scores of predicted probabilities, against enumeration of every way to break a tie."""

from itertools import pairwise, permutations

import numpy as np
import pytest
from scipy.stats import multinomial

from examples.papers.linderman2015.field_scores import log_predictive, mean_over_rows, overlap


def all_rankings(values):
    """Every ranking, largest first, that only the luck among equal values decides."""
    return [
        order
        for order in permutations(range(len(values)))
        if all(values[a] >= values[b] for a, b in pairwise(order))
    ]


def enumerated_overlap(predicted, counts, size):
    return np.mean(
        [
            len({*first[:size]} & {*second[:size]})
            for first in all_rankings(predicted)
            for second in all_rankings(counts)
        ]
    )


class TestOverlap:
    @pytest.mark.parametrize("size", [1, 2, 3, 5])
    def test_is_the_mean_over_all_ways_to_break_ties(self, size):
        rng = np.random.default_rng(size)
        predicted = rng.integers(0, 3, size=(12, 5)) / 7.0
        counts = rng.integers(0, 3, size=(12, 5))
        np.testing.assert_allclose(
            overlap(predicted, counts, size),
            [enumerated_overlap(p, c, size) for p, c in zip(predicted, counts, strict=True)],
        )
        np.testing.assert_allclose(
            overlap(predicted, counts, size, lowest=True),
            [enumerated_overlap(-p, -c, size) for p, c in zip(predicted, counts, strict=True)],
        )

    def test_without_ties_it_counts(self):
        counts = np.array([[9, 7, 5, 3, 1]])
        assert overlap(counts, counts, 2) == 2.0
        assert overlap(counts[:, ::-1], counts, 2) == 0.0
        assert overlap(counts[:, ::-1], counts, 3, lowest=True) == 1.0

    def test_where_all_is_tied_it_is_the_luck_of_the_draw(self):
        assert overlap(np.full((1, 100), 0.01), np.zeros((1, 100)), 10) == pytest.approx(1.0)


class TestLogPredictive:
    def test_one_prediction(self):
        probs, counts = (
            np.array([[0.2, 0.3, 0.5], [0.6, 0.4, 0.0]]),
            np.array([[1, 0, 3], [2, 1, 0]]),
        )
        expected = multinomial.logpmf(counts, counts.sum(axis=1), probs)
        np.testing.assert_allclose(log_predictive(probs, counts), expected)

    def test_what_cannot_be(self):
        assert log_predictive(np.array([[1.0, 0.0]]), np.array([[0, 1]])) == -np.inf

    def test_mixture(self):
        rng = np.random.default_rng(0)
        probs = rng.dirichlet(np.ones(3), size=(4, 2))
        counts = np.array([[1, 0, 3], [2, 1, 0]])
        pmf = [multinomial.pmf(counts, counts.sum(axis=1), draw) for draw in probs]
        np.testing.assert_allclose(log_predictive(probs, counts), np.log(np.mean(pmf, axis=0)))

    def test_probabilities_below_the_smallest_float(self):
        probs = np.array([[[0.5, 0.5]], [[1e-3, 1.0 - 1e-3]]])
        found = log_predictive(probs, np.array([[4000, 0]]))
        assert found == pytest.approx(4000 * np.log(0.5) - np.log(2.0))


def test_means_over_rows():
    scores = np.array([1.0, 4.0, 2.0, 5.0])
    mean, error = mean_over_rows(scores)
    assert (mean, error) == pytest.approx((3.0, scores.std(ddof=1) / 2.0))
    gain, error = mean_over_rows(np.array([2.0, 6.0]), np.array([10, 30]))
    assert (gain, error) == pytest.approx((0.2, 0.0))  # both rows gain 0.2 nats an item

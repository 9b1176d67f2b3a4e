"""Scores of predicted probabilities, against enumeration of every way to break a tie."""

from itertools import pairwise, permutations

import numpy as np
import pytest
from scipy.stats import beta, binomtest, multinomial

from pgmult.fields.scores import (
    calibration,
    coverage,
    gain_by_count,
    log_predictive,
    log_predictive_mixture,
    mean_over_groups,
    overlap,
)


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

    def test_bad_input(self):
        with pytest.raises(ValueError, match="predicted must have rows of shape"):
            overlap(np.ones((2, 3)), np.ones((2, 4)), 1)
        with pytest.raises(ValueError, match="size must be at most 3"):
            overlap(np.ones((2, 3)), np.ones((2, 3)), 4)
        with pytest.raises(ValueError, match="rows of categories"):
            overlap(np.ones(3), np.ones(3), 1)


class TestLogPredictive:
    def test_one_prediction(self):
        probs, counts = (
            np.array([[0.2, 0.3, 0.5], [0.6, 0.4, 0.0]]),
            np.array([[1, 0, 3], [2, 1, 0]]),
        )
        expected = multinomial.logpmf(counts, counts.sum(axis=1), probs)
        np.testing.assert_allclose(log_predictive(probs, counts), expected)

    def test_what_cannot_be(self):
        assert log_predictive([[1.0, 0.0]], [[0, 1]]) == -np.inf

    def test_mixture(self):
        rng = np.random.default_rng(0)
        probs = rng.dirichlet(np.ones(3), size=(4, 2))
        counts = np.array([[1, 0, 3], [2, 1, 0]])
        pmf = [multinomial.pmf(counts, counts.sum(axis=1), draw) for draw in probs]
        np.testing.assert_allclose(
            log_predictive_mixture(probs, counts), np.log(np.mean(pmf, axis=0))
        )

    def test_probabilities_below_the_smallest_float(self):
        probs = np.array([[[0.5, 0.5]], [[1e-3, 1.0 - 1e-3]]])
        found = log_predictive_mixture(probs, [[4000, 0]])
        assert found == pytest.approx(4000 * np.log(0.5) - np.log(2.0))

    def test_bad_input(self):
        with pytest.raises(ValueError, match="sum to 1"):
            log_predictive([[0.5, 0.6]], [[1, 1]])
        with pytest.raises(ValueError, match="at least one draw"):
            log_predictive_mixture(np.ones((0, 1, 2)), [[1, 1]])
        with pytest.raises(ValueError, match="probs must have rows"):
            log_predictive([[0.5, 0.5]], [[1, 1], [1, 1]])


class TestMeans:
    def test_of_independent_rows(self):
        scores = np.array([1.0, 4.0, 2.0, 5.0])
        mean, error = mean_over_groups(scores)
        assert mean == 3.0
        assert error == pytest.approx(scores.std(ddof=1) / 2.0)

    def test_rows_of_a_group_go_together(self):
        mean, error = mean_over_groups(
            np.repeat([1.0, 4.0, 2.0, 5.0], 3), np.repeat(list("dbca"), 3)
        )
        assert (mean, error) == pytest.approx(mean_over_groups([1.0, 4.0, 2.0, 5.0]))

    def test_gain_by_count(self):
        gain, error = gain_by_count([-1.0, -2.0], [-3.0, -8.0], [10, 30])
        assert gain == pytest.approx(8.0 / 40)
        assert error == pytest.approx(0.0, abs=1e-12)  # both rows gain 0.2 nats an item
        assert gain_by_count([0.0, 1.0], [0.0, 0.0], [1, 1])[1] == pytest.approx(0.5)

    def test_bad_input(self):
        with pytest.raises(ValueError, match="by_row must be finite"):
            gain_by_count([-np.inf], [0.0], [1])
        with pytest.raises(ValueError, match="totals must have one entry for each of the 2"):
            gain_by_count([1.0, 2.0], [0.0, 0.0], [1])
        with pytest.raises(ValueError, match="groups must have one entry for each of the 2"):
            mean_over_groups([1.0, 2.0], ["a"])


class TestCoverage:
    def test_of_right_draws_is_exact_for_few_draws_and_for_counts(self):
        rng = np.random.default_rng(0)
        for draw in (lambda size: rng.beta(2.0, 5.0, size), lambda size: rng.poisson(0.7, size)):
            score = coverage(draw((6, 5000, 2)), draw((5000, 2)))
            np.testing.assert_allclose(score.levels, [0.5, 0.8, 0.95])
            assert np.all(np.abs(score.covered - score.levels) < 4.0 * score.standard_errors)
            assert np.all(score.standard_errors < 0.01)

    def test_many_draws_are_the_interval_itself(self):
        rng = np.random.default_rng(1)
        draws, truth = rng.beta(2.0, 5.0, size=(20000, 1, 1)), beta.ppf([[0.3]], 2.0, 5.0)
        assert coverage(draws, truth, [0.3]).covered == 0.0
        assert coverage(draws, truth, [0.5]).covered == 1.0

    def test_draws_too_narrow_are_seen(self):
        rng = np.random.default_rng(2)
        score = coverage(0.5 * rng.standard_normal((50, 2000, 1)), rng.standard_normal((2000, 1)))
        assert np.all(score.covered < score.levels - 0.1)
        inside = binomtest(round(2000 * score.covered[1]), 2000, 0.4784)  # P(|x| < 1.2816 / 2)
        assert inside.pvalue > 1e-3
        assert score.in_words.startswith("coverage 50%: ")

    def test_bad_input(self):
        with pytest.raises(ValueError, match="draws must be"):
            coverage(np.ones((2, 3)), np.ones((3, 2)))
        with pytest.raises(ValueError, match="levels must be numbers between 0 and 1"):
            coverage(np.ones((2, 3, 2)), np.ones((3, 2)), [95])


class TestCalibration:
    """Probabilities around which draws have a given width, and counts of them."""

    def made(self, width, rows=150, categories=6):
        rng = np.random.default_rng(1)
        middle = rng.normal(size=(rows, categories))
        draws = middle + width * rng.normal(size=(200, rows, categories))
        truth = middle + 0.3 * rng.normal(size=(rows, categories))
        pi, true_pi = (np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True) for x in (draws, truth))
        return pi, rng.multinomial(400, true_pi)

    @pytest.mark.parametrize(
        ("width", "verdict"),
        [(0.3, "These hold"), (0.05, "Too narrow: 95 % intervals hold"), (1.0, "Too wide")],
    )
    def test_says_what_holds(self, width, verdict):
        found = calibration(*self.made(width), top=2, random_seed=0)
        assert found.verdict.replace("%", " %").replace("  ", " ").startswith(verdict)
        np.testing.assert_allclose(found.pit.sum(), 1.0)
        assert found.table().caption.startswith(found.verdict)
        assert "intervals of" in str(found)
        assert found.num_cells <= 900
        ends = found.pit[0] + found.pit[-1]
        assert {0.3: 0.1 < ends < 0.3, 0.05: ends > 0.3, 1.0: ends < 0.1}[width]

    def test_ranks_are_those_said_where_the_draws_are_right(self):
        said, was, cells = calibration(*self.made(0.3, rows=600), top=2, random_seed=0).ranks.T
        assert cells.sum() == 3600
        np.testing.assert_array_less(np.abs(said - was), 4.0 * np.sqrt(0.25 / cells) + 0.01)

    def test_counts_that_cannot_be_wrong_are_left_out(self):
        pi, counts = self.made(0.3)
        pi = np.concatenate([pi, np.full((*pi.shape[:2], 1), 1e-9)], axis=-1)
        counts = np.concatenate([counts, np.zeros((len(counts), 1), dtype=np.int64)], axis=1)
        assert calibration(pi / pi.sum(-1, keepdims=True), counts, random_seed=0).num_cells <= 900
        with pytest.raises(ValueError, match="a cell with 1 expected at least"):
            calibration(pi / pi.sum(-1, keepdims=True), 0 * counts)

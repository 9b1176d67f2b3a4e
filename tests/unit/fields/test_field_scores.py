"""Do intervals hold counts? Against exact intervals and known truths."""

import numpy as np
import pytest
from scipy.stats import beta, binomtest

from pgmult.fields.scores import calibration, shares_inside

LEVELS = np.array([0.5, 0.8, 0.95])


class TestSharesInside:
    def test_of_right_draws_are_exact_for_few_draws_and_for_counts(self):
        rng = np.random.default_rng(0)
        for draw in (lambda size: rng.beta(2.0, 5.0, size), lambda size: rng.poisson(0.7, size)):
            inside = shares_inside(draw((6, 10_000)), draw(10_000), LEVELS)
            error = inside.std(axis=1) / 100.0
            assert np.all(np.abs(inside.mean(axis=1) - LEVELS) < 4.0 * error)
            assert np.all(error < 0.01)

    def test_many_draws_are_the_interval_itself(self):
        rng = np.random.default_rng(1)
        draws, truth = rng.beta(2.0, 5.0, size=(20000, 1)), beta.ppf([0.3], 2.0, 5.0)
        np.testing.assert_array_equal(shares_inside(draws, truth, [0.3, 0.5]), [[0.0], [1.0]])

    def test_draws_too_narrow_are_seen(self):
        rng = np.random.default_rng(2)
        draws, truth = 0.5 * rng.standard_normal((50, 2000)), rng.standard_normal(2000)
        covered = shares_inside(draws, truth, LEVELS).mean(axis=1)
        assert np.all(covered < LEVELS - 0.1)
        inside = binomtest(round(2000 * covered[1]), 2000, 0.4784)  # P(|x| < 1.2816 / 2)
        assert inside.pvalue > 1e-3


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
        [
            (0.3, "As wide as they should be"),
            (0.05, "Too narrow: 95 % intervals contain"),
            (1.0, "Too wide"),
        ],
    )
    def test_says_what_holds(self, width, verdict):
        found = calibration(*self.made(width), random_seed=0)
        assert found.verdict.replace("%", " %").replace("  ", " ").startswith(verdict)
        assert found.table().caption.startswith(found.verdict)
        assert "intervals of" in str(found)
        assert found.num_cells <= 900
        assert found.in_words.startswith("coverage 50%: ")

    def test_counts_that_cannot_be_wrong_are_left_out(self):
        pi, counts = self.made(0.3)
        pi = np.concatenate([pi, np.full((*pi.shape[:2], 1), 1e-9)], axis=-1)
        counts = np.concatenate([counts, np.zeros((len(counts), 1), dtype=np.int64)], axis=1)
        assert calibration(pi / pi.sum(-1, keepdims=True), counts, random_seed=0).num_cells <= 900
        with pytest.raises(ValueError, match="a cell with 1 expected"):
            calibration(pi / pi.sum(-1, keepdims=True), 0 * counts)
        with pytest.raises(ValueError, match="draws must be"):
            calibration(pi, counts[:, 1:])

"""Scores, leave-one-out and the comparison of a model with its rivals."""

import json

import numpy as np
import pytest

from pgmult.core.comparison import Comparison
from pgmult.core.scores import Gain, Score, leave_one_out
from pgmult.sampling.codec import decode, encode

TOTALS = np.full(40, 5)


def score(shift, spread=0.0, chains=None):
    rng = np.random.default_rng(abs(int(100 * shift)))
    by_unit = TOTALS * (shift + spread * rng.standard_normal(40)) - 1.0
    return Score(by_unit, TOTALS, None if chains is None else by_unit + TOTALS * chains[:, None])


def compared(own, *others):
    scores = {"the model": own} | {f"rival {i}": other for i, other in enumerate(others)}
    return Comparison.of(scores, "a step", "Told somehow.", {"rival 0": "take the first"})


def test_leave_one_out_is_exact_for_a_normal_mean():
    """N(mu, 1) observations under a flat prior: x_i given the others is N(mean, 1 + 1/(n-1))."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=30)
    mean = rng.normal(x.mean(), 1 / np.sqrt(30), size=(4, 2000))
    log_p = -0.5 * (x - mean[..., None]) ** 2 - 0.5 * np.log(2 * np.pi)
    others, var = (x.sum() - x) / 29, 1.0 + 1.0 / 29
    exact = -0.5 * (x - others) ** 2 / var - 0.5 * np.log(2 * np.pi * var)
    found = leave_one_out(log_p)
    np.testing.assert_allclose(found.log_p, exact, atol=0.01)
    np.testing.assert_allclose(found.by_chain.mean(axis=0), exact, atol=0.02)
    assert found.k.max() < 0.5
    plain = np.log(np.exp(log_p).mean(axis=(0, 1)))
    assert np.abs(plain - exact).max() > 0.05, "what was fitted is told too well"


def test_pareto_shapes_tell_weights_that_say_little():
    rng = np.random.default_rng(2)
    heavy = -2.0 * rng.standard_exponential((4, 1000, 3))  # weights with a tail of index 1/2
    light = -0.2 * rng.standard_exponential((4, 1000, 3))
    assert leave_one_out(heavy).k.min() > 0.7
    assert leave_one_out(light).k.max() < 0.5


def test_equal_weights_and_few_draws_are_left_as_they_are():
    same = leave_one_out(np.full((2, 50, 3), -1.5))
    np.testing.assert_allclose(same.log_p, -1.5)
    assert (same.k == 0.0).all()
    few = np.random.default_rng(0).normal(size=(1, 6, 2))
    found = leave_one_out(few)
    np.testing.assert_allclose(found.log_p, np.log(6) - np.log(np.exp(-few[0]).sum(axis=0)))
    assert np.isnan(found.k).all()


def test_errors_hold_the_spread_between_chains():
    apart = np.array([-0.2, 0.2])
    one, two = score(-1.0), score(-1.0, chains=apart)
    assert two.chain_error == pytest.approx(0.2)
    assert one.gain_over(score(-1.1)).error == pytest.approx(0.0, abs=1e-12)
    assert two.gain_over(score(-1.1)).error == pytest.approx(0.2)


@pytest.mark.parametrize(("gain", "sign"), [
    (Gain(0.1, 0.04), 1), (Gain(0.1, 0.06), 0), (Gain(-0.1, 0.04), -1), (Gain(-0.0005, 1e-6), 0),
])  # fmt: skip
def test_a_gain_within_twice_its_error_is_level(gain, sign):
    assert gain.sign == sign


def test_better_level_and_worse_are_said_and_what_to_take():
    better = compared(score(-1.0, 0.01), score(-1.5, 0.01), score(-1.2, 0.01))
    assert better.best == "the model"
    assert (
        "The model predicts a step better than rival 1, the best of 2 rivals"
        in (better.sentences[0])
    )
    level = compared(score(-1.0, 0.5), score(-1.001, 0.5), score(-1.9, 0.01))
    assert level.best == "rival 0"
    assert "no better than rival 0" in level.sentences[0]
    assert "Take the first, unless" in level.sentences[0]
    scores = {
        "the model": score(-1.0, 0.5),
        "simple": score(-1.9, 0.01),
        "less": score(-1.001, 0.5),
    }
    other = Comparison.of(scores, "a step", "", simpler=["simple"])
    assert other.best == "the model"
    assert "better than all simpler rivals, and as well as less" in other.sentences[0]
    worse = compared(score(-1.3, 0.01), score(-1.0, 0.01), score(-1.5, 0.01))
    assert worse.best == "rival 0"
    assert "worse than rival 0" in worse.sentences[0]
    alone = Score(np.array([-3.0]), np.array([2]))
    assert (
        "too few to compare" in compared(alone, Score(np.array([-4.0]), np.array([2]))).sentences[0]
    )


def test_a_gain_that_one_row_decides_is_unclear_and_the_row_is_named():
    rival = score(-1.0)
    gain = np.full(40, 0.01)
    gain[7] = 1.4
    model = Score(rival.by_unit + TOTALS * gain, TOTALS)
    scores, rows = {"the model": model, "pooled shares": rival}, [f"year {t}" for t in range(40)]
    comparison = Comparison.of(scores, "a count", "", labels=rows)
    (said,) = comparison.sentences
    assert comparison.table().columns["verdict"] == ["", "better, not clearly"]
    assert "better than pooled shares, but not clearly: +0.0" in said
    assert said.endswith("Most of this error comes from one row, year 7: look at its counts.")
    (unnamed,) = Comparison.of(scores, "a count", "").sentences
    assert unnamed.endswith("nats.")


def test_other_observations_and_no_rival_are_refused():
    with pytest.raises(ValueError, match="of the same observations"):
        score(-1.0).gain_over(Score(np.zeros(3), np.ones(3, dtype=int)))
    with pytest.raises(ValueError, match="a rival at least"):
        Comparison.of({"the model": score(-1.0)}, "a step", "")


def test_it_is_a_table_a_section_a_figure_and_plain_numbers():
    found = compared(score(-1.0, 0.01), score(-1.5, 0.01), score(-1.2, 0.01))
    assert found.table().columns["forecaster"] == ["the model", "rival 1", "rival 0"]
    assert "better" in str(found)
    assert "rival 0" in found.section().html()
    again = decode(json.loads(json.dumps(encode(found), allow_nan=False)))
    assert again.sentences == found.sentences
    assert str(again) == str(found)
    assert again.draws.shape == (40, 3)
    pytest.importorskip("matplotlib")
    assert found.plot() is not None

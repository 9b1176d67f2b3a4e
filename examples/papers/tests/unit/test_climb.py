"""Halved steps."""

import numpy as np
import pytest

from examples.papers import climb as climbs
from examples.papers.climb import Climb
from pgmult.variational import ascent
from pgmult.variational.ascent import slack


def climb_to(level, start, step, **options):
    """Where one step of each row ends, and the climb."""
    x = np.array(start, dtype=float)
    climb = Climb(level(x, np.arange(len(x))), **options)
    tried = []
    for rows in climb:
        tried.append(rows.tolist())
        trial = x[rows] + climb.share[rows] * step[rows]
        good = climb.accept(level(trial, rows))
        x[rows[good]] = trial[good]
    return x, climb, tried


def parabola(x, rows):
    return -((x - 3.0) ** 2)


def test_each_row_goes_as_far_as_it_rises():
    x, climb, tried = climb_to(parabola, [0.0, 2.0, 0.0], np.array([8.0, 1.0, 40.0]))
    assert x.tolist() == [4.0, 3.0, 5.0]
    assert climb.share.tolist() == [0.5, 1.0, 0.125]
    assert tried == [[0, 1, 2], [0, 2], [2], [2]]
    assert not climb.stuck.any()


def test_a_row_that_only_falls_is_stuck_where_it_was():
    def peaks(x, rows):
        return np.where(rows == 1, x == 3.0, parabola(x, rows))

    x, climb, tried = climb_to(peaks, [0.0, 3.0], np.array([1.0, 4.0]))
    assert climb.stuck.tolist() == [False, True]
    assert x.tolist() == [1.0, 3.0]
    assert len(tried) == 50


@pytest.mark.parametrize("refused", [np.nan, -np.inf])
def test_no_row_goes_where_the_level_is_not_known(refused):
    def level(x, rows):
        return np.where(x > 2.0, refused, parabola(x, rows))

    x, climb, _ = climb_to(level, [0.0], np.array([3.0]))
    assert x[0] == 1.5
    assert climb.share[0] == 0.5


def test_the_gradients_promise_is_asked_for():
    """A step to the other side of the parabola, almost as far: it rises, but not enough."""
    step = np.array([5.9999])
    gentle, _, _ = climb_to(parabola, [0.0], step)
    promised, climb, _ = climb_to(parabola, [0.0], step, promise=6.0 * step)
    assert gentle[0] == 5.9999
    assert promised[0] == pytest.approx(2.99995)
    assert climb.share[0] == 0.5


def test_rounding_is_no_fall_and_anything_is_better_than_nothing():
    level = np.array([-1e6, 0.0, -np.inf])
    climb = Climb(level)
    assert climb.accept([-1e6 - 0.9e-6, -0.9e-12, -1e300]).all()
    assert not Climb(level[:2]).accept(level[:2] - 2.0 * slack(level[:2])).any()


def test_a_first_share_is_kept_apart_from_the_callers():
    share = np.array([0.25])
    x, climb, _ = climb_to(parabola, [0.0], np.array([40.0]), share=share)
    assert (share[0], climb.share[0], x[0]) == (0.25, 0.125, 5.0)


MUTANTS = {
    "no promise": (climbs, "_SUFFICIENT", 0.0, test_the_gradients_promise_is_asked_for),
    "no slack": (
        ascent,
        "_SLACK",
        1e-15,
        test_rounding_is_no_fall_and_anything_is_better_than_nothing,
    ),
    "too much slack": (ascent, "_SLACK", 1e-3, test_the_gradients_promise_is_asked_for),
    "one trial": (climbs, "_MOST_HALVINGS", 1, test_each_row_goes_as_far_as_it_rises),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_are_refused(name, monkeypatch):
    where, constant, value, test = MUTANTS[name]
    monkeypatch.setattr(where, constant, value)
    with pytest.raises(AssertionError):
        test()

"""Rasters and stacked shares hold what they are given, as SVG."""

import numpy as np

from pgmult.core.figures.shares import MISSING, OTHER, Raster, Stack

ROWS = [np.array([0, 0, 1, 1, MISSING, 0]), np.array([1, OTHER, OTHER])]


def test_equal_neighbours_are_one_stroke_and_all_kinds_are_explained():
    drawn = Raster(ROWS, ["one", "two"], ["rest", "walk"], "what was seen", starts=[0, 3]).svg()
    rest = next(part for part in drawn.split("<path") if 'class="block c0"' in part)
    assert rest.count("M") == 2, "rest at two stretches of the first row"
    for told in ("rest", "walk", "other", "no data", ">one<", ">two<", "what was seen"):
        assert told in drawn
    alone = Raster([np.array([0, 0])], ["one"], ["rest", "walk"], "seen").svg()
    assert "walk" not in alone, "what is not there needs no key"


def test_a_stack_reaches_one_and_what_is_wanting_is_other():
    shares = np.array([[0.2, 0.8], [0.5, 0.5], [1.0, 0.0]])
    whole = Stack(shares, ["a", "b"], "probabilities", seen=np.array([0, 1]), divider=2.0)
    assert "other" not in whole.svg()
    assert whole.svg().count('class="block') == 4, "two areas and two steps seen"
    assert 'class="now"' in whole.svg()
    assert "other" in Stack(0.9 * shares, ["a", "b"], "probabilities").svg()
    np.testing.assert_allclose(whole._edges()[:, -1], 1.0)
    np.testing.assert_allclose(Stack(0.9 * shares, ["a", "b"], "")._edges()[:, -1], 1.0)

"""Figures of multinomial Gaussian processes."""

import numpy as np
import pytest

from pgmult.core.figures.base import CYCLE
from pgmult.core.figures.tiles import US_TILES
from pgmult.datasets.names import _STATES
from pgmult.fields.plots import probability_series, state_tiles
from pgmult.fields.predictions import FieldPredictions

pytest.importorskip("matplotlib")

RNG = np.random.default_rng(0)
PREDICTIONS = FieldPredictions(
    RNG.dirichlet([5.0, 3.0, 2.0], size=(200, 6)),
    categories=np.array(["Ada", "Ben", "Cleo"]),
)


def test_every_state_has_a_tile_of_its_own():
    assert sorted(US_TILES) == sorted(_STATES)
    assert len(set(US_TILES.values())) == 51


def test_tiles_are_coloured_by_their_numbers():
    axes = state_tiles({"NY": 0.2, "CA": 0.9, "TX": np.nan}, label="P[top 10]", limits=(0.0, 1.0))
    (image,) = axes.get_images()
    table = image.get_array()
    assert table[US_TILES["CA"]] == 0.9
    assert table[US_TILES["NY"]] == 0.2
    assert np.isfinite(np.ma.filled(table, np.nan)).sum() == 2
    assert image.get_clim() == (0.0, 1.0)
    texts = {text.get_text() for text in axes.texts}
    assert {"NY\n0.20", "CA\n0.90", "TX", "WY"} <= texts
    assert len(texts) == 51
    axes.figure.canvas.draw()


def test_series_draw_means_bands_and_shares():
    times = np.array([2001.0, 2000.0, 2002.0, 2003.0, 2005.0, 2004.0])
    counts = np.array([[3, 1, 0], [0, 0, 0], [1, 1, 2]])
    axes = probability_series(
        times, PREDICTIONS, ["Cleo", 0], observed=([2000, 2001, 2002], counts), probability=0.8
    )
    cleo, points, ada, _ = axes.get_lines()
    order = np.argsort(times)
    np.testing.assert_array_equal(cleo.get_xdata(), times[order])
    np.testing.assert_allclose(cleo.get_ydata(), PREDICTIONS.mean()[order, 2])
    np.testing.assert_allclose(ada.get_ydata(), PREDICTIONS.mean()[order, 0])
    np.testing.assert_allclose(points.get_ydata(), [0.0, 0.5])
    band = axes.collections[0].get_paths()[0].vertices
    lower, upper = PREDICTIONS.interval(0.8)
    assert band[:, 1].min() == pytest.approx(lower[:, 2].min())
    assert band[:, 1].max() == pytest.approx(upper[:, 2].max())
    shown = [text.get_text() for text in axes.get_legend().get_texts()]
    assert shown == ["Cleo", "0", "no data"]
    (gap,) = axes.patches
    assert (gap.get_x(), gap.get_x() + gap.get_width()) == (2000.5, 2001.5)
    assert (cleo.get_color(), ada.get_color()) == (CYCLE[2], CYCLE[0]), "by category, not by rank"
    assert all(tick == round(tick) for tick in axes.get_xticks())
    axes.figure.canvas.draw()


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: state_tiles({"NY": 1.0, "XX": 2.0}), "unknown states: XX"),
        (lambda: state_tiles({"NY": np.nan}), "a number at least"),
        (lambda: probability_series([1.0], PREDICTIONS, [0]), r"shape \(6,\), got \(1,\)"),
        (lambda: probability_series(range(6), PREDICTIONS, ["Zoe"]), "unknown category 'Zoe'"),
        (lambda: probability_series(range(6), PREDICTIONS, [3]), "from 0 to 2, got 3"),
    ],
)
def test_bad_input(draw, message):
    with pytest.raises(ValueError, match=message):
        draw()


def test_tiles_say_how_sure():
    axes = state_tiles({"NY": 0.4, "TX": 0.2}, uncertainty={"NY": 0.05})
    texts = [text.get_text() for text in axes.texts]
    assert "NY\n0.40\n±0.05" in texts
    assert "TX\n0.20" in texts
    (image,) = axes.images
    (row, column), other = US_TILES["NY"], US_TILES["TX"]
    assert image.get_alpha()[row, column] == pytest.approx(1 - 0.05 / 0.2)
    assert image.get_alpha()[other] == 1.0
    with pytest.raises(ValueError, match="unknown states: XX"):
        state_tiles({"NY": 0.4}, uncertainty={"XX": 0.1})


def test_series_of_dates_have_an_axis_of_dates():
    days = np.arange("2024-02-27", "2024-03-04", dtype="datetime64[D]")
    counts = np.array([[3, 1, 0], [0, 0, 0]])
    axes = probability_series(days, PREDICTIONS, ["Ada"], observed=(days[:2], counts))
    axes.figure.canvas.draw()
    first, last = axes.lines[0].get_xdata()[[0, -1]].astype(int)
    assert (first, last) == (days[0].astype(int), days[-1].astype(int))
    assert any("2024" in tick.get_text() for tick in axes.get_xticklabels())

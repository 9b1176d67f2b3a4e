"""What a posterior says of something: means, intervals, entries by label, tables."""

import numpy as np
import pytest

from pgmult.core.estimands import Estimand


@pytest.fixture
def draws(rng):
    return rng.normal(size=(400, 4, 3)) + np.arange(3.0)


@pytest.fixture
def found(draws):
    labels = {"row": {"year": [1999, 1999, 2000, 2000], "state": ["TX", "CA", "TX", "CA"]}}
    return Estimand(draws, ("row", "k"), labels, caption="Sizes.", probability=0.8)


def test_summaries_are_those_of_draws(found, draws):
    np.testing.assert_array_equal(found.mean, draws.mean(axis=0))
    np.testing.assert_array_equal(found.sd, draws.std(axis=0))
    np.testing.assert_allclose(found.interval(), np.quantile(draws, [0.1, 0.9], axis=0))
    np.testing.assert_array_equal(found.interval(), [found.lower, found.upper])
    np.testing.assert_array_equal(found.interval(0.5), np.quantile(draws, [0.25, 0.75], axis=0))
    np.testing.assert_array_equal(found.p_above(1.0), (draws > 1.0).mean(axis=0))


def test_draws_without_an_entry_are_left_out_of_it(found, draws):
    gaps = draws.copy()
    gaps[:100, 1, 2] = np.nan
    seen = Estimand(gaps, found.axes, found.labels)
    assert seen.mean[1, 2] == pytest.approx(draws[100:, 1, 2].mean())
    assert seen.sd[1, 2] == pytest.approx(draws[100:, 1, 2].std())
    assert seen.p_above()[1, 2] == pytest.approx((draws[100:, 1, 2] > 0.0).mean())
    assert seen.upper[1, 2] == pytest.approx(np.quantile(draws[100:, 1, 2], 0.95))
    assert seen.mean[0, 0] == pytest.approx(draws[:, 0, 0].mean())


def test_entries_by_label(found, draws):
    one = found.at(year=2000, state="TX", k=1)
    assert one.axes == ()
    assert one.labels == {}
    np.testing.assert_array_equal(one.draws, draws[:, 2, 1])
    year = found.at(year=1999.0)
    assert year.axes == ("row", "k")
    assert year.labels == {"row": {"state": ["TX", "CA"]}}
    np.testing.assert_array_equal(year.draws, draws[:, :2])


def test_differences_are_draw_by_draw_and_antisymmetric(found, draws):
    gap = found.difference("year", 2000, 1999)
    np.testing.assert_array_equal(gap.draws, draws[:, 2:] - draws[:, :2])
    np.testing.assert_array_equal(gap.draws, -found.difference("year", 1999, 2000).draws)
    assert gap.labels == {"row": {"state": ["TX", "CA"]}}
    assert "year 2000 less year 1999" in gap.caption


@pytest.mark.parametrize(
    ("labels", "label", "places"),
    [
        ([1, 2], 1.0, [0]),
        ([1, 2], "2", [1]),
        (["a", "b", "a"], "a", [0, 2]),
        ([2**63, 2**63 + 1], 2**63 + 1, [1]),
        ([0.1 + 0.2, 0.3], 0.3, [1]),
        (np.array(["2020-01-01"], "datetime64[D]"), np.datetime64("2020-01-01"), [0]),
    ],
)
def test_labels_are_values(labels, label, places):
    draws = np.arange(2.0 * len(labels)).reshape(2, len(labels))
    found = Estimand(draws, ("x",), {"x": labels}).at(x=label)
    np.testing.assert_array_equal(found.draws.reshape(2, -1), draws[:, places])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda e: e.at(year=1998), "column 'year' must be one of 1999, 2000, got '1998'"),
        (lambda e: e.at(state="TZ"), "column 'state' must be one of TX, CA, got 'TZ'"),
        (lambda e: e.at(place="TX"), "column must be one of year, state, k, got 'place'"),
        (lambda e: e.interval(1.5), "probability must be between 0 and 1"),
        (lambda e: Estimand(e.draws, ("row",), {}), r"draws must have the axes \(draw, row\)"),
        (
            lambda e: Estimand(e.draws, e.axes, {"k": ["a"]}),
            "labels of 'k' must be 3 to go with draws, got 1",
        ),
        (
            lambda e: Estimand(
                e.draws, e.axes, {"row": {"y": [1, 1, 2, 2], "s": ["a", "b", "a", "c"]}}
            ).difference("y", 1, 2),
            "must have the same labels",
        ),
    ],
)
def test_refusals(found, wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong(found)


def test_one_table_for_all_forms(found, draws):
    columns = found.table().columns
    assert list(columns) == ["year", "state", "k", "mean", "sd", "lower", "upper"]
    assert list(columns["state"]) == ["TX"] * 3 + ["CA"] * 3 + ["TX"] * 3 + ["CA"] * 3
    assert list(columns["k"]) == [0, 1, 2] * 4
    np.testing.assert_array_equal(columns["mean"], draws.mean(axis=0).ravel())
    assert "80 % interval" in str(found)
    assert found._repr_html_().count("<tr>") == 13
    assert list(found.to_dataframe()["upper"]) == list(columns["upper"])


class TestFigures:
    x = np.array([2002.0, 2000.0, 2001.0])

    @pytest.fixture
    def series(self, rng):
        labels = {"year": self.x, "name": ["Ada", "Ben", "Cy"]}
        return Estimand(rng.dirichlet([5, 3, 2], size=(200, 3)), ("year", "name"), labels)

    def test_lines_have_means_bands_and_what_was_observed(self, series):
        shares = np.array([[0.5, 0.5, 0.0], [np.nan] * 3])
        drawn = series.figure(only=["Cy", "Ada"], observed=([2000, 2001], shares))
        assert [(line.name, line.colour) for line in drawn.lines] == [("Cy", 2), ("Ada", 0)]
        order = np.argsort(self.x)
        line = drawn.lines[1]
        np.testing.assert_array_equal(line.x, self.x[order])
        np.testing.assert_array_equal(line.mean, series.mean[order, 0])
        np.testing.assert_array_equal(line.bands[0], series.interval()[:, order, 0])
        np.testing.assert_array_equal(line.points, [[2000], [0.5]])
        assert drawn.gaps == [(2000.5, 2001.5)]
        assert [line.name for line in series.figure().lines] == ["Ada", "Ben", "Cy"]

    def test_dates_and_one_axis(self, series):
        dates = np.arange("2024-02", "2024-05", dtype="datetime64[M]")
        one = Estimand(series.draws, series.axes, {**series.labels, "year": dates}).at(name="Ben")
        drawn = one.figure()
        assert len(drawn.lines) == 1
        assert any("2024" in text for _, text in drawn.ticks)
        axes = pytest.importorskip("matplotlib") and one.plot()
        axes.figure.canvas.draw()

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda s: s.figure("place"), "column must be one of year, name, got 'place'"),
            (
                lambda s: s.figure(only=["Zoe"]),
                "column 'name' must be one of Ada, Ben, Cy, got 'Zoe'",
            ),
            (
                lambda s: Estimand(s.draws, s.axes, {"year": [1, 1, 2]}).figure(),
                "one entry at each year",
            ),
        ],
    )
    def test_refusals(self, series, call, message):
        with pytest.raises(ValueError, match=message):
            call(series)


def test_prints_its_table_and_fixed_entries_like_the_others(rng):
    draws = np.stack([np.full(200, 1.0) + 1e-17, rng.normal(size=200)], axis=1)
    correlations = Estimand(draws, ("with",), {"with": ["itself", "other"]})
    lines = repr(correlations).splitlines()
    assert lines[-2].split() == ["itself", "1.000", "0.000", "fixed"]
    assert lines[-1].startswith("other")

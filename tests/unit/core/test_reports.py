"""Reports say the same as text, as a page and as JSON; drawings hold what they are given."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from pgmult.core.checks import PredictiveChecks
from pgmult.core.figures.lines import Line, Lines, date_ticks
from pgmult.core.figures.tiles import US_TILES, Tiles
from pgmult.core.markup import Leading
from pgmult.core.reports import Interval, Report, Section
from pgmult.core.tabled import Column, Table
from pgmult.core.tables import as_years

VOID = {"meta", "rect", "path", "circle"}


class Balanced(HTMLParser):
    """Fails on tags that are not closed in order; collects text."""

    def __init__(self):
        super().__init__()
        self.open, self.text, self.labels = [], [], []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        self.labels += [value for name, value in attrs if name == "aria-label"]

    def handle_startendtag(self, tag, attrs):
        self.labels += [value for name, value in attrs if name == "aria-label"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def parsed(page):
    reader = Balanced()
    reader.feed(page)
    assert reader.open == []
    return reader


@pytest.fixture
def report():
    rows = [
        ("<Ada>", Interval(0.31, 0.24, 0.37), 3),
        ("Ben", Interval(0.1, 0.0, 0.2), float("nan")),
    ]
    return Report(
        "Names & more", ["Ada leads.", "The chains agree."],
        [Section("Shares", "Of all.", head=("name", "share", "n"), rows=rows, shown=1)],
        {"run": "2 x 10 draws"},
    )  # fmt: skip


def test_text_shows_first_rows_and_says_how_many_more(report):
    text = report.text(60)
    assert text.startswith("Names & more\n------------\n* Ada leads.\n")
    assert "<Ada>  0.31 [0.24, 0.37]  3" in text
    assert "(1 more row on the page)" in text
    assert "Ben" not in text


def test_page_is_whole_and_escaped(report):
    page = report.html()
    reader = parsed(page)
    assert "<Ada>" in reader.text
    assert "table: Shares" in reader.labels
    assert 'lang="en"' in page
    assert "prefers-color-scheme: dark" in page
    assert "<script" not in page
    assert page.count("<h1>") == 1


def test_json_has_numbers(report):
    told = json.loads(report.json())
    first, second = told["sections"]["Shares"]["rows"]
    assert first == {"name": "<Ada>", "share": {"mean": 0.31, "lower": 0.24, "upper": 0.37}, "n": 3}
    assert second["n"] is None


def test_lines_break_at_gaps_and_keep_their_colour():
    x = np.arange(5.0)
    mean = np.array([0.1, 0.2, np.nan, 0.4, 0.5])
    line = Line("Ada", 2, x, mean, [(mean - 0.05, mean + 0.05)], (x[:2], mean[:2]), mean, x[:1])
    figure = Lines(
        [line], label="shares", x_label="year", band="90 % interval", gaps=[(1.5, 2.5)], divider=3.5
    )
    page = figure.svg()
    reader = parsed(page)
    svg = page[: page.index("</svg>")]
    assert svg.count('class="mean"') == 2
    assert svg.count('class="band"') == 2
    assert svg.count('class="gap"') == 1
    assert '<g class="c2">' in svg
    legend = "".join(reader.text)
    for word in ("Ada", "90 % interval", "no data", "the truth", "seen here", "the last that was"):
        assert word in legend
    ticks = [word for word in reader.text if word.isdigit() and len(word) == 1]
    assert {"0", "1", "2", "3", "4"} <= set(ticks), "whole numbers on the axis"


def test_dates_stand_at_round_places_of_the_axis():
    def shown(first, last):
        ends = as_years(np.array([first, last], dtype="datetime64[s]"))
        ticks = date_ticks(*ends)
        places = [place for place, _ in ticks]
        assert places == sorted(places)
        assert ends[0] <= places[0]
        assert places[-1] <= ends[1]
        return [text for _, text in ticks]

    assert shown("1985-07-01", "2010-07-01") == ["1990", "1995", "2000", "2005", "2010"]
    assert shown("2019-02-11", "2019-05-20") == ["2019-03", "2019-04", "2019-05"]
    assert shown("2019-02-26", "2019-03-03") == [f"2019-{d}" for d in (
        "02-26", "02-27", "02-28", "03-01", "03-02", "03-03")]  # fmt: skip
    assert shown("2019-12-31T20:00", "2020-01-01T03:00")[:2] == [
        "2019-12-31 21:00", "2020-01-01 00:00"
    ]  # fmt: skip
    assert len(shown("2018-01-01", "2020-01-01")) in (4, 5)
    line = Line("Ada", 0, np.array([2019.2, 2019.4]), np.array([0.1, 0.2]))
    page = Lines([line], "", "", ticks=date_ticks(2019.2, 2019.4)).svg()
    assert [word for word in parsed(page).text if word.startswith("2019-0")]
    assert not [word for word in parsed(page).text if word.startswith("2019.")]


@pytest.mark.parametrize(("width", "shown"), [(480.0, 5), (240.0, 3)])
def test_dates_that_have_no_room_on_a_small_figure_are_left_out(width, shown):
    line = Line("", 0, np.array([2008.0, 2010.4]), np.array([0.1, 0.2]))
    ticks = date_ticks(2008.0, 2010.4)
    page = Lines([line], "", "", ticks=ticks, size=(width, 150.0)).svg()
    assert sum(word.startswith("20") for word in parsed(page).text) == shown
    assert len(ticks) == 5


def test_large_numbers_beside_an_axis_are_written_out_and_have_room():
    line = Line("", 0, np.array([0.0, 9.0]), np.array([-104_900.0, -104_700.0]))
    page = Lines([line], "", "", from_zero=False).svg()
    (mark, *_) = (word for word in parsed(page).text if word.startswith("-104,"))
    ends = [float(x) for x in re.findall(r'class="end" x="([\d.]+)"', page)]
    assert min(ends) > 6.0 * len(mark), "else its first digits are cut"


def test_gaps_end_with_the_axis():
    line = Line("Ada", 0, np.array([1.0, 2.0]), np.array([0.1, 0.2]))
    page = Lines([line], "", "", gaps=[(0.5, 1.5)]).svg()
    left = float(page.split('class="gap" x="')[1].split('"')[0])
    assert left == pytest.approx(48.0), "where the axis begins"


def test_one_point_and_one_value_can_be_drawn():
    one = np.array([2000.0])
    for from_zero in (True, False):
        line = Line("a", 0, one, np.array([0.0]))
        parsed(Lines([line], "one", "year", from_zero=from_zero).svg())


def test_map_says_mean_and_half_the_interval():
    reader = parsed(Tiles({"NY": (0.25, 0.2, 0.3), "TX": (0.5, 0.4, 0.6)}, "map").svg())
    assert ".25" in reader.text
    assert "±.050" in reader.text
    assert len(US_TILES) == 51


def test_a_section_takes_a_table_and_figures():
    table = Table("Of all.", [Column("n", [1.5, np.nan], "count", lambda x: f"{x:.1f}")])
    line = Lines([Line("<Ada>", 0, np.arange(2.0), np.arange(2.0))], "l", "x")
    report = Report("R", [], [Section("T", table=table, figures=[line, line]), Section("Empty")])
    reader = parsed(report.html())
    assert {"Of all.", "count", "1.5", "<Ada>"} <= set(reader.text)
    assert "Empty" not in reader.text
    assert "Of all.\n\ncount\n1.5" in str(report)
    assert repr(report) == report.text()
    rows = json.loads(report.json())["sections"]["T"]["rows"]
    assert rows == [{"n": 1.5}, {"n": None}]
    parsed(report._repr_html_())


def test_both_renderers_draw_the_same():
    x = np.arange(4.0)
    line = Line("Ada", 9, x, x / 4, [(x / 5, x / 3)], (x, x / 4), x / 4, x[:2])
    figure = Lines([line], "l", "year", gaps=[(0.5, 1.5)], divider=2.5, caption="Shares")
    axes = figure.plot()
    mean, truth, points, rug, _ = axes.lines
    for drawn in (mean, truth, points):
        np.testing.assert_array_equal(drawn.get_ydata(), x / 4)
    assert rug.get_xdata().tolist() == [0.0, 1.0]
    assert axes.get_legend_handles_labels()[1] == ["no data", "Ada"]
    assert figure.plot(axes) is axes
    assert "Shares" in figure._repr_html_()
    with pytest.raises(ValueError, match="postal codes of states, got ny"):
        Tiles({"ny": (0.25, 0.2, 0.3)}, "map")


def test_checks_advise_on_what_is_odd():
    rng = np.random.default_rng(0)
    made = [{"spread": x, "zeros": y} for x, y in rng.normal(size=(400, 2))]
    advice = {"spread": ("too much", "too little"), "zeros": ("more zeros", "fewer zeros")}
    usual, strange = {"spread": 0.0, "zeros": 0.0}, {"spread": 9.0, "zeros": -9.0}
    found = PredictiveChecks.of(((usual, each) for each in made), advice)
    assert "agree with the data in" in found.verdict
    odd = PredictiveChecks.of(((strange, each) for each in made), advice)
    assert odd.verdict == "too much fewer zeros"
    assert odd.p_values.tolist() == [0.0, 1.0]
    assert odd.to_dataframe()["p"].tolist() == [0.0, 1.0]
    assert "spread" in str(odd)
    parsed(odd._repr_html_())


def test_numbers_of_the_verdict_lead_to_their_section_and_long_pages_have_contents():
    told = Leading("At s30, 1,204 of them (1 | x): +0.046 ± 0.006, 20 [17, 23], 5 %.", "Shares")
    few = Report("Few", [told], [Section("Shares", sentences=["all"])]).html()
    assert '<a href="#shares">1,204</a> of them (1 | x): ' in few
    assert '<a href="#shares">+0.046 ± 0.006</a>, <a href="#shares">20 [17, 23]</a>' in few
    assert '<a href="#shares">5 %</a>.' in few
    assert '<h2 id="shares">Shares</h2>' in few
    assert "<nav" not in few
    many = [Section(f"Part {i}", sentences=["all"]) for i in range(6)]
    page = Report("Many", [told], many).html()
    assert '<nav aria-label="On this page">' in page
    assert '<a href="#part-3">Part 3</a>' in page
    assert "1,204 of them" in page, "it leads nowhere where there is no such section"
    assert Report("Many", [told], many).text().startswith("Many\n----\n* At s30, 1,204 of them")

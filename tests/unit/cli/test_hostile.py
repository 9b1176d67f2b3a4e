"""Text of the user stays text, in every page, notebook view, table and line on the terminal.

Every source of text holds a tag that would run code, a quote that would end an attribute, and a
code that terminals obey: names of files, columns, categories, places, symbols, sequences, titles.
"""

import csv
import html.parser

import numpy as np
import pytest

import pgmult
from pgmult.cli import commands as cli

FEW = ["--draws", "6", "--tune", "3", "--chains", "2", "--quiet"]


def hostile(what):
    return f"{what}\"'><img src=x onerror=alert(1)>&amp;"


class Page(html.parser.HTMLParser):
    """Tags, attributes and text of a page; fails on what is not well nested."""

    VOID = frozenset({"meta", "input", "br"})

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.names, self.text = [], set(), set(), []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.names |= {name for name, _ in attrs}
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.add(tag)
        self.names |= {name for name, _ in attrs}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def check(page, *sources):
    """Nothing of the text became a tag or an attribute, and the sources are all to be read."""
    found = Page(page)
    assert "img" not in found.tags
    assert not {name for name in found.names if name.startswith("on")}
    text = " ".join(found.text)
    for what in sources:
        assert hostile(what) in text, what


def write(folder, table):
    path = folder / f"{hostile('file')}.csv".replace("/", "")
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))
    return path


def fields_job(folder):
    category, places = hostile("category"), [hostile("here"), hostile("there")]
    where = folder / "places.csv"
    with where.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["place", "x"], *([p, i] for i, p in enumerate(places))])
    rng = np.random.default_rng(0)
    table = {
        hostile("year"): np.repeat(np.arange(6), 4),
        hostile("place"): np.tile(np.repeat(places, 2), 6),
        "name": np.tile([category, "other"], 12),
        "n": rng.integers(1, 9, 24),
    }
    path = write(folder, table)
    arguments = [
        "fields", "fit", path, "--inputs", hostile("year"), hostile("place"), "--category", "name",
        "--count", "n", "--places", where, "--hold-out", "0.2", "--title", hostile("title"),
    ]  # fmt: skip
    return arguments, ("title", "file", "category", "here", "year"), ("category", "here")


def sequences_job(folder):
    rng = np.random.default_rng(0)
    table = {
        "who": np.repeat([hostile("sequence"), "b"], 12),
        "state": rng.choice([hostile("symbol"), "z"], 24),
    }
    arguments = [
        "sequences", "fit", write(folder, table), "--symbol", "state", "--sequence", "who",
        "--state-dim", "1", "--hold-out", "3", "--title", hostile("title"),
    ]  # fmt: skip
    return arguments, ("title", "file", "sequence", "symbol"), ("sequence", "symbol")


def topics_job(folder):
    table = {
        "text": ["ship sail sea wave", "barn field wheat plough"] * 8,
        "party": [hostile("group"), "B"] * 8,
        "id": [hostile(f"name{i}") for i in range(16)],
    }
    arguments = [
        "topics", "fit", write(folder, table), "--column", "text", "--names", "id", "--topics", "2",
        "--prevalence", "~ party", "--content", "~ party", "--title", hostile("title"),
    ]  # fmt: skip
    return arguments, ("title", "file", "group"), ()


JOBS = {"fields": fields_job, "sequences": sequences_job, "topics": topics_job}


@pytest.fixture(params=JOBS, scope="module")
def job(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    arguments, sources, shown = JOBS[request.param](folder)
    run = folder / "run"
    assert cli.main([str(a) for a in (*arguments, "--out", run, *FEW)]) == 0
    return request.param, run, sources, shown


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_pages_and_notebook_views(job, capsys):
    family, path, sources, shown = job
    capsys.readouterr()
    check((path / "report.html").read_text(encoding="utf-8"), *sources)
    run = pgmult.load(path)
    answers = [run, run.summary(max_entries=20), run.report(title=hostile("title")), run.check()]
    if family == "topics":
        answers += [run.effects("party"), run.content(), run.stability(), run.quotes()]
    else:
        answers.append(run.predict())
        check(run.predict()._repr_html_(), *shown)
    if family == "sequences":
        answers.append(run.forecast(2))
    for answer in answers:
        check(answer._repr_html_())
    check(run.report(title=hostile("title")).html(), "title")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07bell", "bell"),
        ("a\rb\x08c", "abc"),
        ("plain é 漢", "plain é 漢"),
    ],
)
def test_no_codes_reach_the_terminal(capsys, tmp_path, text, said):
    assert cli.main(["topics", "show", str(tmp_path / text)]) == 2
    told = capsys.readouterr().err
    assert told.isprintable() or told.rstrip("\n").isprintable()
    assert said in told


@pytest.mark.slow
def test_exports_hold_nothing_that_a_spreadsheet_evaluates(job, capsys, tmp_path):
    family, path, *_ = job
    if family == "topics":
        pytest.skip("its files are tested where they are written")
    capsys.readouterr()
    assert cli.main([family, "export", str(path), "--out", str(tmp_path / "out.csv")]) == 0
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert len(cells) > 20
    assert not [c for c in cells if c[:1] in "=+@\t\r" and c]

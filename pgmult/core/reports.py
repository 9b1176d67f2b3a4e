"""Reports: what was found in sentences, then tables and figures; for a terminal, a page, a machine.

A family makes a `Report` of `Section`. A page is one file that needs no network, reads on a
telephone, follows the reader's choice of a light or a dark screen, and works without a script.

>>> found = Section("Shares", head=("name", "share"), rows=[("Ada", Interval(0.31, 0.24, 0.37))])
>>> print(Report("Names", ["Ada leads."], [found]))
Names
-----
* Ada leads.
<BLANKLINE>
Shares
------
name  share
Ada   0.31 [0.24, 0.37]
<BLANKLINE>
"""

import json
import math
import os
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, NamedTuple

from pgmult.core._version import __version__
from pgmult.core.arguments import as_path
from pgmult.core.figures.base import STYLE, Figure, panels
from pgmult.core.markup import Leading, Markup, joined, style_sheet, tag
from pgmult.core.tabled import Table, aligned, unsigned, wrapped

_DOUBT = "Do not rely on this"  # how `pgmult.sampling.convergence.chains_in_words` warns
_LONG = 6  # sections of a page that has a table of contents
_NUMBER = re.compile(
    r"(?<![\w.\"])[+-]?\d+(?:,\d{3})*(?:\.\d+)?(?![\w|]| \|)"
    r"(?: ± \d[\d.]*\d)?(?: %)?(?: \[[^\]]*\])?"
)
_MANY_COLUMNS = 6  # from which on intervals stand below means
_MOST_ROWS = 20  # of a table on a page, unless there are less than twice as many

PAGE_STYLE = style_sheet(__file__, "page.css")


class Interval(NamedTuple):
    """A mean with the ends of an interval, printed with `form`."""

    mean: float
    lower: float
    upper: float
    form: str = ".2f"

    def __str__(self) -> str:
        mean, lower, upper = (unsigned(f"{x:{self.form}}") for x in self[:3])
        return f"{mean} [{lower}, {upper}]"


_VIEWPORT = "width=device-width, initial-scale=1"
_FOOTER = tag("footer", f"pgmult {__version__}")

Cell = str | int | float | Interval


@dataclass(frozen=True, slots=True)
class Section:
    """A result: sentences, a table, figures, or several of these.

    Attributes
    ----------
    title : str
    note : str
        How to read it.
    sentences : sequence of str
    head : sequence of str
        Of the columns of the table.
    rows : sequences of cells
        Numbers are printed with four digits.
    table : Table, optional
        Instead of a head and rows; its caption stands below the note.
    figures : sequence of Figure or Markup
        For the page alone, beside each other where there is room.
    is_drawn : bool
        Whether the figures say all that the table says, so that the page needs none.
    shown : int or None
        How many rows a terminal shows; None for all, 0 for a section of the page alone.
    lines : callable, optional
        What a terminal shows instead of the table, in lines of a width.
    key : str
        Identifier of the section's heading on the page, to point to it; by default of its title.
    """

    title: str
    note: str = ""
    sentences: Sequence[str] = ()
    head: Sequence[str] = ()
    rows: Sequence[Sequence[Cell]] = ()
    table: Table | None = None
    figures: Sequence[Figure | Markup] = ()
    is_drawn: bool = False
    shown: int | None = None
    lines: Callable[[int], str] | None = None
    key: str = ""

    @property
    def place(self) -> str:
        """The identifier of its heading: the key, or one made of the title."""
        return self.key or "-".join(re.findall(r"\w+", self.title.lower()))

    def __bool__(self) -> bool:
        """Is there anything to report?"""
        return bool(self.sentences or self.cells or self.figures or self.lines)

    @property
    def cells(self) -> Sequence[Sequence[Cell]]:
        """The rows of the table."""
        return self.rows if self.table is None else self.table.rows

    def text(self, width: int) -> str:
        """The section in lines of at most about `width` characters; tables may be wider."""
        lines = wrapped(self.note, width)
        if self.sentences:
            lines.append(_paragraphs(self.sentences, width))
        if self.lines is not None:
            lines.append(self.lines(width))
        elif self.table is not None and self.shown is None:
            lines.append(self.table.text(width))
        else:
            head = self.head if self.table is None else self.table.head
            rows = [list(map(_cell_text, row)) for row in self.cells[: self.shown]]
            lines += aligned([head, *rows] if head and rows else rows)
            if more := len(self.cells) - len(rows):
                lines.append(f"({more:,} more row{'s' * (more > 1)} on the page)")
        return _headed(self.title, lines)

    def html(self) -> Markup:
        """The section on a page."""
        notes = [self.note, "" if self.table is None else self.table.caption]
        return joined(
            tag("h2", self.title, id=self.place),
            (tag("p", note, class_="note") for note in notes if note),
            _bullets(self.sentences) if self.sentences else None,
            panels(self.figures),
            self._table_html() if self.cells and not self.is_drawn else None,
        )

    def _table_html(self) -> Markup:
        """The table; what is beyond its first rows is unfolded by a click."""
        if self.table is not None:
            return self._wide(self.table.html(), "table")
        heads = [tag("th", name, scope="col") for name in self.head]
        many = "many" if len(self.head) > _MANY_COLUMNS else None
        rows = [tag("tr", (_cell(cell, many) for cell in row)) for row in self.rows]
        head = tag("thead", tag("tr", heads)) if heads else None
        first = len(rows) if len(rows) < 2 * _MOST_ROWS else _MOST_ROWS
        bodies = [rows[:first], rows[first:]]
        tables = [tag("table", head, tag("tbody", body), class_=many) for body in bodies if body]
        table = self._wide(tables[0], "table")
        if len(tables) == 1:
            return table
        summary = tag("summary", f"{len(rows) - first:,} more rows")
        return joined(table, tag("details", summary, self._wide(tables[1], "more of the table")))

    def _wide(self, table: Markup, what: str) -> Markup:
        """Scrolled sideways where the page is narrow."""
        about = {"tabindex": 0, "role": "region", "aria_label": f"{what}: {self.title}"}
        return tag("div", table, class_="wide", **about)

    def numbers(self) -> dict[str, Any]:
        """The section for machines."""
        names, rows = self.head, self.rows
        if self.table is not None:
            names, rows = [*self.table.columns], [*zip(*self.table.columns.values(), strict=True)]
        records = [dict(zip(names, map(_plain, r), strict=True)) if names else [*r] for r in rows]
        return {"sentences": list(self.sentences), "rows": records}


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """What is known of a run.

    Attributes
    ----------
    title : str
    verdict : sequence of str
        What was found and how sure one can be, before anything else.
    sections : sequence of Section
        Empty ones are left out.
    facts : mapping from str to str
        The data, the model, the run.
    style : Markup, optional
        For the page, beyond what all pages have.
    notice : str
        What to know of the page itself, above everything: that it is provisional.
    """

    title: str
    verdict: Sequence[str]
    sections: Sequence[Section] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    style: Markup | None = None
    notice: str = ""

    def __post_init__(self) -> None:
        """What casts doubt on everything else is said before it."""
        ordered = sorted(self.verdict, key=lambda sentence: not sentence.startswith(_DOUBT))
        object.__setattr__(self, "verdict", ordered)

    def text(self, width: int = 100) -> str:
        """The report in lines of at most about `width` characters; tables may be wider."""
        blocks = [_headed(self.title, [_paragraphs(self.verdict, width)])]
        blocks += [s.text(width) for s in self.sections if s and s.shown != 0]
        if self.facts:
            left = max(map(len, self.facts))
            indent, facts = " " * (left + 2), self.facts.items()
            texts = (f"{name:<{left}}  {fact}" for name, fact in facts)
            lines = [textwrap.fill(text, width, subsequent_indent=indent) for text in texts]
            blocks.append(_headed("The run", lines))
        return "\n\n".join(blocks) + "\n"

    def html(self) -> Markup:
        """The report as one HTML page."""
        shown = [section for section in self.sections if section]
        if self.facts:
            shown.append(Section("The run", rows=list(self.facts.items())))
        sections = [section.html() for section in shown]
        places = {section.title: section.place for section in shown}
        targets = places | {section.key: section.key for section in shown if section.key}
        verdict = tag("div", tag("ul", [_bullet(s, targets) for s in self.verdict]), id="verdict")
        links = (tag("li", tag("a", title, href=f"#{place}")) for title, place in places.items())
        contents = None
        if len(shown) >= _LONG:
            contents = tag("nav", tag("ul", links), aria_label="On this page")
        notice = tag("p", self.notice, class_="notice", role="status") if self.notice else None
        style = joined(STYLE, self.style)
        return page(self.title, notice, verdict, contents, sections, style=style)

    def json(self) -> str:
        """The report for machines: verdict, the tables with whole numbers, facts."""
        content = {
            "title": self.title,
            "verdict": list(self.verdict),
            "sections": {s.title: s.numbers() for s in self.sections if s.cells or s.sentences},
            "facts": dict(self.facts),
        }
        return json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False)

    def save(self, path: str | os.PathLike[str] | None) -> "Report":
        """The report itself, written as an HTML page where a path is given."""
        if path is not None:
            as_path(path).write_text(self.html(), encoding="utf-8")
        return self

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        parts = [section.html() for section in self.sections if section]
        return joined(tag("style", STYLE, self.style), _bullets(self.verdict), parts)


def run_in_words(run: Any, waited: float | None = None) -> str:
    """State how a posterior was sampled: chains, draws, tuning, seconds, seed.

    The seconds are those that the user `waited`, if that is known, or those of the slowest chain.
    """
    attrs = run.attrs
    is_cut = "ended" not in attrs and run.num_draws < attrs.get("draws", 0)
    words = f"{run.num_chains} x {run.num_draws} draws"
    words += f" (of {attrs['draws']} planned)" if is_cut else ""
    words += f" after {attrs['tune']} sweeps of tuning" if "tune" in attrs else ""
    if waited is not None:
        words += f", {waited:.0f} s"
    elif "seconds" in attrs:
        words += f", {max(attrs['seconds']):.0f} s of sampling"
    words += f", seed {attrs['random_seed']}" if "random_seed" in attrs else ""
    return words + (f"; ended {attrs['ended']}" if "ended" in attrs else "")


def page(title: str, *body: object, style: Markup | None = None) -> Markup:
    """A whole HTML page with its heading, looks and footer."""
    metas = [{"charset": "utf-8"}, {"name": "viewport", "content": _VIEWPORT}]
    head = [*(tag("meta", **meta) for meta in metas), tag("title", title)]
    main = tag("main", tag("h1", title), *body)
    document = [tag("head", head, tag("style", PAGE_STYLE, style)), tag("body", main, _FOOTER)]
    return joined(Markup("<!DOCTYPE html>\n"), tag("html", document, lang="en"), Markup("\n"))


def _headed(title: str, lines: Sequence[str]) -> str:
    return "\n".join([title, "-" * len(title), *lines])


def _paragraphs(sentences: Sequence[str], width: int) -> str:
    return "\n".join(map(textwrap.TextWrapper(width, "* ", "  ").fill, sentences))


def _cell(cell: Cell, many: str | None = None) -> Markup:
    """A cell; an interval stands below its mean where there are many columns."""
    text = _cell_text(cell).replace(", ", ",\u00a0") if many else _cell_text(cell)
    return tag("td", text, class_=None if isinstance(cell, str) else "number")


def _cell_text(cell: Cell) -> str:
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)


def _plain(cell: object) -> Any:
    """A cell as JSON has it: no nan."""
    if isinstance(cell, Interval):
        return {name: _plain(float(getattr(cell, name))) for name in ("mean", "lower", "upper")}
    cell = cell.item() if hasattr(cell, "item") else cell
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell


def _bullet(sentence: str, places: Mapping[str, str]) -> Markup:
    """A sentence of a verdict, its numbers as links where it leads to a section that is there."""
    place = places.get(sentence.to) if isinstance(sentence, Leading) else None
    if place is None:
        return tag("li", sentence)
    links = (tag("a", match[0], href=f"#{place}") for match in _NUMBER.finditer(sentence))
    return tag("li", zip_longest(map(str, _NUMBER.split(sentence)), links))


def _bullets(sentences: Sequence[str]) -> Markup:
    return tag("ul", (tag("li", sentence) for sentence in sentences))

"""Reports: what was found in sentences, then tables and figures; for a terminal, a page, a machine.

A family says what there is to tell (`Report`, made of `Section`); `as_text`, `as_html` and
`as_json` show it. A page is one file that needs no network, reads on a telephone, follows the
reader's choice of a light or a dark screen, and is whole without a script.

>>> found = Section("Shares", head=("name", "share"), rows=[("Ada", Interval(0.31, 0.24, 0.37))])
>>> print(as_text(Report("Names", ["Ada leads."], [found])))
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

import html
import json
import math
import os
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pgmult.core._version import __version__
from pgmult.core.arguments import as_path
from pgmult.core.checks import PredictiveChecks
from pgmult.core.drawings import DRAWING_STYLE

__all__ = [
    "PAGE_STYLE",
    "Interval",
    "Report",
    "Section",
    "as_html",
    "as_json",
    "as_text",
    "check_section",
    "page",
]

PAGE_STYLE = """
:root { color-scheme: light dark; --ink: #1c1c1c; --soft: #595959; --line: #bbb; --paper: #fff;
  --accent: #2a6f97; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e6; --soft: #a8a8a8; --line: #555;
  --paper: #16181b; --accent: #6cb4dd; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  margin: 2.5em auto; max-width: 62em; padding: 0 1.2em; }
h1 { font-size: 1.7em; margin: 0 0 .6em; line-height: 1.2; }
h2 { font-size: 1.15em; margin: 2.2em 0 .5em; }
p.note, figcaption { color: var(--soft); margin: .2em 0 .8em; font-size: .9em; max-width: 56em; }
#verdict { border-left: 4px solid var(--accent); padding: .1em 0 .1em .4em; font-size: 1.08em; }
#verdict ul { margin: .3em 0; padding-left: 1.4em; max-width: 52em; }
table { border-collapse: collapse; font-size: .95em; }
td, th { padding: .22em 1em .22em 0; text-align: left; vertical-align: top; font-weight: normal; }
th { color: var(--soft); } thead th { border-bottom: 1px solid var(--line); }
td.number { white-space: nowrap; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; } figure { margin: 1em 0; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 1px; }
footer { margin-top: 3em; color: var(--soft); font-size: .85em; }
@media (max-width: 44em) { body { margin: 1em auto; padding: 0 .8em; } h1 { font-size: 1.35em; } }
"""


class Interval(NamedTuple):
    """A mean with the ends of an interval, printed with `form`."""

    mean: float
    lower: float
    upper: float
    form: str = ".2f"

    def __str__(self) -> str:
        mean, lower, upper = (f"{x:{self.form}}" for x in self[:3])
        return f"{mean} [{lower}, {upper}]"


Cell = str | int | float | Interval


@dataclass(frozen=True, slots=True)
class Section:
    """One thing told: sentences, a table, a figure, or several of these.

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
    figure : str
        HTML, for the page alone.
    shown : int or None
        How many rows a terminal shows; None for all, 0 for a section of the page alone.
    """

    title: str
    note: str = ""
    sentences: Sequence[str] = ()
    head: Sequence[str] = ()
    rows: Sequence[Sequence[Cell]] = ()
    figure: str = ""
    shown: int | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """What is known of a run.

    Attributes
    ----------
    title : str
    verdict : sequence of str
        What was found and how sure one can be, before anything else.
    sections : sequence of Section
    facts : mapping from str to str
        The data, the model, the run.
    """

    title: str
    verdict: Sequence[str]
    sections: Sequence[Section] = ()
    facts: Mapping[str, str] = field(default_factory=dict)

    def save(self, page: str | os.PathLike[str] | None) -> "Report":
        """The report itself, written as an HTML page where a path is given."""
        if page is not None:
            as_path(page, "page").write_text(as_html(self), encoding="utf-8")
        return self

    def __str__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        sections = "".join(_section_html(s) for s in self.sections)
        return f"<style>{DRAWING_STYLE}</style>{_bullets(self.verdict)}{sections}"


def as_text(report: Report, *, width: int = 100) -> str:
    """The report in lines of at most about `width` characters; tables may be wider."""
    blocks = [_headed(report.title, [_paragraphs(report.verdict, width)])]
    blocks += [_section_text(s, width) for s in report.sections if s.shown != 0]
    if report.facts:
        left = max(map(len, report.facts))
        lines = [
            textwrap.fill(f"{name:<{left}}  {fact}", width, subsequent_indent=" " * (left + 2))
            for name, fact in report.facts.items()
        ]
        blocks.append(_headed("The run", lines))
    return "\n\n".join(blocks) + "\n"


def as_html(report: Report) -> str:
    """The report as one HTML page."""
    body = [f'<div id="verdict">{_bullets(report.verdict)}</div>']
    body += [_section_html(section) for section in report.sections]
    if report.facts:
        body.append(_section_html(Section("The run", rows=list(report.facts.items()))))
    return page(report.title, "\n".join(body), DRAWING_STYLE)


def as_json(report: Report) -> str:
    """The report for machines: verdict, the tables with whole numbers, facts."""
    sections = {
        s.title: {
            "sentences": list(s.sentences),
            "rows": [
                dict(zip(s.head, map(_plain, row), strict=True)) if s.head else list(row)
                for row in s.rows
            ],
        }
        for s in report.sections
        if s.rows or s.sentences
    }
    told = {
        "title": report.title,
        "verdict": list(report.verdict),
        "sections": sections,
        "facts": dict(report.facts),
    }
    return json.dumps(told, ensure_ascii=False, indent=1, allow_nan=False)


def check_section(found: PredictiveChecks) -> Section:
    """A posterior-predictive check as a section."""
    columns = found.columns()
    return Section(
        "Does the model make such data?",
        "Statistics of the data and of data simulated from the posterior [90 % interval]; p: how"
        " often those are as large or larger. Near 0 or 1 the model lacks something.",
        sentences=[found.verdict],
        head=tuple(columns),
        rows=list(zip(*columns.values(), strict=True)),
    )


def page(title: str, body: str, style: str = "", script: str = "") -> str:
    """A whole HTML page with its heading, looks and footer; `script` may hold several elements."""
    title = html.escape(title)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{PAGE_STYLE}{style}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{title}</h1>\n{body}\n</main>\n<footer>pgmult {__version__}</footer>\n"
        f"{script}</body>\n</html>\n"
    )


def _headed(title: str, lines: Sequence[str]) -> str:
    return "\n".join([title, "-" * len(title), *lines])


def _paragraphs(sentences: Sequence[str], width: int) -> str:
    return "\n".join(
        textwrap.fill(s, width, initial_indent="* ", subsequent_indent="  ") for s in sentences
    )


def _section_text(section: Section, width: int) -> str:
    lines = [textwrap.fill(section.note, width)] if section.note else []
    if section.sentences:
        lines.append(_paragraphs(section.sentences, width))
    rows = list(section.rows)[: section.shown]
    if rows:
        table = [list(section.head)] if section.head else []
        table += [[_told(cell) for cell in row] for row in rows]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines += [
            "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip()
            for row in table
        ]
    if len(rows) < len(section.rows):
        more = len(section.rows) - len(rows)
        lines.append(f"({more:,} more row{'s' * (more > 1)} on the page)")
    return _headed(section.title, lines)


def _section_html(section: Section) -> str:
    parts = [f"<h2>{html.escape(section.title)}</h2>"]
    if section.note:
        parts.append(f'<p class="note">{html.escape(section.note)}</p>')
    if section.sentences:
        parts.append(_bullets(section.sentences))
    parts.append(section.figure)
    if section.rows:
        head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in section.head)
        top = f"<thead><tr>{head}</tr></thead>" if head else ""
        body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in section.rows)
        parts.append(
            f'<div class="wide" tabindex="0" role="region"'
            f' aria-label="table: {html.escape(section.title)}">'
            f"<table>{top}<tbody>{body}</tbody></table></div>"
        )
    return "\n".join(part for part in parts if part)


def _cell(cell: Cell) -> str:
    kind = "" if isinstance(cell, str) else ' class="number"'
    return f"<td{kind}>{html.escape(_told(cell))}</td>"


def _told(cell: Cell) -> str:
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)


def _plain(cell: Cell) -> Any:
    """A cell as JSON has it: no nan."""
    if isinstance(cell, Interval):
        return {name: _plain(float(getattr(cell, name))) for name in ("mean", "lower", "upper")}
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell


def _bullets(sentences: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{html.escape(s)}</li>" for s in sentences) + "</ul>"

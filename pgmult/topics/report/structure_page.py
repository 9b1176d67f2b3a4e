"""The page's sections on covariates: effects, words by group, quotes, checks, stability."""

import html
from collections.abc import Sequence

import numpy as np

from pgmult.core.tabled import Table, interval, points, probability_text
from pgmult.topics.report.drawings import (
    axis_svg,
    curve_svg,
    interval_svg,
    legend,
    span_of,
    ticks_of,
)
from pgmult.topics.report.structure import Structure
from pgmult.topics.summaries.content import FEW_TOKENS, GroupWords
from pgmult.topics.summaries.effects import Difference, Effects
from pgmult.topics.summaries.quotes import Quotes
from pgmult.topics.summaries.stability import TopicStability

__all__ = ["stability_html", "structure_html"]

_RATIO_LIMIT = 5.0  # of a logarithm to base 2: beyond it ratios are drawn at the edge


def structure_html(found: Structure) -> list[str]:
    """Sections on what covariates do, those that there are."""
    sections = []
    if found.differences or found.curves:
        sections.append('<h2 id="effects">What covariates do to the shares of topics</h2>')
    for one in found.differences:
        sections += _difference_html(one)
    for run in found.curves:
        sections += _curves_html(run)
    if found.variances is not None:
        sections += ["<h3>What goes with random terms</h3>", table_html(found.variances.table())]
    if found.words is not None:
        sections += _words_html(found.words)
    if found.quotes is not None:
        sections += _quotes_html(found.quotes)
    if found.checks is not None:
        listed = "".join(f"<li>{html.escape(s)}</li>" for s in found.checks.verdict)
        sections += ['<h2 id="checks">What the model misses</h2>', f"<ul>{listed}</ul>"]
        for table in found.checks.tables():
            title = table.head[-1]
            sections.append(_details(title[:1].upper() + title[1:], table_html(table)))
    return sections


def _difference_html(found: Difference) -> list[str]:
    mean, lower, upper, positive = (
        x[0] for x in (found.mean, found.lower, found.upper, found.p_positive)
    )
    span = span_of(100 * lower, 100 * upper)
    ticks = [(t, f"{t:+g}" if t else "0") for t in ticks_of(*span)]
    rows = []
    for k in np.argsort(-mean, kind="stable").tolist():
        ends = interval(lower[k], upper[k], points)
        sure = lower[k] > 0.0 or upper[k] < 0.0
        told = f"{points(mean[k])} {ends}"
        drawn = interval_svg(
            span,
            [(100 * mean[k], 100 * lower[k], 100 * upper[k], "sure" if sure else "open")],
            told,
        )
        p = probability_text(positive[k])
        rows.append(_row(k, found.names[k], drawn, [told, p], ["", "P(>0)"]))
    head = _head("topic", axis_svg(span, ticks), ["points [interval]", "P(>0)"])
    return [
        f"<h3>{html.escape(found.label[:1].upper() + found.label[1:])}</h3>",
        _note(f"{found.caption} Filled: the interval excludes 0."),
        f'<table class="forest">{head}{"".join(rows)}</table>',
    ]


def _curves_html(found: Effects) -> list[str]:
    panels = "".join(
        f'<figure data-t="{k}"><figcaption>{html.escape(name)}</figcaption>'
        f"{curve_svg(found, k)}</figure>"
        for k, name in enumerate(found.names)
    )
    by = "" if found.by is None else f", by {found.by}"
    return [
        f"<h3>Along {html.escape(str(found.variable))}{html.escape(by)}</h3>",
        _note(f"{found.caption} In percent, each on its own scale."),
        legend(list(found.groups)),
        f'<div class="panels">{panels}</div>',
    ]


def _words_html(found: Sequence[GroupWords]) -> list[str]:
    first, second = found[0].groups
    note = (
        f"The words that {first} and {second} use most differently within a topic: how many times"
        f" as probable they are with {first} (to the right) as with {second} (to the left),"
        f" posterior median and {100 * found[0].probability:g} % interval, {found[0].scope}; then"
        f" how often each group has them in 1,000 words. Greyed topics have fewer than {FEW_TOKENS}"
        " tokens in a group, which say hardly anything."
    )
    ends = np.concatenate([[0.0], *([w.log_ratio_lower, w.log_ratio_upper] for w in found)], None)
    limit = min(_RATIO_LIMIT, max(1.0, float(np.quantile(np.abs(ends), 0.95))))
    span, step = (-limit, limit), max(1, int(limit) // 2)
    places = [t for t in range(-int(limit), int(limit) + 1) if t % step == 0]
    ticks = [(float(t), "same" if t == 0 else f"{2 ** abs(t)}x") for t in places]
    sections = ['<h2 id="words-by-group">Words by group</h2>', _note(note)]
    for k, words in enumerate(found):
        tokens = " and ".join(
            f"{n:,.0f} tokens of {g}" for n, g in zip(words.tokens, words.groups, strict=True)
        )
        rows = []
        for i, word in enumerate(words.words):
            kind = "c1" if words.log_ratio[i] > 0.0 else "c0"
            low, mid, high = (
                float(x[i]) for x in (words.log_ratio_lower, words.log_ratio, words.log_ratio_upper)
            )
            shares = [f"{1000 * p:.1f}" for p in words.probs[:, i]]
            told = f"{2**mid:.2g} times [{2**low:.2g}, {2**high:.2g}]"
            rows.append(
                _row(
                    None,
                    word,
                    interval_svg(span, [(mid, low, high, kind)], told),
                    shares,
                    words.groups,
                )
            )
        head = _head("word", axis_svg(span, ticks), list(words.groups))
        inside = f'<table class="forest">{head}{"".join(rows)}</table>'
        faint = ' class="faint"' if words.is_faint else ""
        sections.append(
            f'<details data-t="{k}"{faint}><summary>{html.escape(words.name)}'
            f" <small>{tokens}</small></summary>{inside}</details>"
        )
    return sections


def _quotes_html(found: Quotes) -> list[str]:
    if found.note:  # documents without texts are listed with the topics
        return []
    percent = f"{100 * found.probability:g} %"
    sections = [
        '<h2 id="quotes">Quotes</h2>',
        _note(
            f"The texts with the largest share of a topic: posterior mean [{percent} interval]."
            f" {found.note}"
        ),
    ]
    for k, (name, quotes) in enumerate(zip(found.names, found.quotes, strict=True)):
        inside = "".join(
            f"<figure><blockquote>{html.escape(quote.text or '')}</blockquote><figcaption>"
            f"{html.escape(quote.document)}: {quote.mean:.2f}"
            f" [{quote.lower:.2f}, {quote.upper:.2f}]</figcaption></figure>"
            for quote in quotes
        )
        sections.append(
            f'<details data-t="{k}"><summary>{html.escape(name)}</summary>{inside}</details>'
        )
    return sections


def stability_html(found: TopicStability, names: Sequence[str]) -> list[str]:
    """How far each topic's counterparts in other chains are; nothing with one chain."""
    matches = found.matches
    if len(matches.order) == 1:
        return []
    others = np.delete(matches.distance, matches.reference, axis=0)
    span = (0.0, 1.0)
    kinds = {"stable": "c0", "varies": "c4", "one chain only": "c1"}
    rows = []
    for k in np.argsort(found.mean_distance, kind="stable").tolist():
        verdict = found.verdicts[k]
        dots = [(float(x), float(x), float(x), kinds[verdict]) for x in others[:, k]]
        told = ", ".join(f"{x:.2f}" for x in others[:, k])
        drawn = interval_svg(span, dots, told, zero=matches.limit)
        rows.append(_row(k, names[k], drawn, [verdict], [""]))
    head = _head("topic", axis_svg(span, [(t, f"{t:g}") for t in (0.0, 0.5, 1.0)]), [""])
    return [
        '<h2 id="stability">How stable the topics are</h2>',
        _note(
            f"{found.headline[:1].upper()}{found.headline[1:]}. Each point is another chain's"
            " counterpart of a topic: its total variation distance, 0 the same, 1 no word in"
            f" common. Beyond {matches.limit:g} (the line) there is none."
        ),
        f'<table class="forest">{head}{"".join(rows)}</table>',
    ]


def table_html(table: Table) -> str:
    """A table as it prints, with its caption."""
    return f'{_note(table.caption)}<div class="wide">{table.html()}</div>'


def _row(
    topic: int | None, name: str, drawn: str, cells: Sequence[str], labels: Sequence[str]
) -> str:
    """A row of a forest; its labels are read where there is no room for a head."""
    marked = "" if topic is None else f' data-t="{topic}"'
    numbers = "".join(
        f'<td class="number" data-label="{html.escape(label)}">{html.escape(cell)}</td>'
        for cell, label in zip(cells, labels, strict=True)
    )
    return f'<tr{marked}><th scope="row">{html.escape(name)}</th><td>{drawn}</td>{numbers}</tr>'


def _head(name: str, axis: str, cells: Sequence[str]) -> str:
    rest = "".join(f"<th>{html.escape(cell)}</th>" if cell else "<td></td>" for cell in cells)
    return f"<thead><tr><th>{name}</th><td>{axis}</td>{rest}</tr></thead>"


def _details(title: str, inside: str) -> str:
    return f"<details><summary>{html.escape(title)}</summary>{inside}</details>"


def _note(text: str) -> str:
    return f'<p class="note">{html.escape(text)}</p>'

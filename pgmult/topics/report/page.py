"""A report as one HTML page that needs no network.

It is whole without its script, which only ranks words by other scores and points out one topic
wherever it stands.
"""

import html
import json
import math
from collections.abc import Iterable, Sequence

import numpy as np

from pgmult.core.arguments import as_kind
from pgmult.core.markup import Markup
from pgmult.core.reports import page
from pgmult.core.typing import FloatArray
from pgmult.topics.report.contents import COHERENCE_WORDS, DIVERSITY_WORDS, TopicReport
from pgmult.topics.report.looks import SCRIPT, STYLE
from pgmult.topics.report.structure_page import stability_html, structure_html
from pgmult.topics.report.text import (
    HELD_OUT_HEAD,
    correlations_caption,
    held_out_rows,
    interval_text,
    score_text,
    share_text,
)
from pgmult.topics.summaries.correlations import (
    CorrelationGraph,
    PairCorrelation,
    TopicCorrelations,
    correlation_graph,
    similar_together,
    strongest_pairs,
)
from pgmult.topics.summaries.stability import STEADY

__all__ = ["as_html"]


def as_html(report: TopicReport) -> str:
    """The report as one HTML page with everything in it.

    Raises
    ------
    ValueError
        If the report was made without ``rank_for_page``.
    """
    if not as_kind(report, "report", TopicReport).rankings:
        raise ValueError("the page needs a report made with rank_for_page=True")
    sections = [f'<div id="verdict">{_list(report.verdict)}</div>']
    sections += _topics_html(report)
    if report.structure is not None:
        sections += structure_html(report.structure)
    sections += stability_html(report.stability, report.names)
    if report.correlations is not None:
        sections += _correlations_html(report, report.correlations)
    if report.held_out:
        sections += [
            "<h2>Words that were held out</h2>",
            _note(
                "Mean log probability, in nats, of a word that was held out, given those of its"
                " text that were seen; higher is better. A model that guesses as well as 1 of n"
                " equally likely words has minus log n. Chains alone: the range of single chains;"
                " their average predicts better. Gains have a standard error over documents,"
                " paired, and over chains."
            ),
        ]
        for seen, scores in report.held_out.items():
            sections.append(f"<h3>{html.escape(seen)} of their text seen</h3>")
            sections.append(_rows(held_out_rows(scores), head=HELD_OUT_HEAD))
    if report.documents:
        sections += _documents_html(report)
    sections += ["<h2>Diagnostics</h2>", _list(report.findings), _polyline(report.log_likelihood)]
    sections += ["<h2>The run</h2>", _rows((n, f) for n, f in report.facts.items())]
    script = (
        f'<script type="application/json" id="words">{_candidates(report)}</script>\n'
        f"<script>{SCRIPT}</script>\n"
    )
    return page(
        report.title, Markup("\n".join(sections)), style=Markup(STYLE), script=Markup(script)
    )


def _topics_html(report: TopicReport) -> list[str]:
    chains = len(report.stability.matches.order)
    note = "Largest first: share of all words, posterior mean ± standard deviation"
    if chains > 1:
        note += (
            f"; how many of the {chains} chains found it, and how far theirs is on average (total"
            " variation: 0 the same, 1 no word in common); a topic is stable if all chains have it"
            f" at most {STEADY:g} apart"
        )
    note += (
        "; the words that score highest, ± posterior standard deviation within chain"
        f" {report.chain}, whose topics these are. FREX words are both frequent in a topic and"
        f" exclusive to it. Exclusivity sums FREX over the {COHERENCE_WORDS} most probable words"
    )
    if report.coherence is not None:
        note += (
            "; NPMI is their coherence, 1 where they are always together in a document of the"
            " reference corpus, 0 where independent, -1 where never together"
        )
    note += (
        f". {100 * report.diversity:.0f} % of the {DIVERSITY_WORDS} most probable words of all"
        " topics are different words."
    )
    columns: dict[str, list[str]] = {}
    if report.shares is not None and report.share_errors is not None:
        pairs = zip(report.shares, report.share_errors, strict=True)
        columns["share, %"] = [f"{100 * x:.1f} ± {100 * sd:.1f}" for x, sd in pairs]
    if chains > 1:
        columns["chains"] = [
            f"{count}, {verdict}" if verdict != "one chain only" else verdict
            for count, verdict in zip(
                report.stability.chains, report.stability.verdicts, strict=True
            )
        ]
        columns["apart"] = [f"{x:.2f}" for x in report.stability.mean_distance]
    if report.coherence is not None:
        columns["NPMI"] = [f"{x:.2f}" for x in report.coherence]
    columns["exclusivity"] = [f"{x:.2f}" for x in report.exclusivity]
    head = "".join(f"<th>{name}</th>" for name in ("topic", *columns))
    frex_words = report.rankings["frex"].top(len(report.words[0]))
    rows = []
    for k, name in enumerate(report.names):
        cells = "".join(
            f'<td class="number" data-label="{title}">{column[k]}</td>'
            for title, column in columns.items()
        )
        words = "".join(
            f'<span class="word">{html.escape(w.word)} <small>{score_text(w)}</small></span>'
            for w in report.words[k]
        )
        exclusive = "".join(
            f'<span class="word">{html.escape(w.word)}</span>' for w in frex_words[k]
        )
        button = (
            f'<button type="button" class="pick" aria-pressed="false">{report.topics[k]}</button>'
        )
        rows.append(
            f'<tr data-t="{k}" title="{html.escape(name)}"><th scope="row">{button}</th>{cells}'
            f'<td class="ranked">{words}</td><td class="frex">{exclusive}</td></tr>'
        )
    options = "".join(
        f'<option value="{name}"{" selected" if name == report.by else ""}>{name}</option>'
        for name in ("probability", "frex", "lift", "relevance")
    )
    return [
        "<h2>Topics</h2>",
        _note(note),
        '<p id="controls" hidden><label>words by <select id="by">'
        f'{options}</select></label> <label id="weight">weight of the probability'
        ' <input type="range" min="0" max="1" step="0.05" value="0.6"> <output>0.60</output>'
        "</label> <span>choose a topic to point it out wherever it stands</span></p>",
        f'<table id="topics"><thead><tr>{head}<th id="score">words by {report.by}</th>'
        f"<th>words by FREX</th></tr></thead><tbody>{''.join(rows)}</tbody></table>",
    ]


def _candidates(report: TopicReport) -> str:
    """Every word that some ranking puts among a topic's first, with its scores, as JSON.

    Relevance is linear in its weight, so its mean at any weight comes of those at 0 and 1.
    """
    count = len(report.words[0])
    log_probability = report.rankings["log probability"].mean
    log_lift = report.rankings["log lift"].mean
    probability, exclusive = (report.rankings[name] for name in ("probability", "frex"))
    orders = [probability.mean, exclusive.mean]
    orders += [log_lift + w * (log_probability - log_lift) for w in np.linspace(0.0, 1.0, 21)]
    best = np.concatenate(
        [np.argpartition(-order, min(count, order.shape[1]) - 1)[:, :count] for order in orders], 1
    )
    topics = [
        [
            [
                probability.names[j],
                *(round(float(values[k, j]), 5) for values in (probability.mean, exclusive.mean)),
                *(round(float(values[k, j]), 3) for values in (log_probability, log_lift)),
            ]
            for j in np.unique(best[k])
        ]
        for k in range(len(best))
    ]
    packed = json.dumps({"count": count, "topics": topics}, separators=(",", ":"))
    return packed.replace("<", "\\u003c")


def _documents_html(report: TopicReport) -> list[str]:
    rows = "".join(
        f'<tr data-t="{k}"><td>{html.escape(name)}</td><td>'
        + "".join(
            f'<span class="word">{html.escape(share_text(document))}</span>'
            for document in report.documents[k]
        )
        + "</td></tr>"
        for k, name in enumerate(report.names)
    )
    return [
        "<h2>Representative documents</h2>",
        _note(
            "The documents with the largest share of each topic: posterior mean [90 % interval]"
            f" within chain {report.chain}."
        ),
        f'<div class="wide"><table>{rows}</table></div>',
    ]


def _correlations_html(report: TopicReport, correlations: TopicCorrelations) -> list[str]:
    names = report.names
    positive, negative = (
        _rows((interval_text(p), names[p.first], names[p.second]) for p in pairs)
        for pairs in strongest_pairs(correlations)
    )
    graph = correlation_graph(correlations)
    return [
        "<h2>Topics that go together, and that avoid each other</h2>",
        _note(
            f"{correlations_caption(correlations)} Lines: {len(graph.pairs)} of {graph.num_sure}"
            " pairs whose interval excludes zero, the strongest of each sign; red together, dashed"
            " blue apart."
        ),
        '<div class="wide">'
        + _graph_svg(graph, [" ".join(name.split()[:3]) for name in names], report.shares)
        + "</div>",
        "<h3>Together</h3>" + positive if positive else "",
        "<h3>Apart</h3>" + negative if negative else "",
        "<h3>All pairs</h3>",
        _note(
            "Similar topics stand side by side. A dot: the interval contains zero. Rest on a cell"
            " to read its correlation."
        ),
        f'<div class="wide">{_matrix_svg(correlations, names)}</div>',
    ]


def _graph_svg(graph: CorrelationGraph, labels: Sequence[str], shares: FloatArray | None) -> str:
    width, height = 1000, min(900, 260 + 12 * len(labels))
    places = graph.places * [width - 220, height - 80] + [110, 40]
    strongest = max((abs(pair.mean) for pair in graph.pairs), default=1.0)
    lines = []
    for pair in graph.pairs:
        (x1, y1), (x2, y2) = places[[pair.first, pair.second]]
        lines.append(
            f'<line class="{"positive" if pair.mean > 0.0 else "negative"}"'
            f' data-t="{pair.first} {pair.second}" x1="{x1:.0f}" y1="{y1:.0f}" x2="{x2:.0f}"'
            f' y2="{y2:.0f}" stroke-width="{0.5 + 4.0 * abs(pair.mean) / strongest:.1f}">'
            f"<title>{_pair_text(labels, pair)}</title></line>"
        )
    sizes = np.full(len(labels), 1.0 / len(labels)) if shares is None else shares
    nodes = []
    for k, (x, y) in enumerate(places):
        radius = 4.0 + 6.0 * math.sqrt(sizes[k] / sizes.max())
        nodes.append(
            f'<g data-t="{k}"><circle cx="{x:.0f}" cy="{y:.0f}" r="{radius:.1f}"/>'
            f'<text x="{x:.0f}" y="{y - radius - 3:.0f}">{html.escape(labels[k])}</text></g>'
        )
    return (
        '<svg class="graph" role="img" aria-label="graph of topics that go together"'
        f' viewBox="0 0 {width} {height}" width="{width}">'
        f"{''.join(lines)}{''.join(nodes)}</svg>"
    )


def _pair_text(names: Sequence[str], pair: PairCorrelation) -> str:
    """Two topics' numbers and their correlation."""
    first, second = (names[k].split()[0] for k in (pair.first, pair.second))
    return f"{first} and {second}: {interval_text(pair)}"


def _matrix_svg(correlations: TopicCorrelations, labels: Sequence[str]) -> str:
    """The correlation matrix below its diagonal, a row's label at its end."""
    mean = correlations.mean
    limit = max(0.05, float(np.nanmax(np.abs(np.tril(mean, k=-1)))))
    order = [int(k) for k in similar_together(correlations)]
    cell = 14
    rows = []
    for i, k in enumerate(order):
        cells = []
        for j, other in enumerate(order[:i]):
            if math.isnan(mean[k, other]):
                continue
            lower, upper = float(correlations.lower[k, other]), float(correlations.upper[k, other])
            pair = PairCorrelation(k, other, float(mean[k, other]), lower, upper)
            shade = f"{'r' if pair.mean > 0.0 else 'b'}{math.ceil(8 * abs(pair.mean) / limit)}"
            cells.append(
                f'<rect class="{shade}" data-t="{k} {other}" x="{cell * j}" y="{cell * i}">'
                f"<title>{_pair_text(labels, pair)}</title></rect>"
            )
            if lower < 0.0 < upper:
                cells.append(f'<circle cx="{cell * j + 6.5}" cy="{cell * i + 6.5}" r="1"/>')
        rows.append(
            f'{"".join(cells)}<text data-t="{k}" x="{cell * i + 2}" y="{cell * i + 11}">'
            f"{html.escape(labels[k])}</text>"
        )
    side = cell * len(order)
    return (
        f'<svg class="matrix" viewBox="0 0 {side + 200} {side}" width="{side + 200}">'
        f"{''.join(rows)}</svg>"
    )


def _polyline(chains: FloatArray, width: int = 720, height: int = 200) -> str:
    """The trace of each chain as a line drawing."""
    finite = chains[np.isfinite(chains)]
    if finite.size == 0 or chains.shape[1] < 2:
        return ""
    low, high = float(finite.min()), float(finite.max())
    scale = (height - 20) / max(high - low, 1e-300)
    lines = []
    for number, chain in enumerate(chains):
        points = " ".join(
            f"{width * i / (len(chain) - 1):.1f},{10 + (high - value) * scale:.1f}"
            for i, value in enumerate(chain)
            if np.isfinite(value)
        )
        color = ("#2a6f97", "#c8553d", "#588157", "#6d597a")[number % 4]
        lines.append(f'<polyline points="{points}" fill="none" stroke="{color}"/>')
    return (
        f"<p>Log likelihood of the draws, from {low:,.0f} to {high:,.0f}:</p>"
        f'<svg viewBox="0 0 {width} {height}" width="{width}">{"".join(lines)}</svg>'
    )


def _rows(rows: Iterable[Sequence[str]], head: Sequence[str] = ()) -> str:
    cells = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    if not cells:
        return ""
    top = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    return (
        f'<div class="wide"><table>{f"<thead><tr>{top}</tr></thead>" if top else ""}{cells}'
        "</table></div>"
    )


def _note(text: str) -> str:
    return f'<p class="note">{html.escape(text)}</p>'


def _list(sentences: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{html.escape(s)}</li>" for s in sentences) + "</ul>"

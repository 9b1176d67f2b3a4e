"""A report's sections: what each of them says in a terminal, and what it draws on a page."""

import json
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pgmult.core.figures.base import Figure, panels
from pgmult.core.figures.lines import Line, Lines
from pgmult.core.markup import Markup, joined, tag
from pgmult.core.reports import Section
from pgmult.core.tabled import Column, Table, number, wrapped_pieces
from pgmult.topics.plots import trace
from pgmult.topics.reports.contents import COHERENCE_WORDS, Contents, seen_in_words
from pgmult.topics.reports.looks import SCRIPT
from pgmult.topics.reports.structure import Structure, compared
from pgmult.topics.summaries.content import FEW_TOKENS, GroupWords
from pgmult.topics.summaries.correlations import TopicCorrelations, strongest_pairs
from pgmult.topics.summaries.effects import TopicShares
from pgmult.topics.summaries.quotes import Quote, Quotes
from pgmult.topics.summaries.stability import LIKELY
from pgmult.topics.summaries.words import SCORES, TopWord

_RATIO_LIMIT = 5.0  # of a logarithm to base 2: beyond it ratios are drawn at the edge
_FEW_WORDS = 3  # of a topic that another chain is not likely to find
_SMALL = (240.0, 150.0)  # pixels of a curve beside others


def sections_of(found: Contents) -> list[Section]:
    """All that a report tells, in order."""
    sections = [_topics(found)]
    if found.keywords is not None:
        sections.append(Section("Topics with keywords", table=found.keywords.table()))
    for seen, comparison in found.comparisons.items():
        section = comparison.section()
        sections.append(replace(section, title=section.title + seen_in_words(seen)))
    if found.structure is not None:
        sections += _of_covariates(found.structure)
    sections += [_stability(found)]
    if found.correlations is not None:
        sections.append(_correlations(found, found.correlations))
    sections.append(_documents(found))
    log_likelihood = found.log_likelihood
    drawn = [trace(log_likelihood)] if log_likelihood.shape[1] > 1 else []
    return [*sections, Section("Diagnostics", sentences=found.findings, figures=drawn)]


# --------------------------------------------------------------------------- topics and words


def _columns(found: Contents) -> list[Column]:
    """Numbers of topics, those that there are."""
    chains = len(found.stability.matches.order)
    columns = []
    if found.shares is not None and found.share_errors is not None:
        pairs = zip(found.shares, found.share_errors, strict=True)
        told = [f"{100 * share:.1f} ± {100 * sd:.1f}" for share, sd in pairs]
        columns += [
            Column("share", found.shares, "share, %", told),
            Column("share_sd", found.share_errors),
        ]
    if chains > 1:
        columns += [
            Column("chains", found.stability.chains, "chains"),
            Column("apart", found.stability.mean_distance, "apart", number(2)),
        ]
    if not np.isnan(found.stability.found_again).any():
        again = found.stability.found_again
        columns += [
            Column("again", again, "again, %", [f"{p:.0f}" for p in np.clip(100 * again, 1, 99)])
        ]
    if found.coherence is not None:
        columns.append(Column("npmi", found.coherence, "NPMI", number(2)))
    return columns


def _topics(found: Contents) -> Section:
    chains = len(found.stability.matches.order)
    best = f" in chain {found.chain}, the best of {chains}" if chains > 1 else ""
    words = [" ".join(word.word for word in topic) for topic in found.words]
    table = Table(
        "",
        [
            Column("topic", found.topics, "no."),
            *_columns(found),
            Column("exclusivity", found.exclusivity),
            Column("words", words),
        ],
    )
    return Section(
        f"Topics{best}, the largest first", table=table, is_drawn=True, key="topics-told",
        figures=[joined(tag("p", _topics_note(found), class_="note"), _topics_html(found))],
        lines=lambda width: _topics_text(found, table, width),
    )  # fmt: skip


def _topics_text(found: Contents, table: Table, width: int) -> str:
    """A table, two lines a topic: its words, and the documents that are most about it."""
    cells = zip(table.head, *table.rows, strict=True)
    padded = [[cell.rjust(max(map(len, column))) for cell in column] for column in cells]
    starts = ["  ".join(row) + " " for row in zip(*padded, strict=True)]
    lines = [*textwrap.wrap(_legend(found), width), "", f"{starts[0]} words by {found.by}"]
    for k, start in enumerate(starts[1:]):
        words = [word.word for word in found.words[k]]
        shown = words if found.stability.is_likely[k] else words[:_FEW_WORDS]
        lines += wrapped_pieces(start, shown, width)
        if found.documents and found.stability.is_likely[k]:
            lines.append(f"{' ' * len(start)} in {_share_text(found.documents[k][0])}")
            for document in found.documents[k][1:]:
                if len(lines[-1]) + 2 + len(_share_text(document)) <= width:
                    lines[-1] += f"  {_share_text(document)}"
    return "\n".join(lines)


def _legend(found: Contents) -> str:
    """What the columns are."""
    parts = {
        "share: of all words, posterior mean ± sd": found.shares is not None,
        "chains: how many found it; apart: mean distance to theirs, 0 the same, 1 no word in"
        " common": len(found.stability.matches.order) > 1,
        "again: how probably one more chain finds it, three words where less than"
        f" {100 * LIKELY:.0f} %": not np.isnan(found.stability.found_again).any(),
        "NPMI: do its words share documents, 0 by chance, 1 always": found.coherence is not None,
        "in: where it is largest, its share there [90 % interval]": bool(found.documents),
    }
    return "; ".join(text for text, is_there in parts.items() if is_there)


def _topics_note(found: Contents) -> str:
    chains = len(found.stability.matches.order)
    note = "Largest first: share of all words, posterior mean ± standard deviation"
    if chains > 1:
        note += (
            f"; how many of the {chains} chains found it, how far theirs is on average (total"
            " variation: 0 the same, 1 no word in common), and how probably one more chain would"
            f" find it (greyed below {100 * LIKELY:.0f} %)"
        )
    note += (
        "; the words that score highest, ± posterior standard deviation within chain"
        f" {found.chain}, whose topics these are. FREX words are both frequent in a topic and"
        f" exclusive to it. Exclusivity sums FREX over the {COHERENCE_WORDS} most probable words"
    )
    if found.coherence is not None:
        note += (
            "; NPMI is their coherence, 1 where they are always together in a document of the"
            " reference corpus, 0 where independent, -1 where never together"
        )
    return f"{note}."


def _topics_html(found: Contents) -> Markup:
    """The table of topics, with the controls that its script shows."""
    columns = [column for column in _columns(found) if column.head]
    columns.append(Column("exclusivity", found.exclusivity, "exclusivity", number(2)))
    told = [column.cells for column in columns]
    frex = found.rankings["frex"].top(len(found.words[0])) if found.rankings else None
    rows = []
    for k, name in enumerate(found.names):
        cells = [
            tag("td", cells[k], class_="number", data_label=column.head)
            for column, cells in zip(columns, told, strict=True)
        ]
        words = [
            tag("span", f"{word.word} ", tag("small", score_text(word)), class_="word")
            for word in found.words[k]
        ]
        if frex is not None:
            exclusive = (tag("span", word.word, class_="word") for word in frex[k])
            button = tag("button", found.topics[k], type="button", class_="pick",
                         aria_pressed="false")  # fmt: skip
        number_of = found.topics[k] if frex is None else button
        rows.append(
            tag("tr", tag("th", number_of, scope="row"), cells, tag("td", words, class_="ranked"),
                None if frex is None else tag("td", exclusive, class_="frex"), data_t=k, title=name,
                class_=None if found.stability.is_likely[k] else "faint")
        )  # fmt: skip
    heads = [tag("th", name) for name in ("topic", *(column.head for column in columns))]
    heads.append(tag("th", f"words by {found.by}", id="score"))
    heads += [] if frex is None else [tag("th", "words by FREX")]
    table = tag("table", tag("thead", tag("tr", heads)), tag("tbody", rows), id="topics")
    return table if frex is None else joined(_controls(found.by), table)


def _controls(by: str) -> Markup:
    options = (tag("option", name, value=name, selected=name == by) for name in SCORES)
    return tag(
        "p",
        tag("label", "words by ", tag("select", options, id="by")), " ",
        tag(
            "label", "weight of the probability ",
            tag("input", type="range", min="0", max="1", step="0.05", value="0.6"), " ",
            tag("output", "0.60"), id="weight",
        ), " ",
        tag("span", "choose a topic to point it out wherever it stands"),
        id="controls", hidden=True,
    )  # fmt: skip


def script_of(found: Contents) -> Markup | None:
    """What makes a page answer: scores of words, and the script that ranks them by others."""
    if not found.rankings:
        return None
    words = Markup(_candidates(found))
    data = tag("script", words, type="application/json", id="words")
    return joined(data, Markup("\n"), tag("script", Markup(SCRIPT)), Markup("\n"))


def _candidates(found: Contents) -> str:
    """Every word that some ranking puts among a topic's first, with its scores, as JSON.

    Relevance is linear in its weight, so its mean at any weight comes of those at 0 and 1.
    """
    count = len(found.words[0])
    log_probability = found.rankings["log probability"].mean
    log_lift = found.rankings["log lift"].mean
    probability, exclusive = (found.rankings[name] for name in ("probability", "frex"))
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


def _documents(found: Contents) -> Section:
    rows = [
        tag("tr", tag("td", name), tag("td", _spans(documents)), data_t=k)
        for k, (name, documents) in enumerate(zip(found.names, found.documents, strict=False))
    ]
    note = (
        "The documents with the largest share of each topic: posterior mean [90 % interval]"
        f" within chain {found.chain}."
    )
    drawn = tag("div", tag("table", rows), class_="wide")
    return Section("Representative documents", note, figures=[drawn] if rows else [], shown=0)


def _spans(documents: Sequence[Quote]) -> Iterator[Markup]:
    return (tag("span", _share_text(document), class_="word") for document in documents)


def score_text(word: TopWord) -> str:
    """Such as .027±.002: without the zeros that every probability begins with."""
    return "±".join(_number(x) for x in word[1:])


def _number(x: float) -> str:
    if abs(x) < 1.0:
        return f"{x:.3f}".removeprefix("0")
    return f"{x:.2f}" if abs(x) < 100.0 else f"{x:.0f}"


def _share_text(document: Quote) -> str:
    """Such as ``svd .91 [.85, .95]``."""
    mean, lower, upper = (f"{x:.2f}".removeprefix("0") for x in document[1:4])
    return f"{document.document} {mean} [{lower}, {upper}]"


# --------------------------------------------------------------------------- covariates


def _of_covariates(found: Structure) -> Iterator[Section]:
    """What covariates do, words by group, quotes, and what the model misses."""
    key = "effects"
    for difference in found.differences:
        drawn = replace(difference.figure(), keys=range(len(difference.names)), caption="")
        yield Section(compared(difference), table=difference.table(), figures=[drawn], key=key)
        key = ""
    for run in found.curves:
        yield _curves(run, key)
        key = ""
    if found.variances is not None:
        yield Section("What goes with random terms", table=found.variances.table())
    if found.words is not None:
        yield _words(found.words)
    if found.quotes is not None and not found.quotes.note:  # else documents are listed by topic
        yield _quotes(found.quotes)
    if found.checks is not None:
        tables = found.checks.tables()
        heads = [table.head[-1] for table in tables]
        drawn = (
            _details(f"{head[:1].upper()}{head[1:]}", _told(table))
            for head, table in zip(heads, tables, strict=True)
        )
        yield Section(
            "What the model misses", sentences=found.checks.verdict, figures=[joined(drawn)],
            shown=0, key="checks",
        )  # fmt: skip


def _curves(found: TopicShares, key: str) -> Section:
    *groups, along, _ = found.axes
    in_percent = replace(found, draws=100.0 * found.draws)
    looks: dict[str, Any] = {"size": _SMALL, "has_legend": False, "y_label": "share, %"}
    drawn = []
    for k, number_of in enumerate(found.columns_of("topic")["topic"]):
        lines = in_percent.at(topic=number_of).curves(along)
        drawn.append(tag("div", replace(lines, caption=found.names[k], **looks).svg(), data_t=k))
    labels = found.labels[groups[0]] if groups else [""]
    names = [Line(str(label), g, np.zeros(1), np.zeros(1)) for g, label in enumerate(labels)]
    legend = Lines(names, "", "").keys()
    return Section(
        f"Along {along}{''.join(f', by {by}' for by in groups)}",
        f"{found.caption} In percent, each on its own scale.",
        figures=[joined(tag("ul", legend, class_="legend"), panels(drawn))], shown=0, key=key,
    )  # fmt: skip


def _words(found: Sequence[GroupWords]) -> Section:
    first, second = found[0].groups
    note = (
        f"The words that {first} and {second} use most differently within a topic: how many times"
        f" as probable they are with {first} (to the right) as with {second} (to the left),"
        f" posterior median and {100 * found[0].probability:g} % interval, {found[0].scope}; then"
        f" how often each group has them in 1,000 words. Greyed topics have fewer than {FEW_TOKENS}"
        " tokens in a group, which say hardly anything."
    )
    ends = np.concatenate([[0.0], *(words.log_ratio.interval().ravel() for words in found)])
    limit = min(_RATIO_LIMIT, max(1.0, float(np.quantile(np.abs(ends), 0.95))))
    drawn = []
    for k, words in enumerate(found):
        pairs = zip(words.tokens, words.groups, strict=True)
        tokens = " and ".join(f"{n:,.0f} tokens of {group}" for n, group in pairs)
        title = joined(f"{words.name} ", tag("small", tokens))
        faint = "faint" if words.is_faint else None
        drawn.append(_details(title, words.figure(limit), data_t=k, class_=faint))
    return Section("Words by group", note, figures=[joined(drawn)], shown=0, key="words-by-group")


def _quotes(found: Quotes) -> Section:
    drawn = []
    for k, (name, quotes) in enumerate(zip(found.names, found.quotes, strict=True)):
        inside = [
            tag(
                "figure", tag("blockquote", quote.text or ""),
                tag("figcaption", "{}: {:.2f} [{:.2f}, {:.2f}]".format(*quote[:4])),
            )
            for quote in quotes
        ]  # fmt: skip
        drawn.append(_details(name, inside, data_t=k))
    note = (
        "The texts with the largest share of a topic: posterior mean"
        f" [{100 * found.probability:g} % interval]."
    )
    return Section("Quotes", note, figures=[joined(drawn)], shown=0, key="quotes")


def _details(title: str | Markup, inside: object, **attributes: object) -> Markup:
    """What is shown where one asks for it."""
    shown = inside.svg() if isinstance(inside, Figure) else inside
    return tag("details", tag("summary", title), shown, **attributes)


def _told(table: Table) -> Markup:
    return joined(tag("p", table.caption, class_="note"), tag("div", table.html(), class_="wide"))


# --------------------------------------------------------------------------- chains, pairs, scores


def _stability(found: Contents) -> Section:
    """How far each topic's counterparts in other chains are; nothing with one chain."""
    drawn = []
    if len(found.stability.matches.order) > 1:
        drawn = [found.stability.figure(found.names)]
    note = drawn[0].caption if drawn else ""
    return Section("How stable the topics are", note, figures=drawn, shown=0, key="stability")


def _correlations(found: Contents, correlations: TopicCorrelations) -> Section:
    percent = round(100 * correlations.probability)
    note = (
        "Correlation of two topics' shares over documents, less what shares that sum to one show"
        f" anyway: 0 where topics are unrelated. Posterior mean [{percent} % interval],"
        f" {correlations.scope}."
    )
    graph = correlations.graph(
        [" ".join(name.split()[:3]) for name in found.names], sizes=found.shares
    )
    about = (
        f"Lines: {graph.caption}; red together, dashed blue apart. Below all pairs, similar topics"
        " side by side. A dot: the interval contains zero. Rest on a cell to read its correlation."
    )
    names = found.names
    rows = [
        [str(pair), names[pair.first], names[pair.second]]
        for pairs in strongest_pairs(correlations)
        for pair in pairs
    ]
    lines = [f"{interval}  {first}  |  {second}" for interval, first, second in rows]
    body = joined(tag("p", about, class_="note"), graph.svg(), correlations.figure(names).svg())
    return Section(
        "Topics that go together (+) and that avoid each other (-)", note, rows=rows,
        lines=lambda _: "\n".join(["", *lines]), figures=[body], key="together",
    )  # fmt: skip


# --------------------------------------------------------------------------- one topic


def one_topic(found: Contents, k: int) -> tuple[str, list[Section]]:
    """What is known of one topic: its title and its sections."""
    facts = [] if found.shares is None else [f"{100 * found.shares[k]:.1f} % of all words"]
    chains = len(found.stability.matches.order)
    if chains > 1:
        facts.append(f"{found.stability.chains[k]} of {chains} chains")
        again = found.stability.found_again[k]
        if not np.isnan(again):
            facts.append(f"found again with probability {again:.2f}")
    if found.coherence is not None:
        facts.append(f"NPMI {found.coherence[k]:.2f}")
    facts.append(f"exclusivity {found.exclusivity[k]:.2f} of {COHERENCE_WORDS}")
    words = [(score_text(word), word.word) for word in found.words[k]]
    sections = [
        Section(f"Top words, {found.by} ± posterior sd within chain {found.chain}", rows=words)
    ]
    if found.documents:
        sections.append(
            Section(
                "Documents with the largest share of it, posterior mean and 90 % interval",
                rows=[(_share_text(document),) for document in found.documents[k]],
            )
        )
    if found.correlations is not None:
        rows = [
            (str(pair), found.names[pair.first + pair.second - k])
            for pairs in strongest_pairs(found.correlations, len(found.names) ** 2)
            for pair in [pair for pair in pairs if k in pair[:2]][:5]
        ]
        sections.append(Section("Topics beside it: correlation beyond sizes", rows=rows))
    return f"Topic {found.names[k]}: {', '.join(facts)}", sections

"""A report as text for a terminal."""

import textwrap
from collections.abc import Sequence

import numpy as np

from pgmult.core.arguments import as_kind
from pgmult.core.validate import as_positive_int
from pgmult.topics.report.contents import COHERENCE_WORDS, TopicReport
from pgmult.topics.scores.completion import HeldOutScore
from pgmult.topics.summaries.correlations import PairCorrelation, TopicCorrelations, strongest_pairs
from pgmult.topics.summaries.documents import TopDocument
from pgmult.topics.summaries.matching import RunMatches
from pgmult.topics.summaries.words import TopWord, names_of

__all__ = [
    "HELD_OUT_HEAD",
    "as_text",
    "correlations_caption",
    "held_out_rows",
    "interval_text",
    "matches_as_text",
    "score_text",
    "share_text",
]


def as_text(report: TopicReport, *, width: int = 100, topic: int | None = None) -> str:
    """The report, or what it says of one topic, in lines of at most about `width` characters."""
    as_kind(report, "report", TopicReport)
    width = as_positive_int(width, "width")
    if topic is not None:
        topic = as_positive_int(topic, "topic", minimum=0, maximum=len(report.words) - 1)
        return _one_topic_text(report, int(np.argmax(report.topics == topic)), width)
    verdict = [line for sentence in report.verdict for line in _paragraph(sentence, width)]
    blocks = [_heading(report.title), "\n".join(verdict), _topics_text(report, width)]
    if report.structure is not None:
        blocks += [
            f"{_heading(found.label[:1].upper() + found.label[1:])}\n{found.table().text(width)}"
            for found in report.structure.differences
        ]
        if report.structure.variances is not None:
            told = report.structure.variances.table().text(width)
            blocks.append(f"{_heading('What goes with random terms')}\n{told}")
    if report.correlations is not None:
        blocks.append(_correlations_text(report, report.correlations, width))
    blocks += [_held_out_text(seen, scores) for seen, scores in report.held_out.items()]
    blocks.append(_heading("Diagnostics"))
    blocks[-1] += "".join("\n" + "\n".join(_paragraph(f, width)) for f in report.findings)
    if report.facts:
        left = max(map(len, report.facts))
        lines = [
            line
            for name, fact in report.facts.items()
            for line in textwrap.wrap(
                f"{name:<{left}}  {fact}", width, subsequent_indent=" " * (left + 2)
            )
        ]
        blocks.append("\n".join([_heading("The run"), *lines]))
    return "\n\n".join(blocks) + "\n"


def _heading(text: str) -> str:
    return f"{text}\n{'-' * len(text)}"


def _paragraph(sentence: str, width: int) -> list[str]:
    return textwrap.wrap(sentence, width, initial_indent="* ", subsequent_indent="  ")


def _topics_text(report: TopicReport, width: int) -> str:
    """A table, two lines a topic: its words, and the documents that are most about it."""
    columns = {"no.": [str(k) for k in report.topics]}
    if report.shares is not None and report.share_errors is not None:
        pairs = zip(report.shares, report.share_errors, strict=True)
        columns["share, %"] = [f"{100 * share:.1f} ± {100 * sd:.1f}" for share, sd in pairs]
    if len(report.stability.matches.order) > 1:
        columns["chains"] = [str(count) for count in report.stability.chains]
        columns["apart"] = [f"{x:.2f}" for x in report.stability.mean_distance]
    if report.coherence is not None:
        columns["NPMI"] = [f"{x:.2f}" for x in report.coherence]
    table = [
        [cell.rjust(max(map(len, [name, *column]))) for cell in [name, *column]]
        for name, column in columns.items()
    ]
    starts = ["  ".join(cells) + " " for cells in zip(*table, strict=True)]
    lines = [f"{starts[0]} words by {report.by}"]
    for k, start in enumerate(starts[1:]):
        lines += _wrapped(start, [w.word for w in report.words[k]], width)
        if report.documents:
            lines.append(f"{' ' * len(start)} in {share_text(report.documents[k][0])}")
            for document in report.documents[k][1:]:
                if len(lines[-1]) + 2 + len(share_text(document)) <= width:
                    lines[-1] += f"  {share_text(document)}"
    return "\n".join([_heading(_topics_title(report)), *_legend(report, width), "", *lines])


def _topics_title(report: TopicReport) -> str:
    chains = len(report.stability.matches.order)
    best = f" in chain {report.chain}, the best of {chains}" if chains > 1 else ""
    return f"Topics{best}, the largest first"


def _legend(report: TopicReport, width: int) -> list[str]:
    """What the columns are."""
    parts = []
    if report.shares is not None:
        parts.append("share: of all words, posterior mean ± sd")
    if len(report.stability.matches.order) > 1:
        parts.append(
            "chains: how many found it; apart: mean distance to theirs, 0 the same, 1 no word in"
            " common"
        )
    if report.coherence is not None:
        parts.append("NPMI: do its words share documents, 0 by chance, 1 always")
    if report.documents:
        parts.append("in: where it is largest, its share there [90 % interval]")
    return textwrap.wrap("; ".join(parts), width)


def _wrapped(start: str, pieces: Sequence[str], width: int, gap: str = " ") -> list[str]:
    """Lines of pieces, all with the width of `start` before them."""
    lines = [start]
    for piece in pieces:
        if len(lines[-1]) + len(gap) + len(piece) > width and len(lines[-1]) > len(start):
            lines.append(" " * len(start))
        lines[-1] += gap + piece
    return lines


def _one_topic_text(report: TopicReport, k: int, width: int) -> str:
    facts = [] if report.shares is None else [f"{100 * report.shares[k]:.1f} % of all words"]
    chains = len(report.stability.matches.order)
    if chains > 1:
        facts.append(f"{report.stability.verdicts[k]}, {report.stability.chains[k]} of {chains}")
        facts[-1] += " chains"
    if report.coherence is not None:
        facts.append(f"NPMI {report.coherence[k]:.2f}")
    facts.append(f"exclusivity {report.exclusivity[k]:.2f} of {COHERENCE_WORDS}")
    blocks = [
        _heading(f"Topic {report.names[k]}: {', '.join(facts)}"),
        f"Top words, {report.by} ± posterior sd within chain {report.chain}",
        "\n".join(f"  {score_text(word):<12} {word.word}" for word in report.words[k]),
    ]
    if report.documents:
        blocks += [
            "Documents with the largest share of it, posterior mean and 90 % interval",
            "\n".join(f"  {share_text(document)}" for document in report.documents[k]),
        ]
    if report.correlations is not None:
        lines = [
            f"  {interval_text(pair)}  {report.names[other]}"
            for pairs in strongest_pairs(report.correlations, len(report.names) ** 2)
            for pair, other in [(pair, sum(pair[:2]) - k) for pair in pairs if k in pair[:2]][:5]
        ]
        blocks += ["Topics beside it: correlation beyond sizes", "\n".join(lines)]
    return "\n".join(blocks) + "\n"


def matches_as_text(
    matches: RunMatches,
    first: Sequence[Sequence[TopWord]],
    second: Sequence[Sequence[TopWord]],
    *,
    width: int = 100,
) -> str:
    """Which topics of two runs go together, and which have no partner, with the words of each."""
    as_kind(matches, "matches", RunMatches)
    width = as_positive_int(width, "width")
    tops = names_of(first, "first"), names_of(second, "second")
    for argument, words, used in (
        ("first", tops[0], [*matches.pairs[:, 0], *matches.only_first]),
        ("second", tops[1], [*matches.pairs[:, 1], *matches.only_second]),
    ):
        if max(used, default=-1) >= len(words):
            raise ValueError(
                f"{argument} must hold the words of topic {max(used)}, got {len(words)} topics"
            )
    pairs = zip(matches.pairs.tolist(), matches.distance, strict=True)
    lines = [
        _heading(
            f"{len(matches.pairs)} topics found in both runs: total variation distance,"
            " 0 the same, 1 no word in common"
        )
    ]
    for (i, j), distance in pairs:
        lines += _wrapped(f"{distance:5.2f} {i:4d}", tops[0][i], width)
        lines += _wrapped(f"{'':5} {j:4d}", tops[1][j], width)
    for which, alone, words in (
        ("first", matches.only_first, tops[0]),
        ("second", matches.only_second, tops[1]),
    ):
        if len(alone):
            lines += ["", _heading(f"{len(alone)} topics of the {which} run alone")]
        for k in alone:
            lines += _wrapped(f"{k:10d}", words[k], width)
    return "\n".join(lines) + "\n"


def score_text(word: TopWord) -> str:
    """Such as .027±.002: without the zeros that every probability begins with."""
    return "±".join(_number(x) for x in word[1:])


def _number(x: float) -> str:
    if abs(x) < 1.0:
        return f"{x:.3f}".removeprefix("0")
    return f"{x:.2f}" if abs(x) < 100.0 else f"{x:.0f}"


def share_text(document: TopDocument) -> str:
    """Such as ``svd .91 [.85, .95]``."""
    mean, lower, upper = (f"{x:.2f}".removeprefix("0") for x in document[1:])
    return f"{document.document} {mean} [{lower}, {upper}]"


def correlations_caption(correlations: TopicCorrelations) -> str:
    """What the numbers are, in words."""
    percent = round(100 * correlations.probability)
    return (
        "Correlation of two topics' shares over documents, less what shares that sum to one show"
        f" anyway: 0 where topics are unrelated. Posterior mean [{percent} % interval],"
        f" {correlations.scope}."
    )


def _correlations_text(report: TopicReport, correlations: TopicCorrelations, width: int) -> str:
    lines = [
        _heading("Topics that go together (+) and that avoid each other (-)"),
        *textwrap.wrap(correlations_caption(correlations), width),
        "",
    ]
    for pairs in strongest_pairs(correlations):
        for pair in pairs:
            names = report.names[pair.first], report.names[pair.second]
            lines.append(f"{interval_text(pair)}  {names[0]}  |  {names[1]}")
    return "\n".join(lines)


def interval_text(pair: PairCorrelation) -> str:
    """Such as +0.31 [+0.24, +0.37]."""
    return f"{pair.mean:+.2f} [{pair.lower:+.2f}, {pair.upper:+.2f}]"


HELD_OUT_HEAD = ("model", "nats a word", "chains alone", "as 1 of", "the first is ahead by")


def _held_out_text(seen: str, scores: Sequence[HeldOutScore]) -> str:
    rows = [HELD_OUT_HEAD, *held_out_rows(scores)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HELD_OUT_HEAD))]
    lines = [
        "  ".join(cell.ljust(size) for cell, size in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    title = f"Words that were held out, {seen} of their text seen: mean log probability"
    return "\n".join([_heading(title), *lines])


def held_out_rows(scores: Sequence[HeldOutScore]) -> list[tuple[str, str, str, str, str]]:
    """Model, score, range over single chains, perplexity and the first model's gain, as text."""
    rows = []
    for number, score in enumerate(scores):
        words = ""
        if number:
            gain = -score.difference + 0.0
            words = f"{gain:+.4f} ± {score.difference_error:.4f} nats a word"
            if abs(gain) < 2.0 * score.difference_error:
                words += ", too close to call"
        chains = score.chains
        alone = f"{min(chains):.3f} to {max(chains):.3f}" if len(chains) > 1 else ""
        level, guesses = f"{score.log_predictive:.4f}", f"{score.perplexity:.0f} words"
        rows.append((score.model, level, alone, guesses, words))
    return rows

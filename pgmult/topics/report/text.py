"""A report as text for a terminal."""

from collections.abc import Sequence

from pgmult.core.arguments import as_kind
from pgmult.core.validate import as_positive_int
from pgmult.topics.report.contents import COHERENCE_WORDS, TopicReport
from pgmult.topics.scores.completion import HeldOutScore
from pgmult.topics.summaries.correlations import PairCorrelation, TopicCorrelations, strongest_pairs
from pgmult.topics.summaries.documents import TopDocument
from pgmult.topics.summaries.matching import RunMatches
from pgmult.topics.summaries.words import TopWord, names_of, topic_labels

__all__ = [
    "as_text",
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
        return _one_topic_text(report, topic, width)
    blocks = [_heading(report.title)]
    if report.facts:
        left = max(map(len, report.facts))
        blocks.append("\n".join(f"{name:<{left}}  {fact}" for name, fact in report.facts.items()))
    topics = "\n".join(_topic_text(report, k, width) for k in report.by_size)
    blocks.append(_heading(_topics_title(report)) + "\n" + topics)
    if report.correlations is not None:
        blocks.append(_correlations_text(report, report.correlations))
    if report.held_out:
        blocks.append(_held_out_text(report.held_out))
    blocks.append(_heading("Diagnostics") + "\n" + "\n".join(f"- {f}" for f in report.findings))
    return "\n\n".join(blocks) + "\n"


def _heading(text: str) -> str:
    return f"{text}\n{'-' * len(text)}"


def _topics_title(report: TopicReport) -> str:
    quality = "" if report.coherence is None else "NPMI, "
    return f"Topics: {quality}top words, {report.by} ± posterior sd"


def _topic_text(report: TopicReport, k: int, width: int) -> str:
    start = f"{k:3d}"
    if report.shares is not None:
        start += f" {100 * report.shares[k]:4.1f} %"
    if report.coherence is not None:
        start += f" {report.coherence[k]:5.2f}"
    lines = _wrapped(start + " ", [f"{w.word} {score_text(w)}" for w in report.words[k]], width)
    if report.documents:
        lines += _wrapped(
            " " * len(start) + " in", [share_text(d) for d in report.documents[k]], width, "  "
        )
    return "\n".join(lines)


def _wrapped(start: str, pieces: Sequence[str], width: int, gap: str = " ") -> list[str]:
    """Lines of pieces, all with the width of `start` before them."""
    lines = [start]
    for piece in pieces:
        if len(lines[-1]) + len(gap) + len(piece) > width and len(lines[-1]) > len(start):
            lines.append(" " * len(start))
        lines[-1] += gap + piece
    return lines


def _one_topic_text(report: TopicReport, k: int, width: int) -> str:
    facts = [] if report.shares is None else [f"{100 * report.shares[k]:.1f} % of all tokens"]
    if report.coherence is not None:
        facts.append(f"NPMI {report.coherence[k]:.2f}")
    facts.append(f"exclusivity {report.exclusivity[k]:.2f} of {COHERENCE_WORDS}")
    blocks = [
        _heading(f"Topic {k} of {report.title}: {', '.join(facts)}"),
        f"Top words, {report.by} ± posterior sd",
        "\n".join(f"  {score_text(word):<12} {word.word}" for word in report.words[k]),
    ]
    if report.documents:
        blocks += [
            "Documents with the largest share of it, posterior mean and 90 % interval",
            "\n".join(f"  {share_text(document)}" for document in report.documents[k]),
        ]
    if report.correlations is not None:
        labels = topic_labels(report.words)
        lines = [
            f"  {interval_text(pair)}  {other:3d} {labels[other]}"
            for pairs in strongest_pairs(report.correlations, len(labels) ** 2)
            for pair, other in [(pair, sum(pair[:2]) - k) for pair in pairs if k in pair[:2]][:5]
        ]
        blocks += ["Strongest correlations over documents", "\n".join(lines)]
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


def _correlations_text(report: TopicReport, correlations: TopicCorrelations) -> str:
    labels = topic_labels(report.words)
    percent = round(100 * correlations.probability)
    lines = [
        _heading(
            f"Strongest topic correlations over documents, on simulated proportions"
            f" ({percent} % interval)"
        )
    ]
    for pairs in strongest_pairs(correlations):
        for pair in pairs:
            lines.append(f"{interval_text(pair)}  {labels[pair.first]}  |  {labels[pair.second]}")
    return "\n".join(lines)


def interval_text(pair: PairCorrelation) -> str:
    """Such as +0.31 [+0.24, +0.37]."""
    return f"{pair.mean:+.2f} [{pair.lower:+.2f}, {pair.upper:+.2f}]"


def _held_out_text(scores: Sequence[HeldOutScore]) -> str:
    title = "Held-out words: mean log probability of a token (document completion)"
    left = max(len(score.model) for score in scores)
    rows = []
    for model, log_predictive, perplexity, difference in held_out_rows(scores):
        row = f"{model:<{left}}  {log_predictive}  perplexity {perplexity:<8}  {difference}"
        rows.append(row.rstrip())
    return "\n".join([_heading(title), *rows])


def held_out_rows(scores: Sequence[HeldOutScore]) -> list[tuple[str, str, str, str]]:
    """Model, score, perplexity and difference from the first model, as text."""
    rows = []
    for number, score in enumerate(scores):
        words = ""
        if number:
            words = f"{score.difference:+.4f} ± {score.difference_error:.4f} from the first"
            if abs(score.difference) < 2.0 * score.difference_error:
                words += ", too close to call"
        rows.append((score.model, f"{score.log_predictive:.4f}", f"{score.perplexity:.1f}", words))
    return rows

"""A report on a posterior of topics: as text for a terminal, and as one HTML page.

`topic_report` computes everything once; `as_text` and `as_html` show it. The page is a single file
without scripts or links. Its figures come from `pgmult.plots` where matplotlib is installed;
otherwise the same numbers stand in tables.
"""

import html
import math
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from io import BytesIO
from typing import Any, NamedTuple

import numpy as np

from pgmult import diagnostics, plots
from pgmult.corpus import Corpus
from pgmult.heldout import CompletionScore
from pgmult.posterior import ESS_PER_CHAIN_LIMIT, R_HAT_LIMIT, Posterior
from pgmult.summaries import (
    PairCorrelation,
    TopicCorrelations,
    TopicMatches,
    TopWord,
    match_topics,
    similar_together,
    strongest_pairs,
    top_words,
    topic_correlations,
    topic_labels,
)
from pgmult.typing import FloatArray, Link

__all__ = [
    "HeldOutScore",
    "TopicReport",
    "as_html",
    "as_text",
    "compare",
    "run_facts",
    "topic_report",
]


MOST_PANELS = 24  # topics, the largest, whose words are drawn; all are listed


class HeldOutScore(NamedTuple):
    """How well a model predicts held-out tokens.

    Attributes
    ----------
    model : str
    log_predictive : float
        Mean log probability of a token, in nats.
    difference, difference_error : float
        From the first model of the comparison, and its standard error over documents, paired.
    """

    model: str
    log_predictive: float
    difference: float
    difference_error: float

    @property
    def perplexity(self) -> float:
        """The number of equally likely words that would be as hard to predict."""
        return math.exp(-self.log_predictive)


def compare(scores: Mapping[str, CompletionScore], held_out: Corpus) -> list[HeldOutScore]:
    """Scores of several models on the same tokens, paired by document with the first one's.

    Parameters
    ----------
    scores : mapping from a model's name to its score
    held_out : Corpus
        The tokens scored.
    """
    totals = held_out.totals
    scored = totals > 0
    count = int(scored.sum())
    first = next(iter(scores.values())).by_document
    compared = []
    for model, score in scores.items():
        gains = (score.by_document - first)[scored]
        difference = float(gains.sum() / totals.sum())
        residuals = gains - difference * totals[scored]
        error = np.sqrt(np.sum(residuals**2) * count / max(1, count - 1)) / totals.sum()
        compared.append(HeldOutScore(model, score.log_predictive, difference, float(error)))
    return compared


@dataclass(frozen=True, slots=True, eq=False)
class TopicReport:
    """What is known about the topics of one run.

    Attributes
    ----------
    title : str
    facts : mapping from str to str
        The corpus, the model, the run: in the order in which they are shown.
    words : lists of TopWord, one a topic
        Of chain 0, as everything about single topics.
    shares : array, ``(topic,)``, or None
        Posterior mean share of all tokens.
    correlations : TopicCorrelations, or None for a model without Sigma
    held_out : sequence of HeldOutScore
    log_likelihood : array, ``(chain, draw)``
    findings : list of str
        Diagnostics in words.
    """

    title: str
    facts: Mapping[str, str]
    words: list[list[TopWord]]
    shares: FloatArray | None
    correlations: TopicCorrelations | None
    held_out: Sequence[HeldOutScore]
    log_likelihood: FloatArray
    findings: list[str]

    @property
    def by_size(self) -> list[int]:
        """Topics, the largest first; in their own order if shares were not kept."""
        if self.shares is None:
            return list(range(len(self.words)))
        return [int(k) for k in np.argsort(-self.shares, kind="stable")]


def topic_report(
    rng: np.random.Generator,
    posterior: Posterior,
    *,
    title: str,
    facts: Mapping[str, str] | None = None,
    held_out: Sequence[HeldOutScore] = (),
    link: Link | None = None,
    num_words: int = 8,
) -> TopicReport:
    """Summarise a posterior of topics.

    Parameters
    ----------
    rng : numpy.random.Generator
        For the simulated documents behind the correlations.
    posterior : Posterior
        With ``topics``; ``mu`` and ``Sigma`` for correlations and ``topic_shares`` for sizes.
    title : str
    facts : mapping from str to str, optional
    held_out : sequence of HeldOutScore
    link : Link, optional
        The model's link; `StickBreaking` by default.
    num_words : int
        Top words a topic.
    """
    has_correlations = "mu" in posterior and "Sigma" in posterior
    matches = match_topics(posterior) if posterior.num_chains > 1 else None
    return TopicReport(
        title=title,
        facts=dict(facts or {}),
        words=top_words(posterior, num_words),
        shares=posterior["topic_shares"][0].mean(axis=0) if "topic_shares" in posterior else None,
        correlations=topic_correlations(rng, posterior, link=link) if has_correlations else None,
        held_out=tuple(held_out),
        log_likelihood=np.asarray(posterior.sample_stats["log_likelihood"], dtype=np.float64),
        findings=_findings(posterior, matches),
    )


def run_facts(posterior: Posterior) -> dict[str, str]:
    """What a posterior knows of the run behind it, in words."""
    attrs = posterior.attrs
    run = f"{posterior.num_chains} x {posterior.num_draws} draws"
    if posterior.num_draws < attrs.get("draws", 0):
        run += f" (of {attrs['draws']} planned)"
    if "tune" in attrs:
        run += f" after {attrs['tune']} sweeps of tuning"
    if "seconds" in attrs:
        run += f", {max(attrs['seconds']):.0f} s"
    if "random_seed" in attrs:
        run += f", seed {attrs['random_seed']}"
    return {"topics": str(posterior["topics"].shape[2]), "run": run}


def _findings(posterior: Posterior, matches: TopicMatches | None) -> list[str]:
    """R-hat and effective sample sizes of what does not depend on labels, and topics matched."""
    chains, draws = posterior.num_chains, posterior.num_draws
    chain_words = f"{chains} chain{'s' if chains > 1 else ''} of {draws} draws"
    if draws < diagnostics.MIN_DRAWS:
        return [f"{chain_words}: too few for diagnostics."]
    findings = [f"{chain_words}."]
    scalars = {"log likelihood": posterior.sample_stats["log_likelihood"]} | {
        name.replace("_", " "): posterior[name]
        for name, dims in posterior.dims.items()
        if len(dims) == 2
    }
    for name, values in scalars.items():
        r_hat = float(diagnostics.r_hat(values))
        ess = float(diagnostics.ess_bulk(values))
        findings.append(
            f"{name}: R-hat {r_hat:.3f}, {_r_hat_in_words(r_hat, chains)};"
            f" worth {ess:.0f} independent draws of {chains * draws},"
            f" {_ess_in_words(ess, chains)}."
        )
    if matches is not None:
        distance = matches.distance[1:]
        apart = int(np.sum(distance.max(axis=0) > 0.5))
        findings.append(
            f"topics matched between chains: median total variation distance"
            f" {np.median(distance):.2f} (0 is the same topic, 1 has no word in common);"
            f" {apart} of {distance.shape[1]} topics have no counterpart within 0.5"
            " in some other chain."
        )
    return findings


def _r_hat_in_words(r_hat: float, chains: int) -> str:
    if math.isnan(r_hat):
        return "undefined (it never changed)"
    who = "the chains agree" if chains > 1 else "the two halves of the chain agree"
    if r_hat <= R_HAT_LIMIT:
        return who
    if r_hat <= 1.1:
        return f"{who} nearly (draw more for R-hat at most {R_HAT_LIMIT})"
    return f"{who.replace('agree', 'do not agree yet')} (tune and draw more)"


def _ess_in_words(ess: float, chains: int) -> str:
    if math.isnan(ess):
        return "undefined"
    if ess >= ESS_PER_CHAIN_LIMIT * chains:
        return "enough for means and intervals"
    if ess >= 10 * chains:
        return "enough for rough means"
    return "too few to rely on"


def as_text(report: TopicReport, *, width: int = 100) -> str:
    """The report for a terminal, in lines of at most about `width` characters."""
    blocks = [_heading(report.title)]
    if report.facts:
        left = max(map(len, report.facts))
        blocks.append("\n".join(f"{name:<{left}}  {fact}" for name, fact in report.facts.items()))
    blocks.append(
        _heading("Topics: top words, probability ± posterior sd")
        + "\n"
        + _topics_text(report, width)
    )
    if report.correlations is not None:
        blocks.append(_correlations_text(report, report.correlations))
    if report.held_out:
        blocks.append(_held_out_text(report.held_out))
    blocks.append(_heading("Diagnostics") + "\n" + "\n".join(f"- {f}" for f in report.findings))
    return "\n\n".join(blocks) + "\n"


def _heading(text: str) -> str:
    return f"{text}\n{'-' * len(text)}"


def _topics_text(report: TopicReport, width: int) -> str:
    lines = []
    for k in report.by_size:
        share = "" if report.shares is None else f" {100 * report.shares[k]:4.1f} %"
        line = f"{k:3d}{share} "
        indent = " " * len(line)
        for word in report.words[k]:
            piece = f" {word.word} {_probability(word)}"
            if len(line) + len(piece) > width:
                lines.append(line)
                line = indent
            line += piece
        lines.append(line)
    return "\n".join(lines)


def _probability(word: TopWord) -> str:
    """Such as .027±.002: without the zeros that every probability begins with."""
    return "±".join(f"{number:.3f}".removeprefix("0") for number in (word.mean, word.sd))


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
            lines.append(f"{_interval(pair)}  {labels[pair.first]}  |  {labels[pair.second]}")
    return "\n".join(lines)


def _interval(pair: PairCorrelation) -> str:
    return f"{pair.mean:+.2f} [{pair.lower:+.2f}, {pair.upper:+.2f}]"


def _held_out_text(scores: Sequence[HeldOutScore]) -> str:
    title = "Held-out words: mean log probability of a token (document completion)"
    left = max(len(score.model) for score in scores)
    rows = []
    for model, log_predictive, perplexity, difference in _held_out_rows(scores):
        row = f"{model:<{left}}  {log_predictive}  perplexity {perplexity:<8}  {difference}"
        rows.append(row.rstrip())
    return "\n".join([_heading(title), *rows])


def _held_out_rows(scores: Sequence[HeldOutScore]) -> list[tuple[str, str, str, str]]:
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


_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1c1c1c; background: #fff; margin: 2.5em auto;
  max-width: 62em; padding: 0 1.2em; }
h1 { font-size: 1.7em; margin: 0 0 .6em; } h2 { font-size: 1.15em; margin: 2em 0 .5em; }
h3 { font-size: 1em; margin: 1em 0 .2em; }
p.note { color: #555; margin: .2em 0 .8em; font-size: .9em; }
table { border-collapse: collapse; } td, th { padding: .22em .8em .22em 0; text-align: left;
  vertical-align: top; font-weight: normal; } th { color: #555; }
thead th { border-bottom: 1px solid #bbb; } td.number { text-align: right;
  font-variant-numeric: tabular-nums; white-space: nowrap; }
span.word { display: inline-block; margin-right: .9em; white-space: nowrap; }
span.word small { color: #777; font-variant-numeric: tabular-nums; }
table.matrix { margin-top: 1.5em; } table.matrix td { width: 2.6em; height: 2.2em; padding: 0;
  text-align: center; vertical-align: middle; font-size: .7em; }
table.matrix th { font-size: .8em; vertical-align: middle; padding: 0 .6em 0 0;
  white-space: nowrap; }
img, svg { max-width: 100%; height: auto; }
footer { margin-top: 3em; color: #777; font-size: .85em; }
"""


def as_html(report: TopicReport) -> str:
    """The report as one HTML page with everything in it."""
    from pgmult import __version__

    title = html.escape(report.title)
    labels = topic_labels(report.words)
    sections = [f"<h1>{title}</h1>", _rows((n, f) for n, f in report.facts.items())]
    if report.held_out:
        sections += [
            "<h2>Held-out words</h2>",
            _note(
                "Mean log probability, in nats, of a token that was held out, given the tokens of"
                " its document that were not; higher is better. Differences have a standard error"
                " over documents, paired."
            ),
            _rows(
                _held_out_rows(report.held_out),
                head=("model", "log p a token", "perplexity", "difference"),
            ),
        ]
    sections += [
        "<h2>Topics</h2>",
        _note("Largest first: share of all tokens, then the most probable words with posterior"
              " mean and standard deviation of their probabilities."),
        _topics_html(report, labels),
    ]  # fmt: skip
    if report.correlations is not None:
        sections += _correlations_html(report.correlations, labels)
    sections += ["<h2>Diagnostics</h2>", _list(report.findings)]
    sections.append(
        _figure("Log likelihood of the draws", plots.log_likelihood_trace, report.log_likelihood)
        or _polyline(report.log_likelihood)
    )
    body = "\n".join(sections)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n{body}\n"
        f"<footer>pgmult {__version__}</footer>\n</body>\n</html>\n"
    )


def _topics_html(report: TopicReport, labels: Sequence[str]) -> str:
    rows = []
    for k in report.by_size:
        share = "" if report.shares is None else f"{100 * report.shares[k]:.1f} %"
        words = "".join(
            f'<span class="word">{html.escape(word.word)}'
            f" <small>{_probability(word)}</small></span>"
            for word in report.words[k]
        )
        rows.append(
            f'<tr><td class="number">{k}</td><td class="number">{share}</td><td>{words}</td></tr>'
        )
    table = f"<table>{''.join(rows)}</table>"
    drawn = report.by_size[:MOST_PANELS]
    titles = [f"{k}: {labels[k]}" for k in drawn]
    panels = [report.words[k] for k in drawn]
    return table + _figure("Top words", plots.top_word_bars, panels, titles)


def _correlations_html(correlations: TopicCorrelations, labels: Sequence[str]) -> list[str]:
    percent = round(100 * correlations.probability)
    positive, negative = (
        _rows((_interval(p), labels[p.first], labels[p.second]) for p in pairs)
        for pairs in strongest_pairs(correlations)
    )
    return [
        "<h2>Topic correlations</h2>",
        _note(
            "Correlations over documents of simulated topic proportions, posterior mean and"
            f" {percent} % interval. Proportions sum to 1, so a correlation near"
            f" {-1 / (len(labels) - 1):.2f} is what unrelated topics of equal size would show."
        ),
        "<h3>Strongest positive</h3>" + positive if positive else "",
        "<h3>Strongest negative</h3>" + negative if negative else "",
        _figure("Topic correlations", plots.topic_correlation_heatmap, correlations, labels)
        or _matrix(correlations, labels),
    ]


def _figure(description: str, draw: Callable[..., Any], *arguments: Any) -> str:
    """A figure of `pgmult.plots` as an image in the page; nothing where matplotlib is missing."""
    if find_spec("matplotlib") is None:
        return ""
    drawn = draw(*arguments)
    buffer = BytesIO()
    getattr(drawn, "figure", drawn).savefig(buffer, format="png", dpi=130)
    data = b64encode(buffer.getvalue()).decode()
    return f'<p><img alt="{html.escape(description)}" src="data:image/png;base64,{data}"></p>'


def _matrix(correlations: TopicCorrelations, labels: Sequence[str]) -> str:
    """The correlation matrix, similar topics side by side, as coloured cells in hundredths."""
    limit = max(0.05, float(np.nanmax(np.abs(np.triu(correlations.mean, k=1)))))
    order = similar_together(correlations)
    rows = []
    for i in order:
        cells = ""
        for j in order:
            value = float(correlations.mean[i, j])
            if i == j or math.isnan(value):
                cells += "<td></td>"
            else:
                hue = "200,85,61" if value > 0.0 else "42,111,151"
                strength = min(1.0, abs(value) / limit)
                cells += f'<td style="background:rgba({hue},{strength:.2f})">{100 * value:.0f}</td>'
        rows.append(f"<tr><th>{html.escape(labels[i])}</th>{cells}</tr>")
    return f'<table class="matrix">{"".join(rows)}</table>'


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
    return f"<table>{f'<thead><tr>{top}</tr></thead>' if top else ''}{cells}</table>"


def _note(text: str) -> str:
    return f'<p class="note">{html.escape(text)}</p>'


def _list(sentences: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{html.escape(s)}</li>" for s in sentences) + "</ul>"

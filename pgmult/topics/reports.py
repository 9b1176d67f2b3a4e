"""The report on a run of topics, for a terminal and for a page.

The topics are those of the chain with the best log likelihood. Each is listed with its number (the
number that every function and command uses; in arrays of draws topic 1 is at place 0), named by
three words that distinguish it from the others, and compared with its counterparts in the other
chains. The largest topic comes first.

Of each column that prevalence depends on the first view is shown: shares at its labels and their
differences to the first one, by another column where the formula multiplies both; numbers make
curves, by the groups of the column that they are multiplied with, or of the first column of few
labels. All else is a call of `pgmult.topics.effects` away.
"""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pgmult.core.arguments import as_choice, as_kind, as_mapping, as_path
from pgmult.core.blas import one_blas_thread
from pgmult.core.comparison import Comparison, as_comparison
from pgmult.core.estimands import Estimand, places_of
from pgmult.core.figures.base import panels
from pgmult.core.figures.lines import Line, Lines
from pgmult.core.labels import value_texts
from pgmult.core.markup import Leading, Markup, joined, tag
from pgmult.core.reports import Report, Section, run_in_words
from pgmult.core.tabled import Column, Table, number, wrapped_pieces
from pgmult.core.typing import BoolArray, FloatArray, IntArray
from pgmult.core.validate import as_positive_int
from pgmult.formulas.language import names_in, parse
from pgmult.sampling import diagnostics
from pgmult.sampling.posterior import Posterior
from pgmult.topics.data.corpus import StructuredCorpus
from pgmult.topics.plots import trace
from pgmult.topics.runs import FEW_DRAWS, MERGED, as_draws, independent_draws, quantile
from pgmult.topics.scores.rivals import compare_with_rivals
from pgmult.topics.summaries import correlations, documents, effects
from pgmult.topics.summaries.checks import check
from pgmult.topics.summaries.content import FEW_TOKENS, GroupWords, content
from pgmult.topics.summaries.matching import aligned_chains, placed_draws
from pgmult.topics.summaries.stability import LIKELY, topic_stability
from pgmult.topics.summaries.words import SCORES, exclusivity, keywords, npmi, word_scores

__all__ = ["report"]

_JUDGED = 10  # most probable words of a topic, in its coherence and exclusivity
_NAMED = 3  # topics in the first sentence
_PAIRS = 5  # that go together most, and as many that avoid each other
_DRIFT_R_HAT = 1.2  # of a chain's halves, which differ above it
_STILL = 0.01  # nats a word that log likelihoods move, below which topics stay what they are
_FEW_LABELS = 5  # of a column whose labels are compared
_FEW_GROUPS = 3  # of curves in one panel
_MUCH, _LONG = 0.1, 10.0  # share of all words, and times the average, above which a text is long
_MOST_CELLS = 2e7  # documents times words, for checks that a report does unasked
_CHECKED_DRAWS, _DRAWS = 20, 400  # of checks, and of effects: enough for a first view
_SHARE_DRAWS = 4000  # of shares of topics, over all chains
_RATIO_LIMIT = 5.0  # of a logarithm to base 2: beyond it ratios are drawn at the edge
_SMALL = (240.0, 150.0)  # pixels of a curve beside others

Observed = list[tuple[IntArray, FloatArray]]
"""The documents of each group, and their values of a column."""

_STYLE = Markup("""
h3 { font-size: 1em; margin: 1em 0 .2em; } td, th { padding-right: .8em; }
svg { max-width: 100%; height: auto; }
.panels { grid-template-columns: repeat(auto-fill, minmax(250px, 1fr)); gap: .8em 1.2em; }
.panels figure { margin: 0; }
.panels figcaption { font-weight: normal; font-size: .85em; margin: 0; }
details { margin: .35em 0; } summary { cursor: pointer; } summary small { color: var(--soft); }
details figure { margin: .6em 0 .9em 1.2em; max-width: 50em; }
details figcaption { font-weight: normal; font-size: .85em; }
blockquote { margin: 0 0 .2em; padding-left: .8em; border-left: 3px solid var(--line); }
.faint td, .faint summary { color: var(--soft); font-style: italic; }
""")


@one_blas_thread()  # products here are small: threads of a BLAS wait for each other, busily
def report(
    run: Posterior, page: str | os.PathLike[str] | None = None, *, title: str = "Topics",
    facts: Mapping[str, str] | None = None, comparison: Comparison | bool = False,
    topic: int | None = None, by: str = "probability", num_words: int = 8, num_documents: int = 3,
    weight: str | None = None,
) -> Report:  # fmt: skip
    """Summarise a run: topics, their stability, effects of covariates, and the run itself.

    Parameters
    ----------
    run : Posterior
        With ``topics`` and ``topic_shares``; ``mu`` and ``Sigma`` for correlations, and
        ``theta`` or ``psi`` for documents.
    page : path, optional
        Where to write the report as an HTML page.
    title : str
    facts : mapping from str to str, optional
        Of the corpus and the run; those that the posterior knows if left out.
    comparison : Comparison or bool
        How well the model predicts words beside LDA and word frequencies: the result of `compare`,
        or True to compute it by short runs.
    topic : int, optional
        Number of one topic: its words, documents and correlations alone.
    by : {"probability", "frex"}
        What words are ranked by.
    num_words, num_documents : int
        Top words and representative documents of a topic.
    weight : str, optional
        Column that says how much each document counts in averages: see `effects`.

    Raises
    ------
    ValueError
        If there is no such topic, or correlations or documents need the posterior's model, and it
        does not know it.
    """
    as_kind(title, "title", str)
    page = None if page is None else as_path(page, "page")
    size = as_draws(run, "topics", "topic_shares")["topics"].shape[2]
    topic = None if topic is None else as_positive_int(topic, "topic", maximum=size)
    facts = {"topics": str(size), "run": run_in_words(run)} if facts is None else facts
    if "log_likelihood" not in run.sample_stats:
        raise ValueError("run must hold the log likelihood in its sample_stats")
    as_choice(by, "by", SCORES)
    count = as_positive_int(num_documents, "num_documents", minimum=0)
    facts, comparison = as_mapping(facts, "facts"), as_comparison(comparison)
    topics = _TopicTable(run, by, num_words, count)
    if topic is not None:
        return topics.of_topic(topic).save(page)
    sections, worth = [topics.section()], {"shares of topics": topics.worth}
    if "keyword_shares" in run:
        sections.append(_with_draws("Topics with keywords", keywords(run), run))
    how = ".report(comparison=True) does"
    compared = [f"The model was not compared with LDA and word frequencies: {how}."]
    if comparison:
        made = compare_with_rivals(run) if comparison is True else comparison
        compared, sections = made.sentences, [*sections, made.section()]
    about, more = _of_covariates(run, topics, weight, worth)
    together, pairs = _together(topics)
    quoted = [] if topics.quotes is None else [_documents(topics.quotes)]
    sections += [*more, topics.stability_section(), *pairs, *quoted, _diagnostics(run)]
    verdict = [
        topics.largest, *_long_document(run), *together, *about, *compared, *topics.words_of_most,
        topics.agreement, *_mixing(run, worth),
    ]  # fmt: skip
    return Report(title, verdict, sections, dict(facts), _STYLE).save(page)


# --------------------------------------------------------------------------- topics


class _TopicTable:
    """Summaries of all topics, the largest first, which their numbers name."""

    def __init__(self, run: Posterior, by: str, num_words: int, num_documents: int):
        stability = topic_stability(run)
        self.by, self.num_chains = by, run.num_chains
        self.chain = chain = stability.matches.reference + 1  # whose words are shown
        chains = aligned_chains(run, None, "topic_shares")
        draws = np.stack(list(placed_draws(run, "topic_shares", chains, _SHARE_DRAWS)))
        shares = np.stack([np.nanmean(draws, axis=0), np.nanstd(draws, axis=0)])
        order = np.argsort(-shares[0], kind="stable")
        self.numbers, self.shares = order + 1, shares[:, order]
        self.worth = independent_draws(draws, run.num_chains)[order]
        self.stability = stability.take(self.numbers)
        # another chain would find the topic, and its share rests on enough draws
        self.is_reliable = self.stability.is_likely & ~(self.worth < FEW_DRAWS)
        names = effects.topic_names(run, chain)
        self.names = [names[k] for k in order]
        scores = {name: word_scores(run, name, chain=chain) for name in SCORES}
        best = {name: of.top(num_words) for name, of in scores.items()}
        self.words = {name: [topics[k] for k in order] for name, topics in best.items()}
        probable = scores["probability"]
        top = probable.top(_JUDGED)
        self.common = probable.used_alike(shares[0], {word.word for of in top for word in of})
        self.exclusivity = exclusivity(probable.mean, _JUDGED)[order]
        corpus = documents.corpus_of(run)
        unknown = np.full(len(order), np.nan)
        self.coherence = unknown if corpus is None else npmi([top[k] for k in order], corpus)
        self.quotes: documents.Quotes | None = None
        if num_documents and ("theta" in run or "psi" in run):
            asked = self.numbers.tolist()
            self.quotes = documents.quotes(run, asked, num_documents, chain=chain)
        self.pairs: correlations.TopicCorrelations | None = None
        if "mu" in run and "Sigma" in run:
            self.pairs = correlations.topic_correlations(run).take(self.numbers).excess()

    @property
    def largest(self) -> str:
        """The largest topics of reliable shares, in a sentence."""
        reliable = np.flatnonzero(self.is_reliable)[:_NAMED].tolist()
        shares = 100.0 * self.shares[0]
        few = [f'"{self.names[k]}" ({shares[k]:.0f} % of all words)' for k in reliable]
        among = f"{len(self.names)} topics"
        if not few:
            names = ", ".join(f'"{name}"' for name in self.names[:_NAMED])
            text = f"Among the largest of {among}: {names}. No share is reliable yet."
        elif len(few) == len(self.names):
            text = f"All topics, the largest first: {', '.join(few)}."
        else:
            among += " whose shares are reliable" * (reliable != list(range(len(few))))
            text = f"The largest of {among}: {', '.join(few)}."
        return Leading(text, "topics-told")

    @property
    def words_of_most(self) -> list[str]:
        """Frequent words that most topics use alike, in a sentence, if any."""
        if not self.common:
            return []
        text = f"Frequent in most topics, whatever they are about: {', '.join(self.common)}."
        return [f"{text} A list of stop words with them (--stop-words FILE) leaves them out."]

    @property
    def agreement(self) -> str:
        """The agreement of chains, in a sentence."""
        stability, text = self.stability, self.stability.headline
        more = f"; {stability.breakdown}."
        if self.num_chains == 1:
            more = ": sample several chains to see which topics they agree on."
        elif stability.given_one_mode:
            more = "."
        elif not stability.matches.by_all.all():
            advice = 'more chains show how often each is found, and starts="shared" reads one mode'
            more += f" The others belong to modes that chains do not leave: {advice}."
        return Leading(f"{text[0].upper()}{text[1:]}{more}", "stability")

    def section(self) -> Section:
        """The table of topics."""
        cells = [f"{100 * x:.1f} ± {100 * sd:.1f}" for x, sd in self.shares.T]
        share, again, several = self.shares[0], self.stability.found_again, self.num_chains > 1
        columns = [
            Column("topic", self.numbers, "no."), Column("share", share, "share, %", cells),
            Column("share_sd", self.shares[1]),
        ]  # fmt: skip
        legend = ["share: of all words, posterior mean ± sd"]
        if several:
            best = f"those of chain {self.chain}, the best of {self.num_chains}"
            legend[0] += f", over the chains that found it; words and numbers are {best}"
        shown = [
            (Column("independent_draws", self.worth, "draws", number(0)),
             "draws: effective draws behind the share; a row in parentheses has fewer than"
             f" {FEW_DRAWS:.0f}, or another chain would probably not find its topic"),
            (Column("chains", self.stability.chains, "chains"),
             "chains: number of chains that found it"),
            (Column("apart", self.stability.mean_distance), ""),
            (Column("again", again, "again, %", [f"{p:.0f}" for p in np.clip(100 * again, 1, 99)]),
             "again: probability that one more chain finds it, at least"
             f" {100 * LIKELY:.0f} % outside parentheses"),
            (Column("npmi", self.coherence, "NPMI", number(2)),
             f"NPMI: do its {_JUDGED} most probable words share documents, 0 by chance, 1 always"),
            (Column("exclusivity", self.exclusivity, "exclusivity", number(1)),
             f"exclusivity: sum of FREX over its {_JUDGED} most probable words; FREX words are both"
             " frequent in a topic and exclusive to it"),
        ]  # fmt: skip
        for column, text in shown:
            if not np.isnan(column.values).all() and (several or column.name != "chains"):
                columns.append(column)
                legend += [text] * bool(text)
        narrow = Table("", columns, (~self.is_reliable).tolist())
        listed = {"words": (self.by, f"words by {self.by}"), "frex": ("frex", "words by FREX")}
        words = [
            Column(name, [" ".join(word.word for word in of) for of in self.words[which]], head)
            for name, (which, head) in listed.items() if name != self.by
        ]  # fmt: skip
        wide = [*columns[:3], *words, *columns[3:]]  # on a narrow screen the others scroll
        return Section(
            "Topics, the largest first", f"{'; '.join(legend)}.",
            table=replace(narrow, parts=wide), key="topics-told",
            lines=lambda width: self._text(narrow, width),
        )  # fmt: skip

    def _text(self, narrow: Table, width: int) -> str:
        """A row a topic, with its words in as many lines as they need."""
        cells = zip(narrow.head, *narrow.rows, strict=True)
        padded = [[cell.rjust(max(map(len, column))) for cell in column] for column in cells]
        starts = ["  ".join(row) + " " for row in zip(*padded, strict=True)]
        lines = ["", f"{starts[0]} words by {self.by}"]
        for start, topic in zip(starts[1:], self.words[self.by], strict=True):
            lines += wrapped_pieces(start, [word.word for word in topic], width)
        return "\n".join(lines)

    def stability_section(self) -> Section:
        """Distances of topics to their counterparts in other chains; nothing with one chain."""
        drawn = [self.stability.figure(self.names)] if self.num_chains > 1 else []
        note = drawn[0].caption if drawn else ""
        return Section("How stable the topics are", note, figures=drawn, shown=0, key="stability")

    def of_topic(self, topic: int) -> Report:
        """The report on one topic."""
        k = self.numbers.tolist().index(topic)
        facts = [f"{100 * self.shares[0, k]:.1f} % of all words"]
        if self.num_chains > 1:
            facts.append(f"{self.stability.chains[k]} of {self.num_chains} chains")
            again = self.stability.found_again[k]
            if not np.isnan(again):
                facts.append(f"found again with probability {again:.2f}")
        if not np.isnan(self.coherence).all():
            facts.append(f"NPMI {self.coherence[k]:.2f}")
        facts.append(f"exclusivity {self.exclusivity[k]:.2f} of {_JUDGED}")
        words = [(f"{word.mean:.3f} ± {word.sd:.3f}", word.word) for word in self.words[self.by][k]]
        above = f"Top words, {self.by} ± posterior sd within chain {self.chain}"
        sections = [Section(above, rows=words)]
        if self.quotes is not None:
            shown = [(_share_text(quote),) for quote in self.quotes.quotes[k]]
            above = "Documents with the largest share of it, posterior mean and 90 % interval"
            sections.append(Section(above, rows=shown))
        if self.pairs is not None:
            rows = [
                (str(pair), self.names[pair.first + pair.second - k])
                for pairs in correlations.strongest_pairs(self.pairs, len(self.names) ** 2)
                for pair in [pair for pair in pairs if k in pair[:2]][:_PAIRS]
            ]
            sections.append(Section("Topics beside it: correlation beyond sizes", rows=rows))
        return Report(f"Topic {self.names[k]}: {', '.join(facts)}", [], sections)


def _with_draws(title: str, made: Estimand, run: Posterior) -> Section:
    worth = independent_draws(made.draws, run.num_chains)
    return Section(title, table=effects.with_draws_column(made.table(), worth))


def _long_document(run: Posterior) -> list[str]:
    """Say which document has most of the words that shares are of, if one stands out so."""
    corpus = documents.corpus_of(run)
    if corpus is None or not corpus.num_tokens:
        return []
    longest = int(corpus.totals.argmax())
    share = corpus.totals[longest] / corpus.num_tokens
    if share <= max(_MUCH, _LONG / corpus.num_documents):
        return []
    name = longest + 1 if corpus.names is None else f'"{corpus.names[longest]}"'
    largely = "so that shares of all words are largely its own"
    advice = "leave it out, or cut it into pieces as long as other documents"
    return [f"Document {name} has {100 * share:.0f} % of all words, {largely}: {advice}."]


def _share_text(quote: documents.Quote) -> str:
    """Such as ``svd .91 [.85, .95]``."""
    mean, lower, upper = (f"{x:.2f}".removeprefix("0") for x in quote[1:4])
    return f"{quote.document} {mean} [{lower}, {upper}]"


def _documents(shown: documents.Quotes) -> Section:
    """Documents where topics are largest: texts to unfold, or names."""
    texts = [list(map(_share_text, of)) for of in shown.quotes]
    widest, has_texts, drawn = max(map(len, shown.names)), not shown.note, list[Markup]()
    for name, of, shares in zip(shown.names, shown.quotes, texts, strict=True):
        pairs = zip((tag("blockquote", quote.text or "") for quote in of), shares, strict=True)
        figures = [tag("figure", quoted, tag("figcaption", text)) for quoted, text in pairs]
        drawn.append(tag("details", tag("summary", name), figures))

    def lines(width: int) -> str:
        begun = zip((f"{name:<{widest}} " for name in shown.names), texts, strict=True)
        return "\n".join(line for start, of in begun for line in wrapped_pieces(start, of, width))

    note = "The documents with the largest share of each topic: posterior mean"
    return Section(
        "Representative documents", f"{note} [{100 * shown.probability:g} % interval].",
        head=("topic", "documents"), key="documents", lines=lines, is_drawn=has_texts,
        rows=list(zip(shown.names, map("  ".join, texts), strict=True)),
        figures=[joined(drawn)] if has_texts else [],
    )  # fmt: skip


def _together(topics: _TopicTable) -> tuple[list[str], list[Section]]:
    """Pairs of topics that occur together: reliable ones in a sentence, all in a table."""
    of, names, again = topics.pairs, topics.names, topics.is_reliable
    if of is None:
        return [], []

    def worth_of(pairs: Sequence[correlations.PairCorrelation]) -> FloatArray:
        draws = of.draws[:, [pair.first for pair in pairs], [pair.second for pair in pairs]]
        return independent_draws(draws, topics.num_chains)

    together, _ = correlations.strongest_pairs(of, len(names) ** 2)
    sure = [p for p in together if p.lower > 0.0 and again[p.first] and again[p.second]][:_PAIRS]
    most = [
        f'"{names[pair.first]}" with "{names[pair.second]}"'
        for pair, worth in zip(sure, worth_of(sure), strict=True) if not worth < FEW_DRAWS
    ][:2]  # fmt: skip
    said = Leading(f"Topics that go together most: {', '.join(most)}.", "together")
    pairs = [pair for some in correlations.strongest_pairs(of, _PAIRS) for pair in some]
    parts = [
        Column("correlation", [pair.mean for pair in pairs], "correlation", list(map(str, pairs))),
        Column("first", [names[pair.first] for pair in pairs], "of"),
        Column("second", [names[pair.second] for pair in pairs], "and"),
    ]
    section = Section(
        "Topics that go together (+) and that avoid each other (-)",
        "Correlation of two topics' shares over documents, less what shares that sum to one show"
        f" anyway: 0 where topics are unrelated. Posterior mean [{100 * of.probability:g} %"
        f" interval], {of.scope}. All pairs, similar topics side by side; a dot: the interval"
        " contains zero. Rest on a cell to read its correlation.",
        table=effects.with_draws_column(Table("", parts), worth_of(pairs)),
        figures=[of.figure()], key="together",
    )  # fmt: skip
    return [said] if most else [], [section]


# --------------------------------------------------------------------------- covariates


def _of_covariates(
    run: Posterior, topics: _TopicTable, weight: str | None, worth: dict[str, FloatArray]
) -> tuple[list[str], list[Section]]:
    """Effects of covariates, words by group, and checks; nothing without covariates.

    How many independent draws intervals of each kind rest on is added to `worth`.
    """
    verdict, sections, data = list[str](), list[Section](), documents.corpus_of(run)
    if not isinstance(data, StructuredCorpus) or "coefficients" not in run:
        return verdict, sections
    columns = data.design.columns
    levels = {str(name): columns.levels_of(j) for j, name in enumerate(columns.names)}
    few = [name for name, of in levels.items() if 0 < len(of) <= _FEW_LABELS]
    numbers = [name for name, of in levels.items() if not of]

    def shares(name: str, by: str | None = None) -> effects.TopicShares:
        made = effects.effects(run, name, by=by, weight=weight, max_draws=_DRAWS)
        return made.take(topics.numbers)

    for name in few:
        beside = _multiplied(data, name)
        by = next((other for other in few if other in beside), None)
        of_column, (first, *others) = shares(name, by), levels[name]
        if by is None or few.index(name) < few.index(by):  # or the same is there
            drawn, table = [replace(of_column.points(), caption="")], of_column.table()
            title = f"Shares by {name}{f' and {by}' if by else ''}"
            clear = not any(table.faint or [])  # else points are grey, whichever label they are of
            sections.append(Section(title, table=table, figures=drawn, is_drawn=clear, shown=0))
        varying = " and ".join(other for other in numbers if other in beside)
        over = f" Averages over {varying}, which the difference varies with." if varying else ""
        gaps: list[Any] = [of_column.difference(name, label, first) for label in others]
        for gap in gaps:
            title = f"{gap.term[:1].upper()}{gap.term[1:]} {gap.contrast}"
            title += f" by {by}" if by else ""
            is_named = topics.stability.is_likely & ~(gap.worth < FEW_DRAWS)
            verdict.append(Leading(_largest_difference(gap, title, is_named) + over, title))
            drawn = [replace(gap.points(), caption="")]
            sections.append(Section(title, table=gap.table(), figures=drawn, is_drawn=not by))
        if gaps:
            worth[f"differences by {name}"] = np.concatenate([gap.worth.ravel() for gap in gaps])
    has_shares = "theta" in run or "psi" in run
    for name in numbers:
        together = [other for other in few if other in _multiplied(data, name)]
        together += [other for other in few if len(levels[other]) <= _FEW_GROUPS]
        by = next(iter(together), None)
        curves = shares(name, by)
        of_curve = np.median(curves.worth.reshape(-1, len(topics.names)), axis=0)
        worth[f"curves along {name}"] = of_curve
        observed, is_rough = _observed(data, name, by), of_curve < FEW_DRAWS
        points = _plain_averages(run, data, observed, weight) if has_shares else []
        sections.append(_curves(curves, is_rough, observed, points))
        said = _largest_change(curves, observed, topics.stability.is_likely & ~is_rough)
        verdict += [Leading(sentence, sections[-1].title) for sentence in said]
    if data.design.terms:
        terms = effects.variance_shares(run)
        sections.append(_with_draws("What goes with random terms", terms, run))
    if data.content is not None and "group_topics" in run:
        groups = content(run)
        sections.append(_words(groups.compare(groups.groups[1], groups.groups[0], topics.numbers)))
    small = data.num_documents * data.num_words <= _MOST_CELLS
    if has_shares and MERGED not in run.attrs and small:
        named = [name for name in few if "group_topics" not in run]
        named += [] if data.content is None else [data.content.name]
        checks = check(run, groups=named or None, max_draws=_CHECKED_DRAWS)
        sections.append(replace(checks.section(), shown=0))
        verdict.append(Leading(checks.verdict, sections[-1].title))
    return verdict, sections


def _multiplied(data: StructuredCorpus, name: str) -> set[str]:
    """The columns that the formula multiplies with a column: its effect varies with them."""
    terms = parse(data.design.formula or "~ 1").terms
    products = [{n for factor in term for n in names_in(factor)} for term in terms if len(term) > 1]
    return {other for of in products if name in of for other in of if other != name}


def _largest_difference(gap: effects.TopicShares, title: str, is_reported: BoolArray) -> str:
    """Say whether any topic differs beyond its interval, and which of the named ones do most."""
    mean, (lower, upper) = gap.mean, gap.interval()
    differs = (lower > 0.0) | (upper < 0.0)
    topics = differs.reshape(-1, mean.shape[-1]).any(axis=0)
    interval = f"{100 * gap.probability:g} % interval"
    if not differs.any():
        rough = "" if is_reported.any() else ", and none of these is reliable yet"
        return f"{title}: no topic's share differs beyond its {interval}{rough}."
    text = f"{title}: {topics.sum()} of {len(topics)} topics differ beyond their {interval}"
    sure = np.argwhere(differs & is_reported)
    if not len(sure):
        return f"{text}; none of these differences is reliable yet."
    best = sorted(map(tuple, sure.tolist()), key=lambda at: -abs(mean[at]))[:3]
    labels = gap.columns_of(gap.axes[0])[gap.axes[0]] if mean.ndim > 1 else ()
    parts = ", ".join(
        f'"{gap.names[at[-1]]}"{"".join(f" ({gap.axes[0]} {labels[g]})" for g in at[:-1])}'
        f" {100 * mean[at]:+.1f} [{100 * lower[at]:+.1f}, {100 * upper[at]:+.1f}]"
        for at in best
    )
    among = "" if len(sure) == differs.sum() else "reliable "
    return f"{text}. The largest {among}differences, in percentage points: {parts}."


def _largest_change(curves: effects.TopicShares, observed: Observed, named: BoolArray) -> list[str]:
    """Say which reliable topic's share changes most along a number, where there are documents."""
    *groups, along, _ = curves.axes
    labels = curves.columns_of(along)[along]
    x, texts = places_of(labels), value_texts(list(labels))
    if np.asarray(labels).dtype.kind == "M":
        days = [text.partition("T")[0] for text in texts]
        texts = days if len(set(days)) == len(days) else texts
    else:  # the grid of a curve has values that no document has
        present = np.concatenate([values for _, values in observed])
        texts = value_texts([present[abs(present - place).argmin()] for place in x])
    names = curves.columns_of(groups[0])[groups[0]] if groups else [""]
    largest, said = 0.0, list[str]()
    for label, (_, values) in zip(names, observed, strict=True):
        of_group = curves.at(**{groups[0]: label}) if groups else curves
        inside = np.flatnonzero((x >= values.min()) & (x <= values.max()))
        for k in np.flatnonzero(named).tolist():
            mean = of_group.mean[inside, k]
            first, last = sorted((int(mean.argmin()), int(mean.argmax())))
            draws, size = of_group.draws[:, inside, k], float(abs(mean[last] - mean[first]))
            share_above = np.nanmean(draws[:, last] - draws[:, first] > 0.0)
            if size > largest and abs(share_above - 0.5) > 0.5 * curves.probability:
                largest, where = size, f", {groups[0]} {label}" if groups else ""
                ends = [f"{_in_percent(mean[i])} at {texts[inside[i]]}" for i in (first, last)]
                change = f"changes most: from {' to '.join(ends)}{where}"
                said = [f'Along {along}, the share of "{curves.names[k]}" {change}.']
    return said


def _in_percent(share: float) -> str:
    return f"{100.0 * share:.{int(share < 0.1)}f} %"


def _curves(
    shares: effects.TopicShares, is_rough: BoolArray, observed: Observed,
    points: Sequence[tuple[FloatArray, FloatArray]],
) -> Section:  # fmt: skip
    """Curves along a number, each where its group has documents, and plain averages beside them."""
    *groups, along, _ = shares.axes
    in_percent = replace(shares, draws=100.0 * shares.draws)
    tail = 0.5 * (1.0 - shares.probability)

    def cut(line: Line, topic: int) -> Line:
        """The line where its group has documents, and averages of these."""
        _, values = observed[line.colour]
        line = _inside(line, values)
        if not points:
            return line
        where, draws = points[line.colour]
        of_topic = 100.0 * draws[..., topic - 1]
        low, high = quantile(of_topic, [tail, 1.0 - tail], axis=0)
        return replace(line, points=(where, np.nanmean(of_topic, axis=0)), spread=(low, high))

    drawn = []
    names = zip(shares.columns_of("topic")["topic"], shares.names, is_rough.tolist(), strict=True)
    for k, name, rough in names:
        figure = in_percent.at(topic=k).curves(along)
        if len(figure.lines) == len(observed):
            figure = replace(figure, lines=[cut(line, k) for line in figure.lines])
        label = f"{name}{' (rough)' * rough}"
        drawn.append(replace(figure, size=_SMALL, has_legend=False, y_label=label).svg())
    labels = shares.columns_of(groups[0])[groups[0]] if groups else [""]
    keys = [Line(str(label), g, np.zeros(1), np.zeros(1)) for g, label in enumerate(labels)]
    few = f" Rough: most of a curve has fewer than {FEW_DRAWS:.0f} effective draws."
    averaged = " Points: plain averages of the documents, which a curve should pass."
    return Section(
        f"Along {along}{''.join(f', by {by}' for by in groups)}",
        f"{shares.caption} Shares in percent, each on its own scale.{averaged * bool(points)}"
        f"{few * bool(is_rough.any())}",
        figures=[joined(tag("ul", Lines(keys, "", "").keys(), class_="legend"), panels(drawn))],
        shown=0,
    )  # fmt: skip


def _observed(data: StructuredCorpus, name: str, by: str | None) -> Observed:
    """The documents of each group of a column, and their values of another one, dates in years."""
    columns = data.design.columns
    names = [str(column) for column in columns.names]
    values = places_of(columns.cells(names.index(name)))
    codes = np.zeros(len(values)) if by is None else columns.values[:, names.index(by)]
    rows = [np.flatnonzero(codes == group) for group in np.unique(codes)]
    return [(of_group, values[of_group]) for of_group in rows]


def _inside(line: Line, values: FloatArray) -> Line:
    """The part of a curve where its group has documents."""
    places = (line.x >= values.min()) & (line.x <= values.max())
    bands = [(low[places], high[places]) for low, high in line.bands]
    return replace(line, x=line.x[places], mean=line.mean[places], bands=bands)


def _plain_averages(
    run: Posterior, data: StructuredCorpus, observed: Observed, weight: str | None
) -> list[tuple[FloatArray, FloatArray]]:
    """Averages of the documents of each group along a column.

    Of a group: the mean value of the column in each part of its range, and draws of the shares
    there, ``(num_draws, part, topic)``.
    """
    codes, places = np.zeros(data.num_documents, dtype=np.int64), list[FloatArray]()
    for rows, values in observed:
        parts = documents.in_bins(values)
        codes[rows] = sum(map(len, places)) + parts
        places.append(np.bincount(parts, values) / np.bincount(parts))
    chains = aligned_chains(run, None, documents.source_of(run))
    draws = documents.averages(run, codes, chains, _DRAWS, weight)
    ends = np.cumsum([len(of_group) for of_group in places])[:-1]
    return list(zip(places, np.split(draws, ends, axis=1), strict=True))


def _words(compared: Sequence[GroupWords]) -> Section:
    first, second = compared[0].groups
    note = (
        f"The words that {first} and {second} use most differently within a topic: how many times"
        f" as probable they are with {first} (to the right) as with {second} (to the left),"
        f" posterior median and {100 * compared[0].probability:g} % interval, {compared[0].scope};"
        " then how often each group has them in 1,000 words. Greyed topics have fewer than"
        f" {FEW_TOKENS} tokens in a group, which say hardly anything; greyed words rest on fewer"
        f" than {FEW_DRAWS:.0f} effective draws."
    )
    ends = np.concatenate([[0.0], *(words.log_ratio.interval().ravel() for words in compared)])
    limit = min(_RATIO_LIMIT, max(1.0, float(np.quantile(np.abs(ends), 0.95))))
    drawn = []
    for words in compared:
        pairs = zip(words.tokens, words.groups, strict=True)
        tokens = " and ".join(f"{n:,.0f} tokens of {group}" for n, group in pairs)
        title = tag("summary", f"{words.name} ", tag("small", tokens))
        faint = "faint" if words.is_faint else None
        drawn.append(tag("details", title, words.figure(limit).svg(), class_=faint))
    return Section("Words by group", note, figures=[joined(drawn)], shown=0, key="words-by-group")


# --------------------------------------------------------------------------- chains


def _within(run: Posterior) -> Iterator[tuple[str, float, float, float]]:
    """Worst R-hat of a chain by itself, fewest effective draws and their median, of quantities."""
    values = {"log likelihood": run.sample_stats["log_likelihood"]}
    for name in ("effective_topics", "topic_shares"):
        if name in run:
            values[name.replace("_", " ")] = run[name]
    for name, draws in values.items():
        apart = np.moveaxis(np.asarray(draws, dtype=np.float64), 0, -1)[None]  # chains as entries
        r_hat, ess = (np.atleast_1d(of(apart)) for of in (diagnostics.r_hat, diagnostics.ess_bulk))
        if not np.isnan(r_hat).all():  # else it never changed
            yield name, float(np.nanmax(r_hat)), float(np.nanmin(ess)), float(np.nanmedian(ess))


def _mixing(run: Posterior, worth: Mapping[str, FloatArray]) -> list[str]:
    """Say how many intervals are reliable, and how to make the others so."""
    if run.num_draws < diagnostics.MIN_DRAWS:
        return [f"{run.num_draws} draws a chain are too few to rely on: draw more."]
    judged = {name: of for name, of in worth.items() if not np.isnan(of).all()}
    if not judged:  # nothing ever changed
        return []
    counts = [f"{(of >= FEW_DRAWS).sum()} of {of.size} {name}" for name, of in judged.items()]
    listed = " and ".join(filter(None, [", ".join(counts[:-1]), counts[-1]]))
    sentence = f"Reliable ({FEW_DRAWS:.0f} effective draws or more): {listed}."
    least = min(float(np.nanmin(of)) for of in judged.values())
    if least < FEW_DRAWS:
        needed = _rounded_up(run.num_draws * FEW_DRAWS / max(least, 1.0))
        more = f"continue the run to about {needed:,} draws a chain before you quote them"
        sentence += f" The others are in parentheses or grey: {more}."
    name, worst, *_ = next(_within(run))
    corpus, values = documents.corpus_of(run), np.asarray(run.sample_stats["log_likelihood"])
    first, second = values[:, : len(values[0]) // 2], values[:, len(values[0]) // 2 :]
    risen = float((second.mean(axis=1) - first.mean(axis=1)).max())
    moved = 0.0 if corpus is None else risen / max(corpus.num_tokens, 1)
    if moved > _STILL and name == "log likelihood" and worst > _DRIFT_R_HAT:
        rise = f"by {moved:.3f} nats a word from half to half: its topics are still forming"
        sentence += f" A chain's log likelihood still rises, {rise}."
    return [Leading(sentence, "diagnostics")]


def _rounded_up(draws: float) -> int:
    """A number of draws with one digit, or 15, 150 and so on."""
    size = 10.0 ** math.floor(math.log10(draws))
    return int(next(x * size for x in (1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0) if x * size >= draws))


def _diagnostics(run: Posterior) -> Section:
    """Diagnostics of each chain by itself: chains that start apart need not agree."""
    values = np.asarray(run.sample_stats["log_likelihood"], dtype=np.float64)
    chains = f"{run.num_chains} chain{'s' * (run.num_chains > 1)}"
    note = f"{chains} of {run.num_draws} draws, each by itself."
    if run.num_draws < diagnostics.MIN_DRAWS:
        return Section("Diagnostics", sentences=[f"{note} They are too few for diagnostics."])
    names, r_hats, fewest, medians = [*zip(*_within(run), strict=True)] or [(), (), (), ()]
    parts = [
        Column("quantity", names, "quantity"),
        Column("r_hat", r_hats, "largest split R-hat", number(3)),
        Column("draws", fewest, "fewest effective draws", number(0)),
        Column("median_draws", medians, "median", number(0)),
    ]
    figures = [trace(values)]
    return Section("Diagnostics", note, table=Table("", parts), figures=figures, key="diagnostics")

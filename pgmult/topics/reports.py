"""The report on a run of topics, for a terminal and for a page.

The topics are those of the chain with the best log likelihood. Each is listed with its number (the
number that every function and command uses; in arrays of draws topic 1 is at place 0), named by
three words that distinguish it from the others, and compared with its counterparts in the other
chains. The largest topic comes first.

Of each column that prevalence depends on the first view is shown: labels are compared with the
first of them, numbers make curves, by the groups of the first column of few labels. All else is a
call of `pgmult.topics.effects` away.
"""

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from pgmult.core.arguments import as_choice, as_flag, as_kind, as_mapping, as_path
from pgmult.core.blas import one_blas_thread
from pgmult.core.comparison import Comparison, as_comparison
from pgmult.core.estimands import are_numbers, places_of
from pgmult.core.figures.base import Figure, panels
from pgmult.core.figures.lines import Line, Lines
from pgmult.core.markup import Leading, Markup, joined, tag
from pgmult.core.reports import Report, Section, run_in_words
from pgmult.core.tabled import Column, Table, number, wrapped_pieces
from pgmult.core.typing import BoolArray, FloatArray, IntArray
from pgmult.core.validate import as_positive_int
from pgmult.sampling import diagnostics
from pgmult.sampling.posterior import Posterior
from pgmult.topics.data.corpus import Corpus, StructuredCorpus
from pgmult.topics.draws import FEW_DRAWS, MERGED, as_draws, independent_draws, quantile
from pgmult.topics.plots import trace
from pgmult.topics.scores.rivals import compare_with_rivals
from pgmult.topics.summaries.checks import check
from pgmult.topics.summaries.content import FEW_TOKENS, GroupWords, content
from pgmult.topics.summaries.correlations import (
    PairCorrelation,
    TopicCorrelations,
    strongest_pairs,
    topic_correlations,
)
from pgmult.topics.summaries.documents import (
    Quote,
    Quotes,
    averages,
    in_bins,
    quotes,
    source_of,
)
from pgmult.topics.summaries.effects import (
    TopicShares,
    document_weights,
    effects,
    topic_names,
    variance_shares,
    with_draws_column,
)
from pgmult.topics.summaries.matching import aligned_chains, placed_draws
from pgmult.topics.summaries.stability import LIKELY, TopicStability, topic_stability
from pgmult.topics.summaries.words import SCORES, TopWord, exclusivity, keywords, npmi, word_scores

__all__ = ["TopicReport", "report"]

_JUDGED = 10  # most probable words of a topic, in its coherence and exclusivity
_NAMED = 3  # topics in the first sentence
_PAIRS = 5  # that go together most, and as many that avoid each other
_DRIFT_R_HAT = 1.2  # of a chain's halves, which differ above it
_STILL = 0.01  # nats a word that log likelihoods move, below which topics stay what they are
_FEW_LABELS = 5  # of a column whose labels are compared
_FEW_GROUPS = 3  # of curves in one panel
_MOST_CELLS = 2e7  # documents times words, for checks that a report does unasked
_CHECKED_DRAWS, _DRAWS = 20, 400  # of checks, and of effects: enough for a first view
_SHARE_DRAWS = 4000  # of shares of topics, over all chains
_RATIO_LIMIT = 5.0  # of a logarithm to base 2: beyond it ratios are drawn at the edge
_SMALL = (240.0, 150.0)  # pixels of a curve beside others

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


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicReport(Report):
    """The report on a run of topics; print it for a text.

    Attributes
    ----------
    title, verdict, sections, facts, style
        As in `pgmult.core.reports.Report`.
    topics : mapping from a topic's number to the report on it alone
        The largest first.
    """

    topics: Mapping[int, Report]

    def topic(self, topic: int) -> Report:
        """The report on one topic, by its number."""
        return self.topics[as_positive_int(topic, "topic", maximum=len(self.topics))]


@one_blas_thread()  # products here are small: threads of a BLAS wait for each other, busily
def report(
    run: Posterior,
    page: str | os.PathLike[str] | None = None,
    *,
    title: str = "Topics",
    facts: Mapping[str, str] | None = None,
    comparison: Comparison | bool = False,
    reference: Corpus | None = None,
    by: str = "probability",
    num_words: int = 8,
    num_documents: int = 3,
    covariates: bool = True,
    weight: str | None = None,
    random_seed: int = 0,
) -> TopicReport:
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
    reference : Corpus, optional
        For the coherence of topics.
    by : {"probability", "frex"}
        What words are ranked by.
    num_words, num_documents : int
        Top words and representative documents of a topic.
    covariates : bool
        Whether to say what covariates do, where the model has any: it takes the longest.
    weight : str, optional
        Column that says how much each document counts in averages: see `effects`.
    random_seed : int
        Of the simulated documents behind the correlations.

    Raises
    ------
    ValueError
        If correlations or documents need the posterior's model, and it does not know it.
    """
    as_kind(title, "title", str)
    page = None if page is None else as_path(page, "page")
    as_draws(run, "topics", "topic_shares")
    if facts is None:
        size = run["topics"].shape[2]
        facts = {"topics": str(size), "run": run_in_words(run)}
    if "log_likelihood" not in run.sample_stats:
        raise ValueError("run must hold the log likelihood in its sample_stats")
    as_choice(by, "by", SCORES)
    count = as_positive_int(num_documents, "num_documents", minimum=0)
    covariates = as_flag(covariates, "covariates")
    facts, comparison = as_mapping(facts, "facts"), as_comparison(comparison)
    if comparison is True:
        comparison = compare_with_rivals(run, random_seed=random_seed)
    topics = _TopicTable.of(run, reference, by, num_words, count, random_seed)
    verdict, sections = [topics.largest], [topics.section()]
    if "keyword_shares" in run:
        named = keywords(run)
        table = with_draws_column(named.table(), independent_draws(named.draws, run.num_chains))
        sections.append(Section("Topics with keywords", table=table))
    if comparison is False:
        verdict.append(
            "The model was not compared with LDA and word frequencies:"
            " .report(comparison=True) does."
        )
    else:
        verdict += comparison.sentences
        sections.append(comparison.section())
    covariate_sentences, worth = list[str](), {"shares of topics": topics.worth}
    if covariates:
        covariate_sentences, covariate_sections, more = _of_covariates(
            run, topics, weight, random_seed
        )
        sections += covariate_sections
        worth |= more
    verdict[1:1] = covariate_sentences
    sections.append(topics.stability_section())
    if topics.correlations is not None:
        together, section = _correlations(topics)
        verdict[1:1] = together
        sections.append(section)
    verdict += [*topics.words_of_most, topics.agreement, *_mixing(run, worth)]
    if topics.documents is not None:
        sections.append(_documents(topics.documents))
    sections.append(_diagnostics(run))
    about = {k: topics.of_topic(place) for place, k in enumerate(topics.numbers.tolist())}
    made = TopicReport(title, verdict, sections, dict(facts), _STYLE, topics=about)
    made.save(page)
    return made


# --------------------------------------------------------------------------- topics


@dataclass(frozen=True, slots=True, eq=False)
class _TopicTable:
    """Summaries of all topics, the largest first, which their numbers name."""

    chain: int
    num_chains: int
    numbers: IntArray
    names: list[str]
    by: str
    words: list[list[TopWord]]
    common: list[str]
    frex: list[list[TopWord]]
    shares: FloatArray
    worth: FloatArray
    stability: TopicStability
    coherence: FloatArray | None
    exclusivity: FloatArray
    documents: Quotes | None
    correlations: TopicCorrelations | None

    @classmethod
    def of(
        cls,
        run: Posterior,
        reference: Corpus | None,
        by: str,
        num_words: int,
        num_documents: int,
        random_seed: int,
    ) -> "_TopicTable":
        stability = topic_stability(run)
        chain, correlations, documents = stability.matches.reference, None, None
        chains = aligned_chains(run, None, "topic_shares")
        draws = np.stack(list(placed_draws(run, "topic_shares", chains, _SHARE_DRAWS)))
        shares = np.stack([np.nanmean(draws, axis=0), np.nanstd(draws, axis=0)])
        order = np.argsort(-shares[0], kind="stable")
        numbers = order + 1
        scores = {name: word_scores(run, name, chain=chain + 1) for name in SCORES}
        best = {name: of.top(num_words) for name, of in scores.items()}
        words = {name: [topics[k] for k in order] for name, topics in best.items()}
        if num_documents and ("theta" in run or "psi" in run):
            documents = quotes(run, numbers.tolist(), num_documents, chain=chain + 1)
        if "mu" in run and "Sigma" in run:
            unsorted = topic_correlations(run, random_seed=random_seed)
            correlations = unsorted.take(numbers).excess()
        probable, names = scores["probability"], topic_names(run, chain + 1)
        most_probable = probable.top(_JUDGED)
        judged = [most_probable[k] for k in order]
        return cls(
            int(run.coords["chain"][chain]) + 1, run.num_chains, numbers,
            [names[k] for k in order], by, words[by],
            probable.used_alike(shares[0], {word.word for of in most_probable for word in of}),
            words["frex"], shares[:, order],
            independent_draws(draws, run.num_chains)[order], stability.take(numbers),
            None if reference is None else npmi(judged, reference),
            exclusivity(probable.mean, _JUDGED)[order], documents, correlations,
        )  # fmt: skip

    @property
    def is_reliable(self) -> BoolArray:
        """True where another chain would find the topic, and its share rests on enough draws."""
        return self.stability.is_likely & ~(self.worth < FEW_DRAWS)

    @property
    def largest(self) -> str:
        """The largest topics of reliable shares, in a sentence."""
        reliable = np.flatnonzero(self.is_reliable)[:_NAMED]
        few = [
            f'"{self.names[k]}" ({100.0 * self.shares[0, k]:.0f} % of all words)' for k in reliable
        ]
        among = f"{len(self.names)} topics"
        if not few:
            names = ", ".join(f'"{name}"' for name in self.names[:_NAMED])
            text = f"Among the largest of {among}: {names}. No share is reliable yet."
        elif len(few) == len(self.names):
            text = f"All topics, the largest first: {', '.join(few)}."
        else:
            among += " whose shares are reliable" * (int(reliable[-1]) >= _NAMED)
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
        text = f"{text[0].upper()}{text[1:]}"
        if self.num_chains == 1:
            text += ": sample several chains to see which topics they agree on."
        elif stability.given_one_mode:
            text += "."
        else:
            text += f"; {stability.breakdown}."
            if not stability.matches.by_all.all():
                text += (
                    " The others belong to modes that chains do not leave: more chains show how"
                    ' often each is found, and starts="shared" reads one mode.'
                )
        return Leading(text, "stability")

    def section(self) -> Section:
        """The table of topics."""
        cells = [f"{100 * x:.1f} ± {100 * sd:.1f}" for x, sd in self.shares.T]
        columns = [
            Column("topic", self.numbers, "no."),
            Column("share", self.shares[0], "share, %", cells),
            Column("share_sd", self.shares[1]),
        ]
        legend = ["share: of all words, posterior mean ± sd"]
        if not np.isnan(self.worth).all():
            columns.append(Column("independent_draws", self.worth, "draws", number(0)))
            legend.append(
                "draws: effective draws behind the share; a row in parentheses has fewer than"
                f" {FEW_DRAWS:.0f}, or another chain would probably not find its topic"
            )
        if self.num_chains > 1:
            columns += [
                Column("chains", self.stability.chains, "chains"),
                Column("apart", self.stability.mean_distance),
            ]
            legend.append("chains: number of chains that found it")
        again = self.stability.found_again
        if not np.isnan(again).any():
            cells = [f"{p:.0f}" for p in np.clip(100 * again, 1, 99)]
            columns.append(Column("again", again, "again, %", cells))
            legend.append(
                "again: probability that one more chain finds it, at least"
                f" {100 * LIKELY:.0f} % outside parentheses"
            )
        if self.coherence is not None:
            columns.append(Column("npmi", self.coherence, "NPMI", number(2)))
            legend.append(
                f"NPMI: do its {_JUDGED} most probable words share documents, 0 by chance, 1 always"
            )
        columns.append(Column("exclusivity", self.exclusivity, "exclusivity", number(1)))
        legend.append(
            f"exclusivity: sum of FREX over its {_JUDGED} most probable words; FREX words are both"
            " frequent in a topic and exclusive to it"
        )
        narrow = Table("", columns, (~self.is_reliable).tolist())
        words = [Column("words", list(map(_joined_words, self.words)), f"words by {self.by}")]
        if self.by != "frex":
            words.append(Column("frex", list(map(_joined_words, self.frex)), "words by FREX"))
        columns = [*columns[:3], *words, *columns[3:]]  # on a narrow screen the others scroll
        if self.num_chains > 1:
            legend[0] += (
                ", over the chains that found it; words and numbers are those of chain"
                f" {self.chain}, the best of {self.num_chains}"
            )
        return Section(
            "Topics, the largest first",
            f"{'; '.join(legend)}.", table=replace(narrow, parts=columns), key="topics-told",
            lines=lambda width: self._text(narrow, width),
        )  # fmt: skip

    def _text(self, narrow: Table, width: int) -> str:
        """A row a topic, with its words in as many lines as they need."""
        cells = zip(narrow.head, *narrow.rows, strict=True)
        padded = [[cell.rjust(max(map(len, column))) for cell in column] for column in cells]
        starts = ["  ".join(row) + " " for row in zip(*padded, strict=True)]
        lines = ["", f"{starts[0]} words by {self.by}"]
        for start, topic in zip(starts[1:], self.words, strict=True):
            lines += wrapped_pieces(start, [word.word for word in topic], width)
        return "\n".join(lines)

    def stability_section(self) -> Section:
        """Distances of topics to their counterparts in other chains; nothing with one chain."""
        drawn = [self.stability.figure(self.names)] if self.num_chains > 1 else []
        note = drawn[0].caption if drawn else ""
        return Section("How stable the topics are", note, figures=drawn, shown=0, key="stability")

    def of_topic(self, k: int) -> Report:
        """The report on one topic."""
        facts = [f"{100 * self.shares[0, k]:.1f} % of all words"]
        if self.num_chains > 1:
            facts.append(f"{self.stability.chains[k]} of {self.num_chains} chains")
            again = self.stability.found_again[k]
            if not np.isnan(again):
                facts.append(f"found again with probability {again:.2f}")
        if self.coherence is not None:
            facts.append(f"NPMI {self.coherence[k]:.2f}")
        facts.append(f"exclusivity {self.exclusivity[k]:.2f} of {_JUDGED}")
        words = [(f"{word.mean:.3f} ± {word.sd:.3f}", word.word) for word in self.words[k]]
        above = f"Top words, {self.by} ± posterior sd within chain {self.chain}"
        sections = [Section(above, rows=words)]
        if self.documents is not None:
            shown = [(_share_text(quote),) for quote in self.documents.quotes[k]]
            above = "Documents with the largest share of it, posterior mean and 90 % interval"
            sections.append(Section(above, rows=shown))
        if self.correlations is not None:
            rows = [
                (str(pair), self.names[pair.first + pair.second - k])
                for pairs in strongest_pairs(self.correlations, len(self.names) ** 2)
                for pair in [pair for pair in pairs if k in pair[:2]][:_PAIRS]
            ]
            sections.append(Section("Topics beside it: correlation beyond sizes", rows=rows))
        return Report(f"Topic {self.names[k]}: {', '.join(facts)}", [], sections)


def _joined_words(words: Iterable[Any]) -> str:
    return " ".join(word.word for word in words)


def _share_text(quote: Quote) -> str:
    """Such as ``svd .91 [.85, .95]``."""
    mean, lower, upper = (f"{x:.2f}".removeprefix("0") for x in quote[1:4])
    return f"{quote.document} {mean} [{lower}, {upper}]"


def _documents(shown: Quotes) -> Section:
    """Documents where topics are largest: texts to unfold, or names."""
    rows = [
        (name, "  ".join(map(_share_text, of)))
        for name, of in zip(shown.names, shown.quotes, strict=True)
    ]
    drawn = []
    if not shown.note:
        drawn = [
            _details(
                name,
                [
                    tag("figure", tag("blockquote", quote.text or ""),
                        tag("figcaption", _share_text(quote)))
                    for quote in of
                ],
            )
            for name, of in zip(shown.names, shown.quotes, strict=True)
        ]  # fmt: skip
    note = (
        "The documents with the largest share of each topic: posterior mean"
        f" [{100 * shown.probability:g} % interval]."
    )
    return Section(
        "Representative documents", note, head=("topic", "documents"), rows=rows,
        figures=[joined(drawn)] if drawn else [], is_drawn=bool(drawn), key="documents",
    )  # fmt: skip


def _details(title: str | Markup, inside: object, **attributes: object) -> Markup:
    """Content that a reader unfolds."""
    shown = inside.svg() if isinstance(inside, Figure) else inside
    return tag("details", tag("summary", title), shown, **attributes)


def _correlations(topics: _TopicTable) -> tuple[list[str], Section]:
    """Pairs of topics that occur together: reliable ones in a sentence, all in a table."""
    correlations, names = cast(TopicCorrelations, topics.correlations), topics.names
    again = topics.is_reliable

    def worth_of(pairs: Sequence[PairCorrelation]) -> FloatArray:
        places = [pair.first for pair in pairs], [pair.second for pair in pairs]
        return independent_draws(correlations.draws[:, places[0], places[1]], topics.num_chains)

    together, _ = strongest_pairs(correlations, len(names) ** 2)
    sure = [p for p in together if p.lower > 0.0 and again[p.first] and again[p.second]][:_PAIRS]
    most = [
        f'"{names[pair.first]}" with "{names[pair.second]}"'
        for pair, worth in zip(sure, worth_of(sure), strict=True)
        if not worth < FEW_DRAWS
    ]
    sentences = list[str]()
    if most:
        sentences.append(
            Leading(f"Topics that go together most: {', '.join(most[:2])}.", "together")
        )
    likely, unlikely = strongest_pairs(correlations, _PAIRS)
    pairs = [*likely, *unlikely]
    parts = [
        Column("correlation", [pair.mean for pair in pairs], "correlation", list(map(str, pairs))),
        Column("first", [names[pair.first] for pair in pairs], "of"),
        Column("second", [names[pair.second] for pair in pairs], "and"),
    ]
    table = with_draws_column(Table("", parts), worth_of(pairs))
    note = (
        "Correlation of two topics' shares over documents, less what shares that sum to one show"
        " anyway: 0 where topics are unrelated. Posterior mean"
        f" [{100 * correlations.probability:g} % interval], {correlations.scope}. All pairs,"
        " similar topics side by side; a dot: the interval contains zero. Rest on a cell to read"
        " its correlation."
    )
    return sentences, Section(
        "Topics that go together (+) and that avoid each other (-)", note, table=table,
        figures=[correlations.figure()], key="together",
    )  # fmt: skip


# --------------------------------------------------------------------------- covariates


def _of_covariates(
    run: Posterior, topics: _TopicTable, weight: str | None, random_seed: int
) -> tuple[list[str], list[Section], dict[str, FloatArray]]:
    """Effects of covariates, words by group, and checks; nothing without covariates.

    At last how many independent draws intervals of each kind rest on.
    """
    verdict, sections, worth = list[str](), list[Section](), dict[str, FloatArray]()
    try:
        data: object = run.data
    except ValueError:  # draws that know of no data
        data = None
    if not isinstance(data, StructuredCorpus) or "coefficients" not in run:
        return verdict, sections, worth
    columns = data.design.columns
    levels = {str(name): columns.levels_of(j) for j, name in enumerate(columns.names)}
    few = {name: of for name, of in levels.items() if 0 < len(of) <= _FEW_LABELS}

    def shares(name: str, by: str | None = None) -> TopicShares:
        made = effects(run, name, by=by, weight=weight, max_draws=_DRAWS, random_seed=random_seed)
        return made.take(topics.numbers)

    for name, labels in few.items():
        of_column = shares(name)
        for label in labels[1:]:
            gap = cast(TopicShares, of_column.difference(name, label, labels[0]))
            title = f"{gap.term[:1].upper()}{gap.term[1:]} {gap.contrast}"
            is_named = topics.stability.is_likely & (gap.worth.ravel() >= FEW_DRAWS)
            if np.isnan(gap.worth).all():  # too few draws for diagnostics
                is_named = topics.stability.is_likely
            verdict.append(Leading(_largest_difference(gap, title, is_named), title))
            drawn = replace(gap.figure(), caption="")
            sections.append(Section(title, table=gap.table(), figures=[drawn], is_drawn=True))
            worth[f"differences by {name}"] = gap.worth
    by = next((name for name, of in few.items() if len(of) <= _FEW_GROUPS), None)
    has_shares = "theta" in run or "psi" in run
    for name in (name for name, of in levels.items() if not of):
        curves = shares(name, by)
        of_curve = np.median(curves.worth.reshape(-1, len(topics.names)), axis=0)
        worth[f"curves along {name}"] = of_curve
        inside = _observed(data, name, by)
        plain = _plain_averages(run, data, name, by, weight) if has_shares else []
        sections.append(_curves(curves, of_curve < FEW_DRAWS, inside, plain))
    if data.design.terms:
        terms = variance_shares(run)
        table = with_draws_column(terms.table(), independent_draws(terms.draws, run.num_chains))
        sections.append(Section("What goes with random terms", table=table))
    if data.content is not None and "group_topics" in run:
        groups = content(run)
        sections.append(_words(groups.compare(groups.groups[1], groups.groups[0], topics.numbers)))
    if (
        has_shares
        and MERGED not in run.attrs
        and data.num_documents * data.num_words <= _MOST_CELLS
    ):
        named: list[str] = [name for name in few if "group_topics" not in run]
        if data.content is not None:
            named = [*named, data.content.name]
        checks = check(run, groups=named or None, max_draws=_CHECKED_DRAWS, random_seed=random_seed)
        section = checks.section()
        verdict.append(Leading(checks.verdict, section.title))
        sections.append(replace(section, shown=0))
    return verdict, sections, worth


def _largest_difference(gap: TopicShares, title: str, is_reported: BoolArray) -> str:
    """Say whether any topic differs beyond its interval, and which of the named ones do most."""
    mean, (lower, upper) = gap.mean, gap.interval()
    differs = (lower > 0.0) | (upper < 0.0)
    interval = f"{100 * gap.probability:g} % interval"
    if not differs.any():
        return f"{title}: no topic's share differs beyond its {interval}."
    text = f"{title}: {differs.sum()} of {len(mean)} topics differ beyond their {interval}"
    sure = np.flatnonzero(differs & is_reported)
    if not len(sure):
        return f"{text}; none of these differences is reliable yet."
    best = sure[np.argsort(-np.abs(mean[sure]))][:3]
    parts = ", ".join(
        f'"{gap.names[k]}" {100 * mean[k]:+.1f} [{100 * lower[k]:+.1f}, {100 * upper[k]:+.1f}]'
        for k in best
    )
    among = "" if len(sure) == differs.sum() else "reliable "
    return f"{text}. The largest {among}differences, in percentage points: {parts}."


def _places_and_groups(
    data: StructuredCorpus, name: str, by: str | None
) -> tuple[FloatArray, FloatArray]:
    """Values of a column, dates in years, and the groups of another one."""
    columns = data.design.columns
    names = [str(column) for column in columns.names]
    values = places_of(columns.cells(names.index(name)))
    return values, np.zeros(len(values)) if by is None else columns.values[:, names.index(by)]


def _observed(data: StructuredCorpus, name: str, by: str | None) -> list[tuple[float, float]]:
    """The least and the largest value of a column in each group of another one."""
    values, codes = _places_and_groups(data, name, by)
    return [(values[codes == g].min(), values[codes == g].max()) for g in np.unique(codes)]


def _plain_averages(
    run: Posterior, data: StructuredCorpus, name: str, by: str | None, weight: str | None
) -> list[tuple[FloatArray, FloatArray]]:
    """Averages of documents along a column, for each group of another one.

    Of a group: the mean value of the column in each part of its range, and draws of the shares
    there, ``(num_draws, part, topic)``.
    """
    values, groups = _places_and_groups(data, name, by)
    weights = None if weight is None else document_weights(data, weight)
    chains = aligned_chains(run, None, source_of(run))
    cells = np.column_stack([groups, in_bins(values)])
    cells, codes = np.unique(cells, axis=0, return_inverse=True)
    codes = codes.ravel()
    draws = averages(run, codes, chains, _DRAWS, weights)
    places = np.bincount(codes, values) / np.bincount(codes)
    return [
        (places[cells[:, 0] == group], draws[:, cells[:, 0] == group])
        for group in np.unique(groups)
    ]


def _beside(line: Line, plain: tuple[FloatArray, FloatArray], topic: int, tail: float) -> Line:
    """A curve with the averages of the documents beside it, in percent; topics from 0."""
    places, draws = plain
    of_topic = 100.0 * draws[..., topic]
    low, high = quantile(of_topic, [tail, 1.0 - tail], axis=0)
    return replace(line, points=(places, np.nanmean(of_topic, axis=0)), spread=(low, high))


def _inside(line: Line, ends: tuple[float, float]) -> Line:
    """The part of a curve where its group has documents."""
    places = (line.x >= ends[0]) & (line.x <= ends[1])
    bands = [(low[places], high[places]) for low, high in line.bands]
    return replace(line, x=line.x[places], mean=line.mean[places], bands=bands)


def _curves(
    shares: TopicShares,
    is_rough: BoolArray,
    observed: Sequence[tuple[float, float]],
    plain: Sequence[tuple[FloatArray, FloatArray]],
) -> Section:
    *groups, along, _ = shares.axes
    in_percent = replace(shares, draws=100.0 * shares.draws)
    numbers = shares.columns_of("topic")["topic"]

    def curve(topic: int) -> Lines:
        lines = in_percent.at(topic=topic).curves(along)
        if are_numbers(shares.columns_of(along)[along]) and len(lines.lines) == len(observed):
            cut = [_inside(line, observed[line.colour]) for line in lines.lines]
            if plain:
                tail = 0.5 * (1.0 - shares.probability)
                cut = [_beside(line, plain[line.colour], topic - 1, tail) for line in cut]
            return replace(lines, lines=cut)
        return lines

    drawn = [
        replace(
            curve(k), size=_SMALL, has_legend=False, y_label=f"{name}{' (rough)' * rough}"
        ).svg()
        for k, name, rough in zip(numbers, shares.names, is_rough.tolist(), strict=True)
    ]  # fmt: skip
    labels = shares.labels[groups[0]] if groups else [""]
    names = [Line(str(label), g, np.zeros(1), np.zeros(1)) for g, label in enumerate(labels)]
    few = f" Rough: most of a curve has fewer than {FEW_DRAWS:.0f} effective draws."
    few *= bool(is_rough.any())
    legend = tag("ul", Lines(names, "", "").keys(), class_="legend")
    points = " Points: plain averages of the documents, which a curve should pass." * bool(plain)
    return Section(
        f"Along {along}{''.join(f', by {by}' for by in groups)}",
        f"{shares.caption} Shares in percent, each on its own scale.{points}{few}",
        figures=[joined(legend, panels(drawn))], shown=0,
    )  # fmt: skip


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
        title = joined(f"{words.name} ", tag("small", tokens))
        faint = "faint" if words.is_faint else None
        drawn.append(_details(title, words.figure(limit), class_=faint))
    return Section("Words by group", note, figures=[joined(drawn)], shown=0, key="words-by-group")


# --------------------------------------------------------------------------- chains


def _within(run: Posterior) -> Iterator[tuple[str, float, float, float]]:
    """Worst R-hat of a chain by itself, fewest effective draws and their median, of quantities."""
    values = {"log likelihood": run.sample_stats["log_likelihood"]}
    for name in ("effective_topics", "topic_shares"):
        if name in run:
            values[name.replace("_", " ")] = run[name]
    for name, draws in values.items():
        alone = [np.asarray(draws)[c : c + 1] for c in range(run.num_chains)]
        r_hat = np.concatenate([np.atleast_1d(diagnostics.r_hat(one)) for one in alone])
        ess = np.concatenate([np.atleast_1d(diagnostics.ess_bulk(one)) for one in alone])
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
        sentence += (
            f" The others are in parentheses or grey: continue the run to about {needed:,} draws a"
            " chain before you quote them."
        )
    name, worst, *_ = next(_within(run))
    moved = _drift(run)
    if moved is not None and moved > _STILL and name == "log likelihood" and worst > _DRIFT_R_HAT:
        sentence += (
            f" A chain's log likelihood still rises, by {moved:.3f} nats a word from half to"
            " half: its topics are still forming."
        )
    return [Leading(sentence, "diagnostics")]


def _rounded_up(draws: float) -> int:
    """A number of draws with one digit, or 15, 150 and so on."""
    size = 10.0 ** math.floor(math.log10(draws))
    return int(next(x * size for x in (1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0) if x * size >= draws))


def _drift(run: Posterior) -> float | None:
    """Largest rise of a chain's log likelihood between its halves, nats a word."""
    try:
        size = run.data.num_tokens
    except (AttributeError, ValueError):
        return None  # draws that do not know their data
    values = np.asarray(run.sample_stats["log_likelihood"])
    half = values.shape[1] // 2
    moved = values[:, half:].mean(axis=1) - values[:, :half].mean(axis=1)
    return float(moved.max() / max(size, 1))


def _diagnostics(run: Posterior) -> Section:
    """Diagnostics of each chain by itself: chains that start apart need not agree."""
    values = np.asarray(run.sample_stats["log_likelihood"], dtype=np.float64)
    chains = f"{run.num_chains} chain{'s' * (run.num_chains > 1)}"
    note = f"{chains} of {run.num_draws} draws, each by itself."
    if run.num_draws < diagnostics.MIN_DRAWS:
        return Section("Diagnostics", sentences=[f"{note} They are too few for diagnostics."])
    columns = [*zip(*_within(run), strict=True)] or [(), (), (), ()]
    table = Table(
        "",
        [
            Column("quantity", columns[0], "quantity"),
            Column("r_hat", columns[1], "largest split R-hat", number(3)),
            Column("draws", columns[2], "fewest effective draws", number(0)),
            Column("median_draws", columns[3], "median", number(0)),
        ],
    )
    return Section("Diagnostics", note, table=table, figures=[trace(values)], key="diagnostics")

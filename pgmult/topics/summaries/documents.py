"""Topic proportions of documents: posterior means, intervals, and the documents of each topic.

They are read from draws of ``theta``, or made of draws of ``psi`` by the link of the posterior's
model; a run keeps one or the other where ``keep=`` of `pgmult.sample` names it.

Quotes are the documents that are most about a topic, in their own words.
"""

import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from pgmult.core.answers import Answer
from pgmult.core.arguments import as_list, as_probability
from pgmult.core.estimands import Estimand
from pgmult.core.labels import is_missing, value_texts
from pgmult.core.tabled import Column, Table, number, with_interval
from pgmult.core.tables import chosen_columns
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_positive_int
from pgmult.sampling.posterior import Posterior
from pgmult.topics.data.corpus import Corpus
from pgmult.topics.data.documents import DocumentTable
from pgmult.topics.runs import as_draws, mean_of, not_kept, quantile, topic_places
from pgmult.topics.summaries import effects
from pgmult.topics.summaries.matching import AlignedChain, aligned_chains, each_aligned, scope_of

_BLOCK = 2**24  # numbers in memory at a time
_HELD = 10**7  # numbers that an answer holds of its draws; of more documents it holds fewer draws
_MOST_VALUES = 100  # of a column that shares are averaged by
_BINS = 8  # of a number that averages are beside a curve of
_DRAWN = 20  # documents in a figure
_IDENTIFYING, _SHORT = 3, 24  # columns that identify a document, and characters of their cells


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DocumentTopics(Answer):
    """Posterior of the topic proportions of some documents.

    Attributes
    ----------
    documents : list of str
        Their names, or numbers from 1 where they have none.
    mean, sd, lower, upper : arrays, ``(document, topic)``
        Posterior mean, standard deviation, and the ends of the central interval.
    probability : float
        Of the interval.
    scope : str
        What the interval is over: draws within one chain, or over the chains that found a topic.
    draws : array, ``(num_draws, document, topic)``
        Evenly spread; fewer of many documents.
    """

    documents: list[str]
    mean: FloatArray
    sd: FloatArray
    lower: FloatArray
    upper: FloatArray
    probability: float
    scope: str
    draws: FloatArray

    def __repr__(self) -> str:
        documents, topics = self.mean.shape
        return f"DocumentTopics({documents:,} documents, {topics} topics; {self.scope})"

    def figure(self) -> Any:
        """Draw the shares in the first twenty documents."""
        topics = range(1, self.mean.shape[1] + 1)
        labels: dict[str, Any] = {"document": self.documents[:_DRAWN], "topic": topics}
        how: Any = {"caption": self.table().caption, "probability": self.probability}
        return Estimand(self.draws[:, :_DRAWN], (*labels,), labels, **how).figure()

    def table(self) -> Table:
        """One row per document and topic."""
        documents, topics = self.mean.shape
        title = f"Shares of topics, {100 * self.probability:g} % intervals {self.scope}."
        columns = [
            Column("document", np.repeat(self.documents, topics), "document"),
            Column("topic", np.tile(np.arange(1, topics + 1), documents), "topic"),
        ]
        for name in ("mean", "sd", "lower", "upper"):
            columns.append(Column(name, getattr(self, name).ravel(), name, number(4)))
        return Table(title, columns)


def document_topics(
    run: Posterior, documents: Sequence[int | str] | IntArray | None = None, *,
    chain: int | None = None, max_draws: int = 200, probability: float = 0.9,
) -> DocumentTopics:  # fmt: skip
    """Mean, sd and interval of the proportions of each topic in each document.

    Parameters
    ----------
    run : Posterior
        With ``theta`` or ``psi``.
    documents : sequence of int or str, optional
        Numbers, from 1, or names; all documents if left out.
    chain : int, optional
        One chain alone, by its number from 1. If left out, chains are aligned topic by topic
        with the best one, and each topic's draws are those of the chains that found it.
    max_draws : int
        Draws to use at most, evenly spread over chains.
    probability : float in (0, 1)

    Raises
    ------
    ValueError
        If neither variable was kept, a document is unknown, or there is psi alone and the posterior
        does not know its model.
    """
    probability = as_probability(probability, "probability")
    max_draws = as_positive_int(max_draws, "max_draws")
    chains = aligned_chains(run, chain, source_of(run))
    num_documents, num_topics = next(each_theta(run, None, chains, 1)).shape
    labels = np.asarray(run.coords.get("document", range(num_documents)))
    names = [str(label) for label in (labels if labels.dtype.kind == "U" else labels + 1)]
    rows = _rows(names, range(1, num_documents + 1) if documents is None else documents)
    moments, held = [], []
    every = max(1, math.ceil(max_draws * len(rows) * num_topics / _HELD))
    size = max(1, _BLOCK // (max_draws * num_topics))
    for start in range(0, len(rows), size):
        block = rows[start : start + size]
        theta = np.stack(list(each_theta(run, block, chains, max_draws)))
        moments.append(moments_of(theta, probability))
        held.append(theta[::every])
    mean, sd, lower, upper = np.concatenate(moments, axis=1)
    return DocumentTopics(
        [names[d] for d in rows], mean, sd, lower, upper, probability, scope_of(chains),
        np.concatenate(held, axis=1),
    )  # fmt: skip


def moments_of(theta: FloatArray, probability: float) -> FloatArray:
    """Mean, sd and the ends of an interval, of draws of theta along the first axis."""
    tail = 0.5 * (1.0 - probability)
    ends = quantile(theta, [tail, 1.0 - tail], axis=0)
    return np.stack([np.nanmean(theta, axis=0), np.nanstd(theta, axis=0), *ends])


def source_of(run: Posterior) -> str:
    """The variable that proportions are read from, or made of."""
    for name in ("theta", "psi"):
        if name in as_draws(run):
            return name
    raise not_kept(run, "'theta' or 'psi'")


def each_theta(
    run: Posterior, rows: IntArray | None, chains: list[AlignedChain], max_draws: int
) -> Iterator[FloatArray]:
    """Proportions in some documents, or all, draw by draw; nan of topics a chain did not find."""
    name = source_of(run)
    for one, draw in each_aligned(run, name, chains, max_draws):
        chosen = draw if rows is None else draw[rows]
        yield one.place(chosen if name == "theta" else run.link.probs(chosen))


def _rows(names: list[str], documents: Sequence[int | str] | IntArray | range) -> IntArray:
    """Places of documents given by number, from 1, or by name."""
    numbers = {name: d for d, name in enumerate(names, 1)}
    asked = as_list(documents, "documents", "numbers or names")
    rows = [numbers.get(of, 0) if isinstance(of, str) else of for of in asked]
    for document, row in zip(asked, rows, strict=True):
        if not 0 < as_positive_int(row, "documents", minimum=-1) <= len(names):
            raise ValueError(f"documents must be among the {len(names)}, got {document!r}")
    if not rows:
        raise ValueError("documents must name at least one, got none")
    return np.asarray(rows, dtype=np.int64) - 1


def shares(
    run: Posterior, by: str, *, weight: str | None = None, chain: int | None = None,
    max_draws: int = 400, probability: float = 0.9,
) -> effects.TopicShares:  # fmt: skip
    """Average shares of topics in the documents with each value of a column.

    These are plain averages, whatever prevalence depends on: look at them beside curves, which a
    formula may draw too straight.

    Parameters
    ----------
    run : Posterior
        A run with ``theta`` or ``psi``, of documents with columns.
    by : str
        Column of the documents, such as a year or a party.
    weight : str, optional
        Column that says how much each document counts, such as how many it stands for.
    chain : int, optional
        One chain alone, by its number from 1; by default chains are aligned, and each topic's
        draws are those of the chains that found it.
    max_draws : int
        Draws to use at most, evenly spread over chains.
    probability : float in (0, 1)
        Probability of the intervals.

    Returns
    -------
    TopicShares
        Axes `by` and topic.

    Raises
    ------
    ValueError
        If there is no such column, or it has more than a hundred values.
    """
    cells = np.asarray(chosen_columns(effects.columns_of(run.data), [by], "the corpus", "by")[by])
    labels = cells if cells.dtype.kind in "biufM" else np.array([str(cell) for cell in cells])
    values, codes = np.unique(labels, return_inverse=True)
    if len(values) > _MOST_VALUES:
        got = f"{len(values)} of {by!r} (round it, to decades or ten groups of equal size)"
        raise ValueError(f"by must be a column of at most {_MOST_VALUES} values, got {got}")
    chains = aligned_chains(run, chain, source_of(run))
    draws = averages(run, codes, chains, max_draws, weight)
    return effects.TopicShares(
        draws, (by, "topic"), {by: values.tolist(), "topic": effects.topic_labels(run, chain)},
        caption=f"Average shares of topics in documents by {by}, {scope_of(chains)}.",
        probability=as_probability(probability, "probability"), num_chains=len(chains),
    )  # fmt: skip


def averages(
    run: Posterior, codes: IntArray, chains: list[AlignedChain], max_draws: int, weight: str | None
) -> FloatArray:
    """Average shares of topics in groups of documents, ``(num_draws, group, topic)``."""
    weights = effects.document_weights(run.data, weight)
    sizes = np.bincount(codes, weights)
    if not (sizes > 0.0).all():
        raise ValueError("weight must be positive for a document of each group, got only zeros")
    values = np.ones(len(codes)) if weights is None else weights
    members = sparse.csr_array((values, (codes, np.arange(len(codes)))))
    sums = [members @ theta for theta in each_theta(run, None, chains, max_draws)]
    return np.stack(sums) / sizes[:, None]


def in_bins(values: FloatArray) -> IntArray:
    """Number the values of a column, or of many different ones eight groups of equal size."""
    _, codes = np.unique(values, return_inverse=True)
    if codes.max() < _BINS:
        return codes
    edges = np.unique(np.quantile(values, np.linspace(0.0, 1.0, _BINS + 1)[1:-1]))
    return np.unique(np.searchsorted(edges, values, side="right"), return_inverse=True)[1]


_FEWEST_CHARACTERS = 20


class Quote(NamedTuple):
    """A document, a topic's share in it, posterior mean and interval, and its text if known."""

    document: str
    mean: float
    lower: float
    upper: float
    text: str | None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Quotes(Answer):
    """Documents with the largest share of some topics; print it for their texts.

    Attributes
    ----------
    topics : list of int
    names : list of str
        Number and telling words of each of these topics.
    quotes : lists of Quote, one per topic
        The largest share first.
    probability : float
        Of the intervals.
    note : str
        Why there are no texts, if there are none; else empty.
    draws : array, ``(num_draws, row)``
        Shares of the topics in their documents, a column for each row of the table.
    """

    topics: list[int]
    names: list[str]
    quotes: list[list[Quote]]
    probability: float
    note: str
    draws: FloatArray

    @property
    def _caption(self) -> str:
        return f"Shares of topics in documents, with {100 * self.probability:g} % intervals."

    def figure(self) -> Any:
        """Draw the shares of topics in their documents."""
        pairs = zip(self.names, self.quotes, strict=True)
        rows = [f"{name}: {quote.document}" for name, of_topic in pairs for quote in of_topic]
        how: Any = {"caption": self._caption, "probability": self.probability}
        return Estimand(self.draws, ("document",), {"document": rows}, **how).figure()

    def __repr__(self) -> str:
        percent = f"{100 * self.probability:g} %"
        head = f"Documents with the largest share of a topic: posterior mean [{percent} interval]."
        lines = list(filter(None, [head, self.note]))
        for name, quotes in zip(self.names, self.quotes, strict=True):
            lines += ["", f"Topic {name}"]
            for quote in quotes:
                shares = "{:.2f} [{:.2f}, {:.2f}]".format(*quote[1:4])
                lines.append(f"  {shares}  {quote.document}")
                lines += [f"      {line}" for line in textwrap.wrap(quote.text or "", 90)]
        return "\n".join(lines)

    def table(self) -> Table:
        """One row per document of a topic: its share and, where texts are known, its text."""
        counts = [len(of_topic) for of_topic in self.quotes]
        listed = [quote for of_topic in self.quotes for quote in of_topic]
        columns = [
            Column("topic", np.repeat(self.topics, counts), "topic"),
            Column("document", [quote.document for quote in listed], "document"),
        ]
        columns += with_interval(
            "mean", ([quote[i] for quote in listed] for i in (1, 2, 3)), "mean", self.probability,
            number(2), ("lower", "upper"),
        )  # fmt: skip
        if not self.note:
            columns.append(Column("text", [quote.text for quote in listed], "text"))
        return Table(f"{self._caption} {self.note}".strip(), columns)


def quotes(
    run: Posterior, topic: int | Sequence[int] | None = None, num_quotes: int = 3, *,
    max_characters: int = 400, chain: int | None = None, max_draws: int = 200,
    probability: float = 0.9,
) -> Quotes:  # fmt: skip
    """The texts of the documents with the largest posterior mean share of a topic.

    Parameters
    ----------
    run : Posterior
        With ``theta`` or ``psi``.
    topic : int or sequence of int, optional
        All topics if left out.
    num_quotes : int
        Number of quotes per topic.
    max_characters : int
        Longer texts are cut at a word. Where the posterior's corpus holds no texts, documents are
        named and `Quotes.note` says so.
    chain, max_draws, probability
        As in `document_topics`.
    """
    num_quotes = as_positive_int(num_quotes, "num_quotes")
    most = as_positive_int(max_characters, "max_characters", minimum=_FEWEST_CHARACTERS)
    chains = aligned_chains(run, chain, source_of(run))
    mean = mean_of(each_theta(run, None, chains, max_draws))
    best = np.argsort(-mean, axis=0, kind="stable")[:num_quotes].T
    chosen, place = np.unique(best, return_inverse=True)
    how: Any = {"max_draws": max_draws, "probability": probability}
    shares = document_topics(run, chosen + 1, chain=chain, **how)
    count, place = len(best), place.reshape(best.shape)
    asked = [topic] if isinstance(topic, int | np.integer) else topic
    topics = topic_places(range(1, count + 1) if asked is None else asked, count, "topic")
    corpus = corpus_of(run)
    table = None if corpus is None else corpus.table
    texts = None if table is None or table.text is None else table.texts
    is_named = corpus is None or corpus.names is not None
    called = shares.documents if is_named else _called(table, chosen)
    known = [None if texts is None else texts[d] for d in chosen]
    cut = [text and textwrap.shorten(text, most, placeholder=" ...") for text in known]
    numbers = np.stack([shares.mean, shares.lower, shares.upper], axis=-1).tolist()
    quoted = [[Quote._make([called[i], *numbers[i][k], cut[i]]) for i in place[k]] for k in topics]
    note = "The run holds no texts, so documents are named only." if texts is None else ""
    names = effects.topic_names(run, chain)
    draws = shares.draws[:, place[topics], topics[:, None]].reshape(len(shares.draws), -1)
    named = [names[k] for k in topics]
    return Quotes((topics + 1).tolist(), named, quoted, probability, note, draws)


def corpus_of(run: Posterior) -> Corpus | None:
    """Return the documents of a run, if it knows them."""
    try:
        data: object = run.data
    except ValueError:  # draws that know of no data
        return None
    return data if isinstance(data, Corpus) else None


def _called(table: DocumentTable | None, rows: IntArray) -> list[str]:
    """What documents without names are called: their row, from 1, and their first short columns."""
    columns = [] if table is None else [*table.columns.values()]
    shown = [
        value_texts(["" if is_missing(cell) else cell for cell in cells[rows]])
        for cells in columns if not np.array_equal(cells, np.arange(1, len(cells) + 1))
    ]  # fmt: skip
    short = [cells for cells in shown if max(map(len, cells)) <= _SHORT][:_IDENTIFYING]
    called = []
    for place, row in enumerate(rows.tolist(), 1):
        about = ", ".join(filter(None, (cells[place - 1] for cells in short)))
        called.append(f"row {row + 1}{': ' * bool(about)}{about}")
    return called

"""Quotes: the documents that are most about a topic, in their own words."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pgmult.core.arguments import as_list
from pgmult.core.tabled import Column, Table, Tabled, number, with_interval
from pgmult.core.validate import as_positive_int
from pgmult.sampling.posterior import Posterior
from pgmult.topics.data.corpus import Corpus
from pgmult.topics.draws import mean_of
from pgmult.topics.summaries.documents import document_topics, each_theta, source_of
from pgmult.topics.summaries.effects import topic_names
from pgmult.topics.summaries.matching import aligned_chains

_FEWEST_CHARACTERS = 20


class Quote(NamedTuple):
    """A document, a topic's share in it, posterior mean and interval, and its text if known."""

    document: str
    mean: float
    lower: float
    upper: float
    text: str | None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Quotes(Tabled):
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
    """

    topics: list[int]
    names: list[str]
    quotes: list[list[Quote]]
    probability: float
    note: str

    def __repr__(self) -> str:
        percent = f"{100 * self.probability:g} %"
        head = f"Documents with the largest share of a topic: posterior mean [{percent} interval]."
        lines = [head, *([self.note] if self.note else [])]
        for name, quotes in zip(self.names, self.quotes, strict=True):
            lines += ["", f"Topic {name}"]
            for quote in quotes:
                shares = "{:.2f} [{:.2f}, {:.2f}]".format(*quote[1:4])
                lines.append(f"  {shares}  {quote.document}")
                if quote.text is not None:
                    indent = " " * 6
                    lines += textwrap.wrap(
                        quote.text, 96, initial_indent=indent, subsequent_indent=indent
                    )
        return "\n".join(lines)

    def table(self) -> Table:
        """One row per document of a topic: its share and, where texts are known, its text."""
        counts = [len(of_topic) for of_topic in self.quotes]
        found = [quote for of_topic in self.quotes for quote in of_topic]
        columns = [
            Column("topic", np.repeat(self.topics, counts), "topic"),
            Column("document", [quote.document for quote in found], "document"),
        ]
        columns += with_interval(
            "mean", ([quote[i] for quote in found] for i in (1, 2, 3)), "mean", self.probability,
            number(2), ("lower", "upper"),
        )  # fmt: skip
        if not self.note:
            columns.append(Column("text", [quote.text for quote in found], "text"))
        title = f"Shares of topics in documents, with {100 * self.probability:g} % intervals."
        return Table(" ".join(filter(None, [title, self.note])), columns)


def quotes(
    posterior: Posterior,
    topic: int | Sequence[int] | None = None,
    num_quotes: int = 3,
    *,
    max_characters: int = 400,
    chain: int | None = None,
    max_draws: int = 200,
    probability: float = 0.9,
) -> Quotes:
    """The texts of the documents with the largest posterior mean share of a topic.

    Parameters
    ----------
    posterior : Posterior
        With ``theta`` or ``psi``.
    topic : int or sequence of int, optional
        All topics if left out.
    num_quotes : int
        Of each topic.
    max_characters : int
        Longer texts are cut at a word. Where the posterior's corpus holds no texts, documents are
        named and `Quotes.note` says so.
    chain, max_draws, probability
        As in `document_topics`.
    """
    num_quotes = as_positive_int(num_quotes, "num_quotes")
    most = as_positive_int(max_characters, "max_characters", minimum=_FEWEST_CHARACTERS)
    chains = aligned_chains(posterior, chain, source_of(posterior))
    mean = mean_of(each_theta(posterior, None, chains, max_draws))
    best = np.argsort(-mean, axis=0, kind="stable")[:num_quotes].T
    chosen, place = np.unique(best, return_inverse=True)
    found = document_topics(
        posterior, chosen, chain=chain, max_draws=max_draws, probability=probability
    )
    count = len(best)
    if topic is None:
        topic = range(count)
    given = [topic] if isinstance(topic, int | np.integer) else topic
    topics = [
        as_positive_int(k, "topic", minimum=0, maximum=count - 1)
        for k in as_list(given, "topic", "numbers of topics")
    ]
    known = _texts(posterior)
    quoted = [
        [
            Quote(
                found.documents[i],
                float(found.mean[i, k]),
                float(found.lower[i, k]),
                float(found.upper[i, k]),
                None if known is None else _cut(known[chosen[i]], most),
            )
            for i in place.reshape(best.shape)[k]
        ]
        for k in topics
    ]
    note = ""
    if known is None:
        note = "The run holds no texts, so documents are named only."
    names = topic_names(posterior, chain)
    return Quotes(topics, [names[k] for k in topics], quoted, probability, note)


def _texts(posterior: Posterior) -> Sequence[str] | None:
    """Those of the posterior's corpus."""
    try:
        data: object = posterior.data
    except ValueError:  # draws that know of no data
        return None
    table = data.table if isinstance(data, Corpus) else None
    return None if table is None or table.text is None else table.texts


def _cut(text: str, most: int) -> str:
    """A text on one line, at most so long."""
    line = " ".join(text.split())
    return line if len(line) <= most else textwrap.shorten(line, most, placeholder=" ...")

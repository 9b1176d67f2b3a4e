"""Topic proportions of documents: posterior means, intervals, and the documents of each topic.

They are read from draws of ``theta``, or made of draws of ``psi`` by the link of the posterior's
model; a run keeps one or the other where ``keep=`` of `pgmult.sample` names it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pgmult.core.arguments import as_list, as_probability
from pgmult.core.tabled import Column, Table, Tabled, number
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_positive_int
from pgmult.sampling.posterior import Posterior
from pgmult.topics.draws import as_draws, names_along, quantile
from pgmult.topics.summaries.matching import AlignedChain, aligned_chains, each_aligned, scope_of

_BLOCK = 2**24  # numbers in memory at a time


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DocumentTopics(Tabled):
    """Posterior of the topic proportions of some documents.

    Attributes
    ----------
    documents : list of str
        Their names, or numbers where they have none.
    mean, sd, lower, upper : arrays, ``(document, topic)``
        Posterior mean, standard deviation, and the ends of the central interval.
    probability : float
        Of the interval.
    scope : str
        What the interval is over: draws within one chain, or over the chains that found a topic.
    """

    documents: list[str]
    mean: FloatArray
    sd: FloatArray
    lower: FloatArray
    upper: FloatArray
    probability: float
    scope: str

    def __repr__(self) -> str:
        documents, topics = self.mean.shape
        return f"DocumentTopics({documents:,} documents, {topics} topics; {self.scope})"

    def table(self) -> Table:
        """One row per document and topic."""
        documents, topics = self.mean.shape
        title = f"Shares of topics, {100 * self.probability:g} % intervals {self.scope}."
        columns = [
            Column("document", np.repeat(self.documents, topics), "document"),
            Column("topic", np.tile(np.arange(topics), documents), "topic"),
            *(
                Column(name, getattr(self, name).ravel(), name, number(4))
                for name in ("mean", "sd", "lower", "upper")
            ),
        ]
        return Table(title, columns)


def document_topics(
    posterior: Posterior,
    documents: Sequence[int | str] | IntArray | None = None,
    *,
    chain: int | None = None,
    max_draws: int = 200,
    probability: float = 0.9,
) -> DocumentTopics:
    """Mean, sd and interval of the proportions of each topic in each document.

    Parameters
    ----------
    posterior : Posterior
        With ``theta`` or ``psi``.
    documents : sequence of int or str, optional
        Numbers or names; all documents if left out.
    chain : int, optional
        One chain alone. If left out, chains are aligned topic by topic with the best one, and each
        topic's draws are those of the chains that found it.
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
    chains = aligned_chains(posterior, chain, source_of(posterior))
    num_documents, num_topics = next(each_theta(posterior, None, chains, 1)).shape
    names = names_along(posterior, "document", num_documents)
    rows = _rows(names, range(num_documents) if documents is None else documents)
    pieces = []
    size = max(1, _BLOCK // (max_draws * num_topics))
    for start in range(0, len(rows), size):
        block = rows[start : start + size]
        theta = np.stack(list(each_theta(posterior, block, chains, max_draws)), axis=-1)
        pieces.append(moments_of(theta, probability))
    mean, sd, lower, upper = np.concatenate(pieces, axis=1)
    return DocumentTopics(
        [names[d] for d in rows], mean, sd, lower, upper, probability, scope_of(chains)
    )


def moments_of(theta: FloatArray, probability: float) -> FloatArray:
    """Mean, sd and the ends of an interval, of draws of theta along the last axis."""
    tail = 0.5 * (1.0 - probability)
    ends = quantile(theta, [tail, 1.0 - tail], axis=-1)
    return np.stack([np.nanmean(theta, axis=-1), np.nanstd(theta, axis=-1), *ends])


def source_of(posterior: Posterior) -> str:
    """The variable that proportions are read from, or made of."""
    for name in ("theta", "psi"):
        if name in as_draws(posterior):
            return name
    raise ValueError(
        f"posterior must hold 'theta' or 'psi', got only {', '.join(map(str, posterior))}"
        " (name one in keep= of pgmult.sample)"
    )


def each_theta(
    posterior: Posterior, rows: IntArray | None, chains: list[AlignedChain], max_draws: int
) -> Iterator[FloatArray]:
    """Proportions in some documents, or all, draw by draw; nan of topics a chain did not find."""
    name = source_of(posterior)
    link = None if name == "theta" else posterior.link
    for one, draw in each_aligned(posterior, name, chains, max_draws):
        chosen: NDArray[np.float64] = draw if rows is None else draw[rows]
        theta = chosen if link is None else link.probs(chosen)
        yield one.place(theta)


def _rows(names: list[str], documents: Sequence[int | str] | IntArray | range) -> IntArray:
    """Numbers of documents given by number or name."""
    places = {name: d for d, name in enumerate(names)}
    rows = []
    for document in as_list(documents, "documents", "numbers or names"):
        row = places.get(document, -1) if isinstance(document, str) else document
        if as_positive_int(row, "documents", minimum=-1) not in range(len(names)):
            raise ValueError(f"documents must be among the {len(names)}, got {document!r}")
        rows.append(row)
    if not rows:
        raise ValueError("documents must name at least one, got none")
    return np.asarray(rows, dtype=np.int64)

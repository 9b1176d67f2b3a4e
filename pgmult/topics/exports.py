"""Results of a run as CSV files for other programs.

===================  ====================================================================
``topics.csv``       each word's mean probability by topic
``documents.csv``    each document's columns and the mean and interval of its shares of topics
===================  ====================================================================
"""

import os
from pathlib import Path
from typing import Any

from pgmult.core.arguments import as_path
from pgmult.core.tabled import write_csv
from pgmult.sampling.posterior import Posterior
from pgmult.topics.data.corpus import Corpus
from pgmult.topics.data.timed import TimedCorpus
from pgmult.topics.runs import data_of_run, names_along
from pgmult.topics.summaries.documents import DocumentTopics, document_topics
from pgmult.topics.summaries.effects import topic_names
from pgmult.topics.summaries.matching import best_chain, mean_topics

__all__ = ["document_columns", "export"]


def export(
    run: Posterior, folder: str | os.PathLike[str], *, chain: int | None = None,
    data: Corpus | None = None,
) -> list[Path]:  # fmt: skip
    """Write the results of a run as CSV files for other programs.

    Parameters
    ----------
    run : Posterior
        With ``topics``; and with ``theta`` or ``psi``, for shares of topics in documents.
    folder : path
        Is made, if it is not there. Files in it of the same names are replaced.
    chain : int, optional
        The chain whose topics are written; the one with the best log likelihood if left out.
    data : Corpus, optional
        The posterior's data, where it was saved without them.

    Returns
    -------
    list of Path
        The files that were written.

    Raises
    ------
    ValueError
        If the posterior does not know its data and `data` are not given.
    """
    folder = as_path(folder, "folder")
    corpus = data_of_run(run, data, Corpus)
    if isinstance(corpus, TimedCorpus):
        raise ValueError("run must have topics that are the same at all times")
    chain = best_chain(run) + 1 if chain is None else chain
    names, topics = topic_names(run, chain), mean_topics(run, chain)
    folder.mkdir(parents=True, exist_ok=True)
    columns: dict[str, Any] = {"word": names_along(run, "word", corpus.num_words)}
    columns |= {f"topic {name}": row for name, row in zip(names, topics, strict=True)}
    written = [write_csv(folder / "topics.csv", columns)]
    if "theta" in run or "psi" in run:
        columns = document_columns(document_topics(run, chain=chain), corpus, names)
        written.append(write_csv(folder / "documents.csv", columns))
    return written


def document_columns(shares: DocumentTopics, corpus: Corpus, names: list[str]) -> dict[str, Any]:
    """A table of documents: their columns, and the mean and interval of each topic's share.

    Parameters
    ----------
    shares : DocumentTopics
    corpus : Corpus
        The same documents; the columns of its table are there, too, without the texts.
    names : list of str
        Number and words of each topic.
    """
    columns: dict[str, Any] = {"document": shares.documents}
    if corpus.table is not None:
        own = corpus.table.columns.items()
        columns |= {f"{name}{'_' * (name == 'document')}": column for name, column in own}
    columns["words"] = corpus.totals
    for k, name in enumerate(names):
        columns[f"topic {name}"] = shares.mean[:, k]
        columns[f"topic {k + 1} lower"] = shares.lower[:, k]
        columns[f"topic {k + 1} upper"] = shares.upper[:, k]
    return columns

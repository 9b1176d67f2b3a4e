"""Results of a run as files for other programs: tables and JSON.

========  ===============================================================================
csv       ``topics.csv``, each word's mean probability by topic; ``documents.csv``, each
          document's columns and the mean and interval of its shares of topics
json      ``topics.json``: topics with their share of the words and their best words
========  ===============================================================================
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pgmult.core.arguments import as_choice, as_list, as_path
from pgmult.core.tabled import write_csv
from pgmult.core.typing import FloatArray
from pgmult.sampling.posterior import Posterior
from pgmult.topics.data.corpus import Corpus
from pgmult.topics.data.timed import TimedCorpus
from pgmult.topics.draws import as_chain, data_of_run, most_probable, names_along, telling
from pgmult.topics.summaries.documents import DocumentTopics, document_topics
from pgmult.topics.summaries.matching import best_chain, mean_topics
from pgmult.topics.summaries.words import topic_labels

__all__ = ["KINDS", "document_columns", "export", "named_topics"]

Kind = Literal["csv", "json"]
KINDS: tuple[Kind, ...] = ("csv", "json")

_LISTED = 30  # words of a topic in JSON


def export(
    posterior: Posterior,
    folder: str | os.PathLike[str],
    kinds: Sequence[Kind] = KINDS,
    *,
    chain: int | None = None,
    data: Corpus | None = None,
) -> list[Path]:
    """Write the results of a run as files for other programs.

    Parameters
    ----------
    posterior : Posterior
        With ``topics``; and with ``theta`` or ``psi``, for shares of topics in documents.
    folder : path
        Is made, if it is not there. Files in it of the same names are replaced.
    kinds : sequence of "csv" and "json"
        See `pgmult.topics.export`.
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
        If a kind is unknown, or the posterior does not know its data and `data` are not given.
    """
    kinds = [as_choice(kind, "kinds", KINDS) for kind in as_list(kinds, "kinds", "kinds of files")]
    folder = as_path(folder, "folder")
    corpus = data_of_run(posterior, data, Corpus)
    if isinstance(corpus, TimedCorpus):
        raise ValueError("posterior must have topics that are the same at all times")
    chain = best_chain(posterior) if chain is None else as_chain(posterior, "topics", chain)
    write = {"csv": _csv, "json": _json}
    folder.mkdir(parents=True, exist_ok=True)
    return [path for kind in kinds for path in write[kind](posterior, corpus, chain, folder)]


def document_columns(
    shares: DocumentTopics, corpus: Corpus, names: Sequence[str]
) -> dict[str, Any]:
    """A table of documents: their columns, and the mean and interval of each topic's share.

    Parameters
    ----------
    shares : DocumentTopics
    corpus : Corpus
        The same documents; the columns of its table are there, too, without the texts.
    names : sequence of str
        Of the topics.
    """
    columns: dict[str, Any] = {"document": shares.documents}
    if corpus.table is not None:
        columns |= {
            name if name != "document" else "document_": column
            for name, column in corpus.table.columns.items()
        }
    columns["words"] = corpus.totals
    for k, name in enumerate(names):
        columns[f"topic {k}: {name}"] = shares.mean[:, k]
        columns[f"topic {k} lower"] = shares.lower[:, k]
        columns[f"topic {k} upper"] = shares.upper[:, k]
    return columns


def _csv(posterior: Posterior, corpus: Corpus, chain: int, folder: Path) -> list[Path]:
    topics, names = named_topics(posterior, chain)
    columns = {"word": names_along(posterior, "word", corpus.num_words)}
    columns |= {f"topic {k}: {name}": topics[k] for k, name in enumerate(names)}
    written = [write_csv(folder / "topics.csv", columns)]
    if "theta" in posterior or "psi" in posterior:
        shares = document_topics(posterior, chain=chain)
        columns = document_columns(shares, corpus, names)
        written.append(write_csv(folder / "documents.csv", columns))
    return written


def _json(posterior: Posterior, corpus: Corpus, chain: int, folder: Path) -> list[Path]:
    from pgmult.core._version import __version__

    topics, names = named_topics(posterior, chain)
    words = names_along(posterior, "word", corpus.num_words)
    shares: list[Any] = [None] * len(topics)
    if "theta" in posterior or "psi" in posterior:
        tokens = document_topics(posterior, chain=chain).mean.T @ corpus.totals
        shares = (tokens / tokens.sum()).tolist()
    best = most_probable(topics, _LISTED)
    content = {
        "made_by": f"pgmult {__version__}",
        "model": type(posterior.model).__name__,
        "documents": corpus.num_documents,
        "words": corpus.num_words,
        "tokens": corpus.num_tokens,
        "chain": chain,
        "topics": [
            {
                "topic": k,
                "name": names[k],
                "share_of_words": shares[k],
                "words": [{"word": words[j], "probability": float(topics[k, j])} for j in best[k]],
            }
            for k in range(len(topics))
        ],
    }
    path = folder / "topics.json"
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return [path]


def named_topics(posterior: Posterior, chain: int) -> tuple[FloatArray, list[str]]:
    """Mean word probabilities of topics in a chain, and three words that tell each."""
    topics = mean_topics(posterior, chain)
    words = names_along(posterior, "word", topics.shape[1])
    return topics, topic_labels([[words[j] for j in row] for row in telling(topics, 3)])

"""Results of a run as files for other programs: tables, JSON, counts, and LDAvis's page.

========  ===============================================================================
csv       ``topics.csv``, each word's mean probability by topic; ``documents.csv``, each
          document's columns and the mean and interval of its shares of topics
json      ``topics.json``: topics with their share of the words and their best words
ldac      ``corpus.dat`` in the format of Blei's lda-c, and ``vocab.txt``
mtx       ``counts.mtx``, a Matrix Market file of documents by words, and ``vocab.txt``
ldavis    ``ldavis.json``, which the script of LDAvis (Sievert and Shirley 2014) draws:
          ``new LDAvis("#place", "ldavis.json")``
========  ===============================================================================
"""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.io
from scipy.spatial.distance import jensenshannon

from pgmult.core.arguments import as_choice, as_kind, as_list, as_path
from pgmult.core.tabled import write_csv
from pgmult.core.typing import FloatArray
from pgmult.core.validate import as_positive_int
from pgmult.sampling.posterior import Posterior
from pgmult.topics.data.corpus import Corpus
from pgmult.topics.data.timed import TimedCorpus
from pgmult.topics.draws import as_chain, data_of_run, most_probable, names_along, telling
from pgmult.topics.summaries.documents import DocumentTopics, document_topics
from pgmult.topics.summaries.matching import best_chain, mean_topics
from pgmult.topics.summaries.words import topic_labels

__all__ = ["KINDS", "document_columns", "export", "ldavis", "named_topics"]

Kind = Literal["csv", "json", "ldac", "mtx", "ldavis"]
KINDS: tuple[Kind, ...] = ("csv", "json", "ldac", "mtx", "ldavis")

_LISTED = 30  # words of a topic in JSON and in LDAvis
_LAMBDAS = np.linspace(0.01, 1.0, 100)  # of relevance, at which LDAvis ranks words


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
    kinds : sequence of "csv", "json", "ldac", "mtx" and "ldavis"
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
    write: dict[str, Callable[..., list[Path]]] = {
        "csv": _csv, "json": _json, "ldac": _ldac, "mtx": _mtx, "ldavis": _ldavis,
    }  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    written = [path for kind in kinds for path in write[kind](posterior, corpus, chain, folder)]
    return list(dict.fromkeys(written))


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


def ldavis(posterior: Posterior, data: Corpus, *, chain: int = 0, num_words: int = _LISTED) -> Any:
    """What LDAvis draws: distances and sizes of topics, words by relevance, words' topics.

    Distances are Jensen–Shannon, laid out by classical scaling. Topics are numbered from 1 in the
    order of their sizes, as LDAvis expects; ``topic.order`` has their numbers here, plus one.

    Parameters
    ----------
    posterior : Posterior
        With ``topics``, and ``theta`` or ``psi``.
    data : Corpus
        What it was sampled with.
    chain : int
    num_words : int
        Shown of a topic.

    Returns
    -------
    dict
        For `json.dump`.
    """
    num_words = as_positive_int(num_words, "num_words")
    as_kind(data, "data", Corpus, "the posterior's: posterior.data")
    topics = mean_topics(posterior, chain)
    theta = document_topics(posterior, chain=chain).mean
    if (len(theta), topics.shape[1]) != (data.num_documents, data.num_words):
        raise ValueError(f"data must be the corpus of the posterior, got {data!r}")
    tokens = theta.T @ data.totals
    order = np.argsort(-tokens, kind="stable")
    topics, tokens = topics[order], tokens[order]
    words = np.array(names_along(posterior, "word", topics.shape[1]))
    total = np.bincount(data.words, data.counts, minlength=topics.shape[1])
    share = tokens / tokens.sum()
    expected = share @ topics
    log_prob, log_lift = np.log(topics), np.log(topics / expected)
    distinct = topics * np.log(topics / expected)
    saliency = total * (topics / expected * share[:, None] * log_lift).sum(axis=0)
    default = np.argsort(-saliency, kind="stable")[:num_words]
    tinfo: dict[str, list[Any]] = {
        name: [] for name in ("Term", "Freq", "Total", "Category", "logprob", "loglift")
    }

    def add(category: str, chosen: Any, freq: Any, logprob: Any, loglift: Any) -> None:
        tinfo["Term"] += words[chosen].tolist()
        tinfo["Freq"] += np.asarray(freq, dtype=float).tolist()
        tinfo["Total"] += total[chosen].astype(float).tolist()
        tinfo["Category"] += [category] * len(chosen)
        tinfo["logprob"] += np.asarray(logprob, dtype=float).tolist()
        tinfo["loglift"] += np.asarray(loglift, dtype=float).tolist()

    ranks = np.arange(len(default), 0, -1)
    add("Default", default, total[default], ranks, ranks)
    shown = set(default.tolist())
    for k in range(len(topics)):
        best: set[int] = set()
        for weight in _LAMBDAS:
            relevance = weight * log_prob[k] + (1.0 - weight) * log_lift[k]
            best.update(np.argpartition(-relevance, min(num_words, len(words) - 1))[:num_words])
        chosen = np.array(sorted(best, key=lambda j: -distinct[k, j]))
        shown |= set(chosen.tolist())
        freq = topics[k, chosen] * tokens[k]
        add(f"Topic{k + 1}", chosen, freq, log_prob[k, chosen], log_lift[k, chosen])
    listed = sorted(shown, key=lambda j: words[j])
    by_word = topics[:, listed] * tokens[:, None]
    by_word /= by_word.sum(axis=0)
    there = [(i, k) for i in range(len(listed)) for k in range(len(topics)) if by_word[k, i] > 0.01]
    place = _plane(topics)
    numbers = np.arange(1, len(topics) + 1)
    return {
        "mdsDat": {
            "x": place[:, 0].tolist(), "y": place[:, 1].tolist(), "topics": numbers.tolist(),
            "cluster": [1] * len(topics), "Freq": (100.0 * share).tolist(),
        },
        "tinfo": tinfo,
        "token.table": {
            "Term": [str(words[listed[i]]) for i, _ in there],
            "Topic": [k + 1 for _, k in there],
            "Freq": [float(by_word[k, i]) for i, k in there],
        },
        "R": min(num_words, len(words)),
        "lambda.step": 0.01,
        "plot.opts": {"xlab": "PC1", "ylab": "PC2"},
        "topic.order": (order + 1).tolist(),
    }  # fmt: skip


def _plane(topics: FloatArray) -> FloatArray:
    """Points in a plane at about the Jensen–Shannon distances of topics, by classical scaling."""
    count = len(topics)
    squared = np.array([[jensenshannon(a, b) ** 2 for b in topics] for a in topics])
    squared = np.nan_to_num(squared)
    centring = np.eye(count) - 1.0 / count
    values, vectors = np.linalg.eigh(-0.5 * centring @ squared @ centring)
    best = np.argsort(-values)[:2]
    return np.asarray(vectors[:, best] * np.sqrt(np.maximum(values[best], 0.0)))


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
    return [_write_json(folder / "topics.json", content)]


def _ldac(posterior: Posterior, corpus: Corpus, chain: int, folder: Path) -> list[Path]:
    lines = []
    for start, stop in zip(corpus.indptr[:-1], corpus.indptr[1:], strict=True):
        entries = zip(corpus.words[start:stop], corpus.counts[start:stop], strict=True)
        lines.append(" ".join([str(stop - start), *(f"{word}:{count}" for word, count in entries)]))
    path = folder / "corpus.dat"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return [path, _vocabulary(posterior, corpus, folder)]


def _mtx(posterior: Posterior, corpus: Corpus, chain: int, folder: Path) -> list[Path]:
    path = folder / "counts.mtx"
    with path.open("wb") as file:
        scipy.io.mmwrite(file, corpus.to_csr().tocoo(), field="integer", symmetry="general")
    return [path, _vocabulary(posterior, corpus, folder)]


def _ldavis(posterior: Posterior, corpus: Corpus, chain: int, folder: Path) -> list[Path]:
    return [_write_json(folder / "ldavis.json", ldavis(posterior, corpus, chain=chain))]


def named_topics(posterior: Posterior, chain: int) -> tuple[FloatArray, list[str]]:
    """Mean word probabilities of topics in a chain, and three words that tell each."""
    topics = mean_topics(posterior, chain)
    words = names_along(posterior, "word", topics.shape[1])
    return topics, topic_labels([[words[j] for j in row] for row in telling(topics, 3)])


def _vocabulary(posterior: Posterior, corpus: Corpus, folder: Path) -> Path:
    path = folder / "vocab.txt"
    words = names_along(posterior, "word", corpus.num_words)
    path.write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
    return path


def _write_json(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return path

"""``pgmult topics pack`` and ``search``, and what is asked of a run of topics: effects, content,
quotes, check, transform, export.
"""

import argparse
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

from pgmult.cli.shared import add_running, at_least, silence_what_is_told_anyway

__all__ = [
    "add_corpus",
    "add_covariates",
    "add_packing",
    "add_questions",
    "add_search",
    "load_topics",
    "print_corpus",
    "read_documents",
]

_MOST_COMPARED = 10**7  # words of texts that are looked at for repeats


def add_corpus(group: Any) -> None:
    """Options of how a corpus is read."""
    group.add_argument("--vocabulary", metavar="FILE", help="a word a line, for files of counts")
    group.add_argument("--column", metavar="NAME", help="where the texts of a table are")
    group.add_argument("--names", metavar="NAME", help="the column that names a table's documents")
    group.add_argument(
        "--documents",
        choices=["lines", "paragraphs"],
        default="lines",
        help="what is a document in a file of text (default: lines)",
    )
    group.add_argument("--delimiter", metavar="CHAR", help="of a table (default: as its header)")
    group.add_argument("--encoding", default="utf-8", metavar="NAME")
    group.add_argument(
        "--stop-words", metavar="FILE", help="a word a line, or english (default), or none"
    )
    group.add_argument(
        "--ngrams", type=at_least(1), metavar="N", help="count runs of up to N words, too"
    )
    group.add_argument("--min-count", type=at_least(1), metavar="N", help="of a word, in all")
    group.add_argument("--min-documents", type=at_least(1), metavar="N", help="with a word")
    group.add_argument("--max-document-share", type=float, metavar="X", help="with a word, 0 to 1")
    group.add_argument("--max-words", type=at_least(2), metavar="V", help="size of the vocabulary")


def add_covariates(group: Any) -> None:
    """Options of what a table's other columns are taken for."""
    group.add_argument(
        "--prevalence",
        metavar="FORMULA",
        help='what shares of topics depend on: "~ party * s(year) + (1 | author)"',
    )
    group.add_argument(
        "--content", metavar="FORMULA", help='what the words of topics depend on: "~ party"'
    )
    group.add_argument(
        "--random-effects",
        choices=["shared", "free"],
        help="covariance of the effects of (1 | author): that of documents times a learned size, or"
        " any, which takes many authors (default: shared)",
    )
    group.add_argument(
        "--drop-incomplete",
        action="store_true",
        help="leave out rows without a value of a column that a formula names",
    )


def read_documents(options: argparse.Namespace) -> tuple[Any, list[str]]:
    """The corpus that options describe, and what to say of it."""
    from pgmult.datasets import read, read_corpus, recognise

    source = recognise(options.corpus)
    choices = _choices(options)
    formulas = [getattr(options, name, None) for name in ("prevalence", "content")]
    said = []
    if source.kind == "table":
        table = read(options.corpus, delimiter=options.delimiter, encoding=options.encoding)
        if getattr(options, "drop_incomplete", False):
            table, dropped = _complete(table, [formula for formula in formulas if formula])
            rows = "1 row is" if dropped == 1 else f"{dropped:,} rows are"
            said.append(f"{rows} left out, without a value of a covariate")
        corpus = table.corpus(options.column, names=options.names, **choices)
    else:
        if options.names is not None:
            raise ValueError(f"--names is for tables, and {options.corpus} is a {source.kind}")
        corpus = read_corpus(
            options.corpus, vocabulary=options.vocabulary, column=options.column,
            documents=options.documents, delimiter=options.delimiter, encoding=options.encoding,
            **choices,
        )  # fmt: skip
    if any(formulas):
        if source.kind != "table":
            raise ValueError(
                f"--prevalence and --content need the columns of a table, and {options.corpus} is"
                f" a {source.kind}"
            )
        prevalence, content = formulas
        try:
            corpus = corpus.with_covariates(prevalence or "~ 1", content=content)
        except TypeError as error:  # a column of the wrong kind is bad input, too
            raise ValueError(str(error)) from None
    beside = options.vocabulary or source.vocabulary
    words = f" with the words of {beside}" if beside else ""
    return corpus, [f"{options.corpus} ({source.kind}){words}: {corpus}", *said]


def _choices(options: argparse.Namespace) -> dict[str, Any]:
    """How words are chosen."""
    names = ("min_count", "min_documents", "max_document_share", "max_words", "ngrams")
    choices = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    if options.stop_words is not None:
        choices["stop_words"] = () if options.stop_words == "none" else options.stop_words
    return choices


def print_corpus(corpus: Any, said: list[str]) -> None:
    """What was read, and what was lost on the way."""
    print("\n".join(said))
    if corpus.table is not None and corpus.table.losses is not None:
        print(f"\n{corpus.table.losses}", flush=True)
    if repeats := _repeats(corpus):
        are = "has the words of another one" if repeats == 1 else "have the words of another one"
        print(f"{repeats:,} of them {are}: take repeats out if a text is in twice", flush=True)


def _repeats(corpus: Any) -> int:
    """How many documents have the words of one before them, each as often, and more than one."""
    if corpus.num_tokens > _MOST_COMPARED:
        return 0
    starts = corpus.indptr.tolist()
    parts = [
        (corpus.words[a:b].tobytes(), corpus.counts[a:b].tobytes())
        for a, b in pairwise(starts)
        if b - a > 1
    ]
    return len(parts) - len(set(parts))


def _complete(table: Any, formulas: list[str]) -> tuple[Any, int]:
    """The rows of a table that have a value of every column a formula names."""
    import re

    text = " ".join(formulas)
    named = [name for name in table.columns if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)]
    missing = table.missing(*named)
    return table[~missing], int(missing.sum())


def add_packing(actions: Any) -> None:
    """``pgmult topics pack``."""
    pack = actions.add_parser(
        "pack", help="write a corpus that may be larger than memory, for fit to read from disk"
    )
    pack.set_defaults(command=_pack)
    pack.add_argument("corpus", metavar="CORPUS", help="as of fit")
    pack.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where to write it")
    pack.add_argument("--quiet", action="store_true", help="no progress line")
    add_corpus(pack.add_argument_group("corpus"))


def _pack(options: argparse.Namespace) -> int:
    from pgmult.datasets import pack_files
    from pgmult.topics.data.packed import losses_of

    corpus = pack_files(
        options.corpus, options.out, vocabulary=options.vocabulary, column=options.column,
        names=options.names, documents=options.documents, delimiter=options.delimiter,
        encoding=options.encoding, progressbar=not options.quiet, **_choices(options),
    )  # fmt: skip
    print(f"{options.out}: {corpus}")
    losses = losses_of(options.out)
    if losses is not None:
        print(f"\n{losses}")
    print(f"\nGo on with: pgmult topics fit {shlex.quote(str(options.out))} --topics 50 --out run")
    return 0


def add_search(actions: Any) -> None:
    """``pgmult topics search``."""
    search = actions.add_parser("search", help="compare numbers of topics on held-out words")
    search.set_defaults(command=_search)
    search.add_argument("corpus", metavar="CORPUS", help="as of fit")
    search.add_argument(
        "--topics", type=at_least(2), nargs="+", required=True, metavar="K", help="to be compared"
    )
    search.add_argument("--draws", type=at_least(1), default=200, metavar="N", help="default: 200")
    search.add_argument("--tune", type=at_least(0), default=300, metavar="N", help="default: 300")
    search.add_argument("--chains", type=at_least(1), default=2, metavar="N", help="default: 2")
    search.add_argument("--figure", type=Path, metavar="FILE", help="draw the scores there, too")
    add_running(search)
    add_corpus(search.add_argument_group("corpus"))
    add_covariates(search.add_argument_group("covariates, out of a table"))


def add_questions(actions: Any) -> None:
    """The actions that read a run."""
    for name, command, text in (
        ("effects", _effects, "what covariates do to shares of topics"),
        ("content", _content, "which words groups say a topic in"),
        ("quotes", _quotes, "texts of documents that are most about a topic"),
        ("check", _check, "where the data are not as the model would have them"),
    ):
        action = actions.add_parser(name, help=text)
        action.set_defaults(command=command)
        action.add_argument("run", type=Path, metavar="RUN")
        if name in ("content", "quotes", "effects"):
            action.add_argument(
                "--topic", type=at_least(0), nargs="+", metavar="K", help="these topics alone"
            )
        if name in ("content", "effects"):
            action.add_argument("--figure", type=Path, metavar="FILE", help="draw it there, too")
        if name == "effects":
            _add_effects(action)
        elif name == "content":
            action.add_argument("groups", nargs="*", metavar="GROUP", help="two to be compared")
            action.add_argument("--words", type=at_least(1), default=8, metavar="N")
        elif name == "quotes":
            action.add_argument("--quotes", type=at_least(1), default=3, metavar="N")
            action.add_argument("--characters", type=at_least(1), default=400, metavar="N")
        else:
            action.add_argument("--groups", nargs="+", metavar="COLUMN", help="to look within")
            action.add_argument(
                "--permute", metavar="COLUMN", help="shuffle this covariate, whole authors at once"
            )
            action.add_argument("--seed", type=at_least(0), default=0, metavar="N")
    transform = actions.add_parser("transform", help="shares of topics in new documents")
    transform.set_defaults(command=_transform)
    transform.add_argument("run", type=Path, metavar="RUN")
    transform.add_argument("corpus", metavar="CORPUS", help="as of fit, with the same columns")
    transform.add_argument("--out", type=Path, required=True, metavar="FILE.csv")
    transform.add_argument("--seed", type=at_least(0), default=0, metavar="N")
    add_corpus(transform.add_argument_group("corpus"))
    export = actions.add_parser("export", help="write a run as files for other programs")
    export.set_defaults(command=_export)
    export.add_argument("run", type=Path, metavar="RUN")
    export.add_argument("folder", type=Path, metavar="FOLDER")
    export.add_argument(
        "--kinds", nargs="+", choices=["csv", "json", "ldac", "mtx", "ldavis"], metavar="KIND",
        help="csv, json, ldac, mtx, ldavis (default: all)",
    )  # fmt: skip


def _add_effects(action: argparse.ArgumentParser) -> None:
    action.add_argument("variable", metavar="COLUMN", help="whose effect it is")
    action.add_argument("--by", metavar="COLUMN", help="for each label of another column")
    action.add_argument(
        "--at", action="append", default=[], metavar="COLUMN=VALUE[,VALUE...]",
        help="hold a column at a value, or take these values of the one asked for",
    )  # fmt: skip
    action.add_argument(
        "--difference", nargs=2, metavar="VALUE", help="how much more at the first than the second"
    )
    action.add_argument(
        "--average", choices=["observed", "typical"], default="observed",
        help="what the other columns are: as in the documents, or typical (default: observed)",
    )  # fmt: skip
    action.add_argument(
        "--scope", choices=["population", "documents"], default="population",
        help="of new authors, or of those in the documents (default: population)",
    )  # fmt: skip
    action.add_argument("--probability", type=float, default=0.9, metavar="P", help="default: 0.9")
    action.add_argument("--seed", type=at_least(0), default=0, metavar="N")


def _search(options: argparse.Namespace) -> int:
    from pgmult.topics.scores.selection import search_num_topics

    silence_what_is_told_anyway()
    corpus, said = read_documents(options)
    print_corpus(corpus, said)
    found = search_num_topics(
        corpus, options.topics, draws=options.draws, tune=options.tune, chains=options.chains,
        cores=options.cores, random_seed=options.seed or 0, progressbar=not options.quiet,
    )  # fmt: skip
    print(f"\n{found}")
    if options.figure is not None:
        _save(found.plot(), options.figure)
    return 0


def _effects(options: argparse.Namespace) -> int:
    from pgmult.topics.summaries.effects import difference, effects

    posterior = load_topics(options.run)
    at = dict(_column_and_values(text) for text in options.at)
    found: Any = effects(
        posterior, options.variable, at=at or None, by=options.by, average=options.average,
        scope=options.scope, probability=options.probability, random_seed=options.seed,
    )  # fmt: skip
    if options.difference is not None:
        first, second = (_value(text) for text in options.difference)
        found = difference(found, first, second)
    if options.topic is not None:
        found = found.take(options.topic)
    print(found.table())
    if options.figure is not None:
        _save(found.plot(), options.figure)
    return 0


def _content(options: argparse.Namespace) -> int:
    from pgmult.topics.summaries.content import content

    found = content(load_topics(options.run))
    if not options.groups:
        print(found.table(options.words))
        if options.figure is not None:
            raise ValueError("--figure needs the two groups to be compared: " + _listed(found))
        return 0
    if len(options.groups) != 2:
        raise ValueError(f"two groups are compared, got {len(options.groups)}: " + _listed(found))
    topics = range(len(found.names)) if options.topic is None else options.topic
    first, second = options.groups
    compared = found.compare(first, second, list(topics), options.words)
    print("\n\n".join(str(one) for one in compared))
    if options.figure is not None:
        for one, topic in zip(compared, topics, strict=True):
            place = options.figure
            if len(compared) > 1:
                place = place.with_name(f"{place.stem}-{topic}{place.suffix}")
            _save(one.plot(), place)
    return 0


def _listed(found: Any) -> str:
    return ", ".join(map(str, found.groups))


def _quotes(options: argparse.Namespace) -> int:
    from pgmult.topics.summaries.quotes import quotes

    posterior = load_topics(options.run)
    if "theta" not in posterior and "psi" not in posterior:
        raise ValueError(
            f"{options.run} keeps no topic proportions of documents (fit with --keep-theta)"
        )
    print(quotes(posterior, options.topic, options.quotes, max_characters=options.characters))
    return 0


def _check(options: argparse.Namespace) -> int:
    from pgmult.topics.summaries.checks import predictive_checks
    from pgmult.topics.summaries.permutation import permutation_test

    posterior = load_topics(options.run)
    found: Any
    if options.permute is not None:
        found = permutation_test(posterior, options.permute, random_seed=options.seed)
    else:
        if "theta" not in posterior and "psi" not in posterior:
            raise ValueError(
                f"{options.run} keeps no topic proportions of documents (fit with --keep-theta)"
            )
        found = predictive_checks(posterior, groups=options.groups, random_seed=options.seed)
    print(found)
    return 0


def _transform(options: argparse.Namespace) -> int:
    from pgmult.topics.export import named_topics, write_documents
    from pgmult.topics.fits.transform import transform
    from pgmult.topics.summaries.matching import best_chain

    posterior = load_topics(options.run)
    table = getattr(posterior.data, "table", None)
    if options.ngrams is None and table is not None and table.losses is not None:
        options.ngrams = table.losses.ngrams
    corpus, said = read_documents(options)
    print(said[0])
    found = transform(posterior, corpus, random_seed=options.seed)
    print(found)
    _, names = named_topics(posterior, best_chain(posterior))
    print(f"Shares of topics: {write_documents(options.out, found.topics, found.corpus, names)}")
    return 0


def _export(options: argparse.Namespace) -> int:
    from pgmult.topics.export import KINDS, export

    for path in export(load_topics(options.run), options.folder, options.kinds or KINDS):
        print(path)
    return 0


def load_topics(run: Path) -> Any:
    """The posterior of a run with topics."""
    from pgmult.sampling.posterior import load

    posterior = load(run)
    if "topics" not in posterior:
        raise ValueError(f"{run} is a run without topics; it keeps {', '.join(posterior)}")
    if posterior.num_draws == 0:
        raise ValueError(f"{run} has no draws yet")
    return posterior


def _column_and_values(text: str) -> tuple[str, Any]:
    name, equals, given = text.partition("=")
    if not equals:
        raise ValueError(f"--at takes COLUMN=VALUE, got {text!r}")
    values = [_value(part) for part in given.split(",")]
    return name.strip(), values if len(values) > 1 else values[0]


def _value(text: str) -> Any:
    """A number where it is one, a label otherwise."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text.strip()


def _save(figure: Any, path: Path) -> None:
    getattr(figure, "figure", figure).savefig(path, bbox_inches="tight")
    print(f"The same as a picture: {path}")

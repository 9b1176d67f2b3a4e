"""``pgmult topics`` and ``pgmult demo topics``: topic models of your own corpus."""

import argparse
import errno
import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from pgmult.cli.shared import (
    INTERRUPTED,
    REPORT,
    add_running,
    at_least,
    complain,
    free_name,
    is_unfinished,
    silence_what_is_told_anyway,
    width,
)
from pgmult.cli.topic_runs import (
    add_corpus,
    add_covariates,
    add_packing,
    add_questions,
    add_search,
    load_topics,
    print_corpus,
    read_documents,
)

__all__ = ["add_topics", "add_topics_demo"]


def add_topics_demo(demos: Any) -> None:
    """``pgmult demo topics``."""
    demo = demos.add_parser(
        "topics", help="model the documentation of the installed numpy and scipy; no download"
    )
    demo.set_defaults(command=_demo)
    demo.add_argument(
        "--covariates",
        action="store_true",
        help="instead, what party and time do to what presidents speak of: messages that ship",
    )
    demo.add_argument("--topics", type=at_least(2), metavar="K")
    demo.add_argument("--draws", type=at_least(1), metavar="N")
    demo.add_argument("--tune", type=at_least(0), metavar="N")
    demo.add_argument("--chains", type=at_least(1), metavar="N")
    demo.add_argument(
        "--out", type=Path, metavar="RUN", help="keep the draws there (default: only a page)"
    )
    add_running(demo)


def add_topics(commands: Any) -> None:
    """``pgmult topics`` with its actions."""
    topics = commands.add_parser(
        "topics", help="topic models of your own corpus",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="examples:\n"
        "  pgmult topics fit articles.csv --column text --topics 50 --out run\n"
        "  pgmult topics show run --topic 3 --documents 5\n"
        "  pgmult topics fit speeches.csv --column text --topics 15 --out run2 \\\n"
        "    --prevalence '~ party + year'",
    )  # fmt: skip
    actions = topics.add_subparsers(required=True, metavar="ACTION")
    fit = actions.add_parser(
        "fit",
        help="sample a topic model into a run directory",
        epilog="With --resume, what is not given is as the run was begun.",
    )
    fit.set_defaults(command=_fit)
    fit.add_argument(
        "corpus",
        metavar="CORPUS",
        help="an LDA-C file, a folder or file of text, an .npz of counts, a .csv, .tsv, .jsonl or"
        " .parquet, or what pack wrote",
    )
    fit.add_argument("--out", type=Path, required=True, metavar="RUN", help="run directory")
    fit.add_argument("--resume", action="store_true", help="go on with RUN, if it was begun")
    fit.add_argument("--topics", type=at_least(2), metavar="K", help="default: 50")
    fit.add_argument(
        "--draws", type=at_least(1), metavar="N", help="kept of each chain; default: 1000"
    )
    fit.add_argument(
        "--tune", type=at_least(0), metavar="N", help="sweeps before the first; default: 1000"
    )
    fit.add_argument(
        "--chains",
        type=at_least(1),
        metavar="N",
        help="from starts of their own, to be compared; default: 4",
    )
    fit.add_argument(
        "--thin",
        type=at_least(1),
        metavar="N",
        help="sweeps for each draw that is kept; default: 1",
    )
    fit.add_argument(
        "--keep-theta",
        action=argparse.BooleanOptionalAction,
        help="store proportions of topics in documents (default: if these are fewer than words,"
        " and with covariates)",
    )
    fit.add_argument(
        "--cluster",
        metavar="WHERE",
        help="local, for worker processes, or the address of a Dask scheduler, tcp://...; no"
        " proportions of documents are stored then",
    )
    add_running(fit)
    add_corpus(fit.add_argument_group("corpus"))
    add_covariates(fit.add_argument_group("covariates, out of a table: a structural topic model"))
    show = actions.add_parser("show", help="print what a run found")
    show.set_defaults(command=_show)
    show.add_argument("run", type=Path, metavar="RUN")
    show.add_argument("--words", type=at_least(1), default=8, metavar="N", help="words a topic")
    show.add_argument(
        "--by",
        choices=["probability", "frex", "lift", "relevance"],
        default="probability",
        help="what words are ranked by (default: probability)",
    )
    show.add_argument("--topic", type=at_least(0), metavar="K", help="this topic alone")
    show.add_argument("--documents", type=at_least(0), metavar="N", help="documents a topic")
    compare = actions.add_parser("compare", help="match the topics of two runs")
    compare.set_defaults(command=_compare)
    compare.add_argument("first", type=Path, metavar="RUN")
    compare.add_argument("second", type=Path, metavar="RUN")
    compare.add_argument("--words", type=at_least(1), default=8, metavar="N", help="words a topic")
    add_packing(actions)
    add_search(actions)
    add_questions(actions)


def _demo(options: argparse.Namespace) -> int:
    run: Callable[..., tuple[Any, Any]]
    if options.covariates:
        from pgmult.cli.demo_covariates import run_covariates_demo as run

        example = "speeches.csv --column text --prevalence '~ party * s(year)' --content '~ party'"
    else:
        from pgmult.cli.demo_topics import run_demo as run

        example = "articles.csv --column text"
    silence_what_is_told_anyway()
    began = perf_counter()
    sizes = {"num_topics": options.topics} | {
        name: getattr(options, name) for name in ("draws", "tune", "chains")
    }
    posterior, report = run(
        options.out,
        cores=options.cores,
        random_seed=options.seed or 0,
        progressbar=not options.quiet,
        say=lambda text: print(text, flush=True),
        **{name: size for name, size in sizes.items() if size is not None},
    )
    page = free_name("pgmult-demo", ".html") if options.out is None else options.out / REPORT
    _publish(report, page, options.out)
    print(f"{perf_counter() - began:.0f} s in all. Your own texts, a line or a CSV row each:")
    print(f"  pgmult topics fit {example} --topics 50 --out run")
    if is_unfinished(posterior):
        complain("interrupted; the report is of the draws so far")
        return INTERRUPTED
    return 0


def _fit(options: argparse.Namespace) -> int:
    from pgmult.sampling.driver import resume, sample
    from pgmult.sampling.posterior import load
    from pgmult.topics.data.structured import StructuredCorpus
    from pgmult.topics.models.correlated import CorrelatedTopics
    from pgmult.topics.models.structural import StructuralTopics
    from pgmult.topics.report.contents import run_facts
    from pgmult.topics.report.report import topic_report

    silence_what_is_told_anyway()
    is_begun = (options.out / "inputs.npz").exists()
    if is_begun and not options.resume:
        raise FileExistsError(
            errno.EEXIST,
            "RUN holds a run already (add --resume to go on with it, or name another directory)",
            str(options.out),
        )
    if is_begun:
        _take_formulas_of(options)
    corpus, said = read_documents(options)
    print_corpus(corpus, said)
    kind: Any = CorrelatedTopics
    if isinstance(corpus, StructuredCorpus):
        kind = partial(StructuralTopics, random_effects=options.random_effects or "shared")
    elif options.random_effects:
        raise ValueError("--random-effects is for --prevalence with a term such as (1 | author)")
    running = {
        "cores": options.cores, "progressbar": not options.quiet, "cluster": options.cluster
    }  # fmt: skip
    try:
        if is_begun:
            for name in ("tune", "chains", "thin", "seed", "keep_theta", "random_effects"):
                if getattr(options, name) is not None:
                    option = name.replace("_", "-")
                    raise ValueError(f"--{option} cannot change when a run is resumed")
            begun: Any = load(options.out).model
            if options.topics not in (None, begun.num_topics):
                raise ValueError(
                    f"--topics must be {begun.num_topics}, as in the model of the run,"
                    f" got {options.topics}"
                )
            posterior = resume(options.out, draws=options.draws, data=corpus, **running)
        else:
            model = kind(options.topics or 50)
            keep_theta = options.keep_theta
            if keep_theta is None:  # less than the topics take, or needed for quotes and checks
                few = corpus.num_documents <= corpus.num_words
                keep_theta = few or isinstance(corpus, StructuredCorpus)
                keep_theta = keep_theta and options.cluster is None
                if not keep_theta:
                    print(_unkept(corpus, model.num_topics, options))
            posterior = sample(
                model,
                corpus,
                keep=(*model.default_keep, *(["theta"] if keep_theta else [])),
                draws=options.draws or 1000,
                tune=1000 if options.tune is None else options.tune,
                chains=options.chains or 4,
                thin=options.thin or 1,
                random_seed=options.seed or 0,
                store=options.out,
                **running,
            )
    except KeyboardInterrupt:
        _say_how_to_resume(options)
        return INTERRUPTED
    report = topic_report(
        posterior,
        title=f"Topics in {Path(options.corpus).name}",
        facts={"corpus": str(corpus), **run_facts(posterior)},
        reference=corpus,
    )
    _publish(report, options.out / REPORT, options.out)
    if is_unfinished(posterior):
        _say_how_to_resume(options)
        return INTERRUPTED
    return 0


def _unkept(corpus: Any, num_topics: int, options: argparse.Namespace) -> str:
    """What is not stored, and how to have it."""
    draws = (options.draws or 1000) * (options.chains or 4)
    size = 8e-6 * draws * corpus.num_documents * num_topics
    large = f"{size / 1000:.3g} GB" if size >= 1000 else f"{size:.0f} MB"
    option = "" if options.cluster else f" (--keep-theta would take {large})"
    return (
        f"shares of topics in {corpus.num_documents:,} documents are not kept{option};"
        " pgmult.topics.fold_in draws those of chosen documents afterwards"
    )


def _take_formulas_of(options: argparse.Namespace) -> None:
    """The formulas that a run was begun with, where none are given anew."""
    from pgmult.topics.data.structured import StructuredCorpus

    begun = _corpus(options.out)
    if isinstance(begun, StructuredCorpus) and not (options.prevalence or options.content):
        options.prevalence = begun.design.formula
        if begun.content is not None:
            options.content = "~ " + " + ".join(begun.content.names)


def _show(options: argparse.Namespace) -> int:
    from pgmult.core.reports import as_text
    from pgmult.topics.report.report import topic_report

    posterior = load_topics(options.run)
    num_topics = len(posterior.coords["topic"])
    if options.topic is not None and options.topic >= num_topics:
        raise ValueError(f"--topic must be from 0 to {num_topics - 1}, got {options.topic}")
    if options.documents and "theta" not in posterior and "psi" not in posterior:
        raise ValueError(
            f"{options.run} keeps no topic proportions of documents (fit with --keep-theta)"
        )
    report = topic_report(
        posterior,
        title=str(options.run),
        reference=_corpus(options.run),
        by=options.by,
        num_words=options.words,
        num_documents=options.documents or 0,
        rank_for_page=False,
        covariates=options.topic is None,
    )
    told = report if options.topic is None else report.topic(options.topic)
    print(as_text(told, width=width()), end="")
    return 0


def _compare(options: argparse.Namespace) -> int:
    from pgmult.topics.summaries.matching import match_runs

    runs = [load_topics(run) for run in (options.first, options.second)]
    print(f"first   {options.first}\nsecond  {options.second}\n")
    print(match_runs(*runs, num_words=options.words).text(width()))
    return 0


def _corpus(run: Path) -> Any:
    """The corpus that a run is of; None of draws that were saved without one."""
    from pgmult.sampling.store import Run
    from pgmult.topics.data.corpus import Corpus

    try:
        data = Run(run).inputs()["data"]
    except FileNotFoundError:
        return None
    return data if isinstance(data, Corpus) else None


def _publish(report: Any, page: Path, run: Path | None) -> None:
    """Print a report and write its page."""
    from pgmult.core.reports import as_html, as_text

    print()
    print(as_text(report, width=width()))
    page.write_text(as_html(report), encoding="utf-8")
    print(f"The same with pictures: {page}" + ("" if run is None else f"; the draws: {run}"))


def _say_how_to_resume(options: argparse.Namespace) -> None:
    command = f"pgmult topics fit {shlex.quote(str(options.corpus))}"
    complain(
        f"interrupted; what was drawn is in {options.out}: go on with"
        f" {command} --out {shlex.quote(str(options.out))} --resume"
        " (and the same words and covariates)"
    )

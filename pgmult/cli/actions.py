"""The actions of ``pgmult FAMILY``: the same words and the same options for every family.

A family of data has a `Room`: how ``fit`` reads its files and makes a model of them, how it
reports, and which further questions it answers. Everything else is here, once: to sample and to
resume, to show and to write the page, to compare two runs, to print an answer or to write it.
"""

import argparse
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from pgmult.cli.runs import Job, StoredRun, refuse_held, resumed, sampled
from pgmult.cli.shared import (
    AT,
    BY,
    DIFFERENCE,
    INTERRUPTED,
    PAGE,
    PROBABILITY,
    SEED,
    Option,
    Recipe,
    add_running,
    add_writing,
    begin_compiling,
    complain,
    free_name,
    give,
    option,
    silence_what_is_told_anyway,
    tell,
    told_by,
    whole,
)
from pgmult.core.family import Family
from pgmult.sampling.settled import SETTLED

if TYPE_CHECKING:
    from pgmult.core.comparison import Comparison

_MOST_TIMES = 20  # as many draws as usual, where something else ends a run

Options = argparse.Namespace
Parser = argparse.ArgumentParser


@dataclass(frozen=True)
class Question:
    """An action that asks a run something.

    Attributes
    ----------
    word, help : str
    options : sequence of Option
    verb : str
        The word of the run that answers, if it is another one.
    ask : callable, optional
        Answers instead of the run: ``ask(run, options, told)``, where `told` is what the options
        tell; None where the answer has been printed.
    tidy : bool
        Whether the answer is printed as rows of CSV.
    writes : bool
        Whether the answer is a table that ``--out`` can write.
    draws : bool
        Whether the answer can be drawn: ``--figure``.
    """

    word: str
    help: str
    options: Sequence[Option] = ()
    verb: str = ""
    ask: Callable[[StoredRun, Options, dict[str, Any]], Any] | None = None
    tidy: bool = False
    writes: bool = True
    draws: bool = False

    def answer(self, run: StoredRun, options: Options) -> Any:
        """What the run says."""
        told = told_by(self.options, options)
        if self.ask is not None:
            return self.ask(run, options, told)
        return run.ask(self.verb or self.word.replace("-", "_"), **told)


CHECK = Question("check", "where the data are not as the model would have them", [SEED])


def _effects(run: StoredRun, options: Options, told: dict[str, Any]) -> Any:
    found, ends = run.ask("effects", **told), options.difference
    return found if ends is None else found.difference(options.column, *ends)


def effects_question(help_text: str, column: str) -> Question:
    """What a column does, where averages over observed rows tell it."""
    asked = option("column", metavar="COLUMN", help=column)
    return Question(
        "effects", help_text, (asked, BY, AT, DIFFERENCE, PROBABILITY), ask=_effects, draws=True
    )


def _report_of(run: StoredRun, options: Options | None) -> Any:
    return run.report()


def _rivals_of(run: StoredRun) -> Any:
    return run.ask("compare")


@dataclass(frozen=True)
class Room:
    """A family at the command line.

    Attributes
    ----------
    family : Family
    help, examples, source : str
        What it is for, how it is used, and what ``fit`` samples from.
    draws, tune : int
        Of each chain, unless told otherwise: a run ends sooner, once it is settled.
    add_fit : callable
        Adds to a parser the options that describe data and a model.
    job : callable
        ``job(options)``: the model and the data that they describe.
    compare : callable
        ``compare(first, second, options)`` of two runs: a report.
    report : callable
        ``report(run, options)``; options are those of ``show``, or None.
    rivals : callable
        ``rivals(run)``: the run beside the simple rivals of its family, a `Comparison`.
    questions : sequence of Question
    more : sequences of (word, help, add, command)
        Actions that are not about a run.
    add_show, add_compare : callable
        Add further options to these actions.
    recipe : Recipe
        Options of ``fit`` by which other files are read, too.
    takes_cluster : bool
        Whether ``fit`` and ``resume`` can have a cluster do the work.
    """

    family: Family
    help: str
    examples: str
    source: str
    draws: int
    tune: int
    add_fit: Callable[[Parser], Any]
    job: Callable[[Options], Job]
    compare: Callable[[StoredRun, StoredRun, Options], Any]
    report: Callable[[StoredRun, Options | None], Any] = _report_of
    rivals: Callable[[StoredRun], "Comparison"] = _rivals_of
    questions: Sequence[Question] = ()
    more: Sequence[tuple[str, str, Callable[[Parser], Any], Callable[[Options], int]]] = ()
    add_show: Callable[[Parser], Any] = lambda parser: None
    add_compare: Callable[[Parser], Any] = lambda parser: None
    recipe: Recipe = field(default_factory=Recipe)
    takes_cluster: bool = False


def add_room(commands: Any, room: Room) -> None:
    """``pgmult FAMILY`` with its actions."""
    parser = commands.add_parser(
        room.family.name, help=room.help, epilog="examples:\n" + room.examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    actions = parser.add_subparsers(required=True, metavar="ACTION")

    def action(word: str, text: str, command: Callable[[Room, Options], int]) -> Parser:
        added: Parser = actions.add_parser(word, help=text)
        added.set_defaults(command=partial(command, room))
        return added

    fit = action("fit", f"sample a model of {room.source}", _fit)
    resume = action("resume", "go on with a run, to the draws of one without a break", _resume)
    _add_sampling(room, fit, resume)
    show = action("show", "print what a run found", _show)
    _add_run(show)
    _add_json(show)
    room.add_show(show)
    report = action("report", "write the page of a run anew", _report)
    _add_run(report)
    report.add_argument("--out", type=Path, metavar="PAGE", help="default: RUN/report.html")
    for question in room.questions:
        asking = action(question.word, question.help, partial(_ask, question))
        _add_run(asking)
        for one in question.options:
            one.add(asking)
        if question.writes:
            add_writing(asking, figure=question.draws)
    told = "a run with simple rivals, or two runs of the same data"
    compare = action("compare", told, _compare)
    _add_run(compare, "first")
    compare.add_argument("second", type=Path, metavar="OTHER", nargs="?")
    _add_json(compare)
    room.add_compare(compare)
    for word, text, add, command in room.more:
        one = actions.add_parser(word, help=text)
        one.set_defaults(command=command)
        add(one)


def _add_sampling(room: Room, fit: Parser, resume: Parser) -> None:
    fit.add_argument("--out", type=Path, required=True, metavar="RUN", help="run directory")
    fit.add_argument("--title", metavar="TEXT", help="of the report (default: the file's name)")
    fit.add_argument(
        "--draws",
        **whole(
            1,
            told=f"kept of each chain (default: at most {room.draws}, until what the report tells"
            " first is settled)",
        ),
    )
    for name, value, least, told in (
        ("tune", room.tune, 0, "updates of all unknowns before the first draw"),
        ("chains", 4, 1, "from starts of their own, to be compared"),
        ("thin", 1, 1, "updates for each draw that is kept"),
    ):
        fit.add_argument(f"--{name}", **whole(least, value, told))
    SEED.add(fit)
    _add_run(resume)
    resume.add_argument("--draws", **whole(1, told="to have in the end"))
    for parser in (fit, resume):
        add_running(parser)
        parser.add_argument(
            "--until", metavar="GOAL",
            help="end sooner: once the draws are worth so many independent ones (400ess), after a"
            " time (90s, 5min, 2h), or once the report is settled (settled, the default without"
            " --draws); --draws is then the most of a chain",
        )  # fmt: skip
        _add_json(parser)
        if room.takes_cluster:
            parser.add_argument(
                "--cluster", metavar="WHERE",
                help="local, for worker processes, or the address of a Dask scheduler, tcp://...;"
                " variables of single rows are not stored then",
            )  # fmt: skip
        parser.add_argument(
            "--no-compare", dest="compares", action="store_false",
            help="do not score the model beside simple rivals",
        )  # fmt: skip
    room.add_fit(fit)


def _add_run(parser: Parser, name: str = "run") -> None:
    parser.add_argument(name, type=Path, metavar="RUN")


def _add_json(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON, for machines")


def _fit(room: Room, options: Options) -> int:
    if options.draws is None:
        options.draws = room.draws
        if options.until is None:
            options.until = SETTLED
        elif options.until != SETTLED:  # as many as the goal takes
            options.draws *= _MOST_TIMES
    refuse_held(options.out, room.family)
    job = room.job(options)
    until = {} if options.until is None else {"until": options.until}
    job = replace(job, notes={**job.notes, **room.recipe.write(options), **until})
    if not options.json and job.said:
        print(job.said, flush=True)
    if not options.json:
        print(f"The page, provisional at first: {options.out / PAGE}", flush=True)
    run = sampled(options, room.family, job, lambda run: room.report(run, None))
    return _finish(room, options, run, options.out)


def _resume(room: Room, options: Options) -> int:
    run = resumed(options, room.family, lambda run: room.report(run, None))
    return _finish(room, options, run, options.run)


def _finish(room: Room, options: Options, run: StoredRun | None, asked: Path) -> int:
    """Print the report of a run that has ended, write its page, and say how to go on."""
    if run is not None:
        if options.compares:
            _compare_with_rivals(room.rivals, run)
        if not options.json:
            print()
        tell(options, room.report(run, None), run.path / PAGE)
        if not options.json:
            print(f"The same with pictures: {run.path / PAGE}; the draws: {run.path}")
    if run is None or run.is_unfinished:
        complain(
            f"interrupted; what was drawn is in {asked}: go on with"
            f" pgmult {room.family.name} resume {shlex.quote(str(asked))}"
        )
        return INTERRUPTED
    return 0


def _compare_with_rivals(rivals: Callable[[StoredRun], "Comparison"], run: StoredRun) -> None:
    """Keep how a run does beside its rivals; data that are too few to say so do not end a job."""
    try:
        run.keep_comparison(rivals(run))
    except ValueError as error:
        complain(f"not compared with simple rivals: {error}")


def _show(room: Room, options: Options) -> int:
    tell(options, room.report(StoredRun.open(options.run, room.family), options))
    return 0


def _report(room: Room, options: Options) -> int:
    page = options.out or options.run / PAGE
    room.report(StoredRun.open(options.run, room.family), None).save(page)
    print(page)
    return 0


def _compare(room: Room, options: Options) -> int:
    first = StoredRun.open(options.first, room.family)
    if options.second is None:
        found = room.rivals(first)
        first.keep_comparison(found)
        give(found, options)
        return 0
    second = StoredRun.open(options.second, room.family)
    room.recipe.follow(options, first.notes)
    give(room.compare(first, second, options), options)
    return 0


def _ask(question: Question, room: Room, options: Options) -> int:
    run = StoredRun.open(options.run, room.family)
    room.recipe.follow(options, run.notes)
    answer = question.answer(run, options)
    if answer is not None:
        give(answer, options, tidy=question.tidy)
    return 0


# --------------------------------------------------------------------------- demonstrations


@dataclass(frozen=True)
class Demo:
    """``pgmult demo NAME``: a first job without a download.

    Attributes
    ----------
    name, help : str
        What `pgmult.cli.demos` makes under that name is sampled and reported.
    own : str
        How to go on with data of one's own.
    kernel_set : str
        What it compiles, in the lists of `pgmult.compiled.ahead`.
    draws, tune, chains : int
        Unless told otherwise.
    add : callable
        Adds the demonstration's own options to a parser.
    """

    name: str
    help: str
    own: str
    kernel_set: str
    draws: int
    tune: int
    chains: int = 2
    add: Callable[[Parser], Any] = lambda parser: None


def add_demo(demos: Any, demo: Demo) -> None:
    """A demonstration with its options."""
    parser = demos.add_parser(demo.name, help=demo.help)
    parser.set_defaults(command=partial(_demo, demo))
    for name, value, least in (
        ("draws", demo.draws, 1), ("tune", demo.tune, 0), ("chains", demo.chains, 1)
    ):  # fmt: skip
        parser.add_argument(f"--{name}", **whole(least, value))
    parser.add_argument(
        "--out", type=Path, metavar="RUN", help="keep the draws there (default: only a page)"
    )
    SEED.add(parser)
    add_running(parser)
    _add_json(parser)
    demo.add(parser)


def _demo(demo: Demo, options: Options) -> int:
    began = perf_counter()
    begin_compiling(demo.kernel_set, options)
    from pgmult.cli.demos import run_demo

    silence_what_is_told_anyway()
    posterior, report = run_demo(demo.name, options, (lambda text: None) if options.json else _say)
    free = free_name(f"pgmult-demo-{demo.name}", ".html")
    page = free if options.out is None else options.out / PAGE
    if not options.json:
        print()
    tell(options, report, page)
    if not options.json:
        draws = "" if options.out is None else f"; the draws: {options.out}"
        print(f"The same with pictures: {page}{draws}")
        print(f"{perf_counter() - began:.0f} s in all. {demo.own}")
    if posterior.num_draws < options.draws:
        complain("interrupted; the report is of the draws so far")
        return INTERRUPTED
    return 0


def _say(text: str) -> None:
    print(text, flush=True)

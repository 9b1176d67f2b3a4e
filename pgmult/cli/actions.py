"""The actions of ``pgmult FAMILY``: the same words and the same options for every family.

A family of data has a `Room`: how ``fit`` reads its files and makes a model of them, how it
reports, and which further questions it answers. This module has everything else, once: to sample
and to resume, to show and to write the page, to compare two runs, to print or write an answer.
"""

import argparse
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgmult.cli import shared
from pgmult.cli.runs import Job, StoredRun, refuse_held, resumed, sampled
from pgmult.core.family import Family
from pgmult.sampling.settled import SETTLED

if TYPE_CHECKING:
    from pgmult.core.comparison import Comparison

_MOST_TIMES = 20  # as many draws as usual, where something else ends a run

Options = argparse.Namespace
Parser = argparse.ArgumentParser


class Question:
    """An action that asks a run something.

    Its options are the parameters of the verb that answers (`pgmult.cli.verbs.options_of`), and
    those that the command line adds.

    Attributes
    ----------
    word, help : str
    more : sequence of Option
        Options beside those of the verb.
    answers : str
        The verb that answers: `verb`, if it is not `word`.
    ask : callable, optional
        ``ask(run, options, arguments)`` answers instead of the run, with the arguments that the
        options give; None where it has printed the answer.
    tidy : bool
        Whether the answer is printed as rows of CSV.
    writes : bool
        Whether the answer is a table that ``--out`` can write.
    how : mapping
        Other arguments of `pgmult.cli.verbs.options_of`.
    """

    def __init__(
        self, word: str, text: str, more: Sequence[shared.Option] = (), verb: str = "", *,
        ask: Callable[[StoredRun, Options, dict[str, Any]], Any] | None = None,
        tidy: bool = False, writes: bool = True, **how: Any,
    ):  # fmt: skip
        self.word, self.help, self.more, self.ask = word, text, more, ask
        self.answers = verb or word.replace("-", "_")
        self.tidy, self.writes, self.how = tidy, writes, how

    def options(self, family: Family) -> list[shared.Option]:
        """Return the options of the verb, and those beside them."""
        from pgmult.cli.verbs import options_of

        return [*options_of(family.verbs[self.answers].load(), **self.how), *self.more]

    def add(self, family: Family, parser: Parser) -> None:
        """Add the options to the parser of the action."""
        for option in self.options(family):
            option.add(parser)
        if self.writes:
            shared.add_writing(parser)

    def answer(self, run: StoredRun, family: Family, options: Options) -> Any:
        """Return the answer of a run."""
        arguments = shared.arguments_of(self.options(family), options)
        if self.ask is not None:
            return self.ask(run, options, arguments)
        return run.ask(self.answers, **arguments)


CHECK = Question("check", "Compare the data with data that the model simulates")


def _effects(run: StoredRun, options: Options, arguments: dict[str, object]) -> Any:
    if options.difference is None:
        return run.ask("effects", **arguments)
    effects = run.ask("effects", **arguments | {"values": options.difference})
    return effects.difference(options.column, *options.difference)


def effects_question(help_text: str) -> Question:
    """Make the question what a column does, with differences between two of its values."""
    return Question("effects", help_text, [shared.DIFFERENCE], first=["column"], ask=_effects)


class ActionParser(Parser):
    """A parser of an action whose options are added when it is first used.

    Help of other actions then needs no import of what answers this one.
    """

    fill: Sequence[Callable[[Parser], object]] = ()

    def complete(self) -> None:
        """Add the options, unless they are there."""
        fill, self.fill = self.fill, ()
        for add in fill:
            add(self)

    def parse_known_args(self, *arguments: object, **options: object) -> Any:
        """Parse arguments, with all options."""
        self.complete()
        return super().parse_known_args(*arguments, **options)


@dataclass(frozen=True)
class Room:
    """A family at the command line.

    Attributes
    ----------
    family : Family
    help, examples, source : str
        Its purpose, examples of its use, and what ``fit`` samples from.
    draws, tune : int
        Default numbers for each chain; a run ends sooner, once it has converged.
    add_fit : callable
        ``add_fit(parser)`` adds the options that describe data and a model.
    job : callable
        ``job(options)`` makes the model and the data that they describe.
    compare : callable
        ``compare(first, second, options)`` compares two runs.
    report : callable
        ``report(run, options)``; options are those of ``show``, or None.
    rivals : callable
        ``rivals(run)`` compares the run with the simple rivals of its family.
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
    report: Callable[[StoredRun, Options | None], Any] = lambda run, options: run.report()
    rivals: Callable[[StoredRun], "Comparison"] = lambda run: run.ask("compare")
    questions: Sequence[Question] = ()
    more: Sequence[tuple[str, str, Callable[[Parser], Any], Callable[[Options], int]]] = ()
    add_show: Callable[[Parser], Any] = lambda parser: None
    add_compare: Callable[[Parser], Any] = lambda parser: None
    recipe: shared.Recipe = field(default_factory=shared.Recipe)
    takes_cluster: bool = False


_FIT = """
--out RUN!  Run directory
--title TEXT  Title of the report (default: the file's name)
--draws N>=1  Draws per chain (default: until the main results have converged, at most {draws})
--tune N>=0  Sweeps of each chain before its first draw (default: {tune})
--chains N>=1  Number of chains, each with its own start (default: 4)
--thin N>=1  Sweeps per draw (default: 1)
--seed N>=0  Seed of the random numbers (default: 0)
"""
_RESUME = """
RUN  Run directory
--draws N>=1  Draws per chain when the run ends
"""
_GOAL = """
--until GOAL  End the run early: at an effective sample size (400ess), after a time (90s, 5min, 2h),
    or when the main results have converged (settled, the default without --draws); --draws is then
    the maximum
--json  Print JSON
--no-compare  Do not compare the model with simple rivals
"""
_CLUSTER = """
--cluster WHERE  Sample on a cluster: local, for worker processes, or the address of a Dask
    scheduler, tcp://...; variables of single rows are not stored then
"""
_RUN = "RUN  Run directory\n"
_SHOW = _RUN + shared.JSON
_REPORT = f"{_RUN}--out PAGE  Path of the page (default: RUN/report.html)"
_COMPARE = f"{_RUN}OTHER  Run to compare with (default: simple rivals)\n{shared.JSON}"


def add_room(commands: "argparse._SubParsersAction[Any]", room: Room) -> None:
    """Add ``pgmult FAMILY`` with its actions."""
    parser = commands.add_parser(room.family.name, help=room.help)
    parser.epilog = f"examples:\n{room.examples}"
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    actions = parser.add_subparsers(required=True, metavar="ACTION", parser_class=ActionParser)

    def options(page: str) -> Callable[[Parser], object]:
        no_compare = {"dest": "compares", "action": "store_false"}
        return shared.asides(page, other={"nargs": "?"}, no_compare=no_compare).add

    goal = shared.RUNNING + _GOAL + (_CLUSTER if room.takes_cluster else "")
    sampling = options(_FIT.format(draws=room.draws, tune=room.tune) + goal)
    compare = "Compare a run with simple rivals, or two runs of the same data"
    every: list[tuple[Any, ...]] = [
        ("fit", f"Sample a model of {room.source}", partial(_fit, room), sampling, room.add_fit),
        ("resume", "Continue a run that was interrupted, or draw more", partial(_resume, room),
         options(_RESUME + goal)),
        ("show", "Print the report of a run", partial(_show, room), options(_SHOW), room.add_show),
        ("report", "Write the page of a run again", partial(_report, room), options(_REPORT)),
        *((x.word, x.help, partial(_ask, x, room), options(_RUN), partial(x.add, room.family))
          for x in room.questions),
        ("compare", compare, partial(_compare, room), options(_COMPARE), room.add_compare),
        *((word, text, command, add) for word, text, add, command in room.more),
    ]  # fmt: skip
    for word, text, command, *fill in every:
        added: ActionParser = actions.add_parser(word, help=text, description=f"{text}.")
        added.set_defaults(command=command)
        added.fill = fill


def _fit(room: Room, options: Options) -> int:
    if options.draws is None:
        options.until = options.until or SETTLED
        options.draws = room.draws * (1 if options.until == SETTLED else _MOST_TIMES)
    refuse_held(options.out, room.family)
    job = room.job(options)
    until = {"until": options.until} if options.until else {}
    job = replace(job, notes={**job.notes, **room.recipe.write(options), **until})
    if not options.json:
        page = f"Page, provisional until the run ends: {options.out / shared.PAGE}"
        print(*filter(None, [job.note, page]), sep="\n", flush=True)
    run = sampled(options, room.family, job, lambda run: room.report(run, None))
    return _finish(room, options, run, options.out)


def _resume(room: Room, options: Options) -> int:
    run = resumed(options, room.family, lambda run: room.report(run, None))
    return _finish(room, options, run, options.run)


def _finish(room: Room, options: Options, run: StoredRun | None, asked: Path) -> int:
    """Print the report of a run that has ended, write its page, and say how to continue."""
    if run is not None:
        if options.compares:
            try:
                run.keep_comparison(room.rivals(run))
            except ValueError as error:  # too few data do not end a job
                shared.complain(f"not compared with simple rivals: {error}")
        if not options.json:
            print()
        report = room.report(run, None)
        run = run.after(shared.waited())
        report = replace(report, facts={**report.facts, "run": run.facts["run"]})
        shared.print_report(options, report, run.path / shared.PAGE)
        if not options.json:
            print(f"Page with figures: {run.path / shared.PAGE}; draws: {run.path}")
    if run is None or run.is_unfinished:
        command = f"pgmult {room.family.name} resume {shlex.quote(str(asked))}"
        shared.complain(f"interrupted; the draws so far are in {asked}: continue with {command}")
        return shared.INTERRUPTED
    return 0


def _show(room: Room, options: Options) -> int:
    shared.print_report(options, room.report(StoredRun.open(options.run, room.family), options))
    return 0


def _report(room: Room, options: Options) -> int:
    page = options.out or options.run / shared.PAGE
    room.report(StoredRun.open(options.run, room.family), None).save(page)
    print(page)
    return 0


def _compare(room: Room, options: Options) -> int:
    first = StoredRun.open(options.run, room.family)
    if options.other is None:
        compared = room.rivals(first)
        first.keep_comparison(compared)
    else:
        second = StoredRun.open(options.other, room.family)
        room.recipe.follow(options, first.notes)
        compared = room.compare(first, second, options)
    shared.print_answer(compared, options)
    return 0


def _ask(question: Question, room: Room, options: Options) -> int:
    run = StoredRun.open(options.run, room.family)
    room.recipe.follow(options, run.notes)
    answer = question.answer(run, room.family, options)
    if answer is not None:
        shared.print_answer(answer, options, tidy=question.tidy)
    return 0


# --------------------------------------------------------------------------- demonstrations


@dataclass(frozen=True)
class Demo:
    """``pgmult demo NAME``: a first job without a download.

    Attributes
    ----------
    name, help : str
        `pgmult.cli.demos` makes the model and the data of this name.
    next_step : str
        How to continue with other data.
    kernel_set : str
        Name of its list of functions to compile, in `pgmult.compiled.ahead`.
    draws, tune : int
        Default numbers.
    more : str
        Page of further options.
    """

    name: str
    help: str
    next_step: str
    kernel_set: str
    draws: int
    tune: int
    more: str = ""


def add_demo(demos: "argparse._SubParsersAction[Any]", demo: Demo) -> None:
    """Add a demonstration with its options."""
    parser = demos.add_parser(demo.name, help=demo.help)
    parser.set_defaults(command=partial(_demo, demo))
    page = f"""--seed N>=0  Seed of the random numbers (default: 0)
{demo.more}
--draws N>=1  Draws per chain (default: {demo.draws})
--tune N>=0  Sweeps of each chain before its first draw (default: {demo.tune})
--chains N>=1  Number of chains (default: 2)
--out RUN  Store the draws in a directory (default: write a page only)"""
    shared.add_options(parser, page + shared.RUNNING + shared.JSON)


def _demo(demo: Demo, options: Options) -> int:
    shared.begin_compiling(demo.kernel_set, options)
    from pgmult.cli.demos import run_demo
    from pgmult.core.reports import run_in_words

    shared.silence_reported_warnings()
    free = shared.free_name(f"pgmult-demo-{demo.name}", ".html")
    page = free if options.out is None else options.out / shared.PAGE
    say: Any = (lambda *text: None) if options.json else partial(print, flush=True)
    posterior, report = run_demo(demo.name, options, say, page)
    seconds = shared.waited()
    report = replace(report, facts={**report.facts, "run": run_in_words(posterior, seconds)})
    say()
    shared.print_report(options, report, page)
    say(f"Page with figures: {page}{'' if options.out is None else f'; draws: {options.out}'}")
    say(f"{seconds:.0f} s in all. {demo.next_step}")
    if posterior.num_draws < options.draws:
        shared.complain("interrupted; the report is of the draws so far")
        return shared.INTERRUPTED
    return 0

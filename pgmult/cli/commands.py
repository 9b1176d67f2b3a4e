"""The command line: ``pgmult FILE``, ``demo``, ``topics``, ``fields``, ``sequences``,
``regression``, ``choice``, ``warmup``, ``doctor``.

A family of data has a room in a file of its own; the actions of all rooms are in
`pgmult.cli.actions`. Exit codes: 0 done; 1 `doctor` found something broken; 2 bad input, with one
line on the error stream; 130 interrupted with Ctrl-C, after the draws so far were stored. Modules
that compile or draw are imported when a command needs them, so that help and version come at once.
"""

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from pgmult.cli.actions import Demo, add_demo, add_room
from pgmult.cli.choice import ROOM as CHOICE
from pgmult.cli.doctor import _doctor, _warmup
from pgmult.cli.fields import ROOM as FIELDS
from pgmult.cli.regression import ROOM as REGRESSION
from pgmult.cli.sequences import ROOM as SEQUENCES
from pgmult.cli.shared import INTERRUPTED, JSON, TABLE, add_options, complain, show_warning
from pgmult.cli.topics import ROOM as TOPICS
from pgmult.core._version import __version__

DEMOS = (
    Demo(
        "topics", "Topics of messages of US presidents, by party and year",
        "For other texts, a CSV row each:\n"
        "  pgmult topics fit speeches.csv --column text --prevalence '~ party + s(year)' \\\n"
        "    --content '~ party' --topics 50 --out run",
        "StructuralTopics", draws=3500, tune=300,
        more="--topics K>=2  Number of topics (default: 4)",
    ),
    Demo(
        "fields", "Six names of newborn girls over years and states",
        "For other counts, a row each:\n"
        "  pgmult fields fit names.csv --inputs year state --places us-states \\\n"
        "    --category name --count n --out run",
        "MultinomialGP separable", draws=200, tune=100,
    ),
    Demo(
        "sequences", "Four years of rain in Seattle, and their seasons",
        "For other sequences, a row for each step:\n"
        "  pgmult sequences fit visits.csv --symbol state --sequence patient --time day \\\n"
        "    --every day --out visits",
        "MultinomialHMM", draws=400, tune=200,
    ),
    Demo(
        "regression", "Admissions to Berkeley in 1973: Simpson's paradox",
        "For another survey, a row for each respondent:\n"
        '  pgmult regression fit survey.csv "vote ~ sex + s(age) + (1 | state)" --out run\n'
        "  pgmult regression poststratify run census.csv --by state --weight people",
        "AdditiveRegression", draws=300, tune=100,
    ),
    Demo(
        "choice", "Choices between plane, train, bus and car, and the value of time",
        "For other choices, a row for each alternative:\n"
        '  pgmult choice fit trips.csv "taken ~ price + time + (price + time | person)" \\\n'
        "    --occasion person trip --out run",
        "MixedLogit", draws=300, tune=100,
    ),
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    first, *others = words or [""]
    names_family = others and not others[0].startswith("-")
    if first == "demo" and not names_family and {"-h", "--help"}.isdisjoint(others):
        words.insert(1, "topics")  # the demonstration of whoever has not chosen one
    if not first.startswith("-") and ("." in first or "/" in first):  # as no command is called
        words.insert(0, "look")
    options = _parser().parse_args(words)
    with warnings.catch_warnings():
        warnings.showwarning = show_warning  # put back at the end of the block
        try:
            return int(options.command(options))
        except KeyboardInterrupt:
            complain("interrupted")
            return INTERRUPTED
        except BrokenPipeError:  # the reader of a pipe has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except OSError as error:
            has_file = error.filename is not None and error.strerror is not None
            complain(f"{error.filename}: {error.strerror}" if has_file else str(error))
        except (ValueError, TypeError, ImportError, MemoryError) as error:
            complain(str(error) or type(error).__name__)
        except Exception as error:  # nobody can act on a traceback, and whoever reports it can
            if os.environ.get("PGMULT_TRACEBACK"):
                raise
            what = "an error of pgmult's own, please report it with what PGMULT_TRACEBACK=1 shows"
            complain(f"{what}: {type(error).__name__}: {error}")
    return 2


def _look(options: argparse.Namespace) -> int:
    from pgmult.cli.look import show_columns

    return show_columns(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pgmult", description="Bayesian inference for dependent multinomial data.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="start with:\n"
        "  pgmult demo                    a topic model of real texts, in a minute or two\n"
        "  pgmult survey.csv              the columns of a table, and the commands that fit it\n"
        "  pgmult topics fit --help       the options of an action of a command",
    )  # fmt: skip
    parser.add_argument("--version", action="version", version=f"pgmult {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, help_text: str, **more: Any) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=help_text)
        added.set_defaults(**more)
        return added

    about = "Show the columns of a table and the commands that fit it (pgmult FILE for short)"
    look = add("look", about, command=_look)
    add_options(look, "FILE  Table, text or FASTA file")
    TABLE.add(look)
    add_options(look, JSON)
    demo = add("demo", "Run an example, without a download")
    demo.epilog = "FAMILY is topics by default."
    demos = demo.add_subparsers(required=True, metavar="FAMILY")
    for one in DEMOS:
        add_demo(demos, one)
    for room in (TOPICS, FIELDS, SEQUENCES, REGRESSION, CHOICE):
        add_room(commands, room)
    add("warmup", "Compile now, so that the next command starts at once", command=_warmup)
    add("doctor", "Check this installation", command=_doctor)
    return parser

"""What commands share: options, complaints on the error stream, where answers go."""

import argparse
import json
import math
import re
import shutil
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, count
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

if TYPE_CHECKING:
    from pgmult.cli.runs import StoredRun
    from pgmult.core.reports import Report
    from pgmult.datasets.tables import DataTable

_BEGAN = perf_counter()

INTERRUPTED = 130  # what shells report of a process that Ctrl-C ended
PAGE = "report.html"
READING = ("delimiter", "encoding", "na_values", "time_zone", "sheet", "drop_incomplete")
JSON = "--json  Print JSON"
RUNNING = """
--cores N>=1  Use N cores (default: all)
--quiet  Show no progress line
"""
_ESCAPES = {code: None for code in range(32) if chr(code) not in "\t\n"} | {127: None}


# --------------------------------------------------------------------------- the error stream


def complain(message: str) -> None:
    """Print one line on the error stream, without codes that colour a terminal.

    Arguments that messages advise in Python are replaced by the options of the command line.
    """
    text = plain(message).replace("new_levels=True", "--new-levels")
    for argument in ("time_zone", "sheet", "encoding", "delimiter"):
        text = text.replace(f"{argument}=", f"--{argument.replace('_', '-')} ")
    print(f"pgmult: {' '.join(text.split())}", file=sys.stderr)


def plain(text: str) -> str:
    """A text without control characters, which terminals obey."""
    return re.sub(r"\x1b\[[0-9;?]*[ -/]*[@-~]", "", text).translate(_ESCAPES)


def show_warning(message: Warning | str, *where: object, **more: object) -> None:
    """A warning as one line, for `warnings.showwarning`."""
    complain(f"warning: {message}")


def silence_reported_warnings() -> None:
    """Silence warnings that repeat what the report says."""
    from pgmult.sampling.diagnostics import ConvergenceWarning

    warnings.simplefilter("ignore", ConvergenceWarning)  # the report has diagnostics
    warnings.filterwarnings("ignore", "interrupted: |until='settled' was not reached")


# --------------------------------------------------------------------------- options


def at_least(minimum: int) -> Callable[[str], int]:
    """A type of option: whole numbers from `minimum` on."""

    def whole_number(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"expected a whole number, got {text!r}") from None
        if value < minimum:
            raise argparse.ArgumentTypeError(f"must be at least {minimum}, got {value}")
        return value

    return whole_number


def share(text: str) -> float:
    """A type of option: numbers between 0 and 1."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < 1.0:
        raise argparse.ArgumentTypeError(f"must be between 0 and 1, got {text!r}")
    return value


def value_of(text: str) -> object:
    """A number where it is one, a label otherwise; a label that looks like a number stays it."""
    from pgmult.core.labels import Written

    for kind in (int, Written):
        try:
            return kind(text)
        except ValueError:
            continue
    return text.strip()


_KINDS: Mapping[str, Callable[[str], object]] = {
    "X": float, "P": share,
    **dict.fromkeys(("RUN", "OTHER", "TABLE", "DATA", "FILE", "FOLDER", "PAGE"), Path),
}  # fmt: skip
"""Types of values, by what pages of help call them."""


class Option(NamedTuple):
    """An option of an action.

    Attributes
    ----------
    add : callable
        ``add(parser)`` adds the option to a parser.
    arguments : callable
        ``arguments(options)`` returns keyword arguments for the function that answers.
    """

    add: Callable[[Any], object]
    arguments: Callable[[argparse.Namespace], Mapping[str, Any]] = lambda options: {}


def option(
    name: str, *, to: str | None = None,
    read: Callable[[Any, argparse.Namespace], Any] | None = None, **how: Any,
) -> Option:  # fmt: skip
    """Make an option that gives one argument of the function that answers.

    Parameters
    ----------
    name : str
    to : str, optional
        Name of the argument, if it is not that of the option.
    read : callable, optional
        ``read(value, options)`` makes the argument from the value of the option.
    how : optional
        Arguments of ``add_argument``.
    """
    place = name.lstrip("-").replace("-", "_")

    def arguments(options: argparse.Namespace) -> dict[str, Any]:
        value = getattr(options, place)
        if read is not None and value is not None:
            value = read(value, options)
        return {place if to is None else to: value}

    return Option(lambda parser: parser.add_argument(name, **how), arguments)


def asides(page: str, **more: Mapping[str, object]) -> Option:
    """Make options that the command itself reads: see `add_options`."""
    return Option(lambda parser: add_options(parser, page, **more))


def add_options(
    parser: argparse._ActionsContainer, page: str, **more: Mapping[str, object]
) -> None:
    """Add options and arguments that are written as on a page of help.

    An entry is a line, continued by lines that begin with blanks: a name; the form of its value,
    unless it is a switch; two blanks; and the help. The form ``N>=1`` takes whole numbers from 1
    on, ``a|b`` one of these words, X any number, P a number between 0 and 1. After it, ``...``
    stands for several values, ``*`` for an option that may be repeated, ``!`` for one that is
    required. A default that is a number or one of the words is read from the help.

    Parameters
    ----------
    parser : ArgumentParser, or a group of one
    page : str
    **more
        Further arguments of ``add_argument``, by the name of an option.

    Examples
    --------
    >>> parser = argparse.ArgumentParser()
    >>> add_options(parser, '''
    ... --draws N>=1  Draws per chain (default: 100)
    ... --by a|b...  Order of the rows
    ... ''')
    >>> vars(parser.parse_args(["--by", "b", "a"]))
    {'draws': 100, 'by': ['b', 'a']}
    """
    for entry in filter(None, re.split(r"\n(?! )", page)):
        head, text = entry.split("  ", 1)
        name, _, form = head.partition(" ")
        place = name.lstrip("-").replace("-", "_").lower()
        how = _how(name, form, " ".join(text.split())) | dict(more.get(place, {}))
        parser.add_argument(name if name.startswith("-") else place, **how)


def _how(name: str, form: str, text: str) -> dict[str, Any]:
    """Arguments of ``add_argument`` for an entry of a page of help."""
    how: dict[str, Any] = {"help": text.replace("%", "%%")}
    if not name.startswith("-"):
        return {"metavar": name, "type": _KINDS.get(name, str), **how}
    if not form:
        return {"action": "store_true", **how}
    value = form.rstrip(".*!")
    word, _, least = value.partition(">=")
    kind: Any = at_least(int(least)) if least else _KINDS.get(word, str)
    how |= {"choices": word.split("|")} if "|" in word else {"metavar": word, "type": kind}
    how |= {"nargs": "+"} if "..." in form else {}
    how |= {"action": "append", "default": []} if "*" in form else {}
    how |= {"required": True} if "!" in form else {}
    default = re.search(r"\(default: ([^)]*)\)", text)
    if default and default[1] in how.get("choices", ()):
        how["default"] = default[1]
    elif default and (least or word in ("X", "P")):
        with suppress(ValueError, argparse.ArgumentTypeError):
            how["default"] = kind(default[1])
    return how


def arguments_of(asked: Sequence[Option], options: argparse.Namespace) -> dict[str, object]:
    """Return the keyword arguments that options give to a function."""
    return {name: value for one in asked for name, value in one.arguments(options).items()}


def running(options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of `pgmult.sample` that options give."""
    return {
        "draws": options.draws, "tune": options.tune, "chains": options.chains,
        "random_seed": options.seed, "cores": options.cores, "progressbar": not options.quiet,
        "store": options.out,
    }  # fmt: skip


def _settings(texts: Sequence[str], options: argparse.Namespace) -> dict[str, object] | None:
    """Return columns with the values that ``--at`` gives them."""
    settings: dict[str, object] = {}
    for text in texts:
        name, equals, cells = text.partition("=")
        if not equals:
            raise ValueError(f"--at takes COLUMN=VALUE, got {text!r}")
        values = [value_of(cell) for cell in cells.split(",")]
        settings[name.strip()] = values if len(values) > 1 else values[0]
    return settings or None


def begin_compiling(kernel_set: str, options: argparse.Namespace) -> None:
    """Compile what a model needs in other processes, while this one imports and reads."""
    from pgmult.compiled.ahead import compile_ahead
    from pgmult.core.machine import as_cores

    compile_ahead(kernel_set, as_cores(options.cores))


_FEWEST = 5  # draws of a chain that are kept of anything


def kept_every(
    sizes: Mapping[str, int], most_bytes: int, options: argparse.Namespace, *,
    keep: int | None = None, more: str = "",
) -> int:  # fmt: skip
    """Return the thinning interval of large variables: every n-th draw is stored.

    Parameters
    ----------
    sizes : mapping from name to int
        How many numbers a draw of each has.
    most_bytes : int
        Bytes that all draws of all chains may take; every draw is stored if they take half of that.
    keep : int, optional
        How many draws to store instead, where a user can ask for that.
    more : str
        How a user asks for more.
    """
    draws, size = options.draws * options.chains, 4 * sum(sizes.values())
    most = keep or most_bytes // size
    all_fit = draws <= (keep or most // 2)
    wanted = 1 if all_fit else max(2, math.ceil(draws / max(1, most)))
    every = max(1, min(wanted, int(options.draws) // _FEWEST))
    if every > 1 and not options.json:
        megabytes = options.draws // every * options.chains * 1e-6 * size
        stored = f"One in {every} draws of {' and '.join(sizes)} is stored"
        print(f"{stored}, at most {megabytes:.0f} MB{more and f' ({more})'}")
    return every


def read_table(path: object, options: argparse.Namespace) -> "DataTable":
    """Read a table as options say."""
    from pgmult.datasets.tables import read

    how = {name: getattr(options, name) for name in READING if name != "drop_incomplete"}
    return read(path, **{name: value for name, value in how.items() if value is not None})


def titled(table: "DataTable", name: str) -> str:
    """Return the label of a column in its file, such as a question, with its name in parentheses.

    The name alone where the file has no label.
    """
    title = table.cells[name].title if name in table else ""
    return f"{title} ({name})" if title not in ("", name) else name


SEED = option(
    "--seed", to="random_seed", type=at_least(0), default=0, metavar="N",
    help="Seed of the random numbers (default: 0)",
)  # fmt: skip
AT = option(
    "--at", read=_settings, action="append", default=[], metavar="COLUMN=VALUE[,VALUE...]",
    help="Set a column to a value, or use the rows with these values; may be repeated",
)  # fmt: skip
_DIFFERENCE = "--difference VALUE  Subtract the answer at the second value from that at the first"
DIFFERENCE = asides(_DIFFERENCE, difference={"nargs": 2, "type": value_of})
# how to read a table
TABLE = asides("""
--delimiter CHAR  Character between the columns (default: that of the header)
--encoding NAME  Encoding of the file (default: detected)
--na-values TEXT...  Texts that stand for a missing value (default: an empty cell, or NA)
--time-zone NAME  Time zone of times that are written without one, and of the calendar if times have
    several zones
--sheet NAME  Sheet of a workbook, file of a .zip or data frame of an .RData, if it has several
""")
_GAPS = "--drop-incomplete  Leave out rows that lack a value of a column that is used"
GAPS = asides(_GAPS, drop_incomplete={"default": None})


def add_writing(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where an answer goes."""

    def table_file(text: str) -> Path:
        if not text.endswith((".csv", ".json")):
            raise argparse.ArgumentTypeError(f"must end in .csv or .json, got {text!r}")
        return Path(text)

    page = """
--out FILE  Write the table to a .csv or .json file (default: print it)
--json  Print JSON
--figure FILE  Draw the answer to a file, such as x.svg
"""
    add_options(parser, page, out={"type": table_file})


def complete(
    table: "DataTable", used: Mapping[str, str | None], options: argparse.Namespace,
    what_to_do: str, or_else: str = "leave such rows out",
) -> tuple["DataTable", str]:  # fmt: skip
    """Return a table without gaps in the columns that are used: refuse or leave out such rows.

    Parameters
    ----------
    table : Table
    used : mapping from what names a column to the column, or None
    options : Namespace
        With ``drop_incomplete``.
    what_to_do : str
        How the gaps can be filled, for the error.
    or_else : str
        What ``--drop-incomplete`` does, for the error.

    Returns
    -------
    table : Table
    note : str
        How many rows were left out; empty for none.

    Raises
    ------
    ValueError
        With the file, the column, how many cells, and the line of the first.
    """
    columns = {name: what for what, name in used.items() if name is not None and name in table}
    holed = {name: what for name, what in columns.items() if table.missing(name).any()}
    if not holed:
        return table, ""
    if not options.drop_incomplete:
        name, what = next(iter(holed.items()))
        gaps = table.missing(name)
        where = f"{gaps.sum():,} of {len(table):,} rows, first {table.place(int(gaps.argmax()))}"
        empty = f"{table.source}: column {name!r} ({what}) has no value in {where}"
        raise ValueError(f"{empty}: {what_to_do}, or {or_else} by --drop-incomplete")
    gaps, listed = table.missing(*holed), " or ".join(map(repr, holed))
    if gaps.all():
        raise ValueError(f"{table.source}: every row lacks a value of {listed}")
    rows = "1 row is" if gaps.sum() == 1 else f"{gaps.sum():,} rows are"
    return table[~gaps], f"{rows} left out, without a value of {listed}"


def columns_in(text: str | None, table: "DataTable") -> tuple[str, ...]:
    """The columns that an option names: one, or those of an expression."""
    from pgmult.formulas.language import names_in, parse_expression

    if text is None:
        return ()
    is_column = text in table or "(" not in text
    return (text,) if is_column else (*names_in(parse_expression(text)),)


def complete_for(
    formulas: Sequence[str | None], table: "DataTable", options: argparse.Namespace,
    *columns: str | None,
) -> tuple["DataTable", str]:  # fmt: skip
    """Leave out the rows that lack a value of a column of formulas, if that is asked for."""
    from pgmult.formulas.language import names_in, parse

    if not options.drop_incomplete:
        return table, ""
    used = list(columns)
    for one in map(parse, filter(None, formulas)):
        used += [*(() if one.outcome is None else names_in(one.outcome)), *one.columns]
    return complete(table, {str(name): name for name in used}, options, "")


def predict_complete(
    run: "StoredRun", table: "DataTable", columns: Sequence[str], options: argparse.Namespace,
    arguments: dict[str, Any],
) -> object:  # fmt: skip
    """Predict the rows of a table that have a value of these columns.

    Rows keep their numbers in the table; the error stream says which are left out.
    """
    import numpy as np

    from pgmult.core.tables import rows_in_words

    complete_rows, note = complete_for([], table, options, *columns)
    with rows_in_words(complete_rows):
        answer = run.ask("predict", complete_rows, **arguments)
    if note:
        complain(note)
        if "row" in answer.axes and table.lines is None:
            rows = np.flatnonzero(~table.missing(*(name for name in columns if name in table)))
            return replace(answer, labels={**answer.labels, "row": rows})
    return answer


class Recipe(NamedTuple):
    """Options of ``fit`` that say how a file becomes data; other files are read by them, too.

    Attributes
    ----------
    columns : tuple of str
        Options that name columns: for another file all of them are stated, or none.
    others : tuple of str
    """

    columns: tuple[str, ...] = ()
    others: tuple[str, ...] = READING

    def write(self, options: argparse.Namespace) -> dict[str, object]:
        """Return the values of these options, for the notes of a run."""
        values = {name: getattr(options, name) for name in (*self.columns, *self.others)}
        return {"recipe": {name: value for name, value in values.items() if value is not None}}

    def follow(self, options: argparse.Namespace, notes: Mapping[str, Any]) -> None:
        """Read another file as that of a run was, except where options say otherwise.

        ``options.followed`` are the names of the options that the run has set.
        """
        asked = vars(options)
        named = any(asked.get(name) is not None for name in self.columns)
        left_out = self.columns if named else ()
        recipe = {n: x for n, x in notes.get("recipe", {}).items() if n not in left_out}
        followed = {n: x for n, x in recipe.items() if asked.get(n, ...) is None}
        asked |= {**followed, "followed": [*followed]}


def unfollow(options: argparse.Namespace, names: Sequence[str]) -> None:
    """Reset options of a run's recipe that a file of another kind cannot use."""
    for name in set(names).intersection(options.followed):
        setattr(options, name, None)


# --------------------------------------------------------------------------- answers


def print_answer(answer: object, options: argparse.Namespace, *, tidy: bool = False) -> None:
    """Print an answer, or write its table and its figure where options say so.

    Parameters
    ----------
    answer : Report, Answer, Table or mapping of columns
    options : Namespace
        It has ``out``, ``json`` and ``figure`` where the command has them.
    tidy : bool
        Whether the screen shows rows of CSV, too.
    """
    from pgmult.core.reports import Report

    out, as_rows = getattr(options, "out", None), getattr(options, "json", False)
    if isinstance(answer, Report):
        print_report(options, answer)
    elif out is not None or as_rows or tidy:
        write_table(columns_of(answer), out, as_rows)
    else:
        print(answer)
    draw(answer, getattr(options, "figure", None), sys.stderr if as_rows else sys.stdout)


def draw(answer: Any, path: Path | None, stream: TextIO | None = None) -> None:
    """Draw an answer to a file, if there is a path."""
    if path is not None:
        axes = answer.plot()
        getattr(axes, "figure", axes).savefig(path, bbox_inches="tight")
        print(f"Figure: {path}", file=stream)


def columns_of(answer: Any) -> Mapping[str, object]:
    """Return the numbers of an answer, by column."""
    from pgmult.core.tabled import Table

    if isinstance(answer, Mapping):
        return answer
    return answer.columns if isinstance(answer, Table) else dict(answer.table().columns)


def write_table(columns: Mapping[str, Any], out: Path | None, as_rows: bool) -> None:
    """Write a table as CSV, or as JSON with an object a row; to a file or to the terminal."""
    from pgmult.core.tabled import print_csv, write_csv

    if out is None and not as_rows:
        print_csv(sys.stdout, columns)
    elif out is not None and out.suffix == ".csv":
        write_csv(out, columns)
    else:
        cells = [map(_cell, column) for column in columns.values()]
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*cells, strict=True)]
        text = json.dumps(rows, ensure_ascii=False, indent=0) + "\n"
        if out is None:
            sys.stdout.write(text)
        else:
            out.write_text(text, encoding="utf-8", newline="")
    if out is not None:
        print(f"{len(next(iter(columns.values()))):,} rows: {out}", file=sys.stderr)


def _cell(value: Any) -> object:
    import numpy as np

    from pgmult.core.tables import date_text

    if isinstance(value, np.datetime64):
        return date_text(value)
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value


def print_report(options: argparse.Namespace, report: "Report", page: Path | None = None) -> None:
    """Print a report, as text or as JSON, and write its page."""
    report.save(page)
    print(report.json() if options.json else report.text(width()))


def free_name(name: str, suffix: str) -> Path:
    """Return a path that does not exist: the name itself, or the name with a number."""
    ends = chain([""], (f"-{number}" for number in count(2)))
    return next(x for x in (Path(f"{name}{end}{suffix}") for end in ends) if not x.exists())


def waited() -> float:
    """Return the seconds since the command began."""
    return perf_counter() - _BEGAN


def width() -> int:
    """Characters a line of the terminal."""
    return max(60, shutil.get_terminal_size().columns)

"""What commands share: options of a run, complaints on the error stream, where pages go."""

import argparse
import shutil
import sys
import warnings
from itertools import chain, count
from pathlib import Path
from typing import Any

__all__ = [
    "INTERRUPTED",
    "REPORT",
    "add_running",
    "at_least",
    "complain",
    "free_name",
    "is_unfinished",
    "show_warning",
    "silence_what_is_told_anyway",
    "width",
]

INTERRUPTED = 130  # what shells report of a process that Ctrl-C ended
REPORT = "report.html"


def complain(message: str) -> None:
    """One line on the error stream."""
    print(f"pgmult: {' '.join(message.split())}", file=sys.stderr)


def show_warning(message: Warning | str, *where: Any, **more: Any) -> None:
    """A warning as one line, for `warnings.showwarning`."""
    complain(f"warning: {message}")


def add_running(parser: argparse.ArgumentParser) -> None:
    """Options of every command that draws."""
    parser.add_argument("--seed", type=at_least(0), metavar="N", help="default: 0")
    parser.add_argument("--cores", type=at_least(1), metavar="N", help="default: all")
    parser.add_argument("--quiet", action="store_true", help="no progress line")


def at_least(minimum: int) -> Any:
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


def free_name(name: str, suffix: str) -> Path:
    """A path that does not exist: the name itself, or the name with a number."""
    numbered = (f"{name}-{number}" for number in count(2))
    names = (Path(f"{one}{suffix}") for one in chain([name], numbered))
    return next(path for path in names if not path.exists())


def width() -> int:
    """Characters a line of the terminal."""
    return max(60, shutil.get_terminal_size().columns)


def is_unfinished(posterior: Any) -> bool:
    """Whether a run has fewer draws than were asked for."""
    return bool(posterior.num_draws < posterior.attrs["draws"])


def silence_what_is_told_anyway() -> None:
    """No warnings where the report says the same in its place."""
    from pgmult.sampling.diagnostics import ConvergenceWarning

    warnings.simplefilter("ignore", ConvergenceWarning)  # the report has diagnostics
    warnings.filterwarnings("ignore", "interrupted: ")  # the command says how to go on

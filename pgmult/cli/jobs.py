"""What ``pgmult fields`` and ``pgmult sequences`` share: a run, its notes, its report.

Beside draws and data a run directory has ``job.json``, what the command was told that the model
does not know (columns, places, title), and ``held-out.npz``, counts that the model was not shown.
"""

import argparse
import errno
import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping
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

__all__ = [
    "Job",
    "add_demo",
    "add_fit",
    "add_json",
    "add_resume",
    "add_run",
    "add_table",
    "add_writing",
    "complete",
    "drawn",
    "finish",
    "load_run",
    "run_facts",
    "sample_job",
    "tell",
    "write_table",
]

_NOTES, _HELD_OUT = "job.json", "held-out.npz"


def add_fit(actions: Any, what: str, *, draws: int, tune: int) -> argparse.ArgumentParser:
    """``fit`` with the options of every run."""
    fit: argparse.ArgumentParser = actions.add_parser("fit", help=what)
    fit.add_argument("--out", type=Path, required=True, metavar="RUN", help="run directory")
    fit.add_argument("--title", metavar="TEXT", help="of the report (default: the file's name)")
    for name, value, least, told in (
        ("draws", draws, 1, "kept of each chain"), ("tune", tune, 0, "sweeps before the first"),
        ("chains", 4, 1, "from starts of their own, to be compared"),
        ("thin", 1, 1, "sweeps for each draw that is kept"),
    ):  # fmt: skip
        fit.add_argument(
            f"--{name}", type=at_least(least), default=value, metavar="N",
            help=f"{told}; default: {value}",
        )  # fmt: skip
    add_running(fit)
    add_json(fit)
    return fit


def add_demo(
    demos: Any, family: str, what: str, run_demo: Callable[..., Any], advice: str, **sizes: int
) -> None:
    """``pgmult demo FAMILY`` with its options, `sizes` the draws and sweeps unless told otherwise.

    ``run_demo()`` gives the function that simulates, samples and reports, imported when it is
    needed. `advice` is how to go on with data of one's own.
    """
    demo = demos.add_parser(family, help=what)
    demo.set_defaults(command=partial(_demo, family, run_demo, advice))
    demo.add_argument("--draws", type=at_least(1), default=sizes["draws"], metavar="N")
    demo.add_argument("--tune", type=at_least(0), default=sizes["tune"], metavar="N")
    demo.add_argument("--chains", type=at_least(1), default=2, metavar="N")
    demo.add_argument("--seed", type=at_least(0), default=0, metavar="N")
    demo.add_argument("--cores", type=at_least(1), metavar="N", help="default: all")
    demo.add_argument("--quiet", action="store_true", help="no progress line")
    add_json(demo)


def _demo(
    family: str, run_demo: Callable[..., Any], advice: str, options: argparse.Namespace
) -> int:
    silence_what_is_told_anyway()
    began = perf_counter()
    report = run_demo()(
        draws=options.draws, tune=options.tune, chains=options.chains, cores=options.cores,
        random_seed=options.seed, progressbar=not options.quiet,
        say=lambda text: None if options.json else print(text, flush=True),
    )  # fmt: skip
    page = free_name(f"pgmult-demo-{family}", ".html")
    tell(options, report, page)
    if not options.json:
        print(f"The same with pictures: {page}")
        print(f"{perf_counter() - began:.0f} s in all. {advice}")
    return 0


def add_resume(actions: Any) -> argparse.ArgumentParser:
    """``resume``: go on with a run that was killed, or make it longer."""
    resume: argparse.ArgumentParser = actions.add_parser(
        "resume", help="go on with a run, to the draws it would have had without the break"
    )
    add_run(resume)
    resume.add_argument("--draws", type=at_least(1), metavar="N", help="to have in the end")
    resume.add_argument("--cores", type=at_least(1), metavar="N", help="default: all")
    resume.add_argument("--quiet", action="store_true", help="no progress line")
    add_json(resume)
    return resume


def add_run(parser: argparse.ArgumentParser) -> None:
    """The run directory."""
    parser.add_argument("run", type=Path, metavar="RUN")


def add_json(parser: argparse.ArgumentParser) -> None:
    """``--json``, for machines."""
    parser.add_argument("--json", action="store_true", help="print JSON, for machines")


def add_table(parser: argparse.ArgumentParser) -> None:
    """How to read a table."""
    parser.add_argument("--delimiter", metavar="CHAR", help="of a table (default: as its header)")
    parser.add_argument("--encoding", default="utf-8", metavar="NAME")


def add_writing(parser: argparse.ArgumentParser) -> None:
    """Where a table goes."""

    def table_file(text: str) -> Path:
        if not text.endswith((".csv", ".json")):
            raise argparse.ArgumentTypeError(f"must end in .csv or .json, got {text!r}")
        return Path(text)

    parser.add_argument(
        "--out", type=table_file, metavar="FILE", help=".csv or .json; else on screen"
    )
    add_json(parser)


def complete(
    path: Path, table: Mapping[str, Any], options: Mapping[str, str | None], what_to_do: str
) -> None:
    """Refuse a table with an empty cell in a column that an option names.

    Raises
    ------
    ValueError
        With the file, the column, how many cells, and the row of the first below the header.
    """
    from pgmult.core.labels import is_missing

    for option, name in options.items():
        if name is None or name not in table:
            continue  # `from_long` says what is wrong
        rows = [row for row, cell in enumerate(list(table[name]), 1) if is_missing(cell)]
        if rows:
            raise ValueError(
                f"{path}: column {name!r} ({option}) has no value in {len(rows):,} of"
                f" {len(table[name]):,} rows, first in row {rows[0]:,} below the header:"
                f" {what_to_do}"
            )


class Job:
    """Notes that are written into a run directory as soon as the run has begun there."""

    def __init__(self, family: str, notes: Mapping[str, Any], held_out: Mapping[str, Any] | None):
        self.family, self.notes = family, dict(notes)
        self.held_out = {} if held_out is None else dict(held_out)

    def write(self, run: Path) -> None:
        """Held-out counts first: where the notes are, everything is."""
        import numpy as np

        if self.held_out:
            with (run / _HELD_OUT).open("wb") as file:
                np.savez_compressed(file, **self.held_out)
        text = json.dumps({"family": self.family, **self.notes}, ensure_ascii=False, indent=1)
        partial = run / f"{_NOTES}.partial"
        partial.write_text(text + "\n", encoding="utf-8")
        os.replace(partial, run / _NOTES)

    @classmethod
    def read(cls, run: Path, family: str) -> "Job":
        """The notes of a run of this family.

        Raises
        ------
        FileNotFoundError, ValueError
            If there are none, or they are of another family.
        """
        import numpy as np

        if not run.is_dir():
            raise FileNotFoundError(errno.ENOENT, "no such run directory", str(run))
        try:
            notes = json.loads((run / _NOTES).read_text(encoding="utf-8"))
            found = notes.pop("family")
            missing = {"title", "source", "model"} - set(notes)
            if missing:
                raise ValueError(f"no {missing.pop()!r}")
        except FileNotFoundError:
            raise ValueError(
                f"{run} is not a run of pgmult {family} fit, or was ended before its first sweep"
            ) from None
        except (ValueError, KeyError, AttributeError) as error:
            raise ValueError(f"{run / _NOTES}: damaged ({error})") from None
        if found != family:
            raise ValueError(f"{run} is a run of pgmult {found}: see pgmult {found} --help")
        held_out = {}
        if (run / _HELD_OUT).exists():
            try:
                with np.load(run / _HELD_OUT, allow_pickle=False) as file:
                    held_out = {name: file[name] for name in file.files}
            except Exception as error:  # a damaged archive can raise anything
                raise ValueError(f"{run / _HELD_OUT}: damaged ({error})") from None
        return cls(family, notes, held_out)


def sample_job(
    options: argparse.Namespace, model: Any, data: Any, keep: tuple[str, ...], job: Job
) -> Any:
    """Sample into a new run directory; None after Ctrl-C before a draw was kept."""
    from pgmult.sampling.driver import sample

    if (options.out / "inputs.npz").exists():
        raise FileExistsError(
            errno.EEXIST,
            f"RUN holds a run already (pgmult {job.family} resume goes on with it, or name another"
            " directory)",
            str(options.out),
        )
    silence_what_is_told_anyway()
    noted = False

    def note(sweep: Any) -> None:
        nonlocal noted
        if not noted:
            job.write(options.out)
            noted = True

    try:
        return sample(
            model, data, keep=keep, draws=options.draws, tune=options.tune, chains=options.chains,
            thin=options.thin, random_seed=options.seed or 0, cores=options.cores,
            progressbar=not options.quiet, callback=note, store=options.out,
        )  # fmt: skip
    except KeyboardInterrupt:
        return None


def finish(options: argparse.Namespace, run: Path, family: str, posterior: Any, report: Any) -> int:
    """Print the report of a run that has ended, write its page, and say how to go on."""
    if posterior is not None:
        tell(options, report, run / REPORT)
        if not options.json:
            print(f"The same with pictures: {run / REPORT}; the draws: {run}")
    if posterior is None or is_unfinished(posterior):
        complain(
            f"interrupted; what was drawn is in {run}: go on with"
            f" pgmult {family} resume {shlex.quote(str(run))}"
        )
        return INTERRUPTED
    return 0


def tell(options: argparse.Namespace, report: Any, page: Path | None = None) -> None:
    """A report on the terminal, or as JSON; and its page."""
    from pgmult.core.reports import as_html, as_json, as_text

    if page is not None:
        page.write_text(as_html(report), encoding="utf-8")
    if options.json:
        print(as_json(report))
    else:
        print("\n" + as_text(report, width=width()))


def load_run(run: Path, family: str) -> tuple[Any, Any, Job]:
    """Draws, data and notes of a run."""
    from pgmult.sampling.posterior import load
    from pgmult.sampling.store import Run

    job = Job.read(run, family)
    posterior = load(run)
    if posterior.num_draws == 0:
        raise ValueError(f"{run} has no draws yet")
    return posterior, Run(run).inputs()["data"], job


def drawn(options: argparse.Namespace, family: str) -> tuple[Any, Any, Job]:
    """``resume``: draws (None after Ctrl-C before any), data and notes."""
    from pgmult.sampling.driver import resume
    from pgmult.sampling.store import Run

    job = Job.read(options.run, family)
    silence_what_is_told_anyway()
    try:
        posterior = resume(
            options.run, draws=options.draws, cores=options.cores, progressbar=not options.quiet
        )
    except KeyboardInterrupt:
        posterior = None
    return posterior, Run(options.run).inputs()["data"], job


def run_facts(posterior: Any) -> dict[str, str]:
    """What a posterior knows of the run behind it, in words."""
    attrs = posterior.attrs
    run = f"{posterior.num_chains} x {posterior.num_draws} draws"
    if posterior.num_draws < attrs["draws"]:
        run += f" (of {attrs['draws']} planned)"
    run += f" after {attrs['tune']} sweeps of tuning"
    if "seconds" in attrs:
        run += f", {max(attrs['seconds']):.0f} s"
    return {"run": f"{run}, seed {attrs['random_seed']}"}


def write_table(columns: Mapping[str, Any], out: Path | None, as_json: bool) -> None:
    """A tidy table as CSV, or as JSON with an object a row; to a file or on the terminal."""
    as_json = as_json if out is None else out.suffix == ".json"
    cells = [[_cell(value) for value in column] for column in columns.values()]
    if as_json:
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*cells, strict=True)]
        text = json.dumps(rows, ensure_ascii=False, indent=0) + "\n"
    else:
        import csv
        import io

        sheet = io.StringIO(newline="")
        writer = csv.writer(sheet, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*cells, strict=True))
        text = sheet.getvalue()
    if out is None:
        sys.stdout.write(text)
    else:
        out.write_text(text, encoding="utf-8", newline="")
        print(f"{len(cells[0]):,} rows: {out}", file=sys.stderr)


def _cell(value: Any) -> Any:
    import numpy as np

    from pgmult.core.tables import date_text

    if isinstance(value, np.datetime64):
        return date_text(value)
    if isinstance(value, np.generic):
        value = value.item()
    return float(f"{value:.6g}") if isinstance(value, float) else value

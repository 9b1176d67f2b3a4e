"""What every design is made of, and the table that it ends in."""

import contextlib
import csv
import io
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

import numpy as np

from pgmult.cli import main
from tests.invariances.frame import Question, write

LEVELS = (0.5, 0.8, 0.9)


@dataclass(frozen=True)
class Truth:
    """A number that an answer should hold: its kind, the question, the row's labels, the value."""

    kind: str
    question: Question
    key: tuple[str, ...]
    value: float


@dataclass(frozen=True)
class Design:
    """Tables from a known truth.

    Attributes
    ----------
    name : str
        Says what the truth is.
    command : str
    fit : words after the file
    simulate : callable
        ``simulate(rng)`` returns the tables by file name, the fitted one first, and the truths.
    read : callable
        ``read(file)`` returns mean, sd and ends of each row of an answer, by its labels.
    """

    name: str
    command: str
    fit: tuple[str, ...]
    simulate: Callable[[np.random.Generator], tuple[Mapping[str, dict], list[Truth]]]
    read: Callable[[TextIO], dict] = field(default=lambda file: _rows(file))


def coverage(design, num_tables, first=0):
    """Print coverage and mean z of each kind of number, as a row of a Markdown table each.

    Ctrl-C ends the simulation, and the tables until then are printed.
    """
    scores, seconds, failed = defaultdict(list), [], 0
    for seed in range(first, first + num_tables):
        tables, truths = design.simulate(np.random.default_rng(seed))
        began = time.process_time()
        try:
            with tempfile.TemporaryDirectory() as folder:
                for kind, z, *held in _scores(design, tables, truths, Path(folder), seed):
                    scores[kind].append((z, *held))
        except RuntimeError as error:
            failed += 1
            print(f"{design.name}, table {seed}: {error}")
        except KeyboardInterrupt:
            break
        seconds.append(time.process_time() - began)
    for kind, rows in scores.items():
        z, *held = np.transpose(rows)
        shares = " | ".join(f"{np.mean(each):.2f}" for each in held)
        print(
            f"| {design.name} | {kind} | {len(rows)} of {len(seconds) - failed} tables | {shares} |"
            f" {np.mean(z):+.2f} | {np.std(z):.2f} | {np.mean(seconds):.0f} s |",
            flush=True,
        )


def _scores(design, tables, truths, folder, seed):
    for name, table in tables.items():
        write(folder / name, table)
    run = folder / "run"
    _said([design.command, "fit", str(folder / next(iter(tables))), *design.fit,
           "--out", str(run), "--seed", str(seed), "--quiet"])  # fmt: skip
    answers = {}
    for truth in truths:
        ends = []
        for level in LEVELS:
            asked = (truth.question, level)
            if asked not in answers:
                answers[asked] = _answer(design, truth.question, level, run, folder)
            try:
                mean, sd, lower, upper = answers[asked][truth.key]
            except KeyError:
                labels = list(answers[asked])[:4]
                raise RuntimeError(f"no row {truth.key} among {labels}") from None
            ends.append(lower <= truth.value <= upper)
        yield truth.kind, (mean - truth.value) / max(sd, 1e-12), *ends


def _answer(design, question, level, run, folder):
    out = folder / f"answer {level}.csv"
    words = [str(folder / w) if w.endswith(".csv") else w for w in question.arguments]
    _said([design.command, question.verb, str(run), *words, "--probability", str(level),
           "--out", str(out)])  # fmt: skip
    with out.open(newline="", encoding="utf-8") as file:
        return design.read(file)


def _rows(file):
    """Mean, sd and ends by the cells before the mean."""
    head, *rows = csv.reader(file)
    centre = next(i for i, name in enumerate(head) if name in ("mean", "median", "probability"))
    low, high = (
        next(i for i, name in enumerate(head) if name.endswith(end)) for end in ("lower", "upper")
    )
    sd = head.index("sd") if "sd" in head else None
    return {
        tuple(row[:centre]): (
            float(row[centre]),
            float(row[sd]) if sd is not None else (float(row[high]) - float(row[low])) / 3.29,
            float(row[low]), float(row[high]),
        )
        for row in rows if row[centre]
    }  # fmt: skip


def _said(words):
    """Run a command in this process, quietly; what it says is shown if it fails."""
    said = io.StringIO()
    quiet = (contextlib.redirect_stdout(said), contextlib.redirect_stderr(said))
    with warnings.catch_warnings(), quiet[0], quiet[1]:
        warnings.simplefilter("ignore")
        code = main(words)
    if code:
        raise RuntimeError(f"{words[:2]} ended with {code}: {said.getvalue()[-300:]}")

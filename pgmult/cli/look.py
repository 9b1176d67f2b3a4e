"""``pgmult FILE``: what the columns of a table are, which jobs fit them, and the commands to paste.

Nothing is sampled and nothing is written. A suggestion is a guess from the kinds of columns and
their names, and says so (`pgmult.cli.guesses`).
"""

import argparse
import gc
import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from pgmult.cli.guesses import Guess, Guesses, Option, command_of, file_of
from pgmult.cli.kinds import SHOWN, ColumnGuess, columns_of, shortened
from pgmult.cli.shared import plain, print_report, read_table

if TYPE_CHECKING:
    from pgmult.core.reports import Report, Section

_GAPS = "n/a na nan null missing . ? - #n/a"
_SEQUENCE_FILES = (".fa", ".fasta", ".fna", ".faa", ".ffn")
_MISREAD = (
    (r"\d{1,2}[./]\d{1,2}[./]\d{2,4}", "write dates as 1999-12-31"),
    (r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?", "write numbers without marks of thousands"),
    (r"[-+]?\d+,\d+", "write numbers with a decimal point, 3.14"),
    (r"[-+]?\d+([.,]\d+)?\s?%|[$€£¥]\s?\d[\d.,]*", "write numbers without % or currency"),
)


def show_columns(options: argparse.Namespace) -> int:
    """Print what a file holds, and the commands that fit it."""
    from pgmult.datasets.files import is_table, suffix_of

    path: Path = options.file
    if is_table(path):
        gc.disable()  # millions of cells, which are no garbage, would be looked at again and again
        try:
            print_report(options, _of_table(path, options))
        finally:
            gc.enable()
        return 0
    from pgmult.datasets.readers import recognise  # which takes half a second

    kind: str = recognise(path).kind
    if suffix_of(path) in _SEQUENCE_FILES:
        kind = "FASTA"
    jobs: list[Guess] = []
    of_words: list[Option] = [("--units", ["words"]), ("--max-symbols", [200])]
    if kind != "FASTA":
        words, out = ["topics", "fit", file_of(path)], ("--out", ["run-topics"])
        jobs.append(
            Guess(
                "Topics",
                "Find the topics of the documents.",
                [command_of(words, [("--topics", [20]), out])],
            )
        )
    if kind == "FASTA" or (kind == "text" and suffix_of(path) == ".txt"):
        of_text = "Each line is a sequence of words."
        why = "Each entry is a sequence of letters." if kind == "FASTA" else of_text
        what = [*(of_words if kind == "text" else []), ("--out", ["run-sequences"])]
        command = command_of(["sequences", "fit", file_of(path)], what)
        jobs.append(Guess("Sequences", why, [command]))
    print_report(options, _report(f"{plain(str(path))}: {kind}", [], jobs))
    return 0


def _of_table(path: Path, options: argparse.Namespace) -> "Report":
    from pgmult.core.reports import Section
    from pgmult.core.tabled import Column, Table

    table = read_table(path, options)
    columns = columns_of(table)
    remarks, no_value, misread = _remarks(columns)
    reading_options = {"delimiter": options.delimiter, "encoding": options.encoding}
    reading: list[Option] = [
        (f"--{name}", [value])
        for name, value in reading_options.items()
        if value not in (None, "utf-8")
    ]
    gaps = options.na_values or (["", "NA"] if no_value else [])
    if gaps:
        reading.append(("--na-values", [*gaps, *no_value]))
    if no_value:
        options.na_values = [*gaps, *no_value]
        columns = columns_of(read_table(path, options))
        remarks.append(
            "The commands below take such cells for missing values: remove --na-values if they are"
            " not."
        )
    guesses = Guesses(path, [c for c in columns if c.name not in misread], reading)
    jobs = guesses.jobs()
    remarks += guesses.lacking() or ([] if jobs else [guesses.without_outcome()])
    held = Table(
        "",
        [
            Column("column", [c.name for c in columns], "column", shortened),
            Column("kind", [c.kind for c in columns], "holds"),
            Column("missing", [c.missing for c in columns], "missing", _or_nothing),
            Column("values", [c.summary for c in columns], "values"),
        ],
    )
    title = f"{plain(str(path))}: {len(table):,} rows, {len(columns):,} columns"
    sections = [Section("Columns", table=held), Section("Columns to check", sentences=remarks)]
    return _report(title, sections, jobs)


def _or_nothing(number: int) -> str:
    return f"{number:,}" if number else ""


def _report(title: str, sections: "list[Section]", jobs: list[Guess]) -> "Report":
    """What was seen, and the jobs that fit."""
    from pgmult.core.reports import Report

    verdict = (
        "No job fits this table: see pgmult topics, fields, sequences, regression or choice"
        " --help for what each one takes."
    )
    if jobs:
        guessed = "guesses from the kinds of columns and their names" if sections else "guesses"
        which = ", ".join(job.title.lower() for job in jobs)
        verdict = f"Jobs that fit: {which}. The commands are {guessed}: read them before you paste"
        verdict += " them."
    return Report(title, [verdict], [*sections, *(job.section() for job in jobs)])


def _remarks(columns: Sequence[ColumnGuess]) -> tuple[list[str], list[str], set[str]]:
    """What to look at in some columns, values for ``--na-values``, columns that are misread."""
    from pgmult.core.labels import as_looked_at

    said, no_value, misread = [], [], set()
    for column in columns:
        name = shortened(column.name)
        if column.kind == "nothing":
            said.append(f"{name} has no values.")
        if not column.can_be_named:
            said.append(f"No command can name the column {name}: rename it to use it.")
        if column.kind not in ("labels", "US states", "names, all different"):
            continue
        texts = [*map(str, column.counts)]
        if column.missing and len(texts) > 1 and all(re.fullmatch("[A-Z]{2}", x) for x in texts):
            said.append(
                f"{name} has codes of two letters, and NA is read as a missing value. If it is a"
                " code, such as that of Namibia, add --na-values ''."
            )
        odd, else_it_is = _odd_cells(column)
        if odd:
            no_value += [text for text in odd if else_it_is and not text.startswith("-")]
            cells = ", ".join(map(repr, odd))
            is_text = f"; without them its cells are {else_it_is}" if else_it_is else ""
            said.append(f"{name} has {cells}, which may stand for a missing value{is_text}.")
        for pattern, advice in _MISREAD:
            if all(re.fullmatch(pattern, text) for text in texts):
                said.append(f"{name} is read as text, such as {texts[0]!r}: {advice}.")
                misread.add(column.name)
                break
        alike: dict[str, str] = {}
        pairs = ((alike.setdefault(as_looked_at(text), text), text) for text in texts)
        for other, text in pairs if column.is_category else ():
            if other != text:
                said.append(f"{name} has {other!r} and {text!r}, which are read as two labels.")
                break
    return said, list(dict.fromkeys(no_value)), misread


def _odd_cells(column: ColumnGuess) -> tuple[list[str], str]:
    """Cells that read as no value, in a column of labels that are numbers or dates without them."""
    from pgmult.datasets.columns import is_number_or_date

    texts = {str(value): times for value, times in column.counts.items()}
    gaps = [text for text in texts if text.strip().lower() in _GAPS.split()]
    no_numbers = (text for text in texts if not is_number_or_date(text))
    odd = [*islice(no_numbers, len(gaps) + SHOWN + 1)]
    others = column.counts.total() - sum(texts[text] for text in odd)
    if (
        odd
        and others
        and (gaps == odd or (len(odd) <= SHOWN and 4 * others >= 3 * sum(texts.values())))
    ):
        return odd, "numbers or dates"
    return gaps, ""

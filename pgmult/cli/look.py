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

from pgmult.cli.guesses import Guess, Guesses, Option, command_of, file_of
from pgmult.cli.kinds import SHOWN, ColumnGuess, columns_of, shortened
from pgmult.cli.shared import plain, print_report, read_table
from pgmult.core.labels import as_looked_at
from pgmult.core.reports import Report, Section
from pgmult.core.tabled import Column, Table
from pgmult.datasets.columns import is_number_or_date
from pgmult.datasets.files import is_table, suffix_of

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
    path: Path = options.file
    if is_table(path):
        gc.disable()  # millions of cells, which are no garbage, would be looked at again and again
        try:
            print_report(options, _of_table(path, options))
        finally:
            gc.enable()
    else:
        print_report(options, _of_texts(path))
    return 0


def _of_texts(path: Path) -> Report:
    from pgmult.datasets.readers import recognise  # which takes half a second

    def job(family: str, why: str, *options: Option) -> Guess:
        out = ("--out", [f"run-{family}"])
        command = command_of([family, "fit", file_of(path)], [*options, out])
        return Guess(family.capitalize(), why, [command])

    kind: str = recognise(path).kind
    if suffix_of(path) in _SEQUENCE_FILES:
        kind, jobs = "FASTA", [job("sequences", "Each entry is a sequence of letters.")]
    else:
        jobs = [job("topics", "Find the topics of the documents.", ("--topics", [20]))]
    if kind == "text" and suffix_of(path) == ".txt":
        of_words: list[Option] = [("--units", ["words"]), ("--max-symbols", [200])]
        jobs.append(job("sequences", "Each line is a sequence of words.", *of_words))
    return _report(f"{plain(str(path))}: {kind}", [], jobs)


def _of_table(path: Path, options: argparse.Namespace) -> Report:
    table = read_table(path, options)
    columns = columns_of(table)
    remarks, no_value, misread = _remarks(columns)
    how = {"--delimiter": options.delimiter, "--encoding": options.encoding}
    reading: list[Option] = [(name, [x]) for name, x in how.items() if x not in (None, "utf-8")]
    if no_value:
        options.na_values = [*(options.na_values or ["", "NA"]), *no_value]
        columns = columns_of(read_table(path, options))
        said = "The commands below take such cells for missing values"
        remarks.append(f"{said}: remove --na-values if they are not.")
    if options.na_values:
        reading.append(("--na-values", options.na_values))
    guesses = Guesses(path, [c for c in columns if c.name not in misread], reading)
    jobs = guesses.jobs()
    remarks += guesses.lacking() or ([] if jobs else [guesses.without_outcome()])
    missing = [f"{c.missing:,}" if c.missing else "" for c in columns]
    described = [
        Column("column", [c.name for c in columns], "column", shortened),
        Column("kind", [c.kind for c in columns], "holds"),
        Column("missing", [c.missing for c in columns], "missing", missing),
        Column("values", [c.summary for c in columns], "values"),
    ]
    title = f"{plain(str(path))}: {len(table):,} rows, {len(columns):,} columns"
    held = Section("Columns", table=Table("", described))
    return _report(title, [held, Section("Columns to check", sentences=remarks)], jobs)


def _report(title: str, sections: list[Section], jobs: list[Guess]) -> Report:
    """What was seen, and the jobs that fit."""
    guessed = "guesses from the kinds of columns and their names" if sections else "guesses"
    which = ", ".join(job.title.lower() for job in jobs)
    verdict = f"Jobs that fit: {which}. Read the commands, {guessed}, before you paste them."
    if not jobs:
        verdict = "No job fits this table: see pgmult topics, fields, sequences, regression or"
        verdict += " choice --help for what each one takes."
    return Report(title, [verdict], [*sections, *(job.section() for job in jobs)])


def _remarks(columns: Sequence[ColumnGuess]) -> tuple[list[str], list[str], set[str]]:
    """What to look at in some columns, values for ``--na-values``, columns that are misread."""
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
            read = f"{name} has codes of two letters, and NA is read as a missing value."
            said.append(f"{read} If it is a code, such as that of Namibia, add --na-values ''.")
        odd, are_numbers = _odd_cells(column)
        if odd:
            no_value += [text for text in odd if are_numbers and not text.startswith("-")]
            cells = ", ".join(map(repr, odd))
            is_text = "; without them its cells are numbers or dates" if are_numbers else ""
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


def _odd_cells(column: ColumnGuess) -> tuple[list[str], bool]:
    """Cells that read as no value, and whether a column of labels holds numbers or dates else."""
    texts = {str(value): times for value, times in column.counts.items()}
    gaps = [text for text in texts if text.strip().lower() in _GAPS.split()]
    no_numbers = (text for text in texts if not is_number_or_date(text))
    odd = [*islice(no_numbers, len(gaps) + SHOWN + 1)]
    total = column.counts.total()
    others = total - sum(texts[text] for text in odd)
    few = len(odd) <= SHOWN and 4 * others >= 3 * total
    are_numbers = bool(odd) and others > 0 and (gaps == odd or few)
    return (odd if are_numbers else gaps), are_numbers

"""``pgmult FILE``: what the columns of a table are, which jobs fit them, and the commands to paste.

Nothing is sampled and nothing is written. A suggestion is a guess from the kinds of columns and
their names, and says so; names and cells of the file reach a command only between quotes.
"""

import argparse
import re
import shlex
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgmult.cli.shared import add_table, plain, read_table, tell

if TYPE_CHECKING:
    from pgmult.core.reports import Report, Section


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TIMES = _words(
    "year years yr date day days month week time hour minute quarter wave round step decade season"
    " datetime timestamp period t"
)
_COUNTS = _words(
    "n count counts freq frequency births votes people number total weight weights population pop"
    " size num cases"
)
_OUTCOMES = _words(
    "vote choice choices class outcome answer response y label species category target party"
    " diagnosis status state symbol activity behaviour behavior brand mode type name"
)
_PEOPLE = _words(
    "who id person people respondent subject customer consumer traveller household user"
)
_TAKEN = ({"0", "1"}, {"False", "True"})
_TEXT_WORDS = 5  # from so many words a cell on, on average, a column holds texts
_MOST_LABELS, _MOST_OUTCOMES, _MOST_TERMS = 300, 20, 6
_FEWEST_STEPS = 10
_WIDTH = 94  # of a command's lines
_FEW = 4  # labels, or different numbers: more make a group, or a curve
_SAID, _SHOWN = 30, 3  # characters of a name or a label, and labels shown
_GAPS = ("n/a", "na", "nan", "null", "missing", ".", "?", "-", "#n/a")
_SEQUENCE_FILES = (".fa", ".fasta", ".fna", ".faa", ".ffn")


# --------------------------------------------------------------------------- columns


@dataclass(frozen=True)
class _Seen:
    """A column of the table.

    Attributes
    ----------
    name, kind : str
        The kind in words: see `_kind`.
    cells : list
        None where there is no value.
    """

    name: str
    kind: str
    cells: list[Any]

    @cached_property
    def values(self) -> list[Any]:
        return [cell for cell in self.cells if cell is not None]

    @cached_property
    def counts(self) -> Counter[Any]:
        return Counter(self.values)

    @property
    def missing(self) -> int:
        return len(self.cells) - len(self.values)

    @property
    def tokens(self) -> set[str]:
        """Words of the name."""
        spaced = re.sub(r"([a-z])([A-Z])", r"\1 \2", self.name)
        return set(re.split(r"[\W\d_]+", spaced.lower())) - {""}

    @property
    def is_number(self) -> bool:
        return self.kind in ("whole numbers", "numbers")

    @property
    def is_time(self) -> bool:
        if self.kind == "dates":
            return True
        years = self.kind == "whole numbers" and all(1500 <= x <= 2200 for x in self.counts)
        return self.is_number and len(self.counts) > 1 and bool(self.tokens & _TIMES or years)

    @property
    def is_count(self) -> bool:
        whole = self.kind == "whole numbers" and min(self.counts, default=0) >= 0
        return whole and bool(self.tokens & _COUNTS)

    @property
    def is_category(self) -> bool:
        return self.kind in ("labels", "US states") and 2 <= len(self.counts) <= _MOST_LABELS

    @property
    def tells_rows_apart(self) -> bool:
        """Whether it numbers the rows, as an id does."""
        each = self.kind == "whole numbers" and len(self.counts) == len(self.cells)
        return each or bool(self.tokens & {"id", "index", "row"})

    @property
    def can_be_named(self) -> bool:
        """Whether a command can name it: its name is no option and can be read on a screen."""
        odd = any(unicodedata.category(character) in ("Cc", "Cf") for character in self.name)
        return bool(self.name) and not odd and not self.name.startswith("-")

    @property
    def said(self) -> str:
        """Its values in words."""
        if self.kind == "nothing":
            return ""
        if self.is_number or self.kind == "dates":
            low, high = min(self.counts), max(self.counts)
            if low == high:
                return f"always {_told(low)}"
            different = f", {len(self.counts):,} different" if self.kind != "dates" else ""
            return f"{_told(low)} to {_told(high)}{different}"
        if self.kind == "texts":
            words = sum(len(str(text).split()) for text in self.values) / len(self.values)
            return f"{words:,.0f} words each"
        first = [_told(value) for value, _ in self.counts.most_common(_SHOWN)]
        more = ", ..." if len(self.counts) > _SHOWN else ""
        return f"{len(self.counts):,}: {', '.join(first)}{more}"


def _told(value: Any) -> str:
    """A cell or a name on a terminal: short, and with nothing that a terminal obeys."""
    if isinstance(value, float):
        return f"{value:g}"
    text = str(value)
    text = text if text.isprintable() and text == text.strip() and text else repr(text)
    return text if len(text) <= _SAID else f"{text[: _SAID - 3]}..."


def _columns(table: Any) -> list[_Seen]:
    from pgmult.core.labels import is_missing
    from pgmult.core.tables import date_text

    seen = []
    for name in table:
        cells = table[name]
        dates = cells.dtype.kind == "M"
        plain = [None if is_missing(x) else x for x in (cells if dates else cells.tolist())]
        if dates:
            plain = [None if x is None else date_text(x) for x in plain]
        seen.append(_Seen(name, _kind([x for x in plain if x is not None], dates), plain))
    return seen


def _kind(values: list[Any], dates: bool) -> str:
    """What cells are, in words."""
    from pgmult.datasets.names import us_states

    if not values:
        return "nothing"
    if dates:
        return "dates"
    if all(isinstance(x, int | float) and not isinstance(x, bool) for x in values):
        whole = all(isinstance(x, int) or float(x).is_integer() for x in values)
        return "whole numbers" if whole else "numbers"
    different = set(map(str, values))
    if sum(len(str(x).split()) for x in values) >= _TEXT_WORDS * len(values):
        return "texts" if 2 * len(different) > len(values) else "labels"
    if len(different) > 1 and different <= us_states().keys():
        return "US states"
    return "names, all different" if len(different) == len(values) > 2 else "labels"


def _odd_cells(column: _Seen) -> tuple[list[str], str]:
    """Cells that read as no value, in a column of labels that are numbers or dates without them."""
    from pgmult.datasets.columns import is_number_or_date

    texts = {str(value): times for value, times in column.counts.items()}
    odd = [text for text in texts if not is_number_or_date(text)]
    others = len(column.values) - sum(texts[text] for text in odd)
    gaps = [text for text in odd if text.strip().lower() in _GAPS]
    few = len(odd) <= _SHOWN and 4 * others >= 3 * len(column.values)
    if odd and others and (few or gaps == odd):
        return odd, "numbers or dates"
    return gaps, ""


# --------------------------------------------------------------------------- what to say of cells


def _remarks(columns: Sequence[_Seen]) -> tuple[list[str], list[str], set[str]]:
    """What to look at in some columns, what to tell ``--na-values``, columns that are misread."""
    from pgmult.core.labels import as_looked_at

    said, no_value, misread = [], [], set()
    for column in columns:
        name = _told(column.name)
        if column.kind == "nothing":
            said.append(f"{name} holds no value at all.")
        if not column.can_be_named:
            said.append(f"{name} is a name that no command can take: rename the column to use it.")
        if column.kind not in ("labels", "US states", "names, all different"):
            continue
        odd, else_it_is = _odd_cells(column)
        if odd:
            no_value += [text for text in odd if else_it_is and not text.startswith("-")]
            cells = ", ".join(repr(text) for text in odd)
            is_text = f"; without them its cells are {else_it_is}" if else_it_is else ""
            said.append(f"{name} has {cells}, which may mean that there is no value{is_text}.")
        texts = [str(value) for value in column.counts]
        for pattern, advice in (
            (r"\d{1,2}[./]\d{1,2}[./]\d{2,4}", "dates are read where they are written 1999-12-31"),
            (r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?", "numbers are read without a mark of thousands"),
            (r"[-+]?\d+,\d+", "numbers are read with a decimal point: 3.14"),
        ):
            if all(re.fullmatch(pattern, text) for text in texts):
                said.append(f"{name} is taken for text, such as {texts[0]!r}: {advice}.")
                misread.add(column.name)
                break
        alike: dict[str, str] = {}
        for text in texts:
            if (other := alike.setdefault(as_looked_at(text), text)) != text:
                said.append(f"{name} has {other!r} and {text!r}, which count as different labels.")
                break
    return said, list(dict.fromkeys(no_value)), misread


# --------------------------------------------------------------------------- jobs


@dataclass(frozen=True)
class _Job:
    """A job that fits some columns.

    Attributes
    ----------
    title, why : str
    commands : list of str
    """

    title: str
    why: str
    commands: list[str]

    def text(self, width: int) -> str:
        """The commands as they are pasted, however wide."""
        return "".join(f"\n{command}\n" for command in self.commands).removesuffix("\n")


_Option = tuple[str, Sequence[Any]]


def _command(words: Iterable[Any], options: Iterable[_Option]) -> str:
    """A command with its words quoted, over several lines where it is long."""
    parts = [" ".join(shlex.quote(str(word)) for word in ("pgmult", *words))]
    parts += [" ".join([name, *(shlex.quote(str(v)) for v in values)]) for name, values in options]
    lines = [""]
    for part in parts:
        if lines[-1].strip() and len(f"{lines[-1]} {part}") > _WIDTH:
            lines.append("   ")
        lines[-1] = f"{lines[-1]} {part}" if lines[-1] else part
    return " \\\n".join(lines)


def _in_formula(name: str) -> str:
    """A column's name in a formula; empty if it cannot stand there."""
    from pgmult.formulas.language import parse

    for text in (name, f"`{name}`"):
        try:
            if parse(f"~ {text}").columns == (name,):
                return text
        except ValueError:
            continue
    return ""


def _best(candidates: Sequence[_Seen], words: Collection[str]) -> _Seen:
    """The first column whose name says so, or else the last; rather one without gaps."""
    whole = [column for column in candidates if not column.missing] or list(candidates)
    named = [column for column in whole if column.tokens & set(words)]
    return named[0] if named else whole[-1]


class _Jobs:
    """The columns with what they are good for, and the jobs that they fit."""

    def __init__(self, path: Path, columns: Sequence[_Seen], reading: list[_Option]):
        self.path = f"./{path}" if str(path).startswith("-") else str(path)
        self.reading = reading
        self.columns = [c for c in columns if c.can_be_named and 2 * c.missing < len(c.cells)]
        self.categories = [c for c in self.columns if c.is_category]
        times = [c for c in self.columns if c.is_time]
        self.time = min(times, key=lambda c: c.kind != "dates", default=None)
        self.count = next((c for c in self.columns if c.is_count and c is not self.time), None)
        self.places = [c for c in self.columns if c.kind == "US states"]

    def found(self) -> list[_Job]:
        """Those that fit, the likeliest first."""
        last = [self._fields(), self._regression()]
        found = [
            self._topics(),
            self._choice(),
            self._sequences(),
            *(last if self.count else last[::-1]),
        ]
        return [job for job in found if job is not None]

    def _fit(
        self, family: str, used: Iterable[_Seen], options: list[_Option], formula: str = ""
    ) -> str:
        """The command that fits; rows with a gap in a column that is used are left out."""
        words = [family, "fit", self.path, *([formula] if formula else [])]
        gaps: list[_Option] = [("--drop-incomplete", [])] if any(c.missing for c in used) else []
        return _command(words, [*options, *self.reading, *gaps, ("--out", [f"run-{family}"])])

    def _topics(self) -> _Job | None:
        texts = [column for column in self.columns if column.kind == "texts"]
        if not texts:
            return None
        longest = max(texts, key=lambda column: sum(map(len, map(str, column.values))))
        number = min(50, max(5, round(len(longest.values) ** 0.5 / 2)))
        what: list[_Option] = [("--column", [longest.name]), ("--topics", [number])]
        commands, terms = [self._fit("topics", [], what)], self._terms(longest)
        if terms:
            what.append(("--prevalence", [f"~ {' + '.join(terms)}"]))
            commands.append(self._fit("topics", terms.values(), what))
        more = "; with the other columns, what they do to the topics" if terms else ""
        return _Job(
            "Topics", f"What the texts of '{_told(longest.name)}' are about{more}.", commands
        )

    def _sequences(self) -> _Job | None:
        time = self.time
        symbols = [c for c in self.categories if c not in self.places and len(c.counts) <= 60]
        if time is None or time.kind == "numbers" or self.count is not None or not symbols:
            return None
        if len(time.values) < _FEWEST_STEPS:
            return None
        symbol, whose = _best(symbols, _OUTCOMES), None
        if len(time.counts) < 0.95 * len(time.values):  # several sequences beside each other
            whose = self._whose_steps(time, symbol)
            if whose is None:
                return None
        options: list[_Option] = [("--symbol", [symbol.name])]
        options += [("--sequence", [whose.name])] if whose else []
        options += [("--time", [time.name])]
        options += [("--every", [_step(time)])] if time.kind == "dates" else []
        of_each = f" of each '{_told(whose.name)}'" if whose else ""
        why = f"One of {len(symbol.counts)} labels of '{_told(symbol.name)}' at each"
        why += f" '{_told(time.name)}'{of_each}: what comes next, and what the gaps were."
        used = [symbol, time, *([whose] if whose else [])]
        return _Job("Sequences", why, [self._fit("sequences", used, options)])

    def _whose_steps(self, time: _Seen, symbol: _Seen) -> _Seen | None:
        """The column whose labels have about one row at each time."""
        for column in self.columns:
            can_be = column.kind in ("labels", "whole numbers") and column not in (time, symbol)
            if can_be and len(column.values) >= 3 * len(column.counts):
                pairs = set(zip(column.cells, time.cells, strict=True))
                if len(pairs) >= 0.95 * len(time.cells):
                    return column
        return None

    def _fields(self) -> _Job | None:
        where = [c for c in (self.time, *self.places[:1]) if c is not None]
        where += [] if self.places else self._coordinates()
        others = [c for c in self.categories if c not in where]
        if not where or not others:
            return None
        inputs = set(zip(*(column.cells for column in where), strict=True))
        if self.count is None and len(where[0].cells) < 4 * len(inputs):
            return None  # about one label at each place and time
        category = _best(others, _OUTCOMES - {"state"})
        options: list[_Option] = [("--inputs", [column.name for column in where])]
        options += [("--places", ["us-states"])] if self.places else []
        options += [("--category", [category.name])]
        options += [("--count", [self.count.name])] if self.count else []
        options += [("--max-categories", [10])] if len(category.counts) > 20 else []
        over = " and ".join(_told(column.name) for column in where)
        why = f"Shares of {len(category.counts):,} labels of '{_told(category.name)}' over {over}."
        used = [*where, category, *([self.count] if self.count else [])]
        return _Job("Fields", why, [self._fit("fields", used, options)])

    def _coordinates(self) -> list[_Seen]:
        pairs = (("latitude", "longitude"), ("lat", "lon"), ("lat", "long"), ("lat", "lng"))
        numbers = {column.name.lower(): column for column in self.columns if column.is_number}
        found = next((pair for pair in pairs if numbers.keys() >= set(pair)), ())
        return [numbers[name] for name in found]

    def _choice(self) -> _Job | None:
        """Rows of alternatives: of each occasion one was taken."""
        for taken in (c for c in self.columns if set(map(str, c.counts)) in _TAKEN):
            one = [str(cell) in ("1", "True") for cell in taken.cells]
            for occasion in (c for c in self.columns if c is not taken and not c.missing):
                each = Counter(o for o, is_one in zip(occasion.cells, one, strict=True) if is_one)
                of_two = min(occasion.counts.values()) > 1 and set(each.values()) == {1}
                if of_two and len(each) == len(occasion.counts):
                    return self._of_occasions(taken, occasion)
        return None

    def _of_occasions(self, taken: _Seen, occasion: _Seen) -> _Job | None:
        people = [
            column for column in self.columns
            if column.tokens & _PEOPLE and 2 * len(column.counts) <= len(occasion.counts)
            and len(set(zip(column.cells, occasion.cells, strict=True))) == len(occasion.counts)
        ]  # fmt: skip
        attributes = {
            _in_formula(c.name): c for c in self.columns
            if c.is_number and c not in (taken, occasion, *people) and len(c.counts) > 1
        }  # fmt: skip
        attributes = dict([(n, c) for n, c in attributes.items() if n][:_MOST_TERMS])
        outcome, who = _in_formula(taken.name), _in_formula(people[0].name) if people else ""
        if not attributes or not outcome:
            return None
        named = " + ".join(attributes)
        formula = f"{outcome} ~ {named}" + (f" + ({named} | {who})" if who else "")
        why = f"What matters where one of several is taken in each '{_told(occasion.name)}'."
        used = [taken, *attributes.values(), *people[:1]]
        command = self._fit("choice", used, [("--occasion", [occasion.name])], formula)
        return _Job("Choice", why, [command])

    def _regression(self) -> _Job | None:
        outcomes = [c for c in self.categories if len(c.counts) <= _MOST_OUTCOMES]
        outcomes = [c for c in outcomes if c not in self.places and _in_formula(c.name)]
        if not outcomes:
            return None
        outcome = _best(outcomes, _OUTCOMES)
        terms = self._terms(outcome)
        if not any("(" in term for term in terms):  # a grouping or a curve
            return None
        weights = [self.count] if self.count else []
        options: list[_Option] = [("--weight", [column.name]) for column in weights]
        others = [_told(column.name) for column in outcomes if column is not outcome][:_SHOWN]
        or_these = f" (or of {', '.join(others)}: the formula says)" if others else ""
        why = f"What shares of '{_told(outcome.name)}' depend on{or_these}."
        formula = f"{_in_formula(outcome.name)} ~ {' + '.join(terms)}"
        used = [outcome, *terms.values(), *weights]
        return _Job("Regression", why, [self._fit("regression", used, options, formula)])

    def _terms(self, without: _Seen) -> dict[str, _Seen]:
        """Terms of a formula: labels, curves of numbers, groups that learn from each other."""
        fixed, curves, groups = {}, {}, {}
        for column in self.columns:
            name, different = _in_formula(column.name), len(column.counts)
            if not name or different < 2 or column in (without, self.count):
                continue
            if column.is_category and different <= _FEW and column not in self.places:
                fixed[name] = column
            elif column.is_category and len(column.values) >= 3 * different:
                groups[f"(1 | {name})"] = column
            elif column.is_number and not column.tells_rows_apart:
                curves[f"s({name})" if different > _FEW else name] = column
        return dict([*fixed.items(), *curves.items(), *groups.items()][:_MOST_TERMS])


def _step(time: _Seen) -> str:
    """How far apart dates are, as ``--every`` has it."""
    import numpy as np

    times = np.unique(np.array(time.values, dtype="datetime64[s]")).astype(np.int64)
    apart = np.diff(times) if len(times) > 1 else np.array([86400])
    for days, name in ((365, "year"), (89, "quarter"), (28, "month")):
        if apart.min() >= days * 86400:
            return name
    step = int(np.gcd.reduce(apart))
    for seconds, name in ((604800, "week"), (86400, "day")):
        if step % seconds == 0:
            return name
    seconds, name = next(u for u in ((3600, "h"), (60, "min"), (1, "s")) if step % u[0] == 0)
    return f"{step // seconds}{name}"


# --------------------------------------------------------------------------- the command


def is_file(word: str) -> bool:
    """Whether the first word after ``pgmult`` is meant as a file: no command has such a name."""
    return not word.startswith("-") and ("." in word or "/" in word)


def add_look(commands: Any) -> None:
    """``pgmult look FILE``, and ``pgmult FILE`` for short."""
    look = commands.add_parser(
        "look", help="what a table holds, and which jobs fit it: pgmult FILE for short"
    )
    look.add_argument("file", type=Path, metavar="FILE")
    add_table(look)
    look.add_argument("--json", action="store_true", help="print JSON, for machines")
    look.set_defaults(command=_look)


def _look(options: argparse.Namespace) -> int:
    from pgmult.datasets.files import suffix_of
    from pgmult.datasets.readers import recognise

    path = options.file
    source = recognise(path)
    if source.kind == "table":
        tell(options, _of_table(path, options))
        return 0
    told = "FASTA" if suffix_of(path) in _SEQUENCE_FILES else source.kind
    tell(options, _report(f"{plain(str(path))}: {told}", [], _of_other(path, told)))
    return 0


def _of_other(path: Path, kind: str) -> list[_Job]:
    """Jobs for what is no table."""
    from pgmult.datasets.files import suffix_of

    file, out = f"./{path}" if str(path).startswith("-") else path, "--out"
    topics = _command(["topics", "fit", file], [("--topics", [20]), (out, ["run-topics"])])
    sequences = ["sequences", "fit", file]
    if kind == "FASTA":
        command = _command(sequences, [(out, ["run-sequences"])])
        return [_Job("Sequences", "A sequence of letters an entry.", [command])]
    jobs = [_Job("Topics", "Words of documents.", [topics])]
    if kind == "text" and suffix_of(path) == ".txt":
        each: list[_Option] = [
            ("--units", ["words"]),
            ("--max-symbols", [200]),
            (out, ["run-sequences"]),
        ]
        jobs.append(_Job("Sequences", "Words one after the other.", [_command(sequences, each)]))
    return jobs


def _of_table(path: Path, options: argparse.Namespace) -> "Report":
    from pgmult.core.reports import Section
    from pgmult.core.tabled import Column, Table

    table = read_table(path, options)
    columns = _columns(table)
    remarks, no_value, misread = _remarks(columns)
    reading: list[_Option] = [(f"--{name}", [told]) for name in ("delimiter", "encoding") if (
        told := getattr(options, name)) not in (None, "utf-8")]  # fmt: skip
    known = options.na_values or (["", "NA"] if no_value else [])
    if known:
        reading.append(("--na-values", [*known, *no_value]))
    if no_value:
        options.na_values = [*known, *no_value]
        columns = _columns(read_table(path, options))
        remarks.append(
            "The commands below leave such cells without a value: take --na-values out if not so."
        )
    usable = [column for column in columns if column.name not in misread]
    jobs = _Jobs(path, usable, reading).found()
    held = Table(
        "",
        [
            Column("column", [c.name for c in columns], "column", _told),
            Column("kind", [c.kind for c in columns], "holds"),
            Column("missing", [c.missing for c in columns], "missing", _number_or_nothing),
            Column("values", [c.said for c in columns], "values"),
        ],
    )
    title = f"{plain(str(path))}: {len(table):,} rows, {len(columns):,} columns"
    return _report(
        title, [Section("Columns", table=held), Section("To look at", sentences=remarks)], jobs
    )


def _number_or_nothing(number: int) -> str:
    return f"{number:,}" if number else ""


def _report(title: str, sections: "list[Section]", jobs: list[_Job]) -> "Report":
    """What was seen, and the jobs that fit."""
    from pgmult.core.reports import Report, Section

    if jobs:
        which = ", ".join(job.title.lower() for job in jobs)
        guessed = "guesses from the kinds of columns and their names" if sections else "guesses"
        verdict = [f"Jobs that fit: {which}. The commands are {guessed}: read them before you paste"
                   " them."]  # fmt: skip
    else:
        verdict = ["No job fits as it stands: see pgmult topics, fields, sequences, regression or"
                   " choice --help for what each one takes."]  # fmt: skip
    for job in jobs:
        sections.append(
            Section(
                job.title,
                job.why,
                head=("command",),
                rows=[(command,) for command in job.commands],
                lines=job.text,
            )
        )
    return Report(title, verdict, sections)

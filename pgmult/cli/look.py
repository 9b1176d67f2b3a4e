"""``pgmult FILE``: what the columns of a table are, which jobs fit them, and the commands to paste.

Nothing is sampled and nothing is written. A suggestion is a guess from the kinds of columns and
their names, and says so; names and cells of the file reach a command only between quotes.
"""

import argparse
import re
import shlex
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress, pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pgmult.cli.shared import add_table, plain, print_report, read_table

if TYPE_CHECKING:
    from pgmult.core.reports import Report, Section

_TIMES = (
    "year years yr date day days month week time at hour minute quarter wave round step decade"
    " season datetime timestamp period t"
)
_COUNTS = "n count counts freq frequency births votes number total weight weights cases"
_OUTCOMES = (
    "vote choice choices class outcome answer response y label species category target party"
    " diagnosis status survived admitted admit state symbol activity behaviour behavior brand mode"
    " type name"
)
_PEOPLE = (
    "who id pid hid hhid idcode person people respondent subject customer consumer traveller"
    " household user animal"
)
_ROW_NUMBERS = "rownames row rows index id obs observation case unnamed:"
_GAPS = "n/a na nan null missing . ? - #n/a"
_ALTERNATIVES = "alt alternative alternatives option brand mode plan product route"
_CHOICES = "choice chosen mode alt brand depvar"
_SEQUENCE_FILES = (".fa", ".fasta", ".fna", ".faa", ".ffn")
_MISREAD = (
    (r"\d{1,2}[./]\d{1,2}[./]\d{2,4}", "dates are read where they are written 1999-12-31"),
    (r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?", "numbers are read without a mark of thousands"),
    (r"[-+]?\d+,\d+", "numbers are read with a decimal point: 3.14"),
)
_TEXT_WORDS = 5  # from so many words a cell on, on average, a column holds texts
_MOST_LABELS, _MOST_OUTCOMES, _MOST_SYMBOLS, _MOST_TERMS = 300, 20, 60, 6
_FEWEST_STEPS = 10
_WIDTH = 94  # of a command's lines
_FEW = 4  # labels, or different numbers: more make a group, or a curve
_MOST_CODES = 12  # different whole numbers that may stand for categories
_MOST_POINTS = 11  # of a scale: so few different whole numbers are no people
_SAID, _SHOWN = 30, 3  # characters of a name or a label, and labels shown


@dataclass(frozen=True)
class _Column:
    """A column: its name, what it holds in words (see `_kind`), and cells, None without a value."""

    name: str
    kind: str
    cells: list[Any]

    @cached_property
    def counts(self) -> Counter[Any]:
        return Counter(cell for cell in self.cells if cell is not None)

    @property
    def missing(self) -> int:
        return len(self.cells) - self.counts.total()

    def is_called(self, words: str) -> bool:
        """Whether a word of its name is among some."""
        spaced = re.sub(r"([a-z])([A-Z])", r"\1 \2", self.name)
        return not set(re.split(r"[\W\d_]+", spaced.lower())).isdisjoint(words.split())

    @property
    def is_number(self) -> bool:
        return self.kind in ("whole numbers", "numbers")

    @cached_property
    def is_time(self) -> bool:
        years = self.kind == "whole numbers" and all(1500 <= x <= 2200 for x in self.counts)
        numbers = self.is_number and len(self.counts) > 1
        return self.kind == "dates" or (numbers and (years or self.is_called(_TIMES)))

    @property
    def is_count(self) -> bool:
        non_negative = self.kind == "whole numbers" and min(self.counts) >= 0
        measured = self.missing and self.is_called("weight weights")  # of a body, in grams
        return non_negative and self.is_called(_COUNTS) and not measured

    @property
    def is_yes_or_no(self) -> bool:
        return self.kind == "whole numbers" and {*self.counts} == {0, 1}

    @property
    def is_whose(self) -> bool:
        """Whether whole numbers stand for people."""
        many = self.kind == "whole numbers" and len(self.counts) > _MOST_POINTS
        return many and self.is_called(_PEOPLE)

    @property
    def numbers_rows(self) -> bool:
        return self.kind == "whole numbers" and len(self.counts) == len(self.cells)

    @property
    def is_in_blocks(self) -> bool:
        """Whether all rows of a value follow each other, as those of a person often do."""
        return len(self.counts) == 1 + sum(bool(a != b) for a, b in pairwise(self.cells))

    @property
    def is_category(self) -> bool:
        return self.kind in ("labels", "US states") and 2 <= len(self.counts) <= _MOST_LABELS

    @property
    def is_code(self) -> bool:
        """Whether whole numbers stand for categories."""
        few = self.kind == "whole numbers" and 2 <= len(self.counts) <= _MOST_CODES
        return few and self.is_called(f"{_OUTCOMES} code codes")

    @property
    def is_row_number(self) -> bool:
        """Whether it numbers the rows, as a step of time may, too."""
        if self.kind != "whole numbers" or self.missing or len(self.cells) < _FEWEST_STEPS:
            return False
        in_order = any(self.cells == [*range(n, n + len(self.cells))] for n in (0, 1))
        named = self.is_called(_ROW_NUMBERS) and len(self.counts) == len(self.cells)
        return (in_order or named) and not self.is_time

    @property
    def can_be_named(self) -> bool:
        """Whether a command can name it: its name is no option and can be read on a screen."""
        odd = any(unicodedata.category(character) in ("Cc", "Cf") for character in self.name)
        return bool(self.name) and not odd and not self.name.startswith("-")

    @property
    def said(self) -> str:
        """Its values in words."""
        different, number = len(self.counts), f"{len(self.counts):,}"
        if not different:
            return ""
        if self.is_number or self.kind == "dates":
            low, high = _told(min(self.counts)), _told(max(self.counts))
            also = f", {number} different" if self.is_number else ""
            return f"always {low}" if different == 1 else f"{low} to {high}{also}"
        if self.kind == "texts":
            words = sum(len(str(text).split()) * times for text, times in self.counts.items())
            return f"{words / self.counts.total():,.0f} words each"
        first = [_told(value) for value, _ in self.counts.most_common(_SHOWN)]
        return f"{number}: {', '.join(first)}{', ...' if different > _SHOWN else ''}"


def _told(value: Any) -> str:
    """A cell or a name on a terminal: short, and with nothing that a terminal obeys."""
    if isinstance(value, float):
        return f"{value:g}"
    text = str(value)
    text = text if text.isprintable() and text == text.strip() and text else repr(text)
    return text if len(text) <= _SAID else f"{text[: _SAID - 3]}..."


def _columns(table: Any) -> list[_Column]:
    from pgmult.core.labels import is_missing
    from pgmult.core.tables import date_text

    columns = []
    for name in table:
        dates = table[name].dtype.kind == "M"
        cells = [
            None if is_missing(x) else x for x in (table[name] if dates else table[name].tolist())
        ]
        if dates:
            cells = [None if x is None else date_text(x) for x in cells]
        columns.append(_Column(name, _kind([x for x in cells if x is not None], dates), cells))
    return columns


def _kind(values: list[Any], dates: bool) -> str:
    """What cells are, in words."""
    from pgmult.core.labels import as_looked_at
    from pgmult.datasets.states import us_states

    if not values or dates:
        return "dates" if values else "nothing"
    if all(isinstance(x, int | float) and not isinstance(x, bool) for x in values):
        return "whole numbers" if all(float(x).is_integer() for x in values) else "numbers"
    different = set(map(str, values))
    if sum(len(str(x).split()) for x in values) >= _TEXT_WORDS * len(values):
        return "texts" if 2 * len(different) > len(values) else "labels"
    states = {as_looked_at(name) for name in us_states()}
    if len(different) > 1 and {as_looked_at(str(x)) for x in different} <= states:
        return "US states"
    return "names, all different" if len(different) == len(values) > 2 else "labels"


def _remarks(columns: Sequence[_Column]) -> tuple[list[str], list[str], set[str]]:
    """What to look at in some columns, what to tell ``--na-values``, columns that are misread."""
    from pgmult.core.labels import as_looked_at

    said, no_value, misread = [], [], set()
    for column in columns:
        name, texts = _told(column.name), [*map(str, column.counts)]
        if column.kind == "nothing":
            said.append(f"{name} holds no value at all.")
        if not column.can_be_named:
            said.append(f"{name} is a name that no command can take: rename the column to use it.")
        if column.kind not in ("labels", "US states", "names, all different"):
            continue
        odd, else_it_is = _odd_cells(column)
        if odd:
            no_value += [text for text in odd if else_it_is and not text.startswith("-")]
            cells = ", ".join(map(repr, odd))
            is_text = f"; without them its cells are {else_it_is}" if else_it_is else ""
            said.append(f"{name} has {cells}, which may mean that there is no value{is_text}.")
        for pattern, advice in _MISREAD:
            if all(re.fullmatch(pattern, text) for text in texts):
                said.append(f"{name} is taken for text, such as {texts[0]!r}: {advice}.")
                misread.add(column.name)
                break
        alike: dict[str, str] = {}
        pairs = ((alike.setdefault(as_looked_at(text), text), text) for text in texts)
        for other, text in pairs if column.is_category else ():
            if other != text:
                said.append(f"{name} has {other!r} and {text!r}, which count as different labels.")
                break
    return said, list(dict.fromkeys(no_value)), misread


def _odd_cells(column: _Column) -> tuple[list[str], str]:
    """Cells that read as no value, in a column of labels that are numbers or dates without them."""
    from pgmult.datasets.columns import is_number_or_date

    texts = {str(value): times for value, times in column.counts.items()}
    odd = [text for text in texts if not is_number_or_date(text)]
    others = column.counts.total() - sum(texts[text] for text in odd)
    gaps = [text for text in odd if text.strip().lower() in _GAPS.split()]
    if (
        odd
        and others
        and (gaps == odd or (len(odd) <= _SHOWN and 4 * others >= 3 * sum(texts.values())))
    ):
        return odd, "numbers or dates"
    return gaps, ""


# --------------------------------------------------------------------------- jobs

_Option = tuple[str, Sequence[Any]]


class _Job(NamedTuple):
    """A job that fits some columns."""

    title: str
    why: str
    commands: Sequence[str]

    def section(self) -> "Section":
        from pgmult.core.reports import Section

        rows = [(command,) for command in self.commands]
        pasted = "".join(f"\n{command}\n" for command in self.commands).removesuffix("\n")
        return Section(self.title, self.why, head=("command",), rows=rows, lines=lambda _: pasted)


def _command(words: Iterable[Any], options: Iterable[_Option]) -> str:
    """A command with its words quoted, over several lines where it is long."""
    lines = [""]
    for name, values in [("pgmult", words), *options]:
        option = " ".join([name, *(shlex.quote(str(value)) for value in values)])
        if lines[-1].strip() and len(f"{lines[-1]} {option}") > _WIDTH:
            lines.append("   ")
        lines[-1] = f"{lines[-1]} {option}" if lines[-1] else option
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


def _best(candidates: Sequence[_Column], words: str) -> _Column:
    """The first column whose name says so, or else the last without gaps."""
    named = [column for column in candidates if column.is_called(words)]
    return (named or [c for c in candidates[::-1] if not c.missing] or [*candidates[::-1]])[0]


def _file(path: Path) -> str:
    return f"./{path}" if str(path).startswith("-") else str(path)


class _Jobs:
    """The columns with what they are good for, and the jobs that they fit."""

    def __init__(self, path: Path, columns: Sequence[_Column], reading: list[_Option]):
        self.path, self.reading = _file(path), reading
        self.columns = [
            c for c in columns
            if c.can_be_named and 2 * c.missing < len(c.cells) and not c.is_row_number
        ]  # fmt: skip
        self.categories = [c for c in self.columns if c.is_category]
        times = [c for c in self.columns if c.is_time]
        years = [c for c in times if c.is_called("year years yr")]
        self.time = next(iter([c for c in times if c.kind == "dates"] or years or times), None)
        counts = [c for c in self.columns if c.is_count and c is not self.time]
        each_of_its_own = sum(c.is_called("count counts") for c in counts) > 1  # likes, replies
        self.count = counts[0] if counts and not each_of_its_own else None
        self.places = [c for c in self.columns if c.kind == "US states"]

    def found(self) -> list[_Job]:
        """Jobs that fit, the likeliest first."""
        choice, tables = self._choice(), [self._fields(), self._regression()]
        others = [choice] if choice else [self._sequences(), *tables[:: 1 if self.count else -1]]
        return [job for job in (self._topics(), *others) if job is not None]

    def _fit(
        self, family: str, used: Iterable[_Column], options: Iterable[_Option], formula: str = ""
    ) -> str:
        """The command that fits; rows with a gap in a column that is used are left out."""
        gaps: list[_Option] = [("--drop-incomplete", [])] if any(c.missing for c in used) else []
        words = [family, "fit", self.path, *filter(None, [formula])]
        return _command(words, [*options, *self.reading, *gaps, ("--out", [f"run-{family}"])])

    def _topics(self) -> _Job | None:
        texts = [column for column in self.columns if column.kind == "texts"]
        if not texts:
            return None
        longest = max(texts, key=lambda column: sum(map(len, map(str, column.counts))))
        number = min(50, max(5, round(longest.counts.total() ** 0.5 / 2)))
        what: list[_Option] = [("--column", [longest.name]), ("--topics", [number])]
        commands, terms = [self._fit("topics", [], what)], _first(self._terms(longest))
        if terms:
            what.append(("--prevalence", [f"~ {' + '.join(terms)}"]))
            commands.append(self._fit("topics", terms.values(), what))
        more = "; with the other columns, what they do to the topics" if terms else ""
        return _Job(
            "Topics", f"What the texts of '{_told(longest.name)}' are about{more}.", commands
        )

    def _sequences(self) -> _Job | None:
        time, whose = self.time, None
        symbols = [c for c in self.columns if c.is_category or c.is_code]
        symbols = [c for c in symbols if c not in self.places and not c.is_called(_PEOPLE)]
        symbols = [c for c in symbols if len(c.counts) <= _MOST_SYMBOLS]
        if time is None or time.kind == "numbers" or self.count is not None or not symbols:
            return None
        if time.counts.total() < _FEWEST_STEPS:
            return None
        if len(time.counts) < 0.95 * time.counts.total():  # several sequences beside each other
            whose = self._whose_steps(time, _best(symbols, _OUTCOMES))
            if whose is None:
                return None
            symbols = [
                c
                for c in symbols
                if c is not whose and max(map(len, _values_of_each(c, whose))) > 1
            ]
            if not symbols:
                return None
        symbol = _best(symbols, _OUTCOMES)
        used = {"--symbol": symbol, "--sequence": whose, "--time": time}
        columns = [column for column in used.values() if column is not None]
        options: list[_Option] = [(name, [c.name]) for name, c in used.items() if c is not None]
        every = _step(time, whose)
        if every is None:
            return None
        options += [("--every", [every])] if every else []
        of_each = f" of each '{_told(whose.name)}'" if whose else ""
        why = f"One of {len(symbol.counts)} labels of '{_told(symbol.name)}' at each"
        why += f" '{_told(time.name)}'{of_each}: what comes next, and what the gaps were."
        commands = [self._fit("sequences", columns, [*options, ("--model", ["auto"])])]
        inputs = {
            name: c for name, c in self._numbers(*columns).items()
            if whose is None or {None} not in _values_of_each(c, whose)
        }  # fmt: skip
        inputs = dict([*inputs.items()][:_FEW])
        if inputs:
            group = _in_formula(whose.name) if whose else ""
            terms = [*inputs, *([f"(1 | {group})"] if group else [])]
            options += [("--model", ["hmm"]), ("--states", ["2,3,4"])]
            options += [("--inputs", [f"~ {' + '.join(terms)}"])]
            commands.append(self._fit("sequences", [*columns, *inputs.values()], options))
            why = f"{why[:-1]}; with the other columns, what they do to its changes."
        return _Job("Sequences", why, commands)

    def _whose_steps(self, time: _Column, symbol: _Column) -> _Column | None:
        """The column whose labels have about one row at each time."""
        for column in self.columns:
            can_be = column.kind in ("labels", "whole numbers") and column not in (time, symbol)
            if can_be and column.counts.total() >= 3 * len(column.counts):
                pairs = set(zip(column.cells, time.cells, strict=True))
                if len(pairs) >= 0.95 * len(time.cells):
                    return column
        return None

    def _fields(self) -> _Job | None:
        where = [c for c in (self.time, *self.places[:1]) if c is not None]
        where += [] if self.places else self._coordinates()
        others = [c for c in self.categories if c not in where]
        if self.count is None:
            others = [c for c in others if not self._is_of_a_group(c)]
        if not where or not others:
            return None
        inputs = set(zip(*(column.cells for column in where), strict=True))
        if self.count is None and len(where[0].cells) < 4 * len(inputs):
            return None  # about one label at each place and time
        category = _best(others, _OUTCOMES.replace(" state ", " "))
        options: list[_Option] = [("--inputs", [column.name for column in where])]
        options += [("--places", ["us-states"])] if self.places else []
        options += [("--category", [category.name])]
        options += [("--count", [self.count.name])] if self.count else []
        options += [("--max-categories", [10])] if len(category.counts) > 20 else []
        over = " and ".join(_told(column.name) for column in where)
        why = f"Shares of {len(category.counts):,} labels of '{_told(category.name)}' over {over}."
        used = [*where, category, *([self.count] if self.count else [])]
        return _Job("Fields", why, [self._fit("fields", used, options)])

    def _coordinates(self) -> list[_Column]:
        numbers = {column.name.lower(): column for column in self.columns if column.is_number}
        for one in ("latitude", "lat"):
            for other in ("longitude", "lon", "long", "lng"):
                if {one, other} <= numbers.keys():
                    return [numbers[one], numbers[other]]
        return []

    def _choice(self) -> _Job | None:
        """Rows of alternatives, of which one was taken in each occasion; or columns of them."""
        from pgmult.core.tables import exact_array, truth_of

        people = [None, *(c for c in self.columns if c.is_called(_PEOPLE))]
        truths = [(c, truth_of(exact_array(c.cells))) for c in self.columns if len(c.counts) == 2]
        taken = [(c, truth.tolist()) for c, truth in truths if truth is not None]
        numbers = {sum(one) for _, one in taken}
        for occasion, who in product(self.columns, people):
            few, many = sorted((len(occasion.counts), len(who.counts) if who else 1))
            if not any(many <= number <= few * many for number in numbers) or occasion is who:
                continue
            of_row = list(zip(occasion.cells, (who or occasion).cells, strict=True))
            sizes = Counter(of_row)
            if min(sizes.values()) == 1 or len(sizes) not in numbers or occasion.missing:
                continue
            for column, one in taken:
                if sum(one) == len(sizes) == len(set(compress(of_row, one))):
                    return self._of_occasions(column, occasion, who, of_row)
        return self._of_wide()

    def _of_occasions(
        self, taken: _Column, occasion: _Column, who: _Column | None, of_row: list[Any]
    ) -> _Job | None:
        number = len(set(of_row))
        people = [who] if who else [
            column for column in self.columns
            if column.is_called(_PEOPLE) and 2 * len(column.counts) <= number
            and len(set(zip(column.cells, occasion.cells, strict=True))) == number
        ]  # fmt: skip
        names = [
            column for column in self.columns
            if column.is_called(_ALTERNATIVES) and len(column.counts) <= _MOST_OUTCOMES
            and len(set(zip(column.cells, of_row, strict=True))) == len(of_row)
        ]  # fmt: skip
        attributes = self._numbers(taken, occasion, *people, *names)
        outcome, whose = _in_formula(taken.name), _in_formula(people[0].name) if people else ""
        of_choosers = [
            name for name, column in attributes.items()
            if len(set(zip(column.cells, of_row, strict=True))) == number
        ]  # fmt: skip
        of_rows = {name: column for name, column in attributes.items() if name not in of_choosers}
        if not of_rows or not outcome:
            return None
        of_choosers = of_choosers if names else []
        constants = bool(names) and not any(
            _told_by(column.cells, names[0].cells, of_row) for column in of_rows.values()
        )
        labels = names[0].counts if names else ()
        formula = _of_choice(outcome, [*of_rows], whose, of_choosers, labels, constants)
        attributes = attributes if names else of_rows
        why = f"What matters where one of several is taken in each '{_told(occasion.name)}'."
        used = [taken, *attributes.values(), *people[:1], *names[:1]]
        options: list[_Option] = [("--occasion", [occasion.name])]
        options += [("--alternative", [column.name]) for column in names[:1]]
        return _Job("Choice", why, [self._fit("choice", used, options, formula)])

    def _of_wide(self) -> _Job | None:
        """A row an occasion, with columns such as price_bus and price_car, and which was taken."""
        for taken in (c for c in self.columns if 2 <= len(c.counts) <= _MOST_OUTCOMES):
            if not (taken.is_category or taken.is_code):
                continue
            wide = self._wide_columns(taken)
            outcome = _in_formula(taken.name)
            if not wide or not outcome:
                continue
            of_alternatives = [c for _, of in wide.values() for c in of.values()]
            people = [
                c for c in self.columns
                if c.is_called(_PEOPLE) and 2 * len(c.counts) <= len(c.cells) and c is not taken
            ]  # fmt: skip
            people.sort(key=lambda c: not c.is_in_blocks)
            numbers = self._numbers(taken, *people, *of_alternatives)
            copies = [
                [of[label].cells[i] if label in of else None for i, label in enumerate(taken.cells)]
                for _, of in wide.values()
            ]
            choosers = {
                name: c for name, c in numbers.items()
                if not c.name.lower().endswith("id") and c.cells not in copies and name not in wide
            }  # fmt: skip
            whose = _in_formula(people[0].name) if people else ""
            formula = _of_choice(outcome, [*wide], whose, [*choosers][:_FEW], taken.counts)
            patterns = [f"{name}={pattern}" for name, (pattern, _) in wide.items()]
            used = [taken, *people[:1], *of_alternatives, *choosers.values()]
            why = "What matters where one of several is taken in each row, with columns of each."
            fit = self._fit("choice", used, [("--wide", patterns)], formula)
            return _Job("Choice", why, [fit])
        return None

    def _wide_columns(self, taken: _Column) -> dict[str, tuple[str, dict[Any, _Column]]]:
        """Attributes with a column of numbers for each label: the pattern, and the columns."""
        from pgmult.core.labels import begin_alike, label_of

        labels = {label_of(label): label for label in taken.counts}
        complete: dict[str, dict[Any, _Column]] = {}
        alike = begin_alike([*labels])
        between = r"[\W_]*" if taken.is_called(_CHOICES) else r"[\W_]"
        for cut in dict.fromkeys(("", alike)):
            ends: dict[str, dict[Any, _Column]] = {}
            for label, column in product(labels, self.columns):
                word = re.escape(label.removeprefix(cut))
                ways = rf"(.*?[^\W_].*?{between}){word}|{word}({between}.+)"
                match = re.fullmatch(ways, column.name)
                if word and match and (column.is_number or column.is_category):
                    pattern = f"{match[1]}{{}}" if match[1] else f"{{}}{match[2]}"
                    ends.setdefault(pattern, {})[labels[label]] = column
            complete = complete or {
                p: of for p, of in ends.items()
                if len(of) == len(labels) and len({c.is_number for c in of.values()}) == 1
            }  # fmt: skip
        named = {re.sub(r"^[\W_]+|[\W_]+$", "", p.replace("{}", "")): p for p in complete}
        return dict(
            [
                (name, (pattern, complete[pattern])) for name, pattern in named.items()
                if _in_formula(name) == name
            ][: 2 * _MOST_TERMS]
        )  # fmt: skip

    def _regression(self) -> _Job | None:
        outcomes = [c for c in self.categories if len(c.counts) <= _MOST_OUTCOMES]
        outcomes = [c for c in outcomes if c not in self.places and _in_formula(c.name)]
        outcomes = [c for c in outcomes if not (c.is_called(_PEOPLE) or self._is_of_a_group(c))]
        if not outcomes and (of_counts := self._regression_of_counts()):
            return of_counts
        outcomes = outcomes or [c for c in self.columns if c.is_yes_or_no and _in_formula(c.name)]
        if not outcomes:
            return None
        outcome = _best(outcomes, _OUTCOMES)
        weights = [self.count] if self.count else []
        possible = self._terms(outcome)
        terms = _first(possible)
        if not terms or not (weights or any("(" in term for term in terms)):
            return None  # without counts only where there is a grouping or a curve
        options: list[_Option] = [("--weight", [column.name]) for column in weights]
        others = [_told(column.name) for column in outcomes if column is not outcome][:_SHOWN]
        or_these = f" (or of {', '.join(others)}: the formula says)" if others else ""
        limited = f", with {len(terms)} of {len(possible)} columns" if terms != possible else ""
        why = f"What shares of '{_told(outcome.name)}' depend on{or_these}{limited}."
        formula = f"{_in_formula(outcome.name)} ~ {' + '.join(terms)}"
        used = [outcome, *terms.values(), *weights]
        return _Job("Regression", why, [self._fit("regression", used, options, formula)])

    def _is_of_a_group(self, outcome: _Column) -> bool:
        """Whether labels of another column tell it, as those of countries do continents."""
        return any(
            len(outcome.counts) < len(c.counts) and 3 * len(c.counts) <= c.counts.total()
            and max(map(len, _values_of_each(outcome, c))) == 1
            for c in self.columns if c.is_category or c.is_called(_PEOPLE)
        )  # fmt: skip

    def _regression_of_counts(self) -> _Job | None:
        """Counts side by side, a column a category: the most that stand together."""
        runs: list[list[_Column]] = [[]]
        for c in self.columns:
            is_count = c.kind == "whole numbers" and min(c.counts) >= 0 and len(c.counts) > _FEW
            if is_count and _in_formula(c.name) and not (c.is_time or c.is_called(_PEOPLE)):
                runs[-1].append(c)
            elif runs[-1]:
                runs.append([])
        counts = max(runs, key=len)
        terms = _first(self._terms(*counts))
        if not 3 <= len(counts) <= _MOST_OUTCOMES or not any("(" in term for term in terms):
            return None
        named = ", ".join(_in_formula(c.name) for c in counts)
        why = f"What the shares of {len(counts)} columns of counts depend on."
        formula = f"c({named}) ~ {' + '.join(terms)}"
        fit = self._fit("regression", [*counts, *terms.values()], [], formula)
        return _Job("Regression", why, [fit])

    def _numbers(self, *without: _Column) -> dict[str, _Column]:
        """Columns of numbers that differ, as a formula names them."""
        numbers = {
            _in_formula(c.name): c for c in self.columns
            if c.is_number and c not in without and len(c.counts) > 1
        }  # fmt: skip
        return dict([(name, c) for name, c in numbers.items() if name][:_MOST_TERMS])

    def _terms(self, *without: _Column) -> dict[str, _Column]:
        """Terms that a formula could have: labels, curves of numbers, groups that pool."""
        fixed, curves, groups = {}, {}, {}
        for column in self.columns:
            name, different = _in_formula(column.name), len(column.counts)
            if not name or different < 2 or column in (*without, self.count):
                continue
            repeats = column.counts.total() >= 3 * different
            whose = column.is_whose
            if column.is_category and different <= _FEW and column not in self.places:
                fixed[name] = column
            elif repeats and (column.is_category or (whose and different <= _MOST_LABELS)):
                groups[f"(1 | {name})"] = column
            elif column.kind == "dates" or (
                column.is_number and not (whose or column.numbers_rows)
            ):
                curves[f"s({name})" if different > _FEW else name] = column
        others = {**groups, **curves}
        return dict([*_apart(fixed, [*without, *others.values()]), *others.items()])


def _first(terms: dict[str, _Column]) -> dict[str, _Column]:
    return dict([*terms.items()][:_MOST_TERMS])


def _apart(fixed: dict[str, _Column], others: Iterable[_Column]) -> list[tuple[str, _Column]]:
    """Columns of labels none of which follows from those before it, in rows without gaps."""
    import numpy as np

    rows = zip(*(c.cells for c in (*fixed.values(), *others)), strict=True)
    complete = [*{row[: len(fixed)] for row in rows if None not in row}]
    independent, design = list[tuple[str, _Column]](), np.ones((len(complete), 1))
    for i, (name, column) in enumerate(fixed.items()):
        levels = sorted({row[i] for row in complete}, key=str)
        indicators = np.array(
            [[row[i] == level for level in levels[1:]] for row in complete], dtype=float
        )
        wider = np.column_stack([design, indicators.reshape(len(complete), -1)])
        if len(levels) > 1 and np.linalg.matrix_rank(wider) == wider.shape[1]:
            independent.append((name, column))
            design = wider
    return independent


def _of_choice(
    outcome: str,
    attributes: list[str],
    whose: str,
    choosers: list[str],
    labels: Iterable[Any],
    constants: bool = True,
) -> str:
    """The formula of attributes, of people whose tastes differ, and of what belongs to them.

    Alternatives that are but numbered have no constants of their own.
    """
    from pgmult.core.labels import begin_alike, label_of

    named, words = " + ".join(attributes), [label_of(label) for label in labels]
    formula = f"{outcome} ~ {named}" + (f" + ({named} | {whose})" if whose else "")
    numbered = all(word.removeprefix(begin_alike(words)).isdigit() for word in words)
    after = choosers if constants or not choosers else ["0", *choosers]
    after = ["1"] if constants and not choosers and not numbered else after
    return formula + (f" | {' + '.join(after)}" if after else "")


def _told_by(cells: list[Any], labels: list[Any], of_row: list[Any]) -> bool:
    """Whether constants of alternatives tell an attribute: all occasions have the same steps."""
    first: dict[Any, tuple[Any, Any]] = {}
    steps = set()
    for cell, label, occasion in zip(cells, labels, of_row, strict=True):
        if cell is not None:
            other, start = first.setdefault(occasion, (label, cell))
            steps.add((label, other, round(cell - start, 9)))
    return len(steps) == len({step[:2] for step in steps})


def _values_of_each(column: _Column, whose: _Column) -> list[set[Any]]:
    """The different values of each sequence, or of each group."""
    values: dict[Any, set[Any]] = {}
    for one, value in zip(whose.cells, column.cells, strict=True):
        values.setdefault(one, set()).add(value)
    return list(values.values())


def _step(time: _Column, whose: _Column | None) -> str | None:
    """How long a step is, as ``--every`` has it; empty for a number, None if no length will do."""
    import numpy as np

    from pgmult.core.tables import exact_array
    from pgmult.sequences.data.times import dates_of, usual_step

    steps = [
        (when, "" if whose is None else str(of))
        for when, of in zip(time.cells, (whose or time).cells, strict=True)
        if when is not None and of is not None
    ]
    times = exact_array([when for when, _ in steps])
    _, sequence = np.unique([of for _, of in steps], return_inverse=True)
    if time.kind == "dates":
        return usual_step(times.astype("datetime64[s]"), sequence) or None
    if (dates := dates_of(times)) is not None:
        return usual_step(dates, sequence) or None
    every = usual_step(times, sequence)
    return (every or None) if every != "1" else ""


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

    path: Path = options.file
    kind: str = recognise(path).kind
    if kind == "table":
        print_report(options, _of_table(path, options))
        return 0
    if suffix_of(path) in _SEQUENCE_FILES:
        kind = "FASTA"
    jobs: list[_Job] = []
    of_words: list[_Option] = [("--units", ["words"]), ("--max-symbols", [200])]
    if kind != "FASTA":
        words, out = ["topics", "fit", _file(path)], ("--out", ["run-topics"])
        jobs.append(
            _Job("Topics", "Words of documents.", [_command(words, [("--topics", [20]), out])])
        )
    if kind == "FASTA" or (kind == "text" and suffix_of(path) == ".txt"):
        why = "A sequence of letters an entry." if kind == "FASTA" else "Words one after the other."
        what = [*(of_words if kind == "text" else []), ("--out", ["run-sequences"])]
        command = _command(["sequences", "fit", _file(path)], what)
        jobs.append(_Job("Sequences", why, [command]))
    print_report(options, _report(f"{plain(str(path))}: {kind}", [], jobs))
    return 0


def _of_table(path: Path, options: argparse.Namespace) -> "Report":
    from pgmult.core.reports import Section
    from pgmult.core.tabled import Column, Table

    table = read_table(path, options)
    columns = _columns(table)
    remarks, no_value, misread = _remarks(columns)
    reading_options = {"delimiter": options.delimiter, "encoding": options.encoding}
    reading: list[_Option] = [
        (f"--{name}", [value])
        for name, value in reading_options.items()
        if value not in (None, "utf-8")
    ]
    gaps = options.na_values or (["", "NA"] if no_value else [])
    if gaps:
        reading.append(("--na-values", [*gaps, *no_value]))
    if no_value:
        options.na_values = [*gaps, *no_value]
        columns = _columns(read_table(path, options))
        remarks.append(
            "The commands below leave such cells without a value: take --na-values out if not so."
        )
    jobs = _Jobs(path, [c for c in columns if c.name not in misread], reading).found()
    held = Table(
        "",
        [
            Column("column", [c.name for c in columns], "column", _told),
            Column("kind", [c.kind for c in columns], "holds"),
            Column("missing", [c.missing for c in columns], "missing", _or_nothing),
            Column("values", [c.said for c in columns], "values"),
        ],
    )
    title = f"{plain(str(path))}: {len(table):,} rows, {len(columns):,} columns"
    sections = [Section("Columns", table=held), Section("To look at", sentences=remarks)]
    return _report(title, sections, jobs)


def _or_nothing(number: int) -> str:
    return f"{number:,}" if number else ""


def _report(title: str, sections: "list[Section]", jobs: list[_Job]) -> "Report":
    """What was seen, and the jobs that fit."""
    from pgmult.core.reports import Report

    verdict = (
        "No job fits as it stands: see pgmult topics, fields, sequences, regression or choice"
        " --help for what each one takes."
    )
    if jobs:
        guessed = "guesses from the kinds of columns and their names" if sections else "guesses"
        which = ", ".join(job.title.lower() for job in jobs)
        verdict = f"Jobs that fit: {which}. The commands are {guessed}: read them before you paste"
        verdict += " them."
    return Report(title, [verdict], [*sections, *(job.section() for job in jobs)])

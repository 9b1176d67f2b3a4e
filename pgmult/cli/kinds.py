"""Kinds of columns: what the cells and the name of a column say about its use.

A column holds numbers, dates, labels or texts, which its cells decide; whether it is an outcome, a
trait of people, a treatment or an identifier is a guess from its name and from what other columns
say about its cells.
"""

import re
import tomllib
import unicodedata
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pgmult.core.dates import dates_of
from pgmult.core.labels import as_looked_at, is_missing
from pgmult.core.tables import date_text, missing_in
from pgmult.core.typing import FloatArray, IntArray
from pgmult.datasets.states import us_states
from pgmult.datasets.tables import DataTable
from pgmult.formulas.language import parse

_TEXT_WORDS = 5  # from so many words a cell on, on average, a column holds texts
_MOST_LABELS, MOST_OUTCOMES = 300, 20
_FEWEST_ROWS, _MANY = 10, 30
FEW = 4  # labels, or different numbers: more make a group, or a curve
_MOST_CODES = 12  # different whole numbers that may stand for categories
_EXCEPTIONS = 0.01  # share of what varies that need not follow from another column
_MOST_POINTS = 11  # of a scale: so few different whole numbers are no people
_LOWEST_POINT = 5  # from which on a scale may be used
_CYCLES = {"month": (1, 12), "weekday": (1, 7), "dayofweek": (1, 7), "hour": (0, 23)}
_SHORT, SHOWN = 30, 3  # characters of a name or a label, and labels shown


class Rules(NamedTuple):
    """Words that say what columns are, from ``roles.toml``.

    Attributes
    ----------
    names : mapping from role to pattern
        What words of the names of columns are, by their role.
    labels : mapping from role to set of str
        Labels that say the role of a column.
    scales : list of lists of str
        Labels of ordered answers, from the lowest to the highest.
    """

    names: dict[str, re.Pattern[str]]
    labels: dict[str, set[str]]
    scales: list[list[str]]


@cache
def rules() -> Rules:
    """Read the words once, when a table is looked at."""
    table = tomllib.loads(Path(__file__).with_name("roles.toml").read_text(encoding="utf-8"))
    names = {role: re.compile("|".join(x.split())) for role, x in table["names"].items()}
    labels = {role: {*words.split()} for role, words in table["labels"].items()}
    return Rules(names, labels, [scale.split(", ") for scale in table["orders"]["scales"]])


@cache
def in_formula(name: str) -> str:
    """A column's name in a formula; empty if it cannot stand there."""
    for text in (name, f"`{name}`"):
        with suppress(ValueError):
            if parse(f"~ {text}").columns == (name,):
                return text
    return ""


@dataclass(frozen=True, eq=False)
class ColumnGuess:
    """A column: its name, what it holds in words (see `kind_of`), and cells, None for no value.

    `title` is the label that a file of SPSS or Stata gives it.
    """

    name: str
    kind: str
    cells: list[Any]
    title: str = ""

    @cached_property
    def counts(self) -> Counter[Any]:
        """How often each value occurs."""
        return Counter(cell for cell in self.cells if cell is not None)

    @property
    def missing(self) -> int:
        """Number of cells without a value."""
        return len(self.cells) - self.counts.total()

    @property
    def term(self) -> str:
        """The name in a formula; empty if it cannot stand there."""
        return in_formula(self.name)

    @property
    def quoted(self) -> str:
        """The name in a sentence."""
        return f"'{shortened(self.name)}'"

    @cached_property
    def words(self) -> set[str]:
        """Words of the name in lower case: ``econHousehold_2`` is econ and household."""
        spaced = re.sub(r"([a-z])([A-Z])", r"\1 \2", self.name.replace("'", ""))
        return {word for word in re.split(r"[\W\d_]+", spaced.lower()) if word}

    @cached_property
    def roles(self) -> set[str]:
        """Roles that a word of the name says, or the whole name: ``OnTime``."""
        words = self.words | {re.sub(r"[\W\d_]", "", self.name.lower())}
        patterns = rules().names.items()
        return {role for role, pattern in patterns if any(map(pattern.fullmatch, words))}

    def is_called(self, *roles: str) -> bool:
        """Whether its name says one of these roles."""
        return not self.roles.isdisjoint(roles)

    @cached_property
    def labels(self) -> set[str]:
        """Values in lower case."""
        return {str(label).strip().lower() for label in self.counts}

    @property
    def is_number(self) -> bool:
        """Whether all cells are numbers."""
        return self.kind in ("whole numbers", "numbers")

    @property
    def is_dates(self) -> bool:
        """Whether cells are dates, or the first days of quarters, months or school years."""
        return self.kind in ("dates", "periods")

    @cached_property
    def is_time(self) -> bool:
        """Whether cells are dates, years, or numbers whose name says when."""
        years = self.kind == "whole numbers" and all(1500 <= x <= 2200 for x in self.counts)
        numbers = self.is_number and len(self.counts) > 1 and self.is_outcome < 2
        return self.is_dates or (numbers and (years or self.is_called("time")))

    @property
    def cycle(self) -> tuple[int, int] | None:
        """The first and the last number of a month, a weekday or an hour."""
        several = self.kind == "whole numbers" and len(self.counts) > FEW
        for word, (first, last) in _CYCLES.items() if several else ():
            if word in self.words and first <= min(self.counts) <= max(self.counts) <= last:
                return first, last
        return None

    @property
    def is_count(self) -> bool:
        """Whether it holds counts, and its name says so."""
        non_negative = self.kind == "whole numbers" and min(self.counts) >= 0
        if self.is_exactly("sample size"):
            return non_negative
        measured = self.is_called("body") and (self.missing or self.is_called("thing"))  # in grams
        amounts = [rules().names[role] for role in ("count", "amount")]
        others = {x for x in self.words if not any(one.fullmatch(x) for one in amounts)}
        is_amount = self.is_called("amount") and others <= {"of", "the"}
        return non_negative and (self.is_called("count") or is_amount) and not measured

    def is_exactly(self, *roles: str) -> bool:
        """Whether its whole name says one of these roles."""
        name = self.name.lower().replace("_", "").replace(".", "")
        return any(rules().names[role].fullmatch(name) for role in roles)

    @property
    def is_survey_weight(self) -> bool:
        """Whether it holds weights of respondents, which are 1 on average."""
        is_labelled = re.search(r"\bweight(s|ing)?\b", self.title, re.IGNORECASE) is not None
        if not self.is_number or self.missing or not (self.is_called("weight") or is_labelled):
            return False
        mean = self.numbers.mean()
        return bool(min(self.counts) >= 0 and 0.7 < mean < 1.4 and len(self.counts) > FEW)

    @property
    def is_yes_or_no(self) -> bool:
        """Whether its numbers are 0 and 1."""
        return self.is_number and {*self.counts} == {0, 1}

    @property
    def is_measure(self) -> bool:
        """Whether it holds times, or its name is that of something measured or counted."""
        return self.is_time or self.is_called("measure")

    @cached_property
    def is_identifier(self) -> bool:
        """Whether whole numbers stand for people, places or things."""
        if self.kind != "whole numbers" or self.is_measure:
            return False
        if len(self.counts) <= _MOST_POINTS:
            few_people = self.is_called("person") and min(self.counts) == 1 and self.is_in_blocks
            return self.is_called("identifier") or few_people
        if self.is_called("person", "code") or self.name.lower().endswith("id"):
            return True
        first, last = min(self.counts), max(self.counts)
        numbered = first in (0, 1) and len(self.counts) >= 0.95 * (last - first + 1)
        times = sorted(self.counts.values())
        even = len(times) > _MANY and 2 < times[-1] <= 2 * times[len(times) // 2]
        return numbered and (self.is_in_blocks or self.is_called("trait") or even)

    @property
    def is_in_blocks(self) -> bool:
        """Whether all rows of a value follow each other, as those of a person often do."""
        return len(self.counts) == 1 + sum(bool(a != b) for a, b in pairwise(self.cells))

    @property
    def is_category(self) -> bool:
        """Whether it holds labels, not too many to be compared."""
        return self.kind in ("labels", "US states") and 2 <= len(self.counts) <= _MOST_LABELS

    @property
    def is_code(self) -> bool:
        """Whether a few whole numbers stand for categories, as its name says."""
        few = self.kind == "whole numbers" and 2 <= len(self.counts) <= _MOST_CODES
        return few and (self.is_outcome > 0 or self.is_called("coded"))

    @property
    def is_scale(self) -> bool:
        """Whether its numbers are consecutive and few, as answers on a scale are."""
        if not self.is_number or not 3 <= len(self.counts) <= _MOST_POINTS or self.is_measure:
            return False
        first, size = min(self.counts), len(self.counts)
        return first <= _LOWEST_POINT and set(self.counts) == {first + i for i in range(size)}

    @cached_property
    def is_outcome(self) -> int:
        """2 if its name is that of an outcome, 1 if it may be, else 0."""
        return 2 if self.is_called("outcome") else int(self.is_called("perhaps outcome"))

    @cached_property
    def is_trait(self) -> bool:
        """Whether name or labels are those of traits of people and places."""
        of_people = self.is_called("person") and not self.is_graded
        similar = len(self.labels & rules().labels["trait"])
        by_labels = 2 * similar > len(self.counts) or (self.is_denied and similar > 0)
        return self.is_called("trait") or of_people or by_labels

    @cached_property
    def is_treatment(self) -> bool:
        """Whether name or labels are those of a treatment."""
        return self.is_called("treatment") or not self.labels.isdisjoint(rules().labels["arm"])

    @cached_property
    def is_graded(self) -> bool:
        """Whether labels have an order, such as low, medium, high, or low and high."""
        labels = self.labels if len(self.counts) <= MOST_OUTCOMES else set()
        graded = [not rules().labels["grade"].isdisjoint(re.split(r"[\s_]+", x)) for x in labels]
        several = len(labels) > 2 or labels in ({"low", "high"}, {"bad", "good"})
        return several and sum(graded) >= 0.6 * len(labels)

    @property
    def is_denied(self) -> bool:
        """Whether it has two labels, one of which denies the other: remote and not remote."""
        if len(self.counts) != 2:
            return False
        first, second = sorted((str(x).lower() for x in self.counts), key=len)
        return second in (f"not {first}", f"no {first}", f"non{first}", f"no{first}")

    @property
    def is_row_number(self) -> bool:
        """Whether it numbers the rows, as a step of time may, too."""
        size = len(self.cells)
        if len(self.counts) < size:
            return False
        in_order = any(self.cells == [*range(n, n + size)] for n in (0, 1))
        in_order = (in_order and size >= _FEWEST_ROWS) or self.is_called("row")
        of_numbers = self.kind == "whole numbers" and in_order and not self.is_time
        return of_numbers or self.is_called("row name")

    @cached_property
    def can_be_named(self) -> bool:
        """Whether a command can name it: its name is no option and can be read on a screen."""
        odd = any(unicodedata.category(character) in ("Cc", "Cf") for character in self.name)
        return not odd and not self.name.startswith("-") and self.term != ""

    @cached_property
    def codes(self) -> IntArray:
        """The number of each cell's value, -1 without one, ``(num_rows,)``."""
        numbers = {None: -1} | {value: i for i, value in enumerate(self.counts)}
        return np.fromiter(map(numbers.__getitem__, self.cells), np.int64, len(self.cells))

    @cached_property
    def numbers(self) -> FloatArray:
        """The numbers, nan without one, ``(num_rows,)``."""
        numbers = np.array([*map(float, self.counts), np.nan])
        return numbers[self.codes]

    @cached_property
    def _ranks(self) -> IntArray:
        """The rank of each cell among the different values, -1 without one, ``(num_rows,)``."""
        ranks = {value: i for i, value in enumerate(sorted(self.counts))}
        return np.array([*map(ranks.__getitem__, self.counts), -1])[self.codes]

    def is_in_order_of(self, other: "ColumnGuess") -> bool:
        """Whether its values grow, or fall, with those of another column, as depth with age."""
        one, two = self._ranks, other._ranks
        falling = np.where(one < 0, -1, len(self.counts) - 1 - one)
        in_order = np.array_equal(one, two) or np.array_equal(falling, two)
        return in_order and len(self.counts) == len(other.counts)

    def follows_from(self, other: "ColumnGuess") -> bool:
        """Whether a value of another column says the value of this, but for 1 % of what varies."""
        both = (self.codes >= 0) & (other.codes >= 0)
        mine, theirs, size = self.codes[both], other.codes[both], len(self.counts)
        if not len(mine):
            return False
        if size * len(other.counts) <= len(both):
            times = np.bincount(theirs * size + mine, minlength=size * len(other.counts))
            most = times.reshape(-1, size).max(axis=1)
        else:
            pairs, times = np.unique(theirs * size + mine, return_counts=True)
            most = np.zeros(len(other.counts), dtype=np.int64)
            np.maximum.at(most, pairs // size, times)
        varies = len(mine) - np.bincount(mine).max()
        return bool(len(mine) - most.sum() <= _EXCEPTIONS * varies)

    def ranges_by(self, other: "ColumnGuess") -> list[tuple[float, float]]:
        """The least and the greatest number in the rows of each value of another column, sorted."""
        both = (self.codes >= 0) & (other.codes >= 0)
        low, high = np.full((2, len(other.counts)), np.inf)
        np.minimum.at(low, other.codes[both], self.numbers[both])
        np.minimum.at(high, other.codes[both], -self.numbers[both])
        return sorted((a, -b) for a, b in zip(low, high, strict=True) if np.isfinite(a))

    @property
    def summary(self) -> str:
        """Its values in words."""
        different = len(self.counts)
        if not different:
            return ""
        if self.is_number or self.is_dates:
            low, high = shortened(min(self.counts)), shortened(max(self.counts))
            also = f", {different:,} different" if self.is_number else ""
            return f"always {low}" if different == 1 else f"{low} to {high}{also}"
        if self.kind == "texts":
            words = sum(len(str(text).split()) * times for text, times in self.counts.items())
            return f"{words / self.counts.total():,.0f} words each"
        first = [shortened(value) for value, _ in self.counts.most_common(SHOWN)]
        return f"{different:,}: {', '.join(first)}{', ...' if different > SHOWN else ''}"


def shortened(value: object) -> str:
    """A cell or a name on a terminal: short, and with nothing that a terminal obeys."""
    if isinstance(value, float):
        return f"{value:g}"
    text = str(value)
    text = text if text.isprintable() and text == text.strip() and text else repr(text)
    return text if len(text) <= _SHORT else f"{text[: _SHORT - 3]}..."


def columns_of(table: DataTable) -> list[ColumnGuess]:
    """The columns of a table, with what each holds."""
    columns = []
    for name in table:
        column = table[name]
        dates = column.dtype.kind == "M"
        cells = [date_text(x) for x in column] if dates else column.tolist()
        if column.dtype.kind in "fM" and (empty := missing_in(column)).any():
            cells = [None if gap else x for x, gap in zip(cells, empty.tolist(), strict=True)]
        counts = Counter(cells)
        is_number = column.dtype.kind in "iuf"
        if gaps := {None} & counts.keys() if is_number else {x for x in counts if is_missing(x)}:
            cells = cells if gaps == {None} else [None if x in gaps else x for x in cells]
            counts = Counter({x: times for x, times in counts.items() if x not in gaps})
        kind = kind_of(counts, dates)
        labels = counts and kind != "texts" and all(isinstance(x, str) for x in counts)
        if labels and (starts := dates_of(np.array([*counts]))) is not None:  # such as 2020 Q1
            first = dict(zip(counts, map(date_text, starts), strict=True))
            kind, cells = "periods", [first.get(x) for x in cells]
            counts = Counter({first[x]: often for x, often in counts.items()})
        guess = ColumnGuess(name, kind, cells, table.cells[name].title)
        vars(guess)["counts"] = counts
        columns.append(guess)
    return columns


def kind_of(counts: Counter[Any], dates: bool) -> str:
    """Say in words what cells are, from how often each value occurs."""
    if not counts or dates:
        return "dates" if counts else "nothing"
    if all(issubclass(t, int | float) and t is not bool for t in {*map(type, counts)}):
        return "whole numbers" if all(map(float.is_integer, map(float, counts))) else "numbers"
    total = counts.total()
    words = sum(len(str(x).split()) * times for x, times in counts.items())
    if words >= _TEXT_WORDS * total:
        return "texts" if 2 * len(counts) > total else "labels"
    states = {as_looked_at(name) for name in us_states()}
    if 1 < len(counts) <= len(states) and {as_looked_at(str(x)) for x in counts} <= states:
        return "US states"
    return "names, all different" if len(counts) == total > 2 else "labels"

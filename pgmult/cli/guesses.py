"""Guesses which jobs fit the columns of a table, and the commands that do them.

A guess follows from the kinds of columns and their names (`pgmult.cli.kinds`). Names and cells of
the file reach a command between quotes alone.
"""

import math
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import chain, combinations, compress, count, groupby, islice, pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pgmult.choice.prices import price_among
from pgmult.cli.kinds import FEW, MOST_OUTCOMES, SHOWN, ColumnGuess, in_formula, rules, shortened
from pgmult.core.dates import dates_of
from pgmult.core.labels import begin_alike, label_of
from pgmult.core.reports import Section
from pgmult.core.tables import exact_array, truth_of
from pgmult.core.typing import IntArray
from pgmult.sequences.data.times import usual_step

_WORDS, _WORDS_EACH = 50, 10  # different words, and rows of a document on average
_MOST_CODES = 6  # labels that are whole numbers
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec"
_STEP = re.compile(r"(.*?)[\W_]*(\d+)((?:[\W_]\D*)?)")  # the name of a column of a step
_BATTERY = 4  # questions of a kind: a table that has more is about them
_ITEMS = 3  # columns of one kind that make a row a sequence
_MOST_ROWS = 300  # each of which may have a deviation
_MOST_SYMBOLS, MOST_TERMS, _MOST_LEVELS = 60, 6, 300
_FEWEST_STEPS, _FEWEST_OCCASIONS = 10, 5
_MOST_NUMBERS = 2  # columns of fractions beside counts of rows
_WIDTH = 94  # of a command's lines
_LEAST_SCORE = -3.0  # of an outcome: treatments, traits and times that nothing speaks for have less
_CLOSE, _MOST_GUESSES = 2.0, 3  # outcomes whose scores are so close to the best are all printed
_ALIKE = 3  # letters with which names of columns of a kind begin
_ROUNDED = 1.005  # sum of shares, each of them rounded
_MOST_GAPS, _MOST_LOST = 0.25, 0.4  # share of rows that a term may cost, and all terms
_DATE = 10  # characters of a date without a time of day
_MOST_LETTERS = 10  # of an alphabet such as that of bases, with gaps
_SMALL = 1e-6  # what others leave of a linear combination of theirs
_LOOKED_AT = 4000  # rows in which linear combinations are looked for

Option = tuple[str, Sequence[Any]]
Columns = Sequence[ColumnGuess]


class Guess(NamedTuple):
    """A job that fits some columns."""

    title: str
    why: str
    commands: Sequence[str]

    def section(self) -> Section:
        """A section of the report, with commands to paste."""
        rows = [(command,) for command in self.commands]
        pasted = "".join(f"\n{command}\n" for command in self.commands).removesuffix("\n")
        return Section(self.title, self.why, head=("command",), rows=rows, lines=lambda _: pasted)


def options_of(**values: Any) -> list[Option]:
    """Options with a value or a list of values each, those without one left out."""
    there = {name: x for name, x in values.items() if x not in (None, "", [])}
    return [(f"--{name}", x if isinstance(x, list) else [x]) for name, x in there.items()]


def command_of(words: Iterable[object], options: Iterable[Option]) -> str:
    """A command with its words quoted, over several lines where it is long."""
    lines = [""]
    for name, values in [("pgmult", words), *options]:
        texts = (str(x.name if isinstance(x, ColumnGuess) else x) for x in values)
        option = " ".join([name, *map(shlex.quote, texts)])
        if lines[-1].strip() and len(f"{lines[-1]} {option}") > _WIDTH:
            lines.append("   ")
        lines[-1] = f"{lines[-1]} {option}" if lines[-1] else option
    return " \\\n".join(lines)


def listed(columns: Columns, most: int = SHOWN) -> str:
    """Names of columns in words, only the first of many."""
    names = [c.quoted for c in columns]
    if len(names) > most + 1:
        return f"{', '.join(names[:most])} and {len(names) - most} others"
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def file_of(path: Path) -> str:
    """A path that no command takes for an option."""
    return f"./{path}" if str(path).startswith("-") else str(path)


class Guesses:
    """The columns with what they are good for, and the jobs that fit them."""

    def __init__(self, path: Path, columns: Columns, reading: list[Option]):
        self.path, self.reading, self.folders = file_of(path), reading, set[str]()
        self.every_column = [c for c in columns if c.can_be_named]
        self.num_rows = len(columns[0].cells) if columns else 0
        rows = [c for c in self.every_column if not c.is_row_number]
        most = {c: (2 / 3 if c.is_outcome else 1 / 2) * self.num_rows for c in rows}
        self.columns = [c for c in rows if c.missing < most[c]]
        weights = [c for c in self.columns if c.is_survey_weight]
        if weights:  # the last adjustment
            last = max(weights, key=lambda c: float(c.numbers.std()))
            weighs = {c for c in self.columns if c.is_called("weight", "design")} - {last}
            self.columns = [c for c in self.columns if c not in weighs]
        self.categories = [c for c in self.columns if c.is_category]
        times = (c for c in self.columns if c.is_time and not c.cycle)
        self.time = max(times, key=lambda c: (c.is_dates, c.is_called("year")), default=None)
        counts = [c for c in self.columns if c.is_count and c is not self.time]
        several = sum(c.is_called("several") for c in counts) > 1  # likes, replies
        fractions = sum(c.kind == "numbers" and not c.is_time for c in self.columns)
        if fractions > _MOST_NUMBERS:  # a row is a thing that is measured, not a cell of a table
            counts = [c for c in counts if c.is_exactly("sample size", "exact count")]
        counts = [c for c in ([] if several else counts) + weights if c in self.columns]
        self.count = counts[0] if counts else None
        self.shared = self._shares_in_rows()
        if not (counts or several or self.shared):
            self.count = self._cells_of_a_table()
        self.places = [c for c in self.columns if c.kind == "US states"]
        self.coordinates = self._coordinates()
        self.identifiers = {c for c in self.columns if c.is_identifier or self._is_of_groups(c)}
        people = {c for c in self.categories if c.is_called("person")} | self.identifiers
        repeated = (c for c in self.columns if FEW < len(c.counts) <= c.counts.total() / 1.5)
        self.people = next((c for c in repeated if c in people), None)  # who have several rows
        self.turned = self._samples_side_by_side()
        self.subject = list[ColumnGuess]()  # what the file is called after
        self.formula = ""
        self.formula, self.counted = self._counts_side_by_side()
        if not self.counted:
            stem = re.split(r"[\W_]+", path.stem.lower())
            stems = {"".join(stem), *(word for word in stem if len(word) > FEW)}
            names = {c: re.sub(r"[\W_]", "", c.name.lower()) for c in self.columns}
            self.subject = [c for c, name in names.items() if name in stems]

    def jobs(self) -> list[Guess]:
        """Jobs that fit, the likeliest first."""
        if words := self._words() or self._columns_of_words():
            return [words]
        jobs = [self._topics()]
        if choice := self._choice():
            jobs.append(choice)
        elif sequences := self._spells() or self._careers():
            jobs.append(sequences)
        elif self.shared is not None:
            jobs.append(self._of_shares_in_rows(*self.shared))
        elif not self._rows_of_a_choice:
            tables = [self._fields(), self._regression()]
            labels = [c for c in self.categories if c not in (self.count, *self.places)]
            is_of_places = self.count is not None and len(labels) == 1  # and nothing else
            jobs += [self._sequences(), *tables[:: 1 if is_of_places else -1]]
        return [job for job in jobs if job is not None]

    def _cells_of_a_table(self) -> ColumnGuess | None:
        """The one column of whole numbers, if all others are labels and times that cross.

        Rows that no two have the same labels and times are cells of a table of counts; of people,
        several are alike.
        """
        labels = [c for c in self.columns if c.is_category or c.is_time]
        others = [c for c in self.columns if c not in labels]
        if len(others) != 1 or len(labels) < 2 or not self._may_be_counts(others[0]):
            return None
        without = ([x for x in labels if x is not c] for c in self.categories)
        crossed = any(1.5 * self._different(*columns) <= self.num_rows for columns in without)
        return others[0] if crossed and self._different(*labels) == self.num_rows else None

    def _is_of_a_group(self, c: ColumnGuess) -> bool:
        """Whether it follows from labels of another column, as continents do from countries."""
        finer = [x for x in self.columns if len(c.counts) < len(x.counts) <= self.num_rows / 3]
        groups = (x for x in finer if x.is_category or x.is_scale or x.is_called("person"))
        return any(c.follows_from(x) for x in groups)

    def _is_of_groups(self, c: ColumnGuess) -> bool:
        """Whether whole numbers stand for groups: two columns or more are the same in each."""
        many = c.kind == "whole numbers" and 2 * len(c.counts) <= c.counts.total()
        if not many or len(c.counts) <= MOST_OUTCOMES or c.is_measure or c is self.count:
            return False
        others = [x for x in self.columns if 1 < len(x.counts) < len(c.counts)]
        return sum(x.follows_from(c) for x in others) > 1

    # ------------------------------------------------------------------- outcomes

    def outcomes(self) -> list[ColumnGuess]:
        """Columns that may be the outcome of a regression, the likeliest first, and only the close.

        What a column is called counts most; then its labels and its place: outcomes stand first or
        last, have more than two labels or an order, and are neither traits of people nor treatments
        nor balanced by design.
        """
        scores = {c: self._score(c) for c in self.columns if self._can_be_outcome(c)}
        best = max(scores.values(), default=_LEAST_SCORE)
        close = list[ColumnGuess]()
        for c in sorted(scores, key=lambda c: -scores[c]) if best > _LEAST_SCORE else ():
            if scores[c] >= best - _CLOSE and not any(_are_of_one_kind(c, x) for x in close):
                close.append(c)
        named = [c for c in close if c.is_outcome == 2]
        return (close if len(named) < _MOST_GUESSES else named)[:_MOST_GUESSES]

    def _can_be_outcome(self, c: ColumnGuess) -> bool:
        if c in (self.time, self.count, self.people, *self.places, *self.coordinates) or c.cycle:
            return False
        is_of_people = c.is_called("person") and c.is_outcome < 2 and not c.is_graded
        if is_of_people or (c.is_yes_or_no and self._is_of_a_time(c)):
            return False
        most = MOST_OUTCOMES + (MOST_OUTCOMES // 2 if c.is_outcome == 2 else 0)
        numbers = c.is_yes_or_no or c.is_code or (c.is_scale and c not in self.identifiers)
        numbers = numbers or (c in self.subject and c.kind == "whole numbers")
        if c.is_code and self.formula.startswith("p("):
            numbers = not _is_at_most(c, self.counted[1])
        return numbers or (c.is_category and len(c.counts) <= most)

    def _is_of_a_time(self, c: ColumnGuess) -> bool:
        """Whether a time that repeats says the value, as a year says that of its dummy."""
        times = (x for x in self.columns if x.is_time and 2 * len(x.counts) <= self.num_rows)
        return any(x is not c and c.follows_from(x) for x in times)

    def _score(self, c: ColumnGuess) -> float:
        not_asked = (self.count, self.people, self.time, *self.identifiers - {c})
        others = [x for x in self.columns if x not in not_asked and len(x.counts) > 1]
        score = 3.0 if c in self.subject else (0.0, 1.0, 3.0)[c.is_outcome]
        score += 1.5 * (sum(_are_of_one_kind(c, x) for x in self.columns) > _BATTERY)
        score += 1.5 * (c is others[0]) + 1.0 * (c is others[-1])
        score += 0.5 * (len(c.counts) > 2) + 1.0 * c.is_graded + 1.5 * c.is_denied
        score -= 3.0 * c.is_trait + 3.0 * c.is_treatment
        if not c.is_category:
            score -= 0.5 if c.is_yes_or_no else 1.5
        if self.count is None:
            score -= 1.5 * (len(set(c.counts.values())) == 1)  # balanced, as designs are
        elif c.is_category:  # its labels, each once, wherever counted
            where = [x for x in self.columns if x not in (c, self.count)]
            score += 2.0 * (self._different(*where) * len(c.counts) == self.num_rows)
        score -= 3.0 * (self.people is not None and c.follows_from(self.people))
        score -= 3.0 * any(_are_the_same_things(c, x) for x in self.columns)
        score -= 1.5 * self._is_of_a_group(c)  # as places and things imply
        return score - 2.0 * c.missing / max(1, self.num_rows)

    def _regression(self) -> Guess | None:
        outcomes, counts, is_part = self.outcomes(), self.counted, self.formula.startswith("p(")
        best = self._score(outcomes[0]) if outcomes else -1.0
        is_named = bool(outcomes) and outcomes[0].is_outcome == 2 and outcomes[0] not in counts
        if best >= 2.0 and counts != self._shares():
            counts = counts if not is_named and (is_part or len(counts) > 2) else []
        commands, limited = dict[str, str](), ""
        if counts:
            names = " and ".join(shortened(c.name) for c in counts[:SHOWN])
            commands[f"'{names}'"] = self._regress(self.formula, counts, self._terms(*counts))
        of_trials = bool(counts) and counts[-1].is_called("trials")
        others = [c for c in outcomes if c not in counts and not (self.count and counts)]
        for outcome in others if best >= 2.0 * of_trials or not commands else ():
            terms = self._terms(outcome)
            if len(commands) < _MOST_GUESSES and (terms or len(self.columns) == 1):
                if len(terms) > MOST_TERMS and not limited:
                    limited = f"{MOST_TERMS} of {len(terms)} "
                commands[outcome.quoted] = self._regress(outcome.term, [outcome], terms)
        if not commands:
            return self._of_events()
        name, *names_of_others = commands
        why = f"Estimate how the shares of {name} depend on {limited or 'the '}other columns."
        if len(self.columns) == 1:
            why = f"Estimate the shares of {name}."
        if counts and is_part and not counts[1].is_called("trials"):
            why += f" {listed(counts[:1])} is never above {listed(counts[1:])} and is taken for a"
            why += " part of it: write c( in place of p( if they are two categories."
        numbered = [c for c in outcomes if c.is_number and c.is_outcome < 2 and in_order(c)]
        if numbered and f"'{numbered[0].name} ~" in "".join(commands.values()):
            why += f" Leave out --ordered if the numbers of {listed(numbered)} are codes."
        if names_of_others:
            or_of = " or ".join(names_of_others)
            why += f" If your question is about {or_of}, paste the command of that column."
        return Guess("Regression", why + self._left_out(outcomes), [*commands.values()])

    def _of_events(self) -> Guess | None:
        """The regression of counts of events, where rows have no categories."""
        count = self.count
        terms = self._terms(count, most=MOST_TERMS) if count else {}
        if count is None or not (count.is_called("several") and terms):
            return None
        used, formula = [count, *terms.values()], f"{count.term} ~ {' + '.join(terms)}"
        fit = self._fit("regression", options_of(family="negative_binomial"), used, formula)
        why = f"Estimate how {count.quoted}, a count of events, depends on the other"
        return Guess("Regression", f"{why} columns.", [fit])

    def _of_shares_in_rows(self, share: ColumnGuess, category: ColumnGuess) -> Guess | None:
        """Rows that have the share of a category, in a sample whose size is a column."""
        count = self.count
        if count is None or count.kind != "whole numbers":
            return None
        percent = " / 100" if max(share.counts) > 1 else ""
        weight = f"round({share.term} * {count.term}{percent})"
        terms = self._terms(category, share, most=MOST_TERMS)
        formula = f"{category.term} ~ {' + '.join(terms) or 1}"
        used = [share, category, count, *terms.values()]
        fit = self._fit("regression", options_of(weight=weight), used, formula)
        why = f"Estimate how the shares of {listed([category])} depend on the other columns. Each"
        return Guess("Regression", f"{why} row counts as its share of {listed([count])}.", [fit])

    def _left_out(self, outcomes: Columns) -> str:
        """A sentence on columns that have too many gaps for a formula."""
        most = _MOST_GAPS * self.num_rows
        gaps = [c for c in self.every_column if c not in outcomes and c.missing > most]
        lack = f"{listed(gaps)}, which {'lack' if len(gaps) > 1 else 'lacks'} values"
        return f" Left out: {lack} in a quarter of the rows or more." if gaps else ""

    def _regress(self, outcome: str, columns: Columns, terms: dict[str, ColumnGuess]) -> str:
        """The command of a regression, by the first of its terms."""
        terms = dict([*terms.items()][:MOST_TERMS])
        if len(columns) > 1 and self.num_rows <= _MOST_ROWS:  # counts of a row scatter
            rows = [c for c in self.columns if c.kind == "names, all different"]
            terms |= {f"(1 | {c.term})": c for c in rows[:1]}
        weight = None if self.count in columns else self.count
        if weight and len(columns) > 1:
            are_counts = columns != self._shares() or _is_sum(weight, columns)
            if are_counts and all(_is_at_most(c, weight) for c in columns):  # it is their total
                weight = None
        options = options_of(weight=weight, ordered=in_order(columns[0]) if not columns[1:] else [])
        used, formula = [*columns, *terms.values()], f"{outcome} ~ {' + '.join(terms) or 1}"
        return self._fit("regression", options, used, formula)

    def _counts_side_by_side(self) -> tuple[str, list[ColumnGuess]]:
        """Columns of counts: successes and trials, or the categories that stand together."""
        if self.turned:
            return "", []
        counts = [c for c in self.columns if self._may_be_counts(c)]
        trials = [c for c in self.columns if c.kind == "whole numbers" and c.is_called("trials")]
        runs = _neighbours(self.columns, self._may_be_counts)
        longest = max((self._categories_of(run) for run in runs), key=len, default=[])
        if len(longest) > 2 and any(_is_sum(c, longest) for c in trials):
            trials = []
        if len(longest) == 2 and sum(c.is_called("pair") for c in longest) == 1:
            trials += longest  # such as females, and those with eggs
        for total in (c for c in trials if min(c.counts) > 0):
            parts = [c for c in counts if c is not total and _is_at_most(c, total)]
            end = total.name[-_ALIKE:].lower()
            parts.sort(key=lambda c: (c.name[-_ALIKE:].lower() != end, c.is_outcome < 2))
            others = [c for c in self.columns if c.is_number and c not in (total, *parts[:1])]
            two = combinations(others[: 2 * MOST_TERMS], 2)  # which a score of a test adds up
            if parts and not any(_is_sum(total, pair) for pair in two):
                return f"p({parts[0].term}, {total.term})", [parts[0], total]
        numbers = [c for c in self.columns if c.is_number and len(c.counts) > 25]
        numbers = [c for c in numbers if c not in (*longest, self.time)]
        if self.count and (shares := self._shares()):
            longest = shares
        elif not (3 if numbers else 2) <= len(longest) <= MOST_OUTCOMES:  # two of them are measures
            return "", []
        return f"c({', '.join(c.term for c in longest)})", longest

    def _samples_side_by_side(self) -> list[ColumnGuess]:
        """Columns of counts that are samples, where rows are categories such as species."""
        samples = max(_neighbours(self.columns, _may_be_words), key=len, default=[])
        rows = [c for c in self.columns if c.kind == "names, all different"]
        is_turned = _are_numbered(samples) and any(c.is_called("rank", "feature") for c in rows)
        return samples if is_turned else []

    def _categories_of(self, run: list[ColumnGuess]) -> list[ColumnGuess]:
        """Columns of counts without their total, if they are counts of the same: most of a table.

        Their names begin alike, or they add up to another column, or few others are there.
        """
        if len(run) > 2:
            totals = [c for c in run if _is_sum(c, [x for x in run if x is not c])]
            run = [c for c in run if c not in totals and not c.is_called("trials", "total")]
        if 2 * sum(c.is_scale and min(c.counts) > 0 for c in run) >= max(2, len(run)):
            return []
        others = [c for c in self.columns if c not in (*run, self.time, *self.identifiers)]
        numbers = [c for c in others if c.is_number and not c.is_called("trials", "total")]
        alike = len(run) > 2 and len(begin_alike([c.name for c in run])) >= _ALIKE
        counted = any(min(c.counts) == 0 or c.is_called("pair") for c in run)
        few = len(numbers) <= len(run) and len(others) - len(numbers) <= 2 * len(run)
        few = few and (len(run) > 2 or len(others) > 0 or counted)  # else as speed and distance
        sure = len(run) > 2 or any(c.is_called("pair") for c in run)
        asked = [c for c in others if (c.is_outcome or not sure) and not c.is_trait]
        few = few and not any(map(self._can_be_outcome, asked))
        return run if few or alike or any(_is_sum(c, run) for c in others) else []

    def _shares(self) -> list[ColumnGuess]:
        """Columns of percentages, or of shares, of a sample whose size is in the table."""
        numbers = [c for c in self.columns if self._may_be_shares(c)]
        numbers = [c for c in numbers if 5 * c.missing <= self.num_rows]
        best, least = list[ColumnGuess](), 0.8 if self.count else 0.98
        for i, first in enumerate(numbers):
            alike = [c for c in numbers[i:] if len(begin_alike([first.name, c.name])) >= _ALIKE]
            for together in (alike, numbers[i:]):
                while len(together) > max(1, len(best)) and not _are_shares(together, least):
                    together = together[:-1]
                best = together if len(together) > max(1, len(best)) else best
        return best

    def _shares_in_rows(self) -> tuple[ColumnGuess, ColumnGuess] | None:
        """A column of shares that add up to 1 or 100 over the labels of another, and that one."""
        shares = [c for c in self.columns if self._may_be_shares(c) and not c.missing]
        for c, category in product(shares, self.categories):
            whole = 1.0 if max(c.counts) <= 1 else 100.0
            groups = c.numbers.sum() / whole  # of labels, if these are shares
            twice = len(category.counts) * groups < 0.9 * self.num_rows  # a label in some group
            if twice or not FEW <= groups <= self.num_rows / 2:
                continue
            others = [x for x in self.columns if x not in (c, category, self.count)]
            alike = np.unique(self._keys(*others), return_inverse=True)[1]
            sums = np.bincount(alike, c.numbers)
            near = np.mean(np.abs(sums - whole) < 0.01 * whole)
            if 2 * len(sums) <= self.num_rows and near >= 0.9:
                return c, category
        return None

    def _may_be_shares(self, c: ColumnGuess) -> bool:
        numbers = c.is_number and not c.is_yes_or_no and c is not self.count
        return numbers and 0 <= min(c.counts) <= max(c.counts) <= 100

    def _different(self, *columns: ColumnGuess) -> int:
        """Number of rows that differ in some columns."""
        return len(np.unique(self._keys(*columns)))

    def _keys(self, *columns: ColumnGuess) -> IntArray:
        """A number for each row, ``(num_rows,)``, the same for rows with the same cells."""
        return sum((self._hashes[c] for c in columns), np.zeros(self.num_rows, np.int64))

    @cached_property
    def _hashes(self) -> dict[ColumnGuess, IntArray]:
        """A number for each cell of each column; sums of rows with other cells differ."""
        draw = np.random.default_rng(0).integers
        values = {c: draw(2**50, size=1 + len(c.counts)) for c in self.every_column}
        return {c: numbers[c.codes] for c, numbers in values.items()}

    def _may_be_counts(self, c: ColumnGuess) -> bool:
        many = c.kind == "whole numbers" and min(c.counts) >= 0 and len(c.counts) > FEW
        counts = many and not (c.is_measure or c.is_called("person", "stratum"))
        return counts and c.missing <= _MOST_GAPS * self.num_rows

    # ------------------------------------------------------------------- terms

    def _numbers(self, *without: ColumnGuess) -> dict[str, ColumnGuess]:
        """Columns of numbers, as a formula names them."""
        numbers = [c for c in self.columns if c.is_number and c not in without]
        return {c.term: c for c in [c for c in numbers if len(c.counts) > 1][:MOST_TERMS]}

    def _terms(self, *without: ColumnGuess, most: int | None = None) -> dict[str, ColumnGuess]:
        """Terms that a formula could have, treatments first: labels, groups that pool, curves."""
        fixed, curves, groups = {}, {}, {}
        common = set.intersection(*(c.words for c in without))
        scores = self._scores(without[0]) if len(without) == 1 else ()
        named = {word for c in without for word in c.words - common}
        for c in self.columns:
            name, different, gaps = c.term, len(c.counts), c.missing > _MOST_GAPS * self.num_rows
            if c in (*without, *scores, self.count) or different < 2 or gaps:
                continue
            in_other_units = c.is_number and not named.isdisjoint(c.words)  # raw, adjusted
            says = c not in self.identifiers and any(_implied(c, x) for x in without)
            if in_other_units or says or _is_sum(c, without):
                continue
            repeats = 2 * different <= c.counts.total() and different <= _MOST_LEVELS * 10
            if c.is_category and different <= FEW and c not in self.places:
                fixed[name] = c
            elif repeats and (c.is_category or c.kind == "periods" or c in self.identifiers):
                groups[f"(1 | {name})"] = c
            elif c.cycle:
                first, last = c.cycle
                bounds = f"lower_bound={first - 0.5:g}, upper_bound={last + 0.5:g}"
                curves[f"cc({name}, df=4, {bounds})"] = c
            elif not any(c.is_in_order_of(x) for x in curves.values()):  # depth beside age
                varies = c.is_measure or c.kind == "numbers" or different < self.num_rows
                if c.kind == "dates" or (c.is_number and c not in self.identifiers and varies):
                    curves[f"s({name})" if different > FEW else name] = c
        groups = _distinct(groups)
        apart = _independent({**fixed, **curves}, [*without, *groups.values()]) | groups.keys()
        terms = {t: c for t, c in {**fixed, **groups, **curves}.items() if t in apart}
        early = {t for t, c in terms.items() if c.is_treatment or c is self.people}
        ordered = sorted(terms, key=lambda t: 0 if t in early else 1 + (terms[t] is not self.time))
        complete: Any = True
        used = list[str]()  # that together leave most rows complete, and outcomes labels
        outcomes = [c for c in without if len(c.counts) <= MOST_OUTCOMES]
        for term in ordered:
            left = complete & (terms[term].codes >= 0)
            labels = (np.count_nonzero(np.bincount(1 + c.codes[left])[1:]) for c in outcomes)
            kept = all(2 * n > len(c.counts) for n, c in zip(labels, outcomes, strict=True))
            if kept and left.sum() >= (1 - _MOST_LOST) * self.num_rows:
                complete, used = left, [*used, term]
        shown = sorted(used[:MOST_TERMS], key=[*terms].index)
        return {t: terms[t] for t in [*shown, *used[MOST_TERMS:]][:most]}

    def _scores(self, outcome: ColumnGuess) -> tuple[ColumnGuess, ...]:
        """Two columns of numbers whose larger one says the outcome: goals of home and away."""
        numbers = [c for c in self.columns if c.kind == "whole numbers" and c is not outcome]
        can_say = outcome.is_category and len(outcome.counts) <= 3  # less, equal or more
        for pair in combinations(numbers[: 2 * MOST_TERMS], 2) if can_say else ():
            larger = np.sign(pair[0].numbers - pair[1].numbers)
            says = ColumnGuess("", "numbers", [None if x != x else x for x in larger.tolist()])
            if len(says.counts) >= len(outcome.counts) and outcome.follows_from(says):
                return pair
        return ()

    # ------------------------------------------------------------------- jobs

    def _fit(
        self, family: str, options: list[Option], used: Columns = (), formula: str = ""
    ) -> str:
        """The command that fits; rows with a gap in a column of options or used are left out."""
        named = [x for _, values in options for x in values if isinstance(x, ColumnGuess)]
        gaps = [("--drop-incomplete", ())] if any(c.missing for c in [*named, *used]) else []
        names = (f"run-{family}{f'-{i}' if i > 1 else ''}" for i in count(1))
        out = next(n for n in names if n not in self.folders and not Path(n).exists())
        self.folders.add(out)
        words = [family, "fit", self.path, *filter(None, [formula])]
        return command_of(words, [*options, *self.reading, *gaps, ("--out", [out])])

    def _topics(self) -> Guess | None:
        texts = [c for c in self.columns if c.kind == "texts"]
        if not texts:
            return None
        longest = max(texts, key=lambda c: sum(map(len, map(str, c.counts))))
        why = f"Find the topics of the texts in {longest.quoted}"
        what, terms = options_of(column=longest.name), self._terms(longest, most=MOST_TERMS)
        return self._of_topics(why, what, longest.counts.total(), terms)

    def _of_topics(
        self, why: str, what: list[Option], documents: int, terms: dict[str, ColumnGuess]
    ) -> Guess:
        """The command that fits topics, and a second one where columns may act on them."""
        what += options_of(topics=min(50, max(5, round(math.sqrt(documents) / 2))))
        commands = [self._fit("topics", what)]
        if terms:
            weight = self.count if self.count and self.count.is_survey_weight else None
            what += options_of(prevalence=f"~ {' + '.join(terms)}", weight=weight)
            commands.append(self._fit("topics", what, [*terms.values()]))
            why += "; the second command estimates how they depend on other columns"
        return Guess("Topics", f"{why}.", commands)

    def _words(self) -> Guess | None:
        """Rows that are words of documents, each with its count or a row for each time it occurs.

        Names such as term or document must say so, too: names of people by year look alike.
        """
        words = [c for c in self.columns if c.kind in ("labels", "names, all different")]
        blanks = {c: sum(" " in str(x).strip() for x in c.counts) for c in words}
        words = [c for c in words if max(_WORDS, 10 * blanks[c]) <= len(c.counts)]
        whole = [c for c in self.columns if c.kind == "whole numbers" and not c.missing]
        whole = sorted((c for c in whole if min(c.counts) > 0), key=lambda c: c is not self.count)
        for word in sorted(words, key=lambda c: not c.is_called("term")):
            documents = [
                c for c in self.every_column
                if c not in (word, self.count) and c.kind not in ("numbers", "nothing")
                and self.num_rows >= _WORDS_EACH * len(c.counts) > _WORDS_EACH
                and (c.is_called("document") or (word.is_called("term") and c is not self.time))
            ]  # fmt: skip
            follow = {c: sum(x.follows_from(c) for x in documents) for c in documents}
            documents.sort(key=lambda c: (not c.is_called("document"), -follow[c], -len(c.counts)))
            for document in documents:
                counts = [c for c in whole if c not in (word, document, self.time)]
                repeat = self._different(document, word) < 0.95 * self.num_rows
                if word.is_called("term") if repeat else counts:
                    return self._of_words(word, document, None if repeat else counts[0])
        return None

    def _columns_of_words(self) -> Guess | None:
        """Rows that are documents, with a column of counts for each word.

        More columns of counts than a regression takes, or fewer beside a column of documents. The
        answers of a questionnaire have the same maximum in all columns.
        """
        words = max(_neighbours(self.every_column, _may_be_words), key=len, default=[])
        names = [c for c in self.every_column if len(c.counts) == self.num_rows and c not in words]
        names = [c for c in names if c.kind in ("names, all different", "whole numbers")]
        documents = [c for c in names if c.is_called("document") and c.words != {"id"}]
        most = {max(c.counts) for c in words}
        fewest = _BATTERY if documents else MOST_OUTCOMES
        asked = not documents and any(c.is_outcome == 2 for c in self.columns if c not in words)
        marks = sum(max(c.counts) <= 1 for c in words)  # a few of them, in a table of words
        everywhere = sum(min(c.counts) > 0 for c in words)
        mixed = 4 * min(marks, everywhere) > len(words)  # rows of patients, say
        if len(words) <= fewest or len(most) <= 2 or _are_numbered(words) or asked or mixed:
            return None
        what = options_of(wide=_range_of(words), names=[c.name for c in [*documents, *names][:1]])
        terms = self._terms(*words)
        terms = {t: c for t, c in terms.items() if c not in names and not c.missing}
        why = f"Find the topics of the {self.num_rows:,} rows, which have a column for each of"
        why += f" {len(words)} words, from {words[0].quoted} to {words[-1].quoted}"
        return self._of_topics(why, what, self.num_rows, dict([*terms.items()][:MOST_TERMS]))

    def _of_words(
        self, word: ColumnGuess, document: ColumnGuess, counts: ColumnGuess | None
    ) -> Guess:
        number = len(document.counts)
        terms = self._terms(word, *([counts] if counts else []))
        terms = {t: c for t, c in terms.items() if c is not document and "|" not in t}
        terms = {t: c for t, c in terms.items() if not c.missing and c.follows_from(document)}
        terms = dict([*terms.items()][: max(1, min(MOST_TERMS, number // 10))])
        why = f"Find the topics of the {number:,} documents in {document.quoted}; each"
        why += f" row is a word, {word.quoted}"
        what = options_of(names=document.name, column=word.name, count=counts and counts.name)
        return self._of_topics(why, what, number, terms)

    def without_outcome(self) -> str:
        """What a table without an outcome would need."""
        others = [c for c in self.columns if not c.is_time and c not in self.identifiers]
        numbers = [c for c in others if c.is_number]
        events = [c for c in numbers if c.kind == "whole numbers" and min(c.counts) == 0]
        said = "No column looks like an outcome of categories or counts."
        if events:
            which = f"{'one of ' * (len(events) > 1)}{listed(events, 2)}"
            said += f" If {which} counts events, write that column on the left of a formula, with"
            said += " --family negative_binomial."
        if numbers:
            said += f" To model {listed(numbers, 2)}, make them labels first: low, medium, high."
        if self.categories:
            said += f" To model {listed(self.categories, 2)}, write the column on the left of a"
            said += " formula: pgmult regression fit FILE 'COLUMN ~ ...' --out run."
        return said

    def lacking(self) -> list[str]:
        """Sentences on columns that a job needs and that are not there."""
        prints, sentences = "and pgmult FILE prints the command.", list[str]()
        if self.count is None:
            if shares := self._shares():
                add = "add a column n, the number of observations of each row"
                sentences.append(f"{listed(shares)} are shares of a whole: {add}, {prints}")
            if self.shared is not None:
                share, category = (listed([c]) for c in self.shared)
                add = "add a column of counts, the share times the size of the sample"
                sentences.append(f"{share} are shares of {category}: {add}, {prints}")
        if letters := [c for c in self.every_column if _are_letters(c)]:
            said = f"{letters[0].quoted} holds sequences of letters: write each to a FASTA file"
            sentences.append(f"{said}, after a line of > and its name, for pgmult sequences fit.")
        if self.turned:
            said = f"Rows look like categories, and {listed(self.turned)} like samples"
            sentences.append(f"{said}: exchange rows and columns, {prints}")
        whole = [c for c in self.columns if c.kind == "whole numbers"]
        units = ("year", "month", "day", "hour", "minute")
        parts = [next((c for c in whole if unit in c.words), None) for unit in units]
        if None not in parts[:3] and not any(c.is_dates for c in self.columns):
            said = f"{listed([c for c in parts if c is not None], len(parts))} are one time in"
            join = "join them, as in 1999-12-31 or 1999-12-31T18:00"
            sentences.append(f"{said} several columns: {join}, {prints}")
        if self._rows_of_a_choice and not self._choice():
            said = f"Rows that follow each other have one 1 in {listed(self._rows_of_a_choice)}"
            sentences.append(f"{said}, as alternatives do: number choices in a column, {prints}")
        return sentences

    def _sequences(self) -> Guess | None:
        time, group = self.time, None
        parts: tuple[ColumnGuess, ...] = ()  # columns that together name a sequence
        others = {*self.places, *self.counted, *(c for c in self.columns if c.is_called("person"))}
        symbols = [c for c in self.columns if (c.is_category or c.is_code) and c not in others]
        symbols = [c for c in symbols if len(c.counts) <= _MOST_SYMBOLS]
        if time is None or time.kind == "numbers" or self.count is not None or not symbols:
            return None
        if time.counts.total() < _FEWEST_STEPS:
            return None
        beside = len(time.counts) < 0.95 * time.counts.total()
        if beside or (time.is_dates and not _is_regular(time)):  # several sequences
            parts = self._groups_of_steps(time, self._likeliest(symbols))
            if not parts:
                return None
            if len(parts) > 1 and len(parts[1].counts) > len(time.counts):  # hours of days
                time, parts = parts[1], (parts[0], time)
            group = _joined(parts)
            symbols = [c for c in symbols if c not in parts and not c.follows_from(group)]
            if not (symbols and (beside or group.is_called("person") or group.is_in_blocks)):
                return None
        symbol = self._likeliest(symbols)
        columns = [symbol, *parts, time]
        options = options_of(symbol=symbol)
        options += [("--sequence", [c]) for c in parts]
        of_each = f" of each {group.quoted}" if group else ""
        labels = f"one of {len(symbol.counts)} labels of {symbol.quoted}"
        if group is not None and _are_events(time, group):
            why = f"Each row{of_each} is an event, {labels}: predict the next, in the rows' order."
        elif (every := _step(time, group)) is not None:
            why = f"Each {time.quoted}{of_each} has {labels}: predict the next and missing ones."
            options += options_of(time=time, every=every)
        else:
            return None
        commands = [self._fit("sequences", options + options_of(model="auto"), columns)]
        inputs = {
            name: c for name, c in self._numbers(*columns, *self._scores(symbol)).items()
            if group is None or len({*group.codes[c.codes >= 0]} - {-1}) == len(group.counts)
        }  # fmt: skip
        inputs = dict([*inputs.items()][:FEW])
        if inputs:
            terms = [*inputs, *(f"(1 | {c.term})" for c in parts[:1])]
            options += options_of(model="hmm", states="2,3,4", inputs=f"~ {' + '.join(terms)}")
        elif group is not None and (inputs := self._few_labels(*columns)):
            options += options_of(model="markov", inputs=f"~ {' + '.join(inputs)}")
        if inputs:
            commands.append(self._fit("sequences", options, [*columns, *inputs.values()]))
            why = f"{why[:-1]}; the second command says how changes depend on other columns."
        return Guess("Sequences", why, commands)

    def _spells(self) -> Guess | None:
        """Rows with the first and the last time of a state."""
        whose = [c for c in self.every_column if c in self.identifiers or c.is_called("person")]
        states = [c for c in self.categories if c not in whose or c.is_outcome == 2]
        states = [c for c in states if len(c.counts) <= min(_MOST_SYMBOLS, self.num_rows // 2)]
        steps = [c for c in self.columns if c.is_dates or c.kind == "whole numbers"]
        named = ([c for c in steps if c.is_called(role)] for role in ("begin", "end"))
        for begin, end in product(*named):
            if begin.kind != end.kind or not states or not _is_at_most(begin, end):
                continue
            for group in (*whose, None):
                varies = [c for c in states if group is None or not c.follows_from(group)]
                if group not in (begin, end) and varies and _follow_each_other(begin, end, group):
                    return self._of_spells(self._likeliest(varies), group, begin, end)
        return None

    def _of_spells(
        self, symbol: ColumnGuess, group: ColumnGuess | None, begin: ColumnGuess, end: ColumnGuess
    ) -> Guess:
        options = options_of(
            symbol=symbol, sequence=group, begin=begin, end=end,
            every=_step_of_spells(begin, end), model="markov",
        )  # fmt: skip
        of_each = f" of each {group.quoted}" if group else ""
        why = f"Each row is a spell{of_each} in a state, {symbol.quoted}, from {begin.quoted} to"
        why += f" {end.quoted}: estimate how long states last, and which state follows."
        return Guess("Sequences", why, [self._fit("sequences", options)])

    def _careers(self) -> Guess | None:
        """Rows that are sequences, with a column of labels for each time."""
        runs: list[list[ColumnGuess]] = [[]]
        for c in self.every_column:
            if not _is_state(c):
                runs.append([])
            elif runs[-1] and _follows(runs[-1][-1], c) and _share(runs[-1], c):
                runs[-1].append(c)
            else:
                runs.append([c])
        longest = max((run for run in runs if not run or _are_steps(run)), key=len, default=[])
        if len(longest) < _ITEMS or len({x for c in longest for x in c.counts}) > _MOST_SYMBOLS:
            return None
        most = 2 * len(longest) >= len(self.columns) and longest[0].kind == "labels"
        if not most and any(c.is_outcome == 2 and c not in longest for c in self.columns):
            return None
        rows = zip(*(c.cells for c in longest), strict=True)
        there = ([x for x in row if x is not None] for row in rows)
        repeats = any(a == b for row in there for a, b in pairwise(row))
        names = [c for c in self.every_column if len(c.counts) == self.num_rows]
        whose = [c for c in names if c.is_called("person", "name") or c.name.lower()[:2] == "id"]
        options = options_of(wide=_range_of(longest), sequence=whose[:1])
        why = f"Each row is a sequence of states, from {longest[0].quoted} to {longest[-1].quoted}:"
        why += f" estimate{' how long states last, and' if repeats else ''} which state follows."
        model = options_of(model="markov")
        commands = [self._fit("sequences", options + model)]
        if terms := self._few_labels(*longest):
            options += options_of(inputs=f"~ {' + '.join(terms)}")
            commands.append(self._fit("sequences", options + model))
            why = f"{why[:-1]}; the second command compares people by the other columns."
        return Guess("Sequences", why, commands)

    def _few_labels(self, *without: ColumnGuess) -> dict[str, ColumnGuess]:
        """Columns of few labels in all rows, treatments first, as a formula names them."""
        labels = [c for c in self.columns if (c.is_category or c.is_yes_or_no) and not c.missing]
        labels = [c for c in labels if len(c.counts) <= FEW and c not in without]
        chosen: dict[str, ColumnGuess] = {}
        for c in sorted(labels, key=lambda c: not c.is_treatment)[:FEW]:
            if not any(c.follows_from(x) or x.follows_from(c) for x in chosen.values()):
                chosen[c.term] = c
        return chosen

    def _likeliest(self, candidates: Columns) -> ColumnGuess:
        """The column that is most probably what is observed."""
        return max(candidates, key=self._score)

    def _groups_of_steps(self, time: ColumnGuess, symbol: ColumnGuess) -> tuple[ColumnGuess, ...]:
        """The column whose labels have about one row at each time, or people and another column."""
        candidates = [c for c in self.columns if c.counts.total() >= 3 * len(c.counts)]
        candidates = [c for c in candidates if c not in (time, symbol)]
        whole = [c for c in candidates if c.kind == "whole numbers" and c.is_in_blocks]
        groups = {c for c in candidates if c.kind == "labels"} | {*whole} | self.identifiers
        single = [c for c in candidates if c in groups]
        people = [c for c in candidates if c.is_called("person") and c.is_in_blocks]
        times = [c for c in candidates if c.is_time]
        for columns in (*((c,) for c in single), *product(people, times)):
            steps = self._different(*columns, time)
            if steps >= 0.95 * self.num_rows and steps == self._different(*columns, time, symbol):
                return columns
        return ()

    def _fields(self) -> Guess | None:
        where = [c for c in (self.time, *self.places[:1]) if c is not None]
        where += [] if self.places else self.coordinates
        if not any(len(c.counts) > FEW for c in where):
            return None
        over = " and ".join(shortened(c.name) for c in where)
        options = options_of(inputs=where, places="us-states" if self.places else None)
        count = self.count
        if count is not None and (self._shares() or count.kind != "whole numbers"):
            return None  # the count is that of a sample, or a weight
        if len(self.counted) > 2:
            options += options_of(wide=self.counted)
            why = f"Estimate shares of {len(self.counted)} columns of counts over {over}."
            return Guess("Fields", why, [self._fit("fields", options)])
        others = [c for c in self.categories if c not in where and c is not self.people]
        if count is None:  # labels that are all as frequent name the rows
            others = [c for c in others if len(set(c.counts.values())) > 1]
            others = [c for c in others if not self._is_of_a_group(c)]
            if self.num_rows < 4 * self._different(*where):
                return None  # about one label at each place and time
        if not others:
            return None
        category = self._likeliest(others)
        options += options_of(category=category, count=count)
        options += [("--max-categories", [10])] if len(category.counts) > 20 else []
        labels = f"{len(category.counts):,} labels of {category.quoted}"
        why = f"Estimate shares of {labels} over {over}."
        left = [c for c in others if c is not category and c.is_called("trait")]
        if count is not None and left and not self.places:
            why += f" Rows of all {listed(left)} are added up. If these are places, name the column"
            why += " in --inputs, and a table of their coordinates in --places."
        return Guess("Fields", why, [self._fit("fields", options)])

    def _coordinates(self) -> list[ColumnGuess]:
        numbers = {c.name.lower(): c for c in self.columns if c.is_number}
        pairs = [*product(("latitude", "lat"), ("longitude", "lon", "long", "lng"))]
        pairs += [("easting", "northing")] + ([("x", "y")] if self.count is not None else [])
        return next(([numbers[n] for n in pair] for pair in pairs if {*pair} <= {*numbers}), [])

    def _choice(self) -> Guess | None:
        """Rows of alternatives, of which one was taken in each occasion; or columns of them."""
        people = [c for c in self.columns if c.is_called("person") or c in self.identifiers]
        people.sort(key=lambda c: not c.is_called("person"))
        names = [c for c in self.columns if c.is_called("alternative") and not c.missing]
        two = [c for c in self.columns if len(c.counts) == 2 and not c.missing]
        two = [c for c in two if not (c.is_called("case") or self._is_of_a_time(c))]  # matched
        two = [c for c in two if not any(c.follows_from(x) for x in names if x is not c)]
        two.sort(key=lambda c: not c.is_called("taken"))
        truths = [(c, truth_of(exact_array([*c.counts]))) for c in two]
        taken = [(c, truth[c.codes].tolist()) for c, truth in truths if truth is not None]
        numbers = {sum(one) for _, one in taken}
        pairs = ((c, who) for who, c in product(people, self.columns) if c is not who)
        for where in chain(product(self.columns), pairs):  # an occasion, perhaps of someone
            different = [len(c.counts) for c in where]
            least, most = max(different), math.prod(different)
            if where[0].missing or not any(least <= number <= most for number in numbers):
                continue
            of_row = list(zip(*(c.cells for c in where), strict=True))
            sizes = Counter(of_row)
            if len(sizes) < _FEWEST_OCCASIONS or min(sizes.values()) == 1:
                continue
            for column, one in taken:
                if sum(one) == len(sizes) == len(set(compress(of_row, one))):
                    return self._of_occasions(column, one, where, of_row)
        return self._of_wide()

    @cached_property
    def _rows_of_a_choice(self) -> list[ColumnGuess]:
        """Columns with one 1 in each few rows, as where nothing but their order makes a choice."""
        taken = []
        for c in self.columns:
            ones = c.counts[1] if c.is_yes_or_no and not c.missing else 0
            few = ones >= 2 * _FEWEST_OCCASIONS and self.num_rows <= MOST_OUTCOMES * ones
            if few and self.num_rows % ones == 0:
                each = c.numbers.reshape(ones, -1).sum(axis=1)
                is_case = c.is_called("case") or self._is_of_a_time(c)
                taken += [c] if (each == 1).all() and not is_case else []
        return taken

    def _of_occasions(
        self, taken: ColumnGuess, is_taken: list[bool], where: Columns, of_row: list[Any]
    ) -> Guess | None:
        occasion, number = where[0], self._different(*where)
        people = [c for c in self.columns if c.is_called("person") and 2 * len(c.counts) <= number]
        people = [*where[1:]] or [c for c in people if self._different(c, occasion) == number]
        names = [
            c for c in self.columns
            if c is not taken and len(c.counts) <= MOST_OUTCOMES
            and self._different(c, *where) == self.num_rows
            and (c.is_called("alternative")  # or every occasion has all labels
                 or (c.is_category and len(c.counts) * number == self.num_rows))
        ]  # fmt: skip
        names.sort(key=lambda c: not c.is_called("alternative"))
        available = [c for c in self.columns if c.is_called("available") and c.is_yes_or_no]
        available = [c for c in available if 0 not in compress(c.cells, is_taken)]
        attributes = self._of_alternatives(where, (taken, *people, *names, *available))
        coded = [n for n in attributes if n.startswith("C(")]
        name = names[0] if names else None
        none = _none_of_these(name, attributes.values()) if name else None
        if name and none is not None:  # columns that mark it are its constant
            attributes = {n: c for n, c in attributes.items() if not _marks(c, name, none)}
        of_rows = {n: c for n, c in attributes.items() if self._different(c, *where) > number}
        of_choosers = [n for n in attributes if n not in of_rows] if name else []
        if not (of_rows or of_choosers):
            return None
        numbers = {n: c for n, c in of_rows.items() if c.is_number}
        fixed = name is None or any(_is_fixed_by(c, name, of_row) for c in numbers.values())
        labels = name.counts if name else ()
        several = [len(c.counts) for n, c in of_rows.items() if c.is_category or n in coded]
        tastes = len(of_rows) + sum(several) - 2 * len(several)
        whose, same, differ = _tastes(number, people if of_rows else [], tastes, len(labels))
        named = name.term if name and differ and not fixed else ""
        formula = _of_choice(taken.term, [*of_rows], whose, of_choosers, labels, named, not fixed)
        why = f"One row of each {occasion.quoted} is chosen: estimate what makes one likely.{same}"
        if coded:
            why += f" {' and '.join(coded)} reads numbers as labels: drop C() if they are amounts."
        options = options_of(
            occasion=[*(people[:1] if same else []), occasion], alternative=name,
            available=available[:1], price=price_among(numbers), none=none,
        )  # fmt: skip
        used = [taken, *people[:1], *(attributes[n] for n in of_choosers)]
        used += of_rows.values() if none is None else []
        return Guess("Choice", why, [self._fit("choice", options, used, formula)])

    def _of_alternatives(
        self, where: Columns, without: tuple[ColumnGuess, ...]
    ) -> dict[str, ColumnGuess]:
        """Numbers and labels that a formula of choices may have; codes of labels are ``C(code)``.

        A column that numbers the alternatives of every occasion is none.
        """
        number, attributes = self._different(*where), dict[str, ColumnGuess]()
        for c in self.columns:
            different, alike = len(c.counts), self._different(c, *where)
            labels = c.is_category and alike > number and different <= MOST_OUTCOMES
            if c in (*where, *without) or different < 2 or not (c.is_number or labels):
                continue
            codes = c.is_number and set(c.counts) == set(range(1, different + 1))
            if not (codes and alike == self.num_rows == different * number):
                codes = codes and 3 <= different <= _MOST_CODES and alike > number
                attributes[f"C({c.term})" if codes else c.term] = c
        return dict(islice(attributes.items(), MOST_TERMS))

    def _of_wide(self) -> Guess | None:
        """A row an occasion, with columns such as price_bus and price_car, and which was taken."""
        for taken in (c for c in self.columns if c.is_category or c.is_code):
            wide = self._wide_columns(taken) if len(taken.counts) <= MOST_OUTCOMES else {}
            of_alternatives = [c for _, of in wide.values() for c in of.values()]
            if not wide or taken in of_alternatives:
                continue
            people = [c for c in self.columns if c.is_called("person") and c is not taken]
            people = [c for c in people if 2 * len(c.counts) <= self.num_rows]
            people.sort(key=lambda c: not c.is_in_blocks)
            copies = {
                name: [of[x].cells[i] if x in of else None for i, x in enumerate(taken.cells)]
                for name, (_, of) in wide.items()
            }
            numbers = self._numbers(taken, *people, *of_alternatives)
            numbers = {n: c for n, c in numbers.items() if c.cells not in copies.values()}
            names = (n for n, c in numbers.items() if not c.name.lower().endswith("id"))
            choosers = {n: numbers[n] for n in names if n not in wide}
            wide = {self._name_of(copies[name], name): of for name, of in wide.items()}
            every = ([c.counts for c in of.values() if c.is_category] for _, of in wide.values())
            tastes = sum(max(1, len(set().union(*labels)) - 1) for labels in every)
            whose, same, differ = _tastes(self.num_rows, people, tastes, len(taken.counts))
            named, of_people = "alternative" if differ else "", [*choosers][:FEW]
            formula = _of_choice(taken.term, [*wide], whose, of_people, taken.counts, named)
            numeric = [n for n, (_, of) in wide.items() if all(c.is_number for c in of.values())]
            patterns = [f"{name}={pattern}" for name, (pattern, _) in wide.items()]
            options = options_of(wide=patterns, price=price_among(numeric))
            why = "Each row is a choice, and has columns for each alternative: estimate what makes"
            why += f" an alternative likely to be chosen.{same}"
            used = [taken, *people[:1], *of_alternatives, *choosers.values()]
            return Guess("Choice", why, [self._fit("choice", options, used, formula)])
        return None

    def _name_of(self, cells: list[object], name: str) -> str:
        """The name of the column that holds these cells if `name` is short for it; else `name`."""
        names = [c.name for c in self.columns if c.cells == cells and c.name.startswith(name)]
        return names[0] if names and in_formula(names[0]) == names[0] else name

    def _wide_columns(self, taken: ColumnGuess) -> dict[str, tuple[str, dict[Any, ColumnGuess]]]:
        """Attributes with a column of numbers for each label: the pattern, and the columns."""
        labels = {label_of(label): label for label in taken.counts}
        complete: dict[str, dict[Any, ColumnGuess]] = {}
        between = r"[\W_]*" if taken.is_called("choice") else r"[\W_]"
        for cut in dict.fromkeys(("", begin_alike([*labels]))):
            ends: dict[str, dict[Any, ColumnGuess]] = {}
            for label, c in product(labels, self.columns):
                word = re.escape(label.removeprefix(cut))
                match = re.fullmatch(rf"(.*?[^\W_].*?{between}){word}|{word}({between}.+)", c.name)
                if word and match and (c.is_number or c.is_category):
                    pattern = f"{match[1]}{{}}" if match[1] else f"{{}}{match[2]}"
                    ends.setdefault(pattern, {})[labels[label]] = c
            of_one_kind = {p: of for p, of in ends.items() if len(of) == len(labels)}
            kinds = {p: {c.is_number for c in of.values()} for p, of in of_one_kind.items()}
            complete = complete or {p: of for p, of in of_one_kind.items() if len(kinds[p]) == 1}
        named = {re.sub(r"^[\W_]+|[\W_]+$", "", p.replace("{}", "")): p for p in complete}
        fitting = [name for name in named if in_formula(name) == name][: 2 * MOST_TERMS]
        return {name: (named[name], complete[named[name]]) for name in fitting}


def _joined(columns: Columns) -> ColumnGuess:
    """One column of the combinations of the labels of several."""
    if len(columns) == 1:
        return columns[0]
    rows = zip(*(c.cells for c in columns), strict=True)
    cells = [None if None in row else ":".join(map(str, row)) for row in rows]
    return ColumnGuess(" and ".join(c.name for c in columns), "labels", cells)


def in_order(column: ColumnGuess) -> list[Any]:
    """Labels of a column from the lowest to the highest, if they have a known order.

    >>> in_order(ColumnGuess("trust", "labels", ["high", "low", "medium", "low"]))
    ['low', 'medium', 'high']
    """
    if len(column.counts) < 3 or column.is_called("unordered"):
        return []
    if column.is_scale:
        return sorted(int(value) for value in column.counts)
    labels = {str(label).strip().lower(): label for label in column.counts}
    for grades in rules().scales:
        places = {grade: i for i, grade in enumerate(grades)}
        if labels.keys() <= places.keys():
            return [labels[one] for one in sorted(labels, key=places.__getitem__)]
    return []


def _is_regular(time: ColumnGuess) -> bool:
    """Whether half of successive dates are equally far apart, as steps of a series are."""
    apart = np.diff(np.sort(np.array([x for x in time.cells if x], dtype="datetime64[s]")))
    _, often = np.unique(apart.astype(np.int64), return_counts=True)
    return bool(2 * often.max(initial=0) >= len(apart))


def _step_of_spells(begin: ColumnGuess, end: ColumnGuess) -> str:
    """The step in which spells are read, as ``--every`` has it; empty for a number."""
    if not begin.is_dates:
        common = math.gcd(*(int(x) for c in (begin, end) for x in c.counts))
        return str(common) if common > 1 else ""
    days = {str(date)[5:10] for date in begin.counts}
    if days <= {"01-01", ""}:
        return "year"
    first, last = (np.array([x or "NaT" for x in c.cells], "datetime64[s]") for c in (begin, end))
    length = float(np.nanmedian((last - first) / np.timedelta64(1, "D")))
    if {day[3:] for day in days} <= {"01", ""} or length > 90:
        return "month"
    return "week" if length > 21 else "day" if length >= 1 else "hour"


def _is_at_most(one: ColumnGuess, other: ColumnGuess) -> bool:
    """Whether no cell is above that of another column."""
    pairs = [p for p in zip(one.cells, other.cells, strict=True) if None not in p]
    return 2 * len(pairs) > len(one.cells) and all(a <= b for a, b in pairs)


def _is_sum(column: ColumnGuess, others: Columns) -> bool:
    """Whether a column has the sum of others, but in 1 of 20 rows."""
    if len(others) < 2 or not all(c.is_number for c in (column, *others)):
        return False
    apart = column.numbers - sum(c.numbers for c in others)
    complete = apart[apart == apart]
    return bool(len(complete) > FEW and 20 * (complete == 0).sum() >= 19 * len(complete))


def _are_of_one_kind(one: ColumnGuess, other: ColumnGuess) -> bool:
    """Whether two columns are answers to items of one battery: the same labels, names alike."""
    alike = one.name[:_ALIKE] == other.name[:_ALIKE] or not one.words.isdisjoint(other.words)
    return alike and one.counts.keys() == other.counts.keys()


def _are_the_same_things(one: ColumnGuess, other: ColumnGuess) -> bool:
    """Whether two columns hold the same many labels, as those of two players do."""
    many = one is not other and len(one.counts) > _MOST_CODES and not one.is_graded
    return many and one.counts.keys() == other.counts.keys()


def _follow_each_other(begin: ColumnGuess, end: ColumnGuess, group: ColumnGuess | None) -> bool:
    """Whether no spell of a sequence begins before the one before it ends."""
    whose = group.codes.tolist() if group else [0] * len(begin.cells)
    rows = zip(whose, begin.cells, end.cells, strict=True)
    spells = sorted(row for row in rows if None not in row and row[0] >= 0)
    apart = all(a[0] != b[0] or a[2] <= b[1] for a, b in pairwise(spells))
    return apart and len(spells) > len({who for who, _, _ in spells})


def _range_of(columns: Columns) -> str:
    """Columns side by side, as ``--wide`` takes them."""
    first, last = columns[0].name, columns[-1].name
    return ",".join(c.name for c in columns) if ":" in first + last else f"{first}:{last}"


def _may_be_words(c: ColumnGuess) -> bool:
    """Whether it may count how often a word stands in each document."""
    if c.kind != "whole numbers" or c.missing or c.is_row_number or min(c.counts) < 0:
        return False
    rare = 2 * c.counts[0] > len(c.cells)  # whatever it is called
    named = c.is_identifier or c.is_called("measure", "trials")
    return rare or not (named or min(c.counts) >= 1500)


def _neighbours(
    columns: Iterable[ColumnGuess], fits: Callable[[ColumnGuess], object]
) -> list[list[ColumnGuess]]:
    """Runs of columns side by side that fit."""
    return [[*run] for fit, run in groupby(columns, lambda c: bool(fits(c))) if fit]


def _are_letters(c: ColumnGuess) -> bool:
    """Whether cells are long words of few letters, as sequences of bases are."""
    words = [*map(str, c.counts)] if c.kind == "names, all different" else [""]
    long = min(map(len, words)) >= 3 * _MOST_LETTERS
    return long and len({*"".join(words)}) <= _MOST_LETTERS


def _are_numbered(columns: Columns) -> bool:
    """Whether names of columns differ in a number alone: Sample_1, Sample_2, ..."""
    stems = {re.sub(r"\d+", "", c.name) for c in columns}
    return len(columns) > _BATTERY and len(stems) == 1


def _is_state(c: ColumnGuess) -> bool:
    """Whether it holds labels, or a few whole numbers from 0 or 1 on, and nothing else."""
    if c.kind == "whole numbers":
        return min(c.counts) >= 0 and bool(max(c.counts) <= 2 * _MOST_CODES)
    return c.kind == "labels" and len(c.counts) <= _MOST_SYMBOLS


def _follows(one: ColumnGuess, after: ColumnGuess) -> bool:
    """Whether two names are those of a step and of the next: V1 and V2, Dec.93 and Jan.94."""
    first, second = (_STEP.fullmatch(c.name.lower()) for c in (one, after))
    if not (first and second):
        return False
    months = _MONTHS.split()
    if first[1][:3] in months and second[1][:3] in months:
        return months.index(second[1][:3]) == (months.index(first[1][:3]) + 1) % 12
    return first.group(1, 3) == second.group(1, 3) and int(first[2]) < int(second[2])


def _are_steps(columns: Columns) -> bool:
    """Whether columns whose names are numbered are times, and no answers to several questions.

    A name says so, or the labels: without a known order, and the same in all columns, which say no
    more than their number, or of which neighbours agree more often than others.
    """
    first = _STEP.fullmatch(columns[0].name.lower())
    word, number = (first[1], int(first[2])) if first else ("", 0)
    is_named = not word or word[:3] in _MONTHS.split() or rules().names["period"].fullmatch(word)
    if is_named or 1500 <= number <= 2200:
        return True
    labels = {*map(frozenset, (c.counts for c in columns))}
    alike = frozenset.union(*labels) in labels and len(max(labels, key=len)) > 2
    graded = any(c.kind != "labels" or c.is_graded for c in columns)
    if not alike or graded or columns[0].is_called("item") or len(columns) <= _ITEMS:
        return False
    if len(labels) == 1 and columns[0].is_called("numbered"):
        return True
    half = len(columns) // 2
    near, far = (
        sum(a == b for c, x in zip(columns, columns[apart:], strict=False)
            for a, b in zip(c.cells, x.cells, strict=True)) / (len(columns) - apart)
        for apart in (1, half)
    )  # fmt: skip
    return bool(near > far + 0.05 * len(columns[0].cells))


def _share(columns: Columns, other: ColumnGuess) -> bool:
    """Whether a column has labels of those before it, and few others."""
    labels = {x for c in columns for x in c.counts}
    common = len(labels) < 2 or 2 * len(labels & other.counts.keys()) >= len(other.counts)
    return columns[0].kind == other.kind and common


def _are_shares(columns: Columns, least: float) -> bool:
    """Whether rows add up to most of 1, or of 100, and never to more."""
    sums = np.sum([c.numbers for c in columns], axis=0)
    sums = np.sort(sums[sums == sums])
    if len(sums) <= FEW:
        return False
    most, middle = sums[[-1, len(sums) // 2]]
    whole = 1.0 if most <= _ROUNDED else 100.0
    return bool(most <= _ROUNDED * whole and middle >= least * whole)


def _implied(column: ColumnGuess, outcome: ColumnGuess) -> bool:
    """Whether a column says the outcome in other words: as its cause or its class it would be 1."""
    labels = len(outcome.counts)
    if column.is_number and len(column.counts) > FEW:
        ranges = column.ranges_by(outcome) if labels <= MOST_OUTCOMES else []
        return len(ranges) > 1 and all(one[1] < other[0] for one, other in pairwise(ranges))
    if labels < 2 or 3 * len(column.counts) > column.counts.total():  # trials, always as many
        return False
    if (column.is_called("rank") and outcome.is_called("rank")) or outcome.follows_from(column):
        return True
    often = 3 * labels <= outcome.counts.total()  # counts that hardly repeat name rows
    return often and labels <= MOST_OUTCOMES and column.follows_from(outcome)


def _distinct(groups: dict[str, ColumnGuess]) -> dict[str, ColumnGuess]:
    """Groups none of which says what one before it says, coarser labels of the same among them."""
    distinct: dict[str, ColumnGuess] = {}
    for term, c in groups.items():
        others = distinct.values()
        if not any(x.follows_from(c) or (c.is_category and c.follows_from(x)) for x in others):
            distinct[term] = c
    return distinct


def _independent(terms: dict[str, ColumnGuess], others: Iterable[ColumnGuess]) -> set[str]:
    """Terms none of which is a linear combination of those before it, in rows without gaps."""
    columns = [*terms.values()]
    each = 1 + max((len(c.cells) for c in columns), default=0) // _LOOKED_AT
    rows = zip(*(c.cells[::each] for c in (*columns, *others)), strict=True)
    complete = [row for row in rows if None not in row]
    independent = {term for term, c in terms.items() if c.is_dates}
    basis = np.full((len(complete), 1), 1.0 / max(1, len(complete)) ** 0.5)
    for (term, c), cells in zip(terms.items(), zip(*complete, strict=True), strict=False):
        if c.is_dates:
            continue
        levels = sorted({*cells}, key=str)[1:]
        dummies = cells if c.is_number else [[x == one for one in levels] for x in cells]
        design = np.array(dummies, dtype=float).reshape(len(complete), -1)
        design = design - design.mean(axis=0)
        norms = np.linalg.norm(design, axis=0)
        if not design.shape[1] or not (norms > 0).all():
            continue
        design = design / norms
        design = design - basis @ (basis.T @ design)
        if np.linalg.svd(design, compute_uv=False).min() > _SMALL:
            independent.add(term)
            basis = np.column_stack([basis, np.linalg.qr(design)[0]])
    return independent


def _tastes(choices: int, people: Columns, tastes: int, labels: int) -> tuple[str, str, bool]:
    """Say whose tastes differ, that those of people do not, and whether constants do.

    A covariance of as many tastes as a person has choices costs more than it explains.
    """
    if not people:
        return "", "", False
    whose, each = people[0].term, choices // len(people[0].counts)
    if each > tastes:
        return whose, "", each > tastes + labels - 1
    same = f" Tastes are the same for all: a {people[0].quoted} has {each} choices, and"
    same += f" there are {tastes} coefficients. Let people differ in one or two attributes, such as"
    return "", f"{same} (ATTRIBUTE | {whose}), if that matters to you.", False


def _of_choice(
    outcome: str, attributes: list[str], whose: str, choosers: list[str],
    labels: Iterable[object], named: str, constants: bool = True,
) -> str:  # fmt: skip
    """The formula of attributes, of people whose tastes differ, and of what belongs to them.

    Alternatives that are but numbered have no constants. Those of others differ between people,
    too, if there is a column of alternatives, `named`: buyers of a brand come back to it.
    """
    listed, words = " + ".join(attributes) or "1", [label_of(label) for label in labels]
    numbered = all(word.removeprefix(begin_alike(words)).isdigit() for word in words)
    differ = f"{named} + {listed}" if named and not numbered else listed
    formula = f"{outcome} ~ {listed}" + (f" + ({differ} | {whose})" if whose else "")
    after = choosers if constants or not choosers else ["0", *choosers]
    after = after or ["1"] * (constants and not numbered)
    return f"{formula} | {' + '.join(after)}" if after else formula


def _none_of_these(alternative: ColumnGuess, attributes: Iterable[ColumnGuess]) -> Any:
    """The alternative that alone lacks attributes, and lacks them in all rows, or None."""
    gaps = [c for c in attributes if c.missing]
    pairs = (pair for c in gaps for pair in zip(alternative.cells, c.cells, strict=True))
    alone = {name for name, cell in pairs if cell is None}
    name = alone.pop() if len(alone) == 1 else None
    return name if all(c.missing >= alternative.counts[name] for c in gaps) else None


def _marks(column: ColumnGuess, labels: ColumnGuess, label: object) -> bool:
    """Whether a column of 0 and 1 is 1 in the rows of a label alone."""
    ones = {name for name, x in zip(labels.cells, column.cells, strict=True) if x == 1}
    return column.is_yes_or_no and ones == {label} and column.follows_from(labels)


def _is_fixed_by(column: ColumnGuess, labels: ColumnGuess, of_row: list[object]) -> bool:
    """Whether constants of alternatives fix an attribute: all occasions have the same steps."""
    first, steps = dict[Any, tuple[Any, Any]](), set()
    for cell, label, occasion in zip(column.cells, labels.cells, of_row, strict=True):
        if cell is not None:
            other, start = first.setdefault(occasion, (label, cell))
            steps.add((label, other, round(cell - start, 9)))
    return len(steps) == len({step[:2] for step in steps})


def _are_events(time: ColumnGuess, whose: ColumnGuess) -> bool:
    """Whether rows follow each other in time, at times of a day that are not evenly apart."""
    if not time.is_dates or all(len(str(x)) <= _DATE for x in time.counts):
        return False
    times = np.array([x or "NaT" for x in time.cells], dtype="datetime64[s]").astype(np.int64)
    apart = np.diff(times)[np.diff(whose.codes) == 0]
    _, often = np.unique(apart, return_counts=True)
    return len(apart) > 0 and bool((apart >= 0).all()) and 2 * often.max() < len(apart)


def _step(time: ColumnGuess, whose: ColumnGuess | None) -> str | None:
    """How long a step is, as ``--every`` has it; empty for a number, None if no length will do."""
    there = (time.codes >= 0) & (True if whose is None else whose.codes >= 0)
    times = exact_array([*compress(time.cells, there)])
    sequence = np.zeros(len(times), np.int64) if whose is None else whose.codes[there]
    dates = times.astype("datetime64[s]") if time.is_dates else dates_of(times)
    every = usual_step(times if dates is None else dates, sequence) or None
    return "" if dates is None and every == "1" else every

"""Kinds of columns: what the cells and the name of a column say about its use.

A column holds numbers, dates, labels or texts, which its cells decide; whether it is an outcome, a
trait of people, a treatment or an identifier is a guess from its name and from what other columns
say about its cells.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pgmult.core.typing import FloatArray, IntArray

NAMES = {
    "rank": "species genus family taxa taxon phylum kingdom",  # of one taxonomy
    "time": "year years yr date day days month week time at hour minute quarter wave round step"
    " decade season datetime timestamp period t visit occasion episode session",
    "year": "year years yr",
    "period": "y year yr t time w wave m month d day visit a age state status period round step"
    " event act action move click page pos position seq",
    "numbered": "v x c col column var s",  # without a word on what is in it
    "begin": "begin begins start from onset entry tstart",
    "end": "end ends stop to until exit tstop",
    "person": "who id pid hid hhid idcode person people respondent subject customer consumer"
    " traveller household user animal patient worker student individual kid woman",
    "identifier": "id judge",
    "code": "code codes idcode id no nr number school district class cluster herd litter",
    "coded": "code codes",
    "unordered": "status event type class code label labels target cluster face die",
    "row": "rownames row rows index id obs observation case unnamed",
    "row name": "rownames",
    "stratum": "strata stratum",
    "count": "n count counts freq frequency frequencies births votes weight weights cases",
    "exact count": "n count counts freq frequency weight weights",
    "several": "count counts",
    "amount": "number total",  # of something else, unless no other word stands beside them
    "weight": "weight weights wt wgt weighting pweight pondwt",
    "body": "weight weights",
    "sample size": "samplesize nobs respondents sample",
    "trials": "n size total totals trials games ntotal denominator applications attempts exposed"
    " tested holders",
    "total": "all eligible registered electorate voters population pop ballots valid turnout",
    "pair": "case cases ncases control controls ncontrols success successes failure failures yes no"
    " agree disagree alive dead survived died present absent left right men women male female males"
    " females boys girls infected positive negative pos neg",
    "case": "case cases",
    "measure": "age agea income score price cost size length height weight educ education eduyrs"
    " hours (.*[^aeiou])?(age|educ|hrs|hours|wage|income|height)",  # husage, hushrs
    "outcome": "vote choice choices class outcome answer answers response resp y label target"
    " diagnosis status survive survived survival died dead alive admit admitted rating satisfaction"
    " sat attitude opinion decision result event improved released approved denied deny accepted"
    " granted passed default purchase intention success failure relapse recurrence cured stage"
    " depvar outcomes bought smoker incidence attrition churn churned quit left switch switched"
    " participation lfp employed callback infection infected hospitalized readmitted rearrested"
    " convicted enrolled graduated converted clicked call called fraud spam won deaths improvement"
    " case voted turnout support approval preference preferred hired promoted promotion verdict"
    " guilty arrested arrest recid recidivism complication complications remission recovered"
    " recovery cancer diabetes chd hypertension malaria pregnant pregnancy dropout lapse lapsed"
    " renewed donated subscribed cancelled returned delayed accident injury injured fatal crash"
    " winner correct caught germinated present presence occurrence occupied detected infested happy"
    " happiness volunteer volunteered accept acceptance trust belief believes agrees healthy"
    " insured (vote|outcome|satisf|diagnos|surviv|answer|respons|immuni).*",
    "perhaps outcome": "category state symbol activity behaviour behavior brand mode type species"
    " name party food job occupation method use disease grade severity events weather low smoke"
    " face",
    "trait": "gender sex female male race ethnicity ethnic ethn nation nationality country region"
    " province state county district city site center centre location place urban rural religion"
    " degree education educ schooling school hs marital married citizen minority language black"
    " white afam hispanic asian income children kids siblings age agegp agegroup group employed"
    " population island plot station field lake hospital clinic lab owner student household batch"
    " block cohort version day date source pollster rater judge mom dad mother father husband hus"
    " wife parent spouse ed immigrant native foreign veteran",
    "treatment": "trt treat treated treatment arm drug placebo random randomized randomised dose"
    " assigned allocation therapy condition control experiment intervention rx temp contact diet"
    " ban prod product prodid stimulus",
    "alternative": "alt alternative alternatives option brand mode plan product route",
    "choice": "choice chosen mode alt brand depvar",
    "taken": "choice chosen taken depvar",
    "term": "term terms word words token tokens feature features lemma lemmas stem ngram bigram",
    "document": "doc docs document documents docid docname text texts book title chapter article"
    " speech paper review tweet post message id",
    "name": "name",
    "item": "q qu question item i",
}  # fmt: skip
"""Words of names by the role of a column: regular expressions of whole words."""
LABELS = {
    "trait": "male female m f man woman men women boy girl married single divorced widowed widow"
    " widower unmarried white black hispanic asian caucasian urban rural english french 1st 2nd"
    " 3rd",
    "arm": "placebo control ctrl treated treatment active sham",
    "grade": "low medium high little right much some marked none never rarely sometimes often"
    " always poor fair good excellent bad better worse same agree disagree neutral strongly very"
    " somewhat satisfied dissatisfied small moderate large mild severe absent present no perhaps"
    " maybe yes not.work parttime fulltime unlikely likely",
}
"""Labels that say the role of a column."""
_ROLES = {role: re.compile(names.replace(" ", "|")) for role, names in NAMES.items()}
SCALES = (
    "none, very low, low, mild, some, medium, mid, middle, moderate, marked, high, severe,"
    " very high",
    "too little, about right, too much",
    "never, rarely, occasionally, sometimes, often, very often, usually, always",
    "strongly disagree, disagree, somewhat disagree, neither, neutral, undecided,"
    " neither agree nor disagree, somewhat agree, agree, strongly agree",
    "very dissatisfied, dissatisfied, neutral, satisfied, very satisfied",
    "very poor, poor, fair, good, very good, excellent",
    "much worse, worse, same, better, much better",
    "no, perhaps, maybe, yes",
    "very unlikely, unlikely, neutral, likely, very likely",
)
"""Labels of ordered answers, from the lowest to the highest."""
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

    @cached_property
    def words(self) -> set[str]:
        """Words of the name in lower case: ``econHousehold_2`` is econ and household."""
        spaced = re.sub(r"([a-z])([A-Z])", r"\1 \2", self.name.replace("'", ""))
        return {word for word in re.split(r"[\W\d_]+", spaced.lower()) if word}

    @cached_property
    def roles(self) -> set[str]:
        """Roles that a word of the name says: see `NAMES`."""
        return {r for r, pattern in _ROLES.items() if any(map(pattern.fullmatch, self.words))}

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

    @cached_property
    def is_time(self) -> bool:
        """Whether cells are dates, years, or numbers whose name says when."""
        years = self.kind == "whole numbers" and all(1500 <= x <= 2200 for x in self.counts)
        numbers = self.is_number and len(self.counts) > 1
        return self.kind == "dates" or (numbers and (years or self.is_called("time")))

    @property
    def cycle(self) -> tuple[int, int] | None:
        """The first and the last number of a month, a weekday or an hour."""
        for word, (first, last) in _CYCLES.items():
            if self.kind == "whole numbers" and word in self.words and len(self.counts) > FEW:
                return (
                    (first, last) if first <= min(self.counts) <= max(self.counts) <= last else None
                )
        return None

    @property
    def is_count(self) -> bool:
        """Whether it holds counts, and its name says so."""
        non_negative = self.kind == "whole numbers" and min(self.counts) >= 0
        if self.is_sample_size:
            return non_negative
        measured = self.missing and self.is_called("body")  # in grams
        others = self.words - {*f"{NAMES['count']} {NAMES['amount']} of the".split()}
        is_amount = self.is_called("amount") and not others
        return non_negative and (self.is_called("count") or is_amount) and not measured

    @property
    def is_sample_size(self) -> bool:
        """Whether its name is that of the size of a sample."""
        name = self.name.lower().replace("_", "").replace(".", "")
        return _ROLES["sample size"].fullmatch(name) is not None

    @property
    def is_survey_weight(self) -> bool:
        """Whether it holds weights of respondents, which are 1 on average."""
        is_labelled = re.search(r"\bweight(s|ing)?\b", self.title, re.IGNORECASE) is not None
        if not self.is_number or self.missing or not (self.is_called("weight") or is_labelled):
            return False
        mean = sum(x * times for x, times in self.counts.items()) / self.counts.total()
        return min(self.counts) >= 0 and 0.7 < mean < 1.4 and len(self.counts) > FEW

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
            return self.is_called("identifier")
        if self.is_called("person", "code") or self.name.lower().endswith("id"):
            return True
        first, last = min(self.counts), max(self.counts)
        numbered = first in (0, 1) and len(self.counts) >= 0.95 * (last - first + 1)
        times = sorted(self.counts.values())
        even = len(times) > _MANY and 2 < times[-1] <= 2 * times[len(times) // 2]
        return numbered and (self.is_in_blocks or self.is_called("trait") or even)

    @property
    def is_different_in_each_row(self) -> bool:
        """Whether no number occurs twice."""
        return self.kind == "whole numbers" and len(self.counts) == len(self.cells)

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
        first = min(self.counts)
        return first <= _LOWEST_POINT and sorted(self.counts) == [
            first + i for i in range(len(self.counts))
        ]

    @cached_property
    def is_outcome(self) -> int:
        """2 if its name is that of an outcome, 1 if it may be, else 0."""
        return 2 if self.is_called("outcome") else int(self.is_called("perhaps outcome"))

    @cached_property
    def is_trait(self) -> bool:
        """Whether name or labels are those of traits of people and places."""
        of_people = self.is_called("person") and not self.is_graded
        similar = self.labels & {*LABELS["trait"].split()}
        denied = self.is_denied and len(similar) > 0
        most = 2 * len(similar) > len(self.counts)
        return self.is_called("trait") or of_people or denied or most

    @cached_property
    def is_treatment(self) -> bool:
        """Whether name or labels are those of a treatment."""
        return self.is_called("treatment") or not self.labels.isdisjoint(LABELS["arm"].split())

    @cached_property
    def is_graded(self) -> bool:
        """Whether labels have an order, such as low, medium, high, or low and high."""
        labels = self.labels if len(self.counts) <= MOST_OUTCOMES else set()
        grades = LABELS["grade"].split()
        graded = [not set(re.split(r"[\s_]+", x)).isdisjoint(grades) for x in labels]
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
        if self.is_called("row name") and len(self.counts) == len(self.cells):
            return True
        if self.kind != "whole numbers" or self.missing:
            return False
        in_order = any(self.cells == [*range(n, n + len(self.cells))] for n in (0, 1))
        in_order = in_order and len(self.cells) >= _FEWEST_ROWS
        named = self.is_called("row") and len(self.counts) == len(self.cells)
        return (in_order or named) and not self.is_time

    @property
    def can_be_named(self) -> bool:
        """Whether a command can name it: its name is no option and can be read on a screen."""
        odd = any(unicodedata.category(character) in ("Cc", "Cf") for character in self.name)
        return bool(self.name) and not odd and not self.name.startswith("-")

    @cached_property
    def codes(self) -> "IntArray":
        """The number of each cell's value, -1 without one, ``(num_rows,)``."""
        import numpy as np

        numbers = {None: -1} | {value: i for i, value in enumerate(self.counts)}
        return np.fromiter(map(numbers.__getitem__, self.cells), np.int64, len(self.cells))

    @cached_property
    def numbers(self) -> "FloatArray":
        """The numbers, nan without one, ``(num_rows,)``."""
        import numpy as np

        numbers = np.array([*map(float, self.counts), np.nan])
        return numbers[self.codes]

    @cached_property
    def _ranks(self) -> "IntArray":
        """The rank of each cell among the different values, -1 without one, ``(num_rows,)``."""
        import numpy as np

        ranks = {value: i for i, value in enumerate(sorted(self.counts))}
        return np.array([*map(ranks.__getitem__, self.counts), -1])[self.codes]

    def is_in_order_of(self, other: "ColumnGuess") -> bool:
        """Whether its values grow, or fall, with those of another column, as depth with age."""
        if len(self.counts) != len(other.counts):
            return False
        one, two = self._ranks, other._ranks
        falls = (one >= 0) & (one + two == len(self.counts) - 1)
        return bool((one == two).all() or (falls | ((one < 0) & (two < 0))).all())

    def follows_from(self, other: "ColumnGuess") -> bool:
        """Whether a value of another column says the value of this, but for 1 % of what varies."""
        import numpy as np

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
        import numpy as np

        both = (self.codes >= 0) & (other.codes >= 0)
        low, high = np.full((2, len(other.counts)), np.inf)
        np.minimum.at(low, other.codes[both], self.numbers[both])
        np.minimum.at(high, other.codes[both], -self.numbers[both])
        return sorted((a, -b) for a, b in zip(low, high, strict=True) if np.isfinite(a))

    @property
    def summary(self) -> str:
        """Its values in words."""
        different, number = len(self.counts), f"{len(self.counts):,}"
        if not different:
            return ""
        if self.is_number or self.kind == "dates":
            low, high = shortened(min(self.counts)), shortened(max(self.counts))
            also = f", {number} different" if self.is_number else ""
            return f"always {low}" if different == 1 else f"{low} to {high}{also}"
        if self.kind == "texts":
            words = sum(len(str(text).split()) * times for text, times in self.counts.items())
            return f"{words / self.counts.total():,.0f} words each"
        first = [shortened(value) for value, _ in self.counts.most_common(SHOWN)]
        return f"{number}: {', '.join(first)}{', ...' if different > SHOWN else ''}"


def shortened(value: Any) -> str:
    """A cell or a name on a terminal: short, and with nothing that a terminal obeys."""
    if isinstance(value, float):
        return f"{value:g}"
    text = str(value)
    text = text if text.isprintable() and text == text.strip() and text else repr(text)
    return text if len(text) <= _SHORT else f"{text[: _SHORT - 3]}..."


def columns_of(table: Any) -> list[ColumnGuess]:
    """The columns of a table, with what each holds."""
    from pgmult.core.labels import is_missing
    from pgmult.core.tables import date_text, missing_in

    columns = []
    for name in table:
        column = table[name]
        dates = column.dtype.kind == "M"
        cells = [date_text(x) for x in column] if dates else column.tolist()
        if column.dtype.kind in "fM" and (empty := missing_in(column)).any():
            cells = [None if gap else x for x, gap in zip(cells, empty.tolist(), strict=True)]
        counts = Counter(cells)
        if gaps := {x for x in counts if is_missing(x)}:
            cells = cells if gaps == {None} else [None if x in gaps else x for x in cells]
            counts = Counter({x: times for x, times in counts.items() if x not in gaps})
        guess = ColumnGuess(name, kind_of(counts, dates), cells, table.cells[name].title)
        vars(guess)["counts"] = counts
        columns.append(guess)
    return columns


def kind_of(values: Iterable[Any], dates: bool) -> str:
    """Say in words what cells are."""
    from pgmult.core.labels import as_looked_at
    from pgmult.datasets.states import us_states

    counts = Counter(values)
    if not counts or dates:
        return "dates" if counts else "nothing"
    if all(isinstance(x, int | float) and not isinstance(x, bool) for x in counts):
        return "whole numbers" if all(float(x).is_integer() for x in counts) else "numbers"
    total = counts.total()
    words = sum(len(str(x).split()) * times for x, times in counts.items())
    if words >= _TEXT_WORDS * total:
        return "texts" if 2 * len(counts) > total else "labels"
    states = {as_looked_at(name) for name in us_states()}
    if 1 < len(counts) <= len(states) and {as_looked_at(str(x)) for x in counts} <= states:
        return "US states"
    return "names, all different" if len(counts) == total > 2 else "labels"

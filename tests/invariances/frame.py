"""The same question asked otherwise: what relations between two runs are made of.

A `Job` is a table, the command that fits it, and the questions asked of the run. A `Variation` asks
the same in another way: it changes the table, the command or the questions, and maps the answers
back, so that they must be those of the job as it was. `hold` runs both by the functions behind the
command line, in this process, from the file to the CSV file that a user reads, and compares.

Where a relation makes no sense for a verb the job says why, in `Job.reasons`; a verb without a cell
and without a reason fails `test_matrix.py`.
"""

import csv
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import numpy as np
from invariances.forms import FORMS

from pgmult.cli import main
from pgmult.cli.commands import _parser

RELATIONS = {
    "longer": "A run of the default length agrees with one ten times as long, within its errors.",
    "seeds": "Other seeds change an answer by its Monte Carlo error alone.",
    "order": "Rows, columns, categories and labels may come in any order and have any names.",
    "units": "Units and origins of columns do not matter, inside products and groups included.",
    "aggregation": "A row of three, three rows and a weight of 3 are the same.",
    "besides": "An id, a constant, an unused level, an empty row beside the data change nothing.",
    "missing": "What is missing is summed out.",
    "horizons": "An answer for one does not depend on how many are asked.",
    "brute_force": "Derived numbers are those of changed inputs, draw by draw.",
    "outside": "Intervals cover truths of the field's standard models, or the check says no.",
    "power": "Checks see the defects that their sentences speak of.",
    "files": "The same data in another form of file are the same to the bit.",
}
CENTRES = ("mean", "median", "share", "probability", "value", "data", "estimate")
ENDS = ("lower", "upper")
ADMINISTRATION = {"resume", "show", "search", "pack"}  # no numbers, or those of other actions
BRIEF = ("--draws", "40", "--tune", "20")  # show what must not change a bit
TOLERANCE = 0.4  # posterior standard deviations between two runs worth 400 draws each: 5 errors

Table = Mapping[str, list]
Answer = dict[tuple[str, ...], tuple[float, float]]


@dataclass(frozen=True)
class Question:
    """An action on a run, and what follows the run's folder in its command.

    An argument that ends in ``.csv`` names one of the job's other tables.
    """

    verb: str
    arguments: tuple[str, ...] = ()
    id: str = ""

    @property
    def name(self) -> str:
        return self.id or self.verb


@dataclass(frozen=True)
class Variation:
    """Another way to ask: changes of the table(s), the command and the questions, and the way back.

    Attributes
    ----------
    relation, name : str
    tables : callable, of (name of a table, table) to a table
    fit, arguments : callable, of the words of a command to others
    back : callable, of (question, key, centre, sd) to (key, centre, sd) of the job as it was, or
        None where an answer has no counterpart
    verbs : those that it is a cell of; all that the job asks if empty
    seed : int
    tolerance : float
        In posterior standard deviations; 0 for equal bits.
    first_only : bool
        Whether only the table that is fitted changes.
    form : str
        Name in `FORMS` of the file that holds the table that is fitted, if it is no CSV file.
    """

    relation: str
    name: str
    tables: Callable = field(default=lambda name, table: table)
    fit: Callable = field(default=lambda words: words)
    arguments: Callable = field(default=lambda words: words)
    back: Callable = field(default=lambda question, key, centre, sd: (key, centre, sd))
    verbs: tuple[str, ...] = ()
    seed: int = 1
    tolerance: float = TOLERANCE
    first_only: bool = False
    form: str = ""

    def __repr__(self):
        return self.name


@dataclass(frozen=True)
class Job:
    """A table, the command that fits it, and what is asked.

    Attributes
    ----------
    name : str
        The command.
    tables : mapping from a file's name to a function that makes its columns
        The first one is what is fitted.
    fit : tuple of str
        The words of the command after the file.
    questions : tuple of Question
    variations : tuple of Variation
    tests : mapping from (relation, verb) to the test that is its cell
        Cells that are tests of their own, ``"tests/invariances/test_x.py::test_y"``.
    reasons : mapping from (relation, verb), or (relation, "*"), to why there is no cell
    key : callable
        ``key(labels)`` of a row of an answer, where labels have no names of their own (topics).
    """

    name: str
    tables: Mapping[str, Callable[[], Table]]
    fit: tuple[str, ...]
    questions: tuple[Question, ...]
    variations: tuple[Variation, ...] = ()
    tests: Mapping[tuple[str, str], str] = field(default_factory=dict)
    reasons: Mapping[tuple[str, str], str] = field(default_factory=dict)
    key: Callable = field(default=lambda labels: labels)

    @property
    def verbs(self) -> tuple[str, ...]:
        """All actions of the command that answer with numbers, ``fit`` and its page included."""
        return verbs_of(self.name)

    def cell(self, relation: str, verb: str) -> str:
        """Return what holds a verb to a relation: names of variations, of a test, or a reason."""
        asked = {question.verb for question in self.questions} | {"fit", "report"}
        names = [
            variation.name for variation in self.variations
            if variation.relation == relation and verb in (variation.verbs or asked)
        ]  # fmt: skip
        names += [self.tests[key] for key in [(relation, verb)] if key in self.tests]
        if names:
            return "; ".join(names)
        why = self.reasons.get((relation, verb), self.reasons.get((relation, "*"), ""))
        return f"({why})" if why else ""


def verbs_of(command):
    """The actions of a command that answer with numbers."""
    (rooms,) = (a for a in _parser()._actions if a.dest == "==SUPPRESS==" or a.choices)
    (actions,) = (a for a in rooms.choices[command]._actions if a.choices and not a.option_strings)
    return tuple(verb for verb in actions.choices if verb not in ADMINISTRATION)


def hold(job, variation, folder):
    """Assert that the answers of a variation, mapped back, are those of the job.

    Raises
    ------
    AssertionError
        That shows the largest differences, in posterior standard deviations.
    """
    plain = Variation("", "as it is")
    if variation.tolerance == 0.0:
        job = replace(job, fit=(*job.fit, *BRIEF))
    verbs = variation.verbs or tuple(question.verb for question in job.questions)
    wrong = []
    for question in (q for q in job.questions if q.verb in verbs):
        expected = ask(job, plain, question, folder)
        answer = ask(job, variation, question, folder)
        assert expected, f"{question.name} answers nothing"
        missing = expected.keys() - answer.keys()
        assert not missing, f"{question.name} lacks {sorted(missing)[:4]}, has {list(answer)[:4]}"
        for key, (centre, sd) in expected.items():
            gap = answer[key][0] - centre
            allowed = variation.tolerance * max(sd, 1e-3 * abs(centre) + 1e-4)
            if not abs(gap) <= allowed and not (np.isnan(gap) and np.isnan(centre)):
                wrong.append((abs(gap) / max(sd, 1e-9), question.name, key, centre, answer[key][0]))
    wrong.sort(key=lambda row: -row[0])
    assert not wrong, "\n".join(
        f"{name} {key}: {new:.4g} for {old:.4g}, {far:.2f} sd apart"
        for far, name, key, old, new in wrong[:8]
    )


def ask(job, variation, question, folder):
    """Return the numbers of an answer by their labels, mapped back to the job as it was."""
    run = fitted(job, variation, folder)
    words = [
        str(run.parent / word) if word.endswith(".csv") else word
        for word in variation.arguments(list(question.arguments))
    ]
    out = run.parent / f"{question.name}.{hashlib.sha256(repr(words).encode()).hexdigest()[:8]}.csv"
    if not out.exists():
        code = main([job.name, question.verb, str(run), *words, "--out", str(out)])
        assert code == 0, f"{question.verb} ended with {code}"
    answer = {}
    for key, centre, sd in read_answer(out):
        mapped = variation.back(question, job.key(key), centre, sd)
        if mapped is not None:
            answer[mapped[0]] = mapped[1:]
    return answer


def fitted(job, variation, folder):
    """Return the folder of the run, which is made once for all questions.

    Equal tables and commands are one run, whatever the variations' names.
    """
    tables = {name: make() for name, make in job.tables.items()}
    for name in list(tables)[: 1 if variation.first_only else None]:
        tables[name] = variation.tables(name, tables[name])
    words = variation.fit(list(job.fit))
    columns = {name: dict(table) for name, table in tables.items()}
    key = repr((job.name, words, variation.seed, variation.form, columns))
    place = Path(folder) / hashlib.sha256(key.encode()).hexdigest()[:16]
    if not (place / "run" / "report.html").exists():
        place.mkdir(exist_ok=True)
        for name, table in tables.items():
            write(place / name, table)
        data = place / next(iter(tables))
        if variation.form:
            data = place / variation.form
            FORMS[variation.form](data, next(iter(tables.values())))
        words = [str(place / word) if word in tables else word for word in words]
        seed = ["--seed", str(variation.seed), "--quiet"]
        code = main([job.name, "fit", str(data), *words, "--out", str(place / "run"), *seed])
        assert code == 0, f"fit ended with {code}"
    return place / "run"


def write(path, table):
    """Write a table as CSV; None is an empty cell."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))


def read_answer(path):
    """Yield (labels, centre, sd) of each row of a tidy answer; sd from the interval if need be."""
    with path.open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    found = [head.index(name) for name in CENTRES if name in head]
    if not found:  # a column for each category, with its interval
        yield from _by_column(head, rows)
        return
    at = min(found)
    for row in rows:
        ends = [
            float(row[i])
            for end in ("lower", "upper", "q0.05", "q0.95")
            for i, name in enumerate(head)
            if name.endswith(end) and row[i]
        ]
        sds = [float(row[head.index(name)] or "nan") for name in ("sd", "error") if name in head]
        sd = sds[0] if sds else np.nan
        if np.isnan(sd) and len(ends) == 2:
            sd = (ends[1] - ends[0]) / 3.29
        centre = float(row[at]) if row[at] else np.nan
        yield tuple(row[:at]), centre, 0.25 * abs(centre) if np.isnan(sd) else sd


def _by_column(head, rows):
    """The numbers of a row for each thing and three columns for each category."""
    for row in rows:
        cells = dict(zip(head, row, strict=True))
        first = next(i for i, name in enumerate(head) if name.endswith(" lower")) - 1
        for name in head[first::3]:
            low, high = (float(cells[f"{' '.join(name.split()[:2])} {end}"]) for end in ENDS)
            yield (*row[:first], name), float(cells[name]), (high - low) / 3.29


def changed(table, **columns):
    """A table with other columns, in the same places; None takes a column out."""
    new = dict(table) | columns
    return {name: values for name, values in new.items() if values is not None}


def rows_of(table, rows):
    """Some rows of a table, in this order."""
    return {name: [values[i] for i in rows] for name, values in table.items()}


def replaced(words, old, new):
    """The words of a command with a text replaced in each."""
    return [word.replace(old, new) for word in words]


def reversed_rows(relation="order", **more):
    """The first table from its last row to its first."""
    return Variation(
        relation, "rows from the last to the first", first_only=True,
        tables=lambda name, table: {column: values[::-1] for column, values in table.items()},
        **more,
    )  # fmt: skip


def shuffled_columns(**more):
    """Columns from the last to the first."""
    return Variation(
        "order", "columns from the last to the first",
        tables=lambda name, table: dict(reversed(table.items())), **more,
    )  # fmt: skip


def renamed(column, names, **more):
    """Labels of a column renamed, in every table that has it, and in the answers' keys."""
    old = {new: label for label, new in names.items()}
    return Variation(
        "order", f"labels of {column} renamed",
        tables=lambda name, table: changed(
            table, **{column: [names[v] for v in table[column]]} if column in table else {}
        ),
        arguments=lambda words: [names.get(word, word) for word in words],
        back=lambda question, key, centre, sd: (tuple(old.get(k, k) for k in key), centre, sd),
        **more,
    )  # fmt: skip


def other_seed(**more):
    """Another seed."""
    return Variation("seeds", "seed 2", seed=2, **more)


def longer(times=10, draws="--draws", default=200, **more):
    """So many times as many draws and sweeps of tuning as by default."""
    words = [draws, str(times * default), "--tune", str(times * 100)]
    return Variation("longer", f"{times} times as long", fit=lambda w: [*w, *words], **more)


def in_form(form):
    """The table that is fitted in a file of another form."""
    return Variation("files", form, form=form, tolerance=0.0)


def with_column(name, values, **more):
    """A column besides, that nothing names."""
    return Variation(
        "besides", f"a column {name}",
        tables=lambda file, table: changed(
            table, **{name: values(len(next(iter(table.values()))))}
        ),
        **more,
    )  # fmt: skip


def with_rows(*rows):
    """The first table with more rows, of which nothing is expected but that answers stay."""
    return lambda name, table: {
        column: [*values, *(row[i] for row in rows)]
        for i, (column, values) in enumerate(table.items())
    }


@cache
def jobs():
    """All jobs, by command."""
    from invariances.jobs import choice, fields, regression, sequences, topics

    modules = (topics, fields, sequences, regression, choice)
    return [job for module in modules for job in module.JOBS]


def cells(relation):
    """(job, variation) of a relation, for parameters of a test."""
    return [(job, v) for job in jobs() for v in job.variations if v.relation == relation]


def lacking(command):
    """(relation, verb) without a cell in any job of a command and without a reason."""
    return [key for key, texts in _cells_of(command).items() if not texts]


def _cells_of(command):
    """What holds each (relation, verb) of a command, a text for each job that has something."""
    of_command = [job for job in jobs() if job.name == command]
    return {
        (relation, verb): [text for job in of_command if (text := job.cell(relation, verb))]
        for relation in RELATIONS
        for verb in verbs_of(command)
    }


def matrix():
    """The matrix as Markdown: a table of verbs by relations for each command."""
    commands = dict.fromkeys(job.name for job in jobs())
    return "\n".join(line for command in commands for line in _table(command))


def _table(command):
    """Lines of a command's table: numbers of cells that run, letters of reasons, and sums."""
    reasons, sums = [], {"run": 0, "have a reason": 0, "lack": 0}
    verbs = verbs_of(command)
    marks = {verb: [] for verb in verbs}
    for (_, verb), texts in _cells_of(command).items():
        tests = [text for text in texts if not text.startswith("(")]
        if tests:
            sums["run"] += 1
            marks[verb].append(str(sum(text.count(";") + 1 for text in tests)))
        elif texts:
            sums["have a reason"] += 1
            if texts[0] not in reasons:
                reasons.append(texts[0])
            marks[verb].append(_letter(reasons.index(texts[0])))
        else:
            sums["lack"] += 1
            marks[verb].append("lacks")
    of_all = ", ".join(f"{number} {what}" for what, number in sums.items())
    return [
        "", f"**{command}**: of {sum(sums.values())} cells {of_all}.", "",
        "| | " + " | ".join(RELATIONS) + " |", "|" + "---|" * (len(RELATIONS) + 1),
        *(f"| {verb} | " + " | ".join(marks[verb]) + " |" for verb in verbs), "",
        *(f"* ({_letter(i)}) {text[1:-1]}" for i, text in enumerate(reasons)),
    ]  # fmt: skip


def _letter(number):
    """a to z, then aa, ab and so on."""
    return (_letter(number // 26 - 1) if number >= 26 else "") + chr(97 + number % 26)


if __name__ == "__main__":
    print(matrix())

"""``pgmult choice``: who chooses what among alternatives, tastes, and shares of new ones."""

import argparse
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pgmult.choice.family import CHOICE
from pgmult.cli import shared
from pgmult.cli.actions import CHECK, Question, Room, effects_question
from pgmult.cli.runs import Job, StoredRun

if TYPE_CHECKING:
    from pgmult.core.typing import BoolArray
    from pgmult.datasets.tables import DataTable


_SHOWN = 5  # occasions that are left out, named


_FIT = """
TABLE  File with a row for each alternative of an occasion, or for each occasion (--wide)
FORMULA  Formula, such as "taken ~ price + time + (price + time | who)"
--alternative COLUMN  Column of the alternative's name
--base LABEL  Alternative whose constant is 0
--available COLUMN  Column that is 1 where an alternative was available; with --wide the columns:
    av.{}
--none LABEL  Alternative that is "none of these", whose attributes are 0
--worst COLUMN  Column that marks the worst alternative; that of the best one if -1 marks the worst
--weight COLUMN  Column of the number of choices that an occasion stands for, or an expression
--price COLUMN  Attribute in whose units the report says what others are worth (default: by its
    name)
--occasion COLUMN...  Columns that identify a choice occasion
--wide ATTRIBUTE=COLUMNS...  Columns of an attribute, {} for the alternative: price=price.{}
--ranks  Read the left-hand side as ranks of the alternatives, 1 the best
--positive ATTRIBUTE...  Assume that the coefficients of these attributes are positive for everybody
--negative ATTRIBUTE...  Assume that the coefficients of these attributes are negative for everybody
"""


def _add_fit(fit: argparse.ArgumentParser) -> None:
    shared.add_options(fit, _FIT, wide={"type": _pattern})
    shared.TABLE.add(fit)
    shared.GAPS.add(fit)


def _pattern(text: str) -> tuple[str, str]:
    name, _, columns = text.partition("=")
    if not name or columns.count("{}") != 1:
        raise argparse.ArgumentTypeError(f"must be such as price=price.{{}}, got {text!r}")
    return name, columns


def _wide(options: argparse.Namespace, table: "DataTable") -> dict[str, object]:
    """The columns of alternatives in a table with a row for each occasion, for a run's notes."""
    from pgmult.choice.data import outcome_of
    from pgmult.choice.tables import wide_columns
    from pgmult.formulas.language import parse

    if options.available and options.available.count("{}") != 1:
        raise ValueError(f"--available must be such as av.{{}}, got {options.available!r}")
    parsed = parse(options.formula)
    outcome, patterns = outcome_of(parsed), dict(options.wide)
    choice = None if outcome in patterns else outcome  # of each alternative: ranks or shares
    if choice is None:
        patterns = {outcome: patterns.pop(outcome)} | patterns
    attributes, name = wide_columns(table, choice, patterns, without=options.none), "--available"
    available: dict[str, Any] = {}
    if options.available:
        of = {name: options.available}
        available = wide_columns(table, choice, of, partial=True, without=options.none)[name]
    weight = shared.columns_in(options.weight, table)
    beside = {choice, *weight, *available.values(), *set(parsed.columns) - set(attributes)}
    others = sorted(name for name in beside if name is not None and name in table.cells)
    return {"choice": choice, "attributes": attributes, "available": available, "others": others}


def _long(
    table: "DataTable", wide: Mapping[str, Any], options: argparse.Namespace
) -> "tuple[DataTable, str]":
    """A row for each alternative of a wide table, and which of its rows were left out."""
    import numpy as np

    from pgmult.choice.tables import lengthen
    from pgmult.core.tables import Cells, rows_in_words, truth_of
    from pgmult.datasets.tables import read

    attributes, available = wide["attributes"], wide["available"]
    gaps = np.zeros(len(table), dtype=np.bool_)
    if options.drop_incomplete:
        gaps |= table.missing(*(name for name in wide["others"] if name in table.cells))
        for label, column in (pair for of in attributes.values() for pair in of.items()):
            lacks = table.missing(*([] if column is None else [column]))
            place = available.get(label)
            truth = None if place is None else truth_of(table.cells[place].values)
            gaps |= lacks if truth is None else lacks & truth
    left_out, kept = [f"{row + 1:,}" for row in np.flatnonzero(gaps)], np.flatnonzero(~gaps)
    said = _left_out(table, "row", left_out, len(gaps)) if left_out else ""
    choice = wide["choice"] if wide["choice"] in table.cells else None
    with rows_in_words(table := table[kept]):
        long = dict(lengthen(table, choice, attributes, available).cells)
    long["occasion"] = Cells(1 + kept[long["occasion"].values - 1])
    if choice is not None:
        long[choice] = long.pop("taken")
    return read(long), said


def _gaps(
    table: "DataTable", formula: str, columns: Mapping[str, Any], outcome: bool, none: Any = None
) -> "tuple[BoolArray, str]":
    """Rows of occasions in which one lacks a value, and which these occasions are.

    Parameters
    ----------
    table : DataTable
    formula : str
    columns : mapping
        Names of those of ``occasion``, and of ``alternative``, ``weight`` and ``available`` or
        None.
    outcome : bool
        Whether it must be there.
    none : label, optional
        Alternative whose attributes may be empty.
    """
    import numpy as np

    from pgmult.choice.data import available_rows, in_full, outcome_of
    from pgmult.core.labels import Levels
    from pgmult.formulas.language import Call, names_in, parse

    alternative = columns["alternative"]
    parsed = parse(in_full(formula, alternative))
    calls = [one for term in parsed.terms for one in term if isinstance(one, Call)]
    people = [one.arguments[1] for one in calls if one.function in ("|", "||")]
    groups = [name for of in people for name in names_in(of)]
    used = [*parsed.columns, alternative, *shared.columns_in(columns["weight"], table)]
    used += [outcome_of(parsed)] if outcome else []
    keys = [name for name in dict.fromkeys([*groups, *columns["occasion"]]) if name in table.cells]
    gaps = table.missing(*(name for name in used if name in table.cells))
    if none is not None:
        gaps &= (table.columns[alternative] != none) & ~table.missing(alternative)
    if columns.get("available") in table.cells:
        gaps &= np.isin(np.arange(len(gaps)), available_rows(table, columns["available"])[1])
    if not gaps.any():
        return gaps, ""
    if table.missing(*keys).any():
        some = f"{' or '.join(keys)} has no value in some rows"
        raise ValueError(f"{table.source}: {some}: leave their occasions out of the file")
    levels, codes = Levels.of({name: table.columns[name] for name in keys})
    broken = np.unique(codes[gaps])
    said = _left_out(table, ":".join(keys), levels.names[broken].tolist(), len(levels))
    return np.isin(codes, broken), said


def _left_out(table: "DataTable", what: str, names: list[str], number: int) -> str:
    """The occasions that lack a value, in words."""
    if len(names) == number:
        raise ValueError(f"{table.source}: every occasion lacks a value of a column that is used")
    count = "1 occasion is" if len(names) == 1 else f"{len(names):,} occasions are"
    listed = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
    return f"{count} left out, without a value of a column that is used: {what} {listed}"


def _job(options: argparse.Namespace) -> Job:
    from pgmult.choice.data import available_rows, outcome_of
    from pgmult.choice.mixed_logit import MixedLogit
    from pgmult.choice.people import codes_in_words, numeric_attributes
    from pgmult.choice.tables import explode
    from pgmult.core.arguments import as_choice
    from pgmult.datasets.tables import read
    from pgmult.formulas.language import parse

    table, left_out, more = shared.read_table(options.table, options), "", {}
    question = shared.titled(table, outcome := outcome_of(parse(options.formula)))
    title = f"{'Choices' if question == outcome else question} in {options.table.name}"
    columns = {n: getattr(options, n) for n in ("occasion", "alternative", "weight", "available")}
    if options.wide:
        more = {"wide": _wide(options, table)}
        table, left_out = _long(table, more["wide"], options)
        columns |= {"occasion": ["occasion"], "alternative": "alternative", "available": None}
    elif not options.occasion:
        wide = "--wide those of attributes where a row is an occasion"
        raise ValueError(f"--occasion must name columns that identify occasions, or {wide}")
    elif options.drop_incomplete:
        gaps, left_out = _gaps(table, options.formula, columns, outcome=True, none=options.none)
        table = table[~gaps]
    if options.ranks:
        if columns["available"] is not None:
            table, _ = available_rows(table, columns["available"])
        table = read(explode(table, outcome, columns["occasion"]))
    signs = dict.fromkeys(options.positive or (), 1) | dict.fromkeys(options.negative or (), -1)
    named = {name: columns[name] for name in ("occasion", "alternative", "available")}
    data = table.choices(
        options.formula, **named, base=options.base, weights=options.weight, signs=signs,
        worst=options.worst, none=options.none,
    )  # fmt: skip
    if options.price is not None:
        as_choice(options.price, "--price", numeric_attributes(data))
    notes = {
        "title": options.title or title, "source": str(options.table), "price": options.price,
        "model": options.formula, "columns": columns, **more,
    }  # fmt: skip
    lines = [f"{options.table}: {data!r}", left_out, *codes_in_words(data)]
    model, note = MixedLogit(), "\n".join(filter(None, lines))
    return Job(model, data, model.default_keep, notes, note=note)


def _predict(
    run: StoredRun, options: argparse.Namespace, arguments: dict[str, Any], verb: str = "predict"
) -> Any:
    """Answer for a long table, or for one as wide as that of the run, by the rows that it has."""
    import numpy as np

    table, wide, labels, said = arguments.pop("new"), run.notes.get("wide"), {}, ""
    if wide is not None and not {"alternative", *wide["attributes"]} <= table.cells.keys():
        table, said = _long(table, wide, options)
        labels = {name: table.columns[name] for name in ("occasion", "alternative")}
    elif options.drop_incomplete and "columns" in run.notes:
        columns = run.notes["columns"]
        if options.occasion is not None:
            columns = {**columns, "occasion": options.occasion}
        gaps, said = _gaps(table, run.notes["model"], columns, outcome=False)
        table, labels = table[~gaps], {"row": np.flatnonzero(~gaps)}
    answer = run.ask(verb, table, **arguments)
    if said:
        shared.complain(said)
    if labels and "row" in answer.axes:
        rows = answer.labels["row"]
        labels = {name: cells[rows["row"]] for name, cells in labels.items()}
        return _label_rows(answer, labels if "occasion" in labels else {**rows, **labels})
    return answer


def _label_rows(answer: Any, labels: dict[str, Any]) -> Any:
    return replace(answer, labels={**answer.labels, "row": labels})


def _export(run: StoredRun, options: argparse.Namespace, arguments: dict[str, Any]) -> Any:
    """Probabilities in the rows of the data, which begin with 1."""
    answer = run.ask("predict", **arguments)
    labels = answer.labels["row"]
    return _label_rows(answer, {**labels, "row": labels["row"] + 1})


_NEW: dict[str, Any] = {
    "more": [shared.GAPS], "first": ["new"], "required": ["new"],
    "names": {"new_people": "new-levels"}, "ask": _predict, "tidy": True,
}  # fmt: skip

ROOM = Room(
    CHOICE,
    "Choices among alternatives by people whose tastes differ",
    '  pgmult choice fit trips.csv "taken ~ price + time + (price + time | who)" --occasion trip'
    " --out run\n"
    "  pgmult choice worth run price\n"
    "  pgmult choice simulate run market.csv --by mode --new-levels --out shares.csv",
    "choices by attributes of alternatives, by formula",
    draws=500, tune=50, add_fit=_add_fit, job=_job,
    report=lambda run, options: run.report(price=run.notes.get("price")),
    compare=lambda first, second, options: first.ask("compare", second.posterior),
    questions=(
        Question("tastes", "Show coefficients over people, or those of each person"),
        Question("worth", "Show the worth of a unit of each attribute", first=["per"]),
        Question("predict", "Predict probabilities in the rows of a table", **_NEW),
        Question(
            "simulate", "Simulate shares of alternatives in the occasions of a table",
            verb="predict", **_NEW | {"required": ["new", "by"]},
        ),
        effects_question("Show shares of alternatives if a column had other values"),
        Question(
            "elasticities", "Show percent changes of shares if a column grows by one percent",
            first=["column"],
        ),
        Question(
            "surplus", "Show the change of consumer surplus from the data to another table",
            **_NEW | {"ask": partial(_predict, verb="surplus"), "tidy": False},
        ),
        Question("diversion", "Show where the buyers of an alternative go without it"),
        Question(
            "scores", "Show scores of the labels of a column, which add up to 100", first=["column"]
        ),
        Question("importances", "Show the relative importance of attributes"),
        Question("marginal-means", "Show the share of profiles with each level that were chosen"),
        Question("amce", "Show average marginal component effects of levels"),
        CHECK,
        Question(
            "export", "Write the probabilities of all alternatives of the data", verb="predict",
            only=["probability"], ask=_export, tidy=True,
        ),
    ),
)  # fmt: skip

"""``pgmult regression``: categories from covariates, groups that pool, shares of a population."""

import argparse
from pathlib import Path
from typing import Any

from pgmult.cli import shared
from pgmult.cli.actions import CHECK, Question, Room, effects_question
from pgmult.cli.runs import Job, StoredRun
from pgmult.regression.family import REGRESSION

_FIT = """
TABLE  File of a table, such as survey.csv or survey.xlsx
FORMULA  Formula, such as "vote ~ sex + s(age) + (1 | state)", or c(red, green, blue) ~ ...
--weight COLUMN  Column of the number of observations that a row stands for, or an expression, such
    as "round(share * n / 100)"
--family categories|dirichlet_multinomial|poisson|negative_binomial  Distribution of the outcome
    (default: categories, or dirichlet_multinomial for rows of counts of several categories)
--ordered CATEGORY...  Categories from the lowest to the highest, if they have an order
--method sampling|approximate  Sample the posterior, or draw from an approximation (default:
    sampling)
--link auto|softmax|cumulative|stick_breaking  Link of categories (default: cumulative if they have
    an order, else softmax)
--map NAME=FILE*  Map of car(area, NAME): a table of neighbours, or a .json or .geojson file
--specific COLUMN...  Columns whose effects differ between ordered categories (partial proportional
    odds)
--unit NAME  Name of an observation in reports, such as animal (default: observation)
"""


def _add_fit(fit: argparse.ArgumentParser) -> None:
    shared.add_options(fit, _FIT, link={"default": "auto"}, unit={"default": "observation"})
    shared.TABLE.add(fit)
    shared.GAPS.add(fit)


def _map(text: str, options: argparse.Namespace) -> tuple[str, Any]:
    """The name of a map, and a table of neighbours or the path of a GeoJSON file."""
    name, equals, file = text.partition("=")
    if not (name and equals and file):
        raise ValueError(f"--map must be NAME=FILE, got {text!r}")
    path = Path(file)
    return name, path if path.suffix in (".json", ".geojson") else shared.read_table(path, options)


def _job(options: argparse.Namespace) -> Job:
    from pgmult.regression.models.additive import AdditiveRegression

    table = shared.read_table(options.table, options)
    weight = shared.columns_in(options.weight, table)
    table, left_out = shared.complete_for([options.formula], table, options, *weight)
    data = table.rows(
        options.formula, weights=options.weight, ordered=options.ordered, family=options.family,
        maps=dict(_map(text, options) for text in options.map), unit=options.unit,
    )  # fmt: skip
    specific = tuple(options.specific or ())
    model = AdditiveRegression(method=options.method, link=options.link, specific=specific)
    outcome = shared.titled(table, options.formula.partition("~")[0].strip())
    title = options.title or f"{outcome} in {options.table.name}"
    notes = {"title": title, "source": str(options.table), "model": options.formula}
    note = f"{options.table}: {data.respondents.sum():,.0f} {data.unit}s in {data.num_rows:,} cells"
    note += "" if data.is_events else f", {data.num_categories} categories"
    note = "\n".join(filter(None, (note, left_out)))
    return Job(model, data, model.default_keep, notes, note=note)


def _predict(run: StoredRun, options: argparse.Namespace, arguments: dict[str, Any]) -> Any:
    from pgmult.formulas.language import parse

    if arguments["new"] is None:
        return run.ask("predict", **arguments)
    columns = parse(str(run.data.design.formula)).columns
    return shared.predict_complete(run, arguments.pop("new"), columns, options, arguments)


def _margins(table: object, options: argparse.Namespace) -> tuple[str, dict[Any, float]]:
    """Read one margin of a population: a column of labels, and a column of people."""
    from pgmult.core.tables import as_columns

    columns = as_columns(shared.read_table(table, options), "margins")
    if len(columns) != 2:
        what = "tables of two columns, labels and people"
        raise ValueError(f"--margins must be {what}; {table} has {', '.join(columns)}")
    (column, labels), (_, people) = columns.items()
    if people.dtype.kind not in "iuf":
        raise ValueError(f"--margins must have numbers of people in its second column, in {table}")
    return column, dict(zip(labels.tolist(), people.tolist(), strict=True))


def _poststratify(run: StoredRun, options: argparse.Namespace, arguments: dict[str, Any]) -> object:
    files = arguments.pop("margins")
    if files:
        arguments["margins"] = dict(_margins(file, options) for file in files)
    return run.ask("poststratify", **arguments)


def _rivals(run: StoredRun) -> Any:
    from pgmult.regression.reports import most_draws

    return run.ask("compare", max_draws=most_draws(run.data))


def _without_gaps(
    run: StoredRun, options: argparse.Namespace, arguments: dict[str, Any]
) -> dict[str, Any]:
    """Leave out held-out rows with a gap, if that is asked for."""
    table = arguments["held_out"]
    if table is not None:
        table, note = shared.complete_for([str(run.data.design.formula)], table, options)
        if note:
            shared.complain(note)
    return {**arguments, "held_out": table}


def _check(run: StoredRun, options: argparse.Namespace, arguments: dict[str, object]) -> object:
    return run.ask("check", **_without_gaps(run, options, arguments))


def _compare_options() -> list[shared.Option]:
    from pgmult.cli.verbs import options_of

    return [*options_of(REGRESSION.verbs["compare"].load(), only=["held_out"]), shared.GAPS]


def _add_compare(parser: argparse.ArgumentParser) -> None:
    for one in _compare_options():
        one.add(parser)


def _compare(first: StoredRun, second: StoredRun, options: argparse.Namespace) -> Any:
    arguments = _without_gaps(first, options, shared.arguments_of(_compare_options(), options))
    names = str(first.path), str(second.path)
    return first.ask("compare", second.posterior, names=names, **arguments)


ROOM = Room(
    REGRESSION,
    "Categories from covariates and groups, and shares of a population",
    '  pgmult regression fit survey.csv "vote ~ sex + s(age) + (1 | state)" --out run\n'
    "  pgmult regression poststratify run census.csv --by state --weight people --out shares.csv\n"
    "  pgmult regression effects run sex --difference f m",
    "categories by covariates and groups, by formula",
    draws=300, tune=50, add_fit=_add_fit, job=_job, compare=_compare,
    add_compare=_add_compare, rivals=_rivals,
    questions=(
        Question(
            "predict", "Predict probabilities in rows of a table", [shared.GAPS], first=["new"],
            ask=_predict, tidy=True,
        ),
        Question(
            "poststratify", "Estimate shares of the categories in a population",
            [
                shared.option(
                    "--margins", type=Path, nargs="+", metavar="FILE",
                    help="Weight the observations to margins of the population: a table each, with"
                    " a column of labels and a column of people",
                )
            ],
            first=["census"], ask=_poststratify, tidy=True,
        ),
        effects_question("Show probabilities if a column had certain values in all rows"),
        Question(
            "comparisons", "Show how probabilities differ between values of columns",
            first=["column"],
        ),
        Question(
            "contrasts", "Show how log odds differ between values of columns", first=["column"]
        ),
        Question("groups", "Show the effects of the levels of a grouping", first=["column"]),
        Question("variance-shares", "Show how much of the variance each term explains"),
        Question(CHECK.word, CHECK.help, [shared.GAPS], ask=_check),
        Question("loo", "Score the prediction of each observation from all others"),
        Question(
            "export", "Write the probabilities in all cells of the data", verb="predict",
            only=["probability"], tidy=True,
        ),
    ),
)  # fmt: skip

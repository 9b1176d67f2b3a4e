"""``pgmult regression``: categories from covariates, groups that pool, shares of a population."""

import argparse
from pathlib import Path
from typing import Any

from pgmult.cli.actions import Question, Room
from pgmult.cli.runs import Job, StoredRun
from pgmult.cli.shared import (
    AT,
    BY,
    DIFFERENCE,
    GAPS,
    PROBABILITY,
    SEED,
    TABLE,
    add_incomplete,
    add_table,
    complain,
    complete_for,
    option,
    predict_complete,
    read_table,
    table_option,
    value_of,
)
from pgmult.formulas.language import parse
from pgmult.regression.family import REGRESSION


def _add_fit(fit: argparse.ArgumentParser) -> None:
    fit.add_argument("table", type=Path, metavar="TABLE", help="a .csv, .tsv, .jsonl or .parquet")
    fit.add_argument(
        "formula", metavar="FORMULA",
        help='such as "vote ~ sex + s(age) + (1 | state)", or c(red, green, blue) ~ ...',
    )  # fmt: skip
    fit.add_argument("--weight", metavar="COLUMN", help="observations that a row stands for")
    fit.add_argument(
        "--family", choices=["categories", "dirichlet_multinomial", "poisson", "negative_binomial"],
        help="distribution of the outcome; default: counts of several categories scatter",
    )  # fmt: skip
    fit.add_argument(
        "--ordered", nargs="+", metavar="CATEGORY",
        help="categories from the lowest to the highest, if they have an order",
    )  # fmt: skip
    fit.add_argument(
        "--method", choices=["sampling", "approximate"], default="sampling",
        help="draw from the posterior, or at once from an approximation (default: sampling)",
    )  # fmt: skip
    fit.add_argument(
        "--link", choices=["auto", "softmax", "cumulative", "stick_breaking"], default="auto",
        help="link of categories; default: cumulative if they have an order, else softmax",
    )  # fmt: skip
    fit.add_argument(
        "--map", action="append", default=[], metavar="NAME=FILE",
        help="of car(area, NAME): a table of neighbours, or .json or .geojson",
    )  # fmt: skip
    add_table(fit)
    add_incomplete(fit)


def _map(told: str, options: argparse.Namespace) -> tuple[str, Any]:
    """The name of a map, and a table of neighbours or the path of a GeoJSON file."""
    name, equals, file = told.partition("=")
    if not (name and equals and file):
        raise ValueError(f"--map must be NAME=FILE, got {told!r}")
    path = Path(file)
    return name, path if path.suffix in (".json", ".geojson") else read_table(path, options)


def _job(options: argparse.Namespace) -> Job:
    from pgmult.regression.models.additive import AdditiveRegression

    table = read_table(options.table, options)
    table, left_out = complete_for([options.formula], table, options, options.weight)
    data = table.rows(
        options.formula, weights=options.weight, ordered=options.ordered, family=options.family,
        maps=dict(_map(told, options) for told in options.map),
    )  # fmt: skip
    model = AdditiveRegression(method=options.method, link=options.link)
    notes = {
        "title": options.title
        or f"{options.formula.partition('~')[0].strip()} in {options.table.name}",
        "source": str(options.table),
        "model": options.formula,
    }
    said = f"{options.table}: {data.respondents.sum():,.0f} observations in {data.num_rows:,} cells"
    said += "" if data.is_events else f", {data.num_categories} categories"
    said = "\n".join(filter(None, (said, left_out)))
    return Job(model, data, model.default_keep, notes, said=said)


_NEW_LEVELS = option("--new-levels", action="store_true", help="groups may be new ones")
_AVERAGES = (
    BY, AT, option("--weight", metavar="COLUMN", help="how much a row of the table counts"),
    PROBABILITY, SEED, TABLE,
)  # fmt: skip
_VALUES = (
    option("--values", nargs="+", type=value_of, metavar="VALUE"),
    table_option("--population", "average over its rows, not the data's"),
    *_AVERAGES,
)
_COMPARISONS = (
    option(
        "column", nargs="?", metavar="COLUMN",
        help="one that the formula names; default: all of them",
    ),
    *_VALUES,
    option("--step", type=float, metavar="X", help="of numbers; default: a standard deviation"),
)  # fmt: skip


def _effects(run: StoredRun, options: argparse.Namespace, told: dict[str, Any]) -> Any:
    if options.difference is None:
        return run.ask("effects", **told)
    found = run.ask("effects", **told | {"values": options.difference})
    return found.difference(options.column, *options.difference)


def _predict(run: StoredRun, options: argparse.Namespace, told: dict[str, Any]) -> Any:
    new = told.pop("new")
    if new is None:
        return run.ask("predict", **told)
    columns = parse(str(run.data.design.formula)).columns
    return predict_complete(run, new, columns, options, told)


def _without_gaps(run: StoredRun, options: argparse.Namespace, told: Any) -> dict[str, Any]:
    """What options tell of held-out rows, those with a gap left out if so asked."""
    if told["held_out"] is None:
        return dict(told)
    formula = str(run.data.design.formula)
    table, said = complete_for([formula], told["held_out"], options)
    if said:
        complain(said)
    return {**told, "held_out": table}


def _check(run: StoredRun, options: argparse.Namespace, told: dict[str, Any]) -> Any:
    return run.ask("check", **_without_gaps(run, options, told))


_HELD_OUT = table_option(
    "--held-out",
    "rows that neither run was shown; without it observations are told from each other",
)


def _add_compare(parser: argparse.ArgumentParser) -> None:
    _HELD_OUT.add(parser)
    add_table(parser)
    add_incomplete(parser)


def _compare(first: StoredRun, second: StoredRun, options: argparse.Namespace) -> Any:
    told = _without_gaps(first, options, _HELD_OUT.told(options))
    return first.ask("compare", second.posterior, **told)


ROOM = Room(
    REGRESSION,
    "categories from covariates, groups that pool, shares of a population",
    '  pgmult regression fit survey.csv "vote ~ sex + s(age) + (1 | state)" --out run\n'
    "  pgmult regression poststratify run census.csv --by state --weight people --out shares.csv\n"
    "  pgmult regression effects run sex --difference f m",
    "categories by covariates and groups, by formula",
    draws=300, tune=50, add_fit=_add_fit, job=_job, compare=_compare,
    add_compare=_add_compare,
    questions=(
        Question(
            "predict", "probabilities in rows",
            (
                table_option(
                    "new", "with the columns of the formula; default: the cells of the data",
                    nargs="?",
                ),
                _NEW_LEVELS, *_AVERAGES, GAPS,
            ),
            ask=_predict, tidy=True,
        ),
        Question(
            "poststratify", "shares of the categories in a population",
            (
                table_option("census", "a row a cell of the population", metavar="CENSUS"),
                option("--weight", required=True, metavar="COLUMN", help="people in a cell"),
                option("--by", metavar="COLUMN", help="shares in each of its labels"),
                option(
                    "--new-levels", action="store_true", default=None,
                    help="all labels of a grouping may be new ones; default: some may",
                ),
                PROBABILITY, SEED, TABLE,
            ),
            tidy=True,
        ),
        Question(
            "effects", "probabilities if a column had certain values",
            (
                option("column", metavar="COLUMN", help="one that the formula names"),
                *_VALUES, DIFFERENCE,
            ),
            ask=_effects, draws=True,
        ),
        Question(
            "comparisons", "how probabilities differ between values of columns", _COMPARISONS,
            draws=True,
        ),
        Question(
            "contrasts", "how log odds against a category differ between values of columns",
            (
                *_COMPARISONS,
                option(
                    "--reference", metavar="CATEGORY",
                    help="of log odds; default: the most frequent",
                ),
            ),
            draws=True,
        ),
        Question(
            "groups", "effects of the levels of a grouping, sorted",
            (
                option("column", nargs="?", metavar="COLUMN", help="default: the first grouping"),
                PROBABILITY,
            ),
            draws=True,
        ),
        Question("variance-shares", "how much of the variance goes with each term", draws=True),
        Question(
            "check", "where the data are not as the model has them",
            (
                table_option("--held-out", "rows that the model was not shown"),
                option("--by", metavar="COLUMN", help="shares in each of its parts"),
                SEED, TABLE, GAPS,
            ),
            ask=_check,
        ),
        Question("loo", "how well each observation is told from all others"),
        Question(
            "export", "probabilities in all cells of the data", [PROBABILITY], "predict", tidy=True
        ),
    ),
)  # fmt: skip

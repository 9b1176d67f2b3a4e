"""``pgmult regression``: categories from covariates, groups that pool, shares of a population."""

import argparse
from pathlib import Path
from typing import Any

from pgmult.cli.actions import Question, Room
from pgmult.cli.runs import Job, StoredRun
from pgmult.cli.shared import (
    add_incomplete,
    add_probability,
    add_seed,
    add_table,
    complete,
    read_table,
    value_of,
)
from pgmult.regression.family import REGRESSION

__all__ = ["ROOM"]


def _add_fit(fit: argparse.ArgumentParser) -> None:
    fit.add_argument("table", type=Path, metavar="TABLE", help="a .csv, .tsv, .jsonl or .parquet")
    fit.add_argument(
        "formula", metavar="FORMULA",
        help='such as "vote ~ sex + s(age) + (1 | state)", or c(red, green, blue) ~ ...',
    )  # fmt: skip
    fit.add_argument("--weight", metavar="COLUMN", help="respondents that a row stands for")
    fit.add_argument(
        "--order", nargs="+", metavar="CATEGORY", help="of sticks; default: the most frequent first"
    )
    add_table(fit)
    add_incomplete(fit)


def _job(options: argparse.Namespace) -> Job:
    from pgmult.formulas.language import names_in, parse
    from pgmult.regression.models.additive import AdditiveRegression, AdditiveRows

    table, left_out = read_table(options.table, options), ""
    if options.drop_incomplete:
        asked = parse(options.formula)
        outcome = () if asked.outcome is None else names_in(asked.outcome)
        named = {str(name): name for name in (*outcome, *asked.columns, options.weight)}
        table, left_out = complete(table, named, options, "")
    data = table.rows(options.formula, weights=options.weight, order=options.order)
    if not isinstance(data, AdditiveRows):
        raise ValueError(
            f"formula must have a grouping or a curve, (1 | g) or s(x), got {options.formula!r}"
            " (others are scikit-learn estimators: pgmult.regression.from_formula)"
        )
    model = AdditiveRegression()
    notes = {
        "title": options.title
        or f"{options.formula.partition('~')[0].strip()} in {options.table.name}",
        "source": str(options.table),
        "model": options.formula,
    }
    said = (
        f"{options.table}: {data.counts.sum():,} respondents in {data.num_rows:,} cells,"
        f" {data.num_categories} categories"
    )
    said = "\n".join(filter(None, (said, left_out)))
    return Job(model, data, model.default_keep, notes, said=said)


def _report(run: StoredRun, options: argparse.Namespace | None) -> Any:
    return run.ask("report", title=run.title, facts=run.facts)


def _add_new(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("new", type=Path, metavar="TABLE", help="with the columns of the formula")
    parser.add_argument("--new-levels", action="store_true", help="groups may be new ones")
    add_probability(parser)
    add_seed(parser)
    add_table(parser)


def _predict(run: StoredRun, options: argparse.Namespace) -> Any:
    return run.ask(
        "predict", read_table(options.new, options), new_levels=options.new_levels,
        probability=options.probability, random_seed=options.seed,
    )  # fmt: skip


def _add_poststratify(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "census", type=Path, metavar="CENSUS", help="a row a cell of the population"
    )
    parser.add_argument("--weight", required=True, metavar="COLUMN", help="people in a cell")
    parser.add_argument("--by", metavar="COLUMN", help="shares in each of its labels")
    add_probability(parser)
    add_seed(parser)
    add_table(parser)


def _poststratify(run: StoredRun, options: argparse.Namespace) -> Any:
    return run.ask(
        "poststratify", read_table(options.census, options), by=options.by, weight=options.weight,
        probability=options.probability, random_seed=options.seed,
    )  # fmt: skip


def _add_effects(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("column", metavar="COLUMN", help="one that the formula names")
    parser.add_argument("--difference", nargs=2, metavar="VALUE", help="the first less the second")
    add_probability(parser)


def _effects(run: StoredRun, options: argparse.Namespace) -> Any:
    ends = None if options.difference is None else [*map(value_of, options.difference)]
    found = run.ask("effects", options.column, ends, probability=options.probability)
    return found if ends is None else found.difference(options.column, *ends)


def _add_compare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--held-out", type=Path, required=True, metavar="TABLE", help="that neither run was shown"
    )
    add_table(parser)


def _compare(first: StoredRun, second: StoredRun, options: argparse.Namespace) -> Any:
    return first.ask("compare", second.posterior, read_table(options.held_out, options))


ROOM = Room(
    REGRESSION,
    "categories from covariates, groups that pool, shares of a population",
    '  pgmult regression fit survey.csv "vote ~ sex + s(age) + (1 | state)" --out run\n'
    "  pgmult regression poststratify run census.csv --by state --weight people --out shares.csv\n"
    "  pgmult regression effects run sex --difference f m",
    "categories by covariates and groups, by formula",
    draws=500, tune=100, add_fit=_add_fit, job=_job, report=_report, compare=_compare,
    add_compare=_add_compare,
    questions=(
        Question("predict", "probabilities in the rows of a table", _predict, _add_new, tidy=True),
        Question(
            "poststratify", "shares of the categories in a population", _poststratify,
            _add_poststratify, tidy=True,
        ),
        Question(
            "effects", "probabilities if a column had certain values", _effects, _add_effects,
            draws=True,
        ),
        Question(
            "export", "probabilities in all cells of the data",
            lambda run, options: run.ask("predict"), tidy=True,
        ),
    ),
)  # fmt: skip

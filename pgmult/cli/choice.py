"""``pgmult choice``: who chooses what among alternatives, tastes, and shares of new ones."""

import argparse
from pathlib import Path
from typing import Any

from pgmult.choice.family import CHOICE
from pgmult.cli.actions import CHECK, Question, Room
from pgmult.cli.runs import Job, StoredRun
from pgmult.cli.shared import (
    add_incomplete,
    add_probability,
    add_seed,
    add_table,
    complete,
    read_table,
)


def _add_fit(fit: argparse.ArgumentParser) -> None:
    fit.add_argument(
        "table", type=Path, metavar="TABLE", help="a row an alternative of an occasion"
    )
    fit.add_argument(
        "formula", metavar="FORMULA", help='such as "taken ~ price + time + (price + time | who)"'
    )
    _add_occasion(fit, required=True)
    fit.add_argument("--alternative", metavar="COLUMN", help="what alternatives are called")
    fit.add_argument("--weight", metavar="COLUMN", help="occasions that one stands for")
    for word in ("positive", "negative"):
        fit.add_argument(
            f"--{word}", nargs="+", default=[], metavar="ATTRIBUTE",
            help=f"everybody's coefficient is {word}",
        )  # fmt: skip
    add_table(fit)
    add_incomplete(fit)


def _add_occasion(parser: argparse.ArgumentParser, required: bool = False) -> None:
    parser.add_argument(
        "--occasion", nargs="+", required=required, metavar="COLUMN",
        help="tell occasions apart" + ("" if required else "; default: all rows are one"),
    )  # fmt: skip


def _job(options: argparse.Namespace) -> Job:
    from pgmult.choice.mixed_logit import MixedLogit
    from pgmult.formulas.language import names_in, parse

    table, left_out = read_table(options.table, options), ""
    if options.drop_incomplete:
        asked = parse(options.formula)
        outcome = () if asked.outcome is None else names_in(asked.outcome)
        used = (*outcome, *asked.columns, *options.occasion, options.alternative, options.weight)
        table, left_out = complete(table, {str(name): name for name in used}, options, "")
    signs = dict.fromkeys(options.positive, 1) | dict.fromkeys(options.negative, -1)
    data = table.choices(
        options.formula, occasion=options.occasion, alternative=options.alternative,
        weights=options.weight, signs=signs,
    )  # fmt: skip
    model = MixedLogit()
    notes = {
        "title": options.title or f"Choices in {options.table.name}",
        "source": str(options.table),
        "model": options.formula,
    }
    said = f"{options.table}: {data!r}"
    return Job(
        model, data, model.default_keep, notes, said="\n".join(filter(None, (said, left_out)))
    )


def _report(run: StoredRun, options: argparse.Namespace | None) -> Any:
    return run.ask("report", title=run.title, facts=run.facts, comparison=run.comparison)


def _add_tastes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--people", action="store_true", help="of each person")
    add_probability(parser)


def _add_worth(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("per", metavar="ATTRIBUTE", help="what it is worth in units of: price")
    add_probability(parser)


def _add_predict(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("new", type=Path, metavar="TABLE", help="with the columns of the formula")
    _add_occasion(parser)
    parser.add_argument("--new-levels", action="store_true", help="people may be new, or nobody")
    add_probability(parser)
    add_seed(parser)
    add_table(parser)


def _add_simulate(parser: argparse.ArgumentParser) -> None:
    _add_predict(parser)
    parser.add_argument(
        "--by", required=True, metavar="COLUMN", help="what alternatives are called"
    )


def _predict(run: StoredRun, options: argparse.Namespace) -> Any:
    return run.ask(
        "predict", read_table(options.new, options), occasion=options.occasion,
        by=getattr(options, "by", None), new_people=options.new_levels,
        probability=options.probability, random_seed=options.seed,
    )  # fmt: skip


def _add_elasticities(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("attribute", metavar="ATTRIBUTE", help="that grows by a percent")
    parser.add_argument(
        "--by", required=True, metavar="COLUMN", help="what alternatives are called"
    )
    add_probability(parser)


ROOM = Room(
    CHOICE,
    "choices among alternatives by people whose tastes differ",
    '  pgmult choice fit trips.csv "taken ~ price + time + (price + time | who)" --occasion trip'
    " --out run\n"
    "  pgmult choice worth run price\n"
    "  pgmult choice simulate run market.csv --by mode --new-levels --out shares.csv",
    "choices by attributes of alternatives, by formula",
    draws=500, tune=200, add_fit=_add_fit, job=_job, report=_report,
    rivals=lambda run: run.ask("compare"),
    compare=lambda first, second, options: first.ask("compare", second.posterior),
    questions=(
        Question(
            "tastes", "coefficients over people, or of each",
            lambda run, o: run.ask("tastes", people=o.people, probability=o.probability),
            _add_tastes,
        ),
        Question(
            "worth", "what a unit of each attribute is worth",
            lambda run, o: run.ask("worth", o.per, probability=o.probability), _add_worth,
        ),
        Question(
            "predict", "probabilities in the rows of a table", _predict, _add_predict, tidy=True
        ),
        Question(
            "simulate", "shares of alternatives in the occasions of a table", _predict,
            _add_simulate, tidy=True,
        ),
        Question(
            "elasticities", "by how many percent shares change if an attribute grows by one",
            lambda run, o: run.ask("elasticities", o.attribute, by=o.by, probability=o.probability),
            _add_elasticities,
        ),
        CHECK,
        Question(
            "export", "probabilities of all alternatives of the data",
            lambda run, options: run.ask("predict"), tidy=True,
        ),
    ),
)  # fmt: skip

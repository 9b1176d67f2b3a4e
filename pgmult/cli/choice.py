"""``pgmult choice``: who chooses what among alternatives, tastes, and shares of new ones."""

import argparse
from pathlib import Path

from pgmult.choice.family import CHOICE
from pgmult.cli.actions import CHECK, Question, Room, effects_question
from pgmult.cli.runs import Job
from pgmult.cli.shared import (
    PROBABILITY,
    SEED,
    TABLE,
    add_incomplete,
    add_table,
    complete_for,
    option,
    read_table,
    table_option,
)


def _add_fit(fit: argparse.ArgumentParser) -> None:
    fit.add_argument(
        "table", type=Path, metavar="TABLE", help="a row an alternative of an occasion"
    )
    fit.add_argument(
        "formula", metavar="FORMULA", help='such as "taken ~ price + time + (price + time | who)"'
    )
    fit.add_argument(
        "--occasion", nargs="+", required=True, metavar="COLUMN", help="tell occasions apart"
    )
    fit.add_argument("--alternative", metavar="COLUMN", help="what alternatives are called")
    fit.add_argument("--weight", metavar="COLUMN", help="occasions that one stands for")
    for word in ("positive", "negative"):
        fit.add_argument(
            f"--{word}", nargs="+", default=[], metavar="ATTRIBUTE",
            help=f"everybody's coefficient is {word}",
        )  # fmt: skip
    add_table(fit)
    add_incomplete(fit)


def _job(options: argparse.Namespace) -> Job:
    from pgmult.choice.mixed_logit import MixedLogit

    beside = (*options.occasion, options.alternative, options.weight)
    table = read_table(options.table, options)
    table, left_out = complete_for([options.formula], table, options, *beside)
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


_BY = option("--by", required=True, metavar="COLUMN", help="what alternatives are called")
_PREDICT = (
    table_option("new", "with the columns of the formula"),
    option(
        "--occasion", nargs="+", metavar="COLUMN",
        help="tell occasions apart; default: as in the run",
    ),
    option(
        "--new-levels", to="new_people", action="store_true", help="people may be new, or nobody"
    ),
    PROBABILITY, SEED, TABLE,
)  # fmt: skip

ROOM = Room(
    CHOICE,
    "choices among alternatives by people whose tastes differ",
    '  pgmult choice fit trips.csv "taken ~ price + time + (price + time | who)" --occasion trip'
    " --out run\n"
    "  pgmult choice worth run price\n"
    "  pgmult choice simulate run market.csv --by mode --new-levels --out shares.csv",
    "choices by attributes of alternatives, by formula",
    draws=500, tune=200, add_fit=_add_fit, job=_job,
    compare=lambda first, second, options: first.ask("compare", second.posterior),
    questions=(
        Question(
            "tastes", "coefficients over people, or of each",
            (option("--people", action="store_true", help="of each person"), PROBABILITY),
        ),
        Question(
            "worth", "what a unit of each attribute is worth",
            (
                option("per", metavar="ATTRIBUTE", help="what it is worth in units of: price"),
                PROBABILITY,
            ),
        ),
        Question("predict", "probabilities in the rows of a table", _PREDICT, tidy=True),
        Question(
            "simulate", "shares of alternatives in the occasions of a table", (*_PREDICT, _BY),
            "predict", tidy=True,
        ),
        effects_question(
            "shares of alternatives if a column had certain values in the rows of --at",
            "a column of the formula",
        ),
        Question(
            "elasticities", "by how many percent shares change if an attribute grows by one",
            (
                option("attribute", metavar="ATTRIBUTE", help="that grows by a percent"),
                _BY, PROBABILITY,
            ),
        ),
        CHECK,
        Question(
            "export", "probabilities of all alternatives of the data", (), "predict", tidy=True
        ),
    ),
)  # fmt: skip

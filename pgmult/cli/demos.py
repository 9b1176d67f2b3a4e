"""``pgmult demo``: first jobs without a download."""

import argparse
from collections.abc import Callable

from pgmult.cli.actions import Demo
from pgmult.cli.shared import whole


def _topics(most: int) -> Callable[[argparse.ArgumentParser], None]:
    def add(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--topics", **whole(2, most, metavar="K"))

    return add


DEMOS = (
    Demo(
        "topics", "topics in the documentation of the installed numpy and scipy",
        "Your own texts, a line or a CSV row each:\n"
        "  pgmult topics fit articles.csv --column text --topics 50 --out run",
        draws=100, tune=400, chains=4, add=_topics(20),
    ),
    Demo(
        "effects", "what party and time do to what presidents speak of: messages that ship",
        "Your own texts with their covariates, a CSV row each:\n"
        "  pgmult topics fit speeches.csv --column text --prevalence '~ party * s(year)' \\\n"
        "    --content '~ party' --topics 50 --out run",
        draws=100, tune=150, add=_topics(12),
    ),
    Demo(
        "fields", "names of newborns over years and regions, simulated: the truth is known",
        "Your own counts, a row each:\n"
        "  pgmult fields fit names.csv --inputs year state --places us-states \\\n"
        "    --category name --count n --out run",
        draws=150, tune=100,
    ),
    Demo(
        "sequences", "year books of the weather, simulated: the truth is known",
        "Your own sequences, a row a step:\n"
        "  pgmult sequences fit visits.csv --symbol state --sequence patient --time day \\\n"
        "    --every day --state-dim 4 --out run",
        draws=400, tune=300,
    ),
    Demo(
        "regression", "a survey of twenty states, simulated: the truth is known",
        "Your own survey, a row a respondent:\n"
        '  pgmult regression fit survey.csv "vote ~ sex + s(age) + (1 | state)" --out run\n'
        "  pgmult regression poststratify run census.csv --by state --weight people",
        draws=300, tune=100,
    ),
)  # fmt: skip

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
    add_settings,
    add_table,
    complete,
    read_table,
    settings_of,
    value_of,
)
from pgmult.regression.family import REGRESSION


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
    fit.add_argument(
        "--method", choices=["sampling", "approximate"], default="sampling",
        help="draw from the posterior, or at once from an approximation (default: sampling)",
    )  # fmt: skip
    fit.add_argument(
        "--effects", choices=["sticks", "categories", "correlated", "softmax"], default="sticks",
        help="categories: slower, and the order of categories hardly matters (default: sticks)",
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
    from pgmult.formulas.language import names_in, parse
    from pgmult.regression.models.additive import AdditiveRegression

    table, left_out = read_table(options.table, options), ""
    if options.drop_incomplete:
        asked = parse(options.formula)
        outcome = () if asked.outcome is None else names_in(asked.outcome)
        named = {str(name): name for name in (*outcome, *asked.columns, options.weight)}
        table, left_out = complete(table, named, options, "")
    data = table.rows(
        options.formula, weights=options.weight, order=options.order, additive=True,
        maps=dict(_map(told, options) for told in options.map),
    )  # fmt: skip
    model = AdditiveRegression(method=options.method, effects=options.effects)
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
    return run.ask("report", title=run.title, facts=run.facts, comparison=run.comparison)


def _add_averages(parser: argparse.ArgumentParser) -> None:
    """What averages are over, and how wide intervals are."""
    add_settings(parser)
    parser.add_argument("--weight", metavar="COLUMN", help="how much a row of the table counts")
    add_probability(parser)
    add_seed(parser)
    add_table(parser)


def _averages(options: argparse.Namespace) -> dict[str, Any]:
    return {
        "at": settings_of(options) or None, "by": options.by, "weight": options.weight,
        "probability": options.probability, "random_seed": options.seed,
    }  # fmt: skip


def _add_predict(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "new", type=Path, nargs="?", metavar="TABLE",
        help="with the columns of the formula; default: the cells of the data",
    )  # fmt: skip
    parser.add_argument("--new-levels", action="store_true", help="groups may be new ones")
    _add_averages(parser)


def _predict(run: StoredRun, options: argparse.Namespace) -> Any:
    new = None if options.new is None else read_table(options.new, options)
    return run.ask("predict", new, new_levels=options.new_levels, **_averages(options))


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


def _add_column(parser: argparse.ArgumentParser, *, is_needed: bool) -> None:
    parser.add_argument(
        "column", nargs=None if is_needed else "?", metavar="COLUMN",
        help="one that the formula names" + ("" if is_needed else "; default: all of them"),
    )  # fmt: skip
    parser.add_argument("--values", nargs="+", type=value_of, metavar="VALUE")
    parser.add_argument(
        "--population", type=Path, metavar="TABLE", help="average over its rows, not the data's"
    )
    _add_averages(parser)


def _add_effects(parser: argparse.ArgumentParser) -> None:
    _add_column(parser, is_needed=True)
    parser.add_argument(
        "--difference", nargs=2, type=value_of, metavar="VALUE", help="the first less the second"
    )


def _of_column(word: str, run: StoredRun, options: argparse.Namespace, **more: Any) -> Any:
    table = options.population
    return run.ask(
        word, options.column, options.values,
        population=None if table is None else read_table(table, options),
        **_averages(options), **more,
    )  # fmt: skip


def _effects(run: StoredRun, options: argparse.Namespace) -> Any:
    if options.difference is None:
        return _of_column("effects", run, options)
    options.values = options.difference
    return _of_column("effects", run, options).difference(options.column, *options.difference)


def _add_comparisons(parser: argparse.ArgumentParser) -> None:
    _add_column(parser, is_needed=False)
    parser.add_argument(
        "--step", type=float, metavar="X", help="of numbers; default: a standard deviation"
    )


def _comparisons(run: StoredRun, options: argparse.Namespace) -> Any:
    return _of_column("comparisons", run, options, step=options.step)


def _add_contrasts(parser: argparse.ArgumentParser) -> None:
    _add_comparisons(parser)
    parser.add_argument(
        "--reference", metavar="CATEGORY", help="of log odds; default: the most frequent"
    )


def _contrasts(run: StoredRun, options: argparse.Namespace) -> Any:
    return _of_column("contrasts", run, options, step=options.step, reference=options.reference)


def _add_groups(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("column", nargs="?", metavar="COLUMN", help="default: the first grouping")
    add_probability(parser)


def _add_check(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--held-out", type=Path, metavar="TABLE", help="rows that the model was not shown"
    )
    parser.add_argument("--by", metavar="COLUMN", help="shares in each of its parts")
    add_seed(parser)
    add_table(parser)


def _check(run: StoredRun, options: argparse.Namespace) -> Any:
    table = options.held_out
    held_out = None if table is None else read_table(table, options)
    return run.ask("check", held_out, by=options.by, random_seed=options.seed)


def _add_compare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--held-out",
        type=Path,
        metavar="TABLE",
        help="rows that neither run was shown; without it respondents are told from each other",
    )
    add_table(parser)


def _compare(first: StoredRun, second: StoredRun, options: argparse.Namespace) -> Any:
    table = options.held_out
    return first.ask(
        "compare", second.posterior, None if table is None else read_table(table, options)
    )


ROOM = Room(
    REGRESSION,
    "categories from covariates, groups that pool, shares of a population",
    '  pgmult regression fit survey.csv "vote ~ sex + s(age) + (1 | state)" --out run\n'
    "  pgmult regression poststratify run census.csv --by state --weight people --out shares.csv\n"
    "  pgmult regression effects run sex --difference f m",
    "categories by covariates and groups, by formula",
    draws=500, tune=100, add_fit=_add_fit, job=_job, report=_report, compare=_compare,
    rivals=lambda run: run.ask("compare"), add_compare=_add_compare,
    questions=(
        Question("predict", "probabilities in rows", _predict, _add_predict, tidy=True),
        Question(
            "poststratify", "shares of the categories in a population", _poststratify,
            _add_poststratify, tidy=True,
        ),
        Question(
            "effects", "probabilities if a column had certain values", _effects, _add_effects,
            draws=True,
        ),
        Question(
            "comparisons", "how probabilities differ between values of columns", _comparisons,
            _add_comparisons, draws=True,
        ),
        Question(
            "contrasts", "how log odds against a category differ between values of columns",
            _contrasts, _add_contrasts, draws=True,
        ),
        Question(
            "groups", "effects of the levels of a grouping, sorted",
            lambda run, options: run.ask(
                "groups", options.column, probability=options.probability
            ),
            _add_groups, draws=True,
        ),
        Question(
            "variance-shares", "how much of the variance goes with each term",
            lambda run, options: run.ask("variance_shares"), draws=True,
        ),
        Question("check", "where the data are not as the model has them", _check, _add_check),
        Question(
            "loo", "how well each respondent is told from all others",
            lambda run, options: run.ask("loo"),
        ),
        Question(
            "export", "probabilities in all cells of the data",
            lambda run, options: run.ask("predict", probability=options.probability),
            add_probability, tidy=True,
        ),
    ),
)  # fmt: skip

"""What a run of additive regressions says of rows and of populations, in probabilities.

`predict` gives probabilities of categories in rows of a table; `poststratify` averages them over
the cells of a census, so that a sample that is not representative still tells of a population
(multilevel regression and poststratification: Gelman and Little 1997; Park, Gelman and Bafumi
2004). Both are draws; effects of a level that the data lack are drawn from the law of its grouping.
"""

from collections.abc import Iterator, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmult.core.arguments import (
    as_choice,
    as_flag,
    as_kind,
    as_list,
    as_seed,
    brief,
    under_name,
)
from pgmult.core.estimands import Estimand
from pgmult.core.labels import labels_of
from pgmult.core.reports import Report
from pgmult.core.typing import FloatArray
from pgmult.core.validate import as_nonnegative, as_positive_int
from pgmult.formulas.columns import as_mapping, cells_of_rows
from pgmult.formulas.design import Design
from pgmult.formulas.terms import GroupTerm
from pgmult.regression.models.additive import AdditiveRows
from pgmult.regression.rows import outcomes_of
from pgmult.sampling.posterior import Posterior

__all__ = [
    "compare",
    "data_of_run",
    "effects",
    "group_shares",
    "log_scores",
    "poststratify",
    "predict",
]


def predict(
    run: Posterior,
    new: Any = None,
    *,
    new_levels: bool = False,
    probability: float = 0.9,
    max_draws: int = 2000,
    random_seed: int = 0,
) -> Estimand:
    """Probabilities of the categories in rows of a table.

    Parameters
    ----------
    run : Posterior
        Of an `AdditiveRegression`.
    new : table, optional
        With the columns that the formula names; the cells of the data if left out.
    new_levels : bool
        Whether groupings may have labels that the data lack: their effects are drawn from the law
        of the grouping, one for all rows of a label.
    probability : float
        Of the intervals.
    max_draws : int
    random_seed : int
        Of effects of new levels.

    Returns
    -------
    Estimand
        Axes row and category.

    Raises
    ------
    ValueError
        If a column is missing or a label is not known.
    """
    data, as_new = data_of_run(run), as_flag(new_levels, "new_levels")
    design = data.design
    if new is not None:
        with under_name("new", of="the table"), under_name("new", of="covariates"):
            design = data.design.like(new, new_levels=as_new)
    draws = list(_probabilities(run, data, design, max_draws, random_seed))
    return Estimand(
        np.array(draws), ("row", "category"), {"category": data.categories},
        caption="Probabilities of categories.", probability=probability,
    )  # fmt: skip


def poststratify(
    run: Posterior,
    census: Any,
    *,
    by: str | None = None,
    weight: str,
    new_levels: bool = True,
    probability: float = 0.9,
    max_draws: int = 2000,
    random_seed: int = 0,
) -> Estimand:
    """Shares of the categories in a population, whole or in each of its parts.

    Parameters
    ----------
    run : Posterior
        Of an `AdditiveRegression`.
    census : table
        A row a cell of the population, with the columns that the formula names.
    by : str, optional
        A column of the census: shares are those in each of its labels.
    weight : str
        A column of the census: how many people a cell has.
    new_levels : bool
        Whether the census may have labels of groupings that the data lack, such as a state without
        respondents.
    probability, max_draws, random_seed : as of `predict`

    Returns
    -------
    Estimand
        Axes `by`, if given, and category.

    Raises
    ------
    ValueError
        If a column is missing, a label is not known or a weight negative.
    """
    data = data_of_run(run)
    with under_name("census", of="covariates"):
        given = as_mapping(census, None)
    weight = _one_of(weight, "weight", given)
    by = None if by is None else _one_of(by, "by", given)
    with under_name("census", of="covariates"):
        design = data.design.like(given, new_levels=as_flag(new_levels, "new_levels"))
    size = len(design.matrix)
    people = as_nonnegative(_cells_of(given, weight, size), f"census[{weight!r}]")
    labels = [""] * size if by is None else labels_of(_cells_of(given, by, size), by)
    parts, part = np.unique(np.asarray(labels), return_inverse=True)
    sizes = np.bincount(part, people)
    if not (sizes > 0.0).all():
        empty = str(parts[int(np.argmin(sizes))])
        raise ValueError(f"{weight} must be positive in each part, got 0 in {empty!r}")
    shares = (people / sizes[part])[:, None]
    draws = []
    for probs in _probabilities(run, data, design, max_draws, random_seed):
        sums = np.zeros((len(parts), data.num_categories))
        np.add.at(sums, part, shares * probs)
        draws.append(sums)
    found = np.array(draws)
    of = "of the population" if by is None else f"by {by}"
    axes = ("category",) if by is None else (by, "category")
    named = {"category": data.categories} | ({} if by is None else {by: parts})
    return Estimand(
        found[:, 0] if by is None else found, axes, named,
        caption=f"Shares of categories {of}.", probability=probability,
    )  # fmt: skip


def effects(
    run: Posterior,
    column: str,
    values: Sequence[Any] | None = None,
    *,
    probability: float = 0.9,
    max_draws: int = 1000,
    random_seed: int = 0,
) -> Estimand:
    """Probabilities of the categories if a column had certain values in all rows.

    Averages over the respondents, all else as it is. ``found.difference(column, a, b)`` compares
    two values.

    Parameters
    ----------
    run : Posterior
        Of an `AdditiveRegression`.
    column : str
        One that the formula names.
    values : sequence, optional
        Labels, or numbers; if left out, all labels, or the 10, 50 and 90 % quantiles.
    probability, max_draws, random_seed : as of `predict`

    Returns
    -------
    Estimand
        Axes `column` and category.

    Raises
    ------
    ValueError
        If the formula does not name the column, or a label is not known.
    """
    data = data_of_run(run)
    design, respondents = data.design, data.counts.sum(axis=1)
    given = _table_of(design)
    as_choice(column, "column", given)
    if values is None:
        known = np.asarray(given[column])
        if known.dtype.kind == "f":
            each = np.repeat(known, respondents)
            values = np.unique(np.quantile(each, [0.1, 0.5, 0.9], method="nearest")).tolist()
        else:
            values = np.unique(known).tolist()
    draws = []
    if not len(values := as_list(values, "values", "numbers or labels")):
        raise ValueError("values must hold a number or a label, got none")
    for value in values:
        if not isinstance(value, str | Real | np.generic):
            raise TypeError(f"values must be numbers or labels, got {brief(value)}")
        with under_name(f"values of {column!r}", of=f"column {column!r}"):
            there = design.like({**given, column: [value] * len(respondents)})
        found = _probabilities(run, data, there, max_draws, random_seed)
        draws.append([respondents @ probs / respondents.sum() for probs in found])
    return Estimand(
        np.array(draws).swapaxes(0, 1), (column, "category"),
        {column: list(values), "category": data.categories},
        caption=f"Probabilities of categories if all had this {column}.", probability=probability,
    )  # fmt: skip


def group_shares(run: Posterior, term: GroupTerm, max_draws: int = 1000) -> Estimand:
    """Mean probabilities of the respondents in each level of a grouping of the formula."""
    data = data_of_run(run)
    respondents = data.counts.sum(axis=1)
    people = np.bincount(term.codes, respondents, len(term.known))
    draws = []
    for probs in _probabilities(run, data, data.design, max_draws, 0):
        sums = np.zeros((len(people), data.num_categories))
        np.add.at(sums, term.codes, respondents[:, None] * probs)
        draws.append(sums / np.maximum(people, 1)[:, None])
    name = ":".join(term.variables)
    return Estimand(
        np.array(draws), (name, "category"), {name: term.levels, "category": data.categories},
        caption=f"Mean probabilities of respondents by {name}.",
    )  # fmt: skip


def log_scores(run: Posterior, max_draws: int = 1000) -> FloatArray:
    """Log probability of a new respondent, in each cell and category.

    Estimated from the respondents themselves, less what fitting them gains: the widely applicable
    information criterion (Vehtari, Gelman and Gabry 2017, eq. 12), a respondent each.

    Returns
    -------
    array, ``(num_rows, num_categories)``
    """
    data = data_of_run(run)
    sums, number = np.zeros((3, *data.counts.shape)), 0
    for probs in _probabilities(run, data, data.design, max_draws, 0):
        log_probs = np.log(np.maximum(probs, 1e-300))
        sums += np.array([probs, log_probs, log_probs**2])
        number += 1
    mean, log_mean, log_square = sums / number
    spread = (log_square - log_mean**2) * number / max(number - 1, 1)
    return np.asarray(np.log(np.maximum(mean, 1e-300)) - spread)


def compare(run: Posterior, other: Posterior, held_out: Any) -> Report:
    """Which of two runs predicts rows better that neither was shown.

    Parameters
    ----------
    run, other : Posterior
        Of an `AdditiveRegression` each, of the same outcome; their formulas may differ.
    held_out : table
        With all columns that the formulas name, and the outcome.

    Raises
    ------
    ValueError
        If a column is missing, or the runs have other categories.
    """
    each = []
    for one in (run, as_kind(other, "other", Posterior)):
        data = data_of_run(one)
        counts = outcomes_of(str(data.design.formula), held_out, data.categories)
        with under_name("held_out", of="new"):
            mean = predict(one, held_out, new_levels=True, max_draws=400).mean
        each.append((counts, np.sum(counts * np.log(np.maximum(mean, 1e-300)), axis=1)))
    (counts, first), (theirs, second) = each
    if not np.array_equal(counts, theirs):
        raise ValueError("other must be a run of the same categories as run")
    number = counts.sum()
    gain = (first - second).sum() / number
    error = float(np.sqrt(len(first)) * (first - second).std() / number)
    word = "better than" if gain > 2 * error else "worse than" if gain < -2 * error else "like"
    return Report(
        "Two runs",
        [
            f"The first predicts {number:,} respondents that neither was shown {word} the second:"
            f" {gain:+.4f} ± {error:.4f} nats each, paired by row."
        ],
    )


def data_of_run(run: Posterior) -> AdditiveRows:
    """The data of a run of an additive regression."""
    as_kind(run, "run", Posterior)
    return as_kind(run.data, "run", AdditiveRows, "a run of AdditiveRegression")


def _one_of(name: Any, argument: str, given: Mapping[str, Any]) -> str:
    if not isinstance(name, str) or name not in given:
        raise ValueError(
            f"{argument} must name a column of census ({', '.join(given)}), got {brief(name)}"
        )
    return name


def _cells_of(given: Mapping[str, Any], name: str, size: int) -> NDArray[Any]:
    return np.asarray(cells_of_rows(given, name, size).values)


def _table_of(design: Design) -> dict[str, Any]:
    """The columns that a design was made from."""
    columns, given = design.columns, {}
    for place, name in enumerate(columns.names.tolist()):
        values = columns.values[:, place]
        labels = np.asarray(columns.levels_of(place))
        given[name] = labels[values.astype(np.int64)] if len(labels) else values
    for term in design.terms:
        if isinstance(term, GroupTerm):
            for j, name in enumerate(term.variables):
                given.setdefault(name, term.known.labels[term.codes, j])
    return given


def _probabilities(
    run: Posterior, data: AdditiveRows, design: Design, max_draws: int, random_seed: int
) -> Iterator[FloatArray]:
    """Probabilities of each draw, ``(num_rows, num_categories)``."""
    rng = np.random.default_rng(as_seed(random_seed))
    link, latent = run.model.link(data), run.model.latent(data, design)
    weights, hyper = run.stack("weights"), run.stack("hyperparameters")
    count = min(as_positive_int(max_draws, "max_draws"), len(weights))
    for draw in np.linspace(0, len(weights) - 1, count).astype(np.int64):
        yield link.probs(latent.draw(rng, weights[draw], hyper[draw]))

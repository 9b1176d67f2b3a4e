"""Results of an additive regression as probabilities, for rows and for populations.

Every answer is an average of probabilities over rows, in each draw: over the observations of the
data or the cells of a census, as they are or with columns set to certain values, all together or in
parts. `predict` and `poststratify` give averages (multilevel regression and poststratification:
Gelman and Little 1997; Park, Gelman and Bafumi 2004), `effects` gives them with one column set to
each of its values, and `comparisons` and `contrasts` give differences between these, of
probabilities and of log odds. None of them reports coefficients of sticks.
"""

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pgmult.core import arguments
from pgmult.core.arguments import as_choice, as_list, as_mapping, under_name
from pgmult.core.averages import Pair, Rows, average, differences, in_words
from pgmult.core.estimands import Estimand
from pgmult.core.labels import find_labels, labels_of, value_texts
from pgmult.core.tables import ExactTable, rows_in_words
from pgmult.core.typing import Array, FloatArray
from pgmult.core.validate import as_positive_int
from pgmult.formulas import columns as cells_of
from pgmult.formulas.coding import computed_numbers
from pgmult.formulas.columns import cells_of_rows, listed, source_of
from pgmult.formulas.design import Design, table_of
from pgmult.formulas.functions import NAMED
from pgmult.formulas.language import names_in, parse
from pgmult.formulas.terms import GroupTerm, SplineTerm
from pgmult.latent.predictors import Latent
from pgmult.regression.data import AdditiveRows
from pgmult.regression.raking import rake
from pgmult.sampling.posterior import Posterior

_AT_ONCE = 1 << 18  # predictors
_AS_FAR = ("bs", *NAMED)  # functions that are known where the data are
OutcomeName = Literal["categories", "at_least", "score"]
_MEASURES: Mapping[str, tuple[str, Callable[[FloatArray, FloatArray], FloatArray]]] = {
    "difference": ("differences", np.subtract),
    "ratio": ("ratios", np.divide),
    "odds_ratio": ("odds ratios", lambda p, q: p * (1.0 - q) / ((1.0 - p) * q)),
    "derivative": ("derivatives", np.subtract),
}
_SMALL = 1e-3  # standard deviations of a column, for derivatives
_MOST_RESPONDENTS = 500  # over whom effects of groups are averaged, evenly spread


def predict(
    run: Posterior,
    new: object = None,
    *,
    at: Mapping[str, object] | None = None,
    by: str | Sequence[str] | None = None,
    weight: str | None = None,
    new_levels: bool = False,
    outcome: OutcomeName = "categories",
    probability: float = 0.9,
    max_draws: int = 2000,
    random_seed: int = 0,
) -> Estimand:
    """Probabilities of the categories in rows, or averaged over them.

    Parameters
    ----------
    run : Posterior
        Of an `AdditiveRegression`.
    new : table, optional
        Table with the columns of the formula (the data by default); if left out, the cells of the
        data, weighted by their observations.
    at : mapping from column to value or list of values, optional
        Columns to set in all rows; each value of a list is a separate setting.
    by : str or sequence of str, optional
        Answer separately for each label of a column: averages are taken over its rows of `new`.
    weight : str, optional
        Column that says how much a row counts; of `new`, and in averages.
    new_levels : bool
        Whether groupings may have labels that the data lack: their effects are drawn from the
        distribution of the grouping, one for all rows of a label. A warning says which of them look
        like labels of the data that are written otherwise, such as 1 for 01.
    outcome : {"categories", "at_least", "score"}
        Answer for each category; or, where they are ordered, for each category or a higher one, or
        for the mean score: that of the numbers that categories are, or else of their ranks from 1.
    probability : float
        Of the intervals.
    max_draws : int
        Draws to use at most, evenly spread.
    random_seed : int
        Of effects of new levels.

    Returns
    -------
    Estimand
        Axes row and category, or line and category for a file, with the lines of its rows; cells
        of the data are labelled by their columns. With `at`, `by` or `weight` the columns that are
        set to several values, those of `by`, and category.

    Raises
    ------
    ValueError
        If a column is missing, a label is not known, or a weight is negative.
    """
    may_be_new = arguments.as_flag(new_levels, "new_levels")
    rows = predicted_rows(run, new, by, weight, max_draws, random_seed, "new", may_be_new)
    rows, quantity = _of_outcome(run, rows, outcome)
    if at is None and by is None and weight is None:
        axis, labels = "row", dict[str, Any]()
        if isinstance(new, ExactTable) and new.lines is not None:
            axis, labels = new.part, {new.part: new.lines}
        elif new is None and rows.table:
            labels = {"row": rows.table}
        return Estimand(
            np.array(list(rows.probabilities(rows.table))), (axis, *rows.labels),
            {**labels, **rows.labels}, caption=f"{quantity}.", probability=probability,
        )  # fmt: skip
    words = f"{quantity}, averaged over the rows{in_words(as_mapping(at, 'at'))}."
    return average(over=rows, set=at, by=by, weight=weight, caption=words, probability=probability)


def poststratify(
    run: Posterior,
    census: object = None,
    *,
    by: str | Sequence[str] | None = None,
    weight: str | None = None,
    margins: Mapping[str, Mapping[Any, float]] | None = None,
    new_levels: bool | None = None,
    outcome: OutcomeName = "categories",
    probability: float = 0.9,
    max_draws: int = 2000,
    random_seed: int = 0,
) -> Estimand:
    """Estimate shares of the categories in a population, as a whole or by columns.

    Parameters
    ----------
    run : Posterior
        Of an `AdditiveRegression`.
    census : table, optional
        One row per cell of the population, with the columns that the formula names; needed unless
        there are `margins`.
    by : str or sequence of str, optional
        Columns of the census: shares are those in each combination of their labels.
    weight : str, optional
        Column of the census with the number of people in each cell, or an expression such as
        ``"round(share * n)"``.
    margins : mapping from a column to a mapping from its labels to people, optional
        Where only margins of the population are known: the observations are weighted so that they
        have these (`pgmult.regression.raking.rake`), and stand for the population.
    new_levels : bool, optional
        Whether the census may have labels of groupings that the data lack, such as a state without
        observations. If left out, some labels may be such, and a warning says which, but not all
        labels of a column, which would be those of the data written otherwise.
    outcome, probability, max_draws, random_seed : as in `predict`

    Returns
    -------
    Estimand
        Axes `by`, if given, and category.

    Raises
    ------
    ValueError
        If a column is missing, a label is not known or a weight negative.
    """
    if (census is None) == (margins is None):
        raise TypeError("census must be a table where there are no margins, else None")
    if census is not None and weight is None:
        raise TypeError("weight must name the column of the census with the people of each cell")
    data = data_of_run(run)
    rows = predicted_rows(run, census, by, weight, max_draws, random_seed, "census", new_levels)
    if margins is not None:
        weights = rake(rows.table, data.respondents, as_mapping(margins, "margins"))
        rows = replace(rows, weights=weights)
    rows, quantity = _of_outcome(run, rows, outcome)
    of = f"by {' and '.join(_columns_of(by))}" if _columns_of(by) else "of the population"
    caption = f"{quantity} {of}."
    shares = average(over=rows, by=by, weight=weight, caption=caption, probability=probability)
    for column in data.design.covariates if margins is None else ():
        levels = data.design.levels_of(column)
        present = set(labels_of(rows.table[column], column)) if levels else set()
        lacking = [level for level in levels if level not in present]
        if lacking:
            nobody = f"the census has nobody with {column} {', '.join(lacking)}, and the data do"
            warnings.warn(f"{nobody}: shares are of a population without them", stacklevel=2)
    return shares


def effects(
    run: Posterior,
    column: str,
    values: Sequence[object] | None = None,
    *,
    at: Mapping[str, object] | None = None,
    by: str | Sequence[str] | None = None,
    population: object = None,
    weight: str | None = None,
    outcome: OutcomeName = "categories",
    probability: float = 0.9,
    max_draws: int = 1000,
    random_seed: int = 0,
) -> Estimand:
    """Probabilities of the categories if a column had certain values in all rows.

    Averages over the observations, all else as it is. ``found.difference(column, a, b)`` compares
    two values.

    Parameters
    ----------
    run : Posterior
        Of an `AdditiveRegression`.
    column : str
        Column of the formula.
    values : sequence, optional
        Labels or numbers to compare; if left out, all labels, or the 10, 50 and 90 % quantiles.
    at, by : as in `predict`
    population : table, optional
        Table of rows to average over (the data by default).
    weight, outcome, probability, max_draws, random_seed : as in `predict`

    Returns
    -------
    Estimand
        Axes `column`, those of `at` and `by`, and category.

    Raises
    ------
    ValueError
        If the formula does not name the column, or a label is not known.
    """
    data = data_of_run(run)
    as_choice(column, "column", table_of(data.design))
    chosen = _values_of(data, column) if values is None else as_list(values, "values", "values")
    if column in (at := as_mapping(at, "at")):
        raise ValueError(f"at must not set {column!r}, whose values are asked for")
    rows = predicted_rows(run, population, by, weight, max_draws, random_seed, "population")
    rows, quantity = _of_outcome(run, rows, outcome)
    caption = f"{quantity} if all had this {column}{in_words(at)}."
    words = f"column {column!r}"
    with under_name("values", of=f"at[{column!r}]"), under_name(f"values of {words}", of=words):
        return average(
            over=rows, set={column: chosen, **at}, by=by, weight=weight, caption=caption,
            probability=probability,
        )  # fmt: skip


def comparisons(
    run: Posterior,
    column: str | None = None,
    values: Sequence[object] | None = None,
    *,
    measure: Literal["difference", "ratio", "odds_ratio", "derivative"] = "difference",
    step: float | None = None,
    at: Mapping[str, object] | None = None,
    by: str | Sequence[str] | None = None,
    population: object = None,
    weight: str | None = None,
    outcome: OutcomeName = "categories",
    probability: float = 0.9,
    max_draws: int = 1000,
    random_seed: int = 0,
) -> Estimand:
    """Compare probabilities of the categories at one value of a column with those at another.

    Probabilities are averaged over the observations with everything else unchanged, as in
    `effects`, and compared draw by draw.

    Parameters
    ----------
    run : Posterior
        Of an `AdditiveRegression`.
    column : str, optional
        Column of the formula; if left out, all but those of groupings.
    values : sequence, optional
        Labels or numbers, all compared with the first. By default all labels in order, the base
        of ``C(column, contr.treatment(base))`` first; the two values of a column that has two; the
        ends of a step about each row's number, within the range of the data; of numbers in
        ``bs(x)`` or a grouping and of dates in ``month(date)`` quantiles, unless there is a `step`.
    measure : {"difference", "ratio", "odds_ratio", "derivative"}
        What is compared: the difference of average probabilities or mean numbers; their ratio (of
        risks, or of rates); the ratio of their odds; or the average slope, dy/dx, of a column of
        numbers, per unit or per day.
    step : float, optional
        Width of the step, of dates in days; default: one standard deviation, in two digits.
    at, by, population, weight, outcome, probability, max_draws, random_seed : as in `effects`

    Returns
    -------
    Estimand
        Axes comparison (labelled by column and comparison), those of `by`, and category. Its table
        has the probability of a difference above 0; of ratios, medians.

    Raises
    ------
    ValueError
        If the formula does not name the column, or a label is not known.
    """
    at, data = as_mapping(at, "at"), data_of_run(run)
    words, contrast = _MEASURES[as_choice(measure, "measure", _MEASURES)]
    is_derivative = measure == "derivative"
    if measure == "odds_ratio" and (data.is_events or outcome == "score"):
        raise ValueError("measure must be 'ratio' or 'difference' of numbers, which have no odds")
    pairs, is_ratio = pairs_of(data, column, values, step, is_derivative), "ratio" in measure
    if is_ratio:
        pairs = [pair._replace(name=pair.name.replace(" less ", " / ")) for pair in pairs]
    rows = predicted_rows(run, population, by, weight, max_draws, random_seed, "population")
    rows, quantity = _of_outcome(run, rows, outcome)
    caption = f"{quantity}: {words}, everything else unchanged{in_words(at)}."
    answer = differences(
        pairs, over=rows, set=at, by=by, weight=weight, probability=probability, caption=caption,
        contrast=contrast,
    )  # fmt: skip
    if is_derivative:
        steps = np.array([pair.one.keywords["step"] for pair in pairs])
        return replace(answer, draws=np.moveaxis(np.moveaxis(answer.draws, 1, -1) / steps, -1, 1))
    return replace(answer, is_ratio=is_ratio, is_difference=not is_ratio)


def contrasts(
    run: Posterior,
    column: str | None = None,
    values: Sequence[Any] | None = None,
    *,
    reference: str | None = None,
    step: float | None = None,
    at: Mapping[str, Any] | None = None,
    by: str | Sequence[str] | None = None,
    population: Any = None,
    weight: str | None = None,
    probability: float = 0.9,
    max_draws: int = 1000,
    random_seed: int = 0,
) -> Estimand:
    """How log odds against a reference category change between values of a column.

    What coefficients of a multinomial logit are: log p(category) / p(reference) at one value less
    that at another, averaged over the observations, since here it may differ between them.

    Parameters
    ----------
    run : Posterior
        Of an `AdditiveRegression`.
    column, values : as in `comparisons`
    reference : str, optional
        Category that the others are compared with; the most frequent one if left out.
    step, at, by, population, weight, probability, max_draws, random_seed : as in `comparisons`
        With ``step=1`` numbers are a unit apart, as in tables of coefficients.

    Returns
    -------
    Estimand
        Axes comparison, those of `by`, and category, the reference left out.
    """
    at, data = as_mapping(at, "at"), data_of_run(run, of_categories=True)
    names = data.categories
    base = int(data.counts.sum(axis=0).argmax())
    if reference is not None:
        base = int(find_labels(names, [reference], "reference", what="argument")[0])
    others = np.delete(np.arange(len(names)), base)

    def log_odds(probs: FloatArray) -> FloatArray:
        logs = np.log(np.maximum(probs, 1e-300))
        return np.asarray(logs[:, others] - logs[:, [base]])

    rows = predicted_rows(run, population, by, weight, max_draws, random_seed, "population")
    rows = rows.mapped(log_odds, {"category": names[others]})
    against = f"Differences of log odds against {names[base]}"
    return differences(
        pairs_of(data, column, values, step), set=at, by=by, weight=weight, over=rows,
        probability=probability, caption=f"{against}, everything else unchanged{in_words(at)}.",
    )  # fmt: skip


def groups(
    run: Posterior, column: str | None = None, *, probability: float = 0.9, max_draws: int = 400
) -> Estimand:
    """Effects of the levels of a grouping: differences of probabilities from their mean level.

    Each of the observations, or 500 of them evenly spread, is given the effects of one level after
    another, and keeps everything else.

    Parameters
    ----------
    run : Posterior
        Of an `AdditiveRegression` with a grouping, such as ``(1 | region)``.
    column : str, optional
        The grouping, ``"region"`` or ``"region:sex"``; the first of the formula if left out.
    probability, max_draws : as in `predict`

    Returns
    -------
    Estimand
        Axes of the grouping and category; levels in the order of the category that differs most.

    Raises
    ------
    ValueError
        If there is no such grouping.
    """
    data = data_of_run(run)
    places: dict[str, int] = {}
    for i, one in enumerate(data.design.terms):
        if isinstance(one, GroupTerm):
            places.setdefault(":".join(one.variables), i)
    if not places:
        raise ValueError(f"run must be of a formula with a grouping, got {data.design.formula}")
    name = next(iter(places)) if column is None else as_choice(column, "column", places)
    place = places[name]
    sample = predicted_rows(run, max_draws=max_draws).spread(_MOST_RESPONDENTS)
    design = data.design.like(sample.table, num_rows=len(sample))
    term: Any = design.terms[place]
    weights = np.asarray(sample.weights)
    share = weights / weights.sum()
    levels, averages = term.known.names, []
    for level in range(len(levels)):
        terms = list(design.terms)
        terms[place] = replace(term, codes=np.full(len(share), level))
        probs = _probabilities(run, data, replace(design, terms=tuple(terms)), max_draws, 0)
        averages.append([share @ probs_of_draw for probs_of_draw in probs])
    draws = np.array(averages).swapaxes(0, 1)
    draws = draws - draws.mean(axis=1, keepdims=True)
    mean = draws.mean(axis=0)
    order = np.argsort(mean[:, int(np.ptp(mean, axis=0).argmax())], kind="stable")[::-1]
    from_mean = f"differences from the mean level of {name}, everything else unchanged"
    return Estimand(
        draws[:, order], (name, "category"), {name: levels[order], "category": data.categories},
        caption=f"{data.quantity}: {from_mean}.", probability=probability, is_difference=True,
    )  # fmt: skip


def variance_shares(run: Posterior, *, probability: float = 0.9, max_draws: int = 400) -> Estimand:
    """The share of the outcomes' variance that goes with each term of the formula.

    The variance of an outcome is that of its probabilities between observations, plus that within
    each: sum over categories of p (1 - p). The former is divided among the terms, in proportion to
    the mean of two sums of squares: of how far the probabilities move if only this term is set to
    its mean, and of how far they are from their means if only this term varies. No share is below
    0.

    Parameters
    ----------
    run : Posterior
        Of an `AdditiveRegression`.
    probability, max_draws : as in `predict`

    Returns
    -------
    Estimand
        Axis term: the terms, then ``not explained``. Shares add up to 1.
    """
    data = data_of_run(run, of_categories=True)
    link, latent = run.model.probability_link(data), run.model.latent(data)
    share = data.respondents / data.respondents.sum()
    of_weight = _terms_of_weights(data.design, latent)
    terms = list(dict.fromkeys(name for name in of_weight if name))
    columns = [np.flatnonzero(of_weight == term) for term in terms]
    designs = [latent.family.design[:, its].tocsr() for its in columns]
    per_draw = []
    for weights in chosen(run.stack("weights"), max_draws):
        psi = latent.predictors(weights)
        centre, probs = share @ psi, link.probs(psi)
        mean, squares = share @ probs, []
        for its, design in zip(columns, designs, strict=True):
            predictor = design @ weights[:, its].T
            moved = predictor - share @ predictor
            alone = link.probs(centre + moved)
            last, first = probs - link.probs(psi - moved), alone - share @ alone
            squares.append(0.5 * float(np.sum(share @ (last**2 + first**2))))
        between = float(np.sum(share @ (probs - mean) ** 2) / np.sum(mean * (1.0 - mean)))
        explained = between * np.array(squares) / max(sum(squares), 1e-300)
        per_draw.append([*explained, 1.0 - explained.sum()])
    caption = "Shares of the variance of outcomes that go with each term."
    draws, labels = np.array(per_draw), {"term": [*terms, "not explained"]}
    return Estimand(draws, ("term",), labels, caption=caption, probability=probability)


# --------------------------------------------------------------------------- rows of a run


def predicted_rows(
    run: Posterior,
    new: object = None,
    by: str | Sequence[str] | None = None,
    weight: str | None = None,
    max_draws: int = 1000,
    random_seed: int = 0,
    name: str = "new",
    new_levels: bool | None = False,
) -> Rows:
    """Return the rows of a table, or of the data, and what a run predicts for them.

    Parameters
    ----------
    run : Posterior
    new : table, optional
        The cells of the data, weighted by their observations, by default.
    by, weight : str or sequence of str, optional
        Columns beside those of the formula that are needed.
    max_draws, random_seed : int
    name : str
        What errors call the table.
    new_levels : bool, optional
        Whether groupings may have labels that the data lack; None if some, but not all may.
    """
    data = data_of_run(run)
    as_positive_int(max_draws, "max_draws")
    seed, weights = arguments.as_seed(random_seed), None
    given: Mapping[str, object] = table_of(data.design)
    wanted = [*given, *_columns_of(by)]
    if new is None:
        if weight is not None:
            raise ValueError("weight must be left out where there is no table but the data")
        weights = data.respondents
        size = len(weights)
    else:
        with in_words_of(new, name):
            given = cells_of.as_mapping(new, None)
            size = len(data.design.like(given, new_levels=True).matrix)
            numbers = computed_numbers(weight, given, size, "weight")
            given = given if numbers is None else {**given, str(weight): numbers}
    for column in _columns_of(by):
        as_choice(column if column in given else source_of(column), "by", given)
    if weight is not None:
        wanted.append(as_choice(weight, "weight", given))
    with in_words_of(new, name):
        names = dict.fromkeys([*wanted, *map(source_of, wanted)])
        there = [column for column in names if source_of(column) in given or column in given]
        cells = {column: cells_of_rows(given, column, size) for column in there}
    table = {column: one.values for column, one in cells.items()}
    may_be_new = new_levels is None or arguments.as_flag(new_levels, "new_levels")

    def probabilities(changed: Mapping[str, Any]) -> Iterator[FloatArray]:
        exact = {c: cells[c] if x is table.get(c) else x for c, x in changed.items()}
        num_rows = len(next(iter(changed.values()))) if changed else size
        with in_words_of(new, name):
            if may_be_new:
                hint = "new_levels=True" if name == "census" else None
                data.design.report_new_labels(exact, name, argument=hint, asked=bool(new_levels))
            design = data.design.like(exact, new_levels=may_be_new, num_rows=num_rows)
        return _probabilities(run, data, design, max_draws, seed)

    def order_of(column: str) -> Sequence[str] | None:
        return cells[column].order or data.design.levels_of(column) or None

    return Rows(table, probabilities, {"category": data.categories}, weights, order_of)


def _columns_of(by: object) -> list[str]:
    """The columns that rows are divided by."""
    return [] if by is None else [by] if isinstance(by, str) else arguments.as_strings(by, "by")


@contextmanager
def in_words_of(table: object, name: str) -> Iterator[None]:
    """Within this context, errors call the table by its name, and rows of a file by their lines."""
    with rows_in_words(table), under_name(name, of="the table"), under_name(name, of="covariates"):
        yield


def _of_outcome(run: Posterior, rows: Rows, outcome: str) -> tuple[Rows, str]:
    """Return rows of what is asked of ordered categories, and what it is in words."""
    data = data_of_run(run)
    as_choice(outcome, "outcome", ("categories", "at_least", "score"))
    if outcome == "categories":
        return rows, data.quantity
    if not data.is_ordered:
        raise ValueError(f"outcome must be 'categories' where these have no order, got {outcome!r}")
    names = data.categories.tolist()
    if outcome == "score":  # the numbers that categories are, or their ranks from 1
        are_numbers = all(map(cells_of.NUMBER.fullmatch, names))
        scores = np.array(names if are_numbers else range(1, len(names) + 1), dtype=np.float64)
        return rows.mapped(lambda p: p @ scores[:, None], {"category": ["score"]}), "Mean score"
    higher = {"category": [f"{name} or higher" for name in names[1:]]}
    rows = rows.mapped(lambda p: np.cumsum(p[:, ::-1], axis=1)[:, -2::-1], higher)
    return rows, "Probabilities of a category or a higher one"


def pairs_of(
    data: AdditiveRows,
    column: str | None = None,
    values: Sequence[object] | None = None,
    step: float | None = None,
    is_derivative: bool = False,
) -> list[Pair]:
    """List what to compare: each label with the first, or the ends of a step."""
    table, fixed = table_of(data.design), data.design.covariates
    if column is None and (values is not None or not fixed):
        more = " with values" if values is not None else ""
        raise ValueError(f"column must be one of {', '.join(table)}, got none{more}")
    pairs = []
    for name in fixed if column is None else [as_choice(column, "column", table)]:
        is_number, two = np.asarray(table[name]).dtype.kind in "fM", np.unique(table[name])
        if is_derivative and not (is_number and values is None and step is None):
            if column is not None:
                what = "numbers and dates, without values and step"
                raise ValueError(f"derivatives are of {what}; got {name!r}")
            continue
        by_values = step is None and (name in known_there(data.design) or len(two) == 2)
        if is_derivative or (values is None and is_number and not by_values):
            pairs.append(_step_of(data, name, table[name], step, is_derivative))
            continue
        if step is not None and column is not None:
            raise ValueError(f"step is for numbers that are compared with values near them: {name}")
        if values is None:
            base = data.design.reference_of(name)
            every = listed(two) if len(two) == 2 and is_number else _values_of(data, name)
            chosen = sorted(every, key=lambda value: value != base)
        else:
            chosen = as_list(values, "values", "values")
        if len(chosen) < 2:
            raise ValueError(f"values must be two at least to be compared, got {len(chosen)}")
        (first, *texts), (start, *others) = value_texts(chosen), chosen
        for text, value in zip(texts, others, strict=True):
            pairs.append(Pair(name, f"{text} less {first}", value, start))
    if not pairs:
        raise ValueError("the formula has no column of numbers or dates to take a derivative by")
    return pairs


def _step_of(
    data: AdditiveRows, name: str, cells: object, step: float | None, is_derivative: bool
) -> Pair:
    """Return the two ends of a step of a column, by default a standard deviation in round figures.

    A step stays where the data are; one that is asked for and wider than they are does not. That of
    a derivative is small enough for a slope.
    """
    is_date, numbers = np.asarray(cells).dtype.kind == "M", cells_of.days_or_numbers(cells)
    ends = (float(numbers.min()), float(numbers.max()))
    columns, people = data.design.columns, data.respondents
    values = columns.values[:, columns.place(name)]
    mean = np.average(values, weights=people)
    sd = float(np.sqrt(np.average((values - mean) ** 2, weights=people)))
    if is_derivative:
        width = _SMALL * sd
    elif step is None:
        width = float(f"{sd:.2g}")
        is_whole = is_date or bool((numbers == np.round(numbers)).all())
        width = max(1.0, np.round(width)) if is_whole else width
    else:
        width = arguments.as_real(step, "step")
        ends = ends if abs(width) <= ends[1] - ends[0] else (-np.inf, np.inf)
    end = partial(cells_of.moved, step=abs(width), ends=ends)
    above, below = partial(end, above=width > 0.0), partial(end, above=width <= 0.0)
    if is_derivative:
        return Pair(name, f"dy/dx, {'a day' if is_date else 'a unit'}", above, below)
    digits = np.format_float_positional(width, precision=4, fractional=False, trim="-")
    label = f"{'+' if width > 0.0 else ''}{digits}{' days' if is_date else ''}"
    return Pair(name, label, above, below)


# --------------------------------------------------------------------------- rows and draws


def data_of_run(run: Posterior, *, of_categories: bool = False) -> AdditiveRows:
    """The data of a run of an additive regression.

    Raises
    ------
    TypeError, ValueError
        If it is another run, or one of events where it must be of categories.
    """
    arguments.as_kind(run, "run", Posterior)
    data = arguments.as_kind(run.data, "run", AdditiveRows, "a run of AdditiveRegression")
    if of_categories and data.is_events:
        raise ValueError(f"run must be of categories, got events of {data.categories[0]}")
    return data


def _values_of(data: AdditiveRows, column: str) -> list[object]:
    """Labels of a column, or the 10, 50 and 90 % quantiles of numbers."""
    cells = np.asarray(table_of(data.design)[column])
    if cells.dtype.kind in "fM":  # labels are shown also where nobody has them
        cells = data.each_of(cells)
    return cells_of.label_or_quantile_values(cells, data.design.levels_of(column))


def known_there(design: Design) -> set[str]:
    """Columns of B-splines, months, weekdays and groupings: known where the data are alone."""
    nodes = [node for term in parse(str(design.formula)).terms for node in term]
    groups = [name for term in design.groupings for name in term.variables]
    names = [name for node in nodes if node.function in _AS_FAR for name in names_in(node)]
    return {*names, *groups, *map(source_of, groups)}


def _terms_of_weights(design: Design, latent: Latent) -> NDArray[np.str_]:
    """The term that each weight belongs to; empty for the intercept."""
    curves = {}  # the straight line of s(x) is the column x, and that of g:s(x) is g:x
    for t in design.terms:
        if isinstance(t, SplineTerm):
            pieces = (t.expressions[0] if p.startswith("s(") else p for p in t.name.split(":"))
            curves[":".join(pieces)] = t.name
    columns = [re.sub(r"\[[^\]]*\]", "", name) for name in design.names.tolist()]
    names = ["" if name == "Intercept" else curves.get(name, name) for name in columns]
    for piece in latent.pieces[1:]:
        owner = next(t for t in design.terms if piece.names[0].startswith(f"{t.name}["))
        names += [owner.title] * len(piece.names)
    return np.array(names, dtype=np.str_)


def chosen(draws: Array, max_draws: int) -> NDArray[Any]:
    """Choose at most so many draws, evenly spread over the chains."""
    count = min(as_positive_int(max_draws, "max_draws"), len(draws))
    return draws[((np.arange(count) + 0.5) * len(draws) / count).astype(np.int64)]


def _probabilities(
    run: Posterior, data: AdditiveRows, design: Design, max_draws: int, random_seed: int
) -> Iterator[FloatArray]:
    """Probabilities of each draw, ``(num_rows, num_categories)``."""
    link, latent = run.model.probability_link(data), run.model.latent(data, design)
    weights = chosen(run.stack("weights"), max_draws)
    if any(piece.fresh is not None for piece in latent.pieces):
        rng, hyper = np.random.default_rng(random_seed), run.stack("hyperparameters")
        for batch, x in zip(weights, chosen(hyper, max_draws), strict=True):
            yield link.probs(latent.draw(rng, batch, x))
        return
    few = max(1, _AT_ONCE // (len(design.matrix) * weights.shape[1]))
    for first in range(0, len(weights), few):
        yield from link.probs(latent.predictors(weights[first : first + few]))

"""Conjoint and best-worst results: importances, scores, marginal means and AMCEs.

Importances and scores are of the taste model. Marginal means and average marginal component effects
(AMCEs) need no model where levels were assigned at random (Hainmueller, Hopkins and Yamamoto 2014,
"Causal inference in conjoint analysis"; Leeper, Hobolt and Tilley 2020, "Measuring subgroup
preferences in conjoint experiments"): their draws are those of the Bayesian bootstrap of people
(Rubin 1981), so that intervals are those of clustered standard errors.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from pgmult.choice import people
from pgmult.choice.data import ChoiceRows
from pgmult.core.arguments import as_choice, as_seed
from pgmult.core.estimands import Estimand
from pgmult.core.typing import FloatArray
from pgmult.formulas.design import table_of
from pgmult.sampling.posterior import Posterior

_PEOPLE = 512  # points of the population, for each draw
_FEW = 8  # different numbers of a column that are levels
_BOOTSTRAP = 1000  # draws


def _part_worths(run: Posterior, columns: Mapping[str, list[object]], max_draws: int) -> FloatArray:
    """Utilities of levels, ``(num_draws, num_levels, num_people)``, columns one after the other."""
    data = people.data_of_run(run).of_best
    pairs = [(name, level) for name, levels in columns.items() for level in levels]
    rows = [people.with_column(data, name, level) for name, level in pairs]
    x, offset = np.stack([each.x.mean(axis=0) for each in rows]), [r.offset.mean() for r in rows]
    mean, cov, fixed = people.thinned(run, max_draws, "mean", "cov", "coefficients")
    rng, out = np.random.default_rng(0), []
    for s in range(len(mean)):
        z = people.normal_points(_PEOPLE, mean.shape[1], rng)
        coef = data.coefficients_of(mean[s] + z @ np.linalg.cholesky(cov[s]).T)
        alike = x[:, data.fixed] @ fixed[s] + offset
        out.append(x[:, data.random] @ coef.T + alike[:, None])
    return np.stack(out)


def importances(run: Posterior, *, max_draws: int = 200, probability: float = 0.9) -> Estimand:
    """Relative importance of attributes: the range of a person's utilities over the levels of each.

    The ranges of a person are divided by their sum, and averaged over people (in percent). Numbers
    range from the smallest to the largest of the data.

    Parameters
    ----------
    run : Posterior
    max_draws : int
    probability : float

    Returns
    -------
    Estimand
        Along ``attribute``.
    """
    columns = _levels(people.data_of_run(run).of_best)
    u = _part_worths(run, columns, max_draws)
    starts = np.append(0, np.cumsum([len(levels) for levels in columns.values()]))[:-1]
    spans = np.maximum.reduceat(u, starts, axis=1) - np.minimum.reduceat(u, starts, axis=1)
    shares = 100.0 * (spans / np.maximum(spans.sum(axis=1, keepdims=True), 1e-300)).mean(axis=2)
    caption = "Importance of attributes, in percent: ranges of utilities, as means over people."
    return people.answer(shares, {"attribute": list(columns)}, caption, probability)


def _levels(data: ChoiceRows) -> dict[str, list[object]]:
    """Levels of attributes, in their order: labels, few numbers, or the ends of many."""
    table, out = table_of(data.design), dict[str, list[object]]()
    rows = np.flatnonzero(~data.is_none)
    for name, labels in people.attributes_of(data).items():
        values = list(labels) if labels else np.unique(table[name][rows]).tolist()
        if len(values) < 2:
            continue  # the constant of "none of these"
        out[name] = values if labels or len(values) <= _FEW else [values[0], values[-1]]
    return out


def scores(
    run: Posterior, column: str | None = None, *, max_draws: int = 200, probability: float = 0.9
) -> Estimand:
    """Scores of the levels of a column that add up to 100, as those of MaxDiff.

    A score is the percentage of people who would choose the level among all levels of the column,
    all else equal.

    Parameters
    ----------
    run : Posterior
    column : str, optional
        Column of the items; the only column of labels if left out.
    max_draws : int
    probability : float

    Returns
    -------
    Estimand
        Along `column`.

    Raises
    ------
    ValueError
        If there is no such column of labels.
    """
    attributes = people.attributes_of(people.data_of_run(run).of_best)
    labels = {name: list[object](levels) for name, levels in attributes.items() if levels}
    if column is None and len(labels) == 1:
        column = next(iter(labels))
    name = as_choice(column, "column", list(labels))
    u = _part_worths(run, {name: labels[name]}, max_draws)
    p = np.exp(u - u.max(axis=1, keepdims=True))
    shares = 100.0 * (p / p.sum(axis=1, keepdims=True)).mean(axis=2)
    caption = f"Scores of {name}, with sum 100: the percentage of people who would choose each."
    return people.answer(shares, {name: labels[name]}, caption, probability)


def marginal_means(
    run: Posterior, *, by: str | None = None, probability: float = 0.9, random_seed: int = 0
) -> Estimand:
    """Share of profiles with each level that were chosen, as observed (marginal means).

    Parameters
    ----------
    run : Posterior
    by : str, optional
        Column that divides occasions into groups, such as the party of the respondent.
    probability : float
    random_seed : int

    Returns
    -------
    Estimand
        Along ``level``, or the groups of `by` and ``level``.
    """
    draws, axes = _by_design(run, by, random_seed, against_first=False)
    caption = "Marginal means: share of profiles with a level that were chosen."
    return people.answer(draws, axes, caption, probability)


def amce(
    run: Posterior, *, by: str | None = None, probability: float = 0.9, random_seed: int = 0
) -> Estimand:
    """Average marginal component effects: differences from an attribute's first level.

    The share of profiles chosen is regressed on all levels at once, by least squares, as observed.

    Parameters
    ----------
    run : Posterior
    by : str, optional
        Column that divides occasions into groups, such as the party of the respondent.
    probability : float
    random_seed : int

    Returns
    -------
    Estimand
        Along ``level``, or the groups of `by` and ``level``.
    """
    draws, axes = _by_design(run, by, random_seed, against_first=True)
    caption = "AMCE: change of the share of profiles chosen, against the first level."
    return people.answer(draws, axes, caption, probability, is_difference=True)


def _by_design(
    run: Posterior, by: str | None, random_seed: int, *, against_first: bool
) -> tuple[FloatArray, dict[str, Any]]:
    """Shares chosen by level, or least squares on all levels, by the bootstrap in each group."""
    data = people.data_of_run(run).of_best
    table, names, columns = table_of(data.design), [], [np.ones(data.num_rows)]
    for name, levels in _levels(data).items():
        cells = table[name]
        many = not data.design.levels_of(name) and len(np.unique(cells)) > _FEW
        if many and not against_first:
            continue
        for level in levels[against_first:]:
            text = f"{level:g}" if isinstance(level, float) else level
            names.append(name if many else f"{name}[{text}]")
            columns.append(cells if many else 1.0 * (cells == level))
    totals, who = data.totals[data.occasion_of_row], data.cluster[data.occasion_of_row]
    x = np.column_stack([*columns, data.taken / np.maximum(totals, 1e-300)])
    levels_of_by, code = data.labels(by)
    rng, out = np.random.default_rng(as_seed(random_seed)), []
    weights = rng.standard_exponential((_BOOTSTRAP, int(who.max()) + 1))
    for g in range(len(levels_of_by)):
        rows = np.flatnonzero((code == g) & ~data.is_none)
        of_people = sparse.csr_array((totals[rows], (who[rows], rows)), (weights.shape[1], len(x)))
        products = (of_people @ (column[:, None] * x) for column in x[:, :-1].T)
        sums = np.stack([weights @ product for product in products], axis=1)
        if against_first:
            inverse = np.linalg.pinv(sums[:, :, :-1], hermitian=True)
            out.append(np.einsum("sij,sj->si", inverse, sums[:, :, -1])[:, 1:])
        else:
            square = np.diagonal(sums, axis1=1, axis2=2)[:, 1:]
            out.append(sums[:, 1:, -1] / np.maximum(square, 1e-300))
    if by is None:
        return out[0], {"level": names}
    return np.stack(out, axis=1), {by: levels_of_by.names, "level": names}

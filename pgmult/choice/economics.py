"""Worth, elasticities, welfare and diversion: what the model predicts when the table changes.

None of these reads a coefficient: each is a derivative or a difference of predicted utilities and
shares in the columns of the table (Train 2009, "Discrete choice methods with simulation", 3.5 and
3.6), at the data's people by default. So an attribute may stand in several terms of the formula.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from pgmult.choice import people
from pgmult.choice.data import ChoiceRows, rows_like
from pgmult.core.arguments import as_choice, as_flag, as_mapping, as_seed, under_name
from pgmult.core.estimands import Estimand
from pgmult.core.typing import FloatArray, IntArray
from pgmult.formulas.design import table_of
from pgmult.formulas.language import names_in, parse
from pgmult.sampling.posterior import Posterior

_POINTS = 4096  # people of a median over the population
_SURE = 0.99
_SAME = 1e-6  # relative error of derivatives


def settings_of(
    data: ChoiceRows, at: Mapping[str, object] | None
) -> tuple[dict[str, list[object]], list[ChoiceRows]]:
    """Columns that are set, with their values, and the data for each combination of these."""
    asked = {name: list(np.atleast_1d(values)) for name, values in as_mapping(at, "at").items()}
    settings = [data]
    for name, values in asked.items():
        as_choice(name, "at", [column for column in table_of(data.design) if column != data.named])
        with under_name("at", of=f"column {name!r}"):
            settings = [people.with_column(one, name, x) for one in settings for x in values]
    return asked, settings


def _stands_with(data: ChoiceRows, column: str) -> bool:
    """Whether a column has a coefficient for each alternative."""
    terms = parse(str(data.design.formula)).terms
    fixed = [term for term in terms if not any("|" in str(node) for node in term)]
    names = [{name for node in term for name in names_in(node)} for term in fixed]
    return any({column, data.named} <= of_term for of_term in names)


def _changes(data: ChoiceRows, per: str, by_alternative: bool) -> dict[str, FloatArray]:
    """What attributes add to utilities: derivatives, or differences from the first label."""
    out: dict[str, FloatArray] = {}
    for name, levels in people.attributes_of(data).items():
        if name == per or (name == data.named and by_alternative):
            continue
        if not levels:
            out[name] = people.slopes_in(data, name)[0]
            continue
        rows = [people.with_column(data, name, level) for level in levels]
        sides = [np.column_stack([each.x, each.offset]) for each in rows]
        for level, side in zip(levels[1:], sides[1:], strict=True):
            out[f"{name}[{level}]"] = side - sides[0]
    return {name: change for name, change in out.items() if not np.allclose(change, 0.0)}


def worth(
    run: Posterior, per: str = "price", *, at: Mapping[str, object] | None = None,
    by: str | None = None, max_draws: int = 200, probability: float = 0.9,
) -> Estimand:  # fmt: skip
    """Willingness to pay: how much of `per` makes up for one unit of each other attribute.

    It is the ratio of two derivatives of the utility, at the rows of the data and for people of the
    population. Where the effect of `per` is the same for all of them, the worth is the mean over
    people; otherwise it is the median, as a ratio has no mean where its denominator may be 0. What
    people like has a positive worth if `per` is a cost. Labels are compared with the first one.

    Parameters
    ----------
    run : Posterior
    per : str
        Column of the price.
    at : mapping from column to a value, or to several, optional
        Values of columns in all rows, such as ``{"income": [20, 80]}``.
    by : str, optional
        Column that divides the rows into groups; that of alternatives where the coefficient of
        `per` is by alternative.
    max_draws : int
    probability : float

    Returns
    -------
    Estimand
        Along the columns of `at`, the groups of `by` and ``attribute``.

    Raises
    ------
    ValueError
        If `per` is not a column of numbers that differs within occasions.
    """
    data = people.data_of_run(run).of_best
    attributes = people.attributes_of(data)
    as_choice(per, "per", [name for name, levels in attributes.items() if not levels])
    if len(attributes) < 2:
        raise ValueError(f"the formula must have another attribute than {per}, got none")
    by_alternative = _stands_with(data, per)
    by = data.named if by is None and by_alternative else by
    levels, group = data.labels(by)
    draws, names, price_of = [], list[str](), np.empty(0)
    asked, settings = settings_of(data, at)
    for rows in settings:
        changes = _changes(rows, per, by_alternative)
        names, price = list(changes), people.slopes_in(rows, per)[0]
        stacked = np.stack([price, *changes.values()], axis=1)
        ratios, price_of = _ratios(run, rows, stacked, group, len(levels), max_draws)
        draws.append(ratios)
    negative = float(np.mean(price_of < 0.0))
    caption = f"Worth of a unit of each attribute, in units of {per}"
    varies = np.isin(np.flatnonzero(np.abs(price).max(axis=0)), data.random).any()
    caption += ": medians over people." if varies else "."
    wrong, columns = min(negative, 1.0 - negative), data.names.tolist()
    if per in data.names[data.random[data.signs != 0.0]]:
        mean = people.population(run)[0]
        ratio = np.median(mean / mean[:, [columns.index(per)]], axis=0)
        ratio_of = dict(zip(columns, -ratio, strict=True))
        listed = [f"{name} {ratio_of[name]:.3g}" for name in names if name in ratio_of]
        caption += (
            f" The sign of {per} is an assumption of the model, which the choices do not test."
            f" (Ratios of mean coefficients, which the few who care most about {per} dominate:"
            f" {', '.join(listed)}.)"
        )
    elif wrong > 1.0 - _SURE:
        likely, other = ("dislike", "like")[:: 1 if negative > 0.5 else -1]
        caption += (
            f" People {likely} {per} on average, or {other} it with probability"
            f" {wrong:.2f}: each worth then has the other sign, and may be of any size."
        )
    axes = asked | ({} if by is None else {by: levels.names}) | {"attribute": names}
    signed = people.of_settings(draws, axes) * (1.0 if negative < 0.5 else -1.0)
    return people.answer(signed, axes, caption, probability, is_ratio=True)


def _ratios(
    run: Posterior, data: ChoiceRows, changes: FloatArray, group: IntArray, num_groups: int,
    max_draws: int,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Changes divided by the first one, ``(num_draws, num_groups, num_changes - 1)``.

    Parameters
    ----------
    changes : array, ``(num_rows, num_changes, num_columns + 1)``
        Derivatives of attributes and of the offset.
    group : int array, ``(num_rows,)``

    Returns
    -------
    ratios : array
    array, ``(num_draws,)``
        Mean derivative of the utility in the price.
    """
    weight = (data.totals / np.diff(data.occasions))[data.occasion_of_row]
    flat = np.column_stack([group, changes.reshape(len(group), -1)])
    digits = np.maximum(np.abs(flat).max(axis=0), 1e-300) * _SAME
    rounded = np.round(flat / digits)
    _, first, which = np.unique(rounded, axis=0, return_index=True, return_inverse=True)
    weight = np.bincount(which.reshape(-1), weight).astype(np.float64)
    group, changes, size = group[first], changes[first], changes.shape[1]
    random, fixed, prices = data.random, data.fixed, changes[:, 0]
    mean, cov, coefficients = people.thinned(run, max_draws, "mean", "cov", "coefficients")
    by_group = np.zeros((num_groups, size, changes.shape[2]))
    np.add.at(by_group, group, weight[:, None, None] * changes)
    by_group /= np.maximum(np.bincount(group, weight, num_groups), 1e-300)[:, None, None]
    alike = np.allclose(prices, by_group[group, 0], rtol=10.0 * _SAME)
    differs = np.abs(prices[:, random]).max(initial=0.0) > 0.0 or not alike
    average = np.column_stack([people.population(run, max_draws)[0], np.ones(len(mean))])
    averages = np.einsum("gjk,sk->sgj", by_group, average)
    price_of = averages[:, :, 0] @ np.bincount(group, weight, num_groups)
    if not differs:
        return averages[:, :, 1:] / averages[:, :, :1], price_of
    row = np.repeat(np.arange(len(group)), max(1, _POINTS // len(group)))
    points, rng = 1 << int(np.ceil(np.log2(len(row)))), np.random.default_rng(0)
    out = np.empty((len(mean), num_groups, size - 1))
    for s in range(len(mean)):
        z = people.normal_points(points, len(random), rng)
        coef = data.coefficients_of(mean[s] + z @ np.linalg.cholesky(cov[s]).T)
        coef = np.resize(coef, (len(row), len(random)))
        u = np.einsum("rjk,rk->rj", changes[row][:, :, random], coef)
        u += (changes[:, :, fixed] @ coefficients[s] + changes[:, :, -1])[row]
        out[s] = _medians(u[:, 1:] / u[:, :1], weight[row], group[row], num_groups)
    return out, price_of


def _medians(values: FloatArray, weight: FloatArray, group: IntArray, size: int) -> FloatArray:
    """Weighted medians of columns in each of so many groups, ``(num_groups, num_columns)``."""
    out = np.full((size, values.shape[1]), np.nan)
    for g in range(size):
        rows = np.flatnonzero(group == g)
        for j, column in enumerate(values[rows].T if len(rows) else []):
            order = np.argsort(column)
            below = np.cumsum(weight[rows][order])
            ends = np.searchsorted(below, 0.5 * below[-1] * np.array([1.0 - 1e-9, 1.0 + 1e-9]))
            out[g, j] = column[order[np.minimum(ends, len(rows) - 1)]].mean()
    return out


def elasticities(
    run: Posterior, column: str, *, by: str | None = None, at: Mapping[str, object] | None = None,
    max_draws: int = 200, probability: float = 0.9,
) -> Estimand:  # fmt: skip
    """Elasticities: by how many percent shares change if a column grows by one percent.

    Shares are those of the labels of `by` over all choices of the data. A column that differs
    within occasions grows for one label at a time; one of the person grows in all rows.

    Parameters
    ----------
    run : Posterior
    column : str
        Column of numbers.
    by : str, optional
        Column of the labels whose shares change; that of alternatives if left out.
    at : mapping from column to a value, or to several, optional
        Values of columns in all rows, such as ``{"income": [20, 80]}``.
    max_draws : int
    probability : float

    Returns
    -------
    Estimand
        Along the columns of `at`; `by`, whose share changes; and ``"changed"``, whose column grows,
        if it differs within occasions.

    Notes
    -----
    With v_s the derivative of the utility of alternative s in its own log x_s, that of p_r is
    v_s p_r ((r = s) - p_s) (Train 2009, 3.6).
    """
    data = people.data_of_run(run).of_best
    as_choice(column, "column", list(table_of(data.design)))
    by = (data.named or "") if by is None else by
    levels, of_row = data.labels(by)
    within, number, draws = column in people.attributes_of(data), len(levels), []
    asked, settings = settings_of(data, at)
    for rows in settings:
        slopes, cells = people.slopes_in(rows, column)
        slopes, out = slopes * cells[:, None], []
        for draw in people.people_draws(run, rows, max_draws):
            p, pull = draw.probs[:, 0], draw.linear(slopes[:, :-1], slopes[:, -1])[:, 0]
            shares, pulls = (_by_label(rows, of_row, number, x) for x in (p, p * pull))
            total = np.maximum(rows.totals @ shares, 1e-300)
            change = np.diag(rows.totals @ pulls) - (rows.totals[:, None] * shares).T @ pulls
            out.append((change if within else change.sum(axis=1, keepdims=True)) / total[:, None])
        draws.append(np.stack(out))
    axes = asked | {by: levels.names} | ({"changed": levels.names} if within else {})
    caption = f"Elasticities of shares in {column}."
    return people.answer(people.of_settings(draws, axes), axes, caption, probability)


def _by_label(data: ChoiceRows, of_row: IntArray, size: int, values: FloatArray) -> FloatArray:
    """Sums over the rows of each label in each occasion, ``(num_occasions, num_labels)``."""
    sums = np.bincount(data.occasion_of_row * size + of_row, values, data.num_occasions * size)
    return np.asarray(sums.reshape(-1, size))


def surplus(
    run: Posterior, new: object, per: str | None = "price", *,
    occasion: str | Sequence[str] | None = None, by: str | None = None, new_people: bool = False,
    max_draws: int = 200, probability: float = 0.9, random_seed: int = 0,
) -> Estimand:  # fmt: skip
    """Change of consumer surplus from the data to another table, per choice.

    The expected maximum utility of an occasion, the log of the sum of exp(utility), is divided by
    the person's marginal utility of money, minus the derivative of the utility in the price (Small
    and Rosen 1981, "Applied welfare economics with discrete choice models"). The change is the mean
    in the new table less the mean in the data.

    Parameters
    ----------
    run : Posterior
    new : table, data frame or mapping
        Table with the columns of the formula, such as that of the data at other prices.
    per : str or None
        Column of the price; None for the change of expected utility itself.
    occasion : str or sequence of str, optional
        Columns that identify the occasions of `new`; those of the data if left out.
    by : str, optional
        Column that divides occasions into groups, in both tables.
    new_people : bool
        Whether `new` may have people who are not in the data.
    max_draws : int
    probability : float
    random_seed : int

    Returns
    -------
    Estimand
        Along the groups of `by`, or ``"choices"`` with the one label "all".

    Raises
    ------
    ValueError
        If the effect of the price is not linear, or may be 0 for some people: people must share
        it, or it must have a sign (``signs=``).
    """
    data, seed = people.data_of_run(run).of_best, as_seed(random_seed)
    later, codes = rows_like(data, new, occasion, as_flag(new_people, "new_people"))
    if per is not None:
        as_choice(per, "per", people.numeric_attributes(data))
    values, names = [], list[str]()
    for rows, which in ((data, None), (later, codes)):
        levels, group = rows.labels(by)
        labels = levels.names.tolist()
        if names and labels != names:
            raise ValueError(f"by must have the same labels in both tables, got {names}, {labels}")
        slopes = None if per is None else people.slopes_in(rows, per)[0]
        if slopes is not None:
            _check_money(rows, slopes, str(per))
        first, draws, names = rows.occasions[:-1], [], labels
        for draw in people.people_draws(run, rows, max_draws, which, seed):
            worth_of = np.logaddexp.reduceat(draw.utilities, first)
            if slopes is not None:
                worth_of /= -draw.linear(slopes[:, :-1], slopes[:, -1])[first]
            weight = rows.totals * worth_of.mean(axis=1)
            draws.append(np.bincount(group[first], weight) / np.bincount(group[first], rows.totals))
        values.append(np.stack(draws))
    what = "expected utility" if per is None else f"consumer surplus in units of {per}"
    axes, caption = {by or "choices": names}, f"Change of {what}, per choice."
    return people.answer(values[1] - values[0], axes, caption, probability, is_difference=True)


def _check_money(data: ChoiceRows, slopes: FloatArray, per: str) -> None:
    """Refuse a price whose effect is not linear, or not of one sign for all people."""
    if not np.allclose(slopes, slopes[data.first_row], rtol=1e-5, atol=1e-8 * np.abs(slopes).max()):
        wanted = "linear and the same for all alternatives of an occasion"
        raise ValueError(f"the effect of {per} must be {wanted} (per=None has expected utility)")
    if np.abs(slopes[:, data.random[data.signs == 0.0]]).max(initial=0.0) > 0.0:
        raise ValueError(
            f"the coefficient of {per} must have one sign for a surplus in its units (leave it out"
            f" of the grouping, or fit with --negative {per}, signs={{{per!r}: -1}})"
        )


def diversion(
    run: Posterior, by: str | None = None, *, without: object = None, max_draws: int = 200,
    probability: float = 0.9,
) -> Estimand:  # fmt: skip
    """Where the buyers of an alternative go if it is taken away, or came from when it was new.

    The diversion ratio from a to r is the share of those who choose a that would choose r instead
    (Conlon and Mortimer 2021, "Empirical properties of diversion ratios").

    Parameters
    ----------
    run : Posterior
    by : str, optional
        Column of the alternatives.
    without : label, optional
        Alternative to take away: market shares with and without it instead of diversion ratios.
    max_draws : int
    probability : float

    Returns
    -------
    Estimand
        Along ``"removed"`` and `by`; or ``"market"`` (with, without, change) and `by`.

    Raises
    ------
    ValueError
        If there is no such column or label.
    """
    data = people.data_of_run(run).of_best
    by = (data.named or "") if by is None else by
    levels, of_row = data.labels(by)
    size, names, out = len(levels), levels.names.tolist(), []
    weight = data.totals / data.totals.sum()
    for draw in people.people_draws(run, data, max_draws):
        p = _by_label(data, of_row, size, draw.probs[:, 0])
        left = p / np.maximum(1.0 - p, 1e-12)
        flows = (weight[:, None] * left).T @ p
        flows[np.diag_indices(size)] = 0.0
        out.append((weight @ p, flows))
    shares, flows = (np.stack(draws) for draws in zip(*out, strict=True))
    if without is None:
        caption = "Diversion: shares of the choices of a removed alternative that go to each other."
        ratios = flows / np.maximum(shares, 1e-300)[:, :, None]
        return people.answer(ratios, {"removed": names, by: names}, caption, probability)
    with under_name("without", of=f"column {by!r}"):
        place = int(levels.find([[without]])[0])
    after = shares + flows[:, place]
    after[:, place] = 0.0
    market = np.stack([shares, after, after - shares], axis=1)
    axes = {"market": ["with", "without", "change"], by: names}
    caption = f"Shares of {by} with and without {without}."
    return people.answer(market, axes, caption, probability)

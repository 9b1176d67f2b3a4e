"""Results of a choice model: tastes, willingness to pay, and shares of alternatives.

All results are posterior draws: coefficients in the units of the attributes, ratios of
coefficients, and probabilities of the alternatives in any table, for people in the data and for new
people.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import logsumexp

from pgmult.choice import people
from pgmult.choice.compiled.people import slopes_rows
from pgmult.choice.data import ChoiceRows, rows_like
from pgmult.choice.mixed_logit import MixedLogit
from pgmult.choice.people import answer, data_of_run, population, thinned
from pgmult.choice.pilot import Frame, laid_out, sites_of
from pgmult.core.arguments import as_choice, as_flag, as_list, as_mapping, as_seed, under_name
from pgmult.core.checks import PredictiveChecks
from pgmult.core.comparison import Comparison
from pgmult.core.estimands import Estimand
from pgmult.core.scores import Score
from pgmult.core.tables import ExactTable
from pgmult.core.typing import Array, FloatArray, IntArray
from pgmult.formulas.columns import label_or_quantile_values
from pgmult.formulas.design import table_of
from pgmult.sampling.driver import sample
from pgmult.sampling.posterior import Posterior

_DRAWS = 200
_HELD_OUT_DRAWS = 100
_MOST_CELLS = 1e8  # rows, points and draws of people who are left out
_WIDER, _DEFENSIVE = 1.5, 0.25  # variance and share of proposals, of a person and of the population
_FEW, _BINS = 8, 5  # different numbers of a column that are levels; else bins


def tastes(run: Posterior, *, people: bool = False, probability: float = 0.9) -> Estimand:
    """Coefficients: their means and standard deviations over people, or those of each person.

    Parameters
    ----------
    run : Posterior
    people : bool
        Whether to return each person's coefficients, of the attributes for which people differ; the
        run must have kept ``tastes``.
    probability : float

    Returns
    -------
    Estimand
        Along ``attribute`` and ``over people`` (mean, sd); or ``person`` and ``attribute``.
    """
    data = data_of_run(run)
    if as_flag(people, "people"):
        axes = {"person": data.person_names, "attribute": data.names[data.random]}
        draws = data.coefficients_of(run.stack("tastes"))
        return answer(draws, axes, "Coefficients of each person.", probability)
    axes = {"attribute": data.names, "over people": np.array(["mean", "sd"])}
    draws = np.stack(population(run), axis=2)
    return answer(draws, axes, "Coefficients over the population.", probability)


def correlations(run: Posterior, *, probability: float = 0.9) -> Estimand:
    """Correlations of tastes; of the logs of coefficients whose sign is fixed."""
    data, cov = data_of_run(run), run.stack("cov")
    sds = np.sqrt(np.diagonal(cov, axis1=1, axis2=2))
    axes = dict.fromkeys(("attribute", "other attribute"), data.names[data.random])
    ratios = cov / sds[:, :, None] / sds[:, None, :]
    return answer(ratios, axes, "Correlations of tastes over people.", probability)


def _drawn_probs(
    run: Posterior, data: ChoiceRows, max_draws: int, codes: IntArray | None = None, seed: int = 0
) -> Iterator[FloatArray]:
    """Probabilities of rows, a draw after the other; code -1 is a person who is not in the data."""
    for draw in people.people_draws(run, data, max_draws, codes, seed):
        yield draw.probs.mean(axis=1)


def predict(
    run: Posterior, new: object = None, *, occasion: str | Sequence[str] | None = None,
    by: str | None = None, new_people: bool = False, max_draws: int = _DRAWS,
    probability: float = 0.9, random_seed: int = 0,
) -> Estimand:  # fmt: skip
    """Probabilities of the alternatives in the data, or in another table.

    The table may have new alternatives or other prices, or leave alternatives out. People in the
    data choose by their own tastes; the tastes of others are drawn from the population.

    Parameters
    ----------
    run : Posterior
    new : table, data frame or mapping, optional
        Table with all columns of the formula but the outcome; the data if left out.
    occasion : str or sequence of str, optional
        Columns that identify the occasions of `new`; those of the data if left out. If `new` has
        none of these, or with ``occasion=[]``, all rows of a person are one occasion.
    by : str, optional
        Answer separately for each label of a column: shares of the labels, of ``"alternative"``
        say, averaged over all choices: over occasions, each as often as the table says that
        something was chosen in it, and weighted.
    new_people : bool
        Whether `new` may have people who are not in the data, or no column of people.
    max_draws : int
    probability : float
    random_seed : int

    Returns
    -------
    Estimand
        Along ``row``, in the order of the table, or ``line`` of a file, with the alternative of
        each; or along the labels of `by`.
    """
    data, codes = data_of_run(run).of_best, None
    if new is not None:
        data, codes = rows_like(data, new, occasion, as_flag(new_people, "new_people"))
    drawn = _drawn_probs(run, data, max_draws, codes, as_seed(random_seed))
    if by is not None:
        levels, of_row = data.labels(by)
        shares = _shares(data, drawn, len(levels), of_row)
        caption = f"Shares over {data.totals.sum():,.6g} choices."
        return answer(shares, {by: levels.names}, caption, probability)
    axis, order = "row", np.argsort(data.source)
    rows, probs = data.source[order], np.stack(list(drawn))[:, order]
    if isinstance(new, ExactTable) and new.lines is not None:
        axis, rows = new.part, new.lines[rows]
    labels: dict[str, Array] = {axis: rows}
    if data.alternatives is not None:
        labels["alternative"] = data.alternatives.names[data.alternative[order]]
    caption = "Probabilities of alternatives."
    return Estimand(probs, (axis,), {axis: labels}, caption=caption, probability=probability)


def _shares(
    data: ChoiceRows, drawn: Iterable[FloatArray], size: int, of_row: IntArray
) -> FloatArray:
    """Shares of labels over all choices, ``(num_draws, num_labels)``."""
    of_rows = (data.totals / data.totals.sum())[data.occasion_of_row]
    return np.stack([np.bincount(of_row, of_rows * probs, minlength=size) for probs in drawn])


def effects(
    run: Posterior, column: str, values: Sequence[object] | None = None, *,
    at: Mapping[str, object] | None = None, by: str | None = None, max_draws: int = 200,
    probability: float = 0.9, random_seed: int = 0,
) -> Estimand:  # fmt: skip
    """Shares of alternatives if a column had certain values, all else as it was.

    ``run.effects("price", [2, 3], at={"mode": "bus"}).difference("price", 3, 2)`` is what happens
    to the shares if the bus costs 3 instead of 2.

    Parameters
    ----------
    run : Posterior
    column : str
        One of the formula.
    values : sequence, optional
        Labels or numbers; if left out, all labels, or the 10, 50 and 90 % quantiles.
    at : mapping from column to a label, or to several, optional
        The rows in which the column is set. (An attribute that is equal in all alternatives has no
        effect, except in interactions.)
    by : str, optional
        Column whose labels the shares are of; that of alternatives if left out.
    max_draws : int
    probability : float
    random_seed : int

    Returns
    -------
    Estimand
        Axes `column` and `by`.

    Raises
    ------
    ValueError
        If there is no such column or label, or no row has it.
    """
    data = data_of_run(run).of_best
    columns, by = table_of(data.design), by or data.named or ""
    labels, of_row = data.labels(by)
    as_choice(column, "column", [name for name in columns if name != by])
    cells, held = np.asarray(columns[column]), np.ones(data.num_rows, dtype=np.bool_)
    for name, wanted in as_mapping(at, "at").items():
        levels, codes = data.labels(name, "at")
        with under_name("at", of=f"column {name!r}"):
            held &= np.isin(codes, levels.find([np.atleast_1d(wanted)]))
    if not held.any():
        raise ValueError(f"at must leave a row of the data, {dict(at or {})!r} leaves none")
    if values is None:
        asked = label_or_quantile_values(cells[held], data.design.levels_of(column))
    else:
        asked = as_list(values, "values", "values")
    draws = []
    for value in asked:
        with under_name("values", of=f"column {column!r}"):
            rows = people.with_column(data, column, np.where(held, value, cells))
        drawn = _drawn_probs(run, rows, max_draws, seed=as_seed(random_seed))
        draws.append(_shares(data, drawn, len(labels), of_row))
    caption = f"Shares over all choices, if {column} were so."
    return answer(np.stack(draws, axis=1), {column: asked, by: labels.names}, caption, probability)


# --------------------------------------------------------------------------- how well it fits


def log_scores(run: Posterior, units: IntArray, max_draws: int = _HELD_OUT_DRAWS) -> FloatArray:
    """Log probabilities of the choices of units, ``(num_chains, num_draws, num_units)``.

    Tastes are integrated over the population by importance sampling, from mixtures of the
    population and of a person's posterior given it, by the person's site (Owen and Zhou 2000,
    "Safe and effective importance sampling").

    Parameters
    ----------
    run : Posterior
    units : int array, ``(num_units + 1,)``
        Where the occasions of each unit begin: those of people, if tastes differ.
    max_draws : int
    """
    data = data_of_run(run)
    first = data.occasions[:-1][units[:-1]]
    if not len(data.random):
        probs = (draw.probs[:, 0] for draw in people.people_draws(run, data, max_draws))
        by_row = (data.taken * np.log(np.maximum(p, 1e-300)) for p in probs)
        sums = [np.add.reduceat(values, first) for values in by_row]
        return np.reshape(sums, (run.num_chains, -1, len(first)))
    shared = thinned(run, max_draws, "mean", "cov", "coefficients")
    num, d, frame, rng = data.num_people, len(data.random), Frame.of(data), np.random.default_rng(0)
    number = 1 << int(np.clip(np.log2(_MOST_CELLS / (data.num_rows * len(shared[0]))), 4, 6))
    sites = sites_of(data, frame.pack(frame.inside(*[np.mean(draws, axis=0) for draws in shared])))
    J, h, cross = (np.moveaxis(array, -1, 0)[np.argsort(frame.order)] for array in sites)
    is_any, out = np.arange(number) < _DEFENSIVE * number, []
    unused, lanes = (np.empty((0, 0)), np.empty((0, 0, 0))), np.zeros_like(frame.empty(d))
    for draws in zip(*shared, strict=True):
        mean, b, root = frame.inside(*draws)
        # in standard deviations of the population, of which a person's are N(centre, (A'A)^-1)
        precision = np.eye(d) + root.T @ J @ root
        pull = (h - cross @ b - J @ mean) @ root
        centres = np.linalg.solve(precision, pull[:, :, None]).swapaxes(1, 2)
        roots = np.linalg.cholesky(_WIDER * np.linalg.inv(precision))
        z = people.normal_points(number, d, rng)
        white = np.where(is_any[:, None], z, centres + z @ roots.swapaxes(1, 2))
        apart = (white - centres) @ np.linalg.inv(roots).swapaxes(1, 2)
        volume = np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1, keepdims=True)
        log_all, log_one = (-0.5 * np.square(x).sum(axis=2) for x in (white, apart))
        log_q = np.logaddexp(np.log(_DEFENSIVE) + log_all, np.log1p(-_DEFENSIVE) + log_one - volume)
        choices, log_p = laid_out(data).given(b), np.empty((number, num))
        for tastes, log_p_at in zip((mean + white @ root.T).swapaxes(0, 1), log_p, strict=True):
            lanes[:, :num], values = tastes[frame.order].T, frame.empty()
            frame.over(slopes_rows, choices, lanes, values, *unused)
            log_p_at[frame.order] = values[:num]
        out.append(logsumexp(log_p.T + log_all - log_q, axis=1) - np.log(number))
    return np.reshape(out, (run.num_chains, -1, num))


def compare(
    run: Posterior, other: Posterior | None = None, *, max_draws: int = _HELD_OUT_DRAWS
) -> Comparison:
    """How well choices are predicted, compared with another run or with simple models.

    The simple models are equal probabilities, or, where alternatives have names, how often each was
    taken by others; and the conditional logit, with the same tastes for all. Where people's tastes
    differ, all choices of a person are left out at a time, and predicted by the population;
    otherwise a choice is. Both are by importance sampling.

    Parameters
    ----------
    run : Posterior
    other : Posterior, optional
        Run of the same choices.
    max_draws : int
    """
    data, totals = data_of_run(run), data_of_run(run).totals
    if not (totals == np.round(totals)).all():
        raise ValueError("choices must be whole numbers to be left out one at a time")
    both = [data] if other is None else [data, data_of_run(other, "other")]
    if not np.array_equal(both[-1].taken, data.taken):
        raise ValueError("other must be a run of the same choices in the same order")
    mixed = [rows.people for rows in both if len(rows.random)]
    units = mixed[0] if mixed else np.arange(data.num_occasions + 1)
    if not all(np.array_equal(people, units) for people in mixed):
        raise ValueError("other must be a run of the same people")
    counts = np.add.reduceat(totals, units[:-1]).astype(np.int64)

    def score(one: Posterior) -> Score:
        return Score.of_draws(log_scores(one, units, max_draws), counts)

    scores = {"this model": score(run)}
    if other is not None:
        scores["the other run"] = score(other)
    else:
        name = "equal chances" if data.alternatives is None else "shares of all others"
        scores[name] = Score(log_shares_of_others(data, units), counts)
        if len(data.random):
            how: dict[str, Any] = {"draws": 200, "tune": 50, "chains": 2, "random_seed": 0}
            plain = sample(MixedLogit(), data.without_people(), progressbar=False, **how)
            scores["the conditional logit"] = score(plain)
    what = "The choices of each person are" if mixed else "Each choice is"
    note = f"{what} predicted from those of all others (leave-one-out by importance sampling)."
    return Comparison.of(scores, "a choice", note)


def log_shares_of_others(data: ChoiceRows, units: IntArray) -> FloatArray:
    """Log probabilities of units' choices by how often others took each alternative."""
    weight, starts = np.ones(data.num_rows), data.occasions[:-1]
    unit = np.repeat(np.arange(len(units) - 1), np.diff(units))[data.occasion_of_row]
    if data.alternatives is not None:
        worst = 0 if data.side is None else (data.side < 0.0).astype(np.int64)
        code = 2 * data.alternative + worst
        which = np.unique(unit * (code.max() + 1) + code, return_inverse=True)[1].reshape(-1)
        weight = np.bincount(code, data.taken)[code] - np.bincount(which, data.taken)[which] + 0.5
    total = np.add.reduceat(weight, starts)[data.occasion_of_row]
    return np.asarray(np.add.reduceat(data.taken * np.log(weight / total), starts[units[:-1]]))


def check(run: Posterior, *, max_draws: int = 200, random_seed: int = 0) -> PredictiveChecks:
    """Simulate choices from draws of tastes, and compare them with the observed ones.

    For each attribute: the mean difference between the alternative taken and those available, and
    the standard deviation of this over people, which checks how much tastes vary. For each column
    of numbers: how far choices by its levels, or by fifths of it, are from what is expected.
    """
    data, rng = data_of_run(run), np.random.default_rng(as_seed(random_seed))
    of_person, away = data.person_of_row, data.within / data.scale
    weight = np.maximum(np.bincount(of_person, data.taken), 1e-300)
    table, total = table_of(data.design), data.totals[data.occasion_of_row]
    numbers = people.numeric_attributes(data)
    bins = {name: _binned(table[name].astype(np.float64)) for name in numbers}
    bins = {name: codes for name, codes in bins.items() if codes.max() > 1}

    def statistics(taken: FloatArray, probs: FloatArray) -> dict[str, float]:
        of_people = [np.bincount(of_person, taken * column) / weight for column in away.T]
        spread = np.stack(of_people, axis=1).std(axis=0) if data.num_people > 1 else []
        misfits, expected = [], total * probs
        for codes in bins.values():
            variance = np.maximum(np.bincount(codes, expected * (1.0 - probs)), 1e-300)
            misfits.append(np.sum(np.bincount(codes, taken - expected) ** 2 / variance))
        return dict(zip(advice, [*(taken @ away / taken.sum()), *spread, *misfits], strict=True))

    advice, than = dict[str, tuple[str, str]](), "than the model predicts"
    again = "let people differ in it, or let its effect bend: log(x), bs(x, df=4)"
    for name in data.names.tolist():
        mean = f"The mean of {name} in what was chosen is"
        higher, lower = (f"{mean} {way} {than}: {again}." for way in ("higher", "lower"))
        advice[f"{name} of choices"] = higher, lower
    for name in data.names.tolist() if data.num_people > 1 else ():
        more, less = (f"People differ {way} in {name} {than}" for way in ("more", "less"))
        advice[f"spread over people of {name}"] = f"{more}: put it into the grouping.", f"{less}."
    for name in bins:
        labels = len(np.unique(table[name])) <= _FEW
        way = f"write C({name}) if its numbers are labels; otherwise " if labels else ""
        advice[f"choices by {name}"] = (
            f"Choices by {name} do not follow one coefficient: {way}let its effect bend, with"
            f" {name} + I({name} ** 2), or bs({name}, df=4).",
            f"Choices by {name} are closer to the model than chance allows.",
        )

    def pair(probs: FloatArray) -> tuple[dict[str, float], dict[str, float]]:
        return statistics(data.taken, probs), statistics(data.drawn(rng, probs), probs)

    return PredictiveChecks.of(map(pair, _drawn_probs(run, data, max_draws)), advice)


def _binned(cells: FloatArray) -> IntArray:
    """Codes of the different numbers of a column if they are few, else of its fifths."""
    values, codes = np.unique(cells, return_inverse=True)
    if len(values) <= _FEW:
        return np.asarray(codes.reshape(-1))
    return np.searchsorted(np.unique(np.quantile(cells, np.arange(1, _BINS) / _BINS)), cells)

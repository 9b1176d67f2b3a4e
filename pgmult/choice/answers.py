"""Results of a choice model: tastes, willingness to pay, and shares of alternatives.

All results are posterior draws: coefficients in the units of the attributes, ratios of
coefficients, and probabilities of the alternatives in any table, for people in the data and for new
people.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pgmult.choice.data import ChoiceRows, rows_like
from pgmult.choice.mixed_logit import MixedLogit
from pgmult.core.arguments import (
    as_choice,
    as_flag,
    as_kind,
    as_list,
    as_mapping,
    as_seed,
    under_name,
)
from pgmult.core.checks import PredictiveChecks
from pgmult.core.comparison import Comparison
from pgmult.core.estimands import Estimand
from pgmult.core.labels import Levels
from pgmult.core.scores import Score
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_positive_int
from pgmult.formulas.columns import told_values
from pgmult.formulas.design import table_of
from pgmult.sampling.driver import sample
from pgmult.sampling.posterior import Posterior

_DRAWS = 400
_NEW_PEOPLE = 50  # for each draw of the population
_SURE = 0.99


def data_of_run(run: Posterior, name: str = "run") -> ChoiceRows:
    """The data of a run of a choice model."""
    as_kind(run, name, Posterior)
    return as_kind(run.data, name, ChoiceRows, "a run of MixedLogit")


def _draws(run: Posterior, max_draws: int, *names: str) -> list[FloatArray]:
    """Draws of variables, at most `max_draws`, chains one after the other."""
    most = as_positive_int(max_draws, "max_draws")
    return [np.concatenate(list(run.thinned(name, most))) for name in names]


def _population(run: Posterior) -> tuple[FloatArray, FloatArray]:
    """Means and standard deviations of people's coefficients, ``(num_draws, num_columns)``."""
    data = data_of_run(run)
    mean = np.zeros((len(run.stack("mean")), len(data.names)))
    sd = np.zeros_like(mean)
    mean[:, data.fixed] = run.stack("coefficients")
    centre, var = run.stack("mean"), np.diagonal(run.stack("cov"), axis1=1, axis2=2)
    signed = data.signs != 0.0
    with np.errstate(over="ignore"):
        of_exp = np.exp(np.where(signed, centre + 0.5 * var, 0.0))
        mean[:, data.random] = np.where(signed, data.signs * of_exp, centre)
        sd[:, data.random] = np.where(
            signed, of_exp * np.sqrt(np.expm1(np.where(signed, var, 0.0))), np.sqrt(var)
        )
    return mean, sd


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
        return Estimand(
            data.coefficients_of(run.stack("tastes")), ("person", "attribute"),
            {"person": data.person_names, "attribute": data.names[data.random]},
            caption="Coefficients of each person.", probability=probability,
        )  # fmt: skip
    return Estimand(
        np.stack(_population(run), axis=2), ("attribute", "over people"),
        {"attribute": data.names, "over people": ["mean", "sd"]},
        caption="Coefficients over the population.", probability=probability,
    )  # fmt: skip


def correlations(run: Posterior, *, probability: float = 0.9) -> Estimand:
    """Correlations of tastes; of the logs of coefficients whose sign is fixed."""
    data, cov = data_of_run(run), run.stack("cov")
    sds = np.sqrt(np.diagonal(cov, axis1=1, axis2=2))
    names = data.names[data.random]
    return Estimand(
        cov / sds[:, :, None] / sds[:, None, :], ("attribute", "other attribute"),
        {"attribute": names, "other attribute": names},
        caption="Correlations of tastes over people.", probability=probability,
    )  # fmt: skip


def worth(run: Posterior, per: str = "price", *, probability: float = 0.9) -> Estimand:
    """Willingness to pay: how much of `per` one unit of each other attribute is worth.

    It is the ratio of mean coefficients over people, draw by draw, with the sign turned where `per`
    is a cost, so that what people like has a positive worth. Where the coefficient of `per` may be
    0 the ratio has no mean: its median and interval are told, and in the caption how probable it is
    that `per` has the other sign, with which every worth turns its own.

    Raises
    ------
    ValueError
        If `per` is not an attribute.
    """
    data, (mean, _) = data_of_run(run), _population(run)
    place = data.place(per, "per")
    price = mean[:, place]
    negative = float(np.mean(price < 0.0))
    wrong = min(negative, 1.0 - negative)
    others = np.delete(np.arange(len(data.names)), place)
    caption = f"Worth of a unit, in units of {per}."
    if wrong > 1.0 - _SURE:
        likely, other = ("dislike", "like")[:: 1 if negative > 0.5 else -1]
        caption += (
            f" People {likely} {per} on average, or {other} it with probability"
            f" {wrong:.2f}: each worth then has the other sign, and may be of any size."
        )
    return Estimand(
        (1.0 if negative < 0.5 else -1.0) * mean[:, others] / price[:, None], ("attribute",),
        {"attribute": data.names[others]}, caption=caption, probability=probability, is_ratio=True,
    )  # fmt: skip


# --------------------------------------------------------------------------- probabilities


def _drawn_probs(
    run: Posterior, data: ChoiceRows, max_draws: int, codes: IntArray | None = None, seed: int = 0
) -> Iterator[FloatArray]:
    """Probabilities of rows, a draw after the other; code -1 is a person who is not in the data.

    Probabilities of such a person are averaged over the population.
    """
    codes = np.arange(data.num_people) if codes is None else codes
    of_row = codes[data.person_of_row]
    mean, cov, fixed = _draws(run, max_draws, "mean", "cov", "coefficients")
    new, tastes_of_row = of_row < 0, np.empty((data.num_rows, mean.shape[1]))
    tastes_of = None if new.all() else _draws(run, max_draws, "tastes")[0]
    many = new.any() and mean.shape[1]
    noise = np.random.default_rng(seed).standard_normal(
        (_NEW_PEOPLE if many else 1, *mean[0].shape)
    )
    for s in range(len(mean)):
        if tastes_of is not None:
            tastes_of_row[~new] = tastes_of[s][of_row[~new]]
        root, total = np.linalg.cholesky(cov[s]), np.zeros(data.num_rows)
        for z in noise:
            tastes_of_row[new] = mean[s] + root @ z
            total += data.probs(tastes_of_row, fixed[s])
        yield total / len(noise)


def predict(
    run: Posterior,
    new: Any = None,
    *,
    occasion: str | Sequence[str] | None = None,
    by: str | None = None,
    new_people: bool = False,
    max_draws: int = _DRAWS,
    probability: float = 0.9,
    random_seed: int = 0,
) -> Estimand:
    """Probabilities of the alternatives in the data, or in another table.

    The table may have new alternatives or other prices, or leave alternatives out. People in the
    data choose by their own tastes; the tastes of others are drawn from the population.

    Parameters
    ----------
    run : Posterior
    new : table, data frame or mapping, optional
        The columns of the formula without the outcome; the data if left out.
    occasion : str or sequence of str, optional
        Columns that identify the occasions of `new`; those of the data if left out. If `new` has
        none of these, or with ``occasion=[]``, all rows of a person are one occasion.
    by : str, optional
        A column, such as ``"alternative"``: shares of its labels, averaged over all choices: over
        occasions, each as often as the table says that something was chosen in it, and weighted.
    new_people : bool
        Whether `new` may have people who are not in the data, or not say who chooses.
    max_draws : int
    probability : float
    random_seed : int

    Returns
    -------
    Estimand
        Along ``row``, in the order of the table; or along the labels of `by`.
    """
    data, codes = data_of_run(run), None
    if new is not None:
        data, codes = rows_like(data, new, occasion, as_flag(new_people, "new_people"))
    drawn = _drawn_probs(run, data, max_draws, codes, as_seed(random_seed))
    if by is not None:
        levels, of_row = data.labels(by)
        return Estimand(
            _shares(data, drawn, levels, of_row), (by,), {by: levels.names},
            caption=f"Shares over {data.totals.sum():,.6g} choices.", probability=probability,
        )  # fmt: skip
    return Estimand(
        np.stack(list(drawn))[:, np.argsort(data.source)], ("row",),
        {"row": np.arange(data.num_rows)}, caption="Probabilities of alternatives.",
        probability=probability,
    )  # fmt: skip


def _shares(
    data: ChoiceRows, drawn: Iterable[FloatArray], levels: Levels, of_row: IntArray
) -> FloatArray:
    """Shares of labels over all choices, ``(num_draws, num_levels)``."""
    of_rows = (data.totals / data.totals.sum())[data.occasion_of_row]
    return np.stack(
        [np.bincount(of_row, of_rows * probs, minlength=len(levels)) for probs in drawn]
    )


def effects(
    run: Posterior,
    column: str,
    values: Sequence[Any] | None = None,
    *,
    at: Mapping[str, Any] | None = None,
    by: str | None = None,
    max_draws: int = 200,
    probability: float = 0.9,
    random_seed: int = 0,
) -> Estimand:
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
        The column for whose labels shares are returned; that of alternatives if left out.
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
    data, columns = data_of_run(run), table_of(data_of_run(run).design)
    if by is None and data.alternatives is not None:
        by = data.alternatives.columns[0]
    labels, of_row = data.labels(by)
    cells = np.asarray(
        columns[as_choice(column, "column", [name for name in columns if name != by])]
    )
    held = np.ones(data.num_rows, dtype=np.bool_)
    for name, wanted in as_mapping(at, "at").items():
        levels, codes = data.labels(name, "at")
        with under_name("at", of=f"column {name!r}"):
            held &= np.isin(codes, levels.find([np.atleast_1d(wanted)]))
    if not held.any():
        raise ValueError(f"at must leave a row of the data, {dict(at or {})!r} leaves none")
    asked = (
        told_values(cells[held], data.design.levels_of(column)) if values is None
        else as_list(values, "values", "values")
    )  # fmt: skip
    draws = []
    for value in asked:
        with under_name("values", of=f"column {column!r}"):
            design = data.design.like(
                columns | {column: np.where(held, value, cells)}, num_rows=data.num_rows
            )
        drawn = _drawn_probs(run, data.made_of(design), max_draws, seed=as_seed(random_seed))
        draws.append(_shares(data, drawn, labels, of_row))
    return Estimand(
        np.stack(draws, axis=1), (column, str(by)), {column: asked, str(by): labels.names},
        caption=f"Shares over all choices, if {column} were so.", probability=probability,
    )  # fmt: skip


def elasticities(
    run: Posterior,
    attribute: str,
    *,
    by: str,
    max_draws: int = 200,
    probability: float = 0.9,
) -> Estimand:
    """Elasticities: by how many percent shares change if an attribute grows by one percent.

    Shares are those of the labels of `by` over all choices of the data; the attribute grows for
    one label at a time. The attribute must be a column of the table that enters the formula by
    itself.

    Parameters
    ----------
    run : Posterior
    attribute : str
    by : str
        A column, such as ``"alternative"``.
    max_draws : int
    probability : float

    Returns
    -------
    Estimand
        Along `by`, whose share changes, and ``"changed"``, whose attribute grows.

    Notes
    -----
    With x_s the attribute of alternative s and c its coefficient, the derivative of p_r in log x_s
    is c x_s p_r ((r = s) - p_s) (Train 2009, "Discrete choice methods with simulation", 3.6).
    """
    data = data_of_run(run)
    place, (levels, of_row) = data.place(attribute, "attribute"), data.labels(by)
    fixed, people = _draws(run, max_draws, "coefficients", "tastes")
    of_person = (
        data.coefficients_of(people)[:, :, np.searchsorted(data.random, place)]
        if place in data.random
        else fixed[:, [np.searchsorted(data.fixed, place)] * data.num_people]
    )
    out, number = np.empty((len(people), len(levels), len(levels))), len(levels)
    for s, p in enumerate(_drawn_probs(run, data, max_draws)):
        pull = of_person[s, data.person_of_row] * data.x[:, place] * p
        shares, pulls = np.zeros((2, data.num_occasions, number))
        np.add.at(shares, (data.occasion_of_row, of_row), p)
        np.add.at(pulls, (data.occasion_of_row, of_row), pull)
        total = np.maximum(data.totals @ shares, 1e-300)
        direct = np.diag(data.totals @ pulls)
        out[s] = (direct - (data.totals[:, None] * shares).T @ pulls) / total[:, None]
    return Estimand(
        out, (by, "changed"), {by: levels.names, "changed": levels.names},
        caption=f"Elasticities of shares in {attribute}.", probability=probability,
    )  # fmt: skip


# --------------------------------------------------------------------------- how well it fits


def log_scores(run: Posterior, max_draws: int = _DRAWS) -> FloatArray:
    """Log probabilities of what was taken, ``(num_chains, num_draws, num_occasions)``."""
    data = data_of_run(run)
    scores = [
        np.add.reduceat(data.taken * np.log(np.maximum(p, 1e-300)), data.occasions[:-1])
        for p in _drawn_probs(run, data, max_draws)
    ]
    return np.reshape(scores, (run.num_chains, -1, data.num_occasions))


def compare(
    run: Posterior, other: Posterior | None = None, *, max_draws: int = _DRAWS
) -> Comparison:
    """How well each choice is predicted, compared with another run or with simple models.

    The simple models are equal probabilities, or, where alternatives have names, how often each was
    taken in all other occasions; and the conditional logit, with the same tastes for all. Choices
    are left out one at a time by importance sampling; the person's other choices are used.

    Parameters
    ----------
    run : Posterior
    other : Posterior, optional
        Of the same choices.
    max_draws : int
    """
    data, totals = data_of_run(run), data_of_run(run).totals
    if not (totals == np.round(totals)).all():
        raise ValueError("choices must be whole numbers to be left out one at a time")

    def score(one: Posterior) -> Score:
        return Score.of_draws(log_scores(one, max_draws), totals.astype(np.int64))

    scores = {"this model": score(run)}
    if other is not None:
        if not np.array_equal(data_of_run(other, "other").taken, data.taken):
            raise ValueError("other must be a run of the same choices in the same order")
        scores["the other run"] = score(other)
    else:
        name = "equal chances" if data.alternatives is None else "shares of all others"
        scores[name] = Score(log_shares_of_others(data), totals.astype(np.int64))
        if len(data.random):
            plain = sample(
                MixedLogit(), data.without_people(), draws=200, tune=50, chains=2, random_seed=0,
                progressbar=False,
            )  # fmt: skip
            scores["the conditional logit"] = score(plain)
    how = "Each choice is predicted from all others (leave-one-out by importance sampling)."
    return Comparison.of(scores, "a choice", how)


def log_shares_of_others(data: ChoiceRows) -> FloatArray:
    """Log probabilities of choices by how often each alternative was taken in other occasions."""
    weight = np.ones(data.num_rows)
    if data.alternatives is not None:
        taken = np.bincount(data.alternative, data.taken)[data.alternative]
        weight = taken - data.taken + 0.5
    starts = data.occasions[:-1]
    total = np.repeat(np.add.reduceat(weight, starts), np.diff(data.occasions))
    return np.asarray(np.add.reduceat(data.taken * np.log(weight / total), starts))


def check(run: Posterior, *, max_draws: int = 200, random_seed: int = 0) -> PredictiveChecks:
    """Simulate choices from draws of tastes, and compare them with the observed ones.

    For each attribute: the mean difference between the alternative taken and those available, and
    the standard deviation of this over people, which checks how much tastes vary.
    """
    data, rng = data_of_run(run), np.random.default_rng(as_seed(random_seed))
    of_person, away = data.person_of_row, data.within / data.scale
    weight = np.maximum(np.bincount(of_person, data.taken), 1e-300)

    def statistics(taken: FloatArray) -> FloatArray:
        by_person = np.stack(
            [np.bincount(of_person, taken * column) / weight for column in away.T], axis=1
        )
        return np.concatenate([taken @ away / taken.sum(), by_person.std(axis=0)])

    made = (statistics(data.drawn(rng, probs)) for probs in _drawn_probs(run, data, max_draws))
    advice, again = {}, "let people differ in it, or bend it: log(x), s(x)"
    for name in data.names.tolist():
        more, less = (f"{way} {name} was taken than the model takes" for way in ("More", "Less"))
        advice[f"taken of {name}"] = f"{more}: {again}.", f"{less}: {again}."
    for name in data.names.tolist():
        spread = f"in what they take of {name} than the model has it"
        advice[f"spread over people of {name}"] = (
            f"People differ more {spread}: put it into the grouping.",
            f"People differ less {spread}.",
        )
    observed = dict(zip(advice, statistics(data.taken), strict=True))
    pairs = ((observed, dict(zip(advice, values, strict=True))) for values in made)
    return PredictiveChecks.of(pairs, advice)

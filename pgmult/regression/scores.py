"""How well an additive regression predicts observations, and which patterns it misses.

`loo` predicts each observation from all the others, by importance sampling; `compare` sets this
beside simple models, shares of everybody or of those in the same group, or beside another run.
`check` compares counts in parts of the data with counts simulated from the model: if a term is
missing, the simulated parts differ too little.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import logsumexp

from pgmult.core.answers import Answer
from pgmult.core.arguments import as_choice, as_kind, as_seed
from pgmult.core.averages import Rows
from pgmult.core.checks import Kind, PredictiveChecks
from pgmult.core.comparison import Comparison, between_two
from pgmult.core.figures.forest import Forest
from pgmult.core.labels import Levels
from pgmult.core.scores import LARGE_K, Score, leave_one_out
from pgmult.core.tabled import Column, Table
from pgmult.core.tables import date_text
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_positive_int
from pgmult.formulas.columns import as_mapping, cells_of_rows
from pgmult.formulas.design import Design, table_of
from pgmult.regression.answers import chosen, data_of_run, in_words_of, predicted_rows
from pgmult.regression.data import AdditiveRows
from pgmult.regression.models.blocks import rough_concentration, rough_size
from pgmult.regression.rows import outcomes_of
from pgmult.sampling.posterior import Posterior

_BINS = 4  # of numbers
_MOST_COLUMNS = 8  # whose pairs are looked at, too
_LEAST = 0.5  # added to expected counts that something is divided by
_MOST_RIVALS = 6
_HOW = "Each {} is predicted from all the others, by Pareto-smoothed importance sampling."
_TO_BE_SCORED = "to be predicted from each other (compare(held_out=...) predicts other rows)"
_HELD_OUT = "Observations that were held out are predicted."


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LeaveOneOut(Answer):
    """Log probabilities of observations given all others; print it for a summary.

    Attributes
    ----------
    cells, outcomes : int arrays, ``(num_kinds,)``
        Cell and category of each kind: observations of a kind have the same probability. Rows of
        events and of counts that scatter are scored whole, as category 0.
    counts : int array, ``(num_kinds,)``
        Observations of each kind.
    log_p : array, ``(num_kinds,)``
        Log probability of one of them given all other observations.
    fitted : array, ``(num_kinds,)``
        The same given all observations, themselves included.
    k : array, ``(num_kinds,)``
        Pareto shapes of the importance weights; above 0.7 `log_p` is unreliable.
    by_chain : array, ``(num_chains, num_kinds)``
        `log_p` by the draws of each chain alone.
    categories : tuple of str
        Names of the categories; one where whole rows are scored.
    unit : str
        What is scored, in the singular.
    """

    cells: IntArray
    outcomes: IntArray
    counts: IntArray
    log_p: FloatArray
    fitted: FloatArray
    k: FloatArray
    by_chain: FloatArray
    categories: tuple[str, ...]
    unit: str = "observation"

    @property
    def draws(self) -> FloatArray:
        """Log probabilities of single observations, whose scatter is the standard error."""
        return np.repeat(self.log_p, self.counts)

    def figure(self) -> Forest:
        """Show how well the outcomes of each category are predicted, in nats an observation."""
        add_up, size = partial(np.bincount, self.outcomes), len(self.categories)
        number = np.maximum(add_up(self.counts, size), 1.0)
        mean = add_up(self.counts * self.log_p, size) / number
        squares = self.counts * (self.log_p - mean[self.outcomes]) ** 2
        half = 1.645 * np.sqrt(add_up(squares, size)) / number
        return Forest(
            labels=list(self.categories), mean=mean[None], lower=(mean - half)[None],
            upper=(mean + half)[None], legend={}, name="category", caption=_HOW.format(self.unit),
            x_label=f"nats {_an(self.unit)}, 90 % interval",
        )  # fmt: skip

    @property
    def elpd(self) -> float:
        """Sum of `log_p` over observations."""
        return float(self.counts @ self.log_p)

    @property
    def error(self) -> float:
        """Its standard error."""
        number = self.counts.sum()
        mean = self.elpd / number
        return float(np.sqrt(self.counts @ (self.log_p - mean) ** 2 * number / max(number - 1, 1)))

    @property
    def num_parameters(self) -> float:
        """Effective number of parameters: the gain of `fitted` over `log_p`."""
        return float(self.counts @ (self.fitted - self.log_p))

    @property
    def num_rough(self) -> int:
        """Observations whose `log_p` is unreliable."""
        return int(self.counts[self.k > LARGE_K].sum())

    def table(self) -> Table:
        """One row per quantity."""
        number, error = int(self.counts.sum()), self.error
        each, rough = f"nats {_an(self.unit)}", f"{self.unit}s with k above {LARGE_K}"
        quantities = ["log probability, sum", each, "effective parameters", rough]
        values = [self.elpd, self.elpd / number, self.num_parameters, float(self.num_rough)]
        errors = [error, error / number, np.nan, np.nan]
        columns = [
            Column("quantity", quantities, "quantity"),
            Column("value", values, "value", "{:.6g}".format),
            Column("error", errors, "error", lambda x: "" if np.isnan(x) else f"{x:.3g}"),
        ]
        return Table(f"{number:,} {self.unit}s. {_HOW.format(self.unit)}", columns)

    def score(self, chosen: IntArray | None = None) -> Score:
        """Scores for comparisons, by observation, or in another order of their kinds."""
        units = np.repeat(np.arange(len(self.counts)), self.counts) if chosen is None else chosen
        rough, once = self.num_rough / self.counts.sum(), np.ones(len(units), dtype=np.int64)
        return Score(self.log_p[units], once, self.by_chain[:, units], float(rough))


def loo(run: Posterior, *, max_draws: int = 1000) -> LeaveOneOut:
    """How well each observation is predicted from all the others.

    Parameters
    ----------
    run : Posterior
        Of an `AdditiveRegression`.
    max_draws : int
        Draws to use at most, evenly spread.

    Returns
    -------
    LeaveOneOut
        Of single observations, not of cells, and of whole rows of counts that scatter: the log
        score of Vehtari, Gelman and Gabry (2017).
    """
    data = data_of_run(run)
    data.refuse_weights(_TO_BE_SCORED)
    used = as_positive_int(max_draws, "max_draws")
    used = max(used - used % run.num_chains, 1)
    units = _Units.of(data, data.counts, data.times)
    log_p = _log_probabilities(run, predicted_rows(run, max_draws=used), data.counts, units, used)
    chains = run.num_chains if len(log_p) % run.num_chains == 0 else 1
    smoothed = leave_one_out(log_p.reshape(chains, -1, log_p.shape[1]))
    fitted = logsumexp(log_p, axis=0) - math.log(len(log_p))
    names = ("rows",) if data.is_by_row else tuple(map(str, data.categories))
    of_kinds = smoothed.log_p, fitted, smoothed.k, smoothed.by_chain
    return LeaveOneOut(*units, *of_kinds, names, data.scored)


class _Units(NamedTuple):
    """What is scored, and how often: a category of a cell, or a whole row (category 0)."""

    cells: IntArray
    outcomes: IntArray
    counts: IntArray

    @classmethod
    def of(cls, data: AdditiveRows, counts: IntArray, times: FloatArray | None) -> "_Units":
        """List the units of counts; `times` says how many rows of the table each row of events is.

        Observations of one cell and category have one probability.
        """
        if data.is_by_row:
            size, repeated = len(counts), np.ones(len(counts)) if times is None else times
            return cls(np.arange(size), np.zeros(size, np.int64), repeated.astype(np.int64))
        cells, categories = np.nonzero(counts)
        return cls(cells, categories, counts[cells, categories])


def _log_probabilities(
    run: Posterior, rows: Rows, counts: IntArray, units: _Units, max_draws: int
) -> FloatArray:
    """Log probability of each unit in each draw."""
    data, predictions = data_of_run(run), rows.probabilities(rows.table)
    if not data.is_by_row:
        at = units.cells, units.outcomes
        return np.log([np.maximum(probs[at], 1e-300) for probs in predictions])
    draws = zip(_sizes(run, max_draws), predictions, strict=True)
    return np.array([data.log_probability(probs, counts, size) for size, probs in draws])


def _sizes(run: Posterior, max_draws: int) -> list[float]:
    """Size of negative binomial counts in each draw, or infinity."""
    hyper = chosen(run.stack("hyperparameters"), max_draws)
    return list(run.model.sizes(hyper, data_of_run(run)).tolist())


def compare(
    run: Posterior,
    other: Posterior | None = None,
    held_out: object = None,
    *,
    names: tuple[str, str] = ("the first", "the second"),
    max_draws: int = 1000,
) -> Comparison:
    """Compare the predictions of a run with simple models, or with another run.

    Parameters
    ----------
    run : Posterior
        Of an `AdditiveRegression`.
    other : Posterior, optional
        A run of the same table with another formula, or of the same outcome if there are rows held
        out. If left out, the simple models are the shares of all observations, and of those with
        the same label of a column or grouping.
    held_out : table, optional
        Rows that were not in the fit, with all columns that the formulas name; if left out,
        observations are left out one at a time: see `loo`.
    names : pair of str
        What two runs are called.
    max_draws : int

    Raises
    ------
    ValueError
        If a column is missing, or the runs are of other observations.
    """
    first = data_of_run(run)
    unit = _an(first.scored)
    if other is None:
        score = _scored(run, held_out, max_draws)
        how = _HOW.format(first.scored) if held_out is None else _HELD_OUT
        return Comparison.of({"this model": score, **_rivals(first, held_out)}, unit, how, _ADVICE)
    second = data_of_run(as_kind(other, "other", Posterior))
    wanted, got = (", ".join(data.categories) for data in (first, second))
    if wanted != got:
        raise ValueError(f"other must have the categories {wanted}, got {got}")
    if first.is_by_row != second.is_by_row:
        raise ValueError("other must score what run does (give both the same family)")
    if held_out is not None:
        scored = (_scored(one, held_out, max_draws) for one in (run, other))
        return between_two(names, scored, unit, _HELD_OUT)
    places = [_units_in_turn(data) for data in (first, second)]
    ours, theirs = (
        data.counts[place // data.num_categories] if data.is_by_row else place % data.num_categories
        for data, place in zip((first, second), places, strict=True)
    )
    if not np.array_equal(ours, theirs):
        raise ValueError("other must be a run of the same rows as run (or give rows held out)")
    scores = []
    for one, data, place in zip((run, other), (first, second), places, strict=True):
        left_out = loo(one, max_draws=max_draws)
        cells = left_out.cells * data.num_categories + left_out.outcomes  # in order
        scores.append(left_out.score(np.searchsorted(cells, place)))
    return between_two(names, scores, unit, _HOW.format(first.scored))


def _an(word: str) -> str:
    """The word with its article."""
    return f"{'an' if word[:1] in 'aeiou' else 'a'} {word}"


_ADVICE = {
    "overall shares": "report the shares of all observations",
    "the overall mean": "report the mean of all observations",
}


def _units_in_turn(data: AdditiveRows) -> IntArray:
    """Cell times K plus category of each unit, in the order of the table; rows have category 0."""
    data.refuse_weights(_TO_BE_SCORED)
    if data.scatters:
        return np.arange(data.num_rows) * data.num_categories
    if data.entries is None:
        raise ValueError("run must be of rows of a table, by formula (or give rows held out)")
    return np.repeat(*data.entries.T)


def _scored(run: Posterior, held_out: object, max_draws: int) -> Score:
    """Log probabilities of observations, of the run itself or held out."""
    if held_out is None:
        return loo(run, max_draws=max_draws).score()
    data = data_of_run(run)
    counts = outcomes_of(data, held_out)
    rows = predicted_rows(run, held_out, None, None, max_draws, 0, "held_out", True)
    units = _Units.of(data, counts, None)
    log_p = _log_probabilities(run, rows, counts, units, max_draws)
    return _score(logsumexp(log_p, axis=0) - math.log(len(log_p)), units.counts)


def _score(log_p: FloatArray, counts: IntArray) -> Score:
    """Score so many observations of each kind."""
    return Score(np.repeat(log_p, counts), np.ones(counts.sum(), dtype=np.int64))


def _rivals(data: AdditiveRows, held_out: object) -> dict[str, Score]:
    """Score shares (or means) of all others, and of the others with the same label."""
    table, design, new, times = table_of(data.design), data.design, data.counts, data.times
    names = [name for name, column in table.items() if np.asarray(column).dtype.kind not in "fM"]
    mean, shares = ("the overall mean", "means"), ("overall shares", "shares")
    everybody, by = mean if data.is_events else shares
    columns: Mapping[str, Any] = {}
    if held_out is not None:
        columns, new, times = as_mapping(held_out, None), outcomes_of(data, held_out), None
        design = data.design.like(columns, new_levels=True)
    none = np.zeros(data.num_rows, dtype=np.int64), np.zeros(len(new), dtype=np.int64)
    codes = {everybody: none}  # the part of each row of the data, and of each that is predicted
    for name in names[:_MOST_RIVALS]:
        levels, places = Levels.of({name: table[name]}, {name: data.design.levels_of(name)})
        found = places
        if columns:
            cells = cells_of_rows(columns, name, len(new)).values
            found = np.maximum(levels.find([cells], new_levels=True), -1)
        codes[f"{by} by {name}"] = places, found
    units, share = _Units.of(data, new, times), float(held_out is None)
    outcomes = new[units.cells] if data.is_by_row else np.eye(data.num_categories)[units.outcomes]
    observed, rivals = share * outcomes, {}
    for name, (code, found) in codes.items():
        at = found[units.cells]
        if data.is_events:
            exposed = _exposures(design)[units.cells]
            probs, size = _means_of_others(data, code, at, observed, exposed, share)
        else:
            sums = _parts(code) @ data.counts
            sums = np.vstack([sums, np.zeros_like(sums[:1])])  # a label that is new: code -1
            probs = sums[at] - observed + _LEAST
            probs = probs / probs.sum(axis=1, keepdims=True)
            of_parts = (sums / np.maximum(sums.sum(axis=1, keepdims=True), 1.0))[code]
            size = rough_concentration(data.counts, of_parts, 1) if data.scatters else math.inf
        if data.is_by_row:
            log_p = data.log_probability(probs, new, size)
        else:
            log_p = np.log(probs[np.arange(len(at)), units.outcomes])
        rivals[name] = _score(log_p, units.counts)
    return rivals


def _exposures(design: Design) -> FloatArray:
    """Factor of the mean numbers of events: exp(offset)."""
    return np.ones(len(design.matrix)) if design.offset is None else np.exp(design.offset)


def _means_of_others(
    data: AdditiveRows, code: IntArray, at: IntArray, observed: FloatArray, exposed: FloatArray,
    share: float,
) -> tuple[FloatArray, float]:  # fmt: skip
    """Mean numbers of events of the others of a part and an average row, and the size of counts.

    Parameters
    ----------
    data : AdditiveRows
    code : int array, ``(num_rows,)``
        Part of each row of the data.
    at : int array, ``(num_units,)``
        Part of each row that is scored; -1 for a new one.
    observed : array, ``(num_units, 1)``
        Events of these rows that are in the data.
    exposed : array, ``(num_units,)``
    share : float
        1 if the rows are in the data, else 0.
    """
    y, exposures, times = data.counts[:, 0], _exposures(data.design), data.respondents
    events, exposure = np.bincount(code, times * y), np.bincount(code, times * exposures)
    usual = events.sum() / exposure.sum()
    size = math.inf
    if data.family == "negative_binomial":
        size = rough_size(y.astype(np.float64), exposures * (events / exposure)[code], times)
    events, exposure = np.append(events, 0.0), np.append(exposure, 0.0)
    above = events[at] - observed[:, 0] + usual * exposures.mean()
    below = exposure[at] - share * exposed + exposures.mean()
    return (exposed * above / below)[:, None], size


def check(
    run: Posterior,
    held_out: object = None,
    *,
    by: str | None = None,
    max_draws: int = 200,
    random_seed: int = 0,
) -> PredictiveChecks:
    """Compare counts in parts of the data with counts that are simulated from the model.

    The statistics are the share of each category; and for each column of the formula and each pair
    of them how far counts are from expected ones, the sum of (count - expected)^2 / expected over
    labels (numbers in four bins) and categories. Counts that scatter have one more, of each row.
    With a cumulative link each column has a test of proportional odds. With `held_out` there is
    one of the predictions themselves for each category, in bins of predicted probability: are they
    calibrated?

    Parameters
    ----------
    run : Posterior
        Of an `AdditiveRegression`.
    held_out : table, optional
        Rows that were not in the fit, with the columns of the formula and the outcome.
    by : str, optional
        Answer separately for each label of a column: the statistics are then the share of each
        category for each of its labels.
    max_draws : int
    random_seed : int

    Returns
    -------
    PredictiveChecks
    """
    data, seed = data_of_run(run), as_seed(random_seed)
    counts, design, times = data.counts, data.design, data.respondents
    if held_out is None:
        data.refuse_weights("to be simulated (check(held_out) looks at other rows)")
    else:
        with in_words_of(held_out, "held_out"):
            counts = outcomes_of(data, held_out)
            design = data.design.like(held_out, new_levels=True, num_rows=len(counts))
        times = np.ones(len(counts))
    predicted = predicted_rows(run, held_out, None, None, max_draws, seed, "held_out", True)
    rows, totals = np.arange(len(counts)), counts.sum(axis=1)
    if data.is_events:  # one observation a row
        rows = np.repeat(rows, times.astype(np.int64))
        totals = np.ones(len(rows), dtype=np.int64)
    counts, parts = counts[rows], {}
    for name, values in table_of(design).items():
        labels, codes = _parts_of(name, values, data.design.levels_of(name))
        parts[name] = labels, codes[rows]
    if by is not None:
        statistics = list(_of_parts(as_choice(by, "by", parts), *parts[by], data))
    else:
        statistics = [*_overall(data), *_of_columns(parts, data.num_categories)]
        if data.scatters:
            scatter = "Rows scatter {} than the model predicts.".format
            distance, advice = _distance(np.arange(len(counts))), (scatter("more"), scatter("less"))
            statistics.append(_Statistic("scatter of rows", distance, advice))
        if run.model.link_name(data) == "cumulative":
            statistics += _of_proportional_odds(design, run.model.specific)
        if held_out is not None:
            statistics += _of_predictions(data.categories, predicted.mean()[rows])
    rng, pairs = np.random.default_rng(seed), []
    each = predicted.probabilities(predicted.table)
    for probs, size in zip(each, _sizes(run, max_draws), strict=True):
        made = data.made(rng, probs[rows], totals, size)
        expected = totals[:, None] * probs[rows]
        of = [{s.name: float(s.of(some, expected)) for s in statistics} for some in (counts, made)]
        pairs.append((of[0], of[1]))
    to_say = {one.name: one.advice for one in statistics}
    kinds = {one.name: one.kind for one in statistics if one.kind is not None}
    return PredictiveChecks.of(pairs, to_say, kinds)


_OfCounts = Callable[[IntArray, FloatArray], Any]


class _Statistic(NamedTuple):
    """A statistic of counts, given what is expected of them.

    Attributes
    ----------
    name : str
    of : callable
        Of counts and expected counts, ``(num_rows, num_categories)``.
    advice : pair of str
        Where the data have more of it, and where they have less.
    kind : Kind, optional
    """

    name: str
    of: _OfCounts
    advice: tuple[str, str]
    kind: Kind | None = None


def _share_of(k: int, rows: NDArray[np.bool_] | slice) -> _OfCounts:
    """The share of a category in some rows."""
    return lambda counts, _: counts[rows, k].sum() / max(float(counts[rows].sum()), 1.0)


def _distance(codes: IntArray, sums: FloatArray | None = None) -> _OfCounts:
    """How far counts are from expected ones, or sums of them, ``(num_categories, num_sums)``."""
    rows = _parts(codes)

    def distance(counts: IntArray, expected: FloatArray) -> Any:
        observed, mean = rows @ counts, rows @ expected
        if sums is not None:
            observed, mean = observed @ sums, mean @ sums
        return np.sum((observed - mean) ** 2 / (mean + _LEAST))

    return distance


def _overall(data: AdditiveRows) -> Iterator[_Statistic]:
    """The share of each category; or the mean of events, their spread, zeros and the largest."""
    if not data.is_events:
        for k, name in enumerate(data.categories):
            advice = f"There are more {name} than the model predicts.", f"There are fewer {name}."
            yield _Statistic(f"share of {name}", _share_of(k, np.s_[:]), advice)
        return
    name, fewer = data.categories[0], "The data have {} than the model predicts.".format
    more = "There are more events than the model predicts."
    yield _Statistic(f"mean {name}", lambda y, _: np.mean(y), (more, fewer("fewer events")))
    more = 'Numbers spread more than the model predicts: try family="negative_binomial".'
    yield _Statistic(
        "variance over mean", lambda y, _: np.var(y) / max(float(np.mean(y)), 1e-300),
        (more, fewer("less spread")),
    )  # fmt: skip
    advice = "There are more zeros.", fewer("fewer zeros")
    yield _Statistic("share of 0", lambda y, _: np.mean(y == 0), advice)
    advice = "The largest number is larger.", fewer("a smaller largest number")
    yield _Statistic(f"largest {name}", lambda y, _: np.max(y), advice)


def _of_parts(
    by: str, labels: Sequence[str], codes: IntArray, data: AdditiveRows
) -> Iterator[_Statistic]:
    """The share of each category in each part, or the mean of events."""
    more, less, name = "There are more {}.", "There are fewer {}.", "share of {}"
    if data.is_events:
        more, less = "The mean {} is larger than the model predicts.", "The mean {} is smaller."
        name = "mean {}"
    for group, label in enumerate(labels):
        rows = codes == group
        for k, category in enumerate(data.categories):
            of: _OfCounts = partial(_mean_in, rows) if data.is_events else _share_of(k, rows)
            where = f"{category} where {by} is {label}"
            yield _Statistic(name.format(where), of, (more.format(where), less.format(where)))


def _mean_in(rows: NDArray[np.bool_], counts: IntArray, expected: FloatArray) -> Any:
    return np.mean(counts[rows])


def _of_columns(
    parts: Mapping[str, tuple[list[str], IntArray]], num_categories: int
) -> Iterator[_Statistic]:
    """Distances in the parts of each column, and of each pair."""
    names, what = list(parts), "Shares" if num_categories > 1 else "Means"
    pairs = combinations(names, 2) if len(names) <= _MOST_COLUMNS else ()
    for columns in [*((name,) for name in names), *pairs]:
        codes = np.zeros(1, dtype=np.int64)
        for name in columns:
            labels, codes_of_column = parts[name]
            codes = codes * len(labels) + codes_of_column
        label, together = " and ".join(columns), ":".join(columns)
        kind, add = Kind("columns"), ""
        if len(columns) > 1:
            kind = Kind("pairs of columns", [f"distance by {name}" for name in columns])
            add = f": add {together} or (1 | {together})"
        more = f"{what} by {label} differ more than the model predicts{add}."
        advice = more, f"{what} by {label} differ less than the model predicts."
        codes = np.unique(codes, return_inverse=True)[1]
        yield _Statistic(f"distance by {label}", _distance(codes), advice, kind)


def _of_proportional_odds(design: Design, specific: Sequence[str]) -> Iterator[_Statistic]:
    """How unequal the effects of each column of a cumulative link are at each cut."""
    for name, x in zip(design.names.tolist(), design.matrix.T, strict=True):
        if name != "Intercept" and not {name, name.partition("[")[0]} & set(specific):
            more = f"Effects of {name} differ between categories (specific={name!r} allows that)."
            advice = more, ""  # as equal as can be is no defect
            yield _Statistic(f"proportional odds of {name}", partial(_inequality, x), advice)


def _inequality(x: FloatArray, counts: IntArray, expected: FloatArray) -> float:
    """Wald statistic of equal effects of a column on the log odds at each cut (Brant 1990).

    The effects are one Newton step from those of the model, at each cut by itself: with residuals r
    of counts above a cut and z the column less its mean there, weighted by the variances v of r,
    sum(z r) / sum(z^2 v).
    """
    totals = expected.sum(axis=1)
    above, mean = (np.cumsum(c[:, ::-1], axis=1)[:, -2::-1] for c in (counts, expected))
    share = mean / np.maximum(totals, 1e-300)[:, None]
    var = mean * (1.0 - share)
    z = x[:, None] - (x @ var) / var.sum(axis=0)
    information = np.sum(z**2 * var, axis=0)
    weighted = totals[:, None] * z
    both = weighted.T @ (z * share)  # of k and a later cut l, above which are those above k, too
    cov = np.triu(both) + np.triu(both, 1).T - (weighted * share).T @ (z * share)
    cov = cov / np.outer(information, information)
    steps, inverse = np.sum(z * (above - mean), axis=0) / information, np.linalg.pinv(cov)
    weights = inverse.sum(axis=0)
    steps = steps - weights @ steps / weights.sum()
    return float(steps @ inverse @ steps)


def _of_predictions(categories: NDArray[np.str_], probs: FloatArray) -> Iterator[_Statistic]:
    """Distances of each category in bins of its predicted probability."""
    for k, name in enumerate(categories):
        nearer = f"Predictions of {name} are nearer to outcomes than chance would have it."
        advice = f"Predictions of {name} are not calibrated.", nearer
        one = np.eye(len(categories))[:, [k]]
        sums = np.hstack([one, 1.0 - one]) if len(one) > 1 else one
        yield _Statistic(f"calibration of {name}", _distance(_bins(probs[:, k]), sums), advice)


def _parts_of(name: str, values: object, order: Sequence[str] = ()) -> tuple[list[str], IntArray]:
    """Labels of a column's parts, and each row's: numbers in bins of about equally many."""
    column = np.asarray(values)
    if column.dtype.kind in "iufM" and len(np.unique(column)) > 2 * _BINS:
        is_date = column.dtype.kind == "M"
        codes = _bins((column.astype(np.int64) if is_date else column).astype(np.float64))
        form: Any = date_text if is_date else "{:g}".format
        parts = [column[codes == c] for c in range(codes.max() + 1)]
        return [f"{form(part.min())} to {form(part.max())}" for part in parts], codes
    levels, codes = Levels.of({name: column}, {name: order})
    return levels.names.tolist(), codes


def _bins(values: FloatArray) -> IntArray:
    """The bin of each number."""
    edges = np.quantile(values, np.linspace(0.0, 1.0, _BINS + 1)[1:-1])
    return np.unique(np.searchsorted(edges, values), return_inverse=True)[1].astype(np.int64)


def _parts(codes: IntArray) -> Any:
    """Indicators of the parts, ``(num_parts, num_rows)``."""
    return sparse.csr_array((np.ones(len(codes)), (codes, np.arange(len(codes)))))

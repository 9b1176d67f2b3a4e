"""How well an additive regression predicts respondents, and what it has not seen in them.

`loo` tells each respondent from all the others, by importance sampling; `compare` does it beside
the obvious, shares of everybody or of those in the same group, or beside another run. `check`
compares counts in parts of the data with counts that the model makes there: a model whose terms
leave something out makes too little difference between the parts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pgmult.core.arguments import as_choice, as_kind, as_seed, as_strings, under_name
from pgmult.core.checks import PredictiveChecks
from pgmult.core.comparison import Comparison
from pgmult.core.labels import Levels
from pgmult.core.reports import Report, Section
from pgmult.core.scores import LARGE_K, Score, leave_one_out
from pgmult.core.tabled import Column, Table, Tabled
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_positive_int
from pgmult.formulas.columns import as_mapping, cells_of_rows
from pgmult.formulas.design import table_of
from pgmult.regression.answers import Means, data_of_run
from pgmult.regression.models.additive import AdditiveRows
from pgmult.regression.rows import outcomes_of
from pgmult.sampling.posterior import Posterior

_BINS = 4  # of numbers
_MOST_COLUMNS = 8  # whose pairs are looked at, too
_LEAST = 0.5  # added to expected counts that something is divided by
_MOST_RIVALS = 6
_HOW = "Each respondent is told from all the others, by Pareto-smoothed importance sampling."
_HELD_OUT = "Of respondents that were held out."


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LeaveOneOut(Tabled):
    """Log probabilities of respondents given all others; printed, what they come to.

    Attributes
    ----------
    cells, categories : int arrays, ``(num_kinds,)``
        Respondents of one cell and category are told alike.
    counts : int array, ``(num_kinds,)``
        How many they are.
    log_p : array, ``(num_kinds,)``
        Of one of them given all other respondents.
    fitted : array, ``(num_kinds,)``
        The same given all respondents, themselves included.
    k : array, ``(num_kinds,)``
        Pareto shapes of the importance weights; above 0.7 these say little.
    by_chain : array, ``(num_chains, num_kinds)``
        `log_p` by the draws of each chain alone.
    """

    cells: IntArray
    categories: IntArray
    counts: IntArray
    log_p: FloatArray
    fitted: FloatArray
    k: FloatArray
    by_chain: FloatArray

    @property
    def elpd(self) -> float:
        """Sum over respondents."""
        return float(self.counts @ self.log_p)

    @property
    def error(self) -> float:
        """Its standard error."""
        number = self.counts.sum()
        mean = self.elpd / number
        return float(np.sqrt(self.counts @ (self.log_p - mean) ** 2 * number / max(number - 1, 1)))

    @property
    def num_parameters(self) -> float:
        """The effective number: what fitting gains."""
        return float(self.counts @ (self.fitted - self.log_p))

    @property
    def num_rough(self) -> int:
        """Respondents whose weights say little."""
        return int(self.counts[self.k > LARGE_K].sum())

    def table(self) -> Table:
        """A row a quantity."""
        number, error = int(self.counts.sum()), self.error
        rows = {
            "log probability, sum": (self.elpd, error),
            "nats a respondent": (self.elpd / number, error / number),
            "effective parameters": (self.num_parameters, np.nan),
            f"respondents with k above {LARGE_K}": (float(self.num_rough), np.nan),
        }
        values, errors = zip(*rows.values(), strict=True)
        return Table(
            f"{number:,} respondents. {_HOW}",
            [
                Column("quantity", list(rows), "quantity"),
                Column("value", values, "value", lambda x: f"{x:.6g}"),
                Column("error", errors, "error", lambda x: "" if np.isnan(x) else f"{x:.3g}"),
            ],
        )

    def score(self, chosen: IntArray | None = None) -> Score:
        """For comparisons, one respondent after another, or in another order of their kinds."""
        each = np.repeat(np.arange(len(self.counts)), self.counts) if chosen is None else chosen
        return Score(
            self.log_p[each], np.ones(len(each), dtype=np.int64), self.by_chain[:, each],
            self.num_rough / max(int(self.counts.sum()), 1),
        )  # fmt: skip


def loo(run: Posterior, *, max_draws: int = 1000) -> LeaveOneOut:
    """How well each respondent is told from all the others.

    Parameters
    ----------
    run : Posterior
        Of an `AdditiveRegression`.
    max_draws : int
        At most so many draws are used, evenly spread.

    Returns
    -------
    LeaveOneOut
        Of single respondents, not of cells: the log score of Vehtari, Gelman and Gabry (2017).
    """
    data_of_run(run, of_categories=True)
    used = as_positive_int(max_draws, "max_draws")
    used = max(used - used % run.num_chains, 1)
    means = Means.of(run, None, None, None, False, used, 0)
    return left_out(run, means.data, means.each({}))


def left_out(run: Posterior, data: AdditiveRows, draws: Iterator[FloatArray]) -> LeaveOneOut:
    """The same of probabilities of the cells in each draw."""
    cells, categories = np.nonzero(data.counts)
    log_p = np.array([np.log(np.maximum(probs[cells, categories], 1e-300)) for probs in draws])
    chains = run.num_chains if len(log_p) % run.num_chains == 0 else 1
    found = leave_one_out(log_p.reshape(chains, -1, len(cells)))
    top = log_p.max(axis=0)
    fitted = top + np.log(np.mean(np.exp(log_p - top), axis=0))
    return LeaveOneOut(
        cells, categories, data.counts[cells, categories], found.log_p, fitted, found.k,
        found.by_chain,
    )  # fmt: skip


def compare(
    run: Posterior,
    other: Posterior | None = None,
    held_out: Any = None,
    *,
    names: tuple[str, str] = ("the first", "the second"),
    max_draws: int = 1000,
) -> Comparison | Report:
    """Does a run beat the obvious, or another run?

    Parameters
    ----------
    run : Posterior
        Of an `AdditiveRegression`.
    other : Posterior, optional
        A run of the same table with another formula, or of the same outcome if there are rows held
        out. If left out, the rivals are the shares of all respondents, and of those of the same
        label of a column or grouping.
    held_out : table, optional
        Rows that were not shown, with all columns that the formulas name; if left out, respondents
        are told from each other: see `loo`.
    names : pair of str
        What two runs are called.
    max_draws : int

    Raises
    ------
    ValueError
        If a column is missing, or the runs are of other respondents.
    """
    first = data_of_run(run, of_categories=True)
    called = as_strings(names, "names")
    if len(called) != 2:
        raise ValueError(f"names must be two, got {len(called)}")
    if other is None:
        own = _scored(run, held_out, max_draws)
        rivals = _rivals(first, held_out)
        how = _HOW if held_out is None else _HELD_OUT
        return Comparison.of({"this model": own, **rivals}, "a respondent", how, _ADVICE)
    second = data_of_run(as_kind(other, "other", Posterior))
    if not np.array_equal(first.categories, second.categories):
        raise ValueError(
            f"other must have the categories {', '.join(first.categories)}, got"
            f" {', '.join(second.categories)}"
        )
    both = (run, first), (other, second)
    if held_out is not None:
        return _two(called, [_scored(one, held_out, max_draws) for one, _ in both], _HELD_OUT)
    kinds = [_kinds_in_turn(data) for _, data in both]
    ours, theirs = (kind % first.num_categories for kind in kinds)
    if not np.array_equal(ours, theirs):
        raise ValueError("other must be a run of the same rows as run (or give rows held out)")
    scores = []
    for (one, data), kind in zip(both, kinds, strict=True):
        found = loo(one, max_draws=max_draws)
        place = np.full(data.counts.size, -1)
        place[found.cells * data.num_categories + found.categories] = np.arange(len(found.counts))
        scores.append(found.score(place[kind]))
    return _two(called, scores, _HOW)


def _two(names: Sequence[str], scores: Sequence[Score], how: str) -> Report:
    """Which of two runs is better."""
    gain = scores[0].gain_over(scores[1])
    told = f"{names[0]} tells a respondent {gain.word} {names[1]}: {gain} nats."
    rows = [(name, score.mean) for name, score in zip(names, scores, strict=True)]
    section = Section("Scores", how, head=("run", "nats a respondent"), rows=rows)
    return Report(" and ".join(names), [f"{told[0].upper()}{told[1:]}"], [section])


_ADVICE = {"overall shares": "report the shares of all respondents"}


def _kinds_in_turn(data: AdditiveRows) -> IntArray:
    """Cell and category of each respondent, as one number, in the order of the table."""
    if data.entries is None:
        raise ValueError("run must be of rows of a table, by formula (or give rows held out)")
    return np.repeat(data.entries[:, 0], data.entries[:, 1])


def _scored(run: Posterior, held_out: Any, max_draws: int) -> Score:
    """Log probabilities of respondents, of the run itself or held out."""
    if held_out is None:
        return loo(run, max_draws=max_draws).score()
    data = data_of_run(run, of_categories=True)
    counts = outcomes_of(str(data.design.formula), held_out, data.categories)
    means = Means.of(run, held_out, None, None, True, max_draws, 0, "held_out")
    mean = means.mean()
    rows, categories = np.nonzero(counts)
    each = np.repeat(np.arange(len(rows)), counts[rows, categories])
    log_p = np.log(np.maximum(mean[rows, categories], 1e-300))
    return Score(log_p[each], np.ones(len(each), dtype=np.int64))


def _rivals(data: AdditiveRows, held_out: Any) -> dict[str, Score]:
    """Shares of all respondents, and of those of a label, without the one who is told."""
    counts, given = data.counts, table_of(data.design)
    names = [name for name, column in given.items() if np.asarray(column).dtype.kind != "f"]
    codes = {"overall shares": np.zeros(len(counts), dtype=np.int64)}
    known = {}
    for name in names[:_MOST_RIVALS]:
        known[name], codes[f"shares by {name}"] = Levels.of({name: given[name]})
    new, own, seen = counts, codes, 1.0
    if held_out is not None:
        new, seen = outcomes_of(str(data.design.formula), held_out, data.categories), 0.0
        columns = as_mapping(held_out, None)
        own = {"overall shares": np.zeros(len(new), dtype=np.int64)}
        for name, levels in known.items():
            cells = cells_of_rows(columns, name, len(new)).values
            own[f"shares by {name}"] = np.maximum(levels.find([cells], new_levels=True), -1)
    rows, categories = np.nonzero(new)
    each = np.repeat(np.arange(len(rows)), new[rows, categories])
    found = {}
    for name, code in codes.items():
        sums = _parts(code) @ counts
        at = own[name][rows]
        sums = np.vstack([sums, np.zeros_like(sums[:1])])  # a label that is new: code -1
        above = sums[at, categories] - seen + _LEAST
        below = sums[at].sum(axis=1) - seen + _LEAST * counts.shape[1]
        log_p = np.log(above / below)
        found[name] = Score(log_p[each], np.ones(len(each), dtype=np.int64))
    return found


def check(
    run: Posterior,
    held_out: Any = None,
    *,
    by: str | None = None,
    max_draws: int = 200,
    random_seed: int = 0,
) -> PredictiveChecks:
    """Compare counts in parts of the data with those that the model makes of the same rows.

    The statistics are the share of each category; and for each column of the formula and each pair
    of them how far counts are from expected ones, the sum of (count - expected)^2 / expected over
    labels (numbers in four bins) and categories. With `held_out` there is one of the predictions
    themselves for each category, in bins of predicted probability: are they calibrated?

    Parameters
    ----------
    run : Posterior
        Of an `AdditiveRegression`.
    held_out : table, optional
        Rows that the model was not shown, with the columns of the formula and the outcome.
    by : str, optional
        A column: instead, the share of each category in each of its parts.
    max_draws : int
    random_seed : int

    Returns
    -------
    PredictiveChecks
    """
    data, seed = data_of_run(run, of_categories=True), as_seed(random_seed)
    counts, given = data.counts, table_of(data.design)
    if held_out is not None:
        counts = outcomes_of(str(data.design.formula), held_out, data.categories)
        with under_name("held_out", of="covariates"):
            columns = as_mapping(held_out, None)
            given = {name: cells_of_rows(columns, name, len(counts)).values for name in given}
    means = Means.of(
        run, held_out, None, None, held_out is not None, max_draws, seed, "held_out"
    )  # fmt: skip
    parts = {name: _parts_of(name, values) for name, values in given.items()}
    splits = [
        *_of_categories(data.categories, len(counts)),
        *_of_columns(parts, len(data.categories)),
    ]
    if by is not None:
        splits = list(_shares_by(as_choice(by, "by", parts), *parts[by], data.categories))
    elif held_out is not None:
        splits += _of_predictions(data.categories, means.mean())
    rng = np.random.default_rng(seed)
    totals, found = counts.sum(axis=1), []
    for probs in means.each({}):
        made = rng.multinomial(totals, probs / probs.sum(axis=1, keepdims=True))
        expected = totals[:, None] * probs
        found.append([split.of(counts, made, expected) for split in splits])
    names, advice = [split.name for split in splits], [split.advice for split in splits]
    seen, drawn = np.array(found).transpose(2, 1, 0)
    return PredictiveChecks.of(
        *(dict(zip(names, each, strict=True)) for each in (seen, drawn, advice))
    )


class _Split(NamedTuple):
    """A division of the rows into parts and of the categories into sums, and a statistic.

    Attributes
    ----------
    name : str
    rows : sparse array, ``(num_parts, num_rows)``
    sums : array, ``(num_categories, num_sums)``
    is_share : bool
        Whether the statistic is the share of the first sum in the only part, rather than a distance
        from what is expected.
    advice : pair of str
        Where the data have more of it, and where they have less.
    """

    name: str
    rows: Any
    sums: FloatArray
    is_share: bool
    advice: tuple[str, str]

    def of(self, counts: IntArray, made: IntArray, expected: FloatArray) -> tuple[float, float]:
        """The statistic of counts, and of those that the model makes."""
        seen, drawn = (self.rows @ (each @ self.sums) for each in (counts, made))
        if self.is_share:
            size = max(float((self.rows @ counts).sum()), 1.0)
            return float(seen[0, 0] / size), float(drawn[0, 0] / size)
        mean = self.rows @ (expected @ self.sums)
        scale = mean + _LEAST
        return float(np.sum((seen - mean) ** 2 / scale)), float(np.sum((drawn - mean) ** 2 / scale))


def _of_categories(categories: NDArray[np.str_], size: int) -> Iterator[_Split]:
    """The share of each category."""
    for name, one in zip(categories, np.eye(len(categories)), strict=True):
        advice = f"There are more {name} than the model makes.", f"There are fewer {name}."
        yield _Split(f"share of {name}", _parts(np.zeros(size, int)), one[:, None], True, advice)


def _shares_by(
    by: str, labels: Sequence[str], codes: IntArray, categories: NDArray[np.str_]
) -> Iterator[_Split]:
    """The share of each category in each part."""
    for part, label in enumerate(labels):
        rows = _parts(codes)[[part]]
        for name, one in zip(categories, np.eye(len(categories)), strict=True):
            where = f"{name} where {by} is {label}"
            advice = f"There are more {where}.", f"There are fewer {where}."
            yield _Split(f"share of {where}", rows, one[:, None], True, advice)


def _of_columns(
    parts: Mapping[str, tuple[list[str], IntArray]], num_categories: int
) -> Iterator[_Split]:
    """Distances in the parts of each column, and of each pair."""
    names = list(parts)
    pairs = combinations(names, 2) if len(names) <= _MOST_COLUMNS else ()
    for columns in [*((name,) for name in names), *pairs]:
        codes = np.zeros(1, dtype=np.int64)
        for name in columns:
            labels, own = parts[name]
            codes = codes * len(labels) + own
        told = " and ".join(columns)
        lets = f" ({':'.join(columns)} or (1 | {':'.join(columns)}) would let them)"
        advice = (
            f"Shares by {told} differ more than the model has it{lets * (len(columns) > 1)}.",
            f"Shares by {told} differ less than the model makes them.",
        )
        rows = _parts(np.unique(codes, return_inverse=True)[1])
        yield _Split(f"distance by {told}", rows, np.eye(num_categories), False, advice)


def _of_predictions(categories: NDArray[np.str_], probs: FloatArray) -> Iterator[_Split]:
    """Distances of each category in bins of its predicted probability."""
    for k, name in enumerate(categories):
        one = np.eye(len(categories))[k]
        advice = (
            f"Predicted probabilities of {name} are not calibrated.",
            f"Predicted probabilities of {name} are nearer to shares than chance would have it.",
        )
        sums = np.column_stack([one, 1.0 - one])
        yield _Split(f"calibration of {name}", _parts(_bins(probs[:, k])), sums, False, advice)


def _parts_of(name: str, values: Any) -> tuple[list[str], IntArray]:
    """Labels of a column's parts, and each row's: numbers in bins of about equally many."""
    column = np.asarray(values)
    if column.dtype.kind in "iuf" and len(np.unique(column)) > 2 * _BINS:
        codes = _bins(column.astype(np.float64))
        ends = [
            (column[codes == c].min(), column[codes == c].max()) for c in range(codes.max() + 1)
        ]
        return [f"{low:g} to {high:g}" for low, high in ends], codes
    levels, codes = Levels.of({name: column})
    return levels.names.tolist(), codes


def _bins(values: FloatArray) -> IntArray:
    """The bin of each number."""
    edges = np.quantile(values, np.linspace(0.0, 1.0, _BINS + 1)[1:-1])
    return np.unique(np.searchsorted(edges, values), return_inverse=True)[1].astype(np.int64)


def _parts(codes: IntArray) -> Any:
    """Indicators of the parts, ``(num_parts, num_rows)``."""
    return sparse.csr_array((np.ones(len(codes)), (codes, np.arange(len(codes)))))

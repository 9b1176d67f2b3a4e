r"""Baselines for fields: shares of everything, of a place, a year, neighbours, the time before.

Each row of counts is predicted from all others, its own counts left out: the score of a count is
the log probability of its category. A baseline takes shares of some of the other rows, n of
category k out of N, drawn towards the pooled shares q of all other rows::

    p_k = (n_k + s q_k) / (N + s)

with the weight s that predicts all counts best, one number for each baseline; where categories were
not counted, p is that of the others. Of series there is an autoregression of second order of each
category's log ratio to the geometric mean of all, fitted to all rows by least squares, on the two
rows before. The model's probabilities given all other rows are in `pgmult.fields.left_out`. Counts
that were held out are predicted from the data of the fit, and nothing needs to be left out.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp, softmax, xlogy

from pgmult.core.arguments import as_kind
from pgmult.core.comparison import Comparison, between_two
from pgmult.core.scores import LARGE_K, Score, leave_one_out
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_positive_int
from pgmult.fields.covariances.sphere import columns_in_degrees, great_circle
from pgmult.fields.data import CountField, smoothed_shares
from pgmult.fields.left_out import as_drawn, without_row
from pgmult.fields.predictions import own_data, row_labels
from pgmult.fields.tables import axis_and_places
from pgmult.sampling.posterior import Posterior

_NEAREST = 5  # places
_SHORTEST = 8  # rows of a series whose autoregression is worth a try
_ADVICE = {
    "pooled shares": "take the shares of all counts together: nothing moves that these data show",
    "shares of its place": "take each place's own shares: they hardly move along the other inputs",
    "its nearest places": "take the shares of the nearest places at the same time",
    "last shares": "carry each place's last shares forward",
    "the rows before and after": "take the shares of the rows before and after, or between them",
    "AR(2) of log ratios": "take an autoregression of log ratios on the two rows before",
}


def compare(
    run: Posterior,
    other: Posterior | None = None,
    *,
    data: CountField | None = None,
    held_out: ArrayLike | None = None,
    names: tuple[str, str] = ("the first", "the second"),
    max_draws: int = 100,
) -> Comparison:
    """Does the field predict counts better than simple shares do, or than another run?

    Parameters
    ----------
    run : Posterior
        That kept ``psi`` or ``pi``.
    other : Posterior, optional
        Of the same counts; without it the run is compared with simple models.
    data : CountField, optional
        The data of the run, needed only if it was saved without them.
    held_out : int array, ``(num_rows, num_categories)``, optional
        Counts that were not in the fit, to be predicted instead of those that were.
    names : pair of str
        What to call two runs.
    max_draws : int
        Draws to use at most: integrals over what each tells of every row cost more than all else.

    Raises
    ------
    ValueError
        If the runs are of other inputs, categories or counts.
    """
    data = own_data(run, data)
    target = data.counts if held_out is None else data.held_out(held_out)
    if not target.any():
        raise ValueError("there must be counts to predict, all rows are empty")
    rows = _Rows(data, target, as_positive_int(max_draws, "max_draws"), held_out is None)
    how = "Each row of counts is predicted from all other rows, its own counts left out"
    if held_out is not None:
        how = f"Each of {target.sum():,} counts that were held out is predicted from the others"
    if other is not None:
        theirs = own_data(as_kind(other, "other", Posterior), None)
        hint = "fit both with the same --hold-out and --seed"
        for what in ("categories", "inputs", "counts"):
            if not np.array_equal(getattr(data, what), getattr(theirs, what)):
                raise ValueError(f"other must be a run of the same {what} ({hint})")
        both = (rows.by_run(one, its)[0] for one, its in ((run, data), (other, theirs)))
        return between_two(names, both, "a count", f"{how}.")
    model, num_draws = rows.by_run(run, data)
    axis, sources = _sources(data, columns_in_degrees(run.model.covariance))
    scores = {"the model": model, "pooled shares": rows.by_shares(np.zeros(data.counts.shape))}
    scores |= {name: rows.by_shares(x) for name, x in sources.items() if x[rows.chosen].any()}
    how += f"; the model by {num_draws:,} of its draws."
    advice = {f"shares of its {axis}": f"take the shares of all places at each {axis}"}
    columns = row_labels(data, ("seen",))["row"]
    where = [", ".join(f"{n} {columns[n][row]}" for n in columns) for row in rows.chosen]
    return Comparison.of(scores, "a count", how, _ADVICE | advice, labels=where)


class _Rows:
    """Rows of counts to predict, and their scores."""

    def __init__(self, data: CountField, target: IntArray, most: int, left_out: bool):
        self.chosen = np.flatnonzero(target.any(axis=1))
        self.target, self.most, self.left_out = target[self.chosen], most, left_out
        self.counted = None if data.counted is None else data.counted[self.chosen]
        others = data.counts.sum(axis=0) - data.counts[self.chosen].astype(np.float64)
        self.pooled = smoothed_shares(others, 0.5)

    def by_shares(self, source: FloatArray) -> Score:
        """Score the shares of a source, ``(all rows, num_categories)``, at the best weight."""
        taken = source[self.chosen]
        total = taken.sum(axis=1, keepdims=True)

        def by_row(log_weight: float) -> FloatArray:
            weight = np.exp(log_weight)
            probs = (taken + weight * self.pooled) / (total + weight)
            if self.counted is not None:
                probs = np.where(self.counted, probs, 0.0)
                probs = probs / probs.sum(axis=1, keepdims=True)
            return np.asarray(xlogy(self.target, probs).sum(axis=1))

        best = minimize_scalar(
            lambda log_weight: -float(by_row(log_weight).sum()),
            bounds=(-10.0, 15.0), method="bounded", options={"xatol": 0.05},
        )  # fmt: skip
        return Score(by_row(float(best.x)), self.target.sum(axis=1))

    def by_run(self, run: Posterior, data: CountField) -> tuple[Score, int]:
        """A model's score, by probabilities given all other rows, and how many draws tell it."""
        target, totals = self.target, self.target.sum(axis=1)
        if self.left_out:
            log_p, log_probs = without_row(run, data, self.chosen, self.most)
            scores = leave_one_out(log_p, log_probs)
            pooled, alone = scores.log_p, scores.by_chain
            large = float(totals @ (scores.k > LARGE_K) / totals.sum())
        else:
            log_probs = as_drawn(run, data, self.chosen, self.most)
            alone = logsumexp(log_probs, axis=1) - np.log(log_probs.shape[1])
            pooled, large = logsumexp(alone, axis=0) - np.log(len(alone)), 0.0
        by_chain = np.einsum("crk,rk->cr", alone, target)
        score = Score(np.sum(pooled * target, axis=1), totals, by_chain, large)
        return score, log_probs.shape[0] * log_probs.shape[1]


def _sources(data: CountField, sphere: tuple[int, int] | None) -> tuple[str, dict[str, FloatArray]]:
    """Counts of other rows that each rival takes shares of, by row; and the axis."""
    counts = data.counts.astype(np.float64)
    axis, x, places, place = axis_and_places(data, row_labels(data, ("seen",))["row"], len(counts))
    values, at = np.unique(x, return_inverse=True)
    table = np.zeros((len(values), len(places), counts.shape[1]))
    np.add.at(table, (at, place), counts)
    sources = {}
    for name, group in (("shares of its place", place), (f"shares of its {axis}", at)):
        total = np.stack([np.bincount(group, column) for column in counts.T], axis=1)
        if 1 < len(total) < data.num_rows:
            sources[name] = total[group] - counts
    if len(places) > 1:
        sources["its nearest places"] = _nearest(data, axis, place, table, sphere)[at, place]
    before, after = _last(table)[at, place], _last(table[::-1])[::-1][at, place]
    sources["last shares"] = before
    if after.any():
        sources["the rows before and after"] = before + after
    sources["AR(2) of log ratios"] = _autoregression(table)[at, place]
    return axis, sources


def _nearest(
    data: CountField, axis: str, place: IntArray, table: FloatArray, degrees: tuple[int, int] | None
) -> FloatArray:
    """Sum the counts of each cell's nearest places at the same value of the axis.

    Columns of latitude and longitude that the model knows are on the sphere.
    """
    others = [i for i, name in enumerate(data.input_labels) if name != axis]
    points = data.inputs[np.unique(place, return_index=True)[1]]
    if degrees is None:
        apart = np.square(points[:, None, others] - points[:, others]).sum(axis=2)
    else:
        apart = great_circle(points[:, degrees], points[:, degrees])
    np.fill_diagonal(apart, np.inf)
    nearest = np.argsort(apart, axis=1, kind="stable")[:, : min(_NEAREST, len(points) - 1)]
    return np.asarray(sum(table[:, its] for its in nearest.T))


def _autoregression(table: FloatArray) -> FloatArray:
    """Shares of each cell by an autoregression on the two before it at its place; 0 if none.

    Cells without counts are predicted in turn, and used to predict those after them.
    """
    shape, shares = table.shape, np.zeros_like(table)
    if shape[0] < _SHORTEST:
        return shares
    logs = np.log(smoothed_shares(table, 0.5))
    logs -= logs.mean(axis=2, keepdims=True)
    full = np.asarray(table.any(axis=2))
    target = full[2:] & full[1:-1] & full[:-2]
    now, one_ago, two_ago = (logs[2 - lag : shape[0] - lag][target] for lag in range(3))
    slopes = np.zeros((shape[2], 3))
    if len(now) < 2 * slopes.shape[1]:
        return shares
    for k in range(shape[2]):
        design = np.column_stack([np.ones(len(now)), one_ago[:, k], two_ago[:, k]])
        slopes[k] = np.linalg.lstsq(design, now[:, k], rcond=None)[0]
    available, predicted = full.copy(), np.full(shape, -np.inf)
    for t in range(2, shape[0]):
        has_past = available[t - 1] & available[t - 2]
        ahead = slopes[:, 0] + slopes[:, 1] * logs[t - 1] + slopes[:, 2] * logs[t - 2]
        new = has_past & ~full[t]
        predicted[t, has_past], logs[t, new] = ahead[has_past], ahead[new]
        available[t] |= has_past
    has = np.isfinite(predicted).all(axis=2)
    shares[has] = softmax(predicted[has], axis=1)
    return shares


def _last(table: FloatArray) -> FloatArray:
    """Counts of the last cell before each one at its place that has any; 0 if none."""
    steps = np.where(table.any(axis=2), np.arange(len(table))[:, None], -1)
    last = np.maximum.accumulate(steps, axis=0)[:-1]
    t, place = np.nonzero(last >= 0)
    before = np.zeros_like(table)
    before[t + 1, place] = table[last[t, place], place]
    return before

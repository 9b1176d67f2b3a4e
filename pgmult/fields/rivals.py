r"""Baselines for fields: shares of everything, of a place, of the time before, of a row alone.

Each count is predicted from all the others. A baseline takes shares of some of the counts, n of
category k out of N, drawn towards the pooled shares q of everything::

    p_k = (n_k + s q_k) / (N + s),      the count itself left out of n, N and q

with the weight s that predicts all counts best, one number for each baseline. The model's
probability of a count given the others follows from draws of the probabilities pi of its row by
importance sampling (`pgmult.core.scores.leave_one_out`). Counts that were held out are predicted
from the data of the fit, and nothing needs to be left out.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar

from pgmult.core.comparison import Comparison
from pgmult.core.scores import Score
from pgmult.core.tables import as_years, date_text
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_positive_int
from pgmult.fields.data import CountField
from pgmult.fields.predictions import own_data, row_labels
from pgmult.sampling.posterior import Posterior

_HELD = 2**25  # draws of probabilities held at a time
_ADVICE = {
    "pooled shares": "take the shares of all counts together: nothing moves that these data show",
    "shares of its place": "take each place's own shares: they hardly move along the other inputs",
    "last shares": "carry each place's last shares forward",
    "its row alone": "take each row's own shares, for each has many counts (--hold-out 0.1, or"
    " held_out=, scores what the model says of other rows)",
}


def compare_with_rivals(
    run: Posterior,
    *,
    data: CountField | None = None,
    held_out: ArrayLike | None = None,
    max_draws: int = 400,
) -> Comparison:
    """Does the field predict counts better than simple shares do?

    Parameters
    ----------
    run : Posterior
        That kept ``psi`` or ``pi``.
    data : CountField, optional
        The data of the run, needed only if it was saved without them.
    held_out : int array, ``(num_rows, num_categories)``, optional
        Counts that were not in the fit, to be predicted instead of those that were.
    max_draws : int
        Draws to use at most.
    """
    data = own_data(run, data)
    told = data.counts if held_out is None else data.held_out(held_out)
    if not told.any():
        raise ValueError("there must be counts to be told, all rows are empty")
    row, category = np.nonzero(told)
    cells = _Cells(data.counts, row, category, told[row, category], held_out is None)
    scores = {"the model": _own(run, data, cells, as_positive_int(max_draws, "max_draws"))}
    for name, counts in _sources(data, held_out is None).items():
        scores[name] = cells.score(*counts)
    how = (
        "Each count is told from all the others, those of its own row among them."
        if held_out is None
        else f"Each of {int(told.sum()):,} counts that were held out is told from what was shown."
    )
    return Comparison.of(scores, "a count", how, _ADVICE)


class _Cells:
    """Cells with counts to be told, and how probable rivals find them."""

    def __init__(
        self, counts: IntArray, row: IntArray, category: IntArray, number: IntArray, left_out: bool
    ):
        self.row, self.category, self.number, self.left_out = row, category, number, left_out
        self.rows, self.unit = np.unique(row, return_inverse=True)
        pooled = counts.sum(axis=0).astype(np.float64)
        own = float(left_out)  # the count itself is in what is shown
        self._pooled = (pooled[category] - own + 0.5) / (pooled.sum() - own + 0.5 * len(pooled))

    def _told(self, log_p: FloatArray) -> Score:
        """That of probabilities, added up over the counts of each row."""
        totals = np.bincount(self.unit, self.number).astype(np.int64)
        return Score(np.bincount(self.unit, self.number * log_p).astype(np.float64), totals)

    def score(self, source: FloatArray | None, has_own: bool) -> Score:
        """That of shares of the source, ``(num_rows, num_categories)``, at the best weight."""
        if source is None:
            return self._told(np.log(self._pooled))
        own = float(self.left_out and has_own)
        taken = source[self.row, self.category] - own
        total = source.sum(axis=1)[self.row] - own

        def log_p(log_weight: float) -> FloatArray:
            weight = np.exp(log_weight)
            return np.asarray(np.log((taken + weight * self._pooled) / (total + weight)))

        def loss(log_weight: float) -> float:
            return -float(self.number @ log_p(log_weight))

        best = minimize_scalar(loss, bounds=(-5.0, 15.0), method="bounded", options={"xatol": 0.05})
        return self._told(log_p(float(best.x)))


def _own(run: Posterior, data: CountField, cells: _Cells, max_draws: int) -> Score:
    """The model's score, from draws of the probabilities."""
    most = min(max_draws, max(4 * run.num_chains, _HELD // max(1, data.counts.size)))
    by_psi = "psi" in run
    draws = run.thinned("psi" if by_psi else "pi", most)
    link: Callable[[FloatArray], FloatArray] = run.link.probs if by_psi else np.asarray
    sites = data.row_sites if by_psi else np.arange(data.num_rows)
    at = sites[cells.rows], np.searchsorted(cells.rows, cells.row)
    log_p = np.empty((*draws.shape[:2], len(cells.row)))
    for chain, draw in np.ndindex(*draws.shape[:2]):
        probs = link(draws[chain, draw, at[0]])
        log_p[chain, draw] = np.log(np.maximum(probs[at[1], cells.category], 1e-300))
    number = cells.number
    return Score.of_draws(log_p, number, unit=cells.unit, times=number, left_out=cells.left_out)


def _sources(data: CountField, left_out: bool) -> dict[str, tuple[FloatArray | None, bool]]:
    """Of each rival the counts that it takes shares of, by row, and whether the row's are in."""
    counts = data.counts.astype(np.float64)
    found: dict[str, tuple[FloatArray | None, bool]] = {"pooled shares": (None, True)}
    _, x, places, place = axis_and_places(data, row_labels(data, ("seen",))["row"], data.num_rows)
    if 1 < len(places) < data.num_rows:
        by_place = np.zeros((len(places), counts.shape[1]))
        np.add.at(by_place, place, counts)
        found["shares of its place"] = by_place[place], True
    last = _last(x, place, counts)
    if last is not None:
        found["last shares"] = last, False
    if left_out:
        found["its row alone"] = counts, True
    return found


def _last(x: FloatArray, place: IntArray, counts: FloatArray) -> FloatArray | None:
    """Of each row the counts of the last row before it at its place that has any."""
    order = np.lexsort((x, place))
    before = np.zeros_like(counts)
    known = False
    last, where, when = None, -1, -np.inf
    pending: list[int] = []
    for r in order:
        if place[r] != where:
            last, where, pending, when = None, int(place[r]), [], -np.inf
        if x[r] > when:
            full = [p for p in pending if counts[p].any()]
            if full:
                last = counts[full].sum(axis=0)
            pending, when = [], float(x[r])
        if last is not None:
            before[r], known = last, True
        pending.append(int(r))
    return before if known else None


def axis_and_places(
    data: CountField, columns: Mapping[str, Any], num_rows: int
) -> tuple[str, FloatArray, list[str], IntArray]:
    """What rows lie along: the first column of numbers or dates; the others say their places.

    Returns
    -------
    axis : str
        Empty if there is none.
    x : array, ``(num_rows,)``
    places : list of str
    place : int array, ``(num_rows,)``
    """
    known = {name: np.asarray(values) for name, values in columns.items()}
    if data.columns is None:
        known.pop("row", None)
    axis = next((name for name, values in known.items() if values.dtype.kind in "iufM"), "")
    told: NDArray[Any] = known.get(axis, np.zeros(num_rows))
    x = as_years(told) if told.dtype.kind == "M" else told.astype(np.float64)
    rest = [values for name, values in known.items() if name != axis]
    labels = [", ".join(map(plain, row)) for row in zip(*rest, strict=True)]
    places, place = np.unique(labels or [""] * num_rows, return_inverse=True)
    return axis, x, [str(p) for p in places], place.reshape(-1)


def plain(value: Any) -> str:
    """A label as it is printed."""
    if isinstance(value, np.datetime64):
        return date_text(value)
    return f"{value:g}" if isinstance(value, np.floating | float) else str(value)

r"""Scores of predicted probabilities against counts, one row per input (a place and a time).

*Overlap of extremes.* How many of the r most (or least) frequent categories were predicted to be
among the r most (least) probable? Small counts have ties, and the answer is averaged over all ways
to break them. With A categories above the value at rank r and T
tied at it, a category is among the first r with probability

    1 above,    (r - A) / T tied,    0 below,

in the prediction and, independently, in the counts; the expected overlap is the sum over the
categories of the products of the two.

*Log predictive.* log p(x) under one prediction, or under the mixture over posterior draws,
log (1/S) sum_s p(x | pi_s), a row at a time.

*Coverage.* The rank of a truth among S draws of it is uniform on 0, ..., S when the draws are right
(Talts et al. 2018). Spread uniformly over its cell of (0, 1), and over the cells of the draws that
equal it (Czado, Gneiting and Held 2009, "Predictive model assessment for count data"), it lies in
the central interval of probability q with probability exactly q. `coverage` averages that
probability instead of drawing: it is right for counts as well as for probabilities, and for few
draws.

*Calibration.* `calibration` compares held-out counts with draws of them: coverage; the histogram of
their ranks among the draws (the probability integral transform, averaged over ties as above); and
how often categories that were predicted to be among the first with probability p are. It says in
words what the result means and what to try.

>>> import numpy as np
>>> counts = np.array([[5, 3, 0, 0], [2, 2, 2, 1]])
>>> probs = np.array([[0.4, 0.3, 0.2, 0.1], [0.4, 0.3, 0.2, 0.1]])
>>> overlap(probs, counts, 2)
array([2.        , 1.33333333])
>>> overlap(probs, counts, 1, lowest=True)
array([0.5, 1. ])
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, logsumexp, xlogy

from pgmult.core.arguments import as_flag, as_real, as_seed
from pgmult.core.scores import mean_by_token
from pgmult.core.tabled import Column, Table, Tabled
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_counts, as_finite, as_positive_int, as_simplex


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Coverage(Tabled):
    """How often central intervals hold the truth.

    Attributes
    ----------
    levels : array, ``(num_levels,)``
        Nominal probabilities of the intervals.
    covered : array, ``(num_levels,)``
        Shares of truths inside.
    standard_errors : array, ``(num_levels,)``
        Computed over rows, since the categories of a row are dependent.
    """

    levels: FloatArray
    covered: FloatArray
    standard_errors: FloatArray

    @property
    def in_words(self) -> str:
        """The numbers in one line."""
        rows = zip(self.levels, self.covered, self.standard_errors, strict=True)
        return "coverage " + ", ".join(f"{q:.0%}: {c:.1%} ± {e:.1%}" for q, c, e in rows)

    def table(self) -> Table:
        """One row per level."""
        return Table(
            "How often central intervals hold the truth.",
            [
                Column("level", self.levels, "intervals of", "{:.0%}".format),
                Column("covered", self.covered, "hold", "{:.1%}".format),
                Column("standard_error", self.standard_errors, "±", "{:.1%}".format),
            ],
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Calibration(Tabled):
    """Predictions compared with held-out counts; print it for a verdict in words.

    Attributes
    ----------
    coverage : Coverage
        Of the counts, at 50, 80 and 95 %.
    pit : array, ``(num_bins,)``
        Shares of the counts by their rank among the draws; all ``1 / num_bins`` where these are
        right, large at both ends where intervals are too narrow.
    pit_errors : array, ``(num_bins,)``
        Their standard errors over rows.
    ranks : array, ``(num_groups, 3)``
        For groups of cells of growing probability to be among the first `top` of their row: that
        probability, the share that was, and how many cells. No rows where there is nothing to rank.
    num_cells : int
        Cells that were looked at.
    verdict : str
        In words, with what to try.
    """

    coverage: Coverage
    pit: FloatArray
    pit_errors: FloatArray
    ranks: FloatArray
    num_cells: int
    verdict: str

    def table(self) -> Table:
        """The coverage, headed by the verdict."""
        bins = " ".join(f"{share:.3f}" for share in self.pit)
        groups = ", ".join(f"{said:.0%}: {was:.0%}" for said, was, _ in self.ranks)
        said = f" Said to be among the first, and was: {groups}." if groups else ""
        words = f"{self.verdict} {self.num_cells:,} cells. Ranks among draws: {bins}.{said}"
        return replace(self.coverage.table(), caption=words)


def overlap(
    predicted: ArrayLike, counts: ArrayLike, size: int, *, lowest: bool = False
) -> FloatArray:
    """Expected number of common categories among the first `size`, ties broken at random.

    Parameters
    ----------
    predicted : array, ``(num_rows, num_categories)``
        Probabilities, or anything that ranks the categories.
    counts : array of the same shape
    size : int
        From 1 to the number of categories.
    lowest : bool
        Compare the lowest ones instead of the highest.

    Returns
    -------
    array, ``(num_rows,)``

    Raises
    ------
    ValueError
        If the shapes differ or there are fewer than `size` categories.
    """
    predicted = as_finite(predicted, "predicted")
    counts = as_counts(counts)
    _check_rows(counts, "predicted", predicted.shape)
    size = as_positive_int(size, "size")
    if size > counts.shape[1]:
        raise ValueError(f"size must be at most {counts.shape[1]}, the categories, got {size}")
    sign = -1 if as_flag(lowest, "lowest") else 1
    chosen = _among_the_first(sign * predicted, size) * _among_the_first(sign * counts, size)
    return np.asarray(chosen.sum(axis=1))


def log_predictive(probs: ArrayLike, counts: ArrayLike) -> FloatArray:
    """Log multinomial probability of each row, ``(num_rows,)``.

    Parameters
    ----------
    probs : array, ``(num_rows, num_categories)``
        A probability of 0 is allowed; a count where it stands makes the row -inf.
    counts : array of the same shape
    """
    return log_predictive_mixture(as_simplex(probs, "probs")[None], counts)


def log_predictive_mixture(probs: ArrayLike, counts: ArrayLike) -> FloatArray:
    """Log probability of each row under the equal mixture of draws, ``(num_rows,)``.

    Parameters
    ----------
    probs : array, ``(num_draws, num_rows, num_categories)``
        Posterior draws of the probabilities, all draws of all chains along the first axis.
    counts : array, ``(num_rows, num_categories)``
    """
    probs = as_simplex(probs, "probs")
    counts = as_counts(counts)
    _check_rows(counts, "probs", probs.shape[1:])
    if len(probs) == 0:
        raise ValueError("probs must hold at least one draw")
    by_draw = np.empty(probs.shape[:2])
    for value, draw in zip(by_draw, probs, strict=True):  # one draw's logarithms at a time
        value[:] = xlogy(counts, draw).sum(axis=1)
    coefficient = gammaln(counts.sum(axis=1) + 1.0) - gammaln(counts + 1.0).sum(axis=1)
    return np.asarray(coefficient + logsumexp(by_draw, axis=0) - np.log(len(probs)))


def gain_by_count(
    by_row: ArrayLike, reference: ArrayLike, totals: ArrayLike, groups: ArrayLike | None = None
) -> tuple[float, float]:
    """Mean gain of a log predictive over a reference, in nats per count, and its standard error.

    Parameters
    ----------
    by_row, reference : arrays, ``(num_rows,)``
        Log predictives of the same rows.
    totals : int array, ``(num_rows,)``
    groups : array, ``(num_rows,)``, optional
        Dependent rows, such as the years of a place: the error is computed over groups. By default
        every row is a group.
    """
    gains = as_finite(by_row, "by_row")
    _check_length("by_row", gains, np.size(gains))
    other = as_finite(reference, "reference")
    if other.ndim:
        _check_length("reference", other, len(gains))
    gains = gains - other
    totals = as_counts(totals, "totals")
    _check_length("totals", totals, len(gains))
    number, members = _groups(groups, len(gains))
    return mean_by_token(
        np.bincount(members, gains, minlength=number).astype(np.float64),
        np.bincount(members, totals, minlength=number).astype(np.int64),
    )


def mean_over_groups(by_row: ArrayLike, groups: ArrayLike | None = None) -> tuple[float, float]:
    """Mean of a score by row, and its standard error over groups of rows.

    Parameters
    ----------
    by_row : array, ``(num_rows,)``
    groups : array, ``(num_rows,)``, optional
        As in `gain_by_count`.
    """
    by_row = np.atleast_1d(as_finite(by_row, "by_row"))
    return gain_by_count(by_row, np.zeros(len(by_row)), np.ones(len(by_row)), groups)


def coverage(
    draws: ArrayLike, truth: ArrayLike, levels: Sequence[float] = (0.5, 0.8, 0.95)
) -> Coverage:
    """How often central intervals of the draws hold the truth, with discreteness averaged out.

    Parameters
    ----------
    draws : array, ``(num_draws, num_rows, num_categories)``
        Of the probabilities, where they are known, or of new counts.
    truth : array, ``(num_rows, num_categories)``
    levels : sequence of floats in (0, 1)
    """
    draws, truth = as_finite(draws, "draws"), as_finite(truth, "truth")
    if draws.shape[1:] != truth.shape or draws.ndim != 3 or draws.size == 0:
        raise ValueError(
            f"draws must be (num_draws, *{truth.shape}) to go with truth, got {draws.shape}"
        )
    wanted = as_finite(levels, "levels")
    if wanted.ndim != 1 or not np.all((wanted > 0.0) & (wanted < 1.0)):
        raise ValueError(f"levels must be numbers between 0 and 1, got {levels}")
    covered, errors = np.empty((2, len(wanted)))
    for i, shares in enumerate(_shares_inside(*_rank_cells(draws, truth), wanted)):
        covered[i], errors[i] = mean_over_groups(shares.mean(axis=1))
    return Coverage(wanted, covered, errors)


_LEVELS = (0.5, 0.8, 0.95)
_MOST_BINS = 10_000
_TOLERANCE = 0.02  # of a coverage
_RANK_GROUPS = np.array([0.0, 0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98, 1.0])


def calibration(
    draws: ArrayLike,
    counts: ArrayLike,
    *,
    top: int = 5,
    least: float = 1.0,
    num_bins: int = 10,
    random_seed: Any = None,
) -> Calibration:
    """Check predictions of held-out rows; if they fail, say what to try.

    Parameters
    ----------
    draws : array, ``(num_draws, num_rows, num_categories)``
        Of the probabilities at the held-out rows: `pi` of `FieldPredictions`. Counts of the rows'
        totals are drawn from each.
    counts : integer array, ``(num_rows, num_categories)``
    top : int
        How many leading categories the ranks are about; without more categories than this there are
        no ranks.
    least : float
        Cells with a smaller mean predicted count are left out: they are nearly always 0.
    num_bins : int
        Of the histogram of ranks.
    random_seed : int, optional
        Of the counts that are drawn.

    Raises
    ------
    ValueError
        If shapes do not agree, or no cell is left.
    """
    pi, table = as_simplex(draws, "draws"), as_counts(counts)
    if pi.ndim != 3 or len(pi) == 0:
        raise ValueError(f"draws must be (draws, rows, categories), got shape {pi.shape}")
    _check_rows(table, "draws", pi.shape[1:])
    bins, first = as_positive_int(num_bins, "num_bins", 2, _MOST_BINS), as_positive_int(top, "top")
    rng = np.random.default_rng(as_seed(random_seed))
    totals = np.broadcast_to(table.sum(axis=1), pi.shape[:2])
    drawn = rng.multinomial(totals, pi / pi.sum(axis=-1, keepdims=True))
    kept = drawn.mean(axis=0) >= as_real(least, "least", minimum=0.0)
    if not kept.any():
        raise ValueError(
            f"counts must have a cell with {least:g} expected at least, got none (take least=0)"
        )
    low, high = _rank_cells(drawn, table)
    inside = Coverage(np.array(_LEVELS), *_by_row(_shares_inside(low, high, _LEVELS), kept))
    edges = np.linspace(0.0, 1.0, bins + 1)
    overlaps = np.minimum(high[..., None], edges[1:]) - np.maximum(low[..., None], edges[:-1])
    pit = _by_row(np.moveaxis(np.maximum(overlaps, 0.0) / (high - low)[..., None], -1, 0), kept)
    ranks = np.empty((0, 3))
    if first < table.shape[1]:
        ranks = _rank_calibration(drawn, table, first)
    return Calibration(inside, *pit, ranks, int(kept.sum()), _verdict(inside))


def _rank_cells(draws: NDArray[Any], truth: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
    """Ends of the interval of (0, 1) in which a truth's rank among the draws is uniform."""
    cells = len(draws) + 1
    low = (draws < truth).sum(axis=0) / cells
    return low, ((draws <= truth).sum(axis=0) + 1) / cells


def _shares_inside(low: FloatArray, high: FloatArray, levels: ArrayLike) -> FloatArray:
    """Of each cell's interval, inside each central interval, ``(num_levels, ...)``."""
    half = 0.5 * np.asarray(levels).reshape(-1, *(1,) * low.ndim)
    inside = np.minimum(high, 0.5 + half) - np.maximum(low, 0.5 - half)
    return np.asarray(np.maximum(inside, 0.0) / (high - low))


def _by_row(shares: FloatArray, kept: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
    """Means over the cells kept, and their errors over rows, of ``(num, rows, categories)``."""
    rows = kept.any(axis=1)
    pairs = [
        mean_by_token(np.where(kept, share, 0.0).sum(axis=1)[rows], kept.sum(axis=1)[rows])
        for share in shares
    ]
    means, errors = np.array(pairs).T
    return means, errors


def _rank_calibration(drawn: IntArray, counts: IntArray, top: int) -> FloatArray:
    """Probabilities to be among the first, and how often that was so, by group."""
    said = np.mean([_among_the_first(draw, top) for draw in drawn], axis=0)
    was = _among_the_first(counts, top)
    group = np.clip(np.searchsorted(_RANK_GROUPS, said, side="right") - 1, 0, None)
    return np.array(
        [
            (said[group == g].mean(), was[group == g].mean(), np.count_nonzero(group == g))
            for g in np.unique(group)
        ]
    )


def _verdict(found: Coverage) -> str:
    """What coverage means, and what to try."""
    levels, covered, errors = found.levels, found.covered, found.standard_errors
    off = covered - levels
    clear = np.abs(off) > np.maximum(3.0 * np.nan_to_num(errors), _TOLERANCE)
    said = f"{100 * levels[-1]:.0f} % intervals hold {100 * covered[-1]:.0f} % of the counts"
    if (off[clear] < 0.0).any():
        return (
            f"Too narrow: {said}. Try overdispersion=0.1, or + White(0.1) on what has an effect of"
            " its own; a rougher covariance, Matern(0.5) or Matern(1.5) in time and place; and"
            ' hyperparameters="sampled", shared=False'
        )
    if clear.any():
        return (
            f"Too wide: {said}. Try a smoother covariance, one without White or overdispersion, or"
            " priors of its variances that allow less; and more draws, if there are few"
        )
    return f"These hold: {said}"


def _among_the_first(values: NDArray[Any], size: int) -> FloatArray:
    """Probability that each entry of a row is among its `size` largest, ties broken at random."""
    last = -np.partition(-values, size - 1, axis=1)[:, size - 1 : size]
    above, tied = values > last, values == last
    left = size - above.sum(axis=1, keepdims=True)
    return np.asarray(above + tied * (left / tied.sum(axis=1, keepdims=True)))


def _groups(groups: ArrayLike | None, num_rows: int) -> tuple[int, IntArray]:
    """How many groups there are, and the group of each row."""
    if groups is None:
        return num_rows, np.arange(num_rows)
    try:
        labels = np.asarray(groups)
    except ValueError as error:
        raise ValueError(f"groups must be a list of labels, got {error}") from None
    if labels.dtype == object and not all(isinstance(label, str) for label in labels.flat):
        raise TypeError("groups must be numbers, or all of them strings")
    _check_length("groups", labels, num_rows)
    kinds, members = np.unique(labels, return_inverse=True)
    return len(kinds), members


def _check_rows(counts: IntArray, name: str, shape: tuple[int, ...]) -> None:
    if counts.ndim != 2 or counts.size == 0:
        raise ValueError(
            f"counts must be rows of categories, one at least, got shape {counts.shape}"
        )
    if shape != counts.shape:
        raise ValueError(f"{name} must have rows of shape {counts.shape} like counts, got {shape}")


def _check_length(name: str, array: NDArray[Any], num_rows: int) -> None:
    if array.shape != (num_rows,):
        raise ValueError(
            f"{name} must have one entry for each of the {num_rows} rows (of by_row), got shape"
            f" {array.shape}"
        )

"""Rows with covariates and labels, of two classes or several: data of regressions.

Rows of a group are kept next to each other, so that a group is a slice; `given` says where each row
came from.

>>> x = [[1.0, 0.5], [1.0, -2.0], [1.0, 0.0]]
>>> data = as_labelled_rows(x, [1, 0, 1], groups=["b", "a", "b"])
>>> data
LabelledRows(3 rows, 2 covariates, 2 groups, 2 of 3 trials successful)
>>> data.offsets
array([0, 1, 3])

Counts of several categories: a label is a row with one count. Rows keep, beside the counts, the
order in which sticks break for the categories, and what the sticks see: stick k takes its
category's count out of what the sticks before it left, so each stick is a binomial regression of
the rows that reach it.

>>> x = [[1.0, 0.5], [1.0, -2.0], [1.0, 0.0]]
>>> data = as_counted_rows(x, [2, 0, 2])
>>> data
CountedRows(3 rows, 2 covariates, 3 categories, 3 counts)
>>> data.order
array([2, 0, 1])
>>> data.sticks.successes, data.sticks.trials, data.sticks.offsets
(array([1., 0., 1., 1.]), array([1., 1., 1., 1.]), array([0, 3, 4]))

A row of weight w counts w times: its counts are multiplied by w, and its likelihood is raised to
that power. With whole weights that is the same row w times over. Other weights have a posterior,
too, and every method here is exact for it: a Pólya-gamma variable may have any shape w > 0. But
weighted counts are not whole numbers, and none can be simulated.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from examples.papers.regressions.compiled.weights import GroupRows
from examples.papers.regressions.designs import as_matrix
from pgmult.core.arguments import as_kind
from pgmult.core.labels import is_missing
from pgmult.core.machine import refuse_unaffordable
from pgmult.core.memory import part_of
from pgmult.core.typing import FloatArray, IntArray, ObservedRows
from pgmult.core.validate import as_counts, as_finite, as_order, as_positive_int, place_of

_LARGEST = 1e12


def as_row_numbers(
    value: Any, name: str, num_rows: int, *, default: float, minimum: float = -1e12
) -> FloatArray:
    """A number for each row, up to 1e12, `default` where none are given."""
    if value is None:
        return np.full(num_rows, default)
    numbers = as_finite(value, name)
    if numbers.shape != (num_rows,):
        raise ValueError(f"{name} must have shape ({num_rows},), got {numbers.shape}")
    low = numbers < minimum
    if low.any():
        raise ValueError(
            f"{name} must be at least {minimum:g}, got {numbers[low][0]:g}{place_of(low)}"
        )
    high = numbers > _LARGEST
    if high.any():
        raise ValueError(
            f"{name} must be at most {_LARGEST:g}, got {numbers[high][0]:g}{place_of(high)}"
        )
    return numbers


def as_covariates(value: Any) -> FloatArray:
    """A table of finite numbers, ``(num_rows, num_covariates)``, with a column at the least."""
    x = as_finite(value, "covariates")
    if x.ndim != 2 or x.shape[1] == 0:
        raise ValueError(f"covariates must have shape (rows, covariates), got {x.shape}")
    return x


class _Rows:
    """Covariates, a row each."""

    __slots__ = ()

    covariates: Any

    @property
    def num_rows(self) -> int:
        """Rows, those that say nothing included."""
        return int(self.covariates.shape[0])

    @property
    def num_covariates(self) -> int:
        """Columns of the covariates, an intercept included where there is one."""
        return int(self.covariates.shape[1])

    def dense(self) -> Self:
        """These rows with covariates that are not sparse, as samplers need them.

        Raises
        ------
        ValueError
            If they would not fit into memory.
        """
        x = self.covariates
        if not sparse.issparse(x):
            return self
        refuse_unaffordable(8.0 * np.prod(x.shape), "covariates", self.num_rows)
        changed: Self = replace(cast(Any, self), covariates=x.toarray())
        return changed

    def _told(self, *more: str) -> str:
        counted = f"{self.num_rows:,} rows, {self.num_covariates:,} covariates"
        return f"{type(self).__name__}({', '.join([counted, *more])})"


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class LabelledRows(_Rows):
    """Covariates and counts of successes, a row each, sorted by group. See `as_labelled_rows`.

    Attributes
    ----------
    covariates : array or sparse array, ``(num_rows, num_covariates)``
    successes, trials : arrays, ``(num_rows,)``
        Counts, times the weight of their row; trials are 1 for binary labels, and a row of 0
        trials is a missing label.
    offsets : int64 array, ``(num_groups + 1,)``
        Group g is the rows ``offsets[g]:offsets[g + 1]``; groups may be empty.
    given : int64 array, ``(num_rows,)``
        The original number of each row.
    group_names : array, ``(num_groups,)``
    known : array, ``(num_rows,)``
        The offset of each row, added to its predictor.
    """

    covariates: Any
    successes: FloatArray
    trials: FloatArray
    offsets: IntArray
    given: IntArray
    group_names: NDArray[Any]
    known: FloatArray

    @property
    def num_groups(self) -> int:
        """Groups, empty ones included; 1 where none were given."""
        return len(self.offsets) - 1

    def rows(self, part: slice) -> "LabelledRows":
        """The rows of neighbouring groups, for sweeps in blocks of groups: nothing is copied.

        The same slice returns the same object, so that what is computed once per data set is
        computed once for it.
        """
        return part_of(self, part, self.num_groups, self._of_groups)

    def _of_groups(self, which: range) -> "LabelledRows":
        bounds = self.offsets[which.start : which.stop + 1]
        here = slice(bounds[0], bounds[-1])
        return LabelledRows(
            self.covariates[here], self.successes[here], self.trials[here], bounds - bounds[0],
            self.given[here], self.group_names[which.start : which.stop], self.known[here],
        )  # fmt: skip

    def record(self) -> GroupRows:
        """What compiled functions take."""
        return GroupRows(self.covariates, self.offsets, self.successes, self.trials, self.known)

    def with_successes(self, successes: FloatArray | IntArray) -> "LabelledRows":
        """The same rows with other labels."""
        return replace(self, successes=np.asarray(successes, dtype=np.float64))

    def whole_trials(self) -> IntArray:
        """Trials as integers, for simulation.

        Raises
        ------
        ValueError
            If rows have weights that are not whole.
        """
        return _whole(self.trials, "trials")

    def __repr__(self) -> str:
        groups = [f"{self.num_groups:,} groups"] if self.num_groups > 1 else []
        taken, trials = _brief(self.successes.sum()), _brief(self.trials.sum())
        return self._told(*groups, f"{taken} of {trials} trials successful")


def as_labelled_rows(
    covariates: ArrayLike,
    successes: ArrayLike,
    groups: Any = None,
    *,
    trials: ArrayLike | None = None,
    group_names: Sequence[Any] | None = None,
    weights: ArrayLike | None = None,
    predictor_offset: ArrayLike | None = None,
) -> LabelledRows:
    """Check the data of a logistic regression, and sort its rows by group.

    Parameters
    ----------
    covariates : array or sparse array, ``(num_rows, num_covariates)``
        Finite numbers; a column of ones is an intercept. Approximations never make a dense copy of
        a sparse one; samplers do.
    successes : array, ``(num_rows,)``
        0 or 1, or booleans; with `trials`, counts.
    groups : sequence, ``(num_rows,)``, optional
        A label of each row's group, anything that sorts. One group if left out.
    trials : array, ``(num_rows,)``, optional
        Counts not below `successes`; 1 in every row if left out.
    group_names : sequence, optional
        All groups, in their order, those without rows included; the sorted labels if left out.
    weights : array, ``(num_rows,)``, optional
        How many times each row counts: any numbers that are not negative.
    predictor_offset : array, ``(num_rows,)``, optional
        Added to the predictor of each row, on the scale of log odds.

    Raises
    ------
    ValueError
        If a number is not finite, a label neither 0 nor 1, lengths differ, or a group is unknown.
    """
    x = _as_columns(covariates)
    num_rows = x.shape[0]
    y = as_counts(successes, "successes")
    ones = np.ones(num_rows, dtype=np.int64)
    n = ones if trials is None else refuse_sums(as_counts(trials, "trials"), "trials")
    for name, array in (("successes", y), ("trials", n)):
        if array.shape != (num_rows,):
            raise ValueError(
                f"{name} must have shape ({num_rows},), got {array.shape} (one for each row of"
                " covariates)"
            )
    if (y > n).any():
        row = int(np.argmax(y > n))
        what = "0 or 1 (or give trials)" if trials is None else f"at most trials, {n[row]}"
        raise ValueError(f"successes must be {what}, got {y[row]} at row {row}")
    times = as_row_numbers(weights, "weights", num_rows, default=1.0, minimum=0.0)
    taken, counted = times * y, times * n
    known = as_row_numbers(predictor_offset, "predictor_offset", num_rows, default=0.0)
    if groups is None:
        if group_names is not None:
            raise ValueError("group_names needs groups: a label of each row's group")
        whole = np.array([0, num_rows], dtype=np.int64)
        return LabelledRows(x, taken, counted, whole, np.arange(num_rows), np.array(["all"]), known)
    names, index = _numbered_groups(groups, group_names, num_rows)
    rows = np.argsort(index, kind="stable")
    offsets = np.concatenate([[0], np.bincount(index, minlength=len(names)).cumsum()])
    return LabelledRows(
        x[rows], taken[rows], counted[rows], offsets.astype(np.int64), rows, names, known[rows]
    )


def _numbered_groups(
    groups: Any, group_names: Sequence[Any] | None, num_rows: int
) -> tuple[NDArray[Any], IntArray]:
    """Names of all groups, and the number of each row's."""
    try:
        labels = np.asarray(groups)
    except ValueError as error:
        raise ValueError(f"groups must be a label for each row, got {error}") from None
    if labels.shape != (num_rows,):
        raise ValueError(f"groups must have shape ({num_rows},), got {labels.shape}")
    for row, label in enumerate(labels.tolist()):
        if is_missing(label):
            raise ValueError(
                f"groups must have a label in every row, got {label} at row {row} (leave the row"
                " out, or give such rows a group of their own)"
            )
    names, index = np.unique(labels, return_inverse=True)
    if group_names is None:
        return names, index
    given = np.asarray(group_names)
    places = {name: place for place, name in enumerate(given.tolist())}
    if given.ndim != 1 or len(places) < len(given):
        raise ValueError("group_names must be a list of different names")
    unknown = [name for name in names.tolist() if name not in places]
    if unknown:
        raise ValueError(f"groups must be among group_names, got {unknown[0]!r}")
    return given, np.array([places[name] for name in names.tolist()], dtype=np.int64)[index]


def _as_columns(covariates: Any) -> Any:
    x = as_matrix(covariates, "covariates")
    if x.shape[1] == 0:
        raise ValueError(f"covariates must have shape (rows, covariates), got {x.shape}")
    return x


def refuse_sums(counts: IntArray, name: str) -> IntArray:
    """Counts whose sum is below 2**63, beyond which totals would be wrong."""
    total = float(counts.sum(dtype=np.float64))
    if total >= 2.0**63:
        raise ValueError(f"{name} must sum to less than 2**63, got {total:.4g}")
    return counts


def _whole(counts: FloatArray, name: str) -> IntArray:
    whole = counts.astype(np.int64)
    if (whole != counts).any():
        raise ValueError(
            f"{name} must be whole to be simulated from, got {counts[whole != counts].flat[0]:g}"
            " (the rows have weights: counts of such rows are no data)"
        )
    return whole


def _brief(count: float) -> str:
    """A count, or a weighted one, in words."""
    return f"{int(count):,}" if count == int(count) else f"{count:,.6g}"


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class CountedRows(_Rows):
    """Covariates and counts of categories, a row each. See `as_counted_rows`.

    Attributes
    ----------
    covariates : array, ``(num_rows, num_covariates)``
    counts : array, ``(num_rows, num_categories)``
        Times the weight of their row; a row of zeros says nothing.
    order : int64 array, ``(num_categories,)``
        Stick j breaks for category ``order[j]``, and the last category takes the rest.
    sticks : LabelledRows
        Group j has the rows with counts left for stick j. O(D) numbers for each stick that a row
        reaches.
    """

    covariates: FloatArray
    counts: FloatArray
    order: IntArray
    sticks: LabelledRows = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", np.asarray(self.counts, dtype=np.float64))
        taken = self.counts[:, self.order]
        reaching = np.cumsum(taken[:, ::-1], axis=1)[:, ::-1][:, :-1]
        stick, row = np.nonzero(reaching.T)
        names = self.order[:-1]
        lengths = np.bincount(stick, minlength=len(names))
        sticks = LabelledRows(
            self.covariates[row],
            taken[row, stick],
            reaching[row, stick],
            np.concatenate([[0], lengths.cumsum()]).astype(np.int64),
            row,
            names,
            np.zeros(len(row)),
        )
        object.__setattr__(self, "sticks", sticks)

    @property
    def num_categories(self) -> int:
        """Number of categories, K."""
        return int(self.counts.shape[1])

    @property
    def totals(self) -> FloatArray:
        """Counts of each row, ``(num_rows,)``."""
        return np.asarray(self.counts.sum(axis=1))

    def whole_totals(self) -> IntArray:
        """Totals as integers, for simulation.

        Raises
        ------
        ValueError
            If rows have weights that are not whole.
        """
        return _whole(self.totals, "totals")

    def observed(self) -> ObservedRows:
        """The counts as integers, and the covariates.

        Raises
        ------
        ValueError
            If rows have weights that are not whole.
        """
        constants = {"covariates": (("row", "covariate"), self.covariates)}
        return ObservedRows(("row", "category"), _whole(self.counts, "counts"), constants)

    def with_counts(self, counts: FloatArray | IntArray) -> "CountedRows":
        """The same rows and order of sticks with other counts."""
        return CountedRows(self.covariates, np.asarray(counts, dtype=np.float64), self.order)

    def __repr__(self) -> str:
        counts = _brief(self.counts.sum())
        return self._told(f"{self.num_categories:,} categories", f"{counts} counts")


def require_counted_rows(data: Any) -> CountedRows:
    """`data` itself, if it is counted rows."""
    return as_kind(data, "data", CountedRows, "make them with as_counted_rows")


def as_counted_rows(
    covariates: ArrayLike,
    outcomes: ArrayLike,
    *,
    num_categories: int | None = None,
    order: str | Sequence[int] | IntArray = "frequency",
    weights: ArrayLike | None = None,
) -> CountedRows:
    """Check the data of a multinomial regression.

    Parameters
    ----------
    covariates : array, ``(num_rows, num_covariates)``
        Finite numbers; a column of ones is an intercept.
    outcomes : integer array, ``(num_rows,)`` or ``(num_rows, num_categories)``
        A label 0, ..., K - 1 of each row, or its counts of the K categories.
    num_categories : int, optional
        K where labels are given; one more than the largest if left out.
    order : "frequency", "given" or sequence of int
        Of the sticks: by decreasing count, by number, or a permutation of 0, ..., K - 1.
    weights : array, ``(num_rows,)``, optional
        How many times each row counts: any numbers that are not negative.

    Raises
    ------
    ValueError
        If a number is not finite, a count not an integer or negative, there are fewer than two
        categories, or lengths differ.
    """
    x = as_covariates(covariates)
    given = refuse_sums(as_counts(outcomes, "outcomes"), "outcomes")
    if given.ndim not in (1, 2) or len(given) != len(x):
        raise ValueError(
            f"outcomes must have shape ({len(x)},), labels, or ({len(x)}, categories), counts,"
            f" a row for each of covariates, got {given.shape}"
        )
    if given.ndim == 1:
        least = int(given.max(initial=0)) + 1
        size = (
            least if num_categories is None else as_positive_int(num_categories, "num_categories")
        )
        if size < least:
            row = int(np.argmax(given))
            raise ValueError(
                f"outcomes must be labels below num_categories = {size}, got {given[row]} at row"
                f" {row}"
            )
        refuse_unaffordable(8.0 * len(x) * size, "num_categories", size)
        counts = np.zeros((len(x), size), dtype=np.int64)
        counts[np.arange(len(x)), given] = 1
    else:
        counts = given
        if num_categories not in (None, counts.shape[1]):
            raise ValueError(
                f"outcomes must have num_categories = {num_categories} columns, got"
                f" {counts.shape[1]}"
            )
    if counts.shape[1] < 2:
        raise ValueError(f"there must be at least 2 categories, got {counts.shape[1]}")
    times = as_row_numbers(weights, "weights", len(x), default=1.0, minimum=0.0)
    weighted = times[:, None] * counts
    return CountedRows(x, weighted, as_order(order, weighted.sum(axis=0)))

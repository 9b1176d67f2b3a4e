"""Rows with covariates and labels, of two classes or several: data of regressions.

Rows of a group are kept next to each other, so that a group is a slice; `rows` says where each row
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
(array([1, 0, 1, 1]), array([1, 1, 1, 1]), array([0, 3, 4]))
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pgmult.core.arguments import as_kind
from pgmult.core.machine import refuse_unaffordable
from pgmult.core.orders import as_order
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_counts, as_covariates, as_positive_int

__all__ = ["CountedRows", "LabelledRows", "as_counted_rows", "as_labelled_rows"]


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class LabelledRows:
    """Covariates and counts of successes, a row each, sorted by group. See `as_labelled_rows`.

    Attributes
    ----------
    covariates : array, ``(num_rows, num_covariates)``
    successes : int64 array, ``(num_rows,)``
    trials : int64 array, ``(num_rows,)``
        1 for binary labels; a row of 0 trials is a missing label.
    offsets : int64 array, ``(num_groups + 1,)``
        Group g is the rows ``offsets[g]:offsets[g + 1]``; groups may be empty.
    rows : int64 array, ``(num_rows,)``
        Which of the rows as given stands at each place.
    group_names : array, ``(num_groups,)``
    """

    covariates: FloatArray
    successes: IntArray
    trials: IntArray
    offsets: IntArray
    rows: IntArray
    group_names: NDArray[Any]

    @property
    def num_rows(self) -> int:
        """Rows of all groups."""
        return int(self.covariates.shape[0])

    @property
    def num_covariates(self) -> int:
        """Columns of the covariates, an intercept included where there is one."""
        return int(self.covariates.shape[1])

    @property
    def num_groups(self) -> int:
        """Groups, empty ones included; 1 where none were given."""
        return len(self.offsets) - 1

    def with_successes(self, successes: IntArray) -> "LabelledRows":
        """The same rows with other labels."""
        return replace(self, successes=successes)

    def __repr__(self) -> str:
        groups = f" {self.num_groups:,} groups," if self.num_groups > 1 else ""
        return (
            f"LabelledRows({self.num_rows:,} rows, {self.num_covariates:,} covariates,{groups}"
            f" {self.successes.sum():,} of {self.trials.sum():,} trials successful)"
        )


def as_labelled_rows(
    covariates: ArrayLike,
    successes: ArrayLike,
    groups: Any = None,
    *,
    trials: ArrayLike | None = None,
    group_names: Sequence[Any] | None = None,
) -> LabelledRows:
    """Check the data of a logistic regression, and sort its rows by group.

    Parameters
    ----------
    covariates : array, ``(num_rows, num_covariates)``
        Finite numbers; a column of ones is an intercept.
    successes : array, ``(num_rows,)``
        0 or 1, or booleans; with `trials`, counts.
    groups : sequence, ``(num_rows,)``, optional
        A label of each row's group, anything that sorts. One group if left out.
    trials : array, ``(num_rows,)``, optional
        Counts not below `successes`; 1 in every row if left out.
    group_names : sequence, optional
        All groups, in their order, those without rows included; the sorted labels if left out.

    Raises
    ------
    ValueError
        If a number is not finite, a label neither 0 nor 1, lengths differ, or a group is unknown.
    """
    x = as_covariates(covariates)
    num_rows = len(x)
    y = as_counts(successes, "successes")
    n = np.ones(num_rows, dtype=np.int64) if trials is None else as_counts(trials, "trials")
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
    if groups is None:
        if group_names is not None:
            raise ValueError("group_names needs groups: a label of each row's group")
        whole = np.array([0, num_rows], dtype=np.int64)
        return LabelledRows(x, y, n, whole, np.arange(num_rows), np.array(["all"]))
    try:
        labels = np.asarray(groups)
    except ValueError as error:
        raise ValueError(f"groups must be a label for each row, got {error}") from None
    if labels.shape != (num_rows,):
        raise ValueError(f"groups must have shape ({num_rows},), got {labels.shape}")
    for row, label in enumerate(labels.tolist()):
        if _is_missing(label):
            raise ValueError(
                f"groups must have a label in every row, got {label} at row {row} (leave the row"
                " out, or give such rows a group of their own)"
            )
    names, index = np.unique(labels, return_inverse=True)
    if group_names is not None:
        given = np.asarray(group_names)
        places = {name: place for place, name in enumerate(given.tolist())}
        if given.ndim != 1 or len(places) < len(given):
            raise ValueError("group_names must be a list of different names")
        unknown = [name for name in names.tolist() if name not in places]
        if unknown:
            raise ValueError(f"groups must be among group_names, got {unknown[0]!r}")
        index = np.array([places[name] for name in names.tolist()], dtype=np.int64)[index]
        names = given
    rows = np.argsort(index, kind="stable")
    offsets = np.concatenate([[0], np.bincount(index, minlength=len(names)).cumsum()])
    return LabelledRows(x[rows], y[rows], n[rows], offsets.astype(np.int64), rows, names)


def _is_missing(label: Any) -> bool:
    """Whether a label is None or is not itself, as nan is; pandas.NA will not say."""
    try:
        return label is None or bool(label != label)
    except TypeError:
        return True


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class CountedRows:
    """Covariates and counts of categories, a row each. See `as_counted_rows`.

    Attributes
    ----------
    covariates : array, ``(num_rows, num_covariates)``
    counts : int64 array, ``(num_rows, num_categories)``
        A row of zeros says nothing.
    order : int64 array, ``(num_categories,)``
        Stick j breaks for category ``order[j]``, and the last category takes the rest.
    sticks : LabelledRows
        Stick j is its group j, of the rows with counts left when it breaks. O(D) numbers for each
        stick that a row reaches.
    """

    covariates: FloatArray
    counts: IntArray
    order: IntArray
    sticks: LabelledRows = field(init=False)

    def __post_init__(self) -> None:
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
        )
        object.__setattr__(self, "sticks", sticks)

    @property
    def num_rows(self) -> int:
        """Rows, those without counts included."""
        return int(self.covariates.shape[0])

    @property
    def num_covariates(self) -> int:
        """Columns of the covariates, an intercept included where there is one."""
        return int(self.covariates.shape[1])

    @property
    def num_categories(self) -> int:
        """K."""
        return int(self.counts.shape[1])

    @property
    def totals(self) -> IntArray:
        """Counts of each row, ``(num_rows,)``."""
        return np.asarray(self.counts.sum(axis=1))

    def with_counts(self, counts: IntArray) -> "CountedRows":
        """The same rows and order of sticks with other counts."""
        return CountedRows(self.covariates, counts, self.order)

    def __repr__(self) -> str:
        return (
            f"CountedRows({self.num_rows:,} rows, {self.num_covariates:,} covariates,"
            f" {self.num_categories:,} categories, {self.counts.sum():,} counts)"
        )


def require_counted_rows(data: Any) -> CountedRows:
    """`data` itself, if it is counted rows."""
    return as_kind(data, "data", CountedRows, "make them with pgmult.regression.as_counted_rows")


def as_counted_rows(
    covariates: ArrayLike,
    outcomes: ArrayLike,
    *,
    num_categories: int | None = None,
    order: str | Sequence[int] | IntArray = "frequency",
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

    Raises
    ------
    ValueError
        If a number is not finite, a count not an integer or negative, there are fewer than two
        categories, or lengths differ.
    """
    x = as_covariates(covariates)
    given = as_counts(outcomes, "outcomes")
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
    return CountedRows(x, counts, as_order(order, counts.sum(axis=0)))

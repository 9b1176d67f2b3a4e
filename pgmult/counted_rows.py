"""Rows with covariates and counts of categories: data of multinomial regressions.

A label is a row with one count. Rows keep, beside the counts, the order in which sticks break for
the categories, and what the sticks see: stick k takes its category's count out of what the sticks
before it left, so each stick is a binomial regression of the rows that reach it.

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
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pgmult._validate import as_counts, as_covariates, as_positive_int
from pgmult.labelled_rows import LabelledRows
from pgmult.typing import FloatArray, IntArray

__all__ = ["CountedRows", "as_counted_rows"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
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
            f" got {given.shape}"
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
    return CountedRows(x, counts, _as_order(order, counts))


def _as_order(order: Any, counts: IntArray) -> IntArray:
    size = counts.shape[1]
    if isinstance(order, str):
        if order not in ("frequency", "given"):
            raise ValueError(f"order must be 'frequency', 'given' or a permutation, got {order!r}")
        if order == "given":
            return np.arange(size)
        return np.argsort(-counts.sum(axis=0), kind="stable")
    places = as_counts(order, "order")
    if not np.array_equal(np.sort(places), np.arange(size)):
        raise ValueError(f"order must be a permutation of 0, ..., {size - 1}, got {places}")
    return places

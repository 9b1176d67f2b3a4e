"""Rows with covariates and a binary (or binomial) label, in groups or not: data of regressions.

Rows of a group are kept next to each other, so that a group is a slice; `order` says where each row
came from.

>>> x = [[1.0, 0.5], [1.0, -2.0], [1.0, 0.0]]
>>> data = as_labelled_rows(x, [1, 0, 1], groups=["b", "a", "b"])
>>> data
LabelledRows(3 rows, 2 covariates, 2 groups, 2 of 3 trials successful)
>>> data.offsets
array([0, 1, 3])
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pgmult._validate import as_counts, as_covariates
from pgmult.typing import FloatArray, IntArray

__all__ = ["LabelledRows", "as_labelled_rows"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
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
    order : int64 array, ``(num_rows,)``
        Which of the rows as given stands at each place.
    group_names : array, ``(num_groups,)``
    """

    covariates: FloatArray
    successes: IntArray
    trials: IntArray
    offsets: IntArray
    order: IntArray
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
            raise ValueError(f"{name} must have shape ({num_rows},), got {array.shape}")
    if (y > n).any():
        row = int(np.argmax(y > n))
        what = "0 or 1 (or give trials)" if trials is None else f"at most trials, {n[row]}"
        raise ValueError(f"successes must be {what}, got {y[row]} at row {row}")
    if groups is None:
        if group_names is not None:
            raise ValueError("group_names needs groups: a label of each row's group")
        whole = np.array([0, num_rows], dtype=np.int64)
        return LabelledRows(x, y, n, whole, np.arange(num_rows), np.array(["all"]))
    labels = np.asarray(groups)
    if labels.shape != (num_rows,):
        raise ValueError(f"groups must have shape ({num_rows},), got {labels.shape}")
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
    order = np.argsort(index, kind="stable")
    offsets = np.concatenate([[0], np.bincount(index, minlength=len(names)).cumsum()])
    return LabelledRows(x[order], y[order], n[order], offsets.astype(np.int64), order, names)

"""Counts at inputs in space and time: the data type of multinomial Gaussian processes.

A `CountField` is a table of counts with one row of inputs (coordinates) for every row of counts,
and new inputs at which predictions are wanted. What the models work on are its *sites*: the
distinct rows of all inputs. Rows at equal inputs observe the same probabilities, so their counts
add up; a row whose total is 0 is a missing row; a new input is a site without counts.

>>> import numpy as np
>>> field = as_field(np.array([0.0, 1.0, 1.0]), [[3, 1], [0, 2], [1, 0]], new_inputs=[2.0])
>>> field.sites[:, 0]
array([0., 1., 2.])
>>> field.site_counts()
array([[3, 1],
       [1, 2],
       [0, 0]])
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmult.core.orders import as_order
from pgmult.core.typing import ArrayLike, FloatArray, IntArray
from pgmult.core.validate import as_counts, as_finite

__all__ = ["CountField", "as_field"]


@dataclass(frozen=True, slots=True, eq=False)
class CountField:
    """Counts at inputs. Make one with `as_field`, which checks its input.

    Attributes
    ----------
    inputs : array, ``(num_rows, num_inputs)``
    counts : int64 array, ``(num_rows, num_categories)``
    new_inputs : array, ``(num_new, num_inputs)``
        Where predictions are wanted; may have no row.
    sites : array, ``(num_sites, num_inputs)``
        The distinct rows of `inputs`, as they come, then those of `new_inputs` that are new.
    row_sites, new_sites : int64 arrays, ``(num_rows,)`` and ``(num_new,)``
        The site of each row and of each new input.
    category_order : int64 array, ``(num_categories,)``
        The order of the sticks; fixed under `with_counts`.
    categories : str array, ``(num_categories,)``, or None
    names : str array, ``(num_rows,)``, or None
        Of the rows.
    new_names : str array, ``(num_new,)``, or None
    """

    inputs: FloatArray
    counts: IntArray
    new_inputs: FloatArray
    sites: FloatArray
    row_sites: IntArray
    new_sites: IntArray
    category_order: IntArray
    categories: NDArray[np.str_] | None = None
    names: NDArray[np.str_] | None = None
    new_names: NDArray[np.str_] | None = None

    @property
    def num_rows(self) -> int:
        """Rows of counts, missing ones included."""
        return len(self.counts)

    @property
    def num_categories(self) -> int:
        """K."""
        return int(self.counts.shape[1])

    @property
    def num_sites(self) -> int:
        """Distinct inputs, new ones included."""
        return len(self.sites)

    @property
    def num_new(self) -> int:
        """New inputs."""
        return len(self.new_inputs)

    @property
    def totals(self) -> IntArray:
        """Observations in each row, ``(num_rows,)``."""
        return np.asarray(self.counts.sum(axis=1))

    def site_counts(self) -> IntArray:
        """Counts at each site, ``(num_sites, num_categories)``: rows at equal inputs added up."""
        total = np.zeros((self.num_sites, self.num_categories), dtype=np.int64)
        np.add.at(total, self.row_sites, self.counts)
        return total

    def with_counts(self, counts: IntArray) -> "CountField":
        """The same inputs, labels and order of sticks with other counts."""
        return replace(self, counts=counts)

    def __repr__(self) -> str:
        return (
            f"CountField({self.num_rows:,} rows, {self.num_categories:,} categories,"
            f" {self.inputs.shape[1]} inputs, {self.num_new:,} new inputs)"
        )


def as_field(
    inputs: Any,
    counts: Any = None,
    new_inputs: Any = None,
    *,
    order: str | ArrayLike = "frequency",
    categories: Sequence[str] | NDArray[np.str_] | None = None,
    names: Sequence[str] | NDArray[np.str_] | None = None,
    new_names: Sequence[str] | NDArray[np.str_] | None = None,
) -> CountField:
    """A `CountField` from inputs and counts, or a `CountField` as it is.

    Parameters
    ----------
    inputs : array or pandas DataFrame, ``(num_rows, num_inputs)``
        One axis is taken for one column. Rows may repeat.
    counts : array or pandas DataFrame, ``(num_rows, num_categories)``
        Non-negative integers, two categories or more; a row of zeros is missing. A DataFrame's
        labels serve as `categories` and `names`.
    new_inputs : array or pandas DataFrame, ``(num_new, num_inputs)``, optional
        Where predictions are wanted.
    order : {"frequency", "given"} or permutation of the categories
        The order of the sticks: by default the most frequent category first, which mixes best.
    categories, names, new_names : sequences of str, optional
        Labels of the categories, the rows and the new inputs.

    Raises
    ------
    ValueError
        If lengths do not agree, an input is not finite or a count is negative or fractional.
    """
    if isinstance(inputs, CountField):
        if counts is not None or new_inputs is not None:
            raise TypeError("inputs is a CountField already: pass nothing else")
        return inputs
    if counts is None:
        raise TypeError("counts must be given, one row for each row of inputs")
    categories = _labels(counts, "columns") if categories is None else categories
    names = _labels(counts, "index") if names is None else names
    new_names = _labels(new_inputs, "index") if new_names is None else new_names
    x, table = _as_table(inputs, "inputs"), as_counts(counts)
    if table.ndim != 2 or table.shape[1] < 2:
        raise ValueError(
            f"counts must have shape (rows, categories), two categories or more, got {table.shape}"
        )
    if len(x) != len(table):
        raise ValueError(f"inputs and counts must have as many rows, got {len(x)} and {len(table)}")
    if len(x) == 0:
        raise ValueError("inputs and counts must have a row at least")
    new = np.empty((0, x.shape[1])) if new_inputs is None else _as_table(new_inputs, "new_inputs")
    if new.shape[1] != x.shape[1]:
        raise ValueError(
            f"new_inputs must have {x.shape[1]} columns as inputs has, got {new.shape[1]}"
        )
    sites, place = _distinct(np.concatenate([x, new]))
    return CountField(
        inputs=x,
        counts=table,
        new_inputs=new,
        sites=sites,
        row_sites=place[: len(x)].copy(),
        new_sites=place[len(x) :].copy(),
        category_order=as_order(order, table.sum(axis=0)),
        categories=_as_labels(categories, "categories", table.shape[1]),
        names=_as_labels(names, "names", len(x)),
        new_names=_as_labels(new_names, "new_names", len(new)),
    )


def _as_table(value: Any, name: str) -> FloatArray:
    table = as_finite(value, name)
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2 or table.shape[1] == 0:
        raise ValueError(f"{name} must have shape (rows, columns), got {table.shape}")
    return table


def _distinct(rows: FloatArray) -> tuple[FloatArray, IntArray]:
    """The distinct rows in order of first appearance, and which of them each row is."""
    _, first, place = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    by_appearance = np.argsort(first, kind="stable")
    rank = np.empty(len(first), dtype=np.int64)
    rank[by_appearance] = np.arange(len(first))
    return rows[np.sort(first)], rank[place.reshape(-1)]


def _labels(table: Any, axis: str) -> Any:
    """The labels of a data frame; None for anything else."""
    labels = getattr(table, axis, None)
    return None if labels is None or callable(labels) else [str(label) for label in labels]


def _as_labels(labels: Any, name: str, size: int) -> NDArray[np.str_] | None:
    if labels is None:
        return None
    array = np.asarray(labels, dtype=np.str_)
    if array.shape != (size,):
        raise ValueError(f"{name} must have {size} labels, got shape {array.shape}")
    return array

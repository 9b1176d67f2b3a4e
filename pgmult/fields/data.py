"""Counts at inputs in space and time: the data type of multinomial Gaussian processes.

A `CountField` is a table of counts with one row of inputs (coordinates) for every row of counts,
and new inputs at which predictions are wanted. The models work on its *sites*: the distinct rows of
all inputs. Rows at equal inputs observe the same probabilities, so their counts add up; a row whose
total is 0 is a missing row; a new input is a site without counts.

A category may not have been *counted* in a row: a disease that was not notifiable yet, a party that
did not stand. The row's counts are then multinomial among those that were,

    P(k | counted)  =  pi_k / sum over the counted j of pi_j,

which is exact and free under sticks where categories that were not counted stand before all that
were: their sticks have no observation there, and the others' are as they are. So these sets must be
nested, one within the next, and the order is chosen by them.

>>> import numpy as np
>>> field = as_field(np.array([0.0, 1.0, 1.0]), [[3, 1], [0, 2], [1, 0]], new_inputs=[2.0])
>>> field.sites[:, 0]
array([0., 1., 2.])
>>> field.site_counts()
array([[3, 1],
       [1, 2],
       [0, 0]])
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmult.core.typing import Array, ArrayLike, BoolArray, FloatArray, IntArray
from pgmult.core.validate import as_counts, as_order
from pgmult.fields.inputs import as_inputs, check_labels, column_labels, find_rows, row_labels

_Labels = NDArray[np.str_] | None
_NEVER = -700.0  # of a stick: its share is below 1e-300


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
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
    order : int64 array, ``(num_categories,)``
        The order of the sticks; fixed under `with_counts`.
    categories : str array, ``(num_categories,)``, or None
    names : str array, ``(num_rows,)``, or None
        Of the rows.
    new_names : str array, ``(num_new,)``, or None
    input_names : str array, ``(num_inputs,)``, or None
        Of the columns of `inputs`.
    columns, new_columns : mappings from name to array ``(num_rows,)``, ``(num_new,)``, or None
        The inputs and the new ones as the caller's table has them: dates, numbers, names of places.
    counted : bool array, ``(num_rows, num_categories)``, or None
        Whether each category was counted in each row; None where all were.
    """

    inputs: FloatArray
    counts: IntArray
    new_inputs: FloatArray
    sites: FloatArray
    row_sites: IntArray
    new_sites: IntArray
    order: IntArray
    categories: NDArray[np.str_] | None = None
    names: NDArray[np.str_] | None = None
    new_names: NDArray[np.str_] | None = None
    input_names: NDArray[np.str_] | None = None
    columns: Mapping[str, NDArray[Any]] | None = None
    new_columns: Mapping[str, NDArray[Any]] | None = None
    counted: BoolArray | None = None

    @property
    def num_rows(self) -> int:
        """Rows of counts, missing ones included."""
        return len(self.counts)

    @property
    def num_categories(self) -> int:
        """Number of categories, K."""
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

    @property
    def category_labels(self) -> list[str]:
        """Names of the categories, or their numbers."""
        labels = range(self.num_categories) if self.categories is None else self.categories
        return [str(name) for name in labels]

    @property
    def input_labels(self) -> list[str]:
        """Names of the columns of the inputs; "input 1" and so on where they have none."""
        if self.input_names is not None:
            return [str(name) for name in self.input_names]
        width = self.inputs.shape[1]
        return [f"input {i + 1}" for i in range(width)] if width > 1 else ["input"]

    @property
    def was_counted(self) -> BoolArray:
        """`counted`, True everywhere where all categories were."""
        return np.ones(self.counts.shape, dtype=np.bool_) if self.counted is None else self.counted

    def site_counts(self) -> IntArray:
        """Counts at each site, ``(num_sites, num_categories)``: rows at equal inputs added up."""
        return self.at_sites(self.counts)

    def at_sites(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Sums of rows, ``(num_rows, n)``, over those at each site."""
        total = np.zeros((self.num_sites, rows.shape[1]), rows.dtype)
        np.add.at(total, self.row_sites, rows)
        return total

    def stick_counts(self) -> IntArray:
        """Return how much each stick takes and how much reaches it, ``(2, num_sites, K - 1)``.

        Nothing reaches the sticks of categories that were not counted.
        """
        return np.stack([self.at_sites(rows) for rows in self.row_stick_counts()])

    def row_stick_counts(self) -> IntArray:
        """`stick_counts` of each row, ``(2, num_rows, num_categories - 1)``."""
        counts = self.counts[:, self.order]
        reaching = np.cumsum(counts[:, ::-1], axis=1)[:, ::-1]
        return np.stack([counts, reaching])[..., :-1] * self.was_counted[:, self.order[:-1]]

    def row_psi(self, psi: FloatArray) -> FloatArray:
        """Sticks in each row, ``(..., num_rows, K - 1)``, of those at the sites.

        Those of categories that were not counted take nothing.
        """
        at_rows = psi[..., self.row_sites, :]
        if self.counted is None:
            return at_rows
        return np.where(self.counted[:, self.order[:-1]], at_rows, _NEVER)

    def held_out(self, counts: ArrayLike) -> IntArray:
        """Counts at the same inputs that were not in a fit, checked."""
        table = as_counts(counts, "held_out")
        if table.shape != self.counts.shape:
            raise ValueError(f"held_out must have shape {self.counts.shape}, got {table.shape}")
        return table

    def with_counts(self, counts: IntArray) -> "CountField":
        """The same inputs, labels and order of sticks with other counts."""
        return replace(self, counts=counts)

    def with_new_inputs(self, new_inputs: object, new_names: Any = None) -> "CountField":
        """The same counts, labels and order of sticks with predictions wanted elsewhere.

        Parameters
        ----------
        new_inputs, new_names
            As in `as_field`.
        """
        wider = as_field(
            self.inputs, self.counts, new_inputs, order=self.order, categories=self.categories,
            names=self.names, new_names=new_names, input_names=self.input_names,
            counted=self.counted,
        )  # fmt: skip
        return replace(wider, columns=self.columns)

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
    input_names: Sequence[str] | NDArray[np.str_] | None = None,
    counted: ArrayLike | None = None,
) -> CountField:
    """A `CountField` from inputs and counts, or a `CountField` as it is.

    Parameters
    ----------
    inputs : array or pandas DataFrame, ``(num_rows, num_inputs)``
        A 1-D array is taken as one column. Rows may repeat.
    counts : array or pandas DataFrame, ``(num_rows, num_categories)``
        Non-negative integers, two categories or more; a row of zeros is missing. Rows of data
        frames have the labels of the inputs, in the same order.
    new_inputs : array or pandas DataFrame, ``(num_new, num_inputs)``, optional
        Where predictions are wanted, in the columns of `inputs`.
    order : {"frequency", "given"} or permutation of the categories
        The order of the sticks: by default the most frequent category first, which mixes best;
        before it those that were not counted everywhere.
    categories, names, new_names, input_names : sequences of str, optional
        Labels of the categories, the rows, the new inputs and the columns of the inputs; by
        default those of data frames.
    counted : bool array, ``(num_rows, num_categories)``, optional
        False where a category was not counted: probabilities of that row are those given that it
        is another. Of any two categories one must have been counted wherever the other was.

    Raises
    ------
    ValueError
        If lengths or labels do not agree, an input is not finite, a count is negative or
        fractional, or there is one where nothing was counted.
    """
    if isinstance(inputs, CountField):
        if counts is not None or new_inputs is not None:
            raise TypeError("inputs is a CountField already: pass nothing else")
        return inputs
    if counts is None:
        raise TypeError("counts must be given, one row for each row of inputs")
    x, table = as_inputs(inputs), as_counts(counts)
    if table.ndim != 2 or table.shape[1] < 2:
        raise ValueError(f"counts must be rows of two categories or more, got shape {table.shape}")
    if (total := float(table.sum(dtype=np.float64))) >= 2.0**63:
        raise ValueError(f"counts must add up to less than 2**63, got {total:.3g}")
    if len(x) != len(table):
        raise ValueError(f"inputs and counts must have as many rows, got {len(x)} and {len(table)}")
    size, width = x.shape
    if x.size == 0:
        raise ValueError(f"inputs must have a row and a column at least, got shape {x.shape}")
    new = np.empty((0, width)) if new_inputs is None else as_inputs(new_inputs, "new_inputs")
    if new.shape[1] != width:
        raise ValueError(f"new_inputs must have {width} columns as inputs has, got {new.shape[1]}")
    of_rows = row_labels(inputs)
    columns = column_labels(inputs) if input_names is None else input_names
    check_labels(row_labels(counts), of_rows, "rows of counts", "rows of inputs")
    check_labels(column_labels(new_inputs), columns, "columns of new_inputs", "columns of inputs")
    names = next((n for n in (names, of_rows, row_labels(counts)) if n is not None), None)
    categories = column_labels(counts) if categories is None else categories
    new_names = row_labels(new_inputs) if new_names is None else new_names
    labels = _as_labels(categories, "categories", table.shape[1])
    where = np.arange(size) if names is None else names
    mask = None if counted is None else _as_counted(counted, table, labels, where)
    sites, site_of = find_rows(x[:0], np.concatenate([x, new]))
    return CountField(
        x, table, new, sites, site_of[:size].copy(), site_of[size:].copy(),
        _as_order(order, table, mask, labels), labels, _as_labels(names, "names", size),
        _as_labels(new_names, "new_names", len(new)), _as_labels(columns, "input_names", width),
        counted=mask,
    )  # fmt: skip


def smoothed_shares(counts: ArrayLike, pseudo_count: ArrayLike) -> FloatArray:
    """Shares of the categories, ``(..., K)``, after something is added to every count."""
    smoothed = np.asarray(counts) + pseudo_count
    return np.asarray(smoothed / smoothed.sum(axis=-1, keepdims=True))


def _as_counted(
    counted: ArrayLike, counts: IntArray, categories: _Labels, names: Sequence[str] | Array
) -> BoolArray | None:
    """Check what was counted where; None if all categories were counted in all rows."""
    try:
        mask = np.asarray(counted)
    except ValueError:
        mask = np.empty(0)  # of several lengths
    if mask.shape != counts.shape or mask.dtype != np.bool_:
        got = f"{counts.shape}, got {mask.dtype} of shape {mask.shape}"
        raise ValueError(f"counted must be True or False for each of counts, {got}")
    if len(bad := np.argwhere((counts > 0) & ~mask)):
        row, k = bad[0]
        got = f"{counts[row, k]} of {_name(categories, k)} at row {names[row]}"
        raise ValueError(f"counts must be 0 where a category was not counted, got {got}")
    if mask.all():
        return None
    if clash := clash_of(mask):
        (a, b), (first, second) = (_name(categories, k) for k in clash[0]), clash[1]
        got = f"{a} without {b} at row {names[first]} and {b} without {a} at row {names[second]}"
        hint = 'leave one of them out, or take what is absent for 0: absent="zero" of a table'
        wanted = "of two categories one must have been counted wherever the other was"
        raise ValueError(f"{wanted}, got {got} ({hint})")
    return np.ascontiguousarray(mask)


def clash_of(counted: BoolArray) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Two categories and two rows, one with the first alone and one with the second alone.

    None where there are none: the sets of what was counted are nested.
    """
    alone = (counted.T.astype(np.int64) @ ~counted) > 0  # of a row with the one, not the other
    clashes = np.argwhere(alone & alone.T)
    if not len(clashes):
        return None
    one, other = map(int, clashes[0])
    a, b = counted[:, one], counted[:, other]
    return (one, other), (int(np.argmax(a & ~b)), int(np.argmax(b & ~a)))


def _as_order(
    order: str | ArrayLike, counts: IntArray, counted: BoolArray | None, categories: _Labels
) -> IntArray:
    """The order of the sticks, those that were counted in the fewest rows first."""
    chosen = as_order(order, counts.sum(axis=0))
    if counted is None:
        return chosen
    rows = counted.sum(axis=0)
    if isinstance(order, str) and order == "frequency":
        return chosen[np.argsort(rows[chosen], kind="stable")]
    if len(late := np.flatnonzero(np.diff(rows[chosen]) < 0)):
        one, other = (_name(categories, k) for k in chosen[late[0] : late[0] + 2])
        raise ValueError(f"order must have {other}, which was not counted everywhere, before {one}")
    return chosen


def _name(categories: _Labels, k: int) -> str:
    return f"category {k}" if categories is None else repr(str(categories[k]))


def _as_labels(labels: object, name: str, size: int) -> _Labels:
    if labels is None:
        return None
    try:
        array = np.asarray(labels, dtype=np.str_)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be a list of labels, got {error}") from None
    if array.shape != (size,):
        raise ValueError(f"{name} must have {size} labels, got shape {array.shape}")
    return array

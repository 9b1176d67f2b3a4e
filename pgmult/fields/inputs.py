"""Inputs, tables of coordinates: read, paired by labels, and reduced to their distinct rows.

Rows and columns of two tables are paired by their labels where both have them, and labels that do
not agree are refused. Lists and arrays have no labels and are paired by position.
"""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pgmult.core.typing import ArrayLike, FloatArray, IntArray
from pgmult.core.validate import as_finite

_NAMED = 5  # labels in an error


def as_inputs(value: ArrayLike, name: str = "inputs") -> FloatArray:
    """A float64 array ``(n, d)`` of finite numbers; one axis is taken for one column."""
    inputs = as_finite(value, name)
    if inputs.ndim == 1:
        inputs = inputs[:, None]
    if inputs.ndim != 2:
        raise ValueError(f"{name} must have shape (rows, columns), got {inputs.shape}")
    return inputs


def find_rows(known: FloatArray, rows: FloatArray) -> tuple[FloatArray, IntArray]:
    """`known` distinct rows and after them the distinct others among `rows`; where each row stands.

    Returns ``(num_known + num_others, columns)`` and ``(len(rows),)``.
    """
    together = np.concatenate([known, rows])
    _, first, group = np.unique(together, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")  # in order of appearance: the known ones stay first
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return together[first[order]], rank[group.reshape(-1)[len(known) :]]


@runtime_checkable
class _LabelledRows(Protocol):
    """What tables and series of pandas have, and lists and arrays have not."""

    index: Any
    iloc: Any


@runtime_checkable
class _LabelledColumns(Protocol):
    """What tables of pandas and of polars have."""

    columns: Any


def row_labels(table: Any) -> list[str] | None:
    """Labels of the rows of a data frame or series; None for anything else."""
    return [str(label) for label in table.index] if isinstance(table, _LabelledRows) else None


def column_labels(table: Any) -> list[str] | None:
    """Labels of the columns of a data frame; None for anything else."""
    return [str(label) for label in table.columns] if isinstance(table, _LabelledColumns) else None


def places(
    labels: Sequence[str] | None,
    wanted: Sequence[str] | NDArray[np.str_] | None,
    what: str,
    whose: str,
) -> IntArray | slice:
    """Where each of the `wanted` labels stands among `labels`; everything where one has none.

    Parameters
    ----------
    labels, wanted : sequences of str, or None
    what, whose : str
        What has the `labels` and what the `wanted` ones, for errors: "rows of counts".

    Raises
    ------
    ValueError
        If they are not the same labels, or stand in another order and repeat.
    """
    if labels is None or wanted is None or list(labels) == list(wanted):
        return slice(None)
    at = {label: place for place, label in enumerate(labels)}
    missing = [label for label in wanted if label not in at]
    extra = sorted(set(labels) - set(wanted), key=at.__getitem__)
    if missing or extra:
        both = ((missing, "missing"), (extra, "extra"))
        faults = [f"{_some(found)} {fault}" for found, fault in both if found]
        raise ValueError(
            f"{what} must have the labels of {whose}, got {' and '.join(faults)} (pass arrays to"
            " pair them by place)"
        )
    if len(at) < max(len(labels), len(wanted)):
        raise ValueError(
            f"{what} must stand in the order of {whose} where labels repeat, got {len(labels)}"
            f" labels of which {len(at)} differ (pass arrays to pair them by place)"
        )
    return np.array([at[label] for label in wanted])


def _some(labels: Sequence[str]) -> str:
    shown = ", ".join(map(repr, labels[:_NAMED]))
    return shown + (f" and {len(labels) - _NAMED} more" if len(labels) > _NAMED else "")

"""Inputs, tables of coordinates: read, and reduced to their distinct rows.

Rows and columns of two tables belong together by position, and labels that say otherwise are
refused.
"""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from pgmult.core.typing import Array, ArrayLike, FloatArray, IntArray
from pgmult.core.validate import as_finite


def as_inputs(value: ArrayLike, name: str = "inputs") -> FloatArray:
    """A float64 array ``(n, d)`` of finite numbers; one axis is taken for one column."""
    inputs = as_finite(value, name)
    if inputs.ndim == 1:
        inputs = inputs[:, None]
    if inputs.ndim != 2:
        raise ValueError(f"{name} must have shape (rows, columns), got {inputs.shape}")
    return inputs


def find_rows(table: FloatArray, rows: FloatArray) -> tuple[FloatArray, IntArray]:
    """`known` distinct rows and after them the distinct others among `rows`; where each row stands.

    Returns ``(num_known + num_others, columns)`` and ``(len(rows),)``.
    """
    together = np.concatenate([table, rows])
    _, first, group = np.unique(together, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")  # in order of appearance: the known ones stay first
    return together[first[order]], np.argsort(order)[group.reshape(-1)[len(table) :]]


def row_labels(table: Any) -> list[str] | None:
    """Labels of the rows of a data frame or series; None for anything else."""
    return [str(label) for label in table.index] if hasattr(table, "iloc") else None


def column_labels(table: object) -> list[str] | None:
    """Labels of the columns of a data frame; None for anything else."""
    return [str(label) for label in table.columns] if hasattr(table, "columns") else None


def check_labels(
    labels: Sequence[str] | None, wanted: Sequence[str] | Array | None, what: str, whose: str
) -> None:
    """Refuse labels that are not the `wanted` ones; everything goes where one has none.

    Parameters
    ----------
    labels, wanted : sequences of str, or None
    what, whose : str
        What has the `labels` and what the `wanted` ones, for errors: "rows of counts".
    """
    if labels is None or wanted is None:
        return
    for place, (one, other) in enumerate(zip_longest(labels, wanted)):
        if one != other:
            got = f"{str(one)!r} for {str(other)!r} at {place} (pass arrays to pair them by place)"
            raise ValueError(f"{what} must have the labels of {whose} in the same order, got {got}")

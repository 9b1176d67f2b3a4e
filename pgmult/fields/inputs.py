"""Inputs, tables of coordinates: read, and taken apart into their distinct rows."""

import numpy as np

from pgmult.core.typing import ArrayLike, FloatArray, IntArray
from pgmult.core.validate import as_finite

__all__ = ["as_inputs", "find_rows"]


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

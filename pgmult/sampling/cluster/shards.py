"""Rows cut between blocks, for workers and for the threads of one."""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmult.sampling.blocks import blocks
from pgmult.sampling.cluster.files import Part

__all__ = ["costs_of", "shards_of"]


def shards_of(costs: NDArray[Any], num_rows: int, block_rows: int, shards: int) -> list[Part]:
    """Rows cut between blocks into so many shards, or fewer, of about the same cost.

    Parameters
    ----------
    costs : array, ``(num_rows,)``
    num_rows, block_rows, shards : int
    """
    if num_rows == 0:
        raise ValueError("data must have rows for a cluster to work on, got none")
    parts = blocks(num_rows, block_rows)
    starts = np.array([part.start for part in parts])
    ends = np.cumsum(np.add.reduceat(costs, starts))
    shards = min(shards, len(parts))
    ideal = ends[-1] * np.arange(1, shards) / shards
    nearest = np.searchsorted(ends - np.diff(ends, prepend=0) / 2, ideal)
    least = np.arange(1, shards)  # a block in every shard
    bounds = np.clip(nearest, least, len(parts) - shards + least)
    bounds = np.maximum.accumulate(bounds - least) + least
    rows = [0, *(int(starts[b]) for b in bounds), num_rows]
    return [Part(start, stop) for start, stop in pairwise(rows)]


def costs_of(data: Any, size: int) -> NDArray[Any]:
    """What each row costs in proportion, as far as the data say."""
    costs = getattr(data, "row_costs", None)
    return np.ones(size) if costs is None else np.asarray(costs)

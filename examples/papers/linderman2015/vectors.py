"""Sequences of real vectors."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmult.core.arguments import as_list, brief
from pgmult.core.typing import BoolArray, FloatArray, IntArray
from pgmult.core.validate import as_finite
from pgmult.sequences.data.sequences import Sequences


@dataclass(frozen=True, slots=True, eq=False)
class VectorSequences:
    """Sequences of real vectors. Make one with `as_vector_sequences`.

    Attributes
    ----------
    offsets : int64 array, ``(num_sequences + 1,)``
        Sequence s is the steps ``offsets[s]:offsets[s + 1]``.
    values : array, ``(num_steps, n)``
        Zeros where a step is missing.
    observed : bool array, ``(num_steps,)``
    labels : str array, ``(n,)``, or None
        What the coordinates are called.
    """

    offsets: IntArray
    values: FloatArray
    observed: BoolArray
    labels: NDArray[np.str_] | None = None

    def __repr__(self) -> str:
        return (
            f"VectorSequences({len(self.offsets) - 1:,} sequences, {len(self.values):,} steps of"
            f" {self.values.shape[1]:,})"
        )


def _as_rows(part: Any) -> FloatArray:
    """A sequence's vectors, in which nan may stand."""
    try:
        array = np.asarray(part)
    except ValueError as error:
        raise ValueError(f"data must hold rectangular arrays, got {error}") from None
    if array.dtype.kind not in "iuf" or np.ma.is_masked(part):
        raise TypeError(f"data must hold arrays of numbers, got {brief(part)}")
    return array.astype(np.float64)


def as_vector_sequences(data: Any) -> VectorSequences:
    """Vectors from counts, which are divided by their totals, or from real vectors.

    Parameters
    ----------
    data : Sequences, list of float arrays ``(num_steps, n)``, or VectorSequences
        A row of nan is a missing step.

    Raises
    ------
    ValueError
        If sequences have inputs, rows are partly nan, or shapes do not agree.
    """
    if isinstance(data, VectorSequences):
        return data
    if isinstance(data, Sequences):
        if data.inputs is not None:
            raise ValueError("a Gaussian LDS takes no inputs, the sequences have some")
        totals = data.totals
        step = np.repeat(np.arange(data.num_steps), np.diff(data.indptr))
        values = np.zeros((data.num_steps, data.num_symbols))
        values[step, data.symbols] = data.counts / totals[step]
        return VectorSequences(data.offsets, values, totals > 0, data.alphabet)
    stacked = isinstance(data, np.ndarray) and data.ndim == 3
    parts = [_as_rows(part) for part in (data if stacked else as_list(data, "data", "arrays"))]
    if not parts or any(part.ndim != 2 or part.shape[1] != parts[0].shape[1] for part in parts):
        raise ValueError(
            "data must be a list of arrays (num_steps, n), one a sequence, got shapes"
            f" {[part.shape for part in parts]}"
        )
    if any(len(part) == 0 for part in parts):
        raise ValueError("data must have sequences of a step or more, got an empty one")
    offsets = np.cumsum([0, *map(len, parts)])
    values = np.concatenate(parts)
    observed = np.asarray(~np.isnan(values).all(axis=1))
    values = as_finite(np.where(observed[:, None], values, 0.0), "data")
    return VectorSequences(offsets, values, observed)

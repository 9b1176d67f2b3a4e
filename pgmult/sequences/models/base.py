"""What all models of sequences share."""

from typing import ClassVar

from pgmult.core.family import Family
from pgmult.core.typing import FloatArray, IntArray
from pgmult.sequences.data.sequences import step_rows
from pgmult.sequences.family import SEQUENCES

Ahead = tuple[FloatArray, IntArray]
"""Probabilities of steps ahead of each sequence, and the symbols of a path."""


class SequenceModel:
    """What runs of a model of sequences can be asked, and the rows of its data."""

    __slots__ = ()
    family: ClassVar[Family] = SEQUENCES
    observed_rows = staticmethod(step_rows)

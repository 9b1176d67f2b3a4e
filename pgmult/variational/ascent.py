"""Steps uphill, halved until what is climbed does not fall: no start diverges.

A search proposes a step for each of many rows, and here is how much of it a row takes: all of it,
or a half, or a quarter, until the level rises by some of what the gradient promised. Rounding may
take a little away, or the search would halve for ever at the top.

>>> import numpy as np
>>> x, step = np.array([0.0, 2.0]), np.array([8.0, 1.0])
>>> climb = Climb(-((x - 3.0) ** 2))
>>> for rows in climb:
...     trial = x[rows] + climb.share[rows] * step[rows]
...     good = climb.accept(-((trial - 3.0) ** 2))
...     x[rows[good]] = trial[good]
>>> x.tolist(), climb.share.tolist(), climb.stuck.tolist()
([4.0, 3.0], [0.5, 1.0], [False, False])
"""

from collections.abc import Iterator, Sequence

import numpy as np

from pgmult.core.typing import BoolArray, FloatArray, IntArray

__all__ = ["Climb", "has_settled", "slack"]

_MOST_HALVINGS = 50
_SUFFICIENT = 1e-4  # of the rise that the gradient promises (Armijo)
_SLACK = 1e-12  # of a level: what rounding may take from a rise


def slack(level: FloatArray | float) -> FloatArray:
    """What rounding may take from a rise."""
    return np.asarray(_SLACK * (1.0 + np.abs(level)))


def has_settled(history: Sequence[float], tolerance: float) -> bool:
    """Whether the last change of an objective is less than this share of itself."""
    return len(history) > 1 and abs(history[-1] - history[-2]) < tolerance * abs(history[-1])


class Climb:
    """One step for each row. Iterate over the rows that wait, and say what each trial came to.

    Parameters
    ----------
    level : array, ``(num_rows,)``, or float
        Where the rows are; -inf where anything is better.
    promise : array, ``(num_rows,)``, or float
        The rise that the gradient promises of a whole step, of which 1e-4 will do.
    share : array, ``(num_rows,)``, or float
        Of its step that a row tries first.

    Attributes
    ----------
    share : array, ``(num_rows,)``
        What to try next, or what was taken.
    stuck : bool array, ``(num_rows,)``
        Rows that took no share, of fifty.
    """

    def __init__(
        self,
        level: FloatArray | float,
        *,
        promise: FloatArray | float = 0.0,
        share: FloatArray | float = 1.0,
    ) -> None:
        self._level = np.array(level, dtype=np.float64, ndmin=1)
        zeros = np.zeros(len(self._level))
        self._promise: FloatArray = zeros + promise
        self.share: FloatArray = zeros + share
        self._waiting = np.arange(len(zeros))

    def __iter__(self) -> Iterator[IntArray]:
        for _ in range(_MOST_HALVINGS):
            yield self._waiting
            if len(self._waiting) == 0:
                return
            self.share[self._waiting] *= 0.5

    def accept(self, value: FloatArray | float) -> BoolArray:
        """Which of the rows that waited may stay where they tried, given the levels there."""
        rows = self._waiting
        level = self._level[rows]
        least = level + _SUFFICIENT * self.share[rows] * self._promise[rows] - slack(level)
        good = np.asarray(value >= least)
        self._waiting = rows[~good]
        return good

    @property
    def stuck(self) -> BoolArray:
        """Rows that have not moved."""
        stuck = np.zeros(len(self._level), dtype=bool)
        stuck[self._waiting] = True
        return stuck

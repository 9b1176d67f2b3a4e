"""Ascent steps that are halved until the objective does not fall, so that no start diverges.

A search proposes a step for each of many rows; a row takes all of it, a half, a quarter, ..., until
its objective rises by a share of what the gradient predicts. A small fall is accepted, since
rounding would otherwise make the search halve for ever at the maximum.

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

from collections.abc import Iterator

import numpy as np

from pgmult.core.typing import BoolArray, FloatArray, IntArray
from pgmult.variational.ascent import slack

_Rows = FloatArray | float  # a number of each row, or one for all
_MOST_HALVINGS = 50
_SUFFICIENT = 1e-4  # of the rise that the gradient promises (Armijo)


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

    def __init__(self, level: _Rows, *, promise: _Rows = 0.0, share: _Rows = 1.0) -> None:
        self._level = np.array(level, dtype=np.float64, ndmin=1)
        zeros = np.zeros(len(self._level))
        self._promise, self.share = zeros + promise, zeros + share
        self._waiting = np.arange(len(zeros))

    def __iter__(self) -> Iterator[IntArray]:
        for _ in range(_MOST_HALVINGS):
            yield self._waiting
            if len(self._waiting) == 0:
                return
            self.share[self._waiting] *= 0.5

    def accept(self, value: _Rows) -> BoolArray:
        """Find which of the rows that waited may stay where they tried, given the levels there."""
        rows = self._waiting
        level = self._level[rows]
        least = level + _SUFFICIENT * self.share[rows] * self._promise[rows] - slack(level)
        good = np.asarray(value >= least)
        self._waiting = rows[~good]
        return good

    @property
    def stuck(self) -> BoolArray:
        """Rows that have not moved."""
        return np.isin(np.arange(len(self._level)), self._waiting)

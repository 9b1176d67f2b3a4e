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

from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from pgmult.core.typing import BoolArray, FloatArray, IntArray

_Rows = FloatArray | float  # a number of each row, or one for all
_MOST_HALVINGS = 50
_SUFFICIENT = 1e-4  # of the rise that the gradient promises (Armijo)
_SLACK = 1e-12  # of a level: what rounding may take from a rise


@runtime_checkable
class Fit(Protocol):
    """The result of approximating a posterior.

    Some fits also have a ``history``: an array of the objective, one number per iteration, of which
    the last is `objective`.

    Attributes
    ----------
    method : str
        Which approximation it is, by the name that its function takes for it.
    objective : float
        What was maximised: the log evidence, bounded or approximated, over all rows and groups. It
        includes the log prior density of point estimates, up to a constant.
    is_bound : bool
        Whether `objective` is a lower bound.
    converged : bool
        Whether the search ended by its tolerance, for every row and group of it.
    num_iterations : int
        Of the slowest row or group.
    """

    method: str
    objective: float
    is_bound: bool
    converged: bool
    num_iterations: int


class HasHistory:
    """The answers of a `pgmult.variational.Fit` that follow from its history."""

    __slots__ = ()
    history: FloatArray

    @property
    def objective(self) -> float:
        """The last of the history; nan where there is none."""
        return float(self.history[-1]) if len(self.history) else float("nan")

    @property
    def num_iterations(self) -> int:
        """Length of the history."""
        return len(self.history)


def slack(level: _Rows) -> FloatArray:
    """How far rounding errors may lower an objective that never falls."""
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


def invert(precision: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Inverses and log determinants of positive definite matrices, ``(..., D, D)``."""
    try:
        root = np.linalg.cholesky(precision)
    except np.linalg.LinAlgError:
        raise ValueError(
            "prior must be narrower: what the data leave open has a precision near 0 beside the"
            " rest's (smaller variances)"
        ) from None
    inverse_root = np.linalg.inv(root)
    log_det = 2.0 * np.log(np.diagonal(root, axis1=-2, axis2=-1)).sum(axis=-1)
    return np.swapaxes(inverse_root, -1, -2) @ inverse_root, log_det

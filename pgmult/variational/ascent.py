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

_MOST_HALVINGS = 50
_SUFFICIENT = 1e-4  # of the rise that the gradient promises (Armijo)
_SLACK = 1e-12  # of a level: what rounding may take from a rise
_MEMORY = 8  # steps, if they are not more than
_MOST_NUMBERS = 1 << 26
_RANK = 1e-13  # of eigenvalues: below this share of the largest, directions are one
_LEAST = 1e-2  # what a step may leave of a precision, in any direction


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

    @property
    def method(self) -> str: ...  # noqa: D102

    @property
    def objective(self) -> float: ...  # noqa: D102

    @property
    def is_bound(self) -> bool: ...  # noqa: D102

    @property
    def converged(self) -> bool: ...  # noqa: D102

    @property
    def num_iterations(self) -> int: ...  # noqa: D102


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


def slack(level: FloatArray | float) -> FloatArray:
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


# --------------------------------------------------------------------------- fixed points


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


def distance(
    mean: FloatArray, precision: FloatArray, other_mean: FloatArray, other_precision: FloatArray
) -> FloatArray:
    """Fisher's length of the way from Gaussians to others, for every group, as in `Mixing`.

    The root of dm' P dm + tr(S dP S dP) / 2, added up over the blocks of a group.
    """
    roots = np.linalg.cholesky(precision)
    way = np.swapaxes(roots, -1, -2) @ (other_mean - mean)[..., None]
    inverse_roots = np.linalg.inv(roots)
    turn = inverse_roots @ (other_precision - precision) @ np.swapaxes(inverse_roots, -1, -2)
    return np.asarray(
        np.sqrt(np.sum(way**2, axis=(1, 2, 3)) + 0.5 * np.sum(turn**2, axis=(1, 2, 3)))
    )


class Mixing:
    """Anderson's mixing (1965) of Gaussians on their way to where they are their own targets.

    From a Gaussian and its target, the proposal is the target less what the last few steps foretell
    of the way that is left: with r = target - here, and differences of the last steps, it is
    target - sum c d(target), where r - sum c d(r) is least. Lengths are Fisher's as if coordinates
    were independent, which costs O(D**2).

    Gaussians are of independent groups, with one or more blocks each: means
    ``(num_groups, num_blocks, D)`` and precisions ``(num_groups, num_blocks, D, D)``. A proposal
    may be worse than its target: it is for the caller to see what it is good for.
    """

    def __init__(self) -> None:
        self._before: tuple[FloatArray, FloatArray] | None = None
        self._steps: list[tuple[FloatArray, FloatArray]] = []

    def propose(
        self,
        mean: FloatArray,
        precision: FloatArray,
        target_mean: FloatArray,
        target_precision: FloatArray,
        *,
        tolerance: float = 0.0,
    ) -> tuple[FloatArray, FloatArray] | None:
        """Means and precisions to try next, the targets where nothing is known; or None.

        None where no group is farther from its target than the tolerance: that is the fixed point.
        """
        if (distance(mean, precision, target_mean, target_precision) <= tolerance).all():
            return None
        target = _join(target_mean, target_precision)
        way = target - _join(mean, precision)
        if self._before is not None:
            step = way - self._before[0], target - self._before[1]
            memory = min(_MEMORY, max(2, _MOST_NUMBERS // way.size))
            self._steps = [*self._steps[1 - memory :], step]
        self._before = way, target
        if not self._steps:
            return target_mean, target_precision
        scale = np.sqrt(np.diagonal(precision, axis1=-2, axis2=-1))
        pairs = scale[..., :, None] * scale[..., None, :]
        unit = _join(1.0 / scale, np.sqrt(2.0) * pairs)
        turns = np.empty((len(way), len(self._steps), way.shape[1]))
        for i, (turn, _) in enumerate(self._steps):
            np.divide(turn, unit, out=turns[:, i])
        gram = turns @ np.swapaxes(turns, 1, 2)
        sizes = np.sqrt(np.diagonal(gram, axis1=1, axis2=2))[:, :, None]
        sizes = np.where(sizes > 0.0, sizes, 1.0)
        along = turns @ (way / unit)[:, :, None] / sizes
        gram /= sizes * np.swapaxes(sizes, 1, 2)
        c = (np.linalg.pinv(gram, rcond=_RANK, hermitian=True) @ along / sizes)[:, :, 0]
        proposed = target.copy()
        for share, (_, change) in zip(c.T, self._steps, strict=True):
            proposed -= share[:, None] * change
        size = mean[0].size
        new_mean = proposed[:, :size].reshape(mean.shape)
        new_precision = proposed[:, size:].reshape(precision.shape)
        sound = _are_positive(new_precision - _LEAST * precision)[:, None, None]
        return (
            np.where(sound, new_mean, target_mean),
            np.where(sound[..., None], new_precision, target_precision),
        )


def _join(mean: FloatArray, precision: FloatArray) -> FloatArray:
    """All numbers of a group, ``(num_groups, num_blocks * (D + D * D))``."""
    parts = [part.reshape(len(mean), -1) for part in (mean, precision)]
    return np.concatenate(parts, axis=1)


def _are_positive(matrices: FloatArray) -> BoolArray:
    """For each group, whether all its matrices are positive definite."""
    try:
        np.linalg.cholesky(matrices)
    except np.linalg.LinAlgError:
        if len(matrices) == 1:
            return np.zeros(1, dtype=bool)
        return np.concatenate([_are_positive(group[None]) for group in matrices])
    return np.ones(len(matrices), dtype=bool)

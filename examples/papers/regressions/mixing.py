"""Anderson's mixing of Gaussians that search for a fixed point: the same in far fewer steps."""

import numpy as np

from pgmult.core.typing import BoolArray, FloatArray

_MEMORY = 8  # steps, if they are not more than
_MOST_NUMBERS = 1 << 26
_RANK = 1e-13  # of eigenvalues: below this share of the largest, directions are one
_LEAST = 1e-2  # what a step may leave of a precision, in any direction


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

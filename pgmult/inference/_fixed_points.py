"""What the solvers of Gaussian approximations share: inverses, and fewer steps to a fixed point."""

import numpy as np

from pgmult.typing import FloatArray

__all__ = ["Mixing", "distance", "invert"]

_MEMORY = 8
_RANK = 1e-8  # of singular values: below this share of the largest, directions are one
_LEAST = 1e-2  # what a step may leave of a precision, in any direction


def invert(precision: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Inverses and log determinants of positive definite matrices, ``(..., D, D)``."""
    root = np.linalg.cholesky(precision)
    inverse_root = np.linalg.inv(root)
    log_det = 2.0 * np.log(np.diagonal(root, axis1=-2, axis2=-1)).sum(axis=-1)
    return np.swapaxes(inverse_root, -1, -2) @ inverse_root, log_det


def distance(
    mean: FloatArray, precision: FloatArray, other_mean: FloatArray, other_precision: FloatArray
) -> FloatArray:
    """Fisher's length of the way from Gaussians to others, for every group: see `Mixing`."""
    way = _join(other_mean - mean, other_precision - precision)
    return np.asarray(np.linalg.norm(_whiten(way, *_metric(precision)), axis=1))


class Mixing:
    """Anderson's mixing (1965) of Gaussians on their way to where they are their own targets.

    From a Gaussian and its target, the proposal is the target less what the last few steps foretell
    of the way that is left: with r = target - here, and differences of the last steps, it is
    target - sum c d(target), where r - sum c d(r) is least. Lengths of (dm, dP) are Fisher's,
    dm' P dm + tr(S dP S dP) / 2.

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
    ) -> tuple[FloatArray, FloatArray]:
        """Means and precisions to try next; the targets where nothing is known."""
        target = _join(target_mean, target_precision)
        way = target - _join(mean, precision)
        if self._before is not None:
            step = way - self._before[0], target - self._before[1]
            self._steps = [*self._steps[1 - _MEMORY :], step]
        self._before = way, target
        if not self._steps:
            return target_mean, target_precision
        metric = _metric(precision)
        turns = np.stack([_whiten(turn, *metric) for turn, _ in self._steps], axis=-1)
        sizes = np.linalg.norm(turns, axis=1, keepdims=True)
        sizes[sizes == 0.0] = 1.0
        foretold = np.linalg.pinv(turns / sizes, rcond=_RANK) / np.swapaxes(sizes, 1, 2)
        c = (foretold @ _whiten(way, *metric)[:, :, None])[:, :, 0]
        proposed = target.copy()
        for share, (_, change) in zip(c.T, self._steps, strict=True):
            proposed -= share[:, None, None] * change
        new_mean, new_precision = _split(proposed)
        # where a precision would be none, the target stands for its group
        relative = metric[1] @ new_precision @ np.swapaxes(metric[1], -1, -2)
        smallest = np.linalg.eigvalsh(relative).min(axis=(1, 2), keepdims=True)
        sound = smallest > _LEAST
        return (
            np.where(sound, new_mean, target_mean),
            np.where(sound[..., None], new_precision, target_precision),
        )


def _join(mean: FloatArray, precision: FloatArray) -> FloatArray:
    """``(num_groups, num_blocks, D + D * D)``."""
    return np.concatenate([mean, precision.reshape(*mean.shape[:2], -1)], axis=2)


def _split(joined: FloatArray) -> tuple[FloatArray, FloatArray]:
    size = int(np.sqrt(joined.shape[2]))  # of D (D + 1)
    return joined[:, :, :size], joined[:, :, size:].reshape(*joined.shape[:2], size, size)


def _metric(precision: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The Cholesky roots, transposed, and their inverses."""
    roots = np.linalg.cholesky(precision)
    return np.swapaxes(roots, -1, -2), np.linalg.inv(roots)


def _whiten(joined: FloatArray, upper: FloatArray, inverse_lower: FloatArray) -> FloatArray:
    """Vectors of Fisher's length, ``(num_groups, num_blocks * (D + D * D))``."""
    mean, precision = _split(joined)
    m = (upper @ mean[..., None])[..., 0]
    P = inverse_lower @ precision @ np.swapaxes(inverse_lower, -1, -2) / np.sqrt(2.0)
    return _join(m, P).reshape(len(joined), -1)

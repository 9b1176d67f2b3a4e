"""What searches of deterministic approximations share: results, histories, inverses."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from pgmult.core.typing import FloatArray

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


def slack(level: FloatArray | float) -> FloatArray:
    """How far rounding errors may lower an objective that never falls."""
    return np.asarray(_SLACK * (1.0 + np.abs(level)))


def has_settled(history: Sequence[float], tolerance: float) -> bool:
    """Whether the last change of an objective is less than this share of itself."""
    return len(history) > 1 and abs(history[-1] - history[-2]) < tolerance * abs(history[-1])


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

"""scikit-learn's arguments in this library's terms."""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from pgmult.core.arguments import brief
from pgmult.core.machine import available_cores

__all__ = ["as_seed", "as_threads"]


def as_seed(random_state: Any) -> int:
    """A seed from an int, a RandomState, or None for a fresh one."""
    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError as error:
        raise ValueError(f"random_state must be a seed: {error}") from None


def as_threads(n_jobs: int | None) -> int:
    """Threads: None is one, -1 all processors, -2 all but one."""
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer) or n_jobs == 0:
        raise ValueError(f"n_jobs must be an integer other than 0, or None, got {brief(n_jobs)}")
    return int(n_jobs) if n_jobs > 0 else max(1, available_cores() + 1 + int(n_jobs))

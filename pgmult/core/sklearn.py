"""scikit-learn's arguments in this library's terms."""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from pgmult.core.arguments import brief
from pgmult.core.labels import warn_of_look_alikes
from pgmult.core.machine import available_cores
from pgmult.core.typing import Array, IntArray


def as_classes(y: object) -> tuple[Array, IntArray]:
    """The classes of labels, in order, and the number of each row's.

    Raises
    ------
    ValueError
        If a label is missing, or numbers and strings are mixed.
    """
    labels = np.asarray(y)
    for row, label in enumerate(labels.tolist() if labels.dtype.kind in "OfM" else ()):
        if label is None or label != label:
            raise ValueError(f"y must have a class in every row, got {label} at row {row}")
    try:
        classes, index = np.unique(labels, return_inverse=True)
    except TypeError:
        raise ValueError("y must be numbers or strings, got both") from None
    if classes.dtype.kind in "OU":
        warn_of_look_alikes(classes, "y")
    return classes, index


def refuse_dates(X: Any) -> None:
    """Refuse a data frame with a column of dates, which is no number.

    Raises
    ------
    ValueError
        That names the column.
    """
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        for name, kind in zip(X.columns, X.dtypes, strict=True):
            if str(kind).lower().startswith(("datetime", "date", "timedelta", "period")):
                raise ValueError(f"column {str(name)!r} of X must be numbers (years?), got {kind}")


def as_seed(random_state: object) -> int:
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

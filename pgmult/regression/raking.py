"""Raking: weights of observations that agree with the margins of a population.

Where only margins of a population are known (so many women, so many aged 30 to 44), and no table of
all combinations, iterative proportional fitting (Deming and Stephan 1940) multiplies the weights of
the observations until each margin holds. Combinations within the margins are as associated as they
are in the sample.

>>> rake({"sex": ["f", "f", "m"], "age": ["old", "young", "young"]}, [1.0, 1.0, 1.0],
...      {"sex": {"f": 50, "m": 50}, "age": {"old": 30, "young": 70}}).round(3)
array([30., 20., 50.])
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from pgmult.core.labels import find_labels, labels_of
from pgmult.core.typing import ArrayLike, FloatArray

_MOST_SWEEPS = 1000
_CLOSE = 1e-9  # share of a margin


def rake(
    table: Mapping[str, Any], weights: ArrayLike, margins: Mapping[str, Mapping[Any, float]]
) -> FloatArray:
    """Return weights of rows whose sums are the margins.

    Parameters
    ----------
    table : mapping from a column to its cells, ``(num_rows,)``
    weights : array, ``(num_rows,)``
        Weights to start from, such as numbers of observations.
    margins : mapping from a column to a mapping from each of its labels to people

    Returns
    -------
    array, ``(num_rows,)``
        Weights that sum to the people of the first margin.

    Raises
    ------
    ValueError
        If a label has people and no row, or a row's label has no people named, or the margins
        contradict each other.
    """
    if not margins:
        raise ValueError("margins must name a column, got none")
    raked = np.array(weights, dtype=np.float64)
    total, wanted = 0.0, []
    for column, people in margins.items():
        if column not in table:
            raise ValueError(f"margins must name columns of the data, got {column!r}")
        cells, labels = labels_of(table[column], column), list(people)
        code = find_labels(labels, cells, f"margins of {column!r}")
        target = np.array([float(people[label]) for label in labels])
        if not (np.isfinite(target).all() and (target >= 0.0).all() and target.sum() > 0.0):
            raise ValueError(f"margins of {column!r} must be numbers of people, 0 or more")
        lacking = (np.bincount(code, raked, len(labels)) == 0.0) & (target > 0.0)
        if lacking.any():
            have = f"margins of {column!r} have people of {labels[int(np.argmax(lacking))]!r}"
            hint = "join it with another label"
            raise ValueError(f"{have}, and the data have no observations of it ({hint})")
        total = total or target.sum()
        wanted.append((code, target * (total / target.sum())))
    for _ in range(_MOST_SWEEPS):
        for code, target in wanted:
            sizes = np.bincount(code, raked, len(target))
            raked *= np.divide(target, sizes, out=np.zeros(len(target)), where=sizes > 0.0)[code]
        gaps = [np.bincount(code, raked, len(target)) - target for code, target in wanted]
        if max(np.abs(gap).max() for gap in gaps) <= _CLOSE * total:
            return raked
    contradict = f"margins of {', '.join(map(repr, margins))} contradict each other"
    raise ValueError(f"{contradict}: no weights have all of them (leave one out, or join labels)")

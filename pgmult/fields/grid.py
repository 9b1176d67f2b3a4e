"""Rows of a field by where they stand: along an axis, and at which place.

The axis is the first input of numbers or dates, and the other inputs are the place.
"""

from functools import cached_property

import numpy as np

from pgmult.core.reports import Interval
from pgmult.core.typing import FloatArray, IntArray
from pgmult.fields.data import CountField
from pgmult.fields.predictions import FieldPredictions
from pgmult.fields.tables import axis_and_places, plain


class Grid:
    """Probabilities of rows, by where they stand along an axis and at which place.

    Parameters
    ----------
    data : CountField
    predictions : FieldPredictions
        At the inputs of the counts, and after them at the new ones.

    Attributes
    ----------
    names : list of str
        Of the categories.
    percent : str
        Name of the intervals, such as 90 % interval.
    mean, lower, upper : arrays, ``(num_rows, num_categories)``
        Of the draws, and the ends of their intervals.
    axis : str
        The column; empty if there is none.
    x, along : arrays, ``(num_rows,)``
        The axis as numbers, and as the table has it.
    place : int array, ``(num_rows,)``
    places : list of str
    counted : bool array, ``(num_rows, num_categories)``
        The categories that were counted in each row, all of them at new inputs.
    """

    def __init__(self, data: CountField, predictions: FieldPredictions):
        self.data, self.predictions, self.names = data, predictions, data.category_labels
        self.percent = f"{round(100 * predictions.probability)} % interval"
        self.mean, (self.lower, self.upper) = predictions.mean, predictions.interval()
        size, columns = len(self.mean), predictions.columns_of("row")
        self.axis, self.x, self.places, self.place = axis_and_places(data, columns, size)
        self.along = np.asarray(columns.get(self.axis, np.zeros(size)))
        new = np.ones((data.num_new, data.num_categories), dtype=np.bool_)
        self.counted = np.concatenate([data.was_counted, new])

    @cached_property
    def ends(self) -> tuple[dict[int, int], dict[int, int]]:
        """The row of each place at the first and the last of the axis where most places stand."""
        values, at = np.unique(self.x, return_inverse=True)
        pairs = np.unique(np.stack([at, self.place]), axis=1)
        most = np.bincount(pairs[0], minlength=len(values))
        partly = at[~self.counted.all(axis=1)]
        complete = ~np.isin(np.arange(len(values)), partly)  # all categories were counted
        usable = complete if np.count_nonzero(complete) > 1 else np.ones_like(complete)
        shared = np.flatnonzero(usable & (most == most[usable].max()))
        first, last = (
            {int(self.place[r]): int(r) for r in np.flatnonzero(at == end)[::-1]}
            for end in shared[[0, -1]]
        )
        return first, last

    @property
    def last(self) -> IntArray:
        """The rows at the last of the axis."""
        return np.array(sorted(self.ends[1].values()))

    @property
    def end(self) -> str:
        """Words for the last value of the axis, such as " at year 2010"."""
        return f" at {self.axis} {plain(self.along[self.last[0]])}" if self.axis else ""

    @cached_property
    def totals(self) -> IntArray:
        """Counts of each place."""
        place = self.place[: self.data.num_rows]
        return np.bincount(place, self.data.totals, minlength=len(self.places)).astype(np.int64)

    def interval(self, draws: FloatArray, form: str = ".2f") -> Interval:
        """Mean and interval of draws of a number."""
        tail = 0.5 * (1.0 - self.predictions.probability)
        lower, upper = np.quantile(draws, [tail, 1.0 - tail])
        return Interval(float(draws.mean()), float(lower), float(upper), form)

    def cell(self, row: int, k: int) -> Interval:
        """The probability of a category in a row."""
        mean, lower, upper = (float(v[row, k]) for v in (self.mean, self.lower, self.upper))
        return Interval(mean, lower, upper)

    def firsts(self, rows: IntArray) -> FloatArray:
        """Probabilities of being the most probable category, ``(len(rows), num_categories)``."""
        best, size = self.predictions.draws[:, rows].argmax(axis=2), len(self.names)
        return np.array([np.bincount(row, minlength=size) for row in best.T]) / len(best)

"""Rows of a field by where they stand: along an axis, and at which place.

The axis is the first input of numbers or dates, and the other inputs are the place.
"""

from dataclasses import dataclass

import numpy as np

from pgmult.core.reports import Interval
from pgmult.core.typing import Array, BoolArray, FloatArray, IntArray
from pgmult.fields.data import CountField
from pgmult.fields.predictions import FieldPredictions
from pgmult.fields.tables import axis_and_places, plain


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Probabilities of rows, by where they stand along an axis and at which place.

    Attributes
    ----------
    data : CountField
    predictions : FieldPredictions
        At the inputs of the counts, and after them at the new ones.
    mean, lower, upper : arrays, ``(num_rows, num_categories)``
        Of its draws, and the ends of their intervals.
    axis : str
        The column; empty if there is none.
    x, along : arrays, ``(num_rows,)``
        The axis as numbers, and as the table has it.
    place : int array, ``(num_rows,)``
    places : list of str
    counted : bool array, ``(num_rows, num_categories)``
        The categories that were counted in each row, all of them at new inputs.
    """

    data: CountField
    predictions: FieldPredictions
    mean: FloatArray
    lower: FloatArray
    upper: FloatArray
    axis: str
    x: FloatArray
    along: Array
    place: IntArray
    places: list[str]
    counted: BoolArray

    @classmethod
    def of(cls, data: CountField, predictions: FieldPredictions) -> "Grid":
        """The rows of predictions at all inputs."""
        size, columns = predictions.draws.shape[1], predictions.columns_of("row")
        axis, x, places, place = axis_and_places(data, columns, size)
        along = np.asarray(columns.get(axis, np.zeros(size)))
        counted = np.ones((size, data.num_categories), dtype=np.bool_)
        counted[: data.num_rows] = data.was_counted
        lower, upper = predictions.interval()
        return cls(
            data, predictions, predictions.mean, lower, upper, axis, x, along,
            place, places, counted,
        )  # fmt: skip

    @property
    def names(self) -> list[str]:
        """Names of the categories."""
        return self.data.category_labels

    @property
    def percent(self) -> str:
        """Name of the intervals, such as 90 % interval."""
        return f"{round(100 * self.predictions.probability)} % interval"

    @property
    def ends(self) -> tuple[dict[int, int], dict[int, int]]:
        """The row of each place at the first and the last of the axis where most places stand."""
        values, at = np.unique(self.x, return_inverse=True)
        pairs = np.unique(np.stack([at, self.place]), axis=1)
        most = np.bincount(pairs[0], minlength=len(values))
        complete = np.ones(len(values), dtype=np.bool_)  # all categories were counted
        complete[at[~self.counted.all(axis=1)]] = False
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

    @property
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

"""Draws of an array whose entries have labels: what they are on average, and between which ends."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from pgmult.core.arguments import as_probability, brief
from pgmult.core.parameters import Checked
from pgmult.core.typing import FloatArray

Labels = Sequence[Any] | NDArray[Any] | Mapping[str, Sequence[Any] | NDArray[Any]]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LabelledDraws(Checked):
    """Draws of an array with names for its axes and labels along them.

    Attributes
    ----------
    draws : array, ``(num_draws, ...)``
        One axis for each name in `axes` after the first. An entry is nan where a draw has no value
        for it; summaries of the entry leave such draws out.
    axes : tuple of str
    labels : mapping from the name of an axis to its labels
        A sequence of values; or, where several columns identify the entries of an axis, a mapping
        from name to sequence. An axis without labels is numbered.
    probability : float
        Of the central intervals.
    """

    draws: Annotated[FloatArray, lambda value, _: np.asarray(value, dtype=np.float64)]
    axes: tuple[str, ...]
    labels: Mapping[str, Labels]
    probability: Annotated[float, as_probability] = field(default=0.9, kw_only=True)

    def _complete(self) -> None:
        if self.draws.ndim != len(self.axes) + 1:
            raise ValueError(
                f"draws must have the axes ({', '.join(('draw', *self.axes))}), got shape"
                f" {self.draws.shape}"
            )
        for axis, size in zip(self.axes, self.draws.shape[1:], strict=True):
            for name, values in self.columns_of(axis).items():
                if len(values) != size:
                    raise ValueError(
                        f"labels of {name!r} must be {size} to go with draws, got {len(values)}"
                    )

    @property
    def mean(self) -> FloatArray:
        """Means."""
        return _over(self.draws, np.mean, np.nanmean, self.draws)

    @property
    def sd(self) -> FloatArray:
        """Standard deviations."""
        return _over(self.draws, np.std, np.nanstd, self.draws)

    def quantile(self, at: float | Sequence[float]) -> FloatArray:
        """Quantiles, with those that `at` lists along the first axis, if it is a list."""
        return _over(self.draws, np.quantile, np.nanquantile, self.draws, at)

    def interval(self, probability: float | None = None) -> FloatArray:
        """Lower and upper ends of central intervals, along the first axis."""
        level = self.probability if probability is None else probability
        tail = 0.5 * (1.0 - as_probability(level, "probability"))
        return self.quantile([tail, 1.0 - tail])

    @property
    def lower(self) -> FloatArray:
        """Lower ends of the intervals."""
        return np.asarray(self.interval()[0])

    @property
    def upper(self) -> FloatArray:
        """Upper ends of the intervals."""
        return np.asarray(self.interval()[1])

    def p_above(self, value: float = 0.0) -> FloatArray:
        """Posterior probabilities of being above a value."""
        above = np.where(np.isnan(self.draws), np.nan, self.draws > value)
        return _over(self.draws, np.mean, np.nanmean, above)

    def columns_of(self, axis: str) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """The columns that label an axis."""
        labels = self.labels.get(axis)
        if labels is None:
            return {axis: range(self.draws.shape[1 + self.axes.index(axis)])}
        return labels if isinstance(labels, Mapping) else {axis: labels}

    def axis_of(self, column: str) -> tuple[int, str]:
        """The place and the name of the axis that a column labels."""
        for place, axis in enumerate(self.axes):
            if column in self.columns_of(axis):
                return place, axis
        columns = [name for axis in self.axes for name in self.columns_of(axis)]
        raise ValueError(f"column must be one of {', '.join(columns)}, got {brief(column)}")

    def cells(self) -> dict[str, list[Any]]:
        """The label of every entry in every column, entries in the order of `draws`."""
        shape = self.draws.shape[1:]
        columns: dict[str, list[Any]] = {}
        for place, axis in enumerate(self.axes):
            number_of = np.broadcast_to(
                np.arange(shape[place]).reshape(-1, *(1,) * (len(shape) - place - 1)), shape
            ).ravel()
            for name, values in self.columns_of(axis).items():
                columns[name] = taken(values, number_of)
        return columns


def _over(draws: FloatArray, whole: Any, with_gaps: Any, *values: Any) -> FloatArray:
    """A statistic of draws; nan where no draw says anything."""
    if not np.isnan(draws).any():
        return np.asarray(whole(*values, axis=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.asarray(with_gaps(*values, axis=0))


def taken(values: Sequence[Any] | NDArray[Any], rows: NDArray[Any]) -> list[Any]:
    """Values of some rows, none of them changed."""
    return [values[row] for row in rows]
